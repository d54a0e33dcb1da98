"""The page of a latent class analysis: what the classes answer, how well they fit, and what they depend on."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import majorant as mj
from majorant.report import Run, report

mpl.use("Agg")


def drawn(n: int = 300, seed: int = 0) -> tuple[Any, Any]:
    """Items of every kind of two classes, and covariates."""
    random = np.random.default_rng(seed)
    z = random.random(n) < 0.4
    table = pd.DataFrame({c: np.where(random.random(n) < np.where(z, 0.85, 0.2), "yes", "no") for c in "abc"})
    table["grade"] = np.array(["low", "mid", "high"])[np.minimum((random.random(n) * (2 + z)).astype(int), 2)]
    table["size"] = random.normal(2.5 * z, 1.0)
    table["visits"] = random.poisson(np.where(z, 6, 2))
    table.loc[::7, "a"] = None
    given = pd.DataFrame({"age": 40 + 6 * z + random.normal(0, 6, n), "sex": random.choice(["f", "m"], n)})
    return table, given


def page(model: Any, table: Any, weights: Any = None, **given: Any) -> Any:
    codes = model.items_.coded(table.to_numpy(dtype=object))
    names = tuple(map(str, table.columns))
    return report(Run(model, codes, names, "t.csv", "", frame=table, weights=weights, given=given))


def test_the_page_tells_what_classes_answer_and_how_well_they_fit() -> None:
    table, _ = drawn()
    model = mj.LatentClassAnalysis(2, items={"visits": "count"}, random_state=0).fit(table)
    made = page(model, table)
    profile = model.class_profile(table)
    told = list(zip(profile.items, profile.levels, strict=True))
    assert told[:2] == [("a", "no"), ("a", "yes")] and told[-2:] == [("size", "mean"), ("visits", "rate")]
    np.testing.assert_array_equal(profile.estimates[-2], model.normal_means_[:, 0])
    np.testing.assert_array_equal(profile.estimates[-1], model.count_rates_[:, 0])
    assert (profile.low <= profile.estimates)[np.isfinite(profile.low)].all()
    columns = {c.head: list(c.values) for c in made.tables["class-profile"].columns}
    assert columns["Class 1"] == profile.estimates[:, 0].tolist() and columns["Level"] == list(profile.levels)
    statistics = dict(model.fit_statistics(table))
    values = dict(zip(*(list(c.values) for c in made.tables["fit-statistics"].columns), strict=True))
    assert values["BIC"] == statistics["bic"] and values["entropy R\u00b2"] == statistics["entropy_r2"]
    shares = next(c for c in made.tables["class-sizes"].columns if c.head == "Share")
    np.testing.assert_allclose(list(shares.values), model.weights_)
    pairs = made.tables["bivariate-residuals"]
    assert pairs.n_rows == len(model.bivariate_residuals(table))
    assert list(pairs.columns[2].values) == sorted(pairs.columns[2].values, reverse=True)
    assert "assignment" in made.tables and "effects" not in made.tables and "components" not in made.tables
    assert "of their component" not in made.html and "unsure of their class" in made.html


def test_an_item_of_two_answers_has_one_row_on_the_page_and_two_in_the_copies() -> None:
    random = np.random.default_rng(0)
    z = random.random(300) < 0.4
    bits = {f"bit {i}": (random.random(300) < np.where(z, 0.85, 0.15)).astype(int) for i in range(5)}
    words = {f"word {i}": np.where(random.random(300) < np.where(z, 0.85, 0.15), "yes", "no") for i in range(5)}
    table = pd.DataFrame({**bits, **words})
    model = mj.LatentClassAnalysis(2, random_state=0).fit(table)
    made = page(model, table)
    for name, items, in_copies in (("class-profile", 10, 20), ("estimates", 2 * 9, 2 * 21)):
        found = made.tables[name]
        assert found.to_html().count('<th scope="row"') == items and len(found.to_csv().splitlines()) == 1 + in_copies
    assert "bit 0=0</b>" not in made.html and "word 0=no</b>" not in made.html
    rows = made.tables["class-profile"].to_html()
    for item in table.columns:
        assert rows.count(f">{item}</") == 1
    shown = model.summary().tables["item_probabilities"]
    level = {"bit": "1", "word": "yes"}
    assert list(shown.iloc[:, 0]) == [f"{name}={level[name.split()[0]]}" for name in table.columns]


def test_the_screen_shows_items_whole() -> None:
    random = np.random.default_rng(0)
    z = random.random(300) < 0.4
    table = pd.DataFrame(
        {
            f"How often do you eat cheese of kind {i}": np.array(["never", "now and then", "often", "every day"])[
                np.minimum((random.random(300) * (2 + 2 * z) * (0.5 + i / 10)).astype(int), 3)
            ]
            for i in range(9)
        }
    )
    model = mj.LatentClassAnalysis(2, random_state=0).fit(table)
    shown = list(model.summary().tables["item_probabilities"].iloc[:, 0])
    items = [text.rpartition("=")[0] for text in shown]
    apart = np.ptp(model.item_probabilities_, axis=0)
    places = np.split(np.arange(len(apart)), np.cumsum(table.nunique())[:-1])
    telling = sorted(range(9), key=lambda i: -apart[places[i]].max())[: len(set(items))]
    assert set(items) == {table.columns[i] for i in telling} and 16 < len(shown) <= 20
    for item in set(items):
        assert items.count(item) == table[item].nunique()
    text = str(model.summary())
    for level in ("never", "now and then", "often", "every day"):
        assert text.count(f"={level} ") == sum(one.endswith(f"={level}") for one in shown)


def test_columns_of_print_have_one_unit_and_one_number_of_decimals() -> None:
    table, given = drawn()
    model = mj.LatentClassAnalysis(2, items={"visits": "count"}, random_state=0).fit(table, gating=given)
    rows = pd.DataFrame({"x": given["age"] / 10, "age": given["age"]})
    rows["y"] = np.where(given["sex"] == "f", 100 + rows["x"], 9 * rows["x"]) + given["age"] % 1
    lines = mj.RegressionMixture.from_formula("y ~ x", rows, gating="age", random_state=0)
    for made in (page(model, table, gating=given), lines.report(rows)):
        for name in ("class-sizes", "population-shares", "estimates", "effects"):
            for column in made.tables[name].columns if name in made.tables else ():
                cells = [text for text in column.printed or column.shown if any(c.isdigit() for c in text)]
                of_ratios = name == "effects" and column.head in ("Odds ratio", "95 % low", "95 % high")
                if column.is_number and column.where != "page" and column.head != "p" and not of_ratios:
                    assert len({text.endswith("%") for text in cells}) <= 1
                    assert len({len(text.rstrip("\u202f%").partition(".")[2]) for text in cells}) <= 1, (name, column)
    ends = next(c for c in lines.report(rows).tables["estimates"].columns if c.head == "95 % low")
    assert ends.shown[-2] == "\u2013" and ends.shown[-1] != "\u2013"  # of the component that others are compared with


def test_the_picture_of_the_profile_says_which_mark_is_which_class() -> None:
    table, _ = drawn()
    model = mj.LatentClassAnalysis(3, random_state=0).fit(table)
    drawing = page(model, table).figures["class-profile"]
    for j, share in enumerate(model.weights_, 1):
        assert f"class {j} ({100 * share:.0f}\u202f%)</text>" in drawing


@pytest.mark.parametrize("levels", [2, 4, 12])
def test_names_below_the_plot_of_a_profile_stay_apart_and_its_legend_beside(levels: int) -> None:
    random = np.random.default_rng(0)
    words = np.array([f"quite a long answer {i}" for i in range(levels)])
    table = pd.DataFrame({f"item_{c}": random.choice(words, 400) for c in "abc"})
    ax = mj.plot.class_profile(mj.LatentClassAnalysis(2, random_state=0).fit(table))
    ax.figure.canvas.draw()
    labels, ends = ax.get_xticklabels(), ax.get_window_extent()
    left, right = ax.get_xlim()
    apart, high = ends.width / (right - left), labels[0].get_fontsize() * ax.figure.dpi / 72
    needed = {0: max(label.get_window_extent().width for label in labels), 45: high * 2**0.5, 90: high}
    assert apart >= needed[int(labels[0].get_rotation())]
    legend = ax.get_legend().get_window_extent()
    assert legend.x0 >= ends.x1 and legend.x1 <= ax.figure.bbox.x1


def test_covariates_have_odds_ratios_on_the_page() -> None:
    table, given = drawn()
    model = mj.LatentClassAnalysis(2, random_state=0).fit(table, gating=given)
    made = page(model, table, gating=given)
    told = {c.head: list(c.values) for c in made.tables["effects"].columns}
    found = model.covariate_effects(table, given)
    assert told["Odds ratio"] == found.odds_ratios[1].tolist()
    assert told["Covariate"] == ["Intercept", "age", "sex=m (against f)"]
    (shown,) = (c.texts for c in made.tables["effects"].columns if c.head == "Odds ratio")
    assert shown is not None and shown[0] == "\u2013" and "\u2013" not in shown[1:]  # an intercept has no odds ratio
    assert "report of a latent class analysis \u00b7" in " ".join(made.html.split())


@pytest.mark.filterwarnings("ignore:7 of 300 rows lack a covariate")
def test_rows_that_lack_a_covariate_are_told() -> None:
    table, given = drawn()
    given.loc[:6, "age"] = np.nan
    model = mj.LatentClassAnalysis(2, random_state=0).fit(table, gating=given)
    made = page(model, table, gating=given).html
    assert "7 of 300 rows lack a covariate (age in 7): left out of the fit." in made
    assert "293\u00a0\u00d7\u00a0" in made and "7 rows left out" in made


@pytest.mark.parametrize("k", [1, 5])
def test_one_class_and_many_have_a_page(k: int) -> None:
    table, _ = drawn()
    model = mj.LatentClassAnalysis(k, random_state=0).fit(table)
    made = page(model, table, weights=np.ones(len(table)))
    assert "class-profile" in made.tables and "nan" not in made.html.lower().replace("pre-nan", "")
    assert ("assignment" in made.tables) == (k > 1)


def test_numbers_alone_and_known_classes_have_a_page() -> None:
    table, _ = drawn()
    numbers = table[["size", "visits"]].astype(float)
    model = mj.LatentClassAnalysis(2, items="normal", random_state=0).fit(numbers)
    assert "differ most in" in page(model, numbers).html
    labels = np.where(np.arange(len(table)) < 5, 0, -1)
    known = mj.LatentClassAnalysis(2, random_state=0).fit(table, component_labels=labels)
    assert "class-profile" in page(known, table).tables  # without what needs the labels


def test_the_profile_is_drawn_for_a_paper() -> None:
    table, given = drawn()
    model = mj.LatentClassAnalysis(2, items={"visits": "count"}, random_state=0).fit(table, gating=given)
    ax = mj.plot.class_profile(model, table, gating=given, names=["seldom", "often"])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["seldom", "often"]
    ticks = [t.get_text() for t in ax.get_xticklabels()]
    assert ticks == ["a: yes", "b: yes", "c: yes", "grade: high", "grade: low", "grade: mid"]
    lines = {tuple(np.rint(line.get_xdata()).tolist()) for line in ax.lines if line.get_linestyle() == "-"}
    assert lines == {(0, 1, 2), (3, 4, 5)}  # no line from one item of several levels to another
    marks = next(line for line in ax.lines if line.get_label() == "seldom")
    profile = model.class_profile()
    np.testing.assert_array_equal(marks.get_ydata(), profile.estimates[profile.distinct_rows, 0][:6])
    other = mj.plot.class_profile(model, of="numbers")
    assert [t.get_text() for t in other.get_xticklabels()] == ["size", "visits"]
    shown = np.array([line.get_ydata() for line in other.lines if not line.get_label().startswith("_")])
    np.testing.assert_allclose(model.weights_ @ shown, 0.0, atol=1e-12)
    with pytest.raises(ValueError, match="names must have a name for each of 2 classes; got 1"):
        mj.plot.class_profile(model, names=["seldom"])
    with pytest.raises(TypeError, match="class_profile draws a LatentClassAnalysis; got KMeans"):
        mj.plot.class_profile(mj.KMeans(2))
    mpl.pyplot.close("all")
