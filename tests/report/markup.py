"""Checks of a page's markup: balanced tags, figures that say what they show, no colours, nothing fetched."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from importlib import resources

VOID = {"meta", "input"}
COLOUR = re.compile(
    r"#[0-9a-f]{3,8}\b|\brgba?\(|\bhsla?\(|(?:fill|stroke|color|background)\s*[:=]\s*[\"']?\s*[a-z]+", re.I
)
ALLOWED_VALUES = re.compile(r"url\(#[\w-]+\)|href=\"#[\w-]+\"|id=\"[\w-]+\"|(?:fill|stroke):(?:var|url)\(")


class Page(HTMLParser):
    """Reads a page and notes what is wrong with it."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.faults: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.text: list[str] = []
        self.labels: list[str] = []
        self.feed(source)
        self.close()
        if self.open:
            self.faults.append(f"never closed: {self.open}")
        self._check_ids()
        self._check_drawings(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._see(tag, dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._see(tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes something else")

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)

    def _see(self, tag: str, attrs: dict[str, str | None]) -> None:
        if tag in ("script", "link", "img", "iframe", "object"):
            self.faults.append(f"<{tag}> on the page")
        if tag == "svg":
            self.labels.append(attrs.get("aria-label") or "")
            if attrs.get("role") != "img" or not attrs.get("aria-label"):
                self.faults.append("an svg without role or label")
        if attrs.get("id"):
            self.ids.append(str(attrs["id"]))
        for value in attrs.values():
            self.references += re.findall(r"url\(#([\w-]+)\)", value or "")
            if re.match(r"(https?:)?//", value or ""):
                self.faults.append(f"an address: {value}")
            if re.search(r"\bnan\b|\binf\b|None", value or "") and tag in ("path", "line", "rect", "text"):
                self.faults.append(f"not a number in <{tag}>: {value}")

    def _check_ids(self) -> None:
        self.faults += [f"id {i} is there twice" for i in set(self.ids) if self.ids.count(i) > 1]
        self.faults += [f"no element has the id {i}" for i in set(self.references) - set(self.ids)]

    def _check_drawings(self, source: str) -> None:
        for drawing in re.findall(r"<svg.*?</svg>", source, re.S):
            tags = " ".join(re.findall(r"<[a-z][^>]*>", re.sub(r'(?:aria-label|class|d)="[^"]*"', "", drawing)))
            found = COLOUR.search(ALLOWED_VALUES.sub("", tags))
            if found:
                self.faults.append(f"a colour in a drawing: {found.group()}")


def without_own_script(source: str) -> str:
    """The page without the script that copies its tables and the policy that lets nothing else run.

    Both must be there as they are shipped, the script only where there are tables, and once.
    """
    script = resources.files("majorant.report").joinpath("page.js").read_text(encoding="utf-8")
    has_copies = '<details class="copy"' in source
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" if has_copies else "'none'"
    policy = (
        '<meta http-equiv="Content-Security-Policy" '
        f"content=\"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}\">"
    )
    element = f"<script>{script}</script>"
    assert source.count(policy) == 1 and source.count(element) == has_copies
    assert source.index(policy) < source.index("<style>")
    assert "://" not in script and "fetch" not in script
    return source.replace(policy, "").replace(element, "")


def check_page(source: str, limit: int = 200_000) -> Page:
    """Assert that a page is sound and smaller than `limit` bytes."""
    source = without_own_script(source)
    page = Page(source)
    assert not page.faults, page.faults[:5]
    assert len(source.encode()) < limit, len(source.encode())
    assert source.startswith("<!doctype html>")
    assert "http" not in source
    return page
