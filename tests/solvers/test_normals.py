"""Normal components on some features: margins, ellipses, densities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, multivariate_normal

from majorant.solvers.normals import deviations_of, normals_of

from ..mixtures import COVARIANCE_TYPES, reference


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("k", [1, 3])
def test_on_all_features_the_covariances_are_the_models(covariance_type: str, k: int) -> None:
    model = reference(covariance_type, k)
    normals = normals_of(model, [0, 1, 2])
    for j in range(k):
        np.testing.assert_allclose(normals.covariances[j] @ precision(model, j), np.eye(3), atol=1e-9)
    deviations = np.sqrt(np.diagonal(normals.covariances, axis1=1, axis2=2))
    np.testing.assert_allclose(deviations_of(model), deviations, rtol=1e-12)


def precision(model: Any, j: int) -> Any:
    fitted = model.precisions_
    by_kind = {"full": lambda: fitted[j], "tied": lambda: fitted, "diag": lambda: np.diag(fitted[j])}
    return by_kind.get(model.covariance_type, lambda: fitted[j] * np.eye(3))()


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_some_features_in_any_order(covariance_type: str) -> None:
    model = reference(covariance_type)
    both, some = normals_of(model, [0, 1, 2]), normals_of(model, [2, 0])
    np.testing.assert_array_equal(some.means, both.means[:, [2, 0]])
    np.testing.assert_array_equal(some.covariances, both.covariances[:, [2, 0]][:, :, [2, 0]])


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_an_ellipse_holds_its_share(covariance_type: str, share: float) -> None:
    normals = normals_of(reference(covariance_type), [0, 2])
    for k in range(2):
        ellipse = normals.ellipse(k, share)
        quantile = np.sqrt(chi2(2).ppf(share))
        values = np.linalg.eigvalsh(normals.covariances[k])[::-1]
        np.testing.assert_allclose(ellipse.half_axes, np.sqrt(values) * quantile, rtol=1e-10)
        away = ellipse.points() - normals.means[k]
        squares = np.einsum("ni,ij,nj->n", away, np.linalg.inv(normals.covariances[k]), away)
        np.testing.assert_allclose(squares, quantile**2, rtol=1e-9)
        drawn = (
            multivariate_normal(normals.means[k], normals.covariances[k]).rvs(4000, random_state=0) - normals.means[k]
        )
        inside = np.einsum("ni,ij,nj->n", drawn, np.linalg.inv(normals.covariances[k]), drawn) <= quantile**2
        assert abs(inside.mean() - share) < 4 * np.sqrt(share * (1 - share) / 4000)
