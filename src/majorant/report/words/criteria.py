"""Sentences about the criteria that compare fits."""

from __future__ import annotations

from majorant._numbers import plural_of
from majorant.report import numbers
from majorant.report.html import escaped
from majorant.report.measures.memberships import Memberships
from majorant.report.words.grammar import capital
from majorant.results.selection import NEAR, NEAR_SILHOUETTE, SILHOUETTE, Selection

SIGN = "<b>Lower is better</b>, as in scikit-learn; mclust\u2019s sign is the other way round."

HEADS = {"aic": "AIC", "bic": "BIC", "sabic": "SABIC", "icl": "ICL", "entropy_r2": "Entropy R\u00b2"}


def headline(fit: Memberships) -> str:
    """State the first criterion of a fit."""
    (name, value), *_ = fit.criteria.items()
    return f"The {name.upper()} is {numbers.fixed(value, 2)}: it says something only beside other sizes."


def notes(fit: Memberships) -> list[str]:
    """Explain the sign of the criteria, and how sizes are compared."""
    how = f"<code>--k 1:6</code> fits one to six {fit.parts} and keeps the best."
    return [SIGN, how if fit.run.command else "<code>majorant.select</code> compares several sizes."]


def of_selection(selection: Selection) -> list[str]:
    """Explain the sign of the criterion that compared fits, near ties, and what is left out."""
    of_silhouettes = selection.criterion == SILHOUETTE
    sign = escaped(selection.caption) if of_silhouettes else SIGN
    texts = [sign + (" The best is in bold type." if selection.ranked else "")]
    if selection.ranked and selection.near:
        near = NEAR_SILHOUETTE if of_silhouettes else int(NEAR)
        texts.append(f"<b>Near ties:</b> candidates with a difference below {near} are hardly distinguishable.")
    texts += [f"<b>Excluded:</b> {escaped(reason)}" for reason in selection.exclusions]
    texts += [f"<b>Note:</b> {escaped(sentence)}" for sentence in selection.look_out]
    return texts


def row_name(selection: Selection) -> str:
    """Return the word for sizes."""
    return capital(plural_of(selection.part))
