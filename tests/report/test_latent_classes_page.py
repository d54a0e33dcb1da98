"""The report of latent classes: a sound page, numbers of the fit, words that follow; from the command line too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import majorant as mj
from majorant.registry import card_of
from majorant.report import Run, html_report
from majorant.report.measures.classification import Classification
from majorant.report.words import latent_classes as words

from .markup import check_page
from .test_page import ODD_NAMES


def run_of(case: str) -> Run:
    g = np.random.default_rng(0)
    corner = g.integers(0, 2, size=(80, 2))
    X = np.column_stack([2 * corner - 1 + 0.3 * g.normal(size=(80, 2)), 0.1 * g.normal(size=80)])
    X *= 1e12 if case == "huge" else 1.0
    if case == "constant":
        X[:] = 4.0
    names = np.array(["<b>", "a & b"]) if case == "odd names" else np.array(["even", "odd"])
    y = names[0 if case == "one class" else 1] if case == "one class" else names[corner.sum(axis=1) % 2]
    y = np.full(80, y) if case == "one class" else y
    k = {"one latent class": 1, "spare": 6}.get(case, 4)
    model = mj.LatentClassClassifier(k, random_state=0)
    model.fit(X, y)
    return Run(model, X, ODD_NAMES[:3], "table.csv", "", y=y)


@pytest.mark.filterwarnings("ignore:X has 1 distinct rows")
@pytest.mark.parametrize("case", ["usual", "odd names", "one class", "one latent class", "constant", "huge", "spare"])
def test_every_case_is_a_sound_page(case: str) -> None:
    source = html_report(run_of(case))
    page = check_page(source)
    sections = [i for i in page.ids if f'<section id="{i}"' in source]
    assert sections[:2] == ["evidence", "latent-classes"]
    text = "".join(page.text)
    assert "nan" not in text
    assert "classs" not in text
    assert "report of a latent-class classification" in text


def test_the_table_says_what_a_class_gives_and_what_defines_it() -> None:
    run = run_of("usual")
    found = Classification(run, card_of(run.estimator)).latent_classes
    assert found is not None
    assert len(found) == 4
    for one in found:
        assert set(one.ranked_features[:2]) == {0, 1}
        assert len(words.given_labels(one)) == 1
        corner = one.speaks[:2] > 0
        expected = "even" if corner.sum() % 2 == 0 else "odd"
        assert run.estimator.classes_[words.given_labels(one)[0]] == expected
    assert words.headline(Classification(run, card_of(run.estimator)), found).startswith("Four latent classes hold")


def test_from_a_table_on_the_command_line(tmp_path: Path, capsys: Any) -> None:
    from majorant.cli import main

    run = run_of("usual")
    frame = pl.DataFrame(run.X, schema=["u", "v", "noise"]).with_columns(pl.Series("kind", run.y))
    frame.write_csv(tmp_path / "corners.csv")
    out = tmp_path / "run"
    arguments = [
        "fit",
        "latent-class",
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
