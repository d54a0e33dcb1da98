"""Moments of a regression: what is summed, chunks, weights, precision, identifiability."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from majorant.data import Block, Chunks
from majorant.solvers.symmetric_tensors import multiplicities, powers
from majorant.starts.regression_moments import ORDERS, RegressionMoments, regression_moments

Array = NDArray[Any]


def rows(n: int, d: int, seed: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    return random.normal(size=(n, d)), random.normal(size=n)


def fields(moments: RegressionMoments) -> list[Array]:
    return [*moments.x, *moments.xy, moments.y]


def assert_agrees_with_products(moments: RegressionMoments, x: Array, y: Array, w: Array, rtol: float = 1e-12) -> None:
    """Against products written out row by row."""
    share, d = w / w.sum(), x.shape[1]
    for p in ORDERS:
        phi = powers(x, p) * multiplicities(d, p)
        expected = [
            (moments.gram(p), np.einsum("n,ni,nj->ij", share, phi, phi)),
            (moments.target(p), np.einsum("n,ni,n->i", share, phi, y**p)),
        ]
        if p == 2:
            expected.append((moments.of_squares(), np.einsum("n,ni->i", share, phi)))
        if p == 3:
            expected.append((moments.of_features(), np.einsum("n,ni,nj->ij", share, phi, x)))
        for got, want in expected:
            np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * np.abs(want).max())
    np.testing.assert_allclose(moments.response_moments, [share @ y**q for q in range(7)], rtol=rtol, atol=rtol)
    assert moments.total_weight == pytest.approx(w.sum(), rel=1e-14)


@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 50), st.booleans(), st.booleans(), st.integers(0, 99))
def test_against_products_row_by_row(n: int, d: int, block: int, constant: bool, weighted: bool, seed: int) -> None:
    x, y = rows(n, d, seed)
    w = np.random.default_rng(seed + 1).uniform(0, 3, n) if weighted else np.ones(n)
    moments = regression_moments(Chunks(x, y, weights=w if weighted else None, rows=block), constant=constant)
    assert moments.n_features == d + constant and moments.has_constant == constant
    assert_agrees_with_products(moments, np.column_stack([x, np.ones(n)]) if constant else x, y, w)


def test_many_features_are_worked_on_in_tiles(seed: int) -> None:
    x, y = rows(4000, 8, seed)
    assert_agrees_with_products(regression_moments(Chunks(x, y)), x, y, np.ones(4000), rtol=1e-11)


def test_chunks_add_up(seed: int) -> None:
    x, y = rows(700, 3, seed)
    whole = regression_moments(Chunks(x, y, rows=700))
    apart = regression_moments(Chunks(x, y, rows=100))
    joined = regression_moments(Chunks(x[:250], y[:250])) + regression_moments(Chunks(x[250:], y[250:]))
    for a, b, c in zip(fields(whole), fields(apart), fields(joined), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-10)
        np.testing.assert_allclose(c, a, rtol=1e-12, atol=1e-10)


def test_weights_are_repeats(seed: int) -> None:
    x, y = rows(60, 3, seed)
    times = np.random.default_rng(seed).integers(0, 4, 60)
    weighted = regression_moments(Chunks(x, y, weights=times.astype(float)))
    repeated = regression_moments(Chunks(np.repeat(x, times, axis=0), np.repeat(y, times)))
    for a, b in zip(fields(weighted), fields(repeated), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_change_no_bit(n_jobs: int, seed: int) -> None:
    x, y = rows(500, 3, seed)
    one, many = Chunks(x, y, rows=37), Chunks(x, y, rows=37)
    many.n_jobs = n_jobs
    for a, b in zip(fields(regression_moments(one)), fields(regression_moments(many)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_single_precision_is_summed_in_double(seed: int) -> None:
    x, y = rows(5000, 2, seed)
    x, y = x.astype(np.float32), y.astype(np.float32)
    moments = regression_moments(Chunks(x, y))
    assert all(s.dtype == np.float64 for s in fields(moments))
    assert_agrees_with_products(moments, x.astype(np.float64), y.astype(np.float64), np.ones(5000))


def test_a_stream_is_read_once_and_block_by_block(seed: int) -> None:
    x, y = rows(300, 2, seed)
    read = []

    class Stream:
        n_units, total_weight, n_blocks = 300, 300.0, 2

        def blocks(self) -> Any:
            for a in range(0, 300, 60):
                read.append(a)
                yield Block(a, (x[a : a + 60], y[a : a + 60]))

    streamed = regression_moments(Chunks(Stream()))
    assert read == [0, 60, 120, 180, 240]
    for a, b in zip(fields(streamed), fields(regression_moments(Chunks(x, y, rows=60))), strict=True):
        np.testing.assert_array_equal(a, b)


class TestIdentifiability:
    def test_independent_features_are_identified(self, seed: int) -> None:
        moments = regression_moments(Chunks(*rows(2000, 3, seed)))
        assert [(i.rank, i.n_coefficients) for i in moments.identifiability] == [(3, 3), (6, 6), (10, 10)]
        assert all(1 <= i.condition < 1e3 for i in moments.identifiability)

    def test_powers_of_one_variable_are_not(self) -> None:
        """The paper's own map: 10 second-order coefficients, 9 distinct monomials."""
        t = np.random.default_rng(0).uniform(-1, 1, 5000)
        moments = regression_moments(Chunks(np.column_stack([np.ones(5000), t, t**4, t**7]), t))
        assert str(moments).split("; ")[:2] == [
            "first-order moments: 4 of 4 coefficients identified",
            "second-order moments: 9 of 10 coefficients identified",
        ]
        assert moments.identifiability[2].rank < 17 and moments.identifiability[2].n_coefficients == 20

    def test_collinear_columns_are_found(self, seed: int) -> None:
        x, y = rows(500, 2, seed)
        moments = regression_moments(Chunks(np.column_stack([x, x[:, 0]]), y))
        assert [i.rank for i in moments.identifiability] == [2, 3, 4]

    def test_a_column_of_zeros_is_found(self, seed: int) -> None:
        x, y = rows(500, 2, seed)
        moments = regression_moments(Chunks(np.column_stack([x, np.zeros(500)]), y))
        assert [i.rank for i in moments.identifiability] == [2, 3, 4]

    def test_few_rows_identify_as_many_coefficients(self, seed: int) -> None:
        moments = regression_moments(Chunks(*rows(4, 3, seed)))
        assert [i.rank for i in moments.identifiability] == [3, 4, 4]

    def test_units_do_not_matter(self, seed: int) -> None:
        x, y = rows(500, 3, seed)
        a, b = regression_moments(Chunks(x, y)), regression_moments(Chunks(x * [1e-9, 1.0, 1e9], 1e-6 * y))
        for i, j in zip(a.identifiability, b.identifiability, strict=True):
            assert i.rank == j.rank and i.condition == pytest.approx(j.condition, rel=1e-6)


class TestBadInput:
    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e60])
    @pytest.mark.parametrize("where", ["x", "y"])
    def test_numbers_that_cannot_be_summed(self, bad: float, where: str) -> None:
        x, y = rows(20, 2, 0)
        (x if where == "x" else y)[3] = bad
        with pytest.raises(ValueError, match="drop or rescale"):
            regression_moments(Chunks(x, y))

    def test_columns_of_other_shapes(self) -> None:
        with pytest.raises(ValueError, match="x must be a matrix"):
            regression_moments(Chunks(np.ones(5), np.ones(5)))
        with pytest.raises(ValueError, match=r"\(5, 2\) and \(5, 1\)"):
            regression_moments(Chunks(np.ones((5, 2)), np.ones((5, 1))))
