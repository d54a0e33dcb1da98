"""Checks of parameters and weights; errors say what was got, what was expected and what to change."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from majorant._cells import refuse_what_is_no_number, without_na
from majorant._frames import column_names, whole_table
from majorant._numbers import briefly, counted


def check_integer(name: str, value: Any, *, low: int | None = None) -> int:
    """Return `value` as an int that is at least `low`."""
    if isinstance(value, bool | np.bool_ | np.timedelta64) or not isinstance(value, Integral):
        raise TypeError(
            f"{name} must be a whole number{'' if low is None else f' of at least {low}'}; got {briefly(value)}"
        )
    if low is not None and value < low:
        raise ValueError(f"{name} must be at least {low}; got {briefly(value)}")
    return int(value)


def check_count(name: str, value: Any, *, low: int = 1, width: int = 1) -> int:
    """Return `value` as a whole number of things of `width` numbers each that fit into memory.

    Raises TypeError if it is not a whole number, and ValueError if it is too small, or there is not so much memory;
    a terabyte where the system does not tell its size.
    """
    n = check_integer(name, value, low=low)
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        size = f", {memory / 2**30:.0f} GB"
    except (AttributeError, OSError, ValueError):  # not told by this system
        memory, size = 1 << 40, ""
    if 8 * n * max(width, 1) > memory:
        raise ValueError(f"{name}={briefly(n)} would take more memory than there is{size}: ask for fewer at a time")
    return n


def check_real(name: str, value: Any, *, low: float = -np.inf, high: float = np.inf) -> float:
    """Return `value` as a float in [low, high]."""
    number = _as_float(name, value)
    if not low <= number <= high:
        expected = f"at least {low:g}" if high == np.inf else f"between {low:g} and {high:g}"
        raise ValueError(f"{name} must be {'a number' if low == -high == -np.inf else expected}; got {briefly(value)}")
    return number


def check_positive(name: str, value: Any, *, finite: bool = False) -> float:
    """Return `value` as a float above zero, which may be infinite unless `finite`."""
    number = _as_float(name, value)
    if not number > 0 or (finite and np.isinf(number)):
        raise ValueError(f"{name} must be positive{' and finite' if finite else ''}; got {briefly(value)}")
    return number


def check_auto(name: str, value: Any) -> float | None:
    """Check that a parameter is "auto" or a positive number; return None for "auto"."""
    if isinstance(value, str):
        check_choice(name, value, ["auto"], or_else=" or a positive number")
        return None
    return check_real(name, check_positive(name, value), low=1e-12, high=1e12)


def _as_float(name: str, value: Any) -> float:
    if isinstance(value, bool | np.bool_ | np.timedelta64) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number; got {briefly(value)}")
    try:
        return float(value)
    except OverflowError as error:  # a whole number of hundreds of digits
        raise ValueError(f"{name} is too large for a float64") from error


def check_verbose(value: Any) -> int:
    """Return `value` of the parameter `verbose`: a truth value, or a whole number of at least 0."""
    return int(value) if isinstance(value, bool | np.bool_) else check_integer("verbose", value, low=0)


def check_n_init(value: Any) -> str | int:
    """Return `value` of the parameter `n_init`: "auto" or a whole number of at least 1."""
    return "auto" if isinstance(value, str) and value == "auto" else check_integer("n_init", value, low=1)


def warn_of_one_start(n_init: str | int) -> None:
    """Warn where several starts are asked for, but all would be the one that is given."""
    if not isinstance(n_init, str) and n_init > 1:
        warnings.warn(
            f"Explicit initial values passed: performing only one init, not n_init={n_init} equal ones",
            RuntimeWarning,
            stacklevel=levels_to_user(),
        )


def check_runs(model: Any) -> None:
    """Check the parameters n_init, max_iter, tol and verbose of a model."""
    check_n_init(model.n_init)
    check_integer("max_iter", model.max_iter, low=1)
    check_real("tol", model.tol, low=0.0)
    check_verbose(model.verbose)


def seed_of(random_state: Any) -> int:
    """Return the seed that a `random_state` of scikit-learn's kind gives."""
    from sklearn.utils import check_random_state  # takes time to load

    return int(check_random_state(random_state).randint(2**31))


def refuse_one_class(classes: Sequence[Any] | NDArray[Any], where: str = "") -> None:
    """Raise ValueError for labels of a single class, `where` they were looked for."""
    if len(classes) == 1:
        raise ValueError(f"y holds one class only, {classes[0]!s}{where}: a classifier needs at least two classes")


def check_enough_rows(n_rows: int, name: str, size: int, part: str, groups: Any = None) -> None:
    """Raise ValueError for more parts than rows, or than groups; `name` is the parameter for the number of parts."""
    if n_rows < size:
        raise ValueError(f"n_samples={n_rows} should be >= {name}={size}: ask for at most one {part} per row")
    if groups is not None and len(np.unique(groups)) < size:
        n_groups = len(np.unique(groups))
        raise ValueError(f"{name}={size} are more than the {n_groups} of groups: ask for at most one {part} per group")


def warn_of_repeats(n_distinct: int, size: int) -> None:
    """Warn where there are fewer distinct rows than clusters."""
    if n_distinct < size:
        warnings.warn(
            f"Number of distinct clusters ({n_distinct}) found smaller than n_clusters "
            f"({size}): X has only {counted(n_distinct, 'distinct row')} with weight",
            ConvergenceWarning,
            stacklevel=levels_to_user(),
        )


def check_choice(name: str, value: Any, choices: Sequence[str], *, or_else: str = "") -> str:
    """Return `value` if it is one of `choices`; the error suggests the nearest one."""
    if isinstance(value, str) and value in choices:
        return value
    allowed = ", ".join(repr(c) for c in choices) + or_else
    raise ValueError(f"{name} must be one of {allowed}; got {briefly(value)}.{did_you_mean(value, choices)}")


_SYNONYMS = (
    ("gaussian", "normal"),
    ("binomial", "bernoulli", "logistic", "logit"),
    ("poisson", "count", "counts"),
    ("student", "t"),
    ("categorical", "nominal", "multinomial"),
    ("full", "vvv"),
    ("tied", "eee"),
    ("diag", "diagonal", "vvi"),
    ("spherical", "vii"),
)
"""Names that other software has for the same."""


def did_you_mean(value: Any, known: Sequence[str]) -> str:
    """Return `` Did you mean 'auto'?`` with a synonym or the nearest known name, or "" if there is none."""
    by_lower_case = {name.lower(): name for name in reversed(known)}
    text = (value if isinstance(value, str) else briefly(value)).lower()
    synonyms = [name for names in _SYNONYMS if text in names for name in names if name in by_lower_case]
    near = synonyms or get_close_matches(text, by_lower_case, n=1)
    return f" Did you mean {by_lower_case[near[0]]!r}?" if near else ""


def check_sample_weight(
    sample_weight: Any, n_rows: int, *, name: str = "sample_weight", of: str = "row"
) -> NDArray[np.float64] | None:
    """Return the weights as float64, None if none were given or all are one; `name` and `of` are words of messages."""
    if sample_weight is None:
        return None
    raw = np.asarray(sample_weight)
    if raw.dtype.kind not in "biuf" and not _all_real(raw):
        raise TypeError(f"{name} must hold numbers; got an array of {raw.dtype}")
    try:
        weights = np.full(n_rows, float(raw)) if raw.ndim == 0 else np.ascontiguousarray(raw, dtype=np.float64)
    except OverflowError as error:
        raise ValueError(f"{name} holds a whole number that is too large for a float64; scale it down") from error
    if weights.shape != (n_rows,):
        raise ValueError(f"{name} must be one number per {of}, shape ({n_rows},); got shape {weights.shape}")
    if not np.isfinite(weights).all():
        at = int(np.flatnonzero(~np.isfinite(weights))[0])
        raise ValueError(f"{name} must be finite; entry {at} is {weights[at]}")
    if (weights < 0).any():
        at = int(np.flatnonzero(weights < 0)[0])
        raise ValueError(f"{name} must not be negative; entry {at} is {weights[at]:g}")
    if not weights.any():
        raise ValueError(f"{name} is zero for every {of}: at least one weight must be positive")
    largest = float(weights.max())
    if not np.isfinite(largest * n_rows) or largest > 1e150:
        raise ValueError(f"{name} is too large to be summed: its largest entry is {largest:g}; scale it down")
    if largest < 1e-300:
        raise ValueError(f"{name} is too small to be summed: its largest entry is {largest:g}; scale it up")
    return None if (weights == 1.0).all() else weights


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of missing values: None, NaN, NaT and pandas' NA."""
    if values.dtype.kind in "Mm":
        return np.asarray(np.isnat(values))
    if values.dtype.kind in "fc":
        return np.asarray(np.isnan(values))
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=np.bool_)
    # NA equals nothing, and says neither yes nor no to it
    return np.array([v is None or not isinstance(v == v, bool | np.bool_) or v != v for v in values.tolist()])


def check_groups(groups: Any, n: int) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the number of each row's group among the sorted names, and these names."""
    values = np.array(groups, dtype=object) if isinstance(groups, list | tuple) else np.asarray(groups)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != (n,):
        raise ValueError(f"groups must be one name per row, shape ({n},); got shape {values.shape}")
    if values.dtype.kind == "T":
        values = values.astype(object)
    missing = np.flatnonzero(is_missing(values))
    if len(missing):
        raise ValueError(f"groups has no name for row {missing[0]}: it is {briefly(values[missing[0]])}")
    if values.dtype.kind == "O":
        values = _of_one_kind(values)
    try:
        names, codes = np.unique(values, return_inverse=True)
    except TypeError as error:
        raise TypeError(f"groups cannot be sorted: {error}; use text or numbers") from error
    return codes.reshape(-1).astype(np.intp), names


def _of_one_kind(values: NDArray[np.object_]) -> NDArray[Any]:
    """Convert names of dtype object to numbers or text where all are of one kind."""
    if len({isinstance(v, str) for v in values.tolist()}) > 1:
        raise TypeError("groups mixes text and numbers: use one kind")
    if any(isinstance(v, list | tuple | np.ndarray) for v in values.tolist()):
        raise TypeError("groups must be one name per row; got several: join them to one text")
    plain = np.array(values.tolist())
    if plain.dtype.kind == "f" and any(a != b for a, b in zip(values.tolist(), plain.tolist(), strict=True)):
        raise ValueError("groups has whole numbers too large to be distinguished: give them as text")
    return plain


def exact_labels(y: Any) -> Any:
    """Return labels unchanged where numpy would alter them: names of a list or a data frame as an object array.

    Numpy converts whole numbers with missing ones to floats, which merges large ones, and missing ones or numbers with
    text to text. Missing ones are None here.
    """
    is_column = hasattr(y, "dtype") and not hasattr(y, "columns") and not isinstance(y.dtype, np.dtype)
    if not is_column and not isinstance(y, list | tuple):
        return y
    values = list(y)
    if any(hasattr(v, "__len__") and not isinstance(v, str) for v in values):
        return y
    missing = is_missing(np.array(values, dtype=object))
    known = [v for v, lost in zip(values, missing, strict=True) if not lost]
    n_texts = sum(isinstance(v, str) for v in known)
    if not n_texts and not (known and all(isinstance(v, Integral | np.bool_) for v in known)):
        return y
    plain = np.array(known)
    if not missing.any() and (plain.dtype.kind in "biu" or n_texts == len(known)):
        return plain
    return np.array([None if lost else v for v, lost in zip(values, missing, strict=True)], dtype=object)


def refuse_missing_labels(labels: NDArray[Any], unit: str = "row") -> None:
    """Raise ValueError if a label is missing, for models that need one for every row (or other `unit`)."""
    missing = is_missing(labels)
    if missing.any():
        raise ValueError(f"Input y contains NaN: {unit} {int(missing.argmax())} has no label; leave it out")


def refuse_mixed(name: str, values: NDArray[Any], unit: str = "row") -> None:
    """Raise ValueError if names mix text and numbers, which have no common order. Missing names do not count."""
    if values.dtype != object:
        return
    known = np.flatnonzero(~is_missing(values)).tolist()
    kinds = {i: _kind(values[i]) for i in known}
    for i in known:
        if kinds[i] != kinds[known[0]]:
            shown = (f"{unit} {j} has {briefly(values[j])} ({kinds[j]})" for j in (known[0], i))
            raise ValueError(f"{name} must hold names of one kind, all text or all numbers; {', '.join(shown)}")
    try:
        sorted(values[known].tolist())
    except TypeError as error:
        raise ValueError(
            f"{name} must hold text or numbers; got {kinds[known[0]]} objects, which have no order"
        ) from error


def _kind(value: Any) -> str:
    return "text" if isinstance(value, str) else "number" if isinstance(value, Real) else type(value).__name__


def validate_data(
    estimator: Any,
    X: Any,
    *target: Any,
    of_missing: str | None = None,
    by_formula: Callable[[Any, int], str] | None = None,
    **options: Any,
) -> Any:
    """Check rows and target like scikit-learn's ``validate_data``, but reject dates and masked cells.

    Errors name the column that holds text, as `refuse_text` does, and say `of_missing` of missing values.
    """
    from sklearn.utils.validation import validate_data as checked

    refuse_what_is_no_number(X, "X")
    X = whole_table(without_na(X))
    for one in target if options.get("y_numeric") else ():
        refuse_text(one, "y")
    try:
        return checked(estimator, X, *map(without_na, target), **options)
    except ValueError as error:
        if str(error).startswith("could not convert"):
            refuse_text(X, by_formula=by_formula if options.get("reset", True) else None)
        for what, table in (("X", X), *(("y", one) for one in target)):
            if str(error).startswith(f"Input {what} contains NaN"):
                told = f"{type(estimator).__name__} takes no missing values: drop those rows, or fill them in"
                told = of_missing if what == "X" and of_missing is not None else told
                raise ValueError(f"Input {what} contains NaN. {told}{_first(is_missing, table)}") from error
            if str(error).startswith(f"Input {what} contains infinity"):
                raise ValueError(f"{str(error).rstrip('.')}{_first(_is_infinite, table)}") from error
        raise


def told_column(names: Sequence[Any] | None, j: int) -> str:
    """Return "column 'width'", or "column 1" of columns without names."""
    return f"column {j}" if names is None or j >= len(names) else f"column {names[j]!r}"


def _is_infinite(cells: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isinf(cells.astype(np.float64))


def _first(is_wrong: Callable[[NDArray[Any]], NDArray[np.bool_]], table: Any) -> str:
    """Say where the first such cell is, as the end of a sentence; "" of sparse rows."""
    cells = np.asarray(table)
    if cells.ndim not in (1, 2):
        return ""
    at = np.argwhere(is_wrong(cells.ravel()).reshape(cells.shape))[:1]
    if not len(at):
        return ""
    if cells.ndim == 1:
        return f"; the first is in row {at[0, 0]}"
    return f"; the first is in row {at[0, 0]}, {told_column(column_names(table), at[0, 1])}"


def refuse_text(X: Any, what: str = "X", by_formula: Callable[[Any, int], str] | None = None) -> None:
    """Raise ValueError for text, with the first column that holds some.

    `by_formula` returns for the name and the number of a column the call that would take it, if there is one.
    """
    names = column_names(X)
    array = np.asarray(X) if names is None else np.empty(0)
    columns: list[tuple[Any, Any]] = list(enumerate(array.T)) if array.ndim == 2 else [(None, array)]
    if names is not None:
        columns = [(name, X.iloc[:, j] if hasattr(X, "iloc") else X[name]) for j, name in enumerate(names)]
    for j, (name, column) in enumerate(columns):
        values = np.asarray(column)
        texts = (v for v in values.ravel().tolist() if isinstance(v, str | bytes) and not _is_number(v))
        if values.dtype.kind not in "OSUT" or (text := next(texts, None)) is None:
            continue
        if name is None:
            raise ValueError(f"{what} must hold numbers; it holds text such as {text!r}")
        called = "" if by_formula is None else by_formula(name, j)
        more = f" but one; {called} takes text as it is" if called else ""
        raise ValueError(
            f"{what} must hold numbers; column {name!r} holds text such as {text!r}: leave it out, or write it as a "
            f"column of 0 and 1 for each category{more}"
        )


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def levels_to_user() -> int:
    """Return the `stacklevel` of warnings that point at the calling line outside majorant and scikit-learn."""
    inner = ("majorant", "contextlib", "sklearn")  # which run methods and context managers of majorant
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in inner:
        level, frame = level + 1, frame.f_back
    return level


def with_small_indices(X: Any) -> Any:
    """Cast the indices of a sparse matrix to 32 bits where they fit, as compiled code takes them."""
    if not sparse.issparse(X):
        return X
    X = X.tocsr()
    is_small = X.indices.dtype == X.indptr.dtype == np.int32
    if is_small or max(*X.shape, X.nnz) > np.iinfo(np.int32).max:
        return X
    check_csr(X)  # before the cast, which could turn a wrong index into a right one
    return type(X)((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def check_csr(X: Any) -> None:
    """Raise ValueError for a CSR matrix with indices out of range, which compiled code would follow."""
    if sparse.issparse(X):
        try:
            X.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"X is a damaged sparse matrix ({error}): build it again") from error


def _all_real(values: NDArray[Any]) -> bool:
    return values.dtype == object and all(isinstance(v, Real) for v in values.ravel())
