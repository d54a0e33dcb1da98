"""What is made while the site is built: the outputs under examples, and a sample report of every model."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from sphinx.errors import ExtensionError

from majorant import registry

BLOCK = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
PAGES = {
    "kmeans": ["kmeans"],
    "kmedoids": ["kmedoids"],
    "gaussian_mixture": ["gaussian-mixture"],
    "latent_class_analysis": ["latent-class-analysis"],
    "regression_mixture": ["regression-mixture"],
    "hidden_markov": ["hmm"],
    "one_idea": ["prototype"],
    "discriminative_latent_classes": ["discriminative-latent-classes"],
    "discriminative_clustering": ["discriminative-clustering"],
    "latent_svm": ["latent-svc"],
    "bag_of_words": ["bag-of-words"],
    "harmonium": ["harmonium", "harmonium-classifier", "harmonium-regressor"],
}
"""The models that a page is about."""
DATA_VARIABLE = "MAJORANT_SHARED_DATA"


def data_of(page: str) -> Path | None:
    """Find the benchmark data that a page loads: any folder if it loads none, None if they are not here."""
    name = re.search(r'np\.load\("(\w+\.npz)"\)', page)
    folder = Path(os.environ.get(DATA_VARIABLE) or Path(__file__).parents[2] / "shared" / "data")
    return next((path.parent for path in folder.rglob(name[1])), None) if name else Path(tempfile.gettempdir())


def links_to_reports(page: str) -> str:
    """Link to the sample reports of the models of a page; on that of sample reports to all, with their questions."""
    cards = [registry.CARDS[name] for name in PAGES.get(page, [])]
    links = ", ".join(f'<a href="reports/{card.name}.html">{card.title}</a>' for card in cards)
    if page == "sample_reports":
        every = [registry.CARDS[name] for names in PAGES.values() for name in names]
        items = (f'<dt><a href="reports/{c.name}.html">{c.title}</a></dt><dd>{c.question}</dd>' for c in every)
        return f"```{{raw}} html\n<dl>{''.join(items)}</dl>\n```\n"
    return f"```{{raw}} html\n<p>A sample report: {links}.</p>\n```\n" if cards else ""


def run(block: str, where: str, names: dict[str, Any]) -> tuple[str, list[str]]:
    """Run a block; return as text what it prints and what its expressions are, and as HTML its tables and pictures."""
    tables: list[str] = []
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for statement in ast.parse(block).body:
            if not isinstance(statement, ast.Expr):
                exec(compile(ast.Module([statement], []), where, "exec"), names)
                continue
            value = eval(compile(ast.Expression(statement.value), where, "eval"), names)
            if hasattr(value, "_repr_html_") and not hasattr(value, "get_params"):
                tables.append(value._repr_html_())
            elif value is not None and not isinstance(value, plt.Axes | plt.Figure):
                printed.write(f"{value!r}\n")
    return printed.getvalue(), [*tables, *map(picture, map(plt.figure, plt.get_fignums()))]


@contextlib.contextmanager
def reader(folder: Path) -> Iterator[dict[str, Any]]:
    """Give the names of somebody who follows a page; models that it defines are forgotten at its end."""
    known = set(registry.CARDS)
    numbers = np.printoptions(precision=4, suppress=True, threshold=40, edgeitems=2, linewidth=88)
    try:
        with warnings.catch_warnings(action="error"), contextlib.chdir(folder), numbers:
            yield {"__name__": "reader"}
    finally:
        plt.close("all")
        for name in [n for n in registry.CARDS if n not in known and registry.ESTIMATORS[n].__module__ == "reader"]:
            del registry.CARDS[name], registry.ESTIMATORS[name]


def add_outputs(app: Any, docname: str, source: list[str]) -> None:
    """Run a page's blocks of Python one after the other, and put under each what it gives; a failure ends the build."""
    if links := links_to_reports(docname):
        title, text = source[0].split("\n", 1)
        source[0] = f"{title}\n\n{links}{text}"
    folder = data_of(source[0])
    if folder is None:
        return
    with reader(folder) as names:

        def with_output(block: re.Match[str]) -> str:
            line = source[0][: block.start()].count("\n") + 1
            try:
                text, html = run(block[1], f"{docname}, line {line}", names)
            except Exception as error:
                raise ExtensionError(f"the example of {docname}, line {line}, failed: {error!r}") from error
            parts = [f"```{{code-block}} text\n:class: output\n\n{text.rstrip()}\n```"] if text.strip() else []
            parts += [f"```{{raw}} html\n<div class='output-html'>{part}</div>\n```" for part in html]
            return "\n\n".join([block[0], *parts])

        source[0] = BLOCK.sub(with_output, source[0])


def picture(figure: Any) -> str:
    """Return a figure as inline SVG, and close it."""
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    return drawn.getvalue()[drawn.getvalue().index("<svg") :]


def make_reports(app: Any) -> None:
    """Write a sample report of every model, `majorant demo`, into generated/reports, with its pictures."""
    from majorant.cli.demo import run_demo

    registry.discover()
    target = Path(app.srcdir) / "generated" / "reports"
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for model in registry.CARDS:
            with contextlib.redirect_stdout(io.StringIO()):
                run_demo(model, Path(model), True)
            shutil.copy(Path(model, "run", "report.html"), target / f"{model}.html")
            shutil.copytree(Path(model, "run", "figures"), target / model, dirs_exist_ok=True)


def copy_reports(app: Any, failed: Exception | None) -> None:
    """Put the sample reports beside the pages."""
    if failed is None:
        shutil.copytree(Path(app.srcdir) / "generated" / "reports", Path(app.outdir) / "reports", dirs_exist_ok=True)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    matplotlib.use("agg")
    app.connect("builder-inited", make_reports)
    app.connect("source-read", add_outputs)
    app.connect("build-finished", copy_reports)
    return {"parallel_read_safe": True}
