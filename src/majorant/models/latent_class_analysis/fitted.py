"""What a fitted latent class analysis says of rows: how well the classes fit, and what they depend on."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from majorant._numbers import counted
from majorant._validation import check_choice, is_missing, levels_to_user, validate_data
from majorant.data.chunks import Block, Chunks
from majorant.data.rows import unobserved_message
from majorant.data.storage import StoredRows, stored_rows
from majorant.data.units import blocks_of
from majorant.densities import Product
from majorant.engine.descent import Ends
from majorant.engine.mixture import Array, Mixture
from majorant.engine.threads import one_thread
from majorant.laws import ByPopulation, Independent
from majorant.models.gaussian_in_units import units_of
from majorant.models.latent_class_analysis.effects import CovariateEffects, DistalOutcome
from majorant.models.latent_class_analysis.items import Items, column_of, learned, levels_met, orders_of
from majorant.models.latent_class_analysis.kinds import CorrelatedItems
from majorant.models.latent_class_analysis.later import covariate_effects, distal_outcome, known_covariates, without
from majorant.models.latent_class_analysis.measures import (
    Classification,
    FitStatistics,
    bivariate_residuals,
    cells_of,
    classification,
    entropy_measures,
    tests_of_fit,
    too_many_parameters,
    warned,
)
from majorant.models.latent_class_analysis.populations import Populations, place_of, populations_of
from majorant.models.latent_class_analysis.profile import ClassProfile, profile_of
from majorant.models.latent_class_analysis.resampling import bootstrapped, robust_errors
from majorant.models.latent_class_analysis.steps import Method
from majorant.models.mixture import MixtureEstimator
from majorant.models.mixture_rows import Rows, check_given, density_and_responsibilities
from majorant.models.mixture_summary import mixture_summary
from majorant.models.row_arguments import rows_as
from majorant.models.undetermined_covariances import Matrices
from majorant.results.criteria import criteria
from majorant.results.information import Errors
from majorant.summary import Summary


class FittedLatentClasses(MixtureEstimator):
    """The methods of a latent class analysis that need its rows or its parameters only."""

    items: Any
    correlated: Any
    population: Any
    equal_items: Any
    variances: str
    unseen: str
    missing: str
    sampling_weights: bool
    items_: Items
    left_out_: list[str]
    populations_: Populations | None
    shares_by_population_: bool
    item_probabilities_: Array
    normal_means_: Array
    count_rates_: Array

    # Reading rows

    def _read(self, X: Any, *, fitting: bool) -> Any:
        if type(X) is dict:
            raise TypeError(
                f"X must be a data frame or an array, not a {type(X).__name__}: pandas.DataFrame(X) makes one"
            )
        table = validate_data(self, X, reset=fitting, dtype=None, ensure_all_finite="allow-nan")
        if fitting:
            self._orders = orders_of(X)
            return table
        return self._coded(table, self.unseen)

    def _coded(self, table: NDArray[Any], unseen: str) -> Array:
        """Return the cells of the items as numbers and, where there are populations, that of each row last."""
        known = self.items_ if self.populations_ is None else self.populations_
        return known.coded(table, unseen)

    def _counted(self, X: Any, weights: Array | None, *, fitting: bool) -> tuple[Array, Array | None]:
        names = self._feature_names()
        place = None if self.population is None else place_of(self.population, names)
        if fitting:
            items = [j for j in range(len(names)) if j != place]
            if not items:
                raise ValueError("X holds the column of populations alone: give items beside it")
            names, table = [names[j] for j in items], X[:, items]
            missing = np.column_stack([is_missing(column_of(table, j, name)) for j, name in enumerate(names)])
            empty = missing.all(axis=1)
        else:
            empty = np.isnan(X if place is None else X[:, :-1]).all(axis=1)
        if fitting and empty.any():
            told = f"{empty.sum()} of {counted(len(X), 'row')} {'has' if empty.sum() == 1 else 'have'} no answer"
            self.left_out_.append(f"{told} to any item: left out of the fit.")
        if empty.any():  # what answers nothing says nothing, and does not count
            weights = np.where(empty, 0.0, 1.0 if weights is None else weights)
            if not (weights > 0).any():
                raise ValueError("no row has an answer to any item: there is nothing to fit")
        if self.sampling_weights and weights is not None:
            weights = weights * ((weights > 0).sum() / weights.sum())
        if fitting:
            orders = self.__dict__.pop("_orders")
            orders = {i: orders[j] for i, j in enumerate(items) if j in orders}
            self.items_ = learned(
                table if weights is None else table[weights > 0], names, self.items, orders, self.correlated
            )
            self.populations_ = None
            if place is not None:
                if missing.all(axis=0).any():
                    raise ValueError(unobserved_message(np.asarray(missing.all(axis=0)), names))
                name = self._feature_names()[place]
                column = column_of(X, place, name)
                of = column, weights, table, self.items_, name, place, self.equal_items
                self.populations_ = populations_of(*of)
                self.items_ = self.populations_.split_items
            X = self._coded(X, "error" if weights is None else "missing")
        return X, weights

    def _look_at(self, source: StoredRows) -> None:
        if self.sampling_weights and source.has_weights:
            raise TypeError("sampling_weights needs rows in memory: take a part of them, or leave it out")
        if self.population is not None:
            raise TypeError("population needs rows in memory: take a part of them, or leave it out")
        self.populations_, self.shares_by_population_, self.left_out_ = None, False, []
        table = levels_met((block.columns[0] for block in source.blocks()), source.n_features)
        self.items_ = learned(table, self._feature_names(), self.items, correlated=self.correlated)

    def _read_block(self, X: NDArray[Any]) -> Array:
        return self._coded(X.astype(np.float64), self.unseen)

    def _rows_in_memory(
        self, X: Any, sample_weight: Any, groups: Any, gating: Any, component_labels: Any, *, fitting: bool = True
    ) -> tuple[Rows, Any]:
        if fitting:
            self.shares_by_population_ = self.population is not None and gating is None
            self.left_out_ = []
        if self.sampling_weights and groups is not None:
            raise ValueError("sampling_weights takes rows for independent: leave groups out, or sampling_weights")
        if gating is not None:
            gating, lacking, said = known_covariates(self, gating, len(X), fitting=fitting)
            if said and groups is not None:
                raise ValueError(f"{said}, and rows of one group stand together: leave out the groups that lack some")
            sample_weight = without(lacking, sample_weight)
            if said and fitting:
                self.left_out_ = [f"{said}: left out of the fit."]
                warnings.warn(self.left_out_[0], UserWarning, stacklevel=levels_to_user())
        return super()._rows_in_memory(X, sample_weight, groups, gating, component_labels, fitting=fitting)

    def _gating(self, gating: Any, n: int) -> Array:
        return super()._gating(known_covariates(self, gating, n)[0], n)

    def _joint(self, X: Any, *, groups: Any = None, gating: Any = None) -> tuple[Array, Array, Any]:
        values, q, dtype = super()._joint(X, groups=groups, gating=gating)
        if gating is None or not (lacking := known_covariates(self, gating, len(values))[1]).any():
            return values, q, dtype
        if groups is not None:
            raise ValueError("covariates are missing, and groups are given: leave out the groups that lack some")
        law, theta = Independent(), self._theta()  # a row without covariates has the shares of all rows
        theta = replace(theta, law=law.recalled({"weights": self.weights_}))
        columns = self._columns(self._read(X, fitting=False)[lacking], fitting=False)
        mixture = Mixture(self._density(), law, len(self.weights_), float(self.beta))
        found = density_and_responsibilities(mixture, theta, Block(0, columns))
        values[lacking], q[lacking] = found[:, 0], found[:, 1:]
        return values, q, dtype

    def _columns(self, X: NDArray[Any], *, fitting: bool) -> tuple[NDArray[Any], ...]:
        return tuple(X[:, list(block.columns)] for block in self.items_.blocks)

    def _law_columns(self, X: NDArray[Any]) -> list[NDArray[Any]]:
        return [X[:, -1]] if self.shares_by_population_ else []

    def _plain_law(self) -> Any:
        known = self._by_population
        return Independent() if known is None else ByPopulation(len(known.levels))

    @property
    def _by_population(self) -> Populations | None:
        """The populations, where each has its own shares."""
        return self.populations_ if self.shares_by_population_ else None

    def check_estimates(self) -> None:
        """Raise ValueError if estimates do not fit the items; asked of a model from a file."""
        for name in self.estimate_names_:
            entries = self.items_.entry_names(name)
            if entries is None:
                continue
            own = (isqrt(len(entries)),) * 2 if name.endswith("covariances") else (len(entries),)
            found, needed = np.shape(getattr(self, f"{name}_")), (self.n_components, *own)
            if found != needed:
                raise ValueError(f"its {name}_ has shape {found}, and its items need {needed}")
        super().check_estimates()

    def _prepare(self, rows: Rows) -> None:
        self.item_center_, self.item_scale_ = np.zeros(len(self.items_.names)), np.ones(len(self.items_.names))
        for block, x in zip(self.items_.blocks, rows.columns, strict=False):
            if block.in_units:
                at = list(block.columns)
                self.item_center_[at], self.item_scale_[at] = units_of(x, rows.weights)

    def _degeneracy(self, contest: Any, ends: Ends[Any], order: NDArray[np.intp]) -> str:
        n, k = len(contest.weights), self.n_components
        few = f"X has {counted(n, 'distinct row')}, too few to tell {k} classes apart: ask for at most {n}"
        return few if n < k else super()._degeneracy(contest, ends, order)

    def _points(self, rows: Rows) -> Array:
        blocks, columns = self.items_.blocks, rows.columns
        if self.populations_ is not None:  # items as they are in X: where a cell is, says nothing of classes
            blocks, cells = self.populations_.items.blocks, self.populations_.of_columns(columns)
            columns = tuple(cells[:, list(block.columns)] for block in blocks)
        parts = zip(blocks, columns, strict=False)
        return np.concatenate([block.points(x, rows.weights) for block, x in parts], axis=1)

    def _density(self) -> Product:
        return Product([(block.prefix, block.density(self)) for block in self.items_.blocks])

    # How well the classes fit

    def _seen(
        self,
        X: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        gating: Any = None,
        component_labels: Any = None,
    ) -> tuple[Rows, Array, Array]:
        """Return the distinct rows of X, their log densities and responsibilities."""
        if stored_rows(X) is not None:
            raise TypeError("statistics of a fit need rows in memory: take a part of them")
        check_given(self, groups, gating, component_labels)
        rows, law = self._rows_in_memory(X, sample_weight, groups, gating, component_labels, fitting=False)
        mixture = Mixture(self._density(), law, len(self.weights_), float(self.beta))
        data = Chunks(blocks_of(rows.columns, None, rows.groups), n_jobs=self.n_jobs)
        with one_thread():
            visit = partial(density_and_responsibilities, mixture, self._theta())
            both = data.map_rows(visit, (len(self.weights_) + 1,))
        return rows, both[:, 0], both[:, 1:]

    @rows_as("_on")
    def fit_statistics(self, X: Any, **rows: Any) -> FitStatistics:
        """Return the criteria, separation of the classes, and tests of fit against the saturated table.

        Parameters
        ----------
        X, {rows}
            The rows of the fit.

        Returns
        -------
        FitStatistics
            ``print`` shows a table; ``to_frame()`` makes a data frame. A model that is not identified is warned of.
        """
        value, n, entropy = self._totals(X, **rows)
        seen, log_density, q = self._seen(X, **rows)
        p = self.n_parameters_
        told: dict[str, Any] = {**criteria(-2 * value, n, p, entropy), **entropy_measures(q, seen.weights, entropy)}
        known = self.populations_
        sizes = (self.items_ if known is None else known.items).table_sizes
        if sizes is not None and all(rows.get(name) is None for name in ("groups", "gating", "component_labels")):
            blocks, population = self.items_.blocks, np.zeros(len(log_density))
            if known is None:
                codes = np.concatenate(seen.columns[: len(blocks)], axis=1)
            else:
                blocks, population = known.items.blocks, seen.columns[-1]
                codes = known.of_columns(seen.columns)[:, [j for block in blocks for j in block.columns]]
            told |= tests_of_fit(codes, seen.weights, sizes, log_density, p, population)
        return warned(FitStatistics(log_likelihood=value, n_rows=n, n_parameters=p, **told))

    @rows_as("_on")
    def class_profile(self, X: Any = None, *, level: float = 0.95, **rows: Any) -> ClassProfile:
        """Return what each class answers: probabilities of levels, means and rates; of given rows with intervals.

        Parameters
        ----------
        X, {rows}
            The rows of the fit; without X there are no intervals.
        level : float, default=0.95

        Returns
        -------
        ClassProfile
            ``estimates``, ``low``, ``high``; ``to_frame()``. ``mj.plot.class_profile`` draws it.
        """
        check_is_fitted(self)
        return profile_of(self, {} if X is None else self.confidence_intervals(X, level=level, **rows))

    @rows_as("_on")
    def standard_errors(self, X: Any, *, method: str = "auto", n_resamples: int = 200, **rows: Any) -> dict[str, Array]:
        """Return the standard errors of all estimates.

        Parameters
        ----------
        X, {rows}
            The rows of the fit.
        method : {"auto", "information", "robust", "bootstrap"}, default="auto"
            By the observed information; by the sandwich, which holds where the model is not true, and is the default
            with `sampling_weights`; or by the standard deviation of the estimates over tables of rows drawn with
            replacement.
        n_resamples : int, default=200
            Tables of the bootstrap.

        Returns
        -------
        dict of ndarray
            By the name of the estimate, in its shape; NaN where the rows do not determine it.
        """
        check_choice("method", method, ["auto", "information", "robust", "bootstrap"])
        if method == "auto":
            return self._errors(X, **rows).errors
        if method == "information":
            return super()._errors(X, **rows).errors
        if method == "robust":
            return self._of_determined(*robust_errors(self, X, rows)).errors
        return bootstrapped(self, X, n_resamples, rows)

    def _errors(self, X: Any, **rows: Any) -> Errors:
        if not self.sampling_weights:
            return super()._errors(X, **rows)
        return self._of_determined(*robust_errors(self, X, rows))

    def _matrices(self) -> list[Matrices]:
        own = ((at, block) for at, block in enumerate(self.items_.blocks) if isinstance(block, CorrelatedItems))
        return [Matrices(f"{block.prefix}_covariances", at, block.names) for at, block in own]

    @rows_as("_on")
    def classification(self, X: Any, **rows: Any) -> Classification:
        """Return the certainty of the assignment of rows to classes.

        Parameters
        ----------
        X, {rows}
            The rows of the fit.

        Returns
        -------
        Classification
            ``assigned``, ``average_posteriors`` and ``error``.
        """
        seen, _, q = self._seen(X, **rows)
        return classification(q, seen.weights)

    @rows_as("_on")
    def bivariate_residuals(self, X: Any, **rows: Any) -> Any:
        """Return bivariate residuals: the dependence of pairs of items that the classes do not explain.

        Of two categorical items, Pearson's statistic of their two-way table against the classes', over rows that have
        both; of two numbers or counts, rows times their squared correlation within classes; of a number and a
        categorical item, rows times the share of its variance within classes that the levels explain. Divided by its
        degrees of freedom, a residual well above 4 indicates that the pair is not independent within classes. Pairs
        that the model takes for correlated are left out.

        Parameters
        ----------
        X, {rows}
            The rows of the fit.

        Returns
        -------
        data frame
            A row for each pair: ``first``, ``second``, ``statistic``, ``df``, ``residual`` and ``p_value``.
        """
        seen, _, q = self._seen(X, **rows)
        cells = cells_of(self, seen.columns)
        modelled = {pair for _, columns in self.items_.correlated for pair in combinations(sorted(columns), 2)}
        return bivariate_residuals(
            self.items_.names, cells, q, seen.weights / seen.row_weight, self._priors(seen), modelled
        )

    # Covariates and outcomes, after the classes

    def covariate_effects(
        self,
        X: Any,
        covariates: Any,
        sample_weight: Any = None,
        *,
        method: Method | None = None,
        assignment: str = "proportional",
        component_labels: Any = None,
    ) -> CovariateEffects:
        """Return how covariates change the odds of the classes, per unit of a covariate, with intervals.

        Of a fit with ``gating``, in one step: the effects that it has estimated together with the classes. Of a fit
        without, in several: the classes stay as they are, and errors account for their having been estimated.

        Parameters
        ----------
        X, sample_weight
            The rows of the fit.
        covariates : array-like of shape (n_samples, n_covariates), or data frame
            Numbers or text; those of the fit, where it has gating. The first level of text is what the others are told
            against. Rows that lack some are left out of this step, as `missing` says, and count among the items.
        method : {"one-step", "ml", "bch", "two-step", "naive"}, optional
            By default "one-step" where the fit has gating, else "ml": three steps with the errors of assignment
            accounted for, by maximum likelihood or, "bch", by weights [1]_ [2]_; two steps, with the densities of the
            items held fixed; or as if assignments were true, which is biased.
        assignment : {"proportional", "modal"}, default="proportional"
            Of rows to classes in three steps.
        component_labels : array-like of shape (n_samples,), optional
            Those of the fit, where it had some.

        Returns
        -------
        CovariateEffects
            ``coef``, ``standard_errors``, ``tests()``; ``to_frame()`` with odds ratios and intervals.

        Warns
        -----
        UserWarning
            If the classes lie too near each other for estimates in steps.
        ConvergenceWarning
            If covariates separate the classes, so that coefficients run to infinity.

        References
        ----------
        .. [1] J. K. Vermunt, "Latent class modeling with covariates: two improved three-step approaches", Political
           Analysis 18, 2010.
        .. [2] A. Bolck, M. Croon, J. Hagenaars, "Estimating latent structure models with categorical variables:
           one-step versus three-step estimators", Political Analysis 12, 2004.
        """
        check_is_fitted(self)
        return covariate_effects(self, X, covariates, sample_weight, method, assignment, component_labels)

    def distal_outcome(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        method: Method = "bch",
        assignment: str = "modal",
        kind: str = "auto",
    ) -> DistalOutcome:
        """Compare an outcome between the classes after they are found.

        Parameters
        ----------
        X, sample_weight
            The rows of the fit, which has neither gating nor groups nor known classes.
        y : array-like of shape (n_samples,)
            Numbers, whose means are compared, or text, or 0 and 1, whose shares are. Rows without one are left out of
            this step, as `missing` says, and count among the items.
        method : {"bch", "ml", "two-step", "naive"}, default="bch"
            As for `covariate_effects`; "ml" and "two-step" use the distribution of the outcome within a class; "bch"
            warns where its weights, which may be negative, put an estimate beyond all values that there are.
        assignment : {"modal", "proportional"}, default="modal"
        kind : {"auto", "normal", "count", "categorical"}, default="auto"
            What the outcome is: by default 0 and 1 and text are categorical, other numbers normal; counts are Poisson.

        Returns
        -------
        DistalOutcome
            ``estimates``, ``standard_errors``, ``test()`` of equality between all classes, ``differences()`` of each
            pair; ``to_frame()``.
        """
        check_is_fitted(self)
        return distal_outcome(self, X, y, sample_weight, method, assignment, kind)

    def _priors(self, seen: Rows) -> Array:
        """Return the shares of the classes of rows before their items are seen, (rows, classes)."""
        law, own = self._law_of_fit(), seen.columns[len(self.items_.blocks) :]
        if self.is_grouped_ or self.is_labelled_ or not own:
            return np.broadcast_to(self.weights_, (len(seen.weights), len(self.weights_)))
        return np.asarray(np.exp(law.log_prior(self._theta().law, Block(0, own))[0]).T)

    def _summary(self) -> Summary:
        found = mixture_summary(self, scales=self.items_.scales(self))
        told = [*self.left_out_, *self.items_.remarks, self._unidentified()]
        return replace(found, look_out=[*found.look_out, *filter(None, told)])

    def _unidentified(self) -> str:
        """Return why the parameters are not identified, where there are more than the table has free cells."""
        sizes = (self.items_ if self.populations_ is None else self.populations_.items).table_sizes
        if sizes is None or "gating_coef" in self.estimate_names_:
            return ""
        tables = 1 if self.populations_ is None else len(self.populations_.levels)
        free_cells = tables * (float(np.prod(np.asarray(sizes, dtype=np.float64))) - 1)
        return too_many_parameters(self.n_parameters_, free_cells + 1)

    def _shown(self, X: Array) -> NDArray[Any]:
        return self.items_.decoded(X)

    def _entry_names(self, name: str) -> list[str] | None:
        if name == "population_shares" and self.populations_ is not None:
            return [f"{self.populations_.name}={level}" for level in self.populations_.levels]
        return self.items_.entry_names(name) or super()._entry_names(name)
