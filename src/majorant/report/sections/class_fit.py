"""How well classes of respondents fit: criteria and tests, pairs of items, and the assignment of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from majorant.report import numbers
from majorant.report.measures.latent_class_analysis import LatentClasses
from majorant.report.section import Section
from majorant.report.table import Column, Table
from majorant.report.words import latent_class_analysis as words

MOST_IN_SQUARE = 8
"""Classes up to which the mean probabilities are shown as a square."""
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
        Column("Value", [value for _, value in told], texts, css="number"),
    ]
    head, notes = words.fit_headline(found), words.fit_notes(found)
    return Section("fit", "Fit", head, notes, table=Table("fit-statistics", columns))


def bivariate_section(classes: LatentClasses) -> Section | None:
    """Build the section: pairs of items by their residual; None with fewer than two items, or one that varies."""
    found = classes.residuals
    if not found:
        return None
    kept = found[: words.MOST_PAIRS_IN_COPIES]
    first, second, statistic, df, residual, p_value = (list(column) for column in zip(*kept, strict=True))
    columns = [
        Column("First item", first),
        Column("Second item", second),
        Column("Residual", residual, [numbers.fixed(value, 2) for value in residual], css="number"),
        Column("Statistic", statistic, [numbers.fixed(value, 2) for value in statistic], css="number wide-only"),
        Column("df", df, css="number wide-only"),
        Column("p", p_value, list(map(numbers.p_value, p_value)), css="number"),
    ]
    table = Table("bivariate-residuals", columns, only_in_copies=range(words.MOST_PAIRS, len(kept)))
    head, notes = (
        words.residuals_headline(classes),
        words.residuals_notes(min(words.MOST_PAIRS, len(found)), len(found)),
    )
    return Section("bivariate", "Pairs of items", head, notes, table=table)


def assignment_section(classes: LatentClasses) -> Section | None:
    """Build the section: mean probabilities of the classes among the rows assigned to each; None for one class."""
    found = classes.assignment
    if found is None or classes.k == 1:
        return None
    columns, is_wide = _by_class("Assigned to class", found.average_posteriors, "Its probability")
    own = "Values of the own class" if is_wide else "On the diagonal, values"
    notes = [
        "<b>Each row</b> has the mean probabilities of the classes among the rows that are assigned to one. "
        f"{own} below 0.7 or 0.8 are usually taken for unclear classes."
    ]
    if is_wide:
        notes.append("The copies hold the probabilities of all classes.")
    head = words.assignment_headline(found)
    return Section("assignment", "Assignment", head, notes, table=Table("assignment", columns, keys=1))


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
    head = f"Of the rows of class {least + 1}, {share} are assigned to it, the smallest such share."
    table = Table("classification", columns, keys=1)
    return Section("classification", "Classification", head, notes, table=table)


def _by_class(first: str, table: Any, of_next: str) -> tuple[list[Column], bool]:
    """Return a column with the number of each class and one for each class, and whether most are in copies alone."""
    k = len(table)
    columns, is_wide = [Column(first, list(range(1, k + 1)))], k > MOST_IN_SQUARE
    if is_wide:
        others = np.where(np.eye(k, dtype=bool), -1.0, table)
        next_ones = others.argmax(axis=1)
        heads = ("Own class", np.diag(table)), ("Next class", next_ones + 1), (of_next, others.max(axis=1))
        for head, values in heads:
            texts = [str(v) if head == "Next class" else numbers.fixed(v, 3) for v in values.tolist()]
            columns.append(Column(head, values.tolist(), texts, css="number", where="page"))
    for j, values in enumerate(table.T.tolist()):
        texts = [numbers.fixed(v, 3) for v in values]
        columns.append(
            Column(f"Class {j + 1}", values, texts, css="number", where="copies" if is_wide else "everywhere")
        )
    return columns, is_wide
