"""Chains against the enumeration of their paths, and against numpy in logarithms where they are long."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import logsumexp

from majorant.solvers import chains as chain_module
from majorant.solvers.chains import Chains

Array = NDArray[Any]


def ragged(
    seed: int, n_states: int, lengths: tuple[int, ...] = (1, 4, 0, 3, 2), scale: float = 1.5, tables: int = 3
) -> Chains:
    random = np.random.default_rng(seed)
    n = sum(lengths)
    return Chains(
        scale * random.normal(size=(n, n_states)),
        scale * random.normal(size=(tables, n_states, n_states)),
        np.concatenate([[0], np.cumsum(lengths)]),
        random.integers(0, tables, n),
    )


def paths_of(chains: Chains, c: int) -> tuple[Array, Array]:
    """All paths of a chain in lexicographic order, and their scores, by the definition."""
    a, b = chains.offsets[c], chains.offsets[c + 1]
    paths = np.array(list(product(range(chains.n_states), repeat=b - a)), dtype=int).reshape(
        chains.n_states ** (b - a), -1
    )
    scores = np.zeros(len(paths))
    for t in range(a, b):
        scores += chains.unary[t, paths[:, t - a]]
        if t > a:
            which = 0 if chains.table is None else chains.table[t]
            scores += chains.transitions[which][paths[:, t - a - 1], paths[:, t - a]]
    return paths, scores


@pytest.mark.parametrize("n_states", [1, 2, 3, 5])
@pytest.mark.parametrize("scale", [0.0, 1.5, 200.0])
def test_against_enumeration(n_states: int, scale: float) -> None:
    chains = ragged(n_states, n_states, scale=scale)
    weights = np.array([1.0, 0.5, 2.0, 0.0, 3.0])
    sums, (best, score) = chains.sums(weights, pairs=True), chains.best()
    steps, pairs = np.zeros_like(chains.transitions), np.zeros((len(chains.unary), n_states, n_states))
    tolerance: dict[str, float] = {"rtol": 1e-12, "atol": 1e-12}
    for c in range(len(chains)):
        a, b = chains.offsets[c], chains.offsets[c + 1]
        paths, scores = paths_of(chains, c)
        np.testing.assert_allclose(sums.log_partition[c], logsumexp(scores), **tolerance)
        p = np.exp(scores - logsumexp(scores))
        np.testing.assert_allclose(sums.entropy[c], -np.sum(p * np.log(np.maximum(p, 1e-300))), **tolerance)
        for t in range(a, b):
            marginal = np.bincount(paths[:, t - a], p, n_states)
            np.testing.assert_allclose(sums.marginals[t], marginal, **tolerance)
            if t > a:
                assert chains.table is not None
                np.add.at(steps[chains.table[t]], (paths[:, t - a - 1], paths[:, t - a]), weights[c] * p)
                np.add.at(pairs[t], (paths[:, t - a - 1], paths[:, t - a]), p)
        np.testing.assert_allclose(score[c], scores.max(), **tolerance)
        np.testing.assert_array_equal(best[a:b], paths[scores.argmax()])
    np.testing.assert_allclose(sums.steps, steps, **tolerance)
    assert sums.pairs is not None
    np.testing.assert_allclose(sums.pairs, pairs, **tolerance)
    np.testing.assert_allclose(chains.scores(best), score, **tolerance)
    np.testing.assert_array_equal(chains.log_partition(), sums.log_partition)


@given(st.integers(0, 10**6), st.integers(1, 4), st.lists(st.integers(0, 4), min_size=1, max_size=4))
def test_of_equal_paths_the_first_is_best(seed: int, n_states: int, lengths: list[int]) -> None:
    random = np.random.default_rng(seed)
    n = sum(lengths)
    unary, step = random.integers(0, 2, (n, n_states)), random.integers(0, 2, (n_states, n_states))
    chains = Chains(unary, step, np.concatenate([[0], np.cumsum(lengths)]))  # sums of integers: ties are ties
    best, score = chains.best()
    for c in range(len(chains)):
        paths, scores = paths_of(chains, c)
        np.testing.assert_array_equal(best[chains.offsets[c] : chains.offsets[c + 1]], paths[scores.argmax()])
        assert score[c] == scores.max()


@pytest.mark.parametrize("n_states", [2, 3])
def test_forbidden_states_and_steps(n_states: int) -> None:
    chains = ragged(1, n_states, (4, 5))
    unary, transitions = chains.unary.copy(), chains.transitions.copy()
    unary[[1, 5], [0, 1]] = -np.inf
    transitions[:, 0, 1] = -np.inf
    chains = Chains(unary, transitions, chains.offsets, chains.table)
    sums, (best, _) = chains.sums(), chains.best()
    drawn = chains.sample(np.random.default_rng(0).random((50, 9)))
    for c in range(2):
        paths, scores = paths_of(chains, c)
        at = slice(chains.offsets[c], chains.offsets[c + 1])
        p = np.exp(scores - logsumexp(scores))
        np.testing.assert_allclose(sums.log_partition[c], logsumexp(scores), rtol=1e-12)
        np.testing.assert_allclose(sums.entropy[c], -np.sum(p[p > 0] * np.log(p[p > 0])), rtol=1e-12, atol=1e-13)
        for t in range(at.start, at.stop):
            np.testing.assert_allclose(sums.marginals[t], np.bincount(paths[:, t - at.start], p, n_states), atol=1e-13)
        np.testing.assert_array_equal(best[at], paths[scores.argmax()])
        allowed = {tuple(path) for path in paths[np.isfinite(scores)]}
        assert {tuple(d[at]) for d in drawn} <= allowed
    assert sums.steps[:, 0, 1].max() == 0


def test_sums_are_gradients_of_the_log_partition_function() -> None:
    chains = ragged(5, 3, (4, 1, 6))
    weights = np.array([1.0, 2.0, 0.5])
    sums, step = chains.sums(weights), 1e-5

    def value(unary: Array, transitions: Array) -> float:
        return float(weights @ Chains(unary, transitions, chains.offsets, chains.table).log_partition())

    chain_of = np.repeat(np.arange(3), np.diff(chains.offsets))
    for index in np.ndindex(chains.unary.shape):
        high, low = chains.unary.copy(), chains.unary.copy()
        high[index] += step
        low[index] -= step
        slope = (value(high, chains.transitions) - value(low, chains.transitions)) / (2 * step)
        assert weights[chain_of[index[0]]] * sums.marginals[index] == pytest.approx(slope, abs=1e-8)
    for index in np.ndindex(chains.transitions.shape):
        high, low = chains.transitions.copy(), chains.transitions.copy()
        high[index] += step
        low[index] -= step
        slope = (value(chains.unary, high) - value(chains.unary, low)) / (2 * step)
        assert sums.steps[index] == pytest.approx(slope, abs=1e-8)


def test_draws_have_the_probabilities_of_their_scores() -> None:
    chains = ragged(2, 3, (3, 2))
    n = 20_000
    drawn = chains.sample(np.random.default_rng(0).random((n, 5)))
    for c in range(2):
        paths, scores = paths_of(chains, c)
        codes = drawn[:, chains.offsets[c] : chains.offsets[c + 1]] @ 3 ** np.arange(paths.shape[1])[::-1]
        expected = n * np.exp(scores - logsumexp(scores))
        observed = np.bincount(codes, minlength=len(paths))
        assert np.sum((observed - expected) ** 2 / expected) < len(paths) + 5 * np.sqrt(2 * len(paths))
    np.testing.assert_array_equal(chains.sample(np.full(5, 0.3)), chains.sample(np.full((1, 5), 0.3))[0])


def test_costs_are_added_to_the_scores_of_states() -> None:
    chains = ragged(3, 3)
    truth = np.random.default_rng(0).integers(0, 3, len(chains.unary))
    costs = 2.0 * (np.arange(3) != truth[:, None])
    best, score = chains.augmented(costs).best()
    for c in range(len(chains)):
        a, b = chains.offsets[c], chains.offsets[c + 1]
        paths, scores = paths_of(chains, c)
        scores += 2.0 * (paths != truth[a:b]).sum(axis=1)
        assert score[c] == pytest.approx(scores.max(), rel=1e-12, abs=1e-12)
        np.testing.assert_array_equal(best[a:b], paths[scores.argmax()])


@pytest.mark.parametrize("n_states", [2, 7])
def test_long_chains_in_logarithms(n_states: int) -> None:
    chains = ragged(4, n_states, (3000, 1, 500), scale=30.0, tables=1)
    sums = chains.sums()
    step = chains.transitions[0]
    for c in range(3):
        at = slice(chains.offsets[c], chains.offsets[c + 1])
        unary = chains.unary[at]
        ahead, back = np.empty_like(unary), np.zeros_like(unary)
        ahead[0] = unary[0]
        for t in range(1, len(unary)):
            ahead[t] = unary[t] + logsumexp(ahead[t - 1][:, None] + step, axis=0)
        for t in range(len(unary) - 2, -1, -1):
            back[t] = logsumexp(step + unary[t + 1] + back[t + 1], axis=1)
        log_partition = logsumexp(ahead[-1])
        assert sums.log_partition[c] == pytest.approx(log_partition, rel=1e-12)
        # Logarithms of 1e5 have 1e-11 of rounding: the reference is no better.
        np.testing.assert_allclose(sums.marginals[at], np.exp(ahead + back - log_partition), atol=1e-9)
    np.testing.assert_allclose(sums.marginals.sum(axis=1), 1.0, rtol=1e-12)
    assert sums.steps.sum() == pytest.approx(3498, rel=1e-12)
    assert (sums.entropy >= 0).all()


def test_one_chain_does_not_know_another() -> None:
    chains = ragged(6, 4, (5, 2, 7), tables=2)
    assert chains.table is not None
    together = chains.sums()
    for c in range(3):
        at = slice(chains.offsets[c], chains.offsets[c + 1])
        alone = Chains(chains.unary[at], chains.transitions, table=chains.table[at])
        np.testing.assert_array_equal(alone.sums().marginals, together.marginals[at])
        np.testing.assert_array_equal(alone.best()[0], chains.best()[0][at])


@pytest.mark.parametrize("own_tables", [False, True])
def test_groups_and_threads_change_nothing(own_tables: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains that share one table or have one each, in one call of the kernels or in many, on one thread or several."""
    lengths = (5, 0, 2, 7, 1, 9, 4)
    n = sum(lengths)
    chains = ragged(7, 2, lengths, tables=len(lengths) if own_tables else 1)
    if own_tables:
        table = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        chains = Chains(chains.unary, chains.transitions, chains.offsets, table)
    weights, uniforms = np.arange(7.0), np.random.default_rng(0).random((3, n))
    whole, path, drawn = chains.sums(weights, pairs=True), chains.best(), chains.sample(uniforms)
    monkeypatch.setattr(chain_module, "GROUP", 8)
    assert len(list(chains._groups())) > 3
    for n_jobs in (1, 3):
        parts = chains.sums(weights, pairs=True, n_jobs=n_jobs)
        for name in ("log_partition", "entropy", "marginals", "pairs"):
            np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
        np.testing.assert_allclose(parts.steps, whole.steps, rtol=1e-13)
        np.testing.assert_array_equal(parts.steps, chains.sums(weights).steps)
        np.testing.assert_array_equal(chains.best(n_jobs=n_jobs)[0], path[0])
        np.testing.assert_array_equal(chains.sample(uniforms, n_jobs=n_jobs), drawn)
        np.testing.assert_array_equal(chains.log_partition(n_jobs=n_jobs), whole.log_partition)


def test_scores_in_single_precision_are_summed_in_double() -> None:
    chains = ragged(8, 2)
    single = [a.astype(np.float32) for a in (chains.unary, chains.transitions)]
    double = [a.astype(np.float64) for a in single]
    for name in ("log_partition", "marginals"):
        found = [getattr(Chains(*a, chains.offsets, chains.table).sums(), name) for a in (single, double)]
        np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], np.eye(2)), "unary must have shape"),
        (([[1.0, np.nan]], np.eye(2)), "unary holds NaN"),
        (([[1.0, np.inf]], np.eye(2)), "plus infinity"),
        (([[1.0, 0.0]], np.eye(3)), r"transitions must have shape \(2, 2\)"),
        (([[1.0, 0.0]], np.empty((0, 2, 2))), "transitions must have shape"),
        ((np.empty((3, 0)), np.empty((0, 0))), "transitions must have shape"),
        (([[1.0, 0.0]], np.eye(2), [0, 2]), "offsets must ascend from 0 to the number of positions, 1"),
        (([[1.0, 0.0]], np.eye(2), [0.0, 1.0]), "offsets must be a row of integers"),
        ((np.eye(2), np.eye(2), [0, 2, 1, 2]), "offsets must ascend"),
        ((np.eye(2), np.eye(2), None, [0]), "table must have one entry per position"),
        ((np.eye(2), np.eye(2), None, [0, 1]), "transitions has 1"),
    ],
)
def test_refusals(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Chains(*arguments)


def test_refusals_of_what_is_asked() -> None:
    chains = Chains(np.eye(2), np.eye(2))
    with pytest.raises(ValueError, match="path must name one of 2 states"):
        chains.scores([0, 2])
    with pytest.raises(ValueError, match="uniforms must be numbers in"):
        chains.sample(np.array([0.5, 1.0]))
    with pytest.raises(ValueError, match="costs must have the shape of unary"):
        chains.augmented([[1.0, 0.0]])
    impossible = Chains([[0.0, 0.0], [0.0, 0.0]], np.full((2, 2), -np.inf), [0, 1, 1, 2])
    assert len(impossible.best()[0]) == 2
    impossible = Chains(np.zeros((3, 2)), np.full((2, 2), -np.inf), [0, 1, 3])
    for ask in (impossible.best, impossible.sums, impossible.log_partition, lambda: impossible.sample(np.zeros(3))):
        with pytest.raises(ValueError, match="chain 1 has no path of finite score"):
            ask()
    with pytest.raises(ValueError, match="or their sums overflow"):
        Chains(np.full((3, 2), 1e308), np.zeros((2, 2))).sums()


def test_kernels_refuse_what_does_not_fit() -> None:
    from majorant import _kernels

    unary, steps, offsets = np.zeros((3, 2)), np.zeros((1, 2, 2)), np.array([0, 3])
    path, score = np.empty(3, dtype=np.int32), np.empty(1)
    _kernels.chain_best(unary, steps, offsets, None, path, score)
    for wrong in (
        (unary, steps, np.array([0, 2]), None, path, score),
        (unary, steps, offsets, np.full(3, -1, dtype=np.int32), path, score),
        (unary, np.zeros((1, 2, 3)), offsets, None, path, score),
        (unary, steps, offsets, None, path[:2].copy(), score),
    ):
        with pytest.raises(ValueError, match=r"must|names"):
            _kernels.chain_best(*wrong)
