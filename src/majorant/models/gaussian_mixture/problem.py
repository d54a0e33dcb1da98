"""What a search works on, and the ledger of what it has found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from majorant._progress import report_start
from majorant.data.chunks import Chunks
from majorant.engine.trace import Trace
from majorant.models.gaussian_mixture.coordinates import Coordinates, Frames
from majorant.models.gaussian_mixture.descent import Climb, climb, steps_of
from majorant.models.gaussian_mixture.missing_em import run_em_on_observed
from majorant.models.gaussian_mixture.regularity import LEAST_RATIO, Fault, Regularity, are_small, judge
from majorant.models.gaussian_mixture.starts import Views
from majorant.search.record import StartRecord
from majorant.solvers.covariance_types import COVARIANCES, CovarianceType
from majorant.solvers.gaussian import Array, Mixture
from majorant.solvers.gaussian_em import EmRun, run_em

LEAST_FLOOR = 1e-14
"""Floor under eigenvalues where none is asked for: what rounding leaves of the total variance."""


@dataclass(frozen=True)
class Problem:
    """Weighted points in memory, and the mixture that is sought.

    Attributes
    ----------
    points : ndarray of shape (n_points, n_features)
        float64.
    weights : ndarray of shape (n_points,)
        Their median is one, so that no rule depends on the scale of weights: their sum is the number of rows, if most
        points are one row each.
    frames : Frames
    n_components : int
    covariance_type : {"full", "tied", "diag", "spherical"}
    covariance_floor : float or None
        Smallest eigenvalue of a covariance, relative to the total one; None: chosen.
    noise : float
        Share of the total variance below which variance is rounding.
    tol : float
        What may be left to gain for each unit of weight.
    max_iter : int
    observed : Chunks or None
        The points before their missing entries were filled in, NaN where one is missing: what EM runs on.
    """

    points: Array
    weights: Array
    frames: Frames
    n_components: int
    covariance_type: CovarianceType
    covariance_floor: float | None
    noise: float
    tol: float
    max_iter: int
    observed: Chunks | None = None

    @property
    def own(self) -> Coordinates:
        """The coordinates in which EM of this covariance type does not depend on units."""
        return self.frames.of_type(self.covariance_type)

    @cached_property
    def total(self) -> float:
        return float(self.weights.sum())

    @property
    def is_hopeless(self) -> bool:
        """Whether there are too few rows for any regular solution."""
        k, rank = self.n_components, self.own.rank
        return k * COVARIANCES[self.covariance_type].least_size(k, rank, self.total) > self.total * (1 + 1e-9)

    @property
    def floor(self) -> float:
        return LEAST_RATIO if self.covariance_floor is None else max(self.covariance_floor, LEAST_FLOOR)

    @cached_property
    def whitened(self) -> Array:
        return self.frames.whitened.of(self.points)

    @cached_property
    def standardised(self) -> Array:
        return self.frames.standardised.of(self.points)

    def views(self, u: Array) -> Views:
        """The points as starts see them."""
        return Views(self.whitened, self.standardised, u, self.weights)

    def run_em(
        self, u: Array, coordinates: Coordinates, starts: Sequence[Mixture | NDArray[Any]], n_steps: int
    ) -> list[EmRun]:
        """Runs of EM on the points, which are `u` in these coordinates."""
        if self.observed is None:
            return run_em(u, self.weights, starts, self.covariance_type, self.floor, n_steps)
        return run_em_on_observed(self.observed, coordinates, starts, self.covariance_type, self.floor, n_steps)

    def fault(self, run: EmRun) -> Fault:
        """What is wrong with a run; on a floor of the total covariance a ratio to the one within is implied."""
        if self.covariance_floor is not None:
            return judge(run.mixture, run.floored, self.total).fault
        if run.floored.any():
            return Fault.FLOORED
        least = run.mixture.covariance.least_size(self.n_components, run.mixture.n_features, self.total)
        return Fault.SMALL if are_small(run.mixture.weights * self.total, least).any() else Fault.NONE

    def in_points(self, coordinates: Coordinates, run: EmRun) -> float:
        """The log-likelihood of a run in the units of the points."""
        return run.log_likelihood + coordinates.log_volume * self.total

    def climbed(
        self, u: Array, coordinates: Coordinates, start: Mixture, tol: float | None = None, n_steps: int | None = None
    ) -> Candidate:
        """A start followed until a pair of steps gains no more than `tol` for each unit of weight."""
        n_steps = 2 * self.max_iter if n_steps is None else n_steps
        tol = self.tol if tol is None else tol
        if self.observed is None:
            run = run_em(u, self.weights, [start], self.covariance_type, self.floor, n_steps, tol, accelerate=True)[0]
            last = self.run_em(u, coordinates, [run.mixture], 1)[0]
            values = (*run.log_likelihoods[1:].tolist(), last.log_likelihood)
            end = Climb(last.mixture, last.log_likelihood, last.floored, run.converged, values)
        else:
            step = steps_of(lambda mixture: self.run_em(u, coordinates, [mixture], 1)[0])
            end = climb(step, start, floor=self.floor, tol=tol * self.total, max_iter=max(n_steps // 2, 1))
        return self.candidate(coordinates, end, history(end))

    def candidate(self, coordinates: Coordinates, end: Climb, trace: Trace) -> Candidate:
        regularity = judge(end.mixture, end.floored, self.total)
        value = end.log_likelihood + coordinates.log_volume * self.total
        return Candidate(end, regularity, coordinates, value, trace)


def history(end: Climb) -> Trace:
    """Minus the log-likelihoods of a climb: EM's bounds touch."""
    return Trace([{"objective": -v, "bound": -v, "gap": 0.0, "exploring": 0.0} for v in end.log_likelihoods])


@dataclass(frozen=True)
class Candidate:
    """A solution that was followed to its end.

    Attributes
    ----------
    end : Climb
        In `coordinates`.
    regularity : Regularity
    coordinates : Coordinates
    log_likelihood : float
        In the units of the problem's points.
    trace : Trace
        Of minus the log-likelihood in `coordinates`.
    source : str
        What it was started from.
    """

    end: Climb
    regularity: Regularity
    coordinates: Coordinates
    log_likelihood: float
    trace: Trace
    source: str = ""

    @property
    def rank(self) -> tuple[bool, float]:
        """Smaller is better: a regular solution before any other, then the higher likelihood."""
        return self.regularity.fault is not Fault.NONE, -self.log_likelihood


@dataclass(frozen=True)
class Degenerate:
    """A solution that is not regular, where it was when it was seen; its log-likelihood is in units of the points."""

    mixture: Mixture
    coordinates: Coordinates
    log_likelihood: float
    fault: Fault


@dataclass
class Ledger:
    """The best solution, the best degenerate one, and where every run ended that was followed to its end.

    Attributes
    ----------
    unit : float
        Weight of one unit of the problem's weights.
    offset : float
        What to add to a log-likelihood, in the units of the weights of X, to have it in the units of X.
    verbose : int
    """

    unit: float = 1.0
    offset: float = 0.0
    verbose: int = 0
    best: Candidate | None = None
    best_degenerate: Degenerate | None = None
    regular: list[StartRecord] = field(default_factory=list)
    degenerate: list[StartRecord] = field(default_factory=list)
    n_raced: int = 0
    n_perturbed: int = 0

    def offer(self, candidate: Candidate, source: str) -> None:
        """Record a solution, and keep it if it is the best of its sort."""
        end, fault = candidate.end, candidate.regularity.fault
        state = "at its maximum" if end.converged else "at the iteration limit"
        value = candidate.log_likelihood * self.unit + self.offset
        number = len(self.regular) + len(self.degenerate) + 1
        report_start(number, source, value, state if fault is Fault.NONE else "degenerate", self.verbose)
        record = StartRecord(source, value, max(len(end.log_likelihoods), 1), end.converged)
        (self.degenerate if fault else self.regular).append(record)
        if fault:
            self.saw(Degenerate(end.mixture, candidate.coordinates, candidate.log_likelihood, fault))
        if self.best is None or candidate.rank < self.best.rank:
            self.best = candidate

    def saw(self, solution: Degenerate) -> None:
        """Remember the degenerate solution of highest likelihood."""
        if self.best_degenerate is None or solution.log_likelihood > self.best_degenerate.log_likelihood:
            self.best_degenerate = solution

    @property
    def winner(self) -> Candidate:
        assert self.best is not None
        return self.best

    @property
    def records(self) -> tuple[StartRecord, ...]:
        """The regular runs; where none is regular, those that could have been kept."""
        return tuple(self.regular or self.degenerate)
