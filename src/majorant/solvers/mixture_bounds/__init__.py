"""A provable upper bound on the log-likelihood of mixtures."""

from majorant.solvers.mixture_bounds.bound import Effort, UpperBound, mixture_upper_bound, regressions_upper_bound

__all__ = ["Effort", "UpperBound", "mixture_upper_bound", "regressions_upper_bound"]
