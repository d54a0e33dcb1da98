"""The page around the sections: a single file that fetches nothing; its one script copies tables."""

from __future__ import annotations

import base64
import hashlib
from calendar import month_name
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from os import PathLike
from pathlib import Path
from string import Template

from majorant import __version__
from majorant._numbers import article
from majorant.registry import card_of, named
from majorant.report.figures import Picture, figures
from majorant.report.fit import Fit
from majorant.report.html import escaped, facts, shortened
from majorant.report.kinds import KINDS, LAST, builders, header_of, measure_of
from majorant.report.run import Run
from majorant.report.section import Header, Section
from majorant.report.table import Table
from majorant.summary import STOPPED


@dataclass(frozen=True)
class Report:
    """The report of a run.

    Attributes
    ----------
    html : str
        The page.
    tables : mapping of str to Table
        The tables on it by name; each has ``to_csv()``, ``to_latex()`` and ``to_html()``.
    figures : mapping of str to Picture
        The pictures on it by name of their section, each as an SVG file that opens alone and that a notebook shows.
    """

    html: str
    tables: Mapping[str, Table]
    figures: Mapping[str, Picture]

    def __repr__(self) -> str:
        return f"Report({len(self.html.encode()) // 1000} kB, tables {', '.join(self.tables)})"

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own: its styles are not the notebook's."""
        return f'<iframe srcdoc="{escaped(self.html)}" style="width: 100%; height: 800px; border: 0"></iframe>'

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.html, encoding="utf-8")


def html_report(run: Run) -> str:
    """Return the report of a fitted model as one self-contained HTML page: ``report(run).html``.

    Parameters
    ----------
    run : Run
        The fitted estimator, the rows that it was fitted to, and how the run is repeated.

    Returns
    -------
    str
        HTML5, light and dark, for wide and narrow screens and for print. It fetches nothing, which its content security
        policy forbids; its only script copies tables, which can also be selected without it.

    Raises
    ------
    TypeError
        If the run has no card and its estimator is not registered.
    ValueError
        If there is no report for this kind of model yet.
    """
    return report(run).html


def report(run: Run) -> Report:
    r"""Return the page of a fitted model, and its tables and pictures as shown there.

    Parameters
    ----------
    run : Run
        The fitted estimator, the rows that it was fitted to, and how the run is repeated.

    Returns
    -------
    Report

    Raises
    ------
    TypeError, ValueError
        As `html_report`.

    Examples
    --------
    >>> import numpy as np
    >>> import majorant as mj
    >>> from majorant.report import Run, report
    >>> X = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> made = report(Run(mj.KMeans(2, random_state=0).fit(X), X, ("width",), "t.csv", ""))
    >>> print(made.tables["clusters"].to_csv())
    Cluster,Rows,Share,Spread,Silhouette,Below zero
    1,2,0.5,0.5,0.8745098039215686,0
    2,2,0.5,0.5,0.8745098039215686,0
    <BLANKLINE>
    >>> print(made.tables["clusters"].to_latex().splitlines()[3])
    Cluster & Rows &     Share & Spread & Silhouette & Below zero \\
    """
    card = run.card or card_of(run.estimator)
    if card.kind not in KINDS:
        raise ValueError(f"there is no report for a {card.kind} yet; there is one for a {', '.join(sorted(KINDS))}")
    kind = card.page or card.kind
    measured = measure_of(kind)(run, card)
    every = (*builders(KINDS[kind][1]), *map(named, card.sections), *builders(LAST))
    sections = [section for build in every if (section := build(measured)) is not None]
    tables = {table.name: table for section in sections for table in section.tables}
    pictures = figures(sections, _resource("page.css"))
    return Report(_page(measured, header_of(kind)(measured), sections), tables, pictures)


def _page(fit: Fit, header: Header, sections: list[Section]) -> str:
    run, card = fit.run, fit.card
    script = _resource("page.js") if any(section.table is not None for section in sections) else ""
    is_told = card.kind in card.title or card.kind == "representation" or card.in_order or bool(card.page)
    kind = "" if is_told else f" {card.kind}"
    what = f"report of {article(card.title)} {card.title}{kind} \u00b7 {shortened(run.table_name, 80)}"
    body = "\n".join(section.render() for section in sections)
    stopped = [STOPPED] if getattr(getattr(run.estimator, "search_", None), "is_stopped", False) else []
    told = [*stopped, *(said for said in fit.warnings if escaped(said[1:]) not in body)]
    return Template(_resource("page.html")).substitute(
        policy=_policy(script),
        window_title=escaped(header.window_title),
        style=_resource("page.css"),
        what=escaped(what),
        title=header.title,
        lede=header.lede,
        warnings="".join(f'\n<p class="lede"><b>Warning:</b> {escaped(said)}</p>' for said in told),
        facts=facts(header.facts, "five-figures"),
        contents="".join(f'<a href="#{section.name}">{escaped(section.label)}</a>' for section in sections),
        sections=body,
        signature=escaped(_signature(run)),
        script=f"<script>{script}</script>" if script else "",
    )


def _resource(name: str) -> str:
    return resources.files("majorant.report").joinpath(name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """Return the content security policy: the page may use its own styles and run this script."""
    may_run = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = f"'sha256-{may_run}'" if script else "'none'"
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}"


def _signature(run: Run) -> str:
    when = "" if run.created is None else f" on {run.created.day} {month_name[run.created.month]} {run.created.year}"
    return f"Written by majorant {__version__}{when}."
