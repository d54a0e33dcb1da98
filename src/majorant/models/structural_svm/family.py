"""Latent structural SVMs with the user's inference as a family of the engine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.models.structural_svm.oracles import Oracles, Vector, digest
from majorant.solvers.structural_svm import BoundRequest, BoundSolver

HEATS = (1.0, 4.0, 16.0)
"""Inverse temperatures at which latent values are drawn after a step, in units of one over the mean energy."""


class Candidates:
    """Latent values found so far for each sample, with their joint features.

    The engine identifies latent values by their positions here, so none is ever removed or moved.
    """

    def __init__(self, oracles: Oracles) -> None:
        self._oracles = oracles
        n = oracles.n_samples
        self.values: list[list[Any]] = [[] for _ in range(n)]
        self.features: list[NDArray[np.float64]] = [np.empty((0, 0)) for _ in range(n)]
        self._known: list[dict[bytes, int]] = [{} for _ in range(n)]

    @property
    def width(self) -> int:
        """Largest number of latent values of a sample."""
        return max(len(values) for values in self.values)

    def add(self, i: int, z: Any) -> int:
        """Add a latent value of sample `i` unless one has equal features; return its position."""
        features = self._oracles.features(i, self._oracles.labels[i], z)
        at = self._known[i].setdefault(digest(features), len(self.values[i]))
        if at == len(self.values[i]):
            self.values[i].append(z)
            self.features[i] = features[None] if at == 0 else np.vstack([self.features[i], features])
        return at

    def scores(self, i: int, w: Vector) -> Vector:
        # Not a matrix product: the sums of one depend on the number of threads that BLAS may use.
        return np.asarray(np.einsum("kj,j->k", self.features[i], w))

    def best(self, i: int, w: Vector) -> Any:
        """Return the latent value of largest score of sample `i`."""
        return self.values[i][int(self.scores(i, w).argmax())]


@dataclass(frozen=True, eq=False)
class Theta:
    """Weights, with the state of their solver."""

    w: Vector  # (n_features,)
    maxima: Vector  # (n_samples,): loss-augmented maximum of each sample
    gap: float  # duality gap of the bound that `w` minimises
    is_solved: bool  # whether the gap is within the tolerance
    state: Any  # state from which the solver of the next bound begins


@dataclass
class StructuralFamily:
    r"""Latent structural SVM at temperature zero, on latent values that are found during the fit.

    .. math::
        E_i(z; w) = \max_{y', z'} \bigl[\langle w, \phi(x_i, y', z') \rangle + \Delta(y_i, y')\bigr]
        - \langle w, \phi(x_i, y_i, z) \rangle

    The penalty is ``alpha / 2 |w|^2``. Blocks have the numbers of samples as column; their weights sum to one.
    """

    oracles: Oracles
    candidates: Candidates  # at least one latent value for every sample
    solver: BoundSolver
    alpha: float
    tol: float  # relative duality gap of each bound
    max_passes: int  # largest number of passes of the solver on one bound
    seed: int  # seed of the solver and of sampled latent values
    beta: float = np.inf
    n_states: int = field(init=False)
    _n_solved: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.n_states = self.candidates.width

    def energies(self, theta: Theta, block: Block) -> NDArray[np.float64]:
        ids = block.columns[0].tolist()
        out = np.full((len(ids), self.n_states), np.inf)
        for row, i in enumerate(ids):
            scores = self.candidates.scores(i, theta.w)
            out[row, : len(scores)] = np.maximum(theta.maxima[i] - scores, 0.0)
        return out

    def statistics(self, block: Block, q: NDArray[Any], theta: Theta | None) -> Vector:
        out = np.zeros(self.oracles.dim)
        weights = np.ones(len(block)) if block.weights is None else block.weights
        for row, i in enumerate(block.columns[0].tolist()):
            features = self.candidates.features[i]
            if q.ndim == 1:
                out += weights[row] * features[q[row]]
            else:
                out += weights[row] * np.einsum("k,kj->j", q[row, : len(features)], features)
        return out

    def solve(self, s: Vector, theta: Theta | None, data: Chunks) -> tuple[Theta, float]:
        shares = self._shares(data)
        state = None if theta is None else theta.state
        found = self.solver(
            BoundRequest(self.oracles, s, shares, self.alpha, self.tol, self.max_passes, state, self.seed)
        )
        new = Theta(found.w, self._maxima(found.w), found.gap, found.converged, found.state)
        data.n_passes += found.n_passes + 1
        value = self._bound(new, s, shares)
        if theta is not None:
            old = replace(theta, gap=found.gap, is_solved=found.converged, state=found.state)
            before = self._bound(old, s, shares)
            if before <= value:
                new, value = old, before
        self._look_for_latents(new, shares, data)
        return new, value

    def penalty(self, theta: Theta) -> float:
        return self.alpha / 2 * float(np.sum(theta.w * theta.w))

    def _shares(self, data: Chunks) -> Vector:
        """Return the weights of all samples, zero for those not in `data`."""
        shares = np.zeros(self.oracles.n_samples)
        for block in data.source.blocks():
            shares[block.columns[0]] = 1.0 if block.weights is None else block.weights
        return shares

    def _maxima(self, w: Vector) -> Vector:
        """Compute loss-augmented maxima, and check that no score for a sample's own label exceeds its maximum."""
        maxima = np.empty(self.oracles.n_samples)
        for i in range(len(maxima)):
            maximum, own = self.oracles.augmented(i, w).score(w), float(self.candidates.scores(i, w).max())
            if own > maximum + 1e-6 * max(abs(own), abs(maximum), 1.0):
                raise ValueError(
                    f"loss_augmented_inference of sample {i} found an output whose score and loss sum to "
                    f"{maximum:.9g}, but the sample's own label has {own:.9g}: it must return the output of the "
                    "largest sum"
                )
            maxima[i] = max(own, maximum)
        return maxima

    def _bound(self, theta: Theta, s: Vector, shares: Vector) -> float:
        return self.penalty(theta) + float(np.sum(shares * theta.maxima)) - float(np.sum(theta.w * s))

    def _look_for_latents(self, theta: Theta, shares: Vector, data: Chunks) -> None:
        """Add completions and sampled latent values of all samples, or of those left out of a partial fit."""
        asked = np.ones(len(shares), dtype=bool) if data.n_units == len(shares) else shares == 0
        ids = np.flatnonzero(asked).tolist()
        for i in ids:
            self.candidates.add(i, self.oracles.completion(i, theta.w))
        if self.oracles.offers("sample_latent") and not self.oracles.offers("latent_values"):
            self._sample_latents(theta, ids)
        self.n_states = self.candidates.width

    def _sample_latents(self, theta: Theta, ids: list[int]) -> None:
        self._n_solved += 1
        scale = float(np.mean([theta.maxima[i] - self.candidates.scores(i, theta.w).max() for i in ids]))
        for t, heat in enumerate(HEATS if scale > 0 else ()):
            for i in ids:
                random = np.random.default_rng([self.seed, self._n_solved, i, t])
                self.candidates.add(i, self.oracles.sampled(i, theta.w * (heat / scale), random))
