"""Rows and columns of a table that a formula uses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from majorant.cli.errors import CommandError, listed, sentence
from majorant.cli.matrix import (
    BY_TERMS,
    Matrix,
    check_column,
    check_there,
    check_weights,
    choose_features,
    id_columns,
    incomplete_rows,
    is_empty,
    refuse_spoilt,
)
from majorant.cli.request import FitRequest
from majorant.cli.settings import allows_missing, known_models
from majorant.cli.tables import SourceTable
from majorant.formulas import Formula, RowError, columns_needed, quoted
from majorant.registry import ESTIMATORS, ModelCard, card_of

Result = TypeVar("Result")


@dataclass(frozen=True)
class UsedRows:
    """The rows of a table that a formula uses."""

    table: SourceTable  # the table without rows that were left out
    rows: NDArray[np.int64]  # numbers of the rows in the whole table, from 1
    n_left_out: int

    @property
    def frame(self) -> pl.DataFrame:
        return self.table.frame

    def told(self, compute: Callable[[], Result]) -> Result:
        """Call `compute`; errors name the row by its number in the table."""
        with formula_refusals(self.rows, self.table.name):
            return compute()

    def matrix(self, formula: Formula, weights: str | None = None) -> Matrix:
        """Return the design of the formula."""
        seen = self.told(lambda: formula.apply(self.frame, response=True))
        given = None if weights is None else self.frame[weights].cast(pl.Float64).to_numpy()
        return Matrix(seen.X.to_numpy(), seen.y, given, self.rows, self.n_left_out)


def wants_formula(request: FitRequest) -> bool:
    """Return whether the fit uses a formula: one is given, or an option that needs one."""
    return request.formula is not None or bool(request.roles)


def check_options(request: FitRequest, card: ModelCard) -> None:
    """Raise CommandError for options that the model does not take."""
    asked = {
        "formula": request.formula,
        "family": request.family,
        **request.roles,
        "covariates": request.covariates or None,
        "population": request.population,
        "equal-items": request.equal_items or None,
        "invariance-tests": request.invariance_tests or None,
        "component-labels": request.component_labels,
        "outcomes": request.outcomes or None,
        "method": request.method,
        "assignment": request.assignment,
        "bag": request.bag,
        "views": request.views,
        "weights": request.weights,
    }
    for name, given in asked.items():
        if given is not None and not takes_option(ESTIMATORS[card.name], name):
            able = [other for other in known_models() if takes_option(ESTIMATORS[other], name)]
            hint = f"Models that do: {listed(able) or 'none'}."
            if name == "gating" and takes_option(ESTIMATORS[card.name], "covariates"):
                hint = "Name the columns on which its shares depend with --covariates."
            raise CommandError(f"{card.title} takes no --{name}.", hint)
    if request.missing not in (None, "drop", "fit", "fail"):
        raise CommandError(
            f'--missing says what becomes of rows with missing values, drop, fit or fail; got "{request.missing}".',
            f"What stands in the file where a cell is missing is told by --na {request.missing}.",
        )
    if request.missing == "fit" and request.views is None and not _fits_gaps(card):
        able = [other for other, known in known_models().items() if _fits_gaps(known)]
        raise CommandError(f"{card.title} needs every value: --missing drop.", f"Models that do not: {listed(able)}.")
    for name, given in (("time", request.time), ("sequence", request.sequence)):
        if given is not None and not card.in_order:
            able = [other for other, known in known_models().items() if known.in_order]
            raise CommandError(f"{card.title} takes no --{name}: it is no model of series.", f"One is {listed(able)}.")
    if request.time is not None and request.time == request.sequence:
        raise CommandError(f'"{request.time}" cannot be the time and the sequence of a row at once.')
    if request.bag is not None and request.bag in (request.target, request.weights):
        raise CommandError(f'"{request.bag}" cannot name the bags and be the target or the weights at once.')
    if request.formula is not None:
        for option, value in (("--target", request.target), ("--features", request.features)):
            if value:
                raise CommandError(f"--formula names the columns: leave {option} out.")
    if request.views is not None:
        for option, is_given in (("--features", bool(request.features)), ("--standardise", request.standardise)):
            if is_given:
                raise CommandError(f"--views names the columns, and brings numbers to one scale: leave {option} out.")
    if request.standardise and wants_formula(request):
        raise CommandError("--standardise changes features, not terms.", 'Write scale() in --formula: "y ~ scale(x)".')


def formula_text(request: FitRequest, table: SourceTable) -> str:
    """Return the given formula, or the one made of target and features."""
    if request.formula is not None:
        return request.formula
    assert request.target is not None
    check_column(table, request.target)
    others = [name for name in (request.target, request.weights) if name is not None]
    roles = [] if request.features else _needed(table, f"{quoted(request.target)} ~ 1", request.roles)
    ids = id_columns(table.frame, table.frame.columns, by_name=True)
    features = choose_features(table, request.features, others, passed_over=roles, ids=ids, by_levels=BY_TERMS)
    return f"{quoted(request.target)} ~ {' + '.join(map(quoted, features)) or '1'}"


def takes_the_others(formula: str | None) -> bool:
    """Return whether a formula asks for every other column, by a point."""
    return re.search(r"(?<![\w.])\.(?![\w.])", re.sub(r"`[^`]*`", " x ", formula or "")) is not None


def _without_useless(table: SourceTable, request: FitRequest) -> SourceTable:
    """Return the table without what a point in a formula does not mean: ids and empty columns, unless named."""
    if not takes_the_others(request.formula):
        return table
    frame = table.frame
    useless = {*id_columns(frame, frame.columns, by_name=True), *(c for c in frame.columns if is_empty(frame[c]))}
    text = " ".join([request.formula or "", *request.roles.values()])
    named = {request.weights, *(quoted or word for quoted, word in re.findall(r"`([^`]*)`|(\w[\w.]*)", text))}
    return replace(table, frame=frame.drop(useless - named))


def used_rows(table: SourceTable, formula: str, request: FitRequest) -> UsedRows:
    """Return complete rows, after the checks of every fit. A formula may also name columns only to drop them."""
    weights, roles, table = request.weights, request.roles, _without_useless(table, request)
    if weights is not None:
        check_column(table, weights)
    _refuse_spoilt(table, formula)
    needed = _needed(table, formula, roles, [] if weights is None else [weights])
    bound = _needed(table, f"{formula.partition('~')[0]} ~ 1", roles)
    option = "--features" if request.formula is None else "--formula"
    terms = [name for name in needed if name not in bound]
    whole = [*needed, *([] if weights is None else [weights])]
    used = complete_rows(table, whole, request.leaves_out, terms, option)
    if weights is not None:
        check_weights(used.table, weights, used.frame[weights].cast(pl.Float64).to_numpy())
    return used


def _refuse_spoilt(table: SourceTable, formula: str) -> None:
    """Raise CommandError for a numeric column with a few cells of text, whose values would become levels."""
    terms = formula.partition("|")[0]
    as_levels = {name.strip("` ") for name in re.findall(r"\b(?:C|factor)\(([^,()]+)", terms)}
    for name in _needed(table, terms, {}):
        if name in table.frame.columns and name not in as_levels:
            refuse_spoilt(table, name, f"If it holds categories, write C({quoted(name)}).")


def complete_rows(
    table: SourceTable,
    needed: Sequence[str],
    drop_missing: bool,
    optional: Sequence[str] = (),
    option: str = "--features",
) -> UsedRows:
    """Return the rows without missing values in the needed columns; optional ones may be left out by an `option`."""
    missing = {}
    for name in needed:
        check_there(table, name)
        missing[name] = table.frame[name].is_null().to_numpy()
    incomplete = incomplete_rows(table, missing, drop_missing, optional, option)
    return UsedRows(
        replace(table, frame=table.frame.filter(~incomplete)), np.flatnonzero(~incomplete) + 1, int(incomplete.sum())
    )


def _needed(table: SourceTable, formula: str, roles: Mapping[str, str], others: Sequence[str] = ()) -> list[str]:
    with formula_refusals():
        return columns_needed(formula, table.frame.columns, others, **roles)


@contextmanager
def formula_refusals(rows: NDArray[np.int64] | None = None, name: str = "") -> Iterator[None]:
    """Convert errors of a formula to CommandError; those of a row name it by its number in the table `name`."""
    try:
        yield
    except RowError as error:
        told = str(error) if rows is None else f"{error.what} in row {rows[error.row]} of {name}{error.after}"
        raise CommandError(sentence(told)) from error
    except (ValueError, TypeError) as error:
        raise CommandError(sentence(str(error))) from error


def _fits_gaps(card: ModelCard) -> bool:
    return card.takes_text or allows_missing(ESTIMATORS[card.name]())


def takes_option(cls: type[Any], option: str) -> bool:
    """Return whether the models of a class take an option of ``majorant fit``."""
    if option in ("formula", "groups", "gating", "offset", "trials"):  # the command line reads all of them by a formula
        known = signature(cls.fit_formula).parameters if hasattr(cls, "fit_formula") else {}
        return option in known and (option in ("formula", "gating") or not card_of(cls).in_order)
    if option == "covariates" and hasattr(cls, "fit_formula"):  # those depend on terms
        return False
    if option in ("outcomes", "method", "assignment", "invariance-tests"):
        return hasattr(cls, "invariance_tests" if option == "invariance-tests" else "distal_outcome")
    if option == "component-labels" and (hasattr(cls, "fit_formula") or card_of(cls).in_order):
        return False
    name = {"bag": "bags", "weights": "sample_weight", "covariates": "gating"}.get(option, option.replace("-", "_"))
    of_model = option in ("family", "views", "population", "equal-items")
    return name in signature(cls if of_model else cls.fit).parameters
