"""Latent class and latent profile analysis: which kinds of respondents are behind the answers?"""

from majorant.models.latent_class_analysis.estimator import LatentClassAnalysis

__all__ = ["LatentClassAnalysis"]
