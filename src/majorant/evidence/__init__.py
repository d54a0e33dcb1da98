"""Can the answer be trusted?"""

from majorant.evidence.records import Evidence, Optimum, StartRecord
from majorant.evidence.stability import Agreement, Stability, stability

__all__ = ["Agreement", "Evidence", "Optimum", "Stability", "StartRecord", "stability"]
