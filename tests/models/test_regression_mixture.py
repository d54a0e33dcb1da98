"""Mixtures of regressions: the right optimum from every seed, the engine's contract, and what a user may rely on."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

import majorant as mj
from majorant.densities import Predictors, VarianceRule
from majorant.engine.mixture import Mixture, OnData, Parameters, SingleRun
from majorant.laws.independent import Weights
from majorant.models.regression_mixture.build import units_of
from majorant.models.regression_mixture.extras import Extras
from majorant.models.regression_mixture.units import Units
from majorant.results.information import observed_information
from majorant.solvers.responses import Gaussian

Array = NDArray[Any]

POLICIES: list[Any] = [
    mj.Tightest(),
    mj.GibbsLimit(eta=0.2),
    mj.RandomWalk(eta=0.3, n_sweeps=2),
    mj.GrowingSubset(eta=0.2),
    mj.Tempered(eta=0.1),
]


def lines(n: int = 200, seed: int = 0, noise: float = 0.3) -> tuple[Array, Array, Array]:
    """Rows of two crossing planes, and which one each follows."""
    g = np.random.default_rng(seed)
    x = g.normal(size=(n, 2))
    which = (g.random(n) < 0.4).astype(int)
    y = np.where(which, 1 + x @ [2.0, -1.0], -1 + x @ [-1.0, 0.5]) + noise * g.normal(size=n)
    return x, y, which


def tone(shared_data: Path) -> tuple[Array, Array]:
    table = np.genfromtxt(shared_data / "mixreg/mixtools_tonedata.csv", delimiter=",", names=True)
    return table["stretchratio"][:, None], table["tuned"]


def np_reg(shared_data: Path) -> tuple[Array, Array]:
    table = np.genfromtxt(shared_data / "mixreg/flexmix_NPreg.csv", delimiter=",", names=True)
    return np.column_stack([table["x"], table["x"] ** 2]), table["yn"]


# Best of many starts of flexmix and of the literature, under the default rule of regularity.
REFERENCES = [("tone", 2, {}, 141.1984), ("tone", 3, {}, 154.7035), ("tone", 3, {"max_sigma_ratio": 60}, 238.796)]
REFERENCES += [("NPreg", 2, {}, -642.532), ("NPreg", 3, {}, -636.2637)]


@pytest.mark.parametrize("first_seed", [0, 10])
@pytest.mark.parametrize(("name", "k", "parameters", "best"), REFERENCES)
def test_every_seed_reaches_the_best_optimum(
    shared_data: Path, name: str, k: int, parameters: dict[str, Any], best: float, first_seed: int
) -> None:
    x, y = tone(shared_data) if name == "tone" else np_reg(shared_data)
    for seed in range(first_seed, first_seed + 10):
        model = mj.RegressionMixture(k, random_state=seed, **parameters).fit(x, y)
        assert model.log_likelihood_ == pytest.approx(best, abs=6e-4)
        assert model.regular_
        assert model.converged_
        assert model.search_.best == pytest.approx(model.log_likelihood_, abs=1e-4)


def test_the_better_solution_that_is_left_out_is_named(shared_data: Path) -> None:
    x, y = tone(shared_data)
    for seed in range(10):
        model = mj.RegressionMixture(2, random_state=seed).fit(x, y)
        assert model.excluded_["log_likelihood"] == pytest.approx(145.417, abs=1e-3)
        assert model.excluded_["sigma_ratio"] == pytest.approx(48, abs=0.1)
        assert "max_sigma_ratio=51 would admit it" in model.search_.note
    admitted = mj.RegressionMixture(2, max_sigma_ratio=51, random_state=0).fit(x, y)
    assert admitted.log_likelihood_ == pytest.approx(145.417, abs=1e-3)
    assert admitted.excluded_ is None


def test_a_narrow_line_is_named_by_every_seed() -> None:
    """Noise of one line 40 times that of the other: what the rule leaves out is said, whatever the search ended at."""
    r = np.random.default_rng(5)
    x, noise = r.uniform(1.35, 3, size=(100, 1)), r.normal(size=100)
    y = np.where(r.random(100) < 0.37, x[:, 0] + 0.005 * noise, 1.56 + 0.2 * x[:, 0] + 0.2 * noise)
    admitted = mj.RegressionMixture(2, max_sigma_ratio=80, random_state=0).fit(x, y)
    for seed in range(4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = mj.RegressionMixture(2, random_state=seed).fit(x, y)
        assert model.excluded_["log_likelihood"] == pytest.approx(admitted.log_likelihood_, abs=1e-3)
        assert "max_sigma_ratio=" in model.search_.note


def test_true_lines_are_found(seed: int) -> None:
    x, y, which = lines(seed=seed)
    model = mj.RegressionMixture(2, random_state=seed).fit(x, y)
    np.testing.assert_allclose(model.coef_, [[-1.0, 0.5], [2.0, -1.0]], atol=0.15)
    np.testing.assert_allclose(model.intercept_, [-1.0, 1.0], atol=0.15)
    np.testing.assert_allclose(model.scale_, 0.3, atol=0.08)
    assert (model.classify(x, y) == which).mean() > 0.9
    assert model.weights_.sum() == pytest.approx(1)


def test_one_line_is_least_squares() -> None:
    x, y, _ = lines()
    w = np.random.default_rng(1).uniform(0.5, 3, len(y))
    model = mj.RegressionMixture(1).fit(x, y, sample_weight=w)
    peer = LinearRegression().fit(x, y, sample_weight=w)
    np.testing.assert_allclose(model.coef_[0], peer.coef_, rtol=1e-10)
    assert model.intercept_[0] == pytest.approx(peer.intercept_)
    variance = np.average((y - peer.predict(x)) ** 2, weights=w)
    assert model.scale_[0] == pytest.approx(np.sqrt(variance))
    assert model.log_likelihood_ == pytest.approx(w @ norm.logpdf(y, peer.predict(x), np.sqrt(variance)))
    without = mj.RegressionMixture(1, fit_intercept=False).fit(x, y)
    np.testing.assert_allclose(without.coef_[0], LinearRegression(fit_intercept=False).fit(x, y).coef_, rtol=1e-10)
    assert without.intercept_[0] == 0


@pytest.mark.parametrize("k", [1, 2, 3])
def test_likelihood_and_responsibilities_by_hand(k: int) -> None:
    x, y, _ = lines(60)
    model = mj.RegressionMixture(k, random_state=0).fit(x, y)
    parts = model.weights_ * norm.pdf(y[:, None], x @ model.coef_.T + model.intercept_, model.scale_)
    np.testing.assert_allclose(model.log_density(x, y), np.log(parts.sum(axis=1)), rtol=1e-10)
    np.testing.assert_allclose(model.predict_proba(x, y), parts / parts.sum(axis=1, keepdims=True), atol=1e-12)
    assert model.log_likelihood_ == pytest.approx(np.log(parts.sum(axis=1)).sum())
    np.testing.assert_allclose(model.predict(x), (x @ model.coef_.T + model.intercept_) @ model.weights_)
    n_parameters = k * 3 + k - 1 + k
    assert model.n_parameters_ == n_parameters
    assert model.bic_ == pytest.approx(n_parameters * np.log(60) - 2 * model.log_likelihood_)
    assert model.aic_ == pytest.approx(2 * n_parameters - 2 * model.log_likelihood_)
    assert model.icl_ >= model.bic_ - 1e-9
    for name in ("aic", "bic", "icl"):
        assert getattr(model, name)(x, y) == pytest.approx(getattr(model, f"{name}_"))


@pytest.mark.parametrize(
    ("of_x", "of_y"), [(1e-8, 1e8), (1e8, 1e-8), (1e-150, 1.0), (1.0, 1e200), (1e-300, 1e-300), (1e3, 1e-200)]
)
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_units_do_not_matter(of_x: float, of_y: float, shift: float) -> None:
    x, y, _ = lines(120)
    plain = mj.RegressionMixture(2, random_state=0).fit(x, y)
    model = mj.RegressionMixture(2, random_state=0).fit((x + shift) * of_x, (y - shift) * of_y)
    expected = plain.log_likelihood_ - len(y) * np.log(of_y)
    assert model.log_likelihood_ == pytest.approx(expected, rel=1e-9, abs=1e-4)
    np.testing.assert_allclose(model.scale_ / of_y, plain.scale_, rtol=1e-5)
    np.testing.assert_allclose(model.coef_ * of_x / of_y, plain.coef_, rtol=1e-4)


def curves(n: int, seed: int) -> tuple[Array, Array, Array]:
    """Instance of the paper's Figure 1: three curves in {1, t, t^4, t^7}."""
    coef = np.array([[-1.372, 0.135, 1.687], [0.151, -0.774, -0.436], [-0.958, 0.881, 0.516], [-1.280, -0.249, -1.534]])
    g = np.random.default_rng(seed)
    x = g.uniform(-1, 1, n)[:, None] ** [0, 1, 4, 7]
    return x, np.sum(x * coef.T[g.integers(0, 3, n)], axis=1) + np.sqrt(0.1) * g.normal(size=n), coef.T


@pytest.mark.parametrize("init", ["auto", "spectral"])
def test_moments_lead_to_the_truth_where_random_starts_do_not(init: str) -> None:
    for seed in range(2):
        x, y, coef = curves(50_000, seed)
        model = mj.RegressionMixture(3, variance="common", fit_intercept=False, init=init, random_state=seed).fit(x, y)
        truth = mj.RegressionMixture(3, variance="common", fit_intercept=False, init={"coef": coef}).fit(x, y)
        assert model.log_likelihood_ >= truth.log_likelihood_ - 1e-6 * abs(truth.log_likelihood_)
        assert {s.source for s in model.search_.starts} <= {"spectral experts"} or init == "auto"


def test_moments_are_not_misled_by_a_gate() -> None:
    """Weights of the curves change along t."""
    x, _, coef = curves(8000, 5)
    random, t = np.random.default_rng(0), x[:, 1:2]
    state = (t * [2.0, 0.0, -1.0] + random.gumbel(size=(len(t), 3))).argmax(axis=1)
    y = np.sum(x * coef[state], axis=1) + np.sqrt(0.1) * random.normal(size=len(t))

    def fit(init: Any) -> mj.RegressionMixture:
        model = mj.RegressionMixture(3, variance="common", fit_intercept=False, init=init, n_init=1, random_state=0)
        return model.fit(x, y, gating=t)

    truth, moments = fit({"coef": coef}), fit("moments")
    assert moments.log_likelihood_ >= truth.log_likelihood_ - 1e-6 * abs(truth.log_likelihood_)
    assert [s.source for s in moments.search_.starts] == ["vanishing polynomial"]
    assert fit("random").log_likelihood_ < truth.log_likelihood_ - 100


def test_moment_starts_with_gating_take_any_rows() -> None:
    x, y, _ = lines()

    def fit(x: Array, y: Array) -> mj.RegressionMixture:
        return mj.RegressionMixture(2, init="moments", random_state=0).fit(x, y, gating=np.arange(len(y)) / len(y))

    plain = fit(x, y)
    np.testing.assert_allclose(fit(x * 1e150, y * 1e-150).log_likelihood_ - 200 * np.log(1e150), plain.log_likelihood_)
    assert fit(x[::-1], y[::-1]).log_likelihood_ == pytest.approx(plain.log_likelihood_, rel=1e-9)
    too_wide, noise = np.split(np.random.default_rng(0).normal(size=(60, 31)), [30], axis=1)
    with pytest.raises(ValueError, match=r"at most 500 products .*; n_components=2 and 31 coef"):
        fit(too_wide, noise[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # no regular solution on six rows
        assert np.isfinite(fit(x[:6], y[:6]).coef_).all()
        assert np.isfinite(fit(x, np.where(y > 0, x[:, 0], -x[:, 0])).coef_).all()  # no noise
    assert np.isfinite(fit(np.vstack([x, [1e200, 0.0]]), np.append(y, 3.0)).coef_).all()


@pytest.mark.parametrize("init", ["moments", "spectral"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_moment_starts_take_any_rows(init: str, fit_intercept: bool) -> None:
    x, y, _ = lines()

    def fit(x: Array, y: Array) -> mj.RegressionMixture:
        return mj.RegressionMixture(2, init=init, fit_intercept=fit_intercept, random_state=0).fit(x, y)

    plain = fit(x, y)
    assert len(plain.search_.starts) == 1
    np.testing.assert_allclose(fit(x * 1e150, y * 1e-150).log_likelihood_ - 200 * np.log(1e150), plain.log_likelihood_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # no regular solution on six rows
        assert np.isfinite(fit(x[:6], y[:6]).coef_).all()
    assert np.isfinite(fit(np.vstack([x, [1e200, 0.0]]), np.append(y, 3.0)).coef_).all()
    with pytest.warns(LinAlgWarning):
        doubled = fit(np.column_stack([x[:, 0], x[:, 0], x[:, 1]]), y)
    assert doubled.log_likelihood_ == pytest.approx(plain.log_likelihood_, abs=1e-4)


def test_spectral_starts_have_a_limit() -> None:
    x, y, _ = lines()
    with pytest.raises(ValueError, match=r"n_components=4 and 3 coefficients, the intercept among them: ask for fewer"):
        mj.RegressionMixture(4, init="spectral").fit(x, y)


def test_a_given_start_may_have_any_layout() -> None:
    x, y, _ = lines()
    coef = np.array([[-1.0, 0.5], [2.0, -1.0]])
    given = {"intercept": np.array([-1.0, 9.0, 1.0])[::2], "scale": [0.3, 0.3], "weights": np.full(4, 0.5)[::2]}
    ends = [mj.RegressionMixture(2, init={**given, "coef": c}).fit(x, y) for c in (coef, np.asfortranarray(coef))]
    np.testing.assert_array_equal(ends[0].coef_, ends[1].coef_)
    np.testing.assert_allclose(ends[0].coef_, coef, atol=0.15)


def test_only_the_weighted_measure_matters(seed: int) -> None:
    x, y, _ = lines(80, seed)
    g = np.random.default_rng(seed)
    times = g.integers(0, 4, 80)
    weighted = mj.RegressionMixture(2, random_state=1).fit(x, y, sample_weight=times)
    order = g.permutation(times.sum())
    repeated = mj.RegressionMixture(2, random_state=1).fit(np.repeat(x, times, 0)[order], np.repeat(y, times)[order])
    for name in ("coef_", "intercept_", "scale_", "weights_"):
        assert np.array_equal(getattr(weighted, name), getattr(repeated, name)), name
    threads = mj.RegressionMixture(2, random_state=1, n_jobs=2).fit(x, y, sample_weight=times)
    assert np.array_equal(threads.coef_, weighted.coef_)


def test_many_rows_race_on_a_sample_and_threads_do_not_matter() -> None:
    x, y, _ = lines(40_000)
    one, two = (mj.RegressionMixture(2, random_state=0, n_jobs=n).fit(x, y) for n in (1, 2))
    assert np.array_equal(one.coef_, two.coef_)
    assert "rows first" in one.search_.note
    np.testing.assert_allclose(one.coef_, [[-1.0, 0.5], [2.0, -1.0]], atol=0.02)


def units_in_memory(x: Array, y: Array) -> Units:
    return units_of(x, y, None, Extras(), Gaussian(), fit_intercept=True, shared=())


def mixture_of(units: Units, k: int, beta: float = 1.0, rule: VarianceRule | None = None) -> Mixture:
    return units.mixture(Gaussian(), rule or VarianceRule(15.0, 1e-16), k, beta=beta)


def random_start(units: Units, k: int, seed: int) -> Any:
    g = np.random.default_rng(seed)
    weights, coef, variances = g.dirichlet(np.ones(k)), g.normal(size=(k, units.n_coefficients)), g.uniform(0.2, 1, k)
    return Parameters(Predictors(coef[None], variances[None]), Weights(weights[None]))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("beta", [1.0, np.inf])
def test_every_policy_keeps_its_contract(policy: Any, beta: float) -> None:
    x, y, _ = lines(90)
    design = units_in_memory(x, y)
    family = SingleRun(mixture_of(design, 3, beta))
    for seed in range(8):
        end = mj.minimize(family, design.data, policy, theta=random_start(design, 3, seed), seed=seed, max_iter=60)
        exploring = end.trace["exploring"] == 1
        bound, objective = end.trace["bound"], end.trace["objective"]
        slack = 1e-9 * (1 + np.abs(objective).max())
        assert (np.diff(bound[exploring]) <= slack).all()
        assert (bound >= objective - slack).all()
        assert (np.diff(objective[~exploring]) <= slack).all()


@pytest.mark.parametrize("beta", [1.0, 0.5, np.inf])
def test_the_fused_pass_is_the_general_one(beta: float) -> None:
    x, y, _ = lines(77)
    design = units_in_memory(x, y)
    family = SingleRun(mixture_of(design, 2, beta))
    theta = random_start(design, 2, 0)
    from majorant.engine.latents import entropies, tightest

    block = next(design.data.source.blocks())
    free, bound = family.tight_pass(theta, block)
    values, q = tightest(family.energies(theta, block), beta)
    assert free == pytest.approx(values.sum(), rel=1e-12)
    np.testing.assert_allclose(bound.statistics, family.statistics(block, q, theta), rtol=1e-10, atol=1e-10)
    entropy = 0.0 if np.isinf(beta) else entropies(q).sum() / beta
    assert bound.entropy == pytest.approx(entropy, abs=1e-9)


@pytest.mark.parametrize("common", [False, True], ids=["own", "common"])
def test_information_is_minus_the_hessian(common: bool) -> None:
    x, y, _ = lines(90)
    design = units_in_memory(x, y)
    k, p = 3, design.n_coefficients
    theta = random_start(design, k, 1)
    if common:
        theta = Parameters(Predictors(theta.density.coef, np.full((1, k), 0.4)), theta.law)
    mixture = mixture_of(design, k, rule=VarianceRule(np.inf, 1e-16, common))

    n_scales = 1 if common else k

    def unpack(v: Array) -> Any:
        weights = np.exp(np.r_[0.0, v[-(k - 1) :]])
        coef, logs = v[: k * p].reshape(k, p), np.broadcast_to(v[k * p : k * p + n_scales], k)
        density = Predictors(np.ascontiguousarray(coef)[None], np.exp(logs)[None])
        return Parameters(density, Weights((weights / weights.sum())[None]))

    weights = theta.law.weights[0]
    logs = np.log(theta.density.dispersion[0, :n_scales])
    v = np.r_[theta.density.coef.ravel(), logs, np.log(weights[1:] / weights[0])]

    def free(v: Array) -> float:
        return float(OnData(mixture, design.data).seen(unpack(v)).objective[0])

    step = 1e-4 * np.eye(len(v))
    hessian = [
        [(free(v + a + b) - free(v + a - b) - free(v - a + b) + free(v - a - b)) / 4e-8 for b in step] for a in step
    ]
    found = observed_information(OnData(mixture, design.data), theta)
    np.testing.assert_allclose(found, hessian, atol=2e-6 * np.abs(found).max())


def test_standard_errors_are_those_of_least_squares_for_one_line() -> None:
    x, y, _ = lines(100)
    model = mj.RegressionMixture(1).fit(x, y)
    raw = np.column_stack([np.ones(100), x])
    covariance = np.linalg.inv(raw.T @ raw) * model.scale_[0] ** 2
    errors = model.standard_errors()
    np.testing.assert_allclose(np.r_[errors["intercept"], errors["coef"][0]], np.sqrt(np.diag(covariance)), rtol=1e-8)
    assert errors["scale"][0] == pytest.approx(model.scale_[0] / np.sqrt(200))


def test_a_given_start_keeps_its_order_and_goes_to_its_optimum() -> None:
    x, y, _ = lines()
    start = {"coef": [[2.0, -1.0], [-1.0, 0.5]], "intercept": [1.0, -1.0]}
    model = mj.RegressionMixture(2, init=start).fit(x, y)
    np.testing.assert_allclose(model.coef_, start["coef"], atol=0.15)
    assert model.search_.n_starts == 1
    with pytest.raises(ValueError, match=r"init\['coef'\] must have shape \(2, 2\); got \(1, 2\)"):
        mj.RegressionMixture(2, init={"coef": [[1.0, 2.0]]}).fit(x, y)
    with pytest.raises(ValueError, match="init must have coef"):
        mj.RegressionMixture(2, init={"slope": [1.0]}).fit(x, y)


def test_collinear_columns_are_named_and_share_the_slope() -> None:
    x, y, _ = lines()
    with pytest.warns(LinAlgWarning, match=r"x3: a combination of the columns before and the intercept"):
        model = mj.RegressionMixture(2, random_state=0).fit(np.column_stack([x, x[:, 0]]), y)
    alone = mj.RegressionMixture(2, random_state=0).fit(x, y)
    assert model.log_likelihood_ == pytest.approx(alone.log_likelihood_)
    np.testing.assert_allclose(model.coef_[:, [0, 2]], np.repeat(alone.coef_[:, :1] / 2, 2, axis=1), rtol=1e-6)


EXACT = {
    "a line": (lambda x: 3 + x @ [1.0, 2.0], lambda y: y.std()),
    "a line far off": (lambda x: 3e3 + x @ [1.0, 2.0], lambda y: y.std()),
    "a small line": (lambda x: 1e-20 * (3 + x @ [1.0, 2.0]), lambda y: y.std()),
    "a constant": (lambda x: np.full(len(x), -4.0), lambda y: 4.0),
    "zeros": (lambda x: np.zeros(len(x)), lambda y: 1.0),
}


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("case", EXACT)
def test_rows_on_one_line_have_no_maximum_and_say_so(case: str, k: int, general: bool) -> None:
    """One right value everywhere: noise is a floor in the units of y, and the log-likelihood is that of this noise."""
    x, _, _ = lines(50)
    y, size = EXACT[case][0](x), EXACT[case][1]
    more = {"offset": 0.0} if general else {}
    with pytest.warns(ConvergenceWarning, match="one line fits every row exactly") as said:
        model = mj.RegressionMixture(k, random_state=0).fit(x, y, **more)
    np.testing.assert_allclose(model.predict(x), y, atol=1e-8 * size(y))
    np.testing.assert_allclose(model.scale_, 1e-10 * size(y), rtol=1e-6)
    direct = norm.logpdf(y, model.predict(x), model.scale_[0]).sum()
    assert model.log_likelihood_ == pytest.approx(direct, abs=0.1)  # residuals are rounding, and count here
    for value in (model.search_.best, model.optima_[0]["log_likelihood"]):
        assert value == pytest.approx(model.log_likelihood_, rel=1e-9)
    assert not model.regular_ and model.is_exact_ and model.converged_
    assert model.degeneracy_ == str(said[0].message) and model.degeneracy_ in model.summary().look_out
    assert not hasattr(model, "predict_proba") and "BIC" not in str(model.summary())
    with pytest.raises(ValueError, match="one line fits every row exactly"):
        model.standard_errors()


def test_noise_far_from_zero_is_no_exact_fit() -> None:
    """Both paths ask how large the noise is beside the spread of the target, not beside its height."""
    x, y, _ = lines(60)
    for more in ({}, {"offset": 0.0}):
        model = mj.RegressionMixture(1).fit(x, y + 1e12, **more)
        assert not model.is_exact_ and model.scale_[0] == pytest.approx(
            mj.RegressionMixture(1).fit(x, y).scale_[0], rel=1e-3
        )


def test_components_that_are_the_same_do_not_count() -> None:
    """Residuals that are flatter than normal ones have no better place for two lines than one."""
    x = np.linspace(0, 10, 30)[:, None]
    for more in ({}, {"offset": 0.0}):
        with pytest.warns(ConvergenceWarning, match="two components are the same"):
            model = mj.RegressionMixture(2, fit_intercept=False, random_state=0).fit(x, 2 * x[:, 0] + 1, **more)
        assert not model.regular_ and "two components are the same" in model.degeneracy_


def test_no_regular_solution_is_said() -> None:
    x, y, _ = lines(12)
    with pytest.warns(ConvergenceWarning, match=r"no regular solution with 4 components .* Ask for fewer components"):
        model = mj.RegressionMixture(4, random_state=0).fit(x, y)
    assert not model.regular_
    assert np.isfinite(model.log_likelihood_)


@pytest.mark.parametrize("max_iter", [30, 60, 100])
def test_runs_that_end_at_the_limit_of_steps_count(max_iter: int) -> None:
    """Of a feature with two values that explains nothing every run is slow, and none may converge."""
    random = np.random.default_rng(1)
    x, values = random.normal(size=300), random.choice([0.0, 1.0], size=300)
    y = np.where(random.random(300) < 0.5, 1 + x, 2 - x) + 0.1 * random.normal(size=300)
    one = mj.RegressionMixture(1).fit(values[:, None], y)
    with pytest.warns(ConvergenceWarning) as said:
        model = mj.RegressionMixture(2, max_iter=max_iter, random_state=0).fit(values[:, None], y)
    assert model.log_likelihood_ >= one.log_likelihood_ and model.search_.n_starts > 1
    assert model.search_.best == pytest.approx(model.log_likelihood_, abs=0.01) and not model.converged_
    told = [str(one.message) for one in said if "any line goes through" not in str(one.message)]
    more = f"allow more, as max_iter={10 * max_iter}, or raise tol."
    assert told == [f"The fit did not converge within {max_iter} steps: {more}"]
    assert model.regular_ and model.n_iter_ == max_iter


def test_draws_follow_the_model() -> None:
    x, y, _ = lines()
    model = mj.RegressionMixture(2, random_state=0).fit(x, y)
    rows = np.repeat(x[:1], 20_000, axis=0)
    drawn, component = model.sample(rows, random_state=0)
    fits = model.predict_components(x[:1])[0]
    for k in range(2):
        own = drawn[component == k]
        assert len(own) / 20_000 == pytest.approx(model.weights_[k], abs=0.02)
        assert own.mean() == pytest.approx(fits[k], abs=0.02)
        assert own.std() == pytest.approx(model.scale_[k], rel=0.05)


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_streamed_rows_are_the_rows_in_memory(tmp_path: Path, suffix: str) -> None:
    x, y, _ = lines(30_000)
    path = tmp_path / f"rows{suffix}"
    if suffix == ".npy":
        np.save(path, x)
    else:
        pandas.DataFrame(x, columns=["a", "b"]).to_parquet(path, row_group_size=7000)
    streamed = mj.RegressionMixture(2, random_state=0).fit(mj.open_rows(path), y)
    memory = mj.RegressionMixture(2, random_state=0).fit(x, y)
    np.testing.assert_allclose(streamed.coef_, memory.coef_, atol=1e-4)
    assert streamed.log_likelihood_ == pytest.approx(memory.log_likelihood_, abs=1e-3)
    rows = pandas.DataFrame(x, columns=["a", "b"]) if suffix == ".parquet" else x
    assert np.array_equal(streamed.predict(mj.open_rows(path)), streamed.predict(rows))
    x[20_000, 1] = np.nan
    np.save(tmp_path / "holes.npy", x)
    with pytest.raises(ValueError, match="row 20000, column 1 of X is nan"):
        mj.RegressionMixture(2).fit(mj.open_rows(tmp_path / "holes.npy"), y)


@given(n=st.integers(8, 40), d=st.integers(1, 3), k=st.integers(1, 3), seed=st.integers(0, 99), grid=st.booleans())
def test_any_small_table_gives_numbers(n: int, d: int, k: int, seed: int, grid: bool) -> None:
    g = np.random.default_rng(seed)
    x, y = g.normal(size=(n, d)), g.normal(size=n)
    if grid:
        x, y = np.round(x), np.round(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (ConvergenceWarning, LinAlgWarning))
        model = mj.RegressionMixture(k, random_state=0).fit(x, y)
    for name in ("coef_", "intercept_", "scale_", "weights_", "responsibilities_", "log_likelihood_", "icl_"):
        assert np.isfinite(getattr(model, name)).all(), name
    assert model.weights_.sum() == pytest.approx(1)
    one = mj.RegressionMixture(1).fit(x, y).log_likelihood_ if n > d + 2 and not grid else -np.inf
    assert model.log_likelihood_ >= one - 1e-6 * (1 + abs(one)) or not model.regular_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")
@pytest.mark.parametrize("beta", [4.0, np.inf])
def test_low_temperatures_on_few_rows_give_numbers(beta: float) -> None:
    """A line through few rows has a variance on its floor, by which rounding is divided."""
    for seed in range(40):
        random = np.random.default_rng(seed)
        n = int(random.integers(5, 60))
        X = random.normal(size=(n, 2))
        y = np.where(random.random(n) < 0.5, X @ [1, 2], X @ [-1, 3]) + random.normal(size=n) * random.choice(
            [0.1, 1.0]
        )
        model = mj.RegressionMixture(2, beta=beta, random_state=0).fit(X, y)
        assert np.isfinite(model.log_likelihood_)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_counts_as_weights_are_rows_of_the_summary(family: str) -> None:
    draws = np.random.default_rng(0)
    y = np.where(draws.random(2000) < 0.3, draws.poisson(2, 2000), draws.poisson(12, 2000)).astype(float)
    values, counts = np.unique(y, return_counts=True)
    x = np.zeros((2000, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)  # of the constant column
        of_rows = mj.RegressionMixture(2, family=family, random_state=0).fit(x, y)
        weighted = mj.RegressionMixture(2, family=family, random_state=0).fit(
            x[: len(values)], values, sample_weight=counts
        )
    assert weighted.n_rows_ == of_rows.n_rows_ == 2000
    assert f"{len(values)} rows of weight 2000, 1 feature" in str(weighted.summary())
    assert "\n2000 rows, 1 feature" in str(of_rows.summary())
    facts = [re.search(r"BIC.*?\n.*?\brows +(\d+)", str(model.summary()), re.DOTALL) for model in (of_rows, weighted)]
    assert [fact[1] for fact in facts if fact] == ["2000", "2000"]


def test_many_lines_are_found_as_from_the_true_ones() -> None:
    n, d, k, ratio = 3000, 3, 8, 4.0
    draws = np.random.default_rng(0)
    X, coef, intercept = draws.normal(size=(n, d)), 2 * draws.normal(size=(k, d)), 2 * draws.normal(size=k)
    own = draws.choice(k, n, p=np.geomspace(1, ratio, k) / np.geomspace(1, ratio, k).sum())
    noise = np.geomspace(1, ratio, k) / np.sqrt(ratio)
    y = np.einsum("nd,nd->n", X, coef[own]) + intercept[own] + noise[own] * draws.normal(size=n)
    true = mj.RegressionMixture(k, init={"coef": coef, "intercept": intercept, "scale": noise}).fit(X, y)
    found = mj.RegressionMixture(k, random_state=0).fit(X, y)
    assert found.regular_
    assert found.log_likelihood_ >= true.log_likelihood_ - 1e-3
    assert found.search_.n_hits >= 3
