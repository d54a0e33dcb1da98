"""Title, introduction and components of a mixture of regressions."""

from __future__ import annotations

import numpy as np

from majorant.models.regression_mixture.words import why_no_errors
from majorant.report import numbers
from majorant.report.html import column_name, escaped, shortened
from majorant.report.measures.regression import Regression
from majorant.report.section import Header
from majorant.report.words import facts
from majorant.report.words import search as search_words
from majorant.report.words.grammar import capital, counted, in_prose, listed, verb

MOST_IN_LEDE = 3
SHARED = 1.5
"""Largest ratio of two slopes or two noises that is not mentioned."""


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


def components_headline(regression: Regression) -> str:
    """State the clearest difference between the components."""
    k, feature = regression.k, regression.main_feature
    if k == 1:
        return f"One {'line' if regression.has_lines else 'component'} describes all rows."
    if regression.run.estimator.is_exact_:
        return "All components are the same line."
    if regression.is_curved:
        return f"{capital(in_prose(k))} components, which differ in several terms of the same column."
    slopes, scale = regression.lines.coef[:, feature], regression.lines.scale
    found, name = regression.intervals, main_feature(regression)
    if found is not None:
        low, high = (bound[:, feature] for bound in found["coef"])
        rising, falling = (np.flatnonzero(side) for side in (low > 0, high < 0))
        if len(rising) and len(falling):
            return (
                f"Along {name} {_components(rising)} {verb(len(rising), 'rises', 'rise')} and "
                f"{_components(falling)} {verb(len(falling), 'falls', 'fall')}."
            )
    loud, quiet = int(scale.argmax()), int(scale.argmin())
    if regression.noise_ratio >= 2:
        return f"Component {loud + 1} is {_times(regression.noise_ratio)} times noisier than component {quiet + 1}."
    steep, flat = int(np.abs(slopes).argmax()), int(np.abs(slopes).argmin())
    ratio = float(np.abs(slopes[steep])) / float(np.abs(slopes[flat])) if slopes[flat] != 0 else np.inf
    if ratio >= SHARED:
        times = f"{_times(ratio)} times as" if ratio < 1000 else "far more"
        than = "as" if ratio < 1000 else "than"
        return f"Along {name} component {steep + 1} is {times} steep {than} component {flat + 1}."
    if found is None and slopes[steep] * slopes[flat] < 0:
        return f"Along {name} the components run in opposite directions."
    return f"Along {name} the components run alike; they differ in height."


def _what_they_are(regression: Regression) -> list[str]:
    """Explain coefficients and weights where components are not lines."""
    texts = []
    if regression.response.predicts:
        texts.append(f"<b>Intercepts and slopes</b> are of {escaped(regression.response.predicts)}.")
    if regression.has_gating:
        texts.append("<b>Weights</b> depend on other columns; those shown are their means over the rows.")
    if regression.has_groups:
        n = len(regression.run.estimator.groups_)
        texts.append(f"All rows of a group have one component; there are {numbers.integer(n)} groups.")
    return texts


def _components(which: object) -> str:
    names = [str(j + 1) for j in np.asarray(which).tolist()]
    return f"component{'' if len(names) == 1 else 's'} {listed(names)}"


def _times(ratio: float) -> str:
    return numbers.fixed(ratio, 1 if ratio < 10 else 0)


def components_notes(regression: Regression, n_shown: int, n_features_shown: int) -> list[str]:
    """Explain where the intervals come from, and what is left out."""
    texts = []
    if regression.intervals is None:
        texts.append(f"<b>There are no intervals:</b> {escaped(why_no_errors(regression.run.estimator))}.")
    else:
        scales = "that of a weight is computed on the logit scale"
        if regression.has_noise:
            scales = "those of weight and \u03c3 are computed on the logit and log scale"
        texts.append(
            "<b>An interval</b> is the estimate give or take 1.96 standard errors, from the observed information; "
            f"{scales}. A slope whose interval holds 0 may be none at all."
        )
        noise = " and the noise as normal" if regression.has_lines else ""
        texts.append(f"The intervals take the number of components as given{noise}.")
        texts.append(
            "<b>z</b> is an estimate over its standard error, <b>p</b> how often it is as large if the truth is zero."
        )
    if regression.multiplies:
        of = "the mean" if "logarithm" in regression.response.predicts else "the odds"
        texts.append(f"<b>exp</b> is the factor per unit: of {of}.")
    texts += _what_they_are(regression)
    if regression.k > 1:
        texts.append("Components are numbered by weight.")
    left_out = regression.n_features - n_features_shown
    if left_out > 0:
        texts.append(
            f"The features of the largest effect are shown; {counted(left_out, 'other')} "
            f"{verb(left_out, 'is', 'are')} left out."
        )
    if n_shown < regression.k:
        texts.append(f"The {n_shown} heaviest of {regression.k} components are shown.")
    if regression.run.weights is not None:
        texts.append("The fit counted rows by their weights.")
    return texts
