"""What a latent class analysis says of its fit: criteria, tests, residuals, classification, errors and edges."""

from __future__ import annotations

import re
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import majorant as mj
from majorant.cli import main

from .test_latent_class_analysis import mixed, read

PUBLISHED: dict[int, dict[str, float]] = {
    2: {
        "n_parameters": 15,
        "bic": 706.0739,
        "sabic": 658.6552,
        "entropy_r2": 0.9855,
        "g2": 62.3654,
        "x2": 92.6481,
        "df": 112,
        "icl": 708.4445,
        "awe": 825.0048,
    },
    3: {
        "n_parameters": 23,
        "bic": 697.1357,
        "sabic": 624.4270,
        "entropy_r2": 0.9257,
        "g2": 15.2617,
        "x2": 20.5034,
        "df": 104,
    },
}
"""Of the carcinoma table."""


def fitted(k: int, table: Any, **parameters: Any) -> Any:
    return mj.LatentClassAnalysis(k, random_state=0, **parameters).fit(table)


@pytest.mark.parametrize("k", PUBLISHED)
def test_the_statistics_of_the_carcinoma_table_are_the_published_ones(k: int, shared_data: Path) -> None:
    table = read(shared_data, "carcinoma")
    found = dict(fitted(k, table).fit_statistics(table))
    for name, value in PUBLISHED[k].items():
        assert found[name] == pytest.approx(value, abs=2e-4), name


def test_the_largest_residuals_of_two_classes_are_the_published_ones(shared_data: Path) -> None:
    table = read(shared_data, "carcinoma")
    found = fitted(2, table).bivariate_residuals(table).sort_values("residual", ascending=False)
    assert found.iloc[:2][["first", "second"]].to_numpy().tolist() == [["B", "E"], ["D", "F"]]
    np.testing.assert_allclose(found["residual"].iloc[:2], [8.87, 6.85], atol=5e-3)


def test_residuals_find_the_pairs_that_are_not_independent_within_classes() -> None:
    random = np.random.default_rng(0)
    z = random.random(2000) < 0.5
    table = pd.DataFrame(random.normal(3.0 * z[:, None], 1.0, (2000, 4)), columns=list("abcd"))
    table["b"] = table["a"] + random.normal(size=2000)
    for name in "efg":
        table[name] = np.where(random.random(2000) < np.where(z, 0.8, 0.2), "y", "n")
    table["g"] = np.where(random.random(2000) < 0.5, table["f"], table["g"])
    found = fitted(2, table).bivariate_residuals(table).sort_values("residual", ascending=False)
    assert {tuple(pair) for pair in found.iloc[:2][["first", "second"]].to_numpy()} == {("a", "b"), ("f", "g")}
    assert (found["residual"].iloc[3:] < 8).all()


def test_criteria_are_the_same_by_weights_and_agree_with_the_methods() -> None:
    table, _ = mixed(150)
    model = fitted(2, table)
    times = np.random.default_rng(0).integers(1, 4, 150)
    weighted = model.fit_statistics(table, times)
    repeated = model.fit_statistics(table.loc[np.repeat(np.arange(150), times)])
    for (name, value), (_, other) in zip(weighted, repeated, strict=True):
        assert value == (None if other is None else pytest.approx(other, rel=1e-12)), name
    plain = model.fit_statistics(table)
    for name in ("aic", "bic", "icl"):
        assert getattr(plain, name) == pytest.approx(getattr(model, name)(table), rel=1e-12)
    assert plain.df is None and plain.to_frame().shape == (20, 2) and "entropy_r2" in str(plain)


def test_one_class_has_no_separation_and_its_table_a_test() -> None:
    random = np.random.default_rng(1)
    rows = random.integers(0, 2, (300, 4))
    found = fitted(1, rows).fit_statistics(rows)
    assert found.entropy_r2 is None and found.classification_error == 0.0
    assert found.df == 16 - 1 - 4 and found.g2_p_value is not None and 0.001 < found.g2_p_value < 0.999


def test_a_saturated_model_has_negative_degrees_of_freedom_and_no_p_value() -> None:
    random = np.random.default_rng(1)
    rows = random.integers(0, 2, (300, 3))
    with pytest.warns(UserWarning, match="11 parameters, 4 more than"):
        found = fitted(3, rows).fit_statistics(rows)
    assert "not identified" in str(found)
    assert found.df == -4 and found.g2_p_value is None and found.x2_p_value is None


def test_incomplete_rows_are_told_by_the_margins_that_they_have() -> None:
    """Without classes and with cells missing, G2 is that of independence in the completed table."""
    random = np.random.default_rng(2)
    rows = random.integers(0, 2, (400, 2)).astype(float)
    rows[:100, 1] = np.nan  # monotone: the saturated table is known in closed form
    found = fitted(1, rows).fit_statistics(rows)
    first = np.bincount(rows[:, 0].astype(int)) / 400
    both = np.array([np.bincount(rows[(rows[:, 0] == a) & ~np.isnan(rows[:, 1]), 1].astype(int)) for a in (0, 1)])
    given = both / both.sum(axis=1, keepdims=True)
    saturated = 400 * first @ np.log(first) + np.sum(both * np.log(given))
    assert found.g2 == pytest.approx(2 * (saturated - fitted(1, rows).log_likelihood_), abs=1e-6)
    assert found.x2 is None


def test_classification_adds_up() -> None:
    table, _ = mixed(300)
    model = fitted(3, table)
    found = model.classification(table)
    q = model.predict_proba(table)
    np.testing.assert_allclose(found.assigned.sum(axis=1), 1.0)
    np.testing.assert_allclose(found.average_posteriors.sum(axis=1), 1.0)
    assert found.error == pytest.approx(1 - q.max(axis=1).mean(), abs=1e-12)
    modal = q.argmax(axis=1)
    np.testing.assert_allclose(found.average_posteriors[1], q[modal == 1].mean(axis=0), atol=1e-12)


def test_errors_are_those_of_the_information_and_edges_have_none(shared_data: Path) -> None:
    table = read(shared_data, "carcinoma")
    model = fitted(2, table)
    p = model.item_probabilities_
    at_edge = (p == 0) | (p == 1)
    assert at_edge.sum() == 10 and ((p > 1e-4) & (p < 1 - 1e-4))[~at_edge].all()
    errors = model.standard_errors(table)["item_probabilities"]
    np.testing.assert_array_equal(np.isnan(errors), at_edge)
    np.testing.assert_allclose(errors[:, ::2][~at_edge[:, ::2]], errors[:, 1::2][~at_edge[:, ::2]], rtol=1e-6)


def test_errors_do_not_depend_on_the_order_of_levels() -> None:
    """Also where the first level of an item is one that a class never gives."""
    random = np.random.default_rng(4)
    z = random.random(600) < 0.5
    answers = np.where(z[:, None], random.integers(1, 3, (600, 5)), random.integers(0, 3, (600, 5)))
    names = np.array(["a", "b", "c"])
    first, second = (pd.DataFrame(other[answers]) for other in (names, names[[2, 1, 0]]))
    one, other = fitted(2, first), fitted(2, second)
    found = one.standard_errors(first)["item_probabilities"].reshape(2, 5, 3)
    again = other.standard_errors(second)["item_probabilities"].reshape(2, 5, 3)[:, :, ::-1]
    assert not np.isnan(found).all(axis=2).any()
    np.testing.assert_allclose(found, again, rtol=2e-3)  # differences are about other numbers


def test_estimates_have_the_names_of_items_levels_and_covariates() -> None:
    random = np.random.default_rng(0)
    z = random.random(300) < 0.5
    table = pd.DataFrame(
        {"income": random.normal(2.0 * z), "vote": np.where(random.random(300) < 0.2 + 0.6 * z, "l", "r")}
    )
    table["visits"], table["age"] = random.poisson(1 + 3 * z), random.normal(z)
    items = table[["income", "vote", "visits"]]
    model = fitted(2, items, items={"visits": "count"}).fit(items, gating=table[["age"]])
    named = {
        "item_probabilities": ["vote=l", "vote=r"],
        "normal_means": ["income"],
        "normal_variances": ["income"],
        "count_rates": ["visits"],
        "gating_coef": ["Intercept", "age"],
    }
    tables = model.summary().tables
    for name, expected in named.items():
        assert np.shape(getattr(model, f"{name}_")) == (2, len(expected))
        assert model._entry_names(name) == expected
        assert tables[name].iloc[:, 0].tolist() == expected
    formula = mj.LatentClassAnalysis.from_formula("cbind(vote, visits) ~ age", table, n_components=2, random_state=0)
    assert formula._entry_names("gating_coef") == ["Intercept", "age"]
    binary = fitted(1, table[["vote"]])  # two levels and one item, then as many levels as items
    assert binary._entry_names("item_probabilities") == ["vote=l", "vote=r"]


def report_of(table: pd.DataFrame, folder: Path, k: str) -> str:
    """Return the page of a fit by the command line."""
    table.to_csv(folder / "table.csv", index=False)
    fit = ["fit", "latent-class-analysis", str(folder / "table.csv"), "--k", k, "--out", str(folder / "run"), "--quiet"]
    assert main(fit) == 0
    return (folder / "run" / "report.html").read_text(encoding="utf-8")


def test_the_report_speaks_of_classes(tmp_path: Path) -> None:
    page = report_of(mixed(150)[0], tmp_path, "1:2")
    assert "number of classes" in page and "lasss" not in page
    told = (tmp_path / "run" / "tables" / "criterion.csv").read_text()
    criteria = "AIC,BIC,SABIC,CAIC,ICL,Entropy R\u00b2,Smallest"
    assert told.startswith(f"Classes,Log-likelihood,Parameters,{criteria},Starts,At the best\n")
    section = page.split('<section id="criterion"')[1].split("</section>")[0]
    heads = re.findall(r"<th[^>]*>([^<]*)</th>", section.split("<tbody>")[0])
    shown = ["Classes", "Log-likelihood", "Parameters", "AIC", "BIC", "Entropy R\u00b2", "Smallest"]
    assert heads == shown and "The copies below the table hold every criterion" in section


@pytest.mark.parametrize("case", ["a class without complete rows", "a class of few rows"])
def test_the_report_draws_what_there_is(case: str, tmp_path: Path) -> None:
    if case == "a class of few rows":  # beside one that hardly varies
        random = np.random.default_rng(0)
        wide = random.uniform(0, 1000, (4, 2))
        table = pd.DataFrame(np.concatenate([random.normal(500, 0.01, (2000, 2)), wide]), columns=["a", "b"])
    else:
        table = pd.DataFrame({"a": [np.nan, 2, 3], "b": list("xyy"), "c": [4, 1, 1], "d": ["n", "n", None]})
    assert '<section id="search"' in report_of(table, tmp_path, "2")


def test_the_report_and_its_copies_have_all_estimates_by_name(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    z = random.random(200) < 0.5
    table = pd.DataFrame({f"q{j}": np.where(random.random(200) < 0.2 + 0.6 * z, "yes", "no") for j in range(6)})
    table["income"] = random.normal(2.0 * z)
    page = report_of(table, tmp_path, "2")
    copied = pd.read_csv(tmp_path / "run" / "tables" / "estimates.csv")["Parameter"].tolist()
    levels = [f"item probability of q{j}={level}" for j in range(6) for level in ("no", "yes")]
    expected = ["Weight", *levels, "normal mean of income", "normal variance of income"]
    assert copied == [name for name in expected for _ in range(2)]
    groups = page.count('<tr class="group">') + page.count('<tr class="more group">')  # the later ones are folded
    assert groups == 1 + 6 + 2 and "six others are in the copies" in page  # of an item of yes and no the share of yes


@pytest.mark.parametrize(("name", "k"), [("carcinoma", 4), ("zoo", 5), ("votes", 5)])
def test_what_comes_to_an_edge_is_there_and_the_others_are_maxima(name: str, k: int, shared_data: Path) -> None:
    """Of a probability of zero EM would make nothing more; of any other, its count is what the class expects."""
    table = read(shared_data, name)
    model = mj.LatentClassAnalysis(k, random_state=0).fit(table)
    codes = model.items_.coded(table.to_numpy(dtype=object))
    q, first = model.predict_proba(table), 0
    assert (model.item_probabilities_ == 0).sum() > 4
    for j, size in enumerate(map(len, model.items_.levels)):
        there = ~np.isnan(codes[:, j])
        counts = q[there].T @ (codes[there, j][:, None] == np.arange(size))
        p = model.item_probabilities_[:, first : first + size]
        expected = counts.sum(axis=1, keepdims=True) * p
        np.testing.assert_allclose(counts, expected, atol=0.02)
        assert not ((p > 0) & (p < 1e-12)).any()
        for c, level in np.argwhere(p == 0):
            moved = model.item_probabilities_.copy()
            moved[c, first : first + size] = (p[c] + 1e-7 * (np.arange(size) == level)) / (1 + 1e-7)
            other = copy(model)
            other.item_probabilities_ = moved
            assert other.score(table) <= model.score(table) + 1e-12
        first += size


def test_robust_errors_are_those_of_the_sandwich_by_hand() -> None:
    table, _ = mixed(400)
    model = mj.LatentClassAnalysis(1, items={"visits": "count"}, random_state=0).fit(table)
    robust = model.standard_errors(table, method="robust")
    visits = table["visits"].dropna().to_numpy()
    assert robust["count_rates"][0, 0] == pytest.approx(visits.std() / np.sqrt(len(visits)), rel=1e-4)
    size = table["size"].dropna().to_numpy()
    assert robust["normal_means"][0, 0] == pytest.approx(size.std() / np.sqrt(len(size)), rel=1e-4)
    agrees = table["agrees"].dropna().astype(float).to_numpy()
    assert robust["item_probabilities"][0, 4] == pytest.approx(agrees.std() / np.sqrt(len(agrees)), rel=1e-4)


def test_errors_agree_where_the_model_is_true() -> None:
    table, _ = mixed(800)
    model = mj.LatentClassAnalysis(2, items={"visits": "count"}, random_state=0).fit(table)
    found = {how: model.standard_errors(table, method=how) for how in ("information", "robust")}
    found["bootstrap"] = model.standard_errors(table, method="bootstrap", n_resamples=60)
    for name, errors in found["information"].items():
        known = np.isfinite(errors)
        for how in ("robust", "bootstrap"):
            np.testing.assert_allclose(found[how][name][known], errors[known], rtol=0.4)
    times = np.random.default_rng(0).integers(0, 3, 800)
    weighted = model.standard_errors(table, times, method="robust")["count_rates"]
    repeated = model.standard_errors(table.loc[np.repeat(np.arange(800), times)], method="robust")["count_rates"]
    np.testing.assert_allclose(weighted, repeated, rtol=1e-6)
    with pytest.raises(ValueError, match="method must be"):
        model.standard_errors(table, method="sandwich")


def test_residuals_of_a_number_and_a_categorical_item() -> None:
    """Independent within the one class, and not: an F-like share of variance by hand."""
    random = np.random.default_rng(0)
    group = random.choice(["a", "b", "c"], 300)
    table = pd.DataFrame({"group": group, "number": random.normal(size=300) + 0.5 * (group == "b")})
    model = mj.LatentClassAnalysis(1, random_state=0).fit(table)
    found = model.bivariate_residuals(table)
    between = sum(
        (group == g).sum() * (table["number"][group == g].mean() - table["number"].mean()) ** 2 for g in "abc"
    )
    total = ((table["number"] - table["number"].mean()) ** 2).sum()
    assert found["df"][0] == 2 and found["statistic"][0] == pytest.approx(300 * between / total)


@pytest.mark.parametrize("gated", [False, True])
def test_numbers_of_classes_are_compared_in_one_table(gated: bool) -> None:
    table, z = mixed(300)
    rows = {"gating": z + np.random.default_rng(0).normal(size=300)} if gated else {}
    found = mj.select(mj.LatentClassAnalysis(random_state=0), table, n_components=[1, 2], fit_params=rows)
    told = mj.LatentClassAnalysis.comparison(found, table, **rows)
    assert list(told["classes"]) == [1, 2] and {"sabic", "caic", "entropy_r2", "smallest_share"} <= set(told.columns)
    for i, fit in enumerate(found.estimators):
        assert told["bic"][i] == pytest.approx(fit.bic(table, **rows), rel=1e-12)
        assert told["log_likelihood"][i] == pytest.approx(fit.log_likelihood_, rel=1e-9)


def test_a_round_has_fewer_starts_where_tables_are_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight, not twenty-four, which find four classes of 80 items."""
    monkeypatch.setattr("majorant.search.effort.BULK", 2e5)
    draws, own = np.random.default_rng(0), np.arange(2000) % 4
    X = (draws.random((2000, 80)) < draws.uniform(0.05, 0.95, (4, 80))[own]).astype(int)
    model = mj.LatentClassAnalysis(4, effort="fast", random_state=0).fit(X)
    assert model.search_.note.startswith("8 starts were compared")
    assert len({*zip(own.tolist(), model.predict(X).tolist(), strict=True)}) == 4


@pytest.mark.parametrize("kind", ["normal", "count"])
def test_a_summary_of_many_numbers_shows_those_that_tell_classes_apart(kind: str) -> None:
    random = np.random.default_rng(0)
    z, scale = random.random((300, 1)) < 0.4, np.where(np.arange(26) < 20, 1.0, 50.0)  # of the wide ones, none tells
    rates = np.where((np.arange(26) < 20) & z, 30.0, 20.0 * scale)
    rows = random.poisson(rates) if kind == "count" else random.normal(rates, scale)
    names = [f"v{j}" for j in range(26)]
    model = mj.LatentClassAnalysis(2, items=kind, effort="fast", random_state=0).fit(pd.DataFrame(rows, columns=names))
    estimate = "count_rates" if kind == "count" else "normal_means"
    shown = model.summary().tables[estimate]
    assert shown.iloc[:, 0].tolist() == names[:20]
    np.testing.assert_array_equal(shown[["1", "2"]].to_numpy().T, getattr(model, f"{estimate}_")[:, :20])
    told = f"The 20 of 26 {estimate.replace('_', ' ')} that differ most between the classes, in standard deviations"
    assert told in " ".join(str(model.summary()).split())


def test_a_summary_of_many_answers_shows_those_that_tell_classes_apart() -> None:
    random = np.random.default_rng(0)
    z = random.random(300) < 0.4
    table = pd.DataFrame({f"item_{j}": random.integers(0, 4, 300) for j in range(8)}).astype(str)
    table["telling"] = np.where(random.random(300) < np.where(z, 0.9, 0.1), "yes", "no")
    model = mj.LatentClassAnalysis(2, random_state=0).fit(table)
    spread = np.ptp(model.item_probabilities_, axis=0)[:32].reshape(8, 4)
    shown = model.summary().tables["item_probabilities"]
    items = np.sort(np.argsort(-spread.max(axis=1))[:5])  # with all levels; less differs in the other item
    assert shown.iloc[:, 0].tolist() == [f"item_{j}={level}" for j in items for level in range(4)]
    np.testing.assert_allclose(np.abs(shown["1"] - shown["2"]), spread[items].ravel())
    assert "The 20 of 33 item probabilities that differ most between the classes" in str(model.summary())
