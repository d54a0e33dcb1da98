"""What a fitted Gaussian mixture says of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from majorant._validation import check_integer, check_sample_weight, validate_data
from majorant.data.chunks import Block, Chunks
from majorant.data.storage import stored_rows
from majorant.models.base import LatentVariableModel
from majorant.models.gaussian_mixture.lifting import observed_log_densities, steadied
from majorant.models.gaussian_mixture.regularity import LEAST_RATIO
from majorant.solvers.covariance_types import CovarianceType
from majorant.solvers.gaussian import Mixture
from majorant.solvers.gaussian_missing import impute

ACCEPTED: dict[str, Any] = {"dtype": [np.float64, np.float32], "order": "C", "ensure_all_finite": "allow-nan"}
"""Rows in memory, as scikit-learn's ``validate_data`` is to give them."""


class Density(LatentVariableModel):
    """The methods of `GaussianMixture` on rows, from its fitted attributes."""

    beta: float
    covariance_type: CovarianceType
    n_jobs: int | None
    random_state: Any
    weights_: NDArray[np.floating]
    means_: NDArray[np.floating]
    covariances_: NDArray[np.floating]
    precisions_cholesky_: NDArray[np.floating]
    variance_ratios_: NDArray[np.floating]

    def _check_rows(self, X: Any) -> Any:
        """Rows in memory, validated, or a stream."""
        check_is_fitted(self)
        source = stored_rows(X)
        if source is None:
            return validate_data(self, X, reset=False, **ACCEPTED)
        self._check_stored(source, reset=False)
        return source

    def _log_joint(self, X: Any) -> tuple[NDArray[np.float64], Any]:
        """``log pi_k + log N(x_i; mu_k, Sigma_k)`` of the observed entries of rows, and their number type."""
        X = self._check_rows(X)
        mixture = self._steadied()
        factors = np.asarray(self.precisions_cholesky_, dtype=np.float64)
        with np.errstate(divide="ignore"):
            log_weights = np.log(mixture.weights)

        def log_joint(block: Block) -> NDArray[np.float64]:
            x = block.columns[0].astype(np.float64, copy=False)
            with np.errstate(over="ignore"):  # a row so far out has density zero
                values = observed_log_densities(x, mixture, factors)
            return np.asarray(np.maximum(values, -1e300) + log_weights)

        return Chunks(X, n_jobs=self.n_jobs).map_rows(log_joint, (mixture.n_components,)), X.dtype

    def impute(self, X: Any) -> NDArray[np.floating]:
        r"""Rows with their missing entries replaced by what is expected of them given the observed ones.

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
        X = self._check_rows(X)
        data, mixture = Chunks(X, n_jobs=self.n_jobs), self._steadied()
        return data.map_rows(lambda block: impute(mixture, block.columns[0]), (mixture.n_features,), X.dtype)

    def predict(self, X: Any) -> NDArray[np.intp]:
        """The most probable component of each row, given its observed entries.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self._log_joint(X)[0].argmax(axis=1))

    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Responsibilities: the probability of each component given the row's observed entries.

        At the temperature of the fit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        joint, dtype = self._log_joint(X)
        joint -= joint.max(axis=1, keepdims=True)
        q = (joint == 0).astype(np.float64) if np.isinf(self.beta) else np.exp(float(self.beta) * joint)
        return np.asarray(q / q.sum(axis=1, keepdims=True), dtype=dtype)

    def score_samples(self, X: Any) -> NDArray[np.floating]:
        """Log-density of each row's observed entries; zero for a row without any.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        joint, dtype = self._log_joint(X)
        return _log_sums(joint).astype(dtype)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Weighted mean log-density of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        values, weights = self._scored(X, sample_weight)
        return float(np.sum(values * (weights / weights.sum())))

    def _scored(self, X: Any, sample_weight: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        values = _log_sums(self._log_joint(X)[0])
        weights = check_sample_weight(sample_weight, len(values))
        return values, np.ones(len(values)) if weights is None else weights

    def sample(self, n_samples: int = 1) -> tuple[NDArray[np.floating], NDArray[np.intp]]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Component by component.
        y : ndarray of shape (n_samples,)
            The component of each row.
        """
        check_is_fitted(self)
        if check_integer("n_samples", n_samples) < 1:
            raise ValueError(f"Invalid value for 'n_samples': {n_samples}. The sampling requires at least one sample.")
        random = check_random_state(self.random_state)
        shares = np.asarray(self.weights_, dtype=np.float64)
        counts, d = random.multinomial(n_samples, shares / shares.sum()), self.means_.shape[1]
        rows, factors = [], self.precisions_cholesky_.reshape(-1, *self._mixture().covariance.identity(d).shape)
        for k, count in enumerate(counts):
            z = random.standard_normal((count, d))
            factor = factors[k] if len(factors) > 1 else factors[0]
            # x - mean = z @ inverse of the precision's factor
            spread = z / factor if np.ndim(factor) < 2 else np.linalg.solve(factor.T, z.T).T
            rows.append(self.means_[k] + spread)
        return np.vstack(rows), np.repeat(np.arange(len(counts)), counts)

    # Criteria

    def _mixture(self) -> Mixture:
        weights, means, covariances = (
            np.asarray(part, dtype=np.float64) for part in (self.weights_, self.means_, self.covariances_)
        )
        return Mixture(weights, means, covariances, self.covariance_type)

    def _steadied(self) -> Mixture:
        """The mixture as rows with missing entries need it."""
        return steadied(self._mixture(), 8 * self.means_.shape[1] * float(np.finfo(self.means_.dtype).eps))

    def _n_parameters(self) -> int:
        """Free parameters."""
        return self._mixture().n_parameters

    def _criterion(self, X: Any, sample_weight: Any, price: float | None) -> float:
        """Minus twice the log-likelihood plus a price for each parameter; None: the logarithm of the weight of rows."""
        values, weights = self._scored(X, sample_weight)
        if (self.variance_ratios_ < LEAST_RATIO).any():
            return np.inf
        total = float(weights.sum())
        price = float(np.log(total)) if price is None else price
        return -2.0 * float(np.sum(weights * values)) + price * self._n_parameters()

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Akaike's information criterion on rows: smaller is better, infinite where the floor set the likelihood.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        return self._criterion(X, sample_weight, 2.0)

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Bayesian information criterion on rows: smaller is better, infinite where the floor set the likelihood.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks
        sample_weight : array-like of shape (n_samples,), optional
            Its sum is taken for the number of rows.

        Returns
        -------
        float
        """
        return self._criterion(X, sample_weight, None)

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        """Integrated completed likelihood: the BIC plus twice the entropy of the responsibilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float

        References
        ----------
        .. [1] C. Biernacki, G. Celeux, G. Govaert, "Assessing a mixture model for clustering with the integrated
           completed likelihood", IEEE Transactions on Pattern Analysis and Machine Intelligence, 2000.
        """
        joint, _ = self._log_joint(X)
        weights = check_sample_weight(sample_weight, len(joint))
        log_q = joint - _log_sums(joint)[:, None]
        q = np.exp(log_q)
        entropy = -np.sum(np.where(q > 0, q * log_q, 0.0), axis=1)
        return self.bic(X, sample_weight) + 2.0 * float(np.sum(entropy if weights is None else weights * entropy))


def _log_sums(joint: NDArray[np.float64]) -> NDArray[np.float64]:
    most = joint.max(axis=1, keepdims=True)
    return np.asarray(most[:, 0] + np.log(np.exp(joint - most).sum(axis=1)))
