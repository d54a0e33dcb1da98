"""Metrics of rankings: each query as scikit-learn scores it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import sparse
from sklearn.metrics import average_precision_score, precision_recall_curve

from majorant import metrics

RANKINGS = arrays(
    np.float64, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.sampled_from([0.0, 1.0, 2.0])
)


@given(relevant=RANKINGS)
def test_each_query_has_the_average_precision_of_scikit_learn(relevant: np.ndarray) -> None:
    scores = -np.arange(relevant.shape[1], dtype=float)
    expected = [average_precision_score(row > 0, scores) if row.any() else 0.0 for row in relevant]
    np.testing.assert_allclose(metrics.average_precision(relevant), expected, rtol=1e-12)
    assert metrics.mean_average_precision(relevant) == pytest.approx(np.mean(expected), rel=1e-12)


@given(relevant=RANKINGS)
def test_the_curve_is_the_mean_of_interpolated_curves(relevant: np.ndarray) -> None:
    scores, levels = -np.arange(relevant.shape[1], dtype=float), np.linspace(0, 1, 11)
    expected = np.zeros(11)
    for row in relevant:
        if row.any():
            precision, recall, _ = precision_recall_curve(row > 0, scores)
            precision, recall = precision[:-1], recall[:-1]  # the last is a point that no cut of the ranking has
            expected += [precision[recall >= level - 1e-12].max() for level in levels]
    found = metrics.mean_precision_at_recall(relevant)
    np.testing.assert_allclose(found, [levels, expected / len(relevant)], rtol=1e-12, atol=1e-15)


def test_rankings_that_are_cut_count_what_they_leave_out() -> None:
    whole = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0]])
    assert metrics.mean_average_precision(whole, n=2) == pytest.approx((1 / 2 + 0 + 0) / 3)
    assert metrics.mean_average_precision(whole, n=3) == pytest.approx((1 + 2 / 3) / 3 / 3)
    cut = metrics.average_precision(whole[:, :3], n_relevant=whole.sum(axis=1))
    np.testing.assert_allclose(cut, [(1 + 2 / 3) / 3, 0, 0])
    recall, precision = metrics.mean_precision_at_recall(whole[:1, :3], [0.5, 0.9], n_relevant=[3])
    assert recall.tolist() == [0.5, 0.9] and precision.tolist() == [2 / 3, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.average_precision([1, 0]), "shape"),
        (lambda: metrics.average_precision([[1, 0]], n_relevant=[1.5]), "n_relevant must hold whole numbers; got 1.5"),
        (lambda: metrics.average_precision([[1, 0]], n_relevant=[np.inf]), "whole numbers; got inf"),
        (lambda: metrics.mean_precision_at_recall([[1, 0]], 0.5), "a list of levels between 0 and 1"),
        (lambda: metrics.average_precision(np.zeros((2, 0))), "shape"),
        (lambda: metrics.average_precision([[np.nan, 1]]), "NaN"),
        (lambda: metrics.average_precision([[1, 1]], n_relevant=[1]), "query 0 ranks 2"),
        (lambda: metrics.average_precision([[1, 1]], n_relevant=[1, 2]), "n_relevant"),
        (lambda: metrics.mean_average_precision([[1, 1]], n=3), "n must be"),
        (lambda: metrics.mean_precision_at_recall([[1, 1]], [1.5]), "recall"),
    ],
)
def test_what_is_no_ranking_is_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("n", [2.0, "2", True, [2], np.float64(2)])
def test_a_length_that_is_no_whole_number_is_refused(n: Any) -> None:
    with pytest.raises(TypeError, match="n must be a whole number"):
        metrics.mean_average_precision([[1, 1]], n=n)


@pytest.mark.parametrize("n", [0, -1, 3])
def test_a_length_out_of_range_is_refused(n: int) -> None:
    with pytest.raises(ValueError, match="n must be"):
        metrics.mean_average_precision([[1, 1]], n=n)
    assert metrics.mean_average_precision([[1, 1]], n=2) == 1.0


TABLE = np.array([[2.0, 1.0, 0.0], [2.0, 0.0, 1.0], [0.0, 1.0, 2.0]])
FRAME = pd.DataFrame(TABLE, index=[7, 8, 9])
PAIRS = {  # both tables of each function, and their names
    metrics.average_precision: ("relevant", "n_relevant", [3, 3, 3]),
    metrics.mean_average_precision: ("relevant", "n_relevant", [3, 3, 3]),
    metrics.class_profiles: ("latents", "y", [1, 2, 1]),
    metrics.mean_pairwise_kl: ("latents", "y", [1, 2, 1]),
}


def called(function: Any, first: Any, second: Any) -> Any:
    return function(first, second) if PAIRS[function][1] == "y" else function(first, n_relevant=second)


@pytest.mark.parametrize("function", PAIRS)
def test_what_is_no_number_is_refused(function: Any) -> None:
    first, second, values = PAIRS[function]
    numbers = "NaN or infinity" if first == "latents" else "NaN"
    for wrong, error, said in [
        (TABLE.astype("M8[D]"), TypeError, "holds dates or durations"),
        (TABLE.astype("m8[s]"), TypeError, "holds dates or durations"),
        (np.ma.masked_equal(TABLE, 2), ValueError, "3 masked cells"),
        (np.where(TABLE > 1, np.nan, TABLE), ValueError, f"contains {numbers}"),
        ([*TABLE.astype(str).tolist()[:2], ["a", "b", "c"]], ValueError, "must hold numbers"),
        (TABLE[0], ValueError, r"must have a row per .* got .*shape \(3,\)"),
        (np.zeros((3, 0)), ValueError, r"must have a row per .* got .*shape \(3, 0\)"),
        (sparse.csr_matrix(TABLE), TypeError, "is a sparse matrix"),
        (sparse.coo_array(TABLE), TypeError, "is a sparse matrix"),
    ]:
        with pytest.raises(error, match=f"^{first} .*{said}"):
            called(function, wrong, values)
    for wrong, said in [(np.ma.masked_equal(values, values[0]), "masked cells?"), ([None, *values[1:]], "NaN|numbers")]:
        with pytest.raises((ValueError, TypeError), match=f"{second}.*{said}"):
            called(function, TABLE, wrong)


@pytest.mark.parametrize("function", PAIRS)
def test_rows_are_paired_by_their_names(function: Any) -> None:
    first, second, values = PAIRS[function]
    with pytest.raises(ValueError, match=f"rows of {second} .* those of {first} in another order: row 0 is 9 in"):
        called(function, FRAME, pd.Series(values, index=[9, 8, 7]))
    found = called(function, FRAME, pd.Series(values, index=[7, 8, 9]))
    np.testing.assert_equal(found, called(function, TABLE, values))


def test_levels_of_recall_are_numbers() -> None:
    with pytest.raises(TypeError, match="recall holds dates or durations"):
        metrics.mean_precision_at_recall(TABLE, np.array([0, 1], dtype="m8[s]"))


def test_classes_may_be_dates_but_not_unknown_ones() -> None:
    days = np.array(["2026-01-02", "2026-01-01", "2026-01-02"], dtype="M8[D]")
    classes, profiles = metrics.class_profiles(TABLE, days)
    np.testing.assert_array_equal(classes, np.unique(days))
    np.testing.assert_array_equal(profiles, [TABLE[1], (TABLE[0] + TABLE[2]) / 2])
    assert metrics.mean_pairwise_kl(TABLE, days) == metrics.mean_pairwise_kl(TABLE, [2, 1, 2])
    with pytest.raises(ValueError, match="row 1"):
        metrics.class_profiles(TABLE, np.array(["2026-01-02", "NaT", "2026-01-02"], dtype="M8[D]"))
