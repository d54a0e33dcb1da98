"""ReconfigurableBagOfWords: forms of input, starts, policies, and what they must find."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.image import grid_to_graph

import majorant as mj
from majorant.models.bag_of_words import estimator
from majorant.models.bag_of_words.starts import coherent, discover, first_parts
from majorant.models.margin.family import MarginFamily
from majorant.models.margin.search import First
from majorant.solvers.structural_svm import SOLVERS
from majorant.solvers.structural_svm.grids import GridProblem, GridSet

N, SIDE, D, P = 36, 3, 5, 4


def planted(
    seed: int = 0, n: int = N, noise: float = 0.3, n_classes: int = 3, swapped: float = 0.1
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
    """Images whose regions show one of four parts, laid out by class, the labels, and the parts."""
    random = np.random.default_rng(seed)
    looks = np.random.default_rng(99).normal(size=(P, D))
    layouts = random.integers(0, P, (n_classes, SIDE, SIDE))
    y = np.arange(n) % n_classes
    parts = np.where(random.random((n, SIDE, SIDE)) < swapped, random.integers(0, P, (n, SIDE, SIDE)), layouts[y])
    return looks[parts] + noise * random.normal(size=(n, SIDE, SIDE, D)), y, parts


def scores(model: mj.ReconfigurableBagOfWords, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """By their definition, (images, classes)."""
    terms = (X @ model.part_filters_.T)[:, None] + model.table_
    return np.asarray(terms.max(axis=-1).sum(axis=(2, 3)))


def objective(
    model: mj.ReconfigurableBagOfWords, X: NDArray[np.float64], y: NDArray[np.intp], weights: Any = None
) -> float:
    """By its definition, for a cost of one."""
    weights = np.ones(len(X)) if weights is None else weights
    best = scores(model, X)
    loss = (best + (np.arange(best.shape[1]) != y[:, None])).max(axis=1) - best[np.arange(len(X)), y]
    squares = np.sum(model.part_filters_**2) + np.sum((model.table_ / model.table_scaling) ** 2)
    return float(model.alpha / 2 * squares + weights @ loss / weights.sum())


def assert_same(a: mj.ReconfigurableBagOfWords, b: mj.ReconfigurableBagOfWords) -> None:
    np.testing.assert_array_equal(a.part_filters_, b.part_filters_)
    np.testing.assert_array_equal(a.table_, b.table_)
    assert a.objective_ == b.objective_


def model(alpha: float = 0.05, **settings: Any) -> mj.ReconfigurableBagOfWords:
    return mj.ReconfigurableBagOfWords(**{"n_parts": P, "alpha": alpha, "random_state": 0, **settings})


def test_it_finds_the_parts_and_the_classes() -> None:
    X, y, parts = planted(n=90)
    fitted = model().fit(X, y)
    assert fitted.score(X, y) == 1.0
    together = np.zeros((P, P))
    np.add.at(together, (parts.ravel(), fitted.latent_.ravel()), 1)
    assert together.max(axis=1).sum() > 0.8 * parts.size  # one part of the model for each look, for most regions
    np.testing.assert_array_equal(fitted.predict_latent(X, y), fitted.latent_)
    np.testing.assert_allclose(fitted.decision_function(X), scores(fitted, X), rtol=1e-10)
    assert fitted.objective_ == pytest.approx(objective(fitted, X, y), rel=1e-10)
    assert 0 <= fitted.gap_ <= 0.5e-3 * fitted.objective_ + 1e-12
    assert fitted.confusion_.sum() == 90


@pytest.mark.parametrize("init", ["annealed", "kmeans"])
def test_a_column_of_noise_that_is_large_does_not_lead_the_starts(init: str) -> None:
    X, y, _ = planted(n=90)
    X = np.concatenate([X, np.random.default_rng(1).normal(size=(*X.shape[:3], 1))], axis=3)
    units = np.append(np.ones(X.shape[3] - 1), 100.0)
    alike, other = (model(latent_init=init).fit(X * unit, y) for unit in (1.0, units))
    assert other.objective_ < 1.3 * alike.objective_ and other.score(X * units, y) > alike.score(X, y) - 0.03


@pytest.mark.parametrize("scaling", [0.3, 2.0])
def test_the_table_may_weigh_less_or_more(scaling: float) -> None:
    X, y, _ = planted()
    fitted = model(table_scaling=scaling).fit(X, y)
    assert fitted.objective_ == pytest.approx(objective(fitted, X, y), rel=1e-10)
    np.testing.assert_allclose(fitted.decision_function(X), scores(fitted, X), rtol=1e-10)


def test_a_grid_is_a_list_of_regions_and_one_region_a_row() -> None:
    X, y, _ = planted()
    grid = model().fit(X, y)
    flat = model().fit(X.reshape(N, -1, D), y)
    np.testing.assert_array_equal(grid.part_filters_, flat.part_filters_)
    np.testing.assert_array_equal(grid.latent_.reshape(N, -1), flat.latent_)
    np.testing.assert_array_equal(grid.table_.reshape(flat.table_.shape), flat.table_)
    np.testing.assert_array_equal(grid.predict(X), flat.predict(X.reshape(N, -1, D).tolist()))
    one = model().fit(X[:, :1, :1], y)
    rows = model().fit(X[:, 0, 0], y)
    np.testing.assert_array_equal(one.part_filters_, rows.part_filters_)
    assert rows.latent_.shape == (N,)
    assert rows.table_.shape == (3, P)
    np.testing.assert_array_equal(rows.predict_latent(X[:, 0, 0]), one.predict_latent(X[:, :1, :1]).ravel())


def test_single_precision_is_near() -> None:
    X, y, _ = planted()
    near, exact = model().fit(X.astype(np.float32), y), model().fit(X, y)
    assert near.objective_ == pytest.approx(exact.objective_, rel=5e-3)


@pytest.mark.parametrize("init", ["annealed", "random"])
def test_weights_are_repeats_and_order_does_not_matter(init: str) -> None:
    X, y, _ = planted()
    weights = np.arange(N) // 3 % 3
    settings = model(latent_init=init)
    weighted = clone(settings).fit(X, y, sample_weight=weights)
    repeated = clone(settings).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert_same(weighted, repeated)
    assert weighted.objective_ == pytest.approx(objective(weighted, X, y, weights), rel=1e-10)
    order = np.random.default_rng(0).permutation(N)
    shuffled = clone(settings).fit(X[order], y[order], sample_weight=weights[order])
    assert_same(shuffled, weighted)
    np.testing.assert_array_equal(shuffled.latent_, weighted.latent_[order])


def test_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GridSet, "block_images", 7)
    X, y, _ = planted(n=60)
    for bounds in (None, mj.GibbsLimit()):
        one = model(bounds=bounds, n_jobs=1).fit(X, y)
        assert_same(model(bounds=bounds, n_jobs=2).fit(X, y), one)


EDGES = grid_to_graph(SIDE, SIDE)
POLICIES = [
    mj.Tightest(),
    mj.GibbsLimit(),
    mj.RandomWalk(),
    mj.GrowingSubset(),
    mj.Tempered(eta=0.1),
    mj.Biased(mj.Balance()),
    mj.Biased(mj.MultiFold(3)),
    mj.Biased(mj.Coherence(EDGES, method="icm")),
]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("init", ["random", "kmeans"])
def test_bounds_fall_under_every_policy(policy: Any, init: str) -> None:
    X, y, _ = planted(noise=0.6)
    fitted = model(1.0, latent_init=init, bounds=policy).fit(X, y)
    for exploring in (0.0, 1.0):
        at = fitted.trace_["exploring"] == exploring
        bound = fitted.trace_["bound"][at]
        assert np.all(np.diff(bound) <= 1e-9 * np.abs(bound[:-1]))
        assert np.all(fitted.trace_["gap"][at] >= -1e-9)
    used, budget = fitted.trace_["used"], fitted.trace_["budget"]
    assert np.all(used[np.isfinite(used)] <= budget[np.isfinite(used)] * (1 + 1e-9))
    assert fitted.objective_ == pytest.approx(objective(fitted, X, y), rel=1e-10)
    assert fitted.objective_ <= np.nanmin(fitted.trace_["objective"]) + 1e-12


def family(X: NDArray[np.float64], y: NDArray[np.intp], shares: NDArray[np.float64]) -> MarginFamily:
    n, m = len(X), SIDE * SIDE
    grids = GridSet(X.reshape(n * m, D), np.arange(n, dtype=np.int64) * m, m, y.astype(np.int32), 3, P)
    return MarginFamily(GridProblem(grids, 1.0 - np.eye(3)), shares, 0.3, SOLVERS["dcd"], 1e-3, 0)


def test_energies_statistics_and_the_fused_pass_agree() -> None:
    X, y, _ = planted()
    shares = np.random.default_rng(1).uniform(1, 2, N)
    of = family(X, y, shares / shares.sum())
    data = of.problem.samples.units(of.shares)
    (block,) = data.source.blocks()
    z = np.random.default_rng(2).integers(0, P, N * SIDE * SIDE).astype(np.int32)
    theta, value = of.solve(of.statistics(block, z, None), None, data)
    energies = of.energies(theta, block)
    rows = np.arange(len(z))
    assert value == pytest.approx(of.penalty(theta) + block.total(energies[rows, z]), rel=1e-9)
    free, bound = of.tight_pass(theta, block)
    best = energies.argmin(axis=1).astype(np.int32)
    assert free == pytest.approx(block.total(energies[rows, best]), rel=1e-12)
    np.testing.assert_allclose(bound.statistics, of.statistics(block, best, theta), atol=1e-14)
    soft = np.eye(P)[z]
    np.testing.assert_allclose(of.statistics(block, soft, theta), of.statistics(block, z, theta), atol=1e-14)


def test_a_restricted_family_is_that_of_its_images() -> None:
    X, y, _ = planted()
    shares = np.random.default_rng(1).uniform(1, 2, N)
    shares /= shares.sum()
    mask = np.random.default_rng(0).random(N) < 0.7
    whole, alone = family(X, y, shares), family(X[mask], y[mask], shares[mask])
    restricted = whole.restricted(np.repeat(mask, SIDE * SIDE))
    z = np.random.default_rng(2).integers(0, P, (N, SIDE * SIDE)).astype(np.int32)
    data, others = whole.problem.samples.units(shares), alone.problem.samples.units(shares[mask])
    s = data.map_sum(lambda block: restricted.statistics(block, z.ravel()[block.at], None))
    expected = others.map_sum(lambda block: alone.statistics(block, z[mask].ravel()[block.at], None))
    np.testing.assert_allclose(s, expected, atol=1e-14)
    value, at = restricted.solve(s, None, data)[1], alone.solve(s, None, others)[1]
    assert value == pytest.approx(at, rel=1.1e-2)


def test_folds_hold_whole_images() -> None:
    """Else the rest of an image would tell the fit without a region of it what that region is."""
    X, y, _ = planted()
    of = family(X, y, np.full(N, 1 / N))
    seen: list[NDArray[Any]] = []

    class Watched(MarginFamily):
        def restricted(self, mask: NDArray[np.bool_]) -> Any:
            seen.append(mask.reshape(N, -1))
            return super().restricted(mask)

    watched = Watched(of.problem, of.shares, of.alpha, of.solver, of.tol, of.seed)
    data = of.problem.samples.units(of.shares)
    (block,) = data.source.blocks()
    z = np.zeros(N * SIDE * SIDE, dtype=np.int32)
    theta, _ = of.solve(of.statistics(block, z, None), None, data)
    mj.MultiFold(4).prepare(watched, theta, data)
    assert len(seen) == 4
    assert all((mask == mask[:, :1]).all() for mask in seen)
    np.testing.assert_array_equal(np.sum([~mask[:, 0] for mask in seen], axis=0), 1)


def test_coherence_makes_maps_smoother_than_tightest_bounds() -> None:
    def breaks(maps: NDArray[np.intp]) -> float:
        return float((maps[:, 1:] != maps[:, :-1]).sum() + (maps[:, :, 1:] != maps[:, :, :-1]).sum())

    found: dict[str, list[float]] = {"tightest": [], "coherent": []}
    for seed in range(3):
        X, y, _ = planted(seed, n=45, noise=0.8)
        for name, bounds in (("tightest", mj.Tightest()), ("coherent", mj.Biased(mj.Coherence(EDGES, method="icm")))):
            found[name].append(breaks(model(0.5, latent_init="kmeans", bounds=bounds).fit(X, y).latent_))
    assert sum(found["coherent"]) < 0.95 * sum(found["tightest"])


def test_a_coherent_start_is_smoother_the_stronger() -> None:
    X, y, _ = planted(noise=1.0)
    starts = []
    for coherence in (0.0, 0.3):
        fitted = model(0.5, latent_init="kmeans", coherence=coherence, bounds=mj.Tightest(), max_iter=1000).fit(X, y)
        starts.append(fitted.search_.starts[0].source)
    assert starts == ["k-means", "coherent k-means"]
    m = SIDE * SIDE
    grids = GridSet(X.reshape(N * m, D), np.arange(N, dtype=np.int64) * m, m, y.astype(np.int32), 3, P)
    found = discover(grids, np.full(N, 1 / N), 0, None)
    maps = [coherent(grids, found, (SIDE, SIDE), strength).reshape(N, SIDE, SIDE) for strength in (0.0, 0.3, 1.0, 1e3)]
    breaks = [(z[:, 1:] != z[:, :-1]).sum() + (z[:, :, 1:] != z[:, :, :-1]).sum() for z in maps]
    np.testing.assert_array_equal(maps[0].reshape(N, m), found.parts)
    assert breaks[0] > breaks[1] > breaks[2] > breaks[3] == 0


def test_edges_among_the_regions_of_one_image_hold_in_all() -> None:
    X, y, _ = planted(noise=0.8)
    m = SIDE * SIDE
    pairs = mj.Coherence(EDGES).edges
    tiled = (np.arange(N)[:, None, None] * m + pairs).reshape(-1, 2)
    once, whole = (mj.Biased(mj.Coherence(edges, method="icm")) for edges in (pairs, tiled))
    settings = model(0.5, latent_init="kmeans")
    assert_same(clone(settings).set_params(bounds=once).fit(X, y), clone(settings).set_params(bounds=whole).fit(X, y))


def test_the_annealed_start_needs_no_luck(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the same for any seed, and on average over problems a fit from it ends below those from other starts."""
    begun: list[NDArray[np.int32]] = []

    def told(*args: Any, **settings: Any) -> Iterator[First]:
        for first in first_parts(*args, **settings):
            begun.append(first.latent)
            yield first

    monkeypatch.setattr(estimator, "first_parts", told)
    found: dict[str, list[float]] = {"annealed": [], "kmeans": [], "random": []}
    for seed in range(8):
        X, y, _ = planted(seed, n=45, noise=1.2, swapped=0.3)
        for init, values in found.items():
            values.append(model(0.3, n_parts=8, latent_init=init, bounds=mj.Tightest()).fit(X, y).objective_)
        model(0.3, n_parts=8, bounds=mj.Tightest(), random_state=5).fit(X, y)
        np.testing.assert_array_equal(begun[-1], begun[-4])
        assert (begun[-1] != begun[-2]).any()
    mean = {name: float(np.mean(values)) for name, values in found.items()}
    assert mean["annealed"] < 0.97 * mean["kmeans"]
    assert mean["annealed"] < 0.95 * mean["random"]


def test_given_parts_are_where_it_begins() -> None:
    X, y, parts = planted()
    fitted = model(latent_init=parts, bounds=mj.Tightest()).fit(X, y)
    assert fitted.search_.starts[0].source == "given parts"
    assert fitted.changed_ < 0.4
    order = np.random.default_rng(0).permutation(N)
    assert_same(model(latent_init=parts[order], bounds=mj.Tightest()).fit(X[order], y[order]), fitted)


def test_given_parts_are_the_first_of_several_starts() -> None:
    X, y, parts = planted()
    fitted = model(latent_init=parts, n_init=2).fit(X, y)
    assert [s.source for s in fitted.search_.starts] == ["given parts", "annealed pooling"]


def test_more_starts_leave_search() -> None:
    X, y, _ = planted()
    fitted = model(1.0, n_init=2, latent_init="random", bounds=mj.Tightest()).fit(X, y)
    assert [s.source for s in fitted.search_.starts] == 2 * ["random parts"]
    assert fitted.objective_ == min(s.objective for s in fitted.search_.starts)
    assert_same(clone(fitted).fit(X, y), fitted)


def test_fewer_distinct_regions_than_parts() -> None:
    X, y, _ = planted(noise=0.0)
    fitted = mj.ReconfigurableBagOfWords(9, 0.05, random_state=0).fit(X, y)
    assert fitted.score(X, y) == 1.0


def test_one_part_knows_how_frequent_the_classes_are_and_no_more() -> None:
    X, y, _ = planted()
    y = np.where(np.arange(N) < 30, 0, y)
    with pytest.warns(ConvergenceWarning, match=r"every image is predicted as 0.*class_weight=.balanced."):
        fitted = mj.ReconfigurableBagOfWords(1, 0.05, random_state=0).fit(X, y)
    assert set(fitted.predict(X)) == {0}
    assert not fitted.latent_.any()


def test_images_of_different_sizes_are_refused() -> None:
    X, y, _ = planted()
    images = [image[: 2 + i % 2] for i, image in enumerate(X)]
    with pytest.raises(ValueError, match=r"the same grid .* some of shape \(2, 3, 5\) and some of \(3, 3, 5\)"):
        mj.ReconfigurableBagOfWords(3).fit(images, y)


@pytest.mark.parametrize("unit", [1e12, 1e50])
def test_features_too_large_for_the_solver_are_told_of(unit: float) -> None:
    X, y, _ = planted()
    if unit > 1e20:  # scores round by more than any cost: which bound holds would be a question of the build
        with pytest.raises(ValueError, match=r"X holds \de\+50: .*alpha=0.01.* Scale X to about 1"):
            mj.ReconfigurableBagOfWords(3, random_state=0).fit(unit * X, y)
    else:
        with pytest.warns(ConvergenceWarning, match=r"stuck at zero.* Scale X, which holds \de\+\d\d, to about 1"):
            mj.ReconfigurableBagOfWords(3, random_state=0).fit(unit * X, y)
    with pytest.warns(ConvergenceWarning, match=r"stuck at zero.* Scale X, which holds \de\+\d\d, to about 1"):
        mj.LatentSVC(random_state=0).fit(list(unit * X.reshape(len(X), -1, D)), y)


def test_costs_that_are_no_numbers_are_refused() -> None:
    X, y, _ = planted()
    with pytest.raises(TypeError, match="label_cost must be a table of numbers"):
        mj.ReconfigurableBagOfWords(3, label_cost="ordinal").fit(X, y)


@pytest.mark.parametrize(
    ("start", "advice"),
    [
        ({"latent_init": "random"}, r"alpha \(now 1e\+10\), or"),
        ({"latent_init": "kmeans", "coherence": 0.5}, r"alpha \(now 1e\+10\) or coherence \(now 0.5\), or"),
    ],
)
def test_a_fit_stuck_at_zero_says_so(start: dict[str, Any], advice: str) -> None:
    X, y, _ = planted()
    with pytest.warns(ConvergenceWarning, match=f"stuck at zero.*{advice}"):
        fitted = model(1e10, **start).fit(X, y)
    assert np.abs(fitted.part_filters_).max() < 1e-3


def test_too_few_bounds_are_told() -> None:
    X, y, _ = planted(noise=0.8)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model(0.3, latent_init="random", max_iter=1).fit(X, y)


def test_labels_may_be_text_and_some_without_weight() -> None:
    X, y, _ = planted()
    names = np.array(["beach", "forest", "road"])[y]
    weights = np.where(y == 2, 0.0, 1.0)
    fitted = model().fit(X, names, sample_weight=weights)
    assert list(fitted.classes_) == ["beach", "forest"]
    assert (fitted.latent_[y == 2] == -1).all()
    assert fitted.decision_function(X).shape == (N,)
    alone = model().fit(X[y < 2], names[y < 2])
    assert_same(fitted, alone)


def test_costs_move_mistakes() -> None:
    X, y, _ = planted(3, noise=1.2, n_classes=2, swapped=0.6, n=60)
    cheap = model(1.0).fit(X, y)
    dear = model(1.0, label_cost=[[0, 1], [20, 0]]).fit(X, y)
    assert dear.confusion_[1, 0] <= cheap.confusion_[1, 0]
    assert dear.confusion_[0, 1] > cheap.confusion_[0, 1]


def test_saved_and_summarised(tmp_path: Path) -> None:
    X, y, _ = planted()
    fitted = model(bounds=mj.Biased(mj.Coherence(EDGES))).fit(X, y)
    fitted.save(tmp_path / "model.majorant")
    loaded = mj.load(tmp_path / "model.majorant")
    np.testing.assert_array_equal(loaded.predict_latent(X), fitted.predict_latent(X))
    assert loaded.get_params()["bounds"] == fitted.bounds
    text = str(fitted.summary())
    assert "36 images of 3 x 3 regions, 5 features" in text
    assert "of 4 are some region's" in text


ONES = np.ones((4, 2, 2, 3))
WRONG: dict[str, tuple[Any, str]] = {
    "NaN": (np.where(np.arange(48).reshape(ONES.shape) == 30, np.nan, 1.0), "NaN: sample 2, region 2, feature 0"),
    "a region of NaN": (
        np.where(np.arange(4)[:, None, None, None] == 1, np.array([[[1.0], [1.0]], [[1.0], [np.nan]]]), ONES),
        "NaN: image 1, region 3",
    ),
    "five axes": (np.ones((4, 2, 2, 2, 3)), "dim 5"),
    "no regions": (np.ones((4, 0, 2, 3)), "must have regions"),
    "no features": (np.ones((4, 2, 2, 0)), "feature"),
    "text": (np.full((4, 2, 2, 3), "a"), "numbers"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_images_are_named(case: str) -> None:
    X, message = WRONG[case]
    estimator = model()
    with pytest.raises((ValueError, TypeError), match=message):
        estimator.fit(X, [0, 1, 0, 1])
    assert not hasattr(estimator, "table_")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"n_parts": 0}, "n_parts"),
        ({"n_parts": 2.0}, "n_parts"),
        ({"alpha": 0.0}, "alpha"),
        ({"table_scaling": 0.0}, "table_scaling"),
        ({"coherence": -1.0}, "coherence"),
        ({"coherence": 0.5}, 'latent_init="kmeans"'),
        ({"latent_init": "k-means"}, "Did you mean 'kmeans'"),
        ({"latent_init": [0, 1]}, r"shape \(36, 3, 3\)"),
        ({"latent_init": np.full((N, SIDE, SIDE), 9)}, "part 9 for image 0, but there are 4"),
        ({"label_cost": np.zeros((2, 2))}, "each of the 3 labels"),
        ({"bounds": mj.Biased(mj.Coherence([[0, 10**6]]))}, "unit 1000000"),
    ],
)
def test_wrong_settings_are_refused(setting: dict[str, Any], message: str) -> None:
    X, y, _ = planted()
    with pytest.raises((ValueError, TypeError), match=message):
        model().set_params(**setting).fit(X, y)


def test_coherence_needs_a_grid() -> None:
    X, y, _ = planted()
    with pytest.raises(ValueError, match="got 3 axes"):
        model(latent_init="kmeans", coherence=0.5).fit(X.reshape(N, -1, D), y)


def test_pairs_in_one_image_are_kept_in_every_image() -> None:
    X, y, _ = planted()
    pairs = mj.PairConstraints(must_link=[[0, 1]])
    fitted = model(latent_init="kmeans", bounds=mj.Biased(pairs), max_iter=1000).fit(X, y)
    everywhere = mj.PairConstraints(must_link=[[9 * i, 9 * i + 1] for i in range(N)])
    assert_same(fitted, model(latent_init="kmeans", bounds=mj.Biased(everywhere), max_iter=1000).fit(X, y))


def test_predictions_are_those_of_the_fit_whatever_is_set_after() -> None:
    X, y, _ = planted()
    fitted = model().fit(X, y)
    expected, summary = fitted.decision_function(X), str(fitted.summary())
    fitted.set_params(n_parts=P + 2, table_scaling=3.0)
    np.testing.assert_allclose(fitted.decision_function(X), expected)
    assert str(fitted.summary()) == summary


def test_predictions_check_their_input() -> None:
    X, y, _ = planted()
    fitted = model().fit(X, y)
    with pytest.raises(ValueError, match=r"\(3, 3\); got \(2, 3\)"):
        fitted.predict(X[:, :2])
    with pytest.raises(ValueError, match="2 features"):
        fitted.predict(X[..., :2])
    with pytest.raises(ValueError, match="did not see: 7"):
        fitted.predict_latent(X, np.full(N, 7))
    assert fitted.predict_latent(X).shape == (N, SIDE, SIDE)
