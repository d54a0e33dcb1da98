"""The page around the sections: one file, nothing fetched, no script."""

from __future__ import annotations

from calendar import month_name
from importlib import resources

from majorant import __version__
from majorant._numbers import article
from majorant.registry import ModelCard, card_of
from majorant.report.html import escaped, facts, shortened
from majorant.report.kinds import KINDS
from majorant.report.run import Run
from majorant.report.section import Header, Section


def html_report(run: Run) -> str:
    """The report of a fitted model as one self-contained HTML page.

    Parameters
    ----------
    run : Run
        The fitted estimator, the rows that it was fitted to, and how the run is repeated.

    Returns
    -------
    str
        HTML5, light and dark, for wide and narrow screens and for print; it has no script and fetches nothing.

    Raises
    ------
    TypeError
        If the run has no card and its estimator is none of majorant's models.
    ValueError
        If there is no report for this kind of model yet.
    """
    card = run.card or card_of(run.estimator)
    if card.kind not in KINDS:
        raise ValueError(f"there is no report for a {card.kind} yet; there is one for a {', '.join(sorted(KINDS))}")
    kind = KINDS[card.kind]
    measured = kind.measure(run, card)
    sections = [section for build in kind.sections if (section := build(measured)) is not None]
    return _page(run, card, kind.header(measured), sections)


def _page(run: Run, card: ModelCard, header: Header, sections: list[Section]) -> str:
    style = resources.files("majorant.report").joinpath("page.css").read_text(encoding="utf-8")
    kind = "" if card.kind in card.title else f" {card.kind}"
    what = f"report of {article(card.title)} {card.title}{kind}"
    body = "\n".join(section.render() for section in sections)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escaped(header.window_title)}</title>
<style>
{style}</style>
</head>
<body>
<main>
<header>
<p class="label"><b>majorant</b> {escaped(what)} \u00b7 {escaped(shortened(run.table_name, 80))}</p>
<h1>{header.title}</h1>
<p class="lede">{header.lede}</p>
</header>
{facts(header.facts, "five-figures")}
{body}
<footer>{escaped(_signature(run))}</footer>
</main>
</body>
</html>
"""


def _signature(run: Run) -> str:
    when = "" if run.created is None else f" on {run.created.day} {month_name[run.created.month]} {run.created.year}"
    return f"Written by majorant {__version__}{when}."
