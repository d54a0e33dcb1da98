"""Every Python block of the README and of the guide runs, so does every docstring's example, and the site is whole."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from majorant import registry

from .report.chromium import BROWSER, browsing

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
MODULES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def runs_here(page: Path) -> bool:
    """Whether its blocks run in `test_every_block_runs`; the site runs those of all pages without benchmark data."""
    return page.name == "README.md" or 'np.load("' in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [p for p in PAGES if runs_here(p)], ids=lambda p: p.name)
def test_every_block_runs(page: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that loads a file of benchmark data runs where the file is, and is skipped where there is none."""
    names: dict[str, object] = {"__name__": "reader"}
    loaded = re.search(r'np\.load\("(\w+\.npz)"\)', page.read_text(encoding="utf-8"))
    if loaded:
        found = sorted(request.getfixturevalue("shared_data").rglob(loaded[1]))
        if not found:
            pytest.skip(f"no {loaded[1]} among the benchmark data")
        monkeypatch.chdir(found[0].parent)
    known = set(registry.CARDS)
    try:
        for number, block in enumerate(python_blocks(page), 1):
            exec(compile(block, f"{page.name}, block {number}", "exec"), names)  # a failure names page and block
    finally:
        for name in [n for n in registry.CARDS if n not in known and registry.ESTIMATORS[n].__module__ == "reader"]:
            del registry.CARDS[name], registry.ESTIMATORS[name]
    assert "majorant" in str(names["mj"])


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_docstrings_run(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    failed, _ = doctest.testmod(importlib.import_module(module))
    assert not failed


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    here = [link for link in links if not link.startswith(("http", "generated/"))]  # these the site makes
    missing = [link for link in here if not (page.parent / link).exists()]
    assert missing == []


class Page(HTMLParser):
    """What a page of the site loads, where it links to, and the anchors that it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        is_loaded = tag != "a" and given.get("rel") not in ("canonical", "next", "prev", "index", "search", "author")
        self.links += [given[name] for name in ("href", "src") if name in given]
        self.loads += [given[name] for name in ("href", "src") if name in given and is_loaded]


def faults_of(site: Path) -> list[str]:
    """Links of the site that lead nowhere, and what a page or a style sheet loads from elsewhere."""
    pages = {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    faults = []
    for path, page in pages.items():
        name = path.relative_to(site)
        faults += [f"{name} loads {link}" for link in page.loads if urlsplit(link).scheme not in ("", "data")]
        for link in {link for link in page.links if not urlsplit(link).scheme and not link.startswith("//")}:
            to = (path.parent / unquote(urlsplit(link).path)).resolve() if urlsplit(link).path else path
            anchor = unquote(urlsplit(link).fragment)
            if not to.exists() or (anchor and to in pages and anchor not in pages[to].anchors):
                faults.append(f"{name} links to {link}")
    for sheet in site.rglob("*.css"):
        loaded = re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^\"')]+", sheet.read_text(encoding="utf-8"))
        faults += [f"{sheet.relative_to(site)} loads {address}" for address in loaded]
    return faults


SEARCHES = {
    "elbow": "kmeans.html",
    "silhouette": "kmeans.html",
    "dendrogram": "glossary.html",
    "Excel": "glossary.html",
    "latent class analysis": "latent_class_analysis.html",
    "HMM": "hidden_markov.html",
    "spherical": "gaussian_mixture.html",
    "poLCA": "latent_class_analysis.html",
    "hmmlearn": "from_hmmlearn_depmixs4_and_statsmodels.html",
    "flexmix": "from_flexmix_and_mixtools.html",
}
"""What people look for, and a page that answers: it is one of the first three results."""
FIRST = "[...document.querySelectorAll('#search-results li a')].slice(0, 3).map(a => a.pathname.split('/').pop())"
CUT = """[...document.querySelectorAll('article pre, article img, article table')]
    .filter(e => !e.closest('.output, .output-html, .pst-scrollable-table-container, .sphx-glr-script-out'))
    .filter(e => e.scrollWidth > e.clientWidth + 1 || e.getBoundingClientRect().right > innerWidth + 1)
    .map(e => e.textContent.slice(0, 60))"""


def look_at(site: Path, tab: Any) -> None:
    """Search the site as a reader does, and look for code that is cut and formulas that are not set."""
    for words, expected in SEARCHES.items():
        tab.open(f"{(site / 'search.html').as_uri()}?q={words.replace(' ', '+')}")
        tab.wait_for("document.querySelector('#search-results .search-summary')?.textContent.includes('found')")
        assert expected in tab.value(FIRST), words
    for width in (390, 1280):
        for page in sorted(path for path in site.glob("*.html") if path.name != "genindex.html"):
            tab.open(page.as_uri(), width=width)
            assert (page.name, width, tab.value(CUT)) == (page.name, width, [])
            assert tab.value("document.documentElement.scrollWidth") <= width, (page.name, width)
    tab.open((site / "harmonium.html").as_uri())
    tab.wait_for("document.querySelectorAll('mjx-container svg').length > 10")
    assert not [address for address in tab.fetched() if not address.startswith(("file:", "data:", "blob:"))]


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx_gallery")
    docs, site = tmp_path / "docs", tmp_path / "site"  # the reference is generated beside the pages
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("_build", "generated", "gallery"))
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("benchmarks", "experiments", "src", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    warned = tmp_path / "warnings.txt"  # not stderr: on a busy machine Dask logs there that a worker was slow to close
    options = ["-b", "html", "-q", "-W", "--keep-going", "-w", str(warned)]
    build = [sys.executable, "-m", "sphinx", *options, str(docs), str(site)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert (done.returncode, warned.read_text(encoding="utf-8")) == (0, ""), done.stderr
    assert "KMeans" in (site / "generated" / "majorant.KMeans.html").read_text(encoding="utf-8")
    for example in (ROOT / "docs" / "examples").glob("plot_*.py"):  # each was run, and drew
        assert "sphx_glr_" in (site / "gallery" / f"{example.stem}.html").read_text(encoding="utf-8")
    assert "1277.93" in (site / "index.html").read_text(encoding="utf-8")  # an example's output
    registry.discover()
    listed = Page(site / "sample_reports.html").links
    for model in registry.CARDS:
        assert f"reports/{model}.html" in listed
        assert "<!doctype html>" in (site / "reports" / f"{model}.html").read_text(encoding="utf-8").lower()
    assert faults_of(site) == []
    if BROWSER is not None:
        with browsing(tmp_path / "profile") as tab:
            look_at(site, tab)


@pytest.mark.parametrize("module", ["majorant", "majorant.solvers", "majorant.starts", "majorant.plot"])
def test_every_public_name_has_its_page(module: str) -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = set()
    for home, names in re.findall(r"currentmodule:: (\S+)\n(.*?)```", page, flags=re.DOTALL):
        listed |= {f"{home}.{name}" for name in re.findall(r"^   (\w+)$", names, flags=re.MULTILINE)}
    public = importlib.import_module(module)
    unlisted = [n for n in public.__all__ if f"{module}.{n}" not in listed and not inspect.ismodule(getattr(public, n))]
    assert unlisted == []
    for name in listed:
        home, _, thing = name.rpartition(".")
        assert inspect.getdoc(getattr(importlib.import_module(home), thing)), name
