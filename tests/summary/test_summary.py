"""The page: layout of the terminal, and its other renderings."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from majorant.registry import card_of
from majorant.summary import Block, Column, Fact, Facts, Summary, Table
from majorant.summary.text import bar, display_width, is_ascii_only, on_two_lines, plain, shortened

from ..estimators import ESTIMATORS, ROWS, N, make, target

TABLE = Table(
    "components",
    [
        Column("estimate of", ["weight", "weight", "intercept", "intercept"], key="quantity"),
        Column("component", [1, 2, 1, 2]),
        Column("estimate", [0.6281, 0.3719, 1.5608, 0.0032], 4, min_width=9),
        Column("from", [0.5426, 0.2937, 1.3706, -0.005], 4, "low", min_width=9),
        Column("to", [0.7063, 0.4574, 1.7511, 0.0114], 4, "high", min_width=9),
    ],
)
FIT = Facts(
    "fit",
    [Fact("log-likelihood", 145.417, 3), Fact("AIC", -276.834, 3)],
    [Fact("rows", 150), Fact("parameters", 7)],
)
PAGE = Summary(
    "Regression mixture, 2 components",
    "tuned on stretchratio, 150 rows",
    [
        Block("FIT", "reached in 16 iterations", [FIT]),
        Block("COMPONENTS", "", [TABLE, "Intervals from the observed information.", "They are approximate."]),
    ],
    [
        "Component 2 is 48 times narrower than component 1. It holds 58 rows, so it is no coincidence of a few rows.",
        "Try 3.",
    ],
)
TEXT = """\
Regression mixture, 2 components
tuned on stretchratio, 150 rows
------------------------------------------------------------------------------

FIT        reached in 16 iterations

  log-likelihood     145.417      rows          150
  AIC               -276.834      parameters      7

COMPONENTS

  estimate of   component    estimate        from          to
  weight                1      0.6281      0.5426      0.7063
  weight                2      0.3719      0.2937      0.4574
  intercept             1      1.5608      1.3706      1.7511
  intercept             2      0.0032     -0.0050      0.0114

  Intervals from the observed information.
  They are approximate.

WARNINGS   Component 2 is 48 times narrower than component 1. It holds 58 rows,
           so it is no coincidence of a few rows.
           Try 3."""


def test_terminal_text_to_the_letter() -> None:
    assert PAGE.to_text(ascii_only=True) == TEXT
    assert PAGE.to_text(ascii_only=False) == TEXT.replace("-" * 78, "─" * 78)
    assert str(PAGE) in (TEXT, PAGE.to_text(ascii_only=False))


def test_tables_are_data_frames_with_all_digits() -> None:
    tables = PAGE.tables
    assert list(tables) == ["fit", "components"]
    assert list(tables["components"].columns) == ["quantity", "component", "estimate", "low", "high"]
    assert tables["fit"]["value"].to_list() == [145.417, -276.834, 150.0, 7.0]


def test_json_has_all_digits_and_no_nan() -> None:
    nan = Table("odd", [Column("x", [float("nan"), 1 / 3], 2)])
    page = Summary("t", "s", [Block("FIT", "", [Facts("f", [Fact("y", float("inf"), 2)]), nan, "So."])], ["Mind."])
    content = json.loads(page.to_json())
    assert content["blocks"]["fit"]["tables"]["odd"] == [{"x": None}, {"x": 1 / 3}]
    assert content["blocks"]["fit"]["facts"] == {"y": None}
    assert content["blocks"]["fit"]["sentences"] == ["So."]
    assert content["look_out"] == ["Mind."]


def test_html_and_markdown_escape_names() -> None:
    table = Table("t", [Column("a|b", ["<script>", "p|q"]), Column("<x>", [-1.0, 1234.5], 1)])
    page = Summary("<title>", "s", [Block("PARTS", "", [table])], ["a < b"])
    html = page._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html and "&lt;title&gt;" in html
    assert "\u22121.0" in html and "1\u202f234.5" in html
    assert "| a\\|b | <x> |" in page.to_markdown()
    assert "### Warnings\n\na < b" in page.to_markdown()


def test_wide_tables_continue_below_with_their_first_column() -> None:
    table = Table("t", [Column("cluster", [1, 2]), *(Column(f"feature_{i}", [0.5, 0.5], 3) for i in range(13))])
    lines = table.to_lines(ascii_only=True)
    assert max(map(len, lines)) <= 78
    assert sum(line.startswith("  cluster") for line in lines) == lines.count("") + 1 > 1
    assert all(f"feature_{i}" in "\n".join(lines) for i in range(13))


def test_all_columns_that_name_a_row_are_repeated_below() -> None:
    features = [Column(f"feature_{i}", [0.5, float("nan")], 3) for i in range(9)]
    table = Table("t", [Column("class", [2, 2]), Column("covariate", ["age", "sex"]), *features], keys=2)
    lines = table.to_lines(ascii_only=True)
    heads = [line for line in lines if "class" in line]
    assert len(heads) > 1 and all(line.split()[:2] == ["class", "covariate"] for line in heads)
    assert sum(line.split()[:2] == ["2", "sex"] for line in lines) == len(heads) and "nan" not in "".join(lines)


@pytest.mark.parametrize(
    ("listed", "width", "expected"),
    [
        ("", 10, ("", "")),
        ("+a, -b", 12, ("+a, -b", "")),
        ("+a, -b, +c", 10, ("+a, -b, +c", "")),
        ("+a, -b, +c", 9, ("+a, -b,", "+c")),
        ("+abc, -def, +ghi", 11, ("+abc, -def,", "+ghi")),
        ("+abc, -def, +ghi, -jkl, +mno", 11, ("+abc, -def,", "+ghi, ...")),
        ("+abc, -def, +ghi, -jkl", 11, ("+abc, -def,", "+ghi, -jkl")),
        ("+abcdefghij, -k", 12, ("+abc..., -k", "")),
    ],
)
def test_lists_stand_on_two_lines_with_whole_entries(listed: str, width: int, expected: tuple[str, str]) -> None:
    assert on_two_lines(listed, width) == expected
    assert all(display_width(line) <= width for line in on_two_lines(listed, width))


@pytest.mark.parametrize("length", [1, 12, 25, 40, 57, 90])
def test_a_column_of_lists_fills_the_page_and_leaves_no_name_cut(length: int) -> None:
    names = [sign + letter * length for sign, letter in ("+a", "-b", "+c")]
    lists = [Column("x", [", ".join(names)] * 2, lists=True), Column("y", ["+z"] * 2, lists=True)]
    table = Table("t", [Column("component", ["1", "2"]), *lists])
    lines = table.to_lines()
    assert max(map(display_width, lines)) <= 78
    whole = [name for name in names if name in " ".join(lines)]
    assert whole == (names if length < 31 else names[:2] if length < 58 else [])
    assert next(line.split()[1][:2] for line in lines if line.lstrip().startswith("2 ")) == "+a"
    assert ", ".join(names) in table.to_markdown() and ", ".join(names) in table.to_html()


def test_decimal_points_align() -> None:
    lines = Table("t", [Column("n", [1, 20, 3]), Column("x", [-0.5, 1234.5, None], 3)]).to_lines()
    assert lines == ["   n          x", "   1     -0.500", "  20   1234.500", "   3"]


def test_names_from_tables_cannot_drive_the_terminal() -> None:
    assert plain("a\x1b[31m\nb\u202e") == "a?[31m?b?"
    lines = Table("t", [Column("f\x1b", ["\x07"]), Column("x", [1])]).to_lines()
    assert "\x1b" not in "".join(lines) and "\x07" not in "".join(lines)


def test_wide_characters_count_twice() -> None:
    assert display_width("温度a") == 5
    assert shortened("x" * 40, 10) == "xxxxxxx..."
    assert shortened(f"{'x' * 40}=yes", 12) == "xxxxx...=yes" and shortened("x=" + "y" * 40, 9) == "x=yyyy..."
    lines = Table("t", [Column("feature", ["温度", "abc"]), Column("x", [1, 2])]).to_lines()
    assert display_width(lines[1]) == display_width(lines[2])


def test_bars() -> None:
    assert bar(71, 71, 30) == "█" * 30
    assert bar(5, 71, 30) == "██▏"
    assert bar(1, 10_000, 30) == "▏"
    assert bar(0, 5, 30) == bar(0, 0, 30) == ""
    assert bar(1, 10_000, 30, ascii_only=True) == "#"


def test_encodings_without_blocks_get_plain_characters() -> None:
    assert is_ascii_only("ascii") and is_ascii_only("latin-1") and is_ascii_only("no-such-encoding")
    assert not is_ascii_only("utf-8")


def test_wrong_tables_are_refused() -> None:
    with pytest.raises(ValueError, match=r"columns of table 't' have different lengths: \[1, 2\]"):
        Table("t", [Column("a", [1]), Column("b", [1, 2])])
    with pytest.raises(ValueError, match="no column 'c' to draw as bars"):
        Table("t", [Column("a", [1])], bars="c")


def test_a_marked_cell_keeps_its_column_in_line() -> None:
    marked = Column("a", [5.25, None, 3.0], 1, bold=[2], empty="none")
    table = Table("t", [Column("size", [1, 2, 3]), marked, Column("b", [1.0, 22.5, None], 1)])
    assert table.to_lines(ascii_only=True) == [
        "  size      a          b",
        "     1    5.2        1.0",
        "     2   none       22.5",
        "     3    3.0 *",
    ]
    assert '<td class="n"><strong>3.0</strong></td>' in table.to_html()
    assert "| 3 | **3.0** |  |" in table.to_markdown()
    assert "*" not in str(table.head(2)) and "*" in str(table.head(3))


def test_a_column_may_round_to_the_safe_side() -> None:
    table = Table("t", [Column("a", [0.9999], 2, rounding="down"), Column("b", [1.0001], 2, rounding="up")])
    assert table.to_lines(ascii_only=True)[1].split() == ["0.99", "1.01"]


@pytest.mark.parametrize("cls", [cls for cls in ESTIMATORS if hasattr(cls, "bic")], ids=lambda cls: cls.__name__)
def test_a_summary_has_the_criteria_of_a_regular_fit_and_of_no_other(cls: type[Any]) -> None:
    weights = {} if card_of(cls).in_order else {"sample_weight": 1.0 + np.arange(N) % 3}
    rows = (ROWS, target(cls, N)) if card_of(cls).needs_target else (ROWS,)
    fitted = make(cls, 2).fit(*rows, **weights)
    told = fitted.summary().tables["fit"].set_index("quantity")["value"]
    assert fitted.regular_
    assert float(told["BIC"]) == pytest.approx(fitted.bic(*rows, **weights), abs=0.01)
    assert float(told["AIC"]) == pytest.approx(fitted.aic(*rows, **weights), abs=0.01)
    fitted.regular_ = False
    assert not {"BIC", "AIC"} & set(fitted.summary().tables["fit"]["quantity"])
