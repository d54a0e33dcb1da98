"""Single-threaded linear algebra, as sums depend on the number of threads."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import scipy.linalg  # noqa: F401  its library is not numpy's, and must be there to be found
from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[Any]:
    """Run matrix products on one thread within a ``with`` block."""
    limited: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limited


@cache
def _libraries() -> ThreadpoolController:
    """Return the controller of threaded libraries, cached since finding them takes milliseconds."""
    return ThreadpoolController()
