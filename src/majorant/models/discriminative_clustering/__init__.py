"""Discriminative clustering: a classifier and the labels that it would predict best."""

from majorant.models.discriminative_clustering.estimator import DiscriminativeClustering

__all__ = ["DiscriminativeClustering"]
