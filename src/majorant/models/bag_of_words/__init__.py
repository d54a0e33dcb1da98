"""Reconfigurable bags of words on images of regions: family, starts, search, estimator."""

from majorant.models.bag_of_words.estimator import ReconfigurableBagOfWords

__all__ = ["ReconfigurableBagOfWords"]
