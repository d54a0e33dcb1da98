"""The smallest component of a mixture of regressions is counted in rows, groups or weight: never in distinct rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

import majorant as mj

N = 2000
COLUMN = np.zeros((N, 1))
Array = NDArray[np.float64]


def rounded() -> tuple[Array, NDArray[np.bool_]]:
    """Rows of two normals, in whole numbers; some 125 of them are of the second one."""
    random = np.random.default_rng(0)
    second = random.random(N) < 0.06
    return np.round(np.where(second, random.normal(25, 1.5, N), random.normal(8, 2, N))), second


def by_em(y: Array, second: NDArray[np.bool_], family: str) -> tuple[float, Array]:
    """The log-likelihood and the weights that plain EM has from the labels on, row by row."""
    q = np.column_stack([~second, second]).astype(np.float64)
    value = -np.inf
    for _ in range(1000):
        weights, means = q.mean(axis=0), (q * y[:, None]).sum(axis=0) / q.sum(axis=0)
        if family == "gaussian":
            sigma = np.sqrt((q * (y[:, None] - means) ** 2).sum(axis=0) / q.sum(axis=0))
            joint = weights * stats.norm.pdf(y[:, None], means, sigma)
        else:
            joint = weights * stats.poisson.pmf(y[:, None].astype(int), means)
        q = joint / joint.sum(axis=1, keepdims=True)
        before, value = value, float(np.log(joint.sum(axis=1)).sum())
        if value - before < 1e-10:
            break
    return value, np.sort(weights)[::-1]


@pytest.mark.filterwarnings("ignore:x1 does not vary")
@pytest.mark.parametrize("family", ["gaussian", "poisson"])
@pytest.mark.parametrize("noise", [0.0, 1e-7])
def test_rows_that_are_equal_count_each(family: str, noise: float) -> None:
    y, second = rounded()
    if family == "poisson":
        random = np.random.default_rng(1)
        y = np.where(second, random.poisson(25, N), random.poisson(8, N)).astype(np.float64)
    expected, weights = by_em(y, second, family)
    if family == "gaussian":  # counts are whole
        y = y + noise * np.random.default_rng(2).normal(size=N)
    model = mj.RegressionMixture(2, family=family, random_state=0).fit(COLUMN, y)
    assert model.regular_
    assert model.log_likelihood_ == pytest.approx(expected, abs=1e-3)
    np.testing.assert_allclose(model.weights_, weights, atol=1e-4)
    if family == "gaussian":
        assert model.bic_ == pytest.approx(9387.4, abs=0.1)  # flexmix: 9387, and 11721 of one component
        chosen = mj.select(mj.RegressionMixture(random_state=0), COLUMN, y, n_components=[1, 2])
        assert len(chosen.best_estimator_.weights_) == 2


@pytest.mark.filterwarnings("ignore:x1 does not vary")
@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_whole_weights_count_rows_as_writing_them_out_does(family: str) -> None:
    y, _ = rounded()
    values, times = np.unique(y, return_counts=True)
    column = np.zeros((len(values), 1))
    written = mj.RegressionMixture(2, family=family, random_state=0).fit(COLUMN, y)
    weighted = mj.RegressionMixture(2, family=family, random_state=0).fit(column, values, sample_weight=times)
    assert weighted.regular_ and weighted.log_likelihood_ == written.log_likelihood_
    np.testing.assert_array_equal(weighted.weights_, written.weights_)


def two_lines(n: int, few: int) -> tuple[Array, Array]:
    """Rows of one line, and few of another."""
    random = np.random.default_rng(3)
    x = random.uniform(-1, 1, (n, 1))
    return x, np.where(np.arange(n) < few, 9 - x[:, 0], x[:, 0]) + 0.3 * random.normal(size=n)


@pytest.mark.parametrize(
    ("how", "said"),
    [("rows", "20 rows .regular from 25 rows on"), ("weights", "a weight of 10 .*a weight of 12.5")],
)
def test_messages_are_in_rows_or_in_the_weight_that_was_given(how: str, said: str) -> None:
    x, y = two_lines(200, 20)
    given: dict[str, Any] = {} if how == "rows" else {"sample_weight": np.full(200, 0.5)}
    least = 25.0 if how == "rows" else 12.5
    with pytest.warns(ConvergenceWarning, match=f"smallest component has {said}"):
        mj.RegressionMixture(2, variance="common", min_component_size=least, init=START, random_state=0).fit(
            x, y, **given
        )


WEIGHED: list[tuple[Any, dict[str, Any]]] = [
    (mj.GaussianMixture, {}),
    (mj.LatentClassAnalysis, {"items": "normal"}),
    (mj.HiddenMarkovModel, {}),
    (mj.RegressionMixture, {}),
]


@pytest.mark.parametrize(("cls", "settings"), WEIGHED)
@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_rows_are_counted_alike_in_every_mixture(cls: Any, settings: dict[str, Any], scale: float) -> None:
    """By whole weights, which are repeats, and else by the rows that have any; criteria count the weights."""
    x, y = two_lines(60, 20)
    weights = scale * np.repeat([0.0, 1.0, 3.0], 20)
    model = cls(1, random_state=0, **settings)
    if cls is mj.HiddenMarkovModel:
        given = {"groups": np.arange(60) // 20, "sequence_weight": weights[::20]}
    else:
        given = {"sample_weight": weights}
    model.fit(x, **({"y": y} if cls is mj.RegressionMixture else {}), **given)
    assert model.n_rows_ == (80 if scale == 1.0 else 40)


def test_a_gaussian_mixture_says_what_a_row_is_where_weights_are_no_counts() -> None:
    """Counts of 2000 draws around 8, and of few around 25, divided by ten: a row has the mean weight of the values."""
    random = np.random.default_rng(0)
    y = np.round(np.where(random.random(2000) < 0.06, random.normal(25, 1.5, 2000), random.normal(8, 2, 2000)))
    values, times = np.unique(y, return_counts=True)
    said = rf"has fewer than 3 rows of the mean weight, {200 / len(values):.4g}\."
    with pytest.warns(ConvergenceWarning, match=said):
        mj.GaussianMixture(2, random_state=0).fit(values[:, None], sample_weight=times / 10)


START = {"coef": np.array([[1.0], [-1.0]]), "intercept": np.array([0.0, 9.0]), "scale": np.array([0.3, 0.3])}


def test_messages_count_groups_where_rows_have_them() -> None:
    x, y = two_lines(200, 20)
    model = mj.RegressionMixture(2, variance="common", min_component_size=5, init=START, random_state=0)
    with pytest.warns(ConvergenceWarning, match="smallest component has 4 groups .regular from 5 groups on"):
        model.fit(x, y, groups=np.arange(200) // 5)


@pytest.mark.parametrize("seed", [1, 2])
def test_rows_on_one_line_exactly_are_said_to_be(seed: int) -> None:
    """Not that the noise differs by the largest ratio, which is what held it back."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(60, 1))
    y = np.where(np.arange(60) < 30, 2 * x[:, 0], -3 * x[:, 0] + random.normal(size=60))
    with pytest.warns(ConvergenceWarning, match="a component fits 30 rows exactly"):
        model = mj.RegressionMixture(2, random_state=0).fit(x, y)
    assert "regular below" not in model.degeneracy_
    both = np.where(np.arange(60) < 30, 2 * x[:, 0], 5 - 3 * x[:, 0])
    with pytest.warns(ConvergenceWarning, match="every row is exactly on one of the lines"):
        mj.RegressionMixture(2, random_state=0).fit(x, both)


@pytest.mark.parametrize("lines", [((1, 1), (3, -1)), ((0, 2), (5, 2)), ((0, 2), (5, -3))])
@pytest.mark.parametrize("family", ["gaussian", "student", "gamma"])
def test_lines_on_which_all_rows_are_exactly_are_found_and_said_to_be(family: str, lines: Any) -> None:
    """Of two exact lines, two others with much noise were called the regular solution, without a word."""
    random = np.random.default_rng(0)
    x, first = random.uniform(0, 2, (120, 1)), random.random(120) < 0.5
    level = np.where(first, *(intercept + slope * x[:, 0] for intercept, slope in lines))
    with pytest.warns(ConvergenceWarning, match="every row is exactly on one of the lines"):
        model = mj.RegressionMixture(2, family=family, random_state=0).fit(
            x, np.exp(level) if family == "gamma" else level
        )
    order = np.lexsort((model.coef_[:, 0], model.intercept_.round(3)))
    np.testing.assert_allclose(model.intercept_[order], [line[0] for line in lines], atol=1e-6)
    np.testing.assert_allclose(model.coef_[order, 0], [line[1] for line in lines], atol=1e-6)
    assert not model.regular_ and not model.is_exact_ and model.excluded_ is None
    assert model.search_.best == pytest.approx(model.log_likelihood_, rel=1e-6)
    assert model.degeneracy_ in model.summary().look_out


@pytest.mark.parametrize("variance", ["component", "common"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_rows_all_on_one_line_of_a_gamma_family_are_said_to_be_exact(k: int, variance: Any) -> None:
    """As of a Gaussian one: every component is that line, and its noise a floor of which the log-likelihood is."""
    for seed in range(2):
        x = np.random.default_rng(seed).uniform(0, 2 + seed, (60, 1))
        y = np.exp(1 + x[:, 0] / 2)
        with pytest.warns(ConvergenceWarning, match="one line fits every row exactly"):
            model = mj.RegressionMixture(k, family="gamma", variance=variance, random_state=0).fit(x, y)
        assert model.is_exact_ and not model.regular_ and not hasattr(model, "predict_proba")
        np.testing.assert_allclose(model.intercept_, 1, atol=1e-9)
        np.testing.assert_allclose(model.coef_, 0.5, atol=1e-9)
        a = 1 / model.scale_[0] ** 2  # at its mean a gamma density is that of a normal one, but for 1 / (12 a)
        np.testing.assert_allclose(model.log_likelihood_, np.sum(0.5 * np.log(a / (2 * np.pi)) - np.log(y)), rtol=1e-6)
        with pytest.raises(ValueError, match="no noise to estimate standard errors from"):
            model.standard_errors()


@pytest.mark.parametrize("how", [{}, {"bounds": mj.Tightest()}, {"init": "random"}, {"trim": 0.1}], ids=str)
def test_a_search_that_ends_at_exact_lines_is_told_of_as_any_other(how: dict[str, Any]) -> None:
    """All its runs are in the report; the rows that were trimmed are on no line, and there are no errors."""
    random = np.random.default_rng(0)
    x, first = random.normal(size=(100, 1)), random.random(100) < 0.5
    y = np.where(first, 1 + 2 * x[:, 0], 4 - x[:, 0])
    y[:10] += 50 * random.normal(size=10) * ("trim" in how)
    which = "every row that was not trimmed" if how.get("trim") else "every row"
    with pytest.warns(
        ConvergenceWarning, match=f"{which} is exactly on one of the lines.*there are no standard errors"
    ):
        model = mj.RegressionMixture(2, random_state=0, **how).fit(x, y)
    assert model.search_.n_starts >= 10 and model.search_.best == pytest.approx(model.log_likelihood_, rel=1e-6)
    assert not model.regular_ and model.standard_errors_ is None
    with pytest.raises(ValueError, match=f"{which} is exactly on one of the lines: there is no noise"):
        model.standard_errors()
    with pytest.raises(ValueError, match="there is no noise"):
        model.bootstrap(x, y)
    assert f"{which.capitalize()} is exactly" in " ".join(str(model.summary()).split())


@pytest.mark.parametrize("seed", [0, 1])
def test_an_exact_line_that_was_left_out_beside_a_regular_solution_is_told_of(seed: int) -> None:
    random = np.random.default_rng(seed)
    x, first = random.normal(size=(60, 1)), random.random(60) < 0.5
    y = np.where(first, 1 + 2 * x[:, 0], 4 - x[:, 0] + 3 * random.normal(size=60))
    model = mj.RegressionMixture(2, random_state=0).fit(x, y)
    assert model.regular_ and model.excluded_ is None
    assert f"A solution was left out: a component fits {first.sum()} rows exactly" in model.search_.note
    noisy = mj.RegressionMixture(2, random_state=0).fit(x, y + random.normal(size=60))
    assert "exactly" not in noisy.search_.note


@pytest.mark.parametrize("family", ["gaussian", "student", "gamma"])
def test_rows_on_one_line_exactly_are_left_out_in_every_family(family: str) -> None:
    """Nothing would admit them: the likelihood has no maximum there."""
    random = np.random.default_rng(0)
    x = random.uniform(0, 3, (150, 1))
    level = np.where(np.arange(150) < 50, 2 + 0.7 * x[:, 0], 4 - 0.9 * x[:, 0])
    rest = np.arange(150) >= 50
    if family == "gamma":
        y = np.exp(level) * np.where(rest, random.gamma(8, 1 / 8, 150), 1.0)
    else:
        y = level + np.where(rest, random.normal(size=150), 0.0)
    with pytest.warns(ConvergenceWarning, match="a component fits 50 rows exactly"):
        model = mj.RegressionMixture(2, family=family, random_state=0).fit(x, y)
    assert model.excluded_ is None and "would admit" not in str(model.summary())


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_the_log_likelihood_of_rows_is_that_of_the_parameters(family: str) -> None:
    random = np.random.default_rng(4)
    x, y = two_lines(120, 40)
    y = y if family == "gaussian" else random.poisson(np.exp(np.clip(y / 4, 0, 3))).astype(float)
    groups, weights = np.arange(120) // 4, np.repeat(random.integers(1, 4, 30), 4).astype(float)
    model = mj.RegressionMixture(2, family=family, random_state=0).fit(x, y, groups=groups, sample_weight=weights)
    eta = model.intercept_ + x @ model.coef_.T
    of_rows = stats.norm.logpdf(y[:, None], eta, model.scale_)
    of_rows = of_rows if family == "gaussian" else stats.poisson.logpmf(y[:, None], np.exp(eta))
    joint = np.log(model.weights_) + of_rows.reshape(30, 4, 2).sum(axis=1)
    expected = weights[::4] @ np.log(np.exp(joint).sum(axis=1))
    found = model.log_likelihood(x, y, groups=groups, sample_weight=weights)
    assert found == pytest.approx(expected, rel=1e-10)
    assert found == pytest.approx(model.log_likelihood_, rel=1e-10)
