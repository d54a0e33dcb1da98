"""Gaussian views alone: the closed form in all but the variances, beside the general path."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal
from sklearn.decomposition import FactorAnalysis as Peer

import majorant as mj
from majorant.models.harmonium import objective
from majorant.models.harmonium.objective import ClosedForm, FactorAnalysis, WideFactorAnalysis

VIEWS = {"a": mj.Gaussian(whiten=False), "b": mj.Gaussian(whiten=False)}


def rows(seed: int, n: int = 120, noise: float = 1.0) -> dict[str, np.ndarray]:
    """Two views with two strong factors and a weak one in common."""
    g = np.random.default_rng(seed)
    h = g.normal(size=(n, 3)) * [1.5, 1.0, 0.3]
    return {name: h @ g.normal(size=(3, p)) + noise * g.normal(size=(n, p)) for name, p in (("a", 6), ("b", 4))}


def analysis(seed: int, k: int, wide: bool) -> tuple[ClosedForm, np.ndarray]:
    """Return it by the covariance of ten columns, or by seven rows; and the covariance."""
    g = np.random.default_rng(seed)
    z = np.column_stack(list(rows(seed, 7 if wide else 120).values())) + 0.5
    given, covariance = (z.mean(axis=0), g.uniform(0.1, 0.5, 10), k), np.cov(z.T, bias=True)
    if wide:
        return WideFactorAnalysis(*given, (z - z.mean(axis=0)) / np.sqrt(7)), covariance
    return FactorAnalysis(*given, covariance), covariance


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_the_slope_is_that_of_differences_and_no_other_weights_are_better(k: int, wide: bool, seed: int) -> None:
    found, second = analysis(seed, k, wide)
    g = np.random.default_rng(seed)
    at = 0.3 * g.normal(size=10)
    value, slope = found.value_and_slope(at)
    np.testing.assert_allclose(
        slope, approx_fprime(at, lambda x: found.value_and_slope(x)[0], 1e-7), rtol=1e-5, atol=1e-5
    )
    best = found.parameters(at)

    def objective(weights: np.ndarray, intercept: np.ndarray) -> float:
        covariance = np.linalg.inv(np.diag(np.exp(-at)) - weights @ weights.T)
        mean = covariance @ intercept
        away = found.mean - mean
        # Of a distribution with these moments the mean log density is that at its mean, less half a trace.
        log_density = multivariate_normal(mean, covariance).logpdf(mean + away)
        log_density -= np.trace(np.linalg.solve(covariance, second)) / 2
        return -float(log_density) + float(found.penalties @ (weights**2).sum(axis=1)) / 2

    assert value == pytest.approx(objective(best.weights, best.intercept), rel=1e-10)
    for _ in range(20):
        size = 10 ** g.uniform(-5, -2)
        near = best.weights + size * g.normal(size=best.weights.shape)
        assert objective(near, best.intercept + size * g.normal(size=10)) >= value - 1e-9


@pytest.mark.parametrize("case", ["plain", "weights", "few components", "known variances", "more columns than rows"])
def test_the_optimum_is_that_of_the_general_path(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X = rows(3, 7 if case == "more columns than rows" else 120)
    weights = np.random.default_rng(0).integers(1, 4, len(X["a"])).astype(float) if case == "weights" else None
    if case == "more columns than rows":
        monkeypatch.setattr(objective, "WIDEST", 5)
    given: dict[str, Any] = {"n_components": 2 if case == "few components" else 8, "l2": 0.4}
    views = {"a": mj.Gaussian(variance=0.5), "b": mj.Gaussian()} if case == "known variances" else VIEWS
    found = mj.Harmonium(views=views, **given).fit(X, sample_weight=weights)
    monkeypatch.setattr(objective, "takes", lambda *_: False)
    general = mj.Harmonium(views=views, **given).fit(X, sample_weight=weights)
    assert found.objective_ == pytest.approx(general.objective_, rel=1e-7)
    assert found.objective_ <= general.objective_ + 1e-8 * abs(general.objective_)
    assert found.rank_ == general.rank_
    assert found.certificate_.is_global == general.certificate_.is_global
    assert found.certificate_.stationarity < 1e-3
    np.testing.assert_allclose(found.noise_variance_, general.noise_variance_, rtol=2e-2)
    np.testing.assert_allclose(found.score(X), general.score(X), rtol=1e-4)


def test_the_objective_is_the_one_that_was_minimised_and_never_rises(seed: int) -> None:
    X = rows(seed)
    model = mj.Harmonium(4, views=VIEWS).fit(X)
    trace = np.asarray(model.trace_["objective"])
    assert (np.diff(trace) <= 1e-12 * abs(trace[0])).all()
    assert trace[-1] == pytest.approx(model.objective_, rel=1e-9)
    assert 0 <= model.certify(X).difference < 1e-3 * abs(model.objective_)


def test_with_hardly_any_penalty_it_is_maximum_likelihood(seed: int) -> None:
    z = np.column_stack(list(rows(seed, 400).values()))
    ours = mj.Harmonium(2, l2=1e-7).fit(z)
    standard = (z - z.mean(axis=0)) / z.std(axis=0)
    peer = Peer(2, tol=1e-8, max_iter=5000, svd_method="lapack").fit(standard)
    assert ours.score(z) == pytest.approx(peer.score(standard), abs=2e-4)


def test_wide_views_and_rows_that_lack_some_take_the_general_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("not for these")

    X = rows(0)
    lacking = {**X, "a": np.where(np.arange(120)[:, None] < 30, np.nan, X["a"])}
    bits = {**X, "b": (X["b"] > 0).astype(float)}
    monkeypatch.setattr(objective.Penalised, "factors", refuse)
    mj.Harmonium(2, views=VIEWS, l2=0.5).fit(lacking)
    mj.Harmonium(2, views={"a": mj.Gaussian(), "b": mj.Bernoulli()}, l2=0.5).fit(bits)
    mj.Harmonium(2, views=VIEWS, l2=0.5, method="cd").fit(X)
    mj.HarmoniumRegressor(2, views=VIEWS, l2=0.5).fit(X, X["a"][:, 0])
    with pytest.raises(AssertionError, match="not for these"):
        mj.Harmonium(2, views=VIEWS, l2=0.5).fit(X)
    monkeypatch.setattr(objective, "WIDEST", 9)
    mj.Harmonium(2, views=VIEWS, l2=0.5).fit(X)


def test_many_more_columns_than_rows_are_fitted_as_by_their_covariance(monkeypatch: pytest.MonkeyPatch) -> None:
    g = np.random.default_rng(0)
    X = g.normal(size=(40, 2)) @ g.normal(size=(2, 600)) + 2 * g.normal(size=(40, 600))
    wide = mj.Harmonium(5).fit(X)
    monkeypatch.setattr(objective, "WIDEST", 600)
    narrow = mj.Harmonium(5).fit(X)
    assert wide.rank_ == narrow.rank_ == 2
    np.testing.assert_allclose(wide.l2_path_, narrow.l2_path_, rtol=1e-4)  # of fits that are rough
    assert wide.objective_ == pytest.approx(narrow.objective_, rel=1e-8)
    np.testing.assert_allclose(wide.transform(X), narrow.transform(X), atol=1e-2)
