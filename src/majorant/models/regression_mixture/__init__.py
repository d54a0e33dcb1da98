"""Mixtures of linear regressions."""

from majorant.models.regression_mixture.estimator import RegressionMixture

__all__ = ["RegressionMixture"]
