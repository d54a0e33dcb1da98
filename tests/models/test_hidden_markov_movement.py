"""Hidden Markov models of movement: steps of gamma distributions, and turning angles of von Mises distributions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid
from sklearn.exceptions import ConvergenceWarning

import majorant as mj


def track(n: int = 400) -> tuple[Any, Any]:
    """Steps and angles of an animal that rests and travels; some cells are missing, and one row."""
    random, states = np.random.default_rng(0), [0]
    for _ in range(n - 1):
        states.append(states[-1] if random.random() < 0.9 else 1 - states[-1])
    s = np.array(states)
    step = random.gamma(np.array([4.0, 1.2])[s], np.array([100.0, 20.0])[s])
    angle = random.vonmises(np.array([0.1, np.pi])[s], np.array([4.0, 0.7])[s])
    X = np.column_stack([step, angle])
    X[::17, 1], X[5] = np.nan, np.nan
    return X, s


def test_states_of_a_track_are_found_and_told() -> None:
    X, s = track()
    model = mj.HiddenMarkovModel(2, emission=["gamma", "von_mises"], random_state=0).fit(X)
    order = np.argsort(-model.x1_means_[:, 0])  # who travels, who rests
    assert np.mean(model.predict(X) == order[s]) > 0.97 and model.regular_
    np.testing.assert_allclose(model.x1_means_[order, 0], [400, 24], rtol=0.1)
    np.testing.assert_allclose(np.cos(model.x2_directions_[order, 0] - [0.1, np.pi]), 1.0, atol=0.1)
    low, high = model.confidence_intervals(X)["x2_concentrations"]
    assert (low[order, 0] < [4.0, 0.7]).all() and (high[order, 0] > [4.0, 0.7]).all()
    residuals = model.pseudo_residuals(X)
    for column in residuals.T:
        assert stats.kstest(column[~np.isnan(column)], "norm").pvalue > 0.05
    ahead = model.forecast(X, 2)
    low, high = ahead.interval(0.8)
    assert (low[:, :, 0] > 0).all() and (np.abs(ahead.mean[:, :, 1]) <= np.pi).all()
    grid = np.linspace(-np.pi, np.pi, 2001)
    np.testing.assert_allclose(trapezoid(ahead.density(grid, 1), grid), 1.0, atol=1e-6)
    inside = (grid > low[0, 0, 1]) & (grid < high[0, 0, 1])
    np.testing.assert_allclose(trapezoid(ahead.density(grid[inside], 1)[0, 0], grid[inside]), 0.8, atol=0.01)
    rows, _ = model.sample(50)
    assert (rows[:, 0] > 0).all() and np.isfinite(model.score_samples(rows)).all()


def test_turned_directions_have_turned_forecasts_and_the_same_residuals() -> None:
    angles = np.random.default_rng(0).vonmises(np.repeat([-0.8, 0.8], 60), 20.0)[:, None]
    found = []
    for turn in (0.0, 1.5, np.pi):
        turned = np.mod(angles + turn + np.pi, 2 * np.pi) - np.pi
        model = mj.HiddenMarkovModel(2, emission="von_mises", random_state=0).fit(turned)
        ahead = model.forecast(turned, 3)
        low, high = ahead.interval(0.9)
        assert (low < ahead.mean).all() and (ahead.mean < high).all() and (high - low < 2.5).all()
        for h in range(3):
            grid = np.linspace(low[0, h, 0], high[0, h, 0], 2001)
            np.testing.assert_allclose(trapezoid(ahead.density(grid)[0, h], grid), 0.9, atol=1e-4)
        found.append((ahead.mean - low, high - ahead.mean, model.pseudo_residuals(turned)))
    for one in found[1:]:
        for turned_part, part in zip(one, found[0], strict=True):
            np.testing.assert_allclose(turned_part, part, atol=1e-3)


def test_one_state_is_what_scipy_fits() -> None:
    X, s = track()
    x = X[(s == 0) & ~np.isnan(X).any(axis=1)]
    shape, _, scale = stats.gamma.fit(x[:, 0], floc=0)
    kappa, direction, _ = stats.vonmises.fit(x[:, 1], fscale=1)
    model = mj.HiddenMarkovModel(1, emission=["gamma", "von_mises"]).fit(x)
    np.testing.assert_allclose(model.x1_shapes_[0, 0], shape, rtol=1e-5)
    np.testing.assert_allclose(model.x1_means_[0, 0], shape * scale, rtol=1e-5)
    np.testing.assert_allclose(
        [model.x2_directions_[0, 0], model.x2_concentrations_[0, 0]], [direction, kappa], rtol=1e-5
    )
    expected = stats.gamma.logpdf(x[:, 0], shape, scale=scale) + stats.vonmises.logpdf(x[:, 1], kappa, direction)
    np.testing.assert_allclose(model.score_samples(x), expected, rtol=1e-4, atol=1e-5)


def test_directions_are_the_same_wherever_the_circle_is_cut(tmp_path: Path) -> None:
    X, _ = track()
    turned = X.copy()
    turned[:, 1] = np.mod(X[:, 1] + 2.0 + np.pi, 2 * np.pi) - np.pi
    settings: dict[str, Any] = {"emission": ["gamma", "von_mises"], "random_state": 0, "effort": "fast"}
    one, other = (mj.HiddenMarkovModel(2, **settings).fit(rows) for rows in (X, turned))
    np.testing.assert_allclose(one.log_likelihood_, other.log_likelihood_, rtol=1e-8)
    one.save(tmp_path / "model.majorant")
    np.testing.assert_array_equal(mj.load(tmp_path / "model.majorant").predict_proba(X), one.predict_proba(X))


def test_zeros_degrees_and_equal_values_are_told() -> None:
    X, _ = track(60)
    with pytest.raises(ValueError, match="numbers are above 0: make zeros NaN, and a column of emission 'bernoulli'"):
        mj.HiddenMarkovModel(2, emission="gamma").fit(np.append(X[:, :1], [[0.0]], axis=0))
    with pytest.raises(ValueError, match="directions are in radians"):
        mj.HiddenMarkovModel(2, emission="von_mises").fit(np.rad2deg(X[:, 1:]))
    same = np.append(np.random.default_rng(0).gamma(2.0, 1.0, 40), np.full(20, 3.0))[:, None]
    with pytest.warns(ConvergenceWarning, match="has practically equal values in a column"):
        model = mj.HiddenMarkovModel(2, emission="gamma", random_state=0).fit(same)
    assert not model.regular_ and len(set(model.predict(same)[40:])) == 1


def test_some_equal_values_among_others_of_a_state_leave_a_fit_regular() -> None:
    draws, states = np.random.default_rng(0), np.repeat([0, 1, 0, 1], 20)
    x = draws.gamma(np.array([4.0, 9.0])[states], np.array([0.5, 2.0])[states])
    x[states == 0] = np.where(np.arange(40) < 15, 2.0, x[states == 0])
    model = mj.HiddenMarkovModel(2, emission="gamma", random_state=0).fit(x[:, None])
    labels = model.predict(x[:, None])
    assert model.regular_ and ((labels == labels[0]) == (states == 0)).all()
    for label, state in ((labels[0], 0), (labels[-1], 1)):
        shape, _, scale = stats.gamma.fit(x[states == state], floc=0)
        np.testing.assert_allclose(model.shapes_[label, 0], shape, rtol=1e-2)
        np.testing.assert_allclose(model.means_[label, 0], shape * scale, rtol=1e-3)
