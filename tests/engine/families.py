"""Four models in the vocabulary of the engine: what one writes to give a model of one's own every bound policy.

A family says four things, ``energies``, ``statistics``, ``solve`` and ``penalty``, and two numbers, ``beta`` and
``n_states``. It never sees a policy, a budget or a block layout. Three rules make its bounds valid:

1. ``statistics`` is linear in the latent values and additive over units, and multiplies each unit by its weight;
2. ``solve`` returns parameters and the *exact* value of ``penalty + <statistics, E>`` there, and never leaves
   parameters for worse ones;
3. a constraint (a smallest variance) is a constraint of that minimum, never a constant that is added afterwards.

`k_means` is the package's own; the others are written out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.data import Block, Chunks
from majorant.engine.latents import Latent, collect
from majorant.models.kmeans import KMeansFamily

Array = NDArray[np.float64]

LOG_2PI = float(np.log(2 * np.pi))
EMPTY = 1e-9
"""A state with less weight than this keeps its parameters: nothing depends on them."""


def k_means(n_states: int) -> KMeansFamily:
    """Hard clusters by squared distance; an empty one keeps its centre."""
    return KMeansFamily(n_states)


def outer_products(rows: Array) -> Array:
    """Row by row, the outer product of a row with itself, flattened."""
    return (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)


def log_shares(mass: Array) -> Array:
    """Logarithms of shares; a state without mass gets a tiny share instead of none."""
    return np.log(np.maximum(mass, 1e-300) / mass.sum())


@dataclass(frozen=True)
class GaussianTheta:
    """Parameters of a Gaussian mixture: (k,), (k, d) and (k, d, d)."""

    log_share: Array
    mean: Array
    covariance: Array


@dataclass(frozen=True)
class GaussianMixture:
    r"""Gaussian components with full covariance matrices.

    .. math:: E_i(z) = -\log\pi_z - \log N(x_i; \mu_z, \Sigma_z),
        \qquad S = \sum_i q_i(z) [1, x_i, x_i x_i^\top]

    At ``beta = 1`` the tightest bounds are the EM algorithm; at infinity they are classification EM.

    Parameters
    ----------
    n_states : int
        Components.
    floor : float
        Smallest eigenvalue of a covariance matrix. Among the matrices that respect it, the one with clipped eigenvalues
        minimises the bound exactly.
    beta : float
        Inverse temperature.
    """

    n_states: int
    floor: float = 1e-3
    beta: float = 1.0

    def energies(self, theta: GaussianTheta, block: Block) -> Array:
        (x,) = block.columns
        out = np.empty((len(x), self.n_states))
        for z in range(self.n_states):
            factor = np.linalg.cholesky(theta.covariance[z])
            r = np.linalg.solve(factor, (x - theta.mean[z]).T)
            out[:, z] = 0.5 * (r * r).sum(axis=0) + np.log(np.diag(factor)).sum() - theta.log_share[z]
        return out + 0.5 * x.shape[1] * LOG_2PI

    def statistics(self, block: Block, q: Latent, theta: GaussianTheta | None) -> Array:
        (x,) = block.columns
        features = np.column_stack([np.ones(len(x)), x, outer_products(x)])
        return collect(q, features, self.n_states, block.weights)

    def solve(self, s: Array, theta: GaussianTheta | None, data: Chunks) -> tuple[GaussianTheta, float]:
        k, d = self.n_states, int(np.sqrt(s.shape[1] - 1))
        mass = s[:, 0]
        safe = np.maximum(mass, EMPTY)
        mean = s[:, 1 : d + 1] / safe[:, None]
        if theta is not None:
            mean[mass < EMPTY] = theta.mean[mass < EMPTY]
        second = s[:, d + 1 :].reshape(k, d, d) / safe[:, None, None]
        scatter = second - mean[:, :, None] * mean[:, None, :]
        eigenvalues, vectors = np.linalg.eigh(scatter)
        covariance = (vectors * np.maximum(eigenvalues, self.floor)[:, None, :]) @ vectors.transpose(0, 2, 1)
        if theta is not None:
            covariance[mass < EMPTY] = theta.covariance[mass < EMPTY]
        new = GaussianTheta(log_shares(mass), mean, covariance)
        log_determinant = np.linalg.slogdet(covariance)[1]
        spread = np.trace(np.linalg.solve(covariance, scatter), axis1=1, axis2=2)
        return new, float(mass @ (0.5 * (d * LOG_2PI + log_determinant + spread) - new.log_share))

    def penalty(self, theta: GaussianTheta) -> float:
        return 0.0


@dataclass(frozen=True)
class RegressionTheta:
    """Parameters of a mixture of regressions: (k,), (k, p) and (k,)."""

    log_share: Array
    coefficients: Array
    variance: Array


@dataclass(frozen=True)
class RegressionMixture:
    r"""Linear regressions with Gaussian noise, one a component.

    Blocks have the columns (x, y), and the first column of x is a constant.

    .. math:: E_i(z) = -\log\pi_z - \log N(y_i; x_i^\top b_z, v_z),
        \qquad S = \sum_i q_i(z) [x_i, y_i] [x_i, y_i]^\top

    Parameters
    ----------
    n_states : int
        Components.
    floor : float
        Smallest variance; ``max(variance, floor)`` minimises the bound exactly among those that respect it.
    beta : float
        Inverse temperature.
    """

    n_states: int
    floor: float = 1e-3
    beta: float = 1.0

    def energies(self, theta: RegressionTheta, block: Block) -> Array:
        x, y = block.columns
        r = y[:, None] - x @ theta.coefficients.T
        return 0.5 * (r * r / theta.variance + np.log(theta.variance) + LOG_2PI) - theta.log_share

    def statistics(self, block: Block, q: Latent, theta: RegressionTheta | None) -> Array:
        return collect(q, outer_products(np.column_stack(block.columns)), self.n_states, block.weights)

    def solve(self, s: Array, theta: RegressionTheta | None, data: Chunks) -> tuple[RegressionTheta, float]:
        p = int(np.sqrt(s.shape[1])) - 1
        products = s.reshape(self.n_states, p + 1, p + 1)
        xx, xy, yy = products[:, :p, :p], products[:, :p, p], products[:, p, p]
        mass = xx[:, 0, 0]
        coefficients = np.stack([np.linalg.lstsq(a, b, rcond=1e-12)[0] for a, b in zip(xx, xy, strict=True)])
        fitted = np.einsum("zi,zij,zj->z", coefficients, xx, coefficients)
        residual = np.maximum(yy - 2 * (coefficients * xy).sum(axis=1) + fitted, 0.0)
        variance = np.maximum(residual / np.maximum(mass, EMPTY), self.floor)
        new = RegressionTheta(log_shares(mass), coefficients, variance)
        value = 0.5 * residual / variance + mass * (0.5 * (np.log(variance) + LOG_2PI) - new.log_share)
        return new, float(value.sum())

    def penalty(self, theta: RegressionTheta) -> float:
        return 0.0


@dataclass(frozen=True)
class SvmTheta:
    """Class weights (classes, d), and what the solver remembers: cutting planes and how much each one bears.

    A plane ``<slope, w> + offset`` lies below the summed loss-augmented maximum whatever the latent values are, so
    planes stay valid from one bound to the next.
    """

    w: Array
    slopes: Array
    offsets: Array
    dual: Array


@dataclass(frozen=True)
class LatentSVM:
    r"""Multiclass SVM on bags of regions, of which one, the latent value, speaks for the class.

    .. math::
        F(w) = \tfrac\rho2 |w|^2
        + \sum_i \Big[\max_{y,z} (w_y^\top x_{iz} + [y \ne y_i]) - \max_z w_{y_i}^\top x_{iz}\Big]

    Blocks have the columns (x, y): x of shape (bags, regions, d), y the classes. ``E_i(z)`` is the loss-augmented
    maximum minus ``w_{y_i}' x_iz``. The first part does not depend on the latent values; its sum is the inner solver's,
    which passes over the data. ``S = sum_i x_{i z_i}``, by class.

    Parameters
    ----------
    n_states : int
        Regions of a bag.
    n_classes : int
    ridge : float
        The factor :math:`\rho`.
    tolerance : float
        Relative duality gap at which the inner solver stops.
    max_planes : int
        Passes over the data that a solve may take.
    """

    n_states: int
    n_classes: int
    ridge: float
    tolerance: float = 1e-2
    max_planes: int = 100
    beta: float = np.inf

    def _augmented(self, w: Array, block: Block) -> Array:
        """Scores of the regions for the classes plus the loss, (bags, regions, classes)."""
        x, y = block.columns
        loss = (np.arange(self.n_classes) != y[:, None]).astype(np.float64)
        return x @ w.T + loss[:, None, :]

    def energies(self, theta: SvmTheta, block: Block) -> Array:
        x, y = block.columns
        own = np.einsum("mrd,md->mr", x, theta.w[y])
        return self._augmented(theta.w, block).max(axis=(1, 2))[:, None] - own

    def statistics(self, block: Block, q: Latent, theta: SvmTheta | None) -> Array:
        x, y = block.columns
        chosen = x[np.arange(len(x)), q] if q.ndim == 1 else np.einsum("mr,mrd->md", q, x)
        return collect(y.astype(np.int32), chosen, self.n_classes, block.weights)

    def solve(self, s: Array, theta: SvmTheta | None, data: Chunks) -> tuple[SvmTheta, float]:
        """One-slack cutting planes: one pass adds one plane, then a small quadratic program over all of them."""
        if theta is None:
            theta = SvmTheta(np.zeros_like(s), np.empty((0, s.size)), np.empty(0), np.empty(0))
        w, slopes, offsets, dual = theta.w, theta.slopes, theta.offsets, theta.dual
        best, best_value = w, np.inf
        for _ in range(self.max_planes):
            height, slope = self._plane(w, data)
            value = self.ridge / 2 * float(np.sum(w * w)) - float(np.sum(w * s)) + height
            if value < best_value:
                best, best_value = w, value
            slopes = np.vstack([slopes, slope])
            offsets = np.append(offsets, height - slope @ w.ravel())
            dual = np.append(dual, 0.0 if len(dual) else 1.0)
            accuracy = 0.1 * self.tolerance * max(abs(best_value), 1e-9)
            linear = offsets + slopes @ s.ravel() / self.ridge
            dual = maximise_on_simplex(slopes @ slopes.T / self.ridge, linear, dual, accuracy)
            w = self._weights_of(dual, slopes, s)
            lower = float(offsets @ dual) - self.ridge / 2 * float(np.sum(w * w))
            if best_value - lower <= self.tolerance * abs(best_value):
                break
        bears = dual > 0
        return SvmTheta(best, slopes[bears], offsets[bears], dual[bears]), best_value

    def _weights_of(self, dual: Array, slopes: Array, s: Array) -> Array:
        """The minimiser of the ridge, the linear term and the planes, weighted by the dual variables."""
        return ((s.ravel() - dual @ slopes) / self.ridge).reshape(s.shape)

    def _plane(self, w: Array, data: Chunks) -> tuple[float, Array]:
        """The summed loss-augmented maximum at `w`, and its slope."""

        def visit(block: Block) -> Array:
            x = block.columns[0]
            scores = self._augmented(w, block).reshape(len(x), -1)
            region, label = np.divmod(scores.argmax(axis=1), self.n_classes)
            slope = collect(label.astype(np.int32), x[np.arange(len(x)), region], self.n_classes, block.weights)
            return np.append(block.total(scores.max(axis=1)), slope)

        height, *slope = data.map_sum(visit)
        return float(height), np.array(slope)

    def penalty(self, theta: SvmTheta) -> float:
        return self.ridge / 2 * float(np.sum(theta.w**2))


def maximise_on_simplex(h: Array, linear: Array, a: Array, accuracy: float, max_steps: int = 500) -> Array:
    """Maximise ``linear'a - a'ha/2`` over the probability simplex from `a`, two coordinates at a time."""
    a = a.copy()
    gradient = linear - h @ a
    for _ in range(max_steps):
        up, down = int(gradient.argmax()), int(np.where(a > 0, gradient, np.inf).argmin())
        if gradient[up] - gradient[down] <= accuracy:
            break
        curvature = max(h[up, up] + h[down, down] - 2 * h[up, down], 1e-300)
        step = min(a[down], (gradient[up] - gradient[down]) / curvature)
        a[up] += step
        a[down] -= step
        gradient -= step * (h[:, up] - h[:, down])
    return a
