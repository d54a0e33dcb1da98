"""How sure are the numbers of a mixture of regressions? Information, intervals, resampling, criteria."""

from __future__ import annotations

import pickle
import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import PoissonRegressor

import majorant as mj
from majorant.densities import Predictors
from majorant.engine.mixture import Parameters
from majorant.laws.gated import Logits
from majorant.laws.independent import Weights
from majorant.persistence import load, save
from majorant.results.information import observed_information, packed, unpacked

from .test_regression_experts_em import FAMILIES, OPTIONS, problem_of

Array = NDArray[Any]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("option", [name for name, given in OPTIONS.items() if "trim" not in given] + ["all but trim"])
def test_information_is_minus_the_hessian(family: str, option: str) -> None:
    units, problem = problem_of(family, OPTIONS.get(option, OPTIONS["everything"] | {"trim": 0.0}), 0)
    mixture = problem.mixture
    k, g = mixture.n_components, np.random.default_rng(1)
    law: Any = Weights(np.full((1, k), 1 / k))
    law = law if units.gating is None else Logits(np.zeros((1, k, units.gating.shape[1])))
    start = Parameters(Predictors(np.zeros((1, k, units.n_coefficients)), np.ones((1, k))), law)
    v = 0.5 * g.normal(size=packed(mixture, start).shape[1])
    assert mixture.n_parameters == len(v)

    def value(v: Array) -> float:
        return -float(problem.seen(unpacked(mixture, v[None], start)).objective[0])

    step = 3e-4 * np.eye(len(v))
    hessian = np.array(
        [[value(v + a + b) - value(v + a - b) - value(v - a + b) + value(v - a - b) for b in step] for a in step]
    ) / (-3.6e-7)
    found = observed_information(problem, unpacked(mixture, v[None], start))
    np.testing.assert_allclose(found, hessian, atol=2e-5 * np.abs(found).max())


def simulated(seed: int = 0, n: int = 240) -> dict[str, Array]:
    """Two lines whose weights depend on a column."""
    g = np.random.default_rng(seed)
    x, gate = g.normal(size=(n, 2)), g.normal(size=n)
    which = g.random(n) < 1 / (1 + np.exp(-gate))
    eta = np.where(which, 1 + x @ [1.0, 0.5], -1 + x @ [-1.0, 0.2])
    return {"x": x, "y": eta + 0.3 * g.normal(size=n), "counts": g.poisson(np.exp(0.5 * eta + 1)), "gate": gate}


def test_errors_in_the_units_of_the_columns() -> None:
    data = simulated()
    x, y, gate = data["x"], data["y"], data["gate"]
    plain = mj.RegressionMixture(2, random_state=0).fit(x, y, gating=gate)
    moved = mj.RegressionMixture(2, random_state=0).fit(x * [10, 0.1] + 7, 5 * y - 3, gating=4 * gate + 2)
    a, b = plain.standard_errors(), moved.standard_errors()
    np.testing.assert_allclose(b["coef"], a["coef"] * 5 / [10, 0.1], rtol=1e-4)
    np.testing.assert_allclose(b["scale"], 5 * a["scale"], rtol=1e-4)
    np.testing.assert_allclose(b["weights"], a["weights"], rtol=1e-4)
    np.testing.assert_allclose(b["gating_coef"], a["gating_coef"] / 4, rtol=1e-4, atol=1e-12)
    assert (a["gating_coef"][0] == 0).all() and a["gating_intercept"][0] == 0
    assert a["gating_coef"].shape == (2, 1)


def test_the_general_path_agrees_with_the_plain_one() -> None:
    data = simulated()
    plain = mj.RegressionMixture(2, random_state=0).fit(data["x"], data["y"])
    general = mj.RegressionMixture(2, random_state=0).fit(data["x"], data["y"], offset=0.0)
    for name, errors in plain.standard_errors().items():
        np.testing.assert_allclose(general.standard_errors()[name], errors, rtol=1e-4, atol=1e-10, err_msg=name)


def test_one_generalised_linear_model() -> None:
    data = simulated()
    x, y = data["x"], data["counts"]
    model = mj.RegressionMixture(1, family="poisson").fit(x, y)
    peer = PoissonRegressor(alpha=0, tol=1e-10).fit(x, y)
    raw = np.column_stack([np.ones(len(y)), x])
    covariance = np.linalg.inv(raw.T @ (raw * peer.predict(x)[:, None]))
    errors = model.standard_errors()
    np.testing.assert_allclose(np.r_[errors["intercept"], errors["coef"][0]], np.sqrt(np.diag(covariance)), rtol=1e-4)
    assert (errors["scale"] == 0).all()


def test_weights_are_repeats_for_every_figure() -> None:
    data = simulated(n=120)
    x, y, gate, times = data["x"], data["y"], data["gate"], np.arange(120) % 3
    weighted = mj.RegressionMixture(2, random_state=0).fit(x, y, gating=gate, sample_weight=times)
    many = {"X": np.repeat(x, times, 0), "y": np.repeat(y, times), "gating": np.repeat(gate, times)}
    repeated = mj.RegressionMixture(2, random_state=0).fit(**many)
    for name, errors in repeated.standard_errors().items():
        np.testing.assert_allclose(weighted.standard_errors()[name], errors, rtol=1e-9, atol=1e-12)
    for name in ("aic", "bic", "icl"):
        value = getattr(weighted, name)(x, y, gating=gate, sample_weight=times)
        assert value == pytest.approx(getattr(weighted, f"{name}_"))
        assert value == pytest.approx(getattr(repeated, name)(**many))
    draw = {"n_resamples": 4, "random_state": 0}
    for kind in ("parametric", "case"):
        one = weighted.bootstrap(x, y, gating=gate, sample_weight=times, kind=kind, **draw)
        order = np.random.default_rng(0).permutation(len(many["y"]))
        other = repeated.bootstrap(**{name: values[order] for name, values in many.items()}, kind=kind, **draw)
        np.testing.assert_array_equal(one.samples["coef"], other.samples["coef"])


def test_criteria_of_groups() -> None:
    data = simulated(n=120)
    x, y, groups = data["x"], data["y"], np.arange(120) // 3
    w = (groups % 3).astype(float)
    model = mj.RegressionMixture(2, random_state=0).fit(x, y, groups=groups, sample_weight=w)
    for name in ("aic", "bic", "icl"):
        value = getattr(model, name)(x, y, groups=groups, sample_weight=w)
        assert value == pytest.approx(getattr(model, f"{name}_"))


CASES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"variance": "common"}, ["gating"]),
    ({"shared": [1]}, []),
    ({"family": "poisson", "shared": ["intercept"]}, ["groups"]),
]


@pytest.mark.parametrize("kind", ["parametric", "case"])
@pytest.mark.parametrize(("parameters", "extras"), CASES)
def test_resampling_agrees_with_the_information(kind: Any, parameters: dict[str, Any], extras: list[str]) -> None:
    data = simulated(n=300)
    if "groups" in extras:
        g = np.random.default_rng(0)
        which = np.repeat(g.random(100) < 0.4, 3)
        data["counts"] = g.poisson(np.exp(1 + np.where(which, 0.6, -0.4) * data["x"][:, 0]))
    y = data["counts"] if "family" in parameters else data["y"]
    given = {name: {"gating": data["gate"], "groups": np.arange(300) // 3}[name] for name in extras}
    model = mj.RegressionMixture(2, random_state=0, **parameters).fit(data["x"], y, **given)
    made = model.bootstrap(data["x"], y, kind=kind, n_resamples=40, random_state=1, **given)
    assert made.n_used >= 38
    assert "from the fit itself as its start" in made.sentence
    errors, found = model.standard_errors(), made.standard_errors()
    for name in ("coef", "intercept", "weights"):
        assert found[name].shape == errors[name].shape
        np.testing.assert_allclose(found[name], errors[name], rtol=0.75, err_msg=name)
    low, high = model.confidence_intervals(
        0.8, f"{kind}-bootstrap", data["x"], y, n_resamples=10, random_state=0, **given
    )["coef"]
    assert (low <= high).all() and low.shape == model.coef_.shape


def test_jobs_and_labels_of_components_do_not_matter() -> None:
    data = simulated(n=100)
    model = mj.RegressionMixture(2, random_state=0).fit(data["x"], data["y"])
    with parallel_config("threading"):
        one, two = (model.bootstrap(data["x"], data["y"], n_resamples=4, random_state=3, n_jobs=n) for n in (1, 2))
    for name, values in one.samples.items():
        np.testing.assert_array_equal(values, two.samples[name])
    assert np.abs(one.samples["coef"] - model.coef_).max() < 1  # components keep their places
    for name in ("parametric-bootstrap", "bootstrap"):
        by_name = model.standard_errors(name, data["x"], data["y"], n_resamples=4, random_state=3)
        np.testing.assert_array_equal(by_name["coef"], one.standard_errors()["coef"])


def test_intervals() -> None:
    data = simulated()
    model = mj.RegressionMixture(2, random_state=0).fit(data["x"], data["y"])
    errors, found = model.standard_errors(), model.confidence_intervals(0.9)
    np.testing.assert_allclose(found["coef"][1] - model.coef_, 1.6448536 * errors["coef"])
    low, high = found["weights"]
    assert (low > 0).all() and (high < 1).all() and (low < model.weights_).all()
    np.testing.assert_allclose(np.sqrt(found["scale"][0] * found["scale"][1]), model.scale_)


def test_what_is_refused_and_warned_of() -> None:
    data = simulated(n=60)
    x, y = data["x"], data["y"]
    model = mj.RegressionMixture(2, random_state=0).fit(x, y)
    with pytest.raises(ValueError, match="needs the rows of the fit: give X and y"):
        model.standard_errors("case-bootstrap")
    with pytest.raises(ValueError, match="takes no rows"):
        model.standard_errors("observed", x, y)
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        model.confidence_intervals(1.0)
    with pytest.raises(ValueError, match="method must be one of"):
        model.standard_errors("jackknife")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="use the case bootstrap"):
        model.bootstrap(x, y, sample_weight=np.full(60, 0.5))
    with pytest.raises(ValueError, match="was fitted without groups="):
        model.bootstrap(x, y, groups=np.arange(60))
    trimmed = mj.RegressionMixture(1, trim=0.1).fit(x, y)
    with pytest.raises(ValueError, match="knows nothing of those that were trimmed"):
        trimmed.standard_errors()
    assert "knows nothing of those that were trimmed" in " ".join(str(trimmed.summary()).split())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        separated = mj.RegressionMixture(1, family="binomial", random_state=0).fit(x[:, :1], x[:, 0] > 0)
    errors = separated.standard_errors()
    assert np.isnan(errors["coef"]).all() and np.isnan(errors["intercept"]).all()
    assert "have no standard errors (NaN) and no intervals" in " ".join(str(separated.summary()).split())


def test_errors_are_computed_when_they_are_asked_for_and_go_with_a_copy(tmp_path: Path) -> None:
    x = np.linspace(0, 10, 100)[:, None]
    y = np.where(np.arange(100) % 2 == 0, x[:, 0], 5 - x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=100)
    model = mj.RegressionMixture(2, random_state=0)
    assert not hasattr(model, "standard_errors_")
    model.fit(x, y)
    assert "standard_errors_" not in vars(model)
    copied = pickle.loads(pickle.dumps(model))
    save(model.fit(x, y), tmp_path / "model.majorant")
    model.fit(x, y)
    for other in (copied, load(tmp_path / "model.majorant"), deepcopy(model.fit(x, y))):
        assert not any(map(callable, vars(other).values()))
        for name, errors in model.standard_errors_.items():
            np.testing.assert_array_equal(other.standard_errors_[name], errors)
    again = model.fit(x[:60], y[:60]).standard_errors_["coef"]
    assert (again > copied.standard_errors_["coef"]).all()


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_responses_that_are_separated_have_no_errors_and_right_predictions(family: str) -> None:
    """In one component x separates the targets, the other is regular; each group is of one component."""
    draws = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 10)
    x = draws.integers(2, size=(400, 1)).astype(float)
    of_first = groups % 2 == 0
    if family == "binomial":
        y = np.where(of_first, x[:, 0], draws.random(400) < np.where(x[:, 0] == 1, 0.3, 0.6)).astype(float)
    else:
        y = np.where(of_first, np.where(x[:, 0] == 1, draws.poisson(5, 400), 0), draws.poisson(20, 400)).astype(float)
    why = "its rows are separated" if family == "binomial" else "all its counts there are zero"
    with pytest.warns(ConvergenceWarning, match=f"The line of a component runs to infinity along x1, as {why}"):
        model = mj.RegressionMixture(2, family=family, random_state=0).fit(x, y, groups=groups)
    assert model.regular_ and "along x1" in model.separated_
    first = int(np.abs(model.coef_[:, 0]).argmax())
    errors = model.standard_errors()
    assert np.isnan(errors["coef"][first]).all() and np.isnan(errors["intercept"][first])
    assert (errors["coef"][1 - first] < 0.5).all() and errors["intercept"][1 - first] < 0.5
    np.testing.assert_allclose(errors["weights"], np.sqrt(0.25 / 40), rtol=1e-3)  # it is known whose each group is
    assert np.isnan(model.confidence_intervals()["coef"][0][first]).all()
    np.testing.assert_array_equal(model.responsibilities_[:, first] > 0.5, of_first)
    predictor = model.intercept_[first] + model.coef_[first, 0] * np.array([0.0, 1.0])
    expected = [y[of_first & (x[:, 0] == value)].mean() for value in (0, 1)]
    mean = 1 / (1 + np.exp(-predictor)) if family == "binomial" else np.exp(predictor)
    np.testing.assert_allclose(mean, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("family", "trials", "seeds"), [("binomial", 1, (0, 4)), ("binomial", 2, (0, 3)), ("poisson", 1, (3, 6))]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_that_the_rows_do_not_determine_have_no_errors(family: str, trials: int, seeds: Any) -> None:
    """All events are zero, or two trials at three levels have 6 chances of their own, for 7 parameters."""
    for seed in seeds:
        draws = np.random.default_rng(seed)
        x, y, given = draws.normal(size=(300, 1)), np.zeros(300), {}
        if trials == 2:
            is_first, level = draws.random(300) < 0.5, draws.integers(3, size=300)
            chance = np.where(is_first, np.array([0.5, 1.0, 0.6])[level], np.array([0.2, 0.3, 0.1])[level])
            x, y, given = np.eye(3)[level][:, 1:], draws.binomial(2, chance), {"trials": np.full(300, 2)}
        model = mj.RegressionMixture(2, family=family, random_state=0).fit(x, y, **given)
        said = "The rows do not determine the weights" if model.regular_ else "The solution is not a regular one"
        with pytest.warns(RuntimeWarning, match=said):
            assert np.isnan(model.standard_errors()["weights"]).all()
        assert said in str(model.summary())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_other_weights_and_transitions_that_the_rows_do_not_determine_have_no_errors() -> None:
    """All rows alike, whose log-likelihood is zero; and a single item that varies, whose mean is one number."""
    alike, one = np.ones((200, 3)), np.ones((200, 3))
    one[:, 0] = np.random.default_rng(0).integers(2, size=200)
    for rows in (alike, one):
        classes = mj.LatentClassAnalysis(2, random_state=0).fit(rows.astype(int))
        assert all(np.isnan(errors).all() for errors in classes.standard_errors(rows.astype(int)).values())
    for emission, rows in (("bernoulli", alike), ("poisson", 0 * alike)):
        chain = mj.HiddenMarkovModel(2, emission=emission, random_state=0).fit(rows)
        assert all(np.isnan(errors).all() for errors in chain.standard_errors(rows).values())


@pytest.mark.filterwarnings("ignore:The line of a component runs to infinity")
@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_components_that_are_separated_are_compared_by_their_likelihood(family: str) -> None:
    """Where `flag` is one, a component has no events, or all: its likelihood is that of its other rows alone."""
    draws = np.random.default_rng(0)
    groups, flag = np.repeat(np.arange(60), 12), np.tile(np.arange(12) < 4, 60).astype(float)
    is_first, x = groups < 25, draws.normal(size=720)
    if family == "binomial":
        chance = 1 / (1 + np.exp(-np.where(is_first, 1 + x, -1.5 - x)))
        y = np.where(is_first & (flag == 1), 1.0, draws.random(720) < chance)
    else:
        mean = np.exp(np.where(is_first, 1 + 0.3 * x, 3 + 0.1 * x))
        y = np.where(is_first & (flag == 1), 0.0, draws.poisson(mean))
    X = np.column_stack([x, flag])
    found = mj.select(
        mj.RegressionMixture(family=family, random_state=0), X, y, n_components=[1, 2], fit_params={"groups": groups}
    )
    model = found.best_estimator_
    assert found.best.size == 2 and model.regular_ and "along x2, as" in model.separated_
    of_first = is_first & (flag == 0)
    alone = mj.RegressionMixture(1, family=family).fit(X[of_first, :1], y[of_first])
    other = mj.RegressionMixture(1, family=family).fit(X[~is_first], y[~is_first])
    shares = 25 * np.log(25 / 60) + 35 * np.log(35 / 60)  # it is known whose each group is
    expected = alone.log_likelihood_ + other.log_likelihood_ + shares
    assert model.log_likelihood_ == pytest.approx(expected, abs=0.02)
    place = int(np.abs(model.coef_[:, 1]).argmax())
    errors = model.standard_errors()
    assert np.isnan(errors["coef"]).sum() == 1 and np.isnan(errors["coef"][place, 1])
    np.testing.assert_allclose(model.coef_[place, 0], alone.coef_[0, 0], rtol=1e-2)
    np.testing.assert_allclose(errors["coef"][place, 0], alone.standard_errors()["coef"][0, 0], rtol=1e-2)
    assert np.isnan(model.confidence_intervals()["coef"][1]).sum() == 1


def test_a_separated_component_of_few_rows_does_not_count() -> None:
    """Of two zeros a component makes log-likelihood and nothing else."""
    draws = np.random.default_rng(0)
    x, y = draws.normal(size=(100, 2)), draws.poisson(30, 100).astype(float)
    y[:2] = 0
    init = {"coef": np.zeros((2, 2)), "intercept": np.array([3.4, -5.0]), "weights": np.array([0.98, 0.02])}
    model = mj.RegressionMixture(2, family="poisson", init=init)
    with pytest.warns(ConvergenceWarning, match="a component's line runs to infinity, and has 2") as told:
        assert not model.fit(x, y).regular_
    assert "regular from 5" in str(told[-1].message)
    y[:6] = 0
    with pytest.warns(ConvergenceWarning, match="The line of a component runs to infinity"):
        assert model.fit(x, y).regular_


@pytest.mark.parametrize("family", ["binomial", "poisson"])
@pytest.mark.parametrize("shared", [None, ["dose"]])
def test_columns_that_separate_a_response_are_named(family: str, shared: list[str] | None) -> None:
    """`treated` alone decides whether there is an event; without columns all counts are zero."""
    draws = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": draws.normal(50, 9, 200), "treated": np.arange(200) % 2, "dose": draws.normal(size=200)}
    )
    y = (table["treated"] == 1).to_numpy(float) * (1 if family == "binomial" else draws.integers(1, 9, 200))
    model = mj.RegressionMixture(1, family=family, shared=shared, random_state=0)
    with pytest.warns(ConvergenceWarning, match="runs to infinity along treated, as"):
        model.fit(table[["treated", "age", "dose"]], y)
    with pytest.warns(ConvergenceWarning, match="runs to infinity along the intercept, as"):
        model.fit(table[["age", "dose"]], np.zeros(200))


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_combinations_of_columns_have_no_errors_and_the_others_have_theirs(family: str) -> None:
    """A copy, a sum and a constant: all columns of a combination have NaN; the level at zero only where it is one's."""
    random = np.random.default_rng(0)
    x = random.normal(2, 1, (150, 3))
    eta = np.where(np.arange(150) % 2, 3.0, 0.5) + x @ [0.1, -0.2, 0.1]
    y = eta + 0.1 * random.normal(size=150) if family == "gaussian" else random.poisson(np.exp(eta))
    whole = mj.RegressionMixture(2, family=family, random_state=0).fit(x, y).standard_errors()
    more = np.column_stack([x, 2 * x[:, 1], np.full(150, 7.0)])
    others = [0, 2]
    with pytest.warns(LinAlgWarning, match=r"x5 does not vary: no effect, .*\. Leave it out\. x4: a combination"):
        copied = mj.RegressionMixture(2, family=family, random_state=0).fit(more, y)
    found = copied.standard_errors()
    low = copied.confidence_intervals()["coef"][0]
    assert np.isnan(found["coef"][:, [1, 3, 4]]).all() and np.isnan(low[:, [1, 3, 4]]).all()
    np.testing.assert_allclose(found["coef"][:, others], whole["coef"][:, others], rtol=1e-5)
    np.testing.assert_allclose(found["intercept"], whole["intercept"], rtol=1e-5)

    more = np.column_stack([x, 5 - x[:, 1]])  # where the constant takes part
    with pytest.warns(LinAlgWarning, match="a combination"):
        found = mj.RegressionMixture(2, family=family, random_state=0).fit(more, y).standard_errors()
    assert np.isnan(found["coef"][:, [1, 3]]).all() and np.isnan(found["intercept"]).all()
    np.testing.assert_allclose(found["coef"][:, others], whole["coef"][:, others], rtol=1e-5)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_estimates_are_one_table_of_what_is_said_of_each_number(family: str) -> None:
    random = np.random.default_rng(0)
    x, gate = random.normal(size=(200, 2)), random.normal(size=(200, 1))
    eta = np.where(random.random(200) < 0.5, 1 + x[:, 0], -x[:, 1])
    y = eta + 0.3 * random.normal(size=200) if family == "gaussian" else random.poisson(np.exp(eta)).astype(float)
    model = mj.RegressionMixture(2, family=family, random_state=0).fit(x, y, gating=gate)
    table, errors, ends = model.estimates(x, level=0.9), model.standard_errors(), model.confidence_intervals(0.9)
    has_noise = family == "gaussian"
    shown = ["coef", "intercept", *["scale"] * has_noise, "weights", "gating_coef", "gating_intercept"]
    assert list(dict.fromkeys(table["parameter"])) == shown and set(table["component"]) == {1, 2}
    for name, part in table.groupby("parameter"):
        wide = {"estimate": getattr(model, f"{name}_"), "standard_error": errors[name]}
        wide |= dict(zip(("low", "high"), ends[name], strict=True))
        for head, values in wide.items():
            np.testing.assert_array_equal(part[head], np.asarray(values).T.ravel())
    assert table["entry"][:4].tolist() == ["x1", "x1", "x2", "x2"]
    plain = mj.RegressionMixture(1, family=family, fit_intercept=False, random_state=0).fit(x, y)
    assert set(plain.estimates()["parameter"]) == {"coef", "weights", *["scale"] * has_noise}
    drawn = plain.estimates(x, y, method="bootstrap", n_resamples=5, random_state=0)
    expected = plain.standard_errors("bootstrap", x, y, n_resamples=5, random_state=0)["coef"].ravel()
    np.testing.assert_array_equal(drawn["standard_error"][:2], expected)


@pytest.mark.parametrize(
    ("parameters", "noise", "said"),
    [({}, 0.0, "one line fits every row exactly"), ({"trim": 0.1}, 1.0, "those that were trimmed")],
)
@pytest.mark.filterwarnings("ignore:one line fits every row exactly:sklearn.exceptions.ConvergenceWarning")
def test_estimates_without_errors_are_a_table_with_what_is_lacking(parameters: Any, noise: float, said: str) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(60, 1))
    model = mj.RegressionMixture(1, random_state=0, **parameters).fit(
        x, 1 + 2 * x[:, 0] + noise * random.normal(size=60)
    )
    with pytest.warns(RuntimeWarning, match=f"no standard errors can be given: .*{said}"):
        table = model.estimates()
    assert table["estimate"][0] == model.coef_[0, 0] and table["parameter"].nunique() == 4
    assert table[["standard_error", "low", "high"]].isna().all(axis=None)


def test_estimates_say_which_arguments_they_do_not_take() -> None:
    random = np.random.default_rng(0)
    x, y = random.normal(size=(60, 1)), random.normal(size=60)
    model = mj.RegressionMixture(1, random_state=0).fit(x, y)
    for wrong, said in [({"foo": 3}, "leave foo out"), ({"n_resamples": 5, "foo": 3}, "leave n_resamples, foo out")]:
        with pytest.raises(ValueError, match=f'method="observed" uses the fit alone: {said}'):
            model.estimates(**wrong)
    with pytest.raises(ValueError, match='method="observed" uses the fit alone and takes no rows'):
        model.estimates(x, y)
    for rows in ((), (x,)):
        with pytest.raises(ValueError, match="needs the rows of the fit: give X and y"):
            model.estimates(*rows, method="bootstrap")


def test_columns_that_any_line_goes_through_are_named() -> None:
    """Exchanged at one of two values, the means of two components of equal weight are as likely."""
    draws = np.random.default_rng(1)
    x, is_first = (draws.random(400) < 0.5).astype(float), draws.random(400) < 0.5
    y = np.where(is_first, 3 * x, 10 - 3 * x) + 0.5 * draws.normal(size=400)
    with pytest.warns(ConvergenceWarning, match="x1: 2 different rows, which any line goes through"):
        model = mj.RegressionMixture(2, random_state=0).fit(x[:, None], y)
    at = model.predict_components(np.array([[0.0], [1.0]]))
    other = np.array([at[0], at[1][::-1]])

    def log_likelihood(means: NDArray[np.float64]) -> float:
        away = (y[:, None] - means[x.astype(int)]) / 0.5
        return float(np.log(np.exp(-0.5 * away**2).sum(axis=1)).sum())

    assert log_likelihood(at) == pytest.approx(log_likelihood(other), rel=1e-12)
    table = pd.DataFrame({"y": y, "level": np.where(x == 1, "a", "b")})
    table.loc[draws.random(400) < 0.3, "level"] = "c"
    with pytest.warns(ConvergenceWarning, match="level: .*3 different rows"):
        mj.RegressionMixture.from_formula("y ~ level", table, n_components=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        third = np.where(np.arange(400) < 40, 2.0, x)[:, None]  # three values, two of which tell of the third
        mj.RegressionMixture(2, random_state=0).fit(third, np.where(is_first, 3, -3) * third[:, 0] + y - 3 * x)
        mj.RegressionMixture(2, random_state=0).fit(np.column_stack([x, draws.normal(size=400)]), y)
        people = np.cumsum(np.append(1, is_first[1:] != is_first[:-1]))
        mj.RegressionMixture(2, random_state=0).fit(x[:, None], y, groups=people)
        mj.RegressionMixture(2, random_state=0).fit(x[:, None], y, component_labels=np.where(x == 1, -1, is_first))
        mj.RegressionMixture(1).fit(x[:, None], y)
