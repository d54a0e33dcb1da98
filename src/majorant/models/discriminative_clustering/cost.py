"""The cost of a clustering by a classifier: softmax regression and a label for every row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.energy import gibbs
from majorant.engine.descent import Seen, squared_extrapolation
from majorant.solvers.logits import log_probabilities, soft_moments
from majorant.solvers.softmax import SoftmaxProblem

Array = NDArray[np.float64]

N_SWEEPS = 5
"""Passes over assignments and tables for one step of the classifier, which costs more."""
FIRST_STEPS = 8
"""Newton steps of the first classifier."""
FIRST_SWEEPS = 20
"""Sweeps where a classifier comes from other rows."""


@dataclass(frozen=True)
class Clusterings:
    """A batch of classifiers, and the assignments behind their tables."""

    theta: Array  # (runs, n_axes + 1, n_clusters): intercepts last
    log_xi: Array  # (runs, n_rows, n_clusters): logarithms of the assignments


@dataclass(frozen=True)
class ClusteringCost:
    r"""The cost of a clustering by a classifier.

    .. math::
        L(w, b, \alpha) = -\sum_n \omega_n \log \sum_k p(k|x_n)\, \frac{\alpha_{kn}}{\omega_n}
        + \frac{\lambda}{2K} |w|^2,

    where :math:`\sum_n \alpha_{kn} = 1`: the cost of discriminative latent classes whose labels are the rows
    themselves, less the entropy of the rows. The tables are never stored: the best ones for assignments :math:`\xi` are
    :math:`\alpha_{kn} = \omega_n \xi_{nk} / c_k`, :math:`c_k = \sum_n \omega_n \xi_{nk}`.

    A pass makes some sweeps over tables and assignments, and a step takes one of softmax regression on the latter.
    """

    coordinates: Array  # (n_rows, n_axes)
    shares: Array  # (n_rows,): positive, of sum one
    n_clusters: int
    alpha: float  # :math:`\lambda`
    n_jobs: int | None = None
    total_weight = 1.0

    @cached_property
    def data(self) -> Chunks:
        return Chunks(self.coordinates, weights=self.shares, n_jobs=self.n_jobs)

    def penalty(self, theta: Array) -> float:
        """Return the penalty of one classifier."""
        return self.alpha / (2 * self.n_clusters) * float(np.sum(theta[:-1] ** 2))

    def started(self, xi: Array) -> Clusterings:
        """Return one run from positive assignments (n_rows, n_clusters)."""
        zero = np.zeros((self.coordinates.shape[1] + 1, self.n_clusters))
        return Clusterings(self._classifier(xi, zero, FIRST_STEPS)[None], np.log(xi)[None])

    def adopted(self, theta: Clusterings) -> Clusterings:
        """Evaluate on these rows one run that may have been on others."""
        if theta.log_xi.shape[1] == len(self.shares):
            return theta
        log_p = self.predicted(theta.theta[0])
        return Clusterings(theta.theta, self._swept(log_p, log_p, FIRST_SWEEPS)[1][None])

    @property
    def is_guarded(self) -> bool:
        """Whether the M-step is iterative, so that steps are checked."""
        return True

    def seen(self, theta: Clusterings) -> Seen:
        """Return the cost and the assignments after some sweeps."""
        passed = [self._swept(self.predicted(t), log_xi) for t, log_xi in zip(theta.theta, theta.log_xi, strict=True)]
        cost = [free + self.penalty(t) for (free, _), t in zip(passed, theta.theta, strict=True)]
        return Seen(np.array(cost), np.stack([log_xi for _, log_xi in passed]))

    def moved(self, theta: Clusterings, seen: Seen, share: Array) -> Clusterings:
        """Move each classifier a share of a step towards its assignments."""
        xi = np.exp(seen.statistics)
        steps = np.stack([self._classifier(q, t, 1) for q, t in zip(xi, theta.theta, strict=True)])
        return Clusterings(theta.theta + share[:, None, None] * (steps - theta.theta), seen.statistics)

    def extrapolated(
        self, path: tuple[Clusterings, Clusterings, Clusterings], seen: tuple[Seen, Seen, Seen]
    ) -> Clusterings:
        """Extrapolate the classifiers beyond two steps, keeping the last assignments."""
        flat = [p.theta.reshape(len(p.theta), -1) for p in path]
        return Clusterings(squared_extrapolation(*flat).reshape(path[2].theta.shape), seen[2].statistics)

    def predicted(self, theta: Array) -> Array:
        """Return ``log p(z | x)`` of all rows."""

        def visit(block: Block) -> Array:
            return log_probabilities(block.columns[0], theta)

        return self.data.map_rows(visit, (self.n_clusters,), np.dtype(np.float64))

    def settled(self, log_p: Array, log_xi: Array) -> float:
        """Return the cost of a classifier with its best tables, less its penalty."""
        return self._swept(log_p, log_xi, 1000, 1e-12)[0]

    def _swept(self, log_p: Array, log_xi: Array, most: int = N_SWEEPS, tol: float = -np.inf) -> tuple[float, Array]:
        """Alternate best tables and best assignments; return the cost less penalty, and the assignments."""
        last, free, xi = np.inf, 0.0, np.exp(log_xi)
        for _ in range(most):
            sizes = np.einsum("n,nk->k", self.shares, xi)
            scores = log_p + log_xi - np.log(np.maximum(sizes, 1e-300))
            of_row, xi = gibbs(-scores, 1.0)
            log_xi, free = scores + of_row[:, None], float(np.einsum("n,n->", self.shares, of_row))
            if last - free <= tol:
                break
            last = free
        return free, log_xi

    def _classifier(self, xi: Array, theta: Array, max_iter: int) -> Array:
        """Take some steps of softmax regression on assignments, by Newton or by more, cheaper L-BFGS steps."""

        def moments(block: Block) -> Array:
            return soft_moments(block.columns[0], block.weights, block.columns[1])

        target = Chunks(self.coordinates, xi, weights=self.shares, n_jobs=self.n_jobs).map_sum(moments)
        problem = SoftmaxProblem(self.data, target, self.alpha / self.n_clusters)
        return problem.minimise(theta, tol=1e-12, max_iter=max_iter if problem.is_small else 8 * max_iter)[0]
