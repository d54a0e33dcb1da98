"""Images as they are given, and their regions as rows and as units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant.models.latent_svm.bags import Samples, read_samples


@dataclass(frozen=True)
class Images:
    """Images of equally many regions.

    Attributes
    ----------
    samples : Samples
        Their regions as rows.
    shape : tuple of int
        (rows, columns) of the grid, (regions,) where there is none, () for one region.
    """

    samples: Samples
    shape: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def n_regions(self) -> int:
        return int(np.prod(self.shape, dtype=int))


def read_images(estimator: Any, X: Any, *, reset: bool) -> Images:
    """Check images in any of the forms that an estimator takes.

    Parameters
    ----------
    estimator
        Its ``n_features_in_`` and ``feature_names_in_`` are set, or compared.
    X : array-like
        Of shape (images, rows, columns, features), (images, regions, features) or (images, features).
    reset : bool

    Raises
    ------
    ValueError, TypeError
    """
    if sparse.issparse(X):
        raise TypeError("Sparse data was passed for X, but dense data is required: use X.toarray()")
    if not hasattr(X, "shape") and isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) > 1:
        shapes = sorted({np.shape(x) for x in X})
        if len(shapes) > 1:
            raise ValueError(
                f"images must all be cut into the same grid of regions; got some of shape {shapes[0]} and some of "
                f"{shapes[-1]}"
            )
        X = np.asarray(X)
    shape: tuple[int, ...] = tuple(getattr(X, "shape", ()))[1:-1]
    if len(shape) > 2:
        raise ValueError(
            f"Found array with dim {len(shape) + 2}, while dim <= 4 is required: X must have the axes images, rows, "
            "columns, features"
        )
    if not shape:
        return Images(read_samples(estimator, X, None, reset=reset), ())
    X = np.asarray(X)
    if 0 in shape:
        raise ValueError(f"images must have regions; got X of shape {X.shape}")
    samples = read_samples(estimator, X.reshape(len(X), int(np.prod(shape)), X.shape[-1]), None, reset=reset)
    few = np.flatnonzero(samples.counts < np.prod(shape))
    if len(few):
        raise ValueError(
            f"Input X contains NaN: image {few[0]}, region {samples.counts[few[0]]}. Every region of every image must "
            "have features"
        )
    return Images(samples, shape)


def unit_positions(positions: NDArray[np.intp], n_regions: int) -> NDArray[np.intp]:
    """Where the regions of images are that are now at `positions` (-1: gone)."""
    units = positions[:, None] * n_regions + np.arange(n_regions)
    return np.where(positions[:, None] < 0, -1, units).ravel()
