"""What is no saved model ends in one clear error, whatever it is."""

from __future__ import annotations

import contextlib
import io
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import majorant as mj
from majorant.persistence import SavedModelError, archive, load, load_with_extra, save

ROWS = np.random.default_rng(3).normal(size=(40, 2))
Members = dict[str, bytes]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[mj.KMeans, bytes]:
    model = mj.KMeans(3, random_state=np.random.RandomState(0), n_init=3, bounds=mj.GibbsLimit()).fit(ROWS)
    path = tmp_path_factory.mktemp("saved") / "a"
    save(model, path, extra={"names": ("a", "b")})
    return model, path.read_bytes()


def members_of(content: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(content)) as source:
        return {name: source.read(name) for name in source.namelist()}


def zipped(members: Members, compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as target:
        for name, content in members.items():
            target.writestr(name, content)
    return stream.getvalue()


def npy(array: np.ndarray[Any, Any]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def with_meta(content: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    members = members_of(content)
    meta = json.loads(members["meta.json"])
    change(meta)
    return zipped({**members, "meta.json": json.dumps(meta).encode()})


def assert_refused(tmp_path: Path, content: bytes, match: str = ".") -> None:
    path = tmp_path / "hostile"
    path.write_bytes(content)
    with pytest.raises(SavedModelError, match=match) as caught:
        load(path)
    assert str(path) in str(caught.value) and isinstance(caught.value, ValueError)


def mutated(content: bytes, rng: random.Random) -> bytes:
    data = bytearray(content)
    kind = rng.randrange(6)
    at = rng.randrange(len(data))
    if kind == 0:
        return bytes(data[:at])
    if kind == 1:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 2:
        for _ in range(rng.randrange(1, 9)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    elif kind == 3:
        del data[at : at + rng.randrange(1, 40)]
    elif kind == 4:
        data[at:at] = rng.randbytes(rng.randrange(1, 40))
    else:
        # the central directory, where sizes and offsets stand
        data[len(data) - 1 - rng.randrange(min(len(data), 700))] = rng.randrange(256)
    return bytes(data)


def test_random_damage(tmp_path: Path, original: tuple[mj.KMeans, bytes]) -> None:
    model, content = original
    rng = random.Random(42)
    path = tmp_path / "a"
    n_refused = 0
    for _ in range(600):
        path.write_bytes(mutated(content, rng))
        try:
            again, extra = load_with_extra(path)
        except SavedModelError:
            n_refused += 1
            continue
        np.testing.assert_array_equal(again.cluster_centers_, model.cluster_centers_)
        np.testing.assert_array_equal(again.predict(ROWS), model.labels_)
        assert again.search_ == model.search_ and extra == {"names": ("a", "b")}
    assert n_refused > 400


def test_random_damage_of_the_meaning(tmp_path: Path, original: tuple[mj.KMeans, bytes]) -> None:
    """Well-formed zips whose meta.json or array headers were edited: an error, or some model, but nothing else."""
    content = original[1]
    members = members_of(content)
    rng = random.Random(7)
    path = tmp_path / "a"
    for _ in range(300):
        name = "meta.json" if rng.random() < 0.7 else rng.choice(list(members))
        path.write_bytes(zipped({**members, name: mutated(members[name], rng)}))
        with contextlib.suppress(SavedModelError):
            assert type(load(path)) is mj.KMeans


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip" * 50, zipped({}), zipped({"meta.json": b"{}"})])
def test_not_a_model(tmp_path: Path, content: bytes) -> None:
    assert_refused(tmp_path, content)


def test_missing_file_stays_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")


def test_newer_format_says_upgrade(tmp_path: Path, original: tuple[mj.KMeans, bytes]) -> None:
    assert_refused(tmp_path, with_meta(original[1], lambda m: m.update(format=2)), "format 2 .* upgrade majorant")


def test_unknown_model(tmp_path: Path, original: tuple[mj.KMeans, bytes]) -> None:
    assert_refused(
        tmp_path, with_meta(original[1], lambda m: m.update(model="os.system")), "a model 'os.system'; known are"
    )


@pytest.mark.parametrize("name", ["__class__", "fit", "_x_", "predict", "__dict__", "a b_"])
def test_only_fitted_attributes_are_set(tmp_path: Path, original: tuple[mj.KMeans, bytes], name: str) -> None:
    assert_refused(tmp_path, with_meta(original[1], lambda m: m["fitted"].update({name: 1})), "no fitted attribute")


@pytest.mark.parametrize(
    "value",
    [
        {"policy": "Chunks", "arguments": {}},
        {"policy": "GibbsLimit", "arguments": {"eta": 7}},
        {"policy": "GibbsLimit", "arguments": {"beta": 1}},
        {"array": "../../secret"},
        {"array": "meta.json"},
        {"scalar": "O", "bytes": "00"},
        {"scalar": "<f8", "bytes": "00"},
        {"float": "1"},
        {"random_state": []},
        {"generator": "SFC64", "state": None},
        {"texts": [1], "shape": [1]},
        {"texts": ["a"], "shape": [-5]},
        {"dict": [[{"dict": []}, 1]]},
        {"search": {"dict": []}},
        {"trace": {"dict": []}},
        {"unknown": 1},
        {},
        {"tuple": [], "more": 1},
    ],
    ids=repr,
)
def test_strange_values(tmp_path: Path, original: tuple[mj.KMeans, bytes], value: Any) -> None:
    assert_refused(tmp_path, with_meta(original[1], lambda m: m["parameters"].update(init=value)))


def test_random_state_cannot_point_outside_its_key(tmp_path: Path, original: tuple[mj.KMeans, bytes]) -> None:
    def move(meta: dict[str, Any]) -> None:
        meta["parameters"]["random_state"]["random_state"][1] = 10**6

    assert_refused(tmp_path, with_meta(original[1], move), "impossible position")


def test_deep_nesting(tmp_path: Path, original: tuple[mj.KMeans, bytes]) -> None:
    members = members_of(original[1])
    assert_refused(tmp_path, zipped({**members, "meta.json": b"[" * 200_000 + b"]" * 200_000}))


@pytest.mark.parametrize("name", ["../evil.npy", "/arrays/0.npy", "arrays/../x.npy", "code.py", "arrays/0.npy/"])
def test_only_known_names(tmp_path: Path, original: tuple[mj.KMeans, bytes], name: str) -> None:
    assert_refused(tmp_path, zipped({**members_of(original[1]), name: b"x"}), "does not belong there")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_files_of_one_name(tmp_path: Path, original: tuple[mj.KMeans, bytes]) -> None:
    stream = io.BytesIO(original[1])
    with zipfile.ZipFile(stream, "a") as target:
        target.writestr("meta.json", "{}")
    assert_refused(tmp_path, stream.getvalue(), "two files of one name")


def test_compressed_members_are_refused_unread(tmp_path: Path, original: tuple[mj.KMeans, bytes]) -> None:
    members = {**members_of(original[1]), "arrays/99.npy": bytes(50_000_000)}
    content = zipped(members, zipfile.ZIP_DEFLATED)
    assert len(content) < 100_000
    assert_refused(tmp_path, content, "compressed or encrypted")


def test_overlapping_members_cannot_claim_more_than_the_file(tmp_path: Path, original: tuple[mj.KMeans, bytes]) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as target:
        target.writestr("meta.json", b"{}")
        target.writestr("arrays/0.npy", bytes(100_000))
        info = target.getinfo("arrays/0.npy")
        for i in range(1, 50):
            copy = zipfile.ZipInfo(f"arrays/{i}.npy")
            copy.header_offset, copy.CRC, copy.file_size, copy.compress_size = (
                info.header_offset,
                info.CRC,
                10**5,
                10**5,
            )
            target.filelist.append(copy)
    assert_refused(tmp_path, stream.getvalue(), "more than the file has")


@pytest.mark.parametrize(
    ("array", "match"),
    [
        (np.array([{}], dtype=object), "never saves"),
        (np.zeros(2, dtype=[("a", "f8")]), "never saves"),
        (np.zeros(2, dtype="M8[s]"), "never saves"),
    ],
)
def test_arrays_of_other_types(
    tmp_path: Path, original: tuple[mj.KMeans, bytes], array: np.ndarray[Any, Any], match: str
) -> None:
    assert_refused(tmp_path, zipped({**members_of(original[1]), "arrays/0.npy": npy(array)}), match)


def test_headers_cannot_ask_for_more_memory_than_there_are_bytes(
    tmp_path: Path, original: tuple[mj.KMeans, bytes]
) -> None:
    broken = npy(np.zeros((4, 2))).replace(b"(4, 2)", b"(4, 2 ")
    assert_refused(tmp_path, zipped({**members_of(original[1]), "arrays/0.npy": broken}), "no header that numpy writes")
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**15, 10**15)}
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, header)
    assert_refused(tmp_path, zipped({**members_of(original[1]), "arrays/0.npy": stream.getvalue()}), "does not fit")
    header["shape"] = (-1, 3)
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, header)
    assert_refused(tmp_path, zipped({**members_of(original[1]), "arrays/0.npy": stream.getvalue()}), "impossible shape")
    header.update(descr="<U0", shape=(10**9,))  # text of no width needs no bytes, and numpy makes it one letter wide
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, header)
    assert_refused(tmp_path, zipped({**members_of(original[1]), "arrays/0.npy": stream.getvalue()}), "never saves")


def test_limits(tmp_path: Path, original: tuple[mj.KMeans, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, match in [
        ("MAX_META_BYTES", "meta.json claims"),
        ("MAX_ARRAY_BYTES", "arrays/0.npy claims"),
        ("MAX_TOTAL_BYTES", "than is allowed"),
        ("MAX_MEMBERS", "it holds .* files"),
    ]:
        with monkeypatch.context() as patch:
            patch.setattr(archive, limit, 2)
            assert_refused(tmp_path, original[1], match)
