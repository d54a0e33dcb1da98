"""Initial regions of a latent support vector machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
from scipy import sparse

from majorant.models.margin.search import First, StartRequest
from majorant.solvers.structural_svm.bags import BagProblem
from majorant.starts.annealed_pooling import column_sizes

NAMED = ("annealed", "first", "center", "random")
"""Values of `latent_init`."""


def first_regions(request: StartRequest[BagProblem]) -> Iterator[First]:
    """Make starts one by one as they are asked for: the first as requested, the others of random regions.

    The annealed start goes with the plain one, from the first regions, which is quick and seldom better.
    """
    bags = request.problem.samples
    none = np.zeros(len(bags), dtype=np.int32)
    if bags.n_states == 1:
        yield First("the only regions", none, is_trusted=True)
        return
    random = np.random.default_rng(request.seed)
    drawn = ((random.random(len(bags)) * bags.counts).astype(np.int32) for _ in range(request.n_init))
    if request.given is not None:
        yield First("given regions", request.given)
    elif request.init == "annealed":
        sizes = np.ones(bags.rows.shape[1]) if sparse.issparse(bags.rows) else column_sizes(bags.own_rows)
        alike = bags if (sizes == 1).all() else replace(bags, rows=np.ascontiguousarray(bags.rows / sizes))
        of_weights = np.tile(np.append(sizes, 1.0), bags.n_classes)
        yield request.annealed(mean_square=alike.mean_square(request.shares), sizes=of_weights)
        yield First("first regions", none, is_trusted=True)
    elif request.init == "first":
        yield First("first regions", none)
    elif request.init == "center":
        yield First("middle regions", (bags.counts // 2).astype(np.int32))
    else:
        yield First("random regions", next(drawn))
    for latent in islice(drawn, request.n_init - 1):
        yield First("random regions", latent)
