"""Choice and minimisation of bounds."""

from majorant.engine.biases import Balance, MultiFold, PairConstraints
from majorant.engine.coherence import Coherence
from majorant.engine.loop import BoundError, Solution, minimize
from majorant.engine.policies import (
    Bias,
    Biased,
    BoundPolicy,
    GibbsLimit,
    GrowingSubset,
    RandomWalk,
    Tempered,
    Tightest,
    WholeBias,
)
from majorant.engine.problem import Bound, Family, Policy, Sweep, View
from majorant.engine.trace import Trace

__all__ = [
    "Balance",
    "Bias",
    "Biased",
    "Bound",
    "BoundError",
    "BoundPolicy",
    "Coherence",
    "Family",
    "GibbsLimit",
    "GrowingSubset",
    "MultiFold",
    "PairConstraints",
    "Policy",
    "RandomWalk",
    "Solution",
    "Sweep",
    "Tempered",
    "Tightest",
    "Trace",
    "View",
    "WholeBias",
    "minimize",
]
