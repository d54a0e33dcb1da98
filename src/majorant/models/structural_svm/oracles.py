"""Models written by the user, with checks of what their methods return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from majorant._cells import refuse_masked
from majorant._numbers import briefly
from majorant.solvers.structural_svm import Plane

Vector = NDArray[np.float64]


class StructuralModel(Protocol):
    r"""Features, loss and inference of a latent structural SVM, to be written by the user.

    Inputs `x`, labels `y` and latent values `z` are any objects. Methods must not change the weights `w`, and their
    results must depend on the arguments only. Maximisations should be exact, or the objective is only approximate:
    bounds still decrease, and the best latent value found so far for a sample is used.

    Attributes
    ----------
    n_features : int
        Length of every feature vector.

    Notes
    -----
    Three methods are optional:

    ``first_latent(x, y) -> z``
        Latent value of the start "first"; without it, that of highest score at ``w = 0``.
    ``latent_values(x, y) -> sequence``
        All latent values of a sample, if they are few. Random bounds are then exactly those of the paper.
    ``sample_latent(w, x, y, random) -> z``
        A latent value drawn with probability proportional to :math:`\exp \langle w, \phi(x, y, z) \rangle`, by a
        ``numpy.random.Generator``. If latent values are not listed, random bounds choose among those sampled or found
        by completion so far.
    """

    n_features: int

    def joint_features(self, x: Any, y: Any, z: Any) -> NDArray[Any]:
        r"""Compute :math:`\phi(x, y, z)`, shape (n_features,)."""
        ...

    def loss(self, y: Any, predicted: Any) -> float:
        """Compute the loss of predicting `predicted` for the label `y`: at least 0, and 0 for `y` itself."""
        ...

    def inference(self, w: Vector, x: Any) -> tuple[Any, Any]:
        """Find the label and latent value of highest score ``<w, joint_features>``."""
        ...

    def loss_augmented_inference(self, w: Vector, x: Any, y: Any) -> tuple[Any, Any]:
        """Find the label and latent value of highest score plus loss."""
        ...

    def latent_completion(self, w: Vector, x: Any, y: Any) -> Any:
        """Find the latent value of highest score for a label."""
        ...


ASKED = {
    "joint_features": "(x, y, z), the feature vector of an input, a label and a latent value",
    "loss": "(y, predicted), the loss of a prediction",
    "inference": "(w, x), the label and latent value of largest score",
    "loss_augmented_inference": "(w, x, y), the label and latent value of largest score plus loss",
    "latent_completion": "(w, x, y), the latent value of largest score for a label",
}


def check_model(model: Any) -> None:
    """Refuse a model that lacks a method."""
    if isinstance(model, type):
        raise TypeError(f"model must be an object, not a class: give {model.__name__}(...)")
    missing = [f"{name}{what}" for name, what in ASKED.items() if not callable(getattr(model, name, None))]
    if missing:
        raise TypeError(f"model must have the method {'; and '.join(missing)}; {type(model).__name__} has not")
    n_features = getattr(model, "n_features", None)
    if isinstance(n_features, bool) or not isinstance(n_features, Integral) or n_features < 1:
        raise TypeError(
            f"model must have an attribute n_features, the length of joint_features; got {briefly(n_features)}"
        )


class Oracles:
    """Structural problem of samples and the user's model.

    Parameters
    ----------
    inputs, labels : sequence
        Of one length.
    """

    def __init__(self, model: Any, inputs: Sequence[Any], labels: Sequence[Any]) -> None:
        self.model = model
        self.inputs = inputs
        self.labels = labels
        self.dim = int(model.n_features)

    @property
    def n_samples(self) -> int:
        return len(self.inputs)

    def features(self, i: int, y: Any, z: Any) -> Vector:
        """Compute and check the joint features of sample `i`."""
        with _named("joint_features", i):
            given = self.model.joint_features(self.inputs[i], y, z)
        refuse_masked(given, f"joint_features of sample {i}")
        try:
            table = np.asarray(given)
            features = table.astype(np.float64, casting="unsafe" if table.dtype == object else "same_kind")
        except (TypeError, ValueError) as error:
            raise ValueError(f"joint_features of sample {i} returned {given!r}: it must return numbers") from error
        if features.shape != (self.dim,):
            raise ValueError(
                f"joint_features of sample {i} returned shape {features.shape}: it must return a row of n_features "
                f"numbers, shape ({self.dim},)"
            )
        if not np.isfinite(features).all():
            at = int(np.flatnonzero(~np.isfinite(features))[0])
            raise ValueError(f"joint_features of sample {i} returned {features[at]} at position {at}")
        return features

    def loss(self, i: int, predicted: Any) -> float:
        """Compute and check the loss of a prediction for sample `i`."""
        with _named("loss", i):
            loss = self.model.loss(self.labels[i], predicted)
        if isinstance(loss, np.ndarray) and loss.ndim == 0:
            loss = loss.item()
        if not isinstance(loss, Real | np.bool_) or not 0 <= float(loss) < np.inf:
            raise ValueError(f"loss of sample {i} returned {loss!r}: it must return a finite number of at least 0")
        return float(loss)

    def refuse_loss_of_truth(self) -> None:
        """Refuse a positive loss of a sample's own label."""
        for i, y in enumerate(self.labels):
            if (loss := self.loss(i, y)) != 0:
                raise ValueError(f"loss of sample {i} for its own label is {loss}: it must be 0")

    def augmented(self, i: int, w: Vector) -> Plane:
        """Return the plane of the output of highest score plus loss."""
        with _named("loss_augmented_inference", i):
            found = self.model.loss_augmented_inference(_read_only(w), self.inputs[i], self.labels[i])
        y, z = _pair("loss_augmented_inference", i, found)
        features = self.features(i, y, z)
        loss = self.loss(i, y)
        return Plane(loss, features, key=digest(features, loss))

    def completion(self, i: int, w: Vector) -> Any:
        """Return the latent value of highest score for the label of sample `i`."""
        with _named("latent_completion", i):
            return self.model.latent_completion(_read_only(w), self.inputs[i], self.labels[i])

    def first(self, i: int) -> Any:
        """Return the latent value of the start "first"."""
        if not self.offers("first_latent"):
            return self.completion(i, np.zeros(self.dim))
        with _named("first_latent", i):
            return self.model.first_latent(self.inputs[i], self.labels[i])

    def sampled(self, i: int, w: Vector, random: np.random.Generator) -> Any:
        """Sample a latent value of sample `i`."""
        with _named("sample_latent", i):
            return self.model.sample_latent(_read_only(w), self.inputs[i], self.labels[i], random)

    def listed(self, i: int) -> list[Any]:
        """List all latent values of sample `i`."""
        with _named("latent_values", i):
            values = list(self.model.latent_values(self.inputs[i], self.labels[i]))
        if not values:
            raise ValueError(f"latent_values of sample {i} returned none: every sample needs at least one")
        return values

    def offers(self, name: str) -> bool:
        """Return whether the model has an optional method."""
        return callable(getattr(self.model, name, None))


def inferred(model: Any, w: Vector, inputs: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Infer label and latent value of each input."""
    for i, x in enumerate(inputs):
        with _named("inference", i):
            found = model.inference(_read_only(w), x)
        yield _pair("inference", i, found)


def digest(features: Vector, loss: float = 0.0) -> bytes:
    """Return a hash of features and loss."""
    return blake2b((features + 0.0).tobytes() + np.float64(loss).tobytes(), digest_size=16).digest()


def _pair(name: str, i: int, found: Any) -> tuple[Any, Any]:
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise ValueError(f"{name} of sample {i} returned {found!r}: it must return a label and a latent value, (y, z)")
    return found[0], found[1]


def _read_only(w: Vector) -> Vector:
    view = w.view()
    view.flags.writeable = False
    return view


@contextmanager
def _named(name: str, i: int) -> Iterator[None]:
    """Add the method and the sample to errors of the user's model."""
    try:
        yield
    except Exception as error:
        error.add_note(f"raised in {name} of the model, for sample {i}")
        raise
