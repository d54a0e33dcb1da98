"""Small harmoniums of all kinds of views, and their conditionals by enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import majorant as mj
from majorant.data.chunks import Block, Chunks
from majorant.models.harmonium.certificate import Curvature
from majorant.models.harmonium.layout import EpsilonInsensitive, Hinge, Layout, Loss, Parameters, Seen, Squared
from majorant.models.harmonium.pseudo_likelihood import Part, PseudoLikelihood

Array = NDArray[np.float64]

LOSSES: dict[str, Loss | None] = {
    "none": None,
    "hinge": Hinge(3),
    "epsilon": EpsilonInsensitive(0.1),
    "squared": Squared(),
}

MODELS: dict[str, Any] = {
    "Harmonium": mj.Harmonium,
    "hinge": mj.HarmoniumClassifier,
    "log": mj.HarmoniumClassifier,
    "epsilon_insensitive": mj.HarmoniumRegressor,
    "squared": mj.HarmoniumRegressor,
}
"""Estimators by the loss that they take."""


def layout(loss: Loss | None = None) -> Layout:
    """Four real variables, three bits, categories of three and two levels, the second of which counts twice."""
    return Layout(4, 3, (3, 2), (1.0, 2.0), 0 if loss is None else loss.n_scores)


def rows(seen: Seen, shape: Layout, n: int, random: np.random.Generator, *, weighted: bool = True) -> Part:
    """Random rows with some views, in blocks of three."""
    z = random.normal(size=(n, len(seen.gaussian)))
    x = sparse.csr_matrix((random.random((n, len(seen.bits))) < 0.4).astype(float))
    hot = [np.eye(shape.levels[v])[random.integers(0, shape.levels[v], n)] for v in seen.variables]
    c = sparse.csr_matrix(np.hstack(hot)) if hot else sparse.csr_matrix((n, 0))
    y: tuple[Any, ...] = ()
    if shape.n_scores:
        y = (random.integers(0, 3, n),) if shape.n_scores == 3 else (random.normal(size=n),)
    return Part(seen, Chunks(z, x, c, *y, weights=random.uniform(0.5, 2, n) if weighted else None, rows=3))


def parameters(shape: Layout, random: np.random.Generator, k: int = 3) -> Parameters:
    """Random ones of a proper model."""
    weights = 0.25 * random.normal(size=(shape.n_rows, k))
    return Parameters(weights, 0.4 * random.normal(size=shape.n_rows), 0.2 * random.normal(size=shape.n_gaussian) - 0.3)


def problem(seed: int, loss: Loss | None = None, *, missing: bool = False) -> tuple[PseudoLikelihood, Parameters]:
    """Rows of random values, some without some views where asked, and random parameters."""
    random = np.random.default_rng(seed)
    shape = layout(loss)
    whole = Seen.everything(shape)
    parts = [rows(whole, shape, 8, random)]
    if missing:
        parts.append(rows(Seen(np.array([0, 2]), whole.bits, (1,), np.array([1, 3])), shape, 7, random, weighted=False))
    centre = np.concatenate([np.zeros(4), random.random(8)])
    return PseudoLikelihood(shape, centre, tuple(parts), loss, 2.0), parameters(shape, random)


def log_joint(at: Parameters, centre: Array, values: Array) -> float:
    """log p(x, z) of one row of all variables, without its constant."""
    n = len(centre)
    z = values[: len(at.log_variance)]
    m = (values - centre) @ at.weights[:n]
    return float(values @ at.intercept[:n] - (z**2 / at.variance).sum() / 2 + m @ m / 2)


def log_pseudo_likelihood(shape: Layout, at: Parameters, centre: Array, values: Array) -> float:
    """Of one row: every bit and category against all its other values, all real variables by Gaussian conditioning."""
    now = log_joint(at, centre, values)
    g, total = shape.n_gaussian, 0.0
    for i in range(g, g + shape.n_bits):
        other = values.copy()
        other[i] = 1 - other[i]
        total += now - np.logaddexp(now, log_joint(at, centre, other))
    for slot, weight in zip(shape.of_variables, shape.level_weights, strict=True):
        states = []
        for level in range(slot.stop - slot.start):
            other = values.copy()
            other[slot] = np.eye(slot.stop - slot.start)[level]
            states.append(log_joint(at, centre, other))
        total += weight * (now - logsumexp(states))
    u = at.weights[:g]
    precision = np.diag(1 / at.variance) - u @ u.T
    discrete = (values[g:] - centre[g:]) @ at.weights[g : len(centre)]
    covariance = np.linalg.inv(precision)
    mean = covariance @ (at.intercept[:g] + u @ discrete)
    return total + float(multivariate_normal(mean, covariance).logpdf(values[:g]))


def dense(block: Block) -> Array:
    """All variables of the rows of a block side by side."""
    z, x, c = block.columns[:3]
    return np.hstack([z, x.toarray(), c.toarray()])


def net_gain(cost: PseudoLikelihood, at: Parameters) -> float:
    """What is maximised: the gain minus the weighted loss."""
    gain, loss = cost.gain(at)
    return gain - cost.loss_weight * loss


def check_gradient(cost: PseudoLikelihood, at: Parameters) -> None:
    """The value is that of `gain`, which has no gradient, and the gradient that of its differences."""
    value, gradient = cost.value_and_gradient(at)
    assert value == pytest.approx(net_gain(cost, at), rel=1e-13)
    flat, step = at.packed(), 1e-5
    for i in range(len(flat)):
        ahead, behind = flat.copy(), flat.copy()
        ahead[i] += step
        behind[i] -= step
        up, down = (net_gain(cost, Parameters.unpacked(v, cost.layout)) for v in (ahead, behind))
        assert gradient.packed()[i] == pytest.approx((up - down) / (2 * step), rel=1e-7, abs=1e-7 * abs(value))


def check_matrix_of_the_certificate(cost: PseudoLikelihood, at: Parameters, seed: int) -> None:
    """Its product with W is the gradient in W, by products and as a whole."""
    scale = np.random.default_rng(seed).uniform(0.5, 2, cost.layout.n_rows)
    curvature, w = Curvature(cost, at, scale), at.weights / scale[:, None]
    product = curvature.times(w)
    gradient = cost.value_and_gradient(at)[1].weights / cost.total_weight
    np.testing.assert_allclose(product / scale[:, None], gradient, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(curvature.matrix() @ w, product, rtol=1e-10, atol=1e-12)


def check_convex_in_j(cost: PseudoLikelihood, seed: int, *, size: float, precisions: tuple[float, float]) -> None:
    """Along lines in J = WW', linear terms and 1 / s, where a matrix of full rank stands for every J."""
    random, shape = np.random.default_rng(seed), cost.layout

    def value(j: Array, intercept: Array, precision: Array) -> float:
        values, vectors = np.linalg.eigh(j)
        weights = vectors * np.sqrt(np.maximum(values, 0))
        return -cost.value_and_gradient(Parameters(weights, intercept, -np.log(precision)))[0]

    for _ in range(10):
        ends = []
        for _ in range(2):
            w = size * random.normal(size=(shape.n_rows, shape.n_rows))
            ends.append((w @ w.T / 3, random.normal(size=shape.n_rows), random.uniform(*precisions, shape.n_gaussian)))
        j, intercept, precision = ((a + b) / 2 for a, b in zip(*ends, strict=True))
        assert value(j, intercept, precision) <= (value(*ends[0]) + value(*ends[1])) / 2 + 1e-9
