"""Free energies, posteriors and least states against enumeration, differences and their limits, along any axes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import logsumexp

from majorant import energy

BETAS = pytest.mark.parametrize("beta", [1e-3, 0.5, 1.0, 20.0])
TEMPERATURES = pytest.mark.parametrize("beta", [1e-3, 0.5, 1.0, 20.0, np.inf])
AXES = pytest.mark.parametrize("axis", [0, 1, -1, (0, 1), (2, 0), (-1, 1), (0, 1, 2)], ids=str)


def table(*shape: int, absent: float = 0.0, seed: int = 0) -> NDArray[np.float64]:
    random = np.random.default_rng(seed)
    return np.where(random.random(shape) < absent, np.inf, random.normal(0, 2, shape))


# Against formulas that are written out


@AXES
@BETAS
def test_free_energy_and_posterior_are_their_formulas(axis: Any, beta: float) -> None:
    E = table(2, 3, 4)
    F = energy.free_energy(E, axis, beta)
    np.testing.assert_allclose(F, -logsumexp(-beta * E, axis=axis) / beta, rtol=1e-12)
    P = energy.posterior(E, axis, beta)
    np.testing.assert_allclose(P, np.exp(-beta * (E - np.expand_dims(F, axis))), rtol=1e-12)
    np.testing.assert_allclose(P.sum(axis=axis), 1, rtol=1e-14)


@AXES
def test_at_zero_temperature_the_smallest_energy_exactly(axis: Any) -> None:
    E = table(2, 3, 4)
    least = E.min(axis=axis, keepdims=True)
    np.testing.assert_array_equal(energy.free_energy(E, axis, np.inf), E.min(axis=axis))
    np.testing.assert_array_equal(energy.posterior(E, axis, np.inf), least == E)


def test_states_of_least_energy_share_equally_at_zero_temperature() -> None:
    np.testing.assert_array_equal(energy.posterior([1.0, 0.0, 0.0, np.inf], beta=np.inf), [0, 0.5, 0.5, 0])
    np.testing.assert_allclose(energy.posterior([1.0, 0.0, 0.0, np.inf], beta=1e6), [0, 0.5, 0.5, 0], atol=1e-12)


@TEMPERATURES
def test_labels_by_enumeration_of_pairs(beta: float) -> None:
    """P(y) of every sample from all its pairs, and the pair of least energy, by loops."""
    E = table(5, 2, 3, absent=0.2)
    E[0, 0, 0] = 0.0
    P, best = energy.marginal_posterior(E, 1, 2, beta), energy.map_inference(E, 1, 2)
    for i in range(5):
        pairs = {(y, z): E[i, y, z] for y in range(2) for z in range(3)}
        least = min(pairs.values())
        if np.isinf(beta):
            weights = {pair: float(e == least) for pair, e in pairs.items()}
        else:
            weights = {pair: float(np.exp(-beta * (e - least))) for pair, e in pairs.items()}
        total = sum(weights.values())
        for y in range(2):
            assert P[i, y] == pytest.approx(sum(weights[y, z] for z in range(3)) / total, rel=1e-12)
        assert (best.label[i], best.latent[i]) == min(pairs, key=lambda pair: (pairs[pair], pair))
        assert best.energy[i] == least


@BETAS
def test_labels_have_the_posterior_of_their_free_energies(beta: float) -> None:
    E = table(4, 3, 5, 2)
    F = energy.free_energy(E, (2, 3), beta)
    np.testing.assert_allclose(energy.marginal_posterior(E, 1, (2, 3), beta), energy.posterior(F, 1, beta), rtol=1e-12)


def test_labels_at_zero_temperature_are_the_limit_of_labels_as_it_falls() -> None:
    """Where pairs tie, a label's share counts its pairs: two against one."""
    E = [[0.0, 0.0, 5.0], [0.0, 3.0, 3.0]]
    np.testing.assert_allclose(energy.marginal_posterior(E, 0, 1, np.inf), [2 / 3, 1 / 3], rtol=1e-15)
    np.testing.assert_allclose(energy.marginal_posterior(E, 0, 1, 1e4), [2 / 3, 1 / 3], rtol=1e-12)


# Derivatives and bounds


def slope(f: Callable[[float], Any], step: float) -> Any:
    """The derivative at zero by differences of fourth order."""
    return (8 * (f(step) - f(-step)) - (f(2 * step) - f(-2 * step))) / (12 * step)


@AXES
@BETAS
def test_a_free_energy_has_the_posterior_as_gradient(axis: Any, beta: float) -> None:
    E = table(2, 3, 2)
    P = energy.posterior(E, axis, beta)
    for at in np.ndindex(E.shape):
        one = np.zeros(E.shape)
        one[at] = 1
        found = slope(lambda h, one=one: energy.free_energy(E + h * one, axis, beta), 1e-3 / beta)
        # only the free energy of this sample depends on this energy
        assert np.sum(found) == pytest.approx(P[at], rel=1e-7, abs=1e-10)


def chain(parameters: NDArray[np.float64], beta: float) -> float:
    """A free energy whose energies are functions of two parameters."""
    a, b = parameters
    return float(energy.free_energy([a * a, a * b + 1.0, np.sin(b)], beta=beta))


@BETAS
def test_gradients_are_responsibilities_times_component_gradients(beta: float) -> None:
    a, b = at = np.array([0.7, -1.2])
    P = energy.posterior([a * a, a * b + 1.0, np.sin(b)], beta=beta)
    components = np.array([[2 * a, 0.0], [b, a], [0.0, np.cos(b)]])
    differences = [slope(lambda h, e=e: chain(at + h * e, beta), 1e-3 / max(beta, 1)) for e in np.eye(2)]
    np.testing.assert_allclose(P @ components, differences, rtol=1e-7, atol=1e-9)


@TEMPERATURES
@given(seed=st.integers(0, 10**6), absent=st.sampled_from([0.0, 0.3]))
def test_every_distribution_bounds_the_free_energy(beta: float, seed: int, absent: float) -> None:
    random = np.random.default_rng(seed)
    E = table(3, 4, absent=absent, seed=seed)
    E[:, 0] = random.normal(size=3)
    q = random.dirichlet(np.ones(4), size=3)
    F, P = energy.free_energy(E, 1, beta), energy.posterior(E, 1, beta)
    gap = energy.bound_value(E, q, 1, beta) - F
    assert (gap >= -1e-12).all()
    tolerance = 1e-9 + (1e-12 / beta if np.isfinite(beta) else 0)
    np.testing.assert_allclose(energy.bound_value(E, P, 1, beta), F, atol=tolerance)
    if np.isfinite(beta) and not absent:
        np.testing.assert_allclose(gap, (q * np.log(q / P)).sum(axis=1) / beta, atol=tolerance, rtol=1e-7)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 6))
def test_free_energy_rises_with_beta_to_the_smallest_energy(seed: int, n: int) -> None:
    E = table(n, seed=seed)
    values = [energy.free_energy(E, beta=beta) for beta in (0.1, 1.0, 10.0, 100.0, np.inf)]
    assert all(a <= b + 1e-12 for a, b in pairwise(values))
    for beta, value in zip((0.1, 1.0, 10.0, 100.0), values, strict=False):
        assert E.min() - np.log(n) / beta - 1e-12 <= value <= E.min() + 1e-12


# Absent states, sizes, types


@TEMPERATURES
def test_absent_states_count_for_nothing(beta: float) -> None:
    E = table(4, 5)
    E[:, [1, 3]] = np.inf
    there = [0, 2, 4]
    np.testing.assert_allclose(energy.free_energy(E, 1, beta), energy.free_energy(E[:, there], 1, beta), rtol=1e-13)
    P = energy.posterior(E, 1, beta)
    np.testing.assert_allclose(P[:, there], energy.posterior(E[:, there], 1, beta), rtol=1e-13)
    assert not P[:, [1, 3]].any()


@TEMPERATURES
def test_where_all_is_absent(beta: float) -> None:
    E = np.full((2, 2, 3), np.inf)
    E[1, 0, 2] = 4.0
    np.testing.assert_array_equal(energy.free_energy(E, (1, 2), beta), [np.inf, 4.0])
    np.testing.assert_array_equal(energy.posterior(E, 2, beta).sum(axis=2), [[0, 0], [1, 0]])
    np.testing.assert_array_equal(energy.marginal_posterior(E, 1, 2, beta), [[0, 0], [1, 0]])
    best = energy.map_inference(E, 1, 2)
    assert best.energy.tolist() == [np.inf, 4.0]
    assert best.label.tolist() == [-1, 0] and best.latent.tolist() == [-1, 2]


@pytest.mark.parametrize("size", [1e300, 1e15, 1.0, 1e-300])
@TEMPERATURES
def test_no_energy_is_too_large(beta: float, size: float) -> None:
    E = size * np.array([[1.0, 2.0, np.inf], [-1.0, 1.0, 0.5], [1.7, -1.7, 1.7]])
    F, P = energy.free_energy(E, 1, beta), energy.posterior(E, 1, beta)
    assert np.isfinite(F).all() and np.isfinite(P).all()
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-14)
    assert (E.min(axis=1) >= F).all()
    if size * beta > 1e10:
        np.testing.assert_array_equal(F, E.min(axis=1))
    if size * beta < 1e-100:
        np.testing.assert_allclose(P, np.isfinite(E) / np.isfinite(E).sum(axis=1)[:, None], rtol=1e-12)


@pytest.mark.parametrize("shift", [1e8, -1e8])
def test_a_constant_shifts_the_free_energy_and_nothing_else(shift: float) -> None:
    E = np.round(table(3, 4), 3)
    np.testing.assert_allclose(energy.free_energy(E + shift) - shift, energy.free_energy(E), atol=1e-7)
    np.testing.assert_allclose(energy.posterior(E + shift), energy.posterior(E), atol=1e-7)


def test_types() -> None:
    assert energy.free_energy(table(3, 4).astype(np.float32)).dtype == np.float32
    assert energy.posterior(table(3, 4).astype(np.float32), beta=np.float64(2.0)).dtype == np.float32
    assert energy.posterior([1, 2, 3]).dtype == np.float64
    assert energy.free_energy([True, False], beta=np.inf) == 0
    assert energy.free_energy(table(0, 3), axis=1).shape == (0,)
    assert energy.posterior(table(0, 3), axis=1).shape == (0, 3)


def test_one_sample_gives_numbers() -> None:
    best = energy.map_inference([[4.0, 2.0], [3.0, 5.0]], 0, 1)
    assert best == (2.0, 0, 1) and type(best.label) is int and type(best.energy) is float
    assert np.ndim(energy.free_energy([1.0, 2.0])) == 0


def test_several_axes_of_labels_and_of_latent_values() -> None:
    E = table(2, 3, 2, 2)
    energies, label, latent = energy.map_inference(E, 1, (3, 0))
    for j in range(2):
        part = E[:, :, j]  # axes: latent, label, latent
        assert energies[j] == part.min() == part[latent[1][j], label[j], latent[0][j]]
    energies, label, latent = energy.map_inference(E, (0, 1), (2, 3))
    assert E[(*label, *latent)] == energies == E.min()


def test_input_is_never_written_to() -> None:
    E = table(3, 4)
    E.setflags(write=False)
    for beta in (1.0, np.inf):
        energy.free_energy(E, 1, beta)
        energy.posterior(E, 0, beta)
    energy.map_inference(E, 0, 1)
    np.testing.assert_array_equal(E, table(3, 4))


# Wrong input


@pytest.mark.parametrize(
    ("energies", "got"),
    [
        ([[1.0, np.nan]], r"entry \(0, 1\) is NaN"),
        ([[1.0, -np.inf]], r"entry \(0, 1\) is -inf"),
        (["a", "b"], "<U1"),
        ([1j], "complex"),
        (np.empty((3, 0)), r"no states.*\(3, 0\)"),
        (1.0, "not an axis of energies"),
    ],
    ids=str,
)
def test_wrong_energies_are_refused(energies: Any, got: str) -> None:
    for function in (energy.free_energy, energy.posterior):
        with pytest.raises((ValueError, TypeError), match=got):
            function(energies)


@pytest.mark.parametrize(
    ("beta", "got"), [(0.0, "got 0"), (-1.0, "-1"), (np.nan, "nan"), ("hot", "hot"), (1e-320, "so small")]
)
def test_wrong_temperatures_are_refused(beta: Any, got: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"beta.*{got}"):
        energy.free_energy([1.0, 2.0], beta=beta)


@pytest.mark.parametrize(("axis", "got"), [(2, "axis=2"), ((0, -2), "different"), ((), "one axis"), (0.5, "axis")])
def test_wrong_axes_are_refused(axis: Any, got: str) -> None:
    with pytest.raises((ValueError, TypeError), match=got):
        energy.free_energy(table(2, 3), axis)
    with pytest.raises(ValueError, match="not both"):
        energy.map_inference(table(2, 3), 0, (0, 1))
