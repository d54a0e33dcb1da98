"""One pass over the units: log-likelihood, responsibilities, and the sums of which an M-step is made."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.models.regression_mixture.experts.parameters import Experts
from majorant.models.regression_mixture.experts.streams import AnyUnits
from majorant.models.regression_mixture.experts.units import Units, mapped_blocks
from majorant.solvers.responses import Response


@dataclass(frozen=True)
class Statistics:
    """Of S mixtures at their present parameters, sums weighted by responsibilities.

    Attributes
    ----------
    log_likelihood : ndarray of shape (S,)
        Of the units that are not trimmed.
    mass, rows : ndarray of shape (S, K)
        Units and rows of each component.
    score : ndarray of shape (S, K, p)
    information : ndarray of shape (S, K, p, p)
    spread : ndarray of shape (S, K)
        Of which the dispersions are made; empty for a response without.
    gating_score : ndarray of shape (S, K - 1, g), or None
    gating_information : ndarray of shape (S, (K - 1) g, (K - 1) g), or None
    """

    log_likelihood: NDArray[np.float64]
    mass: NDArray[np.float64]
    rows: NDArray[np.float64]
    score: NDArray[np.float64]
    information: NDArray[np.float64]
    spread: NDArray[np.float64]
    gating_score: NDArray[np.float64] | None
    gating_information: NDArray[np.float64] | None

    def __add__(self, other: Statistics) -> Statistics:
        def total(a: NDArray[np.float64] | None, b: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
            return None if a is None or b is None else a + b

        return Statistics(
            self.log_likelihood + other.log_likelihood,
            self.mass + other.mass,
            self.rows + other.rows,
            self.score + other.score,
            self.information + other.information,
            self.spread + other.spread,
            total(self.gating_score, other.gating_score),
            total(self.gating_information, other.gating_information),
        )

    def put(self, at: NDArray[np.intp] | NDArray[np.bool_], other: Statistics) -> Statistics:
        """With the mixtures `at` replaced."""

        def placed(a: NDArray[np.float64] | None, b: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
            if a is None or b is None:
                return None
            out = a.copy()
            out[at] = b
            return out

        return Statistics(
            *(
                placed(getattr(self, name), getattr(other, name))  # type: ignore[arg-type]
                for name in self.__dataclass_fields__
            )
        )

    def __getitem__(self, at: Any) -> Statistics:
        values = (getattr(self, name) for name in self.__dataclass_fields__)
        return Statistics(*(None if v is None else v[at] for v in values))  # type: ignore[arg-type]


def predictors(units: Units, coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """Offset and ``z' c`` for every row and mixture, (n_rows, S, K); not a matrix product, see `engine.latents`.

    In memory rows are the inner axis, as in all that is computed from it: sums over components and over rows then run
    along memory.
    """
    return _combined(units.columns, coef, units.offset[:, 0])


def _combined(
    columns: NDArray[np.float64], coef: NDArray[np.float64], offset: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    out = np.empty((*coef.shape[:2], columns.shape[1]))
    out[:] = offset
    for j, column in enumerate(columns):
        out += coef[:, :, j, None] * column
    return np.moveaxis(out, -1, 0)


def log_priors(units: Units, theta: Experts) -> NDArray[np.float64]:
    """Of each unit and mixture, (n_units or 1, S, K)."""
    with np.errstate(divide="ignore"):
        if theta.gating is None:
            return np.log(theta.weights)[None]
    logits = _combined(units.gating_columns, theta.gating, 0.0)
    logits -= logits.max(axis=2, keepdims=True)
    return np.asarray(logits - np.log(np.exp(logits).sum(axis=2, keepdims=True)))


def row_densities(units: Units, response: Response, theta: Experts, eta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log density of each row under each component, (n_rows, S, K)."""
    return response.log_density(units.y[:, :, None], eta, theta.dispersion, units.trials[:, :, None])


def unit_densities(
    units: Units, response: Response, theta: Experts, eta: NDArray[np.float64], priors: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log density of each unit, (n_units, S), and its responsibilities, (n_units, S, K)."""
    joint = units.per_unit(row_densities(units, response, theta, eta)) + priors
    if units.labels is not None:
        known = units.labels >= 0
        others = np.arange(joint.shape[2]) != units.labels[known, None]
        joint[known] = np.where(others[:, None, :], -np.inf, joint[known])
    top = joint.max(axis=2, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    q = np.exp(joint - top)
    total = q.sum(axis=2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        q /= total
        log_density = (top + np.log(total))[:, :, 0]
    dead = total[:, :, 0] == 0
    if dead.any():
        log_density[dead], q[dead] = -np.inf, 1 / joint.shape[2]
    return log_density, q


def kept_shares(units: Units, densities: NDArray[np.float64], trim: float) -> NDArray[np.float64]:
    """Share of each unit that counts, (n_units, S), where those of least density a row that make up `trim` of all rows
    do not: of shares of units with that many rows, the ones of largest log-likelihood."""
    kept = np.ones_like(densities)
    sizes = units.weights * units.sizes
    gone = trim * units.row_weight
    for s in range(densities.shape[1]):
        order = np.argsort(densities[:, s] / units.sizes, kind="stable")
        before = np.cumsum(sizes[order]) - sizes[order]
        kept[order, s] = 1 - np.clip((gone - before) / sizes[order], 0.0, 1.0)
    return kept


def statistics(
    units: AnyUnits, response: Response, theta: Experts, trim: float = 0.0, n_threads: int = 1
) -> Statistics:
    """One pass."""
    s, k = theta.weights.shape
    if trim == 0:
        return units.summed(lambda block: _of_block(block, response, theta, None), s * k, n_threads)
    assert isinstance(units, Units)
    blocks = units.slices(s * k)

    def densities(block: Units) -> NDArray[np.float64]:
        return unit_densities(block, response, theta, predictors(block, theta.coef), log_priors(block, theta))[0]

    def visit(block: Units, share: NDArray[np.float64]) -> Statistics:
        return _of_block(block, response, theta, share)

    kept = kept_shares(units, np.concatenate(mapped_blocks(densities, blocks, n_threads)), trim)
    shares = np.split(kept, np.cumsum([block.n_units for block in blocks])[:-1])
    total: Statistics = reduce(add, mapped_blocks(visit, blocks, n_threads, shares))
    return total


def _of_block(units: Units, response: Response, theta: Experts, kept: NDArray[np.float64] | None) -> Statistics:
    s, k, p = theta.coef.shape
    y, trials = units.y[:, :, None], units.trials[:, :, None]
    eta = predictors(units, theta.coef)
    priors = log_priors(units, theta)
    densities, q = unit_densities(units, response, theta, eta, priors)
    w = np.broadcast_to(units.weights[:, None], densities.shape) if kept is None else units.weights[:, None] * kept
    with np.errstate(invalid="ignore"):
        log_likelihood = np.where(w > 0, w * densities, 0.0).sum(axis=0)
    q *= w[:, :, None]
    rows = units.per_row(q)
    score = rows * response.score(y, eta, theta.dispersion, trials)
    weight = rows * response.weight(y, eta, theta.dispersion, trials)
    spread = np.zeros((s, k))
    if response.has_dispersion:
        spread = (rows * response.spread(y, eta, theta.dispersion, trials)).sum(axis=0)
    gating_score = gating_information = None
    if theta.gating is not None:
        gating_score, gating_information = _gating(units, q, w, np.exp(priors))
    return Statistics(
        log_likelihood,
        q.sum(axis=0),
        rows.sum(axis=0),
        _sums(score, units.columns),
        _symmetric(_sums(weight, units.products), p),
        spread,
        gating_score,
        gating_information,
    )


def _sums(table: NDArray[np.float64], columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each column, weighted by the tables of every mixture: (S, K, number) of (n, S, K) and (number, n)."""
    inner = np.ascontiguousarray(np.moveaxis(table, 0, -1))
    flat = inner.reshape(-1, inner.shape[-1])
    return np.asarray(np.einsum("mi,ji->mj", flat, columns).reshape(*inner.shape[:-1], len(columns)))


def _symmetric(packed: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Matrices of their lower triangles."""
    lower = np.tril_indices(size)
    out = np.empty((*packed.shape[:-1], size, size))
    out[..., lower[0], lower[1]] = packed
    out[..., lower[1], lower[0]] = packed
    return out


def _gating(
    units: Units, q: NDArray[np.float64], w: NDArray[np.float64], priors: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Score and information of the logits of all components but the first; q is weighted."""
    g = len(units.gating_columns)
    s, k = q.shape[1:]
    score = _sums((q - w[:, :, None] * priors)[:, :, 1:], units.gating_columns)
    pairs = [(a, b) for a in range(1, k) for b in range(1, a + 1)]
    shares = [w * priors[:, :, a] * ((a == b) - priors[:, :, b]) for a, b in pairs]
    blocks = _symmetric(_sums(np.stack(shares, axis=2), units.gating_products), g) if pairs else np.empty((s, 0, g, g))
    information = np.empty((s, k - 1, g, k - 1, g))
    for i, (a, b) in enumerate(pairs):
        information[:, a - 1, :, b - 1] = information[:, b - 1, :, a - 1] = blocks[:, i]
    return score, information.reshape(s, (k - 1) * g, (k - 1) * g)
