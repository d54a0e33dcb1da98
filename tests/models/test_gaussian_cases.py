"""Data from the field on which software for Gaussian mixtures goes wrong, and their right answers."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import majorant as mj
from majorant.models.gaussian_mixture.words import few_valued_sentence
from majorant.search.record import PERTURBATION, StartRecord

Array = NDArray[np.float64]
SEEDS = range(4)


def fit(X: Any, k: int, **parameters: Any) -> mj.GaussianMixture:
    """A fit that warns of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return mj.GaussianMixture(k, **{"random_state": 0, **parameters}).fit(X)


def warned(X: Any, k: int, **parameters: Any) -> tuple[mj.GaussianMixture, str]:
    """A fit and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = mj.GaussianMixture(k, **{"random_state": 0, **parameters}).fit(X)
    assert all(issubclass(w.category, ConvergenceWarning) for w in caught)
    return fitted, " ".join(str(w.message) for w in caught)


def stripes() -> Array:
    draws = np.random.default_rng(15)
    halves = [np.c_[draws.uniform(0, 10, 150), draws.normal(height, 0.15, 150)] for height in (0.0, 1.5)]
    return np.concatenate(halves)


def overlapping() -> Array:
    draws = np.random.default_rng(5)
    parts = [
        draws.multivariate_normal((2, 4), [[5, 2], [2, 6]], 300),
        draws.multivariate_normal((0, 0), [[4, 2], [2, 3]], 100),
    ]
    return np.concatenate(parts).round(3)


def two_scales() -> Array:
    draws = np.random.default_rng(6)
    halves = [np.c_[draws.normal(centre, 1, 200), draws.normal(0, 40, 200)] for centre in (0, 6)]
    return np.concatenate(halves).round(3)


def thousands() -> Array:
    draws = np.random.default_rng(70)
    return np.concatenate([draws.normal(1000, 150, 400), draws.normal(2000, 300, 400)]).round(1)[:, None]


HALVES = np.repeat([0, 1], 200)


@pytest.mark.parametrize("random_state", SEEDS)
def test_two_parallel_stripes(random_state: int) -> None:
    fitted = fit(stripes(), 2, random_state=random_state)
    assert fitted.log_likelihood_ == pytest.approx(-797.9058, abs=1e-4)
    assert adjusted_rand_score(np.repeat([0, 1], 150), fitted.predict(stripes())) == 1.0


@pytest.mark.parametrize("random_state", SEEDS)
def test_the_default_tolerance_reaches_a_flat_maximum(random_state: int) -> None:
    fitted = fit(overlapping(), 2, random_state=random_state)
    assert fitted.converged_
    assert fitted.log_likelihood_ == pytest.approx(-1822.48480, abs=2e-5)
    np.testing.assert_allclose(fitted.weights_, [0.83762, 0.16238], atol=2e-5)


@pytest.mark.parametrize("init_params", ["kmeans", "k-means++", "random", "random_from_data"])
def test_converged_means_at_the_maximum_from_any_start(init_params: str) -> None:
    """What is said to have converged gains nothing from a much smaller tolerance."""
    X = overlapping()
    loose = fit(X, 2, init_params=init_params, max_iter=3000)
    tight = fit(X, 2, init_params=init_params, max_iter=3000, tol=1e-6)
    assert loose.converged_
    assert loose.log_likelihood_ == pytest.approx(tight.log_likelihood_, abs=len(X) * 1e-7)


def test_a_climb_that_is_cut_short_says_so() -> None:
    fitted, said = warned(overlapping(), 2, init_params="kmeans", max_iter=3)
    assert not fitted.converged_ and "max_iter=3" in said and fitted.n_iter_ == 3


@pytest.mark.parametrize("factor", [1e-8, 1 / 40, 1.0, 1e8])
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_the_scale_of_a_column_does_not_matter(factor: float, covariance_type: str) -> None:
    X = two_scales()
    fitted = fit(X * [1, factor], 2, covariance_type=covariance_type)
    plain = fit(X, 2, covariance_type=covariance_type)
    assert fitted.log_likelihood_ + 400 * np.log(factor) == pytest.approx(plain.log_likelihood_, abs=1e-6)
    np.testing.assert_array_equal(fitted.predict(X * [1, factor]), plain.predict(X))
    if covariance_type == "full":
        assert plain.log_likelihood_ == pytest.approx(-2872.13761, abs=1e-5)
        assert adjusted_rand_score(HALVES, plain.predict(X)) == pytest.approx(0.980, abs=1e-3)


@pytest.mark.parametrize("unit", [1e-7, 1e-5, 1e-3, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
def test_units_do_not_matter(unit: float, covariance_type: str) -> None:
    fitted = fit(thousands() * unit, 2, covariance_type=covariance_type)
    assert fitted.log_likelihood_ + 800 * np.log(unit) == pytest.approx(-5951.652781634, abs=1e-6)
    np.testing.assert_allclose(fitted.means_.ravel() / unit, [1003.36589, 2003.94630], rtol=2e-7)
    np.testing.assert_allclose(np.sqrt(fitted.covariances_.ravel()) / unit, [151.5556, 302.4390], rtol=2e-6)
    np.testing.assert_allclose(fitted.weights_, [0.503289, 0.496711], atol=1e-6)


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize(("unit", "shift"), [(1e-8, 0.0), (1e8, 0.0), (1.0, 1e8), (2.0**-30, 0.0)])
def test_labels_are_those_of_other_units(covariance_type: str, unit: float, shift: float) -> None:
    X = overlapping()
    plain, moved = (fit(rows, 2, covariance_type=covariance_type) for rows in (X, X * unit + shift))
    np.testing.assert_array_equal(plain.predict(X), moved.predict(X * unit + shift))


# Digits


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("covariance_type", ["spherical", "diag", "tied", "full"])
def test_variances_of_far_single_rows_are_what_is_added(covariance_type: str, dtype: type[Any]) -> None:
    X = np.array([[20000.0], [0.0]], dtype=dtype)
    fitted, said = warned(X, 2, covariance_type=covariance_type, reg_covar=0.1)
    np.testing.assert_allclose(fitted.covariances_.ravel(), 0.1, rtol=1e-6)
    assert not fitted.regular_ and "No regular solution" in said


@pytest.mark.parametrize("covariance_type", ["spherical", "diag", "full"])
@pytest.mark.parametrize(("own", "is_regular"), [(1.5, True), (0.7, False)])
def test_components_vary_by_more_than_is_added(own: float, is_regular: bool, covariance_type: str) -> None:
    draws = np.random.default_rng(0)
    turned = np.linalg.qr(np.column_stack([np.ones(40), draws.normal(size=(40, 2))]))[0][:, 1:]
    tight, wide = turned * np.sqrt(40 * own * 0.01), draws.normal(100, 1, (60, 2))
    fitted, _ = warned(np.concatenate([tight, wide]), 2, covariance_type=covariance_type, reg_covar=0.01)
    np.testing.assert_allclose(np.linalg.norm(fitted.means_, axis=1).min(), 0.0, atol=1e-6)
    assert fitted.regular_ == is_regular


FAR_TRIPLES = [(1e6 + 1, 1e6 - 1), (1e6 - 1, 1e6 + 1), (1e6 + 2, 1e6), (5, 3), (4, 4), (6, 3)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_variances_of_tight_groups_far_apart(dtype: type[Any]) -> None:
    X = np.array(FAR_TRIPLES, dtype=dtype)
    variances = np.array([[1.5555556, 0.6666667], [0.6666667, 0.2222222]])
    diag, _ = warned(X, 2, covariance_type="diag")
    np.testing.assert_allclose(diag.covariances_[np.argsort(-diag.means_[:, 0])], variances, rtol=1e-4)
    spherical, _ = warned(X, 2, covariance_type="spherical")
    np.testing.assert_allclose(np.sort(spherical.covariances_), np.sort(variances.mean(axis=1)), rtol=1e-4)
    full, said = warned(X, 2)
    np.testing.assert_allclose(
        np.diagonal(full.covariances_, axis1=1, axis2=2)[np.argsort(-full.means_[:, 0])], variances, rtol=1e-4
    )
    assert not full.regular_ and "fewer than 6 rows" in said


@pytest.mark.parametrize("width", [1.0, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_tight_groups_are_no_collapse(covariance_type: str, width: float) -> None:
    """However narrow beside their distances, groups of many rows are regular and of their own width."""
    draws = np.random.default_rng(3)
    truth = np.repeat(np.arange(3), 40)
    X = np.array([[0, 0], [10, 2], [3, 9]])[truth] + width * draws.standard_normal((120, 2))
    fitted = fit(X, 3, covariance_type=covariance_type)
    assert fitted.regular_ and adjusted_rand_score(truth, fitted.predict(X)) == 1.0
    deviations = np.sqrt(np.linalg.eigvalsh(fitted.covariances_)) if covariance_type in ("full", "tied") else None
    deviations = np.sqrt(fitted.covariances_) if deviations is None else deviations
    assert (np.abs(np.log(deviations / width)) < 0.4).all()


# The floor chooses nothing


def test_more_columns_than_rows_of_a_component() -> None:
    X = np.random.default_rng(12).normal(size=(20, 10)) * 0.01
    one = fit(X, 1)
    assert one.log_likelihood_ == pytest.approx(677.6071591, abs=1e-6)
    for k in (2, 4, 5):
        fitted, said = warned(X, k)
        assert not fitted.regular_ and "No regular solution" in said
        assert fitted.aic(X) == fitted.bic(X) == fitted.icl(X) == np.inf
        assert np.isfinite(fitted.log_likelihood_)
    assert np.isfinite(one.bic(X))


def one_hot_and_two() -> Array:
    draws = np.random.default_rng(13)
    levels = draws.integers(0, 4, 300)
    return np.c_[np.eye(4)[levels], draws.normal(size=(300, 2))]


@pytest.mark.parametrize("covariance_floor", ["auto", 1e-6, 1e-9])
def test_one_hot_columns_are_named_and_choose_no_size(covariance_floor: Any) -> None:
    X = one_hot_and_two()
    criteria = []
    for k in range(1, 5):
        fitted, said = warned(X, k, covariance_floor=covariance_floor)
        assert "Columns 0, 1, 2, 3 are linear functions of each other" in said
        assert fitted.rank_ == 5
        criteria.append(fitted.bic(X))
    assert int(np.argmin(criteria)) == 0
    assert criteria[0] == pytest.approx(-5080.012546, abs=1e-4)


def test_a_component_on_one_row_is_reported_and_never_first() -> None:
    """A far row, of which a component of its own has any likelihood."""
    X = np.r_[np.random.default_rng(0).normal(size=(60, 2)), [[1e3, 1e3]]]
    fitted, said = warned(X, 2)
    if fitted.regular_:
        assert (fitted.weights_ * len(X) >= 6 - 1e-6).all() and not said
    else:
        assert "fewer than 6 rows" in said or "collapses" in said
    assert np.isfinite(fitted.score_samples(X)).all()


def test_a_collapse_is_not_preferred_to_a_regular_solution() -> None:
    """Equal values in one column beside ordinary ones: the likelihood has no bound there."""
    draws = np.random.default_rng(1)
    X = draws.normal(size=(150, 2))
    X[:20, 1] = 0.25
    for k in (2, 3):
        fitted, said = warned(X, k)
        assert fitted.regular_ and not said
        assert fitted.best_degenerate_ is not None and fitted.best_degenerate_ > fitted.log_likelihood_
        assert "degenerate" in fitted.search_.note
        assert fitted.variance_ratios_.min() >= 5e-4


def test_constant_and_repeated_columns_are_named() -> None:
    X = two_scales()
    plain = fit(X, 2)
    constant, said = warned(np.c_[X, np.full(len(X), 7.0)], 2)
    assert "Constant column: 2. It does not" in said
    np.testing.assert_array_equal(constant.predict(np.c_[X, np.full(len(X), 7.0)]), plain.predict(X))
    repeated, said = warned(np.c_[X, 3 * X[:, 1] - 1], 2)
    assert "Columns 1, 2 are linear functions" in said
    np.testing.assert_array_equal(repeated.predict(np.c_[X, 3 * X[:, 1] - 1]), plain.predict(X))


def test_columns_of_two_values_are_named_with_the_model_that_takes_them() -> None:
    table = pd.DataFrame(one_hot_and_two(), columns=["a=1", "a=2", "a=3", "a=4", "x", "y"])
    said = warned(table, 4)[1]
    assert "'a=1', 'a=2', 'a=3', 'a=4' hold two values" in said and "LatentClassAnalysis" in said
    said = warned(np.random.default_rng(0).integers(2, size=(120, 1)).astype(float), 2)[1]
    assert "Column 0 holds two values and is no normal distribution: " in said and "takes it, and text" in said
    wide = np.eye(40)[np.arange(200) % 40]
    with pytest.warns(ConvergenceWarning, match="Columns 0, 1, 2, 3, 4 and 35 more hold two values each"):
        mj.GaussianMixture(2, covariance_type="diag", random_state=0).fit(wide)
    heap = np.r_[np.random.default_rng(0).normal(size=(5, 2)), np.full((5, 2), 9.0)]
    said = warned(heap, 2)[1]
    assert "No regular solution" in said and "LatentClassAnalysis" not in said


def five_values() -> pd.DataFrame:
    random = np.random.default_rng(3)
    count = random.choice([3.0, 4.0, 5.0, 6.0, 8.0], p=[0.02, 0.5, 0.02, 0.2, 0.26], size=400)
    return pd.DataFrame({"count": count, "size": 50 * count + 40 * random.normal(size=400)})


def test_a_column_of_few_values_is_named() -> None:
    said = warned(five_values(), 3)[1]
    assert "No regular solution" in said and "Column 'count' holds 5 values and is no normal distribution" in said
    numbers = np.random.default_rng(0).normal(size=(60, 2)).round(1)  # of many values, each of few rows
    assert few_valued_sentence([(0, 5), (1, 3)], None).startswith("Columns 0, 1 hold few values each")
    assert not fit(numbers, 2).few_valued_


def test_regular_solutions_that_most_runs_miss_are_said_to_be_chance() -> None:
    model = fit(two_scales(), 2)
    assert "largely chance" not in str(model.summary())
    starts = (
        StartRecord("random", model.log_likelihood_, 9, True),
        StartRecord(PERTURBATION, model.log_likelihood_, 9, True),
    )
    model.search_ = replace(model.search_, starts=starts, n_degenerate=9)
    said = " ".join(str(model.summary()).split())
    assert "9 of 11 runs ended at degenerate solutions: which regular one is found is largely chance" in said
    assert "ended regular (9 more did not)" in said
