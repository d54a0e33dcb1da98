"""Latent structural SVMs on features and inference written by the user."""

from majorant.models.structural_svm.estimator import LatentStructuralSVM
from majorant.models.structural_svm.oracles import StructuralModel

__all__ = ["LatentStructuralSVM", "StructuralModel"]
