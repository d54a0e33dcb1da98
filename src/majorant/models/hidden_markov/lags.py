"""Autoregression: columns of own lags of the target; forecasts of lines, which feed on themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from majorant._numbers import briefly
from majorant.engine.mixture import Array
from majorant.models.hidden_markov.forecast import Forecast
from majorant.models.hidden_markov.sequences import Sequences

DRAWS, MOST_DRAWN = 10_000, 4_000_000
"""Paths of a forecast, and numbers of those of all sequences together."""


def with_lags(X: Array, sequences: Sequences, lags: int) -> Array:
    """Return the rows with own lags of the first column after it; NaN where a sequence has not begun."""
    if not lags:
        return X
    order, y = sequences.order, X[sequences.order, 0]
    codes, found = sequences.codes[order], np.full((len(X), lags), np.nan)
    for lag in range(1, min(lags, len(X) - 1) + 1):
        found[order[lag:], lag - 1] = np.where(codes[lag:] == codes[:-lag], y[:-lag], np.nan)
    return np.concatenate([X[:, :1], found, X[:, 1:]], axis=1)


@dataclass(frozen=True, repr=False)
class LineForecast(Forecast):
    """The rows after the ends of sequences on lines: every row has a mixture of normal distributions of its own."""

    _shares: Array
    _centres: Array
    _deviations: Array

    def density(self, values: Any, column: int = 0) -> Array:
        """Return densities of values; of drawn paths the mean over those given the path so far."""
        if column != 0:
            raise ValueError(f"a regression forecasts its target, column 0 of X; got column={briefly(column)}")
        x = np.asarray(values, dtype=np.float64)
        every = [(self._shares * norm.pdf(one, self._centres, self._deviations)).sum(axis=2) for one in x]
        return np.moveaxis(np.array(every), 0, 2)

    def _quantiles(self, p: float) -> Array:
        ends = norm.ppf(p, self._centres, self._deviations)
        low, high = ends.min(axis=2), ends.max(axis=2)
        for _ in range(100):
            middle = (low + high) / 2
            below = (self._shares * norm.cdf(middle[:, :, None], self._centres, self._deviations)).sum(axis=2) < p
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(high[:, :, None])


@dataclass(frozen=True, repr=False)
class DrawnForecast(LineForecast):
    """The rows after the ends of autoregressive sequences, from drawn paths; means are exact."""

    paths: Array  # (n_sequences, n_steps, n_draws): drawn rows

    def _quantiles(self, p: float) -> Array:
        return np.asarray(np.quantile(self.paths, p, axis=2)[:, :, None])


def forecast_of_lines(
    estimates: Mapping[str, Array],
    last: Array,
    before: Array,
    steps: Array,
    names: NDArray[Any] | None,
    others: Array,
) -> LineForecast:
    r"""Return the forecast from the probabilities of the last states and the last rows of each sequence.

    With :math:`M_h(j) = E[x_h 1(s_h = j)]` of the vector x of the last rows and a constant, and its step :math:`F_j` in
    a state,

    .. math:: M_h(j) = F_j \sum_i A_{ij} M_{h-1}(i)

    Parameters
    ----------
    last : ndarray of shape (sequences, components)
    before : ndarray of shape (sequences, lags)
        The last rows, the latest first.
    steps : ndarray of shape (sequences, n_steps, components, components)
        Transitions to come.
    names : ndarray or None
    others : ndarray of shape (sequences, n_steps, n_others)
        Other columns of the rows to come.
    """
    if np.isnan(before).any():
        raise ValueError(
            f"a forecast of an autoregression needs the last {before.shape[1]} rows of each sequence: end it where "
            "they are there"
        )
    (n, k), n_steps, lags = last.shape, steps.shape[1], before.shape[1]
    own, slopes = np.split(estimates["coef"].reshape(k, -1), [lags], axis=1)
    base = estimates.get("intercept", np.zeros(k)).reshape(k) + others @ slopes.T
    moments = last[:, :, None] * np.column_stack([before, np.ones(n)])[:, None, :]
    states, mean = np.empty((n, n_steps, k)), np.empty((n, n_steps, 1))
    for h in range(n_steps):
        ahead = np.einsum("nij,nia->nja", steps[:, h], moments)
        states[:, h] = ahead[:, :, lags]
        new = np.einsum("nja,ja->nj", ahead[:, :, :lags], own) + base[:, h] * states[:, h]
        mean[:, h, 0] = new.sum(axis=1)
        moments = np.concatenate([new[:, :, None], ahead], axis=2)[:, :, [*range(lags), lags + 1]]
    deviations = np.sqrt(np.broadcast_to(estimates["variances"].reshape(-1), (k,)))
    if not lags:
        return LineForecast(states, mean, names, (), (), states, base, np.broadcast_to(deviations, base.shape))
    paths, centres, spreads = _drawn(last, before, steps, base, own, deviations)
    shares = np.broadcast_to(1 / paths.shape[2], paths.shape)
    return DrawnForecast(states, mean, names, (), (), shares, centres, spreads, paths)


def _drawn(
    last: Array, before: Array, steps: Array, base: Array, coef: Array, deviations: Array
) -> tuple[Array, Array, Array]:
    """Return drawn rows, their centres given the rows before them, and the deviations about these."""
    n_steps, sequence = steps.shape[1], np.arange(len(last))[:, None]
    n_draws = max(100, min(DRAWS, MOST_DRAWN // (len(last) * n_steps)))
    random = np.random.default_rng(0)
    rows, centres, spreads = np.empty((3, len(last), n_steps, n_draws))
    state = _chosen(np.repeat(last[:, None], n_draws, axis=1), random)
    recent = np.repeat(before[:, None], n_draws, axis=1)
    for h in range(n_steps):
        state = _chosen(steps[sequence, h, state], random)
        centres[:, h] = base[sequence, h, state] + np.einsum("nda,nda->nd", coef[state], recent)
        spreads[:, h] = deviations[state]
        rows[:, h] = centres[:, h] + spreads[:, h] * random.standard_normal(state.shape)
        recent = np.concatenate([rows[:, h, :, None], recent[:, :, :-1]], axis=2)
    return rows, centres, spreads


def _chosen(probabilities: Array, random: np.random.Generator) -> NDArray[np.intp]:
    """Draw a state for every row of probabilities."""
    ends = np.cumsum(probabilities, axis=-1)
    u = random.random(ends.shape[:-1])[..., None] * ends[..., -1:]
    return np.asarray(np.minimum((u >= ends).sum(axis=-1), ends.shape[-1] - 1), dtype=np.intp)
