"""Hidden Markov models: references over seeds, one pass over many rows, and hmmlearn beside it where it is installed.

For every reference series the best minus log-likelihood that 20 default fits reach, how many of them reach the best
known value, and the CPU time of one. One pass of EM over n rows in 1 000 sequences and in one, K = 4 Gaussian states in
three columns, beside hmmlearn's in the same run. The CPU time of a default fit beside ten random starts of hmmlearn's
run to convergence. What 40 random starts of hmmlearn's and four of statsmodels' reach on the earthquakes.

    python benchmarks/hidden_markov.py [--data FILE] [--seeds 20] [--n 1000000] [--only references|pass|fits|starts]

FILE is an .npz of the series earthquakes, speed_rt, speed_corr, speed_group, geyser_duration, fedfunds, ogap, inf,
areturns and mumps.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np

import majorant as mj
from majorant.data.chunks import Chunks
from majorant.data.units import blocks_of
from majorant.engine.mixture import Mixture, OnData

ROOT = Path(__file__).resolve().parents[1]
SERIES = ROOT.parent / "shared" / "prototypes" / "mixtures" / "hmm_data.npz"
K, D = 4, 3
SAME = 2e-4


def cases(data: dict[str, Any]) -> list[tuple[str, dict[str, Any], Any, dict[str, Any], float]]:
    """Series, settings, rows, arguments of the fit, and the least minus log-likelihood that is known."""
    quakes, times = data["earthquakes"][:, None], data["speed_rt"][:, None]
    both, trials = np.column_stack([times, data["speed_corr"]]), {"groups": data["speed_group"]}
    long = (data["geyser_duration"] >= 3).astype(float)[:, None]
    counts: dict[str, Any] = {"emission": "poisson"}
    codes: dict[str, Any] = {"emission": "categorical", "start": "stationary"}
    mixed: dict[str, Any] = {"emission": ["gaussian", "categorical"]}
    free, stationary = (341.8787, 328.5275, 326.2850), (391.9189, 342.3183, 329.4603, 327.8316)
    rate, returns = data["fedfunds"], data["areturns"]
    lines: dict[str, Any] = {"emission": "regression", "start": "stationary", "n_components": 2}
    tied = {**lines, "covariance_type": "tied"}
    switching = {**tied, "emission": "switching_autoregression"}
    taylor = np.column_stack([rate[4:], rate[3:-1], data["ogap"][4:], data["inf"][4:]])
    return [
        ("federal funds", tied, rate[:, None], {}, 508.6359),
        ("federal funds, lag", tied, np.column_stack([rate[1:], rate[:-1]]), {}, 264.7107),
        ("federal funds, all", tied, taylor, {}, 229.2561),
        ("federal funds, all", {**tied, "n_components": 3}, taylor, {}, 180.8056),
        ("returns", lines, np.column_stack([returns[1:], returns[:-1]]), {}, 745.7977),
        ("mumps", {**lines, "lags": 1, "fit_intercept": False}, data["mumps"][:, None], {}, -131.7225),
        ("national product", {**tied, "emission": "switching_mean", "lags": 4}, data["rgnp"][:, None], {}, 181.2634),
        ("national product, 1 lag", {**switching, "lags": 1}, data["rgnp"][:, None], {}, 186.7575),
        ("national product, 2 lags", {**switching, "lags": 2}, data["rgnp"][:, None], {}, 179.3235),
        *(("earthquakes", {**counts, "n_components": k}, quakes, {}, v) for k, v in enumerate(free, 2)),
        *(
            ("earthquakes, stationary", {**counts, "start": "stationary", "n_components": k}, quakes, {}, v)
            for k, v in enumerate(stationary, 1)
        ),
        ("speed, one series", {"n_components": 2}, times, {}, 88.7306),
        ("speed", {"n_components": 2}, times, trials, 84.3417),
        *(
            ("speed, accuracy", {**mixed, "n_components": k}, both, trials, v)
            for k, v in ((2, 296.1078), (3, 263.6527))
        ),
        *(("geyser", {**codes, "n_components": k}, long, {}, v) for k, v in ((2, 127.3110), (3, 126.8431))),
    ]


def references(file: Path, seeds: int) -> None:
    """Print hits over seeds and the CPU time of a fit."""
    with np.load(file) as found:
        data = {name: found[name] for name in found.files}
    for name, settings, X, fit, best in cases(data):
        began = time.process_time()
        models = [mj.HiddenMarkovModel(random_state=seed, **settings).fit(X, **fit) for seed in range(seeds)]
        cpu, values = (time.process_time() - began) / seeds, [-model.log_likelihood_ for model in models]
        k, hits = settings["n_components"], sum(value < best + SAME for value in values)
        print(f"{name:24} K={k}  {min(values):9.4f} ({best:9.4f})  hits {hits}/{seeds}  {cpu:.2f} s CPU", flush=True)


def rows(n: int) -> Any:
    """Rows of K states that stay for twenty rows on average."""
    random = np.random.default_rng(0)
    states = np.repeat(random.integers(0, K, n // 20 + 1), 20)[:n]
    return random.normal(size=(n, D)) + 3.0 * random.normal(size=(K, D))[states]


def quickest(f: Callable[[], Any], times: int = 3) -> float:
    """CPU time of the quickest of some calls."""
    best = np.inf
    for _ in range(times):
        began = time.process_time()
        f()
        best = min(best, time.process_time() - began)
    return best


def one_pass(n: int) -> None:
    """Print the CPU time of one step of EM, here and there."""
    X = rows(n)
    for sequences in (1000, 1):
        sizes = [n // sequences] * sequences
        groups = np.repeat(np.arange(sequences), sizes)
        model = mj.HiddenMarkovModel(K, effort="fast", random_state=0).fit(X[:2000])
        columns = (*(column for one in model.emissions_ for column in one.read(X)), groups)
        mixture = Mixture(model._density(), model._chain(), K)
        on, theta = OnData(mixture, Chunks(blocks_of(columns, None, groups))), model._theta()
        own = quickest(lambda on=on, theta=theta: on.moved(theta, on.seen(theta), np.ones(1)))  # type: ignore[misc]
        tracemalloc.start()
        on = OnData(mixture, Chunks(blocks_of(columns, None, groups)))  # without what passes keep beside the rows
        on.seen(theta)
        more = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        print(f"one pass, n = {n}, {sequences} sequences: {own:.3f} s CPU, {more:.0f} MB beyond the data", flush=True)
        theirs = peer(n_iter=1, tol=0.0)
        if theirs is not None:
            theirs.fit(X[: 2 * (n // sequences)] if sequences > 1 else X[:1000])
            theirs.init_params = ""
            there = quickest(lambda theirs=theirs, sizes=sizes: theirs.fit(X, sizes), 1)  # type: ignore[misc]
            print(f"  hmmlearn {there:.2f} s, {there / own:.0f} times as much", flush=True)


def peer(**settings: Any) -> Any:
    """hmmlearn's model; None where it is not installed."""
    try:
        from hmmlearn.hmm import GaussianHMM
    except ImportError:
        return None
    return GaussianHMM(K, covariance_type="full", **settings)


def fits(n: int) -> None:
    """Print the CPU time of a default fit, and of ten random starts of hmmlearn's run to convergence."""
    X = rows(n)
    began = time.process_time()
    model = mj.HiddenMarkovModel(K, random_state=0).fit(X)
    print(f"default fit, n = {n}: {time.process_time() - began:.1f} s CPU, {model.log_likelihood_:.3f}", flush=True)
    if peer() is None:
        return
    began, best = time.process_time(), -np.inf
    for seed in range(10):
        best = max(best, peer(n_iter=1000, tol=1e-6, random_state=seed).fit(X).score(X))
    print(f"  hmmlearn, ten starts: {time.process_time() - began:.1f} s CPU, {best:.3f}", flush=True)


def starts(data: dict[str, Any], seeds: int) -> None:
    """Print the best that random starts of the peers reach on the earthquakes, and how many come within .01 of ours."""
    quakes = data["earthquakes"][:, None]
    for k in (2, 3, 4):
        best = -mj.HiddenMarkovModel(k, emission="poisson", random_state=0).fit(quakes).log_likelihood_
        print(f"earthquakes, {k} states: {best:.4f}", flush=True)
        for name, n_iter in (("by default", 10), ("to convergence", 1000)):
            try:
                from hmmlearn.hmm import PoissonHMM
            except ImportError:
                break
            models = (PoissonHMM(k, n_iter=n_iter, tol=1e-8, random_state=seed) for seed in range(seeds))
            reached = np.array([-model.fit(quakes.astype(int)).score(quakes.astype(int)) for model in models])
            near = int(np.sum(reached < best + 0.01))
            print(f"  hmmlearn {name}: {reached.min():.4f}, {near} of {seeds}", flush=True)
    try:
        from statsmodels.tsa.regime_switching.markov_regression import MarkovRegression
    except ImportError:
        return
    y = quakes[:, 0].astype(float)
    for seed in range(4):
        np.random.seed(seed)  # noqa: NPY002  # statsmodels draws from it
        model = MarkovRegression(y[1:], k_regimes=2, exog=y[:-1], switching_variance=True)
        try:
            said = f"{-model.fit(search_reps=20).llf:.4f}"
        except (ValueError, RuntimeError, np.linalg.LinAlgError) as error:
            said = f"{type(error).__name__}: {error}"
        print(f"  statsmodels, two regimes on the year before, seed {seed}: {said}", flush=True)


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SERIES)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--only", choices=["references", "pass", "fits", "starts"])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.only in (None, "references"):
        references(given.data, given.seeds)
    if given.only in (None, "pass"):
        one_pass(given.n)
    if given.only in (None, "fits"):
        fits(min(given.n, 20_000))
    if given.only in (None, "starts"):
        starts(dict(np.load(given.data)), 40)


if __name__ == "__main__":
    main()
