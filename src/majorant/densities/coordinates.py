"""Coordinates in which units and correlations of the columns cannot matter, and the way back."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import rq

from majorant.solvers.covariance_types import COVARIANCES

Array = NDArray[np.float64]

STILL = 1e-12
"""Variance that a direction is given in which the rows do not vary, as a share of the columns' own variances."""

ROUNDING = 1e-14
"""Smallest share of the largest eigenvalue of the correlations that is told from rounding, times the columns."""


@dataclass(frozen=True)
class Coordinates:
    """An affine map ``u = (x - centre) @ forward`` and its inverse ``x = centre + u @ back``.

    Attributes
    ----------
    centre : ndarray of shape (n_features,)
    forward : ndarray of shape (n_features, rank)
    back : ndarray of shape (rank, n_features)
    still : ndarray of shape (n_still, n_features)
        Standard deviations, as vectors, of the directions in which the rows do not vary.
    still_forward : ndarray of shape (n_features, n_still)
        The map to those directions, in their standard deviations.
    log_volume : float
        What to add to a log-density in `u` to have it in `x`, at a row of the fit.
    """

    centre: Array
    forward: Array
    back: Array
    still: Array
    still_forward: Array
    log_volume: float

    @property
    def rank(self) -> int:
        """Number of directions in which the rows vary."""
        return int(self.forward.shape[1])

    def of(self, x: NDArray[np.floating]) -> Array:
        """Rows in these coordinates."""
        return _times(x.astype(np.float64, copy=False) - self.centre, self.forward)

    def in_units(self, scale: float, origin: Array) -> Coordinates:
        """The same coordinates for rows ``x / scale + origin``."""
        lost = (self.rank + len(self.still)) * float(np.log(scale))
        return Coordinates(
            self.centre / scale + origin,
            self.forward * scale,
            self.back / scale,
            self.still / scale,
            self.still_forward * scale,
            self.log_volume + lost,
        )

    def rescaled(self, covariance: Array) -> Coordinates:
        """Coordinates in which a covariance of these is the identity.

        Parameters
        ----------
        covariance : ndarray of shape (rank, rank), (rank,) or ()
            Positive definite; a diagonal stays one, a number scales all.
        """
        if covariance.ndim < 2:
            root = np.broadcast_to(np.sqrt(covariance), (self.rank,))
            forward, back = self.forward / root, self.back * root[:, None]
        else:
            values, vectors = np.linalg.eigh(covariance)
            root = np.sqrt(values)
            forward, back = self.forward @ (vectors / root), (vectors * root).T @ self.back
        return replace(self, forward=forward, back=back, log_volume=self.log_volume - float(np.log(root).sum()))


@dataclass(frozen=True)
class Frames:
    """The three coordinates in which starts are made.

    Attributes
    ----------
    whitened : Coordinates
        The total covariance is the identity.
    standardised : Coordinates
        Every column has variance one.
    scaled : Coordinates
        One unit for all columns: the root mean square of their standard deviations.
    constant : tuple of int
        Columns that do not vary.
    dependent : tuple of int
        Columns that are linear functions of each other.
    """

    whitened: Coordinates
    standardised: Coordinates
    scaled: Coordinates
    constant: tuple[int, ...]
    dependent: tuple[int, ...]

    def of_type(self, covariance_type: str) -> Coordinates:
        """Those in which the EM of a covariance type runs."""
        chosen: Coordinates = getattr(self, COVARIANCES[covariance_type].frame)
        return chosen


def frames(
    points: NDArray[np.floating], weights: Array, precision: float, total: tuple[Array, Array] | None = None
) -> Frames:
    """The coordinates of weighted rows.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
    weights : ndarray of shape (n_points,)
    precision : float
        Relative rounding of the numbers that the rows were given in.
    total : pair of ndarray, optional
        Mean and covariance of the rows, where they are known to be others than those of `points`.
    """
    x = points.astype(np.float64, copy=False)
    share = weights / weights.sum()
    centre = np.einsum("i,ij->j", share, x) if total is None else total[0]
    x = x - centre
    varies = np.ptp(points, axis=0) > 0
    sd = np.where(varies, _deviations(share, x) if total is None else np.sqrt(np.diag(total[1])), 0.0)
    varies &= sd > 0  # what is too small for a number is no variance
    mean = float(np.mean(sd**2))
    unit = np.sqrt(mean) if mean > 0 else 1.0
    sd = np.where(varies, sd, unit)
    columns = np.eye(len(sd))
    if total is None:
        y = (x / sd)[:, varies]
        correlations = np.einsum("i,ij,ik->jk", share, y, y)
    else:
        correlations = (total[1] / np.outer(sd, sd))[np.ix_(varies, varies)]
    values, vectors = np.linalg.eigh(correlations) if varies.any() else (np.zeros(0), np.zeros((0, 0)))
    limit = max(ROUNDING, precision**2) * max(len(sd), 1) * values.max(initial=0.0)
    kept = values > limit
    moving, idle = np.zeros((len(sd), kept.sum())), np.zeros((len(sd), (~kept).sum()))
    moving[varies], idle[varies] = vectors[:, kept], vectors[:, ~kept]
    dependent = np.flatnonzero(np.abs(idle).max(axis=1, initial=0.0) > 1e-6)
    idle = np.hstack([idle, columns[:, ~varies]])
    roots = np.sqrt(values[kept])
    return Frames(
        _frame(centre, moving / roots / sd[:, None], (moving * roots).T * sd, idle, sd),
        _frame(centre, columns[:, varies] / sd[:, None], columns[varies] * sd, columns[:, ~varies], sd),
        _frame(centre, columns / unit, columns * unit, columns[:, :0], sd),
        tuple(np.flatnonzero(~varies).tolist()),
        tuple(dependent.tolist()),
    )


def _deviations(share: Array, x: Array) -> Array:
    """Standard deviations of columns about zero; beside a wide column the squares of a narrow one may be no numbers."""
    size = np.ldexp(1.0, np.frexp(np.abs(x).max(axis=0))[1])
    y = x / size
    return np.asarray(np.sqrt(np.einsum("i,ij,ij->j", share, y, y)) * size)


def _frame(centre: Array, forward: Array, back: Array, idle: Array, sd: Array) -> Coordinates:
    """Coordinates with the directions `idle`, orthonormal in standard deviations, left out."""
    thin = np.sqrt(STILL)
    still, still_forward = (idle * thin).T * sd, idle / thin / sd[:, None]
    whole = np.hstack([forward, still_forward])
    volume = float(np.linalg.slogdet(whole)[1]) - 0.5 * idle.shape[1] * float(np.log(2 * np.pi))
    return Coordinates(centre, forward, back, still, still_forward, volume)


def upper_factor(factor: Array) -> Array:
    """The upper triangular P with a positive diagonal and ``P P' = factor factor'``."""
    upper = rq(factor, mode="r", check_finite=False)[:, -len(factor) :]
    signs = np.where(np.diag(upper) < 0, -1.0, 1.0)
    return np.asarray(upper * signs)


def _times(x: Array, matrix: Array) -> Array:
    """A product row by row: BLAS might round a row by where it stands."""
    return np.asarray(np.einsum("ij,jk->ik", x, matrix))
