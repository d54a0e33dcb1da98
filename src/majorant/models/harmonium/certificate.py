r"""Whether a fit is the best of all, of any number of components: the smallest eigenvalue of one matrix.

With :math:`J = \binom{W}{V} \binom{W}{V}^\top` every term of the objective is convex in the linear terms, in 1 / s and
in J, which it meets through J alone: natural parameters are linear in J, log-partition functions are convex in natural
parameters, and the penalty is :math:`\lambda / 2 \operatorname{tr} P J`. So a stationary point with
:math:`2 G / \lambda + P` positive semi-definite, G the gradient of the rest in J, is a global optimum: nothing that
could be added to J lowers the objective. In units in which P is the identity this is :math:`Q = 2G / \lambda + I`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from majorant.data.chunks import Block
from majorant.models.harmonium.layout import Parameters, Seen
from majorant.models.harmonium.pseudo_likelihood import Part, PseudoLikelihood, Residuals, positions

Array = NDArray[np.float64]

MOST_DENSE = 2000
"""Variables up to which all eigenvalues are computed."""
WIDTH = 256
"""Columns of the matrix that a pass makes."""
LANCZOS = 1e-6
"""Relative residual at which Lanczos' method ends."""


def is_large(n_rows: int) -> bool:
    """Whether eigenvalues of a matrix of this size are found by Lanczos' method, which might miss the largest."""
    return n_rows > MOST_DENSE


class Curvature:
    """Products with minus twice the gradient of the mean log pseudo-likelihood (minus loss) in J, in units of `scale`.

    Rows may lack discrete views, which only leaves out what these would add; and Gaussian ones where W and b are zero,
    to first order in J.

    Parameters
    ----------
    problem : PseudoLikelihood
    at : Parameters
    scale : ndarray of shape (n_rows,)
        Zero for rows that have no weights: the matrix is zero there.
    """

    def __init__(self, problem: PseudoLikelihood, at: Parameters, scale: Array) -> None:
        if at.weights.any() and any(len(part.seen.missing_gaussian) for part in problem.parts):
            raise ValueError("rows that lack a Gaussian view have no such gradient")
        self.size = problem.layout.n_rows
        self.pieces = [_of_part(problem, part, at, scale) for part in problem.parts]
        self.shares = [piece.total / problem.total_weight for _, piece in self.pieces]

    @property
    def by_lanczos(self) -> bool:
        """Whether there are too many variables to compute all eigenvalues."""
        return is_large(self.size)

    def times(self, vectors: Array) -> Array:
        """Products with columns of `vectors` (n_rows, q)."""
        out = np.zeros_like(vectors)
        for (rows, piece), share in zip(self.pieces, self.shares, strict=True):
            out[rows] += share * piece.times(vectors[rows])
        return out

    def matrix(self) -> Array:
        """The whole, symmetric."""
        out = np.zeros((self.size, self.size))
        for (rows, piece), share in zip(self.pieces, self.shares, strict=True):
            out[np.ix_(rows, rows)] += share * piece.matrix()
        return out

    def largest(self, k: int) -> tuple[Array, Array]:
        """The k largest eigenvalues, descending, and their vectors (n_rows, k).

        Of many variables (`by_lanczos`) each is the Ritz value of Lanczos' method from a random start, plus the norm of
        its residual: an eigenvalue is no farther away. That it is the largest is not proved: the method might miss it.
        """
        n, k = self.size, min(k, self.size)
        if not self.by_lanczos:
            values, vectors = eigh(self.matrix(), subset_by_index=[n - k, n - 1], overwrite_a=True)
        else:
            operator = LinearOperator(
                (n, n), matvec=lambda v: self.times(np.reshape(v, (n, 1)))[:, 0], dtype=np.float64
            )
            start = np.random.default_rng(0).normal(size=n)
            values, vectors = eigsh(operator, k=k, which="LA", v0=start, tol=LANCZOS)
            values = values + np.linalg.norm(self.times(vectors) - vectors * values, axis=0)
        order = np.argsort(-values, kind="stable")[:k]
        return values[order], vectors[:, order]


def _of_part(
    problem: PseudoLikelihood, part: Part, at: Parameters, scale: Array
) -> tuple[NDArray[np.intp], _PartCurvature]:
    """The rows of W and V that some rows have a say in, and the gradient's part of them alone."""
    layout, seen = problem.layout, part.seen
    columns = seen.columns(layout)
    rows = np.concatenate([columns, np.arange(layout.n_variables, layout.n_rows)])
    smaller = replace(
        layout,
        n_gaussian=len(seen.gaussian),
        n_bits=len(seen.bits),
        levels=tuple(layout.levels[v] for v in seen.variables),
        level_weights=tuple(layout.level_weights[v] for v in seen.variables),
        structures=tuple(layout.structures[i] for i in seen.structures),
    )
    whole = Part(Seen.everything(smaller), part.data)
    own = replace(problem, layout=smaller, centre=problem.centre[columns], parts=(whole,))
    there = Parameters(at.weights[rows], at.intercept[rows], at.log_variance[seen.gaussian])
    return rows, _PartCurvature(own, there, scale[rows])


class _PartCurvature:
    """The same for rows that lack none of the problem's views."""

    def __init__(self, problem: PseudoLikelihood, at: Parameters, scale: Array) -> None:
        self.problem, self.scale = problem, scale
        ((self.part, self.view),) = problem.views(at)
        self.total = self.part.data.total_weight
        u, s = self.view.u, self.view.s
        self.covariance_root = s[:, None] * u
        self.variance, self.inverse = s, self.view.inverse

    def times(self, vectors: Array) -> Array:
        """Products with columns of `vectors` (n_rows, q)."""
        v = self.scale[:, None] * vectors

        def visit(block: Block) -> Array:
            found = self.view.residuals(block)
            return self._forward(block, found, v) + self._backward(block, found, v)

        out = self.part.data.map_sum(visit) - 2 * self._covariance_times(v)
        return np.asarray(self.scale[:, None] * out / self.total)

    def matrix(self) -> Array:
        """The whole, symmetric."""
        n = self.problem.layout.n_rows
        half = np.empty((n, n))
        for a in range(0, n, WIDTH):  # a slice at a time: sums over blocks hold three of what they add up
            at = slice(a, min(a + WIDTH, n))
            v = np.zeros((n, at.stop - a))
            v[np.arange(a, at.stop), np.arange(at.stop - a)] = self.scale[at]

            def visit(block: Block, v: Array = v) -> Array:
                return self._forward(block, self.view.residuals(block), v)

            half[:, at] = self.part.data.map_sum(visit) - self._covariance_times(v)
        half *= self.scale[:, None] / self.total
        return np.asarray(half + half.T)

    def _covariance_times(self, v: Array) -> Array:
        """Half the sum over rows of the Gaussian variables' covariance given the discrete ones, times `v`."""
        out, g = np.zeros_like(v), self.problem.layout.n_gaussian
        root = self.covariance_root
        out[:g] = self.total / 2 * (self.variance[:, None] * v[:g] + root @ (self.inverse @ (root.T @ v[:g])))
        return out

    def _forward(self, block: Block, found: Residuals, v: Array) -> Array:
        """E V, E the residual of each variable times what its natural parameter is linear in."""
        layout, centre = self.problem.layout, self.problem.centre
        n, g = layout.n_variables, layout.n_gaussian
        bits, levels = slice(g, g + layout.n_bits), slice(layout.first_level, n)
        z, x, c = block.columns[:3]
        w = _column(block)
        zv, mv = z @ v[:g], found.means @ v[:g]
        discrete = x @ v[bits]
        discrete += c @ v[levels]
        discrete -= centre @ v[:n]
        for structure, rows, data in self.view.structures(block):
            discrete += structure.features(data) @ v[rows]
        out = np.empty((layout.n_rows, v.shape[1]))
        out[:g] = ((z - found.means) * w).T @ discrete + ((z * w).T @ zv - (found.means * w).T @ mv) / 2
        discrete += zv
        out[bits] = found.bits.T @ discrete + self._own_bits(x, found.bits)[:, None] * v[bits]
        for (_, rows), term in zip(self.view.structured, found.structured, strict=True):
            out[rows] = term.residual.T @ discrete + term.own @ v[rows]
        out[levels] = found.levels.T @ discrete
        for at in layout.among_levels:
            own, r, vl = c[:, at], found.levels[:, at], v[levels][at]
            out[levels][at] += r.sum(axis=0)[:, None] * vl / 2 - r.T @ (own @ vl)
        out[n:] = -self.problem.loss_weight * (found.slopes.T @ discrete)
        return out

    def _backward(self, block: Block, found: Residuals, v: Array) -> Array:
        """E' V."""
        layout, centre = self.problem.layout, self.problem.centre
        n, g = layout.n_variables, layout.n_gaussian
        bits, levels = slice(g, g + layout.n_bits), slice(layout.first_level, n)
        z, x, c = block.columns[:3]
        w = _column(block)
        back = found.bits @ v[bits]
        back += found.levels @ v[levels]
        for (_, rows), term in zip(self.view.structured, found.structured, strict=True):
            back += term.residual @ v[rows]
        back -= self.problem.loss_weight * (found.slopes @ v[n:])
        out = np.zeros((layout.n_rows, v.shape[1]))
        out[:g] = z.T @ back + ((z * w).T @ (z @ v[:g]) - (found.means * w).T @ (found.means @ v[:g])) / 2
        back += ((z - found.means) * w) @ v[:g]
        total = back.sum(axis=0)
        out[bits] = x.T @ back - np.outer(centre[bits], total) + self._own_bits(x, found.bits)[:, None] * v[bits]
        out[levels] = c.T @ back - np.outer(centre[levels], total)
        for (structure, rows, data), term in zip(self.view.structures(block), found.structured, strict=True):
            out[rows] = structure.features(data).T @ back + term.own @ v[rows]
        for at in layout.among_levels:
            own, r, vl = c[:, at], found.levels[:, at], v[levels][at]
            out[levels][at] += r.sum(axis=0)[:, None] * vl / 2 - own.T @ (r @ vl)
        return out

    def _own_bits(self, x: Any, residuals: Array) -> Array:
        """The diagonal that makes a bit say nothing of itself."""
        on = np.bincount(x.indices, weights=residuals.ravel()[positions(x)], minlength=x.shape[1])
        return np.asarray(residuals.sum(axis=0) / 2 - on)


def _column(block: Block) -> Array | float:
    return 1.0 if block.weights is None else block.weights[:, None]
