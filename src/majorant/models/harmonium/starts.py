"""Where a fit of a harmonium begins: principal axes, base rates, and scores by least squares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.models.harmonium.layout import Parameters, Seen
from majorant.models.harmonium.pseudo_likelihood import PseudoLikelihood, features

Array = NDArray[np.float64]

SIZE = 0.45
"""Initial size of a factor's weights relative to maximum likelihood, as the optimum is penalised."""
RADIUS = 0.95
"""Largest eigenvalue of U'SU of a start; at 1 the model is improper."""
SWEEPS, SPARE = 7, 10
"""Steps of subspace iteration, and axes beyond those asked for, which speed it up."""
RIDGE = 0.01
"""Penalty of the regression that starts V."""
RAREST = 1e-13
"""Smallest frequency of a bit or level at a start: weights of rows may round it to 0 or 1."""


def principal_axes(problem: PseudoLikelihood, scale: Array, k: int) -> tuple[Array, Array]:
    r"""Return principal axes (n_variables, k) of the correlations of all variables, and sizes of factors.

    An axis of variance c^2 in standardised rows has size :math:`\sqrt{1 - 1 / c^2}`. Missing views count as means.
    Subspace iteration from a fixed start.
    """
    n = problem.layout.n_variables
    if not n:
        return np.zeros((0, 0)), np.zeros(0)
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(n, min(k + SPARE, n))))[0]
    for _ in range(SWEEPS):
        axes = np.linalg.qr(_correlation_times(problem, scale, axes))[0]
    small = axes.T @ _correlation_times(problem, scale, axes)
    values, turn = np.linalg.eigh((small + small.T) / 2)
    order = np.argsort(-values, kind="stable")[:k]
    vectors = axes @ turn[:, order]
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(len(order))]
    sizes = np.sqrt(np.maximum(1 - 1 / np.maximum(values[order], 1.0001), 1e-4))
    return vectors * np.where(largest < 0, -1.0, 1.0), sizes


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
    """Return the linear terms at which all variables are independent and have their own frequencies."""
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


def proper(at: Parameters) -> Parameters:
    """Shrink W so that the model is proper by some margin."""
    u = at.weights[: len(at.log_variance)]
    radius = float(np.linalg.eigvalsh((u.T * at.variance) @ u).max(initial=0.0)) if len(u) else 0.0
    if radius <= RADIUS:
        return at
    return Parameters(at.weights * np.sqrt(RADIUS / radius), at.intercept, at.log_variance)


def with_scores(problem: PseudoLikelihood, at: Parameters) -> Parameters:
    """Return the start with V from a ridge regression of the target on the latents."""
    layout, loss = problem.layout, problem.loss
    if loss is None:
        return at
    k = at.n_components
    moments = np.zeros((k, k + layout.n_scores))
    for part, view in problem.views(at):

        def visit(block: Block, view=view) -> Array:  # type: ignore[no-untyped-def]
            m, target = view.latents(block), loss.targets(block.columns[3])
            wm = m if block.weights is None else m * block.weights[:, None]
            return np.concatenate([wm.T @ m, wm.T @ target], axis=1)

        moments += part.data.map_sum(visit)
    ridge = RIDGE * problem.total_weight * np.eye(k)
    weights = at.weights.copy()
    weights[layout.n_variables :] = np.linalg.solve(moments[:, :k] + ridge, moments[:, k:]).T
    return Parameters(weights, at.intercept, at.log_variance)
