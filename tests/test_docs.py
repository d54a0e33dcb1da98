"""Every Python block of the README and of the guide runs, block after block, and so does every docstring's example."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from majorant import registry

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


@pytest.mark.parametrize("page", [p for p in PAGES if python_blocks(p)], ids=lambda p: p.name)
def test_every_block_runs(page: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that loads a file of benchmark data runs where the file is, and is skipped where there is none."""
    if "import dask" in page.read_text(encoding="utf-8"):
        pytest.importorskip("distributed", reason="needs majorant[dask]")
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
    missing = [link for link in links if not link.startswith("http") and not (page.parent / link).exists()]
    assert missing == []


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx_gallery")
    docs = tmp_path / "docs"  # the reference is generated beside the pages
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("_build", "generated", "gallery"))
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("benchmarks", "experiments", "src", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    build = [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        "html",
        "-q",
        "-W",
        "--keep-going",
        str(docs),
        str(tmp_path / "site"),
    ]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "KMeans" in (tmp_path / "site" / "generated" / "majorant.KMeans.html").read_text(encoding="utf-8")
    gallery = tmp_path / "site" / "gallery"
    for example in (ROOT / "docs" / "examples").glob("plot_*.py"):  # each was run, and drew
        assert "sphx_glr_" in (gallery / f"{example.stem}.html").read_text(encoding="utf-8")


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
