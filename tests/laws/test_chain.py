"""Markov chains: everything against sums over all paths, the M-steps, and values that are known."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm, poisson

from majorant import _kernels
from majorant.data.chunks import Block, Chunks
from majorant.data.units import blocks_of
from majorant.densities import Poisson
from majorant.engine.mixture import Mixture, OnData, Parameters
from majorant.laws import Chain, Known
from majorant.laws.chain import Steps
from majorant.laws.stationary import stationary_law, stationary_steps

Array = NDArray[np.float64]
A = np.array([[0.9, 0.1], [0.2, 0.8]])
EVEN = Steps(np.array([[0.5, 0.5]]), A[None])
COUNTS = np.array([0.0, 3.0, 1.0, 5.0])
RATES = poisson(np.array([[1.0], [4.0]])).logpmf(COUNTS)[None]


def by_paths(phi: Steps, run: int, log_density: Array, beta: float = 1.0) -> tuple[float, Array, Array, Array, float]:
    """Log-likelihood (over beta), marginals, first states and steps, entropy, of one sequence: by all paths."""
    k, n = log_density.shape
    with np.errstate(divide="ignore"):
        start, steps = np.log(phi.start[run]), np.log(phi.steps[run])
    paths = np.array(list(product(range(k), repeat=n)))
    scores = start[paths[:, 0]] + log_density[paths, np.arange(n)].sum(axis=1)
    scores = beta * (scores + steps[paths[:, :-1], paths[:, 1:]].sum(axis=1))
    total = np.logaddexp.reduce(scores)
    p = np.exp(scores - total)
    marginals = np.stack([(p[:, None] * (paths == s)).sum(axis=0) for s in range(k)])
    counts = np.zeros((k, k))
    for t in range(1, n):
        np.add.at(counts, (paths[:, t - 1], paths[:, t]), p)
    entropy = -np.sum(p[p > 0] * np.log(p[p > 0]))
    return float(total) / beta, marginals, counts, marginals[:, 0], float(entropy) / beta


def random_steps(random: np.random.Generator, runs: int, k: int, allowed: NDArray[np.bool_] | None = None) -> Steps:
    steps = random.dirichlet(np.ones(k), (runs, k)) * (1 if allowed is None else allowed)
    return Steps(random.dirichlet(np.ones(k), runs), steps / steps.sum(axis=2, keepdims=True))


@pytest.mark.parametrize("beta", [1.0, 0.5, 3.0])
@pytest.mark.parametrize("seed", range(8))
def test_sums_are_those_over_all_paths(seed: int, beta: float) -> None:
    random = np.random.default_rng(seed)
    k, sizes, runs = 2 + seed % 3, random.integers(1, 6, 4), 3
    groups = np.repeat(np.arange(4), sizes)
    n, w = len(groups), random.choice([0.5, 1.0, 2.0], 4)
    allowed = np.triu(np.ones((k, k), dtype=bool)) if seed % 2 else None
    phi = random_steps(random, runs, k, allowed)
    log_density = random.normal(scale=4.0, size=(runs, k, n))
    log_density[:, :, random.integers(n)] = 0.0  # a missing row
    units = Block(0, (groups,), w[groups])
    found = Chain(allowed=allowed).posterior(phi, log_density, units, beta)
    ends = np.append(np.flatnonzero(np.append(True, groups[1:] != groups[:-1])), n)
    for run in range(runs):
        value, entropy, first, counts = 0.0, 0.0, np.zeros(k), np.zeros((k, k))
        for i, (a, b) in enumerate(pairwise(ends)):
            one, marginals, steps, begin, spread = by_paths(phi, run, log_density[run, :, a:b], beta)
            np.testing.assert_allclose(found.units[run, i], one, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(found.responsibilities[run, :, a:b], w[i] * marginals, rtol=1e-11, atol=1e-13)
            value, entropy = value + w[i] * one, entropy + w[i] * spread
            first, counts = first + w[i] * begin, counts + w[i] * steps
        np.testing.assert_allclose(found.log_likelihood[run], value, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(found.entropy()[run], entropy, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(found.statistics[run, :k], first, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(found.statistics[run, k:].reshape(k, k), counts, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_an_infinite_beta_gives_the_best_path(seed: int) -> None:
    random = np.random.default_rng(seed)
    phi, log_density = random_steps(random, 1, 3), random.normal(size=(1, 3, 6))
    found = Chain().posterior(phi, log_density, Block(0, (np.zeros(6, dtype=np.intp),)), np.inf)
    value, marginals, counts, *_ = by_paths(phi, 0, log_density[0], 1e4)
    np.testing.assert_allclose(found.log_likelihood[0], value, rtol=1e-3)
    np.testing.assert_allclose(found.responsibilities[0], marginals, atol=1e-6)
    np.testing.assert_allclose(found.statistics[0, 3:].reshape(3, 3), counts, atol=1e-5)
    np.testing.assert_allclose(found.entropy(), 0.0, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_filtered_and_predicted_states_are_those_of_shorter_sequences(seed: int) -> None:
    random = np.random.default_rng(seed)
    groups, k = np.array([0, 0, 0, 0, 1, 1, 1]), 3
    allowed = np.triu(np.ones((k, k), dtype=bool)) if seed % 2 else None
    phi, log_density = random_steps(random, 2, k, allowed), random.normal(scale=3.0, size=(2, k, 7))
    law, units = Chain(allowed=allowed), Block(0, (groups,))
    here, ahead = law.filtered(phi, log_density, units), np.exp(law.predicted(phi, log_density, units))
    for run, t in product(range(2), range(7)):
        begin = 0 if t < 4 else 4
        seen = log_density[run, :, begin : t + 1].copy()
        np.testing.assert_allclose(here[run, :, t], by_paths(phi, run, seen)[1][:, -1], rtol=1e-11, atol=1e-13)
        seen[:, -1] = 0.0
        np.testing.assert_allclose(ahead[run, :, t], by_paths(phi, run, seen)[1][:, -1], rtol=1e-11, atol=1e-13)


def value_of(log_density: Array, phi: Steps = EVEN, groups: Array | None = None, w: Array | None = None) -> float:
    groups = np.zeros(log_density.shape[2], dtype=np.intp) if groups is None else groups
    return float(Chain().posterior(phi, log_density, Block(0, (groups,), w), 1.0).log_likelihood[0])


def test_values_that_are_known() -> None:
    assert value_of(RATES) == pytest.approx(-9.064250, abs=1e-6)
    found = Chain().posterior(EVEN, RATES, Block(0, (np.zeros(4, dtype=np.intp),)), 1.0)
    np.testing.assert_allclose(found.responsibilities[0, 1], [0.11461, 0.37849, 0.40138, 0.90822], atol=5e-6)
    np.testing.assert_allclose(found.entropy(), 1.597487, atol=1e-6)
    gap = RATES.copy()
    gap[:, :, 2] = 0.0
    assert value_of(gap) == pytest.approx(-7.103336, abs=1e-6)
    two = np.array([0, 0, 1, 1])
    assert value_of(RATES, groups=two) == pytest.approx(-9.010921, abs=1e-6)
    assert value_of(RATES, groups=two, w=np.array([2.0, 2.0, 0.5, 0.5])) == pytest.approx(-10.776557, abs=1e-6)
    stationary = Steps(stationary_law(A[None])[0], A[None])
    assert value_of(RATES, stationary) == pytest.approx(-8.835582, abs=1e-6)


def test_rows_far_from_every_state_keep_their_digits() -> None:
    far = norm(np.array([[0.0], [1.0]]), 0.01).logpdf([0.0, 50.0])[None]
    assert value_of(far) == pytest.approx(-12004995.623269, abs=1e-6)
    kept = Steps(np.array([[1.0, 0.0]]), np.eye(2)[None])
    assert value_of(norm(np.array([[0.0], [60.0]]), 1.0).logpdf([0.0, 60.0])[None], kept) == pytest.approx(
        -1801.837877, abs=1e-6
    )
    slow = np.stack([np.repeat([0.0, -100.0], 8), np.repeat([-100.0, 0.0], 8)])[None]  # as probable at the end
    found = Chain().posterior(Steps(np.array([[0.5, 0.5]]), np.eye(2)[None]), slow, Block(0, (np.zeros(16, int),)), 1.0)
    np.testing.assert_allclose(found.log_likelihood, -800.0)
    np.testing.assert_allclose(found.responsibilities, 0.5)


def test_what_no_path_can_have_made_has_no_likelihood() -> None:
    impossible = RATES.copy()
    impossible[:, :, 1] = -np.inf
    found = Chain().posterior(EVEN, impossible, Block(0, (np.zeros(4, dtype=np.intp),)), 1.0)
    assert np.isneginf(found.log_likelihood[0])
    silent = np.where(np.isneginf(impossible), 0.0, impossible)  # it says nothing of the states, and the others do
    for beta in (1.0, np.inf):
        found, expected = (
            Chain().posterior(EVEN, table, Block(0, (np.zeros(4, dtype=np.intp),)), beta)
            for table in (impossible, silent)
        )
        np.testing.assert_allclose(found.responsibilities, expected.responsibilities, rtol=1e-12)
        np.testing.assert_allclose(found.statistics, expected.statistics, rtol=1e-12)
        np.testing.assert_allclose(found.entropy(), expected.entropy(), atol=1e-12)
        assert np.isneginf(found.log_likelihood[0]) and np.isfinite(expected.log_likelihood[0])
    impossible[:, 0, 1] = np.nan
    assert np.isnan(value_of(impossible))


def test_the_most_probable_states_may_be_no_path() -> None:
    phi = Steps(np.array([[0.4, 0.3, 0.3]]), np.array([[[0, 0.5, 0.5], [1, 0, 0], [1, 0, 0]]]))
    law, units = Chain(allowed=phi.steps[0] > 0), Block(0, (np.zeros(2, dtype=np.intp),))
    modes = law.posterior(phi, np.zeros((1, 3, 2)), units, 1.0).responsibilities[0].argmax(axis=0)
    assert modes.tolist() == [0, 0] and phi.steps[0, 0, 0] == 0
    best = law.posterior(phi, np.zeros((1, 3, 2)), units, np.inf)
    np.testing.assert_allclose(np.exp(best.log_likelihood), 0.3)


def test_the_stationary_m_step_is_a_maximum() -> None:
    steps, first, counts = np.full((1, 2, 2), 0.5), np.array([[1.0, 0.0]]), np.array([[[8.0, 2.0], [3.0, 7.0]]])
    for _ in range(50):
        steps = stationary_steps(first, counts, steps)
    np.testing.assert_allclose([steps[0, 0, 1], steps[0, 1, 0]], [0.171306, 0.323427], atol=1e-6)


@pytest.mark.parametrize("start", ["free", "stationary"])
def test_the_slopes_of_the_log_likelihood_are_the_sums(start: str) -> None:
    random = np.random.default_rng(0)
    law, units = Chain(start), Block(0, (np.repeat([0, 1], 10),))
    log_density = random.normal(size=(1, 3, 20))
    phi = random_steps(random, 1, 3)
    phi = Steps(stationary_law(phi.steps)[0], phi.steps) if start == "stationary" else phi
    at = law.vector(phi)
    assert at.shape[1] == law.n_parameters(3)
    found = law.posterior(phi, log_density, units, 1.0)
    for i in range(at.shape[1]):
        moves = [law.theta_of(at + sign * 1e-5 * np.eye(at.shape[1])[i], phi) for sign in (1, -1)]
        up, down = (law.posterior(p, log_density, units, 1.0).log_likelihood[0] for p in moves)
        expected = [law.expected_log_prior(found.statistics, p)[0] for p in moves]
        np.testing.assert_allclose((up - down) / 2e-5, (expected[0] - expected[1]) / 2e-5, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "law",
    [Chain(), Chain("stationary"), Chain(np.array([1.0, 0.0, 0.0]), np.triu(np.ones((3, 3), dtype=bool)))],
    ids=["free", "stationary", "left to right"],
)
def test_steps_of_em_raise_the_likelihood_and_parameters_go_there_and_back(law: Chain) -> None:
    random = np.random.default_rng(1)
    x = random.poisson(np.repeat([1.0, 5.0, 12.0, 5.0], 15))[:, None].astype(float)
    data = Chunks(blocks_of([x, np.zeros(60, dtype=np.intp)], None))
    on = OnData(Mixture(Poisson(1), law, 3), data)
    theta = on.mixture.started(np.ascontiguousarray(np.moveaxis(random.dirichlet(np.ones(3), (4, 60)), 2, 1)), data)
    before = np.full(4, np.inf)
    for _ in range(80):
        seen = on.seen(theta)
        assert (seen.objective <= before + 1e-10).all()
        before, last = seen.objective, theta
        theta = on.moved(theta, seen, np.ones(4))
    one = Steps(last.law.start[:1], last.law.steps[:1])
    again = law.theta_of(law.vector(one), one)
    np.testing.assert_allclose(again.steps, one.steps, atol=1e-12)
    np.testing.assert_allclose(again.start, one.start, atol=1e-9)
    recalled = law.recalled({name: values[0] for name, values in law.describe(one).items()})
    np.testing.assert_array_equal(recalled.steps, one.steps)
    order = np.array([2, 0, 1])
    turned = law.relabelled(one, order)
    assert turned.steps[0, 0, 1] == one.steps[0, 2, 0] and turned.start[0, 0] == one.start[0, 2]


def test_steps_that_were_closed_too_early_are_opened() -> None:
    random = np.random.default_rng(0)
    x = random.poisson(np.repeat([2.0, 20.0], 30))[:, None].astype(float)
    data = Chunks(blocks_of([x, np.zeros(60, dtype=np.intp)], None))
    law = Chain()
    on = OnData(Mixture(Poisson(1), law, 2), data)
    closed = Steps(np.array([[1.0, 0.0]]), np.array([[[1 - 1e-10, 1e-10], [0.5, 0.5]]]))
    theta = Parameters(np.array([[[2.0], [20.0]]]), closed)
    opened, changed = law.reopened(closed, on.seen(theta).statistics.law)
    assert changed.tolist() == [True] and 1 / 40 < opened.steps[0, 0, 1] < 1 / 20  # one step of thirty
    good = Steps(closed.start, np.array([[[0.97, 0.03], [1e-10, 1 - 1e-10]]]))
    unchanged = law.reopened(good, on.seen(Parameters(theta.density, good)).statistics.law)[1]
    assert unchanged.tolist() == [False]


def test_known_states_are_kept() -> None:
    labels = np.array([1, -1, -1, 0])
    units = Block(0, (labels, np.zeros(4, dtype=np.intp)))
    found = Known(Chain()).posterior(EVEN, RATES, units, 1.0)
    masked = np.where((labels >= 0) & (np.arange(2)[:, None] != labels), -np.inf, RATES[0])
    value, marginals, *_ = by_paths(EVEN, 0, masked)
    np.testing.assert_allclose(found.log_likelihood[0], value, rtol=1e-12)
    np.testing.assert_allclose(found.responsibilities[0], marginals, atol=1e-12)


def test_sequences_of_equal_rows_have_the_same_bits_wherever_they_are() -> None:
    random = np.random.default_rng(0)
    phi, log_density = random_steps(random, 2, 4), random.normal(size=(2, 4, 300))
    alone = Chain().posterior(phi, log_density, Block(0, (np.zeros(300, dtype=np.intp),)), 1.0)
    thrice = Block(0, (np.repeat(np.arange(3), 300),))
    found = Chain().posterior(phi, np.tile(log_density, 3), thrice, 1.0)
    np.testing.assert_array_equal(found.responsibilities, np.tile(alone.responsibilities, 3))
    np.testing.assert_array_equal(found.units, np.repeat(alone.units, 3, axis=1))


@pytest.mark.parametrize("scale", [1.0, 30.0, 400.0])
@pytest.mark.parametrize("k", range(1, 11))
def test_every_number_of_states_is_as_by_logarithms(k: int, scale: float) -> None:
    random = np.random.default_rng(k)
    offsets = np.array([0, 1, 3, 6, 10, 15, 143, 400])
    units = Block(0, (np.repeat(np.arange(7), np.diff(offsets)),))
    weights = random.random(7)
    units = Block(0, units.columns, np.repeat(weights, np.diff(offsets)))
    log_density = scale * random.normal(size=(2, k, 400))
    log_density[0, :, 200:210] = -1e6 * random.random((k, 10))
    start, steps = random.dirichlet(np.ones(k), 2), random.dirichlet(np.ones(k), (2, k))
    if k > 1:
        steps[1] = np.where(random.random((k, k)) < 0.3, 0.0, steps[1]) + 1e-10 * np.eye(k)
        steps[1] /= steps[1].sum(axis=1, keepdims=True)
    law, phi = Chain(), Steps(start, steps)
    found = law.posterior(phi, log_density, units, 1.0)
    each, first, counts = np.full((2, 7), np.nan), np.zeros((2, k)), np.zeros((2, k, k))
    q = np.empty_like(log_density)
    for run in range(2):
        out = q[run], each[run], first[run], counts[run]
        law._by_scores(phi, run, log_density[run], offsets, weights[None], 1.0, out)
    np.testing.assert_allclose(found.units, each, rtol=1e-11)
    np.testing.assert_allclose(found.responsibilities, q, atol=1e-9)
    sums = np.concatenate([first, counts.reshape(2, -1)], axis=1)
    np.testing.assert_allclose(found.statistics, sums, atol=1e-7)
    filtered = law.filtered(phi, log_density, units)
    last = offsets[1:] - 1
    np.testing.assert_allclose(filtered[:, :, last] * weights, found.responsibilities[:, :, last], atol=1e-9)


@pytest.mark.parametrize(
    ("position", "shape"), [(0, (2, 3)), (1, (2, 2, 3)), (3, (1, 5, 2)), (5, (2, 4, 3)), (7, (1, 2))]
)
def test_the_kernel_refuses_arrays_that_do_not_fit(position: int, shape: tuple[int, ...]) -> None:
    n, k = 4, 2
    given = [np.full((2, k), 0.5), np.full((2, k, k), 0.5), np.array([0, 1, n]), np.zeros((2, n, k)), None]
    out = [np.empty((2, n, k)), np.empty((2, 2)), np.zeros((2, k)), np.zeros((2, k, k))]
    arguments: list[object] = [*given, *out]
    _kernels.chain_pass(*arguments)  # type: ignore[arg-type]
    arguments[position] = np.zeros(shape)
    with pytest.raises((TypeError, ValueError)):
        _kernels.chain_pass(*arguments)  # type: ignore[arg-type]
    for offsets in ([0, 4, 4], [0, 1, 5], [1, 2, 4], [0]):
        arguments = [*given[:2], np.array(offsets), *given[3:], *out]
        with pytest.raises(ValueError, match="offsets"):
            _kernels.chain_pass(*arguments)  # type: ignore[arg-type]
