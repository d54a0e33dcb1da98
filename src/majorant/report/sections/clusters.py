"""Clusters: one row of a table each."""

from __future__ import annotations

import numpy as np

from majorant.report import numbers
from majorant.report.charts.marks import N_COLOURS, component_class, legend_mark
from majorant.report.measures.clustering import Clustering
from majorant.report.section import Section
from majorant.report.words import clusters as words

MOST_ROWS = 60


def clusters_section(clustering: Clustering) -> Section:
    """Sizes, spreads and silhouettes of the clusters."""
    shown = list(range(clustering.k))
    if clustering.k > MOST_ROWS:
        shown = sorted(np.argsort(-clustering.sizes, kind="stable")[:MOST_ROWS].tolist())
    return Section(
        "clusters",
        "Clusters",
        words.headline(clustering),
        _table(clustering, shown),
        words.notes(clustering, len(shown)),
        is_figure=False,
    )


def _table(clustering: Clustering, shown: list[int]) -> str:
    silhouettes = clustering.silhouettes
    heads = [
        "<th>Cluster</th>",
        _head("Rows"),
        _head("Share", "wide-only"),
        '<th class="bar-cell"></th>',
        _head("Spread"),
    ]
    if silhouettes is not None:
        heads += [_head("Silhouette"), _head("Misfits")]
    body = "".join(_row(clustering, j) for j in shown)
    css = "dense" if len(shown) > 12 else ""
    return (
        f'<table class="{css}"><thead><tr>{"".join(heads)}</tr></thead>'
        f"<tbody>{body}{_total(clustering) if clustering.k > 1 else ''}</tbody></table>"
    )


def _row(clustering: Clustering, j: int) -> str:
    size, n = int(clustering.sizes[j]), clustering.n_rows
    colour = component_class(j, clustering.k)
    coloured = clustering.k <= N_COLOURS
    width = 100 * size / int(clustering.sizes.max())
    bar = f'<span class="bar fill-{colour}" style="width:{width:.1f}%"></span>' if size else ""
    cells = [
        f"<td>{legend_mark(j) if coloured else ''}{j + 1}</td>",
        _cell(numbers.integer(size)),
        _cell(numbers.percent_in_column(size / n), "wide-only"),
        f'<td class="bar-cell">{bar}</td>',
        _cell(_spread(clustering, float(clustering.spreads[j]))),
    ]
    silhouettes = clustering.silhouettes
    if silhouettes is not None:
        cells += [
            _cell(numbers.fixed(float(silhouettes.cluster_means[j]), 2)),
            _cell(numbers.integer(int(silhouettes.misfits[j])) if size else numbers.DASH),
        ]
    return f"<tr>{''.join(cells)}</tr>"


def _total(clustering: Clustering) -> str:
    silhouettes = clustering.silhouettes
    cells = [
        "<td>All</td>",
        _cell(numbers.integer(clustering.n_rows)),
        _cell(numbers.percent_in_column(1.0), "wide-only"),
        '<td class="bar-cell"></td>',
        _cell(_spread(clustering, clustering.spread)),
    ]
    if silhouettes is not None:
        cells += [_cell(numbers.fixed(silhouettes.mean, 2)), _cell(numbers.integer(int(silhouettes.misfits.sum())))]
    return f'<tr class="total">{"".join(cells)}</tr>'


def _spread(clustering: Clustering, value: float) -> str:
    """With as many decimals as the spread of all rows needs, the same in the whole column."""
    size = clustering.spread
    if size and not 1e-3 <= size < 1e7:
        return numbers.scientific(value) if np.isfinite(value) else numbers.DASH
    decimals = 2 if not size else int(np.clip(2 - np.floor(np.log10(size)), 0, 5))
    return numbers.fixed(value, decimals)


def _head(text: str, css: str = "") -> str:
    return f'<th class="{f"number {css}".strip()}">{text}</th>'


def _cell(text: str, css: str = "") -> str:
    return f'<td class="{f"number {css}".strip()}">{text}</td>'
