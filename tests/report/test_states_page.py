"""The section of a hidden Markov model: the series by state, and its forecast."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning

import majorant as mj
from majorant.registry import card_of
from majorant.report.measures.mixture import Mixture
from majorant.report.page import html_report
from majorant.report.run import Run
from majorant.report.sections.estimates import mixture_estimates_section
from majorant.report.sections.series import series_residuals_section, states_section, transitions_section
from majorant.report.sections.uncertainty import uncertainty_section


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
    assert "next 10 rows" in section.notes[-2]
    assert section.figure.count("<svg") == 2 and "band" in section.figure


def test_the_end_of_one_sequence_is_no_change() -> None:
    X, groups = counts(), np.repeat([0, 1, 2, 3], 25)
    model = mj.HiddenMarkovModel(2, emission="poisson", effort="fast", random_state=0).fit(X, groups=groups)
    section = states_section(measured(model, X, groups=groups))
    assert section is not None
    assert section.headline == "The state never changes within a sequence."
    assert "last sequence\u2019s next 10 rows" in section.notes[-2]
    assert section.table is not None
    rows = section.table.to_csv().splitlines()
    assert len(rows) == 41 and rows[1].startswith("0,1,") and rows[-1].startswith("3,10,")
    ahead = model.forecast(X, 10, groups=groups)
    assert float(rows[-1].split(",")[2]) == ahead.mean[-1, -1, 0]


def test_sequences_that_are_mixed_are_drawn_one_after_the_other() -> None:
    X, groups = counts(), np.repeat([0, 1, 2, 3], 25)
    order = np.random.default_rng(1).permutation(100)
    order = order[np.argsort(order % 25, kind="stable")]  # rows of a sequence keep their order
    model = mj.HiddenMarkovModel(2, emission="poisson", effort="fast", random_state=0).fit(X, groups=groups)
    section = states_section(measured(model, X, groups=groups))
    assert states_section(measured(model, X[order], groups=groups[order])) == section


def test_transitions_are_drawn_with_how_long_states_last() -> None:
    X = counts()
    model = mj.HiddenMarkovModel(2, emission="poisson", effort="fast", random_state=0).fit(X)
    section = transitions_section(measured(model, X))
    assert section is not None and section.table is not None
    longest = 1 / (1 - model.transitions_.diagonal())
    assert section.headline == f"State {longest.argmax() + 1} lasts longest: {longest.max():.1f} rows on average."
    table = [line.split(",") for line in section.table.to_csv().splitlines()]
    assert table[0] == ["From state", "To 1", "To 2", "First", "Lasts", "As met"]
    np.testing.assert_allclose([float(row[1]) for row in table[1:]], model.transitions_[:, 0])
    np.testing.assert_allclose([float(row[-1]) for row in table[1:]], model.durations(X)[1])
    squares = re.findall(r'<rect class="fill-\d[^"]*" x="[^"]*" y="[^"]*" width="([^"]*)"', section.figure)
    assert len(squares) == 2 * int((model.transitions_ > 0).sum())
    one = mj.HiddenMarkovModel(1, emission="poisson", random_state=0).fit(X)
    assert transitions_section(measured(one, X)) is None
    left_right = mj.HiddenMarkovModel(
        2, emission="poisson", allowed=np.triu(np.ones((2, 2), dtype=bool)), start=[1, 0], random_state=0
    ).fit(X[:50])
    found = transitions_section(measured(left_right, X[:50]))
    assert found is not None and found.headline == "State 2 is never left."
    assert "from state 2 to 1." in found.notes[-1]


def test_residuals_tell_rows_that_are_related_beyond_their_states() -> None:
    random = np.random.default_rng(0)
    noise = np.zeros(300)
    for t in range(1, 300):
        noise[t] = 0.8 * noise[t - 1] + random.normal()
    related = (np.repeat([0.0, 30.0], 150) + noise)[:, None]
    unrelated = (np.repeat([0.0, 30.0], 150) + random.normal(size=300))[:, None]
    skewed = (np.repeat([0.0, 30.0], 150) + np.minimum(random.gamma(2.0, 1.0, 300), 5.0))[:, None]
    for X, said in (
        (unrelated, "The residuals are as those of a model that is right: normal, and unrelated."),
        (skewed, "Residuals of x1 are not as a normal distribution has them."),
        (related, 'Rows of <span class="column">x1</span> are related beyond what the states explain.'),
    ):
        model = mj.HiddenMarkovModel(2, effort="fast", random_state=0).fit(X)
        section = series_residuals_section(measured(model, X))
        assert section is not None
        assert re.sub("<[^>]*>", "", section.headline) == re.sub("<[^>]*>", "", said)
        assert section.figure.count("<svg") == 2
    assert "the correlation with one row before is 0." in re.sub("<[^>]*>", "", section.notes[-1])


def test_more_states_than_colours_have_lanes() -> None:
    x = np.random.default_rng(3).normal(np.tile(np.repeat([0.0, 9.0, 20.0, 40.0], 10), 3))[:, None]
    model = mj.HiddenMarkovModel(4, random_state=0, effort="fast").fit(x)
    section = states_section(measured(model, x))
    assert section is not None and "the lanes below tell the state of each" in section.notes[0]
    assert section.figure.count('<rect class="fill-mid"') == 2 * 12  # stretches, in the wide and the narrow figure


def test_states_are_those_of_the_path_and_have_their_own_name() -> None:
    x = np.random.default_rng(3).normal(np.repeat([0.0, 1.6, 0.0, 1.6, 0.0], 40))[:, None]
    model = mj.HiddenMarkovModel(2, random_state=0).fit(x)
    mixture = measured(model, x)
    assert (mixture.labels != mixture.responsibilities.argmax(axis=1)).any()
    np.testing.assert_array_equal(mixture.labels, model.predict(x))
    source = html_report(mixture.run)
    names = r'id="[^"]*"|href="#[^"]*"|aria-labelledby="[^"]*"|components\.(csv|tex)|<style.*?</style>|n_components'
    assert "component" not in re.sub(names, "", source, flags=re.DOTALL)


def test_rows_without_a_cell_and_long_series() -> None:
    X = np.tile(counts(), (5, 1))
    model = mj.HiddenMarkovModel(2, emission="poisson", effort="fast", random_state=0).fit(X)
    section = states_section(measured(model, X))
    assert section is not None and "last 300 of 500 rows" in section.notes[0]
    X[-300:] = np.nan
    assert states_section(measured(model, X)) is None


def test_a_degenerate_fit_has_no_forecast() -> None:
    X = np.array([[0.0], [1.0], [5.0]])
    with pytest.warns(ConvergenceWarning):
        model = mj.HiddenMarkovModel(3, effort="fast", random_state=0).fit(X)
    assert not model.regular_
    section = states_section(measured(model, X))
    assert section is not None and section.table is None and "band" not in section.figure


def test_lines_that_need_other_columns_have_no_forecast() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=80)
    X = np.column_stack([np.repeat([0.0, 5.0], 40) + x + 0.1 * random.normal(size=80), x])
    model = mj.HiddenMarkovModel(2, emission="regression", effort="fast", random_state=0).fit(X)
    section = states_section(measured(model, X))
    assert section is not None and "forecast" not in section.notes[-1]


def test_the_line_of_the_series_is_open_and_breaks_at_gaps_and_sequences() -> None:
    X, groups = counts(), np.repeat([1, 2, 3, 4], 25)
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


def test_an_estimate_of_one_number_has_its_own_name() -> None:
    random = np.random.default_rng(0)
    y = (np.repeat([0.0, 5.0], 40) + random.normal(size=80))[:, None]
    model = mj.HiddenMarkovModel(2, emission="regression", lags=1, effort="fast", random_state=0).fit(y)
    section = mixture_estimates_section(measured(model, y))
    assert section is not None and section.table is not None
    names = [line.split(",")[0] for line in section.table.to_csv().splitlines()[1::2]]
    assert names[0] == "Intercept" and '"coef of x1' in names[1] and names[2] == "Variance"


def test_directions_are_told_on_their_circle() -> None:
    random, s = np.random.default_rng(0), np.repeat([0, 1, 0, 1], 50)
    angles = random.vonmises(np.array([np.pi, 0.0])[s], 6.0)
    X = np.column_stack([random.gamma(2.0, 1.0 + 9 * s), angles])
    model = mj.HiddenMarkovModel(2, emission=["gamma", "von_mises"], effort="fast", random_state=0).fit(X)
    mixture = measured(model, X)
    np.testing.assert_allclose(np.cos(mixture.centres[:, 1] - model.x2_directions_[:, 0]), 1.0, atol=1e-4)
    np.testing.assert_allclose(mixture.deviations_within[:, 1], 0.43, atol=0.1)
    assert mixture.ranked_features == [0] and mixture.pair is None
    page = html_report(Run(model, X, ("step", "angle"), "series.csv", ""))
    assert "One column of directions, which lies on a circle, is left out." in page
    assert "directions are those on the circle" in page and "constant column" not in page


def test_unsure_rows_are_listed_in_order_of_time_with_their_times() -> None:
    random = np.random.default_rng(0)
    X = np.repeat([0.0, 2.0, 0.0, 2.0], 30)[:, None] + random.normal(size=(120, 1))
    days = np.arange("2024-01-01", "2024-04-30", dtype="datetime64[D]")
    model = mj.HiddenMarkovModel(2, random_state=0).fit(X)
    shown = Mixture(Run(model, X, ("y",), "t.csv", "", times=days), card_of(model))
    section = uncertainty_section(shown)
    assert section is not None and section.table is not None
    told = {column.head: list(column.values) for column in section.table.columns}
    certainty = model.predict_proba(X)[np.arange(120), model.predict(X)]
    unsure = (np.flatnonzero(certainty <= 0.9) + 1).tolist()
    assert 2 < len(unsure) <= 10 and np.argsort(certainty[np.array(unsure) - 1])[0] > 0  # not the order of certainty
    assert told["Row"] == unsure and told["Time"] == [str(days[row - 1]) for row in unsure]
    np.testing.assert_allclose(told["Probability"], certainty[np.array(unsure) - 1])
    assert "in order of time" in "".join(section.notes)
    blobs = mj.GaussianMixture(2, random_state=0).fit(X)
    other = uncertainty_section(Mixture(Run(blobs, X, ("y",), "t.csv", ""), card_of(blobs)))
    assert other is not None and other.table is not None
    assert sorted(p := list(other.table.columns[2].values)) == p and "order of time" not in "".join(other.notes)


def test_a_single_column_has_a_variance_and_covariances_are_told_once() -> None:
    X = np.repeat([0.0, 5.0, 0.0, 5.0], 30)[:, None] + np.random.default_rng(0).normal(size=(120, 2))
    one, two = (mj.HiddenMarkovModel(2, random_state=0).fit(X[:, :d]) for d in (1, 2))
    assert "variances " in str(one.summary()) and "covariance" not in str(one.summary())
    table = two.summary().tables["covariances"]
    assert list(table.iloc[:, 0]) == ["x1, x1", "x1, x2", "x2, x2"]
    np.testing.assert_allclose(table.iloc[:, 1], two.covariances_[0][np.triu_indices(2)])
    page = html_report(Run(one, X[:, :1], ("y",), "t.csv", ""))
    assert "variance of y" in page and "covariance of" not in page


def test_levels_are_told_in_words_wherever_a_state_is() -> None:
    random = np.random.default_rng(0)
    kind = random.choice(["a", "b", "c"], 120)
    table = pl.DataFrame({"kind": kind, "y": np.repeat([0.0, 5.0], 60) + (kind == "b") + random.normal(size=120)})
    model = mj.HiddenMarkovModel.from_formula("y ~ kind", table, n_components=2, random_state=0)
    page = model.report(table)
    assert "kind: b" in page.html and "[T." not in page.html
    heads = [column.head for column in page.tables["profiles"].columns]
    assert heads[0] == "Feature" and set(page.tables["profiles"].columns[0].values) == {"y", "kind: b", "kind: c"}
