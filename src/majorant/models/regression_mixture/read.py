"""The construction of units from rows that are read block by block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks, Mapped
from majorant.data.rows import refuse_non_finite
from majorant.data.scratch import cached
from majorant.data.storage import StoredRows
from majorant.models.mixture_rows import refuse_torn_groups, row_weight_of
from majorant.models.regression_mixture.build import about_single, units_of
from majorant.models.regression_mixture.coordinates import Coordinates, coordinates_of, movable
from majorant.models.regression_mixture.extras import Extras
from majorant.models.regression_mixture.starts import weighted_fits
from majorant.models.regression_mixture.units import Units, UnitStream
from majorant.solvers.orthonormal import Gram, location, told_scales, triangular
from majorant.solvers.responses import Response
from majorant.solvers.single_line import moments, single_line

Array = NDArray[np.float64]
SAMPLE_BYTES = 1 << 24
"""Starts on streamed rows race on a sample of about this size."""


@dataclass(frozen=True)
class _Given:
    """The contents of a block, rows of a unit together; `first` and `groups` refer to units."""

    x: Array
    y: Array
    offset: Array
    trials: Array
    weights: Array
    first: NDArray[np.intp]
    groups: Array | None


def _given(block: Block, beside: tuple[str, ...]) -> _Given:
    x, y, *others = block.columns
    named = dict(zip(beside, others, strict=True))
    n, groups = len(block), named.get("groups")
    weights = np.ones(n) if block.weights is None else block.weights
    x = x.astype(np.float64, copy=False)
    offset, trials = named.get("offset", np.zeros(n)), named.get("trials", np.ones(n))
    if groups is None:
        return _Given(x, y, offset, trials, weights, np.arange(n), None)
    order = np.argsort(groups, kind="stable")
    names = groups[order]
    first = np.flatnonzero(np.append(True, names[1:] != names[:-1]))
    return _Given(x[order], y[order], offset[order], trials[order], weights[order], first, names[first])


def unit_stream(
    source: StoredRows,
    response: Response,
    *,
    fit_intercept: bool,
    shared: tuple[int, ...],
    seed: int,
    n_jobs: int | None,
) -> UnitStream:
    """Return the units of rows with their target, groups, offset and trials.

    Raises
    ------
    ValueError
        If a row holds NaN or infinity, a target cannot be of the family, or a group lies in several chunks.
    """
    beside, one, n_rows = source.beside_names, row_weight_of(source), source.n_units
    rows = Chunks(source, n_jobs=n_jobs)
    found = rows.map_sum(lambda block: [_looked_at(block, beside, response)])
    n_units = sum(look.n_units for look in found)
    if "groups" in beside:
        names = np.concatenate([np.asarray(look.groups) for look in found])
        refuse_torn_groups(names, np.repeat([look.chunk for look in found], [look.n_units for look in found]))
    sample = _sample(rows, beside, found, n_units, seed)
    coordinates = _coordinates(rows, sample, beside, fit_intercept, shared)
    few = units_of(
        *(sample.x, sample.y, None if (sample.weights == one).all() else sample.weights / one, sample.extras, response),
        fit_intercept=fit_intercept,
        shared=shared,
        coordinates=coordinates,
        n_jobs=n_jobs,
    )
    few = replace(few, weights=few.weights * few.unit, unit=one)  # whose own average is another
    is_exact = False
    if response.is_location_scale:

        def target(block: Block) -> Array:
            return np.asarray(block.columns[1] - _of(block, beside, "offset"))

        p = coordinates.n_coefficients
        pooled, sigma, is_exact = single_line(
            rows, lambda block: coordinates.design(_x(block)), target, p, fit_intercept=fit_intercept
        )
        coordinates = replace(coordinates, pooled=pooled, sigma=sigma)
    else:
        coordinates = replace(
            coordinates, pooled=weighted_fits(few.responses(response), np.ones((1, few.n_rows)), n_steps=30)[0]
        )

    has_weights = source.has_weights

    def standardised(block: Block) -> Block:
        given = _given(block, beside)
        units = Units(
            z=coordinates.design(given.x),
            y=given.y,
            offset=given.offset,
            trials=given.trials,
            first=given.first,
            gating=None,
            weights=given.weights[given.first] / one,
            labels=None,
            unit=one,
            coordinates=coordinates,
        )
        units = about_single(units, response)
        columns = tuple(np.ascontiguousarray(c) for c in units.columns)
        if "groups" in beside and not units.is_grouped:
            columns = (*columns, np.arange(units.n_units))
        weights = units.row_weights if has_weights else None
        return Block(block.first, columns, weights, block.memory, block.chunk)

    return UnitStream(
        data=Chunks(cached(Mapped(source, standardised), source.cache), n_jobs=n_jobs),
        sample=replace(about_single(replace(few, coordinates=coordinates), response), is_exact=is_exact),
        coordinates=coordinates,
        unit=one,
        n_sampled=sample.n_units,
        n_units=n_units,
        n_rows=n_rows,
        total_weight=sum(look.weight for look in found) / one,
        row_weight=rows.total_weight / one,
        is_exact=is_exact,
    )


def _x(block: Block) -> Array:
    return np.asarray(block.columns[0].astype(np.float64, copy=False))


def _of(block: Block, beside: tuple[str, ...], name: str) -> Array | float:
    return block.columns[2 + beside.index(name)] if name in beside else 0.0


# What the first pass sees


@dataclass(frozen=True)
class _Look:
    """One block: its chunk, units, their summed weight, and the names of its groups."""

    chunk: int
    first_row: int
    n_units: int
    weight: float
    groups: Array | None


def _looked_at(block: Block, beside: tuple[str, ...], response: Response) -> _Look:
    refuse_non_finite(block.columns[0], block.first, False)
    for name, column in zip(("y", *beside), block.columns[1:], strict=True):
        bad = np.flatnonzero(~np.isfinite(column))
        if len(bad):
            raise ValueError(f"row {block.first + bad[0]} of {name} is {column[bad[0]]}: drop such rows")
    given = _given(block, beside)
    if (given.trials < 1).any() or (given.trials != np.floor(given.trials)).any():
        raise ValueError("trials must be whole numbers of at least 1")
    last = block.first + len(block) - 1
    y = block.columns[1]
    trials = _of(block, beside, "trials") if "trials" in beside else np.ones(len(block))
    try:
        response.check(y, np.asarray(trials))
    except ValueError as error:
        raise ValueError(f"among rows {block.first} to {last}, counted from the first of them: {error}") from error
    sizes = np.diff(np.append(given.first, len(block)))
    weights = given.weights[given.first]
    if (given.weights != np.repeat(weights, sizes)).any():
        at = np.searchsorted(given.first, np.flatnonzero(given.weights != np.repeat(weights, sizes))[0], "right") - 1
        name = "" if given.groups is None else f" {given.groups[at]:g}"
        raise ValueError(f"sample_weight must be the same for all rows of a group; it differs in group{name}")
    return _Look(block.chunk, block.first, len(given.first), float(weights.sum()), given.groups)


# The sample, and coordinates that are those of all rows


@dataclass(frozen=True)
class _Sample:
    x: Array
    y: Array
    weights: Array
    extras: Extras
    n_units: int


def _sample(rows: Chunks, beside: tuple[str, ...], found: list[_Look], n_units: int, seed: int) -> _Sample:
    """Draw units uniformly, up to about `SAMPLE_BYTES`."""
    width = next(rows.source.blocks()).columns[0].shape[1]
    n_rows = min(rows.n_units, max(SAMPLE_BYTES // (8 * (width + 1)), 1000))
    size = min(n_units, -(-n_rows * n_units // rows.n_units))
    drawn = np.sort(np.random.default_rng(seed).choice(n_units, size, replace=False, shuffle=False))
    firsts = np.cumsum([0, *(look.n_units for look in found)])
    own = {
        look.first_row: drawn[slice(*np.searchsorted(drawn, [a, a + look.n_units]))] - a
        for look, a in zip(found, firsts.tolist(), strict=False)
    }

    def some(block: Block) -> list[tuple[Any, ...]]:
        given, at = _given(block, beside), own[block.first]
        sizes = np.diff(np.append(given.first, len(block)))
        picked = np.zeros(len(given.first), dtype=np.bool_)
        picked[at] = True
        kept = np.repeat(picked, sizes)
        columns = given.x, given.y, given.offset, given.trials, given.weights
        return [(*(c[kept] for c in columns), sizes[at])]

    x, y, offset, trials, weights, sizes = map(np.concatenate, zip(*rows.map_sum(some), strict=True))
    groups = np.repeat(np.arange(len(sizes)), sizes) if "groups" in beside else None
    extras = Extras(
        groups=groups, offset=offset if "offset" in beside else None, trials=trials if "trials" in beside else None
    )
    return _Sample(x, y, weights, extras, size)


def _coordinates(
    rows: Chunks, sample: _Sample, beside: tuple[str, ...], fit_intercept: bool, shared: tuple[int, ...]
) -> Coordinates:
    d = sample.x.shape[1]
    origin = np.where(movable(d, fit_intercept, shared), location(sample.x, np.maximum(sample.weights, 1e-300)), 0.0)

    def squares(block: Block) -> Array:
        x = _x(block) - origin
        w = np.ones(len(x)) if block.weights is None else block.weights
        return np.asarray(np.einsum("i,ij,ij->j", w, x, x))

    def gram(base: Coordinates) -> Gram:
        def of(transform: Array | None) -> Array:
            def columns(block: Block) -> tuple[Array, Array]:
                v = base.raw(_x(block))
                z = v if transform is None else np.einsum("ij,jp->ip", v, transform)
                return np.ascontiguousarray(z), np.zeros(len(v))

            return moments(rows, columns)[0]

        return of

    scales = told_scales(origin, np.sqrt(rows.map_sum(squares) / rows.total_weight))
    return coordinates_of(origin, scales, lambda base: triangular(gram(base)), fit_intercept, shared)
