"""Densities: the distributions of a row given its state."""

from majorant.densities.categorical import Categorical
from majorant.densities.check import check_density
from majorant.densities.natural import Bernoulli, Natural, Poisson
from majorant.densities.negative_binomial import NegativeBinomial
from majorant.densities.normal import Normal
from majorant.densities.ordinal import Ordinal
from majorant.densities.pairs import Gamma, VonMises
from majorant.densities.product import Product
from majorant.densities.regression import GaussianRegression, Predictors, Regression
from majorant.densities.variance_rule import VarianceRule
from majorant.densities.zero_inflated import ZeroInflatedPoisson

__all__ = [
    "Bernoulli",
    "Categorical",
    "Gamma",
    "GaussianRegression",
    "Natural",
    "NegativeBinomial",
    "Normal",
    "Ordinal",
    "Poisson",
    "Predictors",
    "Product",
    "Regression",
    "VarianceRule",
    "VonMises",
    "ZeroInflatedPoisson",
    "check_density",
]
