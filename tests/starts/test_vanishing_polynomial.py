"""The polynomial that is zero on all lines, whatever weights the lines have in a row."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from majorant import Chunks
from majorant.starts.vanishing_polynomial import vanishing_polynomial

Array = NDArray[np.float64]


def gated(n: int, lines: Array, noise: float, seed: int = 0) -> tuple[Array, Array, Array]:
    """Rows (x, y) of lines whose weights change along the first column, and the values of all lines at each row."""
    random = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), random.uniform(-1.7, 1.7, (n, lines.shape[1] - 1))])
    logits = x[:, 1:2] * np.arange(len(lines))
    z = (logits + random.gumbel(size=logits.shape)).argmax(axis=1)
    on_lines = x @ lines.T
    return x, on_lines[np.arange(n), z] + np.sqrt(noise) * random.normal(size=n), np.sort(on_lines, axis=1)


LINES = np.array([[0.9, 0.1, 0.4], [-0.9, 0.5, -0.3], [0.1, -0.7, 0.2]])


@pytest.mark.parametrize("k", [1, 2, 3])
def test_without_noise_its_zeros_are_the_lines(k: int) -> None:
    x, y, on_lines = gated(400, LINES[:k], 0.0)
    found = vanishing_polynomial(Chunks(x, y), k)
    np.testing.assert_allclose(np.sort(found.roots(x).real, axis=1), on_lines, atol=1e-3)
    assert found.noise_variance < 1e-4


def test_noise_is_taken_out_of_the_moments() -> None:
    """The zeros at the mean of x are right where the powers of y themselves are off."""
    x, y, on_lines = gated(200_000, LINES[:2], 0.2)
    found = vanishing_polynomial(Chunks(x, y), 2)
    assert found.noise_variance == pytest.approx(0.2, rel=0.05)
    error = np.abs(np.sort(found.roots(x[:500]).real, axis=1) - on_lines[:500])
    assert np.median(error) < 0.05


def test_weights_are_repeats_and_blocks_do_not_matter() -> None:
    x, y, _ = gated(300, LINES[:2], 0.05)
    times = 1 + np.arange(300) % 3
    weighted = vanishing_polynomial(Chunks(x, y, weights=times.astype(float)), 2)
    repeated = vanishing_polynomial(Chunks(np.repeat(x, times, axis=0), np.repeat(y, times)), 2)
    assert weighted.noise_variance == pytest.approx(repeated.noise_variance, rel=1e-6)
    np.testing.assert_allclose(weighted.roots(x), repeated.roots(x), atol=1e-6)
