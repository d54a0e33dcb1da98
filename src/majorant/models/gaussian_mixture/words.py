"""What is said of a fitted mixture: its components in tables, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from majorant.models.gaussian_mixture.coordinates import Frames
from majorant.models.gaussian_mixture.regularity import Fault, Regularity
from majorant.solvers.gaussian import Array, Mixture
from majorant.summary import Block, Column, Table, counted

MOST_SHOWN = 20


def rank_sentences(frames: Frames, covariance_type: str, names: Sequence[str] | None) -> list[str]:
    """Which columns are constant, and which are functions of each other; the first only where it matters."""

    def named(columns: Sequence[int]) -> str:
        return ", ".join(str(j) if names is None else f"{names[j]!r}" for j in columns)

    said = []
    if frames.constant and covariance_type != "spherical":
        said.append(f"Constant columns: {named(frames.constant)}. They tell no components apart.")
    if frames.dependent and covariance_type in ("full", "tied"):
        said.append(
            f"Columns {named(frames.dependent)} are linear functions of each other, so that every covariance is "
            "singular; the directions in which the rows do not vary are left out of the fit."
        )
    return said


def irregular_sentence(regularity: Regularity, covariance_type: str) -> str:
    """Why a solution is not regular, and what to do."""
    k = len(regularity.sizes)
    parts = ", ".join(str(j + 1) for j in regularity.suspects[:MOST_SHOWN])
    if regularity.fault is Fault.FLOORED:
        why = f"the covariance of component {parts} (of {k}) collapses, and the likelihood is what the floor makes it"
    else:
        why = f"component {parts} (of {k}) has fewer than {max(regularity.least_size, 1):g} rows"
    simpler = "" if covariance_type in ("tied", "spherical") else ", or a simpler covariance_type"
    fewer = "use fewer components" if k > 1 else "more distinct rows are needed"
    return f"No regular solution was found: {why}. Do not compare it by its likelihood; {fewer}{simpler}."


def components_block(mixture: Mixture, features: Sequence[str]) -> Block:
    """Shares, means and standard deviations of the components, numbered from 1."""
    k, d = mixture.means.shape
    if k > MOST_SHOWN or d > MOST_SHOWN:
        size = f"{counted(k, 'component')} on {counted(d, 'feature')}"
        return Block("COMPONENTS", "", (f"The parameters of {size} are in weights_, means_ and covariances_.",))
    shares = [(j + 1, float(mixture.weights[j])) for j in range(k)]
    columns = [*(Column(str(j + 1), 3, min_width=9) for j in range(k))]
    deviations = standard_deviations(mixture)
    content: list[Table | str] = [
        Table("components", [Column("component"), Column("share", 3)], shares),
        Table(
            "means", [Column("mean of"), *columns], [(features[i], *map(float, mixture.means[:, i])) for i in range(d)]
        ),
        Table(
            "deviations", [Column("sd of"), *columns], [(features[i], *map(float, deviations[:, i])) for i in range(d)]
        ),
    ]
    return Block("COMPONENTS", "", tuple(content))


def standard_deviations(mixture: Mixture) -> Array:
    """Of each feature in each component, shape (n_components, n_features)."""
    k, d = mixture.means.shape
    covariances = mixture.covariances
    if mixture.covariance_type in ("full", "tied"):
        variances = np.diagonal(covariances, axis1=-2, axis2=-1)
    else:
        variances = covariances if mixture.covariance_type == "diag" else covariances[:, None]
    return np.sqrt(np.broadcast_to(variances, (k, d)))
