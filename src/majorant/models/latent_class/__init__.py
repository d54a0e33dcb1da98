"""Latent classes: labels, family, joint cost, coordinates, starts, estimator."""

from majorant.models.latent_class.estimator import LatentClassClassifier

__all__ = ["LatentClassClassifier"]
