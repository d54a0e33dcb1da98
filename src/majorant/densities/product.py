"""Products of densities: blocks of columns that are independent within a state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.engine.descent import Ends
from majorant.engine.mixture import Anchored, Array, Edged, Limited, Limits, Mixture, Scored, Table


class Product:
    r"""A product of densities, :math:`f(x; \theta) = \prod_b f_b(x_b; \theta_b)`, each of its own columns.

    Parameters
    ----------
    parts : sequence of (name, density)
        A block of rows has one array for each column that they read, in this order.
    """

    def __init__(self, parts: Sequence[tuple[str, Any]]) -> None:
        self.parts = tuple(parts)
        self.n_columns = sum(density.n_columns for _, density in self.parts)
        self.exact = all(density.exact for _, density in self.parts)
        self.statistics_are_free = all(getattr(d, "statistics_are_free", False) for _, d in self.parts)
        if all(isinstance(density, Scored) for _, density in self.parts):
            self.score = self._score
        if len(self.parts) == 1 and hasattr(self.parts[0][1], "fused_runs"):
            self.fused_runs = self._fused_runs

    @property
    def width(self) -> int:
        """The sum over blocks."""
        return sum(density.width for _, density in self.parts)

    @property
    def limits(self) -> Mapping[str, Limits]:
        """The limits of every block, each name prefixed by the block's."""
        return {f"{n}_{key}": ends for n, d in self.parts if isinstance(d, Limited) for key, ends in d.limits.items()}

    def _fused_runs(self, mixture: Mixture, data: Chunks, theta: Any, *, tol: float, max_iter: int) -> Ends[Any]:
        """Run the only block's own EM."""
        ((_, density),) = self.parts
        inner = replace(theta, density=theta.density[0])
        ends: Ends[Any] = density.fused_runs(replace(mixture, density=density), data, inner, tol=tol, max_iter=max_iter)
        return replace(ends, theta=replace(ends.theta, density=(ends.theta.density,)))

    def degeneracy(self, theta: tuple[Any, ...], sizes: Array, mixture: Any) -> str:
        """Return what is degenerate in the first block that is."""
        for (_, density), part in zip(self.parts, theta, strict=True):
            if hasattr(density, "degeneracy") and (reason := density.degeneracy(part, sizes, mixture)):
                return str(reason)
        return ""

    def _blocks(self, rows: Block) -> list[tuple[Any, Block]]:
        found, first = [], 0
        for i, (_, density) in enumerate(self.parts):
            derived = rows.derived.setdefault(f"part {i}", {})
            columns = rows.columns[first : first + density.n_columns]
            found.append((density, replace(rows, columns=columns, derived=derived)))
            first += density.n_columns
        return found

    def drawn(self, theta: tuple[Any, ...], components: NDArray[np.intp], random: np.random.Generator) -> Array:
        """Draw a row of each of these components, the columns of all blocks side by side."""
        parts = zip(self.parts, theta, strict=True)
        return np.column_stack([density.drawn(t, components, random) for (_, density), t in parts])

    def log_density(self, theta: tuple[Any, ...], rows: Block) -> Table:
        """Sum over blocks."""
        tables = [d.log_density(t, block) for (d, block), t in zip(self._blocks(rows), theta, strict=True)]
        return np.asarray(sum(tables[1:], tables[0]))

    def statistics(self, theta: tuple[Any, ...] | None, rows: Block, q: Table) -> Array:
        """Return the statistics of every block, concatenated along the last axis."""
        known = theta or (None,) * len(self.parts)
        found = [d.statistics(t, block, q) for (d, block), t in zip(self._blocks(rows), known, strict=True)]
        return np.concatenate(found, axis=2)

    def _split(self, statistics: Array) -> list[Array]:
        return np.split(statistics, np.cumsum([density.width for _, density in self.parts])[:-1], axis=2)

    def solve(self, statistics: Array, theta: tuple[Any, ...] | None, share: Array) -> tuple[Any, ...]:
        """Take the M-step of every block."""
        known = theta or (None,) * len(self.parts)
        parts = zip(self.parts, self._split(statistics), known, strict=True)
        return tuple(density.solve(s, t, share) for (_, density), s, t in parts)

    def expected_log_density(self, statistics: Array, theta: tuple[Any, ...]) -> Array:
        """Sum over blocks."""
        parts = zip(self.parts, self._split(statistics), theta, strict=True)
        return np.asarray(sum(d.expected_log_density(s, t) for (_, d), s, t in parts))

    def _score(self, statistics: Array, theta: tuple[Any, ...]) -> Array:
        """Return the slopes of every block."""
        parts = zip(self.parts, self._split(statistics), theta, strict=True)
        return np.concatenate([d.score(s, t) for (_, d), s, t in parts], axis=1)

    def anchored(self, theta: tuple[Any, ...]) -> Product:
        """Return the product whose blocks tell their numbers against what is far from an edge."""
        parts = zip(self.parts, theta, strict=True)
        return Product([(n, d.anchored(t) if isinstance(d, Anchored) else d) for (n, d), t in parts])

    def at_edges(self, theta: tuple[Any, ...], statistics: Array, rows: float) -> tuple[Any, ...] | None:
        """Return parameters with what is on its way to an edge there, in every block; None if nothing is."""
        parts = zip(self.parts, theta, self._split(statistics), strict=True)
        moved = [d.at_edges(t, s, rows) if isinstance(d, Edged) else None for (_, d), t, s in parts]
        if all(own is None for own in moved):
            return None
        return tuple(t if own is None else own for t, own in zip(theta, moved, strict=True))

    def n_parameters(self, n_components: int) -> int:
        """Sum over blocks."""
        return sum(density.n_parameters(n_components) for _, density in self.parts)

    def describe(self, theta: tuple[Any, ...]) -> dict[str, Array]:
        """Return estimates of every block, each name led by the block's."""
        parts = zip(self.parts, theta, strict=True)
        return {f"{name}_{key}": value for (name, d), t in parts for key, value in d.describe(t).items()}

    def recalled(self, estimates: Mapping[str, Array]) -> tuple[Any, ...]:
        """Return parameters of every block, from names that are led by the block's."""
        return tuple(
            density.recalled({k.removeprefix(f"{name}_"): v for k, v in estimates.items() if k.startswith(f"{name}_")})
            for name, density in self.parts
        )

    def vector(self, theta: tuple[Any, ...]) -> Array:
        """Return numbers of all blocks."""
        return np.concatenate([d.vector(t) for (_, d), t in zip(self.parts, theta, strict=True)], axis=1)

    def theta_of(self, vector: Array, like: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return parameters of all blocks."""
        sizes = [d.vector(t).shape[1] for (_, d), t in zip(self.parts, like, strict=True)]
        flat = np.split(vector, np.cumsum(sizes)[:-1], axis=1)
        return tuple(d.theta_of(v, t) for (_, d), v, t in zip(self.parts, flat, like, strict=True))
