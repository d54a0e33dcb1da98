"""Whole fits beside those of an earlier version, in the same run: CPU time of one thread, and how good the answers are.

Two interpreters, this one and that of an environment with the earlier version, fit the same tables from the same seeds
in turn. Told are the medians over seeds of the CPU time, their ratio, and the median and the worst objective of each. A
case that the earlier version lacks is left out. Results are kept in a file beside, so that a run that is broken off
goes on where it stopped.

    python benchmarks/against_baseline.py --baseline PYTHON [--seeds 5] [--only regression] [--data FOLDER]
        [--keep against_baseline.json]

FOLDER holds flexmix_NPreg.csv and base_faithful.csv, written from the R packages of these names; without it cases on
them are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
for name in THREADS:
    os.environ[name] = "1"

import numpy as np
from sklearn.datasets import load_iris, load_wine

import majorant as mj
from majorant.datasets.tone import STRETCH_RATIO, TUNED

Fit = Callable[[int], Any]
Case = Callable[[Path], tuple[Fit, str]]
CASES: dict[str, Case] = {}


def case(label: str) -> Callable[[Case], Case]:
    """Register a table with its fit by a seed, and the attribute that says how good it is."""

    def put(make: Case) -> Case:
        CASES[label] = make
        return make

    return put


def regressions(label: str, k: int, table: Callable[[Path], tuple[Any, Any, dict[str, Any]]], **settings: Any) -> None:
    """Register a mixture of regressions."""

    @case(f"regression, {label}")
    def make(folder: Path) -> tuple[Fit, str]:
        X, y, given = table(folder)
        return lambda seed: mj.RegressionMixture(k, random_state=seed, **settings).fit(X, y, **given), "log_likelihood_"


def tone(folder: Path) -> tuple[Any, Any, dict[str, Any]]:
    return np.array(STRETCH_RATIO)[:, None], np.array(TUNED), {}


def npreg(folder: Path) -> tuple[Any, Any, dict[str, Any]]:
    t = np.genfromtxt(folder / "flexmix_NPreg.csv", delimiter=",", names=True)
    return np.column_stack([t["x"], t["x"] ** 2]), t["yn"], {}


def planes(n: int, k: int, d: int = 3) -> Callable[[Path], tuple[Any, Any, dict[str, Any]]]:
    def table(folder: Path) -> tuple[Any, Any, dict[str, Any]]:
        random = np.random.default_rng(n)
        X, coef = random.normal(size=(n, d)), 2 * random.normal(size=(k, d))
        return X, np.sum(X * coef[random.integers(0, k, n)], axis=1) + 0.4 * random.normal(size=n), {}

    return table


def two(kind: str) -> Callable[[Path], tuple[Any, Any, dict[str, Any]]]:
    """Two models of two columns on 400 rows: counts, weights by a covariate, or groups of four rows."""

    def table(folder: Path) -> tuple[Any, Any, dict[str, Any]]:
        random = np.random.default_rng(1)
        X, gate, group = random.normal(size=(400, 2)), random.normal(size=400), np.arange(400) // 4
        share = 1 / (1 + np.exp(-gate)) if kind == "gated" else 0.5
        first = group % 2 == 0 if kind == "grouped" else random.random(400) < share
        eta = np.where(first, 1 + X @ [0.8, -0.3], -0.5 + X @ [-0.6, 0.5])
        if kind == "poisson":
            return X, random.poisson(np.exp(eta)).astype(float), {}
        given = {"gated": {"gating": gate}, "grouped": {"groups": group}}.get(kind, {})
        return X, eta + 0.4 * random.normal(size=400), given

    return table


regressions("tone, K=2", 2, tone)
regressions("tone, K=3", 3, tone)
regressions("NPreg, K=2", 2, npreg)
regressions("NPreg, K=3", 3, npreg)
regressions("2000 rows, K=4", 4, planes(2000, 4))
regressions("Poisson, 400 rows", 2, two("poisson"), family="poisson")
regressions("gating, 400 rows", 2, two("gated"))
regressions("groups, 400 rows", 2, two("grouped"))
regressions("trimmed, 400 rows", 2, two("plain"), trim=0.05)
regressions("40000 rows, K=2", 2, planes(40_000, 2))


def gaussians(label: str, k: int, table: Callable[[Path], Any], **settings: Any) -> None:
    """Register a Gaussian mixture."""

    @case(f"Gaussian, {label}")
    def make(folder: Path) -> tuple[Fit, str]:
        X = table(folder)
        return lambda seed: mj.GaussianMixture(k, random_state=seed, **settings).fit(X), "log_likelihood_"


def standard(X: Any) -> Any:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def groups(n: int, d: int, k: int) -> Any:
    random = np.random.default_rng(n)
    return 3 * random.normal(size=(k, d))[random.integers(0, k, n)] + random.normal(size=(n, d))


def faithful(folder: Path) -> Any:
    t = np.genfromtxt(folder / "base_faithful.csv", delimiter=",", names=True)
    return np.column_stack([t[name] for name in ("eruptions", "waiting")])


gaussians("iris, K=3", 3, lambda folder: load_iris().data)
gaussians("wine, K=3", 3, lambda folder: standard(load_wine().data), covariance_type="diag")
gaussians("faithful, K=2", 2, faithful)
gaussians("2000 rows x 4, K=5", 5, lambda folder: groups(2000, 4, 5))


def clusters(label: str, k: int, table: Callable[[], Any]) -> None:
    """Register k-means."""

    @case(f"k-means, {label}")
    def make(folder: Path) -> tuple[Fit, str]:
        X = table()
        return lambda seed: mj.KMeans(k, random_state=seed).fit(X), "inertia_"


clusters("iris, K=3", 3, lambda: load_iris().data)
clusters("wine, K=3", 3, lambda: standard(load_wine().data))
clusters("2000 rows x 10, K=10", 10, lambda: groups(2000, 10, 10))
clusters("20000 rows x 100, K=20", 20, lambda: groups(20_000, 100, 20))


@case("harmonium, 300 rows x 20")
def harmonium(folder: Path) -> tuple[Fit, str]:
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3)) @ random.normal(size=(3, 20)) + random.normal(size=(300, 20))
    return lambda seed: mj.Harmonium(3, l2=1.0, random_state=seed).fit(X), "objective_"


def work(folder: Path) -> None:
    """Answer, line by line, requests for a fit by its case and seed; each case warms up first."""
    warnings.simplefilter("ignore")
    label, fit, attribute = "", None, ""
    for line in sys.stdin:
        asked, seed = json.loads(line)
        try:
            if asked != label:
                fit, attribute = CASES[asked](folder)
                label = asked
                fit(99)
            assert fit is not None
            began = time.process_time()
            model = fit(seed)
            answer: dict[str, Any] = {"cpu": time.process_time() - began, "value": float(getattr(model, attribute))}
        except Exception as error:  # a version that lacks the case says so
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


class Worker:
    """An interpreter that fits when it is asked to."""

    def __init__(self, python: str, folder: Path) -> None:
        command = [python, __file__, "--work", "--data", str(folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, label: str, seed: int) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([label, seed]) + "\n")
        self.process.stdin.flush()
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def row(label: str, found: list[list[dict[str, Any]]]) -> str:
    """A row of the table from the answers of the baseline and of this version."""
    errors = [one["error"] for answers in found for one in answers if "error" in one]
    if errors:
        return f"| {label} | left out: {errors[0].splitlines()[0][:80]} | | | | |"
    is_loss = label.startswith(("k-means", "harmonium"))
    worst = max if is_loss else min
    old, new = (float(np.median([one["cpu"] for one in answers])) for answers in found)
    middle, end = [], []
    for answers in found:
        values = [one["value"] for one in answers]
        middle.append(f"{np.median(values):.10g}")
        end.append(f"{worst(values):.10g}")
    told = " | ".join(a if a == b else f"{a} / {b}" for a, b in (middle, end))
    return f"| {label} | {1e3 * old:.1f} | {1e3 * new:.1f} | {new / old:.2f} | {told} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--baseline", help="python of an environment with the earlier version")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="cases whose name has this")
    parser.add_argument("--data", type=Path, default=Path("../shared/data/mixreg"))
    parser.add_argument("--keep", type=Path, help="file of what has been measured")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.data)
        return
    if given.baseline is None:
        parser.error("--baseline: give the python of an environment with the earlier version")
    kept = json.loads(given.keep.read_text()) if given.keep is not None and given.keep.exists() else {}
    workers = [Worker(python, given.data) for python in (given.baseline, sys.executable)]
    print("| fit | baseline, ms | now, ms | ratio | median objective | worst objective |\n|-|-|-|-|-|-|")
    for label in CASES:
        if given.only not in label:
            continue
        if label not in kept:
            answers: list[list[dict[str, Any]]] = [[], []]
            for seed in range(given.seeds):
                for at in (0, 1) if seed % 2 else (1, 0):
                    answers[at].append(workers[at].ask(label, seed))
            kept[label] = answers
            if given.keep is not None:
                given.keep.write_text(json.dumps(kept))
        print(row(label, kept[label]), flush=True)
    for worker in workers:
        worker.end()


if __name__ == "__main__":
    main()
