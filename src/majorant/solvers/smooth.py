"""Smooth minimisation by L-BFGS, with the value after every iteration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant._progress import is_stopped, kept_when_stopped
from majorant.engine.threads import one_thread

Objective = Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]
"""Value and gradient at a point."""


@dataclass(frozen=True)
class SmoothResult:
    """Result of the minimisation."""

    x: NDArray[np.float64]  # the best point
    value: float
    values: list[float]  # value at the start and after each iteration; never rising
    converged: bool  # whether the tolerance was reached

    @property
    def n_iter(self) -> int:
        return len(self.values) - 1


def lbfgs(
    f: Objective,  # value and gradient; both finite
    x: NDArray[np.float64],  # (n,)
    *,
    tol: float,  # stop when an iteration lowers the value by less than `tol` times the larger of its size and 1
    max_iter: int,  # largest number of iterations
    gtol: float = 0.0,  # stop where no entry of the gradient (projected on the box) is larger
    memory: int = 10,  # steps from which the curvature is estimated
    # (n,): least and largest value of each coordinate
    box: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
) -> SmoothResult:
    """Minimise a smooth function from a point.

    References
    ----------
    .. [1] R. H. Byrd, P. Lu, J. Nocedal, C. Zhu, "A limited memory algorithm for bound constrained optimization",
       SIAM Journal on Scientific Computing, 1995.
    """
    from scipy.optimize import Bounds  # takes time to load, and most models need other solvers
    from scipy.optimize import minimize as scipy_minimize

    seen: list[float] = []
    last, taken = np.nan, x

    def remembered(at: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        nonlocal last
        last, gradient = f(at)
        if not seen:
            seen.append(last)
        return last, gradient

    def step(at: NDArray[np.float64]) -> None:
        """End an iteration with the point that it takes."""
        nonlocal taken
        taken = at.copy()
        seen.append(last)

    if is_stopped() or not x.size:
        value = f(x)[0]
        return SmoothResult(x, value, [value], not x.size)
    # One thread: the sums of BLAS over long vectors depend on how many it may use.
    found = None
    with one_thread(), kept_when_stopped(lambda: bool(seen)):
        found = scipy_minimize(
            remembered,
            x,
            jac=True,
            method="L-BFGS-B",
            callback=step,
            bounds=None if box is None else Bounds(*box),
            options={"maxiter": max_iter, "ftol": tol, "gtol": gtol, "maxfun": 20 * max_iter, "maxcor": memory},
        )
    if found is None:
        return SmoothResult(taken, seen[-1], seen, False)
    return SmoothResult(np.asarray(found.x), float(found.fun), seen, bool(found.status == 0))
