"""Markov chains with covariates: against sums over all paths, their slopes, and chains without covariates."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.data.units import blocks_of
from majorant.densities import Poisson
from majorant.engine.descent import descend
from majorant.engine.mixture import Mixture, OnData
from majorant.laws import Chain, GatedChain
from majorant.laws.chain import Steps
from majorant.laws.gated_chain import LONGEST_STEP, StepLogits

Array = NDArray[np.float64]
GROUPS = np.repeat([0, 1, 2], [4, 1, 3])
K = 3


def covariates(random: np.random.Generator, n: int = len(GROUPS)) -> Array:
    return np.column_stack([np.ones(n), random.normal(size=n)])


def logits(random: np.random.Generator, runs: int, law: GatedChain) -> StepLogits:
    coef = random.normal(size=(runs, K, K, 2)) * law._open(K)[:, :, None]
    return StepLogits(random.dirichlet(np.ones(K), runs), coef)


def by_paths(start: Array, steps: Array, log_density: Array, beta: float) -> tuple[float, Array, Array, float]:
    """Log-likelihood (over beta), marginals, pairs and entropy (over beta) of one sequence; steps by row."""
    n = log_density.shape[1]
    paths = np.array(list(product(range(K), repeat=n)))
    with np.errstate(divide="ignore"):
        scores = np.log(start)[paths[:, 0]] + log_density[paths, np.arange(n)].sum(axis=1)
        for t in range(1, n):
            scores = scores + np.log(steps[t])[paths[:, t - 1], paths[:, t]]
    scores = beta * scores
    total = float(np.logaddexp.reduce(scores))
    p = np.exp(scores - total)
    marginals = np.stack([(p[:, None] * (paths == s)).sum(axis=0) for s in range(K)])
    pairs = np.zeros((n, K, K))
    for t in range(1, n):
        np.add.at(pairs[t], (paths[:, t - 1], paths[:, t]), p)
    return total / beta, marginals, pairs, -float(np.sum(p[p > 0] * np.log(p[p > 0]))) / beta


LEFT_RIGHT = np.triu(np.ones((K, K), dtype=bool))


@pytest.mark.parametrize("beta", [1.0, 0.5, 200.0])
@pytest.mark.parametrize("allowed", [None, LEFT_RIGHT], ids=["free", "left to right"])
def test_sums_are_those_over_all_paths(allowed: Any, beta: float) -> None:
    random, w, law = np.random.default_rng(0), np.array([0.5, 1.0, 2.0]), GatedChain(2, allowed=allowed)
    z, phi = covariates(random), logits(random, 2, law)
    log_density = random.normal(scale=2.0, size=(2, K, len(GROUPS)))
    units = Block(0, (z, GROUPS), w[GROUPS])
    found = law.posterior(phi, log_density, units, beta)
    steps = np.exp(law.log_steps(phi, z))
    np.testing.assert_allclose(steps.sum(axis=3), 1.0, rtol=1e-12)
    assert allowed is None or (steps[:, :, ~allowed] == 0).all()
    best = law.posterior(phi, log_density, units, np.inf) if beta == 200.0 else found
    for run in range(2):
        value = entropy = 0.0
        first, counts, score = np.zeros(K), np.zeros((K, K)), np.zeros((K, K, 2))
        for i in range(3):
            at = np.flatnonzero(i == GROUPS)
            one, marginals, pairs, spread = by_paths(phi.start[run], steps[run, at], log_density[run][:, at], beta)
            np.testing.assert_allclose(found.units[run, i], one, rtol=1e-12)
            np.testing.assert_allclose(found.responsibilities[run][:, at], w[i] * marginals, atol=1e-12)
            np.testing.assert_allclose(best.responsibilities[run][:, at], w[i] * marginals, atol=1e-6)
            value, entropy = value + w[i] * one, entropy + w[i] * spread
            first, counts = first + w[i] * marginals[:, 0], counts + w[i] * pairs.sum(axis=0)
            expected = pairs - pairs.sum(axis=2)[:, :, None] * steps[run, at]
            score += w[i] * np.einsum("nij,ng->ijg", expected, z[at])
        np.testing.assert_allclose(found.log_likelihood[run], value, rtol=1e-12)
        np.testing.assert_allclose(found.entropy()[run], entropy, atol=1e-10)
        own = law._parts(found.statistics[run : run + 1])
        for got, right in zip(own, (first, counts, score), strict=False):
            np.testing.assert_allclose(got[0], right, atol=1e-11)


def test_score_and_information_are_the_slopes() -> None:
    random, law = np.random.default_rng(1), GatedChain(2)
    z, phi = covariates(random), logits(random, 1, law)
    units = Block(0, (z, GROUPS))
    log_density = random.normal(size=(1, K, len(GROUPS)))
    at = law.vector(phi)
    score = law._parts(law.posterior(phi, log_density, units, 1.0).statistics)[2]
    moved = [
        law.theta_of(at + sign * 1e-5 * np.eye(at.shape[1])[i], phi) for i in range(at.shape[1]) for sign in (1, -1)
    ]
    values = [law.posterior(p, log_density, units, 1.0).log_likelihood[0] for p in moved]
    slopes = (np.array(values[::2]) - np.array(values[1::2])) / 2e-5
    np.testing.assert_allclose(score[0][law._open(K)].ravel(), slopes[K - 1 :], atol=1e-7)
    # were the states known, the information would be minus the slope of the score
    path = np.log(np.eye(K)[[0, 0, 1, 2, 1, 2, 0, 0]].T[None] + 1e-300)

    def score_at(vector: Array) -> Array:
        found = law._parts(law.posterior(law.theta_of(vector, phi), path, units, 1.0).statistics)
        return np.asarray(found[2][0])

    information = law._parts(law.posterior(phi, path, units, 1.0).statistics)[3]
    up = phi.coef.copy()
    up[0, 0, 1, 1] += 1e-5
    down = phi.coef.copy()
    down[0, 0, 1, 1] -= 1e-5
    change = (
        score_at(law.vector(StepLogits(phi.start, up))) - score_at(law.vector(StepLogits(phi.start, down)))
    ) / 2e-5
    np.testing.assert_allclose(information[0, 0, 1, 1], -change[0], atol=1e-6)


def test_a_step_is_newtons_unless_it_is_too_long() -> None:
    random, law = np.random.default_rng(1), GatedChain(2)
    groups = np.repeat([0, 1], 100)
    z = np.column_stack([np.ones(200), random.normal(size=200)])
    units, log_density, phi = Block(0, (z, groups)), random.normal(size=(1, K, 200)), logits(random, 1, law)
    statistics = law.posterior(phi, log_density, units, 1.0).statistics
    score, information = (part[0] for part in law._parts(statistics)[2:])
    is_open, moved = law._open(K), (law.solve(statistics, phi, np.ones(1)).coef - phi.coef)[0]
    assert 0.01 < abs(moved).max() < LONGEST_STEP
    for i in range(K):
        own = information[i, is_open[i]][:, :, is_open[i]].reshape(4, 4)
        right = np.linalg.solve(own, score[i, is_open[i]].ravel())
        np.testing.assert_allclose(moved[i, is_open[i]].ravel(), right, rtol=1e-3, atol=1e-4)
    statistics[:, K + K * K : K + 3 * K * K] *= 1e4  # the score
    moved = (law.solve(statistics, phi, np.full(1, 0.5)).coef - phi.coef)[0]
    np.testing.assert_allclose(abs(moved).max(axis=(1, 2)), LONGEST_STEP / 2, rtol=1e-12)


def test_with_a_constant_alone_it_is_the_chain() -> None:
    random, law = np.random.default_rng(2), GatedChain(1)
    steps = random.dirichlet(np.ones(K), (1, K))
    coef = np.log(steps / steps[:, np.arange(K), np.arange(K), None])[..., None]
    start, log_density = random.dirichlet(np.ones(K), 1), random.normal(size=(1, K, len(GROUPS)))
    phi, one = StepLogits(start, coef), np.ones((len(GROUPS), 1))
    gated, plain = Block(0, (one, GROUPS)), Block(0, (GROUPS,))
    here, other = law.posterior(phi, log_density, gated, 1.0), Chain()
    found = other.posterior(Steps(start, steps), log_density, plain, 1.0)
    np.testing.assert_allclose(here.units, found.units, rtol=1e-12)
    np.testing.assert_allclose(here.responsibilities, found.responsibilities, atol=1e-12)
    np.testing.assert_allclose(law.describe(phi)["transitions"], steps, rtol=1e-12)
    for name in ("filtered", "predicted"):
        mine = getattr(law, name)(phi, log_density, gated)
        np.testing.assert_allclose(mine, getattr(other, name)(Steps(start, steps), log_density, plain), atol=1e-12)
    np.testing.assert_allclose(law.log_prior(phi, gated), other.log_prior(Steps(start, steps), plain), atol=1e-12)


@pytest.mark.parametrize("beta", [1.0, 0.5, 200.0, np.inf])
@pytest.mark.parametrize("allowed", [None, LEFT_RIGHT], ids=["free", "left to right"])
def test_a_row_that_no_state_can_have_made_says_nothing_of_the_states(allowed: Any, beta: float) -> None:
    random, law = np.random.default_rng(4), GatedChain(2, allowed=allowed)
    z, phi = covariates(random), logits(random, 2, law)
    units, log_density = Block(0, (z, GROUPS)), random.normal(size=(2, K, len(GROUPS)))
    impossible = np.zeros((2, len(GROUPS)), dtype=bool)
    impossible[0, 1] = impossible[1, [0, 6]] = True  # other rows in each run
    left_out = np.where(impossible[:, None], 0.0, log_density)
    found = law.posterior(phi, np.where(impossible[:, None], -np.inf, log_density), units, beta)
    expected = law.posterior(phi, left_out, units, beta)
    np.testing.assert_allclose(found.statistics, expected.statistics, rtol=1e-12)
    np.testing.assert_allclose(found.entropy(), expected.entropy(), rtol=1e-12)
    assert np.isneginf(found.log_likelihood).all()
    steps = np.exp(law.log_steps(phi, z))
    for run in range(2):
        for i in range(3):
            at = np.flatnonzero(i == GROUPS)
            by_all = by_paths(phi.start[run], steps[run, at], left_out[run][:, at], min(beta, 1e4))
            np.testing.assert_allclose(found.responsibilities[run][:, at], by_all[1], atol=1e-11)
            is_lost = impossible[run, at].any()
            assert np.isneginf(found.units[run, i]) if is_lost else found.units[run, i] == expected.units[run, i]


@pytest.mark.parametrize("beta", [1.0, 0.5, np.inf])
@pytest.mark.parametrize("lost", ["rows", "path", "unknown"])
def test_what_no_path_can_have_made_is_as_in_the_chain(lost: str, beta: float) -> None:
    random = np.random.default_rng(5)
    law, other = GatedChain(2, allowed=LEFT_RIGHT), Chain(allowed=LEFT_RIGHT)
    z, phi = covariates(random), logits(random, 2, law)
    phi.coef[..., 1] = 0.0
    steps = Steps(phi.start, np.exp(law.log_steps(phi, z)[:, 0]))
    log_density = random.normal(size=(2, K, len(GROUPS)))
    if lost == "rows":
        log_density[0, :, 1] = log_density[1, :, [0, 6]] = -np.inf
    elif lost == "path":  # from the last state to the first one
        log_density[0, :2, 0] = log_density[0, 1:, 1] = -np.inf
    else:
        log_density[1, 0, 2] = np.nan
    w = np.stack([np.ones(len(GROUPS)), np.array([0.5, 0.0, 2.0])[GROUPS]])[:, None]
    gated, plain = Block(0, (z, GROUPS), w), Block(0, (GROUPS,), w)
    here, found = law.posterior(phi, log_density, gated, beta), other.posterior(steps, log_density, plain, beta)
    np.testing.assert_allclose(here.units, found.units, rtol=1e-12)
    np.testing.assert_allclose(here.log_likelihood, found.log_likelihood, rtol=1e-12)
    is_known = ~np.isnan(here.log_likelihood)
    assert not np.isfinite(here.log_likelihood).all() and is_known.all() == (lost != "unknown")
    np.testing.assert_allclose(here.responsibilities[is_known], found.responsibilities[is_known], atol=1e-12)
    np.testing.assert_allclose(here.statistics[is_known, : K + K * K], found.statistics[is_known], atol=1e-12)
    for name in ("filtered", "predicted"):
        mine = getattr(law, name)(phi, log_density, gated)
        np.testing.assert_allclose(mine, getattr(other, name)(steps, log_density, plain), atol=1e-12)


def test_em_raises_the_likelihood_to_that_of_the_chain_and_beyond_it_with_covariates() -> None:
    random = np.random.default_rng(1)
    z, groups = covariates(random, 400), np.repeat([0, 1], 200)
    states = GatedChain(2, start=np.array([1.0, 0.0])).drawn(
        StepLogits(np.array([[1.0, 0.0]]), np.array([[[[0.0, 0.0], [-2.0, 2.0]], [[-2.0, -2.0], [0.0, 0.0]]]])),
        groups,
        z,
        random,
    )
    assert states[0] == states[200] == 0
    x = random.poisson(np.where(states == 0, 2.0, 8.0))[:, None].astype(float)
    values = {}
    tables = np.ascontiguousarray(np.moveaxis(random.dirichlet(np.ones(2), (3, 400)), 2, 1))
    for name, law, extra in (
        ("chain", Chain(), []),
        ("constant", GatedChain(1), [np.ones((400, 1))]),
        ("gated", GatedChain(2), [z]),
    ):
        data = Chunks(blocks_of([x, *extra, groups], None))
        on = OnData(Mixture(Poisson(1), law, 2), data)
        ends = descend(on, on.mixture.started(tables, data), tol=1e-10, max_iter=500)
        assert ends.converged.all() and all(np.diff(path).max() < 1e-8 for path in ends.paths)
        values[name] = ends.objective.min()
        best = int(ends.objective.argmin())
    assert values["constant"] == pytest.approx(values["chain"], abs=1e-5)
    assert values["gated"] < values["chain"] - 10
    signs = np.sign(ends.theta.law.coef[best, [0, 1], [1, 0], 1])
    assert sorted(signs) == [-1, 1]


@pytest.mark.parametrize(
    "law", [GatedChain(2), GatedChain(2, np.array([1.0, 0.0, 0.0]), LEFT_RIGHT)], ids=["free", "left to right"]
)
def test_parameters_go_there_and_back(law: GatedChain) -> None:
    phi = logits(np.random.default_rng(3), 2, law)
    phi = phi if isinstance(law.start, str) else StepLogits(np.repeat(law.start[None], 2, axis=0), phi.coef)
    again = law.theta_of(law.vector(phi), phi)
    np.testing.assert_allclose(again.coef, phi.coef, atol=1e-12)
    np.testing.assert_allclose(again.start, phi.start, atol=1e-12)
    assert law.vector(phi).shape[1] == law.n_parameters(K)
    one = {name: values[1] for name, values in law.describe(phi).items()}
    np.testing.assert_array_equal(law.recalled(one).coef[0], phi.coef[1])
    turned = law.relabelled(phi, np.array([2, 0, 1]))
    assert turned.coef[0, 0, 1, 1] == phi.coef[0, 2, 0, 1] and turned.start[0, 0] == phi.start[0, 2]
