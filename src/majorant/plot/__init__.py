"""Plots of fitted models with matplotlib: each takes an Axes or makes one, and returns it.

Without matplotlib they raise ImportError.

Each part has its own colour and mark. The colours are those of Okabe and Ito, which can be distinguished with any kind
of colour vision.
"""

from majorant.plot.embedding import embedding
from majorant.plot.fits import convergence, criterion, starts
from majorant.plot.parts import classification, density, uncertainty
from majorant.plot.profile import class_profile
from majorant.plot.profiles import profiles
from majorant.plot.quality import picture, roc, silhouettes
from majorant.plot.regression import regression
from majorant.plot.series import series

__all__ = [
    "class_profile",
    "classification",
    "convergence",
    "criterion",
    "density",
    "embedding",
    "picture",
    "profiles",
    "regression",
    "roc",
    "series",
    "silhouettes",
    "starts",
    "uncertainty",
]
