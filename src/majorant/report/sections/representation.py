"""Representations: certificate and penalty, features and views of each component, profiles of classes, a picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from majorant.report import numbers
from majorant.report.charts.marks import N_COLOURS
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.fit import Fit
from majorant.report.html import column_name, escaped, facts, shortened
from majorant.report.measures.representation import Representation, representation_of
from majorant.report.measures.silhouettes import thinned_rows
from majorant.report.section import Section
from majorant.report.sections.pair import MOST_PANELS, MOST_POINTS, Scatter, draw_scatter, draw_scatter_panels
from majorant.report.words import representation as words

MOST_COMPONENTS = 20
MOST_COLUMNS = 10
MOST_FEATURES = 5
MOST_CLASSES = 60


def optimality_section(fit: Fit) -> Section | None:
    """Rank, penalty and certificate; None for a model that is no representation."""
    representation = representation_of(fit)
    if representation is None:
        return None
    model, certificate = representation.model, representation.model.certificate_
    eigenvalue = numbers.DASH if certificate.eigenvalue is None else numbers.distance(certificate.eigenvalue)
    largest = numbers.DASH if certificate.method == "cd" else numbers.distance(model.largest_l2_)
    figures = [
        ("Components", numbers.integer(certificate.rank), f"of {numbers.integer(certificate.n_components)} at most"),
        ("Smallest eigenvalue", eigenvalue, ""),
        ("Penalty", numbers.distance(model.l2_), ""),
        ("No component from", largest, ""),
    ]
    return Section(
        "optimality",
        "Global optimum",
        words.optimality_headline(representation),
        facts(figures, "four-figures") + _path(representation),
        words.optimality_notes(representation),
        is_figure=False,
    )


def topics_section(fit: Fit) -> Section | None:
    """The features of each component; None without components."""
    representation = representation_of(fit)
    if representation is None or not representation.rank:
        return None
    n = min(representation.rank, MOST_COMPONENTS)
    heads = '<th class="number">Nr</th><th class="number">Weight</th><th class="bar-cell"></th><th>Features</th>'
    largest = float(representation.sizes[:n].max())
    features = representation.features(MOST_FEATURES)[:n]
    body = "".join(_topic(representation, k, of_one, largest) for k, of_one in enumerate(features))
    css = "stacks dense" if n > 12 else "stacks"
    table = f'<table class="{css}"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
    return Section(
        "topics",
        "Components",
        words.topics_headline(representation),
        table,
        words.topics_notes(representation, n),
        is_figure=False,
    )


def views_section(fit: Fit) -> Section | None:
    """The share of each view in each component; None with one view or no component."""
    representation = representation_of(fit)
    if representation is None or not representation.rank or len(representation.views) < 2:
        return None
    n = min(representation.rank, MOST_COMPONENTS)
    names = [escaped(shortened(name, words.LONGEST_VIEW)) for name in representation.views]
    heads = "<th>Component</th>" + "".join(f'<th class="number">{name}</th>' for name in names)
    rows = [
        [str(k + 1), *(numbers.percent_in_column(float(share), 0) for share in representation.shares[:, k])]
        for k in range(n)
    ]
    return Section(
        "views",
        "Views",
        words.views_headline(representation),
        _table(heads, rows),
        words.views_notes(),
        is_figure=False,
    )


def class_profiles_section(fit: Fit) -> Section | None:
    """The mean representation of each class; None without classes or components."""
    representation = representation_of(fit)
    if representation is None or representation.classes is None or not representation.rank:
        return None
    names = representation.classes[0]
    if len(names) < 2:
        return None
    n = min(representation.rank, MOST_COLUMNS)
    heads = "<th>Class</th>" + "".join(f'<th class="number">{k + 1}</th>' for k in range(n))
    rows = [
        [escaped(shortened(name, words.LONGEST_VIEW)), *(numbers.fixed(float(v), 2) for v in profile[:n])]
        for name, profile in zip(names[:MOST_CLASSES], representation.profiles, strict=False)
    ]
    return Section(
        "class-profiles",
        "Classes in components",
        words.profiles_headline(representation),
        _table(heads, rows),
        words.profiles_notes(representation),
        is_figure=False,
    )


@dataclass(frozen=True)
class Embedding(Scatter):
    """Two components of the rows, with the names of their classes."""

    names: tuple[str, ...] = ()

    def name(self, part: int) -> str:
        return self.names[part] if self.names else ""


def embedding_section(fit: Fit) -> Section | None:
    """A picture of the first two components; None where there are fewer."""
    representation = representation_of(fit)
    if representation is None or representation.rank < 2:
        return None
    names, labels = representation.classes or ([""], np.zeros(representation.n_rows, dtype=np.int64))
    sizes = np.bincount(labels, minlength=len(names))
    rows = thinned_rows(labels, sizes, MOST_POINTS)
    x, y = representation.latents[rows, 0], representation.latents[rows, 1]
    data = Embedding(x, y, labels[rows], "component 1", "component 2", "class", {}, 0, tuple(names))
    parts = list(range(len(names)))
    shown = sorted(np.argsort(-sizes, kind="stable")[:MOST_PANELS].tolist())

    def draw(size: Size) -> Canvas:
        if len(names) <= N_COLOURS:
            return draw_scatter(size, data, parts, len(names))
        return draw_scatter_panels(size, data, shown)

    return Section(
        "embedding",
        "First two components",
        words.embedding_headline(representation),
        figure("embedding", "Scatter plot of the rows by their first two components", draw),
        words.embedding_notes(representation, len(rows)),
    )


def _topic(representation: Representation, k: int, of_views: list[tuple[str, list[str]]], largest: float) -> str:
    size = float(representation.sizes[k])
    lines = ""
    for view, features in of_views:
        signed = [f"{'+' if f[0] == '+' else numbers.MINUS}{column_name(f[1:])}" for f in features]
        if signed:
            name = f"<b>{escaped(shortened(view, words.LONGEST_VIEW))}</b> " if len(representation.views) > 1 else ""
            lines += f"<div>{name}{', '.join(signed)}</div>"
    return (
        f'<tr><td class="number">{k + 1}</td><td class="number">{numbers.percent_in_column(size, 0)}</td>'
        f'<td class="bar-cell"><span class="bar fill-mid" style="width:{100 * size / largest:.1f}%"></span></td>'
        f"<td>{lines}</td></tr>"
    )


def _path(representation: Representation) -> str:
    """The penalties that were compared."""
    path = representation.model.l2_path_
    if not len(path):
        return ""
    heads = '<th class="number">Penalty</th><th class="number">Held-out loss</th>'
    rows = []
    for l2, loss in path.tolist():
        cells = [numbers.distance(l2), numbers.fixed(loss, 4)]
        rows.append([f"<b>{cell}</b>" for cell in cells] if l2 == representation.model.l2_ else cells)
    return _table(heads, rows, all_numbers=True)


def _table(heads: str, rows: list[list[str]], all_numbers: bool = False) -> str:
    body = ""
    for first, *rest in rows:
        cells = f'<td class="number">{first}</td>' if all_numbers else f"<td>{first}</td>"
        cells += "".join(f'<td class="number">{cell}</td>' for cell in rest)
        body += f"<tr>{cells}</tr>"
    css = ' class="dense"' if len(rows) > 12 else ""
    return f'<div class="scrolls"><table{css}><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'
