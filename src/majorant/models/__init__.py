"""What is minimised?"""

from majorant.models.kmeans import KMeans

__all__ = ["KMeans"]
