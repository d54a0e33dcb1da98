"""A saved model comes back as it was, and is written whole or not at all."""

from __future__ import annotations

import json
import os
import stat
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import majorant as mj
from majorant.persistence import UnsavableError, load, load_with_extra, replacing, save
from majorant.persistence.codec import Decoder, Encoder, policy_classes
from majorant.search import SearchReport, StartRecord

ROWS = np.random.default_rng(3).normal(size=(60, 3))


def fitted(**parameters: Any) -> mj.KMeans:
    return mj.KMeans(3, random_state=0, n_init=4, **parameters).fit(pd.DataFrame(ROWS, columns=["a", "b", "c"]))


def assert_same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, dict):
        assert_same(list(a.items()), list(b.items()))
    else:
        assert a == b or (a != a and b != b)


def through_json(value: Any) -> Any:
    encoder = Encoder()
    text = json.dumps(encoder.encode(value, "it"), allow_nan=False)
    return Decoder(encoder.arrays).decode(json.loads(text))


def test_a_fitted_model_comes_back(tmp_path: Path) -> None:
    model = fitted()
    model.save(tmp_path / "a.majorant")
    again = load(tmp_path / "a.majorant")
    assert type(again) is mj.KMeans
    assert_same(model.get_params(), again.get_params())
    public = {k: v for k, v in vars(model).items() if k.endswith("_") and not k.startswith("_")}
    assert set(public) <= set(vars(again))
    for name in public.keys() - {"trace_"}:
        assert_same(getattr(model, name), getattr(again, name))
    assert_same(dict(model.trace_.to_state()), dict(again.trace_.to_state()))
    X = pd.DataFrame(ROWS, columns=["a", "b", "c"])
    assert_same(model.predict(X), again.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(X.rename(columns={"a": "z"}))


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder, not a saved model"):
        load(tmp_path)
    save(fitted(), tmp_path / "model.majorant")
    with pytest.raises(ValueError, match=r"is a folder: load .*model\.majorant"):
        load(tmp_path)


def test_equal_models_give_equal_files(tmp_path: Path) -> None:
    for name in "ab":
        save(fitted(), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    "policy",
    [
        mj.GibbsLimit(eta=0.2),
        mj.Tightest(),
        mj.RandomWalk(eta=0.3, n_sweeps=4),
        mj.Biased(mj.Balance(), eta=0.5),
        mj.Biased(mj.PairConstraints([[0, 1]], [[1, 2]])),
        mj.Biased(mj.Coherence([[0, 1], [1, 2]], [1.0, 0.5], n_units=4, method="icm")),
    ],
    ids=repr,
)
def test_bound_policies_are_kept(policy: Any) -> None:
    again = through_json(policy)
    assert type(again) is type(policy) and again == policy


def test_only_policies_and_biases_can_be_made_from_a_file() -> None:
    assert {"GibbsLimit", "Biased", "Balance", "PairConstraints", "Coherence"} <= set(policy_classes())
    assert not {"Chunks", "Solution", "minimize", "Trace"} & set(policy_classes())


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -3,
        2**90,
        0.1,
        float("inf"),
        float("-inf"),
        float("nan"),
        "ünïcode\n\x00",
        [1, [2.5, None], ("a", (1,))],
        {"a": 1, 2: {"b": (3,)}, (1, "x"): []},
        {"array": "arrays/0.npy"},
        np.float32(0.1),
        np.int8(-3),
        np.bool_(True),
        np.str_("abc"),
        np.str_(""),
        np.complex128(1 + 2j),
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.arange(10)[::3],
        np.zeros((0, 4), dtype=np.float32),
        np.array(5.0),
        np.array([True, False]),
        np.array(["a", "bc"]),
        np.array([["a", "bc"]], dtype=object),
        np.arange(3, dtype=">i4"),
    ],
    ids=repr,
)
def test_values_come_back(value: Any) -> None:
    assert_same(value, through_json(value))


def test_seeds_continue_where_they_were() -> None:
    state = np.random.RandomState(5)
    state.standard_normal(7)
    again = through_json(state)
    np.testing.assert_array_equal(state.standard_normal(5), again.standard_normal(5))
    generator = np.random.default_rng(5)
    again = through_json(generator)
    np.testing.assert_array_equal(generator.random(5), again.random(5))


def test_search_with_numpy_numbers_is_kept() -> None:
    start = StartRecord("a", np.float64(1.5), np.int64(3), np.bool_(True))  # type: ignore[arg-type]
    found = SearchReport((start,) * 20_000, "SSE", proved_bound=np.float64(1.0))
    encoder = Encoder()
    assert Decoder(encoder.arrays).decode(encoder.encode(found, "it")) == found
    assert not encoder.arrays


def test_extra_is_kept_beside(tmp_path: Path) -> None:
    extra = {"means": np.arange(3.0), "names": ("a", "b")}
    save(fitted(), tmp_path / "a", extra=extra)
    assert_same(extra, load_with_extra(tmp_path / "a")[1])


def test_functions_are_refused_by_name(tmp_path: Path) -> None:
    model = fitted()
    model.init = lambda X, n_clusters, random_state: X[:n_clusters]
    with pytest.raises(UnsavableError, match=r"parameter init is a function \(.*lambda.*\), which cannot be saved"):
        save(model, tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, np.array([object()]), np.zeros(2, dtype="M8[s]"), np.random.Generator(np.random.SFC64(1))],
)
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(UnsavableError, match=r"it is .*sav"):
        Encoder().encode(value, "it")


def test_only_own_fitted_models(tmp_path: Path) -> None:
    class Mine(mj.KMeans):
        pass

    with pytest.raises(NotFittedError):
        save(mj.KMeans(), tmp_path / "a")
    with pytest.raises(TypeError, match="is not one of majorant's models"):
        save(object(), tmp_path / "a")
    with pytest.raises(TypeError, match="Mine is a class of its own"):
        save(Mine(2).fit(ROWS), tmp_path / "a")


def test_nothing_is_left_when_writing_fails(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_text("before")
    with pytest.raises(KeyboardInterrupt), replacing(target) as stream:
        stream.write(b"half")
        raise KeyboardInterrupt
    assert target.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_files_get_ordinary_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    save(fitted(), tmp_path / "a")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_the_file_is_a_plain_zip_without_code(tmp_path: Path) -> None:
    save(fitted(), tmp_path / "a")
    with zipfile.ZipFile(tmp_path / "a") as archive:
        assert archive.namelist()[0] == "meta.json"
        assert all(n == "meta.json" or n.endswith(".npy") for n in archive.namelist())
        meta = json.loads(archive.read("meta.json"))
        assert meta["format"] == 1 and meta["model"] == "kmeans" and "numpy" in meta["versions"]
        for name in archive.namelist()[1:]:
            with archive.open(name) as member:
                np.lib.format.read_array(member, allow_pickle=False)


@pytest.mark.parametrize(
    ("path", "error", "words"),
    [
        (".", IsADirectoryError, "a folder; name a file"),
        ("", IsADirectoryError, "a folder"),
        ("no/x", FileNotFoundError, "no such folder.*'no'"),
    ],
)
def test_where_no_file_can_be_is_said_in_words(
    path: str, error: type[OSError], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=words):
        mj.KMeans(1).fit([[0.0], [1.0]]).save(path)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes that have a name")
def test_no_device_or_pipe_is_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="a device or a pipe, not a file"):
        mj.KMeans(1).fit([[0.0], [1.0]]).save(pipe)
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]
