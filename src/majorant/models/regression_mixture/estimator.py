"""Mixtures of linear regressions as scikit-learn's users meet them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from majorant._validation import (
    check_choice,
    check_integer,
    check_n_init,
    check_positive,
    check_real,
    check_sample_weight,
    check_verbose,
)
from majorant.engine.chunks import Block
from majorant.engine.loop import Solution
from majorant.engine.policies import BoundPolicy, check_bounds
from majorant.engine.storage import stored_rows
from majorant.evidence.records import Evidence, StartRecord
from majorant.models.regression_mixture.certify import CertifiableLines
from majorant.models.regression_mixture.design import Design, design_in_memory, design_streamed
from majorant.models.regression_mixture.experts.build import units_of
from majorant.models.regression_mixture.experts.em import Problem
from majorant.models.regression_mixture.experts.extras import Extras, check_extras, check_unit_weights, shared_columns
from majorant.models.regression_mixture.experts.fit import fit_experts, given_start
from majorant.models.regression_mixture.experts.outcome import outcome, trimming_threshold
from majorant.models.regression_mixture.experts.units import Units
from majorant.models.regression_mixture.family import RegressionFamily, VarianceRule
from majorant.models.regression_mixture.fit import Fitted, fit_lines
from majorant.models.regression_mixture.information import standard_errors
from majorant.models.regression_mixture.parameters import Regressions
from majorant.models.regression_mixture.race import Run
from majorant.models.regression_mixture.summary import regression_summary
from majorant.models.regression_mixture.words import of_columns, of_dropped, what_would_admit
from majorant.registry import ModelCard, register
from majorant.solvers.responses import RESPONSES, Response
from majorant.summary import Summary

_IN_MEMORY = (
    "rows that are read block by block go with the plain mixture of Gaussian lines (no other family, groups, gating, "
    "shared coefficients, offset, trimming or labels): read them into memory"
)

INITS = ["auto", "moments", "spectral", "random"]


@register(
    ModelCard(
        name="regression-mixture",
        title="mixture of regressions",
        question="Which lines do the rows follow, and which row follows which?",
        kind="regression",
        size_parameter="n_components",
        part="component",
        objective_name="log-likelihood",
        objective_title="log-likelihood",
        objective_attribute="log_likelihood_",
        needs_target=True,
    )
)
class RegressionMixture(RegressorMixin, CertifiableLines):  # type: ignore[misc]
    r"""Mixture of linear regressions whose starts are on record.

    Maximises the weighted log-likelihood

    .. math:: \ell = \sum_i w_i \log \sum_k \pi_k\, N(y_i;\ a_k + x_i^\top b_k,\ \sigma_k^2).

    With variances of their own the likelihood has no maximum: a component on few rows of one line may rise to any
    height. A solution counts (is *regular*) when no two standard deviations are further apart than
    `max_sigma_ratio` and no component is smaller than `min_component_size`; the answer is the best regular solution
    that a race of mixed starts keeps coming back to, and a better one that was left out is named (`excluded_`).

    The fit is a function of the weighted empirical measure and of `random_state`: the order of the rows, and writing a
    row twice instead of weighting it, do not change it, nor does `n_jobs`, to the last bit.

    Parameters
    ----------
    n_components : int, default=2
        Number of lines.
    family : {"gaussian", "poisson", "binomial", "gamma", "student"} or Response, default="gaussian"
        Distribution of the target: with its own link (identity; logarithm for "poisson" and "gamma"; logit for
        "binomial"). A ``majorant.solvers.responses.Response`` of your own may be given.
    variance : {"component", "common"}, default="component"
        Whether every component has a noise variance (dispersion) of its own.
    shared : sequence of str or int, optional
        Columns whose coefficients are the same in all components, by name or number; "intercept" for the intercept.
    trim : float, default=0.0
        Share of the rows, those of least density, that does not count: the trimmed log-likelihood is maximised.
    max_sigma_ratio : float, default=15.0
        Largest ratio of two components' noise standard deviations.
    min_component_size : "auto" or float, default="auto"
        Smallest weight of a component, in units of `sample_weight` (rows). "auto": 5 % of the distinct rows, at least
        p + 2 and at most 5 (p + 1) of them, for lines of p coefficients; with weights, rows of average weight.
    fit_intercept : bool, default=True
    init : {"auto", "moments", "spectral", "random"} or dict, default="auto"
        "auto": rounds of mixed starts that race, moment starts among them where there are rows enough for moments.
        "moments" [2]_, "spectral" [1]_: one start from the moments of the data, spectral only for at most as many
        components as coefficients; where moments leave several open, the one that a few steps of EM make most of.
        "random": `n_init` lines at random, each to the optimum nearest to it. A dict with
        ``coef``, ``intercept``, ``scale`` and ``weights`` (the last two optional): that start.
    n_init : "auto" or int, default="auto"
        Number of random starts (10), where `init` is "random" or `bounds` are given.
    bounds : bound policy, optional
        How bounds are chosen; by default the tightest, which is EM. Given a policy, every start is followed by it.
    beta : float, default=1.0
        Inverse temperature of the responsibilities; infinity assigns every row to one line.
    max_iter : int, default=1000
        Largest number of EM steps of a run.
    tol : float, default=1e-8
        A run has converged when the log-likelihood that is left to gain, by the rate at which its gains shrink, is
        below `tol` a row.
    verbose : int, default=0
        1 shows the runs as they end, on stderr.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, optional
        Threads that work on blocks of rows at a time; -1 for all processors.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components, n_features)
        Slopes, heaviest component first.
    intercept_ : ndarray of shape (n_components,)
    scale_ : ndarray of shape (n_components,)
        Standard deviations of the noise, in units of y.
    weights_ : ndarray of shape (n_components,)
    responsibilities_ : ndarray of shape (n_samples, n_components)
        Probability of each component for each row of the fit.
    log_likelihood_, aic_, bic_, icl_ : float
        BIC and ICL count weights where rows have them; lower is better.
    regular_ : bool
        Whether the solution is a regular one; otherwise the data have none and a warning says why.
    excluded_ : dict or None
        The best solution seen that is better but not regular: its ``log_likelihood``, ``sigma_ratio``,
        ``smallest_component`` (in rows, regular from ``regular_from`` on), and its parameters.
    optima_ : list of dict
        The distinct regular optima, best first: ``log_likelihood``, ``coef``, ``intercept``, ``scale``, ``weights``.
    is_exact_ : bool
        Whether one line fits every row.
    converged_ : bool
    n_iter_ : int
        EM steps of the run that was kept.
    standard_errors_ : dict or None
        Of ``coef``, ``intercept``, ``scale`` and ``weights``, from the observed information; None where it is
        singular.
    n_parameters_ : int
        Free parameters, as the criteria count them.
    center_ : ndarray of shape (n_features,)
        A point amid the rows, about which fits are computed: far from zero an intercept loses digits.
    center_fits_ : ndarray of shape (n_components,)
        Each line there.
    gating_coef_ : ndarray of shape (n_components, n_gating)
        Of the logits of the components against the first, whose are zero.
    gating_intercept_ : ndarray of shape (n_components,)
        Without gating, logits of the weights.
    groups_ : ndarray of shape (n_groups,), or None
        Names of the groups, sorted.
    group_responsibilities_ : ndarray of shape (n_groups, n_components), or None
    trimmed_ : ndarray of shape (n_samples,) of bool
        Rows that were trimmed.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X had column names.
    evidence_ : Evidence
    trace_ : Trace

    References
    ----------
    .. [1] A. Chaganty, P. Liang, "Spectral Experts for Estimating Mixtures of Linear Regressions", ICML 2013,
       algorithm 1.
    .. [2] Least squares on the same moments; see ``majorant.starts``.
    .. [3] F. Leisch, "FlexMix: A General Framework for Finite Mixture Models and Latent Class Regression in R", Journal
       of Statistical Software, 2004.

    Examples
    --------
    >>> import numpy as np, majorant as mj
    >>> x = np.linspace(0, 10, 200)[:, None]
    >>> noise = 0.1 * np.random.default_rng(0).normal(size=200)
    >>> y = np.where(np.arange(200) % 2 == 0, x[:, 0], 5 - x[:, 0]) + noise
    >>> model = mj.RegressionMixture(2, random_state=0).fit(x, y)
    >>> model.coef_.round(2).ravel().tolist()
    [-1.0, 1.0]
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        family: str | Response = "gaussian",
        variance: Literal["component", "common"] = "component",
        shared: Sequence[str | int] | None = None,
        trim: float = 0.0,
        max_sigma_ratio: float = 15.0,
        min_component_size: str | float = "auto",
        fit_intercept: bool = True,
        init: str | Mapping[str, Any] = "auto",
        n_init: str | int = "auto",
        bounds: BoundPolicy | None = None,
        beta: float = 1.0,
        max_iter: int = 1000,
        tol: float = 1e-8,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.family = family
        self.variance = variance
        self.shared = shared
        self.trim = trim
        self.max_sigma_ratio = max_sigma_ratio
        self.min_component_size = min_component_size
        self.fit_intercept = fit_intercept
        self.init = init
        self.n_init = n_init
        self.bounds = bounds
        self.beta = beta
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        gating: Any = None,
        offset: Any = None,
        trials: Any = None,
        component_labels: Any = None,
    ) -> Self:
        """Find the lines.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Chunks
            A memory-mapped array larger than 64 MB, or ``majorant.open_rows(path)``, is read block by block; starts
            then race on a sample.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights, not all zero. With groups a weight is the group's, the same for all its rows.
        groups : array-like of shape (n_samples,), optional
            Names of units that are observed several times: all rows of a group are of one component.
        gating : array-like of shape (n_samples, n_gating), optional
            Columns on which the prior probabilities of the components depend, by a multinomial logit; the same for all
            rows of a group.
        offset : array-like of shape (n_samples,), optional
            Added to every component's linear predictor; exposure is ``offset=np.log(exposure)``.
        trials : array-like of shape (n_samples,), optional
            Numbers of trials where `family` is "binomial"; one by default.
        component_labels : array-like of shape (n_samples,), optional
            Known components, 0 to n_components - 1; -1, NaN or None where unknown. Components then keep these numbers.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data, weights or parameters cannot be used; the message says what to change.
        """
        with self._all_or_nothing():
            self._forget_formula()
            self._check_parameters()
            random = check_random_state(self.random_state)
            source = stored_rows(X)
            if source is None:
                X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], order="C", y_numeric=True)
                y = self._target(y, X.dtype)
                if y.dtype != X.dtype:
                    X = X.astype(np.float64)
                n = len(y)
            else:
                n = self._check_stored(source, reset=True)
                y = self._target(
                    column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64), warn=True), source.dtype
                )
                if len(y) != n:
                    raise ValueError(f"X has {n} rows and y has {len(y)}")
            if n < self.n_components:
                raise ValueError(
                    f"n_samples={n} should be >= n_components={self.n_components}: ask for at most one line a row"
                )
            weights = check_sample_weight(sample_weight, n)
            seed = int(random.randint(2**31))
            extras = check_extras(
                n,
                groups=groups,
                gating=gating,
                offset=offset,
                trials=trials,
                component_labels=component_labels,
                n_components=self.n_components,
                response=self._response,
            )
            if not self._is_plain(extras):
                if source is not None:
                    raise ValueError(_IN_MEMORY)
                return self._fit_general(X, y, weights, extras, seed)
            if source is None:
                design = design_in_memory(X, y, weights, self.fit_intercept, self.n_jobs)
            else:
                source.weights = weights
                design = design_streamed(source, y, self.fit_intercept, seed, self.n_jobs)
            if design.standard.dropped:
                warnings.warn(of_columns(design, self._feature_names()), LinAlgWarning, stacklevel=2)
            fitted = fit_lines(
                design,
                self.n_components,
                self._rule(),
                self._least_mass(design),
                init=self._given(design) if isinstance(self.init, Mapping) else self.init,
                n_init=10 if self.n_init == "auto" else int(self.n_init),
                bounds=self.bounds,
                beta=float(self.beta),
                max_iter=self.max_iter,
                tol=float(self.tol),
                verbose=self.verbose,
                seed=seed,
            )
            self._keep(design, fitted)
            self._keep_criteria(design, fitted.solution.theta)
            self._keep_extras(Extras(), n)
            self.responsibilities_ = self._densities(X if source is None else source, y, extras)[1]
            if fitted.reason:
                warnings.warn(fitted.reason, ConvergenceWarning, stacklevel=2)
        return self

    def _is_plain(self, extras: Extras) -> bool:
        """Whether the fast path for lines with Gaussian noise will do."""
        is_gaussian = isinstance(self.family, str) and self.family == "gaussian"
        return is_gaussian and not self._shared_columns() and self.trim == 0 and extras.is_empty

    def _shared_columns(self) -> tuple[int, ...]:
        """Columns of X with one coefficient for all components; -1 is the intercept."""
        if self.shared is None:
            return ()
        return shared_columns(self.shared, self._feature_names(), fit_intercept=self.fit_intercept)

    def _fit_general(
        self, X: NDArray[Any], y: NDArray[Any], weights: NDArray[np.float64] | None, extras: Extras, seed: int
    ) -> Self:
        """The general path: any family, groups, gating, shared coefficients, offsets, trials, trimming, labels."""
        if self.bounds is not None or self.beta != 1.0:
            raise ValueError(
                "bounds and beta go with the plain mixture of Gaussian lines (no other family, groups, gating, shared "
                "coefficients, offset, trimming or labels): leave them at their defaults"
            )
        if isinstance(self.init, str) and self.init in ("moments", "spectral"):
            raise ValueError(
                f"init={self.init!r} goes with the plain mixture of Gaussian lines (no other family, groups, gating, "
                'shared coefficients, offset, trimming or labels): use "auto" or "random"'
            )
        X, y, response = X.astype(np.float64), y.astype(np.float64), self._response
        check_unit_weights(weights, extras)
        response.check(y, np.ones(len(y)) if extras.trials is None else extras.trials)
        shared = self._shared_columns()
        units = units_of(X, y, weights, extras, response, fit_intercept=self.fit_intercept, shared=shared)
        if units.n_units < self.n_components:
            raise ValueError(
                f"{units.n_units} distinct units do not determine n_components={self.n_components} components: ask for "
                "fewer"
            )
        if units.coordinates.dropped:
            names = [self._feature_names()[j] for j in units.coordinates.dropped]
            warnings.warn(of_dropped(names, fit_intercept=self.fit_intercept), LinAlgWarning, stacklevel=3)
        problem = Problem(response, self._rule(), float(self.trim))
        least_mass = self._least_units(units, response)
        fitted = fit_experts(
            units,
            problem,
            self.n_components,
            least_mass,
            init=given_start(self._given_arrays(units.coordinates.sigma), units, self.n_components)
            if isinstance(self.init, Mapping)
            else self.init,
            n_init=10 if self.n_init == "auto" else int(self.n_init),
            max_iter=self.max_iter,
            tol=float(self.tol),
            verbose=self.verbose,
            seed=seed,
        )
        reorder = not isinstance(self.init, Mapping) and units.labels is None
        for name, value in outcome(units, problem, fitted, least_mass, reorder=reorder).items():
            setattr(self, name, value)
        self._keep_extras(extras, len(y))
        theta = fitted.best.theta
        threshold = trimming_threshold(units, problem, theta) if self.trim > 0 else -np.inf
        self._keep_responsibilities(X, y, extras, threshold)
        if not fitted.is_regular:
            warnings.warn(
                f"no regular solution with {self.n_components} components was found: here {fitted.best.irregular}. Ask "
                'for fewer components, variance="common", or other max_sigma_ratio and min_component_size',
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _least_units(self, units: Units, response: Response) -> float:
        """Smallest weight of a regular component, in units of average weight."""
        if not isinstance(self.min_component_size, str):
            return float(self.min_component_size) / units.unit
        if not response.has_dispersion:
            return 1.0
        p, rows_a_unit = units.n_coefficients, units.n_rows / units.n_units
        low, high = (p + 2) / rows_a_unit, 5 * (p + 1)
        return float(np.clip(0.05 * units.total_weight, max(low, 1.0), max(high, 1.0)))

    def _keep_extras(self, extras: Extras, n: int) -> None:
        """Attributes that concern what was given besides X and y."""
        self.groups_ = extras.group_names
        self.group_responsibilities_: NDArray[np.float64] | None = None
        self.trimmed_ = np.zeros(n, dtype=bool)

    def _keep_responsibilities(
        self, X: NDArray[np.float64], y: NDArray[np.float64], extras: Extras, threshold: float
    ) -> None:
        """Of every row, and of every group; which rows were trimmed."""
        densities, q = self._densities(X, y, extras)
        self.responsibilities_ = q
        if extras.groups is not None:
            self.group_responsibilities_ = q
            self.responsibilities_ = q[extras.groups]
            densities = (densities / np.bincount(extras.groups))[extras.groups]
        self.trimmed_ = densities < threshold

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, low=1)
        if not isinstance(self.family, Response):
            check_choice("family", self.family, list(RESPONSES), or_else=", or a Response")
        if not 0 <= check_real("trim", self.trim, low=0.0) < 0.5:
            raise ValueError(f"trim must be at least 0 and below 0.5; got {self.trim!r}")
        check_choice("variance", self.variance, ["component", "common"])
        check_real("max_sigma_ratio", self.max_sigma_ratio, low=1.0)
        if self.min_component_size != "auto" or not isinstance(self.min_component_size, str):
            check_real("min_component_size", self.min_component_size, low=0.0)
        if isinstance(self.init, Mapping):
            unknown = set(self.init) - {"coef", "intercept", "scale", "weights"}
            if unknown or "coef" not in self.init:
                raise ValueError(
                    "init must have coef and may have intercept, scale and weights; "
                    f"got {', '.join(map(repr, self.init)) or 'nothing'}"
                )
        else:
            check_choice("init", self.init, INITS, or_else=", or a dict of parameters")
        check_n_init(self.n_init)
        check_bounds(self.bounds)
        check_positive("beta", self.beta)
        check_integer("max_iter", self.max_iter, low=1)
        check_real("tol", self.tol, low=0.0)
        check_verbose(self.verbose)

    def _target(self, y: NDArray[Any], dtype: Any) -> NDArray[Any]:
        """y in single precision only where it and X are."""
        single = y.dtype == np.float32 and dtype == np.float32
        return np.ascontiguousarray(y, dtype=np.float32 if single else np.float64)

    def _rule(self) -> VarianceRule:
        return VarianceRule(float(self.max_sigma_ratio), 1e-16, common=self.variance == "common")

    def _least_mass(self, design: Design) -> float:
        """Smallest weight of a regular component, in rows of average weight."""
        if not isinstance(self.min_component_size, str):
            return float(self.min_component_size) / design.unit
        p = design.n_coefficients
        return float(np.clip(0.05 * design.total_weight, p + 2, 5 * (p + 1)))

    def _given_arrays(self, unit: float) -> dict[str, NDArray[np.float64]]:
        """The start that the user gave, checked; noise is by default of size `unit`."""
        assert isinstance(self.init, Mapping)
        k, d = self.n_components, self.n_features_in_
        arrays = {}
        defaults = {"intercept": np.zeros(k), "weights": np.full(k, 1 / k), "scale": np.full(k, unit)}
        for name, shape in (("coef", (k, d)), ("intercept", (k,)), ("scale", (k,)), ("weights", (k,))):
            value = check_array(self.init.get(name, defaults.get(name)), ensure_2d=False, dtype=np.float64)
            if value.shape != shape:
                raise ValueError(f"init[{name!r}] must have shape {shape}; got {value.shape}")
            arrays[name] = value
        if (arrays["weights"] <= 0).any() or (arrays["scale"] <= 0).any():
            raise ValueError("init['weights'] and init['scale'] must be positive")
        return arrays

    def _given(self, design: Design) -> Regressions:
        """The start that the user gave, in the design's coordinates."""
        standard = design.standard
        arrays = self._given_arrays(float(np.exp(standard.log_unit)))
        origin = standard.origin[:-1]
        levels = arrays["intercept"] + np.einsum("kj,j->k", arrays["coef"], origin)
        variances = (arrays["scale"] / np.exp(standard.log_unit)) ** 2
        weights = arrays["weights"] / arrays["weights"].sum()
        return Regressions(weights, standard.of_lines(arrays["coef"], levels), variances)

    def _keep(self, design: Design, fitted: Fitted) -> None:
        """The fitted attributes, in the units of X and y."""
        solution: Solution[Regressions] = fitted.solution
        theta = solution.theta
        if not isinstance(self.init, Mapping):
            theta = theta.taken(theta.heaviest_first())
        parameters = self._in_units(design, theta)
        self.coef_, self.intercept_ = parameters["coef"], parameters["intercept"]
        self.scale_, self.weights_ = parameters["scale"], parameters["weights"]
        exact = design.standard.exact
        self.standard_errors_ = None if exact else standard_errors(design, theta, common=self.variance == "common")
        self.center_ = design.standard.origin[:-1].copy()
        self.center_fits_ = parameters["level"]
        with np.errstate(divide="ignore"):
            self.gating_intercept_ = np.log(self.weights_) - np.log(self.weights_[0])
        self.gating_coef_ = np.zeros((self.n_components, 0))
        self.regular_ = fitted.is_regular
        self.is_exact_ = design.standard.exact
        self.converged_ = bool(solution.converged)
        self.n_iter_ = int(solution.n_iter)
        self.excluded_ = None if fitted.excluded is None else self._excluded(design, fitted.excluded)
        self.optima_ = [
            {"log_likelihood": design.log_likelihood(objective), **self._in_units(design, t.taken(t.heaviest_first()))}
            for objective, t in fitted.optima
        ]
        records = tuple(
            StartRecord(r.source, design.log_likelihood(r.objective), r.n_iter, r.converged) for r in fitted.records
        )
        note = fitted.note
        if self.excluded_ is not None:
            note = f"{note} {what_would_admit(self.excluded_, self.max_sigma_ratio)}".strip()
        self.evidence_ = Evidence(records, "log-likelihood", "max", note=note)
        self.trace_ = solution.trace.shifted(design.constant).scaled(design.unit)

    def _in_units(self, design: Design, theta: Regressions) -> dict[str, NDArray[np.float64]]:
        slopes, levels = design.standard.coefficients(theta.coef)
        origin = design.standard.origin[:-1]
        intercept = levels - np.einsum("kj,j->k", slopes, origin)
        return {
            "coef": slopes,
            "intercept": intercept,
            "level": levels,
            "scale": np.sqrt(theta.variances) * np.exp(design.standard.log_unit),
            "weights": theta.weights.copy(),
        }

    def _excluded(self, design: Design, excluded: Run[Regressions]) -> dict[str, Any]:
        theta = excluded.theta.taken(excluded.theta.heaviest_first())
        return {
            "log_likelihood": design.log_likelihood(excluded.objective),
            "sigma_ratio": theta.sigma_ratio,
            "smallest_component": float(theta.weights.min()) * design.total_weight * design.unit,
            "regular_from": self._least_mass(design) * design.unit,
            **self._in_units(design, theta),
        }

    def _keep_criteria(self, design: Design, theta: Regressions) -> None:
        """Log-likelihood and criteria; on the design, where rows have one order."""
        family = RegressionFamily(theta.n_components, self._rule())

        def visit(block: Block) -> NDArray[np.float64]:
            free, tight = family.tight_pass(theta, block)
            return np.array([free, tight.entropy])

        free, entropy = design.data.map_sum(visit)
        self.log_likelihood_ = design.log_likelihood(float(free))
        k, d = self.coef_.shape
        self.n_parameters_ = k * (d + bool(self.fit_intercept)) + k - 1 + (1 if self.variance == "common" else k)
        self.aic_ = 2 * self.n_parameters_ - 2 * self.log_likelihood_
        self.bic_ = self.n_parameters_ * float(np.log(design.total_weight * design.unit)) - 2 * self.log_likelihood_
        self.icl_ = self.bic_ + 2 * max(float(entropy), 0.0) * design.unit

    def _summary(self) -> Summary:
        return regression_summary(self)
