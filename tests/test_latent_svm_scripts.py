"""The experiments with latent SVMs run, in small: every start, method and figure of the paper is there."""

from __future__ import annotations

import csv
import runpy
from pathlib import Path

import numpy as np
import pytest

from .test_experiments import script


@pytest.fixture
def handwritten(tmp_path: Path) -> Path:
    """Thirty digits of each of three kinds, as large as those that the experiment reads."""
    from sklearn.datasets import load_digits

    digits = load_digits(n_class=3)
    large = np.repeat(np.repeat(digits.images, 3, axis=1), 3, axis=2) * 16
    X = np.pad(np.minimum(large, 255), ((0, 0), (2, 2), (2, 2))).astype(np.uint8)
    np.savez(tmp_path / "digits.npz", X=X, y=digits.target)
    return tmp_path / "digits.npz"


def test_latent_location(
    handwritten: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("skimage", reason="histograms of oriented gradients are scikit-image's")
    module = script("latent_location", monkeypatch)
    records = module.main(["--data", str(handwritten), "--out", str(tmp_path / "out"), "--quick"])
    text = capsys.readouterr().out
    assert text.strip() == (tmp_path / "out" / "results.md").read_text().strip()
    for pair in module.PAIRS:
        assert {r.task for r in records if (r.start, r.method) == pair} == set(module.TASKS)
    for paper in module.PAPER.values():
        assert paper in text
    reached = {(r.task, r.start, r.method): r for r in records}
    for task in module.TASKS:
        assert reached[task, "annealed", "CCP"].objective < reached[task, "top-left", "CCP"].objective
    assert all(0 <= r.objective <= 1 and 0 <= r.error <= 1 for r in records)
    assert "<svg" in (tmp_path / "out" / "figure_3.svg").read_text()
    with (tmp_path / "out" / "results.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(records) == len(module.TASKS) * len(module.PAIRS)


def test_its_images(handwritten: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("skimage", reason="histograms of oriented gradients are scikit-image's")
    module = script("latent_location", monkeypatch)
    with np.load(handwritten) as file:
        digits, y = file["X"] / 255.0, file["y"]
    images = module.draw_images(digits, y, 3, 5, module.TASKS["blank"], 0)
    assert images.canvases.shape == (15, 60, 60) and images.windows.shape == (15, 25, 441)
    for canvas, (a, b), label in zip(images.canvases, images.corners, images.y, strict=True):
        digit = canvas[a : a + 28, b : b + 28]
        assert (digit == digits[y == label]).all(axis=(1, 2)).any(), "the digit is where it is said to be"
        assert canvas.sum() == pytest.approx(digit.sum()), "and nothing else is there"
    assert (images.offsets(images.true_windows()) <= 4 * np.sqrt(2)).all()
    cluttered = module.draw_images(digits, y, 3, 5, module.TASKS["clutter"], 0)
    assert (cluttered.canvases.sum(axis=(1, 2)) > 0).all() and cluttered.canvases.sum() > images.canvases.sum()
    np.testing.assert_array_equal(
        images.canvases, module.draw_images(digits, y, 3, 5, module.TASKS["blank"], 0).canvases
    )


def test_multiple_instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(0)
    bag, y = np.repeat(np.arange(60), 3), (np.arange(60) % 2).astype(np.int8)
    X = random.normal(size=(180, 4))
    X[np.arange(60) * 3 + random.integers(0, 3, 60)] += 4.0 * y[:, None]
    np.savez(tmp_path / "musk1.npz", X=X, bag=bag, y_bag=y)
    module = script("multiple_instance", monkeypatch)
    module.main(["--data", str(tmp_path), "--quick"])
    text = capsys.readouterr().out
    assert "60 bags, 180 instances, 4 features; 2 of 10 folds" in text and "87.4, 77.9" in text
    reached = {row.split("|")[1].strip(): row.split("|")[2] for row in text.splitlines() if " +- " in row}
    del reached["method"]
    assert set(reached) == set(module.METHODS)
    for name in module.METHODS:
        assert float(reached[name].split("+-")[0]) > (50 if name == "bag mean" else 80), name


def test_much_data(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(variable, "1")
    runpy.run_path(str(Path(__file__).parent.parent / "benchmarks" / "latent_svm.py"))["large"](90, 5, 4, 3)
    text = capsys.readouterr().out
    assert "90 samples, 5 regions, 4 features, 3 classes" in text
    assert "proposal over a pass of scores" in text and "of the features (asked: below 2)" in text


def test_scene_recognition(
    handwritten: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = script("scene_recognition", monkeypatch)
    starts = ["random", "lambda 1", "annealed"]
    arguments = ["--data", str(handwritten), "--out", str(tmp_path / "out"), "--quick", "--starts", *starts]
    records = module.main(arguments)
    text = capsys.readouterr().out
    assert text.strip() == (tmp_path / "out" / "results.md").read_text().strip()
    for (start, method), paper in module.PAPER.items():
        assert start not in starts or (f"| {start} | {method} |" in text and paper in text)
    assert {(r.start, r.method) for r in records} == {(s, m) for s in starts for m in module.METHODS}
    reached = {(r.start, r.method): r for r in records}
    for start in starts[:2]:
        assert reached[start, "biased"].potts < reached[start, "CCP"].potts
        assert reached["annealed", "CCP"].objective < reached[start, "CCP"].objective
    assert all(0 < r.objective < 1 for r in records)  # the objective of weights of zero is one
    with (tmp_path / "out" / "results.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(records)


def test_its_mosaics(monkeypatch: pytest.MonkeyPatch) -> None:
    module = script("scene_recognition", monkeypatch)
    digit = np.arange(400) % 10
    features, pool = np.random.default_rng(0).normal(size=(400, 32)), np.arange(200, 400)
    plans = module.layouts(4, 0)
    assert (plans == plans[:, ::2, ::2].repeat(2, axis=1).repeat(2, axis=2)).all(), "squares of one digit"
    images = module.draw_mosaics(features, digit, pool, plans, 30, 0)
    np.testing.assert_array_equal(digit[images.tiles], images.digits)
    np.testing.assert_array_equal(features[images.tiles], images.X)
    assert images.tiles.min() >= 200
    moved = [np.roll(plans, (a, b), (1, 2)) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    kept = np.max([np.mean(images.digits == m[images.y], axis=(1, 2)) for m in moved], axis=0)
    assert 0.8 < kept.mean() < 0.95


def test_stickiness(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Where rows are orthogonal the concave-convex procedure keeps its start, and leaves no budget to other bounds."""
    module = script("stickiness", monkeypatch)
    reached = module.main(["--quick"])
    assert "| 1000 | CCP |" in capsys.readouterr().out
    assert set(reached) == {(d, method) for d in (100, 1000) for method in module.METHODS}
    assert all(reached[1000, m]["changed"] == 0 for m in module.METHODS if m != "annealed start")
    assert reached[100, "CCP"]["changed"] > 0.2
    assert reached[100, "annealed start"]["found"] > 0.9
