"""Nearest centres, and moments of rows about them, for dense and for sparse rows.

Moments of the rows of each centre are about that centre, ``[sum w, sum w (x - c), sum w |x - c|^2]``, so that a
tight cluster far from the origin loses no digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant import _kernels


def assign(
    x: Any,  # CSR or dense (n_rows, n_features)
    weights: NDArray[np.float64] | None,  # (n_rows,)
    centres: NDArray[Any],  # (n_centres, n_features)
    labels: NDArray[np.int32],  # (n_rows,): read, to count changes, and overwritten
    *,
    with_moments: bool = True,
) -> tuple[NDArray[np.float64] | None, int]:
    """Write the nearest centre of every row into `labels`; the first one wins a tie.

    Returns moments (n_centres, n_features + 2) and the number of labels that changed.
    """
    if sparse.issparse(x):
        found = squared_distances(x, centres).argmin(axis=1).astype(np.int32)
        changed = int(np.count_nonzero(found != labels))
        labels[:] = found
        return (moments(x, weights, centres, labels) if with_moments else None), changed
    out = np.empty((len(centres), x.shape[1] + 2)) if with_moments else None
    return out, int(_kernels.assign(x, weights, centres, out, labels))


def squared_distances(x: Any, centres: NDArray[Any]) -> NDArray[Any]:
    """Return the squared Euclidean distances, shape (n_rows, n_centres)."""
    if sparse.issparse(x):
        out = np.asarray(x @ (-2.0 * centres.T))
        out += row_squares(x)[:, None]
        out += np.einsum("kl,kl->k", centres, centres)
        np.maximum(out, 0.0, out=out)
        return out
    out = np.empty((len(x), len(centres)), dtype=x.dtype)
    _kernels.distances(x, centres, out)
    return out


def row_squares(x: Any) -> NDArray[Any]:
    """Return the squared length of each row of a CSR matrix."""
    return np.asarray(x.multiply(x).sum(axis=1)).ravel()


def moments(x: Any, weights: NDArray[np.float64] | None, centres: NDArray[Any], q: NDArray[Any]) -> NDArray[np.float64]:
    """Return moments about each centre of its rows, by hard (n_rows,) or soft (n_rows, n_centres) labels."""
    k, d = centres.shape
    out = np.empty((k, d + 2))
    if q.ndim == 1 and not sparse.issparse(x):
        _kernels.moments(x, weights, centres, q.astype(np.int32, copy=False), out)
        return out
    if q.ndim == 1:
        shares = sparse.csr_matrix((np.ones(len(q)), (np.arange(len(q)), q)), shape=(len(q), k))
    else:
        shares = q.astype(np.float64, copy=False)
    if weights is not None:
        shares = shares.multiply(weights[:, None]).tocsr() if sparse.issparse(shares) else shares * weights[:, None]
    mass = np.asarray(shares.sum(axis=0)).ravel()
    if sparse.issparse(shares) or sparse.issparse(x):
        sums = shares.T @ x
        sums = np.asarray(sums.todense() if sparse.issparse(sums) else sums, dtype=np.float64)
    else:
        sums = np.einsum("ik,il->kl", shares, x)  # not a matrix product: see engine.latents.collect
    distances = squared_distances(x, centres)
    spread = shares.multiply(distances) if sparse.issparse(shares) else shares * distances
    out[:, 0] = mass
    out[:, 1:-1] = sums - mass[:, None] * centres
    out[:, -1] = np.asarray(spread.sum(axis=0)).ravel()
    return out


def centres_of(s: NDArray[np.float64], old: NDArray[Any], *, on_sphere: bool = False) -> tuple[NDArray[Any], float]:
    """Return the centres of smallest weighted sum of squares, and that sum; a centre without weight is unchanged.

    On the sphere centres have length one: they are the directions of the sums of rows. One without direction is
    unchanged.

    Parameters
    ----------
    s : ndarray of shape (n_centres, n_features + 2)
        Moments about `old`.
    old : ndarray of shape (n_centres, n_features)
    """
    mass, sums, spread = s[:, :1], s[:, 1:-1], s[:, -1]
    shift = np.divide(sums, mass, out=np.zeros_like(sums), where=mass > 0)
    centres = old + shift
    centres = (directions_of(centres, old) if on_sphere else centres).astype(old.dtype)
    moved = centres.astype(np.float64) - old
    return centres, float(spread.sum() + np.sum(moved * (mass * moved - 2 * sums)))


def directions_of(means: NDArray[np.float64], old: NDArray[Any]) -> NDArray[np.float64]:
    """Divide means by their lengths; one without direction is the old centre, or any direction where that is zero."""
    length = np.sqrt(np.einsum("kl,kl->k", means, means))[:, None]
    directions = np.divide(means, length, out=old.astype(np.float64), where=length > 1e-12)
    directions[~directions.any(axis=1), 0] = 1.0
    return np.asarray(directions)
