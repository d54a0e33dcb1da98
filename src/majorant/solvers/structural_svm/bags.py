"""Bags of rows as a structural problem: an output is a label and the row of the bag on which it is scored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant import _kernels
from majorant.data.chunks import Block, Chunks, block_rows
from majorant.solvers.structural_svm.planes import NativePlanes
from majorant.solvers.structural_svm.problem import Cut, Plane, Vector


@dataclass(frozen=True)
class BagSet:
    """Bags of the rows of a stack, with a class each, and one vector of weights a class.

    Attributes
    ----------
    rows : ndarray or CSR matrix of shape (n_rows, n_features)
        C-contiguous, float32 or float64; where sparse, in canonical form.
    starts, counts : ndarray of shape (n_bags,) of int64
        Bag `i` has the rows from ``starts[i]`` on, ``counts[i]`` of them, at least one. Bags may lie in any order.
    codes : ndarray of shape (n_bags,) of int32
        Class of each bag, by number.
    n_classes : int
    first : int
        Classes before it have no weights: their score is 0.
    bias : float
        Value of the constant column behind the others.
    """

    rows: Any
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    codes: NDArray[np.int32]
    n_classes: int
    first: int = 0
    bias: float = 1.0
    native: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rows = self.rows
        entries: tuple[Any, Any, Any] = (rows, None, None)
        if sparse.issparse(rows):
            entries = (rows.data[None, :], rows.indptr.astype(np.int64), rows.indices.astype(np.int32, copy=False))
        native = _kernels.bags(
            *entries, rows.shape[1], self.bias, self.starts, self.counts, self.codes, self.n_classes, self.first
        )
        object.__setattr__(self, "native", native)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the weights: a row for each class, the weight of the constant column last."""
        return self.n_classes, self.rows.shape[1] + 1

    @property
    def width(self) -> int:
        """Rows of the largest bag."""
        return int(self.counts.max())

    def chunks(self, weights: NDArray[np.float64] | None = None, n_jobs: int | None = None) -> Chunks:
        """The bags as units, with their classes as column; a block takes about as many bytes as other blocks do."""
        stored = 12 * self.rows.nnz if sparse.issparse(self.rows) else self.rows.nbytes
        size = stored / max(self.rows.shape[0], 1) * float(self.counts.mean())
        return Chunks(self.codes, weights=weights, n_jobs=n_jobs, rows=block_rows(int(size)))

    def scores(
        self, at: slice, w: Vector, *, own: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.float64] | None]:
        """Scores of some bags.

        Parameters
        ----------
        at : slice
            From which bag to which.
        w : ndarray of shape (n_classes * (n_features + 1),)
        own : bool, default=False
            Whether the third table is wanted.

        Returns
        -------
        best : ndarray of shape (bags, n_classes)
            Highest score of every class.
        where : ndarray of shape (bags, n_classes)
            The first row of the bag that has it.
        own : ndarray of shape (bags, width), or None
            Scores of all rows under the bag's own class, -inf where there is no row.
        """
        n = at.stop - at.start
        best, where = np.empty((n, self.n_classes)), np.empty((n, self.n_classes), dtype=np.int32)
        table = np.empty((n, self.width)) if own else None
        self.native.scores(at.start, at.stop, w.reshape(self.shape), best, where, table)
        return best, where, table

    def sums(
        self,
        at: slice,
        shares: NDArray[np.float64],
        labels: NDArray[np.int32],
        rows: NDArray[np.int32],
        within: NDArray[np.float64] | None = None,
    ) -> Vector:
        """Sum over some bags of joint features, weighted with `shares` and, within a bag, with `within`.

        `labels` and `rows` have one row a bag, or are vectors: one output a bag.
        """
        labels = np.ascontiguousarray(labels.reshape(len(labels), -1))
        rows = np.ascontiguousarray(rows.reshape(len(rows), -1))
        within = np.ones(labels.shape) if within is None else np.ascontiguousarray(within)
        used = np.full(len(labels), labels.shape[1], dtype=np.int32)
        out = np.empty(self.shape)
        no_cost = np.zeros((self.n_classes, self.n_classes))
        self.native.mixture(at.start, at.stop, shares, no_cost, labels, rows, within, used, out)
        return out.ravel()


class Highest(NamedTuple):
    """The highest planes of some bags, arrays of shape (bags,): over all outputs, and those of each bag's own class.

    `own` has the scores of all rows under the bag's own class, shape (bags, width), where they were asked for.
    """

    height: NDArray[np.float64]
    label: NDArray[np.int32]
    row: NDArray[np.int32]
    own_height: NDArray[np.float64]
    own_row: NDArray[np.int32]
    own: NDArray[np.float64] | None


class BagProblem:
    """Loss-augmented inference on bags, and their dual.

    Parameters
    ----------
    bags : BagSet
    cost : ndarray of shape (n_classes, n_classes)
        What a label (second axis) costs where another one is right (first axis); zero on the diagonal.
    n_jobs : int, optional
        Threads of an exact pass.
    """

    def __init__(self, bags: BagSet, cost: NDArray[np.float64], n_jobs: int | None = None) -> None:
        self.bags = bags
        self.cost = np.ascontiguousarray(cost, dtype=np.float64)
        self._data = bags.chunks(n_jobs=n_jobs)

    @property
    def n_samples(self) -> int:
        return len(self.bags)

    @property
    def dim(self) -> int:
        return int(np.prod(self.bags.shape))

    @property
    def native(self) -> Any:
        return self.bags.native

    def weights(self, w: Vector) -> NDArray[np.float64]:
        return w.reshape(self.bags.shape)

    def augmented(self, i: int, w: Vector) -> Plane:
        best, where, _ = self.bags.scores(slice(i, i + 1), w)
        code = int(self.bags.codes[i])
        label = int((best[0] + self.cost[code]).argmax())
        row = int(where[0, label])
        rows = self.bags.rows
        width = self.bags.shape[1]
        if label < self.bags.first:
            return Plane(float(self.cost[code, label]), np.zeros(0), (label, 0), np.zeros(0, dtype=np.intp))
        at = int(self.bags.starts[i]) + row
        if sparse.issparse(rows):
            part = slice(rows.indptr[at], rows.indptr[at + 1])
            columns, values = rows.indices[part], rows.data[part]
        else:
            columns, values = np.arange(width - 1), rows[at]
        features = np.append(values.astype(np.float64), self.bags.bias)
        return Plane(
            float(self.cost[code, label]), features, (label, row), label * width + np.append(columns, width - 1)
        )

    def highest(self, block: Block, w: Vector, *, own: bool = False) -> Highest:
        """The highest plane of each bag of a block; `own`: whether scores of all rows are wanted."""
        codes, rows = block.columns[0], np.arange(len(block))
        best, where, table = self.bags.scores(block.at, w, own=own)
        best += self.cost[codes]  # nothing for the bag's own class
        label = best.argmax(axis=1).astype(np.int32)
        return Highest(best[rows, label], label, where[rows, label], best[rows, codes], where[rows, codes], table)

    def exact_pass(self, w: Vector, shares: Vector) -> Cut:
        def visit(block: Block) -> Vector:
            found = self.highest(block, w)
            c = shares[block.at]
            loss = self.cost[block.columns[0], found.label]
            features = self.bags.sums(block.at, c, found.label, found.row)
            return np.concatenate([features, [np.sum(c * found.height), np.sum(c * loss)]])

        found = self._data.map_sum(visit)
        return Cut(float(found[-2]), found[:-2], float(found[-1]))

    def dual_planes(self) -> NativePlanes:
        return NativePlanes(self, self._data)

    def pooled(self, w: Vector, shares: Vector, beta: float, tau: float) -> tuple[float, Vector]:
        r"""A smooth stand-in for the objective, and its gradient: one pass.

        .. math:: \sum_i c_i \Bigl[\frac1\tau \log\sum_y e^{\tau (s_{iy} + \Delta(y_i, y))} - s_{iy_i}\Bigr], \qquad
                  s_{iy} = \frac1\beta \log \frac{1}{m_i} \sum_z e^{\beta \langle w_y, x_{iz} \rangle}
        """

        def visit(block: Block) -> Vector:
            gradient = np.empty(self.bags.shape)
            at = block.at
            value = self.bags.native.pooled(
                at.start, at.stop, w.reshape(self.bags.shape), shares[at], self.cost, beta, tau, gradient
            )
            return np.append(gradient, value)

        found = self._data.map_sum(visit)
        return float(found[-1]), found[:-1]
