"""The life of every public estimator: copied, refitted, interrupted, used on threads and in other processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import majorant as mj
from majorant._progress import Watch, watched_by
from majorant.registry import card_of

from .estimators import (
    ESTIMATORS,
    NAMES,
    ROWS,
    N,
    assert_same_fit,
    fit,
    make,
    predicted,
    reference,
    target,
)

# Some rows here tell nothing of their target: whether the best weights are zero is then a matter of rounding.
pytestmark = pytest.mark.filterwarnings("ignore:the fit is stuck at zero:sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(params=ESTIMATORS, ids=lambda cls: cls.__name__)
def model(request: pytest.FixtureRequest) -> type[Any]:
    """Each public estimator."""
    cls: type[Any] = request.param
    return cls


def round_trips() -> dict[str, Callable[[Any, Path], Any]]:
    def saved(fitted: Any, path: Path) -> Any:
        from majorant.persistence import load

        fitted.save(path / "model.majorant")
        return load(path / "model.majorant")

    return {
        "pickle": lambda fitted, _: pickle.loads(pickle.dumps(fitted)),
        "deep copy": lambda fitted, _: copy.deepcopy(fitted),
        "save and load": saved,
    }


@pytest.mark.parametrize("way", round_trips())
def test_a_fitted_model_comes_back_the_same(model: type[Any], way: str, tmp_path: Path) -> None:
    fitted = fit(model, pd.DataFrame(ROWS, columns=NAMES))
    again = round_trips()[way](fitted, tmp_path)
    assert_same_fit(again, fitted)
    assert again.get_params() == fitted.get_params()
    assert again.search_ == fitted.search_
    assert list(again.feature_names_in_) == NAMES
    X = pd.DataFrame(ROWS, columns=NAMES)
    np.testing.assert_array_equal(predicted(again, X), predicted(fitted, X))


def test_a_clone_is_unfitted_and_fits_the_same(model: type[Any]) -> None:
    fitted = reference(model)
    copy_ = clone(fitted)
    with pytest.raises(NotFittedError):
        check_is_fitted(copy_)
    assert_same_fit(copy_.fit(ROWS, target(model, N)), fitted)


def test_a_refit_forgets_the_fit_before(model: type[Any]) -> None:
    estimator = fit(model, pd.DataFrame(ROWS[:30, :2], columns=NAMES[:2]))
    estimator.fit(ROWS, target(model, N))
    lazy = {"_errors_of_the_fit", "standard_errors_"}  # the one becomes the other when somebody asks
    assert vars(estimator).keys() - lazy == vars(reference(model)).keys() - lazy
    assert_same_fit(estimator, reference(model))


SEARCHES_IN_PASSES = {mj.GaussianMixture, mj.HiddenMarkovModel, mj.DiscriminativeLatentClasses}
"""Models whose search reads these rows by passes, most of them after something can be kept."""


class Interrupted:
    """Interrupts a pass over the data; counts those before it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
        passes = mj.Chunks.map_sum
        self.count = 0

        def map_sum(chunks: Any, f: Any) -> Any:
            self.count += 1
            if self.count == at:
                raise KeyboardInterrupt
            return passes(chunks, f)

        monkeypatch.setattr(mj.Chunks, "map_sum", map_sum)


def n_passes(model: type[Any], X: Any) -> int:
    """Passes over the data that a whole fit makes."""
    with pytest.MonkeyPatch.context() as patch:
        counted = Interrupted(patch, at=0)
        fit(model, X)
    return counted.count


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_an_interrupted_first_fit_leaves_the_estimator_unfitted(
    model: type[Any], share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimator = make(model)
    before = dict(vars(estimator))
    Interrupted(monkeypatch, at=1 + round(share * (n_passes(model, ROWS) - 1)))
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(ROWS, target(model, N))
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)
    assert vars(estimator) == before


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # stopped, it has not converged
def test_a_stopped_search_keeps_its_best(model: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped at any pass, a fit that is followed is either whole and says that it was stopped, or was not begun."""
    kept = 0
    for at in np.unique(np.linspace(1, n_passes(model, ROWS), 6, dtype=int)):
        estimator = make(model)
        with pytest.MonkeyPatch.context() as patch, watched_by(Watch(is_silent=True, keeps_best=True)) as watch:
            Interrupted(patch, at=int(at))
            try:
                estimator.fit(ROWS, target(model, N))
            except KeyboardInterrupt:
                assert not watch.is_stopped or vars(estimator) == vars(make(model))
                continue
        assert estimator.search_.is_stopped == watch.is_stopped
        assert len(predicted(estimator, ROWS)) == N
        assert ("stopped before its end" in str(estimator.summary())) == watch.is_stopped
        kept += watch.is_stopped
    if model in SEARCHES_IN_PASSES:
        assert kept


@pytest.mark.parametrize("failure", ["interrupt", "wrong rows", "wrong parameter"])
def test_a_failed_refit_leaves_the_fit_before(model: type[Any], failure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = fit(model, pd.DataFrame(ROWS, columns=NAMES))
    before = dict(vars(estimator))
    if failure == "interrupt":
        Interrupted(monkeypatch, at=n_passes(model, ROWS[:30, :2]))
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(ROWS[:30, :2], target(model, 30))
    elif failure == "wrong rows":
        with pytest.raises(ValueError, match="n_samples=1"):
            estimator.fit(ROWS[:1, :2], target(model, 1))
    else:
        size = card_of(model).size_parameter or "n_init"
        estimator.set_params(**{size: -1})
        with pytest.raises(ValueError, match=f"{size}.*-1"):
            estimator.fit(ROWS[:30, :2], target(model, 30))
        estimator.set_params(**{size: before[size]})
    monkeypatch.undo()
    assert vars(estimator).keys() == before.keys()
    assert all(value is before[name] or value == before[name] for name, value in vars(estimator).items())
    X = pd.DataFrame(ROWS, columns=NAMES)
    np.testing.assert_array_equal(predicted(estimator, X), predicted(reference(model), ROWS))


def test_an_interrupt_on_threads_ends_the_fit(model: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Raised by a block's work, not between passes."""
    blocks = 0

    def broken(visit: Any) -> Any:
        def walk(chunks: Any, f: Any, *shape: Any) -> Any:
            def interrupted(block: Any) -> Any:
                nonlocal blocks
                blocks += 1
                if blocks > 4:
                    raise KeyboardInterrupt
                return f(block)

            return visit(chunks, interrupted, *shape)

        return walk

    for name in ("map_sum", "map_rows"):
        monkeypatch.setattr(mj.Chunks, name, broken(getattr(mj.Chunks, name)))
    estimator = make(model, 3, n_jobs=2)
    X = np.random.default_rng(0).normal(size=(20_000, 3))
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(X, target(model, len(X)))
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # a regression has no target here
def test_four_fits_at_once(model: type[Any]) -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = target(model, len(X))
    settings = [make(model, 3, random_state=seed, n_jobs=1 + seed) for seed in range(2)]
    alone = [clone(estimator).fit(X, y) for estimator in settings]
    with ThreadPoolExecutor(4) as pool:
        at_once = pool.map(lambda e: clone(e).fit(X, y), settings * 4)
        for fitted, expected in zip(at_once, alone * 4, strict=True):
            assert_same_fit(fitted, expected)


def test_predictions_on_threads_at_once(model: type[Any]) -> None:
    fitted = reference(model)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda X: predicted(fitted, X), [ROWS] * 8):
            np.testing.assert_array_equal(found, predicted(fitted, ROWS))


@pytest.fixture(scope="module")
def other_process() -> Iterator[Any]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        yield pool


def test_a_fit_in_a_spawned_process(model: type[Any], other_process: Any) -> None:
    fitted = other_process.apply(make(model).fit, (ROWS, target(model, N)))
    assert_same_fit(fitted, reference(model))
