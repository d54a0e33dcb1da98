"""A small quadratic programme on the simplex."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

FLAT = 1e-12
"""Curvatures below this share of the largest one count as zero."""
MOST_STEPS = 10_000
"""Largest number of entries added to the active set."""
PATIENCE = 50
"""Steps after which it ends if none has lowered the value: rounding allows no more."""


def simplex_qp(
    quadratic: NDArray[np.float64],  # (k, k): `Q`, symmetric and positive semidefinite
    linear: NDArray[np.float64],  # (k,): `p`
    start: NDArray[np.float64],  # (k,): a point of the simplex; a point near the solution takes fewer steps
    *,
    tol: float = 0.0,  # stop when the value is at most this far above the minimum, or as close as rounding allows
) -> NDArray[np.float64]:
    r"""Minimise over the simplex by an active-set method.

    .. math:: \min_\mu \tfrac12 \langle \mu, Q \mu \rangle - \langle \mu, p \rangle, \qquad
              \mu \ge 0, \; \sum_k \mu_k = 1

    The value of the minimiser (k,) is at most that of `start`.
    """
    mu, best, least, idle = start.copy(), start, np.inf, 0
    for _ in range(MOST_STEPS):
        _to_face_minimum(quadratic, linear, mu)
        gradient = np.einsum("kl,l->k", quadratic, mu) - linear
        enters = int(gradient.argmin())
        gap = float(np.sum(mu * gradient) - gradient[enters])
        rounding = 1e-13 * float(np.abs(linear).max() + np.abs(gradient).max())
        if gap <= max(tol, rounding):
            return mu
        value = float(np.sum(mu * (gradient - linear)))
        best, least, idle = (mu.copy(), value, 0) if value < least else (best, least, idle + 1)
        if idle == PATIENCE or not _towards(quadratic, gradient, mu, enters):
            break
    return best


def _to_face_minimum(quadratic: NDArray[np.float64], linear: NDArray[np.float64], mu: NDArray[np.float64]) -> None:
    """Minimise over the nonzero entries in place, setting to zero those that reach the border."""
    while len(used := np.flatnonzero(mu)) > 1:
        face = quadratic[np.ix_(used, used)]
        gradient = np.einsum("kl,l->k", face, mu[used]) - linear[used]
        step, length = _step(face, gradient - gradient.mean())
        falling = step < 0
        limits = np.where(falling, mu[used] / np.where(falling, -step, 1.0), np.inf)
        length = min(length, float(limits.min()))
        if not 0 < length < np.inf:
            return
        moved = np.where(limits <= length, 0.0, np.maximum(mu[used] + length * step, 0.0))
        mu[used] = moved / moved.sum()
        if moved.all():
            return


def _step(face: NDArray[np.float64], slope: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return a direction of descent whose entries sum to zero, and the step to the minimum along it."""
    centred = face - face.mean(axis=0) - face.mean(axis=1)[:, None] + face.mean()
    curvatures, axes = eigh(centred)
    along = np.einsum("kj,k->j", axes, slope)
    curved = curvatures > FLAT * max(float(np.abs(face).max()), np.finfo(np.float64).tiny)
    flat = axes[:, ~curved] @ along[~curved]
    flat -= flat.mean()
    if np.abs(flat).max() > 1e-10 * np.abs(slope).max(initial=0.0):
        return -flat, np.inf  # the value is linear there: go to the border
    step = -(axes[:, curved] @ (along[curved] / curvatures[curved]))
    return step - step.mean(), 1.0


def _towards(
    quadratic: NDArray[np.float64], gradient: NDArray[np.float64], mu: NDArray[np.float64], enters: int
) -> bool:
    """Move weight from the worst nonzero entry to `enters` by exact line search; return False if none helps."""
    leaves = int(np.where(mu > 0, gradient, -np.inf).argmax())
    fall = float(gradient[leaves] - gradient[enters])
    if leaves == enters or fall <= 0:
        return False
    curvature = float(quadratic[enters, enters] - 2 * quadratic[enters, leaves] + quadratic[leaves, leaves])
    most = float(mu[leaves])
    moved = most if fall >= curvature * most else fall / curvature
    mu[enters] += moved
    mu[leaves] = 0.0 if moved == most else most - moved
    return True
