"""Starting values and given parameters are numbers, as rows are."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

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


CENTRES = np.array([[0.0, 0.0], [4.0, 4.0]])
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
        given = cls(2, means_init=CENTRES, **settings).fit(rows)
        assert given.search_.n_starts == 1 and given.regular_


ONE_START = [
    *((mj.GaussianMixture, {"covariance_type": kind}, X) for kind in ("full", "tied", "diag", "spherical")),
    (mj.GaussianMixture, {"means_init": CENTRES}, X),
    (mj.GaussianMixture, {"init_params": "random"}, X),
    (mj.GaussianMixture, {}, np.where(np.arange(120).reshape(60, 2) % 7 == 0, np.nan, X)),
    (mj.LatentClassAnalysis, {}, ITEMS),
    (mj.LatentClassAnalysis, {"items": "normal"}, X),
    (mj.HiddenMarkovModel, {}, X),
    (mj.HiddenMarkovModel, {"emission": "categorical"}, ITEMS),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("cls", "settings", "rows"), ONE_START)
@pytest.mark.parametrize("steps", [(1, 1), (2, 3)])
def test_steps_of_a_warm_start_are_those_of_one_fit(
    cls: type[Any], settings: dict[str, Any], rows: Any, steps: tuple[int, int]
) -> None:
    once = cls(2, n_init=1, random_state=0, max_iter=sum(steps), **settings).fit(rows)
    twice = cls(2, n_init=1, random_state=0, max_iter=steps[0], warm_start=True, **settings).fit(rows)
    assert twice.n_iter_ == steps[0]
    twice.set_params(max_iter=steps[1]).fit(rows)
    assert twice.log_likelihood_ == pytest.approx(once.log_likelihood_, rel=1e-12)
    for name in once.estimate_names_:
        # A warm start keeps the order of the components, also where the first is no longer the largest.
        of_each = (np.sort(getattr(model, f"{name}_"), axis=None) for model in (twice, once))
        np.testing.assert_allclose(*of_each, rtol=1e-8, atol=1e-10)


HALVES = np.repeat([0, 1], 30)
FROM_ONE: dict[str, Callable[..., Any]] = {
    "KMeans": lambda **settings: mj.KMeans(2, init=CENTRES, **settings).fit(X),
    "KMeans within sizes": lambda **settings: mj.KMeans(2, init=CENTRES, size_min=20, **settings).fit(X),
    "KMeans by Lloyd": lambda **settings: mj.KMeans(2, init=CENTRES, algorithm="lloyd", **settings).fit(X),
    "GaussianMixture": lambda **settings: mj.GaussianMixture(2, means_init=CENTRES, **settings).fit(X),
    "RegressionMixture": lambda **settings: mj.RegressionMixture(2, init={"coef": [[0.1], [1.0]]}, **settings).fit(
        X[:, :1], X[:, 1]
    ),
    "DiscriminativeClustering": lambda **settings: mj.DiscriminativeClustering(2, init=HALVES, **settings).fit(X),
    "DiscriminativeLatentClasses": lambda **settings: mj.DiscriminativeLatentClasses(2, init=HALVES, **settings).fit(
        X, HALVES
    ),
}


@pytest.mark.parametrize("model", FROM_ONE)
def test_starts_that_would_all_be_the_given_one_are_told(model: str) -> None:
    alone = FROM_ONE[model]().search_
    assert FROM_ONE[model](n_init=1).search_.starts == alone.starts
    with pytest.warns(RuntimeWarning, match="only one init, not n_init=5"):
        assert FROM_ONE[model](n_init=5).search_.starts == alone.starts


def test_every_model_with_a_warm_start_is_tried() -> None:
    assert {cls for cls in ESTIMATORS if "warm_start" in make(cls).get_params()} == {cls for cls, *_ in WARM}


FITTED: dict[str, Callable[..., Any]] = {
    "KMeans": lambda **settings: mj.KMeans(3, random_state=0, **settings).fit(X),
    "KMeans within sizes": lambda **settings: mj.KMeans(3, size_min=15, random_state=0, **settings).fit(X),
    "KMeans by cosines": lambda **settings: mj.KMeans(3, metric="cosine", random_state=0, **settings).fit(X),
    "GaussianMixture": lambda **settings: mj.GaussianMixture(2, random_state=0, **settings).fit(X),
    "few rows": lambda **settings: mj.GaussianMixture(2, covariance_type="tied", random_state=0, **settings).fit(
        X[::2]
    ),
    "RegressionMixture": lambda **settings: mj.RegressionMixture(2, random_state=0, **settings).fit(X[:, :1], X[:, 1]),
    "LatentClassAnalysis": lambda **settings: mj.LatentClassAnalysis(2, random_state=0, **settings).fit(ITEMS),
    "HiddenMarkovModel": lambda **settings: mj.HiddenMarkovModel(2, random_state=0, **settings).fit(X),
}


@pytest.mark.parametrize("model", FITTED)
@pytest.mark.parametrize("n_init", [1, 4])
def test_so_many_starts_and_nothing_else(model: str, n_init: int) -> None:
    search = FITTED[model](n_init=n_init).search_
    assert search.n_starts == n_init and search.n_perturbations == 0 and not any(search.raced)
    assert all(start.converged for start in search.starts)
    auto = FITTED[model]().search_
    gain = (search.best - auto.best) * (1 if search.sense == "max" else -1)
    assert gain <= search.tolerance  # a search is no worse than its first starts


@pytest.mark.parametrize("model", FITTED)
def test_a_search_of_more_effort_makes_more_runs(model: str) -> None:
    n_runs = [len(FITTED[model](effort=effort).search_.starts) for effort in ("fast", "default", "best")]
    assert n_runs[0] <= n_runs[1] <= n_runs[2] and n_runs[0] < n_runs[2]
    with pytest.raises(ValueError, match="effort must be one of"):
        FITTED[model](effort="tight")


@pytest.mark.parametrize("max_iter", [1, 6, 30])
@pytest.mark.parametrize("n_init", [3, "auto"])
@pytest.mark.parametrize("model", [name for name in FITTED if "KMeans" not in name])
def test_runs_take_no_more_steps_than_they_may(model: str, n_init: int | str, max_iter: int) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fitted = FITTED[model](n_init=n_init, max_iter=max_iter)
    assert all(start.n_iter <= max_iter for start in fitted.search_.starts)
    assert fitted.converged_ or fitted.n_iter_ <= max_iter
    told = [one.category for one in said if f"did not converge within {max_iter} step" in str(one.message)]
    assert told == ([] if fitted.converged_ else [ConvergenceWarning])


@pytest.mark.parametrize("seed", [0, 4])
@pytest.mark.parametrize("n_init", [1, 2, 10])
def test_starts_that_end_degenerate_are_counted(n_init: int, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(60, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search = mj.GaussianMixture(6, n_init=n_init, random_state=seed).fit(rows).search_
    left_out = re.search(r"(\d+) of (\d+) runs ended at degenerate solutions", search.note)
    assert search.n_starts + (int(left_out[1]) if left_out else 0) == n_init
    assert all(start.converged for start in search.starts)


def test_lines_that_end_degenerate_are_counted() -> None:
    draws = np.random.default_rng(0)
    x = draws.normal(size=(240, 1))
    y = np.where(draws.random(240) < 0.5, 2, -2) * x[:, 0] + 0.1 * draws.normal(size=240)
    search = mj.RegressionMixture(3, n_init=9, random_state=0).fit(x, y).search_
    left_out = re.search(r"(\d+) of 9 runs ended at degenerate solutions", search.note)
    assert left_out is not None and search.n_starts + int(left_out[1]) == 9


def test_starts_on_a_sample_are_each_continued() -> None:
    rows = np.random.default_rng(0).normal(size=(30_000, 2)) + np.repeat([[0.0], [9.0], [30.0]], 10_000, axis=0)
    search = mj.GaussianMixture(3, n_init=6, random_state=0).fit(rows).search_
    assert search.n_starts == 6


def test_a_converged_search_is_not_called_cut_short() -> None:
    """The last run, on all rows, has steps of its own where the best of the search had enough."""
    model = mj.GaussianMixture(2, effort="fast", max_iter=60, random_state=0).fit(X)
    assert model.converged_
    for max_iter in range(20, 60, 4):
        fitted = mj.GaussianMixture(2, effort="fast", max_iter=max_iter, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            best = fitted.fit(X).search_
        assert fitted.converged_ or not all(start.converged for start in best.starts)


@pytest.mark.parametrize("seed", range(3))
def test_starts_that_were_not_raced_are_not_said_to_be(seed: int) -> None:
    rows = np.random.default_rng(4).normal(size=(60, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = mj.GaussianMixture(6, n_init=2, random_state=seed + 3).fit(rows).search_
    assert "were compared" not in search.note and not any(search.raced)
