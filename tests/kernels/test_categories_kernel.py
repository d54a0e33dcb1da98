"""Whole runs of EM of categorical columns, against the descent of the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from majorant import _kernels
from majorant.data.chunks import Chunks
from majorant.data.units import blocks_of
from majorant.densities import Categorical, Ordinal, Product
from majorant.engine.descent import descend
from majorant.engine.mixture import Mixture, OnData
from majorant.laws import Independent


def started(k: int, weights: Any = None, *, n: int = 60, runs: int = 3, name: str = "") -> tuple[Mixture, Chunks, Any]:
    """Codes of four columns, one of them with a single code, some cells missing; and random starts."""
    random = np.random.default_rng(k)
    sizes = (3, 1, 2, 5)
    codes = np.column_stack([random.integers(0, size, n).astype(float) for size in sizes])
    codes[random.random(codes.shape) < 0.2] = np.nan
    density: Any = Categorical(sizes)
    mixture = Mixture(Product([(name, density)]) if name else density, Independent(), k)
    data = Chunks(blocks_of([codes], weights))
    q = random.dirichlet(np.ones(k), (runs, n)).transpose(0, 2, 1)
    return mixture, data, mixture.started(np.ascontiguousarray(q), data)


@pytest.mark.parametrize("k", [1, 2, 4, 5, 8, 9, 17, 33, 40])
@pytest.mark.parametrize("max_iter", [0, 1, 2, 7, 12])
def test_a_run_takes_the_steps_of_the_engine(k: int, max_iter: int) -> None:
    mixture, data, theta = started(k, np.random.default_rng(0).uniform(0, 3, 60))
    expected = descend(OnData(mixture, data), theta, tol=0.0, max_iter=max_iter)
    found = mixture.density.fused_runs(mixture, data, theta, tol=0.0, max_iter=max_iter)  # type: ignore[attr-defined]
    np.testing.assert_allclose(found.objective, expected.objective, rtol=1e-11)
    np.testing.assert_allclose(found.theta.density, expected.theta.density, atol=1e-8)
    np.testing.assert_allclose(found.theta.law.weights, expected.theta.law.weights, atol=1e-8)
    np.testing.assert_allclose(found.paths, expected.paths, rtol=1e-11)
    if k > 1:  # one component is at its maximum after a step, where rounding decides
        np.testing.assert_array_equal(found.n_iter, expected.n_iter)


@pytest.mark.parametrize("name", ["", "item"])
def test_a_run_ends_where_the_engine_does(name: str) -> None:
    mixture, data, theta = started(3, n=200, name=name)
    expected = descend(OnData(mixture, data), theta, tol=1e-9, max_iter=5000)
    found = mixture.density.fused_runs(mixture, data, theta, tol=1e-9, max_iter=5000)  # type: ignore[attr-defined]
    assert found.converged.all()
    np.testing.assert_allclose(found.objective, expected.objective, atol=1e-4)
    again = OnData(mixture, data).seen(found.theta)
    np.testing.assert_allclose(again.objective, found.objective, rtol=1e-12)
    assert (np.diff(found.paths[0]) < 1e-9).all()


def test_what_the_kernel_does_not_know_goes_the_way_of_the_engine() -> None:
    _, data, _ = started(2)
    ordinal = Mixture(Ordinal((3, 1, 2, 5)), Independent(), 2)
    theta = ordinal.started(np.random.default_rng(0).dirichlet(np.ones(2), (1, 60)).transpose(0, 2, 1), data)
    expected = descend(OnData(ordinal, data), theta, tol=1e-8, max_iter=50)
    found = ordinal.density.fused_runs(ordinal, data, theta, tol=1e-8, max_iter=50)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(found.objective, expected.objective)


def test_rows_of_no_weight_count_for_nothing_and_zeros_stay() -> None:
    codes = np.array([[0], [1], [-1], [0]], dtype=np.int32)
    weights, p = np.array([0.5, 0.5]), np.array([[1.0, 0.0], [0.5, 0.5]])
    path = np.empty(40)
    free, steps, _ = _kernels.category_em(
        codes, np.array([0, 2]), np.array([3.0, 1.0, 1.0, 0.0]), 0.0, weights, p, path
    )
    assert p[0, 1] < 1e-299  # as in the engine, what is left of a zero is as good as none
    assert free == pytest.approx(-3 * np.log(0.75) - np.log(0.25))
    assert steps <= 40
