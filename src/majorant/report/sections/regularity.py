"""Regularity: a warning about a fit whose likelihood is not determined by the data."""

from __future__ import annotations

from majorant.report import numbers
from majorant.report.html import facts
from majorant.report.measures.mixture import Mixture
from majorant.report.section import Section
from majorant.report.words import mixture as words


def regularity_section(mixture: Mixture) -> Section | None:
    """Build the section, or return None for a regular fit."""
    if mixture.regular:
        return None
    smallest = int(mixture.weights.argmin())
    figures = [
        (
            mixture.card.objective_name.capitalize(),
            numbers.objective(mixture.objective, mixture.card.objective_name),
            "",
        ),
        ("Smallest component", str(smallest + 1), f"{mixture.effective_sizes[smallest]:.1f} rows"),
    ]
    return Section(
        "regularity", "Warning", _degenerate_headline(), words.degenerate_notes(mixture), facts(figures, "four-figures")
    )


def _degenerate_headline() -> str:
    return "This fit is degenerate: nothing follows from its likelihood."
