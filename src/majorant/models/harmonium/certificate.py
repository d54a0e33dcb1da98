r"""The certificate of a global optimum over any number of components: the smallest eigenvalue of one matrix.

With :math:`J = \binom{W}{V} \binom{W}{V}^\top` every term of the objective is convex in the linear terms, in 1 / s and
in J, which it meets through J alone: natural parameters are linear in J, log-partition functions are convex in natural
parameters, and the penalty is :math:`\lambda / 2 \operatorname{tr} P J`. So a stationary point with
:math:`2 G / \lambda + P` positive semi-definite, G the gradient of the rest in J, is a global optimum: nothing that
could be added to J lowers the objective. In units in which P is the identity this is :math:`Q = 2G / \lambda + I`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from majorant._told import Told
from majorant.data.chunks import Block
from majorant.models.harmonium.layout import Parameters, Seen
from majorant.models.harmonium.objective import Penalised
from majorant.models.harmonium.pseudo_likelihood import Part, PseudoLikelihood, Residuals
from majorant.models.harmonium.views import LEAST_VARIANCE, MOST_VARIANCE
from majorant.models.unlinked import Groups, groups_in_words
from majorant.registry import value_class
from majorant.results.certificate import Certificate
from majorant.solvers.logistic import positions

Array = NDArray[np.float64]

STATIONARY = 0.01
"""Largest gradient of a fit that can be certified, as a share of the penalty's own."""
TOLERANCE = 1e-3
"""Largest magnitude of a negative eigenvalue that counts as zero at a stationary point."""
LEAST_SIZE = 0.1
"""Smallest size of a component in units of the scale; rough fits leave smaller ones where none is used."""
MOST_DENSE = 2000
"""Largest number of variables for which all eigenvalues are computed."""
WIDTH = 256
"""Number of columns of the matrix that one pass computes."""
KEPT_BYTES = 1 << 26
"""Largest size of residuals that are kept from one product with the matrix to the next."""
LANCZOS = 1e-6
"""Relative residual at which Lanczos' method stops."""

UNLESS_MISSED = "unless Lanczos' method, from a random start, missed the smallest eigenvalue"
"""Reservation about the certificate of more than `MOST_DENSE` variables."""


def tolerance_of(stationarity: float) -> float:
    """Return how far below zero the smallest eigenvalue may be at a point with this stationarity."""
    return TOLERANCE + 2 * stationarity


def unlinked_sentence(groups: Groups, *, by_target: bool) -> str:
    """Say that the rows do not determine how groups of views depend on each other, or only as far as a target does."""
    which = f"No row has views of two of these groups: {groups_in_words(groups)}."
    if by_target:
        return (
            f"{which} Only the target links them: how they depend on each other given the target, and what views of "
            "two groups together say of it, is not determined by the rows."
        )
    return (
        f"{which} How views of different groups depend on each "
        "other is not determined by the rows: nothing is predicted of one from another."
    )


@value_class
@dataclass(frozen=True, repr=False)
class GlobalCertificate(Told):
    """Whether a fit is a global optimum among harmoniums with its penalty, of any number of components.

    Attributes
    ----------
    eigenvalue : float or None
        Smallest eigenvalue of the matrix Q; None where there is no certificate.
    stationarity : float or None
        Norm of the gradient as a share of that of the penalty: zero at a stationary point.
    rank : int
        Number of components that the fit uses.
    n_components : int
        Largest number of components that it may use.
    method : str
        The method of the fit.
    by_lanczos : bool
        Whether there are more than 2000 variables: the eigenvalue is then found by Lanczos' method from a random start,
        which might miss the smallest one.
    unlinked : tuple of tuple of str
        Groups of views that no row links, not even by other views: the rows say nothing of how these depend on
        each other. Empty where all views are linked.
    by_target : bool
        Whether there is a target, which every row has: it links views, as far as they predict it.
    """

    eigenvalue: float | None
    stationarity: float | None
    rank: int
    n_components: int
    method: str = "pseudo-likelihood"
    by_lanczos: bool = False
    unlinked: Groups = ()
    by_target: bool = False

    @property
    def tolerance(self) -> float | None:
        """Tolerance of a negative eigenvalue, as the fit is not exactly stationary."""
        return None if self.stationarity is None else tolerance_of(self.stationarity)

    @property
    def has_ended(self) -> bool:
        """Whether the fit is nearly stationary: the gradient is at most 0.01 of the penalty's."""
        return self.stationarity is not None and self.stationarity <= STATIONARY

    @property
    def is_global(self) -> bool:
        """Whether the fit is certified as a global optimum; with `by_lanczos` unless the eigenvalue was missed."""
        return self.has_ended and not self._leads_down

    @property
    def binds(self) -> bool:
        """Whether all components are used and one more would lower the objective."""
        return self.has_ended and self._leads_down and self.rank >= self.n_components

    @property
    def _leads_down(self) -> bool:
        return self.eigenvalue is not None and self.tolerance is not None and self.eigenvalue < -self.tolerance

    @property
    def sentence(self) -> str:
        """The conclusion in words, and what to change."""
        return self._conclusion + (
            f" {unlinked_sentence(self.unlinked, by_target=self.by_target)}" if self.unlinked else ""
        )

    @property
    def proviso(self) -> str:
        """Reservation about the certificate, as the end of a sentence; "" where it is proved."""
        return f", {UNLESS_MISSED}" if self.by_lanczos else ""

    @property
    def _conclusion(self) -> str:
        if self.method == "cd":
            return (
                "No certificate: contrastive divergence is not convex, and other starts may end elsewhere. "
                "Give n_init to see whether they do, or method='pseudo-likelihood', which has a certificate."
            )
        if self.eigenvalue is None or self.stationarity is None:
            return "No certificate: rows that lack a Gaussian view make the problem one that is not convex."
        if not self.has_ended:
            return (
                f"Not shown to be a global optimum: the fit had not ended when it stopped (a gradient of "
                f"{self.stationarity:.2g} of the penalty's was left, and at most {STATIONARY} may be). "
                "Give a larger max_iter and a smaller tol."
            )
        number = f"smallest eigenvalue {self.eigenvalue:.2g}, tolerance {self.tolerance:.1g}"
        if self.is_global:
            return (
                f"A global optimum{self.proviso}: with this penalty no harmonium of any number of components is better "
                f"({number})."
            )
        if self.binds:
            return (
                f"One component more than n_components={self.n_components} would be used ({number}). "
                "Give grow=True or a larger n_components, or a larger l2."
            )
        return (
            f"Not shown to be a global optimum: {self.rank} of {self.n_components} components are used, but a "
            f"direction leads down ({number}). Give grow=True, a smaller tol or a larger max_iter."
        )


@dataclass(frozen=True)
class Optimality:
    """Optimality conditions at the parameters of a fit."""

    eigenvalue: float  # smallest eigenvalue of Q; see `Curvature.largest` for many variables
    stationarity: float  # norm of the gradient as a share of that of the penalty
    lower_bound: float  # lower bound on the objective over all parameters, if the eigenvalue is the smallest
    directions: Array  # (n_rows, q): eigenvectors of the most negative eigenvalues, in units of the scale

    @property
    def leads_down(self) -> bool:
        """Whether new components along `directions` lower the objective."""
        return self.eigenvalue < -tolerance_of(self.stationarity)


def optimality(cost: Penalised, at: Parameters, most: int = 1) -> Optimality | None:
    """Return the optimality of a fit; None if rows lack Gaussian views, as the objective is then not convex in J."""
    problem = cost.problem
    if not problem.convex or any(len(part.seen.missing_gaussian) for part in problem.parts):
        return None
    if problem.layout.n_rows == 0:
        return Optimality(1.0, 0.0, cost.value(at), np.empty((0, 0)))
    curvature = Curvature(problem, at, cost.scale)
    values, vectors = curvature.largest(most)
    eigenvalues = 1 - values / cost.l2
    objective, slope = cost.value_and_slope(at)
    inner, (low, high) = cost.inward(at), cost.box(at.n_components)
    away = float(np.linalg.norm(np.clip(inner - slope.packed(), low, high) - inner))
    size = max(float(np.linalg.norm(cost.scaled(at))), LEAST_SIZE)
    bound = _lower_bound(cost, at, objective, slope, float(eigenvalues[0]))
    negative = int(np.sum(eigenvalues < -TOLERANCE))
    return Optimality(
        float(eigenvalues[0]), away / (cost.l2 * size), bound, np.ascontiguousarray(vectors[:, :negative])
    )


def certified(cost: Penalised, at: Parameters) -> Certificate:
    """Bound how far parameters are from the optimum."""
    found = optimality(cost, at)
    if found is None:
        raise ValueError("rows of X lack a Gaussian view: the problem is then not convex, and no bound is known")
    return Certificate(
        found.lower_bound,
        cost.value(at),
        "tangent of a function that is convex in J = W W'",
        "log-loss",
        "min",
        solution="harmonium with this penalty",
        unit="log units",
        unless=UNLESS_MISSED if is_large(cost.problem.layout.n_rows) else "",
    )


def _lower_bound(cost: Penalised, at: Parameters, objective: float, slope: Parameters, eigenvalue: float) -> float:
    """Return a lower bound on the objective: the smallest value of its tangent over parameters that could be better.

    In J the tangent is smallest along the smallest eigenvalue, and the objective bounds the trace of a better J; linear
    terms and 1 / s lie in their box.
    """
    learnt = np.isnan(cost.variance)
    slack = _least(slope.intercept / cost.units, at.intercept, -cost.largest_intercept, cost.largest_intercept)
    s = at.variance[learnt]
    slack += _least(-slope.log_variance[learnt] * s, 1 / s, 1 / MOST_VARIANCE, 1 / LEAST_VARIANCE)
    along = float(np.einsum("ik,ik->", slope.weights, cost.scaled(at)))
    least = 0.5 * float(np.log(2 * np.pi * np.where(learnt, LEAST_VARIANCE, cost.variance)).sum())
    trace = max(2 * (objective - least) / cost.l2, 0.0)
    return objective + slack - along / 2 + cost.l2 / 2 * min(eigenvalue, 0.0) * trace


def _least(slope: Array, at: Array, low: Array | float, high: Array | float) -> float:
    """Return the smallest change of a linear function over a box, from the point `at`: at most zero."""
    return float(np.minimum(slope * (low - at), slope * (high - at)).sum())


def is_large(n_rows: int) -> bool:
    """Return whether Lanczos' method finds the eigenvalues of a matrix of this size; it might miss the largest."""
    return n_rows > MOST_DENSE


class Curvature:
    """The gradient of the mean log pseudo-likelihood (minus loss) in J, times -2, in units of `scale`.

    Rows may lack discrete views; they may lack Gaussian views only at W = 0, to first order in J.

    Parameters
    ----------
    scale : ndarray of shape (n_rows,)
        Zero for rows whose weights are fixed at zero: the matrix is zero there.
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
        """Return the matrix times `vectors` (n_rows, q)."""
        out = np.zeros_like(vectors)
        for (rows, piece), share in zip(self.pieces, self.shares, strict=True):
            out[rows] += share * piece.times(vectors[rows])
        return out

    def matrix(self) -> Array:
        """Return the whole symmetric matrix."""
        out = np.zeros((self.size, self.size))
        for (rows, piece), share in zip(self.pieces, self.shares, strict=True):
            out[np.ix_(rows, rows)] += share * piece.matrix()
        return out

    def largest(self, k: int) -> tuple[Array, Array]:
        """Return the k largest eigenvalues in falling order, and their eigenvectors (n_rows, k).

        For many variables (`by_lanczos`) they are Ritz values of Lanczos' method from a random start plus the norms of
        their residuals, within which an eigenvalue lies; the method might miss the largest one.
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
    """Return the rows of W and V that enter the likelihood of a part, and the matrix of that part."""
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
    """The matrix for complete rows."""

    def __init__(self, problem: PseudoLikelihood, at: Parameters, scale: Array) -> None:
        self.problem, self.scale = problem, scale
        ((self.part, self.view),) = problem.views(at)
        self.total = self.part.data.total_weight
        u, s = self.view.u, self.view.s
        self.covariance_root = s[:, None] * u
        self.variance, self.inverse = s, self.view.inverse
        self.kept: dict[int, Residuals] = {}
        self.keeps = 8 * self.part.data.n_units * problem.layout.n_rows <= KEPT_BYTES

    def residuals(self, block: Block) -> Residuals:
        """Return the residuals of a block."""
        if not self.keeps:
            return self.view.residuals(block)
        if block.first not in self.kept:
            self.kept[block.first] = self.view.residuals(block)
        return self.kept[block.first]

    def times(self, vectors: Array) -> Array:
        """Return the matrix times `vectors` (n_rows, q)."""
        v = self.scale[:, None] * vectors

        def visit(block: Block) -> Array:
            found = self.residuals(block)
            return self._forward(block, found, v) + self._backward(block, found, v)

        out = self.part.data.map_sum(visit) - 2 * self._covariance_times(v)
        return np.asarray(self.scale[:, None] * out / self.total)

    def matrix(self) -> Array:
        """Return the whole symmetric matrix."""
        n = self.problem.layout.n_rows
        half = np.empty((n, n))
        for a in range(0, n, WIDTH):  # a slice at a time: sums over blocks hold three of what they add up
            at = slice(a, min(a + WIDTH, n))
            v = np.zeros((n, at.stop - a))
            v[np.arange(a, at.stop), np.arange(at.stop - a)] = self.scale[at]

            def visit(block: Block, v: Array = v) -> Array:
                return self._forward(block, self.residuals(block), v)

            half[:, at] = self.part.data.map_sum(visit) - self._covariance_times(v)
        half *= self.scale[:, None] / self.total
        return np.asarray(half + half.T)

    def _covariance_times(self, v: Array) -> Array:
        """Return the covariance of Gaussian variables given discrete ones, summed over rows, times `v` / 2."""
        out, g = np.zeros_like(v), self.problem.layout.n_gaussian
        root = self.covariance_root
        out[:g] = self.total / 2 * (self.variance[:, None] * v[:g] + root @ (self.inverse @ (root.T @ v[:g])))
        return out

    def _forward(self, block: Block, found: Residuals, v: Array) -> Array:
        """Return E v, where E sums residuals of variables times the features of their natural parameters."""
        layout, centre = self.problem.layout, self.problem.centre
        n, g = layout.n_variables, layout.n_gaussian
        bits, levels = slice(g, g + layout.n_bits), slice(layout.first_level, n)
        z, x, c = block.columns[:3]
        w = _column(block)
        zv, mv = z @ v[:g], found.means @ v[:g]
        discrete = x @ v[bits]
        discrete += c @ v[levels]
        discrete -= centre @ v[:n]
        for table, rows in self.view.tables(block):
            discrete += table @ v[rows]
        out = np.empty((layout.n_rows, v.shape[1]))
        out[:g] = z.T @ (w * (discrete + zv / 2)) - found.means.T @ (w * (discrete + mv / 2))
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
        """Return E' v; see `_forward`."""
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
        zv, mv = z @ v[:g], found.means @ v[:g]
        out[:g] = z.T @ (back + w * zv / 2) - found.means.T @ (w * mv / 2)
        back += w * (zv - mv)
        total = back.sum(axis=0)
        out[bits] = x.T @ back - np.outer(centre[bits], total) + self._own_bits(x, found.bits)[:, None] * v[bits]
        out[levels] = c.T @ back - np.outer(centre[levels], total)
        for (table, rows), term in zip(self.view.tables(block), found.structured, strict=True):
            out[rows] = table.T @ back + term.own @ v[rows]
        for at in layout.among_levels:
            own, r, vl = c[:, at], found.levels[:, at], v[levels][at]
            out[levels][at] += r.sum(axis=0)[:, None] * vl / 2 - own.T @ (r @ vl)
        return out

    def _own_bits(self, x: Any, residuals: Array) -> Array:
        """Return the diagonal correction for bits, which do not predict themselves."""
        on = np.bincount(x.indices, weights=residuals.ravel()[positions(x)], minlength=x.shape[1])
        return np.asarray(residuals.sum(axis=0) / 2 - on)


def _column(block: Block) -> Array | float:
    return 1.0 if block.weights is None else block.weights[:, None]
