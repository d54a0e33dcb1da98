"""Laws: gradients by differences, coordinates there and back, groups of one row are rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from majorant.data.chunks import Block
from majorant.laws import ByPopulation, Gated, Grouped, Independent, Known
from majorant.laws.gated import Logits
from majorant.laws.independent import Weights, entropy_of, normalised

from ..mixtures_of_parts import laws, problem, started

RANDOM = np.random.default_rng(0)
N, K, G = 40, 3, 2
LOG_F = RANDOM.normal(size=(2, K, N))
GATE = np.column_stack([np.ones(N), RANDOM.normal(size=N)])
W = RANDOM.integers(1, 4, N).astype(float)


def gated_likelihood(coef: np.ndarray) -> np.ndarray:
    return Gated(G).posterior(Logits(coef), LOG_F, Block(0, (GATE,), W), 1.0).log_likelihood


def test_the_score_of_the_gate_is_the_gradient() -> None:
    coef = np.concatenate([np.zeros((2, 1, G)), RANDOM.normal(size=(2, K - 1, G))], axis=1)
    found = Gated(G).posterior(Logits(coef), LOG_F, Block(0, (GATE,), W), 1.0).statistics
    score = found[:, K : K + (K - 1) * G].reshape(2, K - 1, G)
    for k in range(1, K):
        for g in range(G):
            step = np.zeros_like(coef)
            step[:, k, g] = 1e-5
            slope = (gated_likelihood(coef + step) - gated_likelihood(coef - step)) / 2e-5
            np.testing.assert_allclose(score[:, k - 1, g], slope, rtol=1e-6, atol=1e-7)


def test_the_information_of_the_gate_is_that_of_a_multinomial_logit() -> None:
    coef = np.concatenate([np.zeros((1, 1, G)), RANDOM.normal(size=(1, K - 1, G))], axis=1)
    law = Gated(G)
    found = law.posterior(Logits(coef), LOG_F[:1], Block(0, (GATE,), W), 1.0).statistics
    matrix = law._matrix(found[:, K + (K - 1) * G :], K)[0]
    prior = np.exp(law.log_prior(Logits(coef), Block(0, (GATE,))))[0, 1:]
    expected = np.zeros_like(matrix)
    for i in range(N):
        p = prior[:, i]
        expected += W[i] * np.kron(np.diag(p) - np.outer(p, p), np.outer(GATE[i], GATE[i]))
    np.testing.assert_allclose(matrix, expected, rtol=1e-10, atol=1e-12)


def test_a_gate_with_a_constant_alone_ends_at_the_weights() -> None:
    one = np.ones((N, 1))
    law, phi = Gated(1), Logits(np.zeros((2, K, 1)))
    for _ in range(200):
        found = law.posterior(phi, LOG_F, Block(0, (one,), W), 1.0)
        phi = law.solve(found.statistics, phi, np.ones(2))
    plain, weights = Independent(), Weights(np.full((2, K), 1 / K))
    for _ in range(2000):
        weights = plain.solve(plain.posterior(weights, LOG_F, Block(0, (one,), W), 1.0).statistics, weights, np.ones(2))
    found_weights = np.exp(law.log_prior(phi, Block(0, (one[:1],))))[:, :, 0]
    np.testing.assert_allclose(found_weights, weights.weights, rtol=1e-5, atol=1e-7)


def test_weights_by_population_are_those_of_each_population_alone() -> None:
    populations = np.arange(N) % 3
    law, phi = ByPopulation(3), Weights(np.full((2, K, 3), 1 / K))
    found = law.posterior(phi, LOG_F.copy(), Block(0, (populations,), W), 1.0)
    solved = law.solve(found.statistics, phi, np.ones(2)).weights
    total = 0.0
    for g in range(3):
        own = populations == g
        alone = Independent().posterior(Weights(phi.weights[:, :, g]), LOG_F[:, :, own], Block(0, (own,), W[own]), 1.0)
        total = total + alone.log_likelihood
        np.testing.assert_allclose(found.responsibilities[:, :, own], alone.responsibilities, rtol=1e-13)
        expected = Independent().solve(alone.statistics, None, np.ones(2)).weights
        np.testing.assert_allclose(solved[:, :, g], expected, rtol=1e-12)
    np.testing.assert_allclose(found.log_likelihood, total, rtol=1e-13)
    empty = law.solve(np.zeros((2, 3 * K)), phi, np.ones(2)).weights
    np.testing.assert_array_equal(empty, phi.weights)  # a population without rows keeps its weights


@pytest.mark.parametrize("law", [Independent(), Known()], ids=["independent", "known"])
def test_groups_of_one_row_are_rows(law: object) -> None:
    phi = Weights(np.array([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]]))
    labels = np.where(np.arange(N) % 5 == 0, 1, -1)
    own = (labels,) if isinstance(law, Known) else ()
    rows = law.posterior(phi, LOG_F.copy(), Block(0, own or (np.arange(N),), W), 1.0)  # type: ignore[attr-defined]
    grouped = Grouped(law).posterior(phi, LOG_F.copy(), Block(0, (np.arange(N), *own), W), 1.0)
    np.testing.assert_array_equal(rows.log_likelihood, grouped.log_likelihood)
    np.testing.assert_array_equal(rows.responsibilities, grouped.responsibilities)


@pytest.mark.parametrize(
    ("law", "phi"),
    [
        (Independent(), Weights(np.array([[0.2, 0.3, 0.5]]))),
        (ByPopulation(2), Weights(np.array([[[0.2, 0.1], [0.3, 0.7], [0.5, 0.2]]]))),
        (Gated(2), Logits(np.array([[[0, 0], [1, 2], [3, 4.0]]]))),
    ],
)
def test_coordinates_there_and_back(law: Any, phi: Any) -> None:
    again = law.theta_of(law.vector(phi), phi)
    name = "weights" if isinstance(phi, Weights) else "coef"
    np.testing.assert_allclose(getattr(again, name), getattr(phi, name), rtol=1e-12)
    recalled = law.recalled({key: value[0] for key, value in law.describe(phi).items()})
    np.testing.assert_array_equal(getattr(recalled, name), getattr(phi, name))


def test_a_row_that_no_state_can_have_made_counts_as_impossible() -> None:
    log_sum, q = normalised(np.array([[[-np.inf, 0.0], [-np.inf, -np.inf]]]), 1.0)
    assert log_sum[0, 0] == -np.inf and q[0, :, 0].tolist() == [0.5, 0.5]
    assert log_sum[0, 1] == 0 and q[0, :, 1].tolist() == [1.0, 0.0] and np.isfinite(entropy_of(q, None, 1.0)).all()


@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_parameters_are_counted(n_components: int) -> None:
    assert Independent().n_parameters(n_components) == n_components - 1
    assert Gated(3).n_parameters(n_components) == ByPopulation(3).n_parameters(n_components) == 3 * (n_components - 1)
    assert Grouped(Known(Gated(3))).n_parameters(n_components) == 3 * (n_components - 1)


@pytest.mark.parametrize("law", [name for name in laws(0) if "known" not in name])
def test_states_in_another_order_are_the_same_law(law: str) -> None:
    on = problem("Bernoulli", law)
    theta, order = started(on, 0, 2), np.array([2, 0, 1])
    which = on.mixture.law
    turned = which.relabelled(theta.law, order)
    block = next(iter(on.data.source.blocks()))
    units = on.mixture.parts(block)[1]
    prior, again = which.log_prior(theta.law, units), which.log_prior(turned, units)
    np.testing.assert_allclose(again, prior[:, order], atol=1e-12)


@pytest.mark.parametrize("law", [name for name in laws(0) if "known" in name])
def test_a_start_takes_the_numbers_of_the_known_states(law: str) -> None:
    on = problem("normal", law)
    blocks = on.data.source.blocks()
    labels = np.concatenate([on.mixture.law.known(on.mixture.parts(block)[1]) for block in blocks])
    states = np.where(labels >= 0, labels, np.random.default_rng(0).integers(0, K, len(labels)))
    right = (states == np.arange(K)[:, None]).astype(float)
    q = np.stack([right, right[[1, 2, 0]], right[[2, 1, 0]]])
    found = on.mixture.density.describe(on.mixture.started(q, on.data).density)["means"]
    np.testing.assert_allclose(found[1:], found[[0, 0]], rtol=1e-12)
    kept = on.mixture.density.describe(on.mixture.started(q, on.data, keeps_order=True).density)["means"]
    assert not np.allclose(kept[1:], kept[[0, 0]])
