"""k-medoids beside FasterPAM of the package kmedoids: total distance and CPU time of whole fits, seed by seed.

    pip install kmedoids
    python benchmarks/medoids.py FOLDER [--seeds 10] [--only d31,s1]

FOLDER has tables as .npz, each with one array of two dimensions. Both methods get the same table of Euclidean distances
and one thread. A line says how far each lies above the best that any reached, in the mean of the seeds; in how many
seeds ours is above the peer's of the same seed; and the median CPU of each.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from contenders import cpu  # sets thread counts first

import numpy as np  # isort: skip
import kmedoids
from scipy.spatial.distance import cdist

import majorant as mj

TASKS = {
    "sos_wine": (3, 8),
    "hg_liver": (5, 20),
    "hg_pima": (10,),
    "cloud": (10, 50),
    "a1": (20, 100),
    "d31": (31,),
    "s1": (15, 50),
}


def main() -> None:
    """Print a line for each table and number of clusters."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", default=",".join(TASKS), help="tables, with commas between them")
    chosen = parser.parse_args()
    for name in chosen.only.split(","):
        with np.load(chosen.folder / f"{name}.npz") as file:
            X = next(file[key] for key in file.files if file[key].ndim == 2).astype(np.float64)
        distances = cdist(X, X)
        for k in TASKS[name]:
            fits = [
                lambda seed, k=k: mj.KMedoids(k, metric="precomputed", random_state=seed).fit(distances).inertia_,  # noqa: B023
                lambda seed, k=k: kmedoids.fasterpam(distances, k, random_state=seed, n_cpu=1).loss,  # noqa: B023
            ]
            runs = [[cpu(partial(fit, seed)) for fit in fits] for seed in range(chosen.seeds)]
            (ours, seconds), (theirs, of_peer) = np.array(runs).transpose(1, 2, 0)
            best = min(ours.min(), theirs.min())
            print(
                f"{name}, {len(X)} rows, k = {k}: {ours.mean() / best - 1:.2e} above the best, FasterPAM "
                f"{theirs.mean() / best - 1:.2e}; above it in {np.sum(ours > theirs * (1 + 1e-9))} of {len(runs)} "
                f"seeds; CPU {np.median(seconds):.4f} s beside {np.median(of_peer):.4f} s, median of the ratios "
                f"{np.median(seconds / of_peer):.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
