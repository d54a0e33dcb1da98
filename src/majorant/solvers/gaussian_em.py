"""Many short runs of EM on points in memory: what the search for a good Gaussian mixture is made of."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.data.chunks import effective_threads
from majorant.solvers.covariance_types import COVARIANCES, CovarianceType
from majorant.solvers.gaussian import Array, Mixture, singular_message

CALL_OPERATIONS = 3e8
"""Multiplications of one call of the kernel, if only roughly: between calls a fit can be interrupted."""
CALL_BYTES = 1 << 24
"""Responsibilities that one call is given at most, if it has more than one start."""


@dataclass(frozen=True)
class EmRun:
    """Where a run of EM ended.

    Attributes
    ----------
    mixture : Mixture
    log_likelihoods : ndarray of shape (n_iter + 1,)
        Weighted log-likelihood after 0, 1, ... steps, the last one that of `mixture`; it never falls, rounding apart.
    floored : ndarray of shape (n_components,)
        Whether the last M-step had to clip an eigenvalue of the component at the floor.
    converged : bool
        Whether the last step gained no more than the tolerance.
    """

    mixture: Mixture
    log_likelihoods: Array
    floored: NDArray[np.bool_]
    converged: bool

    @property
    def n_iter(self) -> int:
        return len(self.log_likelihoods) - 1

    @property
    def log_likelihood(self) -> float:
        return float(self.log_likelihoods[-1])


def run_em(
    points: NDArray[Any],
    weights: Array | None,
    starts: Sequence[Mixture | NDArray[Any]],
    covariance_type: CovarianceType,
    floor: float,
    n_steps: int,
    tol: float | None = None,
    *,
    accelerate: bool = False,
    n_jobs: int | None = None,
) -> list[EmRun]:
    """Run EM from each start for some steps, in compiled code.

    Parameters
    ----------
    points : ndarray of shape (n_rows, n_features)
        Centred, of float64 or float32.
    weights : ndarray of shape (n_rows,), optional
    starts : sequence
        Mixtures, or responsibilities of shape (n_rows, n_components) each: the M-step that turns these into a mixture
        is not counted as a step.
    covariance_type : {"full", "tied", "diag", "spherical"}
    floor : float
        Smallest eigenvalue of a covariance; positive.
    n_steps : int
        Largest number of steps of each run, that is, of passes over the points after the first one.
    tol : float, optional
        Stop a run when a step, or an accelerated pair of steps, gains no more than this in log-likelihood per unit of
        weight.
    accelerate : bool, default=False
        Whether every second step is an extrapolation, kept where it gains (SQUAREM [1]_). It measures lengths in the
        units of the points, so these should be standardised.
    n_jobs : int, optional
        Threads that run starts at a time. The result does not depend on it.

    Returns
    -------
    list of EmRun, one a start

    Raises
    ------
    ValueError
        If a covariance becomes singular, which only a positive floor prevents.

    References
    ----------
    .. [1] R. Varadhan, C. Roland, "Simple and globally convergent methods for accelerating the convergence of any EM
       algorithm", Scandinavian Journal of Statistics, 2008.
    """
    if len(starts) == 0:
        return []
    first = starts[0]
    k = first.n_components if isinstance(first, Mixture) else int(first.shape[1])
    n, d = points.shape
    operations = n * k * (n_steps + 1) * ((d * d if COVARIANCES[covariance_type].has_matrices else 4 * d) + 30)
    size = max(1, min(int(CALL_OPERATIONS // operations), CALL_BYTES // (8 * n * k)))
    total = float(n) if weights is None else float(weights.sum())
    tolerance = -np.inf if tol is None else tol * total

    def run(group: Sequence[Any]) -> list[EmRun]:
        return _run(points, weights, group, k, covariance_type, floor, n_steps, tolerance, accelerate)

    groups = []
    for _, part in groupby(starts, lambda start: isinstance(start, Mixture)):
        alike = list(part)
        groups += [alike[a : a + size] for a in range(0, len(alike), size)]
    threads = effective_threads(n_jobs)
    if threads == 1 or len(groups) == 1:
        return [end for group in groups for end in run(group)]
    with ThreadPoolExecutor(threads) as pool:
        return [end for ends in pool.map(run, groups) for end in ends]


def _run(
    points: NDArray[Any],
    weights: Array | None,
    starts: Sequence[Mixture | NDArray[Any]],
    k: int,
    covariance_type: CovarianceType,
    floor: float,
    n_steps: int,
    tolerance: float,
    accelerate: bool,
) -> list[EmRun]:
    """One call of the kernel."""
    runs, d = len(starts), points.shape[1]
    kind = COVARIANCES[covariance_type]
    shape = kind.shape(k, d)
    shares, means = np.empty((runs, k)), np.empty((runs, k, d))
    covariances = np.empty((runs, *shape))
    given = None
    if isinstance(starts[0], Mixture):
        for i, start in enumerate(starts):
            assert isinstance(start, Mixture)
            shares[i], means[i], covariances[i] = start.weights, start.means, start.covariances
    else:
        given = np.ascontiguousarray(np.stack([np.asarray(start) for start in starts]), dtype=np.float64)
    history, passes = np.full((runs, n_steps + 1), np.nan), np.empty(runs, dtype=np.int64)
    floored, status = np.empty((runs, k), dtype=np.uint8), np.empty(runs, dtype=np.uint8)
    _kernels.gauss_em(
        points,
        weights,
        kind.code,
        floor,
        n_steps,
        tolerance,
        accelerate,
        shares,
        means,
        covariances.reshape(runs, -1),
        given,
        history,
        passes,
        floored,
        status,
    )
    if (status == 2).any():
        raise ValueError(singular_message(covariance_type))
    return [
        EmRun(
            Mixture(shares[i], means[i], covariances[i], covariance_type),
            history[i, : passes[i] + 1],
            floored[i].astype(bool),
            bool(status[i] == 1),
        )
        for i in range(runs)
    ]
