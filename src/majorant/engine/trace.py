"""The history of a fit, one row for each iteration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._frames import data_frame

COLUMNS = ("objective", "bound", "gap", "budget", "used", "blend", "changed", "price", "exploring")


class Trace:
    """The history of a fit, one row per iteration.

    Its columns are the following; ``trace["objective"]`` is an array, NaN where an iteration has no value:

    objective
        ``F(theta_t)``, the objective that is minimised.
    bound
        ``b_t(theta_t)``, the value of the bound that `theta_t` minimises. It never rises while exploring, nor in the
        descent after that, which may start from an earlier iterate.
    gap
        ``bound - objective``, at least zero.
    budget, used
        The largest excess allowed for the next bound, and its actual excess.
    blend
        Share of the proposed bound in the next one; the rest is the tightest bound.
    changed
        Share of units whose latent value in the next bound is not the tightest bound's.
    price
        Price of a unit of excess when the next bound was proposed (1 / energy).
    exploring
        1 while a bound policy draws bounds, 0 when the tightest bound is used.

    Parameters
    ----------
    rows : list of dict, optional
        Values of the iterations so far.
    """

    def __init__(self, rows: list[dict[str, float]] | None = None) -> None:
        self._rows: list[dict[str, float]] = [] if rows is None else rows

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return COLUMNS

    def add(self, **row: float) -> None:
        """Append the row of one iteration."""
        unknown = set(row) - set(COLUMNS)
        if unknown:
            raise ValueError(f"a trace has no column {sorted(unknown)}; its columns are {list(COLUMNS)}")
        self._rows.append(row)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Mapping[str, float]]:
        return iter(self._rows)

    def __getitem__(self, column: str) -> NDArray[np.float64]:
        if column not in COLUMNS:
            raise KeyError(f"a trace has no column {column!r}; its columns are {list(COLUMNS)}")
        return np.array([row.get(column, np.nan) for row in self._rows], dtype=np.float64)

    def __repr__(self) -> str:
        if not self._rows:
            return "Trace(0 iterations)"
        first, last = self["objective"][[0, -1]]
        return f"Trace({len(self)} iterations, objective {first:.6g} to {last:.6g})"

    def scaled(self, unit: float) -> Trace:
        """Return the trace with all objectives multiplied by `unit`."""
        factor = dict.fromkeys(("objective", "bound", "gap", "budget", "used"), unit) | {"price": 1 / unit}
        return Trace([{name: value * factor.get(name, 1.0) for name, value in row.items()} for row in self._rows])

    def shifted(self, constant: float) -> Trace:
        """Return the trace with a constant added to all objectives."""
        moved = {"objective", "bound"}
        return Trace([{name: v + constant * (name in moved) for name, v in row.items()} for row in self._rows])

    def to_frame(self) -> Any:
        """Return the trace as a data frame (pandas if installed, otherwise polars)."""
        return data_frame({name: self[name] for name in COLUMNS})

    def to_state(self) -> dict[str, NDArray[np.float64]]:
        """Return the columns as arrays, for saving."""
        return {name: self[name] for name in COLUMNS}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Trace:
        """Build a trace from the values of `to_state`."""
        columns = {name: np.asarray(state[name], dtype=np.float64) for name in COLUMNS}
        lengths = {len(c) for c in columns.values()}
        if len(lengths) != 1:
            raise ValueError(f"the columns of a trace must have one length; got {sorted(lengths)}")
        return cls(
            [{name: float(c[i]) for name, c in columns.items() if not np.isnan(c[i])} for i in range(lengths.pop())]
        )


def touching(objectives: Iterable[float]) -> Trace:
    """Return the trace of EM, whose bounds touch."""
    return Trace([{"objective": v, "bound": v, "gap": 0.0, "exploring": 0.0} for v in objectives])
