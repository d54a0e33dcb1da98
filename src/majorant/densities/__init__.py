"""How likely is a row in each state?"""

from majorant.densities.categorical import Categorical
from majorant.densities.natural import Bernoulli, Natural, Poisson
from majorant.densities.product import Product

__all__ = ["Bernoulli", "Categorical", "Natural", "Poisson", "Product"]
