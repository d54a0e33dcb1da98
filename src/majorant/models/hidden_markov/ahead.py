"""The rows to come that a forecast is given: the sequence of each, their order in time, and their columns by name."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._validation import levels_to_user
from majorant.engine.mixture import Array
from majorant.formulas import column_of
from majorant.formulas.columns import table_of
from majorant.formulas.language import check_column
from majorant.models.hidden_markov.sequences import Sequences, in_time
from majorant.models.hidden_markov.times import long_steps, read_times
from majorant.summary import counted


def order_ahead(
    future: Any, sequences: Sequences, groups: str | None, time: str | None, before: Sequence[Any] | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the sequence of each row to come, and these rows sequence by sequence in order of time.

    Parameters
    ----------
    sequences : Sequences
        Of the rows before.
    groups, time : str or None
        Columns of `future`, where it has them.
    before : sequence or None
        Times of the rows before.
    """
    codes = _codes_ahead(future, sequences, groups)
    sizes = np.bincount(codes, minlength=len(sequences))
    if sizes.min() != sizes.max():
        raise ValueError(
            f"future must have as many rows for each sequence; got from {sizes.min()} to {sizes.max()} of "
            f"{len(sequences)} sequences"
        )
    if time not in future.columns:
        return codes, np.argsort(codes, kind="stable")
    times = future[time].to_list()
    _, order = in_time(times, codes)
    if before is not None:
        both = np.concatenate([sequences.codes, codes])
        said = check_later(read_times([*before, *times]).numbers, both, len(before), times)
        if said is not None:
            warnings.warn(said, UserWarning, stacklevel=levels_to_user())
    return codes, order


def check_later(times: Array, codes: NDArray[np.intp], n: int, shown: Sequence[Any]) -> str | None:
    """Return a sentence on long steps of time into rows to come, which follow n rows; None where there are none.

    Parameters
    ----------
    times : ndarray of shape (n_rows,)
        In equal units.
    codes : ndarray of shape (n_rows,)
        Sequences.
    n : int
        Number of rows before.
    shown : sequence
        Times of the rows to come as they were given.
    """
    last = np.full(int(codes.max()) + 1, times.min())
    np.maximum.at(last, codes[:n], times[:n])
    early = np.flatnonzero(times[n:] <= last[codes[n:]])
    if len(early):
        raise ValueError(
            f"the rows to come must be later than the last row of their sequence; one has the time {shown[early[0]]}"
        )
    order = np.lexsort((times, codes))
    inner, steps, long = long_steps(times[order], codes[order])
    long = long[order[inner[long] + 1] >= n]
    if not len(long):
        return None
    are = "is" if len(long) == 1 else "are"
    return (
        f"{counted(len(long), 'step')} of time into the rows to come {are} longer than the usual one, up to "
        f"{steps[long].max() / np.median(steps):.3g} times as long. Every row is taken for one step: give a row for "
        "every time to come."
    )


def named_ahead(X: Any, future: Any, names: Sequence[str], sequences: Sequences, rows: Mapping[str, Any]) -> Array:
    """Return columns of the rows to come by name, sequence by sequence in order of time."""
    table = table_of(future)
    for name in names:
        check_column(name, table.columns)
    groups, time = (rows[role] if isinstance(rows.get(role), str) else None for role in ("groups", "time"))
    _, order = order_ahead(table, sequences, groups, time, None if time is None else column_of(X, time).tolist())
    return np.array([table[name].to_numpy() for name in names], dtype=np.float64).T[order]


def given_times(
    future: Any, sequences: Sequences, groups: Any, time: Any, *, otherwise: NDArray[Any] | None
) -> NDArray[Any] | None:
    """Return the times of the rows to come, (sequences, steps), where their table has them."""
    table = table_of(future)
    if not isinstance(time, str) or time not in table.columns:
        return otherwise
    times = table[time].to_numpy()
    _, order = in_time(times, _codes_ahead(table, sequences, groups))
    return np.asarray(times[order].reshape(len(sequences), -1))


def others_ahead(future: Any, names: Sequence[str], n_sequences: int, n_steps: int) -> Array:
    """Return other columns of the rows to come of a regression, (sequences, steps, columns)."""
    if future is None and names:
        told = ", ".join(names)
        raise TypeError(f"the rows to come of a regression need its other columns ({told}): give them as future")
    n, width = n_sequences * n_steps, len(names)
    table = np.zeros((n, 0)) if future is None else np.asarray(future, dtype=np.float64)
    if table.shape != (n, width) or not np.isfinite(table).all():
        raise ValueError(
            f"future must have {counted(width, 'column')} of finite numbers, and as many rows for each of "
            f"{counted(n_sequences, 'sequence')}; got shape {table.shape}"
        )
    return table.reshape(n_sequences, n_steps, width)


def _codes_ahead(future: Any, sequences: Sequences, groups: str | None) -> NDArray[np.intp]:
    """Return the sequence of each row to come."""
    if sequences.names is None or groups not in future.columns:
        return np.repeat(np.arange(len(sequences)), -(-len(future) // len(sequences)))[: len(future)]
    given = np.asarray(future[groups].to_list())
    found = np.minimum(np.searchsorted(sequences.names, given), len(sequences) - 1)
    unknown = np.flatnonzero(sequences.names[found] != given)
    if len(unknown):
        raise ValueError(f"future has rows of the sequence {given[unknown[0]]}, which the table does not have")
    return found.astype(np.intp)
