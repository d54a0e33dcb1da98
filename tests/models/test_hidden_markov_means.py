"""Hamilton's autoregression about a mean that switches: tuples of states, references, and what follows a fit."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import majorant as mj
from tests.models.test_hidden_markov import needs_series, series

ROWS = np.array([0.3, -0.5, 2.2, 1.9, 0.4, -1.1])[:, None]


KINDS = ["switching_mean", "switching_autoregression"]


def model(lags: int, *, k: int = 2, emission: str = "switching_mean", **settings: Any) -> Any:
    """A fit to rows of a mean that switches."""
    return mj.HiddenMarkovModel(k, emission=emission, lags=lags, **{"random_state": 0, "effort": "fast", **settings})


def rows(n: int = 160, seed: int = 0) -> Any:
    """Two regimes of an autoregression about means of 0 and 4."""
    random, means = np.random.default_rng(seed), np.repeat([0.0, 4.0, 0.0, 4.0], n // 4)
    apart = np.zeros(n)
    for t in range(1, n):
        apart[t] = 0.5 * apart[t - 1] + 0.6 * random.normal()
    return (means + apart)[:, None]


def by_paths(fitted: Any, y: Any, lags: int) -> tuple[float, Any, Any]:
    """The log-likelihood, probabilities of states and best path by a sum over all paths."""
    n, k = len(y), fitted.n_components
    mean, own, sd = fitted.means_[:, 0], fitted.coef_, np.sqrt(fitted.variances_)
    paths = list(itertools.product(range(k), repeat=n))
    logs = np.zeros(len(paths))
    for i, path in enumerate(paths):
        apart = y[:, 0] - mean[list(path)]
        logs[i] = np.log(fitted.start_probabilities_[path[0]])
        logs[i] += sum(np.log(fitted.transitions_[a, b]) for a, b in itertools.pairwise(path))
        for t in range(lags, n):
            centre = sum(own[path[t], j] * apart[t - 1 - j] for j in range(lags))
            logs[i] += norm.logpdf(apart[t], centre, sd[path[t]])
    value = np.logaddexp.reduce(logs)
    p = np.exp(logs - value)
    q = np.stack([[p[[path[t] == s for path in paths]].sum() for s in range(k)] for t in range(n)])
    return value, q, np.array(paths[int(logs.argmax())])


@pytest.mark.parametrize("emission", KINDS)
@pytest.mark.parametrize(("lags", "k", "start"), [(1, 2, "free"), (2, 2, "stationary"), (1, 3, [0.2, 0.3, 0.5])])
def test_all_answers_are_sums_over_all_paths(lags: int, k: int, start: Any, emission: str) -> None:
    fitted = model(lags, k=k, start=start, emission=emission).fit(rows())
    assert (np.ptp(fitted.coef_, axis=0) == 0).all() == (emission == "switching_mean")
    value, q, path = by_paths(fitted, ROWS, lags)
    assert fitted.score(ROWS) * len(ROWS) == pytest.approx(value, abs=1e-12 * max(1, abs(value)))
    np.testing.assert_allclose(fitted.predict_proba(ROWS), q, atol=1e-12)
    np.testing.assert_array_equal(fitted.predict(ROWS), path)
    np.testing.assert_allclose(fitted.predict_proba(ROWS, given="past")[-1], q[-1], atol=1e-12)


def test_a_single_state_is_the_autoregression() -> None:
    y = rows()[:, 0]
    design = np.column_stack([np.ones(len(y) - 2), y[1:-1], y[:-2]])
    line, squares = np.linalg.lstsq(design, y[2:], rcond=None)[:2]
    fitted = model(2, k=1).fit(y[:, None])
    variance = squares[0] / len(design)
    assert fitted.log_likelihood_ == pytest.approx(-len(design) / 2 * (np.log(2 * np.pi * variance) + 1), abs=1e-7)
    np.testing.assert_allclose(fitted.coef_[0], line[1:], atol=1e-4)
    assert fitted.means_[0, 0] == pytest.approx(line[0] / (1 - line[1:].sum()), abs=1e-3)


@pytest.mark.parametrize("emission", KINDS)
@pytest.mark.parametrize("covariance_type", ["tied", "full"])
def test_the_log_likelihood_never_falls_and_states_are_numbered_by_size(covariance_type: str, emission: str) -> None:
    fitted = model(1, covariance_type=covariance_type, emission=emission).fit(rows())
    on, _ = fitted._on(rows())
    theta = on.mixture.started(np.random.default_rng(0).dirichlet([1, 1], 160).T[None], on.data)
    values = []
    for _ in range(40):
        seen = on.seen(theta)
        values.append(seen.objective[0])
        theta = on.moved(theta, seen, np.ones(1))
    assert (np.diff(values) <= 1e-10).all() and values[0] - values[-1] > 0.1
    assert fitted.weights_[0] >= fitted.weights_[1] - 1e-6
    if covariance_type == "tied":
        np.testing.assert_allclose(np.sort(fitted.means_[:, 0]), [0, 4], atol=0.6)
    assert fitted.score(rows()) * 160 == pytest.approx(fitted.log_likelihood_, abs=1e-8)
    assert (fitted.variances_[0] == fitted.variances_[1]) == (covariance_type == "tied")


@needs_series
@pytest.mark.parametrize(("lags", "value"), [(1, -186.7575), (2, -179.3235)])
def test_an_autoregression_that_switches_reaches_its_references(lags: int, value: float) -> None:
    settings = {"covariance_type": "tied", "start": "stationary", "effort": "default"}
    y = series()["rgnp"][:, None]
    fitted = model(lags, emission="switching_autoregression", **settings).fit(y)
    assert fitted.log_likelihood_ >= value - 1e-4
    assert fitted.n_parameters_ == 5 + 2 * lags
    assert all((error > 0).all() and np.isfinite(error).all() for error in fitted.standard_errors(y).values())


@needs_series
def test_growth_of_the_gross_national_product() -> None:
    y = series()["rgnp"][:, None]
    fitted = model(4, covariance_type="tied", start="stationary", effort="default").fit(y)
    assert fitted.log_likelihood_ == pytest.approx(-181.2634, abs=1e-4) and fitted.n_parameters_ == 9
    errors = fitted.standard_errors(y)
    np.testing.assert_allclose(errors["means"][:, 0], [0.0745, 0.2645], atol=1e-4)
    np.testing.assert_allclose(errors["transitions"].diagonal(), [0.0377, 0.0965], atol=1e-4)
    np.testing.assert_allclose(errors["coef"][0], [0.1200, 0.1377, 0.1069, 0.1105], atol=1e-4)


def test_a_forecast_is_the_mean_over_all_paths_ahead(tmp_path: Path) -> None:
    fitted = model(1).fit(rows())
    fitted.save(tmp_path / "model.mj")
    ahead = mj.load(tmp_path / "model.mj").forecast(ROWS, 2)
    q = fitted.predict_proba(ROWS)[-1]
    np.testing.assert_allclose(ahead.states[0, 0], q @ fitted.transitions_, atol=1e-12)
    # E[y_n - mu_{s_n}] = phi E[y_{n-1} - mu_{s_{n-1}}], and that of the last row is known but for its state.
    mean, phi, apart = fitted.means_[:, 0], fitted.coef_[0, 0], ROWS[-1, 0] - q @ fitted.means_[:, 0]
    expected = [ahead.states[0, h] @ mean + phi ** (h + 1) * apart for h in range(2)]
    np.testing.assert_allclose(ahead.mean[0, :, 0], expected, atol=1e-12)
    residuals = fitted.pseudo_residuals(rows())
    assert np.isnan(residuals[0, 0]) and abs(np.nanmean(residuals)) < 0.3


def test_missing_rows_only_advance_time() -> None:
    y = rows()
    fitted = model(1).fit(y)
    gap = ROWS.copy()
    gap[2] = np.nan
    mean, own, sd = fitted.means_[:, 0], fitted.coef_[0, 0], np.sqrt(fitted.variances_)
    total = []
    for path in itertools.product(range(2), repeat=6):
        apart = gap[:, 0] - mean[list(path)]
        log = np.log(fitted.start_probabilities_[path[0]])
        log += sum(np.log(fitted.transitions_[a, b]) for a, b in itertools.pairwise(path))
        total.append(log + sum(norm.logpdf(apart[t], own * apart[t - 1], sd[path[t]]) for t in (1, 4, 5)))
    assert fitted.score(gap) * 6 == pytest.approx(np.logaddexp.reduce(total), abs=1e-10)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"lags": 0}, "at least one; got lags=0"),
        ({"lags": 1, "fit_intercept": False}, "has a mean in each state"),
        ({"lags": 9}, "1,024 tuples of states"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        model(settings.pop("lags"), **settings).fit(rows())


def test_data_that_do_not_fit_are_refused() -> None:
    y = rows()
    with pytest.raises(ValueError, match="got 2 columns"):
        model(1).fit(np.column_stack([y, y]))
    with pytest.raises(ValueError, match="no known states"):
        model(1).fit(y, component_labels=np.full(len(y), -1))
    with pytest.raises(ValueError, match="leave gating out"):
        model(1).fit(y, gating=np.arange(len(y))[:, None])
    with pytest.raises(TypeError, match="cannot be drawn from"):
        model(1).fit(y).sample(5)


@pytest.mark.parametrize("emission", ["regression", *KINDS])
@pytest.mark.parametrize(("n", "lengths"), [(4, None), (12, [4, 4, 4])])
def test_sequences_without_all_their_lags_are_refused(emission: str, n: int, lengths: Any) -> None:
    with pytest.raises(ValueError, match="no row has all its cells and lags: use fewer lags, or longer sequences"):
        model(4, emission=emission).fit(rows()[:n], lengths=lengths)
