"""Rows that stay on disk give the optimum of rows in memory."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray

import majorant as mj
from majorant.data import rows, storage

from .test_kmeans import far_blobs

NAMES = ["a", "b", "c"]


def as_npy(X: NDArray[Any], folder: Path) -> Path:
    np.save(folder / "rows.npy", X)
    return folder / "rows.npy"


def as_parquet(X: NDArray[Any], folder: Path) -> Path:
    pl.DataFrame(X, schema=NAMES).write_parquet(folder / "rows.parquet", row_group_size=7000)
    return folder / "rows.parquet"


def as_arrow(X: NDArray[Any], folder: Path) -> Path:
    pl.DataFrame(X, schema=NAMES).write_ipc(folder / "rows.arrow")
    return folder / "rows.arrow"


def as_feather(X: NDArray[Any], folder: Path) -> Path:
    pd.DataFrame(X, columns=NAMES).to_feather(folder / "rows.feather")
    return folder / "rows.feather"


FORMATS: list[Callable[[NDArray[Any], Path], Path]] = [as_npy, as_parquet, as_arrow, as_feather]


@pytest.fixture(params=[False, True], ids=["all rows seed", "a sample seeds"])
def sampled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether starts are made on a sample of the rows."""
    if request.param:
        monkeypatch.setattr(rows, "SAMPLE_BYTES", 1 << 15)
    return bool(request.param)


def assert_same_optimum(streamed: mj.KMeans, X: NDArray[Any], weights: Any = None, rel: float = 1e-9) -> None:
    memory = mj.KMeans(3, random_state=0).fit(X, sample_weight=weights)
    assert streamed.inertia_ == pytest.approx(memory.inertia_, rel=rel)
    np.testing.assert_array_equal(streamed.labels_, memory.labels_)
    np.testing.assert_allclose(streamed.cluster_centers_, memory.cluster_centers_, rtol=100 * rel, atol=100 * rel)
    assert streamed.cluster_centers_.dtype == X.dtype


@pytest.mark.parametrize("write", FORMATS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_files_give_the_optimum_of_memory(
    write: Callable[..., Path], dtype: type[Any], sampled: bool, tmp_path: Path, seed: int
) -> None:
    # Sizes that differ, so that "heaviest first" is one order.
    X = far_blobs(seed, n=20_000)[:19_000].astype(dtype)
    X = X[~((X[:, 1] > 20) & (np.arange(19_000) % 5 == 0))]
    X = X[~((X[:, 2] > 20) & (np.arange(len(X)) % 3 == 0))]
    data = mj.open_rows(write(X, tmp_path))
    assert data.n_units == len(X)
    model = mj.KMeans(3, random_state=0, n_jobs=2).fit(data)
    assert_same_optimum(model, X, rel=1e-9 if dtype == np.float64 else 1e-4)
    assert ("Starts were made on" in model.search_.note) == sampled
    if write is not as_npy:
        assert list(model.feature_names_in_) == NAMES
    np.testing.assert_array_equal(model.predict(data), model.labels_)
    plain = mj.KMeans(3, init=model.cluster_centers_).fit(X)
    plain.cluster_centers_ = model.cluster_centers_
    np.testing.assert_array_equal(model.transform(data), plain.transform(X))
    assert model.score(data) == pytest.approx(-model.inertia_, rel=1e-9 if dtype == np.float64 else 1e-3)


def test_threads_change_no_bit_of_a_streamed_fit(sampled: bool, tmp_path: Path, seed: int) -> None:
    path = as_parquet(np.random.default_rng(seed).normal(size=(30_000, 3)), tmp_path)
    fits = [mj.KMeans(5, n_init=2, random_state=seed, n_jobs=j).fit(mj.open_rows(path)) for j in (1, 2, 3, 1)]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.cluster_centers_, fits[0].cluster_centers_)
        np.testing.assert_array_equal(other.labels_, fits[0].labels_)
        assert other.inertia_ == fits[0].inertia_


@pytest.mark.parametrize("write", [as_npy, as_parquet])
def test_weights_of_streamed_rows(write: Callable[..., Path], sampled: bool, tmp_path: Path, seed: int) -> None:
    X = far_blobs(seed, n=9000)
    weights = np.random.default_rng(seed).uniform(0, 2, 9000) * (1 + np.arange(9000) % 3)
    weights[::7] = 0
    model = mj.KMeans(3, random_state=0).fit(mj.open_rows(write(X, tmp_path)), sample_weight=weights)
    assert_same_optimum(model, X, weights)


def test_a_large_memory_map_is_streamed_and_a_small_one_read(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = far_blobs(seed, n=9001)
    mapped = np.load(as_npy(X, tmp_path), mmap_mode="r")
    assert storage.stored_rows(mapped) is None
    monkeypatch.setattr(storage, "STREAM_BYTES", 1 << 10)
    assert storage.stored_rows(mapped) is not None
    for view in (mapped, mapped[1:], mapped[:, ::-1]):
        model = mj.KMeans(3, random_state=0).fit(view)
        assert model.inertia_ == pytest.approx(mj.KMeans(3, random_state=0).fit(np.array(view)).inertia_, rel=1e-9)
        np.testing.assert_array_equal(model.predict(view), model.predict(np.array(view)))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float16, np.int64, bool, ">f8"])
def test_other_number_types_on_disk(dtype: Any, tmp_path: Path, seed: int) -> None:
    X = (far_blobs(seed, n=6000) + 5).clip(0, 100)
    X = X > 20 if dtype is bool else X.astype(dtype)
    model = mj.KMeans(3, random_state=0).fit(mj.open_rows(as_npy(X, tmp_path)))
    assert model.inertia_ == pytest.approx(mj.KMeans(3, random_state=0).fit(X).inertia_, rel=1e-9)


@pytest.mark.parametrize(
    "bounds",
    [
        mj.GibbsLimit(eta=0.3),
        mj.Tempered(eta=0.3),
        mj.Biased(mj.Balance(), eta=0.3),
        mj.Biased(mj.Coherence([[0, 1], [1, 8999]], n_units=9000), eta=0.3),
    ],
    ids=repr,
)
def test_policies_run_on_streamed_rows(bounds: Any, sampled: bool, tmp_path: Path, seed: int) -> None:
    X = far_blobs(seed, n=9000)
    model = mj.KMeans(3, bounds=bounds, n_init=2, random_state=0).fit(mj.open_rows(as_npy(X, tmp_path)))
    assert model.inertia_ == pytest.approx(mj.KMeans(3, random_state=0).fit(X).inertia_, rel=1e-9)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("write", [as_npy, as_parquet])
def test_missing_values_on_disk_are_found(write: Callable[..., Path], value: float, tmp_path: Path, seed: int) -> None:
    X = far_blobs(seed, n=9000)
    X[8765, 1] = value
    model = mj.KMeans(3, random_state=0)
    with pytest.raises(ValueError, match=rf"row 8765, column 1.*{value}"):
        model.fit(mj.open_rows(write(X, tmp_path)))
    assert not [name for name in vars(model) if name.endswith("_")]


def test_null_cells_of_a_table_are_found(tmp_path: Path) -> None:
    pl.DataFrame({"a": [1.0, None, 3.0], "b": [1, 2, 3]}).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="row 1, column 0"):
        mj.KMeans(2, random_state=0).fit(mj.open_rows(tmp_path / "x.parquet"))


def test_chosen_columns_in_the_chosen_order(tmp_path: Path, seed: int) -> None:
    X = far_blobs(seed, n=6000)
    data = mj.open_rows(as_parquet(X, tmp_path), columns=["c", "a"])
    model = mj.KMeans(3, random_state=0).fit(data)
    assert list(model.feature_names_in_) == ["c", "a"]
    assert model.inertia_ == pytest.approx(mj.KMeans(3, random_state=0).fit(X[:, [2, 0]]).inertia_, rel=1e-9)


def test_streams_that_do_not_fit_are_refused(tmp_path: Path, seed: int) -> None:
    X = far_blobs(seed, n=300)
    data = mj.open_rows(as_npy(X, tmp_path))
    with pytest.raises(ValueError, match=r"3 features.*2"):
        mj.KMeans(3, random_state=0).fit(X[:, :2]).predict(data)
    with pytest.raises(ValueError, match=r"n_samples=300.*301"):
        mj.KMeans(301).fit(data)
    with pytest.raises(ValueError, match=r"\(300,\).*\(299,\)"):
        mj.KMeans(3).fit(data, sample_weight=np.ones(299))
    with pytest.raises(TypeError, match="pass the array itself"):
        mj.KMeans(3).fit(mj.Chunks(X))
    wrong = tmp_path / "words.parquet"
    pl.DataFrame({"a": [1.0], "b": ["red"]}).write_parquet(wrong)
    with pytest.raises(TypeError, match=r"'b'.*columns"):
        mj.open_rows(wrong)


def test_a_callable_start_needs_rows_in_memory(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "SAMPLE_BYTES", 1 << 15)
    data = mj.open_rows(as_npy(far_blobs(seed, n=9000), tmp_path))
    with pytest.raises(TypeError, match=r"init.*callable.*array"):
        mj.KMeans(3, init=lambda X, k, random_state: X[:k]).fit(data)


def test_given_centres_start_a_stream(sampled: bool, tmp_path: Path, seed: int) -> None:
    X = far_blobs(seed, n=9000)
    init = np.array([[0, 0, 40], [40, 0, 0], [0, 40, 0]], dtype=np.float64)
    model = mj.KMeans(3, init=init).fit(mj.open_rows(as_npy(X, tmp_path)))
    np.testing.assert_array_equal(model.cluster_centers_.argmax(axis=1), [2, 0, 1])


def test_weights_of_one_fit_are_not_those_of_the_next(tmp_path: Path, seed: int) -> None:
    X = far_blobs(seed, n=3000)
    data = mj.open_rows(as_npy(X, tmp_path))
    plain = mj.KMeans(3, random_state=0).fit(data).inertia_
    mj.KMeans(3, random_state=0).fit(data, sample_weight=np.full(3000, 2.0))
    assert mj.KMeans(3, random_state=0).fit(data).inertia_ == plain


def test_fits_at_the_same_time_do_not_share_weights(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    X, w = random.normal(size=(20_000, 3)), random.uniform(0, 3, 20_000)
    rows = mj.open_rows(as_npy(X, tmp_path))
    weights = [None, w, w**2, None]

    def fit(given: Any) -> mj.KMeans:
        return mj.KMeans(4, n_init=2, random_state=seed).fit(rows, sample_weight=given)

    alone = [fit(given) for given in weights]
    with ThreadPoolExecutor(len(weights)) as pool:
        for one, other in zip(alone, pool.map(fit, weights), strict=True):
            assert one.inertia_ == other.inertia_
            np.testing.assert_array_equal(one.labels_, other.labels_)


@pytest.mark.parametrize("scale", [1e155, 1e300, 1e-170])
def test_streamed_numbers_that_cannot_be_squared_are_refused(scale: float, tmp_path: Path) -> None:
    path = as_npy(np.random.default_rng(0).normal(size=(1000, 3)) * scale, tmp_path)
    with pytest.raises(ValueError, match="rescale X"):
        mj.KMeans(2, random_state=0).fit(mj.open_rows(path))
