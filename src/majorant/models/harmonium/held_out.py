"""What penalties are compared by where a model is to say one view from the others: the view's held-out log-loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.models.harmonium.inference import Unseen
from majorant.models.harmonium.layout import Layout, Parameters, Seen
from majorant.models.harmonium.pseudo_likelihood import Part, PseudoLikelihood

Array = NDArray[np.float64]

PENALTIES = (1.0, 4.0, 16.0, 64.0)
"""What the weights of the view count for in the penalty: compared in this order, as long as larger ones are better."""
SETTLED = 1e-5
"""Change of probabilities at which mean field is settled enough to compare by."""
LEAST = 1e-12
"""Probabilities are at least this."""


@dataclass(frozen=True)
class Annotation:
    """Log-loss of the bits of a view given the other views of a row, as `Harmonium.annotate` finds them.

    Attributes
    ----------
    rows : slice
        The bits' rows of W.
    """

    rows: slice

    def loss(self, problem: PseudoLikelihood, at: Parameters) -> float:
        """Mean over the rows that have the view, and others; NaN where there are none."""
        total, weight = 0.0, 0.0
        for part in problem.parts:
            rest = self._rest(part.seen, problem.layout)
            if len(part.seen.bits) == len(rest.bits) or not len(rest.columns(problem.layout)):
                continue
            total += self._loss_of_part(problem, part, rest, at)
            weight += part.data.total_weight
        return total / weight if weight else np.nan

    def _rest(self, seen: Seen, layout: Layout) -> Seen:
        """The other views of rows that have `seen`."""
        return replace(seen, bits=np.setdiff1d(seen.bits, np.arange(self.rows.start, self.rows.stop)))

    def _loss_of_part(self, problem: PseudoLikelihood, part: Part, rest: Seen, at: Parameters) -> float:
        plain = PseudoLikelihood(problem.layout, problem.centre, ())
        view = plain.view(rest, at)
        unseen = Unseen.of(problem.layout, problem.centre, rest, view.theta)
        asked = (unseen.rows >= self.rows.start) & (unseen.rows < self.rows.stop)
        known = np.isin(part.seen.bits, rest.bits)

        def visit(block: Block) -> float:
            z, x, *others = block.columns
            m = view.latents(replace(block, columns=(z, x[:, known], *others)))
            p = np.clip(unseen.mean_field(m, SETTLED)[0][:, asked], LEAST, 1 - LEAST)
            bits = x[:, ~known]
            on: Any = bits.multiply(np.log(p) - np.log1p(-p)).sum(axis=1)
            return -block.total(np.log1p(-p).sum(axis=1) + np.asarray(on).ravel())

        return float(part.data.map_sum(visit))
