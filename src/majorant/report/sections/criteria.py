"""Criterion: the sizes and forms that were compared, or the criteria of the only one."""

from __future__ import annotations

import math

from majorant._numbers import plural_of
from majorant.report import numbers
from majorant.report.columns import number_column
from majorant.report.fit import Fit
from majorant.report.html import escaped, facts
from majorant.report.measures.mixture import Memberships
from majorant.report.section import Section
from majorant.report.table import Column, Table
from majorant.report.words.grammar import capital
from majorant.results.selection import MEASURES, NEAR, NEAR_SILHOUETTE, SILHOUETTE, Selection


def criteria_section(fit: Fit) -> Section | None:
    """Build the section; without fits that were compared, None for a model without criteria and a degenerate fit."""
    selection = fit.run.selection
    if selection is not None:
        said, shown, every = of_selection(selection), criterion_table(selection), fits_table(selection)
        figure = "" if every is None or every.is_on_page else shown.to_html()
        table = shown if every is None else every
        said += [] if every is None else [ALL_IN_COPIES]
        return Section("criterion", "Criterion", escaped(selection.sentence), said, figure, table=table)
    if not isinstance(fit, Memberships) or not fit.criteria or not fit.regular:
        return None
    figures = [(name.upper(), numbers.fixed(value, 2), "") for name, value in fit.criteria.items()]
    return Section("criterion", "Criterion", headline(fit), notes(fit), facts(figures, "four-figures"))


def criterion_table(selection: Selection) -> Table:
    """Return the table of the criterion: one row per size, one column per setting, the best in bold type."""
    matrix = selection.matrix()
    columns = [Column(row_name(selection), matrix.columns[0].values)]
    for of in matrix.columns[1:]:
        texts = [of.empty if value is None else numbers.fixed(value, of.decimals or 0) for value in of.values]
        markup = [
            f'<span class="quiet">{escaped(text)}</span>' if value is None else text
            for text, value in zip(texts, of.values, strict=True)
        ]
        columns.append(Column(of.head, of.values, texts=texts, markup=markup, css="number", bold=of.bold))
    return Table("criterion", columns)


def fits_table(selection: Selection) -> Table | None:
    """Return one row for each fit, with all that a paper tells of it; None for models without a likelihood.

    The page shows it where only the size was varied, and else the copies alone.
    """
    fits = selection.candidates
    if selection.criterion == SILHOUETTE or not any(c.measures for c in fits):
        return None
    settings = list(fits[0].setting)
    best = [fits.index(selection.best)] if selection.ranked else []
    columns = [Column(row_name(selection), [c.size for c in fits], bold=best)]
    columns += [Column(name.removesuffix("_type"), [str(c.setting[name]) for c in fits]) for name in settings]
    columns.append(number_column(capital(selection.objective_name), map(_finite, [c.objective for c in fits]), 2))
    columns.append(Column("Parameters", [c.n_parameters for c in fits], css="number"))
    for name in MEASURES:
        values = [math.nan if c.excluded else c.measures.get(name, math.nan) for c in fits]
        head = HEADS[name]
        bold = best if name == selection.criterion else []
        decimals = 3 if name in ("entropy_r2", "smallest") else 2
        where = "copies" if name in IN_COPIES and name != selection.criterion else "everywhere"
        columns.append(number_column(head, map(_finite, values), decimals, bold=bold, where=where))
    columns.append(Column("Starts", [c.n_starts for c in fits], css="number", where="copies"))
    columns.append(Column("At the best", [c.n_hits for c in fits], css="number", where="copies"))
    if selection.excluded:
        columns.append(Column("Excluded", [c.excluded for c in fits], css="prose", where="copies"))
    return Table("criterion", columns, is_on_page=not settings)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


HEADS = {
    "aic": "AIC",
    "bic": "BIC",
    "sabic": "SABIC",
    "caic": "CAIC",
    "icl": "ICL",
    "entropy_r2": "Entropy R\u00b2",
    "smallest": "Smallest",
}
IN_COPIES = ("sabic", "caic", "icl")
"""Measures for which the page has no room, unless they compare the fits."""
ALL_IN_COPIES = "The copies below the table hold every criterion of every fit, and its starts."
SIGN = "<b>Lower is better</b>, as in scikit-learn; mclust\u2019s sign is the other way round."


def headline(fit: Memberships) -> str:
    """State the first criterion of a fit."""
    (name, value), *_ = fit.criteria.items()
    return f"The {name.upper()} is {numbers.fixed(value, 2)}: it says something only beside other sizes."


def notes(fit: Memberships) -> list[str]:
    """Explain the sign of the criteria, and how sizes are compared."""
    how = f"<code>--k 1:6</code> fits one to six {fit.parts} and keeps the best."
    return [SIGN, how if fit.run.command else "<code>majorant.select</code> compares several sizes."]


def of_selection(selection: Selection) -> list[str]:
    """Explain the sign of the criterion that compared fits, near ties, and what is left out."""
    of_silhouettes = selection.criterion == SILHOUETTE
    sign = escaped(selection.caption) if of_silhouettes else SIGN
    texts = [sign + (" The best is in bold type." if selection.ranked else "")]
    if selection.ranked and selection.near:
        near = NEAR_SILHOUETTE if of_silhouettes else int(NEAR)
        texts.append(f"<b>Near ties:</b> candidates with a difference below {near} are hardly distinguishable.")
    texts += [f"<b>Excluded:</b> {escaped(reason)}" for reason in selection.exclusions]
    texts += [f"<b>Note:</b> {escaped(sentence)}" for sentence in selection.look_out]
    return texts


def row_name(selection: Selection) -> str:
    """Return the word for sizes."""
    return capital(plural_of(selection.part))
