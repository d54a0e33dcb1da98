"""The estimator of mixtures of linear regressions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from majorant._validation import check_enough_rows, check_sample_weight, levels_to_user, seed_of, validate_data
from majorant.data.storage import is_dask, stored_rows
from majorant.engine.policies import BoundPolicy
from majorant.models.formula_estimator import taking_text
from majorant.models.mixture_rows import refuse_beside_stream
from majorant.models.regression_mixture.certify import CertifiableLines
from majorant.models.regression_mixture.extras import Extras, check_extras
from majorant.models.regression_mixture.fit import fit as fit_units
from majorant.models.regression_mixture.settings import check_parameters
from majorant.models.regression_mixture.summary import regression_summary
from majorant.registry import ModelCard, register
from majorant.search.effort import Effort
from majorant.solvers.responses import Response
from majorant.summary import Summary

KEPT_BYTES = 1 << 25
"""Responsibilities of more bytes are not kept of rows that are streamed."""


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
        estimates=("coef_", "intercept_", "scale_", "weights_", "gating_coef_", "gating_intercept_"),
        shapes={
            "weights_": "k",
            "coef_": "kd",
            "intercept_": "k",
            "scale_": "k",
            "center_": "d",
            "center_fits_": "k",
            "gating_coef_": "kg",
            "gating_intercept_": "k",
        },
        objective_set_by=("beta", "family", "trim"),
        needs_target=True,
    )
)
class RegressionMixture(CertifiableLines):
    r"""A mixture of linear or generalised linear regressions, fitted by a search for the best regular optimum.

    Maximises the weighted log-likelihood

    .. math:: \ell = \sum_i w_i \log \sum_k \pi_k\, N(y_i;\ a_k + x_i^\top b_k,\ \sigma_k^2),

    and in general, for units u (groups, or single rows) with rows i and gating columns g,

    .. math:: \ell = \sum_u w_u \log \sum_k \pi_k(g_u) \prod_{i \in u} f(y_i;\ o_i + a_k + x_i^\top b_k,\ \phi_k),
        \qquad \pi_k(g) \propto e^{\alpha_k + g^\top \gamma_k},

    where f is the `family`'s density given its linear predictor, constants included, o the offset, and
    :math:`\phi` its dispersion; entries of a and b may be shared by all components.

    With variances of their own the likelihood has no maximum: a component on few rows of one line may rise to any
    height. A solution counts (is *regular*) when no two standard deviations are further apart than
    `max_sigma_ratio` and no component is smaller than `min_component_size`; the answer is the best regular solution
    that a search from mixed starts keeps returning to, and a better one that was excluded is named (`excluded_`).

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
        Share of rows, of least density, that is ignored: the trimmed log-likelihood is maximised.
    max_sigma_ratio : float, default=15.0
        Largest ratio of two components' noise standard deviations (roots of dispersions).
    min_component_size : "auto" or float, default="auto"
        Smallest weight of a component, in units of `sample_weight` (rows). "auto": 5 % of the rows, at least p + 2 and
        at most 5 (p + 1) of them, for lines of p coefficients; whole weights count rows, others rows of average weight.
        With groups, groups. Of counts 5 %, at least one and at most two rows (groups); p + 2 where the predictor of a
        component runs to infinity (separation).
    fit_intercept : bool, default=True
        Whether every line has an intercept.
    init : {"auto", "moments", "spectral", "random"} or dict, default="auto"
        "auto": rounds of mixed starts that race, on samples where rows are many.
        "moments" [2]_, "spectral" [1]_: one start from the moments of the data, spectral only for at most as many
        components as coefficients; where moments leave several open, the one that a few steps of EM make most of. With
        `gating` "moments" finds the polynomial that is zero on all lines, whatever the weights of a row.
        "random": `n_init` lines at random, each to the optimum nearest to it. A dict with
        ``coef``, ``intercept``, ``scale``, ``weights``, ``gating_coef`` and ``gating_intercept`` (all but the first
        optional): that start.
    n_init : "auto" or int, default="auto"
        "auto" searches, or makes ten starts where `init` is "random" or `bounds` are given. A number is that of
        independent starts, each run to convergence, and nothing else; moments and given lines are one start.
    effort : {"fast", "default", "best"}, default="default"
        How long a search goes on: one round of starts; until the best solution keeps coming back; up to five times
        as long.
    bounds : bound policy, optional
        How bounds are chosen; by default the tightest, which is EM. Given a policy, every start is followed by it.
        Other policies than `Tightest` are for the plain mixture of Gaussian lines.
    beta : float, default=1.0
        Inverse temperature of the responsibilities; infinity assigns every row to one line. For the plain mixture of
        Gaussian lines.
    max_iter : int, default=1000
        Largest number of EM steps of a run.
    tol : float, default=1e-8
        A run has converged when the log-likelihood that is left to gain, by the rate at which its gains shrink, is
        below `tol` a row.
    verbose : int, default=0
        1 shows the runs as they end, on stderr.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and of random bounds.
    n_jobs : int, optional
        Threads that work on blocks of rows at a time; -1 for all processors.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components, n_features)
        Slopes, heaviest component first (in the order of the labels or of the given start, where there are any);
        shared ones in every row.
    intercept_ : ndarray of shape (n_components,)
    scale_ : ndarray of shape (n_components,)
        Standard deviations of the noise, in units of y: roots of the dispersions. Of "gamma" coefficients of variation;
        one of "poisson" and "binomial".
    weights_ : ndarray of shape (n_components,)
        With gating, means of the priors.
    responsibilities_ : ndarray of shape (n_samples, n_components), or None
        Probability of each component for each row of the fit; None, as is `trimmed_`, for rows read block by block
        where it would take more than 32 MB: `predict_proba` makes it.
    log_likelihood_, aic_, bic_, icl_ : float
        BIC and ICL count rows, not groups, as flexmix does, and weights where rows have them; lower is better.
    regular_ : bool
        Whether the solution is a regular one; otherwise no regular one was found, and a warning says why.
    degeneracy_ : str
        That warning; empty where the solution is a regular one.
    separated_ : str
        Which gating columns separate the components, and along which columns the line of a component separates its
        rows, so that coefficients run to infinity; empty where none do.
    excluded_ : dict or None
        The best solution found that is better but not regular: its ``log_likelihood``, ``sigma_ratio``,
        ``smallest_component`` (in rows, groups or `sample_weight`, regular from ``regular_from`` on; in words
        ``size``), ``reason`` and its parameters.
    optima_ : list of dict
        The distinct regular optima, best first: ``log_likelihood``, ``coef``, ``intercept``, ``scale``, ``weights``.
    is_exact_ : bool
        Whether one line fits every row; of a gamma family this is asked of rows in memory only.
    converged_ : bool
    n_iter_ : int
        EM steps of the run that was kept.
    standard_errors_ : dict or None
        Standard errors by parameter name, from the observed information; None where there are none, see
        `standard_errors`. Of rows in memory they are computed when they are asked for.
    n_parameters_ : int
        Free parameters, as the criteria count them: columns that are combinations of others have no coefficients.
    center_ : ndarray of shape (n_features,)
        A point amid the rows, about which fits are computed: far from zero an intercept loses digits.
    center_fits_ : ndarray of shape (n_components,)
        Each line there.
    gating_coef_ : ndarray of shape (n_components, n_gating)
        Of the logits of the components against the first, whose are zero.
    gating_intercept_ : ndarray of shape (n_components,)
        Without gating, logits of the weights.
    gating_names_in_ : ndarray of shape (n_gating,), or None
        Where gating had column names.
    groups_ : ndarray of shape (n_groups,), or None
        Names of the groups, sorted.
    group_responsibilities_ : ndarray of shape (n_groups, n_components), or None
    trimmed_ : ndarray of shape (n_samples,) of bool
        Rows that were trimmed.
    n_rows_ : float
        Rows of the fit: the sum of weights that are whole numbers, as of repeats; with others, rows with any weight.
    n_samples_fit_ : int or None
        Rows of the fit where `responsibilities_` are not kept.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X had column names; by a formula the names of its terms.
    formula_ : Formula
        After `from_formula` or `fit_formula`: data frames then go through it.
    search_ : SearchReport
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

    Counts of 30 machines of two kinds, each seen ten times for hours of its own:

    >>> random = np.random.default_rng(1)
    >>> machine, speed, hours = np.repeat(np.arange(30), 10), random.normal(size=300), random.uniform(1, 5, 300)
    >>> rate = np.where(machine % 3 == 0, np.exp(1 + 0.5 * speed), np.exp(-1 - 0.5 * speed))
    >>> faults = random.poisson(hours * rate)
    >>> model = mj.RegressionMixture(2, family="poisson", random_state=0)
    >>> model = model.fit(speed[:, None], faults, groups=machine, offset=np.log(hours))
    >>> model.weights_.round(2).tolist(), model.coef_.round(1).ravel().tolist()
    ([0.67, 0.33], [-0.4, 0.5])
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
        effort: Effort = "default",
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
        self.effort = effort
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
        y: Any = None,
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
            A memory-mapped array larger than 64 MB, ``majorant.open_rows(path)`` and a Dask collection are read block
            by block; starts then race on a sample. Not with `gating`, `component_labels` or `trim`.
        y : array-like of shape (n_samples,)
            To be left out where X was opened with a target column.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights, not all zero. With groups a weight is the group's, the same for all its rows.
        groups : array-like of shape (n_samples,), optional
            Names of units that are observed several times: all rows of a group are of one component. Of rows that are
            read block by block a group must lie together in a file, and in one partition of a Dask collection.
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

        Warns
        -----
        ConvergenceWarning
            If no regular solution was found, or `max_iter` was reached.
        LinAlgWarning
            If coefficients are not unique.
        """
        with self._all_or_nothing():
            self._forget_formula(X)
            check_parameters(self)
            seed = seed_of(self.random_state)
            source = stored_rows(X)
            if source is None:
                kinds: Any = {"dtype": [np.float64, np.float32], "order": "C", "y_numeric": True}
                rows, y = validate_data(self, X, y, by_formula=taking_text("RegressionMixture"), **kinds)
                rows, y, n = rows.astype(np.float64, copy=False), np.ascontiguousarray(y, dtype=np.float64), len(y)
            else:
                rows, n = source, self._check_stored(source, reset=True)
                source.aim(y)
            check_enough_rows(n, "n_components", self.n_components, "line")
            weights = check_sample_weight(sample_weight, n) if source is None else None
            checked: Any = partial(check_extras, n, n_components=self.n_components, response=self._response)
            named = {"groups": groups, "offset": offset, "trials": trials}
            if source is not None:
                source.weigh(sample_weight)
                rare = {"gating": gating, "component_labels": component_labels, "trim": self.trim or None}
                refuse_beside_stream(ValueError, **rare)
            is_apart = source is not None and is_dask(X)
            extras = Extras() if is_apart else checked(**named, gating=gating, component_labels=component_labels)
            if source is not None:
                for name, given in named.items():
                    if given is not None:
                        source.put_beside(name, given if is_apart else getattr(extras, name))
            attributes, warned = fit_units(self, rows, y, weights, extras, seed)
            threshold = attributes.pop("trim_threshold", -np.inf)
            for name in ("standard_errors_", "_errors_of_the_fit"):
                self.__dict__.pop(name, None)
            for name, value in attributes.items():
                setattr(self, name, value)
            self.gating_names_in_ = extras.gating_names
            self.n_samples_fit_ = None
            if source is not None and 8 * n * self.n_components > KEPT_BYTES:
                self.n_samples_fit_ = n
                self.groups_ = self.group_responsibilities_ = self.responsibilities_ = self.trimmed_ = None
            else:
                if source is not None and is_apart:
                    extras = checked(**{name: source.all_beside(name) for name in source.beside_names})
                y = y if source is None else source.all_of_target()
                self._keep_responsibilities(rows, y, extras, threshold)
            for message, category in warned:
                warnings.warn(message, category, stacklevel=levels_to_user())
        return self

    def _keep_responsibilities(self, X: Any, y: NDArray[Any], extras: Extras, threshold: float) -> None:
        """Set the responsibilities of rows and groups, and which rows were trimmed."""
        densities, q = self._densities(X, y, extras)
        self.groups_, self.group_responsibilities_ = extras.group_names, None
        self.responsibilities_ = q
        if extras.groups is not None:
            self.group_responsibilities_ = q
            self.responsibilities_ = q[extras.groups]
            densities = (densities / np.bincount(extras.groups))[extras.groups]
        self.trimmed_ = densities < threshold

    def _summary(self) -> Summary:
        return regression_summary(self)
