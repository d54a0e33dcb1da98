"""The order in which a fit numbers its parts."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray


def ordered(key: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.intp]:
    """Order by a key, ascending; where keys are equal, by the rows' entries from the left.

    An entry is looked at only where all before it are equal: no sort by thousands of columns.
    """
    of_row = [array("d", np.ascontiguousarray(row, dtype=np.float64).tobytes()) for row in rows]
    return np.asarray(sorted(range(len(key)), key=lambda i: (key[i], of_row[i])), dtype=np.intp)
