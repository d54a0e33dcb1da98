"""The objective against enumeration, its gradient against differences, its certificate against its gradient."""

from __future__ import annotations

import numpy as np
import pytest

from majorant.models.harmonium.layout import Marginal, Seen
from majorant.models.harmonium.pseudo_likelihood import PseudoLikelihood
from majorant.solvers.logistic import softplus_and_minus_sigmoid

from .problems import (
    LOSSES,
    check_convex_in_j,
    check_gradient,
    check_matrix_of_the_certificate,
    dense,
    layout,
    log_pseudo_likelihood,
    parameters,
    problem,
    rows,
)


def test_conditionals_are_those_of_enumeration(seed: int) -> None:
    cost, at = problem(seed)
    expected = 0.0
    for block in cost.parts[0].data.source.blocks():
        assert block.weights is not None
        values = [log_pseudo_likelihood(cost.layout, at, cost.centre, row) for row in dense(block)]
        expected += float(block.weights @ np.array(values))
    assert cost.gain(at)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_gradient_is_that_of_differences(loss: str, missing: bool, seed: int) -> None:
    cost, at = problem(seed, LOSSES[loss], missing=missing)
    check_gradient(cost, at)


def test_rows_without_a_gaussian_view_are_those_of_the_marginal(seed: int) -> None:
    """Integrated out by hand: the joint density of a row is a Gaussian integral over what it lacks."""
    random = np.random.default_rng(seed)
    shape = layout()
    at = parameters(shape, random)
    whole = Seen.everything(shape)
    seen = Seen(np.array([0, 2]), whole.bits, whole.variables, np.array([1, 3]))
    part = rows(seen, shape, 1, random, weighted=False)
    centre = np.concatenate([np.zeros(4), random.random(8)])
    block = next(part.data.source.blocks())
    values = dense(block)[0]
    u, s, b = at.weights[[1, 3]], at.variance[[1, 3]], at.intercept[[1, 3]]

    def log_marginal(row: np.ndarray) -> float:
        m = (row - centre[[0, 2, *range(4, 12)]]) @ at.weights[[0, 2, *range(4, 12)]]
        z = row[:2]
        a = np.eye(3) - (u.T * s) @ u
        linear = m + u.T @ (s * b)
        return float(
            row @ at.intercept[[0, 2, *range(4, 12)]]
            - (z**2 / at.variance[[0, 2]]).sum() / 2
            + linear @ np.linalg.solve(a, linear) / 2
        )

    bit = values.copy()
    bit[2] = 1 - bit[2]
    odds = log_marginal(values) - log_marginal(bit)
    (_, view), *_ = PseudoLikelihood(shape, centre, (part,)).views(at)
    residual = view.residuals(block).bits[0, 0]
    p = 1 - abs(residual)
    assert np.log(p) - np.log1p(-p) == pytest.approx(odds, rel=1e-10)


def test_a_posterior_without_a_view_is_that_of_gaussian_conditioning(seed: int) -> None:
    """All views Gaussian: h and z are jointly Gaussian, and conditioning on some of z is a matter of blocks."""
    random = np.random.default_rng(seed)
    shape = layout()
    at = parameters(shape, random)
    u, s, b = at.weights[:4], at.variance, at.intercept[:4]
    precision = np.block([[np.eye(3), -u.T], [-u, np.diag(1 / s)]])
    covariance = np.linalg.inv(precision)
    mean = covariance @ np.concatenate([np.zeros(3), b])
    there = [3 + 0, 3 + 2]
    z = random.normal(size=2)
    expected = mean[:3] + covariance[:3, there] @ np.linalg.solve(covariance[np.ix_(there, there)], z - mean[there])
    marginal = Marginal.of(at, np.array([1, 3]))
    assert marginal.turn is not None
    m = z @ marginal.parameters.weights[[0, 2]] + marginal.shift
    np.testing.assert_allclose(marginal.turn @ m, expected, rtol=1e-12)


@pytest.mark.parametrize("loss", ["none", "hinge", "squared"])
def test_the_certificates_matrix_times_w_is_the_gradient(loss: str, seed: int) -> None:
    cost, at = problem(seed, LOSSES[loss])
    check_matrix_of_the_certificate(cost, at, seed)


def test_the_objective_is_convex_in_j(seed: int) -> None:
    cost, _ = problem(seed, LOSSES["hinge"])
    check_convex_in_j(cost, seed, size=0.2, precisions=(1, 3))


def test_logarithms_of_products_lose_nothing() -> None:
    eta = np.concatenate([np.linspace(-800, 800, 1501), [0.0, -0.0]])[None].repeat(2, axis=0)
    softplus, minus = softplus_and_minus_sigmoid(eta.copy())
    np.testing.assert_allclose(softplus, np.logaddexp(0, eta).sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(-minus, np.exp(-np.logaddexp(0, -eta)), rtol=1e-13, atol=1e-300)
