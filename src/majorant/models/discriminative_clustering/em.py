"""EM for a latent-class model in which every row is a label of its own: softmax regression and shares of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.energy import gibbs
from majorant.solvers.logits import log_probabilities, soft_moments
from majorant.solvers.softmax import SoftmaxProblem

Array = NDArray[np.float64]

N_SWEEPS = 5
"""Passes over assignments and tables for one step of the classifier, which costs more."""


@dataclass(frozen=True)
class Run:
    """Where a descent stands.

    Attributes
    ----------
    theta : ndarray of shape (n_axes + 1, n_clusters)
        The classifier; intercepts last.
    log_xi : ndarray of shape (n_rows, n_clusters)
        Logarithms of the assignments.
    log_p : ndarray of shape (n_rows, n_clusters)
        ``log p(z | x)``.
    loss : float
    path : tuple of float
        The loss after every iteration.
    converged : bool
    """

    theta: Array
    log_xi: Array
    log_p: Array
    loss: float
    path: tuple[float, ...]
    converged: bool

    @property
    def labels(self) -> NDArray[np.intp]:
        """The most probable cluster of every row."""
        return np.asarray(self.log_p.argmax(axis=1))


@dataclass(frozen=True)
class Problem:
    r"""The cost of a clustering by a classifier.

    .. math::
        L(w, b, \alpha) = -\sum_n \omega_n \log \sum_k p(k|x_n)\, \frac{\alpha_{kn}}{\omega_n}
        + \frac{\lambda}{2K} |w|^2,

    where :math:`\sum_n \alpha_{kn} = 1`: the cost of a latent-class model whose labels are the rows themselves, less
    the entropy of the rows. The tables are never stored: the best ones for assignments :math:`\xi` are
    :math:`\alpha_{kn} = \omega_n \xi_{nk} / c_k`, :math:`c_k = \sum_n \omega_n \xi_{nk}`.

    Attributes
    ----------
    coordinates : ndarray of shape (n_rows, n_axes)
    shares : ndarray of shape (n_rows,)
        Positive, of sum one.
    n_clusters : int
    alpha : float
        :math:`\lambda`.
    n_jobs : int, optional
    """

    coordinates: Array
    shares: Array
    n_clusters: int
    alpha: float
    n_jobs: int | None = None

    @cached_property
    def data(self) -> Chunks:
        return Chunks(self.coordinates, weights=self.shares, n_jobs=self.n_jobs)

    def penalty(self, theta: Array) -> float:
        return self.alpha / (2 * self.n_clusters) * float(np.sum(theta[:-1] ** 2))

    def sweep(self, log_p: Array, log_xi: Array, xi: Array) -> tuple[Array, Array, float]:
        """The best tables of assignments, then the best assignments, and the cost less its penalty."""
        sizes = np.einsum("n,nk->k", self.shares, xi)
        scores = log_p + log_xi - np.log(np.maximum(sizes, 1e-300))
        free, xi = gibbs(-scores, 1.0)
        return scores + free[:, None], xi, float(np.einsum("n,n->", self.shares, free))

    def classifier(self, xi: Array, theta: Array, max_iter: int) -> Array:
        """Some steps of softmax regression on assignments; L-BFGS takes more and cheaper ones than Newton."""

        def moments(block: Block) -> Array:
            return soft_moments(block.columns[0], block.weights, block.columns[1])

        target = Chunks(self.coordinates, xi, weights=self.shares, n_jobs=self.n_jobs).map_sum(moments)
        problem = SoftmaxProblem(self.data, target, self.alpha / self.n_clusters)
        return problem.minimise(theta, tol=1e-12, max_iter=max_iter if problem.is_small else 8 * max_iter)[0]

    def predicted(self, theta: Array) -> Array:
        """``log p(z | x)`` of all rows."""

        def visit(block: Block) -> Array:
            return log_probabilities(block.columns[0], theta)

        return self.data.map_rows(visit, (self.n_clusters,), np.dtype(np.float64))

    def em(
        self,
        start: Array | Run,
        *,
        max_iter: int,
        tol: float = 1e-6,
        callback: Callable[[float], None] | None = None,
    ) -> Run:
        """Descend from assignments of positive numbers, or go on from where a descent stands.

        An iteration is one step of the classifier and some sweeps over assignments, each of which lowers the cost.
        Stops when an iteration, not one of the first three, lowers it by no more than `tol`, which is in nats.
        """
        goes_on = isinstance(start, Run)
        theta = start.theta if isinstance(start, Run) else np.zeros((self.coordinates.shape[1] + 1, self.n_clusters))
        log_xi = start.log_xi if isinstance(start, Run) else np.log(start)
        xi, log_p, converged = np.exp(log_xi), log_xi, False
        path: list[float] = []
        for t in range(max_iter):
            theta = self.classifier(xi, theta, 1 if t or goes_on else 8)
            log_p = self.predicted(theta)
            free = 0.0
            for _ in range(N_SWEEPS):
                log_xi, xi, free = self.sweep(log_p, log_xi, xi)
            path.append(free + self.penalty(theta))
            if callback is not None:
                callback(path[-1])
            if t > 2 and path[-2] - path[-1] <= tol:
                converged = True
                break
        return Run(theta, log_xi, log_p, path[-1], tuple(path), converged)

    def resumed(self, theta: Array) -> Run:
        """Where a classifier that was made on other rows stands on these."""
        log_p = self.predicted(theta)
        loss = self.settled(log_p, log_p, max_sweeps=20) + self.penalty(theta)
        return Run(theta, log_p, log_p, loss, (loss,), False)

    def settled(self, log_p: Array, log_xi: Array, *, max_sweeps: int = 1000) -> float:
        """The cost of a classifier with its best tables, less its penalty."""
        last, free, xi = np.inf, 0.0, np.exp(log_xi)
        for _ in range(max_sweeps):
            log_xi, xi, free = self.sweep(log_p, log_xi, xi)
            if last - free <= 1e-12:
                break
            last = free
        return free

    def with_penalty(self, alpha: float) -> Problem:
        return replace(self, alpha=alpha)

    def with_clusters(self, n_clusters: int) -> Problem:
        return replace(self, n_clusters=n_clusters)
