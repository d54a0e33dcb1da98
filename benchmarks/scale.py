"""Rows that do not fit: peak memory and speed of streams beside memory, one worker beside two, kills, predictions.

Every measurement is a process of its own, so that its peak memory is its own: the resident size, pages of mapped files
included that the process holds at that time. Speeds are passes of the engine over all
rows: rows a second of CPU time (stream beside memory, one thread), or of the clock (workers).

    python benchmarks/scale.py [--rows 20000000] [--kills 20] [--folder DIR] [--only plan,passes,...]

--folder keeps the table (80 bytes a row as float64) for the next run.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from numpy.typing import NDArray

from majorant.data.cluster import FAN

D, K = 10, 20
CHUNK = 1 << 17
"""Rows of a row group, and of a partition."""
NAMES = [f"x{j}" for j in range(D)]


def chunk(number: int, rows: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows about K centres, and a target on three lines; a function of the number of the chunk."""
    draws = np.random.default_rng([7, number])
    centres = np.random.default_rng(0).normal(size=(K, D)) * 3
    x = centres[draws.integers(K, size=rows)] + draws.normal(size=(rows, D))
    lines = np.random.default_rng(1).normal(size=(3, D))
    return x, np.einsum("ij,ij->i", x, lines[draws.integers(3, size=rows)]) + 0.5 * draws.normal(size=rows)


def chunks(rows: int) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    for number, a in enumerate(range(0, rows, CHUNK)):
        yield chunk(number, min(CHUNK, rows - a))


def write(folder: Path, rows: int) -> None:
    """The table as Parquet files of some row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.float64()) for name in [*NAMES, "y"]])
    writer = None
    for number, (x, y) in enumerate(chunks(rows)):
        if number % 8 == 0:
            if writer is not None:
                writer.close()
            path = folder / f"part-{number // 8:05d}.parquet"
            writer = pq.ParquetWriter(path, schema, compression="none", use_dictionary=False)
        columns = [pa.array(column) for column in (*x.T, y)]
        writer.write_table(pa.table(columns, schema=schema), row_group_size=CHUNK)
    writer.close()


def opened(folder: Path, cache: Path | None = None) -> Any:
    import majorant as mj

    return mj.open_rows(folder, target="y", cache=cache)


def peak_mb() -> float:
    """The largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# Parts that run in a process of their own: the name of the function is what `child` is told


def fit(folder: str, model: str, where: str) -> dict[str, float]:
    """A fit of a stream, of few iterations on all rows: its peak memory does not depend on how many there are."""
    import warnings

    import majorant as mj

    warnings.simplefilter("ignore")
    made: Any = mj.KMeans(K, random_state=0, max_iter=5)
    if model == "regression":
        made = mj.RegressionMixture(3, init="random", n_init=1, max_iter=5, random_state=0)
    rows = opened(Path(folder), Path(folder).parent if where == "cached" else None)
    before, began, cpu = peak_mb(), time.perf_counter(), time.process_time()
    made.fit(rows)
    return {
        "before_mb": before,
        "peak_mb": peak_mb(),
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
        "n_iter": made.n_iter_,
    }


def passes(folder: str, model: str, where: str, count: str) -> dict[str, float]:
    """Rows a second of the passes of a descent, from a stream, from its cache or from memory."""
    from majorant.data.chunks import Chunks
    from majorant.data.storage import StoredRows

    source = opened(Path(folder), Path(folder).parent if where == "cached" else None).source.for_one_fit()
    assert isinstance(source, StoredRows)
    data, visit = descent(source, model)
    if where == "memory":
        blocks = [[np.concatenate(c) for c in zip(*(b.columns for b in data.source.blocks()), strict=True)]]
        data = Chunks(*blocks[0])
    data.map_sum(visit)  # reads the file into the page cache, or writes the cache
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(int(count)):
        data.map_sum(visit)
    n = data.n_units * int(count)
    return {
        "rows_per_cpu_second": n / (time.process_time() - cpu),
        "rows_per_second": n / (time.perf_counter() - began),
        "peak_mb": peak_mb(),
    }


def descent(source: Any, model: str) -> tuple[Any, Callable[[Any], Any]]:
    """The rows of a descent in the coordinates of a fit, and one pass of it."""
    from majorant.data.rows import rows_streamed
    from majorant.densities import Predictors, VarianceRule
    from majorant.engine.mixture import Parameters
    from majorant.laws.independent import Weights
    from majorant.models.kmeans import KMeansFamily
    from majorant.models.regression_mixture.read import unit_stream
    from majorant.solvers.responses import Gaussian

    if model == "kmeans":
        rows = rows_streamed(source, 0, None)
        centres = np.ascontiguousarray(rows.measure.points[:K])
        clusters = KMeansFamily(K)
        return rows.data, lambda block: clusters.tight_pass(centres, block)[1]
    units = unit_stream(source, Gaussian(), fit_intercept=True, shared=(), seed=0, n_jobs=None)
    coef = np.random.default_rng(2).normal(size=(1, 3, D + 1))
    theta = Parameters(Predictors(coef, np.ones((1, 3))), Weights(np.full((1, 3), 1 / 3)))
    mixture = units.mixture(Gaussian(), VarianceRule(15.0, 1e-8), 3)
    return units.data, lambda block: mixture.pass_over(theta, block)


def prepare(folder: str, rows: str) -> dict[str, float]:
    """A run, and a Parquet file for it to predict: beforehand, as their memory is not that of predicting."""
    import pyarrow.parquet as pq

    from majorant.cli import main

    work = Path(folder)
    small = pq.ParquetFile(next(iter(sorted(work.glob("part-*"))))).read_row_group(0, NAMES).slice(0, 2000)
    pq.write_table(small, work / "few.parquet")
    new = work / "new.parquet"
    with pq.ParquetWriter(new, small.schema) as writer:
        for x, _ in chunks(int(rows)):
            writer.write_table(small.schema.empty_table().from_arrays(list(x.T), schema=small.schema))
    assert main(["fit", "kmeans", str(work / "few.parquet"), "--k", "5", "--out", str(work / "run"), "--force"]) == 0
    return {"file_mb": new.stat().st_size / 2**20}


def predict(folder: str, rows: str) -> dict[str, float]:
    """Peak memory of ``majorant predict`` on the table that `prepare` wrote."""
    import pyarrow.parquet  # noqa: F401  # before, as is polars with the command line

    from majorant.cli import main

    work = Path(folder)
    before, began = peak_mb(), time.perf_counter()
    arguments = [str(work / name) for name in ("run", "new.parquet")]
    assert main(["predict", *arguments, "--out", str(work / "predicted.parquet"), "--force"]) == 0
    seconds = time.perf_counter() - began
    return {"before_mb": before, "peak_mb": peak_mb(), "rows_per_second": int(rows) / seconds}


def predictions(folder: Path, rows: int) -> None:
    """Files of two sizes: what a file takes more is what grows with it."""
    for n in (rows // 16, rows):
        size = child("prepare", str(folder), str(n))["file_mb"]
        made = child("predict", str(folder), str(n))
        print(
            f"predict   {size:.0f} MB of Parquet: {made['peak_mb']:.0f} MB at most, {made['before_mb']:.0f} MB of them "
            f"before; {made['rows_per_second']:.1e} rows a second",
            flush=True,
        )


def child(part: str, *arguments: str) -> dict[str, float]:
    """Run a part in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--part", part, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


# Clusters


def collections(rows: int) -> tuple[Any, Any]:
    """X and y as Dask arrays of the same chunks as the table's, each made by its worker."""
    import dask
    import dask.array as da

    lengths = [min(CHUNK, rows - a) for a in range(0, rows, CHUNK)]
    made = [dask.delayed(chunk, nout=2)(number, n) for number, n in enumerate(lengths)]
    x = da.concatenate([da.from_delayed(m[0], (n, D), float) for m, n in zip(made, lengths, strict=True)])
    y = da.concatenate([da.from_delayed(m[1], (n,), float) for m, n in zip(made, lengths, strict=True)])
    return x, y


def workers(rows: int, count: int) -> None:
    """Passes on one worker and on two, each of one thread, beside the same passes in this process."""
    from distributed import Client, LocalCluster

    from majorant.data.chunks import Chunks
    from majorant.data.storage import stored_rows

    seconds: dict[tuple[str, int], float] = {}
    for n in (1, 2):
        with (
            LocalCluster(n, host="127.0.0.1", threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
            Client(cluster),
        ):
            for model in ("kmeans", "regression"):
                x, y = collections(rows)
                source = stored_rows(x)
                assert source is not None
                if model == "regression":
                    source.aim(y)
                data, visit = descent(source, model)
                data.map_sum(visit)
                seconds[model, n] = median_seconds(lambda d=data, v=visit: d.map_sum(v), count)
                empty = Chunks(source)
                seconds[f"{model} overhead", n] = median_seconds(lambda d=empty: d.map_sum(lambda b: 0), count)
    for model in ("kmeans", "regression"):
        one, two = seconds[model, 1], seconds[model, 2]
        share = seconds[f"{model} overhead", 1] / one
        print(
            f"workers   {model:<11} {rows:.0e} rows: {one:.2f} s a pass on 1, {two:.2f} s on 2: {one / two:.2f} times; "
            f"of a pass on 1, {share:.0%} is overhead"
        )


def median_seconds(f: Callable[[], Any], count: int) -> float:
    spent = []
    for _ in range(count):
        began = time.perf_counter()
        f()
        spent.append(time.perf_counter() - began)
    return float(np.median(spent))


def kills(rows: int, times: int) -> None:
    """Fits during which a worker is killed at a random moment: how many give the answer of a fit left alone."""
    from distributed import Client, LocalCluster

    import majorant as mj

    draws = np.random.default_rng(0)
    right = hit = 0
    with (
        LocalCluster(2, host="127.0.0.1", threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):

        def fitted() -> Any:
            return mj.GaussianMixture(3, random_state=0, init_params="random", n_init=1, max_iter=30).fit(
                collections(rows)[0]
            )

        fitted()
        began = time.perf_counter()
        plain = fitted()
        usual = time.perf_counter() - began
        for _ in range(times):
            client.wait_for_workers(2, timeout=300)  # the next victim's nanny may be slow
            pids = list(client.run(os.getpid).values())
            killed: list[int] = []

            def kill(pid: int, killed: list[int] = killed) -> None:
                os.kill(pid, signal.SIGKILL)  # raises if the worker is not there
                killed.append(pid)

            timer = threading.Timer(draws.uniform(0, usual), kill, (pids[int(draws.integers(len(pids)))],))
            timer.start()
            model = fitted()
            hit += len(killed)
            timer.cancel()
            right += bool((model.means_ == plain.means_).all() and (model.covariances_ == plain.covariances_).all())
    print(f"kills     {times} fits of {rows:.0e} rows, a worker killed in {hit}: {right} right answers")


# On paper


@dataclass(frozen=True)
class Plant:
    """A cluster on paper. The numbers are assumptions, below what one core was measured to do (``--only passes``).

    Attributes
    ----------
    rows, workers, partition : int
        Workers of one thread; rows of a partition.
    speed : float
        Rows a second of a worker.
    task : float
        Seconds of the scheduler for each task (Dask's documentation: a fifth of a millisecond to one).
    sums, function : float
        Bytes of the statistics of a pass, and of the function that is sent.
    network : float
        Bytes a second between two workers.
    remembers : bool
        Whether something may lie beside a partition, so that a task of its own takes the sum from it: in the first pass
        of a fit, and in all passes of a policy that remembers rows.
    """

    rows: int
    workers: int
    partition: int
    speed: float = 2e6
    task: float = 5e-4
    sums: float = 8.0 * K * (D + 2)
    function: float = 2e4
    network: float = 1e9
    remembers: bool = False

    @property
    def partitions(self) -> int:
        return -(-self.rows // self.partition)

    @property
    def bytes_a_pass(self) -> float:
        """Sums that may travel to be added, and the function to each worker."""
        return self.sums * self.partitions * FAN / (FAN - 1) + self.function * self.workers

    @property
    def seconds(self) -> float:
        """The formula of the guide: the slower of scheduler and workers, who all end at once, and the tree of sums."""
        busiest = -(-self.partitions // self.workers) * self.partition / self.speed
        each = self.task * (1 + self.remembers + 1 / (FAN - 1))  # the scheduler's time for a partition
        depth = max(int(np.ceil(np.log(self.partitions) / np.log(FAN))), 1)
        return max(busiest + each * self.workers, each * self.partitions) + depth * (
            self.task + FAN * self.sums / self.network
        )

    def simulated(self, draws: np.random.Generator, spread: float = 0.05) -> float:
        """A pass by events: workers with their partitions in turn, one scheduler, the tree of sums."""
        owner = np.arange(self.partitions) % self.workers
        spent = self.partition / self.speed * np.exp(spread * draws.normal(size=self.partitions))
        events = []
        clocks = np.zeros(self.workers)
        for i, w in enumerate(owner.tolist()):
            clocks[w] += spent[i]
            events.append((float(clocks[w]), 0, i))
        heapq.heapify(events)
        widths, fans = [self.partitions], [0]
        if self.remembers:
            widths, fans = [self.partitions] * 2, [0, 1]
        while widths[-1] > 1:
            widths.append(-(-widths[-1] // FAN))
            fans.append(FAN)
        missing = {
            (level, i): min(fans[level], widths[level - 1] - i * fans[level])
            for level in range(1, len(widths))
            for i in range(widths[level])
        }
        free = 0.0
        while events:
            at, level, i = heapq.heappop(events)
            free = max(free, at) + self.task  # the scheduler hears of a task that has ended
            if level + 1 == len(widths):
                return free
            above = (level + 1, i // fans[level + 1])
            missing[above] -= 1
            if not missing[above]:
                travel = FAN * self.sums / self.network if fans[level + 1] > 1 else 0.0
                heapq.heappush(events, (free + travel, *above))
        return free


def plan() -> None:
    """Cost of a pass at sizes that nobody here has, by the formula and by a simulation of the events."""
    draws = np.random.default_rng(0)
    for rows, partition in ((10**9, 10**6), (10**11, 10**7)):
        for workers in (10, 100, 1000):
            plant, other = (Plant(rows, workers, partition, remembers=r) for r in (False, True))
            seconds = f"{plant.seconds:8.1f} s a pass by the formula, {plant.simulated(draws):8.1f} s simulated"
            remembered = f"{other.seconds:.1f} s and {other.simulated(draws):.1f} s where rows are remembered"
            network = f"{plant.bytes_a_pass / 2**20:.1f} MB of network"
            held = f"{rows * 8 * D / workers / 2**30:.1f} GB of rows a worker"
            size = f"{rows:.0e} rows, {plant.partitions} partitions, {workers:>4} workers"
            print(f"plan      {size}: {seconds}; {remembered}; {network}, {held}")


def fits(folder: Path, rows: int) -> None:
    for model in ("kmeans", "regression"):
        for where in ("stream", "cached"):
            made = child("fit", str(folder), model, where)
            print(
                f"fit       {model:<11} {rows:.0e} rows, {where}: {made['peak_mb']:.0f} MB at most, "
                f"{made['before_mb']:.0f} MB of them before; {made['cpu_seconds']:.0f} s of CPU, {made['seconds']:.0f} "
                f"s in all, {made['n_iter']:.0f} iterations",
                flush=True,
            )


def speeds_of_passes(folder: Path, rows: int, count: int) -> None:
    memory_rows = min(rows, 2_000_000)  # of more the speed in memory is the same
    for model in ("kmeans", "regression"):
        with tempfile.TemporaryDirectory(dir=folder.parent) as part:
            table = Path(part) / "table"
            table.mkdir()
            write(table, memory_rows)
            made = [
                {
                    where: child("passes", str(table), model, where, str(count))
                    for where in ("stream", "cached", "memory")
                }
                for _ in range(3)
            ]
        for where, name in (("stream", "from Parquet"), ("cached", 'from Parquet with cache="disk"')):
            speed = np.median([m[where]["rows_per_cpu_second"] for m in made])
            share = np.median([m[where]["rows_per_cpu_second"] / m["memory"]["rows_per_cpu_second"] for m in made])
            print(
                f"passes    {model:<11} {memory_rows:.0e} rows: {speed:.2e} rows a CPU second {name}, {share:.0%} of "
                "those from memory",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", default="plan,passes,fit,predict,workers,kills")
    parser.add_argument("--quick", action="store_true", help="some thousand rows, to see that it runs")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.part:
        part, *arguments = asked.part
        print(json.dumps({"fit": fit, "passes": passes, "prepare": prepare, "predict": predict}[part](*arguments)))
        return
    rows, count = (20_000, 2) if asked.quick else (asked.rows, 3)
    with tempfile.TemporaryDirectory() as made:
        folder = (asked.folder or Path(made)) / f"rows-{rows}"
        parts = asked.only.split(",")
        if not folder.exists() and {"passes", "fit", "predict"} & set(parts):
            folder.mkdir(parents=True)
            write(folder, rows)
        if "plan" in parts:
            plan()
        if "passes" in parts:
            speeds_of_passes(folder, rows, count)
        if "fit" in parts:
            fits(folder, rows)
        if "predict" in parts:
            predictions(folder, min(rows, 3_000_000))
        if "workers" in parts:
            workers(rows // 2, count)
        if "kills" in parts:
            kills(min(rows, 400_000), 1 if asked.quick else asked.kills)


if __name__ == "__main__":
    main()
