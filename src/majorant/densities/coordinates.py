"""Coordinates that make a fit independent of units and correlations of the columns, and their inverse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import rq

from majorant.solvers.covariance_types import COVARIANCES, times

Array = NDArray[np.float64]

STILL = 1e-12
"""Variance that a direction is given in which the rows do not vary, as a share of the columns' own variances."""

ROUNDING = 1e-14
"""Smallest eigenvalue of the correlations that is above rounding, as a share of the largest, per column."""


@dataclass(frozen=True)
class Coordinates:
    """An affine map ``u = (x - centre) @ forward`` and its inverse ``x = centre + u @ back``.

    Its matrices are sparse where each column is mapped by itself: of wide rows no table has a side of columns twice.
    """

    centre: Array  # (n_features,)
    forward: Any  # CSR or dense (n_features, rank)
    back: Any  # CSR or dense (rank, n_features)
    # CSR or dense (n_still, n_features): standard deviations, as vectors, of the directions in which the rows do not
    # vary
    still: Any
    still_forward: Any  # CSR or dense (n_features, n_still): the map to those directions, in their standard deviations
    log_volume: float  # what to add to a log-density in `u` to have it in `x`, at a row of the fit

    @property
    def rank(self) -> int:
        """Number of directions in which the rows vary."""
        return int(self.forward.shape[1])

    def of(self, x: NDArray[np.floating]) -> Array:
        """Return the rows in these coordinates."""
        return times(x.astype(np.float64, copy=False) - self.centre, self.forward)

    def in_units(self, scale: float, origin: Array) -> Coordinates:
        """Return the same coordinates for rows ``x / scale + origin``."""
        lost = (self.rank + self.still.shape[0]) * float(np.log(scale))
        return Coordinates(
            self.centre / scale + origin,
            self.forward * scale,
            self.back / scale,
            self.still / scale,
            self.still_forward * scale,
            self.log_volume + lost,
        )

    def rescaled(self, covariance: Array) -> Coordinates:
        """Return the coordinates in which a covariance of these is the identity.

        Parameters
        ----------
        covariance : ndarray of shape (rank, rank), (rank,) or ()
            Positive definite; a diagonal stays one, a number scales all.
        """
        if covariance.ndim < 2:
            root = np.broadcast_to(np.sqrt(covariance), (self.rank,))
            own = sparse.diags_array(root, format="csr")
            forward, back = self.forward @ sparse.diags_array(1 / root, format="csr"), own @ self.back
        else:
            values, vectors = np.linalg.eigh(covariance)
            root = np.sqrt(values)
            forward, back = self.forward @ (vectors / root), (vectors * root).T @ self.back
        return replace(self, forward=forward, back=back, log_volume=self.log_volume - float(np.log(root).sum()))


@dataclass(frozen=True)
class Frames:
    """The three coordinates in which starts are made."""

    # The total covariance is the identity. Of wide rows and covariances that are no matrices they are for starts alone,
    # and leave out what the rows do not vary in: volume and still directions.
    whitened: Coordinates
    standardised: Coordinates  # every column has variance one
    scaled: Coordinates  # one unit for all columns: the root mean square of their standard deviations
    constant: tuple[int, ...]  # columns that do not vary
    dependent: tuple[int, ...]  # columns that are linear functions of each other

    def of_type(self, covariance_type: str) -> Coordinates:
        """Return the coordinates in which EM for a covariance type runs."""
        chosen: Coordinates = getattr(self, COVARIANCES[covariance_type].frame)
        return chosen


def frames(
    points: NDArray[np.floating],  # (n_points, n_features)
    weights: Array,  # (n_points,)
    precision: float,  # relative rounding of the numbers that the rows were given in
    # mean and covariance of the rows, where they differ from those of `points`
    total: tuple[Array, Array] | None = None,
    *,
    # whether they are for covariance matrices; for variances alone wide rows need no table of columns by columns
    has_matrices: bool = True,
) -> Frames:
    """Return the coordinates of weighted rows."""
    x = points.astype(np.float64, copy=False)
    share = weights / weights.sum()
    centre = np.einsum("i,ij->j", share, x) if total is None else total[0]
    x = x - centre
    varies = np.ptp(points, axis=0) > 0
    sd = np.where(varies, _deviations(share, x) if total is None else np.sqrt(np.diag(total[1])), 0.0)
    varies &= sd > np.finfo(np.float64).tiny  # what is too small for a number, or has no inverse, is no variance
    mean = float(np.mean(sd**2))
    unit = np.sqrt(mean) if mean > 0 else 1.0
    sd = np.where(varies, sd, unit)
    limit = max(ROUNDING, precision**2) * max(len(sd), 1)
    standardised, scaled = _columnwise(centre, sd, varies, sd), _columnwise(centre, np.full(len(sd), unit), None, sd)
    constant = tuple(np.flatnonzero(~varies).tolist())
    if len(x) < len(sd) and total is None and not has_matrices:
        return Frames(_thin(centre, share, x, sd, varies, limit), standardised, scaled, constant, ())
    columns = np.eye(len(sd))
    if total is None:
        y = (x / sd)[:, varies]
        correlations = np.einsum("i,ij,ik->jk", share, y, y)
    else:
        correlations = (total[1] / np.outer(sd, sd))[np.ix_(varies, varies)]
    values, vectors = np.linalg.eigh(correlations) if varies.any() else (np.zeros(0), np.zeros((0, 0)))
    kept = values > limit * values.max(initial=0.0)
    moving, idle = np.zeros((len(sd), kept.sum())), np.zeros((len(sd), (~kept).sum()))
    moving[varies], idle[varies] = vectors[:, kept], vectors[:, ~kept]
    dependent = np.flatnonzero(np.abs(idle).max(axis=1, initial=0.0) > 1e-6)
    idle = np.hstack([idle, columns[:, ~varies]])
    roots = np.sqrt(values[kept])
    return Frames(
        _frame(centre, moving / roots / sd[:, None], (moving * roots).T * sd, idle, sd),
        standardised,
        scaled,
        constant,
        tuple(dependent.tolist()),
    )


def _deviations(share: Array, x: Array) -> Array:
    """Return standard deviations of columns about zero, scaled so that squares of narrow columns do not underflow."""
    size = np.ldexp(1.0, np.frexp(np.abs(x).max(axis=0))[1])
    y = x / size
    return np.asarray(np.sqrt(np.einsum("i,ij,ij->j", share, y, y)) * size)


def _frame(centre: Array, forward: Array, back: Array, idle: Array, sd: Array) -> Coordinates:
    """Return the coordinates without the directions `idle` (orthonormal in standard deviations)."""
    thin = np.sqrt(STILL)
    still, still_forward = (idle * thin).T * sd, idle / thin / sd[:, None]
    whole = np.hstack([forward, still_forward])
    volume = float(np.linalg.slogdet(whole)[1]) - 0.5 * idle.shape[1] * float(np.log(2 * np.pi))
    return Coordinates(centre, forward, back, still, still_forward, volume)


def _columnwise(centre: Array, factor: Array, varies: NDArray[np.bool_] | None, sd: Array) -> Coordinates:
    """Return the coordinates that divide each column by its factor, without constant columns."""
    every = np.arange(len(sd))
    kept, idle = (every, every[:0]) if varies is None else (np.flatnonzero(varies), np.flatnonzero(~varies))
    thin = np.sqrt(STILL)
    volume = -float(np.log(factor[kept]).sum() + np.log(thin * sd[idle]).sum()) - 0.5 * len(idle) * float(
        np.log(2 * np.pi)
    )
    with np.errstate(over="ignore"):  # of columns that are not picked
        inverse, thin_inverse = 1 / factor, 1 / (thin * sd)
    return Coordinates(
        centre,
        _picked(inverse, kept),
        _picked(factor, kept).T.tocsr(),
        _picked(thin * sd, idle).T.tocsr(),
        _picked(thin_inverse, idle),
        volume,
    )


def _picked(factor: Array, kept: NDArray[np.intp]) -> sparse.csr_array:
    """Return the map to some of the columns, each times its factor."""
    return sparse.csr_array((factor[kept], (kept, np.arange(len(kept)))), shape=(len(factor), len(kept)))


def _thin(centre: Array, share: Array, x: Array, sd: Array, varies: NDArray[np.bool_], limit: float) -> Coordinates:
    """Return the whitened coordinates of fewer rows than columns, from the products of rows."""
    y = np.where(varies, x / sd, 0.0) * np.sqrt(share)[:, None]
    values, vectors = np.linalg.eigh(np.einsum("ij,kj->ik", y, y))
    kept = values > limit * values.max(initial=0.0)
    roots = np.sqrt(values[kept])
    moving = np.einsum("ij,ik->jk", y, vectors[:, kept] / roots)
    none = np.zeros((0, len(sd)))
    return Coordinates(centre, moving / roots / sd[:, None], (moving * roots).T * sd, none, none.T, np.nan)


def upper_factor(factor: Array) -> Array:
    """Return the upper triangular P with a positive diagonal and ``P P' = factor factor'``."""
    upper = rq(factor, mode="r", check_finite=False)[:, -len(factor) :]
    signs = np.where(np.diag(upper) < 0, -1.0, 1.0)
    return np.asarray(upper * signs)
