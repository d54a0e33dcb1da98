"""Objectives: penalised pseudo-likelihood, with its closed form for Gaussian views alone; contrastive divergence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.special import logsumexp

from majorant.data.chunks import Block
from majorant.models.harmonium.layout import Parameters, Seen, shrunk
from majorant.models.harmonium.pseudo_likelihood import BlockView, PseudoLikelihood
from majorant.models.harmonium.views import LEAST_VARIANCE, MOST_VARIANCE
from majorant.solvers.logistic import softplus_and_minus_sigmoid
from majorant.solvers.smooth import SmoothResult, lbfgs

Array = NDArray[np.float64]

RANK = 1e-2
"""Components smaller than this share of the largest are dropped."""
NOTHING = 1e-3
"""Size of a component, in units of the scale, below which it is zero up to the tolerance of L-BFGS."""
LARGEST_INTERCEPT = 30.0
"""Bound on linear terms, in their own units: that of a probability of 1e-13."""
LARGEST_COUPLING = 10.0
"""Bound on the linear terms of couplings, which are infinite where neighbours were never on together."""
MEMORY = 20
"""Pairs of steps and gradients that L-BFGS keeps."""
WIDEST = 500
"""Largest number of columns for which all of their covariance is taken, if there are not fewer rows."""
LANCZOS = 1e-9
"""Relative residual at which Lanczos' method stops."""


def is_wide(n_rows: int, n_columns: int) -> bool:
    """Return whether there are so many more columns than rows that their covariance is never made."""
    return n_rows < n_columns and n_columns > WIDEST


def takes(n_rows: int, n_columns: int) -> bool:
    """Return whether eigenvectors cost less than the gradients that they replace."""
    return 0 < n_columns <= WIDEST or is_wide(n_rows, n_columns)


@dataclass(frozen=True)
class ClosedForm(ABC):
    r"""The objective of complete rows of Gaussian variables as a function of log s: all else has a closed form.

    With C the covariance of the rows, P the penalties and :math:`\nu_k, v_k` the eigenvalues and eigenvectors of

    .. math:: N(s) = S^{-1/2} (C - \lambda P) S^{-1/2}, \qquad S = \operatorname{diag}(s),

    the objective is least, for given s, at :math:`U = S^{-1/2} (\sqrt{1 - 1/\nu_k}\, v_k)_k` over the K largest
    eigenvalues that exceed 1, where it is

    .. math:: F(s) = \tfrac12 \sum_j [\log 2 \pi s_j + C_{jj} / s_j] + \tfrac12 \sum_k [\log \nu_k - \nu_k + 1].

    L-BFGS over log s alone does not crawl along weak factors, whose size and noise depend on each other. Without
    penalty this is Jöreskog's method [1]_.

    References
    ----------
    .. [1] K. G. Jöreskog, "Some contributions to maximum likelihood factor analysis", Psychometrika, 1967.
    """

    mean: Array  # (n_gaussian,)
    penalties: Array  # (n_gaussian,): penalty of each row of U: the diagonal of lambda P
    n_components: int

    @property
    @abstractmethod
    def variances(self) -> Array:
        """Variances of the columns."""

    @abstractmethod
    def largest(self, root: Array) -> tuple[Array, Array]:
        """Return the largest eigenvalues of N, at least those above 1, and their eigenvectors; root is 1 / sqrt(s)."""

    def _factors(self, log_variance: Array) -> tuple[Array, Array]:
        """Return the eigenvalues above 1, at most `n_components`, in falling order; and their eigenvectors."""
        values, vectors = self.largest(np.exp(-log_variance / 2))
        used = values > 1
        return values[used][::-1], vectors[:, used][:, ::-1]

    def left_by(self, at: Parameters) -> Array:
        """Return log variances for which the model with the weights of `at` matches the variances of the columns."""
        u, s = at.weights, at.variance
        inverse = np.linalg.inv(np.eye(u.shape[1]) - (u.T * s) @ u)
        least = np.finfo(np.float64).tiny  # a column may be constant in the rows that are not held out
        return np.asarray(
            np.log(np.maximum(self.variances, least)) - np.log1p(s * np.einsum("jk,jk->j", u @ inverse, u))
        )

    def value_and_slope(self, log_variance: Array) -> tuple[float, Array]:
        """Return the objective and its gradient in log s."""
        values, vectors = self._factors(log_variance)
        shares = self.variances * np.exp(-log_variance)
        value = (log_variance + shares + np.log(2 * np.pi)).sum() + (np.log(values) - values + 1).sum()
        return float(value) / 2, (1 - shares + vectors**2 @ (values - 1)) / 2

    def parameters(self, log_variance: Array) -> Parameters:
        """Return the optimal parameters for given s; unused components are zero."""
        values, vectors = self._factors(log_variance)
        weights = np.zeros((len(log_variance), self.n_components))
        weights[:, : len(values)] = np.exp(-log_variance / 2)[:, None] * vectors * np.sqrt(1 - 1 / values)
        intercept = self.mean * np.exp(-log_variance) - weights @ (self.mean @ weights)
        return Parameters(weights, intercept, log_variance)


@dataclass(frozen=True)
class FactorAnalysis(ClosedForm):
    """Factor analysis by the covariance of all columns."""

    covariance: Array  # (n_gaussian, n_gaussian)

    @property
    def variances(self) -> Array:
        return np.diag(self.covariance)

    def largest(self, root: Array) -> tuple[Array, Array]:
        matrix = self.covariance * root * root[:, None]
        matrix.ravel()[:: len(root) + 1] -= self.penalties * root**2
        n = len(root)
        found = eigh(
            matrix, subset_by_index=[max(n - self.n_components, 0), n - 1], overwrite_a=True, check_finite=False
        )
        return found[0], found[1]


@dataclass(frozen=True)
class WideFactorAnalysis(ClosedForm):
    """Factor analysis of more columns than rows, by Lanczos' method on a root of their covariance."""

    # (n_rows, n_gaussian): R with C = R'R: rows about their mean, times the roots of their shares of all weight
    root: Array

    @cached_property
    def variances(self) -> Array:
        return np.asarray(np.einsum("ij,ij->j", self.root, self.root))

    @cached_property
    def n_positive(self) -> int:
        """Number of positive eigenvalues of N, the same for all s: that of C - lambda P by Sylvester's law."""
        scaled = self.root / np.sqrt(self.penalties)
        return int(np.sum(np.linalg.eigvalsh(scaled @ scaled.T) > 1))

    def largest(self, root: Array) -> tuple[Array, Array]:
        n, k = len(root), min(self.n_components, self.n_positive)
        if k == 0:
            return np.empty(0), np.empty((n, 0))
        scaled, less = self.root * root, self.penalties * root**2

        def times(v: Array) -> Array:
            return np.asarray(scaled.T @ (scaled @ v) - less * v)

        start = np.random.default_rng(0).normal(size=n)
        values, vectors = eigsh(
            LinearOperator((n, n), matvec=times, dtype=np.float64), k=k, which="LA", v0=start, tol=LANCZOS
        )
        order = np.argsort(values, kind="stable")
        return values[order], vectors[:, order]


@dataclass(frozen=True)
class Penalised:
    r"""Minus the mean log pseudo-likelihood, plus the weighted loss, plus the penalty.

    .. math:: F = -\frac{1}{D} \sum_d \log PL_d + \frac{C}{D} \sum_d \ell_d + \frac{\lambda}{2} \sum_i
              \frac{|W_i|^2}{\mathrm{scale}_i^2}
    """

    problem: PseudoLikelihood
    # (n_rows,): units of W, V and intercepts, in which L-BFGS works and all weights have the same penalty; zero for
    # rows whose weights are fixed at zero
    scale: Array
    l2: float
    variance: Array  # (n_gaussian,): known variances; NaN where they are learnt
    most: Array | float = LARGEST_INTERCEPT  # (n_rows,): bound on linear terms

    @property
    def units(self) -> Array:
        """The scale, with 1 in the place of zero."""
        return np.where(self.scale > 0, self.scale, 1.0)

    def scaled(self, at: Parameters) -> Array:
        """Return W and V in units of the scale."""
        return np.asarray(at.weights / self.units[:, None])

    def size(self, at: Parameters) -> float:
        """Return the largest singular value of W and V, in units of the scale."""
        return float(np.linalg.norm(self.scaled(at), ord=2)) if at.weights.size else 0.0

    def inward(self, at: Parameters) -> Array:
        """Convert parameters to the coordinates of L-BFGS."""
        weights, intercept = self.scaled(at), at.intercept / self.units
        return Parameters(weights, intercept, at.log_variance).packed()

    def outward(self, flat: Array) -> Parameters:
        """Convert coordinates of L-BFGS to parameters."""
        at = Parameters.unpacked(flat, self.problem.layout)
        return Parameters(at.weights * self.scale[:, None], at.intercept * self.units, at.log_variance)

    def penalty(self, at: Parameters) -> float:
        """Return the penalty."""
        scaled = self.scaled(at)
        return self.l2 / 2 * float(np.einsum("ik,ik->", scaled, scaled))

    def value(self, at: Parameters) -> float:
        """Return the objective F."""
        gain, loss = self.problem.gain(at)
        return (self.problem.loss_weight * loss - gain) / self.problem.total_weight + self.penalty(at)

    @property
    def largest_intercept(self) -> Array:
        """Bound on each linear term."""
        layout = self.problem.layout
        bound = np.array(np.broadcast_to(self.most, layout.n_rows))
        for structure, rows in zip(layout.structures, layout.of_structures, strict=True):
            couplings = slice(rows.start + structure.n_nodes, rows.stop)
            bound[couplings] = np.minimum(bound[couplings], LARGEST_COUPLING)
        return bound

    def value_and_slope(self, at: Parameters) -> tuple[float, Parameters]:
        """Return F and its gradient in coordinates of L-BFGS."""
        total, scale = self.problem.total_weight, self.scale[:, None]
        value, gradient = self.problem.value_and_gradient(at)
        weights = -gradient.weights * scale / total + self.l2 * self.scaled(at)
        slope = Parameters(weights, -gradient.intercept * self.units / total, -gradient.log_variance / total)
        return self.penalty(at) - value / total, slope

    def box(self, k: int) -> tuple[Array, Array]:
        """Return the bounds of each coordinate."""
        layout = self.problem.layout
        free = np.full(layout.n_rows * k, np.inf)
        most = self.largest_intercept / self.units
        known = ~np.isnan(self.variance)
        low = np.log(np.where(known, self.variance, LEAST_VARIANCE))
        high = np.log(np.where(known, self.variance, MOST_VARIANCE))
        return np.concatenate([-free, -most, low]), np.concatenate([free, most, high])

    def minimise(self, start: Parameters, *, tol: float, max_iter: int) -> tuple[Parameters, SmoothResult]:
        """Minimise F by L-BFGS from a start, or by factor analysis where all variables are Gaussian.

        F counts as large where the model is improper. A start there is shrunk first: there is no gradient to follow.
        """
        if (
            self.problem.is_factor_analysis
            and start.n_components
            and takes(self.problem.n_units, len(start.log_variance))
        ):
            return self.factors(start, tol=tol, max_iter=max_iter)
        last: float | None = None

        def f(flat: Array) -> tuple[float, Array]:
            nonlocal last
            try:
                last, slope = self.value_and_slope(self.outward(flat))
            except np.linalg.LinAlgError:
                if last is None:
                    raise
                return last + 10 * (1 + abs(last)), np.zeros_like(flat)
            return last, slope.packed()

        first = self.inward(start)
        if not len(first):
            value = f(first)[0]
            return start, SmoothResult(first, value, [value], True)
        low, high = self.box(start.n_components)
        first = np.clip(first, low, high)
        begun = self.outward(first)
        near = shrunk(begun)
        if near is not begun:
            first = self.inward(near)
        found = lbfgs(f, first, tol=tol, gtol=tol**0.5 / 10, memory=MEMORY, max_iter=max_iter, box=(low, high))
        return self.outward(found.x), found

    def factors(self, start: Parameters, *, tol: float, max_iter: int) -> tuple[Parameters, SmoothResult]:
        """Minimise F by `FactorAnalysis`, from the variances that fit the weights of the start."""
        problem, penalties = self.problem, self.l2 / self.scale**2
        analysis: FactorAnalysis | WideFactorAnalysis
        if is_wide(problem.n_units, len(penalties)):
            analysis = WideFactorAnalysis(problem.centred[0], penalties, start.n_components, problem.centred[1])
        else:
            analysis = FactorAnalysis(problem.moments[0], penalties, start.n_components, problem.moments[1])
        low, high = self.box(start.n_components)
        box = low[-len(penalties) :], high[-len(penalties) :]
        first = np.clip(analysis.left_by(shrunk(start)), *box)
        found = lbfgs(
            analysis.value_and_slope, first, tol=tol, gtol=tol**0.5 / 10, memory=MEMORY, max_iter=max_iter, box=box
        )
        return analysis.parameters(found.x), found

    def widened(self, at: Parameters, directions: Array) -> Parameters:
        """Add a component along each direction, of a size that lowers the objective."""
        room = len(self.scale) - at.n_components
        directions = directions[:, :room] * self.scale[:, None]
        now, size = self.value(at), 0.5
        while size > 1e-4:
            weights = np.concatenate([at.weights, size * directions], axis=1)
            wider = Parameters(weights, at.intercept, at.log_variance)
            try:
                if self.value(wider) < now:
                    break
            except np.linalg.LinAlgError:
                pass
            size /= 2
        return wider

    def rotated(self, at: Parameters) -> Parameters:
        """Rotate components so that expected latents are uncorrelated, with falling variance, and drop zero ones.

        The largest weight of each component, in units of the scale, becomes positive.
        """
        scaled = self.scaled(at)
        _, sizes, turn = np.linalg.svd(scaled, full_matrices=False)
        if sizes.max(initial=0.0) < NOTHING:
            return Parameters(np.zeros((len(scaled), 1)), at.intercept, at.log_variance)
        k = int(np.sum(sizes > RANK * sizes[0]))
        at = Parameters(at.weights @ turn[:k].T, at.intercept, at.log_variance)
        moments = np.zeros((k + 1, k + 1))
        for part, view in self.problem.views(at):
            r = np.eye(k) if view.marginal.turn is None else view.marginal.turn

            def visit(block: Block, view: Any = view, r: Array = r) -> Array:
                h = np.column_stack([view.latents(block) @ r.T, np.ones(len(block))])
                return np.asarray((h if block.weights is None else h * block.weights[:, None]).T @ h)

            moments += part.data.map_sum(visit)
        mean = moments[:k, k] / moments[k, k]
        _, axes = np.linalg.eigh(moments[:k, :k] / moments[k, k] - np.outer(mean, mean))
        weights = at.weights @ axes[:, ::-1]
        scaled = weights / self.units[:, None]
        largest = scaled[np.abs(scaled).argmax(axis=0), np.arange(k)]
        weights = weights * np.where(largest < 0, -1.0, 1.0)
        return Parameters(np.ascontiguousarray(weights), at.intercept, at.log_variance)


@dataclass(frozen=True)
class ContrastiveDivergence(PseudoLikelihood):
    r"""Minus the mean-field contrastive divergence of rows and the loss of the target (``method="cd"``).

    Between the rows and a fully factorised q that starts at them and takes n sweeps towards the model,

    .. math:: L = F(q_0) - F(q_n), \qquad F(q) = E_q[\log q - \log \tilde p],

    :math:`\tilde p` the model without its constant. A sweep sets each variable to its expectation given the latents'
    mean, and then the mean to :math:`m_t = \sum_i (x_i^t - \mu_i) W_i + \sum_j z_j^t U_j`. As both steps lower F and
    :math:`F \ge -\log Z`, L rises with n and never exceeds the exact negative log-likelihood. For Gaussian variables it
    is too low by :math:`-\frac12 \log \det(I - U^\top S U)` in the limit of many sweeps, which is added here; without
    it L has its minimum where the model stops being proper.

    With A(m) the sum of the log-partition functions of all variables at the natural parameters that m gives,
    :math:`F(q_n) = -A(m_{n-1}) + (m_n - c)^\top m_{n-1} - |m_n|^2 / 2`, c the value of m for a row of zeros. The
    gradient goes back through all sweeps by the chain rule: L is not a bound in which q could be held fixed.

    A categorical variable of weight C adds (C - 1) times its exact log-probability given all else: a label of weight 1
    is one more view, as of a tri-wing harmonium.
    """

    n_sweeps: int = 5  # number of sweeps n, at least 1
    convex: ClassVar[bool] = False

    def view(self, seen: Seen, at: Parameters) -> BlockView:
        return _ContrastiveView(self, seen, at)


def contrastive(problem: PseudoLikelihood, n_sweeps: int) -> ContrastiveDivergence:
    """Replace the pseudo-likelihood of a problem by contrastive divergence."""
    if problem.layout.structures:
        raise ValueError(
            "method='cd' has no mean field of chains or of bits with edges: take method='pseudo-likelihood', or views "
            "without structure"
        )
    return ContrastiveDivergence(
        problem.layout, problem.centre, problem.parts, problem.loss, problem.loss_weight, n_sweeps
    )


class _ContrastiveView(BlockView):
    """Contrastive divergence of rows that have the same views."""

    def __init__(self, problem: ContrastiveDivergence, seen: Seen, at: Parameters) -> None:
        super().__init__(problem, seen, at)
        self.n_sweeps = problem.n_sweeps
        self.rows = seen.columns(self.layout)
        self.w, self.a = self.theta.weights[self.rows], self.theta.intercept[self.rows]
        g, b = len(seen.gaussian), len(seen.bits)
        self.gaussian, self.bits = slice(0, g), slice(g, g + b)
        edges = g + b + np.cumsum([0, *(self.layout.levels[v] for v in seen.variables)])
        self.groups = [slice(int(low), int(high)) for low, high in pairwise(edges)]
        self.centre = np.concatenate([np.zeros(g), problem.centre[self.rows[g:]]])
        self.extra = tuple(weight - 1 for weight in self.layout.level_weights)

    def expected(self, eta: Array) -> tuple[Array, Array]:
        """Return the expectations of variables at natural parameters `eta`, which is overwritten, and A of each row."""
        y = np.empty_like(eta)
        z, bits = self.gaussian, self.bits
        np.multiply(eta[:, z], self.s, out=y[:, z])
        log_partition = np.einsum("ij,ij->i", eta[:, z], y[:, z]) / 2 + np.log(2 * np.pi * self.s).sum() / 2
        if bits.stop > bits.start:
            softplus, minus = softplus_and_minus_sigmoid(eta[:, bits])
            log_partition += softplus
            np.negative(minus, out=y[:, bits])
        for at in self.groups:
            of_group = logsumexp(eta[:, at], axis=1)
            log_partition += of_group
            y[:, at] = np.exp(eta[:, at] - of_group[:, None])
        return y, np.asarray(log_partition)

    def curved(self, y: Array, along: Array) -> Array:
        """Return the derivative of expectations y in their natural parameters, times the direction `along`."""
        out = y * along
        out[:, self.gaussian] = self.s * along[:, self.gaussian]
        out[:, self.bits] -= y[:, self.bits] * out[:, self.bits]
        for at in self.groups:
            out[:, at] -= y[:, at] * out[:, at].sum(axis=1, keepdims=True)
        return out

    def swept(self, m: Array) -> tuple[list[Array], list[Array], Array]:
        """Return means m_0 to m_n, expectations of variables at all but the last, and A at the last but one."""
        means, expected = [m], []
        for _ in range(self.n_sweeps):
            y, log_partition = self.expected(means[-1] @ self.w.T + self.a)
            expected.append(y)
            means.append(y @ self.w + self.shift)
        return means, expected, log_partition

    def divergence(self, block: Block, means: list[Array], log_partition: Array) -> Array:
        """Return L of each row, without the log determinant."""
        z, x, c = block.columns[:3]
        g, b = self.gaussian.stop, self.bits.stop
        clamped = np.einsum("ij,ij,j->i", z, z, 0.5 / self.s)
        clamped -= z @ self.a[:g]
        clamped -= x @ self.a[g:b]
        clamped -= c @ self.a[b:]
        first, before, last = means[0], means[-2], means[-1]
        clamped -= np.einsum("ik,ik->i", first, first) / 2
        free = np.einsum("ik,ik->i", last - self.shift, before) - np.einsum("ik,ik->i", last, last) / 2
        return np.asarray(clamped + log_partition - free)

    def values(self, block: Block) -> tuple[float, float]:
        """Return minus L and the loss, summed over a block."""
        m = self.latents(block)
        means, _, log_partition = self.swept(m)
        value = -block.total(self.divergence(block, means, log_partition)) + block.weight / 2 * self.log_det
        return value + self._variables(block, m, self.extra)[0], self._supervised(block, m)[0]

    def sums(self, block: Block) -> Array:
        # Adjoints of the means go back from the last sweep to the rows.
        z, x, c = block.columns[:3]
        seen, g = self.seen, self.gaussian.stop
        m = self.latents(block)
        means, expected, log_partition = self.swept(m)
        value = -block.total(self.divergence(block, means, log_partition)) + block.weight / 2 * self.log_det
        gradient = Parameters(
            np.zeros_like(self.theta.weights), np.zeros(self.layout.n_rows), np.zeros(self.layout.n_gaussian)
        )
        of_m = np.zeros_like(m)
        value += self._add_variables(block, m, self.extra, gradient, of_m)
        value += self._add_loss(block, m, gradient, of_m)

        r = np.ones(len(block)) if block.weights is None else block.weights
        w = r[:, None]
        before, after = means[-2] * w, means[-1] * w
        adjoint = before - after
        of_shift = adjoint - before
        of_w = expected[-1].T @ of_shift
        of_a = np.concatenate([z.T @ r, x.T @ r, c.T @ r]) - expected[-1].T @ r
        eta = expected[-1][:, :g] / self.s
        of_log_variance = np.einsum("ij,ij->j", z * w, z) / (2 * self.s) - block.weight / 2
        of_log_variance -= self.s / 2 * np.einsum("ij,ij->j", eta * w, eta)
        for sweep in range(self.n_sweeps - 1, -1, -1):
            along = adjoint @ self.w.T
            back = self.curved(expected[sweep], along)
            of_log_variance += np.einsum("ij,ij->j", expected[sweep][:, :g], along[:, :g])
            of_a += back.sum(axis=0)
            of_w += back.T @ means[sweep]
            adjoint = back @ self.w
            if sweep:
                of_w += expected[sweep - 1].T @ adjoint
                of_shift += adjoint
        of_m += adjoint + m * w
        of_w += np.concatenate([z.T @ of_m, x.T @ of_m, c.T @ of_m])
        total = (of_shift + of_m).sum(axis=0)
        of_w -= np.outer(self.centre, total)

        spread = self.u @ self.inverse
        of_w[:g] -= block.weight * self.s[:, None] * spread
        of_log_variance -= block.weight / 2 * self.s * np.einsum("jk,jk->j", spread, self.u)
        gradient.weights[self.rows] += of_w
        gradient.intercept[self.rows] += of_a
        gradient.log_variance[seen.gaussian] += of_log_variance
        return np.concatenate([[value], total, gradient.packed()])
