"""Solvers of sub-problems."""

from majorant.solvers.chains import Chains, ChainSums
from majorant.solvers.nuclear_norm import NuclearNormFit, nuclear_norm_regression
from majorant.solvers.simplex import project_on_simplex
from majorant.solvers.softmax import SoftmaxFit, softmax_regression
from majorant.solvers.tensor_power import TensorDecomposition, Whitening, symmetric_tensor_power, whitening

__all__ = [
    "ChainSums",
    "Chains",
    "NuclearNormFit",
    "SoftmaxFit",
    "TensorDecomposition",
    "Whitening",
    "nuclear_norm_regression",
    "project_on_simplex",
    "softmax_regression",
    "symmetric_tensor_power",
    "whitening",
]
