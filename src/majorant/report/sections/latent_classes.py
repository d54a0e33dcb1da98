"""Latent classes: the rows of each, the label it predicts and the features that define it."""

from __future__ import annotations

import numpy as np

from majorant.models.base import ACTIVE_SHARE
from majorant.models.discriminative_latent_classes.summary import MOST_FEATURES, NO_FEATURES
from majorant.report import numbers
from majorant.report.columns import bar_column, number_column, shares_column
from majorant.report.html import column_name, escaped, shortened
from majorant.report.measures.classification import Classification, LatentClass
from majorant.report.section import Section
from majorant.report.table import Column, Table
from majorant.report.words.grammar import capital, counted, in_prose, opening, verb

MOST_ROWS = 30
MOST_LABELS = 3


def latent_classes_section(classification: Classification) -> Section | None:
    """Build the section, or return None for a model without latent classes."""
    found = classification.latent_classes
    if found is None:
        return None
    shown = found[:MOST_ROWS]
    return Section(
        "latent-classes",
        "Latent classes",
        headline(classification, found),
        notes(classification, found, len(shown)),
        table=_table(classification, shown),
    )


def _table(classification: Classification, shown: list[LatentClass]) -> Table:
    shares, gives = [float(one.share) for one in shown], [_labels(classification, one) for one in shown]
    columns = [
        Column("Class", [one.number + 1 for one in shown], css="number"),
        shares_column("Share", shares),
        bar_column([share / max(shares) for share in shares]),
        Column("Gives", [None] * len(shown), markup=gives, css="gives", where="page"),
    ]
    for m, name in enumerate(classification.names):
        columns.append(number_column(f"p({name})", [one.labels[m] for one in shown], 3, where="copies"))
    if shown[0].speaks is not None:
        for what, sign in (("More of", 1), ("Less of", -1)):
            texts = [", ".join(_features(classification, one, sign)) for one in shown]
            markup = [
                f'<small class="narrow-only">{what}</small>'
                f"{', '.join(map(column_name, _features(classification, one, sign))) or numbers.DASH}"
                for one in shown
            ]
            columns.append(Column(what, texts, markup=markup, css="prose"))
    return Table("latent-classes", columns, css="stacks")


def _labels(classification: Classification, one: LatentClass) -> str:
    given = given_labels(one)[:MOST_LABELS]
    return ", ".join(
        f"{escaped(shortened(classification.names[m], LONGEST_LABEL))}: {probability(float(one.labels[m]))}"
        for m in given
    )


def _features(classification: Classification, one: LatentClass, sign: int) -> list[str]:
    return [classification.feature_names[j] for j in one.telling_features(sign)[:MOST_FEATURES]]


LONGEST_LABEL = 28
RARE = 0.05
"""Smallest probability of a label that is named."""


def given_labels(one: LatentClass) -> list[int]:
    """Return the labels that a latent class predicts, most probable first."""
    order = np.argsort(-one.labels, kind="stable")
    return [int(m) for m in order if one.labels[m] >= RARE] or [int(order[0])]


def headline(classification: Classification, found: list[LatentClass]) -> str:
    """State how many latent classes a label has."""
    n = len(found)
    classes = f"{opening(n)} latent {verb(n, 'class holds', 'classes hold')} the rows"
    best = [int(np.argmax(one.labels)) for one in found]
    counts = np.bincount(best, minlength=classification.n_classes)
    most = int(counts.argmax())
    if counts[most] > 1:
        name = f"<i>{escaped(shortened(classification.names[most], LONGEST_LABEL))}</i>"
        return f"{classes}; {in_prose(int(counts[most]))} of them give {name}."
    telling = found[0].telling_features()
    if n > 1 and telling:
        name = classification.feature(telling[0])
        return f"{classes}; the largest is best identified by {name}."
    return f"{classes}."


def probability(of_label: float) -> str:
    """Format a label's probability as markup; it reads 100 or 0 per cent only if it is exactly that."""
    nearly = of_label < 1 and round(100 * of_label, 1) >= 100
    return f"&gt;{numbers.NARROW_SPACE}" * nearly + numbers.percent_briefly(of_label)


def notes(classification: Classification, found: list[LatentClass], n_shown: int) -> list[str]:
    """Explain the table."""
    text = (
        "<b>One line per latent class</b>, a group of rows that the features separate. <b>Gives</b> tells how "
        "probable each label is in it."
    )
    if found[0].speaks is None:
        texts = [text, NO_FEATURES]
    else:
        text += (
            " <b>More of</b> and <b>less of</b> name the features with the largest effects on the log "
            "odds, per standard deviation."
        )
        texts = [text]
    unused = len(classification.run.estimator.class_weights_) - len(found)
    if unused:
        others = capital(counted(unused, "latent class"))
        held = f"{100 * ACTIVE_SHARE:g} % of the rows or less"
        texts.append(f"{others} {verb(unused, 'holds', 'hold')} {held}, and {verb(unused, 'is not', 'none is')} shown.")
    if n_shown < len(found):
        texts.append(f"The {in_prose(n_shown)} largest of {in_prose(len(found))} are shown.")
    return texts
