"""The Gaussian mixture estimator."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from majorant._validation import (
    check_choice,
    check_enough_rows,
    check_integer,
    check_n_init,
    check_positive,
    check_real,
    check_verbose,
    warn_of_one_start,
)
from majorant.data.chunks import Chunks
from majorant.data.storage import StoredRows
from majorant.engine.checkpoint import entered
from majorant.engine.descent import Ends, descend
from majorant.engine.mixture import OnData
from majorant.engine.policies import BoundPolicy, check_bounds
from majorant.engine.trace import touching
from majorant.laws import Independent
from majorant.models.gaussian_mixture.contest import GaussianContest, Theta
from majorant.models.gaussian_mixture.fitted import FittedGaussianMixture
from majorant.models.gaussian_mixture.given import (
    INIT_PARAMS,
    Given,
    checked_init,
    checked_precisions,
    checked_weights,
    chosen_starts,
)
from majorant.models.gaussian_mixture.lifting import lifted
from majorant.models.gaussian_mixture.regularity import LEAST_RATIO, Fault
from majorant.models.gaussian_mixture.rows import StandardRows, in_memory, streamed
from majorant.models.gaussian_mixture.search import contest_of, on_all_rows, search, tried, winner
from majorant.models.gaussian_mixture.words import (
    components_block,
    degeneracy,
    few_valued,
    few_valued_sentence,
    missing_sentence,
    rank_sentences,
    simpler_types,
)
from majorant.models.mixture import MixtureEstimator
from majorant.models.mixture_rows import estimates_of_law
from majorant.models.mixture_summary import mixture_summary
from majorant.models.undetermined_covariances import WIDEST, of_repeated, refuse_wide
from majorant.registry import mixture_card, register
from majorant.search.contestants import Found, NamedStart, Run, found_of
from majorant.search.effort import EFFORTS, Effort
from majorant.solvers.covariance_types import COVARIANCE_TYPES, COVARIANCES
from majorant.solvers.gaussian import Array
from majorant.summary import Fact, Summary, counted

NARROWINGS = 4
"""Most floors, each on the covariance within the components that the one before held, under which a start is run."""

SMALL_TABLE = 1 << 24
"""Entries up to which float32 rows are fitted in double precision."""


@register(
    mixture_card(
        name="gaussian-mixture",
        title="Gaussian mixture",
        question="Which overlapping groups, each of its own size and shape, do the rows come from?",
        objective_set_by=("beta",),
        directions_attribute="rank_",
        shapes={
            "weights_": "k",
            "means_": "kd",
            "covariances_": "full:kdd tied:dd diag:kd spherical:k",
            "precisions_cholesky_": "full:kdd tied:dd diag:kd spherical:k",
            "gating_coef_": "kh",
        },
    )
)
class GaussianMixture(FittedGaussianMixture, MixtureEstimator):
    r"""A Gaussian mixture, fitted by a search for the best regular optimum.

    Maximises the weighted log-likelihood

    .. math:: \ell(\theta) = \sum_i w_i \log \sum_k \pi_k N(x_i; \mu_k, \Sigma_k)

    over its *regular* maxima. The likelihood itself has no bound: a component that collapses on a few rows makes it as
    large as one likes. A solution is regular when every component has at least :math:`2 (d + 1)` rows (3 for
    one column; no rule for "tied") and, along every direction, at least 5e-4 of the pooled within-component variance.

    Takes the parameters of scikit-learn's ``GaussianMixture`` and has its attributes. The units of the columns do not
    matter (for "spherical": their common unit), nor do the order of the rows, writing a row twice instead of weighting
    it, or `n_jobs`.

    Entries may be missing (NaN), at random: what decides which are may depend on the others of their row, but not on
    themselves. Rows then count by the density of their observed entries; rows without any are ignored.

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        A covariance matrix for each component, one for all, a diagonal or a single variance for each.
    tol : float, default=1e-3
        About how far parameters may still be from a flat maximum, in standard deviations: EM has converged when its
        last steps predict a gain of no more than ``(tol / 100)**2`` in log-likelihood per row.
    covariance_floor : "auto" or float, default="auto"
        Smallest variance of a component along any direction, as a share of the total variance along it. "auto": the
        floor only identifies collapsing components; a solution that it decides is not returned while there is a
        regular one.
    reg_covar : float, default=0.0
        Added to the diagonal of every covariance in the last EM run, as scikit-learn does, in squared units of X. Not
        needed, and it makes the answer depend on the units.
    max_iter : int, default=2000
        Largest number of EM steps of each run. 0 leaves a start that was chosen as it is.
    n_init : "auto" or int, default="auto"
        "auto" searches, or begins at one start where that was chosen, at six where `bounds` or `beta` are set. A number
        is that of independent starts, each run to convergence, and nothing else, as in scikit-learn.
    init_params : {"auto", "kmeans", "k-means++", "random", "random_from_data"}, default="auto"
        "auto": a race of 24 partitions of six kinds, then perturbations of the winner and recombinations of the best
        solutions; fewer where rows times parameters are over 2,000,000; `n_init` of these partitions if it is a number.
        Otherwise EM from starts of this kind.
    effort : {"fast", "default", "best"}, default="default"
        How long a search goes on: one round of starts; until the best solution keeps coming back; up to five times
        as long.
    weights_init, means_init, precisions_init : array-like, optional
        A start, or a part of one, in the shapes of ``weights_``, ``means_`` and ``precisions_``.
    beta : float, default=1.0
        Inverse temperature of the responsibilities; at infinity rows belong to one component (classification EM).
    bounds : bound policy, optional
        How bounds are chosen; by default the tightest, which is EM. ``Tempered(eta=0.1)`` anneals softly.
    random_state : int, RandomState instance or None, default=None
        Seed of starts, perturbations and random bounds.
    warm_start : bool, default=False
        Whether a fit begins at the solution of the last one, if that was of estimates of the same shapes.
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
    gating_coef_ : ndarray of shape (n_components, 1 + n_covariates)
        With `gating`: logits of the weights against the first component, a constant and then covariates in standard
        deviations from their mean, ``(gating - gating_center_) / gating_scale_``.
    gating_center_, gating_scale_ : ndarray of shape (n_covariates,)
    log_likelihood_ : float
        Weighted log-likelihood of the rows of the fit; where `beta` is not 1, what was maximised in its place,
        :math:`\sum_i w_i \beta^{-1} \log \sum_k (\pi_k N(x_i; \mu_k, \Sigma_k))^\beta`, which ``score`` is not.
    converged_ : bool
        Whether the last EM run converged, within `tol`; False where a covariance collapses, as the likelihood then has
        no maximum.
    n_iter_ : int
        Steps of the last EM run.
    lower_bound_ : float
        Log-likelihood per row of the fit.
    lower_bounds_ : list of float
        The same after every step of the last EM run.
    regular_ : bool
        Whether the solution is regular. If none was found, a ConvergenceWarning says why, and ``aic``, ``bic`` and
        ``icl`` are infinite where the floor set the likelihood: no criterion may choose such a fit.
    degeneracy_ : str
        Why the solution is not regular; empty if it is.
    variance_ratios_ : ndarray of shape (n_components,)
        Smallest variance of each component along any direction, as a share of the pooled within-component one there;
        0 where it lies on the floor.
    best_degenerate_ : float or None
        The highest log-likelihood of a degenerate solution met in the search.
    rank_ : int
        Number of directions in which the rows vary (of columns, where "diag"). Other directions get a variance of
        1e-12 of the columns' own.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X had column names.
    search_ : SearchReport
        The runs that converged; the degenerate ones only if there are no others, else counted in
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

    keeps_single = True
    few_valued_: Sequence[Sequence[int]] = ()  # columns, and how many values each holds

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: Literal["full", "tied", "diag", "spherical"] = "full",
        tol: float = 1e-3,
        covariance_floor: str | float = "auto",
        reg_covar: float = 0.0,
        max_iter: int = 2000,
        n_init: str | int = "auto",
        init_params: str = "auto",
        effort: Effort = "default",
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
        self.effort = effort
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

    @property
    def _tolerance(self) -> float:
        return (float(self.tol) / 100) ** 2

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, low=1)
        check_integer("max_iter", self.max_iter, low=0)
        check_real("tol", self.tol, low=0.0)
        check_integer("verbose_interval", self.verbose_interval, low=1)
        check_real("reg_covar", self.reg_covar, low=0.0, high=np.finfo(np.float64).max)
        check_choice("covariance_type", self.covariance_type, list(COVARIANCE_TYPES))
        check_choice("init_params", self.init_params, list(INIT_PARAMS))
        if self.covariance_floor != "auto" or not isinstance(self.covariance_floor, str):
            if isinstance(self.covariance_floor, str):
                check_choice("covariance_floor", self.covariance_floor, ["auto"], or_else=", a number")
            check_real("covariance_floor", self.covariance_floor, low=0.0, high=1.0)
        check_n_init(self.n_init)
        check_choice("effort", self.effort, list(EFFORTS))
        check_positive("beta", self.beta)
        check_verbose(self.verbose)
        check_bounds(self.bounds)

    def _given(self) -> Given:
        """Return the parts of a start that the user gave, checked."""
        k, d, kind = int(self.n_components), self.n_features_in_, COVARIANCES[self.covariance_type]
        if self.warm_start and self._has_fit_of(kind.shape(k, d)):
            known = self._mixture()
            return Given(known.weights, known.means, known.covariances, source="warm start")
        return Given(
            checked_weights(self.weights_init, k),
            checked_init("means", self.means_init, (k, d)),
            checked_precisions(self.precisions_init, kind, k, d),
        )

    def _has_fit_of(self, shape: tuple[int, ...]) -> bool:
        """Return whether there is a fit with covariances of this shape and of the present type."""
        return (
            hasattr(self, "covariances_")
            and self.covariances_.shape == shape
            and self._kind.name == self.covariance_type
        )

    def _numbers(self, X: NDArray[Any]) -> NDArray[Any]:
        return X.astype(np.float64, copy=False) if X.size <= SMALL_TABLE else X

    def _rows_streamed(
        self, source: StoredRows, sample_weight: Any, draws: np.random.Generator
    ) -> tuple[StandardRows, Any, Chunks]:
        check_enough_rows(self._check_stored(source, reset=True), "n_components", self.n_components, "component")
        source.weigh(sample_weight)
        rows = streamed(source, int(draws.integers(2**31)), self.n_jobs)
        return rows, Independent(), rows.data

    def _fit(self, law: Any, rows: Any, data: Chunks, draws: np.random.Generator) -> None:
        standard = rows if isinstance(rows, StandardRows) else in_memory(rows, law, self.n_jobs)
        super()._fit(law, standard, standard.data, draws)
        if (self.variance_ratios_ < LEAST_RATIO).any() and self.covariance_floor == "auto" and not self.reg_covar:
            self.converged_ = False  # the likelihood has no maximum there

    @property
    def _is_left_to_search(self) -> bool:
        return self.init_params == "auto" and self._given().is_empty and not self._is_bounded

    def _ended(
        self, contest: Any, rows: Any, data: Chunks, draws: np.random.Generator
    ) -> tuple[Any, Found[Theta], Ends[Theta], OnData]:
        """Run from a chosen start that the floor on the total covariance held again, with one on that within groups."""
        begun = deepcopy(draws)
        best = ended = super()._ended(contest, rows, data, draws)
        told, trace = self._rank(*ended), self.trace_
        for _ in range(NARROWINGS):
            contest, found, ends, _ = ended
            seen, theta = contest.best_degenerate, ends.theta
            if not theta.density.floored.any() and seen is not None and seen.objective < found.best.objective:
                theta = seen.theta
            narrowed = None if self._is_left_to_search or self.reg_covar else contest.narrowed(theta)
            if narrowed is None:
                break
            ended = super()._ended(narrowed[0], rows, data, deepcopy(begun))
            if (rank := self._rank(*ended)) > told:
                best, told, trace = ended, rank, self.trace_
        self.trace_ = trace
        return best

    @staticmethod
    def _rank(contest: Any, found: Found[Theta], ends: Ends[Theta], on: OnData) -> tuple[bool, float]:
        """Return whether an end counts, and the log-likelihood on the rows of the search."""
        return not contest.judged(ends), contest.shown(
            float(ends.objective[0]) * contest.total_weight / on.total_weight
        )

    def _contest(self, law: Any, rows: Any, data: Chunks, draws: np.random.Generator) -> GaussianContest:
        refuse_wide(self._matrices(), data.n_units, WIDEST)
        return contest_of(
            rows,
            law,
            COVARIANCES[self.covariance_type],
            draws,
            n_components=int(self.n_components),
            beta=float(self.beta),
            covariance_floor=None if isinstance(self.covariance_floor, str) else float(self.covariance_floor),
            tol=self._tolerance,
            max_iter=int(self.max_iter),
            effort=self.effort,
            n_init=self.n_init,
            n_jobs=self.n_jobs,
        )

    def _chosen_starts(self, contest: Any, draws: np.random.Generator) -> list[NamedStart[Any]]:
        given = self._given()
        if given.source == "warm start" and hasattr(self, "gating_coef_"):
            given = replace(given, law=self._law_before(contest.mixture.law))
        if given.is_empty and self.init_params == "auto" and self.max_iter > 0:
            return []
        is_one = given.means is not None and self.bounds is None  # from given means nothing is drawn but bounds
        if is_one and given.source == "given":
            warn_of_one_start(self.n_init)
        n_starts = 1 if is_one or isinstance(self.n_init, str) or self.max_iter == 0 else int(self.n_init)
        seeds = draws.integers(2**31, size=n_starts).tolist()
        return list(chosen_starts(contest, self.init_params, given, seeds))

    def _searched(self, contest: Any, draws: np.random.Generator) -> tuple[Any, Found[Theta]]:
        if contest.coordinates.rank == 0:
            theta = contest.one_point().theta
            return contest, replace(found_of([Run("all rows", theta, theta, 0.0)]), records=())
        return super()._searched(contest, draws)

    def _raced(self, contest: Any, draws: np.random.Generator) -> tuple[Any, Found[Theta]]:
        return winner(search(contest, draws, int(self.verbose)))

    def _by_bounds(self, contest: Any, rows: Any, data: Chunks, draws: np.random.Generator) -> Found[Theta]:
        if contest.coordinates.rank == 0:
            return self._searched(contest, draws)[1]
        return super()._by_bounds(contest, rows, data, draws)

    def _on_all_rows(self, contest: Any, rows: Any, data: Chunks) -> OnData:
        return on_all_rows(contest, rows, float(self.reg_covar), self.covariance_floor == "auto", self.n_jobs)

    def _ends(self, contest: Any, found: Found[Theta], on: OnData) -> Ends[Theta]:
        """Return the ends of the runs; `reg_covar` uses scikit-learn's M-step, which minimises no bound."""
        if contest.coordinates.rank == 0:
            ends: Ends[Theta] = contest.one_point()
        elif self.reg_covar:
            start, tol, max_iter = found.best.theta, self._tolerance, int(self.max_iter)
            entry = entered(loop="mixture", start=start, rows=on.data.n_units, tol=tol, max_iter=max_iter)
            ends = descend(on, start, tol=tol, max_iter=max_iter, accelerate=False, entry=entry)
        else:
            return super()._ends(contest, tried(contest, found, on), on)
        self.trace_ = touching(ends.paths[0] or ends.objective.tolist())
        return ends

    # The fitted attributes

    def _keep(self, contest: Any, found: Found[Theta], ends: Ends[Theta], on: OnData, rows: Any) -> None:
        super()._keep(contest, found, ends, on, rows)
        self.n_parameters_ = replace(on.mixture, density=self._density()).n_parameters  # still directions count too
        if self.max_iter == 0 and self._given().is_whole and not rows.is_stream and not hasattr(self, "gating_coef_"):
            x, weights = rows.points / rows.scale + rows.origin, rows.weights
            if contest.coordinates.rank < x.shape[1] and not self.is_grouped_ and not self.is_labelled_:
                self.log_likelihood_ = float(weights @ self.score_samples(x))
        self.lower_bound_ = self.log_likelihood_ / on.total_weight
        self.lower_bounds_ = (-self.trace_["objective"] / on.total_weight).tolist()
        self.rank_ = contest.coordinates.rank
        if rows.n_missing:
            self.search_ = replace(self.search_, certain="")

    def _keep_estimates(self, contest: Any, theta: Any, shares: Array, order: NDArray[np.intp]) -> None:
        """Set the estimates, in the units of X."""
        rows, kind = contest.rows, contest.kind
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):  # refused below
            mixture = contest.model.mixture(theta.density, 0, shares)
            found = lifted(mixture, contest.coordinates.in_units(rows.scale, rows.origin), order)
        found.refuse_overflow()
        # Squares of float32 numbers may lie outside the range of float32: double precision is kept then.
        number = rows.dtype if found.fits(rows.dtype) else np.float64
        of_law = estimates_of_law(contest.mixture.law, theta.law, order)
        for name, values in of_law.items():
            setattr(self, f"{name}_", values)
        self._set(found, number)
        self.estimate_names_ = [*of_law, "means", "covariances"]
        given = self._given()
        if self.max_iter == 0 and given.is_whole:  # as it is, not as it came back from other coordinates
            self._set(given.lifted(kind), number)

    def _degeneracy(self, contest: Any, ends: Ends[Theta], order: NDArray[np.intp]) -> str:
        found, seen = contest.regularity(ends).ordered(order), contest.best_degenerate
        self.variance_ratios_ = np.maximum(found.ratios, 0.0)
        unit = contest.rows.data.total_weight / contest.total_weight
        self.best_degenerate_ = None if seen is None else unit * contest.shown(seen.objective)
        self.dependent_ = self.constant_ = []  # what the columns do not vary in is left out of the fit
        self.few_valued_ = few_valued(contest.rows) if found.fault is Fault.FLOORED or seen is not None else []
        if found.fault is not Fault.FLOORED or self.few_valued_:
            return degeneracy(found)
        return degeneracy(found) + of_repeated(self._feature_names(), contest.rows.points, contest.rows.weights)

    def _note(self, contest: Any, found: Found[Theta], on: OnData, rows: Any) -> str:
        note = super()._note(contest, found, on, rows)
        if len(contest.weights) < on.data.n_units:
            note += f" The search went over {len(contest.weights)} of {on.data.n_units} rows, the last EM run over all."
        if rows.n_missing:
            note += f" {missing_sentence(rows, contest.is_filled)}"
        if self.best_degenerate_ is not None and self.regular_ and self.best_degenerate_ > self.log_likelihood_:
            note += f" A degenerate solution had a log-likelihood of {self.best_degenerate_:.6g}."
        return note

    def _warnings(self, contest: Any) -> list[str]:
        said, n_distinct = super()._warnings(contest), len(contest.rows.weights)
        if not contest.rows.is_stream and n_distinct < self.n_components:
            rows = counted(n_distinct, "distinct row")
            few = f"X has only {rows} with weight, fewer than n_components={self.n_components}."
            said = [few, *said]
        return rank_sentences(contest.frames, contest.kind, self._names, contest.rows) + said

    def _advice(self) -> str:
        simpler = "" if self._kind.name in ("tied", "spherical") else ", or a simpler covariance_type"
        said = super()._advice() + simpler
        return f"{said}. {few_valued_sentence(self.few_valued_, self._names)}" if self.few_valued_ else said

    @property
    def _names(self) -> Sequence[str] | None:
        return getattr(self, "feature_names_in_", None)

    def _summary(self) -> Summary:
        if not hasattr(self, "search_"):
            parts = components_block(self._mixture(), self._feature_names())
            return Summary("Gaussian mixture, not fitted", counted(self.n_features_in_, "feature"), [parts], [])
        facts = [Fact("a row", self.lower_bound_, 4), Fact("covariances", self._kind.name)]
        parts, k, d = components_block(self._mixture(), self._feature_names()), len(self.weights_), self.rank_
        own = 1 + d + self._kind.n_parameters(2, d) - self._kind.n_parameters(1, d)
        return mixture_summary(self, facts, [parts], own=own, simpler=simpler_types(self._kind, k, d))
