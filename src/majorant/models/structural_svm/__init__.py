"""Structural SVMs with latent values: the user writes features and inference, policies and solvers do the rest."""

from majorant.models.structural_svm.estimator import LatentStructuralSVM
from majorant.models.structural_svm.oracles import StructuralModel

__all__ = ["LatentStructuralSVM", "StructuralModel"]
