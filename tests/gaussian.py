"""Gaussian mixtures as the engine sees them, and their parameters as tests read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.densities.coordinates import Coordinates
from majorant.densities.gaussian import Gaussian, Normals, normals
from majorant.densities.gaussian_gaps import GaussianGaps
from majorant.engine.mixture import Mixture as Model
from majorant.engine.mixture import Parameters, SingleRun
from majorant.laws import Independent
from majorant.laws.independent import Weights
from majorant.solvers.covariance_types import COVARIANCES, CovarianceType
from majorant.solvers.gaussian import Mixture, solve_in_place
from majorant.solvers.gaussian_em import EmStarts, run_batch

Theta = Parameters[Normals, Weights]


def family(
    k: int, d: int, covariance_type: CovarianceType, floor: float = 0.0, beta: float = 1.0, *, single: bool = False
) -> SingleRun:
    """Soft clusters by density."""
    return SingleRun(Model(Gaussian(COVARIANCES[covariance_type], d, floor, single=single), Independent(), k, beta))


def with_gaps(complete: SingleRun, coordinates: Coordinates | None = None) -> SingleRun:
    """The family of rows with missing entries, of one of whole rows in coordinates."""
    model: Any = complete.mixture.density
    law, k, beta = complete.mixture.law, complete.n_states, complete.beta
    return SingleRun(Model(GaussianGaps(model, coordinates), law, k, beta))


def theta_of(mixture: Mixture) -> Theta:
    """A batch of one run."""
    return Parameters(normals([mixture]), Weights(mixture.weights[None]))


def mixture_of(theta: Theta, covariance_type: CovarianceType, run: int = 0) -> Mixture:
    """One run of a batch."""
    density = theta.density
    return Mixture(theta.law.weights[run], density.means[run], density.covariances[run], covariance_type)


@dataclass(frozen=True)
class MStep:
    """Result of an M-step: the expected energy at the minimum, and whether the floor raised an eigenvalue."""

    mixture: Mixture
    value: float
    floored: NDArray[np.bool_]


def m_step(
    moments: NDArray[np.float64],
    old: Mixture | None,
    reference: NDArray[np.float64],
    covariance_type: CovarianceType,
    floor: float,
    *,
    single: bool = False,
) -> MStep:
    """An M-step from moments about `reference`, and covariances of components without mass."""
    kind, (k, d) = COVARIANCES[covariance_type], reference.shape
    before = max(floor, 1.0) * kind.identity(d) if old is None else old.covariances
    covariances = np.array(np.broadcast_to(before, kind.shape(k, d)), order="C")
    means, floored = np.empty((k, d)), np.empty(k, dtype=np.bool_)
    at = np.ascontiguousarray(moments), reference, kind, floor, means, covariances, floored
    weights, value, _ = solve_in_place(*at, single=single)
    return MStep(Mixture(weights, means, covariances, covariance_type), value, floored)


@dataclass(frozen=True)
class EmRun:
    """One run of EM: its end, and its log-likelihood after 0, 1, ... steps."""

    mixture: Mixture
    log_likelihoods: NDArray[np.float64]
    floored: NDArray[np.bool_]
    converged: bool

    @property
    def n_iter(self) -> int:
        return len(self.log_likelihoods) - 1

    @property
    def log_likelihood(self) -> float:
        return float(self.log_likelihoods[-1])


def run_em(
    x: Any, weights: Any, starts: Any, covariance_type: CovarianceType, *settings: Any, **more: Any
) -> list[EmRun]:
    """Runs of EM from mixtures, or from responsibilities, as one batch of compiled code."""
    given: Any = np.array(starts)
    if isinstance(starts[0], Mixture):
        given = EmStarts(*(np.stack([getattr(start, name) for start in starts]) for name in EmStarts._fields))
    ends = run_batch(x, weights, given, covariance_type, *settings, **more)
    return [
        EmRun(Mixture(*(part[i] for part in ends[:3]), covariance_type), history[: n + 1], floored, bool(converged))
        for i, (history, n, floored, converged) in enumerate(zip(*ends[3:], strict=True))
    ]
