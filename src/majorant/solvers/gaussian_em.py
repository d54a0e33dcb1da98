"""Many short runs of EM on points in memory: what the search for a good Gaussian mixture is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.solvers.gaussian import Array, CovarianceType, Mixture, log_likelihood, m_step, moments


@dataclass(frozen=True)
class EmRun:
    """Where a run of EM ended.

    Attributes
    ----------
    mixture : Mixture
    log_likelihoods : ndarray of shape (n_iter + 1,)
        Weighted log-likelihood after 0, 1, ... steps; it never falls. The last one is that of `mixture`.
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
) -> list[EmRun]:
    """Run EM from each start for some steps.

    Parameters
    ----------
    points : ndarray of shape (n_rows, n_features)
    weights : ndarray of shape (n_rows,), optional
    starts : sequence
        Mixtures, or responsibilities of shape (n_rows, n_components): the M-step that turns these into a mixture
        is not counted as a step.
    covariance_type : {"full", "tied", "diag", "spherical"}
    floor : float
        Smallest eigenvalue of a covariance; positive.
    n_steps : int
        Largest number of steps of each run.
    tol : float, optional
        Stop a run when a step gains no more than this in log-likelihood per unit of weight.

    Returns
    -------
    list of EmRun, one a start
    """
    total = float(len(points)) if weights is None else float(weights.sum())
    runs = []
    for start in starts:
        if isinstance(start, Mixture):
            mixture, floored = start, np.zeros(start.n_components, dtype=bool)
        else:
            zero = np.zeros((start.shape[1], points.shape[1]))
            first = moments(points, weights, start, zero, covariance_type)
            mass = first[:, :1]
            means = np.divide(first[:, 1 : 1 + zero.shape[1]], mass, out=zero, where=mass > 0)
            about = moments(points, weights, start, means, covariance_type)
            step = m_step(about, None, means, covariance_type, floor)
            mixture, floored = step.mixture, step.floored
        value, q = log_likelihood(mixture, points, weights)
        values, converged = [value], False
        while len(values) <= n_steps and not converged:
            step = m_step(
                moments(points, weights, q, mixture.means, covariance_type),
                mixture,
                mixture.means,
                covariance_type,
                floor,
            )
            mixture, floored = step.mixture, step.floored
            value, q = log_likelihood(mixture, points, weights)
            converged = tol is not None and value - values[-1] <= tol * total
            values.append(value)
        runs.append(EmRun(mixture, np.array(values), floored, converged))
    return runs
