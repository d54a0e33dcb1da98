"""The report of a mixture of regressions: a sound page for every case, numbers and words that follow from the fit."""

from __future__ import annotations

import csv
import io
import re
import warnings
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

import majorant as mj
from majorant.datasets.tone import STRETCH_RATIO, TUNED
from majorant.registry import card_of
from majorant.report import Run, html_report, numbers, report
from majorant.report.charts.marks import shaded_class
from majorant.report.measures.regression import Regression, matching_order
from majorant.report.sections import estimates, lines, regularity, residuals
from majorant.report.sections.estimates import Term
from majorant.solvers.responses import RESPONSES, Response

from .markup import check_page
from .test_page import ODD_NAMES

SIZES = {"one line": (60, 1, 1), "four features": (150, 2, 4), "five lines": (300, 5, 1), "many": (300, 3, 12)}
CASES = ["usual", *SIZES, "exact", "degenerate", "constant", "huge", "tiny", "far from zero", "weights", "left out"]


@cache
def fitted(case: str) -> tuple[mj.RegressionMixture, np.ndarray, np.ndarray, np.ndarray | None]:
    n, k, d = SIZES.get(case, (120, 2, 1))
    random = np.random.default_rng(4)
    X, own = random.normal(size=(n, d)), np.arange(n) % k
    slopes, noise = random.normal(size=(k, d)) + 2.0 * np.arange(k)[:, None], random.normal(size=n)
    y = 3.0 * own + np.einsum("ij,ij->i", X, slopes[own]) + (0.2 + 0.1 * own) * noise
    if case == "exact":
        y = 1.0 + X[:, 0]
    if case == "constant":
        X[:] = 4.0
    if case in ("huge", "tiny"):
        X, y = X * {"huge": 1e9, "tiny": 1e-9}[case], y * {"huge": 1e12, "tiny": 1e-12}[case]
    if case == "far from zero":
        X, y = X + 1e6, y - 1e6
    if case == "left out":
        X, y = np.array(STRETCH_RATIO)[:, None], np.array(TUNED)
    if case == "degenerate":
        X, y = X[:9], y[:9]
    weights = np.where(own == 0, 2.0, 1.0) if case == "weights" else None
    more: dict[str, Any] = {"min_component_size": 8} if case == "degenerate" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mj.RegressionMixture(k, random_state=0, **more).fit(X, y, sample_weight=weights)
    return model, X, y, weights


def run_of(case: str = "usual", **more: Any) -> Run:
    model, X, y, weights = fitted(case)
    d = X.shape[1]
    names = ODD_NAMES[:d] if d <= len(ODD_NAMES) else tuple(f"feature {j}" for j in range(d))
    return Run(model, X, names, "table.csv", "", y=y, weights=weights, **{"target_name": "a <b> & c", **more})


def measured(run: Run) -> Regression:
    return Regression(run, card_of(run.estimator))


def sections_of(source: str) -> list[str]:
    return [part.split('"')[0] for part in source.split('<section id="')[1:]]


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_a_sound_page_with_the_answer_first(case: str) -> None:
    run = run_of(case)
    source = html_report(run)
    page = check_page(source)
    expected = [
        "regularity",
        "components",
        "fit",
        "effects",
        "residuals",
        "quantiles",
        "separation",
        "criterion",
        "optima",
    ]
    gone = {
        "regularity": run.estimator.regular_ and run.estimator.excluded_ is None,
        "optima": len(measured(run).solutions) < 2,
        "effects": len(run.feature_names) == 1,
        "residuals": run.estimator.is_exact_,
        "quantiles": run.estimator.is_exact_ or max(np.bincount(measured(run).labels)) < 8,
        "separation": measured(run).k == 1,
        "criterion": not run.estimator.regular_,
    }
    sections = sections_of(source)
    assert sections == [s for s in expected if not gone.get(s)] + ["search", "convergence", "reproduce"]
    text = "".join(page.text)
    assert "nan" not in text and "report of a mixture of regressions \u00b7" in text and ".fit(X, y)" in text
    for headline in source.split("<h2 ")[1:]:
        assert len(headline.split("</h2>")[0].split(">", 1)[1].split()) <= 24
    assert "<b> &" not in source and "a &lt;b&gt; &amp; c" in source


@pytest.mark.parametrize(("k", "d"), [(3, 2), (12, 20)])
def test_a_page_of_many_rows_stays_small_and_says_what_it_leaves_out(k: int, d: int) -> None:
    random = np.random.default_rng(0)
    X, own = random.normal(size=(6000, d)), np.arange(6000) % k
    coef = 3.0 * random.normal(size=(k, d))
    y = np.einsum("ij,ij->i", X, coef[own]) + random.normal(size=6000)
    model = mj.RegressionMixture(k, init={"coef": coef, "intercept": np.zeros(k)}, max_iter=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    source = html_report(Run(model, X, tuple(f"f{j}" for j in range(d)), "t.csv", "", y=y))
    page = check_page(source, 250_000 if d > 10 else 200_000)  # its nine components have a dozen coefficients each
    text = "".join(page.text).replace("\u202f", "")
    found = re.search(r"(\d+) of 6000 rows are drawn", text)
    most = 1200 if k == 3 else 800
    assert found and 0.98 * most <= int(found[1]) <= most
    assert "rows per component are drawn" in text
    assert ("12 components are shown" in text) == (k == 12) and ("nine heaviest" in text) == (k == 12)


def test_the_cases_are_what_they_are_called() -> None:
    assert not fitted("degenerate")[0].regular_ and not fitted("degenerate")[0].is_exact_
    assert fitted("exact")[0].is_exact_
    assert fitted("left out")[0].excluded_ is not None and fitted("left out")[0].regular_
    assert any(len(measured(run_of(case)).solutions) > 1 for case in CASES)


@pytest.mark.parametrize("case", ["usual", "four features", "far from zero"])
def test_the_numbers_are_the_models(case: str) -> None:
    run = run_of(case)
    numbers_of, model = measured(run), run.estimator
    np.testing.assert_allclose(numbers_of.responsibilities, model.responsibilities_, atol=1e-9)
    assert numbers_of.criteria == {"bic": model.bic_, "aic": model.aic_, "icl": model.icl_}
    effects = np.sqrt(model.weights_ @ (model.coef_ * run.X.std(axis=0)) ** 2)
    assert numbers_of.main_feature == int(effects.argmax())
    fits = model.predict_components(run.X)
    for j in range(2):
        mine = model.responsibilities_.argmax(axis=1) == j
        residuals_of = numbers_of.residuals(j)
        assert run.y is not None
        np.testing.assert_allclose(residuals_of.values, (run.y[mine] - fits[mine, j]) / model.scale_[j], atol=1e-6)
        at = run.X[mine, 0] if case != "four features" else fits[mine, j]
        np.testing.assert_allclose(residuals_of.at, at)
        assert residuals_of.n_in_bin.sum() == mine.sum()


@pytest.mark.parametrize("case", ["usual", "four features"])
def test_rows_keep_their_distance_from_their_line_in_the_picture(case: str) -> None:
    run = run_of(case)
    shown = measured(run)
    at, ends = shown.ends(shown.lines)
    slope = (ends[1] - ends[0]) / (at[1] - at[0])
    np.testing.assert_allclose(slope, run.estimator.coef_[:, shown.main_feature])
    lines = ends[0] + np.outer(shown.main_values - at[0], slope)
    rows = np.arange(len(run.X))
    own = lines[rows, shown.labels]
    fits = run.estimator.predict_components(run.X)[rows, shown.labels]
    np.testing.assert_allclose(shown.moved(shown.lines, shown.labels) - own, run.y - fits, atol=1e-9)


def test_a_standardised_table_is_drawn_in_its_own_units() -> None:
    model, X, _, _ = fitted("usual")
    run = run_of(raw=10.0 * X + 100.0, standardised=True)
    at, ends = measured(run).ends(measured(run).lines)
    np.testing.assert_allclose(at, [10 * X.min() + 100, 10 * X.max() + 100])
    np.testing.assert_allclose(ends, model.predict_components(np.array([X.min(axis=0), X.max(axis=0)])))
    source = html_report(run)
    check_page(source)
    assert "per standard deviation" in source and "per unit" not in source


def test_intervals_are_those_of_the_summary() -> None:
    run = run_of()
    source = html_report(run)
    errors = run.estimator.standard_errors()["coef"][:, 0]
    for value, error in zip(run.estimator.coef_[:, 0], errors, strict=True):
        low, high = (numbers.fixed(value + side * 1.959964 * error, 3) for side in (-1, 1))
        assert f"{low} to {high}" in source


def test_an_interval_is_drawn_around_its_estimate_on_a_scale_that_holds_all() -> None:
    term = Term("", "", np.array([1.0, -3.0]), np.array([0.5, -4.2]), np.array([1.7, -2.0]))
    scale = term.scale
    assert scale.low <= -4.2 and scale.high >= 1.7
    far = Term("", "", np.array([1000.0]), np.array([999.0]), np.array([1001.0])).scale
    assert far.low > 900
    for values in ([0.0], [5.0], [-2.0], [3.0, 3.0]):
        alone = Term("", "", np.array(values), None, None).scale
        assert alone.low <= min(values) <= max(values) <= alone.high and alone.low < alone.high


def test_without_intervals_the_page_says_so() -> None:
    source = html_report(run_of("exact"))
    assert "There are no intervals" in source and "All components are the same line." in source
    assert "One line fits every row exactly" in source


class Laplace(Response):
    """A family of a user's own, with noise of its own, under a name that no room knows."""

    name = "double <exponential>"
    has_dispersion = True
    is_location_scale = True

    def mean(self, eta: np.ndarray, trials: np.ndarray) -> np.ndarray:
        return eta

    def log_density(self, y: np.ndarray, eta: np.ndarray, dispersion: np.ndarray, trials: np.ndarray) -> np.ndarray:
        return -np.log(2 * np.sqrt(dispersion)) - np.abs(y - eta) / np.sqrt(dispersion)

    def score(self, y: np.ndarray, eta: np.ndarray, dispersion: np.ndarray, trials: np.ndarray) -> np.ndarray:
        return (y - eta) * self.weight(y, eta, dispersion, trials)

    def weight(self, y: np.ndarray, eta: np.ndarray, dispersion: np.ndarray, trials: np.ndarray) -> np.ndarray:
        return 1 / np.sqrt(dispersion) / np.maximum(np.abs(y - eta), 1e-3)

    def working(self, y: np.ndarray, trials: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return y, np.ones_like(y)

    def deviance(self, y: np.ndarray, eta: np.ndarray, trials: np.ndarray) -> np.ndarray:
        return 2 * np.abs(y - eta)

    def spread(self, y: np.ndarray, eta: np.ndarray, dispersion: np.ndarray, trials: np.ndarray) -> np.ndarray:
        return np.abs(y - eta) * np.sqrt(dispersion)

    def draw(self, eta: Any, dispersion: Any, trials: Any, random: Any) -> np.ndarray:
        return eta + np.sqrt(dispersion) * random.laplace(size=eta.shape)


def of_family(family: Any, k: int = 2) -> tuple[mj.RegressionMixture, Run]:
    random = np.random.default_rng(1)
    X = random.normal(size=(150, 1))
    y = np.where(np.arange(150) % 2, 2 + X[:, 0], -2 - X[:, 0])
    response = family if isinstance(family, Response) else RESPONSES[family]
    y = y + 0.3 * random.normal(size=150) if response.is_location_scale else response.draw(y, 0.1, np.ones(150), random)
    model = mj.RegressionMixture(k, family=family, random_state=0).fit(X, y)
    return model, Run(model, X, ("x",), "t.csv", "", y=y, target_name="y")


@pytest.mark.parametrize("name", ["gaussian", "poisson", "binomial", "gamma", "student"])
def test_a_family_given_as_an_object_has_the_page_of_its_name(name: str) -> None:
    """What is said and drawn follows from the distribution, not from how it was given."""
    k = 1 if name == "binomial" else 2  # of 0 and 1 no mixture is determined
    pages = []
    for family in (name, RESPONSES[name]):
        source = html_report(of_family(family, k)[1])
        check_page(source)
        pages.append([part for part in source.split("<section ") if not part.startswith('id="reproduce"')])
    assert pages[0] == pages[1]
    page = "".join(pages[0])
    assert ("Noise \u03c3" in page) == RESPONSES[name].has_dispersion
    assert ('id="residuals"' in page) == (name == "gaussian")
    assert RESPONSES[name].title in page and RESPONSES[name].predicts in page


def test_a_family_of_ones_own_is_named_and_has_its_noise_but_no_lines() -> None:
    model, run = of_family(Laplace())
    source = html_report(run)
    check_page(source)
    assert "two double &lt;exponential&gt; regressions" in source and "Noise \u03c3" in source
    assert 'id="residuals"' not in source and 'id="fit"' not in source
    assert "noise" in model.summary().tables["components"].columns
    one = html_report(of_family(Laplace(), 1)[1])
    assert "no better one exists" not in one  # nothing is known of its likelihood


@pytest.mark.parametrize("k", [1, 2])
def test_coefficients_that_run_to_infinity_are_said_not_to_be_estimates(k: int) -> None:
    X = np.random.default_rng(0).normal(size=(100, 1))
    y = (X[:, 0] > 0) * 1.0
    with pytest.warns(ConvergenceWarning, match="The line of a component runs to infinity"):
        model = mj.RegressionMixture(k, family="binomial", random_state=0).fit(X, y)
    assert model.search_.n_distinct == 1  # of likelihoods of almost one
    for text in (str(model.summary()), "".join(check_page(html_report(Run(model, X, ("x",), "t.csv", "", y=y))).text)):
        words = " ".join(text.split())
        assert "runs to infinity" in words and "have no standard errors (NaN) and no intervals" in words
        assert "least squares" not in words
        assert "Noise differs" not in words and "no better one exists" not in words
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The rows do not determine the weights")
        errors = model.standard_errors()
    assert np.isnan(errors["coef"]).any() or np.isnan(errors["intercept"]).any()


def test_a_better_solution_that_was_left_out_is_named_with_what_would_admit_it() -> None:
    run = run_of("left out")
    excluded = run.estimator.excluded_
    assert excluded["log_likelihood"] > run.estimator.log_likelihood_
    source = html_report(run)
    section = source.split('<section id="regularity"')[1].split("</section>")[0]
    assert numbers.fixed(excluded["log_likelihood"], 3) in section
    assert f"{excluded['sigma_ratio']:.0f} times noisier" in section.replace("\u202f", "")
    change = section.split("<code>max_sigma_ratio=")[1].split("</code>")[0]
    model = mj.RegressionMixture(2, max_sigma_ratio=float(change), random_state=0).fit(run.X, run.y)
    assert model.log_likelihood_ >= excluded["log_likelihood"] - 1e-3
    shown = measured(run)
    assert [s.regular for s in shown.solutions][-1] is False
    best = run.estimator.search_.optima[0]
    n_perturbed, n_started = best.n_perturbations, best.n_hits - best.n_perturbations
    assert (f"{n_perturbed} perturbation" in shown.solutions[0].reached) == (n_perturbed > 0)
    assert (f"{n_started} start" in shown.solutions[0].reached) == (n_started > 0)
    assert lines.optimum_caption(shown.solutions[0], 0) == "the fit"
    assert "the solution that was left out" in lines.optima_headline(replace_solutions(shown, [0, -1])).lower()


def replace_solutions(shown: Regression, kept: list[int]) -> Regression:
    other = measured(shown.run)
    other.__dict__["solutions"] = [shown.solutions[i] for i in kept]
    return other


def test_a_degenerate_fit_is_named_as_such_before_anything_is_read_from_it() -> None:
    run = run_of("degenerate")
    source = html_report(run)
    assert sections_of(source)[:2] == ["regularity", "components"]
    assert "<strong>This fit is degenerate</strong>" in source and "<dt>BIC</dt><dd>\u2013</dd>" in source
    assert regularity.headline(measured(run)) == regularity.DEGENERATE


def test_components_of_two_solutions_are_paired_by_the_rows_they_share() -> None:
    labels, others = np.array([0, 0, 0, 1, 1, 2, 2]), np.array([2, 2, 0, 0, 0, 1, 1])
    assert matching_order(labels, others, 3).tolist() == [2, 0, 1]
    shown = measured(run_of("five lines"))
    for solution in shown.solutions:
        assert (matching_order(shown.labels, solution.labels, shown.k) == np.arange(shown.k)).all()
    assert shown.n_moved(shown.solutions[0]) == 0


def test_residuals_that_drift_are_told_from_those_that_do_not() -> None:
    straight = measured(run_of("one line"))
    assert straight.residuals(0).drift is None
    assert residuals.headline(straight) == "The residuals show no bend: nothing speaks against straight lines."
    X = np.linspace(-1, 1, 200)[:, None]
    y = 4 * X[:, 0] ** 2 + 0.1 * np.random.default_rng(0).normal(size=200)
    bent = measured(Run(mj.RegressionMixture(1).fit(X, y), X, ("x",), "t.csv", "", y=y))
    low, high = bent.residuals(0).drift or (0.0, 0.0)
    assert low < -0.5 and high > 0.5
    assert "is not straight throughout" in residuals.headline(bent)


def test_a_slight_bend_is_told_and_lines_that_cross_are_none() -> None:
    random = np.random.default_rng(0)
    X, own = random.uniform(-1, 1, size=(400, 2)), np.arange(400) % 2
    y = np.where(own, 3.0, -3.0) * X[:, 0] + 0.3 * random.normal(size=400)
    model = mj.RegressionMixture(2, n_init=2, random_state=0)
    crossing = measured(Run(model.fit(X, y), X, ("x", "z"), "t.csv", "", y=y))
    assert crossing.bend is None and residuals.headline(crossing).endswith("nothing speaks against straight lines.")
    y = y + 0.35 * X[:, 1] ** 2
    bent = measured(Run(model.fit(X, y), X, ("x", "z"), "t.csv", "", y=y))
    assert bent.bend is not None and bent.bend[1] == 1 and "straight along <i>z</i>" in residuals.headline(bent)


def test_headlines_follow_from_the_numbers() -> None:
    X = np.linspace(0, 4, 120)[:, None]
    own, noise = np.arange(120) % 2, np.random.default_rng(0).normal(size=120)

    def headline(y: np.ndarray) -> str:
        model = mj.RegressionMixture(2, random_state=0).fit(X, y)
        return estimates.components_headline(measured(Run(model, X, ("x",), "t.csv", "", y=y)))

    cross = np.where(own == 0, X[:, 0], 9 - X[:, 0]) + 0.1 * noise
    assert headline(cross) in (
        "Along <i>x</i> component 1 rises and component 2 falls.",
        "Along <i>x</i> component 2 rises and component 1 falls.",
    )
    assert "times noisier than component" in headline(
        X[:, 0] + np.where(own == 0, 0.0, 9.0) + (0.1 + 0.6 * own) * noise
    )
    assert "times as steep as component" in headline(X[:, 0] * (1 + 2 * own) + 9.0 * own + 0.1 * noise)
    assert headline(X[:, 0] * (1 + 0.3 * own) + 9.0 * own + 0.1 * noise) in (
        "Along <i>x</i> the slope of component 1 is above that of component 2.",
        "Along <i>x</i> the slope of component 2 is above that of component 1.",
    )
    assert "run alike" in headline(X[:, 0] + 9.0 * own + 0.1 * noise)
    both = np.column_stack([X[:, 0], np.cos(7.0 * np.arange(120))])
    model = mj.RegressionMixture(2, random_state=0).fit(both, 3 * X[:, 0] + 0.5 * own * both[:, 1] + 0.1 * noise)
    said = estimates.components_headline(
        measured(Run(model, both, ("x", "z"), "t.csv", "", y=3 * X[:, 0] + 0.5 * own * both[:, 1] + 0.1 * noise))
    )
    assert "run alike" not in said and "Along <i>z</i> the slope of component" in said


@pytest.mark.parametrize(
    ("k", "probability", "expected"),
    [
        (2, 1.0, "2"),
        (2, 0.5, "mid"),
        (2, 0.75, "2-2"),
        (3, 0.35, "mid"),
        (3, 0.95, "2"),
        (1, 1.0, "2"),
        (5, 1.0, "mid"),
    ],
)
def test_the_colour_of_a_row_goes_to_grey_with_its_probability(k: int, probability: float, expected: str) -> None:
    assert shaded_class(1, k, probability) == expected
    assert shaded_class(1, 5, 1.0, spoken_of=1) == "1"


def test_a_page_needs_y() -> None:
    with pytest.raises(ValueError, match="needs y, what the lines predict"):
        html_report(replace(run_of(), y=None))


def test_coefficients_are_tested_factors_given_and_reference_levels_named() -> None:
    random = np.random.default_rng(0)
    kind, x = np.tile(["a", "b", "c"], 100), random.normal(size=300)
    y = random.poisson(np.exp(0.4 * x + (kind == "b")))
    table = pd.DataFrame({"y": y, "x": x, "kind": kind})
    model = mj.RegressionMixture.from_formula("y ~ x + kind", table, n_components=1, family="poisson")
    made = model.report(table)
    found = {row["Parameter"]: row for row in csv.DictReader(io.StringIO(made.tables["estimates"].to_csv()))}
    errors = model.standard_errors_["coef"][0]
    for j, name in enumerate(("x", "kind[T.b]", "kind[T.c]")):
        said = f"Slope on {name}" if name == "x" else f"kind: {name[-2]} against a"
        row, value = found[said], float(model.coef_[0, j])
        assert float(row["SE"]) == errors[j] and float(row["exp"]) == np.exp(value)
        np.testing.assert_allclose(float(row["p"]), 2 * norm.sf(abs(value / errors[j])))
    assert found["Weight"]["p"] == found["Weight"]["exp"] == found["Intercept"]["exp"] == ""
    assert (
        made.html.count("against a</i></b>") == 2
        and "[T." not in made.html
        and "per unit" in made.html
        and "of the mean" in made.html
    )


def test_every_coefficient_is_in_the_table() -> None:
    made = report(run_of("many"))
    names = set(made.tables["estimates"].columns[0].values)
    assert {f"Slope on feature {j}" for j in range(12)} <= names


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_features_of_two_values_have_two_marks_and_the_interval_of_their_difference(family: str) -> None:
    random = np.random.default_rng(0)
    kind, x = np.tile(["a", "b", "c"], 60), random.normal(size=180)
    mean = np.exp(0.4 * x + (kind == "b"))
    y = random.poisson(mean) if family == "poisson" else mean + random.normal(size=180)
    table = pd.DataFrame({"y": y, "x": x, "kind": kind, "half": np.arange(180) // 90})
    model = mj.RegressionMixture.from_formula("y ~ x + kind + half", table, n_components=1, family=family)
    drawn = [residuals._effect(measured(_run_of_design(model, table)), feature) for feature in range(4)]
    assert [one.name for one in drawn] == ["x", "kind", "kind", "half"] and not drawn[0].levels
    assert [[text for _, text in one.levels] for one in drawn[1:]] == [["a", "b"], ["a", "c"], ["0", "1"]]
    means = pd.DataFrame({"x": x.mean(), "kind": ["a", "b"], "half": 0.5})
    np.testing.assert_allclose(drawn[1].predicted, model.predict_components(means))
    low, high = model.confidence_intervals()["coef"]
    reached = {"gaussian": lambda at: at, "poisson": np.exp}[family]
    start = {"gaussian": lambda at: at, "poisson": np.log}[family](drawn[1].predicted[0])
    np.testing.assert_allclose(drawn[1].ends, reached(start + np.stack([low[:, 1], high[:, 1]])))


def _run_of_design(model: mj.RegressionMixture, table: pd.DataFrame) -> Run:
    X, y, _, _ = model._as_fitted(table, None, {})
    return Run(model, X.to_numpy(), tuple(X.columns), "t.csv", "", y=np.asarray(y))


def test_the_page_warns_of_what_the_screen_does() -> None:
    x, side = np.random.default_rng(0).normal(size=80), np.arange(80) % 2
    table = pd.DataFrame({"x": x, "side": np.where(side, "left", "right")})
    table["y"] = np.where(side, x, 9 - x) + 0.1 * np.random.default_rng(1).normal(size=80)
    rows = np.column_stack([x, table["y"]])
    with pytest.warns(ConvergenceWarning, match="separates"):
        lines = mj.RegressionMixture.from_formula("y ~ x", table, gating="side", random_state=0)
        groups = mj.GaussianMixture(2, random_state=0).fit(rows + 20 * side[:, None], gating=table[["side"]])
    for page, model in (
        (lines.report(table), lines),
        (groups.report(rows + 20 * side[:, None], gating=table[["side"]]), groups),
    ):
        assert f"<b>Warning:</b> {model.separated_}" in page.html and page.html.count("separates components") == 1
        assert model.separated_ in model.summary().look_out
    assert lines.separated_.startswith("Gating by side: right against left separates")


@pytest.mark.parametrize("role", ["gating", "groups"])
def test_lines_are_drawn_whatever_the_weights_depend_on(role: str) -> None:
    draws = np.random.default_rng(0)
    table = pd.DataFrame({"x": draws.normal(size=160), "gating": draws.normal(size=160), "groups": np.arange(160) // 4})
    steep = draws.normal(size=160) < table["gating"] if role == "gating" else table["groups"] % 2 == 0
    table["y"] = np.where(steep, 2 * table["x"], 1 - table["x"]) + 0.4 * draws.normal(size=160)
    model = mj.RegressionMixture.from_formula("y ~ x", table, **{role: role}, random_state=0)
    page = model.report(table)
    assert sections_of(page.html)[:5] == ["components", "fit", "residuals", "quantiles", "separation"]
    shown = measured(_run_of_design(model, table))
    q = model.predict_proba(table)
    np.testing.assert_allclose(shown.fitted.responsibilities, q, atol=1e-9)
    colours = lines.drawn_of(shown, shown.fitted, 10_000)
    np.testing.assert_array_equal(np.bincount(colours.labels), np.bincount(q.argmax(axis=1)))
    ends = np.quantile(table["x"], [0, 1])
    np.testing.assert_allclose(colours.ends, np.outer(ends, model.coef_[:, 0]) + model.intercept_, atol=1e-9)
    noise = sum(q[:, j] @ (table["y"] - shown.lines.fits(shown.run.X)[:, j]) ** 2 for j in range(2))
    assert noise == pytest.approx(q.sum(axis=0) @ model.scale_**2, rel=1e-4)


def test_a_column_of_0_and_1_is_no_slope() -> None:
    draws = np.random.default_rng(0)
    table = pd.DataFrame({"x": draws.normal(size=120), "old": np.arange(120) % 2})
    table["y"] = np.where(draws.random(120) < 0.4, 9 + 4 * table["old"], table["x"]) + 0.1 * draws.normal(size=120)
    by_columns = mj.RegressionMixture(2, random_state=0).fit(table[["x", "old"]], table["y"])
    by_formula = mj.RegressionMixture.from_formula("y ~ x + old", table, random_state=0)
    for page in (by_columns.report(table[["x", "old"]], table["y"]), by_formula.report(table)):
        assert "from 0 to 1 of <i>old</i>" in page.html and "1 against 0" in page.html
        assert "Slope on <i>old</i>" not in page.html and "per unit of <i>old</i>" not in page.html
        assert "Slope on <i>x</i>" in page.html


def test_the_page_warns_of_few_rows() -> None:
    draws = np.random.default_rng(0)
    x = draws.normal(size=(30, 3))
    y = x[:, 0] * np.where(draws.random(30) < 0.5, 3, -3) + 0.3 * draws.normal(size=30)
    model = mj.RegressionMixture(4, random_state=0).fit(x, y)
    assert model.regular_
    said = next(said for said in model.summary().look_out if "few rows for 6 parameters each" in said)
    assert model.report(x, y).html.count(said) == 1
