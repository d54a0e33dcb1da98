"""What comes after the classes: outcomes in each of them, correlations within them, and tests of invariance."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.report import numbers
from majorant.report.measures.latent_class_analysis import LatentClasses
from majorant.report.section import Section
from majorant.report.sections.by_class import interval_columns, known, once
from majorant.report.table import Column, Table
from majorant.report.words import latent_class_analysis as words

Array = NDArray[np.float64]


def outcomes_section(classes: LatentClasses) -> Section | None:
    """Build the section: means or shares of each outcome in each class, with tests; None without outcomes."""
    found: dict[str, Any] = classes.run.later.get("outcomes", {})
    if not found:
        return None
    names, levels = list[str](), list[str]()
    estimates, errors = list[Any](), list[Any]()
    for name, outcome in found.items():
        for j, level in enumerate(outcome.levels or ("mean",)):
            names.append(name)
            levels.append(str(level))
            estimates.append(outcome.estimates[:, j])
            errors.append(outcome.standard_errors[:, j])
    values, reach = np.stack(estimates), words.NORMAL * np.stack(errors)
    decimals = [3 if found[name].levels else 2 for name in names]
    columns = [Column("Outcome", names, printed=once(names)), Column("Level", levels)]
    for k in range(classes.k):
        ends = values[:, k] - reach[:, k], values[:, k] + reach[:, k]
        columns += interval_columns(
            f"Class {k + 1}", values[:, k], *ends, lambda v, i: numbers.fixed(v, decimals[i]), shown="wide-only"
        )
    if classes.k > 1:
        columns += _tests(names, {name: outcome.test() for name, outcome in found.items()})
    table = Table("outcomes", columns, keys=2)
    head, notes = words.outcomes_headline(found), words.outcomes_notes(classes, found)
    further = _differences(found) if classes.k > 1 else None
    return Section("outcomes", "Outcomes", head, notes, table=table, further=further)


def _tests(names: list[str], tests: dict[str, Any]) -> list[Column]:
    """Return columns of the test of each outcome, in its first row."""
    rows = [tests[name] if name else None for name in once(names)]
    parts = [[None if row is None else row[j] for row in rows] for j in range(3)]
    statistics, p = (known(np.array(part, dtype=np.float64)) for part in (parts[0], parts[2]))
    texts = [["" if row is None else write(row) for row in rows] for write in (_chi_squared, _p_value)]
    return [
        Column("Chi-squared", statistics, texts[0], css="number"),
        Column("df", parts[1], css="number"),
        Column("p", p, texts[1], css="number"),
    ]


def _chi_squared(test: Any) -> str:
    return numbers.fixed(test.statistic, 2)


def _p_value(test: Any) -> str:
    return numbers.p_value(test.p_value)


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
    columns = [Column("Outcome", names), Column("Class", one, css="number"), Column("Against", other, css="number")]
    for head, values, n in (("Difference", apart, 3), ("Standard error", error, 3), ("Chi-squared", statistic, 2)):
        columns.append(Column(head, known(values), [numbers.fixed(v, n) for v in values], css="number"))
    columns.append(Column("df", df, css="number"))
    columns.append(Column("p", known(p), list(map(numbers.p_value, p)), css="number"))
    return Table("outcome-differences", columns, is_on_page=False)


def invariance_section(classes: LatentClasses) -> Section | None:
    """Build the section: nested fits in which items are measured alike or not; None where none were asked for."""
    found = classes.run.later.get("invariance_tests")
    if found is None:
        return None
    columns = [Column("Model", list(found.models))]
    for head, values, decimals in (
        ("Log-likelihood", found.log_likelihoods, 2),
        ("Parameters", found.n_parameters, 0),
        ("AIC", found.aic, 2),
        ("BIC", found.bic, 2),
        ("Chi-squared", found.statistics, 2),
        ("df", found.df, 0),
    ):
        whole = [None if np.isnan(v) else int(v) if decimals == 0 else float(v) for v in values.tolist()]
        columns.append(Column(head, whole, [numbers.fixed(v, decimals) for v in values.tolist()], css="number"))
    p = found.p_values.tolist()
    texts = [numbers.DASH if np.isnan(value) else numbers.p_value(value) for value in p]
    columns.append(Column("p", known(p), texts, css="number"))
    head, notes = words.invariance_headline(found), words.invariance_notes(found)
    table = Table("invariance-tests", columns)
    return Section("invariance", "Invariance", head, notes, table=table)


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
    head, notes = words.correlations_headline(*strongest), words.correlations_notes(model.variances)
    table = Table("correlations", columns, keys=2)
    return Section("correlations", "Correlations", head, notes, table=table)
