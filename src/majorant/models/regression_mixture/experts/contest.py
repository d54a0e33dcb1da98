"""The race of general mixtures: starts, runs of EM side by side, which solutions count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from majorant.models.regression_mixture.experts.em import Ends, Problem, run_em
from majorant.models.regression_mixture.experts.parameters import Experts, stacked
from majorant.models.regression_mixture.experts.starts import Starts
from majorant.models.regression_mixture.experts.statistics import Statistics
from majorant.models.regression_mixture.experts.streams import AnyUnits
from majorant.models.regression_mixture.experts.units import Units
from majorant.models.regression_mixture.parameters import has_twins
from majorant.models.regression_mixture.starts import (
    ELEMENTAL,
    POOLED,
    TRIMMED,
    is_held_by_ratio,
    kinds_of_starts,
    plan_of,
)
from majorant.models.regression_mixture.words import EXACT_LINE, SEPARATED, TWINS, of_ratio
from majorant.search.effort import Plan
from majorant.search.race import Run
from majorant.search.record import PERTURBATION

FEWEST_EVENTS = 1e-3
"""Information in some direction, in events, below which a component's predictor runs to infinity there."""

FEW_EVENTS = 1.0
"""Below it one looks where the predictor is heading."""


@dataclass
class ExpertContest:
    """What the race needs of a general mixture; see `search.race.Contest`.

    Attributes
    ----------
    units : Units
    problem : Problem
    n_components : int
    least_mass : float
        Smallest weight of a regular component, in units of average weight.
    tol : float
    max_iter : int
    """

    units: AnyUnits
    problem: Problem
    n_components: int
    least_mass: float
    tol: float
    max_iter: int

    @property
    def whole(self) -> AnyUnits:
        return self.units

    @cached_property
    def sample_size(self) -> int:
        """Units on which starts race where there are many."""
        return max(1000, 20 * self.n_components * self.units.n_coefficients)

    @property
    def is_sampled(self) -> bool:
        return self.units.n_units > 1.5 * self.sample_size

    @property
    def plan(self) -> Plan:
        return plan_of(self.n_components, self.is_sampled)

    @property
    def constant(self) -> float:
        return -self.units.constant * (1 - self.problem.trim)

    @property
    def note(self) -> str:
        return f", on {self.sample_size} of {self.units.n_units} units first" if self.is_sampled else ""

    @property
    def has_rule(self) -> bool:
        return self.problem.response.has_dispersion and not self.problem.rule.common

    def sample(self, draws: np.random.Generator) -> Units:
        return self.units.subsample(draws, self.sample_size)

    def starts(self, rows: Units, is_first: bool, draws: np.random.Generator) -> list[tuple[str, Experts]]:
        starts = Starts(rows, self.problem.response, self.n_components)
        n_trimmed, n_elemental, n_pooled = kinds_of_starts(self.plan.n_starts)
        return [
            *_named(TRIMMED, starts.trimmed(draws, n_trimmed)),
            *_named(ELEMENTAL, starts.elemental(draws, n_elemental)),
            *_named(POOLED, starts.pooled(draws, n_pooled)),
        ]

    def perturbed(
        self, rows: Units, bases: Sequence[Experts], size: int, draws: np.random.Generator
    ) -> list[tuple[str, Experts]]:
        starts = Starts(rows, self.problem.response, self.n_components)
        least = self.least_mass * rows.total_weight / self.units.total_weight
        return _named(PERTURBATION, starts.replaced(draws, bases, size, least))

    def run(
        self, rows: AnyUnits, runs: list[Run[Experts]], max_iter: int, tol: float, *, free: bool = False
    ) -> list[Run[Experts]]:
        if not runs:
            return []
        rule = self.problem.rule
        problem = replace(self.problem, rule=replace(rule, max_sigma_ratio=np.inf)) if free else self.problem
        ends: Ends = run_em(rows, problem, stacked([run.theta for run in runs]), max_iter, tol)
        is_whole = rows is self.units
        return [
            replace(
                run,
                theta=ends.theta[i],
                objective=-float(ends.seen.log_likelihood[i]),
                n_iter=run.n_iter + int(ends.n_iter[i]),
                converged=bool(ends.converged[i]),
                degenerate=self.degeneracy(ends.theta[i], ends.seen[i]),
                is_whole=run.is_whole and is_whole,
                path=(*run.path, *(-value for value in ends.paths[i])) if is_whole else (),
            )
            for i, run in enumerate(runs)
        ]

    def degeneracy(self, theta: Experts, seen: Statistics) -> str:
        """Why a solution does not count; empty where it does."""
        rule, response = self.problem.rule, self.problem.response
        if not (np.isfinite(theta.coef).all() and np.isfinite(seen.log_likelihood)):
            return "its coefficients are no numbers"
        if self.units.is_exact:
            return EXACT_LINE
        smallest = self._smallest(theta)
        if smallest < self.least_mass:
            return f"the smallest component has {smallest:.1f} units (regular from {self.least_mass:.1f} on)"
        if has_twins(theta.coef, theta.dispersion):
            return TWINS
        if not response.has_dispersion:
            return SEPARATED if np.linalg.eigvalsh(seen.information).min() < FEWEST_EVENTS else ""
        if theta.dispersion.min() <= max(rule.floor * (1 + 1e-6), response.least_dispersion):
            return "a component fits its rows exactly, so its dispersion is a floor"
        if rule.is_active(theta.dispersion):
            most = rule.max_sigma_ratio
            return f"the noise differs by a factor of {theta.sigma_ratio:.1f} (regular below {most:g})"
        return ""

    def _smallest(self, theta: Experts) -> float:
        """Units of the smallest component."""
        return float(theta.weights.min()) * self.units.total_weight * (1 - self.problem.trim)

    def held_back(self, run: Run[Experts]) -> str:
        if self.problem.response.has_dispersion:
            most = self.problem.rule.max_sigma_ratio
            return of_ratio(most) if is_held_by_ratio(self, run, most) else ""
        seen = self.problem.seen(self.units, stacked([run.theta]))
        if np.linalg.eigvalsh(seen.information).min() > FEW_EVENTS:
            return ""
        return self.run(self.units, [run], 200, 0.0)[0].degenerate

    def features(self, theta: Experts) -> NDArray[np.float64]:
        return theta.features()

    def is_admissible(self, run: Run[Experts]) -> bool:
        least = (self.units.n_coefficients + 2.0) * self.units.n_units / self.units.n_rows
        if not self.problem.response.has_dispersion:
            return bool(np.isfinite(run.objective))
        on_floor = run.theta.dispersion.min() <= self.problem.rule.floor * (1 + 1e-6)
        return not bool(on_floor) and self._smallest(run.theta) >= least


def _named(source: str, batch: Experts) -> list[tuple[str, Experts]]:
    return [(source, batch[i]) for i in range(len(batch.weights))]
