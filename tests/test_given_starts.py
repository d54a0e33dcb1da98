"""Starting values and given parameters are numbers, as rows are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import majorant as mj

from .estimators import ESTIMATORS, make

X = np.random.default_rng(3).normal(size=(60, 2)) + np.repeat([[0.0], [4.0]], 30, axis=0)
STEPS = np.array([[0.9, 0.1], [0.1, 0.9]])
GIVEN: dict[str, Callable[[Any], Any]] = {
    "KMeans": lambda start: mj.KMeans(2, init=start).fit(X),
    "GaussianMixture": lambda start: mj.GaussianMixture(2, means_init=start).fit(X),
    "from_parameters": lambda start: mj.GaussianMixture.from_parameters([0.5, 0.5], start, [np.eye(2)] * 2),
    "HiddenMarkovModel": lambda start: mj.HiddenMarkovModel.from_parameters(
        [0.5, 0.5], STEPS, means=start, covariances=[np.eye(2)] * 2
    ),
    "RegressionMixture": lambda start: mj.RegressionMixture(2, init={"coef": start}).fit(X, X[:, 0]),
}
WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "dates": (np.array([["NaT", "1970-01-02"], ["1970-01-01", "1970-01-05"]], dtype="M8[D]"), TypeError, "dates"),
    "durations": (np.ones((2, 2), dtype="m8[s]"), TypeError, "durations"),
    "masked cells": (
        np.ma.MaskedArray([[0.0, 0.0], [4.0, 99.0]], mask=[[False, False], [False, True]]),
        ValueError,
        "masked",
    ),
}


@pytest.mark.parametrize("model", GIVEN)
@pytest.mark.parametrize("kind", WRONG)
def test_what_is_no_number_is_no_start(model: str, kind: str) -> None:
    start, error, words = WRONG[kind]
    with pytest.raises(error, match=words):
        GIVEN[model](start)


ITEMS = np.random.default_rng(0).integers(0, 2, (60, 4)).astype(float)
WARM = [
    (mj.GaussianMixture, {}, X),
    (mj.GaussianMixture, {"beta": 0.9}, X),
    (mj.LatentClassAnalysis, {}, ITEMS),
    (mj.HiddenMarkovModel, {}, X),
]


@pytest.mark.parametrize(("cls", "settings", "rows"), WARM)
def test_a_start_from_which_nothing_is_drawn_is_run_once(cls: type[Any], settings: dict[str, Any], rows: Any) -> None:
    model = cls(2, n_init=3, warm_start=True, random_state=0, **settings).fit(rows)
    assert model.fit(rows).search_.n_starts == 1
    if cls is mj.GaussianMixture:
        given = cls(2, n_init=3, means_init=[[0.0, 0.0], [4.0, 4.0]], **settings).fit(rows)
        assert given.search_.n_starts == 1 and given.regular_


def test_every_model_with_a_warm_start_is_tried() -> None:
    assert {cls for cls in ESTIMATORS if "warm_start" in make(cls).get_params()} == {cls for cls, *_ in WARM}
