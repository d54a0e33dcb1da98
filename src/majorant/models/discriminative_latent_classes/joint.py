"""The joint cost of a latent-class model in all parameters, its gradient, and the term of unlabelled rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from majorant.data.chunks import Block, Chunks
from majorant.models.discriminative_latent_classes.family import LatentClasses, LatentClassFamily
from majorant.solvers.logits import log_probabilities, soft_moments
from majorant.solvers.smooth import SmoothResult, lbfgs
from majorant.solvers.softmax import SoftmaxProblem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class JointCost:
    r"""The cost of labelled rows, and the information that classes carry about any rows.

    .. math:: l(w, \alpha) + \gamma W \bigl[\operatorname{mean}_n H(p(\cdot \mid x_n)) - H(\operatorname{mean}_n
              p(\cdot \mid x_n))\bigr]

    with :math:`l` the family's objective, W the weight of the labelled rows and means over all rows.
    """

    family: LatentClassFamily
    labelled: Chunks  # columns x and y
    rows: Chunks  # column x of all rows
    gamma: float = 0.0  # weight of the information; 0 leaves it out

    def value_and_gradient(self, at: LatentClasses) -> tuple[float, Array, Array]:
        """Return the cost, its gradient in ``theta`` and that in the free coordinates of the labels' probabilities."""
        family = self.family

        def visit(block: Block) -> Array:
            prior, s, log_joint = family.sums(at, block)
            return np.append(np.concatenate([prior.moments.T, s], axis=1).ravel(), prior.value - log_joint)

        sums = self.labelled.map_sum(visit)
        d = family.n_features + 1
        of_classes = sums[:-1].reshape(family.n_states, -1)
        target, counts = family.parts(of_classes[:, d:])
        of_theta = of_classes[:, :d].T - target
        of_theta[:-1] += family.l2 * at.theta[:-1]
        value = float(sums[-1]) + family.penalty(at)
        of_labels = family.labels.gradient(counts, target[-1], at.alpha)
        if self.gamma > 0:
            scale = self.gamma * self.labelled.total_weight
            information, gradient = self.information(at)
            value -= scale * information
            of_theta = of_theta - scale * gradient
        return value, of_theta, of_labels

    def information(self, at: LatentClasses) -> tuple[float, Array]:
        """Return the mutual information of rows and classes (natural log) and its gradient in ``theta``: two passes."""
        total = self.rows.total_weight

        def shares(block: Block) -> Array:
            logs = log_probabilities(block.columns[0], at.theta)
            p = np.exp(logs)
            w = np.ones(len(p)) if block.weights is None else block.weights
            return np.append(np.einsum("i,ik->k", w, p), np.einsum("i,ik,ik->", w, p, logs))

        sums = self.rows.map_sum(shares) / total
        mean = np.maximum(sums[:-1], 1e-300)
        information = float(sums[-1] - np.sum(xlogy(mean, mean)))

        def moments(block: Block) -> Array:
            logs = log_probabilities(block.columns[0], at.theta)
            p = np.exp(logs)
            gains = logs - np.log(mean)
            return soft_moments(block.columns[0], block.weights, p * (gains - np.einsum("ik,ik->i", p, gains)[:, None]))

        return information, self.rows.map_sum(moments) / total

    def minimise(self, start: LatentClasses, *, tol: float, max_iter: int) -> tuple[LatentClasses, SmoothResult]:
        """Minimise over all parameters by L-BFGS; the value never rises."""
        family = self.family
        units = SoftmaxProblem(self.labelled, start.theta, family.l2).units()
        scale = 1 / self.labelled.total_weight
        shape, size = start.theta.shape, start.theta.size
        of_label = 1 / np.sqrt(scale * np.maximum(family.class_weights(start, self.labelled), 1e-3 / scale))[:, None]

        def at(flat: Array) -> LatentClasses:
            theta = units.outward(flat[:size].reshape(shape))
            alpha = family.labels.from_free(flat[size:].reshape(start.alpha.shape) * of_label)
            return LatentClasses(theta, alpha)

        def f(flat: Array) -> tuple[float, Array]:
            value, of_theta, of_labels = self.value_and_gradient(at(flat))
            gradient = np.concatenate([units.gradient(of_theta).ravel(), (of_labels * of_label).ravel()])
            return value * scale, gradient * scale

        first = np.concatenate(
            [units.inward(start.theta).ravel(), (family.labels.free(start.alpha) / of_label).ravel()]
        )
        found = lbfgs(f, first, tol=tol, max_iter=max_iter)
        return at(found.x), found
