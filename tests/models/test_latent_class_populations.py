"""Latent classes of several populations: items measured alike or not, shares, tests of invariance, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import majorant as mj
from majorant.models.latent_class_analysis.invariance import InvarianceTests, chi_squared_tests

ITEMS = ["a", "b", "c", "d", "e"]
ANSWERS = np.array([[0.8, 0.7, 0.9, 0.2, 0.6], [0.2, 0.3, 0.25, 0.7, 0.1]])


def survey(n: int = 500, seed: int = 0, *, shift: float = 0.0, missing: float = 0.1) -> Any:
    """Answers of two classes, more of the second among women, who answer "c" differently by a shift."""
    random = np.random.default_rng(seed)
    sex = random.choice(["men", "women"], n, p=[0.6, 0.4])
    second = (random.random(n) < np.where(sex == "men", 0.3, 0.6)).astype(int)
    p = ANSWERS[second]
    p[:, 2] -= shift * (sex == "women")
    table = pd.DataFrame(np.where(random.random((n, 5)) < p, "yes", "no").astype(object), columns=ITEMS)
    table = table.mask(random.random((n, 5)) < missing, None)
    table.insert(2, "sex", sex)
    return table


def fitted(table: Any, k: int = 2, **settings: Any) -> Any:
    return mj.LatentClassAnalysis(k, population="sex", random_state=0, **settings).fit(table)


def test_equal_items_are_the_fit_with_the_population_as_covariate() -> None:
    table = survey()
    model = fitted(table)
    gated = mj.LatentClassAnalysis(2, random_state=0).fit(table[ITEMS], gating=table[["sex"]])
    assert model.log_likelihood_ == pytest.approx(gated.log_likelihood_, abs=1e-6)
    assert model.n_parameters_ == gated.n_parameters_ == 12
    logits = gated.gating_coef_[1, 0] + gated.gating_coef_[1, 1] * np.unique(
        (pd.get_dummies(table["sex"])["women"] - gated.gating_center_[0]) / gated.gating_scale_[0]
    )
    np.testing.assert_allclose(model.population_shares_[1], 1 / (1 + np.exp(-logits)), atol=1e-4)
    errors = model.standard_errors(table)
    assert np.isfinite(errors["population_shares"]).all()
    theirs = gated.standard_errors(table[ITEMS], gating=table[["sex"]])
    np.testing.assert_allclose(errors["item_probabilities"], theirs["item_probabilities"], rtol=1e-3)
    np.testing.assert_allclose(
        model.predict_proba(table), gated.predict_proba(table[ITEMS], gating=table[["sex"]]), atol=1e-4
    )


def alone(table: Any, k: int) -> list[Any]:
    own = [table.loc[table["sex"] == level, ITEMS] for level in ("men", "women")]
    return [mj.LatentClassAnalysis(k, random_state=0).fit(rows) for rows in own]


@pytest.mark.parametrize("k", [1, 2])
def test_free_items_are_the_fits_of_each_population_alone(k: int) -> None:
    table = survey(shift=0.4)
    model, fits = fitted(table, k, equal_items="none"), alone(table, k)
    assert model.log_likelihood_ == pytest.approx(sum(fit.log_likelihood_ for fit in fits), abs=1e-5)
    assert model.n_parameters_ == sum(fit.n_parameters_ for fit in fits)
    for g, fit in enumerate(fits):
        np.testing.assert_allclose(np.sort(model.population_shares_[:, g]), np.sort(fit.weights_), atol=1e-3)
    found, theirs = model.fit_statistics(table), [fit.fit_statistics(rows(table, g)) for g, fit in enumerate(fits)]
    assert found.g2 == pytest.approx(sum(one.g2 for one in theirs), abs=1e-4)
    assert found.df == sum(one.df for one in theirs)
    if k == 2:  # classes of the populations are numbered alike: those who answer "yes" to "a" are one
        assert [name for name in model.items_.names if name.startswith("a")] == ["a (men)", "a (women)"]
        yes = model.item_probabilities_[:, [1, 3]]
        assert (yes[0] > yes[1]).all() or (yes[0] < yes[1]).all()
        assert "Each population was searched by itself: men" in model.search_.note


def test_free_items_keep_what_the_searches_of_the_populations_found() -> None:
    model = fitted(survey(shift=0.4), 3, equal_items="none")
    best = sum(report.best for report in model.population_searches_.values())
    assert model.log_likelihood_ == pytest.approx(best, abs=1e-6)


def rows(table: Any, g: int) -> Any:
    return table.loc[table["sex"] == ("men", "women")[g], ITEMS]


def test_items_of_every_kind_may_be_partly_equal() -> None:
    random = np.random.default_rng(1)
    table = survey(600).drop(columns="e")
    z = (table["a"] == "yes").to_numpy()
    table["size"] = random.normal(np.where(z, 3.0, 0.0) + (table["sex"] == "women"), 1.0)
    table["visits"] = random.poisson(np.where(z, 6.0, 2.0))
    settings = {"items": {"visits": "count"}, "equal_items": ["a", "b", "c", "d", "visits"]}
    model = fitted(table, **settings)
    assert model.items_.names == ("a", "b", "c", "d", "size (men)", "size (women)", "visits")
    assert model.n_parameters_ == 2 + 2 * 4 + 2 * 4 + 2
    assert model.log_likelihood_ > fitted(table, items={"visits": "count"}).log_likelihood_ + 10
    assert (np.diff(model.normal_means_, axis=1) > 0.5).all()  # women are one larger in both classes
    assert model.equal_items == ["a", "b", "c", "d", "visits"]
    numbered = fitted(table, **{**settings, "equal_items": [0, 1, 2, 3, 5]})
    assert numbered.log_likelihood_ == pytest.approx(model.log_likelihood_, abs=1e-6)
    pairs = model.bivariate_residuals(table)
    assert not ((pairs["first"] == "size (men)") & (pairs["second"] == "size (women)")).any()
    assert np.isfinite(pairs["residual"]).all()


def test_covariates_take_the_place_of_the_shares() -> None:
    table, random = survey(), np.random.default_rng(3)
    given = pd.DataFrame({"sex": table["sex"], "age": random.normal(size=len(table))})
    model = mj.LatentClassAnalysis(2, population="sex", equal_items=["a", "b", "d", "e"], random_state=0)
    model.fit(table, gating=given)
    assert model.n_parameters_ == 3 + 2 * 6
    assert "population_shares" not in model.estimate_names_ and not model.shares_by_population_
    effects = model.covariate_effects(table, given)
    assert effects.names == ("Intercept", "sex=women", "age") and np.isfinite(effects.standard_errors).all()
    assert model.predict_proba(table, gating=given).shape == (len(table), 2)
    none = mj.LatentClassAnalysis(2, population="sex", equal_items="none", random_state=0).fit(table, gating=given)
    assert none.log_likelihood_ > model.log_likelihood_


def test_invariance_is_rejected_where_an_item_is_measured_differently() -> None:
    for shift, rejected in ((0.0, False), (0.5, True)):
        table = survey(1500, 2, shift=shift, missing=0.0)
        found = fitted(table).invariance_tests(table)
        frame = found.to_frame().set_index("model")
        assert (frame.loc["all free", "p_value"] < 0.01) == rejected
        assert (frame.loc["free: c", "p_value"] < 1e-6) == rejected
        assert frame.loc["shares equal", "p_value"] < 1e-6 and frame.loc["shares equal", "df"] == 1
        others = frame.loc[[f"free: {name}" for name in "abde"], "p_value"]
        assert (others > (1e4 * frame.loc["free: c", "p_value"] if rejected else 0.001)).all()
        values = frame["log_likelihood"]
        assert values["all free"] >= values[[f"free: {name}" for name in ITEMS]].max() >= values["all equal"]
        assert values["all free"] == pytest.approx(sum(fit.log_likelihood_ for fit in alone(table, 2)), abs=1e-5)
        assert frame.loc["all free", "df"] == 10 and frame.loc["free: c", "df"] == 2
        assert str(found).count("\n  free: ") == len(ITEMS) and "chi-squared" in found.sentence
        assert " parameters " in str(found) and "nan" not in str(found)
    assert frame["bic"].idxmin() == "free: c"


def test_the_size_of_the_invariance_test_is_as_stated() -> None:
    """Of 60 tables with equal items, about 5 % are rejected at the 5 % level, and p-values spread from 0 to 1."""
    p = []
    for seed in range(60):
        table = survey(400, 100 + seed, missing=0.0)
        p.append(fitted(table, effort="fast").invariance_tests(table).p_values[-1])
    assert np.sum(np.array(p) < 0.05) <= 9  # the 99.9 % point of a binomial of 60 and .05
    assert 0.37 < np.mean(p) < 0.63  # three and a half standard errors of uniform numbers
    assert np.sum(np.array(p) < 0.5) >= 18  # the 0.1 % point of a binomial of 60 and .5


def test_fits_out_of_order_give_no_test() -> None:
    """A larger model of lower log-likelihood was not fitted well; p = 1 would say that it is not needed."""
    values, p = np.array([-100.0, -105.0, -99.0, -100.001, -103.0, -98.0]), np.array([10, 8, 8, 12, 12, 10])
    statistics, df, p_values = chi_squared_tests(values, p)
    assert np.isnan(statistics[[0, 2, 4, 5]]).all() and np.isnan(p_values[[0, 2, 4, 5]]).all()
    assert statistics[1] == 10 and p_values[1] == pytest.approx(np.exp(-5)) and df[1] == 2
    assert statistics[3] == 0 and p_values[3] == 1
    models = ("all equal", "shares equal", "free: a", "free: b", "free: c", "all free")
    regular = np.array([True, True, False, True, True, True])
    found = InvarianceTests(models, values, p, values, values, statistics, df, p_values, regular)
    assert "No test of all items at once" in found.sentence
    assert "Degenerate fits, whose tests mean nothing: free: a." in str(found)


def test_weights_are_repeats_and_the_order_of_rows_does_not_matter() -> None:
    table = survey(120)
    times = np.random.default_rng(1).integers(0, 4, len(table))
    for equal in ("all", "none", ["a", "b"]):
        weighted = mj.LatentClassAnalysis(2, population="sex", equal_items=equal, random_state=0)
        weighted.fit(table, sample_weight=times)
        repeated = table.loc[np.repeat(table.index, times)].sample(frac=1.0, random_state=1)
        plain = fitted(repeated, equal_items=equal)
        assert weighted.log_likelihood_ == plain.log_likelihood_ and weighted.n_rows_ == plain.n_rows_
        np.testing.assert_array_equal(weighted.item_probabilities_, plain.item_probabilities_)


def test_populations_are_numbers_too_and_rows_are_drawn_as_they_are_given() -> None:
    table = survey()
    numbers = table.assign(sex=np.where(table["sex"] == "men", 7, 9))
    model, other = fitted(numbers, equal_items="none"), fitted(table, equal_items="none")
    assert model.populations_.levels == (7, 9) and model.log_likelihood_ == other.log_likelihood_
    drawn, classes = model.set_params(random_state=1).sample(4000)
    assert drawn.shape == (4000, 6) and set(drawn[:, 2]) == {7, 9} and set(drawn[:, 0]) == {"yes", "no"}
    assert np.mean(drawn[:, 2] == 7) == pytest.approx(np.mean(numbers["sex"] == 7), abs=0.03)
    men = classes[drawn[:, 2] == 7]
    assert np.mean(men == 0) == pytest.approx(model.population_shares_[0, 0], abs=0.04)
    again = fitted(pd.DataFrame(drawn, columns=table.columns), equal_items="none")
    np.testing.assert_allclose(again.item_probabilities_, model.item_probabilities_, atol=0.1)
    array = table.replace({"yes": 1, "no": 0, "men": 1, "women": 2}).infer_objects().to_numpy(dtype=float)
    by_number = mj.LatentClassAnalysis(2, population=2, random_state=0).fit(array)
    assert by_number.log_likelihood_ == pytest.approx(fitted(table).log_likelihood_, abs=1e-6)


def test_selection_bootstrap_identification_and_files_know_of_populations(tmp_path: Path) -> None:
    table = survey(300, missing=0.0)
    plain = mj.LatentClassAnalysis(population="sex", equal_items=["a", "b", "c"], random_state=0)
    found = mj.select(plain, table, n_components=[1, 2, 3])
    assert found.best_estimator_.n_components == 2
    assert len(mj.LatentClassAnalysis.comparison(found, table)) == 3
    test = mj.likelihood_ratio_test(plain, table, n_components=1, n_resamples=9, random_state=0)
    assert test.p_value == 0.1
    model = found.best_estimator_
    assert model.identification().rank == model.n_parameters_
    two = survey(300, missing=0.0)[["a", "sex", "b"]]  # two items of two levels cannot tell two classes apart
    free = fitted(two, equal_items="none")
    assert free.identification().rank == 6 < free.n_parameters_ == 10
    with pytest.warns(UserWarning, match="10 parameters, 4 more than the table"):
        free.fit_statistics(two)
    assert "4 more than the table" in str(free.summary())
    model.save(tmp_path / "model.majorant")
    again = mj.load(tmp_path / "model.majorant")
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))
    assert again.populations_ == model.populations_
    names = model.class_profile(table).items
    assert "d (men)" in names and "a" in names and model.classification(table).error < 0.5


def without(table: Any, column: str) -> Any:
    return table.drop(columns=column)


@pytest.mark.parametrize(
    ("settings", "change", "given", "said"),
    [
        ({"population": "gender"}, None, {}, "population must be a column of X, by name or number; got 'gender'"),
        ({"population": 6}, None, {}, "by name or number; got 6"),
        ({}, lambda t: t.assign(sex="men"), {}, "'men' in every row: leave population out"),
        ({}, lambda t: t.assign(sex=[f"p{i}" for i in range(len(t))]), {}, "more than 50: join some"),
        ({}, lambda t: t.assign(sex=t["sex"].mask(t.index == 3)), {}, "population 'sex' is missing in row 3"),
        ({}, lambda t: t[["sex"]], {}, "X holds the column of populations alone"),
        ({"equal_items": "some"}, None, {}, "equal_items must be 'all', 'none', or a list of items"),
        ({"equal_items": ["a", "bb"]}, None, {}, "equal_items names 'bb', which is no item"),
        ({"equal_items": [7]}, None, {}, "equal_items names 7, which is no item"),
        (
            {"equal_items": "none"},
            lambda t: t.assign(a=t["a"].where(t["sex"] == "men", None)),
            {},
            "item 'a' has no answer in population 'women': name it in equal_items",
        ),
        (
            {"equal_items": "none"},
            lambda t: t.assign(a=np.where(t["sex"] == "men", np.arange(len(t)) / 7, 0.5)),
            {},
            r"normal item 'a \(women\)' is constant",
        ),
        ({}, None, {"groups": "ones"}, "population must be the same for all rows of a group"),
    ],
)
def test_what_cannot_be_done_is_said(settings: Any, change: Any, given: Any, said: str) -> None:
    table = survey(100)
    table = table if change is None else change(table)
    arguments = {name: np.ones(len(table), dtype=int) for name in given}
    with pytest.raises(ValueError, match=said):
        mj.LatentClassAnalysis(2, **{"population": "sex", **settings}).fit(table, **arguments)


def test_a_fit_without_populations_forgets_them_and_others_are_refused() -> None:
    table = survey()
    model = fitted(table, equal_items="none")
    with pytest.raises(ValueError, match="population 'sex' is 'other' in row 2, which the fit has not seen"):
        model.predict(table.assign(sex=table["sex"].mask(table.index == 2, "other")))
    model.set_params(population=None, equal_items="all").fit(table[ITEMS])
    assert model.populations_ is None and not hasattr(model, "population_searches_")
    with pytest.raises(ValueError, match="tests of invariance compare populations"):
        model.invariance_tests(table[ITEMS])
    with pytest.raises(TypeError, match="equal_items must be 'all', 'none' or a list"):
        fitted(table, equal_items=3)


def test_known_classes_and_groups_are_those_of_the_fit_with_the_population_as_covariate() -> None:
    table = survey(200)
    twice = pd.concat([table, table], ignore_index=True)
    for rows, given in (
        (table, {"component_labels": np.where(np.arange(200) < 30, np.arange(200) % 2, -1)}),
        (twice, {"groups": np.tile(np.arange(200), 2)}),
    ):
        model = mj.LatentClassAnalysis(2, population="sex", random_state=0).fit(rows, **given)
        gated = mj.LatentClassAnalysis(2, random_state=0).fit(rows[ITEMS], gating=rows[["sex"]], **given)
        assert model.log_likelihood_ == pytest.approx(gated.log_likelihood_, abs=1e-6)
        assert model.bic(rows, **given) == pytest.approx(gated.bic(rows[ITEMS], gating=rows[["sex"]], **given))
        free = mj.LatentClassAnalysis(2, population="sex", equal_items="none", random_state=0).fit(rows, **given)
        assert free.log_likelihood_ >= model.log_likelihood_ - 1e-6
        with pytest.raises(ValueError, match=f"this fit has {next(iter(given))}"):
            model.distal_outcome(rows, np.arange(len(rows)))
        with pytest.raises(ValueError, match="tests of invariance"):
            model.invariance_tests(rows)


def test_in_several_steps_each_population_has_errors_of_assignment_of_its_own() -> None:
    table = survey(400, shift=0.5)
    y = np.random.default_rng(1).normal(table["sex"] == "men")
    model = fitted(table, equal_items="none")
    found = model.distal_outcome(table, y, method="bch")
    masses, sums = np.zeros(2), np.zeros(2)
    for level in ("men", "women"):
        own = (table["sex"] == level).to_numpy()
        alone = mj.LatentClassAnalysis(2, random_state=0).fit(table.loc[own, ITEMS])
        order = np.argsort(alone.item_probabilities_[:, 1])[np.argsort(np.argsort(model.item_probabilities_[:, 1]))]
        mass = own.sum() * alone.weights_[order]
        masses += mass
        sums += mass * alone.distal_outcome(table.loc[own, ITEMS], y[own], method="bch").estimates[order, 0]
    np.testing.assert_allclose(found.estimates[:, 0], sums / masses, atol=1e-4)
    assert (found.standard_errors > 0).all()
    x = pd.DataFrame({"x": y, "sex": table["sex"]})
    two = fitted(table).covariate_effects(table, x, method="two-step")
    one = mj.LatentClassAnalysis(2, population="sex", random_state=0).fit(table, gating=x).covariate_effects(table, x)
    np.testing.assert_allclose(two.coef, one.coef, atol=0.1)


def test_the_bootstrap_test_takes_settings_that_name_columns() -> None:
    table = survey(150).assign(visits=np.random.default_rng(0).poisson(3.0, 150))
    model = mj.LatentClassAnalysis(items={"visits": "count"}, random_state=0)
    test = mj.likelihood_ratio_test(model, table[[*ITEMS, "visits"]], n_components=1, n_resamples=3, random_state=0)
    assert 0.25 <= test.p_value <= 1.0


def test_correlated_items_are_free_together() -> None:
    random = np.random.default_rng(4)
    table = survey(500)[["a", "b", "c", "sex"]]
    second = (table["a"] == "yes").to_numpy() * 4.0
    same = random.normal(size=500)
    table["x"] = second + same + random.normal(size=500) + 2.0 * (table["sex"] == "women")
    table["y"] = second + same + random.normal(size=500)
    table.loc[::20, "y"] = np.nan
    settings = {"correlated": ["x", "y"], "equal_items": ["a", "b", "c"]}
    model, equal = fitted(table, **settings), fitted(table, correlated=["x", "y"])
    assert model.n_parameters_ == equal.n_parameters_ + 2 * 5 and model.log_likelihood_ > equal.log_likelihood_ + 20
    assert model.items_.correlated == (("correlated_1", (3, 5)), ("correlated_2", (4, 6)))
    alone_too = fitted(table, correlated=["x", "y"], equal_items="none")
    own = [table.loc[table["sex"] == level].drop(columns="sex") for level in ("men", "women")]
    fits = [mj.LatentClassAnalysis(2, correlated=["x", "y"], random_state=0).fit(rows) for rows in own]
    assert alone_too.log_likelihood_ == pytest.approx(sum(fit.log_likelihood_ for fit in fits), abs=1e-4)
    frame = model.invariance_tests(table).to_frame()
    assert "free: x, y" in list(frame["model"]) and "free: x" not in list(frame["model"])
    assert mj.likelihood_ratio_test(model, table, n_components=1, n_resamples=1, random_state=0).p_value == 0.5
    with pytest.raises(ValueError, match="correlated items x, y are equal in all populations together"):
        fitted(table, correlated=["x", "y"], equal_items=["x"])
