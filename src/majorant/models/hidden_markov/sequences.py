"""Sequences: rows of several sequences in one table, or a table for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._frames import check_entry_names, column_names, whole_table
from majorant._numbers import briefly
from majorant._validation import check_groups, check_sample_weight, is_missing, refuse_text
from majorant.data.chunks import Source
from majorant.data.units import blocks_of
from majorant.formulas import column_of, is_table
from majorant.models.hidden_markov.emission import Emission
from majorant.models.hidden_markov.times import Times, read_times, times_ahead, warn_of_gaps

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sequences:
    """Which rows follow each other."""

    codes: NDArray[np.intp]  # (n_rows,): number of each row's sequence, in the order of `names`
    order: NDArray[np.intp]  # (n_rows,): the rows, sequence by sequence, in the order of time
    names: NDArray[Any] | None = None  # (n_sequences,): names of the sequences, sorted; None where they have none
    are_given: bool = False  # whether the rows were said to be of sequences
    times: Times | None = None  # times of the rows, where they are known

    def __len__(self) -> int:
        return int(self.codes.max()) + 1 if len(self.codes) else 0

    @property
    def last(self) -> NDArray[np.intp]:
        """The last row of each sequence."""
        sorted_codes = self.codes[self.order]
        return self.order[np.searchsorted(sorted_codes, np.arange(len(self)), side="right") - 1]

    def times_ahead(self, n_steps: int) -> NDArray[Any] | None:
        """Return the times of the rows to come, (sequences, steps); None where they are not known."""
        if self.times is None:
            return None
        of_order = replace(self.times, numbers=self.times.numbers[self.order])
        return times_ahead(of_order, self.codes[self.order], n_steps)

    def refuse_guessed(self, is_grouped: bool) -> None:
        """Refuse rows of which nobody says which are one sequence, where the fit had several."""
        if is_grouped and not self.are_given:
            raise ValueError(
                "the fit had several sequences: say which rows are one by lengths, groups or a list of tables, as in "
                "the fit; lengths=[len(X)] says that all are"
            )

    def sorted(self, X: Any, **beside: Any) -> tuple[Any, dict[str, Any]]:
        """Return rows, and what is beside them, sequence by sequence in order of time, and with that their groups."""
        codes = self.codes[self.order]
        found = {name: _taken(value, self.order) for name, value in beside.items() if value is not None}
        if self.are_given:
            found["groups"] = codes + 1 if self.names is None else self.names[codes]
        return _taken(X, self.order), found


@dataclass(frozen=True)
class SeriesRows:
    """Rows of sequences."""

    x: Array  # (n_rows, n_columns): what the emissions read
    sequences: Sequences
    # (n_rows, 1 + n_covariates): a constant, and standardised covariates of the step into each row
    gating: Array | None = None
    names: Sequence[str] | None = None  # of the columns

    @property
    def in_order(self) -> list[NDArray[Any]]:
        """What the law reads, in order: the covariates, if there are any, and the sequence of each row."""
        order = self.sequences.order
        return [*([] if self.gating is None else [self.gating[order]]), self.sequences.codes[order]]

    @property
    def has_gaps(self) -> bool:
        """Whether cells are missing."""
        return bool(np.isnan(self.x).any())

    def read(self, emissions: Sequence[Emission]) -> Source:
        """Return the columns that a density and a chain read, sequence by sequence."""
        order = self.sequences.order
        columns = [column[order] for one in emissions for column in one.read(self.x, names=self.names)]
        return blocks_of([*columns, *self.in_order], None, self.sequences.codes[order])

    def in_given_order(self, values: Array) -> Array:
        """Return values of rows, sequence by sequence, in the order of X."""
        out = np.empty_like(values)
        out[self.sequences.order] = values
        return out


def _taken(rows: Any, order: NDArray[np.intp]) -> Any:
    """Return the rows of an array or a data frame in another order."""
    if hasattr(rows, "iloc"):
        return rows.iloc[order]
    if hasattr(rows, "column_names"):  # an Arrow table
        return rows.take(order)
    return (rows if hasattr(rows, "shape") else np.asarray(rows))[order]


def sequences_of(X: Any, lengths: Any = None, groups: Any = None, time: Any = None) -> tuple[Any, Sequences]:
    """Return one table, and which of its rows follow each other; by default all, in their order.

    `groups` and `time` may name columns of a data frame, which the table returned does not have.
    """
    X, lengths = one_table(X, lengths)
    X, groups, time = without_columns(X, groups=groups, time=time)
    try:
        n = X.shape[0] if getattr(X, "shape", ()) else len(X)
    except TypeError:  # no rows at all, which is told when they are read
        n = 0
    codes, names = sequence_codes(n, lengths, groups)
    order, times = np.argsort(codes, kind="stable"), None
    if time is not None:
        times, order = in_time(time, codes)
        warn_of_gaps(times, order, codes)
    return X, Sequences(codes, order, names, lengths is not None or groups is not None, times)


def one_table(X: Any, lengths: Any) -> tuple[Any, Any]:
    """Return one table, and the lengths of its sequences, of a table or of a list of tables."""
    return joined(X, lengths) if _is_list_of_tables(X) else (X, lengths)


def without_columns(X: Any, **given: Any) -> tuple[Any, ...]:
    """Return a data frame without the columns that arguments name, and these columns for their names."""
    named = [value for value in given.values() if isinstance(value, str)]
    if not named:
        return (X, *given.values())
    if not is_table(X):
        role = next(role for role, value in given.items() if isinstance(value, str))
        raise TypeError(f"{role}={given[role]!r} names a column, but X is no data frame: give one entry per row")
    import narwhals as nw

    found = [column_of(X, value) if isinstance(value, str) else value for value in given.values()]
    return (nw.from_native(X, eager_only=True).drop(named).to_native(), *found)


def _is_list_of_tables(X: Any) -> bool:
    """Return whether X is a list of tables, or of single columns of unequal lengths."""
    if not isinstance(X, list | tuple) or not len(X):
        return False
    if any(hasattr(one, "columns") for one in X) or any(getattr(one, "ndim", 0) == 2 for one in X):
        return True
    sizes = {-1 if isinstance(one, str) or not hasattr(one, "__len__") else len(one) for one in X}
    if -1 in sizes:
        return False
    if all(hasattr(one, "ndim") for one in X):
        if len(sizes) == 1 and len(X) < max(sizes):
            raise ValueError(
                f"X is a list of {len(X)} arrays of one dimension and equal length, which could be sequences or rows: "
                "give sequences of one column as [a.reshape(-1, 1), ...], rows as numpy.stack(X)"
            )
        return len(sizes) > 1
    return np.ndim(X[0]) == 2


def joined(X: Any, lengths: Any) -> tuple[Any, Any]:
    """Return one table of a list of tables or columns, and the lengths of its sequences."""
    if lengths is not None:
        raise ValueError("lengths cut one table; X is a list of tables, one per sequence: leave lengths out")
    if all(np.ndim(one) == 1 for one in X):
        X = [np.asarray(one).reshape(-1, 1) for one in X]
    X = [whole_table(one) for one in X]
    sizes = [len(one) for one in X]
    columns = [column_names(one) or np.shape(one)[1:] for one in X]
    for i, found in enumerate(columns):
        if found != columns[0]:
            raise ValueError(
                f"the tables of a list need the same columns: table 0 has {columns[0]}, table {i} has {found}"
            )
    if all(hasattr(one, "iloc") for one in X):
        import pandas as pd

        return pd.concat(X, ignore_index=True), sizes
    if all(hasattr(one, "columns") for one in X):
        made = getattr(type(X[0]), "from_pydict", type(X[0]))  # of Arrow
        try:
            return made({name: np.concatenate([np.asarray(one[name]) for one in X]) for name in columns[0]}), sizes
        except (ValueError, TypeError):  # a column of one kind here, of another there
            for one in X:
                refuse_text(one)
            raise
    return np.concatenate([np.asarray(one) for one in X]), sizes


def sequence_codes(n: int, lengths: Any, groups: Any) -> tuple[NDArray[np.intp], NDArray[Any] | None]:
    """Return the sequence number of each of n rows, and the names; by default all are one sequence."""
    if lengths is None and groups is None:
        return np.zeros(n, dtype=np.intp), None
    if groups is not None:
        if lengths is not None:
            raise ValueError("lengths and groups both define the sequences: give one of them")
        return check_groups(groups, n)
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        raise ValueError(f"lengths must be positive whole numbers, one per sequence; got {briefly(lengths)}")
    if sizes.sum() != n:
        raise ValueError(f"lengths add up to {sizes.sum()}; X has {n} rows")
    return np.repeat(np.arange(len(sizes)), sizes), None


def in_time(time: Any, codes: NDArray[np.intp]) -> tuple[Times, NDArray[np.intp]]:
    """Return times, and the rows sequence by sequence in their order."""
    values, n = np.asarray(time), len(codes)
    if values.shape != (n,):
        raise ValueError(f"time must be one time per row, shape ({n},); got shape {values.shape}")
    missing = np.flatnonzero(is_missing(values))
    if len(missing):
        raise ValueError(f"time has none for row {missing[0]}: a row may lack cells, but not its place")
    try:
        times = read_times(values)
    except TypeError as error:
        raise TypeError(f"time cannot be sorted: {error}; use numbers, dates or text") from error
    order = np.lexsort((times.numbers, codes))
    same = np.flatnonzero((np.diff(times.numbers[order]) == 0) & (np.diff(codes[order]) == 0))
    if len(same):
        pairs = np.sort([order[same], order[same + 1]], axis=0)
        one, other = pairs[:, pairs[0].argmin()].tolist()
        raise ValueError(
            f"rows {one} and {other} of one sequence have the same time, {values[one]}: say which rows are one "
            "sequence by groups, or leave time out, which takes rows in their order"
        )
    return times, order


def weights_of_rows(sequence_weight: Any, sequences: Sequences) -> Array | None:
    """Return the weight of each row's sequence."""
    if sequence_weight is None:
        return None
    n_sequences = len(sequences)
    if np.shape(sequence_weight) != (n_sequences,):
        raise ValueError(
            f"sequence_weight must be one number per sequence, shape ({n_sequences},), in the order of their names; "
            f"got shape {np.shape(sequence_weight)}"
        )
    if sequences.names is not None:
        check_entry_names(sequence_weight, sequences.names, "sequence_weight", "sequence", "in sorted order")
    weights = check_sample_weight(sequence_weight, n_sequences, name="sequence_weight", of="sequence")
    return None if weights is None else weights[sequences.codes]
