"""Sequences that are read part by part, each of them whole: where they are, what they hold, a sample for the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from majorant._validation import check_groups
from majorant.data.chunks import Block, Chunks, Mapped
from majorant.data.rows import refuse_non_finite, unobserved_message
from majorant.data.storage import StoredRows, is_dask
from majorant.engine.mixture import Array
from majorant.models.hidden_markov.emission import Emission
from majorant.models.hidden_markov.emissions import CategoricalEmission
from majorant.models.hidden_markov.lags import with_lags
from majorant.models.hidden_markov.sequences import Sequences, SeriesRows, sequence_codes, weights_of_rows
from majorant.models.mixture_rows import refuse_torn_groups

SAMPLED = 100_000
"""Rows of whole sequences on which the search for a model of streamed ones goes, if only roughly."""


@dataclass(frozen=True)
class SeriesStream:
    """Rows of sequences that are read part by part."""

    source: StoredRows  # blocks of whole sequences: their rows, and the number of each row's sequence
    sequences: Sequences
    lags: int  # own lags of the first column

    @property
    def x(self) -> NoReturn:
        """Raise TypeError: the rows are not in memory."""
        raise TypeError("this needs rows in memory, and X is read part by part: give it one sequence, or a few")

    @cached_property
    def has_gaps(self) -> bool:
        """Whether cells are missing."""
        return bool(Chunks(self.source).map_sum(lambda block: int(np.isnan(block.columns[0]).any())))

    def read(self, emissions: Sequence[Emission]) -> Mapped:
        """Return the columns that a density and a chain read."""
        lags = self.lags

        def columns(block: Block) -> tuple[Any, ...]:
            x = block.columns[0].astype(np.float64)
            codes = np.unique(block.columns[-1], return_inverse=True)[1].reshape(-1)  # names may be any numbers
            x = with_lags(x, Sequences(codes, np.arange(len(x))), lags)
            return (*(column for one in emissions for column in one.read(x, block.first)), codes)

        return Mapped(self.source, columns)

    def in_given_order(self, values: Array) -> Array:
        """Return values of rows in the order of X, which is that of the stream."""
        return values

    def looked_at(self, emissions: Sequence[Emission], names: Sequence[str] | None) -> tuple[list[Array], list[bool]]:
        """Check all rows; return the values of columns, but for categories their ends, and whether some cells lack."""
        coded = [isinstance(one, CategoricalEmission) for one in emissions for _ in range(one.n_features)]

        def look(block: Block) -> list[tuple[Any, ...]]:
            x, codes = block.columns[0], block.columns[-1]
            refuse_non_finite(x, block.first, True)
            for one in emissions:
                one.check(x, block.first, names)
            given = zip((c[~np.isnan(c)] for c in x.T), coded, strict=False)
            known = [np.unique(c) if own or not len(c) else np.array([c.min(), c.max()]) for c, own in given]
            w = np.ones(len(x)) if block.weights is None else block.weights
            differs = np.flatnonzero((np.diff(codes) == 0) & (np.diff(w) != 0))
            if len(differs):
                row = block.first + int(differs[0])
                raise ValueError(
                    f"rows {row} and {row + 1} of one sequence have different weights: whole sequences are weighted"
                )
            missing = np.isnan(x)
            return [(block.chunk, np.unique(codes), missing.any(axis=0), (~missing[w > 0]).any(axis=0), known)]

        found = Chunks(self.source).map_sum(look)
        chunks, codes, gaps, there, levels = zip(*found, strict=True)
        refuse_torn_groups(np.concatenate(codes), np.repeat(chunks, list(map(len, codes))), "sequence")
        if not np.any(there, axis=0).all():
            raise ValueError(unobserved_message(~np.any(there, axis=0), names))
        return [np.unique(np.concatenate(own)) for own in zip(*levels, strict=True)], np.any(gaps, axis=0).tolist()

    def sample(self, seed: int) -> tuple[SeriesRows, Array]:
        """Return whole sequences drawn uniformly, with own lags, and the weight of each."""
        codes = self.sequences.codes
        sizes, given = np.bincount(codes), self.source.weights
        order = np.random.default_rng(seed).permutation(len(sizes))
        if given is not None:
            order = order[np.bincount(codes, given)[order] > 0]
        n_taken = max(1, int(np.searchsorted(np.cumsum(sizes[order]), SAMPLED, side="right")))
        chosen = np.isin(codes, order[:n_taken])

        def some(block: Block) -> list[tuple[Array, Array]]:
            at = chosen[block.at]
            w = np.ones(len(block)) if block.weights is None else block.weights
            return [(block.columns[0][at].astype(np.float64), w[at])]

        x, w = map(np.concatenate, zip(*Chunks(self.source).map_sum(some), strict=True))
        first, own = np.unique(codes[chosen], return_index=True, return_inverse=True)[1:]
        sequences = Sequences(own.astype(np.intp), np.argsort(own, kind="stable"), None, True)
        return SeriesRows(with_lags(x, sequences, self.lags), sequences), w[first]


def is_stream(X: Any) -> bool:
    """Return whether rows are read part by part; memory-mapped arrays are taken as arrays."""
    return isinstance(X, Chunks) or is_dask(X)


def series_stream(
    X: Any, source: StoredRows, lengths: Any, groups: Any, time: Any, sequence_weight: Any, lags: int
) -> SeriesStream:
    """Return sequences of rows that are read part by part."""
    if time is not None:
        raise TypeError("time needs rows in memory: the rows of a stream are in the order of time, so leave it out")
    if lengths is None and groups is None:
        raise ValueError(
            "which rows of a stream are one sequence? Give lengths, or groups, the sequence of each row; "
            "lengths=[n_rows] says that all are"
        )
    if isinstance(groups, str):
        raise TypeError(f"groups={groups!r} names a column of a data frame in memory: give one number per row")
    if is_dask(groups):
        source.put_beside("groups", groups)
        codes, names = check_groups(source.all_beside("groups"), source.n_units)
    else:
        codes, found = sequence_codes(source.n_units, lengths, groups)
        names = np.arange(codes.max() + 1) if found is None else found
        source.put_beside("groups", _beside(X, codes))
    heads = np.flatnonzero(np.diff(codes, prepend=-1))
    refuse_torn_groups(names[codes[heads]], heads, "sequence", "rows")
    sequences = Sequences(codes, np.argsort(codes, kind="stable"), None if lengths is not None else names, True)
    weights = weights_of_rows(sequence_weight, sequences)
    source.weigh(None if weights is None else _beside(X, weights))
    return SeriesStream(source, sequences, lags)


def _beside(X: Any, column: NDArray[Any]) -> Any:
    """Return one number per row as it may go with X."""
    if not is_dask(X):
        return column
    import dask.array

    return dask.array.from_array(column.astype(np.float64), chunks=-1)
