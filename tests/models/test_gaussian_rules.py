"""Which solutions of a Gaussian mixture count: on rounded data, on groups far apart, from given parameters.

Right values are computed here, apart from the package.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

import majorant as mj

Array = NDArray[np.float64]


def em_in_one_column(x: Array, means: Array, steps: int = 3000) -> float:
    """The log-likelihood that plain EM reaches from hard groups about some means."""
    q = (np.abs(x[:, None] - means).argmin(axis=1)[:, None] == np.arange(len(means))).astype(float)
    for _ in range(steps):
        n = q.sum(axis=0)
        m = q.T @ x / n
        v = np.einsum("ik,ik->k", q, (x[:, None] - m) ** 2) / n
        joint = np.log(n / len(x)) + norm.logpdf(x[:, None], m, np.sqrt(v))
        total = np.logaddexp.reduce(joint, axis=1)
        q = np.exp(joint - total[:, None])
    return float(total.sum())


# Rounded data: rows are rows


def three_groups() -> Array:
    draws = np.random.default_rng(40)
    return np.concatenate([draws.normal(10, 1, 6000), draws.normal(20, 1, 3900), draws.normal(30, 1, 100)])


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_equal_rows_are_as_many_rows_as_they_are(covariance_type: Any) -> None:
    x = np.round(2 * three_groups()) / 2
    assert len(np.unique(x)) < 50
    fitted = mj.GaussianMixture(3, covariance_type=covariance_type, random_state=0).fit(x[:, None])
    assert fitted.regular_, fitted.degeneracy_
    np.testing.assert_allclose(np.sort(fitted.weights_), [0.01, 0.39, 0.6], atol=1e-6)
    if covariance_type == "full":
        best = em_in_one_column(x, np.array([10.0, 20.0, 30.0]), 200)
        assert fitted.log_likelihood_ == pytest.approx(best, rel=1e-9)


def test_selection_sees_the_small_group_of_rounded_rows() -> None:
    x = (np.round(2 * three_groups()) / 2)[:, None]
    found = mj.select(mj.GaussianMixture(random_state=0), x, n_components=[1, 2, 3])
    assert found.best.size == 3


@pytest.mark.parametrize("factor", [1.0, 1e-6, 0.37, 1e6])
def test_fractional_weights_count_average_rows(factor: float) -> None:
    """Ten rows of a group of their own count, whatever the scale of the weights; two do not."""
    draws = np.random.default_rng(0)
    weights = draws.uniform(0.5, 1.5, 110) * factor
    for n, regular in ((10, True), (2, False)):
        x = np.concatenate([draws.normal(0, 1, 110 - n), draws.normal(50, 1, n)])[:, None]
        start = {"means_init": [[0.0], [50.0]], "random_state": 0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = mj.GaussianMixture(2, **start).fit(x, sample_weight=weights)
        assert fitted.regular_ == regular


def test_scales_of_one_to_five_keep_the_best_solution() -> None:
    """Answers of two groups on two scales of five levels each: few distinct rows, hundreds of rows."""
    draws = np.random.default_rng(3)
    z = draws.integers(0, 2, 400)
    x = np.clip(np.round(draws.normal(2.0 + 2.0 * z[:, None], 0.8, (400, 2))), 1, 5)
    counts = np.unique(x, axis=0, return_counts=True)
    repeated = mj.GaussianMixture(2, random_state=0).fit(x)
    weighted = mj.GaussianMixture(2, random_state=0).fit(counts[0], sample_weight=counts[1])
    assert repeated.regular_ and weighted.regular_
    assert weighted.log_likelihood_ == pytest.approx(repeated.log_likelihood_, rel=1e-12)


# Groups far apart: no rule is relative to the total variance


def far_apart(seed: int = 0, reach: float = 300.0) -> Array:
    draws = np.random.default_rng(seed)
    return np.concatenate([draws.normal(0, 1, 100), draws.normal(6, 1, 100), draws.normal(reach, 1, 50)])[:, None]


WAYS: dict[str, dict[str, Any]] = {
    "search": {},
    "means": {"means_init": [[0.0], [6.0], [300.0]]},
    "k-means": {"init_params": "kmeans"},
    "k-means++": {"init_params": "k-means++", "n_init": 5},
    "rows": {"init_params": "random_from_data", "n_init": 20},
    "bounds": {"bounds": mj.Tempered(eta=0.1), "max_iter": 1000},
    "steps": {"max_iter": 1000},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
def test_a_far_group_changes_no_verdict(way: str, covariance_type: Any) -> None:
    x = far_apart()
    fitted = mj.GaussianMixture(3, covariance_type=covariance_type, random_state=0, **WAYS[way]).fit(x)
    assert fitted.regular_, fitted.degeneracy_
    best = em_in_one_column(x[:, 0], np.array([0.0, 6.0, 300.0]))
    assert best == pytest.approx(-619.625, abs=1e-3)
    assert fitted.log_likelihood_ == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_a_warm_start_ends_where_the_fit_before_did(covariance_type: Any) -> None:
    x = far_apart()
    model = mj.GaussianMixture(3, covariance_type=covariance_type, random_state=0, warm_start=True).fit(x)
    before = model.log_likelihood_
    assert model.fit(x).regular_
    assert model.log_likelihood_ == pytest.approx(before, abs=1e-6)
    assert [record.source for record in model.search_.starts] == ["warm start"]


@pytest.mark.parametrize("draw", range(20))
def test_every_draw_of_groups_far_apart_is_fitted(draw: int) -> None:
    x = far_apart(draw)
    fitted = mj.GaussianMixture(3, random_state=0).fit(x)
    best = em_in_one_column(x[:, 0], np.array([0.0, 6.0, 300.0]), 600)
    assert fitted.regular_ and fitted.log_likelihood_ >= best - 1e-4


@pytest.mark.parametrize(("reach", "missing"), [(1e3, False), (1e6, False), (1e3, True), (1e4, True)])
def test_the_distance_of_a_group_changes_nothing_else(reach: float, missing: bool) -> None:
    """The two near groups are told as they are without the far one."""
    x = np.column_stack([far_apart(reach=reach), np.random.default_rng(1).normal(size=250)])
    if missing:
        x[::9, 1] = np.nan
    near = mj.GaussianMixture(2, random_state=0).fit(x[:200])
    fitted = mj.GaussianMixture(3, random_state=0).fit(x)
    assert fitted.regular_
    order = np.argsort(fitted.means_[:, 0])[:2]
    np.testing.assert_allclose(fitted.means_[order], near.means_[np.argsort(near.means_[:, 0])], atol=0.01)
    expected = near.covariances_[np.argsort(near.means_[:, 0])]
    np.testing.assert_allclose(fitted.covariances_[order], expected, rtol=0.02, atol=0.01)


def test_a_collapse_beside_a_far_group_is_still_one() -> None:
    """Three equal rows among others have a variance of zero, however far the third group is."""
    x = np.concatenate([far_apart()[:, 0], [2.0, 2.0, 2.0, 2.0]])[:, None]
    with pytest.warns(ConvergenceWarning, match="No regular solution"):
        fitted = mj.GaussianMixture(
            4, means_init=[[0.0], [6.0], [300.0], [2.0]], precisions_init=np.r_[1, 1, 1, 1e8].reshape(4, 1, 1)
        ).fit(x)
    assert not fitted.regular_ and "collapses" in fitted.degeneracy_
