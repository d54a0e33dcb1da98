"""Hidden Markov models whose transitions depend on covariates."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import majorant as mj
from majorant.data.chunks import Chunks
from majorant.densities import Poisson
from majorant.engine.mixture import Mixture, Parameters
from majorant.laws import GatedChain
from majorant.laws.gated_chain import StepLogits
from majorant.models.hidden_markov.contest import PLAN, SequenceContest
from majorant.models.hidden_markov.starts import Times
from majorant.report import Run, report


def table(n: int = 400) -> pd.DataFrame:
    """Two sequences of two states; a covariate drives out of the first one, and into it."""
    random, state = np.random.default_rng(0), np.zeros(n, dtype=int)
    z = random.normal(size=n)
    for t in range(1, n):
        p = 1 / (1 + np.exp(2.0 - (2.0 if state[t - 1] == 0 else -2.0) * z[t]))
        state[t] = (random.random() < p) != state[t - 1]
    y = random.normal(np.where(state == 0, 0.0, 4.0))
    kind = np.where(z > 0, "warm", "cold")
    return pd.DataFrame({"y": y, "z": z, "kind": kind, "animal": np.repeat(["a", "b"], n // 2)})


ROWS = table()
GIVEN: dict[str, Any] = {"groups": ROWS["animal"], "gating": ROWS[["z"]]}
Y = ROWS[["y"]]


@pytest.fixture(scope="module")
def model() -> Any:
    return mj.HiddenMarkovModel(2, random_state=0, effort="fast").fit(Y, **GIVEN)


def transitions(model: Any, z: Any) -> Any:
    """The transitions of one chain of two states at each value of the covariate."""
    at = np.column_stack([np.ones(len(z)), (np.asarray(z) - model.gating_center_) / model.gating_scale_])
    odds = np.exp(np.einsum("ijg,ng->nij", model.gating_coef_, at))
    return odds / odds.sum(axis=2, keepdims=True)


def test_covariates_are_found_and_raise_the_likelihood(model: Any) -> None:
    plain = mj.HiddenMarkovModel(2, random_state=0, effort="fast").fit(Y, groups=ROWS["animal"])
    assert model.log_likelihood_ > plain.log_likelihood_ + 20
    assert model.n_parameters_ == plain.n_parameters_ + 2
    low = model.means_[:, 0].argmin()
    out = np.array([model.gating_coef_[low, 1 - low, 1], model.gating_coef_[1 - low, low, 1]]) / model.gating_scale_
    errors = model.standard_errors(Y, **GIVEN)["gating_coef"]
    errors = np.array([errors[low, 1 - low, 1], errors[1 - low, low, 1]]) / model.gating_scale_
    assert (np.abs(out - [2.0, -2.0]) < 3 * errors).all() and (errors > 0.1).all() and (errors < 1).all()
    np.testing.assert_allclose(model.transitions_, transitions(model, model.gating_center_)[0], rtol=1e-12)
    assert (
        mj.HiddenMarkovModel(2, random_state=0, effort="fast").fit(Y, **GIVEN).log_likelihood_ == model.log_likelihood_
    )


def test_the_likelihood_is_that_of_the_changing_transitions(model: Any) -> None:
    steps, log_likelihood = transitions(model, ROWS["z"].to_numpy()[:, None]), 0.0
    densities = norm.pdf(Y.to_numpy(), model.means_[:, 0], np.sqrt(model.covariances_[:, 0, 0]))
    filtered = []
    for t in range(len(Y)):
        ahead = model.start_probabilities_ if t % 200 == 0 else filtered[-1] @ steps[t]
        joint = ahead * densities[t]
        log_likelihood += np.log(joint.sum())
        filtered.append(joint / joint.sum())
    assert model.log_likelihood_ == pytest.approx(log_likelihood, abs=1e-6)
    assert model.score_samples(Y, **GIVEN).sum() == pytest.approx(log_likelihood, abs=1e-6)
    assert model.log_likelihood(Y, **GIVEN) == pytest.approx(log_likelihood, abs=1e-6)
    np.testing.assert_allclose(model.predict_proba(Y, given="past", **GIVEN), filtered, atol=1e-10)
    ahead = model.forecast(Y, 2, gating_ahead=[[0.5], [-1.0], [0.0], [2.0]], **GIVEN)
    two = filtered[-1] @ transitions(model, [[0.0]])[0] @ transitions(model, [[2.0]])[0]
    np.testing.assert_allclose(ahead.states[1, 1], two, atol=1e-10)
    residuals = model.pseudo_residuals(Y, **GIVEN)
    assert abs(residuals.std() - 1) < 0.1
    assert (model.durations(Y, **GIVEN)[1] > 1).all()


def test_terms_of_a_formula_are_the_same_and_come_with_tables(model: Any, tmp_path: Path) -> None:
    mixed = ROWS.sample(frac=1, random_state=1).assign(hour=lambda rows: rows.index)
    named = mj.HiddenMarkovModel.from_formula(
        "y ~ 1 | animal", mixed, time="hour", gating="z", n_components=2, random_state=0, effort="fast"
    )
    assert named.log_likelihood_ == pytest.approx(model.log_likelihood_, abs=1e-8)
    assert named._entry_names("gating_coef")[:2] == ["to 1, constant", "to 1, z"]
    named.save(tmp_path / "model.majorant")
    for one in (named, mj.load(tmp_path / "model.majorant")):
        np.testing.assert_array_equal(one.predict(mixed), model.predict(Y, **GIVEN)[mixed.index])
        assert one.bic(mixed) == pytest.approx(model.bic(Y, **GIVEN), abs=1e-6)
    of_kinds = mj.HiddenMarkovModel.from_formula(
        "y ~ lag(y) | animal", ROWS, gating="lag(kind)", n_components=2, random_state=0, effort="fast"
    )
    assert of_kinds.gating_names_in_ == ["lag(kind)[T.warm]"]
    shifted = (ROWS.groupby("animal")["kind"].shift(1) == "warm").astype(float)
    by_columns = mj.HiddenMarkovModel(2, emission="regression", lags=1, random_state=0, effort="fast")
    by_columns.fit(Y, groups=ROWS["animal"], gating=shifted.to_numpy()[:, None])
    assert of_kinds.log_likelihood_ == pytest.approx(by_columns.log_likelihood_, abs=1e-5)
    ahead = of_kinds.forecast(ROWS, 3, gating_ahead=np.zeros((6, 1)))
    assert ahead.mean.shape == (2, 3, 1) and np.isfinite(ahead.interval()[0]).all()


def test_a_weight_is_a_sequence_that_is_there_twice(model: Any) -> None:
    first, second = ROWS[:200], ROWS[200:]
    twice = pd.concat([first, second, second.assign(animal="c")])
    repeated = mj.HiddenMarkovModel(2, random_state=0, effort="fast")
    repeated.fit(twice[["y"]], groups=twice["animal"], gating=twice[["z"]])
    weighted = mj.HiddenMarkovModel(2, random_state=0, effort="fast").fit(Y, sequence_weight=[1, 2], **GIVEN)
    assert weighted.log_likelihood_ == pytest.approx(repeated.log_likelihood_, abs=1e-6)
    np.testing.assert_allclose(weighted.gating_coef_, repeated.gating_coef_, atol=1e-4)


def test_left_to_right_with_covariates_and_rows_drawn(model: Any) -> None:
    allowed = np.triu(np.ones((2, 2), dtype=bool))
    one_way = mj.HiddenMarkovModel(2, start=[1, 0], allowed=allowed, random_state=0, effort="fast")
    with pytest.warns(ConvergenceWarning, match="z separates the steps"):  # each sequence has one step, at a high z
        one_way.fit(Y, **GIVEN)
    assert one_way.transitions_[1, 0] == 0 and one_way.n_parameters_ == model.n_parameters_ - 3
    X, states = model.sample(groups=ROWS["animal"], gating=ROWS[["z"]])
    assert X.shape == (400, 1) and set(states) == {0, 1}
    again = clone(model).set_params(warm_start=True).fit(Y, **GIVEN)
    assert again.fit(Y, **GIVEN).search_.starts[0].source == "warm start"
    assert again.log_likelihood_ == pytest.approx(model.log_likelihood_, abs=1e-5)
    assert "gating_coef" not in again.fit(Y, groups=ROWS["animal"]).estimate_names_
    assert again.fit(Y, **GIVEN).gating_coef_.shape == (2, 2, 2)


def test_sizes_are_selected_and_the_page_says_where_transitions_are(model: Any) -> None:
    found = mj.select(
        mj.HiddenMarkovModel(random_state=0, effort="fast"), Y, n_components=[1, 2], fit_params=dict(GIVEN)
    )
    assert found.best_estimator_.n_components == 2
    terms = {"gating": "z", "groups": "animal"}
    named = mj.select(
        mj.HiddenMarkovModel(random_state=0, effort="fast"), ROWS, n_components=[2], formula="y ~ 1", fit_params=terms
    )
    assert named.best.value == pytest.approx(model.bic(Y, **GIVEN), abs=1e-5)
    assert "Where covariates are at their mean." in str(model.summary())
    page = report(Run(model, Y.to_numpy(), ("y",), "moves.csv", "", given=GIVEN)).html
    assert "where all covariates are at their mean" in re.sub("<[^>]*>", "", page)


@pytest.mark.parametrize(
    ("settings", "given", "message"),
    [
        ({"start": "stationary"}, {}, "have no stationary law"),
        ({"allowed": ~np.eye(2, dtype=bool)}, {}, "a state may always stay"),
        ({}, {"gating": ROWS["z"][:-1]}, "a row for each of the 400 rows"),
        ({}, {"gating": ROWS["z"].where(ROWS.index != 7)}, "row 7"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mj.HiddenMarkovModel(2, random_state=0, **settings).fit(Y, **{**GIVEN, **given})


def test_covariates_must_come_where_the_fit_had_some(model: Any) -> None:
    with pytest.raises(ValueError, match="depend on covariates: give gating"):
        model.predict(Y, groups=ROWS["animal"])
    with pytest.raises(ValueError, match="give gating_ahead"):
        model.forecast(Y, 1, **GIVEN)
    with pytest.raises(ValueError, match="give gating"):
        model.sample(10)
    plain = mj.HiddenMarkovModel(1).fit(Y)
    with pytest.raises(ValueError, match="on no covariates: leave gating out"):
        plain.predict(Y, gating=ROWS[["z"]])


def switching(separated: bool, k: int = 2, n: int = 400) -> tuple[Any, Any, Any]:
    """Covariate, states that go round in a cycle, and rows far apart by state."""
    draws = np.random.default_rng(0)
    z, states = draws.normal(size=(n, 1)), np.zeros(n, dtype=int)
    chance = (z[:, 0] > 0.5).astype(float) if separated else 1 / (1 + np.exp(1.5 - z[:, 0]))
    for t in range(1, n):
        states[t] = (states[t - 1] + int(draws.random() < chance[t])) % k
    return z, states, (6.0 * states + draws.normal(size=n))[:, None]


@pytest.mark.parametrize("beside", [None, "twice", "constant"])
def test_a_covariate_that_separates_the_steps_is_named_and_has_no_errors(beside: str | None) -> None:
    z, states, y = switching(separated=True)
    if beside is not None:
        z = np.column_stack([z, 2 * z if beside == "twice" else np.ones(len(z))])
    named = "z1, z2" if beside == "twice" else "z1"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = mj.HiddenMarkovModel(2, random_state=0, effort="fast").fit(y, gating=z)
    sentence = f"Gating by {named} separates the steps of the states"
    assert sum(sentence in str(one.message) for one in said) == 1
    assert sentence in model.separated_ and sentence in " ".join(str(model.summary()).split())
    off = ~np.eye(2, dtype=bool)
    assert np.isnan(model.standard_errors(y, gating=z)["gating_coef"][off]).all()
    assert np.isnan(model.confidence_intervals(y, gating=z)["gating_coef"][0][off]).all()
    labels = model.predict(y, gating=z)
    assert min((labels == states).mean(), (labels != states).mean()) == 0
    ahead = model.forecast(
        y, 2, gating=z, gating_ahead=np.column_stack([[1.5, -1.5]] * z.shape[1]) * [1, 2][: z.shape[1]]
    )
    known = np.eye(2)[labels[-1]]
    np.testing.assert_allclose(ahead.states[0], [known[::-1], known[::-1]], atol=1e-6)  # a switch, then none


@pytest.mark.parametrize("beside", ["twice", "constant"])
def test_a_covariate_without_an_effect_of_its_own_has_no_errors(beside: str) -> None:
    z, _, y = switching(separated=False)
    both = np.column_stack([z, 2 * z if beside == "twice" else np.ones(len(z))])
    with pytest.warns(ConvergenceWarning, match="no effect of their own: z2"):
        model = mj.HiddenMarkovModel(2, random_state=0, effort="fast").fit(y, gating=both)
    alone = mj.HiddenMarkovModel(2, random_state=0, effort="fast").fit(y, gating=z)
    assert model.separated_ == ""
    off = ~np.eye(2, dtype=bool)
    errors, expected = model.standard_errors(y, gating=both), alone.standard_errors(y, gating=z)
    lost = [1, 2] if beside == "twice" else [2]
    assert np.isnan(errors["gating_coef"][off][:, lost]).all()
    told = [j for j in range(2) if j not in lost]
    np.testing.assert_allclose(errors["gating_coef"][off][:, told], expected["gating_coef"][off][:, told], rtol=1e-3)
    np.testing.assert_allclose(errors["transitions"], expected["transitions"], rtol=1e-3)


def test_steps_that_never_happen_are_no_separation_and_leave_the_others_their_errors() -> None:
    z, _, y = switching(separated=False, k=3, n=600)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = mj.HiddenMarkovModel(3, random_state=0, effort="fast").fit(y, gating=z)
    assert model.separated_ == ""
    happens = model.transitions_ > 1e-3
    assert happens.sum() == 6
    open_steps = ~np.eye(3, dtype=bool)
    errors = model.standard_errors(y, gating=z)["gating_coef"]
    np.testing.assert_array_equal(np.isfinite(errors[open_steps]).all(axis=1), happens[open_steps])
    assert (errors[open_steps & happens] < 0.6).all()


def test_a_covariate_that_separates_is_named_beside_a_state_that_is_never_left() -> None:
    """The logit of leaving runs to minus infinity whatever the covariates, far beyond that of the rare covariate."""
    draws, length = np.random.default_rng(0), 10
    animal, x, rare = np.repeat(np.arange(80), length), draws.normal(size=800), draws.random(800) < 0.02
    moves, states = draws.random(800) < 0.5 * rare, np.zeros(800, dtype=int)
    for t in range(1, 800):
        states[t] = t % length and (states[t - 1] or int(moves[t]))
    y = (9.0 * states + draws.normal(size=800))[:, None]
    given = {"groups": animal, "gating": np.column_stack([x, rare])}
    model = mj.HiddenMarkovModel(2, random_state=0, effort="fast")
    with pytest.warns(ConvergenceWarning, match="Gating by z2 separates the steps"):
        model.fit(y, **given)
    labels = model.predict(y, **given)
    first = labels[0]
    assert ((labels == first) == (states == 0)).all()
    errors = model.standard_errors(y, **given)["gating_coef"]
    at_risk = np.flatnonzero(rare & (np.arange(800) % length > 0) & (np.roll(states, 1) == 0))
    logit = LogisticRegression(C=np.inf, tol=1e-10).fit(x[at_risk, None], states[at_risk])
    design, p = np.column_stack([np.ones(len(at_risk)), x[at_risk]]), logit.predict_proba(x[at_risk, None])[:, 1]
    expected = x.std() * np.sqrt(np.linalg.inv(design.T @ (design * (p * (1 - p))[:, None]))[1, 1])
    np.testing.assert_allclose(errors[first, 1 - first], [np.nan, expected, np.nan], rtol=0.01)
    assert np.isnan(errors[1 - first, first]).all()


@pytest.mark.parametrize(
    ("slopes", "same"),
    [
        ([0.0, 0.0, 0.0, 0.0], True),
        ([0.0, 1.0, 0.0, -1.0], False),  # where the covariate is zero, both lead to the third state alike
        ([0.0, 1.0, 0.0, 1.0], True),
        ([1.0, 0.5, -1.0, -0.5], True),  # against staying otherwise, but both lead to the third state alike
    ],
)
def test_states_are_the_same_if_they_lead_elsewhere_alike_whatever_the_covariates(
    slopes: list[float], same: bool
) -> None:
    """States 0 and 1 have the same rows; slopes are those of the steps 0 to 1, 0 to 2, 1 to 0 and 1 to 2."""
    z = np.column_stack([np.ones(50), np.random.default_rng(0).normal(size=50)])
    density, chain = Poisson(1), GatedChain(2)
    columns = np.arange(50.0)[:, None], z, np.zeros(50, dtype=np.intp)
    coef = np.zeros((1, 3, 3, 2))
    coef[0, [0, 0, 1, 1], [1, 2, 0, 2], 1] = slopes
    contest = SequenceContest(
        mixture=Mixture(density, chain, 3), columns=columns, points=columns[0], weights=np.ones(50), plan=PLAN,
        tol=0.0, max_iter=1, data=Chunks, times=Times(columns[0], np.ones(50), np.array([0, 50]), 3), chain=chain,
    )  # fmt: skip
    theta = Parameters(np.array([[[9.0], [9.0], [30.0]]]), StepLogits(np.full((1, 3), 1 / 3), coef))
    assert contest.same_densities(theta).tolist() == [[0, 1]] * same
