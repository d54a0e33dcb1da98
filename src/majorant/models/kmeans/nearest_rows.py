"""What the centres of a k-means fit say of rows: the nearest one, distances, the objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant.data.chunks import Block, Chunks
from majorant.data.directions import unit_rows
from majorant.data.measure import safe_scale
from majorant.solvers.nearest import assign, squared_distances

Metric = Literal["euclidean", "cosine"]

OBJECTIVES: dict[Metric, str] = {"euclidean": "SSE", "cosine": "cosine distance"}
"""What the objective is called, by metric."""


@dataclass(frozen=True)
class FittedCentres:
    """Centres in units in which squared distances do not overflow."""

    centres: NDArray[Any]  # (n_clusters, n_features): times `scale`
    scale: float  # a power of two; one where centres are directions
    metric: Metric  # with "cosine", rows and centres have length one: half a squared distance is one minus the cosine

    @classmethod
    def of(cls, centres: NDArray[Any], metric: Metric) -> Self:
        """Return fitted centres in these units."""
        dtype = np.dtype(np.float32 if centres.dtype == np.float32 else np.float64)
        scale = safe_scale(float(np.abs(centres).max(initial=0.0)), dtype)
        return cls(np.ascontiguousarray(centres.astype(np.float64) * scale, dtype=dtype), scale, metric)

    def rows(self, x: Any, *, first: int = 0, pull_in: bool = False) -> Any:
        """Return rows in the units of the centres; rows too far to be squared are pulled in, or refused."""
        dtype, scale = self.centres.dtype, self.scale
        if self.metric == "cosine":
            x = unit_rows(x, first=first)
        if sparse.issparse(x):
            return sparse.csr_matrix(x if scale == 1.0 else x.astype(np.float64) * scale, dtype=dtype)
        x = np.ascontiguousarray(x if scale == 1.0 else x.astype(np.float64) * scale, dtype=dtype)
        limit = 1e15 if dtype == np.float32 else 1e150  # a square of more might overflow
        farthest = max(float(x.max(initial=0)), -float(x.min(initial=0)))
        if farthest <= limit:
            return x
        if not pull_in:
            raise ValueError(f"X holds {farthest / scale:.0e}, too far from the centres to be squared: rescale X")
        # So far out a row's direction alone decides which centre is nearest.
        size = np.abs(x).max(axis=1, keepdims=True)
        return np.where(size > limit, x / np.maximum(size, limit) * limit, x)

    def nearest(self, X: Any, n_jobs: int | None) -> NDArray[np.int32]:
        """Return the nearest centre of each row; a row's answer does not depend on the other rows."""

        def labels_of(block: Block) -> NDArray[np.int32]:
            labels = np.full(len(block), -1, dtype=np.int32)
            x = self.rows(block.columns[0], first=block.first, pull_in=True)
            assign(x, None, self.centres, labels, with_moments=False)
            return labels

        return Chunks(X, n_jobs=n_jobs).map_rows(labels_of, (), np.int32)

    def distances(self, X: Any, n_jobs: int | None) -> NDArray[Any]:
        """Return the distances of each row to all centres."""

        def distances_of(block: Block) -> NDArray[Any]:
            squares = squared_distances(self.rows(block.columns[0], first=block.first), self.centres)
            return np.asarray(squares / 2 if self.metric == "cosine" else np.sqrt(squares) / self.scale)

        return Chunks(X, n_jobs=n_jobs).map_rows(distances_of, (len(self.centres),), self.centres.dtype)

    def objective(self, data: Chunks) -> float:
        """Return the weighted sum over rows of squared distances, or of cosine distances, to the nearest centre."""

        def visit(block: Block) -> float:
            x = self.rows(block.columns[0], first=block.first)
            moments, _ = assign(x, block.weights, self.centres, np.zeros(len(block), dtype=np.int32))
            assert moments is not None
            return float(moments[:, -1].sum())

        return data.map_sum(visit) / (2.0 if self.metric == "cosine" else self.scale**2)
