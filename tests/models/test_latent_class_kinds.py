"""Normal items that are correlated within a class, counts of three kinds, and every kind beside every other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import majorant as mj
from majorant.models.latent_class_analysis.kinds import KINDS

REFERENCE = pd.read_csv(Path(__file__).parents[1] / "reference" / "mclust_profiles.csv").set_index(["model", "k"])[
    "bic"
]
"""BIC of mclust's fits of iris, 2 log L - p log n, by the script of the same name."""
MODELS: dict[str, dict[str, Any]] = {
    "EEI": {"variances": "shared"},
    "VVI": {},
    "EEE": {"variances": "shared", "correlated": "all"},
    "VVV": {"correlated": "all"},
}


def drawn(n: int = 300) -> Any:
    """An item of every kind and two that are correlated within each of two classes, some cells missing."""
    random = np.random.default_rng(0)
    z = random.random(n) < 0.4
    x = random.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], n) * [2.0, 3.0] + np.where(z, 3.0, 0.0)[:, None]
    table = pd.DataFrame({"height": x[:, 0], "weight": x[:, 1], "age": random.normal(np.where(z, 40, 30), 5)})
    table["visits"] = random.negative_binomial(2, np.where(z, 0.2, 0.6)).astype(float)
    table["calls"] = random.poisson(np.where(z, 4, 1)).astype(float)
    table["vote"] = np.where(random.random(n) < np.where(z, 0.8, 0.3), "yes", "no")
    table["rank"] = random.integers(1, 4, n) + z.astype(float)
    table["trips"] = np.where(random.random(n) < 0.3, 0.0, random.poisson(np.where(z, 6, 2)))
    for j, name in enumerate(table):
        table.loc[random.random(n) < 0.05 * j, name] = None if name == "vote" else np.nan
    return table


ITEMS = {"visits": "negative_binomial", "calls": "count", "rank": "ordinal", "trips": "zero_inflated_poisson"}


@pytest.mark.parametrize(("name", "k"), REFERENCE.index.to_list())
def test_profiles_have_the_bic_of_mclust_or_a_better_one(name: str, k: int) -> None:
    X = load_iris().data
    model = mj.LatentClassAnalysis(k, items="normal", random_state=0, **MODELS[name]).fit(X)
    assert model.regular_
    bic = -model.bic(X)
    assert bic > REFERENCE[name, k] - 5e-4
    assert bic < REFERENCE[name, k] + 1.0


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(("name", "covariances"), [("VVI", "diag"), ("EEE", "tied"), ("VVV", "full")])
def test_profiles_are_gaussian_mixtures(name: str, covariances: str, k: int) -> None:
    X = load_iris().data
    model = mj.LatentClassAnalysis(k, items="normal", random_state=0, **MODELS[name]).fit(X)
    other = mj.GaussianMixture(k, covariance_type=covariances, random_state=0).fit(X)
    assert model.log_likelihood_ == pytest.approx(other.log_likelihood_, abs=1e-6)
    assert model.n_parameters_ == other.n_parameters_
    np.testing.assert_allclose(model.normal_means_, other.means_, atol=1e-3)


def test_correlated_items_of_units_far_apart_and_gaps_are_fitted_alike() -> None:
    table = drawn()[["height", "weight", "age"]]
    model = mj.LatentClassAnalysis(2, correlated=["height", "weight"], random_state=0).fit(table)
    moved = table * [1e6, 1e-6, 1.0] + [1e8, 0.0, 0.0]
    other = mj.LatentClassAnalysis(2, correlated=[1, 0], random_state=0).fit(moved)
    n = table.notna().sum()
    shift = n["height"] * np.log(1e6) - n["weight"] * np.log(1e6)
    assert other.log_likelihood_ == pytest.approx(model.log_likelihood_ - shift, abs=1e-4)
    assert model.correlated_covariances_.shape == (2, 2, 2)
    correlation = model.correlated_covariances_ / np.sqrt(
        np.einsum("kii,kjj->kij", model.correlated_covariances_, model.correlated_covariances_)
    )
    np.testing.assert_allclose(correlation[:, 0, 1], 0.7, atol=0.15)


def by_hand(model: Any, table: Any) -> float:
    """The log-likelihood, written out row by row."""
    codes, total = model.items_.coded(table.to_numpy(dtype=object)), 0.0
    names = list(table)
    for row in codes:
        x = dict(zip(names, row.tolist(), strict=True))
        value = np.log(model.weights_)
        for k in range(len(value)):
            there = [j for j, name in enumerate(("height", "weight")) if not np.isnan(x[name])]
            if there:
                mean, covariance = model.body_means_[k], model.body_covariances_[k]
                own = [[x["height"], x["weight"]][j] for j in there]
                value[k] += stats.multivariate_normal.logpdf(own, mean[there], covariance[np.ix_(there, there)])
            r, size = model.negative_binomial_rates_[k, 0], model.negative_binomial_sizes_[k, 0]
            mean, p = model.zero_inflated_poisson_means_[k, 0], model.zero_inflated_poisson_inflations_[k, 0]
            of_item = {
                "age": stats.norm(model.normal_means_[k, 0], np.sqrt(model.normal_variances_[k, 0])).logpdf,
                "visits": stats.nbinom(size, size / (size + r)).logpmf,
                "calls": stats.poisson(model.count_rates_[k, 0]).logpmf,
                "trips": lambda x, p=p, mean=mean: np.log(
                    p * (x == 0) + (1 - p) * stats.poisson(mean / (1 - p)).pmf(x)
                ),
                "vote": lambda c, k=k: np.log(model.item_probabilities_[k, int(c)]),
                "rank": lambda c, k=k: np.log(model.ordinal_probabilities_[k, int(c)]),
            }
            value[k] += sum(f(x[name]) for name, f in of_item.items() if not np.isnan(x[name]))
        total += np.logaddexp.reduce(value)
    return float(total)


def test_every_kind_beside_every_other() -> None:
    table = drawn()
    settings: dict[str, Any] = {"items": ITEMS, "correlated": {"body": ["height", "weight"]}}
    model = mj.LatentClassAnalysis(2, random_state=0, **settings).fit(table)
    assert set(model.items_.kinds) == set(KINDS)
    assert model.items_.sentence.endswith(
        "1 negative binomial count (visits); 1 zero-inflated count (trips); 2 correlated normal items (height, weight)"
    )
    assert by_hand(model, table) == pytest.approx(model.log_likelihood_, abs=1e-6)
    profile = model.class_profile(table).to_frame()
    assert list(dict.fromkeys(profile["item"])) == list(table)
    assert (profile["low"] < profile["estimate"]).all()
    pairs = model.bivariate_residuals(table)
    assert len(pairs) == 8 * 7 // 2 - 1  # the correlation of height and weight is a part of the model
    errors = model.standard_errors(table)
    assert all(np.isfinite(values).all() for values in errors.values())
    assert model._entry_names("body_covariances")[1] == "height, weight"
    rows, _ = model.sample(20)
    assert rows.shape == (20, 8)
    again = mj.LatentClassAnalysis(2, random_state=0, **settings).fit(pd.concat([table, table]))
    doubled = mj.LatentClassAnalysis(2, random_state=0, **settings).fit(table, sample_weight=np.full(len(table), 2))
    assert again.log_likelihood_ == doubled.log_likelihood_


def test_overdispersed_counts_end_as_poisson_where_they_are() -> None:
    random = np.random.default_rng(1)
    X = random.poisson(np.where(random.random(400) < 0.5, 2.0, 12.0)[:, None], (400, 3)).astype(float)
    model = mj.LatentClassAnalysis(2, items="negative_binomial", random_state=0).fit(X)
    plain = mj.LatentClassAnalysis(2, items="count", random_state=0).fit(X)
    assert model.log_likelihood_ > plain.log_likelihood_ - 1e-3
    np.testing.assert_allclose(model.negative_binomial_rates_, plain.count_rates_, atol=0.1)


@pytest.mark.parametrize(
    ("correlated", "items", "said"),
    [
        ("some", "auto", "correlated must be one of 'all'"),
        ("all", "categorical", "needs two normal items or more; X has 0"),
        (["a"], "auto", "needs two items or more"),
        (["a", "d"], "auto", "names a column 'd' that is not there"),
        (["a", "b"], {"a": "count"}, "names item 'a', which is count"),
        ({"normal": ["a", "b"]}, "auto", "names a block 'normal'"),
        ({"one": ["a", "b"], "two": ["b", "c"]}, "auto", "none of which is in another block"),
        ({"one": "ab"}, "auto", "must list the items of block 'one'"),
    ],
)
def test_blocks_that_cannot_be_are_refused(correlated: Any, items: Any, said: str) -> None:
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 40, (60, 3)).astype(float), columns=list("abc"))
    with pytest.raises((ValueError, TypeError), match=said):
        mj.LatentClassAnalysis(2, items=items, correlated=correlated).fit(X)


def test_a_normal_item_that_collapses_is_named_with_its_class() -> None:
    random = np.random.default_rng(0)
    table = pd.DataFrame({"vote": random.integers(1, 4, 400), "children": np.repeat([0.0, 5.5], [100, 300])})
    table.loc[100:, "children"] += random.normal(size=300)
    with pytest.warns(ConvergenceWarning, match="items={'children': 'categorical'}"):
        model = mj.LatentClassAnalysis(2, random_state=0).fit(table)
    collapsed = 1 + int(model.normal_variances_[:, 0].argmin())
    assert model.degeneracy_ == (
        f"class {collapsed} (of 2) has hardly any variance in normal item 'children' "
        "(children holds one value in 25% of the rows)"
    )
    assert "use fewer classes" in str(model.summary())
