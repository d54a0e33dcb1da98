"""What comes after the classes: outcomes in each of them, correlations within them, and tests of invariance."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.report import numbers
from majorant.report.columns import interval_columns, number_column, once
from majorant.report.html import column_name, escaped
from majorant.report.measures.latent_class_analysis import LatentClasses
from majorant.report.section import Section
from majorant.report.sections.class_profile import METHODS
from majorant.report.table import Column, Table
from majorant.report.words.grammar import listed, verb

Array = NDArray[np.float64]


def outcomes_section(classes: LatentClasses) -> Section | None:
    """Build the section: means or shares of each outcome in each class, with tests; None without outcomes."""
    found: dict[str, Any] = classes.run.later.get("outcomes", {})
    if not found:
        return None
    names, levels = list[str](), list[str]()
    parts = list[tuple[Array, Array, Array]]()
    for name, outcome in found.items():
        low, high = outcome.intervals()
        for level, j in outcome.shown.items():
            names.append(name)
            levels.append(level)
            parts.append((outcome.estimates[:, j], low[:, j], high[:, j]))
    values, lows, highs = (np.stack(own) for own in zip(*parts, strict=True))
    decimals = [3 if found[name].levels else 2 for name in names]
    columns = [Column("Outcome", names, printed=once(names)), Column("Level", levels)]
    for k in range(classes.k):
        columns += interval_columns(
            f"Class {k + 1}",
            values[:, k],
            lows[:, k],
            highs[:, k],
            lambda v, i: numbers.fixed(v, decimals[i]),
            shown="wide-only",
        )
    if classes.k > 1:
        columns += _tests(names, {name: outcome.test() for name, outcome in found.items()})
    further = _differences(found) if classes.k > 1 else None
    return Section(
        "outcomes",
        "Outcomes",
        _outcomes_headline(found),
        _outcomes_notes(classes, found),
        table=Table("outcomes", columns, keys=2),
        further=further,
    )


def _outcomes_headline(found: dict[str, Any]) -> str:
    """Name the outcomes that differ between the classes beyond chance."""
    if any(len(outcome.estimates) == 1 for outcome in found.values()):
        return "What follows in all rows."
    telling = [column_name(name) for name, own in found.items() if own.not_tested or own.test().p_value < 0.05]
    if not telling:
        return "No outcome differs between the classes beyond chance."
    return f"{listed(telling)} {verb(len(telling), 'differs', 'differ')} between the classes."


def _outcomes_notes(classes: LatentClasses, found: dict[str, Any]) -> list[str]:
    method = METHODS[next(iter(found.values())).method]
    texts = [
        "<b>Means</b> of numbers and <b>shares</b> of answers, or of 1, in each class, found after the classes "
        f"({method}), with errors that account for the classes having been estimated."
    ]
    if classes.k > 1:
        texts.append(
            "<b>Chi-squared</b> tests that an outcome is the same in all classes; the copies below have the test of "
            "each pair of classes."
        )
    texts += [f"{column_name(n)}: {escaped(outcome.not_tested)}" for n, outcome in found.items() if outcome.not_tested]
    told = [f"{escaped(outcome.left_out)} ({column_name(n)})" for n, outcome in found.items() if outcome.left_out]
    return [*texts, f"<b>Note:</b> {'; '.join(told)}: left out here."] if told else texts


def _tests(names: list[str], tests: dict[str, Any]) -> list[Column]:
    """Return columns of the test of each outcome, in its first row."""
    rows = [tests[name] if name else None for name in once(names)]
    writes: tuple[tuple[str, Callable[[float], str]], ...] = (
        ("Chi-squared", lambda value: numbers.fixed(value, 2)),
        ("df", str),
        ("p", numbers.p_value),
    )
    return [
        Column(
            head,
            [None if row is None else row[j] for row in rows],
            texts=["" if row is None else write(row[j]) for row in rows],
            css="number",
        )
        for j, (head, write) in enumerate(writes)
    ]


def _differences(found: dict[str, Any]) -> Table:
    """Return the tests of each pair of classes."""
    rows: list[tuple[Any, ...]] = []
    for name, outcome in found.items():
        frame = outcome.differences()
        missing = [np.nan] * len(frame)
        heads = ("class", "against", "difference", "standard_error", "statistic", "df", "p_value")
        parts = [list(frame[head]) if head in frame.columns else missing for head in heads]
        rows += [(name, *row) for row in zip(*parts, strict=True)]
    names, one, other, apart, error, statistic, df, p = (list(part) for part in zip(*rows, strict=True))
    columns = [
        Column("Outcome", names),
        Column("Class", one, css="number"),
        Column("Against", other, css="number"),
        number_column("Difference", apart, 3),
        number_column("Standard error", error, 3),
        number_column("Chi-squared", statistic, 2),
        Column("df", df, css="number"),
        number_column("p", p, numbers.p_value),
    ]
    return Table("outcome-differences", columns, is_on_page=False)


def invariance_section(classes: LatentClasses) -> Section | None:
    """Build the section: nested fits in which items are measured alike or not; None where none were asked for."""
    found = classes.run.later.get("invariance_tests")
    if found is None:
        return None
    columns = [
        Column("Model", list(found.models)),
        number_column("Log-likelihood", found.log_likelihoods, 2),
        number_column("Parameters", found.n_parameters),
        number_column("AIC", found.aic, 2),
        number_column("BIC", found.bic, 2),
        number_column("Chi-squared", found.statistics, 2),
        number_column("df", [None if np.isnan(df) else int(df) for df in found.df]),
        number_column("p", found.p_values, numbers.p_value),
    ]
    notes = [
        "<b>Each row</b> is a fit: all items measured alike in all populations, with shares of the classes of their "
        "own or the same; one item with parameters of its own in each population; and all items so. "
        "<b>Chi-squared</b> tests it against \u201call equal\u201d: a small p-value says that the restriction of the "
        "smaller of both does not hold. With many items, some small p-values are due to chance."
    ]
    if degenerate := [escaped(name) for name, is_fine in zip(found.models, found.regular, strict=True) if not is_fine]:
        notes.append(f"<b>Degenerate</b>, so that their tests mean nothing: {listed(degenerate)}.")
    headline = f"{escaped(found.sentence.split(';')[0].rstrip('.'))}."
    return Section("invariance", "Invariance", headline, notes, table=Table("invariance-tests", columns))


def correlations_section(classes: LatentClasses) -> Section | None:
    """Build the section: variances, covariances and correlations of correlated items; None without such items."""
    model = classes.run.estimator
    rows: list[tuple[str, str, Array, Array, Array]] = []
    strongest: tuple[str, str, Array] | None = None
    for block, columns in model.items_.correlated:
        covariances = getattr(model, f"{block}_covariances_")
        low, high = classes.intervals_of(f"{block}_covariances", covariances)
        names = [model.items_.names[j] for j in columns]
        for a, b in combinations_with_replacement(range(len(names)), 2):
            own = covariances[:, a, b], low[:, a, b], high[:, a, b]
            if a == b:
                rows.append((names[a], "variance", *own))
                continue
            r = own[0] / np.sqrt(covariances[:, a, a] * covariances[:, b, b])
            pair, none = f"{names[a]}, {names[b]}", np.full(classes.k, np.nan)
            rows += [(pair, "covariance", *own), (pair, "correlation", r, none, none)]
            if strongest is None or np.abs(r).max() > np.abs(strongest[2]).max():
                strongest = names[a], names[b], r
    if strongest is None:
        return None
    items, whats, *parts = (list(part) for part in zip(*rows, strict=True))
    columns = [Column("Items", items, printed=once(items)), Column("Estimate", whats)]
    for k in range(classes.k):
        values, low, high = (np.array(part)[:, k] for part in parts)
        columns += interval_columns(
            f"Class {k + 1}", values, low, high, lambda v, i: numbers.fixed(v, 2), shown="wide-only"
        )
    first, second, r = strongest
    at = int(np.abs(r).argmax())
    value = f"a correlation of {numbers.fixed(float(r[at]), 2)} in class {at + 1}"
    same = " They are the same in all classes." if model.variances == "shared" else ""
    note = (
        "<b>Variances and covariances within a class</b>, with 95\u202f% intervals, and what these are as correlations."
    )
    headline = f"{column_name(first)} and {column_name(second)} have {value}."
    return Section(
        "correlations", "Correlations", headline, [note + same], table=Table("correlations", columns, keys=2)
    )
