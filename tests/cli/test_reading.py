"""Tables as people have them: Excel, decimal commas, thousands, titles above the header, other encodings."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

Majorant = Callable[..., Any]
FIT = ["fit", "kmeans"]
TO = ["--k", "2", "--no-report", "--out", "run"]


@pytest.fixture
def plain(tmp_path: Path) -> pl.DataFrame:
    random = np.random.default_rng(1)
    a = np.round(np.repeat([1000.0, 20000.0], 15) + random.normal(size=30) * 99, 2)
    frame = pl.DataFrame({"größe": a, "b": np.round(random.normal(size=30), 3)})
    frame.write_csv(tmp_path / "plain.csv")
    return frame


def european(frame: pl.DataFrame, sep: str = ";") -> str:
    """Write a table as a German or French spreadsheet does."""
    signs = str.maketrans({",": ".", ".": ","})
    rows = (sep.join(f"{value:,.3f}".translate(signs) for value in row) for row in frame.iter_rows())
    return "\n".join([sep.join(frame.columns), *rows, ""])


def american(frame: pl.DataFrame) -> str:
    return "\n".join(
        ["\t".join(frame.columns), *("\t".join(f"{v:,.3f}" for v in row) for row in frame.iter_rows()), ""]
    )


def _quoted(frame: pl.DataFrame) -> str:
    rows = (",".join(f'"{value}"'.replace(".", ",") for value in row) for row in frame.iter_rows())
    return "\n".join([",".join(frame.columns), *rows, ""])


def centres(run: str = "run") -> Any:
    from majorant.persistence import load

    return load(f"{run}/model.majorant").cluster_centers_


FORMS: dict[str, tuple[Callable[[pl.DataFrame], bytes], list[str]]] = {
    "european": (lambda f: european(f).encode(), ["--decimal", ",", "--thousands", "."]),
    "american": (lambda f: american(f).encode(), ["--thousands", ",", "--sep", "tab"]),
    "quoted": (lambda f: _quoted(f).encode(), ["--decimal", ","]),
    "latin-1": (lambda f: f.write_csv().encode("latin-1"), ["--encoding", "latin-1"]),
    "utf-16": (lambda f: f.write_csv().encode("utf-16"), ["--encoding", "utf-16"]),
    "titles": (lambda f: b"Sales of 2024\r\n\nsource,us\n" + f.write_csv().encode(), ["--skip-rows", "3"]),
    "colons": (lambda f: f.write_csv(separator=":").encode(), ["--sep", ":"]),
    "sep=": (lambda f: b"sep=;\n" + f.write_csv(separator=";").encode(), ["--skip-rows", "1"]),
    "all": (
        lambda f: b"title\n" + european(f, ":").encode("cp1252"),
        ["--sep", ":", "--decimal", ",", "--thousands", ".", "--encoding", "cp1252", "--skip-rows", "1"],
    ),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_the_text_does_not_matter(
    form: str, packed: bool, majorant: Majorant, plain: pl.DataFrame, tmp_path: Path
) -> None:
    made, options = FORMS[form]
    name = "t.csv.gz" if packed else "t.csv"
    Path(name).write_bytes(gzip.compress(made(plain)) if packed else made(plain))
    assert majorant(*FIT, "plain.csv", *TO[:-1], "expected").status == 0
    answer = majorant(*FIT, name, *TO, *options)
    assert answer.status == 0, answer.err
    np.testing.assert_allclose(centres(), centres("expected"), rtol=1e-12)
    # predict and report read the table as the fit did, unless told otherwise
    assert majorant("predict", "run", name, "--out", "p.csv").status == 0
    assert majorant("report", "run").status == 0
    usual = ["--sep", ",", "--decimal", ".", "--thousands", "_", "--encoding", "utf-8", "--skip-rows", "0"]
    assert majorant("predict", "run", "plain.csv", "--out", "q.csv", *usual).status == 0
    assert Path("p.csv").read_text() == Path("q.csv").read_text()


def test_workbooks(majorant: Majorant, plain: pl.DataFrame) -> None:
    pytest.importorskip("fastexcel")
    import xlsxwriter

    with xlsxwriter.Workbook("book.xlsx") as book:
        pl.DataFrame({"other": [1, 2]}).write_excel(book, "first")
        plain.write_excel(book, "second one")
        plain.write_excel(book, "below", position=(2, 0))
    majorant(*FIT, "plain.csv", *TO[:-1], "expected")
    for options in (["--sheet", "second one"], ["--sheet", "2"], ["--sheet", "below", "--skip-rows", "2"]):
        answer = majorant(*FIT, "book.xlsx", *TO, "--force", *options)
        assert answer.status == 0, answer.err
        np.testing.assert_allclose(centres(), centres("expected"), rtol=1e-12)
    answer = majorant("predict", "run", "book.xlsx", "--keep", "*", "--out", "p.xlsx")
    assert answer.status == 0, answer.err
    assert majorant("predict", "run", "plain.csv", "--out", "p.csv", "--skip-rows", "0").status == 0
    found, expected = pl.read_excel("p.xlsx"), pl.read_csv("p.csv")
    assert found.columns == ["row", "größe", "b", "cluster", "distance"]
    assert found["cluster"].to_list() == expected["cluster"].to_list()
    np.testing.assert_allclose(found["größe"], plain["größe"])
    words = majorant(*FIT, "book.xlsx", *TO, "--force", "--sheet", "third").words
    assert 'book.xlsx has no sheet "third". Sheets: first, second one, below.' in words


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (["a", "b", "a"], 'has two columns "a": rename one of them.'),
        (["a", "b", None], "has values in column 3, which has no name"),
    ],
)
def test_a_workbook_needs_names_of_its_own(header: list[str | None], said: str, majorant: Majorant) -> None:
    pytest.importorskip("fastexcel")
    import xlsxwriter

    with xlsxwriter.Workbook("book.xlsx") as book:
        sheet = book.add_worksheet()
        for row, cells in enumerate([header, *([i % 2, i, i * i] for i in range(9))]):
            for column, cell in enumerate(cells):
                if cell is not None:
                    sheet.write(row, column, cell)
    answer = majorant(*FIT, "book.xlsx", *TO)
    assert answer.status == 2 and said in answer.words, answer.err
    assert not Path("run").exists()


def test_a_workbook_holds_text_that_looks_like_a_formula_as_text(tmp_path: Path) -> None:
    pytest.importorskip("fastexcel")
    from majorant.cli.parts import write_table

    write_table({"row": [1, 2], "label": ["=1+1", "http://x"]}, tmp_path / "p.xlsx")
    assert pl.read_excel(tmp_path / "p.xlsx")["label"].to_list() == ["=1+1", "http://x"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sep", "ab"], "--sep must be one character"),
        (["--decimal", ";"], '--decimal must be "." or ","; got ";".'),
        (["--decimal", ",", "--thousands", ","], "cannot be the decimal sign and separate thousands"),
        (["--encoding", "utf-9"], 'there is no encoding "utf-9".'),
        (["--encoding", "ascii"], "is not ascii text: byte 2 cannot be read."),
        (["--skip-rows", "40"], "has no line 41: --skip-rows passes over all its 31 lines."),
    ],
)
def test_mistakes(options: list[str], said: str, majorant: Majorant, plain: pl.DataFrame) -> None:
    answer = majorant(*FIT, "plain.csv", *TO, *options)
    assert answer.status == 2 and said in answer.words, answer.err


def test_a_title_above_the_header_is_named(majorant: Majorant, plain: pl.DataFrame) -> None:
    Path("t.csv").write_text("Sales of 2024\n" + plain.write_csv())
    answer = majorant(*FIT, "t.csv", *TO)
    assert answer.status == 2 and "line 2 has 2 fields" in answer.words and "--skip-rows" in answer.words


def test_amounts_with_a_unit_name_the_options_that_read_them(majorant: Majorant, tmp_path: Path) -> None:
    rows = "\n".join(f"{i};{i}.000,5{i} €;{i * i}" for i in range(1, 9))
    (tmp_path / "t.csv").write_text(f"a;betrag;b\n{rows}\n", encoding="utf-8")
    assert "text whose numbers need --decimal , --thousands .: betrag\n" in majorant(*FIT, "t.csv", *TO).out
    assert majorant(*FIT, "t.csv", *TO, "--force", "--decimal", ",", "--thousands", ".").status == 0
    assert centres().shape == (2, 3) and centres()[:, 1].max() > 1000


def test_points_are_no_decimal_signs_beside_decimal_commas(majorant: Majorant, plain: pl.DataFrame) -> None:
    Path("t.csv").write_text(european(plain))
    answer = majorant(*FIT, "t.csv", *TO, "--decimal", ",")
    assert answer.status == 0 and "text whose numbers need --decimal , --thousands .: größe\n" in answer.out
    assert centres().shape == (2, 1)
    Path("t.csv").write_text("a;b\n" + "".join(f"1.{i}00;{i},5\n" for i in range(9)))
    answer = majorant(*FIT, "t.csv", *TO, "--force", "--decimal", ",")
    assert answer.status == 0 and "text whose numbers need --decimal , --thousands .: a\n" in answer.out


def test_thousands_are_not_taken_for_decimal_commas(majorant: Majorant, plain: pl.DataFrame) -> None:
    Path("t.tsv").write_text(american(plain))
    answer = majorant(*FIT, "t.tsv", *TO, "--features", "größe")
    assert answer.status == 2 and "--thousands ," in answer.words


def test_a_unit_of_every_cell_is_no_text(majorant: Majorant, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("share,price,mixed\n60 %,$5,1 €\n7%,$ 6.5,2 $\n-3 %,$7,3 €\n", "utf-8")
    assert majorant(*FIT, "t.csv", "--k", "2", "--out", "run", "--no-report").status == 0
    from majorant.persistence import load

    model = load("run/model.majorant")
    assert list(model.feature_names_in_) == ["share", "price"]
    assert sorted(model.cluster_centers_[:, 0]) == [2.0, 60.0]


def test_cells_that_are_no_number_are_empty_in_every_format(majorant: Majorant, tmp_path: Path) -> None:
    """NaN of Parquet and Arrow is what an empty cell of CSV is, in features, covariates and all else."""
    random = np.random.default_rng(0)
    holes = np.arange(60) % 12 == 3
    table = pl.DataFrame(
        {
            "i": random.integers(2, size=60),
            "j": random.integers(2, size=60),
            "age": np.where(holes, np.nan, random.normal(size=60)),
            "x": np.where(np.roll(holes, 1), np.nan, random.normal(size=60)),
        }
    )
    table.with_columns(pl.col("age", "x").fill_nan(None)).write_csv(tmp_path / "t.csv")
    table.write_parquet(tmp_path / "t.parquet")
    table.write_ipc(tmp_path / "t.arrow")
    for options in (
        ["latent-class-analysis", "--features", "i,j", "--covariates", "age"],
        ["gaussian-mixture"],
        ["regression-mixture", "--formula", "x ~ age", "--drop-missing"],
    ):
        said = []
        for name in ("t.csv", "t.parquet", "t.arrow"):
            done = majorant("fit", options[0], name, *options[1:], "--k", "1", *TO[2:], "--force")
            said.append((done.status, " ".join(re.sub(r" in \d+\.\d s|t\.\w+", "", done.out).split()), done.err))
        assert said[0][0] == 0 and said[0] == said[1] == said[2]
