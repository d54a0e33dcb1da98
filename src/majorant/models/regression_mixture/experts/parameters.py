"""The parameters of mixtures of generalised linear models; several mixtures side by side where an axis leads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Experts:
    """K components in the coordinates of `Units`; with a leading axis of S mixtures, a batch of them.

    Attributes
    ----------
    weights : ndarray of shape (..., K)
    coef : ndarray of shape (..., K, p)
        Those that are shared come last and are the same in every row.
    dispersion : ndarray of shape (..., K)
    gating : ndarray of shape (..., K, g), or None
        Coefficients of the logits, the first component's are zero; `weights` are then the mean of the priors.
    """

    weights: NDArray[np.float64]
    coef: NDArray[np.float64]
    dispersion: NDArray[np.float64]
    gating: NDArray[np.float64] | None = None

    @property
    def n_components(self) -> int:
        return int(self.weights.shape[-1])

    def __getitem__(self, at: Any) -> Experts:
        """Some mixtures of a batch."""
        gating = None if self.gating is None else self.gating[at]
        return Experts(self.weights[at], self.coef[at], self.dispersion[at], gating)

    def taken(self, order: NDArray[np.intp]) -> Experts:
        """One mixture, its components in another order."""
        gating = None if self.gating is None else self.gating[order] - self.gating[order[0]]
        return Experts(self.weights[order], self.coef[order], self.dispersion[order], gating)

    def heaviest_first(self) -> NDArray[np.intp]:
        """The order of the components by falling weight; equal ones by their coefficients."""
        return np.lexsort((self.dispersion, *self.coef.T[::-1], -self.weights))

    @property
    def sigma_ratio(self) -> float:
        """Largest over smallest square root of a dispersion."""
        return float(np.sqrt(self.dispersion.max() / self.dispersion.min()))

    def features(self) -> NDArray[np.float64]:
        """Numbers that agree, whatever the order of the components, where two mixtures are the same."""
        sizes = np.sqrt(np.sum(self.coef**2, axis=1))
        return np.concatenate([np.sort(np.log(self.dispersion)), np.sort(self.weights), np.sort(sizes)])


def stacked(mixtures: Sequence[Experts]) -> Experts:
    """A batch of mixtures."""
    gating = None if mixtures[0].gating is None else np.stack([np.asarray(m.gating) for m in mixtures])
    return Experts(
        np.stack([m.weights for m in mixtures]),
        np.stack([m.coef for m in mixtures]),
        np.stack([m.dispersion for m in mixtures]),
        gating,
    )
