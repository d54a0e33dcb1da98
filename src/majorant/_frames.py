"""Data frames out: made with whichever library the user has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import narwhals as nw


def data_frame(columns: Mapping[str, Sequence[Any] | Any]) -> Any:
    """Return a data frame of the given columns: pandas if it is installed, otherwise polars.

    Raises
    ------
    ImportError
        If neither is installed.
    """
    for library in ("pandas", "polars"):
        if find_spec(library) is not None:
            return nw.from_dict({k: list(v) for k, v in columns.items()}, backend=library).to_native()
    raise ImportError('a data frame needs pandas or polars: pip install "majorant[cli]"')
