"""Texts on a fitted mixture: its components in tables, and warnings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from majorant._numbers import few_of
from majorant.densities.coordinates import Frames, frames
from majorant.models.gaussian_mixture.regularity import Fault, Regularity
from majorant.models.gaussian_mixture.rows import StandardRows
from majorant.search.contest import TWINS
from majorant.solvers.covariance_types import COVARIANCES, SPHERICAL, Covariance
from majorant.solvers.gaussian import Mixture
from majorant.summary import Block, Column, Table, counted, part_columns

MOST_SHOWN = 20
MOST_VALUES, ROWS_OF_A_VALUE = 10, 20
"""Values of a column up to which it is said to hold few, and distinct rows for each."""


def named(columns: Sequence[int], names: Sequence[str] | None) -> str:
    """Return the names of columns, of many the first few, or their numbers where they have none."""
    return few_of([str(j) if names is None else f"{names[j]!r}" for j in columns])


def rank_sentences(found: Frames, kind: Covariance, names: Sequence[str] | None, rows: StandardRows) -> list[str]:
    """Return which columns are constant, and which are functions of each other; the first only where it matters.

    Rows with missing entries show that columns are functions of each other if enough have all entries of these.
    """
    said = []
    if found.constant and kind is not SPHERICAL:
        columns, they = ("column", "It does") if len(found.constant) == 1 else ("columns", "They do")
        said.append(f"Constant {columns}: {named(found.constant, names)}. {they} not distinguish components.")
    if found.dependent and kind.has_matrices:
        x = rows.points[:, found.dependent]
        there = ~np.isnan(x).any(axis=1)
        is_told = there.all() or (
            len(x := x[there]) > x.shape[1] + 1 and bool(frames(x, rows.weights[there], rows.precision).dependent)
        )
        columns = f"Columns {named(found.dependent, names)}"
        said.append(
            f"{columns} are linear functions of each other, so that every covariance is singular; the directions in "
            "which the rows do not vary are left out of the fit."
            if is_told
            else f"{columns} have, as far as rows with missing entries tell, no variance along some directions, which "
            "are left out of the fit."
        )
    return said


def few_valued_sentence(found: Sequence[Sequence[int]], names: Sequence[str] | None) -> str:
    """Return which model takes columns of few values, on which components of this one can collapse."""
    columns, sizes = named([j for j, _ in found], names), {n for _, n in found}
    size = {2: "two"}.get(min(sizes), str(min(sizes))) if len(sizes) == 1 else "few"
    hold, them = f"Columns {columns} hold {size} values each and are no normal distributions", "them"
    if len(found) == 1:
        hold, them = f"Column {columns} holds {size} values and is no normal distribution", "it"
    return (
        f"{hold}: LatentClassAnalysis (majorant fit latent-class-analysis) takes {them}, and text, as categories "
        "beside numbers"
    )


def few_valued(rows: StandardRows) -> list[tuple[int, int]]:
    """Return the columns that hold few values, on which components can collapse, with how many these are."""
    most = max(2, min(MOST_VALUES, len(rows.points) // ROWS_OF_A_VALUE))
    found = [(j, len(np.unique(column[~np.isnan(column)]))) for j, column in enumerate(rows.points.T)]
    return [(j, n) for j, n in found if 2 <= n <= most]


def degeneracy(regularity: Regularity) -> str:
    """Return why a solution is not regular; empty if it is."""
    k = len(regularity.sizes)
    parts = ", ".join(str(j + 1) for j in regularity.suspects[:MOST_SHOWN])
    if regularity.fault in (Fault.NONE, Fault.TWINS):
        return TWINS if regularity.fault else ""
    if regularity.fault is Fault.FLOORED:
        return f"the covariance of component {parts} (of {k}) collapses, and the floor determines the likelihood"
    if np.isinf(regularity.least_size):
        return "there are too few rows for so many components and the covariance that they share"
    least = "less than half a row" if regularity.least_size < 1 else f"fewer than {regularity.least_size:g} rows"
    return f"component {parts} (of {k}) has {least}"


def simpler_types(kind: Covariance, k: int, d: int) -> str:
    """Return which types of covariance have fewer parameters; empty if none has."""
    fewer = [repr(other.name) for other in COVARIANCES.values() if other.n_parameters(k, d) < kind.n_parameters(k, d)]
    return f", or covariance_type={' or '.join(fewer)}" if fewer else ""


def missing_sentence(rows: StandardRows, is_filled: bool) -> str:
    """Return how much is missing, and how the search handled it."""
    share = f"{rows.n_missing} of {rows.n_entries} entries ({rows.n_missing / rows.n_entries:.1%})"
    said = f"{share} are missing, taken to be so at random."
    if is_filled:
        return f"{said} The search filled them in by a normal distribution, the last EM run did not."
    return said


def components_block(mixture: Mixture, features: Sequence[str]) -> Block:
    """Return the shares, means and standard deviations of the components, numbered from 1."""
    k, d = mixture.means.shape
    if k > MOST_SHOWN or d > MOST_SHOWN:
        size = f"{counted(k, 'component')} on {counted(d, 'feature')}"
        return Block("COMPONENTS", "", (f"The parameters of {size} are in weights_, means_ and covariances_.",))
    deviations = np.sqrt(mixture.covariance.variances(mixture.covariances, k, d))
    content: list[Table | str] = [
        Table("components", [Column("component", range(1, k + 1)), Column("share", mixture.weights, 3)]),
        Table("means", [Column("mean of", features), *part_columns(mixture.means)]),
        Table("deviations", [Column("sd of", features), *part_columns(deviations)]),
    ]
    return Block("COMPONENTS", "", tuple(content))
