"""How sticky the concave-convex procedure (CCP) is: bags of rows where it provably never leaves its start.

S. N. Parizi, K. He, R. Aghajani, S. Sclaroff, P. Felzenszwalb, "Generalized Majorization-Minimization", section 5.2,
measures that CCP changed 2.4 % of the latent locations of a bad start, random bounds 86.2 %, multi-fold ones 93.6 %.

    python experiments/stickiness.py                 8 draws, up to 1000 features (a minute)
    python experiments/stickiness.py --quick         2 draws, 100 and 1000 features: what tests run
    ... --journal FILE --resume --jobs 2             in pieces (see cells.py)

A sample is a bag of 6 rows of Gaussian noise of mean square length 1; to one of them, never the first, is added a
vector of length 1.5 that only its class has. The latent value is the row, and every fit begins at the first one of each
bag. The weights are then a sum of first rows. In many dimensions all rows are orthogonal: each first row scores its own
|x|^2 times its coefficient, the others of its bag nothing, and CCP confirms what it was given, whatever the classes
show. The first bound then touches the objective where it is least, so that no other bound is valid: what random bounds
can change, they change in the dimensions between.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from functools import partial
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from cells import Cells, add_arguments
from numpy.typing import NDArray

import majorant as mj

N, WIDTH, CLASSES, SIGNAL, ALPHA = 60, 6, 3, 1.5, 0.01

METHODS: dict[str, Any] = {
    "CCP": mj.Tightest(),
    "Gibbs limit": mj.GibbsLimit(),
    "random walk": mj.RandomWalk(),
    "growing subset": mj.GrowingSubset(),
    "growing schedule": mj.GrowingSubset(schedule=tuple(k / 10 for k in range(1, 11))),
    "multi-fold": mj.Biased(mj.MultiFold(10)),
    "multi-fold hinge": mj.Biased(mj.MultiFold(10, loss="hinge")),
    "annealed start": None,
}


def bags(d: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
    """Bags, their classes, and the row of each that shows the class."""
    random = np.random.default_rng([seed, d])
    y = np.arange(N) % CLASSES
    X = random.normal(size=(N, WIDTH, d)) / np.sqrt(d)
    shown = random.integers(1, WIDTH, N)
    directions = np.linalg.qr(random.normal(size=(d, CLASSES)))[0].T
    X[np.arange(N), shown] += SIGNAL * directions[y]
    return X, y, shown


def fit(d: int, method: str, seed: int) -> dict[str, float]:
    """Objective, share of rows that were changed, and share of those that show the class."""
    X, y, shown = bags(d, seed)
    settings = {"latent_init": "first", "bounds": METHODS[method]} if METHODS[method] else {}
    model = mj.LatentSVC(ALPHA, random_state=seed, **settings).fit(X, y)
    return {
        "objective": float(model.objective_),
        "changed": float(np.mean(model.latent_ != 0)),
        "found": float(np.mean(model.latent_ == shown)),
    }


def main(arguments: Sequence[str] | None = None) -> dict[tuple[int, str], dict[str, float]]:
    """Print the table, and return its means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 draws, fewer features")
    parser.add_argument("--draws", type=int, default=8)
    add_arguments(parser)
    chosen = parser.parse_args(arguments)
    cells = Cells.of(chosen)
    sizes, draws = ((100, 1000), 2) if chosen.quick else ((100, 200, 400, 1000), chosen.draws)
    print("| features | bounds | objective | changed % | showing the class % |\n|---|---|---|---|---|")
    means: dict[tuple[int, str], dict[str, float]] = {}
    for d in sizes:
        for method in METHODS:
            tasks = {f"{d} features, {method}, draw {seed}": partial(fit, d, method, seed) for seed in range(draws)}
            found = list(cells(tasks).values())
            if found:
                mean = means[d, method] = {key: float(np.mean([f[key] for f in found])) for key in found[0]}
                shares = f"{100 * mean['changed']:.1f} | {100 * mean['found']:.1f}"
                print(f"| {d} | {method} | {mean['objective']:.4f} | {shares} |", flush=True)
    cells.close()
    return means


if __name__ == "__main__":
    main()
