"""What design do a formula and a table give, and how is it applied to another table?"""

from majorant.formulas.columns import is_table
from majorant.formulas.formula import EXTRAS, Formula, TableRows, column_of, numbers_of

__all__ = ["EXTRAS", "Formula", "TableRows", "column_of", "is_table", "numbers_of"]
