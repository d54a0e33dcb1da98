"""From rows as they were given to the units of a fit: canonical order, standard coordinates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.models.regression_mixture.design import unit_of_noise
from majorant.models.regression_mixture.experts.coordinates import (
    Coordinates,
    coordinates_of,
    gram_of,
    location,
    movable,
    spread,
    triangular,
)
from majorant.models.regression_mixture.experts.extras import Extras
from majorant.models.regression_mixture.experts.starts import weighted_fits
from majorant.models.regression_mixture.experts.units import Units
from majorant.solvers.responses import Response


def units_of(
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    extras: Extras,
    response: Response,
    *,
    fit_intercept: bool,
    shared: tuple[int, ...],
    coordinates: Coordinates | None = None,
) -> Units:
    """The units of a fit.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    weights : ndarray of shape (n_samples,), optional
    extras : Extras
    response : Response
    fit_intercept : bool
    shared : tuple of int
        Columns with one coefficient for all components; -1 is the intercept.
    coordinates : Coordinates, optional
        Those of other rows: the units are then put into them, and the single model is not taken out.

    Raises
    ------
    ValueError
        If X has nothing but zeros and there is no intercept.
    """
    n = len(y)
    offset = np.zeros(n) if extras.offset is None else extras.offset
    trials = np.ones(n) if extras.trials is None else extras.trials
    parts = [X, y[:, None], offset[:, None], trials[:, None]]
    if extras.gating is not None:
        parts.append(extras.gating)
    if extras.labels is not None:
        parts.append(extras.labels[:, None].astype(np.float64))
    rows, first, mass = _canonical(np.column_stack(parts), extras.groups, weights)
    unit = float(mass.sum()) / len(mass)
    w = np.ones(len(mass)) if mass.min() == mass.max() else mass / unit
    unit = float(mass[0]) if mass.min() == mass.max() else unit
    sizes = np.diff(np.append(first, len(rows)))
    heads = rows[first]
    gates = None if extras.gating is None else extras.gating[heads]
    is_given = coordinates is not None
    if coordinates is None:
        coordinates = _coordinates(X[rows], np.repeat(w, sizes), gates, w, fit_intercept, shared)
    units = Units(
        z=coordinates.design(X[rows]),
        y=np.ascontiguousarray(y[rows, None]),
        offset=np.ascontiguousarray(offset[rows, None]),
        trials=np.ascontiguousarray(trials[rows, None]),
        first=first,
        gating=None if gates is None else coordinates.gating(gates),
        weights=w,
        labels=None if extras.labels is None else extras.labels[heads],
        unit=unit,
        coordinates=coordinates,
    )
    return units if is_given else _standardised(units, response)


def _canonical(
    table: NDArray[np.float64], groups: NDArray[np.intp] | None, weights: NDArray[np.float64] | None
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Rows of the distinct units in canonical order, the first of each, and their summed weights."""
    n = len(table)
    w = np.ones(n) if weights is None else weights
    kept = np.flatnonzero(w > 0)
    order = np.empty(len(kept), dtype=np.int64)
    is_new = np.empty(len(kept), dtype=np.uint8)
    _kernels.sort_rows(np.ascontiguousarray(table[kept]), order, is_new)
    rank = np.empty(n, dtype=np.intp)
    rank[kept[order]] = np.cumsum(is_new) - 1
    if groups is None:
        keys = rank[kept]
        starts = np.arange(len(kept))
        rows = kept
    else:
        rows = kept[np.lexsort((rank[kept], groups[kept]))]
        codes = groups[rows]
        starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
        keys = _ranks(rank[rows], starts)
    by_key = np.lexsort((w[rows[starts]], keys))
    ordered = keys[by_key]
    is_first = np.append(True, ordered[1:] != ordered[:-1])
    mass = np.add.reduceat(w[rows[starts]][by_key], np.flatnonzero(is_first))
    units = by_key[is_first]
    sizes = np.diff(np.append(starts, len(rows)))[units]
    first = np.cumsum(sizes) - sizes
    picked = np.repeat(starts[units] - first, sizes) + np.arange(int(sizes.sum()))
    return rows[picked], first, mass


def _ranks(rank: NDArray[np.intp], starts: NDArray[np.intp]) -> NDArray[np.intp]:
    """The place of each unit's rows, in order, among those of all units."""
    ends = np.append(starts[1:], len(rank))
    content = [rank[a:b].astype(">i8").tobytes() for a, b in zip(starts, ends, strict=True)]
    places = {key: place for place, key in enumerate(sorted(set(content)))}
    return np.array([places[key] for key in content], dtype=np.intp)


def _coordinates(
    X: NDArray[np.float64],
    row_weights: NDArray[np.float64],
    gates: NDArray[np.float64] | None,
    weights: NDArray[np.float64],
    fit_intercept: bool,
    shared: tuple[int, ...],
) -> Coordinates:
    origin = np.zeros(X.shape[1])
    if fit_intercept:
        origin = np.where(movable(X.shape[1], fit_intercept, shared), location(X, row_weights), 0.0)
    scales = spread(X - origin, row_weights)
    coordinates = coordinates_of(origin, scales, lambda base: gram_of(base.raw(X), row_weights), fit_intercept, shared)
    if gates is None:
        return coordinates
    at = location(gates, weights)
    width = spread(gates - at, weights)
    v = np.column_stack([np.ones(len(gates)), (gates - at) / width])
    transform = triangular(gram_of(v, weights))[0]
    return replace(coordinates, gating_origin=at, gating_scales=width, gating_transform=transform)


def _standardised(units: Units, response: Response) -> Units:
    """The single model's fit goes into the offset; a location-scale target becomes its standardised residual."""
    if not response.is_location_scale:
        pooled = weighted_fits(units, response, np.ones((units.n_rows, 1)), n_steps=30)[0]
        coordinates = replace(units.coordinates, pooled=pooled)
        return replace(
            units, coordinates=coordinates, offset=units.offset + np.einsum("ij,j->i", units.z, pooled)[:, None]
        )
    y = units.y - units.offset
    share = units.row_weights / units.row_weight
    size = float(np.abs(y).max()) or 1.0
    u = y[:, 0] / size
    pooled = np.zeros(units.n_coefficients)
    for _ in range(2):  # a second step takes what rounding left of the first
        pooled = pooled + np.einsum("i,ij,i->j", share, units.z, u - np.einsum("ij,j->i", units.z, pooled))
    residuals = u - np.einsum("ij,j->i", units.z, pooled)
    variance = float(np.sum(share * residuals**2))
    mean = float(location(u[:, None], units.row_weights)[0])
    about = u - mean if units.coordinates.fit_intercept else u
    spread = float(np.sqrt(np.sum(share * about**2)))
    sigma, is_exact = unit_of_noise(float(np.sqrt(variance)), spread, abs(mean))
    coordinates = replace(units.coordinates, pooled=pooled * size, sigma=sigma * size)
    return replace(
        units,
        y=np.ascontiguousarray((residuals / sigma)[:, None]),
        offset=np.zeros_like(units.offset),
        coordinates=coordinates,
        is_exact=is_exact,
    )
