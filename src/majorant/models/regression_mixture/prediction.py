"""What a fitted mixture of regressions says of rows: fits, responsibilities, densities, draws."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from majorant._validation import check_choice
from majorant.energy import free_energy, posterior
from majorant.engine.chunks import Block, Chunks
from majorant.engine.latents import entropies
from majorant.engine.storage import stored_rows
from majorant.models.base import LatentVariableModel


def _tells_rows_apart(model: FittedLines) -> bool:
    """Whether there are components, and they differ at all."""
    check_is_fitted(model)
    return not model.is_exact_


class FittedLines(LatentVariableModel):
    """The methods of a mixture of regressions that need a fit."""

    n_jobs: int | None
    coef_: NDArray[np.float64]
    weights_: NDArray[np.float64]
    scale_: NDArray[np.float64]
    center_: NDArray[np.float64]
    center_fits_: NDArray[np.float64]
    standard_errors_: dict[str, NDArray[np.float64]] | None
    n_parameters_: int
    is_exact_: bool

    def _rows(self, X: Any, y: Any = None) -> tuple[Any, Any]:
        """Rows to predict, and their target: validated in memory, or X a stream."""
        check_is_fitted(self)
        source = stored_rows(X)
        if source is None:
            if y is None:
                return validate_data(self, X, reset=False, dtype=[np.float64, np.float32], order="C"), None
            X, y = validate_data(self, X, y, reset=False, dtype=[np.float64, np.float32], order="C", y_numeric=True)
            return X, y
        self._check_stored(source, reset=False)
        if y is None:
            return source, None
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64), warn=True)
        if len(y) != source.n_units:
            raise ValueError(f"X has {source.n_units} rows and y has {len(y)}")
        return source, y

    def _fits(self, block: Block) -> NDArray[np.float64]:
        """Every component's line at the rows of a block, (rows, K); a row's answer does not depend on the others."""
        slopes = np.einsum("ij,kj->ik", block.columns[0].astype(np.float64) - self.center_, self.coef_)
        return np.asarray(slopes + self.center_fits_)

    def _posterior(self, X: Any, y: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Minus the log density of every row, and its responsibilities."""
        k = len(self.weights_)
        with np.errstate(divide="ignore"):
            constant = 0.5 * np.log(2 * np.pi) + np.log(self.scale_) - np.log(self.weights_)

        def visit(block: Block) -> NDArray[Any]:
            residuals = (y[block.at, None] - self._fits(block)) / self.scale_
            energies = constant + 0.5 * residuals**2
            free = free_energy(energies, axis=1)
            return np.column_stack([free, posterior(energies, axis=1)])

        table = Chunks(X, n_jobs=self.n_jobs).map_rows(visit, (k + 1,))
        return table[:, 0], np.ascontiguousarray(table[:, 1:])

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The mixture's mean at each row, ``sum_k weights_k (intercept_k + x' coef_k)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        X, _ = self._rows(X)
        data = Chunks(X, n_jobs=self.n_jobs)
        return data.map_rows(lambda block: np.einsum("ik,k->i", self._fits(block), self.weights_), ())

    def predict_components(self, X: Any) -> NDArray[np.float64]:
        """Every component's line at each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        X, _ = self._rows(X)
        return Chunks(X, n_jobs=self.n_jobs).map_rows(self._fits, (len(self.weights_),))

    @available_if(_tells_rows_apart)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, y: Any = None) -> NDArray[np.float64]:
        """The probability of each component for each row: its responsibilities where the target is known.

        Not there (``hasattr`` is False) before the fit, and where one line fitted every row exactly: all components are
        then that line.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks
        y : array-like of shape (n_samples,), optional
            Without it a row's probabilities are the weights of the components.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        X, y = self._rows(X, y)
        if y is None:
            return Chunks(X, n_jobs=self.n_jobs).map_rows(lambda block: self.weights_[None], (len(self.weights_),))
        return self._posterior(X, y)[1]

    def classify(self, X: Any, y: Any) -> NDArray[np.intp]:
        """The most probable component of rows whose target is known.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks
        y : array-like of shape (n_samples,)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self._posterior(*self._rows(X, y))[1].argmax(axis=1), dtype=np.intp)

    def log_density(self, X: Any, y: Any) -> NDArray[np.float64]:
        """Log density of each row's target given its features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks
        y : array-like of shape (n_samples,)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return -self._posterior(*self._rows(X, y))[0]

    def aic(self, X: Any, y: Any) -> float:
        """Akaike's criterion on some rows; lower is better."""
        return 2 * self.n_parameters_ - 2 * float(self.log_density(X, y).sum())

    def bic(self, X: Any, y: Any) -> float:
        """The Bayesian information criterion on some rows; lower is better."""
        densities = self.log_density(X, y)
        return self.n_parameters_ * float(np.log(len(densities))) - 2 * float(densities.sum())

    def icl(self, X: Any, y: Any) -> float:
        """The integrated completed likelihood: BIC and twice the entropy of the responsibilities; lower is better."""
        return self.bic(X, y) + 2 * float(entropies(self._posterior(*self._rows(X, y))[1]).sum())

    def standard_errors(self, method: Literal["observed"] = "observed") -> dict[str, NDArray[np.float64]]:
        """Standard errors of the parameters.

        Parameters
        ----------
        method : {"observed"}, default="observed"
            "observed": from the observed information of the fit, minus the Hessian of the log-likelihood. They hold for
            regular solutions of enough rows, and take the number of components as given.

        Returns
        -------
        dict of ndarray
            ``coef``, ``intercept``, ``scale`` and ``weights``, each of the shape of its parameter.

        Raises
        ------
        ValueError
            If the information is singular: the rows do not determine all parameters.
        """
        check_is_fitted(self)
        check_choice("method", method, ["observed"])
        if self.standard_errors_ is None:
            raise ValueError(
                "the observed information is singular: the rows do not determine all parameters; "
                "fit fewer components or leave out columns that are combinations of others"
            )
        return {name: values.copy() for name, values in self.standard_errors_.items()}

    def sample(self, X: Any, random_state: Any = None) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Targets drawn from the model at some rows, and the component of each.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        y : ndarray of shape (n_samples,)
        component : ndarray of shape (n_samples,)
        """
        random = check_random_state(random_state)
        fits = self.predict_components(X)
        component = random.choice(len(self.weights_), size=len(fits), p=self.weights_ / self.weights_.sum())
        noise = random.standard_normal(len(fits)) * self.scale_[component]
        return fits[np.arange(len(fits)), component] + noise, component
