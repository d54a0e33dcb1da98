"""What is minimised?"""

from majorant.models.bag_of_words import ReconfigurableBagOfWords
from majorant.models.discriminative_clustering import DiscriminativeClustering
from majorant.models.discriminative_latent_classes import DiscriminativeLatentClasses
from majorant.models.gaussian_mixture import GaussianMixture
from majorant.models.harmonium import (
    Bernoulli,
    Categorical,
    Chain,
    Gaussian,
    Harmonium,
    HarmoniumClassifier,
    HarmoniumRegressor,
)
from majorant.models.kmeans import KMeans
from majorant.models.latent_svm import LatentSVC
from majorant.models.prototypes import LatentPrototypeClassifier
from majorant.models.regression_mixture import RegressionMixture
from majorant.models.structural_svm import LatentStructuralSVM

__all__ = [
    "Bernoulli",
    "Categorical",
    "Chain",
    "DiscriminativeClustering",
    "DiscriminativeLatentClasses",
    "Gaussian",
    "GaussianMixture",
    "Harmonium",
    "HarmoniumClassifier",
    "HarmoniumRegressor",
    "KMeans",
    "LatentPrototypeClassifier",
    "LatentSVC",
    "LatentStructuralSVM",
    "ReconfigurableBagOfWords",
    "RegressionMixture",
]
