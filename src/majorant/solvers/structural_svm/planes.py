"""Planes of samples that kernels can list: the native counterpart of `PlaneCache`."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.solvers.structural_svm.problem import Vector

PLANES = 24
"""Places for planes of a sample, to begin with."""

MOST_STEPS = 4
"""Pairwise steps on a sample at a time, at most."""


class NativeProblem(Protocol):
    """A structural problem whose outputs are a label and, in numbers, latent values."""

    cost: NDArray[np.float64]

    @property
    def n_samples(self) -> int: ...

    @property
    def dim(self) -> int: ...

    @property
    def native(self) -> Any:
        """The kernels on the samples: ``sweep`` and ``mixture``."""
        ...

    def weights(self, w: Vector) -> NDArray[np.float64]:
        """A view of weights in the shape that the kernels take."""
        ...

    def highest(self, block: Block, w: Vector) -> tuple[Any, ...]:
        """Height, label and latent values of the highest plane of each sample of a block, and maybe more."""
        ...


class NativePlanes:
    """Planes of every sample with their shares.

    Parameters
    ----------
    problem : NativeProblem
    data : Chunks
        The samples as units.
    shape : tuple of int
        Of the latent values of one output: () for one number.
    """

    def __init__(self, problem: NativeProblem, data: Chunks, shape: tuple[int, ...] = ()) -> None:
        n = problem.n_samples
        self._problem = problem
        self._data = data
        self._label = np.zeros((n, PLANES), dtype=np.int32)
        self._latent = np.zeros((n, PLANES, *shape), dtype=np.int32)
        self._share = np.zeros((n, PLANES))
        self._used = np.zeros(n, dtype=np.int32)
        self._found: tuple[NDArray[np.int32], NDArray[np.int32]] | None = None

    def collect(self, w: Vector, shares: Vector) -> float:
        """The planes that are found come in with the next sweep, but the first one of a sample at once."""
        n, shape = self._problem.n_samples, self._latent.shape[2:]
        label, latent = np.zeros(n, dtype=np.int32), np.zeros((n, *shape), dtype=np.int32)

        def visit(block: Block) -> float:
            height, label[block.at], latent[block.at] = self._problem.highest(block, w)[:3]
            return float(np.sum(shares[block.at] * height))

        value = self._data.map_sum(visit)
        new = (self._used == 0) & (shares > 0)
        self._label[new, 0], self._latent[new, 0], self._share[new, 0], self._used[new] = (
            label[new],
            latent[new],
            1.0,
            1,
        )
        self._found = (label, latent)
        return value

    def covers(self, shares: Vector) -> bool:
        return bool(self._used[shares > 0].all())

    def mixture(self, shares: Vector) -> tuple[Vector, float]:
        problem = self._problem
        features = np.empty(problem.weights(np.empty(problem.dim)).shape)
        planes = self._label, self._latent, self._share, self._used
        loss = problem.native.mixture(0, problem.n_samples, shares, problem.cost, *planes, features)
        return features.ravel(), float(loss)

    def sweep(self, w: Vector, shares: Vector, order: NDArray[np.intp], alpha: float, *, online: bool) -> float:
        found, self._found = self._found, None
        label, latent = (None, None) if found is None else found
        problem = self._problem
        planes = self._label, self._latent, self._share, self._used
        left, lost = problem.native.sweep(
            shares, problem.cost, alpha, label, latent, online, MOST_STEPS, order, *planes, problem.weights(w)
        )
        if lost:
            self._label, self._latent = _doubled(self._label), _doubled(self._latent)
            self._share = _doubled(self._share)
        return float(left)


def _doubled(table: NDArray[Any]) -> NDArray[Any]:
    """The same with as many places again."""
    return np.concatenate([table, np.zeros_like(table)], axis=1)
