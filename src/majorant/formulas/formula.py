"""Formulas with the roles of columns, learned from the table of the fit and applied to others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from majorant._numbers import briefly
from majorant.formulas.columns import refuse_missing, table_of
from majorant.formulas.language import Sides, Term, check_column, expression, read, require_formulaic, variables_of
from majorant.formulas.terms import Array, Terms

CONSTANT = "Intercept"
"""Name of the only feature of a formula such as ``y ~ 1``."""


_DESIGN = "majorant design"

EXTRAS = ("groups", "gating", "offset", "trials")
"""Roles of columns in a formula besides features and response."""


@dataclass(frozen=True)
class TableRows:
    """Rows in the form that estimators take."""

    X: Any  # (n, d): the design, its columns named by the terms
    y: Array | None  # (n,)
    keywords: dict[str, Any]  # ``gating`` (a data frame), ``offset``, ``trials`` and ``groups``, as far as given


@dataclass(frozen=True)
class Formula:
    """A formula with what it learned from the table of the fit.

    Attributes
    ----------
    text : str
        The formula as given.
    features : Terms
    response : Terms
    extras : dict of Terms
        ``gating``, ``offset`` and ``trials``, as far as given.
    groups : str or None
        The column of the groups.
    """

    text: str
    features: Terms
    response: Terms
    extras: dict[str, Terms] = field(default_factory=dict)
    groups: str | None = None

    @classmethod
    def learn(
        cls,
        text: str,
        data: Any,
        *,
        groups: str | None = None,
        gating: str | None = None,
        offset: str | None = None,
        trials: str | None = None,
        others: Sequence[str] = (),
    ) -> tuple[Formula, TableRows]:
        """Learn levels and contrasts of a formula from a table; return the formula and the table's design.

        Parameters
        ----------
        text : str
            ``response ~ terms | groups``; the response may be ``cbind(successes, failures)``, and one of the terms
            ``offset(...)``.
        data : data frame
        groups : str, optional
            The column of the groups, if the formula names none.
        gating : str, optional
            Terms of the weights of components.
        offset, trials : str, optional
            A column, or arithmetic on columns.
        others : sequence of str
            Columns, or arithmetic on columns, that ``.`` excludes: weights, for instance.

        Raises
        ------
        ImportError
            If formulaic is not installed.
        ValueError, TypeError
            If the formula or the table cannot be used.
        """
        require_formulaic()
        table = table_of(data)
        roles = {"groups": groups, "gating": gating, "offset": offset, "trials": trials}
        sides, found = _read_all(text, table.columns, others, **roles)
        refuse_missing(table, _needed(sides, found, table.columns))
        features, X = Terms.learn(sides.terms, table, explain=True)
        if not (features.names or features.has_intercept):
            raise ValueError(f"the formula {text!r} has no terms: write ~ 1 for means alone")
        response, y = Terms.learn(sides.response, table)
        if response.levels:
            told = ":".join(factor for _, factor in sides.response[0])
            raise TypeError(f"the response {told!r} holds levels: it must be numbers, such as I({told} == 'a')")
        if y.shape[1] > 2 or (y.shape[1] == 2 and not sides.response[0][0][1].startswith("cbind")):
            raise ValueError(f"the response of {text!r} has {y.shape[1]} columns: it must be one number per row")
        if y.shape[1] == 2 and trials is not None:
            raise ValueError("cbind(successes, failures) gives the trials: leave trials= out")
        learned = {name: Terms.learn(terms, table, explain=name == "gating") for name, terms in found.items()}
        for terms in (features, *(terms for terms, _ in learned.values())):
            terms.refuse_single_levels()
        _check_extras(learned)
        extras = {name: terms for name, (terms, _) in learned.items()}
        values = {name: found for name, (_, found) in learned.items()}
        formula = cls(text, features, response, extras, sides.groups)
        return formula, formula._rows(table, X, y, values, formula.groups)

    def apply(self, data: Any, wanted: Iterable[str] = (), response: bool | None = None) -> TableRows:
        """Return the design and roles for a new table.

        Parameters
        ----------
        data : data frame
        wanted : iterable of str
            The roles that are needed among ``gating``, ``offset``, ``trials`` and ``groups``, as far as the formula has
            them. Groups and, without response, trials are left out if the table lacks their columns.
        response : bool, optional
            Whether the response is needed; by default it is included if the table has its columns.

        Raises
        ------
        ValueError, TypeError
            If a column or a value is missing, or a level did not occur in the fit.
        """
        require_formulaic()
        table = table_of(data)
        names = set(wanted)
        if response is None:
            response = all(name in table.columns for name in self.response.kinds)
        counted = len(self.response.names) == 2 and "trials" in names
        if counted and not response:  # cbind(successes, failures) says the trials wherever its columns are
            response = all(name in table.columns for name in self.response.kinds)
        y = self.response.apply(table) if response else None
        known = self._extras_of(table.columns, with_trials=bool(response))
        values = {name: terms.apply(table) for name, terms in known.items() if name in names}
        groups = self.groups if "groups" in names and self.groups in table.columns else None
        return self._rows(table, self.features.apply(table), y, values, groups)

    @property
    def roles(self) -> list[str]:
        """Roles among `EXTRAS` that the formula has."""
        has_trials = len(self.response.names) == 2
        return [*self.extras, *(["groups"] if self.groups is not None else []), *(["trials"] if has_trials else [])]

    def in_words(self, name: str) -> str:
        """Return the name of a column in words: ``sex: M against F`` for ``sex[T.M]``."""
        known = (terms.contrasts[name] for terms in (self.features, *self.extras.values()) if name in terms.contrasts)
        factor, level, reference = next(known, (name, "", ""))
        if not level:
            return name
        return f"{factor}: {level}{f' against {reference}' if reference else ''}"

    @property
    def response_text(self) -> str:
        """The response as written in the formula."""
        return self.response.terms[0][0][1]

    @property
    def design_names(self) -> tuple[str, ...]:
        """Names of the columns of the design."""
        return self.features.names or (CONSTANT,)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the formula needs, those of the response first."""
        return self._columns(self.response, self.features, *self.extras.values())

    def predictors(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the columns that a prediction needs, given the table's columns; they may include missing ones."""
        needed = self._columns(self.features, *self._extras_of(columns, with_trials=False).values())
        return tuple(name for name in needed if name in columns or name != self.groups)

    def _extras_of(self, columns: Sequence[str], *, with_trials: bool) -> dict[str, Terms]:
        """Return gating, offset and trials; trials without columns in the table only if needed."""
        return {
            name: terms
            for name, terms in self.extras.items()
            if name != "trials" or with_trials or all(column in columns for column in terms.kinds)
        }

    def _columns(self, *parts: Terms) -> tuple[str, ...]:
        names = [name for part in parts for name in part.kinds if name != self.groups]
        return tuple(dict.fromkeys([*names, *([] if self.groups is None else [self.groups])]))

    @property
    def has_intercept(self) -> bool:
        return self.features.has_intercept and bool(self.features.names)

    def to_state(self) -> dict[str, Any]:
        """Return the formula as plain values, for saving."""
        return {
            "text": self.text,
            "features": self.features.to_state(),
            "response": self.response.to_state(),
            "extras": {name: terms.to_state() for name, terms in self.extras.items()},
            "groups": self.groups,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Formula:
        """Build a formula from the values of `to_state`."""
        return cls(
            str(state["text"]),
            Terms.from_state(state["features"]),
            Terms.from_state(state["response"]),
            {str(name): Terms.from_state(terms) for name, terms in state["extras"].items()},
            None if state["groups"] is None else str(state["groups"]),
        )

    def __repr__(self) -> str:
        return f"Formula({self.text!r})"

    def _rows(
        self, table: nw.DataFrame[Any], X: Array, y: Array | None, extras: Mapping[str, Array], groups: str | None
    ) -> TableRows:
        keywords: dict[str, Any] = {
            name: design_frame(values, self.extras[name].names) if name == "gating" else values[:, 0]
            for name, values in extras.items()
        }
        if groups is not None:
            refuse_missing(table, [groups])
            keywords["groups"] = column_of(table, groups)
        if y is not None and y.shape[1] == 2:
            keywords["trials"] = y.sum(axis=1)
        design = X if X.shape[1] else np.ones((len(table), 1))
        return TableRows(design_frame(design, self.design_names), None if y is None else y[:, 0], keywords)


def is_design(data: Any) -> bool:
    """Return whether a data frame is the design of a formula rather than a table."""
    return bool(getattr(data, "attrs", {}).get(_DESIGN))


def columns_needed(text: str, columns: Sequence[str], others: Sequence[str] = (), **roles: str | None) -> list[str]:
    """Return the columns of a table that a formula and its roles need, in the order of the formula.

    Parameters
    ----------
    text : str
    columns : sequence of str
        Columns of the table.
    others : sequence of str
        As in `Formula.learn`.
    **roles
        ``groups``, ``gating``, ``offset`` and ``trials`` of `Formula.learn`.

    Raises
    ------
    ImportError
        If formulaic is not installed.
    ValueError, TypeError
        If a column is missing, or the formula cannot be read.
    """
    require_formulaic()
    sides, found = _read_all(text, columns, others, **{name: roles.get(name) for name in EXTRAS})
    return _needed(sides, found, columns)


def column_of(data: Any, name: str) -> NDArray[Any]:
    """Return the values of a column, unchanged.

    Raises
    ------
    ValueError
        If there is no column of that name.
    """
    table = table_of(data)
    check_column(name, table.columns)
    return np.asarray(table[name].to_numpy())


def numbers_of(data: Any, text: str, what: str) -> Array:
    """Evaluate a column or arithmetic on columns to one number per row.

    Raises
    ------
    ValueError, TypeError
        If it cannot be computed, or is more than one number per row.
    """
    table = table_of(data)
    learned, values = Terms.learn(expression(text, table.columns), table)
    _check_extras({what: (learned, values)})
    return values[:, 0]


def _read_all(
    text: str,
    columns: Sequence[str],
    others: Sequence[str],
    *,
    groups: str | None,
    gating: str | None,
    offset: str | None,
    trials: str | None,
) -> tuple[Sides, dict[str, tuple[Term, ...]]]:
    """Read the formula, the columns of the groups, and the terms of gating, offset and trials."""
    numbers = {"offset": offset, "trials": trials}
    found = {name: expression(value, columns) for name, value in numbers.items() if value is not None}
    if gating is not None:
        gates = read(gating, columns)
        if gates.response or gates.groups is not None or gates.offset:
            raise ValueError(f"gating has terms only, such as 'w1 + w2'; got {briefly(gating)}")
        found["gating"] = gates.terms
    further = [*found.values(), *(expression(other, columns) for other in others)]
    elsewhere = [name for terms in further for name in variables_of(terms, columns)]
    if groups is not None:
        check_column(groups, columns)
        elsewhere.append(groups)
    sides = read(text, columns, elsewhere)
    if len(sides.response) != 1:
        raise ValueError(
            f"the formula {text!r} must have one response left of the ~; write arithmetic as I(a / b) and "
            "successes and failures as cbind(a, b)"
        )
    if sides.groups is not None and groups is not None:
        raise ValueError("groups are given twice: in the formula and as groups=")
    if sides.offset is not None:
        if offset is not None:
            raise ValueError("an offset is given twice: in the formula and as offset=")
        found["offset"] = expression(sides.offset, columns)
    sides = replace(sides, groups=groups if sides.groups is None else sides.groups)
    _refuse_own_response(sides, found, columns)
    return sides, found


def _refuse_own_response(sides: Sides, extras: Mapping[str, tuple[Term, ...]], columns: Sequence[str]) -> None:
    """Raise ValueError if the response is among the explanatory columns."""
    response = sides.response[0]
    right = [*sides.terms, *(term for name, terms in extras.items() if name != "trials" for term in terms)]
    used = {factor for term in right for factor in term}
    used |= {("lookup", name) for name in [*variables_of(right, columns), sides.groups] if name is not None}
    if used & set(response):
        told = ":".join(factor for _, factor in response)
        raise ValueError(f"the response {told!r} is among the explanatory terms: leave it out on the right of the ~")


def _needed(sides: Sides, extras: Mapping[str, tuple[Term, ...]], columns: Sequence[str]) -> list[str]:
    terms = [*sides.response, *sides.terms, *(term for extra in extras.values() for term in extra)]
    return list(dict.fromkeys([*variables_of(terms, columns), *([] if sides.groups is None else [sides.groups])]))


def _check_extras(learned: Mapping[str, tuple[Terms, Array]]) -> None:
    for name, (terms, values) in learned.items():
        if name == "gating":
            terms.refuse_as_gating(name)
        if name != "gating" and (terms.levels or values.shape[1] != 1):
            raise TypeError(f"{name} must be one number per row; {terms.terms[0][0][1]} is not")


def design_frame(values: Array, names: Sequence[str]) -> Any:
    """Return columns as a data frame that `is_design` knows."""
    import pandas as pd

    frame = pd.DataFrame(values, columns=list(names))
    frame.attrs[_DESIGN] = True
    return frame
