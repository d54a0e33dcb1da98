"""What a harmonium is asked to predict from its latents, as a smooth loss of linear scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from majorant.registry import value_class

Array = NDArray[np.float64]

SMOOTHING = 0.1
"""Width over which the corners of the hinges are rounded, in units of the scores."""


class Loss(Protocol):
    """A convex loss of scores."""

    @property
    def n_scores(self) -> int:
        """Scores of a row."""
        ...

    def value_and_slope(self, scores: Array, y: NDArray[Any]) -> tuple[Array, Array]:
        """The loss of each row, and its derivative in each score."""
        ...


@value_class
@dataclass(frozen=True)
class Hinge:
    r"""The multiclass hinge :math:`\max_c (1[c \ne y] + s_c - s_y)` with its maximum smoothed; y are numbers of labels.

    The smooth maximum :math:`\tau \log \sum_c \exp(u_c / \tau)` lies above the maximum by at most
    :math:`\tau \log T`.
    """

    n_scores: int
    smoothing: float = SMOOTHING

    def value_and_slope(self, scores: Array, y: NDArray[Any]) -> tuple[Array, Array]:
        """See `Loss`."""
        rows = np.arange(len(y))
        u = scores + 1.0
        u[rows, y] -= 1.0
        u -= scores[rows, y][:, None]
        most = u.max(axis=1, keepdims=True)
        slope = np.exp((u - most) / self.smoothing)
        total = slope.sum(axis=1, keepdims=True)
        slope /= total
        slope[rows, y] -= 1.0
        return (most + self.smoothing * np.log(total))[:, 0], slope


@value_class
@dataclass(frozen=True)
class EpsilonInsensitive:
    r"""The loss :math:`\max(|r| - \epsilon, 0)` of a residual with its corners smoothed."""

    epsilon: float
    smoothing: float = SMOOTHING
    n_scores: int = 1

    def value_and_slope(self, scores: Array, y: NDArray[Any]) -> tuple[Array, Array]:
        """See `Loss`."""
        residual = scores[:, 0] - y
        above, below = ((sign * residual - self.epsilon) / self.smoothing for sign in (1.0, -1.0))
        value = self.smoothing * (np.logaddexp(0, above) + np.logaddexp(0, below))
        return value, (expit(above) - expit(below))[:, None]


@value_class
@dataclass(frozen=True)
class Squared:
    """Half the squared residual."""

    n_scores: int = 1

    def value_and_slope(self, scores: Array, y: NDArray[Any]) -> tuple[Array, Array]:
        """See `Loss`."""
        residual = scores[:, 0] - y
        return residual**2 / 2, residual[:, None]


@value_class
@dataclass(frozen=True)
class Supervision:
    """What a fit was asked to predict, beside the views.

    Attributes
    ----------
    loss : Loss, optional
        Of scores that are linear in the latents.
    n_labels : int
        Levels of a label that is modelled as one more categorical variable; 0 where there is none.
    weight : float
        Of the loss, or of the label.
    compared : tuple of float
        Weights that the fit compares; empty where it is given.
    """

    loss: Loss | None = None
    n_labels: int = 0
    weight: float = 0.0
    compared: tuple[float, ...] = ()

    @property
    def n_scores(self) -> int:
        """Scores of a row."""
        return 0 if self.loss is None else self.loss.n_scores
