"""The section of a hidden Markov model: the series by state, and its forecast."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl

import majorant as mj
from majorant.registry import card_of
from majorant.report.measures.mixture import Mixture
from majorant.report.run import Run
from majorant.report.sections.states import states_section


def measured(model: Any, X: np.ndarray, **given: Any) -> Mixture:
    names = tuple(f"x{j + 1}" for j in range(X.shape[1]))
    return Mixture(Run(model, X, names, "series.csv", "", given=given), card_of(model))


def counts() -> np.ndarray:
    random = np.random.default_rng(0)
    return random.poisson(np.repeat([2.0, 30.0, 2.0, 30.0], 25))[:, None].astype(float)


def test_changes_of_state_and_the_forecast_are_told() -> None:
    X = counts()
    X[10] = np.nan
    model = mj.HiddenMarkovModel(2, emission="poisson", effort="fast", random_state=0).fit(X)
    section = states_section(measured(model, X))
    assert section is not None
    assert section.headline == "The state changes 3 times in 100 rows."
    assert "next 10 rows" in section.notes[-1]
    assert section.figure.count("<svg") == 2 and "band" in section.figure


def test_the_end_of_one_sequence_is_no_change() -> None:
    X, groups = counts(), np.repeat([0, 1, 2, 3], 25)
    model = mj.HiddenMarkovModel(2, emission="poisson", effort="fast", random_state=0).fit(X, groups=groups)
    section = states_section(measured(model, X, groups=groups))
    assert section is not None
    assert section.headline == "The state never changes within a sequence."
    assert "forecast" not in section.notes[-1]


def test_rows_without_a_cell_and_long_series() -> None:
    X = np.tile(counts(), (5, 1))
    model = mj.HiddenMarkovModel(2, emission="poisson", effort="fast", random_state=0).fit(X)
    section = states_section(measured(model, X))
    assert section is not None and "last 300 of 500 rows" in section.notes[0]
    X[-300:] = np.nan
    assert states_section(measured(model, X)) is None


def test_lines_that_need_other_columns_have_no_forecast() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=80)
    X = np.column_stack([np.repeat([0.0, 5.0], 40) + x + 0.1 * random.normal(size=80), x])
    model = mj.HiddenMarkovModel(2, emission="regression", effort="fast", random_state=0).fit(X)
    section = states_section(measured(model, X))
    assert section is not None and "forecast" not in section.notes[-1]


def test_the_line_of_the_series_is_open_and_breaks_at_gaps_and_sequences() -> None:
    X, groups = counts(), np.repeat([0, 1, 2, 3], 25)
    X[10] = np.nan
    model = mj.HiddenMarkovModel(2, emission="poisson", effort="fast", random_state=0).fit(X, groups=groups)
    section = states_section(measured(model, X, groups=groups))
    assert section is not None
    lines = re.findall(r'<path class="stroke-hair fitted-line" d="([^"]*)"', section.figure)
    assert [1 + points.count("L") for points in lines] == [10, 14, 25, 25, 25] * 2
    assert states_section(measured(model, X, lengths=[25] * 4)) == section


def test_a_fit_on_a_data_frame_is_shown_without_warnings() -> None:
    X = counts()
    model = mj.HiddenMarkovModel(2, emission="poisson", effort="fast", random_state=0).fit(
        pl.DataFrame({"x1": X[:, 0]})
    )
    assert states_section(measured(model, X)) is not None


def test_criteria_are_told_with_the_sequences_of_the_fit_only() -> None:
    X, groups = counts(), np.repeat([0, 1, 2, 3], 25)
    model = mj.HiddenMarkovModel(2, emission="poisson", effort="fast", random_state=0)
    whole = model.fit(X)
    assert not whole.is_grouped_
    assert measured(whole, X).criteria["bic"] == whole.bic(X)
    for x, cuts in ((np.split(X, 4), {}), (X, {"lengths": [25] * 4}), (X, {"groups": groups})):
        assert model.fit(x, **cuts).is_grouped_
        assert measured(model, X).criteria == {}
    assert measured(model, X, groups=groups).criteria["bic"] == model.bic(X, groups=groups)
