"""Normal components on some features: margins, ellipses, densities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, multivariate_normal

from majorant.summary.normals import deviations_of, normals_of

from ..mixtures import COVARIANCE_TYPES, reference, rows


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("k", [1, 3])
def test_on_all_features_the_density_is_the_models(covariance_type: str, k: int) -> None:
    model = reference(covariance_type, k)
    normals = normals_of(model, [0, 1, 2])
    np.testing.assert_allclose(normals.log_density(rows()), model.score_samples(rows()), rtol=1e-10)
    deviations = np.sqrt(np.diagonal(normals.covariances, axis1=1, axis2=2))
    np.testing.assert_allclose(deviations_of(model), deviations, rtol=1e-12)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_a_margin_is_the_density_summed_over_the_other_feature(covariance_type: str) -> None:
    model = reference(covariance_type)
    at = np.array([[0.3, -0.2], [2.0, 2.5]])
    others = np.linspace(-30, 30, 20001)
    grid = np.array([[point[1], other, point[0]] for point in at for other in others])
    summed = np.exp(model.score_samples(grid)).reshape(2, -1).sum(axis=1) * (others[1] - others[0])
    np.testing.assert_allclose(np.exp(normals_of(model, [2, 0]).log_density(at)), summed, rtol=1e-9)


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


def test_a_component_without_weight_adds_nothing() -> None:
    model = reference("diag")
    model.weights_ = np.array([1.0, 0.0])
    log_density = normals_of(model, [0]).log_density(rows()[:, :1])
    only = multivariate_normal(model.means_[0, 0], model.covariances_[0, 0]).logpdf(rows()[:, 0])
    np.testing.assert_allclose(log_density, only, rtol=1e-10)
