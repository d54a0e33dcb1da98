"""Sentences about rows whose component is uncertain."""

from __future__ import annotations

from majorant.report import numbers
from majorant.report.measures.memberships import CLEAR
from majorant.report.measures.mixture import Mixture
from majorant.report.words.grammar import opening, verb


def headline(mixture: Mixture) -> str:
    """State how many rows clearly belong to one component, in one sentence."""
    n, clear = mixture.n_rows, mixture.n_clear
    unsure = n - clear
    if not unsure:
        return f"Every row belongs to one {mixture.part} with a probability above {CLEAR:.1f}."
    if clear < n / 2:
        return f"The {mixture.parts} overlap: only {numbers.integer(clear)} of {numbers.integer(n)} rows are clear-cut."
    subject = f"{opening(unsure) if unsure < 100 else numbers.integer(unsure)} of {numbers.integer(n)} rows"
    return f"{subject} {verb(unsure, 'is', 'are')} unsure of {verb(unsure, 'its', 'their')} {mixture.part}."


def notes(mixture: Mixture, n_listed: int) -> list[str]:
    """Explain the bars and the list."""
    texts = [
        f"<b>Each bar counts rows</b> by the probability of their own {mixture.part}, as the fit sees it: 1 is "
        f"certain. Rows up to {CLEAR:.1f} are unsure."
    ]
    unsure = mixture.n_rows - mixture.n_clear
    if unsure:
        listed = "They are listed" if unsure <= n_listed else f"The {n_listed} most unsure are listed"
        texts.append(f"{listed} with the two {mixture.parts} between which they stand.")
    texts.append("<b>Note:</b> these probabilities hold if the fitted model is right.")
    return texts
