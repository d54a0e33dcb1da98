"""EM of general mixtures: never down, to a stationary point, whatever is asked for; a function of the measure alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import majorant as mj
from majorant.data.chunks import Chunks, InMemory
from majorant.densities import Predictors, VarianceRule
from majorant.engine.descent import descend
from majorant.engine.mixture import OnData, Parameters
from majorant.engine.runs import arrays, n_runs, stacked, taken
from majorant.engine.trimmed import Trimmed
from majorant.laws.gated import Logits
from majorant.laws.independent import Weights
from majorant.models.regression_mixture.build import units_of
from majorant.models.regression_mixture.contest import with_one_dispersion
from majorant.models.regression_mixture.extras import check_extras
from majorant.models.regression_mixture.starts import Starts
from majorant.models.regression_mixture.units import Units
from majorant.solvers.responses import RESPONSES

Array = NDArray[Any]

FAMILIES = sorted(RESPONSES)
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "groups": {"groups": True},
    "gating": {"gating": True},
    "gated groups": {"groups": True, "gating": True},
    "shared slope": {"shared": (0,)},
    "shared intercept": {"shared": (-1,)},
    "all shared": {"shared": (-1, 0, 1)},
    "offset": {"offset": True},
    "trim": {"trim": 0.1},
    "trimmed groups": {"trim": 0.1, "groups": True},
    "labels": {"labels": True},
    "no intercept": {"fit_intercept": False},
    "common": {"common": True},
    "everything": {
        "groups": True,
        "gating": True,
        "shared": (1,),
        "offset": True,
        "trim": 0.05,
        "labels": True,
        "common": True,
    },
}


def table(family: str, seed: int, n: int = 90, k: int = 2) -> dict[str, Array]:
    """Rows of two components in groups of three."""
    g = np.random.default_rng(seed)
    x = g.normal(size=(n, 2))
    groups = np.arange(n) // 3
    gates = g.normal(size=(n // 3, 1))[groups]
    which = (g.random(n // 3) < 1 / (1 + np.exp(-gates[::3, 0])))[groups].astype(int)
    offset = 0.3 * g.normal(size=n)
    eta = np.where(which, 1 + x @ [0.8, -0.3], -0.5 + x @ [-0.6, -0.3]) + offset
    response = RESPONSES[family]
    trials = np.full(n, 4.0 if response.takes_trials else 1.0)
    y = response.draw(eta, np.full(n, 0.2), trials, np.random.RandomState(seed))
    labels = np.where(groups % 5 == 0, which, -1)
    weights = g.integers(1, 4, n // 3).astype(float)[groups]
    return {
        "x": x,
        "y": y,
        "groups": groups,
        "gating": gates,
        "offset": offset,
        "trials": trials,
        "labels": labels,
        "weights": weights,
    }


def problem_of(family: str, option: dict[str, Any], seed: int) -> tuple[Units, OnData]:
    """Units, and a mixture on them, as any family is fitted."""
    data, response = table(family, seed), RESPONSES[family]
    extras = check_extras(
        len(data["y"]),
        groups=data["groups"] if option.get("groups") else None,
        gating=data["gating"] if option.get("gating") else None,
        offset=data["offset"] if option.get("offset") else None,
        trials=data["trials"] if response.takes_trials else None,
        component_labels=data["labels"] if option.get("labels") else None,
        n_components=2,
        response=response,
    )
    units = units_of(
        data["x"],
        data["y"],
        data["weights"],
        extras,
        response,
        fit_intercept=option.get("fit_intercept", True),
        shared=option.get("shared", ()),
    )
    rule = VarianceRule(100.0, 1e-16, common=option.get("common", False))
    trim = option.get("trim", 0.0)
    return units, units.on(units.mixture(response, rule, 2, fused=trim == 0), trim)


def perturbed(theta: Any, n_shared: int, common: bool, has_dispersion: bool, h: float) -> list[tuple[Any, ...]]:
    """Pairs of mixtures moved along every free parameter."""
    coef, dispersion = theta.density.coef[0], theta.density.dispersion[0]
    k, p = coef.shape
    own = p - n_shared
    moves: list[dict[str, Array]] = []
    for j in range(p):
        for c in range(k) if j < own else [slice(None)]:
            d = np.zeros_like(coef)
            d[c, j] = h
            moves.append({"coef": d})
    if has_dispersion:
        for c in [slice(None)] if common else range(k):
            d = np.zeros(k)
            d[c] = h
            moves.append({"log_dispersion": d})
    is_gated = isinstance(theta.law, Logits)
    logits = theta.law.coef[0] if is_gated else np.log(theta.law.weights[0])[:, None]
    for c in range(1, k):
        for j in range(logits.shape[1]):
            d = np.zeros_like(logits)
            d[c, j] = h
            moves.append({"logits": d})
    pairs = []
    for move in moves:
        ends = []
        for sign in (1, -1):
            new = Predictors(
                (coef + sign * move.get("coef", 0.0))[None],
                (dispersion * np.exp(sign * move.get("log_dispersion", 0.0)))[None],
            )
            logit = logits + sign * move.get("logits", 0.0)
            weights = np.exp(logit[:, 0]) / np.exp(logit[:, 0]).sum()
            ends.append(Parameters(new, Logits(logit[None]) if is_gated else Weights(weights[None])))
        pairs.append(tuple(ends))
    return pairs


SOME = ["plain", "gated groups", "shared slope", "everything"]
PAIRS = [(f, o) for f in FAMILIES for o in OPTIONS if f in ("gaussian", "poisson") or o in SOME]


@pytest.mark.parametrize(("family", "option"), PAIRS)
def test_em_never_falls_and_ends_at_a_stationary_point(family: str, option: str, seed: int) -> None:
    units, problem = problem_of(family, OPTIONS[option], seed)
    density: Any = problem.mixture.density
    starts = Starts(units, density.response, 2)
    draws = np.random.default_rng(seed)
    theta = stacked([starts.trimmed(draws, 2), starts.elemental(draws, 3), starts.pooled(draws, 1)])
    if density.rule.common:
        theta = with_one_dispersion(theta)
    ends = descend(problem, theta, tol=1e-12, max_iter=4000)
    for path in ends.paths:
        rises = -np.diff(path)
        assert (rises >= -1e-10 * np.abs(path[:-1])).all()
    # on the bound of the variances' ratio a gradient remains
    free = [i for i in range(6) if not density.rule.is_active(ends.theta.density.dispersion[i])]
    best = min(free, key=lambda i: float(ends.objective[i]))
    h = 1e-4
    response = density.response
    pairs = perturbed(taken(ends.theta, [best]), units.n_shared, density.rule.common, response.has_dispersion, h)
    values = -problem.seen(stacked([theta for pair in pairs for theta in pair])).objective.reshape(-1, 2)
    top = -ends.objective[best]
    gradient = (values[:, 0] - values[:, 1]) / (2 * h)
    curvature = np.abs(values.sum(axis=1) - 2 * top) / h**2
    # what a Newton step in each parameter would gain is nothing
    assert (gradient**2 <= 1e-6 * np.maximum(curvature, 1.0)).all(), gradient


def in_blocks(units: Units, problem: OnData, rows: int, n_jobs: int = 1) -> OnData:
    """The same in blocks of about so many rows, which cut no unit."""
    begins = np.searchsorted(units.first, np.arange(0, units.n_rows, rows))
    edges = np.unique(units.first[begins[begins < units.n_units]])
    assert len(edges) > 5
    return replace(
        problem, data=Chunks(InMemory(*units.columns, weights=units.row_weights, edges=edges), n_jobs=n_jobs)
    )


@pytest.mark.parametrize("option", ["plain", "gated groups", "everything"])
@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_blocks_are_the_whole(family: str, option: str, seed: int) -> None:
    units, problem = problem_of(family, OPTIONS[option], seed)
    density: Any = problem.mixture.density
    theta = Starts(units, density.response, 2).elemental(np.random.default_rng(seed), 3)
    whole = problem.seen(theta)
    parts = in_blocks(units, problem, 7).seen(theta)
    on_threads = in_blocks(units, problem, 7, n_jobs=3).seen(theta)
    for a, b in zip(arrays(on_threads), arrays(parts), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(arrays(whole), arrays(parts), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("option", ["plain", "groups", "shared slope", "common"])
def test_the_kernels_passes_are_the_general_ones(option: str, seed: int) -> None:
    """Sums by the fused pass and by log densities, and runs of EM by both, agree."""
    units, problem = problem_of("gaussian", OPTIONS[option], seed)
    density: Any = problem.mixture.density
    general = units.on(units.mixture(density.response, density.rule, 2, fused=False))
    assert type(general.mixture.density) is not type(density)
    theta = with_one_dispersion(Starts(units, density.response, 2).elemental(np.random.default_rng(seed), 3))
    for a, b in zip(arrays(problem.seen(theta)), arrays(general.seen(theta)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-9)
    if option != "groups":
        fused = density.fused_runs(problem.mixture, problem.data, theta, tol=1e-14, max_iter=5)
        slow = descend(general, theta, tol=1e-14, max_iter=5, accelerate=False)
        np.testing.assert_allclose(fused.objective, slow.objective, rtol=1e-9)
        np.testing.assert_allclose(fused.theta.density.coef, slow.theta.density.coef, rtol=1e-6, atol=1e-8)


def test_trimmed_units_are_those_of_least_density(seed: int) -> None:
    units, problem = problem_of("gaussian", {"trim": 0.1, "groups": True}, seed)
    assert isinstance(problem, Trimmed)
    density: Any = problem.mixture.density
    theta = Starts(units, density.response, 2).elemental(np.random.default_rng(seed), 3)
    kept, level = problem.kept(theta), problem.densities(theta) / units.sizes
    rows = units.weights * units.sizes
    np.testing.assert_allclose((kept * rows).sum(axis=1), 0.9 * rows.sum())
    for shares, values in zip(kept, level, strict=True):
        assert values[shares < 1].max() <= values[shares == 1].min()
    value = np.sum(kept * units.weights * problem.densities(theta), axis=1)
    np.testing.assert_allclose(problem.seen(theta).objective, -value, rtol=1e-12)


FITS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("gaussian", {}, ["groups"]),
    ("poisson", {}, ["offset", "gating"]),
    ("binomial", {}, ["trials", "groups", "gating"]),
    ("gamma", {"shared": [1]}, ["offset"]),
    ("student", {"trim": 0.05}, ["groups"]),
    ("gaussian", {}, ["component_labels"]),
]


def fitted(
    family: str, parameters: dict[str, Any], data: dict[str, Array], names: list[str], rows: Array, **more: Any
) -> mj.RegressionMixture:
    given = {name: data["labels" if name == "component_labels" else name][rows] for name in names}
    model = mj.RegressionMixture(2, family=family, random_state=0, **parameters)
    return model.fit(data["x"][rows], data["y"][rows], **given, **more)


def assert_same(a: mj.RegressionMixture, b: mj.RegressionMixture, *, exactly: bool) -> None:
    for name in ("coef_", "intercept_", "scale_", "weights_", "gating_coef_", "gating_intercept_", "log_likelihood_"):
        left, right = getattr(a, name), getattr(b, name)
        if exactly:
            np.testing.assert_array_equal(left, right, err_msg=name)
        else:
            np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(("family", "parameters", "names"), FITS)
def test_only_the_weighted_measure_matters(family: str, parameters: dict[str, Any], names: list[str]) -> None:
    data = table(family, 3)
    n = len(data["y"])
    weights = data["weights"]
    base = fitted(family, parameters, data, names, np.arange(n), sample_weight=weights)
    order = np.random.default_rng(0).permutation(n)
    permuted = fitted(family, parameters, data, names, order, sample_weight=weights[order])
    assert_same(base, permuted, exactly=True)
    np.testing.assert_allclose(base.responsibilities_[order], permuted.responsibilities_, atol=1e-12)
    assert (base.trimmed_[order] == permuted.trimmed_).all()
    # a unit written as often as its weight says, as groups of their own
    times = weights.astype(int)
    rows = np.repeat(np.arange(n), times)
    copies = np.concatenate([np.arange(t) for t in times])
    repeated = {name: values[rows] for name, values in data.items()}
    repeated["groups"] = repeated["groups"] * 10 + copies
    written = fitted(family, parameters, repeated, names, np.arange(len(rows)))
    assert_same(base, written, exactly=True)
    assert written.bic_ == pytest.approx(base.bic_, rel=1e-12)


def test_a_row_without_weight_changes_nothing() -> None:
    data = table("poisson", 1)
    n = len(data["y"])
    base = fitted("poisson", {}, data, ["groups", "gating"], np.arange(n), sample_weight=np.ones(n))
    more = {name: np.concatenate([values, values[:3]]) for name, values in data.items()}
    more["y"][n:], more["groups"][n:] = 1000, 77777
    weights = np.append(np.ones(n), np.zeros(3))
    assert_same(
        base, fitted("poisson", {}, more, ["groups", "gating"], np.arange(n + 3), sample_weight=weights), exactly=True
    )


@pytest.mark.parametrize("scale", [1e-8, 1e6])
@pytest.mark.parametrize(("family", "parameters", "names"), FITS[:5])
def test_units_of_columns_do_not_matter(
    family: str, parameters: dict[str, Any], names: list[str], scale: float
) -> None:
    data = table(family, 4)
    rows = np.arange(len(data["y"]))
    base = fitted(family, parameters, data, names, rows)
    moved = {**data, "x": data["x"] * [scale, 1.0] + [0.0, 100.0], "gating": data["gating"] * scale}
    other = fitted(family, parameters, moved, names, rows)
    assert other.log_likelihood_ == pytest.approx(base.log_likelihood_, rel=1e-9)
    np.testing.assert_allclose(other.coef_ * [scale, 1.0], base.coef_, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(other.gating_coef_ * scale, base.gating_coef_, rtol=1e-3, atol=1e-3)


def test_the_rule_of_variances_holds_in_every_step(seed: int) -> None:
    units, problem = problem_of("gaussian", {}, seed)
    density: Any = problem.mixture.density
    problem = units.on(units.mixture(density.response, VarianceRule(1.5, 1e-16), 2))
    theta = Starts(units, density.response, 2).elemental(np.random.default_rng(seed), 8)
    for _ in range(30):
        theta = problem.moved(theta, problem.seen(theta), np.ones(n_runs(theta)))
        dispersion = theta.density.dispersion
        assert (dispersion.max(axis=1) <= 1.5**2 * dispersion.min(axis=1) * (1 + 1e-12)).all()
    dispersion = descend(problem, theta, tol=1e-12, max_iter=40).theta.density.dispersion  # extrapolations too
    assert (dispersion.max(axis=1) <= 1.5**2 * dispersion.min(axis=1) * (1 + 1e-12)).all()


def anything(seed: int) -> tuple[mj.RegressionMixture, Array, Array, dict[str, Any]]:
    """A model of random settings and a small table for it, often degenerate."""
    g = np.random.default_rng(seed)
    n, d, k = int(g.integers(3, 30)), int(g.integers(1, 4)), int(g.integers(1, 4))
    family = str(g.choice(FAMILIES))
    response = RESPONSES[family]
    x = g.integers(-1, 2, (n, d)).astype(float) if seed % 3 == 0 else g.normal(size=(n, d)) * 10.0 ** g.integers(-3, 4)
    trials = g.integers(1, 6, n).astype(float) if response.takes_trials else np.ones(n)
    y = response.draw(g.normal(size=n) * g.choice([0.1, 1, 5]), np.ones(n), trials, np.random.RandomState(seed))
    y = np.maximum(y, 1e-3) if family == "gamma" else np.ones(n) if seed % 7 == 0 else y
    groups = g.integers(0, max(2, n // 3), n)
    given = {
        "groups": groups,
        "gating": g.normal(size=(n, 1))[groups],
        "offset": g.normal(size=n),
        "component_labels": np.where(groups % 3 == 0, groups % k, -1),
        "sample_weight": (1.0 + groups % 3) * g.choice([1e-8, 1, 1e8]),
    }
    extras = {name: value for name, value in given.items() if g.random() < 0.4}
    if response.takes_trials:
        extras["trials"] = trials
    model = mj.RegressionMixture(
        k,
        family=family,
        shared=[j for j in range(d) if g.random() < 0.25],
        trim=float(g.choice([0, 0, 0.2])),
        variance=str(g.choice(["component", "common"])),
        fit_intercept=bool(g.random() < 0.8),
        init="random",
        n_init=2,
        max_iter=40,
        random_state=0,
    )
    return model, x, y, extras


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")
def test_any_small_table_gives_numbers_or_says_why() -> None:
    refused = 0
    for seed in range(20):
        model, x, y, extras = anything(seed)
        try:
            model.fit(x, y, **extras)
        except ValueError as error:
            assert "distinct units" in str(error) or "nothing but zeros" in str(error) or "n_samples" in str(error)
            refused += 1
            continue
        for name in ("coef_", "intercept_", "scale_", "weights_", "gating_coef_", "responsibilities_", "icl_"):
            assert np.isfinite(getattr(model, name)).all(), (seed, name)
        new = {name: extras[name] for name in ("gating", "offset", "trials") if name in extras}
        assert np.isfinite(model.predict(x, **new)).all(), seed
    assert refused < 10
