"""The design of a sum of terms, learned from one table and applied to others."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from majorant.formulas.columns import KINDS, Kind, RowError, canonical_order, columns_for, complete_rows
from majorant.formulas.language import (
    INTERCEPT,
    FactorText,
    Term,
    check_column,
    checked,
    functions,
    term_of,
    variables_of,
)
from majorant.formulas.logicals import functions_of_logicals, with_logicals
from majorant.formulas.names import hidden, hide, show

Array = NDArray[np.float64]
_MOST_LEVELS = 10
_BEYOND = "extend beyond upper and/or lower bounds"
"""Text in formulaic's error for splines outside of the range of the fit."""


@dataclass(frozen=True)
class Terms:
    """Terms of a formula, with what they learned from the table of the fit."""

    terms: tuple[Term, ...]
    kinds: dict[str, Kind]  # kind of values of each needed column
    states: dict[str, Any]  # state of transforms such as ``poly``, learned from the table of the fit, by their text
    levels: dict[str, list[Any]]  # levels of every categorical factor, by its text
    names: tuple[str, ...]  # names of the columns of the design, without the intercept
    explain: bool = False  # whether the terms explain a response, so that logicals are levels, as in R

    @classmethod
    def learn(cls, terms: Iterable[Term], table: nw.DataFrame[Any], *, explain: bool = False) -> tuple[Terms, Array]:
        """Learn levels and contrasts of the terms from a table; return the terms and their design.

        States are learned from the rows in canonical order, so that they do not depend on the table's order.
        """
        terms = tuple(terms)
        columns, kinds = columns_for(table, variables_of(terms, table.columns), explain=explain)
        first = cls(terms, kinds, {}, {}, (), explain)
        states, levels, names, values = first._evaluated(columns, len(table))
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:  # a column named as another term is written
            raise ValueError(f"two terms of the formula are called {twice!r}: rename a column")
        if any(states.values()):
            order = canonical_order(columns)
            states = first._evaluated({name: column[order] for name, column in columns.items()}, len(table))[0]
        learned = cls(terms, kinds, states, levels, names, explain)
        return learned, learned._design(columns, len(table)) if any(states.values()) else values

    def apply(self, table: nw.DataFrame[Any]) -> Array:
        """Return the design of a new table."""
        for name in variables_of(self.terms, list(self.kinds)):  # not the table's, which may have other columns too
            check_column(name, table.columns)
        columns, _ = columns_for(table, list(self.kinds), self.kinds, explain=self.explain)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # formulaic warns of new levels, which are an error here
            return self._design(columns, len(table))

    def refuse_single_levels(self) -> None:
        """Raise ValueError for factors with a single level."""
        for text, levels in self.levels.items():
            if len(levels) == 1:
                raise ValueError(f"{text} has one level, {levels[0]!r}, in all rows: leave it out")

    def refuse_as_gating(self, name: str) -> None:
        """Raise ValueError for terms that no shares or transitions have: none, or none but covariates."""
        if not self.names:
            raise ValueError(f"{name} must have terms besides its intercept, such as 'w1 + w2'")
        if not self.has_intercept:
            raise ValueError(f"{name} always has an intercept: leave out 0 + and - 1")

    @property
    def has_intercept(self) -> bool:
        return INTERCEPT in self.terms

    @property
    def is_curved(self) -> bool:
        """Whether a numeric column enters several columns of the design, which then cannot change separately."""
        columns = list(self.kinds)
        enters = [
            name for term in self.terms for name in variables_of([term], columns) if self.kinds[name] == "numbers"
        ]
        if len(enters) > len(set(enters)):
            return True
        wide = {text for term in self.terms for method, text in term if method == "python" and text not in self.levels}
        return any(sum(name.startswith(f"{text}[") for name in self.names) > 1 for text in wide)

    @property
    def contrasts(self) -> dict[str, tuple[str, str, str]]:
        """Factor, level, and the level that it is compared with, if one, of each column that tells a level."""
        found: dict[str, tuple[str, str, str]] = {}
        for factor, levels in self.levels.items():
            names = {f"{factor}[T.{level}]": str(level) for level in levels}
            left_out = [level for name, level in names.items() if name not in self.names]
            reference = left_out[0] if len(left_out) == 1 else ""
            found |= {name: (factor, level, reference) for name, level in names.items() if name in self.names}
        return found

    def to_state(self) -> dict[str, Any]:
        """Return the terms as plain values, for saving."""
        return {
            "terms": [[list(factor) for factor in term] for term in self.terms],
            "kinds": self.kinds,
            "states": self.states,
            "levels": self.levels,
            "names": list(self.names),
            "explain": self.explain,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Terms:
        """Build terms from the values of `to_state`."""
        terms = tuple(tuple((str(method), str(text)) for method, text in term) for term in state["terms"])
        names, kinds = tuple(str(name) for name in state["names"]), dict(state["kinds"])
        if not set(kinds.values()) <= set(KINDS):
            raise ValueError(f"a column holds one of {', '.join(KINDS)}; got {sorted(map(str, kinds.values()))}")
        return cls(terms, kinds, dict(state["states"]), dict(state["levels"]), names, bool(state["explain"]))

    def _design(self, columns: Mapping[str, Any], n_rows: int) -> Array:
        states, _, names, values = self._evaluated(columns, n_rows)
        if states.keys() != self.states.keys():
            raise ValueError(f"the terms learn {list(states)}, and at the fit they learned {list(self.states)}")
        if names != self.names:
            raise ValueError(f"the terms give the columns {list(names)}, and at the fit they gave {list(self.names)}")
        return values

    def _evaluated(
        self, columns: Mapping[str, Any], n_rows: int
    ) -> tuple[dict[str, Any], dict[str, list[Any]], tuple[str, ...], Array]:
        """Evaluate the design without the intercept; return states, levels, names and values."""
        import pandas as pd
        from formulaic import Formula, ModelSpec
        from formulaic.errors import FormulaicError
        from formulaic.materializers import PandasMaterializer
        from formulaic.parser.types import Factor
        from formulaic.parser.types import Term as FormulaicTerm

        texts = {self._hidden(factor): factor[1] for term in self.terms for factor in term}
        terms = [FormulaicTerm([Factor(self._hidden(f), eval_method=f[0]) for f in term]) for term in self.terms]
        known = {code: self.levels[text] for code, text in texts.items() if text in self.levels}
        spec = ModelSpec.from_spec(
            Formula(terms),
            output="numpy",
            na_action="ignore",
            transform_state={hide(text, self.kinds): dict(state) for text, state in self.states.items()},
            encoder_state={code: (Factor.Kind.CATEGORICAL, {"categories": levels}) for code, levels in known.items()},
        )
        frame = pd.DataFrame({hidden(name): column for name, column in columns.items()}, index=range(n_rows))
        materializer = PandasMaterializer(frame, context={**functions(), **functions_of_logicals(self.explain)})
        with np.errstate(all="ignore"):
            try:
                matrix = materializer.get_model_matrix(spec)
            except (FormulaicError, ValueError, TypeError, LookupError, ArithmeticError) as error:
                _refuse_unseen(materializer.factor_cache, known)
                if self.states and _BEYOND in str(error):
                    raise RowError(
                        f"{_factor_in(error, texts)} is beyond the values of the fit",
                        self._first_beyond(columns, n_rows),
                        ": leave the row out, or extrapolate, as in bs(x, df=4, extrapolation='extend') or 'clip'",
                    ) from error
                raise ValueError(_why(error, texts)) from error
        learned = matrix.model_spec
        found = {code: list(state["categories"]) for code, (_, state) in learned.encoder_state.items() if state}
        _refuse_unseen(materializer.factor_cache, found)
        by_term = [(name, term_of(row.term) != INTERCEPT) for row in learned.structure for name in row.columns]
        written = re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))))
        names = tuple(written.sub(lambda code: texts[code[0]], str(name)) for name, kept in by_term if kept)
        values = np.asarray(matrix, dtype=np.float64).reshape(n_rows, len(by_term))
        values = np.ascontiguousarray(values[:, [kept for _, kept in by_term]])
        _refuse_infinite(names, values)
        states = {show(code): state for code, state in learned.transform_state.items()}
        return states, {texts[code]: levels for code, levels in found.items()}, names, values

    def _first_beyond(self, columns: Mapping[str, Any], n_rows: int) -> int:
        """Find the first row that cannot be evaluated, by bisection."""
        begin, end = 0, n_rows
        while end - begin > 1:
            half = (begin + end) // 2
            try:
                self._evaluated({name: column[begin:half] for name, column in columns.items()}, half - begin)
                begin = half
            except ValueError:
                end = half
        return begin

    def _hidden(self, factor: FactorText) -> str:
        """Return the factor with its columns replaced by the names that formulaic sees."""
        method, text = factor
        if method == "lookup":
            return hidden(text)
        if method == "literal":
            return text
        logicals = {hidden(name) for name, kind in self.kinds.items() if kind == "logicals"}
        return ast.unparse(with_logicals(checked(text, list(self.kinds)), logicals))


def _why(error: BaseException, texts: Mapping[str, str]) -> str:
    """Return the part of formulaic's error message that is useful to a user."""
    factor = _factor_in(error, texts)
    return show(str(error)) if factor is None else f"{factor} cannot be computed: {show(str(error.__cause__))}"


def _factor_in(error: BaseException, texts: Mapping[str, str]) -> str | None:
    """Return the factor that formulaic's error names, as it was written."""
    factor = re.match(r"Unable to evaluate factor `(.*?)`\. \[", str(error))
    return None if factor is None else texts.get(factor[1], show(factor[1]))


def _refuse_unseen(factors: Mapping[str, Any], levels: Mapping[str, list[Any]]) -> None:
    import pandas as pd

    for text, known in levels.items():
        if text not in factors:
            continue
        values = pd.Series(factors[text].values.__wrapped__)
        unseen = np.flatnonzero(~values.isin(known).to_numpy())
        if len(unseen):
            at = int(unseen[0])
            listed = ", ".join(repr(level) for level in known[:_MOST_LEVELS])
            listed += f" and {len(known) - _MOST_LEVELS} more" if len(known) > _MOST_LEVELS else ""
            raise RowError(
                f"{show(text)} has the level {values.tolist()[at]!r}",
                at,
                f", which it did not have at the fit; its levels: {listed}",
            )


def _refuse_infinite(names: tuple[str, ...], values: Array) -> None:
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        row, column = (int(i) for i in wrong[0])
        raise RowError(f"{names[column]} is {values[row, column]}", row, ": a term must be a finite number")


NO_TERMS = Terms((), {}, {}, {}, ())


def learned_where_complete(terms: Sequence[Term], table: Any, *, explain: bool = False) -> tuple[Terms, Array]:
    """Learn terms from the rows that have all their columns; NaN in the design of others."""
    there = _complete(table, variables_of(terms, table.columns))
    if not there.any():
        told = " + ".join(factor for term in terms for _, factor in term)
        raise ValueError(f"no row has a value in every column of {told}: one at least is needed")
    with _rows_as_given(there):
        learned, values = Terms.learn(terms, table.filter(there.tolist()), explain=explain)
    return learned, _spread(values, there)


def applied_where_complete(terms: Terms, table: Any) -> Array:
    """Return the design of the rows that have all columns of the terms; NaN in that of others."""
    there = _complete(table, list(terms.kinds))
    with _rows_as_given(there):
        return _spread(terms.apply(table.filter(there.tolist())), there)


def _complete(table: Any, names: list[str]) -> NDArray[np.bool_]:
    """Return which rows have a value in those of the columns that a table has."""
    return complete_rows(table, [name for name in names if name in table.columns])


@contextmanager
def _rows_as_given(there: NDArray[np.bool_]) -> Iterator[None]:
    """Count rows in errors among all rows, not only among those that are there."""
    try:
        yield
    except RowError as error:
        raise RowError(error.what, int(np.flatnonzero(there)[error.row]), error.after) from error


def _spread(values: Array, there: NDArray[np.bool_]) -> Array:
    out = np.full((len(there), values.shape[1]), np.nan)
    out[there] = values
    return out
