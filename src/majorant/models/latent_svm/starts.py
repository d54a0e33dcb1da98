"""First regions of a latent support vector machine."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from majorant.models.margin.search import First
from majorant.solvers.structural_svm.bags import BagProblem
from majorant.starts.annealed_pooling import annealed_pooling

NAMED = ("annealed", "first", "center", "random")
"""Values of `latent_init`."""


def first_regions(
    problem: BagProblem,
    shares: NDArray[np.float64],
    init: str | None,
    given: NDArray[np.int32] | None,
    *,
    alpha: float,
    n_init: int,
    seed: int,
) -> Iterator[First]:
    """Make the starts of a fit, each when asked for: one by `init` or of `given` regions, others of random regions."""
    counts = problem.samples.counts
    none = np.zeros(len(counts), dtype=np.int32)
    if problem.samples.n_states == 1:
        yield First("the only regions", none, is_trusted=True)
        return
    random = np.random.default_rng(seed)
    drawn = ((random.random(len(counts)) * counts).astype(np.int32) for _ in range(n_init))
    if given is not None:
        yield First("given regions", given)
    elif init == "annealed":
        w, n_passes = annealed_pooling(
            lambda w, beta, tau: problem.pooled(w, shares, beta, tau),
            problem.dim,
            alpha=alpha,
            mean_square=problem.samples.mean_square(shares),
            unit=float(problem.cost.max()),
        )
        yield First("annealed pooling", problem.own_latent(w), n_passes + 1, is_trusted=True)
    elif init == "first":
        yield First("first regions", none)
    elif init == "center":
        yield First("middle regions", (counts // 2).astype(np.int32))
    else:
        yield First("random regions", next(drawn))
    for latent in islice(drawn, n_init - 1):
        yield First("random regions", latent)
