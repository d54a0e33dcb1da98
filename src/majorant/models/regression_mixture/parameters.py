"""The parameters of a mixture of linear regressions, and the order in which components are named."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Regressions:
    """Weights, coefficients and noise variances of K lines, in the coordinates of a `Design`.

    Attributes
    ----------
    weights : ndarray of shape (K,)
    coef : ndarray of shape (K, p)
    variances : ndarray of shape (K,)
    """

    weights: NDArray[np.float64]
    coef: NDArray[np.float64]
    variances: NDArray[np.float64]

    @property
    def n_components(self) -> int:
        return len(self.weights)

    @property
    def sigma_ratio(self) -> float:
        """Largest over smallest standard deviation of the noise."""
        return float(np.sqrt(self.variances.max() / self.variances.min()))

    def features(self) -> NDArray[np.float64]:
        """Numbers that agree, whatever the order of the components, where two mixtures are the same."""
        sizes = np.sqrt(np.sum(self.coef**2, axis=1))
        return np.concatenate([np.sort(np.log(self.variances)), np.sort(self.weights), np.sort(sizes)])

    def copy(self) -> Regressions:
        """Arrays of its own, which a kernel may write to."""
        return Regressions(self.weights.copy(), self.coef.copy(), self.variances.copy())

    def taken(self, order: NDArray[np.intp]) -> Regressions:
        """The components in another order."""
        return Regressions(self.weights[order], self.coef[order], self.variances[order])

    def heaviest_first(self) -> NDArray[np.intp]:
        """The order of the components by falling weight; equal ones by their coefficients."""
        return np.lexsort((self.variances, *self.coef.T[::-1], -self.weights))


def has_twins(coef: NDArray[np.float64], variances: NDArray[np.float64]) -> bool:
    """Whether two components have the same coefficients and noise: EM then sits on a saddle."""
    noise = np.log(variances)
    for a in range(len(coef)):
        for b in range(a):
            scale = float(np.sqrt(np.sqrt(variances[a] * variances[b])))
            apart = float(np.sqrt(np.sum((coef[a] - coef[b]) ** 2))) / scale
            if apart + abs(float(noise[a] - noise[b])) < 1e-3:
                return True
    return False


def logits_of(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms of weights over the first; a weight of zero is one of 1e-300."""
    logs = np.log(np.maximum(weights, 1e-300))
    return np.asarray(logs - logs[0])
