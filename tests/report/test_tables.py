"""Tables of the report: one object, and the page, the CSV and the LaTeX that it is written as."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from majorant.cli.runs import copied_files
from majorant.report import Column, Report, Run, Table, latex, report
from majorant.report.html import visible

from .test_classification_page import run_of as classification_of
from .test_latent_classes_page import run_of as latent_classes_of
from .test_mixture_page import run_of as mixture_of
from .test_mixture_page import selection
from .test_page import ODD_NAMES, run_of
from .test_regression_page import run_of as regression_of
from .test_representation_page import run_of as representation_of

RUNS: dict[str, Callable[[], Run]] = {
    "clusters": lambda: run_of("usual"),
    "components": lambda: mixture_of(selection=selection()),
    "confusion": classification_of,
    "a list of confusions": lambda: classification_of("20 classes"),
    "estimates": lambda: regression_of("left out"),
    "latent classes": lambda: latent_classes_of("long names"),
    "representation": lambda: representation_of("four classes"),
    "penalties": lambda: representation_of("a path"),
}
EXPECTED = {
    "clusters": ["clusters", "profiles"],
    "components": ["components", "profiles", "unsure-rows", "criterion"],
    "confusion": ["confusion", "classes"],
    "a list of confusions": ["confusion", "classes"],
    "estimates": ["estimates"],
    "latent classes": ["latent-classes", "confusion", "classes", "probabilities"],
    "representation": ["confusion", "classes", "topics", "views", "class-profiles"],
    "penalties": ["topics", "views", "penalties"],
}
UNESCAPED = {
    r"\textbackslash{}": "\\",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    r"\symbol{34}": '"',
    "-{}-": "--",
    **{f"\\{sign}": sign for sign in "&%$#_{}"},
}


@pytest.fixture(scope="module")
def made() -> dict[str, Report]:
    return {name: report(run()) for name, run in RUNS.items()}


def unescaped(text: str) -> str:
    """What LaTeX prints of escaped text."""
    pattern = "|".join(map(re.escape, sorted(UNESCAPED, key=len, reverse=True)))
    return re.sub(pattern, lambda found: UNESCAPED[found.group()], text)


def records(table: Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.to_csv())))


@pytest.mark.parametrize("name", RUNS)
def test_every_table_of_a_page_has_its_copies_on_it(name: str, made: dict[str, Report], tmp_path: Path) -> None:
    page, tables = made[name].html, made[name].tables
    made[name].save(tmp_path / "report.html")
    beside = {f"tables/{table}.{ending}" for table in tables for ending in ("csv", "tex")}
    assert beside | {f"figures/{figure}.svg" for figure in made[name].figures} <= set(copied_files(tmp_path))
    assert [table for table in tables if table in EXPECTED[name]] == EXPECTED[name]
    assert page.count("<table") == sum(table.is_on_page for table in tables.values())
    for table in tables.values():
        body = table.to_html().split("<thead>")[1]
        assert (body in page) == table.is_on_page
    texts = re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.S)
    expected = [text for table in tables.values() for text in (table.to_csv(), table.to_latex())]
    assert [html.unescape(text) for text in texts] == expected


def test_coefficients_stand_side_by_side_with_errors_stars_and_criteria(made: dict[str, Report]) -> None:
    run_of_it = RUNS["estimates"]()
    model, table = run_of_it.estimator, made["estimates"].tables["coefficients"]
    rows = {row["Parameter"]: row for row in records(table)}
    for j in range(model.n_components):
        column = f"Component {j + 1}"
        assert float(rows["Intercept"][column]) == model.intercept_[j]
        assert float(rows["Intercept, standard error"][column]) == model.standard_errors_["intercept"][j]
    assert float(rows["BIC"]["Component 1"]) == model.bic_ and float(rows["Rows"]["Component 1"]) == len(run_of_it.X)
    shown = dict(zip(table.columns[0].values, table.columns[1].shown, strict=True))
    z = abs(model.intercept_[0] / model.standard_errors_["intercept"][0])
    assert shown["Intercept"].count("*") == sum(float(z) > limit for limit in (1.96, 2.576, 3.291))
    assert "*" not in shown["Weight"] and shown["Intercept, standard error"].startswith("(")
    assert "Standard errors, or" in table.to_latex().splitlines()[-2]


@pytest.mark.parametrize("name", RUNS)
def test_every_picture_of_a_page_opens_alone(name: str, made: dict[str, Report]) -> None:
    page, found = made[name].html, made[name].figures
    assert len(found) == page.count('<svg class="wide"') and "search" in found
    for text in found.values():
        root = ElementTree.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg" and root.get("aria-label")
        style = root[0].text or ""
        assert "var(" not in style and "color-mix" not in style and ".fill-1 { fill: #12489a" in style
        rules = set(re.findall(r"\.([\w-]+)", style))
        used = {css for node in root.iter() for css in (node.get("class") or "").split()}
        assert used <= rules, used - rules


@pytest.mark.parametrize("name", RUNS)
def test_copies_are_whole_tables(name: str, made: dict[str, Report]) -> None:
    for table in made[name].tables.values():
        rows = list(csv.reader(io.StringIO(table.to_csv())))
        assert len(rows) == 1 + table.n_rows - table.has_total
        assert len({len(row) for row in rows}) == 1 and all(rows[0]) and len(set(rows[0])) == len(rows[0])
        lines = table.to_latex().splitlines()
        body = [line for line in lines if line.endswith(r" \\")]
        assert len(body) == 1 + table.n_rows
        assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {len(rows[0]) - 1}
        text = "\n".join(lines[1:])
        assert not re.search(r"(?<!\\)[%#~]", text)
        assert len(re.findall(r"(?<!\\)\$", text)) % 2 == 0
        assert lines[0] == "% \\usepackage{booktabs}"
        n_inner = 1 + table.has_total + len(table.rules)
        assert [text.count(f"\\{rule}rule") for rule in ("top", "mid", "bottom")] == [1, n_inner, 1]


def test_the_csv_has_all_digits(made: dict[str, Report]) -> None:
    run = RUNS["clusters"]()
    found = records(made["clusters"].tables["clusters"])
    labels = run.estimator.labels_
    assert [int(row["Rows"]) for row in found] == np.bincount(labels).tolist()
    assert [float(row["Share"]) for row in found] == (np.bincount(labels) / len(labels)).tolist()
    run = RUNS["estimates"]()
    found = records(made["estimates"].tables["estimates"])
    weights = [float(row["Estimate"]) for row in found if row["Parameter"] == "Weight"]
    assert weights == run.estimator.weights_.tolist()
    for row in found:
        assert float(row["95 % low"]) <= float(row["Estimate"]) <= float(row["95 % high"])
    run = RUNS["penalties"]()
    found = records(made["penalties"].tables["penalties"])
    assert [[float(row["Penalty"]), float(row["Held-out loss"])] for row in found] == run.estimator.l2_path_.tolist()


def test_profiles_are_copied_in_the_units_of_the_table(made: dict[str, Report]) -> None:
    run = RUNS["clusters"]()
    found = records(made["clusters"].tables["profiles"])
    by_name = {visible(name): run.X[:, j] for j, name in enumerate(run.feature_names)}
    assert {row["Feature"] for row in found} == set(by_name)
    for row in found:
        for part in range(3):
            mine = by_name[row["Feature"]][run.estimator.labels_ == part]
            assert float(row[f"Cluster {part + 1}"]) == pytest.approx(mine.mean(), rel=1e-9)
            assert float(row[f"Cluster {part + 1} (SD)"]) == pytest.approx(mine.std(), rel=1e-9)
    raw = run.X * 10 + 3
    scaled = report(replace(run, raw=raw)).tables["profiles"]
    for row, other in zip(found, records(scaled), strict=True):
        assert float(other["Cluster 1"]) == pytest.approx(10 * float(row["Cluster 1"]) + 3)
        assert float(other["Cluster 1 (SD)"]) == pytest.approx(10 * float(row["Cluster 1 (SD)"]))


def test_names_of_the_table_are_kept_whole_in_the_copies(made: dict[str, Report]) -> None:
    run = RUNS["components"]()
    table = made["components"].tables["components"]
    heads = list(records(table)[0])[3:]
    assert {head.removesuffix(" (SD)") for head in heads} <= {visible(name) for name in run.feature_names}
    for head in heads:
        assert latex.escaped(head) in table.to_latex()


@given(st.text())
def test_latex_prints_what_was_written(text: str) -> None:
    written = latex.escaped(text)
    assert unescaped(written) == re.sub("[\n\t]", " ", visible(text))
    assert [sign for sign in written if ord(sign) > 127] == [sign for sign in visible(text) if ord(sign) > 127]


@pytest.mark.parametrize(
    ("sign", "written"),
    [
        ("&", r"\&"),
        ("%", r"\%"),
        ("_", r"\_"),
        ("#", r"\#"),
        ("$", r"\$"),
        ("{", r"\{"),
        ("}", r"\}"),
        ("~", r"\textasciitilde{}"),
        ("^", r"\textasciicircum{}"),
        ("\\", r"\textbackslash{}"),
        ("Größe 数", "Größe 数"),
        ("a--b", "a-{}-b"),
    ],
)
def test_signs_that_mean_something_to_latex_are_escaped(sign: str, written: str) -> None:
    assert latex.escaped(sign) == written
    table = Table("t", [Column(f"x{sign}", [sign])])
    assert table.to_latex().splitlines()[3:6] == [f"x{written} \\\\", r"\midrule", f"{written}  \\\\"]


def test_numbers_are_written_by_their_commands_and_stand_below_each_other() -> None:
    texts = ["\u22121.5", "12", "1\u202f234.25", "\u2013", "1.2\u202f\u00d7\u202f10\u207b\u00b9\u00b2", "3.5\u202f%"]
    assert latex.aligned(texts) == [
        r"$-$1.5\phantom{0}",
        r"12\phantom{.00}",
        r"1\,234.25",
        "--",
        r"1.2\,$\times$\,10$^{-12}$",
        r"3.5\phantom{0}\,\%",
    ]


def test_the_latex_of_a_table_in_full() -> None:
    columns = [
        Column("Term", ["a_1", "a_1", "b"], where="copies"),
        Column("Nr", [1, 2, 3], markup=["<i>1</i>", "<i>2</i>", "<i>3</i>"]),
        Column("R&D", [0.51, -12.0, None], texts=["0.51", "\u221212.0", ""], css="number wide-only", bold=[0]),
        Column("bar", [None] * 3, markup=["|", "||", ""], where="page"),
    ]
    table = Table("t", columns, groups={0: "<tr>a</tr>", 2: "<tr>b</tr>"}, has_total=True)
    assert table.to_latex().splitlines() == [
        r"% \usepackage{booktabs}",
        r"\begin{tabular}{llr}",
        r"\toprule",
        r"Term & Nr &               R\&D \\",
        r"\midrule",
        r"a\_1 & 1  &      \textbf{0.51} \\",
        r"     & 2  & $-$12.0\phantom{0} \\",
        r"\midrule",
        r"b    & 3  &                    \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert table.to_csv() == "Term,Nr,R&D\na_1,1,0.51\na_1,2,-12.0\n"
    page = table.to_html()
    assert '<tr>a</tr><tr><th scope="row"><i>1</i></th>' in page and "<b>0.51</b>" in page and "a_1" not in page
    assert '<tr class="total"><th scope="row"><i>3</i></th>' in page


def test_a_table_too_wide_for_a_page_is_set_below_itself() -> None:
    names = [f"Class {j}" for j in range(1, 8)]
    columns = [Column("Item", ["a", "a"], printed=["a", ""]), Column("Level", ["no", "yes"])]
    for name in names:
        printed = ["0.500 (0.400, 0.600)", "0.500"]
        columns += [
            Column(name, [0.5, 0.5], texts=["0.500", "0.500"], css="number", printed=printed),
            Column(f"{name} (low)", [0.4, None], where="csv"),
        ]
    table = Table("t", columns, keys=2)
    written = table.to_latex()
    parts = written.split("\\par\\medskip")
    assert len(parts) > 1 and max(map(len, written.splitlines())) <= 100
    assert all(part.count("Item & Level") == 1 for part in parts)
    assert [written.count(f"{name} ") for name in names] == [1] * 7 and "(low)" not in written
    assert table.to_csv().startswith("Item,Level,Class 1,Class 1 (low),Class 2") and "(0.400" not in table.to_csv()
    assert table.to_html().count('<th scope="col"') == 9
    whole = Table("t", columns).to_latex()
    assert "medskip" not in whole and whole.count("tabular") == 2


def test_a_row_that_starts_with_a_bracket_is_no_option_of_the_row_before() -> None:
    lines = Table("t", [Column("x", ["[2pt]", "*", "a"])]).to_latex().splitlines()
    assert [line.split()[0] for line in lines[5:8]] == ["{}[2pt]", "{}*", "a"]


def test_columns_must_have_one_length() -> None:
    with pytest.raises(ValueError, match="'t' have different lengths: \\[1, 2\\]"):
        Table("t", [Column("a", [1, 2]), Column("b", [1])])


def test_nothing_of_a_table_is_markup_in_its_copies() -> None:
    table = Table("t", [Column(name, ["</textarea><script>"]) for name in ODD_NAMES])
    assert "<summary>Copy as CSV</summary>" in table.with_copies()
    assert f"<summary>Copy {table.name} as LaTeX</summary>" in table.with_copies(is_named=True)
    assert "<script" not in table.with_copies() and table.with_copies().count("</textarea>") == 2


def test_fit_writes_the_tables_beside_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("typer")
    from majorant.cli import main

    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("a\n0\n1\n9\n8\n")
    fit = ["fit", "kmeans", "t.csv", "--k", "2", "--out", "run", "--quiet"]
    assert main(fit) == 0
    folder = Path("run/tables")
    written = [f"{name}.{ending}" for name in ("clusters", "columns") for ending in ("csv", "tex")]
    assert sorted(path.name for path in folder.iterdir()) == written
    pictures = Path("run/figures")
    assert "search.svg" in {path.name for path in pictures.iterdir()}
    page = html.unescape(Path("run/report.html").read_text(encoding="utf-8"))
    for path in folder.iterdir():
        assert path.read_text(encoding="utf-8") in page
    (folder / "clusters.tex").write_text("mine")
    (folder / "mine.csv").write_text("mine")
    (folder / "clusters.csv").unlink()
    assert main(fit) == 2 and (folder / "clusters.tex").read_text() == "mine"
    assert main(["report", "run"]) == 0
    assert (folder / "clusters.tex").read_text() == "mine" and (folder / "clusters.csv").exists()
    assert main([*fit, "--force"]) == 0 and r"\toprule" in (folder / "clusters.tex").read_text()
    (folder / "criterion.csv").write_text("of an earlier run")
    Path("run/report.html").write_text('<a hidden download="criterion.csv">')
    assert main([*fit, "--force"]) == 0 and not (folder / "criterion.csv").exists()
    Path("run/report.html").unlink()  # the summary lists the files too
    assert main([*fit, "--force", "--no-report"]) == 0
    assert [path.name for path in folder.iterdir()] == ["mine.csv"] and not pictures.exists()
    assert main(["report", "run"]) == 0
    assert sorted(path.name for path in folder.iterdir()) == sorted([*written, "mine.csv"])
    (folder / "mine.csv").unlink()
    Path("run/report.html").unlink()
    assert main([*fit, "--force", "--no-report"]) == 0 and not folder.exists()
    folder.write_text("a file")
    assert main([*fit, "--force"]) == 2 and folder.read_text() == "a file"


def test_a_table_that_a_run_would_replace_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("typer")
    from majorant.cli import main

    monkeypatch.chdir(tmp_path)
    Path("run/tables").mkdir(parents=True)
    own = Path("run/tables/clusters.csv")
    own.write_text("a,b\n0,0\n0,1\n9,9\n9,8\n")
    assert main(["fit", "kmeans", str(own), "--k", "2", "--out", "run", "--quiet", "--force"]) == 2
    assert own.read_text().startswith("a,b\n")
