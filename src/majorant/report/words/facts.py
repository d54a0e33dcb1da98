"""The numbers at the top of a page: the name of each, its value, and a small addition."""

from __future__ import annotations

from majorant.report import numbers
from majorant.report.fit import Fit
from majorant.report.html import escaped
from majorant.report.measures.memberships import Memberships
from majorant.report.words.grammar import capital, counted
from majorant.search.record import named

Fact = tuple[str, str, str]


def shape(fit: Fit) -> Fact:
    """Return the numbers of rows and features."""
    text = f"{numbers.integer(fit.n_rows - fit.n_lacking)}\u00a0{numbers.TIMES}\u00a0{numbers.integer(fit.n_features)}"
    return ("Rows \u00d7 features", text, "standardised" if fit.run.standardised else "")


def objective(fit: Fit, addition: str = "") -> Fact:
    """Return the objective of the fit."""
    name = fit.search.objective_name
    return (escaped(capital(name)), numbers.objective(fit.objective, name), addition)


def hits(fit: Fit) -> Fact:
    """Return how many runs reached the best optimum."""
    search = fit.search
    made = ", ".join(counted(n, noun, words=False) for n, noun in named(search.n_starts, search.n_perturbations))
    return ("Runs at the best", f"{numbers.integer(search.n_hits)} of {numbers.integer(search.n_starts)}", made)


def likelihood(fit: Memberships) -> tuple[Fact, ...]:
    """Return the five facts of a fit by its likelihood."""
    criterion = next(iter(fit.criteria.items()), None) if fit.regular else None
    if fit.run.selection is not None:
        criterion = (fit.run.selection.criterion, fit.run.selection.best.value)
    return (
        shape(fit),
        objective(fit, "" if fit.regular else "degenerate"),
        ("BIC", numbers.DASH, "")
        if criterion is None
        else (criterion[0].upper(), numbers.fixed(criterion[1], 2), "lower is better"),
        hits(fit),
        ("Clear-cut rows", numbers.integer(fit.n_clear), "probability above 0.9"),
    )
