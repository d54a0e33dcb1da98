"""Truth values in the code of formulas: levels as terms, numbers 0 and 1 in arithmetic, as in R."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any

import numpy as np

from majorant.formulas.names import show


def with_logicals(code: ast.Expression, columns: Collection[str]) -> ast.Expression:
    """Return checked code in which truth values are numbers wherever something is computed of them.

    Parameters
    ----------
    columns : collection of str
        Names in the code of columns of truth values.
    """
    found: ast.Expression = _Numbers(columns).visit(code)
    return found


def functions_of_logicals(explain: bool) -> dict[str, Any]:
    """Return what the code of `with_logicals` calls, and ``I``, whose truth values are levels where terms explain."""
    return {"truth_": _truth, "number_": _number, **({"I": _with_levels} if explain else {})}


class _Numbers(ast.NodeTransformer):
    def __init__(self, columns: Collection[str]) -> None:
        self.columns = columns

    def visit_Name(self, name: ast.Name) -> ast.expr:
        return _call("truth_", name) if name.id in self.columns else name

    def visit_BinOp(self, operation: ast.BinOp) -> ast.expr:
        if isinstance(operation.op, ast.BitAnd | ast.BitOr):
            whole = show(ast.unparse(operation))
            does = "& joins" if isinstance(operation.op, ast.BitAnd) else "| joins"
            operation.left, operation.right = (self._truth(o, whole, does) for o in (operation.left, operation.right))
            return operation
        self.generic_visit(operation)
        operation.left, operation.right = _as_number(operation.left), _as_number(operation.right)
        return operation

    def visit_UnaryOp(self, operation: ast.UnaryOp) -> ast.expr:
        if isinstance(operation.op, ast.Invert):
            operation.operand = self._truth(operation.operand, show(ast.unparse(operation)), "~ negates")
            return operation
        self.generic_visit(operation)
        operation.operand = _as_number(operation.operand)
        return operation

    def visit_Call(self, call: ast.Call) -> ast.expr:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name in ("C", "factor") and isinstance(call.args[0], ast.Name):
            return call  # levels as the column has them
        self.generic_visit(call)
        if name not in ("I", "C", "factor"):
            call.args = list(map(_as_number, call.args))
        return call

    def _truth(self, operand: ast.expr, whole: str, does: str) -> ast.expr:
        """Return an operand of ``&``, ``|`` or ``~`` as truth values."""
        written = show(ast.unparse(operand))
        while isinstance(operand, ast.Call) and isinstance(operand.func, ast.Name) and operand.func.id == "I":
            operand = operand.args[0]
        is_constant = written in ("True", "False", "TRUE", "FALSE")
        found = operand if is_constant else self.visit(operand)
        if not (is_constant or _is_logical(found)):
            example = "TRUE or FALSE" if isinstance(operand, ast.Constant) else f"a comparison such as ({written} != 0)"
            raise ValueError(f"I({whole}): {does} truth values, and {written} holds none: write {example}")
        return _call("truth_", found)


def _is_logical(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitAnd | ast.BitOr) and _is_logical(node.left) and _is_logical(node.right)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert) and _is_logical(node.operand)
    is_column = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "truth_"
    return is_column or isinstance(node, ast.Compare)


def _as_number(node: ast.expr) -> ast.expr:
    return _call("number_", node) if _is_logical(node) else node


def _call(name: str, argument: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), [argument], [])


def _truth(x: Any) -> Any:
    return np.asarray(x).astype(bool)


def _number(x: Any) -> Any:
    return np.asarray(x, dtype=np.float64)


def _with_levels(x: Any) -> Any:
    import pandas as pd

    values = np.asarray(x)
    return pd.Categorical(values, categories=[False, True]) if values.dtype.kind == "b" else x
