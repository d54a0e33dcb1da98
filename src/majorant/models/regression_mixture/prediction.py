"""Predictions of a fitted mixture of regressions: fits, responsibilities, densities, draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from majorant._validation import check_sample_weight, validate_data
from majorant.data.chunks import Block, Chunks
from majorant.data.storage import stored_rows
from majorant.energy import free_energy, posterior
from majorant.engine.latents import entropies
from majorant.models.base import of_the_same_rows
from majorant.models.formula_estimator import FormulaEstimator, through_formula
from majorant.models.likelihood_model import LikelihoodModel
from majorant.models.mixture_rows import first_rows
from majorant.models.regression_mixture.extras import Extras, check_extras, check_gating, check_unit_weights
from majorant.models.regression_mixture.settings import response_of
from majorant.models.row_arguments import rows_as
from majorant.solvers.responses import Response

Array = NDArray[np.float64]
LARGEST_MEAN = 1e300
"""Means beyond it are no numbers, or where an exponential is cut so that it is one."""


def _tells_rows_apart(model: FittedLines) -> bool:
    """Return whether there are components, and they differ at all."""
    check_is_fitted(model)
    return not model.is_exact_


class FittedLines(RegressorMixin, FormulaEstimator, LikelihoodModel):  # type: ignore[misc]
    """The methods of a mixture of regressions that need a fit."""

    n_jobs: int | None
    coef_: Array
    weights_: Array
    scale_: Array
    center_: Array
    center_fits_: Array
    gating_coef_: Array
    gating_intercept_: Array
    gating_names_in_: NDArray[np.object_] | None
    groups_: NDArray[Any] | None
    group_responsibilities_: Array | None
    family: str | Response
    is_exact_: bool
    responsibilities_: Array | None
    trimmed_: NDArray[np.bool_] | None

    def _rows(self, X: Any, y: Any = None) -> tuple[Any, Any]:
        """Return the rows to predict, and their target: validated in memory, or X a stream."""
        check_is_fitted(self)
        source = stored_rows(X)
        if source is None:
            if y is None:
                return validate_data(self, X, reset=False, dtype=[np.float64, np.float32], order="C"), None
            X, y = validate_data(self, X, y, reset=False, dtype=[np.float64, np.float32], order="C", y_numeric=True)
            return X, y
        self._check_stored(source, reset=False)
        if y is None and not source.has_target:
            return source, None
        source.aim(y)
        return source, source.all_of_target()

    @property
    def _response(self) -> Response:
        return response_of(self.family)

    def _extras(self, n: int, **given: Any) -> Extras:
        """Return the inputs besides X and y, checked against the fit."""
        extras = check_extras(n, n_components=len(self.weights_), response=self._response, **given)
        check_gating(extras, self.gating_coef_.shape[1], self.gating_names_in_)
        return extras

    def _at(
        self, X: Any, *, groups: Any = None, gating: Any = None, offset: Any = None, trials: Any = None
    ) -> tuple[Chunks, Extras]:
        """Return rows in chunks, and what else is given of them."""
        data = Chunks(self._rows(X)[0], n_jobs=self.n_jobs)
        return data, self._extras(data.n_units, groups=groups, gating=gating, offset=offset, trials=trials)

    def _with_target(self, X: Any, y: Any, **rows: Any) -> tuple[Any, Any, Extras]:
        """Return rows, their target, and what else is given of them."""
        X, y = self._rows(X, y)
        return X, y, self._extras(len(y), **rows)

    def _fits(self, block: Block) -> Array:
        """Return every component's prediction at rows of a block, (rows, K), each independent of other rows."""
        slopes = np.einsum("ij,kj->ik", block.columns[0].astype(np.float64) - self.center_, self.coef_)
        return np.asarray(slopes + self.center_fits_)

    def _predictors(self, block: Block, extras: Extras) -> Array:
        """Return the linear predictors, offsets included, (rows, K)."""
        return self._fits(block) if extras.offset is None else self._fits(block) + extras.offset[block.at, None]

    def _log_priors(self, gating: Array | None, n: int) -> Array:
        """Return the logarithms of the priors of units with these gating columns, (n, K)."""
        with np.errstate(divide="ignore"):
            if gating is None:
                return np.broadcast_to(np.log(self.weights_), (n, len(self.weights_)))
        logits = np.einsum("ug,kg->uk", gating, self.gating_coef_) + self.gating_intercept_
        return np.asarray(logits - logsumexp(logits, axis=1, keepdims=True))

    def _densities(self, X: Any, y: NDArray[Any], extras: Extras) -> tuple[Array, Array]:
        """Return the log density of every unit (a group, or a row), and its responsibilities."""
        k, response = len(self.weights_), self._response
        target = np.asarray(y, dtype=np.float64)[:, None]
        trials = np.ones((len(target), 1)) if extras.trials is None else extras.trials[:, None]
        response.check(target[:, 0], trials[:, 0])

        def visit(block: Block) -> NDArray[Any]:
            eta = self._predictors(block, extras)
            if not response.is_location_scale:
                return response.log_density(target[block.at], eta, self.scale_**2, trials[block.at])
            # In units of the noise: its square may be no number.
            with np.errstate(over="ignore"):  # too far for a float: a density of zero
                own = target[block.at] / self.scale_, eta / self.scale_
                return response.log_density(*own, np.ones(k), trials[block.at]) - np.log(self.scale_)

        table = Chunks(X, n_jobs=self.n_jobs).map_rows(visit, (k,))
        gating = extras.gating
        if extras.groups is not None and extras.group_names is not None:
            n_groups = len(extras.group_names)
            sums = np.zeros((n_groups, k))
            np.add.at(sums, extras.groups, table)
            table = sums
            gating = None if gating is None else gating[first_rows(extras.groups)]
        energies = -(table + self._log_priors(gating, len(table)))
        if extras.labels is not None:
            labels = extras.labels if extras.groups is None else extras.labels[first_rows(extras.groups)]
            others = (labels[:, None] >= 0) & (np.arange(k) != labels[:, None])
            energies = np.where(others, np.inf, energies)
        return -free_energy(energies, axis=1), posterior(energies, axis=1)

    def _responsibilities(self, X: Any, y: NDArray[Any], extras: Extras) -> Array:
        """Return the responsibilities of each row; raise ValueError where all densities underflow."""
        q = self._densities(X, y, extras)[1]
        q = q if extras.groups is None else q[extras.groups]
        far = np.flatnonzero(q.sum(axis=1) == 0)
        if len(far):
            raise ValueError(f"no component is near row {far[0]}, whose target is {y[far[0]]:g}: look at its units")
        return q

    def _priors(self, extras: Extras, n: int) -> Array:
        """Return the component probabilities before the target is seen; the posterior for groups of the fit."""
        priors = np.exp(self._log_priors(extras.gating, n))
        if extras.groups is None or extras.group_names is None:
            return priors
        if self.groups_ is None or self.group_responsibilities_ is None:
            raise ValueError("groups= goes with a model that was fitted with groups; this one was not")
        kinds = [_kind(names) for names in (self.groups_, extras.group_names)]
        if kinds[0] != kinds[1]:
            raise TypeError(f"groups were {kinds[0]} when the model was fitted; got {kinds[1]}")
        fitted, given = self.groups_, extras.group_names
        if fitted.dtype.kind in "Mm":  # the same day in another unit
            common = np.promote_types(fitted.dtype, given.dtype)
            fitted, given = (names.astype(common).astype(np.int64) for names in (fitted, given))
        place = {name: i for i, name in enumerate(fitted.tolist())}
        at = np.array([place.get(name, -1) for name in given.tolist()], dtype=np.intp)[extras.groups]
        return np.where(at[:, None] >= 0, self.group_responsibilities_[at], priors)

    @rows_as("_at")
    def predict(self, X: Any, **rows: Any) -> Array:
        """Return the mixture's mean at each row, ``sum_k p_k E_k(y | x)``.

        The probabilities p_k are the priors (by the gating columns, where there are any). With `groups`, those of a
        group that the fit has seen are its posterior, and those of a new group the priors.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks
        groups : array-like of shape (n_samples,), optional
        gating : array-like of shape (n_samples, n_gating)
            Needed where the fit had it.
        offset, trials : array-like of shape (n_samples,), optional
            Of a binomial model the mean is the number of successes, by default of one trial: a probability.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        data, extras = self._at(X, **rows)
        if extras.gating is None and extras.groups is None:
            return data.map_rows(lambda block: np.einsum("ik,k->i", self._means(block, extras), self.weights_), ())
        priors = self._priors(extras, data.n_units)
        return data.map_rows(lambda block: np.einsum("ik,ik->i", self._means(block, extras), priors[block.at]), ())

    @rows_as("_at")
    def score(self, X: Any, y: Any, sample_weight: Any = None, **rows: Any) -> float:
        """Return the share of the target's variance that `predict` explains, R squared.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        {rows}
            As for `predict`.

        Returns
        -------
        float
        """
        fits = self.predict(X, **rows)
        target = self._rows(X, y)[1]
        counts = check_extras(len(fits), trials=rows.get("trials"), response=self._response).trials
        self._response.check(np.asarray(target, dtype=np.float64), np.ones(len(fits)) if counts is None else counts)
        from sklearn.metrics import r2_score  # takes time to load

        return float(r2_score(target, fits, sample_weight=check_sample_weight(sample_weight, len(fits))))

    def _means(self, block: Block, extras: Extras) -> Array:
        """Return the expected target under every component, (rows, K)."""
        trials = np.ones((len(block), 1)) if extras.trials is None else extras.trials[block.at, None]
        with np.errstate(over="ignore", invalid="ignore"):
            means = self._response.mean(self._predictors(block, extras), trials)
        far = np.flatnonzero(~(np.abs(means) < LARGEST_MEAN).all(axis=1))
        if len(far):
            raise ValueError(f"the mean at row {block.first + far[0]} of X is too large to be told: look at its units")
        return means

    @through_formula
    def predict_components(self, X: Any, *, offset: Any = None, trials: Any = None) -> Array:
        """Return every component's mean at each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks
        offset, trials : array-like of shape (n_samples,), optional

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        X, _ = self._rows(X)
        data = Chunks(X, n_jobs=self.n_jobs)
        extras = check_extras(data.n_units, offset=offset, trials=trials, response=self._response)
        return data.map_rows(lambda block: self._means(block, extras), (len(self.weights_),))

    @available_if(_tells_rows_apart)  # type: ignore[untyped-decorator]
    @of_the_same_rows
    @through_formula
    def predict_proba(
        self, X: Any, y: Any = None, *, groups: Any = None, gating: Any = None, offset: Any = None, trials: Any = None
    ) -> Array:
        """Return the probability of each component for each row: its responsibilities where the target is known.

        Not there (``hasattr`` is False) before the fit, and where one line fitted every row exactly: all components are
        then that line.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks
        y : array-like of shape (n_samples,), optional
            Without it a row's probabilities are the priors, or the posterior of a group that the fit has seen.
        groups : array-like of shape (n_samples,), optional
            With y: all rows of a group have one component, and the responsibilities of the group.
        gating : array-like of shape (n_samples, n_gating)
            Needed where the fit had it.
        offset, trials : array-like of shape (n_samples,), optional

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        X, y = self._rows(X, y)
        data = Chunks(X, n_jobs=self.n_jobs)
        extras = self._extras(data.n_units, groups=groups, gating=gating, offset=offset, trials=trials)
        if y is None:
            return np.array(self._priors(extras, data.n_units))
        return self._responsibilities(X, y, extras)

    @rows_as("_at")
    def classify(self, X: Any, y: Any, **rows: Any) -> NDArray[np.intp]:
        """Return the most probable component of rows whose target is known.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks
        y : array-like of shape (n_samples,)
        {rows}
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self._responsibilities(*self._with_target(X, y, **rows)).argmax(axis=1), dtype=np.intp)

    @rows_as("_at")
    def log_density(self, X: Any, y: Any, **rows: Any) -> Array:
        """Return the log density of each row's target given its features; with groups, of the targets of each group.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks
        y : array-like of shape (n_samples,)
        {rows}
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_groups,) in the order of ``np.unique(groups)``
        """
        return self._densities(*self._with_target(X, y, **rows))[0]

    def _totals(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        gating: Any = None,
        offset: Any = None,
        trials: Any = None,
        component_labels: Any = None,
    ) -> tuple[float, float, float]:
        given = {"groups": groups, "gating": gating, "offset": offset, "trials": trials}
        X, y, extras = self._with_target(X, y, **given, component_labels=component_labels)
        weights = check_sample_weight(sample_weight, len(y))
        check_unit_weights(weights, extras)
        densities, q = self._densities(X, y, extras)
        w = np.ones(len(y)) if weights is None else weights
        of_unit = w if extras.groups is None else w[first_rows(extras.groups)]
        counts = of_unit > 0
        value = float(np.sum(of_unit[counts] * densities[counts]))
        return value, float(w.sum()), max(float(np.sum(of_unit * np.asarray(entropies(q)))), 0.0)

    @rows_as("_at")
    def sample(self, X: Any, random_state: Any = None, **rows: Any) -> tuple[Array, NDArray[np.intp]]:
        """Draw targets from the model at some rows, and the component of each.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        random_state : int, RandomState instance or None, default=None
        {rows}
            As for `predict`. Rows of a group are of one component, drawn from the priors.

        Returns
        -------
        y : ndarray of shape (n_samples,)
        component : ndarray of shape (n_samples,)
        """
        random = check_random_state(random_state)
        data, extras = self._at(X, **rows)
        n, k = data.n_units, len(self.weights_)
        eta = data.map_rows(lambda block: self._predictors(block, extras), (k,))
        priors = np.exp(self._log_priors(extras.gating, n))
        levels = random.random_sample(n)
        if extras.groups is not None:
            levels = levels[first_rows(extras.groups)][extras.groups]
        cumulated = np.cumsum(priors, axis=1)
        component = (cumulated[:, :-1] <= levels[:, None] * cumulated[:, -1:]).sum(axis=1).astype(np.intp)
        own = eta[np.arange(n), component]
        counts = np.ones(n) if extras.trials is None else extras.trials
        if self._response.is_location_scale:
            noise = self._response.draw(np.zeros(n), np.ones(n), counts, random)
            return own + self.scale_[component] * noise, component
        return self._response.draw(own, self.scale_[component] ** 2, counts, random), component


def _kind(names: NDArray[Any]) -> str:
    """Return the word for a group's name."""
    return {"U": "text", "S": "bytes", "M": "dates", "m": "durations", "O": "objects"}.get(names.dtype.kind, "numbers")
