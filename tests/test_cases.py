"""Cases from the field: kinds of input on which software goes wrong, with right answers known by other means."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import majorant as mj


def best_1d(values: NDArray[np.float64], weights: NDArray[np.float64], k: int) -> float:
    """The exact k-means optimum on a line, by dynamic programming.

    Clusters of an optimum are runs of sorted values, so that the best cost of the first i values in j runs is the
    least, over where the last run begins, of the best cost before it and the cost of the run.
    """
    order = np.argsort(values, kind="stable")
    x, w = values[order], weights[order]
    n = len(x)

    def cost(a: int, b: int) -> float:
        mass = w[a:b].sum()
        mean = (w[a:b] @ x[a:b]) / mass if mass > 0 else 0.0
        return float(w[a:b] @ (x[a:b] - mean) ** 2)

    best = [0.0] + [np.inf] * n
    for _ in range(k):
        best = [np.inf] + [min(best[a] + cost(a, i) for a in range(i)) for i in range(1, n + 1)]
    return best[n]


def assert_optimal(model: mj.KMeans, values: NDArray[np.float64], weights: NDArray[np.float64], rel: float) -> None:
    """The fit of values in equal columns has the SSE of the exact optimum of the line, and equal columns."""
    columns = model.cluster_centers_.shape[1]
    assert model.inertia_ == pytest.approx(columns * best_1d(values, weights, model.n_clusters), rel=rel, abs=1e-12)
    np.testing.assert_array_equal(model.cluster_centers_, np.repeat(model.cluster_centers_[:, :1], columns, axis=1))


# Weights count where fits begin (scikit-learn#25527, cuvs#1809)


@pytest.mark.parametrize("init", ["k-means++", "random", "random-partition"])
@pytest.mark.parametrize(("heavy", "light"), [(1e7, 1e-7), (1.0, 1e-9), (1e3, 1e-13), (1e100, 1e80)])
@pytest.mark.parametrize("far", [90.0, 1e4])
def test_a_far_row_of_hardly_any_weight_wins_no_centre(
    init: str, heavy: float, light: float, far: float, seed: int
) -> None:
    x = np.array([2.0, 2, 7, 7, far, far])
    w = np.array([heavy] * 4 + [light] * 2)
    model = mj.KMeans(2, init=init, random_state=seed).fit(x[:, None], sample_weight=w)
    assert_optimal(model, x, w, rel=1e-6)
    assert np.sort(model.cluster_centers_.ravel()) == pytest.approx([2.0, 7.0], rel=1e-5)


def test_the_published_answer_with_weights() -> None:
    x = np.array([2.0, 2, 7, 7, 90, 90])[:, None]
    model = mj.KMeans(2, random_state=0).fit(x, sample_weight=[1e7] * 4 + [1e-7] * 2)
    assert np.sort(model.cluster_centers_.ravel())[1] == pytest.approx(7.00000000000083, abs=1e-14)
    assert model.inertia_ == pytest.approx(1.3778e-3, rel=1e-6)
    plain = mj.KMeans(2, random_state=0).fit(x)
    assert sorted(plain.cluster_centers_.ravel()) == [4.5, 90.0]
    assert plain.inertia_ == 25.0


@pytest.mark.parametrize("init", ["k-means++", "random", "random-partition"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_of_weight_zero_change_no_bit(init: str, dtype: type[Any], seed: int) -> None:
    random = np.random.default_rng(seed)
    X = random.normal(size=(80, 2)).astype(dtype)
    w = random.uniform(0.5, 2, 80)
    without = mj.KMeans(4, init=init, random_state=seed).fit(X, sample_weight=w)
    at = np.sort(random.integers(0, 80, 7))
    far = np.insert(X, at, 1e5 * random.normal(size=(7, 2)), axis=0)
    model = mj.KMeans(4, init=init, random_state=seed).fit(far, sample_weight=np.insert(w, at, 0.0))
    assert model.inertia_ == without.inertia_
    np.testing.assert_array_equal(model.cluster_centers_, without.cluster_centers_)
    np.testing.assert_array_equal(np.delete(model.labels_, at + np.arange(7)), without.labels_)


# The same answer on any number of threads, and in any run (scikit-learn#9287, #9784, #20216, #27518, #17944)


def nine_clusters() -> NDArray[np.float64]:
    """Three round clouds that nine clusters have to share: hardly any start ends at the best SSE."""
    g = np.random.default_rng(5)
    clouds = [g.normal(size=(700, 2)) + centre for centre in ([0, 0], [2.5, 0], [1.2, 2.2])]
    return np.vstack(clouds)[g.permutation(2100)]


def wide_blocks() -> NDArray[np.float64]:
    """Rows of several blocks, so that threads have something to share."""
    return np.random.default_rng(1).normal(size=(20_000, 5)).cumsum(axis=1)


def fingerprint(model: mj.KMeans) -> bytes:
    return b"".join(
        np.asarray(part).tobytes() for part in (model.labels_, model.cluster_centers_, model.inertia_, model.n_iter_)
    )


MANY = {
    "nine clusters": (nine_clusters, {"n_clusters": 9}),
    "several blocks": (wide_blocks, {"n_clusters": 5, "n_init": 2}),
    "several blocks, float32": (lambda: wide_blocks().astype(np.float32), {"n_clusters": 5, "n_init": 2}),
    "random bounds": (nine_clusters, {"n_clusters": 9, "n_init": 2, "bounds": mj.GibbsLimit(eta=0.3)}),
    "random walk": (wide_blocks, {"n_clusters": 4, "n_init": 1, "bounds": mj.RandomWalk(eta=0.5, n_sweeps=1)}),
    "random partition": (wide_blocks, {"n_clusters": 4, "n_init": 1, "init": "random-partition"}),
}


@pytest.mark.parametrize("case", MANY)
def test_threads_change_no_bit(case: str) -> None:
    make, parameters = MANY[case]
    X = make()
    found = {fingerprint(mj.KMeans(random_state=3, n_jobs=n_jobs, **parameters).fit(X)) for n_jobs in (1, 2, 3, 4)}
    assert len(found) == 1


def test_reruns_change_no_bit() -> None:
    X = nine_clusters()
    assert len({fingerprint(mj.KMeans(9, random_state=3, n_init=3).fit(X)) for _ in range(10)}) == 1
    assert len({fingerprint(mj.KMeans(9, random_state=seed, n_init=1).fit(X)) for seed in range(5)}) > 1


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from hashlib import sha256
import majorant as mj
from test_cases import fingerprint, nine_clusters, wide_blocks
models = [mj.KMeans(9, random_state=3, n_init=2).fit(nine_clusters()),
          mj.KMeans(5, random_state=3, n_init=1, n_jobs=2).fit(wide_blocks())]
print(sha256(b"".join(map(fingerprint, models))).hexdigest())
"""


def test_thread_settings_of_the_process_change_no_bit() -> None:
    folder = str(Path(__file__).parent)
    found = set()
    for threads in ("1", "4"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, folder],
            env={**os.environ, **dict.fromkeys(names, threads)},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout)
    assert len(found) == 1


@pytest.mark.parametrize("random_state", range(5))
def test_a_peers_best_of_nine_clusters_is_beaten_by_any_seed(random_state: int) -> None:
    """Of 200 single starts of a peer the best ended at 1317.06876, the median at 1332.04."""
    X = nine_clusters()
    assert mj.KMeans(9, random_state=random_state).fit(X).inertia_ < 1317.06876 * (1 + 1e-5)
    assert mj.KMeans(9, effort="best", random_state=random_state).fit(X).inertia_ < 1317.06876


def test_one_start_is_not_enough_for_nine_clusters() -> None:
    lloyd = mj.KMeans(9, algorithm="lloyd", n_init=50, random_state=0).fit(nine_clusters())
    objectives = [start.objective for start in lloyd.search_.starts]
    assert np.median(objectives) > 1330, "a case in which one start is enough proves nothing"


# Grey pixels: equal columns and many ties (keops#165, mljs/kmeans#9, kmeans_pytorch#3)

GREY = [17, 20, 22, 23, 26, 27, 29, 33, 40, 41, 44, 45, 47, 48, 50, 51, 52, 53, 57, 58, 59, 60]
COUNTS = [1, 14, 5, 2, 1, 1, 1, 4, 1, 1, 2, 3, 3, 3, 4, 5, 4, 1, 1, 2, 3, 1]


def pixels(values: Any, counts: Any) -> NDArray[np.float64]:
    return np.repeat(np.repeat(np.asarray(values, dtype=np.float64), counts)[:, None], 3, axis=1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, np.int16])
def test_the_published_answer_on_grey_pixels(dtype: type[Any]) -> None:
    X = pixels(GREY, COUNTS).astype(dtype)
    model = mj.KMeans(4, random_state=0).fit(X)
    assert model.inertia_ == pytest.approx(1230.6657142857, rel=1e-10 if dtype != np.float32 else 1e-5)
    order = np.argsort(model.cluster_centers_[:, 0])
    np.testing.assert_array_equal(np.bincount(model.labels_)[order], [24, 7, 25, 7])
    np.testing.assert_allclose(model.cluster_centers_[order, 1], [21.0833, 34.5714, 48.96, 58.5714], atol=5e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("image", ["dark", "full range", "two values more", "few values"])
def test_grey_pixels_with_ties_reach_the_exact_optimum(image: str, k: int, dtype: type[Any], seed: int) -> None:
    random = np.random.default_rng([seed, k])
    values = {
        "dark": random.choice(40, 15, replace=False),
        "full range": np.r_[0, 255, random.choice(np.arange(1, 255), 18, replace=False)],
        "two values more": np.arange(k + 2) * 50 % 256,
        "few values": np.arange(k) * 31,
    }[image]
    counts = random.integers(1, 15, len(values))
    X = random.permutation(pixels(values, counts)).astype(dtype)
    model = mj.KMeans(k, random_state=seed).fit(X)
    assert_optimal(
        model, values.astype(np.float64), counts.astype(np.float64), rel=1e-5 if dtype == np.float32 else 1e-10
    )
    assert model.inertia_ == pytest.approx(
        np.sum((X.astype(np.float64) - model.cluster_centers_[model.labels_]) ** 2), rel=1e-4, abs=1e-9
    )


@pytest.mark.parametrize("bounds", [mj.GibbsLimit(), mj.RandomWalk(), mj.Tempered(), mj.GrowingSubset()], ids=repr)
def test_ties_give_numbers_under_every_policy(bounds: Any) -> None:
    model = mj.KMeans(4, bounds=bounds, random_state=0).fit(pixels(GREY, COUNTS))
    assert np.isfinite(model.cluster_centers_).all()
    assert 1230.66571 < model.inertia_ < 1.2 * 1230.66571


# Stripes: what k-means minimises is not what the eye sees (scikit-learn#16422, #34842, #34845)


def stripes(seed: int, gap: float) -> NDArray[np.float64]:
    g = np.random.default_rng(seed)
    return np.vstack([np.column_stack([g.uniform(0, 10, 150), g.normal(level, 0.15, 150)]) for level in (0.0, gap)])


@pytest.mark.parametrize(("seed", "gap"), [(15, 1.5), (16, 1.5), (17, 1.0), (18, 2.0)])
def test_stripes_are_cut_across(seed: int, gap: float) -> None:
    X = stripes(seed, gap)
    model = mj.KMeans(2, random_state=0).fit(X)
    by_eye = sum(float(np.sum((part - part.mean(axis=0)) ** 2)) for part in (X[:150], X[150:]))
    assert model.inertia_ < 0.5 * by_eye
    # The optimum of two clusters is a cut by a line; all cuts by lines close to vertical are tried.
    cuts = []
    for slope in np.linspace(-0.3, 0.3, 61):
        order = np.argsort(X[:, 0] + slope * X[:, 1], kind="stable")
        x, n = X[order], np.arange(1, 300)[:, None]
        sums, squares = x.cumsum(axis=0), np.cumsum(np.sum(x**2, axis=1))
        left, right = sums[:-1], sums[-1] - sums[:-1]
        cuts.append(np.min(squares[-1] - np.sum(left**2 / n, axis=1) - np.sum(right**2 / (300 - n), axis=1)))
    assert model.inertia_ == pytest.approx(min(cuts), rel=1e-3)
    assert model.inertia_ <= min(cuts) * (1 + 1e-12)


def test_the_published_answer_on_stripes() -> None:
    X = stripes(15, 1.5)
    assert mj.KMeans(2, random_state=0).fit(X).inertia_ == pytest.approx(792.8191, abs=5e-5)
    by_eye = sum(float(np.sum((part - part.mean(axis=0)) ** 2)) for part in (X[:150], X[150:]))
    assert by_eye == pytest.approx(2389.989, abs=5e-4)
