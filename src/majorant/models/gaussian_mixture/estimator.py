"""Gaussian mixtures as scikit-learn's users meet them."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from majorant._validation import (
    check_choice,
    check_enough_rows,
    check_integer,
    check_n_init,
    check_positive,
    check_real,
    check_sample_weight,
    check_verbose,
    explained,
    levels_to_user,
    validate_data,
)
from majorant.data.rows import Rows, rows_in_memory, rows_streamed, unobserved_message
from majorant.data.storage import stored_rows
from majorant.engine.policies import BoundPolicy, check_bounds
from majorant.models.base import LatentVariableModel
from majorant.models.gaussian_mixture.certify import Certifiable
from majorant.models.gaussian_mixture.density import ACCEPTED
from majorant.models.gaussian_mixture.fitting import Fit, Settings, fit_mixture
from majorant.models.gaussian_mixture.given import INIT_PARAMS, checked_covariances, checked_init, checked_weights
from majorant.models.gaussian_mixture.lifting import lifted
from majorant.models.gaussian_mixture.regularity import Fault
from majorant.models.gaussian_mixture.words import (
    degeneracy,
    degenerate_sentence,
    mixture_summary,
    rank_sentences,
)
from majorant.registry import mixture_card, register
from majorant.search.record import SearchReport
from majorant.solvers.covariance_types import COVARIANCE_TYPES
from majorant.summary import Summary

SMALL_TABLE = 1 << 24
"""Entries up to which float32 rows are fitted in double precision."""


@register(
    mixture_card(
        name="gaussian-mixture",
        title="Gaussian mixture",
        question="Which overlapping groups, each of its own size and shape, do the rows come from?",
        objective_set_by=("beta",),
    )
)
class GaussianMixture(Certifiable, DensityMixin, LatentVariableModel):  # type: ignore[misc]
    r"""A Gaussian mixture whose fit does not depend on a lucky start.

    Maximises the weighted log-likelihood

    .. math:: \ell(\theta) = \sum_i w_i \log \sum_k \pi_k N(x_i; \mu_k, \Sigma_k)

    over its *regular* maxima. The likelihood itself has no bound: a component that collapses on a few rows makes it as
    large as one likes. A solution is regular when every component has at least :math:`2 (d + 1)` rows (3 for
    one column; no rule for "tied") and, along every direction, at least 5e-4 of the pooled within-component variance.

    Takes the parameters of scikit-learn's ``GaussianMixture`` and has its attributes. The units of the columns do not
    matter (for "spherical": their common unit), nor do the order of the rows, writing a row twice instead of weighting
    it, or `n_jobs`.

    Entries may be missing (NaN), at random: what decides which are may depend on the others of their row, but not on
    themselves. Rows then count by the density of their observed entries, and a row without any says nothing.

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        A covariance matrix for each component, one for all, a diagonal or a single variance for each.
    tol : float, default=1e-3
        About how far parameters may still be from a flat maximum, in standard deviations: a climb has converged when
        it can gain no more than ``(tol / 100)**2`` of log-likelihood a row, as its last steps predict it.
    covariance_floor : "auto" or float, default="auto"
        Smallest variance of a component along any direction, as a share of the total variance along it. "auto": the
        floor only tells collapsing components from others; a solution that it decides is no answer while there is a
        regular one.
    reg_covar : float, default=0.0
        Added to the diagonal of every covariance in the last climb, as scikit-learn does, in squared units of X. Not
        needed, and it makes the answer depend on the units.
    max_iter : int, default=200
        Largest number of steps of EM of the last climb, or of each from a start that was chosen. 0 leaves the start as
        it is.
    n_init : "auto" or int, default="auto"
        Number of searches, one by default. Where starts are not left to the search, the number of these: one by
        default, six where `bounds` or `beta` are set.
    init_params : {"auto", "kmeans", "k-means++", "random", "random_from_data"}, default="auto"
        "auto": `n_init` searches, each a race of 24 partitions of six kinds and perturbations of the winner. Otherwise
        EM from `n_init` starts of this kind.
    weights_init, means_init, precisions_init : array-like, optional
        A start, or a part of one, in the shapes of ``weights_``, ``means_`` and ``precisions_``.
    beta : float, default=1.0
        Inverse temperature of the responsibilities; at infinity rows belong to one component (classification EM).
    bounds : bound policy, optional
        How bounds are chosen; by default the tightest, which is EM. ``Tempered(eta=0.1)`` anneals softly.
    random_state : int, RandomState instance or None, default=None
        Seed of starts, perturbations and random bounds.
    warm_start : bool, default=False
        Whether a fit begins at the solution of the last one.
    verbose : int, default=0
        1 shows the runs as they end, on stderr.
    verbose_interval : int, default=10
        Accepted for compatibility.
    n_jobs : int, optional
        Threads that work on blocks of rows at a time; -1 for all processors.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Shares of the components, the largest first unless a start was given.
    means_ : ndarray of shape (n_components, n_features)
    covariances_ : ndarray
        Shape (K, d, d), (d, d), (K, d) or (K,) for "full", "tied", "diag" or "spherical".
    precisions_ : ndarray
        Their inverses.
    precisions_cholesky_ : ndarray
        Upper triangular factors of the precisions.
    log_likelihood_ : float
        Weighted log-likelihood of the rows of the fit; where `beta` is not 1, what was maximised in its place,
        :math:`\sum_i w_i \beta^{-1} \log \sum_k (\pi_k N(x_i; \mu_k, \Sigma_k))^\beta`, which ``score`` is not.
    converged_ : bool
        Whether the last climb ended at its maximum, within `tol`.
    n_iter_ : int
        Steps of EM of the last climb.
    lower_bound_ : float
        Log-likelihood per row of the fit.
    lower_bounds_ : list of float
        The same after every step of the last climb.
    regular_ : bool
        Whether the solution is regular. If none was found, a ConvergenceWarning says why, and ``aic``, ``bic`` and
        ``icl`` are infinite where the floor set the likelihood: no criterion may choose such a fit.
    degeneracy_ : str
        Why the solution is not regular; empty if it is.
    variance_ratios_ : ndarray of shape (n_components,)
        Smallest variance of each component along any direction, as a share of the pooled within-component one there;
        0 where it lies on the floor.
    best_degenerate_ : float or None
        The highest log-likelihood of a degenerate solution that was seen on the way.
    rank_ : int
        Number of directions in which the rows vary (of columns, where "diag"). Other directions get a variance of
        1e-12 of the columns' own.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X had column names.
    search_ : SearchReport
        The runs that were followed to their end; the degenerate ones only if there are no others, else counted in
        its ``note``.
    trace_ : Trace
        Minus the log-likelihood, iteration by iteration.

    See Also
    --------
    KMeans : Hard clusters.
    sklearn.mixture.GaussianMixture : One k-means start, nearest optimum.

    References
    ----------
    .. [1] A. P. Dempster, N. M. Laird, D. B. Rubin, "Maximum likelihood from incomplete data via the EM algorithm",
       Journal of the Royal Statistical Society B, 1977.
    .. [2] R. J. Hathaway, "A constrained formulation of maximum-likelihood estimation for normal mixture
       distributions", Annals of Statistics, 1985.

    Examples
    --------
    >>> import majorant as mj
    >>> from sklearn.datasets import load_iris
    >>> model = mj.GaussianMixture(2, random_state=0).fit(load_iris().data)
    >>> round(model.log_likelihood_, 3)
    -214.355
    >>> model.weights_.round(3)
    array([0.667, 0.333])
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: Literal["full", "tied", "diag", "spherical"] = "full",
        tol: float = 1e-3,
        covariance_floor: str | float = "auto",
        reg_covar: float = 0.0,
        max_iter: int = 200,
        n_init: str | int = "auto",
        init_params: str = "auto",
        weights_init: ArrayLike | None = None,
        means_init: ArrayLike | None = None,
        precisions_init: ArrayLike | None = None,
        beta: float = 1.0,
        bounds: BoundPolicy | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.covariance_floor = covariance_floor
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.beta = beta
        self.bounds = bounds
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.n_jobs = n_jobs

    # Fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the mixture.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks
            Rows. A memory-mapped array larger than 64 MB, or ``majorant.open_rows(path)``, is read block by block; the
            search goes over a sample, the last climb over all.
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

        Warns
        -----
        ConvergenceWarning
            If no regular solution was found, columns are constant or functions of each other, or `max_iter` was
            reached.
        """
        with self._all_or_nothing():
            self._check_parameters()
            random = check_random_state(self.random_state)
            source = stored_rows(X)
            if source is None:
                with explained(X):
                    X = validate_data(self, X, **ACCEPTED)
                (n, d), dtype = X.shape, X.dtype
            else:
                n, dtype = self._check_stored(source, reset=True), source.dtype
                d = source.n_features
            check_enough_rows(n, "n_components", self.n_components, "component")
            settings = self._settings(d)
            if source is None:
                weights = check_sample_weight(sample_weight, n)
                X = X.astype(np.float64, copy=False) if X.size <= SMALL_TABLE else X
                self._refuse_unobserved(X, weights)
                rows = rows_in_memory(X, weights, self.n_jobs)
            else:
                source.weigh(sample_weight)
                rows = rows_streamed(source, int(random.randint(2**31)), self.n_jobs, allow_missing=True)
            precision = _precision(rows, dtype)
            fit = fit_mixture(rows, settings, precision, random)
            order = np.arange(settings.n_components)
            if not settings.is_given:
                order = np.lexsort((*fit.mixture.means.T[::-1], -fit.mixture.weights))
            self._keep(fit, dtype, order)
            self._warn(fit, rows)
        return self

    def _refuse_unobserved(self, X: NDArray[np.floating], weights: NDArray[np.float64] | None) -> None:
        says = ~np.isnan(X) if weights is None else ~np.isnan(X) & (weights > 0)[:, None]
        unobserved = ~says.any(axis=0)
        if unobserved.any():
            raise ValueError(unobserved_message(unobserved, getattr(self, "feature_names_in_", None)))

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, low=1)
        check_integer("max_iter", self.max_iter, low=0)
        check_real("tol", self.tol, low=0.0)
        check_real("reg_covar", self.reg_covar, low=0.0, high=np.finfo(np.float64).max)
        check_choice("covariance_type", self.covariance_type, list(COVARIANCE_TYPES))
        check_choice("init_params", self.init_params, list(INIT_PARAMS))
        if self.covariance_floor != "auto" or not isinstance(self.covariance_floor, str):
            if isinstance(self.covariance_floor, str):
                check_choice("covariance_floor", self.covariance_floor, ["auto"], or_else=", a number")
            check_real("covariance_floor", self.covariance_floor, low=0.0, high=1.0)
        check_n_init(self.n_init)
        check_positive("beta", self.beta)
        check_verbose(self.verbose)
        check_bounds(self.bounds)

    def _settings(self, d: int) -> Settings:
        """The parameters as the fit takes them; a warm start is a given one."""
        k, covariance_type = int(self.n_components), self.covariance_type
        if self.warm_start and hasattr(self, "converged_") and self.means_.shape == (k, d):
            given: Any = (self.weights_, self.means_, self.precisions_)
        else:
            given = (self.weights_init, self.means_init, self.precisions_init)
        weights = checked_weights(given[0], k)
        means = checked_init("means", given[1], (k, d))
        covariances = checked_covariances(given[2], covariance_type, k, d)
        return Settings(
            k,
            covariance_type,
            (float(self.tol) / 100) ** 2,
            None if isinstance(self.covariance_floor, str) else float(self.covariance_floor),
            float(self.reg_covar),
            int(self.max_iter),
            None if isinstance(self.n_init, str) else int(self.n_init),
            self.init_params,
            weights,
            means,
            covariances,
            float(self.beta),
            self.bounds,
            int(self.verbose),
        )

    def _keep(self, fit: Fit, dtype: Any, order: NDArray[np.intp]) -> None:
        """The fitted attributes, in the units of X."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):  # refused below
            found = lifted(fit.mixture, fit.coordinates, order)
        found.refuse_overflow()
        # Squares of float32 numbers may lie outside the range of float32: double precision is kept then.
        number = dtype if found.fits(dtype) else np.float64
        self.weights_ = found.weights.astype(number)
        self.means_ = found.means.astype(number)
        self.covariances_ = found.covariances.astype(number)
        self.precisions_cholesky_ = found.precisions_cholesky.astype(number)
        self.precisions_ = found.precisions.astype(number)
        self.log_likelihood_ = fit.log_likelihood
        self.converged_ = bool(fit.converged)
        self.n_iter_ = len(fit.log_likelihoods)
        self.lower_bound_ = fit.log_likelihood / fit.total_weight
        self.lower_bounds_ = [v / fit.total_weight for v in fit.log_likelihoods]
        self.regular_ = fit.regularity.fault is Fault.NONE
        self.degeneracy_ = degeneracy(fit.regularity.ordered(order))
        self.variance_ratios_ = np.maximum(fit.regularity.ratios, 0.0)[order]
        self.best_degenerate_ = fit.best_degenerate
        self.rank_ = fit.coordinates.rank
        note = fit.note
        if fit.best_degenerate is not None and self.regular_ and fit.best_degenerate > fit.log_likelihood:
            note = f"{note} A degenerate solution had a log-likelihood of {fit.best_degenerate:.6g}.".strip()
        self.search_ = SearchReport(fit.records, "log-likelihood", "max", note=note)
        self.trace_ = fit.trace

    def _warn(self, fit: Fit, rows: Rows) -> None:
        names = getattr(self, "feature_names_in_", None)
        said = rank_sentences(fit.frames, self.covariance_type, names)
        n_distinct = rows.measure.n_points
        if not rows.is_stream and n_distinct < self.n_components:
            said.append(
                f"X has only {n_distinct} distinct rows with weight, fewer than n_components={self.n_components}."
            )
        if not self.regular_:
            said.append(degenerate_sentence(self.degeneracy_, self.n_components, self.covariance_type))
        if not self.converged_ and self.max_iter > 0:
            said.append(f"The last climb did not converge in max_iter={self.max_iter} iterations: raise it, or tol.")
        for sentence in said:
            warnings.warn(sentence, ConvergenceWarning, stacklevel=levels_to_user())

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.intp]:
        """`fit`, and the component of each row."""
        return self.fit(X, sample_weight=sample_weight).predict(X)

    # Reports

    def _summary(self) -> Summary:
        return mixture_summary(self, self._mixture(), self._feature_names())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _precision(rows: Rows, dtype: Any) -> float:
    """Rounding of the numbers of X, as a share of their columns' spread: the worst column's."""
    measure = rows.measure
    spread = np.sqrt(rows.variances)
    size = np.fmax.reduce(np.abs(measure.points + measure.origin * measure.scale), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = np.fmax.reduce(np.where(spread > 0, size / spread, 1.0), initial=1.0)
    return float(min(np.finfo(dtype).eps * worst, 1e-3))
