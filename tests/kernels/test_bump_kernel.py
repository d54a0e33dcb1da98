"""The highest place of a sum of Gaussian bumps by branch and bound: an enclosure at any time, and tight at the end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from majorant import _kernels
from tests.kernels.instruction_sets import answers_under

Array = NDArray[Any]


def bump_sum(x: Array, heights: Array, centres: Array) -> Array:
    """g at each centre."""
    squares = ((centres[:, None] - x) ** 2).sum(axis=2)
    return np.asarray(np.exp(-0.5 * squares) @ heights)


def problem(seed: int, d: int, n: int = 40) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    x = np.round(random.normal(size=(n, d)) * random.uniform(0.2, 3.0, d), int(random.integers(0, 8)))
    x[: n // 3, 0] += random.choice([0.0, 3.0, 30.0])
    return x, random.uniform(0.0, 1.0, n) ** random.choice([1, 4])


def finish(search: Any, tests: int = 10_000_000, most: int = 3_000_000_000) -> bool:
    done = False
    while not done and search.tests < most:
        done = search.advance(tests)
    return done


def highest(x: Array, heights: Array) -> float:
    """The largest of the local maxima that mean shift reaches from every point: a lower bound, nearly always exact."""
    at, values = x.copy(), np.empty(len(x))
    _kernels.bump_climb(x, heights, at, values, 500, 0.0)
    return float(max(values.max(), bump_sum(x, heights, at).max()))


@pytest.mark.parametrize("seed", range(40))
def test_against_a_dense_grid_on_a_line(seed: int) -> None:
    x, heights = problem(seed, 1)
    search = _kernels.bump_search(x, heights, 1e-7 * float(heights.sum()))
    assert finish(search)
    grid = np.linspace(x.min(), x.max(), 20_001)
    values = bump_sum(x, heights, grid[:, None])
    # g'' is at most the sum of the heights: a grid of step s misses at most s^2 / 8 times that.
    missed = (grid[1] - grid[0]) ** 2 / 8 * heights.sum()
    assert values.max() <= search.upper
    assert search.upper <= values.max() + missed + 1.01e-7 * heights.sum()


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(10))
def test_never_below_what_a_search_finds(seed: int, d: int) -> None:
    x, heights = problem(seed, d)
    search = _kernels.bump_search(x, heights, 1e-4 * float(heights.max()))
    assert finish(search)
    random = np.random.default_rng(seed)
    low, high = x.min(axis=0), x.max(axis=0)
    places = np.concatenate((low + (high - low) * random.random((20_000, d)), x))
    found = max(highest(x, heights), float(bump_sum(x, heights, places).max()))
    assert found <= search.upper
    assert search.upper <= search.lower + 1e-4 * heights.max()
    assert search.upper <= found + 1.01e-4 * heights.max()  # nothing known is worse than the enclosure
    centre = np.empty(d)
    search.write_centre(centre)
    assert bump_sum(x, heights, centre[None])[0] == pytest.approx(search.lower, rel=1e-12)


@settings(max_examples=60)
@given(
    d=st.integers(1, 6),
    n=st.integers(1, 30),
    seed=st.integers(0, 10_000),
    spread=st.sampled_from([0.0, 0.01, 1.0, 5.0, 300.0]),
    tolerance=st.sampled_from([0.0, 1e-9, 1e-3, 0.3]),
    tests=st.sampled_from([1, 3_000, 300_000]),
)
def test_an_enclosure_at_any_time(d: int, n: int, seed: int, spread: float, tolerance: float, tests: int) -> None:
    random = np.random.default_rng(seed)
    x, heights = random.normal(size=(n, d)) * spread, 10.0 ** random.uniform(-8, 3, n)
    search = _kernels.bump_search(x, heights, tolerance)
    search.advance(tests)
    places = np.concatenate((x, random.normal(size=(2000, d)) * spread, np.zeros((1, d))))
    known = max(float(bump_sum(x, heights, places).max()), highest(x, heights))
    assert known <= search.upper * (1 + 1e-14)
    assert search.lower <= search.upper


def test_upper_bound_falls_and_lower_bound_rises() -> None:
    x, heights = problem(3, 4, n=200)
    search = _kernels.bump_search(x, heights, 1e-4)
    uppers, lowers = [search.upper], [search.lower]
    while not search.advance(1_000_000) and search.tests < 60_000_000:
        uppers.append(search.upper)
        lowers.append(search.lower)
    assert len(uppers) > 5
    assert (np.diff(uppers) <= 0).all()
    assert (np.diff(lowers) >= 0).all()


def test_stopped_at_once_the_bound_is_the_sum() -> None:
    x, heights = problem(0, 2)
    search = _kernels.bump_search(x, heights, 0.0)
    assert search.upper == pytest.approx(float(heights.sum()))
    assert search.upper >= heights.sum()
    assert search.lower == 0.0


def test_plateau_of_a_flat_sum() -> None:
    """Equal bumps, evenly spaced: hardly curved in between, where bounds by distances alone would never close."""
    axis = np.linspace(-6, 6, 25)
    x = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    search = _kernels.bump_search(x, np.ones(len(x)), 1e-6)
    assert finish(search)
    assert search.upper == pytest.approx(2 * np.pi / 0.25, rel=1e-6)
    assert search.boxes < 20_000


def test_few_boxes_whatever_the_tolerance() -> None:
    x, heights = problem(1, 2)
    boxes = []
    for tolerance in (1e-3, 1e-6, 1e-9):
        search = _kernels.bump_search(x, heights, tolerance)
        assert finish(search)
        boxes.append(search.boxes)
    assert boxes[2] < 40 * boxes[0]


def test_equal_points_constant_columns_and_no_heights() -> None:
    x = np.full((4, 3), 2.5)
    search = _kernels.bump_search(x, np.ones(4), 1e-12)
    assert finish(search)
    assert search.upper == pytest.approx(4.0, rel=1e-11)
    search = _kernels.bump_search(x, np.zeros(4), 1e-12)
    assert search.advance(100)
    assert (search.lower, search.upper) == (0.0, 0.0)
    x, heights = problem(0, 1)
    wider = np.column_stack((x, np.full(len(x), 7.0)))
    both = [_kernels.bump_search(one, heights, 1e-9) for one in (x, wider)]
    assert all(finish(search) for search in both)
    assert both[0].upper == pytest.approx(both[1].upper, rel=1e-8)


def test_many_columns_are_taken_without_polynomials() -> None:
    x, heights = problem(0, 60)
    search = _kernels.bump_search(x, heights, 1e-3)
    search.advance(100_000)
    assert search.upper >= bump_sum(x, heights, x).max()


def test_climbs_never_fall() -> None:
    x, heights = problem(5, 3)
    centres, values = x.copy(), np.full(len(x), np.nan)
    before = bump_sum(x, heights, centres)
    looks = _kernels.bump_climb(x, heights, centres, values, 100, 0.0)
    assert (values >= before * (1 - 1e-14)).all()
    assert np.allclose(values, bump_sum(x, heights, centres), rtol=1e-12)
    assert looks >= len(x) ** 2
    centres = x.copy()
    assert _kernels.bump_climb(x, heights, centres, values, 0, 0.0) == len(x) ** 2
    assert (centres == x).all()
    assert np.allclose(values, before, rtol=1e-13)


def test_checks_at_the_boundary() -> None:
    x, heights = problem(0, 2)
    with pytest.raises(ValueError, match="heights"):
        _kernels.bump_search(x, heights[:-1].copy(), 0.0)
    with pytest.raises(ValueError, match="tolerance"):
        _kernels.bump_search(x, heights, -1.0)
    with pytest.raises(ValueError, match="x must be"):
        _kernels.bump_search(np.empty((0, 2)), np.empty(0), 0.0)
    with pytest.raises(ValueError, match="centre"):
        _kernels.bump_search(x, heights, 0.0).propose(np.zeros(3))
    with pytest.raises(ValueError, match="centres"):
        _kernels.bump_climb(x, heights, np.zeros((2, 3)), np.zeros(2), 10, 0.0)
    with pytest.raises(ValueError, match="heights"):
        _kernels.bump_climb(x, heights[:-1].copy(), np.zeros((2, 2)), np.zeros(2), 10, 0.0)
    with pytest.raises(TypeError):
        _kernels.bump_search(x.astype(np.float32), heights, 0.0)


def probe() -> Array:
    """Enclosures of a few sums of bumps, under the instruction set in force."""
    out = []
    for seed in range(6):
        x, heights = problem(seed, 1 + seed % 4, n=100)
        search = _kernels.bump_search(x, heights, 1e-3)
        assert finish(search)
        again = _kernels.bump_search(x, heights, 1e-3)
        assert finish(again)
        assert (search.lower, search.upper, search.boxes) == (again.lower, again.upper, again.boxes)
        assert highest(x, heights) <= search.upper <= search.lower + 1e-3
        at, values = x[:3].copy(), np.empty(3)
        _kernels.bump_climb(x, heights, at, values, 100, 0.0)
        out.append(values)
    return np.array(out)


@pytest.mark.parametrize("isa", _kernels.isas())
def test_every_instruction_set(isa: str, tmp_path: Path) -> None:
    assert np.allclose(answers_under(isa, __name__, tmp_path), probe(), rtol=1e-9, atol=1e-9)


if __name__ == "__main__":
    np.save(sys.argv[1], probe())
