"""Weights, groups, covariates, labels and lengths beside the rows: masks and dates are no numbers there either."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
import pytest

import majorant as mj

from .estimators import ESTIMATORS, ROWS, N, make, target

BESIDE: dict[str, Any] = {
    "y": np.arange(N) % 2.0,
    "sample_weight": np.ones(N),
    "sequence_weight": np.ones(1),
    "groups": np.repeat(np.arange(N // 3), 3),
    "gating": ROWS[:, 0],
    "offset": np.zeros(N),
    "trials": np.ones(N),
    "component_labels": np.full(N, -1),
    "bags": np.repeat(np.arange(N // 3), 3),
    "lengths": np.array([N]),
}
ARGUMENTS = [
    (cls, name)
    for cls in ESTIMATORS
    for name in signature(cls.fit).parameters
    if name in BESIDE and (name != "y" or target(cls, N) is not None)
]
NUMBERS = [(cls, name) for cls, name in ARGUMENTS if name not in ("y", "groups", "bags")]


def fit(cls: type[Any], **beside: Any) -> Any:
    return make(cls, 1).fit(ROWS, **{"y": target(cls, N), **beside})


@pytest.mark.parametrize(("cls", "name"), ARGUMENTS)
def test_masked_entries_are_refused_by_name(cls: type[Any], name: str) -> None:
    values = np.ma.masked_array(BESIDE[name], mask=np.arange(len(BESIDE[name])) == len(BESIDE[name]) - 1)
    with pytest.raises(ValueError, match=f"{name} is a masked array with 1 masked cells"):
        fit(cls, **{name: values})


@pytest.mark.parametrize(("cls", "name"), NUMBERS)
def test_dates_are_refused_by_name(cls: type[Any], name: str) -> None:
    for kind in ("M8[D]", "m8[s]"):
        with pytest.raises((TypeError, ValueError), match=rf"{name}|covariate .* must hold numbers"):
            fit(cls, **{name: BESIDE[name].astype(np.int64).astype(kind)})


@pytest.mark.parametrize("what", ["masked", "dates"])
def test_regions_and_views_are_asked_too(what: str) -> None:
    part = ROWS[:, :2]
    wrong = np.ma.masked_greater(part, 50) if what == "masked" else part.astype("M8[D]")
    said = "masked cells" if what == "masked" else "dates or durations|datetime64"
    y = np.arange(N) % 2
    with pytest.raises((TypeError, ValueError), match=said):
        mj.LatentSVC().fit([part[:3], wrong[:30], *part[30:, None]], y[: N - 28])
    with pytest.raises((TypeError, ValueError), match=said):
        mj.LatentSVC().fit(np.ma.asarray(wrong)[:, None] if what == "masked" else wrong[:, None], y)
    with pytest.raises((TypeError, ValueError), match=said):
        mj.ReconfigurableBagOfWords().fit(wrong[:, None], y)
    views = {"one": mj.Gaussian(), "two": mj.Gaussian()}
    with pytest.raises((TypeError, ValueError), match=said):
        mj.Harmonium(views=views).fit({"one": part, "two": wrong})
