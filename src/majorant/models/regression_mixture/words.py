"""Texts on a fit: columns of no use, excluded solutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._numbers import counted
from majorant.densities.regression import EXACT_LINE, NO_MAXIMUM
from majorant.models.covariates import BY_FORMULA, told
from majorant.models.regression_mixture.units import AnyUnits, Units
from majorant.solvers.orthonormal import WITHOUT_EFFECT
from majorant.solvers.responses import Response

PLAIN_ONLY = (
    "only goes with the plain mixture of Gaussian lines (no other family, groups, shared coefficients, offset, "
    "trimming or labels; gating with init='moments' alone)"
)
EXACT_ROWS = "a component fits its rows exactly, so its noise is a floor"
FEW = 1000
"""Rows that are looked at before all."""
SEPARATED = "a component's line runs to infinity"


def of_one_line(n_components: int) -> str:
    """Say that one line fits every row, and that so many are none."""
    return EXACT_LINE + "; fit a single regression" * (n_components > 1)


def of_ratio(max_sigma_ratio: float) -> str:
    """Return why a solution that the largest ratio of noises holds back does not count."""
    return f"the noise of two components would differ by a factor of more than {max_sigma_ratio:g} if it could"


def of_exact(size: str) -> str:
    """Reason why a solution that fits some rows exactly is excluded."""
    return f"a component fits {size} exactly, so that without max_sigma_ratio its noise would be zero"


def of_degenerate(why: str, n_components: int, response: Response) -> str:
    """Return the message where no solution counts, with what to change; empty where one does."""
    if not why or NO_MAXIMUM in why:
        return why
    found = f"no regular solution with {counted(n_components, 'component')} was found: here {why}"
    if n_components == 1:
        return f"{found}. Leave out columns, or take in more rows"
    others = ', variance="common", or other max_sigma_ratio and min_component_size' if response.has_dispersion else ""
    return f"{found}. Ask for fewer components{others}"


def of_dropped(units: AnyUnits, names: Sequence[str]) -> str:
    """Return which columns are combinations of others, and what is done about it."""
    coordinates, n_rows = units.coordinates, units.n_rows
    done = "of the coefficients that fit equally well the smallest, in standard units, are returned"
    if units.n_shared:
        done = "coefficients are not unique"
    if units.positions is not None and n_rows < len(names) + coordinates.fit_intercept:
        verb, of_all = "does" if n_rows == 1 else "do", counted(len(names), "coefficient")
        of_all += " and an intercept" * coordinates.fit_intercept
        return f"{counted(n_rows, 'distinct row')} {verb} not determine {of_all}: {done}"
    why = "does not vary" if coordinates.fit_intercept else "is zero"
    constant = {names[j]: why for j in coordinates.dropped if coordinates.scales[j] == WITHOUT_EFFECT}
    others = [names[j] for j in coordinates.dropped if names[j] not in constant]
    said = [
        f"{told(constant)}: no effect, and no standard error (NaN). Leave {'it' if len(constant) == 1 else 'them'} out"
    ][: len(constant)]
    if others:
        it, is_what = ("it", "a combination") if len(others) == 1 else ("them", "combinations")
        said.append(
            f"{', '.join(others)}: {is_what} of the columns before{' and the intercept' * coordinates.fit_intercept} "
            f"on these rows; {done}. Leave {it} out to have unique ones; {BY_FORMULA}"
        )
    return ". ".join(said)


def of_saturated(units: AnyUnits, n_components: int, names: Sequence[str]) -> str:
    """Say which columns take so few values that a line goes through any: nothing there tells whose a mean is.

    Lines at p rows of a design of p columns are any p means, so that means of components may be exchanged at one of
    them (C. Hennig, "Identifiability of models for clusterwise linear regression", 2000). Groups, labels, weights that
    depend on columns and shared coefficients tell which belong together.
    """
    known = units.is_grouped or units.gating is not None or units.labels is not None or units.n_shared > 0
    p = units.n_coefficients
    if n_components == 1 or known or p == 1 or not isinstance(units, Units) or _n_different(units.z[:FEW]) > p:
        return ""
    if _n_different(units.z) > p:
        return ""
    told = ", ".join(names[j] for j in range(len(names)) if j not in units.coordinates.dropped)
    return (
        f"{told}: {p} different rows, which any line goes through. Which component of one is which of another is told "
        "by weights and noise alone, so that coefficients may be those of a mixed pair; log-likelihood and predictions "
        "are right. Add a column that varies, or groups of rows that share a component"
    )


def _n_different(design: NDArray[np.float64]) -> int:
    size = np.abs(design).max(axis=0, initial=1e-300)
    return len(np.unique(np.round(design / size, 9), axis=0))


def changes_that_admit(excluded: Mapping[str, Any], max_sigma_ratio: float) -> list[str]:
    """Return the settings with which an excluded solution would count."""
    changes = []
    if excluded["sigma_ratio"] >= max_sigma_ratio * (1 - 1e-3):
        changes.append(f"max_sigma_ratio={np.ceil(excluded['sigma_ratio'] * 1.05):g}")
    if excluded["smallest_component"] < excluded["regular_from"]:
        changes.append(f"min_component_size={np.floor(excluded['smallest_component']):g}")
    return changes


def what_would_admit(excluded: Mapping[str, Any], max_sigma_ratio: float) -> str:
    """Return what was excluded as degenerate, and the parameters with which it would count."""
    changes = changes_that_admit(excluded, max_sigma_ratio)
    found = f"A solution of log-likelihood {excluded['log_likelihood']:.3f} was left out"
    if not changes:
        return f"{found}: {excluded['reason']}."
    ratio = excluded["sigma_ratio"]
    noise = f" and its noise differs by a factor of {ratio:.1f}" if ratio > 1 else ""
    return f"{found}: its smallest component has {excluded['size']}{noise}; {' and '.join(changes)} would admit it."


def why_no_errors(model: Any) -> str:
    """Return why a fit has no standard errors from the observed information."""
    if NO_MAXIMUM in model.degeneracy_:
        return f"{model.degeneracy_.split(NO_MAXIMUM)[0]}: there is no noise to estimate standard errors from"
    return "the information of the rows that are left knows nothing of those that were trimmed: resample the rows"


def reservations(model: Any) -> list[str]:
    """Return the note on the standard errors of a fit that has them."""
    if model.regular_:
        by_gating = bool(model.separated_) and model.gating_coef_.shape[1] > 0
        is_open = not by_gating and np.isnan(model.standard_errors_["weights"]).any()
        return [
            "The rows do not determine the weights and what has no error (NaN): other components have the same "
            "likelihood. Ask for fewer components, or give rows that tell more (trials, groups, other values of X)."
        ] * int(is_open)
    return [
        "The solution is not a regular one: a component's noise is on its bound, or it is too small. Standard errors "
        "from the information are then unreliable."
    ]
