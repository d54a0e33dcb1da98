"""k-means beside its peers: quality and CPU time in one run, single thread, on any folder of data sets.

    python benchmarks/kmeans.py FOLDER [--seeds 20] [--rows d31:31,cloud:50] [--best]

FOLDER holds NAME.npz files (rows under the key X) and best_known.csv (columns dataset, k, sse, source). For every row
of that table: the mean gap to the best known SSE, the share of seeds at most 1e-6 above it (and above what its last
printed digit hides), and the CPU time of whole fits as a multiple of scikit-learn's with n_init=10. A last table sums
up. Rows whose source is a mean of runs are no best known values and left out. Peers that are not installed (flspp,
bkmeans, faiss-cpu) are left out and named. How long majorant takes to reach each peer's mean: kmeans_race.py.
"""

from __future__ import annotations

import argparse
import csv
import math
import warnings
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from contenders import REFERENCE, Rows, cpu, kmeans_methods, sum_of_squares  # sets thread counts first

import numpy as np  # isort: skip
from numpy.typing import NDArray

import majorant as mj

HIT = 1e-6


def read_rows(path: Path) -> Rows:
    return np.ascontiguousarray(np.load(path)["X"], dtype=np.float64)


@dataclass(frozen=True)
class Known:
    """A best known SSE, printed with ten digits or four decimals, whichever is less."""

    name: str
    k: int
    sse: float

    @property
    def hidden(self) -> float:
        """What the last printed digit may hide."""
        return max(0.5e-4, 0.5 * 10.0 ** (math.floor(math.log10(self.sse)) - 9))

    def is_hit(self, objective: Rows) -> NDArray[np.bool_]:
        return np.asarray(objective <= (self.sse + self.hidden) * (1 + HIT))

    def is_beaten(self, objective: Rows) -> NDArray[np.bool_]:
        return np.asarray(objective < self.sse - 2 * self.hidden)


def best_known(folder: Path) -> list[Known]:
    with (folder / "best_known.csv").open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if "MEAN" not in r["source"]]
    return list(dict.fromkeys(Known(r["dataset"], int(r["k"]), float(r["sse"])) for r in rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rows", help="only these, as name:k,name:k")
    parser.add_argument("--best", action="store_true", help="also majorant's effort='best'")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = None if arguments.rows is None else set(arguments.rows.split(","))
    contenders = kmeans_methods(arguments.best)
    mj.KMeans(2).fit(np.arange(8.0)[:, None])  # imports are not timed
    gaps: dict[str, list[float]] = defaultdict(list)
    hits: dict[str, list[float]] = defaultdict(list)
    costs: dict[str, list[float]] = defaultdict(list)
    print(f"{'set':<20} {'k':>4}  method                       mean gap      hits   CPU / reference")
    for known in best_known(arguments.folder):
        name, k, path = known.name, known.k, arguments.folder / f"{known.name}.npz"
        if not path.exists() or (chosen is not None and f"{name}:{k}" not in chosen):
            continue
        X = read_rows(path)
        spent: dict[str, float] = defaultdict(float)
        found: dict[str, list[float]] = defaultdict(list)
        for seed in range(arguments.seeds):  # one after the other, so that all meet the same load
            for method, run in contenders.items():
                centres, seconds = cpu(partial(run, X, k, seed))
                spent[method] += seconds
                found[method].append(sum_of_squares(X, centres))
        for method, values in found.items():
            objective = np.array(values)
            gaps[method].append(float(np.mean(objective / known.sse - 1)))
            hits[method].append(float(known.is_hit(objective).mean()))
            costs[method].append(spent[method] / spent[REFERENCE])
            better = f"   {objective.min():.10g} is below the best known" if known.is_beaten(objective).any() else ""
            print(
                f"{name:<20} {k:>4}  {method:<26} {gaps[method][-1]:>10.2e} {hits[method][-1]:>9.0%} "
                f"{costs[method][-1]:>12.2f}{better}",
                flush=True,
            )
    summarise(gaps, hits, costs)


def summarise(gaps: dict[str, list[float]], hits: dict[str, list[float]], costs: dict[str, list[float]]) -> None:
    n = len(gaps[REFERENCE])
    reference = np.array(gaps[REFERENCE])
    print(f"\n{n} rows; rows hit: at least 95 % of seeds within {HIT:g} of the best known")
    print(f"{'method':<26} {'rows hit':>9} {'median CPU':>11} {'mean gap':>10} {'rows above the reference':>25}")
    for method in gaps:
        hit = int(np.sum(np.array(hits[method]) >= 0.95))
        above = int(np.sum(np.array(gaps[method]) > reference + 1e-9))
        cost, gap = np.median(costs[method]), np.mean(gaps[method])
        print(f"{method:<26} {hit:>4} of {n:<3} {cost:>9.2f} {gap:>10.2e} {above:>25}")


if __name__ == "__main__":
    main()
