"""Which sub-problem is solved?"""

from majorant.solvers.nuclear_norm import NuclearNormFit, nuclear_norm_regression
from majorant.solvers.tensor_power import TensorDecomposition, Whitening, symmetric_tensor_power, whitening

__all__ = [
    "NuclearNormFit",
    "TensorDecomposition",
    "Whitening",
    "nuclear_norm_regression",
    "symmetric_tensor_power",
    "whitening",
]
