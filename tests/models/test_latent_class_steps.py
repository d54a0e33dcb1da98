"""Covariates and outcomes of classes in one step, two and three: what the estimators are equal to, and their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import majorant as mj
from majorant.models.latent_class_analysis.effects import DistalOutcome
from majorant.models.latent_class_analysis.later import OutcomeUnits, outcome
from majorant.models.latent_class_analysis.steps import _evidence

METHODS = [("ml", "proportional"), ("ml", "modal"), ("bch", "modal"), ("bch", "proportional"), ("two-step", "modal")]


def drawn(n: int, seed: int, separation: float = 0.85) -> tuple[Any, Any, Any, Any]:
    """Six yes-or-no items of two classes, a covariate of slope one, the class, and an outcome one apart."""
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    z = (random.random(n) < 1 / (1 + np.exp(0.3 - x))).astype(int)
    p = np.where(z[:, None], 1 - separation, separation)
    items = (random.random((n, 6)) < p).astype(int)
    return items, x, z, random.normal(z * 1.0, 1.0)


def fitted(items: Any, **parameters: Any) -> tuple[Any, int]:
    """Two classes, and which of them answers no."""
    model = mj.LatentClassAnalysis(2, random_state=0, **parameters).fit(items)
    return model, int(model.item_probabilities_[1, 1] < model.item_probabilities_[0, 1])


def slope(model: Any, found: Any, no: int) -> float:
    return float(found.coef[no, 1] - found.coef[1 - no, 1])


def test_effects_on_a_class_of_no_weight_have_no_errors() -> None:
    """Assigned rows of weight zero say nothing of their class: errors were exactly zero, or those of nothing named."""
    draws, own = np.random.default_rng(0), np.arange(400) % 2
    items = (draws.random((400, 8)) < np.where(own, 0.95, 0.05)[:, None]).astype(int)
    z, model = draws.normal(size=(400, 1)), mj.LatentClassAnalysis(2, random_state=0).fit(items)
    left = np.where(model.predict(items) == 1, 0.0, 1.0)
    found = model.covariate_effects(items, z, method="ml", assignment="modal", sample_weight=left)
    assert np.isnan(found.standard_errors[1]).all()
    with pytest.warns(ConvergenceWarning, match="A class has no rows, so coefficients run to infinity"):
        found = model.covariate_effects(items, z, method="naive", assignment="modal", sample_weight=left)
    assert np.isnan(found.standard_errors[1]).all()


@pytest.mark.parametrize(("method", "assignment"), METHODS)
def test_slopes_and_means_of_many_samples_are_the_true_ones_and_intervals_cover_them(
    method: str, assignment: str
) -> None:
    slopes, means = [], []
    for seed in range(24):
        items, x, _, y = drawn(400, seed)
        model, no = fitted(items)
        found = model.covariate_effects(items, x, method=method, assignment=assignment)
        slopes.append((slope(model, found, no), found.standard_errors[1, 1]))
        outcome = model.distal_outcome(items, y, method=method, assignment=assignment)
        means.append((outcome.estimates[no, 0], outcome.standard_errors[no, 0]))
    for values in (np.array(slopes), np.array(means)):
        assert abs(values[:, 0].mean() - 1) < 3 * values[:, 0].std() / np.sqrt(24) + 0.03
        assert 0.6 < values[:, 1].mean() / values[:, 0].std() < 1.7
        assert (np.abs(values[:, 0] - 1) < 2.6 * values[:, 1]).mean() > 0.87


def test_naive_slopes_are_those_of_a_regression_on_assignments_and_too_small() -> None:
    items, x, _, _ = drawn(2000, 0, 0.8)
    model, no = fitted(items)
    found = model.covariate_effects(items, x, method="naive", assignment="modal")
    label = model.predict(items)
    table = np.column_stack([np.ones(2000), x])
    beta = np.zeros(2)
    for _ in range(30):
        p = 1 / (1 + np.exp(-table @ beta))
        beta = beta + np.linalg.solve((table * (p * (1 - p))[:, None]).T @ table, table.T @ (label - p))
    np.testing.assert_allclose(found.coef[1], beta, rtol=1e-6)
    corrected = model.covariate_effects(items, x, method="ml")
    assert abs(slope(model, found, no)) < abs(slope(model, corrected, no)) - 0.05


def test_two_steps_are_near_one_step() -> None:
    items, x, _, _ = drawn(3000, 1)
    model, no = fitted(items)
    two = model.covariate_effects(items, pd.DataFrame({"age": x}), method="two-step")
    one = mj.LatentClassAnalysis(2, random_state=0).fit(items, gating=x)
    first = int(one.item_probabilities_[1, 1] < one.item_probabilities_[0, 1])
    expected = (one.gating_coef_[first, 1] - one.gating_coef_[1 - first, 1]) / one.gating_scale_[0]
    assert slope(model, two, no) == pytest.approx(expected, abs=0.05)
    assert two.names == ("Intercept", "age") and two.to_frame().shape == (2, 10)
    np.testing.assert_allclose(two.odds_ratios, np.exp(two.coef))


def test_odds_ratios_in_any_unit_keep_their_digits_on_the_screen() -> None:
    items, x, _, _ = drawn(600, 1)
    model, _ = fitted(items)
    for unit in (1e-2, 1.0, 1e4):
        found = model.covariate_effects(items, pd.DataFrame({"income": x * unit}))
        row = next(line.split() for line in str(found).splitlines() if line.split()[1:2] == ["income"])
        odds, low, high = (float(cell) for cell in row[2:5])
        assert row[-1] == "<0.0001" and (odds - 1) * (low - 1) > 0 and low < odds < high
        assert np.log(odds) == pytest.approx(found.coef[1, 1], rel=0.05)


def test_without_doubt_all_methods_agree_and_have_the_errors_of_known_classes() -> None:
    random = np.random.default_rng(0)
    z = np.repeat([0, 1], [220, 180])
    items = np.repeat(z[:, None], 12, axis=1).astype(float)
    items[:4] = 1 - items[:4]  # no item is constant in a class
    items[:, 0] = np.where(random.random(400) < 0.05, 1 - items[:, 0], items[:, 0])
    y = random.normal(2.0 * z, 1.0)
    model, _ = fitted(items)
    label = model.predict(items)
    means = [y[label == k].mean() for k in (0, 1)]
    errors = [y[label == k].std() / np.sqrt((label == k).sum()) for k in (0, 1)]
    for method, assignment in [*METHODS, ("naive", "modal")]:
        found = model.distal_outcome(items, y, method=method, assignment=assignment)
        np.testing.assert_allclose(found.estimates[:, 0], means, atol=1e-3)
        np.testing.assert_allclose(found.standard_errors[:, 0], errors, rtol=1e-2)
        statistic, df, p = found.test()
        assert (
            df == 1
            and p < 1e-6
            and statistic == pytest.approx((means[1] - means[0]) ** 2 / np.sum(np.square(errors)), rel=2e-2)
        )


def test_an_outcome_of_text_has_shares() -> None:
    items, _, z, _ = drawn(1500, 2)
    random = np.random.default_rng(1)
    y = np.where(random.random(1500) < np.where(z, 0.7, 0.2), "yes", "no")
    model, no = fitted(items)
    for method, assignment in METHODS:
        found = model.distal_outcome(items, y, method=method, assignment=assignment)
        np.testing.assert_allclose(found.estimates.sum(axis=1), 1.0, atol=1e-9)
        assert found.levels == ("no", "yes") and found.estimates[no, 1] == pytest.approx(0.7, abs=0.06)
        assert found.test()[1:] == (1, pytest.approx(0.0, abs=1e-6))


def test_weights_are_repeats() -> None:
    items, x, _, _ = drawn(200, 3)
    times = np.random.default_rng(0).integers(1, 4, 200)
    again = np.repeat(np.arange(200), times)
    model = mj.LatentClassAnalysis(2, random_state=0).fit(items, sample_weight=times)
    weighted = model.covariate_effects(items, x, times)
    repeated = model.covariate_effects(items[again], x[again])
    np.testing.assert_allclose(weighted.coef, repeated.coef, atol=1e-7)
    np.testing.assert_allclose(weighted.standard_errors, repeated.standard_errors, rtol=1e-5)


def test_covariates_without_an_effect_of_their_own_are_refused_by_name() -> None:
    items, x, _, _ = drawn(300, 5)
    model, _ = fitted(items)
    age = 40 + 10 * x
    for column, words in (
        (np.ones(300), "'k' does not vary"),
        (np.full(300, 0.1), "'k' does not vary"),
        (2 * age, "'k' is a linear function"),
        (1e6 - 3 * age, "'k' is a linear function"),
    ):
        with pytest.raises(ValueError, match=words):
            model.covariate_effects(items, pd.DataFrame({"age": age, "k": column}))
    with pytest.raises(ValueError, match="'z1' does not vary"):
        model.covariate_effects(items, np.where(np.arange(300) < 5, 1.0, 2.0), np.where(np.arange(300) < 5, 0.0, 1.0))
    with pytest.raises(ValueError, match="one class"):
        mj.LatentClassAnalysis(1, random_state=0).fit(items).covariate_effects(items, x)
    square = pd.DataFrame({"age": age, "square": age**2})
    assert (model.covariate_effects(items, square).standard_errors[1] > 0).all()


@pytest.mark.parametrize("constant", [0.0, 7, 0.1, True, "x"])
def test_an_outcome_that_does_not_vary_is_refused(constant: Any) -> None:
    items, _, _, y = drawn(200, 6)
    model, _ = fitted(items)
    with pytest.raises(ValueError, match="in every row"):
        model.distal_outcome(items, np.full(200, constant))
    with pytest.raises(ValueError, match="in every row"):
        weights = np.arange(200) > 4  # others do not count
        model.distal_outcome(items, np.where(weights, 3.0, y), weights.astype(float))
    with pytest.raises(ValueError, match="one class"):
        mj.LatentClassAnalysis(1, random_state=0).fit(items).distal_outcome(items, y).test()


def test_directions_without_variance_are_not_tested() -> None:
    estimates = np.array([[0.3, 0.7, 0.0], [0.6, 0.4, 1e-17]])  # the third level occurs in neither class
    covariance = np.kron(np.eye(2), 0.01 * np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
    covariance[2, 2] = 1e-36
    errors = np.zeros((2, 3))
    found = DistalOutcome("bch", ("a", "b", "c"), estimates, errors, errors, covariance)
    assert found.test()[:2] == (pytest.approx(0.09 / 0.02), 1)


def test_classes_that_hardly_lie_apart_are_warned_of_and_wrong_calls_refused() -> None:
    items, x, _, _ = drawn(300, 4, 0.65)
    model, _ = fitted(items)
    with pytest.warns(UserWarning, match="hardly lie apart"):
        model.covariate_effects(items, x)
    with pytest.raises(ValueError, match="method"):
        model.covariate_effects(items, x, method="three-step")
    gated = mj.LatentClassAnalysis(2, random_state=0).fit(items, gating=x)
    with pytest.raises(ValueError, match="method='ml' is for a fit without gating"):
        gated.covariate_effects(items, x, method="ml")
    with pytest.raises(ValueError, match='method="one-step" is for a fit with gating'):
        model.covariate_effects(items, x, method="one-step")


def test_effects_of_one_step_are_in_the_units_of_the_covariates() -> None:
    items, x, _, _ = drawn(500, 1, 0.8)
    far = 1000.0 + 7.0 * np.asarray(x)
    model = mj.LatentClassAnalysis(2, random_state=0).fit(items, gating=far)
    found = model.covariate_effects(items, far)
    assert found.method == "one-step"
    p = 1 / (1 + np.exp(-(found.coef[1, 0] + found.coef[1, 1] * far)))
    prior = np.exp(
        model.gating_coef_ @ np.stack([np.ones(len(far)), (far - model.gating_center_) / model.gating_scale_])
    )
    np.testing.assert_allclose(p, prior[1] / prior.sum(axis=0), rtol=1e-9)
    errors = model.standard_errors(items, gating=far)["gating_coef"]
    assert found.standard_errors[1, 1] == pytest.approx(errors[1, 1] / model.gating_scale_[0], rel=1e-6)
    plain = mj.LatentClassAnalysis(2, random_state=0).fit(items, gating=x).covariate_effects(items, x)
    np.testing.assert_allclose(found.coef[1, 1] * 7, plain.coef[1, 1], rtol=1e-4)
    np.testing.assert_allclose(found.standard_errors[1, 1] * 7, plain.standard_errors[1, 1], rtol=1e-3)
    test = found.tests()
    assert float(test["statistic"][0]) == pytest.approx((found.coef[1, 1] / found.standard_errors[1, 1]) ** 2)


def test_a_class_that_no_row_is_assigned_to_is_named_by_bch() -> None:
    q = np.array([[0.6, 0.4], [0.7, 0.3], [0.9, 0.1]])
    modal = np.array([[1.0, 0.0]] * 3)
    with pytest.raises(ValueError, match=r'no row is assigned to class 2.*assignment="proportional"'):
        _evidence(q, np.log(q), np.ones(3), "bch", modal)
    weights = _evidence(q, np.log(q), np.ones(3), "bch", None).weights
    assert weights is not None and np.isfinite(weights).all()


@pytest.mark.parametrize(("method", "assignment"), METHODS)
@pytest.mark.parametrize(("factor", "shift"), [(1e5, 0.0), (1e-8, 0.0), (1.0, 1e6), (-1e-3, 30.0)])
def test_units_of_covariates_and_outcomes_change_nothing_but_the_units(
    method: str, assignment: str, factor: float, shift: float
) -> None:
    items, x, _, y = drawn(300, 7)
    model, _ = fitted(items)
    calls = {"method": method, "assignment": assignment}
    plain, other = (model.covariate_effects(items, z, **calls) for z in (x, factor * x + shift))
    np.testing.assert_allclose(other.coef[1, 1] * factor, plain.coef[1, 1], rtol=1e-6)
    np.testing.assert_allclose(other.standard_errors[1, 1] * abs(factor), plain.standard_errors[1, 1], rtol=1e-6)
    np.testing.assert_allclose(other.coef[1, 0] + other.coef[1, 1] * shift, plain.coef[1, 0], atol=1e-6)
    here, there = (model.distal_outcome(items, values, **calls) for values in (y, factor * y + shift))
    np.testing.assert_allclose((there.estimates - shift) / factor, here.estimates, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(there.standard_errors / abs(factor), here.standard_errors, rtol=1e-6)
    assert there.test()[0] == pytest.approx(here.test()[0], rel=1e-5)


def separable() -> tuple[Any, Any, Any]:
    """Two classes that hardly overlap, their number, and a covariate that has nothing to do with them."""
    random = np.random.default_rng(3)
    z = random.random(400) < 0.5
    return (random.random((400, 6)) < np.where(z[:, None], 0.96, 0.04)).astype(int), z, random.normal(size=400)


@pytest.mark.parametrize(("method", "assignment"), [*METHODS, ("naive", "modal")])
@pytest.mark.parametrize("kind", ["number", "level"])
def test_covariates_that_separate_the_classes_are_named(method: str, assignment: str, kind: str) -> None:
    items, _, other = separable()
    model, _ = fitted(items)
    label = model.predict(items)
    told = np.where(label == 1, 1.0, -1.0) * (1 + np.abs(other))
    table = pd.DataFrame({"told": np.where(label == 1, "a", "b") if kind == "level" else told, "other": other})
    with pytest.warns(
        ConvergenceWarning, match=r"Covariates told(=b)?(, other)? separate the classes.*no standard errors"
    ):
        found = model.covariate_effects(items, table, method=method, assignment=assignment)
    assert np.isnan(found.standard_errors[1, :2]).all() and np.isnan(found.to_frame()["low"].iloc[1])
    tests = found.tests()
    assert np.isnan(tests["p_value"].iloc[0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("assignment", ["proportional", "modal"])
def test_bch_names_what_ml_does(seed: int, assignment: str) -> None:
    """The sign of a covariate is the class: BCH's negative weights made of it an effect of 36 with an error of 46."""
    random = np.random.default_rng(seed)
    x = random.normal(size=500)
    items = (random.random((500, 6)) < np.where(x[:, None] > 0, 0.95, 0.05)).astype(int)
    model, _ = fitted(items)
    for method in ("ml", "bch"):
        with pytest.warns(ConvergenceWarning, match="Covariates x separate the classes"):
            found = model.covariate_effects(items, pd.DataFrame({"x": x}), method=method, assignment=assignment)
        assert np.isnan(found.standard_errors[1, 1]) and np.isnan(found.to_frame()["low"].iloc[1])


def test_a_level_that_one_class_lacks_leaves_the_other_effects_as_they_are() -> None:
    items, _, other = separable()
    model, _ = fitted(items)
    label = model.predict(items)
    x = other + label
    level = np.where((label == 1) & (np.abs(other) < 0.5), "rare", "usual")
    calls = {"method": "naive", "assignment": "modal"}
    with pytest.warns(ConvergenceWarning, match="Covariates level=usual separate"):
        found = model.covariate_effects(items, pd.DataFrame({"level": level, "x": x}), **calls)
    usual = level == "usual"  # of rare rows the likelihood is one, whatever the other coefficients are
    table, y = np.column_stack([np.ones(usual.sum()), x[usual]]), label[usual] == 1
    beta = np.zeros(2)
    for _ in range(30):
        p = 1 / (1 + np.exp(-table @ beta))
        beta = beta + np.linalg.solve((table * (p * (1 - p))[:, None]).T @ table, table.T @ (y - p))
    assert found.coef[1, 2] == pytest.approx(beta[1], rel=1e-5)
    bread = np.linalg.inv((table * (p * (1 - p))[:, None]).T @ table)
    sandwich = bread @ (table * ((y - p) ** 2)[:, None]).T @ table @ bread
    assert found.uncorrected_errors[1, 2] == pytest.approx(np.sqrt(sandwich[1, 1]), rel=1e-4)
    assert np.isnan(found.standard_errors[1, :2]).all()


@pytest.mark.parametrize("method", ["ml", "two-step", "naive"])
def test_an_outcome_that_each_class_answers_in_its_own_way_has_no_error_and_is_not_called_the_same(method: str) -> None:
    items, _, _ = separable()
    model, _ = fitted(items)
    found = model.distal_outcome(items, np.where(model.predict(items) == 1, "yes", "no"), method=method)
    at_edge = np.abs(found.estimates - np.round(found.estimates)) < 1e-10
    assert at_edge.any() and np.isnan(found.standard_errors[at_edge]).all()
    assert np.isnan(found.test()[2]) and found.differences()["p_value"].isna().all()  # of errors of next to nothing
    said = " ".join(str(found).split())
    assert "No Wald's test ('no' is the answer of almost none in class" in said and "nan" not in said


def test_a_class_at_one_end_is_compared_by_the_errors_of_the_others() -> None:
    items, *_ = separable()
    model, _ = fitted(items)
    label = model.predict(items)
    y = np.where(label == 1, np.random.default_rng(5).random(400) < 0.3, False).astype(int)
    found = model.distal_outcome(items, y, kind="categorical", method="naive", assignment="modal")
    p, n = y[label == 1].mean(), (label == 1).sum()
    assert found.not_tested == ""
    assert found.test().statistic == pytest.approx(p**2 / (p * (1 - p) / n), rel=0.05)
    assert found.differences()["p_value"].iloc[0] < 1e-6


@pytest.mark.parametrize(
    ("values", "kind", "nearest"),
    [
        (["no", "yes"], "auto", [0.0, 1.0]),
        ([0, 3], "count", [0.0, 3.0]),
        ([-1.5, 2.5], "auto", [-1.5, 2.5]),
        ([-1.5e-12, 2.5e-12], "auto", [-1.5e-12, 2.5e-12]),
    ],
)
def test_what_bch_puts_beyond_all_values_is_told_and_has_no_interval(values: Any, kind: str, nearest: Any) -> None:
    """An outcome that follows the assignment and not the class, as far as it goes: BCH corrects it too far."""
    items, *_ = drawn(500, 3, 0.75)
    model, no = fitted(items)
    at = (model.predict(items) == no).astype(int)
    with pytest.warns(UserWarning, match=r"BCH puts the .* in class \d \(.*\) beyond what it can be"):
        found = model.distal_outcome(items, np.array(values)[at], method="bch", kind=kind)
    # the weights of Bolck, Croon and Hagenaars: inverse shares of the assignments of each class
    q = model.predict_proba(items)[:, [1 - no, no]]
    given = np.eye(2)[at]
    table = q.T @ given
    weights = given @ np.linalg.inv(table / table.sum(axis=1, keepdims=True))
    shares = weights.T @ at / weights.sum(axis=0)
    assert shares[0] < 0 and shares[1] > 1
    np.testing.assert_allclose(found.estimates[[1 - no, no], -1], nearest, atol=1e-12 * max(nearest))
    assert np.isnan(found.test()[2]) and found.differences()["p_value"].isna().all()
    assert np.isnan(found.standard_errors).all() and found.to_frame()[["low", "high"]].isna().all(axis=None)


def test_a_class_that_bch_puts_beyond_its_range_has_the_nearest_estimates_and_no_tests() -> None:
    root = np.random.default_rng(0).normal(size=(9, 9))
    covariance = root @ root.T / 100
    shares = np.array([[-0.3, 0.5, 0.8], [0.2, 0.3, 0.5], [0.5, 0.25, 0.25]])
    units = OutcomeUnits("categorical", ("a", "b", "c"), 0.0, 1.0, 0.0, 1.0)
    with pytest.warns(UserWarning, match=r"share of 'a' in class 1 \(-0.3\) .* All shares of such a class"):
        found = outcome(units, 3, shares.ravel(), covariance, covariance, "bch", 100.0, "")
    np.testing.assert_allclose(found.estimates, [[0, 0.35, 0.65], *shares[1:]], atol=1e-12)
    assert np.isnan([found.standard_errors[0], found.uncorrected_errors[0]]).all()
    np.testing.assert_allclose(found.standard_errors[1:].ravel(), np.sqrt(np.diag(covariance)[3:]))
    apart = shares[2, :2] - shares[1, :2]
    one, other, both = covariance[6:8, 6:8], covariance[3:5, 3:5], covariance[6:8, 3:5]
    statistic = apart @ np.linalg.solve(one + other - both - both.T, apart)
    np.testing.assert_allclose(found.differences()["statistic"], [np.nan, np.nan, statistic])
    assert np.isnan([found.test().statistic, found.test().p_value]).all()
    means = np.array([4.5, 1.0, 2.0])
    with pytest.warns(UserWarning, match=r"the mean in class 1 \(4.5\) .* Such estimates"):
        found = outcome(
            OutcomeUnits("normal", (), 0.0, 1.0, 0.0, 4.0), 3, means, covariance, covariance, "bch", 9.0, ""
        )
    error = np.sqrt(covariance[1, 1] + covariance[2, 2] - 2 * covariance[1, 2])
    pairs = found.differences()
    np.testing.assert_allclose(pairs["difference"], [-3, -2, 1])
    np.testing.assert_allclose(pairs["standard_error"], [np.nan, np.nan, error])
    np.testing.assert_allclose(pairs["statistic"], [np.nan, np.nan, 1 / error**2])
    assert pairs["p_value"].isna().tolist() == [True, True, False]


def test_intervals_of_shares_and_counts_are_what_these_can_be() -> None:
    estimates, errors = np.array([[0.98, 0.02]]), np.array([[0.05, 0.05]])
    shares = DistalOutcome("bch", ("a", "b"), estimates, errors, errors, np.eye(2), "categorical").to_frame()
    logits = np.log(estimates / (1 - estimates)).ravel()  # of which 0.05 / (0.98 * 0.02) is the standard error
    for end, sign in (("low", -1), ("high", 1)):
        expected = 1 / (1 + np.exp(-(logits + sign * 1.959964 * 0.05 / (0.98 * 0.02))))
        np.testing.assert_allclose(shares[end], expected, rtol=1e-6)
    assert ((shares["low"] > 0) & (shares["high"] < 1)).all()
    counts = DistalOutcome("bch", (), np.array([[0.05]]), np.array([[0.1]]), errors, np.eye(1), "count").to_frame()
    assert counts["low"].item() == 0 and counts["high"].item() == pytest.approx(0.05 + 1.959964 * 0.1)


@pytest.mark.parametrize("method", ["ml", "bch", "two-step", "naive"])
@pytest.mark.parametrize("dtype", [int, float, bool])
def test_an_outcome_of_0_and_1_is_a_share(method: str, dtype: Any) -> None:
    """As numbers it would be normal with almost no variance in one class, and its interval would go below 0."""
    items, _, _ = separable()
    model, _ = fitted(items)
    draws = np.random.default_rng(0)
    ill = draws.random(len(items)) < np.where(model.predict(items) == 1, 0.02, 0.3)
    found = model.distal_outcome(items, ill.astype(dtype), method=method)
    text = model.distal_outcome(items, np.where(ill, "yes", "no"), method=method)
    np.testing.assert_allclose(found.estimates, text.estimates, rtol=1e-9)
    np.testing.assert_allclose(found.standard_errors, text.standard_errors, rtol=1e-9)
    shares = [ill[model.predict(items) == k].mean() for k in range(2)]
    np.testing.assert_allclose(found.estimates[:, 1], shares, atol=0.02)
    table = found.to_frame()
    assert ((table["low"] > 0) & (table["high"] < 1) & (table["low"] < table["estimate"])).all()
    assert "share of 1" in repr(found) and "mean" not in repr(found) and repr(found).count("share of") == 2
    apart = found.differences()
    np.testing.assert_allclose(apart["difference"], np.diff(found.estimates[:, 1]))
    np.testing.assert_allclose((apart["difference"] / apart["standard_error"]) ** 2, apart["statistic"], rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-150, 1e160, 1e300])
def test_effects_of_covariates_are_told_in_any_unit(unit: float) -> None:
    draws = np.random.default_rng(0)
    side = draws.normal(size=(200, 1))
    items = (
        draws.random((200, 5)) < np.where(draws.random(200) < 1 / (1 + np.exp(-side[:, 0])), 0.8, 0.2)[:, None]
    ).astype(int)
    model = mj.LatentClassAnalysis(2, n_init=2, random_state=0).fit(items)
    plain, scaled = (model.covariate_effects(items, side * size).coef for size in (1.0, unit))
    np.testing.assert_allclose(scaled[:, 1] * unit, plain[:, 1], rtol=1e-6)
