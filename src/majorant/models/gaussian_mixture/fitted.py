"""Gaussian mixtures with fitted or given parameters: densities, predictions and draws of rows."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from majorant._validation import check_choice, check_sample_weight, validate_data
from majorant.data.chunks import Chunks
from majorant.data.storage import stored_rows
from majorant.densities.gaussian_fitted import FittedGaussian
from majorant.engine.mixture import Parameters
from majorant.models.base import refuse_stored
from majorant.models.fitted_mixture import FittedMixture
from majorant.models.gaussian_mixture.certify import certificate
from majorant.models.gaussian_mixture.given import Given
from majorant.models.gaussian_mixture.lifting import Lifted, steadied
from majorant.models.gaussian_mixture.regularity import LEAST_RATIO
from majorant.models.mixture_rows import ACCEPTED
from majorant.models.undetermined_covariances import Matrices
from majorant.results.certificate import Certificate
from majorant.solvers.covariance_types import COVARIANCE_TYPES, COVARIANCES, TIED, Covariance, CovarianceType
from majorant.solvers.gaussian import Mixture
from majorant.solvers.gaussian_missing import impute


class FittedGaussianMixture(FittedMixture):
    """A Gaussian mixture with parameters, under scikit-learn's names."""

    covariance_type: CovarianceType
    means_: NDArray[np.floating]
    covariances_: NDArray[np.floating]
    precisions_: NDArray[np.floating]
    precisions_cholesky_: NDArray[np.floating]
    variance_ratios_: NDArray[np.floating]

    def _set(self, found: Lifted, number: Any) -> None:
        """Set the parameters under scikit-learn's names, in a dtype."""
        self.covariance_type_ = found.kind.name
        self.weights_ = found.weights.astype(number)
        self.means_ = found.means.astype(number)
        self.covariances_ = found.covariances.astype(number)
        self.precisions_cholesky_ = found.precisions_cholesky.astype(number)
        self.precisions_ = found.precisions.astype(number)

    @classmethod
    def from_parameters(
        cls,
        weights: ArrayLike,
        means: ArrayLike,
        covariances: ArrayLike,
        *,
        covariance_type: Literal["full", "tied", "diag", "spherical"] = "full",
        random_state: Any = None,
    ) -> Self:
        """Return a mixture with given parameters, for densities, predictions and draws.

        Parameters
        ----------
        weights : array-like of shape (n_components,)
            Shares, one in sum.
        means : array-like of shape (n_components, n_features)
        covariances : array-like
            In the shape of ``covariances_`` for the type.
        covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        random_state : int, RandomState instance or None, default=None
            Seed of draws.

        Returns
        -------
        GaussianMixture

        Raises
        ------
        ValueError
            If shapes differ, weights are no shares, or a covariance is not positive definite.

        Examples
        --------
        >>> import majorant as mj
        >>> model = mj.GaussianMixture.from_parameters([0.5, 0.5], [[0.0], [4.0]], [[[1.0]], [[1.0]]])
        >>> model.score_samples([[2.0]]).round(4)
        array([-2.9189])
        """
        check_choice("covariance_type", covariance_type, list(COVARIANCE_TYPES))
        given = Given.checked(weights, means, covariances, COVARIANCES[covariance_type])
        model = cls(len(np.asarray(means)), covariance_type=covariance_type, random_state=random_state)
        model._set(given.lifted(COVARIANCES[covariance_type]), np.float64)
        model._complete()
        return model

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there are parameters, of a fit or set by hand; the latter are completed."""
        if not {"weights_", "means_"} <= vars(self).keys() or "n_parameters_" in vars(self):
            return "n_parameters_" in vars(self)
        if "covariances_" in vars(self):
            given = Given.checked(self.weights_, self.means_, self.covariances_, COVARIANCES[self.covariance_type])
            self._set(given.lifted(COVARIANCES[self.covariance_type]), np.float64)
            self._complete()
        return "covariances_" in vars(self)

    def _complete(self) -> None:
        """Set the remaining fitted attributes for given parameters."""
        self.n_features_in_ = self.means_.shape[1]
        self.estimate_names_ = ["weights", "means", "covariances"]
        self.is_grouped_ = self.is_labelled_ = False
        self.n_parameters_ = self._mixture().n_parameters
        self.variance_ratios_ = self._kind.ratios(self._mixture().covariances, self._mixture().weights)
        self.regular_, self.degeneracy_, self.never_together_ = True, "", []

    @property
    def _kind(self) -> Covariance:
        """The type of the covariances of the fit."""
        return COVARIANCES[getattr(self, "covariance_type_", self.covariance_type)]

    def _matrices(self) -> list[Matrices]:
        return [Matrices("covariances", 0, self._feature_names())] if self._kind.has_matrices else []

    def _of_each(self, name: str, values: Any) -> NDArray[np.float64]:
        is_shared = name == "covariances" and self._kind is TIED
        return super()._of_each(name, [values] * len(self.weights_) if is_shared else values)

    def _mixture(self) -> Mixture:
        weights, means, covariances = (
            np.asarray(part, dtype=np.float64) for part in (self.weights_, self.means_, self.covariances_)
        )
        return Mixture(weights, means, covariances, self._kind.name)

    def _steadied(self) -> Mixture:
        """Return the mixture as rows with missing entries need it."""
        return steadied(self._mixture(), 8 * self.means_.shape[1] * float(np.finfo(self.means_.dtype).eps))

    def _density(self) -> FittedGaussian:
        mixture = self._mixture()
        centre = np.einsum("k,kd->d", mixture.weights, mixture.means)
        within = mixture.covariance.variances(mixture.covariances, *mixture.means.shape)
        return FittedGaussian(self._kind, centre, np.sqrt(np.einsum("k,kd->d", mixture.weights, within)))

    def _theta(self) -> Parameters[Any, Any]:
        mixture = self._steadied()
        names = [name for name in self.estimate_names_ if name not in ("means", "covariances")]
        law = {name: np.asarray(getattr(self, f"{name}_"), dtype=np.float64) for name in names}
        own = {"means": mixture.means, "covariances": mixture.covariances}
        density = self._density().recalled(
            {**own, "precisions_cholesky": np.asarray(self.precisions_cholesky_, dtype=np.float64)}
        )
        return Parameters(density, self._law_of_fit().recalled(law))

    def impute(self, X: Any) -> NDArray[np.floating]:
        r"""Return the rows with their missing entries replaced by what is expected of them given the observed ones.

        .. math:: E(x_m \mid x_o) = \sum_k P(k \mid x_o)
                  \big(\mu_{k,m} + \Sigma_{k,mo} \Sigma_{k,oo}^{-1} (x_o - \mu_{k,o})\big).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks
            NaN where an entry is missing. A row without any entry gets the mean of the mixture.

        Returns
        -------
        ndarray of shape (n_samples, n_features)

        Examples
        --------
        >>> import numpy as np, majorant as mj
        >>> from sklearn.datasets import load_iris
        >>> model = mj.GaussianMixture(2, random_state=0).fit(load_iris().data)
        >>> model.impute([[5.0, 3.4, np.nan, 0.2]]).round(1)
        array([[5. , 3.4, 1.4, 0.2]])
        """
        check_is_fitted(self)
        source, mixture = stored_rows(X), self._steadied()
        if source is None:
            X = validate_data(self, X, reset=False, **ACCEPTED)
        else:
            self._check_stored(source, reset=False)
            X = source
        data = Chunks(X, n_jobs=self.n_jobs)
        return data.map_rows(lambda block: impute(mixture, block.columns[0]), (mixture.n_features,), X.dtype)

    def _criteria(self, value: float, n: float, entropy: float) -> dict[str, float]:
        """Return the criteria; infinite where the floor set the likelihood, so that none chooses such a fit."""
        found = super()._criteria(value, n, entropy)
        return dict.fromkeys(found, np.inf) if (self.variance_ratios_ < LEAST_RATIO).any() else found

    def certify(
        self,
        X: Any,
        *,
        covariance_at_least: ArrayLike | Literal["fitted"] = "fitted",
        sample_weight: Any = None,
        effort: Literal["fast", "default", "tight"] = "default",
    ) -> Certificate:
        r"""Return how far this log-likelihood can be from the best possible on X: a proved bound.

        No mixture whose covariances are all at least :math:`S`, whatever its number of components, has a log-likelihood
        above the bound. So it also counts what more components would gain, and is closer the larger :math:`S` is. It is
        sharp in up to three columns, and in four where rows are some hundreds; in more columns it is loose, which says
        nothing against the fit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Usually the rows of the fit.
        covariance_at_least : "fitted", float, or array-like of shape (n_features,) or (n_features, n_features)
            :math:`S`. "fitted" is half of a matrix below all fitted covariances; a number is that many times the
            covariance of X; an array holds variances or a matrix, in the units of X.
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
            If an entry is missing, or :math:`S` is singular, or above a covariance of this fit, of which the bound
            would then not speak.

        References
        ----------
        .. [1] B. G. Lindsay, "The geometry of mixture likelihoods: a general theory", Annals of Statistics, 1983.
        """
        check_is_fitted(self)
        check_choice("effort", effort, ["fast", "default", "tight"])
        refuse_stored(X, "certify")
        X = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")
        if np.isnan(X).any():
            raise ValueError("certify takes rows without missing entries, and X holds NaN: leave such rows out")
        weights = check_sample_weight(sample_weight, len(X))
        return certificate(X, weights, self._mixture(), covariance_at_least, effort)
