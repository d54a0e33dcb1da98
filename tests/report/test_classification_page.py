"""The report of a classification: a sound page for every case, numbers as counted by hand, words that follow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import auc, roc_auc_score

import majorant as mj
from majorant.registry import card_of
from majorant.report import Run, html_report, report
from majorant.report.measures.classification import Classification
from majorant.report.opening import classification_header
from majorant.report.sections import classes as words

from .markup import check_page
from .test_page import ODD_NAMES

EVERY_SHAPE = ["usual", "odd names", "one class", "separable", "one feature", "constant", "huge", "gradient"]
MANY = ["20 classes", "70 classes"]


def run_of(case: str = "usual", **more: Any) -> Run:
    n_classes = int(case.split()[0]) if case in MANY else 1 if case == "one class" else 3
    random = np.random.default_rng(0)
    n, d = max(30 * n_classes // 3, 60), 1 if case == "one feature" else 3
    codes = np.arange(n) % n_classes
    spread = 20.0 if case == "separable" else 1.0
    X = random.normal(size=(n, d)) + spread * random.normal(size=(n_classes, d))[codes]
    X *= 1e12 if case == "huge" else 1.0
    if case == "constant":
        X[:, 1] = 4.0
    labels = np.array([f"kind {c}" for c in range(n_classes)])
    if case == "odd names":
        labels = np.array(["<b>", "a & b", "x" * 200])
    y = labels[codes]
    method = "gradient" if case == "gradient" else "em"
    model = mj.LatentPrototypeClassifier(2, method=method, random_state=0).fit(X, y)
    return Run(model, X, ODD_NAMES[:d], "table.csv", "", y=y, **more)


def measured(run: Run) -> Classification:
    return Classification(run, card_of(run.estimator))


@pytest.mark.parametrize("case", EVERY_SHAPE + MANY)
def test_every_case_is_a_sound_page_with_the_answer_first(case: str) -> None:
    source = html_report(run_of(case))
    page = check_page(source)
    sections = [i for i in page.ids if f'<section id="{i}"' in source]
    expected = ["confusion", "classes", "probabilities", "prototypes", "search", "convergence", "reproduce"]
    gone = {
        "one class": {"confusion", "probabilities"},
        "20 classes": {"probabilities"},
        "70 classes": {"probabilities"},
    }
    assert sections == [s for s in expected if s not in gone.get(case, set())]
    text = "".join(page.text)
    assert "nan" not in text and "report of a prototype classification" in text
    for headline in source.split("<h2 ")[1:]:
        assert len(headline.split("</h2>")[0].split(">", 1)[1].split()) <= 24


def test_the_numbers_are_those_of_the_rows() -> None:
    run = run_of()
    found = run.estimator.predict(run.X)
    numbers = measured(run)
    for i, truth in enumerate(numbers.names):
        for j, other in enumerate(numbers.names):
            assert numbers.table[i, j] == np.sum((run.y == truth) & (found == other))
        assert numbers.recalls[i] == np.mean(found[run.y == truth] == truth)
        assert numbers.precisions[i] == np.mean(run.y[found == truth] == truth)  # type: ignore[index]
    assert numbers.accuracy == np.mean(found == run.y)
    assert numbers.confusions[0].rows == max(numbers.table[i, j] for i in range(3) for j in range(3) if i != j)
    own = run.estimator.prototypes_[np.arange(len(run.X)) % 3, run.estimator.poses_]
    np.testing.assert_allclose(numbers.explained, 1 - ((run.X - own) ** 2).mean(axis=0) / run.X.var(axis=0))
    assert f"{100 * numbers.accuracy:.1f}" in html_report(run)


def test_headlines_follow_from_the_numbers() -> None:
    assert words.confusion_headline(measured(run_of("separable"))) == "Every row is put into its own class."
    usual = measured(run_of())
    first = usual.confusions[0]
    headline = words.confusion_headline(usual)
    assert f"<i>kind {first.truth}</i> into <i>kind {first.taken_for}</i>" in headline
    assert f"kind {int(usual.recalls.argmin())}" in words.classes_headline(usual)
    assert words.classes_headline(measured(run_of("separable"))) == "All classes are predicted about equally well."
    many = measured(run_of("20 classes"))
    assert "too many for a square" in " ".join(words.confusion_notes(many, 15))


def test_names_of_classes_are_escaped() -> None:
    source = html_report(run_of("odd names"))
    assert ">&lt;b&gt;</th>" in source and "a &amp; b" in source and "x" * 18 + "\u2026" + "x" * 9 + "</th>" in source


def test_rows_of_a_class_without_weight_are_left_out_and_said_to_be() -> None:
    run = run_of()
    weights = np.where(run.y == "kind 2", 0.0, 1.0)
    model = mj.LatentPrototypeClassifier(2, random_state=0).fit(run.X, run.y, weights)
    weighted = replace(run, estimator=model, weights=weights)
    assert measured(weighted).table.sum() == 40
    source = html_report(weighted)
    assert "20 rows of classes without weight are left out" in source and "whatever its weight" in source


def test_the_classes_of_the_rows_are_needed() -> None:
    with pytest.raises(ValueError, match="give Run its y"):
        html_report(replace(run_of(), y=None))
    with pytest.raises(ValueError, match=r"y must have one entry per row of X, \(60,\); got \(59,\)"):
        replace(run_of(), y=np.zeros(59))


def test_bags_are_counted_not_their_rows() -> None:
    random = np.random.default_rng(0)
    bags = np.array([f"b{i}" for i in random.permutation(np.repeat(np.arange(40), 3))])
    of_bag = {name: int(name[1:]) % 2 for name in bags}
    y = np.array([of_bag[name] for name in bags])
    X = random.normal(size=(120, 2)) + 0.3 * y[:, None]
    model = mj.LatentSVC(0.1, random_state=0).fit(X, y, bags=bags)
    run = Run(model, X, ("a", "b"), "t.csv", "", y=y, bags=bags)
    numbers = measured(run)
    names = list(dict.fromkeys(bags))
    truth, found = np.array([of_bag[name] for name in names]), model.predict(X, bags=bags)
    np.testing.assert_array_equal(
        numbers.table, [[np.sum((truth == i) & (found == j)) for j in (0, 1)] for i in (0, 1)]
    )
    assert numbers.accuracy == model.score(X, y, bags=bags) < 1
    page = html_report(run)
    assert "bags are put into another class" in page and "fit(X, y, bags=bags)" in page and "Bags</th>" in page
    assert classification_header(numbers).title == "40 bags of <i>t</i> in two classes"


def test_curves_and_calibration_are_those_of_the_rows() -> None:
    random = np.random.default_rng(0)
    chance = np.round(random.random(300), 2)
    is_class = random.random(300) < chance
    curve = words.roc(is_class, chance)
    np.testing.assert_allclose(auc(*curve.T), roc_auc_score(is_class, chance), atol=2e-3)
    assert curve[0].tolist() == [0, 0] and curve[-1].tolist() == [1, 1] and (np.diff(curve, axis=0) >= 0).all()
    bins = words.calibration(is_class, chance)
    assert bins[:, 2].sum() == 300
    in_third = (chance >= 0.2) & (chance < 0.3)
    np.testing.assert_allclose(bins[2, :2], [chance[in_third].mean(), is_class[in_third].mean()], atol=0.05)


def test_probabilities_and_base_rates_are_on_the_page_of_models_that_have_them() -> None:
    X = np.random.default_rng(0).normal(size=(90, 2))
    y = np.where(X[:, 0] + 0.5 * np.random.default_rng(1).normal(size=90) > 0.4, "yes", "no")
    model = mj.DiscriminativeLatentClasses(2, random_state=0).fit(X, y)
    made = report(Run(model, X, ("a", "b"), "table.csv", "", y=y))
    check_page(made.html)
    columns = {column.head: column.values for column in made.tables["probabilities"].columns}
    np.testing.assert_allclose(columns["Base rate"], [(y == "yes").mean()])
    np.testing.assert_allclose(columns["Area under ROC"], [roc_auc_score(y == "yes", model.predict_proba(X)[:, 1])])
    assert "base rate" in made.html and "Recall" in made.html and "Precision" in made.html
