"""How far can a k-means fit be from the best possible? Provable lower bounds on its objective."""

from majorant.solvers.kmeans_bounds.bound import Effort, LowerBound, effort_within, kmeans_lower_bound

__all__ = ["Effort", "LowerBound", "effort_within", "kmeans_lower_bound"]
