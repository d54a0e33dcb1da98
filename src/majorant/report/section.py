"""A section of a page: a label, a headline that states the conclusion, a figure and a note."""

from __future__ import annotations

from dataclasses import dataclass, field

from majorant.report.html import escaped
from majorant.report.table import Table


@dataclass(frozen=True)
class Header:
    """The top of a page, as markup (`window_title` is plain text).

    Attributes
    ----------
    window_title, title, lede : str
        The title of the window, of the page, and the paragraph under it.
    facts : tuple of (str, str, str)
        Five numbers: the name of each, its value, and a small addition.
    """

    window_title: str
    title: str
    lede: str
    facts: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Section:
    """One section, as markup (`label` is plain text).

    Attributes
    ----------
    name : str
        The section's id on the page.
    label : str
        The name of the section.
    headline : str
        The conclusion, in one sentence.
    notes : list of str
        Paragraphs of the note.
    figure : str
        A drawing or another block, above the tables.
    table : Table or None
        The table below the figure, with its copies.
    further : Table or None
        A table of the same numbers in another form, of which the page has the copies.
    """

    name: str
    label: str
    headline: str
    notes: list[str] = field(default_factory=list)
    figure: str = ""
    table: Table | None = None
    further: Table | None = None

    @property
    def tables(self) -> list[Table]:
        return [table for table in (self.table, self.further) if table is not None]

    def render(self) -> str:
        shown = self.figure + "".join(
            table.with_copies(self.label, is_named=table is self.further) for table in self.tables
        )
        is_drawing = '<svg class="wide"' in self.figure
        block = f"<figure>{shown}</figure>" if is_drawing else f'<div class="block">{shown}</div>'
        note = "".join(f"<p>{paragraph}</p>" for paragraph in self.notes)
        return (
            f'<section id="{self.name}" aria-labelledby="h-{self.name}">\n<div class="lead">\n'
            f'<p class="label">{escaped(self.label)}</p>\n'
            f'<h2 id="h-{self.name}">{self.headline}</h2>\n{block}\n</div>\n'
            f'<div class="note">{note}</div>\n</section>'
        )
