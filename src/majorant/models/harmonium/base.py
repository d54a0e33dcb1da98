"""Methods of all harmoniums: fit, transform, annotate, retrieve, sample and certify."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from majorant._validation import (
    check_auto,
    check_choice,
    check_count,
    check_integer,
    check_runs,
    check_sample_weight,
    levels_to_user,
    seed_of,
)
from majorant.data.chunks import effective_threads
from majorant.engine.threads import one_thread
from majorant.engine.trace import Trace
from majorant.models.base import LatentVariableModel
from majorant.models.harmonium.certificate import GlobalCertificate, certified, is_large
from majorant.models.harmonium.inference import (
    Annotation,
    FittedHarmonium,
    check_proper,
    linked_to,
    tell_unlinked,
    unlinked_views,
    warn_of_comparison,
    warn_of_rows,
)
from majorant.models.harmonium.layout import Layout, Supervision, known_variances, penalties, rows_of_views, scale_of
from majorant.models.harmonium.objective import Penalised, contrastive
from majorant.models.harmonium.pseudo_likelihood import PseudoLikelihood, problem_of
from majorant.models.harmonium.search import FOLDS, Found, Search
from majorant.models.harmonium.summary import harmonium_summary
from majorant.models.harmonium.tables import Distinct, Table, distinct_rows, n_rows, read_tables
from majorant.models.harmonium.variables import FittedView, fit_views
from majorant.models.harmonium.views import View, check_flag, check_views
from majorant.models.unlinked import Groups
from majorant.results.certificate import Certificate
from majorant.search import SearchReport
from majorant.solvers.logistic import logistic_probabilities
from majorant.solvers.similarity import most_similar
from majorant.summary import Summary

Array = NDArray[np.float64]

OBJECTIVES = {"pseudo-likelihood": "log-loss", "cd": "contrastive divergence"}
"""Names of the objectives, by method."""


class HarmoniumBase(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    LatentVariableModel,
):
    """A harmonium, with or without a target."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.views is not None
        tags.input_tags.allow_nan = self.views is not None
        return tags

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, low=1)
        check_choice("method", self.method, tuple(OBJECTIVES))
        check_integer("cd_sweeps", self.cd_sweeps, low=1)
        penalties(self.l2)
        if check_integer("n_folds", self.n_folds, low=1) > FOLDS:
            raise ValueError(f"n_folds, the number of folds held out, must be 1 to {FOLDS}; got {self.n_folds}")
        check_flag("grow", self.grow)
        if self.grow and self.method == "cd":
            raise ValueError(
                "grow=True adds what the certificate finds, and method='cd' has none: give grow=False and as many "
                "n_components as are wanted, or method='pseudo-likelihood'"
            )
        check_choice("init", self.init, ("svd", "random"))
        check_runs(self)
        effective_threads(self.n_jobs)

    def _read(self, X: Any, *, reset: bool, but: str | None = None) -> tuple[dict[str, View], dict[str, Table]]:
        """Read views and their tables, except that of `but`; if `reset` is false, with the views of the fit."""
        self._refuse_chunks(X)
        if reset:
            views = check_views(self.views)
            self.named_views_ = self.views is not None
        else:
            check_is_fitted(self)
            views = {view.name: view.given for view in self.views_}
        tables = read_tables(self, X, views, reset=reset, but=but)
        warn_of_rows(tables, () if reset else self.certificate_.unlinked)
        if reset and n_rows(tables) < 2:
            raise ValueError("n_samples=1: a representation needs at least two rows")
        return views, tables

    def _fit(
        self,
        views: dict[str, View],
        tables: dict[str, Table],
        y: NDArray[Any] | None = None,
        *,
        sample_weight: Any,
        supervision: Supervision,
        select_by: str | None = None,
    ) -> Found:
        """Set the fitted attributes from checked rows; return what the search found."""
        n, random = n_rows(tables), np.random.default_rng(seed_of(self.random_state))
        weights = check_sample_weight(sample_weight, n)
        # The sums of BLAS depend on how many threads it may use.
        with one_thread():
            rows = distinct_rows(tables, weights, y)
            tables.clear()  # what follows needs no more than the distinct rows
            for name in ("label_shares_", "label_components_", "label_intercept_", "readouts_", "readout_l2_"):
                self.__dict__.pop(name, None)  # of the fit before
            self.views_, self.supervision_ = fit_views(views, rows), supervision
            unlinked = unlinked_views(rows.tables, by_target=y is not None)
            if supervision.n_labels:
                assert rows.y is not None
                counts = np.bincount(rows.y, weights=rows.weights, minlength=supervision.n_labels)
                self.label_shares_ = np.asarray(counts / rows.weights.sum())
            problem, positions = self._problem(rows, reuse=True)
            del rows
            layout = problem.layout
            search = Search(
                problem=contrastive(problem, self.cd_sweeps) if self.method == "cd" else problem,
                scale=scale_of(self.views_, self._label_shares, layout, supervision.penalty),
                variance=known_variances(self.views_),
                positions=positions,
                n_components=min(self.n_components, max(layout.n_rows, 1)),
                l2=penalties(self.l2)[0],
                loss_weights=supervision.compared,
                grow=bool(self.grow),
                init=self.init,
                n_init=1 if isinstance(self.n_init, str) else self.n_init,
                max_iter=self.max_iter,
                tol=self.tol,
                verbose=self.verbose,
                random=random,
                annotation=None if select_by is None else Annotation(rows_of_views(self.views_)[select_by]),
                n_folds=self.n_folds,
            )
            found = search.find()
        self.views_ = tuple(replace(v, penalty=found.view_penalty) if v.name == select_by else v for v in self.views_)
        if found.loss_weight is not None:
            self.supervision_ = replace(supervision, weight=found.loss_weight)
        self._keep(found, layout, search.n_components, unlinked)
        self.n_samples_ = n if weights is None else int(np.sum(weights > 0))
        return found

    @property
    def _label_shares(self) -> Array:
        """Frequencies of the levels of a label that is modelled; empty if there is none."""
        return self.label_shares_ if self.supervision_.n_labels else np.empty(0)

    def _problem(self, rows: Distinct, *, reuse: bool) -> tuple[PseudoLikelihood, tuple[NDArray[np.intp], ...]]:
        return problem_of(rows, self.views_, self.supervision_, self._label_shares, n_jobs=self.n_jobs, reuse=reuse)

    def _keep(self, found: Found, layout: Layout, n_components: int, unlinked: Groups) -> None:
        """Set the fitted attributes from what the search found."""
        at, n = found.parameters, layout.n_variables - self.supervision_.n_labels
        self.components_ = np.ascontiguousarray(at.weights[:n].T)
        self.intercept_, self.noise_variance_ = at.intercept[:n].copy(), at.variance
        if layout.n_rows > n:
            self.label_components_, self.label_intercept_ = at.weights[n:].copy(), at.intercept[n:].copy()
        self.method_, self.n_components_ = self.method, at.n_components
        self.rank_ = at.n_components if at.weights.any() else 0
        self.l2_, self.largest_l2_ = found.l2, found.largest_l2
        self.l2_path_ = np.array([[row["l2"], row["held_out"]] for row in found.path]).reshape(-1, 2)
        self.penalty_path_ = np.array(found.penalty_path).reshape(-1, 2)
        self.objective_ = found.objective
        self.n_iter_ = max(len(found.values) - 1, 1)  # to find that a start is the optimum takes one
        self.n_allowed_, optimal = n_components + found.n_grown, found.optimality
        eigenvalue, stationarity = (None, None) if optimal is None else (optimal.eigenvalue, optimal.stationarity)
        lanczos, by_target = is_large(layout.n_rows), layout.n_rows > n
        self.certificate_ = GlobalCertificate(
            eigenvalue, stationarity, self.rank_, self.n_allowed_, self.method_, lanczos, unlinked, by_target
        )
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
            said = f"L-BFGS stopped at max_iter={self.max_iter} before it had converged: raise it"
            warnings.warn(said, ConvergenceWarning, stacklevel=levels_to_user())

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _fitted(self) -> FittedHarmonium:
        check_is_fitted(self)
        return FittedHarmonium.of(self)

    check_estimates = check_proper

    def _view(self, name: str) -> FittedView:
        check_is_fitted(self)
        found = {view.name: view for view in self.views_}
        return found[check_choice("view", name, list(found))]

    def _summary(self) -> Summary:
        return harmonium_summary(self)

    def loadings(self, view: str) -> Array:
        """Return the weights of the columns of a view in each component.

        Parameters
        ----------
        view : str

        Returns
        -------
        ndarray of shape (n_columns, n_components)
            Of standardised columns of a Gaussian view (before whitening), of bits, of the words of a chain, or of all
            levels of categories in order; zero for constant columns.
        """
        return self._fitted().loadings(self._view(view))

    def coupling_loadings(self, view: str) -> Array:
        """Return the weights of the couplings of a structured view in each component.

        Parameters
        ----------
        view : str
            Name of a chain, or of a view of bits with edges.

        Returns
        -------
        ndarray of shape (n_couplings, n_components)
            Of each word in neighbouring paragraphs; or of the edges of bits, each pair ascending, in sorted order. Zero
            where couplings do not depend on the latents, or an end is constant.

        Raises
        ------
        ValueError
            If the view has no couplings.
        """
        fitted = self._view(view)
        if fitted.structure is None:
            raise ValueError(f"view {view!r} has no couplings: it is no chain, and has no edges")
        return self._fitted().coupling_loadings(fitted)

    def transform(self, X: Any) -> Array:
        """Compute the expected latents of rows, their representation.

        Rows may lack whole views: Gaussian ones are integrated out exactly, others inferred by collapsed mean field.
        Rows of views that no row of the fit linked cannot be compared, which is warned of.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or dict of arrays
            A dictionary may lack views, for all rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        return self._represented(X)[0]

    def _represented(self, *of: Any) -> list[Array]:
        """Compute the latents of rows that are to be compared."""
        model, read = self._fitted(), [self._read(X, reset=False)[1] for X in of]
        warn_of_comparison(read, model.unlinked)
        return [model.infer(tables, n_jobs=self.n_jobs)[0] for tables in read]

    def annotate(
        self,
        X: Any,
        view: str,
        *,
        method: str = "mean-field",
        calibrated: bool = False,
        n_sweeps: int = 200,
        random_state: Any = None,
    ) -> Array:
        """Predict one view from the others: expectations under p(view | the rest).

        Probabilities of many correlated bits that are missing together are too close to 0 and 1: see `calibrate`.
        Views that no row of the fit linked with `view`, not even by others, say nothing of it and are left out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or dict of arrays
            The view itself is ignored; a dictionary or a data frame may lack it.
        view : str
        method : {"mean-field", "gibbs"}, default="mean-field"
            Inference of missing bits and categories. A Gaussian view that alone is missing is exact.
        calibrated : bool, default=False
            Whether bits are predicted by the regressions of `calibrate`.
        n_sweeps : int, default=200
            Sweeps of Gibbs sampling.
        random_state : int, RandomState instance or None
            Seed of Gibbs sampling.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            Expected values of a Gaussian view in its own units, probabilities of ones, or probabilities of the levels
            of all columns side by side. For a chain, probabilities of the cells of a document of the median number of
            paragraphs, shape (n_samples, n_steps, n_words) where X is a dictionary.

        Raises
        ------
        ValueError
            If there is no such view, or no other.
        """
        fitted = self._view(view)
        if len(self.views_) == 1:
            raise ValueError(f"view {view!r} is the only one: there is no rest to annotate it from")
        check_choice("method", method, ("mean-field", "gibbs"))
        check_integer("n_sweeps", n_sweeps, low=1)
        tables, model = self._read(X, reset=False, but=view)[1], self._fitted()
        tables = linked_to(view, tables, model.unlinked)
        random = np.random.default_rng(seed_of(random_state)) if method == "gibbs" else None
        n_jobs = None if random is not None else self.n_jobs
        latents, expected = model.infer(tables, n_jobs=n_jobs, sweeps=n_sweeps, random=random)
        if calibrated:
            readouts: dict[str, Array] = getattr(self, "readouts_", {})
            if view not in readouts:
                raise ValueError(f"view {view!r} is not calibrated: call calibrate(X) first (for bits without edges)")
            expected[:, rows_of_views(self.views_)[view]] = logistic_probabilities(latents, readouts[view])
        return np.asarray(model.completed(fitted, latents, expected))

    def calibrate(self, X: Any, *, l2: float | str = "auto", sample_weight: Any = None) -> Self:
        r"""Fit logistic regressions of the bits of each view on the latents given the other views.

        They minimise the mean log-loss of rows, summed over bits, plus :math:`\frac{\lambda}{2} |w|^2`, w the
        coefficients of standardised latents. The probabilities of ``annotate(X, view, calibrated=True)`` are then right
        on average even where the model is not. Call it after `fit`, usually with the same rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or dict of arrays
        l2 : "auto" or float, default="auto"
            :math:`\lambda`, the same for all bits of a view. "auto": the best of 1, 0.32, 0.1 and so on to 0.0001 by
            five-fold cross-validation over distinct rows, or by one fold of more than 2000; see ``readout_l2_``.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X has no view of bits or no other view, or no row with weight has the bits.
        """
        model, penalty = self._fitted(), check_auto("l2", l2)
        if len(self.views_) == 1:
            raise ValueError("there is one view: nothing to read it out from")
        tables = self._read(X, reset=False)[1]
        if not any(view.kind == "bernoulli" and view.name in tables for view in self.views_):
            raise ValueError("X has no view of bits: there is nothing to calibrate")
        if len(tables) == 1:
            raise ValueError(f"X holds only the view {next(iter(tables))!r}: give at least one other")
        weights = check_sample_weight(sample_weight, n_rows(tables))
        with one_thread():
            found = model.readouts(distinct_rows(tables, weights, None), penalty, n_jobs=self.n_jobs)
        self.readouts_ = {name: coefficients for name, (coefficients, _) in found.items()}
        self.readout_l2_ = {name: chosen for name, (_, chosen) in found.items()}
        return self

    def decode(self, H: Any, view: str) -> Array:
        """Compute the expectation of a view given latents, under p(view | h).

        Parameters
        ----------
        H : array-like of shape (n_samples, n_components)
            Latents, such as `transform` gives.
        view : str

        Returns
        -------
        ndarray
            As of `annotate`; cells of a chain by forward-backward, bits with edges by mean field.
        """
        fitted = self._view(view)
        H = check_array(H, dtype=np.float64, input_name="H")
        if H.shape[1] != self.n_components_:
            raise ValueError(f"H must have a column for each of {self.n_components_} components; got {H.shape[1]}")
        tell_unlinked(self.certificate_.unlinked, f"H must be of rows with views of the group of {view!r}")
        with one_thread():
            return np.asarray(self._fitted().decoded(fitted, H))

    def sample(self, n_samples: int = 1, *, n_sweeps: int = 200, random_state: Any = None) -> Any:
        """Draw rows from the model, by Gibbs sampling between latents and views: for checking the model.

        Parameters
        ----------
        n_samples : int, default=1
        n_sweeps : int, default=200
            Steps of each row's Markov chain.
        random_state : int, RandomState instance or None

        Returns
        -------
        ndarray of shape (n_samples, n_features), or dict of arrays
            By view, if views are named: bits as CSR, categories as levels, chains as (n_samples, n_steps, n_words).
        """
        model = self._fitted()
        check_count("n_samples", n_samples, width=self.n_features_in_)
        check_integer("n_sweeps", n_sweeps, low=1)
        tell_unlinked(self.certificate_.unlinked, "how they depend on each other in drawn rows means nothing")
        with one_thread():
            drawn = model.sample(n_samples, n_sweeps, np.random.default_rng(seed_of(random_state)))
        found = {view.name: view.sampled(drawn[view.name]) for view in self.views_}
        return found if self.named_views_ else next(iter(found.values()))

    def retrieve(self, queries: Any, gallery: Any, n: int | None = None) -> tuple[NDArray[np.intp], Array]:
        """Find the rows of a gallery whose representations are most like those of queries, by cosine similarity.

        Both may lack views, and need not have the same ones: texts are found for pictures and pictures for texts.

        Parameters
        ----------
        queries, gallery : array-like of shape (n_samples, n_features), or dict of arrays
            See `transform`.
        n : int, optional
            Number of rows for each query; by default ten, or all of a smaller gallery.

        Returns
        -------
        indices, similarities : ndarray of shape (n_queries, n)
            Rows of the gallery, the most similar first (ties, to 12 decimals, in the order of the gallery), and their
            similarities between -1 and 1; 0 where a representation is zero, as for a row that lacks every view.

        Raises
        ------
        ValueError
            If n is larger than the gallery.

        See Also
        --------
        majorant.metrics : Measures of such rankings.
        """
        if n is not None:
            check_integer("n", n, low=1)
        wanted, there = self._represented(queries, gallery)
        n = min(10, len(there)) if n is None else n
        if n > len(there):
            raise ValueError(f"n={n} rows are asked for, but the gallery has {len(there)}")
        return most_similar(wanted, there, n)

    def certify(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Certificate:
        """Bound how far the fit is from the best harmonium with its penalty, of any number of components.

        For more than 2000 variables it is proved unless Lanczos' method, from a random start, missed the smallest
        eigenvalue; the sentence says so.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or dict of arrays
            Usually the rows of the fit.
        y : array-like of shape (n_samples,), optional
            The target, where the model has one.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        Certificate
            ``bound``, ``difference`` from it per row, ``proved`` and, in words, ``sentence``.

        Raises
        ------
        ValueError
            If rows lack a Gaussian view, or the fit used ``method="cd"``: the problem is then not convex. If y cannot
            be used.
        """
        check_is_fitted(self)
        if self.method_ == "cd":
            raise ValueError("contrastive divergence is not convex, and no bound is known: fit with the default method")
        tables = self._read(X, reset=False)[1]
        weights = check_sample_weight(sample_weight, n_rows(tables))
        with one_thread():
            rows = distinct_rows(tables, weights, self._target(y, tables, weights))
            problem, _ = self._problem(rows, reuse=False)
            scale = scale_of(self.views_, self._label_shares, problem.layout, self.supervision_.penalty)
            cost = Penalised(problem, scale, self.l2_, known_variances(self.views_))
            return certified(cost, self._fitted().parameters)

    def _target(self, y: Any, tables: dict[str, Table], weights: Array | None) -> NDArray[Any] | None:
        """Check y and encode it as fits use it."""
        return None
