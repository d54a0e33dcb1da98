"""Results that say themselves: a short repr, and their sentence in notebooks."""

from __future__ import annotations

from html import escape
from typing import Any


class Told:
    """A result with a sentence; dataclasses of it are made with ``repr=False``."""

    @property
    def sentence(self) -> str:
        """What the result says."""
        raise NotImplementedError(f"{type(self).__name__} must say what it holds")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sentence.rstrip('.')})"

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        return f"<p><b>{escape(type(self).__name__)}</b> {escape(str(self))}</p>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))
