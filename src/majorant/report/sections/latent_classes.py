"""Latent classes: the rows of each, the label it predicts and the features that define it."""

from __future__ import annotations

from majorant.models.discriminative_latent_classes.summary import MOST_FEATURES
from majorant.report import numbers
from majorant.report.html import column_name, escaped, shortened
from majorant.report.measures.classification import Classification, LatentClass
from majorant.report.section import Section
from majorant.report.table import Column, Table, bar_column
from majorant.report.words import latent_classes as words

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
        words.headline(classification, found),
        "",
        words.notes(classification, found, len(shown)),
        is_figure=False,
        table=_table(classification, shown),
    )


def _table(classification: Classification, shown: list[LatentClass]) -> Table:
    shares, names = [float(one.share) for one in shown], classification.names
    numbered = [one.number + 1 for one in shown]
    columns = [
        Column("Class", numbered, css="number"),
        Column("Share", shares, list(map(numbers.percent_in_column, shares)), css="number"),
        bar_column([share / max(shares) for share in shares]),
        Column(
            "Gives",
            [None] * len(shown),
            markup=[_labels(classification, one) for one in shown],
            css="gives",
            where="page",
        ),
    ]
    for m, name in enumerate(names):
        given = [float(one.labels[m]) for one in shown]
        columns.append(Column(f"p({name})", given, [numbers.fixed(p, 3) for p in given], css="number", where="copies"))
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
    given = words.given_labels(one)[:MOST_LABELS]
    return ", ".join(
        f"{escaped(shortened(classification.names[m], words.LONGEST_LABEL))}: {words.probability(float(one.labels[m]))}"
        for m in given
    )


def _features(classification: Classification, one: LatentClass, sign: int) -> list[str]:
    return [classification.run.feature_names[j] for j in one.telling_features(sign)[:MOST_FEATURES]]
