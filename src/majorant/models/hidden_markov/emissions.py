"""Emissions of hidden Markov models: the density of rows in a state, its units, and distributions of single columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from majorant._validation import check_choice
from majorant.data.chunks import Block
from majorant.densities import Bernoulli, Categorical, NegativeBinomial, Poisson, Product
from majorant.densities.gaussian import Gaussian, Normals
from majorant.densities.gaussian_gaps import GaussianGaps
from majorant.engine.mixture import Array, Limits, Mixture, Table
from majorant.models.gaussian_mixture.regularity import judge
from majorant.models.gaussian_mixture.words import degeneracy
from majorant.models.hidden_markov.lines import SwitchingLines
from majorant.registry import value_class
from majorant.solvers.covariance_types import COVARIANCES, Covariance
from majorant.solvers.gaussian import Mixture as Components

FLOOR = 1e-7
"""Smallest variance of a state along any direction, as a share of that of all rows."""
RANGE = (-16.0, 7.0)
"""Range of log variances, or of the entries of the factors of covariances, in standard units."""
SMALLEST = 1e-153
"""Smallest standard deviation whose square is a number."""
EMISSIONS = ("gaussian", "poisson", "negative_binomial", "bernoulli", "categorical", "regression")


class GaussianInUnits:
    """Normal distributions, fitted on standardised columns and reported in the units of the rows.

    Parameters
    ----------
    kind : Covariance
    centre, scale : ndarray of shape (d,)
        A column is its centre plus its scale times the standard one.
    has_gaps : bool
        Whether cells may be missing.
    """

    n_columns = 1
    exact = True

    def __init__(self, kind: Covariance, centre: Array, scale: Array, has_gaps: bool) -> None:
        self.kind, self.centre, self.scale, self.d = kind, centre, scale, len(centre)
        self.whole = Gaussian(kind, self.d, FLOOR)
        self.inner: Any = GaussianGaps(self.whole) if has_gaps else self.whole

    @property
    def limits(self) -> Mapping[str, Limits]:
        """Variances are positive; entries of matrices may be any numbers."""
        low = np.where(np.eye(self.d, dtype=bool), 0.0, -np.inf) if self.kind.has_matrices else 0.0
        return {"covariances": (low, np.inf)}

    @property
    def width(self) -> int:
        """Width of the statistics, as in standard units."""
        return int(self.inner.width)

    def log_density(self, theta: Normals, rows: Block) -> Table:
        """Return the log density of each row in its units; of the cells that are there."""
        volume, x = np.log(self.scale), rows.columns[0]
        if self.inner is not self.whole:
            return np.asarray(self.inner.log_density(theta, rows) - ~np.isnan(x) @ volume)
        each = [self.whole.mixture(theta, run).log_densities(x, float(volume.sum())) for run in range(len(theta.means))]
        by_row = each[0][None] if len(each) == 1 else np.stack(each)
        return np.moveaxis(by_row, 1, 2)  # a chain and the moments read it row by row

    def statistics(self, theta: Normals | None, rows: Block, q: Table) -> Array:
        """Return the moments in standard units."""
        return np.asarray(self.inner.statistics(theta, rows, q))

    def solve(self, statistics: Array, theta: Normals | None, share: Array) -> Normals:
        """Return the means and covariances of the moments."""
        found: Normals = self.inner.solve(statistics, theta, share)
        return found

    def n_parameters(self, n_components: int) -> int:
        """Return the means and free entries of the covariances."""
        return self.whole.n_parameters(n_components)

    def degeneracy(self, theta: Normals, sizes: Array, mixture: Mixture) -> str:
        """Return the degeneracy of a solution by the rule of Gaussian mixtures."""
        n, parts = sizes.sum(), (theta.means[0], theta.covariances[0])
        found = judge(Components(sizes / n, *parts, self.kind.name), theta.floored[0], float(n))
        return degeneracy(found).replace("component", "state")

    def _scaled(self, covariances: Array, scale: Array) -> Array:
        factor = scale[0] if self.kind.name == "spherical" else scale
        return self.kind.scaled(covariances, np.asarray(factor))

    def describe(self, theta: Normals) -> dict[str, Array]:
        """Return the means and covariances; a shared covariance is repeated for each state."""
        covariances = self._scaled(theta.covariances, self.scale)
        if self.kind.name == "tied":
            covariances = np.repeat(covariances[:, None], theta.means.shape[1], axis=1)
        return {"means": self.centre + self.scale * theta.means, "covariances": covariances}

    def recalled(self, estimates: Mapping[str, Array]) -> Normals:
        """Return the components of one mixture."""
        covariances = np.asarray(estimates["covariances"], dtype=np.float64)
        covariances = self._scaled(covariances[0] if self.kind.name == "tied" else covariances, 1 / self.scale)
        means = (np.asarray(estimates["means"], dtype=np.float64) - self.centre) / self.scale
        return self.whole.recalled({"means": means, "covariances": covariances})

    def vector(self, theta: Normals) -> Array:
        """Return the means, and unconstrained numbers of the covariances."""
        return self.whole.vector(theta)

    def theta_of(self, vector: Array, like: Normals) -> Normals:
        """Return the inverse of `vector`, within what the rows could have: extrapolation may go far."""
        numbers = vector.copy()
        size = like.means.shape[1] * self.d
        numbers[:, size:] = np.clip(numbers[:, size:], *RANGE)
        return self.whole.theta_of(numbers, like)

    def drawn(self, theta: Normals, components: NDArray[np.intp], random: np.random.Generator) -> Array:
        """Draw a row of each of these components."""
        factors = np.linalg.cholesky(self.kind.matrices(theta.covariances[0], theta.means.shape[1], self.d))
        noise = np.einsum("nij,nj->ni", factors[components], random.standard_normal((len(components), self.d)))
        return np.asarray(self.centre + self.scale * (theta.means[0][components] + noise))


@value_class
@dataclass(frozen=True)
class Emission:
    """The density of some columns, and how they are read.

    Attributes
    ----------
    name : str
        One of `EMISSIONS`.
    first, n_features : int
        Which columns of X.
    covariance_type : str
    centre, scale : ndarray
        Of a "gaussian": see `GaussianInUnits`.
    levels : tuple of ndarray
        Of a "categorical": the values of each column.
    has_gaps : bool
    """

    name: str
    first: int
    n_features: int
    covariance_type: str = "full"
    centre: Array | None = None
    scale: Array | None = None
    levels: tuple[Array, ...] = ()
    has_gaps: bool = False

    @property
    def columns(self) -> slice:
        """The columns of X."""
        return slice(self.first, self.first + self.n_features)

    def learned(self, X: Array, weights: Array) -> Emission:
        """Return the same with the units or the levels of rows."""
        x = X[:, self.columns]
        there = ~np.isnan(x)
        if self.name == "categorical":
            return replace(self, levels=tuple(np.unique(c[~np.isnan(c)]) for c in x.T))
        if self.name not in ("gaussian", "regression"):
            return self
        mass = np.maximum(np.einsum("i,ij->j", weights, there), 1e-300)
        size = np.maximum(np.abs(np.where(there, x, 0.0)).max(axis=0), np.finfo(np.float64).tiny)
        inside = np.where(there, x / size, 0.0)  # squares of what is not scaled could leave the range of a double
        centre = np.einsum("i,ij->j", weights, inside) / mass
        away = np.where(there, inside - centre, 0.0)
        scale = size * np.sqrt(np.einsum("i,ij,ij->j", weights, away, away) / mass)
        centre = size * centre
        if self.name == "gaussian" and self.covariance_type == "spherical":
            scale = np.full_like(scale, scale.max() * np.sqrt(np.mean((scale / max(scale.max(), 1e-300)) ** 2)))
        scale = np.where(scale > 0, scale, 1.0)
        if scale.min() < SMALLEST or scale.max() > 1 / SMALLEST:
            how = "small" if scale.min() < SMALLEST else "large"
            raise ValueError(f"the variances of X are too {how} for a float64: rescale its columns")
        return replace(self, centre=centre, scale=scale, has_gaps=not bool(there.all()))

    def read(self, X: Array) -> tuple[Array, ...]:
        """Return the columns as the density reads them.

        Raises
        ------
        ValueError
            If a cell cannot be of this density.
        """
        x = np.ascontiguousarray(X[:, self.columns])
        if self.name == "gaussian":
            assert self.centre is not None and self.scale is not None
            return (np.asarray((x - self.centre) / self.scale),)
        if self.name == "regression":
            assert self.centre is not None and self.scale is not None
            table = (x - self.centre) / self.scale
            table[np.isnan(table).any(axis=1)] = np.nan
            design = np.column_stack([np.where(np.isnan(table[:, 0]), np.nan, 1.0), table[:, 1:]])
            return design, np.ascontiguousarray(table[:, 0])
        if self.name == "categorical":
            out = np.stack([np.searchsorted(levels, c) for levels, c in zip(self.levels, x.T, strict=True)], axis=1)
            found = np.stack(
                [levels[np.minimum(c, len(levels) - 1)] for levels, c in zip(self.levels, out.T, strict=True)]
            )
            self._refuse((x != found.T) & ~np.isnan(x), X, "a value that the rows of the fit do not have")
            return (np.where(np.isnan(x), np.nan, out),)
        if self.name in ("poisson", "negative_binomial"):
            self._refuse((x < 0) | (x != np.rint(x)), X, "counts are whole numbers from 0 on")
        if self.name == "bernoulli":
            self._refuse((x != 0) & (x != 1), X, "values are 0 or 1")
        return (x,)

    def _refuse(self, wrong: NDArray[np.bool_], X: Array, why: str) -> None:
        wrong &= ~np.isnan(X[:, self.columns])
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            column += self.first
            raise ValueError(
                f"row {row}, column {column} of X is {X[row, column]:g}; with emission={self.name!r} {why} (NaN where "
                "a cell is missing): choose another emission, or change the rows"
            )

    def density(self, has_gaps: bool) -> Any:
        """Return the density of the columns."""
        if self.name == "gaussian":
            assert self.centre is not None and self.scale is not None
            return GaussianInUnits(
                COVARIANCES[self.covariance_type], self.centre, self.scale, has_gaps or self.has_gaps
            )
        if self.name == "regression":
            assert self.centre is not None and self.scale is not None
            return SwitchingLines(self.centre, self.scale, self.covariance_type == "tied")
        if self.name == "categorical":
            return Categorical([len(levels) for levels in self.levels])
        if self.name == "negative_binomial":
            return NegativeBinomial(self.n_features)
        return Poisson(self.n_features) if self.name == "poisson" else Bernoulli(self.n_features)

    @property
    def is_discrete(self) -> bool:
        """Whether rows are counts or codes."""
        return self.name not in ("gaussian", "regression")

    def marginals(self, estimates: Mapping[str, Array], column: int, X: Array | None = None) -> Any:
        """Return the distribution of one column in each state, (components, 1 or rows), as scipy has it.

        Raises
        ------
        TypeError
            If the column is of a regression, and no rows with its other columns are given.
        """
        if self.name == "regression":
            p = self.n_features - 1
            if X is None and p:
                raise TypeError("the rows to come of a regression need its other columns, which are not known")
            others = np.zeros((1, 0)) if X is None else X[:, self.columns][:, 1:]
            lines = (
                estimates["intercept"][:, None] + estimates["coef"].reshape(len(estimates["intercept"]), p) @ others.T
            )
            return stats.norm(lines, np.sqrt(estimates["variances"])[:, None])
        if self.name == "gaussian":
            means = estimates["means"]
            kind = COVARIANCES[self.covariance_type]
            shared = estimates["covariances"]
            own = shared[0] if kind.name == "tied" else shared
            variances = kind.variances(own, *means.shape)
            return stats.norm(means[:, [column]], np.sqrt(variances[:, [column]]))
        if self.name == "poisson":
            return stats.poisson(estimates["rates"][:, [column]])
        if self.name == "negative_binomial":
            rate, size = estimates["rates"][:, [column]], estimates["sizes"][:, [column]]
            return stats.nbinom(size, size / (size + rate))
        if self.name == "bernoulli":
            return stats.bernoulli(estimates["probabilities"][:, [column]])
        first = sum(len(levels) for levels in self.levels[:column])
        return Levels(self.levels[column], estimates["probabilities"][:, first : first + len(self.levels[column])])


@dataclass(frozen=True)
class Levels:
    """Distributions over a few values in ascending order, one for each state; methods as in scipy."""

    levels: Array
    p: Array

    def pmf(self, x: Array) -> Array:
        """Return the probability of each value, (components, values)."""
        return np.asarray(self.p @ (self.levels[:, None] == np.asarray(x)))

    def cdf(self, x: Array) -> Array:
        """Return the probability of at most each value, (components, values)."""
        return np.asarray(self.p @ (self.levels[:, None] <= np.asarray(x)))

    def mean(self) -> Array:
        """Return the exponential family's scale of each component, (components, 1)."""
        return np.asarray((self.p * self.levels).sum(axis=1, keepdims=True))


def emissions(emission: str | Sequence[str], covariance_type: str, n_features: int) -> tuple[Emission, ...]:
    """Return the emission of all columns, or one for each column.

    Raises
    ------
    ValueError, TypeError
        If a name is unknown, or their number is not that of the columns.
    """
    check_choice("covariance_type", covariance_type, list(COVARIANCES))
    if isinstance(emission, str):
        check_choice("emission", emission, EMISSIONS, or_else=", or one of these for each column")
        return (Emission(emission, 0, n_features, covariance_type),)
    if not isinstance(emission, list | tuple) or not emission:
        raise TypeError(
            f"emission must be one of {', '.join(EMISSIONS)}, or a list of these, one per column; got {emission!r}"
        )
    if len(emission) != n_features:
        raise ValueError(f"emission names {len(emission)} columns; X has {n_features}")
    for one in emission:
        check_choice("emission", one, [name for name in EMISSIONS if name != "regression"])
    return tuple(Emission(one, j, 1, covariance_type) for j, one in enumerate(emission))


def product_of(parts: Sequence[Emission], names: Sequence[str], has_gaps: bool) -> Any:
    """Return the density of all columns; parts of several are named by their columns."""
    if len(parts) == 1:
        return parts[0].density(has_gaps)
    return Product([(names[part.first], part.density(has_gaps)) for part in parts])


def with_levels(parts: Sequence[Emission], rows: Array) -> Array:
    """Return drawn rows with the values of categories for their codes."""
    for part in parts:
        for j, levels in enumerate(part.levels, start=part.first):
            rows[:, j] = levels[rows[:, j].astype(np.intp)]
    return rows
