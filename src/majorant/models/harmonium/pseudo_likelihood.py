r"""The block pseudo-likelihood of a harmonium: its value, gradient and residuals, in passes over blocks of rows.

With the latents integrated out, :math:`\log p(x, z) = a^\top x + b^\top z - \sum_j z_j^2 / 2 s_j + |m|^2 / 2` up to a
constant, :math:`m = \sum_i (x_i - \mu_i) W_i + \sum_j z_j U_j`, so each of these conditionals is exact and cheap: of a
bit given all else, of a categorical variable given all else, and of all Gaussian variables together given all discrete
ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator
from scipy.special import logsumexp

from majorant.data.chunks import BLOCK_BYTES, Block, Chunks
from majorant.models.harmonium.layout import (
    Layout,
    Loss,
    Marginal,
    Parameters,
    Pattern,
    Seen,
    Supervision,
    centre_of,
    layout_of,
    patterns_of,
)
from majorant.models.harmonium.structure import Conditionals
from majorant.models.harmonium.tables import Distinct
from majorant.models.harmonium.variables import FittedView
from majorant.solvers.logistic import positions, softplus_and_minus_sigmoid

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """Rows that have the same views."""

    seen: Seen
    # Gaussian variables (dense), bits (CSR of ones), categorical variables (CSR, one-hot), y if there is a loss, and
    # data of each observed structured view
    data: Chunks


@dataclass(frozen=True)
class Residuals:
    """Derivatives of the log-likelihood of a block of rows in the natural parameters of observed variables."""

    # (n_rows, ...): values minus expectations, times weights of rows
    bits: Array
    levels: Array
    means: Array  # (n_rows, n_gaussian_seen): expectation of the Gaussian variables given the discrete ones
    slopes: Array  # (n_rows, n_scores): derivatives of the loss in the scores, times weights of rows
    structured: list[Conditionals]  # conditionals of each structured view


@dataclass(frozen=True)
class PseudoLikelihood:
    """Log pseudo-likelihood of rows, minus the loss of a target.

    Methods raise numpy.linalg.LinAlgError where the model is not proper.
    """

    layout: Layout
    centre: Array  # (n_variables,): means mu of the variables, which stand for missing discrete ones
    parts: tuple[Part, ...]
    loss: Loss | None = None
    loss_weight: float = 0.0
    convex: ClassVar[bool] = True
    """Whether the objective is convex in J for complete rows."""

    @property
    def total_weight(self) -> float:
        """Sum of the weights of all rows."""
        return sum(part.data.total_weight for part in self.parts)

    @property
    def is_factor_analysis(self) -> bool:
        """Whether all variables are Gaussian and all rows complete."""
        layout = self.layout
        alone = layout.n_gaussian == layout.n_rows
        return self.convex and alone and not any(len(part.seen.missing_gaussian) for part in self.parts)

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """Mean and covariance of Gaussian variables of complete rows."""

        def visit(block: Block) -> Array:
            z = np.column_stack([np.ones(len(block)), block.columns[0]])
            return np.asarray((z if block.weights is None else z * block.weights[:, None]).T @ z)

        sums = np.sum([part.data.map_sum(visit) for part in self.parts], axis=0) / self.total_weight
        mean = sums[0, 1:]
        return mean, sums[1:, 1:] - np.outer(mean, mean)

    @property
    def n_units(self) -> int:
        """Number of distinct rows."""
        return sum(part.data.n_units for part in self.parts)

    @property
    def frequencies(self) -> tuple[Array, NDArray[np.bool_]]:
        """Means of bits and levels in these rows, of others `centre`; and whether rows of W are not constant bits."""
        layout = self.layout
        sums = np.zeros((2, layout.n_variables))
        for part in self.parts:
            rows = np.concatenate([part.seen.bits, part.seen.levels(layout)])

            def visit(block: Block) -> Array:
                w = _weights(block)
                on = np.concatenate([block.columns[1].T @ w, block.columns[2].T @ w])
                return np.array([on, w.sum() - on])

            sums[:, rows] += part.data.map_sum(visit)
        varying = np.ones(layout.n_rows, dtype=bool)
        is_discrete = np.zeros(layout.n_variables, dtype=bool)
        is_discrete[layout.n_gaussian : layout.n_gaussian + layout.n_bits] = is_discrete[layout.first_level :] = True
        varying[: layout.n_variables] = ~is_discrete | (sums.min(axis=0) > 1e-12 * sums.max(axis=0))
        means = np.where(sums.sum(axis=0) > 0, sums[0] / np.maximum(sums.sum(axis=0), 1e-300), self.centre)
        return means, varying

    @cached_property
    def centred(self) -> tuple[Array, Array]:
        """Mean of Gaussian variables of complete rows, and a root R of their covariance R'R: a row for each row."""
        width = (self.layout.n_gaussian,)
        rows = np.concatenate([part.data.map_rows(lambda block: block.columns[0], width) for part in self.parts])
        share = np.concatenate([part.data.map_rows(_weights, ()) for part in self.parts]) / self.total_weight
        mean = share @ rows
        rows -= mean
        rows *= np.sqrt(share)[:, None]
        return mean, rows

    def weighing(self, weight: float) -> PseudoLikelihood:
        """Replace the weight of the loss, or of the label."""
        if self.loss is None and not self.layout.has_label:
            return self
        if self.loss is not None:
            return replace(self, loss_weight=weight)
        return replace(self, layout=replace(self.layout, level_weights=(*self.layout.level_weights[:-1], weight)))

    def of(self, masks: list[NDArray[np.bool_]]) -> PseudoLikelihood:
        """Select the rows of a mask for each part."""
        pairs = zip(self.parts, masks, strict=True)
        return replace(self, parts=tuple(Part(p.seen, p.data.part(m, kept=True)) for p, m in pairs if m.any()))

    def target_losses(self, at: Parameters) -> Array:
        """Return the weight of each row, and the loss of its target or of the label's conditional."""
        found = []
        for part, view in self.views(at):
            found.append(np.column_stack([part.data.map_rows(_weights, ()), part.data.map_rows(view.losses, ())]))
        return np.concatenate(found)

    def gain(self, at: Parameters) -> tuple[float, float]:
        """Return log pseudo-likelihood and loss, summed over rows."""
        total = np.zeros(2)
        for part in self.parts:
            view = self.view(part.seen, at)
            total += part.data.map_sum(lambda block, view=view: np.array(view.values(block)))  # type: ignore[misc]
        return float(total[0]), float(total[1])

    def log_pseudo_likelihood(self, at: Parameters) -> float:
        """Return log pseudo-likelihood of all rows, by which fits are compared whatever they minimise."""
        return PseudoLikelihood(self.layout, self.centre, self.parts).gain(at)[0]

    def value_and_gradient(self, at: Parameters) -> tuple[float, Parameters]:
        """Return log pseudo-likelihood minus weighted loss, summed over rows, and its gradient."""
        value, flat = 0.0, np.zeros(len(at.packed()))
        for part in self.parts:
            view = self.view(part.seen, at)
            sums = part.data.map_sum(view.sums)
            k = at.n_components
            gradient = Parameters.unpacked(sums[1 + k :], self.layout)
            value += float(sums[0])
            flat += view.marginal.pulled_back(gradient, sums[1 : 1 + k]).packed()
        return value, Parameters.unpacked(flat, self.layout)

    def view(self, seen: Seen, at: Parameters) -> BlockView:
        """Return the model for rows that have the variables `seen`."""
        return BlockView(self, seen, at)

    def views(self, at: Parameters) -> Iterator[tuple[Part, BlockView]]:
        """Yield each part with the model for its rows."""
        for part in self.parts:
            yield part, self.view(part.seen, at)


class BlockView:
    """A model for rows that have the same views, in the coordinates of `Marginal`."""

    def __init__(self, problem: PseudoLikelihood, seen: Seen, at: Parameters) -> None:
        self.problem, self.seen, self.layout = problem, seen, problem.layout
        self.marginal = Marginal.of(at, seen.missing_gaussian)
        theta = self.marginal.parameters
        self.theta = theta
        self.levels = seen.levels(self.layout)
        self.k = theta.n_components
        self.u, self.s = theta.weights[seen.gaussian], theta.variance[seen.gaussian]
        self.b = theta.intercept[seen.gaussian]
        self.wb, self.wc = theta.weights[seen.bits], theta.weights[self.levels]
        self.v, self.c0 = theta.weights[self.layout.n_variables :], theta.intercept[self.layout.n_variables :]
        places = self.layout.of_structures
        self.structured = [(self.layout.structures[i], places[i]) for i in seen.structures]
        precision = np.eye(self.k) - (self.u.T * self.s) @ self.u
        factor = np.linalg.cholesky(precision)
        self.log_det = 2 * float(np.log(np.diag(factor)).sum())
        self.inverse = np.linalg.inv(precision)
        self.beta = self.u.T @ (self.s * self.b)
        centre = problem.centre
        self.shift = self.marginal.shift - centre[seen.bits] @ self.wb - centre[self.levels] @ self.wc

    def latents(self, block: Block) -> Array:
        """Return the expected latents m."""
        z, x, c = block.columns[:3]
        m = z @ self.u
        m += self.shift
        m += x @ self.wb
        m += c @ self.wc
        for table, rows in self.tables(block):
            m += table @ self.theta.weights[rows]
        return np.asarray(m)

    def structures(self, block: Block) -> list[tuple[LinearOperator, Any]]:
        """Return features and cells of each structured view, the last columns of a block; they are kept beside it."""
        known = block.derived.get("structures")
        if known is None or known[0] is not block.columns:
            columns = block.columns[len(block.columns) - len(self.structured) :]
            views = zip(self.structured, columns, strict=True)
            read = [(structure.table(data), structure.cells(data)) for (structure, _), data in views]
            block.derived["structures"] = known = (block.columns, read)
        return list(known[1])

    def tables(self, block: Block) -> Iterator[tuple[LinearOperator, slice]]:
        """Yield the features of each structured view, with its rows of W."""
        for (table, _), (_, rows) in zip(self.structures(block), self.structured, strict=True):
            yield table, rows

    def _structured(self, block: Block, m: Array) -> list[Conditionals]:
        """Return the conditionals of each structured view."""
        theta = self.theta
        return [
            structure.conditionals(cells, m, theta.weights[rows], theta.intercept[rows], block.weights)
            for (_, cells), (structure, rows) in zip(self.structures(block), self.structured, strict=True)
        ]

    def values(self, block: Block) -> tuple[float, float]:
        """Return log pseudo-likelihood and loss, summed over a block."""
        m = self.latents(block)
        value = self._bits(block, m)[0] + self._variables(block, m)[0] + self._gaussians(block, m)[0]
        value += sum(found.value for found in self._structured(block, m))
        return value, self._supervised(block, m)[0]

    def losses(self, block: Block) -> Array:
        """Return the loss of each row, or minus the logarithm of the probability of its label."""
        m = self.latents(block)
        if self.problem.loss is not None:
            return self.problem.loss.value_and_slope(m @ self.v.T + self.c0, block.columns[3])[0]
        at = self.layout.of_variables[-1]
        w, code = self.theta.weights[at], block.columns[2].indices.reshape(len(block), -1)[:, -1]
        code = code - (len(self.levels) - len(w))
        logits = (m - w[code]) @ w.T + self.theta.intercept[at] + np.einsum("lk,lk->l", w, w) / 2
        return np.asarray(logsumexp(logits, axis=1) - logits[np.arange(len(block)), code])

    def residuals(self, block: Block) -> Residuals:
        """Return the residuals of a block."""
        m = self.latents(block)
        e = self._bits(block, m)[1]
        levels = [e for _, e, _ in self._variables(block, m)[1]]
        t = self._gaussians(block, m)[1]
        stacked = np.concatenate(levels, axis=1) if levels else np.empty((len(block), 0))
        return Residuals(e, stacked, t * self.s, self._supervised(block, m)[1], self._structured(block, m))

    def _bits(self, block: Block, m: Array) -> tuple[float, Array]:
        """Return the log-likelihood of bits, each given all else; and weighted residuals."""
        x = block.columns[1]
        n, p = x.shape
        if p == 0:
            return 0.0, np.empty((n, 0))
        q = np.einsum("ik,ik->i", self.wb, self.wb)
        linear = np.column_stack([self.wb, self.theta.intercept[self.seen.bits] + q / 2])
        eta = np.column_stack([m, np.ones(n)]) @ linear.T
        flat = positions(x)
        on = np.take(eta, flat) - q[x.indices]
        eta.ravel()[flat] = on
        softplus, e = softplus_and_minus_sigmoid(eta)
        e.ravel()[flat] += 1.0
        if block.weights is None:
            return float(on.sum() - softplus.sum()), e
        e *= block.weights[:, None]
        return float(np.repeat(block.weights, np.diff(x.indptr)) @ on - block.weights @ softplus), e

    def _variables(
        self, block: Block, m: Array, weights: tuple[float, ...] | None = None
    ) -> tuple[float, list[tuple[slice, Array, Array]]]:
        """Return the log-likelihood of categorical variables; and levels, weighted residuals, m without its part."""
        c = block.columns[2]
        n_variables = len(self.seen.variables)
        if n_variables == 0:
            return 0.0, []
        weights = self.layout.level_weights if weights is None else weights
        codes = c.indices.reshape(len(block), n_variables)
        value, found, start = 0.0, [], 0
        rows = np.arange(len(block))
        for number, variable in enumerate(self.seen.variables):
            at = slice(start, start + self.layout.levels[variable])
            start, weight = at.stop, weights[variable]
            if weight == 0:
                continue
            w = self.wc[at]
            code = codes[:, number] - at.start
            rest = m - w[code]
            logits = rest @ w.T + (self.theta.intercept[self.levels[at]] + np.einsum("lk,lk->l", w, w) / 2)
            logits -= logsumexp(logits, axis=1, keepdims=True)
            value += weight * block.total(logits[rows, code])
            e = -np.exp(logits)
            e[rows, code] += 1.0
            e *= weight if block.weights is None else weight * block.weights[:, None]
            found.append((at, e, rest))
        return value, found

    def _gaussians(self, block: Block, m: Array) -> tuple[float, Array, Array]:
        """Return the log-density of Gaussian variables given discrete ones, natural means, and expected latents."""
        z = block.columns[0]
        if z.shape[1] == 0:
            return 0.0, np.empty((len(block), 0)), np.zeros_like(m)
        linear = m - z @ self.u + self.beta
        g = linear @ self.inverse
        t = g @ self.u.T + self.b
        rows = z @ self.b - np.einsum("ij,ij,j->i", z, z, 0.5 / self.s)
        rows += (np.einsum("ik,ik->i", m, m) - np.einsum("ik,ik->i", g, linear)) / 2
        constant = (self.b * self.s) @ self.b + np.log(2 * np.pi * self.s).sum() - self.log_det
        return block.total(rows) - block.weight * float(constant) / 2, t, g

    def _supervised(self, block: Block, m: Array) -> tuple[float, Array]:
        """Return the weighted loss and its derivative in the scores."""
        loss = self.problem.loss
        if loss is None:
            return 0.0, np.zeros((len(block), self.layout.n_scores))
        rows, slope = loss.value_and_slope(m @ self.v.T + self.c0, block.columns[3])
        return block.total(rows), slope if block.weights is None else slope * block.weights[:, None]

    def sums(self, block: Block) -> Array:
        """Return the value, gradient in the shift, and gradient in all parameters, as one vector that a pass sums."""
        z, x, c = block.columns[:3]
        theta, layout, seen = self.theta, self.layout, self.seen
        m = self.latents(block)
        weights = np.zeros_like(theta.weights)
        intercept = np.zeros(layout.n_rows)
        log_variance = np.zeros(layout.n_gaussian)
        of_m = np.zeros_like(m)
        w = 1.0 if block.weights is None else block.weights[:, None]

        value, e = self._bits(block, m)
        if len(seen.bits):
            moments = np.column_stack([m, np.ones(len(m))]).T @ e
            total = moments[-1]
            on = np.bincount(x.indices, weights=e.ravel()[positions(x)], minlength=x.shape[1])
            intercept[seen.bits] = total
            weights[seen.bits] = moments[:-1].T + self.wb * (total - 2 * on)[:, None]
            of_m += e @ self.wb

        for found, (_, of_view) in zip(self._structured(block, m), self.structured, strict=True):
            value += found.value
            intercept[of_view] = found.of_intercept
            weights[of_view] = found.residual.T @ m + 2 * (found.own @ theta.weights[of_view])
            of_m += found.residual @ theta.weights[of_view]

        gradient = Parameters(weights, intercept, log_variance)
        value += self._add_variables(block, m, layout.level_weights, gradient, of_m)
        value += self._add_loss(block, m, gradient, of_m)

        if len(seen.gaussian):
            more, t, g = self._gaussians(block, m)
            value += more
            total_weight = block.weight
            gw, tw = g * w, t * w
            spread = self.u @ self.inverse
            of_m += m * w
            intercept[seen.gaussian] = (z * w).sum(axis=0) - self.s * tw.sum(axis=0)
            weights[seen.gaussian] = z.T @ of_m - self.s[:, None] * (t.T @ gw + total_weight * spread)
            squares = np.einsum("ij,ij->j", z * w, z) / (2 * self.s) - self.s * np.einsum("ij,ij->j", tw, t) / 2
            log_variance[seen.gaussian] = squares - total_weight / 2 * (
                1 + self.s * np.einsum("jk,jk->j", spread, self.u)
            )
            of_m -= gw
        of_shift = of_m.sum(axis=0)
        centre = self.problem.centre
        for rows, columns in ((seen.bits, x), (self.levels, c)):
            if len(rows):
                weights[rows] += columns.T @ of_m - np.outer(centre[rows], of_shift)
        for table, of_view in self.tables(block):
            weights[of_view] += table.T @ of_m
        # The gradient of the centre's part of the shift is in that of the weights; the marginal's part is left.
        return np.concatenate([[value], of_shift, gradient.packed()])

    def _add_variables(
        self, block: Block, m: Array, weights: tuple[float, ...], gradient: Parameters, of_m: Array
    ) -> float:
        """Return the weighted log-likelihood of categorical variables; add its derivatives to `gradient` and `of_m`."""
        value, variables = self._variables(block, m, weights)
        own = np.zeros_like(of_m)
        for at, e, rest in variables:
            rows, total, back = self.levels[at], e.sum(axis=0), e @ self.wc[at]
            gradient.intercept[rows] += total
            of_own = block.columns[2][:, at].T @ back
            gradient.weights[rows] += e.T @ rest + self.wc[at] * total[:, None] - of_own
            own += back
        of_m += own
        return value

    def _add_loss(self, block: Block, m: Array, gradient: Parameters, of_m: Array) -> float:
        """Return minus the weighted loss; add its derivatives to `gradient` and `of_m`."""
        if self.problem.loss is None:
            return 0.0
        loss, slope = self._supervised(block, m)
        scale, of_scores = self.problem.loss_weight, slice(self.layout.n_variables, None)
        gradient.weights[of_scores] -= scale * (slope.T @ m)
        gradient.intercept[of_scores] -= scale * slope.sum(axis=0)
        of_m -= scale * (slope @ self.v)
        return -scale * loss


def _weights(block: Block) -> Array:
    return np.ones(len(block)) if block.weights is None else block.weights


def features(layout: Layout, seen: Seen, block: Block) -> list[Any]:
    """Return the tables in which expected latents are linear, one for each group of `Seen.groups`."""
    z, x, c = block.columns[:3]
    data = block.columns[len(block.columns) - len(seen.structures) :]
    structures = [layout.structures[i] for i in seen.structures]
    return [z, x, *(s.table(of_rows) for s, of_rows in zip(structures, data, strict=True)), c]


def parts_of(
    patterns: list[Pattern],
    rows: Distinct,
    layout: Layout,
    *,
    n_jobs: int | None = None,
) -> tuple[Part, ...]:
    """Add weights, and y as one more variable or as the target of scores, to the rows of each pattern."""
    parts = []
    size = int(np.clip(BLOCK_BYTES // (8 * max(layout.n_variables, 1)), 64, 8192))
    for pattern in patterns:
        z, x, c, *structured = pattern.columns
        seen = pattern.seen
        if layout.has_label:
            assert rows.y is not None
            n_labels = layout.levels[-1]
            of_label = sparse.csr_matrix(
                (np.ones(len(pattern.rows)), rows.y[pattern.rows], np.arange(len(pattern.rows) + 1)),
                shape=(len(pattern.rows), n_labels),
            )
            c = sparse.hstack([c, of_label], format="csr")
            seen = replace(seen, variables=(*seen.variables, len(layout.levels) - 1))
        w = rows.weights[pattern.rows]
        extra = (rows.y[pattern.rows],) if layout.n_scores and rows.y is not None else ()
        weights = None if (w == 1.0).all() else w
        data = Chunks(z, x, c, *extra, *structured, weights=weights, rows=size, n_jobs=n_jobs)
        parts.append(Part(seen, data))
    return tuple(parts)


def problem_of(
    rows: Distinct,
    views: tuple[FittedView, ...],
    supervision: Supervision,
    label_shares: Array,
    *,
    n_jobs: int | None,
    reuse: bool,
) -> tuple[PseudoLikelihood, tuple[NDArray[np.intp], ...]]:
    """Return the pseudo-likelihood of distinct rows, and the positions of the rows of each part among them."""
    layout = layout_of(views, supervision)
    patterns = patterns_of(rows.tables, views, reuse=reuse)
    parts = parts_of(patterns, rows, layout, n_jobs=n_jobs)
    problem = PseudoLikelihood(layout, centre_of(views, label_shares), parts, supervision.loss, supervision.weight)
    return problem, tuple(pattern.rows for pattern in patterns)
