"""EM to its end: squared extrapolation of its steps, and when to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from majorant.engine.checkpoint import Entry
from majorant.solvers.gaussian import Array, Mixture
from majorant.solvers.gaussian_em import EmRun

LONGEST_STEP = 64.0


@dataclass(frozen=True)
class Climb:
    """Where a climb ended.

    Attributes
    ----------
    mixture : Mixture
    log_likelihood : float
    floored : ndarray of shape (n_components,)
        Whether the last M-step lifted an eigenvalue of the component to the floor.
    converged : bool
        Whether what is still to gain is within the tolerance.
    log_likelihoods : tuple of float
        After every iteration: two steps of EM, and an extrapolation if it helped.
    """

    mixture: Mixture
    log_likelihood: float
    floored: NDArray[np.bool_]
    converged: bool
    log_likelihoods: tuple[float, ...]

    def scaled(self, unit: float) -> Climb:
        """The same where a unit of weight is `unit` of another."""
        values = tuple(v * unit for v in self.log_likelihoods)
        return replace(self, log_likelihood=self.log_likelihood * unit, log_likelihoods=values)


def predicted(run: EmRun) -> float:
    """Where the log-likelihood of a run of EM is heading, if its gains go on to shrink as they do (Aitken)."""
    values = run.log_likelihoods
    if len(values) < 3:
        return float(values[-1])
    return float(values[-1] + remaining(values[-2] - values[-3], values[-1] - values[-2], 0.95))


def remaining(before: float, last: float, steepest: float = 0.999) -> float:
    """What is still to gain after two successive gains."""
    if last <= 0:
        return 0.0
    rate = min(last / before, steepest) if before > 0 else 0.5
    return last * rate / (1 - rate)


@dataclass(frozen=True)
class Step:
    """One step of EM: the log-likelihood before it, and the parameters after it."""

    before: float
    mixture: Mixture
    floored: NDArray[np.bool_]


def steps_of(run: Callable[[Mixture], EmRun]) -> Callable[[Mixture], Step]:
    """Steps of EM, each a run of one step."""

    def step(mixture: Mixture) -> Step:
        end = run(mixture)
        return Step(float(end.log_likelihoods[0]), end.mixture, end.floored)

    return step


def climb(
    step: Callable[[Mixture], Step],
    start: Mixture,
    *,
    floor: float,
    tol: float,
    max_iter: int,
    accelerate: bool = True,
    entry: Entry | None = None,
) -> Climb:
    """EM with squared extrapolation (SQUAREM) until there is at most `tol` to gain.

    Every iteration makes two steps of EM; the next begins where their extrapolation leads, if the likelihood is higher
    there, and otherwise where they ended. With an `entry` of a journal it goes on from what that knows.

    References
    ----------
    .. [1] R. Varadhan, C. Roland, "Simple and globally convergent methods for accelerating the convergence of any EM
       algorithm", Scandinavian Journal of Statistics, 2008.
    """
    here, ended = start, start
    known, gained = -np.inf, np.inf
    history: list[float] = []
    quiet = 0
    if entry is not None and entry.state is not None:
        here, ended, known, gained, quiet = (
            entry.state[name] for name in ("here", "ended", "known", "gained", "quiet")
        )
        history = list(entry.state["history"])
        entry.check("known", step(entry.state["middle"]).before)
    while True:
        first = step(here)
        if not first.before >= known and history:
            here = ended
            first = step(here)
        second = step(first.mixture)
        before, known = known, second.before
        rate_gain = second.before - first.before
        left = max(remaining(gained, rate_gain) if here is ended else rate_gain, known - before)
        gained = rate_gain
        # Twice: the first steps after an extrapolation say little of the slow directions.
        quiet = quiet + 1 if left <= tol + 4 * np.finfo(np.float64).eps * abs(known) else 0
        history.append(known)
        ended = second.mixture
        if quiet >= 2 or len(history) >= max_iter:
            last = step(ended).before
            history[-1] = last
            # A fit of few iterations at a time (a warm start) has its last two steps to go by.
            at_rest = max(remaining(gained, last - known), gained) <= tol + 4 * np.finfo(np.float64).eps * abs(last)
            return Climb(ended, last, second.floored, bool(quiet >= 2 or at_rest), tuple(history))
        here = (extrapolated(here, first.mixture, ended, floor) if accelerate else None) or ended
        if entry is not None:
            where = {"here": here, "middle": first.mixture, "ended": ended, "known": known}
            entry.keep({**where, "gained": gained, "quiet": quiet, "history": list(history)})


def extrapolated(first: Mixture, second: Mixture, third: Mixture, floor: float) -> Mixture | None:
    """The squared extrapolation of two EM steps, in the mean parameters; None if it is no mixture above the floor."""
    a, b, c = (_expectations(m) for m in (first, second, third))
    r = b - a
    v = (c - b) - r
    size = float(np.sqrt((v * v).sum()))
    if size == 0.0:
        return None
    step = min(float(np.sqrt((r * r).sum())) / size, LONGEST_STEP)
    if step <= 1.01:
        return None
    return _mixture(a + 2 * step * r + step**2 * v, third, floor)


def _expectations(mixture: Mixture) -> Array:
    """Expectations of (1, x, xx') within each component, flattened: EM is nearly linear in them."""
    k, d = mixture.means.shape
    shares, means = mixture.weights[:, None], mixture.means
    second: Array
    if mixture.covariance_type in ("full", "tied"):
        products = means[:, :, None] * means[:, None, :]
        second = (mixture.covariances + products).reshape(k, d * d)
    elif mixture.covariance_type == "diag":
        second = mixture.covariances + means**2
    else:
        second = mixture.covariances[:, None] + np.mean(means**2, axis=1, keepdims=True)
    return np.hstack([shares, shares * means, shares * second])


def _mixture(expectations: Array, like: Mixture, floor: float) -> Mixture | None:
    k, d = like.means.shape
    shares = expectations[:, :1]
    if not (shares > 0).all():
        return None
    means = expectations[:, 1 : 1 + d] / shares
    second = expectations[:, 1 + d :] / shares
    if like.covariance_type in ("full", "tied"):
        covariances = second.reshape(k, d, d) - means[:, :, None] * means[:, None, :]
        if like.covariance_type == "tied":
            covariances = np.einsum("k,kij->ij", shares[:, 0], covariances) / shares.sum()
        least = np.linalg.eigvalsh(covariances).min()
    elif like.covariance_type == "diag":
        covariances = second - means**2
        least = covariances.min()
    else:
        covariances = second[:, 0] - np.mean(means**2, axis=1)
        least = covariances.min()
    if not least > floor:
        return None
    return Mixture(shares[:, 0] / shares.sum(), means, covariances, like.covariance_type)
