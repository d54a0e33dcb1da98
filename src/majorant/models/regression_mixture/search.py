"""How are the lines found? Rounds of a race of mixed starts, until the best optimum keeps coming back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant._progress import end_of_starts, report_start
from majorant.engine.loop import minimize
from majorant.evidence.records import SAME_OPTIMUM, StartRecord
from majorant.models.regression_mixture.design import Design
from majorant.models.regression_mixture.family import RegressionFamily, VarianceRule
from majorant.models.regression_mixture.parameters import Regressions
from majorant.models.regression_mixture.starts import SWAP, Sample, pool, replaced

MOST_ROUNDS, LEAST_ROUNDS = 12, 4
STARTS_ON_A_SAMPLE, MOST_STARTS = 32, 64
"""Starts of a round where starts race on a sample of the rows, and at most where they race on all."""

IN_ONE_CALL = 1 << 15
"""Rows up to which a whole run of EM is one call of a kernel; more are passed over block by block, on threads."""

NamedStart = tuple[str, Regressions]


@dataclass(frozen=True)
class Run:
    """Where EM from one start has come to.

    Attributes
    ----------
    source : str
    start, theta : Regressions
        Where it began and where it is.
    objective : float
        Minus the log-likelihood, in the design's units.
    n_iter : int
    converged : bool
    met : tuple of (source, n_iter)
        Runs that came to the same place and were not continued.
    is_whole : bool
        Whether every step was made on all rows, by the kernel.
    """

    source: str
    start: Regressions
    theta: Regressions
    objective: float
    n_iter: int
    converged: bool
    met: tuple[tuple[str, int], ...] = ()
    is_whole: bool = True


@dataclass(frozen=True)
class Excluded:
    """A better solution that the regularity rule leaves out.

    Attributes
    ----------
    theta : Regressions
    objective : float
    sigma_ratio : float
        Largest over smallest standard deviation of its noise.
    smallest : float
        Weight of its smallest component, in rows.
    """

    theta: Regressions
    objective: float
    sigma_ratio: float
    smallest: float


@dataclass(frozen=True)
class Found:
    """What a search found, in the design's units.

    Attributes
    ----------
    best : Run
    is_regular : bool
    records : tuple of StartRecord
    optima : tuple of Run
        The distinct regular ones, best first.
    excluded : Excluded or None
    note : str
    """

    best: Run
    is_regular: bool
    records: tuple[StartRecord, ...]
    optima: tuple[Run, ...]
    excluded: Excluded | None
    note: str


@dataclass
class Search:
    """Rounds of races on a design.

    Attributes
    ----------
    design : Design
    n_components : int
    rule : VarianceRule
    least_mass : float
        Smallest weight of a regular component, in rows.
    tol : float
        What is left to gain in log-likelihood, per unit of weight, at convergence.
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
    verbose: int = 0
    first_starts: Sequence[NamedStart] = ()
    _finals: list[Run] = field(default_factory=list)
    _irregular: list[Run] = field(default_factory=list)
    _bank: list[Run] = field(default_factory=list)
    _free: list[Run] = field(default_factory=list)

    @property
    def sample_size(self) -> int:
        """Rows on which starts race where there are many; never more than one call of the kernel takes."""
        return min(max(1000, 20 * self.n_components * self.design.n_coefficients), IN_ONE_CALL)

    @property
    def is_large(self) -> bool:
        """Whether starts race on samples of the rows."""
        return len(self.design.y) > 1.5 * self.sample_size

    def find(self, draws: np.random.Generator) -> Found:
        """Race until the best regular optimum has come back often enough."""
        whole = Sample(self.design.x, self.design.y, self.design.weights)
        is_large, size = self.is_large, self.sample_size
        k = self.n_components
        n_starts = STARTS_ON_A_SAMPLE if is_large else min(4 * k * (k + 1), MOST_STARTS)
        best, improved, n_started = np.inf, 0, 0
        for number in range(MOST_ROUNDS):
            rows = whole.subsample(draws, size) if is_large else whole
            starts = self._starts(rows, number, n_starts, draws)
            n_started += len(starts)
            ends = self._race(rows, starts, whole if is_large else None)
            self._keep(ends)
            if number == 0 and self._bank and not self.rule.common:
                self._left_out(rows, draws)
            if self._bank and self._bank[0].objective < best - self._same(best):
                best, improved = self._bank[0].objective, number
            if self._is_enough(number, improved):
                break
        end_of_starts(self.verbose)
        return self._found(n_started, whole if is_large else None, size)

    def run(
        self, rows: Sample, start: NamedStart | Run, max_iter: int, tol: float, rule: VarianceRule | None = None
    ) -> Run:
        """EM on some rows, from a start or on from where a run is."""
        source, begin, theta, n_before, met = (
            (start.source, start.start, start.theta.copy(), start.n_iter, start.met)
            if isinstance(start, Run)
            else (start[0], start[1], start[1].copy(), 0, ())
        )
        rule = rule or self.rule
        if len(rows.y) > IN_ONE_CALL:
            family = RegressionFamily(self.n_components, rule, tolerance=tol)
            end = minimize(family, self.design.data, theta=theta, max_iter=max_iter)
            theta, objective, n_iter, converged = end.theta, end.objective, end.n_iter, end.converged
        else:
            objective, n_iter, converged = run_em(rows, theta, rule, max_iter, tol)
        is_whole = n_before == 0 or (isinstance(start, Run) and start.is_whole)
        is_whole = is_whole and len(rows.y) == len(self.design.y) <= IN_ONE_CALL
        return Run(source, begin, theta, objective, n_before + n_iter, converged, met, is_whole)

    def is_regular(self, theta: Regressions) -> bool:
        """Whether no bound holds the variances back and every component is large enough."""
        if not np.isfinite(theta.coef).all():
            return False
        smallest = float(theta.weights.min()) * self.design.total_weight
        return not self.rule.is_active(theta.variances) and smallest >= self.least_mass

    def _is_held_back(self, run: Run) -> bool:
        """Whether a solution near the largest ratio of variances would go beyond it if it could."""
        if self.rule.common or run.theta.sigma_ratio < 0.95 * self.rule.max_sigma_ratio:
            return False
        free = replace(self.rule, max_sigma_ratio=np.inf)
        rows = Sample(self.design.x, self.design.y, self.design.weights)
        end = self.run(rows, run, 200, 0.0, free)  # the way out may be flat: no tolerance
        return end.theta.sigma_ratio > self.rule.max_sigma_ratio

    def _same(self, objective: float) -> float:
        """Objectives closer than this are the same optimum."""
        shown = abs(objective + self.design.constant) if np.isfinite(objective) else 1.0
        return SAME_OPTIMUM * max(shown, 1.0)

    def _starts(self, rows: Sample, number: int, size: int, draws: np.random.Generator) -> list[NamedStart]:
        if number % 2 == 0 or not self._bank:
            first = list(self.first_starts) if number == 0 else []
            return first + pool(rows, self.n_components, size, draws)
        return self._replaced(rows, size, draws)

    def _replaced(self, rows: Sample, size: int, draws: np.random.Generator) -> list[NamedStart]:
        """Starts that keep all but one line of one of the best optima so far."""
        least = self.least_mass * rows.total_weight / self.design.total_weight
        return [
            (SWAP, replaced(rows, self._bank[int(draws.integers(len(self._bank)))].theta, draws, least))
            for _ in range(size)
        ]

    def _race(self, rows: Sample, starts: list[NamedStart], whole: Sample | None) -> list[Run]:
        """Successive halving: a few steps for all, more for the best, to the end for a quarter."""
        runs = [self.run(rows, start, 15, 1e-7) for start in starts]
        runs = [self.run(rows, run, 40, 1e-8) for run in self._leading(_merged(runs), len(starts) // 3)]
        runs = self._leading(_merged(runs), len(starts) // 8)
        if whole is None:
            return self._finished(rows, runs)
        runs = [self.run(rows, run, self.max_iter, 1e-7) for run in runs]
        return [
            self.run(whole, run, self.max_iter, self.tol) for run in self._distinct(self._leading(runs, len(runs)), 3)
        ]

    def _finished(self, rows: Sample, runs: list[Run]) -> list[Run]:
        """Runs at their end, but for those that fall behind: a run gains less in future than it did of late."""
        ends = list[Run]()
        for run in runs:
            end = self.run(rows, run, 100, self.tol)
            best = min((other.objective for other in ends if self.is_regular(other.theta)), default=np.inf)
            if not end.converged and end.objective - (run.objective - end.objective) < best:
                end = self.run(rows, end, self.max_iter, self.tol)
            if end.converged:
                ends.append(end)
        return ends

    def _leading(self, runs: list[Run], size: int) -> list[Run]:
        """The best runs, regular ones first."""
        order = sorted(range(len(runs)), key=lambda i: (not self.is_regular(runs[i].theta), runs[i].objective, i))
        return [runs[i] for i in order[: max(size, 4)]]

    def _distinct(self, runs: list[Run], most: int) -> list[Run]:
        """The first of each optimum, in the order given."""
        kept: list[Run] = []
        for run in runs:
            if len(kept) < most and all(
                abs(run.objective - other.objective) > self._same(run.objective)
                or run.theta.distance(other.theta) > 0.1
                for other in kept
            ):
                kept.append(run)
        return kept

    def _keep(self, ends: list[Run]) -> None:
        for run in ends:
            regular = self.is_regular(run.theta) and not self._is_held_back(run)
            (self._finals if regular else self._irregular).append(run)
            result = "tolerance reached" if run.converged else "iteration limit reached"
            shown = -run.objective - self.design.constant
            report_start(
                len(self._finals) + len(self._irregular),
                run.source,
                shown,
                result if regular else f"{result}, left out as irregular",
                self.verbose,
            )
        self._bank = self._distinct(sorted(self._finals, key=lambda run: run.objective), 4)

    def _is_enough(self, number: int, improved: int) -> bool:
        if not self._bank:
            return False
        best = self._bank[0].objective
        n_finals = sum(1 + len(run.met) for run in self._finals)
        hits = sum(1 + len(run.met) for run in self._finals if run.objective <= best + self._same(best))
        if number >= 1 and improved == 0 and hits >= 0.75 * n_finals:
            return True
        return number >= LEAST_ROUNDS - 1 and hits >= 3 and number - improved >= LEAST_ROUNDS - 1

    def _found(self, n_started: int, whole: Sample | None, size: int) -> Found:
        is_regular = bool(self._bank)
        candidates = self._bank if is_regular else self._distinct(sorted(self._irregular, key=lambda r: r.objective), 4)
        best = candidates[0]
        finals = self._finals if is_regular else self._irregular
        records = tuple(
            StartRecord(source, run.objective, n_iter, run.converged)
            for run in finals
            for source, n_iter in ((run.source, run.n_iter), *run.met)
        )
        note = f"{n_started} starts raced; those that led went on to the end, or until they met another one"
        if whole is not None:
            note += f", on {size} of {len(whole.y)} rows first"
        excluded = self._excluded(best, whole or Sample(self.design.x, self.design.y, self.design.weights))
        return Found(best, is_regular, records, tuple(candidates), excluded, note + ".")

    def _left_out(self, rows: Sample, draws: np.random.Generator) -> None:
        """What lines replaced by narrow ones reach where no ratio of variances is imposed: there may be a maximum."""
        free = replace(self.rule, max_sigma_ratio=np.inf)
        starts = self._replaced(rows, min(16 * self.n_components, MOST_STARTS), draws)
        runs = [self.run(rows, start, 15, 1e-7, free) for start in starts]
        runs = [self.run(rows, run, 40, 1e-8, free) for run in self._admissible(runs)[:8]]
        for run in self._distinct(self._admissible(runs), 4):
            end = self.run(rows, run, self.max_iter, self.tol, free)
            if self._admissible([end]):
                self._free.append(end)

    def _admissible(self, runs: list[Run]) -> list[Run]:
        """Runs that the rule leaves out, best first, but for those where the likelihood has no maximum."""
        free = replace(self.rule, max_sigma_ratio=np.inf)
        least = self.design.x.shape[1] + 2.0
        kept = [
            run
            for run in runs
            if not self.is_regular(run.theta)
            and not free.is_active(run.theta.variances)
            and run.theta.weights.min() * self.design.total_weight >= least
        ]
        return sorted(kept, key=lambda run: run.objective)

    def _excluded(self, best: Run, whole: Sample) -> Excluded | None:
        """The best solution that the rule leaves out, if it is better than the best one.

        Those that the bound on the variances held back are let go first: their maximum, if any, lies beyond it.
        """
        free = replace(self.rule, max_sigma_ratio=np.inf)
        held = [] if self.rule.common else self._distinct(sorted(self._irregular, key=lambda run: run.objective), 2)
        ends = [self.run(whole, run, self.max_iter, self.tol, free) for run in [*self._free, *held]]
        for end in self._admissible(ends):
            if end.objective < best.objective - self._same(best.objective):
                mass = float(end.theta.weights.min()) * self.design.total_weight
                return Excluded(end.theta, end.objective, end.theta.sigma_ratio, mass)
        return None


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


def _merged(runs: list[Run]) -> list[Run]:
    """Runs that have come to the same place become one, the best of them: its end is theirs."""
    order = sorted(range(len(runs)), key=lambda i: runs[i].objective)
    shapes = [np.concatenate([np.sort(np.log(run.theta.variances)), np.sort(run.theta.weights)]) for run in runs]
    kept: list[int] = []
    met: dict[int, list[tuple[str, int]]] = {}
    for i in order:
        near = [
            j
            for j in kept[-4:]
            if runs[i].objective - runs[j].objective <= 1e-3 and np.abs(shapes[i] - shapes[j]).max() <= 1e-2
        ]
        if near:
            met[near[0]] += [(runs[i].source, runs[i].n_iter), *runs[i].met]
        else:
            kept.append(i)
            met[i] = list(runs[i].met)
    return [replace(runs[i], met=tuple(met[i])) for i in kept]
