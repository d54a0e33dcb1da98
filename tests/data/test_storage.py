"""Rows that stay in their file: every format gives the numbers that are in it, block by block."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from numpy.typing import NDArray

import majorant as mj
from majorant.data import Block, Chunks
from majorant.data.opening import open_rows
from majorant.data.storage import NpyRows, StoredRows, mapped, stored_rows
from majorant.engine import GibbsLimit, minimize

from ..engine.families import k_means

X = np.random.default_rng(0).normal(size=(20_000, 3))
"""Enough rows for several blocks."""


def read(data: Chunks) -> NDArray[Any]:
    """All rows, from one pass."""

    class Stack(list[NDArray[Any]]):
        def __add__(self, other: Any) -> Stack:
            return Stack([*self, *other])

    return np.concatenate(data.map_sum(lambda block: Stack([block.columns[0].copy()])))


def rows_of(data: Chunks) -> StoredRows:
    assert isinstance(data.source, StoredRows)
    return data.source


@pytest.fixture
def npy(tmp_path: Path) -> Callable[[NDArray[Any]], Path]:
    def write(array: NDArray[Any]) -> Path:
        np.save(tmp_path / "rows.npy", array)
        return tmp_path / "rows.npy"

    return write


class TestNpy:
    @pytest.mark.parametrize(
        ("array", "dtype"),
        [
            (X, np.float64),
            (np.asfortranarray(X), np.float64),
            (X.astype(np.float32), np.float32),
            (np.asfortranarray(X.astype(np.float32)), np.float32),
            (X.astype(np.float16), np.float64),
            ((100 * X).astype(np.int8), np.float64),
            ((100 * X).astype(np.int64), np.float64),
            ((100 * np.abs(X)).astype(np.uint16), np.float64),
            (X > 0, np.float64),
            (X.astype(">f8"), np.float64),
            (X.astype(">f4"), np.float64),
            (X[:1], np.float64),
        ],
        ids=["C", "F", "float32", "F float32", "float16", "int8", "int64", "uint16", "bool", ">f8", ">f4", "one row"],
    )
    def test_the_numbers_in_the_file(
        self, array: NDArray[Any], dtype: type, npy: Callable[[NDArray[Any]], Path]
    ) -> None:
        data = open_rows(npy(array))
        for _ in range(2):
            found = read(data)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, array.astype(dtype))
        assert (data.n_units, rows_of(data).n_features) == array.shape
        assert data.total_weight == len(array)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_blocks_are_those_of_memory(self, n_jobs: int, npy: Callable[[NDArray[Any]], Path]) -> None:
        def layout(data: Chunks) -> list[tuple[int, int]]:
            data.n_jobs = n_jobs
            return data.map_sum(lambda block: [(block.first, len(block))])

        assert layout(open_rows(npy(X))) == layout(Chunks(X))
        assert len(layout(Chunks(X))) > 1

    def test_a_fit_is_the_one_in_memory_to_the_last_bit(self, npy: Callable[[NDArray[Any]], Path]) -> None:
        start = X[:3].copy()
        fits = [minimize(k_means(3), data, GibbsLimit(), theta=start) for data in (Chunks(X), open_rows(npy(X)))]
        np.testing.assert_array_equal(fits[0].theta, fits[1].theta)
        assert fits[0].objective == fits[1].objective and len(fits[0].trace) == len(fits[1].trace)

    def test_blocks_keep_their_memory_between_passes(self, npy: Callable[[NDArray[Any]], Path]) -> None:
        data = open_rows(npy(X))

        def visit(block: Block) -> int:
            assert block.memory.setdefault("first", block.first) == block.first
            block.memory["visits"] = block.memory.get("visits", 0) + 1
            return int(block.memory["visits"])

        first, second = data.map_sum(visit), data.map_sum(visit)
        assert second == 2 * first > 2
        assert data.source.n_blocks == first

    def test_weights_are_cut_with_the_rows(self, npy: Callable[[NDArray[Any]], Path]) -> None:
        data, w = open_rows(npy(X)), np.random.default_rng(1).random(len(X))
        rows_of(data).weights = w
        np.testing.assert_allclose(data.map_sum(lambda b: b.total(b.columns[0][:, 0])), w @ X[:, 0], rtol=1e-10)
        assert data.total_weight == w.sum()

    def test_a_view_of_a_map(self, npy: Callable[[NDArray[Any]], Path]) -> None:
        array = np.load(npy(X), mmap_mode="r")
        for part in (array[5:15_000], array[::2], array[:, 1:], array[::-1]):
            np.testing.assert_array_equal(read(Chunks(NpyRows(part))), np.asarray(part))

    @pytest.mark.parametrize("mode", ["c", "r+"])
    def test_pages_that_were_written_to(self, mode: Any, npy: Callable[[NDArray[Any]], Path]) -> None:
        """What counts is the array as it is, also where it differs from its file."""
        array = np.load(npy(X), mmap_mode=mode)
        array[7, 1] = 99.0
        np.testing.assert_array_equal(read(Chunks(NpyRows(array))), np.asarray(array))
        assert read(Chunks(NpyRows(array)))[7, 1] == 99.0

    def test_a_map_with_an_offset(self, tmp_path: Path) -> None:
        path = tmp_path / "raw"
        path.write_bytes(b"heading." + X.tobytes())
        array = np.memmap(path, dtype=np.float64, mode="r", offset=8, shape=X.shape)
        np.testing.assert_array_equal(read(Chunks(NpyRows(array))), X)

    def test_a_map_whose_file_was_replaced_or_removed(self, npy: Callable[[NDArray[Any]], Path]) -> None:
        """The rows are those of the array that was given, whatever has its file's name by now."""
        path = npy(X)
        array = np.load(path, mmap_mode="r")
        np.save(path.with_name("other.npy"), 3 * X)
        path.with_name("other.npy").replace(path)
        np.testing.assert_array_equal(read(Chunks(NpyRows(array))), X)
        path.unlink()
        np.testing.assert_array_equal(read(Chunks(NpyRows(array))), X)
        np.testing.assert_array_equal(np.asarray(array), X)

    @pytest.mark.parametrize("rows_left", [0, 1, 9000])
    def test_a_file_that_shrank_is_noticed(self, rows_left: int, npy: Callable[[NDArray[Any]], Path]) -> None:
        path = npy(X)
        data = open_rows(path)
        assert data.map_sum(len) == len(X)
        npy(X[:rows_left])
        with pytest.raises(ValueError, match="had 20000 rows when they were opened and"):
            data.map_sum(len)

    @pytest.mark.parametrize("shape", [(5,), (2, 3, 4)])
    def test_two_dimensions_are_needed(self, shape: tuple[int, ...], npy: Callable[[NDArray[Any]], Path]) -> None:
        with pytest.raises(ValueError, match="must have two dimensions"):
            open_rows(npy(np.zeros(shape)))

    def test_a_column_is_needed(self, npy: Callable[[NDArray[Any]], Path]) -> None:
        with pytest.raises(ValueError, match=r"no columns; it has shape \(5, 0\)"):
            open_rows(npy(np.zeros((5, 0))))

    @pytest.mark.parametrize("dtype", [np.complex128, "U3", "datetime64[s]"])
    def test_numbers_are_needed(self, dtype: Any, npy: Callable[[NDArray[Any]], Path]) -> None:
        with pytest.raises(TypeError, match="must hold numbers; it holds"):
            open_rows(npy(np.zeros((2, 2)).astype(dtype)))

    def test_columns_have_no_names(self, npy: Callable[[NDArray[Any]], Path]) -> None:
        with pytest.raises(ValueError, match="has no column names"):
            open_rows(npy(X), ["a"])


def write_parquet(table: pa.Table, folder: Path) -> Path:
    pa.parquet.write_table(table, folder / "rows.parquet", row_group_size=3000)
    return folder / "rows.parquet"


def write_feather(table: pa.Table, folder: Path) -> Path:
    pa.feather.write_feather(table, folder / "rows.feather", chunksize=3000)
    return folder / "rows.feather"


def write_arrow(table: pa.Table, folder: Path) -> Path:
    with pa.ipc.new_file(folder / "rows.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=3000)
    return folder / "rows.arrow"


@pytest.fixture(params=[write_parquet, write_feather, write_arrow], ids=["parquet", "feather", "arrow"])
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Path]:
    """Write columns to a file of several row groups or record batches."""
    return lambda columns: request.param(pa.table(columns), tmp_path)


class TestTables:
    COLUMNS: ClassVar = {
        "real": X[:, 0],
        "single": X[:, 1].astype(np.float32),
        "count": (100 * X[:, 2]).astype(np.int32),
        "flag": X[:, 0] > 0,
        "small": (10 * np.abs(X[:, 1])).astype(np.uint8),
    }

    def test_all_columns(self, write: Callable[..., Path]) -> None:
        data = open_rows(write(self.COLUMNS))
        expected = np.column_stack([c.astype(np.float64) for c in self.COLUMNS.values()])
        for _ in range(2):
            np.testing.assert_array_equal(read(data), expected)
        assert rows_of(data).names == tuple(self.COLUMNS) and data.n_units == len(X)

    @pytest.mark.parametrize("names", [["count"], ["flag", "real"], ["small", "count", "single"]], ids=str)
    def test_some_columns_in_the_order_asked_for(self, names: list[str], write: Callable[..., Path]) -> None:
        data = open_rows(write(self.COLUMNS), names)
        np.testing.assert_array_equal(read(data), np.column_stack([self.COLUMNS[n] for n in names]).astype(np.float64))
        assert rows_of(data).names == tuple(names)

    def test_single_precision_stays_single(self, write: Callable[..., Path]) -> None:
        single = {"a": X[:, 0].astype(np.float32), "b": X[:, 1].astype(np.float32)}
        found = read(open_rows(write(single)))
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, np.column_stack(list(single.values())))

    def test_names_with_dots_and_common_beginnings(self, write: Callable[..., Path]) -> None:
        columns = {"a": X[:, 0], "a.b": X[:, 1], "a.b.c": X[:, 2]}
        path = write(columns)
        for names in (["a"], ["a.b"], ["a.b.c", "a"]):
            np.testing.assert_array_equal(read(open_rows(path, names)), np.column_stack([columns[n] for n in names]))

    def test_a_wrong_name_is_answered_by_the_right_ones(self, write: Callable[..., Path]) -> None:
        with pytest.raises(ValueError, match=r"no column 'reel' in rows\.\w+; its columns are real, single, count"):
            open_rows(write(self.COLUMNS), ["reel"])

    def test_no_columns(self, write: Callable[..., Path]) -> None:
        with pytest.raises(ValueError, match="no columns to read"):
            open_rows(write(self.COLUMNS), [])

    @pytest.mark.parametrize(
        "values",
        [["a", "b"], [None, None], pa.array(["a", "b"]).dictionary_encode(), [[1], [2]]],
        ids=["text", "null", "category", "list"],
    )
    def test_columns_of_anything_else_are_named(self, values: Any, write: Callable[..., Path]) -> None:
        path = write({"real": [1.0, 2.0], "other": values})
        with pytest.raises(TypeError, match=r"column 'other' of .* holds .*, not numbers: name others in columns"):
            open_rows(path)
        np.testing.assert_array_equal(read(open_rows(path, ["real"])), [[1], [2]])
        with pytest.raises(TypeError, match=r"column 'other' of .* and give fit the labels as y, an array in memory"):
            open_rows(path, ["real"], target="other")
        with pytest.raises(TypeError, match=r"column 'other' of .* sample_weight is a column of numbers"):
            open_rows(path, ["real"], sample_weight="other")

    def test_labels_of_text_are_given_apart(self, write: Callable[..., Path]) -> None:
        values = np.linspace(-3.0, 3.0, 40)
        labels = np.where(values < 0, "left", "right")
        rows = open_rows(write({"real": values, "side": labels.tolist()}), ["real"])
        model = mj.DiscriminativeLatentClasses(2, random_state=0).fit(rows, labels)
        assert model.classes_.tolist() == ["left", "right"] and (model.predict(rows) == labels).all()

    @pytest.mark.parametrize("kind", [pa.float64(), pa.int32(), pa.bool_()], ids=str)
    def test_missing_values_are_found_by_a_fit(self, kind: Any, write: Callable[..., Path]) -> None:
        gaps = pa.array([1, 0, None, 1], pa.int64()).cast(kind)
        path = write({"real": [1.0, 2.0, 3.0, 5.0], "gaps": gaps})
        with pytest.raises(ValueError, match=r"row 2, column 1 of X is nan: drop rows with missing"):
            mj.KMeans(2).fit(open_rows(path))

    def test_a_fit_is_the_one_in_memory(self, write: Callable[..., Path]) -> None:
        path = write({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
        centres = X[:4].copy()
        stored, plain = (mj.KMeans(4, init=centres, tol=0).fit(rows) for rows in (open_rows(path), X))
        np.testing.assert_allclose(stored.inertia_, plain.inertia_, rtol=1e-10)
        np.testing.assert_allclose(stored.cluster_centers_, plain.cluster_centers_, atol=1e-9)
        np.testing.assert_array_equal(stored.labels_, plain.labels_)
        assert stored.feature_names_in_.tolist() == ["a", "b", "c"]

    @pytest.mark.parametrize("rows_left", [1, 9000])
    def test_a_file_that_shrank_is_noticed(self, rows_left: int, write: Callable[..., Path]) -> None:
        data = open_rows(write({"a": X[:, 0]}))
        assert data.map_sum(len) == len(X)
        write({"a": X[:rows_left, 0]})
        with pytest.raises(ValueError, match=f"had 20000 rows when they were opened and have {rows_left} now"):
            data.map_sum(len)

    @pytest.mark.parametrize(
        ("later", "now"),
        [(None, "no such column"), (np.arange(len(X)), "int64"), (np.arange(len(X)).astype("U"), "string")],
        ids=["gone", "integers", "text"],
    )
    def test_a_column_that_changed_is_noticed(self, later: Any, now: str, write: Callable[..., Path]) -> None:
        data = open_rows(write({"a": X[:, 0], "b": X[:, 1]}))
        read(data)
        write({"a": X[:, 0]} if later is None else {"a": X[:, 0], "b": later})
        with pytest.raises(ValueError, match=f"column 'b' of .* was double when it was opened and is {now} now"):
            read(data)

    def test_a_column_asked_for_twice(self, write: Callable[..., Path]) -> None:
        with pytest.raises(ValueError, match="column 'flag' is named twice"):
            open_rows(write(self.COLUMNS), ["flag", "real", "flag"])

    def test_a_name_alone_is_no_sequence_of_names(self, write: Callable[..., Path]) -> None:
        with pytest.raises(TypeError, match=r"sequence of names; got 'real': write \['real'\]"):
            open_rows(write(self.COLUMNS), "real")

    @pytest.mark.parametrize("writer", [write_parquet, write_feather, write_arrow])
    def test_two_columns_of_one_name(self, writer: Callable[..., Path], tmp_path: Path) -> None:
        path = writer(pa.Table.from_arrays([pa.array(c) for c in X.T], names=["a", "b", "a"]), tmp_path)
        with pytest.raises(ValueError, match="has two columns 'a'"):
            open_rows(path)
        np.testing.assert_array_equal(read(open_rows(path, ["b"]))[:, 0], X[:, 1])

    @pytest.mark.parametrize("at", [0.0, 0.2, 0.5, 0.9])
    @pytest.mark.parametrize("damage", ["cut", "overwritten", "without its beginning"])
    def test_damage_is_one_error(self, damage: str, at: float, write: Callable[..., Path]) -> None:
        path = write(self.COLUMNS)
        content, where = path.read_bytes(), int(at * path.stat().st_size)
        spoiled = {
            "cut": content[:where],
            "overwritten": content[:where] + b"\xff" * 500 + content[where + 500 :],
            "without its beginning": content[max(where, 8) :],
        }[damage]
        path.write_bytes(spoiled)
        try:
            read(open_rows(path))  # what was overwritten may have been numbers
        except ValueError as error:
            assert "is damaged or of another format" in str(error) or "now" in str(error)


class TestOpening:
    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="no file"):
            open_rows(tmp_path / "nothing.npy")
        with pytest.raises(FileNotFoundError, match="no file"):
            open_rows(tmp_path)

    def test_another_kind_of_file(self, tmp_path: Path) -> None:
        (tmp_path / "rows.csv").write_text("1,2\n", encoding="utf-8")
        with pytest.raises(ValueError, match=r"rows.csv: rows are read from .npy, .parquet, .arrow or .feather"):
            open_rows(tmp_path / "rows.csv")

    @pytest.mark.parametrize("suffix", [".npy", ".parquet", ".arrow", ".feather"])
    def test_a_file_that_was_written_to_is_noticed(self, suffix: str, tmp_path: Path) -> None:
        """In a file of the same size a fit would silently find other rows."""
        path = tmp_path / "rows.npy"
        if suffix == ".npy":
            np.save(path, X)
        else:
            table = pa.table({name: X[:, j] for j, name in enumerate("abc")})
            path = {".parquet": write_parquet, ".feather": write_feather, ".arrow": write_arrow}[suffix](
                table, tmp_path
            )
        data = open_rows(path)
        assert data.map_sum(len) == len(X)
        before = path.read_bytes()
        path.write_bytes(before)
        os.utime(path, ns=(0, 10**9))  # clocks of files may be coarse
        with pytest.raises(ValueError, match=rf"rows{suffix} was written to after it had been opened: open it again"):
            data.map_sum(len)

    @pytest.mark.parametrize("written", ["smaller", "with more rows", "in the course of a pass"])
    @pytest.mark.parametrize("suffix", [".npy", ".parquet", ".arrow", ".feather"])
    def test_another_size_is_noticed_too(self, suffix: str, written: str, tmp_path: Path) -> None:
        """Tables of as many rows and the same columns may have other sizes."""

        def write(x: NDArray[Any]) -> Path:
            if suffix == ".npy":
                np.save(tmp_path / "rows.npy", x)
                return tmp_path / "rows.npy"
            table = pa.table({name: x[:, j] for j, name in enumerate("abc")})
            return {".parquet": write_parquet, ".feather": write_feather, ".arrow": write_arrow}[suffix](
                table, tmp_path
            )

        path = write(X)
        data = open_rows(path)
        assert data.map_sum(len) == len(X)
        if written == "in the course of a pass":
            blocks = iter(rows_of(data).blocks())
            next(blocks)
            with path.open("ab") as file:
                file.write(b"more")
            with pytest.raises(ValueError, match="was written to after it had been opened"):
                list(blocks)
            return
        write(np.zeros_like(X) if written == "smaller" else np.vstack([X, X]))
        if suffix == ".npy" and written == "smaller":
            os.utime(path, ns=(0, 10**9))  # the size is the same
        with pytest.raises(ValueError, match=r"was written to after it had been opened|rows when they were opened"):
            data.map_sum(len)

    @pytest.mark.parametrize("suffix", [".npy", ".parquet", ".arrow", ".feather"])
    def test_a_file_that_is_not_what_it_says(self, suffix: str, tmp_path: Path) -> None:
        path = tmp_path / f"rows{suffix}"
        path.write_bytes(b"something else altogether, and long enough")
        with pytest.raises(ValueError, match=rf"^rows{suffix} cannot be read as a {suffix} file"):
            open_rows(path)

    def test_what_is_streamed(self, npy: Callable[[NDArray[Any]], Path], monkeypatch: pytest.MonkeyPatch) -> None:
        path = npy(X)
        array = np.load(path, mmap_mode="r")
        assert stored_rows(X) is None and stored_rows(array) is None  # small maps are read into memory
        monkeypatch.setattr("majorant.data.storage.STREAM_BYTES", 1000)
        assert isinstance(stored_rows(array), NpyRows) and stored_rows(X) is None
        data = open_rows(path)
        found = stored_rows(data)
        assert isinstance(found, NpyRows) and found.n_units == len(X)
        with pytest.raises(TypeError, match="pass the array itself"):
            stored_rows(Chunks(X))

    def test_rows_seen_through_a_function(self, npy: Callable[[NDArray[Any]], Path]) -> None:
        source = rows_of(open_rows(npy(X)))
        doubled = Chunks(mapped(source, lambda x: 2 * x))
        np.testing.assert_array_equal(read(doubled), 2 * X)
        assert doubled.n_units == len(X) and doubled.total_weight == len(X)
        blocks = zip(doubled.source.blocks(), source.blocks(), strict=True)
        assert all(a.memory is b.memory for a, b in blocks)
