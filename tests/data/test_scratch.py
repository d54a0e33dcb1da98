"""Rows kept in a scratch file: the answers of the source itself, fewer passes over it, and nothing left behind."""

from __future__ import annotations

import mmap
from collections import namedtuple
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import majorant as mj
from majorant.data import scratch
from majorant.data.chunks import Chunks
from majorant.data.scratch import Scratch, cached_as

from ..estimators import assert_same_fit
from .test_sources import CUTS, N, W, X, Y
from .test_sources import FITS as PLAIN

FITS: dict[str, Callable[[Any], Any]] = {
    **PLAIN,
    "walk": lambda rows: mj.KMeans(3, bounds=mj.RandomWalk(), n_init=1, init=X[:3], max_iter=8, random_state=0).fit(
        rows
    ),
}
"""The last one keeps labels beside the blocks from pass to pass."""


class Parts:
    """Rows from a function, and how often it was asked for them."""

    def __init__(self, dtype: Any = np.float64) -> None:
        self.dtype, self.n_passes = dtype, 0

    def __call__(self) -> Iterator[tuple[NDArray[Any], ...]]:
        self.n_passes += 1
        for a, b in pairwise(CUTS):
            yield X[a:b].astype(self.dtype), Y[a:b], W[a:b]


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "WINDOW", mmap.PAGESIZE)  # so that pages are given back
    monkeypatch.setattr("majorant.data.chunks.BLOCK_BYTES", 24 * 700)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
class TestFits:
    @pytest.mark.parametrize("name", FITS)
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_the_answer_is_that_of_the_source(self, name: str, n_jobs: int, tmp_path: Path) -> None:
        plain, kept = Parts(), Parts()
        expected = FITS[name](mj.open_rows(plain))
        assert_same_fit(expected, FITS[name](mj.open_rows(kept, cache=tmp_path, n_jobs=n_jobs)))
        assert kept.n_passes < plain.n_passes
        assert not list(tmp_path.iterdir())

    def test_single_precision(self, tmp_path: Path) -> None:
        expected = FITS["kmeans"](mj.open_rows(Parts(np.float32)))
        kept = FITS["kmeans"](mj.open_rows(Parts(np.float32), cache=tmp_path))
        assert kept.cluster_centers_.dtype == np.float32
        assert_same_fit(expected, kept)

    def test_iterations_do_not_read_the_source(self, tmp_path: Path) -> None:
        counts = []
        for max_iter in (2, 12):
            parts = Parts()
            model = mj.KMeans(3, init=X[:3], n_init=1, tol=0, max_iter=max_iter, random_state=0)
            model.fit(mj.open_rows(parts, cache=tmp_path))
            counts.append(parts.n_passes)
        assert counts[0] == counts[1]

    def test_the_temporary_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
        rows = mj.open_rows(Parts(), cache="disk")
        assert rows.source.cache == tmp_path  # type: ignore[attr-defined]


class TestScratch:
    def source(self) -> Any:
        return mj.open_rows(Parts()).source

    def told(self, data: Chunks) -> list[Any]:
        return data.map_sum(
            lambda b: [(b.chunk, b.first, *(c.tobytes() for c in b.columns), b.weights.tobytes(), id(b.memory))]  # type: ignore[union-attr]
        )

    def test_blocks_are_those_of_the_source_in_every_pass(self, tmp_path: Path) -> None:
        source = self.source()
        expected, data = self.told(Chunks(source)), Chunks(Scratch(source, tmp_path))
        assert all(self.told(data) == expected for _ in range(3))
        assert data.n_units == N and data.total_weight == source.total_weight

    def test_numbers_cannot_be_written_to(self, tmp_path: Path) -> None:
        data = Chunks(Scratch(self.source(), tmp_path))
        data.map_sum(len)
        block = next(data.source.blocks())
        assert not block.columns[0].flags.writeable and block.columns[0].ctypes.data % scratch.ALIGNED == 0

    def test_a_pass_that_is_broken_off_is_begun_again(self, tmp_path: Path) -> None:
        kept = Scratch(self.source(), tmp_path)
        next(kept.blocks())

        def fail(block: Any) -> int:
            raise RuntimeError("in the middle")

        with pytest.raises(RuntimeError, match="in the middle"):
            Chunks(kept).map_sum(fail)
        assert not list(tmp_path.iterdir())
        assert self.told(Chunks(kept)) == self.told(Chunks(kept.source))

    def test_another_map_is_kept_as_the_first_is(self, tmp_path: Path) -> None:
        source = self.source()
        assert cached_as(source, source) is source
        other = cached_as(Scratch(source, tmp_path), source)
        assert isinstance(other, Scratch) and other.folder == tmp_path


class TestMistakes:
    def test_no_room(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        usage = namedtuple("usage", "total used free")
        monkeypatch.setattr("shutil.disk_usage", lambda folder: usage(1 << 40, 1 << 40, 1 << 15))
        model = mj.KMeans(3, random_state=0)
        with pytest.raises(
            OSError, match=r"the rows take .* GB in a scratch file, and .* has 0.0 GB free: name another"
        ):
            model.fit(mj.open_rows(Parts(), cache=tmp_path))
        assert not hasattr(model, "cluster_centers_") and not list(tmp_path.iterdir())

    def test_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(
            FileNotFoundError, match=r'no folder .*elsewhere: cache is "disk" or names a folder .*there\.'
        ):
            mj.open_rows(Parts(), cache=tmp_path / "elsewhere")
        with pytest.raises(FileNotFoundError, match=r"no folder disc: .* Did you mean 'disk'\?$"):
            mj.open_rows(Parts(), cache="disc")

    @pytest.mark.parametrize("cache", [True, 1, "", b"disk"])
    def test_what_is_no_folder(self, cache: Any) -> None:
        with pytest.raises(TypeError, match='cache must be "disk", a folder, or None'):
            mj.open_rows(Parts(), cache=cache)
