"""The k-means estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from majorant._order import ordered
from majorant._validation import (
    check_choice,
    check_enough_rows,
    check_real,
    check_sample_weight,
    warn_of_repeats,
)
from majorant.data.chunks import Chunks
from majorant.data.directions import unit_rows
from majorant.data.measure import square_unit, without_empty_columns
from majorant.data.rows import Rows, rows_in_memory, rows_streamed
from majorant.data.storage import StoredRows, stored_rows
from majorant.engine.policies import BoundPolicy
from majorant.models.base import LatentVariableModel
from majorant.models.kmeans.batches import add_batch, pass_of
from majorant.models.kmeans.certify import certificate
from majorant.models.kmeans.checks import check_settings, rows_of
from majorant.models.kmeans.nearest_rows import OBJECTIVES, FittedCentres, Metric
from majorant.models.kmeans.search import Search, cluster_weights
from majorant.models.kmeans.sized import assigned_within, check_sizes, rows_within, sized_search
from majorant.models.kmeans.summary import kmeans_summary
from majorant.registry import ModelCard, register
from majorant.results.certificate import Certificate
from majorant.search.effort import Effort
from majorant.search.record import SearchReport
from majorant.solvers.intervals import EXACT, JOINED
from majorant.starts.restarts import Best
from majorant.summary import Summary


@register(
    ModelCard(
        name="kmeans",
        title="k-means",
        question="Which rows lie together, around how many centres?",
        kind="clustering",
        size_parameter="n_clusters",
        part="cluster",
        objective_name="SSE",
        objective_title="sum of squared distances",
        objective_attribute="inertia_",
        estimates=("cluster_centers_",),
        shapes={"cluster_centers_": "kd"},
        objective_set_by=("metric", "size_min", "size_max"),
    )
)
class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, LatentVariableModel):  # type: ignore[misc]
    r"""k-means clustering that searches for the best optimum and records every start.

    Minimises the weighted sum of squared distances to the nearest centre,

    .. math:: F(C) = \sum_i w_i \min_z |x_i - c_z|^2.

    Takes the parameters of scikit-learn's ``KMeans``, each with its meaning. The fit is a function of the weighted
    empirical measure and of `random_state`: the order of the rows, and writing a row twice instead of weighting it, do
    not change it, nor does `n_jobs`, to the last bit.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    init : {"auto", "k-means++", "random", "forgy", "random-partition"}, array or callable, default="auto"
        Where a start begins. "k-means++": greedy seeds ("auto" is this); "random" or "forgy": distinct rows;
        "random-partition": a cluster for every row; an array (n_clusters, n_features) of centres; or
        ``init(X, n_clusters, random_state=...)`` that returns one.
    n_init : "auto" or int, default="auto"
        "auto" searches, or makes 10 runs of Lloyd's, 1 for an array of centres. A number is that of independent starts,
        each run to convergence, and nothing else, as in scikit-learn.
    algorithm : {"swap", "lloyd", "elkan"}, default="swap"
        "swap": greedy exact swaps of centres, moves of single rows, and perturbations of local optima [3]_; where rows
        lie on a line, dynamic programming, which finds the best of all. "lloyd" and "elkan" stop at the
        optimum nearest to their start, and here are the same code, which also runs for sparse rows of more than eight
        million entries, zeros included, with `bounds`, and from any `init` but "auto" and "k-means++".
    effort : {"fast", "default", "best"}, default="default"
        How long the swap search goes on: one start and no perturbations; three starts and at most 50 perturbations;
        or at most 600 (on large data one start and fewer perturbations). It stops early when starts and perturbations
        keep leading to the same optimum.
    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine": spherical k-means [5]_, for text and embeddings. Each row is divided by its length, centres have
        length one, and the sum of one minus the cosine, weighted, is minimised: half the sum of squared distances
        under that constraint. Rows of zeros are refused.
    size_min, size_max : float, optional
        The smallest and the largest weight of a cluster; without weights, its number of rows. Each assignment is then
        the cheapest one within these sizes [4]_, and `inertia_` its SSE. Descents begin at the end of a search without
        sizes and at k-means++ seeds, until three of at most 10 agree. The label of a row whose weight is divided is one
        of its clusters.
    bounds : bound policy, optional
        How bounds are chosen; by default the tightest, which is Lloyd's iteration. A policy such as
        ``GibbsLimit(eta=0.1)`` runs generalized majorization-minimization.
    max_iter : int, default=300
        Largest number of iterations of a run of Lloyd's, the one that ends a swap search included.
    tol : float, default=1e-4
        A run of Lloyd's has converged when the squared shifts of its centres sum to no more than `tol` times the
        mean variance of the columns, or when no label changes.
    verbose : int, default=0
        1 shows the starts as they end, on stderr.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and of random bounds.
    copy_x : bool, default=True
        Accepted for compatibility; X is never written to.
    n_jobs : int, optional
        Threads that work on blocks of rows at a time; -1 for all processors.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Heaviest cluster first, unless `init` gave an order.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row.
    inertia_ : float
        Weighted sum of squared distances to the nearest centre (SSE), or of one minus the cosine to it.
    n_iter_ : int
        Iterations of the start that was kept; accepted steps of a swap search.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X had column names.
    search_ : SearchReport
        Every start, how many reached the best optimum, how far the second is.
    trace_ : Trace
        Objective and bound, iteration by iteration.
    batches_ : Batches
        After `partial_fit`: the sums of the pass so far, with which a saved model goes on.

    See Also
    --------
    sklearn.cluster.KMeans : One start, nearest optimum.

    References
    ----------
    .. [1] S. P. Lloyd, "Least squares quantization in PCM", IEEE Trans. Inf. Theory, 1982.
    .. [2] S. N. Parizi, K. He, S. Sclaroff, P. Felzenszwalb, "Generalized Majorization-Minimization", section 4.1.
    .. [3] P. Fränti, "Efficiency of random swap clustering", Journal of Big Data, 2018.
    .. [4] P. S. Bradley, K. P. Bennett, A. Demiriz, "Constrained k-means clustering", Microsoft Research, 2000.
    .. [5] I. S. Dhillon, D. S. Modha, "Concept decompositions for large sparse text data using clustering", Machine
       Learning, 2001.

    Examples
    --------
    >>> import majorant as mj
    >>> from sklearn.datasets import load_iris
    >>> model = mj.KMeans(3, random_state=0).fit(load_iris().data)
    >>> round(model.inertia_, 3)
    78.851
    >>> model.certify(load_iris().data).proved
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str | ArrayLike | Callable[..., Any] = "auto",
        n_init: str | int = "auto",
        algorithm: Literal["swap", "lloyd", "elkan"] = "swap",
        effort: Effort = "default",
        metric: Metric = "euclidean",
        size_min: float | None = None,
        size_max: float | None = None,
        bounds: BoundPolicy | None = None,
        max_iter: int = 300,
        tol: float = 1e-4,
        verbose: int = 0,
        random_state: Any = None,
        copy_x: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.algorithm = algorithm
        self.effort = effort
        self.metric = metric
        self.size_min = size_min
        self.size_max = size_max
        self.bounds = bounds
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.copy_x = copy_x
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features), or Chunks
            Rows. A memory-mapped array larger than 64 MB, or ``majorant.open_rows(path)``, is read block by block;
            starts are then made on a sample.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights, not all zero.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data, weights or parameters cannot be used; the message says what to change.
        """
        with self._all_or_nothing():
            check_settings(self)
            self.__dict__.pop("batches_", None)  # of a pass before this fit
            on_sphere = self.metric == "cosine"
            random = check_random_state(self.random_state)
            source = stored_rows(X)
            if source is None:
                X = rows_of(self, X, reset=True)
                n = X.shape[0]
            else:
                n = self._check_stored(source, reset=True)
            check_enough_rows(n, "n_clusters", self.n_clusters, "cluster")
            occupied = None
            if source is None:
                found = given = unit_rows(X) if on_sphere else X
                if isinstance(self.init, str):
                    found, occupied = without_empty_columns(given)
                weights = check_sample_weight(sample_weight, n)
                rows = rows_in_memory(found, weights, self.n_jobs, on_sphere=on_sphere)
            else:
                given = source
                source.weigh(sample_weight)
                rows = rows_streamed(source, int(random.randint(2**31)), self.n_jobs, on_sphere=on_sphere)
            if not rows.is_stream:
                warn_of_repeats(rows.measure.n_points, self.n_clusters)
            unit = square_unit(rows.measure.scale, rows.scatter, float(abs(rows.measure.points).max()))
            unit *= 0.5 if on_sphere else 1.0
            search = Search(self, unit)
            sizes = check_sizes(self.size_min, self.size_max, rows.data.total_weight, self.n_clusters)
            if sizes is None:
                best, note = search.find(rows, given, random)
                self._keep(rows, best, note, unit, occupied, keeps_order=search.keeps_order)
                self.labels_ = self._fitted.nearest(X if source is None else source, self.n_jobs)
                return self
            if source is not None or self.bounds is not None:
                raise ValueError("size_min and size_max need rows in memory, not a stream, and no bound policy")
            best, mass = sized_search(self, rows, given, sizes, search, random)
            self._keep(rows, best, "", unit, occupied, keeps_order=True)
            self.labels_ = rows_within(mass, rows.measure.positions, weights)
            if (without := self.labels_ < 0).any():
                self.labels_[without] = self._fitted.nearest(X[without], self.n_jobs)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on with an iteration over rows that come one batch after another.

        All batches of a pass are assigned to the centres with which it began, and `cluster_centers_` are the best
        centres of the rows so far as they were assigned. So the order of batches does not matter, and after the last
        one the centres are those of ``fit`` on all rows with the same `init` and ``max_iter=1``, up to rounding. A pass
        begins at `init`, if that is an array, and else at the fit of the first batch. A new pass begins when `init` is
        given anew, be it of equal centres: ``model.set_params(init=model.cluster_centers_)``. `inertia_` is the
        objective of the rows so far in their clusters, which is no less than with the nearest centres.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If rows are streamed, which `fit` reads batch by batch itself, or sizes or bounds are asked for, or `metric`
            or `n_clusters` changed within a pass.
        """
        with self._all_or_nothing():
            check_settings(self)
            add_batch(self, X, sample_weight)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return what copies and files hold: a pass over batches that goes on, and none that has ended.

        A copy of `init` is another object, by which the copy could not tell.
        """
        ended = {"_init_of_pass"} if pass_of(self) is not None else {"_init_of_pass", "batches_"}
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in ended}

    def _keep(self, rows: Rows, best: Best, note: str, unit: float, occupied: Any, *, keeps_order: bool) -> None:
        """Set the fitted attributes, in the units of X."""
        solution, certain = best.solution, ""
        centres = rows.measure.restore(solution.theta)
        if not keeps_order:
            heaviest_first = ordered(-cluster_weights(rows.data, solution.theta), solution.theta)
            centres = centres[heaviest_first]
        places = slice(None) if occupied is None else occupied
        self.cluster_centers_ = np.zeros((self.n_clusters, self.n_features_in_), dtype=rows.dtype)
        self.cluster_centers_[:, places] = centres
        self.inertia_ = float(solution.objective * unit)
        self.n_iter_ = solution.n_iter
        if self.n_clusters == 1:
            place = "at the mean" if self.metric == "euclidean" else "in the direction of the sum"
            certain = f"One cluster has its best centre {place} of the rows, so no better one exists."
        elif self.inertia_ == 0 and not rows.is_stream and rows.measure.n_points <= self.n_clusters:
            certain = "Every distinct row has a centre of its own, so no better solution exists."
        elif best.records[0].source == EXACT:
            certain = "The rows lie on a line, where dynamic programming finds the best of all solutions."
        elif best.records[0].source == JOINED:
            certain = (
                "Dynamic programming over groups of neighbouring rows, ever smaller around the cuts, divided the "
                "column: n_init and effort have no effect."
            )
        told: dict[str, Any] = {"note": note, "certain": certain, "effort": self.effort}
        self.search_ = SearchReport(best.records, OBJECTIVES[self.metric], **told).scaled(unit)
        self.trace_ = solution.trace.scaled(unit)

    @property
    def _fitted(self) -> FittedCentres:
        check_is_fitted(self)
        return FittedCentres.of(self.cluster_centers_, self.metric)

    def _check_rows(self, X: Any) -> Any:
        """Return the rows to predict: validated in memory, or a stream."""
        check_is_fitted(self)
        source = stored_rows(X)
        if source is not None:
            self._check_stored(source, reset=False)
            return source
        return rows_of(self, X, reset=False)

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the nearest cluster of each row.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features), or Chunks

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._fitted.nearest(self._check_rows(X), self.n_jobs)

    def predict_within(
        self, X: Any, *, size_min: float | None = None, size_max: float | None = None, sample_weight: Any = None
    ) -> NDArray[np.int32]:
        """Return the clusters of rows that are assigned together, within sizes, at the least sum of squared distances.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        size_min, size_max : float, optional
            As in the fit, of these rows.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        ValueError, TypeError
            If no clusters can have these sizes, or rows are streamed.
        """
        X = self._check_rows(X)
        if isinstance(X, StoredRows):
            raise TypeError("predict_within needs rows in memory: take a part of them")
        weights = check_sample_weight(sample_weight, X.shape[0])
        fitted = self._fitted
        labels = assigned_within(fitted.rows(X), weights, fitted.centres, size_min, size_max)
        return np.where(labels < 0, fitted.nearest(X, self.n_jobs), labels)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.int32]:
        """Fit, and return the cluster of each row."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the distance of each row to each centre: Euclidean, or one minus the cosine.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features), or Chunks

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        return self._fitted.distances(self._check_rows(X), self.n_jobs)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the weighted sum of squared, or cosine, distances of rows to their nearest centres.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features), or Chunks
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        X = self._check_rows(X)
        if isinstance(X, StoredRows):
            X.weigh(sample_weight)
            data = Chunks(X, n_jobs=self.n_jobs)
        else:
            data = Chunks(X, weights=check_sample_weight(sample_weight, X.shape[0]), n_jobs=self.n_jobs)
        return -self._fitted.objective(data)

    def certify(
        self,
        X: Any,
        *,
        sample_weight: Any = None,
        effort: Literal["fast", "default", "tight"] = "default",
        seconds: float | None = None,
    ) -> Certificate:
        """Prove how far these centres can be from the best possible ones on X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Usually the rows of the fit.
        sample_weight : array-like of shape (n_samples,), optional
        effort : {"fast", "default", "tight"}, default="default"
            How much work the bound may cost: tenths of a second on small data, some times that, up to some seconds.
        seconds : float, optional
            Processor time that the bound may take at most, about, in place of `effort`; the bound is zero where that is
            too little for any.

        Returns
        -------
        Certificate
            ``bound``, ``gap``, ``proved`` and, in words, ``sentence``.

        Raises
        ------
        TypeError
            If X is sparse or streamed: no bound is known for rows that are not in memory as an array.

        References
        ----------
        .. [1] J. Peng, Y. Wei, "Approximating k-means-type clustering via semidefinite programming", SIAM Journal on
           Optimization, 2007.
        """
        check_choice("effort", effort, ["fast", "default", "tight"])
        X = self._check_rows(X)
        if isinstance(X, StoredRows) or sparse.issparse(X):
            raise TypeError("certify takes rows in memory as a dense array: take a part of them, or X.toarray()")
        weights = check_sample_weight(sample_weight, X.shape[0])
        if seconds is not None:
            check_real("seconds", seconds, low=0)
        return certificate(self, X, weights, effort, seconds)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _summary(self) -> Summary:
        return kmeans_summary(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
