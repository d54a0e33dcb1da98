"""Latent classes: labels, family, joint cost, coordinates, starts, estimator."""

from majorant.models.discriminative_latent_classes.estimator import DiscriminativeLatentClasses

__all__ = ["DiscriminativeLatentClasses"]
