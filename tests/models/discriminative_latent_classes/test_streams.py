"""Latent classes of rows that are read block by block: the answers of memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from numpy.typing import NDArray

import majorant as mj

from ...estimators import assert_same_fit

N = 2000
RANDOM = np.random.default_rng(0)
CORNER = RANDOM.integers(0, 2, size=(N, 2))
X = 5 + 2.0 * CORNER + 0.5 * RANDOM.normal(size=(N, 2))
Y = (CORNER.sum(axis=1) % 2).astype(float) + 3
W = RANDOM.integers(0, 3, N).astype(float)
CUTS = [0, 700, 701, 1300, N]


def parts() -> Iterator[tuple[NDArray[Any], ...]]:
    for a, b in pairwise(CUTS):
        yield X[a:b], Y[a:b], W[a:b]


def fitted(rows: Any, y: Any = None, w: Any = None, **changed: Any) -> mj.DiscriminativeLatentClasses:
    return mj.DiscriminativeLatentClasses(4, **{"random_state": 0, **changed}).fit(rows, y, w)


@pytest.fixture(params=[False, True], ids=["all rows start", "a sample starts"])
def sampled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether starts are made on a part of the rows."""
    if request.param:
        monkeypatch.setattr("majorant.data.rows.SAMPLE_BYTES", 1)  # 1000 rows
    return bool(request.param)


class TestFits:
    def test_the_answer_is_that_of_memory(self, sampled: bool) -> None:
        memory, streamed = fitted(X, Y, W), fitted(mj.open_rows(parts))
        np.testing.assert_allclose(streamed.objective_, memory.objective_, rtol=1e-5)
        np.testing.assert_allclose(streamed.total_weight_, memory.total_weight_)
        np.testing.assert_allclose(streamed.alpha_, memory.alpha_, rtol=1e-8)
        np.testing.assert_allclose(streamed.logistic_c_, memory.logistic_c_, rtol=1e-8)
        np.testing.assert_allclose(np.sort(streamed.class_weights_), np.sort(memory.class_weights_), atol=0.01)
        np.testing.assert_allclose(streamed.predict_proba(X), memory.predict_proba(X), atol=0.01)
        assert streamed.classes_.tolist() == [3, 4] and streamed.classes_.dtype == np.int64
        assert memory.score(X, Y) > 0.95
        assert streamed.score(mj.open_rows(parts)) == pytest.approx(memory.score(X, Y), abs=2 / N)
        assert ("Starts were made on a sample of" in streamed.search_.note) == sampled
        np.testing.assert_allclose(
            np.abs(streamed.class_contrasts_).max(), np.abs(memory.class_contrasts_).max(), rtol=0.05
        )

    def test_equal_chunks_give_equal_answers_wherever_they_are(self, tmp_path: Path) -> None:
        expected = fitted(mj.open_rows(parts))
        schema = pa.schema([(name, pa.float64()) for name in ("a", "b", "y", "w")])
        with pa.parquet.ParquetWriter(tmp_path / "rows.parquet", schema) as writer:
            for a, b in pairwise(CUTS):
                columns = [*X[a:b].T, Y[a:b], W[a:b]]
                writer.write_table(pa.table(dict(zip(schema.names, columns, strict=True))), row_group_size=b - a)
        for options in ({"n_jobs": 2}, {"cache": tmp_path}):
            found = fitted(mj.open_rows(tmp_path / "rows.parquet", target="y", sample_weight="w", **options))
            assert found.feature_names_in_.tolist() == ["a", "b"]
            del found.feature_names_in_
            assert_same_fit(expected, found)

    def test_of_dask(self) -> None:
        dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
        lengths = tuple(np.diff(CUTS).tolist())
        columns = (da.from_array(c, chunks=(lengths, *([(2,)] * (c.ndim - 1)))) for c in (X, Y, W))
        with dask.config.set(scheduler="synchronous"):
            assert_same_fit(fitted(mj.open_rows(parts)), fitted(*columns))

    def test_labels_of_text_that_are_given_apart(self) -> None:
        names = np.where(Y == 3, "same", "mixed")
        streamed = fitted(mj.open_rows(lambda: [X]), names)
        assert streamed.classes_.tolist() == ["mixed", "same"]
        assert streamed.predict(mj.open_rows(lambda: [X])).tolist() == fitted(X, names).predict(X).tolist()

    def test_other_settings(self) -> None:
        for changed in ({"beta": np.inf}, {"alpha": 0.01, "init": "random"}, {"bounds": mj.GibbsLimit()}):
            memory, streamed = (fitted(*rows, **changed) for rows in ((X, Y, W), (mj.open_rows(parts),)))
            assert streamed.objective_ < memory.objective_ * 1.2
            assert streamed.score(X, Y) > 0.9


class TestMistakes:
    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"kernel": "rbf"}, "a kernel needs all rows at once"),
            ({"init": np.zeros(N, dtype=int)}, "init as an array needs"),
        ],
    )
    def test_what_needs_all_rows(self, changed: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            fitted(mj.open_rows(parts), **changed)

    @pytest.mark.parametrize("y", [np.where(np.arange(N) == 7, np.nan, Y), np.column_stack([Y, Y]) == 3])
    def test_targets_other_than_a_label_each(self, y: Any) -> None:
        with pytest.raises(ValueError, match="need one label each: drop those without"):
            fitted(mj.open_rows(lambda: [X]), y)

    def test_a_row_of_a_file_without_label(self) -> None:
        with pytest.raises(ValueError, match=r"row 7 of y is nan: .* need a label each"):
            fitted(mj.open_rows(lambda: [(X, np.where(np.arange(N) == 7, np.nan, Y))]))

    def test_numbers_that_are_no_labels(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(ValueError, match="Unknown label type: continuous"):
            fitted(mj.open_rows(lambda: [(X, X[:, 0])]))
        monkeypatch.setattr("majorant.models.discriminative_latent_classes.stream.MOST_LABELS", 100)
        with pytest.raises(ValueError, match="y has more than 100 different values"):
            fitted(mj.open_rows(lambda: [(X[:1000], X[:1000, 0]), (X[1000:], X[1000:, 0])]))
