"""Real and positive targets: Gaussian, Student, gamma."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, polygamma

from majorant.solvers.responses.response import Response, Table, log_peak, refuse

LOG_TWO_PI = float(np.log(2 * np.pi))
LARGEST = 1e150
"""Largest target whose square is a number."""


class Gaussian(Response):
    """``y ~ N(eta, dispersion)``."""

    name = "gaussian"
    title = ""
    has_dispersion = True
    is_location_scale = True
    has_normal_noise = True
    is_concave = True

    def mean(self, eta: Table, trials: Table) -> Table:
        return eta

    def log_density(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return np.asarray(self.peak(y, dispersion, trials) - 0.5 * (y - eta) ** 2 / dispersion)

    def peak(self, y: Table, dispersion: Table, trials: Table) -> Table:
        return np.asarray(-0.5 * (LOG_TWO_PI + np.log(dispersion)))

    def score(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return (y - eta) / dispersion

    def weight(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return np.broadcast_to(1 / dispersion, eta.shape)

    def working(self, y: Table, trials: Table) -> tuple[Table, Table]:
        return y, np.ones_like(y)

    def deviance(self, y: Table, eta: Table, trials: Table) -> Table:
        return np.asarray((y - eta) ** 2)

    def draw(self, eta: Table, dispersion: Table, trials: Table, random: np.random.RandomState) -> Table:
        return np.asarray(eta + np.sqrt(dispersion) * random.standard_normal(eta.shape))

    def spread(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return np.asarray((y - eta) ** 2)


class Student(Response):
    """``y = eta + sqrt(dispersion) t`` with t of Student's distribution: errors with heavy tails.

    Parameters
    ----------
    df : float, default=4.0
        Degrees of freedom, fixed.
    """

    name = "student"
    title = "Student"
    has_dispersion = True
    is_location_scale = True

    def __init__(self, df: float = 4.0) -> None:
        self.df = df

    def mean(self, eta: Table, trials: Table) -> Table:
        return eta

    def log_density(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        v = self.df
        away = np.abs(y - eta) / np.sqrt(v * dispersion)  # far out its square is no number
        square = np.log1p(np.minimum(away, LARGEST) ** 2) + 2 * np.log(np.maximum(away / LARGEST, 1.0))
        lost = (v + 1) / 2 * square
        return np.asarray(self.peak(y, dispersion, trials) - lost)

    def peak(self, y: Table, dispersion: Table, trials: Table) -> Table:
        v = self.df
        constant = float(gammaln((v + 1) / 2) - gammaln(v / 2) - 0.5 * np.log(v * np.pi))
        return np.asarray(constant - 0.5 * np.log(dispersion))

    def score(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return (y - eta) * self.weight(y, eta, dispersion, trials)

    def weight(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return np.asarray((self.df + 1) / (self.df * dispersion + (y - eta) ** 2))

    def working(self, y: Table, trials: Table) -> tuple[Table, Table]:
        return y, np.ones_like(y)

    def deviance(self, y: Table, eta: Table, trials: Table) -> Table:
        return np.asarray((self.df + 1) * np.log1p((y - eta) ** 2 / self.df))

    def draw(self, eta: Table, dispersion: Table, trials: Table, random: np.random.RandomState) -> Table:
        return np.asarray(eta + np.sqrt(dispersion) * random.standard_t(self.df, eta.shape))

    def spread(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return np.asarray(dispersion * self.weight(y, eta, dispersion, trials) * (y - eta) ** 2)

    def __repr__(self) -> str:
        return f"Student(df={self.df:g})"


class Gamma(Response):
    r"""Positive targets with a constant coefficient of variation: ``log E y = eta``, ``Var y = dispersion (E y)^2``."""

    name = "gamma"
    predicts = "the logarithm of the mean"
    is_concave = True
    has_dispersion = True
    least_dispersion = 1e-14

    def mean(self, eta: Table, trials: Table) -> Table:
        return np.asarray(np.exp(np.clip(eta, -700, 700)))

    def _ratio(self, y: Table, eta: Table) -> Table:
        return np.asarray(np.exp(np.clip(np.log(y) - eta, -700, 700)))

    def log_density(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        lost = self._ratio(y, eta) - 1 - (np.log(y) - eta)
        return np.asarray(self.peak(y, dispersion, trials) - lost / dispersion)

    def peak(self, y: Table, dispersion: Table, trials: Table) -> Table:
        return np.asarray(log_peak(1 / dispersion) - np.log(y))

    def score(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return (self._ratio(y, eta) - 1) / dispersion

    def weight(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return np.broadcast_to(1 / dispersion, eta.shape)

    def working(self, y: Table, trials: Table) -> tuple[Table, Table]:
        return np.log(y), np.ones_like(y)

    def deviance(self, y: Table, eta: Table, trials: Table) -> Table:
        return np.asarray(2 * (self._ratio(y, eta) - 1 - (np.log(y) - eta)))

    def draw(self, eta: Table, dispersion: Table, trials: Table, random: np.random.RandomState) -> Table:
        return np.asarray(self.mean(eta, trials) * random.gamma(1 / dispersion, dispersion, eta.shape))

    def spread(self, y: Table, eta: Table, dispersion: Table, trials: Table) -> Table:
        return self.deviance(y, eta, trials)

    def scale_score(self, mean_spread: Table, dispersion: Table) -> Table:
        shape = 1 / dispersion
        with np.errstate(all="ignore"):
            least = np.where(shape > 1e4, 0.5 / shape + 1 / (12 * shape**2), np.log(shape) - digamma(shape))
        return np.asarray(2 * shape * (mean_spread / 2 - least))

    def dispersion(self, mean_spread: Table) -> Table:
        """Return ``1 / a`` with ``log a - digamma(a) = mean_spread / 2``."""
        d = np.maximum(mean_spread / 2, 1e-15)
        a = np.where(d < 1, (3 - d + np.sqrt((d - 3) ** 2 + 24 * d)) / (12 * d), 1 / (d + 0.5772156649015329))
        a = np.maximum(a, 1e-3)
        for _ in range(8):  # Newton on 1 / a converges from this start
            with np.errstate(invalid="ignore"):
                slope = 1 / a - polygamma(1, a)
            # for large a differences of the two functions are all rounding: their series is exact
            f = np.where(a > 1e4, 0.5 / a + 1 / (12 * a**2), np.log(a) - digamma(a)) - d
            slope = np.where(a > 1e4, -0.5 / a**2 - 1 / (6 * a**3), slope)
            a = 1 / np.maximum(1 / a + f / (slope * a**2), 0.1 / a)
        return np.asarray(1 / a)

    def check(self, y: NDArray[np.float64], trials: NDArray[np.float64]) -> None:
        refuse(y, y <= 0, 'family="gamma" needs positive targets', "Drop or shift such rows, or use another family")
        refuse(y, y > LARGEST, f'family="gamma" needs targets below {LARGEST:g}', "Give them in a larger unit")
