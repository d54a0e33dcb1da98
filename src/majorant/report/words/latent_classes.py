"""Sentences about the latent classes of a classification."""

from __future__ import annotations

import numpy as np

from majorant.models.base import ACTIVE_SHARE
from majorant.models.discriminative_latent_classes.summary import NO_FEATURES
from majorant.report import numbers
from majorant.report.html import column_name, escaped, shortened
from majorant.report.measures.classification import Classification, LatentClass
from majorant.report.words.grammar import capital, counted, in_prose, opening, verb

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
        name = column_name(classification.run.feature_names[telling[0]])
        return f"{classes}; the largest is best identified by {name}."
    return f"{classes}."


def probability(of_label: float) -> str:
    """Format a label's probability as markup; it reads 100 or 0 per cent only if it is exactly that."""
    nearly = of_label < 1 and round(100 * of_label, 1) >= 100
    return f"&gt;{numbers.NARROW_SPACE}" * nearly + numbers.percent_briefly(of_label)


def notes(classification: Classification, found: list[LatentClass], n_shown: int) -> list[str]:
    """Explain the table."""
    text = (
        "<b>One line per latent class</b>, a group of rows that the features separate. It <b>gives</b> the labels with "
        "these probabilities."
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
