"""Rows that lack covariates or outcomes: one rule in one step and in several, by table, by formula and by file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import majorant as mj

METHODS = [("ml", "proportional"), ("ml", "modal"), ("bch", "modal"), ("two-step", "modal"), ("naive", "modal")]


def survey(n: int = 400) -> tuple[Any, Any, Any, Any]:
    """Items, age and sex (some missing), which rows have both, and an outcome."""
    random = np.random.default_rng(0)
    age, sex = random.normal(40, 10, n), random.choice(["f", "m"], n).astype(object)
    second = random.random(n) < 1 / (1 + np.exp((40 - age) / 10))
    p = np.where(second[:, None], 0.85, 0.2)
    items = pd.DataFrame((random.random((n, 6)) < p).astype(int), columns=list("abcdef"))
    given = pd.DataFrame({"age": age, "sex": sex}).mask(random.random((n, 2)) < 0.08)
    return items, given, given.notna().all(axis=1).to_numpy(), random.normal(second, 1.0)


def test_one_step_is_the_fit_of_complete_rows_and_says_how_many_they_are() -> None:
    items, given, there, _ = survey()
    model = mj.LatentClassAnalysis(2, random_state=0)
    with pytest.warns(UserWarning, match=rf"{(~there).sum()} of 400 rows lack a covariate \(age in .*left out"):
        model.fit(items, gating=given)
    alone = mj.LatentClassAnalysis(2, random_state=0).fit(items[there], gating=given[there])
    assert model.n_rows_ == there.sum() and model.log_likelihood_ == alone.log_likelihood_
    assert "lack a covariate" in str(model.summary())
    assert model.bic(items, gating=given) == alone.bic(items[there], gating=given[there])
    here, found = model.covariate_effects(items, given), alone.covariate_effects(items[there], given[there])
    np.testing.assert_array_equal(here.standard_errors, found.standard_errors)
    assert here.n_rows == there.sum() and "left out" in str(here)
    drawn, _ = model.sample(gating=given)
    assert drawn.shape == items.shape and not np.isnan(drawn.astype(float)).any()


def test_rows_without_covariates_are_predicted_by_items_and_the_shares_of_all() -> None:
    items, given, there, _ = survey()
    with pytest.warns(UserWarning, match="lack a covariate"):
        model = mj.LatentClassAnalysis(2, random_state=0).fit(items, gating=given)
    q = model.predict_proba(items, gating=given)
    np.testing.assert_array_equal(q[there], model.predict_proba(items[there], gating=given[there]))
    rows = np.flatnonzero(~there)
    p = model.item_probabilities_.reshape(2, 6, 2)[:, np.arange(6), items.to_numpy()[rows]].prod(axis=2).T
    expected = model.weights_ * p
    np.testing.assert_allclose(q[rows], expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_allclose(model.score_samples(items, gating=given)[rows], np.log(expected.sum(axis=1)), rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(items[~there], gating=given[~there]), q[rows], rtol=1e-12)


@pytest.mark.parametrize(("method", "assignment"), METHODS)
def test_in_several_steps_the_classes_are_those_of_all_rows(method: str, assignment: str) -> None:
    items, given, there, y = survey()
    model = mj.LatentClassAnalysis(2, random_state=0).fit(items)
    calls = {"method": method, "assignment": assignment}
    outcome = np.where(there, y, np.nan)
    effects, found = model.covariate_effects(items, given, **calls), model.distal_outcome(items, outcome, **calls)
    assert effects.n_rows == found.n_rows == there.sum()
    assert "lack a covariate" in str(effects) and "have no outcome" in str(found)
    # what stands in the rows left out does not matter, and rows without weight are rows that are not there
    weights = np.concatenate([np.ones(400), np.zeros(3)])
    more = [pd.concat([part, part[there][:3]], ignore_index=True) for part in (items, given, pd.Series(outcome))]
    again = model.covariate_effects(more[0], more[1], weights, **calls)
    np.testing.assert_allclose(again.standard_errors, effects.standard_errors, rtol=1e-6)
    once_more = model.distal_outcome(more[0], more[2], weights, **calls)
    np.testing.assert_allclose(once_more.standard_errors, found.standard_errors, rtol=1e-6)
    if method in ("two-step", "naive"):  # nothing but the rows of the step enters their estimates
        np.testing.assert_allclose(model.covariate_effects(items[there], given[there], **calls).coef, effects.coef)


def test_missing_values_are_an_error_where_asked() -> None:
    items, given, there, y = survey()
    model = mj.LatentClassAnalysis(2, missing="error", random_state=0)
    first = int(np.argmin(there))
    with pytest.raises(ValueError, match=rf"lack a covariate .* row {first}: fill them in, or set missing="):
        model.fit(items, gating=given)
    model.fit(items)
    with pytest.raises(ValueError, match="lack a covariate"):
        model.covariate_effects(items, given)
    with pytest.raises(ValueError, match="1 of 400 rows has no outcome, the first row 7"):
        model.distal_outcome(items, np.where(np.arange(400) == 7, np.nan, y))
    dates = np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")[np.arange(400) % 2]
    for wrong in (
        dates,
        dates.astype(object),
        dates - dates[0],
        pd.Categorical(dates),
        list(pd.PeriodIndex(dates, freq="D")),
    ):
        with pytest.raises(TypeError, match=r"(y holds|row 0 of y is) .*dates? or duration"):
            model.distal_outcome(items, wrong)
    with pytest.raises(ValueError, match="missing must be"):
        mj.LatentClassAnalysis(2, missing="keep").fit(items)


def test_a_covariate_or_outcome_that_no_row_has_and_groups_beside_gaps_are_refused() -> None:
    items, given, _, _ = survey()
    model = mj.LatentClassAnalysis(2, random_state=0)
    with pytest.raises(ValueError, match=r"400 of 400 rows lack a covariate \(sex in 400"):
        model.fit(items, gating=given.assign(age=1.0 * np.arange(400), sex=None))
    with pytest.raises(ValueError, match="rows of one group stand together"):
        model.fit(items, gating=given, groups=np.arange(400) // 2)
    with pytest.raises(ValueError, match="missing in all"):
        model.fit(items).distal_outcome(items, np.full(400, np.nan))


def test_a_formula_leaves_out_rows_that_lack_a_covariate() -> None:
    items, given, there, _ = survey()
    table = pd.concat([items, given], axis=1)
    formula = "cbind(a, b, c, d, e, f) ~ age + sex"
    with pytest.warns(UserWarning, match="lack a covariate"):
        model = mj.LatentClassAnalysis.from_formula(formula, table, n_components=2, random_state=0)
    alone = mj.LatentClassAnalysis.from_formula(formula, table[there], n_components=2, random_state=0)
    assert model.log_likelihood_ == alone.log_likelihood_ and model.n_rows_ == there.sum()
    assert model.predict_proba(**model.rows_of(table)).shape == (400, 2)
    odd = table.iloc[np.r_[np.flatnonzero(~there)[:2], np.flatnonzero(there)[:3]]].reset_index(drop=True)
    odd.loc[4, "sex"] = "unheard of"
    with pytest.raises(ValueError, match="in row 4 "):  # of the table, not of its complete rows
        model.rows_of(odd)
    with pytest.raises(ValueError, match="lack a covariate"):
        mj.LatentClassAnalysis.from_formula(formula, table, n_components=2, missing="error")


@pytest.mark.parametrize("values", [[1.0, None, 0.0], pd.array([1, None, 0], dtype="Int64")])
def test_numbers_of_an_outcome_are_numbers_however_they_are_missing(values: Any) -> None:
    items, *_ = survey(300)
    model = mj.LatentClassAnalysis(2, random_state=0).fit(items)
    y = pd.Series(list(values) * 100)
    found = model.distal_outcome(items, y)
    assert found.kind == "categorical" and found.levels == (0, 1) and found.n_rows == 200
    amounts = model.distal_outcome(items, 0.5 * y)
    assert amounts.kind == "normal" and amounts.n_rows == 200
    counts = model.distal_outcome(items, y, method="ml", kind="count")
    shares = model.distal_outcome(items, y, method="ml", kind="categorical")
    assert counts.kind == "count" and shares.levels == (0, 1)
    heads = ["class", "against", "difference", "standard_error", "statistic", "df", "p_value"]
    assert list(shares.differences().columns) == heads


def test_results_print_as_tables() -> None:
    items, _, there, y = survey(300)
    model = mj.LatentClassAnalysis(2, random_state=0).fit(items)
    profile = model.class_profile(items)
    wide = profile.to_wide_frame(3)
    assert list(wide.columns) == ["item", "level", *(f"class {k + 1} ({s:.0%})" for k, s in enumerate(model.weights_))]
    ends = f"({profile.low[1, 0]:.3f}, {profile.high[1, 0]:.3f})"
    assert wide.iloc[1, 2] == f"{profile.estimates[1, 0]:.3f} {ends}" and "array" not in str(profile)
    assert "assigned wrongly" in str(model.classification(items))
    outcome = model.distal_outcome(items, np.where(there, y, np.nan))
    assert "The same in all classes" in str(outcome) and outcome.test().df == 1
    pair = outcome.differences().iloc[0]
    assert pair["statistic"] == pytest.approx(outcome.test().statistic, rel=1e-9)
    assert pair["difference"] == pytest.approx(outcome.estimates[1, 0] - outcome.estimates[0, 0])


def test_a_comparison_has_the_bootstrap_test_against_one_class_fewer() -> None:
    items, *_ = survey(150)
    fits = [mj.LatentClassAnalysis(k, effort="fast", random_state=0).fit(items) for k in (1, 2)]
    told = mj.LatentClassAnalysis.comparison(fits, items, n_resamples=4)["bootstrap_p_value"]
    assert np.isnan(told[0]) and told[1] == 0.2
