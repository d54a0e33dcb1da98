"""Gaussian mixtures beside scikit-learn and mclust: log-likelihoods and CPU time in one run, single thread.

    python benchmarks/gaussian_mixture.py FOLDER [--seeds 20] [--rows iris,full] [--peer-seeds 5]

FOLDER holds base_faithful.csv, mclust_banknote.csv and MASS_crabs.csv; iris comes with scikit-learn. For every row of
tests/reference/mclust.csv (the best of 81 starts of R's mclust, from tests/reference/mclust.R): in how many values of
random_state the log-likelihood is within 1e-6 of that or above and the solution regular, the worst and best difference,
and the CPU time as a multiple of scikit-learn's with n_init=10. Then labels across units, and in how many values of
random_state fits end at the best solution of all, by how many rows components have for each of their parameters.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from itertools import product
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture as Peer
from sklearn.preprocessing import StandardScaler

import majorant as mj
from majorant.models.gaussian_mixture.words import FEW_ROWS

Rows = NDArray[np.float64]
REFERENCE = Path(__file__).resolve().parents[1] / "tests" / "reference" / "mclust.csv"
HIT = 1e-6


def tables(folder: Path) -> dict[str, Rows]:
    """The four data sets."""

    def read(name: str, columns: str) -> Rows:
        with (folder / name).open(newline="") as file:
            return np.array([[float(row[c]) for c in columns.split()] for row in csv.DictReader(file)])

    return {
        "faithful": read("base_faithful.csv", "eruptions waiting"),
        "banknote": read("mclust_banknote.csv", "Length Left Right Bottom Top Diagonal"),
        "crabs": read("MASS_crabs.csv", "FL RW CL CW BD"),
        "iris": load_iris().data,
    }


def compare(sets: dict[str, Rows], seeds: int, peer_seeds: int, chosen: str) -> None:
    """One line for each row of the reference, then the sum of all."""
    print(f"{'set':<9} {'type':<10} K      mclust    reached    worst     best   CPU ms   / scikit-learn  peer's best")
    ratios, ours, theirs, reached = [], 0.0, 0.0, 0
    with REFERENCE.open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if chosen in f"{r['data']},{r['covariance_type']},{r['n_components']}"]
    for row in rows:
        X, k, kind, known = sets[row["data"]], int(row["n_components"]), row["covariance_type"], float(row["best"])
        values, spent, peer_spent, peer_best = [], [], [], -np.inf
        for seed in range(seeds):
            begin = time.process_time()
            fitted = mj.GaussianMixture(k, covariance_type=kind, random_state=seed).fit(X)
            spent.append(time.process_time() - begin)
            values.append(fitted.log_likelihood_ if fitted.regular_ else -np.inf)
            if seed < peer_seeds:
                begin = time.process_time()
                peer = Peer(k, covariance_type=kind, n_init=10, random_state=seed).fit(X)
                peer_spent.append(time.process_time() - begin)
                peer_best = max(peer_best, peer.score(X) * len(X))
        found = np.array(values)
        hits = int(np.sum(found >= known - HIT * abs(known)))
        cost, peer_cost = float(np.median(spent)), float(np.median(peer_spent))
        ratios.append(cost / peer_cost)
        ours, theirs, reached = ours + cost, theirs + peer_cost, reached + (hits == seeds)
        print(
            f"{row['data']:<9} {kind:<10} {k} {known:>11.4f}   {hits:>3}/{seeds:<3} {found.min() - known:>9.1e}"
            f" {found.max() - known:>8.1e} {1e3 * cost:>8.1f} {ratios[-1]:>12.2f} {peer_best - known:>14.1e}",
            flush=True,
        )
    print(f"\nreached in every seed: {reached} of {len(rows)} rows")
    print(f"CPU over scikit-learn's: {ours / theirs:.2f} of all rows, median {np.median(ratios):.2f}")


def scales() -> None:
    """Labels of the same rows in other units, against those in their own."""
    draws = np.random.default_rng(0)
    X = np.concatenate([draws.normal(centre, 1.0, (200, 2)) for centre in ((0, 0), (3, 3), (0, 5))])
    print("\nadjusted Rand index against the labels in the rows' own units")
    print("units            majorant   scikit-learn")
    ours = mj.GaussianMixture(3, random_state=0).fit(X).predict(X)
    theirs = Peer(3, n_init=10, random_state=0).fit(X).predict(X)
    for name, moved in {
        **{f"times {c:g}": X * c for c in (1e-8, 1e-4, 1e4, 1e8)},
        "shifted by 1e8": X + 1e8,
    }.items():
        a = adjusted_rand_score(ours, mj.GaussianMixture(3, random_state=0).fit(moved).predict(moved))
        b = adjusted_rand_score(theirs, Peer(3, n_init=10, random_state=0).fit(moved).predict(moved))
        print(f"{name:<16} {a:>8.3f} {b:>14.3f}")


def agreement(seeds: int) -> None:
    """Shares of seeds at the best regular solution of all, on tables that no setting was chosen on."""
    draws = np.random.default_rng(0)
    cancer, digits = load_breast_cancer().data, load_digits().data
    made = {
        f"made, {n} x {d}, {k} groups": draws.normal(size=(k, d))[draws.integers(k, size=n)] * 1.5
        + draws.normal(size=(n, d))
        for n, d, k in ((300, 5, 4), (1000, 4, 8), (250, 3, 4), (500, 8, 4))
    }
    sets = {
        "breast cancer, 5": cancer[:, :5],
        "breast cancer, log se": np.log(cancer[:, 10:14]),
        "diabetes, 6": load_diabetes().data[:, [0, 2, 3, 4, 8, 9]],
        "digits, 6 components": PCA(6, random_state=0).fit_transform(digits),
        "wine, standardised": StandardScaler().fit_transform(load_wine().data),
        "iris, logarithms": np.log(load_iris().data),
        **made,
    }
    shares: dict[bool, list[float]] = {False: [], True: []}
    print(f"\nrows of the smallest component for each of its parameters, and share of {seeds} seeds at the best")
    for (name, X), (kind, k) in product(sets.items(), (("full", 3), ("full", 5), ("diag", 5), ("spherical", 7))):
        models = [mj.GaussianMixture(k, covariance_type=kind, random_state=seed).fit(X) for seed in range(seeds)]
        values = np.array([m.log_likelihood_ if m.regular_ else -np.inf for m in models])
        best = models[int(values.argmax())]
        if not best.regular_:
            continue
        rows = best.weights_.min() * len(X) * k / (best.n_parameters_ + 1)
        shares[rows >= FEW_ROWS].append(float((values >= values.max() - HIT * abs(values.max())).mean()))
        print(f"{name:<24} {kind:<10} {k} {rows:>6.2f} {shares[rows >= FEW_ROWS][-1]:>6.2f}", flush=True)
    for is_enough, each in shares.items():
        print(f"{'at least' if is_enough else 'below'} {FEW_ROWS}: {np.mean(each):.2f} of seeds, {len(each)} cells")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--peer-seeds", type=int, default=5)
    parser.add_argument("--rows", default="", help="only rows whose set,type,K contains this")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    mj.GaussianMixture(2, random_state=0).fit(np.arange(20.0)[:, None])  # imports are not timed
    compare(tables(arguments.folder), arguments.seeds, arguments.peer_seeds, arguments.rows)
    scales()
    agreement(arguments.seeds)


if __name__ == "__main__":
    main()
