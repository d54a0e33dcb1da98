"""How well classes of respondents fit: criteria and tests, pairs of items, and the assignment of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from majorant.report import numbers
from majorant.report.columns import number_column
from majorant.report.html import column_name, escaped
from majorant.report.measures.latent_class_analysis import LatentClasses
from majorant.report.section import Section
from majorant.report.table import Column, Table
from majorant.report.words.grammar import capital, counted

MOST_IN_SQUARE = 8
"""Classes up to which the mean probabilities are shown as a square."""
LARGE_RESIDUAL = 4.0
MOST_PAIRS, MOST_PAIRS_IN_COPIES = 10, 200
CLEARLY_APART, HARDLY_APART = 0.8, 0.5
NAMES = {
    "log_likelihood": "log-likelihood",
    "n_rows": "rows",
    "n_parameters": "parameters",
    "aic": "AIC",
    "aic3": "AIC3",
    "bic": "BIC",
    "sabic": "SABIC",
    "caic": "CAIC",
    "clc": "CLC",
    "icl": "ICL",
    "awe": "AWE",
    "entropy_r2": "entropy R\u00b2",
    "entropy_r2_shares": "entropy R\u00b2, against the shares",
    "classification_error": "expected share assigned wrongly",
    "error_reduction": "reduction of errors (lambda)",
    "df": "degrees of freedom",
    "g2": "G\u00b2",
    "x2": "X\u00b2",
    "g2_p_value": "p-value of G\u00b2",
    "x2_p_value": "p-value of X\u00b2",
}
WHOLE = ("n_rows", "n_parameters", "df")


def class_fit_section(classes: LatentClasses) -> Section | None:
    """Build the section: every criterion and test; None where they cannot be computed."""
    found = classes.statistics
    if found is None:
        return None
    told = [(name, float(value)) for name, value in found if value is not None]
    texts = [numbers.fixed(v, 0 if n in WHOLE and v == round(v) else 4 if abs(v) < 10 else 2) for n, v in told]
    columns = [
        Column("Statistic", [NAMES[name] for name, _ in told]),
        Column("Value", [value for _, value in told], texts=texts, css="number"),
    ]
    notes = [
        "<b>Criteria</b> compare numbers of classes: lower is better. G\u00b2 and X\u00b2 compare with the table of "
        "all items itself: small p-values say that more is going on than these classes explain. Where most cells of "
        "the table are nearly empty they are unreliable; <code>majorant.likelihood_ratio_test</code> is not."
    ]
    r2, headline = found.entropy_r2, "Criteria of one class."
    if found.unidentified:
        notes.append(f"<b>Not identified:</b> {escaped(found.unidentified)}")
    if r2 is not None:
        apart = "clearly" if r2 >= CLEARLY_APART else "fairly well" if r2 >= HARDLY_APART else "hardly"
        headline = f"The classes lie {apart} apart: entropy R\u00b2 {numbers.fixed(r2, 2)}."
    if r2 is not None and r2 < HARDLY_APART:
        notes.append(
            "<b>Classes that hardly lie apart</b> bias whatever is related to them in later steps: fit covariates "
            "together with the classes, in one step."
        )
    return Section("fit", "Fit", headline, notes, table=Table("fit-statistics", columns))


def bivariate_section(classes: LatentClasses) -> Section | None:
    """Build the section: pairs of items by their residual; None with fewer than two items, or one that varies."""
    found = classes.residuals
    if not found:
        return None
    kept = found[:MOST_PAIRS_IN_COPIES]
    first, second, statistic, df, residual, p_value = (list(column) for column in zip(*kept, strict=True))
    columns = [
        Column("First item", first),
        Column("Second item", second),
        number_column("Residual", residual, 2),
        number_column("Statistic", statistic, 2, "number wide-only"),
        Column("df", df, css="number wide-only"),
        number_column("p", p_value, numbers.p_value),
    ]
    notes = [
        "<b>A bivariate residual</b> is the chi-squared of a pair of items against what the classes expect, divided by "
        f"its degrees of freedom. Well above {LARGE_RESIDUAL:.0f} the pair is not independent within classes: one "
        "class more, or one item less, may help."
    ]
    if len(found) > MOST_PAIRS:
        held = "all" if len(found) <= MOST_PAIRS_IN_COPIES else f"the {MOST_PAIRS_IN_COPIES} largest"
        notes.append(f"The {MOST_PAIRS} largest of {len(found)} are shown; {held} are in the copies of the table.")
    n_large = sum(value >= LARGE_RESIDUAL for value in residual)
    pair = f"{column_name(first[0])} and {column_name(second[0])}"
    if not n_large:
        headline = "The classes explain how every pair of items hangs together."
    elif n_large == 1:
        headline = f"One pair of items hangs together within classes: {pair}."
    else:
        headline = f"{capital(counted(n_large, 'pair'))} of items hang together within classes, {pair} most."
    table = Table("bivariate-residuals", columns, only_in_copies=range(MOST_PAIRS, len(kept)))
    return Section("bivariate", "Pairs of items", headline, notes, table=table)


def assignment_section(classes: LatentClasses) -> Section | None:
    """Build the section: mean probabilities of the classes among the rows assigned to each; None for one class."""
    found = classes.assignment
    if found is None or classes.k == 1:
        return None
    columns, is_wide = _by_class("Assigned to class", found.average_posteriors, "Its probability")
    own = "Values of the own class" if is_wide else "On the diagonal, values"
    notes = [
        "<b>Each line</b> is a class, with the mean probabilities of all classes over the rows assigned to it. "
        f"{own} below 0.7 or 0.8 are usually taken for unclear classes."
    ]
    if is_wide:
        notes.append("The copies hold the probabilities of all classes.")
    headline = f"About {numbers.percent(float(found.error))} of the rows are assigned to a class that is not theirs."
    return Section("assignment", "Assignment", headline, notes, table=Table("assignment", columns, keys=1))


def classification_section(classes: LatentClasses) -> Section | None:
    """Build the section: to which class the rows of each are assigned; None for one class."""
    found = classes.assignment
    if found is None or classes.k == 1:
        return None
    columns, is_wide = _by_class("Class", found.assigned, "Its share")
    notes = [
        "<b>Each row</b> has the expected shares of the rows of one class that are assigned to each, by their most "
        "probable class: the errors that three-step estimators correct for."
    ]
    if is_wide:
        notes.append("The copies hold the shares of all classes.")
    least = int(found.assigned.diagonal().argmin())
    share = numbers.percent(float(found.assigned[least, least]))
    headline = f"Of the rows of class {least + 1}, {share} are assigned to it, the smallest such share."
    return Section("classification", "Classification", headline, notes, table=Table("classification", columns, keys=1))


def _by_class(first: str, table: Any, of_next: str) -> tuple[list[Column], bool]:
    """Return a column with the number of each class and one for each class, and whether most are in copies alone."""
    k = len(table)
    columns, is_wide = [Column(first, range(1, k + 1))], k > MOST_IN_SQUARE
    if is_wide:
        others = np.where(np.eye(k, dtype=bool), -1.0, table)
        columns += [
            number_column("Own class", np.diag(table), 3, where="page"),
            Column("Next class", others.argmax(axis=1) + 1, css="number", where="page"),
            number_column(of_next, others.max(axis=1), 3, where="page"),
        ]
    where = "copies" if is_wide else "everywhere"
    return columns + [number_column(f"Class {j + 1}", own, 3, where=where) for j, own in enumerate(table.T)], is_wide
