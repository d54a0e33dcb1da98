"""Two models that a user might write, small enough to be enumerated: a region among several, and chains of states."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.solvers.chains import Chains

Array = NDArray[np.float64]


class Regions:
    """The class of a bag of regions, by its best region."""

    def __init__(self, n_classes: int, n_columns: int) -> None:
        self.n_classes = n_classes
        self.n_columns = n_columns
        self.n_features = n_classes * n_columns

    def joint_features(self, x: Array, y: int, z: int) -> Array:
        out = np.zeros((self.n_classes, self.n_columns))
        out[y] = x[z]
        return out.ravel()

    def loss(self, y: int, predicted: int) -> float:
        return float(y != predicted)

    def _scores(self, w: Array, x: Array) -> Array:
        return x @ w.reshape(self.n_classes, self.n_columns).T

    def inference(self, w: Array, x: Array) -> tuple[int, int]:
        z, y = np.unravel_index(self._scores(w, x).argmax(), (len(x), self.n_classes))
        return int(y), int(z)

    def loss_augmented_inference(self, w: Array, x: Array, y: int) -> tuple[int, int]:
        scores = self._scores(w, x) + (np.arange(self.n_classes) != y)
        z, best = np.unravel_index(scores.argmax(), scores.shape)
        return int(best), int(z)

    def latent_completion(self, w: Array, x: Array, y: int) -> int:
        return int(self._scores(w, x)[:, y].argmax())


class ListedRegions(Regions):
    """The same, with its regions listed."""

    def latent_values(self, x: Array, y: int) -> range:
        return range(len(x))


class HiddenChain:
    """Labels of a sequence, each label in one of several hidden variants: states are pairs of label and variant."""

    def __init__(self, n_labels: int, n_variants: int, n_columns: int) -> None:
        self.n_labels, self.n_variants, self.n_columns = n_labels, n_variants, n_columns
        self.n_states = n_labels * n_variants
        self.n_features = self.n_states * (n_columns + self.n_states)

    def joint_features(self, x: Array, y: Array, z: Array) -> Array:
        states = np.asarray(y) * self.n_variants + np.asarray(z)
        emissions, steps = np.zeros((self.n_states, self.n_columns)), np.zeros((self.n_states, self.n_states))
        np.add.at(emissions, states, x)
        np.add.at(steps, (states[:-1], states[1:]), 1.0)
        return np.concatenate([emissions.ravel(), steps.ravel()]) / len(x)

    def loss(self, y: Array, predicted: Array) -> float:
        return float(np.mean(np.asarray(y) != np.asarray(predicted)))

    def chain(self, w: Array, x: Array) -> Chains:
        emissions, steps = np.split(w, [self.n_states * self.n_columns])
        return Chains(
            x @ emissions.reshape(self.n_states, self.n_columns).T / len(x),
            steps.reshape(self.n_states, self.n_states) / len(x),
        )

    def label_of(self) -> NDArray[np.intp]:
        return np.arange(self.n_states) // self.n_variants

    def _split(self, states: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        y, z = np.divmod(states, self.n_variants)
        return y, z

    def inference(self, w: Array, x: Array) -> tuple[Any, Any]:
        return self._split(self.chain(w, x).best()[0])

    def loss_augmented_inference(self, w: Array, x: Array, y: Array) -> tuple[Any, Any]:
        wrong = self.label_of() != np.asarray(y)[:, None]
        return self._split(self.chain(w, x).augmented(wrong / len(x)).best()[0])

    def _given(self, w: Array, x: Array, y: Array) -> Chains:
        return self.chain(w, x).augmented(np.where(self.label_of() == np.asarray(y)[:, None], 0.0, -np.inf))

    def latent_completion(self, w: Array, x: Array, y: Array) -> Any:
        return self._split(self._given(w, x, y).best()[0])[1]

    def sample_latent(self, w: Array, x: Array, y: Array, random: np.random.Generator) -> Any:
        return self._split(self._given(w, x, y).sample(random.random(len(x))))[1]


def all_outputs(model: Any, x: Array) -> list[tuple[Any, Any]]:
    """Every label with every latent value."""
    if isinstance(model, Regions):
        return list(product(range(model.n_classes), range(len(x))))
    labels = [np.array(y) for y in product(range(model.n_labels), repeat=len(x))]
    variants = [np.array(z) for z in product(range(model.n_variants), repeat=len(x))]
    return list(product(labels, variants))


def objective(model: Any, w: Array, X: list[Array], y: list[Any], alpha: float, weights: Array | None = None) -> float:
    """F(w), by enumeration."""
    losses = []
    for x, own in zip(X, y, strict=True):
        scores = [(w @ model.joint_features(x, a, z), model.loss(own, a)) for a, z in all_outputs(model, x)]
        right = [s for s, loss in scores if loss == 0]
        losses.append(max(s + loss for s, loss in scores) - max(right))
    return float(alpha / 2 * w @ w + np.average(losses, weights=weights))


def bags(seed: int, n: int = 24, n_classes: int = 3, n_regions: int = 4) -> tuple[list[Array], list[int]]:
    """Bags of unequal numbers of regions of which one shows the class; the last column is one."""
    random = np.random.default_rng(seed)
    y = random.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    X = []
    for label in y:
        x = random.normal(0, 0.5, (int(random.integers(1, n_regions + 1)), n_classes + 1))
        x[random.integers(len(x)), label] += 2.0
        x[:, -1] = 1.0
        X.append(x)
    return X, y.tolist()


def sequences(seed: int, n: int = 12, length: int = 4) -> tuple[list[Array], list[Array]]:
    """Two labels; each shows one of two patterns, so that no line tells the labels apart."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        labels = random.integers(0, 2, int(random.integers(2, length + 1)))
        sign = random.choice([-1.0, 1.0], len(labels))
        shown = np.where(labels == 0, sign, 0.0), np.where(labels == 1, sign, 0.0)
        x = np.column_stack([*shown, np.ones(len(labels))])
        x[:, :2] += random.normal(0, 0.2, (len(labels), 2))
        X.append(x)
        y.append(labels)
    return X, y
