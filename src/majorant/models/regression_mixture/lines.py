"""The race of lines with Gaussian noise: starts, runs of EM by a kernel, which solutions count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.engine.loop import minimize
from majorant.models.regression_mixture.design import Design
from majorant.models.regression_mixture.family import RegressionFamily, VarianceRule
from majorant.models.regression_mixture.parameters import Regressions, has_twins
from majorant.models.regression_mixture.starts import Sample, is_held_by_ratio, plan_of, pool, replaced
from majorant.models.regression_mixture.words import TWINS, of_ratio
from majorant.search.effort import Plan
from majorant.search.race import Run
from majorant.search.record import PERTURBATION

IN_ONE_CALL = 1 << 15
"""Rows up to which a whole run of EM is one call of a kernel; more are passed over block by block, on threads."""

NamedStart = tuple[str, Regressions]


@dataclass
class LineContest:
    """What the race needs of lines on a design; see `search.race.Contest`.

    Attributes
    ----------
    design : Design
    n_components : int
    rule : VarianceRule
    least_mass : float
        Smallest weight of a regular component, in rows.
    tol : float
    max_iter : int
    first_starts : sequence of (source, Regressions)
        Starts of a first round beside those of the pool (moments), in the design's units.
    """

    design: Design
    n_components: int
    rule: VarianceRule
    least_mass: float
    tol: float
    max_iter: int
    first_starts: Sequence[NamedStart] = ()

    @cached_property
    def whole(self) -> Sample:
        """All rows."""
        return Sample(self.design.x, self.design.y, self.design.weights)

    @property
    def sample_size(self) -> int:
        """Rows on which starts race where there are many; never more than one call of the kernel takes."""
        return min(max(1000, 20 * self.n_components * self.design.n_coefficients), IN_ONE_CALL)

    @property
    def fits_in_one_call(self) -> bool:
        """Whether the kernel takes all rows at once."""
        return not self.design.is_stream and len(self.design.y) <= IN_ONE_CALL

    @property
    def is_sampled(self) -> bool:
        return len(self.design.y) > 1.5 * self.sample_size

    @property
    def plan(self) -> Plan:
        return plan_of(self.n_components, self.is_sampled)

    @property
    def constant(self) -> float:
        return self.design.constant

    @property
    def note(self) -> str:
        return f", on {self.sample_size} of {len(self.design.y)} rows first" if self.is_sampled else ""

    @property
    def has_rule(self) -> bool:
        return not self.rule.common

    def sample(self, draws: np.random.Generator) -> Sample:
        return self.whole.subsample(draws, self.sample_size)

    def starts(self, rows: Sample, is_first: bool, draws: np.random.Generator) -> list[NamedStart]:
        first = list(self.first_starts) if is_first else []
        return first + pool(rows, self.n_components, self.plan.n_starts, draws)

    def perturbed(
        self, rows: Sample, bases: Sequence[Regressions], size: int, draws: np.random.Generator
    ) -> list[NamedStart]:
        least = self.least_mass * rows.total_weight / self.design.total_weight
        return [
            (PERTURBATION, replaced(rows, bases[int(draws.integers(len(bases)))], draws, least)) for _ in range(size)
        ]

    def run(
        self, rows: Sample, runs: list[Run[Regressions]], max_iter: int, tol: float, *, free: bool = False
    ) -> list[Run[Regressions]]:
        rule = replace(self.rule, max_sigma_ratio=np.inf) if free else self.rule
        return [self._run(rows, run, max_iter, tol, rule) for run in runs]

    def _run(
        self, rows: Sample, run: Run[Regressions], max_iter: int, tol: float, rule: VarianceRule
    ) -> Run[Regressions]:
        theta = run.theta.copy()
        if len(rows.y) > IN_ONE_CALL:
            family = RegressionFamily(self.n_components, rule, tolerance=tol)
            end = minimize(family, self.design.data, theta=theta, max_iter=max_iter)
            theta, objective, n_iter, converged = end.theta, end.objective, end.n_iter, end.converged
        else:
            objective, n_iter, converged = run_em(rows, theta, rule, max_iter, tol)
        return replace(
            run,
            theta=theta,
            objective=objective,
            n_iter=run.n_iter + n_iter,
            converged=converged,
            degenerate=self.degeneracy(theta),
            is_whole=run.is_whole and len(rows.y) == len(self.design.y) <= IN_ONE_CALL,
        )

    def degeneracy(self, theta: Regressions) -> str:
        """Why a solution does not count; empty where it does."""
        if not np.isfinite(theta.coef).all():
            return "its coefficients are no numbers"
        smallest, most = float(theta.weights.min()) * self.design.total_weight, self.rule.max_sigma_ratio
        reasons = []
        if smallest < self.least_mass:
            reasons.append(f"the smallest component has {smallest:.1f} rows (regular from {self.least_mass:.1f} on)")
        if theta.variances.min() <= self.rule.floor * (1 + 1e-6):
            reasons.append("a line runs through its rows exactly, so its noise is a floor")
        elif self.rule.is_active(theta.variances):
            reasons.append(f"the noise differs by a factor of {theta.sigma_ratio:.1f} (regular below {most:g})")
        if not reasons and has_twins(theta.coef, theta.variances):
            reasons.append(TWINS)
        return " and ".join(reasons)

    def held_back(self, run: Run[Regressions]) -> str:
        most = self.rule.max_sigma_ratio
        return of_ratio(most) if is_held_by_ratio(self, run, most) else ""

    def features(self, theta: Regressions) -> NDArray[np.float64]:
        return theta.features()

    def is_admissible(self, run: Run[Regressions]) -> bool:
        free = replace(self.rule, max_sigma_ratio=np.inf)
        smallest = float(run.theta.weights.min()) * self.design.total_weight
        return not free.is_active(run.theta.variances) and smallest >= self.design.x.shape[1] + 2.0


def run_em(
    rows: Sample,
    theta: Regressions,
    rule: VarianceRule,
    max_iter: int,
    tol: float,
    path: NDArray[np.float64] | None = None,
) -> tuple[float, int, bool]:
    """EM in one call, which moves `theta`: the objective, the number of steps, and whether `tol` a unit was reached."""
    return _kernels.regression_em(
        rows.x,
        rows.y,
        rows.kernel_weights,
        *rule.arguments,
        max_iter,
        tol * rows.total_weight,
        theta.weights,
        theta.coef,
        theta.variances,
        path,
    )
