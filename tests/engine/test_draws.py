"""Draws by weight: the inverse of the cumulative weight, and equal steps along it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from majorant.engine.draws import drawn, thinned

masses = st.lists(st.sampled_from([0.0, 1e-300, 0.1, 1.0, 7.0, 1e12]), min_size=1, max_size=8).filter(any)


@given(masses, st.floats(0, 1))
def test_a_point_without_mass_is_never_drawn(mass: list[float], uniform: float) -> None:
    for u in (uniform, 0.0, np.nextafter(1.0, 0.0), 1.0):
        assert mass[int(drawn(np.array(mass), u))] > 0


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8).filter(any), st.integers(0, 10_000))
def test_weights_are_repeats(mass: list[int], seed: int) -> None:
    weights = np.array(mass, dtype=np.float64)
    repeated = np.repeat(np.arange(len(mass)), mass)
    uniforms = np.random.default_rng(seed).random((3, 4))
    one_by_one = repeated[drawn(np.ones(len(repeated)), uniforms)]
    assert np.array_equal(drawn(weights, uniforms), one_by_one)


def test_points_are_drawn_as_often_as_they_weigh() -> None:
    mass = np.array([0.0, 1.0, 3.0, 0.0, 4.0, 0.0])
    uniforms = (np.arange(8000) + 0.5) / 8000
    assert np.array_equal(np.bincount(drawn(mass, uniforms), minlength=6), mass * 1000)


@pytest.mark.parametrize("size", [1, 5, 100])
def test_a_thinned_sample_meets_every_point_by_its_weight(size: int) -> None:
    random = np.random.default_rng(size)
    weights = random.gamma(0.5, size=40) * (random.random(40) < 0.7)
    rows, times = thinned(weights, size, random)
    assert (np.diff(rows) > 0).all()
    assert times.sum() == size
    met = np.zeros(len(weights))
    met[rows] = times
    assert (np.abs(met - size * weights / weights.sum()) < 1).all()
    assert (weights[rows] > 0).all()
