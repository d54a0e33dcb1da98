"""Many short runs of EM on points with missing entries: what a search is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.engine.latents import tightest
from majorant.models.gaussian_mixture.coordinates import Coordinates
from majorant.models.gaussian_mixture.family import GaussianFamily
from majorant.models.gaussian_mixture.missing import MissingFamily, whole_moments
from majorant.solvers.covariance_types import COVARIANCES, CovarianceType
from majorant.solvers.gaussian import Array, Mixture, MStep, m_step
from majorant.solvers.gaussian_em import EmRun


@dataclass(frozen=True)
class _Pass:
    """Free energies, one a run, and moments of the components of all runs."""

    free: Array
    moments: Array

    def __add__(self, other: _Pass) -> _Pass:
        return _Pass(self.free + other.free, self.moments + other.moments)


def run_em_on_observed(
    data: Chunks,
    coordinates: Coordinates,
    starts: Sequence[Mixture | NDArray[Any]],
    covariance_type: CovarianceType,
    floor: float,
    n_steps: int,
) -> list[EmRun]:
    """Run EM from each start for some steps on the observed entries of points.

    All runs go in step, so that a pattern is looked up once a step and not once a run: their components together are
    one family's.

    Parameters
    ----------
    data : Chunks
        Points, NaN where an entry is missing, with their weights.
    coordinates : Coordinates
        Those of the starts and of the floor.
    starts : sequence
        Mixtures, or responsibilities of shape (n_rows, n_components), as `majorant.solvers.gaussian_em.run_em` takes
        them; missing entries are then what the standard normal of the coordinates has them be.
    covariance_type : {"full", "tied", "diag", "spherical"}
    floor : float
    n_steps : int

    Returns
    -------
    list of EmRun, one a start
        Log-likelihoods are those of the observed entries in units of the points, less ``log_volume`` a unit of weight:
        without missing entries, those in the coordinates.
    """
    if len(starts) == 0:
        return []
    first = starts[0]
    k = first.n_components if isinstance(first, Mixture) else int(first.shape[1])
    # Runs of tied components have covariances of their own each.
    kind: CovarianceType = "full" if COVARIANCES[covariance_type].has_matrices else covariance_type
    family = MissingFamily(GaussianFamily(len(starts) * k, coordinates.rank, kind), coordinates)

    def steps(moments: Array, old: Sequence[Mixture | None]) -> list[MStep]:
        inside = family.in_model(moments)[0].reshape(len(starts), k, -1)
        zero = np.zeros((k, coordinates.rank))
        return [
            m_step(own, last, zero if last is None else last.means, covariance_type, floor)
            for own, last in zip(inside, old, strict=True)
        ]

    def visit(mixture: Mixture, block: Block) -> _Pass:
        free, moments = np.zeros(len(starts)), family.nothing()
        for _, own, part, entries in family.parts(mixture, block):
            energies = own.energies(part.marginal, entries)
            each, q = tightest(energies.reshape(-1, k), 1.0)
            each += coordinates.log_volume
            free += [entries.total(column) for column in each.reshape(-1, len(starts)).T]
            moments += whole_moments(part, own.statistics(entries, q.reshape(energies.shape), part.marginal))
        return _Pass(free, moments)

    floored = [np.zeros(k, dtype=bool)] * len(starts)
    if isinstance(first, Mixture):
        mixtures = [start for start in starts if isinstance(start, Mixture)]
    else:
        q = np.hstack([np.asarray(start) for start in starts])
        begun = data.map_sum(lambda block: family.statistics(block, q[block.first : block.first + len(block)], None))
        found = steps(begun, [None] * len(starts))
        mixtures, floored = [step.mixture for step in found], [step.floored for step in found]
    history = []
    for step in range(n_steps + 1):
        joined = _joined(mixtures, covariance_type)
        seen = data.map_sum(partial(visit, joined))
        history.append(-seen.free)
        if step < n_steps:
            found = steps(seen.moments, mixtures)
            mixtures, floored = [step.mixture for step in found], [step.floored for step in found]
    values = np.stack(history, axis=1)
    return [EmRun(*run, converged=False) for run in zip(mixtures, values, floored, strict=True)]


def _joined(mixtures: Sequence[Mixture], covariance_type: CovarianceType) -> Mixture:
    """The components of all mixtures; their shares sum to one in each."""
    weights = np.concatenate([mixture.weights for mixture in mixtures])
    means = np.concatenate([mixture.means for mixture in mixtures])
    kind = COVARIANCES[covariance_type]
    each = mixtures[0].means.shape[0], *kind.identity(mixtures[0].n_features).shape
    covariances = np.concatenate([np.broadcast_to(mixture.covariances, each) for mixture in mixtures])
    return Mixture(weights, means, covariances, "full" if kind.has_matrices else covariance_type)
