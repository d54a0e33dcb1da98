"""Mixtures of regressions by a formula: the fit is that of the design, and other tables go through the formula."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import majorant as mj

with (Path(__file__).parents[1] / "reference" / "flexmix_formulas.csv").open() as lines:
    FLEXMIX = list(csv.DictReader(lines))


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Two Poisson regressions; the component of a site depends on its soil."""
    random = np.random.default_rng(3)
    site = np.repeat(np.arange(60), 4)
    soil = np.repeat(random.normal(size=60), 4)
    first = np.repeat(random.random(60), 4) < 1 / (1 + np.exp(-2 * soil))
    x, days = random.uniform(-1, 1, size=240), random.integers(1, 9, size=240)
    place = np.array(["hill", "lake", "wood"])[random.integers(3, size=240)]
    mean = days * np.exp(np.where(first, 0.2 + x, 1.5 - x) + 0.4 * (place == "lake"))
    trials = random.integers(5, 20, size=240)
    yes = random.binomial(trials, 1 / (1 + np.exp(-np.where(first, 1 + 2 * x, -1 - 2 * x))))
    return pd.DataFrame(
        {
            "y": random.poisson(mean),
            "z": np.where(first, 1 + x, 2 - x) + 0.1 * random.normal(size=240),
            "x": x,
            "days": days,
            "place": place,
            "soil": soil,
            "site": [f"s{i}" for i in site],
            "yes": yes,
            "no": trials - yes,
            "w": random.integers(1, 3, size=240),
            "known": np.where(np.arange(240) < 20, (~first).astype(float), np.nan),
        }
    )


def counts(table: Any, **keywords: Any) -> mj.RegressionMixture:
    return mj.RegressionMixture.from_formula(
        "y ~ x + place | site",
        table,
        gating="soil",
        offset="log(days)",
        **{"family": "poisson", "random_state": 0, **keywords},
    )


@pytest.fixture(scope="module")
def fitted(table: pd.DataFrame) -> mj.RegressionMixture:
    return counts(table)


def test_the_fit_is_that_of_the_design(table: pd.DataFrame, fitted: mj.RegressionMixture) -> None:
    design = np.column_stack([table["x"], table["place"] == "lake", table["place"] == "wood"])
    plain = mj.RegressionMixture(family="poisson", random_state=0).fit(
        design, table["y"], groups=table["site"], gating=table[["soil"]], offset=np.log(table["days"])
    )
    assert fitted.log_likelihood_ == plain.log_likelihood_
    np.testing.assert_array_equal(fitted.coef_, plain.coef_)
    np.testing.assert_array_equal(fitted.gating_coef_, plain.gating_coef_)
    assert fitted.feature_names_in_.tolist() == ["x", "place[T.lake]", "place[T.wood]"]
    page = str(fitted.summary())
    assert (
        "place: lake against" in page
        and "[T." not in page
        and "GATING" in page
        and "soil" in page
        and "noise" not in page
    )
    assert "y ~ x + place | site: 240 rows in 60 groups, 3 features" in page
    np.testing.assert_array_equal(counts(pl.from_pandas(table)).coef_, fitted.coef_)


@pytest.mark.filterwarnings("ignore:no regular solution", "ignore:The line of a component runs to infinity")
@pytest.mark.parametrize("line", FLEXMIX, ids=lambda line: str(line["table"]))
def test_formulas_of_flexmix_reach_its_log_likelihood(shared_data: Path, line: dict[str, str]) -> None:
    table = pl.read_csv(shared_data / f"mixreg/flexmix_{line['table']}.csv")
    model = mj.RegressionMixture.from_formula(
        line["formula"], table, gating=line["gating"] or None, family=line["family"], random_state=0
    )
    assert model.log_likelihood_ >= float(line["log_likelihood"]) - 1e-6 * abs(model.log_likelihood_)
    if not model.separated_:  # there is one maximum
        assert model.log_likelihood_ == pytest.approx(float(line["log_likelihood"]), rel=1e-5)


def test_new_tables_go_through_the_formula(table: pd.DataFrame, fitted: mj.RegressionMixture, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m.majorant")
    loaded = mj.load(tmp_path / "m.majorant")
    new = table.drop(columns=["y", "site"]).iloc[[5, 3]]
    design = np.column_stack([new["x"], new["place"] == "lake", new["place"] == "wood"])
    given = {"offset": np.log(new["days"]), "gating": new[["soil"]]}
    fitted_to_rows = clone(fitted).fit(
        fitted.formula_.apply(table).X.to_numpy(),
        table["y"],
        groups=table["site"],
        gating=table[["soil"]],
        offset=np.log(table["days"]),
    )
    expected = fitted_to_rows.predict(design, **given)
    for model in (fitted, loaded):
        for frame in (new, pl.from_pandas(new)):
            np.testing.assert_array_equal(model.predict(frame), expected)
        np.testing.assert_array_equal(
            model.predict_components(new), fitted_to_rows.predict_components(design, offset=given["offset"])
        )
        np.testing.assert_allclose(model.predict(new, offset=np.zeros(2)) * new["days"], expected, rtol=1e-14)
        np.testing.assert_array_equal(
            model.predict_proba(X=new), fitted_to_rows.predict_proba(design, gating=given["gating"])
        )


def test_where_the_table_has_the_response_it_is_used(table: pd.DataFrame, fitted: mj.RegressionMixture) -> None:
    np.testing.assert_array_equal(fitted.predict_proba(table), fitted.responsibilities_)
    np.testing.assert_array_equal(fitted.classify(table), fitted.responsibilities_.argmax(axis=1))
    assert fitted.log_density(table).sum() == pytest.approx(fitted.log_likelihood_, rel=1e-12)
    assert fitted.aic(table) == pytest.approx(fitted.aic_, rel=1e-12)
    assert fitted.icl(table, groups=table["site"]) == pytest.approx(fitted.icl(table), rel=1e-12)
    with pytest.raises(ValueError, match="no column 'y'"):
        fitted.classify(table.drop(columns="y"))
    known = fitted.predict(table)
    assert np.abs(known - table["y"]).mean() < np.abs(fitted.predict(table.drop(columns="site")) - table["y"]).mean()


@pytest.mark.parametrize("trials", [None, "I(yes + no)", "yes + no"])
def test_successes_and_failures(table: pd.DataFrame, trials: str | None) -> None:
    response = "cbind(yes, no)" if trials is None else "yes"
    found = mj.RegressionMixture.from_formula(
        f"{response} ~ x", table, family="binomial", trials=trials, random_state=0
    )
    plain = mj.RegressionMixture(family="binomial", random_state=0)
    plain.fit(table[["x"]], table["yes"], trials=table["yes"] + table["no"])
    np.testing.assert_array_equal(found.coef_, plain.coef_)
    np.testing.assert_array_equal(found.predict_proba(table), plain.responsibilities_)
    np.testing.assert_array_equal(found.predict(table[["x"]]), plain.predict(table[["x"]]))
    counted = plain.predict(table[["x"]], trials=table["yes"] + table["no"])
    np.testing.assert_array_equal(found.predict(table), counted)


def test_an_intercept_and_nothing_else(table: pd.DataFrame) -> None:
    none = mj.RegressionMixture.from_formula("z ~ 0 + x", table, random_state=0)
    assert not none.fit_intercept and (none.intercept_ == 0).all()
    constant = mj.RegressionMixture.from_formula("z ~ 1 | site", table, n_components=2, random_state=0)
    assert constant.feature_names_in_.tolist() == ["Intercept"]
    assert len(constant.predict(table.iloc[:3])) == 3
    shown = mj.RegressionMixture.from_formula("z ~ x + I(x**2)", table, random_state=0)
    assert shown.fit_intercept and "I(x ** 2)" in str(shown.summary())


def test_shared_terms_are_named_as_the_formula_names_them(table: pd.DataFrame) -> None:
    model = counts(table, shared=["place[T.lake]", "place[T.wood]"])
    assert np.ptp(model.coef_[:, 1:], axis=0).max() == 0 < np.ptp(model.coef_[:, 0])


def test_weights_and_labels_by_column(table: pd.DataFrame) -> None:
    found = mj.RegressionMixture.from_formula("z ~ x", table, weights="w", component_labels="known", random_state=0)
    plain = mj.RegressionMixture(random_state=0).fit(
        table[["x"]], table["z"], sample_weight=table["w"], component_labels=table["known"]
    )
    np.testing.assert_array_equal(found.coef_, plain.coef_)
    arrays = mj.RegressionMixture.from_formula(
        "z ~ x", table, weights=table["w"], component_labels=table["known"], random_state=0
    )
    np.testing.assert_array_equal(arrays.coef_, plain.coef_)


def test_arrays_and_later_fits_know_no_formula(table: pd.DataFrame) -> None:
    model = mj.RegressionMixture.from_formula("z ~ x", table, random_state=0)
    np.testing.assert_array_equal(
        model.fit(table[["x"]], table["z"]).predict(table[["x"]]), model.predict(table[["x"]])
    )
    assert not hasattr(model, "formula_")


def test_fits_at_a_time_keep_their_warnings_apart(table: pd.DataFrame) -> None:
    """A formula is read in every thread, and what a fit warns of is recorded with it."""
    twice = table.assign(x2=2 * table["x"])
    one, two = (
        mj.select(
            mj.RegressionMixture(random_state=0),
            twice,
            formula="z ~ poly(x, 2) + x2 + place",
            n_components=[1, 2, 3],
            n_jobs=n_jobs,
        )
        for n_jobs in (1, 2)
    )
    assert [c.warnings for c in one.candidates] == [c.warnings for c in two.candidates]
    assert all(any("x2" in w for w in c.warnings) for c in one.candidates)
    assert [c.value for c in one.candidates] == [c.value for c in two.candidates]


def test_sizes_are_compared_by_a_formula(table: pd.DataFrame, fitted: mj.RegressionMixture) -> None:
    found = mj.select(
        mj.RegressionMixture(family="poisson", random_state=0),
        table,
        formula="y ~ x + place | site",
        n_components=[1, 2],
        fit_params={"gating": "soil", "offset": "log(days)"},
    )
    best = found.best_estimator_
    assert best.bic_ == fitted.bic_ and best.formula_ == fitted.formula_
    with pytest.raises(TypeError, match="names the response"):
        mj.select(mj.RegressionMixture(), table, table["y"], formula="y ~ x")
    with pytest.raises(TypeError, match="GaussianMixture is not fitted with formulas"):
        mj.select(mj.GaussianMixture(), table, formula="y ~ x")
    with pytest.raises(ValueError, match="no column 'xx'"):
        mj.select(mj.RegressionMixture(), table, formula="y ~ xx", n_components=[1, 2])


@pytest.mark.parametrize(
    ("formula", "keywords", "words"),
    [
        ("z ~ x", {"fit_intercept": False}, "the formula says whether there is an intercept"),
        ("z ~ x | site", {"groups": np.zeros(240)}, "groups is given twice"),
        ("z ~ x + offset(x)", {"offset": "x"}, "offset is given twice"),
        ("cbind(yes, no) ~ x", {"trials": "w", "family": "binomial"}, "leave trials= out"),
        ("z ~ x", {"weights": "place"}, "weights must be one number per row"),
        ("z ~ x", {"component_labels": "who"}, "no column 'who'"),
        ("z ~ x", {"offset": np.zeros(3)}, "offset must be one number per row"),
        ("z ~ x", {"colour": 1}, "colour"),
        ("y ~ x", {"family": "gamma"}, "positive"),
    ],
)
def test_mistakes_are_told(table: pd.DataFrame, formula: str, keywords: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError)) as error:
        mj.RegressionMixture.from_formula(formula, table, **keywords)
    assert words in str(error.value)


def test_a_fit_that_fails_leaves_the_model_as_it_was(table: pd.DataFrame) -> None:
    model = mj.RegressionMixture(random_state=0)
    with pytest.raises(ValueError, match="values are missing in 'known'"):
        model.fit_formula("z ~ 0 + known", table)
    assert model.fit_intercept
    with pytest.raises(NotFittedError):
        model.predict(table)
    model.fit_formula("z ~ x", table)
    before = model.predict(table)
    with pytest.raises(ValueError, match="no column"):
        model.fit_formula("z ~ 0 + q", table)
    np.testing.assert_array_equal(model.predict(table), before)


def test_without_formulaic_the_error_says_what_to_install(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("majorant.formulas.language.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "majorant\[formula\]"'):
        mj.RegressionMixture.from_formula("z ~ x", table)


def test_the_summary_names_gating_columns_however_they_came() -> None:
    """By a formula with the levels of a factor, by a data frame; by number only where they have no names."""
    random = np.random.default_rng(0)
    x, soil, kind = random.normal(size=(120, 1)), random.normal(size=120), np.tile(["a", "b"], 60)
    y = np.where(random.random(120) < 1 / (1 + np.exp(-soil)), x[:, 0], 3 - x[:, 0]) + 0.1 * random.normal(size=120)
    table = pd.DataFrame({"x": x[:, 0], "y": y, "soil": soil, "kind": kind})
    line = mj.RegressionMixture(2, random_state=0)
    by_formula = mj.RegressionMixture.from_formula("y ~ x", table, gating="soil + kind", random_state=0)
    cases = [
        (by_formula, ["soil", "kind[T.b]"]),
        (clone(line).fit(x, y, gating=table[["soil"]]), ["soil"]),
        (clone(line).fit(x, y, gating=soil), ["1"]),
    ]
    for model, names in cases:
        tables = model.summary().tables
        assert list(tables["gating"].columns) == ["component", "intercept", *names]
        said = [name.replace("kind[T.b]", "kind: b against a") for name in names]
        assert {f"gating {name}" for name in said} <= set(tables["intervals"]["parameter"])
        known = None if names == ["1"] else names
        assert known == (None if model.gating_names_in_ is None else model.gating_names_in_.tolist())


def test_a_level_that_all_lines_share_is_summarised() -> None:
    draws = np.random.default_rng(0)
    table = pd.DataFrame({"x": draws.normal(size=80), "sex": draws.choice(["F", "M"], size=80)})
    table["y"] = table.x * np.where(draws.random(80) < 0.5, 2, -2) + (table.sex == "M") + 0.1 * draws.normal(size=80)
    model = mj.RegressionMixture.from_formula("y ~ x + sex", table, n_components=2, shared=["sex[T.M]"], random_state=0)
    assert np.ptp(model.coef_[:, 1]) == 0 and "M" in str(model.summary())
