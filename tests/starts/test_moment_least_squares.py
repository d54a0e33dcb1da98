"""Moment least squares: derivatives, recovery from exact moments, invariances, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from majorant.data import Chunks
from majorant.solvers.symmetric_tensors import powers
from majorant.starts.moment_least_squares import NOISE_FLOOR, MomentEquations, moment_least_squares, power_derivatives
from majorant.starts.regression_moments import regression_moments
from majorant.starts.spectral import spectral_experts

from .regressions import distance, exact_moments, mixture, sample

Array = NDArray[Any]


def differences(f: Any, at: Array, step: float = 1e-6) -> Array:
    return np.column_stack([(f(at + h) - f(at - h)) / (2 * step) for h in step * np.eye(len(at))])


class TestEquations:
    @pytest.mark.parametrize(("k", "d"), [(1, 1), (1, 3), (2, 2), (3, 2), (4, 4)])
    def test_the_jacobian_by_differences(self, k: int, d: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        x = random.normal(size=(300, d))
        equations = MomentEquations(regression_moments(Chunks(x, x.sum(axis=1) + random.normal(size=300))), k)
        theta = np.concatenate([random.normal(size=k - 1 + k * d), [0.4]])
        expected = differences(equations.value, theta)
        assert expected.shape == (equations.n_residuals, len(theta))
        np.testing.assert_allclose(equations.jacobian(theta), expected, atol=1e-7 * np.abs(expected).max())

    @pytest.mark.parametrize("order", [1, 2, 3])
    def test_derivatives_of_products(self, order: int, seed: int) -> None:
        b = np.random.default_rng(seed).normal(size=3)
        expected = differences(lambda at: powers(at, order), b)
        np.testing.assert_allclose(power_derivatives(b, order), expected, atol=1e-8)

    def test_parameters_pack_and_unpack(self, seed: int) -> None:
        x, proportions, coefficients = mixture(3, 2, seed)
        equations = MomentEquations(exact_moments(x, proportions, coefficients, 0.3), 3)
        found = equations.unpack(equations.pack(proportions, coefficients, 0.3))
        np.testing.assert_allclose(found[0], proportions, rtol=1e-12)
        np.testing.assert_array_equal(found[1], coefficients)
        assert found[2] == 0.3

    @pytest.mark.parametrize(("k", "d"), [(1, 2), (2, 3), (3, 3), (5, 2)])
    def test_the_truth_solves_them(self, k: int, d: int, seed: int) -> None:
        x, proportions, coefficients = mixture(k, d, seed)
        equations = MomentEquations(exact_moments(x, proportions, coefficients, 0.3), k)
        assert np.abs(equations.residuals(proportions, coefficients, 0.3)).max() < 1e-6  # the prior's own 1e-7
        assert equations.misfit(proportions, coefficients, 0.6) > 1e-4


class TestExactMoments:
    @pytest.mark.parametrize(("k", "d"), [(1, 1), (1, 3), (2, 2), (2, 4), (3, 3), (4, 4)])
    @pytest.mark.parametrize("noise", [0.0, 0.3])
    @pytest.mark.parametrize("known", [True, False])
    def test_the_mixture_is_recovered(self, k: int, d: int, noise: float, known: bool, seed: int) -> None:
        x, proportions, coefficients = mixture(k, d, seed)
        moments = exact_moments(x, proportions, coefficients, noise)
        fit = moment_least_squares(moments, k, noise_variance=noise if known else None)
        assert distance((fit.proportions, fit.coefficients), (proportions, coefficients)) < 1e-8
        floor = NOISE_FLOOR * moments.unexplained(1)
        assert fit.noise_variance == pytest.approx(noise if known else max(noise, floor), abs=1e-7)
        assert (np.diff(fit.proportions) <= 0).all() and fit.proportions.sum() == pytest.approx(1)

    def test_more_components_than_features(self, seed: int) -> None:
        x, proportions, coefficients = mixture(4, 3, seed)
        fit = moment_least_squares(exact_moments(x, proportions, coefficients, 0.1), 4, noise_variance=0.1)
        assert fit.misfit < 1e-10
        assert distance((fit.proportions, fit.coefficients), (proportions, coefficients)) < 1e-5

    def test_more_unknowns_than_equations(self, seed: int) -> None:
        """Nothing is identified, but the moments are met."""
        x, proportions, coefficients = mixture(6, 1, seed)
        fit = moment_least_squares(exact_moments(x, proportions, coefficients, 0.1), 6)
        assert fit.misfit < 1e-8 and np.isfinite(fit.coefficients).all()

    def test_collinear_features_do_no_harm(self, seed: int) -> None:
        x, proportions, coefficients = mixture(2, 3, seed)
        doubled = np.column_stack([x, x[:, 0]])
        full = np.column_stack([coefficients, np.zeros(2)])
        fit = moment_least_squares(exact_moments(doubled, proportions, full, 0.1), 2)
        effect = fit.coefficients[:, :3].copy()
        effect[:, 0] += fit.coefficients[:, 3]
        assert distance((fit.proportions, effect), (proportions, coefficients)) < 1e-6


class TestSamples:
    def test_it_is_close_to_the_truth(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        x = np.column_stack([random.normal(size=(40000, 2)), np.ones(40000)])
        truth = np.array([0.6, 0.4]), np.array([[2.0, 0.0, 1.0], [-1.0, 1.0, 0.0]])
        y, _ = sample(x, *truth, 0.25, random)
        fit = moment_least_squares(regression_moments(Chunks(x[:, :2], y), constant=True), 2)
        assert distance((fit.proportions, fit.coefficients), truth) < 0.2
        assert fit.noise_variance == pytest.approx(0.25, abs=0.2)
        assert fit.n_hits >= 3 and all(other.misfit >= fit.misfit for other in fit.others)

    def test_features_and_response_in_other_units(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        x, truth = random.normal(size=(5000, 2)), (np.array([0.5, 0.5]), np.array([[2.0, 0.0], [-1.0, 1.0]]))
        y, _ = sample(x, *truth, 0.25, random)
        unit = np.array([1e-5, 1e4])
        plain = moment_least_squares(regression_moments(Chunks(x, y)), 2)
        scaled = moment_least_squares(regression_moments(Chunks(x * unit, 1e-3 * y)), 2)
        np.testing.assert_allclose(1e3 * scaled.coefficients * unit, plain.coefficients, atol=1e-5)
        np.testing.assert_allclose(1e6 * scaled.noise_variance, plain.noise_variance, rtol=1e-4)

    def test_columns_may_be_permuted(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        x, truth = random.normal(size=(5000, 3)), (np.array([0.6, 0.4]), np.array([[2.0, 0, 1], [-1.0, 1, 0]]))
        y, _ = sample(x, *truth, 0.25, random)
        order = np.array([2, 0, 1])
        plain = moment_least_squares(regression_moments(Chunks(x, y)), 2)
        moved = moment_least_squares(regression_moments(Chunks(x[:, order], y)), 2)
        np.testing.assert_allclose(moved.coefficients, plain.coefficients[:, order], atol=1e-5)

    def test_it_is_a_function_of_the_moments(self, seed: int) -> None:
        x, proportions, coefficients = mixture(2, 2, seed)
        moments = exact_moments(x, proportions, coefficients, 0.1)
        np.testing.assert_array_equal(
            moment_least_squares(moments, 2).coefficients, moment_least_squares(moments, 2).coefficients
        )

    @pytest.mark.parametrize("k", [1, 2, 3])
    @pytest.mark.parametrize("noise", [0.0, 1.0])
    def test_a_single_line(self, k: int, noise: float, seed: int) -> None:
        """More components than there are: finite, and as good as one."""
        random = np.random.default_rng(seed)
        x = random.normal(size=(500, 2))
        y = x @ [1.0, 2.0] + np.sqrt(noise) * random.normal(size=500)
        fit = moment_least_squares(regression_moments(Chunks(x, y)), k)
        assert np.isfinite(fit.coefficients).all() and np.isfinite(fit.misfit)
        np.testing.assert_allclose(fit.proportions @ fit.coefficients, [1, 2], atol=0.3)


@pytest.mark.parametrize("shift", range(4))
@pytest.mark.parametrize("kind", ["few rows", "one row", "two values", "constant response", "noise alone"])
def test_degenerate_data_give_finite_starts(kind: str, shift: int, seed: int) -> None:
    random = np.random.default_rng(100 * seed + shift)
    n, d, k = int(random.integers(2, 30)), int(random.integers(1, 5)), int(random.integers(1, 6))
    x, y = random.normal(size=(n, d)), random.normal(size=n)
    if kind == "one row":
        x = np.repeat(x[:1], n, axis=0)
    elif kind == "two values":
        x = random.integers(0, 2, (n, d)).astype(float)
    elif kind == "constant response":
        y = np.ones(n)
    elif kind == "noise alone":
        x = np.repeat(x, 20, axis=0)
        y = random.normal(size=len(x))
    moments = regression_moments(Chunks(x * 10.0 ** random.integers(-8, 9, d), y * 10.0 ** random.integers(-8, 9)))
    fits = [moment_least_squares(moments, k, n_starts=3)]
    if k <= d:
        fits.append(spectral_experts(moments, k))
    for fit in fits:
        assert np.isfinite(fit.coefficients).all() and np.isfinite(fit.misfit) and 0 <= fit.noise_variance < np.inf
        assert fit.proportions.sum() == pytest.approx(1) and fit.proportions.min() >= 0


def test_bad_input() -> None:
    x = np.random.default_rng(0).normal(size=(50, 2))
    moments = regression_moments(Chunks(x, x[:, 0]))
    with pytest.raises(ValueError, match="k must be at least 1"):
        moment_least_squares(moments, 0)
    with pytest.raises(TypeError, match="n_starts must be a whole number"):
        moment_least_squares(moments, 2, n_starts=1.5)  # type: ignore[arg-type]
    for noise in (-1.0, np.nan):
        with pytest.raises(ValueError, match="noise_variance must be at least 0"):
            moment_least_squares(moments, 2, noise_variance=noise)
    with pytest.raises(ValueError, match="zero throughout"):
        moment_least_squares(regression_moments(Chunks(x, np.zeros(50))), 2)
