"""Certificates of Gaussian mixtures: which covariances the bound speaks of, and sentences that stay true."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture as Peer

import majorant as mj
from majorant.models.gaussian_mixture.certify import certificate, common_part
from majorant.solvers.covariance_types import COVARIANCE_TYPES, CovarianceType
from majorant.solvers.gaussian import Mixture

Array = NDArray[Any]


def fitted(x: Array, k: int, covariance_type: CovarianceType = "full", seed: int = 0) -> Mixture:
    peer = Peer(k, covariance_type=covariance_type, n_init=3, random_state=seed, max_iter=500).fit(x)
    return Mixture(peer.weights_, peer.means_, peer.covariances_, covariance_type)


@pytest.fixture(scope="module")
def petals() -> Array:
    return np.asarray(load_iris().data[:, 2:])


def log_likelihood(x: Array, mixture: Mixture) -> float:
    return float(np.logaddexp.reduce(mixture.log_densities(x) + np.log(mixture.weights), axis=1).sum())


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_no_mixture_of_any_size_is_better(petals: Array, covariance_type: CovarianceType) -> None:
    mixture = fitted(petals, 2, covariance_type)
    made = certificate(petals, None, mixture)
    assert made.objective == pytest.approx(log_likelihood(petals, mixture), rel=1e-12)
    assert made.bound > made.objective
    assert made.attained is not None
    assert made.bound - made.attained <= 0.02 * made.difference
    least = 0.5 * common_part(mixture.covariance.matrices(mixture.covariances, *mixture.means.shape))
    root = np.linalg.cholesky(least)
    y = np.linalg.solve(root, petals.T).T
    for k in range(1, 9):
        other = fitted(y, k, "full", seed=k)
        values, axes = np.linalg.eigh(other.covariances)
        floored = (axes * np.maximum(values, 1.0)[:, None]) @ np.swapaxes(axes, 1, 2)
        inside = Mixture(other.weights, other.means, floored, "full").mapped(root.T)
        assert log_likelihood(petals, inside) <= made.bound
    assert made.sentence.startswith(
        "No Gaussian mixture of any size with covariances at least half of the fitted ones on these data has a "
        "log-likelihood above "
    )
    assert made.sentence.endswith(" log units of the best possible.")


def test_larger_floors_give_closer_bounds(petals: Array) -> None:
    mixture = fitted(petals, 1)
    covariance = mixture.covariances[0]
    bounds = [certificate(petals, None, mixture, share * covariance).bound for share in (0.2, 0.5, 0.9, 1.0)]
    assert (np.diff(bounds) < 0).all()


def test_the_floor_in_all_its_forms(petals: Array) -> None:
    mixture = fitted(petals, 2, "diag")
    share = np.cov(petals.T, bias=True)
    by_number = certificate(petals, None, mixture, 0.005)
    by_matrix = certificate(petals, None, mixture, 0.005 * share)
    assert by_number.bound == pytest.approx(by_matrix.bound, abs=0.1)
    assert "at least 0.005 times that of the data" in by_number.sentence
    assert "at least the given one" in by_matrix.sentence
    variances = np.array([0.005, 0.005])
    by_variances = certificate(petals, None, mixture, variances)
    assert by_variances.bound == certificate(petals, None, mixture, np.diag(variances)).bound
    assert "at least the given variances" in by_variances.sentence


def test_weights_are_repeats(petals: Array) -> None:
    mixture, counts = fitted(petals, 2), np.arange(len(petals)) % 3
    one = certificate(petals, counts.astype(float), mixture)
    other = certificate(np.repeat(petals, counts, axis=0), None, mixture)
    assert one.bound == pytest.approx(other.bound, abs=1e-6)
    assert one.objective == pytest.approx(other.objective, rel=1e-12)


def test_components_without_weight_do_not_count(petals: Array) -> None:
    mixture = fitted(petals, 2)
    more = Mixture(
        np.append(mixture.weights, 0.0),
        np.concatenate((mixture.means, mixture.means[:1])),
        np.concatenate((mixture.covariances, 1e-12 * mixture.covariances[:1])),
        "full",
    )
    assert certificate(petals, None, more) == certificate(petals, None, mixture)


@settings(max_examples=60)
@given(d=st.integers(1, 5), k=st.integers(1, 5), seed=st.integers(0, 10_000))
def test_the_common_part_is_below_all_and_moves_with_coordinates(d: int, k: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    roots = random.normal(size=(k, d, d)) + 0.5 * np.eye(d)
    covariances = roots @ np.swapaxes(roots, 1, 2) + 1e-3 * np.eye(d)
    common = common_part(covariances)
    size = np.abs(covariances).max()
    assert np.linalg.eigvalsh(common)[0] > 0
    assert np.linalg.eigvalsh(covariances - common).min() >= -1e-9 * size
    a = random.normal(size=(d, d)) + 2 * np.eye(d)
    moved = common_part(a @ covariances @ a.T)
    assert np.allclose(moved, a @ common @ a.T, rtol=1e-6, atol=1e-6 * np.abs(moved).max())
    if k == 2:  # none is larger: it touches both along directions that together span everything
        touched = sum(np.sum(np.linalg.eigvalsh(c - common) <= 1e-7 * size) for c in covariances)
        assert touched >= d


@pytest.mark.parametrize(
    ("floor", "message"),
    [
        ("smallest", "'fitted', a number or an array"),
        (object(), "'fitted', a number or an array"),
        (np.ones(3), r"\(2,\) variances"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), "not symmetric"),
        (0.0, "positive definite"),
        (-1.0, "positive definite"),
        (np.zeros((2, 2)), "positive definite"),
        (np.array([np.nan, 1.0]), "positive definite"),
        (1.0, "times as much is not"),
        (np.array([1e3, 1e3]), "times as much is not"),
    ],
)
def test_mistakes_are_named(petals: Array, floor: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        certificate(petals, None, fitted(petals, 2), floor)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_of_an_estimator(petals: Array, dtype: Any) -> None:
    x = petals.astype(dtype)
    model = mj.GaussianMixture(2, random_state=0).fit(x)
    made = model.certify(x)
    assert made.objective == pytest.approx(model.score(x) * len(x), rel=1e-5)
    assert made.bound > made.objective
    assert model.certify(x, effort="fast").bound >= made.attained
    assert model.certify(x, covariance_at_least=0.005).bound > made.objective
    weights = np.arange(len(x)) % 2
    assert model.certify(x, sample_weight=weights).bound == model.certify(x[weights == 1]).bound


def test_what_an_estimator_refuses(petals: Array) -> None:
    model = mj.GaussianMixture(2, random_state=0).fit(petals)
    with pytest.raises(ValueError, match="effort"):
        model.certify(petals, effort="great")
    with pytest.raises(TypeError, match="in memory"):
        model.certify(mj.Chunks(petals))
    with pytest.raises(ValueError, match="features"):
        model.certify(petals[:, :1])
    with pytest.raises(NotFittedError):
        mj.GaussianMixture(2).certify(petals)


@pytest.mark.parametrize("factor", [1e5, 1e-5])
def test_the_bound_does_not_depend_on_the_unit_of_a_column(factor: float) -> None:
    draws = np.random.default_rng(0)
    x = draws.normal(size=(120, 2)) + np.where(np.arange(120) < 60, 0.0, 4.0)[:, None]
    scaled = x * [factor, 1.0]
    own = mj.GaussianMixture(2, random_state=0).fit(x).certify(x, effort="fast")
    other = mj.GaussianMixture(2, random_state=0).fit(scaled).certify(scaled, effort="fast")
    assert other.bound == pytest.approx(own.bound - 120 * np.log(factor), abs=1e-3)
    assert other.difference == pytest.approx(own.difference, abs=1e-3)
