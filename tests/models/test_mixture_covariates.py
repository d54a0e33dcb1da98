"""Covariates of the weights of any mixture: numbers and text, in frames and arrays, kept with the fit."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import majorant as mj
from majorant.models.covariates import Covariates


def drawn(n: int = 400, seed: int = 0) -> tuple[Any, Any]:
    """Items of two classes, whose shares depend on age and sex."""
    random = np.random.default_rng(seed)
    sex = np.where(random.random(n) < 0.5, "male", "female")
    age = random.normal(40.0, 10.0, n)
    z = random.random(n) < 1 / (1 + np.exp(-(-0.5 + 0.08 * (age - 40) + 1.0 * (sex == "male"))))
    items = pd.DataFrame({c: np.where(random.random(n) < np.where(z, 0.85, 0.2), "yes", "no") for c in "abcde"})
    return items, pd.DataFrame({"age": age, "sex": sex})


def test_text_has_a_column_for_each_level_but_the_first() -> None:
    items, given = drawn()
    model = mj.LatentClassAnalysis(2, random_state=0).fit(items, gating=given)
    by_hand = np.column_stack([given["age"], given["sex"] == "male"])
    other = mj.LatentClassAnalysis(2, random_state=0).fit(items, gating=by_hand)
    assert model.gating_names_in_ == ["age", "sex=male"] and model.covariates_.references == {"sex=male": "female"}
    assert model.log_likelihood_ == other.log_likelihood_
    np.testing.assert_array_equal(model.gating_coef_, other.gating_coef_)
    in_polars = pl.DataFrame(given.to_dict("list"))
    np.testing.assert_array_equal(
        model.predict_proba(items, gating=in_polars), other.predict_proba(items, gating=by_hand)
    )


@pytest.mark.parametrize(
    "estimator", [mj.GaussianMixture(2, random_state=0), mj.LatentClassAnalysis(2, random_state=0)]
)
def test_text_survives_saving_in_every_mixture(estimator: Any, tmp_path: Path) -> None:
    items, given = drawn()
    rows = (items == "yes").sum(axis=1).to_numpy()[:, None] + np.random.default_rng(1).normal(size=(400, 1))
    model = estimator.fit(rows, gating=given[["sex"]])
    model.save(tmp_path / "m.majorant")
    again = mj.load(tmp_path / "m.majorant")
    np.testing.assert_array_equal(
        again.predict_proba(rows, gating=given[["sex"]]), model.predict_proba(rows, gating=given[["sex"]])
    )


def test_the_order_of_levels_is_that_of_the_type() -> None:
    size = pd.Categorical(["big", "small", "big"], ["small", "big", "never met"])
    learned = Covariates.learned(pd.DataFrame({"size": size}), 3)
    assert learned.column_names == ["size=big"] and learned.references == {"size=big": "small"}
    enum = pl.DataFrame({"size": pl.Series(["big", "small"], dtype=pl.Enum(["small", "big"]))})
    assert Covariates.learned(enum, 2).references == {"size=big": "small"}
    assert Covariates.learned(["b", "a"], 2).column_names == ["z1=b"]
    assert Covariates.learned(np.array([True, False]), 2).levels == ((),)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sex": ["a", None, "b"]}, "covariate 'sex' is missing in row 1"),
        ({"age": [1.0, np.nan, 2.0]}, "row 1 has nan in column age"),
        ({"age": [1.0, np.inf, 2.0]}, "row 1 has inf in column age"),
        ({"sex": ["a", 1, "b"]}, "covariate 'sex' mixes text and numbers: row 1 has 1"),
        ({"sex": ["a", "b"]}, "a row for each of the 3 rows"),
    ],
)
def test_what_cannot_be_a_covariate_is_refused_in_words(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Covariates.learned(pd.DataFrame(given), 3)


def test_very_many_levels_and_new_ones_are_refused() -> None:
    with pytest.raises(ValueError, match="covariate 'name' has 51 different texts, more than 50: join some"):
        Covariates.learned(pd.DataFrame({"name": [f"n{i}" for i in range(51)]}), 51)
    items, given = drawn(100)
    model = mj.LatentClassAnalysis(2, random_state=0).fit(items, gating=given)
    with pytest.raises(ValueError, match="covariate 'sex' is 'other' in row 0, a level that the fit has not seen"):
        model.predict(items, gating=given.assign(sex="other"))
    with pytest.raises(ValueError, match="gating has 1 columns; the fit had 2"):
        model.predict(items, gating=given[["age"]])


def test_columns_are_told_by_their_names() -> None:
    g = np.random.default_rng(3)
    table = pd.DataFrame({"age": g.normal(size=300), "income": g.normal(size=300)})
    x = g.normal(4.0 * (g.random(300) < 1 / (1 + np.exp(-2 * table["age"]))), 1.0)[:, None]
    fitted = mj.GaussianMixture(2, random_state=0).fit(x, gating=table)
    expected = fitted.predict_proba(x, gating=table)
    np.testing.assert_array_equal(fitted.predict_proba(x, gating=table[["income", "age"]]), expected)
    np.testing.assert_array_equal(fitted.predict_proba(x, gating=table.to_numpy()), expected)
    with pytest.raises(ValueError, match="gating has the columns age, wealth; the fit had age, income"):
        fitted.predict_proba(x, gating=table.rename(columns={"income": "wealth"}))


@pytest.mark.parametrize(
    "estimator",
    [
        mj.GaussianMixture(2, random_state=0),
        mj.LatentClassAnalysis(2, random_state=0),
        mj.HiddenMarkovModel(2, random_state=0),
        mj.RegressionMixture(2, random_state=0),
    ],
)
def test_covariates_may_be_in_a_table_of_arrow(estimator: Any) -> None:
    items, given = drawn(200)
    given = given[["age"]] if isinstance(estimator, mj.RegressionMixture) else given
    random = np.random.default_rng(1)
    X = (items == "yes").sum(axis=1).to_numpy()[:, None] + random.normal(size=(200, 1))
    y = [X[:, 0] + random.normal(size=200)] if isinstance(estimator, mj.RegressionMixture) else []
    in_pandas = clone(estimator).fit(X, *y, gating=given)
    in_arrow = clone(estimator).fit(X, *y, gating=pl.DataFrame(given.to_dict("list")).to_arrow())
    assert in_arrow.log_likelihood_ == in_pandas.log_likelihood_
    np.testing.assert_array_equal(in_arrow.gating_coef_, in_pandas.gating_coef_)


def test_effects_of_covariates_in_a_table_of_arrow_and_on_one_class() -> None:
    items, given = drawn(200)
    arrow = pl.DataFrame(given.to_dict("list")).to_arrow()
    model = mj.LatentClassAnalysis(2, random_state=0).fit(items)
    expected = model.covariate_effects(items, given).to_frame()
    pd.testing.assert_frame_equal(model.covariate_effects(items, arrow).to_frame(), expected)
    for rows in ({}, {"gating": given}):
        one = mj.LatentClassAnalysis(1).fit(items, **rows)
        with pytest.raises(ValueError, match="one class has the share 1 whatever the covariates are"):
            one.covariate_effects(items, given)


@pytest.mark.parametrize("terms", ["0 + age", "sex - 1"])
def test_shares_without_an_intercept_are_refused_rather_than_given_one(terms: str) -> None:
    items, given = drawn(50)
    table = pd.concat([items, given], axis=1)
    with pytest.raises(ValueError, match="always has an intercept: leave out 0"):
        mj.LatentClassAnalysis.from_formula(f"cbind(a, b, c) ~ {terms}", table)
    with pytest.raises(ValueError, match="gating always has an intercept: leave out 0"):
        mj.HiddenMarkovModel.from_formula("age ~ 1", table, gating=terms)
    with pytest.raises(ValueError, match="gating always has an intercept: leave out 0"):
        mj.RegressionMixture.from_formula("age ~ 1", table, gating=terms.replace("age", "a"))


def in_words(model: str) -> Any:
    """A fit in which levels of a factor are columns, twice the same."""
    random, sex = np.random.default_rng(0), np.repeat(["F", "M", "M"], 60)
    y, twin = random.normal(size=180) + 9 * (np.arange(180) % 2), np.where(sex == "F", "no", "yes")
    table = pd.DataFrame({"y": y, "sex": sex, "twin": twin, "a": sex == "M", "b": y > 4, "c": y < 2})
    made: dict[str, Any] = {
        "lines": lambda: mj.RegressionMixture.from_formula("y ~ sex + twin", table, random_state=0),
        "gated lines": lambda: mj.RegressionMixture.from_formula("y ~ 1", table, gating="sex + twin", random_state=0),
        "states": lambda: mj.HiddenMarkovModel.from_formula("y ~ sex + twin", table, n_components=2, random_state=0),
        "steps": lambda: mj.HiddenMarkovModel.from_formula(
            "y ~ 1", table, gating="sex + twin", n_components=2, random_state=0
        ),
        "classes": lambda: mj.LatentClassAnalysis.from_formula(
            "cbind(a, b, c) ~ sex + twin", table, n_components=2, random_state=0
        ),
        "columns": lambda: mj.LatentClassAnalysis(2, random_state=0).fit(
            table[["a", "b", "c"]], gating=table[["sex", "twin"]]
        ),
    }
    return made[model]()


@pytest.mark.parametrize("model", ["lines", "gated lines", "states", "steps", "classes", "columns"])
def test_levels_are_in_words_on_every_screen_and_in_warnings(model: str) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fitted = in_words(model)
    texts = [str(fitted.summary()), *(str(one.message) for one in said)]
    assert "sex: M against F" in texts[0] and any("twin: yes against no" in text for text in texts[1:])
    assert not any(raw in text for text in texts for raw in ("[T.", "sex=", "twin="))


NEAR = {
    "rounding of a constant": lambda x, e: 1 + 1e-15 * e,
    "a constant": lambda x, e: 3 + 0 * e,
    "the digits of a large number": lambda x, e: 1e9 + 1e-7 * e,
    "a copy but for rounding": lambda x, e: x + 1e-15 * e,
    "a copy but for a millionth": lambda x, e: x + 1e-6 * e,
}
NEARLY_ALIKE: dict[str, Any] = {
    "lines": lambda t: mj.RegressionMixture.from_formula("y ~ x + z", t, random_state=0),
    "counts": lambda t: mj.RegressionMixture.from_formula("n ~ x + z", t, family="poisson", random_state=0),
    "gated lines": lambda t: mj.RegressionMixture.from_formula("y ~ 1", t, gating="x + z", random_state=0),
    "states": lambda t: mj.HiddenMarkovModel.from_formula("y ~ x + z", t, n_components=2, random_state=0),
    "states of counts": lambda t: mj.HiddenMarkovModel.from_formula(
        "n ~ x + z", t, emission="poisson", n_components=2, random_state=0
    ),
    "steps": lambda t: mj.HiddenMarkovModel.from_formula(
        "y ~ 1", t, gating="x + z", n_components=2, effort="fast", random_state=0
    ),
    "gated rows": lambda t: mj.GaussianMixture(2, random_state=0).fit(t[["y"]], gating=t[["x", "z"]]),
    "classes": lambda t: mj.LatentClassAnalysis.from_formula("cbind(a, b, c) ~ x + z", t, n_components=2),
}


@pytest.mark.parametrize("case", NEAR)
@pytest.mark.parametrize("model", NEARLY_ALIKE)
def test_columns_that_are_nearly_functions_of_others_are_told_and_have_no_errors(model: str, case: str) -> None:
    random = np.random.default_rng(0)
    x, e = random.normal(size=(2, 240))
    z = random.random(240) < 0.5 if "state" not in model and model != "steps" else np.arange(240) // 20 % 2 == 1
    table = pd.DataFrame({"x": x, "z": NEAR[case](x, e), "y": np.where(z, x, 9 - x) + 0.3 * random.normal(size=240)})
    table["n"] = random.poisson(np.where(z, 3.0, 20.0))
    for item in "abc":
        table[item] = random.random(240) < np.where(z, 0.9, 0.2)
    with pytest.warns(Warning, match=r"z(: a combination| does not vary| is (nearly )?a linear function)"):
        fitted = NEARLY_ALIKE[model](table)
    if model == "gated rows":
        errors = fitted.standard_errors(table[["y"]], gating=table[["x", "z"]])
    elif model == "classes":
        errors = fitted.standard_errors(**fitted.rows_of(table))
    else:
        errors = fitted.standard_errors(table) if "state" in model or model == "steps" else fitted.standard_errors()
    own = errors["gating_coef" if np.size(errors.get("gating_coef", ())) else "coef"]
    assert np.isnan(own[..., -1][own[..., -1] != 0]).all()  # zero is what is against itself
    assert np.nanmax(own, initial=0.0) < 100
