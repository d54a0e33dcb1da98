"""Bags of rows as a structural problem: an output is a label and a row of the bag."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant import _kernels
from majorant.data.chunks import Chunks, block_rows
from majorant.solvers.nearest import row_squares
from majorant.solvers.structural_svm.planes import Codes, Highest, NativeProblem
from majorant.solvers.structural_svm.problem import Plane, Vector


@dataclass(frozen=True)
class BagSet:
    """Bags of rows, each of a class, and weights with a row for each class."""

    rows: Any  # CSR or dense (n_rows, n_features): C-contiguous, float32 or float64; where sparse, in canonical form
    # (n_bags,): Bag `i` has the rows from ``starts[i]`` on, ``counts[i]`` of them, at least one. Bags may lie in any
    # order.
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    codes: NDArray[np.int32]  # (n_bags,): number of the class of each bag
    n_classes: int
    first: int = 0  # first class with weights; the score of those before it is 0
    bias: float = 1.0  # value of the constant feature, which comes last
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
        """Shape of the weights: a row for each class, the weight of the constant feature last."""
        return self.n_classes, self.rows.shape[1] + 1

    @property
    def latent_shape(self) -> tuple[int, ...]:
        return ()

    @property
    def n_states(self) -> int:
        """Rows of the largest bag."""
        return int(self.counts.max())

    @property
    def longest(self) -> float:
        return float(np.sqrt(self._squares().max(initial=0.0) + self.bias**2))

    @property
    def own_rows(self) -> NDArray[Any]:
        """The rows that are in bags, of dense ones."""
        last = np.cumsum(self.counts)
        within = np.arange(int(last[-1])) - np.repeat(last - self.counts, self.counts)
        return np.asarray(self.rows[np.repeat(self.starts, self.counts) + within])

    def mean_square(self, shares: Vector) -> float:
        """Return the mean squared length of rows with their constant feature, averaged within bags and over bags."""
        squares = self._squares()
        bags = zip(self.starts.tolist(), self.counts.tolist(), strict=True)
        means = np.array([float(squares[a : a + m].mean()) for a, m in bags])
        return float(np.sum(shares * means)) + self.bias**2

    def _squares(self) -> Vector:
        """Return the squared length of every row, 0 for padding with NaN."""
        if sparse.issparse(self.rows):
            return np.asarray(row_squares(self.rows), dtype=np.float64)
        return np.asarray(np.nan_to_num(np.einsum("ij,ij->i", self.rows, self.rows, dtype=np.float64)))

    def chunks(self, weights: NDArray[np.float64] | None = None, n_jobs: int | None = None) -> Chunks:
        """Return the bags as units, with their classes as column."""
        stored = 12 * self.rows.nnz if sparse.issparse(self.rows) else self.rows.nbytes
        size = stored / max(self.rows.shape[0], 1) * float(self.counts.mean())
        return Chunks(self.codes, weights=weights, n_jobs=n_jobs, rows=block_rows(int(size)))

    def units(self, shares: Vector, n_jobs: int | None = None) -> Chunks:
        return self.chunks(shares, n_jobs)

    def scores(
        self,
        at: slice,  # the bags to score
        w: Vector,  # (n_classes * (n_features + 1),)
        *,
        own: bool = False,  # whether to return the third table
    ) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.float64] | None]:
        """Score some bags.

        Returns `best` (bags, n_classes), highest score of every class; `where` (bags, n_classes), first row of the bag
        with that score; `own` (bags, n_states), scores of all rows for the bag's own class, -inf where there is no row.
        """
        n = at.stop - at.start
        best, where = np.empty((n, self.n_classes)), np.empty((n, self.n_classes), dtype=np.int32)
        table = np.empty((n, self.n_states)) if own else None
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
        """Sum joint features over some bags, weighted with `shares` and, within a bag, with `within`.

        `labels` and `rows` have one row for each bag, or are vectors of one output for each.
        """
        labels = np.ascontiguousarray(labels.reshape(len(labels), -1))
        rows = np.ascontiguousarray(rows.reshape(len(rows), -1))
        within = np.ones(labels.shape) if within is None else np.ascontiguousarray(within)
        used = np.full(len(labels), labels.shape[1], dtype=np.int32)
        out = np.empty(self.shape)
        no_cost = np.zeros((self.n_classes, self.n_classes))
        self.native.mixture(at.start, at.stop, shares, no_cost, labels, rows, within, used, out)
        return out.ravel()

    def expected_sums(self, at: slice, shares: Vector, q: NDArray[np.float64]) -> Vector:
        rows = np.minimum(np.arange(q.shape[1]), self.counts[at, None] - 1).astype(np.int32)
        labels = np.broadcast_to(self.codes[at, None], q.shape)
        return self.sums(at, shares, labels, rows, q.astype(np.float64, copy=False))


class BagProblem(NativeProblem[BagSet]):
    r"""Loss-augmented inference on bags: a sample's latent value is the row on which it is scored.

    .. math:: E_i(z; w) = \max_{y, z'} \bigl[\langle w_y, x_{iz'} \rangle + \Delta(y_i, y)\bigr] -
              \langle w_{y_i}, x_{iz} \rangle

    In `pooled`, :math:`s_{iy} = \frac1\beta \log \frac{1}{m_i} \sum_z e^{\beta \langle w_y, x_{iz} \rangle}`.
    """

    def augmented(self, i: int, w: Vector) -> Plane:
        bags, code = self.samples, int(self.samples.codes[i])
        (label,), (row,) = (found.tolist() for found in self.highest(slice(i, i + 1), w)[1:])
        loss = float(self.cost[code, label])
        if label < bags.first:
            return Plane(loss, np.zeros(0), (label, 0), np.zeros(0, dtype=np.intp))
        width, at = bags.shape[1], int(bags.starts[i]) + row
        if sparse.issparse(bags.rows):
            part = slice(bags.rows.indptr[at], bags.rows.indptr[at + 1])
            columns, values = bags.rows.indices[part], bags.rows.data[part]
        else:
            columns, values = np.arange(width - 1), bags.rows[at]
        features = np.append(values.astype(np.float64), bags.bias)
        return Plane(loss, features, (label, row), label * width + np.append(columns, width - 1))

    def highest(self, at: slice, w: Vector) -> Highest:
        best, where, _ = self._augmented_scores(at, w)
        rows, label = np.arange(len(best)), best.argmax(axis=1).astype(np.int32)
        return Highest(best[rows, label], label, where[rows, label])

    def energies(self, at: slice, w: Vector) -> NDArray[np.float64]:
        best, _, own = self._augmented_scores(at, w, own=True)
        return np.asarray(best.max(axis=1)[:, None] - own)

    def tightest(self, at: slice, w: Vector, shares: Vector) -> tuple[float, Codes]:
        best, where, _ = self._augmented_scores(at, w)
        rows, codes = np.arange(len(best)), self.samples.codes[at]
        return float(shares @ (best.max(axis=1) - best[rows, codes])), where[rows, codes]

    def scored(self, at: slice, w: Vector, labels: Codes | None) -> tuple[NDArray[np.float64], Codes]:
        best, where, _ = self.samples.scores(at, w)
        labels = best.argmax(axis=1).astype(np.int32) if labels is None else labels
        # A class without weights has no row of its own: its row is that of the first class with weights.
        return best, where[np.arange(len(best)), np.maximum(labels, self.samples.first)]

    def _augmented_scores(self, at: slice, w: Vector, *, own: bool = False) -> tuple[NDArray[np.float64], Codes, Any]:
        """Return the result of `BagSet.scores` with the costs added, which are zero for a bag's own class."""
        best, where, table = self.samples.scores(at, w, own=own)
        best += self.cost[self.samples.codes[at]]
        return best, where, table
