"""Lower bounds on the k-means objective: never above the least one, close to it, and where expected equal to it."""

from __future__ import annotations

import _thread
import csv
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from majorant.solvers.kmeans_bounds import kmeans_lower_bound, parts, pengwei
from majorant.solvers.kmeans_bounds.ascent import least_move, raise_bound
from majorant.solvers.kmeans_bounds.multipliers import Water, Work, dual_value, largest_cover
from majorant.solvers.kmeans_bounds.partition import partition_bound
from majorant.solvers.kmeans_bounds.problem import BoundProblem, make_problem

Array = NDArray[Any]

N_INSTANCES = 1000


@cache
def partitions(n: int, k: int) -> NDArray[np.int64]:
    """Labels of every partition of n points into at most k sets, one a row."""
    rows = [[0]]
    for _ in range(n - 1):
        rows = [[*row, label] for row in rows for label in range(min(max(row) + 2, k))]
    return np.array(rows)


def least_sum_of_squares(x: Array, w: Array, k: int) -> tuple[float, Array]:
    """The optimum by enumeration, and its labels."""
    labels = partitions(len(x), k)
    total = np.zeros(len(labels))
    for a in range(k):
        member = (labels == a) * w
        mass = member.sum(axis=1)
        mean = member @ x / np.where(mass > 0, mass, 1.0)[:, None]
        total += (member * ((x[None] - mean[:, None]) ** 2).sum(axis=2)).sum(axis=1)
    best = int(total.argmin())
    return float(total[best]), labels[best]


@dataclass(frozen=True)
class Instance:
    x: Array
    w: Array
    k: int
    centres: Array
    least: float


def instance(seed: int) -> Instance:
    """A tiny data set, with the best centres or with bad ones."""
    random = np.random.default_rng(seed)
    n, d, k = int(random.integers(2, 10)), int(random.integers(1, 4)), int(random.integers(1, 5))
    x = random.normal(size=(n, d)) * random.uniform(0.2, 3.0, d)
    x[: n // 2] += random.uniform(0.0, 4.0)
    if seed % 3 == 0:
        x = np.round(x)  # duplicates
    x *= 10.0 ** random.integers(-6, 7)
    if seed % 5 == 0:
        x += 100.0 * np.abs(x).max()
    w = random.choice([1.0, 2.0, 3.0, 0.25, 7.5], n) if seed % 2 else np.ones(n)
    middle = x.mean(axis=0)
    least, labels = least_sum_of_squares(x - middle, w, k)
    if seed % 4 == 1:
        labels = random.integers(0, k, n)
    centres = np.array(
        [np.average(x[labels == a], axis=0, weights=w[labels == a]) if (labels == a).any() else x[0] for a in range(k)]
    )
    return Instance(x, w, k, centres, least)


@cache
def instances() -> tuple[Instance, ...]:
    return tuple(instance(seed) for seed in range(N_INSTANCES))


def usable() -> Iterator[tuple[Instance, BoundProblem]]:
    """Instances with more than one centre and more distinct points than centres."""
    for one in instances():
        unique, place = np.unique(one.x, axis=0, return_inverse=True)
        if one.k > 1 and len(unique) > one.k:
            w = np.bincount(place.ravel(), one.w)
            yield one, make_problem(unique, w, one.centres)


def in_units(problem: BoundProblem, value: float) -> float:
    return (value - problem.coordinate_error) * problem.unit


def assert_valid(bound: float, one: Instance, tolerance: float = 1e-13) -> None:
    assert bound <= one.least * (1 + tolerance), (bound / one.least - 1, one)


@pytest.mark.parametrize("effort", ["fast", "default", "tight"])
def test_never_above_the_optimum(effort: Any) -> None:
    proved = asked = 0
    for place, one in enumerate(instances()):
        if effort == "tight" and place % 4:
            continue
        found = kmeans_lower_bound(one.x, one.w, one.centres, effort=effort)
        assert_valid(found.bound, one)
        for value in found.tried.values():
            assert_valid(value, one)
        assert found.bound >= 0
        asked += 1
        proved += found.bound >= one.least * (1 - 1e-5)
    assert proved >= 0.7 * asked  # a quarter of them have bad centres


def test_closed_form_multipliers_are_valid() -> None:
    for one, problem in usable():
        assert_valid(in_units(problem, partition_bound(problem, Work(1e5), 0).bound), one)


def test_any_multipliers_and_any_work_are_valid() -> None:
    random = np.random.default_rng(0)
    for one, problem in usable():
        scale = random.choice([0.3, 1.0, 3.0])
        multipliers = random.uniform(-0.2, 1.0, len(problem.weights)) * scale * problem.second
        cover = largest_cover(problem, multipliers, 0.0, Work(float(random.choice([1, 100, 1e4]))))
        assert cover.lower <= cover.upper
        assert_valid(in_units(problem, dual_value(problem, multipliers, cover).bound), one)


def test_raised_multipliers_are_valid_and_no_worse() -> None:
    raised = 0
    for one, problem in usable():
        multipliers = Water(problem).filled(0.5, 0.8 * problem.objective / one.k)
        before = dual_value(problem, multipliers, largest_cover(problem, multipliers, 0.0, Work(1e5)))
        after = raise_bound(problem, before, Work(1e6), 10, problem.points)
        assert after.bound >= before.bound
        raised += after.bound > before.bound + 1e-3 * problem.objective
        assert_valid(in_units(problem, after.bound), one)
    assert raised > 100


@pytest.mark.parametrize("iterations", [0, 10])
def test_peng_wei_is_valid(iterations: int) -> None:
    above = 0
    for one, problem in usable():
        bound = in_units(problem, pengwei.peng_wei_bound(problem, Work(1e7), iterations))
        assert_valid(bound, one)
        above += bound > 0.5 * one.least
    assert above > 200


def test_peng_wei_is_valid_for_any_nonnegative_matrix() -> None:
    random = np.random.default_rng(0)
    for one, problem in usable():
        n = len(problem.weights)
        half = np.abs(random.normal(size=(n, n))) * random.choice([0.0, 0.01, 0.1, 1.0])
        assert_valid(in_units(problem, pengwei.PengWei(problem).proved(half + half.T)), one)


@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_sum_of_largest_eigenvalues_is_bounded(n: int) -> None:
    random = np.random.default_rng(n)
    axes = np.linalg.qr(random.normal(size=(n, n)))[0]
    for values in (random.normal(size=n), -np.ones(n), np.where(np.arange(n) < 12, 3.0, 0.0), np.zeros(n)):
        matrix = (axes * values) @ axes.T
        matrix = (matrix + matrix.T) / 2
        for count in (0, 1, 5, 20):
            exact = float(np.maximum(np.sort(values)[::-1][:count], 0.0).sum())
            bound = pengwei.sum_of_largest_at_most(matrix, count)
            assert exact - 1e-12 <= bound <= exact + 1e-3 + 1e-5 * abs(exact)


def test_sums_over_parts_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "BLOCKS", (4,))
    monkeypatch.setattr(parts, "LEADING", (1, 2))
    for one, problem in usable():
        assert_valid(in_units(problem, parts.blocks_bound(problem, Work(1e7), 3)), one)
        if problem.points.shape[1] > 1:
            assert_valid(in_units(problem, parts.leading_columns_bound(problem, Work(1e6), 3)), one)


def test_blocks_are_all_rows() -> None:
    problem = make_problem(np.random.default_rng(0).normal(size=(101, 2)), np.ones(101), np.eye(2))
    dealt = parts.deal(problem, 7)
    assert sorted(np.concatenate(dealt).tolist()) == list(range(101))
    assert {len(rows) for rows in dealt} == {14, 15}


def blobs(n: int = 200, d: int = 2, k: int = 4, seed: int = 0, spread: float = 0.25) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, d)) * spread + 2.0 * random.normal(size=(k, d))[random.integers(k, size=n)]
    return x, KMeans(k, n_init=20, random_state=0).fit(x).cluster_centers_


def sum_of_squares(x: Array, centres: Array, w: Array | None = None) -> float:
    nearest = ((x[:, None] - centres) ** 2).sum(axis=2).min(axis=1)
    return float(nearest.sum() if w is None else w @ nearest)


def test_one_centre_is_exact() -> None:
    x, w = np.random.default_rng(0).normal(size=(50, 3)) + 5, np.random.default_rng(1).uniform(1, 2, 50)
    mean = np.average(x, axis=0, weights=w)
    found = kmeans_lower_bound(x, w, np.zeros((1, 3)))
    assert found.bound <= sum_of_squares(x, mean[None], w) <= found.bound * (1 + 1e-11)


def test_no_more_distinct_points_than_centres() -> None:
    x = np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 3.0]])
    assert kmeans_lower_bound(x, None, x[[0, 2]]).bound == 0.0
    assert kmeans_lower_bound(x, None, x).bound == 0.0


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_constant_columns_and_scales(scale: float) -> None:
    x, centres = blobs()
    x = np.column_stack((x, np.full(len(x), 3.0))) * scale
    centres = np.column_stack((centres, np.full(len(centres), 3.0))) * scale
    found = kmeans_lower_bound(x, None, centres)
    best = sum_of_squares(x / scale, centres / scale)
    assert best * (1 - 1e-5) <= found.bound / scale / scale <= best * (1 + 1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e200, 1e308])
def test_numbers_whose_squares_leave_the_range(scale: float) -> None:
    x, centres = blobs()
    x, centres = x / np.abs(x).max() * scale, centres / np.abs(x).max() * scale
    found = kmeans_lower_bound(x, None, centres)
    assert found.bound == 0.0
    assert "rescale" in found.method


def test_weights_are_repeats() -> None:
    x, centres = blobs(60)
    w = np.random.default_rng(0).integers(1, 5, len(x))
    weighted = kmeans_lower_bound(x, w.astype(float), centres)
    repeated = kmeans_lower_bound(np.repeat(x, w, axis=0), None, centres)
    assert weighted.bound == pytest.approx(repeated.bound, rel=1e-12)
    # The Peng-Wei bounds agree as well, though one matrix is larger than the other.
    short = pengwei.peng_wei_bound(make_problem(x, w.astype(float), centres), Work(1e9), 0)
    tall_problem = make_problem(np.repeat(x, w, axis=0), np.ones(w.sum()), centres)
    assert short == pytest.approx(pengwei.peng_wei_bound(tall_problem, Work(1e9), 0), rel=1e-5)


def test_single_precision_points_are_taken_as_they_are() -> None:
    x, centres = blobs()
    single = x.astype(np.float32)
    found = kmeans_lower_bound(single, None, centres.astype(np.float32))
    assert found == kmeans_lower_bound(single.astype(np.float64), None, centres.astype(np.float32).astype(np.float64))
    assert found.bound <= sum_of_squares(single.astype(np.float64), centres)


def test_more_work_proves_more() -> None:
    x, centres = blobs(300, 3, 5, spread=0.9)
    bounds = [kmeans_lower_bound(x, None, centres, budget=b).bound for b in (1.0, 1e5, 1e6, 1e7, 1e8)]
    best = sum_of_squares(x, centres)
    assert all(later >= earlier - 1e-3 * best for earlier, later in pairwise(bounds))
    assert bounds[-1] > bounds[0]
    assert bounds[-1] >= 0.999 * best


def test_same_answer_every_time() -> None:
    x, centres = blobs(300, 3, 5, spread=0.9)
    assert kmeans_lower_bound(x, None, centres) == kmeans_lower_bound(x, None, centres)


@pytest.mark.parametrize(
    ("points", "weights", "centres", "effort", "words"),
    [
        (np.ones((3, 2)), None, np.ones((1, 3)), "default", "must be"),
        (np.ones((3, 2)), np.ones(2), np.ones((1, 2)), "default", "must be"),
        (np.ones((3, 2)), None, np.ones((0, 2)), "default", "k > 0"),
        (np.ones((3, 2)), None, np.ones((1, 2)), "best", "effort must be one of"),
        (np.full((3, 2), np.nan), None, np.ones((1, 2)), "default", "finite"),
        (np.ones((3, 2)), np.array([1.0, 0.0, 1.0]), np.ones((1, 2)), "default", "positive"),
    ],
)
def test_bad_input(points: Array, weights: Array | None, centres: Array, effort: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        kmeans_lower_bound(points, weights, centres, effort=effort)


def test_least_move() -> None:
    random = np.random.default_rng(0)
    rows, wanted = random.normal(size=(6, 40)), random.normal(size=6)
    combination = least_move(rows @ rows.T, wanted)
    assert combination is not None
    short = wanted - rows @ (rows.T @ combination)
    assert (combination >= 0).all()
    assert short.max() <= 1e-9
    assert np.abs(combination * short).max() <= 1e-9  # complementary
    against = np.concatenate((rows[:1], -rows[:1]))
    assert least_move(against @ against.T, np.array([1.0, 1.0])) is None
    assert np.array_equal(least_move(rows @ rows.T, -np.abs(wanted)), np.zeros(6))  # type: ignore[arg-type]


@pytest.mark.usefixtures("interruptible")
def test_interrupted() -> None:
    x = np.random.default_rng(0).normal(size=(400, 12))
    problem = make_problem(x, np.ones(400), x[:5])
    timer = threading.Timer(0.3, _thread.interrupt_main)
    started = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        largest_cover(problem, Water(problem).filled(0.5, 0.8 * problem.objective / 5), 0.0, Work(1e9))
    assert time.monotonic() - started < 3.0


def best_known(folder: Path, dataset: str, k: int) -> float:
    with (folder / "best_known.csv").open() as file:
        rows = [float(r["sse"]) for r in csv.DictReader(file) if r["dataset"] == dataset and int(r["k"]) == k]
    return min(rows)


@pytest.mark.parametrize(
    ("dataset", "k", "ratio"),
    [
        ("r15", 15, 1 - 1e-5),
        ("d31", 31, 0.9998),
        ("s1", 15, 0.9998),
        ("s2", 15, 0.9998),
        ("a1", 20, 0.9998),
        ("a2", 35, 0.9998),
        ("unbalance", 8, 0.9998),
        ("sos_iris", 2, 0.9999),
        ("sos_iris", 3, 0.9999),
        ("sos_wine", 3, 0.9999),
        ("sos_seeds", 3, 0.9999),
    ],
)
def test_benchmark_sets(shared_data: Path, dataset: str, k: int, ratio: float) -> None:
    folder = shared_data / "clustering"
    x = np.load(folder / f"{dataset}.npz")["X"].astype(np.float64)
    best = best_known(folder, dataset, k)
    fit = min((KMeans(k, n_init=5, random_state=s).fit(x) for s in range(4)), key=lambda f: f.inertia_)
    started = time.process_time()
    found = kmeans_lower_bound(x, None, fit.cluster_centers_)
    assert time.process_time() - started < 1.0
    assert found.bound <= best * (1 + 1e-6)  # the table's numbers are rounded
    assert found.bound >= ratio * min(best, fit.inertia_) * (1 - 1e-6)
