"""Pictures of a representation: the first two components of the rows, and a map of neighbourhoods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.report.charts.marks import N_COLOURS
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.fit import Fit
from majorant.report.measures.representation import Representation, representation_of
from majorant.report.section import Section
from majorant.report.sections.pair import MOST_PANELS, MOST_POINTS, Scatter, draw_scatter, draw_scatter_panels
from majorant.report.words import representation as words
from majorant.results.silhouettes import thinned_rows


@dataclass(frozen=True)
class Embedding(Scatter):
    """Positions of rows in the plane, with the names of their groups."""

    names: tuple[str, ...] = ()

    def name(self, part: int) -> str:
        return self.names[part] if self.names else ""


def embedding_section(fit: Fit) -> Section | None:
    """Build the section: a picture of the first two components; None where there are fewer."""
    representation = representation_of(fit)
    if representation is None or representation.rank < 2:
        return None
    names, labels = _groups(representation)
    rows = thinned_rows(labels, np.bincount(labels, minlength=len(names)), MOST_POINTS)
    places = representation.latents[rows, :2]
    return Section(
        "embedding",
        "First two components",
        words.embedding_headline(representation),
        words.embedding_notes(representation, len(rows)),
        _picture("embedding", "by their first two components", places, labels[rows], names, "component"),
    )


def neighbours_section(fit: Fit) -> Section | None:
    """Build the section: a map by all components; None where there are two or fewer, or few rows."""
    representation = representation_of(fit)
    if representation is None or representation.rank < 2 or representation.neighbourhoods is None:
        return None
    found = representation.neighbourhoods
    names, labels = _groups(representation)
    return Section(
        "neighbours",
        "All components",
        words.neighbours_headline(representation),
        words.neighbours_notes(representation, len(found.rows), found.perplexity),
        _picture("neighbours", "beside those most like them", found.places, labels[found.rows], names, ""),
    )


def _groups(representation: Representation) -> tuple[list[str], NDArray[np.int64]]:
    return representation.groups or ([""], np.zeros(representation.n_rows, dtype=np.int64))


def _picture(
    name: str, how: str, places: NDArray[np.float64], labels: NDArray[np.int64], names: list[str], axis: str
) -> str:
    """Return the figure of rows by group; without the name of an axis only neighbourhoods are meaningful."""
    axes = (f"{axis} 1", f"{axis} 2") if axis else ("", "")
    data = Embedding(places[:, 0], places[:, 1], labels, *axes, "class", {}, 0, not axis, tuple(names))
    sizes = np.bincount(labels, minlength=len(names))
    parts = np.flatnonzero(sizes).tolist()
    shown = sorted(np.argsort(-sizes, kind="stable")[: min(MOST_PANELS, len(parts))].tolist())

    def draw(size: Size) -> Canvas:
        if len(names) <= N_COLOURS:
            return draw_scatter(size, data, parts, len(names))
        return draw_scatter_panels(size, data, shown)

    return figure(name, f"Scatter plot of the rows {how}", draw)
