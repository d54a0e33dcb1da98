"""A fitted mixture: densities, responsibilities, draws, criteria and standard errors of rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from majorant._validation import (
    check_count,
    check_enough_rows,
    check_real,
    check_sample_weight,
    seed_of,
    told_column,
    validate_data,
)
from majorant.data.chunks import Block, Chunks, Mapped
from majorant.data.rows import unobserved_message
from majorant.data.storage import StoredRows, stored_rows
from majorant.data.units import Units, blocks_of, check_group_weights, distinct_units
from majorant.engine.mixture import Array, Drawn, Limits, Mixture, OnData, Parameters
from majorant.engine.threads import one_thread
from majorant.laws import Gated, Independent
from majorant.laws.separation import undetermined_directions
from majorant.models.covariates import Covariates
from majorant.models.likelihood_model import LikelihoodModel
from majorant.models.mixture_rows import (
    ACCEPTED,
    Rows,
    check_gating,
    check_given,
    density_and_responsibilities,
    drawn_states,
    in_rows,
    law_of,
    refuse_beside_stream,
    row_weight_of,
    rows_of,
    standardise_gating,
)
from majorant.models.mixture_summary import entry_names, estimates_table, mixture_summary
from majorant.models.row_arguments import rows_as
from majorant.models.undetermined_covariances import Matrices, never_together
from majorant.models.unlinked import Groups
from majorant.results.information import Errors, intervals, limits_of, standard_errors
from majorant.summary import Summary

ROUNDED = 1e-4
"""By how much estimates of single precision may exceed a limit."""


class FittedMixture(DensityMixin, LikelihoodModel):  # type: ignore[misc]
    """The methods of a mixture that need its parameters only."""

    keeps_single = False
    """Whether rows of single precision get answers of single precision."""

    n_components: int
    beta: float
    n_jobs: int | None
    random_state: Any
    regular_: bool
    degeneracy_: str
    separated_: str
    never_together_: list[list[str]]
    unlinked_: Groups = ()
    dependent_: Sequence[str] = ()
    constant_: Sequence[str] = ()
    n_rows_: float
    is_grouped_: bool
    is_labelled_: bool
    n_iter_: int
    weights_: Array
    log_likelihood_: float
    estimate_names_: list[str]
    gating_center_: Array
    gating_scale_: Array
    covariates_: Covariates

    # What a model says of itself

    def _density(self) -> Any:
        """Return the density, from parameters and what `_columns` learned; the one method per model must define."""
        raise NotImplementedError(f"{type(self).__name__} must define its density")

    expected = ""
    """What cells are, in words, where they cannot be any numbers: "zeros and ones"."""

    def _is_possible(self, X: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which cells are what is `expected`; of missing ones it does not matter."""
        return np.ones(X.shape, dtype=bool)

    def _columns(self, X: NDArray[Any], *, fitting: bool) -> tuple[NDArray[Any], ...]:
        """Return the columns that the density reads; while `fitting`, attributes may be set from them.

        Raises
        ------
        ValueError
            If the rows cannot be of this density: what was got, what was expected, what to change.
        """
        return (X,)

    def _checked_columns(
        self, X: NDArray[Any], numbers: NDArray[np.intp] | range, *, fitting: bool
    ) -> tuple[NDArray[Any], ...]:
        """Return the columns of rows with these numbers, whose cells are checked."""
        wrong = ~(self._is_possible(X) | np.isnan(X)) if self.expected else np.zeros((0, 0))
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            name = told_column(getattr(self, "feature_names_in_", None), column)
            raise ValueError(
                f"row {numbers[row]}, {name} of X is {X[row, column]:g}; {type(self).__name__} takes "
                f"{self.expected} (NaN where a cell is missing): change the rows, or choose another model"
            )
        return self._columns(X, fitting=fitting)

    def _read(self, X: Any, *, fitting: bool) -> NDArray[Any]:
        """Return the rows in memory, as an array; of what is no number, `_counted` makes some while `fitting`."""
        return np.asarray(validate_data(self, X, reset=fitting, **ACCEPTED))

    def _read_block(self, X: NDArray[Any]) -> Array:
        """Return the rows of a stream as numbers."""
        return X.astype(np.float64)

    def _counted(self, X: Any, weights: Array | None, *, fitting: bool) -> tuple[NDArray[Any], Array | None]:
        """Rows as numbers, NaN where a cell is missing, and their weights: zero for those that say nothing."""
        return X, weights

    def _entry_names(self, name: str) -> list[str] | None:
        """Return a name for each number that a component has in an estimate; None where they have none."""
        return entry_names(self, name)

    def _cell_names(self) -> list[str]:
        """Return the names of the columns that the density reads, in its order; none where they are others than X's."""
        return self._feature_names()

    def _of_each(self, name: str, values: Any) -> Array:
        """Return the numbers of an estimate for each component, also where all share them."""
        return np.asarray(values, dtype=np.float64)

    def _shown(self, X: Array) -> NDArray[Any]:
        """Drawn rows as a user knows them."""
        return X

    def _rows_in_memory(
        self, X: Any, sample_weight: Any, groups: Any, gating: Any, component_labels: Any, *, fitting: bool = True
    ) -> tuple[Rows, Any]:
        X = self._read(X, fitting=fitting)
        n = len(X)
        X, weights = self._counted(X, check_sample_weight(sample_weight, n), fitting=fitting)
        counted_rows = slice(None) if weights is None else weights > 0
        unobserved = np.isnan(X[counted_rows]).all(axis=0)
        if fitting and unobserved.any():
            raise ValueError(unobserved_message(unobserved, getattr(self, "feature_names_in_", None)))
        columns = list(self._checked_columns(self._numbers(X), range(n), fitting=fitting))
        if fitting and gating is not None:
            standardise_gating(self, gating, n, weights)
        law, extra, codes = self._law(n, groups, gating, component_labels, self._law_columns(X))
        if codes is not None and weights is not None:
            check_group_weights(weights, codes)
        units: Units = distinct_units([*columns, *extra], weights, codes)
        check_enough_rows(n, "n_components", self.n_components, "component", codes if fitting else None)
        return rows_of(units, len(columns), codes is not None, X.dtype), law

    def _numbers(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the rows in the precision in which they are fitted."""
        return X.astype(np.float64, copy=False)

    def _law(
        self, n: int, groups: Any, gating: Any, component_labels: Any, own: Sequence[NDArray[Any]] = ()
    ) -> tuple[Any, list[NDArray[Any]], NDArray[np.intp] | None]:
        """Return the law of the states, its columns, and the group of each row."""
        table = None if gating is None else self._gating(gating, n)
        return law_of(n, self.n_components, groups, table, component_labels, self._plain_law(), own)

    def _law_columns(self, X: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the columns that the law reads of rows with which neither groups, covariates nor labels are given."""
        return []

    def _gating(self, gating: Any, n: int) -> Array:
        """Return a constant column, and standardised covariates."""
        table = self.covariates_.table(gating, n)
        return np.column_stack([np.ones(n), (table - self.gating_center_) / self.gating_scale_])

    def _columns_of(self, source: StoredRows) -> Mapped:
        """Return the columns of a stream that the density reads."""

        def read(block: Block) -> tuple[NDArray[Any], ...]:
            numbers = range(block.first, block.first + len(block))
            return self._checked_columns(self._read_block(block.columns[0]), numbers, fitting=False)

        return Mapped(source, read)

    # Rows

    def _theta(self) -> Parameters[Any, Any]:
        """Return the parameters of the fit, as a batch of one run."""
        estimates = {name: np.asarray(getattr(self, f"{name}_"), dtype=np.float64) for name in self.estimate_names_}
        return Parameters(self._density().recalled(estimates), self._law_of_fit().recalled(estimates))

    def check_estimates(self) -> None:
        """Raise ValueError if an estimate is beyond its limits; asked of a model from a file."""
        for name, (low, high) in self._limits().items():
            value = np.asarray(getattr(self, f"{name}_"))
            if not ((value >= low) & (value <= high + ROUNDED)).all():
                raise ValueError(f"its {name}_ holds numbers beyond its limits, {np.min(low):g} to {high:g}")

    def _limits(self) -> dict[str, Limits]:
        """Return the limits of the estimates that have some."""
        return limits_of(Mixture(self._density(), self._law_of_fit(), len(self.weights_)))

    def _law_of_fit(self) -> Any:
        """Return the law of the states of units."""
        return Gated(len(self.gating_center_) + 1) if "gating_coef" in self.estimate_names_ else self._plain_law()

    def _plain_law(self) -> Any:
        """Return the law of the states of rows with which neither groups, covariates nor labels are given."""
        return Independent()

    def _joint(self, X: Any, *, groups: Any = None, gating: Any = None) -> tuple[Array, Array, Any]:
        """Return the log density of each row's unit, (n,), responsibilities (n, components), and their dtype."""
        check_is_fitted(self)
        source = stored_rows(X)
        if source is None:
            X = self._read(X, fitting=False)
            n, dtype, own = len(X), X.dtype, self._law_columns(X)
            columns: tuple[Any, ...] = self._checked_columns(X.astype(np.float64, copy=False), range(n), fitting=False)
        else:
            n, dtype = self._check_stored(source, reset=False), source.dtype
            columns, own = (), []
        check_gating(self, gating)
        law, extra, codes = self._law(n, groups, gating, None, own)
        mixture, theta = Mixture(self._density(), law, len(self.weights_), float(self.beta)), self._theta()
        order = np.arange(n)
        if codes is not None:
            order = np.argsort(codes, kind="stable")
            columns = (*(c[order] for c in columns), codes[order], *(c[order] for c in extra))
        else:
            columns = (*columns, *extra)

        with one_thread():
            if source is None:
                data = Chunks(blocks_of(columns, None, None if codes is None else codes[order]), n_jobs=self.n_jobs)
            else:
                data = Chunks(self._columns_of(source), n_jobs=self.n_jobs)
            both = np.empty((n, len(self.weights_) + 1))
            both[order] = data.map_rows(partial(density_and_responsibilities, mixture, theta), both.shape[1:])
        return both[:, 0], both[:, 1:], dtype if self.keeps_single else both.dtype

    @rows_as("_joint")
    def predict_proba(self, X: Any, **rows: Any) -> Array:
        """Return the responsibilities of each component for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks
        {rows}
            As for `fit`. Rows of one group have the same responsibilities.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        _, q, dtype = self._joint(X, **rows)
        return np.asarray(q / q.sum(axis=1, keepdims=True), dtype=dtype)

    @rows_as("_joint")
    def predict(self, X: Any, **rows: Any) -> NDArray[np.intp]:
        """Return the most probable component of each row, from 0.

        Parameters
        ----------
        X, {rows}
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self.predict_proba(X, **rows).argmax(axis=1))

    def _log_densities(self, X: Any, *, gating: Any = None) -> Array:
        """Return the log density of each row."""
        return self._joint(X, gating=gating)[0]  # of double precision: squares of far rows are no float32

    @rows_as("_log_densities")
    def score_samples(self, X: Any, **rows: Any) -> Array:
        """Return the log density of each row.

        Parameters
        ----------
        X, {rows}
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._log_densities(X, **rows)

    def _weighted_densities(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, gating: Any = None
    ) -> tuple[Array, Array | None]:
        """Return the log density of each row, and its weight."""
        values = self._joint(X, gating=gating)[0]
        return values, check_sample_weight(sample_weight, len(values))

    @rows_as("_weighted_densities")
    def score(self, X: Any, y: Any = None, **rows: Any) -> float:
        """Return the mean log density of rows.

        Parameters
        ----------
        X, {rows}
            As for `fit`.
        y : ignored

        Returns
        -------
        float
        """
        values, weights = self._weighted_densities(X, y, **rows)
        with np.errstate(over="ignore"):
            return float(np.average(values, weights=weights))

    def sample(
        self, n_samples: int | None = None, *, groups: Any = None, gating: Any = None
    ) -> tuple[Array, NDArray[np.intp]]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, optional
            By default as many as `groups` and `gating` have, or one.
        groups : array-like of shape (n_samples,), optional
            Rows of one group have one component.
        gating : array-like of shape (n_samples, n_covariates), optional
            Covariates on which the weights depend, as for `fit`.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        components : ndarray of shape (n_samples,)

        Raises
        ------
        TypeError
            If the density cannot be drawn from.
        ValueError
            If weights depend on covariates and none are given, or numbers of rows differ.
        """
        check_is_fitted(self)
        check_gating(self, gating)
        density = self._density()
        if not isinstance(density, Drawn):
            raise TypeError(
                f"{type(self).__name__} cannot be sampled from: its density {type(density).__name__} has no `drawn`"
            )
        given = next((len(part) for part in (groups, gating) if part is not None), 1)
        n = check_count("n_samples", given if n_samples is None else n_samples, width=self.n_features_in_ + 1)
        _, table, codes = self._law(n, groups, gating, None)
        codes = np.arange(n) if codes is None else codes
        random = np.random.default_rng(seed_of(self.random_state))
        theta, law = self._theta(), self._law_of_fit()
        components = drawn_states(law, theta.law, codes, table[0] if table else None, random)
        components = np.sort(components) if groups is None and gating is None else components
        return self._shown(density.drawn(theta.density, components, random)), components

    # Criteria and errors

    def _on(
        self,
        X: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        gating: Any = None,
        component_labels: Any = None,
    ) -> tuple[OnData, float]:
        """Return the fitted mixture on rows, weights counting them, and what one row weighs."""
        check_given(self, groups, gating, component_labels)
        source = stored_rows(X)
        if source is not None:
            refuse_beside_stream(groups=groups, gating=gating, component_labels=component_labels)
            self._check_stored(source, reset=False)
            source.weigh(sample_weight)
            unit = row_weight_of(source)
            data = Chunks(in_rows(self._columns_of(source), unit), n_jobs=self.n_jobs)
            return OnData(Mixture(self._density(), self._plain_law(), len(self.weights_), float(self.beta)), data), unit
        rows, law = self._rows_in_memory(X, sample_weight, groups, gating, component_labels, fitting=False)
        mixture = Mixture(self._density(), law, len(self.weights_), float(self.beta))
        data = Chunks(blocks_of(rows.columns, rows.weights / rows.row_weight, rows.groups), n_jobs=self.n_jobs)
        return OnData(mixture, data), rows.row_weight

    def _weight_of(self, on: OnData) -> float:
        """Return the number of rows that the BIC counts."""
        return float(on.total_weight)

    @rows_as("_on")
    def _totals(self, X: Any, **rows: Any) -> tuple[float, float, float]:
        on, unit = self._on(X, **rows)
        theta = self._theta()
        with one_thread():
            value, entropy = on.data.map_sum(lambda block: np.array(on.mixture.likelihood(theta, block)))
            n = self._weight_of(on)
        return float(-value * unit), float(n * unit), float(entropy * unit)

    def _matrices(self) -> list[Matrices]:
        """Return the estimates that are covariance matrices."""
        return []

    def _errors(self, X: Any, **rows: Any) -> Errors:
        on, _ = self._on(X, **rows)
        theta = self._theta()
        with one_thread():
            found = standard_errors(on, theta, unbounded=undetermined_directions(on, theta))
        return self._of_determined(on, found)

    def _of_determined(self, on: OnData, found: Errors) -> Errors:
        """Return errors that are NaN for covariances between columns that no row has cells of both."""
        for matrices in self._matrices():
            for i, j in never_together(on.data, matrices):
                found.errors[matrices.estimate][..., [i, j], [j, i]] = np.nan
        return found

    @rows_as("_on")
    def standard_errors(self, X: Any, **rows: Any) -> dict[str, Array]:
        """Return the standard errors of all estimates from the observed information of the rows of the fit.

        Parameters
        ----------
        X, {rows}
            The rows of the fit.

        Returns
        -------
        dict of ndarray
            By the name of the estimate (``weights``, ...), in its shape; NaN where the rows do not determine it.
        """
        return self._errors(X, **rows).errors

    @rows_as("_on")
    def confidence_intervals(self, X: Any, *, level: float = 0.95, **rows: Any) -> dict[str, tuple[Array, Array]]:
        """Return the intervals of all estimates, from standard errors.

        They are symmetric on the logit for estimates between 0 and 1, on the logarithm for positive ones, such as the
        variances on the diagonals of covariance matrices.

        Parameters
        ----------
        X, {rows}
            The rows of the fit.
        level : float, default=0.95

        Returns
        -------
        dict of (low, high)
        """
        check_real("level", level, low=0.0, high=1.0)
        return intervals(self, self._errors(X, **rows).errors, level, self._limits())

    @rows_as("_on")
    def estimates(self, X: Any, *, level: float = 0.95, **rows: Any) -> Any:
        """Return every estimate with its standard error and interval as a table.

        Parameters
        ----------
        X, {rows}
            The rows of the fit.
        level : float, default=0.95
            Of the intervals.

        Returns
        -------
        data frame
            A row for each number: its `parameter` (``means``, ...), `entry` (the column, where it has one), the number
            of the component from 1, `estimate`, `standard_error`, `low` and `high`; NaN where the rows do not determine
            it.
        """
        check_real("level", level, low=0.0, high=1.0)
        errors = self._errors(X, **rows).errors
        return estimates_table(self, errors, intervals(self, errors, level, self._limits()))

    # Words

    def _summary(self) -> Summary:
        return mixture_summary(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
