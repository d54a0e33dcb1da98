"""Detection of covariates that separate the states, so that coefficients of weights, or of steps, diverge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from majorant.engine.mixture import Array, OnData, Parameters
from majorant.engine.runs import stacked
from majorant.laws.around import Around
from majorant.laws.gated import Gated
from majorant.laws.gated_chain import GatedChain

STEEP = 1e-3
"""Share of the information at equal weights below which weights are so steep that they are tested for divergence."""
SAME = 5e-7
"""Share of the information at equal weights below which covariates are nearly combinations of others."""
ROUNDING = 1e-11
"""What rounding may add to an objective, relative to its size."""
LEAST_PART = 0.1
"""Share of a covariate in the divergence, relative to the largest, above which it is named."""
BESIDE_CONSTANT = 1e-6
"""Share of a covariate in the divergence, relative to the constant, up to which it is rounding."""
OF_AWAY = (
    "Coefficients that run to infinity have no standard errors (NaN) and no intervals; log-likelihood and predictions "
    "are right."
)


def unbounded_directions(on: OnData, theta: Parameters[Any, Any]) -> Array:
    """Return directions of the law's coefficients in which the likelihood has no maximum, orthonormal, (m, r).

    They are the last m numbers of the law's `vector`: all, but for a chain, whose first states come before.

    Directions are steep where the weights of most rows are zero or one along them. The likelihood has no maximum there
    if twice the coefficients are no worse.

    The result has r of zero where none is, as for other laws.
    """
    law, seen, here, at_even = _information(on, theta)
    if law is None:
        return np.zeros((0, 0))

    before, at = np.split(law.vector(theta.law)[0], [-len(here)])

    def objective(vectors: Array) -> Array:
        whole = (np.concatenate([before, v])[None] for v in vectors)
        return on.seen(stacked([Parameters(theta.density, law.theta_of(v, theta.law)) for v in whole])).objective

    return diverging(here, at_even, at, float(seen.objective[0]), objective)


def undetermined_directions(on: OnData, theta: Parameters[Any, Any]) -> Array:
    """Return directions of all numbers that the rows do not determine, orthonormal, (m, r).

    They are `unbounded_directions`, those in which covariates are combinations of others, and those in which the
    predictors of a density run to infinity, `without_events`. Where that has none, of the last m numbers only.
    """
    law, _, _, at_even = _information(on, theta)
    found = np.zeros((0, 0))
    if law is not None:
        scale = np.sqrt(np.maximum(np.diag(at_even), 1e-300))
        size, basis = np.linalg.eigh(at_even / scale / scale[:, None])
        alike = basis[:, size <= SAME] / scale[:, None]
        alike /= np.linalg.norm(alike, axis=0)
        found = np.asarray(np.linalg.qr(np.hstack([unbounded_directions(on, theta), alike]))[0])
    without_events = getattr(on.mixture.density, "without_events", None)
    if without_events is None:
        return found
    own = without_events(on.seen(theta).statistics.density, theta.density)
    n_before = on.mixture.law.vector(theta.law).shape[1] - len(found)  # type: ignore[attr-defined]
    return np.asarray(block_diag(own, np.zeros((n_before, 0)), found))


def _information(on: OnData, theta: Parameters[Any, Any]) -> tuple[Gated | GatedChain | None, Any, Array, Array]:
    """Return a law of covariates, the rows as seen, and its information there and at equal weights; else None."""
    law, none = on.mixture.law, np.zeros((0, 0))
    while isinstance(law, Around):
        law = law.law
    if not isinstance(law, Gated | GatedChain) or on.mixture.n_components == 1:
        return None, None, none, none
    even = Parameters(theta.density, law.even(theta.law))
    seen = on.seen(stacked([theta, even]))
    here, at_even = law.information(seen.statistics.law, theta.law)
    return law, seen, here, at_even


def _held(size: Array) -> NDArray[np.bool_]:
    """Return which eigenvalues of the information belong to covariates that are not combinations of others."""
    return np.asarray(size > 1e-10 * size.max(initial=0.0))


def diverging(here: Array, at_even: Array, at: Array, value: float, objective: Callable[[Array], Array]) -> Array:
    """Return directions of logits in which an objective has no minimum, orthonormal, (m, r).

    Parameters
    ----------
    here, at_even : ndarray of shape (m, m)
        Information where a descent ended and at equal weights.
    at, value
        Where it ended, (m,), and the objective there.
    objective : callable
        The objective of vectors (n, m).
    """
    size, basis = np.linalg.eigh(at_even)
    held = _held(size)
    whitened = basis[:, held] / np.sqrt(size[held])
    share, turned = np.linalg.eigh(whitened.T @ here @ whitened)
    steep = whitened @ turned[:, share < STEEP]
    if steep.shape[1] == 0:
        return np.asarray(steep)
    further = steep * (steep.T @ at_even @ at)
    no_worse = objective(at + np.vstack([further.sum(axis=1), further.T])) <= value + ROUNDING * (1 + abs(value))
    return np.asarray(np.linalg.qr(steep if no_worse[0] else steep[:, no_worse[1:]])[0])


def separated(on: OnData, theta: Parameters[Any, Any], names: Sequence[str]) -> str:
    """Say which covariates separate the states of a fit; empty where none do, or no covariates decide over states."""
    directions = unbounded_directions(on, theta)
    if not directions.size:
        return ""
    law, seen, _, _ = _information(on, theta)
    assert law is not None
    at = law.vector(theta.law)[0][-len(directions) :]
    if isinstance(law, Gated):
        return of_separated(directions, at, names)
    pairs = law.pairs_of_steps(seen.statistics.law)
    found = separating(directions, at, names, np.eye(1 + len(names)), pairs)
    return (
        f"Gating by {found} separates the steps of the states: from some rows on a state is certain, or impossible, so "
        "coefficients of the gating run to infinity. Where they stopped is no estimate; they have no standard errors "
        "(NaN) and no intervals. Log-likelihood and predictions are right."
        if found  # else some steps never happen, whatever the covariates
        else ""
    )


def of_separated(
    directions: Array,  # (m, r): see `unbounded_directions`
    at: Array,  # (m,): the law's `vector` where the descent ended: covariates count as far as they have led there
    names: Sequence[str],  # of the covariates, without the constant
    # (1 + covariates, g): maps coefficients of the law to coefficients of a constant and standardised covariates
    transform: Array | None = None,
) -> str:
    """Say which covariates separate the states; empty where none do."""
    if directions.size == 0:
        return ""
    found = separating(directions, at, names, np.eye(1 + len(names)) if transform is None else transform)
    return (
        f"Gating by {found} separates components: for some rows a component is certain, or impossible, so "
        "coefficients of the gating run to infinity. Where they stopped is no estimate; they have no standard errors "
        "(NaN) and no intervals. Log-likelihood and predictions are right."
        if found
        else ""
    )


def line_away(columns: Sequence[str], part: str, why: str) -> str:
    """Say along which columns the line of a state runs to infinity; `part` is what the state is called."""
    return (
        f"The line of a {part} runs to infinity along {', '.join(columns)}, as {why}: leave out columns, or take in "
        "more rows"
    )


def separating(
    directions: Array,
    at: Array,
    names: Sequence[str],
    to_user: Array,
    pairs: Iterable[tuple[int, int]] | None = None,
) -> str:
    """Name the covariates that separate any two states; see `of_separated`.

    `pairs` are the logits between which they may decide, of those in `at` in their order, -1 for that of zero; by
    default all.
    """
    width = to_user.shape[1]
    led = np.vstack([directions, np.zeros((width, directions.shape[1]))]).reshape(-1, width, directions.shape[1])
    ended = np.concatenate([at, np.zeros(width)]).reshape(-1, width)
    named = np.zeros(len(names), dtype=bool)
    for a, b in combinations(range(len(led)), 2) if pairs is None else pairs:
        own, size, _ = np.linalg.svd(led[a] - led[b], full_matrices=False)
        own = own[:, size > LEAST_PART]  # else this pair is not separated
        part = np.abs(to_user @ (own @ (own.T @ (ended[a] - ended[b]))))
        named |= part[1:] > max(LEAST_PART * part[1:].max(), BESIDE_CONSTANT * part[0])
    return ", ".join(name for name, is_named in zip(names, named, strict=True) if is_named)
