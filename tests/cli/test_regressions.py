"""Mixtures of regressions by the command line: components of the rows, predictions, sizes compared by a criterion."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import majorant as mj
from majorant.datasets.tone import STRETCH_RATIO, TUNED
from majorant.persistence import load

Majorant = Callable[..., Any]
FIT = ["fit", "regression-mixture", "t.csv", "--target", "grown", "--out", "run"]


@pytest.fixture
def table(tmp_path: Path) -> pl.DataFrame:
    """Two lines that cross, and a column of text."""
    random = np.random.default_rng(1)
    rain = np.round(random.uniform(0, 10, size=80), 2)
    grown = np.where(np.arange(80) % 2 == 0, 1 + rain, 8 - 0.5 * rain) + 0.3 * random.normal(size=80)
    frame = pl.DataFrame({"rain": rain, "grown": np.round(grown, 3), "place": [f"p{i}" for i in range(80)]})
    frame.write_csv(tmp_path / "t.csv")
    return frame


def test_a_run_holds_the_component_of_every_row(majorant: Majorant, table: pl.DataFrame) -> None:
    answer = majorant(*FIT, "--k", "2")
    assert (answer.status, answer.err) == (0, "")
    assert "Model    mixture of regressions, 2 components, 1 feature\n" in answer.out
    assert "intercept" in answer.out and "rain" in answer.out
    model = load("run/model.majorant")
    expected = mj.RegressionMixture(2, random_state=0).fit(table[["rain"]], table["grown"].to_numpy())
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    found = pl.read_csv("run/assignments.csv")
    assert found.columns == ["row", "component", "probability", "uncertainty", "probability_1", "probability_2"]
    proba = expected.responsibilities_
    np.testing.assert_array_equal(found["component"].to_numpy(), proba.argmax(axis=1) + 1)
    np.testing.assert_allclose(found["probability"].to_numpy(), proba.max(axis=1))
    np.testing.assert_allclose(found["uncertainty"].to_numpy(), 1 - proba.max(axis=1), atol=1e-15)
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert "<i>grown</i> on <i>rain</i>, a mixture of two regressions" in page and "--target grown" in page
    Path("run/report.html").unlink()
    assert majorant("report", "run").status == 0
    assert Path("run/report.html").read_text(encoding="utf-8") == page


@pytest.mark.parametrize("grown", [[2.0 * i + 1 for i in range(20)], [5.0] * 20])
def test_rows_on_one_line_have_one_log_likelihood_everywhere(
    majorant: Majorant, grown: list[float], tmp_path: Path
) -> None:
    pl.DataFrame({"rain": [float(i) for i in range(20)], "grown": grown}).write_csv(tmp_path / "t.csv")
    answer = majorant(*FIT, "--k", "2")
    assert answer.status == 0 and "one line fits every row exactly" in " ".join(answer.out.split())
    model, written = load("run/model.majorant"), json.loads(Path("run/summary.json").read_text())
    fit = written["summary"]["blocks"]["fit"]["facts"]
    assert written["search"]["best"] == fit["log-likelihood"] == model.log_likelihood_
    assert f"Best log-likelihood {model.log_likelihood_:.3f}, from one start." in answer.out
    size = np.std(grown) or 5.0
    noise = [row["noise"] for row in written["summary"]["blocks"]["components"]["tables"]["components"]]
    np.testing.assert_allclose(noise, 1e-10 * size, rtol=1e-6)
    assert written["look_out"] == written["summary"]["look_out"] == [model.degeneracy_]


def test_predictions_are_the_mean_and_every_line(majorant: Majorant, table: pl.DataFrame) -> None:
    assert majorant(*FIT, "--k", "2").status == 0
    new = pl.DataFrame({"rain": [0.0, 4.5, 20.0]})
    new.write_csv("new.csv")
    answer = majorant("predict", "run", "new.csv", "--out", "p.csv")
    assert (answer.status, answer.err) == (0, "")
    found, model = pl.read_csv("p.csv"), load("run/model.majorant")
    assert found.columns == ["row", "prediction", "prediction_1", "prediction_2"]
    np.testing.assert_allclose(found["prediction"].to_numpy(), model.predict(new))
    np.testing.assert_allclose(found[["prediction_1", "prediction_2"]].to_numpy(), model.predict_components(new))


@pytest.mark.parametrize("by", [["--target", "grown"], ["--formula", "grown ~ rain"]])
def test_rows_that_have_the_target_have_a_component(majorant: Majorant, table: pl.DataFrame, by: list[str]) -> None:
    assert majorant("fit", "regression-mixture", "t.csv", *by, "--k", "2", "--out", "run").status == 0
    new = table.with_columns(grown=pl.when(pl.int_range(80) % 7 == 3).then(None).otherwise("grown"))
    new.write_csv("new.csv")
    answer = majorant("predict", "run", "new.csv", "--out", "p.csv")
    assert (answer.status, answer.err) == (0, "")
    found, kept = pl.read_csv("p.csv"), np.arange(80) % 7 != 3
    own = pl.read_csv("run/assignments.csv").filter(kept)
    names = ["component", "probability", "uncertainty", "probability_1", "probability_2"]
    assert found.columns == ["row", "prediction", "prediction_1", "prediction_2", *names]
    for name in names:
        assert found[name].is_null().to_list() == (~kept).tolist()
        np.testing.assert_allclose(found[name].filter(kept).to_numpy(), own[name].to_numpy(), atol=1e-9)
    new.filter(~kept).write_csv("none.csv")
    assert majorant("predict", "run", "none.csv", "--out", "none-p.csv").status == 0
    assert pl.read_csv("none-p.csv")["component"].is_null().all()


@pytest.mark.parametrize("by", [["--target", "grown"], ["--formula", "grown ~ rain"]])
@pytest.mark.parametrize("wrong", ["inf", "?"])
def test_a_target_that_cannot_be_used_stops_no_prediction(
    majorant: Majorant, table: pl.DataFrame, by: list[str], wrong: str
) -> None:
    assert majorant("fit", "regression-mixture", "t.csv", *by, "--k", "2", "--out", "run").status == 0
    new = table.with_columns(
        grown=pl.when(pl.int_range(80) == 3).then(pl.lit(wrong)).otherwise(pl.col("grown").cast(str))
    )
    new.write_csv("new.csv")
    answer = majorant("predict", "run", "new.csv", "--out", "p.csv")
    assert (answer.status, answer.err) == (0, "")
    found = pl.read_csv("p.csv")
    want = load("run/model.majorant").predict(table)
    np.testing.assert_allclose(found["prediction"].to_numpy(), want)
    is_text = wrong == "?" and by[0] == "--formula"
    assert found["component"].is_null().to_list() == [is_text or i == 3 for i in range(80)]
    assert ("No component of these rows is told: " in answer.out) == is_text


def test_errors_and_gates_are_on_the_screen(majorant: Majorant, table: pl.DataFrame, tmp_path: Path) -> None:
    table.with_columns(soil=pl.int_range(80) % 3).write_csv(tmp_path / "t.csv")
    answer = majorant(*FIT, "--features", "rain", "--gating", "soil", "--k", "2")
    model = load("run/model.majorant")
    assert "\n\n  Gating\n  component   intercept" in answer.out
    shown = answer.out.partition("\n\n  Intervals, 95 %, from the observed information\n")[2]
    told = dict(re.findall(r"^  (rain +2|gating soil +2) +(.*)$", shown, re.M))
    for line, name, at in (("rain", "coef", (1, 0)), ("gating soil", "gating_coef", (1, 0))):
        line = next(text for start, text in told.items() if start.startswith(line))
        value, error = getattr(model, f"{name}_")[at], model.standard_errors_[name][at]
        np.testing.assert_allclose([float(t) for t in line.split()[:2]], [value, error], atol=6e-5)
    page = Path("run/report.html").read_text(encoding="utf-8")
    z = model.gating_coef_[1, 0] / model.standard_errors_["gating_coef"][1, 0]
    assert f"{z:.2f}".replace("-", "\u2212") in page and "where these are 0" in page


def test_sizes_are_compared_and_the_best_is_kept(majorant: Majorant, table: pl.DataFrame) -> None:
    answer = majorant(*FIT, "--k", "1:3", "--criterion", "bic")
    assert (answer.status, answer.err) == (0, "")
    expected = mj.select(
        mj.RegressionMixture(random_state=0), table[["rain"]], table["grown"].to_numpy(), n_components=range(1, 4)
    )
    assert expected.best.size == 2
    assert expected.sentence in " ".join(answer.out.split())
    kept = json.loads(Path("run/summary.json").read_text())["selection"]["candidates"]
    assert [c["value"] for c in kept] == [c.value for c in expected.candidates]
    assert expected.sentence in Path("run/report.html").read_text(encoding="utf-8")


def test_standardised_features_and_weights_reach_fit_and_page(
    majorant: Majorant, table: pl.DataFrame, tmp_path: Path
) -> None:
    weights = np.where(np.arange(80) < 40, 2.0, 1.0)
    table.with_columns(w=weights).write_csv(tmp_path / "t.csv")
    assert majorant(*FIT, "--k", "2", "--standardise", "--weights", "w").status == 0
    rain, grown = table["rain"].to_numpy(), table["grown"].to_numpy()
    mean = np.average(rain, weights=weights)
    deviation = np.sqrt(np.average((rain - mean) ** 2, weights=weights))
    plain = mj.RegressionMixture(2, random_state=0).fit(rain[:, None], grown, sample_weight=weights)
    model = load("run/model.majorant")
    np.testing.assert_allclose(model.coef_, plain.coef_ * deviation, rtol=1e-5)
    assert "per standard deviation" in Path("run/report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*FIT[:3], "--out", "run"], "mixture of regressions predicts a column: name it with --target."),
        ([*FIT, "--features", "rain,grown"], '"grown" cannot be a feature and have another role at once.'),
        ([*FIT[:3], "--target", "place", "--out", "run"], 'column "place" of t.csv is not numeric'),
        ([*FIT, "--k", "81"], "t.csv has 80 usable rows, too few for 81 components."),
        ([*FIT, "--set", "variance=equal"], "mixture of regressions refused: --set variance must be"),
    ],
)
def test_mistakes(majorant: Majorant, table: pl.DataFrame, arguments: list[str], words: str) -> None:
    answer = majorant(*arguments)
    assert answer.status == 2 and words in answer.words and not Path("run").exists()


def test_the_demo_is_the_tone_perception_table(majorant: Majorant) -> None:
    answer = majorant("demo", "regression-mixture")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.startswith("$ majorant fit regression-mixture demo/tones.csv --target tuned --k 2")
    assert "Table    tones.csv, 150 rows used, 0 left out\n" in answer.out
    assert "Best log-likelihood 141.198, reached by" in answer.out
    assert "A solution of log-likelihood 145.417 was left out" in " ".join(answer.out.split())
    assert max(map(len, answer.out.splitlines())) <= 80
    assert majorant("report", "demo/run").status == 0
    assert '<section id="regularity"' in Path("demo/run/report.html").read_text(encoding="utf-8")


def test_the_tones_are_those_that_were_published(shared_data: Path) -> None:
    published = np.genfromtxt(shared_data / "mixreg/mixtools_tonedata.csv", delimiter=",", names=True)
    np.testing.assert_array_equal(STRETCH_RATIO, published["stretchratio"])
    np.testing.assert_array_equal(TUNED, published["tuned"])
