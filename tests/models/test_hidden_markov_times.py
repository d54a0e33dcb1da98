"""Times of series: read from numbers, dates and text, written as they were given, continued, and filled."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

import majorant as mj
from majorant.models.hidden_markov.times import UnreadTimeError, labels_of, lacking, read_times, times_ahead

FOUR = np.arange(4)


@pytest.mark.parametrize(
    "times",
    [
        [1.5, 2.0, 2.5, 3.0, 3.5, 4.0],
        [3, 5, 7, 9, 11, 13],
        ["1998Q3", "1998Q4", "1999Q1", "1999Q2", "1999Q3", "1999Q4"],
        ["1998-Q3", "1998-Q4", "1999-Q1", "1999-Q2", "1999-Q3", "1999-Q4"],
        ["2024-11", "2024-12", "2025-01", "2025-02", "2025-03", "2025-04"],
        [202411, 202412, 202501, 202502, 202503, 202504],
        ["2001", "2002", "2003", "2004", "2005", "2006"],
        ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30", "2024-05-31", "2024-06-30"],
        ["2024-10-15", "2025-01-15", "2025-04-15", "2025-07-15", "2025-10-15", "2026-01-15"],
        ["20240228", "20240229", "20240301", "20240302", "20240303", "20240304"],
        [20240228, 20240229, 20240301, 20240302, 20240303, 20240304],
        ["2024-02-28 18:30", "2024-02-29 06:30", "2024-02-29 18:30", "2024-03-01 06:30", "2024-03-01 18:30",
         "2024-03-02 06:30"],
        ["2024-9-29", "2024-9-30", "2024-10-1", "2024-10-2", "2024-10-3", "2024-10-4"],
        ["2024-9", "2024-10", "2024-11", "2024-12", "2025-1", "2025-2"],
        ["2024-02-28T22:00Z", "2024-02-28T23:00Z", "2024-02-29T00:00Z", "2024-02-29T01:00Z", "2024-02-29T02:00Z",
         "2024-02-29T03:00Z"],
        ["2024-02-28T23:59:58", "2024-02-28T23:59:59", "2024-02-29T00:00:00", "2024-02-29T00:00:01",
         "2024-02-29T00:00:02", "2024-02-29T00:00:03"],
        ["30/12/2024", "31/12/2024", "01/01/2025", "02/01/2025", "03/01/2025", "04/01/2025"],
        ["12/30/2024", "12/31/2024", "1/1/2025", "1/2/2025", "1/3/2025", "1/4/2025"],
        ["1.2.2024", "2.2.2024", "3.2.2024", "4.2.2024", "5.2.2024", "6.2.2024"],
        pd.date_range("2024-01-31", periods=6, freq=pd.offsets.MonthEnd()).to_numpy(),
        pd.date_range("2024-02-26", periods=6).to_numpy(),
        pd.period_range("1999Q3", periods=6, freq="Q").to_numpy(),
        [np.datetime64(f"2024-02-0{day}").item() for day in range(1, 7)],
        np.arange(6).astype("timedelta64[h]"),
        np.array([timedelta(hours=hour) for hour in range(6)], dtype=object),
        pd.date_range("2024-02-01", periods=6, freq="MS", tz="Europe/Paris").to_numpy(dtype=object),
        pd.date_range("2024-03-30 22:00", periods=6, freq="h", tz="Europe/Paris").to_numpy(dtype=object),
        np.array([datetime(2024, month, 1, tzinfo=ZoneInfo("Europe/Paris")) for month in range(2, 8)], dtype=object),
    ],
)  # fmt: skip
def test_times_go_on_as_they_were_written(times: Any) -> None:
    times = np.asarray(times)
    read = read_times(times[:4])
    assert read.write(read.numbers).tolist() == times[:4].tolist()
    ahead = times_ahead(read, np.zeros(4, dtype=np.intp), 2)
    assert ahead is not None and ahead[0].tolist() == times[4:].tolist()
    gone = read_times(times[[0, 1, 2, 3, 5]])
    filled = lacking(gone, np.zeros(5, dtype=np.intp))
    assert filled is not None and list(gone.write(filled[1])) == [times[4]]


@pytest.mark.parametrize(
    ("times", "row", "meanings"),
    [
        (["2024-01-01", "2024-02-30"], 1, ()),
        (["2024Q1", "2024Q2", "2024Q5"], 2, ()),
        (["2024-01", "2024-13"], 1, ()),
        (["2024-01", "2024-01-02"], 1, ()),
        (["noon", "2024"], 0, ()),
        (["5/5/2024", "1/2/2024"], 1, ("1 February", "2 January")),
    ],
)
def test_text_that_is_no_time_or_may_be_two_is_refused(times: list[str], row: int, meanings: tuple[str, ...]) -> None:
    with pytest.raises(UnreadTimeError) as error:
        read_times(times)
    assert (error.value.row, error.value.text, error.value.meanings) == (row, times[row], meanings)


@pytest.mark.parametrize("zones", [("Z", "", "Z"), ("", "Z", "Z")])
def test_times_of_which_some_have_a_zone_are_refused(zones: tuple[str, ...]) -> None:
    times = [f"2024-01-01T0{hour}:00{zone}" for hour, zone in enumerate(zones)]
    with pytest.raises(UnreadTimeError) as error:
        read_times(times)
    assert error.value.row == 1
    assert f"time holds both {times[0]!r} and {times[1]!r}: write Z (UTC) after all times or after none" in str(
        error.value
    )


def test_gaps_that_cannot_be_filled_are_refused() -> None:
    one = np.zeros(4, dtype=np.intp)
    assert lacking(read_times([0.0, 1.0, 2.0, 3.0]), one) is None
    with pytest.raises(ValueError, match=r"steps of 1.5 and 1 are no multiples of each other"):
        lacking(read_times([0.0, 1.0, 2.0, 3.5]), one)
    with pytest.raises(ValueError, match=r"steps of 1.5 hours and 1 hour are no multiples of each other"):
        lacking(read_times(np.array([0, 60, 120, 210], dtype="timedelta64[m]")), one)
    with pytest.raises(ValueError, match=r"steps of 0.003 seconds and 0.002 seconds are no multiples of each other"):
        lacking(read_times(np.datetime64("2024-01-01", "ms") + np.array([0, 2, 4, 7])), one)
    with pytest.raises(ValueError, match="997 rows lack beside the 4"):
        lacking(read_times([0.0, 1.0, 2.0, 1000.0]), one)
    codes, numbers = lacking(read_times([0.0, 1, 2, 5, 0, 2, 3]), np.array([0, 0, 0, 0, 1, 1, 1])) or (None, None)
    np.testing.assert_array_equal(codes, [0, 0, 1])
    np.testing.assert_array_equal(numbers, [3, 4, 1])


def test_forecasts_have_the_times_that_follow_each_sequence() -> None:
    random = np.random.default_rng(0)
    days = pd.date_range("2024-02-01", periods=30)
    table = pd.DataFrame({"id": ["a"] * 30 + ["b"] * 20, "day": [*days, *days[:20]], "y": random.normal(size=50)})
    model = mj.HiddenMarkovModel(1).fit(table, groups="id", time="day")
    frame = model.forecast(table.sample(frac=1, random_state=0), 2, groups="id", time="day").to_frame()
    assert [str(day)[:10] for day in frame["time"]] == ["2024-03-02", "2024-03-03", "2024-02-21", "2024-02-22"]
    assert "time" not in model.forecast(table[["y"]], 2, groups=table["id"]).to_frame().columns
    uneven = table[:30].assign(day=np.arange(30) ** 2)
    with pytest.warns(UserWarning, match="not evenly spaced"):
        assert model.forecast(uneven.drop(columns="id"), 2, lengths=[30], time="day").times is None
    by_terms = mj.HiddenMarkovModel.from_formula(
        "y ~ x", table.assign(x=table.index), time="day", groups="id", n_components=1
    )
    future = pd.DataFrame({"id": ["b", "a"], "day": pd.to_datetime(["2024-02-21", "2024-03-02"]), "x": [1.0, 2.0]})
    ahead = by_terms.forecast(table.assign(x=table.index), future=future)
    assert ahead.times is not None
    assert labels_of(ahead.times.ravel()) == ["2024-03-02", "2024-02-21"]
