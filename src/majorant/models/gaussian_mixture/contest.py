"""The race of Gaussian mixtures: where they begin, which solutions count, in which coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Chunks
from majorant.densities.coordinates import Coordinates, Frames
from majorant.densities.gaussian import Gaussian, Normals, normals
from majorant.densities.gaussian_gaps import GaussianGaps
from majorant.engine.descent import Seen
from majorant.engine.mixture import Mixture as Model
from majorant.engine.mixture import Parameters
from majorant.engine.runs import split
from majorant.laws import Independent
from majorant.laws.independent import Weights
from majorant.models.gaussian_mixture.perturbations import perturbed
from majorant.models.gaussian_mixture.regularity import LEAST_RATIO, Fault, Regularity, are_small, judge
from majorant.models.gaussian_mixture.starts import KINDS, OWN, Views, partitions
from majorant.search.contest import MixtureContest
from majorant.search.contestants import Found, NamedStart, Run
from majorant.search.effort import Plan
from majorant.search.race import Race
from majorant.search.record import PERTURBATION
from majorant.solvers.covariance_types import Covariance
from majorant.solvers.gaussian import Array, Mixture, log_likelihood, moments

LEAST_FLOOR = 1e-14
"""Floor under eigenvalues where none is asked for: what rounding leaves of the total variance."""
SOON = 100
"""Steps of a search in which no solution can be regular."""

Theta = Parameters[Normals, Weights]


def plan_of(k: int, n_rows: float, n_parameters: int) -> Plan:
    """The numbers of a search: perturbations of the best until it has not been bettered for some rounds."""
    patience = max(2, min(k, 6)) if n_rows >= 5 * n_parameters else 2 * k
    return Plan(
        n_starts=24,
        n_perturbations=36,
        race=((5, 8), (15, 3)),
        perturbation_race=((3, 12), (8, 5), (15, 3)),
        least_rounds=patience,
        most_rounds=30,
        least_barren=6 * patience,
        sure_rounds=patience,
        least_hits=1,
        starts_every=0,
        n_kept=1,
    )


@dataclass
class GaussianContest(MixtureContest):
    """What a race needs of a Gaussian mixture on points in memory.

    Attributes
    ----------
    points : ndarray of shape (n_points, rank)
        In `coordinates`, missing entries filled in.
    weights : ndarray of shape (n_points,)
        Their median is one, so that no rule depends on the scale of weights: their sum is the number of rows, if most
        points are one row each.
    coordinates : Coordinates
        Of the points of the fit.
    views : Views
        The points as starts see them.
    noise : float
        Share of the total variance below which variance is rounding.
    floor_tells : bool
        Whether the floor is relative to the total covariance, and only tells collapsing components from others.
    kinds : tuple
        Of starts.
    first_starts : sequence of (source, parameters)
    best_degenerate : Run or None
        The solution of highest likelihood, among all that were seen, that does not count.
    """

    coordinates: Coordinates = field(kw_only=True)
    views: Views = field(kw_only=True)
    noise: float = 0.0
    floor_tells: bool = True
    kinds: tuple[Any, ...] = KINDS
    first_starts: Sequence[NamedStart[Theta]] = ()
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

    @cached_property
    def total(self) -> float:
        """Number of rows."""
        return float(self.weights.sum())

    @property
    def is_hopeless(self) -> bool:
        """Whether there are too few rows for any regular solution."""
        k = self.mixture.n_components
        return k * self.kind.least_size(k, self.model.d, self.total) > self.total * (1 + 1e-9)

    def mixture_of(self, theta: Theta) -> Mixture:
        """The mixture of one run, in the coordinates."""
        return self.model.mixture(theta.density, 0, theta.law.weights[0])

    def log_likelihood(self, objective: float) -> float:
        """In the units of the points."""
        return -objective - self.constant

    # Starts

    def starts(self, rows: Any, is_first: bool, draws: np.random.Generator) -> list[NamedStart[Theta]]:
        k, first = self.mixture.n_components, list(self.first_starts) if is_first else []
        made = list(partitions(self.views, k, self.plan.n_starts, draws, self.kinds))
        return first + self._begun(self.on(rows), [name for name, _ in made], [one_hot(q, k).T for _, q in made])

    def perturbed(
        self, rows: Any, bases: Sequence[Theta], size: int, draws: np.random.Generator
    ) -> list[NamedStart[Theta]]:
        """Perturbations of the best solution alone."""
        on, out = self.on(rows), []
        for q in perturbed(self.mixture_of(bases[0]), self.points, self.weights, size, draws):
            out += self._begun(on, [PERTURBATION] * len(q), list(np.swapaxes(q, 1, 2)))
        return out

    def _begun(self, on: Any, names: list[str], responsibilities: list[Array]) -> list[NamedStart[Theta]]:
        """Parameters of responsibilities as they are: a component without rows stays absent."""
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
        """EM on from where the runs are; there is no rule to be free of, so that nothing is found beyond it."""
        if free:
            return []
        ends = super().run(rows, runs, max_iter, tol)
        for end in ends:
            known = self.best_degenerate
            if end.degenerate and (known is None or end.objective < known.objective):
                self.best_degenerate = end
        return ends

    def features(self, thetas: Sequence[Theta]) -> Array:
        """Shares and means, each sorted over components."""
        each = [(np.sort(one.law.weights[0]), np.sort(one.density.means[0], axis=0).ravel()) for one in thetas]
        return np.array([np.concatenate(parts) for parts in each])

    def _degeneracies(self, theta: Theta, seen: Seen) -> list[str]:
        """On a floor of the total covariance a least ratio to the one within components is implied."""
        least = self.kind.least_size(self.mixture.n_components, self.model.d, self.total)
        floored = theta.density.floored.any(axis=1)
        small = are_small(theta.law.weights * self.total, least).any(axis=1)
        faults = np.where(floored, Fault.FLOORED, np.where(small, Fault.SMALL, Fault.NONE)).tolist()
        if not self.floor_tells or self.first_starts:
            faults = [fault or self.judged(one).fault for fault, one in zip(faults, split(theta), strict=True)]
        finite = np.isfinite(seen.objective).tolist()
        return [
            Fault(fault).word if ok else "its likelihood is not finite"
            for fault, ok in zip(faults, finite, strict=True)
        ]

    def judged(self, theta: Theta) -> Regularity:
        """How near to collapse the components of one run are."""
        return judge(self.mixture_of(theta), theta.density.floored[0], self.total)

    # Other coordinates

    def released(self, best: Run[Theta]) -> GaussianContest | None:
        """The contest in coordinates of the pooled within-component covariance, where a floor relative to it matters.

        Groups that lie far apart are narrow beside the total covariance without being degenerate: a solution on the
        floor of that is regular once the floor is relative to the variance within components.
        """
        seen = self.best_degenerate
        if (
            not self.floor_tells
            or self.mixture.n_components == 1
            or seen is None
            or not seen.theta.density.floored.any()
        ):
            return None
        if best.is_regular and seen.objective >= best.objective:
            return None
        mixture = self.mixture_of(seen.theta)
        within = self._within(mixture)
        variances = within if within.ndim < 2 else np.linalg.eigvalsh(within)
        rounding = 0.0 if within.ndim < 2 else 1e-13 * variances.max()
        if not variances.min() > max(self.noise, rounding):
            return None
        other = self.within(self.coordinates.rescaled(within), rescaling(within))
        start = other.theta_of(mixture.mapped(rescaling(within)))
        end = other.run(other.whole, [Run("released", start, start)], other.max_iter, other.tol)[0]
        floored = end.theta.density.floored.any()
        better = other.log_likelihood(end.objective) > self.log_likelihood(best.objective)
        if floored or (best.is_regular and not (end.is_regular and better)):
            return None
        return replace(other, first_starts=[("released", end.theta)])

    def within(self, coordinates: Coordinates, scale: Array) -> GaussianContest:
        """The same contest in coordinates that are a map of its own."""
        points = self.points * scale if scale.ndim < 2 else np.einsum("ij,jk->ik", self.points, scale)
        model = Gaussian(self.kind, self.model.d, self.model.floor)
        has_gaps = isinstance(self.mixture.density, GaussianGaps)
        density = GaussianGaps(model, coordinates) if has_gaps else model
        return replace(
            self,
            mixture=replace(self.mixture, density=density),
            columns=self.columns if has_gaps else (points,),
            points=points,
            coordinates=coordinates,
            views=replace(self.views, own=points),
            constant=-coordinates.log_volume * self.total,
            kinds=KINDS,
            best_degenerate=None,
            _of_rows={},
        )

    def theta_of(self, mixture: Mixture) -> Theta:
        """A mixture in the coordinates as a batch of one."""
        return Parameters(normals([mixture]), Weights(mixture.weights[None]))

    def _within(self, mixture: Mixture) -> Array:
        """The pooled within-component covariance, from the points and not from the mixture's covariances."""
        u, weights = self.points, self.weights
        _, q = log_likelihood(mixture, u, weights)
        mass = np.einsum("i,ik->k", weights, q)
        means = np.einsum("i,ik,ij->kj", weights, q, u) / np.maximum(mass, 1e-300)[:, None]
        second = moments(u, weights, q, means, self.kind.pooled_type.name)[:, 1 + u.shape[1] :]
        return self.kind.pooled(second, float(mass.sum()), u.shape[1])


def contest_of(
    points: Array,
    weights: Array,
    frames: Frames,
    kind: Covariance,
    *,
    n_components: int,
    beta: float,
    covariance_floor: float | None,
    noise: float,
    tol: float,
    max_iter: int,
    observed: NDArray[Any] | None,
    n_jobs: int | None,
) -> GaussianContest:
    """The contest of weighted points in the coordinates of a type, in which EM does not depend on units.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
    weights : ndarray of shape (n_points,)
        Their median is one.
    frames : Frames
    kind : Covariance
    n_components, beta, tol, max_iter, n_jobs
        See `GaussianMixture`; `tol` is what may be left to gain for each unit of weight.
    covariance_floor : float or None
        Smallest eigenvalue of a covariance, relative to the total one; None: chosen.
    noise : float
        Share of the total variance below which variance is rounding.
    observed : ndarray or None
        The points before their missing entries were filled in.
    """
    own = frames.of_type(kind.name)
    u = own.of(points)
    floor = LEAST_RATIO if covariance_floor is None else max(covariance_floor, LEAST_FLOOR)
    model = Gaussian(kind, own.rank, floor)
    density = model if observed is None else GaussianGaps(model, own)
    mixture = Model(density, Independent(), n_components, beta)
    # Where the coordinates of the type are among the other two, they are none of their own.
    is_other = own is not frames.whitened and own is not frames.standardised
    block = len(u) if observed is None else None
    contest = GaussianContest(
        mixture=mixture,
        columns=(u if observed is None else observed,),
        points=u,
        weights=weights,
        plan=plan_of(n_components, float(weights.sum()), mixture.n_parameters),
        tol=tol,
        max_iter=max_iter,
        data=lambda *columns, weights: Chunks(*columns, weights=weights, rows=block, n_jobs=n_jobs),
        constant=-own.log_volume * float(weights.sum()),
        coordinates=own,
        views=Views(frames.whitened.of(points), frames.standardised.of(points), u, weights),
        noise=noise,
        floor_tells=covariance_floor is None,
        kinds=KINDS if is_other else tuple(kind for kind in KINDS if kind is not OWN),
    )
    if contest.is_hopeless:  # there is no answer to look for
        plan = replace(contest.plan, most_rounds=1)
        return replace(contest, plan=plan, max_iter=min(max_iter, SOON), tol=max(tol, 1e-2 / contest.total))
    return contest


def search(
    contest: GaussianContest, draws: np.random.Generator, verbose: int
) -> list[tuple[GaussianContest, Found[Theta]]]:
    """One search; where a floor relative to the total covariance would decide, another beside a floor within."""
    found = Race(contest, verbose).find(draws)
    out = [(contest, found)]
    released = contest.released(found.best)
    if released is not None:
        out.append((released, Race(released, verbose).find(draws)))
    return out


def rescaling(covariance: Array) -> Array:
    """The map to coordinates in which a covariance is the identity."""
    if covariance.ndim < 2:
        return np.asarray(1.0 / np.sqrt(covariance))
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors / np.sqrt(values))


def one_hot(labels: NDArray[np.integer], k: int) -> Array:
    """Responsibilities of a hard partition."""
    return np.asarray(labels[:, None] == np.arange(k), dtype=np.float64)
