"""What the user writes, and the checks of what it returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from majorant.solvers.structural_svm import Plane

Vector = NDArray[np.float64]


class StructuralModel(Protocol):
    r"""A latent structural SVM as its user writes it: features, a loss, and three maximisations.

    Inputs `x`, labels `y` and latent values `z` are any objects. Weights `w` are not to be changed, and what is
    returned depends on the arguments alone. Maximisations should be exact: then the objective is what it says. Where
    they are not, bounds still fall, and the best latent value that was ever found for a sample is used.

    Attributes
    ----------
    n_features : int
        Length of every feature vector.

    Notes
    -----
    A model may offer three more methods:

    ``first_latent(x, y) -> z``
        Where `latent_init` "first" begins; without it, the latent value of largest score at ``w = 0``.
    ``latent_values(x, y) -> sequence``
        All latent values of a sample, where they are few. Random bounds are then exactly those of the paper.
    ``sample_latent(w, x, y, random) -> z``
        A latent value drawn with probability proportional to :math:`\exp \langle w, \phi(x, y, z) \rangle`, by a
        ``numpy.random.Generator``. Where latent values cannot be listed, random bounds choose among those that were
        drawn or found by completion on the way.
    """

    n_features: int

    def joint_features(self, x: Any, y: Any, z: Any) -> NDArray[Any]:
        r""":math:`\phi(x, y, z)`, shape (n_features,)."""
        ...

    def loss(self, y: Any, predicted: Any) -> float:
        """What it costs to predict `predicted` where `y` is right: at least 0, and 0 for `y` itself."""
        ...

    def inference(self, w: Vector, x: Any) -> tuple[Any, Any]:
        """The label and latent value of largest score ``<w, joint_features>``."""
        ...

    def loss_augmented_inference(self, w: Vector, x: Any, y: Any) -> tuple[Any, Any]:
        """The label and latent value of largest score plus loss."""
        ...

    def latent_completion(self, w: Vector, x: Any, y: Any) -> Any:
        """The latent value of largest score for a label."""
        ...


ASKED = {
    "joint_features": "(x, y, z), the feature vector of an input, a label and a latent value",
    "loss": "(y, predicted), what a prediction costs",
    "inference": "(w, x), the label and latent value of largest score",
    "loss_augmented_inference": "(w, x, y), the label and latent value of largest score plus loss",
    "latent_completion": "(w, x, y), the latent value of largest score for a label",
}


def check_model(model: Any) -> None:
    """Refuse a model that lacks a method, and say which.

    Raises
    ------
    TypeError
    """
    if isinstance(model, type):
        raise TypeError(f"model must be an object, not a class: give {model.__name__}(...)")
    missing = [f"{name}{what}" for name, what in ASKED.items() if not callable(getattr(model, name, None))]
    if missing:
        raise TypeError(f"model must have the method {'; and '.join(missing)}; {type(model).__name__} has not")
    n_features = getattr(model, "n_features", None)
    if isinstance(n_features, bool) or not isinstance(n_features, Integral) or n_features < 1:
        raise TypeError(
            f"model must have an attribute n_features, how many numbers joint_features returns; got {n_features!r}"
        )


class Oracles:
    """Samples and the user's model, as a problem of the solvers of structural SVMs.

    Parameters
    ----------
    model : StructuralModel
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
        """Joint features of sample `i`, checked.

        Raises
        ------
        ValueError
        """
        with _named("joint_features", i):
            given = self.model.joint_features(self.inputs[i], y, z)
        try:
            features = np.array(given, dtype=np.float64)
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
        """What a prediction costs on sample `i`, checked.

        Raises
        ------
        ValueError
        """
        with _named("loss", i):
            loss = self.model.loss(self.labels[i], predicted)
        if isinstance(loss, np.ndarray) and loss.ndim == 0:
            loss = loss.item()
        if not isinstance(loss, Real | np.bool_) or not 0 <= float(loss) < np.inf:
            raise ValueError(f"loss of sample {i} returned {loss!r}: it must return a finite number of at least 0")
        return float(loss)

    def refuse_loss_of_truth(self) -> None:
        """Check that the right label costs nothing.

        Raises
        ------
        ValueError
        """
        for i, y in enumerate(self.labels):
            if (loss := self.loss(i, y)) != 0:
                raise ValueError(f"loss of sample {i} for its own label is {loss}: it must be 0")

    def augmented(self, i: int, w: Vector) -> Plane:
        """The plane of the output of largest score plus loss."""
        with _named("loss_augmented_inference", i):
            found = self.model.loss_augmented_inference(_read_only(w), self.inputs[i], self.labels[i])
        y, z = _pair("loss_augmented_inference", i, found)
        features = self.features(i, y, z)
        loss = self.loss(i, y)
        return Plane(loss, features, key=digest(features, loss))

    def completion(self, i: int, w: Vector) -> Any:
        """The latent value of largest score for the label of sample `i`."""
        with _named("latent_completion", i):
            return self.model.latent_completion(_read_only(w), self.inputs[i], self.labels[i])

    def first(self, i: int) -> Any:
        """The latent value that a fit begins with."""
        if not self.offers("first_latent"):
            return self.completion(i, np.zeros(self.dim))
        with _named("first_latent", i):
            return self.model.first_latent(self.inputs[i], self.labels[i])

    def sampled(self, i: int, w: Vector, random: np.random.Generator) -> Any:
        """A latent value of sample `i`, drawn by the model."""
        with _named("sample_latent", i):
            return self.model.sample_latent(_read_only(w), self.inputs[i], self.labels[i], random)

    def listed(self, i: int) -> list[Any]:
        """All latent values of sample `i`.

        Raises
        ------
        ValueError
        """
        with _named("latent_values", i):
            values = list(self.model.latent_values(self.inputs[i], self.labels[i]))
        if not values:
            raise ValueError(f"latent_values of sample {i} returned none: every sample needs at least one")
        return values

    def offers(self, name: str) -> bool:
        """Whether the model has a method that it may have."""
        return callable(getattr(self.model, name, None))


def inferred(model: Any, w: Vector, inputs: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Label and latent value of each input."""
    for i, x in enumerate(inputs):
        with _named("inference", i):
            found = model.inference(_read_only(w), x)
        yield _pair("inference", i, found)


def digest(features: Vector, loss: float = 0.0) -> bytes:
    """Equal for equal features and losses, and for no others."""
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
    """An error of the user's own says which method it comes from, and of which sample."""
    try:
        yield
    except Exception as error:
        error.add_note(f"raised in {name} of the model, for sample {i}")
        raise
