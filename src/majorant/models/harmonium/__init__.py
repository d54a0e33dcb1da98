"""Multi-view harmoniums: one representation of views of different kinds, certified."""

from majorant.models.harmonium.estimator import Harmonium
from majorant.models.harmonium.summary import top_features, view_weights
from majorant.models.harmonium.supervised import HarmoniumClassifier, HarmoniumRegressor
from majorant.models.harmonium.views import Bernoulli, Categorical, Chain, Gaussian

__all__ = [
    "Bernoulli",
    "Categorical",
    "Chain",
    "Gaussian",
    "Harmonium",
    "HarmoniumClassifier",
    "HarmoniumRegressor",
    "top_features",
    "view_weights",
]
