"""One Lloyd iteration beside scikit-learn's, in the same run: single thread, CPU time, medians.

Both start from the same centres and run to two different iteration limits; the difference of the two times over the
difference of the iteration counts is the cost of one iteration, free of what a fit does once. The same for a whole fit
from one k-means++ start.

    python benchmarks/kmeans_lloyd.py [--repeats 7]
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans as PeerKMeans

import majorant as mj
from majorant import _kernels
from majorant.data.chunks import Chunks
from majorant.engine.loop import minimize
from majorant.models.kmeans import KMeansFamily

CASES = [
    # n, d, k, wanted ratio in float64 and in float32
    (10**6, 2, 50, 2.0, 1.7),
    (10**5, 16, 100, 2.2, 1.7),
    (10**5, 64, 256, 1.7, 1.4),
    (2 * 10**4, 784, 10, 1.0, 1.5),
]
FEW, MANY = 2, 8


def ours(X: NDArray[np.floating], centres: NDArray[np.floating]) -> float:
    """CPU seconds of one iteration of the engine with the tightest bound."""
    data, spent = Chunks(X), {}
    for limit in (FEW, MANY):
        family = KMeansFamily(len(centres), slack=np.inf)
        begin = time.process_time()
        n_iter = minimize(family, data, theta=centres, max_iter=limit).n_iter
        spent[n_iter] = time.process_time() - begin
    return slope(spent)


def peer(X: NDArray[np.floating], centres: NDArray[np.floating]) -> float:
    """CPU seconds of one iteration of scikit-learn's Lloyd."""
    spent = {}
    for limit in (FEW, MANY):
        model = PeerKMeans(len(centres), init=centres, n_init=1, max_iter=limit, tol=0, algorithm="lloyd")
        begin = time.process_time()
        model.fit(X)
        spent[model.n_iter_] = time.process_time() - begin
    return slope(spent)


def slope(spent: dict[int, float]) -> float:
    few, many = sorted(spent)
    return (spent[many] - spent[few]) / (many - few)


def whole_fit(X: NDArray[np.floating], k: int) -> float:
    """CPU time of a fit from one k-means++ start: scikit-learn's over ours."""
    times = {}
    for name, model in {
        "ours": mj.KMeans(k, n_init=1, max_iter=10, tol=0, random_state=0, init="k-means++", algorithm="lloyd"),
        "peer": PeerKMeans(k, n_init=1, max_iter=10, tol=0, random_state=0),
    }.items():
        begin = time.process_time()
        model.fit(X)
        times[name] = time.process_time() - begin
    return times["peer"] / times["ours"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")  # iteration limits are meant
    print(f"instruction set {_kernels.isa()}; scikit-learn's CPU time over majorant's, median of {repeats} (wanted)")
    print(f"{'n':>9} {'d':>4} {'k':>4}  {'iteration, float64':>22}  {'iteration, float32':>22}  {'fit, float64':>12}")
    for n, d, k, *wanted in CASES:
        X64 = np.random.default_rng(0).standard_normal((n, d))
        cells = []
        for dtype, want in zip((np.float64, np.float32), wanted, strict=True):
            X = X64.astype(dtype)
            centres = X[:k].copy()
            ratio = np.median([peer(X, centres) / ours(X, centres) for _ in range(repeats)])
            cells.append(f"{ratio:.2f} ({want})")
        fit = np.median([whole_fit(X64, k) for _ in range(3)])
        print(f"{n:>9} {d:>4} {k:>4}  {cells[0]:>22}  {cells[1]:>22}  {fit:>12.2f}", flush=True)


if __name__ == "__main__":
    main()
