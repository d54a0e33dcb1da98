"""What is minimised?"""

from majorant.models.gaussian_mixture import GaussianMixture
from majorant.models.kmeans import KMeans

__all__ = ["GaussianMixture", "KMeans"]
