"""Certificates of mixtures of regressions: how far the likelihood can be from the best possible."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from majorant._validation import check_choice, check_positive, check_sample_weight
from majorant.models.base import refuse_stored
from majorant.models.formula_estimator import through_formula
from majorant.models.regression_mixture.build import units_of
from majorant.models.regression_mixture.extras import Extras
from majorant.models.regression_mixture.inference import UncertainLines
from majorant.models.regression_mixture.units import Units
from majorant.results.certificate import Certificate
from majorant.solvers.mixture_bounds import Effort, UpperBound, regressions_upper_bound
from majorant.solvers.responses import Gaussian

Array = NDArray[np.float64]

FITTED_SHARE = 0.5
"""Default floor, as a share of the smallest fitted variance, as for Gaussian mixtures."""
MOST_COEFFICIENTS = 4
ROUNDING = 1e-9


class CertifiableLines(UncertainLines):
    """A fitted mixture of regressions with a proved bound on its distance from the best likelihood."""

    @through_formula
    def certify(
        self,
        X: Any,
        y: Any,
        *,
        offset: Any = None,
        scale_at_least: float | Literal["fitted"] = "fitted",
        sample_weight: Any = None,
        effort: Literal["fast", "default", "tight"] = "default",
    ) -> Certificate:
        r"""Return how far this log-likelihood can be from the best possible on these rows: a proved bound.

        No mixture of lines whose noise has standard deviations of at least s, whatever its number of components, has a
        log-likelihood above the bound. Lines have intercepts there even where this fit has none, and may be as steep as
        they like. The bound also counts what more components would gain by following single rows, and is closer the
        larger s is. It is sharp for lines of up to three coefficients, the intercept among them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Usually the rows of the fit. At most 3 columns, or more that depend on each other.
        y : array-like of shape (n_samples,)
        offset : array-like of shape (n_samples,), optional
        scale_at_least : "fitted" or float, default="fitted"
            s, in units of y. "fitted" is the smallest fitted standard deviation over the square root of two: half of
            its variance.
        sample_weight : array-like of shape (n_samples,), optional
        effort : {"fast", "default", "tight"}, default="default"
            How much work the bound may cost: some tenths of a second, some seconds, a minute.

        Returns
        -------
        Certificate
            ``bound``, ``difference`` of log-likelihoods and, in words, ``sentence``.

        Raises
        ------
        TypeError
            If X is streamed: no bound is known for rows that are not in memory.
        ValueError
            If lines have more than 4 coefficients, one line fits every row, s is above the noise of a line of this
            fit, of which the bound would then not speak, or the family is not Gaussian, or there are groups or gating.

        References
        ----------
        .. [1] B. G. Lindsay, "The geometry of mixture likelihoods: a general theory", Annals of Statistics, 1983.

        Examples
        --------
        >>> import numpy as np, majorant as mj
        >>> x = np.linspace(0, 10, 100)[:, None]
        >>> noise = np.random.default_rng(0).normal(size=100)
        >>> y = np.where(np.arange(100) % 2 == 0, x[:, 0], 5 - x[:, 0]) + noise
        >>> made = mj.RegressionMixture(2, random_state=0).fit(x, y).certify(x, y)
        >>> bool(made.objective <= made.attained <= made.bound <= made.attained + 0.5)
        True
        """
        check_is_fitted(self)
        check_choice("effort", effort, ["fast", "default", "tight"])
        refuse_stored(X, "certify")
        self._check_kind()
        noise, words = self._noise_floor(scale_at_least)
        X, y = self._rows(X, y)
        X, y = X.astype(np.float64, copy=False), y.astype(np.float64, copy=False)
        weights, extras = check_sample_weight(sample_weight, len(y)), self._extras(len(y), offset=offset)
        density = self._densities(X, y, extras)[0]
        y = y if extras.offset is None else y - extras.offset
        reached = float(density.sum() if weights is None else np.einsum("i,i->", weights, density))
        found = upper_bound(X, y, weights, noise, reached, effort)
        return Certificate.of_likelihood(found, reached, f"mixture of any number of lines with noise {words}")

    def _check_kind(self) -> None:
        """Refuse models for which no bound is known."""
        got = [] if self._response.has_normal_noise else [f"family={self._response.name!r}"]
        got += ["groups"] * (self.groups_ is not None) + ["gating"] * (self.gating_coef_.shape[1] > 0)
        if got:
            raise ValueError(
                f"certify covers mixtures of lines with Gaussian noise, one component per row; this fit has "
                f"{' and '.join(got)}, for which no bound is known"
            )

    def _noise_floor(self, scale_at_least: float | Literal["fitted"]) -> tuple[float, str]:
        """Return the least standard deviation, in units of y, and in words."""
        smallest = float(self.scale_[self.weights_ > 0].min())
        if isinstance(scale_at_least, str):
            check_choice("scale_at_least", scale_at_least, ["fitted"], or_else=", or a number")
            return smallest * FITTED_SHARE**0.5, "variances at least half of the smallest fitted one"
        check_positive("scale_at_least", scale_at_least)
        if scale_at_least > smallest * (1 + ROUNDING):
            raise ValueError(
                f"scale_at_least={scale_at_least:g} is above the noise of a line of this fit, {smallest:.4g}, so that "
                "the bound would not speak of it: give that or less"
            )
        return min(float(scale_at_least), smallest), f"of standard deviation at least {float(scale_at_least)!r}"


def upper_bound(
    X: Array, y: Array, weights: Array | None, noise: float, reached: float = -np.inf, effort: Effort = "default"
) -> UpperBound:
    """Return the bound for rows in memory, compared with a fit's objective; all in the units of the rows."""
    w = np.ones(len(y)) if weights is None else weights
    units = units_of(X, y, w, Extras(), Gaussian(), fit_intercept=True, shared=())
    if units.is_exact:
        raise ValueError("one line fits every row exactly: the likelihood has no maximum, so there is no bound on it")
    if units.n_coefficients > MOST_COEFFICIENTS:
        raise ValueError(
            f"certify takes lines of at most {MOST_COEFFICIENTS} coefficients, the intercept among them, and these "
            f"have {units.n_coefficients}: no bound that would be close is known"
        )
    found = regressions_upper_bound(
        units.z,
        units.y,
        units.weights,
        noise / units.coordinates.sigma,
        _features(units, X, y, w),
        reached=reached / units.unit - units.constant,
        effort=effort,
    )
    bound, attained = units.log_likelihood(found.bound), units.log_likelihood(found.attained)
    return replace(found, bound=bound, attained=attained)


def _features(units: Units, X: Array, y: Array, weights: Array) -> Array:
    """Return X of the units: distinct ones of positive weight, in their order."""
    features = np.unique(np.column_stack((X, y))[weights > 0], axis=0)[:, :-1]
    return features if len(features) == units.n_rows else np.empty((units.n_rows, 0))
