"""Seeds and partitions: functions of the weighted empirical measure and of a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import chisquare

from majorant.data.measure import Measure, empirical_measure
from majorant.starts.seeding import plus_plus, random_partition, random_rows

SEEDINGS = pytest.mark.parametrize("seeding", [plus_plus, random_rows])
Seeding = Callable[[Measure, int, np.random.Generator], NDArray[Any]]


def rows(n: int = 50) -> NDArray[np.float64]:
    return np.random.default_rng(0).integers(-9, 10, (n, 2)).astype(np.float64)


@SEEDINGS
class TestEverySeeding:
    def test_seeds_are_points(self, seeding: Seeding) -> None:
        measure = empirical_measure(rows())
        seeds = seeding(measure, 8, np.random.default_rng(0))
        points = {tuple(p) for p in measure.points.tolist()}
        assert seeds.shape == (8, 2) and len({tuple(s) for s in seeds.tolist()} & points) == 8

    def test_weighting_a_row_twice_is_writing_it_twice(self, seeding: Seeding, seed: int) -> None:
        x = rows()
        times = np.random.default_rng(seed).integers(0, 4, len(x))
        weighted, repeated = (
            empirical_measure(x, times.astype(np.float64)),
            empirical_measure(np.repeat(x, times, axis=0)),
        )
        a, b = (seeding(m, 5, np.random.default_rng(seed)) for m in (weighted, repeated))
        np.testing.assert_array_equal(a, b)

    def test_sparse_rows_seed_as_dense_ones(self, seeding: Seeding) -> None:
        """The same law: how often each row is the first or second seed."""
        x = np.array([[0.0, 1.0], [3.0, 0.0], [0.0, 6.0], [8.0, 1.0]])
        w = np.array([1.0, 3.0, 2.0, 0.5])
        counts = []
        for data in (x, sparse.csr_matrix(x)):
            measure = empirical_measure(data, w)
            found = np.zeros((4, 4))
            for s in range(1500):
                seeds = measure.restore(seeding(measure, 2, np.random.default_rng(s)))
                first, second = (int(np.abs(x - seed).sum(axis=1).argmin()) for seed in seeds)
                found[first, second] += 1
            counts.append(found)
        assert not any(found.diagonal().any() for found in counts)
        off = ~np.eye(4, dtype=bool)
        expected = np.maximum(counts[0][off], 1)
        assert chisquare(counts[1][off], expected * counts[1].sum() / expected.sum()).pvalue > 1e-9

    @pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
    def test_fewer_points_than_seeds(self, seeding: Seeding, kind: Any) -> None:
        measure = empirical_measure(kind(np.repeat([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]], 4, axis=0)))
        seeds = seeding(measure, 7, np.random.default_rng(0))
        assert len(np.unique(seeds, axis=0)) == 3
        assert len(np.unique(seeds[:3], axis=0)) == 3  # repeats come last

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_precision_is_kept(self, seeding: Seeding, dtype: type) -> None:
        assert seeding(empirical_measure(rows().astype(dtype)), 3, np.random.default_rng(0)).dtype == dtype


def test_random_rows_are_drawn_by_weight(seed: int) -> None:
    measure = empirical_measure(np.arange(4.0)[:, None], np.array([1.0, 2.0, 3.0, 4.0]))
    random, counts = np.random.default_rng(seed), np.zeros((4, 4))
    for _ in range(5000):
        first, second = measure.restore(random_rows(measure, 2, random))[:, 0].round().astype(int)
        counts[first, second] += 1
    p = np.array([0.1, 0.2, 0.3, 0.4])
    pairs = p[:, None] * p[None, :] / (1 - p)[:, None]
    off = ~np.eye(4, dtype=bool)
    assert not counts.diagonal().any()
    assert chisquare(counts[off], 5000 * pairs[off]).pvalue > 1e-6


def test_plus_plus_seeds_far_groups_once_each(seed: int) -> None:
    """Ten groups a thousand times farther apart than they are wide: greedy seeds miss none."""
    random = np.random.default_rng(seed)
    x = 1000.0 * np.arange(10)[:, None] + random.normal(size=(10, 30))
    seeds = plus_plus(empirical_measure(x.reshape(-1, 1)), 10, random)
    measure = empirical_measure(x.reshape(-1, 1))
    assert sorted((measure.restore(seeds)[:, 0] / 1000).round().tolist()) == list(range(10))


def test_parts_are_uniform(seed: int) -> None:
    measure = empirical_measure(np.arange(6000.0)[:, None])
    parts = random_partition(measure, 5, np.random.default_rng(seed))
    assert parts.dtype == np.int32 and chisquare(np.bincount(parts, minlength=5)).pvalue > 1e-6
