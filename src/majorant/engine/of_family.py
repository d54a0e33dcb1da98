"""Adapter from a family of the bound loop to a problem of the descent, for M-steps that need passes over the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.engine.descent import Seen, Theta
from majorant.engine.problem import Bound, Family
from majorant.engine.runs import mapped, n_runs, stacked

Array = NDArray[np.float64]


class Fused(Family[Theta], Protocol[Theta]):
    """A family that computes the tightest bound of a block in one pass."""

    def tight_pass(self, theta: Theta, block: Block) -> tuple[float, Bound]: ...


@dataclass
class FamilyOnData(Generic[Theta]):
    """A family on some data, whose runs are stepped one after another."""

    family: Fused[Theta]  # its parameters are those of one run: arrays of a batch without the leading axis
    data: Chunks

    @property
    def total_weight(self) -> float:
        return self.data.total_weight

    @property
    def is_guarded(self) -> bool:
        """True, as the M-step may be a step of an inner iteration."""
        return True

    def started(self, latent: Callable[[Block], Any]) -> Theta:
        """Return the parameters of one run from latent values, given as a function of a block."""
        family = self.family
        s = self.data.map_sum(lambda block: family.statistics(block, latent(block), None))
        return mapped(lambda array: array[None], family.solve(s, None, self.data)[0])

    def seen(self, theta: Theta) -> Seen:
        found = [self._seen(one(theta, run)) for run in range(n_runs(theta))]
        return Seen(np.array([value for value, _ in found]), np.stack([s for _, s in found]))

    def _seen(self, theta: Theta) -> tuple[float, NDArray[Any]]:
        family = self.family

        def visit(block: Block) -> Seen:
            free, bound = family.tight_pass(theta, block)
            return Seen(np.array([free]), bound.statistics)

        found = self.data.map_sum(visit)
        return float(found.objective[0]) + family.penalty(theta), found.statistics

    def moved(self, theta: Theta, seen: Seen, share: Array) -> Theta:
        """Return the parameters after a share of the M-step."""
        out = []
        for run, part in enumerate(share.tolist()):
            here = one(theta, run)
            new = self.family.solve(seen.statistics[run], here, self.data)[0]
            out.append(mapped(lambda a, b, part=part: (b if part == 1 else a + part * (b - a))[None], here, new))
        return stacked(out)

    def extrapolated(self, path: tuple[Theta, Theta, Theta], seen: tuple[Seen, Seen, Seen]) -> None:
        """Return None: a family has no coordinates to extrapolate in."""


def one(batch: Theta, run: int = 0) -> Theta:
    """Return one run of a batch, without the leading axis."""
    return mapped(lambda array: array[run], batch)
