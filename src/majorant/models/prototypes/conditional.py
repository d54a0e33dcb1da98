"""Discriminative training of prototypes: the conditional log-likelihood and its gradient."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.engine.latents import collect, tightest
from majorant.solvers.nearest import squared_distances
from majorant.solvers.smooth import SmoothResult, lbfgs


@dataclass(frozen=True)
class ConditionalLoss:
    r"""Mean loss of predicting the labels by prototypes.

    .. math:: L(R) = \frac{1}{W} \sum_i w_i \bigl[-\log P(y_i \mid x_i) + \alpha \beta F(y_i, x_i)\bigr], \qquad
              -\log P(y \mid x) = \beta F(y, x) - \beta F(x)

    where :math:`F(y, x)` is the free energy of the poses of a label and :math:`F(x)` that of all of them. The gradient
    is responsibilities times the gradients of the components,

    .. math:: \frac{\partial L}{\partial R_{yz}} = \frac{\beta}{W} \sum_i w_i
              \bigl[(1 + \alpha)\,[y = y_i]\,P(z \mid y, x_i) - P(y, z \mid x_i)\bigr]\,(-2)(x_i - R_{yz}).
    """

    data: Chunks  # columns: rows, and the number of each row's class
    n_poses: NDArray[np.intp]  # (n_classes,): number of poses of each class, which are the first of its prototypes
    most: int  # prototypes of each class, including those that are not poses
    beta: float
    alpha: float

    def energies(self, x: NDArray[np.float64], prototypes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the energies of pairs of class and pose, shape (rows, n_classes, most); see `with_prior`."""
        flat = squared_distances(x, prototypes.reshape(-1, prototypes.shape[-1]))
        return with_prior(flat, self.n_poses, self.most, self.beta)

    def value_and_gradient(self, prototypes: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the loss, and its gradient of the shape of `prototypes`: one pass over the rows."""
        flat = prototypes.reshape(-1, prototypes.shape[-1])

        def visit(block: Block) -> NDArray[np.float64]:
            x, codes = block.columns
            energies = self.energies(x, prototypes)
            rows = np.arange(len(x))
            free, pose = tightest(energies[rows, codes], self.beta)
            all_free, pairs = tightest(energies.reshape(len(x), -1), self.beta)
            shares = -pairs.reshape(energies.shape)
            shares[rows, codes] += (1 + self.alpha) * pose
            by_prototype: NDArray[np.float64] = shares.reshape(len(x), -1)
            sums = collect(by_prototype, np.column_stack([x, np.ones(len(x))]), len(flat), block.weights)
            gradient = -2 * (sums[:, :-1] - sums[:, -1:] * flat)
            return np.append(gradient, block.total((1 + self.alpha) * free - all_free))

        found = self.data.map_sum(visit) * (self.beta / self.data.total_weight)
        return float(found[-1]), found[:-1].reshape(prototypes.shape)

    def minimise(self, prototypes: NDArray[np.float64], tol: float, max_iter: int) -> SmoothResult:
        """Minimise by L-BFGS from given prototypes, in units of a pose's standard deviation at this temperature."""
        step = float(np.sqrt(0.5 / self.beta))

        def f(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            value, gradient = self.value_and_gradient(x.reshape(prototypes.shape) * step)
            return value, gradient.ravel() * step

        found = lbfgs(f, prototypes.ravel() / step, tol=tol, max_iter=max_iter)
        return replace(found, x=found.x.reshape(prototypes.shape) * step)


def with_prior(table: NDArray[Any], n_poses: NDArray[np.intp], most: int, beta: float) -> NDArray[Any]:
    """Return the energies by class and pose from a table (rows, n_classes * most) of squared distances.

    Poses of a class have equal prior probability, so ``log(n) / beta`` is added to the distance; prototypes that are
    not poses have infinite energy.
    """
    energies = table.reshape(len(table), len(n_poses), most) + (np.log(n_poses) / beta)[:, None]
    energies[:, np.arange(most) >= n_poses[:, None]] = np.inf
    return energies
