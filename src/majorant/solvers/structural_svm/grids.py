"""Images of regions as a structural problem: an output is a label and a part for every region."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.data.chunks import Chunks, block_rows
from majorant.solvers.structural_svm.planes import Codes, Highest, NativeProblem
from majorant.solvers.structural_svm.problem import Plane, Vector


@dataclass(frozen=True)
class GridSet:
    """Images of equally many regions, each of a class, and a model of parts."""

    rows: NDArray[Any]  # (n_rows, n_features): C-contiguous, float32 or float64
    starts: NDArray[np.int64]  # (n_images,): Image `i` has the rows from ``starts[i]`` on. Images may lie in any order.
    n_regions: int  # rows of an image
    codes: Codes  # (n_images,): number of the class of each image
    n_classes: int
    n_parts: int
    scale: float = 1.0  # factor of the table in scores
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
        """Number of weights: filters (n_parts, n_features), then the table (n_classes, n_regions, n_parts)."""
        return int(self.n_parts * (self.rows.shape[1] + self.n_classes * self.n_regions))

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.dim,)

    @property
    def latent_shape(self) -> tuple[int, ...]:
        return (self.n_regions,)

    @property
    def n_states(self) -> int:
        return self.n_parts

    @property
    def longest(self) -> float:
        row = float(np.sqrt(np.einsum("ij,ij->i", self.rows, self.rows, dtype=np.float64).max(initial=0.0)))
        return float(self.n_regions * np.hypot(row, self.scale))

    def split(self, w: Vector) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the filters and table, as views of the weights."""
        n = self.n_parts * self.rows.shape[1]
        return w[:n].reshape(self.n_parts, -1), w[n:].reshape(self.n_classes, self.n_regions, self.n_parts)

    @property
    def block_images(self) -> int:
        """Number of images in a block."""
        return block_rows(self.n_regions * (self.rows.shape[1] * self.rows.itemsize + 8 * self.n_parts))

    def chunks(self, *, n_jobs: int | None = None) -> Chunks:
        """Return the images as units, with their classes as column."""
        return Chunks(self.codes, n_jobs=n_jobs, rows=self.block_images)

    def units(self, shares: Vector, n_jobs: int | None = None) -> Chunks:
        """Return the regions as units, those of an image together, with the shares and classes of their images."""
        m = self.n_regions
        return Chunks(np.repeat(self.codes, m), weights=np.repeat(shares, m), n_jobs=n_jobs, rows=m * self.block_images)

    def infer(
        self, at: slice, w: Vector, cost: NDArray[np.float64], label: Codes | None = None, *, own: bool = False
    ) -> tuple[NDArray[np.float64], Codes, Codes, NDArray[np.float64] | None]:
        """Score some images and find their best parts.

        Parameters
        ----------
        at : slice
            The images to score.
        w : ndarray of shape (dim,)
        cost : ndarray of shape (n_classes, n_classes)
            Added to the scores to choose a label, by the image's class.
        label : ndarray of shape (images,) of int32, optional
            Class whose best parts to return; by default that of highest score and cost.
        own : bool, default=False
            Whether to return the last table.

        Returns
        -------
        best : ndarray of shape (images, n_classes)
            Score of every class, without cost.
        label : ndarray of shape (images,)
        parts : ndarray of shape (images, n_regions)
            Best parts for `label`, the first of equal ones.
        own : ndarray of shape (images * n_regions, n_parts), or None
            Contribution of each part to the score of the image's class.
        """
        n = at.stop - at.start
        best, parts = np.empty((n, self.n_classes)), np.empty((n, self.n_regions), dtype=np.int32)
        found = np.empty(n, dtype=np.int32) if label is None else label
        table = np.empty((n * self.n_regions, self.n_parts)) if own else None
        self.native.infer(at.start, at.stop, w, cost, label is not None, best, found, parts, table)
        return best, found, parts, table

    def sums(self, at: slice, shares: Vector, labels: Codes, parts: Codes) -> Vector:
        """Sum joint features over some images, each with a label and a part of every region, weighted with `shares`."""
        n = len(labels)
        out, no_cost = np.empty(self.dim), np.zeros((self.n_classes, self.n_classes))
        one = np.ones(n, dtype=np.int32)
        planes = np.ascontiguousarray(labels[:, None]), np.ascontiguousarray(parts[:, None]), np.ones((n, 1)), one
        self.native.mixture(at.start, at.stop, shares, no_cost, *planes, out)
        return out

    def expected_sums(self, at: slice, shares: Vector, q: NDArray[np.float64]) -> Vector:
        out, m, codes = np.zeros(self.dim), self.n_regions, self.codes[at]
        filters, table = self.split(out)
        weighted = (np.repeat(shares, m)[:, None] * q).reshape(len(codes), m, -1)
        for i, start in enumerate(self.starts[at].tolist()):
            # Not a matrix product: the sums of one depend on the number of threads that BLAS may use.
            filters += np.einsum("rp,rd->pd", weighted[i], self.rows[start : start + m])
            table[codes[i]] += self.scale * weighted[i]
        return out


class GridProblem(NativeProblem[GridSet]):
    r"""Loss-augmented inference on images: the latent values of an image are the parts of its regions.

    .. math:: E_{ir}(p; A, B) = \frac1R \max_y \Bigl[\sum_{r'} \max_{p'} \bigl(\langle A_{p'}, x_{ir'} \rangle +
              B_{yr'p'}\bigr) + \Delta(y_i, y)\Bigr] - \langle A_p, x_{ir} \rangle - B_{y_i r p}

    Regions are the units, so that preferences may name them. In `pooled`,
    :math:`s_{iy} = \sum_r \frac1\beta \log \frac1P \sum_p e^{\beta (\langle A_p, x_{ir} \rangle + B_{yrp})}`.
    """

    def augmented(self, i: int, w: Vector) -> Plane:
        grids, at = self.samples, slice(i, i + 1)
        _, label, parts = self.highest(at, w)
        features = grids.sums(at, np.ones(1), label, parts)
        used = np.flatnonzero(features)
        loss = float(self.cost[int(grids.codes[i]), label[0]])
        return Plane(loss, features[used], (int(label[0]), parts.tobytes()), used)

    def highest(self, at: slice, w: Vector) -> Highest:
        best, label, parts, _ = self.samples.infer(at, w, self.cost)
        return Highest(best[np.arange(len(label)), label] + self.cost[self.samples.codes[at], label], label, parts)

    def energies(self, at: slice, w: Vector) -> NDArray[np.float64]:
        best, label, _, own = self.samples.infer(at, w, self.cost, own=True)
        assert own is not None
        m = self.samples.n_regions
        height = best[np.arange(len(label)), label] + self.cost[self.samples.codes[at], label]
        return np.asarray(np.repeat(height / m, m)[:, None] - own)

    def tightest(self, at: slice, w: Vector, shares: Vector) -> tuple[float, Codes]:
        codes = self.samples.codes[at]
        best, _, parts, _ = self.samples.infer(at, w, self.cost, codes)
        loss = (best + self.cost[codes]).max(axis=1) - best[np.arange(len(codes)), codes]
        return float(np.sum(shares * loss)), parts

    def scored(self, at: slice, w: Vector, labels: Codes | None) -> tuple[NDArray[np.float64], Codes]:
        best, _, parts, _ = self.samples.infer(at, w, self.cost, labels)
        return best, parts
