"""From a design and the user's choice of starts to the latent classes that are kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from majorant._progress import end_of_starts, report_start
from majorant.data.chunks import Chunks
from majorant.engine.loop import Solution, minimize
from majorant.engine.policies import BoundPolicy
from majorant.engine.trace import Trace
from majorant.models.discriminative_latent_classes.design import Design
from majorant.models.discriminative_latent_classes.family import LatentClasses, LatentClassFamily
from majorant.models.discriminative_latent_classes.joint import JointCost
from majorant.models.discriminative_latent_classes.starts import Relaxed, as_start, starts
from majorant.search.record import StartRecord
from majorant.solvers.smooth import SmoothResult
from majorant.starts.restarts import Start

Array = NDArray[np.float64]

RACE = 8
"""Iterations of EM after which the starts are compared."""
KEPT = 3
"""Starts that go on where going on costs much."""
CHEAP = 3e6
"""Rows times coefficients up to which every start goes to its end."""
ROUGH = 1e-4
"""EM hands over to L-BFGS where an iteration gains less than this share."""
CLOSING = 20
"""Iterations of EM behind L-BFGS."""
LADDER = (0.1, 1 / 3, 1.0)
"""Shares of the weight of unlabelled rows, each begun where the one before ended."""


@dataclass(frozen=True)
class Found:
    """Latent classes in the coordinates of the design, and how they were found.

    `converged` is whether the last descent ended before `max_iter`.
    """

    theta: LatentClasses
    objective: float
    trace: Trace
    converged: bool
    records: tuple[StartRecord, ...]


@dataclass(frozen=True)
class Search:
    """How latent classes are found; see `DiscriminativeLatentClasses` for the parameters.

    Attributes
    ----------
    design : Design
    sample : Design
        What the starts see of it.
    alpha : float
        The penalty in the units of the coordinates.
    gamma : float
        Weight of what unlabelled rows add.
    """

    design: Design
    sample: Design
    n_classes: int
    alpha: float
    gamma: float
    beta: float
    bounds: BoundPolicy | None
    max_iter: int
    tol: float
    verbose: int

    def family(self, design: Design) -> LatentClassFamily:
        total = design.total_weight
        share = total / self.design.total_weight
        labels = replace(design.labels, prior=design.labels.prior * share)
        return LatentClassFamily(
            self.n_classes, design.n_features, labels, self.alpha * total / self.n_classes, self.beta
        )

    def find(self, init: str | Array, n_init: int | str, seed: int) -> Found:
        """Race the starts, and go on from the best."""
        random = np.random.default_rng(seed)
        noise = random.spawn(1)[0]  # what fits draw on their way; `random` is what starts draw
        relaxed = Relaxed(self.sample, self.n_classes, self.alpha)
        begun = [
            self._begun(as_start(*each, int(noise.integers(2**31)))) for each in starts(relaxed, init, n_init, random)
        ]
        kept = list(range(len(begun)))
        size = self.design.labelled.n_units * self.n_classes * (self.design.n_features + 1)
        if size > CHEAP and self.bounds is None:
            kept = sorted(np.argsort([quick.objective for _, quick in begun], kind="stable")[:KEPT].tolist())
        records: list[StartRecord] = []
        best: Found | None = None
        scale = self.design.total_weight / self.sample.total_weight
        for i, (start, quick) in enumerate(begun):
            if i not in kept:
                records.append(StartRecord(start.source, quick.objective * scale, quick.n_iter, False))
                continue
            found = self._finished(start, quick)
            records.append(StartRecord(start.source, found.objective, len(found.trace), found.converged))
            shown = found.objective * self.design.unit
            report_start(len(records), start.source, shown, f"{len(found.trace)} iterations", self.verbose)
            if best is None or found.objective < best.objective:
                best = found
        end_of_starts(self.verbose)
        assert best is not None
        return replace(best, records=tuple(records))

    def _begun(self, start: Start) -> tuple[Start, Solution[LatentClasses]]:
        data = self.sample.labelled
        iterations = min(RACE, self.max_iter)
        return start, minimize(self.family(self.sample), data, latent=start.latent, tol=0.0, max_iter=iterations)

    def _finished(self, start: Start, quick: Solution[LatentClasses]) -> Found:
        family, data = self.family(self.design), self.design.labelled
        explores = self.bounds is not None and self.bounds.eta < 1
        on_all = self.sample is self.design
        joint = self.beta == 1
        em = minimize(
            family,
            data,
            self.bounds,
            theta=None if explores and on_all else quick.theta,
            latent=start.latent if explores and on_all else None,
            tol=max(self.tol, ROUGH) if joint else self.tol,
            max_iter=self.max_iter,
            seed=start.seed,
        )
        rows = [*(quick.trace if on_all and not explores else ()), *em.trace]
        found = Found(em.theta, em.objective, Trace(rows), em.converged, ())
        return self._polished(found, family) if joint else found

    def _polished(self, found: Found, family: LatentClassFamily) -> Found:
        """All parameters at once, then EM, which brings probabilities of labels to their ends."""
        design = self.design
        cost = JointCost(family, design.labelled, design.rows)
        theta, joint = cost.minimise(found.theta, tol=self.tol, max_iter=self.max_iter)
        last = minimize(family, design.labelled, theta=theta, tol=self.tol, max_iter=min(CLOSING, self.max_iter))
        total = design.total_weight
        rows = [*found.trace, *_rows(v * total for v in joint.values[1:]), *last.trace]
        found = Found(last.theta, last.objective, Trace(rows), self._ended(joint), ())
        if self.gamma == 0 or not design.has_unlabelled:
            return found
        for share in LADDER:
            cost = replace(cost, gamma=self.gamma * share)
            theta, joint = cost.minimise(found.theta, tol=self.tol, max_iter=self.max_iter)
            rows = [*found.trace, *_rows(v * total for v in joint.values[1:])]
            found = Found(theta, joint.value * total, Trace(rows), self._ended(joint), ())
        return found

    def _ended(self, joint: SmoothResult) -> bool:
        """Whether L-BFGS reached its tolerance, or can go no further, before its last iteration."""
        return joint.converged or joint.n_iter < self.max_iter


def _rows(values: Iterable[float]) -> list[dict[str, float]]:
    return [{"objective": float(v), "exploring": 0.0} for v in values]


def sampled(design: Design, most: int, random: np.random.Generator) -> Design:
    """So many of the labelled rows, drawn uniformly; the design itself where it has no more."""
    n = len(design.weights)
    if n <= most:
        return design
    drawn = np.sort(random.choice(n, most, replace=False, shuffle=False))
    point, code, weights = design.point[drawn], design.code[drawn], design.weights[drawn]
    y = design.patterns_of(code)
    data = Chunks(design.x[point], y, weights=weights, n_jobs=design.labelled.n_jobs)
    return replace(design, labelled=data, point=point, code=code, weights=weights)
