"""Mixtures of regressions beside plain numpy, beside random starts and beside flexmix, in the same run.

One EM pass over n rows beside plain numpy (responsibilities by broadcasting, K weighted least squares), the wall time
of one thread over that of two, and the memory that passes take beyond the data; the CPU time of a whole default fit
over that of 20 runs of EM from random starts; the log-likelihoods of 20 seeds on tables whose best optima are known,
and where R with flexmix is installed the CPU time of a whole default fit over that of one default start of flexmix.
Against flexmix also on generated tables of every family: the same start here and there, and the whole default fit.

    python benchmarks/regression_mixture.py [--data FOLDER] [--n 1000000] [--only PART]

FOLDER holds the tables mixtools_tonedata.csv and flexmix_NPreg.csv, written from the R packages of these names.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import majorant as mj
from majorant.data import Chunks
from majorant.densities import GaussianRegression, Predictors, VarianceRule
from majorant.engine.descent import descend
from majorant.engine.mixture import Mixture, OnData, Parameters
from majorant.laws import Independent
from majorant.laws.independent import Weights

Array = NDArray[np.float64]

D, K = 10, 4
FEW, MANY = 1, 4
SEEDS = 20
TRIALS = 20

REFERENCES: list[tuple[str, int, dict[str, Any], float]] = [
    # table, k, parameters, best known log-likelihood
    ("tone", 2, {}, 141.1984),
    ("tone", 3, {}, 154.7035),
    ("tone", 3, {"max_sigma_ratio": 60}, 238.796),
    ("NPreg", 2, {}, -642.532),
    ("NPreg", 3, {}, -636.2637),
]

FLEXMIX = """
ok <- suppressMessages(suppressWarnings(require(flexmix, quietly = TRUE)))
if (!ok) quit(status = 3)
folder <- commandArgs(trailingOnly = TRUE)[1]
tone <- read.csv(file.path(folder, "mixtools_tonedata.csv"))
npreg <- read.csv(file.path(folder, "flexmix_NPreg.csv"))
for (n in c(2, 41)) for (table in c("tone", "NPreg")) for (k in 2:3) {
    times <- numeric()
    for (seed in 1:n) {
        set.seed(seed)
        began <- proc.time()
        if (table == "tone") try(flexmix(tuned ~ stretchratio, data = tone, k = k), silent = TRUE)
        else try(flexmix(yn ~ x + I(x^2), data = npreg, k = k), silent = TRUE)
        times <- c(times, sum((proc.time() - began)[1:2]))
    }
    if (n > 2) cat(table, k, median(times), "\\n")
}
"""


ONE_START = """
ok <- suppressMessages(suppressWarnings(require(flexmix, quietly = TRUE)))
if (!ok) quit(status = 3)
folder <- commandArgs(trailingOnly = TRUE)[1]
table <- read.csv(file.path(folder, "table.csv"))
starts <- as.matrix(read.csv(file.path(folder, "starts.csv")))
family <- commandArgs(trailingOnly = TRUE)[2]
formula <- if (family == "binomial") cbind(y, trials - y) ~ x1 + x2 + x3 else y ~ x1 + x2 + x3
for (s in c(1, seq_len(ncol(starts)))) {
    began <- proc.time()
    fit <- try(flexmix(formula, data = table, model = FLXMRglm(family = family), cluster = starts[, s]), silent = TRUE)
    spent <- sum((proc.time() - began)[1:2])
    if (inherits(fit, "try-error")) cat(spent, NA, 0, 0, "\\n")
    else cat(spent, format(as.numeric(logLik(fit)), digits = 12), fit@k, fit@iter, "\\n")
}
"""


def lines(n: int, d: int, k: int, *, noise: float = 0.5) -> tuple[Array, Array, Array]:
    """Rows of k planes, made without a larger table on the way, and the planes."""
    random = np.random.default_rng(0)
    coef = random.normal(size=(k, d))
    X, y = np.empty((n, d)), np.empty(n)
    for first in range(0, n, 10_000):
        x = random.normal(size=(min(10_000, n - first), d))
        X[first : first + len(x)] = x
        own = coef[random.integers(0, k, len(x))]
        y[first : first + len(x)] = np.sum(x * own, axis=1) + noise * random.normal(size=len(x))
    return X, y, coef


def start_of(coef: Array) -> Any:
    """Parameters of lines of equal weight and noise."""
    k = len(coef)
    return Parameters(Predictors(coef[None], np.ones((1, k))), Weights(np.full((1, k), 1 / k)))


def numpy_descent(X: Array, y: Array, theta: Any, n_iter: int) -> Array:
    """EM as one writes it in numpy; its coefficients."""
    weights, coef, variances = theta.law.weights[0].copy(), theta.density.coef[0].copy(), theta.density.dispersion[0]
    variances = variances.copy()
    for _ in range(n_iter):
        residuals = y[:, None] - X @ coef.T
        logits = np.log(weights) - 0.5 * np.log(variances) - 0.5 * residuals**2 / variances
        q = np.exp(logits - logits.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        for h in range(len(coef)):
            weighted = X * q[:, h, None]
            coef[h] = np.linalg.solve(weighted.T @ X, weighted.T @ y)
            variances[h] = q[:, h] @ (y - X @ coef[h]) ** 2 / q[:, h].sum()
        weights[:] = q.mean(axis=0)
    return coef


def descent(X: Array, y: Array, theta: Any, n_iter: int, n_jobs: int = 1) -> Array:
    """The same steps of the package; their coefficients."""
    density = GaussianRegression(None, X.shape[1], VarianceRule(np.inf, 1e-16))
    on = OnData(Mixture(density, Independent(), theta.density.coef.shape[1]), Chunks(X, y, n_jobs=n_jobs))
    return np.asarray(descend(on, theta, tol=0.0, max_iter=n_iter, accelerate=False).theta.density.coef[0])


def seconds_a_step(run: Callable[[int], Any], clock: Callable[[], float] = time.process_time) -> float:
    spent = []
    for n_iter in (FEW, MANY):
        began = clock()
        run(n_iter)
        spent.append(clock() - began)
    return (spent[1] - spent[0]) / (MANY - FEW)


def one_pass(n: int, repeats: int) -> None:
    X, y, coef = lines(n, D, K)
    start = start_of(coef + 0.1)
    # Memory first: numpy's temporaries raise the peak for good.
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    descent(X, y, start, MANY)
    extra = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    ours, plain, threads = [], [], []
    for _ in range(repeats):
        ours.append(seconds_a_step(lambda m: descent(X, y, start, m)))
        plain.append(seconds_a_step(lambda m: numpy_descent(X, y, start, m)))
        one, two = (
            seconds_a_step(lambda m, t=t: descent(X, y, start, m, t), time.perf_counter)  # type: ignore[misc]
            for t in (1, 2)
        )
        threads.append(one / two)
    theirs, own = numpy_descent(X, y, start, MANY), descent(X, y, start, MANY)
    print(f"One EM pass, n = {n}, d = {D}, K = {K}, single thread, CPU, median of {repeats}:")
    print(f"  numpy {1e3 * np.median(plain):.0f} ms, majorant {1e3 * np.median(ours):.0f} ms, ", end="")
    print(f"ratio {np.median(np.divide(plain, ours)):.1f} (wanted 5)")
    print(f"  largest difference of the coefficients after {MANY} steps {np.abs(theirs - own).max():.1e}")
    print(f"  wall time of one thread over that of two {np.median(threads):.2f} (wanted 1.7)")
    print(f"  peak memory beyond the data {extra:.0f} MB (wanted below 50)")


def default_fit(n: int) -> None:
    X, y, _ = lines(n, 4, 3)
    spent = {}
    ways: dict[str, dict[str, Any]] = {"default": {}, "20 random starts": {"init": "random", "n_init": 20}}
    for label, parameters in ways.items():
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = mj.RegressionMixture(3, random_state=0, **parameters).fit(X, y)
        spent[label] = time.process_time() - began
        print(f"Whole fit, n = {n}, d = 4, k = 3, {label}: {spent[label]:.1f} s, {model.log_likelihood_:.2f}")
    print(f"  ratio of CPU {spent['default'] / spent['20 random starts']:.2f} (wanted at most 1)")


def flexmix(folder: Path) -> dict[tuple[str, int], float]:
    """Median CPU seconds of one default start, R's own start not counted; nothing without R and flexmix."""
    if shutil.which("Rscript") is None:
        return {}
    done = subprocess.run(["Rscript", "-e", FLEXMIX, str(folder)], capture_output=True, text=True)
    if done.returncode != 0:
        return {}
    rows = [line.split() for line in done.stdout.splitlines()]
    return {(table, int(k)): float(seconds) for table, k, seconds in rows}


def tables(folder: Path) -> None:
    tone = np.genfromtxt(folder / "mixtools_tonedata.csv", delimiter=",", names=True)
    npreg = np.genfromtxt(folder / "flexmix_NPreg.csv", delimiter=",", names=True)
    data = {
        "tone": (tone["stretchratio"][:, None], tone["tuned"]),
        "NPreg": (np.column_stack([npreg["x"], npreg["x"] ** 2]), npreg["yn"]),
    }
    peer = flexmix(folder)
    if not peer:
        print("R with flexmix was not found: no times beside it")
    print(f"| table | k | max_sigma_ratio | best known | seeds of {SEEDS} there | CPU, ms | flexmix, ms | ratio |")
    print("|---" * 8 + "|")
    mj.RegressionMixture(2, random_state=0).fit(*data["tone"])
    for table, k, parameters, best in REFERENCES:
        found, spent = [], []
        for seed in range(SEEDS):
            began = time.process_time()
            model = mj.RegressionMixture(k, random_state=seed, **parameters).fit(*data[table])
            spent.append(time.process_time() - began)
            found.append(model.log_likelihood_)
        own = float(np.median(spent))
        there = sum(abs(value - best) < 1e-3 for value in found)
        other = None if parameters else peer.get((table, k))
        beside = "| | |" if other is None else f"| {1e3 * other:.0f} | {own / other:.2f} |"
        ratio = parameters.get("max_sigma_ratio", "default")
        print(f"| {table} | {k} | {ratio} | {best} | {there} | {1e3 * own:.1f} {beside}")


def generated(family: str, n: int, k: int, beside: Array | None = None, is_group: bool = False) -> tuple[Array, Array]:
    """Rows of k components on three columns, noise and counts large enough that components can be told.

    `beside`: a column by which the weights of the components change, or the group of each row.
    """
    random = np.random.default_rng(1)
    X = random.normal(size=(n, 3))
    own = random.integers(0, k, n)
    if beside is not None:
        if is_group:
            own = own[beside.astype(np.intp)]
        else:
            logits = 2.0 * np.multiply.outer(beside, np.arange(k) - (k - 1) / 2)
            own = (logits + random.gumbel(size=(n, k))).argmax(axis=1)
    spread = {"gaussian": 2.0, "poisson": 0.5, "binomial": 1.0}[family]
    eta = spread * (random.normal(size=k)[own] + np.sum(X * random.normal(size=(k, 3))[own], axis=1))
    if family == "gaussian":
        return X, eta + 0.5 * random.normal(size=n)
    if family == "poisson":
        return X, random.poisson(np.exp(1 + eta)).astype(np.float64)
    return X, random.binomial(TRIALS, 1 / (1 + np.exp(-eta))).astype(np.float64)


def first_step(X: Array, y: Array, family: str, cluster: NDArray[np.intp], k: int) -> dict[str, Array]:
    """The components that a partition begins with, as flexmix's first M-step has them."""
    parts = [(X[cluster == j], y[cluster == j]) for j in range(k)]
    start: dict[str, list[Any]] = {"coef": [], "intercept": [], "scale": []}
    for x, t in parts:
        settings: dict[str, Any] = {} if family == "gaussian" else {"family": family}
        extras = {"trials": np.full(len(t), TRIALS)} if family == "binomial" else {}
        one = mj.RegressionMixture(1, **settings).fit(x, t, **extras)
        for name in start:
            start[name].append(getattr(one, name + "_")[0])
    return {**{name: np.array(value) for name, value in start.items()}, "weights": np.bincount(cluster) / len(y)}


def r_starts(X: Array, y: Array, family: str, starts: NDArray[np.intp]) -> Array:
    """CPU seconds, log-likelihood, components left and iterations of flexmix from each partition; empty without it."""
    if shutil.which("Rscript") is None:
        return np.empty((0, 4))
    with tempfile.TemporaryDirectory() as folder:
        trials = np.full(len(y), TRIALS)
        names = "y,x1,x2,x3,trials"
        table = np.column_stack([y, X, trials])
        np.savetxt(Path(folder, "table.csv"), table, "%.17g", delimiter=",", header=names, comments="")
        header = ",".join(f"s{i}" for i in range(len(starts)))
        np.savetxt(Path(folder, "starts.csv"), starts.T + 1, "%d", delimiter=",", header=header, comments="")
        done = subprocess.run(["Rscript", "-e", ONE_START, folder, family], capture_output=True, text=True)
    if done.returncode != 0:
        return np.empty((0, 4))
    rows = [[np.nan if cell == "NA" else float(cell) for cell in line.split()] for line in done.stdout.splitlines()]
    return np.array(rows[1:])  # the first run warms R up


def against_flexmix(n: int = 2000, repeats: int = 11) -> None:
    print(
        f"n = {n}, three columns, {repeats} starts from partitions at random: the same here and there, default settings"
    )
    head = ["family", "k", "flexmix, ms", "the same start, ms", "ratio", "no lower", "whole fit, ms", "ratio", "best"]
    print(f"| {' | '.join(head)} |")
    print("|---" * len(head) + "|")
    for family, k in (("gaussian", 4), ("poisson", 3), ("binomial", 3)):
        X, y = generated(family, n, k)
        starts = np.random.default_rng(0).integers(0, k, size=(repeats, n))
        peer = r_starts(X, y, family, starts)
        if not len(peer):
            print("R with flexmix was not found: no times beside it")
            return
        settings: dict[str, Any] = {"family": family}
        extras = {"trials": np.full(n, TRIALS)} if family == "binomial" else {}
        spent, whole, level = [], [], 0
        for i, cluster in enumerate(starts):
            start = first_step(X, y, family, cluster, k)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                began = time.process_time()
                one = mj.RegressionMixture(k, init=start, **settings).fit(X, y, **extras)
                spent.append(time.process_time() - began)
                began = time.process_time()
                best = mj.RegressionMixture(k, random_state=i, **settings).fit(X, y, **extras)
                whole.append(time.process_time() - began)
            level += bool(one.log_likelihood_ > peer[i, 1] - 1e-6 * abs(peer[i, 1])) or not np.isfinite(peer[i, 1])
        theirs, own, full = (1e3 * float(np.median(value)) for value in (peer[:, 0], spent, whole))
        best_there = f"{best.log_likelihood_:.2f}, flexmix best {np.nanmax(peer[:, 1]):.2f}"
        print(f"| {family} | {k} | {theirs:.0f} | {own:.1f} | {theirs / own:.0f} | {level} of {repeats} ", end="")
        print(f"| {full:.0f} | {theirs / full:.1f} | {best_there} |")
    print("Ratios are flexmix's CPU time over ours (wanted: 20 from the same start, 1 for the whole fit).")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the two tables; left out, the part tables is")
    parser.add_argument("--n", type=int, default=10**6, help="rows of the pass; the whole fit takes half of them")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=["pass", "fit", "tables", "flexmix"])
    chosen = parser.parse_args()
    if chosen.only in (None, "pass"):
        one_pass(chosen.n, chosen.repeats)
    if chosen.only in (None, "fit"):
        default_fit(chosen.n // 2)
    if chosen.only in (None, "flexmix"):
        against_flexmix()
    if chosen.only in (None, "tables"):
        if chosen.data is None:
            sys.exit("give --data FOLDER for the tables")
        tables(chosen.data)


if __name__ == "__main__":
    main()
