"""Rows of a mixture, and the law of their states."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from majorant._validation import check_groups, levels_to_user
from majorant.data.chunks import Block, Chunks, Mapped, Source
from majorant.data.measure import means_and_deviations
from majorant.data.storage import StoredRows
from majorant.data.units import Units, distinct_units, row_weight
from majorant.engine.mixture import Mixture, Parameters
from majorant.laws import Gated, Grouped, Known
from majorant.models.covariates import Covariates, of_undetermined, refuse_wide_covariates
from majorant.solvers.orthonormal import CONSTANT

Array = NDArray[np.float64]
ACCEPTED: dict[str, Any] = {"dtype": [np.float64, np.float32], "order": "C", "ensure_all_finite": "allow-nan"}
"""Arguments of scikit-learn's ``validate_data`` for rows in memory."""


@dataclass(frozen=True)
class Rows:
    """Rows of a fit: columns of the density, then of the law; weights, and where each given row is among them.

    Groups are passed once more, so that no block cuts one. `dtype` is the type of the numbers that
    were given.
    """

    columns: tuple[Any, ...]
    weights: Array
    positions: NDArray[np.intp]
    row_weight: float
    n_rows: float
    groups: NDArray[np.intp] | None = None
    dtype: Any = np.float64


def rows_of(units: Units, n_columns: int, are_grouped: bool, dtype: Any) -> Rows:
    """Return distinct units as rows: the law of groups reads the group first, then the columns of the law within."""
    own, numbers = units.columns, None
    if are_grouped:
        numbers = own[-1]
        own = (*own[:n_columns], numbers, *own[n_columns:-1])
    return Rows(own, units.weights, units.positions, units.row_weight, units.n_rows, numbers, dtype)


def law_of(
    n: int,
    n_components: int,
    groups: Any,
    covariates: Array | None,
    component_labels: Any,
    plain: Any,
    own: Sequence[NDArray[Any]] = (),
) -> tuple[Any, list[NDArray[Any]], NDArray[np.intp] | None]:
    """Return the law of the states of n rows, the columns that it reads, and the group of each row.

    `plain` is the law of rows of which neither group, covariates nor label is given, and `own` are its columns.
    """
    codes, names = (None, None) if groups is None else check_groups(groups, n)
    law: Any = plain
    extra = list(own)
    if codes is not None:
        for what, table in [("gating", covariates), *(("population", column) for column in own)]:
            if table is not None:
                check_constant(what, table, codes, names)
    if covariates is not None:
        law, extra = Gated(covariates.shape[1]), [covariates]
    if component_labels is not None:
        labels = checked_labels(component_labels, n, n_components)
        labels = labels if codes is None else labels_of_groups(labels, codes, names)
        law, extra = Known(law), [labels, *extra]
    return law if codes is None else Grouped(law), extra, codes


def checked_labels(labels: Any, n: int, n_components: int) -> NDArray[np.intp]:
    """Return the known component of each of n rows, -1 where it is not known: given as -1, NaN or None."""
    raw = np.asarray(labels)
    if raw.shape != (n,):
        raise ValueError(
            f"component_labels must be one whole number per row, shape ({n},), -1 where it is unknown; got "
            f"{raw.dtype} of shape {raw.shape}"
        )
    try:
        if raw.dtype.kind not in "biufO":
            raise TypeError
        known = [-1 if v is None else v for v in raw.tolist()] if raw.dtype.kind == "O" else raw
        values = np.asarray(known, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"component_labels must hold whole numbers, -1 where unknown; got an array of {raw.dtype}"
        ) from None
    values = np.where(np.isnan(values), -1.0, values)
    bad = np.flatnonzero((values != np.floor(values)) | (values < -1) | (values >= n_components))
    if len(bad):
        raise ValueError(
            f"component_labels must be from -1 to {n_components - 1}; got {raw[bad[0]]} in row {bad[0]}: give whole "
            f"numbers from 0 to {n_components - 1}, or -1 where unknown"
        )
    return values.astype(np.intp)


def first_rows(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the first row of each group."""
    return np.unique(codes, return_index=True)[1]


def check_constant(what: str, table: NDArray[Any], codes: NDArray[np.intp], names: NDArray[Any] | None) -> None:
    """Refuse a table that differs between rows of one group: the group has one component."""
    first = first_rows(codes)
    differs = table != table[first[codes]]
    bad = np.flatnonzero(differs if differs.ndim == 1 else differs.any(axis=1))
    if len(bad):
        i = int(bad[0])
        name = names[codes[i]] if names is not None else codes[i]
        raise ValueError(
            f"{what} must be the same for all rows of a group, which has one component; "
            f"rows {int(first[codes[i]])} and {i} of group {name!s} differ"
        )


def labels_of_groups(labels: NDArray[np.intp], codes: NDArray[np.intp], names: NDArray[Any] | None) -> NDArray[np.intp]:
    """Give all rows of a group its one known label."""
    known = labels >= 0
    of_group = np.full(int(codes.max()) + 1, -1, dtype=np.intp)
    of_group[codes[known]] = labels[known]
    wrong = np.flatnonzero(known & (of_group[codes] != labels))
    if len(wrong):
        name = names[codes[wrong[0]]] if names is not None else codes[wrong[0]]
        raise ValueError(f"component_labels of group {name!s} differ: a group has one component")
    return of_group[codes]


def gating_width(law: Any) -> int:
    """Return the number of columns on which the weights of a law depend, the constant among them; 0 for none."""
    while hasattr(law, "law"):
        law = law.law
    return law.n_covariates if isinstance(law, Gated) else 0


def estimates_of_law(law: Any, phi: Any, order: NDArray[np.intp]) -> dict[str, Array]:
    """Return the estimates of a law for reordered states."""
    return {name: values[0] for name, values in law.describe(law.relabelled(phi, order)).items()}


def drawn_states(
    law: Any, phi: Any, codes: NDArray[np.intp], table: Array | None, random: np.random.Generator
) -> NDArray[np.intp]:
    """Draw a state for each row, given its group and covariates, if any."""
    first = np.unique(codes, return_index=True)[1]
    shares = np.exp(law.log_prior(phi, Block(0, (first if table is None else table[first],)))[0])
    ends = np.cumsum(np.broadcast_to(shares, (len(shares), len(first))), axis=0)
    drawn = (ends[:-1] <= random.random(len(first)) * ends[-1]).sum(axis=0)
    return np.asarray(drawn[codes], dtype=np.intp)


def row_weight_of(source: StoredRows) -> float:
    """Return the weight of one row of a stream; see ``data.units.row_weight``."""
    if not source.has_weights:
        return 1.0
    return row_weight(Chunks(source).map_rows(lambda block: np.asarray(block.weights), ()))


def of_weighted_rows(said: str, row_weight: float) -> str:
    """Say what a row is, where a sentence ends with a number of rows and weights are no whole numbers."""
    return f"{said} of the mean weight, {row_weight:.4g}" if row_weight != 1.0 and said.endswith(" rows") else said


def in_rows(columns: Source, row_weight: float) -> Source:
    """Return the columns of a stream with weights that count rows."""
    if row_weight == 1.0:
        return columns

    def counted(block: Block) -> Block:
        return replace(block, weights=np.asarray(block.weights) / row_weight)

    return Mapped(columns, counted)


def standardise_gating(model: Any, gating: Any, n: int, weights: Array | None) -> None:
    """Set the covariates of a fit, with weighted means and standard deviations, whatever the order of rows.

    Coefficients of an earlier fit, at which a warm start begins, are told for these, so that logits stay as they are.
    """
    model.covariates_ = Covariates.learned(gating, n)
    model.gating_names_in_ = model.covariates_.column_names
    table = model.covariates_.table(gating, n)
    refuse_wide_covariates(table)
    units = distinct_units([table], weights)
    rows, counts = units.columns[0], units.weights / units.row_weight
    if said := of_undetermined(rows, model._in_words(model.gating_names_in_)):
        warnings.warn(said, ConvergenceWarning, stacklevel=levels_to_user())
    center, deviation = means_and_deviations(rows, counts)
    scale = np.where(deviation > CONSTANT * np.abs(center), deviation, 1.0)
    coef = getattr(model, "gating_coef_", np.empty((0, 0)))
    if coef.ndim == 2 and coef.shape[1] == 1 + len(center):
        level = coef[:, :1] + coef[:, 1:] @ ((center - model.gating_center_) / model.gating_scale_)[:, None]
        model.gating_coef_ = np.hstack([level, coef[:, 1:] * (scale / model.gating_scale_)])
    model.gating_center_, model.gating_scale_ = center, scale


def check_given(model: Any, groups: Any, gating: Any, labels: Any) -> None:
    """Raise an error if the units differ from those of the fit."""
    check_is_fitted(model)
    if model.is_grouped_ and groups is None:
        raise ValueError(
            "rows of one group have one component in this fit: give groups, or the likelihood is of other units"
        )
    if model.is_labelled_ and labels is None:
        raise ValueError(
            "components of some rows were known in this fit: give component_labels, -1 where one is not known"
        )
    check_gating(model, gating)


def check_gating(model: Any, gating: Any) -> None:
    """Refuse covariates where the fit had none, and none where it had some."""
    if (gating is None) != ("gating_coef" not in model.estimate_names_):
        raise ValueError(
            "the weights of this fit depend on covariates: give gating, with the columns of the fit"
            if gating is None
            else "this fit has no gating: leave it out"
        )


def refuse_torn_groups(names: NDArray[Any], places: NDArray[Any], part: str = "group", where: str = "chunks") -> None:
    """Refuse groups of a stream of which a name is met in several places, which must lie together."""
    order = np.argsort(names, kind="stable")
    torn = np.flatnonzero(names[order][1:] == names[order][:-1])
    if len(torn):
        at, after = order[torn[0]], order[torn[0] + 1]
        n_torn, name = len(np.unique(names[order][torn])), names[at]
        told = f"{name:g}" if isinstance(name, float) else str(name)
        raise ValueError(
            f"rows of {part} {told} lie in the {where} {places[at]} and {places[after]}, and {n_torn} {part}s in all "
            f"lie apart: all rows of a {part} must lie in one partition of a Dask collection, or together in a file. "
            f"Sort the table by its {part}s: a Dask data frame by df.set_index({part}).persist()"
        )


def refuse_beside_stream(kind: type[Exception] = TypeError, /, **given: Any) -> None:
    """Refuse arguments that need rows in memory, all at once, by an error of some kind."""
    names = [name for name, value in given.items() if value is not None]
    if names:
        verb, them = ("needs", "it") if len(names) == 1 else ("need", "them")
        raise kind(f"{' and '.join(names)} {verb} rows in memory: take a part of the rows, or leave {them} out")


@np.errstate(divide="ignore", over="ignore")  # rows far out have the least of all log densities
def density_and_responsibilities(mixture: Mixture, theta: Parameters[Any, Any], block: Block) -> Array:
    """Return the log density of each row of a block, and its responsibilities, (rows, 1 + components)."""
    rows, units = mixture.parts(Block(block.first, block.columns))
    log_density = mixture.density.log_density(theta.density, rows)
    joint = (log_density + mixture.law.log_prior(theta.law, units))[0]
    found = mixture.law.posterior(theta.law, log_density, units, mixture.beta).responsibilities[0]
    top = joint.max(axis=0)
    finite = np.where(np.isfinite(top), top, 0.0)
    density = finite + np.log(np.exp(joint - finite).sum(axis=0))
    return np.concatenate([density[None], found]).T
