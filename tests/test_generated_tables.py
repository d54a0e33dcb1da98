"""Small tables of every kind that a generator makes: each estimator gives numbers, or an error with words."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import has_fit_parameter

from majorant.registry import card_of

from .estimators import ESTIMATORS, assert_finite, fit, labels, make, target

EXTREMES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    2.0,
    7.0,
    1e8,
    -1e8,
    1e-8,
    1e30,
    1e-30,
    1e150,
    1e200,
    -1e300,
    1e308,
    1e-300,
    5e-324,
]
BROKEN = [np.nan, np.inf, -np.inf]
DTYPES = [np.float64, np.float32, np.float16, np.int8, np.int64, np.uint8, bool, object]


@st.composite
def tables(draw: st.DrawFn) -> Any:
    """Small tables of few values, often equal rows, of one number type or of one a column."""
    shape = draw(st.integers(1, 10)), draw(st.integers(1, 3))
    values = draw(st.sampled_from([EXTREMES[:7], EXTREMES, EXTREMES + BROKEN]))
    cells = st.lists(st.sampled_from(values), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
    table = np.array(draw(cells)).reshape(shape)
    if draw(st.booleans()):
        table = np.repeat(table, 2, axis=0)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        columns = [table[:, j].astype(draw(st.sampled_from(DTYPES))) for j in range(shape[1])]
    form = draw(st.sampled_from(["array", "frame", "csr"]))
    if form == "frame":
        return pd.DataFrame({f"x{j}": column for j, column in enumerate(columns)})
    array = np.column_stack([columns[0]] * shape[1]) if draw(st.booleans()) else table
    return sparse.csr_matrix(array) if form == "csr" and array.dtype not in (object, np.float16) else array


@settings(max_examples=250)
@given(X=tables(), size=st.integers(1, 4), weights=st.sampled_from([None, "some zero", "extreme"]))
@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_generated_tables_give_numbers_or_a_clear_error(cls: type[Any], X: Any, size: int, weights: str | None) -> None:
    n = X.shape[0]
    fit_params = {}
    if weights is not None and has_fit_parameter(make(cls), "sample_weight"):
        values = np.arange(n) % 2.0 if weights == "some zero" else 10.0 ** (20 * (np.arange(n) % 5) - 40)
        fit_params = {"sample_weight": values}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", LinAlgWarning)
            warnings.filterwarnings("ignore", "invalid value encountered in reduce")  # scikit-learn sums inf and -inf
            fitted = fit(cls, X, size, **fit_params)
    except (ValueError, TypeError) as error:
        assert str(error)
        return
    assert_finite(fitted)
    try:
        found = labels(fitted, X, target(cls, n))
    except ValueError as error:  # of rows without weight, which the fit has not seen
        assert weights == "some zero"
        assert "a level that the fit has not seen" in str(error) or "no component is near row" in str(error)
        return
    kind = card_of(cls).kind
    possible = fitted.classes_ if kind == "classification" else range(2 if kind == "representation" else size)
    assert found.shape == (n,) and np.isin(found, possible).all()
