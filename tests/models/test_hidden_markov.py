"""Hidden Markov models: references, right values, sequences in every form, and what follows a fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.integrate import trapezoid
from scipy.stats import multivariate_normal, norm, poisson
from sklearn.exceptions import ConvergenceWarning

import majorant as mj

SERIES = Path(__file__).resolve().parents[3] / "shared" / "prototypes" / "mixtures" / "hmm_data.npz"
needs_series = pytest.mark.skipif(not SERIES.exists(), reason="the reference series are not beside the checkout")
COUNTS = np.array([0.0, 3.0, 1.0, 5.0])[:, None]


def series() -> dict[str, Any]:
    with np.load(SERIES) as found:
        return {name: found[name] for name in found.files}


def case(name: str) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Rows, settings, and arguments of the fit."""
    data = series()
    trials = {"groups": data["speed_group"]}
    if name.startswith("earthquakes"):
        return data["earthquakes"][:, None], {"emission": "poisson"}, {}
    if name == "geyser":
        return (data["geyser_duration"] >= 3).astype(float)[:, None], {"emission": "categorical"}, {}
    if name.startswith("federal funds"):
        f, gap, inflation = data["fedfunds"], data["ogap"], data["inf"]
        settings = {"emission": "regression", "covariance_type": "tied"}
        if name == "federal funds":
            return f[:, None], settings, {}
        lag = np.column_stack([f[4:], f[3:-1], gap[4:], inflation[4:]])
        return (lag if "inflation" in name else np.column_stack([f[1:], f[:-1]])), settings, {}
    if name == "returns":
        return np.column_stack([data["areturns"][1:], data["areturns"][:-1]]), {"emission": "regression"}, {}
    if name == "speed and accuracy":
        both = np.column_stack([data["speed_rt"], data["speed_corr"]])
        return both, {"emission": ["gaussian", "categorical"]}, trials
    return data["speed_rt"][:, None], {}, trials if name == "speed" else {}


REFERENCES = [
    *(("earthquakes", k, "free", v) for k, v in ((2, 341.8787), (3, 328.5275), (4, 326.2850))),
    *(("earthquakes", k, "stationary", v) for k, v in ((1, 391.9189), (2, 342.3183), (3, 329.4603), (4, 327.8316))),
    *(("speed, one series", 2, "free", 88.7306), ("speed", 2, "free", 84.3417)),
    *(("speed and accuracy", 2, "free", 296.1078), ("speed and accuracy", 3, "free", 263.6527)),
    ("federal funds", 2, "stationary", 508.6359),
    ("federal funds, lag", 2, "stationary", 264.7107),
    ("federal funds, lag, gap and inflation", 2, "stationary", 229.2561),
    ("federal funds, lag, gap and inflation", 3, "stationary", 180.8056),
    ("returns", 2, "stationary", 745.7977),
    *(("geyser", 2, "stationary", 127.3110), ("geyser", 3, "stationary", 126.8431)),
]


@needs_series
@pytest.mark.parametrize(("name", "k", "start", "least"), REFERENCES)
@pytest.mark.parametrize("seed", [0, 1])
def test_references_are_reached(name: str, k: int, start: str, least: float, seed: int) -> None:
    X, settings, fit = case(name)
    model = mj.HiddenMarkovModel(k, start=start, random_state=seed, **settings).fit(X, **fit)
    assert model.regular_ and model.converged_
    assert -model.log_likelihood_ == pytest.approx(least, abs=1e-4)


@needs_series
def test_criteria_of_the_earthquakes() -> None:
    X = series()["earthquakes"][:, None]
    told = [
        mj.HiddenMarkovModel(k, emission="poisson", start="stationary", random_state=0).fit(X) for k in (1, 2, 3, 4)
    ]
    np.testing.assert_allclose([m.bic(X) for m in told], [788.5, 703.3, 701.0, 730.4], atol=0.05)
    np.testing.assert_allclose([m.icl(X) for m in told], [788.5, 726.2, 730.4, 762.7], atol=0.05)
    assert told[1].aic(X) == pytest.approx(2 * 342.31827 + 8, abs=1e-3)


@needs_series
def test_errors_of_switching_lines_are_those_of_other_packages() -> None:
    X, settings, _ = case("returns")
    model = mj.HiddenMarkovModel(2, start="stationary", random_state=0, **settings).fit(X)
    errors = model.standard_errors(X)
    found = [*np.diag(errors["transitions"]), *errors["intercept"], *errors["coef"].ravel()]
    np.testing.assert_allclose(found, [0.0634, 0.0663, 0.0783, 0.2784, 0.0302, 0.0858], atol=2e-4)


def test_switching_lines_in_any_units_with_missing_rows() -> None:
    random = np.random.default_rng(0)
    states = np.repeat(random.integers(0, 2, 30), 12)
    x = random.normal(size=len(states))
    y = np.where(states == 0, 1 + 2 * x, 4 - x) + 0.3 * random.normal(size=len(states))
    X = np.column_stack([y, x])
    X[10:13, 0] = np.nan
    X[20, 1] = np.nan
    model = mj.HiddenMarkovModel(2, emission="regression", random_state=0).fit(X)
    order = np.argsort(model.intercept_)
    np.testing.assert_allclose(model.intercept_[order], [1, 4], atol=0.15)
    np.testing.assert_allclose(model.coef_[order].ravel(), [2, -1], atol=0.15)
    np.testing.assert_allclose(np.sqrt(model.variances_), 0.3, atol=0.06)
    assert model.score_samples(X).sum() == pytest.approx(model.log_likelihood_, abs=1e-6)
    ahead = model.predict_proba(X, given="before")
    means = model.intercept_ + X[:, [1]] * model.coef_[:, 0]
    density = (ahead * norm(means, np.sqrt(model.variances_)).pdf(X[:, [0]])).sum(axis=1)
    complete = ~np.isnan(X).any(axis=1)
    np.testing.assert_allclose(model.score_samples(X)[complete], np.log(density[complete]), rtol=1e-9)
    np.testing.assert_allclose(model.score_samples(X)[~complete], 0.0, atol=1e-14)
    residuals = model.pseudo_residuals(X)
    assert np.isnan(residuals[:, 1]).all() and abs(np.nanstd(residuals[:, 0]) - 1) < 0.15
    other = mj.HiddenMarkovModel(2, emission="regression", random_state=0).fit(X * [100.0, 1e-3] + [7.0, 5.0])
    np.testing.assert_allclose(other.coef_, model.coef_ * 1e5, rtol=1e-3)
    with pytest.raises(TypeError, match="need its other columns"):
        model.forecast(X)
    with pytest.raises(TypeError, match="cannot be drawn from"):
        model.sample(3)


def test_a_regression_on_a_constant_alone_is_a_normal_distribution() -> None:
    X = np.random.default_rng(0).normal(np.repeat([0.0, 6.0, 0.0, 6.0], 20))[:, None]
    line, normal = (mj.HiddenMarkovModel(2, emission=e, random_state=0).fit(X) for e in ("regression", "gaussian"))
    np.testing.assert_allclose(line.intercept_, normal.means_[:, 0], rtol=1e-4)
    np.testing.assert_allclose(line.pseudo_residuals(X), normal.pseudo_residuals(X), atol=1e-3)
    ahead, other = line.forecast(X, 3), normal.forecast(X, 3)
    np.testing.assert_allclose(ahead.mean, other.mean, rtol=1e-4)
    np.testing.assert_allclose(ahead.interval(0.8), other.interval(0.8), rtol=1e-3)


def test_free_probabilities_at_the_edge_have_no_errors_and_given_ones_are_certain() -> None:
    X = np.random.default_rng(0).normal(np.repeat([0.0, 9.0, 18.0, 0.0, 9.0, 18.0, 0.0], 15))[:, None]
    model = mj.HiddenMarkovModel(3, random_state=0).fit(X)
    errors, ends = model.standard_errors(X), model.confidence_intervals(X)
    zero = model.transitions_ < 1e-6
    assert zero.sum() == 3 and np.isnan(errors["transitions"])[zero].all() and (errors["transitions"][~zero] > 0).all()
    assert np.isnan(errors["start_probabilities"]).all()
    assert np.isnan(ends["transitions"][0])[zero].all() and np.isnan(ends["start_probabilities"]).all()
    order = np.argsort(model.means_[:, 0])
    allowed = model.transitions_[order][:, order] > 1e-6
    model = mj.HiddenMarkovModel(3, start=[1.0, 0.0, 0.0], allowed=allowed, random_state=0).fit(X)
    errors = model.standard_errors(X)
    assert (errors["transitions"][~allowed] == 0).all() and (errors["transitions"][allowed] > 0).all()
    assert (errors["start_probabilities"] == 0).all()


def test_intervals_of_variances_are_positive_in_every_kind() -> None:
    X = np.random.default_rng(1).normal(np.repeat([0.0, 9.0], [12, 40]), np.repeat([5.0, 0.5], [12, 40]))[:, None]
    X = np.column_stack([X, np.random.default_rng(2).normal(size=len(X))])
    for kind in ("full", "tied", "diag", "spherical"):
        model = mj.HiddenMarkovModel(2, covariance_type=kind, random_state=0).fit(X)
        low, high = model.confidence_intervals(X, level=0.999)["covariances"]
        if low.ndim == 3:
            assert (low[:, 0, 1] < high[:, 0, 1]).all()
            low, high, own = (np.diagonal(c, axis1=1, axis2=2) for c in (low, high, model.covariances_))
        else:
            own = model.covariances_
        assert (low > 0).all()
        np.testing.assert_allclose(low * high, own**2)
    model = mj.HiddenMarkovModel(2, emission=["gaussian", "gaussian"], random_state=0).fit(X)
    assert (model.confidence_intervals(X, level=0.999)["x1_covariances"][0] > 0).all()


def given(**settings: Any) -> Any:
    """A model with the parameters of the right values below."""
    model = mj.HiddenMarkovModel(2, emission="poisson", start=[0.5, 0.5], effort="fast", random_state=0, **settings)
    model.fit(COUNTS)
    model.rates_, model.transitions_ = np.array([[1.0], [4.0]]), np.array([[0.9, 0.1], [0.2, 0.8]])
    model.start_probabilities_ = np.array([0.5, 0.5])
    return model


def test_values_that_are_known() -> None:
    model = given()
    assert 4 * model.score(COUNTS) == pytest.approx(-9.064250, abs=1e-6)
    assert model.score_samples(COUNTS).sum() == pytest.approx(-9.064250, abs=1e-6)
    np.testing.assert_allclose(model.predict_proba(COUNTS)[:, 1], [0.11461, 0.37849, 0.40138, 0.90822], atol=5e-6)
    assert model.predict(COUNTS).tolist() == [0, 0, 0, 1]
    gap = COUNTS.copy()
    gap[2] = np.nan
    assert model.score_samples(gap).sum() == pytest.approx(-7.103336, abs=1e-6)
    assert model.score_samples(COUNTS, lengths=[2, 2]).sum() == pytest.approx(-9.010921, abs=1e-6)
    assert model.score(COUNTS, sequence_weight=[2.0, 0.5], lengths=[2, 2]) * 5 == pytest.approx(-10.776557, abs=1e-6)
    ahead = model.forecast(COUNTS, 2)
    np.testing.assert_allclose(ahead.density([0.0]).ravel(), [0.110686, 0.152888], atol=1e-6)
    np.testing.assert_allclose(ahead.states @ [1.0, 4.0], ahead.mean[..., 0])
    before = model.pseudo_residuals(COUNTS, scale="uniform").ravel()
    np.testing.assert_allclose(before, [0.096549, 0.868496, 0.387808, 0.950589], atol=1e-6)
    ordinary = model.pseudo_residuals(COUNTS, given="others", scale="uniform").ravel()
    np.testing.assert_allclose(ordinary, [0.057708, 0.851744, 0.168730, 0.950589], atol=1e-6)
    np.testing.assert_allclose(model.pseudo_residuals(COUNTS).ravel(), norm.ppf(before))


def test_filtered_and_predicted_probabilities_are_those_of_shorter_series() -> None:
    model = given()
    past, before = model.predict_proba(COUNTS, given="past"), model.predict_proba(COUNTS, given="before")
    for t in range(4):
        np.testing.assert_allclose(past[t], model.predict_proba(COUNTS[: t + 1])[-1], rtol=1e-12)
    np.testing.assert_allclose(before[1:], past[:-1] @ model.transitions_, rtol=1e-12)


def test_one_state_is_the_closed_form() -> None:
    X = np.arange(1.0, 7.0)[:, None] * 0.001
    model = mj.HiddenMarkovModel(1).fit(X)
    assert model.covariances_.item() == pytest.approx(2.9166667e-6, rel=1e-7)
    assert model.log_likelihood_ == pytest.approx(norm(X.mean(), X.std()).logpdf(X).sum(), rel=1e-12)
    assert model.transitions_.tolist() == [[1.0]]


def simulated(seed: int, n: int = 300, d: int = 2) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    states = np.zeros(n, dtype=int)
    for t in range(1, n):
        states[t] = states[t - 1] if random.random() < 0.9 else random.integers(3)
    return random.normal(size=(n, d)) + 4.0 * np.eye(3)[states][:, :d] * [1, 10][:d], states


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("missing", [False, True])
def test_covariance_types_in_any_units(kind: str, missing: bool) -> None:
    X, states = simulated(0)
    if missing:
        X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
        X[7] = np.nan
    factor = np.array([1e-3, 1e-3]) if kind == "spherical" else np.array([1e-3, 1e4])
    model = mj.HiddenMarkovModel(3, covariance_type=kind, random_state=0).fit(X)
    other = mj.HiddenMarkovModel(3, covariance_type=kind, random_state=0).fit(X * factor + 5.0)
    assert model.regular_ and model.converged_
    np.testing.assert_allclose(other.means_, model.means_ * factor + 5.0, rtol=1e-3)
    n_cells = (~np.isnan(X)).sum(axis=0)
    assert other.log_likelihood_ == pytest.approx(model.log_likelihood_ - n_cells @ np.log(factor), abs=1e-3)
    assert np.mean([np.bincount(states[model.predict(X) == k]).max() for k in range(3)]) * 3 > 0.85 * len(X)
    assert model.covariances_.shape == {"full": (3, 2, 2), "tied": (3, 2, 2), "diag": (3, 2), "spherical": (3,)}[kind]
    joint = model.score_samples(X)
    assert joint.sum() == pytest.approx(model.log_likelihood_, abs=1e-6)
    if kind == "full" and not missing:
        ahead = model.predict_proba(X, given="before")
        f = np.stack([multivariate_normal(m, c).pdf(X) for m, c in zip(model.means_, model.covariances_, strict=True)])
        np.testing.assert_allclose(joint, np.log((ahead.T * f).sum(axis=0)), rtol=1e-9)


def test_sequences_in_every_form_are_the_same() -> None:
    X, _ = simulated(2)
    sizes = [100, 50, 150]
    tables = np.split(X, [100, 150])
    by_list = mj.HiddenMarkovModel(2, random_state=0).fit(tables)
    by_lengths = mj.HiddenMarkovModel(2, random_state=0).fit(X, lengths=sizes)
    by_groups = mj.HiddenMarkovModel(2, random_state=0).fit(X, groups=np.repeat(["b", "c", "a"], sizes))
    for other in (by_lengths, by_groups):
        assert other.log_likelihood_ == by_list.log_likelihood_
        np.testing.assert_array_equal(other.transitions_, by_list.transitions_)
    np.testing.assert_array_equal(by_list.predict(tables), by_list.predict(X, lengths=sizes))
    turns = np.concatenate([np.arange(50) * 3, np.arange(50) * 3 + 1, np.arange(50) * 3 + 2, 150 + np.arange(150)])
    codes = np.empty(300, dtype=int)
    codes[turns] = np.repeat([0, 1, 2, 3], [50, 50, 50, 150])
    woven = np.empty_like(X)
    woven[turns] = X
    found = by_list.predict_proba(woven, groups=codes)
    np.testing.assert_allclose(found[turns], by_list.predict_proba(X, lengths=[50, 50, 50, 150]))


def test_the_log_likelihood_of_sequences_is_that_of_the_fit_in_every_form() -> None:
    X, states = simulated(2)
    tables, w, codes = np.split(X, [100, 150]), [2.0, 0.5, 1.0], np.repeat([0, 1, 2], [100, 50, 150])
    labels = np.where(np.arange(300) % 7 == 0, (states > 0).astype(int), -1)
    for known in ({}, {"component_labels": labels}):
        model = mj.HiddenMarkovModel(2, effort="fast", random_state=0).fit(tables, sequence_weight=w, **known)
        for x, cuts in ((tables, {}), (X, {"lengths": [100, 50, 150]}), (X, {"groups": codes})):
            found = model.log_likelihood(x, sequence_weight=w, **known, **cuts)
            assert found == pytest.approx(model.log_likelihood_, rel=1e-9)


def test_weights_are_repeats_to_the_last_bit() -> None:
    X, _ = simulated(3, n=120)
    tables = np.split(X, [40, 80])
    weighted = mj.HiddenMarkovModel(2, random_state=0).fit(tables, sequence_weight=[2, 1, 3])
    repeated = mj.HiddenMarkovModel(2, random_state=0).fit([tables[i] for i in (2, 0, 2, 1, 0, 2)])
    assert weighted.log_likelihood_ == repeated.log_likelihood_
    np.testing.assert_array_equal(weighted.transitions_, repeated.transitions_)
    without = mj.HiddenMarkovModel(2, random_state=0).fit(tables, sequence_weight=[1, 0, 1])
    assert (
        without.log_likelihood_ == mj.HiddenMarkovModel(2, random_state=0).fit([tables[0], tables[2]]).log_likelihood_
    )


def test_threads_do_not_change_a_bit() -> None:
    random = np.random.default_rng(0)
    X = random.poisson(np.repeat(random.choice([2.0, 9.0], 1000), 20))[:, None].astype(float)
    fits = [
        mj.HiddenMarkovModel(2, emission="poisson", effort="fast", random_state=0, n_jobs=n).fit(X, lengths=[500] * 40)
        for n in (1, 3)
    ]
    assert fits[0].log_likelihood_ == fits[1].log_likelihood_
    np.testing.assert_array_equal(fits[0].transitions_, fits[1].transitions_)


def test_left_to_right_and_known_states_keep_their_names() -> None:
    random = np.random.default_rng(0)
    tables = [random.normal(np.repeat([3.0, -2.0, 6.0], random.integers(5, 20, 3)))[:, None] for _ in range(8)]
    allowed = np.triu(np.ones((3, 3), dtype=bool)) & ~np.triu(np.ones((3, 3), dtype=bool), 2)
    model = mj.HiddenMarkovModel(3, start=[1.0, 0.0, 0.0], allowed=allowed, random_state=0).fit(tables)
    np.testing.assert_allclose(model.means_.ravel(), [3.0, -2.0, 6.0], atol=0.5)
    assert (model.transitions_[~allowed] == 0).all()
    path = model.predict(tables[0])
    assert (np.diff(path) >= 0).all() and path[0] == 0
    assert model.n_parameters_ == 6 + 2
    labels = np.full(sum(map(len, tables)), -1)
    labels[0], labels[len(tables[0]) - 1] = 2, 1
    known = mj.HiddenMarkovModel(3, random_state=0).fit(tables, component_labels=labels)
    np.testing.assert_allclose(known.means_.ravel(), [-2.0, 6.0, 3.0], atol=0.5)
    with pytest.raises(ValueError, match="give component_labels"):
        known.bic(tables)


def test_samples_come_from_the_model() -> None:
    model = given()
    x, states = model.sample(20_000)
    counts = np.zeros((2, 2))
    np.add.at(counts, (states[:-1], states[1:]), 1)
    np.testing.assert_allclose(counts / counts.sum(axis=1, keepdims=True), model.transitions_, atol=0.02)
    np.testing.assert_allclose([x[states == k].mean() for k in (0, 1)], [1.0, 4.0], atol=0.1)
    x, states = model.sample(lengths=[3] * 4000)
    assert x.shape == (12_000, 1)
    assert np.bincount(states[::3]) / 4000 == pytest.approx([0.5, 0.5], abs=0.03)
    woven = model.sample(groups=np.arange(8000) % 2)[1]
    assert np.mean(woven[2:] == woven[:-2]) > 0.8 > 0.7 > np.mean(woven[1:] == woven[:-1])


def test_the_test_of_one_state_more_keeps_the_order_of_the_rows() -> None:
    X = np.random.default_rng(0).poisson(np.repeat([2.0, 30.0, 2.0, 30.0], 10))[:, None].astype(float)
    found = mj.likelihood_ratio_test(
        mj.HiddenMarkovModel(1, emission="poisson", effort="fast", random_state=0), X, n_resamples=3, random_state=0
    )
    fits = [mj.HiddenMarkovModel(k, emission="poisson", effort="fast", random_state=0).fit(X) for k in (1, 2)]
    assert found.statistic == pytest.approx(2 * (fits[1].log_likelihood_ - fits[0].log_likelihood_), rel=1e-6)
    groups = np.repeat([0, 1], 20)
    found = mj.likelihood_ratio_test(
        mj.HiddenMarkovModel(1, emission="poisson", effort="fast"), X, n_resamples=2, groups=groups, random_state=0
    )
    assert found.p_value <= 1 / 3


def test_rows_in_time_are_not_resampled() -> None:
    X, _ = simulated(0, n=60)
    with pytest.raises(TypeError, match="resamples of rows have no order"):
        mj.stability(mj.HiddenMarkovModel(2, effort="fast"), X, n_runs=1)
    found = mj.stability(mj.HiddenMarkovModel(2, effort="fast", random_state=0), X, n_runs=1, resample=None)
    assert found.n_at_best == 1


def test_forecasts_are_distributions() -> None:
    X, _ = simulated(0)
    model = mj.HiddenMarkovModel(3, random_state=0).fit(X, lengths=[100, 200])
    ahead = model.forecast(X, 5, lengths=[100, 200])
    assert ahead.states.shape == (2, 5, 3) and ahead.mean.shape == (2, 5, 2)
    low, high = ahead.interval(0.8)
    grid = np.linspace(-20, 60, 20_001)
    density = ahead.density(grid, column=0)
    np.testing.assert_allclose(trapezoid(density, grid), 1.0, atol=1e-6)
    inside = np.where((grid >= low[1, 4, 0]) & (grid <= high[1, 4, 0]), density[1, 4], 0.0)
    assert trapezoid(inside, grid) == pytest.approx(0.8, abs=2e-3)
    with pytest.raises(ValueError, match="level must be"):
        ahead.interval(1.0)
    for p in (-0.1, 0.0, 1.0, 1.5, np.nan):
        with pytest.raises(ValueError, match="p must be"):
            ahead.quantile(p)
    counts = given().forecast(COUNTS, 3)
    for step in range(3):
        q = counts.quantile(0.9)[0, step, 0]
        cdf = counts.states[0, step] @ poisson([1.0, 4.0]).cdf(np.array([[q], [q - 1]])).T
        assert cdf[0] >= 0.9 > cdf[1]


def test_a_saved_model_says_the_same(tmp_path: Path) -> None:
    X, states = simulated(4)
    table = np.column_stack([X[:, 0], states * 10.0])
    model = mj.HiddenMarkovModel(2, emission=["gaussian", "categorical"], effort="fast", random_state=0).fit(table)
    model.save(tmp_path / "model.mj")
    loaded = mj.load(tmp_path / "model.mj")
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
    np.testing.assert_array_equal(loaded.pseudo_residuals(table), model.pseudo_residuals(table))
    assert set(np.unique(model.sample(50)[0][:, 1])) <= {0.0, 10.0, 20.0}
    assert str(loaded.summary()) == str(model.summary())


@pytest.mark.parametrize(
    ("settings", "fit", "message"),
    [
        ({"emission": "normal"}, {}, "emission must be one of"),
        ({"emission": ["gaussian"]}, {}, "emission names 1 columns; X has 2"),
        ({"emission": "poisson"}, {}, "counts are whole numbers"),
        ({"start": "equal"}, {}, "start must be one of"),
        ({"start": [0.5, 0.6]}, {}, "2 probabilities that add up to 1"),
        ({"allowed": np.eye(3, dtype=bool)}, {}, "allowed must be True or False, or 1 or 0"),
        ({"allowed": np.eye(2, dtype=bool), "start": "stationary"}, {}, "needs a way from every state"),
        ({}, {"lengths": [10, 10]}, "lengths add up to 20; X has 300 rows"),
        ({}, {"lengths": [300], "groups": np.zeros(300)}, "give one of them"),
        ({}, {"lengths": [0, 300]}, "positive whole numbers"),
        ({}, {"sequence_weight": np.arange(300.0)}, "one number per sequence"),
        ({}, {"component_labels": np.full(300, 2)}, "must be from -1 to 1; got 2"),
        ({}, {"component_labels": np.zeros(3, dtype=int)}, "one whole number per row"),
    ],
)
def test_what_cannot_be_is_refused_in_words(settings: dict[str, Any], fit: dict[str, Any], message: str) -> None:
    X, _ = simulated(0)
    with pytest.raises((ValueError, TypeError), match=message):
        mj.HiddenMarkovModel(2, random_state=0, **settings).fit(X, **fit)


def test_levels_that_the_fit_does_not_have_are_refused() -> None:
    x = np.array([1.0, 2.0, 1.0, 1.0, 2.0, 2.0])[:, None]
    model = mj.HiddenMarkovModel(1, emission="categorical").fit(x)
    with pytest.raises(ValueError, match="a value that the rows of the fit do not have"):
        model.predict([[3.0]])


@pytest.mark.parametrize(
    ("settings", "known", "message"),
    [
        ({"start": [1.0, 0.0]}, {30: 1}, "state 1 in row 30, where start, .* before it leave only 0: "),
        ({"allowed": np.array([[True, True], [False, True]])}, {5: 1, 20: 0}, "state 0 in row 20, .* leave only 1: "),
        ({"start": [0.0, 1.0], "allowed": np.array([[True, True], [False, True]])}, {7: 0}, "state 0 in row 7, "),
    ],
)
def test_known_states_that_cannot_be_are_refused(settings: dict[str, Any], known: dict[int, int], message: str) -> None:
    X, _ = simulated(0, n=60)
    labels = np.full(60, -1)
    labels[list(known)] = list(known.values())
    model = mj.HiddenMarkovModel(2, effort="fast", random_state=0, **settings)
    with pytest.raises(ValueError, match=message):
        model.fit(X, lengths=[30, 30], component_labels=labels)
    turned = np.argsort(np.tile([0, 1], 30), kind="stable")
    woven, codes = np.empty(60, dtype=int), np.tile([0, 1], 30)
    woven[turned] = labels
    with pytest.raises(ValueError, match=f"in row {turned[max(known)]}, "):
        model.fit(X, groups=codes, component_labels=woven)


@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_an_impossible_solution_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("majorant.models.hidden_markov.fitted.check_possible", lambda *given: None)
    labels = np.append(1, np.full(3, -1))
    with pytest.raises(ValueError, match="log-likelihood is -inf: no solution gives every row a density"):
        mj.HiddenMarkovModel(2, emission="poisson", start=[1.0, 0.0]).fit(COUNTS, component_labels=labels)


def test_tables_of_a_list_need_the_same_columns() -> None:
    X, _ = simulated(0, n=40)
    model = mj.HiddenMarkovModel(2, effort="fast", random_state=0)
    for make in (pd.DataFrame, pl.DataFrame):
        tables = [make({"a": part[:, 0], "b": part[:, 1]}) for part in (X[:20], X[20:])]
        for other in (make({"b": X[:, 0], "a": X[:, 1]}), make({"a": X[:, 0]}), make({"a": X[:, 0], "c": X[:, 1]})):
            with pytest.raises(ValueError, match=r"table 0 has .'a', 'b'., table 1 has"):
                model.fit([tables[0], other])
        found = model.fit(tables).log_likelihood_
        assert found == model.fit([X[:20], X[20:]]).log_likelihood_
        assert list(model.fit(tables).feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match=r"table 0 has .2,., table 1 has .1,."):
        model.fit([X[:20], X[20:, :1]])


def test_estimates_are_a_table_with_errors_and_intervals() -> None:
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(np.repeat([0.0, 5.0, 0.0], 30)), random.normal(size=90)])
    model = mj.HiddenMarkovModel(2, covariance_type="diag", random_state=0).fit(X)
    found, errors, ends = (
        model.estimates(X, level=0.8),
        model.standard_errors(X),
        model.confidence_intervals(X, level=0.8),
    )
    columns = ["parameter", "entry", "state", "estimate", "standard_error", "low", "high"]
    assert list(found.columns) == columns and len(found) == 4 + 4 + 2 + 4
    row = found[(found.parameter == "means") & (found.entry == "x2") & (found.state == 2)]
    told = (model.means_[1, 1], errors["means"][1, 1], ends["means"][0][1, 1], ends["means"][1][1, 1])
    np.testing.assert_array_equal(row.iloc[0, 3:].to_numpy(dtype=float), told)
    row = found[(found.parameter == "transitions") & (found.entry == "to 2") & (found.state == 1)]
    assert row["estimate"].item() == model.transitions_[0, 1]
    classes = mj.LatentClassAnalysis(2, random_state=0).fit(X > 1)
    assert classes.estimates(X > 1)["class"].tolist()[:2] == [1, 2]


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(
    ("emission", "covariance_type"),
    [("gaussian", "diag"), ("student", "diag"), ("gamma", "full"), (["poisson", "gaussian", "gaussian"], "full")],
    ids=str,
)
def test_a_column_that_does_not_vary_is_named_and_to_be_left_out(emission: Any, covariance_type: str, k: int) -> None:
    """Fewer states would not do, nor more rows."""
    random = np.random.default_rng(0)
    table = pd.DataFrame({"n": random.poisson(3.0, 80) + 1, "x": random.gamma(2.0, size=80), "same": 3.0})
    model = mj.HiddenMarkovModel(k, emission=emission, covariance_type=covariance_type, random_state=0)
    with pytest.warns(ConvergenceWarning, match="column same does not vary, so that there is no .*; leave out same"):
        model.fit(table)
    assert not model.regular_
    if k == 1:
        assert model.fit(table.assign(same=random.gamma(2.0, size=80))).regular_


@pytest.mark.parametrize(
    ("emission", "wrong"), [("gamma", -1.0), ("poisson", 1.5), ("bernoulli", 3.0), ("von_mises", 99.0)]
)
@pytest.mark.parametrize("new", [False, True])
def test_a_cell_that_cannot_be_is_told_by_its_column(emission: str, wrong: float, new: bool) -> None:
    table = pd.DataFrame({"first": np.arange(20.0), "steps": np.tile([1.0, 0.0], 10) + (emission == "gamma")})
    model = mj.HiddenMarkovModel(1, emission=["gaussian", emission], random_state=0)
    bad = table.copy()
    bad.loc[7, "steps"] = wrong
    with pytest.raises(ValueError, match=rf"row 7, column 'steps' of X is {wrong:g}; with emission='{emission}'"):
        model.fit(table).predict(bad) if new else model.fit(bad)
    with pytest.raises(ValueError, match=rf"row 7, column 1 of X is {wrong:g}"):
        model.fit(bad.to_numpy())
