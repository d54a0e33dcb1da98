"""Which parameters of a mixture of regressions are free, and from their covariance to standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """All parameters are, in this order, the p coefficients and the logarithm of the scale of each of k components,
    then the g coefficients of the logit of each; g is one without gating.

    Free ones are fewer: the last `n_shared` coefficients are the same in all components, and of scales k are free, one
    where it is common, or none.
    """

    k: int
    p: int
    g: int = 1
    n_shared: int = 0
    n_scales: int = 0

    @property
    def size(self) -> int:
        """Number of all parameters."""
        return self.k * (self.p + 1 + self.g)

    def line(self, c: int) -> slice:
        """The coefficients of a component."""
        return slice(c * (self.p + 1), c * (self.p + 1) + self.p)

    def scale(self, c: int) -> int:
        """The logarithm of its scale."""
        return c * (self.p + 1) + self.p

    @property
    def logits(self) -> slice:
        """The coefficients of all logits."""
        return slice(self.k * (self.p + 1), self.size)

    def logit(self, c: int) -> slice:
        """Those of a component."""
        begin = self.k * (self.p + 1) + c * self.g
        return slice(begin, begin + self.g)

    @cached_property
    def free(self) -> Array:
        """Matrix of all parameters by the free ones: own coefficients, shared ones, scales, logits but the first."""
        own = self.p - self.n_shared
        columns = [[self.line(c).start + j] for c in range(self.k) for j in range(own)]
        columns += [[self.line(c).start + j for c in range(self.k)] for j in range(own, self.p)]
        scales = [self.scale(c) for c in range(self.k)]
        columns += [scales] if self.n_scales == 1 else [[s] for s in scales[: self.n_scales]]
        columns += [[j] for j in range(self.logit(0).stop, self.size)]
        out = np.zeros((self.size, len(columns)))
        for column, entries in enumerate(columns):
            out[entries, column] = 1.0
        return out

    def covariance(self, information: Array) -> Array | None:
        """Of all parameters, from their information; None where that of the free ones is not positive definite."""
        own = self.free.T @ information @ self.free
        size = np.sqrt(np.maximum(np.diag(own), 1e-300))
        scaled = own / np.outer(size, size)
        try:
            np.linalg.cholesky(scaled - 1e-10 * np.eye(len(own)))
        except np.linalg.LinAlgError:
            return None
        by_free = self.free / size
        return np.asarray(by_free @ np.linalg.inv(scaled) @ by_free.T)

    def errors(
        self, covariance: Array, lines: Array, scales: Array, weights_by_logits: Array, gates: Array, unit: float = 1.0
    ) -> dict[str, Array] | None:
        """Standard errors by the name of the parameter; None where one is no number.

        `lines` are intercept and slopes by the coefficients of a component, (1 + n_features, p), in units of `unit`,
        `gates` the same of a logit; then the scales (k,) and derivatives of the weights by the logits (k, k g).
        """
        k = range(self.k)
        by_line = np.array([_root(lines, covariance[self.line(c), self.line(c)]) for c in k]) * unit
        by_logit = np.array([_root(gates, covariance[self.logit(c), self.logit(c)]) for c in k])
        logs = np.array([covariance[self.scale(c), self.scale(c)] for c in k])
        found = {
            "coef": by_line[:, 1:],
            "intercept": by_line[:, 0],
            "scale": scales * np.sqrt(logs),
            "weights": _root(weights_by_logits, covariance[self.logits, self.logits]),
            "gating_coef": by_logit[:, 1:],
            "gating_intercept": by_logit[:, 0],
        }
        return found if all(np.isfinite(values).all() for values in found.values()) else None


def _root(rows: Array, covariance: Array) -> Array:
    """Standard deviations of combinations."""
    return np.asarray(np.sqrt(np.maximum(np.einsum("ij,jl,il->i", rows, covariance, rows), 0.0)))
