"""k-means: family, search, estimator."""

from majorant.models.kmeans.estimator import KMeans
from majorant.models.kmeans.family import KMeansFamily

__all__ = ["KMeans", "KMeansFamily"]
