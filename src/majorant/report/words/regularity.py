"""Sentences about a degenerate mixture of regressions, and about a better solution that was left out."""

from __future__ import annotations

from majorant.models.regression_mixture.words import changes_that_admit
from majorant.report import numbers
from majorant.report.html import escaped
from majorant.report.measures.regression import Regression
from majorant.report.words.grammar import listed

DEGENERATE = "This fit is degenerate: nothing follows from its likelihood."
EXACT = "One line fits every row exactly, so there is nothing left for several lines to share."
WHY = (
    "With noise of its own, a component on few rows of one line can raise the likelihood to any height, so a higher "
    "one is not a better one."
)


def smallest_rows(regression: Regression) -> float:
    """Return the summed responsibilities of the smallest component of the fit."""
    return float(regression.effective_sizes.min())


def headline(regression: Regression) -> str:
    """State what must not be interpreted, or what was left out, in one sentence."""
    if regression.run.estimator.is_exact_:
        return EXACT
    if not regression.regular:
        return DEGENERATE
    excluded = regression.run.estimator.excluded_
    reasons = []
    if excluded["smallest_component"] < excluded["regular_from"]:
        reasons.append(f"one component has only {excluded['size']}")
    if excluded["sigma_ratio"] > regression.params["max_sigma_ratio"]:
        reasons.append(f"one component is {numbers.fixed(excluded['sigma_ratio'], 0)} times noisier than another")
    reasons = reasons or [escaped(excluded["reason"].split(":")[0])]
    return f"A higher solution was left out: {listed(reasons)}."


def notes(regression: Regression) -> list[str]:
    """Explain why, and what would change it."""
    model, limit = regression.run.estimator, numbers.fixed(float(regression.params["max_sigma_ratio"]), 1)
    if model.is_exact_:
        return [
            "<b>What to do:</b> fit a linear regression. The noise shown is a floor, 1e-10 of the size of y; the "
            "log-likelihood follows from it."
        ]
    if not regression.regular:
        why = f" {WHY}" if regression.has_noise else ""
        return [f"<b>What happened:</b> {escaped(model.degeneracy_)}.{why}"]
    excluded = model.excluded_
    changes = changes_that_admit(excluded, float(regression.params["max_sigma_ratio"]))
    admit = f"<b>What to do:</b> {listed([f'<code>{change}</code>' for change in changes])} would admit it."
    if not regression.has_noise:
        if changes:
            return [f"<b>The rule:</b> {escaped(excluded['reason'])}. {admit}"]
        return [
            f"<b>The rule:</b> a solution counts when its predictors stay finite. Here {escaped(excluded['reason'])}; "
            "its log-likelihood is a limit that no coefficients reach."
        ]
    rule = f"A solution counts when its noise differs by less than a factor of {limit} and its smallest component has "
    return [
        f"<b>The rule:</b> {rule}{numbers.fixed(excluded['regular_from'], 1)} rows or more. {WHY}",
        f"{admit} Do that where such a line is expected, for example because some rows were measured without error.",
    ]
