"""Rows of many more columns than there are rows: no table of columns by columns, and the same answers."""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

import majorant as mj
from majorant.solvers.kmeans_bounds import kmeans_lower_bound
from majorant.solvers.mixture_bounds import mixture_upper_bound

N, D = 60, 4000


def wide() -> NDArray[np.float64]:
    """Three groups of rows that differ in ten columns each."""
    x = np.random.default_rng(0).normal(size=(N, D))
    for group in range(3):
        x[group::3, 10 * group : 10 * group + 10] += 8.0
    return x


X = wide()


@contextmanager
def small_memory() -> Iterator[None]:
    """Less than half of a table of columns by columns, where one copy of the rows is a hundredth."""
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * D * D


SPARING: dict[str, Any] = {
    "KMeans": mj.KMeans(3, random_state=0),
    "diag": mj.GaussianMixture(3, covariance_type="diag", random_state=0),
    "spherical": mj.GaussianMixture(3, covariance_type="spherical", random_state=0),
    "DiscriminativeClustering": mj.DiscriminativeClustering(3, random_state=0),
    "DiscriminativeLatentClasses": mj.DiscriminativeLatentClasses(3, random_state=0),
    "LatentPrototypeClassifier": mj.LatentPrototypeClassifier(random_state=0),
    "LatentSVC": mj.LatentSVC(random_state=0),
    "RegressionMixture": mj.RegressionMixture(2, random_state=0),
    "Harmonium": mj.Harmonium(3),
    "Harmonium, whitened": mj.Harmonium(3, views={"x": mj.Gaussian(whiten=True)}),
    "HarmoniumClassifier": mj.HarmoniumClassifier(3, l2=500.0, loss_weight=1.0, tol=1e-6),
}


@pytest.mark.parametrize("name", SPARING)
def test_no_table_of_columns_by_columns(name: str) -> None:
    y = None if name in ("KMeans", "diag", "spherical", "Harmonium", "Harmonium, whitened") else np.arange(N) % 3
    with small_memory():
        fitted = SPARING[name].fit(X, y)
        found = fitted.predict(X) if hasattr(fitted, "predict") else fitted.transform(X)
        str(fitted.summary())
        if name == "KMeans":
            fitted.report(X)
    if name == "KMeans":
        assert len(set(zip(found, np.arange(N) % 3, strict=True))) == 3


NUMBERS: dict[str, Any] = {
    "GaussianMixture": mj.GaussianMixture(2, covariance_type="diag", init_params="random", max_iter=2, random_state=0),
    "HiddenMarkovModel": mj.HiddenMarkovModel(2, covariance_type="diag", effort="fast", max_iter=2, random_state=0),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_said_of_wide_rows_takes_no_table_of_columns_by_columns(name: str) -> None:
    """Standard errors need one of parameters by parameters, and are refused before it is made."""
    with small_memory():
        fitted = NUMBERS[name].fit(X)
        fitted.predict_proba(X), fitted.score_samples(X), fitted.bic(X), str(fitted.summary())
        drawn = fitted.sample(50)[0]
        for ask in (fitted.standard_errors, fitted.confidence_intervals):
            with pytest.raises(
                ValueError, match=r"standard errors of 16,00\d parameters need tables of [\d,]+ GB: choose"
            ):
                ask(X)
    assert drawn.shape == (50, D) and abs(drawn.std() - X.std()) < 0.2


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_drawn_rows_have_the_covariance_of_their_state(covariance_type: str) -> None:
    x = np.random.default_rng(0).normal(size=(300, 3)) @ np.array([[1.0, 0.8, 0], [0, 2.0, 0], [0, 0, 5.0]]) + 100
    fitted = mj.HiddenMarkovModel(1, covariance_type=covariance_type, random_state=0).fit(x)
    found = np.cov(fitted.sample(40_000)[0].T)
    expected = fitted.covariances_[0]
    expected = expected if np.ndim(expected) == 2 else np.diag(np.broadcast_to(expected, 3))
    np.testing.assert_allclose(found, expected, atol=0.03 * expected.max())


@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
def test_no_table_of_columns_by_columns_where_cells_are_missing(covariance_type: str) -> None:
    x = X.copy()
    x[0, :3] = np.nan
    with small_memory():
        fitted = mj.GaussianMixture(1, covariance_type=covariance_type, random_state=0).fit(x)
    np.testing.assert_allclose(fitted.means_[0], np.nanmean(x, axis=0), atol=1e-6)


@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
def test_the_log_likelihood_of_a_wide_mixture_is_that_of_its_parameters(covariance_type: str) -> None:
    x = X[:, :200].copy()
    x[:, 7] = 5.0  # a column that does not vary is still: it has a variance of its own that is made up
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = mj.GaussianMixture(2, covariance_type=covariance_type, random_state=0).fit(x)
    deviations = np.sqrt(fitted.covariances_.reshape(2, -1))
    logs = norm.logpdf(x[:, None], fitted.means_, deviations).sum(axis=2) + np.log(fitted.weights_)
    assert np.isclose(fitted.log_likelihood_, np.logaddexp.reduce(logs, axis=1).sum(), rtol=1e-10)
    np.testing.assert_allclose(fitted.score_samples(x), np.logaddexp.reduce(logs, axis=1), rtol=1e-9)


def test_the_bound_of_wide_rows_is_that_of_an_isometry() -> None:
    fitted = mj.KMeans(3, random_state=0).fit(X)
    with small_memory():
        bound = fitted.certify(X).bound
    basis = np.linalg.qr(X.T)[0]  # in 40 coordinates distances are the same
    thin = kmeans_lower_bound(X @ basis, None, fitted.cluster_centers_ @ basis).bound
    assert np.isclose(bound, thin, rtol=1e-9)
    assert 0.9 * fitted.inertia_ < bound <= fitted.inertia_


@pytest.mark.parametrize("n_rows", [30, 90])
def test_coefficients_that_rows_do_not_determine_are_the_smallest(n_rows: int) -> None:
    """In standard units, as the pseudo-inverse gives them; a constant column and copies cost nothing."""
    random = np.random.default_rng(0)
    x = random.normal(size=(n_rows, 80)) @ np.diag(random.uniform(0.1, 9.0, 80))
    x[:, 3], x[:, 7], x[:, 60] = x[:, 1] - x[:, 2], 5.0, x[:, 4]
    y = x[:, 0] + random.normal(size=n_rows)
    with pytest.warns(LinAlgWarning):
        warnings.simplefilter("ignore", ConvergenceWarning)  # a line through 30 rows is exact
        fitted = mj.RegressionMixture(1, random_state=0).fit(x, y)
    scale = x.std(axis=0)
    scale[7] = 1.0
    smallest = np.linalg.pinv((x - x.mean(axis=0)) / scale, rcond=1e-10) @ (y - y.mean()) / scale
    np.testing.assert_allclose(fitted.coef_[0], smallest, atol=1e-8)
    assert fitted.coef_[0, 7] == 0


@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
@pytest.mark.parametrize("floor", ["fitted", "variances"])
def test_a_wide_mixture_is_certified_without_a_table_of_columns_by_columns(covariance_type: str, floor: str) -> None:
    with small_memory():
        fitted = mj.GaussianMixture(1, covariance_type=covariance_type, random_state=0).fit(X)
        least = "fitted" if floor == "fitted" else np.full(D, 0.5 * fitted.covariances_.min())
        told = fitted.certify(X, covariance_at_least=least, effort="fast")
    assert np.isclose(told.objective, fitted.log_likelihood_, rtol=1e-9) and told.objective <= told.bound


def test_the_bound_of_a_wide_mixture_is_that_of_an_isometry() -> None:
    """Directions in which the rows do not differ add the peak of their density, and nothing else."""
    variance = 90.0
    found = mixture_upper_bound(X, None, np.full(D, variance), effort="fast")
    middle = X.mean(axis=0)
    basis = np.linalg.qr((X - middle).T)[0]
    thin = mixture_upper_bound((X - middle) @ basis, None, variance * np.eye(basis.shape[1]), effort="fast")
    others = -0.5 * N * (D - basis.shape[1]) * np.log(2 * np.pi * variance)
    assert np.isclose(found.bound, thin.bound + others, rtol=1e-6)
    assert np.isclose(found.attained, thin.attained + others, rtol=1e-6)


REFUSED: dict[str, Any] = {
    "GaussianMixture": mj.GaussianMixture(2),
    "tied": mj.GaussianMixture(2, covariance_type="tied"),
    "HiddenMarkovModel": mj.HiddenMarkovModel(2),
    "student": mj.HiddenMarkovModel(2, emission="student"),
    "regression": mj.HiddenMarkovModel(2, emission="regression"),
    "LatentClassAnalysis": mj.LatentClassAnalysis(2, items="normal", correlated="all"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_matrices_that_few_rows_cannot_determine_are_refused_at_once(name: str) -> None:
    with small_memory(), pytest.raises(ValueError, match=r"60 rows determine no (covariance matrix|line) o[fn] "):
        REFUSED[name].fit(X)


GATED: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "GaussianMixture": (mj.GaussianMixture(2), (X[:, :2],)),
    "HiddenMarkovModel": (mj.HiddenMarkovModel(2), (X[:, :2],)),
    "LatentClassAnalysis": (mj.LatentClassAnalysis(2), (X[:, :5] > 0,)),
    "RegressionMixture": (mj.RegressionMixture(2), (X[:, :1], X[:, 1])),
}


@pytest.mark.parametrize("name", GATED)
def test_weights_that_few_rows_cannot_determine_are_refused_at_once(name: str) -> None:
    model, given = GATED[name]
    with small_memory(), pytest.raises(ValueError, match="60 rows determine no effects of 4,000 covariates"):
        model.fit(*given, gating=X)


def test_effects_on_classes_that_few_rows_cannot_determine_are_refused_at_once() -> None:
    bits = np.random.default_rng(0).random((N, 5)) < np.where(np.arange(N) % 2, 0.9, 0.1)[:, None]
    fitted = mj.LatentClassAnalysis(2, random_state=0).fit(bits)
    with small_memory(), pytest.raises(ValueError, match="60 rows determine no effects of 4,000 covariates"):
        fitted.covariate_effects(bits, X)
