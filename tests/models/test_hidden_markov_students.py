"""Hidden Markov models of Student rows: against scipy, slopes of the likelihood, and rows that lie far out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import majorant as mj
from majorant.data.chunks import Chunks
from majorant.data.units import blocks_of
from majorant.engine.mixture import Mixture, OnData
from majorant.laws import Independent
from majorant.models.hidden_markov.students import MOST, Students
from majorant.solvers.covariance_types import COVARIANCES

KINDS = ["full", "tied", "diag", "spherical"]


def rows(n: int = 300) -> Any:
    """Two states of two columns, with heavy tails, in turn."""
    tall = stats.multivariate_t([0, 0], [[1, 0.5], [0.5, 1]], 3).rvs(n, random_state=2)
    wide = stats.multivariate_t([5, 4], [[1, -0.5], [-0.5, 1]], 5).rvs(n, random_state=3)
    return np.where(np.repeat([0, 1, 0, 1], n // 4)[:, None] == 0, tall, wide)


def fitted(X: Any, k: int = 2, **settings: Any) -> Any:
    return mj.HiddenMarkovModel(k, emission="student", random_state=0, effort="fast", **settings).fit(X)


def test_one_state_is_the_fit_of_scipy() -> None:
    x = stats.t(3, 1000, 2e-3).rvs(300, random_state=1)
    degrees, place, scale = stats.t.fit(x, 3, loc=1000, scale=2e-3)
    model = fitted(x[:, None], 1)
    expected = stats.t(degrees, place, scale).logpdf(x).sum()
    assert expected - 1e-6 < model.log_likelihood_ < expected + 1e-2
    assert model.degrees_of_freedom_[0] == pytest.approx(3, abs=1.5)
    assert model.log_likelihood(x[:, None]) == pytest.approx(model.log_likelihood_, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_em_raises_the_likelihood_to_a_point_without_slope(kind: str) -> None:
    X = rows()
    density = Students(COVARIANCES[kind], X.mean(axis=0), X.std(axis=0).mean() * np.ones(2))
    on = OnData(Mixture(density, Independent(), 2), Chunks(blocks_of([X], None)))
    random = np.random.default_rng(0)
    theta = on.mixture.started(np.ascontiguousarray(np.moveaxis(random.dirichlet([1, 1], (3, 300)), 2, 1)), on.data)
    before = np.full(3, np.inf)
    for _ in range(1500):
        seen = on.seen(theta)
        assert (seen.objective <= before + 1e-9).all()
        if np.abs(seen.objective - before).max() < 1e-12:
            break
        before, theta = seen.objective, on.moved(theta, seen, np.ones(3))
    at = density.vector(theta.density)
    again = density.theta_of(at, theta.density)
    np.testing.assert_allclose(density.vector(again), at, atol=1e-9)
    for i in range(at.shape[1]):
        moves = [density.theta_of(at + s * 1e-4 * np.eye(at.shape[1])[i], theta.density) for s in (1, -1)]
        up, down = (on.seen(type(theta)(one, theta.law)).objective for one in moves)
        np.testing.assert_allclose((up - down) / 2e-4, 0.0, atol=2e-2)


@pytest.mark.parametrize("kind", KINDS)
def test_densities_are_those_of_scipy(kind: str) -> None:
    X = rows()
    model = fitted(X, covariance_type=kind)
    shapes = COVARIANCES[kind]
    own = model.scale_matrices_[0] if kind == "tied" else model.scale_matrices_
    matrices = shapes.matrices(own, 2, 2)
    log_density = np.stack(
        [
            stats.multivariate_t(m, s, nu).logpdf(X)
            for m, s, nu in zip(model.means_, matrices, model.degrees_of_freedom_, strict=True)
        ]
    )
    here, total = np.log(model.start_probabilities_), 0.0
    for t in range(len(X)):
        joint = (here if t == 0 else np.log(np.exp(here) @ model.transitions_)) + log_density[:, t]
        total += np.logaddexp.reduce(joint)
        here = joint - np.logaddexp.reduce(joint)
    assert model.log_likelihood_ == pytest.approx(total, abs=1e-6)
    ahead = model.forecast(X, 2)
    assert ahead.density(ahead.quantile(0.5)[0, 0], 0).shape == (1, 2, 2)
    low, high = ahead.interval(0.9)
    for end, p in ((low, 0.05), (high, 0.95)):
        below = [
            stats.t(nu, m[0], np.sqrt(s[0, 0])).cdf(end[0, 1, 0])
            for m, s, nu in zip(model.means_, matrices, model.degrees_of_freedom_, strict=True)
        ]
        assert ahead.states[0, 1] @ below == pytest.approx(p, abs=1e-9)


def test_heavy_tails_are_found_and_have_errors() -> None:
    X = rows(600)
    model, normal = fitted(X), mj.HiddenMarkovModel(2, random_state=0, effort="fast").fit(X)
    assert model.bic(X) < normal.bic(X) - 20 and model.n_parameters_ == normal.n_parameters_ + 2
    errors = model.standard_errors(X)["degrees_of_freedom"]
    assert (np.abs(np.sort(model.degrees_of_freedom_) - [3, 5]) < 3 * errors[model.degrees_of_freedom_.argsort()]).all()
    intervals = model.confidence_intervals(X)["degrees_of_freedom"]
    assert (intervals[0] > 0).all() and (intervals[1] > model.degrees_of_freedom_).all()
    assert np.abs(model.pseudo_residuals(X).std(axis=0) - 1).max() < 0.15


def test_normal_rows_have_the_most_degrees_and_no_error_of_them() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, 200)[:, None]
    model = fitted(x, 1)
    assert model.degrees_of_freedom_[0] == pytest.approx(MOST, rel=1e-3)
    assert np.isnan(model.standard_errors(x)["degrees_of_freedom"]).all()


def test_missing_rows_advance_time_and_drawn_rows_are_of_the_model(tmp_path: Path) -> None:
    X = rows()
    X[::7] = np.nan
    model = fitted(X)
    assert model.predict(X).shape == (300,)
    drawn, states = model.sample(4000)
    for k in range(2):
        share = np.mean(np.abs(drawn[states == k, 0] - model.means_[k, 0]) ** 2 < 9 * model.scale_matrices_[k, 0, 0])
        nu = model.degrees_of_freedom_[k]
        assert share == pytest.approx(stats.t(nu).cdf(3) - stats.t(nu).cdf(-3), abs=0.02)
    model.save(tmp_path / "model.majorant")
    np.testing.assert_array_equal(mj.load(tmp_path / "model.majorant").predict(X), model.predict(X))
    both = mj.HiddenMarkovModel(2, emission=["student", "gaussian"], random_state=0, effort="fast").fit(X)
    assert both.x1_degrees_of_freedom_.shape == (2,)
    X[5, 0] = np.nan
    with pytest.raises(ValueError, match="row 5 of X lacks some cells"):
        fitted(X)
