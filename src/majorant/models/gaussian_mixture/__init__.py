"""Gaussian mixtures: search, estimator."""

from majorant.models.gaussian_mixture.estimator import GaussianMixture

__all__ = ["GaussianMixture"]
