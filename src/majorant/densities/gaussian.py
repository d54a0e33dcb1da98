r"""Normal distributions of rows, with covariances of any type: the density of a Gaussian mixture.

.. math:: \log f(x; \mu_k, \Sigma_k) = \log N(x; \mu_k, \Sigma_k)

Moments are taken about the means of the current parameters, so that a tight component far from the origin loses no
digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.engine import mixture as engine
from majorant.engine.descent import Ends, Seen, descend
from majorant.engine.mixture import Array, OnData, Parameters, Sums, Table
from majorant.registry import value_class
from majorant.solvers.covariance_types import Covariance
from majorant.solvers.gaussian import LOG_2PI, Mixture, moments, solve_in_place
from majorant.solvers.gaussian_em import EmStarts, run_batch


@value_class
@dataclass(frozen=True)
class Normals:
    """Components of a batch of mixtures."""

    means: Array  # (runs, components, d)
    covariances: Array  # (runs, ...): in scikit-learn's shape for the type
    floored: NDArray[np.bool_]  # whether the floor decided about a covariance
    reference: Array  # (runs, components, d): the means about which the moments behind these components were taken
    # (runs, ...): factors of the precisions, where known to more digits than rounded covariances give
    factors: Array | None = None


def normals(mixtures: Sequence[Mixture]) -> Normals:
    """Return a batch of the components of mixtures."""
    means = np.stack([mixture.means for mixture in mixtures])
    return Normals(
        means,
        np.stack([mixture.covariances for mixture in mixtures]),
        np.zeros(means.shape[:2], dtype=bool),
        means,
    )


class Gaussian:
    """Normal distributions in `d` columns, exact but for a floor under the covariances.

    Statistics of a component are its weight of rows, the sum of their differences from its mean, and their second
    moments about it, see `solvers.gaussian`.

    Parameters
    ----------
    kind : Covariance
    d : int
        Number of columns.
    floor : float, default=0
        Smallest eigenvalue of every covariance; at 0, a component that collapses ends in a ValueError.
    single : bool, default=False
        Whether rows are of single precision: means are rounded to it, so that differences from them are exact.
    added : ndarray, optional
        What is added to every covariance, as scikit-learn does: EM may then lose.
    """

    n_columns = 1
    exact = True

    def __init__(
        self, kind: Covariance, d: int, floor: float = 0.0, *, single: bool = False, added: Array | None = None
    ) -> None:
        self.kind, self.d, self.floor, self.single, self.added = kind, d, floor, single, added

    @property
    def width(self) -> int:
        """Weight, first and second moments."""
        return 1 + self.d + self.kind.n_second(self.d)

    def mixture(self, theta: Normals, run: int, weights: Array | None = None) -> Mixture:
        """Return the mixture of one run; where no weights are given, they are one each."""
        means = theta.means[run]
        shares = np.ones(len(means)) if weights is None else weights
        factors = None if theta.factors is None else theta.factors[run]
        return Mixture(shares, means, theta.covariances[run], self.kind.name, factors)

    # Passes

    def log_density(self, theta: Normals, rows: Block) -> Table:
        """Return the log density of each row in each component."""
        x = rows.columns[0]
        return np.stack([self.mixture(theta, run).log_densities(x).T for run in range(len(theta.means))])

    def statistics(self, theta: Normals | None, rows: Block, q: Table) -> Array:
        """Return the moments about the means; about zero for a start."""
        x, out = rows.columns[0], np.empty((*q.shape[:2], self.width))
        about = np.zeros((*q.shape[:2], self.d)) if theta is None else theta.means
        for run, own in enumerate(q):
            moments(x, None, own.T, about[run], self.kind.name, out[run])
        return out

    def fused_pass(
        self, theta: Normals, log_weights: Array, rows: Block, beta: float
    ) -> tuple[Array, Array, Array, Array] | None:
        """Return the free energies, entropies, masses and moments of each run."""
        weights, x = np.exp(log_weights), rows.columns[0]
        seen = [
            self.mixture(theta, run, weights[run]).tight_moments(x, rows.weights, beta) for run in range(len(weights))
        ]
        free, entropy, sums = (np.array(part) for part in zip(*seen, strict=True))
        return free, entropy, sums[:, :, 0], sums

    def fused_runs(
        self, mixture: engine.Mixture, data: Chunks, theta: Parameters[Any, Any], *, tol: float, max_iter: int
    ) -> Ends[Any]:
        """Run EM in compiled code where rows are one block; of the statistics only masses are returned."""
        max_iter = min(max_iter, LONGEST_RUN)
        if mixture.beta != 1.0 or data.n_blocks > 1 or self.added is not None:
            return descend(OnData(mixture, data), theta, tol=tol, max_iter=max_iter)
        block = next(iter(data.source.blocks()))
        log_weights = mixture.law.log_weights(theta.law)
        assert log_weights is not None
        starts = EmStarts(np.exp(log_weights), theta.density.means, theta.density.covariances)
        is_long = max_iter > PLAIN_RUN
        rows, how = (block.columns[0], block.weights), (self.kind.name, self.floor)
        kept: dict[str, Any] = {"n_jobs": data.n_jobs, "keeps_singular": True}
        ends = run_batch(*rows, starts, *how, max_iter - is_long, tol, accelerate=is_long, **kept)
        paths = [(-own[1 : n + 1]).tolist() for own, n in zip(ends.history, ends.n_iter, strict=True)]
        converged = ends.converged
        if is_long:  # only an M-step tells what is on the floor
            ends = run_batch(*rows, EmStarts(*ends[:3]), *how, 1, **kept)
            paths = [[*path, -float(own[1])] for path, own in zip(paths, ends.history, strict=True)]
        reached = np.take_along_axis(ends.history, ends.n_iter[:, None], axis=1)[:, 0]
        mass = data.total_weight * ends.weights
        law = mixture.law.solve(mass, theta.law, np.ones(len(mass)))
        floored = ends.floored if max_iter else theta.density.floored
        return Ends(
            Parameters(Normals(ends.means, ends.covariances, floored, ends.means), law),
            Seen(-reached, Sums(np.zeros((*mass.shape, 0)), mass)),
            np.array([len(path) for path in paths], dtype=np.intp),
            converged,
            paths,
        )

    # The M-step

    def solve(self, statistics: Array, theta: Normals | None, share: Array) -> Normals:
        """Return the means and covariances of the moments; a component without mass keeps its own."""
        runs, k = statistics.shape[:2]
        reference = np.zeros((runs, k, self.d)) if theta is None else theta.means
        if theta is None:
            shape = runs, *self.kind.shape(k, self.d)
            covariances = np.array(np.broadcast_to(max(self.floor, 1.0) * self.kind.identity(self.d), shape), order="C")
        else:
            covariances = np.array(theta.covariances, order="C")
        means, floored = np.empty((runs, k, self.d)), np.empty((runs, k), dtype=np.bool_)
        sums = np.ascontiguousarray(statistics)
        for run in range(runs):
            at = sums[run], reference[run], self.kind, self.floor, means[run], covariances[run], floored[run]
            solve_in_place(*at, single=self.single)
        if self.added is not None:
            covariances = covariances + self.added
            # Components that along some direction have no more variance of their own than was added.
            least = [self.kind.eigenvalues(own - 2 * self.added).min(axis=1) for own in covariances]
            floored |= np.stack(least) <= 0
        return Normals(means, covariances, floored, reference)

    def expected_log_density(self, statistics: Array, theta: Normals) -> Array:
        """Return the expected log density of moments about the reference means of `theta`."""
        return np.array([self._expected(sums, theta, run)[0] for run, sums in enumerate(statistics)])

    def _expected(self, sums: Array, theta: Normals, run: int) -> tuple[float, float]:
        """Return the expected log density, and the weighted squared shifts of the means in units of covariances."""
        k, d, kind = len(sums), self.d, self.kind
        there = self.mixture(theta, run)
        factors, log_determinants = there.precision_factors()
        mass, first, second = sums[:, 0], sums[:, 1 : 1 + d], sums[:, 1 + d :]
        precisions = kind.squared(np.broadcast_to(factors, (k, *kind.identity(d).shape)))
        move = there.means - theta.reference[run]
        turned = kind.times(precisions, move)
        travel = mass * np.einsum("kd,kd->k", move, turned)
        squares = kind.second_traces(second, precisions) - 2 * np.einsum("kd,kd->k", first, turned) + travel
        energy = 0.5 * float(np.sum(mass * (d * LOG_2PI + log_determinants) + squares))
        return -energy, float(travel.sum())

    def rounding(self, statistics: Array, theta: Normals) -> Array:
        """Return the rounding error, which grows with how far means have moved from the centres of the moments."""
        digits = float(np.finfo(np.float32 if self.single else np.float64).eps)
        return np.array(
            [
                16 * digits * (self.d * float(sums[:, 0].sum()) + self._expected(sums, theta, run)[1])
                for run, sums in enumerate(statistics)
            ]
        )

    # Parameters as numbers

    def n_parameters(self, n_components: int) -> int:
        """Return the means and free entries of the covariances."""
        return n_components * self.d + self.kind.n_parameters(n_components, self.d)

    def describe(self, theta: Normals) -> dict[str, Array]:
        """Return the means and covariances."""
        return {"means": theta.means, "covariances": theta.covariances}

    def recalled(self, estimates: Mapping[str, Array]) -> Normals:
        """Return the components of one mixture."""
        means, covariances = (np.asarray(estimates[name], dtype=np.float64)[None] for name in ("means", "covariances"))
        return Normals(means, covariances, np.zeros(means.shape[:2], dtype=bool), means)

    def vector(self, theta: Normals) -> Array:
        """Return the means, and unconstrained numbers of the covariances."""
        runs = len(theta.means)
        free = np.stack([self.kind.vector(own).ravel() for own in theta.covariances])
        return np.concatenate([theta.means.reshape(runs, -1), free], axis=1)

    def theta_of(self, vector: Array, like: Normals) -> Normals:
        """Rebuild parameters from `vector`, with covariances lifted to the floor."""
        k = like.means.shape[1]
        means = vector[:, : k * self.d].reshape(-1, k, self.d)
        if self.single:
            means = means.astype(np.float32).astype(np.float64)
        free = vector[:, k * self.d :]
        covariances = np.stack([self.kind.lifted(self.kind.of_vector(own, k, self.d), self.floor) for own in free])
        return Normals(means, covariances, like.floored, means)


PLAIN_RUN = 5
"""Steps of a run that is too short to be extrapolated."""
LONGEST_RUN = 1 << 16
"""Most steps of a run in compiled code, whose path is preallocated."""
