"""Several views on the command line: which columns are which, fits with and without a target, views that are lost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import r2_score

import majorant as mj

Majorant = Callable[..., Any]
VIEWS = """[sizes]
kind = "gaussian"
columns = "x1:x3"

[tags]
kind = "Bernoulli"
columns = ["tag_*"]

[look]
kind = "categorical"
columns = ["colour", "grade"]
"""
FIT = ["fit", "harmonium", "t.csv", "--views", "views.toml", "--k", "5", "--set", "l2=0.3"]
RUN = ["--out", "run"]
COLUMNS = ["x1", "x2", "x3", "tag_a", "tag_b", "tag_c", "colour", "grade"]


@pytest.fixture
def table(tmp_path: Path) -> pl.DataFrame:
    """Sixty rows that two causes drive: three sizes, three tags, two categories, a class and a rating."""
    g = np.random.default_rng(0)
    h = g.normal(size=(60, 2))
    sizes = h @ g.normal(size=(2, 3)) + 0.3 * g.normal(size=(60, 3))
    tags = h @ g.normal(size=(2, 3)) + 0.3 * g.normal(size=(60, 3)) > 0
    frame = pl.DataFrame(
        {
            "id": [f"n{i}" for i in range(60)],
            **{f"x{i + 1}": sizes[:, i].round(3) for i in range(3)},
            "species": np.where(h[:, 0] > 0, "a", "b"),
            **{f"tag_{'abc'[i]}": tags[:, i].astype(int) for i in range(3)},
            "colour": np.array(["red", "green", "blue"])[np.digitize(h[:, 1], [-0.5, 0.5])],
            "grade": np.digitize(h[:, 0], [-0.5, 0.5]) + 9,
            "rating": h.sum(axis=1).round(3),
            "w": 1 + np.arange(60) % 2,
        }
    )
    frame.write_csv(tmp_path / "t.csv")
    (tmp_path / "views.toml").write_text(VIEWS, encoding="utf-8")
    return frame


def views() -> dict[str, Any]:
    return {
        "sizes": mj.Gaussian(["x1", "x2", "x3"]),
        "tags": mj.Bernoulli(["tag_a", "tag_b", "tag_c"]),
        "look": mj.Categorical(["colour", "grade"]),
    }


def seen(table: pl.DataFrame) -> pl.DataFrame:
    return table.select(COLUMNS).with_columns(pl.col("grade").cast(pl.String))


def test_a_run_of_three_views(majorant: Majorant, table: pl.DataFrame) -> None:
    answer = majorant(*FIT, *RUN)
    assert (answer.status, answer.err) == (0, "")
    for words in (
        "multi-view harmonium, 3 of at most 5 components, 8 features",
        "Views    sizes: 3 columns, gaussian\n         tags: 3 columns, bernoulli\n         look: 2 columns, cat",
        "in no view: id, species, rating, w",
        "A global optimum",
    ):
        assert words in answer.out
    model = mj.load("run/model.majorant")
    expected = mj.Harmonium(5, views=views(), l2=0.3, random_state=0).fit(seen(table))
    np.testing.assert_array_equal(model.components_, expected.components_)
    assigned = pl.read_csv("run/assignments.csv")
    assert assigned.columns == ["row", "score_1", "score_2", "score_3"]
    np.testing.assert_allclose(assigned.drop("row"), expected.transform(seen(table)), rtol=1e-12)
    told = json.loads(Path("run/summary.json").read_text())["views"]
    assert told["look"] == {"kind": "categorical", "columns": ["colour", "grade"]}
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert "60 rows of <i>t</i> in three components" in page and "--views views.toml" in page
    Path("run/report.html").unlink()
    assert majorant("report", "run").status == 0
    assert Path("run/report.html").read_text(encoding="utf-8") == page


def test_a_fit_that_has_grown_tells_its_components_everywhere(majorant: Majorant, table: pl.DataFrame) -> None:
    few = [*FIT[:5], "--k", "1", "--set", "l2=0.3"]
    answer = majorant(*few, "--set", "grow=True", *RUN)
    assert answer.status == 0 and "harmonium, 3 components, grown from 1, 8 features" in answer.out
    told = json.loads(Path("run/summary.json").read_text())["model"]
    assert (told["n_components"], told["n_components_asked_for"], told["grown"]) == (3, 1, True)
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert page.count("grown from 1") == 2 and "at most</small>" not in page
    assert "no harmonium with this penalty is better" in page and "one component has" not in page
    assert "no harmonium with this penalty on these data" in " ".join(answer.out.split())
    assert majorant(*few, "--out", "bound").status == 0
    told = json.loads(Path("bound/summary.json").read_text())["model"]
    assert (told["n_components"], told["n_components_asked_for"], told["grown"]) == (1, 1, False)
    size = next(line for line in majorant("compare", "run", "bound").out.splitlines() if line.split()[:1] == ["size"])
    assert size.split("  ")[-1].strip() == "1 of at most 1 component" and "3 components, grown from 1" in size


def test_a_penalty_that_is_chosen_by_a_view_is_told_with_the_share_of_its_weights(
    majorant: Majorant, table: pl.DataFrame
) -> None:
    answer = majorant(*FIT[:-2], "--set", "select_by=tags", *RUN)
    assert answer.status == 0
    screen, page = " ".join(answer.out.split()), Path("run/report.html").read_text(encoding="utf-8")
    model = mj.load("run/model.majorant")
    factor = next(view.penalty for view in model.views_ if view.name == "tags")
    assert len(model.penalty_path_) >= 2
    for text in (screen, page):
        assert "eld-out loss of tags given the other views" in text
        assert f"Weights of tags count {factor:g} times in the penalty" in text
        assert all(f"{tried:g} ({loss:.4g})" in text for tried, loss in model.penalty_path_.tolist())
    assert "the smallest loss of <i>tags</i> given the other views on rows that were held out" in page
    head = Path("run/tables/penalties.csv").read_text(encoding="utf-8").splitlines()[0]
    assert head == "Penalty,Held-out loss of tags given the other views"
    assert majorant(*FIT, "--out", "plain").status == 0
    assert "given the other views" not in Path("plain/report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("target", [[], ["--target", "rating"]])
def test_the_log_loss_is_explained_where_it_is_told(majorant: Majorant, table: pl.DataFrame, target: list[str]) -> None:
    answer = majorant(*FIT, *target, *RUN)
    page = Path("run/report.html").read_text(encoding="utf-8")
    whose = "every variable given the others" + (", plus the loss of the target" if target else "")
    for text in (" ".join(answer.out.split()), page):
        assert f"Log-loss: that of {whose}, and the penalty, as a mean per row. The held-out losses" in text
    assert "<small>penalised, mean per row</small>" in page
    assert answer.out.index("Best log-loss") < answer.out.index("Log-loss: that of") < answer.out.index("component  ")


def test_a_fit_that_had_not_ended_is_not_called_an_optimum(majorant: Majorant, table: pl.DataFrame) -> None:
    answer = majorant(*FIT, "--set", "max_iter=3", *RUN)
    assert answer.status == 0 and "A global optimum" not in answer.out
    assert "had not ended" in " ".join(answer.out.split()) and "max_iter" in answer.out


def test_views_that_no_row_links_are_told_wherever_they_are_answered_for(
    majorant: Majorant, table: pl.DataFrame
) -> None:
    first = pl.int_range(pl.len()) < 30
    lost = {name: first if name in ("x1", "x2", "x3") else ~first for name in COLUMNS}
    apart = table.with_columns(pl.when(lost[name]).then(None).otherwise(pl.col(name)).alias(name) for name in COLUMNS)
    apart.write_csv("t.csv")
    answer = majorant(*FIT, *RUN)
    named = "No row has views of two of these groups: 'sizes'; 'tags', 'look'."
    assert (answer.status, answer.err) == (0, "") and named in " ".join(answer.out.split())
    page = " ".join(re.sub("<[^>]+>", " ", Path("run/report.html").read_text(encoding="utf-8")).split())
    page = page.replace("&#x27;", "'")
    assert "describe what the columns have in common" in page
    assert page.count(named) >= 3 and "Rows of different ones cannot be compared." in page
    answer = majorant("predict", "run", "t.csv", "--out", "p.csv")
    assert (answer.status, answer.err) == (0, "")
    assert "rows of different groups cannot be compared" in " ".join(answer.out.split())


def test_a_target_of_text_is_classified_and_one_of_numbers_is_predicted(
    majorant: Majorant, table: pl.DataFrame
) -> None:
    answer = majorant(*FIT, "--target", "species", "--set", "loss=log", "--weights", "w", *RUN)
    assert (answer.status, answer.err) == (0, "") and "multi-view harmonium classification" in answer.out
    model = mj.load("run/model.majorant")
    expected = mj.HarmoniumClassifier(5, views=views(), l2=0.3, loss="log", random_state=0)
    expected.fit(seen(table), table["species"].to_numpy(), sample_weight=table["w"].to_numpy())
    np.testing.assert_array_equal(model.components_, expected.components_)
    assert majorant("predict", "run", "t.csv", "--out", "p.csv").status == 0
    found = pl.read_csv("p.csv")
    assert found.columns[:5] == ["row", "prediction", "probability", "probability_a", "probability_b"]
    assert found.columns[5:] == [f"score_{k + 1}" for k in range(model.n_components_)]
    np.testing.assert_allclose(found["probability_a"], expected.predict_proba(seen(table))[:, 0], rtol=1e-12)
    answer = majorant(*FIT, "--target", "rating", "--no-report", *RUN, "--force")
    assert "multi-view harmonium regression" in answer.out
    assert majorant("predict", "run", "t.csv", "--out", "p.csv", "--force").status == 0
    found = pl.read_csv("p.csv")
    assert found.columns[:3] == ["row", "prediction", "score_1"]
    assert np.corrcoef(found["prediction"], table["rating"])[0, 1] > 0.8
    r2 = r2_score(table["rating"], found["prediction"])
    assert f"R2 of rating is {r2:.3f} on the rows of the fit" in answer.out
    kept = json.loads(Path("run/summary.json").read_text(encoding="utf-8"))["r2_of_the_fit"]
    assert kept == pytest.approx(r2, rel=1e-9)


def test_contrastive_divergence_is_a_setting(majorant: Majorant, table: pl.DataFrame) -> None:
    answer = majorant(*FIT, "--target", "species", "--set", "method=cd", "--set", "cd_sweeps=3", "--no-report", *RUN)
    assert (answer.status, answer.err) == (0, "")
    assert "contrastive divergence is not convex" in " ".join(answer.out.split())
    model = mj.load("run/model.majorant")
    assert (model.method_, model.cd_sweeps) == ("cd", 3)
    assert majorant("predict", "run", "t.csv", "--out", "p.csv").status == 0
    assert (pl.read_csv("p.csv")["prediction"] == table["species"]).mean() > 0.8


def test_all_numeric_columns_are_one_view_by_default(majorant: Majorant, table: pl.DataFrame) -> None:
    answer = majorant("fit", "harmonium", "t.csv", "--set", "l2=0.3", *RUN)
    assert answer.status == 0 and "Views    one of all 9 columns, as real numbers; --views FILE names" in answer.out
    assert mj.load("run/model.majorant").views is None
    assert "<section" in Path("run/report.html").read_text(encoding="utf-8")


def test_views_that_rows_or_a_whole_table_lack(majorant: Majorant, table: pl.DataFrame) -> None:
    first = pl.int_range(60) < 5
    gaps = table.with_columns(pl.when(first).then(None).otherwise(c).alias(c) for c in ("colour", "grade", "x1"))
    gaps.write_csv("t.csv")
    answer = majorant(*FIT, *RUN)
    assert answer.status == 2
    assert 'row 1 of t.csv lacks "x1", but has other columns of the view "sizes": a row has a view' in answer.words
    answer = majorant(*FIT, *RUN, "--drop-missing")
    assert answer.status == 0 and "55 rows used, 5 of 60 left out" in answer.out
    table.with_columns(pl.when(first).then(None).otherwise(c).alias(c) for c in ("colour", "grade")).write_csv("t.csv")
    answer = majorant(*FIT, *RUN, "--force")
    assert answer.status == 0 and "10 of 480 cells are empty" in answer.out and "A global optimum" in answer.out
    assert majorant("report", "run").status == 0
    table.select("x1", "x2", "x3", "colour", "grade").write_csv("new.csv")
    answer = majorant("predict", "run", "new.csv", "--out", "p.csv")
    assert answer.status == 0 and "60 rows, 0 left out, without the view tags" in answer.out
    model, lost = mj.load("run/model.majorant"), pl.lit(None, dtype=pl.Float64)
    expected = model.transform(seen(table).with_columns(tag_a=lost, tag_b=lost, tag_c=lost))
    np.testing.assert_allclose(pl.read_csv("p.csv").drop("row"), expected, rtol=1e-12)
    table.select("id").write_csv("new.csv")
    assert "lacks 8 of the 8 columns" in majorant("predict", "run", "new.csv", "--out", "q.csv").words


def test_other_settings_of_views(majorant: Majorant, table: pl.DataFrame) -> None:
    counts = table.with_columns(tag_a=pl.col("tag_a") * 3)
    counts.write_csv("t.csv")
    text = VIEWS.replace('["tag_*"]', '["tag_[ab]", "tag_c"]\nbinarize = 0').replace('"x1:x3"', '"x?"\nwhiten = true')
    Path("views.toml").write_text(text, encoding="utf-8")
    assert majorant(*FIT, "--no-report", *RUN).status == 0
    model = mj.load("run/model.majorant")
    assert model.views["tags"] == mj.Bernoulli(["tag_a", "tag_b", "tag_c"], binarize=0)
    assert model.views["sizes"] == mj.Gaussian(["x1", "x2", "x3"], whiten=True)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('["tag_*"]', '["tag_*"', "views.toml is not TOML: Unclosed array (at line 9, column 1)."),
        ("[tags]\n", "[tags\n", "line 5"),
        ('"x1:x3"', '"x1:x9"', 'no column "x1:x9" in t.csv, as view "sizes" of views.toml has it.'),
        ('"x1:x3"', '"x3:x1"', '"x3" comes after "x1" in t.csv: write "x1:x3".'),
        ('"colour"', '"color"', 'no column "color" in t.csv, as view "look" of views.toml has it. Did you mean "colou'),
        ('"tag_*"', '"tags_*"', 'no column of t.csv matches "tags_*"'),
        ('"tag_*"', '"tag_*", "x2"', 'column "x2" is in the views "sizes" and "tags" of views.toml.'),
        ('"x1:x3"', "[]", 'view "sizes" of views.toml has no columns.'),
        ('columns = "x1:x3"', "", 'view "sizes" of views.toml has no columns.'),
        ('"x1:x3"', '["x1", "colour"]', 'holds text such as "'),
        ('kind = "gaussian"', 'kind = "gausian"', 'has the kind "gausian". Did you mean "gaussian"?'),
        ('kind = "gaussian"', 'kind = "counts"', "binarize = 0 (present or not)"),
        (
            'kind = "gaussian"',
            "",
            'view "sizes" of views.toml has no kind. Kinds: gaussian, bernoulli, chain, categorical.',
        ),
        ('kind = "gaussian"', 'kind = "gaussian"\nwiten = 1', 'no setting "witen". Did you mean "whiten"?'),
        ('kind = "gaussian"', 'kind = "gaussian"\nvariance = -1', "views.toml: view 'sizes': variance"),
        ('"x1:x3"', '["x1", "species"]', '"species" is the target or the weights, and cannot be in the view "sizes"'),
        (VIEWS, "", "views.toml names no view."),
        ("[sizes]", "", '"kind" of views.toml stands in no view.'),
    ],
)
def test_mistakes_in_the_file(majorant: Majorant, table: pl.DataFrame, before: str, after: str, words: str) -> None:
    Path("views.toml").write_text(VIEWS.replace(before, after, 1), encoding="utf-8")
    target = ["--target", "species"] if "species" in after else []
    answer = majorant(*FIT, *target, *RUN)
    assert answer.status == 2 and words in answer.words and not Path("run").exists()


def test_mistakes_elsewhere(majorant: Majorant, table: pl.DataFrame) -> None:
    def told(*arguments: str) -> str:
        answer = majorant(*arguments, *RUN)
        assert answer.status == 2
        return str(answer.words)

    assert "--views names the columns" in told(*FIT, "--features", "x1")
    assert "leave --standardise out" in told(*FIT, "--standardise")
    assert "k-means takes no --views. Models that do: harmonium" in told("fit", "kmeans", *FIT[2:])
    assert "there is no file other.toml." in told(*FIT[:4], "other.toml")
    assert 'no column "specie" in t.csv. Did you mean "species"?' in told(*FIT, "--target", "specie")
    assert 'column "id" of t.csv is not numeric' in told(*FIT, "--weights", "id")
    table.with_columns(tag_b=pl.int_range(60)).write_csv("t.csv")
    assert 'column "tag_b" of t.csv has 2 in row 3, but the bernoulli view "tags" holds 0 and 1. Counts' in told(*FIT)


def test_the_commands_of_the_guide_run_as_written(majorant: Majorant) -> None:
    page = (Path(__file__).parents[2] / "docs" / "harmonium.md").read_text(encoding="utf-8")
    found = {kind: re.search(f"```{kind}\n(.*?)```", page, flags=re.DOTALL) for kind in ("toml", "sh")}
    assert found["toml"] is not None and found["sh"] is not None
    Path("views.toml").write_text(found["toml"][1], encoding="utf-8")
    g = np.random.default_rng(0)
    h = g.normal(size=(40, 2))
    genes, lipids = (h @ g.normal(size=(2, d)) + 0.5 * g.normal(size=(40, d)) for d in (6, 3))
    mice = pl.DataFrame(
        {f"gene_{i}": genes[:, i] for i in range(6)}
        | {name: lipids[:, i] for i, name in enumerate(("C14.0", "C18.1n.9", "C22.6"))}
        | {"fat": (h[:, 0] > 0).astype(int), "tired": h[:, 1] > 0, "genotype": np.where(h[:, 0] > 0, "wt", "ppar")}
    )
    mice.write_csv("mice.csv")
    mice.drop("genotype", "fat", "tired").write_csv("new.csv")
    for line in found["sh"][1].splitlines():
        answer = majorant(*line.split()[1:])
        assert (answer.status, answer.err) == (0, ""), line
    assert (pl.read_csv("predicted.csv")["prediction"] == mice["genotype"]).mean() > 0.8


def test_genes_and_lipids_of_mice(majorant: Majorant, shared_data: Path) -> None:
    mice = np.load(shared_data / "multiview" / "nutrimouse.npz")
    views = {"genes": mice["gene_names"], "lipids": mice["lipid_names"]}
    columns = {f"{view}.{n}": v for (view, names), X in zip(views.items(), (mice["gene"], mice["lipid"]), strict=True)
               for n, v in zip(names.tolist(), X.T, strict=True)}  # fmt: skip
    pl.DataFrame({**columns, "genotype": mice["genotype"]}).write_csv("mice.csv")
    text = "".join(f'[{view}]\nkind = "gaussian"\ncolumns = "{view}.*"\n' for view in views)
    Path("views.toml").write_text(text, encoding="utf-8")
    options = ["--views", "views.toml", "--target", "genotype", "--k", "5", "--set", "l2=1"]
    answer = majorant("fit", "harmonium", "mice.csv", *options, "--out", "run")
    assert answer.status == 0 and "genes: 120 columns, gaussian\n         lipids: 21 columns" in answer.out
    assert (pl.read_csv("run/assignments.csv")["prediction"].to_numpy() == mice["genotype"]).mean() > 0.9
    pl.DataFrame({n: v for n, v in columns.items() if n.startswith("lipids")}).write_csv("new.csv")
    assert "without the view genes" in majorant("predict", "run", "new.csv", "--out", "p.csv").out
    assert (pl.read_csv("p.csv")["prediction"].to_numpy() == mice["genotype"]).mean() > 0.8


def test_a_chain(table: pl.DataFrame, tmp_path: Path, majorant: Majorant) -> None:
    """Two words in three paragraphs, in the order in which the file names them; some rows have two paragraphs."""
    g = np.random.default_rng(1)
    cells = g.integers(0, 2, (60, 2, 3)).astype(float)  # the table has them word by word
    cells[:20, :, 2] = np.nan
    names = [f"{word}{p}" for word in "uv" for p in (1, 2, 3)]
    frame = table.with_columns(
        **{name: pl.Series(cells[:, i // 3, i % 3]).fill_nan(None) for i, name in enumerate(names)}
    )
    frame.write_csv(tmp_path / "t.csv")
    chain = '[words]\nkind = "chain"\nn_steps = 3\ncolumns = ["[uv]1", "[uv]2", "[uv]3"]\n'
    path = tmp_path / "views.toml"
    path.write_text(VIEWS + chain, encoding="utf-8")
    answer = majorant(*FIT, "--target", "species", *RUN)
    assert (answer.status, answer.err) == (0, "")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    assert summary["views"]["words"]["columns"] == ["u1", "v1", "u2", "v2", "u3", "v3"]
    answer = majorant("predict", "run", "t.csv", "--out", "new.csv")
    assert (answer.status, answer.err) == (0, "")
    path.write_text(VIEWS + chain.replace("n_steps = 3\n", ""), encoding="utf-8")
    answer = majorant(*FIT, "--out", "other")
    assert answer.status != 0 and "chain without n_steps" in answer.err
    frame.with_columns(u3=pl.lit(1)).write_csv(tmp_path / "t.csv")
    path.write_text(VIEWS + chain, encoding="utf-8")
    answer = majorant(*FIT, "--out", "other")
    assert answer.status != 0 and 'lacks "v3", but has other columns of the paragraph' in answer.err
