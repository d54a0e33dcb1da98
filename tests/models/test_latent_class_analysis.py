"""Latent class analysis: reference log-likelihoods, items of every kind, missing cells, weights, and clear refusals."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_iris

import majorant as mj

TRAITS = [name + side for side in "GB" for name in ("MORAL", "CARES", "KNOW", "LEAD", "DISHON", "INTEL")]
BEST = {
    "carcinoma": {2: -317.2568, 3: -293.7050, 4: -289.2858, 5: -286.8843},
    "cheating": {2: -440.0271, 3: -436.2356},
    "election complete": {3: -16714.6591, 4: -16350.5889, 5: -16047.8278, 6: -15864.6783, 7: -15701.3417},
    "election": {2: -22127.9133, 3: -21311.5357, 4: -20837.3139, 5: -20494.4586, 6: -20270.3739, 8: -19922.5289},
    "votes": {3: -2959.4391, 4: -2892.3989, 5: -2830.4348, 6: -2796.8843},
    "zoo": {4: -568.8220, 5: -537.6107, 7: -483.4725},
}
"""Largest log-likelihoods that are known of published tables, by number of classes."""
N_PARAMETERS = {("carcinoma", 3): 23, ("cheating", 2): 9, ("election", 3): 110}


def read(folder: Path, name: str) -> Any:
    file = {"votes": "mlbench_HouseVotes84", "zoo": "mlbench_Zoo"}.get(name, f"poLCA_{name.split()[0]}")
    table = pd.read_csv(folder / "latentclass" / f"{file}.csv", na_values=["NA"])
    items = {"cheating": table.columns[:4], "votes": table.columns[1:], "zoo": table.columns[:-1]}
    table = table[list(TRAITS if name.startswith("election") else items.get(name, table.columns))]
    return table.dropna() if name == "election complete" else table


@pytest.mark.parametrize(("name", "k"), [(name, k) for name, known in BEST.items() for k in known])
def test_the_reference_log_likelihood_is_reached(name: str, k: int, shared_data: Path, seed: int) -> None:
    model = mj.LatentClassAnalysis(k, random_state=seed).fit(read(shared_data, name))
    assert model.converged_ and model.regular_
    assert abs(model.log_likelihood_ - BEST[name][k]) < 1.5e-4  # the references have four digits
    assert N_PARAMETERS.get((name, k), model.n_parameters_) == model.n_parameters_


def mixed(n: int = 300, seed: int = 0) -> tuple[Any, Any]:
    """Items of every kind of two classes, some cells missing."""
    random = np.random.default_rng(seed)
    z = (random.random(n) < 0.4).astype(int)
    table = pd.DataFrame(
        {
            "colour": random.permutation(["red", "green", "blue"])[
                np.minimum((random.random(n) * (2 + z)).astype(int), 2)
            ],
            "agrees": random.random(n) < np.where(z, 0.9, 0.2),
            "grade": random.integers(1, 4, n) + z,
            "size": random.normal(3 * z, 1 + z),
            "visits": random.poisson(2 + 5 * z),
        }
    ).astype({"agrees": object, "grade": float, "visits": float})
    for j, column in enumerate(table):
        table.loc[random.random(n) < 0.05 * (j + 1), column] = None if table[column].dtype == object else np.nan
    return table, z


def by_hand(model: Any, table: Any) -> float:
    """The log-likelihood, written out cell by cell."""
    items, total = model.items_, 0.0
    codes = items.coded(table.to_numpy(dtype=object))
    for row in codes:
        density = model.weights_.copy()
        for block, i, j in ((own, i, j) for own in items.blocks for i, j in enumerate(own.columns)):
            x = row[j]
            if np.isnan(x):
                continue
            if items.kinds[j] == "categorical":
                density *= model.item_probabilities_[:, block.at(i)][:, int(x)]
            elif items.kinds[j] == "normal":
                v = model.normal_variances_[:, i]
                density *= np.exp(-((x - model.normal_means_[:, i]) ** 2) / 2 / v) / np.sqrt(2 * np.pi * v)
            else:
                rate = model.count_rates_[:, i]
                density *= np.exp(-rate) * rate**x / np.prod(np.arange(1, x + 1))
        total += np.log(density.sum())
    return float(total)


@pytest.mark.parametrize("variances", ["own", "shared"])
def test_items_of_every_kind_have_the_likelihood_that_is_written_down(variances: str) -> None:
    table, z = mixed()
    model = mj.LatentClassAnalysis(2, items={"visits": "count"}, variances=variances, random_state=0).fit(table)
    assert model.items_.kinds == ("categorical", "categorical", "categorical", "normal", "count")
    assert model.items_.levels[:3] == (("blue", "green", "red"), (False, True), (1, 2, 3, 4))
    assert model.log_likelihood_ == pytest.approx(by_hand(model, table), rel=1e-12)
    assert max((model.predict(table) == z).mean(), (model.predict(table) != z).mean()) > 0.9
    assert model.n_parameters_ == 1 + 2 * (2 + 1 + 3) + 2 + (2 if variances == "own" else 1) + 2


def test_numbers_and_frames_of_any_library_are_read_alike() -> None:
    table, _ = mixed()
    kinds = {"visits": "count"}
    model = mj.LatentClassAnalysis(2, items=kinds, random_state=0).fit(table)
    rows = table.astype(object).where(table.notna(), None)
    other = mj.LatentClassAnalysis(2, items=kinds, random_state=0).fit(pl.DataFrame(rows.to_dict("list")))
    assert other.items_ == model.items_ and other.log_likelihood_ == model.log_likelihood_
    ordered = table.assign(colour=pd.Categorical(table["colour"], ["red", "green", "blue", "never met"]))
    assert mj.LatentClassAnalysis(2, random_state=0).fit(ordered).items_.levels[0] == ("red", "green", "blue")


def test_weights_are_repeats_and_rows_without_answers_do_not_count() -> None:
    table, _ = mixed(80)
    times = np.random.default_rng(1).integers(0, 4, 80)
    weighted = mj.LatentClassAnalysis(2, random_state=0).fit(table, sample_weight=times)
    repeated = table.loc[np.repeat(np.arange(80), times)]
    plain = mj.LatentClassAnalysis(2, random_state=0).fit(repeated)
    assert weighted.log_likelihood_ == plain.log_likelihood_ and weighted.items_ == plain.items_
    np.testing.assert_array_equal(weighted.item_probabilities_, plain.item_probabilities_)
    empty = pd.concat([repeated, repeated.iloc[:5].mask(np.ones((5, 5), dtype=bool))])
    more = mj.LatentClassAnalysis(2, random_state=0).fit(empty)
    assert more.log_likelihood_ == plain.log_likelihood_ and more.n_rows_ == plain.n_rows_ == times.sum()
    assert more.bic(empty) == pytest.approx(plain.bic(repeated), rel=1e-14)
    np.testing.assert_allclose(more.predict_proba(empty)[-5:], np.tile(more.weights_, (5, 1)), rtol=1e-12)


def test_the_order_of_rows_does_not_matter() -> None:
    table, _ = mixed(150)
    order = np.random.default_rng(2).permutation(150)
    first, second = (mj.LatentClassAnalysis(3, random_state=0).fit(rows) for rows in (table, table.iloc[order]))
    assert first.log_likelihood_ == second.log_likelihood_
    np.testing.assert_array_equal(first.predict_proba(table)[order], second.predict_proba(table.iloc[order]))


def test_constant_items_and_unused_levels_have_no_parameters() -> None:
    random = np.random.default_rng(0)
    rows = pd.DataFrame(random.integers(0, 2, (60, 3)), columns=list("abc"))
    plain = mj.LatentClassAnalysis(2, random_state=0).fit(rows)
    constant = mj.LatentClassAnalysis(2, random_state=0).fit(rows.assign(d="always"))
    unused = mj.LatentClassAnalysis(2, random_state=0).fit(2 * rows)
    for other in (constant, unused):
        assert other.n_parameters_ == plain.n_parameters_ == 7
        assert other.log_likelihood_ == pytest.approx(plain.log_likelihood_, abs=1e-7)
    assert np.isfinite(constant.item_probabilities_).all()


def test_iris_profiles_are_those_of_the_diagonal_mixture() -> None:
    rows = load_iris().data
    three = mj.LatentClassAnalysis(3, items="normal", random_state=0).fit(rows)
    assert three.log_likelihood_ == pytest.approx(-306.8605, abs=1e-3)
    four = mj.LatentClassAnalysis(4, items="normal", random_state=0).fit(rows)
    assert four.regular_ and four.log_likelihood_ == pytest.approx(-264.8476, abs=1e-3)


def test_draws_are_of_the_fit() -> None:
    table, _ = mixed(2000)
    model = mj.LatentClassAnalysis(2, items={"visits": "count"}, random_state=0).fit(table)
    rows, z = model.sample(4000)
    again = mj.LatentClassAnalysis(2, items={"visits": "count"}, random_state=0).fit(
        pd.DataFrame(rows, columns=table.columns)
    )
    np.testing.assert_allclose(again.weights_, model.weights_, atol=0.05)
    np.testing.assert_allclose(again.item_probabilities_, model.item_probabilities_, atol=0.08)
    np.testing.assert_allclose(again.count_rates_, model.count_rates_, rtol=0.08)
    assert set(rows[:, 0]) == {"red", "green", "blue"} and set(z) == {0, 1}


def test_a_saved_fit_reads_text_as_before(tmp_path: Path) -> None:
    table, _ = mixed()
    model = mj.LatentClassAnalysis(2, random_state=0).fit(table)
    model.save(tmp_path / "model.majorant")
    again = mj.load(tmp_path / "model.majorant")
    assert again.items_ == model.items_
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))


def test_a_file_has_the_levels_of_all_its_rows(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    z = random.random(40_000) < 0.5
    answers = random.integers(0, 3, (40_000, 6)) + np.where(z[:, None], random.integers(0, 2, (40_000, 6)), 0)
    answers[-1] = 7  # so rare that a sample misses it
    frame = pl.DataFrame(answers, schema=list("abcdef"))
    frame.write_parquet(tmp_path / "rows.parquet")
    streamed = mj.LatentClassAnalysis(2, random_state=0).fit(mj.open_rows(tmp_path / "rows.parquet"))
    assert streamed.items_.levels[0] == (0, 1, 2, 3, 7)
    whole = mj.LatentClassAnalysis(2, random_state=0).fit(frame)
    assert streamed.log_likelihood_ == pytest.approx(whole.log_likelihood_, rel=1e-7)


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a kind that is none": ([[0, 1], [1, 0]], {"items": "ordered"}, "items must be"),
    "a column that is not there": ([[0, 1], [1, 0]], {"items": {"x9": "count"}}, "'x9' that is not there"),
    "too few kinds": ([[0, 1], [1, 0]], {"items": ["count"]}, "1 kinds, but X has 2 columns"),
    "text as numbers": (pd.DataFrame({"a": ["u", "v"]}), {"items": "normal"}, "'a' holds text such as 'u'"),
    "a count below zero": ([[-1.0], [2.0]], {"items": "count"}, "whole numbers from 0; got -1"),
    "a constant number": ([[1.5], [1.5], [1.5]], {"items": "normal"}, "constant, 1.5"),
    "a mixed column": (pd.DataFrame({"a": ["u", 1.0]}), {}, r"number \(1.0\) and text \('u'\)"),
    "no answers": (np.full((4, 2), np.nan), {}, "no row has an answer"),
    "a column without answers": ([[1.0, np.nan], [0.0, np.nan]], {}, "x2|column 1|feature"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_fitted_is_refused_in_words(case: str) -> None:
    rows, parameters, words = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=words):
        mj.LatentClassAnalysis(1, **parameters).fit(rows)


def test_a_level_that_the_fit_has_not_seen_is_named_or_taken_for_missing() -> None:
    table, _ = mixed()
    model = mj.LatentClassAnalysis(2, random_state=0).fit(table)
    strange = table.iloc[:3].assign(colour=["red", "mauve", "blue"])
    with pytest.raises(ValueError, match=r"item 'colour' is 'mauve' in row 1.*'blue', 'green', 'red'"):
        model.predict(strange)
    model.set_params(unseen="missing")
    expected = model.predict_proba(strange.assign(colour=["red", None, "blue"]))
    np.testing.assert_array_equal(model.predict_proba(strange), expected)


def test_small_tables_have_the_maximum_of_a_fine_search() -> None:
    """Three binary items and two classes are saturated: the fit reproduces the table where it can."""
    random = np.random.default_rng(5)
    patterns = np.array(list(itertools.product([0, 1], repeat=3)))
    p = np.array([[0.9, 0.8, 0.85], [0.2, 0.3, 0.1]])
    exact = sum(w * np.prod(np.where(patterns, q, 1 - q), axis=1) for w, q in zip([0.6, 0.4], p, strict=True))
    model = mj.LatentClassAnalysis(2, random_state=random.integers(100)).fit(patterns, sample_weight=1000 * exact)
    saturated = 1000 * float(exact @ np.log(exact))
    assert model.log_likelihood_ == pytest.approx(saturated, abs=1e-5)
    np.testing.assert_allclose(model.weights_, [0.6, 0.4], atol=1e-3)


def test_a_formula_takes_items_and_covariates_from_a_table(tmp_path: Path) -> None:
    table, z = mixed()
    table["age"] = z + np.random.default_rng(1).normal(size=len(z))
    table["sex"] = np.where(np.arange(len(z)) % 3, "f", "m")
    model = mj.LatentClassAnalysis.from_formula(
        "cbind(colour, agrees, size) ~ age + sex", table, n_components=2, random_state=0
    )
    gating = np.column_stack([table["age"], table["sex"] == "m"])
    direct = mj.LatentClassAnalysis(2, random_state=0).fit(table[["colour", "agrees", "size"]], gating=gating)
    assert model.log_likelihood_ == pytest.approx(direct.log_likelihood_, rel=1e-12)
    assert model.items_.names == ("colour", "agrees", "size")
    rows = model.rows_of(table.iloc[:20])
    np.testing.assert_array_equal(model.predict(**rows), model.predict(**model.rows_of(table))[:20])
    model.save(tmp_path / "model.majorant")
    again = mj.load(tmp_path / "model.majorant")
    np.testing.assert_array_equal(
        again.predict_proba(**again.rows_of(table)), model.predict_proba(**model.rows_of(table))
    )
    plain = mj.LatentClassAnalysis.from_formula("cbind(colour, agrees) ~ 1", table, n_components=2, random_state=0)
    assert set(plain.rows_of(table)) == {"X"} and plain.n_parameters_ == 7


@pytest.mark.parametrize(
    ("formula", "words"),
    [("~ age", "names no items"), ("cbind(a, zz) ~ 1", "zz"), ("cbind(a, b) ~ age | b", "leave out")],
)
def test_formulas_that_cannot_be_fitted_are_refused_in_words(formula: str, words: str) -> None:
    table = pd.DataFrame({"a": [0, 1, 0, 1], "b": [1, 1, 0, 0], "age": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(ValueError, match=words):
        mj.LatentClassAnalysis.from_formula(formula, table, n_components=1)
    with pytest.raises(ValueError, match="by no formula"):
        mj.LatentClassAnalysis(1).fit(table[["a", "b"]]).rows_of(table)


def test_covariates_of_cheating_have_the_published_coefficients(shared_data: Path) -> None:
    table = pd.read_csv(shared_data / "latentclass" / "poLCA_cheating.csv", na_values=["NA"]).dropna()
    model = mj.LatentClassAnalysis.from_formula(
        "cbind(LIEEXAM, LIEPAPER, FRAUD, COPYEXAM) ~ GPA", table, n_components=2, random_state=0
    )
    assert model.log_likelihood_ == pytest.approx(-429.6384, abs=1.5e-4)
    errors = model.standard_errors(**model.rows_of(table))["gating_coef"]
    assert errors[1, 1] / model.gating_scale_[0] == pytest.approx(0.2686, abs=2e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_file_of_few_patterns_gives_the_answer_of_memory_to_the_last_bit(weighted: bool, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    p = np.where(random.random(20_000) < 0.4, 0.8, 0.3)
    rows = (random.random((20_000, 8)) < p[:, None]).astype(float)
    rows[random.random(rows.shape) < 0.05] = np.nan
    rows[::100] = np.nan  # no answer at all
    weights = random.integers(0, 4, 20_000).astype(float) if weighted else None
    np.save(tmp_path / "rows.npy", rows)
    there = mj.LatentClassAnalysis(3, random_state=0).fit(mj.open_rows(tmp_path / "rows.npy"), sample_weight=weights)
    here = mj.LatentClassAnalysis(3, random_state=0).fit(rows, sample_weight=weights)
    assert there.log_likelihood_ == here.log_likelihood_ and there.n_rows_ == here.n_rows_
    np.testing.assert_array_equal(there.item_probabilities_, here.item_probabilities_)
    assert there.search_.starts == here.search_.starts
