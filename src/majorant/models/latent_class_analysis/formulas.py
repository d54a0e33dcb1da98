"""Items and covariates that a formula such as ``cbind(A, B, C) ~ age`` selects from a table."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from majorant._frames import row_names
from majorant.formulas.columns import complete_rows, table_of
from majorant.formulas.formula import Formula
from majorant.formulas.language import INTERCEPT, read, require_formulaic, variables_of
from majorant.formulas.terms import NO_TERMS, Terms, applied_where_complete, learned_where_complete

Array = NDArray[np.float64]


def learned_formula(text: str, data: Any) -> tuple[Formula, dict[str, Any]]:
    """Return what a formula learns from a table, and its rows as `fit` takes them."""
    require_formulaic()
    table = table_of(data)
    sides = read(text, table.columns)
    if not sides.response:
        raise ValueError(f"the formula {text!r} names no items: write cbind(A, B, C) ~ 1, or ~ covariates")
    if sides.groups is not None or sides.offset is not None:
        raise ValueError(f"the formula {text!r} may have items and covariates only: leave out | and offset()")
    terms = NO_TERMS
    if set(sides.terms) - {INTERCEPT}:
        if not complete_rows(table, variables_of(sides.terms, table.columns)).any():
            raise ValueError(f"every row lacks a covariate of {text!r}: leave out those that are rarely known")
        terms = learned_where_complete(sides.terms, table, explain=True)[0]
        terms.refuse_as_gating(f"the right of {text!r}")
    items = tuple(((("lookup", name),),) for name in variables_of(sides.response, table.columns))
    formula = Formula(text, terms, Terms(tuple(term for (term,) in items), {}, {}, {}, ()))
    return formula, rows_of_formula(formula, data)


def rows_of_formula(formula: Formula, data: Any) -> dict[str, Any]:
    """Return items as ``X`` and, with covariates, their design as ``gating``; NaN where one is missing."""
    table = table_of(data)
    names = [factor[1] for term in formula.response.terms for factor in term]
    rows: dict[str, Any] = {"X": nw.to_native(table.select(names))}
    if formula.features.names:
        terms = formula.features
        design = applied_where_complete(terms, table)
        made = nw.from_dict(dict(zip(terms.names, design.T, strict=True)), backend=table.implementation).to_native()
        index = row_names(rows["X"])
        rows["gating"] = made if index is None else made.set_axis(index)
    return rows
