"""The poses of one class as a family of the engine: energies, statistics, M-step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.engine.latents import Latent, collect, tightest
from majorant.solvers.nearest import centres_of, moments, squared_distances


@dataclass
class PoseFamily:
    r"""Rows of one class, each near one of its prototypes: ``E_i(z; R) = |x_i - R_z|^2 + log(m) / beta``.

    With the constant the free energy is that of poses of equal prior probability,

    .. math:: F_i = -\frac{1}{\beta} \log \frac{1}{m} \sum_z e^{-\beta |x_i - R_z|^2},

    which lies between the smallest and the mean squared distance: a class has no advantage from having more poses. At
    zero temperature the constant vanishes.
    """

    n_states: int  # number of poses, m
    beta: float  # inverse temperature in the units of squared distances, or infinity
    slack: float = 0.0  # bound on the rounding error of an objective

    @property
    def surprise(self) -> float:
        """Energy added by the uniform prior over poses, ``log(m) / beta``."""
        return float(np.log(self.n_states)) / self.beta

    def energies(self, theta: NDArray[Any], block: Block) -> NDArray[Any]:
        return squared_distances(block.columns[0], theta) + self.surprise

    def statistics(self, block: Block, q: Latent, theta: NDArray[Any] | None) -> NDArray[np.float64]:
        x = block.columns[0]
        return moments(x, block.weights, np.zeros((self.n_states, x.shape[1])) if theta is None else theta, q)

    def solve(self, s: NDArray[np.float64], theta: NDArray[Any] | None, data: Chunks) -> tuple[NDArray[Any], float]:
        old = np.zeros((self.n_states, s.shape[1] - 2)) if theta is None else theta
        centres, value = centres_of(s, old)
        return centres, value + float(s[:, 0].sum()) * self.surprise

    def penalty(self, theta: NDArray[Any]) -> float:
        return 0.0

    def pose_weights(self, theta: NDArray[Any], data: Chunks) -> NDArray[np.float64]:
        """Return the weight of the rows in each pose."""

        def visit(block: Block) -> NDArray[np.float64]:
            q = tightest(self.energies(theta, block), self.beta)[1]
            return collect(q, np.ones((len(block), 1)), self.n_states, block.weights)[:, 0]

        return data.map_sum(visit)
