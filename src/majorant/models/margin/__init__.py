"""Latent structural SVMs: samples, labels, family, search and the base of their estimators."""

from majorant.models.margin.labels import learnt_classes

__all__ = ["learnt_classes"]
