"""The largest cover by branch and bound: an enclosure at any time, and tight at the end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from majorant import _kernels
from tests.kernels.instruction_sets import answers_under

Array = NDArray[Any]


def cover(x: Array, w: Array | None, reach: Array, centres: Array) -> Array:
    """h at each centre."""
    heights = np.maximum(reach - ((centres[:, None] - x) ** 2).sum(axis=2), 0.0)
    return np.asarray(heights.sum(axis=1) if w is None else heights @ w)


def largest_cover_1d(x: Array, w: Array, reach: Array) -> float:
    """The exact largest cover of points on a line: between the ends of reaches h is one parabola."""
    radius = np.sqrt(np.maximum(reach, 0.0))
    ends = np.unique(np.concatenate((x - radius, x + radius)))
    middles = (ends[1:] + ends[:-1]) / 2
    means = []
    for middle in middles:
        active = (middle - x) ** 2 < reach
        if active.any():
            means.append(np.average(x[active], weights=w[active]))
    places = np.concatenate((ends, means))
    return float(cover(x[:, None], w, reach, places[:, None]).max(initial=0.0))


def problem(seed: int, d: int, n: int = 40) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(seed)
    x = np.round(random.normal(size=(n, d)) * random.uniform(0.2, 2.0, d), int(random.integers(0, 8)))
    return x, random.choice([0.5, 1.0, 3.0], n), random.uniform(-0.3, random.choice([0.3, 1.0, 6.0]), n)


def finish(search: Any, tests: int = 10_000, most: int = 20_000_000) -> bool:
    done = False
    while not done and search.tests < most:
        done = search.advance(tests)
    return done


@pytest.mark.parametrize("seed", range(60))
def test_exact_on_a_line(seed: int) -> None:
    x, w, reach = problem(seed, 1)
    search = _kernels.cover_search(x, w, reach, 0.0)
    assert finish(search)
    exact = largest_cover_1d(x[:, 0], w, reach)
    assert search.lower == pytest.approx(exact, rel=1e-11, abs=1e-12)
    assert search.upper == pytest.approx(exact, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(12))
def test_never_below_brute_force(seed: int, d: int) -> None:
    x, w, reach = problem(seed, d)
    search = _kernels.cover_search(x, w, reach, 1e-9)
    assert finish(search)
    low, high = x.min(axis=0), x.max(axis=0)
    if d <= 2:
        lines = [np.linspace(a, b, 400 if d == 1 else 120) for a, b in zip(low, high, strict=True)]
        places = np.stack(np.meshgrid(*lines), axis=-1).reshape(-1, d)
    else:
        places = low + (high - low) * np.random.default_rng(seed).random((20_000, d))
    best = places[np.argsort(-cover(x, w, reach, places))[:20]].copy()
    values = np.empty(len(best))
    assert _kernels.cover_climb(x, w, reach, best, values, 100, np.inf)[0] == len(best)
    assert max(values.max(), cover(x, w, reach, places).max()) <= search.upper * (1 + 1e-12) + 1e-12
    centre = np.empty(d)
    search.write_centre(centre)
    assert cover(x, w, reach, centre[None])[0] == pytest.approx(search.lower, rel=1e-12, abs=1e-14)
    assert search.upper <= search.lower + 1e-9 + 1e-12


def test_upper_bound_falls_and_lower_bound_rises() -> None:
    x, w, reach = problem(3, 6, n=300)
    search = _kernels.cover_search(x, w, reach + 4.0, 1e-6)
    uppers, lowers = [search.upper], [search.lower]
    while not search.advance(20_000) and search.tests < 4_000_000:
        uppers.append(search.upper)
        lowers.append(search.lower)
    assert len(uppers) > 5
    assert (np.diff(uppers) <= 0).all()
    assert (np.diff(lowers) >= 0).all()
    assert uppers[-1] >= lowers[-1]


def test_stopped_at_once_the_bound_is_the_sum() -> None:
    x, w, reach = problem(0, 2)
    search = _kernels.cover_search(x, w, reach, 0.0)
    assert search.upper == pytest.approx(float(w @ np.maximum(reach, 0.0)))
    assert search.lower == 0.0


def test_proposal_is_climbed_from() -> None:
    x, w, reach = problem(1, 2)
    search = _kernels.cover_search(x, w, reach, 0.0)
    search.propose(x[0])
    assert search.lower >= cover(x, w, reach, x[:1])[0]


def test_nothing_to_cover() -> None:
    x = np.zeros((3, 2))
    search = _kernels.cover_search(x, None, np.array([-1.0, 0.0, -2.0]), 0.0)
    assert search.advance(100)
    assert (search.lower, search.upper) == (0.0, 0.0)


def test_equal_points_and_constant_columns() -> None:
    x = np.full((4, 3), 2.5)
    search = _kernels.cover_search(x, None, np.array([1.0, 2.0, 3.0, -1.0]), 0.0)
    assert finish(search)
    assert search.upper == pytest.approx(6.0, rel=1e-12)
    x = np.column_stack((problem(0, 1)[0], np.zeros(40)))
    both = [_kernels.cover_search(np.ascontiguousarray(x[:, :q]), None, np.full(40, 0.5), 0.0) for q in (1, 2)]
    assert all(finish(search) for search in both)
    assert both[0].upper == pytest.approx(both[1].upper, rel=1e-11)


def test_climbs_never_fall_and_end_early() -> None:
    x, w, reach = problem(5, 3)
    centres, values = x.copy(), np.full(len(x), np.nan)
    before = cover(x, w, reach, centres)
    assert _kernels.cover_climb(x, w, reach, centres, values, 100, np.inf)[0] == len(x)
    assert (values >= before - 1e-12).all()
    assert np.allclose(values, cover(x, w, reach, centres), rtol=1e-12)
    centres = x.copy()
    done, looks = _kernels.cover_climb(x, w, reach, centres, values, 100, float(np.median(before)))
    assert done < len(x)
    assert looks >= done


def test_checks_at_the_boundary() -> None:
    x, w, reach = problem(0, 2)
    with pytest.raises(ValueError, match="reach"):
        _kernels.cover_search(x, w, reach[:-1].copy(), 0.0)
    with pytest.raises(ValueError, match="tolerance"):
        _kernels.cover_search(x, w, reach, -1.0)
    with pytest.raises(ValueError, match="weights"):
        _kernels.cover_search(x, w[:-1].copy(), reach, 0.0)
    with pytest.raises(ValueError, match="x must be"):
        _kernels.cover_search(np.empty((0, 2)), None, np.empty(0), 0.0)
    with pytest.raises(ValueError, match="centre"):
        _kernels.cover_search(x, w, reach, 0.0).propose(np.zeros(3))
    with pytest.raises(ValueError, match="centres"):
        _kernels.cover_climb(x, w, reach, np.zeros((2, 3)), np.zeros(2), 10, np.inf)
    with pytest.raises(TypeError):
        _kernels.cover_search(x.astype(np.float32), w, reach, 0.0)


def probe() -> Array:
    """Enclosures of a few largest covers, under the instruction set in force."""
    out = []
    for seed in range(6):
        x, w, reach = problem(seed, 1 + seed % 4, n=100)
        search = _kernels.cover_search(x, w, reach, 1e-10)
        finish(search)
        out.append((search.lower, search.upper))
    return np.array(out)


@pytest.mark.parametrize("isa", _kernels.isas())
def test_every_instruction_set(isa: str, tmp_path: Path) -> None:
    assert np.allclose(answers_under(isa, __name__, tmp_path), probe(), rtol=1e-9, atol=1e-9)


if __name__ == "__main__":
    np.save(sys.argv[1], probe())
