"""From units to the mixture that is kept: rounds of a race of mixed starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from majorant.engine.trace import Trace
from majorant.evidence.records import SAME_OPTIMUM, StartRecord
from majorant.models.regression_mixture.experts.em import Ends, Problem, run_em
from majorant.models.regression_mixture.experts.parameters import Experts, stacked
from majorant.models.regression_mixture.experts.starts import Starts
from majorant.models.regression_mixture.experts.units import Units
from majorant.models.regression_mixture.starts import ELEMENTAL, POOLED, SWAP, TRIMMED

MOST_ROUNDS, LEAST_ROUNDS = 12, 4
FEWEST_EVENTS = 1e-3
"""Information in some direction below which a component's predictor runs to infinity there."""


@dataclass(frozen=True)
class Run:
    """Where EM from one start has come to."""

    source: str
    start: Experts
    theta: Experts
    log_likelihood: float
    mass: NDArray[np.float64]
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class Fitted:
    """What was found, in the coordinates of the units.

    Attributes
    ----------
    best : Run
    records : tuple of StartRecord
        With log-likelihoods in the units of the fit.
    optima : tuple of Run
    is_regular : bool
    reason : str
    excluded : Run or None
    trace : Trace
    note : str
    """

    best: Run
    records: tuple[StartRecord, ...]
    optima: tuple[Run, ...]
    is_regular: bool
    reason: str = ""
    excluded: Run | None = None
    trace: Trace = field(default_factory=Trace)
    note: str = ""


@dataclass
class Race:
    """Rounds of races on some units."""

    units: Units
    problem: Problem
    k: int
    least_mass: float
    tol: float
    max_iter: int

    def irregularity(self, theta: Experts, mass: NDArray[np.float64]) -> str:
        """Why a solution does not count; empty where it does."""
        if not (np.isfinite(theta.coef).all() and np.isfinite(theta.dispersion).all()):
            return "its parameters are not finite"
        smallest = float(mass.min())
        if smallest < self.least_mass:
            return f"its smallest component has {smallest:.1f} units (regular from {self.least_mass:.1f} on)"
        if self.problem.response.has_dispersion:
            if theta.dispersion.min() <= self.problem.rule.floor * (1 + 1e-6):
                return "a component fits its rows exactly, so its dispersion is a floor"
            if self.problem.rule.is_active(theta.dispersion):
                return f"its noise differs by a factor of {theta.sigma_ratio:.1f}"
        elif self._is_separated(theta):
            return "the predictor of a component runs to infinity: its rows are separated, or all its counts are zero"
        return ""

    def _is_separated(self, theta: Experts) -> bool:
        seen = self.problem.seen(self.units, stacked([theta]))
        return bool(np.linalg.eigvalsh(seen.information[0])[:, 0].min() < FEWEST_EVENTS)

    def is_regular(self, run: Run) -> bool:
        return not self.irregularity(run.theta, run.mass)

    def go_on(self, runs: list[Run], max_iter: int, tol: float) -> list[Run]:
        if not runs:
            return []
        ends: Ends = run_em(self.units, self.problem, stacked([r.theta for r in runs]), max_iter, tol)
        return [
            replace(
                r,
                theta=ends.theta[i],
                log_likelihood=float(ends.log_likelihood[i]),
                mass=ends.mass[i],
                n_iter=r.n_iter + int(ends.n_iter[i]),
                converged=bool(ends.converged[i]),
            )
            for i, r in enumerate(runs)
        ]

    def same(self, value: float) -> float:
        return SAME_OPTIMUM * max(abs(value + self.units.constant), 1.0)

    def leading(self, runs: list[Run], size: int) -> list[Run]:
        order = sorted(range(len(runs)), key=lambda i: (not self.is_regular(runs[i]), -runs[i].log_likelihood, i))
        return [runs[i] for i in order[: max(size, 4)]]

    def distinct(self, runs: list[Run], most: int) -> list[Run]:
        kept: list[Run] = []
        for run in sorted(runs, key=lambda r: -r.log_likelihood):
            if len(kept) < most and all(
                abs(run.log_likelihood - o.log_likelihood) > self.same(run.log_likelihood)
                or run.theta.distance(o.theta, has_names=self.units.labels is not None) > 0.1
                for o in kept
            ):
                kept.append(run)
        return kept

    def named(self, source: str, batch: Experts) -> list[Run]:
        none = np.zeros(self.k)
        return [Run(source, batch[i], batch[i], -np.inf, none, 0, False) for i in range(len(batch.weights))]

    def find(self, draws: np.random.Generator) -> Fitted:
        starts = Starts(self.units, self.problem.response, self.k)
        size = min(4 * self.k * (self.k + 1), 64)
        finals: list[Run] = []
        irregular: list[Run] = []
        bank: list[Run] = []
        best, improved = -np.inf, 0
        for number in range(MOST_ROUNDS):
            if number % 2 == 0 or not bank:
                a, b = round(0.55 * size), round(0.35 * size)
                runs = self.named(TRIMMED, starts.trimmed(draws, a))
                runs += self.named(ELEMENTAL, starts.elemental(draws, b))
                runs += self.named(POOLED, starts.pooled(draws, size - a - b))
            else:
                runs = self.named(SWAP, starts.replaced(draws, [r.theta for r in bank], size, self.least_mass))
            runs = self.leading(self.go_on(runs, 15, 1e-7), size // 2)
            runs = self.leading(self.go_on(runs, 40, 1e-8), max(8, size // 4))
            ends = self.go_on(runs, self.max_iter, self.tol)
            for run in ends:
                (finals if self.is_regular(run) else irregular).append(run)
            bank = self.distinct(finals, 4)
            if bank and bank[0].log_likelihood > best + self.same(best if np.isfinite(best) else 1.0):
                best, improved = bank[0].log_likelihood, number
            if bank:
                hits = sum(r.log_likelihood >= best - self.same(best) for r in finals)
                if number >= 1 and improved == 0 and hits >= 0.75 * len(finals):
                    break
                if number >= LEAST_ROUNDS - 1 and hits >= 3 and number - improved >= LEAST_ROUNDS - 1:
                    break
        return self._found(finals, irregular, bank)

    def _found(self, finals: list[Run], irregular: list[Run], bank: list[Run]) -> Fitted:
        optima = bank or self.distinct(irregular, 4)
        best = optima[0]
        records = tuple(StartRecord(r.source, r.log_likelihood, r.n_iter, r.converged) for r in (finals or irregular))
        reason = self.irregularity(best.theta, best.mass)
        excluded = None
        if bank:
            better = [r for r in irregular if r.log_likelihood > best.log_likelihood + self.same(best.log_likelihood)]
            excluded = max(better, key=lambda r: r.log_likelihood, default=None)
        return Fitted(best, records, tuple(optima), bool(bank), reason, excluded, self.trace(best))

    def trace(self, run: Run) -> Trace:
        """The steps of the run that is kept."""
        ends = run_em(self.units, self.problem, stacked([run.start]), max(run.n_iter, 1), 0.0)
        values = [float(v[0]) for v in ends.path]
        return Trace([{"objective": -v, "bound": -v, "gap": 0.0, "exploring": 0.0} for v in values[1:]])


def fit_experts(
    units: Units,
    problem: Problem,
    n_components: int,
    least_mass: float,
    *,
    init: str | Experts,
    n_init: int,
    max_iter: int,
    tol: float,
    seed: int,
) -> Fitted:
    """Fit by the race, or from starts of one kind where the user chose one."""
    draws = np.random.default_rng(seed)
    race = Race(units, problem, n_components, least_mass, tol, max_iter)
    if init == "auto" and n_components > 1 and not units.is_exact:
        return race.find(draws)
    if isinstance(init, Experts):
        runs = race.named("given parameters", stacked([init]))
    else:
        starts = Starts(units, problem.response, n_components)
        runs = race.named(ELEMENTAL, starts.elemental(draws, n_init if n_components > 1 else 1))
    ends = race.go_on(runs, max_iter, tol)
    regular = [r for r in ends if race.is_regular(r)]
    return race._found(regular, [r for r in ends if not race.is_regular(r)], race.distinct(regular, 4))


def given_start(values: Mapping[str, NDArray[np.float64]], units: Units, k: int) -> Experts:
    """The start that the user gave, in the coordinates of the units."""
    c = units.coordinates
    levels = values["intercept"] + np.einsum("kj,j->k", values["coef"], c.origin)
    gating = None if units.gating is None else np.zeros((k, units.gating.shape[1]))
    if gating is not None:
        gating[:, 0] = np.log(values["weights"]) - np.log(values["weights"][0])
    weights = values["weights"] / values["weights"].sum()
    coef = c.of_coefficients(values["coef"], levels)
    if units.n_shared:
        coef[:, -units.n_shared :] = coef[:, -units.n_shared :].mean(axis=0)
    return Experts(weights, coef, (values["scale"] / c.sigma) ** 2, gating)
