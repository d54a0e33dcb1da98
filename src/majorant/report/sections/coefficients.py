"""The table of coefficients for a paper: components side by side, with what the fit as a whole is judged by below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scipy.special import ndtr

from majorant.report import numbers
from majorant.report.measures.memberships import Memberships
from majorant.report.table import Column, Table, Value
from majorant.report.words.grammar import capital
from majorant.results.selection import CRITERIA

if TYPE_CHECKING:
    from majorant.report.sections.estimates import Term

STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
OF_ERRORS = "Standard errors, or 95 % intervals, in brackets. * p < 0.05, ** p < 0.01, *** p < 0.001, two-sided."
OF_INTERVALS = "95 % intervals in brackets."


def coefficients_table(fit: Memberships, terms: Sequence[Term]) -> Table:
    """Return one column for each component: every estimate above its standard error, or else its interval.

    Stars mark coefficients, of which zero would mean no effect; not shares nor scales, which are never zero.
    """
    heads, said = [], []  # of the page and of the CSV
    values: list[list[Value]] = [[] for _ in range(fit.k)]
    texts: list[list[str]] = [[] for _ in range(fit.k)]

    def row(head: str, name: str, numbers_of: Sequence[Value], written: Sequence[str]) -> None:
        heads.append(head)
        said.append(name)
        for j in range(fit.k):
            values[j].append(numbers_of[j] if j < len(numbers_of) else None)
            texts[j].append(written[j] if j < len(written) else "")

    for term in terms:
        found = term.values.tolist()
        row(term.plain, term.plain, found, [term.text(value) + _stars(term, j) for j, value in enumerate(found)])
        if term.errors is not None:
            errors = term.errors.tolist()
            row("", f"{term.plain}, standard error", errors, [f"({term.text(error)})" for error in errors])
        elif term.low is not None:
            ends = [_interval(term, j) for j in range(len(found))]
            row("", f"{term.plain}, 95 % interval", ends, ends)
    n_terms, model = len(heads), fit.run.estimator
    n = round(fit.n_counted, 6)
    row("Rows", "Rows", [int(n) if n.is_integer() else n], [str(int(n)) if n.is_integer() else numbers.fixed(n, 1)])
    row("Parameters", "Parameters", [model.n_parameters_], [str(model.n_parameters_)])
    for name, value in {fit.card.objective_name: fit.objective, **fit.criteria}.items():
        head = name.upper() if name in CRITERIA else capital(name)
        row(head, head, [value], [numbers.fixed(value, 2)])
    columns = [Column("Parameter", said, heads)]
    names = [f"{capital(fit.part)} {j + 1}" for j in range(fit.k)]
    columns += [Column(names[j], values[j], texts[j], css="number", aligns=False) for j in range(fit.k)]
    has_errors = any(term.errors is not None for term in terms)
    note = OF_ERRORS if has_errors else OF_INTERVALS if any(term.low is not None for term in terms) else ""
    return Table("coefficients", columns, is_on_page=False, rules=[n_terms], note=note)


def _stars(term: Term, j: int) -> str:
    """Return the stars of a coefficient by its two-sided test against zero."""
    if term.errors is None or not term.errors[j] > 0:
        return ""
    p = 2 * ndtr(-abs(term.values[j] / term.errors[j]))
    return next((sign for limit, sign in STARS if p < limit), "")


def _interval(term: Term, j: int) -> str:
    ends = term.ends(j)
    return "" if ends is None else f"[{term.text(ends[0])}, {term.text(ends[1])}]"
