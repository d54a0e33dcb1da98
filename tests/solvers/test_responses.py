"""Responses: densities as scipy has them, derivatives by differences, dispersions that maximise, errors for people."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from majorant.solvers.responses import RESPONSES, Response, Student

Array = NDArray[Any]
NAMES = sorted(RESPONSES)


def example(name: str, seed: int, n: int = 40) -> tuple[Response, Array, Array, Array, Array]:
    """A response with targets, predictors of three models, dispersions and trials."""
    g = np.random.default_rng(seed)
    response = RESPONSES[name]
    trials = g.integers(1, 9, size=(n, 1)).astype(float) if response.takes_trials else np.ones((n, 1))
    dispersion = g.uniform(0.3, 2.0, 3) if response.has_dispersion else np.ones(3)
    eta = g.normal(size=(n, 3))
    y = response.draw(g.normal(size=(n, 1)), np.ones(1), trials, np.random.RandomState(seed))
    return response, y, eta, dispersion, trials


def scipy_log_density(name: str, y: Array, eta: Array, dispersion: Array, trials: Array) -> Array:
    laws = {
        "gaussian": lambda: stats.norm.logpdf(y, eta, np.sqrt(dispersion)),
        "student": lambda: stats.t.logpdf(y, 4, eta, np.sqrt(dispersion)),
        "poisson": lambda: stats.poisson.logpmf(y, np.exp(eta)),
        "binomial": lambda: stats.binom.logpmf(y, trials, 1 / (1 + np.exp(-eta))),
        "gamma": lambda: stats.gamma.logpdf(y, 1 / dispersion, scale=np.exp(eta) * dispersion),
    }
    return np.asarray(laws[name]())


@pytest.mark.parametrize("name", NAMES)
def test_densities_are_those_of_scipy(name: str, seed: int) -> None:
    response, y, eta, dispersion, trials = example(name, seed)
    expected = scipy_log_density(name, y, eta, dispersion, trials)
    np.testing.assert_allclose(response.log_density(y, eta, dispersion, trials), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_by_differences(name: str, seed: int) -> None:
    response, y, eta, dispersion, trials = example(name, seed)

    def density(by: float) -> Array:
        return response.log_density(y, eta + by, dispersion, trials)

    h = 1e-5
    score = response.score(y, eta, dispersion, trials)
    np.testing.assert_allclose(score, (density(h) - density(-h)) / (2 * h), rtol=1e-6, atol=1e-6)
    if response.has_dispersion:
        high, low = (response.log_density(y, eta, dispersion * np.exp(2 * by), trials) for by in (h, -h))
        slope = response.scale_score(response.spread(y, eta, dispersion, trials), dispersion)
        np.testing.assert_allclose(slope, (high - low) / (2 * h), rtol=1e-6, atol=1e-6)
    assert (response.weight(y, eta, dispersion, trials) > 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_draws_have_the_mean(name: str, seed: int) -> None:
    response = RESPONSES[name]
    eta, trials = np.full(40_000, 0.4), np.full(40_000, 5.0 if response.takes_trials else 1.0)
    y = response.draw(eta, np.full(40_000, 0.5), trials, np.random.RandomState(seed))
    assert y.mean() == pytest.approx(response.mean(eta, trials)[0], abs=5 * y.std() / 200)
    response.check(y, trials)


@pytest.mark.parametrize("name", NAMES)
def test_deviance_is_what_is_lost_to_the_best_predictor(name: str, seed: int) -> None:
    response, y, eta, _, trials = example(name, seed)
    if name == "student":
        best = y
    elif name == "binomial":
        best = np.log(np.clip(y / trials, 1e-12, 1) / np.clip(1 - y / trials, 1e-12, 1))
    else:
        best = y if name == "gaussian" else np.log(np.maximum(y, 1e-12))
    one = np.ones(1)
    lost = response.log_density(y, best, one, trials) - response.log_density(y, eta, one, trials)
    np.testing.assert_allclose(response.deviance(y, eta, trials), 2 * lost, atol=1e-8)


@pytest.mark.parametrize("name", [name for name in NAMES if RESPONSES[name].has_dispersion])
@pytest.mark.parametrize("size", [1e-4, 1.0, 30.0])
def test_the_dispersion_maximises(name: str, size: float, seed: int) -> None:
    """Iterated to its fixed point: at once for all but Student's, which is an EM algorithm of its own."""
    g = np.random.default_rng(seed)
    response = RESPONSES[name]
    if name == "gamma":
        y, eta = g.gamma(1 / size, size, (200, 1)) + 1e-200, np.zeros((200, 1))
        eta = np.full((200, 1), np.log(y.mean()))
    else:
        y, eta = np.sqrt(size) * g.normal(size=(200, 1)), np.zeros((200, 1))
    best, trials = np.ones(1), np.ones((200, 1))
    for _ in range(500 if name == "student" else 1):
        best = response.dispersion(response.spread(y, eta, best, trials).mean(axis=0))
    totals = [response.log_density(y, eta, best * f, trials).sum() for f in (0.99, 1.0, 1.01)]
    assert totals[1] >= max(totals)
    assert totals[1] - totals[0] == pytest.approx(totals[1] - totals[2], rel=0.2)


def test_extremes_are_numbers() -> None:
    for response in RESPONSES.values():
        y, trials, one = np.array([[1.0]]), np.ones((1, 1)), np.ones(1)
        for eta in (np.array([[-650.0]]), np.array([[650.0]])):
            for method in (response.score, response.weight, response.log_density):
                assert np.isfinite(method(y, eta, one, trials)).all(), (response, method)


@pytest.mark.parametrize("size", [1e6, 1e9, 1e12, 1e15])
@pytest.mark.parametrize("name", ["poisson", "binomial"])
def test_densities_of_large_counts_are_normal_ones(name: str, size: float) -> None:
    """Terms of a log density are far larger than it: at 1e15 a sum of them is wrong in the first digit."""
    response, trials = RESPONSES[name], np.array([[4 * size]])
    y = np.array([[size]])
    variance = size if name == "poisson" else 0.75 * size
    at = np.log(size) if name == "poisson" else np.log(1 / 3)
    eta = at + np.array([[-2.0, 0.0, 0.5]]) / np.sqrt(variance)
    expected = -0.5 * np.log(2 * np.pi * variance) - 0.5 * np.array([[4.0, 0.0, 0.25]])
    found = response.log_density(y, eta, np.ones(3), trials)
    np.testing.assert_allclose(found, expected, atol=2 / np.sqrt(size) + 1e-5)
    np.testing.assert_allclose(response.deviance(y, eta, trials), [[4.0, 0.0, 0.25]], atol=4 / np.sqrt(size) + 1e-5)


@pytest.mark.parametrize(
    ("name", "y", "trials", "says"),
    [
        ("poisson", [0.0, 1.5], [1.0, 1.0], "counts: whole numbers of at least 0; row 1 of y is 1.5"),
        ("poisson", [-1.0], [1.0], "row 0 of y is -1"),
        ("binomial", [2.0], [1.0], "0 or 1; row 0 of y is 2"),
        ("binomial", [2.0, 4.0], [3.0, 3.0], "from 0 to trials; row 1 of y is 4"),
        ("poisson", [0.0, 1e200], [1.0, 1.0], r"at most 2\*\*53 = 9.007e\+15, .*; row 1 of y is 1e\+200. Use family"),
        ("binomial", [0.0, 1.0], [1.0, 1e200], r"trials must be at most 2\*\*53 .*; row 1 of trials is 1e\+200. Use"),
        ("gamma", [1.0, 0.0], [1.0, 1.0], "positive targets; row 1 of y is 0"),
        ("gamma", [1.0, 1e300], [1.0, 1.0], r"targets below 1e\+150; row 1 of y is 1e\+300"),
    ],
)
def test_targets_that_cannot_be(name: str, y: list[float], trials: list[float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        RESPONSES[name].check(np.array(y), np.array(trials))


def test_student_may_have_any_degrees_of_freedom() -> None:
    y, eta, one = np.array([[0.3]]), np.array([[1.0]]), np.ones(1)
    expected = stats.t.logpdf(0.3, 7, 1.0)
    assert Student(df=7).log_density(y, eta, one, one[:, None])[0, 0] == pytest.approx(expected)
    assert repr(Student(df=7)) == "Student(df=7)"
