"""Labels of a classifier: classes with weight, their factors, costs, numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._numbers import briefly
from majorant._validation import refuse_one_class


def learnt_classes(labels: NDArray[Any], weights: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Find the labels with weight, and the number of each sample's label among them, -1 if it has no weight.

    Raises
    ------
    ValueError
        If fewer than two labels have weight.
    """
    classes = np.unique(labels[weights > 0])
    refuse_one_class(classes, "" if (weights > 0).all() else ", among the samples with weight")
    codes = np.searchsorted(classes, labels)
    codes = np.where(codes < len(classes), codes, 0)
    return classes, np.where(classes[codes] == labels, codes, -1).astype(np.int32)


def label_costs(label_cost: Any, labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
    """Return the costs between labels with weight, from a table for all labels; by default 1 for every mistake."""
    if label_cost is None:
        return 1.0 - np.eye(len(classes))
    names = np.unique(labels)
    try:
        cost = np.asarray(label_cost, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"label_cost must be a table of numbers: {error}") from error
    if cost.shape != (len(names), len(names)):
        raise ValueError(
            f"label_cost must have a row and a column for each of the {len(names)} labels of y, in sorted order "
            f"({_some(names)}); got shape {cost.shape}"
        )
    if not np.isfinite(cost).all() or (cost < 0).any() or np.diag(cost).any():
        raise ValueError("label_cost must be finite and not negative, and zero on its diagonal")
    is_learnt = np.isin(names, classes)
    cost = cost[np.ix_(is_learnt, is_learnt)]
    if not 1e-6 <= cost.max() <= 1e6:
        raise ValueError(f"the largest entry of label_cost must lie between 1e-6 and 1e6; got {cost.max():g}")
    return cost


def class_factors(
    class_weight: Any, labels: NDArray[Any], classes: NDArray[Any], masses: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the factor of the weights of each class: "balanced" gives all classes the same mass."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.asarray(masses.sum() / (len(classes) * masses))
    if not isinstance(class_weight, dict):
        raise TypeError(
            f'class_weight must be None, "balanced" or a dict of numbers by label; got {briefly(class_weight)}'
        )
    names = np.unique(labels).tolist()
    unknown = [label for label in class_weight if label not in names]
    if unknown:
        told = f"which is no label of y ({_some(np.unique(labels))})"
        raise ValueError(f"class_weight names {briefly(unknown[0])}, {told}")
    factors = np.array([class_weight.get(label, 1.0) for label in classes.tolist()])
    if factors.dtype.kind not in "iuf" or not ((factors > 0) & (factors < np.inf)).all():
        raise ValueError(f"the numbers of class_weight must be positive and finite; got {briefly(class_weight)}")
    return factors.astype(np.float64)


def code_of_each(classes: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp]:
    """Return the number of the class of each label."""
    matches = classes == np.asarray(labels)[:, None]
    if not matches.any(axis=1).all():
        unknown = labels[int(np.flatnonzero(~matches.any(axis=1))[0])]
        raise ValueError(f"y holds a label that the fit did not see: {unknown}")
    return np.asarray(matches.argmax(axis=1))


def _some(names: NDArray[Any]) -> str:
    shown = ", ".join(map(str, names[:5]))
    return shown if len(names) <= 5 else f"{shown}, ..."
