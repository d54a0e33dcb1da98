"""Contrastive divergence against free energies by hand, its gradient by differences, its optimum in closed form."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit, logsumexp, softmax, xlogy

from majorant.data.chunks import Chunks
from majorant.models.harmonium.layout import Layout, Parameters, Seen
from majorant.models.harmonium.objective import ContrastiveDivergence, contrastive
from majorant.models.harmonium.pseudo_likelihood import Part, PseudoLikelihood

from .problems import LOSSES, check_gradient, dense, log_joint, problem

Array = NDArray[np.float64]
UNWEIGHTED = (1.0, 1.0)


def plain(seed: int, n_sweeps: int) -> tuple[ContrastiveDivergence, Parameters]:
    """Without more weight for a category."""
    cost, at = problem(seed)
    return contrastive(replace(cost, layout=replace(cost.layout, level_weights=UNWEIGHTED)), n_sweeps), at


def free_energy(shape: Layout, at: Parameters, centre: Array, y: Array, m: Array, *, clamped: bool) -> float:
    """E_q[log q - log p~]: normal latents about m, variables about y, or at y where they are clamped.

    Clamped real variables have no entropy that is finite: it is left out.
    """
    g = shape.n_gaussian
    s = at.variance
    energy = -y @ at.intercept + (y[:g] ** 2 / (2 * s)).sum() - (y - centre) @ at.weights @ m
    energy += (m @ m + len(m)) / 2  # of the latents' own term,
    energy -= len(m) / 2 * (1 + np.log(2 * np.pi))  # and minus their entropy
    energy += len(m) / 2 * np.log(2 * np.pi)  # p~ has the latents' constant
    if clamped:
        return float(energy)
    bits = y[g : g + shape.n_bits]
    entropy = (
        -(xlogy(bits, bits) + xlogy(1 - bits, 1 - bits)).sum()
        - xlogy(y[g + shape.n_bits :], y[g + shape.n_bits :]).sum()
    )
    entropy += (1 + np.log(2 * np.pi * s)).sum() / 2
    return float(energy + len(s) / 2 - entropy)


def swept(shape: Layout, at: Parameters, centre: Array, m: Array) -> tuple[Array, Array]:
    """One sweep: expectations given the latents' mean, and the mean given these."""
    g, b = shape.n_gaussian, shape.n_bits
    eta = at.weights @ m + at.intercept
    y = np.concatenate(
        [at.variance * eta[:g], expit(eta[g : g + b]), *(softmax(eta[group]) for group in shape.of_variables)]
    )
    return y, (y - centre) @ at.weights


@pytest.mark.parametrize("n_sweeps", [1, 4])
def test_the_divergence_is_a_difference_of_free_energies(n_sweeps: int, seed: int) -> None:
    cost, at = plain(seed, n_sweeps)
    u = at.weights[:4]
    log_det = np.linalg.slogdet(np.eye(3) - (u.T * at.variance) @ u)[1]
    expected = 0.0
    for block in cost.parts[0].data.source.blocks():
        assert block.weights is not None
        for row, weight in zip(dense(block), block.weights, strict=True):
            m = (row - cost.centre) @ at.weights
            difference = free_energy(cost.layout, at, cost.centre, row, m, clamped=True)
            for _ in range(n_sweeps):
                y, m = swept(cost.layout, at, cost.centre, m)
            difference -= free_energy(cost.layout, at, cost.centre, y, m, clamped=False)
            expected += weight * (difference - log_det / 2)
    assert -cost.gain(at)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("n_sweeps", "loss", "missing"), [(1, "none", False), (4, "hinge", False), (2, "epsilon", True)]
)
def test_the_gradient_goes_back_through_the_sweeps(n_sweeps: int, loss: str, missing: bool, seed: int) -> None:
    cost, at = problem(seed, LOSSES[loss], missing=missing)
    cost = contrastive(cost, n_sweeps)
    check_gradient(cost, at)


def log_likelihood(cost: PseudoLikelihood, at: Parameters) -> float:
    """Of all rows, the constant by a sum over all bits and categories, real variables integrated out in each."""
    shape, g = cost.layout, cost.layout.n_gaussian
    bits = [list(bit) for bit in product([0.0, 1.0], repeat=shape.n_bits)]
    levels = [np.concatenate(hot) for hot in product(*(np.eye(n) for n in shape.levels))]
    states = [np.concatenate([bit, level]) for bit, level in product(bits, levels)]
    u = at.weights[:g]
    precision = np.diag(1 / at.variance) - u @ u.T
    terms = []
    for state in states:
        linear = at.intercept[:g] + u @ ((state - cost.centre[g:]) @ at.weights[g:])
        gaussian = linear @ np.linalg.solve(precision, linear) / 2
        gaussian -= np.linalg.slogdet(precision / (2 * np.pi))[1] / 2
        terms.append(log_joint(at, cost.centre, np.concatenate([np.zeros(g), state])) + gaussian)
    total = 0.0
    for block in cost.parts[0].data.source.blocks():
        rows = [log_joint(at, cost.centre, row) for row in dense(block)]
        total += block.total(np.array(rows) - logsumexp(terms))
    return total


def test_sweeps_raise_the_divergence_to_at_most_the_likelihood_and_the_determinant(seed: int) -> None:
    values = []
    for n_sweeps in (1, 2, 5, 50, 51):
        cost, at = plain(seed, n_sweeps)
        values.append(-cost.gain(at)[0])
    assert (np.diff(values) >= -1e-12 * abs(values[0])).all()
    assert values[-1] == pytest.approx(values[-2], rel=1e-6)
    u = at.weights[:4]
    log_det = np.linalg.slogdet(np.eye(3) - (u.T * at.variance) @ u)[1]
    assert values[-1] < -log_likelihood(cost, at) - cost.total_weight * log_det / 2


def two_columns(c: Array, n_sweeps: int) -> ContrastiveDivergence:
    """Two real columns that do not depend on each other, with these standard deviations."""
    z = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]) * c
    shape, none = Layout(2, 0), sparse.csr_matrix((4, 0))
    part = Part(Seen.everything(shape), Chunks(z, none, none))
    return ContrastiveDivergence(shape, np.zeros(2), (part,), n_sweeps=n_sweeps)


def of_sizes(r: Array) -> Parameters:
    """Two components along the columns, r their squared singular values."""
    return Parameters(np.diag(np.sqrt(r)), np.zeros(2), np.zeros(2))


def closed_form(c: float, n: int) -> float:
    """Where c^2 (1 - r) (1 - r^2n) - log(1 - r) is least: 1 - 1 / c^2 in the limit of many sweeps."""

    def slope(r: float) -> float:
        return c**2 * (1 - r) * (1 - r ** (2 * n) + 2 * n * (1 - r) * r ** (2 * n - 1)) - 1

    return float(brentq(slope, 1e-9, 1 - 0.5 / c**2, xtol=1e-14))


@pytest.mark.parametrize("n_sweeps", [5, 200])
def test_the_size_of_a_factor_is_that_of_the_closed_form(n_sweeps: int) -> None:
    c = np.array([1.3, 2.0])
    cost = two_columns(c, n_sweeps)
    best = np.array([closed_form(each, n_sweeps) for each in c])
    gradient = cost.value_and_gradient(of_sizes(best))[1]
    np.testing.assert_allclose(gradient.weights, 0, atol=1e-10)
    if n_sweeps == 200:
        np.testing.assert_allclose(best, 1 - 1 / c**2, rtol=1e-12)
    for away in (-1e-3, 1e-3):
        assert cost.gain(of_sizes(best + away))[0] < cost.gain(of_sizes(best))[0]


def test_without_the_determinant_factors_grow_until_the_model_is_not_proper() -> None:
    cost = two_columns(np.array([1.3, 2.0]), 5)
    sizes = [np.full(2, r) for r in (0.5, 0.9, 0.99, 0.999, 0.9999)]
    bare = [-cost.gain(of_sizes(r))[0] + cost.total_weight / 2 * np.log(1 - r).sum() for r in sizes]
    assert (np.diff(bare) < 0).all()
    at_the_edge = cost.total_weight * np.log(2 * np.pi)
    assert bare[-1] == pytest.approx(at_the_edge, abs=1e-2)
    with pytest.raises(np.linalg.LinAlgError):
        cost.gain(of_sizes(np.full(2, 1.0)))
