"""The kernels of Gaussian mixtures against plain numpy: all shapes, both precisions, all instruction sets, extremes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from majorant import _kernels
from majorant.engine.triangles import symmetric
from majorant.solvers.covariance_types import COVARIANCE_TYPES, COVARIANCES, CovarianceType
from majorant.solvers.gaussian import Mixture, moments
from tests.gaussian import m_step
from tests.kernels.instruction_sets import answers_under

from . import reference

Array = NDArray[Any]

each_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
each_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["double", "single"])
each_weighting = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
ROUNDING = {np.float64: 1e-13, np.float32: 4e-6}


def mixture_of(seed: int, k: int, d: int, covariance_type: CovarianceType, spread: float = 2.0) -> Mixture:
    """Random components; their means are of single precision, as those of a fit to single rows."""
    random = np.random.default_rng(seed)
    shape = COVARIANCES[covariance_type].shape(k, d)
    if covariance_type in ("full", "tied"):
        root = random.normal(size=(*shape[:-1], d + 3))
        covariances = root @ np.swapaxes(root, -1, -2) / (d + 3) + 0.05 * np.eye(d)
    else:
        covariances = random.gamma(2.0, 0.5, size=shape) + 0.05
    means = (spread * random.normal(size=(k, d))).astype(np.float32).astype(np.float64)
    return Mixture(random.dirichlet(np.full(k, 2.0)), means, covariances, covariance_type)


def rows_of(seed: int, n: int, mixture: Mixture, dtype: type) -> Array:
    random = np.random.default_rng(seed)
    states = random.integers(0, mixture.n_components, n)
    return (mixture.means[states] + random.normal(size=(n, mixture.n_features))).astype(dtype)


def weights_of(weighted: bool, n: int) -> Array | None:
    if not weighted:
        return None
    weights = np.random.default_rng(9).gamma(1.0, size=n)
    weights[:: max(n // 3, 2)] = 0.0
    return weights if weights.any() else None


def matrices(mixture: Mixture) -> Array:
    """Covariance matrices (k, d, d) of any type."""
    k, d = mixture.means.shape
    covariances = mixture.covariances
    if covariance_is_matrix(mixture.covariance_type):
        return np.broadcast_to(covariances, (k, d, d))
    return np.stack([np.diag(np.broadcast_to(c, d)) for c in covariances])


def covariance_is_matrix(covariance_type: str) -> bool:
    return covariance_type in ("full", "tied")


def assert_agrees_with_numpy(mixture: Mixture, x: Array, weights: Array | None, beta: float = 1.0) -> None:
    """All outputs of the pass, and energies and moments on their own, against numpy."""
    rounding = ROUNDING[x.dtype.type]
    wanted = reference.gauss_energies(x, mixture.weights, mixture.means, matrices(mixture))
    energies = mixture.energies(x)
    finite = np.isfinite(wanted)
    assert energies.dtype == x.dtype and (np.isfinite(energies) == finite).all()
    scale = np.abs(wanted[finite]).max() + x.shape[1]
    np.testing.assert_allclose(energies[finite], wanted[finite], rtol=rounding, atol=rounding * scale)
    table = energies.astype(np.float64)  # what follows is exact for these
    least = table.min(axis=1, keepdims=True)
    if np.isinf(beta):
        q = np.eye(table.shape[1])[table.argmin(axis=1)]
        free, entropy = least[:, 0], 0.0
    else:
        q = np.exp(-beta * (table - least))
        total = q.sum(axis=1, keepdims=True)
        q /= total
        free = (least - np.log(total) / beta)[:, 0]
        entropy = np.sum(q * np.where(finite, table, 0.0), axis=1) - free
    each, found = mixture.posteriors(x, beta)
    np.testing.assert_allclose(each, free, rtol=rounding, atol=rounding * scale)
    np.testing.assert_allclose(found, q, atol=rounding * (1 + scale * min(beta, 1e3)))
    w = np.ones(len(x)) if weights is None else weights
    free_sum, entropy_sum, s = mixture.tight_moments(x, weights, beta)
    assert free_sum == pytest.approx(w @ free, rel=rounding, abs=rounding * scale * w.sum())
    assert entropy_sum == pytest.approx(np.sum(w * entropy), rel=rounding, abs=rounding * scale * w.sum())
    sums, sizes = reference.gauss_moments(x, weights, mixture.means, found.astype(np.float64), mixture.covariance_type)
    assert (np.abs(s - sums) <= rounding * (sizes + 1e-300)).all()
    again = moments(x, weights, found, mixture.means, mixture.covariance_type)
    assert (np.abs(again - sums) <= rounding * (sizes + 1e-300)).all()


@each_dtype
@each_type
class TestPass:
    @pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 7, 8, 10, 33])
    def test_columns(self, d: int, covariance_type: CovarianceType, dtype: type) -> None:
        mixture = mixture_of(d, 3, d, covariance_type)
        assert_agrees_with_numpy(mixture, rows_of(0, 333, mixture, dtype), weights_of(True, 333))

    @pytest.mark.parametrize("k", [1, 2, 10, 60])
    def test_components(self, k: int, covariance_type: CovarianceType, dtype: type) -> None:
        mixture = mixture_of(k, k, 3, covariance_type)
        assert_agrees_with_numpy(mixture, rows_of(0, 200, mixture, dtype), None)

    @each_weighting
    @pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 127, 128, 129, 256, 257, 1000])
    def test_rows(self, n: int, weighted: bool, covariance_type: CovarianceType, dtype: type) -> None:
        mixture = mixture_of(1, 3, 4, covariance_type)
        assert_agrees_with_numpy(mixture, rows_of(0, n, mixture, dtype), weights_of(weighted, n))

    @pytest.mark.parametrize("beta", [0.01, 0.5, 3.0, np.inf])
    def test_temperatures(self, beta: float, covariance_type: CovarianceType, dtype: type) -> None:
        mixture = mixture_of(1, 4, 3, covariance_type, spread=0.5)
        assert_agrees_with_numpy(mixture, rows_of(0, 150, mixture, dtype), weights_of(True, 150), beta)

    def test_wide_rows(self, covariance_type: CovarianceType, dtype: type) -> None:
        mixture = mixture_of(1, 2, 180, covariance_type, spread=0.1)
        assert_agrees_with_numpy(mixture, rows_of(0, 70, mixture, dtype), None)

    def test_an_absent_component_takes_nothing(self, covariance_type: CovarianceType, dtype: type) -> None:
        mixture = mixture_of(1, 3, 2, covariance_type)
        mixture = Mixture(np.array([0.5, 0.0, 0.5]), mixture.means, mixture.covariances, covariance_type)
        x = rows_of(0, 100, mixture, dtype)
        assert_agrees_with_numpy(mixture, x, None)
        assert not mixture.posteriors(x)[1][:, 1].any() and not mixture.tight_moments(x, None)[2][1].any()

    @pytest.mark.parametrize("beta", [1.0, np.inf])
    def test_a_row_does_not_know_its_neighbours(
        self, beta: float, covariance_type: CovarianceType, dtype: type
    ) -> None:
        mixture = mixture_of(2, 3, 5, covariance_type)
        x = rows_of(0, 300, mixture, dtype)
        order = np.random.default_rng(0).permutation(300)[:171]
        for whole, part in zip(mixture.posteriors(x, beta), mixture.posteriors(x[order], beta), strict=True):
            np.testing.assert_array_equal(part, whole[order])
        np.testing.assert_array_equal(mixture.energies(x[7:8]), mixture.energies(x)[7:8])

    def test_no_rows(self, covariance_type: CovarianceType, dtype: type) -> None:
        mixture = mixture_of(1, 3, 2, covariance_type)
        free, entropy, s = mixture.tight_moments(np.empty((0, 2), dtype=dtype), None)
        assert free == 0 and entropy == 0 and not s.any()

    def test_rows_out_of_reach_are_told(self, covariance_type: CovarianceType, dtype: type) -> None:
        """A square that overflows is an infinite free energy, never NaN, and belongs to nobody."""
        mixture = mixture_of(1, 3, 2, covariance_type)
        x = rows_of(0, 40, mixture, dtype)
        x[7] = np.finfo(dtype).max / 4
        free, q = mixture.posteriors(x)
        assert np.isposinf(free[7]) and not q[7].any()
        np.testing.assert_allclose(np.delete(q, 7, axis=0).sum(axis=1), 1.0, rtol=1e-6)

    def test_weights_of_any_size(self, covariance_type: CovarianceType, dtype: type) -> None:
        mixture = mixture_of(1, 3, 2, covariance_type)
        x, w = rows_of(0, 100, mixture, dtype), np.random.default_rng(0).random(100)
        plain = mixture.tight_moments(x, w)
        for unit in (2.0**-900, 2.0**-300, 2.0**300):
            for mine, theirs in zip(plain, mixture.tight_moments(x, unit * w), strict=True):
                np.testing.assert_allclose(theirs, unit * np.asarray(mine), rtol=1e-12)

    def test_tight_components_far_out_lose_no_digits(self, covariance_type: CovarianceType, dtype: type) -> None:
        far = np.array([[2.0**20, -(2.0**21)], [-(2.0**20), 0.0]])
        one = np.eye(2) if covariance_is_matrix(covariance_type) else np.ones(())
        covariances = np.broadcast_to(one, COVARIANCES[covariance_type].shape(2, 2))
        mixture = Mixture(np.full(2, 0.5), far, np.array(covariances), covariance_type)
        x = np.random.default_rng(0).integers(-3, 4, (100, 2)) + far[np.arange(100) % 2]
        assert_agrees_with_numpy(mixture, x.astype(dtype), None)


@each_type
@given(scale=st.floats(-60, 60), shift=st.floats(-3, 3), seed=st.integers(0, 99))
def test_units_do_not_matter(covariance_type: CovarianceType, scale: float, shift: float, seed: int) -> None:
    unit = 10.0**scale
    mixture = mixture_of(seed, 2, 2, covariance_type)
    x = rows_of(seed, 40, mixture, np.float64)
    moved = mixture.mapped(unit, unit * shift)
    _, q = mixture.posteriors(x)
    _, same = moved.posteriors((x + shift) * unit)
    np.testing.assert_allclose(same, q, atol=1e-10)


# The M-step


def plain_m_step(s: Array, reference_means: Array, kind: str, floor: float) -> tuple[Array, Array, Array]:
    """Shares, means and covariance matrices by numpy's eigenvalues."""
    k, d = reference_means.shape
    mass = s[:, :1]
    shift = s[:, 1 : 1 + d] / mass
    second = s[:, 1 + d :] / mass
    if covariance_is_matrix(kind):
        scatter = symmetric(second, d)
    else:
        scatter = np.stack([np.diag(row if kind == "diag" else np.full(d, row[0] / d)) for row in second])
    outer = shift[:, :, None] * shift[:, None, :]
    if kind == "diag":
        outer = outer * np.eye(d)
    elif kind == "spherical":
        outer = np.sum(shift**2, axis=1)[:, None, None] * np.eye(d) / d
    scatter = scatter - outer
    if kind == "tied":
        scatter = np.broadcast_to(np.sum(mass[:, :, None] * scatter, axis=0) / mass.sum(), (k, d, d))
    values, vectors = np.linalg.eigh(scatter)
    clipped = (vectors * np.maximum(values, floor)[:, None, :]) @ vectors.transpose(0, 2, 1)
    return mass[:, 0] / mass.sum(), reference_means + shift, clipped


@each_type
@pytest.mark.parametrize("d", [1, 2, 3, 5, 8, 40])
@pytest.mark.parametrize("floor", [0.0, 0.3, 1.0, 100.0])
def test_m_step(floor: float, d: int, covariance_type: CovarianceType) -> None:
    mixture = mixture_of(d, 3, d, covariance_type)
    x = rows_of(1, 300, mixture, np.float64)
    s = mixture.tight_moments(x, None)[2]
    step = m_step(s, mixture, mixture.means, covariance_type, floor)
    shares, means, covariances = plain_m_step(s, mixture.means, covariance_type, floor)
    np.testing.assert_allclose(step.mixture.weights, shares, rtol=1e-13)
    np.testing.assert_allclose(step.mixture.means, means, rtol=1e-12, atol=1e-13)
    found = matrices(step.mixture)
    np.testing.assert_allclose(found, covariances, atol=1e-11 * np.abs(covariances).max())
    least = np.linalg.eigvalsh(plain_m_step(s, mixture.means, covariance_type, 0.0)[2])[:, 0]
    np.testing.assert_array_equal(step.floored, least < floor)
    q = mixture.posteriors(x)[1]
    assert step.value == pytest.approx(float(np.sum(q * step.mixture.energies(x))), rel=1e-12)
    factors, log_determinants = step.mixture.precision_factors()
    np.testing.assert_allclose(log_determinants, np.linalg.slogdet(found)[1], rtol=1e-10, atol=1e-10)
    if covariance_is_matrix(covariance_type):
        inverse = np.linalg.inv(found if covariance_type == "full" else found[0])
        np.testing.assert_allclose(factors @ np.swapaxes(factors, -1, -2), inverse, rtol=1e-7, atol=1e-8)
        assert not np.tril(factors, -1).any()


@pytest.mark.parametrize("spectrum", ["equal", "one", "two scales", "graded", "negative", "zero", "vanishing"])
@pytest.mark.parametrize("d", [1, 2, 3, 6, 17, 64])
def test_eigenvalues_of_any_spectrum_are_clipped(d: int, spectrum: str) -> None:
    random = np.random.default_rng(d)
    values = {
        "equal": np.ones(d),
        "one": np.eye(d)[0],
        "two scales": np.where(np.arange(d) % 2 == 0, 1.0, 1e-9),
        "graded": 10.0 ** -np.linspace(0, 12, d),
        "negative": np.linspace(-1e-3, 1.0, d),
        "zero": np.zeros(d),
        "vanishing": np.full(d, 5e-324),
    }[spectrum]
    turn = np.linalg.qr(random.normal(size=(d, d)))[0]
    scatter = np.full((d, d), 5e-324) if spectrum == "vanishing" else (turn * values) @ turn.T
    s = np.concatenate([[1.0], np.zeros(d), scatter[np.tril_indices(d)]])[None]
    step = m_step(s, None, np.zeros((1, d)), "full", 1e-4)
    expected = (turn * np.maximum(values, 1e-4)) @ turn.T
    np.testing.assert_allclose(step.mixture.covariances[0], expected, atol=1e-13 * d)
    assert step.floored[0] == (values.min() < 1e-4)


@each_type
def test_a_component_without_mass_keeps_its_place(covariance_type: CovarianceType) -> None:
    mixture = mixture_of(0, 3, 2, covariance_type)
    x = rows_of(0, 50, mixture, np.float64)
    q = np.random.default_rng(0).dirichlet([1.0, 1.0], 50) @ np.array([[1.0, 0, 0], [0, 0, 1.0]])
    s = moments(x, None, q, mixture.means, covariance_type)
    step = m_step(s, mixture, mixture.means, covariance_type, 1e-3)
    assert step.mixture.weights[1] == 0 and np.isfinite(step.value)
    np.testing.assert_array_equal(step.mixture.means[1], mixture.means[1])
    if covariance_type != "tied":
        np.testing.assert_array_equal(step.mixture.covariances[1], mixture.covariances[1])
        assert not step.floored[1]
    assert np.isfinite(m_step(s, None, mixture.means, covariance_type, 1e-3).mixture.covariances).all()


def test_means_of_single_rows_are_single() -> None:
    """Covariances are about the rounded means then, and the value is theirs."""
    mixture = mixture_of(0, 2, 3, "full")
    x = rows_of(0, 80, mixture, np.float64)
    q = mixture.posteriors(x)[1]
    s = moments(x, None, q, mixture.means, "full")
    step = m_step(s, mixture, mixture.means, "full", 0.0, single=True)
    np.testing.assert_array_equal(step.mixture.means, step.mixture.means.astype(np.float32))
    for share, mean, covariance in zip(q.T, step.mixture.means, step.mixture.covariances, strict=True):
        expected = np.einsum("i,il,im->lm", share, x - mean, x - mean) / share.sum()
        np.testing.assert_allclose(covariance, expected, rtol=1e-10, atol=1e-12)
    assert step.value == pytest.approx(float(np.sum(q * step.mixture.energies(x))), rel=1e-13)


@each_type
def test_singular_covariances_are_refused(covariance_type: CovarianceType) -> None:
    x = np.tile([[1.0, 2.0]], (5, 1))
    s = moments(x, None, np.full((5, 2), 0.5), np.zeros((2, 2)), covariance_type)
    with pytest.raises(ValueError, match="use a positive floor"):
        m_step(s, None, np.zeros((2, 2)), covariance_type, 0.0)
    assert m_step(s, None, np.zeros((2, 2)), covariance_type, 1e-9).floored.all()
    s[0, -1] = np.nan
    with pytest.raises(ValueError, match="use a positive floor"):
        m_step(s, None, np.zeros((2, 2)), covariance_type, 1e-9)


# The boundary


def test_shapes_are_checked() -> None:
    mixture = mixture_of(0, 3, 2, "full")
    x = rows_of(0, 6, mixture, np.float64)
    factors, constants = mixture._factored
    good: dict[str, Any] = {
        "x": x,
        "w": None,
        "means": mixture.means,
        "factors": factors.ravel(),
        "offsets": constants,
        "covariance_type": 0,
        "beta": 1.0,
        "moments": np.empty((3, 6)),
        "free": np.empty(6),
        "q": np.empty((6, 3)),
    }
    _kernels.gauss_pass(**good)
    for name, wrong in {
        "x": x[:, :1].copy(),
        "w": np.ones(5),
        "factors": factors.ravel()[:-1],
        "offsets": constants[:2],
        "covariance_type": 4,
        "beta": 0.0,
        "moments": np.empty((3, 5)),
        "free": np.empty(5),
        "q": np.empty((6, 2)),
    }.items():
        with pytest.raises(ValueError, match=r"must|fit"):
            _kernels.gauss_pass(**good | {name: wrong})
    with pytest.raises(TypeError):
        _kernels.gauss_pass(**good | {"x": x.astype(np.float32)})
    with pytest.raises(ValueError, match="do not fit"):
        _kernels.gauss_factor(np.ones(3), 2, 0, np.ones(3), np.ones(1))


def answers() -> dict[str, Array]:
    """What this process's kernels answer."""
    out = {}
    for dtype in (np.float64, np.float32):
        for kind in COVARIANCE_TYPES:
            for d in (1, 3, 10, 65):
                mixture = mixture_of(d, 5, d, kind)
                x = rows_of(0, 301, mixture, dtype)
                w = weights_of(True, 301)
                for beta in (1.0, np.inf):
                    free, entropy, s = mixture.tight_moments(x, w, beta)
                    out[f"{dtype.__name__} {kind} {d} {beta}"] = np.append(s.ravel(), [free, entropy])
                out[f"{dtype.__name__} {kind} {d} step"] = m_step(
                    s, mixture, mixture.means, kind, 0.4
                ).mixture.covariances
    return out


@pytest.mark.parametrize("isa", _kernels.isas())
def test_instruction_sets_agree(isa: str, tmp_path: Path) -> None:
    with answers_under(isa, __name__, tmp_path) as theirs:
        for name, mine in answers().items():
            rounding = 1e-4 if "float32" in name else 1e-10
            np.testing.assert_allclose(
                theirs[name], mine, rtol=rounding, atol=rounding * np.abs(mine).max(), err_msg=name
            )


if __name__ == "__main__":
    np.savez(sys.argv[1], **answers())
