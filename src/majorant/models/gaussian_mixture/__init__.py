"""Gaussian mixtures: family."""

from majorant.models.gaussian_mixture.family import GaussianFamily
from majorant.solvers.gaussian import Mixture

__all__ = ["GaussianFamily", "Mixture"]
