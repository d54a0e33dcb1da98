"""Many short runs of EM on points in memory, for the search for a good Gaussian mixture."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.data.chunks import effective_threads
from majorant.solvers.covariance_types import COVARIANCES, CovarianceType
from majorant.solvers.gaussian import Array, singular_message

CALL_OPERATIONS = 3e8
"""Approximate number of multiplications of one call of the kernel; between calls a fit can be interrupted."""
CALL_BYTES = 1 << 24
"""Largest size of the responsibilities of one call, in bytes, if it has more than one start."""

WORST = -1e300
"""Log-likelihood of runs whose covariances rounding makes singular: below any other."""


class EmStarts(NamedTuple):
    """Parameters of a batch of mixtures; the leading axis is the run."""

    weights: Array
    means: Array
    covariances: Array


class EmEnds(NamedTuple):
    """Results of a batch of runs.

    `history` has the weighted log-likelihood after 0, 1, ... steps, which never falls but for rounding; of each run
    the first ``n_iter + 1`` entries are valid. `floored` tells where the last M-step had to clip an eigenvalue at the
    floor.
    """

    weights: Array
    means: Array
    covariances: Array
    history: Array
    n_iter: NDArray[np.int64]
    floored: NDArray[np.bool_]
    converged: NDArray[np.bool_]


def run_batch(
    points: NDArray[Any],  # (n_rows, n_features): centred, of float64 or float32
    weights: Array | None,  # (n_rows,)
    starts: EmStarts | NDArray[Any],  # the M-step that turns responsibilities into a mixture is not counted as a step
    covariance_type: CovarianceType,
    floor: float,  # smallest eigenvalue of a covariance; positive
    n_steps: int,  # largest number of steps of each run, that is, of passes over the points after the first one
    # stop a run when a step, or an accelerated pair of steps, gains no more than this in log-likelihood per unit of
    # weight
    tol: float | None = None,
    *,
    # Whether every second step is an extrapolation, kept where it gains (SQUAREM [1]_). It measures lengths in the
    # units of the points, so these should be standardised.
    accelerate: bool = False,
    n_jobs: int | None = None,  # Number of threads over starts. The result does not depend on it.
    # whether a run whose covariances rounding makes singular ends on the floor at likelihood `WORST`
    keeps_singular: bool = False,
) -> EmEnds:
    """Run EM from a batch of mixtures, or of responsibilities (runs, n_rows, n_components), in compiled code.

    References
    ----------
    .. [1] R. Varadhan, C. Roland, "Simple and globally convergent methods for accelerating the convergence of any EM
       algorithm", Scandinavian Journal of Statistics, 2008.
    """
    is_given = isinstance(starts, EmStarts)
    of_runs: NDArray[Any] = starts.means if isinstance(starts, EmStarts) else starts
    total, k = len(of_runs), of_runs.shape[1 if is_given else 2]
    n, d = points.shape
    kind = COVARIANCES[covariance_type]
    operations = n * k * (n_steps + 1) * ((d * d if kind.has_matrices else 4 * d) + 30)
    size = max(1, min(int(CALL_OPERATIONS // operations), CALL_BYTES // (8 * n * k)))
    weight = float(n) if weights is None else float(weights.sum())
    ends = EmEnds(
        np.empty((total, k)),
        np.empty((total, k, d)),
        np.empty((total, *kind.shape(k, d))),
        np.full((total, n_steps + 1), np.nan),
        np.empty(total, dtype=np.int64),
        np.empty((total, k), dtype=np.bool_),
        np.empty(total, dtype=np.bool_),
    )
    if isinstance(starts, EmStarts):
        for there, own in zip(ends, starts, strict=False):
            there[:] = own
    status = np.empty(total, dtype=np.uint8)

    def run(first: int) -> None:
        at = slice(first, first + size)
        q = None if isinstance(starts, EmStarts) else np.ascontiguousarray(starts[at], dtype=np.float64)
        _kernels.gauss_em(
            points,
            weights,
            kind.code,
            floor,
            n_steps,
            -np.inf if tol is None else tol * weight,
            accelerate,
            ends.weights[at],
            ends.means[at],
            ends.covariances[at].reshape(len(ends.means[at]), -1),
            q,
            ends.history[at],
            ends.n_iter[at],
            ends.floored[at].view(np.uint8),
            status[at],
        )

    firsts, threads = range(0, total, size), effective_threads(n_jobs)
    if threads == 1 or total <= size:
        for first in firsts:
            run(first)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(run, firsts))
    singular = np.flatnonzero(status == 2)
    if len(singular) and not keeps_singular:
        raise ValueError(singular_message(covariance_type))
    ends.history[singular, :2], ends.n_iter[singular], ends.floored[singular] = WORST, 0, True
    ends.converged[:] = status == 1
    return ends
