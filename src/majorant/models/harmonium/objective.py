"""Objectives: penalised pseudo-likelihood, and contrastive divergence."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from majorant.data.chunks import Block
from majorant.models.harmonium.factor_analysis import FactorAnalysis, WideFactorAnalysis, is_wide, takes
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
