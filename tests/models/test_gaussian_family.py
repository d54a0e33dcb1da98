"""The Gaussian family: bounds that fall under every policy, exact floors, units that do not matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import majorant as mj
from majorant.data import Block, Chunks
from majorant.data.storage import stored_rows
from majorant.engine import minimize
from majorant.solvers.covariance_types import COVARIANCE_TYPES, CovarianceType
from majorant.solvers.gaussian import Mixture, moments

from ..engine.problems import POLICIES, objective
from ..gaussian import family as family_of
from ..gaussian import m_step, mixture_of, theta_of

each_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)


def data_of(seed: int, n: int = 60, d: int = 2, k: int = 3) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    random = np.random.default_rng(seed)
    x = random.normal(0, 3, (k, d))[random.integers(0, k, n)] + random.normal(size=(n, d))
    return x, random.integers(0, k, n).astype(np.int32)


def first_labels(labels: NDArray[np.int32]) -> Any:
    return lambda block: labels[block.first : block.first + len(block)]


@each_type
def test_em_never_loses(covariance_type: CovarianceType) -> None:
    for seed in range(100):
        x, labels = data_of(seed)
        family = family_of(3, 2, covariance_type, floor=0.01)
        end = minimize(family, Chunks(x), latent=first_labels(labels), max_iter=20)
        values = end.trace["objective"]
        assert np.diff(values).max(initial=0.0) <= 1e-10 * abs(values[-1])


@each_type
@pytest.mark.parametrize("single", [False, True])
def test_parameters_come_back_from_their_numbers(single: bool, covariance_type: CovarianceType) -> None:
    """But for means, which have the precision of the rows."""
    random = np.random.default_rng(4)
    x, _ = data_of(4)
    sums = moments(x, np.ones(len(x)), random.dirichlet([1.0] * 3, len(x)), np.zeros((3, 2)), covariance_type)
    kept = theta_of(m_step(sums, None, np.zeros((3, 2)), covariance_type, 0.01).mixture).density
    density: Any = family_of(3, 2, covariance_type, single=single).mixture.density
    again = density.theta_of(density.vector(kept), kept)
    np.testing.assert_array_equal(again.means, kept.means.astype(np.float32) if single else kept.means)
    np.testing.assert_allclose(again.covariances, kept.covariances, rtol=1e-12, atol=1e-14)


@each_type
@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_runs_and_its_bound_falls(name: str, covariance_type: CovarianceType) -> None:
    x, labels = data_of(3)
    family = family_of(3, 2, covariance_type, floor=0.05)
    end = minimize(family, Chunks(x, rows=25), POLICIES[name], latent=first_labels(labels), max_iter=60)
    exploring = end.trace["exploring"] == 1
    for part in (exploring, ~exploring):
        bounds = end.trace["bound"][part]
        if name == "Tightest" or part is exploring:
            assert np.diff(bounds).max(initial=0.0) <= 1e-9 * abs(bounds).max(initial=0.0)
    np.testing.assert_allclose(end.objective, objective(family, Chunks(x), end.theta), rtol=1e-12)


def feasible_step(theta: Mixture, floor: float, random: np.random.Generator) -> Mixture:
    """A mixture near another one whose covariances keep the floor."""
    size = 10.0 ** random.uniform(-4, -0.5)
    weights = theta.weights * np.exp(size * random.normal(size=theta.weights.shape))
    means = theta.means + size * random.normal(size=theta.means.shape)
    covariances = theta.covariances
    if theta.covariance_type in ("full", "tied"):
        turn = np.eye(theta.n_features) + size * random.normal(size=(theta.n_features,) * 2)
        values, vectors = np.linalg.eigh(turn @ covariances @ turn.T)
        values = np.maximum(values, floor)
        covariances = (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    else:
        covariances = np.maximum(covariances * np.exp(size * random.normal(size=covariances.shape)), floor)
    return Mixture(weights / weights.sum(), means, covariances, theta.covariance_type)


@each_type
@pytest.mark.parametrize("floor", [1e-6, 5.0, 8.0, 20.0])
def test_solve_is_the_constrained_minimum(covariance_type: CovarianceType, floor: float) -> None:
    x = data_of(5, d=3)[0]
    family = family_of(3, 3, covariance_type, floor=floor)
    data, block = Chunks(x), Block(0, (x,))
    q = np.random.default_rng(0).dirichlet([0.5] * 3, len(x))
    found, value = family.solve(family.statistics(block, q, None), None, data)
    theta = mixture_of(found, covariance_type)

    def expected_energy(at: Mixture) -> float:
        return float(np.sum(q * family.energies(theta_of(at), block)))

    assert value == pytest.approx(expected_energy(theta), rel=1e-12)
    random = np.random.default_rng(1)
    for _ in range(300):
        assert expected_energy(feasible_step(theta, floor, random)) >= value - 1e-9 * abs(value)
    wide = covariance_type in ("full", "tied")
    variances = np.linalg.eigvalsh(theta.covariances) if wide else theta.covariances
    assert variances.min() >= floor * (1 - 1e-12)
    free = family_of(3, 3, covariance_type).solve(family.statistics(block, q, None), None, data)[0].density
    variances = (np.linalg.eigvalsh(free.covariances[0]) if wide else free.covariances[0]).reshape(
        -1, 1 if covariance_type == "spherical" else 3
    )
    np.testing.assert_array_equal(found.density.floored[0], np.broadcast_to(variances.min(axis=1) < floor, 3))
    assert not free.floored.any()


# Units and precision


@each_type
@pytest.mark.parametrize("unit", [1e-8, 1e8])
def test_units_only_add_a_constant(covariance_type: CovarianceType, unit: float) -> None:
    x, labels = data_of(7, n=80)
    ends = []
    for c in (1.0, unit):
        family = family_of(3, 2, covariance_type, floor=1e-3 * c**2)
        ends.append(minimize(family, Chunks(c * x), latent=first_labels(labels), tol=-np.inf, max_iter=30))
    assert ends[1].objective - x.size * np.log(unit) == pytest.approx(ends[0].objective, rel=1e-11)
    np.testing.assert_allclose(ends[1].theta.density.means / unit, ends[0].theta.density.means, rtol=1e-8)


FAR = np.array([[1e6 + 1, 1e6 - 1], [1e6 - 1, 1e6 + 1], [1e6 + 2, 1e6], [5, 3], [4, 4], [6, 3]])
"""Two tight groups a million standard deviations apart: E[x^2] - E[x]^2 has no digits left for them."""


@each_type
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tight_groups_far_apart_keep_their_variances(covariance_type: CovarianceType, dtype: type) -> None:
    family = family_of(2, 2, covariance_type, floor=1e-9, single=dtype == np.float32)
    labels = np.array([0, 0, 0, 1, 1, 1], dtype=np.int32)
    end = minimize(family, Chunks(FAR.astype(dtype)), latent=first_labels(labels), max_iter=50)
    group = [np.cov(FAR[labels == k].T, bias=True) for k in range(2)]
    expected = {
        "full": np.array(group),
        "tied": (group[0] + group[1]) / 2,
        "diag": np.array([np.diag(c) for c in group]),
        "spherical": np.array([np.trace(c) / 2 for c in group]),
    }[covariance_type]
    rounding = 1e-9 if dtype == np.float64 else 0.02  # the mean 1000000.667 itself is 0.04 off in single precision
    np.testing.assert_allclose(end.theta.density.covariances[0], expected, rtol=rounding, atol=rounding)
    np.testing.assert_allclose(end.theta.law.weights, 0.5, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("covariance_type", ["spherical", "diag", "tied"])
def test_two_rows_end_at_the_floor(covariance_type: CovarianceType, dtype: type) -> None:
    family = family_of(2, 1, covariance_type, floor=0.1, single=dtype == np.float32)
    data = Chunks(np.array([[20000.0], [0.0]], dtype=dtype))
    end = minimize(family, data, latent=first_labels(np.array([0, 1], dtype=np.int32)))
    covariances = end.theta.density.covariances
    np.testing.assert_array_equal(covariances.ravel(), np.full(covariances.size, 0.1))
    assert end.theta.density.floored.all()


@each_type
def test_single_rows_give_nearly_the_fit_of_double_ones(covariance_type: CovarianceType) -> None:
    x, labels = data_of(3, n=2000)
    ends = []
    for dtype in (np.float64, np.float32):
        family = family_of(3, 2, covariance_type, floor=1e-3, single=dtype == np.float32)
        ends.append(minimize(family, Chunks(x.astype(dtype)), latent=first_labels(labels), tol=-np.inf, max_iter=15))
    assert ends[1].objective == pytest.approx(ends[0].objective, rel=1e-5)
    np.testing.assert_allclose(
        ends[1].theta.density.covariances, ends[0].theta.density.covariances, rtol=1e-3, atol=1e-3
    )
    means = ends[1].theta.density.means
    assert means.dtype == np.float64
    np.testing.assert_array_equal(means, means.astype(np.float32))


@each_type
def test_weights_are_repeats(covariance_type: CovarianceType) -> None:
    x, labels = data_of(4, n=50)
    times = np.random.default_rng(0).integers(0, 4, 50)
    family = family_of(3, 2, covariance_type, floor=0.01)
    weighted = minimize(family, Chunks(x, weights=times.astype(float)), latent=first_labels(labels), max_iter=20)
    repeated = np.repeat(labels, times)
    plain = minimize(family, Chunks(np.repeat(x, times, axis=0)), latent=first_labels(repeated), max_iter=20)
    assert weighted.objective == pytest.approx(plain.objective, rel=1e-12)
    np.testing.assert_allclose(weighted.theta.density.covariances, plain.theta.density.covariances, rtol=1e-8)


# Where the rows are


@each_type
@pytest.mark.parametrize("kind", ["npy", "parquet"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_streams_are_fitted_as_rows_in_memory(
    covariance_type: CovarianceType, kind: str, dtype: type, tmp_path: Path
) -> None:
    x = data_of(1, n=30_000)[0].astype(dtype)
    path = tmp_path / f"rows.{kind}"
    if kind == "npy":
        np.save(path, x)
    else:
        pl.DataFrame(x, schema=["a", "b"]).write_parquet(path, row_group_size=7000)
    weights = np.random.default_rng(0).random(len(x))
    source = stored_rows(mj.open_rows(path))
    assert source is not None
    source.weights = weights
    theta = m_step(
        moments(x, weights, np.random.default_rng(1).dirichlet([1.0] * 3, len(x)), np.zeros((3, 2)), covariance_type),
        None,
        np.zeros((3, 2)),
        covariance_type,
        0.01,
        single=dtype == np.float32,
    ).mixture

    def fit(data: Chunks) -> Any:
        family = family_of(3, 2, covariance_type, floor=0.01, single=dtype == np.float32)
        return minimize(family, data, theta=theta_of(theta), tol=-np.inf, max_iter=10)

    memory = fit(Chunks(x, weights=weights))
    streams = [fit(Chunks(source, n_jobs=n_jobs)) for n_jobs in (1, 2, 3)]
    rounding = 1e-12 if dtype == np.float64 else 1e-6
    assert streams[0].objective == pytest.approx(memory.objective, rel=rounding)
    np.testing.assert_allclose(
        streams[0].theta.density.covariances, memory.theta.density.covariances, rtol=1e4 * rounding
    )
    for other in streams[1:]:
        assert other.objective == streams[0].objective
        for name in ("weights", "means", "covariances"):
            a, b = (mixture_of(end.theta, covariance_type) for end in (other, streams[0]))
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    threads = [fit(Chunks(x, weights=weights, n_jobs=n_jobs)) for n_jobs in (2, 3)]
    assert {t.objective for t in threads} == {memory.objective}
