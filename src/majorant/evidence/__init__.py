"""Can the answer be trusted?"""

from majorant.evidence.certificate import Certificate
from majorant.evidence.records import Evidence, Optimum, StartRecord

__all__ = ["Certificate", "Evidence", "Optimum", "StartRecord"]
