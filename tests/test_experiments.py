"""The experiments run, in small: every table, figure and column is there."""

from __future__ import annotations

import csv
import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "experiments"


def script(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A script as a module; it sets thread counts, which must not outlive the test."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(variable, "1")
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location(f"{name}_script", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def spectral(monkeypatch: pytest.MonkeyPatch) -> Any:
    return script("spectral_experts", monkeypatch)


def test_spectral_experts(spectral: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spectral.main(["--quick", "--out", str(tmp_path)])
    text = capsys.readouterr().out
    assert text.strip() == (tmp_path / "results.md").read_text().strip()
    for wanted in ("Table 1", "Table 2", "Figure 1", "| 2, 5, 3 | 2.92 | 0.43 | 0.31 |"):
        assert wanted in text
    for number in (1, 2, 3):
        assert "<svg" in (tmp_path / f"figure_{number}.svg").read_text()
    with (tmp_path / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {r["method"] for r in rows} == set(spectral.METHODS)
    assert {r["part"] for r in rows} == {"table_1", "table_2", "figure_1", "figure_3", "figure_3_gaps"}
    assert all(np.isfinite(float(r["error"])) for r in rows)
    with_em = {"random + EM", "spectral + EM", "moments + EM", "auto"}
    assert all((r["success"] in ("True", "False")) == (r["method"] in with_em) for r in rows)
    assert all(r["success"] == "True" for r in rows if r["method"] == "auto" and r["n"] == "3000")


def test_its_instances(spectral: Any) -> None:
    for setting in (*spectral.TABLE, spectral.CURVES):
        a, b, c = (spectral.Instance.draw(setting, 2000, seed) for seed in ((3, 0), (3, 1), (4, 0)))
        np.testing.assert_array_equal(a.coefficients, b.coefficients)  # another attempt at the same mixture
        assert (a.y != b.y).all() and (a.coefficients != c.coefficients).all()
        order = np.random.default_rng(0).permutation(a.k)
        assert a.error(np.full(a.k, 1 / a.k), a.coefficients[order]) == 0
    gaps = spectral.Instance.draw(spectral.CURVES, 5000, (0, 0), gaps=True).x[:, 1]
    assert np.abs(gaps).max() <= 1 and not ((np.abs(gaps) > 0.25) & (np.abs(gaps) < 0.5)).any()
    np.testing.assert_allclose(
        [np.mean(gaps < -0.5), np.mean(np.abs(gaps) < 0.25), np.mean(gaps > 0.5)], [1 / 3] * 3, atol=0.03
    )


def test_gated_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    module = script("gated_lines", monkeypatch)
    shares = module.main(["--quick", "--only", "figure 1"])["figure 1"]
    assert shares["moments"] == shares["default"] == 1 > shares["random"]
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(shares) == 6


def test_latent_prototypes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    module = script("latent_prototypes", monkeypatch)
    results = module.main(["--quick"])
    text = capsys.readouterr().out
    assert {r.task for r in results} == set(module.TASKS)
    for r in results:
        assert r.method.name in text and f"{100 * r.accuracies.mean():.1f}" in text
        assert len(r.accuracies) == 1 and 0.05 < r.accuracies.mean() <= 1
    reached = {(r.task, r.method.name): r.accuracies.mean() for r in results}
    assert reached["digits", "prototypes, 2 poses"] > 0.9
    assert reached["shifted digits", "nearest centroid"] < 0.5, "a shift hides what a digit is from one prototype"


def test_a_pose_changes_where_a_digit_is_and_not_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    module = script("latent_prototypes", monkeypatch)
    pictures, y = module.images()
    assert pictures.shape == (1797, 12, 12) and len(y) == 1797
    moved = module.shifted(pictures[:50])
    np.testing.assert_array_equal(moved.sum(axis=(1, 2)), pictures[:50].sum(axis=(1, 2)))
    assert (moved != pictures[:50]).any(axis=(1, 2)).mean() > 0.8
    np.testing.assert_array_equal(module.shifted(pictures[:5]), moved[:5])
    turned = module.rotated(pictures[:50])
    np.testing.assert_allclose(turned.sum(axis=(1, 2)), pictures[:50].sum(axis=(1, 2)), rtol=0.1)


@pytest.mark.filterwarnings("ignore")
def test_discriminative_latent_class(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    module = script("discriminative_latent_class", monkeypatch)
    lines = module.main(["--quick", "--data", "nowhere"])
    text = capsys.readouterr().out
    assert {line.part for line in lines} == set(module.PARTS) - {"text"} and "text: no" in text
    assert {line.method for line in lines if line.part == "noise"} == set(module.METHODS)
    assert all(0 <= line.numbers["error"] <= 1 for line in lines)
    errors = {(line.cell, line.method): line.numbers["error"] for line in lines}
    assert errors["circles", "rbf, auto"] == errors["round, K = 2, 5 noise", "auto"] == 0
    costs = {line.method: line.numbers for line in lines if line.part == "sdp"}
    assert costs["best column"]["cost"] <= costs["optimum"]["cost"] == 1 <= costs["ball and k-means"]["bound"]


def test_newsgroups(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = script("discriminative_latent_class", monkeypatch)
    if not (shared_data / module.FILE).exists():
        pytest.skip(f"no {module.FILE} among the benchmark data")
    lines = module.main(["--quick", "--only", "text", "--methods", "linear SVM", "--data", str(shared_data)])
    assert {line.method for line in lines} == {"linear SVM"} and len(lines) == 2  # one pair, and the mean of all
    assert all(0.5 < line.numbers["accuracy"] <= 1 for line in lines)


def test_its_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    module = script("discriminative_latent_class", monkeypatch)
    for shape, k in (("round", 2), ("long", 2), ("round", 5), ("long", 5), ("stripes", 5)):
        x, y = module.bumps(shape, k, 50 * k, 3, 0)
        assert x.shape == (50 * k, 5) and (np.bincount(y) == 50).all()
        assert module.error(np.roll(np.arange(k), 1)[y], y) == 0 and module.error(np.zeros_like(y), y) == 1 - 1 / k
        # groups are told apart by lines: a classifier makes next to no mistake
        from sklearn.linear_model import LogisticRegression

        assert LogisticRegression(C=100.0, max_iter=5000).fit(x, y).score(x, y) > 0.98


@pytest.fixture
def multiview(shared_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """What a part of the experiment prints; without its data the test is skipped."""
    monkeypatch.syspath_prepend(str(FOLDER))
    module = script("multiview", monkeypatch)

    def run(part: str) -> list[str]:
        if not (shared_data / module.PARTS[part].FILE).exists():
            pytest.skip(f"no {module.PARTS[part].FILE} among the benchmark data")
        module.main(["--quick", "--only", part, "--data", str(shared_data)])
        return capsys.readouterr().out.splitlines()

    return run


def number(lines: list[str], before: str) -> float:
    """What a line says right after some words; one line has them."""
    (line,) = (line for line in lines if before in line)
    return float(line.split(before)[1].split()[0])


def test_multiview_digits(multiview: Any) -> None:
    lines = multiview("digits")
    for method in ("flat linear SVM", "PCA + SVM", "CCA + SVM", "PLS-DA + SVM", "RBM + SVM", "harmonium + SVM"):
        assert 0.4 < number(lines, method) <= 1
    assert number(lines, "harmonium, hinge") > number(lines, "harmonium + SVM")
    assert number(lines, "integrated out") > 0.6 and number(lines, "trained on the pixels") > 0.6
    assert number(lines, "base rates") < number(lines, "harmonium, calibrated") < 0


def test_multiview_contrastive(multiview: Any) -> None:
    lines = multiview("contrastive")
    for method in ("default", "cd     "):
        for model in ("no label (DWH) + SVM", "large margin (MMH)  "):
            assert 0.4 < number(lines, f"{model}  {method}") <= 1
    within = [float(line.split("within ")[1].split()[0]) for line in lines if line.startswith("starts")]
    assert len(within) == 2 and within[0] < 1e-6
    told = [float(line.split("a pixel ")[1].split()[0].strip(",")) for line in lines if "a pixel" in line]
    assert told[0] > told[1], "contrastive divergence is too sure of bits"


def test_multiview_corel(multiview: Any) -> None:
    lines = multiview("corel")
    for method in ("base rates", "logistic regression", "ridge", "harmonium ", "harmonium, calibrated"):
        (line,) = (line for line in lines if f"  {method}" in line)
        assert number([line], "F1@5") > 0.15
    tag = {
        m: number([line for line in lines if f"  {m}" in line], "a tag") for m in ("base", "logistic", "harmonium  ")
    }
    assert 0 > min(tag["logistic"], tag["harmonium  "]) > tag["base"], "better than knowing the tags' shares alone"


def test_multiview_wikipedia(multiview: Any) -> None:
    lines = multiview("wikipedia")
    for method in ("flat linear SVM", "PCA + SVM", "harmonium + SVM", "harmonium, hinge", "harmonium, log "):
        (line,) = (line for line in lines if method in line and line.startswith("accuracy"))
        assert 0.3 < number([line], method) < 1
    ours, chance = number(lines, "harmonium, log, both views"), 0.12
    assert ours > number(lines, "harmonium, both views") > number(lines, "harmonium, text to image") > chance


def test_multiview_hotel(multiview: Any) -> None:
    lines = multiview("hotel")
    for method in ("ridge, all columns", "PCA + SVR", "PLS", "m + SVR", "a view", "epsilon_insensitive", "squared"):
        assert 0.05 < number(lines, method) < 0.6


def test_paragraph_order(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    script("paragraph_order", monkeypatch).main(["--quick"])
    order, without, digits = "".join(capsys.readouterr().out).split("documents, 1 split into halves")[1:]
    words, chains = "unstructured (words), max-margin", "structured (chains), max-margin"
    assert number(order.splitlines(), "  " + chains) > number(order.splitlines(), "  " + words) + 0.1
    assert number(without.splitlines(), "  " + chains) > 0.4
    assert number(digits.splitlines(), "  " + chains) > number(digits.splitlines(), "  " + words)
    for bits in ("structured (64 bits, edges), max-margin", "unstructured (64 bits), max-margin"):
        assert number(digits.splitlines(), "  " + bits) > 0.5


def test_multiview_starts(multiview: Any) -> None:
    plain, hinge = multiview("starts")
    for line in (plain, hinge):
        assert number([line], "SVD within") < 1e-6
    assert plain.endswith("certified 0 of 4, rank 20, more would be used")
    assert number([hinge], "certified") == 4 and "more would be used" not in hinge
    assert 0 < int(hinge.split("rank ")[1]) < 20


def test_multiview_reading(multiview: Any) -> None:
    lines = multiview("reading")
    near = [float(line.split("in a t-SNE plane ")[1].split()[0]) for line in lines if "in a t-SNE plane" in line]
    assert len(near) == 2 and min(near) > 0.5
    assert all(number([line], "accuracy") > 0.5 for line in lines if line.startswith("loss_weight"))
    assert sum(line.startswith("CPU time") for line in lines) == 3


def test_multiview_topics(multiview: Any) -> None:
    lines = multiview("topics")
    apart = [float(line.split("mean KL of classes ")[1]) for line in lines if "mean KL of classes" in line]
    assert len(apart) == 4 and min(apart) > 0
    shares = [line.split(": ")[1].split() for line in lines if line.startswith("  topic 1: 0.")]
    assert [len(of_topic) for of_topic in shares] == [5, 5, 10, 10]
    assert any("; disliked " in line for line in lines)
    assert 0 <= number(lines, "exact ") < number(lines, "corners smoothed ") < 1
