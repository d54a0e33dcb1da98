"""Kinds of items: one class each, with the density of its items, the reading of their cells, estimates and words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from majorant._numbers import briefly
from majorant._validation import is_missing
from majorant.densities import Categorical, NegativeBinomial, Normal, Ordinal, Poisson, ZeroInflatedPoisson
from majorant.models.gaussian_in_units import GaussianInUnits
from majorant.models.mixture import standardised
from majorant.solvers.covariance_types import COVARIANCES

Array = NDArray[np.float64]
Levels = tuple[Any, ...]
Cells = tuple[int, Any]
"""Cells of an item as bivariate residuals take them: the number of levels with (cells one-hot, all zero where missing;
probabilities of the classes); or 0 with numbers less the mean of every class, (rows, components), NaN where missing."""
MOST_LEVELS = 1000
"""Most levels of an item."""
MOST_ROWS_OF_NAMES = 20
"""Rows up to which an item of text may be different in every one of them."""


@dataclass(frozen=True)
class Kind:
    """The items of one kind in a fit: numbers, unless a kind says otherwise."""

    columns: tuple[int, ...]  # of the table
    names: tuple[str, ...]
    levels: tuple[Levels, ...]  # of each item; empty for numbers
    prefix: str  # what the names of its estimates begin with; by default the name of the kind

    kind: ClassVar[str]
    """What the user calls the kind."""
    shown: ClassVar[str]
    """The estimate of a profile."""
    noun: ClassVar[str]
    """One item in words."""
    label: ClassVar[str] = ""
    """What a profile calls the number of an item without levels."""
    has_levels: ClassVar[bool] = False
    in_units: ClassVar[bool] = False
    """Whether items have units, which the density needs to be told."""

    @classmethod
    def learned(cls, known: NDArray[Any], order: Levels | None, name: str) -> tuple[Levels, Levels]:
        """Return the levels of a column of the fit, and those that its type names and no row has."""
        if known.dtype.kind != "f":
            raise ValueError(
                f"item {name!r} holds text such as {known[0]!r}: it can be categorical or ordinal, not {cls.kind}"
            )
        cls._check(known, name)
        return (), ()

    @classmethod
    def _check(cls, known: Array, name: str) -> None:
        """Raise a ValueError if the numbers of the fit cannot be of this kind."""

    @classmethod
    def coded(cls, values: NDArray[Any], levels: Levels, name: str, unseen: str) -> Array:
        """Return the cells of a column as numbers, NaN where one is missing."""
        if values.dtype.kind != "f":
            row = int(np.argmin(is_missing(values)))
            shown = briefly(values[row])
            raise ValueError(f"item {name!r} is a {cls.kind} item and must hold numbers; row {row} is {shown}")
        return values

    def density(self, model: Any) -> Any:
        """Return the density of the items within a class."""
        raise NotImplementedError(f"{type(self).__name__} must define its density")

    def points(self, x: Array, weights: Array) -> Array:
        """Return the columns as starts see them: numbers of like spread, none missing."""
        return standardised(x, weights)

    def estimates(self, model: Any, name: str) -> Array:
        """Return an estimate of a fit."""
        return np.asarray(getattr(model, f"{self.prefix}_{name}_"))

    def variances(self, model: Any) -> Array:
        """Return the variances of numbers within the classes, (components, items)."""
        return self.estimates(model, "variances")

    def moments(self, model: Any) -> tuple[Array, Array]:
        """Return the mean and standard deviation of each number over all classes, as the model has them."""
        values = self.estimates(model, self.shown)
        center = model.weights_ @ values
        scale = np.sqrt(model.weights_ @ (self.variances(model) + (values - center) ** 2))
        return center, np.where(scale > 0, scale, 1.0)

    def entries(self, estimate: str) -> list[str]:
        """Return a name for each number of a class in an estimate."""
        return list(self.names)

    def at(self, i: int) -> slice:
        """Return where the numbers of an item are among those of the estimate of the profile."""
        return slice(i, i + 1)

    def cells(self, x: Array, i: int, estimates: Array) -> Cells:
        """Return the cells of an item, of which the estimates are those of the profile."""
        return 0, x[:, [i]] - estimates[:, i]


class LevelItems(Kind):
    """Items whose cells are levels."""

    shown = "probabilities"
    has_levels = True

    @classmethod
    def learned(cls, known: NDArray[Any], order: Levels | None, name: str) -> tuple[Levels, Levels]:
        """Return the levels in their order, or sorted."""
        met = set(known.tolist())
        if known.dtype.kind == "O" and len(met) == len(known) > MOST_ROWS_OF_NAMES:
            raise ValueError(
                f"item {name!r} is a different text in every row, such as {known[0]!r}: it names the rows and says "
                "nothing of classes; leave it out"
            )
        if len(met) > MOST_LEVELS:
            raise ValueError(
                f"item {name!r} has {len(met):,} levels, more than {MOST_LEVELS:,}: every level takes a probability of "
                "each class; join levels, or leave the item out (a number can be 'normal' or 'count')"
            )
        if not order:
            return tuple(map(plain, sorted(met))), ()
        return tuple(v for v in order if v in met), tuple(v for v in order if v not in met)

    @classmethod
    def coded(cls, values: NDArray[Any], levels: Levels, name: str, unseen: str) -> Array:
        """Return the place of each value among the levels; what the fit has not seen may be taken for missing."""
        out = np.full(len(values), np.nan)
        known = np.flatnonzero(~is_missing(values))
        place = {level: float(i) for i, level in enumerate(levels)}
        if values.dtype.kind == "f":
            distinct, inverse = np.unique(values[known], return_inverse=True)
            out[known] = np.array([place.get(v, -1.0) for v in distinct.tolist()])[inverse]
        else:
            out[known] = [place.get(v, -1.0) for v in values[known].tolist()]
        wrong = np.flatnonzero(out == -1.0)
        if len(wrong) and unseen == "error":
            shown = ", ".join(repr(level) for level in levels[:8]) + (", ..." if len(levels) > 8 else "")
            raise ValueError(
                f"item {name!r} is {plain(values[wrong[0]])!r} in row {wrong[0]}, a level that the fit has not seen "
                f"(it saw {shown}); correct the cell, or set unseen='missing' to take such cells for missing ones"
            )
        out[wrong] = np.nan
        return out

    @property
    def sizes(self) -> list[int]:
        """Numbers of levels of the items."""
        return list(map(len, self.levels))

    def entries(self, estimate: str) -> list[str]:
        """Return item and level of a probability: ``vote=left``."""
        return [f"{name}={level}" for name, own in zip(self.names, self.levels, strict=True) for level in own]

    def at(self, i: int) -> slice:
        """Return the probabilities of the levels of an item."""
        first = sum(self.sizes[:i])
        return slice(first, first + self.sizes[i])

    def cells(self, x: Array, i: int, estimates: Array) -> Cells:
        """Return cells one-hot, and probabilities."""
        size = self.sizes[i]
        hot = np.asarray(x[:, [i]] == np.arange(size), dtype=np.float64)
        return size, (hot, estimates[:, self.at(i)])


class CategoricalItems(LevelItems):
    """Items of levels without an order."""

    kind, noun = "categorical", "categorical item"

    def density(self, model: Any) -> Categorical:
        """Return a probability for each level."""
        return Categorical(self.sizes)

    def points(self, x: Array, weights: Array) -> Array:
        """Return the levels one-hot."""
        hot = [x[:, [j]] == np.arange(size) for j, size in enumerate(self.sizes)]
        return np.concatenate(hot, axis=1).astype(np.float64)


class OrdinalItems(LevelItems):
    """Items of ordered levels."""

    kind, noun = "ordinal", "ordinal item"

    @classmethod
    def learned(cls, known: NDArray[Any], order: Levels | None, name: str) -> tuple[Levels, Levels]:
        """Return the levels in their order, which text of more than two levels must tell."""
        found = super().learned(known, order, name)
        levels = found[0]
        begin = [re.match(r"\s*\d+", level) if isinstance(level, str) else None for level in levels]
        is_numbered = all(begin) and bool(np.all(np.diff([float(own[0]) for own in begin if own]) > 0))
        if not order and len(levels) > 2 and isinstance(levels[0], str) and not is_numbered:
            raise ValueError(
                f"ordinal item {name!r} holds text, {', '.join(map(repr, levels[:4]))}, whose order is not told: give "
                "numbers in its order, text that begins with them, or a pandas.Categorical with ordered categories"
            )
        return found

    def density(self, model: Any) -> Ordinal:
        """Return adjacent-category logits."""
        return Ordinal(self.sizes)

    def entries(self, estimate: str) -> list[str]:
        """Return item and level of a probability; the item of an effect."""
        return super().entries(estimate) if estimate == "probabilities" else list(self.names)


class NormalItems(Kind):
    """Numbers that are normal within a class."""

    kind, shown, noun, label = "normal", "means", "normal item", "mean"
    in_units = True

    @classmethod
    def _check(cls, known: Array, name: str) -> None:
        if len(known) and (known == known[0]).all():
            raise ValueError(
                f"normal item {name!r} is constant, {known[0]:g}: it does not distinguish classes; leave it out"
            )

    def density(self, model: Any) -> Any:
        """Return a mean and a variance for each item."""
        at = list(self.columns)
        return Normal(model.item_center_[at], model.item_scale_[at], shared=model.variances == "shared")


class CorrelatedItems(NormalItems):
    """Numbers that are normal within a class, and correlated."""

    noun = "correlated normal item"

    def density(self, model: Any) -> GaussianInUnits:
        """Return means and a matrix of covariances, of each class or shared."""
        at, kind = list(self.columns), COVARIANCES["tied" if model.variances == "shared" else "full"]
        return GaussianInUnits(kind, model.item_center_[at], model.item_scale_[at], has_gaps=True, part="class")

    def variances(self, model: Any) -> Array:
        """Return the diagonals of the covariances."""
        return np.diagonal(self.estimates(model, "covariances"), axis1=1, axis2=2)

    def entries(self, estimate: str) -> list[str]:
        """Return the items, or pairs of them."""
        return [f"{a}, {b}" for a in self.names for b in self.names] if estimate == "covariances" else list(self.names)


class CountItems(Kind):
    """Counts that are Poisson within a class."""

    kind, shown, noun, label = "count", "rates", "count", "rate"

    @classmethod
    def _check(cls, known: Array, name: str) -> None:
        wrong = known[~((known >= 0) & (known == np.rint(known)))]
        if len(wrong):
            raise ValueError(f"count item {name!r} must hold whole numbers from 0; got {wrong[0]:g}")

    def density(self, model: Any) -> Any:
        """Return a rate for each item."""
        return Poisson(len(self.names))

    def variances(self, model: Any) -> Array:
        """Return the rates."""
        return self.estimates(model, "rates")


class NegativeBinomialItems(CountItems):
    """Counts that vary more than Poisson's within a class."""

    kind, noun = "negative_binomial", "negative binomial count"

    def density(self, model: Any) -> Any:
        """Return a rate and a size for each item."""
        return NegativeBinomial(len(self.names))

    def variances(self, model: Any) -> Array:
        """Return the rates and what goes beyond them."""
        rates = self.estimates(model, "rates")
        return np.asarray(rates + rates**2 / self.estimates(model, "sizes"))


class ZeroInflatedItems(CountItems):
    """Counts with more zeros than Poisson's within a class."""

    kind, shown, noun, label = "zero_inflated_poisson", "means", "zero-inflated count", "mean"

    def density(self, model: Any) -> Any:
        """Return a mean and a share of zeros for each item."""
        return ZeroInflatedPoisson(len(self.names))

    def variances(self, model: Any) -> Array:
        """Return the means and what goes beyond them."""
        means, shares = self.estimates(model, "means"), self.estimates(model, "inflations")
        return np.asarray(means + means**2 * shares / (1 - shares))


KINDS: dict[str, type[Kind]] = {
    own.kind: own
    for own in (CategoricalItems, OrdinalItems, NormalItems, CountItems, NegativeBinomialItems, ZeroInflatedItems)
}
"""The kinds of items by name, in the order of their columns in a density."""
PREFIXES = {"categorical": "item"}
"""What the names of estimates begin with, where that is not the kind."""
Together = tuple[tuple[str, tuple[int, ...]], ...]
"""Names and columns of blocks of normal items that are correlated within a class."""


def plain(value: Any) -> Any:
    """Return a level as Python writes it: whole numbers without a point."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value.item() if isinstance(value, np.generic) else value


def blocks_of(
    names: Sequence[str], kinds: Sequence[str], levels: Sequence[Levels], correlated: Together
) -> tuple[Kind, ...]:
    """Return the items kind by kind, those that are correlated last."""
    apart = set(range(len(names))).difference(*(columns for _, columns in correlated))
    parts: list[tuple[type[Kind], str, tuple[int, ...]]] = [
        (own, PREFIXES.get(kind, kind), tuple(j for j in sorted(apart) if kinds[j] == kind))
        for kind, own in KINDS.items()
    ]
    parts += [(CorrelatedItems, name, columns) for name, columns in correlated]
    return tuple(
        own(at, tuple(names[j] for j in at), tuple(levels[j] for j in at), prefix) for own, prefix, at in parts if at
    )
