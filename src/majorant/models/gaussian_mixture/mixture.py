"""Where a Gaussian mixture's parameters are found: they live below the rooms that search and certify."""

from majorant.solvers.gaussian import Mixture

__all__ = ["Mixture"]
