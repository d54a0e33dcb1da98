"""Hidden Markov models of given parameters, against sums over all paths."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import majorant as mj

FIRST, STEPS = np.array([0.7, 0.3]), np.array([[0.9, 0.1], [0.25, 0.75]])
COUNTS = np.array([[0.0], [3.0], [2.0], [7.0]])
NUMBERS = np.array([[0.5], [1.0], [4.0], [3.5]])
PAIRS = np.array([[0.5, 1.0], [1.0, -1.0], [4.0, 0.0], [3.5, 2.0]])
SIZES, MEANS = np.array([[2.0], [5.0]]), np.array([[1.0], [4.0]])
MATRICES = np.array([[[1.0, 0.3], [0.3, 0.5]], [[2.0, -0.8], [-0.8, 1.0]]])
CENTRES, SLOPES = np.array([[0.0, 0.0], [3.0, 1.0]]), np.array([[2.0], [-1.0]])


def inflated(x: NDArray[np.float64]) -> NDArray[np.float64]:
    share, mean = np.array([[0.2], [0.4]]), np.array([[1.0], [4.0]])
    return share * (x == 0) + (1 - share) * stats.poisson.pmf(x, mean / (1 - share))


CASES: dict[str, tuple[Any, dict[str, Any], NDArray[np.float64], Any]] = {
    "gaussian": (
        {"means": CENTRES, "covariances": MATRICES},
        {},
        PAIRS,
        lambda x: [stats.multivariate_normal.pdf(x, m, c) for m, c in zip(CENTRES, MATRICES, strict=True)],
    ),
    "diagonal": (
        {"means": MEANS, "covariances": SIZES},
        {"covariance_type": "diag"},
        NUMBERS,
        lambda x: stats.norm.pdf(x.T, MEANS, np.sqrt(SIZES)),
    ),
    "poisson": ({"rates": MEANS}, {}, COUNTS, lambda x: stats.poisson.pmf(x.T, MEANS)),
    "negative_binomial": (
        {"rates": MEANS, "sizes": SIZES},
        {},
        COUNTS,
        lambda x: stats.nbinom.pmf(x.T, SIZES, SIZES / (SIZES + MEANS)),
    ),
    "zero_inflated_poisson": (
        {"means": MEANS, "inflations": [[0.2], [0.4]]},
        {},
        COUNTS,
        lambda x: inflated(x.T),
    ),
    "bernoulli": (
        {"probabilities": [[0.2], [0.7]]},
        {},
        np.array([[0.0], [1.0], [1.0], [0.0]]),
        lambda x: stats.bernoulli.pmf(x.T, [[0.2], [0.7]]),
    ),
    "categorical": (
        {"probabilities": [[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]]},
        {},
        np.array([[0.0], [2.0], [1.0], [0.0]]),
        lambda x: np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]])[:, x[:, 0].astype(int)],
    ),
    "gamma": (
        {"means": MEANS, "shapes": SIZES},
        {},
        NUMBERS,
        lambda x: stats.gamma.pdf(x.T, SIZES, scale=MEANS / SIZES),
    ),
    "von_mises": (
        {"directions": MEANS - 3, "concentrations": SIZES},
        {},
        NUMBERS - 3,
        lambda x: stats.vonmises.pdf(x.T, SIZES, MEANS - 3),
    ),
    "student": (
        {"means": MEANS, "scale_matrices": SIZES[:, :, None], "degrees_of_freedom": [3.0, 5.0]},
        {},
        NUMBERS,
        lambda x: stats.t.pdf(x.T, [[3.0], [5.0]], MEANS, np.sqrt(SIZES)),
    ),
    "regression": (
        {"intercept": MEANS[:, 0], "coef": SLOPES, "variances": SIZES[:, 0]},
        {},
        PAIRS,
        lambda x: stats.norm.pdf(x[:, 0], MEANS + SLOPES * x[:, 1], np.sqrt(SIZES)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_given_parameters_have_the_densities_of_all_paths(name: str) -> None:
    estimates, settings, x, density = CASES[name]
    emission = "gaussian" if name == "diagonal" else name
    model = mj.HiddenMarkovModel.from_parameters(FIRST, STEPS, emission=emission, **settings, **estimates)
    f, n = np.asarray(density(x)), len(x)
    assert f.shape == (2, n)
    paths = {
        path: FIRST[path[0]]
        * np.prod([f[s, t] for t, s in enumerate(path)])
        * np.prod([STEPS[a, b] for a, b in itertools.pairwise(path)])
        for path in itertools.product(range(2), repeat=n)
    }
    assert model.log_likelihood(x) == pytest.approx(np.log(sum(paths.values())), rel=1e-10)
    assert tuple(model.predict(x)) == max(paths, key=paths.__getitem__)
    of_states = np.array([[sum(p for path, p in paths.items() if path[t] == s) for s in range(2)] for t in range(n)])
    np.testing.assert_allclose(model.predict_proba(x), of_states / sum(paths.values()), rtol=1e-9)
    assert "not fitted" in str(model.summary())
    if name != "regression":
        drawn, states = model.sample(3)
        assert drawn.shape == (3, x.shape[1])
        assert set(states.tolist()) <= {0, 1}


def test_a_model_of_given_parameters_is_kept(tmp_path: Path) -> None:
    model = mj.HiddenMarkovModel.from_parameters(FIRST, STEPS, emission="poisson", rates=MEANS)
    model.save(tmp_path / "model.majorant")
    assert mj.load(tmp_path / "model.majorant").log_likelihood(COUNTS) == model.log_likelihood(COUNTS)


def test_columns_of_their_own_emissions_multiply() -> None:
    estimates = {"x1_rates": MEANS, "x2_probabilities": [[0.2, 0.8], [0.6, 0.4]]}
    model = mj.HiddenMarkovModel.from_parameters(
        [1.0, 0.0], np.eye(2), emission=["poisson", "categorical"], **estimates
    )
    x = np.column_stack([COUNTS[:, 0], [0.0, 1.0, 1.0, 0.0]])
    expected = stats.poisson.logpmf(COUNTS, 1.0).sum() + 2 * np.log(0.2) + 2 * np.log(0.8)
    assert model.log_likelihood(x) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["probabilities", "x1_probabilities"])
def test_categories_add_up_to_one(name: str) -> None:
    own: dict[str, Any] = {"emission": "categorical", "probabilities": [[0.5, 0.4], [0.2, 0.3]]}
    of_columns: dict[str, Any] = {"emission": ["categorical", "poisson"], "x2_rates": MEANS}
    given = own if name == "probabilities" else {**of_columns, "x1_probabilities": own["probabilities"]}
    with pytest.raises(ValueError, match=f"{name} must be probabilities that add up to 1"):
        mj.HiddenMarkovModel.from_parameters(FIRST, STEPS, **given)


def test_one_matrix_for_all_states() -> None:
    tied: dict[str, Any] = {"covariance_type": "tied", "means": CENTRES}
    one = mj.HiddenMarkovModel.from_parameters(FIRST, STEPS, covariances=MATRICES[0], **tied)
    each = mj.HiddenMarkovModel.from_parameters(FIRST, STEPS, covariances=MATRICES[[0, 0]], **tied)
    assert one.log_likelihood(PAIRS) == each.log_likelihood(PAIRS)
    assert one.n_parameters_ == 3 + 4 + 3


def test_a_fit_by_warm_start_begins_at_given_parameters() -> None:
    dice = [[1 / 6] * 6, [0.1] * 5 + [0.5]]
    model = mj.HiddenMarkovModel.from_parameters(
        [0.9, 0.1], [[0.95, 0.05], [0.1, 0.9]], emission="categorical", probabilities=dice, random_state=0
    )
    x, _ = model.sample(500)
    before = model.log_likelihood(x)
    model.set_params(warm_start=True).fit(x)
    assert [start.source for start in model.search_.starts] == ["warm start"]
    assert model.log_likelihood_ > before


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"start_probabilities": [0.7, 0.7]}, ValueError, "start_probabilities must be probabilities that add up to 1"),
        ({"transitions": [[0.9, 0.1]]}, ValueError, r"transitions must be of shape \(k, k\)"),
        ({"transitions": [[1.9, -0.9], [0.5, 0.5]]}, ValueError, "transitions must be probabilities"),
        ({"covariances": None}, TypeError, "needs covariances"),
        ({"covariances": [[[1.0]], [[-1.0]]]}, ValueError, "covariances|estimates"),
        ({"covariances": [[[1.0]], [[np.nan]]]}, ValueError, "covariances must be finite numbers"),
        ({"covariance_type": "tied", "covariances": [[[1.0]], [[9.0]]]}, ValueError, "one matrix for all states"),
        ({"transitions": [[0.5, 0.5], [1.0]]}, ValueError, "transitions must be an array of numbers"),
        ({"start_probabilities": ["a", "b"]}, ValueError, "start_probabilities must be an array of numbers"),
        ({"means": [0.0, 1.0]}, ValueError, r"means must be of shape \(2, ...\), a row for each state; got \(2,\)"),
        ({"covariances": np.ones((2, 2, 2))}, ValueError, "covariances|estimates"),
        ({"means": [[0.0]]}, ValueError, r"means must be of shape \(2, ...\)"),
        ({"rates": [[1.0], [2.0]]}, TypeError, "has means, covariances; got rates"),
        ({"emission": "switching_mean"}, ValueError, "fit it"),
        (
            {"emission": "gamma", "covariances": None, "shapes": [[0.0], [1.0]]},
            ValueError,
            "make no hidden Markov model",
        ),
        (
            {"emission": "poisson", "means": None, "covariances": None, "rates": [[-1.0], [2.0]]},
            ValueError,
            "never negat",
        ),
        ({"emission": "normal"}, ValueError, "emission must be"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(changed: dict[str, Any], error: type[Exception], words: str) -> None:
    given: dict[str, Any] = {
        "start_probabilities": [0.5, 0.5],
        "transitions": [[0.5, 0.5], [0.5, 0.5]],
        "means": [[0.0], [1.0]],
        "covariances": [[[1.0]], [[1.0]]],
    }
    given = {name: value for name, value in (given | changed).items() if value is not None}
    with pytest.raises(error, match=words):
        mj.HiddenMarkovModel.from_parameters(**given)


@pytest.mark.parametrize(
    "model",
    [
        mj.HiddenMarkovModel.from_parameters(FIRST, STEPS, emission="poisson", rates=MEANS),
        mj.GaussianMixture.from_parameters([1.0], [[0.0]], [[[1.0]]]),
    ],
    ids=["markov", "gaussian"],
)
def test_a_report_of_given_parameters_is_refused(model: Any) -> None:
    with pytest.raises(TypeError, match="a report tells of a fit"):
        model.report(COUNTS)
