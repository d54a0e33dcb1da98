"""Latent support vector machines on bags of rows: input, family, search, estimator."""

from majorant.models.latent_svm.estimator import LatentSVC

__all__ = ["LatentSVC"]
