"""Features of rows for linear classifiers: columns, or kernel values with landmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from majorant._validation import check_choice, check_integer, check_positive
from majorant.solvers.nearest import squared_distances
from majorant.starts.quadratic import PrincipalAxes, principal_axes

Array = NDArray[np.float64]

KERNEL_SHAPES = {"kernel_axes_": "nm", "landmarks_": "nd", "center_": "d"}
"""Shapes of the attributes that say what a kernel's features are; see `ModelCard`."""
Kernel = str | Callable[[Array, Array], Any] | None

MOST_EXACT = 2000
"""If there are fewer rows, every row is a landmark."""
NEGATIVE = 1e-6
"""A kernel is indefinite if an eigenvalue is below minus this share of the largest."""
SMALLEST = 1e-8
"""Eigenvalues of a kernel below this share of the largest are rounding errors and dropped."""


def check_kernel(kernel: Any, n_components: Any, gamma: Any) -> None:
    """Check the parameters kernel, n_kernel_components and gamma of a model."""
    if kernel is not None and not callable(kernel):
        check_choice("kernel", kernel, ["rbf"], or_else=", None or a callable")
    check_integer("n_kernel_components", n_components, low=1)
    if gamma is not None:
        check_positive("gamma", gamma, finite=True)


@dataclass(frozen=True)
class FeatureMap:
    r"""Features of rows: :math:`x - c`, or :math:`[k(x, l_1), \dots, k(x, l_m)]`."""

    center: Array  # (n_features,): c
    kernel: Kernel = None  # none, :math:`e^{-\gamma |x - l|^2}`, or a function of rows and landmarks, ``kernel(X, L)``
    gamma: float = 0.0
    landmarks: Array | None = None  # (n_landmarks, n_features): empty without a kernel

    def of(self, x: NDArray[Any]) -> Array:
        """Compute features of rows, each from its row only."""
        if self.landmarks is None:
            return np.asarray(x - self.center, dtype=np.float64)
        return kernel_values(self.kernel, x, self.landmarks, self.center, self.gamma)


def kernel_values(kernel: Kernel, x: NDArray[Any], landmarks: Array, center: Array, gamma: float) -> Array:
    """Compute the kernel of all rows and landmarks, shape (n_rows, n_landmarks)."""
    x = np.ascontiguousarray(x, dtype=np.float64)
    if kernel == "rbf":
        root = np.sqrt(gamma)
        with np.errstate(over="ignore"):  # of rows too far from every landmark the kernel is zero
            to = np.clip(root * (x - center), -1e100, 1e100)
        return np.asarray(np.exp(-squared_distances(to, root * (landmarks - center))))
    assert callable(kernel)
    values = np.asarray(kernel(x, landmarks))
    if values.shape != (len(x), len(landmarks)) or values.dtype.kind not in "biuf":
        raise ValueError(
            f"kernel(X, Y) must return numbers of shape (rows of X, rows of Y), here {(len(x), len(landmarks))}; "
            f"got {values.dtype} of shape {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError("kernel(X, Y) must return finite numbers; got NaN or infinity")
    return values.astype(np.float64)


@dataclass(frozen=True)
class Embedding:
    """Map from rows to the coordinates of a fit."""

    axes: PrincipalAxes  # principal axes of the features: the rows themselves, or their kernel features
    map: FeatureMap
    # (n_landmarks, n_features of `axes`): map from kernel values to orthonormal kernel features; None without a kernel
    to_features: Array | None

    def outward(self, theta: Array) -> tuple[Array, Array]:
        """Convert parameters to coefficients (n_clusters, n_of_map) and levels (n_clusters,) of the features."""
        w = np.einsum("pr,rk->kp", self.axes.axes, theta[:-1])
        levels = theta[-1] - np.einsum("kp,p->k", w, self.axes.mean)
        return (w if self.to_features is None else np.einsum("kp,mp->km", w, self.to_features)), levels


def embedding(
    rows: Array,
    shares: Array,
    kernel: Kernel,
    gamma: float | None,
    n_components: int,
    random: np.random.Generator,
) -> Embedding:
    """Choose the coordinates for distinct rows, in their own units and canonical order."""
    center = np.einsum("np,n->p", rows, shares)
    if kernel is None:
        return Embedding(principal_axes(rows - center, shares), FeatureMap(center), None)
    gamma = default_gamma(rows - center, shares) if gamma is None else gamma
    exact = len(rows) < MOST_EXACT
    landmarks = rows if exact else rows[_drawn(shares, n_components, random)]
    to_features = _orthonormal(kernel_values(kernel, landmarks, landmarks, center, gamma))
    values = kernel_values(kernel, rows, landmarks, center, gamma)
    axes = principal_axes(np.einsum("nm,mp->np", values, to_features), shares, n_components)
    return Embedding(axes, FeatureMap(center, kernel, gamma, landmarks), to_features)


def default_gamma(centred: Array, shares: Array) -> float:
    """Compute one over the number of columns times their mean variance, as scikit-learn's ``gamma="scale"``."""
    largest = float(np.abs(centred).max(initial=0.0))
    if largest == 0:
        return 1.0
    unit = centred / largest
    gamma = (1 / float(np.einsum("n,np,np->", shares, unit, unit))) / largest / largest
    if not 0 < gamma < np.inf:
        raise ValueError(f"rows deviate by up to {largest:.0e}, too far for an RBF kernel: rescale X")
    return gamma


def _drawn(shares: Array, size: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Draw distinct rows by weight: those with the smallest exponential variates divided by weights."""
    keys = -np.log1p(-random.random(len(shares))) / shares
    return np.sort(np.argsort(keys, kind="stable")[:size])


def _orthonormal(gram: Array) -> Array:
    """Return the map from kernel values with landmarks to features whose inner products are the kernel's."""
    size = float(np.abs(gram).max(initial=0.0))
    if not np.allclose(gram, gram.T, rtol=0, atol=1e-8 * size):
        raise ValueError(
            "the kernel is not symmetric: kernel(X, X) differs from its transpose by up to "
            f"{np.abs(gram - gram.T).max():.3g}"
        )
    values, vectors = linalg.eigh((gram + gram.T) / 2, check_finite=False)
    largest = float(np.abs(values).max(initial=0.0))
    if values[0] < -NEGATIVE * largest:
        raise ValueError(
            f"the kernel is not positive semi-definite on these rows: its matrix has eigenvalues from {values[0]:.3g} "
            f"to {values[-1]:.3g}. Use one that is, such as 'rbf', or add {-values[0]:.3g} to its diagonal"
        )
    kept = values > SMALLEST * largest
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))
