"""Emissions of hidden Markov models: the density of columns in a state, how they are read, and their marginals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit

from majorant._numbers import briefly
from majorant._validation import check_choice
from majorant.densities import Bernoulli, Categorical, NegativeBinomial, Poisson, Product, ZeroInflatedPoisson
from majorant.engine.mixture import Array
from majorant.models.gaussian_in_units import GaussianInUnits, units_of
from majorant.models.hidden_markov.emission import Emission
from majorant.models.hidden_markov.lines import SwitchingLines
from majorant.models.hidden_markov.means import SWITCHING_AUTOREGRESSION, SWITCHING_MEAN, SwitchingMeans, by_tuple
from majorant.models.hidden_markov.positive import GammaEmission, VonMisesEmission
from majorant.models.hidden_markov.students import Students
from majorant.registry import value_class
from majorant.solvers.covariance_types import COVARIANCES
from majorant.solvers.orthonormal import CONSTANT, WITHOUT_EFFECT
from majorant.solvers.responses import Binomial, Response
from majorant.solvers.responses import Poisson as PoissonResponse


@value_class
@dataclass(frozen=True)
class GaussianEmission(Emission):
    """Normal columns with covariances of any type."""

    name = "gaussian"
    is_discrete = False
    has_gaps: bool = False

    def learned(self, X: Array, weights: Array) -> Self:
        """Return the same with units, and whether cells are missing."""
        x = X[:, self.columns]
        centre, scale = units_of(x, weights, common=self.covariance_type == "spherical")
        return replace(self, centre=centre, scale=scale, has_gaps=bool(np.isnan(x).any()))

    def completed(self, levels: Sequence[Array], gaps: Sequence[bool]) -> Self:
        """Return the same, and whether cells are missing anywhere."""
        return replace(self, has_gaps=any(gaps[self.columns]))

    def density(self, has_gaps: bool) -> GaussianInUnits:
        """Return normal distributions."""
        assert self.centre is not None and self.scale is not None
        kind = COVARIANCES[self.covariance_type]
        return GaussianInUnits(kind, self.centre, self.scale, has_gaps or self.has_gaps)

    def marginals(self, estimates: Mapping[str, Array], j: int, X: Array | None = None) -> Any:
        """Return normal distributions."""
        means, kind, shared = estimates["means"], COVARIANCES[self.covariance_type], estimates["covariances"]
        variances = kind.variances(shared[0] if kind.name == "tied" else shared, *means.shape)
        return stats.norm(means[:, [j]], np.sqrt(variances[:, [j]]))


@value_class
@dataclass(frozen=True)
class StudentEmission(Emission):
    """Columns of Student's distribution, with scale matrices of any type; a row has all its cells or none."""

    name = "student"
    is_discrete = False

    def learned(self, X: Array, weights: Array) -> Self:
        """Return the same with units."""
        centre, scale = units_of(X[:, self.columns], weights, common=self.covariance_type == "spherical")
        return replace(self, centre=centre, scale=scale)

    def check(self, X: Array, first: int = 0, names: Sequence[str] | None = None) -> None:
        """Raise ValueError if a row has some of its cells, and lacks others."""
        missing = np.isnan(X[:, self.columns])
        some = missing.any(axis=1) & ~missing.all(axis=1)
        if some.any():
            raise ValueError(
                f"row {first + int(some.argmax())} of X lacks some cells, and with emission='student' a row has all or "
                "none: leave the others out too (NaN), or give ['student', ...], one per column, which are then "
                "independent"
            )

    def density(self, has_gaps: bool) -> Students:
        """Return Student distributions."""
        assert self.centre is not None and self.scale is not None
        return Students(COVARIANCES[self.covariance_type], self.centre, self.scale)

    def marginals(self, estimates: Mapping[str, Array], j: int, X: Array | None = None) -> Any:
        """Return Student distributions of one column."""
        means, kind, shared = estimates["means"], COVARIANCES[self.covariance_type], estimates["scale_matrices"]
        spread = kind.variances(shared[0] if kind.name == "tied" else shared, *means.shape)
        return stats.t(estimates["degrees_of_freedom"][:, None], means[:, [j]], np.sqrt(spread[:, [j]]))


@value_class
@dataclass(frozen=True)
class LinesEmission(Emission):
    """Lines of the first column on the others, with a constant or without one."""

    name = "regression"
    is_discrete = False
    has_constant: bool = True

    @property
    def n_told(self) -> int:
        """The target alone."""
        return 1

    def learned(self, X: Array, weights: Array) -> Self:
        """Return the same with units: root mean squares where there is no constant, which the means would bring in."""
        x = X[:, self.columns]
        if not (weights[~np.isnan(x).any(axis=1)] > 0).any():
            raise ValueError("no row has all its cells and lags: use fewer lags, or longer sequences")
        centre, scale = units_of(x, weights)
        if not self.has_constant:
            centre, scale = np.zeros_like(centre), np.hypot(centre, scale)
        else:
            away, size = np.nanmax(x, axis=0) - np.nanmin(x, axis=0), np.nanmax(np.abs(x), axis=0)
            same = away <= CONSTANT * size
            scale[1:] = np.where(same[1:], WITHOUT_EFFECT, scale[1:])
        return replace(self, centre=centre, scale=scale)

    def completed(self, levels: Sequence[Array], gaps: Sequence[bool]) -> Self:
        """Return the same; a column that is the same in all rows of a sample may vary in others."""
        assert self.scale is not None
        varies = np.ones(len(self.scale), dtype=bool)  # lags lie between the target and the others
        varies[len(varies) - len(levels) + 1 :] = [len(own) > 1 for own in levels[1:]]
        return replace(self, scale=np.where(varies & (self.scale == WITHOUT_EFFECT), 1.0, self.scale))

    def _coded(self, x: Array) -> tuple[Array, ...]:
        assert self.centre is not None and self.scale is not None
        table = (x - self.centre) / self.scale
        table[np.isnan(table).any(axis=1)] = np.nan
        constant = [np.where(np.isnan(table[:, 0]), np.nan, 1.0)] if self.has_constant else []
        design = np.column_stack([*constant, table[:, 1:] * (self.scale[1:] < WITHOUT_EFFECT)])
        return design, np.ascontiguousarray(table[:, 0])

    def density(self, has_gaps: bool) -> SwitchingLines:
        """Return lines with normal noise."""
        assert self.centre is not None and self.scale is not None
        return SwitchingLines(self.centre, self.scale, self.covariance_type == "tied", self.has_constant)

    def marginals(self, estimates: Mapping[str, Array], j: int, X: Array | None = None) -> Any:
        """Return normal distributions about the lines."""
        p = self.n_features - 1
        if X is None and p:
            raise TypeError("the rows to come of a regression need its other columns, which are not known")
        others = np.zeros((1, 0)) if X is None else X[:, self.columns][:, 1:]
        constants = estimates["intercept"][:, None] if self.has_constant else 0.0
        return stats.norm(constants + estimates["coef"] @ others.T, np.sqrt(estimates["variances"])[:, None])


@value_class
@dataclass(frozen=True)
class MeansEmission(LinesEmission):
    """An autoregression about a mean that switches."""

    name = SWITCHING_MEAN
    slopes_switch: ClassVar[bool] = False

    def learned(self, X: Array, weights: Array) -> Self:
        """Return the same with one unit for the target and its lags."""
        found, own = super().learned(X, weights), [0] * self.n_features
        assert found.centre is not None and found.scale is not None
        return replace(found, centre=found.centre[own], scale=found.scale[own])

    def density(self, has_gaps: bool) -> SwitchingMeans:
        """Return the density of tuples of states."""
        assert self.centre is not None and self.scale is not None
        return SwitchingMeans(self.centre, self.scale, self.covariance_type == "tied", self.slopes_switch)

    def marginals(self, estimates: Mapping[str, Array], j: int, X: Array | None = None) -> Any:
        """Return normal distributions about the lines of tuples of states."""
        return super().marginals(by_tuple(estimates), j, X)


@value_class
@dataclass(frozen=True)
class AutoregressionsEmission(MeansEmission):
    """An autoregression that switches about a mean that switches."""

    name = SWITCHING_AUTOREGRESSION
    slopes_switch = True


class GeneralisedLines(LinesEmission):
    """Regressions of a target that is not normal."""

    is_discrete = True
    response: ClassVar[Response]

    def _is_possible(self, x: Array) -> NDArray[np.bool_]:
        raise NotImplementedError

    def learned(self, X: Array, weights: Array) -> Self:
        """Return the same with units of the other columns, and an offset: the predictor of the mean."""
        found, y = super().learned(X, weights), X[:, self.first]
        assert found.centre is not None and found.scale is not None
        there = ~np.isnan(y)
        mean = np.array([np.average(y[there], weights=weights[there])])
        centre, scale = found.centre.copy(), found.scale.copy()
        scale[0], centre[0] = 1.0, self.response.working(mean, np.ones(1))[0][0] if self.has_constant else 0.0
        return replace(found, centre=centre, scale=scale)

    def _coded(self, x: Array) -> tuple[Array, ...]:
        design, there = super()._coded(x)
        return design, np.where(np.isnan(there), np.nan, x[:, 0])

    def density(self, has_gaps: bool) -> SwitchingLines:
        """Return regressions of the target."""
        assert self.centre is not None and self.scale is not None
        return SwitchingLines(self.centre, self.scale, False, self.has_constant, self.response)

    def predictors(self, estimates: Mapping[str, Array], X: Array | None) -> Array:
        """Return the linear predictor of each row in each state."""
        return np.asarray(LinesEmission.marginals(self, {**estimates, "variances": np.ones(1)}, 0, X).mean())


@value_class
@dataclass(frozen=True)
class PoissonLines(GeneralisedLines):
    """Regressions of a count, on the logarithm of its mean."""

    name = "poisson_regression"
    expected = "the first column is of counts, whole numbers from 0 on"
    response = PoissonResponse()

    def _is_possible(self, x: Array) -> NDArray[np.bool_]:
        fits = (x >= 0) & (x == np.rint(x))
        fits[:, 1:] = True
        return np.asarray(fits)

    def marginals(self, estimates: Mapping[str, Array], j: int, X: Array | None = None) -> Any:
        """Return Poisson distributions."""
        return stats.poisson(np.exp(self.predictors(estimates, X)))


@value_class
@dataclass(frozen=True)
class LogisticLines(GeneralisedLines):
    """Regressions of zeros and ones, on the logit of the probability of a one."""

    name = "bernoulli_regression"
    expected = "the first column is 0 or 1"
    response = Binomial()

    def _is_possible(self, x: Array) -> NDArray[np.bool_]:
        fits = (x == 0) | (x == 1)
        fits[:, 1:] = True
        return np.asarray(fits)

    def marginals(self, estimates: Mapping[str, Array], j: int, X: Array | None = None) -> Any:
        """Return Bernoulli distributions."""
        return stats.bernoulli(expit(self.predictors(estimates, X)))


@value_class
@dataclass(frozen=True)
class PoissonEmission(Emission):
    """Counts."""

    name = "poisson"
    expected = "counts are whole numbers from 0 on"

    def _is_possible(self, x: Array) -> NDArray[np.bool_]:
        return np.asarray((x >= 0) & (x == np.rint(x)))

    def density(self, has_gaps: bool) -> Any:
        """Return Poisson distributions."""
        return Poisson(self.n_features)

    def marginals(self, estimates: Mapping[str, Array], j: int, X: Array | None = None) -> Any:
        """Return Poisson distributions."""
        return stats.poisson(estimates["rates"][:, [j]])


@value_class
@dataclass(frozen=True)
class NegativeBinomialEmission(PoissonEmission):
    """Counts that vary more than Poisson's."""

    name = "negative_binomial"

    def density(self, has_gaps: bool) -> NegativeBinomial:
        """Return negative binomial distributions."""
        return NegativeBinomial(self.n_features)

    def marginals(self, estimates: Mapping[str, Array], j: int, X: Array | None = None) -> Any:
        """Return negative binomial distributions."""
        rate, size = estimates["rates"][:, [j]], estimates["sizes"][:, [j]]
        return stats.nbinom(size, size / (size + rate))


@value_class
@dataclass(frozen=True)
class ZeroInflatedPoissonEmission(PoissonEmission):
    """Counts with more zeros than Poisson's."""

    name = "zero_inflated_poisson"

    def density(self, has_gaps: bool) -> ZeroInflatedPoisson:
        """Return zero-inflated Poisson distributions."""
        return ZeroInflatedPoisson(self.n_features)

    def marginals(self, estimates: Mapping[str, Array], j: int, X: Array | None = None) -> Any:
        """Return zero-inflated Poisson distributions."""
        mean, share = estimates["means"][:, [j]], estimates["inflations"][:, [j]]
        return WithZeros(stats.poisson(mean / (1 - share)), share)


@value_class
@dataclass(frozen=True)
class BernoulliEmission(Emission):
    """Zeros and ones."""

    name = "bernoulli"
    expected = "values are 0 or 1"

    def _is_possible(self, x: Array) -> NDArray[np.bool_]:
        return np.asarray((x == 0) | (x == 1))

    def density(self, has_gaps: bool) -> Bernoulli:
        """Return probabilities of ones."""
        return Bernoulli(self.n_features)

    def values(self, j: int) -> Array:
        """Return zero and one."""
        return np.array([0.0, 1.0])

    def marginals(self, estimates: Mapping[str, Array], j: int, X: Array | None = None) -> Any:
        """Return Bernoulli distributions."""
        return stats.bernoulli(estimates["probabilities"][:, [j]])


@value_class
@dataclass(frozen=True)
class CategoricalEmission(Emission):
    """Categories, given as numbers."""

    name = "categorical"
    expected = "a value that the rows of the fit do not have"

    def learned(self, X: Array, weights: Array) -> Self:
        """Return the same with the values of each column."""
        return replace(self, levels=tuple(np.unique(c[~np.isnan(c)]) for c in X[:, self.columns].T))

    def completed(self, levels: Sequence[Array], gaps: Sequence[bool]) -> Self:
        """Return the same with the values of all rows."""
        return replace(self, levels=tuple(levels[self.columns]))

    def _places(self, x: Array) -> NDArray[np.intp]:
        columns = zip(self.levels, x.T, strict=True)
        return np.stack([np.minimum(np.searchsorted(own, c), len(own) - 1) for own, c in columns], axis=1)

    def _is_possible(self, x: Array) -> NDArray[np.bool_]:
        if not self.levels:  # not learned yet
            return super()._is_possible(x)
        found = [own[c] for own, c in zip(self.levels, self._places(x).T, strict=True)]
        return np.asarray(x == np.stack(found, axis=1))

    def _coded(self, x: Array) -> tuple[Array, ...]:
        return (np.where(np.isnan(x), np.nan, self._places(x)),)

    def density(self, has_gaps: bool) -> Categorical:
        """Return a probability for each value."""
        return Categorical(list(map(len, self.levels)))

    def values(self, j: int) -> Array:
        """Return the values of a column."""
        return self.levels[j]

    def marginals(self, estimates: Mapping[str, Array], j: int, X: Array | None = None) -> Any:
        """Return the probabilities of the values."""
        first = sum(map(len, self.levels[:j]))
        return Levels(self.levels[j], estimates["probabilities"][:, first : first + len(self.levels[j])])


Learn = Callable[[Emission, Array, Array], Emission]
"""An emission from one that knows its columns, rows, and their weights."""

EMISSIONS: dict[str, type[Emission]] = {
    own.name: own
    for own in (
        GaussianEmission,
        StudentEmission,
        PoissonEmission,
        NegativeBinomialEmission,
        ZeroInflatedPoissonEmission,
        BernoulliEmission,
        CategoricalEmission,
        GammaEmission,
        VonMisesEmission,
        LinesEmission,
        MeansEmission,
        AutoregressionsEmission,
        PoissonLines,
        LogisticLines,
    )
}
REGRESSIONS = tuple(name for name, own in EMISSIONS.items() if issubclass(own, LinesEmission))
AUTOREGRESSIONS = (LinesEmission.name, MeansEmission.name, AutoregressionsEmission.name)
"""Those that may have own lags."""
EXPLAINED = {"gaussian": "regression", "poisson": "poisson_regression", "bernoulli": "bernoulli_regression"}
"""The regression of a target of some distribution."""


def regression_of(emission: Any, target: str) -> str:
    """Return the emission of a target that terms of a formula explain."""
    if emission in REGRESSIONS:
        return str(emission)
    if not isinstance(emission, str) or emission not in EXPLAINED:
        raise ValueError(
            f"terms of a formula explain a target of emission {', '.join(EXPLAINED)}; got emission={briefly(emission)}"
            f": write {target} ~ 1, or choose one of these"
        )
    return EXPLAINED[emission]


@dataclass(frozen=True)
class WithZeros:
    """Distributions of counts, of which a share are zeros besides, one for each state; methods as in scipy."""

    counts: Any
    share: Array

    def pmf(self, x: Array) -> Array:
        """Return the probability of each value, (components, values)."""
        return np.asarray(self.share * (np.asarray(x) == 0) + (1 - self.share) * self.counts.pmf(x))

    def cdf(self, x: Array) -> Array:
        """Return the probability of at most each value, (components, values)."""
        return np.asarray(self.share * (np.asarray(x) >= 0) + (1 - self.share) * self.counts.cdf(x))

    def ppf(self, p: float) -> Array:
        """Return the quantiles, (components, 1)."""
        return np.asarray(np.maximum(self.counts.ppf(np.maximum(p - self.share, 0) / (1 - self.share)), 0))

    def mean(self) -> Array:
        """Return the means, (components, 1)."""
        return np.asarray((1 - self.share) * self.counts.mean())


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
        """Return the means, (components, 1)."""
        return np.asarray((self.p * self.levels).sum(axis=1, keepdims=True))


def emissions(
    emission: str | Sequence[str], covariance_type: str, n_features: int, has_constant: bool = True
) -> tuple[Emission, ...]:
    """Return the emission of all columns, or one for each column."""
    check_choice("covariance_type", covariance_type, list(COVARIANCES))
    if isinstance(emission, str):
        check_choice("emission", emission, list(EMISSIONS), or_else=", or one of these for each column")
        found = EMISSIONS[emission](0, n_features, covariance_type)
        return (replace(found, has_constant=has_constant) if isinstance(found, LinesEmission) else found,)
    if not isinstance(emission, list | tuple) or not emission:
        raise TypeError(
            f"emission must be one of {', '.join(EMISSIONS)}, or a list of these, one per column; "
            f"got {briefly(emission)}"
        )
    if len(emission) != n_features:
        raise ValueError(f"emission names {len(emission)} columns; X has {n_features}")
    for one in emission:
        check_choice("emission", one, [name for name in EMISSIONS if name not in REGRESSIONS])
    return tuple(EMISSIONS[one](j, 1, covariance_type) for j, one in enumerate(emission))


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
