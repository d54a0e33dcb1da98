"""Can the answer be trusted?"""

from majorant.evidence.records import Evidence, Optimum, StartRecord

__all__ = ["Evidence", "Optimum", "StartRecord"]
