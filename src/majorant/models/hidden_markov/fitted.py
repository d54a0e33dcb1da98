"""A fitted hidden Markov model: paths, probabilities, forecasts, residuals, criteria, standard errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from majorant._validation import check_choice, check_count, seed_of, validate_data
from majorant.data.chunks import Block, Chunks
from majorant.data.storage import stored_rows
from majorant.data.units import blocks_of, distinct_units
from majorant.engine.mixture import Array, Drawn, Mixture, OnData
from majorant.engine.threads import one_thread
from majorant.formulas import is_table
from majorant.laws import Chain, GatedChain, Known
from majorant.laws.chain import lasting
from majorant.models.hidden_markov.ahead import given_times, named_ahead, others_ahead
from majorant.models.hidden_markov.emission import Emission
from majorant.models.hidden_markov.emissions import AUTOREGRESSIONS, Learn, LinesEmission, product_of, with_levels
from majorant.models.hidden_markov.errors import errors_of
from majorant.models.hidden_markov.forecast import Forecast, as_normal, forecast_of, given_others, uniform_residuals
from majorant.models.hidden_markov.formula import SeriesFormula, call_for_text
from majorant.models.hidden_markov.lags import forecast_of_lines, with_lags
from majorant.models.hidden_markov.law import chain_of, check_gated, check_possible
from majorant.models.hidden_markov.means import OfTuples
from majorant.models.hidden_markov.sequences import Sequences, SeriesRows, one_table, sequences_of, weights_of_rows
from majorant.models.hidden_markov.stream import SeriesStream, is_stream, series_stream
from majorant.models.hidden_markov.summary import markov_summary
from majorant.models.mixture import MixtureEstimator
from majorant.models.mixture_rows import ACCEPTED, Rows, checked_labels, in_rows, refuse_beside_stream, row_weight_of
from majorant.models.row_arguments import rows_as
from majorant.models.undetermined_covariances import Matrices
from majorant.results.information import Errors
from majorant.solvers.covariance_types import COVARIANCES
from majorant.summary import Summary


class FittedMarkovModel(OfTuples, MixtureEstimator):
    """The methods of a hidden Markov model that need its parameters only."""

    beta = 1.0
    bounds = None
    start: str | ArrayLike
    allowed: ArrayLike | None
    sticky: float
    emissions_: tuple[Emission, ...]
    start_probabilities_: Array
    transitions_: Array
    gating_coef_: Array
    gating_names_in_: list[str]

    # What the base asks for

    def _chain(self) -> Chain | GatedChain:
        """Return the law of the states, with the covariates of the present fit."""
        width = 1 + len(self.gating_center_) if hasattr(self, "gating_center_") else 0
        return chain_of(self.n_components, self.start, self.allowed, width, self.sticky, self._order)

    def _density(self, has_gaps: bool = False) -> Any:
        return product_of(self.emissions_, self._feature_names(), has_gaps)

    def check_estimates(self) -> None:
        """Raise ValueError if the estimates do not fit the emissions; asked of a model from a file."""
        super().check_estimates()
        nothing_seen = np.full((1, sum(one.n_features for one in self.emissions_)), np.nan)
        row = Block(0, tuple(column for one in self.emissions_ for column in one.read(nothing_seen)))
        try:
            found = self._density(True).log_density(self._theta().density, row)
        except (ValueError, IndexError) as error:
            raise ValueError(f"its estimates do not fit its emissions ({error})") from error
        if not np.isfinite(found).all():
            raise ValueError("its estimates give a row without a seen cell no density")

    def _law_of_fit(self) -> Chain | GatedChain:
        width = self.gating_coef_.shape[2] if "gating_coef" in self.estimate_names_ else 0
        return chain_of(self.n_components, self.start, self.allowed, width, self.sticky, self._order)

    def _read(self, X: Any, *, fitting: bool) -> NDArray[np.float64]:
        X = validate_data(self, X, reset=fitting, by_formula=call_for_text(self.emission), **ACCEPTED)
        return np.asarray(X, dtype=np.float64)

    def _sequences(
        self, rows: SeriesRows, sequence_weight: Any, labels: Any, learn: Learn | None = None
    ) -> tuple[Rows, Any]:
        """Return distinct sequences, as the emissions read them, and the law; in a fit emissions `learn` from them."""
        sequences, order = rows.sequences, rows.sequences.order
        weights, law = weights_of_rows(sequence_weight, sequences), self._chain()
        known = [] if labels is None else [checked_labels(labels, len(rows.x), self.n_components)]
        for one in known:
            check_possible(one, sequences, self.n_components, law)
        *covariates, codes = rows.in_order
        columns_in_order = [*(column[order] for column in (rows.x, *known)), *covariates]
        weights = None if weights is None else weights[order]
        units = distinct_units(columns_in_order, weights, codes, in_order=True)
        x, *others = units.columns
        if learn is not None:
            self.emissions_ = tuple(learn(one, x, units.weights) for one in self.emissions_)
        columns = (*(column for one in self.emissions_ for column in one.read(x)), *others)
        found = Rows(columns, units.weights, units.positions, units.row_weight, units.n_rows, others[-1])
        return found, Known(law) if known else law

    # Rows

    def _cut(self, X: Any, lengths: Any, groups: Any, time: Any, gating: Any) -> tuple[Any, Sequences, Any]:
        """Return the rows, by the formula of the fit if there is one, their sequences, and their covariates."""
        formula: SeriesFormula | None = getattr(self, "formula_of_fit_", None)
        gating = None if isinstance(gating, str) else gating  # terms, which are those of the fit
        if formula is None or not formula.reads(X, gating):
            return *sequences_of(X, lengths, groups, time), gating
        table, sequences = formula.rows(X, lengths, groups, time)
        return table, sequences, formula.gating(X, sequences) if gating is None else gating

    def _as_fitted(self, X: Any, y: Any, given: dict[str, Any]) -> tuple[Any, Any, dict[str, Any], Any]:
        roles = {name: given.get(name) for name in ("lengths", "groups", "time", "gating")}
        table, sequences, gating = self._cut(X, **roles)
        sequences.refuse_guessed(self.is_grouped_)
        times = None if sequences.times is None else sequences.times.write(sequences.times.numbers)
        beside = {"gating": gating, "component_labels": given.get("component_labels"), "time": times}
        table, own = sequences.sorted(table, **beside)
        others = {name: value for name, value in given.items() if name not in roles}
        return *super()._as_fitted(table, y, {**others, **own})[:3], sequences.order

    def _rows_of(
        self, X: Any, *, lengths: Any = None, groups: Any = None, time: Any = None, gating: Any = None
    ) -> SeriesRows | SeriesStream:
        """Return the rows of a table or of several, with own lags, their sequences, and covariates of their steps."""
        check_is_fitted(self)
        if is_stream(X):
            return self._stream(X, lengths, groups, time, gating)
        table, sequences, gating = self._cut(X, lengths, groups, time, gating)
        x = with_lags(self._read(table, fitting=False), sequences, self.lags)
        return SeriesRows(x, sequences, self._gating_of(gating, len(x)), getattr(self, "feature_names_in_", None))

    def _stream(
        self, X: Any, lengths: Any, groups: Any, time: Any, gating: Any, weights: Any = None, *, fitting: bool = False
    ) -> SeriesStream:
        """Return rows that are read part by part."""
        if gating is not None or (not fitting and "gating_coef" in self.estimate_names_):
            raise TypeError("transitions that depend on covariates need rows in memory: take a part of them")
        source = stored_rows(X)
        assert source is not None
        self._check_stored(source, reset=fitting)
        return series_stream(X, source, lengths, groups, time, weights, self.lags)

    def _gating_of(self, gating: Any, n: int) -> Array | None:
        """Return a constant and standardised covariates of n rows; None where the fit had no covariates."""
        check_gated("gating", gating, "gating_coef" in self.estimate_names_)
        return None if gating is None else self._gating(one_table(gating, None)[0], n)

    def _over_sequences(
        self, rows: SeriesRows | SeriesStream, visit: Callable[[Any, Any, Block, Array], Array], width: int
    ) -> Array:
        """Apply a function of law, parameters, sequences and log densities; return its values in row order."""
        mixture, theta = Mixture(self._density(rows.has_gaps), self._chain(), len(self.weights_)), self._theta()

        def of_block(block: Block) -> Array:
            rows, units = mixture.parts(block)
            return visit(mixture.law, theta.law, units, mixture.density.log_density(theta.density, rows))

        with one_thread():
            found = Chunks(rows.read(self.emissions_), n_jobs=self.n_jobs).map_rows(of_block, (width,))
        return rows.in_given_order(found)

    @rows_as("_rows_of")
    def predict(self, X: Any, **rows: Any) -> NDArray[np.intp]:
        """Return the most probable path of every sequence (Viterbi): the state of each row, from 0.

        Parameters
        ----------
        X, {rows}
            As for `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """

        def path(law: Any, phi: Any, units: Block, log_density: Array) -> Array:
            q: Array = law.posterior(phi, log_density, units, np.inf).responsibilities[0]
            return np.asarray(self._folded(q.T).argmax(axis=1)[:, None], dtype=np.float64)

        return self._over_sequences(self._rows_of(X, **rows), path, 1)[:, 0].astype(np.intp)

    @rows_as("_rows_of")
    def predict_proba(self, X: Any, *, given: str = "all", **rows: Any) -> Array:
        """Return the probabilities of the states of each row.

        Parameters
        ----------
        X, {rows}
            As for `fit`.
        given : {"all", "past", "before"}, default="all"
            Given all rows of the sequence (smoothed), those up to its own (filtered), or those before it (predicted).

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        return self._folded(self._tuple_probabilities(X, given, **rows))

    def _tuple_probabilities(self, X: Any, given: str, **rows: Any) -> Array:
        check_choice("given", given, ["all", "past", "before"])

        def probabilities(law: Any, phi: Any, units: Block, log_density: Array) -> Array:
            if given == "all":
                return np.asarray(law.posterior(phi, log_density, units, 1.0).responsibilities[0].T)
            if given == "past":
                return np.asarray(law.filtered(phi, log_density, units)[0].T)
            return np.asarray(np.exp(law.predicted(phi, log_density, units)[0].T))

        q = self._over_sequences(self._rows_of(X, **rows), probabilities, self._n_tuples)
        return np.asarray(q / q.sum(axis=1, keepdims=True))

    @rows_as("_rows_of")
    def _log_densities(self, X: Any, **rows: Any) -> Array:
        """Return the log density of each row given the rows before it; they sum to the sequence's log-likelihood."""
        return self._densities_of(self._rows_of(X, **rows))

    def _densities_of(self, rows: SeriesRows | SeriesStream) -> Array:
        def densities(law: Any, phi: Any, units: Block, log_density: Array) -> Array:
            joint = law.predicted(phi, log_density, units)[0] + log_density[0]
            return np.asarray(np.logaddexp.reduce(joint, axis=0)[:, None])

        return self._over_sequences(rows, densities, 1)[:, 0]

    def _weighted_densities(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,
        *,
        sequence_weight: Any = None,
        lengths: Any = None,
        groups: Any = None,
        time: Any = None,
        gating: Any = None,
    ) -> tuple[Array, Array | None]:
        rows = self._rows_of(X, lengths=lengths, groups=groups, time=time, gating=gating)
        return self._densities_of(rows), weights_of_rows(sequence_weight, rows.sequences)

    def sample(
        self, n_samples: int | None = None, *, lengths: Any = None, groups: Any = None, gating: Any = None
    ) -> tuple[Array, NDArray[np.intp]]:
        """Draw sequences.

        Parameters
        ----------
        n_samples : int, optional
            Rows of one sequence; one by default.
        lengths : array-like of shape (n_sequences,), optional
            Rows of each of several sequences.
        groups : array-like of shape (n_samples,), optional
            The sequence of each row, instead of `lengths`.
        gating : array-like of shape (n_samples, n_covariates), optional
            Covariates on which transitions depend, as for `fit`.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        states : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        given = next((len(part) for part in (groups, gating) if part is not None), 1)
        given = given if lengths is None else int(np.sum(lengths))
        n = check_count("n_samples", given if n_samples is None else n_samples, width=self.n_features_in_ + 1)
        sequences = sequences_of(np.empty((n, 0)), lengths, groups)[1]
        random = np.random.default_rng(seed_of(self.random_state))
        theta, states = self._theta(), np.empty(n, dtype=np.intp)
        rows = SeriesRows(np.empty((n, 0)), sequences, self._gating_of(gating, n))
        *covariates, codes = rows.in_order
        law = self._chain()
        if isinstance(law, GatedChain):
            states[sequences.order] = law.drawn(theta.law, codes, covariates[0], random)
        else:
            states[sequences.order] = law.drawn(theta.law, codes, random)
        density = self._density()
        if not isinstance(density, Drawn):
            raise TypeError("a regression cannot be drawn from: the columns that it is on are not of the model")
        drawn: Array = density.drawn(theta.density, states, random)
        return with_levels(self.emissions_, drawn), states

    @rows_as("_rows_of")
    def forecast(
        self, X: Any, n_steps: int = 1, *, gating_ahead: Any = None, future: Any = None, **rows: Any
    ) -> Forecast:
        """Return the distributions of the rows that follow each sequence.

        Parameters
        ----------
        X, {rows}
            As for `fit`.
        n_steps : int, default=1
        gating_ahead : array-like of shape (n_sequences * n_steps, n_covariates), optional
            Covariates of the steps to come where transitions depend on some: the rows to come of each sequence, in
            the order of their names.
        future : data frame or array-like of shape (n_sequences * n_steps, n_others), optional
            The rows to come, as many for each sequence, which then say how many steps: of a fit by formula a table with
            the columns of its terms, and of sequences and times where the fit had them; otherwise the columns that the
            target of a "regression" is on: by name where the fit knew names, sorted by the columns that `groups` and
            `time` name, and as they are, in the order of the names of the sequences, in an array.

        Returns
        -------
        Forecast
            Names of the sequences, probabilities of states, means, densities and intervals.

        Raises
        ------
        ValueError
            If the fit had several sequences, and it is not said which rows are one; if a row of `future` is not later
            than the rows of its sequence.

        Examples
        --------
        >>> import numpy as np, majorant as mj
        >>> counts = np.array([1, 0, 2, 1, 9, 8, 11, 10, 1, 0, 1, 2, 0, 9, 12, 8])[:, None]
        >>> model = mj.HiddenMarkovModel(2, emission="poisson", random_state=0).fit(counts)
        >>> ahead = model.forecast(counts, 2)
        >>> ahead.mean.round(1).ravel()
        array([8.1, 7.2])
        >>> ahead.interval(0.9)[1].ravel()
        array([15., 14.])
        """
        check_count("n_steps", n_steps, width=self.n_features_in_ + len(self.weights_) ** 2)
        found, others, is_of_lines = self._rows_of(X, **rows), future, isinstance(self.emissions_[0], LinesEmission)
        (sequences := found.sequences).refuse_guessed(self.is_grouped_)
        formula: SeriesFormula | None = getattr(self, "formula_of_fit_", None)
        if formula is not None and is_table(future):
            others, covariates = formula.ahead(one_table(X, None)[0], future, sequences)
            gating_ahead = covariates if gating_ahead is None else gating_ahead
        elif is_table(future) and is_of_lines and hasattr(self, "feature_names_in_"):
            others = named_ahead(one_table(X, None)[0], future, self._feature_names()[1:], sequences, rows)
        if future is not None:
            n_steps = max(1, len(future) // len(sequences))
        times = sequences.times_ahead(n_steps)
        if is_table(future):
            cut = (
                formula.formula.groups if formula else rows.get("groups"),
                formula.time if formula else rows.get("time"),
            )
            times = given_times(future, sequences, *cut, otherwise=times)
        here = self._tuple_probabilities(X, "past", **rows)[sequences.last]
        steps = self._steps_ahead(len(sequences), n_steps, gating_ahead)
        names, rows_ahead = self._feature_names(), None
        if is_of_lines:
            others, names = others_ahead(others, names[1:], len(sequences), n_steps), names[:1]
            rows_ahead = np.insert(others.reshape(len(sequences) * n_steps, others.shape[2]), 0, np.nan, axis=1)
        elif others is not None:
            raise ValueError("rows of this fit are on no columns: leave future out")
        if self.emission in AUTOREGRESSIONS:
            before = found.x[sequences.last][:, : self.lags] if self.lags else np.empty((len(sequences), 0))
            ahead: Forecast = forecast_of_lines(self._lines(), here, before, steps, sequences.names, others)
        else:
            told = self.emissions_, self._feature_names(), self._estimates()
            ahead = forecast_of(*told, here, steps, sequences.names, rows_ahead)
        return replace(ahead, states=self._folded(ahead.states), columns=tuple(names), times=times)

    def _steps_ahead(self, n_sequences: int, n_steps: int, gating_ahead: Any) -> Array:
        """Return the transitions to come, (sequences, steps, components, components)."""
        k, law = len(self.weights_), self._chain()
        if isinstance(law, Chain):
            check_gated("gating_ahead", gating_ahead, False)
            size = self._n_tuples
            return np.broadcast_to(law.lifted(self._theta().law).steps[0], (n_sequences, n_steps, size, size))
        check_gated("gating_ahead", gating_ahead, True)
        table = self._gating(gating_ahead, n_sequences * n_steps)
        steps = np.exp(law.log_steps(self._theta().law, table)[0])
        return np.asarray(steps.reshape(n_sequences, n_steps, k, k))

    @rows_as("_rows_of")
    def pseudo_residuals(self, X: Any, *, given: str = "before", scale: str = "normal", **rows: Any) -> Array:
        """Return how far each cell lies out in its distribution given other rows; normal, if the model is right.

        Parameters
        ----------
        X, {rows}
            As for `fit`.
        given : {"before", "others"}, default="before"
            Given the rows before its own (forecast residuals), or all other rows (ordinary ones).
        scale : {"normal", "uniform"}, default="normal"
            Of counts and codes it is the middle of the probabilities of less than, and of at most, the cell.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            NaN where a cell is missing, and for the columns that a regression is on.
        """
        check_is_fitted(self)
        check_choice("given", given, ["before", "others"])
        check_choice("scale", scale, ["normal", "uniform"])

        def states_of(law: Any, phi: Any, units: Block, log_density: Array) -> Array:
            ahead = law.predicted(phi, log_density, units)[0]
            if given == "before":
                return np.asarray(np.exp(ahead).T)
            q = law.posterior(phi, log_density, units, 1.0).responsibilities[0]
            return given_others(ahead, q, log_density[0])

        found = self._rows_of(X, **rows)
        states = self._over_sequences(found, states_of, self._n_tuples)
        out = uniform_residuals(self.emissions_, self._feature_names(), self._estimates(), found.x, states)
        out = np.delete(out, np.s_[1 : 1 + self.lags], axis=1)
        return out if scale == "uniform" else as_normal(out)

    @rows_as("_rows_of")
    def durations(self, X: Any, **rows: Any) -> tuple[Array, Array]:
        """Return how long states last: by the transitions, and as expected in sequences.

        Parameters
        ----------
        X, {rows}
            As for `fit`.

        Returns
        -------
        by_transitions : ndarray of shape (n_components,)
            Mean number of rows of a visit, 1 / (1 - probability to stay), where covariates are at their mean; infinite
            for a state that is never left.
        met : ndarray of shape (n_components,)
            Expected rows of each state over its expected visits.
        """
        on, _ = self._on(X, **rows)
        theta, k = self._theta(), len(self.weights_)
        with one_thread():
            sums = on.seen(theta).statistics.law[0]
        first, counts = sums[:k], sums[k : k + k * k].reshape(k, k)
        met = first + counts.sum(axis=0)
        with np.errstate(divide="ignore"):
            return lasting(self.transitions_), met / (met - np.diag(counts))

    # Criteria and errors

    def _cell_names(self) -> list[str]:
        return [] if isinstance(self.emissions_[0], LinesEmission) else super()._cell_names()

    def _matrices(self) -> list[Matrices]:
        one, estimates = self.emissions_[0], {"gaussian": "covariances", "student": "scale_matrices"}
        is_any = one.name in estimates and COVARIANCES[one.covariance_type].has_matrices and one.n_features > 1
        return [Matrices(estimates[one.name], 0, self._feature_names())] if is_any else []

    def _on(  # type: ignore[override]
        self,
        X: Any,
        *,
        sequence_weight: Any = None,
        lengths: Any = None,
        groups: Any = None,
        time: Any = None,
        gating: Any = None,
        component_labels: Any = None,
    ) -> tuple[OnData, float]:
        if is_stream(X):
            refuse_beside_stream(component_labels=component_labels)
            stream = self._stream(X, lengths, groups, time, gating, sequence_weight)
            unit = row_weight_of(stream.source)
            mixture = Mixture(self._density(stream.has_gaps), self._chain(), len(self.weights_))
            return OnData(mixture, Chunks(in_rows(stream.read(self.emissions_), unit), n_jobs=self.n_jobs)), unit
        given = self._rows_of(X, lengths=lengths, groups=groups, time=time, gating=gating)
        assert isinstance(given, SeriesRows)
        given.sequences.refuse_guessed(self.is_grouped_)
        rows, law = self._sequences(given, sequence_weight, component_labels)
        if self.is_labelled_ and isinstance(self.start, str) and self.allowed is None and component_labels is None:
            raise ValueError(
                "states of some rows were known in this fit: give component_labels, -1 where one is not known"
            )
        has_gaps = any(bool(np.isnan(c).any()) for c in rows.columns[: self._density().n_columns])
        mixture = Mixture(self._density(has_gaps), law, len(self.weights_))
        source = blocks_of(rows.columns, rows.weights / rows.row_weight, rows.groups)
        return OnData(mixture, Chunks(source, n_jobs=self.n_jobs)), rows.row_weight

    def _weight_of(self, on: OnData) -> float:
        """Return the weight of the rows that have any cell."""
        n = on.mixture.density.n_columns

        def of_block(block: Block) -> float:
            is_there = np.any([~np.isnan(c.reshape(len(c), -1)).all(axis=1) for c in block.columns[:n]], axis=0)
            return float(is_there.sum() if block.weights is None else block.weights[is_there].sum())

        return on.data.map_sum(of_block)

    def _errors(self, X: Any, **rows: Any) -> Errors:
        """Return no error of lines without noise, and of a free probability of zero or one; zero for what is given."""
        found = super()._errors(X, **rows)
        return found._replace(errors=errors_of(self, found.errors))

    def _entry_names(self, name: str) -> list[str] | None:
        if name == "gating_coef":
            own = ["constant", *self.gating_names_in_]
            return [f"to {j + 1}, {one}" for j in range(len(self.weights_)) for one in own]
        if name != "coef":
            return super()._entry_names(name)
        target, *others = self._feature_names()
        return [*(f"{target}, {lag} before" for lag in range(1, self.lags + 1)), *others]

    def _summary(self) -> Summary:
        return markov_summary(self)
