"""How cost grows with rows, columns and groups: CPU and memory of whole fits, and their exponents beside the peers'.

    python benchmarks/growth.py [--only kmeans,gaussian] [--axes n,d,K] [--limit 120] [--most 1e6] [--journal FILE]

Every fit is a process of its own, single thread, on rows drawn from as many groups as are fitted: CPU seconds of the
fit and the largest memory of the process over what it held with its rows. Ours is the default search; the peer is
named with its number of starts. One size grows and the others stay (n = 20 000, d = 10, K = 5; 2 000 rows where
columns grow). An exponent is the slope of least squares of log time on log size over fits of more than 30 ms. A fit
over the limit of CPU seconds is not finished, and sizes above it are not tried. With a journal, a run that was ended
goes on where it was. Peers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np

SIZES = {
    "n": [(n, 10, 5) for n in (1_000, 10_000, 100_000, 1_000_000, 10_000_000)],
    "d": [(2_000, d, 5) for d in (2, 10, 100, 1_000)],
    "K": [(20_000, 10, k) for k in (2, 10, 100, 1_000)],
}
AXES = {"n": 0, "d": 1, "K": 2}
ENOUGH = 0.03
"""CPU seconds from which a fit says something of growth."""


def rows(n: int, d: int, k: int) -> tuple[Any, Any]:
    """Rows about k centres, and the centre of each, of about the same overlap whatever d and k are."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(k, d)) * 4 / np.sqrt(min(d, 10) / 10)
    own = random.integers(0, k, n)
    X = random.normal(size=(n, d))
    for first in range(0, n, 100_000):
        X[first : first + 100_000] += centres[own[first : first + 100_000]]
    return X, own


def bits(n: int, d: int, k: int) -> Any:
    """Yes and no in d items, by classes that answer differently."""
    random = np.random.default_rng(0)
    shares = random.uniform(0.1, 0.9, (k, d))
    own = random.integers(0, k, n)
    answers = np.empty((n, d), np.int8)
    for first in range(0, n, 100_000):
        p = shares[own[first : first + 100_000]]
        answers[first : first + 100_000] = random.random(p.shape) < p
    return answers


def line_rows(n: int, d: int, k: int) -> tuple[Any, Any]:
    X, _ = rows(n, d, 1)
    random = np.random.default_rng(1)
    slopes, own = 3 * random.normal(size=(k, d)), random.integers(0, k, n)
    y = random.normal(size=n)
    for first in range(0, n, 100_000):
        part = slice(first, first + 100_000)
        y[part] += np.einsum("nd,nd->n", X[part], slopes[own[part]])
    return X, y


def kmeans(n: int, d: int, k: int, peer: bool) -> Callable[[], Any]:
    X, _ = rows(n, d, k)
    if peer:
        from sklearn.cluster import KMeans

        return lambda: KMeans(k, n_init=10, random_state=0).fit(X)
    import majorant as mj

    return lambda: mj.KMeans(k, random_state=0).fit(X)


def gaussian(n: int, d: int, k: int, peer: bool, *, covariance_type: str = "full") -> Callable[[], Any]:
    X, _ = rows(n, d, k)
    if peer:
        from sklearn.mixture import GaussianMixture

        return lambda: GaussianMixture(k, covariance_type=covariance_type, n_init=10, random_state=0).fit(X)
    import majorant as mj

    return lambda: mj.GaussianMixture(k, covariance_type=covariance_type, random_state=0).fit(X)


def diagonal(n: int, d: int, k: int, peer: bool) -> Callable[[], Any]:
    return gaussian(n, d, k, peer, covariance_type="diag")


def classes(n: int, d: int, k: int, peer: bool) -> Callable[[], Any]:
    X = bits(n, d, k)
    if peer:
        from stepmix import StepMix

        return lambda: StepMix(k, measurement="binary", n_init=1, random_state=0, verbose=0, progress_bar=0).fit(X)
    import majorant as mj

    return lambda: mj.LatentClassAnalysis(k, random_state=0).fit(X)


def hidden_markov(n: int, d: int, k: int, peer: bool) -> Callable[[], Any]:
    X, _ = rows(n, d, k)
    lengths = [100] * (n // 100)
    if peer:
        from hmmlearn.hmm import GaussianHMM

        return lambda: GaussianHMM(k, covariance_type="diag", n_iter=100, random_state=0).fit(X, lengths)
    import majorant as mj

    return lambda: mj.HiddenMarkovModel(k, covariance_type="diag", random_state=0).fit(X, lengths=lengths)


def lines(n: int, d: int, k: int, peer: bool) -> Callable[[], Any]:
    del peer
    X, y = line_rows(n, d, k)
    import majorant as mj

    return lambda: mj.RegressionMixture(k, random_state=0).fit(X, y)


MODELS: dict[str, tuple[str, Callable[..., Callable[[], Any]], str | None]] = {
    "kmeans": ("k-means", kmeans, "scikit-learn, ten starts"),
    "gaussian": ("Gaussian mixture, full", gaussian, "scikit-learn, ten starts"),
    "diagonal": ("Gaussian mixture, diag", diagonal, "scikit-learn, ten starts"),
    "classes": ("latent classes, two answers", classes, "StepMix, one start"),
    "markov": ("hidden Markov, Gaussian states", hidden_markov, "hmmlearn, one start"),
    "lines": ("mixture of regressions", lines, None),
}


def peak() -> float:
    """Largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one_fit(name: str, size: tuple[int, int, int], peer: bool, limit: float) -> None:
    """Fit in this process, and print what it cost."""
    warnings.simplefilter("ignore")
    make = MODELS[name][1]
    make(300, 3, 2, peer)()  # what a first fit loads is not counted
    fit = make(*size, peer)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + limit) + 1, resource.RLIM_INFINITY))
    before, begin = peak(), time.process_time()
    fit()
    print(json.dumps({"cpu": time.process_time() - begin, "memory": peak() - before}))


def measured(name: str, size: tuple[int, int, int], peer: bool, limit: float) -> dict[str, Any]:
    """What a fit cost; `over` where it did not end within the limit, `missing` where the peer is not installed."""
    run = [sys.executable, __file__, "--one", json.dumps([name, size, peer, limit])]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"over": True}
    if "ModuleNotFoundError" in done.stderr:
        return {"missing": True}
    return {"failed": (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]}


def exponent(sizes: list[int], seconds: list[float]) -> float | None:
    """Slope of log seconds on log size over the fits that took long enough to tell."""
    telling = [(np.log(size), np.log(s)) for size, s in zip(sizes, seconds, strict=True) if s > ENOUGH]
    return float(np.polyfit(*zip(*telling, strict=True), 1)[0]) if len(telling) > 1 else None


def told(cell: dict[str, Any]) -> str:
    if "cpu" not in cell:
        return "over" if cell.get("over") else "-" if cell.get("missing") else "failed"
    return f"{cell['cpu']:.2g} s, {cell['memory']:.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--axes", default=",".join(SIZES))
    parser.add_argument("--limit", type=float, default=120, help="CPU seconds of one fit")
    parser.add_argument("--most", type=float, default=1e6, help="largest number of rows")
    parser.add_argument("--journal", type=Path, help="file of finished fits, one a line")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        name, size, peer, limit = json.loads(chosen.one)
        one_fit(name, tuple(size), peer, limit)
        return
    kept: dict[str, dict[str, Any]] = {}
    if chosen.journal and chosen.journal.exists():
        kept = {line["fit"]: line["cost"] for line in map(json.loads, chosen.journal.read_text().splitlines())}

    def cost(name: str, size: tuple[int, int, int], peer: bool) -> dict[str, Any]:
        key = json.dumps([name, size, peer])
        if key not in kept:
            kept[key] = measured(name, size, peer, chosen.limit)
            if chosen.journal:
                with chosen.journal.open("a") as file:
                    file.write(json.dumps({"fit": key, "cost": kept[key]}) + "\n")
        return kept[key]

    for axis in chosen.axes.split(","):
        sizes = [size for size in SIZES[axis] if size[0] <= chosen.most]
        grown = [size[AXES[axis]] for size in sizes]
        print(f"\n| {axis} | " + " | ".join(f"{value:,}" for value in grown) + " | exponent of time | of memory |")
        print("|" + "---|" * (len(grown) + 3))
        for name in chosen.only.split(","):
            title, _, other = MODELS[name]
            for peer in (False, True) if other else (False,):
                cells: list[dict[str, Any]] = []
                for size in sizes:
                    cells.append({"over": True} if cells and "over" in cells[-1] else cost(name, size, peer))
                had = [(value, cell) for value, cell in zip(grown, cells, strict=True) if "cpu" in cell]
                at, times = [value for value, _ in had], [cell["cpu"] for _, cell in had]
                slopes = exponent(at, times), exponent(at, [cell["memory"] / 100 for _, cell in had])
                words = ["-" if slope is None else f"{slope:.2f}" for slope in slopes]
                print(f"| {other if peer else title} | " + " | ".join([*map(told, cells), *words]) + " |", flush=True)


if __name__ == "__main__":
    main()
