"""Regularity: a degenerate fit, or a better solution that was left out as degenerate."""

from __future__ import annotations

from majorant.models.regression_mixture.words import changes_that_admit
from majorant.report import numbers
from majorant.report.html import escaped, facts
from majorant.report.measures.mixture import Mixture
from majorant.report.measures.regression import Regression
from majorant.report.section import Section
from majorant.report.words.grammar import capital, listed

DEGENERATE = "This fit is degenerate: nothing follows from its likelihood."
EXACT = "One line fits every row exactly, so there is nothing left for several lines to share."
WHY = (
    "With noise of its own, a component on few rows of one line can raise the likelihood to any height, so a higher "
    "one is not a better one."
)


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
    return Section("regularity", "Warning", DEGENERATE, degenerate_notes(mixture), facts(figures, "four-figures"))


def left_out_section(regression: Regression) -> Section | None:
    """Build the section; None for a regular fit if no better degenerate solution was seen."""
    excluded = regression.run.estimator.excluded_
    if regression.regular and excluded is None:
        return None
    if excluded is None or not regression.regular:
        height, smallest, ratio = regression.objective, float(regression.effective_sizes.min()), regression.noise_ratio
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
        headline(regression),
        _notes(regression),
        facts(figures, "four-figures"),
    )


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


def _notes(regression: Regression) -> list[str]:
    model, limit = regression.run.estimator, numbers.fixed(float(regression.params["max_sigma_ratio"]), 1)
    if model.is_exact_:
        return [
            "<b>What to do:</b> fit a single regression. The noise shown is a floor; the likelihood follows from it."
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


def degenerate_notes(mixture: Mixture) -> list[str]:
    """Explain why a fit is degenerate, and what to do."""
    texts = [
        f"<b>What happened:</b> {escaped(mixture.why_degenerate)}. The likelihood of a mixture grows without limit "
        f"when a {mixture.part} collapses on few rows or on a plane.",
        f"<b>What to do:</b> try fewer {mixture.parts}, a simpler covariance_type (tied or diag), or more rows. Rows "
        "that repeat and columns that are functions of others are the usual cause.",
    ]
    if mixture.search.note:
        texts.append(f"{capital(mixture.search.note.rstrip('.'))}.")
    return texts
