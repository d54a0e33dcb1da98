"""How long does majorant's search take to reach what its peers reach? CPU time, single thread, in one run.

    python benchmarks/kmeans_race.py FOLDER [--seeds 5] [--rows cloud:50,d31:31]

For every peer: its mean SSE and CPU time, and the CPU time after which the swap search (effort "best", rows brought to
standard units included) first has that SSE, as a multiple of the peer's. The first sets are drawn from the recipes of
A3, GMM-200 and Birch1 and like pendigits; those of FOLDER follow (see kmeans.py). Last come whole default fits of
100,000 rows around 100 centres.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from contenders import Rows, cpu, kmeans_methods, sum_of_squares  # sets thread counts first

import numpy as np  # isort: skip
from kmeans import best_known, read_rows

import majorant as mj
from majorant.data.measure import empirical_measure
from majorant.solvers.swap import swap_search


def a3_like(random: np.random.Generator) -> Rows:
    """50 groups of 150 rows on a square, close together."""
    return np.repeat(random.uniform(0, 6e4, (50, 2)), 150, axis=0) + random.normal(0, 1500, (7500, 2))


def gmm_200(random: np.random.Generator) -> Rows:
    """200 unit normals in the plane, centres at least 2.5 apart."""
    centres: list[Rows] = []
    while len(centres) < 200:
        drawn = random.uniform(0, 70, 2)
        if all(np.linalg.norm(drawn - c) >= 2.5 for c in centres):
            centres.append(drawn)
    return np.repeat(np.array(centres), 50, axis=0) + random.standard_normal((10000, 2))


def pendigits_like(random: np.random.Generator) -> Rows:
    """10,992 rows in 16 columns around 40 centres, for 10 clusters."""
    return np.repeat(random.normal(0, 2, (40, 16)), 275, axis=0)[:10992] + random.standard_normal((10992, 16))


def birch1_like(random: np.random.Generator) -> Rows:
    """100 unit normals of 1000 rows on a grid."""
    grid = np.stack(np.meshgrid(range(10), range(10)), axis=-1).reshape(100, 2) * 4 * np.sqrt(2)
    return np.repeat(grid, 1000, axis=0) + random.standard_normal((100000, 2))


def sets(folder: Path, chosen: set[str] | None) -> Iterator[tuple[str, Rows, int]]:
    random = np.random.default_rng(0)
    drawn = [("A3-like", a3_like(random), 50), ("GMM-200", gmm_200(random), 200)]
    drawn.append(("pendigits-like", pendigits_like(random), 10))
    known = [(row.name, folder / f"{row.name}.npz", row.k) for row in best_known(folder)]
    for name, X, k in drawn:
        if chosen is None or name in chosen:
            yield name, X, k
    for name, path, k in known:
        if path.exists() and (chosen is None or f"{name}:{k}" in chosen):
            yield name, read_rows(path), k


def time_to(X: Rows, k: int, seed: int, target: float) -> float:
    """CPU seconds until the search has `target`; infinite if it ends before."""
    begin = time.process_time()
    measure = empirical_measure(X)
    unit = measure.scale**-2

    def look(best: float) -> None:
        if best * unit <= target:
            raise StopIteration

    try:
        swap_search(measure.points, measure.weights, k, seed=seed, effort="best", callback=look)
    except StopIteration:
        return time.process_time() - begin
    return np.inf


def race(name: str, X: Rows, k: int, seeds: int, worst: dict[str, list[float]]) -> None:
    for peer, run in kmeans_methods().items():
        if peer.startswith(("majorant", "MiniBatch")):
            continue
        spent, values, ours = 0.0, [], []
        for seed in range(seeds):
            centres, seconds = cpu(partial(run, X, k, seed))
            spent += seconds
            values.append(sum_of_squares(X, centres))
        target = float(np.mean(values)) * (1 + 1e-9)
        ours = [time_to(X, k, seed, target) for seed in range(seeds)]
        ratio = float(np.mean(ours)) / (spent / seeds)
        worst[peer].append(ratio)
        print(
            f"{name:<16} {k:>4}  {peer:<24} {np.mean(values):>14.8g} {1e3 * spent / seeds:>9.1f} "
            f"{1e3 * float(np.mean(ours)):>9.1f} {ratio:>7.2f}",
            flush=True,
        )


def large(seeds: int) -> None:
    X = birch1_like(np.random.default_rng(1))
    for seed in range(seeds):
        begin = time.process_time()
        model = mj.KMeans(100, random_state=seed).fit(X)
        print(f"Birch1-like, 100,000 rows, 100 clusters: {time.process_time() - begin:.2f} s, SSE {model.inertia_:.8g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", help="only these, as A3-like,GMM-200,pendigits-like,name:k")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = None if arguments.rows is None else set(arguments.rows.split(","))
    worst: dict[str, list[float]] = defaultdict(list)
    print(f"{'set':<16} {'k':>4}  {'peer':<24} {'its mean SSE':>14} {'CPU ms':>9} {'ours, ms':>9} {'ratio':>7}")
    for name, X, k in sets(arguments.folder, chosen):
        race(name, X, k, arguments.seeds, worst)
    for peer, ratios in worst.items():
        print(f"{peer:<24} median ratio {np.median(ratios):.2f}, largest {max(ratios):.2f}, of {len(ratios)} rows")
    large(min(arguments.seeds, 3))


if __name__ == "__main__":
    main()
