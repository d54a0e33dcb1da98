"""Formulas give R's designs, are applied to other tables as they were learned, and evaluate only what is listed."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

import majorant as mj
from majorant.formulas import Formula
from majorant.formulas.language import read
from majorant.formulas.terms import Terms
from majorant.persistence.codec import Decoder, Encoder

REFERENCE = Path(__file__).parents[1] / "reference" / "model_matrix.csv"
I = np.arange(12)  # noqa: E741
TABLE = pd.DataFrame(
    {
        "y": (7 * I) % 5 + 0.5,
        "x": (5 * I) % 12 / 4 - 1,
        "z": (I * I) % 7 + 1,
        "g": np.array(["b", "a", "c"])[(2 * I) % 3],
        "h": np.array(["u", "v"])[(I // 2) % 2],
        "k": (I // 3) % 3 + 1,
        "a b": I / 2,
    }
)
TERMS = [
    *("x", "x*g", "0 + g:h", "poly(x, 2):C(k)", "scale(x) + center(z)", "bs(x, df=5)", "cr(x, df=4)", "factor(k)*z"),
    *(
        "C(g, Sum)",
        "C(k, levels=[3, 1, 2])",
        "log(z) + np.exp(x) + I(x**2 / (1 + z))",
        "I(g == 'a')",
        "`a b` + I(`a b`**2)",
    ),
]


def from_r() -> dict[str, list[list[float]]]:
    designs: dict[str, list[list[float]]] = {}
    with REFERENCE.open() as lines:
        for formula, column, *values in list(csv.reader(lines))[1:]:
            designs.setdefault(formula, [])
            if column != "(Intercept)":
                designs[formula].append([float(v) for v in values])
    return designs


def learned(text: str, table: Any = TABLE) -> tuple[Terms, Any]:
    frame = nw.from_native(table)
    return Terms.learn(read(text, frame.columns).terms, frame, explain=True)


def through_json(value: Any) -> Any:
    encoder = Encoder()
    text = json.dumps(encoder.encode(value, "it"), allow_nan=False)
    return Decoder(encoder.arrays).decode(json.loads(text))


@pytest.mark.parametrize("formula", from_r())
def test_designs_are_those_of_model_matrix(formula: str) -> None:
    terms, design = learned(formula)
    assert design.shape[1] == len(terms.names) == len(set(terms.names))
    np.testing.assert_allclose(design.T, from_r()[formula], atol=1e-12)
    assert terms.has_intercept == (not any(zero in formula for zero in ("0 +", "- 1")))


@pytest.mark.parametrize("text", TERMS)
def test_other_tables_get_what_was_learned_in_any_order_and_library(text: str) -> None:
    terms, design = learned(text)
    terms = Terms.from_state(through_json(terms.to_state()))
    few = TABLE.iloc[[7, 2, 2]].drop(columns="y")
    for table in (few, few.reset_index(drop=True), pl.from_pandas(few)):
        np.testing.assert_array_equal(terms.apply(nw.from_native(table)), design[[7, 2, 2]])
    shuffled = np.random.default_rng(0).permutation(len(TABLE))
    again, permuted = learned(text, pl.from_pandas(TABLE.iloc[shuffled]))
    assert again.names == terms.names
    np.testing.assert_array_equal(permuted, design[shuffled])


def test_levels_keep_the_order_that_a_column_says() -> None:
    table = TABLE.assign(g=pd.Categorical(TABLE["g"], categories=["c", "unused", "b", "a"]))
    terms, design = learned("g", table)
    assert terms.names == ("g[T.b]", "g[T.a]")
    enum = pl.from_pandas(TABLE).with_columns(pl.col("g").cast(pl.Enum(["c", "unused", "b", "a"])))
    assert learned("g", enum)[0] == terms
    np.testing.assert_array_equal(terms.apply(nw.from_native(TABLE)), design)


@pytest.mark.parametrize(
    ("text", "column", "value", "words"),
    [
        ("g + x", "g", "d", "g has the level 'd' in row 3 (rows count from 0)"),
        ("C(k)", "k", 7, "C(k) has the level 7 in row 3"),
        ("factor(g):x", "g", "d", "its levels: 'a', 'b', 'c'"),
        ("x*g", "g", None, "values are missing in 'g' (1, first in row 3)"),
        ("log(z)", "z", np.nan, "values are missing in 'z' (1, first in row 3)"),
        ("log(z)", "z", -1, "log(z) is nan in row 3"),
        ("I(1 / z)", "z", 0, "I(1 / z) is inf in row 3"),
        ("bs(x)", "x", 100, "bs(x) is beyond the values of the fit in row 3"),
    ],
)
def test_rows_that_the_formula_cannot_take_are_named(text: str, column: str, value: Any, words: str) -> None:
    terms, _ = learned(text)
    new = TABLE.copy()
    new[column] = new[column].astype(object)
    new.loc[3, column] = value
    new = new.convert_dtypes() if column == "g" else new.astype({column: float})
    with pytest.raises(ValueError) as error:
        terms.apply(nw.from_native(new))
    assert words in str(error.value)


B = np.array(I % 4 > 1)


@pytest.mark.parametrize(
    ("text", "design"),
    [
        ("b", {"b[T.True]": B}),
        ("0 + b", {"b[False]": ~B, "b[True]": B}),
        ("b:z", {"b[False]:z": ~B * TABLE["z"], "b[True]:z": B * TABLE["z"]}),
        ("b*z", {"b[T.True]": B, "z": TABLE["z"], "b[T.True]:z": B * TABLE["z"]}),
        ("0 + I(x > 0)", {"I(x > 0)[False]": TABLE["x"] <= 0, "I(x > 0)[True]": TABLE["x"] > 0}),
        ("I(x > 0)", {"I(x > 0)[T.True]": TABLE["x"] > 0}),
        ("exp(b)", {"exp(b)": np.exp(B * 1.0)}),
        ("I(b * z) + scale(b)", {"I(b * z)": B * TABLE["z"], "scale(b)": (B - B.mean()) / B.std(ddof=1)}),
        ("I(b + (x > 0))", {"I(b + (x > 0))": B * 1 + (TABLE["x"] > 0) * 1}),
        ("0 + I(~b)", {"I(~b)[False]": B, "I(~b)[True]": ~B}),
        ("I(b & (x > 0))", {"I(b & (x > 0))[T.True]": B & (TABLE["x"] > 0)}),
        ("I(I(b) | ~(b & TRUE & (x > 0)))", {"I(I(b) | ~(b & TRUE & (x > 0)))[T.True]": B | ~(B & (TABLE["x"] > 0))}),
        ("I(~True * x + (~(2 > 1) | b))", {"I(~True * x + (~(2 > 1) | b))": B}),
        ("I(-b / 2)", {"I(-b / 2)": B / -2.0}),
        ("factor(b)", {"factor(b)[T.True]": B}),
    ],
)
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_logicals_are_coded_as_in_r(text: str, design: dict[str, Any], library: Any) -> None:
    """R writes bTRUE where this writes b[T.True]."""
    table = library({"b": B, "x": TABLE["x"].to_numpy(), "z": TABLE["z"].to_numpy()})
    terms, values = learned(text, table)
    assert list(terms.names) == list(design)
    np.testing.assert_array_equal(values, np.column_stack(list(design.values())).astype(float))
    loaded = Terms.from_state(json.loads(json.dumps(terms.to_state())))
    some = library({"b": B[:2].astype(int), "x": TABLE["x"].to_numpy()[:2], "z": TABLE["z"].to_numpy()[:2]})
    np.testing.assert_array_equal(loaded.apply(nw.from_native(some)), values[:2])


def test_what_is_neither_true_nor_false_is_named() -> None:
    terms, _ = learned("b", pd.DataFrame({"b": B}))
    with pytest.raises(ValueError, match="'b' held true and false at the fit and is 7 in row 2"):
        terms.apply(nw.from_native(pd.DataFrame({"b": [0, 1, 7]})))


def test_a_logical_response_is_zero_and_one() -> None:
    table = TABLE.assign(b=B)
    large = TABLE["z"] > 3
    responses = {"b": B, "I(z > 3)": large, "I(~b)": ~B, "I(b & (z > 3))": B & large, "I(b + 1)": B + 1}
    for response, y in responses.items():
        found, rows = Formula.learn(f"{response} ~ x", table)
        np.testing.assert_array_equal(rows.y, y)
        assert found.response.levels == {}


@pytest.mark.parametrize(("text", "same"), [("g %in% h", "g:h"), ("h + g %in% h", "h + h:g"), ("x %in% h", "x:h")])
def test_within_is_an_interaction_as_in_r(text: str, same: str) -> None:
    np.testing.assert_array_equal(np.sort(learned(text)[1], axis=1), np.sort(learned(same)[1], axis=1))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("y ~ x + w", "the table has no column 'w'"),
        ("y ~ log(xx)", "the table has no column 'xx'. Did you mean 'x'?"),
        ("y ~ log(g)", "log(g) cannot be computed"),
        ("y ~ I(x^2)", "a power is written **, as in I(x**2)"),
        ("y ~ lag(x)", "a formula knows no function 'lag'"),
        ("y ~ I(x > 0 & z > 3)", "comparisons beside & and | stand in parentheses, as in I((x > 0) & (z > 0))"),
        ("y ~ I(0 < x < 1)", "comparisons beside & and | stand in parentheses"),
        ("y ~ I(!(x > 0))", "not is written ~, as in I(~b)"),
        (
            "y ~ I((x > 0) & z)",
            "I((x > 0) & z): & joins truth values, and z holds none: write a comparison such as (z != 0)",
        ),
        ("y ~ x + I(b & 2)", "I(b & 2): & joins truth values, and 2 holds none: write TRUE or FALSE"),
        ("y ~ I((b & (x > 0)) | 2)", "I(b & (x > 0) | 2): | joins truth values, and 2 holds none: write TRUE or FALSE"),
        ("y ~ exp(~x)", "I(~x): ~ negates truth values, and x holds none: write a comparison such as (x != 0)"),
        ("y ~ I(b & `a b`)", "write a comparison such as (`a b` != 0)"),
        ("y ~ I(b & g)", "& joins truth values, and g holds none"),
        ("y ~ I(b & (x + (z > 3)))", "and x + (z > 3) holds none: write a comparison such as (x + (z > 3) != 0)"),
        ("I(b | x) ~ z", "| joins truth values, and x holds none"),
        ("y ~ I(x, z)", "I takes 1 argument in a formula"),
        ("y ~ poly(z, 6)", "poly(z, 6) cannot be computed: degree 6 needs at least 7 different values"),
        ("y ~ g %in% (h + z)", "must name columns right of %in%: write g:h:k for R's g %in% (h + k)"),
        ("y ~ (x - x) / z", "nothing is left of a part in parentheses"),
        ("y ~ 'a'", "String literals are not valid"),
        ("y ~ (x", "cannot be read"),
        ("y ~ x ~ z", "cannot be read"),
        ("x", "must have one response"),
        ("~ x", "must have one response"),
        ("", "must have one response"),
        ("y + z ~ x", "must have one response"),
        ("g ~ x", "the response 'g' holds levels: it must be numbers, such as I(g == 'a')"),
        ("y ~ x + Z2", "the table has no column 'Z2'. Did you mean 'z'?"),
        ("y ~ lag(x)", "Did you mean 'log'? But it may use columns"),
        ("y ~ ", "has no terms: write ~ 1 for means alone"),
        ("y ~ y", "the response 'y' is among the explanatory terms"),
        ("y ~ x + log(y)", "the response 'y' is among the explanatory terms"),
        ("y ~ x:y", "the response 'y' is among the explanatory terms"),
        ("y ~ x | y", "the response 'y' is among the explanatory terms"),
        ("y ~ x + offset(y)", "the response 'y' is among the explanatory terms"),
        ("log(y) ~ x + log(y)", "the response 'log(y)' is among the explanatory terms"),
        ("y ~ 2*x", "must say arithmetic in I(), as in I(2 * x) or I(1 / x)"),
        ("y ~ x*2", "must say arithmetic in I()"),
        ("y ~ x/2 + z", "must say arithmetic in I()"),
        ("y ~ 1/x", "must say arithmetic in I()"),
        ("y ~ z + 3:x", "must say arithmetic in I()"),
        ("y ~ x > 0", "Unknown operator '>': a formula is written response ~ terms, and a comparison I(x > 0)"),
        ("y = x", "a formula is written response ~ terms"),
        ("y ~ x + (1 | g)", "groups stand once, at the end: y ~ x | id"),
        ("y ~ log(z, 2)", "log takes 1 argument in a formula; logarithms to other bases are log2 and log10"),
        ("y ~ np.exp(x, z)", "exp takes 1 argument in a formula"),
        ("y ~ np.exp(x, out=z)", "exp takes no keywords in a formula"),
        ("y ~ maximum(x)", "maximum takes 2 arguments in a formula"),
        ("y ~ as.factor(g)", "no function 'as.factor'; write for example factor(g)"),
        ("y ~ ns(x, 3)", "no function 'ns'; write for example cr(x, df=3, constraints='center')"),
        ("y ~ poly(x, c(1, 2))", "no function 'c'; write for example [1, 2] for a list"),
        ("y ~ (x + z)^99999", "interactions of up to 99999 of 3 terms, too many to list: choose a smaller power"),
        ("y ~ poly(x, 99999)", "poly makes at most 1000 columns in a formula, written as one number; got 99999"),
        ("y ~ bs(x, df=10**9)", "bs makes at most 1000 columns in a formula, written as one number; got 10 ** 9"),
        ("y ~ cr(x, df=99999999)", "cr makes at most 1000 columns"),
        ("y ~ I(x + 9**9**9)", "write the value of 9 ** 9 ** 9 as a number"),
        ("y ~ I(x + 2**(x*1e6))", "write the value of 2 ** (x * 1000000.0) as a number"),
        ("y ~ I(x * 9**100000)", "write the value of 9 ** 100000 as a number"),
        ("y ~ pmax(x, z)", "write for example maximum(x, z)"),
        ("y ~ ifelse(x > 0, 1, 0)", "write for example I(x > 0)"),
        ("y ~ x + I(3)", "I(3) names no column, so it is the same in all rows: leave it out"),
        ("y ~ I(2 * pi)", "I(2 * pi) names no column"),
        ("y ~ C(TRUE)", "C(TRUE) names no column"),
        ("I(1) ~ x", "I(1) names no column"),
        ("y ~ pi(x)", "a formula knows no function 'pi'"),
        ("poly(x, 2) ~ z", "has 2 columns"),
        ("y ~ 0", "has no terms"),
        ("y ~ x | g | h", "too many parts"),
        ("y ~ x | log(z)", "must name one column of groups"),
        ("y ~ x | g + h", "must name one column of groups"),
        ("y ~ x + offset(z) + offset(x)", "one offset(...)"),
        ("y ~ x:offset(z)", "one offset(...)"),
        ("cbind(y, x, z) ~ x", "cbind takes two columns"),
    ],
)
def test_formulas_that_are_none(text: str, words: str) -> None:
    table = TABLE.assign(b=B)
    before = table.copy()
    with pytest.raises((ValueError, TypeError)) as error:
        Formula.learn(text, table)
    assert words in str(error.value)
    pd.testing.assert_frame_equal(table, before)


def test_what_r_calls_constants() -> None:
    text = "np.cos(2 * np.pi * x) + poly(z, 2, raw=True)"
    np.testing.assert_array_equal(learned("cos(2 * pi * x) + poly(z, 2, raw=TRUE)")[1], learned(text)[1])
    with_pi = TABLE.assign(pi=TABLE["z"])
    np.testing.assert_array_equal(learned("I(pi * x)", with_pi)[1], learned("I(z * x)")[1])


@pytest.mark.parametrize("text", ["poly(x, 2)", "poly(x, 2, raw=TRUE)", "poly(x, 2, True)", "bs(x, df=2, degree=2)"])
def test_columns_of_a_term_count_from_1_as_in_r(text: str) -> None:
    terms, design = learned(text)
    assert terms.names == (f"{text}[1]", f"{text}[2]")
    np.testing.assert_array_equal(terms.apply(nw.from_native(TABLE)), design)


@pytest.mark.parametrize("text", ["one", "C(one)", "x*one", "0 + one"])
@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas])
def test_a_factor_of_one_level_is_refused(text: str, library: Any) -> None:
    table = library(TABLE.assign(one="z"))
    name = "C(one)" if "C" in text else "one"
    for formula, keywords in ((f"y ~ {text} + z", {}), ("y ~ z", {"gating": text})):
        with pytest.raises(ValueError) as error:
            Formula.learn(formula, table, **keywords)
        assert f"{name} has one level, 'z', in all rows: leave it out" in str(error.value)


@pytest.mark.parametrize(
    "code",
    [
        *("__import__('os').getcwd()", "(lambda: x)()", "x.fillna(0)", "x.__class__", "[v for v in x]", "np.load('f')"),
        *("np.linalg.norm(x)", "np.log.reduce(x)", "I(().__class__)", "eval('1')", "getattr(x, 'a')", "x if x else z"),
        *(
            "log(*x)",
            "I(**x)",
            "log(x, out=z)",
            "I(x)[0]",
            "contr.__class__",
            "f'{x}'",
            "(y := x)",
            "hashed(x)",
            "Q('x')",
        ),
    ],
)
def test_nothing_but_what_is_listed_is_evaluated(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where a formula is read nor where one from a file is applied."""
    from formulaic.materializers import PandasMaterializer
    from formulaic.utils import stateful_transforms

    def evaluated(*arguments: Any, **keywords: Any) -> None:
        raise AssertionError("it was evaluated")

    monkeypatch.setattr(stateful_transforms, "eval", evaluated, raising=False)
    monkeypatch.setattr(PandasMaterializer, "get_model_matrix", evaluated)
    for text in (f"y ~ {{{code}}}", f"{{{code}}} ~ x", f"y ~ offset({code})"):
        with pytest.raises(ValueError):
            Formula.learn(text, TABLE)
    with pytest.raises(ValueError):
        Formula.learn("y ~ x", TABLE, offset=code)
    hostile = Terms(((("python", code),),), {"x": "numbers"}, {}, {}, ("x",))
    with pytest.raises(ValueError):
        hostile.apply(nw.from_native(TABLE))


def test_every_role_has_its_rows() -> None:
    table = TABLE.assign(no=TABLE["z"] + 1)
    formula, rows = Formula.learn("cbind(z, no) ~ x + offset(log(z)) | k", table, gating="~ h + `a b`")
    assert (formula.groups, list(rows.X.columns)) == ("k", ["x"])
    np.testing.assert_array_equal(rows.y, table["z"])
    np.testing.assert_array_equal(rows.keywords["trials"], table["z"] + table["no"])
    np.testing.assert_array_equal(rows.keywords["groups"], table["k"])
    np.testing.assert_array_equal(rows.keywords["offset"], np.log(table["z"]))
    assert list(rows.keywords["gating"].columns) == ["h[T.v]", "a b"]
    again = through_json(formula)
    assert again == formula and set(again.roles) == {"gating", "groups", "offset", "trials"}
    new = again.apply(table[["x", "z", "h", "a b"]].iloc[:3], again.roles, False)
    assert new.y is None and set(new.keywords) == {"gating", "offset"}, "a table without the column has no groups"
    assert formula.apply(table[["x"]]).X.equals(rows.X) and formula.apply(table).y is not None


def test_names_that_differ_in_signs_alone_are_told_apart() -> None:
    table = TABLE.assign(**{"a_b": TABLE["x"]})
    _, design = learned("I(`a b` + 100 * a_b)", table)
    np.testing.assert_array_equal(design[:, 0], table["a b"] + 100 * table["a_b"])


def test_a_dot_is_every_column_without_another_role() -> None:
    _, rows = Formula.learn("y ~ . | k", TABLE, gating="h", offset="log(z)")
    assert list(rows.X.columns) == ["x", "g[T.b]", "g[T.c]", "a b"]
    few = TABLE[["y", "x", "z", "k"]]
    for text, expected in ((".*k", "(x + z)*k"), (".:k", "x:k + z:k + k"), (". ** 2", "(x + z + k)**2")):
        names = sorted(Formula.learn(f"y ~ {text}", few)[0].features.names)
        assert names == sorted(Formula.learn(f"y ~ {expected}", few)[0].features.names)
    _, rows = Formula.learn("y ~ . - g", TABLE, gating="h", others=["a b", "log(k)"])
    assert list(rows.X.columns) == ["x", "z"]
    _, rows = Formula.learn("y ~ . + k", TABLE[["y", "x", "k"]], others=["k"])
    assert list(rows.X.columns) == ["x", "k"], "what is named is taken"


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"gating": "1"}, "gating must have terms"),
        ({"gating": "0 + z"}, "gating always has an intercept"),
        ({"gating": "x ~ z"}, "gating has terms only"),
        ({"offset": "g"}, "offset must be one number per row"),
        ({"offset": "poly(x, 2)"}, "offset must be one number per row"),
        ({"trials": "w"}, "no column 'w'"),
        ({"groups": "w"}, "no column 'w'"),
        ({"groups": "h"}, "given twice"),
    ],
)
def test_roles_that_cannot_be_filled(keywords: dict[str, str], words: str) -> None:
    with pytest.raises((ValueError, TypeError)) as error:
        Formula.learn("y ~ x | k", TABLE, **keywords)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([[1.0, 2.0]], "must be a data frame"),
        (TABLE.to_numpy(), "must be a data frame"),
        (pl.from_pandas(TABLE).lazy(), "must be a data frame"),
        (TABLE.assign(x=pd.Timestamp("2020-01-01")), "column 'x' holds Datetime"),
    ],
)
def test_tables_that_are_none(data: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        Formula.learn("y ~ x", data)


def test_a_column_of_numbers_stays_one() -> None:
    terms, _ = learned("x")
    with pytest.raises(TypeError, match="column 'x' held numbers at the fit and holds String now"):
        terms.apply(nw.from_native(TABLE.assign(x="a")))


NAMES = [
    *(
        "1",
        "0",
        "-1",
        ".",
        "|",
        "~",
        "x:z",
        "a`b",
        "",
        " ",
        "a\nb",
        "a.b",
        "µ",
        "名",
        "class",
        "lambda",
        "None",
        "True",
    ),
    *("C", "I", "log", "exp", "poly", "np", "contr", "Sum", "factor", "offset", "cbind", "pi", "degree", "in", "it's"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_column_of_any_name_is_a_column(name: str) -> None:
    """In backticks, in arithmetic, beside functions and through a dot; neither a number, an operator nor a function."""
    table = TABLE[["y", "x", "z", "g"]].rename(columns={"x": name})
    written, x = "`" + name.replace("`", r"\`") + "`", TABLE["x"].to_numpy()
    text = f"{written} + z + I({written}**2) + exp({written}) + np.log(z) + poly({written}, degree=2) + C(g, Sum)"
    terms, design = learned(text, table)
    expected = learned("x + z + I(x**2) + exp(x) + np.log(z) + poly(x, degree=2) + C(g, Sum)")[1]
    np.testing.assert_array_equal(design, expected)
    assert terms.names[0] == name
    terms = Terms.from_state(through_json(terms.to_state()))
    new = nw.from_native(table.assign(**{"pi": 9.0, "Sum": 9.0, **{name: table[name]}}))
    np.testing.assert_array_equal(terms.apply(new), design)
    _, rows = Formula.learn("y ~ .", table)
    assert list(rows.X.columns[:2]) == [name, "z"]
    np.testing.assert_array_equal(rows.X[name], x)
    _, rows = Formula.learn(f"y ~ 0 + {written}:z + offset({written}) | {written}", table)
    np.testing.assert_array_equal(rows.X.to_numpy()[:, 0], x * TABLE["z"])
    for given in (Formula.learn(f"{written} ~ z", table)[1].y, rows.keywords["offset"], rows.keywords["groups"]):
        np.testing.assert_array_equal(given, x)


def test_names_of_r_need_no_backticks() -> None:
    table = TABLE.rename(columns={"x": "x.1", "z": "class"})
    np.testing.assert_array_equal(learned("x.1 + log(class) + I(x.1**2)", table)[1], learned("x+log(z)+I(x**2)")[1])


def test_columns_named_by_numbers_go_by_their_text() -> None:
    table = TABLE[["y", "x", "z"]].set_axis([0, 1, "2"], axis=1)
    formula, rows = Formula.learn("`0` ~ `1` + log(`2`) | `1`", table)
    np.testing.assert_array_equal(rows.X["1"], TABLE["x"])
    assert formula.apply(table).X.equals(rows.X)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (TABLE[["y", "x", "z"]].set_axis(["y", 1, "1"], axis=1), "the table has 2 columns named '1'"),
        (pd.concat([TABLE, TABLE[["x"]]], axis=1), "the table has 2 columns named 'x'"),
        (TABLE.assign(**{"log(z)": TABLE["x"]}), "two terms of the formula are called 'log(z)'"),
        (TABLE.assign(**{"x:z": TABLE["x"]}), "two terms of the formula are called 'x:z'"),
    ],
)
def test_names_that_stand_for_two_things_are_refused(table: Any, words: str) -> None:
    with pytest.raises(ValueError) as error:
        Formula.learn("y ~ . + log(z) + x:z" if "g" in table else "y ~ 1", table)
    assert words in str(error.value)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas, lambda table: pl.from_pandas(table).to_arrow()])
@pytest.mark.parametrize(
    "change",
    [
        lambda table: table[table.columns[::-1]],
        lambda table: table.assign(extra=1, pi=7.0, Sum=7.0),
        lambda table: table.convert_dtypes(),
        lambda table: table.assign(g=pd.Categorical(table["g"], categories=["c", "q", "b", "a"])),
        lambda table: table.assign(k=table["k"].astype(float), z=table["z"].astype("int8")),
        lambda table: table.set_index(np.zeros(len(table), int)),
        lambda table: table.drop(columns=["y", "h", "a b"]),
    ],
    ids=["order", "extra columns", "nullable", "other categories", "other numbers", "index", "only what is needed"],
)
def test_a_new_table_may_differ_in_what_says_nothing(change: Any, library: Any) -> None:
    formula, rows = Formula.learn("y ~ x*g + cos(pi * z) + C(k, Sum)", TABLE)
    for kept in (slice(None), TABLE["g"] != "b", slice(4, 5)):
        assert formula.apply(library(change(TABLE[kept])), response=False).X.equals(rows.X[kept].reset_index(drop=True))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pl.from_pandas(TABLE).lazy(), r"X is a LazyFrame, which holds no rows yet: give X.collect\(\)"),
        ({"x": [1.0]}, "must be a data frame such as those of pandas or polars; got a builtins dict"),
    ],
)
def test_what_names_columns_but_is_no_table_is_refused(data: Any, words: str) -> None:
    model = mj.RegressionMixture.from_formula("y ~ x", TABLE, n_components=1)
    for method in (model.predict, model.predict_proba, model.score):
        with pytest.raises(TypeError, match=words):
            method(data)


@pytest.mark.parametrize("column", ["od280/od315", "od280 (mg)", "1-od280"])
def test_a_name_with_signs_is_to_stand_in_backticks(column: str) -> None:
    frame = pd.DataFrame({"y": [1.0, 2.0, 3.0], column: [1.0, 4.0, 2.0]})
    told = f"no column 'od280'. A name that holds signs stands in backticks: `{column}`."
    with pytest.raises(ValueError, match=re.escape(told)):
        Formula.learn("y ~ od280", frame)
    assert Formula.learn(f"y ~ `{column}`", frame)[0].predictors(list(frame.columns)) == (column,)
