"""The constraint on the dispersions of a mixture's components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class VarianceRule:
    r"""The constraint on variances: all equal, or within a ratio; never below a floor.

    The M-step is the exact minimiser under the rule: with :math:`d_k` the mean squared residual of component k,
    :math:`v_k = \min(\max(d_k, m), c^2 m)` for the best m.
    """

    max_sigma_ratio: float  # c, the largest ratio of two standard deviations; infinity for none
    floor: float  # smallest variance
    common: bool = False  # whether all components share one variance

    @property
    def arguments(self) -> tuple[float, float, bool]:
        """The rule as arguments of the kernels."""
        return self.max_sigma_ratio**2, self.floor, self.common

    def is_active(self, variances: Array) -> NDArray[np.bool_]:
        """Return whether a bound of the rule holds variances back, those along the last axis."""
        low, high = variances.min(axis=-1), variances.max(axis=-1)
        apart = np.inf if self.common else self.max_sigma_ratio**2 * (1 - 1e-6)
        return np.asarray((low <= self.floor * (1 + 1e-6)) | (high >= low * apart))

    def best(self, own: Array, mass: Array) -> Array:
        """Return the best variances under the rule, (runs, components), given the unconstrained ones."""
        d = np.maximum(own, self.floor)
        c = self.max_sigma_ratio**2
        if not np.isfinite(c):
            return d
        out = d.copy()
        for s in np.flatnonzero(d.max(axis=1) > c * d.min(axis=1)):
            kinks = np.sort(np.concatenate([d[s], d[s] / c]))
            middles = np.concatenate([kinks[:1] / 2, (kinks[1:] + kinks[:-1]) / 2, kinks[-1:] * 2])
            below, above = d[s] < middles[:, None], d[s] > c * middles[:, None]
            held = (mass[s] * (below | above)).sum(axis=1)
            total = (mass[s] * d[s] * below).sum(axis=1) + (mass[s] * d[s] / c * above).sum(axis=1)
            m = np.maximum(np.divide(total, held, out=np.full(len(held), kinks[0]), where=held > 0), self.floor)
            v = np.clip(d[s], m[:, None], c * m[:, None])
            out[s] = v[(mass[s] * (np.log(v) + d[s] / v)).sum(axis=1).argmin()]
        return out

    def within(self, variances: Array) -> Array:
        """Return the rule's variances (runs, components) that are near these: small ones are raised."""
        highest = variances.max(axis=1, keepdims=True)
        return np.asarray(np.maximum(variances, np.maximum(highest / self.max_sigma_ratio**2, self.floor)))
