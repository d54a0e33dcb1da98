"""Gaussian mixtures: family, search, estimator."""

from majorant.models.gaussian_mixture.estimator import GaussianMixture
from majorant.models.gaussian_mixture.family import GaussianFamily
from majorant.solvers.gaussian import Mixture

__all__ = ["GaussianFamily", "GaussianMixture", "Mixture"]
