"""Prototypes with a latent pose: family, search, training by gradient, estimator."""

from majorant.models.prototypes.estimator import LatentPrototypeClassifier

__all__ = ["LatentPrototypeClassifier"]
