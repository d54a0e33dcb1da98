"""The search for latent classes: EM from every start, then L-BFGS over all parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.engine.checkpoint import Entry, entered
from majorant.engine.loop import minimize
from majorant.engine.of_family import FamilyOnData, one
from majorant.engine.policies import BoundPolicy
from majorant.engine.runs import mapped
from majorant.engine.trace import Trace
from majorant.models.discriminative_latent_classes.design import Design, FitRows, most_rows, sampled
from majorant.models.discriminative_latent_classes.family import LatentClasses, LatentClassFamily
from majorant.models.discriminative_latent_classes.joint import JointCost
from majorant.models.discriminative_latent_classes.starts import Relaxed, starts
from majorant.search.contestants import NamedStart, Run
from majorant.search.few_starts import FewStarts

Array = NDArray[np.float64]
Classified = Run[LatentClasses]

RACE = 7
"""Steps of EM after which the starts are compared."""
KEPT = 3
"""Number of starts that are continued on large data."""
CHEAP = 3e6
"""Rows times coefficients up to which every start is run to convergence."""
ROUGH = 1e-3
"""Predicted gain per row below which EM hands over to L-BFGS."""
CLOSING = 20
"""Steps of EM behind L-BFGS."""
LADDER = (0.1, 1 / 3, 1.0)
"""Shares of the weight of unlabelled rows, each begun where the one before ended."""


@dataclass
class LatentClassContest(FewStarts[LatentClasses]):
    """The search for latent classes."""

    whole: FamilyOnData[LatentClasses]
    part: FamilyOnData[LatentClasses]
    design: Design = field(kw_only=True)
    # names of starts, and their soft assignments of the labelled rows of the race
    assignments: Iterable[tuple[str, Array]] = field(kw_only=True)
    gamma: float = field(kw_only=True)  # weight of what unlabelled rows add
    bounds: BoundPolicy | None = field(kw_only=True)
    seeds: np.random.Generator = field(kw_only=True)  # what descents draw on their way
    # of runs by another policy than the tightest bounds: by the number of the start
    traces: dict[int, Trace] = field(default_factory=dict)
    _first: list[Callable[[Block], Array]] = field(default_factory=list)

    @property
    def family(self) -> LatentClassFamily:
        family = self.whole.family
        assert isinstance(family, LatentClassFamily)
        return family

    def starts(self, rows: Any, is_first: bool, draws: np.random.Generator) -> list[NamedStart[LatentClasses]]:
        named = [(name, lambda block, xi=xi: xi[block.at]) for name, xi in self.assignments]
        self._first = [latent for _, latent in named]
        return [(name, self.part.started(latent)) for name, latent in named]

    def shown(self, objective: float) -> float:
        """Return the objective in the weights as given."""
        return objective * self.design.unit

    def entry(self, on: Any, theta: LatentClasses, max_iter: int, tol: float) -> Entry | None:
        return entered(loop="descent", start=theta, rows=on.data.n_units, tol=tol, max_iter=max_iter)

    def finished(self, rows: Any, runs: list[Classified]) -> list[Classified]:
        """Run EM until it is slow, then L-BFGS over all parameters; at another temperature, EM to convergence."""
        joint = self.family.beta == 1
        tol = max(self.tol, ROUGH) if joint else self.tol
        ends = []
        for run in sorted(runs, key=lambda run: run.number):
            if self.is_sampled:
                run = replace(run, path=())
            if self.bounds is None:
                run = self.stepped(self.whole, run, self.max_iter, tol)
            else:
                run = self._by_bounds(run, self.bounds, tol)
            ends.append(self._polished(run) if joint else run)
        return ends

    def _by_bounds(self, run: Classified, bounds: BoundPolicy, tol: float) -> Classified:
        """Descend by a bound policy; one that explores begins at the assignments of the start, if of all rows."""
        anew = bounds.eta < 1 and not self.is_sampled
        found = minimize(
            self.family,
            self.whole.data,
            deepcopy(bounds),
            theta=None if anew else one(run.theta),
            latent=self._first[run.number] if anew else None,
            tol=tol,
            max_iter=self.max_iter,
            seed=int(self.seeds.integers(2**31)),
        )
        before = () if anew else run.path
        self.traces[run.number] = Trace([*rows_of(before), *found.trace])
        path = (*before, *found.trace["objective"].tolist())
        theta = mapped(lambda array: array[None], found.theta)
        return replace(
            run, theta=theta, objective=found.objective, n_iter=len(path), converged=found.converged, path=path
        )

    def _polished(self, run: Classified) -> Classified:
        """Run L-BFGS over all parameters, then EM, which takes label probabilities to their limits."""
        cost = JointCost(self.family, self.design.labelled, self.design.rows)
        run, converged = self._at_once(cost, run)
        share = min(abs(run.objective) / self.design.total_weight, 1.0)
        run = self.stepped(self.whole, run, min(CLOSING, self.max_iter), share * self.tol)
        if self.gamma > 0 and self.design.has_unlabelled:
            for share in LADDER:
                run, converged = self._at_once(replace(cost, gamma=self.gamma * share), run)
        return replace(run, converged=converged)

    def _at_once(self, cost: JointCost, run: Classified) -> tuple[Classified, bool]:
        """Minimise by L-BFGS; also return whether it ended before its iteration limit."""
        theta, found = cost.minimise(one(run.theta), tol=self.tol, max_iter=self.max_iter)
        values = [value * self.design.total_weight for value in found.values[1:]]
        run = replace(
            run,
            theta=mapped(lambda array: array[None], theta),
            objective=found.value * self.design.total_weight,
            n_iter=run.n_iter + len(values),
            path=(*run.path, *values),
        )
        return run, found.converged or found.n_iter < self.max_iter

    def trace(self, run: Classified) -> Trace:
        """Return the history of a run."""
        known = self.traces.get(run.number, Trace())
        return Trace([*map(dict, known), *rows_of(run.path[len(known) :])])


def rows_of(path: Iterable[float]) -> list[dict[str, float]]:
    """Return the objectives of steps by the tightest bounds, as rows of a trace."""
    return [{"objective": value, "exploring": 0.0} for value in path]


def latent_class_contest(
    rows: FitRows,
    n_classes: int,
    penalty: float,  # in the units of the coordinates
    # `init`, `n_init`, `beta`, `gamma`, `bounds`, `max_iter`, `tol`: see `DiscriminativeLatentClasses`; gamma is its
    # `unlabelled_weight`, and given classes are those of the labelled rows
    init: Any,
    n_init: Any,
    *,
    beta: float,
    gamma: float,
    bounds: BoundPolicy | None,
    max_iter: int,
    tol: float,
    draws: np.random.Generator,
) -> LatentClassContest:
    """Return the search for latent classes; with many rows, starts are on a sample unless given."""
    design, sample = rows.design, rows.sample
    if isinstance(init, str):
        sample = sampled(sample, most_rows(sample), draws)
    is_part = rows.n_sampled < rows.n_rows or sample is not rows.sample

    def on(some: Design) -> FamilyOnData[LatentClasses]:
        total = some.total_weight
        labels = replace(some.labels, prior=some.labels.prior * total / design.total_weight)
        family = LatentClassFamily(n_classes, some.n_features, labels, penalty * total / n_classes, beta)
        return FamilyOnData(family, some.labelled)

    whole = on(design)
    costs_much = design.labelled.n_units * n_classes * (design.n_features + 1) > CHEAP and bounds is None
    return LatentClassContest(
        whole,
        whole if sample is design else on(sample),
        tol,
        max_iter,
        ((min(RACE, max_iter), KEPT),) if costs_much else (),
        f"Starts were made on a sample of {len(sample.weights)} rows." if is_part else "",
        design=design,
        seeds=draws.spawn(1)[0],
        assignments=starts(Relaxed(sample, n_classes, penalty), init, n_init, draws),
        gamma=gamma,
        bounds=bounds,
    )
