"""The report of a fitted model: one self-contained HTML page that shows the answer and how it was found."""

from majorant.report.figures import Picture
from majorant.report.page import Report, html_report, report
from majorant.report.run import Run
from majorant.report.table import Column, Table

__all__ = ["Column", "Picture", "Report", "Run", "Table", "html_report", "report"]
