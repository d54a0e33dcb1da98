"""Bound policies of k-means on D31, 31 clusters: mean and best SSE per row, and CPU time relative to Lloyd's.

    python benchmarks/bound_policies.py PATH/d31.npz [--seeds 20]

The file holds the rows under the key X (D31 by Veenman, Reinders and Backer, 3100 rows in two columns).
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from sklearn.cluster import KMeans as PeerKMeans

import majorant as mj
from majorant.engine.policies import BoundPolicy

POLICIES: dict[str, BoundPolicy | None] = {
    "Lloyd": None,
    "GibbsLimit .1": mj.GibbsLimit(eta=0.1),
    "GibbsLimit .02": mj.GibbsLimit(eta=0.02),
    "Tempered .1": mj.Tempered(eta=0.1),
    "RandomWalk .1": mj.RandomWalk(eta=0.1),
    "GrowingSubset .1": mj.GrowingSubset(eta=0.1),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    X = np.load(arguments.table)["X"]
    mj.KMeans(31, n_init=1).fit(X)  # imports are not timed
    for init in ("random-partition", "random", "k-means++"):
        print(f"\nstart: {init}")
        print(f"{'policy':<18} {'mean SSE/n':>10} {'best':>7} {'CPU / our Lloyd':>16} {'CPU / peer Lloyd':>17}")
        peer = cpu_of_peer(X, init, arguments.seeds)
        lloyd = None
        for name, policy in POLICIES.items():
            values, begin = [], time.process_time()
            for seed in range(arguments.seeds):
                model = mj.KMeans(
                    31, init=init, n_init=1, bounds=policy, algorithm="lloyd", tol=0, max_iter=2000, random_state=seed
                )
                values.append(model.fit(X).inertia_ / len(X))
            spent = (time.process_time() - begin) / arguments.seeds
            lloyd = spent if lloyd is None else lloyd
            quality = f"{name:<18} {np.mean(values):>10.3f} {np.min(values):>7.3f}"
            print(f"{quality} {spent / lloyd:>16.1f} {spent / peer:>17.1f}", flush=True)


def cpu_of_peer(X: np.ndarray, init: str, seeds: int) -> float:
    """CPU seconds of one start of scikit-learn's Lloyd from the same kind of start."""
    spent = 0.0
    for seed in range(seeds):
        start: object = init
        if init == "random-partition":
            labels = np.random.default_rng(seed).integers(0, 31, len(X))
            start = np.array([X[labels == j].mean(axis=0) for j in range(31)])
        begin = time.process_time()
        PeerKMeans(31, init=start, n_init=1, tol=0, max_iter=2000, algorithm="lloyd", random_state=seed).fit(X)
        spent += time.process_time() - begin
    return spent / seeds


if __name__ == "__main__":
    main()
