"""Degenerate mixtures of regressions: a degenerate fit, or a better solution left out as degenerate."""

from __future__ import annotations

from majorant.report import numbers
from majorant.report.html import facts
from majorant.report.measures.regression import Regression
from majorant.report.section import Section
from majorant.report.words import regularity as words


def left_out_section(regression: Regression) -> Section | None:
    """Build the section; None for a regular fit if no better degenerate solution was seen."""
    excluded = regression.run.estimator.excluded_
    if regression.regular and excluded is None:
        return None
    if excluded is None or not regression.regular:
        height, smallest, ratio = regression.objective, words.smallest_rows(regression), regression.noise_ratio
        above = None
    else:
        height, smallest, ratio = (
            float(excluded[name]) for name in ("log_likelihood", "smallest_component", "sigma_ratio")
        )
        above = height - regression.objective
    figures = [
        ("Log-likelihood", numbers.objective(height, "log-likelihood"), ""),
        ("Smallest component", numbers.fixed(smallest, 1), "rows"),
    ]
    if regression.has_noise:
        figures.append(("Noise differs by", f"{numbers.TIMES}{numbers.NARROW_SPACE}{numbers.fixed(ratio, 1)}", ""))
    if above is not None:
        figures.insert(1, ("Above the fit", numbers.distance(above), "log-likelihood"))
    return Section(
        "regularity",
        "Left out" if regression.regular else "Warning",
        words.headline(regression),
        facts(figures, "four-figures"),
        words.notes(regression),
        is_figure=False,
    )
