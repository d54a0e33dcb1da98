"""Mistakes: one clear sentence, what to do, exit status 2, and nothing written."""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

import majorant as mj
from majorant import persistence
from majorant.cli.columns import column_lines
from majorant.cli.errors import CommandError, as_options
from majorant.cli.settings import check_model
from majorant.report.sections.columns import ColumnUse

Majorant = Callable[..., Any]

FIT = ["fit", "kmeans", "plants.csv", "--out", "run"]
HEIGHT = [*FIT, "--features", "height"]

MANY = b"".join(b"%d,%d\n" % (i, i * i) for i in range(3000))
NO_SIZE = "majorant: --k must be a whole number of at least 1, or a range of them;"

MISTAKES = {
    "no file": (
        ["fit", "kmeans", "plant.csv", "--out", "run"],
        'majorant: there is no file plant.csv. Did you mean "plants.csv"? Check the path of the table.',
    ),
    "no file that is near": (
        ["fit", "kmeans", "planet-of-the-apes.csv", "--out", "run"],
        "majorant: there is no file planet-of-the-apes.csv. Check the path of the table.",
    ),
    "no file, another end": (
        ["fit", "kmeans", "Plants.tsv", "--out", "run"],
        'majorant: there is no file Plants.tsv. Did you mean "plants.csv"? Check the path of the table.',
    ),
    "no file, an unlike name": (
        ["fit", "kmeans", "cancer.csv", "--out", "run"],
        "majorant: there is no file cancer.csv. Check the path of the table.",
    ),
    "no folder": (
        ["fit", "kmeans", "tables/plants.csv", "--out", "run"],
        "majorant: there is no folder tables. Check the path of the table.",
    ),
    "wrong model": (
        ["fit", "k-means", "plants.csv", "--out", "run"],
        'majorant: there is no model "k-means". Did you mean "kmeans"? Models: ',
    ),
    "a model by another name": (
        ["fit", "GMM", "plants.csv", "--out", "run"],
        'majorant: there is no model "GMM". Did you mean "gaussian-mixture"? Models: ',
    ),
    "wrong column": (
        [*FIT, "--features", "height,widht"],
        'majorant: no column "widht" in plants.csv. Did you mean "width"? Columns: id, name, height, width.',
    ),
    "text column": (
        [*FIT, "--features", "height,name"],
        'majorant: column "name" of plants.csv is not numeric: it holds text such as "n0" in row 1.',
    ),
    "missing values": (FIT, 'majorant: values are missing in 1 row of plants.csv, in "width".'),
    "too many components": (
        ["fit", "gaussian-mixture", "plants.csv", "--features", "height,width", "--k", "13", "--out", "run"],
        "majorant: plants.csv has 12 usable rows, too few for 13 components. Set --k far below 12.",
    ),
    "too many clusters": (
        [*HEIGHT, "--k", "13"],
        "majorant: plants.csv has 12 usable rows, too few for 13 clusters. Set --k to 12 or less.",
    ),
    "k of zero": ([*HEIGHT, "--k", "0"], f"{NO_SIZE} got 0. For example --k 3 or --k 1:6."),
    "k of words": ([*HEIGHT, "--k", "two"], f"{NO_SIZE} got two."),
    "k backwards": ([*HEIGHT, "--k", "6:1"], f"{NO_SIZE} got 6:1."),
    "half a range": ([*HEIGHT, "--k", "1:"], f"{NO_SIZE} got 1:."),
    "criterion of a likelihood": (
        [*HEIGHT, "--k", "1:6", "--criterion", "bic"],
        "majorant: k-means has no bic, which compares gaussian-mixture, hmm, latent-class-analysis",
    ),
    "nothing to compare": (
        [*HEIGHT, "--k", "2", "--criterion", "bic"],
        "majorant: --criterion chooses among several fits. Give a range, such as --k 1:6.",
    ),
    "wrong criterion": (
        [*HEIGHT, "--k", "1:2", "--criterion", "bci"],
        'majorant: there is no criterion "bci". Did you mean "bic"? Criteria: bic, aic, icl, silhouette.',
    ),
    "wrong parameter": (
        [*HEIGHT, "--k", "2", "--set", "n_intt=3"],
        'majorant: k-means has no parameter "n_intt". Did you mean "n_init"?',
    ),
    "parameter of a model with a target": (
        ["fit", "harmonium", "plants.csv", "--out", "run", "--set", "loss=log"],
        'majorant: multi-view harmonium without a target has no parameter "loss": it is one of harmonium-classifier '
        "and harmonium-regressor. Name the column to predict with --target.",
    ),
    "no value": ([*HEIGHT, "--k", "2", "--set", "tol"], 'majorant: --set takes name=value; got "tol".'),
    "wrong value": (
        [*HEIGHT, "--k", "2", "--set", "max_iter=many"],
        "majorant: k-means refused: --set max_iter must be ",
    ),
    "parameter twice": ([*HEIGHT, "--set", "tol=1", "--set", "tol=2"], "majorant: --set tol=... is given twice."),
    "empty k": ([*HEIGHT, "--k", ""], "majorant: --k is empty."),
    "empty k with =": ([*HEIGHT, "--k="], "majorant: --k is empty."),
    "empty weights": ([*HEIGHT, "--k", "2", "--weights", ""], "majorant: --weights is empty."),
    "long name": (["fit", "kmeans", "x" * 300 + ".csv", "--out", "run"], "majorant: xxx"),
    "long output": (["fit", "kmeans", "plants.csv", "--out", "x" * 300], "majorant: xxx"),
    "k twice": (
        [*HEIGHT, "--k", "2", "--set", "n_clusters=3"],
        "majorant: --k and --set n_clusters=... say the same.",
    ),
    "target": ([*HEIGHT, "--k", "2", "--target", "width"], "majorant: k-means has no target: leave --target out"),
    "feature twice": ([*FIT, "--features", "height,height"], 'majorant: "height" is named twice.'),
    "weights as feature": ([*HEIGHT, "--weights", "height"], 'majorant: "height" cannot be a feature and '),
    "text weights": ([*HEIGHT, "--weights", "name"], 'majorant: column "name" of plants.csv is not numeric'),
    "unknown option": ([*HEIGHT, "--colour", "x"], "majorant: no such option: --colour"),
    "option that is a parameter": (
        [*HEIGHT, "--k", "2", "--n_init", "3"],
        "majorant: no such option: --n_init. n_init is a parameter of kmeans: write --set n_init=... majorant fit "
        "kmeans --help lists them.",
    ),
    "option that is a parameter, with dashes": (
        [*HEIGHT, "--max-iter=3"],
        "majorant: no such option: --max-iter. max_iter is a parameter of kmeans: write --set max_iter=...",
    ),
    "parameter of another model": (
        [*HEIGHT, "--covariance_type", "full"],
        "majorant: no such option: --covariance_type",
    ),
    "unknown command": (["fitt", "a", "b"], "majorant: no such command 'fitt'. Did you mean 'fit'?"),
    "no output": (["fit", "kmeans", "plants.csv"], "majorant: missing option '--out'"),
    "output in a file": (
        ["fit", "kmeans", "plants.csv", "--out", "plants.csv"],
        "majorant: plants.csv is a file; --out names a folder.",
    ),
    "output under a file": (
        ["fit", "kmeans", "plants.csv", "--out", "plants.csv/run"],
        "majorant: plants.csv/run cannot be made:",
    ),
    "a folder for a table": (["fit", "kmeans", ".", "--out", "run"], "majorant: . is a folder; a table is one file"),
    "not a run": (["report", "plants.csv"], "majorant: plants.csv is not a run: it is not a folder."),
    "not a run either": (
        ["predict", ".", "plants.csv", "--out", "p.csv"],
        "majorant: . is not a run: it holds no model",
    ),
    "odd prediction": (
        ["predict", ".", "plants.csv", "--out", "p.ods"],
        'majorant: a table cannot be written to "p.ods".',
    ),
    "no demo": (["demo", "nothing"], 'majorant: there is no model "nothing".'),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(majorant: Majorant, table: Path, name: str) -> None:
    arguments, words = MISTAKES[name]
    answer = majorant(*arguments)
    assert (answer.status, answer.out) == (2, "")
    assert answer.words.startswith(words)
    assert "Traceback" not in answer.err
    assert max(map(len, answer.err.splitlines())) <= (80 if "x" * 80 not in answer.err else 320)
    assert [p.name for p in table.parent.iterdir()] == ["plants.csv"]


PYTHON_WORDS = re.compile(r"\bset_params|\bfit\(|(?<!--set )(?<!--vary )\b[a-z]\w*=|\b[a-z]\w*_\b|\bsample_weight\b")
UNFIT = {
    "not converged": ["gaussian-mixture", "--k", "2", "--set", "max_iter=1", "--set", "tol=0"],
    "degenerate": ["gaussian-mixture", "--k", "6", "--set", "covariance_floor=0"],
    "found once": ["kmeans", "--k", "5", "--set", "effort=fast"],
    "lines": ["regression-mixture", "--target", "height", "--k", "2", "--set", "max_iter=1"],
    "classes": ["latent-class-analysis", "--features", "height,width", "--k", "4", "--set", "max_iter=1"],
    "states": ["hmm", "--k", "5", "--set", "max_iter=1"],
    "many": ["kmeans", "--k", "11"],
    "refused": ["regression-mixture", "--target", "height", "--k", "2", "--weights", "width", "--groups", "name"],
    "discriminative": ["discriminative-clustering", "--k", "5", "--set", "max_iter=1"],
}


@pytest.mark.parametrize("name", UNFIT)
def test_what_models_say_is_said_as_options(majorant: Majorant, table: Path, name: str) -> None:
    model, *rest = UNFIT[name]
    answer = majorant("fit", model, "plants.csv", *rest, "--drop-missing", "--no-report", "--out", "run")
    said = " ".join(answer.out.split("Next")[0].split()) + answer.words
    assert not PYTHON_WORDS.findall(said), said


def test_options_in_place_of_parameters() -> None:
    for said, told in {
        "allow more, as max_iter=9, or raise tol": "allow more, as --set max_iter=9, or raise tol",
        "'my n_init' and \"n_init, tol\": set n_init": "'my n_init' and \"n_init, tol\": set --set n_init",
        "column 'max_iter=2' is the row's max_iter=2": "column 'max_iter=2' is the row's --set max_iter=2",
        "effort='best' searches longest": "--set effort=best searches longest",
        "fewer than n_components=4": "fewer than --k 4",
        "Rates are counts with offset=log(t)": "Rates are counts with offset=log(t)",
        "got trials=: give sample_weight": "got --trials: give --weights",
        "or covariance_type=tied": "or --set covariance_type=tied",
        "bs(x, df=4)[1] and kind=b are columns": "bs(x, df=4)[1] and kind=b are columns",
        "are in weights_, means_ and covariances_.": "are in model.majorant.",
        "are in gating_coef_, and in the report": "are in model.majorant, and in the report",
        "tol must be at least 0": "--set tol must be at least 0",
        "X has 2 rows": "the table has 2 rows",
        "the frame X has gaps": "the frame X has gaps",
        '"x_" and "X has ": two columns': '"x_" and "X has ": two columns',
        '"n_init" of t.csv': '"n_init" of t.csv',
    }.items():
        assert as_options(said) == told
    assert as_options("n_init tells y, with n_components=2", ["n_init"]) == "n_init tells y, with --k 2"


def test_a_line_of_many_columns_with_empty_cells_is_short() -> None:
    uses = [ColumnUse(f"x{i}", "feature", (), i + 1) for i in range(17)]
    said = 'empty cells: 1 in "x0", 2 in "x1", 3 in "x2", 4 in "x3", 5 in "x4" and 12 more'
    assert column_lines(uses) == [said]


@pytest.mark.parametrize("name", ["no file", "wrong column", "too many clusters", "unknown option"])
def test_mistake_in_a_real_process(process: Majorant, table: Path, name: str) -> None:
    arguments, words = MISTAKES[name]
    answer = process(*arguments, cwd=table.parent)
    assert (answer.status, answer.out) == (2, "")
    assert answer.words.startswith(words)


def test_debug_shows_the_traceback(majorant: Majorant) -> None:
    for arguments in (["--debug", *FIT], [*FIT, "--debug"]):
        answer = majorant(*arguments)
        assert answer.status == 2 and answer.words.startswith("Traceback")
        assert answer.words.endswith("majorant: there is no file plants.csv. Check the path of the table.")


def test_own_faults_are_told_apart(majorant: Majorant, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(persistence, "load_with_extra", fail)
    (table.parent / "run").mkdir()
    (table.parent / "run" / "model.majorant").touch()
    answer = majorant("report", "run")
    assert answer.status == 1
    assert answer.words.startswith("majorant: unexpected ZeroDivisionError: oops This is a fault of majorant")


def _as_npy(array: np.ndarray, claimed: tuple[int, ...] | None = None) -> bytes:
    """An .npy file, with a header that may claim another shape."""
    header = {"descr": "<f8", "fortran_order": False, "shape": claimed or array.shape}
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, header)
    return content.getvalue() + array.tobytes()


def _zipped(name: str, content: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(name, content)
    return archive.getvalue()


def _of_one_name(writer: Callable[..., Any]) -> bytes:
    """A file of Arrow with two columns of one name."""
    content, table = io.BytesIO(), pa.table([[1, 2, 3], [3, 1, 2]], names=["a", "a"])
    with writer(content, table.schema) as file:
        file.write_table(table)
    return content.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", "t.csv is empty."),
        ("t.csv", b"a,b", "t.csv has no rows."),
        (
            "t.csv",
            b"a,b\n1,2,3",
            "t.csv cannot be read as csv: line 2 has 3 fields, and the line of column names 2",
        ),
        ("t.csv", b'a,b\n"1,\n2",3\n4,5,6', "t.csv cannot be read as csv: line 4 has 3 fields"),
        (
            "t.csv",
            gzip.compress(b"# R\na,b\n1,2\n", mtime=0),
            "t.csv cannot be read as csv: line 2 has 2 fields, and the line",
        ),
        ("t.csv", b'a,b\n1,2\n"3,4\n', "t.csv cannot be read as csv: a double quote is opened and not closed."),
        ("t.csv", b"1,0.5\n2,0.25\n", "t.csv has numbers such as 1 in its first line: put column names above it."),
        ("t.csv", b"-1;2\n2;3\n", "t.csv has numbers such as -1 in its first line"),
        (
            "t.csv",
            b"sep=;\na;b\n1;2\n",
            't.csv begins with "sep=;": take that line out, or pass over it with --skip-rows 1.',
        ),
        ("t.txt", b"a b  c\n1 2  3\n4 5  6\n", "t.txt has spaces between its columns: separate them by commas"),
        ("t.csv", b"PAR1....", "t.csv is a parquet file: name it .parquet."),
        ("t.csv", b"PK\x03\x04....", "t.csv is a workbook or an archive: name it .xlsx, or save its sheet as CSV."),
        ("t.xls", b"\xd0\xcf", "t.xls is no workbook, or is damaged."),
        ("t.parquet.gz", b"PAR1", 'a table cannot be read from "t.parquet.gz".'),
        ("t.csv", b"a,b\n\xff\xfe,1", "t.csv cannot be read as csv: it is not UTF-8 text."),
        ("t.csv", b"a,a\n1,2", 't.csv has two columns "a": rename one of them.'),
        ("t.csv", b'a;"a"\n1;2', 't.csv has two columns "a": rename one of them.'),
        ("t.csv", b"a,a,a_duplicated_0\n1,2,3", 't.csv has two columns "a": rename one of them.'),
        ("t.arrow", _of_one_name(pa.ipc.new_file), 't.arrow has two columns "a": rename one of them.'),
        ("t.arrow", _of_one_name(pa.ipc.new_stream), 't.arrow has two columns "a": rename one of them.'),
        (
            "t.parquet",
            _of_one_name(pq.ParquetWriter),
            "t.parquet cannot be read as parquet: column with name 'a' has more than one occurrence. Rename one",
        ),
        ("t.csv", "a,b\n1,2".encode("utf-16"), "t.csv cannot be read as csv: it is not UTF-8 text."),
        ("t.csv", "a,\u00e9\n1,2".encode("latin-1"), "t.csv cannot be read as csv: it is not UTF-8 text."),
        ("t.csv", b"a,b\r1,2\r3,4\r", "t.csv ends its lines with CR alone"),
        ("t.csv", gzip.compress(b"a,b\n1,2\n", mtime=0)[:15], "t.csv cannot be read as csv:"),
        ("t.csv.gz", gzip.compress(b"a,b\n" + MANY, mtime=0)[:-500], "t.csv.gz cannot be read as csv: Compressed file"),
        ("t.csv.gz", gzip.compress(b"a,b\n" + MANY, mtime=0)[:-8] + b"12345678", "t.csv.gz cannot be read as csv: CRC"),
        (
            "t.csv",
            b"a,b\nx,y",
            "t.csv has no numeric columns. Its columns are a, b; turn text into numbers. Features must be numbers: "
            "write text as one column of 0 and 1 for each category, and a missing value as a category of its own",
        ),
        ("t.csv", b"a,b\n1,inf\n2,3", 'values are infinite in 1 row of t.csv, in "b".'),
        ("t.csv", b"a\n\n", "t.csv has no"),
        ("t.parquet", b"PAR1 is not enough", "t.parquet cannot be read as parquet:"),
        ("t.arrow", b"nonsense", "t.arrow cannot be read as arrow:"),
        ("t.npz", b"nonsense", "t.npz cannot be read as npz:"),
        ("t.npz", _as_npy(np.zeros((3, 2))), "t.npz holds one array without a name:"),
        ("t.npz", _zipped("X.npy", b"nonsense"), 't.npz holds an "X" that is not an array:'),
        ("t.npz", _zipped("X.npy", _as_npy(np.zeros((3, 2)), claimed=(1 << 27, 1 << 23))), "t.npz is too large"),
        ("t.xlsx", b"nonsense", "t.xlsx is no workbook, or is damaged."),
        ("t.csv", b"a\n1\n1\n2", "t.csv has 2 different rows, too few for 3 clusters."),
    ],
)
def test_unreadable_tables(majorant: Majorant, tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    answer = majorant("fit", "kmeans", name, "--k", "3", "--out", "run")
    assert answer.status == 2
    assert answer.words.startswith(f"majorant: {words}")
    assert not (tmp_path / "run").exists()


SPOILT = {
    "a unit": (["1", "2", "3cm", "4", "5"], ["fit", "kmeans"], '1 of 5 cells: row 3 holds "3cm".'),
    "the last of many": ([*map(str, range(40)), "?", ""], ["fit", "kmeans"], '1 of 41 cells: row 41 holds "?".'),
    "one mark for all that is missing": (
        ["1", "-", "-", "4", "5"],
        ["fit", "kmeans"],
        '2 of 5 cells: row 2 holds "-".',
    ),
    "a formula": (
        ["1", "2", "3cm", "4", "5"],
        ["fit", "regression-mixture", "--formula", "y ~ a"],
        '1 of 5 cells: row 3 holds "3cm".',
    ),
    "all but the target": (
        ["1", "2", "3cm", "4", "5"],
        ["fit", "regression-mixture", "--target", "y"],
        '1 of 5 cells: row 3 holds "3cm".',
    ),
}


@pytest.mark.parametrize(("cells", "arguments", "words"), SPOILT.values(), ids=SPOILT)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_numbers_with_a_few_texts_are_not_left_out(
    majorant: Majorant, tmp_path: Path, cells: list[str], arguments: list[str], words: str, ending: str
) -> None:
    frame = pl.DataFrame({"a": [cell or None for cell in cells], "y": [float(i % 3) for i in range(len(cells))]})
    path = tmp_path / f"t.{ending}"
    frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)
    answer = majorant(*arguments[:2], path.name, *arguments[2:], "--k", "2", "--out", "run")
    assert answer.status == 2 and not (tmp_path / "run").exists()
    assert answer.words.startswith(
        f'majorant: column "a" of {path.name} is numeric save for {words} Correct what is wrong'
    )


@pytest.mark.parametrize(
    ("cells", "arguments"),
    [
        (["1", "2a", "2b", "3", "4"], ["kmeans"]),  # names that look like numbers in part
        (["one", "two", "three", "4", "five"], ["kmeans"]),
        (["1", "2", "3cm", "4", "5"], ["kmeans", "--features", "y"]),
        (["1", "1", "2x", "2x", "1"], ["regression-mixture", "--formula", "y ~ C(a)"]),
        (["1", "1", "2x", "2x", "1"], ["regression-mixture", "--formula", "y ~ 1 | a"]),
        (["1", "1", "2x", "2x", "1"], ["regression-mixture", "--target", "y", "--features", "b", "--groups", "a"]),
        (["1", "1", "2x", "2x", "1"], ["regression-mixture", "--target", "y", "--groups", "a"]),
    ],
)
def test_text_may_look_like_numbers(majorant: Majorant, tmp_path: Path, cells: list[str], arguments: list[str]) -> None:
    numbers = np.arange(30.0)
    frame = pl.DataFrame({"a": cells * 6, "b": numbers % 7, "y": numbers % 5 + numbers / 20})
    frame.write_csv(tmp_path / "t.csv")
    answer = majorant("fit", arguments[0], "t.csv", *arguments[1:], "--k", "2", "--out", "run", "--no-report")
    assert (answer.status, answer.err) == (0, "")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "T.TSV.GZ", "t.txt"])
@pytest.mark.parametrize(
    "text", ["a,b\n{}", '\ufeff"a";"b"\n{}', "a\tb\r\n{}", "\na|b\n{}", "a, b\n{}", "0,1\n{}", "2020,2021\n{}"]
)
def test_tables_as_other_programs_write_them(majorant: Majorant, tmp_path: Path, name: str, text: str) -> None:
    separator = next(sign for sign in ";\t|," if sign in text)
    rows = "".join(f"{i}{separator}{i % 7}\n" for i in range(20))
    content = text.format(rows).encode()
    (tmp_path / name).write_bytes(gzip.compress(content, mtime=0) if name.lower().endswith("gz") else content)
    answer = majorant("fit", "kmeans", name, "--k", "2", "--out", "run", "--no-report")
    assert (answer.status, answer.err) == (0, "") and "20 rows used" in answer.out and "2 features" in answer.out


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"Y": np.zeros((3, 2))}, 't.npz has no array "X"; it has Y.'),
        ({"X": np.zeros(3)}, 't.npz must hold "X" as numbers with two dimensions; it is float64, (3,).'),
        ({"X": np.zeros((3, 2)), "names": np.array(["a", "a"])}, 't.npz must hold "names" as 2 different texts'),
        ({"X": np.zeros((3, 2)), "names": np.array("ab")}, 't.npz must hold "names" as 2 different texts'),
    ],
)
def test_wrong_arrays(majorant: Majorant, tmp_path: Path, arrays: dict[str, np.ndarray], words: str) -> None:
    np.savez(tmp_path / "t.npz", **arrays)
    answer = majorant("fit", "kmeans", "t.npz", "--k", "2", "--out", "run")
    assert (answer.status, answer.words.startswith(f"majorant: {words}")) == (2, True)


@pytest.mark.parametrize(("weights", "smallest"), [("-1,1,1", "-1"), ("0,0,0", "0")])
def test_wrong_weights(majorant: Majorant, tmp_path: Path, weights: str, smallest: str) -> None:
    rows = zip("123", weights.split(","), strict=True)
    (tmp_path / "t.csv").write_text("a,w\n" + "".join(f"{a},{w}\n" for a, w in rows))
    answer = majorant("fit", "kmeans", "t.csv", "--k", "2", "--weights", "w", "--out", "run")
    assert answer.status == 2 and "must be at least 0 and not all 0" in answer.words
    assert f"the smallest is {smallest}." in answer.words


def test_prediction_needs_the_same_columns(majorant: Majorant, table: Path) -> None:
    assert majorant(*FIT, "--features", "height,id", "--k", "2", "--no-report").status == 0
    pl.DataFrame({"height": [1.0], "x": [2.0]}).write_csv("one.csv")
    pl.DataFrame({"x": [2.0]}).write_csv("none.csv")
    one = majorant("predict", "run", "one.csv", "--out", "p.csv")
    assert (one.status, one.words) == (2, 'majorant: no column "id" in one.csv. Columns: height, x.')
    none = majorant("predict", "run", "none.csv", "--out", "p.csv")
    assert none.status == 2 and none.words.startswith("majorant: none.csv lacks 2 of the 2 columns that the model was")
    table.with_name("p.csv").touch()
    there = majorant("predict", "run", "plants.csv", "--out", "p.csv")
    assert (there.status, there.words[:35]) == (2, "majorant: p.csv is there already. C")


def test_prediction_for_a_table_with_text(majorant: Majorant, table: Path) -> None:
    """No column can be left out there."""
    assert majorant(*HEIGHT, "--k", "2", "--no-report").status == 0
    pl.DataFrame({"height": ["1", "2", "tall"]}).write_csv("new.csv")
    answer = majorant("predict", "run", "new.csv", "--out", "p.csv")
    assert (answer.status, answer.words) == (
        2,
        'majorant: column "height" of new.csv is not numeric: it holds text such as "tall" in row 3. '
        "Turn it into numbers; leave a cell empty if its value is missing.",
    )


@pytest.mark.parametrize("by", ["its name", "a link"])
def test_a_prediction_never_replaces_its_table(majorant: Majorant, table: Path, by: str) -> None:
    assert majorant(*HEIGHT, "--k", "2", "--no-report").status == 0
    before, out = table.read_bytes(), "plants.csv"
    if by == "a link":
        out = "link.csv"
        table.with_name(out).symlink_to(table)
    answer = majorant("predict", "run", "plants.csv", "--out", out, "--force")
    assert (answer.status, answer.words[:40]) == (2, f"majorant: {out} is the table itself, which --force"[:40])
    assert table.read_bytes() == before


def test_a_run_never_replaces_its_table(majorant: Majorant, table: Path) -> None:
    content = table.read_bytes()
    path = table.parent / "run" / "assignments.csv"
    path.parent.mkdir()
    path.write_bytes(content)
    answer = majorant("fit", "kmeans", str(path), "--features", "height", "--k", "2", "--out", "run", "--force")
    assert answer.status == 2 and "would be replaced by the run's own assignments.csv." in answer.words
    assert path.read_bytes() == content


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
def test_output_without_room(command: list[str], tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*command, "models"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("majorant: the output cannot be written: No space left on device.")


def test_a_stop_while_libraries_load(majorant: Majorant, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("majorant.cli._prepare_process", stop)
    assert majorant("models") == (130, "", "majorant: stopped.\n")


def test_no_command_shows_the_help(majorant: Majorant) -> None:
    answer, asked = majorant(), majorant("--help")
    assert answer == asked and answer.status == 0 and "  fit " in answer.out


def test_reports_need_the_same_table(majorant: Majorant, table: Path) -> None:
    assert majorant(*HEIGHT, "--k", "2", "--no-report").status == 0
    content = table.read_bytes()
    table.write_bytes(content + b"13,x,1,1")
    changed = majorant("report", "run")
    assert changed.status == 2 and "has changed since the fit." in changed.words
    table.rename("moved.csv")
    gone = majorant("report", "run")
    assert gone.status == 2 and gone.words.startswith("majorant: the table of this run, plants.csv, is no longer at")


def test_damaged_and_foreign_models(majorant: Majorant, table: Path) -> None:
    assert majorant(*HEIGHT, "--k", "2", "--no-report").status == 0
    model = table.parent / "run" / "model.majorant"
    model.write_bytes(model.read_bytes()[:-30])
    damaged = majorant("report", "run")
    assert damaged.status == 2 and "is not a model" in damaged.words
    mj.KMeans(2, random_state=0).fit([[0.0], [1.0], [2.0]]).save(model)
    foreign = majorant("report", "run")
    assert foreign.status == 2 and "was saved by Python, not by majorant fit." in foreign.err.replace(" ", " ")


def test_models_by_the_names_of_other_software_are_known() -> None:
    for name, meant in {"lca": "latent-class-analysis", "Flex-Mix": "regression-mixture", "k-means": "kmeans"}.items():
        with pytest.raises(CommandError, match=f'Did you mean "{meant}"'):
            check_model(name)
