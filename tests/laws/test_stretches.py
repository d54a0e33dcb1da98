"""Long sequences, passed over a stretch at a time, give what tables of all rows give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from majorant.data.chunks import Block
from majorant.densities import Poisson
from majorant.engine.mixture import Mixture, Parameters
from majorant.engine.stretches import pass_in_stretches
from majorant.laws import Chain, chain, stretches
from majorant.laws.chain import Steps


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "LONG", 30)
    monkeypatch.setattr(stretches, "LONG", 30)
    monkeypatch.setattr(stretches, "STRETCH", 12)


def passes(counts: Any, theta: Any, monkeypatch: pytest.MonkeyPatch, weights: Any = None) -> list[tuple[Any, ...]]:
    """What a pass over five sequences says, by stretches and by tables."""
    groups, mixture = np.repeat(np.arange(5), [3, 50, 1, 7, 100]), Mixture(Poisson(1), Chain(), 2)
    block, out = Block(0, (counts, groups), None if weights is None else weights[groups]), []
    found = pass_in_stretches(mixture.density, mixture.law, theta.density, theta.law, *mixture.parts(block))
    assert (found is None) == bool(np.nanmax(counts) > 1e4)
    for longest in (30, 10**6):
        monkeypatch.setattr(chain, "LONG", longest)
        seen, entropy = mixture._pass(theta, block)
        out.append((seen.objective, seen.statistics.density, seen.statistics.law, entropy()))
    return out


@pytest.mark.parametrize("weights", [None, np.array([1.0, 2.0, 0.0, 3.0, 0.5])])
@pytest.mark.parametrize("kept", [0, 1 << 23])
def test_stretches_are_tables(weights: Any, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "KEPT", kept)
    random = np.random.default_rng(0)
    counts = random.poisson(np.repeat(random.choice([1.0, 9.0], 17), 10)[:161, None]).astype(float)
    counts[40:60] = np.nan
    steps = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.0, 1.0]]])
    theta = Parameters(np.array([[[1.0], [8.0]], [[2.0], [3.0]]]), Steps(np.array([[0.5, 0.5], [1.0, 0.0]]), steps))
    by_stretch, by_table = passes(counts, theta, monkeypatch, weights)
    for one, other in zip(by_stretch, by_table, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


def test_what_needs_logarithms_is_left_to_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.ones((161, 1))
    counts[100:] = 1e5
    theta = Parameters(np.array([[[1.0], [1e5]]]), Steps(np.array([[1.0, 0.0]]), np.eye(2)[None]))
    by_stretch, by_table = passes(counts, theta, monkeypatch)
    for one, other in zip(by_stretch, by_table, strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.isfinite(by_table[0]).all()
