"""Every public estimator, and the few things that a test asks of any of them: a new model is tested by being public."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

import majorant as mj
from majorant import registry
from majorant.registry import card_of

ESTIMATORS: list[type[Any]] = [
    public
    for public in (getattr(mj, name) for name in mj.__all__)
    if isinstance(public, type) and issubclass(public, BaseEstimator) and public in registry.ESTIMATORS.values()
]
"""All but what does not take a table, and therefore has no card."""


PENALISED = {mj.LatentSVC, mj.ReconfigurableBagOfWords, mj.Harmonium, mj.HarmoniumClassifier, mj.HarmoniumRegressor}
"""Their objective is a mean loss and a penalty on weights: units and origin of X matter, the size of sample weights
does not, and how many parts they have is no question of the rows."""

IN_TIME = {cls for cls in ESTIMATORS if card_of(cls).in_order}
"""Their rows come one after the other: equal ones may be of different parts, and their order matters."""

SETTINGS: dict[type[Any], dict[str, Any]] = {mj.ReconfigurableBagOfWords: {"n_parts": 3, "alpha": 10.0}}
"""What makes a fit quick to rows whose numbers are near a hundred and whose target tells nothing."""


def make(cls: type[Any], size: int = 3, **parameters: Any) -> Any:
    """An unfitted estimator of some size with a fixed seed."""
    name = card_of(cls).size_parameter
    sized = {} if name is None else {name: size}
    return cls(**{**sized, "random_state": 0, **SETTINGS.get(cls, {}), **parameters})


def target(cls: type[Any], n_rows: int) -> NDArray[np.float64] | None:
    """A target of so many rows for a model that needs one.

    Of two values where there is a penalty: with seven that the rows do not tell, weights of zero would be the best.
    """
    n_values = 2.0 if cls in PENALISED else 7.0
    return np.arange(n_rows) % n_values if card_of(cls).needs_target else None


def target_of(cls: type[Any], X: Any) -> NDArray[np.float64] | None:
    """A target of as many rows as X has, none for what has no rows."""
    return target(cls, X.shape[0] if hasattr(X, "shape") else len(X) if hasattr(X, "__len__") else 0)


def fit(cls: type[Any], X: Any, size: int = 3, **fit_params: Any) -> Any:
    """A fitted estimator of some size."""
    return make(cls, size).fit(X, target_of(cls, X), **fit_params)


def objective(fitted: Any) -> float:
    """The fitted objective, by whatever name the model has for it."""
    return float(getattr(fitted, card_of(fitted).objective_attribute))


def predicted(fitted: Any, X: Any) -> NDArray[Any]:
    """What a model says of rows: its prediction, or its representation of them."""
    return np.asarray(fitted.predict(X) if hasattr(fitted, "predict") else fitted.transform(X))


def labels(fitted: Any, X: Any, y: Any = None) -> NDArray[Any]:
    """The part of every row, or where rows have none the side of the first component that it is on."""
    if isinstance(fitted, mj.Harmonium | mj.HarmoniumRegressor):
        return fitted.transform(X)[:, 0] > 0
    return np.asarray(fitted.classify(X, y) if hasattr(fitted, "classify") else fitted.predict(X))


def partition(found: NDArray[Any]) -> NDArray[np.intp]:
    """Labels renumbered by first appearance, so that equal partitions are equal arrays."""
    names, first, inverse = np.unique(found, return_index=True, return_inverse=True)
    rank = np.empty(len(names), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(names))
    return rank[inverse]


def numbers(fitted: Any) -> dict[str, NDArray[Any]]:
    """All numeric public fitted attributes."""
    arrays = {name: np.asarray(value) for name, value in vars(fitted).items() if name.endswith("_") and name[0] != "_"}
    return {name: array for name, array in arrays.items() if array.dtype.kind in "biuf"}


def assert_finite(fitted: Any) -> None:
    """No NaN and no infinity in any public attribute."""
    for name, value in numbers(fitted).items():
        assert np.isfinite(value).all(), name


NAMES = ["a", "b", "c"]


def three_groups() -> NDArray[np.float64]:
    """Whole numbers from 0 to 100 in three groups far apart: exact in every number type, and of one best partition."""
    random = np.random.default_rng(7)
    centres = np.array([[10, 20, 80], [60, 90, 15], [90, 20, 30]])
    rows = np.repeat(centres, 15, axis=0) + random.integers(-8, 9, (45, 3))
    return random.permutation(rows).astype(np.float64)


ROWS = three_groups()
N = len(ROWS)


@cache
def reference(cls: type[Any]) -> Any:
    """The fit that others are held against, made once: leave it as it is."""
    return fit(cls, ROWS)


def assert_same_fit(fitted: Any, expected: Any) -> None:
    """Bitwise, in all public attributes but the names of the columns, and in every iteration of the trace."""
    assert numbers(fitted) and numbers(fitted).keys() == numbers(expected).keys()
    for name, value in numbers(expected).items():
        np.testing.assert_array_equal(getattr(fitted, name), value, err_msg=name)
    np.testing.assert_equal(fitted.trace_.to_state(), expected.trace_.to_state())
