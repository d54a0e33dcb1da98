"""Uncertainty of a fitted mixture of regressions: by information, or by resampling."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from majorant._numbers import briefly
from majorant._validation import check_choice, check_count, check_real, check_sample_weight, levels_to_user
from majorant.densities.regression import NO_MAXIMUM
from majorant.models.base import refuse_stored
from majorant.models.mixture_summary import estimates_table
from majorant.models.regression_mixture.extras import check_unit_weights, shared_columns
from majorant.models.regression_mixture.outcome import PARAMETERS
from majorant.models.regression_mixture.prediction import FittedLines
from majorant.models.regression_mixture.resampling import bootstrap, rows_of
from majorant.models.regression_mixture.summary import gating_names
from majorant.models.regression_mixture.words import reservations, why_no_errors
from majorant.models.row_arguments import rows_as
from majorant.results.bootstrap import Bootstrap
from majorant.results.information import intervals

METHODS = ["observed", "bootstrap", "parametric-bootstrap", "case-bootstrap"]
Method = Literal["observed", "bootstrap", "parametric-bootstrap", "case-bootstrap"]
Array = NDArray[np.float64]
Errors = dict[str, Array] | None
LIMITS = {"scale": (0.0, np.inf), "weights": (0.0, 1.0)}


class UncertainLines(FittedLines):
    """Standard errors, confidence intervals and resampling."""

    trim: float
    shared: Any
    fit_intercept: bool
    regular_: bool
    degeneracy_: str
    _errors_of_the_fit: Callable[[], Errors]

    @cached_property
    def standard_errors_(self) -> Errors:
        """Standard errors by parameter name, from the observed information of the fit's rows; None if there are none.

        Of rows in memory they are computed when they are first asked for, or when the model is copied or saved: neither
        a copy nor a file has the rows.
        """
        found = self._errors_of_the_fit()
        del self._errors_of_the_fit
        return found

    def check_estimates(self) -> None:
        """Raise ValueError if estimates have not the shapes of those of its optimum; asked of a model from a file."""
        optima = getattr(self, "optima_", None)
        optimum = optima[0] if isinstance(optima, list) and optima and isinstance(optima[0], dict) else {}
        for name in PARAMETERS:
            found, expected = (np.asarray(one).shape for one in (getattr(self, f"{name}_"), optimum.get(name)))
            if found != expected:
                raise ValueError(f"its {name}_ has shape {found}, and that of its optimum {expected}")

    def __getstate__(self) -> dict[str, Any]:
        if hasattr(self, "_errors_of_the_fit"):
            _ = self.standard_errors_
        state: dict[str, Any] = super().__getstate__()
        return state

    def standard_errors(
        self, method: Method = "observed", X: Any = None, y: Any = None, **resampling: Any
    ) -> dict[str, Array]:
        """Return the standard errors of the parameters.

        Parameters
        ----------
        method : {"observed", "bootstrap", "parametric-bootstrap", "case-bootstrap"}, default="observed"
            "observed": from the observed information of the fit, minus the Hessian of the log-likelihood. They hold for
            regular solutions of enough rows, and take the number of components as given. The others refit, see
            `bootstrap`, and need the rows of the fit; "bootstrap" takes ``kind`` too.
        X : array-like of shape (n_samples, n_features), optional
        y : array-like of shape (n_samples,), optional
        **resampling
            As for `bootstrap`: ``groups``, ``n_resamples``, ``random_state`` and so on.

        Returns
        -------
        dict of ndarray
            ``coef``, ``intercept``, ``scale``, ``weights``, ``gating_coef`` and ``gating_intercept``, each of the shape
            of its parameter; zero for what is no parameter of the family. With gating, those of the weights take the
            gating columns as they are.

        Raises
        ------
        ValueError
            If there are none, and why; or if `method` is not known or lacks the rows.

        Warns
        -----
        RuntimeWarning
            If the solution is not a regular one: errors then mean little.
        """
        made = self._resampled(method, X, y, resampling)
        if made is not None:
            return made.standard_errors()
        self._check_errors()
        assert self.standard_errors_ is not None
        return {name: values.copy() for name, values in self.standard_errors_.items()}

    def confidence_intervals(
        self, level: float = 0.95, method: Method = "observed", X: Any = None, y: Any = None, **resampling: Any
    ) -> dict[str, tuple[Array, Array]]:
        """Return the confidence intervals of the parameters.

        Parameters
        ----------
        level : float, default=0.95
        method, X, y, **resampling
            As for `standard_errors`. "observed": symmetric for coefficients, for noise on the scale of the logarithm,
            for weights of the logit; by resampling: percentiles of the refits.

        Returns
        -------
        dict of (low, high)
            As in `standard_errors`, arrays of the shape of the parameter.

        Raises
        ------
        ValueError
            As `standard_errors`, or if `level` is not between 0 and 1.

        Examples
        --------
        >>> import numpy as np, majorant as mj
        >>> x = np.linspace(0, 10, 100)[:, None]
        >>> noise = np.random.default_rng(0).normal(size=100)
        >>> y = np.where(np.arange(100) % 2 == 0, x[:, 0], 5 - x[:, 0]) + noise
        >>> low, high = mj.RegressionMixture(2, random_state=0).fit(x, y).confidence_intervals()["coef"]
        >>> (high - low).ravel().round(1).tolist()
        [0.2, 0.2]
        """
        if not 0 < check_real("level", level) < 1:
            raise ValueError(f"level must be between 0 and 1; got {briefly(level)}")
        made = self._resampled(method, X, y, resampling)
        if made is not None:
            return made.intervals(level)
        self._check_errors()
        return self._intervals(level)

    def estimates(
        self, X: Any = None, y: Any = None, *, level: float = 0.95, method: Method = "observed", **resampling: Any
    ) -> Any:
        """Return every estimate with its standard error and interval as a table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            The rows of the fit, and `y` their target, where `method` refits; "observed" needs none, and may be given X
            as other models are.
        y : array-like of shape (n_samples,), optional
        level : float, default=0.95
            Of the intervals.
        method, **resampling
            As for `standard_errors`.

        Returns
        -------
        data frame
            A row for each number: its `parameter` (``coef``, ...), `entry` (the column, where it has one), the number
            of the component from 1, `estimate`, `standard_error`, `low` and `high`; NaN where the rows do not determine
            it, and without errors of the fit.

        Raises
        ------
        ValueError
            If `level` or `method` cannot be, a method that refits lacks the rows, or hardly a refit can be used.

        Warns
        -----
        RuntimeWarning
            If there are no standard errors, and why; or as `standard_errors`.

        Examples
        --------
        >>> import numpy as np, majorant as mj
        >>> x = np.linspace(0, 10, 100)[:, None]
        >>> noise = np.random.default_rng(0).normal(size=100)
        >>> y = np.where(np.arange(100) % 2 == 0, x[:, 0], 5 - x[:, 0]) + noise
        >>> table = mj.RegressionMixture(2, random_state=0).fit(x, y).estimates()
        >>> table[table.parameter == "coef"].round(2).values.tolist()
        [['coef', 'x1', 1, 1.02, 0.05, 0.91, 1.12], ['coef', 'x1', 2, -1.0, 0.05, -1.1, -0.9]]
        """
        check_real("level", level, low=0.0, high=1.0)
        made = self._resampled(method, X if method != "observed" else None, y, resampling)
        if made is not None:
            errors, ends = made.standard_errors(), made.intervals(level)
        else:
            errors = self.standard_errors() if self.standard_errors_ else self._no_errors()
            ends = intervals(self, errors, level, LIMITS)
        is_free = {"scale": self._response.has_dispersion, "intercept": self.fit_intercept}
        is_free |= dict.fromkeys(("gating_coef", "gating_intercept"), self.gating_coef_.size > 0)
        told = {name: error for name, error in errors.items() if is_free.get(name, True)}
        return estimates_table(self, told, ends)

    def _of_each(self, name: str, values: Any) -> Array:
        """Return the numbers of an estimate for each component."""
        return np.asarray(values, dtype=np.float64)

    def _entry_names(self, name: str) -> list[str] | None:
        """Return a name for each number that a component has in an estimate; None where they have none."""
        return {"coef": self._feature_names(), "gating_coef": gating_names(self)}.get(name)

    @rows_as("_at")
    def bootstrap(
        self,
        X: Any,
        y: Any,
        *,
        kind: Literal["parametric", "case"] = "parametric",
        n_resamples: int = 200,
        sample_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        **rows: Any,
    ) -> Bootstrap:
        """Refit on data drawn anew.

        Every refit starts at this fit (so it says nothing about other optima: for those see `search_` and
        ``mj.stability``), and its components are matched to those of the fit. Refits that fail, or end at a solution
        that is not regular, are counted but not used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of the fit, which a model does not keep; what else was given to ``fit`` is given again.
        y : array-like of shape (n_samples,)
        kind : {"parametric", "case"}, default="parametric"
            "parametric": targets are drawn from the fit, at the same rows. "case": rows are drawn with replacement, or
            groups as a whole; this does not take the model for true.
        n_resamples : int, default=200
        sample_weight : array-like of shape (n_samples,), optional
            Numbers of times that rows (groups) were drawn; for "parametric" whole numbers.
        {rows} : array-like, optional
            As for ``fit``.
        random_state : int, RandomState instance or None, default=None
        n_jobs : int, optional
            Processes that refit; the result does not depend on it.

        Returns
        -------
        Bootstrap
            ``samples``, ``standard_errors()``, ``intervals(level)``, ``n_failed``, ``n_degenerate``, ``sentence``.

        Raises
        ------
        ValueError
            If data or parameters cannot be used, or hardly a refit can.

        References
        ----------
        .. [1] B. Efron, R. J. Tibshirani, "An Introduction to the Bootstrap", 1993.
        """
        check_is_fitted(self)
        check_choice("kind", kind, ["parametric", "case"])
        check_count("n_resamples", n_resamples, low=2, width=self.n_parameters_)
        refuse_stored(X, "bootstrap")
        if NO_MAXIMUM in self.degeneracy_:
            raise ValueError(f"no errors can be given: {why_no_errors(self)}")
        X, y, extras = self._with_target(X, y, **rows)
        weights = check_sample_weight(sample_weight, len(y))
        if (self.groups_ is None) != (extras.groups is None):
            raise ValueError(f"the model was fitted with{'out' * (self.groups_ is None)} groups=: give the same rows")
        check_unit_weights(weights, extras)
        columns = shared_columns(self.shared or (), self._feature_names(), fit_intercept=self.fit_intercept)
        shared = [j if j >= 0 else "intercept" for j in columns]
        distinct, random = rows_of(X, y, weights, extras), check_random_state(random_state)
        return bootstrap(self, distinct, shared or None, kind, n_resamples, random, n_jobs)

    def _resampled(self, method: str, X: Any, y: Any, resampling: dict[str, Any]) -> Bootstrap | None:
        """Return the refits that a method needs, or None."""
        check_is_fitted(self)
        check_choice("method", method, METHODS)
        if method == "observed":
            if X is not None or y is not None:
                raise ValueError('method="observed" uses the fit alone and takes no rows: leave them out')
            if resampling:
                raise ValueError(f'method="observed" uses the fit alone: leave {", ".join(resampling)} out')
            return None
        if X is None or y is None:
            raise ValueError(f"method={method!r} refits and needs the rows of the fit: give X and y")
        kind = {} if method == "bootstrap" else {"kind": method.removesuffix("-bootstrap")}
        return self.bootstrap(X, y, **(resampling | kind))

    def _intervals(self, level: float = 0.95) -> dict[str, tuple[Array, Array]]:
        """Return the intervals from the observed information; none where there are no errors."""
        return intervals(self, self.standard_errors_ or {}, level, LIMITS)

    def _no_errors(self) -> dict[str, Array]:
        """Return NaN for the errors of a fit that has none, and say why."""
        said = f"no standard errors can be given: {why_no_errors(self)}"
        warnings.warn(said, RuntimeWarning, stacklevel=levels_to_user())
        return {name: np.full_like(getattr(self, f"{name}_"), np.nan, dtype=np.float64) for name in PARAMETERS}

    def _check_errors(self) -> None:
        if self.standard_errors_ is None:
            raise ValueError(f"no standard errors can be given: {why_no_errors(self)}")
        for sentence in reservations(self):
            warnings.warn(sentence, RuntimeWarning, stacklevel=levels_to_user())
