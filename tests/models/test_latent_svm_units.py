"""Latent SVMs on columns of very different size and on classes of very different weight: solved, or told."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_sample_weight

import majorant as mj
from majorant.starts.annealed_pooling import column_sizes
from tests.models.test_latent_svc import planted


def least_hinge(X: NDArray[np.float64], y: NDArray[np.intp], alpha: float) -> float:
    """Least value of ``alpha / 2 |w|^2 + mean hinge loss``, by sequential quadratic programming with slacks.

    Weights are taken in units in which every column is of size one, which that method needs.
    """
    n, d = X.shape
    size, sign = np.sqrt(np.mean(X**2, axis=0)), 2.0 * y - 1
    rows = sign[:, None] * X / size

    def value(v: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        w = v[:d] / size
        return alpha / 2 * w @ w + v[d:].mean(), np.concatenate([alpha * w / size, np.full(n, 1 / n)])

    margins = {
        "type": "ineq",
        "fun": lambda v: rows @ v[:d] + v[d:] - 1,
        "jac": lambda v: np.hstack([rows, np.eye(n)]),
    }
    start = np.concatenate([np.zeros(d), np.ones(n)])
    bounds = [(None, None)] * d + [(0, None)] * n
    found = minimize(
        value,
        start,
        jac=True,
        bounds=bounds,
        constraints=[margins],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.success
    return float(found.fun)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e5])
def test_the_minimum_is_found_whatever_the_size_of_a_column(scale: float) -> None:
    """One region a sample: the bound is the objective, and convex."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 3)), np.arange(40) % 2
    X[:, 0] += 0.8 * (2 * y - 1)
    X[:, 2] *= scale
    model = mj.LatentSVC(0.01, form="shared", fit_intercept=False, random_state=0).fit(X, y)
    least = least_hinge(X, y, 0.01)
    assert least * (1 - 1e-6) <= model.objective_ <= least * (1 + 1e-3)
    assert model.objective_ - model.gap_ <= least * (1 + 1e-6)
    assert model.gap_ <= 0.5e-3 * model.objective_


@pytest.mark.parametrize("form", ["shared", "class-specific"])
@pytest.mark.parametrize("scale", [1e3, 1e5])
def test_bounds_are_solved_to_the_gap_that_is_promised(form: Any, scale: float) -> None:
    X, y, _ = planted(n=60, d=6, signal=1.5, n_classes=2)
    X[..., 5] *= scale
    model = mj.LatentSVC(0.01, form=form, random_state=0).fit(X, y)  # no warning
    assert 0 <= model.gap_ <= 0.5e-3 * model.objective_
    assert all(start.converged for start in model.search_.starts)


@pytest.mark.parametrize("scale", [1e3, 1e5])
def test_cutting_planes_solve_badly_scaled_bounds_too(scale: float) -> None:
    """They went round in circles, as inner products had too few digits; or said that a bound was not solved."""
    X, y, _ = planted(n=40, d=6, signal=1.5, n_classes=2)
    X[..., 0] *= scale
    model = mj.LatentSVC(0.01, solver="cutting-plane", latent_init="annealed", random_state=0).fit(X, y)
    assert 0 <= model.gap_ <= 0.5e-3 * model.objective_


def test_more_columns_than_planes_are_solved_too() -> None:
    X, y, _ = planted(n=20, width=2, d=300, signal=1.0, n_classes=2)
    X[..., 7] *= 1e4
    model = mj.LatentSVC(0.01, random_state=0).fit(X, y)
    assert 0 <= model.gap_ <= 0.5e-3 * model.objective_


def test_as_many_bags_and_columns_as_musk_are_solved_or_told() -> None:
    """The gap was as large as the objective, and no word said so."""
    X, y, _ = planted(n=92, width=4, d=166, signal=1.0, n_classes=2)
    X[..., 5] *= 1e4
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = mj.LatentSVC(random_state=0).fit(X, y)
    assert 0 <= model.gap_ <= 1e-2 * model.objective_
    assert (model.gap_ <= 0.5e-3 * model.objective_) or "not solved (duality gap" in str(told[0].message)


@pytest.mark.parametrize("solver", ["dcd", "cutting-plane", "bcfw"])
def test_a_bound_that_is_not_solved_is_told(solver: Any) -> None:
    X, y, _ = planted(n=30, width=2, signal=1.5, n_classes=2)
    X[..., 3] *= 1e9
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = mj.LatentSVC(0.01, solver=solver, latent_init="first", max_iter=5, random_state=0).fit(X, y)
    said = " ".join(str(one.message) for one in told)
    if model.gap_ > 0.5e-3 * model.objective_:
        assert ("not solved (duality gap" in said and "similar size" in said) or "Scale X" in said
        assert not model.search_.starts[0].converged
    else:
        assert "not solved" not in said


def test_standard_columns_are_not_told_to_be_scaled() -> None:
    X, y, _ = planted(n=12, width=2, signal=1.5, n_classes=2)
    X = (X - X.mean(axis=(0, 1))) / X.std(axis=(0, 1))
    with pytest.warns(ConvergenceWarning, match=r'Raise alpha \(now 0.0001\) or tol, or use solver="dcd"'):
        mj.LatentSVC(1e-4, solver="bcfw", latent_init="first", max_iter=1, random_state=0).fit(X, y)


@pytest.mark.parametrize("kind", ["latent", "images"])
def test_balanced_classes_are_weights_of_samples(kind: str) -> None:
    X, y, _ = planted(n=45, signal=2.0)
    y = np.where(np.arange(45) < 30, 0, y)
    given = np.random.default_rng(1).integers(1, 4, 45).astype(float)

    def model(**parameters: Any) -> Any:
        if kind == "latent":
            return mj.LatentSVC(0.02, random_state=0, tol=1e-6, **parameters)
        return mj.ReconfigurableBagOfWords(3, 0.1, random_state=0, tol=1e-6, **parameters)

    # By scikit-learn on repeated rows, which know of no weights.
    repeated = compute_sample_weight("balanced", np.repeat(y, given.astype(int)))
    of_class = {label: float(repeated[np.repeat(y, given.astype(int)) == label][0]) for label in np.unique(y).tolist()}
    factor = np.array([of_class[label] for label in y.tolist()])
    plain = model().fit(X, y, sample_weight=given * factor)
    for class_weight in ("balanced", of_class):
        balanced = model(class_weight=class_weight).fit(X, y, sample_weight=given)
        assert balanced.objective_ == pytest.approx(plain.objective_, rel=1e-6)
        np.testing.assert_array_equal(balanced.predict(X), plain.predict(X))
        np.testing.assert_allclose(balanced.confusion_.sum(axis=1), np.bincount(y, given))


def test_one_class_for_all_is_told_with_the_way_out() -> None:
    """One bag in nine is positive, by a little: the least objective is that of calling all negative."""
    random = np.random.default_rng(3)
    X, y = random.normal(size=(90, 3, 2)), (np.arange(90) % 9 == 0).astype(int)
    X[y == 1, 0] += 1.0
    with pytest.warns(ConvergenceWarning, match='class_weight="balanced"'):
        plain = mj.LatentSVC(0.3, form="shared", random_state=0).fit(X, y)
    assert not plain.predict(X).any()
    balanced = mj.LatentSVC(0.3, form="shared", class_weight="balanced", random_state=0).fit(X, y)
    assert 0 < balanced.predict(X).mean() < 1


@pytest.mark.parametrize(
    ("class_weight", "error"),
    [
        ("even", TypeError),
        ([1, 2], TypeError),
        ({7: 1.0}, ValueError),
        ({0: -1.0}, ValueError),
        ({0: 0.0}, ValueError),
        ({0: np.nan}, ValueError),
        ({0: "a"}, ValueError),
    ],
)
def test_class_weights_that_are_none_are_refused(class_weight: Any, error: type[Exception]) -> None:
    X, y, _ = planted(n=12)
    with pytest.raises(error, match="class_weight"):
        mj.LatentSVC(class_weight=class_weight).fit(X, y)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_starts_are_not_led_by_a_column_of_noise_that_is_large(seed: int, scale: float) -> None:
    """The regions of the fit in equal units are a start in these too: the search comes as low, or nearly."""
    X, y, _ = planted(seed, n=120, width=5, d=8, n_classes=4)
    units = np.append(np.ones(7), scale)
    alike = mj.LatentSVC(1e-3, random_state=0).fit(X, y)
    there = mj.LatentSVC(1e-3, latent_init=alike.latent_, random_state=0).fit(X * units, y)
    model = mj.LatentSVC(1e-3, random_state=0).fit(X * units, y)
    assert model.objective_ < 1.3 * there.objective_
    new, labels, _ = planted(seed + 100, n=1000, width=5, d=8, n_classes=4)
    assert model.score(new * units, labels) > alike.score(new, labels) - 0.03


def test_sizes_of_columns_do_not_depend_on_order_repeats_or_padding() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 5)) * [1, 1, 1, 1, 300]
    sizes = column_sizes(rows)
    assert (sizes[:4] == 1).all() and 128 <= sizes[4] <= 512
    again = np.vstack([np.full((1, 5), np.nan), rows[::-1], rows[:7]])
    np.testing.assert_array_equal(column_sizes(again), sizes)
    np.testing.assert_array_equal(column_sizes(rows + 1e6), np.where(sizes == 1, 1, sizes))  # where it lies is no size
    np.testing.assert_array_equal(column_sizes(rows[:, :4] * [1, 2, 3, 5]), np.ones(4))
    np.testing.assert_array_equal(column_sizes(np.zeros((3, 2))), np.ones(2))
