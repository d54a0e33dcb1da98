"""The M-step of many mixtures at once: coefficients, shared ones among them, dispersions within their rule, gating."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.models.regression_mixture.experts.parameters import Experts
from majorant.models.regression_mixture.experts.statistics import Statistics
from majorant.models.regression_mixture.family import VarianceRule
from majorant.solvers.responses import Response

LONGEST_STEP = 3.0
"""Largest change of a coefficient of an orthonormal column in one step, where a step is not exact."""


@dataclass(frozen=True)
class Direction:
    """Where a full step leads, before it is shortened.

    Attributes
    ----------
    coef : ndarray of shape (S, K, p)
    gating : ndarray of shape (S, K, g), or None
    """

    coef: NDArray[np.float64]
    gating: NDArray[np.float64] | None


def direction(theta: Experts, seen: Statistics, response: Response, n_shared: int) -> Direction:
    """One Newton step of every component's coefficients, and of the logits."""
    coef = _solved(seen.information, seen.score, n_shared)
    if not response.is_location_scale:
        longest = np.abs(coef).max(axis=2, keepdims=True)
        if n_shared:
            longest = longest.max(axis=1, keepdims=True)
        coef = coef / np.maximum(longest / LONGEST_STEP, 1.0)
    if theta.gating is None or seen.gating_score is None or seen.gating_information is None:
        return Direction(coef, None)
    s, k, g = theta.gating.shape
    ridge = 1e-6 * np.trace(seen.gating_information, axis1=1, axis2=2) / max((k - 1) * g, 1) + 1e-12
    damped = seen.gating_information + ridge[:, None, None] * np.eye((k - 1) * g)
    gating = np.zeros((s, k, g))
    if k > 1:
        move = np.linalg.solve(damped, seen.gating_score.reshape(s, -1, 1)).reshape(s, k - 1, g)
        longest = np.abs(move).max(axis=(1, 2), keepdims=True)
        gating[:, 1:] = move / np.maximum(longest / LONGEST_STEP, 1.0)
    return Direction(coef, gating)


def _solved(a: NDArray[np.float64], b: NDArray[np.float64], n_shared: int) -> NDArray[np.float64]:
    """Newton steps: blocks of their own, or an arrow of them with the shared coefficients at its point."""
    s, k, p = b.shape
    own = p - n_shared
    size = k * own + n_shared
    if n_shared == 0:
        return _ridge_solved(a, b)
    matrix, right = np.zeros((s, size, size)), np.zeros((s, size))
    last = slice(k * own, None)
    for j in range(k):
        at = slice(j * own, (j + 1) * own)
        matrix[:, at, at] = a[:, j, :own, :own]
        matrix[:, at, last] = a[:, j, :own, own:]
        matrix[:, last, at] = a[:, j, own:, :own]
        right[:, at] = b[:, j, :own]
    matrix[:, last, last] = a[:, :, own:, own:].sum(axis=1)
    right[:, last] = b[:, :, own:].sum(axis=1)
    x = _ridge_solved(matrix, right)
    shared = np.repeat(x[:, None, k * own :], k, axis=1)
    return np.concatenate([x[:, : k * own].reshape(s, k, own), shared], axis=2)


def _ridge_solved(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of equations whose rows may be zero: a component without rows stays where it is."""
    size = np.sqrt(np.maximum(np.diagonal(a, axis1=-2, axis2=-1), 0.0))
    size = np.where(size > 1e-150, size, 1.0)
    scaled = a / size[..., :, None] / size[..., None, :]
    scaled = scaled + 1e-11 * np.eye(a.shape[-1])
    scaled[..., np.arange(a.shape[-1]), np.arange(a.shape[-1])] = np.where(
        np.diagonal(scaled, axis1=-2, axis2=-1) > 1e-6, np.diagonal(scaled, axis1=-2, axis2=-1), 1.0
    )
    return np.asarray(np.linalg.solve(scaled, (b / size)[..., None])[..., 0] / size)


def moved(
    theta: Experts,
    seen: Statistics,
    step: Direction,
    shares: NDArray[np.float64],
    response: Response,
    rule: VarianceRule,
    n_shared: int,
) -> Experts:
    """The parameters after a share of a step, shape (S,), and after whole ones where these are in closed form."""
    t = shares[:, None, None]
    change = t * step.coef
    gating = None
    mass = seen.mass / seen.mass.sum(axis=1, keepdims=True)
    if theta.gating is not None and step.gating is not None:
        gating = theta.gating + t * step.gating
    dispersion = theta.dispersion
    if response.has_dispersion:
        spread = seen.spread
        if response.is_location_scale:  # squared residuals about the new coefficients
            gain = 2 * np.einsum("skp,skp->sk", change, seen.score)
            gain -= np.einsum("skp,skpq,skq->sk", change, seen.information, change)
            spread = np.maximum(spread - theta.dispersion * gain, 0.0)
        dispersion = dispersions(spread, seen.rows, theta.dispersion, response, rule)
    return Experts(mass, theta.coef + change, dispersion, gating)


def dispersions(
    spread: NDArray[np.float64],
    rows: NDArray[np.float64],
    before: NDArray[np.float64],
    response: Response,
    rule: VarianceRule,
) -> NDArray[np.float64]:
    """The best dispersions, (S, K), under the rule; a component without rows keeps what it has."""
    held = rows > 1e-200
    if rule.common:
        mean = spread.sum(axis=1) / rows.sum(axis=1)
        one = np.maximum(response.dispersion(mean), rule.floor)
        return np.repeat(one[:, None], rows.shape[1], axis=1)
    mean = np.divide(spread, rows, out=before.copy(), where=held)
    best = np.where(held, response.dispersion(mean), before)
    return _within_ratio(np.maximum(best, rule.floor), np.where(held, rows, 0.0), rule)


def _within_ratio(d: NDArray[np.float64], rows: NDArray[np.float64], rule: VarianceRule) -> NDArray[np.float64]:
    """``clip(d, m, c^2 m)`` with the m that minimises ``sum rows (log v + d / v)``, by intervals between kinks."""
    c = rule.max_sigma_ratio**2
    if not np.isfinite(c):
        return d
    out = d.copy()
    for s in np.flatnonzero(d.max(axis=1) > c * d.min(axis=1)):
        kinks = np.sort(np.concatenate([d[s], d[s] / c]))
        middles = np.concatenate([kinks[:1] / 2, (kinks[1:] + kinks[:-1]) / 2, kinks[-1:] * 2])
        below, above = d[s] < middles[:, None], d[s] > c * middles[:, None]
        mass = (rows[s] * (below | above)).sum(axis=1)
        total = (rows[s] * d[s] * below).sum(axis=1) + (rows[s] * d[s] / c * above).sum(axis=1)
        m = np.maximum(np.divide(total, mass, out=np.full(len(mass), kinks[0]), where=mass > 0), rule.floor)
        v = np.clip(d[s], m[:, None], c * m[:, None])
        out[s] = v[(rows[s] * (np.log(v) + d[s] / v)).sum(axis=1).argmin()]
    return out
