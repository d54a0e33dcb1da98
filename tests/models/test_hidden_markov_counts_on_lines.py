"""Markov switching of counts and of zeros and ones: regressions of a target that is not normal along a chain."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

import majorant as mj

FAMILIES = {
    "poisson": (lambda eta: stats.poisson(np.exp(eta)), np.array([[1.0, 0.5], [3.0, -0.4]])),
    "bernoulli": (lambda eta: stats.bernoulli(expit(eta)), np.array([[-1.0, 2.0], [2.0, -2.0]])),
}


def switching(emission: str, n: int = 400) -> tuple[pd.DataFrame, Any]:
    """Rows of two states, with a missing count."""
    random, states = np.random.default_rng(0), [0]
    for _ in range(n - 1):
        states.append(states[-1] if random.random() < 0.93 else 1 - states[-1])
    (law, lines), s, x = FAMILIES[emission], np.array(states), random.normal(size=n)
    y = law(lines[s, 0] + lines[s, 1] * x).rvs(random_state=1).astype(float)
    y[5] = np.nan
    return pd.DataFrame({"y": y, "x": x}), s


@pytest.mark.parametrize("emission", FAMILIES)
def test_what_is_said_agrees_with_sums_over_all_paths(emission: str) -> None:
    table, _ = switching(emission)
    model = mj.HiddenMarkovModel.from_formula("y ~ x", table, emission=emission, n_components=2, random_state=0)
    few, (law, _) = table[:7], FAMILIES[emission]
    future = pd.DataFrame({"x": [0.3, -1.0]})
    x = np.append(few["x"], future["x"])
    each = law(model.intercept_ + x[:, None] * model.coef_[:, 0])
    f = np.where(
        np.isnan(few["y"].to_numpy())[:, None], 1.0, each.pmf(np.append(few["y"].fillna(0), [0, 0])[:, None])[:7]
    )
    total, last, marginals = 0.0, np.zeros(2), np.zeros((7, 2))
    for path in product((0, 1), repeat=7):
        p = (
            model.start_probabilities_[path[0]]
            * np.prod(model.transitions_[path[:-1], path[1:]])
            * f[range(7), path].prod()
        )
        total += p
        last[path[-1]] += p
        marginals[range(7), path] += p
    np.testing.assert_allclose(model.score_samples(few).sum(), np.log(total), rtol=1e-11)
    np.testing.assert_allclose(model.predict_proba(few), marginals / total, atol=1e-11)
    ahead, q = model.forecast(few, future=future), last / total
    for h in range(2):
        q = q @ model.transitions_
        np.testing.assert_allclose(ahead.mean[0, h, 0], q @ each.mean()[7 + h], rtol=1e-10)
        values = np.arange(3)
        expected = q @ _masses(law, model, x[7 + h], values)
        np.testing.assert_allclose(ahead.density(values)[0, h], expected, rtol=1e-10)
        high = int(ahead.interval(0.8)[1][0, h, 0])
        reached = [q @ _masses(law, model, x[7 + h], np.arange(end + 1)).sum(axis=1) for end in (high - 1, high)]
        assert reached[0] < 0.9 <= reached[1] + 1e-12


def _masses(law: Any, model: Any, x: float, values: Any) -> Any:
    """Return the probability of each value in each state."""
    return law((model.intercept_ + x * model.coef_[:, 0])[:, None]).pmf(values)


@pytest.mark.parametrize("emission", FAMILIES)
def test_one_state_is_the_generalised_linear_model(emission: str) -> None:
    table, _ = switching(emission)
    model = mj.HiddenMarkovModel.from_formula("y ~ x", table, emission=emission, n_components=1)
    there, (law, _) = table.dropna(), FAMILIES[emission]

    def lost(b: Any) -> float:
        return -float(law(b[0] + b[1] * there["x"]).logpmf(there["y"]).sum())

    best = minimize(lost, [0.0, 0.0], method="BFGS", options={"gtol": 1e-8})
    assert model.log_likelihood_ == pytest.approx(-best.fun, abs=1e-6)
    errors = model.standard_errors(table)
    design = np.column_stack([np.ones(len(there)), there["x"]])
    information = (design.T * law(design @ best.x).var()) @ design  # the links are canonical
    told = [errors["intercept"][0], errors["coef"][0, 0]]
    np.testing.assert_allclose(told, np.sqrt(np.diag(np.linalg.inv(information))), rtol=1e-3)


@pytest.mark.parametrize("emission", FAMILIES)
def test_states_and_lines_are_found(emission: str, tmp_path: Path) -> None:
    table, s = switching(emission)
    model = mj.HiddenMarkovModel.from_formula("y ~ x", table, emission=emission, n_components=2, random_state=0)
    assert model.emission == f"{emission}_regression" and model.n_parameters_ == 7 and model.converged_
    order = np.argsort(model.intercept_)
    truth = FAMILIES[emission][1]
    found = np.column_stack([model.intercept_, model.coef_[:, 0]])[order]
    errors = np.column_stack([model.standard_errors(table)[name].ravel() for name in ("intercept", "coef")])[order]
    assert (np.abs(found - truth) < 3 * errors).all()
    assert np.mean(model.predict(table) == order[s]) > (0.95 if emission == "poisson" else 0.75)
    by_columns = mj.HiddenMarkovModel(2, emission=model.emission, random_state=0).fit(table)
    assert by_columns.log_likelihood_ == pytest.approx(model.log_likelihood_, abs=1e-9)
    model.save(tmp_path / "m.majorant")
    assert mj.load(tmp_path / "m.majorant").bic(table) == model.bic(table)
    residuals = model.pseudo_residuals(table)
    assert np.isnan(residuals[5]).all() and np.isnan(residuals[:, 1]).all() and np.isfinite(residuals[6, 0])
    assert "coef" in model.report(table).html
    no_constant = mj.HiddenMarkovModel.from_formula(
        "y ~ 0 + x", table, emission=emission, n_components=2, random_state=0
    )
    assert no_constant.coef_.shape == (2, 1) and not hasattr(no_constant, "intercept_")


def test_targets_that_cannot_be_are_refused() -> None:
    table, _ = switching("poisson")
    with pytest.raises(ValueError, match="the first column is of counts"):
        mj.HiddenMarkovModel.from_formula("y ~ x", table.assign(y=-1.0), emission="poisson")
    with pytest.raises(ValueError, match="the first column is 0 or 1"):
        mj.HiddenMarkovModel.from_formula("y ~ x", table, emission="bernoulli")
    with pytest.raises(
        ValueError, match="terms of a formula explain a target of emission gaussian, poisson, bernoulli"
    ):
        mj.HiddenMarkovModel.from_formula("y ~ x", table, emission="gamma")
    with pytest.raises(
        ValueError, match='lags=1 are of "regression" or "switching_mean" or "switching_autoregression"'
    ):
        mj.HiddenMarkovModel.from_formula("y ~ lag(y)", table, emission="poisson")


@pytest.mark.parametrize("emission", FAMILIES)
def test_columns_that_separate_the_rows_of_a_state_are_named_and_have_no_error(emission: str) -> None:
    """Of three levels one has ones, or counts of zero, only: the other levels have the errors of their own rows."""
    random = np.random.default_rng(1)
    level = random.permutation(np.repeat([0, 1, 2], 60))
    law, certain = {"poisson": (stats.poisson, 0.0), "bernoulli": (stats.bernoulli, 1.0)}[emission]
    y = np.where(level == 1, certain, law(np.array([0.3, 0.5, 0.6])[level]).rvs(random_state=1))
    table = pd.DataFrame({"y": y, "one": level == 1, "two": level == 2}).astype(float)
    formula = "y ~ one + two"
    with pytest.warns(
        ConvergenceWarning, match=f"runs to infinity along one, as {SEPARATED[emission]}: leave out columns"
    ):
        model = mj.HiddenMarkovModel.from_formula(formula, table, emission=emission, n_components=1, random_state=0)
    assert model.regular_ and model.separated_ in " ".join(model.summary().look_out)
    errors, low = model.standard_errors(table), model.confidence_intervals(table)["coef"][0]
    assert np.isnan(errors["coef"][0, 0]) and np.isnan(low[0, 0])
    means = np.array([y[level == 0].mean(), y[level == 2].mean()])
    events = 60 * (means if emission == "poisson" else means * (1 - means))
    assert errors["intercept"][0] == pytest.approx(events[0] ** -0.5, rel=1e-3)
    assert errors["coef"][0, 1] == pytest.approx((1 / events).sum() ** 0.5, rel=1e-3)
    np.testing.assert_allclose(model.forecast(table, future=table[level == 1][:1]).mean, certain, atol=1e-3)


SEPARATED = {"poisson": "all its counts there are zero", "bernoulli": "its rows are separated"}
MORE = {
    "copy": lambda x: np.column_stack([x, 2 * x]),
    "constant": lambda x: np.column_stack([x, np.full(len(x), 3.0)]),
    "both": lambda x: np.column_stack([x, 2 * x, np.full(len(x), 3.0)]),
}


@pytest.mark.filterwarnings(
    "ignore:Columns have no effect of their own", "ignore:.*combination", "ignore:x. does not vary"
)
@pytest.mark.parametrize("more", MORE)
@pytest.mark.parametrize("family", ["gaussian", *FAMILIES])
def test_columns_without_an_effect_run_nowhere_and_leave_the_constant_its_error(family: str, more: str) -> None:
    """In lines of states and in mixtures of regressions alike: the errors are those without the column."""
    table, _ = switching("poisson" if family == "gaussian" else family)
    there = table.dropna()
    x, y = there[["x"]].to_numpy(), there["y"].to_numpy()
    emission = {"gaussian": "regression"}.get(family, f"{family}_regression")
    found = []
    for columns in (x, MORE[more](x[:, 0])):
        rows = np.column_stack([y, columns])
        states = mj.HiddenMarkovModel(1, emission=emission, random_state=0).fit(rows)
        lines = mj.RegressionMixture(1, family=family.replace("bernoulli", "binomial"), random_state=0).fit(columns, y)
        assert states.regular_ and lines.regular_ and not lines.degeneracy_
        found.append((states, states.standard_errors(rows), lines, lines.standard_errors()))
    (_, plain, _, _), (states, of_states, lines, of_lines) = found
    for errors in (of_states, of_lines):
        np.testing.assert_allclose(errors["intercept"], plain["intercept"], rtol=1e-4)
        assert np.isnan(errors["coef"][0, 1:]).all()
        copied = more != "constant"
        np.testing.assert_allclose(errors["coef"][0, 0], np.nan if copied else plain["coef"][0, 0], rtol=1e-4)
    np.testing.assert_allclose(states.coef_, lines.coef_, atol=1e-6)
    np.testing.assert_allclose(states.intercept_, lines.intercept_, atol=1e-6)


@pytest.mark.filterwarnings(
    "ignore:Columns have no effect of their own", "ignore:.*combination", "ignore:x. does not vary"
)
@pytest.mark.parametrize("emission", FAMILIES)
def test_of_columns_without_an_effect_and_one_that_separates_the_last_is_named(emission: str) -> None:
    table, _ = switching(emission)
    there = table.dropna()
    last = (np.arange(len(there)) % 10 < 3).astype(float)
    y = np.where(last == 1, 0.0, there["y"])
    columns = np.column_stack([MORE["both"](there["x"].to_numpy()), last])
    with pytest.warns(ConvergenceWarning, match="runs to infinity along x5, as"):
        states = mj.HiddenMarkovModel(1, emission=f"{emission}_regression").fit(np.column_stack([y, columns]))
    with pytest.warns(ConvergenceWarning, match="runs to infinity along x4, as"):
        mj.RegressionMixture(1, family=emission.replace("bernoulli", "binomial"), random_state=0).fit(columns, y)
    assert states.regular_


@pytest.mark.parametrize(("emission", "certain"), [("poisson", 0), ("bernoulli", 0), ("bernoulli", 1)])
def test_a_state_that_is_certain_counts_as_without_a_line(emission: str, certain: int) -> None:
    """Its likelihood is finite; a line that is a constant alone is the same model, and no column is to blame."""
    table, s = switching(emission)
    rows = table.assign(y=np.where(s == 1, certain, table["y"])).dropna()[["y"]]
    said = f"All targets of a state are {['zero', 'one'][certain]}, so that its line runs to infinity"
    plain = mj.HiddenMarkovModel(2, emission=emission, random_state=0).fit(rows)
    with pytest.warns(ConvergenceWarning, match=said) as told:
        model = mj.HiddenMarkovModel(2, emission=f"{emission}_regression", random_state=0).fit(rows)
    assert "column" not in " ".join(str(one.message) for one in told)
    assert plain.regular_ and model.regular_ and model.separated_ in " ".join(model.summary().look_out)
    assert model.log_likelihood_ == pytest.approx(plain.log_likelihood_, abs=1e-5)
    errors = model.standard_errors(rows)
    assert np.isnan(errors["intercept"]).sum() == 1
    np.testing.assert_allclose(errors["transitions"], plain.standard_errors(rows)["transitions"], rtol=1e-2)


@pytest.mark.parametrize("emission", FAMILIES)
def test_no_column_is_blamed_for_a_state_without_an_event(emission: str) -> None:
    table, s = switching(emission)
    table = table.assign(y=np.where(s == 1, 0.0, table["y"]))
    with pytest.warns(ConvergenceWarning, match="All targets of a state are zero") as told:
        model = mj.HiddenMarkovModel.from_formula("y ~ x", table, emission=emission, n_components=2, random_state=0)
    assert model.regular_ and "column" not in " ".join(str(one.message) for one in told)
    errors = model.standard_errors(table)
    assert np.isnan(errors["intercept"]).sum() == np.isnan(errors["coef"]).sum() == 1


@pytest.mark.filterwarnings("ignore:All targets of a state:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("emission", ["poisson", "poisson_regression"])
def test_two_states_are_selected_where_one_has_no_event(emission: str) -> None:
    y = np.where(np.arange(80) < 40, np.random.default_rng(0).poisson(3, 80), 0)[:, None]
    selection = mj.select(mj.HiddenMarkovModel(emission=emission, random_state=0), y, n_components=[1, 2])
    assert selection.best.size == 2 and not any(c.excluded for c in selection.candidates)
