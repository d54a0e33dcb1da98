"""What the starts found, and the history of the one that was kept."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import majorant as mj
from majorant.search import SearchReport, StartRecord


def search(*objectives: float, **more: Any) -> SearchReport:
    return SearchReport(
        tuple(StartRecord("random rows", v, 3 + i, i % 2 == 0) for i, v in enumerate(objectives)), "SSE", **more
    )


def test_optima_are_counted_from_the_best() -> None:
    found = search(12.0, 10.0, 11.0, 10.0, 12.0, 10.0)
    assert found.n_starts == 6 and found.best == 10.0
    assert [(o.objective, o.n_hits, o.distance) for o in found.optima] == [
        (10.0, 3, 0.0),
        (11.0, 1, 1.0),
        (12.0, 2, 2.0),
    ]
    assert (found.n_distinct, found.n_hits, found.gap_to_second) == (3, 3, 1.0)
    np.testing.assert_array_equal(found.distances, [2, 0, 1, 0, 2, 0])


def test_higher_is_better_where_the_sense_says_so() -> None:
    found = search(-12.0, -10.0, -11.0, -10.0, sense="max")
    assert found.best == -10.0
    assert [(o.objective, o.n_hits, o.distance) for o in found.optima] == [
        (-10.0, 2, 0.0),
        (-11.0, 1, 1.0),
        (-12.0, 1, 2.0),
    ]
    assert found.gap_to_second == 1.0


@pytest.mark.parametrize("best", [1e-20, 1.0, -3.0, 4e7, 1e200])
@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize(("apart", "same"), [(0.0, True), (0.9e-6, True), (1.1e-6, False), (1e-3, False)])
def test_optima_within_a_millionth_are_one(best: float, sense: Any, apart: float, same: bool) -> None:
    worse = best + (1 if sense == "min" else -1) * abs(best) * apart
    found = search(worse, best, sense=sense)
    assert found.best == best
    assert found.n_distinct == (1 if same else 2)
    assert found.n_hits == (2 if same else 1)
    assert (found.gap_to_second is None) == same


def test_many_near_optima_do_not_chain() -> None:
    """Each is within the tolerance of the one before, not of the first."""
    found = search(*(1 + 0.4e-6 * np.arange(6)))
    assert [o.n_hits for o in found.optima] == [3, 3]


def test_optima_of_zero_are_one_only_if_equal() -> None:
    assert search(0.0, 0.0, 1e-300).n_hits == 2


def test_one_start_has_no_second() -> None:
    found = search(3.0)
    assert (found.n_starts, found.n_distinct, found.n_hits, found.gap_to_second) == (1, 1, 1, None)
    assert repr(found) == "SearchReport(1 start, 1 distinct optimum, best SSE 3 found 1 time)"


def searched(*values: float) -> SearchReport:
    """Descents by their objectives; a negative one is that of a start, the others are perturbations'."""
    return SearchReport(
        tuple(StartRecord("perturbation" if v > 0 else "k-means++", abs(v), 3, True) for v in values), "SSE"
    )


@pytest.mark.parametrize(
    ("values", "after", "by_chance"),
    [
        ((-9.0,), 0, False),
        ((-9.0, 9.0, 9.0, 9.0), 3, False),
        ((-9.0, 8.0, 7.0, 8.0, 8.0), 2, True),  # the second perturbation made the best: two came after it
        ((-9.0, 8.0, 7.0), 0, True),
        ((-7.0, 8.0, 9.0), 2, True),
        ((-7.0, 8.0, 9.0, 8.0, 8.0, 8.0), 5, False),
        ((-9.0, 7.0, 7.0, 8.0), 2, False),
        ((-9.0, 7.0, 8.0, -9.0, 8.0, 8.0), 1, True),  # perturbations of another search are not out of the best
        ((-9.0, 7.0, 8.0, -7.0, 8.0, 8.0), 3, False),
        ((-9.0, -7.0, -8.0, 8.0, 8.0), 2, True),  # a race of starts before the perturbations
    ],
)
def test_only_perturbations_after_the_best_was_found_speak_for_it(
    values: tuple[float, ...], after: int, by_chance: bool
) -> None:
    found = searched(*values)
    assert (found.n_perturbations_after_best, found.is_chance_find) == (after, by_chance)
    assert found.n_perturbations == sum(o.n_perturbations for o in found.optima) == sum(v > 0 for v in values)


def test_perturbations_are_not_called_starts() -> None:
    assert repr(searched(-9.0, 9.0, 9.0)).startswith("SearchReport(1 start and 2 perturbations, 1 distinct optimum")


@given(
    st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=30),
    st.sampled_from(["min", "max"]),
)
def test_every_start_belongs_to_one_optimum(objectives: list[float], sense: Any) -> None:
    found = search(*objectives, sense=sense)
    optima = found.optima
    assert sum(o.n_hits for o in optima) == found.n_starts
    assert optima[0].objective == found.best and optima[0].distance == 0
    assert [o.distance for o in optima] == sorted({o.distance for o in optima})
    assert found.best == (min if sense == "min" else max)(objectives)


def test_in_other_units() -> None:
    found = search(12.0, 10.0, proved_bound=9.0, note="kept").scaled(4.0)
    assert [s.objective for s in found.starts] == [48.0, 40.0]
    assert (found.proved_bound, found.note, found.gap_to_second) == (36.0, "kept", 8.0)
    assert [s.n_iter for s in found.starts] == [3, 4]
    assert search(1.0).scaled(2.0).proved_bound is None


def without(*libraries: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if libraries were not installed."""
    monkeypatch.setattr(
        "majorant._frames.find_spec", lambda name: None if name in libraries else importlib.util.find_spec(name)
    )


def test_as_a_data_frame_of_whichever_library_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    found = search(12.0, 10.0)
    frame = found.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["source", "objective", "n_iter", "converged", "distance"]
    assert frame["distance"].tolist() == [2.0, 0.0] and frame["converged"].tolist() == [True, False]
    without("pandas", monkeypatch=monkeypatch)
    other = found.to_frame()
    assert isinstance(other, pl.DataFrame)
    assert other.to_dict(as_series=False) == frame.to_dict("list")
    without("pandas", "polars", monkeypatch=monkeypatch)
    with pytest.raises(ImportError, match="pandas or polars: pip install"):
        found.to_frame()


@pytest.mark.parametrize(
    "found",
    [search(2.0, 1.0), search(-1.0, sense="max", proved_bound=3.0, note="n", n_degenerate=7, effort="best")],
    ids=repr,
)
def test_search_comes_back_from_its_state(found: SearchReport) -> None:
    assert SearchReport.from_state(found.to_state()) == found
    with pytest.raises(ValueError, match=r"sense.*'up'"):
        SearchReport.from_state({**found.to_state(), "sense": "up"})


def trace() -> mj.Trace:
    rows = mj.Trace()
    rows.add(objective=10.0, bound=12.0, gap=2.0, price=4.0, exploring=1.0)
    rows.add(objective=9.0, bound=9.0, gap=0.0, exploring=0.0)
    return rows


def test_a_trace_is_read_by_column_and_by_row() -> None:
    rows = trace()
    assert len(rows) == 2
    np.testing.assert_array_equal(rows["objective"], [10, 9])
    np.testing.assert_array_equal(rows["price"], [4, np.nan])
    assert [row["gap"] for row in rows] == [2.0, 0.0]
    assert repr(rows) == "Trace(2 iterations, objective 10 to 9)"
    assert repr(mj.Trace()) == "Trace(0 iterations)" and mj.Trace()["objective"].shape == (0,)
    with pytest.raises(KeyError, match=r"no column 'loss'.*objective"):
        rows["loss"]
    with pytest.raises(ValueError, match=r"no column \['loss'\].*objective"):
        rows.add(loss=1.0)


def test_a_trace_in_other_units() -> None:
    scaled = trace().scaled(2.0)
    np.testing.assert_array_equal(scaled["objective"], [20, 18])
    np.testing.assert_array_equal(scaled["gap"], [4, 0])
    np.testing.assert_array_equal(scaled["price"], [2, np.nan])
    np.testing.assert_array_equal(scaled["exploring"], [1, 0])
    np.testing.assert_array_equal(trace()["objective"], [10, 9])


def test_a_trace_comes_back_from_its_state() -> None:
    again = mj.Trace.from_state(trace().to_state())
    assert list(again) == list(trace())
    assert len(mj.Trace.from_state(mj.Trace().to_state())) == 0
    broken = {**trace().to_state(), "gap": np.zeros(3)}
    with pytest.raises(ValueError, match=r"one length.*\[2, 3\]"):
        mj.Trace.from_state(broken)


def test_a_trace_as_a_data_frame() -> None:
    frame = trace().to_frame()
    assert list(frame.columns) == list(trace().columns)
    assert frame["bound"].tolist() == [12.0, 9.0]


def test_a_bound_replaces_a_looser_one_of_its_kind() -> None:
    start = StartRecord("random", -10.0, 3, True)
    found = SearchReport((start,), "log-likelihood", "max").with_bound(-5.0, "large mixture")
    assert (found.proved_bound, found.bound_on) == (-5.0, "large mixture")
    assert found.with_bound(-4.0, "large mixture").proved_bound == -5.0
    assert found.with_bound(-6.0, "large mixture").proved_bound == -6.0
    other = found.with_bound(-4.0, "small mixture")
    assert (other.proved_bound, other.bound_on) == (-4.0, "small mixture")
    assert SearchReport.from_state(other.to_state()) == other
    least = SearchReport((StartRecord("random", 10.0, 3, True),), "SSE").with_bound(5.0)
    assert least.with_bound(4.0).proved_bound == 5.0
    assert least.with_bound(6.0).proved_bound == 6.0
    state = least.to_state()
    del state["bound_on"]  # as older files have it
    assert SearchReport.from_state(state) == least
