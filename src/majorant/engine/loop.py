"""Generalized majorization-minimization: one loop for every latent-variable model."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from majorant._progress import is_stopped, kept_when_stopped
from majorant._validation import check_integer
from majorant.data.chunks import Block, Chunks
from majorant.engine.checkpoint import Entry, entered
from majorant.engine.latents import entropies, tightest
from majorant.engine.policies import Tightest
from majorant.engine.prices import spending_price
from majorant.engine.problem import Bound, Family, FirstLatent, Policy, Sweep, Theta, View
from majorant.engine.trace import Trace

HEAT = 0.1
"""Inverse temperature of a hot first bound, relative to that at which latent values become uncertain."""


class BoundError(ArithmeticError):
    """Error of a family whose bound rises in its M-step or is below the objective."""


@dataclass(frozen=True)
class Solution(Generic[Theta]):
    """Result of the loop.

    Attributes
    ----------
    theta
        The parameters of lowest objective.
    objective : float
        ``F(theta)``.
    n_iter : int
        Number of bounds minimised on the way to `theta`, the rows of `trace`.
    n_passes : int
        Number of passes over the data, including those of other descents, of the policy and of inner solvers.
    converged : bool
        Whether the tolerance was reached.
    result : str
        How the loop ended, as a sentence.
    trace : Trace
        One row per iteration: the exploration, then the descent that led to `theta`.
    """

    theta: Theta
    objective: float
    n_iter: int
    n_passes: int
    converged: bool
    result: str
    trace: Trace


@dataclass
class _Run(Generic[Theta]):
    """State of a fit: family, data, policy, number of draws and trace."""

    family: Family[Theta]
    data: Chunks
    policy: Policy
    seed: int
    callback: Callable[[Theta], None] | None
    draw: int = 0
    first_price: float = 1.0
    trace: Trace = field(default_factory=Trace)

    def sweep(self, theta: Theta, price: float = np.inf, *, first: bool = False) -> Sweep:
        """Make one pass over the data; return the objective, the tightest bound and, at a finite price, a proposal.

        `first` tells the policy that the tightest bound is the first one of an exploration, which it may keep.
        """
        family, fused = self.family, getattr(self.family, "tight_pass", None)
        draws = np.isfinite(price)

        def visit(block: Block) -> Sweep:
            if not draws and not first and fused is not None:
                free, tight = fused(theta, block)
                return Sweep(free, tight, tight)
            energies = family.energies(theta, block)
            free_energies, q = tightest(energies, family.beta)
            view = View(block, energies, free_energies, q, family.beta, self.seed, self.draw, self.first_price)
            tight = drawn = view.bound(family, theta, q)
            if first:
                self.policy.keep(block, q)
            if draws:
                proposed = self.policy.propose(view, price)
                self.policy.keep(block, proposed)
                drawn = view.bound(family, theta, proposed)
            return Sweep(block.total(free_energies), tight, drawn)

        return self.data.map_sum(visit)

    def excesses(self, theta: Theta, prices: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the excess of the policy's proposal at each price, by one pass."""
        family = self.family

        def visit(block: Block) -> NDArray[np.float64]:
            energies = family.energies(theta, block)
            free, q = tightest(energies, family.beta)
            view = View(block, energies, free, q, family.beta, self.seed, self.draw, self.first_price)
            return np.array([view.excess(self.policy.propose(view, float(price))) for price in prices])

        return self.data.map_sum(visit)

    def objective(self, theta: Theta, seen: Sweep) -> float:
        value = self.family.penalty(theta) + seen.free
        if not np.isfinite(value):
            raise FloatingPointError(
                f"the objective is {value}: the data hold NaN or infinity, or are too large to be squared"
            )
        return value

    def step(self, bound: Bound, theta: Theta | None, ceiling: float) -> tuple[Theta, float]:
        """Minimise a bound, and check that its value is not above `ceiling`, its value before."""
        new, value = self.family.solve(bound.statistics, theta, self.data)
        b = value - bound.entropy
        if b > ceiling + self.slack(b, ceiling):
            raise BoundError(f"the bound rose from {ceiling!r} to {b!r}: solve() must minimise it")
        if self.callback is not None:
            self.callback(new)
        return new, b

    def gap(self, b: float, objective: float) -> float:
        if not objective <= b + self.slack(b, objective):  # also true of NaN
            raise BoundError(
                f"the objective {objective!r} lies above its bound {b!r}: energies contradict statistics, or the rows "
                "are not the same in every pass"
            )
        return b - objective

    def slack(self, b: float, other: float) -> float:
        """Return a bound on rounding errors: relative to the numbers compared, plus the family's `slack`."""
        if not np.isfinite(other):
            return np.inf
        return 1e-9 * (abs(b) + abs(other)) + float(getattr(self.family, "slack", 0.0))


def minimize(
    family: Family[Theta],
    data: Chunks,
    policy: Policy | None = None,
    *,
    theta: Theta | None = None,
    latent: FirstLatent | None = None,
    heat: float | None = None,
    tol: float = 1e-7,
    explore_tol: float = 1e-3,
    max_iter: int = 2000,
    n_polish: int = 3,
    seed: int = 0,
    callback: Callable[[Theta], None] | None = None,
) -> Solution[Theta]:
    r"""Minimise a family's objective by a sequence of valid bounds.

    .. math::
        v_0 &= F(\theta_0) \\
        \text{choose } & b_t \text{ with } b_t(\theta_{t-1}) \le v_{t-1} \\
        \theta_t &= \arg\min_\theta b_t(\theta) \\
        v_t &= F(\theta_t) + (1 - \eta)\,(b_t(\theta_t) - F(\theta_t))

    The policy alone chooses the bounds. A proposal whose excess over the objective is larger than the budget
    :math:`v_t - F(\theta_t)` is blended with the tightest bound (the excess of a blend is linear), so that it fits: one
    pass over the data per iteration, for any policy, and two more at the start, which find the price at which the first
    proposal spends its budget. Exploration ends when the gap has shrunk to `explore_tol` of
    the largest one; then the lowest iterates seen are polished with the tightest bound.

    Parameters
    ----------
    family : Family
        The model.
    data : Chunks
        The data.
    policy : Policy, default=Tightest()
        Policy that chooses bounds.
    theta : object, optional
        Parameters to start from: the first bound touches the objective there (or is hot, see `heat`).
    latent : callable, optional
        Latent values that define the first bound, as a function ``block -> latent``. Exactly one of `theta` and
        `latent` must be given.
    heat : float, optional
        Inverse temperature of a hot first bound from `theta`: a fraction of beta or, for hard latents, of one over the
        mean regret of the second-best state; smaller is hotter, but 0 means no hot bound. By default 0.1 if the policy
        asks for one (``hot_start``; any policy with hard latents unless it declines), otherwise none.
    tol : float, default=1e-7
        Stop when the relative decrease of the objective is below this (unless the family decides by ``settled``).
    explore_tol : float, default=1e-3
        Stop exploring at this fraction of the largest gap.
    max_iter : int, default=2000
        Largest number of iterations of the exploration, and of each descent.
    n_polish : int, default=3
        Number of the lowest distinct iterates from which descents start after exploring.
    seed : int, default=0
        Seed of the policy's noise.
    callback : callable, optional
        Called with the parameters after every step.

    Returns
    -------
    Solution

    Raises
    ------
    BoundError
        If the family's ``solve`` raises its bound, or the objective lies above a bound.
    FloatingPointError
        If the objective is not finite.
    ValueError, TypeError
        If `max_iter` or `seed` is out of range, or not exactly one of `theta` and `latent` is given.

    References
    ----------
    .. [1] S. N. Parizi, K. He, S. Sclaroff, P. Felzenszwalb, "Generalized Majorization-Minimization", algorithm 1.

    Examples
    --------
    See ``docs/writing_a_family.md`` for a user's own family in 40 lines.
    """
    check_integer("max_iter", max_iter, low=1)
    check_integer("seed", seed, low=0)
    if (theta is None) == (latent is None):
        raise ValueError("give exactly one of theta (parameters) and latent (a function from a block to latent values)")
    chosen: Policy = Tightest() if policy is None else policy
    run = _Run(family, copy(data), chosen, seed, callback)  # with its own count of passes
    if chosen.eta >= 1:
        first = None if latent is None else _first_bound(run, latent)
        end = _descend(run, theta, first, tol, max_iter)
        for row in end.rows:
            run.trace.add(**row)
        result = end.result
    else:
        found, largest_gap, finished = _explore(run, theta, latent, heat, explore_tol, max_iter)
        ends = [_descend(run, candidate, None, tol, max_iter) for _, candidate in found[: max(n_polish, 1)]]
        end = min(ends, key=lambda e: e.objective)
        for row in end.rows:
            run.trace.add(**row)
        result = end.result
        if largest_gap <= run.slack(end.objective, end.objective):
            result = f"nothing to explore: the first bound touches; {result}"
        elif not finished:
            result = f"iteration limit of {max_iter} reached while exploring; {result}"
    passes = run.data.n_passes - data.n_passes
    return Solution(end.theta, end.objective, len(run.trace), passes, end.converged, result, run.trace)


@dataclass(frozen=True)
class _Descent(Generic[Theta]):
    theta: Theta
    objective: float
    converged: bool
    result: str
    rows: list[dict[str, float]]


@dataclass
class _Place(Generic[Theta]):
    """State of a descent: `theta` and its tightest bound, or a given first bound."""

    theta: Theta | None
    bound: Bound
    objective: float
    touches: bool
    best: Theta | None
    lowest: float
    rows: list[dict[str, float]]


def _descend(run: _Run[Theta], theta: Theta | None, bound: Bound | None, tol: float, max_iter: int) -> _Descent[Theta]:
    """Minimise tightest bounds, from parameters or from a first bound, until convergence."""
    family, n, passes = run.family, run.data.n_units, run.data.n_passes
    settled = getattr(family, "settled", None)
    start = theta if bound is None else bound.statistics
    entry = entered(loop="descent", start=start, rows=n, tol=tol, max_iter=max_iter)
    ended, stopped = "", False
    if entry is not None and entry.state is not None:
        at, ended, stopped = _returned(run, entry)
    elif bound is None:
        assert theta is not None
        seen = run.sweep(theta)
        objective = run.objective(theta, seen)
        at = _Place(theta, seen.tight, objective, True, theta, objective, [])
    else:
        at = _Place(theta, bound, np.inf, False, theta, np.inf, [])
    with kept_when_stopped(lambda: at.lowest < np.inf):
        while not ended and not (is_stopped() and at.best is not None):
            new, b = run.step(at.bound, at.theta, at.objective)
            seen = run.sweep(new)
            objective = run.objective(new, seen)
            gap = run.gap(b, objective)
            changed = seen.tight.distance / n
            at.rows.append({"objective": objective, "bound": b, "gap": gap, "changed": changed, "exploring": 0.0})
            if at.touches and settled is not None:
                stopped = bool(settled(at.theta, new, seen.tight))
            else:
                stopped = at.objective - objective <= tol * abs(objective)
            if objective <= at.lowest:
                at.best, at.lowest = new, objective
            before, at.theta, at.bound, at.objective, at.touches = at.theta, new, seen.tight, objective, True
            if stopped:
                ended = f"tolerance reached after {len(at.rows)} iterations"
            elif len(at.rows) == max_iter:
                ended = f"iteration limit of {max_iter} reached"
            if entry is not None:
                where = {"steps": [before, new], "objective": objective, "best": at.best, "lowest": at.lowest}
                how = {"ended": ended, "stopped": stopped, "passes": run.data.n_passes - passes}
                entry.keep({**where, **how, "rows": list(at.rows)})
    touching = {"objective": at.lowest, "bound": at.lowest, "gap": 0.0, "changed": 0.0, "exploring": 0.0}
    return _Descent(_known(at.best), at.lowest, stopped, ended or "stopped", at.rows or [touching])


def _returned(run: _Run[Theta], entry: Entry) -> tuple[_Place[Theta], str, bool]:
    """Restore a descent from the journal, with how it ended, if it did, by one pass.

    The pass checks that the data are the same, and restores the memory of the blocks.
    """
    state, passes = entry.state, run.data.n_passes
    assert state is not None
    before, theta = state["steps"]
    seen = run.sweep(theta)
    objective = run.objective(theta, seen)
    entry.check("objective", objective)
    run.data.n_passes = passes + state["passes"]
    if run.callback is not None:
        for step in (before, theta) if before is not None else (theta,):
            run.callback(step)
    at = _Place(theta, seen.tight, objective, True, state["best"], state["lowest"], list(state["rows"]))
    return at, state["ended"], state["stopped"]


def _known(theta: Theta | None) -> Theta:
    assert theta is not None  # there was at least one step
    return theta


def _explore(
    run: _Run[Theta],
    theta: Theta | None,
    latent: FirstLatent | None,
    heat: float | None,
    explore_tol: float,
    max_iter: int,
) -> tuple[list[tuple[float, Theta]], float, bool]:
    """Minimise bounds chosen by the policy until the gap has closed.

    Returns the distinct iterates by ascending objective, the largest gap, and whether the gap closed.
    """
    family, policy, n = run.family, run.policy, run.data.n_units
    eta = policy.eta
    found: list[tuple[float, Theta]] = []
    if latent is None:
        assert theta is not None
        seen = run.sweep(theta, first=True)
        start = run.objective(theta, seen)
        found.append((start, theta))
        bound, ceiling = seen.tight, start
        hot = np.isinf(family.beta) if policy.hot_start is None else policy.hot_start
        heat = (HEAT if hot else 0.0) if heat is None else heat
        if heat > 0:
            # Any first bound is valid: v_0 is its value.
            bound, ceiling = _hot_bound(run, theta, heat), np.inf
    else:
        bound, ceiling = _first_bound(run, latent), np.inf
    largest, price = 0.0, np.inf
    for t in range(max_iter):
        theta, b = run.step(bound, theta, ceiling)
        run.draw += 1
        policy.prepare(family, theta, run.data, run.seed, run.draw, b)
        seen = run.sweep(theta, price)
        objective = run.objective(theta, seen)
        gap = run.gap(b, objective)
        largest = max(largest, gap)
        _insert(found, objective, theta)
        row = {"objective": objective, "bound": b, "gap": gap, "exploring": 1.0}
        budget = (1 - eta) * gap
        if (t > 0 and gap <= explore_tol * largest) or budget <= run.slack(b, objective):
            run.trace.add(**row)
            return found, largest, True
        if not np.isfinite(price):
            run.first_price = run.data.total_weight / budget
            price = spending_price(partial(run.excesses, theta), budget, run.first_price)
            seen = run.sweep(theta, price)
        drawn = seen.drawn
        excess = max(drawn.excess, 0.0)
        share = 1.0 if excess <= budget else budget / excess
        if share == 0.0:  # absent states were proposed: no share of an infinite excess fits
            drawn = seen.tight
        bound = share * drawn + (1 - share) * seen.tight if 0 < share < 1 else drawn
        ceiling = objective + bound.excess
        run.trace.add(**row, budget=budget, used=bound.excess, blend=share, changed=bound.distance / n, price=price)
        price *= float(np.clip(excess / budget, 0.5, 2.0)) / (1 - 0.5 * eta)
    return found, largest, False


def _insert(found: list[tuple[float, Theta]], objective: float, theta: Theta) -> None:
    """Insert an iterate into the few lowest ones of distinct objectives."""
    if all(abs(objective - known) > 1e-9 * abs(objective) for known, _ in found):
        found.append((objective, theta))
        found.sort(key=lambda pair: pair[0])
        del found[8:]


def _first_bound(run: _Run[Theta], latent: FirstLatent) -> Bound:
    """Return the bound of given latent values; its excess is unknown, as there are no parameters yet."""
    family = run.family

    def visit(block: Block) -> Bound:
        q = latent(block)
        run.policy.keep(block, q)
        entropy = 0.0 if np.isinf(family.beta) else block.total(entropies(q)) / family.beta
        return Bound(family.statistics(block, q, None), entropy, np.nan)

    return run.data.map_sum(visit)


def _hot_bound(run: _Run[Theta], theta: Theta, heat: float) -> Bound:
    """Return the bound of hot latents at `theta`; see `minimize` for their temperature."""
    family = run.family
    beta = heat * (family.beta if np.isfinite(family.beta) else _undecided(run, theta))

    def visit(block: Block) -> Bound:
        energies = family.energies(theta, block)
        q = tightest(energies, beta)[1]
        run.policy.keep(block, q)
        entropy = 0.0 if np.isinf(family.beta) or q.ndim == 1 else block.total(entropies(q)) / family.beta
        return Bound(family.statistics(block, q, theta), entropy, np.nan)

    return run.data.map_sum(visit)


def _undecided(run: _Run[Theta], theta: Theta) -> float:
    """Return the inverse temperature at which hard latents become uncertain: one over the mean second-best regret."""
    family = run.family

    def second_regret(block: Block) -> float:
        energies = family.energies(theta, block)
        if energies.shape[1] < 2:
            return 0.0
        two = np.partition(energies, 1, axis=1)[:, :2]
        regret = np.subtract(two[:, 1], two[:, 0])
        return block.total(np.where(np.isfinite(regret), regret, 0.0))

    total = run.data.map_sum(second_regret)
    return run.data.total_weight / total if total > 0 else np.inf
