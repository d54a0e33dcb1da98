"""GaussianMixture on tables with missing entries: fits, what it says of rows, and what it refuses."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal, norm
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from majorant import GaussianMixture, GibbsLimit, open_rows
from majorant.models.gaussian_mixture import search
from majorant.solvers.covariance_types import COVARIANCE_TYPES, CovarianceType

NAN = np.nan
each_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)

TWELVE = np.column_stack(
    [
        [7.76, 9.31, 14.1, 10.34, 16.34, 10.29, 10.3, 12.23, 10.71, 10.57, 10.05, 9.13],
        [19.51, NAN, 25.25, 18.56, NAN, 16.58, 21.7, 22.84, NAN, 19.72, 20.05, NAN],
    ]
)


def iris(seed: int, share: float = 0.2) -> NDArray[np.float64]:
    x = load_iris().data.copy()
    x[np.random.default_rng(seed).random(x.shape) < share] = NAN
    return x


def two_groups(n: int = 90, d: int = 3, seed: int = 0, share: float = 0.2) -> tuple[NDArray[Any], NDArray[Any]]:
    """Far apart, so that there is one answer."""
    random = np.random.default_rng(seed)
    z = random.integers(0, 2, n)
    full = 8.0 * z[:, None] + random.normal(size=(n, d))
    x = full.copy()
    x[random.random(x.shape) < share] = NAN
    return x, full


def fitted(x: NDArray[Any], covariance_type: CovarianceType = "full") -> GaussianMixture:
    return GaussianMixture(2, covariance_type=covariance_type, random_state=0).fit(x)


@cache
def of_two_groups(covariance_type: CovarianceType = "full") -> GaussianMixture:
    """The fit to `two_groups()`, which many tests compare with."""
    return fitted(two_groups()[0], covariance_type)


@cache
def of_iris(covariance_type: CovarianceType) -> tuple[NDArray[np.float64], GaussianMixture]:
    """Rows of iris with gaps, the eighth without any entry, and the fit to them."""
    x = iris(5)
    x[7] = NAN
    return x, fitted(x, covariance_type)


def test_the_case_of_twelve_rows() -> None:
    model = GaussianMixture(1).fit(TWELVE)
    np.testing.assert_allclose(model.means_, [[10.9275, 20.762207883]], rtol=1e-9)
    np.testing.assert_allclose(
        model.covariances_[0], [[4.918935417, 5.216456579], [5.216456579, 8.535814399]], rtol=1e-8
    )
    assert model.log_likelihood_ == pytest.approx(-42.336890818, rel=1e-10)
    assert model.score(TWELVE) * 12 == pytest.approx(-42.336890818, rel=1e-9)
    assert "4 of 24 entries (16.7%) are missing" in model.search_.note


@each_type
def test_a_fit_is_a_function_of_the_rows_alone(covariance_type: CovarianceType) -> None:
    x = iris(0)[::2, :3]
    times = np.random.default_rng(1).integers(0, 3, len(x))
    order = np.random.default_rng(2).permutation(times.sum())
    repeated = np.vstack([np.repeat(x, times, axis=0)[order], np.full((7, 3), NAN)])
    a = GaussianMixture(2, covariance_type=covariance_type, random_state=0).fit(x, sample_weight=times)
    b = GaussianMixture(2, covariance_type=covariance_type, random_state=0, n_jobs=2).fit(repeated)
    for name in ("weights_", "means_", "covariances_", "log_likelihood_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert np.diff(a.trace_["objective"]).max(initial=0.0) <= 1e-9 * abs(a.log_likelihood_)


def test_every_seed_finds_the_same_maximum() -> None:
    found = [GaussianMixture(3, random_state=seed).fit(iris(3)).log_likelihood_ for seed in range(2)]
    np.testing.assert_allclose(found, -169.6553, atol=1e-3)


@pytest.mark.parametrize("unit", [1e-8, 1e8])
def test_units_do_not_matter(unit: float) -> None:
    x, _ = two_groups()
    plain, scaled = of_two_groups(), fitted((x + 3.0) * unit)
    n_there = (~np.isnan(x)).sum()
    assert scaled.log_likelihood_ == pytest.approx(plain.log_likelihood_ - n_there * np.log(unit), rel=1e-7)
    np.testing.assert_allclose(scaled.means_ / unit - 3.0, plain.means_, rtol=1e-5)
    np.testing.assert_array_equal(scaled.predict((x + 3.0) * unit), plain.predict(x))


@each_type
def test_rows_are_judged_by_their_observed_entries(covariance_type: CovarianceType) -> None:
    x, model = of_iris(covariance_type)
    densities = np.zeros((len(x), 2))
    for k in range(2):
        c = model.covariances_ if covariance_type == "tied" else model.covariances_[k]
        c = c if np.ndim(c) == 2 else np.diag(np.broadcast_to(c, 4))
        for i, row in enumerate(x):
            o = ~np.isnan(row)
            densities[i, k] = model.weights_[k]
            if o.any():
                densities[i, k] *= multivariate_normal.pdf(row[o], model.means_[k, o], c[np.ix_(o, o)])
    np.testing.assert_allclose(model.score_samples(x), np.log(densities.sum(axis=1)), rtol=1e-8, atol=1e-10)
    shares = densities / densities.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(x), shares, rtol=1e-7, atol=1e-12)
    np.testing.assert_array_equal(model.predict(x), shares.argmax(axis=1))
    assert model.score_samples(x[7:8]) == pytest.approx(0.0, abs=1e-12)
    assert model.score(x) * len(x) == pytest.approx(model.log_likelihood_, rel=1e-6)
    assert np.isfinite([model.aic(x), model.bic(x), model.icl(x)]).all()


@each_type
def test_complete_rows_get_the_same_numbers_as_beside_no_others(covariance_type: CovarianceType) -> None:
    x, model = of_iris(covariance_type)
    complete = ~np.isnan(x).any(axis=1)
    assert 20 < complete.sum() < len(x)
    np.testing.assert_array_equal(model.score_samples(x)[complete], model.score_samples(x[complete]))
    np.testing.assert_array_equal(model.predict_proba(x)[complete], model.predict_proba(x[complete]))
    np.testing.assert_array_equal(model.impute(x)[complete], x[complete])


@each_type
def test_imputed_entries_are_nearer_than_column_means(covariance_type: CovarianceType) -> None:
    x, full = two_groups()
    x[0] = NAN
    model = fitted(x, covariance_type)
    filled, missing = model.impute(x), np.isnan(x)
    np.testing.assert_array_equal(filled[~missing], x[~missing])
    np.testing.assert_allclose(filled[0], model.weights_ @ model.means_, rtol=1e-9)
    missing[0] = False
    column_means = np.broadcast_to(np.nanmean(x, axis=0), x.shape)
    assert np.std((filled - full)[missing]) < 0.5 * np.std((column_means - full)[missing])


def test_a_column_without_entries_is_refused_by_name() -> None:
    frame = pd.DataFrame({"length": [1.0, 2.0, 4.0], "width": [NAN, NAN, NAN]})
    with pytest.raises(ValueError, match=r"column 1 \('width'\) of X has no entry in any row with weight: drop it"):
        GaussianMixture(1).fit(frame)
    frame["width"] = [NAN, NAN, 3.0]
    with pytest.raises(ValueError, match="width"):
        GaussianMixture(1).fit(frame, sample_weight=[1.0, 1.0, 0.0])
    with pytest.raises(ValueError, match="column 0 and column 1 of X have no entry"):
        GaussianMixture(1).fit(np.full((5, 2), NAN))


def test_infinity_is_refused() -> None:
    x = iris(0)
    x[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        GaussianMixture(2).fit(x)


def test_many_patterns_are_searched_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    x, _ = two_groups()
    usual = of_two_groups()
    monkeypatch.setattr(search, "MOST_PATTERNS", 2)
    quick = fitted(x)
    assert "filled them in" in quick.search_.note and "filled them in" not in usual.search_.note
    assert quick.log_likelihood_ == pytest.approx(usual.log_likelihood_, rel=1e-4)
    assert quick.score(x) * len(x) == pytest.approx(quick.log_likelihood_, rel=1e-9)


def test_a_stream_is_the_rows_in_memory(tmp_path: Path) -> None:
    x, _ = two_groups(600)
    np.save(tmp_path / "x.npy", x)
    stream = GaussianMixture(2, random_state=0, tol=1e-4).fit(open_rows(tmp_path / "x.npy"))
    memory = GaussianMixture(2, random_state=0, tol=1e-4).fit(x)
    assert stream.log_likelihood_ == pytest.approx(memory.log_likelihood_, rel=1e-8)
    np.testing.assert_allclose(stream.impute(open_rows(tmp_path / "x.npy")), memory.impute(x), atol=1e-4)


@each_type
def test_single_precision(covariance_type: CovarianceType) -> None:
    x, _ = two_groups()
    double, single = of_two_groups(covariance_type), fitted(x.astype(np.float32), covariance_type)
    assert single.means_.dtype == single.impute(x.astype(np.float32)).dtype == np.float32
    assert single.log_likelihood_ == pytest.approx(double.log_likelihood_, rel=1e-4)
    np.testing.assert_array_equal(single.predict(x.astype(np.float32)), double.predict(x))


@pytest.mark.parametrize(
    "options",
    [
        {"bounds": GibbsLimit(eta=0.1)},
        {"beta": 0.7},
        {"beta": np.inf},
        {"init_params": "kmeans"},
        {"init_params": "random_from_data", "n_init": 2},
        {"means_init": [[0.0] * 3, [8.0] * 3]},
        {"reg_covar": 1e-3},
        {"covariance_floor": 1e-3},
    ],
    ids=str,
)
def test_every_way_to_fit_takes_missing_entries(options: dict[str, Any]) -> None:
    x, _ = two_groups()
    model = GaussianMixture(2, random_state=0, **options).fit(x)
    np.testing.assert_allclose(np.sort(model.means_[:, 0]), [0.0, 8.0], atol=0.5)
    if "beta" not in options:
        assert model.score(x) * len(x) == pytest.approx(model.log_likelihood_, rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_constant_and_dependent_columns(dtype: Any) -> None:
    x, full = two_groups(120, 2)
    wide = np.column_stack([full, full[:, 0] + full[:, 1], np.full(120, 7.0)])
    wide[:, :2] = x
    wide[::5, 2], wide[1::7, 3] = NAN, NAN
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = GaussianMixture(2, random_state=0).fit(wide.astype(dtype))
    assert {w.category for w in said} == {ConvergenceWarning}
    assert len(said) == 2 and model.converged_ and model.rank_ == 2
    filled = model.impute(wide.astype(dtype))
    np.testing.assert_allclose(filled[:, 3], 7.0, rtol=1e-6)
    both = ~np.isnan(wide[:, :2]).any(axis=1) & np.isnan(wide[:, 2])
    assert both.sum() > 5
    np.testing.assert_allclose(filled[both, 2], (full[:, 0] + full[:, 1])[both], atol=1e-3)
    assert np.isfinite(model.score_samples(wide.astype(dtype))).all()


def apart(shape: str, reach: float, share: float) -> list[NDArray[Any]]:
    """Three groups of rows, two of which are near each other on a line, of which a share of the entries is missing."""
    draws = np.random.default_rng(12)
    centres = {"line": [(0, 0), (4, 2), (reach, -reach)], "triangle": [(0, 0), (reach, 2 * reach), (3 * reach, -reach)]}
    groups = [draws.normal(centre, 1, (n, 2)) for centre, n in zip(centres[shape], (80, 80, 40), strict=True)]
    for x in groups:
        x[draws.random(x.shape) < share] = NAN
    return [x[~np.isnan(x).all(axis=1)] for x in groups]


@pytest.mark.parametrize("share", [0.05, 0.2, 0.35])
@pytest.mark.parametrize(
    ("shape", "reach", "k"), [("line", 1e5, 1), ("line", 1e5, 2), ("triangle", 1e2, 3), ("triangle", 1e4, 3)]
)
def test_far_groups_have_the_likelihood_of_groups_fitted_apart(shape: str, reach: float, k: int, share: float) -> None:
    groups = apart(shape, reach, share)
    x = np.concatenate(groups)
    parts = {1: [x], 2: [np.concatenate(groups[:2]), groups[2]], 3: groups}[k]
    expected = sum(normal_with_gaps(part) + len(part) * np.log(len(part) / len(x)) for part in parts)
    model = GaussianMixture(k, random_state=0).fit(x)
    assert model.regular_ and model.converged_ and model.rank_ == 2
    assert model.log_likelihood_ == pytest.approx(expected, abs=1e-3)


def normal_with_gaps(x: NDArray[Any]) -> float:
    """The greatest log-likelihood of one normal distribution of two columns, by EM in the columns' own units."""
    centre, unit = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
    z = (x - centre) / unit
    mean, covariance, there = np.zeros(2), np.eye(2), ~np.isnan(z)
    for _ in range(300):
        filled, spread = np.where(there, z, 0.0), np.zeros((2, 2))
        for j in (0, 1):
            gone, slope = ~there[:, j], covariance[0, 1] / covariance[1 - j, 1 - j]
            filled[gone, j] = mean[j] + slope * (z[gone, 1 - j] - mean[1 - j])
            spread[j, j] = gone.sum() * (covariance[j, j] - slope * covariance[0, 1])
        mean = filled.mean(axis=0)
        covariance = ((filled - mean).T @ (filled - mean) + spread) / len(z)
    alone = [there[:, j] & ~there[:, 1 - j] for j in (0, 1)]
    out = multivariate_normal(mean, covariance).logpdf(z[there.all(axis=1)]).sum()
    out += sum(norm(mean[j], np.sqrt(covariance[j, j])).logpdf(z[alone[j], j]).sum() for j in (0, 1))
    return float(out - there.sum(axis=0) @ np.log(unit))


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
@pytest.mark.parametrize("shape", ["line", "triangle"])
def test_how_far_groups_lie_apart_changes_nothing(shape: str, covariance_type: CovarianceType) -> None:
    near, *far = (np.concatenate(apart(shape, reach, 0.35)) for reach in (30.0, 1e3, 1e4))
    expected = GaussianMixture(3, covariance_type=covariance_type, random_state=0).fit(near).log_likelihood_
    for x in far:
        model = GaussianMixture(3, covariance_type=covariance_type, random_state=0).fit(x)
        assert model.regular_
        assert model.log_likelihood_ == pytest.approx(expected, abs=1e-2)


def test_columns_that_nearly_depend_are_fitted() -> None:
    """The likelihood is that of the small difference, where only the second column has gaps."""
    draws = np.random.default_rng(1)
    a, noise = draws.normal(size=160) + 8.0 * (np.arange(160) < 80), draws.normal(size=160)
    noise[::7] = NAN
    found = GaussianMixture(2, random_state=0).fit(np.column_stack([a, a + 1e-4 * noise]))
    expected = GaussianMixture(2, random_state=0).fit(np.column_stack([a, noise])).log_likelihood_
    assert found.rank_ == 2 and found.regular_
    assert found.log_likelihood_ == pytest.approx(expected + np.log(1e4) * (~np.isnan(noise)).sum(), abs=1e-2)


def test_missing_entries_are_declared() -> None:
    assert GaussianMixture().__sklearn_tags__().input_tags.allow_nan


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@each_type
@pytest.mark.parametrize("n_kept", [1, 2, 3])
def test_weight_on_few_complete_rows_gives_numbers(covariance_type: CovarianceType, n_kept: int) -> None:
    """They lie in a plane, beside rows without weight that have missing entries."""
    X = iris(0)
    whole = np.flatnonzero(~np.isnan(X).any(axis=1))[:n_kept]
    weights = np.zeros(len(X))
    weights[whole] = 1.0
    model = GaussianMixture(2, covariance_type=covariance_type, random_state=0).fit(X, sample_weight=weights)
    assert np.isfinite(model.log_likelihood_)
    assert np.isfinite(model.predict_proba(X)).all()
