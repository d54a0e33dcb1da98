"""K-means on a cluster beside dask-ml and Spark: seconds an iteration, and the objective after equal iterations.

All on this machine, on as many workers of one thread, from the same centres (but for Spark's), in one run, in turns. An
iteration's time is the difference between fits of few and of more iterations, each the fastest of all rounds, so that
what is done once (reading, norms, the JVM) does not count, nor does what others do on the machine if there is a pause.

    python benchmarks/scale_peers.py [--rows 1000000] [--workers 2] [--rounds 3]

dask-ml and pyspark (which needs Java) are left out with the reason where they cannot be imported.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

HERE = str(Path(__file__).resolve().parent)
sys.path = [folder for folder in sys.path if folder != HERE]
with contextlib.suppress(ImportError):
    import coverage.types  # noqa: F401  # numba means the package, not the script of that name beside this one
sys.path.insert(0, HERE)

import numpy as np
from numpy.typing import NDArray
from scale import CHUNK, NAMES, K, chunk, collections, write

Centres = NDArray[np.float64]
Fit = Callable[[int], Centres]
"""Centres after so many iterations."""

FEW, MORE = 2, 22


def lengths(rows: int) -> list[int]:
    return [min(CHUNK, rows - a) for a in range(0, rows, CHUNK)]


def ours(x: Any, start: Centres) -> Fit:
    import majorant as mj

    def fit(n_iter: int) -> Centres:
        model = mj.KMeans(K, init=start, n_init=1, algorithm="lloyd", tol=0.0, max_iter=n_iter, random_state=0).fit(x)
        return np.asarray(model.cluster_centers_)

    return fit


def dask_ml(x: Any, start: Centres) -> Fit:
    from dask_ml.cluster import KMeans

    def fit(n_iter: int) -> Centres:
        return np.asarray(KMeans(K, init=start, tol=0.0, max_iter=n_iter, random_state=0).fit(x).cluster_centers_)

    return fit


def spark(rows: int, workers: int, folder: Path) -> Fit:
    """MLlib takes no centres: it begins with its own, after one round of k-means|| (of which the time cancels)."""
    from pyspark.ml.clustering import KMeans
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master(f"local[{workers}]").config("spark.ui.enabled", "false")
    session = session.config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", str(workers))
    made = session.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    write(folder, rows)
    table = made.read.parquet(str(folder))
    table = VectorAssembler(inputCols=NAMES, outputCol="features").transform(table).select("features").cache()
    table.count()

    def fit(n_iter: int) -> Centres:
        model = KMeans(k=K, maxIter=n_iter, tol=0.0, seed=0, initSteps=1).fit(table)
        return np.array(model.clusterCenters())

    return fit


def objective(rows: int, centres: Centres) -> float:
    """Sum of squared distances to the nearest centre, per row."""
    total = 0.0
    for number, n in enumerate(lengths(rows)):
        x = chunk(number, n)[0]
        squares = (x**2).sum(axis=1)[:, None] - 2 * x @ centres.T + (centres**2).sum(axis=1)
        total += float(squares.min(axis=1).sum())
    return total / rows


def main() -> None:
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="majorant,dask-ml,spark")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    start = np.ascontiguousarray(chunk(0, CHUNK)[0][:K])
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            asked.workers, host="127.0.0.1", threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster),
    ):
        x = collections(asked.rows)[0].persist()
        makers: dict[str, Callable[[], Fit]] = {
            "majorant": lambda: ours(x, start),
            "dask-ml": lambda: dask_ml(x, start),
            "spark": lambda: spark(asked.rows, asked.workers, Path(folder)),
        }
        fits: dict[str, Fit] = {}
        for name in asked.only.split(","):
            try:
                fits[name] = makers[name]()
                fits[name](FEW)
            except Exception as error:
                fits.pop(name, None)
                print(f"peers     {name}: left out, {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
        seconds = {(name, n_iter): np.inf for name in fits for n_iter in (FEW, MORE)}
        centres: dict[str, Centres] = {}
        for _ in range(asked.rounds):
            for name, fit in fits.items():
                for n_iter in (FEW, MORE):
                    began = time.perf_counter()
                    centres[name] = fit(n_iter)
                    seconds[name, n_iter] = min(seconds[name, n_iter], time.perf_counter() - began)
        for name in fits:
            each = (seconds[name, MORE] - seconds[name, FEW]) / (MORE - FEW)
            print(
                f"peers     {name:<9} {asked.rows:.0e} rows, {asked.workers} workers: {each:.3f} s an iteration; "
                f"objective a row after {MORE} iterations {objective(asked.rows, centres[name]):.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
