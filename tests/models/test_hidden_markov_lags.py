"""Autoregression on own lags: columns of lags, sequences, and forecasts that feed on themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

import majorant as mj


def rows(n: int = 240, seed: int = 0) -> Any:
    """Two regimes of an autoregression of two lags."""
    random = np.random.default_rng(seed)
    states, y = np.repeat([0, 1, 0, 1], n // 4), np.zeros(n)
    for t in range(2, n):
        a, b, c = ((0.5, 0.2, 1.0), (-0.4, 0.1, 5.0))[states[t]]
        y[t] = c + a * y[t - 1] + b * y[t - 2] + 0.5 * random.normal()
    return y[:, None]


def lagged(y: Any, lags: int) -> Any:
    """The rows with columns of lags, NaN before the first."""
    columns = [np.concatenate([np.full(lag, np.nan), y[: len(y) - lag, 0]]) for lag in range(1, lags + 1)]
    return np.column_stack([y, *columns])


def fitted(X: Any, **settings: Any) -> Any:
    fit = {name: settings.pop(name) for name in ("lengths", "groups", "time") if name in settings}
    return mj.HiddenMarkovModel(2, emission="regression", random_state=0, **settings).fit(X, **fit)


@pytest.mark.parametrize("lags", [1, 2])
def test_lags_are_columns_of_earlier_rows(lags: int) -> None:
    y = rows()
    model, by_columns = fitted(y, lags=lags), fitted(lagged(y, lags))
    assert model.log_likelihood_ == pytest.approx(by_columns.log_likelihood_, abs=1e-6)
    np.testing.assert_allclose(model.coef_, by_columns.coef_, atol=1e-4)
    np.testing.assert_array_equal(model.predict(y), by_columns.predict(lagged(y, lags)))
    assert model.bic(y) == pytest.approx(by_columns.bic(lagged(y, lags)), abs=1e-5)
    assert model.n_features_in_ == 1 and model.coef_.shape == (2, lags)
    residuals = model.pseudo_residuals(y)
    assert residuals.shape == y.shape and np.isnan(residuals[:lags]).all()
    np.testing.assert_allclose(residuals[lags:, 0], by_columns.pseudo_residuals(lagged(y, lags))[lags:, 0], atol=1e-3)


def test_lags_do_not_reach_into_another_sequence() -> None:
    y, other = rows(), rows(120, 1)
    expected = fitted(np.concatenate([lagged(y, 1), lagged(other, 1)]), lengths=[240, 120])
    both = np.concatenate([y, other])
    assert fitted(both, lags=1, lengths=[240, 120]).log_likelihood_ == pytest.approx(expected.log_likelihood_, abs=1e-6)
    order, groups = np.random.default_rng(0).permutation(360), np.repeat(["a", "b"], [240, 120])
    time = np.concatenate([np.arange(240), np.arange(120)])
    mixed = fitted(both[order], lags=1, groups=groups[order], time=time[order])
    assert mixed.log_likelihood_ == pytest.approx(expected.log_likelihood_, abs=1e-6)


def test_the_forecast_is_that_of_all_paths() -> None:
    y = rows()
    model = fitted(y, lags=2)
    ahead = model.forecast(y, 3)
    start, steps = model.predict_proba(y, given="past")[-1], model.transitions_
    mean, states, at = 0.0, np.zeros(2), np.linspace(-6, 12, 2000)
    density = np.zeros((2, len(at)))
    for i in range(2):
        for j in range(2):
            p = start[i] * steps[i, j]
            first = model.intercept_[j] + model.coef_[j] @ [y[-1, 0], y[-2, 0]]
            density[0] += p * norm.pdf(at, first, np.sqrt(model.variances_[j]))
            for k in range(2):
                centre = model.intercept_[k] + model.coef_[k] @ [first, y[-1, 0]]
                spread = np.sqrt(model.variances_[k] + model.coef_[k, 0] ** 2 * model.variances_[j])
                density[1] += p * steps[j, k] * norm.pdf(at, centre, spread)
                mean, states[k] = mean + p * steps[j, k] * centre, states[k] + p * steps[j, k]
    assert ahead.mean[0, 1, 0] == pytest.approx(mean, rel=1e-10)
    np.testing.assert_allclose(ahead.states[0, 1], states, rtol=1e-10)
    np.testing.assert_allclose(ahead.density(at)[0, 0], density[0], atol=0.03)
    np.testing.assert_allclose(ahead.density(at)[0, 1], density[1], atol=0.03)
    np.testing.assert_allclose(ahead.paths.mean(axis=2)[0], ahead.mean[0, :, 0], atol=0.05)
    for p in (0.05, 0.5, 0.95):
        expected = at[np.searchsorted(np.cumsum(density[1]) / density[1].sum(), p)]
        assert ahead.quantile(p)[0, 1, 0] == pytest.approx(expected, abs=0.1)
    low, high = ahead.interval(0.9)
    assert low.shape == high.shape == ahead.mean.shape and (low < high).all()
    np.testing.assert_array_equal(model.forecast(y, 3).interval(0.9)[0], low)


def test_what_cannot_be_forecast_or_set_is_refused(tmp_path: Path) -> None:
    y = rows()
    model = fitted(y, lags=2)
    with pytest.raises(ValueError, match="needs the last 2 rows of each sequence"):
        model.forecast(np.concatenate([y, [[np.nan]]]))
    with pytest.raises(TypeError, match="need its other columns"):
        fitted(np.column_stack([y, np.arange(240.0)]), lags=1).forecast(np.column_stack([y, np.arange(240.0)]))
    with pytest.raises(
        ValueError, match='lags=1 are of "regression" or "switching_mean" or "switching_autoregression"; got emission='
    ):
        mj.HiddenMarkovModel(2, lags=1).fit(y)
    with pytest.raises(ValueError, match="lags"):
        fitted(y, lags=-1)
    model.save(tmp_path / "model.majorant")
    again = mj.load(tmp_path / "model.majorant")
    np.testing.assert_array_equal(again.forecast(y, 2).paths, model.forecast(y, 2).paths)
    assert model._entry_names("coef") == ["x1, 1 before", "x1, 2 before"]


def test_series_without_noise_have_no_errors_of_a_floor() -> None:
    """Neither of an autoregression about means, whose lines are all exact, nor is a single state to be fewer ones."""
    turns = np.repeat([0.0, 1.0, 0.0, 1.0], 20)[:, None]
    with pytest.warns(ConvergenceWarning, match="every row is exactly on one of the lines.*unless lines without noise"):
        model = mj.HiddenMarkovModel(2, emission="switching_mean", lags=1, random_state=0).fit(turns)
    errors = model.standard_errors(turns)
    assert all(np.isnan(errors[name]).all() for name in ("means", "coef", "variances"))
    assert np.isfinite(errors["transitions"]).all()
    line = np.column_stack([1 + 2 * np.arange(9.0), np.arange(9.0)])
    with pytest.warns(ConvergenceWarning, match="one line fits every row exactly") as said:
        mj.HiddenMarkovModel(1, emission="regression").fit(line)
    assert "fit a single regression" not in str(said[0].message)
