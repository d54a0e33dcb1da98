"""Weights, groups, covariates, labels and lengths beside the rows: masks and dates are no numbers there either."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import is_regressor

import majorant as mj

from .estimators import ESTIMATORS, ROWS, N, make, reference, target

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
NUMBERS = [
    (cls, name)
    for cls, name in ARGUMENTS
    if name not in ("groups", "bags") and (name != "y" or is_regressor(make(cls)))
]

SCORED = [cls for cls in ESTIMATORS if hasattr(cls, "score") and "sample_weight" in signature(cls.score).parameters]


def fit(cls: type[Any], **beside: Any) -> Any:
    return make(cls, 1).fit(ROWS, **{"y": target(cls, N), **beside})


@pytest.mark.parametrize(("cls", "name"), ARGUMENTS)
def test_masked_entries_are_refused_by_name(cls: type[Any], name: str) -> None:
    values = np.ma.masked_array(BESIDE[name], mask=np.arange(len(BESIDE[name])) == len(BESIDE[name]) - 1)
    with pytest.raises(ValueError, match=f"{name} is a masked array with 1 masked cell"):
        fit(cls, **{name: values})


def with_last(name: str, value: Any) -> Any:
    values = BESIDE[name].astype(object)
    values[-1] = value
    return values


DATED: dict[str, Callable[[str], Any]] = {
    "dates": lambda name: BESIDE[name].astype(np.int64).astype("M8[D]"),
    "durations": lambda name: BESIDE[name].astype(np.int64).astype("m8[s]"),
    "a list of durations": lambda name: list(BESIDE[name].astype(np.int64).astype("m8[s]")),
    "pandas dates": lambda name: pd.Series(pd.to_datetime(BESIDE[name].astype(np.int64), unit="D")),
    "a frame of durations": lambda name: pd.DataFrame({0: pd.to_timedelta(BESIDE[name].astype(np.int64), unit="D")}),
    "polars dates": lambda name: pl.Series(BESIDE[name].astype(np.int32)).cast(pl.Date),
    "a duration among objects": lambda name: with_last(name, np.timedelta64(1, "D")),
    "NaT among objects": lambda name: with_last(name, pd.NaT),
}


@pytest.mark.parametrize("kind", DATED)
@pytest.mark.parametrize(("cls", "name"), NUMBERS)
def test_dates_are_refused_by_name(cls: type[Any], name: str, kind: str) -> None:
    with pytest.raises(TypeError, match=rf"of {name} is .* duration|of {name} holds dates|^{name} holds dates"):
        fit(cls, **{name: DATED[kind](name)})


@pytest.mark.parametrize(("cls", "name"), NUMBERS)
def test_a_whole_number_that_is_no_float_is_refused_by_name(cls: type[Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"of {name} is a whole number that is too large"):
        fit(cls, **{name: with_last(name, 10**400)})


@pytest.mark.parametrize("value", [np.timedelta64(2, "D"), np.datetime64("2020-01-01")])
def test_a_duration_is_no_whole_number(value: Any) -> None:
    for name in ("n_init", "max_iter", "tol"):
        with pytest.raises(TypeError, match=f"{name} must be"):
            mj.GaussianMixture(2, **{name: value}).fit(ROWS)


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


@pytest.mark.parametrize("cls", SCORED)
@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_no_score_takes_weights_that_are_none(cls: type[Any], weight: float) -> None:
    fitted = reference(cls)
    with pytest.raises(ValueError, match=r"sample_weight must (not be negative|be finite)"):
        fitted.score(ROWS, target(cls, N), sample_weight=with_last("sample_weight", weight).astype(float))


@pytest.mark.parametrize("cls", [cls for cls, name in ARGUMENTS if name == "gating"], ids=lambda cls: cls.__name__)
def test_covariates_of_one_name_are_refused(cls: type[Any]) -> None:
    with pytest.raises(ValueError, match="gating has 2 columns named 'a': rename one of them, or leave it out"):
        fit(cls, gating=pd.DataFrame(ROWS, columns=["a", "b", "a"]))
