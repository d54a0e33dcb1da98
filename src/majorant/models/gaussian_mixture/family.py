"""Gaussian mixtures as the engine sees them: energies, statistics, M-step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.engine.latents import Latent, as_soft
from majorant.engine.problem import Bound
from majorant.solvers.covariance_types import CovarianceType
from majorant.solvers.gaussian import Array, Mixture, m_step, moments


@dataclass
class GaussianFamily:
    r"""Soft clusters by density: ``E_i(z) = -log pi_z - log N(x_i; m_z, S_z)``, at temperature ``1 / beta``.

    At ``beta = 1`` the tightest bounds are the EM algorithm, at infinity they are classification EM. Its parameters are
    a `Mixture`; a component that loses all mass keeps its mean and covariance and is absent from then on.

    Parameters
    ----------
    n_states : int
        Number of components.
    n_features : int
    covariance_type : {"full", "tied", "diag", "spherical"}
    floor : float
        Smallest eigenvalue of every covariance, in the units of the rows squared. The M-step is the exact minimiser
        under this constraint. At 0, a component that collapses ends in a ValueError.
    beta : float
        Inverse temperature.
    slack : float
        What rounding may add to an objective; the M-step sets it by how far the means moved.
    """

    n_states: int
    n_features: int
    covariance_type: CovarianceType
    floor: float = 0.0
    beta: float = 1.0
    slack: float = 0.0
    precision: np.dtype[Any] = field(default=np.dtype(np.float64), init=False)

    def energies(self, theta: Mixture, block: Block) -> NDArray[Any]:
        return theta.energies(block.columns[0])

    def statistics(self, block: Block, q: Latent, theta: Mixture | None) -> Array:
        x = self._rows(block)
        reference = np.zeros((self.n_states, self.n_features)) if theta is None else theta.means
        return moments(x, block.weights, as_soft(q, self.n_states), reference, self.covariance_type)

    def tight_pass(self, theta: Mixture, block: Block) -> tuple[float, Bound]:
        free, entropy, s = theta.tight_moments(self._rows(block), block.weights, self.beta)
        return free, Bound(s, entropy, 0.0)

    def solve(self, s: Array, theta: Mixture | None, data: Chunks) -> tuple[Mixture, float]:
        reference = np.zeros((self.n_states, self.n_features)) if theta is None else theta.means
        single = self.precision == np.float32
        step = m_step(s, theta, reference, self.covariance_type, self.floor, single=single)
        digits = float(np.finfo(self.precision).eps)
        self.slack = 16 * digits * (self.n_features * float(s[:, 0].sum()) + step.travel)
        return step.mixture, step.value

    def _rows(self, block: Block) -> NDArray[Any]:
        """The rows of a block; an M-step must know the precision of those that its statistics are of."""
        x: NDArray[Any] = block.columns[0]
        self.precision = x.dtype
        return x

    def penalty(self, theta: Mixture) -> float:
        return 0.0

    def floored(self, theta: Mixture) -> NDArray[np.bool_]:
        """Which components have an eigenvalue on the floor."""
        values = theta.covariance.eigenvalues(theta.covariances)
        rounding = 4 * self.n_features * np.finfo(np.float64).eps * values.max(axis=1, keepdims=True)
        return np.broadcast_to((values <= self.floor + rounding).any(axis=1), (self.n_states,))
