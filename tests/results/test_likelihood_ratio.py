"""The test of one component more: it tells two from one, its p-values are uniform, nothing accidental matters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config

import majorant as mj


def two_lines(n: int = 80, seed: int = 0) -> tuple[Any, Any]:
    g = np.random.default_rng(seed)
    x = g.normal(size=(n, 1))
    return x, np.where(g.random(n) < 0.5, 2 + x[:, 0], -x[:, 0]) + 0.4 * g.normal(size=n)


def test_two_components_and_no_third() -> None:
    x, y = two_lines()
    est = mj.RegressionMixture(variance="common")
    first = mj.likelihood_ratio_test(est, x, y, n_components=1, n_resamples=9, random_state=0)
    assert first.p_value == 0.1
    assert first.statistic > first.simulated.max()
    assert "One component more than 1 adds" in first.sentence and "p = 0.1" in first.sentence
    second = mj.likelihood_ratio_test(est, x, y, n_resamples=9, random_state=0)
    assert second.size == 2
    assert second.p_value > 0.1
    assert second.p_value_error == pytest.approx(np.sqrt(second.p_value * (1 - second.p_value) / 10))
    single = mj.RegressionMixture(1, variance="common").fit(x, y).log_likelihood_
    double = mj.RegressionMixture(2, variance="common", random_state=0).fit(x, y).log_likelihood_
    assert first.statistic == pytest.approx(2 * (double - single), rel=1e-6)


def test_p_values_under_the_hypothesis() -> None:
    """Of data from one line; uniform on five steps: mean .6, and none is always at an end."""
    found = []
    for seed in range(12):
        g = np.random.default_rng(seed)
        x = g.normal(size=(40, 1))
        test = mj.likelihood_ratio_test(
            mj.RegressionMixture(1, variance="common"), x, x[:, 0] + g.normal(size=40), n_resamples=4, random_state=seed
        )
        found.append(test.p_value)
    assert 0.35 < np.mean(found) < 0.85
    assert len(set(found)) > 2


def test_of_a_gaussian_mixture() -> None:
    g = np.random.default_rng(0)
    x = g.normal(size=(60, 1)) + np.repeat([[0.0], [7.0]], 30, axis=0)
    times = np.arange(60) % 2 + 1
    est = mj.GaussianMixture(1)
    one = mj.likelihood_ratio_test(est, x, sample_weight=times, n_resamples=9, random_state=0)
    order = g.permutation(times.sum())
    other = mj.likelihood_ratio_test(est, np.repeat(x, times, 0)[order], n_resamples=9, random_state=0)
    np.testing.assert_array_equal(one.simulated, other.simulated)
    assert one.statistic == other.statistic
    assert one.p_value == 1 / (1 + len(one.simulated))
    assert len(one.simulated) + one.n_degenerate == 9


@pytest.mark.filterwarnings("ignore:Gating by column 1 separates")  # of drawn tables too
def test_groups_gating_and_jobs() -> None:
    g = np.random.default_rng(1)
    x, groups = g.normal(size=(60, 1)), np.arange(60) // 3
    which = (g.random(20) < 0.5)[groups]
    y = g.poisson(np.exp(np.where(which, 1.5, 0.2) + 0.1 * x[:, 0])).astype(float)
    given = {"groups": groups, "gating": g.normal(size=20)[groups]}
    est = mj.RegressionMixture(1, family="poisson")
    with parallel_config("threading"):
        a, b = (
            mj.likelihood_ratio_test(est, x, y, n_resamples=2, random_state=0, n_jobs=jobs, **given) for jobs in (1, 2)
        )
    np.testing.assert_array_equal(a.simulated, b.simulated)
    assert a.p_value == 1 / 3


def test_mistakes_are_named() -> None:
    x, y = two_lines(30)
    est = mj.RegressionMixture(1)
    with pytest.raises(TypeError, match="KMeans has no likelihood"):
        mj.likelihood_ratio_test(mj.KMeans(2), x)
    with pytest.raises(ValueError, match="needs y"):
        mj.likelihood_ratio_test(est, x)
    with pytest.raises(ValueError, match="whole numbers"):
        mj.likelihood_ratio_test(est, x, y, sample_weight=np.full(30, 0.5))
    with pytest.raises(ValueError, match="X has 30 rows and offset has 29"):
        mj.likelihood_ratio_test(est, x, y, offset=np.zeros(29))
    with pytest.raises(ValueError, match="n_resamples"):
        mj.likelihood_ratio_test(est, x, y, n_resamples=0)
    with pytest.raises(ValueError, match="no regular solution with 1 component was found"):
        mj.likelihood_ratio_test(est, x, 2 * x[:, 0], n_resamples=3)


def test_of_latent_classes_of_text_with_missing_cells() -> None:
    g = np.random.default_rng(0)
    z = g.random(150) < 0.4
    table = pd.DataFrame({c: np.where(g.random(150) < np.where(z, 0.9, 0.15), "yes", "no") for c in "abcd"})
    table["number"] = g.normal(3.0 * z, 1.0)
    table.loc[::6, "a"] = None
    table.loc[::11, "number"] = np.nan
    est = mj.LatentClassAnalysis(random_state=0)
    first = mj.likelihood_ratio_test(est, table, n_components=1, n_resamples=9, random_state=0)
    second = mj.likelihood_ratio_test(est, table, n_components=2, n_resamples=9, random_state=0)
    assert first.p_value == 0.1 and second.p_value > 0.1
    single, double = (mj.LatentClassAnalysis(k, random_state=0).fit(table).log_likelihood_ for k in (1, 2))
    assert first.statistic == pytest.approx(2 * (double - single), rel=1e-6)
    shuffled = mj.likelihood_ratio_test(
        est, table.loc[g.permutation(150)], n_components=1, n_resamples=9, random_state=0
    )
    np.testing.assert_array_equal(first.simulated, shuffled.simulated)


def test_cells_missing_in_the_data_are_missing_in_drawn_data(monkeypatch: pytest.MonkeyPatch) -> None:
    g = np.random.default_rng(0)
    x = g.normal(size=(40, 2))
    x[::5, 1] = np.nan
    seen: list[Any] = []
    fit = mj.GaussianMixture.fit

    def watched(self: Any, X: Any, *others: Any, **given: Any) -> Any:
        seen.append(np.isnan(X).sum(axis=0))
        return fit(self, X, *others, **given)

    monkeypatch.setattr(mj.GaussianMixture, "fit", watched)
    mj.likelihood_ratio_test(mj.GaussianMixture(1), x, n_resamples=2, random_state=0)
    assert len(seen) == 6
    np.testing.assert_array_equal(seen, np.tile([0, 8], (6, 1)))


def test_covariates_of_text_go_with_the_drawn_rows() -> None:
    g = np.random.default_rng(0)
    sex = g.choice(["f", "m"], 120)
    z = g.random(120) < np.where(sex == "m", 0.7, 0.3)
    table = pd.DataFrame({c: np.where(g.random(120) < np.where(z, 0.9, 0.1), "yes", "no") for c in "abc"})
    est = mj.LatentClassAnalysis(1, random_state=0)
    found = mj.likelihood_ratio_test(est, table, gating=pd.DataFrame({"sex": sex}), n_resamples=4, random_state=0)
    assert found.p_value == 0.2


def test_cells_are_missing_whatever_the_component_of_a_drawn_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Far apart, so that a drawn row tells its component; the rows of the fit are sorted, missing cells together."""
    g = np.random.default_rng(0)
    z = g.random(400) < 0.5
    x = g.normal(size=(400, 2)) + 50.0 * z[:, None]
    x[g.random(400) < 0.4, 0] = np.nan
    shares: list[float] = []
    fit = mj.GaussianMixture.fit

    def watched(self: Any, X: Any, *others: Any, **given: Any) -> Any:
        is_first = X[:, 1] < 25
        shares.append(np.isnan(X[is_first, 0]).mean() - np.isnan(X[~is_first, 0]).mean())
        return fit(self, X, *others, **given)

    monkeypatch.setattr(mj.GaussianMixture, "fit", watched)
    mj.likelihood_ratio_test(mj.GaussianMixture(random_state=0), x, n_components=2, n_resamples=3, random_state=0)
    assert len(shares) == 8
    assert np.abs(shares).max() < 0.2
