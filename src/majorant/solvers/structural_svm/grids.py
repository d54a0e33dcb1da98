"""Images of regions as a structural problem: an output is a label and a part for every region."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.data.chunks import Block, Chunks, block_rows
from majorant.solvers.structural_svm.planes import NativePlanes
from majorant.solvers.structural_svm.problem import Cut, Plane, Vector

Codes = NDArray[np.int32]


@dataclass(frozen=True)
class GridSet:
    """Images of equally many regions, with a class each, and a model of parts.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_features)
        C-contiguous, float32 or float64.
    starts : ndarray of shape (n_images,) of int64
        Image `i` has the rows from ``starts[i]`` on. Images may lie in any order.
    n_regions : int
        Rows of an image.
    codes : ndarray of shape (n_images,) of int32
        Class of each image, by number.
    n_classes, n_parts : int
    scale : float
        Value of the feature of an entry of the table.
    """

    rows: NDArray[Any]
    starts: NDArray[np.int64]
    n_regions: int
    codes: Codes
    n_classes: int
    n_parts: int
    scale: float = 1.0
    native: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        native = _kernels.grids(
            self.rows, self.starts, self.n_regions, self.codes, self.n_classes, self.n_parts, self.scale
        )
        object.__setattr__(self, "native", native)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def dim(self) -> int:
        """Weights: the filters (n_parts, n_features) and, behind them, the table (n_classes, n_regions, n_parts)."""
        return int(self.n_parts * (self.rows.shape[1] + self.n_classes * self.n_regions))

    def split(self, w: Vector) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Filters and table, as views of the weights."""
        n = self.n_parts * self.rows.shape[1]
        return w[:n].reshape(self.n_parts, -1), w[n:].reshape(self.n_classes, self.n_regions, self.n_parts)

    @property
    def block_images(self) -> int:
        """Images of a block, about as many bytes as other blocks take."""
        return block_rows(self.n_regions * (self.rows.shape[1] * self.rows.itemsize + 8 * self.n_parts))

    def chunks(self, n_jobs: int | None = None) -> Chunks:
        """The images as units, with their classes as column."""
        return Chunks(self.codes, n_jobs=n_jobs, rows=self.block_images)

    def regions(self, weights: NDArray[np.float64], n_jobs: int | None = None) -> Chunks:
        """The regions as units, those of an image together, with the weights and classes of their images."""
        m = self.n_regions
        return Chunks(
            np.repeat(self.codes, m), weights=np.repeat(weights, m), n_jobs=n_jobs, rows=m * self.block_images
        )

    def infer(
        self, at: slice, w: Vector, cost: NDArray[np.float64], label: Codes | None = None, *, own: bool = False
    ) -> tuple[NDArray[np.float64], Codes, Codes, NDArray[np.float64] | None]:
        """Scores and best parts of some images.

        Parameters
        ----------
        at : slice
            From which image to which.
        w : ndarray of shape (dim,)
        cost : ndarray of shape (n_classes, n_classes)
            What is added to the scores, by the image's class.
        label : ndarray of shape (images,) of int32, optional
            The class whose parts are wanted; by default the one of highest score and cost.
        own : bool, default=False
            Whether the last table is wanted.

        Returns
        -------
        best : ndarray of shape (images, n_classes)
            Score of every class, without cost.
        label : ndarray of shape (images,)
        parts : ndarray of shape (images, n_regions)
            The first best parts under `label`.
        own : ndarray of shape (images * n_regions, n_parts), or None
            What each part adds to the score of the image's class.
        """
        n = at.stop - at.start
        best, parts = np.empty((n, self.n_classes)), np.empty((n, self.n_regions), dtype=np.int32)
        found = np.empty(n, dtype=np.int32) if label is None else label
        table = np.empty((n * self.n_regions, self.n_parts)) if own else None
        self.native.infer(at.start, at.stop, w, cost, label is not None, best, found, parts, table)
        return best, found, parts, table

    def sums(self, at: slice, shares: Vector, labels: Codes, parts: Codes) -> Vector:
        """Joint features of some images, each with a label and a part for every region, summed with `shares`."""
        n = len(labels)
        out, no_cost = np.empty(self.dim), np.zeros((self.n_classes, self.n_classes))
        one = np.ones(n, dtype=np.int32)
        planes = np.ascontiguousarray(labels[:, None]), np.ascontiguousarray(parts[:, None]), np.ones((n, 1)), one
        self.native.mixture(at.start, at.stop, shares, no_cost, *planes, out)
        return out


class GridProblem:
    """Loss-augmented inference on images, and their dual.

    Parameters
    ----------
    grids : GridSet
    cost : ndarray of shape (n_classes, n_classes)
        What a label (second axis) costs where another one is right (first axis); zero on the diagonal.
    n_jobs : int, optional
        Threads of an exact pass.
    """

    def __init__(self, grids: GridSet, cost: NDArray[np.float64], n_jobs: int | None = None) -> None:
        self.grids = grids
        self.cost = np.ascontiguousarray(cost, dtype=np.float64)
        self._data = grids.chunks(n_jobs)

    @property
    def n_samples(self) -> int:
        return len(self.grids)

    @property
    def dim(self) -> int:
        return self.grids.dim

    @property
    def native(self) -> Any:
        return self.grids.native

    def weights(self, w: Vector) -> NDArray[np.float64]:
        return w

    def augmented(self, i: int, w: Vector) -> Plane:
        grids = self.grids
        code = int(grids.codes[i])
        at = slice(i, i + 1)
        _, label, parts, _ = grids.infer(at, w, self.cost)
        features = grids.sums(at, np.ones(1), label, parts)
        used = np.flatnonzero(features)
        return Plane(float(self.cost[code, label[0]]), features[used], (int(label[0]), parts.tobytes()), used)

    def highest(self, block: Block, w: Vector) -> tuple[NDArray[np.float64], Codes, Codes]:
        """The highest plane of each image of a block: its height, label and parts."""
        best, label, parts, _ = self.grids.infer(block.at, w, self.cost)
        return best[np.arange(len(label)), label] + self.cost[block.columns[0], label], label, parts

    def exact_pass(self, w: Vector, shares: Vector) -> Cut:
        def visit(block: Block) -> Vector:
            height, label, parts = self.highest(block, w)
            c = shares[block.at]
            loss = self.cost[block.columns[0], label]
            return np.concatenate([self.grids.sums(block.at, c, label, parts), [np.sum(c * height), np.sum(c * loss)]])

        found = self._data.map_sum(visit)
        return Cut(float(found[-2]), found[:-2], float(found[-1]))

    def dual_planes(self) -> NativePlanes:
        return NativePlanes(self, self._data, (self.grids.n_regions,))

    def pooled(self, w: Vector, shares: Vector, beta: float, tau: float) -> tuple[float, Vector]:
        r"""A smooth stand-in for the objective, and its gradient: one pass.

        .. math:: \sum_i c_i \Bigl[\frac1\tau \log\sum_y e^{\tau (s_{iy} + \Delta(y_i, y))} - s_{iy_i}\Bigr], \qquad
                  s_{iy} = \sum_r \frac1\beta \log \frac1P \sum_p e^{\beta (\langle A_p, x_{ir} \rangle + B_{yrp})}
        """

        def visit(block: Block) -> Vector:
            gradient, at = np.empty(self.dim), block.at
            value = self.native.pooled(at.start, at.stop, w, shares[at], self.cost, beta, tau, gradient)
            return np.append(gradient, value)

        found = self._data.map_sum(visit)
        return float(found[-1]), found[:-1]
