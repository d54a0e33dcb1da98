"""Formulas of series: targets, terms, and lags within sequences."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from majorant.engine.mixture import Array
from majorant.formulas import Formula, RowError, design_frame, is_table
from majorant.formulas.columns import table_of
from majorant.formulas.language import INTERCEPT, Term, check_column, read, require_formulaic, variables_of
from majorant.formulas.terms import NO_TERMS, Terms, applied_where_complete, learned_where_complete
from majorant.models.formula_estimator import taking_text
from majorant.models.hidden_markov.ahead import order_ahead
from majorant.models.hidden_markov.emissions import EXPLAINED, LinesEmission
from majorant.models.hidden_markov.sequences import Sequences, one_table, sequences_of
from majorant.registry import value_class

LAG = re.compile(r"(?<![\w.])lag\(\s*(?:`([^`]+)`|([^\W\d][\w.]*))\s*(?:,\s*(\d+)\s*)?\)")
"""A call of ``lag``: the column, in backticks or plain, and how many rows before."""
LAGGED = re.compile(r"lag\((.+?)(?:, (\d+))?\)", flags=re.DOTALL)
"""The name of a column that a lag makes."""


def call_for_text(emission: Any) -> Callable[[Any, int], str] | None:
    """Return which call takes a column of text, for `refuse_text`; None without terms."""
    settings = "" if emission == LinesEmission.name else f", emission={emission!r}"
    return taking_text("HiddenMarkovModel", settings, n_targets=1) if emission in EXPLAINED.values() else None


@value_class
@dataclass(frozen=True)
class SeriesFormula:
    """A formula of series with what it learned from the table of the fit."""

    # targets, terms, and the column of the sequences; columns of lags are named as the formula writes them
    formula: Formula
    lags: int = 0  # own lags of the target, which are no terms: the model makes and forecasts them
    time: str | None = None  # the column of the times
    has_constant: bool = True

    @classmethod
    def learn(
        cls, text: str, data: Any, groups: Any = None, time: Any = None, gating: str | None = None
    ) -> tuple[SeriesFormula, Any, Sequences]:
        """Return what a formula learns from a table, the table's design, and its sequences."""
        require_formulaic()
        table = table_of(data)
        if not isinstance(text, str):
            raise TypeError(f"a formula is a text such as 'y ~ x + lag(y)'; got a {type(text).__name__}")
        calls = [call for part in (text, gating or "") for call in LAG.finditer(part)]
        lagged = [name for name in dict.fromkeys(map(_name_of, calls)) if name not in table.columns]
        written, of_steps = (LAG.sub(lambda call: f"`{_name_of(call)}`", part) for part in (text, gating or ""))
        roles = [name for name in (groups, time) if isinstance(name, str)]
        sides = read(written, [*table.columns, *lagged], roles)
        if sides.groups is not None and groups is not None:
            raise ValueError(f"the formula {text!r} names the sequences after |: leave groups out")
        if not sides.response or sides.offset is not None or not sides.terms:
            raise ValueError(
                f"the formula {text!r} must name a target and terms: write y ~ x + lag(y), or cbind(y, z) ~ 1, without "
                "offset()"
            )
        sequences = sequences_of(data, None, sides.groups or groups, time)[1]
        table = with_lags_of(table, lagged, sequences)
        targets = _targets(text, sides.response, table.columns)
        terms, lags = _without_own_lags(sides.terms, targets)
        has_terms = bool(set(terms) - {INTERCEPT})
        if len(targets) > 1 and (has_terms or lags):
            raise ValueError(f"the formula {text!r} has {len(targets)} targets: terms may explain one, so write ~ 1")
        features = learned_where_complete(terms, table, explain=True)[0] if has_terms else NO_TERMS
        features.refuse_single_levels()
        own = [learned_where_complete((target,), table)[0] for target in targets]
        for one in own:
            if one.levels:
                raise TypeError(f"{one.terms[0][0][1]} holds text: a target must be numbers, such as codes from 0 on")
        response = replace(
            own[0], terms=targets, kinds=_merged(one.kinds for one in own), names=tuple(one.names[0] for one in own)
        )
        extras = {}
        if gating is not None:
            steps = read(f"~ {of_steps.strip().removeprefix('~')}", table.columns)
            extras["gating"] = learned_where_complete(steps.terms, table, explain=True)[0]
            extras["gating"].refuse_as_gating("gating")
            extras["gating"].refuse_single_levels()
        formula = Formula(text, features, response, extras, sides.groups or _text(groups))
        known = cls(formula, lags, _text(time), INTERCEPT in sides.terms)
        return known, known.design(data, sequences), sequences

    def reads(self, X: Any, gating: Any = None) -> bool:
        """Return whether X is a table, or a list of tables, and not the design already, with its covariates if any."""
        first = X[0] if isinstance(X, list | tuple) and len(X) else X
        return is_table(first) and (
            ("gating" in self.formula.extras and gating is None) or list(map(str, first.columns)) != self.names
        )

    @property
    def names(self) -> list[str]:
        """Names of the columns of the design."""
        return [*self.formula.response.names, *self.formula.features.names]

    def in_words(self, name: str) -> str:
        """Return the name of a column in words, as `Formula.in_words`."""
        return self.formula.in_words(name)

    @property
    def columns(self) -> list[str]:
        """Columns of a table that the design and the covariates of transitions need."""
        parts = (self.formula.response, self.formula.features, *self.formula.extras.values())
        found = [name for part in parts for name in part.kinds]
        return list(dict.fromkeys(name if LAGGED.fullmatch(name) is None else _lag_of(name)[0] for name in found))

    @property
    def columns_ahead(self) -> list[str]:
        """Columns of the rows to come that a forecast needs; the target is none."""
        found = [name for part in (self.formula.features, *self.formula.extras.values()) for name in part.kinds]
        named = dict.fromkeys(name if LAGGED.fullmatch(name) is None else _lag_of(name)[0] for name in found)
        return [name for name in named if name not in self.formula.response.kinds]

    def rows(self, X: Any, lengths: Any, groups: Any, time: Any) -> tuple[Any, Sequences]:
        """Return the design of a new table, and its sequences, by the columns of the fit where nothing else says so."""
        X, lengths = one_table(X, lengths)
        known = list(map(str, X.columns))
        if lengths is None and groups is None and self.formula.groups in known:
            groups = self.formula.groups
        if time is None and self.time in known:
            time = self.time
        sequences = sequences_of(X, lengths, groups, time)[1]
        return self.design(X, sequences), sequences

    def ahead(self, X: Any, future: Any, sequences: Sequences) -> tuple[Array | None, Any]:
        """Return terms of the rows to come, sequence by sequence in order of time, and covariates of their steps.

        Lags reach back into the rows of X. None where there are no terms, or no covariates.
        """
        table, new = table_of(X), table_of(future)
        before = table[self.time].to_list() if self.time in table.columns else None
        codes, order = order_ahead(new, sequences, self.formula.groups, self.time, before)
        place = np.empty(len(table), dtype=np.intp)
        place[sequences.order] = np.arange(len(table))
        later = np.empty(len(new), dtype=np.intp)
        later[order] = len(table) + np.arange(len(new))
        every = np.concatenate([sequences.codes, codes])
        both = Sequences(every, np.lexsort((np.concatenate([place, later]), every)), sequences.names, True)
        targets = set(self.formula.response.kinds)
        rows = joined_columns(table, new, self.columns, targets)
        try:
            design, covariates = self.design(rows, both), self.gating(rows, both)
        except RowError as error:
            if error.row < len(table):
                raise
            raise RowError(f"future: {error.what}", error.row - len(table), error.after) from error
        terms = np.asarray(design)[len(table) :, len(self.formula.response.names) :][order]
        steps = None if covariates is None else covariates.iloc[len(table) :].iloc[order]
        for values, names in ((terms, self.formula.features.names), (steps, ["gating"])):
            if values is not None and np.isnan(np.asarray(values)).any():
                raise ValueError(f"future lacks a value that {', '.join(names)} need: fill it in")
        return terms if self.formula.features.names else None, steps

    def gating(self, data: Any, sequences: Sequences) -> Any:
        """Return the covariates of transitions as a data frame; None where there are none."""
        import pandas as pd

        terms = self.formula.extras.get("gating")
        if terms is None:
            return None
        table = table_of(one_table(data, None)[0])
        table = with_lags_of(table, [name for name in terms.kinds if name not in table.columns], sequences)
        return pd.DataFrame(_filled(applied_where_complete(terms, table), sequences), columns=list(terms.names))

    def design(self, data: Any, sequences: Sequences) -> Any:
        """Return targets and terms of each row as a data frame; NaN where a column that they need has no value."""
        found = (*self.formula.response.kinds, *self.formula.features.kinds)
        table = table_of(data)
        table = with_lags_of(table, [name for name in found if name not in table.columns], sequences)
        own, features = self.formula.response, self.formula.features
        each = zip(own.terms, own.names, strict=True)
        every = [replace(own, terms=(t,), kinds=_kinds_of(own, t), names=(n,)) for t, n in each]
        parts = [applied_where_complete(terms, table) for terms in (*every, *([features] if features.names else []))]
        return design_frame(np.concatenate(parts, axis=1), self.names)


def _filled(values: Array, sequences: Sequences) -> Array:
    """Return covariates with those of second rows in first rows that have none: no step leads into a first row."""
    order, codes = sequences.order, sequences.codes[sequences.order]
    firsts = np.flatnonzero(np.diff(codes, prepend=-1) != 0)
    nexts = np.minimum(firsts + 1, len(order) - 1)
    known, out = values[order], values.copy()
    inside = np.where((codes[nexts] == codes[firsts])[:, None], known[nexts], 0.0)
    out[order[firsts]] = np.where(np.isnan(known[firsts]), inside, known[firsts])
    return out


def _name_of(call: re.Match[str]) -> str:
    far = int(call[3] or 1)
    if far < 1:
        raise ValueError(f"{call[0]}: a lag is one row before or more")
    return lag_name(call[1] or call[2], far)


def lag_name(column: str, far: int) -> str:
    """Return how the lag of a column is named."""
    return f"lag({column})" if far == 1 else f"lag({column}, {far})"


def _lag_of(name: str) -> tuple[str, int]:
    """Return the column of which one is a lag, and how far."""
    found = LAGGED.fullmatch(name)
    assert found is not None
    return found[1], int(found[2] or 1)


def with_lags_of(table: Any, names: Sequence[str], sequences: Sequences) -> Any:
    """Return a table with columns of lags, empty where a sequence has not begun."""
    order, codes = sequences.order, sequences.codes[sequences.order]
    for name in names:
        if LAGGED.fullmatch(name) is None:
            continue  # a column that the table lacks, which is told when it is read
        column, far = _lag_of(name)
        check_column(column, table.columns)
        before = np.full(len(order), -1)
        before[order[far:]] = np.where(codes[far:] == codes[:-far], order[:-far], -1)
        series = table[column]
        numbers = series.dtype.is_numeric() or series.dtype == nw.Boolean
        values = series.cast(nw.Float64).to_list() if numbers else series.to_list()
        moved = [None if i < 0 else values[i] for i in before.tolist()]
        kind = nw.Float64 if numbers else nw.String
        table = table.with_columns(nw.new_series(name, moved, kind, backend=table.implementation))
    return table


def joined_columns(table: Any, future: Any, names: Sequence[str], targets: set[str]) -> Any:
    """Return columns of a table and of the rows to come, which need not have the targets, one after the other."""
    series = []
    for name in names:
        own = table[name]
        if name not in targets:
            check_column(name, future.columns)
        later = future[name].to_list() if name in future.columns and name not in targets else [None] * len(future)
        numbers = own.dtype.is_numeric() or own.dtype == nw.Boolean
        values = [None if v is None else float(v) for v in own.to_list()] if numbers else own.to_list()
        later = [None if v is None else float(v) for v in later] if numbers else later
        kind = nw.Float64 if numbers else nw.String
        series.append(nw.new_series(name, [*values, *later], kind, backend=table.implementation))
    return nw.to_native(nw.from_dict({one.name: one for one in series}, backend=table.implementation))


def _targets(text: str, response: Sequence[Term], columns: Sequence[str]) -> tuple[Term, ...]:
    """Return the targets: one term, or the columns of ``cbind``."""
    if len(response) == 1 and response[0][0][1].lstrip().startswith("cbind("):
        return tuple((("lookup", name),) for name in variables_of(response, columns))
    if len(response) > 1:
        raise ValueError(f"the formula {text!r} names {len(response)} targets: write cbind(y, z) ~ 1 for several")
    return tuple(response)


def _without_own_lags(terms: Sequence[Term], targets: Sequence[Term]) -> tuple[tuple[Term, ...], int]:
    """Return the terms without lags 1, ..., L of the only target, and L; all terms where lags between are left out."""
    ((method, target), *more) = targets[0]
    own: list[Term] = []
    while len(targets) == 1 and method == "lookup" and not more:
        lag: Term = (("lookup", lag_name(target, len(own) + 1)),)
        if lag not in terms:
            break
        own.append(lag)
    beyond = [t for t in terms if t not in own and re.fullmatch(rf"lag\({re.escape(target)}(, \d+)?\)", t[0][1])]
    if beyond:
        return tuple(terms), 0
    return tuple(term for term in terms if term not in own), len(own)


def _kinds_of(terms: Terms, term: Term) -> dict[str, Any]:
    return {name: terms.kinds[name] for name in variables_of([term], list(terms.kinds))}


def _merged(parts: Any) -> dict[str, Any]:
    return {name: kind for part in parts for name, kind in part.items()}


def _text(name: Any) -> str | None:
    return name if isinstance(name, str) else None
