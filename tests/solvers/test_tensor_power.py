"""Whitening, and symmetric tensors taken apart by the power method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from majorant.solvers import symmetric_tensor_power, whitening

Array = NDArray[Any]


def cubes(weights: Array, vectors: Array) -> Array:
    return np.einsum("h,ha,hb,hc->abc", weights, vectors, vectors, vectors)


def orthonormal(k: int, d: int, seed: int) -> Array:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0][:k]


class TestPowerMethod:
    @pytest.mark.parametrize(("k", "d"), [(1, 1), (1, 4), (2, 2), (3, 5), (6, 6)])
    @pytest.mark.parametrize("shift", range(5))
    def test_orthogonal_terms_are_recovered(self, k: int, d: int, shift: int, seed: int) -> None:
        vectors = orthonormal(k, d, seed + shift)
        weights = np.random.default_rng(seed + shift).uniform(0.5, 3, k)
        found = symmetric_tensor_power(cubes(weights, vectors), k)
        order = np.argmax(np.abs(found.vectors @ vectors.T), axis=1)
        assert sorted(order) == list(range(k))
        np.testing.assert_allclose(found.eigenvalues, weights[order], rtol=1e-10)
        np.testing.assert_allclose(found.vectors, vectors[order], atol=1e-10)
        assert found.residual < 1e-10

    def test_signs_make_eigenvalues_positive(self) -> None:
        vectors = orthonormal(3, 3, 1)
        found = symmetric_tensor_power(cubes(np.array([-2.0, 1.0, -0.5]), vectors), 3)
        np.testing.assert_allclose(np.sort(found.eigenvalues), [0.5, 1.0, 2.0], rtol=1e-10)

    def test_what_is_left_is_reported(self) -> None:
        vectors = orthonormal(3, 4, 2)
        found = symmetric_tensor_power(cubes(np.array([3.0, 2.0, 1.0]), vectors), 2)
        np.testing.assert_allclose(found.eigenvalues, [3.0, 2.0], rtol=1e-10)
        assert found.residual == pytest.approx(1 / np.sqrt(14), rel=1e-8)

    def test_small_noise_moves_terms_little(self, seed: int) -> None:
        random, vectors = np.random.default_rng(seed), orthonormal(3, 3, seed)
        noise = random.normal(size=(3, 3, 3))
        noise = sum(noise.transpose(p) for p in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]) / 6
        found = symmetric_tensor_power(cubes(np.ones(3), vectors) + 1e-4 * noise, 3)
        assert np.abs(np.abs(found.vectors @ vectors.T).max(axis=1) - 1).max() < 1e-5
        np.testing.assert_allclose(found.eigenvalues, 1, atol=2e-3)

    def test_coordinates_may_be_permuted(self) -> None:
        T = cubes(np.array([3.0, 2.0, 1.2]), orthonormal(3, 4, 3))
        order = np.array([2, 0, 3, 1])
        found, moved = symmetric_tensor_power(T, 3), symmetric_tensor_power(T[np.ix_(order, order, order)], 3)
        np.testing.assert_allclose(moved.eigenvalues, found.eigenvalues, rtol=1e-10)
        np.testing.assert_allclose(moved.vectors, found.vectors[:, order], atol=1e-10)

    def test_it_is_a_function_of_its_tensor(self) -> None:
        T = cubes(np.ones(3), orthonormal(3, 3, 4))
        np.testing.assert_array_equal(symmetric_tensor_power(T, 3).vectors, symmetric_tensor_power(T, 3).vectors)

    def test_a_tensor_of_zeros(self) -> None:
        found = symmetric_tensor_power(np.zeros((2, 2, 2)), 2)
        assert found.residual == 0 and not found.eigenvalues.any()

    @pytest.mark.parametrize(
        ("T", "k", "message"),
        [
            (np.zeros((2, 2)), 1, "cube"),
            (np.zeros((2, 3, 2)), 1, "cube"),
            (np.full((2, 2, 2), np.nan), 1, "finite"),
            (np.zeros((2, 2, 2)), 3, "k must be between 1 and 2"),
            (np.zeros((2, 2, 2)), 0, "k must be between 1 and 2"),
            (np.arange(8.0).reshape(2, 2, 2), 1, "symmetric"),
        ],
    )
    def test_what_is_no_symmetric_tensor_is_refused(self, T: Array, k: int, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            symmetric_tensor_power(T, k)


class TestWhitening:
    @pytest.mark.parametrize(("k", "d"), [(1, 1), (2, 5), (4, 4)])
    def test_components_become_orthonormal(self, k: int, d: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        B, shares = random.normal(size=(k, d)), random.dirichlet(np.full(k, 5.0))
        M2 = np.einsum("h,ha,hb->ab", shares, B, B)
        white = whitening(M2, k)
        turned = np.sqrt(shares)[:, None] * B @ white.whiten
        np.testing.assert_allclose(turned @ turned.T, np.eye(k), atol=1e-10)
        np.testing.assert_allclose(white.whiten.T @ M2 @ white.whiten, np.eye(k), atol=1e-10)
        np.testing.assert_allclose(white.unwhiten.T @ white.whiten, np.eye(k), atol=1e-12)
        np.testing.assert_allclose(white.unwhiten @ white.unwhiten.T, M2, atol=1e-10 * np.abs(M2).max())

    def test_a_whitened_third_moment_gives_the_components_back(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        B, shares = random.normal(size=(3, 5)), np.array([0.5, 0.3, 0.2])
        white = whitening(np.einsum("h,ha,hb->ab", shares, B, B), 3)
        T = np.einsum("abc,ai,bj,ck->ijk", cubes(shares, B), white.whiten, white.whiten, white.whiten)
        parts = symmetric_tensor_power(T, 3)
        order = np.argsort(parts.eigenvalues)  # largest share first
        np.testing.assert_allclose(parts.eigenvalues[order] ** -2, shares, rtol=1e-8)
        found = (parts.eigenvalues[:, None] * parts.vectors @ white.unwhiten.T)[order]
        np.testing.assert_allclose(found, B, atol=1e-8)

    def test_a_floor_raises_eigenvalues_and_reports_them_as_they_were(self) -> None:
        white = whitening(np.diag([1.0, -0.5]), 2, floor=0.01)
        np.testing.assert_allclose(white.eigenvalues, [1.0, -0.5])
        np.testing.assert_allclose(np.abs(white.unwhiten), [[1.0, 0.0], [0.0, 0.1]], atol=1e-12)

    @pytest.mark.parametrize(
        ("M2", "k", "message"),
        [
            (np.eye(2), 3, "k must be between 1 and the 2 rows"),
            (np.diag([1.0, 0.0]), 2, "only 1 positive eigenvalues"),
            (-np.eye(2), 1, "only 0 positive"),
            (np.ones((2, 3)), 1, "square"),
            (np.full((2, 2), np.inf), 1, "finite"),
        ],
    )
    def test_what_cannot_be_whitened_is_refused(self, M2: Array, k: int, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            whitening(M2, k)
