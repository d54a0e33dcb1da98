"""What the estimators of this folder have in common: from rows to fitted attributes, and from rows to inferences."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from majorant._validation import (
    check_choice,
    check_integer,
    check_positive,
    check_real,
    check_runs,
    check_sample_weight,
    levels_to_user,
)
from majorant.data.chunks import effective_threads
from majorant.engine.trace import Trace
from majorant.models.base import LatentVariableModel
from majorant.models.harmonium.annotation import AnnotationMixin
from majorant.models.harmonium.certificate import UNLESS_MISSED, GlobalCertificate, is_large, optimality
from majorant.models.harmonium.inference import FittedHarmonium, in_columns
from majorant.models.harmonium.layout import Layout, Parameters, Supervision
from majorant.models.harmonium.objective import Penalised, contrastive
from majorant.models.harmonium.pseudo_likelihood import PseudoLikelihood
from majorant.models.harmonium.retrieval import RetrievalMixin
from majorant.models.harmonium.search import FOLDS, Annotation, Found, Search
from majorant.models.harmonium.summary import harmonium_summary
from majorant.models.harmonium.tables import Distinct, Table, distinct_rows, n_rows, read_tables
from majorant.models.harmonium.variables import (
    FittedView,
    centre_of,
    fit_views,
    known_variances,
    layout_of,
    parts_of,
    patterns_of,
    rows_of_views,
    scale_of,
)
from majorant.models.harmonium.views import View, check_views
from majorant.results.certificate import Certificate
from majorant.search import SearchReport
from majorant.summary import Summary

Array = NDArray[np.float64]

OBJECTIVES = {"pseudo-likelihood": "log-loss", "cd": "contrastive divergence"}
"""What is minimised, by method."""
INITS = ("svd", "random")


class HarmoniumBase(
    AnnotationMixin,
    RetrievalMixin,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    LatentVariableModel,
):
    """What harmoniums share, with or without a target."""

    components_: Array
    intercept_: Array
    noise_variance_: Array
    label_components_: Array
    label_intercept_: Array
    label_shares_: Array
    views_: tuple[FittedView, ...]
    supervision_: Supervision
    named_views_: bool
    n_components_: int
    l2_: float
    method_: str

    # Fitting

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.views is not None
        tags.input_tags.allow_nan = self.views is not None
        return tags

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, low=1)
        check_choice("method", self.method, tuple(OBJECTIVES))
        check_integer("cd_sweeps", self.cd_sweeps, low=1)
        if isinstance(self.l2, str):
            check_choice("l2", self.l2, ["auto"], or_else=" or a positive number")
        else:
            check_real("l2", check_positive("l2", self.l2), low=1e-12, high=1e12)
        if check_integer("n_folds", self.n_folds, low=1) > FOLDS:
            raise ValueError(
                f"n_folds, how many of {FOLDS} folds are held out, must be 1 to {FOLDS}; got {self.n_folds}"
            )
        if not isinstance(self.grow, bool | np.bool_):
            raise TypeError(f"grow must be True or False; got {self.grow!r}")
        if self.grow and self.method == "cd":
            raise ValueError(
                "grow=True adds what the certificate finds, and method='cd' has none: give grow=False and as many "
                "n_components as are wanted, or method='pseudo-likelihood'"
            )
        check_choice("init", self.init, INITS)
        check_runs(self)
        effective_threads(self.n_jobs)

    def _read(self, X: Any, *, reset: bool, but: str | None = None) -> tuple[dict[str, View], dict[str, Table]]:
        """The views by name, and their tables: after a fit, views as the fit had them, `but` for one."""
        self._refuse_chunks(X)
        if reset:
            views = check_views(self.views)
            self.named_views_ = self.views is not None
        else:
            check_is_fitted(self)
            views = {view.name: view.given for view in self.views_}
        tables = read_tables(self, X, views, reset=reset, but=but)
        if reset and n_rows(tables) < 2:
            raise ValueError("n_samples=1: there is nothing to tell apart in one row; give at least two")
        return views, tables

    def _fit(
        self,
        views: dict[str, View],
        tables: dict[str, Table],
        y: NDArray[Any] | None,
        sample_weight: Any,
        supervision: Supervision,
        select_by: str | None = None,
    ) -> None:
        """Fitted attributes from checked rows."""
        n = n_rows(tables)
        weights = check_sample_weight(sample_weight, n)
        random = np.random.default_rng(int(check_random_state(self.random_state).randint(2**31)))
        # The sums of BLAS depend on how many threads it may use.
        with threadpool_limits(limits=1, user_api="blas"):
            rows = distinct_rows(tables, weights, y)
            tables.clear()  # what follows needs no more than the distinct rows
            self.views_, self.supervision_ = fit_views(views, rows), supervision
            self.__dict__.pop("label_shares_", None)
            if supervision.n_labels:
                assert rows.y is not None
                counts = np.bincount(rows.y, weights=rows.weights, minlength=supervision.n_labels)
                self.label_shares_ = np.asarray(counts / rows.weights.sum())
            problem, positions = self._problem(rows, reuse=True)
            del rows
            layout = problem.layout
            if self.method == "cd":
                problem = contrastive(problem, self.cd_sweeps)
            search = Search(
                problem,
                scale_of(self.views_, self._label_shares, layout),
                known_variances(self.views_),
                positions,
                min(self.n_components, max(layout.n_rows, 1)),
                self.l2,
                supervision.compared,
                bool(self.grow),
                self.init,
                1 if isinstance(self.n_init, str) else self.n_init,
                self.max_iter,
                self.tol,
                self.verbose,
                random,
                None if select_by is None else Annotation(rows_of_views(self.views_)[select_by]),
                self.n_folds,
            )
            found = search.find()
            if select_by is not None:
                told = {select_by: found.view_penalty}
                self.views_ = tuple(replace(view, penalty=told.get(view.name, 1.0)) for view in self.views_)
            if found.loss_weight is not None:
                self.supervision_ = replace(supervision, weight=found.loss_weight)
        self._keep(found, layout, search.n_components)
        self.n_samples_ = n if weights is None else int(np.sum(weights > 0))

    @property
    def _label_shares(self) -> Array:
        """Of the levels of a label that is modelled; empty where there is none."""
        return self.label_shares_ if self.supervision_.n_labels else np.empty(0)

    def _problem(self, rows: Distinct, *, reuse: bool) -> tuple[PseudoLikelihood, tuple[NDArray[np.intp], ...]]:
        """Distinct rows as the pseudo-likelihood takes them, and where each part's rows are among them."""
        supervision = self.supervision_
        layout = layout_of(self.views_, supervision)
        patterns = patterns_of(rows.tables, self.views_, layout, reuse=reuse)
        parts = parts_of(patterns, rows, layout, n_jobs=self.n_jobs)
        centre = centre_of(self.views_, self._label_shares)
        loss = supervision.loss
        return PseudoLikelihood(layout, centre, parts, loss, supervision.weight), tuple(p.rows for p in patterns)

    def _keep(self, found: Found, layout: Layout, n_components: int) -> None:
        at = found.parameters
        n = layout.n_variables - self.supervision_.n_labels
        self.components_ = np.ascontiguousarray(at.weights[:n].T)
        self.intercept_, self.noise_variance_ = at.intercept[:n].copy(), at.variance
        for name in ("label_components_", "label_intercept_"):
            self.__dict__.pop(name, None)
        if layout.n_rows > n:
            self.label_components_, self.label_intercept_ = at.weights[n:].copy(), at.intercept[n:].copy()
        size = np.abs(at.weights).max(initial=0.0)
        self.method_ = self.method
        self.n_components_ = at.n_components
        self.rank_ = at.n_components if size > 0 else 0
        self.l2_, self.largest_l2_ = found.l2, found.largest_l2
        self.l2_path_ = np.array([[row["l2"], row["held_out"]] for row in found.path]).reshape(-1, 2)
        self.penalty_path_ = np.array(found.penalty_path).reshape(-1, 2)
        self.objective_ = found.objective
        for name in ("readouts_", "readout_l2_"):  # of the fit before
            self.__dict__.pop(name, None)
        self.n_iter_ = max(len(found.values) - 1, 1)  # to find that a start is the optimum takes one
        optimal = found.optimality
        self.certificate_eigenvalue_ = None if optimal is None else optimal.eigenvalue
        self.certificate_stationarity_ = None if optimal is None else optimal.stationarity
        self.n_allowed_ = n_components + found.n_grown
        self.search_ = SearchReport(
            found.records,
            OBJECTIVES[self.method_],
            "min",
            proved_bound=optimal.lower_bound if optimal is not None and self.certificate_.is_global else None,
            note=self.certificate_.sentence,
            bound_on="harmonium with this penalty",
        )
        self.trace_ = Trace([{"objective": float(v), "exploring": 0.0} for v in found.values])
        if not all(r.converged for r in found.records):
            warnings.warn(
                f"L-BFGS stopped at max_iter={self.max_iter} before it had converged: raise it",
                ConvergenceWarning,
                stacklevel=levels_to_user(),
            )

    # What was found

    @property
    def certificate_(self) -> GlobalCertificate:
        """Whether the fit is a global optimum: smallest eigenvalue, gradient left, and the verdict as a sentence."""
        check_is_fitted(self)
        return GlobalCertificate(
            self.certificate_eigenvalue_,
            self.certificate_stationarity_,
            self.rank_,
            self.n_allowed_,
            self.method_,
            is_large(self.components_.shape[1] + len(getattr(self, "label_components_", ()))),
        )

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _fitted(self) -> FittedHarmonium:
        weights, intercept = self.components_.T, self.intercept_
        if hasattr(self, "label_components_"):
            weights = np.concatenate([weights, self.label_components_])
            intercept = np.concatenate([intercept, self.label_intercept_])
        parameters = Parameters(weights, intercept, np.log(self.noise_variance_))
        centre = centre_of(self.views_, self._label_shares)
        return FittedHarmonium(self.views_, layout_of(self.views_, self.supervision_), centre, parameters)

    def loadings(self, view: str) -> Array:
        """The weights of a view's columns: how each speaks for each component.

        Parameters
        ----------
        view : str
            Its name.

        Returns
        -------
        ndarray of shape (n_columns, n_components)
            Of standardised columns of a Gaussian view (before whitening), of bits, of the words of a chain, or of all
            levels of its categories in order; zero where a column is constant.
        """
        check_is_fitted(self)
        fitted = self._view(view)
        at = rows_of_views(self.views_)[view]
        weights = self.components_.T[at][: len(fitted.kept)]  # of a structured view without its couplings
        width = len(fitted.mean)
        out = np.zeros((width, weights.shape[1]))
        out[fitted.kept] = weights if fitted.whitener is None else fitted.whitener @ weights
        return out

    def coupling_loadings(self, view: str) -> Array:
        """The weights of a structured view's couplings: how pairs that are on together speak for each component.

        Parameters
        ----------
        view : str
            The name of a chain, or of bits with edges.

        Returns
        -------
        ndarray of shape (n_couplings, n_components)
            Of words in neighbouring paragraphs, one a word; or of the edges of bits, each pair ascending and all in
            order. Zero where couplings do not depend on the latents, or an end is constant.

        Raises
        ------
        ValueError
            If the view has no couplings.
        """
        check_is_fitted(self)
        fitted = self._view(view)
        if fitted.structure is None:
            raise ValueError(f"view {view!r} has no couplings: it is no chain, and has no edges")
        weights = self.components_.T[rows_of_views(self.views_)[view]][fitted.structure.n_nodes :]
        couplings = fitted.couplings
        out = np.zeros((len(couplings), weights.shape[1]))
        out[np.isin(couplings, fitted.kept).all(axis=1)] = weights
        return out

    def _view(self, name: str) -> FittedView:
        found = {view.name: view for view in self.views_}
        check_choice("view", name, list(found))
        return found[name]

    # Inference

    def transform(self, X: Any) -> Array:
        """The expected latents of each row: its representation.

        Rows may lack views, whole. A missing Gaussian view is integrated out exactly; missing bits and categories are
        found by collapsed mean field.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or dict of arrays
            A dictionary may lack views, for all rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        return self._fitted().infer(self._read(X, reset=False)[1], n_jobs=self.n_jobs)[0]

    def sample(self, n_samples: int = 1, *, n_sweeps: int = 200, random_state: Any = None) -> Any:
        """Rows drawn from the model, by Gibbs sampling between latents and views: for checking the model.

        Parameters
        ----------
        n_samples : int, default=1
        n_sweeps : int, default=200
            Steps of each row's chain.
        random_state : int, RandomState instance or None

        Returns
        -------
        ndarray of shape (n_samples, n_features), or dict of arrays
            By view, where the model has named views. Bits are CSR, categories their levels, chains arrays of shape
            (n_samples, n_steps, n_words).
        """
        check_is_fitted(self)
        check_integer("n_samples", n_samples, low=1)
        check_integer("n_sweeps", n_sweeps, low=1)
        random = np.random.default_rng(int(check_random_state(random_state).randint(2**31)))
        model = self._fitted()
        with threadpool_limits(limits=1, user_api="blas"):
            drawn = model.sample(n_samples, n_sweeps, random)
        found = {view.name: _in_units(view, drawn[view.name]) for view in self.views_}
        return found if self.named_views_ else next(iter(found.values()))

    def certify(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Certificate:
        """How far the fit can be from the best harmonium with its penalty, of any number of components: a proved bound.

        Of more than 2000 variables the bound rests on an eigenvalue that Lanczos' method finds from a random start: it
        is proved unless the method missed the smallest one, and the sentence says so.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or dict of arrays
            Usually the rows of the fit.
        y : array-like of shape (n_samples,), optional
            Where the model has a target.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        Certificate
            ``bound``, ``difference`` in nats a row, ``proved`` and, in words, ``sentence``.

        Raises
        ------
        ValueError
            If rows lack a Gaussian view, or the fit is one of ``method="cd"``: the problem is then not convex. If y is
            not that of the rows, or has labels that the fit had not.
        """
        check_is_fitted(self)
        if self.method_ == "cd":
            raise ValueError("contrastive divergence is not convex, and no bound is known: fit with the default method")
        tables = self._read(X, reset=False)[1]
        weights = check_sample_weight(sample_weight, n_rows(tables))
        with threadpool_limits(limits=1, user_api="blas"):
            rows = distinct_rows(tables, weights, self._target(y, tables, weights))
            problem, _ = self._problem(rows, reuse=False)
            scale = scale_of(self.views_, self._label_shares, problem.layout)
            cost = Penalised(problem, scale, self.l2_, known_variances(self.views_))
            fitted = self._fitted().parameters
            found = optimality(cost, fitted)
            if found is None:
                raise ValueError(
                    "rows of X lack a Gaussian view: the problem is then not convex, and no bound is known"
                )
            return Certificate(
                found.lower_bound,
                cost.value(fitted),
                "tangent of a function that is convex in J = W W'",
                OBJECTIVES[self.method_],
                "min",
                solution="harmonium with this penalty",
                unit="nats",
                unless=UNLESS_MISSED if is_large(problem.layout.n_rows) else "",
            )

    def _target(self, y: Any, tables: dict[str, Table], weights: Array | None) -> NDArray[Any] | None:
        """y as fits take it, checked."""
        return None

    def _summary(self) -> Summary:
        return harmonium_summary(self)


def _in_units(view: FittedView, drawn: Array) -> Any:
    """Drawn variables as the view's columns."""
    if view.kind == "gaussian":
        return view.restored(drawn)
    if view.structure is not None:
        cells = in_columns(view, drawn, np.round(view.mean))
        return cells if view.kind == "chain" else sparse.csr_matrix(cells)
    if view.kind == "bernoulli":
        out = np.tile(np.round(view.mean), (len(drawn), 1))
        out[:, view.kept] = drawn
        return sparse.csr_matrix(out)
    columns, start = [], 0
    for levels in view.levels:
        if len(levels) == 1:
            columns.append(np.repeat(levels, len(drawn)))
        else:
            columns.append(levels[drawn[:, start : start + len(levels)].argmax(axis=1)])
            start += len(levels)
    return np.column_stack(columns)
