"""The discriminative clustering estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from majorant._order import ordered
from majorant._validation import (
    check_choice,
    check_enough_rows,
    check_integer,
    check_positive,
    check_runs,
    check_sample_weight,
    levels_to_user,
    seed_of,
    validate_data,
)
from majorant.data.measure import Measure, empirical_measure, square_unit
from majorant.engine.threads import one_thread
from majorant.engine.trace import Trace
from majorant.models.base import ACTIVE_SHARE, LatentVariableModel
from majorant.models.discriminative_clustering.certify import information_bound
from majorant.models.discriminative_clustering.contest import clustering_contest
from majorant.models.discriminative_clustering.cost import ClusteringCost
from majorant.models.discriminative_clustering.summary import clustering_summary
from majorant.models.kernel_features import KERNEL_SHAPES, Embedding, FeatureMap, check_kernel, embedding
from majorant.registry import ModelCard, register
from majorant.results.certificate import Certificate
from majorant.search.contestants import Found
from majorant.search.record import SearchReport, StartRecord
from majorant.starts.given import given_assignments, pooled
from majorant.starts.quadratic import PrincipalAxes, principal_axes
from majorant.starts.simplex_program import RELAXATIONS
from majorant.summary import Summary, counted

OBJECTIVE = "information share"
STARTS = ["auto", "ball", *RELAXATIONS, "random"]
RELATIVE_ALPHA = 1e-2
"""The default penalty, in units of the mean variance of the features."""
ROUNDING = 1e-12
"""Rounding error of means of log probabilities (natural log)."""


@register(
    ModelCard(
        name="discriminative-clustering",
        title="discriminative clustering",
        question="Which groups of rows can a linear or kernel classifier tell apart best?",
        kind="clustering",
        size_parameter="n_clusters",
        part="cluster",
        objective_name=OBJECTIVE,
        objective_title="penalised information as a share of the most possible",
        objective_attribute="information_",
        estimates=("level_", "cluster_weights_"),
        shapes={"level_": "k", "cluster_weights_": "k", "coef_": "kd", "dual_coef_": "kn", "cluster_centers_": "kd"}
        | KERNEL_SHAPES,
        objective_set_by=("alpha", "gamma", "kernel", "n_kernel_components"),
    )
)
class DiscriminativeClustering(ClusterMixin, LatentVariableModel):  # type: ignore[misc]
    r"""Discriminative clustering: softmax regression, and the labels that it predicts best.

    A latent-class model in which every row is a label of its own. With :math:`p(k|x) \propto e^{w_k^T \phi(x) + b_k}`
    and shares :math:`\omega_n` of the rows' weights it minimises

    .. math::
        L(w, b, \alpha) = -\sum_n \omega_n \log \sum_k p(k|x_n)\, \frac{\alpha_{kn}}{\omega_n}
        + \frac{\lambda}{2K} \sum_k |w_k|^2, \qquad \sum_n \alpha_{kn} = 1,

    which makes the clusters as informative about rows as a smooth classifier allows: :math:`-L` is at most the mutual
    information of rows and clusters, at most :math:`\log K`. Clusters need not be round nor of equal size, directions
    that do not separate (noise features) cost little, and no constraint on sizes is needed against empty clusters: they
    carry no information.

    The fit is a function of the weighted empirical measure and of `random_state`: the order of the rows, and writing a
    row twice instead of weighting it, do not change it, nor does `n_jobs`, to the last bit.

    Parameters
    ----------
    n_clusters : int, default=2
        K, at most; see `n_active_clusters_`.
    init : {"auto", "ball", "relaxation", "independent-relaxations", "random"} or array, default="auto"
        "auto": short runs from the ball relaxation, from k-means in two metrics, along the widest axes and
        along directions in which the rows lie on two sides, and from random assignments; the best are annealed from
        larger penalties, regrouped along the directions that separate, and followed to their end; of up to 1,000 rows
        those of least margin are then moved singly while that helps. "ball": the ball relaxation of the quadratic
        approximation, rounded by k-means. "relaxation": the low-rank program over simplices [1]_, both roundings;
        "independent-relaxations": its columns as programs of their own, the baseline of [1]_. "random": random soft
        assignments. An array of labels (n_samples,), whole numbers from 0, or of assignments
        (n_samples, n_clusters).
    n_init : "auto" or int, default="auto"
        Number of random starts (10; with "auto" 3 beside the others), or of columns of the relaxation (10).
    alpha : "scale" or float, default="scale"
        :math:`\lambda`, positive and finite, in squared units of the features. "scale": a hundredth of their mean
        variance, so that units do not matter.
    kernel : None, "rbf" or callable, default=None
        Features of the classifier. None: the columns. "rbf": :math:`k(x, l) = e^{-\gamma |x - l|^2}`. A callable:
        ``kernel(X, L)`` returns the matrix of a positive semi-definite kernel, of one row for each row of X and one
        column for each row of L.
    n_kernel_components : int, default=100
        Number of kernel features: leading principal components of the exact kernel matrix below 2000 distinct rows, or
        of its approximation with this many rows as landmarks (Nyström's method).
    gamma : float, optional
        Of the RBF kernel; by default 1 / (n_features * variance of X).
    max_iter : int, default=500
        Most iterations of the last run of a start; those before it, after which starts are compared, are short.
    tol : float, default=1e-7
        A run has converged when its last steps predict that it can lower L by no more than this.
    verbose : int, default=0
        1 shows the starts as they end, on stderr.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and of random bounds.
    n_jobs : int, optional
        Threads that work on blocks of rows at a time; -1 for all processors.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The most probable cluster of each row; the heaviest cluster first.
    information_ : float
        :math:`-L / \log K`, at most 1: the share of the information of K equal, perfectly predicted clusters, less
        the penalty. 0 for one cluster.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Mean row of each cluster; of one without rows, the mean by probabilities.
    cluster_weights_ : ndarray of shape (n_clusters,)
        Mean probability of each cluster.
    n_active_clusters_ : int
        Clusters with a mean probability above 1 %.
    alpha_ : float
        The penalty that was used.
    coef_ : ndarray of shape (n_clusters, n_features)
        Without a kernel: scores are ``(X - center_) @ coef_.T + level_``.
    level_ : ndarray of shape (n_clusters,)
        Scores at `center_`, where the intercept loses no digits.
    center_ : ndarray of shape (n_features,)
        Weighted mean of the rows.
    landmarks_ : ndarray of shape (n_landmarks, n_features)
        With a kernel.
    kernel_axes_ : ndarray of shape (n_landmarks, n_axes), or None
        With a kernel: ``kernel(X, landmarks_) @ kernel_axes_`` are features whose inner products are the kernel's.
    dual_coef_ : ndarray of shape (n_clusters, n_landmarks)
        With a kernel: scores are ``kernel(X, landmarks_) @ dual_coef_.T + level_``.
    gamma_ : float
        With the RBF kernel.
    n_iter_ : int
        Iterations of the start that was kept.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X had column names.
    search_ : SearchReport
        Every start, how many reached the best optimum, how far the second is, and a proved bound.
    trace_ : Trace
        Minus the information share, iteration by iteration, of the last run.

    See Also
    --------
    KMeans : Round clusters, every feature alike.

    References
    ----------
    .. [1] A. Joulin, F. Bach, J. Ponce, "Efficient optimization for discriminative latent class models", NIPS 2010.
    .. [2] F. Bach, Z. Harchaoui, "DIFFRAC: a discriminative and flexible framework for clustering", NIPS 2007.
    .. [3] A. Krause, P. Perona, R. Gomes, "Discriminative clustering by regularized information maximization", NIPS
       2010.

    Examples
    --------
    Two rings, one inside the other:

    >>> import majorant as mj
    >>> from sklearn.datasets import make_circles
    >>> X, ring = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    >>> model = mj.DiscriminativeClustering(2, kernel="rbf", alpha=1e-3, random_state=0).fit(X)
    >>> len(set(zip(model.labels_.tolist(), ring.tolist())))
    2
    """

    kernel_axes_: NDArray[np.float64] | None

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        init: str | ArrayLike = "auto",
        n_init: str | int = "auto",
        alpha: str | float = "scale",
        kernel: str | Callable[..., Any] | None = None,
        n_kernel_components: int = 100,
        gamma: float | None = None,
        max_iter: int = 500,
        tol: float = 1e-7,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.alpha = alpha
        self.kernel = kernel
        self.n_kernel_components = n_kernel_components
        self.gamma = gamma
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights, not all zero.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data, weights, kernel or parameters cannot be used; the message says what to change.
        """
        with self._all_or_nothing(), one_thread():  # sums would depend on threads
            self._check_parameters()
            random = np.random.default_rng(seed_of(self.random_state))
            self._refuse_chunks(X)
            X = validate_data(self, X, dtype=[np.float64, np.float32], order="C")
            check_enough_rows(len(X), "n_clusters", self.n_clusters, "cluster")
            weights = check_sample_weight(sample_weight, len(X))
            measure = empirical_measure(X.astype(np.float64, copy=False), weights)
            self._warn_of_repeats(measure.n_points)
            shares = measure.weights / measure.total_weight
            embedded, scale = self._embedded(measure, shares, random)
            alpha = self._penalty(embedded.axes, scale)
            cost = ClusteringCost(embedded.axes.coordinates, shares, self.n_clusters, alpha, self.n_jobs)
            init = self.init
            if not isinstance(init, str):
                given = given_assignments(init, len(X), self.n_clusters, "cluster", normalised=False)
                rows = measure.positions >= 0
                of_row = np.ones(len(X)) if weights is None else weights
                init = pooled(given[rows], of_row[rows], measure.positions[rows], measure.n_points)
            contest = clustering_contest(
                cost, embedded.axes, init, self.n_init, tol=self.tol, max_iter=self.max_iter, random=random
            )
            found = contest.found(random, self.verbose)
            self._keep(X, measure, cost, embedded, scale, found)
            self._keep_search(found)
        return self

    def _check_parameters(self) -> None:
        check_integer("n_clusters", self.n_clusters, low=1)
        check_runs(self)
        if isinstance(self.init, str):
            check_choice("init", self.init, STARTS, or_else=" or an array")
        if isinstance(self.alpha, str):
            check_choice("alpha", self.alpha, ["scale"], or_else=" or a positive number")
        else:
            check_positive("alpha", self.alpha, finite=True)
        check_kernel(self.kernel, self.n_kernel_components, self.gamma)

    def _warn_of_repeats(self, n_distinct: int) -> None:
        if n_distinct < self.n_clusters:
            warnings.warn(
                f"at most {n_distinct} of n_clusters={self.n_clusters} clusters can be told apart: X has only "
                f"{counted(n_distinct, 'distinct row')} with weight",
                ConvergenceWarning,
                stacklevel=levels_to_user(),
            )

    def _embedded(
        self, measure: Measure, shares: NDArray[np.float64], random: np.random.Generator
    ) -> tuple[Embedding, float]:
        """Return the coordinates, and the scale applied to rows before them for kernels."""
        if self.kernel is None:
            return embedding(measure.points, shares, None, None, 0, random), measure.scale
        rows = measure.restore(measure.points)
        return embedding(rows, shares, self.kernel, self.gamma, self.n_kernel_components, random), 1.0

    def _penalty(self, axes: PrincipalAxes, scale: float) -> float:
        """Return the penalty in squared units of the coordinates."""
        if isinstance(self.alpha, str):
            mean = float(np.sum(axes.deviations**2)) / len(axes.mean)
            return RELATIVE_ALPHA * (mean or 1.0)
        with np.errstate(over="ignore", under="ignore"):
            return float(np.clip(float(self.alpha) * np.float64(scale) ** 2, 1e-250, 1e250))

    def _keep(
        self, X: Any, measure: Measure, cost: ClusteringCost, embedded: Embedding, scale: float, found: Found[Any]
    ) -> None:
        """Set the fitted attributes, in the units of X; the heaviest cluster first, ties by position."""
        theta = found.best.theta.theta[0]
        p = np.exp(cost.predicted(theta))
        weights, means = _means(p, measure)
        if isinstance(self.init, str):
            order = ordered(-weights, means)
            theta, p, means = np.ascontiguousarray(theta[:, order]), p[:, order], means[order]
        coef, self.level_ = embedded.outward(theta)
        for name in ("coef_", "dual_coef_", "landmarks_", "gamma_"):
            self.__dict__.pop(name, None)
        self.kernel_axes_ = embedded.to_features
        if self.kernel is None:
            self.coef_ = coef * scale
            self.center_ = embedded.map.center / measure.scale + measure.origin
        else:
            self.dual_coef_, self.center_ = coef, embedded.map.center
            self.landmarks_ = embedded.map.landmarks
            if self.kernel == "rbf":
                self.gamma_ = embedded.map.gamma
        size = float(np.sum(embedded.axes.deviations**2))
        self.alpha_ = cost.alpha * square_unit(scale, size, float(np.sqrt(size)))
        self.n_iter_ = len(found.best.path)
        self.cluster_weights_ = np.einsum("n,nk->k", cost.shares, p)
        self.n_active_clusters_ = int(np.count_nonzero(self.cluster_weights_ > ACTIVE_SHARE))
        self.cluster_centers_ = measure.restore(means)
        self.information_ = _share(-found.best.objective, self.n_clusters)
        self.labels_ = self._scores(X).argmax(axis=1)
        rows = [{"objective": f, "bound": f, "gap": 0.0, "exploring": 0.0} for f in found.best.path]
        self.trace_ = Trace(rows).scaled(1 / float(np.log(max(self.n_clusters, 2))))

    def _keep_search(self, found: Found[Any]) -> None:
        k = self.n_clusters
        records = tuple(StartRecord(r.source, _share(-r.objective, k), r.n_iter, r.converged) for r in found.records)
        self.search_ = SearchReport(records, OBJECTIVE, "max", note=found.note)

    @property
    def _solution(self) -> str:
        return f"clustering into {counted(self.n_clusters, 'cluster')}"

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Scores (n_clusters,) where all features are zero; without a kernel."""
        check_is_fitted(self)
        if not hasattr(self, "coef_"):
            raise AttributeError("with a kernel there is no intercept at zero features: see level_")
        return np.asarray(self.level_ - np.einsum("kp,p->k", self.coef_, self.center_))

    @property
    def _map(self) -> FeatureMap:
        if not hasattr(self, "dual_coef_"):
            return FeatureMap(self.center_)
        return FeatureMap(self.center_, self.kernel, getattr(self, "gamma_", 0.0), self.landmarks_)

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Return ``log p(z | x)``; a row's answer does not depend on the other rows."""
        coef = self.coef_ if hasattr(self, "coef_") else self.dual_coef_
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.einsum("np,kp->nk", self._map.of(X), coef)
        return np.asarray(log_softmax(np.clip(np.nan_to_num(scores), -1e300, 1e300) + self.level_, axis=1))

    def _checked(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        self._refuse_chunks(X)
        return np.asarray(validate_data(self, X, reset=False, dtype=[np.float64, np.float32], order="C"))

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return the most probable cluster of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self._scores(self._checked(X)).argmax(axis=1))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the soft assignments ``p(z | x)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        return np.asarray(np.exp(self._scores(self._checked(X))))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.intp]:
        """Fit, and return the cluster of each row."""
        return np.asarray(self.fit(X, sample_weight=sample_weight).labels_)

    def certify(self, X: Any, *, sample_weight: Any = None) -> Certificate:
        """Return how much more information any clustering of X by such a classifier could have: a proved bound.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Usually the rows of the fit. With a kernel the bound speaks of classifiers on the features of the fit.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        Certificate
            ``bound``, ``gap``, ``proved`` and, in words, ``sentence``.
        """
        X = self._checked(X)
        weights = check_sample_weight(sample_weight, len(X))
        with one_thread():
            measure = empirical_measure(X.astype(np.float64, copy=False), weights)
            shares = measure.weights / measure.total_weight
            rows, scale = measure.points, measure.scale
            if self.kernel_axes_ is not None:
                values = self._map.of(measure.restore(measure.points))
                rows, scale = np.einsum("nm,mp->np", values, self.kernel_axes_), 1.0
            axes = principal_axes(rows, shares)
            alpha = self.alpha_ * scale**2
            found = information_bound(axes, shares, self.n_clusters, alpha)
            log_p = self._scores(measure.restore(measure.points))
            free = ClusteringCost(axes.coordinates, shares, self.n_clusters, alpha).settled(log_p, log_p)
        information = _share(-(free + self._penalty_of_fit()), self.n_clusters)
        return Certificate(
            _share(found.bound, self.n_clusters), information, found.method, OBJECTIVE, "max", self._solution
        )

    def _penalty_of_fit(self) -> float:
        """Return the penalty of the classifier, in units of information (natural log)."""
        w = self.coef_ if self.kernel_axes_ is None else np.linalg.lstsq(self.kernel_axes_, self.dual_coef_.T)[0]
        return float(np.sum((w * np.sqrt(self.alpha_)) ** 2)) / (2 * self.n_clusters)

    def _summary(self) -> Summary:
        return clustering_summary(self)


def _share(information: float, n_clusters: int) -> float:
    """Return information as a share of its maximum, log K; zero for one cluster, or below rounding."""
    return information / float(np.log(n_clusters)) if n_clusters > 1 and abs(information) > ROUNDING else 0.0


def _means(p: NDArray[np.float64], measure: Measure) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weight and mean of the rows of each cluster; of one without rows, the mean by probabilities."""
    by = np.zeros_like(p)
    by[np.arange(len(p)), p.argmax(axis=1)] = measure.weights
    weights = by.sum(axis=0)
    empty = weights == 0
    by[:, empty] = np.maximum(p[:, empty], 1e-300)
    return weights, np.einsum("nk,np->kp", by / by.sum(axis=0), measure.points)
