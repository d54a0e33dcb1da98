"""Structural problems on kernels: loss-augmented inference, exact passes, and cached planes of all samples."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.solvers.structural_svm.problem import Cut, Plane, Vector

Codes = NDArray[np.int32]

PLANES = 24
"""Initial capacity, in planes per sample."""

MOST_STEPS = 4
"""Largest number of pairwise steps on a sample at a time."""


class NativeSamples(Protocol):
    """Samples of known classes whose outputs (a label and latent values, as integers) are scored by kernels."""

    @property
    def codes(self) -> Codes:
        """Number of the class of each sample."""
        ...

    @property
    def native(self) -> Any:
        """Kernels on the samples: ``sweep``, ``mixture`` and ``pooled``."""
        ...

    def __len__(self) -> int: ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape in which kernels take the weights."""
        ...

    @property
    def latent_shape(self) -> tuple[int, ...]:
        """Shape of the latent values of one sample, () for a single one."""
        ...

    @property
    def n_states(self) -> int:
        """Largest number of states of a latent value."""
        ...

    @property
    def longest(self) -> float:
        """Upper bound on the length of joint features."""
        ...

    def chunks(self, *, n_jobs: int | None = None) -> Chunks:
        """Return the samples as units, with their classes as column."""
        ...

    def units(self, shares: Vector, n_jobs: int | None = None) -> Chunks:
        """Return the latent values as units, each with the share of its sample."""
        ...

    def sums(self, at: slice, shares: Vector, labels: Codes, latent: Codes) -> Vector:
        """Sum joint features over some samples, weighted with `shares`."""
        ...

    def expected_sums(self, at: slice, shares: Vector, q: NDArray[np.float64]) -> Vector:
        """Sum joint features for the samples' own classes; `q` has the probability of each state of each unit."""
        ...


Samples = TypeVar("Samples", bound=NativeSamples)


class Highest(NamedTuple):
    """Highest planes of some samples: heights and labels of shape (samples,), latent values with further axes."""

    height: Vector
    label: Codes
    latent: Codes


class NativeProblem(Generic[Samples]):
    """Base of structural problems on kernels, with a dual of its own.

    Parameters
    ----------
    cost : ndarray of shape (n_classes, n_classes)
        Cost of predicting a label (second axis) for a sample of a class (first axis); zero on the diagonal.
    n_jobs : int, optional
        Threads of a pass.
    """

    def __init__(self, samples: Samples, cost: NDArray[np.float64], n_jobs: int | None = None) -> None:
        self.samples = samples
        self.cost = np.ascontiguousarray(cost, dtype=np.float64)
        self.n_jobs = n_jobs
        self._data = samples.chunks(n_jobs=n_jobs)

    @property
    def n_samples(self) -> int:
        return len(self.samples)

    @property
    def dim(self) -> int:
        return int(np.prod(self.samples.shape))

    def augmented(self, i: int, w: Vector) -> Plane:
        raise NotImplementedError

    def highest(self, at: slice, w: Vector) -> Highest:
        """Return the highest planes of some samples."""
        raise NotImplementedError

    def energies(self, at: slice, w: Vector) -> NDArray[np.float64]:
        """Return the loss-augmented maximum minus the own class's score, for each unit and state of some samples."""
        raise NotImplementedError

    def tightest(self, at: slice, w: Vector, shares: Vector) -> tuple[float, Codes]:
        """Return the weighted loss of some samples, and their best latent values for their own classes."""
        raise NotImplementedError

    def scored(self, at: slice, w: Vector, labels: Codes | None) -> tuple[NDArray[np.float64], Codes]:
        """Return scores of all classes for some samples, and best latent values for `labels` or the best class."""
        raise NotImplementedError

    def classify(self, w: Vector, labels: Codes | None = None) -> tuple[NDArray[np.float64], Codes]:
        """Return `scored` for all samples: one pass."""
        n = self.n_samples
        best = np.empty((n, len(self.cost)))
        latent = np.empty((n, *self.samples.latent_shape), dtype=np.int32)

        def visit(block: Block) -> int:
            of = None if labels is None else labels[block.at]
            best[block.at], latent[block.at] = self.scored(block.at, w, of)
            return 0

        self._data.map_sum(visit)
        return best, latent

    def own_latent(self, w: Vector) -> Codes:
        """Return the best latent values of all samples for their own classes: one pass."""
        ones = np.ones(self.n_samples)
        return self._data.map_rows(
            lambda block: self.tightest(block.at, w, ones[block.at])[1], self.samples.latent_shape, np.int32
        )

    def reach(self, alpha: float) -> float:
        """Return the largest score that weights can give whose objective is below that of zero weights."""
        return float(np.sqrt(2 * float(self.cost.max()) / alpha) * max(self.samples.longest, 1e-150))

    def exact_pass(self, w: Vector, shares: Vector) -> Cut:
        def visit(block: Block) -> Vector:
            found = self.highest(block.at, w)
            c = shares[block.at]
            loss = self.cost[block.columns[0], found.label]
            features = self.samples.sums(block.at, c, found.label, found.latent)
            return np.concatenate([features, [np.sum(c * found.height), np.sum(c * loss)]])

        found = self._data.map_sum(visit)
        return Cut(float(found[-2]), found[:-2], float(found[-1]))

    def dual_planes(self) -> NativePlanes:
        return NativePlanes(self, self._data)

    def pooled(self, w: Vector, shares: Vector, beta: float, tau: float) -> tuple[float, Vector]:
        r"""Return the smooth approximation of the objective without penalty, and its gradient: one pass.

        .. math:: \sum_i c_i \Bigl[\frac1\tau \log\sum_y e^{\tau (s_{iy} + \Delta(y_i, y))} - s_{iy_i}\Bigr],

        where the scores :math:`s_{iy}` have, in place of each maximum over states, the logarithm of a mean of
        exponentials at inverse temperature :math:`\beta`.
        """
        shape = self.samples.shape

        def visit(block: Block) -> Vector:
            gradient, at = np.empty(shape), block.at
            value = self.samples.native.pooled(
                at.start, at.stop, w.reshape(shape), shares[at], self.cost, beta, tau, gradient
            )
            return np.append(gradient, value)

        found = self._data.map_sum(visit)
        return float(found[-1]), found[:-1]


class NativePlanes:
    """Cached planes of all samples with their shares.

    Parameters
    ----------
    data : Chunks
        The samples as units.
    """

    def __init__(self, problem: NativeProblem[Any], data: Chunks) -> None:
        n, shape = problem.n_samples, problem.samples.latent_shape
        self._problem = problem
        self._data = data
        self._label = np.zeros((n, PLANES), dtype=np.int32)
        self._latent = np.zeros((n, PLANES, *shape), dtype=np.int32)
        self._share = np.zeros((n, PLANES))
        self._used = np.zeros(n, dtype=np.int32)
        self._found: tuple[NDArray[np.int32], NDArray[np.int32]] | None = None

    def collect(self, w: Vector, shares: Vector) -> float:
        """Find planes for the next sweep to add; the first plane of a sample is added at once."""
        n, shape = self._problem.n_samples, self._latent.shape[2:]
        label, latent = np.zeros(n, dtype=np.int32), np.zeros((n, *shape), dtype=np.int32)

        def visit(block: Block) -> float:
            height, label[block.at], latent[block.at] = self._problem.highest(block.at, w)
            return float(np.sum(shares[block.at] * height))

        value = self._data.map_sum(visit)
        new = (self._used == 0) & (shares > 0)
        self._label[new, 0], self._latent[new, 0] = label[new], latent[new]
        self._share[new, 0], self._used[new] = 1.0, 1
        self._found = (label, latent)
        return value

    def covers(self, shares: Vector) -> bool:
        return bool(self._used[shares > 0].all())

    def mixture(self, shares: Vector) -> tuple[Vector, float]:
        problem = self._problem
        features = np.empty(problem.samples.shape)
        planes = self._label, self._latent, self._share, self._used
        loss = problem.samples.native.mixture(0, problem.n_samples, shares, problem.cost, *planes, features)
        return features.ravel(), float(loss)

    def sweep(self, w: Vector, shares: Vector, order: NDArray[np.intp], alpha: float, *, online: bool) -> float:
        found, self._found = self._found, None
        label, latent = (None, None) if found is None else found
        problem = self._problem
        planes = self._label, self._latent, self._share, self._used
        weights = w.reshape(problem.samples.shape)  # a view, which the sweep changes
        left, lost = problem.samples.native.sweep(
            shares, problem.cost, alpha, label, latent, online, MOST_STEPS, order, *planes, weights
        )
        if lost:
            self._label, self._latent = _doubled(self._label), _doubled(self._latent)
            self._share = _doubled(self._share)
        return float(left)


def _doubled(table: NDArray[Any]) -> NDArray[Any]:
    """Return the table with twice the capacity for planes."""
    return np.concatenate([table, np.zeros_like(table)], axis=1)
