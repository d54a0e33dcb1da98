"""GaussianMixture with states that depend on covariates, groups or labels, and its standard errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import multivariate_normal

import majorant as mj
from majorant.models.gaussian_mixture.given import INIT_PARAMS

Array = NDArray[np.float64]
TYPES = ["full", "tied", "diag", "spherical"]


def far_apart(n: int = 300) -> tuple[Array, Array, NDArray[np.intp]]:
    """Two groups that no row is in doubt about, and a covariate on which they depend."""
    random = np.random.default_rng(3)
    gate = random.normal(size=n)
    z = (random.random(n) < expit(0.4 + 1.2 * gate)).astype(int)
    return random.normal(size=(n, 2)) + 20.0 * z[:, None], gate, z


@pytest.mark.parametrize("share_first", [True, False])
def test_covariates_are_those_of_a_logistic_regression(share_first: bool) -> None:
    """Where no row is in doubt, coefficients and their errors are those of the labels, whichever component is first."""
    x, gate, z = far_apart()
    gate = gate if share_first else -gate
    model = mj.GaussianMixture(2, random_state=0).fit(x, gating=gate)
    first = int(model.means_[0, 0] > 10)
    design = np.column_stack([np.ones(len(x)), (gate - gate.mean()) / gate.std()])
    y, b = (z != first).astype(float), np.zeros(2)
    for _ in range(50):
        p = expit(design @ b)
        information = design.T @ (design * (p * (1 - p))[:, None])
        b += np.linalg.solve(information, design.T @ (y - p))
    np.testing.assert_allclose(model.gating_coef_, [[0.0, 0.0], b], atol=1e-4)
    errors = model.standard_errors(x, gating=gate)
    np.testing.assert_allclose(errors["gating_coef"][1], np.sqrt(np.diag(np.linalg.inv(information))), rtol=1e-3)
    assert model.score(x, gating=gate) * len(x) == pytest.approx(model.log_likelihood_, rel=1e-9)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_groups_share_their_component(covariance_type: Any) -> None:
    random = np.random.default_rng(5)
    groups = np.repeat(np.arange(60), 5)
    x = random.normal(size=(300, 2)) + 1.5 * (groups % 2)[:, None]
    model = mj.GaussianMixture(2, covariance_type=covariance_type, random_state=0).fit(x, groups=groups)
    matrices = model.covariances_ if covariance_type == "full" else np.broadcast_to(model.covariances_, (2, 2, 2))
    if covariance_type in ("diag", "spherical"):
        matrices = np.array([np.diag(np.broadcast_to(own, 2)) for own in model.covariances_])
    logs = np.stack([multivariate_normal(m, c).logpdf(x) for m, c in zip(model.means_, matrices, strict=True)])
    joint = np.log(model.weights_)[:, None] + logs.reshape(2, 60, 5).sum(axis=2)
    assert model.log_likelihood_ == pytest.approx(np.logaddexp(*joint).sum(), rel=1e-9)
    assert (model.predict(x, groups=groups).reshape(60, 5) == joint.argmax(axis=0)[:, None]).all()


def test_known_components_stay_where_they_are() -> None:
    x, _, z = far_apart()
    labels = np.where(np.arange(len(x)) < 20, 1 - z, -1)
    model = mj.GaussianMixture(2, random_state=0).fit(x, component_labels=labels)
    np.testing.assert_array_equal(model.predict(x), 1 - z)


@pytest.mark.parametrize("init_params", [name for name in INIT_PARAMS if name != "auto"])
def test_a_chosen_start_takes_the_numbers_of_the_labels(init_params: str) -> None:
    random = np.random.default_rng(0)
    z = random.integers(4, size=400)
    x = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0], [6.0, 6.0]])[z] + random.normal(size=(400, 2))
    labels = np.full(400, -1)
    for k in range(4):
        labels[np.flatnonzero(z == k)[:3]] = k
    for seed in range(8):
        model = mj.GaussianMixture(4, init_params=init_params, random_state=seed).fit(x, component_labels=labels)
        assert (model.predict(x) == z).mean() > 0.98


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize(("unit", "shift"), [(1.0, 0.0), (1e6, 1e9), (1e-6, 1.0)])
def test_errors_of_one_component_are_those_of_a_mean(covariance_type: Any, unit: float, shift: float) -> None:
    x = far_apart()[0] * unit + shift
    model = mj.GaussianMixture(1, covariance_type=covariance_type).fit(x)
    variances = np.broadcast_to(x.var(axis=0).mean() if covariance_type == "spherical" else x.var(axis=0), 2)
    np.testing.assert_allclose(model.standard_errors(x)["means"][0], np.sqrt(variances / len(x)), rtol=1e-4)
    if covariance_type != "spherical":
        low, high = (np.reshape(end, (-1, 2)) for end in model.confidence_intervals(x)["covariances"])
        low, high = (end[0] if len(end) == 1 else np.diag(end) for end in (low, high))
        half = 1.959964 * np.sqrt(2 / len(x))
        np.testing.assert_allclose(low, x.var(axis=0) * np.exp(-half), rtol=1e-3)
        np.testing.assert_allclose(high, x.var(axis=0) * np.exp(half), rtol=1e-3)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_intervals_of_variances_are_positive(covariance_type: Any) -> None:
    x = np.random.default_rng(0).normal(size=(24, 2))
    x[:, 1] += x[:, 0] / 2 + 2.5 * (np.arange(24) % 2)
    model = mj.GaussianMixture(2, covariance_type=covariance_type, random_state=0).fit(x)
    (low, high), error = model.confidence_intervals(x)["covariances"], model.standard_errors(x)["covariances"]
    at = model.covariances_
    is_variance = np.broadcast_to(np.eye(2, dtype=bool) if covariance_type in ("full", "tied") else True, at.shape)
    assert (low[is_variance] > 0).all() and (low < at).all() and (high > at).all()
    np.testing.assert_allclose((low * high)[is_variance], at[is_variance] ** 2, rtol=1e-9)
    np.testing.assert_allclose((low + high)[~is_variance], 2 * at[~is_variance], rtol=1e-9)
    np.testing.assert_allclose((high - at)[~is_variance], 1.959964 * error[~is_variance], rtol=1e-5)


def test_weights_of_a_start_beside_covariates_are_refused() -> None:
    x, gate, _ = far_apart()
    with pytest.raises(ValueError, match=r"weights_init .* gating"):
        mj.GaussianMixture(2, weights_init=[0.5, 0.5]).fit(x, gating=gate)
