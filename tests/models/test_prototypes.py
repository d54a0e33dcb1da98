"""Prototypes with a latent pose: against enumeration, closed forms, k-means, differences and their own limits."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestCentroid

import majorant as mj
from majorant.data.chunks import Chunks
from majorant.models.prototypes import search
from majorant.models.prototypes.conditional import ConditionalLoss


def two_planes(n: int = 90, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Two classes that are seen from three sides each; no class can be told from one side alone."""
    random = np.random.default_rng(seed)
    sides = np.array([[[0, 0], [4, 4], [8, 0]], [[4, 0], [0, 4], [8, 4]]], dtype=float)
    y, z = random.integers(2, size=n), random.integers(3, size=n)
    return sides[y, z] + random.normal(0, 0.6, (n, 2)), np.array(["airbus", "boeing"])[y]


def model(n_poses: int = 3, **parameters: Any) -> mj.LatentPrototypeClassifier:
    return mj.LatentPrototypeClassifier(n_poses, **{"random_state": 0, **parameters})


X, Y = two_planes()
TEMPERATURES = pytest.mark.parametrize("beta", [0.1, 1.0, 10.0, np.inf])


# Against loops and other models


@TEMPERATURES
def test_energies_probabilities_and_predictions_by_enumeration(beta: float) -> None:
    fitted = model(2, beta=beta).fit(X, Y)
    new = two_planes(12, seed=1)[0]
    energies, probabilities = fitted.transform(new).reshape(-1, 2, 2), fitted.predict_proba(new)
    for i, x in enumerate(new):
        distances = np.array([[np.sum((x - r) ** 2) for r in of_class] for of_class in fitted.prototypes_])
        np.testing.assert_allclose(energies[i], distances, rtol=1e-12, atol=1e-12)
        if np.isinf(beta):
            expected = (distances == distances.min()).any(axis=1).astype(float)
        else:
            weights = np.exp(-(distances - distances.min()) / fitted.temperature_)
            expected = weights.sum(axis=1) / weights.sum()
        np.testing.assert_allclose(probabilities[i], expected, rtol=1e-9, atol=1e-15)
        y, z = np.unravel_index(distances.argmin(), distances.shape)
        assert fitted.predict_poses([x]) == z
        assert fitted.predict_poses([x], [fitted.classes_[1 - y]]) == distances[1 - y].argmin()
    np.testing.assert_array_equal(fitted.predict(new), fitted.classes_[probabilities.argmax(axis=1)])


@TEMPERATURES
def test_the_objective_is_the_free_energy_of_the_rows_in_their_own_class(beta: float) -> None:
    weights = np.random.default_rng(2).uniform(0, 2, len(X))
    fitted = model(beta=beta).fit(X, Y, weights)
    own = fitted.transform(X).reshape(-1, 2, 3)[np.arange(len(X)), (Y == "boeing").astype(int)]
    if np.isinf(beta):
        free = own.min(axis=1)
    else:
        free = -fitted.temperature_ * (logsumexp(-own / fitted.temperature_, axis=1) - np.log(3))
    assert fitted.objective_ == pytest.approx(weights @ free, rel=1e-10)
    assert fitted.search_.best == pytest.approx(fitted.objective_, rel=1e-10)
    assert fitted.trace_["objective"][-1] == pytest.approx(fitted.objective_, rel=1e-10)


@pytest.mark.parametrize("n_poses", [1, 2, 5])
def test_one_class_at_zero_temperature_is_k_means(n_poses: int) -> None:
    rows = np.random.default_rng(3).normal(size=(200, 3))
    fitted = model(n_poses, beta=np.inf).fit(rows, np.zeros(200))
    clusters = mj.KMeans(n_poses, random_state=0).fit(rows)
    np.testing.assert_array_equal(fitted.prototypes_[0], clusters.cluster_centers_)
    np.testing.assert_array_equal(fitted.poses_, clusters.labels_)
    assert fitted.objective_ == clusters.inertia_
    assert fitted.search_.starts == clusters.search_.starts


def test_one_pose_is_the_nearest_centroid() -> None:
    fitted, centroids = model(1).fit(X, Y), NearestCentroid().fit(X, Y)
    np.testing.assert_allclose(fitted.prototypes_[:, 0], centroids.centroids_, rtol=1e-12)
    np.testing.assert_array_equal(fitted.predict(X), centroids.predict(X))


def test_poses_tell_apart_what_no_single_prototype_can() -> None:
    new, truth = two_planes(400, seed=5)
    assert model(1).fit(X, Y).score(new, truth) < 0.7
    assert model(3).fit(X, Y).score(new, truth) > 0.97


# Temperature


def test_predictions_tend_to_those_at_zero_temperature() -> None:
    new = np.random.default_rng(4).uniform(-1, 9, (500, 2))
    cold = model(beta=np.inf).fit(X, Y)
    disagree, gaps = [], []
    for beta in (0.02, 0.2, 20.0, 5e7):
        fitted = model(beta=beta).fit(X, Y)
        disagree.append(np.mean(fitted.predict(new) != cold.predict(new)))
        gaps.append(fitted.objective_ / cold.objective_ - 1)
    assert disagree[0] > 0 and disagree == sorted(disagree, reverse=True) and disagree[-1] == 0
    assert gaps == sorted(gaps, reverse=True) and 0 <= gaps[-1] < 1e-6
    np.testing.assert_allclose(fitted.predict_proba(new), cold.predict_proba(new), atol=1e-6)


def test_the_same_prototypes_at_falling_temperature() -> None:
    """The limit of the decision itself: of the free energy to the smallest energy."""
    fitted, new = model(beta=1.0).fit(X, Y), np.random.default_rng(4).uniform(-1, 9, (300, 2))
    nearest = fitted.transform(new).reshape(-1, 2, 3).min(axis=2).argmin(axis=1)
    agree = []
    for temperature in (100.0, 1.0, 1e-2, 1e-6, 0.0):
        fitted.temperature_ = temperature
        agree.append(np.mean(fitted.predict(new) == fitted.classes_[nearest]))
    assert agree[0] < 1 and agree[-2:] == [1, 1] and agree == sorted(agree)


def test_hot_poses_all_lie_at_the_mean_of_their_class() -> None:
    fitted = model(3, beta=1e-6).fit(X, Y)
    for c, label in enumerate(fitted.classes_):
        np.testing.assert_allclose(fitted.prototypes_[c], np.tile(X[label == Y].mean(axis=0), (3, 1)), rtol=1e-6)
    assert fitted.objective_ == pytest.approx(model(1).fit(X, Y).objective_, rel=1e-9)


def variance(rows: NDArray[np.float64], y: NDArray[Any]) -> float:
    """What beta is relative to, by the prototypes at zero temperature: one a class."""
    return model(1).fit(rows, y).temperature_ / 2


def test_the_unit_of_beta() -> None:
    """Between the mean and the largest variance; a known number where all directions are alike."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(60, 4)) * [1, 2, 3, 10] + 50
    y = np.repeat([0, 1, 2], 20)
    within = rows - np.array([rows[y == c].mean(axis=0) for c in range(3)])[y]
    eigenvalues = np.linalg.eigvalsh(within.T @ within / 60)
    v = variance(rows, y)
    assert v == pytest.approx(np.sum(eigenvalues**2) / np.sum(eigenvalues), rel=1e-12)
    assert eigenvalues.mean() < v < eigenvalues.max()
    rotation = np.linalg.qr(random.normal(size=(4, 4)))[0]
    assert variance(rows @ rotation, y) == pytest.approx(v, rel=1e-10)
    assert variance(np.column_stack([rows, np.full((60, 3), 7.0)]), y) == pytest.approx(v, rel=1e-12)
    cube = np.array([[x, y] for x in (-2.0, 2.0) for y in (-2.0, 2.0)])
    assert model(1, beta=4.0).fit(cube, np.zeros(4)).temperature_ == pytest.approx(2 * 4 / 4)


def test_the_unit_of_beta_is_about_the_poses_and_not_about_the_classes() -> None:
    """However far apart the poses of a class are, a pose is as wide as the rows about it."""
    near, far = (model(3).fit(X + spread * np.round(X / 4), Y).temperature_ / 2 for spread in (0.0, 100.0))
    assert near == pytest.approx(0.36, rel=0.3)
    assert far == pytest.approx(near, rel=0.3)


def test_the_unit_of_beta_with_more_columns_than_rows_and_for_part_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    wide, y = random.normal(size=(10, 40)), np.arange(10) % 2
    within = wide - np.array([wide[y == c].mean(axis=0) for c in range(2)])[y]
    S = within.T @ within / 10
    assert variance(wide, y) == pytest.approx(np.trace(S @ S) / np.trace(S), rel=1e-12)
    tall, y = random.normal(size=(4000, 5)), np.arange(4000) % 2
    everything = variance(tall, y)
    monkeypatch.setattr(search, "MOST_PRODUCTS", 1e4)
    assert variance(tall, y) != everything
    assert variance(tall, y) == pytest.approx(everything, rel=0.2)


@pytest.mark.parametrize("unit", [1e-8, 1e8, 2.0**300])
@pytest.mark.parametrize("method", ["em", "gradient"])
def test_probabilities_have_no_unit(method: Any, unit: float) -> None:
    plain = model(method=method).fit(X, Y)
    scaled = model(method=method).fit(X * unit, Y)
    np.testing.assert_allclose(scaled.predict_proba(X * unit), plain.predict_proba(X), rtol=1e-5, atol=1e-9)
    assert scaled.temperature_ == pytest.approx(plain.temperature_ * unit**2, rel=1e-9)


# EM


@pytest.mark.parametrize("seed", range(12))
@TEMPERATURES
def test_no_iteration_of_em_raises_the_free_energy(beta: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, y = random.normal(size=(80, 3)) * random.uniform(0.1, 10, 3), random.integers(3, size=80)
    fitted = model(2 + seed % 3, beta=beta, random_state=seed).fit(rows, y, random.uniform(0, 3, 80))
    objective, bound = fitted.trace_["objective"], fitted.trace_["bound"]
    slack = 1e-12 * objective[0]
    assert (np.diff(objective) <= slack).all()
    assert (bound >= objective - slack).all()
    assert (bound[1:] <= objective[:-1] + slack).all()
    assert (objective >= 0).all()


def test_em_ends_where_prototypes_are_means_by_responsibilities() -> None:
    fitted = model(3, tol=1e-13).fit(X, Y)
    for c, label in enumerate(fitted.classes_):
        rows = X[label == Y]
        q = mj.energy.posterior(fitted.transform(rows).reshape(-1, 2, 3)[:, c], 1, 1 / fitted.temperature_)
        np.testing.assert_allclose(q.T @ rows / q.sum(axis=0)[:, None], fitted.prototypes_[c], rtol=1e-5)
        np.testing.assert_allclose(q.mean(axis=0), fitted.pose_shares_[c], rtol=1e-5)


def test_every_start_is_on_record_beside_the_best_of_the_other_classes() -> None:
    fitted = model(4, n_init=6).fit(*two_planes(60, seed=9))
    assert fitted.search_.n_starts == 2 * 6
    assert [s.source for s in fitted.search_.starts[:6]] == ["swap search"] + ["k-means++"] * 5
    assert fitted.search_.best == pytest.approx(fitted.objective_, rel=1e-12)
    for half in (fitted.search_.starts[:6], fitted.search_.starts[6:]):
        assert min(s.objective for s in half) == pytest.approx(fitted.objective_, rel=1e-12)


def test_the_answer_does_not_depend_on_a_lucky_seed() -> None:
    found = [model(3, random_state=seed).fit(X, Y) for seed in range(8)]
    for other in found[1:]:
        np.testing.assert_allclose(other.prototypes_, found[0].prototypes_, rtol=1e-3)


# Gradient


def loss_of(n_poses: list[int], beta: float, alpha: float) -> tuple[ConditionalLoss, NDArray[np.float64]]:
    random = np.random.default_rng(7)
    codes = random.integers(len(n_poses), size=40)
    data = Chunks(random.normal(size=(40, 3)), codes, weights=random.uniform(0, 2, 40), rows=16)
    prototypes = random.normal(size=(len(n_poses), max(n_poses), 3))
    return ConditionalLoss(data, np.array(n_poses), max(n_poses), beta, alpha), prototypes


@pytest.mark.parametrize("n_poses", [[2, 2, 2], [3, 1, 2], [1]], ids=str)
@pytest.mark.parametrize(("beta", "alpha"), [(0.3, 0.0), (1.0, 0.1), (4.0, 0.01)])
def test_the_gradient_by_differences(n_poses: list[int], beta: float, alpha: float) -> None:
    loss, prototypes = loss_of(n_poses, beta, alpha)
    gradient = loss.value_and_gradient(prototypes)[1]
    step = 1e-3
    differences = np.empty_like(prototypes)
    for at in np.ndindex(prototypes.shape):
        e = np.zeros_like(prototypes)
        e[at] = step
        f = [loss.value_and_gradient(prototypes + k * e)[0] for k in (-2, -1, 1, 2)]
        differences[at] = (8 * (f[2] - f[1]) - (f[3] - f[0])) / (12 * step)
    size = np.abs(gradient).max()
    np.testing.assert_allclose(gradient, differences, atol=1e-7 * max(size, 1e-4))
    for c, n in enumerate(n_poses):
        assert not gradient[c, n:].any(), "what is no pose has no gradient"


def test_the_loss_by_its_formula() -> None:
    loss, prototypes = loss_of([3, 1, 2], 0.7, 0.2)
    total, mass = 0.0, 0.0
    for block in loss.data.source.blocks():
        for x, code, w in zip(*block.columns, block.weights, strict=True):  # type: ignore[arg-type]
            F = [
                -np.log(np.mean([np.exp(-0.7 * np.sum((x - r) ** 2)) for r in prototypes[c, :n]]))
                for c, n in enumerate(loss.n_poses)
            ]
            total += w * (F[code] + np.log(np.sum(np.exp(-np.array(F)))) + 0.2 * F[code])
            mass += w
    assert loss.value_and_gradient(prototypes)[0] == pytest.approx(total / mass, rel=1e-12)


def test_training_by_gradient_lowers_the_loss_of_em() -> None:
    rows, labels = two_planes(200, seed=11)
    rows = rows + np.random.default_rng(0).normal(0, 0.8, rows.shape)
    em, trained = model().fit(rows, labels), model(method="gradient", alpha=0.001).fit(rows, labels)
    code = (labels == "boeing").astype(int)

    def loss(fitted: Any) -> float:
        return -float(np.log(fitted.predict_proba(rows)[np.arange(200), code]).mean())

    assert loss(trained) < loss(em)
    assert (np.diff(trained.trace_["objective"]) <= 0).all()
    assert trained.trace_["objective"][-1] == pytest.approx(trained.objective_, rel=1e-12)
    own = trained.transform(rows).reshape(-1, 2, 3)[np.arange(200), code] / trained.temperature_
    free = -logsumexp(-own, axis=1) + np.log(3)
    assert trained.objective_ == pytest.approx(200 * loss(trained) + 0.001 * free.sum(), rel=1e-9)
    assert trained.search_.n_starts == 1 and "EM" in trained.search_.note


def test_training_at_zero_temperature_is_refused() -> None:
    with pytest.raises(ValueError, match='method="gradient" needs a finite beta'):
        model(method="gradient", beta=np.inf).fit(X, Y)


def test_rows_without_spread_have_nothing_to_train() -> None:
    fitted = model(1, method="gradient").fit([[0.0], [1.0], [1.0]], ["a", "b", "b"])
    assert fitted.temperature_ == 0 and fitted.predict([[0.4], [0.6]]).tolist() == ["a", "b"]


# The weighted measure is all that counts


@pytest.mark.parametrize("parameters", [{}, {"beta": np.inf}, {"method": "gradient"}], ids=str)
def test_weights_are_repeats_and_order_does_not_matter(parameters: dict[str, Any]) -> None:
    random = np.random.default_rng(3)
    times = random.integers(0, 4, len(X))
    order = random.permutation(len(X))
    weighted = model(**parameters).fit(X, Y, times)
    repeated = model(**parameters).fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
    shuffled = model(**parameters).fit(X[order], Y[order], times[order])
    for other in (repeated, shuffled):
        for name in ("prototypes_", "pose_shares_", "confusion_", "temperature_", "objective_"):
            np.testing.assert_array_equal(getattr(other, name), getattr(weighted, name), err_msg=name)


@pytest.mark.parametrize("method", ["em", "gradient"])
def test_the_number_of_threads_changes_no_bit(method: Any) -> None:
    random = np.random.default_rng(0)
    rows, y = random.normal(size=(20_000, 2)), random.integers(2, size=20_000)
    one = model(2, method=method, max_iter=5, n_init=1).fit(rows, y)
    four = model(2, method=method, max_iter=5, n_init=1, n_jobs=4).fit(rows, y)
    np.testing.assert_array_equal(one.prototypes_, four.prototypes_)
    np.testing.assert_array_equal(one.predict_proba(rows), four.predict_proba(rows))


def test_a_label_without_weight_is_not_learnt() -> None:
    y = Y.copy().astype(object)
    y[:5] = "zeppelin"
    weights = np.ones(len(X))
    weights[:5] = 0
    fitted = model().fit(X, y, weights)
    assert fitted.classes_.tolist() == ["airbus", "boeing"]
    assert (fitted.poses_[:5] == -1).all() and (fitted.poses_[5:] >= 0).all()
    np.testing.assert_array_equal(fitted.prototypes_, model().fit(X[5:], Y[5:]).prototypes_)


def test_confusion_counts_weight() -> None:
    weights = np.random.default_rng(0).integers(1, 4, len(X))
    fitted = model(1).fit(X, Y, weights)
    found = fitted.predict(X)
    expected = [[weights[(a == Y) & (found == b)].sum() for b in fitted.classes_] for a in fitted.classes_]
    np.testing.assert_array_equal(fitted.confusion_, expected)


# Fewer rows than poses, far rows, names


def test_a_class_with_few_rows_has_as_few_poses() -> None:
    rows = np.vstack([X, [[20.0, 0.0], [20.0, 0.0], [24.0, 0.0]]])
    y = np.append(Y, ["glider"] * 3)
    with pytest.warns(ConvergenceWarning, match=r"n_poses=3 .*'glider' \(2 distinct rows\)"):
        fitted = model().fit(rows, y)
    assert fitted.n_poses_.tolist() == [3, 3, 2]
    np.testing.assert_array_equal(fitted.prototypes_[2, 2], fitted.prototypes_[2, 0])
    assert fitted.pose_shares_[2, 2] == 0 and fitted.poses_.max() == 2 and fitted.poses_[-3:].max() == 1
    own = fitted.transform([[21.0, 1.0]]).reshape(3, 3) / fitted.temperature_
    F = [-logsumexp(-own[c, :n]) + np.log(n) for c, n in enumerate([3, 3, 2])]
    expected = np.exp(-np.array(F) - logsumexp(-np.array(F)))
    np.testing.assert_allclose(fitted.predict_proba([[21.0, 1.0]])[0], expected, rtol=1e-9)


def test_more_poses_than_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_poses=4"):
        model(4).fit(X[:3], Y[:3])


@pytest.mark.parametrize("size", [1e3, 1e17, 1e60, 1e200, 1e307])
@TEMPERATURES
def test_far_rows_are_told_apart_by_their_direction(beta: float, size: float) -> None:
    fitted = model(1, beta=beta).fit([[0.0, 1.0], [1.0, 0.0], [0.1, 1.0], [1.0, 0.1]], ["up", "right", "up", "right"])
    rows = size * np.array([[0.1, 1.0], [1.0, 0.1], [-1.0, 0.2], [0.2, -1.0]])
    assert fitted.predict(rows).tolist() == ["up", "right", "up", "right"]
    assert np.isfinite(fitted.predict_proba(rows)).all()
    alone = [fitted.predict_proba(rows[i : i + 1])[0] for i in range(4)]
    np.testing.assert_array_equal(fitted.predict_proba(rows), alone)
    if size > 1e150:
        with pytest.raises(ValueError, match="too far from the prototypes"):
            fitted.transform(rows)


def test_near_and_far_rows_agree_where_both_ways_hold() -> None:
    """Energies with and without the part that all prototypes share."""
    fitted = model().fit(X, Y)
    rows = np.random.default_rng(0).normal(size=(50, 2)) * 2000
    energies = fitted.transform(rows).reshape(-1, 2, 3)
    expected = mj.energy.marginal_posterior(energies, 1, 2, 1 / fitted.temperature_)
    np.testing.assert_allclose(fitted.predict_proba(rows), expected, rtol=1e-6, atol=1e-12)


def test_names_of_the_energies() -> None:
    frame = pd.DataFrame(X, columns=["length", "width"])
    fitted = model(2).set_output(transform="pandas").fit(frame, Y)
    assert list(fitted.transform(frame).columns) == [
        "energy_airbus_0",
        "energy_airbus_1",
        "energy_boeing_0",
        "energy_boeing_1",
    ]


def test_text_labels_are_saved_and_loaded(tmp_path: Any) -> None:
    for labels in (Y, Y.astype(object), pd.Series(Y, dtype="category"), Y == "airbus"):
        fitted = model(2).fit(X, labels)
        fitted.save(tmp_path / "planes.majorant")
        again = mj.load(tmp_path / "planes.majorant")
        np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
        np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_a_class_that_is_a_point_beside_the_others() -> None:
    """Its rows differ by less than can be squared in the units of the others."""
    rows = np.vstack([X, 1e-70 * np.arange(8.0).reshape(4, 2)])
    y = np.append(Y, ["point"] * 4)
    for beta in (1.0, np.inf):
        fitted = model(3, beta=beta).fit(rows, y)
        assert np.isfinite(fitted.objective_) and fitted.prototypes_[2].max() < 1e-68
        np.testing.assert_array_equal(fitted.predict([[1e-70, 0.0]]), ["point"])


def test_stability_compares_predicted_labels_by_their_names() -> None:
    found = mj.stability(model(3), X, Y, n_runs=3, random_state=0)
    assert found.n_parts == 2 and found.part == "predicted label" and found.n_at_best == 3
    np.testing.assert_array_equal(found.seeds.rows, 1)
    assert found.resamples is not None
    refit = model(3).fit(X, Y)
    assert np.mean(found.resamples.rows) > np.mean(refit.predict(X) == Y) - 0.1
    assert "predicted labels stayed nearly the same" in " ".join(str(found).split())
    trained = mj.stability(model(1, method="gradient"), X, Y, n_runs=2, resample=None, random_state=0)
    assert trained.objective_name == "conditional loss"


# Wrong parameters and labels


@pytest.mark.parametrize(
    ("parameters", "got"),
    [
        ({"n_poses": 0}, "n_poses.*0"),
        ({"n_poses": 2.0}, "n_poses.*2.0"),
        ({"beta": 0.0}, "beta.*0.0"),
        ({"beta": np.nan}, "beta.*nan"),
        ({"method": "sgd"}, "method.*'sgd'"),
        ({"alpha": -1.0}, "alpha.*-1"),
        ({"n_init": "many"}, "n_init.*'many'"),
        ({"max_iter": 0}, "max_iter.*0"),
        ({"tol": -1e-3}, "tol.*-0.001"),
    ],
    ids=str,
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], got: str) -> None:
    with pytest.raises((ValueError, TypeError), match=got):
        mj.LatentPrototypeClassifier(**parameters).fit(X, Y)


def test_wrong_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="continuous"):
        model().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="NaN"):
        model().fit(X, np.where(Y == "airbus", np.nan, 1.0))
    fitted = model().fit(X, Y)
    with pytest.raises(ValueError, match="did not see: zeppelin"):
        fitted.predict_poses(X[:2], ["airbus", "zeppelin"])
    with pytest.raises(ValueError, match="one label per row; got 1 for 2 rows"):
        fitted.predict_poses(X[:2], ["airbus"])


def test_the_summary_says_what_was_found() -> None:
    text = str(model().fit(X, Y).summary())
    for part in ("2 classes, 3 poses", "SEARCH", "free energy", "temperature", "airbus", "pose 3", "CONFUSION"):
        assert part in text
    trained = model(method="gradient").fit(X, Y).summary()
    assert "conditional loss" in str(trained) and trained.block_of("poses") is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        many = model(3).fit(np.arange(120.0)[:, None], np.repeat(np.arange(60), 2)).summary()
    assert "30 more classes" in str(many)


def test_streamed_rows_are_refused_in_words() -> None:
    for use in (lambda rows: model().fit(rows, Y), model().fit(X, Y).predict):
        with pytest.raises(TypeError, match="rows in memory"):
            use(Chunks(X))
