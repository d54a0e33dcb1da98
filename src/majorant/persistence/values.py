"""What the fitted attributes of a loaded model can be: their shapes, and the values that a fit can end at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.persistence.errors import SavedModelError
from majorant.registry import card_of

ROUNDED = 1e-4
"""Weights of single precision are one in sum but for this."""
SIZES = (
    "weights_",
    "shares_",
    "sizes_",
    "scale_",
    "variance_",
    "_variances_",
    "rates_",
    "temperature_",
    "distribution_",
    "confusion_",
)
"""Ends of the names of estimates that are never negative."""
POSITIVE = ("covariances_", "precisions_cholesky_", "variances_", "item_scale_", "y_scale_", "noise_variance_")
"""Ends of the names of estimates that are never zero; of matrices, the diagonals."""
LARGEST = 1e150
"""Estimates have squares, but for those in units of the data."""
IN_UNITS = ("means_", "cluster_centers_", "__center_", "prototypes_", "center_fits_", "intercept_", "y_mean_")
"""Ends of the names of estimates that are as large as the data are."""
OF_ANY = {
    "confusion_": "cc",
    "labels_": "n",
    "responsibilities_": "nk",
    "class_weights_": "k",
    "class_contrasts_": "kd",
    "never_together_": "0 q2",
    "gating_center_": "g",
    "gating_scale_": "g",
    **dict.fromkeys(("l2_path_", "penalty_path_", "loss_weight_path_"), "*2"),
}
"""Shapes of what models say of their fits, whichever models they are."""
COUNTS = {"n_active_classes_": "class_weights_", "rank_": "components_"}
"""Numbers of parts, and the estimates that have one row for each part at least."""
PROBABILITIES = ("probabilities_", "transitions_")
"""Ends of the names of estimates that lie between 0 and 1."""


def check_estimates(estimator: Any) -> None:
    """Refuse a model that lacks what predictions read, or in which it is not what a fit can end at."""
    card = card_of(estimator)
    of_density = tuple(f"{name}_" for name in getattr(estimator, "estimate_names_", ()))
    # Parameters that were given, not fitted, have no objective.
    of_fit = (card.objective_attribute,) if hasattr(estimator, "search_") else ()
    for name in ("n_features_in_", *of_fit, *card.estimates, *of_density):
        if not hasattr(estimator, name):
            raise SavedModelError(f"it lacks {name}, without which a {card.title} tells nothing")
    for name in (*card.estimates, *of_density):
        if np.asarray(getattr(estimator, name)).dtype.kind not in "iuf":
            raise SavedModelError(f"its {name} does not hold numbers")
    _check_columns(estimator)
    # Estimates of several densities are named by their columns.
    of_parts = {own: text for own in of_density for name, text in card.shapes.items() if own.endswith(f"_{name}")}
    squares = _check_shapes(estimator, {**of_parts, **card.shapes})
    for name in dict.fromkeys((*card.estimates, *of_density, *card.shapes, "classes_", "confusion_", "class_weights_")):
        if getattr(estimator, name, None) is not None:
            value = np.asarray(getattr(estimator, name))
            is_stack = name.endswith("covariances_") and value.ndim == 3 and value.shape[1] == value.shape[2]
            _check_numbers(name, value, name in squares or is_stack)
    for name, estimates in COUNTS.items():
        n, parts = getattr(estimator, name, 0), getattr(estimator, estimates, None)
        if parts is not None and n not in range(len(parts) + 1):
            raise SavedModelError(f"its {name} is {n}, and its {estimates} are of {len(parts)}")
    weights = getattr(estimator, "weights_", None)
    if weights is not None and abs(float(np.sum(weights)) - 1) > ROUNDED:
        raise SavedModelError(f"its weights_ are {float(np.sum(weights)):g} in sum, and always 1")
    if hasattr(estimator, "check_estimates"):
        try:
            estimator.check_estimates()
        except (ValueError, np.linalg.LinAlgError) as error:
            raise SavedModelError(str(error)) from error


def _check_columns(estimator: Any) -> None:
    """Refuse numbers of rows or columns that are none, and columns that have other names or outnumber all estimates."""
    n, names = estimator.n_features_in_, getattr(estimator, "feature_names_in_", None)
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise SavedModelError(f"its n_features_in_ is {n!r}, and a whole number from 1")
    n_rows = getattr(estimator, "n_rows_", 1)
    if not isinstance(n_rows, int | float | np.number) or not 0 < n_rows < np.inf:
        raise SavedModelError(f"its n_rows_ is {n_rows!r}, and a positive number")
    if n > sum(value.size for value in vars(estimator).values() if isinstance(value, np.ndarray)):
        raise SavedModelError(f"its n_features_in_ is {n}, and it has not that many estimates")
    if names is not None and np.shape(names) != (n,):
        raise SavedModelError(f"its feature_names_in_ have shape {np.shape(names)}, and it has {n} columns")


def _check_shapes(estimator: Any, shapes: Mapping[str, str]) -> set[str]:
    """Refuse arrays whose shapes do not agree, and return the names of those that hold square matrices."""
    kind = getattr(estimator, "covariance_type_", getattr(estimator, "covariance_type", None))
    sizes = {"0": 0, "1": 1, "2": 2, "d": int(estimator.n_features_in_)}
    if hasattr(estimator, "classes_"):
        sizes["c"] = len(estimator.classes_)
    if getattr(estimator, "gating_names_in_", None) is not None:
        n_gating = int(np.size(estimator.gating_names_in_))
        sizes.update(g=n_gating, h=n_gating + 1)
    if getattr(estimator, "kernel_axes_", None) is None:
        sizes["m"] = sizes["d"]
    squares = set()
    for name, text in {"classes_": "c", **shapes, **OF_ANY}.items():
        if getattr(estimator, name, None) is None:
            continue
        try:
            found = np.shape(getattr(estimator, name))
        except ValueError as error:
            raise SavedModelError(f"its {name} has rows of different lengths") from error
        of_kind = [
            letters for choice, _, letters in (one.rpartition(":") for one in text.split(" ")) if choice in ("", kind)
        ]
        fitting = [letters for letters in of_kind if _sizes_of(letters, found, sizes) is not None]
        if not fitting:
            expected = " or ".join(
                f"({', '.join(str(sizes.get(letter, 'any')) for letter in letters)})" for letters in of_kind
            )
            raise SavedModelError(f"its {name} has shape {found}, and its other estimates go with {expected}")
        sizes.update(_sizes_of(fitting[0], found, sizes) or {})
        if len(fitting[0]) > 1 and fitting[0][-1] == fitting[0][-2]:
            squares.add(name)
    labels = np.asarray(getattr(estimator, "labels_", ()))
    if labels.size and not 0 <= labels.min() <= labels.max() < sizes.get("k", labels.size):
        raise SavedModelError(f"its labels_ are from {labels.min():g} to {labels.max():g}, and there are no such parts")
    return squares


def _sizes_of(letters: str, shape: tuple[int, ...], sizes: Mapping[str, int]) -> dict[str, int] | None:
    """Return the size that each letter has in a shape, None if that contradicts the sizes known."""
    before, star, after = letters.partition("*")
    if len(shape) < len(before + after) or (not star and len(shape) != len(letters)):
        return None
    found: dict[str, int] = {}
    ends = shape[len(shape) - len(after) :]
    for letter, n in zip(before + after, (*shape[: len(before)], *ends), strict=True):
        if {**sizes, **found}.get(letter, n) != n:
            return None
        found[letter] = n
    return found


def _check_numbers(name: str, value: NDArray[Any], is_square: bool) -> None:
    if value.dtype.kind not in "iuf":
        if name == "classes_":
            return
        raise SavedModelError(f"its {name} does not hold numbers")
    if value.size == 0:
        return
    if np.isnan(value).any():
        raise SavedModelError(f"its {name} holds NaN, which no fit ends at")
    largest = value.flat[np.argmax(np.abs(value))]
    if f"_{name}".endswith((*SIZES, *PROBABILITIES)) and (value < 0).any():
        raise SavedModelError(f"its {name} holds {value.min():g}, and is never negative")
    if name.endswith(PROBABILITIES) and (value > 1 + ROUNDED).any():
        raise SavedModelError(f"its {name} holds {value.max():g}, and is never above 1")
    if not np.isfinite(largest) or (abs(largest) > LARGEST and not f"__{name}".endswith(IN_UNITS)):
        raise SavedModelError(f"its {name} holds {largest:g}, which no fit ends at")
    least = np.min(np.diagonal(value, axis1=-2, axis2=-1) if is_square else value)
    if name.endswith(POSITIVE) and least <= 0:
        raise SavedModelError(f"its {name} holds {least:g} where it is always positive")
    if name.endswith("covariances_") and is_square:
        _check_covariances(name, value)


def _check_covariances(name: str, value: NDArray[Any]) -> None:
    units = np.sqrt(np.diagonal(value, axis1=-2, axis2=-1))
    correlations = value / (units[..., :, None] * units[..., None, :])
    lowest = np.linalg.eigvalsh(correlations).min()
    if np.abs(correlations - np.swapaxes(correlations, -1, -2)).max() > ROUNDED or lowest < -ROUNDED:
        raise SavedModelError(f"its {name} hold a matrix that is not positive definite")
