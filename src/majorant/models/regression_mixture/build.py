"""The construction of units from rows in memory: canonical order, standard coordinates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Chunks
from majorant.data.units import distinct_units
from majorant.models.regression_mixture.coordinates import Coordinates, coordinates_of, movable
from majorant.models.regression_mixture.extras import Extras
from majorant.models.regression_mixture.starts import weighted_fits
from majorant.models.regression_mixture.units import Units
from majorant.solvers.orthonormal import WITHOUT_EFFECT, location, spread, told_scales, triangle_of
from majorant.solvers.responses import Response
from majorant.solvers.single_line import single_line

Array = NDArray[np.float64]


def units_of(
    X: Array,
    y: Array,
    weights: Array | None,
    extras: Extras,
    response: Response,
    *,
    fit_intercept: bool,
    shared: tuple[int, ...],
    coordinates: Coordinates | None = None,
    n_jobs: int | None = None,
) -> Units:
    """Return the units of a fit, in coordinates of their own, or in given ones: the single model is not taken out then.

    Raises
    ------
    ValueError
        If X has nothing but zeros and there is no intercept.
    """
    n = len(y)
    offset = np.zeros(n) if extras.offset is None else extras.offset
    trials = np.ones(n) if extras.trials is None else extras.trials
    columns: list[NDArray[Any]] = [X, y, offset, trials]
    columns += [] if extras.gating is None else [extras.gating]
    columns += [] if extras.labels is None else [extras.labels]
    found = distinct_units(columns, weights, extras.groups)
    X, y, offset, trials = found.columns[:4]
    others = list(found.columns[4:])
    codes = others.pop() if extras.groups is not None else np.arange(len(y))
    first = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    labels = None if extras.labels is None else others.pop()[first]
    gates = None if extras.gating is None else others.pop()[first]
    mass = found.weights[first]
    w = mass / found.row_weight
    is_given = coordinates is not None
    if coordinates is None:
        sizes = np.diff(np.append(first, len(y)))
        coordinates = _coordinates(X, np.repeat(w, sizes), gates, w, fit_intercept, shared)
    units = Units(
        z=coordinates.design(X),
        y=y,
        offset=offset,
        trials=trials,
        first=first,
        gating=None if gates is None else coordinates.gating(gates),
        weights=w,
        labels=labels,
        unit=found.row_weight,
        coordinates=coordinates,
        positions=found.positions,
        n_jobs=n_jobs,
    )
    return units if is_given else _standardised(units, response)


def _coordinates(
    X: Array, row_weights: Array, gates: Array | None, weights: Array, fit_intercept: bool, shared: tuple[int, ...]
) -> Coordinates:
    mean = location(X, row_weights) if fit_intercept else np.zeros(X.shape[1])
    origin = np.where(movable(X.shape[1], fit_intercept, shared), mean, 0.0)
    varies = told_scales(mean, spread(X - mean, row_weights)) < WITHOUT_EFFECT
    scales = np.where(varies, spread(X - origin, row_weights), WITHOUT_EFFECT)
    coordinates = coordinates_of(
        origin, scales, lambda base: triangle_of(base.raw(X), row_weights), fit_intercept, shared
    )
    if gates is None:
        return coordinates
    at = location(gates, weights)
    width = told_scales(at, spread(gates - at, weights))
    v = np.column_stack([np.ones(len(gates)), (gates - at) / width])
    transform = triangle_of(v, weights)[0]
    return replace(coordinates, gating_origin=at, gating_scales=width, gating_transform=transform)


def _standardised(units: Units, response: Response) -> Units:
    """Move the single model into the offset; a location-scale target becomes its standardised residual."""
    coordinates = units.coordinates
    if not response.is_location_scale:
        pooled = weighted_fits(units.responses(response), np.ones((1, units.n_rows)), n_steps=30)[0]
        units = about_single(replace(units, coordinates=replace(coordinates, pooled=pooled)), response)
        if not response.has_dispersion:
            return units
        lost = units.responses(response).deviance(np.zeros((1, units.n_coefficients)))[0]
        dispersion = response.dispersion(np.average(lost, weights=units.row_weights))
        return replace(units, is_exact=bool(dispersion <= response.least_dispersion))
    assert units.offset is not None
    y = units.y - units.offset
    size = float(np.abs(y).max()) or 1.0
    pooled, sigma, is_exact = single_line(
        Chunks(units.z, y / size, weights=units.row_weights),
        lambda block: block.columns[0],
        lambda block: block.columns[1],
        units.n_coefficients,
        fit_intercept=coordinates.fit_intercept,
    )
    residuals = (y / size - np.einsum("ij,j->i", units.z, pooled)) / sigma
    coordinates = replace(coordinates, pooled=pooled * size, sigma=sigma * size)
    return replace(units, y=residuals, offset=None, trials=None, coordinates=coordinates, is_exact=is_exact)


def about_single(units: Units, response: Response) -> Units:
    """Move the single model into the offset; a location-scale target becomes its residual."""
    assert units.offset is not None
    fit = units.offset + np.einsum("ij,j->i", units.z, units.coordinates.pooled)
    if not response.is_location_scale:
        return replace(units, offset=fit)
    return replace(units, y=(units.y - fit) / units.coordinates.sigma, offset=None, trials=None)
