"""The largest sum of bumps around a line by branch and bound: an enclosure at any time, and tight at the end."""

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
NO_LABELS, NO_CAPS = np.empty((0, 0), dtype=np.int32), np.empty((0, 0))


def bump_sum(z: Array, y: Array, heights: Array, lines: Array) -> Array:
    """g of each line."""
    return np.asarray(heights @ np.exp(-0.5 * (y[:, None] - z @ lines.T) ** 2))


def problem(seed: int, p: int, n: int = 30) -> tuple[Array, Array, Array]:
    """Rows of an orthonormal design, now and then of few levels, about some lines."""
    random = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), random.normal(size=(n, p - 1))])
    if seed % 2:
        x = np.round(2 * x) / 2
    z, _ = np.linalg.qr(x)
    z = z * np.sqrt(n)
    lines = random.normal(size=(3, p)) * random.choice([1.0, 5.0])
    y = np.sum(z * lines[random.integers(3, size=n)], axis=1) + random.normal(size=n)
    return np.ascontiguousarray(z), y, random.uniform(0.0, 1.0, n) ** random.choice([1, 4])


def search_of(z: Array, y: Array, heights: Array, tolerance: float) -> Any:
    n = len(y)
    return _kernels.line_search(z, y, heights, NO_LABELS.reshape(0, n), NO_CAPS.reshape(0, n), tolerance)


def finish(search: Any, most: int = 2_000_000_000) -> bool:
    done = False
    while not done and search.tests < most:
        done = search.advance(10_000_000)
    return done


def known_lines(z: Array, y: Array, seed: int, many: int = 3000) -> Array:
    """Lines through as many rows as they have coefficients, steep ones among them, and random ones."""
    random = np.random.default_rng(seed)
    p = z.shape[1]
    drawn = (
        np.array([random.choice(len(y), p, replace=False) for _ in range(many)]) if len(y) >= p else np.empty((0, p))
    )
    drawn = drawn.astype(int)
    regular = np.abs(np.linalg.det(z[drawn])) > 1e-6
    through = np.linalg.solve(z[drawn[regular]], y[drawn[regular], None])[:, :, 0]
    return np.concatenate([through, random.normal(size=(many, p)) * 10.0 ** random.uniform(-1, 4, (many, 1))])


def highest(z: Array, y: Array, heights: Array, seed: int) -> float:
    """The largest value that least squares under the bumps, again and again, reaches: nearly always the highest."""
    at = np.ascontiguousarray(known_lines(z, y, seed, 1000))
    values = np.empty(len(at))
    _kernels.line_climb(z, y, heights, at, values, 300, 0.0)
    return float(max(values.max(), bump_sum(z, y, heights, at).max()))


@pytest.mark.parametrize("p", [1, 2, 3])
def test_never_below_what_a_search_finds(p: int) -> None:
    for seed in range(12):
        z, y, heights = problem(seed, p)
        tolerance = 1e-3 * float(heights.max())
        search = search_of(z, y, heights, tolerance)
        assert finish(search), seed
        found = max(highest(z, y, heights, seed), float(bump_sum(z, y, heights, known_lines(z, y, seed)).max()))
        assert found <= search.upper * (1 + 1e-14), seed
        assert search.upper <= search.lower + tolerance or seed % 2, seed  # levels: only caps close it
        assert search.lower >= found - 1.01 * tolerance, seed
        line = np.empty(p)
        search.write_centre(line)
        assert bump_sum(z, y, heights, line[None])[0] == pytest.approx(search.lower, rel=1e-9)


def test_a_dense_grid_of_all_lines_flat_and_steep() -> None:
    """As angles and distances, so that no slope is left out."""
    for seed in range(4):
        z, y, heights = problem(seed, 2, n=12)
        search = search_of(z, y, heights, 1e-6)
        finish(search, 20_000_000)
        slopes = np.tan(np.linspace(-np.pi / 2 + 1e-4, np.pi / 2 - 1e-4, 801))
        for row in range(len(y)):  # near some row, or g is small
            shifts = np.linspace(-3, 3, 61)
            levels = (y[row] + shifts[:, None] - slopes * z[row, 1]) / z[row, 0]
            lines = np.column_stack([levels.ravel(), np.broadcast_to(slopes, levels.shape).ravel()])
            assert bump_sum(z, y, heights, lines).max() <= search.upper


@settings(max_examples=50)
@given(
    p=st.integers(1, 4),
    n=st.integers(1, 25),
    seed=st.integers(0, 10_000),
    spread=st.sampled_from([0.0, 0.01, 1.0, 30.0]),
    tolerance=st.sampled_from([0.0, 1e-9, 1e-3, 0.3]),
    tests=st.sampled_from([1, 3_000, 300_000]),
)
def test_an_enclosure_at_any_time(p: int, n: int, seed: int, spread: float, tolerance: float, tests: int) -> None:
    random = np.random.default_rng(seed)
    z, y = random.normal(size=(n, p)), random.normal(size=n) * spread
    heights = 10.0 ** random.uniform(-8, 3, n)
    search = search_of(z, y, heights, tolerance)
    search.advance(tests)
    at = np.ascontiguousarray(known_lines(z, y, seed, 100))
    values = np.empty(len(at))
    _kernels.line_climb(z, y, heights, at, values, 100, 0.0)
    assert max(values.max(), bump_sum(z, y, heights, at).max()) <= search.upper * (1 + 1e-12)
    assert search.lower <= search.upper


def test_caps_close_what_levels_leave_open() -> None:
    """Two levels: a steep line meets all rows of one, but is near few of them."""
    random = np.random.default_rng(0)
    level = np.repeat([0, 1], 20)
    z, y = np.column_stack([np.ones(40), 2.0 * level - 1]), random.uniform(-10, 10, 40)
    heights = np.ones(40)
    caps = np.zeros((1, 40))
    for one in (0, 1):
        own = _kernels.bump_search(np.ascontiguousarray(y[level == one, None]), np.ones(20), 1e-6)
        assert finish(own)
        caps[0, one] = own.upper
    open_ended = search_of(z, y, heights, 1e-3)
    finish(open_ended, 200_000_000)
    search = _kernels.line_search(z, y, heights, level.astype(np.int32)[None], caps, 1e-3)
    assert finish(search)
    # A line may be at its best on both levels at once.
    assert search.upper == pytest.approx(caps[0].sum(), abs=3e-3)
    assert open_ended.upper >= search.upper - 1e-9
    assert open_ended.upper >= 20


def test_a_row_far_out_among_the_features() -> None:
    for far in (30.0, 1e3):
        z, y, heights = problem(0, 2, n=20)
        z[0, 1], heights[0] = far, 1.0
        search = search_of(z, y, heights, 1e-4)
        assert finish(search, 300_000_000), far
        assert highest(z, y, heights, 0) <= search.upper * (1 + 1e-14) <= search.lower + 2e-4


def test_climbs_never_fall() -> None:
    z, y, heights = problem(4, 3)
    lines = np.ascontiguousarray(known_lines(z, y, 0, 50))
    values, before = np.empty(len(lines)), bump_sum(z, y, heights, lines)
    looks = _kernels.line_climb(z, y, heights, lines, values, 100, 0.0)
    assert (values >= before * (1 - 1e-12)).all()
    assert np.allclose(values, bump_sum(z, y, heights, lines), rtol=1e-10, atol=1e-300)
    assert looks >= len(lines) * len(y)


def test_checks_at_the_boundary() -> None:
    z, y, heights = problem(0, 2)
    n = len(y)
    labels, caps = np.zeros((1, n), dtype=np.int32), np.ones((1, n))
    with pytest.raises(ValueError, match="heights"):
        _kernels.line_search(z, y, heights[:-1].copy(), labels, caps, 0.0)
    with pytest.raises(ValueError, match="tolerance"):
        _kernels.line_search(z, y, heights, labels, caps, -1.0)
    with pytest.raises(ValueError, match="labels and caps"):
        _kernels.line_search(z, y, heights, labels, caps[:, :-1].copy(), 0.0)
    for wrong in (-1, n):
        with pytest.raises(ValueError, match="from 0 to n - 1"):
            _kernels.line_search(z, y, heights, np.full((1, n), wrong, dtype=np.int32), caps, 0.0)
    with pytest.raises(ValueError, match="lines must be"):
        _kernels.line_climb(z, y, heights, np.zeros((2, 3)), np.zeros(2), 10, 0.0)
    with pytest.raises(ValueError, match="heights"):
        _kernels.line_climb(z, y[:-1].copy(), heights, np.zeros((2, 2)), np.zeros(2), 10, 0.0)
    nothing = search_of(z, y, np.zeros(n), 1e-9)
    assert nothing.advance(100)
    assert (nothing.lower, nothing.upper) == (0.0, 0.0)


def probe() -> Array:
    """Enclosures of a few sums of bumps, under the instruction set in force."""
    out = []
    for seed in (0, 2, 4):
        z, y, heights = problem(seed, 1 + seed // 2, n=60)
        searches = [search_of(z, y, heights, 1e-3) for _ in range(2)]
        assert all(finish(search) for search in searches)
        assert len({(search.lower, search.upper, search.boxes) for search in searches}) == 1
        assert searches[0].upper <= searches[0].lower + 1e-3
        lines, values = np.zeros((3, z.shape[1])), np.empty(3)
        lines[1:] += [[0.5], [-0.5]]
        _kernels.line_climb(z, y, heights, lines, values, 100, 0.0)
        out.append([*values, round(searches[0].upper, 2)])
    return np.array(out)


@pytest.mark.parametrize("isa", _kernels.isas())
def test_every_instruction_set(isa: str, tmp_path: Path) -> None:
    assert np.allclose(answers_under(isa, __name__, tmp_path), probe(), rtol=1e-8, atol=0.011)


if __name__ == "__main__":
    np.save(sys.argv[1], probe())
