"""Mixtures of every density with every law on small data, for tests that hold for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Chunks
from majorant.data.units import blocks_of
from majorant.densities import (
    Bernoulli,
    Categorical,
    Gamma,
    Normal,
    Ordinal,
    Poisson,
    Product,
    VonMises,
    ZeroInflatedPoisson,
)
from majorant.engine.mixture import Mixture, OnData
from majorant.laws import ByPopulation, Chain, Gated, GatedChain, Grouped, Independent, Known

Array = NDArray[np.float64]
N, D, K = 120, 4, 3


def table(seed: int, *, missing: bool = True) -> Array:
    """Zeros and ones of three groups, some cells missing."""
    random = np.random.default_rng(seed)
    p = random.uniform(0.1, 0.9, (K, D))
    x = (random.random((N, D)) < p[random.integers(0, K, N)]).astype(np.float64)
    if missing:
        x[random.random((N, D)) < 0.1] = np.nan
    return x


DENSITIES: dict[str, Any] = {
    "Bernoulli": lambda: Bernoulli(D),
    "Poisson": lambda: Poisson(D),
    "categorical": lambda: Categorical([2] * D),
    "ordinal": lambda: Ordinal([3] * D),
    "normal": lambda: Normal(np.arange(D, dtype=float), np.full(D, 2.0)),
    "normal, shared variances": lambda: Normal(np.arange(D, dtype=float), np.full(D, 2.0), shared=True),
    "gamma": lambda: Gamma(D),
    "von Mises": lambda: VonMises(D),
    "zero-inflated Poisson": lambda: ZeroInflatedPoisson(D),
    "product": lambda: Product([("answers", Bernoulli(D)), ("counts", Poisson(D))]),
}


def columns_of(density: str, seed: int) -> list[Array]:
    """The columns that a density reads."""
    random = np.random.default_rng(100 + seed)
    counts = random.poisson(3.0, (N, D)).astype(np.float64)
    first = counts if density == "Poisson" else table(seed)
    if density == "zero-inflated Poisson":
        first = first * counts  # zeros of two kinds, some cells missing
    if density == "ordinal":
        first = first + np.minimum(counts // 3, 1)  # 0, 1 and 2, some cells missing
    if density.startswith("normal"):
        first = first + random.normal(size=(N, D))
    if density == "gamma":
        first = random.gamma(1 + 3 * first, 2.0)
    if density == "von Mises":
        first = np.where(np.isnan(first), np.nan, random.vonmises(3 * np.nan_to_num(first), 2.0))
    return [first, counts] if density == "product" else [first]


def laws(seed: int) -> dict[str, tuple[Any, list[NDArray[Any]]]]:
    """Laws by name, each with its columns."""
    random = np.random.default_rng(200 + seed)
    gate = np.column_stack([np.ones(N), random.normal(size=N)])
    groups, labels = np.arange(N) // 3, np.where(random.random(N) < 0.2, random.integers(0, K, N), -1)
    same_in_groups = np.repeat(labels[::3], 3)
    return {
        "independent": (Independent(), []),
        "by population": (ByPopulation(2), [(np.arange(N) % 5 == 0).astype(np.intp)]),
        "gated": (Gated(2), [gate]),
        "known": (Known(), [labels]),
        "known, gated": (Known(Gated(2)), [labels, gate]),
        "grouped": (Grouped(), [groups]),
        "grouped, known, gated": (Grouped(Known(Gated(2))), [groups, same_in_groups, np.repeat(gate[::3], 3, axis=0)]),
        "chain": (Chain(), [groups]),
        "stationary chain": (Chain("stationary"), [groups]),
        "known, chain": (Known(Chain()), [labels, groups]),
        "gated chain": (GatedChain(2), [gate, groups]),
        "known, gated chain": (Known(GatedChain(2)), [labels, gate, groups]),
    }


NAMES = [(density, law) for density in DENSITIES for law in laws(0)]


def problem(density: str, law: str, seed: int = 0, *, beta: float = 1.0, weights: Array | None = None) -> OnData:
    """A mixture on its data."""
    which, extra = laws(seed)[law]
    mixture = Mixture(DENSITIES[density](), which, K, beta)
    source = blocks_of([*columns_of(density, seed), *extra], weights)
    return OnData(mixture, Chunks(source))


def tables_of_responsibilities(seed: int, runs: int) -> Array:
    """Random ones, (runs, components, rows)."""
    random = np.random.default_rng(300 + seed)
    return np.ascontiguousarray(np.moveaxis(random.dirichlet(np.ones(K), (runs, N)), 2, 1))


def started(on: OnData, seed: int, runs: int) -> Any:
    """Parameters of random responsibilities."""
    return on.mixture.started(tables_of_responsibilities(seed, runs), on.data)
