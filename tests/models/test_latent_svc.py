"""LatentSVC: forms of input, starts, policies, and what they must find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import majorant as mj

N, L, D = 36, 5, 4


def planted(
    seed: int = 0, n: int = N, width: int = L, d: int = D, n_classes: int = 3, signal: float = 3.0
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
    """Samples in which one region shows the class and the others are noise, the labels, and where it is."""
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(n, width, d)), np.arange(n) % n_classes
    place = random.integers(0, width, n)
    X[np.arange(n), place] += signal * np.eye(n_classes, d)[y]
    return X, y, place


def objective(model: mj.LatentSVC, X: NDArray[np.float64], y: NDArray[np.intp], weights: Any = None) -> float:
    """By its definition, for class-specific weights and a cost of one."""
    weights = np.ones(len(X)) if weights is None else weights
    scores = np.einsum("izj,yj->izy", X, model.coef_) + model.intercept_
    best = scores.max(axis=1)
    loss = (best + (np.arange(best.shape[1]) != y[:, None])).max(axis=1) - best[np.arange(len(X)), y]
    penalty = model.alpha / 2 * (np.sum(model.coef_**2) + np.sum(model.intercept_**2))
    return float(penalty + weights @ loss / weights.sum())


def assert_same(a: mj.LatentSVC, b: mj.LatentSVC) -> None:
    np.testing.assert_array_equal(a.coef_, b.coef_)
    np.testing.assert_array_equal(a.intercept_, b.intercept_)
    assert a.objective_ == b.objective_


def test_it_finds_the_regions_that_show_the_class() -> None:
    X, y, place = planted(n=90, signal=5.0)
    model = mj.LatentSVC(0.01, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert np.mean(model.latent_ == place) > 0.9
    np.testing.assert_array_equal(model.predict_latent(X, y), model.latent_)
    assert model.objective_ == pytest.approx(objective(model, X, y), rel=1e-10)
    assert 0 <= model.gap_ <= 0.5e-3 * model.objective_ + 1e-12
    assert model.confusion_.sum() == 90
    assert np.trace(model.confusion_) / 90 == pytest.approx(model.score(X, y))


def test_all_forms_of_input_give_the_same_fit() -> None:
    X, y, _ = planted()
    counts = np.random.default_rng(1).integers(1, L + 1, N)
    listed = [x[:m] for x, m in zip(X, counts, strict=True)]
    padded = np.where(np.arange(L)[:, None] < counts[:, None, None], X, np.nan)
    rows, bags = np.concatenate(listed), np.repeat([f"bag {i}" for i in range(N)], counts)
    model = mj.LatentSVC(0.05, random_state=0)
    expected = clone(model).fit(listed, y)
    shuffled = np.random.default_rng(2).permutation(len(rows))
    shuffled = shuffled[np.argsort(bags[shuffled], kind="stable")]
    for X_given, y_given, by in (
        (padded, y, None),
        (rows, y, bags),
        (rows, np.repeat(y, counts), bags),
        (rows.tolist(), y, bags.tolist()),
    ):
        fitted = clone(model).fit(X_given, y_given, bags=by)
        assert_same(fitted, expected)
        np.testing.assert_array_equal(fitted.latent_, expected.latent_)
        np.testing.assert_array_equal(fitted.predict(X_given, bags=by), expected.predict(listed))
        assert fitted.score(X_given, y_given, bags=by) == expected.score(listed, y)
    for near in (sparse.csr_matrix(rows), rows.astype(np.float32), sparse.csr_array(rows.astype(np.float32))):
        fitted = clone(model).fit(near, y, bags=bags)
        assert fitted.objective_ == pytest.approx(expected.objective_, rel=2e-3)


def test_bags_need_not_lie_together_and_come_in_order_of_first_appearance() -> None:
    X, y, _ = planted()
    rows, bags = X.reshape(-1, D), np.repeat(np.arange(N)[::-1] * 7, L)
    order = np.argsort(np.tile(np.arange(L), N), kind="stable")  # first regions of all samples, then second ones
    model = mj.LatentSVC(0.05, random_state=0)
    together, apart = clone(model).fit(rows, y, bags=bags), clone(model).fit(rows[order], y, bags=bags[order])
    assert_same(together, apart)
    np.testing.assert_array_equal(together.latent_, apart.latent_)
    np.testing.assert_array_equal(together.predict(rows, bags=bags), apart.predict(rows[order], bags=bags[order]))


def test_weights_are_repeats_and_order_does_not_matter() -> None:
    X, y, _ = planted()
    weights = np.arange(N) // 3 % 3
    model = mj.LatentSVC(0.05, random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=weights)
    repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert_same(weighted, repeated)
    assert weighted.objective_ == pytest.approx(objective(weighted, X, y, weights), rel=1e-10)
    order = np.random.default_rng(0).permutation(N)
    assert_same(clone(model).fit(X[order], y[order], sample_weight=weights[order]), weighted)


@pytest.mark.parametrize("bounds", [None, mj.GibbsLimit()])
def test_threads_change_no_bit(bounds: Any) -> None:
    X, y, _ = planted(n=300, width=30, d=6)
    X = X.astype(np.float32)
    one = mj.LatentSVC(0.05, bounds=bounds, random_state=0, n_jobs=1).fit(X, y)
    assert_same(mj.LatentSVC(0.05, bounds=bounds, random_state=0, n_jobs=2).fit(X, y), one)


@pytest.mark.parametrize("solver", ["dcd", "cutting-plane", "bcfw"])
@pytest.mark.parametrize("form", ["class-specific", "shared"])
def test_solvers_end_at_the_same_objective(solver: str, form: Any) -> None:
    X, y, _ = planted(n_classes=2)
    found = mj.LatentSVC(0.3, solver=solver, form=form, random_state=0, tol=2e-3).fit(X, y)  # type: ignore[arg-type]
    reference = mj.LatentSVC(0.3, form=form, random_state=0, tol=1e-6).fit(X, y)
    assert found.objective_ == pytest.approx(reference.objective_, rel=3e-3)
    assert found.gap_ <= 1e-3 * found.objective_


POLICIES = [
    mj.Tightest(),
    mj.GibbsLimit(),
    mj.RandomWalk(),
    mj.GrowingSubset(),
    mj.Tempered(eta=0.1),
    mj.Biased(mj.Balance()),
    mj.Biased(mj.MultiFold(3)),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("init", ["random", "center"])
def test_bounds_fall_under_every_policy(policy: Any, init: str) -> None:
    X, y, _ = planted(d=60, signal=4.0)
    model = mj.LatentSVC(0.3, latent_init=init, bounds=policy, random_state=0).fit(X, y)
    for exploring in (0.0, 1.0):
        at = model.trace_["exploring"] == exploring
        bound = model.trace_["bound"][at]
        assert np.all(np.diff(bound) <= 1e-9 * np.abs(bound[:-1]))
        assert np.all(model.trace_["gap"][at] >= -1e-9)
    used, budget = model.trace_["used"], model.trace_["budget"]
    assert np.all(used[np.isfinite(used)] <= budget[np.isfinite(used)] * (1 + 1e-9))
    assert model.objective_ == pytest.approx(objective(model, X, y), rel=1e-10)
    assert model.objective_ <= np.nanmin(model.trace_["objective"]) + 1e-12


def test_the_annealed_start_needs_no_luck() -> None:
    """On average over seeds it ends below the paper's starts, and near the start from the true regions."""
    found: dict[str, list[float]] = {"annealed": [], "center": [], "first": [], "true": []}
    for seed in range(3):
        X, y, place = planted(seed, n=60, width=10, d=60, signal=7.0)
        for name, values in found.items():
            init: Any = place if name == "true" else name
            model = mj.LatentSVC(0.3, latent_init=init, bounds=mj.Tightest(), random_state=0).fit(X, y)
            values.append(model.objective_)
    mean = {name: float(np.mean(values)) for name, values in found.items()}
    assert mean["annealed"] < 0.8 * mean["center"]
    assert mean["annealed"] < 0.8 * mean["first"]
    assert mean["annealed"] < 1.05 * mean["true"]


def test_shared_form_is_multiple_instance_learning() -> None:
    """A sample is positive if one of its regions is."""
    random = np.random.default_rng(4)
    X, y = random.normal(size=(60, 6, 3)), np.arange(60) % 2
    place = random.integers(0, 6, 60)
    X[np.arange(60), place, 0] += np.where(y == 1, 5.0, 0.0)
    model = mj.LatentSVC(0.01, form="shared", random_state=0).fit(X, np.where(y == 1, "yes", "no"))
    assert model.coef_.shape == (1, 3)
    assert model.score(X, np.where(y == 1, "yes", "no")) > 0.9
    assert np.mean(model.latent_[y == 1] == place[y == 1]) > 0.9
    best = (X @ model.coef_[0] + model.intercept_[0]).max(axis=1)
    np.testing.assert_allclose(model.decision_function(X), best, rtol=1e-10)
    np.testing.assert_array_equal(model.predict(X) == "yes", best > 0)


def test_costs_move_mistakes() -> None:
    X, y, _ = planted(5, n=60, signal=1.0, n_classes=2)
    cheap = mj.LatentSVC(0.1, random_state=0).fit(X, y)
    dear = mj.LatentSVC(0.1, label_cost=[[0, 1], [20, 0]], random_state=0).fit(X, y)
    assert dear.confusion_[1, 0] <= cheap.confusion_[1, 0]
    assert dear.confusion_[0, 1] > cheap.confusion_[0, 1]


def test_doubled_costs_are_a_doubled_penalty() -> None:
    """``F(2 v; alpha, 2 cost) = 2 F(v; 2 alpha, cost)``."""
    X, y, _ = planted(5, n=60, signal=1.0, n_classes=2)
    dear = mj.LatentSVC(0.1, label_cost=2 * (1 - np.eye(2)), random_state=0, tol=1e-6).fit(X, y)
    stiff = mj.LatentSVC(0.2, random_state=0, tol=1e-6).fit(X, y)
    assert dear.objective_ == pytest.approx(2 * stiff.objective_, rel=1e-5)
    np.testing.assert_allclose(dear.coef_, 2 * stiff.coef_, atol=1e-2 * np.abs(dear.coef_).max())


def test_more_starts_leave_search() -> None:
    X, y, _ = planted()
    model = mj.LatentSVC(0.02, n_init=3, random_state=0).fit(X, y)
    drawn = ["random regions", "random regions"]
    assert [s.source for s in model.search_.starts] == ["annealed pooling", "first regions", *drawn]
    assert model.objective_ == min(s.objective for s in model.search_.starts)
    again = mj.LatentSVC(0.02, n_init=3, random_state=0).fit(X, y)
    assert_same(model, again)


def test_given_regions_are_the_first_of_several_starts() -> None:
    X, y, place = planted()
    model = mj.LatentSVC(0.02, latent_init=place, n_init=2, random_state=0).fit(X, y)
    assert [s.source for s in model.search_.starts] == ["given regions", "random regions"]


def test_a_fit_stuck_at_zero_says_so() -> None:
    """Random regions of so few features tell the classes apart nowhere: the first bound is least at zero."""
    X, y, _ = planted(signal=1.0)
    with pytest.warns(
        ConvergenceWarning, match=r'stuck at zero.*Lower alpha \(now 0.001\), or use .*"annealed"'
    ) as told:
        model = mj.LatentSVC(latent_init="random", random_state=0).fit(X, y)
    assert not model.coef_.any() and told[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match=r"stuck at zero.*Lower alpha \(now 100\)$"):
        mj.LatentSVC(100.0, random_state=0).fit(X - X.mean(axis=(0, 1)), y)


@pytest.mark.parametrize("form", [np.asarray, lambda X: list(map(sparse.csr_array, X))])
def test_features_that_are_all_zero_are_the_reason_told(form: Any) -> None:
    with pytest.warns(ConvergenceWarning, match="X holds nothing but zeros, which tell no class from another"):
        mj.LatentSVC(random_state=0).fit(form(np.zeros((6, 2, 3))), np.arange(6) % 2)


@pytest.mark.parametrize(
    ("width", "parameters", "note"),
    [
        (5, {}, "The annealed start depends on no guess. A larger n_init adds starts with random regions."),
        (5, {"latent_init": "center"}, "A larger n_init adds starts with random regions."),
        (5, {"n_init": 2}, ""),
        (1, {"n_init": 2}, "Every sample has one region: the problem is convex."),
    ],
)
def test_what_is_said_of_the_starts_is_true(width: int, parameters: dict[str, Any], note: str) -> None:
    X, y, _ = planted(width=width, d=60, signal=6.0)
    assert mj.LatentSVC(0.02, random_state=0, **parameters).fit(X, y).search_.note == note


def test_with_one_region_a_sample_the_minimum_is_bounded_from_below() -> None:
    X, y, _ = planted(width=1)
    rough, fine = (mj.LatentSVC(0.02, tol=tol, random_state=0).fit(X, y) for tol in (0.1, 1e-6))
    bound = rough.search_.proved_bound
    assert bound is not None and bound == rough.objective_ - rough.gap_ < rough.objective_
    assert bound <= fine.objective_ <= rough.objective_
    assert "nothing tells" not in str(rough.summary()) and "Provable bound: no" in str(rough.summary())
    assert mj.LatentSVC(0.02, random_state=0).fit(planted()[0], y).search_.proved_bound is None


def test_too_few_bounds_are_told() -> None:
    X, y, _ = planted(d=60, signal=4.0)
    with pytest.warns(ConvergenceWarning, match="max_iter") as told:
        mj.LatentSVC(0.02, latent_init="random", bounds=mj.Tightest(), max_iter=1, random_state=0).fit(X, y)
    assert told[0].filename == __file__


def test_saved_and_summarised(tmp_path: Path) -> None:
    X, y, _ = planted()
    model = mj.LatentSVC(0.02, random_state=0).fit(X, y)
    model.save(tmp_path / "model.majorant")
    loaded = mj.load(tmp_path / "model.majorant")
    np.testing.assert_array_equal(loaded.predict_latent(X), model.predict_latent(X))
    text = str(model.summary())
    assert "36 samples of 180 regions, 4 features" in text
    assert "duality gap" in text


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "sample without regions": ({"X": [np.ones((2, 4)), np.ones((0, 4))], "y": [0, 1]}, "sample 1 has no regions"),
    "padding alone": (
        {"X": np.stack([np.ones((2, 4)), np.full((2, 4), np.nan)]), "y": [0, 1]},
        "sample 1 has no regions",
    ),
    "ragged features": ({"X": [np.ones((2, 4)), np.ones((2, 3))], "y": [0, 1]}, "sample 1 has 3 features.*0 has 4"),
    "one dimension": ({"X": [np.ones((2, 4)), np.ones(4)], "y": [0, 1]}, "sample 1 must be a table"),
    "NaN in a region": (
        {"X": [np.ones((2, 4)), np.array([[1, 1, 1, 1], [1, np.nan, 1, 1]])], "y": [0, 1]},
        "NaN: sample 1, region 1, feature 1",
    ),
    "NaN within padding": (
        {"X": np.stack([np.ones((3, 2)), np.array([[1, 1], [np.nan, np.nan], [1, 1]])]), "y": [0, 1]},
        "padding must come last",
    ),
    "NaN in a bag": (
        {"X": [[1.0], [2.0], [np.nan]], "y": [0, 1], "bags": ["a", "b", "b"]},
        "NaN: sample b, region 1, feature 0",
    ),
    "infinity in a sparse bag": (
        {"X": sparse.csr_matrix([[1.0, 0], [0, np.inf]]), "y": [0, 1], "bags": [3, 5]},
        "infinity: sample 5, region 0, feature 1",
    ),
    "labels that differ in a bag": (
        {"X": np.ones((3, 2)), "y": [0, 1, 0], "bags": [1, 1, 2]},
        "bag 1 has 0 and, in row 1, 1",
    ),
    "too few bags": ({"X": np.ones((3, 2)), "y": [0, 1], "bags": [1, 2]}, r"shape \(3,\); got shape \(2,\)"),
    "too few labels": ({"X": np.ones((4, 2)), "y": [0, 1, 1], "bags": [1, 1, 2, 2]}, "each of the 2 samples.*4 rows"),
    "bag without a name": ({"X": np.ones((3, 2)), "y": [0, 1], "bags": [7, None, 8]}, "bags .* row 1 has no name"),
    "bag that is not available": (
        {"X": np.ones((3, 2)), "y": [0, 1], "bags": pd.Series(["a", "b", pd.NA], dtype="string")},
        "bags .* row 2 has no name",
    ),
    "bags of text, one NaN": ({"X": np.ones((3, 2)), "y": [0, 1], "bags": ["a", np.nan, "b"]}, "row 1 has no name"),
    "bags of two kinds": (
        {"X": np.ones((3, 2)), "y": [0, 1], "bags": [1, "b", 2]},
        r"bags must hold names of one kind.*row 0 has 1 \(number\), row 1 has 'b' \(text\)",
    ),
    "bags without an order": ({"X": np.ones((2, 2)), "y": [0, 1], "bags": [object(), object()]}, "have no order"),
    "labels of two kinds": (
        {"X": np.ones((3, 2, 2)), "y": ["a", 1, "b"]},
        r"y must hold names of one kind.*sample 0 has 'a' \(text\), sample 1 has 1 \(number\)",
    ),
    "label that is None": ({"X": np.ones((3, 2, 2)), "y": ["a", None, "b"]}, "sample 1 has no label"),
    "bags of an array of samples": ({"X": np.ones((2, 2, 2)), "y": [0, 1], "bags": [0, 1]}, "leave it out"),
    "one class": ({"X": np.ones((2, 2, 2)), "y": [1, 1]}, "one class only, 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_samples_are_named(case: str) -> None:
    given, message = WRONG[case]
    model = mj.LatentSVC()
    with pytest.raises(ValueError, match=message):
        model.fit(**given)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"latent_init": "centre"}, "Did you mean 'center'"),
        ({"latent_init": [0, 1]}, "one whole number a sample"),
        ({"latent_init": np.full(N, 9)}, "region 9 of sample 0, which has 5"),
        ({"form": "shared"}, "two classes"),
        ({"label_cost": np.zeros((2, 2))}, "each of the 3 labels"),
        ({"label_cost": np.ones((3, 3))}, "zero on its diagonal"),
        ({"label_cost": -1 + np.eye(3)}, "not negative"),
        ({"label_cost": np.zeros((3, 3))}, "largest entry"),
        ({"solver": "sgd"}, "solver"),
        ({"intercept_scaling": -1.0}, "intercept_scaling"),
    ],
)
def test_wrong_settings_are_refused(setting: dict[str, Any], message: str) -> None:
    X, y, _ = planted()
    with pytest.raises(ValueError, match=message):
        mj.LatentSVC(**setting).fit(X, y)


def test_predictions_check_their_input() -> None:
    X, y, _ = planted()
    model = mj.LatentSVC(0.05, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="2 features"):
        model.predict(X[:, :, :2])
    with pytest.raises(ValueError, match="did not see: 7"):
        model.predict_latent(X, np.full(N, 7))
    assert model.predict_latent(X).shape == (N,)
