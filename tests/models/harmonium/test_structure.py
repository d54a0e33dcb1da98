"""Structured views against enumeration and differences: conditionals, gradients, certificates, convexity."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from majorant.models.harmonium.layout import Parameters
from majorant.models.harmonium.structure import CONFIGURATIONS
from majorant.models.harmonium.tables import chain_counts

from .problems import LOSSES, check_convex_in_j, check_gradient, check_matrix_of_the_certificate
from .structured_problems import EDGES, WORDS, log_joint, problem


def test_conditionals_are_those_of_enumeration(seed: int) -> None:
    """Each cell against the joint density with the cell turned."""
    cost, at, rows = problem(seed)
    found = np.zeros(2)
    (part, view), *_ = cost.views(at)
    for block in part.data.source.blocks():
        found += [term.value for term in view.residuals(block).structured]
    expected = np.zeros(2)
    for d, (document, graph) in enumerate(zip(rows.documents, rows.graph, strict=True)):
        now = log_joint(cost, at, rows, d, document, graph)
        for cell in np.ndindex(document.shape):
            other = document.copy()
            other[cell] = 1 - other[cell]
            turned = log_joint(cost, at, rows, d, other, graph)
            expected[0] += rows.weights[d] * (now - np.logaddexp(now, turned))
        for i in range(4):
            bits = graph.copy()
            bits[i] = 1 - bits[i]
            turned = log_joint(cost, at, rows, d, document, bits)
            expected[1] += rows.weights[d] * (now - np.logaddexp(now, turned))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(("loss", "missing"), [("none", False), ("hinge", True)])
def test_the_gradient_is_that_of_differences(loss: str, missing: bool, seed: int) -> None:
    cost, at, _ = problem(seed, LOSSES[loss], missing=missing)
    check_gradient(cost, at)


@pytest.mark.parametrize("loss", ["none", "hinge"])
def test_the_certificates_matrix_times_w_is_the_gradient(loss: str, seed: int) -> None:
    cost, at, _ = problem(seed, LOSSES[loss])
    check_matrix_of_the_certificate(cost, at, seed)


def test_the_objective_is_convex_in_j(seed: int) -> None:
    """In the J of all nodes and couplings: also where couplings depend on latents."""
    cost, _, _ = problem(seed, LOSSES["hinge"])
    check_convex_in_j(cost, seed, size=0.3, precisions=(2, 4))


def test_couplings_without_weights_are_those_of_zero_weights(seed: int) -> None:
    """A graph whose couplings do not depend on the latents leaves out what zero weights would make zero."""
    cost, at, _ = problem(seed)
    chain, graph = cost.layout.structures
    weights = at.weights.copy()
    at_graph = cost.layout.of_structures[1]
    weights[at_graph.start + 4 : at_graph.stop] = 0
    at = Parameters(weights, at.intercept, at.log_variance)
    plain = replace(cost, layout=replace(cost.layout, structures=(chain, replace(graph, is_latent=False))))
    found, expected = plain.value_and_gradient(at), cost.value_and_gradient(at)
    assert found[0] == pytest.approx(expected[0], rel=1e-13)
    there = np.delete(np.arange(cost.layout.n_rows), np.arange(at_graph.start + 4, at_graph.stop))
    np.testing.assert_allclose(found[1].weights[there], expected[1].weights[there], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found[1].intercept, expected[1].intercept, rtol=1e-11, atol=1e-13)


@given(st.integers(0, 10**6), st.lists(st.integers(0, 5), min_size=1, max_size=4))
def test_counts_are_those_of_cells(seed: int, lengths: list[int]) -> None:
    random = np.random.default_rng(seed)
    documents = [(random.random((length, WORDS)) < 0.5).astype(float) for length in lengths]
    counts = chain_counts(sparse.csr_matrix(np.concatenate(documents)), np.array(lengths)).toarray()
    np.testing.assert_array_equal(counts[:, -1], lengths)
    for d, document in enumerate(documents):
        padded = np.pad(document, ((1, 1), (0, 0)))
        neighbours = padded[:-2] + padded[2:]
        for (k, (x, n)), word in product(enumerate(CONFIGURATIONS), range(WORDS)):
            cells = (document[:, word] == x) & (neighbours[:, word] == n)
            assert counts[d, k * WORDS + word] == cells.sum()


def test_tables_are_features_that_are_multiplied_by(seed: int) -> None:
    cost, _, _ = problem(seed)
    random = np.random.default_rng(seed)
    block = next(cost.parts[0].data.source.blocks())
    for structure, data in zip(cost.layout.structures, block.columns[-2:], strict=True):
        features, table = structure.features(data), structure.table(data)
        right, left = random.normal(size=(structure.width, 2)), random.normal(size=(len(block), 2))
        np.testing.assert_allclose(table @ right, features @ right, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(table.T @ left, features.T @ left, rtol=1e-11, atol=1e-11)


def test_features_are_the_sums_of_the_definition(seed: int) -> None:
    cost, _, rows = problem(seed)
    chain, graph = cost.layout.structures
    block = next(cost.parts[0].data.source.blocks())
    for d in range(len(block)):
        x, root = rows.documents[d], np.sqrt(len(rows.documents[d]))
        nodes = (x - chain.centre[:WORDS]).sum(axis=0) / root
        couplings = (x[1:] * x[:-1] - chain.centre[WORDS:]).sum(axis=0) / root - chain.slope * nodes
        np.testing.assert_allclose(chain.features(block.columns[-2])[d], [*nodes, *couplings], rtol=1e-13, atol=1e-13)
        x = rows.graph[d] - graph.centre[:4]
        means = graph.centre[4:] - graph.centre[EDGES].prod(axis=1)
        both = x[EDGES].prod(axis=1) - means
        np.testing.assert_allclose(graph.features(block.columns[-1])[d], [*x, *both], rtol=1e-13, atol=1e-13)
