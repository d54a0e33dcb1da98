"""The Gaussian family: bounds that fall under every policy, exact floors, units that do not matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from majorant.engine import Block, Chunks, minimize
from majorant.models.gaussian_mixture import GaussianFamily, Mixture
from majorant.solvers.gaussian import COVARIANCE_TYPES, CovarianceType

from ..engine.problems import POLICIES, objective

each_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)


def data_of(seed: int, n: int = 60, d: int = 2, k: int = 3) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    random = np.random.default_rng(seed)
    x = random.normal(0, 3, (k, d))[random.integers(0, k, n)] + random.normal(size=(n, d))
    return x, random.integers(0, k, n).astype(np.int32)


def first_labels(labels: NDArray[np.int32]) -> Any:
    return lambda block: labels[block.first : block.first + len(block)]


@each_type
def test_em_never_loses(covariance_type: CovarianceType) -> None:
    for seed in range(25):
        x, labels = data_of(seed)
        family = GaussianFamily(3, 2, covariance_type, floor=0.01)
        end = minimize(family, Chunks(x), latent=first_labels(labels), max_iter=40)
        values = end.trace["objective"]
        assert np.diff(values).max(initial=0.0) <= 1e-10 * abs(values[-1])


@each_type
@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_runs_and_its_bound_falls(name: str, covariance_type: CovarianceType) -> None:
    x, labels = data_of(3)
    family = GaussianFamily(3, 2, covariance_type, floor=0.05)
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
    family = GaussianFamily(3, 3, covariance_type, floor=floor)
    data, block = Chunks(x), Block(0, (x,))
    q = np.random.default_rng(0).dirichlet([0.5] * 3, len(x))
    theta, value = family.solve(family.statistics(block, q, None), None, data)

    def expected_energy(at: Mixture) -> float:
        return float(np.sum(q * family.energies(at, block)))

    assert value == pytest.approx(expected_energy(theta), rel=1e-12)
    random = np.random.default_rng(1)
    for _ in range(300):
        assert expected_energy(feasible_step(theta, floor, random)) >= value - 1e-9 * abs(value)
    wide = covariance_type in ("full", "tied")
    variances = np.linalg.eigvalsh(theta.covariances) if wide else theta.covariances
    assert variances.min() >= floor * (1 - 1e-12)
    free = family_without_floor(family).solve(family.statistics(block, q, None), None, data)[0]
    variances = (np.linalg.eigvalsh(free.covariances) if wide else free.covariances).reshape(
        -1, 1 if covariance_type == "spherical" else 3
    )
    np.testing.assert_array_equal(family.floored(theta), np.broadcast_to(variances.min(axis=1) < floor, 3))
    assert not family_without_floor(family).floored(free).any()


def family_without_floor(family: GaussianFamily) -> GaussianFamily:
    return GaussianFamily(family.n_states, family.n_features, family.covariance_type)
