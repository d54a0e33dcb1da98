"""The first half of ``majorant fit``: from a request to a fitted model."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import is_regressor

from majorant._numbers import plural_of
from majorant._progress import begin_stage, is_stopped
from majorant.cli.bags import check_bags
from majorant.cli.beside import kept_columns, without_ids
from majorant.cli.bound import certify
from majorant.cli.categories import Categories, becomes_numbers
from majorant.cli.columns import column_uses, of_codes, of_constant_columns, of_one_column
from majorant.cli.errors import CommandError, did_you_mean, listed, refusals
from majorant.cli.formulas import (
    check_options,
    complete_rows,
    formula_text,
    takes_option,
    takes_the_others,
    used_rows,
    wants_formula,
)
from majorant.cli.later import NO_LATER_STEPS, known_classes
from majorant.cli.matrix import (
    BY_LEVELS,
    BY_TERMS,
    Columns,
    Matrix,
    check_column,
    check_there,
    choose_features,
    choose_items,
    id_columns,
    is_numeric,
)
from majorant.cli.messages import heard
from majorant.cli.request import LARGEST, FitRequest
from majorant.cli.rows import check_covariates, matrix_for
from majorant.cli.series import in_order, series_formula, series_matrix, with_gaps_filled
from majorant.cli.settings import allows_missing, build_estimator, find_model, parsed_lists
from majorant.cli.tables import SourceTable
from majorant.formulas import Formula, quoted
from majorant.models.units import Standardisation
from majorant.registry import ESTIMATORS, ModelCard
from majorant.report.sections.columns import ColumnUse
from majorant.results.select import criterion_of, default_criterion, has_criterion, models_with, select
from majorant.results.selection import CRITERIA, SILHOUETTE, Selection
from majorant.summary import STOPPED, Summary, counted


@dataclass(frozen=True)
class FittedRun:
    """The result of a fit, before anything is written."""

    request: FitRequest
    card: ModelCard
    table: SourceTable
    columns: Columns
    matrix: Matrix
    standardisation: Standardisation | None
    estimator: Any
    summary: Summary
    seconds: float
    look_out: tuple[str, ...]
    selection: Selection | None = None
    criteria: Mapping[str, float] = field(default_factory=dict)
    kept: pl.DataFrame = field(default_factory=pl.DataFrame)
    categories: Categories = field(default_factory=Categories)
    n_added: int = 0
    later: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_stopped(self) -> bool:
        """Whether the user stopped the search before its end."""
        return STOPPED in self.look_out

    @property
    def frame(self) -> pl.DataFrame:
        """The features as passed to the model."""
        return self.matrix.as_seen(self.columns, self.standardisation)

    @property
    def views(self) -> dict[str, Any] | None:
        """The views that the table was read by."""
        return None if self.request.views is None else self.estimator.views

    @property
    def size(self) -> int:
        """Number of the model's parts."""
        return int(self.card.size_of(self.estimator))

    @cached_property
    def r2(self) -> float | None:
        """Share of a numeric target's variance that a representation explains, on the rows of the fit."""
        if self.card.kind != "representation" or not is_regressor(self.estimator):
            return None
        return float(self.estimator.score(self.frame, self.matrix.target, sample_weight=self.matrix.weights))

    @property
    def n_used(self) -> int:
        """Rows of the fit."""
        return len(self.matrix.rows)

    @property
    def n_left_out(self) -> int:
        """Rows of the table that were left out."""
        return self.matrix.n_left_out

    @cached_property
    def n_missing(self) -> int:
        """Empty cells of the rows of the fit."""
        return int(np.isnan(self.matrix.values).sum())

    @property
    def needs_complete_rows(self) -> bool:
        """Whether rows with empty cells were left out, as they must be of new tables."""
        takes_gaps = self.request.missing != "drop" and allows_missing(self.estimator)
        return self.matrix.n_left_out > 0 and not takes_gaps

    @cached_property
    def effects(self) -> Any:
        """Effects of the covariates on the parts, with intervals; None without covariates, or where there are none."""
        if "effects" in self.later:
            return self.later["effects"]
        if self.matrix.covariates is None or not hasattr(self.estimator, "covariate_effects"):
            return None
        if len(self.estimator.weights_) == 1:
            return None
        given, labels = self.matrix.covariates, self.matrix.labels
        return self.estimator.covariate_effects(self.frame, given, self.matrix.weights, component_labels=labels)

    @property
    def ids_of_rows(self) -> pl.DataFrame:
        """What identifies the rows of the matrix."""
        ids = self.kept.select(self.request.ids)
        return ids[self.matrix.rows - 1] if self.request.ids else ids

    @cached_property
    def column_uses(self) -> tuple[ColumnUse, ...]:
        """What became of each column of the table; empty where a formula or a file of views names them."""
        if self.request.views or (self.request.formula and not takes_the_others(self.request.formula)):
            return ()
        formula = getattr(self.estimator, "formula_", None)
        table = replace(self.table, frame=self.table.frame.hstack(self.kept.select(self.request.ids)))
        return column_uses(table, self.columns if formula is None else self.columns.of(formula), self.request.ids)

    @property
    def ignored(self) -> list[str]:
        """Columns left out because they are not numeric; empty if the features were named."""
        if self.request.features or self.request.formula or self.request.views or self.card.takes_text:
            return []
        formula = getattr(self.estimator, "formula_", None)
        own = (*self.columns.all, *self.columns.beside)
        used = own if formula is None else (*formula.columns, self.request.weights)
        return [name for name in self.table.frame.columns if name not in used]

    @property
    def advice_on_text(self) -> str:
        """How the same command takes text, where most columns are text that was left out; else empty."""
        left_out = [use.name for use in self.column_uses if use.name in self.ignored and "text" in use.notes]
        text, used = [name for name in left_out if becomes_numbers(self.table.frame[name])], self.columns.features
        if self.card.in_order or not text or len(left_out) < len(used):
            return ""
        few = f"only {counted(len(used), 'column')} of numbers {'is' if len(used) == 1 else 'are'} used"
        if self.request.target is not None and takes_option(type(self.estimator), "formula"):
            terms = " + ".join(map(quoted, (*used[:1], text[0])))
            formula = shlex.quote(f"{quoted(self.request.target)} ~ {terms}")
            return f"{few}: --formula in place of --target takes text too, as in {formula}"
        also = ", as latent-class-analysis does" if self.card.kind in ("clustering", "mixture") else ""
        return f"{few}: --categorical one-hot takes text too{also}"


@dataclass(frozen=True)
class Given:
    """The arguments of the model's fit."""

    frame: pl.DataFrame  # the features, or with a formula the columns that it names
    target: NDArray[Any] | None
    keywords: dict[str, Any]  # further arguments of the fit
    formula: str | None = None

    def fit(self, estimator: Any) -> None:
        if self.formula is not None:
            estimator.fit_formula(self.formula, self.frame, **self.keywords)
        else:
            estimator.fit(self.frame, *(() if self.target is None else (self.target,)), **self.keywords)


def fit(request: FitRequest, card: ModelCard, table: SourceTable) -> FittedRun:
    """Fit the model to the table."""
    check_options(request, card)
    if card.needs_target and request.target is None and request.formula is None:
        raise CommandError(f"{card.title} predicts a column: name it with --target.")
    if request.target is not None and not card.needs_target and card.by_target is None:
        raise CommandError(f"{card.title} has no target: leave --target out, or leave the column out with --features.")
    if request.target is not None and card.by_target is not None:
        card = _card_by_target(card, table, request.target)
    request = _with_sizes(request, card)
    size = request.k.start if isinstance(request.k, range) else request.k
    settings = [*request.settings, *([] if request.family is None else [f"family={request.family}"])]
    estimator = build_estimator(card, size, settings, request.random_state)
    if getattr(estimator, "metric", None) == "precomputed":
        raise CommandError("a table holds rows here, not distances.", "Name the metric, or fit in Python.")
    equal = (
        request.equal_items[0] if request.equal_items in (("all",), ("none",)) else list(request.equal_items) or None
    )
    own = {"population": request.population, "equal_items": equal}
    estimator.set_params(**{name: value for name, value in own.items() if value is not None})
    if (equal is not None or request.invariance_tests) and estimator.population is None:
        raise CommandError("--equal-items and --invariance-tests compare populations.", "Name them with --population.")
    _check_comparison(request, card, estimator)
    n_read = table.frame.height
    if request.fill_gaps:
        table = with_gaps_filled(table, request.time, request.sequence)
    kept = kept_columns(table, request.ids, request.keep, request.series)
    table = without_ids(table, request.ids, request.named_columns)
    request, table, categories = _as_numbers(request, card, table, estimator)
    units, said = None, list[str]()
    if wants_formula(request):
        by_formula = _series_by_formula if card.in_order else _by_formula
        given, columns, matrix, said = by_formula(request, table)
    else:
        columns, matrix, said = _by_columns(request, card, table, estimator)
        units = Standardisation.of(matrix.values, matrix.weights) if request.standardise else None
        frame = matrix.as_seen(columns, units)
        keywords = {"sample_weight": matrix.weights, "bags": matrix.bags, **matrix.given}
        given = Given(frame, matrix.target, {name: value for name, value in keywords.items() if value is not None})
    if request.missing == "fail":
        complete_rows(table, [name for name in columns.all if name in table.frame.columns], False)
    if _is_unsized(request, card):
        raise CommandError(
            f"how many {plural_of(card.part)}? Sizes cannot be compared by silhouettes of weighted rows.",
            "Give their number, such as --k 3.",
        )
    _check_size(card, estimator, matrix, request)
    if request.component_labels is not None:
        least = size if request.compares else card.size_of(estimator)
        labels, _ = known_classes(table.frame[request.component_labels][matrix.rows - 1], least)
        matrix = replace(matrix, labels=labels)
        given.keywords["component_labels"] = labels
    began, worked = time.perf_counter(), time.process_time()
    selection = _selected(request, card, estimator, given) if request.compares else None
    if selection is None:
        warned = _fit_estimator(card, estimator, given)
    else:
        estimator, warned = selection.best_estimator_, [*selection.look_out, *selection.best.warnings]
    seconds, worked = time.perf_counter() - began, time.process_time() - worked
    begin_stage("bound")
    if not is_stopped():
        certify(estimator, given.frame, matrix, worked)
    later, of_later = dict[str, Any](), list[str]()
    if columns.later != NO_LATER_STEPS and estimator.regular_ and not is_stopped():
        rows = table.frame[matrix.rows - 1]
        later, of_later = columns.later.results(estimator, given.frame, rows, matrix.weights)
    summary: Summary = estimator.summary()
    if card.objective_name == "SSE":
        warned += [*(of_one_column(columns, matrix) if units is None else []), *of_constant_columns(columns, matrix)]
    said = [*of_codes(table, [name for name in (*columns.all, *columns.beside) if name in table.frame.columns]), *said]
    stopped = [STOPPED] if is_stopped() else []
    look_out = tuple(dict.fromkeys([*stopped, *said, *summary.look_out, *warned, *of_later]))
    criteria = _criteria(estimator, given)
    return FittedRun(
        request,
        card,
        table,
        columns,
        matrix,
        units,
        estimator,
        summary,
        seconds,
        look_out,
        selection,
        criteria,
        kept,
        categories,
        table.frame.height - n_read,
        later,
    )


def _with_sizes(request: FitRequest, card: ModelCard) -> FitRequest:
    """Return the request with sizes to compare where the user gave none and they can be compared."""
    criterion = default_criterion(ESTIMATORS[card.name])
    comparable = has_criterion(ESTIMATORS[card.name], criterion) and _is_unsized(request, card)
    if not comparable or (criterion == SILHOUETTE and request.weights is not None):
        return request
    return replace(request, k=range(2 if criterion == SILHOUETTE else 1, 1 + LARGEST))


def _as_numbers(
    request: FitRequest, card: ModelCard, table: SourceTable, estimator: Any
) -> tuple[FitRequest, SourceTable, Categories]:
    """Return the request and its table with the levels of text as columns of numbers, where the user wants that."""
    if request.categorical == "drop":
        return request, table, Categories()
    if card.takes_text or card.in_order or wants_formula(request) or request.views is not None:
        raise CommandError(f"{card.title} takes text as it is, or no text at all: leave --categorical out.")
    used = [name for option, names in request.named_columns.items() if option != "features" for name in names]
    among = request.features or [name for name in table.frame.columns if name not in used]
    are_contrasts = card.kind == "regression" and estimator.fit_intercept
    categories = Categories.learn(table.frame, request.categorical, among, are_contrasts)
    features = tuple(new for name in request.features for new in categories.names(name))
    return replace(request, features=features), categories.apply(table), categories


def _is_unsized(request: FitRequest, card: ModelCard) -> bool:
    """Return whether the user must say how many parts there are, or let it be chosen."""
    is_set = any(setting.partition("=")[0].strip() == card.size_parameter for setting in request.settings)
    has_parts = card.size_parameter is not None and card.kind in ("clustering", "mixture", "regression")
    return has_parts and request.k is None and not is_set


def _criteria(estimator: Any, given: Given) -> dict[str, float]:
    """Return every criterion that the fit has, by name."""
    return {
        name: criterion_of(estimator, name, given.frame, given.target, given.keywords)
        for name in CRITERIA
        if hasattr(estimator, f"{name}_") or hasattr(estimator, name)
    }


def _by_columns(
    request: FitRequest, card: ModelCard, table: SourceTable, estimator: Any
) -> tuple[Columns, Matrix, list[str]]:
    """Return the columns of the table that are features, their rows, and warnings about these."""
    others = [name for name in (request.target, request.weights, request.bag) if name is not None]
    has_labels = card.kind == "classification"

    def matrix_of(columns: Columns) -> Matrix:
        drop, leaves_out = request.missing == "drop", request.leaves_out
        return matrix_for(estimator, table, columns, drop, leaves_out=leaves_out, has_labels=has_labels)

    if request.views is not None:
        from majorant.cli.views import columns_of, read_views

        for name in others:  # one that cannot be used
            check_there(table, name) if has_labels and name == request.target else check_column(table, name)
        views = read_views(request.views, table, others)
        estimator.set_params(views=views)
        columns = Columns(columns_of(views, table), request.target, request.weights)
        return columns, matrix_of(columns), []
    later = request.later(table.frame.columns)
    covariates = () if later.covariates else request.covariates
    columns = Columns((), covariates=covariates, labels=request.component_labels, later=later)
    text = (*covariates, *columns.beside)
    others += text
    if card.takes_text:
        population = getattr(estimator, "population", None)
        beside = [population] if request.features and isinstance(population, str) else []
        asked = [*request.features, *(name for name in beside if name not in request.features)]
        columns = replace(columns, features=choose_items(table, asked, others, text), weights=request.weights)
        _set_ordinal(estimator, request.reading.orders(table.frame), columns.features)
        check_covariates(columns)
        return columns, matrix_of(columns), []
    if card.in_order:
        roles = [name for name in (request.time, request.sequence) if name is not None]
        columns = Columns(
            choose_features(table, request.features, roles, roles), time=request.time, sequence=request.sequence
        )
        series = in_order(table, columns)
        return columns, series_matrix(series, columns, request.missing == "drop"), list(series.said)
    labels = (request.target if has_labels else None, request.bag, *text)
    ids = id_columns(table.frame, table.frame.columns, by_name=request.target is not None)
    by_levels = BY_TERMS if takes_option(type(estimator), "formula") else BY_LEVELS
    columns = replace(
        columns,
        features=choose_features(table, request.features, others, labels, ids=ids, by_levels=by_levels),
        target=request.target,
        weights=request.weights,
        bag=request.bag,
    )
    check_covariates(columns)
    matrix = matrix_of(columns)
    check_bags(table, columns, matrix)
    return columns, matrix, []


def _set_ordinal(estimator: Any, orders: Mapping[str, Any], features: Sequence[str]) -> None:
    """Make items ordinal whose levels the user put in order, unless it was said what they are."""
    asked = {} if estimator.items == "auto" else estimator.items
    if isinstance(asked, Mapping) and (ordinal := dict.fromkeys((n for n in orders if n in features), "ordinal")):
        estimator.set_params(items={**ordinal, **asked})


def _card_by_target(card: ModelCard, table: SourceTable, target: str) -> ModelCard:
    """Return the card of the model for a numeric target, or for one of text or truth values."""
    check_there(table, target)
    assert card.by_target is not None
    for_classes, for_numbers = card.by_target
    column = table.frame[target]
    return find_model(for_numbers if is_numeric(column) and column.dtype != pl.Boolean else for_classes)


def _series_by_formula(request: FitRequest, table: SourceTable) -> tuple[Given, Columns, Matrix, list[str]]:
    """Apply a formula to rows in order of time."""
    roles = [name for name in (request.time, request.sequence) if name is not None]
    series = in_order(table, Columns((), time=request.time, sequence=request.sequence))
    gating, text = request.roles.get("gating"), request.formula
    if text is None:
        targets = ", ".join(map(quoted, choose_features(table, request.features, roles, roles)))
        text = f"cbind({targets}) ~ 1"
    formula = series_formula(text, series, gating)
    columns = Columns(tuple(formula.names), time=request.time, sequence=request.sequence)
    matrix = series_matrix(series, columns, request.missing == "drop", formula=formula)
    keywords = {**matrix.given, **({} if gating is None else {"gating": gating})}
    return Given(series.table.frame, None, keywords, text), columns, matrix, list(series.said)


def _by_formula(request: FitRequest, table: SourceTable) -> tuple[Given, Columns, Matrix, list[str]]:
    """Apply a formula to the table, so that errors in it are reported before the fit."""
    text = formula_text(request, table)
    used = used_rows(table, text, request)
    others = [] if request.weights is None else [request.weights]
    formula, rows = used.told(lambda: Formula.learn(text, used.frame, **request.roles, others=others))
    weights = None if request.weights is None else used.frame[request.weights].cast(pl.Float64).to_numpy()
    keywords = {**request.roles, **({} if weights is None else {"weights": request.weights})}
    columns = Columns(formula.design_names, formula.response_text, request.weights)
    matrix = Matrix(rows.X.to_numpy(), rows.y, weights, used.rows, used.n_left_out)
    return Given(used.frame, None, keywords, text), columns, matrix, []


def _check_comparison(request: FitRequest, card: ModelCard, estimator: Any) -> None:
    """Raise CommandError for an unknown criterion, or if there is nothing to compare."""
    known = (*CRITERIA, SILHOUETTE)
    if request.criterion is not None and request.criterion not in known:
        raise CommandError(
            f'there is no criterion "{request.criterion}".{did_you_mean(request.criterion, known)}',
            f"Criteria: {listed(known)}.",
        )
    if request.criterion is not None and not request.compares:
        raise CommandError("--criterion chooses among several fits.", "Give a range, such as --k 1:6.")
    own = default_criterion(type(estimator))
    criterion = request.criterion or own
    if request.compares and not has_criterion(type(estimator), criterion):
        raise CommandError(
            f"{card.title} has no {criterion}, which compares {listed(models_with(criterion)) or 'no model'}.",
            f"Leave --criterion out to compare by {own}." if has_criterion(type(estimator), own) else "Give one size.",
        )


def _selected(request: FitRequest, card: ModelCard, estimator: Any, given: Given) -> Selection:
    """Fit all sizes and settings that are asked for."""
    sizes = request.k if isinstance(request.k, range) else (card.size_of(estimator),)
    grid = parsed_lists(card, estimator, request.vary)
    with refusals(card):
        found = select(
            estimator,
            given.frame,
            given.target,
            n_components=sizes,
            criterion=request.criterion,
            formula=given.formula,
            fit_params=given.keywords,
            **grid,
        )
    if not found.ranked:
        raise CommandError("no fit can be chosen.", *found.exclusions)
    return found


def _fit_estimator(card: ModelCard, estimator: Any, given: Given) -> list[str]:
    """Fit in place; return the model's warnings."""
    with heard() as said, refusals(card):
        given.fit(estimator)
    return said


def _check_size(card: ModelCard, estimator: Any, matrix: Matrix, request: FitRequest) -> None:
    """Raise CommandError for more parts than the table has usable or distinct rows."""
    size = None if card.size_parameter is None or card.kind == "representation" else card.size_of(estimator)
    if not isinstance(size, int) or isinstance(size, bool):
        return
    rows = len(matrix.values)
    how = f"{counted(size, card.part)}{'' if request.k is not None else ', as many as it has by default'}"
    if size > rows:
        few = f"{request.table.name} has {counted(rows, 'usable row')}, too few for {how}."
        is_most = card.kind == "clustering"  # others need several rows a part
        raise CommandError(few, f"Set --k to {rows} or less." if is_most else f"Set --k far below {rows}.")
    first = matrix.values[: max(1000, 2 * size)]
    if card.kind == "clustering" and len(np.unique(first, axis=0)) < size:
        distinct = len(np.unique(matrix.values, axis=0))
        if distinct < size:
            raise CommandError(
                f"{request.table.name} has {counted(distinct, 'different row')}, too few for {how}.",
                f"Set --k to {distinct} or less.",
            )
