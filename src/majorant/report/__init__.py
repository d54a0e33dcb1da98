"""The report of a fitted model: one self-contained HTML page that shows the answer and the evidence for it."""

from majorant.report.page import html_report
from majorant.report.run import Run

__all__ = ["Run", "html_report"]
