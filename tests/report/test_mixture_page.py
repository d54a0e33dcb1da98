"""The report of a mixture: a sound page for every case, numbers as computed by hand, words that follow from them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from majorant.report import Run, html_report, numbers
from majorant.report.measures.mixture import Mixture
from majorant.report.sections import components, criteria, uncertainty
from majorant.report.sections.uncertainty import certainty_bins, most_unsure
from majorant.results.selection import Candidate, Selection
from majorant.solvers.normals import normals_of

from ..mixtures import CARD, COVARIANCE_TYPES, Fitted, rows
from .markup import check_page
from .test_page import ODD_NAMES


def run_of(case: str = "usual", **more: Any) -> Run:
    k, d, n, kind = 2, 3, 120, "full"
    if case in COVARIANCE_TYPES:
        kind = case
    if " in " in case:
        n, k, d = (int(part) for part in case.replace(" in ", " ").replace(" by ", " ").split())
    X = rows(1, n, d) if k < 8 else rows(1, n, d) + 9.0 * np.random.default_rng(0).integers(k, size=(n, 1))
    if case == "missing":
        X = np.where(np.random.default_rng(2).random(X.shape) < 0.2, np.nan, X)
    scale = {"tiny": 1e-9, "huge": 1e12}.get(case, 1.0)
    X = X * scale
    if case == "constant":
        X[:, 1] = 4.0
    model = Fitted(k, covariance_type=kind, random_state=0, reg_covar=1e-6 * scale**2).fit(X)
    names = ODD_NAMES[:d] if d <= len(ODD_NAMES) else tuple(f"feature {j}" for j in range(d))
    return Run(model, X, names, "table.csv", "", card=CARD, **more)


CASES = ["usual", *COVARIANCE_TYPES[1:], "missing", "tiny", "huge", "constant"]
SIZES = ((60, 1, 2), (60, 1, 1), (80, 3, 1), (200, 5, 4), (300, 12, 30), (400, 70, 2))
CASES += [f"{n} in {k} by {d}" for n, k, d in SIZES]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", CASES)
def test_every_case_is_a_sound_page_with_the_answer_first(case: str) -> None:
    source = html_report(run_of(case))
    page = check_page(source)
    sections = [i for i in page.ids if f'<section id="{i}"' in source]
    assert sections[0] == "components" and sections[-3:] == ["search", "convergence", "reproduce"]
    assert "components" in sections and "criterion" in sections and "regularity" not in sections
    text = "".join(page.text)
    assert "nan" not in re.sub("constant|discriminant", "", text) and "cluster" not in text.replace(
        "covariance_type", ""
    )
    for headline in source.split("<h2 ")[1:]:
        assert len(headline.split("</h2>")[0].split(">", 1)[1].split()) <= 24


def test_the_sections_come_in_order() -> None:
    source = html_report(run_of())
    order = ["components", "profiles", "pair", "uncertainty", "criterion", "search", "convergence", "reproduce"]
    places = [source.index(f'<section id="{name}"') for name in order]
    assert places == sorted(places)
    assert "report of a Gaussian mixture" in source
    assert "the log-likelihood never fell" in source and "below the highest" in source
    assert "1 time in" not in source


def test_the_numbers_are_the_models() -> None:
    run = run_of()
    measured, model = Mixture(run, CARD), run.estimator
    proba = model.predict_proba(run.X)
    np.testing.assert_array_equal(measured.effective_sizes, proba.sum(axis=0))
    assert measured.n_clear == int((proba.max(axis=1) > 0.9).sum())
    assert measured.criteria == {"bic": model.bic(run.X), "aic": model.aic(run.X), "icl": model.icl(run.X)}
    mean = model.weights_ @ model.means_
    between = model.weights_ @ (model.means_ - mean) ** 2
    within = model.weights_ @ np.array([np.diag(c) for c in model.covariances_])
    np.testing.assert_allclose(measured.explained, between / (between + within))
    source = html_report(run)
    assert numbers.fixed(model.bic(run.X), 2) in source and f"{model.predict_proba(run.X).sum(axis=0)[0]:.1f}" in source


def test_ellipses_and_means_are_in_the_tables_own_units() -> None:
    run = run_of()
    raw = run.X * [10.0, 0.1, 5.0] + [100.0, -3.0, 7.0]
    measured = Mixture(replace(run, raw=raw, standardised=True), CARD)
    fitted_there = Fitted(2, random_state=0).fit(raw)
    fitted_there.means_ = run.estimator.means_ * [10.0, 0.1, 5.0] + [100.0, -3.0, 7.0]
    scale = np.diag([10.0, 0.1, 5.0])
    fitted_there.covariances_ = scale @ run.estimator.covariances_ @ scale
    at = normals_of(fitted_there, [2, 0])
    outline = measured.outline(1, (2, 0)) - at.means[1]
    squares = np.einsum("ni,ij,nj->n", outline, np.linalg.inv(at.covariances[1]), outline)
    np.testing.assert_allclose(squares, -2 * np.log(0.1), rtol=1e-6)
    moved = measured.in_own_units(measured.centres[:, 0], 0)
    np.testing.assert_allclose(moved, fitted_there.means_[:, 0], rtol=1e-9)


def test_missing_values_are_counted_and_not_drawn() -> None:
    run = run_of("missing")
    source = html_report(run)
    assert f"{int(np.isnan(run.X).sum())} of 360 cells are empty" in source.replace("\u202f", "")
    assert "lack one of the two and are not drawn" in source


def test_unsure_rows_are_listed_by_their_number_in_the_table() -> None:
    run = run_of(rows=np.arange(120) * 2 + 1001)
    certainty = run.estimator.predict_proba(run.X).max(axis=1)
    first = int(certainty.argmin())
    table = html_report(run).split('<table class="dense below">')[1].split("</table>")[0]
    assert table.split('<tbody><tr><th scope="row">')[1].startswith(f"{1001 + 2 * first:,}".replace(",", "\u202f"))
    assert most_unsure(np.array([0.95, 0.6, 0.9, 0.4]), 2) == [3, 1]
    assert most_unsure(np.array([0.95, 0.6]), 5) == [1]


@pytest.mark.parametrize(
    "certainty", [[1.0, 1.0], [0.5, 0.5000001, 0.9, 0.900001, 1.0], [0.34, 1.0], list(np.linspace(0.2, 1, 97))]
)
def test_bins_hold_every_row_once_and_part_at_nine_tenths(certainty: list[float]) -> None:
    values = np.array(certainty)
    edges, counts = certainty_bins(values)
    assert counts.sum() == len(values) and edges[-1] == 1.0 and edges[0] <= values.min()
    np.testing.assert_allclose(np.diff(edges), 0.05)
    assert counts[edges[1:] > 0.9 + 1e-9].sum() == (values > 0.9).sum()


def degenerate() -> Run:
    run = run_of()
    run.estimator.regular_ = False
    run.estimator.degeneracy_ = "the covariance of component 2 <of 2> collapses"
    return run


def test_a_degenerate_fit_is_named_as_such_before_anything_is_read_from_it() -> None:
    source = html_report(degenerate())
    page = check_page(source)
    sections = [i for i in page.ids if f'<section id="{i}"' in source]
    assert sections[:2] == ["regularity", "components"] and "criterion" not in sections
    assert "<strong>This fit is degenerate</strong>: the covariance of component 2 &lt;of 2&gt; collapses." in source
    assert "fewer components" in source and "<dt>BIC</dt><dd>\u2013</dd>" in source


def selection(**more: Any) -> Selection:
    values = {(1, "full"): 9.0, (2, "full"): 4.0, (3, "full"): -50.0, (1, "tied"): 9.5, (2, "tied"): 4.5}
    candidates = tuple(
        Candidate(k, {"covariance_type": kind}, value, excluded="the floor <set> it" if value < 0 else "", **more)
        for (k, kind), value in values.items()
    )
    candidates += (Candidate(3, {"covariance_type": "tied"}, 12.25),)
    return Selection(candidates, "bic", "Gaussian mixture", "component", "n_components", "log-likelihood")


def test_the_matrix_of_a_selection_marks_the_best_and_names_what_is_excluded() -> None:
    source = html_report(run_of(selection=selection()))
    check_page(source)
    table = source.split('<section id="criterion"')[1].split("</section>")[0]
    assert '<th scope="row">2</th><td class="number"><b>4.00</b></td><td class="number">4.50</td>' in table
    assert '<td class="number"><span class="quiet">excluded</span></td>' in table
    assert "BIC prefers 2 components, full; within 0.5 of it: 2 components, tied." in table
    assert "3 components, full: the floor &lt;set&gt; it." in table and "Near ties" in table
    assert "<dt>BIC</dt><dd>4.00" in source


def words_of(proba: list[list[float]], weights: list[float]) -> Mixture:
    run = run_of()
    measured = Mixture(replace(run, X=np.zeros((len(proba), 3))), CARD)
    measured.__dict__["responsibilities"] = np.array(proba)
    measured.__dict__["weights"] = np.array(weights)
    measured.__dict__["centres"] = np.zeros((len(weights), 3))
    return measured


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([1.0], "One component holds all rows."),
        ([0.5, 0.5], "of similar weight"),
        ([0.7, 0.3], "Component 1 holds 70\u202f% of the weight, component 2 only 30\u202f%."),
        ([0.97, 0.03], "Component 2 is small: 3.0\u202f% of the weight, about"),
        ([1.0, 0.0], "One of two components has no weight."),
    ],
)
def test_components_in_words(weights: list[float], said: str) -> None:
    share = [weights] * 10
    assert said in components.components_headline(words_of(share, weights))


@pytest.mark.parametrize(
    ("proba", "said"),
    [
        ([[1.0, 0.0]] * 3, "Every row belongs to one component with a probability above 0.9."),
        ([[1.0, 0.0]] * 3 + [[0.6, 0.4]], "One of 4 rows is unsure of its component."),
        ([[1.0, 0.0]] * 3 + [[0.6, 0.4]] * 2, "Two of 5 rows are unsure of their component."),
        ([[0.6, 0.4]] * 3 + [[1.0, 0.0]], "The components overlap: only 1 of 4 rows are clear-cut."),
    ],
)
def test_uncertainty_in_words(proba: list[list[float]], said: str) -> None:
    assert uncertainty.headline(words_of(proba, [0.5, 0.5])) == said


def test_one_size_alone_says_little() -> None:
    measured = Mixture(run_of(), CARD)
    assert "only beside other sizes" in criteria.headline(measured)
    assert any("majorant.select" in text for text in criteria.notes(measured))
    typed = Mixture(replace(run_of(), command="majorant fit"), CARD)
    assert any("--k 1:6" in text for text in criteria.notes(typed))


def test_weights_are_given_to_the_criteria_or_these_are_left_out() -> None:
    assert Mixture(run_of(weights=np.ones(120)), CARD).criteria == {}
    source = html_report(run_of(weights=np.ones(120)))
    check_page(source)
    assert "counted rows by their weights" in source


def test_a_bound_on_a_log_likelihood_leaves_a_difference_not_per_cents() -> None:
    run = run_of()
    search = run.estimator.search_
    run.estimator.search_ = replace(search, proved_bound=run.estimator.log_likelihood_ + 3.1504)
    source = html_report(run)
    check_page(source)
    assert "This fit is within 3.2\u202flog units of the best possible, and that is proved" in source
    assert "at most 3.2\u202flog units" in source
