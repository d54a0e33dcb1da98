"""The profile of the classes: what each class answers, item by item, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._frames import data_frame
from majorant.models.latent_class_analysis.items import Items

Array = NDArray[np.float64]
ESTIMATES = {
    "categorical": "item_probabilities",
    "ordinal": "ordinal_probabilities",
    "normal": "normal_means",
    "count": "count_rates",
}
"""The estimate that the profile shows, of each kind of item."""
WORDS = {"normal": "mean", "count": "rate"}


@dataclass(frozen=True)
class ClassProfile:
    """What each class answers: a row for each level of a categorical item, and one for the mean of any other.

    Attributes
    ----------
    items, levels, kinds : tuple of str
        Of each row; the level of a number is "mean", of a count "rate".
    shares : ndarray of shape (n_components,)
    estimates : ndarray of shape (rows, n_components)
        Probabilities, means and rates.
    low, high : ndarray of shape (rows, n_components)
        Intervals; NaN where there is none, as for a probability of 0 or 1.
    center, scale : ndarray of shape (rows,)
        Mean and standard deviation of the numbers over all classes; 0 and 1 for probabilities.
    """

    items: tuple[str, ...]
    levels: tuple[str, ...]
    kinds: tuple[str, ...]
    shares: Array
    estimates: Array
    low: Array
    high: Array
    center: Array
    scale: Array

    @property
    def standardised(self) -> tuple[Array, Array, Array]:
        """Estimates and ends, those of numbers in standard deviations from the mean of all rows."""
        values = np.stack([self.estimates, self.low, self.high])
        estimates, low, high = (values - self.center[:, None]) / self.scale[:, None]
        return estimates, low, high

    @property
    def is_probability(self) -> NDArray[np.bool_]:
        """Which rows are probabilities of a level."""
        return np.array([kind not in WORDS for kind in self.kinds])

    @property
    def distinct_rows(self) -> list[int]:
        """The rows that say something that no other does: of an item with two levels, the second alone."""
        return [
            i
            for i, item in enumerate(self.items)
            if not (self.items.count(item) == 2 and self.items[i + 1 : i + 2] == (item,))
        ]

    def to_frame(self) -> Any:
        """Return a data frame with a row for each item, level and class."""
        k = len(self.shares)
        names = {"item": self.items, "level": self.levels}
        columns: dict[str, Any] = {head: np.repeat(values, k).tolist() for head, values in names.items()}
        columns["class"] = np.tile(np.arange(1, k + 1), len(self.items)).tolist()
        columns["estimate"] = self.estimates.ravel().tolist()
        return data_frame({**columns, "low": self.low.ravel().tolist(), "high": self.high.ravel().tolist()})


def profile_of(model: Any, intervals: Mapping[str, tuple[Array, Array]]) -> ClassProfile:
    """Return the profile of a fit, with intervals of its estimates by name, where there are some."""
    items: Items = model.items_
    names, levels, kinds, parts = list[str](), list[str](), list[str](), list[Array]()
    taken = dict.fromkeys(ESTIMATES, 0)
    for name, kind, own in zip(items.names, items.kinds, items.levels, strict=True):
        estimate = ESTIMATES[kind]
        values = np.asarray(getattr(model, f"{estimate}_"))
        low, high = intervals.get(estimate, (np.full_like(values, np.nan),) * 2)
        width = len(own) or 1
        at = slice(taken[kind], taken[kind] + width)
        taken[kind] += width
        names += [name] * width
        levels += list(map(str, own)) or [WORDS[kind]]
        kinds += [kind] * width
        parts.append(np.stack([values[:, at].T, low[:, at].T, high[:, at].T]))
    estimates, low, high = np.concatenate(parts, axis=1)
    shares = np.asarray(model.weights_)
    center, scale = _moments(model, estimates, kinds, shares)
    return ClassProfile(tuple(names), tuple(levels), tuple(kinds), shares, estimates, low, high, center, scale)


def _moments(model: Any, estimates: Array, kinds: list[str], shares: Array) -> tuple[Array, Array]:
    """Return the mean and standard deviation of the numbers of each row under the model; 0 and 1 for probabilities."""
    center, scale = np.zeros(len(kinds)), np.ones(len(kinds))
    spread = {"normal": iter(getattr(model, "normal_variances_", np.empty((0, 0))).T)}
    for i, kind in enumerate(kinds):
        if kind in WORDS:
            within = next(spread[kind]) if kind in spread else estimates[i]  # the variance of a Poisson is its mean
            center[i] = shares @ estimates[i]
            scale[i] = np.sqrt(shares @ (within + (estimates[i] - center[i]) ** 2)) or 1.0
    return center, scale
