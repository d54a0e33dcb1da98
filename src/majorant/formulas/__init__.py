"""Formulas: from a formula and a table to a design, for the table of the fit and for new ones."""

from majorant.formulas.columns import RowError, is_table
from majorant.formulas.formula import EXTRAS, Formula, column_of, columns_needed, design_frame, is_design, numbers_of
from majorant.formulas.names import quoted

__all__ = [
    "EXTRAS",
    "Formula",
    "RowError",
    "column_of",
    "columns_needed",
    "design_frame",
    "is_design",
    "is_table",
    "numbers_of",
    "quoted",
]
