"""The contest of Gaussian mixtures: starts, rules of regularity, other coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.densities.coordinates import Coordinates, Frames
from majorant.densities.gaussian import Gaussian, Normals, normals
from majorant.densities.gaussian_gaps import GaussianGaps
from majorant.engine.descent import Ends, Seen
from majorant.engine.mixture import Parameters, Sums
from majorant.engine.runs import split
from majorant.laws.independent import Weights
from majorant.models.gaussian_mixture.perturbations import Solutions, perturbed
from majorant.models.gaussian_mixture.regularity import LEAST_RATIO, Fault, Regularity, are_small, judge
from majorant.models.gaussian_mixture.rows import StandardRows
from majorant.models.gaussian_mixture.starts import KINDS, OWN, WHITENED, Views, log_likelihood_of, partitions
from majorant.search.contest import MixtureContest
from majorant.search.contestants import NamedStart, Run
from majorant.search.record import PERTURBATION
from majorant.solvers.covariance_types import Covariance
from majorant.solvers.gaussian import Array, Mixture, log_likelihood, moments

NEAR_FLOOR = 10.0
"""Multiple of the floor on the total covariance below which variances within groups are near it."""
LOOK_STEPS = 20
"""Steps after which a solution in other coordinates that is still on the floor is given up."""
N_LOOKS = 2
"""Number of partitions that are tested for groups far apart."""
Theta = Parameters[Normals, Any]


@dataclass
class GaussianContest(MixtureContest):
    """The interface of a race to a Gaussian mixture on points in memory.

    Attributes
    ----------
    points : ndarray of shape (n_points, rank)
        In `coordinates`, missing entries filled in.
    weights : ndarray of shape (n_points,)
        In rows, so that no rule depends on the scale of weights.
    coordinates : Coordinates
        Of the points of the fit.
    frames : Frames
        In which starts are made, and what does not vary.
    views : Views
        The points that starts use.
    noise : float
        Share of the total variance below which variance is rounding.
    floor_tells : bool
        Whether the floor is relative to the total covariance, and only identifies collapsing components.
    kinds : tuple
        Of starts.
    first_starts : sequence of (source, parameters)
    rows : StandardRows
        That are searched.
    filled : ndarray of shape (n_points, n_features)
        They, missing entries filled in.
    is_beside_within : bool
        Whether the floor is relative to a covariance within groups, so that ratios must be told.
    is_filled : bool
        Whether the points were filled in, rather than the density of what is there taken.
    best_degenerate : Run or None
        The excluded solution of highest likelihood among all that were visited.
    """

    rows: StandardRows = field(kw_only=True)
    filled: Array = field(kw_only=True)
    coordinates: Coordinates = field(kw_only=True)
    frames: Frames = field(kw_only=True)
    views: Views = field(kw_only=True)
    noise: float = 0.0
    floor_tells: bool = True
    kinds: tuple[Any, ...] = KINDS
    first_starts: Sequence[NamedStart[Theta]] = ()
    is_beside_within: bool = False
    is_filled: bool = False
    best_degenerate: Run[Theta] | None = None

    is_sampled = False

    @property
    def model(self) -> Gaussian:
        """The density of whole rows in the coordinates."""
        density = self.mixture.density
        return density.model if isinstance(density, GaussianGaps) else density  # type: ignore[return-value]

    @property
    def kind(self) -> Covariance:
        return self.model.kind

    @property
    def is_hopeless(self) -> bool:
        """Whether there are too few rows for any regular solution."""
        k = self.mixture.n_components
        return k * self.kind.least_size(k, self.model.d, self.total_weight) > self.total_weight * (1 + 1e-9)

    def mixture_of(self, theta: Theta) -> Mixture:
        """Return the mixture of one run, in the coordinates, with the shares of the components among the rows."""
        return self.model.mixture(theta.density, 0, self._shares(theta))

    def _shares(self, theta: Theta) -> Array:
        if isinstance(theta.law, Weights):
            return np.asarray(theta.law.weights[0])
        sums = self.on(self.whole).seen(theta).statistics.law
        return np.asarray(self.mixture.law.shares(theta.law, sums)[0])

    def is_of(self, data: Chunks) -> bool:
        """Return whether the contest is on all rows of some data as they are."""
        return super().is_of(data) and not self.is_filled

    # Starts

    def starts(self, rows: Any, is_first: bool, draws: np.random.Generator) -> list[NamedStart[Theta]]:
        k, first = self.mixture.n_components, list(self.first_starts) if is_first else []
        n, is_costly = self.plan.n_starts, self.plan.n_made > self.plan.n_starts
        made = list(partitions(self.views, k, max(n, self.plan.n_made), draws, self.kinds, settled=is_costly))
        if is_costly:
            least = max(1.0, self.kind.least_size(k, self.model.d, self.total_weight))
            has_matrices = self.kind.has_matrices

            def likelihood(one: tuple[str, NDArray[np.integer]]) -> float:
                at = one[1], k, self.points, self.weights
                return log_likelihood_of(*at, least=least, has_matrices=has_matrices)

            made = sorted(made, key=likelihood, reverse=True)[:n]
        begun = first + self._begun(self.on(rows), [name for name, _ in made], [one_hot(q, k).T for _, q in made])
        return begun[:n] if self.plan.tells_all else begun

    def perturbed(
        self, rows: Any, bases: Sequence[Theta], size: int, draws: np.random.Generator
    ) -> list[NamedStart[Theta]]:
        """Return perturbations of the solutions, half of them of the best one, and recombinations of pairs."""
        k, mixtures = self.mixture.n_components, [self.mixture_of(theta) for theta in bases]
        least = max(3.0, self.kind.least_size(k, self.model.d, self.total_weight))
        begun = perturbed(Solutions.of(mixtures, self.points, self.weights), least, size, draws)
        if isinstance(bases[0].law, Weights):
            floored = np.zeros(begun.weights.shape, dtype=np.bool_)
            density = Normals(begun.means, begun.covariances, floored, begun.means)
            return [(PERTURBATION, theta) for theta in split(Parameters(density, Weights(begun.weights)))]
        tables = [Mixture(*each, self.kind.name).posteriors(self.points)[1].T for each in zip(*begun, strict=True)]
        return self._begun(self.on(rows), [PERTURBATION] * size, tables)

    def _begun(self, on: Any, names: list[str], responsibilities: list[Array]) -> list[NamedStart[Theta]]:
        """Return the parameters of responsibilities, in which a component without rows stays empty."""
        size = self._batch_size(len(self.weights))
        out: list[NamedStart[Theta]] = []
        for a in range(0, len(names), size):
            theta = self.mixture.started(np.stack(responsibilities[a : a + size]), on.data)
            out += zip(names[a : a + size], split(theta), strict=True)
        return out

    # Which solutions count

    def run(
        self, rows: Any, runs: list[Run[Theta]], max_iter: int, tol: float, *, free: bool = False
    ) -> list[Run[Theta]]:
        """Continue EM from where the runs are; mixtures without a floor have no constraint to lift."""
        if free:
            return []
        ends = super().run(rows, runs, max_iter, tol)
        for end in ends:
            known = self.best_degenerate
            if end.degenerate and (known is None or end.objective < known.objective):
                self.best_degenerate = end
        return ends

    def features(self, thetas: Sequence[Theta]) -> Array:
        """Return the shares, where they are parameters, and means, each sorted over components."""
        means = np.sort(np.concatenate([one.density.means for one in thetas]), axis=1).reshape(len(thetas), -1)
        if not isinstance(thetas[0].law, Weights):
            return means
        return np.hstack([np.sort(np.concatenate([one.law.weights for one in thetas]), axis=1), means])

    def _degeneracies(self, theta: Theta, seen: Seen) -> list[str]:
        """Return the degeneracies; a floor on the total covariance implies a least ratio within components."""
        n_rows, shares = self.total_weight, self.mixture.law.shares(theta.law, seen.statistics.law)
        least = self.kind.least_size(self.mixture.n_components, self.model.d, n_rows)
        floored = np.asarray(theta.density.floored.any(axis=1))
        small = are_small(shares * n_rows, least).any(axis=1)
        if not self.floor_tells or self.is_beside_within:
            at = np.flatnonzero(~(floored | small))
            ratios = self.kind.ratios(theta.density.covariances[at], shares[at])
            floored[at] = (ratios < LEAST_RATIO).any(axis=1)
        faults = np.where(floored, Fault.FLOORED, np.where(small, Fault.SMALL, Fault.NONE)).tolist()
        finite = np.isfinite(seen.objective).tolist()
        return [
            Fault(fault).word if ok else "its likelihood is not finite"
            for fault, ok in zip(faults, finite, strict=True)
        ]

    def judged(self, ends: Ends[Theta]) -> str:
        """Return why a run's end on all rows does not count; empty if it counts."""
        return self.regularity(ends).fault.word

    def regularity(self, ends: Ends[Theta]) -> Regularity:
        """Return how near to collapse the components of one run are, on all rows."""
        shares = self.mixture.law.shares(ends.theta.law, ends.seen.statistics.law)[0]
        if self.coordinates.rank == 0:
            return Regularity(Fault.FLOORED, np.zeros(len(shares)), shares * self.rows.n_rows, 0.0)
        found = self._regularity(ends.theta, shares, self.rows.n_rows)
        return replace(found, fault=Fault.TWINS) if not found.fault and self._twins(ends.theta) else found

    def _regularity(self, theta: Theta, shares: Array, n_rows: float) -> Regularity:
        return judge(self.model.mixture(theta.density, 0, shares), theta.density.floored[0], n_rows)

    # Other coordinates

    def released(self, best: Run[Theta]) -> GaussianContest | None:
        """Return the search in coordinates of the pooled within-component covariance, if a floor on it matters.

        Groups that lie far apart are narrow beside the total covariance without being degenerate: a solution on the
        floor of that is regular once the floor is relative to the variance within components.
        """
        seen = self.best_degenerate
        if seen is None or (best.is_regular and seen.objective >= best.objective):
            return None
        narrowed = self.narrowed(seen.theta)
        if narrowed is None:
            return None
        other, start = narrowed
        end = Run("released", start, start)
        for n_steps in (LOOK_STEPS, other.max_iter):
            end = other.run(other.whole, [end], n_steps, other.tol)[0]
            if floored := bool(end.theta.density.floored.any()):
                break
        better = other.shown(end.objective) > self.shown(best.objective)
        if floored or (best.is_regular and not (end.is_regular and better)):
            return None
        return replace(other, first_starts=[("released", end.theta)])

    def narrowed(self, held: Theta) -> tuple[GaussianContest, Theta] | None:
        """Return the search beside the covariance within the components of a run that the floor held, and that run."""
        if not self.floor_tells or self.mixture.n_components == 1 or not held.density.floored.any():
            return None
        mixture = self.mixture_of(held)
        within = self._within(log_likelihood(mixture, self.points, self.weights)[1])
        if not self._is_told(within):
            return None
        other = self.beside(within)
        return other, other.theta_of(mixture.mapped(rescaling(within)), held.law)

    def leaves(self, best: Run[Theta]) -> bool:
        """Return whether a search goes on in other coordinates, where no solution counts in its own."""
        return not best.is_regular and self.released(best) is not None

    def far_apart(self) -> GaussianContest:
        """Return the search with a floor relative to the covariance within groups, where these are far apart.

        Groups are the tightest of some partitions that depend on the rows alone, not on the starts.
        """
        k, draws = self.mixture.n_components, np.random.default_rng(0)
        if k == 1 or not self.floor_tells or self.is_hopeless or self.coordinates.rank == 0:
            return self
        views = WHITENED, OWN
        whole = replace(self.views, weights=self._whole_weights)
        found = [one_hot(q, k) for _, q in partitions(whole, k, N_LOOKS, draws, views)]
        told = [within for within in map(self._within, found) if self._is_told(within)]
        if not told:
            return self
        within = min(told, key=lambda one: float(np.log(self._variances(one)).sum()))
        return self.beside(within) if self._variances(within).min() < NEAR_FLOOR * LEAST_RATIO else self

    def _variances(self, within: Array) -> Array:
        return np.asarray(np.atleast_1d(within) if within.ndim < 2 else np.linalg.eigvalsh(within), dtype=np.float64)

    def _is_told(self, within: Array) -> bool:
        """Return whether a covariance is above rounding along every direction."""
        variances = self._variances(within)
        rounding = 0.0 if within.ndim < 2 else 1e-13 * variances.max()
        return bool(variances.min() > max(self.noise, rounding))

    def beside(self, within: Array) -> GaussianContest:
        """Return the same search in coordinates in which a given covariance is the identity."""
        coordinates, scale = self.coordinates.rescaled(within), rescaling(within)
        points = self.points * scale if scale.ndim < 2 else np.einsum("ij,jk->ik", self.points, scale)
        model = Gaussian(self.kind, self.model.d, self.model.floor)
        has_gaps = isinstance(self.mixture.density, GaussianGaps)
        density = GaussianGaps(model, coordinates) if has_gaps else model
        return replace(
            self,
            mixture=replace(self.mixture, density=density),
            columns=self.columns if has_gaps else (points, *self.columns[1:]),
            points=points,
            coordinates=coordinates,
            views=replace(self.views, own=points),
            constant=self.constant + (self.coordinates.log_volume - coordinates.log_volume) * self.total_weight,
            kinds=KINDS,
            is_beside_within=True,
            best_degenerate=None,
            _of_rows={},
        )

    def one_point(self) -> Ends[Theta]:
        """Return the mixture for rows that are all equal: identical components of a nominal width."""
        k, law = self.mixture.n_components, self.mixture.law
        mixture = Mixture(np.full(k, 1.0 / k), np.zeros((k, 0)), np.zeros(self.kind.shape(k, 0)), self.kind.name)

        def sums(block: Block) -> Array:
            return law.first(np.full((1, k, len(block)), 1.0 / k), self.mixture.parts(block)[1])[1]

        own = self.on(self.whole).data.map_sum(sums)
        theta = Parameters(normals([mixture]), law.solve(own, None, np.ones(1)))
        seen = Seen(np.zeros(1), Sums(np.zeros((1, k, 0)), own))
        return Ends(theta, seen, np.ones(1, dtype=np.intp), np.ones(1, dtype=np.bool_), [[0.0]])

    def theta_of(self, mixture: Mixture, law: Any = None, floored: NDArray[np.bool_] | None = None) -> Theta:
        """Return a mixture in the coordinates as a batch of one, with its weights unless `law` is given."""
        density = normals([mixture])
        density = density if floored is None else replace(density, floored=floored)
        return Parameters(density, Weights(mixture.weights[None]) if law is None else law)

    @property
    def _whole_weights(self) -> Array:
        """The weights of complete rows, as those filled in lie between groups; of all, if few are complete."""
        is_whole = ~np.isnan(self.rows.points).any(axis=1)
        is_few = is_whole.sum() <= self.mixture.n_components * (1 + self.model.d)
        return self.weights if is_few else np.where(is_whole, self.weights, 0.0)

    def _within(self, q: Array) -> Array:
        """Return the pooled covariance within components, from the points and their responsibilities."""
        u, weights = self.points, self._whole_weights
        mass = np.einsum("i,ik->k", weights, q)
        means = np.einsum("i,ik,ij->kj", weights, q, u) / np.maximum(mass, 1e-300)[:, None]
        second = moments(u, weights, q, means, self.kind.pooled_type.name)[:, 1 + u.shape[1] :]
        return self.kind.pooled(second, float(mass.sum()), u.shape[1])


def rescaling(covariance: Array) -> Array:
    """Return the map to coordinates in which a covariance is the identity."""
    if covariance.ndim < 2:
        return np.asarray(1.0 / np.sqrt(covariance))
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors / np.sqrt(values))


def one_hot(labels: NDArray[np.integer], k: int) -> Array:
    """Return the responsibilities of a hard partition."""
    return np.asarray(labels[:, None] == np.arange(k), dtype=np.float64)
