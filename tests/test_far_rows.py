"""Rows far away, long fits and fits in parts: numbers at their limits keep their order and their meaning."""

from __future__ import annotations

import re
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

import majorant as mj
from majorant.solvers.responses.real import Student

from .estimators import ESTIMATORS, ROWS, make, objective, reference, target_of


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_log_densities_keep_their_order_as_long_as_they_are_numbers(covariance_type: str) -> None:
    x = np.random.default_rng(0).normal(size=(200, 2))
    fitted = mj.GaussianMixture(1, covariance_type=covariance_type, random_state=0).fit(x)
    far = np.array([[s, 0.0] for s in (1e3, 1e100, 1e149, 3e150, 1e151, 1e152, 1e153, 5e153)])
    found = fitted.score_samples(far)
    assert (np.diff(found) < 0).all()
    precision = np.linalg.inv(np.broadcast_to(1.0, (2, 2)) * as_matrix(fitted))[0, 0]
    np.testing.assert_allclose(found[-1], -0.5 * precision * far[-1, 0] ** 2, rtol=1e-9)
    assert np.isfinite(fitted.score_samples(np.full((1, 2), 1e250))).all()
    assert not np.isnan(fitted.score(np.full((3, 2), 1e250)))
    assert fitted.predict(np.full((1, 2), 1e250)) == [0]


TWO_SIZES = np.concatenate([np.random.default_rng(0).normal(size=(100, 2)) * [1, 3], ROWS[:100, :2] * 0.02 + 6])
"""Rows of two components, the wider one with the first mean."""
KINDS = ("full", "tied", "diag", "spherical")
GAUSSIANS: dict[str, Any] = {
    **{f"mixture, {kind}": mj.GaussianMixture(2, covariance_type=kind, random_state=0) for kind in KINDS},
    **{f"chain, {kind}": mj.HiddenMarkovModel(2, covariance_type=kind, random_state=0) for kind in KINDS},
    "classes": mj.LatentClassAnalysis(2, items="normal", random_state=0),
}


def squares(fitted: Any, row: Any) -> list[Fraction]:
    """Exact squared distances of a row of two cells from every component."""
    prefix = "normal_" if isinstance(fitted, mj.LatentClassAnalysis) else ""
    means, spread = (
        getattr(fitted, f"{prefix}means_"),
        getattr(fitted, prefix + ("variances_" if prefix else "covariances_")),
    )
    found = []
    for k, mean in enumerate(means):
        own = spread if spread.shape == (2, 2) and getattr(fitted, "covariance_type", "") == "tied" else spread[k]
        (a, b), (_, d) = ([Fraction(c) for c in line] for line in (own if np.ndim(own) == 2 else np.eye(2) * own))
        u, v = (Fraction(x) - Fraction(m) for x, m in zip(row.tolist(), mean.tolist(), strict=True))
        found.append((d * u * u - 2 * b * u * v + a * v * v) / (a * d - b * b))
    return found


@pytest.mark.parametrize("has_gaps", [False, True])
@pytest.mark.parametrize("shift", [0.0, 1e9])
@pytest.mark.parametrize("model", GAUSSIANS)
def test_the_nearest_component_is_told_however_far_a_row_is(model: str, shift: float, has_gaps: bool) -> None:
    """Where squares have no digits left for their differences, and where they are no numbers."""
    x = TWO_SIZES + shift
    x[::9, 1] = np.nan if has_gaps else x[::9, 1]
    fitted = clone(GAUSSIANS[model]).fit(x)
    angles = np.linspace(0, 2 * np.pi, 9)[:-1, None] + 0.1
    lengths = np.repeat([1e17, 1e20, 1e100, 1e155, 1e250, 1.7e308], 8)[:, None]
    far = lengths * np.tile(np.column_stack([np.cos(angles), np.sin(angles)]), (6, 1))
    if shift:  # rows that are far from the data for their being near the origin
        far = np.concatenate([far, [[0.0, 0.0], [1e-300, 0.0], [0.0, 1.0]]])
    rows = {"groups": np.arange(len(far))} if "chain" in model else {}
    nearest = [np.eye(2)[int(np.argmin(squares(fitted, row)))] for row in far]
    np.testing.assert_array_equal(fitted.predict_proba(far, **rows), nearest)
    values = fitted.score_samples(far, **rows)
    assert np.isfinite(values).all()
    assert (np.diff(values[:48].reshape(6, 8), axis=0) <= 0).all()


@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
def test_the_nearest_of_components_far_apart_is_told(covariance_type: Any) -> None:
    """Rows between them are 1e9 standard deviations from all; the nearest is not that on the line from the centre."""
    draws, means = np.random.default_rng(0), np.array([-1e10, 2e9, 1e10])
    x = (draws.normal(size=(50, 3)) + means).T.reshape(-1, 1)
    fitted = mj.GaussianMixture(3, covariance_type=covariance_type, random_state=0).fit(x)
    at, spread = fitted.means_.ravel().tolist(), fitted.covariances_.ravel().tolist()
    rows = [5e9, 7e9, -3e9, -5e9, 5e10, -5e10, 1e10 + 3]
    nearest = [min(range(3), key=lambda k: (Fraction(r) - Fraction(at[k])) ** 2 / Fraction(spread[k])) for r in rows]
    np.testing.assert_array_equal(fitted.predict(np.array(rows)[:, None]), nearest)
    assert np.isfinite(fitted.score_samples(np.array(rows)[:, None])).all()


def test_rows_of_heavy_tailed_states_have_a_density_as_far_as_numbers_go() -> None:
    """A power of the distance: its logarithm falls by so much in every decade."""
    fitted = mj.HiddenMarkovModel(2, emission="student", random_state=0).fit(TWO_SIZES)
    far = np.outer(10.0 ** np.arange(20, 308, 16), [1.0, -0.5])
    values = fitted.score_samples(far, groups=np.arange(len(far)))
    per_decade = (fitted.degrees_of_freedom_.min() + 2) * np.log(10)
    np.testing.assert_allclose(np.diff(values), -16 * per_decade, rtol=1e-6)
    assert np.isfinite(fitted.predict_proba(far)).all()


def test_rows_as_far_from_both_components_are_told_by_weights() -> None:
    x = np.concatenate([ROWS[:, :2], ROWS[:60, :2]])
    x = np.concatenate([x - x.mean(axis=0) + [1000, 0], x - x.mean(axis=0) - [1000, 0]])
    fitted = mj.GaussianMixture(2, covariance_type="spherical", random_state=0).fit(x)
    fitted.covariances_[:] = fitted.covariances_[0]
    found = fitted.predict_proba(np.array([[0.0, 1e20], [0.0, 1e200]]))
    np.testing.assert_allclose(found, np.tile(fitted.weights_, (2, 1)), rtol=1e-9)


def test_states_of_other_rows_are_told_beside_rows_far_out() -> None:
    fitted = mj.HiddenMarkovModel(2, random_state=0).fit(TWO_SIZES)
    x = np.concatenate([TWO_SIZES[:3], [[1e200, 0.0]], TWO_SIZES[-3:]])
    found = fitted.predict_proba(x)
    expected = fitted.predict_proba(x[[0, 1, 2, 4, 5, 6]])
    np.testing.assert_allclose(found[[0, 1, 2, 4, 5, 6]].round(), expected.round())


def test_heavy_tails_have_a_density_as_far_as_numbers_go() -> None:
    """A power of the distance, whose square is no number beyond 1e154."""
    y = 10.0 ** np.arange(0, 308, 4)
    found = Student(3.0).log_density(y, np.full_like(y, 0.1), np.full_like(y, 4.0), np.ones_like(y))
    near = y < 1e150
    np.testing.assert_allclose(found[near], stats.t.logpdf(y[near], 3, 0.1, 2), rtol=1e-12)
    at = stats.t.logpdf(1e100, 3, 0.1, 2)
    np.testing.assert_allclose(found[~near], at - 4 * (np.log(y[~near]) - np.log(1e100)), rtol=1e-12)


def as_matrix(fitted: Any) -> Any:
    """The covariance of the first component."""
    found = fitted.covariances_ if fitted.covariance_type == "tied" else fitted.covariances_[0]
    return found if np.ndim(found) == 2 else np.diag(np.broadcast_to(found, 2))


SAYING = ("predict", "predict_proba", "transform", "score_samples", "decision_function", "pseudo_residuals")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("far", [1e30, -1e37, 1e150, 1e155, 1e250, 1e308])
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_what_is_said_of_rows_far_away_is_a_number_or_they_are_refused(
    cls: type[Any], far: float, dtype: type[Any]
) -> None:
    """Without a warning; and what is said of the other rows stays a number."""
    if abs(far) > float(np.finfo(dtype).max):
        return
    fitted = reference(cls)
    x = np.concatenate([ROWS[:3], np.full((1, 3), far), ROWS[3:6]]).astype(dtype)
    for method in SAYING:
        if not hasattr(fitted, method):
            continue
        y = (np.arange(len(x)) % 2.0,) if cls is mj.RegressionMixture and method == "predict_proba" else ()
        try:
            found = np.asarray(getattr(fitted, method)(x, *y))
        except ValueError as error:
            assert re.search("rescale X|look at its units|none too large", str(error))
            continue
        assert not np.isnan(found).any()
        assert np.isfinite(np.delete(found, 3, axis=0)).all()
        if method == "predict_proba":
            np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-6)


@pytest.mark.parametrize("family", ["poisson", "gamma"])
def test_a_mean_that_is_no_number_is_refused(family: str) -> None:
    """And no other one is told: all predictions beyond exp(700) were the same."""
    x = np.linspace(-1, 1, 60)[:, None]
    y = np.rint(np.exp(2 + x[:, 0] + 0.3 * np.cos(9 * x[:, 0])))
    fitted = mj.RegressionMixture(1, family=family).fit(x, y)
    for near in (500.0, 600.0):
        expected = fitted.intercept_[0] + near * fitted.coef_[0, 0]
        assert np.log(fitted.predict([[near]]))[0] == pytest.approx(expected, rel=1e-12)
    for ask in (fitted.predict, fitted.predict_components):
        with pytest.raises(ValueError, match="the mean at row 1 of X is too large to be told: look at its units"):
            ask([[0.0], [900.0]])


def test_log_densities_of_single_precision_rows_keep_their_order() -> None:
    fitted = mj.GaussianMixture(2, random_state=0).fit(ROWS.astype(np.float32))
    far = np.array([[s, 0.0, 0.0] for s in (1e10, 1e20, 1e25, 1e30, 1e38)], dtype=np.float32)
    assert (np.diff(fitted.score_samples(far)) < 0).all()


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_a_warm_start_of_one_and_one_step_equals_two(covariance_type: str) -> None:
    random = np.random.default_rng(0)
    x = np.concatenate([random.normal(size=(100, 2)), random.normal(size=(100, 2)) + 2])

    def model(max_iter: int, *, warm_start: bool = False) -> Any:
        settings: dict[str, Any] = {"init_params": "random", "tol": 0.0, "max_iter": max_iter, "random_state": 0}
        return mj.GaussianMixture(2, covariance_type=covariance_type, warm_start=warm_start, **settings)

    with pytest.warns(UserWarning, match="converge"):
        in_parts = model(1, warm_start=True).fit(x)
        for n in (2, 3, 4):
            in_parts.fit(x)
            assert in_parts.log_likelihood_ == pytest.approx(model(n).fit(x).log_likelihood_, rel=1e-12)


@pytest.mark.parametrize("cls", [cls for cls in ESTIMATORS if "warm_start" in cls().get_params()])
def test_a_warm_start_goes_two_steps_in_one_fit_or_in_two(cls: type[Any]) -> None:
    random = np.random.default_rng(0)
    x = np.concatenate([random.normal(size=(100, 2)), random.normal(size=(100, 2)) + 2])
    settings: dict[str, Any] = {"items": "normal"} if cls is mj.LatentClassAnalysis else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that few steps do not converge
        model = make(cls, 2, tol=0.0, max_iter=2, warm_start=True, **settings)
        before, of_two = clone(model).set_params(max_iter=1).fit(x), clone(model).set_params(max_iter=1).fit(x)
        in_parts = before.fit(x).fit(x)
        at_once = of_two.set_params(max_iter=2).fit(x)
    assert in_parts.log_likelihood_ == pytest.approx(at_once.log_likelihood_, rel=1e-12)
    assert at_once.n_iter_ == 2


@pytest.mark.parametrize("cls", [cls for cls in ESTIMATORS if "warm_start" in cls().get_params()])
def test_a_warm_start_after_a_fit_of_other_columns_or_settings_is_a_search(cls: type[Any]) -> None:
    x = np.random.default_rng(0).normal(size=(60, 4)) + np.repeat([[0.0], [5.0]], 30, axis=0)
    first: dict[str, Any] = {"covariance_type": "full"}
    other, columns_of_others = {"covariance_type": "diag"}, x[:, :3]
    if cls is mj.LatentClassAnalysis:
        first, other, columns_of_others = {"items": "normal"}, {"items": "categorical"}, np.round(x[:, :3] / 5)
    fitted = make(cls, 2, warm_start=True, **first).fit(x[:, :2])
    for columns, settings in ((x, first), (x[:, :1], first), (columns_of_others, other)):
        expected = make(cls, 2, **settings).fit(columns).log_likelihood_
        assert fitted.set_params(**settings).fit(columns).log_likelihood_ == expected


@pytest.mark.parametrize("model", ["gaussian", "classes", "markov"])
def test_a_warm_start_at_the_optimum_converges_in_one_step(model: str) -> None:
    random = np.random.default_rng(0)
    x = np.concatenate([random.normal(size=(100, 2)), random.normal(size=(100, 2)) + 4])
    answers = (random.random((200, 4)) < np.repeat([[0.2], [0.8]], 100, axis=0)).astype(int)
    fits: dict[str, tuple[Any, Any]] = {
        "gaussian": (mj.GaussianMixture(2, random_state=0), x),
        "classes": (mj.LatentClassAnalysis(2, random_state=0), answers),
        "markov": (mj.HiddenMarkovModel(2, random_state=0), x),
    }
    fitted, rows = fits[model]
    fitted.set_params(tol=1e-9).fit(rows)
    before = fitted.log_likelihood_
    fitted.set_params(warm_start=True, max_iter=1, tol=1e-6).fit(rows)
    assert fitted.converged_
    assert fitted.log_likelihood_ == pytest.approx(before, rel=1e-9)


@pytest.mark.parametrize("cls", [cls for cls in ESTIMATORS if "max_iter" in cls().get_params()])
def test_no_number_of_steps_is_too_large(cls: type[Any]) -> None:
    y = target_of(cls, ROWS)
    endless = make(cls, max_iter=10**30).fit(ROWS, y)
    assert objective(endless) == objective(make(cls, max_iter=10**6).fit(ROWS, y))


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_no_number_of_steps_is_too_large_for_a_search(covariance_type: str) -> None:
    rows = 30 * np.random.default_rng(5).normal(size=(300, 4))
    ends = [
        mj.GaussianMixture(2, covariance_type=covariance_type, max_iter=most, random_state=0).fit(rows)
        for most in (10**30, 10**4)
    ]
    assert ends[0].converged_ and ends[0].log_likelihood_ == ends[1].log_likelihood_


def test_near_means_beside_a_far_one_are_told_apart_where_the_covariance_is_shared() -> None:
    """Components differ by what is linear in the row; squares hide a hundredth beside ten thousand."""
    means, tied = np.array([[0.0, 0.0], [0.01, 0.0], [1e4, 0.0]]), np.array([[1.0, 0.3], [0.3, 2.0]])
    mixture = mj.GaussianMixture.from_parameters([0.3, 0.3, 0.4], means, tied, covariance_type="tied")
    even = np.full((3, 3), 1 / 3)
    chain = mj.HiddenMarkovModel.from_parameters(
        even[0], even, means=means, covariances=[tied] * 3, covariance_type="tied"
    )
    classes = mj.LatentClassAnalysis(3, items="normal", variances="shared", random_state=0).fit(
        np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 15, axis=0) + ROWS[:45, :2] * 0.02
    )
    classes.normal_means_[:], classes.normal_variances_[:] = means, [1.0, 2.0]
    angles = np.array([0.1, 1.0, 2.0, 3.0, 4.0])
    ends = np.column_stack([np.cos(angles), np.sin(angles)])
    far = np.concatenate([length * ends for length in (1e16, 1e20, 1e100, 1e250, 1.7e308)])
    for model, beside in ((mixture, {}), (chain, {"groups": np.arange(len(far))}), (classes, {})):
        nearest = [np.eye(3)[int(np.argmin(squares(model, row)))] for row in far]
        np.testing.assert_array_equal(model.predict_proba(far, **beside), nearest)
        assert np.isfinite(model.score_samples(far, **beside)).all()
