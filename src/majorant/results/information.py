r"""Standard errors of any mixture, from the observed information.

Its second derivatives are central differences in unconstrained numbers (logits, logarithms, means) of the parameters:
of the score, where density and law compute it from their statistics (`engine.mixture.Scored`), O(m) runs for m
parameters; else of the log-likelihood, O(m^2) runs. All moved parameters are batches of runs, so that passes are few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from majorant.data.chunks import Block
from majorant.engine.mixture import Anchored, Coordinates, Limited, Limits, Mixture, OnData, Parameters, Scored
from majorant.engine.runs import taken

Array = NDArray[np.float64]
STEP = 1e-4
"""Step of a difference, relative to one plus the number's own size: parameters are logits, logarithms or means."""
LONGEST_STEP = 1e-3
"""Longest step, in standard errors of one row."""
MOST_TRIES = 4
ROUNDING = 2e-15
"""What rounding may add to a difference of log-likelihoods, relative to their size and to the weight of the rows."""
LEAST_CURVATURE = 1e-6
"""Smallest eigenvalue of the scaled information for which it counts as regular."""
LEAST_PART = 1e-3
"""Share of an undetermined direction in an estimate above which it has no standard error."""
LARGEST_TABLES = 1 << 31
"""Bytes of tables of parameters by parameters from which errors are refused: they would take hours, too."""


class Errors(NamedTuple):
    """Standard errors of estimates."""

    # (m, m): covariance of the unconstrained parameters, the density's first; NaN where the rows do not determine them
    covariance: Array
    # standard errors by estimate; NaN where the rows do not determine it, or it is at an edge of its range
    errors: dict[str, Array]


def packed(mixture: Mixture, theta: Parameters[Any, Any]) -> Array:
    """Return the parameters of a batch as unconstrained numbers, (runs, m)."""
    density, law = mixture.density, mixture.law
    return np.concatenate([density.vector(theta.density), law.vector(theta.law)], axis=1)  # type: ignore[attr-defined]


def unpacked(mixture: Mixture, vector: Array, like: Parameters[Any, Any]) -> Parameters[Any, Any]:
    """Return the inverse of `packed`."""
    density, law = mixture.density, mixture.law
    size = density.vector(like.density).shape[1]  # type: ignore[attr-defined]
    one = taken(like, [0] * len(vector))
    return Parameters(
        density.theta_of(vector[:, :size], one.density),  # type: ignore[attr-defined]
        law.theta_of(vector[:, size:], one.law),  # type: ignore[attr-defined]
    )


def scores(mixture: Mixture, at: Array, like: Parameters[Any, Any], block: Block, h: Array) -> Array:
    """Return the slope of each unit's log-likelihood in each unconstrained number, (units, m), by steps h of these."""
    found = []
    for j, step in enumerate(h):
        moved = unpacked(mixture, at + step * np.array([[1.0], [-1.0]]) * (np.arange(len(at)) == j), like)
        up, down = mixture.posterior(moved, block).units
        found.append((up - down) / (2 * step))
    return np.stack(found, axis=1)


def observed_information(on: OnData, theta: Parameters[Any, Any]) -> Array:
    """Return minus the second derivatives of the log-likelihood in the unconstrained numbers; zero where it is flat."""
    at = packed(on.mixture, theta)[0]
    h = STEP * (1 + np.abs(at))
    is_scored = isinstance(on.mixture.density, Scored) and isinstance(on.mixture.law, Scored)
    n_bytes = 40 * len(at) ** 2 if is_scored else 8 * len(at) ** 3
    if n_bytes > LARGEST_TABLES:
        raise ValueError(
            f"standard errors of {len(at):,} parameters need tables of {n_bytes / 2**30:,.0f} GB: choose fewer columns "
            "or components, or covariances with fewer parameters"
        )
    differences = _slopes_of_score if is_scored else _second_differences
    for _ in range(MOST_TRIES):
        centre, out = differences(on, theta, at, h)
        with np.errstate(divide="ignore", invalid="ignore"):
            unit = np.sqrt(on.total_weight / np.abs(np.diag(out)))  # what the rows tell of a number, per row
        shorter = np.fmin(h, LONGEST_STEP * unit)
        if (shorter >= h / 2).all():
            break
        h = shorter  # large numbers that cancel, as coefficients of columns that are nearly the same
    # Rows that are certain have a log-likelihood of zero, and rounding all the same.
    flat = np.abs(np.diag(out)) <= ROUNDING * (np.abs(centre) + on.total_weight) / h**2
    out[flat] = 0.0
    out[:, flat] = 0.0
    return -out


def _slopes_of_score(on: OnData, theta: Parameters[Any, Any], at: Array, h: Array) -> tuple[float, Array]:
    """Return the log-likelihood and its second derivatives, by central differences of the score: 2 m + 1 runs."""
    values, scores = _seen(on, np.concatenate([at[None], at + np.diag(h), at - np.diag(h)]), theta)
    m = len(at)
    out = (scores[1 : m + 1] - scores[m + 1 :]) / (2 * h[:, None])
    return float(values[0]), (out + out.T) / 2


def _second_differences(on: OnData, theta: Parameters[Any, Any], at: Array, h: Array) -> tuple[float, Array]:
    """Return the same by differences of the log-likelihood: m^2 + m + 1 runs."""
    m, moves = len(at), np.diag(h)
    i, j = np.tril_indices(m, -1)
    points = [at[None], at + moves, at - moves, at + moves[i] + moves[j], at - moves[i] - moves[j]]
    values = _seen(on, np.concatenate(points), theta)[0]
    centre, rest = values[0], values[1:]
    up, down = rest[:m], rest[m : 2 * m]
    both_up, both_down = rest[2 * m : 2 * m + len(i)], rest[2 * m + len(i) :]
    out = np.empty((m, m))
    out[np.arange(m), np.arange(m)] = (up - 2 * centre + down) / h**2
    cross = (both_up + both_down + 2 * centre - up[i] - down[i] - up[j] - down[j]) / (2 * h[i] * h[j])
    out[i, j] = out[j, i] = cross
    return float(centre), out


def _seen(on: OnData, vectors: Array, like: Parameters[Any, Any]) -> tuple[Array, Array]:
    """Return log-likelihoods at unconstrained parameters, and their scores where density and law provide them."""
    density, law = on.mixture.density, on.mixture.law
    size = max(1, (1 << 21) // (on.mixture.n_components * min(on.data.n_units, 8192)))
    values, scores = [], []
    for a in range(0, len(vectors), size):
        theta = unpacked(on.mixture, vectors[a : a + size], like)
        seen = on.seen(theta)
        values.append(-seen.objective)
        if isinstance(density, Scored) and isinstance(law, Scored):
            own = density.score(seen.statistics.density, theta.density), law.score(seen.statistics.law, theta.law)
            scores.append(np.concatenate(own, axis=1))
    return np.concatenate(values), np.concatenate(scores) if scores else np.empty((len(vectors), 0))


def standard_errors(
    on: OnData,  # the mixture on the rows that it was fitted to, weights counting rows
    theta: Parameters[Any, Any],  # one run, at a maximum
    *,
    # (m, r): orthonormal directions in which the maximum is at infinity, of all numbers or of the last ones, those of
    # the law; what moves along them has no error
    unbounded: Array | None = None,
    # estimates by name, (runs, ...), of a batch of parameters; by default those that density and law describe
    told: Callable[[Parameters[Any, Any]], dict[str, Array]] | None = None,
    # (m, m): the sum of the products of the scores of units: errors are then those of the sandwich
    meat: Array | None = None,
) -> Errors:
    """Return standard errors of every estimate, by the delta method."""
    mixture = on.mixture
    if not isinstance(mixture.density, Coordinates):
        raise TypeError(
            f"standard errors need parameters in unconstrained numbers; {type(mixture.density).__name__} has no "
            "`vector` and `theta_of`"
        )
    if isinstance(mixture.density, Anchored):
        mixture = replace(mixture, density=mixture.density.anchored(theta.density))
        on = replace(on, mixture=mixture)
    at = packed(mixture, theta)[0]
    lost = np.zeros((len(at), 0 if unbounded is None else unbounded.shape[1]))
    if unbounded is not None:
        lost[len(at) - len(unbounded) :] = unbounded
    half, missing = _inverse_root(observed_information(on, theta), lost)
    if meat is not None:
        values, vectors = np.linalg.eigh(half.T @ meat @ half)
        half = half @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    h = STEP * (1 + np.abs(at))
    moved = unpacked(mixture, np.concatenate([at + np.diag(h), at - np.diag(h)]), theta)
    own = mixture.density.describe(moved.density) if told is None else {}
    named = {**own, **mixture.law.describe(moved.law)} if told is None else told(moved)
    errors, has_edges = {}, getattr(mixture.density, "has_edges", True)
    for name, values in named.items():
        up, down = np.split(values.reshape(2 * len(at), -1), 2)
        slopes = (up - down) / (2 * h[:, None])
        size = np.abs(slopes).max(axis=0, initial=0.0)
        size = np.where(size > 0, size, 1.0)  # whose square may be no number
        unknown = missing(slopes / size)
        if name in own and has_edges:  # a number that does not move with its logit lies at an edge of its range
            unknown |= np.abs(slopes).max(axis=0, initial=0.0) < 1e-10
        found = size * np.sqrt(np.sum((half.T @ (slopes / size)) ** 2, axis=0))
        errors[name] = np.where(unknown, np.nan, found).reshape(values.shape[1:])
    covariance = half @ half.T
    unknown = missing(np.eye(len(at)))
    covariance[unknown] = np.nan
    covariance[:, unknown] = np.nan
    return Errors(covariance, errors)


def _inverse_root(information: Array, unbounded: Array) -> tuple[Array, Callable[[Array], NDArray[np.bool_]]]:
    """Return a root R of the covariance, R R', and which changes (m, n) have a part that the rows do not determine."""
    rest = np.eye(len(information)) - unbounded @ unbounded.T
    before = np.diag(information)
    information = rest @ information @ rest
    curved = (np.diag(information) > 1e-10 * np.abs(before)) & (np.diag(rest) > 1e-10)
    scale = np.sqrt(np.diag(information)[curved])
    values, vectors = np.linalg.eigh(information[np.ix_(curved, curved)] / scale[:, None] / scale)
    good = values > LEAST_CURVATURE
    root = np.zeros((len(information), int(good.sum())))
    root[curved] = vectors[:, good] / np.sqrt(values[good]) / scale[:, None]

    def missing(slopes: Array) -> NDArray[np.bool_]:
        scaled = slopes[curved] / scale[:, None]
        part = np.abs(vectors[:, ~good].T @ scaled).max(axis=0, initial=0.0)
        flat = np.abs(slopes[~curved]).max(axis=0, initial=0.0) > 1e-12
        return np.asarray(flat | (part > LEAST_PART * np.sqrt(np.sum(scaled**2, axis=0))))

    return root, missing


def undetermined(information: Array, slopes: Array) -> tuple[int, NDArray[np.bool_]]:
    """Return the rank of an information, and which changes (m, n) have a part in directions that it does not see."""
    root, missing = _inverse_root(information, np.zeros((len(information), 0)))
    return root.shape[1], missing(slopes)


def limits_of(mixture: Mixture) -> dict[str, Limits]:
    """Return the ranges of estimates, as far as density and law define them."""
    own = mixture.density.limits if isinstance(mixture.density, Limited) else {}
    return {**own, **mixture.law.limits}


def intervals(
    model: Any, errors: Mapping[str, Array], level: float, limits: Mapping[str, Limits]
) -> dict[str, tuple[Array, Array]]:
    """Return the intervals of a model's estimates from their errors, within their limits, by name."""
    z = float(ndtri(0.5 + level / 2))
    return {
        name: interval(np.asarray(getattr(model, f"{name}_")), error, z, limits.get(name, (-np.inf, np.inf)))
        for name, error in errors.items()
    }


def interval(estimate: Array, errors: Array, z: float, limits: Limits) -> tuple[Array, Array]:
    """Return the ends of an interval: z standard errors on the logit (0 to 1), log (above 0) or plain scale.

    What has an error of zero is no parameter, and certain.
    """
    low, high = _ends(estimate, errors, z, limits)
    return np.where(errors == 0, estimate, low), np.where(errors == 0, estimate, high)


def _ends(estimate: Array, errors: Array, z: float, limits: Limits) -> tuple[Array, Array]:
    least = np.broadcast_to(limits[0], np.shape(estimate))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if limits[1] == 1.0 and (least == 0).all():
            spread = estimate * (1 - estimate)
            centre, half = np.log(estimate) - np.log1p(-estimate), z * errors / spread
            low, high = (1 / (1 + np.exp(-(centre - half)))), (1 / (1 + np.exp(-(centre + half))))
            return np.where(spread > 0, low, np.nan), np.where(spread > 0, high, np.nan)
        low, high = np.maximum(estimate - z * errors, least), np.minimum(estimate + z * errors, limits[1])
        factor = np.where(estimate > 0, np.exp(z * errors / estimate), np.nan)
        is_size = (least == 0) & (limits[1] == np.inf)
        return np.where(is_size, estimate / factor, low), np.where(is_size, estimate * factor, high)
