"""k-medoids: clusters around some of the rows, by any distance or a table of distances."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from majorant._frames import check_square_names
from majorant._order import ordered
from majorant._progress import end_of_starts, report_start
from majorant._validation import (
    check_choice,
    check_enough_rows,
    check_integer,
    check_sample_weight,
    check_verbose,
    validate_data,
    warn_of_repeats,
)
from majorant.data.chunks import Block as BlockOfRows
from majorant.data.chunks import Chunks, effective_threads
from majorant.data.measure import empirical_measure, safe_scale
from majorant.engine.trace import Trace
from majorant.models.base import LatentVariableModel
from majorant.registry import ModelCard, register
from majorant.search.effort import EFFORTS, Effort
from majorant.search.record import SearchReport, StartRecord
from majorant.solvers.medoids import MedoidResult, medoid_search
from majorant.summary import Block, Column, Fact, Facts, Summary, Table, clusters_block, counted, search_block

METRICS = (
    *("euclidean", "sqeuclidean", "cityblock", "chebyshev", "minkowski", "cosine", "correlation", "hamming", "jaccard"),
    *("braycurtis", "canberra", "jensenshannon", "dice", "rogerstanimoto", "sokalsneath", "yule"),
    *("seuclidean", "mahalanobis"),
)
"""Distances of ``scipy.spatial.distance.cdist``."""
POWERS = {"euclidean": 1, "cityblock": 1, "chebyshev": 1, "minkowski": 1, "sqeuclidean": 2, "cosine": 0}
"""By what power of a factor of the rows a distance grows: rows of any size are brought near one for it."""
NEEDED = {"seuclidean": "V", "mahalanobis": "VI"}
"""What scipy would take from the rows at hand, so that a fit and a prediction would measure differently."""
MOST_BYTES = 1 << 34
"""Memory that the distances of all pairs of rows may take."""
OF_MISSING = (
    "KMedoids takes no missing values: drop those rows, fill them in, or give distances that you have computed as a "
    'table, with metric="precomputed"'
)


@register(
    ModelCard(
        name="kmedoids",
        title="k-medoids",
        question="Which rows lie together by a distance of your own, around which of them?",
        kind="clustering",
        size_parameter="n_clusters",
        part="cluster",
        objective_name="total distance",
        objective_title="sum of distances to the medoids",
        objective_attribute="inertia_",
        estimates=("medoid_indices_",),
        shapes={"medoid_indices_": "k", "cluster_centers_": "kd"},
        objective_set_by=("metric", "metric_params"),
    )
)
class KMedoids(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, LatentVariableModel):  # type: ignore[misc]
    r"""Clusters around medoids, which are rows: for any distance between rows, or a table of distances.

    Minimises the weighted sum of distances to the nearest medoid, over all choices of rows as medoids,

    .. math:: F(M) = \sum_i w_i \min_{m \in M} d(x_i, x_m).

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    metric : str or callable, default="euclidean"
        A distance of ``scipy.spatial.distance.cdist`` by its name, a function of two rows, or "precomputed": X is then
        the square table of distances, from each row to each possible medoid.
    metric_params : dict, optional
        Further arguments of the distance, such as ``{"p": 3}`` of "minkowski".
    effort : {"fast", "default", "best"}, default="default"
        How long the search goes on: one start; four starts, and perturbations for twice the work of one; four, and
        perturbations for far longer. It stops early when perturbations keep leading back to the best.
    verbose : int, default=0
        1 shows the starts as they end, on stderr.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and perturbations.
    n_jobs : int, optional
        Threads that compute distances; -1 for all processors.

    Attributes
    ----------
    medoid_indices_ : ndarray of shape (n_clusters,)
        Rows of X, that of the heaviest cluster first. Of equal rows the first is named.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Those rows; not where distances were given.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row.
    inertia_ : float
        Weighted sum of distances to the nearest medoid.
    n_iter_ : int
        Number of objectives in `trace_`, from the first medoids on.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X had column names.
    search_ : SearchReport
        Every start and perturbation, and how many reached the best optimum.
    trace_ : Trace
        Objective in the course of the search.

    See Also
    --------
    KMeans : Centres that are means, for squared Euclidean distances and the cosine.

    Notes
    -----
    The distances of all pairs of distinct rows are held in memory. Rows are a set: their order does not matter, and a
    weight of two is the row twice; of a table of distances the order of rows may decide between equal optima.

    References
    ----------
    .. [1] L. Kaufman, P. J. Rousseeuw, "Finding groups in data", 1990.
    .. [2] E. Schubert, P. J. Rousseeuw, "Fast and eager k-medoids clustering: O(k) runtime improvement of the PAM,
       CLARA, and CLARANS algorithms", Information Systems, 2021.

    Examples
    --------
    >>> import majorant as mj
    >>> from sklearn.datasets import load_iris
    >>> model = mj.KMedoids(3, metric="cityblock", random_state=0).fit(load_iris().data)
    >>> round(model.inertia_, 1), model.medoid_indices_.tolist()
    (162.5, [55, 7, 112])
    """

    labels_: NDArray[np.int32]

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: Mapping[str, Any] | None = None,
        effort: Effort = "default",
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.metric = metric
        self.metric_params = metric_params
        self.effort = effort
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the medoids.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, n_samples)
            Rows, or their distances where ``metric="precomputed"``.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights, not all zero. A row without weight is no medoid.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data, weights or parameters cannot be used; the message says what to change.
        """
        with self._all_or_nothing():
            self._check_parameters()
            random = check_random_state(self.random_state)
            if self._is_precomputed:
                check_square_names(X, "X")
            X = self._checked(X, reset=True)
            check_enough_rows(len(X), "n_clusters", self.n_clusters, "cluster")
            weights = check_sample_weight(sample_weight, len(X))
            if self._is_precomputed:
                _check_square(X)
                w = np.ones(len(X)) if weights is None else weights
                rows = np.flatnonzero(w > 0)
                distances, w = X[np.ix_(rows, rows)] if len(rows) < len(X) else X, w[rows]
                zeros = distances == 0
                is_distinct = np.count_nonzero(zeros) == len(rows)
                n_distinct = len(rows) if is_distinct else len(np.unique((zeros & zeros.T).argmax(axis=1)))
            else:
                rows, w = _distinct(X, weights)
                _check_memory(len(rows))
                distances, n_distinct = self.distances_between(X, rows), len(rows)
            warn_of_repeats(n_distinct, self.n_clusters)
            if not _is_symmetric(distances):
                distances = distances.T  # row by row the distances to a possible medoid
            found = medoid_search(
                np.ascontiguousarray(distances), w, self.n_clusters, seed=int(random.randint(2**31)), effort=self.effort
            )
            mass = np.bincount(found.labels, w, minlength=self.n_clusters)
            heaviest_first = ordered(-mass, rows[found.medoids][:, None])
            self.medoid_indices_ = rows[found.medoids[heaviest_first]]
            if not self._is_precomputed:
                self.cluster_centers_ = X[self.medoid_indices_]
            elif hasattr(self, "cluster_centers_"):
                del self.cluster_centers_
            self._keep(found)
            self.labels_ = self._to_medoids(X).argmin(axis=1).astype(np.int32)
        return self

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def _check_parameters(self) -> None:
        check_integer("n_clusters", self.n_clusters, low=1)
        check_verbose(self.verbose)
        effective_threads(self.n_jobs)
        check_choice("effort", self.effort, list(EFFORTS))
        if not callable(self.metric):
            check_choice("metric", self.metric, [*METRICS, "precomputed"], or_else=", or a function of two rows")
            needed = NEEDED.get(self.metric)
            if needed is not None and needed not in (self.metric_params or {}):
                raise ValueError(
                    f'metric="{self.metric}" needs metric_params={{"{needed}": ...}}: without it scipy would take it '
                    "from the rows at hand, and a prediction would measure otherwise than the fit"
                )

    def _checked(self, X: Any, *, reset: bool) -> NDArray[Any]:
        self._refuse_chunks(X)
        accepted: dict[str, Any] = {"dtype": [np.float64, np.float32], "order": "C"}
        return np.asarray(validate_data(self, X, reset=reset, of_missing=OF_MISSING, **accepted))

    def _distances(self, rows: NDArray[Any], medoids: NDArray[Any]) -> NDArray[np.float64]:
        """Return the distances of rows to medoids."""
        power = POWERS.get(self.metric) if isinstance(self.metric, str) else None
        scale = 1.0 if power is None else safe_scale(float(np.abs(medoids).max(initial=0.0)), np.float64)
        inside = np.asarray(medoids * scale, dtype=np.float64)

        def of_block(block: BlockOfRows) -> NDArray[np.float64]:
            x = np.asarray(block.columns[0] * scale, dtype=np.float64)
            return np.asarray(cdist(x, inside, self.metric, **(self.metric_params or {})) / scale ** (power or 0))

        try:
            with np.errstate(over="ignore"):  # refused below
                found = Chunks(rows, n_jobs=self.n_jobs).map_rows(of_block, (len(medoids),))
        except (TypeError, ValueError) as error:
            raise ValueError(f"the distance metric={self.metric!r} of these rows failed: {error}") from error
        if not ((found >= 0) & np.isfinite(found)).all():
            i, j = np.argwhere(~((found >= 0) & np.isfinite(found)))[0]
            raise ValueError(
                f"metric={self.metric!r} gives {found[i, j]:g} as the distance of the rows {rows[i]} and {medoids[j]}: "
                "distances of rows of X must be finite and not negative, and none too large or too small"
            )
        return found

    def distances_between(self, X: Any, rows: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Return the distances between some rows, as the fit measures them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, n_samples)
            Rows, or their distances where ``metric="precomputed"``.
        rows : array of int of shape (m,)
            Their positions.

        Returns
        -------
        ndarray of shape (m, m)
            With zeros on its diagonal.
        """
        X = np.asarray(X)
        if self._is_precomputed:
            return np.asarray(X[np.ix_(rows, rows)], dtype=np.float64)
        found = self._distances(X[rows], X[rows])
        np.fill_diagonal(found, 0.0)
        return found

    def _keep(self, found: MedoidResult) -> None:
        """Set the fitted attributes that tell of the search."""
        records = []
        for source, objective, n_steps, converged in found.optima:
            records.append(StartRecord(source, objective, n_steps, converged))
            state = "no swap helps" if converged else "cut short"
            report_start(len(records), source, objective, state, self.verbose)
        end_of_starts(self.verbose)
        certain = ""
        if self.n_clusters == 1:
            certain = "Every row was tried as the medoid, so no better one exists."
        elif found.objective == 0:
            certain = "Every row lies at its medoid, so no better solution exists."
        self.inertia_ = found.objective
        self.n_iter_ = len(found.steps)
        self.search_ = SearchReport(tuple(records), "total distance", certain=certain, effort=self.effort)
        self.trace_ = Trace([{"objective": f, "bound": f, "gap": 0.0, "exploring": 0.0} for f in found.steps])

    def _to_medoids(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the distances of rows to the medoids."""
        return X[:, self.medoid_indices_] if self._is_precomputed else self._distances(X, self.cluster_centers_)

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the cluster of the nearest medoid of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, n_samples_of_the_fit)
            Rows, or their distances to the rows of the fit where ``metric="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self.transform(X).argmin(axis=1), dtype=np.int32)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.int32]:
        """Fit, and return the cluster of each row."""
        self.fit(X, sample_weight=sample_weight)
        return self.labels_

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the distance of each row to each medoid.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, n_samples_of_the_fit)

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        check_is_fitted(self)
        return self._to_medoids(self._checked(X, reset=False))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the weighted sum of distances of rows to their nearest medoids.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, n_samples_of_the_fit)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        nearest = self.transform(X).min(axis=1).astype(np.float64)
        weights = check_sample_weight(sample_weight, len(nearest))
        return -float(nearest.sum() if weights is None else weights @ nearest)

    @property
    def _n_features_out(self) -> int:
        return len(self.medoid_indices_)

    def _summary(self) -> Summary:
        n, k = len(self.labels_), len(self.medoid_indices_)
        name = self.search_.objective_name
        facts = [Fact(name, self.inertia_, 2), Fact(f"{name} per row", self.inertia_ / n, 4)]
        medoids = Table(
            "medoids",
            [
                Column("cluster", range(1, k + 1)),
                Column("medoid, row", self.medoid_indices_ + 1),
                Column("rows", np.bincount(self.labels_, minlength=k)),
            ],
        )
        columns = "given distances" if self._is_precomputed else counted(self.n_features_in_, "feature")
        steps = f"the search lowered the {name} {counted(self.n_iter_, 'time')}"
        blocks = [Block("MEDOIDS", "rows are counted from 1", (medoids,))]
        if not self._is_precomputed:
            blocks.append(clusters_block(self.labels_, self.cluster_centers_, self._feature_names()))
        return Summary(
            f"k-medoids, {counted(k, 'cluster')}",
            f"{counted(n, 'row')}, {columns}",
            [
                search_block(self.search_),
                Block("FIT", steps, [Facts("fit", facts, [])]),
                *blocks,
            ],
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        tags.transformer_tags.preserves_dtype = []
        return tags


def _distinct(X: NDArray[Any], weights: NDArray[np.float64] | None) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the first of each set of equal rows with weight, in canonical order, and their summed weights."""
    measure = empirical_measure(X, weights, centred=False)
    there = np.flatnonzero(measure.positions >= 0)
    _, first = np.unique(measure.positions[there], return_index=True)
    return there[first], measure.weights


def _is_symmetric(distances: NDArray[Any]) -> bool:
    """Return whether a table equals its transpose, compared by tiles that fit in the processor's cache."""
    tile = 256
    places = range(0, len(distances), tile)
    return all(
        np.array_equal(distances[a : a + tile, b : b + tile], distances[b : b + tile, a : a + tile].T)
        for a in places
        for b in places
        if b <= a
    )


def _check_memory(n: int) -> None:
    if 8 * n * n > MOST_BYTES:
        raise ValueError(
            f"the distances of {n} distinct rows take {8e-9 * n * n:.0f} GB: KMedoids takes at most "
            f"{int((MOST_BYTES / 8) ** 0.5)} rows; fit a sample and predict the others"
        )


def _check_square(X: NDArray[Any]) -> None:
    """Refuse a table that is not one of distances."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f'with metric="precomputed" X is the square table of distances of all rows; got shape {X.shape}: '
            "give the distances, or name the metric"
        )
    if X.min() < 0:
        i, j = np.argwhere(X < 0)[0]
        raise ValueError(f"X[{i}, {j}] is {X[i, j]:g}: distances must not be negative")
    if np.diag(X).any():
        i = int(np.flatnonzero(np.diag(X))[0])
        raise ValueError(f"X[{i}, {i}] is {X[i, i]:g}: the distance of a row to itself must be zero")
