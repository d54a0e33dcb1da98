r"""Whether a fit is the best of all, of any number of components: the smallest eigenvalue of one matrix.

With :math:`J = \binom{W}{V} \binom{W}{V}^\top` every term of the objective is convex in the linear terms, in 1 / s and
in J, which it meets through J alone: natural parameters are linear in J, log-partition functions are convex in natural
parameters, and the penalty is :math:`\lambda / 2 \operatorname{tr} P J`. So a stationary point with
:math:`2 G / \lambda + P` positive semi-definite, G the gradient of the rest in J, is a global optimum: nothing that
could be added to J lowers the objective. In units in which P is the identity this is :math:`Q = 2G / \lambda + I`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh

from majorant.engine.chunks import Block
from majorant.models.harmonium.layout import Parameters
from majorant.models.harmonium.pseudo_likelihood import PseudoLikelihood

Array = NDArray[np.float64]

MOST_DENSE = 2000
"""Variables up to which all eigenvalues are computed."""


class Curvature:
    """Products with minus twice the gradient of the mean log pseudo-likelihood (minus loss) in J, in units of `scale`.

    Parameters
    ----------
    problem : PseudoLikelihood
        Of rows that lack no view.
    at : Parameters
    scale : ndarray of shape (n_rows,)
    """

    def __init__(self, problem: PseudoLikelihood, at: Parameters, scale: Array) -> None:
        self.problem, self.scale = problem, scale
        (self.part, self.view), *more = problem.views(at)
        if more or len(self.part.seen.missing_gaussian):
            raise ValueError("rows that lack a view have no such gradient")
        self.total = self.part.data.total_weight
        u, s = self.view.u, self.view.s
        self.covariance_root = s[:, None] * u
        self.variance, self.inverse = s, self.view.inverse

    @property
    def size(self) -> int:
        return self.problem.layout.n_rows

    def times(self, vectors: Array) -> Array:
        """Products with columns of `vectors` (n_rows, q)."""
        layout = self.problem.layout
        v = self.scale[:, None] * vectors
        n, g, q = layout.n_variables, layout.n_gaussian, v.shape[1]
        bits, levels = slice(g, g + layout.n_bits), slice(g + layout.n_bits, n)
        centre = self.problem.centre
        shift = centre @ v[:n]

        def visit(block: Block) -> Array:
            z, x, c = block.columns[:3]
            found = self.view.residuals(block)
            weights = np.ones(len(block)) if block.weights is None else block.weights
            w = weights[:, None]
            zv = z @ v[:g]
            discrete = x @ v[bits]
            discrete += c @ v[levels]
            discrete -= shift
            every = discrete + zv
            slope = -self.problem.loss_weight * found.slopes
            # E V: the residual of each variable times what its natural parameter is linear in
            out = np.zeros((layout.n_rows, q))
            out[bits] = found.bits.T @ every
            out[levels] = found.levels.T @ every
            out[n:] = slope.T @ every
            away = (z - found.means) * w
            mv = found.means @ v[:g]
            out[:g] = away.T @ discrete + (z * w).T @ (zv / 2) - (found.means * w).T @ (mv / 2)
            # E' V
            back = found.bits @ v[bits]
            back += found.levels @ v[levels]
            back += slope @ v[n:]
            out[:g] += z.T @ back + (z * w).T @ (zv / 2) - (found.means * w).T @ (mv / 2)
            back_discrete = back + away @ v[:g]
            total = back_discrete.sum(axis=0)
            out[bits] += x.T @ back_discrete - np.outer(centre[bits], total)
            out[levels] += c.T @ back_discrete - np.outer(centre[levels], total)
            out[bits] += (found.bits.sum(axis=0) - 2 * (x.multiply(found.bits)).sum(axis=0).A1)[:, None] * v[bits]
            self._own(block, found.levels, v[levels], out[levels])
            return out

        out = self.part.data.map_sum(visit)
        if g:
            covariance = self.variance[:, None] * v[:g] + self.covariance_root @ (
                self.inverse @ (self.covariance_root.T @ v[:g])
            )
            out[:g] -= self.total * covariance
        return np.asarray(self.scale[:, None] * out / self.total)

    def _own(self, block: Block, residuals: Array, v: Array, out: Array) -> None:
        """What a categorical variable must not say of itself, beyond its squared weight: taken off `out`."""
        c = block.columns[2]
        start = 0
        for size in self.problem.layout.levels:
            at = slice(start, start + size)
            start += size
            own, r = c[:, at], residuals[:, at]
            out[at] += r.sum(axis=0)[:, None] * v[at] - r.T @ (own @ v[at]) - own.T @ (r @ v[at])

    def largest(self, k: int) -> tuple[Array, Array]:
        """The k largest eigenvalues, descending, and their vectors (n_rows, k)."""
        n, k = self.size, min(k, self.size)
        if n <= MOST_DENSE:
            matrix = np.empty((n, n))
            for a in range(0, n, 256):
                columns = np.zeros((n, min(256, n - a)))
                columns[np.arange(a, a + columns.shape[1]), np.arange(columns.shape[1])] = 1.0
                matrix[:, a : a + columns.shape[1]] = self.times(columns)
            values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        else:
            operator = LinearOperator(
                (n, n), matvec=lambda v: self.times(np.reshape(v, (n, 1)))[:, 0], dtype=np.float64
            )
            start = np.random.default_rng(0).normal(size=n)
            values, vectors = eigsh(operator, k=k, which="LA", v0=start, tol=1e-6)
        order = np.argsort(-values, kind="stable")[:k]
        return values[order], vectors[:, order]
