"""Latent class and latent profile analysis."""

from majorant.models.latent_class_analysis.estimator import LatentClassAnalysis

__all__ = ["LatentClassAnalysis"]
