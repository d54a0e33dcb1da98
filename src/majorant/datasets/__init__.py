"""Tables that come with the package."""

from majorant.datasets.tone import tone_csv
from majorant.datasets.wine import wine_csv

__all__ = ["tone_csv", "wine_csv"]
