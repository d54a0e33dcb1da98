"""Provable lower bounds on the k-means objective."""

from majorant.solvers.kmeans_bounds.bound import Effort, LowerBound, effort_within, kmeans_lower_bound

__all__ = ["Effort", "LowerBound", "effort_within", "kmeans_lower_bound"]
