"""Laws: the joint distributions of the states of rows."""

from majorant.laws.by_population import ByPopulation
from majorant.laws.chain import Chain
from majorant.laws.gated import Gated
from majorant.laws.gated_chain import GatedChain
from majorant.laws.grouped import Grouped
from majorant.laws.independent import Independent
from majorant.laws.known import Known

__all__ = ["ByPopulation", "Chain", "Gated", "GatedChain", "Grouped", "Independent", "Known"]
