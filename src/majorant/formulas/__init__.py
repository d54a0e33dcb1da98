"""What design do a formula and a table give, and how is it applied to another table?"""

from majorant.formulas.columns import RowError, is_table
from majorant.formulas.formula import EXTRAS, Formula, TableRows, column_of, columns_needed, is_design, numbers_of
from majorant.formulas.names import quoted

__all__ = [
    "EXTRAS",
    "Formula",
    "RowError",
    "TableRows",
    "column_of",
    "columns_needed",
    "is_design",
    "is_table",
    "numbers_of",
    "quoted",
]
