"""A density whose M-step is only a step, by the guide alone: it ends where the closed form of the package does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import poisson

import majorant as mj
from majorant.densities import check_density
from majorant.models.mixture import MixtureEstimator
from majorant.registry import CARDS, ESTIMATORS, mixture_card, register

RANDOM = np.random.default_rng(0)
N = 600
Z = np.arange(N) % 3 == 0
RATES, ZEROS = np.array([[7.0, 2.0, 4.0], [2.0, 6.0, 1.0]]), np.array([[0.05, 0.4, 0.2], [0.3, 0.1, 0.5]])
X = np.where(RANDOM.random((N, 3)) < ZEROS[Z.astype(int)], 0.0, RANDOM.poisson(RATES[Z.astype(int)]))


class ZeroInflatedPoisson:
    """Columns of counts, zero with a share of their own and else Poisson; parameters are (runs, components, d, 2)."""

    n_columns = 1
    exact = False
    limits: Mapping[str, tuple[float, float]] = {"zeros": (0.0, 1.0), "rates": (0.0, np.inf)}

    def __init__(self, n_features: int) -> None:
        self.n_features, self.width = n_features, 3 * n_features

    def _cells(self, theta: Any, rows: Any) -> tuple[Any, Any]:
        """Log density of each cell, and the probability that it is a needless zero."""
        x = np.nan_to_num(rows.columns[0])
        share, rate = (np.clip(theta[..., j], 1e-300, None)[:, :, None] for j in (0, 1))
        counts = np.log1p(-np.minimum(share, 1 - 1e-15)) - rate + x * np.log(rate) - gammaln(x + 1)
        both = np.where(x == 0, np.logaddexp(np.log(share), counts), counts)
        there = ~np.isnan(rows.columns[0])
        return there * both, there * (x == 0) * np.exp(np.minimum(np.log(share) - both, 0.0))

    def log_density(self, theta: Any, rows: Any) -> Any:
        return self._cells(theta, rows)[0].sum(axis=3)

    def statistics(self, theta: Any, rows: Any, q: Any) -> Any:
        x = rows.columns[0]
        needless = np.broadcast_to(0.5 * (x == 0), (*q.shape, x.shape[1]))
        needless = needless if theta is None else self._cells(theta, rows)[1]
        sums = np.einsum("skn,sknd->skd", q, needless)
        return np.concatenate([q @ (~np.isnan(x)).astype(float), sums, q @ np.nan_to_num(x)], axis=2)

    def solve(self, statistics: Any, theta: Any, share: Any) -> Any:
        mass, needless, sums = np.split(np.maximum(statistics, 0.0), 3, axis=2)
        best = np.stack([needless / np.maximum(mass, 1e-300), sums / np.maximum(mass - needless, 1e-300)], axis=3)
        return best if theta is None else theta + share[:, None, None, None] * (best - theta)

    def n_parameters(self, n_components: int) -> int:
        return 2 * self.n_features * n_components

    def describe(self, theta: Any) -> dict[str, Any]:
        return {"zeros": theta[..., 0], "rates": theta[..., 1]}

    def recalled(self, estimates: Any) -> Any:
        return np.stack([np.asarray(estimates[name], dtype=float)[None] for name in ("zeros", "rates")], axis=3)

    def vector(self, theta: Any) -> Any:
        share, rate = np.clip(theta[..., 0], 1e-300, 1 - 1e-15), np.maximum(theta[..., 1], 1e-300)
        return np.stack([np.log(share) - np.log1p(-share), np.log(rate)], axis=3).reshape(len(theta), -1)

    def theta_of(self, vector: Any, like: Any) -> Any:
        logit, log = np.moveaxis(vector.reshape(len(vector), *like.shape[1:]), -1, 0)
        return np.stack([1 / (1 + np.exp(-logit)), np.exp(log)], axis=3)

    def drawn(self, theta: Any, components: Any, random: np.random.Generator) -> Any:
        share, rate = theta[0, components, :, 0], theta[0, components, :, 1]
        return np.where(random.random(share.shape) < share, 0.0, random.poisson(rate))


@pytest.fixture(scope="module")
def model_class() -> Iterator[Any]:
    @register(mixture_card(name="zip-mixture", title="zero-inflated mixture", question="Which counts go along?"))
    class ZeroInflatedPoissonMixture(MixtureEstimator):
        def _density(self) -> Any:
            return ZeroInflatedPoisson(self.n_features_in_)

    yield ZeroInflatedPoissonMixture
    names: tuple[dict[str, Any], ...] = (CARDS, ESTIMATORS)
    for known in names:
        known.pop("zip-mixture", None)


@pytest.fixture(scope="module")
def fitted(model_class: Any) -> Any:
    return model_class(2, random_state=0).fit(X)


def log_likelihood(model: Any, x: NDArray[np.float64]) -> float:
    """By the definition, with missing cells left out."""
    rows = np.array(
        [
            np.log(w) + np.nansum(np.log((x == 0) * zeros + (1 - zeros) * poisson.pmf(x, rates)), axis=1)
            for w, zeros, rates in zip(model.weights_, model.zeros_, model.rates_, strict=True)
        ]
    )
    return float(np.logaddexp.reduce(rows).sum())


def test_it_fits(fitted: Any) -> None:
    assert fitted.log_likelihood_ == pytest.approx(log_likelihood(fitted, X), rel=1e-12)
    assert fitted.converged_ and fitted.regular_ and fitted.n_parameters_ == 13
    assert (np.diff(fitted.trace_["objective"]) <= 1e-9 * abs(fitted.log_likelihood_)).all()
    np.testing.assert_allclose(fitted.rates_, RATES, atol=0.6)
    np.testing.assert_allclose(fitted.zeros_, ZEROS, atol=0.15)


def test_it_keeps_its_word() -> None:
    check_density(ZeroInflatedPoisson(3), np.where(RANDOM.random(X.shape) < 0.1, np.nan, X))


def test_items_of_the_package_end_at_the_same_maximum(fitted: Any) -> None:
    items = mj.LatentClassAnalysis(2, items="zero_inflated_poisson", random_state=0).fit(X)
    assert items.log_likelihood_ == pytest.approx(fitted.log_likelihood_, abs=1e-4)
    np.testing.assert_allclose(items.zero_inflated_poisson_inflations_, fitted.zeros_, atol=1e-3)
    np.testing.assert_allclose(items.zero_inflated_poisson_means_, (1 - fitted.zeros_) * fitted.rates_, rtol=1e-3)
    errors, others = items.standard_errors(X)["zero_inflated_poisson_inflations"], fitted.standard_errors(X)["zeros"]
    np.testing.assert_allclose(errors, others, rtol=1e-2)
    drawn, z = items.sample(50_000)
    variances = items.items_.blocks[0].variances(items)
    np.testing.assert_allclose([drawn[z == k].var(axis=0) for k in range(2)], variances, rtol=0.05)
    gone = np.where(np.arange(N)[:, None] == 5, np.nan, X)
    w = np.arange(N) != 5
    assert items.fit(gone).log_likelihood_ == items.fit(X, sample_weight=w).log_likelihood_


def test_missing_cells_and_weights(model_class: Any) -> None:
    x = np.where(RANDOM.random(X.shape) < 0.1, np.nan, X)
    model = model_class(2, random_state=0, effort="fast").fit(x)
    assert model.log_likelihood_ == pytest.approx(log_likelihood(model, x), rel=1e-12)
    w = RANDOM.integers(0, 3, N)
    weighted = model_class(2, random_state=0, effort="fast").fit(X, sample_weight=w)
    repeated = model_class(2, random_state=0, effort="fast").fit(np.repeat(X, w, axis=0))
    np.testing.assert_array_equal(weighted.rates_, repeated.rates_)


def test_errors_are_those_of_numeric_slopes(fitted: Any) -> None:
    errors = fitted.standard_errors(X)
    assert all(np.isfinite(error).all() and (error > 0).all() for error in errors.values())
    low, high = fitted.confidence_intervals(X)["zeros"]
    assert ((low > 0) & (low < fitted.zeros_) & (fitted.zeros_ < high) & (high < 1)).all()
    one = fitted.__class__(1).fit(X[:, :1])
    zeros, rates = one.zeros_[0, 0], one.rates_[0, 0]

    def value(s: float, r: float) -> float:
        return float(np.log((X[:, 0] == 0) * s + (1 - s) * poisson.pmf(X[:, 0], r)).sum())

    h = 1e-4
    at = [(zeros + i * h, rates + j * h) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    f = np.array([value(*p) for p in at]).reshape(3, 3)
    cross = (f[2, 2] - f[2, 0] - f[0, 2] + f[0, 0]) / 4
    information = -np.array([[f[2, 1] - 2 * f[1, 1] + f[0, 1], cross], [cross, f[1, 2] - 2 * f[1, 1] + f[1, 0]]]) / h**2
    expected = np.sqrt(np.diag(np.linalg.inv(information)))
    found = one.standard_errors(X[:, :1])
    np.testing.assert_allclose([found["zeros"][0, 0], found["rates"][0, 0]], expected, rtol=1e-3)


def test_selection_files_and_draws(model_class: Any, fitted: Any, tmp_path: Path) -> None:
    quick = model_class(random_state=0, effort="fast")
    assert mj.select(quick, X, n_components=[1, 2, 3]).best.size == 2
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(mj.load(tmp_path / "model").predict_proba(X), fitted.predict_proba(X))
    wrong = copy(fitted)
    for name, said in (("zeros", "zeros_ holds numbers beyond its limits, 0 to 1"), ("rates", "never negative")):
        setattr(wrong, f"{name}_", getattr(fitted, f"{name}_") + (1.0 if name == "zeros" else -9.0))
        wrong.save(tmp_path / "model")
        with pytest.raises(ValueError, match=said):
            mj.load(tmp_path / "model")
        setattr(wrong, f"{name}_", getattr(fitted, f"{name}_"))
    np.save(tmp_path / "rows.npy", X)
    streamed = model_class(2, random_state=0, effort="fast").fit(mj.open_rows(tmp_path / "rows.npy"))
    assert streamed.log_likelihood_ == pytest.approx(fitted.log_likelihood_, rel=1e-9)
    drawn, _ = fitted.sample(20_000)
    np.testing.assert_allclose((drawn == 0).mean(axis=0), (X == 0).mean(axis=0), atol=0.05)


def test_bounds_are_refused_in_words(model_class: Any) -> None:
    with pytest.raises(TypeError, match="has no expected_log_density: leave bounds=None and beta=1"):
        model_class(2, bounds=mj.Tempered(eta=0.1)).fit(X)
