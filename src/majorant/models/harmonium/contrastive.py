r"""The mean-field contrastive divergence of a harmonium: the objective of ``method="cd"``, with its exact gradient.

Between the rows and a fully factorised q that starts at them and takes n sweeps towards the model,

.. math:: L = F(q_0) - F(q_n), \qquad F(q) = E_q[\log q - \log \tilde p],

:math:`\tilde p` the model without its constant. A sweep sets each variable to its expectation given the latents' mean,
and then the mean to :math:`m_t = \sum_i (x_i^t - \mu_i) W_i + \sum_j z_j^t U_j`. As both steps lower F and
:math:`F \ge -\log Z`, L rises with n and is never above the exact negative log-likelihood: it is too low by what a
factorised q misses. Of Gaussian variables that is :math:`-\frac12 \log \det(I - U^\top S U)` in the limit of many
sweeps. It is added here; without it L has its minimum where the model stops being proper.

With A(m) the sum of the log-partition functions of all variables at the natural parameters that m gives,
:math:`F(q_n) = -A(m_{n-1}) + (m_n - c)^\top m_{n-1} - |m_n|^2 / 2`, c what m is of a row of zeros; and the gradient
goes back through the sweeps by the chain rule, for L is no bound in which q could be held fixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from majorant.data.chunks import Block
from majorant.models.harmonium.layout import Parameters, Seen
from majorant.models.harmonium.pseudo_likelihood import BlockView, PseudoLikelihood, softplus_and_minus_sigmoid

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ContrastiveDivergence(PseudoLikelihood):
    r"""Minus the contrastive divergence of rows, minus the loss of what is predicted.

    A categorical variable of weight C adds (C - 1) times its log-probability given all else, which is exact: a label
    of weight 1 is one more view, as of a tri-wing harmonium.

    Attributes
    ----------
    n_sweeps : int
        n, at least 1.
    """

    n_sweeps: int = 5
    convex: ClassVar[bool] = False

    def view(self, seen: Seen, at: Parameters) -> BlockView:
        """See `PseudoLikelihood`."""
        return _ContrastiveView(self, seen, at)


def contrastive(problem: PseudoLikelihood, n_sweeps: int) -> ContrastiveDivergence:
    """The same rows and target with the other objective.

    Raises
    ------
    ValueError
        If there is a structured view.
    """
    if problem.layout.structures:
        raise ValueError(
            "method='cd' has no mean field of chains or of bits with edges: take method='pseudo-likelihood', or views "
            "without structure"
        )
    return ContrastiveDivergence(
        problem.layout, problem.centre, problem.parts, problem.loss, problem.loss_weight, n_sweeps
    )


class _ContrastiveView(BlockView):
    """A model as rows of one pattern of views meet it, with the sweeps of its mean field."""

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
        """The expectation of each variable at its natural parameter, and A of each row; `eta` is used up."""
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
        """The derivative of expectations y in their natural parameters, times a change of these."""
        out = y * along
        out[:, self.gaussian] = self.s * along[:, self.gaussian]
        out[:, self.bits] -= y[:, self.bits] * out[:, self.bits]
        for at in self.groups:
            out[:, at] -= y[:, at] * out[:, at].sum(axis=1, keepdims=True)
        return out

    def swept(self, m: Array) -> tuple[list[Array], list[Array], Array]:
        """Latents' means from that of the rows on, what is expected at each but the last, and A at the last but one."""
        means, expected = [m], []
        for _ in range(self.n_sweeps):
            y, log_partition = self.expected(means[-1] @ self.w.T + self.a)
            expected.append(y)
            means.append(y @ self.w + self.shift)
        return means, expected, log_partition

    def divergence(self, block: Block, means: list[Array], log_partition: Array) -> Array:
        """L of each row, without the determinant."""
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
        """Minus L, and the loss, of a block."""
        m = self.latents(block)
        means, _, log_partition = self.swept(m)
        value = -block.total(self.divergence(block, means, log_partition)) + block.weight / 2 * self.log_det
        return value + self._variables(block, m, self.extra)[0], self._supervised(block, m)[0]

    def sums(self, block: Block) -> Array:
        """See `BlockView`: the adjoints of the means go back from the last sweep to the rows."""
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
