"""Forecasts and residuals: distributions of single columns, mixed over states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from majorant._frames import data_frame
from majorant._numbers import briefly
from majorant._validation import check_real
from majorant.engine.mixture import Array
from majorant.models.hidden_markov.emission import Emission
from majorant.summary import counted


def marginal_of(
    parts: Sequence[Emission], names: Sequence[str], estimates: Mapping[str, Array], column: int, X: Array | None = None
) -> Any:
    """Return the distribution of one column of X in each state; of a regression in each row."""
    part = next(one for one in parts if one.columns.start <= column < one.columns.stop)
    if len(parts) > 1:
        head = f"{names[part.first]}_"
        estimates = {key.removeprefix(head): v for key, v in estimates.items() if key.startswith(head)}
    return part.marginals(estimates, column - part.first, X)


@dataclass(frozen=True, repr=False)
class Forecast:
    """The rows after the ends of sequences.

    Attributes
    ----------
    states : ndarray of shape (n_sequences, n_steps, n_components)
        Probabilities of the states, in the order of the names of the sequences.
    mean : ndarray of shape (n_sequences, n_steps, n_features)
        Expected rows.
    names : ndarray of shape (n_sequences,) or None
        Names of the sequences, where they have any.
    columns : tuple of str
        Names of the columns of `mean`.
    times : ndarray of shape (n_sequences, n_steps) or None
        Times of the rows to come, at the usual step after the last ones; None where times are not known or not even.
    """

    states: Array
    mean: Array
    names: NDArray[Any] | None
    _marginals: tuple[Any, ...]
    _ranges: tuple[tuple[Array, bool], ...]
    columns: tuple[str, ...] = field(default=(), kw_only=True)
    times: NDArray[Any] | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        n_sequences, n_steps, _ = self.states.shape
        told = ", ".join(self.columns)
        return f"<forecast of {told}: {counted(n_steps, 'step')} of {counted(n_sequences, 'sequence')}>"

    def to_frame(self, level: float = 0.9) -> Any:
        """Return means, intervals and probabilities of states as a data frame (pandas if installed, otherwise polars).

        Parameters
        ----------
        level : float, default=0.9
            Of the intervals.

        Returns
        -------
        data frame
            A row for each step of each sequence: ``sequence`` where they have names, ``ahead`` from 1, ``time`` where
            it is known, and for each column its ``_mean``, ``_low`` and ``_high``; then ``probability_1`` and so on.
        """
        n_sequences, n_steps, k = self.states.shape
        found: dict[str, Any] = {} if self.names is None else {"sequence": np.repeat(self.names, n_steps)}
        found["ahead"] = np.tile(np.arange(1, n_steps + 1), n_sequences)
        if self.times is not None:
            found["time"] = self.times.ravel()
        low, high = self.interval(level)
        for j, name in enumerate(self.columns):
            parts = zip(("mean", "low", "high"), (self.mean, low, high), strict=True)
            found |= {f"{name}_{ending}": values[:, :, j].ravel() for ending, values in parts}
        found |= {f"probability_{i + 1}": self.states[:, :, i].ravel() for i in range(k)}
        return data_frame(found)

    def density(self, values: Any, column: int = 0) -> Array:
        """Return the densities of values of a column, or probabilities of counts and codes.

        Parameters
        ----------
        values : array-like of shape (n_values,)
        column : int, default=0
            Of X.

        Returns
        -------
        ndarray of shape (n_sequences, n_steps, n_values)
        """
        own, x = self._marginals[column], np.asarray(values, dtype=np.float64)
        each = (own.pmf if hasattr(own, "pmf") else own.pdf)(x[:, None, None])  # (values, components, 1 or rows)
        return np.stack([_mixed(self.states, one) for one in each], axis=2)

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Return the quantiles of every column with the same probability beyond them on both sides.

        Of directions they lie about the mean direction, so that one of them may pass pi or -pi.

        Parameters
        ----------
        level : float, default=0.9
            Below 1.

        Returns
        -------
        low, high : ndarray of shape (n_sequences, n_steps, n_features)
        """
        check_real("level", level, low=0.0, high=float(np.nextafter(1.0, 0.0)))
        ends = [self.quantile(p) for p in (0.5 - level / 2, 0.5 + level / 2)]
        return ends[0], ends[1]

    def quantile(self, p: float) -> Array:
        """Return the quantile of every column: the smallest value not exceeded with a given probability.

        Directions count from the one opposite to the mean direction, through the mean to the opposite one again.

        Parameters
        ----------
        p : float
            Strictly between 0 and 1.

        Returns
        -------
        ndarray of shape (n_sequences, n_steps, n_features)
        """
        if not 0 < check_real("p", p, low=0.0, high=1.0) < 1:
            raise ValueError(f"p must be strictly between 0 and 1; got {briefly(p)}")
        return self._quantiles(p)

    def _quantiles(self, p: float) -> Array:
        columns = zip(self._marginals, self._ranges, strict=True)
        return np.stack([self._quantile(own, levels, is_whole, p) for own, (levels, is_whole) in columns], axis=2)

    def _quantile(self, own: Any, levels: Array, is_whole: bool, p: float) -> Array:
        flat = self.states.reshape(-1, self.states.shape[2])
        if len(levels):
            reached = flat @ own.cdf(levels) >= p - 1e-12
            found = levels[np.argmax(reached, axis=1)]
        else:
            low, high = _ends(own, flat, p)
            for _ in range(200):
                middle = (low + high) / 2
                below = cdf_of(own, flat, np.floor(middle) if is_whole else middle) < p - 1e-12
                low, high = np.where(below, middle, low), np.where(below, high, middle)
            found = np.ceil(high - 1e-9) + 0.0 if is_whole else high
        return np.asarray(found.reshape(self.states.shape[:2]))


def _mixed(states: Array, values: Any) -> Array:
    """Return the mean over states of numbers of each state, (components, 1) or of each row to come."""
    of_rows = np.broadcast_to(values, (states.shape[2], states.shape[0] * states.shape[1]))
    return np.asarray(np.einsum("stk,kst->st", states, of_rows.reshape(-1, *states.shape[:2])))


def _ends(own: Any, states: Array, p: float) -> tuple[Array, Array]:
    """Return two numbers for each row of probabilities of states between which its quantile is."""
    if hasattr(own, "circle_of"):
        return own.circle_of(states)  # type: ignore[no-any-return]
    ends = np.broadcast_to(own.ppf(p), states.shape[::-1])
    return ends.min(axis=0), ends.max(axis=0)


def cdf_of(own: Any, states: Array, x: Array) -> Array:
    """Return the probability of at most each number in a mixture of its own: (rows, components) and (rows,)."""
    if hasattr(own, "circle_of"):
        return np.asarray(own.cdf_of(states, x))
    return np.asarray(np.einsum("nk,kn->n", states, own.cdf(x)))


def forecast_of(
    parts: Sequence[Emission],
    names: Sequence[str],
    estimates: Mapping[str, Array],
    last: Array,
    steps: Array,
    sequences: NDArray[Any] | None = None,
    X: Array | None = None,
) -> Forecast:
    """Return the forecast from the probabilities of the last states, (sequences, components), and the steps to come.

    X holds the rows to come of regressions, sequence by sequence.
    """
    states, ahead = [], last
    for h in range(steps.shape[1]):
        ahead = np.einsum("si,sij->sj", ahead, steps[:, h])
        states.append(ahead)
    told = [(part, j) for part in parts for j in range(part.n_told)]
    marginals = tuple(marginal_of(parts, names, estimates, part.first + j, X) for part, j in told)
    ranges = [(part.values(j), part.is_discrete) for part, j in told]
    table = np.stack(states, axis=1)
    of_mixture = (getattr(own, "mean_of", lambda states, own=own: _mixed(states, own.mean())) for own in marginals)
    means = np.concatenate([np.asarray(mean(table)).reshape(*table.shape[:2], 1) for mean in of_mixture], axis=2)
    return Forecast(table, means, sequences, marginals, tuple(ranges))


def residuals_of(own: Any, x: Array, states: Array, is_discrete: bool) -> tuple[Array, Array]:
    """Return the probabilities of values at most, and less than, each cell; NaN where it is missing."""
    there = ~np.isnan(x)
    filled = np.where(there, x, 0.0)
    high = cdf_of(own, states, filled)
    low = high - np.einsum("nk,kn->n", states, own.pmf(filled)) if is_discrete else high
    return np.where(there, high, np.nan), np.where(there, np.maximum(low, 0.0), np.nan)


def uniform_residuals(
    parts: Sequence[Emission], names: Sequence[str], estimates: Mapping[str, Array], x: Array, states: Array
) -> Array:
    """Return the probability of at most each cell, the middle of both for counts and codes; NaN without a cell."""
    out = np.full(x.shape, np.nan)
    for part in parts:
        for j in range(part.first, part.first + part.n_told):
            high, low = residuals_of(marginal_of(parts, names, estimates, j, x), x[:, j], states, part.is_discrete)
            out[:, j] = (high + low) / 2
    return out


def given_others(ahead: Array, q: Array, log_density: Array) -> Array:
    """Return the probabilities of states given all rows but their own, (rows, components)."""
    with np.errstate(divide="ignore"):
        without = np.where(q > 0, np.log(np.where(q > 0, q, 1.0)) - log_density, ahead - 745)
    without -= without.max(axis=0)
    return np.asarray((np.exp(without) / np.exp(without).sum(axis=0)).T)


def as_normal(u: NDArray[np.float64]) -> Array:
    """Map uniform residuals to normal ones, within double precision."""
    return np.asarray(ndtri(np.clip(u, 1e-300, 1 - 1e-16)))
