"""Latent class analysis: ten tables beside StepMix, many rows, rows of a file, and coverage of intervals.

    python benchmarks/latent_class_analysis.py tables [--data FOLDER] [--seeds 20] [--starts 3] [--only NAME]
    python benchmarks/latent_class_analysis.py references [--data FOLDER] [--seeds 20]
    python benchmarks/latent_class_analysis.py rows
    python benchmarks/latent_class_analysis.py stream [--n 1000000]
    python benchmarks/latent_class_analysis.py coverage [--replications 500] [--journal FILE]

tables: for every table the largest log-likelihood of our seeds, how many of them reach the largest that is known within
1e-4, and the CPU time of a whole search; beside it the same of single starts of StepMix, where it is installed, and the
ratio of the times: a search of ours over ONE start of StepMix. references: the same of ours for every number of classes
whose largest log-likelihood is known. rows: 36 000 rows of 16 items. stream: so many rows of
20 items from a Parquet file and in memory, each in a process of its own, with the largest memory of the process.
coverage: how many 95 % intervals of slopes, of the mean of an outcome in a class, and of probabilities held the truth,
with what was done kept in a journal, so that a run that was ended goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.datasets import load_iris

import majorant as mj

Array = NDArray[np.float64]
ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data" / "latentclass"
TRAITS = [name + side for side in "GB" for name in ("MORAL", "CARES", "KNOW", "LEAD", "DISHON", "INTEL")]
SAME = 1e-4
REFERENCES = {
    "carcinoma": {2: -317.2568, 3: -293.7050, 4: -289.2858, 5: -286.8843},
    "cheating": {2: -440.0271, 3: -436.2356},
    "election complete": {3: -16714.6591, 4: -16350.5889, 5: -16047.8278, 6: -15864.6783, 7: -15701.3417},
    "election": {2: -22127.9133, 3: -21311.5357, 4: -20837.3139, 5: -20494.4586, 6: -20270.3739, 8: -19922.5289},
    "votes": {3: -2959.4391, 4: -2892.3989, 5: -2830.4348, 6: -2796.8843},
    "zoo": {4: -568.8220, 5: -537.6107, 7: -483.4725},
    "iris": {3: -306.8605, 4: -264.8476},
}
"""Largest log-likelihoods that are known, by the number of classes, to four digits."""
GATED = {("cheating", 2): ("GPA", -429.6384), ("election", 3): ("PARTY", -16222.3233)}


def drawn(n: int, items: int, k: int, levels: int, concentration: float, missing: float, seed: int) -> Array:
    """Codes of items that are independent within k classes of random shares and probabilities."""
    random = np.random.default_rng(seed)
    shares = random.dirichlet(np.full(k, 5.0))
    p = random.dirichlet(np.full(levels, concentration), size=(k, items))
    classes = random.choice(k, n, p=shares)
    uniform = random.random((n, items, 1))
    codes = (uniform > np.cumsum(p[classes], axis=2)[:, :, :-1]).sum(axis=2).astype(np.float64)
    codes[random.random(codes.shape) < missing] = np.nan
    return codes


def tables(folder: Path) -> Iterator[tuple[str, Array, int, str, float]]:
    """Name, codes or numbers, number of classes, kind of the items, and the largest log-likelihood that is known."""

    def codes(file: str, columns: Any = slice(None)) -> Array:
        frame = pl.read_csv(folder / f"{file}.csv", null_values=["NA"], infer_schema_length=None)
        chosen = frame[columns] if isinstance(columns, list) else frame[:, columns]
        parts = [c.cast(pl.String) for c in chosen]
        places = [c.cast(pl.Enum(c.drop_nulls().unique().sort())).to_physical().cast(pl.Float64) for c in parts]
        return np.column_stack([c.fill_null(np.nan).to_numpy() for c in places])

    if folder.is_dir():
        election = codes("poLCA_election", TRAITS)
        complete = election[~np.isnan(election).any(axis=1)]
        for name, X, k in (
            ("carcinoma", codes("poLCA_carcinoma"), 4),
            ("cheating", codes("poLCA_cheating", slice(0, 4)), 3),
            ("election", election, 5),
            ("election complete", complete, 5),
            ("votes", codes("mlbench_HouseVotes84", slice(1, None)), 5),
            ("zoo", codes("mlbench_Zoo", slice(0, -1)), 7),
        ):
            yield name, X, k, "categorical", REFERENCES[name][k]
    yield "iris", load_iris().data, 3, "normal", REFERENCES["iris"][3]
    yield "two levels", drawn(500, 8, 4, 2, 0.7, 0.0, 1), 4, "categorical", -np.inf
    yield "four levels", drawn(1000, 6, 4, 4, 0.5, 0.0, 2), 4, "categorical", -np.inf
    yield "a fifth missing", drawn(800, 10, 3, 3, 0.7, 0.2, 3), 3, "categorical", -np.inf


def timed(fit: Any) -> tuple[Any, float]:
    """Return what a call returns, and its CPU time."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit()
    return found, time.process_time() - began


def by_us(X: Array, k: int, kind: str, seed: int, gating: Array | None = None) -> tuple[float, float]:
    """Return the log-likelihood of a search, and its CPU time."""
    model, seconds = timed(lambda: mj.LatentClassAnalysis(k, items=kind, random_state=seed).fit(X, gating=gating))
    return model.log_likelihood_, seconds


def by_stepmix(X: Array, k: int, kind: str, seed: int) -> tuple[float, float] | None:
    """Return the log-likelihood of one start of StepMix, and its CPU time; None where it is not installed."""
    try:
        from stepmix.stepmix import StepMix
    except ImportError:
        return None
    measurement = {"categorical": "categorical", "normal": "gaussian_diag"}[kind]
    measurement += "_nan" if np.isnan(X).any() else ""
    model = StepMix(k, measurement=measurement, n_init=1, random_state=seed, progress_bar=0, max_iter=10_000)
    _, seconds = timed(lambda: model.fit(X))
    return float(model.score(X) * len(X)), seconds


def show_tables(folder: Path, n_seeds: int, n_starts: int, only: str | None) -> None:
    head = f"{'table':<20}{'K':>3}{'known':>13}{'best':>13}{'hits':>7}{'CPU s':>8}"
    print(f"{head}{'StepMix':>13}{'hits':>6}{'CPU s':>8}{'ratio':>8}")
    ratios = []
    for name, X, k, kind, known in tables(folder):
        if only not in (None, name):
            continue
        values, times = np.array([by_us(X, k, kind, seed) for seed in range(n_seeds)]).T
        cpu = float(times.mean())
        theirs = [found for s in range(n_starts) if (found := by_stepmix(X, k, kind, s)) is not None]
        known = max(known, values.max(), *(value for value, _ in theirs), -np.inf)
        reached = f"{(values > known - SAME).sum():>4}/{n_seeds}"
        line = f"{name:<20}{k:>3}{known:>13.4f}{values.max():>13.4f}{reached}{cpu:>8.2f}"
        if theirs:
            best, seconds = max(value for value, _ in theirs), float(np.mean([s for _, s in theirs]))
            hits = sum(value > known - SAME for value, _ in theirs)
            ratios.append(cpu / seconds)
            line += f"{best:>13.4f}{hits:>4}/{n_starts}{seconds:>8.2f}{ratios[-1]:>8.2f}"
        print(line, flush=True)
    if ratios:
        print(f"CPU of a search over one start of StepMix, geometric mean: {np.exp(np.mean(np.log(ratios))):.2f}")


def show_references(folder: Path, n_seeds: int) -> None:
    """Show how many seeds reach each log-likelihood that is known; those with a covariate where it is known."""
    print(f"{'table':<24}{'K':>3}{'known':>13}{'best':>13}{'least':>13}{'hits':>8}{'CPU s':>8}")
    reached = total = 0
    for name, X, _, kind, _ in tables(folder):
        fits: list[tuple[str, int, Array, Array | None, float]] = [
            (name, k, X, None, known) for k, known in REFERENCES.get(name, {}).items()
        ]
        for (table, k), (covariate, known) in GATED.items():
            if table == name:
                path = folder / f"poLCA_{table}.csv"
                z = pl.read_csv(path, null_values=["NA"])[covariate].cast(pl.Float64).fill_null(np.nan).to_numpy()
                # those whom poLCA counted: all of a table without missing cells, complete rows of one with some
                there = ~np.isnan(z) & ~np.isnan(X).any(axis=1)
                fits.append((f"{table} ~ {covariate}", k, X[there], z[there], known))
        for told, k, rows, gating, known in fits:
            values, times = np.array([by_us(rows, k, kind, seed, gating) for seed in range(n_seeds)]).T
            hits = int((values > known - SAME).sum())
            reached, total = reached + hits, total + n_seeds
            ends = f"{known:>13.4f}{values.max():>13.4f}{values.min():>13.4f}"
            print(f"{told:<24}{k:>3}{ends}{hits:>5}/{n_seeds}{times.mean():>8.2f}", flush=True)
    print(f"{reached} of {total} searches reached what is known")


def show_rows() -> None:
    X = drawn(36_000, 16, 5, 3, 0.7, 0.0, 4)
    model, seconds = timed(lambda: mj.LatentClassAnalysis(5, random_state=0).fit(X))
    print(f"36 000 rows of 16 items, K = 5: log-likelihood {model.log_likelihood_:.4f}, {seconds:.2f} s of CPU")


def write_rows(path: Path, n: int, levels: int, concentration: float, kept: int) -> None:
    """Write rows of 20 items of four classes; those after the first `kept` rows repeat them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    size, random = 50_000, np.random.default_rng(0)
    p = random.dirichlet(np.full(levels, concentration), size=(4, 20))
    first: Any = None
    writer: Any = None
    for begin in range(0, n, size):
        rows = min(size, n - begin)
        if first is None or begin < kept:
            classes = random.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
            codes = (random.random((rows, 20, 1)) > np.cumsum(p[classes], axis=2)[:, :, :-1]).sum(axis=2)
            first = codes if first is None else first
        else:
            codes = first[random.integers(0, min(kept, len(first)), rows)]
        part = pa.table({f"item{j}": codes[:, j].astype(np.float64) for j in range(20)})
        writer = pq.ParquetWriter(path, part.schema) if writer is None else writer
        writer.write_table(part)
    writer.close()


def show_stream(n: int) -> None:
    """Fit rows of a file, and the same rows in memory, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for name, kept in (("all different", n), ("20,000 of them different", 20_000)):
            path = Path(folder) / "rows.parquet"
            write_rows(path, n, 4, 0.7, kept)
            print(f"{n:,} rows of 20 items from Parquet, {name}, K = 4:", flush=True)
            for way in ("from the file", "in memory"):
                call = [sys.executable, __file__, "fit-of-file", "--path", str(path), "--way", way]
                subprocess.run(call, check=True)


def show_fit_of_file(path: Path, way: str) -> None:
    before, began = _memory(), time.perf_counter()
    rows = mj.open_rows(path) if way == "from the file" else pl.read_parquet(path)
    model, seconds = timed(lambda: mj.LatentClassAnalysis(4, random_state=0).fit(rows))
    took = time.perf_counter() - began
    print(f"  {way}: log-likelihood {model.log_likelihood_:.4f}, {seconds:.1f} s of CPU in {took:.1f} s;")
    print(f"  largest memory of the process {_memory():.0f} MB, of which the program {before:.0f} MB", flush=True)


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def replication(separation: float, seed: int) -> dict[str, list[bool]]:
    """Return which intervals of a slope, and of the mean of an outcome, held the truth, -1, by estimator."""
    random = np.random.default_rng([seed, int(100 * separation)])
    x = random.normal(size=500)
    first = random.random(500) < 1 / (1 + np.exp(x))
    answers = (random.random((500, 6)) < np.where(first, separation, 1 - separation)[:, None]).astype(np.float64)
    y = random.normal(np.where(first, -1.0, 1.0))
    out = {}
    plain = mj.LatentClassAnalysis(2, random_state=0).fit(answers)
    gated = mj.LatentClassAnalysis(2, random_state=0).fit(answers, gating=x)
    ways = {"one-step": (gated, {})}
    for method in ("two-step", "bch", "ml"):
        ways |= {f"{method} {a}": (plain, {"method": method, "assignment": a}) for a in ("modal", "proportional")}
    for name, (model, settings) in ways.items():
        found = model.covariate_effects(answers, x, **settings)
        sign = 1.0 if model.item_probabilities_[1, 1] > model.item_probabilities_[0, 1] else -1.0
        slope, error = sign * found.coef[1, 1], found.standard_errors[1, 1]
        out[name] = [bool(abs(slope + 1.0) < 1.959964 * error)]
    order = [1, 0] if plain.item_probabilities_[1, 1] > plain.item_probabilities_[0, 1] else [0, 1]
    for name, (_, settings) in list(ways.items())[1:]:
        outcome = plain.distal_outcome(answers, y, **settings)
        mean, error = outcome.estimates[order[0], 0], outcome.standard_errors[order[0], 0]
        out[f"outcome, {name}"] = [bool(abs(mean + 1.0) < 1.959964 * error)]
    intervals = plain.confidence_intervals(answers)["item_probabilities"]
    low, high = (end[order][:, 1::2] for end in intervals)
    truth = np.array([[separation], [1 - separation]])
    known = np.isfinite(low)
    out["probabilities"] = ((low < truth) & (truth < high))[known].tolist()
    return out


def show_coverage(n: int, journal: Path) -> None:
    done = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    seen = {(row["separation"], row["seed"]) for row in done}
    with journal.open("a") as stream:
        for seed in range(n):
            for separation in (0.8, 0.9):
                if (separation, seed) in seen:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    row = {"separation": separation, "seed": seed, "held": replication(separation, seed)}
                done.append(row)
                print(json.dumps(row), file=stream, flush=True)
    for separation in (0.8, 0.9):
        print(f"separation {separation}")
        rows = [row["held"] for row in done if row["separation"] == separation]
        for name in rows[0]:
            held = np.concatenate([row[name] for row in rows])
            error = 100 * np.sqrt(held.mean() * (1 - held.mean()) / len(rows))
            print(f"  {name:<30}{100 * held.mean():6.1f} % of {len(held)}, error {error:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tables", "references", "rows", "stream", "fit-of-file", "coverage"])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--only")
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--replications", type=int, default=500)
    parser.add_argument("--journal", type=Path, default=Path("latent_class_coverage.jsonl"))
    parser.add_argument("--path", type=Path, help="the rows of fit-of-file, which stream calls")
    parser.add_argument("--way", choices=["from the file", "in memory"])
    given = parser.parse_args()
    if given.what == "tables":
        show_tables(given.data, given.seeds, given.starts, given.only)
    elif given.what == "references":
        show_references(given.data, given.seeds)
    elif given.what == "rows":
        show_rows()
    elif given.what == "stream":
        show_stream(given.n)
    elif given.what == "fit-of-file":
        show_fit_of_file(given.path, given.way)
    else:
        show_coverage(given.replications, given.journal)


if __name__ == "__main__":
    main()
