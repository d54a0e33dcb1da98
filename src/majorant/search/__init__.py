"""The search over starts, and the record of where each ended."""

from majorant.search.record import Optimum, SearchReport, StartRecord

__all__ = ["Optimum", "SearchReport", "StartRecord"]
