"""Where a fit of a harmonium begins: the principal axes of all views together, which draw nothing at random."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.models.harmonium.layout import Parameters, Seen
from majorant.models.harmonium.pseudo_likelihood import PseudoLikelihood, features
from majorant.models.harmonium.supervision import Hinge

Array = NDArray[np.float64]

SIZE = 0.45
"""Share of the maximum-likelihood size of a factor that its weights begin at: the optimum is penalised."""
RADIUS = 0.95
"""Largest eigenvalue of U'SU that a start may have; at 1 the model is improper."""
SWEEPS = 7
SPARE = 10
"""Axes beyond those asked for, that make the asked ones settle sooner."""
RIDGE = 0.01
RAREST = 1e-13
"""Frequency of a bit or level at which a fit begins, at least: weights of rows may round it to 0 or 1."""


def spectrum(problem: PseudoLikelihood, scale: Array, k: int) -> tuple[Array, Array]:
    """The largest k eigenvalues of the correlation of all variables, and their axes (n_variables, k).

    Rows that lack a view count there as the mean. Subspace iteration from a fixed start.
    """
    n = problem.layout.n_variables
    width = min(k + SPARE, n)
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(n, width)))[0]
    for _ in range(SWEEPS):
        axes = np.linalg.qr(_correlation_times(problem, scale, axes))[0]
    small = axes.T @ _correlation_times(problem, scale, axes)
    values, turn = np.linalg.eigh((small + small.T) / 2)
    order = np.argsort(-values, kind="stable")[:k]
    vectors = axes @ turn[:, order]
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(len(order))]
    return values[order], vectors * np.where(largest < 0, -1.0, 1.0)


def _correlation_times(problem: PseudoLikelihood, scale: Array, axes: Array) -> Array:
    scale = scale[: problem.layout.n_variables, None]
    v, total = scale * axes, np.zeros_like(axes)
    for part in problem.parts:
        columns = part.seen.columns(problem.layout)
        centre = problem.centre[columns]
        groups, shift = [v[rows] for rows in part.seen.groups(problem.layout)], centre @ v[columns]

        def visit(block: Block, seen: Seen = part.seen, groups: list[Array] = groups, shift: Array = shift) -> Array:
            tables = features(problem.layout, seen, block)
            y = np.zeros((len(block), v.shape[1]))
            for table, group in zip(tables, groups, strict=True):
                y += table @ group
            y -= shift
            if block.weights is not None:
                y *= block.weights[:, None]
            return np.concatenate([*(table.T @ y for table in tables), y.sum(axis=0)[None]])

        sums = part.data.map_sum(visit)
        total[columns] += sums[:-1] - np.outer(centre, sums[-1])
    return scale * total / problem.total_weight


def base_rates(problem: PseudoLikelihood) -> Array:
    """Linear terms at which every variable has its own frequency and nothing depends on anything."""
    layout = problem.layout
    intercept = np.zeros(layout.n_rows)
    p = np.clip(problem.centre, RAREST, 1 - RAREST)
    bits = slice(layout.n_gaussian, layout.n_gaussian + layout.n_bits)
    intercept[bits] = np.log(p[bits]) - np.log1p(-p[bits])
    levels = slice(layout.first_level, layout.n_variables)
    intercept[levels] = np.log(p[levels])
    for structure, rows in zip(layout.structures, layout.of_structures, strict=True):
        p = np.clip(structure.centre[: structure.n_nodes], RAREST, 1 - RAREST)
        intercept[rows.start : rows.start + structure.n_nodes] = np.log(p) - np.log1p(-p)
    return intercept


def svd_start(problem: PseudoLikelihood, scale: Array, k: int, variance: Array) -> Parameters:
    """W along the principal axes, of somewhat less than their maximum-likelihood sizes; V by ridge regression on them.

    A factor whose axis has the variance c^2 in standardised rows is of size :math:`\\sqrt{1 - 1 / c^2}`.
    """
    layout = problem.layout
    n, g = layout.n_variables, layout.n_gaussian
    values, axes = spectrum(problem, scale, min(k, n)) if n else (np.zeros(0), np.zeros((0, 0)))
    sizes = np.sqrt(np.maximum(1 - 1 / np.maximum(values, 1.0001), 1e-4))
    weights = np.zeros((layout.n_rows, k))
    weights[:n, : len(sizes)] = scale[:n, None] * axes * (SIZE * sizes)
    start = Parameters(weights, base_rates(problem), np.log(variance))
    return with_scores(problem, proper(start, g))


def random_start(
    problem: PseudoLikelihood, scale: Array, k: int, variance: Array, random: np.random.Generator
) -> Parameters:
    """W of independent normal numbers."""
    layout = problem.layout
    weights = np.zeros((layout.n_rows, k))
    n = layout.n_variables
    weights[:n] = scale[:n, None] * random.normal(size=(n, k)) * (0.3 / np.sqrt(max(n, 1)))
    start = Parameters(weights, base_rates(problem), np.log(variance))
    return with_scores(problem, proper(start, layout.n_gaussian))


def proper(parameters: Parameters, n_gaussian: int) -> Parameters:
    """The same with W so much smaller that the model is proper by some margin."""
    u = parameters.weights[:n_gaussian]
    radius = float(np.linalg.eigvalsh((u.T * parameters.variance) @ u).max(initial=0.0)) if n_gaussian else 0.0
    if radius <= RADIUS:
        return parameters
    weights = parameters.weights * np.sqrt(RADIUS / radius)
    return Parameters(weights, parameters.intercept, parameters.log_variance)


def with_scores(problem: PseudoLikelihood, at: Parameters) -> Parameters:
    """The same with V from a ridge regression of the target on the latents."""
    layout = problem.layout
    if problem.loss is None:
        return at
    k = at.n_components
    moments = np.zeros((k, k + layout.n_scores))
    for part, view in problem.views(at):

        def visit(block: Block, view=view) -> Array:  # type: ignore[no-untyped-def]
            m = view.latents(block)
            y = block.columns[3]
            if isinstance(problem.loss, Hinge):
                target = np.full((len(m), layout.n_scores), -1 / layout.n_scores)
                target[np.arange(len(m)), y] += 1
            else:
                target = y[:, None]
            wm = m if block.weights is None else m * block.weights[:, None]
            return np.concatenate([wm.T @ m, wm.T @ target], axis=1)

        moments += part.data.map_sum(visit)
    ridge = RIDGE * problem.total_weight * np.eye(k)
    weights = at.weights.copy()
    weights[layout.n_variables :] = np.linalg.solve(moments[:, :k] + ridge, moments[:, k:]).T
    return Parameters(weights, at.intercept, at.log_variance)
