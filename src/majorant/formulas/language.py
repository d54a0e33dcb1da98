"""The language of formulas, which come from files: arithmetic on columns and some functions; no other code is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from majorant._validation import did_you_mean
from majorant.formulas.names import column_hidden_in, hidden, hide, show

_ELEMENTWISE = (
    *("log", "log2", "log10", "log1p", "exp", "exp2", "expm1", "sqrt", "cbrt", "square", "abs", "sign", "floor"),
    *("ceil", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "minimum", "maximum"),
)
_WITH_STATE = ("poly", "bs", "cr", "cs", "cc", "center", "scale", "standardize")
_CONTRASTS = ("Treatment", "Sum", "Helmert", "Diff", "Poly")
_WITH_TWO = ("minimum", "maximum")
_CONSTANTS = ("pi", "e")
_VALUES = {"pi": np.pi, "TRUE": True, "FALSE": False}
_OF_R = {
    **dict.fromkeys(("as.factor", "as.ordered", "ordered"), "factor(g)"),
    **dict.fromkeys(("ns", "s", "te", "spline"), "cr(x, df=3, constraints='center')"),
    "c": "[1, 2] for a list",
    **{"pmax": "maximum(x, z)", "pmin": "minimum(x, z)", "relevel": "C(g, Treatment('b'))"},
    **dict.fromkeys(("ifelse", "cut", "is.na"), "I(x > 0)"),
    **dict.fromkeys(("asin", "acos", "atan"), "arcsin(x), arccos(x) or arctan(x)"),
}
_CALL_OF_R = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, _OF_R))})\s*\(")
_TIPS = {
    "Unknown operator": "a formula is written response ~ terms, and a comparison I(x > 0)",
    "reduce() of empty": "nothing is left of a part in parentheses",
    "`|` is incorrectly used": "groups stand once, at the end: y ~ x | id",
}
_CODES = (
    *(ast.Expression, ast.Name, ast.Load, ast.Constant, ast.Attribute, ast.Call, ast.keyword),
    *(ast.BinOp, ast.UnaryOp, ast.Compare, ast.List, ast.Tuple),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.UAdd, ast.USub, ast.Invert),
    *(ast.BitAnd, ast.BitOr, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
)

_LARGEST_POWER = 1000
"""Largest base and exponent of a power of two numbers."""

_LARGEST_BASE = 1000
_SIZES_OF_BASES: dict[str, tuple[int | str, ...]] = {
    **dict.fromkeys(("bs", "cr", "cc", "cs"), (1, "df", "degree")),
    "poly": (1, "degree"),
}
"""Arguments, by place or name, that say how many columns are made of one."""

_HIGHEST_ORDER, _MOST_PRODUCTS = 100, 10**6
"""Largest power of terms, and products of terms up to which it is written out."""

FactorText = tuple[str, str]
"""A factor: how it is evaluated ("lookup", "python", "literal"), and its text."""
Term = tuple[FactorText, ...]
"""A term: a product of factors."""
INTERCEPT: Term = (("literal", "1"),)


@dataclass(frozen=True)
class Sides:
    """The parts of a formula."""

    response: tuple[Term, ...]  # terms left of ``~``; empty if there is no ``~``
    terms: tuple[Term, ...]  # terms right of ``~``; the intercept is a term
    groups: str | None = None  # the column after ``|``
    offset: str | None = None  # the argument of ``offset()``


def require_formulaic() -> None:
    """Raise ImportError if formulaic, which reads formulas, is not installed."""
    if find_spec("formulaic") is None:
        raise ImportError('formulas need the package formulaic: pip install "majorant[formula]"')


@cache
def functions() -> Mapping[str, Any]:
    """Return all that a formula may call or name apart from columns, by name."""
    from formulaic.transforms import TRANSFORMS
    from formulaic.utils.stateful_transforms import stateful_transform

    found: dict[str, Any] = {name: getattr(np, name) for name in _ELEMENTWISE}
    found |= {name: TRANSFORMS[name] for name in (*_WITH_STATE, *_CONTRASTS)}
    found["poly"] = stateful_transform(_poly)
    return {**found, **_VALUES, "I": _itself, "C": _levels, "factor": _levels, "cbind": _side_by_side}


def read(
    text: str,  # ``response ~ terms | groups``
    columns: Sequence[str],  # columns of the table
    left_out: Iterable[str] = (),  # columns that ``.`` excludes, besides the response and the groups
) -> Sides:
    """Read the parts of a formula."""
    from formulaic import Formula
    from formulaic.errors import FormulaicError

    if not isinstance(text, str):
        raise TypeError(f"a formula is a text such as 'y ~ x'; got a {type(text).__name__}")
    if re.search(r"%in%\s*\(", re.sub(r"`[^`]*`", "", text)):
        raise ValueError(f"the formula {text!r} must name columns right of %in%: write g:h:k for R's g %in% (h + k)")
    code = hide(text, columns)
    variables = _variables_by_side(text, code, columns)
    used = {*left_out, *variables["response"], *variables["groups"]}
    available = [hidden(c) for c in columns if c not in used]
    try:
        found = Formula.from_spec(code, context={"__formulaic_variables_available__": available})
    except (FormulaicError, SyntaxError, ValueError, TypeError) as error:
        told = _plain(error)
        tip = next((f": {tip}" for sign, tip in _TIPS.items() if sign in told), "")
        raise ValueError(f"the formula {text!r} cannot be read: {told}{tip}") from error
    response, right = (found.lhs, found.rhs) if hasattr(found, "rhs") else ([], found)
    if hasattr(response, "rhs") or hasattr(right, "rhs") or hasattr(right, "deps"):
        raise ValueError(f"the formula {text!r} has more than one ~: write response ~ terms | groups")
    terms, *more = right if isinstance(right, tuple) else (right,)
    if isinstance(response, tuple) or len(more) > 1:
        raise ValueError(f"the formula {text!r} has too many parts: write response ~ terms | groups")
    plain, offset = _without_offset(text, [term_of(t) for t in terms])
    return Sides(tuple(term_of(t) for t in response), plain, _groups(text, more[0]) if more else None, offset)


def expression(text: str, columns: Sequence[str]) -> tuple[Term, ...]:
    """Read the terms of a column or of arithmetic on columns."""
    if text in columns:
        return ((("lookup", text),),)
    return ((("python", show(ast.unparse(checked(f"I({text})", columns)))),),)


def variables_of(terms: Iterable[Term], columns: Sequence[str]) -> list[str]:
    """Return the columns that terms need, in order."""
    found: list[str] = []
    for method, text in (factor for term in terms for factor in term):
        if method == "lookup":
            check_column(text, columns)
            found.append(text)
        elif method == "python":
            named = variables_of_code(text, columns)
            if not named:
                raise ValueError(f"{text} names no column, so it is the same in all rows: leave it out")
            found += named
    return list(dict.fromkeys(found))


def variables_of_code(code: str, columns: Sequence[str]) -> list[str]:
    """Return the columns that an expression needs; it may call the functions of a formula and nothing else."""
    names = (node.id for node in ast.walk(checked(code, columns)) if isinstance(node, ast.Name))
    found = (column for column in map(column_hidden_in, names) if column is not None)
    return list(dict.fromkeys(found))


def checked(code: str, columns: Sequence[str]) -> ast.Expression:
    """Check that an expression calls only functions of a formula; return it with its columns hidden."""
    of_r = _CALL_OF_R.search(code)
    if of_r is not None:
        raise ValueError(f"{code!r}: a formula knows no function {of_r[1]!r}; write for example {_OF_R[of_r[1]]}")
    try:
        tree = ast.parse(hide(code, columns).strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        tip = ": not is written ~, as in I(~b)" if re.search(r"!(?!=)", code) else ""
        raise ValueError(f"{code!r} cannot be read: {_plain(error)}{tip}") from error
    named = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.BitXor):
            raise ValueError(f"{code!r}: a power is written **, as in I(x**2)")
        if not isinstance(node, _CODES):
            raise ValueError(f"{code!r} is more than a formula may say ({type(node).__name__}); {_may_say()}")
        if isinstance(node, ast.Compare):
            _check_comparison(code, node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            _check_power(code, node)
        if isinstance(node, ast.Call):
            named |= _check_call(code, node)
        elif isinstance(node, ast.Attribute):
            named |= _check_attribute(code, node)
        elif isinstance(node, ast.Name) and id(node) not in named and node.id not in _VALUES:
            check_column(_column_of(node.id), columns)
    return tree


def _check_power(code: str, power: ast.BinOp) -> None:
    """Raise ValueError for powers that are too large to compute, such as 9**9**9."""
    if any(isinstance(node, ast.Name | ast.Call) for node in ast.walk(power.left)):
        return
    values = [ast.literal_eval(side) if isinstance(side, ast.Constant) else None for side in (power.left, power.right)]
    if not all(isinstance(value, int | float) and abs(value) <= _LARGEST_POWER for value in values):
        shown = re.sub(r"[^\W\d]\w*", lambda word: _column_of(word[0]), ast.unparse(power))
        raise ValueError(f"{code!r}: write the value of {shown} as a number, such as 1e6")


def _check_comparison(code: str, comparison: ast.Compare) -> None:
    """Raise ValueError for ``x > 0 & z > 0``, of which Python binds ``0 & z`` first, and for ``0 < x < 1``."""
    sides = (comparison.left, *comparison.comparators)
    if len(sides) > 2 or any(isinstance(s, ast.BinOp) and isinstance(s.op, ast.BitAnd | ast.BitOr) for s in sides):
        raise ValueError(f"{code!r}: comparisons beside & and | stand in parentheses, as in I((x > 0) & (z > 0))")


def _column_of(word: str) -> str:
    """Return the column that a name in the code replaces."""
    column = column_hidden_in(word)
    return show(word) if column is None else column


def check_column(name: str, columns: Sequence[str]) -> None:
    """Raise ValueError for a column that the table does not have."""
    if name not in columns:
        listed = ", ".join(map(repr, columns[:20])) + (", ..." if len(columns) > 20 else "")
        whole = next((c for c in columns if "`" not in c and name in re.split(r"\W+", c)), None)
        hint = (
            did_you_mean(name, columns)
            if whole is None
            else f" A name that holds signs stands in backticks: `{whole}`."
        )
        raise ValueError(f"the table has no column {name!r}.{hint} Its columns: {listed}")


def _check_call(code: str, call: ast.Call) -> set[int]:
    """Check that a call is of a formula's function; return the nodes that name it."""
    if any(k.arg is None for k in call.keywords):
        raise ValueError(f"{code!r} is more than a formula may say (**); {_may_say()}")
    function = call.func
    if isinstance(function, ast.Attribute):
        _check_arguments(code, function.attr, call)
        return set()  # checked when the attribute itself is visited
    if not isinstance(function, ast.Name) or function.id not in functions() or function.id in _VALUES:
        name = ast.unparse(function)
        hint = did_you_mean(name, list(functions()))
        raise ValueError(f"{code!r}: a formula knows no function {name!r}.{hint} But {_may_say()}")
    _check_arguments(code, function.id, call)
    return {id(function), *(map(id, _contrasts(call)) if function.id in ("C", "factor") else ())}


def _check_arguments(code: str, name: str, call: ast.Call) -> None:
    """Raise ValueError unless an elementwise function gets as many arguments as it has: others would be outputs."""
    number = 2 if name in _WITH_TWO else 1
    if name in _ELEMENTWISE and call.keywords:
        raise ValueError(f"{code!r}: {name} takes no keywords in a formula")
    if name in (*_ELEMENTWISE, "I") and len(call.args) != number:
        more = "; logarithms to other bases are log2 and log10" if name == "log" else ""
        raise ValueError(f"{code!r}: {name} takes {number} argument{'s' * (number > 1)} in a formula{more}")
    given: dict[int | str | None, ast.expr] = dict(enumerate(call.args))
    given.update({keyword.arg: keyword.value for keyword in call.keywords})
    for place in _SIZES_OF_BASES.get(name, ()):
        size = given.get(place)
        is_size = isinstance(size, ast.Constant) and (not isinstance(size.value, int) or size.value <= _LARGEST_BASE)
        if size is not None and not is_size:
            raise ValueError(
                f"{code!r}: {name} makes at most {_LARGEST_BASE} columns in a formula, written as one number; got "
                f"{ast.unparse(size)}"
            )


def _contrasts(call: ast.Call) -> list[ast.Name]:
    """Return the nodes that name a contrast in a call of ``C``, even where a column has the same name."""
    given = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
    found = [value for value in given if isinstance(value, ast.Name) and _column_of(value.id) in _CONTRASTS]
    for value in found:
        value.id = _column_of(value.id)
    return found


def _check_attribute(code: str, node: ast.Attribute) -> set[int]:
    """Check an attribute such as ``np.log`` or ``contr.sum``; return the nodes that name the function."""
    base = node.value
    if isinstance(base, ast.Name) and (
        (base.id == "np" and node.attr in (*_ELEMENTWISE, *_CONSTANTS))
        or (base.id == "contr" and node.attr in ("treatment", "sum", "helmert", "diff", "poly"))
    ):
        return {id(base)}
    raise ValueError(f"{code!r} is more than a formula may say ({ast.unparse(node)}); {_may_say()}")


def _may_say() -> str:
    names = (name for name in functions() if name not in ("TRUE", "FALSE"))
    return f"it may use columns, numbers, + - * / ** and {', '.join(names)}"


def _variables_by_side(text: str, code: str, columns: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns left of ``~``, right of it, and after ``|``.

    Formulaic evaluates the names of functions while it parses, so all code is checked before.
    """
    from formulaic.errors import FormulaicError
    from formulaic.parser.algos.tokenize import tokenize

    try:
        tokens = list(tokenize(code))
    except FormulaicError as error:
        raise ValueError(f"the formula {text!r} cannot be read: {_plain(error)}") from error
    if tokens and tokens[-1].token == "~" and len(tokens) > 1:
        raise ValueError(f"the formula {text!r} has no terms: write ~ 1 for means alone")
    _refuse_arithmetic(text, tokens)
    found: dict[str, list[str]] = {"response": [], "terms": [], "groups": []}
    side = "response" if any(token.token == "~" for token in tokens) else "terms"
    for token in tokens:
        kind = token.kind.value
        if kind == "operator" and "~" in token.token:
            side = "terms"
        elif kind == "operator" and "|" in token.token and side == "terms":
            side = "groups"
        elif kind == "name":
            name = _column_of(token.token)
            check_column(name, columns)
            found[side].append(name)
        elif kind == "python":
            written = show(token.token)
            call = _offset_argument(written)
            found[side] += variables_of_code(written if call is None else call, columns)
    return found


def _refuse_arithmetic(text: str, tokens: Sequence[Any]) -> None:
    """Raise ValueError for numbers that are multiplied or divided outside ``I(...)``."""
    signs = ["", *(token.token if token.kind.value == "operator" else "" for token in tokens), ""]
    for before, token, after in zip(signs, tokens, signs[2:], strict=False):
        is_number = token.kind.value == "value" and token.token != "."
        if is_number and before not in ("**", "^") and {before, after} & {"*", "/", ":"}:
            raise ValueError(f"the formula {text!r} must say arithmetic in I(), as in I(2 * x) or I(1 / x)")
        if is_number and before in ("**", "^"):
            _check_order(text, token.token, sum(token.kind.value in ("name", "python") for token in tokens))


def _check_order(text: str, power: str, n_names: int) -> None:
    """Raise ValueError for interactions of more terms than can be listed, such as ``(a + b)^99999``."""
    try:
        order = float(power)
    except ValueError:  # no number after all, as formulaic says
        return
    if order > _HIGHEST_ORDER or n_names**order > _MOST_PRODUCTS:
        raise ValueError(
            f"the formula {text!r} asks for interactions of up to {power} of {n_names} terms, too many to list: choose "
            "a smaller power"
        )


def _without_offset(text: str, terms: Sequence[Term]) -> tuple[tuple[Term, ...], str | None]:
    """Return the terms without ``offset(...)``, and its argument."""
    offsets = [_offset_argument(code) for term in terms for method, code in term if method == "python"]
    found = [argument for argument in offsets if argument is not None]
    plain = tuple(t for t in terms if len(t) != 1 or t[0][0] != "python" or _offset_argument(t[0][1]) is None)
    if len(found) > 1 or len(plain) + len(found) != len(terms):
        raise ValueError(f"the formula {text!r} can have one offset(...), as a term of its own")
    return plain, found[0] if found else None


def _offset_argument(code: str) -> str | None:
    """Return the argument of ``offset(...)``; None for other code."""
    found = re.fullmatch(r"\s*offset\s*\((.*)\)\s*", code, flags=re.DOTALL)
    return None if found is None else found[1]


def _groups(text: str, terms: Iterable[Any]) -> str:
    found = [term for term in map(term_of, terms) if term != INTERCEPT]
    if len(found) != 1 or len(found[0]) != 1 or found[0][0][0] != "lookup":
        raise ValueError(f"the formula {text!r} must name one column of groups after the |")
    return found[0][0][1]


def term_of(term: Any) -> Term:
    """Return a term of formulaic's as the user wrote it."""
    return tuple(
        (method, _column_of(factor.expr) if method == "lookup" else show(factor.expr))
        for factor in term.factors
        for method in [str(factor.eval_method.value)]
    )


def _plain(error: BaseException) -> str:
    """Return the first line of an error message, without terminal control codes."""
    return (
        show(re.sub("\x1b\\[[0-9;]*m|[⧛⧚]", "", str(error))).strip().split("\n")[0].rstrip(".") or type(error).__name__
    )


def _itself(x: Any) -> Any:
    return x


def _poly(x: Any, degree: int = 1, raw: bool = False, *, _state: Any = None) -> Any:
    """Return formulaic's ``poly``, with the columns of raw powers counted from 1 too, of values that determine it."""
    from formulaic.materializers.types import FactorValues
    from formulaic.transforms import TRANSFORMS

    n_values = len(np.unique(x))
    if not (raw or _state) and degree >= n_values:
        raise ValueError(f"degree {degree} needs at least {degree + 1} different values; there are {n_values}")
    found = TRANSFORMS["poly"](x, degree, raw, _state=_state)
    return FactorValues(found, column_names=tuple(map(str, range(1, degree + 1)))) if raw else found


def _side_by_side(*columns: Any) -> Any:
    if len(columns) != 2:
        raise ValueError("cbind takes two columns, successes and failures")
    return np.column_stack(columns)


def _levels(data: Any, contrasts: Any = None, *, levels: Any = None) -> Any:
    """Return formulaic's ``C``, with levels of whole numbers written without a decimal point."""
    import pandas as pd
    from formulaic.transforms import C

    values = pd.Series(data)
    if values.dtype.kind == "f" and bool((values % 1 == 0).all()):
        values = values.astype("int64")
    return C(values, contrasts, levels=levels)
