"""Descent with the tightest bound, that is EM: accept or shorten steps, extrapolate, stop by the predicted gain.

Many independent runs are stepped side by side, for any density and law.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from majorant._progress import is_stopped
from majorant.engine.checkpoint import Entry
from majorant.engine.runs import n_runs, put, taken

Array = NDArray[np.float64]
Theta = TypeVar("Theta")

PLAIN_STEPS = 6
"""Number of steps before the first extrapolation, as the first ones say little about the slow directions."""
LONGEST_EXTRAPOLATION = 64.0
MOST_SHORTENINGS = 8
LEAST_SHARE = 0.1
"""Smallest factor of a count in one extrapolation, as EM cannot leave zero."""
SLOW_RATE = 0.99
"""Rate at which gains are supposed to decrease where one alone is known."""


@dataclass(frozen=True)
class Seen:
    """Objective and statistics of a batch of runs, from one pass over the data."""

    objective: Array  # (runs,): minus the log-likelihood (the free energy where beta is not 1), and any penalty
    statistics: Any  # sums over rows, linear in the responsibilities, that determine the M-step

    def __add__(self, other: Seen) -> Seen:
        return Seen(self.objective + other.objective, self.statistics + other.statistics)


class Problem(Protocol[Theta]):
    """The problem that a descent minimises.

    Attributes
    ----------
    total_weight : float
        Weight of all units; tolerances are per unit of weight.
    is_guarded : bool
        Whether steps that raise the objective are shortened; not needed for exact M-steps, which raise it by rounding
        only.
    """

    @property
    def total_weight(self) -> float: ...

    @property
    def is_guarded(self) -> bool: ...

    def seen(self, theta: Theta) -> Seen:
        """Make one pass over the data."""
        ...

    def moved(self, theta: Theta, seen: Seen, share: Array) -> Theta:
        """Take the M-step or, for Newton steps, a share of it (one number per run)."""
        ...

    def extrapolated(self, path: tuple[Theta, Theta, Theta], seen: tuple[Seen, Seen, Seen]) -> Theta | None:
        """Extrapolate two steps of EM; return None if the model has no coordinates for that."""
        ...


@dataclass(frozen=True)
class Ends(Generic[Theta]):
    """Result of a batch of runs."""

    theta: Theta
    seen: Seen  # objective and statistics at `theta`
    n_iter: NDArray[np.intp]  # (runs,): steps of EM
    converged: NDArray[np.bool_]  # (runs,): whether the predicted gain is within the tolerance
    paths: list[list[float]] = field(default_factory=list)  # objective of each run after every step

    @property
    def objective(self) -> Array:
        return self.seen.objective


def descend(
    problem: Problem[Theta],
    theta: Theta,  # initial parameters of the runs
    *,
    tol: float,  # predicted gain, per unit of weight, at which a run has converged
    max_iter: int,  # largest number of steps of EM of each run
    accelerate: bool = True,  # whether to extrapolate
    entry: Entry | None = None,  # where a checkpoint stores the progress of the runs
) -> Ends[Theta]:
    r"""Run EM until the predicted gain of every run is at most `tol` per unit of weight.

    Two successive gains :math:`g_1, g_2` decrease at the rate :math:`r = g_2 / g_1`, so the remaining gain is about
    :math:`g_2 r / (1 - r)`. After each pair of steps their squared extrapolation [1]_ is tried, and kept if the
    objective is lower.

    References
    ----------
    .. [1] R. Varadhan, C. Roland, "Simple and globally convergent methods for accelerating the convergence of any EM
       algorithm", Scandinavian Journal of Statistics, 2008.
    """
    n, limit, count = n_runs(theta), tol * problem.total_weight, 0
    active = np.arange(n)
    n_iter, converged = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=bool)
    paths: list[list[float]] = [[] for _ in range(n)]
    known = entry.state if entry is not None else None
    if known is not None:
        theta, active, count = known["theta"], known["active"], known["count"]
        n_iter, converged, paths = known["n_iter"], known["converged"], known["paths"]
    seen = problem.seen(theta)
    if entry is not None and known is not None:
        entry.check("objective", float(seen.objective.sum()))
    out, at_end = theta, seen
    theta, seen = taken(theta, active), taken(seen, active)
    while count < max_iter and len(active) and not is_stopped():
        path, passed = [theta], [seen]
        for _ in range(min(2, max_iter - count)):
            theta, seen = _step(problem, theta, seen)
            count += 1
            path.append(theta)
            passed.append(seen)
            for run, value in zip(active.tolist(), seen.objective.tolist(), strict=True):
                paths[run].append(value)
        done = _is_done(passed, limit)
        n_iter[active], converged[active] = count, done
        if PLAIN_STEPS <= count < max_iter and accelerate and not done.all():
            theta, seen = _beyond(problem, path, passed, ~done)
        out, at_end = put(out, active, theta), put(at_end, active, seen)
        keep = np.flatnonzero(~done)
        active, theta, seen = active[keep], taken(theta, keep), taken(seen, keep)
        if entry is not None:
            where = {"theta": out, "active": active, "count": count, "objective": float(at_end.objective.sum())}
            copies = {"n_iter": n_iter.copy(), "converged": converged.copy(), "paths": [list(p) for p in paths]}
            entry.keep({**where, **copies})
    return Ends(out, at_end, n_iter, converged, paths)


def _step(problem: Problem[Theta], theta: Theta, seen: Seen) -> tuple[Theta, Seen]:
    """Take one step of EM, shortened for runs whose objective would rise; a run that cannot improve is unchanged."""
    share = np.ones(len(seen.objective))
    new = problem.moved(theta, seen, share)
    after = problem.seen(new)
    if not problem.is_guarded and np.isfinite(after.objective).all():
        return new, after
    for _ in range(MOST_SHORTENINGS):
        bad = np.flatnonzero(_rises(after, seen))
        if not len(bad):
            return new, after
        share[bad] /= 3
        retried = problem.moved(taken(theta, bad), taken(seen, bad), share[bad])
        new, after = put(new, bad, retried), put(after, bad, problem.seen(retried))
    bad = np.flatnonzero(_rises(after, seen))
    return put(new, bad, taken(theta, bad)), put(after, bad, taken(seen, bad))


def _rises(after: Seen, before: Seen) -> NDArray[np.bool_]:
    """Return whether the objective of each run has risen by more than rounding, or is not finite."""
    slack = 1e-12 * (1 + np.abs(before.objective))
    return np.asarray(~(after.objective <= before.objective + slack))


def _is_done(passed: list[Seen], limit: float) -> NDArray[np.bool_]:
    """Return whether the predicted gain of each run, from the rate of its last two gains, is within a limit."""
    b, c = (seen.objective for seen in passed[-2:])
    second = np.abs(b - c)
    still = second <= 1e-14 * np.abs(c)
    if len(passed) < 3:
        return np.asarray((second * SLOW_RATE / (1 - SLOW_RATE) <= limit) | still)
    a = passed[0].objective
    first = np.abs(a - b)
    rate = np.divide(second, first, out=np.ones_like(first), where=first > 0)
    left = np.divide(second * rate, 1 - rate, out=np.full_like(first, np.inf), where=rate < 1)
    turns = ((a - b) * (b - c) <= 0) & (np.maximum(first, second) <= limit)  # up and down by rounding
    return np.asarray((left <= limit) | still | turns)


def _beyond(
    problem: Problem[Theta], path: list[Theta], passed: list[Seen], going: NDArray[np.bool_]
) -> tuple[Theta, Seen]:
    """Extrapolate two steps for runs that continue, where that lowers the objective."""
    theta, seen = path[2], passed[2]
    runs = np.flatnonzero(going)
    first, second, third = (taken(p, runs) for p in path)
    tried = problem.extrapolated((first, second, third), tuple(taken(s, runs) for s in passed))  # type: ignore[arg-type]
    if tried is None:
        return theta, seen
    after = problem.seen(tried)
    better = np.flatnonzero(after.objective < seen.objective[runs])
    return put(theta, runs[better], taken(tried, better)), put(seen, runs[better], taken(after, better))


def squared_extrapolation(first: Array, second: Array, third: Array) -> Array:
    """Extrapolate three points of each run, (runs, numbers), by SQUAREM's step length."""
    move, bend = second - first, (third - second) - (second - first)
    size = np.sqrt(np.sum(bend**2, axis=1))
    length = np.divide(np.sqrt(np.sum(move**2, axis=1)), size, out=np.ones(len(size)), where=size > 0)
    a = np.clip(length, 1.0, LONGEST_EXTRAPOLATION)[:, None]
    return np.asarray(first + 2 * a * move + a**2 * bend)


def further(first: Array, second: Array, third: Array, *, signed: bool = False) -> Array:
    """Extrapolate three batches of arrays; numbers that are not `signed` are counts, and stay positive."""
    flat = [a.reshape(len(a), -1) for a in (first, second, third)]
    out = squared_extrapolation(*flat)
    if not signed:
        out = np.where(flat[2] > 0, np.maximum(out, LEAST_SHARE * flat[2]), out)
    return out.reshape(third.shape)
