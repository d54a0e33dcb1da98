"""Passes over many models at a time: those that are compiled are the ones that the families write out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from majorant.solvers.responses import RESPONSES, Poisson, Response, ResponseRows, response_rows

N, P, M = 300, 3, 5
Array = NDArray[np.float64]


def drawn(name: str, seed: int = 0, size: float = 1.0) -> tuple[ResponseRows, Array, Array]:
    """Return rows of a family, of more than one tile, and models of them; `size` multiplies the coefficients."""
    random, response = np.random.default_rng(seed), RESPONSES[name]
    z, offset = random.normal(size=(N, P)), random.normal(size=N)
    trials = random.integers(1, 40, N).astype(float)
    eta, one = offset[:, None] + z[:, :1], np.ones(1)
    y = np.asarray(response.draw(eta, one, trials[:, None], np.random.RandomState(seed)))[:, 0]
    rows = response_rows(response, z, y, offset, trials)
    dispersion = random.uniform(0.3, 3.0, M) if response.has_dispersion else np.ones(M)
    return rows, size * random.normal(size=(M, P)), dispersion


@pytest.mark.parametrize("size", [1.0, 1e-9, 300.0])
@pytest.mark.parametrize("name", RESPONSES)
def test_compiled_passes_are_those_of_the_family(name: str, size: float) -> None:
    rows, coef, dispersion = drawn(name, size=size)
    response, eta = rows.response, rows.predicted(coef)
    given = rows.y, eta, dispersion[:, None], rows.trials
    with np.errstate(over="ignore"):
        expected = response.log_density(*given)
        deviance = response.deviance(rows.y, eta, rows.trials)
    np.testing.assert_allclose(rows.log_density(coef, dispersion), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(rows.deviance(coef), deviance, rtol=1e-12, atol=1e-13)
    q = np.random.default_rng(1).uniform(size=(M, N))
    found = rows.sums(coef, dispersion, q)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = q * dispersion[:, None]
        score, curvature = scaled * response.score(*given), scaled * response.weight(*given)
        spread = q * response.spread(*given) if response.has_dispersion else np.zeros((M, N))
    one, other = np.tril_indices(P)
    products = rows.columns[one] * rows.columns[other]
    np.testing.assert_allclose(found[:, 0], q.sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(found[:, 1], spread.sum(axis=1), rtol=1e-12)
    for at, weights, columns in ((slice(2, 2 + P), score, rows.columns), (slice(2 + P, None), curvature, products)):
        terms = weights[:, None, :] * columns
        scale = np.abs(terms).sum(axis=2)  # of which rounding is a share, whatever the sum
        assert (np.abs(found[:, at] - terms.sum(axis=2)) <= 1e-13 * scale).all()


@pytest.mark.parametrize("name", RESPONSES)
def test_a_model_does_not_depend_on_those_beside_it(name: str) -> None:
    rows, coef, dispersion = drawn(name)
    q = np.random.default_rng(1).uniform(size=(M, N))
    density, sums = rows.log_density(coef, dispersion), rows.sums(coef, dispersion, q)
    for i in range(M):
        one = slice(i, i + 1)
        assert np.array_equal(rows.log_density(coef[one], dispersion[one]), density[one])
        assert np.array_equal(rows.sums(coef[one], dispersion[one], q[one]), sums[one])


@pytest.mark.parametrize("count", [0.0, 1.0, 1e6, 2.0**53])
def test_large_counts_lose_no_digits(count: float) -> None:
    y, away = np.full(4, count), np.array([1e-9, -1e-6, 1e-3, -0.3])
    eta = np.log(max(count, 1.0)) + away
    actual = eta - np.log(max(count, 1.0))  # as rounded
    rows = response_rows(RESPONSES["poisson"], np.ones((4, 1)), y, eta)
    with np.errstate(under="ignore"):
        series = sum(actual**j / np.prod(np.arange(1.0, j + 1)) for j in range(2, 25))
    expected = 2 * (count * series if count else np.exp(eta))
    np.testing.assert_allclose(rows.deviance(np.zeros((1, 1)))[0], expected, rtol=1e-9)


class Doubled(Poisson):
    """A family of a user's, derived from one of ours."""

    def log_density(self, y: Any, eta: Any, dispersion: Any, trials: Any) -> Any:
        return 2 * super().log_density(y, eta, dispersion, trials)


def test_a_derived_family_is_not_taken_for_the_one_it_is_derived_from() -> None:
    rows, coef, dispersion = drawn("poisson")
    derived: Response = Doubled()
    found = ResponseRows(derived, rows.columns, rows.y, rows.offset, rows.trials).log_density(coef, dispersion)
    np.testing.assert_allclose(found, 2 * rows.log_density(coef, dispersion), rtol=1e-12)


@pytest.mark.parametrize("name", RESPONSES)
def test_what_is_not_a_number_stays_so(name: str) -> None:
    rows, coef, dispersion = drawn(name)
    coef[1, 0] = np.nan
    found = rows.log_density(coef, dispersion)
    assert np.isnan(found[1]).all() and np.isfinite(found[[0, 2, 3, 4]]).all()


@pytest.mark.parametrize("name", RESPONSES)
def test_endless_predictors_have_no_density(name: str) -> None:
    rows, coef, dispersion = drawn(name)
    assert rows.trials is not None
    is_high = rows.y > (rows.trials / 2 if name == "binomial" else rows.y.mean())
    far = response_rows(rows.response, rows.columns.T, rows.y, np.where(is_high, -1e200, 1e200), rows.trials)
    with np.errstate(over="ignore"):
        density = far.log_density(coef, dispersion)
    assert not np.isnan(density).any() and (density < -300).all()
