"""Items and covariates that a formula such as ``cbind(A, B, C) ~ age`` selects from a table."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from majorant.formulas.columns import table_of
from majorant.formulas.formula import Formula
from majorant.formulas.language import INTERCEPT, read, require_formulaic, variables_of
from majorant.formulas.terms import Terms

Array = NDArray[np.float64]
NOTHING = Terms((), {}, {}, {}, ())


def learned_formula(text: str, data: Any) -> tuple[Formula, dict[str, Any]]:
    """Return what a formula learns from a table, and its rows as `fit` takes them.

    Raises
    ------
    ImportError
        If formulaic is not installed.
    ValueError, TypeError
        If the formula names no items, or says what it may not, or a covariate is missing in a row.
    """
    require_formulaic()
    table = table_of(data)
    sides = read(text, table.columns)
    if not sides.response:
        raise ValueError(f"the formula {text!r} names no items: write cbind(A, B, C) ~ 1, or ~ covariates")
    if sides.groups is not None or sides.offset is not None:
        raise ValueError(f"the formula {text!r} may have items and covariates only: leave out | and offset()")
    terms = Terms.learn(sides.terms, table, explain=True)[0] if set(sides.terms) - {INTERCEPT} else NOTHING
    items = tuple(((("lookup", name),),) for name in variables_of(sides.response, table.columns))
    formula = Formula(text, terms, Terms(tuple(term for (term,) in items), {}, {}, {}, ()))
    return formula, rows_of_formula(formula, data)


def rows_of_formula(formula: Formula, data: Any) -> dict[str, Any]:
    """Return items as ``X`` and, where the formula has covariates, their design as ``gating``.

    Raises
    ------
    ValueError, TypeError
        If a column or a covariate is missing, or a covariate has a level that was not there at the fit.
    """
    table = table_of(data)
    names = [factor[1] for term in formula.response.terms for factor in term]
    rows: dict[str, Any] = {"X": nw.to_native(table.select(names))}
    if formula.features.names:
        rows["gating"] = formula.features.apply(table)
    return rows
