"""Every compiled kernel against plain numpy: all code paths, both precisions, and the checks at the boundary."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from majorant import _kernels
from tests.kernels.instruction_sets import answers_under

from . import probe, reference

Array = NDArray[Any]

each_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["double", "single"])
each_weighting = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])

CENTRES = [1, 2, 7, 8, 9, 16, 31, 33, 100]
COLUMNS = [1, 2, 3, 16, 63, 64, 65, 784]
ROWS = [1, 2, 95, 96, 97, 1000]


def weights_of(weighted: bool, n: int, seed: int = 0) -> Array | None:
    return np.random.default_rng(seed).gamma(1.0, size=n) if weighted else None


def unwritable(array: Array) -> Array:
    array.flags.writeable = False
    return array


class Assigned:
    """The answers of `assign`."""

    def __init__(self, x: Array, w: Array | None, centres: Array, labels: Array | None = None) -> None:
        n, (k, d) = len(x), centres.shape
        self.labels = np.full(n, -1, dtype=np.int32) if labels is None else labels.copy()
        self.nearest, self.moments = np.full(n, np.nan, dtype=x.dtype), np.full((k, d + 2), np.nan)
        self.changed = _kernels.assign(x, w, centres, self.moments, self.labels, self.nearest)


def check_moments(found: Array, x: Array, w: Array | None, centres: Array, labels: Array) -> None:
    expected, size = reference.moments(x, w, centres, labels)
    # Differences, squares and sums of them in the precision of the data: a few roundings of the summed sizes.
    rounding = 64 * np.finfo(x.dtype).eps
    assert (np.abs(found - expected) <= rounding * size).all()


class TestAssign:
    @each_dtype
    @pytest.mark.parametrize("d", COLUMNS)
    @pytest.mark.parametrize("k", CENTRES)
    def test_small_integers_have_exact_answers(self, k: int, d: int, dtype: type) -> None:
        """Distances are exact, so ties are ties, and the first centre wins them."""
        for n in ROWS:
            random = np.random.default_rng(n)
            x, centres = (random.integers(-2, 3, (m, d)).astype(dtype) for m in (n, k))
            table = (x**2).sum(axis=1)[:, None] - 2 * x @ centres.T + (centres**2).sum(axis=1)
            found = Assigned(unwritable(x), None, unwritable(centres))
            np.testing.assert_array_equal(found.labels, table.argmin(axis=1))
            np.testing.assert_array_equal(found.nearest, table.min(axis=1))
            assert found.changed == n
            check_moments(found.moments, x, None, centres, found.labels)

    @each_weighting
    @each_dtype
    @pytest.mark.parametrize("d", COLUMNS)
    @pytest.mark.parametrize("k", CENTRES)
    def test_real_numbers(self, k: int, d: int, dtype: type, weighted: bool) -> None:
        random, n = np.random.default_rng(k * d), 200
        x, centres = (random.normal(size=(m, d)).astype(dtype) for m in (n, k))
        w = weights_of(weighted, n)
        found = Assigned(x, w, centres)
        table = reference.squared_distances(x, centres)
        scale = (x.astype(np.float64) ** 2).sum(axis=1) + (centres.astype(np.float64) ** 2).sum(axis=1).max()
        rounding = 8 * np.finfo(dtype).eps * scale
        chosen = table[np.arange(n), found.labels]
        assert (chosen <= table.min(axis=1) + rounding).all()
        np.testing.assert_allclose(found.nearest, chosen, rtol=64 * np.finfo(dtype).eps, atol=1e-30)
        check_moments(found.moments, x, w, centres, found.labels)

    @each_dtype
    @pytest.mark.parametrize(("k", "d"), list(product([1, 8, 33], [2, 64])))
    def test_equal_centres_go_to_the_first(self, k: int, d: int, dtype: type) -> None:
        x = np.random.default_rng(0).normal(size=(97, d)).astype(dtype)
        assert not Assigned(x, None, np.tile(x[:1], (k, 1))).labels.any()

    @each_dtype
    @pytest.mark.parametrize("d", [2, 64])
    def test_changes_are_counted(self, d: int, dtype: type) -> None:
        x = np.random.default_rng(0).normal(size=(200, d)).astype(dtype)
        first = Assigned(x, None, x[:5])
        before = first.labels.copy()
        before[[3, 99, 150]] = (before[[3, 99, 150]] + 1) % 5
        assert Assigned(x, None, x[:5], before).changed == 3
        assert Assigned(x, None, x[:5], first.labels).changed == 0

    @each_dtype
    @pytest.mark.parametrize("d", [2, 64])
    def test_outputs_may_be_left_out(self, d: int, dtype: type) -> None:
        x = np.random.default_rng(0).normal(size=(150, d)).astype(dtype)
        full, labels = Assigned(x, None, x[:9]), np.full(150, -1, dtype=np.int32)
        assert _kernels.assign(x, None, x[:9], None, labels) == 150
        np.testing.assert_array_equal(labels, full.labels)
        nearest = np.empty(150, dtype=dtype)
        _kernels.assign(x, None, x[:9], None, labels, nearest)
        np.testing.assert_array_equal(nearest, full.nearest)

    @each_dtype
    @pytest.mark.parametrize("d", [2, 64])
    def test_no_rows(self, d: int, dtype: type) -> None:
        found = Assigned(np.empty((0, d), dtype), None, np.zeros((3, d), dtype))
        assert found.changed == 0 and not found.moments.any()

    @each_dtype
    @pytest.mark.parametrize(("k", "d"), list(product([1, 5, 40], [2, 64])))
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_rows_that_are_not_finite_get_a_label_in_range(self, k: int, d: int, dtype: type, value: float) -> None:
        x, centres = np.full((100, d), value, dtype), np.zeros((k, d), dtype)
        with np.errstate(invalid="ignore"):
            labels = Assigned(x, None, centres).labels
        assert (labels >= 0).all() and (labels < k).all()

    @each_dtype
    @pytest.mark.parametrize("d", [3, 64, 200])
    @pytest.mark.parametrize("size", [1e-100, 1e-45, 1e45, 1e100])
    def test_weights_of_any_size(self, d: int, dtype: type, size: float) -> None:
        """Weights are double whatever the data are."""
        x, w = np.random.default_rng(0).normal(size=(150, d)).astype(dtype), np.random.default_rng(1).random(150)
        plain, scaled = (Assigned(x, w * factor, x[:4]).moments for factor in (1.0, size))
        np.testing.assert_allclose(scaled / size, plain, rtol=1e-5, atol=1e-5 if dtype == np.float32 else 1e-12)

    @each_dtype
    @pytest.mark.parametrize("d", [3, 64, 200])
    def test_zero_weights_leave_rows_out(self, d: int, dtype: type) -> None:
        x = np.random.default_rng(0).normal(size=(150, d)).astype(dtype)
        w = (np.arange(150) % 3 == 0).astype(np.float64)
        found = Assigned(x, w, x[:4])
        check_moments(found.moments, x[w > 0], None, x[:4], found.labels[w > 0])

    @pytest.mark.parametrize("d", [2, 64])
    def test_a_cluster_far_from_the_origin_keeps_its_digits(self, d: int) -> None:
        x = 1e8 + np.random.default_rng(0).integers(-4, 5, (200, d)) / 8
        centre = np.full((1, d), 1e8)
        np.testing.assert_array_equal(
            Assigned(x, None, centre).moments, reference.moments(x, None, centre, np.zeros(200))[0]
        )


class TestMomentsAndDistances:
    @each_weighting
    @each_dtype
    @pytest.mark.parametrize(("k", "d"), list(product([1, 8, 33], [1, 3, 64, 200])))
    def test_moments_of_given_labels(self, k: int, d: int, dtype: type, weighted: bool) -> None:
        random, n = np.random.default_rng(0), 300
        x, centres = (random.normal(size=(m, d)).astype(dtype) for m in (n, k))
        labels = random.integers(-1, k + 1, n).astype(np.int32)  # -1 and k are left out
        w, out = weights_of(weighted, n), np.full((k, d + 2), np.nan)
        _kernels.moments(unwritable(x), w, unwritable(centres), unwritable(labels), out)
        check_moments(out, x, w, centres, labels)

    @each_dtype
    @pytest.mark.parametrize("d", COLUMNS)
    @pytest.mark.parametrize("k", CENTRES)
    def test_distances(self, k: int, d: int, dtype: type) -> None:
        for n in (0, 1, 97):
            random = np.random.default_rng(n)
            x, centres = (random.normal(size=(m, d)).astype(dtype) for m in (n, k))
            out = np.full((n, k), np.nan, dtype)
            _kernels.distances(unwritable(x), unwritable(centres), out)
            expected = reference.squared_distances(x, centres)
            np.testing.assert_allclose(out, expected, rtol=32 * np.finfo(dtype).eps)

    @each_dtype
    def test_a_row_at_a_centre_has_no_distance(self, dtype: type) -> None:
        x = (1e6 + np.random.default_rng(0).random((50, 5))).astype(dtype)
        out = np.empty((50, 50), dtype)
        _kernels.distances(x, x, out)
        assert not out.diagonal().any() and (out >= 0).all()


class TestLatents:
    @each_dtype
    @pytest.mark.parametrize("k", [*CENTRES, 4, 15, 17])
    def test_row_minimum(self, k: int, dtype: type) -> None:
        for n, high in product((0, 1, 200), (2, 1000)):
            energies = np.random.default_rng(n).integers(0, high, (n, k)).astype(dtype)
            energies[1::3, : k // 2] = np.inf
            least, argument = np.full(n, np.nan, dtype), np.full(n, -1, dtype=np.int32)
            _kernels.row_minimum(unwritable(energies), least, argument)
            np.testing.assert_array_equal(least, energies.min(axis=1))
            np.testing.assert_array_equal(argument, energies.argmin(axis=1))

    @each_weighting
    @each_dtype
    @pytest.mark.parametrize("k", CENTRES)
    @pytest.mark.parametrize("price", [0.0, 0.3, 5.0])
    def test_draw(self, k: int, dtype: type, weighted: bool, price: float) -> None:
        random, n = np.random.default_rng(k), 400
        energies = random.exponential(3.0, (n, k)).astype(dtype)
        energies[::5, k // 2 + 1 :] = np.inf
        least, argument = energies.min(axis=1), energies.argmin(axis=1).astype(np.int32)
        w, uniforms, z = weights_of(weighted, n), random.random(n), np.empty(n, dtype=np.int32)
        excess, moved = _kernels.draw(unwritable(energies), w, least, argument, price, unwritable(uniforms), z)
        if price == 0:  # no weight times an absent state is no number
            energies_seen = np.where(np.isinf(energies), 1e300, energies.astype(np.float64))
            expected = reference.draw(energies_seen, w, argument, 1e-250, uniforms)
        else:
            expected = reference.draw(energies, w, argument, price, uniforms)
        np.testing.assert_array_equal(z, expected)
        regret = energies[np.arange(n), z].astype(np.float64) - least
        np.testing.assert_allclose(excess, regret.sum() if w is None else w @ regret, rtol=1e-12)
        assert moved == np.count_nonzero(z != argument)
        assert moved > 0 or k == 1

    @each_dtype
    def test_extreme_uniforms(self, dtype: type) -> None:
        energies = np.random.default_rng(0).random((2, 6)).astype(dtype)
        energies[:, 5] = np.inf
        least, argument, z = energies.min(axis=1), energies.argmin(axis=1).astype(np.int32), np.empty(2, dtype=np.int32)
        _kernels.draw(energies, None, least, argument, 1.0, np.array([2.0**-54, 1 - 2.0**-53]), z)
        assert z[0] == argument[0] and z[1] == (4 if argument[1] != 4 else 3)

    @each_dtype
    def test_a_unit_without_any_state_costs_nothing(self, dtype: type) -> None:
        energies, z = np.array([[np.inf, np.inf], [0.0, 1.0]], dtype=dtype), np.empty(2, dtype=np.int32)
        least, argument = energies.min(axis=1), np.zeros(2, dtype=np.int32)
        assert _kernels.draw(energies, None, least, argument, 1.0, np.array([0.5, 0.9]), z) == (1.0, 1)
        np.testing.assert_array_equal(z, [0, 1])

    def test_an_infinite_price_moves_nothing(self) -> None:
        energies = np.random.default_rng(0).random((50, 4))
        least, argument, z = (
            energies.min(axis=1),
            energies.argmin(axis=1).astype(np.int32),
            np.empty(50, dtype=np.int32),
        )
        assert _kernels.draw(energies, None, least, argument, np.inf, np.full(50, 0.999), z) == (0.0, 0)
        np.testing.assert_array_equal(z, argument)

    @each_weighting
    @each_dtype
    @pytest.mark.parametrize("room", [0.0, 1.0, 20.0, np.inf])
    def test_walk(self, dtype: type, weighted: bool, room: float) -> None:
        random, n, k, steps = np.random.default_rng(3), 30, 5, 2000
        energies = (random.integers(0, 64, (n, k)) / 32).astype(dtype)
        energies[4, 1:4] = np.inf
        w = np.ceil(4 * random.random(n)) / 4 if weighted else None  # sums are exact
        z = energies.argmin(axis=1).astype(np.int32)
        sites, picks = random.integers(0, n, steps), random.random(steps)
        if room == np.inf:
            energies[4, 1:4] = 2.0  # an absent state fits into no finite room alone
        expected = reference.walk(energies, w, room, sites, picks, z)
        _kernels.walk(unwritable(energies), w, energies.min(axis=1), room, unwritable(sites), unwritable(picks), z)
        np.testing.assert_array_equal(z, expected)

    @each_weighting
    @each_dtype
    @pytest.mark.parametrize("p", [1, 3, 8, 65])
    def test_collect(self, p: int, dtype: type, weighted: bool) -> None:
        for n, k in product((0, 1, 97), (1, 6)):
            random = np.random.default_rng(n)
            features, labels = random.normal(size=(n, p)).astype(dtype), random.integers(-1, k + 1, n).astype(np.int32)
            w, out = weights_of(weighted, n), np.full((k, p), np.nan)
            _kernels.collect(unwritable(features), w, unwritable(labels), out)
            np.testing.assert_allclose(out, reference.collect(features, w, labels, k), rtol=1e-12, atol=1e-14)


class TestSortRows:
    @each_dtype
    @pytest.mark.parametrize("d", [1, 2, 5, 64])
    @pytest.mark.parametrize("values", [2, 5, 10**6])
    def test_order(self, d: int, dtype: type, values: int) -> None:
        for n in (0, 1, 2, 500):
            x = np.random.default_rng(n).integers(-values, values, (n, d)).astype(dtype)
            order, is_new = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.uint8)
            _kernels.sort_rows(unwritable(x), order, is_new)
            expected = reference.sort_rows(x)
            np.testing.assert_array_equal(order, expected[0])
            np.testing.assert_array_equal(is_new, expected[1])

    @each_dtype
    def test_columns_that_differ_late(self, dtype: type) -> None:
        x = np.zeros((300, 40), dtype)
        x[:, 39] = np.random.default_rng(0).integers(0, 4, 300)
        order, is_new = np.empty(300, dtype=np.int64), np.empty(300, dtype=np.uint8)
        _kernels.sort_rows(x, order, is_new)
        np.testing.assert_array_equal(order, np.argsort(x[:, 39], kind="stable"))
        assert is_new.sum() == 4

    def test_rows_without_columns_are_equal(self) -> None:
        order, is_new = np.empty(4, dtype=np.int64), np.empty(4, dtype=np.uint8)
        _kernels.sort_rows(np.empty((4, 0)), order, is_new)
        assert order.tolist() == [0, 1, 2, 3] and is_new.tolist() == [1, 0, 0, 0]


class TestStandardUnits:
    """Copies of rows taken in an order, about an origin and scaled."""

    @each_dtype
    @pytest.mark.parametrize("d", [1, 3, 65])
    def test_rows(self, d: int, dtype: type) -> None:
        random, n = np.random.default_rng(d), 200
        x = random.normal(size=(n, d)).astype(dtype)
        order = random.permutation(n)[:150]
        shift, scale = random.normal(size=d), 0.25
        out = np.full((150, d), np.nan, dtype)
        _kernels.standard_rows(unwritable(x), order, scale, shift, out)
        np.testing.assert_allclose(out, (x[order] * scale - shift).astype(dtype), rtol=1e-6, atol=1e-6)

    @pytest.mark.parametrize("at", [-1, 6])
    def test_an_order_names_rows(self, at: int) -> None:
        order = np.full(6, at)
        with pytest.raises(ValueError):
            _kernels.standard_rows(X, order, 1.0, np.zeros(2), np.zeros((6, 2)))


def seeds_of(x: Array, w: Array | None, uniforms: Array) -> list[int]:
    chosen = np.full(len(uniforms), -1, dtype=np.int64)
    _kernels.plus_plus(x, w, uniforms, chosen)
    return [int(i) for i in chosen]


class TestPlusPlus:
    @each_weighting
    @each_dtype
    @pytest.mark.parametrize(("n", "d", "k", "trials"), [(1, 1, 1, 1), (63, 2, 5, 1), (64, 3, 9, 3), (1300, 40, 7, 4)])
    def test_seeds(self, n: int, d: int, k: int, trials: int, dtype: type, weighted: bool) -> None:
        random = np.random.default_rng(n)
        x = random.integers(-50, 50, (n, d)).astype(dtype)
        w = random.integers(0, 4, n).astype(np.float64) + (n == 1) if weighted else None
        uniforms = random.random((k, trials))
        assert seeds_of(unwritable(x), w, unwritable(uniforms)) == reference.plus_plus(x, w, uniforms)

    @each_weighting
    @each_dtype
    def test_pairs_have_their_exact_probabilities(self, dtype: type, weighted: bool, seed: int) -> None:
        """P(a, b) is w_a / W times w_b |b - a|^2 over its sum, with one candidate a seed."""
        x = np.array([[0.0], [1.0], [3.0], [7.0]], dtype)
        w = np.array([1.0, 4.0, 2.0, 0.5]) if weighted else None
        weight = np.ones(4) if w is None else w
        mass = weight[None, :] * (x - x.T) ** 2
        probability = (weight / weight.sum())[:, None] * mass / mass.sum(axis=1, keepdims=True)
        random, counts = np.random.default_rng(seed), np.zeros((4, 4))
        for uniforms in random.random((20_000, 2, 1)):
            counts[tuple(seeds_of(x, w, uniforms))] += 1
        assert not counts.diagonal().any()
        off = ~np.eye(4, dtype=bool)
        assert chisquare(counts[off], counts.sum() * probability[off]).pvalue > 1e-6

    @each_dtype
    def test_more_candidates_leave_less(self, dtype: type) -> None:
        random = np.random.default_rng(0)
        x = random.normal(size=(300, 2)).astype(dtype)

        def left(trials: int) -> float:
            return float(
                np.mean(
                    [
                        reference.squared_distances(x, x[seeds_of(x, None, random.random((8, trials)))])
                        .min(axis=1)
                        .sum()
                        for _ in range(50)
                    ]
                )
            )

        assert left(5) < 0.9 * left(1)

    @each_dtype
    def test_fewer_distinct_rows_than_seeds(self, dtype: type) -> None:
        x = np.repeat(np.array([[0.0, 0.0], [5.0, 5.0]], dtype), 20, axis=0)
        chosen = seeds_of(x, None, np.random.default_rng(0).random((6, 2)))
        assert {i // 20 for i in chosen[:2]} == {0, 1}
        assert all(0 <= i < 40 for i in chosen)

    def test_rows_without_weight_are_never_seeds(self) -> None:
        x, w = np.random.default_rng(0).normal(size=(600, 2)), np.zeros(600)
        w[[3, 511, 512, 599]] = 1.0
        for s in range(20):
            chosen = seeds_of(x, w, np.random.default_rng(s).random((4, 3)))
            assert sorted(chosen) == [3, 511, 512, 599]

    @pytest.mark.parametrize("u", [0.0, 2.0**-54, 1 - 2.0**-53, 1.0])
    def test_extreme_uniforms(self, u: float) -> None:
        x, w = np.random.default_rng(0).normal(size=(1000, 2)), np.ones(1000)
        w[[0, 999]] = 0.0
        assert all(w[i] > 0 for i in seeds_of(x, w, np.full((5, 2), u)))


X = np.zeros((6, 2))
INT6, LONG6, REAL6 = np.zeros(6, dtype=np.int32), np.zeros(6, dtype=np.int64), np.zeros(6)
BYTE6 = np.zeros(6, dtype=np.uint8)
GOOD: dict[str, tuple[Any, ...]] = {
    "assign": (X, None, X[:3], np.zeros((3, 4)), INT6, REAL6),
    "moments": (X, None, X[:3], INT6, np.zeros((3, 4))),
    "distances": (X, X[:3], np.zeros((6, 3))),
    "row_minimum": (X, REAL6, INT6),
    "draw": (X, None, REAL6, INT6, 1.0, REAL6, INT6.copy()),
    "walk": (X, None, REAL6, 1.0, LONG6, REAL6, INT6),
    "collect": (X, None, INT6, np.zeros((3, 2))),
    "sort_rows": (X, LONG6.copy(), BYTE6),
    "plus_plus": (X, None, np.zeros((3, 2)), np.zeros(3, dtype=np.int64)),
    "standard_rows": (X, LONG6, 1.0, np.zeros(2), np.zeros((6, 2))),
}
"""Arguments that each kernel takes."""

ARRAYS = [(name, i) for name, arguments in GOOD.items() for i, a in enumerate(arguments) if isinstance(a, np.ndarray)]
SPOILT: dict[str, Callable[[Array], Any]] = {
    "one row more": lambda a: np.concatenate([a, a[:1]]),
    "one dimension more": lambda a: a[None],
    "flat": lambda a: a.ravel() if a.ndim == 2 else a[0],
    "another dtype": lambda a: a.astype(np.int16),
    "complex": lambda a: a.astype(np.complex128),
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")) if a.dtype.itemsize > 1 else a.astype(">i4"),
    "strided": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "a list": lambda a: a.tolist(),
    "None": lambda a: None,
}

FINE = {
    ("assign", 3, "None"),
    ("assign", 5, "None"),
    ("collect", 3, "one row more"),
    ("plus_plus", 0, "one row more"),
    ("standard_rows", 0, "one row more"),
}
"""What may be left out, and sizes that nothing else has to match."""


class TestBoundary:
    @pytest.mark.parametrize("name", GOOD)
    def test_good_arguments(self, name: str) -> None:
        """They are taken, or a refusal of spoilt ones would say nothing; what is only read stays as it was."""
        before = GOOD[name][0].copy()
        getattr(_kernels, name)(*GOOD[name])
        np.testing.assert_array_equal(GOOD[name][0], before)

    @pytest.mark.parametrize("how", SPOILT)
    @pytest.mark.parametrize(("name", "position"), ARRAYS, ids=[f"{n}-{i}" for n, i in ARRAYS])
    def test_wrong_arrays_are_refused(self, name: str, position: int, how: str) -> None:
        """An exception each time, never a crash."""
        arguments = list(GOOD[name])
        arguments[position] = SPOILT[how](arguments[position])
        if (name, position, how) in FINE:
            getattr(_kernels, name)(*arguments)
        else:
            with pytest.raises((TypeError, ValueError)):
                getattr(_kernels, name)(*arguments)

    @pytest.mark.parametrize("name", [n for n, a in GOOD.items() if a[1] is None])
    def test_weights_must_fit(self, name: str) -> None:
        first, _, *others = GOOD[name]
        with pytest.raises(ValueError, match="weights must have one entry a row"):
            getattr(_kernels, name)(first, np.ones(5), *others)

    @pytest.mark.parametrize(
        ("name", "position"),
        [
            *[("assign", 3), ("assign", 4), ("moments", 4), ("distances", 2), ("row_minimum", 1), ("draw", 6)],
            *[("walk", 6), ("collect", 3), ("sort_rows", 1), ("plus_plus", 3)],
        ],
    )
    def test_outputs_must_be_writable(self, name: str, position: int) -> None:
        arguments = list(GOOD[name])
        arguments[position] = unwritable(arguments[position].copy())
        with pytest.raises(TypeError):
            getattr(_kernels, name)(*arguments)

    def test_precisions_are_not_mixed(self) -> None:
        with pytest.raises(TypeError):
            _kernels.distances(X, X[:3].astype(np.float32), np.zeros((6, 3)))

    def test_no_centres_and_no_states(self) -> None:
        with pytest.raises(ValueError, match="k > 0"):
            _kernels.assign(X, None, X[:0], None, INT6)
        with pytest.raises(ValueError, match="least and argument"):
            _kernels.row_minimum(np.empty((6, 0)), REAL6, INT6)
        with pytest.raises(ValueError, match="at least one row"):
            _kernels.plus_plus(X[:0], None, np.zeros((1, 1)), np.zeros(1, dtype=np.int64))

    @pytest.mark.parametrize("site", [-1, 6])
    def test_a_walk_stays_inside(self, site: int) -> None:
        with pytest.raises(ValueError, match="a site is no row"):
            _kernels.walk(X, None, REAL6, 1.0, np.array([site]), np.zeros(1), INT6)
        with pytest.raises(ValueError, match="z must lie in"):
            _kernels.walk(
                X, None, REAL6, 1.0, np.zeros(1, dtype=np.int64), np.zeros(1), np.full(6, site, dtype=np.int32)
            )

    def test_no_kernel_is_untested(self) -> None:
        others = {"isa", "isas", "cover_search", "cover_climb", "BoxSearch"}  # see test_cover_kernel.py
        others |= {"bump_search", "bump_climb"}  # see test_bump_kernel.py
        others |= {"line_search", "line_climb"}  # see test_line_kernel.py
        others |= {"swap_search", "SwapSearch"}  # see test_swap_kernel.py
        others |= {"bags", "BagsOfSingles", "BagsOfDoubles"}  # see test_bag_kernel.py
        others |= {"grids", "GridsOfSingles", "GridsOfDoubles"}  # see test_grid_kernel.py
        others |= {"softmax_pass", "soft_moments", "bit_losses"}  # see test_softmax_kernel.py
        others |= {"gate_pass"}  # see test_gate_kernel.py
        others |= {"chain_best", "chain_draw", "chain_sums"}  # see tests/solvers/test_chains.py
        others |= {"chain_pass"}  # see tests/laws/test_chain.py
        others |= {"best_intervals"}  # see tests/solvers/test_intervals.py
        others |= {"assign_within"}  # see tests/models/test_kmeans_sizes.py
        others |= {"category_em"}  # see test_categories_kernel.py
        others |= {"gauss_gaps"}  # see test_gauss_gaps.py
        others |= {"response_losses", "response_sums"}  # see tests/solvers/test_response_rows.py
        others |= {"MedoidsF32", "MedoidsF64"}  # see test_bad_sizes.py and tests/models/test_kmedoids.py
        others |= {
            "gauss_energies",
            "gauss_pass",
            "gauss_moments",
            "gauss_step",
            "gauss_factor",
            "gauss_em",
        }  # test_gauss_kernel.py
        others |= {f"regression_{name}" for name in ("pass", "em", "step", "concentrate", "greedy")}
        assert {n for n in dir(_kernels) if not n.startswith("_")} == set(GOOD) | others


def under(isa: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python process whose kernels are those of one instruction set."""
    command = [sys.executable, *arguments]
    environment = os.environ | {"MAJORANT_ISA": isa}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture(scope="module")
def answers() -> dict[str, Array]:
    """What this process's kernels answer."""
    return probe.answers()


class TestInstructionSets:
    @pytest.mark.parametrize("isa", _kernels.isas())
    def test_they_agree(self, isa: str, answers: dict[str, Array], tmp_path: Path) -> None:
        with answers_under(isa, probe.__name__, tmp_path) as theirs:
            assert theirs["isa"] == isa
            assert set(theirs.files) == set(answers)
            for name, mine in answers.items():
                if name.startswith("exact"):
                    np.testing.assert_array_equal(theirs[name], mine, err_msg=name)
                elif name != "isa":
                    rounding = 1e-5 if "single" in name else 1e-12
                    scale = np.abs(mine).max(initial=1.0)
                    np.testing.assert_allclose(theirs[name], mine, rtol=rounding, atol=rounding * scale, err_msg=name)

    def test_the_fastest_is_used(self) -> None:
        done = under("", "-c", "from majorant import _kernels; print(_kernels.isa())")
        assert done.stdout.strip() == _kernels.isas()[-1]
        assert _kernels.isa() in _kernels.isas() and _kernels.isas()[0] == "baseline"

    def test_an_unknown_name_is_answered_by_the_known_ones(self) -> None:
        done = under("v9", "-c", "from majorant import _kernels")
        assert done.returncode == 1
        names = ", ".join(_kernels.isas())
        assert "ImportError: MAJORANT_ISA=v9 is not among the instruction sets" in done.stderr
        assert done.stderr.rstrip().endswith(names)
