"""Odd and wrong input to every public estimator: the right answer, or an error that says what it got."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

import majorant as mj
from majorant.registry import card_of

from .estimators import (
    ESTIMATORS,
    IN_TIME,
    NAMES,
    PENALISED,
    ROWS,
    N,
    assert_finite,
    assert_same_fit,
    fit,
    labels,
    make,
    numbers,
    objective,
    partition,
    predicted,
    reference,
    target,
    target_of,
)
from .forms_of_rows import DEGENERATE, NEAR_NUMBERS, SAME_NUMBERS, TEXT, WRONG


@pytest.fixture(params=ESTIMATORS, ids=lambda cls: cls.__name__)
def model(request: pytest.FixtureRequest) -> type[Any]:
    """Each public estimator."""
    cls: type[Any] = request.param
    return cls


@pytest.fixture(params=[cls for cls in ESTIMATORS if cls not in PENALISED], ids=lambda cls: cls.__name__)
def unitless(request: pytest.FixtureRequest) -> type[Any]:
    """Each public estimator whose answer has the units of the rows."""
    cls: type[Any] = request.param
    return cls


# Numbers in another form


@pytest.mark.parametrize("form", SAME_NUMBERS)
def test_the_form_of_the_numbers_does_not_matter(model: type[Any], form: str, tmp_path: Path) -> None:
    X = SAME_NUMBERS[form](tmp_path)
    fitted = fit(model, X)
    assert_same_fit(fitted, reference(model))
    np.testing.assert_array_equal(predicted(fitted, X), predicted(reference(model), ROWS))


@pytest.mark.parametrize("form", NEAR_NUMBERS)
def test_single_precision_and_sparse_rows_are_near(model: type[Any], form: str) -> None:
    X = NEAR_NUMBERS[form]()
    if sparse.issparse(X) and not get_tags(make(model)).input_tags.sparse:
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            fit(model, X)
        return
    fitted = fit(model, X)
    assert len(predicted(fitted, X)) == N
    y = target(model, N)
    np.testing.assert_array_equal(partition(labels(fitted, X, y)), partition(labels(reference(model), ROWS, y)))
    gap = getattr(fitted, "gap_", 0.0) + getattr(reference(model), "gap_", 0.0)  # what was solved to a gap may be in it
    assert objective(fitted) == pytest.approx(objective(reference(model)), rel=1e-5, abs=gap)


def test_input_is_never_written_to(model: type[Any]) -> None:
    X, weights = ROWS.copy(), np.linspace(1, 2, N)
    fit_params = {"sample_weight": weights} if has_fit_parameter(make(model), "sample_weight") else {}
    predicted(fit(model, X, **fit_params), X)
    np.testing.assert_array_equal(X, ROWS)
    np.testing.assert_array_equal(weights, np.linspace(1, 2, N))


# Wrong input


def refusal(model: type[Any], case: str, got: str) -> str:
    """What the error says: a model of dense rows refuses sparse ones for being sparse."""
    if case == "three dimensions" and get_tags(make(model)).input_tags.three_d_array:
        return "n_samples=1|y must have"
    return got if "csr" not in case or get_tags(make(model)).input_tags.sparse else "[Ss]parse"


@pytest.mark.parametrize("case", WRONG)
def test_wrong_rows_are_refused_with_what_was_got(model: type[Any], case: str) -> None:
    rows, got = WRONG[case]
    if got == "NaN" and "csr" not in case and get_tags(make(model)).input_tags.allow_nan:
        assert_finite(fit(model, rows()))
        return
    if case in TEXT and card_of(model).takes_text:
        assert_finite(make(model, 1).fit(rows()))
        return
    if case == "fewer rows than parts" and model in PENALISED:
        return
    estimator, X = make(model), rows()
    with pytest.raises((ValueError, TypeError), match=refusal(model, case, got)):
        estimator.fit(X, target_of(model, X))
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


@pytest.mark.parametrize(
    "case", [c for c in WRONG if c not in ("fewer rows than parts", "one row", "mixed column names")]
)
def test_wrong_rows_are_refused_by_predict(model: type[Any], case: str) -> None:
    rows, got = WRONG[case]
    if case == "three dimensions" and get_tags(make(model)).input_tags.three_d_array:
        if model is mj.ReconfigurableBagOfWords:  # every image has as many regions
            with pytest.raises(ValueError, match=rf"of the fit, \(\); got \({N},\)"):
                predicted(reference(model), rows())
            return
        assert len(predicted(reference(model), rows())) == 1
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X has feature names", UserWarning)
        if got == "NaN" and "csr" not in case and get_tags(make(model)).input_tags.allow_nan:
            assert np.isfinite(predicted(reference(model), rows())).all()
            return
        if case.startswith("pd.NA ") and card_of(model).takes_text:
            assert np.isfinite(predicted(reference(model), rows())).all()
            return
        with pytest.raises((ValueError, TypeError), match=refusal(model, case, got)):
            predicted(reference(model), rows())


def test_other_columns_are_refused_by_predict(model: type[Any]) -> None:
    with pytest.raises(ValueError, match=r"2 features.*3 features"):
        predicted(reference(model), ROWS[:, :2])
    fitted = fit(model, pd.DataFrame(ROWS, columns=NAMES))
    with pytest.raises(ValueError, match="feature names"):
        predicted(fitted, pd.DataFrame(ROWS, columns=["a", "b", "z"]))


def test_nothing_is_predicted_before_fit(model: type[Any]) -> None:
    with pytest.raises(NotFittedError, match="fit"):
        predicted(make(model), ROWS)


# Degenerate tables and extreme units


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_tables_give_numbers(model: type[Any], case: str) -> None:
    rows, size = DEGENERATE[case]
    X = rows()
    if case == "one row" and model in PENALISED:
        return  # of one class; see WRONG
    if case == "one row" and model is mj.DiscriminativeLatentClasses:
        with pytest.raises(ValueError, match="one class only"):
            fit(model, X, size)
        return
    distinct, which = np.unique(np.asarray(X, dtype=np.float64), axis=0, return_inverse=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = fit(model, X, size)
    assert_finite(fitted)
    expected = (ConvergenceWarning, LinAlgWarning)
    assert all(issubclass(w.category, expected) for w in caught), [str(w.message) for w in caught]
    if model in IN_TIME:
        return
    if (
        len(distinct) < size and card_of(model).kind != "regression" and model not in PENALISED
    ):  # there rows with different targets are distinct
        n_distinct = r"\d+" if card_of(model).kind == "classification" else len(distinct)  # of some class
        assert any(re.search(f"{n_distinct} distinct rows?\\b", str(w.message)) for w in caught)
    found = labels(fitted, X, target(model, len(X)))
    assert found.shape == (len(X),)
    if not card_of(model).needs_target:
        for group in range(len(distinct)):
            assert len(set(found[which == group])) == 1, "equal rows in different parts"


UNITS = [1e-8, 1e8, 1e-30, 1e30]
MORE_UNITS = [1e-150, 1e150, 1e-160, 1e160, 1e-300, 1e300]


@pytest.mark.parametrize(
    ("dtype", "unit"), [*((np.float64, u) for u in UNITS + MORE_UNITS), *((np.float32, u) for u in UNITS)]
)
def test_units_do_not_matter(unitless: type[Any], unit: float, dtype: type[Any]) -> None:
    """To labels; where the objective leaves the range of the numbers, an error says so."""
    model = unitless
    X = (ROWS * unit).astype(dtype)
    y = target(model, N)
    try:
        fitted = fit(model, X)
    except ValueError as error:
        assert not 1e-150 <= unit <= 1e150, "refused for no reason"
        assert "X" in str(error) and ("large" in str(error) or "small" in str(error))
        return
    assert_finite(fitted)
    np.testing.assert_array_equal(partition(labels(fitted, X, y)), partition(labels(reference(model), ROWS, y)))
    other = fit(model, ROWS.astype(dtype))
    np.testing.assert_array_equal(labels(other, ROWS.astype(dtype), y), labels(fitted, X, y))


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**40])
def test_powers_of_two_change_no_bit_of_the_labels(unitless: type[Any], unit: float) -> None:
    model = unitless
    y = target(model, N)
    np.testing.assert_array_equal(labels(fit(model, ROWS * unit), ROWS * unit, y), labels(reference(model), ROWS, y))


@pytest.mark.parametrize("offset", [1e8, -1e8, 1e12])
def test_the_origin_does_not_matter(unitless: type[Any], offset: float) -> None:
    model = unitless
    X, y = ROWS + offset, target(model, N)
    fitted = fit(model, X)
    np.testing.assert_array_equal(labels(fitted, X, y), labels(reference(model), ROWS, y))
    assert objective(fitted) == pytest.approx(objective(reference(model)), rel=1e-9)


# Weights


def weighted(cls: type[Any], weights: Any) -> Any:
    if not has_fit_parameter(make(cls), "sample_weight"):
        pytest.skip("the model takes no weights")
    return fit(cls, ROWS, sample_weight=weights)


@pytest.mark.parametrize(
    ("weights", "got"),
    [
        (np.r_[-1.0, np.ones(N - 1)], "entry 0 is -1"),
        (np.zeros(N), "zero"),
        (np.r_[np.ones(N - 1), np.nan], f"entry {N - 1} is nan"),
        (np.r_[np.inf, np.ones(N - 1)], "entry 0 is inf"),
        (np.full(N, 1e308), "too large"),
        (np.full(N, 5e-324), "too small"),
        (np.ones(N - 1), rf"\({N - 1},\)"),
        (np.ones((N, 1)), rf"\({N}, 1\)"),
        ([], r"\(0,\)"),
        (["1"] * N, "<U1"),
        ("heavy", "<U5"),
        ([None] * N, "object"),
        (np.ones(N) * 1j, "complex"),
        ([1.0, [2.0]], "sample_weight|inhomogeneous"),
    ],
    ids=str,
)
def test_wrong_weights_are_refused_with_what_was_got(model: type[Any], weights: Any, got: str) -> None:
    with pytest.raises((ValueError, TypeError), match=got):
        weighted(model, weights)


@pytest.mark.parametrize(
    "weights",
    [
        np.ones(N),
        np.ones(N, dtype=np.float32),
        np.ones(N, dtype=np.int8),
        np.ones(N, dtype=bool),
        [1] * N,
        np.ones(N, dtype=object),
        np.ones(2 * N)[::2],
        pd.Series(np.ones(N), index=range(N, 0, -1)),
        pl.Series(np.ones(N)),
        1.0,
    ],
    ids=["float64", "float32", "int8", "bool", "list", "objects", "strided", "pandas", "polars", "one number"],
)
def test_weights_of_one_are_no_weights(model: type[Any], weights: Any) -> None:
    assert_same_fit(weighted(model, weights), reference(model))


@pytest.mark.parametrize("weight", [2.0, 2.0**-300, 2.0**300, 0.1, 1e100, 1e-100])
def test_equal_weights_change_no_label(model: type[Any], weight: float) -> None:
    if weight == 2.0 and model is mj.RegressionMixture:
        pytest.skip("whole weights count rows, and of twice the rows a smaller share is a component that counts")
    fitted = weighted(model, np.full(N, weight))
    assert_finite(fitted)
    y = target(model, N)
    np.testing.assert_array_equal(labels(fitted, ROWS, y), labels(reference(model), ROWS, y))
    is_mean = model in PENALISED or card_of(model).objective_name.endswith("share")
    assert objective(fitted) == pytest.approx((1.0 if is_mean else weight) * objective(reference(model)), rel=1e-9)


def test_rows_without_weight_change_nothing(model: type[Any]) -> None:
    if not has_fit_parameter(make(model), "sample_weight"):
        pytest.skip("the model takes no weights")
    junk = np.array([[1e6, -1e6, 0.0], [3.0, 3.0, 3.0], [1e-9, 1e9, 50.0]])
    X = np.vstack([junk[:1], ROWS[:20], junk[1:2], ROWS[20:], junk[2:]])
    kept = np.ones(len(X))
    kept[[0, 21, len(X) - 1]] = 0
    y = target(model, N)
    y_all = None if y is None else np.insert(y, [0, 20, N], 99.0)
    fitted = make(model).fit(X, y_all, sample_weight=kept)
    expected = numbers(reference(model))
    for name, value in numbers(fitted).items():
        by_row = value.shape[:1] == (len(X),)
        if name == "medoid_indices_":  # numbers of rows
            value = np.cumsum(kept)[value] - 1
        np.testing.assert_array_equal(value[kept > 0] if by_row else value, expected[name], err_msg=name)


# Targets


def test_a_target_of_two_dimensions(model: type[Any]) -> None:
    y = target(model, N)
    if y is None:
        assert_same_fit(make(model).fit(ROWS, np.ones((N, 2))), reference(model))
        return
    with pytest.warns(UserWarning, match="column-vector"):
        fitted = make(model).fit(ROWS, y[:, None])
    assert_same_fit(fitted, reference(model))


@pytest.mark.parametrize("model", [mj.KMeans(2), mj.GaussianMixture(2), mj.HiddenMarkovModel(2)])
def test_the_first_infinite_cell_is_told(model: Any) -> None:
    table = pd.DataFrame({"first": np.arange(20.0), "steps": np.arange(20.0) ** 2})
    table.loc[7, "steps"] = np.inf
    with pytest.raises(ValueError, match=r"Input X contains infinity .*; the first is in row 7, column 'steps'$"):
        model.fit(table)
