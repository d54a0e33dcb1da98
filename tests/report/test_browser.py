"""The page in a real browser: no sideways scrolling, no messages on the console, both schemes, printable."""

from __future__ import annotations

import re
import shutil
import subprocess
import zlib
from itertools import product
from pathlib import Path

import pytest
from sklearn.datasets import load_iris

import majorant as mj
from majorant.report import html_report, report

from .chromium import BROWSER, FLAGS, browsing
from .test_classification_page import run_of as classification_of
from .test_latent_classes_page import run_of as latent_classes_of
from .test_mixture_page import run_of as mixture_of
from .test_mixture_page import selection
from .test_page import run_of
from .test_regression_page import run_of as regression_of
from .test_representation_page import run_of as representation_of

WIDTHS = (360, 1440)
CASES = {
    "usual": lambda: run_of("usual"),
    "a mixture": lambda: mixture_of(selection=selection()),
    "a classification": classification_of,
    "a mixture of regressions": lambda: regression_of("left out"),
    "latent classes": lambda: latent_classes_of("long names"),
    "a representation": representation_of,
    "a representation of four classes": lambda: representation_of("four classes"),
    "a classification of odd names": lambda: classification_of("odd names"),
    "a classification of 20 classes": lambda: classification_of("20 classes"),
    "400 rows in 12 by 30": lambda: run_of("400 rows in 12 by 30"),
    "huge numbers": lambda: run_of("huge numbers"),
    "hundreds of starts": lambda: run_of("hundreds of starts"),
    "a search with perturbations": lambda: run_of("a search with perturbations"),
    "a mixture with gaps": lambda: mixture_of("missing"),
    "a mixture of huge numbers": lambda: mixture_of("huge"),
    "five regressions": lambda: regression_of("five lines"),
    "regressions of huge numbers": lambda: regression_of("huge"),
    "regressions on 12 features": lambda: regression_of("many"),
    "a mixture of 12 by 30": lambda: mixture_of("300 in 12 by 30"),
}
ENDINGS = {"CSV": "csv", "LaTeX": "tex"}
DRAWN = 4
"""Pages of which pictures are taken: the first ones."""
WRAPPER = """<!doctype html><body>{frames}<pre id="widths"></pre><script>
addEventListener("load", () => {{
  const widths = [...document.querySelectorAll("iframe")].map(
    f => f.contentDocument.documentElement.scrollWidth + "/" + f.width);
  document.getElementById("widths").textContent = widths.join(" ");
}});
</script></body>"""

CROWDED = """<!doctype html><body>{frames}<pre id="crowded"></pre><script>
const boxes = cell => {{
  const range = document.createRange(), bar = cell.querySelector(".bar");
  range.selectNodeContents(cell);
  return bar ? [bar.getBoundingClientRect()] : [...range.getClientRects()].filter(r => r.width);
}};
addEventListener("load", () => {{
  const found = [];
  for (const frame of document.querySelectorAll("iframe"))
    for (const row of frame.contentDocument.querySelectorAll("#latent-classes tr")) {{
      const cells = [...row.children].filter(c => c.getClientRects().length);
      for (const a of cells) for (const b of cells) if (a !== b)
        for (const r of boxes(a)) for (const s of boxes(b))
          if (r.left <= s.left && r.right + {gap} > s.left && r.top < s.bottom && s.top < r.bottom)
            found.push(frame.width + ": " + a.textContent + " | " + b.textContent);
      const table = row.closest("table").getBoundingClientRect();
      for (const c of cells) for (const r of boxes(c))
        if (r.right > table.right + 1) found.push("out: " + c.textContent);
      const bar = row.querySelector(".bar");
      if (bar && frame.width > 700 && bar.parentNode.getBoundingClientRect().width < 40) found.push("no room for bars");
    }}
  const rows = [...document.querySelectorAll("iframe")].map(
    f => f.contentDocument.querySelectorAll("#latent-classes tbody tr").length);
  document.getElementById("crowded").textContent = [...rows, ...found].join("; ");
}});
</script></body>"""

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no chromium, chromium-browser or google-chrome on this machine"
)


def browse(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    profile = tmp_path / "profile"
    shutil.rmtree(profile, ignore_errors=True)
    return subprocess.run(
        [str(BROWSER), *FLAGS, f"--user-data-dir={profile}", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The pages of several cases, written to files."""
    paths, folder = [], tmp_path_factory.mktemp("pages")
    for case, run in CASES.items():
        path = folder / f"{case.replace(' ', '-')}.html"
        path.write_text(html_report(run()), encoding="utf-8")
        paths.append(path)
    return paths


def test_no_page_is_wider_than_its_window(tmp_path: Path, pages: list[Path]) -> None:
    frames = "".join(f'<iframe src="{p.name}" width="{w}" height="600"></iframe>' for p in pages for w in WIDTHS)
    wrapper = pages[0].parent / "wrapper.html"
    wrapper.write_text(WRAPPER.format(frames=frames), encoding="utf-8")
    shown = browse(tmp_path, "--virtual-time-budget=3000", "--dump-dom", wrapper.as_uri()).stdout
    pairs = [pair.split("/") for pair in shown.split('id="widths">')[1].split("<")[0].split()]
    assert len(pairs) == len(pages) * len(WIDTHS)
    assert [int(seen) for seen, _ in pairs] == [int(window) for _, window in pairs]


def test_columns_of_text_stay_apart(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(html_report(latent_classes_of("long names")), encoding="utf-8")
    frames = "".join(f'<iframe src="page.html" width="{w}" height="600"></iframe>' for w in (360, 800, 1200, 1440))
    wrapper = tmp_path / "wrapper.html"
    wrapper.write_text(CROWDED.format(frames=frames, gap=8), encoding="utf-8")
    shown = browse(tmp_path, "--virtual-time-budget=3000", "--dump-dom", wrapper.as_uri()).stdout
    assert shown.split('id="crowded">')[1].split("<")[0] == "4; 4; 4; 4"


@pytest.mark.parametrize("width", [360, 800, 1280, 1440])
def test_figures_stay_in_their_columns(tmp_path: Path, pages: list[Path], width: int) -> None:
    wide = """[...document.querySelectorAll('dl:not(.settings) > div')].flatMap(figure => {
      const range = document.createRange(), right = figure.getBoundingClientRect().right + 1;
      range.selectNodeContents(figure);
      return [...range.getClientRects()].some(r => r.right > right) ? [figure.textContent] : [];
    })"""
    with browsing(tmp_path / "profile") as tab:
        for page in pages:
            tab.open(page.as_uri(), width)
            assert tab.value("document.querySelectorAll('dl:not(.settings) > div').length") >= 5
            assert tab.value(wide) == [], page.stem


def test_every_table_is_copied_by_the_keyboard_alone(tmp_path: Path) -> None:
    made = report(run_of("usual"))
    page = tmp_path / "page.html"
    page.write_text(made.html, encoding="utf-8")
    table = made.tables["clusters"]
    focus = "document.activeElement"
    with browsing(tmp_path / "profile") as tab:
        for width in WIDTHS:
            tab.open(page.as_uri(), width)
            for kind, text in (("CSV", table.to_csv()), ("LaTeX", table.to_latex())):
                for _ in range(100):
                    tab.press("Tab")
                    if tab.value(f"{focus}.textContent") == f"Copy as {kind}":
                        break
                tab.press("Enter")
                copy = f"{focus}.closest('details')"
                tab.wait_for(f"{copy}?.querySelector('[role=status]').textContent === 'Copied.'")
                tab.value("void document.body.append(Object.assign(document.createElement('textarea'), {id: 'paste'}))")
                selected = f"{focus}.value.slice({focus}.selectionStart, {focus}.selectionEnd)"
                assert tab.value(selected) == text
                box = tab.value(f"(b => [b.left, b.right, b.height])({focus}.getBoundingClientRect())")
                assert box[0] >= 0 and box[1] <= width and box[2] > 60
                link = f"{copy}.querySelector('a')"
                assert tab.value(f"fetch({link}.href).then(r => r.text(), () => 'refused')") == "refused"
                assert tab.value(f"decodeURIComponent({link}.href.split(',').slice(1).join(','))") == text
                assert tab.value(f"[{link}.hidden, {link}.download]") == [False, f"clusters.{ENDINGS[kind]}"]
                tab.value("(b => { b.value = ''; b.focus(); })(document.getElementById('paste'))")
                tab.ask("Input.dispatchKeyEvent", type="keyDown", key="v", modifiers=2, commands=["paste"])
                assert tab.value(f"{focus}.value") == text
                tab.value(f"void (document.getElementById('paste').remove(), {focus}.blur())")
        assert set(tab.fetched()) == {page.as_uri()}


def test_a_copy_that_is_refused_is_selected_instead(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(html_report(run_of("usual")), encoding="utf-8")
    with browsing(tmp_path / "profile") as tab:
        tab.open(page.as_uri(), 360)
        tab.value("void (document.execCommand = () => false)")
        tab.value("void (navigator.clipboard.writeText = () => Promise.reject(new Error('no')))")
        tab.value("void document.querySelector('.copy summary').click()")
        said = "document.querySelector('.copy [role=status]').textContent"
        tab.wait_for(f"{said} !== ''")
        assert tab.value(said) == "Selected: copy it with Ctrl+C or \u2318C."
        assert tab.value("getSelection().toString() || document.activeElement.selectionEnd > 100")
        tab.value("void document.querySelector('.copy summary').click()")
        assert not tab.value("document.querySelector('.copy').open")
        assert tab.complaints() == []


def test_pages_fetch_nothing_and_complain_of_nothing(tmp_path: Path, pages: list[Path]) -> None:
    with browsing(tmp_path / "profile") as tab:
        for page in pages:
            tab.open(page.as_uri())
        assert tab.fetched() == [page.as_uri() for page in pages]
        assert tab.complaints() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_drawn_in_both_schemes(tmp_path: Path, pages: list[Path], scheme: str) -> None:
    image = tmp_path / "page.png"
    flags = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    for page, width in product(pages[:DRAWN], WIDTHS):
        done = browse(
            tmp_path,
            *flags,
            "--enable-logging=stderr",
            f"--window-size={width},900",
            f"--screenshot={image}",
            page.as_uri(),
        )
        assert "CONSOLE" not in done.stderr
        assert image.stat().st_size > 5_000
        image.unlink()


def signs_by_page(document: bytes) -> list[int]:
    """How many signs of text each page of a printed document has."""
    counts = []
    for page in re.findall(rb"/Type /Page\b.*?/Contents (\d+) 0 R", document, re.DOTALL):
        (content,) = re.findall(rb"\n%s 0 obj\n.*?stream\n(.*?)\nendstream" % page, document, re.DOTALL)
        counts.append(sum(len(text) // 4 for text in re.findall(rb"<([0-9A-F]+)> Tj", zlib.decompress(content))))
    return counts


def test_a_printed_page_holds_more_than_a_heading(tmp_path: Path) -> None:
    page, document, X = tmp_path / "page.html", tmp_path / "page.pdf", load_iris().data[:, :3]
    page.write_text(mj.GaussianMixture(3, random_state=0).fit(X).report(X).html, encoding="utf-8")
    browse(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={document}", page.as_uri())
    signs = signs_by_page(document.read_bytes())
    assert len(signs) > 4 and min(signs) > 80, signs
