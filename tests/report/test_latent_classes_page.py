"""The report of latent classes: a sound page, numbers of the fit, words that follow; from the command line too."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import majorant as mj
from majorant.registry import card_of
from majorant.report import Run, html_report
from majorant.report.measures.classification import Classification
from majorant.report.sections import latent_classes as words

from .markup import check_page
from .test_page import ODD_NAMES

LONG_NAMES = (
    "od280/od315_of_diluted_wines",
    "mean value of the measured radius",
    "x",
    "a" * 40,
    "fractal dimension error",
)


def run_of(case: str) -> Run:
    g = np.random.default_rng(0)
    corner = g.integers(0, 2, size=(80, 2))
    X = np.column_stack([2 * corner - 1 + 0.3 * g.normal(size=(80, 2)), 0.1 * g.normal(size=80)])
    X *= 1e12 if case == "huge" else 1.0
    if case == "constant":
        X[:] = 4.0
    names = np.array(["<b>", "a & b"]) if case == "odd names" else np.array(["even", "odd"])
    y = names[corner.sum(axis=1) % 2]
    k = {"one latent class": 1, "spare": 6}.get(case, 4)
    columns = LONG_NAMES if case == "long names" else ODD_NAMES[:3]
    if case == "long names":
        X = np.column_stack([X, X @ [[1.0, 0.3], [0.2, 1.0], [0.0, 0.0]]])
        y = np.where(y == "even", "an even number of upper corners", "an odd number of upper corners")
    model = mj.DiscriminativeLatentClasses(k, kernel="rbf" if case == "kernel" else None, random_state=0)
    model.fit(X, y)
    return Run(model, X, columns, "table.csv", "", y=y)


@pytest.mark.filterwarnings("ignore:X has 1 distinct row")
@pytest.mark.parametrize(
    "case", ["usual", "odd names", "one latent class", "constant", "huge", "spare", "kernel", "long names"]
)
def test_every_case_is_a_sound_page(case: str) -> None:
    source = html_report(run_of(case))
    page = check_page(source)
    sections = [i for i in page.ids if f'<section id="{i}"' in source]
    assert sections[0] == "latent-classes"
    text = "".join(page.text)
    assert re.search(r"\bnan\b", text) is None
    assert "classs" not in text
    assert "report of a latent-class classification" in text


def test_the_table_says_what_a_class_gives_and_what_defines_it() -> None:
    run = run_of("usual")
    found = Classification(run, card_of(run.estimator)).latent_classes
    assert found is not None
    assert len(found) == 4
    for one in found:
        assert one.speaks is not None
        assert set(one.telling_features()[:2]) == {0, 1}
        assert len(words.given_labels(one)) == 1
        corner = one.speaks[:2] > 0
        expected = "even" if corner.sum() % 2 == 0 else "odd"
        assert run.estimator.classes_[words.given_labels(one)[0]] == expected
    assert words.headline(Classification(run, card_of(run.estimator)), found).startswith("Four latent classes hold")


def test_page_and_summary_name_the_same_features_in_the_same_order() -> None:
    run = run_of("spare")
    run.estimator.feature_names_in_ = np.array(run.feature_names)
    found = Classification(run, card_of(run.estimator)).latent_classes
    assert found is not None
    assert len(found) == run.estimator.n_active_classes_ < 6
    frame = run.estimator.summary().tables["latent classes"]
    assert len(frame) == len(found)  # a class that holds no rows is told by nothing
    for one in found:
        for column, sign in (("more of", 1), ("less of", -1)):
            names = [run.feature_names[j] for j in one.telling_features(sign)[:3]]
            assert frame[column][one.number] == ", ".join(names)
    assert "1 % of the rows or less" in str(run.estimator.summary())


def test_a_kernel_leaves_no_empty_columns() -> None:
    run = run_of("kernel")
    assert run.estimator.class_contrasts_ is None
    for text in (html_report(run), str(run.estimator.summary())):
        assert "With a kernel no feature speaks for or against a class by itself." in " ".join(text.split())
        assert "more of" not in text.lower()


def test_contrasts_are_those_of_standard_deviations() -> None:
    """What a feature says does not depend on its unit; a constant one says nothing."""
    run = run_of("usual")
    model, y = mj.DiscriminativeLatentClasses(4, alpha=1e-3, random_state=0), run.y
    X = np.column_stack([run.X, np.full(80, 3.0)])
    contrasts = model.fit(X, y).class_contrasts_
    average = model.class_weights_ @ model.class_coef_
    np.testing.assert_allclose(contrasts, (model.class_coef_ - average) * X.std(axis=0), atol=1e-9)
    assert (contrasts[:, 3] == 0).all()
    np.testing.assert_allclose(model.fit(sparse.csr_matrix(X), y).class_contrasts_, contrasts, atol=1e-4)


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.9999, ">\u202f99.9\u202f%"), (0.9, "90.0\u202f%"), (1.0, "100.0\u202f%"), (1e-5, "<\u202f0.1\u202f%")],
)
def test_probabilities_never_claim_certainty(p: float, text: str) -> None:
    assert html.unescape(words.probability(p)) == text


def test_no_class_that_holds_more_than_a_few_rows() -> None:
    run = run_of("usual")
    run.estimator.n_active_classes_ = 0
    check_page(html_report(run))
    assert len(run.estimator.summary().tables["latent classes"]) == 4


def test_from_a_table_on_the_command_line(tmp_path: Path, capsys: Any) -> None:
    from majorant.cli import main

    run = run_of("usual")
    frame = pl.DataFrame(run.X, schema=["u", "v", "noise"]).with_columns(pl.Series("kind", run.y))
    frame.write_csv(tmp_path / "corners.csv")
    out = tmp_path / "run"
    arguments = [
        "fit",
        "discriminative-latent-classes",
        str(tmp_path / "corners.csv"),
        "--target",
        "kind",
        "--k",
        "4",
        "--out",
        str(out),
    ]
    assert main([*arguments, "--random-state", "0"]) == 0
    said = capsys.readouterr().out
    assert "4 latent classes" in said
    assert "classs" not in said
    assigned = pl.read_csv(out / "assignments.csv")
    assert set(assigned["latent class"].unique()) == {1, 2, 3, 4}
    assert 'id="latent-classes"' in (out / "report.html").read_text(encoding="utf-8")
    loaded = mj.load(out / "model.majorant")
    assert np.array_equal(loaded.predict(frame[["u", "v", "noise"]]), assigned["prediction"].to_numpy())


def test_truth_values_are_spelled_alike_in_labels_and_columns(tmp_path: Path, capsys: Any) -> None:
    from majorant.cli import main

    run = run_of("usual")
    assert run.y is not None
    frame = pl.DataFrame(run.X, schema=["u", "v", "noise"]).with_columns(pl.Series("even", run.y == "even"))
    frame.write_csv(tmp_path / "t.csv")
    fit = [
        "fit",
        "discriminative-latent-classes",
        str(tmp_path / "t.csv"),
        "--target",
        "even",
        "--k",
        "4",
        "--random-state",
        "0",
    ]
    assert main([*fit, "--out", str(tmp_path / "run")]) == 0
    assigned = pl.read_csv(tmp_path / "run" / "assignments.csv", infer_schema=False)
    assert set(assigned["prediction"]) == {"true", "false"}
    assert {"probability_true", "probability_false"} <= set(assigned.columns)


def test_a_table_of_answers_and_gaps_tells_what_to_do(shared_data: Path, tmp_path: Path, capsys: Any) -> None:
    """Text with missing answers, as in the votes of a parliament, and the same after the advice."""
    from majorant.cli import main

    path = shared_data / "latentclass" / "mlbench_HouseVotes84.csv"
    frame = pl.read_csv(path, null_values="NA")
    fit = ["--target", "Class", "--k", "3", "--random-state", "0", "--out", str(tmp_path / "run")]
    assert main(["fit", "discriminative-latent-classes", str(path), *fit]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "has no numeric columns" in said
    assert "--categorical one-hot writes text as one column of 0 and 1 for each category" in said
    assert "a missing value stays missing. Where it is to be a category of its own, write a word in its place." in said
    frame.with_columns(pl.exclude("Class").fill_null("none")).write_csv(tmp_path / "words.csv")
    words = ["fit", "discriminative-latent-classes", str(tmp_path / "words.csv"), *fit, "--categorical", "one-hot"]
    assert main(words) == 0
    assert "V4=y" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
