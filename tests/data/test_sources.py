"""Rows from folders of files and from functions, with their target and weights: the same answers as from memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

import majorant as mj
from majorant.data.chunks import Block, Chunks, added
from majorant.data.storage import StoredRows, mapped

from ..estimators import assert_same_fit

RANDOM = np.random.default_rng(0)
N = 6000
X = RANDOM.normal(size=(N, 3)) + np.repeat([[0.0, 0, 0], [4, 0, 0], [0, 4, 0]], N // 3, axis=0)[RANDOM.permutation(N)]
Y = np.where(np.arange(N) % 2, X @ [1.0, 2, 3], -X @ [2.0, 1, 1]) + 0.2 * RANDOM.normal(size=N)
W = RANDOM.uniform(0.5, 2, size=N)
CUTS = [0, 1000, 1001, 3500, N]
"""Chunks of very different lengths, one row among them."""

FITS: dict[str, Callable[[Any], Any]] = {
    "kmeans": lambda rows: mj.KMeans(3, random_state=0).fit(rows),
    "gaussian": lambda rows: mj.GaussianMixture(3, random_state=0).fit(rows),
    "regression": lambda rows: mj.RegressionMixture(2, random_state=0).fit(rows),
}


def parts() -> Iterator[tuple[NDArray[Any], ...]]:
    for a, b in pairwise(CUTS):
        yield X[a:b], Y[a:b], W[a:b]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files, a row group a chunk, the first two chunks in the first one; and what Spark leaves beside them."""
    (tmp_path / "rows" / "deeper").mkdir(parents=True)
    for path, cuts in (("rows/a.parquet", CUTS[:3]), ("rows/deeper/b.parquet", CUTS[2:])):
        schema = pa.schema([(name, pa.float64()) for name in ("w", "a", "b", "c", "y")])
        with pa.parquet.ParquetWriter(tmp_path / path, schema) as writer:
            for i, j in pairwise(cuts):
                columns = [W[i:j], *X[i:j].T, Y[i:j]]
                writer.write_table(pa.table(dict(zip(schema.names, columns, strict=True))), row_group_size=j - i)
    (tmp_path / "rows" / "_SUCCESS").write_text("")
    (tmp_path / "rows" / "_temporary.parquet").write_text("half written")
    return tmp_path / "rows"


def opened(folder: Path, **changed: Any) -> Chunks:
    return mj.open_rows(folder, **{"target": "y", "sample_weight": "w", **changed})


class TestFits:
    @pytest.mark.parametrize("name", FITS)
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_equal_chunks_give_equal_answers_wherever_they_are(self, name: str, n_jobs: int, folder: Path) -> None:
        from_files = FITS[name](opened(folder, n_jobs=n_jobs))
        assert_same_fit(from_files, FITS[name](mj.open_rows(parts)))
        assert from_files.feature_names_in_.tolist() == ["a", "b", "c"]

    @pytest.mark.parametrize("name", FITS)
    def test_other_chunks_agree_to_rounding(self, name: str, folder: Path) -> None:
        one, other = FITS[name](opened(folder)), FITS[name](mj.open_rows(lambda: [(X, Y, W)]))
        attribute = {"kmeans": "cluster_centers_", "gaussian": "means_", "regression": "coef_"}[name]
        np.testing.assert_allclose(getattr(one, attribute), getattr(other, attribute), rtol=1e-10, atol=1e-10)

    def test_weights_and_target_are_those_of_memory(self, folder: Path) -> None:
        plain = mj.KMeans(3, random_state=0).fit(X, sample_weight=W)
        np.testing.assert_allclose(FITS["kmeans"](opened(folder)).inertia_, plain.inertia_, rtol=1e-9)
        lines = mj.RegressionMixture(2, random_state=0).fit(X, Y, sample_weight=W)
        streamed = FITS["regression"](opened(folder))
        np.testing.assert_allclose(streamed.coef_, lines.coef_, rtol=1e-5)
        np.testing.assert_allclose(streamed.log_likelihood_, lines.log_likelihood_, rtol=1e-9)
        np.testing.assert_allclose(streamed.predict_proba(opened(folder)), lines.predict_proba(X, Y), atol=1e-5)

    @pytest.mark.parametrize("name", ["kmeans", "gaussian"])
    def test_equal_weights_are_no_weights_to_rounding(self, name: str) -> None:
        fit = FITS[name]
        one, other = fit(mj.open_rows(lambda: [(X, Y, np.full(N, 2.0))])), fit(mj.open_rows(lambda: [X]))
        attribute = {"kmeans": "cluster_centers_", "gaussian": "means_"}[name]
        np.testing.assert_allclose(getattr(one, attribute), getattr(other, attribute), rtol=1e-10)

    def test_responsibilities_that_take_too_much_are_left_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("majorant.models.regression_mixture.estimator.KEPT_BYTES", 1000)
        model = FITS["regression"](mj.open_rows(parts))
        assert model.responsibilities_ is None and model.trimmed_ is None
        assert "predict_proba gives" in str(model.summary()) and "6000 rows" in str(model.summary()).replace(",", "")
        assert model.predict_proba(mj.open_rows(parts)).shape == (N, 2)
        monkeypatch.undo()
        whole = FITS["regression"](mj.open_rows(parts))
        assert whole.responsibilities_.shape == (N, 2)
        whole.responsibilities_, whole.trimmed_, whole.n_samples_fit_ = None, None, N
        assert_same_fit(model, whole)

    def test_a_race_on_a_stream_reads_it_only_to_follow_its_optima(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("majorant.models.regression_mixture.read.SAMPLE_BYTES", 8 * 4 * 2500)
        monkeypatch.setattr("majorant.densities.regression.IN_ONE_CALL", 2000)
        passes = 0

        def counted() -> Iterator[tuple[NDArray[Any], ...]]:
            nonlocal passes
            passes += 1
            return parts()

        model = FITS["regression"](mj.open_rows(counted))
        followed = sum(start.converged for start in model.search_.starts)
        assert followed >= 2 and passes < 20 + model.n_iter_ + 40 * len(model.optima_)
        assert "on a sample of 2500 of 6000 rows, scaled to the weight of all" in model.search_.note
        plain = mj.RegressionMixture(2, random_state=0).fit(X, Y, sample_weight=W)
        np.testing.assert_allclose(model.log_likelihood_, plain.log_likelihood_, rtol=1e-9)
        np.testing.assert_allclose(model.search_.best, plain.log_likelihood_, rtol=0.1)
        np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-5)

    def test_two_fits_of_one_opening_do_not_disturb_each_other(self, folder: Path) -> None:
        rows = opened(folder, sample_weight=None, columns=["a", "b", "c"])
        first = mj.KMeans(3, random_state=0).fit(rows, sample_weight=W)
        mj.RegressionMixture(2, random_state=0).fit(rows)
        assert_same_fit(first, mj.KMeans(3, random_state=0).fit(rows, sample_weight=W))


class TestColumns:
    def test_rows_of_another_format_are_not_left_out_silently(self, tmp_path: Path) -> None:
        pa.parquet.write_table(pa.table({"a": [1.0, 2.0]}), tmp_path / "1.parquet")
        (tmp_path / "_SUCCESS").touch()
        (tmp_path / "notes.txt").touch()
        assert mj.open_rows(tmp_path).n_units == 2
        (tmp_path / "2.csv").write_text("a\n3\n")
        with pytest.raises(ValueError, match=r"holds 2.csv besides Parquet files, whose rows would be ignored"):
            mj.open_rows(tmp_path)

    def test_all_but_those_with_a_role(self, folder: Path) -> None:
        source = opened(folder).source
        assert isinstance(source, StoredRows)
        assert source.names == ("a", "b", "c") and source.has_target and source.has_weights
        assert opened(folder, columns=["c"]).source.n_features == 1  # type: ignore[attr-defined]
        np.testing.assert_allclose(source.total_weight, W.sum(), rtol=1e-12)

    def test_a_column_with_two_roles(self, folder: Path) -> None:
        with pytest.raises(ValueError, match="column 'y' is named twice"):
            opened(folder, columns=["a", "y"])

    def test_files_of_other_columns(self, folder: Path) -> None:
        pa.parquet.write_table(
            pa.table({"w": [1.0], "a": [1], "b": [1.0], "c": [1.0], "y": [1.0]}), folder / "z.parquet"
        )
        with pytest.raises(
            ValueError, match=r"column 'a' of z.parquet was double in a.parquet and is int64 in z.parquet"
        ):
            opened(folder)

    def test_a_folder_without_tables(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"no file in .* ends in \.parquet"):
            mj.open_rows(tmp_path)

    @pytest.mark.parametrize("option", ["columns", "target", "sample_weight"])
    def test_what_has_no_names(self, option: str, tmp_path: Path) -> None:
        np.save(tmp_path / "rows.npy", X)
        for source in (tmp_path / "rows.npy", parts):
            with pytest.raises(ValueError, match=f"no column names: leave {option} out"):
                mj.open_rows(source, **{option: "a"})  # type: ignore[arg-type]

    def test_a_missing_target(self, folder: Path) -> None:
        with pytest.raises(ValueError, match="come without a target: open them with target=, or give y"):
            mj.RegressionMixture(2).fit(opened(folder, target=None))
        with pytest.raises(ValueError, match="opened with a target column: leave y out"):
            mj.RegressionMixture(2).fit(opened(folder), Y)
        with pytest.raises(ValueError, match="opened with a column of weights: leave sample_weight out"):
            mj.KMeans(2).fit(opened(folder), sample_weight=W)

    @pytest.mark.parametrize(
        ("y", "w", "message"),
        [
            ([1.0, np.nan, 1], [1.0, 1, 1], "row 1 of y is nan: drop such rows"),
            ([1.0, 2, 1], [1.0, 1, -1], "weights must be finite and not negative; row 2 has -1"),
            ([1.0, 2, 1], [1.0, np.nan, 1], "weights must be finite and not negative; row 1 has nan"),
            ([1.0, 2, 1], [0.0, 0, 0], "the weight is zero for every row"),
        ],
    )
    def test_numbers_that_cannot_be_used(self, y: list[float], w: list[float], message: str) -> None:
        rows = mj.open_rows(lambda: [(X[:3], np.array(y), np.array(w))])
        with pytest.raises(ValueError, match=message):
            mj.RegressionMixture(1).fit(rows)


class TestFunctions:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (X[:, 0], r"must give arrays \(rows, columns\)"),
            (np.array([["a"]]), r"must give arrays \(rows, columns\)"),
            ((), r"must give arrays \(rows, columns\)"),
            ((X, Y, W, W), r"must give arrays \(rows, columns\)"),
            ((X, Y[1:]), "y must be 6000 numbers, one per row"),
            ((X, Y, W.astype(str)), "weights must be 6000 numbers"),
        ],
        ids=["one dimension", "text", "nothing", "too much", "short y", "text for weights"],
    )
    def test_what_is_no_array(self, given: Any, message: str) -> None:
        with pytest.raises(TypeError, match=message):
            mj.open_rows(lambda: [given])

    def test_no_rows(self) -> None:
        for given in ([], [X[:0]]):
            with pytest.raises(ValueError, match="gives no rows"):
                mj.open_rows(lambda given=given: given)  # type: ignore[misc]

    def test_an_iterator_that_is_used_up_is_noticed(self) -> None:
        once = iter([X])
        rows = mj.open_rows(lambda: once)
        with pytest.raises(ValueError, match="had 6000 rows when they were opened and have 0 now"):
            mj.KMeans(2).fit(rows)

    @pytest.mark.parametrize("second", [X[:, :2], (X, Y)], ids=["narrower", "with a target"])
    def test_arrays_that_differ(self, second: Any) -> None:
        with pytest.raises(ValueError, match="array 1"):
            mj.KMeans(2).fit(mj.open_rows(lambda: [X, second]))

    @pytest.mark.parametrize("other", [["b", "a", "c"], ["a", "b", "z"], None])
    def test_frames_of_other_columns_are_refused_as_files_are(self, other: list[str] | None) -> None:
        frame = pd.DataFrame(X[:100], columns=["a", "b", "c"])
        second = frame.to_numpy() if other is None else frame.set_axis(other, axis=1)
        with pytest.raises(ValueError, match=r"part 1 has .* and the first one the columns a, b, c: give the same"):
            mj.KMeans(2, random_state=0).fit(mj.open_rows(lambda: iter([frame, second])))

    def test_names_of_frames_are_those_of_the_model(self) -> None:
        frame = pd.DataFrame(X[:100], columns=["a", "b", "c"])
        model = mj.KMeans(2, random_state=0).fit(mj.open_rows(lambda: iter([frame, frame])))
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]
        with pytest.raises(ValueError, match="c, b, a"):
            model.predict(mj.open_rows(lambda: iter([frame[["c", "b", "a"]]])))

    @pytest.mark.parametrize("source", [iter([X]), [X], X, None, ""])
    def test_what_is_neither_path_nor_function(self, source: Any) -> None:
        with pytest.raises(TypeError, match="a function that gives arrays"):
            mj.open_rows(source)

    def test_a_function_that_returns_nothing(self) -> None:
        with pytest.raises(TypeError, match="must return an iterable of arrays at every call; got NoneType"):
            mj.open_rows(lambda: None)  # type: ignore[arg-type,return-value]

    def test_rows_that_are_others_in_every_pass_are_named_as_a_cause(self) -> None:
        random = np.random.default_rng(0)
        rows = mj.open_rows(lambda: iter([random.normal(size=(50, 2))]))
        with pytest.raises(mj.BoundError, match="or the rows are not the same in every pass"):
            mj.KMeans(2, random_state=0).fit(rows)

    def test_empty_arrays_are_passed_over(self) -> None:
        assert_same_fit(
            FITS["kmeans"](mj.open_rows(lambda: [X[:0], X, X[:0]])), FITS["kmeans"](mj.open_rows(lambda: [X]))
        )


class TestOrderOfSums:
    @pytest.mark.parametrize("n", range(1, 20))
    def test_the_tree_is_that_of_pairs(self, n: int) -> None:
        class Told(str):
            def __add__(self, other: Any) -> Told:
                return Told(f"({self} {other})")

        level = [Told(i) for i in range(n)]
        found = added((i, value) for i, value in enumerate(level))
        while len(level) > 1:
            pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
            level = [pair[0] if len(pair) == 1 else pair[0] + pair[1] for pair in pairs]
        assert found == level[0]

    def test_within_a_chunk_from_first_to_last(self) -> None:
        class Told(str):
            def __add__(self, other: Any) -> Told:
                return Told(f"({self} {other})")

        assert added((i // 3, Told(i)) for i in range(7)) == "((((0 1) 2) ((3 4) 5)) 6)"

    def test_blocks_do_not_depend_on_how_a_chunk_is_read(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def layout() -> list[tuple[int, int, int]]:
            return opened(folder).map_sum(lambda block: [(block.chunk, block.first, len(block))])

        monkeypatch.setattr("majorant.data.chunks.BLOCK_BYTES", 24 * 700)
        whole = layout()
        assert [n for chunk, _, n in whole if chunk == 2] == [700, 700, 700, 399]
        monkeypatch.setattr("majorant.data.arrow.MOST_ROWS", 64)
        assert layout() == whole

    def test_no_more_than_some_row_groups_are_in_memory(self, tmp_path: Path) -> None:
        path = tmp_path / "rows.parquet"
        table = pa.table({"a": np.arange(500_000.0)})
        pa.parquet.write_table(table, path, row_group_size=10_000, use_dictionary=False, compression="none")
        pool = pa.proxy_memory_pool(before := pa.default_memory_pool())
        pa.set_memory_pool(pool)
        try:
            assert mj.open_rows(path).map_sum(len) == 500_000
        finally:
            pa.set_memory_pool(before)
        assert path.stat().st_size > 3_000_000 > 4 * pool.max_memory() > 0

    def test_a_map_keeps_what_blocks_are(self) -> None:
        def told(block: Block) -> list[Any]:
            return [(block.chunk, block.first, len(block), block.weight)]

        rows = mj.open_rows(parts)
        assert Chunks(mapped(rows.source, lambda x: x)).map_sum(told) == rows.map_sum(told)


class TestProgress:
    """What `verbose` shows of passes over rows that are not in memory."""

    def shown(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_terminal: bool) -> str:
        monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal, raising=False)
        monkeypatch.setattr("majorant._progress.LOOK", 0.0)
        monkeypatch.setattr("majorant._progress.LONG_PASS", 0.0)
        mj.KMeans(3, verbose=1, random_state=0).fit(mj.open_rows(lambda: [X, X]))
        return capsys.readouterr().err

    def test_on_a_terminal(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        told = self.shown(monkeypatch, capsys, True)
        assert re.search(r"\x1b\[Kpass 1: 50%, [\d,]+ rows a second, \d+ s left", told)
        assert "\n" not in told.split("pass 1")[-1].split("start")[0]

    def test_elsewhere(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        told = self.shown(monkeypatch, capsys, False)
        assert re.search(r"^pass 1: 12,000 rows in \d+\.\d s, [\d,]+ a second$", told, flags=re.MULTILINE)

    def test_silent_by_default(self, capsys: pytest.CaptureFixture[str]) -> None:
        FITS["kmeans"](mj.open_rows(parts))
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("with_target", [False, True])
def test_a_function_may_fill_one_array_again_and_again(with_target: bool) -> None:
    """As readers of files do: what is kept of a part must not be what the next one is written to."""
    rows, y = np.empty((300, X.shape[1])), np.empty(300)

    def refilled() -> Iterator[Any]:
        for a in range(0, N, 300):
            n = min(300, N - a)
            rows[:n], y[:n] = X[a : a + n], Y[a : a + n]
            yield (rows[:n], y[:n]) if with_target else rows[:n]

    model = mj.RegressionMixture(2, random_state=0) if with_target else mj.KMeans(3, random_state=0)
    given = () if with_target else (None,)
    streamed = clone(model).fit(mj.open_rows(refilled), *given)
    memory = clone(model).fit(mj.open_rows(lambda: [(X, Y)] if with_target else [X]), *given)
    of = "log_likelihood_" if with_target else "inertia_"
    assert getattr(streamed, of) == pytest.approx(getattr(memory, of), rel=1e-9)


class Refilled(Sequence[Any]):
    """Parts that are read when they are asked for, as many readers of files are."""

    def __init__(self) -> None:
        self.rows = np.empty((300, X.shape[1]), order="F")  # columns that libraries take without a copy

    def __len__(self) -> int:
        return N // 300

    def __getitem__(self, number: Any) -> Any:
        if number >= len(self):
            raise IndexError(number)
        part = X[300 * number : 300 * number + 300]
        self.rows[: len(part)] = part
        return self.rows[: len(part)]


@pytest.mark.parametrize(
    "form",
    [
        lambda part: pd.DataFrame(part, copy=False),
        lambda part: (pd.DataFrame(part, copy=False), None, None),
        memoryview,
        lambda part: pl.DataFrame([pl.Series(str(j), column) for j, column in enumerate(part.T)]),
        lambda part: pa.table({str(j): pa.array(column) for j, column in enumerate(part.T)}),
        None,
    ],
    ids=["data frame", "tuple of data frames", "buffer", "polars", "arrow", "sequence"],
)
def test_whatever_shares_the_memory_that_is_filled_again(form: Callable[[Any], Any] | None) -> None:
    filled = Refilled if form is None else lambda: map(form, Refilled())
    streamed = mj.KMeans(3, random_state=0).fit(mj.open_rows(filled))
    memory = mj.KMeans(3, random_state=0).fit(mj.open_rows(lambda: [X[a : a + 300] for a in range(0, N, 300)]))
    assert streamed.inertia_ == memory.inertia_


@pytest.mark.parametrize(
    ("cells", "found"), [([4], "1 masked cell:"), ([3, 4], "2 masked cells:")], ids=["one cell", "two cells"]
)
def test_parts_with_masked_cells_are_refused(cells: list[int], found: str) -> None:
    at = np.isin(np.arange(6), cells)
    rows, weights = np.ma.array(X[:2], mask=at.reshape(2, 3)), np.ma.array(np.ones(6), mask=at)
    for part in (rows, (X[:6], None, weights), list(rows)):
        with pytest.raises(ValueError, match=f"is a masked array with {found}"):
            mj.open_rows(lambda part=part: iter([part]))
