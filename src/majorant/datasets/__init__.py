"""Which tables come along?"""

from majorant.datasets.wine import wine_csv

__all__ = ["wine_csv"]
