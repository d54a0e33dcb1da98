"""Title, introduction and components of a mixture of regressions."""

from __future__ import annotations

import numpy as np

from majorant.report import numbers
from majorant.report.html import column_name, escaped, shortened
from majorant.report.measures.regression import Regression
from majorant.report.section import Header
from majorant.report.words import facts
from majorant.report.words import search as search_words
from majorant.report.words.grammar import capital, counted, in_prose

MOST_IN_LEDE = 3


def target(regression: Regression) -> str:
    """Return the name of the target, as markup."""
    return column_name(regression.run.target_name)


def main_feature(regression: Regression) -> str:
    """Return the name of the feature of the largest effect, as markup."""
    return column_name(regression.run.feature_names[regression.main_feature])


def lines(regression: Regression) -> str:
    """Return the number of regressions in words, as plain text: "two Poisson regressions"."""
    return counted(regression.k, f"{regression.response.title} regression".strip())


def title(regression: Regression) -> str:
    """Return the title of the page, as markup."""
    on = main_feature(regression) if regression.n_features == 1 else counted(regression.n_features, "feature")
    return f"{target(regression)} on {on}, a mixture of {escaped(lines(regression))}"


def plain_title(regression: Regression) -> str:
    """Return the title of the window."""
    name = shortened(regression.run.target_name, 60)
    return f"{name} of {regression.run.table_name}: mixture of {lines(regression)}"


def lede(regression: Regression) -> str:
    """State what the lines are like, and how reliable the fit is."""
    if not regression.regular:
        return (
            "<strong>This fit is degenerate</strong>: its likelihood and criteria say nothing about the data. "
            "The first section says why."
        )
    agreement = search_words.agreement(regression.search)
    if regression.k > MOST_IN_LEDE or not regression.has_lines:
        shares = f"{numbers.percent(float(regression.weights.max()), 0)} of the weight lies on the first"
        if regression.k == 1:
            return agreement
        parts = "lines" if regression.has_lines else "components"
        return f"{capital(in_prose(regression.k))} {parts} share the rows: {shares}. {agreement}"
    return f"{' '.join(_line(regression, j) for j in range(regression.k))} {agreement}"


def header(regression: Regression) -> Header:
    """Return title, lede and five facts of a mixture of regressions."""
    return Header(plain_title(regression), title(regression), lede(regression), facts.likelihood(regression))


def _line(regression: Regression, j: int) -> str:
    slope = float(regression.lines.coef[j, regression.main_feature])
    unit = "standard deviation" if regression.run.standardised else "unit"
    moves = f"{'rises' if slope > 0 else 'falls'} by {_brief(abs(slope))} per {unit} of {main_feature(regression)}"
    if slope == 0:
        moves = "is flat"
    who = (
        "The line"
        if regression.k == 1
        else f"Component {j + 1} holds {numbers.percent(float(regression.weights[j]), 0)} of the weight and"
    )
    return f"{who} {moves}, with noise of {_brief(float(regression.lines.scale[j]))}."


def _brief(value: float) -> str:
    """Format a number with two significant digits."""
    if value != 0 and not 1e-4 <= value < 1e6:
        return numbers.scientific(value, 2)
    return numbers.fixed(value, max(0, 1 - int(np.floor(np.log10(value)))) if value else 0)
