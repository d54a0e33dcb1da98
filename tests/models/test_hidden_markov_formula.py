"""Hidden Markov models by formula: terms, lags within sequences, and tables given to methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning

import majorant as mj
from majorant.models.hidden_markov.emissions import EMISSIONS, EXPLAINED


def table(n: int = 160) -> pd.DataFrame:
    """Two sequences of two regimes: lines on a number, a kind and the row before."""
    random, states = np.random.default_rng(0), np.tile(np.repeat([0, 1], n // 4), 2)
    x, kind, y = random.normal(size=n), np.where(random.random(n) < 0.5, "a", "b"), np.zeros(n)
    for t in range(1, n):
        line = 1 + 0.5 * y[t - 1] + 2 * x[t] if states[t] == 0 else 5 - 0.3 * y[t - 1] - x[t] + (kind[t] == "b")
        y[t] = line + 0.3 * random.normal()
    when = np.tile(np.arange(n // 2), 2)
    return pd.DataFrame({"x": x, "y": y, "kind": kind, "animal": np.repeat(["u", "v"], n // 2), "hour": when})


def by_formula(text: str, rows: Any, **arguments: Any) -> Any:
    settings = {"n_components": 2, "random_state": 0, "effort": "fast", **arguments}
    return mj.HiddenMarkovModel.from_formula(text, rows, **settings)


def by_columns(X: Any, rows: pd.DataFrame, **settings: Any) -> Any:
    model = mj.HiddenMarkovModel(2, emission="regression", random_state=0, effort="fast", **settings)
    return model.fit(X, groups=rows["animal"])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_formula_is_the_fit_of_its_columns_in_any_order_of_rows(library: str, tmp_path: Path) -> None:
    rows = table()
    mixed: Any = rows.sample(frac=1, random_state=1)
    place = np.argsort(mixed.index)
    mixed = pl.from_pandas(mixed) if library == "polars" else mixed
    model = by_formula("y ~ x + kind + lag(y) | animal", mixed, time="hour")
    columns = by_columns(np.column_stack([rows["y"], rows["x"], rows["kind"] == "b"]), rows, lags=1)
    assert model.log_likelihood_ == pytest.approx(columns.log_likelihood_, abs=1e-8)
    np.testing.assert_allclose(model.coef_, columns.coef_, atol=1e-8)
    assert model.feature_names_in_.tolist() == ["y", "x", "kind[T.b]"]
    assert (model.emission, model.lags) == ("regression", 1)
    model.save(tmp_path / "model.majorant")
    X = np.column_stack([rows["y"], rows["x"], rows["kind"] == "b"])
    for one in (model, mj.load(tmp_path / "model.majorant")):
        np.testing.assert_array_equal(one.predict(mixed)[place], columns.predict(X, groups=rows["animal"]))
        assert one.bic(mixed) == pytest.approx(columns.bic(X, groups=rows["animal"]), abs=1e-6)
        assert one.score(mixed) == pytest.approx(columns.score(X, groups=rows["animal"]), abs=1e-8)
        assert set(one.standard_errors(mixed)) == set(columns.standard_errors(X, groups=rows["animal"]))


def test_lags_of_columns_are_those_of_the_sequence() -> None:
    rows = table()
    groups = rows.groupby("animal")
    X = np.column_stack([rows["y"], groups["x"].shift(2), groups["x"].shift(1) ** 2, groups["kind"].shift(1) == "b"])
    X[groups["x"].shift(2).isna()] = np.nan
    model = by_formula("y ~ lag(x, 2) + I(lag(x)**2) + lag(kind) | animal", rows)
    assert model.feature_names_in_.tolist() == ["y", "lag(x, 2)", "I(`lag(x)` ** 2)", "lag(kind)[T.b]"]
    assert model.formula_of_fit_.columns == ["y", "x", "kind"]
    assert model.log_likelihood_ == pytest.approx(by_columns(X, rows).log_likelihood_, abs=1e-8)
    # the second lag of the target alone is no autoregression of the rows before
    assert by_formula("y ~ lag(y, 2) | animal", rows).lags == 0
    chain = by_formula("y ~ lag(y) + lag(y, 2) | animal", rows)
    assert chain.lags == 2 and chain.forecast(rows, 3).mean.shape == (2, 3, 1)


def test_lines_without_constants() -> None:
    rows = table()
    model = by_formula("y ~ 0 + x + lag(y) | animal", rows)
    columns = by_columns(rows[["y", "x"]], rows, lags=1, fit_intercept=False)
    assert model.log_likelihood_ == pytest.approx(columns.log_likelihood_, abs=1e-8)
    assert not hasattr(model, "intercept_") and model.coef_.shape == (2, 2)
    with_constants = by_columns(rows[["y", "x"]], rows, lags=1)
    assert model.log_likelihood_ < with_constants.log_likelihood_ - 10
    assert model.n_parameters_ == with_constants.n_parameters_ - 2
    # one state is least squares through the origin, far from it too
    x, y = np.arange(40.0) + 1e4, 3.0 * np.arange(40.0) + 1e4 + np.sin(np.arange(40.0))
    one = mj.HiddenMarkovModel(1, emission="regression", fit_intercept=False).fit(np.column_stack([y, x]))
    assert one.coef_[0, 0] == pytest.approx((x @ y) / (x @ x), rel=1e-10)
    assert one.variances_[0] == pytest.approx(np.mean((y - one.coef_[0, 0] * x) ** 2), rel=1e-8)
    residuals = model.pseudo_residuals(rows)
    assert abs(np.nanstd(residuals[:, 0]) - 1) < 0.15
    own = by_formula("y ~ 0 + lag(y)", rows)
    assert own.forecast(rows, 2).mean.shape == (1, 2, 1)
    with pytest.raises(ValueError, match="leaves lines without anything"):
        mj.HiddenMarkovModel(1, emission="regression", fit_intercept=False).fit(rows[["y"]])
    with pytest.raises(ValueError, match='fit_intercept=False is of emission="regression"'):
        mj.HiddenMarkovModel(1, fit_intercept=False).fit(rows[["y"]])


def test_rows_that_lack_a_value_only_advance_time() -> None:
    rows = table()
    rows.loc[[5, 60], "x"] = np.nan
    rows.loc[20, "y"] = np.nan
    rows.loc[90, "kind"] = None
    X = np.column_stack([rows["y"], rows["x"], np.where(rows["kind"].isna(), np.nan, rows["kind"] == "b")])
    model, columns = by_formula("y ~ x + kind | animal", rows), by_columns(X, rows)
    assert model.log_likelihood_ == pytest.approx(columns.log_likelihood_, abs=1e-8)
    assert len(model.predict(rows)) == len(rows)


def test_targets_without_terms_are_by_the_emission() -> None:
    rows = table()
    model = by_formula("cbind(y, x) ~ 1", rows, groups="animal")
    expected = mj.HiddenMarkovModel(2, random_state=0, effort="fast").fit(rows[["y", "x"]], groups=rows["animal"])
    np.testing.assert_array_equal(model.means_, expected.means_)
    mean = np.where(np.arange(len(rows)) % 6 < 3, 2, 20)  # of noise alone a state has one row, and does not count
    counts = rows.assign(n=np.random.default_rng(0).poisson(mean))
    assert by_formula("n ~ 1", counts, emission="poisson").rates_.shape == (2, 1)
    assert model.fit(rows[["x"]]).means_.shape == (2, 1)  # a plain fit forgets the formula
    assert not hasattr(model, "formula_of_fit_")


def test_sizes_are_selected_by_formula() -> None:
    fit = {"groups": "animal", "time": "hour"}
    model = mj.HiddenMarkovModel(random_state=0, effort="fast")
    found = mj.select(model, table(), n_components=[1, 2], formula="y ~ x + kind + lag(y)", fit_params=fit)
    assert found.best_estimator_.n_components == 2 and found.best_estimator_.lags == 1


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("~ x", {}, "must name a target"),
        ("y ~ 0", {}, "must name a target and terms"),
        ("y ~ x", {"fit_intercept": False}, "write 'y ~ 0 \\+ x' for none"),
        ("y ~ x + offset(x)", {}, "without offset"),
        ("y ~ lag(z)", {}, "no column 'z'"),
        ("y ~ lag(x, 0)", {}, "one row before or more"),
        ("cbind(y, x) ~ hour", {}, "has 2 targets: terms may explain one"),
        ("kind ~ 1", {}, "kind holds text"),
        ("y ~ x | animal", {"groups": "animal"}, "leave groups out"),
        ("y ~ x", {"emission": "gamma"}, "of emission gaussian, poisson, bernoulli; got emission='gamma'"),
        (3, {}, "a formula is a text"),
    ],
)
def test_formulas_that_cannot_be_are_refused(text: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        by_formula(text, table(), **arguments)


def test_tables_that_do_not_fit_the_formula_are_refused() -> None:
    rows = table()
    model = by_formula("y ~ x + kind | animal", rows)
    with pytest.raises(ValueError, match="no column 'kind'"):
        model.predict(rows.drop(columns="kind"))
    with pytest.raises(ValueError, match="has the level 'c'"):
        model.predict(rows.assign(kind="c"))
    with pytest.raises(ValueError, match="say which rows are one"):
        model.forecast(rows.drop(columns="animal"))


def test_columns_of_a_line_without_a_constant_that_depend_on_each_other_are_named() -> None:
    """Beside no constant a column of ones has an effect of its own, and errors."""
    draws = np.random.default_rng(0)
    x, first = draws.normal(size=200), np.repeat([True, False], 100)
    y = np.where(first, 2 * x, -x) + 0.2 * draws.normal(size=200)
    table = pd.DataFrame({"y": y, "x": x, "twice": 2 * x, "none": 0.0, "one": 1.0})
    with pytest.warns(
        ConvergenceWarning, match="their own: twice is a linear function of those before it; none is zero"
    ):
        fitted = mj.HiddenMarkovModel.from_formula("y ~ 0 + x + twice + none", table, n_components=2, random_state=0)
    assert np.isnan(fitted.standard_errors(table)["coef"]).all()
    fitted = mj.HiddenMarkovModel.from_formula("y ~ 0 + x + one", table, n_components=2, random_state=0)
    errors = fitted.standard_errors(table)["coef"]
    for k, rows in enumerate((first, ~first) if fitted.coef_[0, 0] > 0 else (~first, first)):
        design = np.column_stack([x, np.ones(200)])[rows]
        exact = 0.2 * np.sqrt(np.diag(np.linalg.inv(design.T @ design)))
        np.testing.assert_allclose(errors[k], exact, rtol=0.3)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_state_whose_line_is_exact_is_said_to_be(noise: float) -> None:
    """Without noise, and where the largest ratio of noises holds the exact state back."""
    draws = np.random.default_rng(0)
    x, first = draws.normal(size=200), np.repeat([True, False], 100)
    table = pd.DataFrame({"x": x, "y": np.where(first, 2 * x + 1, -x + noise * draws.normal(size=200))})
    match = "the line of a state fits its rows exactly" if noise else "every row is exactly on one of the lines"
    with pytest.warns(ConvergenceWarning, match=match):
        fitted = mj.HiddenMarkovModel.from_formula("y ~ x", table, n_components=2, random_state=0)
    assert not fitted.regular_
    line = np.argmin(np.abs(fitted.coef_[:, 0] - 2))
    np.testing.assert_allclose([fitted.coef_[line, 0], fitted.intercept_[line]], [2, 1], atol=0.1)
    errors = fitted.standard_errors(table)
    for name in ("intercept", "coef", "variances"):
        assert np.isnan(errors[name][line]).all()
        assert np.isfinite(errors[name][1 - line]).all() == (noise > 0)


def test_two_states_on_one_exact_line_are_told_one_thing_to_do() -> None:
    x = np.random.default_rng(0).normal(size=60)
    rows = np.column_stack([1 + 2 * x, x])
    with pytest.warns(ConvergenceWarning, match="; fit a single regression.$") as told:
        mj.HiddenMarkovModel(2, emission="regression", random_state=0).fit(rows)
    assert "take in more rows" not in " ".join(str(one.message) for one in told)


@pytest.mark.parametrize("of_category", [True, False])
def test_a_formula_is_advised_for_levels_of_a_category_only(of_category: bool) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=60)
    column = (x > 0).astype(float) if of_category else x
    rows = np.column_stack([random.normal(size=60) + x, column, 1 - column])
    with pytest.warns(ConvergenceWarning, match="x3 is a linear function") as told:
        mj.HiddenMarkovModel(1, emission="regression", random_state=0).fit(rows)
    assert ("a formula" in " ".join(str(one.message) for one in told)) == of_category


def test_errors_name_rows_as_they_were_given() -> None:
    data = table()
    data.loc[[3, 7], "x"] = np.nan
    model = mj.HiddenMarkovModel.from_formula("y ~ x + kind | animal", data, n_components=1, time="hour")
    wrong = data.assign(kind=[*data["kind"][:20], "c", *data["kind"][21:]])
    with pytest.raises(ValueError, match="'c' in row 20 "):
        model.predict(wrong)
    future = pd.DataFrame({"animal": ["u", "v"], "hour": [80, 80], "x": [1.0, 1.0], "kind": ["a", "c"]})
    with pytest.raises(ValueError, match=r"future: .*'c' in row 1 "):
        model.forecast(data, future=future)


@pytest.mark.parametrize("emission", EMISSIONS)
def test_text_is_named_with_a_call_that_takes_it_where_there_is_one(emission: str) -> None:
    rows = table().assign(y=lambda rows: (rows["y"] > 1).astype(float)).rename(columns={"kind": "my kind"})
    for names in (["y", "x", "my kind"], ["my kind", "x"]):  # the first is the target, which is no term
        with pytest.raises(ValueError, match="column 'my kind' holds text such as") as refused:
            mj.HiddenMarkovModel(2, emission=emission).fit(rows[names])
        call = str(refused.value).partition(" but one; ")[2].removesuffix(" takes text as it is")
        assert bool(call) == (emission in EXPLAINED.values() and names[0] == "y")
        if call:
            fitted = eval(call, {"HiddenMarkovModel": mj.HiddenMarkovModel, "table": rows})
            assert fitted.emission == emission and fitted.feature_names_in_[-1] == "my kind[T.b]"
