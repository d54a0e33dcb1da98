"""Selection of the number of parts and other settings by an information criterion, or by the silhouette."""

from __future__ import annotations

import inspect
import math
import threading
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from numbers import Integral
from typing import Any

from joblib import Parallel, delayed
from sklearn.base import clone

from majorant._frames import check_row_names
from majorant._numbers import briefly, plural_of
from majorant._progress import begin_stage, is_stopped, kept_when_stopped
from majorant._validation import check_choice, check_integer
from majorant.formulas import numbers_of
from majorant.registry import ESTIMATORS, ModelCard, card_of, discover
from majorant.results.selection import CRITERIA, MEASURES, SILHOUETTE, UNDETERMINED, UNFITTED, Candidate, Selection
from majorant.results.silhouettes import mean_silhouette, trust_in

_NO_CRITERION = "its criterion is no finite number"
_NO_SILHOUETTE = "a silhouette needs at least two clusters, and a cluster of several rows"


def select(
    est: Any,
    X: Any,
    y: Any = None,
    *,
    n_components: int | Iterable[int] = range(1, 7),
    criterion: str | None = None,
    sample_weight: Any = None,
    formula: str | None = None,
    fit_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    **grid: Any,
) -> Selection:
    r"""Fit an estimator in several sizes and settings, and choose by a criterion.

    With :math:`L` the maximised log-likelihood, :math:`p` the number of free parameters, :math:`n` the number of rows
    and :math:`r_{ik}` the responsibilities,

    .. math:: \text{AIC} = -2 L + 2 p, \quad \text{BIC} = -2 L + p \log n, \quad
       \text{ICL} = \text{BIC} - 2 \sum_{ik} r_{ik} \log r_{ik},

    as the estimator's own methods compute them. Lower is better, as in scikit-learn (mclust's BIC has the opposite
    sign). A degenerate fit (``regular_`` is False), whose likelihood is determined by a floor, is never chosen.
    Candidates with a difference below 2 are hardly distinguishable [1]_ and are named.

    A clustering without a likelihood has the mean silhouette [3]_ instead, which is higher where rows are nearer to
    their own cluster, on average, than to the next one: of all rows up to 2000, and else of 2000 that are spread over
    each cluster. It is not defined for one cluster nor for weights, and candidates within .02 of the best are named.

    Parameters
    ----------
    est : estimator
        One of majorant's models that has the criterion. It is not changed; every fit is that of a clone.
    X : array-like of shape (n_rows, n_features), data frame, or Chunks
    y : array-like of shape (n_rows,), optional
        Target, for models that take one.
    n_components : int or iterable of int, default=range(1, 7)
        Numbers of parts to try, whatever the model's own parameter for it is called.
    criterion : {"bic", "aic", "icl", "silhouette"}, optional
        BIC to describe a density (the default), ICL to find well separated groups, AIC to predict. The silhouette is
        that of clusterings, and their default.
    sample_weight : array-like of shape (n_rows,), optional
        Passed to ``fit`` and to the criterion.
    formula : str, optional
        Fit by ``fit_formula(formula, X)``, for models that have it: X is then a data frame, and y is left out.
    fit_params : mapping, optional
        Further arguments of ``fit`` or ``fit_formula``.
    n_jobs : int, optional
        Number of threads over fits; -1 for all processors. The result does not depend on it.
    **grid
        Other parameters to vary, each with a list of values: ``covariance_type=["full", "tied"]``. All combinations
        are fitted.

    Returns
    -------
    Selection
        ``best_estimator_``, ``best``, ``candidates``, ``near``; a page by ``str()`` or in a notebook; ``to_frame()``.

    Raises
    ------
    TypeError
        If `est` is not one of majorant's models or has no such criterion.
    ValueError
        If a parameter is unknown or wrong, or a setting can be fitted in no size.

    References
    ----------
    .. [1] R. E. Kass, A. E. Raftery, "Bayes factors", Journal of the American Statistical Association 90, 1995.
    .. [2] C. Biernacki, G. Celeux, G. Govaert, "Assessing a mixture model for clustering with the integrated completed
       likelihood", IEEE Transactions on Pattern Analysis and Machine Intelligence 22, 2000.
    .. [3] P. J. Rousseeuw, "Silhouettes: a graphical aid to the interpretation and validation of cluster analysis",
       Journal of Computational and Applied Mathematics 20, 1987.

    Examples
    --------
    >>> import majorant as mj
    >>> from sklearn.datasets import load_iris
    >>> model = mj.GaussianMixture(random_state=0)
    >>> found = mj.select(model, load_iris().data, n_components=[1, 2, 3], covariance_type=["full", "tied"])
    >>> found.sentence
    'BIC prefers 2 components, full; the next, 3 components, full, is 6.8 worse.'
    >>> found.best_estimator_.n_components
    2
    """
    card = card_of(est)
    criterion = default_criterion(type(est)) if criterion is None else criterion
    check_choice("criterion", criterion, (*CRITERIA, SILHOUETTE))
    if not has_criterion(type(est), criterion):
        raise _without_criterion(est, criterion)
    assert card.size_parameter is not None  # a model with a likelihood has parts
    sizes = _sizes(n_components)
    settings = _settings(est, card, grid)
    plan = [(size, setting) for setting in settings for size in sizes]
    arguments = dict(fit_params or {})
    if sample_weight is not None:
        arguments["sample_weight" if formula is None else "weights"] = sample_weight
    check_row_names({"X": X, "y": y, **arguments})
    if formula is not None:
        _check_formula(est, y)
        arguments["formula"] = formula

    fits: dict[int, tuple[Candidate, Any]] = {}

    def fit(number: int, size: int, setting: Mapping[str, Any]) -> None:
        told = ", ".join([f"fit {number + 1} of {len(plan)}", f"k = {size}", *map(str, setting.values())])
        begin_stage(told)
        fits[number] = _fitted(est, card, size, setting, X, y, arguments, criterion, warned)

    with _warnings_by_thread() as warned, kept_when_stopped(lambda: bool(fits)):
        Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(fit)(number, *planned) for number, planned in enumerate(plan) if not is_stopped()
        )
    candidates, estimators = zip(*(fits[number] for number in sorted(fits)), strict=True)
    with warnings.catch_warnings():  # not in the threads of the fits, whose warnings would be lost
        warnings.simplefilter("ignore")
        told = [
            _measures_of(fitted, X, y, arguments) if criterion != SILHOUETTE else _trust(one, fitted, X)
            for one, fitted in zip(candidates, estimators, strict=True)
        ]
    candidates = tuple(replace(one, measures=measures) for one, measures in zip(candidates, told, strict=True))
    candidates = _comparable(card, candidates, estimators)
    _refuse_unfittable(settings, candidates)
    return Selection(candidates, criterion, card.title, card.part, card.size_parameter, card.objective_name, estimators)


def has_criterion(cls: type[Any], criterion: str) -> bool:
    """Return whether a model has the criterion, as a method or as an attribute of the fit, or is a clustering."""
    if criterion == SILHOUETTE:
        return card_of(cls).kind == "clustering" and card_of(cls).objective_name != "log-likelihood"
    return hasattr(cls, criterion) or card_of(cls).objective_name == "log-likelihood"


def default_criterion(cls: type[Any]) -> str:
    """Return the criterion that compares sizes of a model where none is asked for."""
    return SILHOUETTE if has_criterion(cls, SILHOUETTE) else CRITERIA[0]


def models_with(criterion: str) -> list[str]:
    """List the registered models that have a criterion, by name."""
    discover()
    return sorted(name for name, known in ESTIMATORS.items() if has_criterion(known, criterion))


def _without_criterion(est: Any, criterion: str) -> TypeError:
    able = ", ".join(ESTIMATORS[name].__name__ for name in models_with(criterion))
    if criterion == SILHOUETTE:
        return TypeError(
            f"{type(est).__name__} is no clustering without a likelihood, as the silhouette compares: {able}"
        )
    return TypeError(
        f"{type(est).__name__} has no {criterion.upper()}: a criterion compares models that have a likelihood"
        f"{f'; models that do: {able}' if able else ''}"
    )


def _check_formula(est: Any, y: Any) -> None:
    if not hasattr(est, "fit_formula"):
        raise TypeError(f"{type(est).__name__} is not fitted with formulas: give X, and y where it takes one")
    if y is not None:
        raise TypeError("a formula names the response: leave y out")


def _sizes(n_components: int | Iterable[int]) -> list[int]:
    given: Any = [n_components] if isinstance(n_components, Integral) else n_components
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"n_components must be whole numbers such as range(1, 7); got {briefly(n_components)}")
    sizes = list(dict.fromkeys(check_integer("n_components", size, low=1) for size in given))
    if not sizes:
        raise ValueError("n_components holds no number: give at least one, such as range(1, 7)")
    return sizes


def _settings(est: Any, card: ModelCard, grid: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all combinations of the values; a parameter that is None keeps the estimator's own value."""
    known = est.get_params(deep=False)
    lists: dict[str, Sequence[Any]] = {}
    for name, values in grid.items():
        if name == card.size_parameter:
            parts = plural_of(card.part)
            raise ValueError(f"give the numbers of {parts} as n_components, whatever the model calls them")
        if name in inspect.signature(est.fit).parameters:
            raise ValueError(f"{name} is an argument of fit: give it as fit_params={{{name!r}: ...}}")
        if name not in known:
            raise ValueError(f"{type(est).__name__} has no parameter {name!r}; it has {', '.join(sorted(known))}")
        if values is None:
            continue
        listed = [values] if isinstance(values, str) or not isinstance(values, Iterable) else list(values)
        if not listed:
            raise ValueError(f"{name} holds no value: give a list of at least one")
        lists[name] = listed
    return [dict(zip(lists, combination, strict=True)) for combination in product(*lists.values())]


def _fitted(
    est: Any,
    card: ModelCard,
    size: int,
    setting: Mapping[str, Any],
    X: Any,
    y: Any,
    arguments: Mapping[str, Any],
    criterion: str,
    warned: _Warned,
) -> tuple[Candidate, Any]:
    fitted = card.with_size(clone(est), size).set_params(**setting)
    warned.begin()
    try:
        if "formula" in arguments:
            fitted.fit_formula(data=X, **arguments)
        else:
            fitted.fit(X, y, **arguments)
        value = criterion_of(fitted, criterion, X, y, arguments)
    except ValueError as error:
        reason = f"{UNFITTED}: {' '.join(str(error).split())}"
        return Candidate(size, setting, excluded=reason, warnings=warned.end()), None
    regular = bool(getattr(fitted, "regular_", True))
    excluded = "" if math.isfinite(value) else _NO_SILHOUETTE if criterion == SILHOUETTE else _NO_CRITERION
    search = fitted.search_
    candidate = Candidate(
        size,
        setting,
        value,
        float(getattr(fitted, card.objective_attribute)),
        getattr(fitted, "n_parameters_", None),
        search.n_starts,
        search.n_hits if search.n_starts else 0,
        regular,
        bool(getattr(fitted, "converged_", True)),
        excluded if regular else f"degenerate: {getattr(fitted, 'degeneracy_', '') or UNDETERMINED}",
        warned.end(),
    )
    return candidate, fitted


def _trust(candidate: Candidate, fitted: Any, X: Any) -> dict[str, float]:
    return {} if candidate.excluded or is_stopped() else trust_in(fitted, X)


def _measures_of(fitted: Any, X: Any, y: Any, arguments: Mapping[str, Any]) -> dict[str, float]:
    """Return what is told of a fit with a likelihood beside the criterion that compares it."""
    if not hasattr(fitted, "information_criteria"):  # one that could not be fitted has none either
        return {}
    rows = {name: value for name, value in {"y": y, **arguments}.items() if value is not None}
    if "weights" in rows and "formula" in rows:
        weights = rows["weights"]
        rows["sample_weight"] = numbers_of(X, weights, "weights") if isinstance(weights, str) else weights
    takes = inspect.signature(fitted.information_criteria).parameters
    given = {name: value for name, value in rows.items() if name in takes}
    if getattr(fitted, "formula_", None) is not None:  # which keeps the names of columns
        given = {name: value for name, value in given.items() if not isinstance(value, str)}
    found = fitted.information_criteria(X, **given)
    own = {name: float(getattr(fitted, f"{name}_")) for name in CRITERIA if hasattr(fitted, f"{name}_")}
    if any(not math.isclose(value, found[name], rel_tol=1e-6) for name, value in own.items()):
        found = dict[str, float]()  # of other rows than those that counted in the fit: some were trimmed
    found |= own
    if hasattr(fitted, "weights_"):
        found["smallest"] = float(fitted.weights_.min())
    return {name: found[name] for name in MEASURES if math.isfinite(found.get(name, math.nan))}


def criterion_of(fitted: Any, criterion: str, X: Any, y: Any, arguments: Mapping[str, Any]) -> float:
    """Return the criterion of a fitted estimator: an attribute, or a method that takes the rows."""
    if criterion == SILHOUETTE:
        if "sample_weight" in arguments:
            raise TypeError("silhouettes are not defined for weighted rows: compare sizes without weights")
        return mean_silhouette(fitted, X)
    if hasattr(fitted, f"{criterion}_"):
        return float(getattr(fitted, f"{criterion}_"))
    method = getattr(fitted, criterion, None)
    if method is None:
        raise _without_criterion(fitted, criterion)
    takes = inspect.signature(method).parameters
    given = {name: value for name, value in {"y": y, **arguments}.items() if value is not None and name in takes}
    if "sample_weight" in arguments and "sample_weight" not in given:
        raise TypeError(f"{type(fitted).__name__}.{criterion} takes no sample_weight: fit without weights")
    return float(method(X, **given))


def _comparable(card: ModelCard, candidates: Sequence[Candidate], estimators: Sequence[Any]) -> tuple[Candidate, ...]:
    """Exclude fits whose likelihood is a density of other directions, or of other rows, than that of most."""
    told = {
        card.directions_attribute: "its likelihood is a density in {} directions, that of others in {}",
        "lags": "its likelihood is of the rows after the first {} of each sequence, that of others after {}",
    }
    kept = tuple(candidates)
    for attribute, reason in told.items():
        numbers = [getattr(est, attribute, None) for est in estimators]
        counts = Counter(number for number in numbers if number is not None)
        usual = max(counts, key=lambda number: (counts[number], number), default=None)
        kept = tuple(
            c
            if c.excluded or number in (None, usual)
            else replace(c, excluded=f"{reason.format(number, usual)}: they cannot be compared")
            for c, number in zip(kept, numbers, strict=True)
        )
    return kept


def _refuse_unfittable(settings: Sequence[Mapping[str, Any]], candidates: Sequence[Candidate]) -> None:
    """Raise ValueError for settings that fail at every size; sizes too large for the data are only excluded."""
    for setting in settings:
        own = [c for c in candidates if c.setting == setting]
        if all(c.excluded.startswith(UNFITTED) for c in own):
            raise ValueError(own[0].excluded.removeprefix(f"{UNFITTED}: "))


class _Warned:
    """Recorder of warnings by thread, as `warnings.catch_warnings` would mix those of concurrent fits."""

    def __init__(self) -> None:
        self._local = threading.local()

    def begin(self) -> None:
        self._local.found = []

    def add(self, message: Warning | str) -> None:
        getattr(self._local, "found", []).append(" ".join(str(message).split()))

    def end(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._local.found))


@contextmanager
def _warnings_by_thread() -> Iterator[_Warned]:
    warned = _Warned()

    def show(message: Warning | str, *rest: Any, **more: Any) -> None:
        warned.add(message)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield warned
