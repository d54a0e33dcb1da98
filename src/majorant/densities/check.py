"""Whether a density keeps its word, in a second and without a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.engine.mixture import Array, Bounded, Coordinates, Density, Limited, Mixture, Scored
from majorant.engine.runs import n_runs, taken

RUNS, K = 2, 3
STEPS = 200
MOVES = 20


def check_density(density: Density[Any], *columns: NDArray[Any]) -> None:
    """Check that the methods of a density agree with each other, as the search for a mixture of it relies on.

    Shapes; sums that are linear; steps that climb until no small change is better; rows without a cell; estimates and
    unconstrained numbers, there and back; expected log densities and slopes: whatever the density offers.

    Parameters
    ----------
    density : Density
    *columns : arrays
        What the density reads of some fifty rows that differ, with missing cells where it takes them.

    Raises
    ------
    TypeError, ValueError
        With the method that is wrong, what it should give, and what it gave.

    Examples
    --------
    >>> import numpy as np
    >>> from majorant.densities import Poisson, check_density
    >>> check_density(Poisson(2), np.random.default_rng(0).poisson(3.0, (50, 2)).astype(float))
    """
    Mixture(density, Any, K)  # type: ignore[arg-type]  # refuses what lacks a member
    random = np.random.default_rng(0)
    q = np.moveaxis(random.dirichlet(np.ones(K), (RUNS, len(columns[0]))), 2, 1)
    asked = _Asked(density, Block(0, columns), np.ascontiguousarray(q))
    theta = asked.solved(None, np.ones(RUNS))
    asked.check_table(theta)
    asked.check_sums(theta)
    theta = asked.climbed(theta)
    asked.check_estimates(theta)
    if isinstance(density, Bounded):
        found, value = density.expected_log_density(asked.sums(theta), theta), asked.value(theta)
        asked.must(near(found, value), "expected_log_density", f"be the sum of q log f of each run, {value}", found)
    if isinstance(density, Coordinates):
        asked.check_coordinates(theta, 1e-3 * random.normal(size=(MOVES, *np.shape(density.vector(theta)))))


@dataclass(frozen=True)
class _Asked:
    """A density, rows, and how much of each row every component has."""

    density: Any
    rows: Block
    q: Array

    def must(self, holds: Any, method: str, what: str, got: Any = None) -> None:
        if not holds:
            said = f"{type(self.density).__name__}.{method} must {what}"
            raise ValueError(said if got is None else f"{said}; got {got}")

    def sums(self, theta: Any) -> Array:
        return np.asarray(self.density.statistics(theta, self.rows, self.q))

    def value(self, theta: Any) -> Array:
        return np.asarray(np.sum(self.q * self.density.log_density(theta, self.rows), axis=(1, 2)))

    def solved(self, theta: Any, share: Array) -> Any:
        sums, shape = self.sums(theta), (RUNS, K, self.density.width)
        self.must(sums.shape == shape, "statistics", f"be (runs, components, width), {shape}", sums.shape)
        new = self.density.solve(sums, theta, share)
        self.must(n_runs(new) == RUNS, "solve", f"give arrays that begin with the {RUNS} runs", n_runs(new))
        return new

    def check_table(self, theta: Any) -> None:
        table, shape = np.asarray(self.density.log_density(theta, self.rows)), (RUNS, K, len(self.rows))
        self.must(table.shape == shape, "log_density", f"be (runs, components, rows), {shape}", table.shape)
        self.must(np.isfinite(table).all(), "log_density", "be finite for rows of the fit")
        alone = self.density.log_density(taken(theta, [1]), self.rows)
        self.must(near(alone, table[1:]), "log_density", "give each run what it has alone")
        if all(column.dtype.kind == "f" for column in self.rows.columns):
            empty = Block(0, tuple(np.full_like(column[:1], np.nan) for column in self.rows.columns))
            none = self.density.log_density(theta, empty)
            self.must(not np.any(none), "log_density", "be zero for a row without a cell", none[:, :, 0])

    def check_sums(self, theta: Any) -> None:
        n, sums = len(self.rows), self.sums(theta)
        self.must(near(self.density.statistics(theta, self.rows, 3 * self.q), 3 * sums), "statistics", "be linear in q")
        parts = 0
        for at in (slice(0, n // 2), slice(n // 2, n)):
            block = Block(0, tuple(column[at] for column in self.rows.columns))
            parts = parts + self.density.statistics(theta, block, self.q[:, :, at])
        self.must(near(parts, sums), "statistics", "add up over rows")

    def climbed(self, theta: Any) -> Any:
        """Return where steps end, shortened where the density asks for that."""
        value = self.value(theta)
        for _ in range(STEPS):
            share = 1.0
            new = self.solved(theta, np.full(RUNS, share))
            while not self.density.exact and share > 1e-4 and (self.value(new) < value).any():
                share /= 3
                new = self.solved(theta, np.full(RUNS, share))
            gain = self.value(new) - value
            self.must((gain >= -1e-9 * (1 + np.abs(value))).all(), "solve", "not lower the log density", gain)
            theta, value = new, value + gain
            if (gain <= 1e-14 * np.abs(value)).all():
                break
        return theta

    def check_estimates(self, theta: Any) -> None:
        described = self.density.describe(theta)
        limits = self.density.limits if isinstance(self.density, Limited) else {}
        for name, value in described.items():
            low, high = limits.get(name, (-np.inf, np.inf))
            shape = np.shape(value)
            self.must(shape[:2] == (RUNS, K), "describe", f"give {name!r} as (runs, components, ...)", shape)
            self.must(((value >= low) & (value <= high)).all(), "describe", f"keep {name!r} within its limits", value)
        again = self.density.describe(self.density.recalled({name: value[1] for name, value in described.items()}))
        for name, value in described.items():
            self.must(near(again[name], value[1:]), "recalled", f"give a batch of one run with the same {name!r}")

    def check_coordinates(self, theta: Any, moves: Array) -> None:
        density, value, vector = self.density, self.value(theta), np.asarray(self.density.vector(theta))
        self.must(vector.ndim == 2 and len(vector) == RUNS, "vector", "be (runs, m)", vector.shape)
        self.must(near(self.value(density.theta_of(vector, theta)), value), "theta_of", "undo vector")
        gain = np.max([self.value(density.theta_of(vector + move, theta)) - value for move in moves], axis=0)
        self.must((gain <= 1e-9 * (1 + np.abs(value))).all(), "solve", "end where no small change is better", gain)
        if isinstance(self.density, Scored):
            at = density.theta_of(vector + 100 * moves[0], theta)
            slopes, start = density.score(self.sums(at), at), density.vector(at)
            for j, step in enumerate(1e-5 * np.eye(vector.shape[1])):
                high, low = (self.value(density.theta_of(start + move, at)) for move in (step, -step))
                rise = (high - low) / 2e-5
                self.must(near(slopes[:, j], rise, 1e-5), "score", f"be the slopes by vector, {rise}", slopes[:, j])


def near(a: Any, b: Array, tolerance: float = 1e-9) -> bool:
    """Return whether numbers are equal but for rounding."""
    scale = tolerance * np.max(np.abs(b), initial=1.0)
    return np.shape(a) == np.shape(b) and bool(np.allclose(a, b, rtol=tolerance, atol=scale))
