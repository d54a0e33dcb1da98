"""Many equal rows: a component of them alone has no noise, and what that rule leaves may be one component twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import majorant as mj

CASES: dict[str, tuple[Any, float, int]] = {
    "full": (mj.GaussianMixture(2, random_state=0), 0.8, 0),
    "spherical": (mj.GaussianMixture(2, covariance_type="spherical", random_state=0), 0.8, 0),
    "gated": (mj.GaussianMixture(2, random_state=0), 0.8, 0),
    "states": (mj.HiddenMarkovModel(2, random_state=0, effort="fast"), 0.9, 0),
}


@pytest.mark.parametrize("case", CASES)
def test_one_component_twice_is_no_regular_solution(case: str) -> None:
    model, share, seed = CASES[case]
    draws = np.random.default_rng(seed)
    x, beside = draws.normal(size=(200, 1)), draws.normal(size=(200, 1))
    equal = draws.permutation(200) < 200 * share
    x[equal] = 3.3
    given = {"gating": beside} if case == "gated" else {}
    with pytest.warns(ConvergenceWarning, match="No regular solution was found: the covariance of .* collapses"):
        model.fit(x, **given)
    labels = model.predict(x, **given)
    assert f"(x0 holds one value in {share:.0%} of the rows)" in model.degeneracy_.replace("x1", "x0")
    assert not model.regular_ and len(set(labels[equal])) == 1
    assert set(labels[equal]).isdisjoint(labels[~equal])


def test_one_component_twice_that_was_given_is_told() -> None:
    x = np.random.default_rng(0).normal(size=(100, 1))
    given = {"weights_init": [0.5, 0.5], "means_init": [[0.0], [0.0]], "precisions_init": np.ones((2, 1, 1))}
    with pytest.warns(ConvergenceWarning, match="two components are the same: fewer do as well"):
        model = mj.GaussianMixture(2, **given).fit(x)
    np.testing.assert_allclose(model.means_, x.mean(), atol=1e-9)


@pytest.mark.parametrize(
    "emission", ["poisson", "negative_binomial", "zero_inflated_poisson", "bernoulli", "categorical"]
)
@pytest.mark.parametrize("k", [2, 3])
def test_states_of_equal_rows_are_one_state_twice(emission: str, k: int) -> None:
    rows = np.zeros((60, 2))
    model = mj.HiddenMarkovModel(k, emission=emission, effort="fast", random_state=0)
    with pytest.warns(ConvergenceWarning, match="two states are the same: fewer do as well"):
        model.fit(rows)
    assert not model.regular_ and mj.HiddenMarkovModel(1, emission=emission).fit(rows).regular_


@pytest.mark.parametrize("items", ["auto", "count", "ordinal", "negative_binomial", "zero_inflated_poisson"])
@pytest.mark.parametrize("n_patterns", [1, 2])
def test_more_classes_than_patterns_are_no_regular_solution(items: str, n_patterns: int) -> None:
    rows = np.repeat(np.arange(n_patterns), 30)[:, None] * np.ones((1, 3), dtype=int)
    model = mj.LatentClassAnalysis(n_patterns + 1, items=items, random_state=0)
    with pytest.warns(ConvergenceWarning, match=f"X has {n_patterns} distinct rows?, too few to tell"):
        model.fit(rows)
    assert not model.regular_ and mj.LatentClassAnalysis(n_patterns, items=items).fit(rows).regular_


def test_classes_that_items_without_variation_leave_are_one_class_twice() -> None:
    """Rows differ in a covariate alone."""
    rows, age = np.zeros((60, 3), dtype=int), np.arange(60.0)
    with pytest.warns(ConvergenceWarning, match="two classes are the same: fewer do as well"):
        model = mj.LatentClassAnalysis(2, random_state=0).fit(rows, gating=age)
    assert not model.regular_


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (mj.GaussianMixture(1), np.full((5, 2), 3.5)),
        (mj.GaussianMixture(1, covariance_type="tied"), np.zeros((5, 1))),
        (mj.LatentClassAnalysis(1), np.zeros((30, 2), dtype=int)),
        (mj.LatentClassAnalysis(1), np.array([["a"]] * 5, dtype=object)),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_table_of_one_value_has_one_component(model: Any, rows: Any) -> None:
    """No parameter is left to estimate."""
    np.testing.assert_array_equal(model.fit(rows).predict_proba(rows), np.ones((len(rows), 1)))


@pytest.mark.parametrize("emission", ["poisson", "negative_binomial"])
def test_states_and_classes_without_events_are_told(emission: str) -> None:
    counts = np.where(np.arange(80) < 40, 0, np.random.default_rng(0).poisson(9, 80))[:, None]
    states = mj.HiddenMarkovModel(2, emission=emission, effort="fast", random_state=0).fit(counts)
    items = {"poisson": "count"}.get(emission, emission)
    classes = mj.LatentClassAnalysis(2, items=items, random_state=0).fit(np.hstack([counts, counts]))
    for fitted, where in ((states, "x1 in state"), (classes, "x1 in class")):
        rates = next(getattr(fitted, f"{name}_") for name in fitted.estimate_names_ if name.endswith("rates"))
        none = int(rates[:, 0].argmin())
        assert rates[none, 0] < 1e-9 and any(
            f"No events: {where} {none + 1}" in said for said in fitted.summary().look_out
        )
