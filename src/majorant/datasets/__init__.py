"""Tables that come with the package."""

from majorant.datasets.earthquake import earthquake_csv
from majorant.datasets.tone import tone_csv
from majorant.datasets.wine import wine_csv

__all__ = ["earthquake_csv", "tone_csv", "wine_csv"]
