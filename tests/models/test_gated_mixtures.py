"""Weights that depend on covariates: their errors, and what is said where covariates separate the components."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

import majorant as mj
from majorant import registry
from majorant.densities import Poisson
from majorant.models.mixture import MixtureEstimator

Array = NDArray[Any]
RATES = np.array([[1.0, 60.0], [60.0, 1.0]])
"""So far apart that every row tells its component."""


class Gauged(MixtureEstimator):
    def _density(self) -> Any:
        return Poisson(self.n_features_in_)


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    card = registry.mixture_card(name="gauged", title="mixture of gauges", question="Which groups of rows count alike?")
    registry.register(card)(Gauged)
    yield
    for known in (registry.CARDS, registry.ESTIMATORS):
        known.pop("gauged")


def counts(state: Array, seed: int = 0) -> Array:
    return np.random.default_rng(seed).poisson(RATES[state]).astype(float)


@pytest.mark.parametrize("level", [-0.7, 0.7])
def test_errors_of_the_gate_are_those_of_a_logistic_regression_where_rows_tell_their_state(level: float) -> None:
    """Whichever component is the larger one, and so the first."""
    random = np.random.default_rng(1)
    gate = random.normal(size=(500, 1))
    state = (random.random(500) < 1 / (1 + np.exp(-(level + 2 * gate[:, 0])))).astype(int)
    x = counts(state)
    model = Gauged(2, random_state=0).fit(x, gating=gate)
    assert (model.gating_coef_[0] == 0).all()
    g = np.column_stack([np.ones(500), (gate - gate.mean()) / gate.std()])
    p = 1 / (1 + np.exp(-(g @ model.gating_coef_[1])))
    second = model.predict(x, gating=gate)
    np.testing.assert_allclose(g.T @ (second - p), 0, atol=1e-2)  # the score of the logistic regression
    expected = np.sqrt(np.diag(np.linalg.inv((g * (p * (1 - p))[:, None]).T @ g)))
    np.testing.assert_allclose(model.standard_errors(x, gating=gate)["gating_coef"][1], expected, rtol=1e-4)


@pytest.mark.parametrize("kind", [Gauged, mj.GaussianMixture])
def test_weights_of_gated_rows_count_them_in_any_order(kind: Any) -> None:
    """Covariates are standardised by the rows that count; a row of weight zero may hold anything."""
    random = np.random.default_rng(4)
    gate = random.normal(size=(120, 2)).round(3)
    x = counts((random.random(120) < 1 / (1 + np.exp(-2 * gate[:, 0]))).astype(int))
    w = random.integers(0, 4, 120).astype(float)
    far = np.where(w[:, None] == 0, 1e6, gate)
    own, order = np.repeat(np.arange(120), w.astype(int)), random.permutation(120)
    fits = [
        kind(2, random_state=0).fit(x[own], gating=gate[own]),
        kind(2, random_state=0).fit(x, gating=far, sample_weight=w),
        kind(2, random_state=0).fit(x[order], gating=far[order], sample_weight=w[order]),
    ]
    for other in fits[1:]:
        for name in ("gating_coef_", "gating_center_", "gating_scale_", "weights_", "log_likelihood_"):
            np.testing.assert_array_equal(getattr(other, name), getattr(fits[0], name))


def test_a_constant_covariate_is_not_scaled_by_its_rounding() -> None:
    x = counts(np.arange(60) % 2)
    with pytest.warns(ConvergenceWarning, match="z1 does not vary"):
        model = Gauged(2, random_state=0).fit(x, gating=np.full((60, 1), 0.1), sample_weight=np.full(60, 0.3))
    assert model.gating_scale_[0] == 1.0


def test_groups_that_contradict_themselves_are_refused() -> None:
    """A group has one component: its rows cannot have several labels, or covariates."""
    random = np.random.default_rng(5)
    x, groups = counts(np.arange(60) // 3 % 2), np.repeat([f"patient {i:02d}" for i in range(20)], 3)
    gate = np.repeat(random.normal(size=20), 3)
    labels = np.full(60, -1)
    labels[[3, 4]] = 0, 1
    with pytest.raises(ValueError, match="component_labels of group patient 01 differ"):
        Gauged(2).fit(x, groups=groups, component_labels=labels)
    model = Gauged(2, random_state=0).fit(x, groups=groups, gating=gate)
    varying = gate + (np.arange(60) == 7)
    said = "gating must be the same for all rows of a group, .* rows 6 and 7 of group patient 02 differ"
    for call in (
        lambda: Gauged(2).fit(x, groups=groups, gating=varying),
        lambda: model.predict(x, groups=groups, gating=varying),
        lambda: model.log_likelihood(x, groups=groups, gating=varying),
        lambda: model.sample(groups=groups, gating=varying),
    ):
        with pytest.raises(ValueError, match=said):
            call()


def test_one_known_row_tells_the_component_of_its_group() -> None:
    x, groups = counts(np.arange(60) // 3 % 2), np.repeat(np.arange(20), 3)
    labels = np.full(60, -1)
    labels[[0, 5]] = 0, 1
    every = labels.reshape(20, 3).max(axis=1).repeat(3)
    fits = [Gauged(2, random_state=0).fit(x, groups=groups, component_labels=known) for known in (labels, every)]
    np.testing.assert_array_equal(fits[0].rates_, fits[1].rates_)
    assert fits[0].log_likelihood_ == fits[1].log_likelihood_


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_covariate_that_is_no_number_is_named(value: float) -> None:
    x, gate = counts(np.arange(60) % 2), np.zeros((60, 2))
    gate[7, 1] = value
    with pytest.raises(ValueError, match=f"finite numbers, or text; row 7 has {value} in column z2"):
        Gauged(2).fit(x, gating=gate)
    with pytest.raises(ValueError, match=f"finite numbers, or text; row 7 has {value} in column age"):
        Gauged(2).fit(x, gating=pd.DataFrame(gate, columns=["sex", "age"]))
    with pytest.raises(ValueError, match=r"a row for each of the 60 rows of X; got shape \(59, 2\)"):
        Gauged(2).fit(x, gating=gate[1:])


@pytest.mark.parametrize("kind", [Gauged, mj.GaussianMixture])
def test_a_fit_without_covariates_forgets_those_of_the_one_before(kind: Any) -> None:
    random = np.random.default_rng(6)
    gate = random.normal(size=120)
    x = counts((random.random(120) < 1 / (1 + np.exp(-2 * gate))).astype(int))
    model = kind(2, random_state=0).fit(x, gating=gate)
    assert hasattr(model, "gating_coef_")
    model.fit(x)
    assert not [name for name in vars(model) if name.startswith("gating")]
    np.testing.assert_array_equal(model.predict_proba(x), kind(2, random_state=0).fit(x).predict_proba(x))


@pytest.mark.parametrize("kind", [Gauged, mj.GaussianMixture])
@pytest.mark.parametrize("before", ["none", "one", "two"])
def test_a_warm_start_begins_at_the_weights_of_every_row(kind: Any, before: str) -> None:
    """Also where the covariates are centred elsewhere, or where there are other covariates than before."""
    random = np.random.default_rng(7)
    gate = random.normal(size=(200, 2))
    x = counts((random.random(200) < 1 / (1 + np.exp(-2 * gate[:, 0]))).astype(int))
    given = {"none": None, "one": gate[:, :1], "two": gate}[before]
    model = kind(2, warm_start=True, random_state=0).fit(x, gating=given)
    proba = model.predict_proba(x[:80], gating=None if given is None else given[:80])
    other = None if before == "two" else gate[:80]
    for gating in (None if given is None else given[:80], other, gate[:80, :1]):
        cold = kind(2, random_state=0).fit(x[:80], gating=gating)
        assert model.fit(x[:80], gating=gating).log_likelihood_ == pytest.approx(cold.log_likelihood_, abs=1e-4)
    if kind is mj.GaussianMixture:  # which may take no step at all
        still = kind(2, warm_start=True, random_state=0).fit(x, gating=given).set_params(max_iter=0)
        told = {} if given is None else {"gating": given[:80]}
        value = still.log_likelihood(x[:80], **told)
        assert still.fit(x[:80], **told).log_likelihood_ == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(still.predict_proba(x[:80], **told), proba, rtol=1e-9, atol=1e-300)


def test_a_summary_tells_the_unit_of_the_coefficients() -> None:
    random = np.random.default_rng(8)
    gate = random.normal(50, 10, size=(150, 1))
    x = counts((random.random(150) < 1 / (1 + np.exp((50 - gate[:, 0]) / 10))).astype(int))
    model = Gauged(2, random_state=0).fit(x, gating=gate)
    page = str(model.summary())
    assert "log odds by covariate" in page and "one standard deviation more" in page
    slope = model.gating_coef_[:, 1] / model.gating_scale_[0]
    level = model.gating_coef_[:, 0] - slope * model.gating_center_[0]
    odds = np.exp(level + gate * slope)
    densities = np.exp(stats.poisson.logpmf(x[:, None], model.rates_).sum(axis=2))
    expected = odds * densities / (odds * densities).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(x, gating=gate), expected, rtol=1e-8, atol=1e-300)


def separating(kind: str) -> tuple[Array, Array]:
    """A gate, and states that it separates."""
    random = np.random.default_rng(2)
    state = (random.random(400) < 0.4).astype(int)
    if kind == "sign":
        gate = random.normal(size=(400, 1))
        return gate, (gate[:, 0] > 0).astype(int)
    level = random.integers(0, 3, 400)
    if kind == "rare level":
        level = np.where(np.arange(400) < 5, 1, 2 * (level > 0))
    return np.eye(3)[level][:, 1:], np.where(level == 1, 1, state)


@pytest.mark.parametrize("kind", ["sign", "level", "rare level"])
@pytest.mark.parametrize("grouped", [False, True])
def test_covariates_that_separate_are_named_and_have_no_errors(kind: str, grouped: bool) -> None:
    gate, state = separating(kind)
    x = counts(state)
    given = {"gating": gate, **({"groups": np.arange(400)} if grouped else {})}
    with pytest.warns(ConvergenceWarning, match="Gating by z1 separates components"):
        model = Gauged(2, random_state=0).fit(x, **given)
    assert model.regular_ and "z1 separates" in model.separated_ and "Gating by z1" in str(model.summary())
    errors, intervals = model.standard_errors(x, **given), model.confidence_intervals(x, **given)
    assert np.isnan(errors["gating_coef"][1, 1])
    assert all(np.isnan(end[1, 1]) for end in intervals["gating_coef"])
    assert np.isfinite(errors["rates"]).all()
    if kind == "level":  # the other level does not separate: it has the error that its rows give
        own = gate[:, 1] == 1
        p = np.array([(state == 1)[own].mean(), (state == 1)[gate.sum(axis=1) == 0].mean()])
        sizes = np.array([own.sum(), (gate.sum(axis=1) == 0).sum()])
        expected = gate[:, 1].std() * np.sqrt(np.sum(1 / (sizes * p * (1 - p))))
        assert errors["gating_coef"][1, 2] == pytest.approx(expected, rel=1e-3)
    # The log-likelihood is that of states that are known wherever the gate tells them.
    heaviest = np.argsort(-np.bincount(state), kind="stable")
    np.testing.assert_array_equal(model.predict(x, **given), np.argsort(heaviest)[state])
    means = np.array([x[state == k].mean(axis=0) for k in range(2)])
    cells = np.unique(gate if kind != "sign" else gate > 0, axis=0, return_inverse=True)[1].ravel()
    prior = np.array([[(state[cells == c] == k).mean() for k in range(2)] for c in range(cells.max() + 1)])
    known = np.log(prior[cells, state]) + stats.poisson.logpmf(x, means[state]).sum(axis=1)
    assert model.log_likelihood_ == pytest.approx(known.sum(), abs=1e-3)
    assert model.log_likelihood(x, **given) == pytest.approx(model.log_likelihood_, rel=1e-12)
    doubled = model.log_likelihood(x, np.full(400, 2.0), **given)
    assert doubled == pytest.approx(2 * model.log_likelihood_, rel=1e-12)


@pytest.mark.parametrize("kind", ["all levels", "steep", "constant"])
def test_covariates_that_do_not_separate_are_not_said_to(kind: str) -> None:
    random = np.random.default_rng(3)
    level = random.integers(0, 3, 4000)
    chance = np.array([0.3, 0.5, 0.7])[level]
    gate = {"all levels": np.eye(3)[level], "constant": np.ones((4000, 1))}.get(kind, random.normal(size=(4000, 1)))
    if kind == "steep":  # nearly all rows are certain, but not all
        chance = 1 / (1 + np.exp(-200 * gate[:, 0]))
    state = (random.random(4000) < chance).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        warnings.filterwarnings("ignore", "Gating covariates have no effect of their own")
        model = Gauged(2, random_state=0).fit(counts(state), gating=gate)
    assert model.separated_ == ""


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_a_gate_that_separates_regressions_is_named_and_has_no_errors(family: str) -> None:
    random = np.random.default_rng(0)
    x, z, level = random.normal(size=400), random.normal(size=400), random.integers(0, 2, 400)
    eta = np.where(z > 0, 5.0, 1.0) + 0.2 * x
    y = eta + 0.3 * random.normal(size=400) if family == "gaussian" else random.poisson(np.exp(eta)).astype(float)
    gating = pd.DataFrame({"level": level.astype(float), "z": z})
    with pytest.warns(ConvergenceWarning, match="Gating by z separates components"):
        model = mj.RegressionMixture(2, family=family, random_state=0).fit(x[:, None], y, gating=gating)
    assert model.regular_ and "Gating by z" in " ".join(str(model.summary()).split())
    errors, intervals = model.standard_errors(), model.confidence_intervals()
    assert np.isnan(errors["gating_coef"][1, 1]) and np.isnan(intervals["gating_coef"][1][1, 1])
    assert np.isfinite(errors["coef"]).all() and np.isfinite(errors["scale"]).all()
    # Predictions and errors of each line are those of one line on its own side.
    for side in (z > 0, z <= 0):
        alone = mj.RegressionMixture(1, family=family).fit(x[side, None], y[side])
        mine = int(np.abs(model.intercept_ - alone.intercept_[0]).argmin())
        np.testing.assert_allclose(model.coef_[mine], alone.coef_[0], rtol=1e-4)
        np.testing.assert_allclose(errors["coef"][mine], alone.standard_errors()["coef"][0], rtol=1e-3)
        found = model.predict(x[side, None], gating=gating[side])
        np.testing.assert_allclose(found, alone.predict(x[side, None]), rtol=1e-3)
    assert model.log_likelihood(x[:, None], y, gating=gating) == pytest.approx(model.log_likelihood_, rel=1e-10)


def test_a_separated_response_has_errors_where_its_rows_determine_them() -> None:
    """Of two factor levels one has ones only: its own coefficient has no error, the others have theirs."""
    random = np.random.default_rng(1)
    level = np.repeat([0, 1, 2], 60)
    y = np.where(level == 1, 1.0, random.random(180) < np.array([0.3, 0.5, 0.6])[level])
    X = np.eye(3)[level][:, 1:]
    with pytest.warns(ConvergenceWarning, match="runs to infinity"):
        model = mj.RegressionMixture(1, family="binomial").fit(X, y)
    errors = model.standard_errors()
    p, p2 = y[level == 0].mean(), y[level == 2].mean()
    assert np.isnan(errors["coef"][0, 0])
    assert errors["intercept"][0] == pytest.approx(1 / np.sqrt(60 * p * (1 - p)), rel=1e-3)
    expected = np.sqrt(1 / (60 * p * (1 - p)) + 1 / (60 * p2 * (1 - p2)))
    assert errors["coef"][0, 1] == pytest.approx(expected, rel=1e-3)
    np.testing.assert_allclose(model.predict(X[level == 1]), 1, atol=1e-4)


def test_fewer_groups_than_components_are_refused() -> None:
    random = np.random.default_rng(0)
    x = np.round(random.uniform(size=(12, 2)))
    for model in (mj.GaussianMixture(2), mj.LatentClassAnalysis(2)):
        with pytest.raises(ValueError, match=r"n_components=2 are more than the 1 of groups"):
            model.fit(x, groups=np.zeros(12, dtype=int))


BESIDE = pd.DataFrame({"a": np.random.default_rng(5).normal(size=300), "d": np.random.default_rng(6).normal(size=300)})
REDUNDANT = {
    "constant": (BESIDE.assign(b=3.0), "b does not vary", ["b"]),
    "multiple": (BESIDE.assign(b=1e5 - 2 * BESIDE.a), "b is a linear function of those before it", ["a", "b"]),
    "copy": (BESIDE.assign(b=BESIDE.a, c=7.0), "b is a linear .* before it; c does not vary", ["a", "b", "c"]),
}


def gated_fits(gating: Any) -> dict[str, tuple[Any, dict[str, Any]]]:
    """A fit of each kind of model with covariates of the weights, and its standard errors."""
    random = np.random.default_rng(0)
    z = random.random(300) < 1 / (1 + np.exp(-BESIDE.a.to_numpy()))
    x, noise = random.normal(size=(300, 1)), 0.1 * random.normal(size=300)
    numbers, bits = x + 4 * z[:, None], (random.random((300, 4)) < np.where(z, 0.9, 0.1)[:, None]).astype(int)
    lines = mj.RegressionMixture(2, random_state=0).fit(
        x, np.where(z, 2 * x[:, 0] + 3, -x[:, 0]) + noise, gating=gating
    )
    gaussian = mj.GaussianMixture(2, random_state=0).fit(numbers, gating=gating)
    classes = mj.LatentClassAnalysis(2, random_state=0).fit(bits, gating=gating)
    return {
        "lines": (lines, lines.standard_errors()),
        "gaussian": (gaussian, gaussian.standard_errors(numbers, gating=gating)),
        "classes": (classes, classes.standard_errors(bits, gating=gating)),
    }


@pytest.mark.parametrize("kind", REDUNDANT)
def test_gating_covariates_without_an_effect_of_their_own_are_named_and_have_no_error(kind: str) -> None:
    gating, said, lost = REDUNDANT[kind]
    with pytest.warns(ConvergenceWarning) as caught:
        found = gated_fits(gating)
    assert sum(bool(re.search(f"no effect of their own: .*{said}", str(w.message))) for w in caught) == 3
    plain = gated_fits(BESIDE)
    for name, (model, errors) in found.items():
        assert model.log_likelihood_ == pytest.approx(plain[name][0].log_likelihood_, rel=1e-6)
        slopes = errors["gating_coef"][1, -gating.shape[1] :]
        own = plain[name][1]["gating_coef"][1, -2:]
        of = dict(zip(gating.columns, slopes, strict=True))
        assert all(np.isnan(of[column]) for column in (lost[1:] if name == "lines" and len(lost) > 1 else lost))
        assert of["d"] == pytest.approx(own[1], rel=1e-3)


@pytest.mark.parametrize("unit", [1e-200, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("model", ["GaussianMixture", "LatentClassAnalysis", "RegressionMixture", "HiddenMarkovModel"])
def test_covariates_count_in_any_unit(model: str, unit: float) -> None:
    """Squares of such numbers are none: their standard deviation was infinite, and the covariate had no effect."""
    draws = np.random.default_rng(0)
    side, group = draws.normal(size=(120, 1)), draws.random(120) < 0.5
    rows = {"LatentClassAnalysis": (draws.random((120, 4)) < np.where(group, 0.2, 0.8)[:, None]).astype(int)}
    x = rows.get(model, draws.normal(size=(120, 2)) + 5 * group[:, None])
    given = (x[:, :1], np.where(group, 1, -1) * x[:, 0] + x[:, 1]) if model == "RegressionMixture" else (x,)
    plain, scaled = (
        getattr(mj, model)(2, n_init=2, random_state=0).fit(*given, gating=side * size).log_likelihood_
        for size in (1.0, unit)
    )
    assert scaled == pytest.approx(plain, rel=1e-9)
