"""Regressions of a target on columns, fitted in standard units and told in those of the rows: Markov switching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.densities import GaussianRegression, Predictors, Regression, VarianceRule
from majorant.densities.regression import FEWEST_EVENTS
from majorant.engine.descent import Ends
from majorant.engine.mixture import Array, Limits, Mixture, OnData, Parameters, Table
from majorant.laws.separation import LEAST_PART, OF_AWAY, line_away
from majorant.models.covariates import BY_FORMULA, LINEAR, NEARLY, told, undetermined
from majorant.solvers.responses import Response

MOST_RATIO = 15.0
"""Largest ratio of two standard deviations of a regular solution, as in mixtures of regressions."""
FLOOR = 1e-10
UNSEEN = 1e-11
"""Share of the largest square of a direction below which rows have no part in it."""
EXACT_STATE = "the line of a state fits its rows exactly, so that its noise is zero but for a floor"


class SwitchingLines:
    """Lines with Gaussian noise, or of counts or zeros and ones, each with a constant or none.

    A block has the design, a constant first where there is one, and the target, both in standard units; a row of which
    a cell is missing is all NaN, and says nothing.

    Parameters
    ----------
    centre, scale : ndarray of shape (1 + p,)
        Of the target and the other columns: each is its centre plus its scale times the standard one.
    is_common : bool
        Whether all states have one variance.
    has_constant : bool, default=True
    response : Response, optional
        Distribution of the target given the line, normal by default; of another one the centre of the target is an
        offset, and its scale one.
    """

    n_columns = 2

    def __init__(
        self,
        centre: Array,
        scale: Array,
        is_common: bool,
        has_constant: bool = True,
        response: Response | None = None,
    ) -> None:
        self.centre, self.scale, self.n_constants = centre, scale, int(has_constant)
        self.p, rule = len(centre) - 1 + self.n_constants, VarianceRule(MOST_RATIO, FLOOR, common=is_common)
        self.inner = Regression(response, self.p, rule) if response else GaussianRegression(None, self.p, rule)
        self.exact = self.inner.exact

    @property
    def width(self) -> int:
        """Width of the statistics of the lines."""
        return self.inner.width

    @property
    def limits(self) -> Mapping[str, Limits]:
        """Variances are positive, where the target has some."""
        return {"variances": (0.0, np.inf)} if self.inner.response.is_location_scale else {}

    def _complete(self, rows: Block) -> tuple[Block, NDArray[np.bool_]]:
        """Return the rows with zeros for what is missing, and which are complete; kept beside the rows."""
        z, y = rows.columns
        known = rows.derived.get("complete")
        if known is None or known[0] is not z:
            there = ~np.isnan(y)
            filled = [np.where(there[:, None], z, 0.0), np.where(there, y, 0.0)]
            if not self.inner.response.is_location_scale:  # offset, and numbers of trials
                filled += [np.full(len(y), self.centre[0]), np.ones(len(y))]
            rows.derived["complete"] = known = (z, Block(rows.first, tuple(filled), rows.weights), there)
        return known[1], known[2]

    def log_density(self, theta: Predictors, rows: Block) -> Table:
        """Return the log density of each target."""
        complete, there = self._complete(rows)
        return np.asarray((self.inner.log_density(theta, complete) - np.log(self.scale[0])) * there)

    def statistics(self, theta: Predictors | None, rows: Block, q: Table) -> Array:
        """Return the sums over complete rows."""
        complete, there = self._complete(rows)
        return self.inner.statistics(theta, complete, q * there)

    def solve(self, statistics: Array, theta: Predictors | None, share: Array) -> Predictors:
        """Take the M-step."""
        return self.inner.solve(statistics, theta, share)

    def n_parameters(self, n_components: int) -> int:
        """Return the coefficients and variances."""
        return self.inner.n_parameters(n_components)

    def freed(self) -> SwitchingLines:
        """Return the same without a largest ratio of noises."""
        out = copy(self)
        out.inner = self.inner.freed()
        return out

    def exact_line(self, theta: Predictors) -> str:
        """Say that a state fits its rows exactly; empty where none does."""
        said = f"{EXACT_STATE}, and it has no standard errors (NaN)"
        return self.inner.exactness(theta) or said * int(self.inner.on_floor(theta.dispersion)[0])

    def degeneracy(self, theta: Predictors, sizes: Array, mixture: Mixture) -> str:
        """By the rule of mixtures of regressions."""
        if said := self.exact_line(theta):
            return said
        if self.inner.rule.is_active(theta.dispersion)[0]:
            return f"the noise of two states would differ by a factor of more than {MOST_RATIO:g} if it could"
        least = self.p + 2
        if len(sizes) > 1 and sizes.min() < least:
            return f"state {int(sizes.argmin()) + 1} (of {len(sizes)}) has fewer than {least} rows"
        return ""

    def describe(self, theta: Predictors) -> dict[str, Array]:
        """Return the constants, coefficients and variances."""
        coef = theta.coef[:, :, self.n_constants :] * self.scale[0] / self.scale[1:]
        own = {"coef": coef}
        if self.inner.response.has_dispersion:
            own["variances"] = theta.dispersion * self.scale[0] ** 2
        if not self.n_constants:
            return own
        intercept = self.centre[0] + self.scale[0] * theta.coef[:, :, 0] - coef @ self.centre[1:]
        return {"intercept": intercept, **own}

    def recalled(self, estimates: Mapping[str, Array]) -> Predictors:
        """Return the lines of one model."""
        coef = np.asarray(estimates["coef"], dtype=np.float64)
        slopes = coef * self.scale[1:] / self.scale[0]
        dispersion = np.asarray(estimates.get("variances", np.ones(len(coef))), dtype=np.float64) / self.scale[0] ** 2
        if not self.n_constants:
            return Predictors(slopes[None], dispersion[None])
        first = (np.asarray(estimates["intercept"]) + coef @ self.centre[1:] - self.centre[0]) / self.scale[0]
        return Predictors(np.concatenate([first[:, None], slopes], axis=1)[None], dispersion[None])

    def vector(self, theta: Predictors) -> Array:
        """Return the coefficients, and logarithms of the variances."""
        return self.inner.vector(theta)

    def theta_of(self, vector: Array, like: Predictors) -> Predictors:
        """Rebuild parameters from `vector`."""
        return self.inner.theta_of(vector, like)

    def without_events(self, statistics: Array, theta: Predictors) -> Array:
        """Return directions of the `vector` of one run of which rows say nothing, orthonormal, (m, r)."""
        return self.inner.without_events(statistics, theta)

    def separated(self, on: OnData, ends: Ends[Any], names: Sequence[str], unseen: Array) -> str:
        """Say why lines run to infinity where one run ended, and along which columns; empty where none does.

        Directions in which no row has a part, `unseen`, are not among them, see `unseen_of`.
        """
        theta = ends.theta.density
        own = self.inner.without_events(ends.seen.statistics.density, theta, unseen)
        if not own.size:
            return ""
        led = np.abs(self.theta_of((own @ (own.T @ self.vector(theta)[0]))[None], theta).coef[0])
        others = self._apart_from(on, ends.theta) if self.n_constants else np.ones((2, len(led)))
        events = np.diagonal(self.inner.information(ends.seen.statistics.density, theta)[0])[:: self.p]
        lone = (others < FEWEST_EVENTS) & (events < FEWEST_EVENTS)  # without other targets than zero, or one
        said = [
            f"All targets of a state are {value}, so that its line runs to infinity"
            for value, of in zip(("zero", "one"), lone, strict=True)
            if of.any()
        ]
        led = led[~lone.any(axis=0)].max(axis=0, initial=0.0)
        part = led[self.n_constants :]  # the constant leads along with any column
        found = [name for name, size in zip(names, part, strict=True) if size > LEAST_PART * led.max()]
        if found:
            why = "its rows are separated" if self.inner.response.takes_trials else "all its counts there are zero"
            said.append(line_away(found, "state", why))
        said = said or ["The line of a state runs to infinity along the constant"]
        return f"{'. '.join(said)}. {OF_AWAY}"

    def _apart_from(self, on: OnData, theta: Parameters[Any, Any]) -> Array:
        """Return the weight of targets other than zero, and other than one, in each state, (2, states)."""

        def visit(block: Block) -> Array:
            y, q = block.columns[1], on.mixture.responsibilities(theta, block)[0][0]
            q = q if block.weights is None else q * block.weights
            return np.stack([q @ (~np.isnan(y) & (y != value)) for value in (0, 1)])

        return np.asarray(on.data.map_sum(visit))


def unseen_of(design: Array) -> Array:
    """Return the directions of coefficients in which no row has a part, orthonormal, (p, s)."""
    whole = design[~np.isnan(design).any(axis=1)]
    size, basis = np.linalg.eigh(whole.T @ whole)
    return np.asarray(basis[:, size <= UNSEEN * size.max(initial=0.0)])


def without_effect(design: Array, names: list[str], has_constant: bool) -> list[str]:
    """Return a sentence that names columns without an effect of their own, if there are any."""
    whole = design[~np.isnan(design).any(axis=1), int(has_constant) :]
    alike = undetermined(whole, names, beside_constant=has_constant, alike=NEARLY)
    if not alike:
        return []
    in_two = [names[j] for j in range(len(names)) if len(np.unique(whole[:, j])) <= 2]
    of_category = any(alike.get(name) == LINEAR for name in in_two)
    return [
        f"Columns have no effect of their own: {told(alike)}. Their coefficients have no standard errors (NaN); "
        f"log-likelihood and predictions are right. Leave them out{f'; {BY_FORMULA}' * of_category}."
    ]
