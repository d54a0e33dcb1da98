"""Identification: which estimates the items could determine, however many rows there were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._numbers import counted
from majorant._told import Told
from majorant.data.chunks import Block
from majorant.engine.mixture import Drawn, Mixture
from majorant.laws import Independent
from majorant.models.latent_class_analysis.populations import drawn_rows
from majorant.results.information import packed, scores, undetermined, unpacked

Array = NDArray[np.float64]
MOST_CELLS = 1_000
"""Cells of the table of all items up to which each is visited; of larger tables so many rows are drawn."""
STEP = 1e-5


@dataclass(frozen=True, repr=False)
class Identification(Told):
    """How many of the parameters the items determine.

    Attributes
    ----------
    unidentified : tuple of str
        Names of estimates that the items do not determine.
    never_together : tuple of str
        Pairs of correlated items that no row of the fit answers both of, so that the rows do not determine their
        covariances.
    """

    n_parameters: int
    rank: int
    unidentified: tuple[str, ...]
    never_together: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The result in a sentence."""
        if self.rank == self.n_parameters:
            return f"The items determine all {counted(self.n_parameters, 'parameter')}."
        if self.never_together and not self.unidentified:
            return (
                f"The rows determine {self.rank} of {counted(self.n_parameters, 'parameter')}: no row answers both "
                f"items of {'; '.join(self.never_together)}, so that their covariances cannot be told. Log-likelihood "
                "is right; add rows that answer both, or take them for independent."
            )
        few = ", ".join(self.unidentified[:4]) + (" and others" if len(self.unidentified) > 4 else "")
        return (
            f"The items determine {self.rank} of {counted(self.n_parameters, 'parameter')}, whatever the rows: {few} "
            "cannot be told. Log-likelihood and predictions are right; fit fewer classes, or more items."
        )


def identification(model: Any, names: Sequence[str]) -> Identification:
    """Return the rank of the information at a point inside the parameters, and what has a part in its null space.

    Parameters
    ----------
    model : LatentClassAnalysis
        Fitted; covariates do not enter, as they can only help.
    names : sequence of str
        Of the estimates of the items, then of the shares, one for each population.
    """
    random = np.random.default_rng(0)
    k = len(model.weights_)
    is_plain = "gating_coef" not in model.estimate_names_
    law: Any = model._law_of_fit() if is_plain else Independent()
    mixture, theta = Mixture(model._density(), law, k), model._theta()
    theta = theta if is_plain else replace(theta, law=law.recalled({"weights": model.weights_}))
    at = packed(mixture, theta)[0]
    inner = np.where(np.abs(at) < 3.0, at, 0.0) + random.normal(size=len(at))
    theta = unpacked(mixture, inner[None], theta)
    block, weights = _patterns(model, mixture, theta, random)
    slopes = scores(mixture, inner, theta, block, np.full(len(inner), STEP))
    information = (slopes * weights[:, None]).T @ slopes
    moved = unpacked(
        mixture, np.concatenate([inner + STEP * np.eye(len(inner)), inner - STEP * np.eye(len(inner))]), theta
    )
    told = {**mixture.density.describe(moved.density), **mixture.law.describe(moved.law)}
    changes = np.concatenate([v.reshape(2 * len(inner), k, -1) for v in told.values()], axis=2)
    up, down = np.split(changes.reshape(2 * len(inner), -1), 2)
    rank, lost = undetermined(information, (up - down) / (2 * STEP))
    of_names = np.flatnonzero(lost.reshape(k, -1).any(axis=0)).tolist()
    apart = tuple(" and ".join(pair) for pair in model.never_together_)
    rank -= len(apart) * (1 if model.variances == "shared" else k)  # each pair has a number of its own in a matrix
    return Identification(len(inner), rank, tuple(names[i] for i in of_names), apart)


def _patterns(model: Any, mixture: Mixture, theta: Any, random: np.random.Generator) -> tuple[Block, Array]:
    """Return all cells of the items with their probabilities, or rows that are drawn."""
    items = model.items_
    if model._by_population is not None:
        cells, population, _ = drawn_rows(model, MOST_CELLS, random)
        columns = np.split(cells, np.cumsum([len(block.columns) for block in items.blocks])[:-1], axis=1)
        return Block(0, (*columns, population)), np.full(MOST_CELLS, 1 / MOST_CELLS)
    widths = [len(block.columns) for block in items.blocks]
    sizes = items.table_sizes
    if sizes is not None and np.prod(np.asarray(sizes, dtype=np.float64)) <= MOST_CELLS:
        cells = np.array(list(product(*map(range, sizes))), dtype=np.float64)
        block = Block(0, tuple(np.split(cells, np.cumsum(widths)[:-1], axis=1)))
        return block, np.exp(mixture.posterior(theta, block).units[0])
    components = random.choice(len(model.weights_), MOST_CELLS, p=mixture.law.describe(theta.law)["weights"][0])
    assert isinstance(mixture.density, Drawn)
    drawn = mixture.density.drawn(theta.density, components, random)
    return Block(0, tuple(np.split(drawn, np.cumsum(widths)[:-1], axis=1))), np.full(MOST_CELLS, 1 / MOST_CELLS)
