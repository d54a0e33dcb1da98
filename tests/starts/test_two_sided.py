"""Directions in which rows lie on two sides: stationary, found where they are known, of unit variance."""

from __future__ import annotations

import numpy as np
import pytest

from majorant.starts import two_sided
from majorant.starts.quadratic import principal_axes
from majorant.starts.two_sided import two_sided_direction


@pytest.mark.parametrize("seed", range(5))
def test_finds_the_axis_of_two_groups(seed: int) -> None:
    random = np.random.default_rng(seed)
    side = np.where(np.arange(400) % 2, 1.0, -1.0)
    x = random.normal(size=(400, 6))
    x[:, 3] = 3 * side + 0.5 * x[:, 3]
    shares = np.full(400, 1 / 400)
    axes = principal_axes(x @ np.linalg.qr(random.normal(size=(6, 6)))[0], shares)
    for first in range(2):
        found = two_sided_direction(axes.scores, shares, first)
        assert abs(np.mean(found * side)) > 0.97
        assert np.sum(shares * found) == pytest.approx(0, abs=1e-9)
        assert np.sum(shares * found**2) == pytest.approx(1)


def test_the_end_is_stationary_and_no_worse_than_the_first_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    monkeypatch.setattr(two_sided, "N_STEPS", 5_000)
    monkeypatch.setattr(two_sided, "TOL", 0.0)
    weights = random.uniform(0.5, 2, 150)
    shares = weights / weights.sum()
    scores = principal_axes(random.uniform(size=(150, 4)) ** 2, shares).scores
    for first in range(4):
        along = two_sided_direction(scores, shares, first)
        assert shares @ along**4 <= shares @ scores[first] ** 4
        u = scores @ (shares * along)
        slope = 4 * scores @ (shares * along**3)
        np.testing.assert_allclose(slope, (slope @ u) * u, atol=1e-4)


def test_weights_are_repeats() -> None:
    random = np.random.default_rng(1)
    x, counts = random.normal(size=(40, 3)), random.integers(1, 4, 40)
    axes = principal_axes(x, counts / counts.sum())
    once = two_sided_direction(axes.scores, counts / counts.sum(), 0)
    n = counts.sum()
    again = two_sided_direction(np.repeat(axes.scores, counts, axis=1), np.full(n, 1 / n), 0)
    np.testing.assert_allclose(np.repeat(once, counts), again, atol=1e-6)
