"""Where did every start of a fit end?"""

from majorant.search.record import Optimum, SearchReport, StartRecord

__all__ = ["Optimum", "SearchReport", "StartRecord"]
