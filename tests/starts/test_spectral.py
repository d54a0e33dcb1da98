"""Spectral Experts: recovery from exact moments, quality figures, invariances, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from majorant.data import Chunks
from majorant.starts.moment_least_squares import MomentEquations
from majorant.starts.regression_moments import regression_moments
from majorant.starts.spectral import spectral_experts

from .regressions import distance, exact_moments, mixture, sample

Array = NDArray[Any]


class TestExactMoments:
    @pytest.mark.parametrize(("k", "d"), [(1, 1), (1, 3), (2, 2), (2, 4), (3, 3), (3, 5)])
    @pytest.mark.parametrize("noise", [0.0, 0.5])
    @pytest.mark.parametrize("whiten_first", [True, False])
    @pytest.mark.parametrize("shift", range(3))
    def test_the_mixture_is_recovered(
        self, k: int, d: int, noise: float, whiten_first: bool, shift: int, seed: int
    ) -> None:
        x, proportions, coefficients = mixture(k, d, seed + shift)
        moments = exact_moments(x, proportions, coefficients, noise)
        fit = spectral_experts(moments, k, noise_variance=noise, penalties=(0.0, 0.0), whiten_first=whiten_first)
        assert distance((fit.proportions, fit.coefficients), (proportions, coefficients)) < 1e-8
        assert fit.deflation_residual < 1e-8 and fit.misfit < 1e-12 and not fit.is_clipped
        assert fit.eigen_gap > 0 and fit.noise_variance == noise
        assert (np.diff(fit.proportions) <= 0).all()

    def test_an_unknown_noise_is_chosen_among_shares(self, seed: int) -> None:
        x, proportions, coefficients = mixture(2, 3, seed)
        moments = exact_moments(x, proportions, coefficients, 0.5)
        fit = spectral_experts(moments, 2)
        known = spectral_experts(moments, 2, noise_variance=fit.noise_variance)
        assert fit.misfit == known.misfit
        assert distance((fit.proportions, fit.coefficients), (proportions, coefficients)) < 0.3
        assert 0 < fit.noise_variance < moments.unexplained(1)

    def test_penalties_take_little_away(self, seed: int) -> None:
        x, proportions, coefficients = mixture(2, 3, seed)
        fit = spectral_experts(exact_moments(x, proportions, coefficients, 0.5), 2, noise_variance=0.5)
        assert distance((fit.proportions, fit.coefficients), (proportions, coefficients)) < 0.05

    def test_penalties_of_the_paper_are_in_the_units_of_the_data(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        x = np.column_stack([np.ones(4000), random.normal(size=(4000, 2))])
        lines = random.normal(size=(2, 3))
        y = np.sum(x * lines[random.integers(0, 2, 4000)], axis=1) + 0.3 * random.normal(size=4000)
        x, y = x / np.sqrt(np.mean(x**2, axis=0)), y / np.sqrt(np.mean(y**2))
        root = np.sqrt(4000)
        noise = 0.5 * regression_moments(Chunks(x, y)).unexplained(1)

        def fitted(scale: float, penalties: Any) -> Array:
            moments = regression_moments(Chunks(scale * x, y))
            found = spectral_experts(moments, 2, noise_variance=noise, penalties=penalties, whiten_first=False)
            return np.asarray(scale * found.coefficients)

        printed = fitted(1.0, "paper")
        np.testing.assert_allclose(printed, fitted(1.0, (1e-5 / root, 1e-3 / root)), rtol=1e-6)
        np.testing.assert_allclose(fitted(3.0, None), fitted(1.0, None), rtol=1e-6)
        assert np.abs(fitted(0.1, "paper") - printed).max() > 1e-4

    def test_the_misfit_is_that_of_the_moment_equations(self, seed: int) -> None:
        moments = exact_moments(*mixture(2, 3, seed), 0.5)
        fit = spectral_experts(moments, 2, noise_variance=0.2)
        equations = MomentEquations(moments, 2)
        assert fit.misfit == equations.misfit(fit.proportions, fit.coefficients, 0.2) > 1e-4


class TestQuality:
    def test_a_component_too_many_shows(self, seed: int) -> None:
        moments = exact_moments(*mixture(2, 4, seed), 0.1)
        right = spectral_experts(moments, 2, noise_variance=0.1)
        wrong = spectral_experts(moments, 3, noise_variance=0.1)
        assert right.eigen_gap > 10 * abs(wrong.eigen_gap)
        assert wrong.is_clipped and not right.is_clipped

    @pytest.mark.parametrize("k", [1, 2])
    def test_a_single_line_without_noise(self, k: int, seed: int) -> None:
        x = np.random.default_rng(seed).normal(size=(100, 2))
        fit = spectral_experts(regression_moments(Chunks(x, x @ [1.0, 2.0])), k)
        assert np.isfinite(fit.coefficients).all() and fit.is_clipped == (k == 2)
        if k == 1:
            np.testing.assert_allclose(fit.coefficients, [[1, 2]], atol=0.01)

    def test_components_are_kept_in_scale(self, seed: int) -> None:
        """Few rows of noise: no component may explain more than the whole of the response."""
        random = np.random.default_rng(seed)
        for _ in range(20):
            x, y = random.normal(size=(12, 3)), random.normal(size=12)
            fit = spectral_experts(regression_moments(Chunks(x, y)), 3, noise_variance=0.0)
            assert np.isfinite(fit.coefficients).all() and fit.proportions.sum() == pytest.approx(1)
            assert fit.proportions.min() > 0.01 / 3
            assert (np.mean((x @ fit.coefficients.T) ** 2, axis=0) <= 3 / 0.02 * np.mean(y**2) * (1 + 1e-9)).all()


class TestSamples:
    def test_units_and_order_of_columns_do_not_matter(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        x, truth = random.normal(size=(5000, 3)), (np.array([0.6, 0.4]), np.array([[2.0, 0, 1], [-1.0, 1, 0]]))
        y, _ = sample(x, *truth, 0.25, random)
        unit, order = np.array([1e-5, 1.0, 1e4]), np.array([2, 0, 1])
        plain = spectral_experts(regression_moments(Chunks(x, y)), 2)
        moved = spectral_experts(regression_moments(Chunks((x * unit)[:, order], 1e3 * y)), 2)
        np.testing.assert_allclose(moved.coefficients * unit[order] / 1e3, plain.coefficients[:, order], atol=1e-4)
        assert moved.noise_variance == pytest.approx(1e6 * plain.noise_variance, rel=1e-6)

    def test_a_constant_column(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        x = random.normal(size=(40000, 1))
        truth = np.array([0.5, 0.5]), np.array([[2.0, 2.0], [-1.0, 2.0]])
        y, _ = sample(np.column_stack([x, np.ones(40000)]), *truth, 0.1, random)
        fit = spectral_experts(regression_moments(Chunks(x, y), constant=True), 2, noise_variance=0.1)
        assert distance((fit.proportions, fit.coefficients), truth) < 0.2

    def test_collinear_features(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        x = random.normal(size=(20000, 2))
        truth = np.array([0.5, 0.5]), np.array([[2.0, 1.0], [-1.0, 0.0]])
        y, _ = sample(x, *truth, 0.1, random)
        moments = regression_moments(Chunks(np.column_stack([x, x[:, 0]]), y))
        fit = spectral_experts(moments, 2, noise_variance=0.1)
        effect = np.column_stack([fit.coefficients[:, 0] + fit.coefficients[:, 2], fit.coefficients[:, 1]])
        assert distance((fit.proportions, effect), truth) < 0.5


class TestRefusals:
    def test_more_components_than_features(self) -> None:
        x = np.random.default_rng(0).normal(size=(50, 2))
        with pytest.raises(ValueError, match="3 components and 2 features: ask for fewer components"):
            spectral_experts(regression_moments(Chunks(x, x[:, 0])), 3)
        with pytest.raises(ValueError, match="3 features, the constant among them"):
            spectral_experts(regression_moments(Chunks(x, x[:, 0]), constant=True), 4)

    def test_bad_parameters(self) -> None:
        x = np.random.default_rng(0).normal(size=(50, 2))
        moments = regression_moments(Chunks(x, x[:, 0]))
        with pytest.raises(ValueError, match="noise_variance must be at least 0"):
            spectral_experts(moments, 2, noise_variance=-1.0)
        with pytest.raises(ValueError, match=r"penalties\[1\] must be at least 0"):
            spectral_experts(moments, 2, penalties=(0.0, -1.0))
        with pytest.raises(ValueError, match="penalties must be one of 'paper', or two numbers"):
            spectral_experts(moments, 2, penalties="papers")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="k must be at least 1"):
            spectral_experts(moments, 0)

    def test_nothing_to_take_apart(self) -> None:
        x = np.random.default_rng(0).normal(size=(50, 2))
        with pytest.raises(ValueError, match="zero throughout"):
            spectral_experts(regression_moments(Chunks(x, np.zeros(50))), 2)
        with pytest.raises(ValueError, match="give a smaller noise_variance"):
            spectral_experts(regression_moments(Chunks(x, x[:, 0])), 2, noise_variance=100.0)
