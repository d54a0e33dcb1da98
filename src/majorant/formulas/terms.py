"""What does a sum of terms give for a table? Learned from one table, applied to others in the same way."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from majorant.formulas.columns import Kind, RowError, canonical_order, columns_for
from majorant.formulas.language import INTERCEPT, Term, functions, term_of, variables_of

Array = NDArray[np.float64]
_MOST_LEVELS = 10


@dataclass(frozen=True)
class Terms:
    """Terms of a formula, with all that they learned from the table of the fit.

    Attributes
    ----------
    terms : tuple of Term
    kinds : dict
        What each column that they need holds.
    states : dict
        Of transforms such as ``poly``, by their text: what they take from the table of the fit.
    levels : dict of list
        Of every factor that has levels, by its text.
    names : tuple of str
        The columns of the design, without the intercept.
    """

    terms: tuple[Term, ...]
    kinds: dict[str, Kind]
    states: dict[str, Any]
    levels: dict[str, list[Any]]
    names: tuple[str, ...]

    @classmethod
    def learn(cls, terms: Iterable[Term], table: nw.DataFrame[Any]) -> tuple[Terms, Array]:
        """The terms with what they learn from a table, and their design.

        States are learned from the rows in an order of their own, so that they do not depend on the table's.

        Raises
        ------
        ValueError, TypeError
            If the table lacks a column or a value, or a term cannot be computed.
        """
        terms = tuple(terms)
        columns, kinds = columns_for(table, variables_of(terms, table.columns))
        first = cls(terms, kinds, {}, {}, ())
        states, levels, names, values = first._evaluated(columns, len(table))
        if any(states.values()):
            order = canonical_order(columns)
            states = first._evaluated({name: column[order] for name, column in columns.items()}, len(table))[0]
        learned = cls(terms, kinds, states, levels, names)
        return learned, learned._design(columns, len(table)) if any(states.values()) else values

    def apply(self, table: nw.DataFrame[Any]) -> Array:
        """The design of another table.

        Raises
        ------
        ValueError, TypeError
            If the table lacks a column or a value, or has a level that was not there at the fit.
        """
        columns, _ = columns_for(table, variables_of(self.terms, table.columns), self.kinds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # formulaic warns of levels that were not there, which are an error here
            return self._design(columns, len(table))

    @property
    def has_intercept(self) -> bool:
        return INTERCEPT in self.terms

    def to_state(self) -> dict[str, Any]:
        """Plain values, for saving."""
        return {
            "terms": [[list(factor) for factor in term] for term in self.terms],
            "kinds": self.kinds,
            "states": self.states,
            "levels": self.levels,
            "names": list(self.names),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Terms:
        """The inverse of `to_state`."""
        terms = tuple(tuple((str(method), str(text)) for method, text in term) for term in state["terms"])
        names, kinds = tuple(str(name) for name in state["names"]), dict(state["kinds"])
        if not set(kinds.values()) <= {"numbers", "levels"}:
            raise ValueError(f"a column holds numbers or levels; got {sorted(map(str, kinds.values()))}")
        return cls(terms, kinds, dict(state["states"]), dict(state["levels"]), names)

    def _design(self, columns: Mapping[str, Any], n_rows: int) -> Array:
        _, _, names, values = self._evaluated(columns, n_rows)
        if names != self.names:
            raise ValueError(f"the terms give the columns {list(names)}, and at the fit they gave {list(self.names)}")
        return values

    def _evaluated(
        self, columns: Mapping[str, Any], n_rows: int
    ) -> tuple[dict[str, Any], dict[str, list[Any]], tuple[str, ...], Array]:
        """States, levels, names and values of the design, the intercept apart."""
        import pandas as pd
        from formulaic import Formula, ModelSpec
        from formulaic.errors import FormulaicError
        from formulaic.materializers import PandasMaterializer
        from formulaic.parser.types import Factor
        from formulaic.parser.types import Term as FormulaicTerm

        terms = [FormulaicTerm([Factor(text, eval_method=method) for method, text in term]) for term in self.terms]
        known = {text: (Factor.Kind.CATEGORICAL, {"categories": levels}) for text, levels in self.levels.items()}
        spec = ModelSpec.from_spec(
            Formula(terms),
            output="numpy",
            na_action="ignore",
            transform_state={text: dict(state) for text, state in self.states.items()},
            encoder_state=known,
        )
        materializer = PandasMaterializer(pd.DataFrame(dict(columns), index=range(n_rows)), context=functions())
        with np.errstate(all="ignore"):
            try:
                matrix = materializer.get_model_matrix(spec)
            except (FormulaicError, ValueError, TypeError, LookupError, ArithmeticError) as error:
                _refuse_unseen(materializer.factor_cache, self.levels)
                raise ValueError(_why(error)) from error
        learned = matrix.model_spec
        levels = {text: list(state["categories"]) for text, (_, state) in learned.encoder_state.items() if state}
        _refuse_unseen(materializer.factor_cache, levels)
        by_term = [(name, term_of(row.term) != INTERCEPT) for row in learned.structure for name in row.columns]
        names = tuple(str(name) for name, kept in by_term if kept)
        values = np.asarray(matrix, dtype=np.float64).reshape(n_rows, len(by_term))
        values = np.ascontiguousarray(values[:, [kept for _, kept in by_term]])
        _refuse_infinite(names, values)
        return dict(learned.transform_state), levels, names, values


def _why(error: BaseException) -> str:
    """What a person can do something with in formulaic's complaint."""
    factor = re.match(r"Unable to evaluate factor `(.*?)`\. \[", str(error))
    return str(error) if factor is None else f"{factor[1]} cannot be computed: {error.__cause__}"


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
                f"{text} has the level {values.tolist()[at]!r}",
                at,
                f", which it did not have at the fit; its levels: {listed}",
            )


def _refuse_infinite(names: tuple[str, ...], values: Array) -> None:
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        row, column = (int(i) for i in wrong[0])
        raise RowError(f"{names[column]} is {values[row, column]}", row, ": a term must be a finite number")
