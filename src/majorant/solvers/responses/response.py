"""The interface of a target's distribution in a mixture of generalised linear models."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Table = NDArray[np.float64]


class Response(ABC):
    r"""Distribution of a target y given a linear predictor :math:`\eta` and a dispersion :math:`\phi`.

    All methods take arrays that broadcast: usually y and trials of shape (rows, 1), eta of shape (rows, M) for M linear
    predictors and dispersion of shape (M,). A user's family is a subclass with a name, `mean`, `log_density`,
    `score`, `weight`, `working`, `deviance` and `draw`; with a dispersion it also has `spread` and may have
    `dispersion`.

    Attributes
    ----------
    name : str
    has_dispersion : bool
        Whether :math:`\phi` is a parameter; otherwise it is one.
    is_location_scale : bool
        Whether ``a y + b`` has the density of predictor :math:`a\eta + b` and dispersion :math:`a^2\phi`.
    takes_trials : bool
        Whether the target counts successes among a number of trials.
    least_dispersion : float
        Dispersion up to which the target counts as fitted exactly, as only rounding is left.
    has_normal_noise : bool
        Whether the target is the predictor and normal noise, so that lines with bands show the model.
    is_concave : bool
        Whether the log density is concave in :math:`\eta`: the likelihood of one model then has one maximum.
    title : str
        Word before "regression" in text; by default the name.
    predicts : str
        What the linear predictor is, such as "the logarithm of the mean"; empty if it is the mean itself or not
        given.
    """

    name: str = ""
    has_dispersion: bool = False
    is_location_scale: bool = False
    takes_trials: bool = False
    least_dispersion: float = 0.0
    has_normal_noise: bool = False
    is_concave: bool = False
    predicts: str = ""

    @property
    def title(self) -> str:
        return self.name

    @abstractmethod
    def mean(self, eta: Table, trials: Table) -> Table:
        """Return the expected target, the inverse link."""

    @abstractmethod
    def log_density(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        """Return the logarithm of the density with all its constants."""

    @abstractmethod
    def score(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        """Return the derivative of the log density in eta."""

    @abstractmethod
    def weight(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        """Return a positive curvature of minus log density in eta: the expected one, or that of a quadratic bound."""

    @abstractmethod
    def working(self, y: Table, trials: Table) -> tuple[Table, Table]:
        """Return the linear predictor that fits each target by itself, and its weight, for the first iteration."""

    @abstractmethod
    def deviance(self, y: Table, eta: Table, trials: Table) -> Table:
        """Return twice the difference of log density to the best predictor, at a dispersion of one."""

    @abstractmethod
    def draw(self, eta: Table, dispersion: Table, trials: Table, random: np.random.RandomState) -> Table:
        """Draw targets from the distribution."""

    def peak(self, y: Table, dispersion: Table, trials: Table) -> Table:
        """Return the largest log density of each target over all predictors; families of compiled passes have it."""
        raise NotImplementedError(f"{self.name} has no passes that need its largest density")

    def spread(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        """Return the statistic whose mean over rows gives the dispersion."""
        raise NotImplementedError(f"{self.name} has no dispersion")

    def dispersion(self, mean_spread: Table) -> Table:
        """Return the best dispersion where `spread` has this mean."""
        return mean_spread

    def scale_score(self, mean_spread: Table, dispersion: Table) -> Table:
        """Return the mean derivative of the log density by the log scale (root of dispersion), given the mean `spread`.

        It is zero at the best `dispersion`; a family with one of its own has to have its own of this too.
        """
        return np.asarray(mean_spread / dispersion - 1)

    def check(self, y: NDArray[np.float64], trials: NDArray[np.float64]) -> None:
        """Raise ValueError for a target that cannot be from the distribution.

        Raises
        ------
        ValueError
            Names the row and what was expected.
        """
        refuse(y, ~np.isfinite(y), f"family={self.name!r} needs finite numbers", "Drop such rows")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def log_peak(shape: Table) -> Table:
    """Return ``a log a - a - log Gamma(a)``, by its series where the terms are large."""
    with np.errstate(all="ignore"):
        direct = shape * np.log(shape) - shape - gammaln(shape)
        series = 0.5 * np.log(shape / (2 * np.pi)) - 1 / (12 * shape)
    return np.asarray(np.where(shape > 1e4, series, direct))


def refuse(y: NDArray[np.float64], bad: NDArray[np.bool_], expected: str, remedy: str, what: str = "y") -> None:
    """Raise ValueError that names the first invalid row of the target (or of the trials or offset), if any."""
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise ValueError(f"{expected}; row {at} of {what} is {y[at]:g}. {remedy}")
