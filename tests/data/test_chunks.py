"""Passes over data in memory: the order of sums, memory beside blocks, threads, interrupts."""

from __future__ import annotations

import threading
from typing import Any

import joblib
import numpy as np
import pytest
from scipy import sparse

from majorant.data import Block, Chunks
from majorant.data.chunks import block_rows, effective_threads


def numbers(n: int = 100) -> Chunks:
    """Rows 0 to n - 1 in blocks of 9."""
    return Chunks(np.arange(n, dtype=np.float64)[:, None], rows=9)


class TestMapSum:
    @pytest.mark.parametrize("n_jobs", [None, 1, 2, 4, -1])
    def test_results_are_added_in_the_order_of_the_rows(self, n_jobs: int | None) -> None:
        data = Chunks(np.arange(100)[:, None], rows=9, n_jobs=n_jobs)
        data.n_jobs = max(n_jobs or 1, 1)  # threads even where the machine has one processor
        assert data.map_sum(lambda block: block.columns[0][:, 0].tolist()) == list(range(100))

    def test_the_order_survives_a_slow_first_block(self) -> None:
        data, others = Chunks(np.arange(100)[:, None], rows=9), threading.Event()
        data.n_jobs = 2

        def visit(block: Block) -> list[int]:
            if block.first == 0:
                assert others.wait(timeout=30)
            others.set()
            return [block.first]

        assert data.map_sum(visit) == list(range(0, 100, 9))

    def test_a_stream_is_not_read_ahead_of_its_sums(self) -> None:
        """At most two blocks a thread are under way, so that data larger than memory never lie in it whole."""
        read, added = 0, 0
        most_waiting = 0

        class Counted:
            n_units, total_weight, n_blocks = 400, 400.0, 100

            def blocks(self) -> Any:
                nonlocal read, most_waiting
                for i in range(100):
                    read += 1
                    most_waiting = max(most_waiting, read - added)
                    yield Block(4 * i, (np.zeros((4, 1)),))

        class Sum:
            def __add__(self, other: Sum) -> Sum:
                nonlocal added
                added += 1
                return self

        data = Chunks(Counted())
        data.n_jobs = 3
        data.map_sum(lambda block: Sum())
        assert read == 100 and added == 99
        assert most_waiting <= 2 * 3 + 2

    @pytest.mark.parametrize("n_jobs", [1, 2])
    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_errors_and_interrupts_end_a_pass_between_blocks(self, n_jobs: int, error: type[BaseException]) -> None:
        data, seen = numbers(1000), []
        data.n_jobs = n_jobs

        def visit(block: Block) -> int:
            seen.append(block.first)
            if block.first == 18:
                raise error("at the third block")
            return 0

        with pytest.raises(error, match="at the third block"):
            data.map_sum(visit)
        assert len(seen) < 20
        assert data.map_sum(len) == 1000  # the data can be used again

    def test_every_row_is_visited_once(self) -> None:
        for n in (1, 8, 9, 10, 100):
            assert numbers(n).map_sum(lambda block: block.columns[0].sum()) == n * (n - 1) / 2

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_a_source_without_blocks_is_refused(self, n_jobs: int) -> None:
        class Empty:
            n_units, total_weight, n_blocks = 0, 0.0, 2

            def blocks(self) -> Any:
                return iter(())

        data = Chunks(Empty())
        data.n_jobs = n_jobs
        with pytest.raises(ValueError, match="the data have no rows"):
            data.map_sum(len)

    def test_passes_are_counted(self) -> None:
        data = numbers()
        assert data.n_passes == 0
        data.map_sum(len)
        data.map_sum(len)
        assert data.n_passes == 2

    def test_no_rows_are_one_empty_block(self) -> None:
        assert Chunks(np.empty((0, 3))).map_sum(len) == 0

    def test_memory_stays_with_its_block(self) -> None:
        data = numbers()

        def visit(block: Block) -> int:
            count = block.memory.get("visits", 0) + 1
            assert block.memory.setdefault("first", block.first) == block.first
            block.memory["visits"] = count
            return int(count)

        assert [data.map_sum(visit) for _ in range(3)] == [12, 24, 36]


class TestBlocks:
    def test_columns_are_cut_alike(self) -> None:
        x, y = np.arange(40.0).reshape(20, 2), np.arange(20)
        s = sparse.csr_matrix(x)
        for block in Chunks(x, y, s, rows=7).source.blocks():
            rows = slice(block.first, block.first + len(block))
            np.testing.assert_array_equal(block.columns[0], x[rows])
            np.testing.assert_array_equal(block.columns[1], y[rows])
            np.testing.assert_array_equal(block.columns[2].toarray(), x[rows])

    def test_they_are_views(self) -> None:
        x = np.zeros((20, 2))
        assert all(np.shares_memory(block.columns[0], x) for block in Chunks(x, rows=7).source.blocks())

    def test_totals_are_weighted(self) -> None:
        x, w = np.arange(20, dtype=np.float32)[:, None], np.linspace(0, 1, 20)
        assert Chunks(x).map_sum(lambda b: b.total(b.columns[0][:, 0])) == 190
        weighted = Chunks(x, weights=w, rows=7)
        np.testing.assert_allclose(weighted.map_sum(lambda b: b.total(b.columns[0][:, 0])), w @ x[:, 0], rtol=1e-15)
        assert weighted.total_weight == w.sum() and weighted.n_units == 20
        assert Chunks(x).total_weight == 20.0

    def test_many_small_numbers_are_summed_in_double(self) -> None:
        x = np.full((100_000, 1), 0.1, dtype=np.float32)
        total = Chunks(x).map_sum(lambda b: b.total(b.columns[0][:, 0]))
        np.testing.assert_allclose(total, 100_000 * float(np.float32(0.1)), rtol=1e-12)

    def test_unequal_lengths_are_refused(self) -> None:
        with pytest.raises(ValueError, match=r"columns must have the same number of rows; got \[3, 4\]"):
            Chunks(np.zeros((3, 1)), np.zeros((4, 1)))
        with pytest.raises(ValueError, match=r"weights must have shape \(3,\); got \(4,\)"):
            Chunks(np.zeros((3, 1)), weights=np.ones(4))

    def test_weights_of_a_source_are_its_own(self) -> None:
        source = Chunks(np.zeros((3, 1))).source
        assert Chunks(source).n_units == 3
        for given in ({"weights": np.ones(3)}, {"rows": 2}):
            with pytest.raises(ValueError, match="a source brings its own"):
                Chunks(source, **given)

    def test_the_layout_is_a_function_of_the_width_alone(self) -> None:
        rows = [block_rows(1 << power) for power in range(31)]
        assert rows == sorted(rows, reverse=True) and rows[0] == block_rows(0)
        assert 1 <= rows[-1] < rows[0]
        narrow, wide = (Chunks(np.zeros((20000, d))) for d in (2, 200))
        assert [b.first for b in narrow.source.blocks()] == list(range(0, 20000, block_rows(16)))
        assert wide.source.n_blocks > narrow.source.n_blocks


def test_number_of_threads() -> None:
    assert effective_threads(None) == effective_threads(1) == 1
    assert effective_threads(-1) >= 1
    assert effective_threads(1000) <= effective_threads(-1)


@pytest.mark.skipif(joblib.cpu_count() < 2, reason="one processor runs one thread, whatever is asked for")
def test_none_is_what_the_joblib_context_says() -> None:
    with joblib.parallel_config("threading", n_jobs=2):
        assert effective_threads(None) == 2
        assert effective_threads(1) == 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_come_back_in_their_order(n_jobs: int) -> None:
    x = np.arange(50.0).reshape(25, 2)
    data = Chunks(x, n_jobs=n_jobs, rows=7)
    np.testing.assert_array_equal(data.map_rows(lambda block: 2 * block.columns[0], (2,)), 2 * x)
    sums = data.map_rows(lambda block: block.columns[0].sum(axis=1), (), np.float32)
    assert sums.dtype == np.float32 and sums.tolist() == x.sum(axis=1).tolist()
    assert data.n_passes == 2


def test_rows_of_a_part_and_of_a_part_of_it_are_those_of_the_masks() -> None:
    x = np.arange(300.0)
    data = Chunks(x[:, None], rows=64)
    mask = np.arange(300) % 3 > 0
    again = np.arange(200) % 7 == 2
    part = data.part(mask)
    of_part = part.part(again)
    np.testing.assert_array_equal(part.map_rows(lambda block: block.columns[0][:, 0], ()), x[mask])
    np.testing.assert_array_equal(of_part.map_rows(lambda block: block.columns[0][:, 0], ()), x[mask][again])
    assert of_part.map_sum(lambda block: block.columns[0].sum()) == x[mask][again].sum()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_joined_blocks_have_the_rows_weights_and_memories_of_theirs_and_cross_no_chunk(n_jobs: int) -> None:
    x, weights = np.arange(100.0), np.linspace(1, 2, 100)
    memories: list[dict[str, Any]] = [{} for _ in range(10)]

    class Chunked:
        n_units, total_weight, n_blocks = 100, float(weights.sum()), 10

        def blocks(self) -> Any:
            for i in range(10):
                at = slice(10 * i, 10 * i + 10)
                yield Block(10 * i, (x[at, None],), weights[at], memories[i], chunk=i // 5)

    data = Chunks(Chunked(), n_jobs=n_jobs).joined(20)
    for visits in (1, 2):

        def visit(block: Block) -> list[tuple[int, int, float]]:
            block.memory["visits"] = block.memory.get("visits", 0) + 1
            assert block.memory["visits"] == visits  # noqa: B023
            return [(block.chunk, len(block), block.total(block.columns[0][:, 0]))]

        seen = data.map_sum(visit)
        assert [(chunk, size) for chunk, size, _ in seen] == [(0, 20), (0, 20), (0, 10), (1, 20), (1, 20), (1, 10)]
        assert sum(total for *_, total in seen) == pytest.approx(float(weights @ x))
    np.testing.assert_array_equal(data.map_rows(lambda block: block.columns[0][:, 0], ()), x)
