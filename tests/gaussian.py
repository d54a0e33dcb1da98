"""Gaussian mixtures as the engine sees them, and their parameters as tests read them."""

from __future__ import annotations

from typing import Any

from majorant.densities.coordinates import Coordinates
from majorant.densities.gaussian import Gaussian, Normals, normals
from majorant.densities.gaussian_gaps import GaussianGaps
from majorant.engine.mixture import Mixture as Model
from majorant.engine.mixture import Parameters, SingleRun
from majorant.laws import Independent
from majorant.laws.independent import Weights
from majorant.solvers.covariance_types import COVARIANCES, CovarianceType
from majorant.solvers.gaussian import Mixture

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
