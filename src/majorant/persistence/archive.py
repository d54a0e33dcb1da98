"""The format of a saved file: a zip of meta.json and arrays, checked before its contents are used.

Members are stored uncompressed, so a small file cannot unpack to a large one. Arrays are read directly from numpy's
header, without pickle and without reserving memory for more numbers than the member holds.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from majorant.persistence.errors import SavedModelError, UnsavableError

META = "meta.json"
ARRAY_NAME = re.compile(r"arrays/[0-9]{1,6}\.npy")
ARRAY_KINDS = "biufcU"
MAX_META_BYTES = 16 * 2**20
MAX_ARRAY_BYTES = 8 * 2**30
MAX_TOTAL_BYTES = 16 * 2**30
MAX_MEMBERS = 10_000

_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_archive(stream: BinaryIO, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the zip file; equal content gives equal bytes."""
    sizes = [array.nbytes for array in arrays.values()]
    if len(sizes) >= MAX_MEMBERS or max(sizes, default=0) > MAX_ARRAY_BYTES / 2 or sum(sizes) > MAX_TOTAL_BYTES / 2:
        raise UnsavableError(f"{len(sizes)} arrays of {sum(sizes)} bytes are more than a saved model may hold")
    text = json.dumps(meta, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    if len(text) > MAX_META_BYTES:
        raise UnsavableError(f"texts and parameters of {len(text)} bytes are more than a saved model may hold")
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(META, _EPOCH), text)
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(name, _EPOCH), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def read_archive(stream: BinaryIO) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Read meta.json and the arrays, by their names in the zip."""
    file_size = stream.seek(0, io.SEEK_END)
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        _check_members(members, file_size)
        meta: Any = None
        arrays: dict[str, NDArray[Any]] = {}
        for member in members:
            content = archive.read(member)
            if len(content) != member.file_size:
                raise SavedModelError(f"{member.filename} holds {len(content)} bytes but claims {member.file_size}")
            if member.filename == META:
                meta = json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
            else:
                arrays[member.filename] = read_array(content)
    return meta, arrays


def _check_members(members: list[zipfile.ZipInfo], file_size: int) -> None:
    if len(members) > MAX_MEMBERS:
        raise SavedModelError(f"it holds {len(members)} files; at most {MAX_MEMBERS} are allowed")
    names = [member.filename for member in members]
    if META not in names:
        raise SavedModelError(f"it holds no {META}")
    if len(set(names)) != len(names):
        raise SavedModelError("it holds two files of one name")
    for member in members:
        if member.filename != META and ARRAY_NAME.fullmatch(member.filename) is None:
            raise SavedModelError(f"it holds a file that does not belong there, {member.filename!r}")
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 0x1:
            raise SavedModelError(f"{member.filename} is compressed or encrypted, which majorant never does")
        limit = MAX_META_BYTES if member.filename == META else MAX_ARRAY_BYTES
        if member.file_size > limit:
            raise SavedModelError(f"{member.filename} claims {member.file_size} bytes; at most {limit} are allowed")
    total = sum(member.file_size for member in members)
    if total > min(file_size, MAX_TOTAL_BYTES):
        raise SavedModelError(f"its files claim {total} bytes, more than the file has or than is allowed")


def read_array(content: bytes) -> NDArray[Any]:
    """Read the array of a .npy member: numbers, truth values or fixed-width text."""
    stream = io.BytesIO(content)
    try:
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, is_fortran, dtype = readers[np.lib.format.read_magic(stream)](stream)
    except Exception as error:  # numpy evaluates the header as Python's syntax, and fails in as many ways
        raise SavedModelError("an array has no header that numpy writes") from error
    # Values of no width (text of length 0) would let a small file claim any number of them.
    if dtype.kind not in ARRAY_KINDS or dtype.itemsize == 0 or dtype.fields is not None:
        raise SavedModelError(f"an array holds values of type {dtype}, which majorant never saves")
    if any(n < 0 for n in shape):
        raise SavedModelError(f"an array has the impossible shape {shape}")
    start = stream.tell()
    if math.prod(shape) * dtype.itemsize != len(content) - start:
        raise SavedModelError(f"an array of shape {shape} does not fit the {len(content) - start} bytes it has")
    flat = np.frombuffer(content, dtype=dtype, offset=start)
    return flat.reshape(shape, order="F" if is_fortran else "C").copy(order="K")


def _refuse_constant(name: str) -> Any:
    raise SavedModelError(f"{META} holds {name}, which is not JSON")
