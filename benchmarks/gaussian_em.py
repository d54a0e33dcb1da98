"""One EM iteration of a Gaussian mixture beside scikit-learn's, in the same run: single thread, CPU time, medians.

Both start from the same parameters and run to two different iteration limits; the difference of the two times
over the difference of the iteration counts is the cost of one iteration, free of what a fit does once. Then the
log-likelihoods of both after 20 iterations in float64, the wall time of one thread over that of two, the memory that
iterations take beyond the data, what missing cells cost on a stream, and the cost of a step of many short runs on a
small table, which is what a search is made of.

    python benchmarks/gaussian_em.py [--repeats 5]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture as PeerMixture

from majorant import _kernels
from majorant.data import Chunks
from majorant.data.storage import IteratedRows
from majorant.densities.gaussian import Gaussian, normals
from majorant.densities.gaussian_gaps import GaussianGaps
from majorant.engine import minimize
from majorant.engine.mixture import Mixture as MixtureOf
from majorant.engine.mixture import OnData, Parameters, SingleRun
from majorant.laws import Independent
from majorant.laws.independent import Weights
from majorant.models.gaussian_mixture.rows import streamed
from majorant.solvers.covariance_types import COVARIANCE_TYPES, COVARIANCES, CovarianceType
from majorant.solvers.gaussian import Mixture
from majorant.solvers.gaussian_em import run_batch

N, D, K = 10**5, 10, 10
FEW, MANY = 1, 6
WANTED = {"full": (8.0, 10.0), "tied": (None, None), "diag": (4.0, 4.0), "spherical": (4.0, 4.0)}


def rows(dtype: type) -> NDArray[Any]:
    """Overlapping groups, made without a larger table on the way."""
    random = np.random.default_rng(0)
    centres = random.normal(0, 2, (K, D))
    X = np.empty((N, D), dtype=dtype)
    for first in range(0, N, 1000):
        X[first : first + 1000] = centres[random.integers(0, K, 1000)] + random.normal(size=(1000, D))
    return X


def start(X: NDArray[Any], covariance_type: CovarianceType) -> Mixture:
    """The parameters of random responsibilities."""
    part = X[:5000].astype(np.float64)
    q = np.random.default_rng(1).dirichlet(np.ones(K), len(part))
    return Mixture(*(own[0] for own in run_batch(part, None, q[None], covariance_type, 1e-9, 0)[:3]), covariance_type)


def descend(X: NDArray[Any], theta: Mixture, n_iter: int, n_jobs: int = 1) -> float:
    """The log-likelihood after some iterations of ours."""
    density = Gaussian(theta.covariance, D, single=X.dtype == np.float32)
    family = SingleRun(MixtureOf(density, Independent(), K))
    first = Parameters(normals([theta]), Weights(theta.weights[None]))
    return -minimize(family, Chunks(X, n_jobs=n_jobs), theta=first, tol=-np.inf, max_iter=n_iter).objective


def peer(X: NDArray[Any], theta: Mixture, n_iter: int) -> PeerMixture:
    """scikit-learn's model after some iterations."""
    factors = theta.precision_factors()[0]
    precisions = factors @ np.swapaxes(factors, -1, -2) if theta.covariance_type in ("full", "tied") else factors**2
    model = PeerMixture(
        K,
        covariance_type=theta.covariance_type,
        tol=0.0,
        reg_covar=0.0,
        max_iter=n_iter,
        weights_init=theta.weights.astype(X.dtype),
        means_init=theta.means.astype(X.dtype),
        precisions_init=precisions.astype(X.dtype),
    )
    return model.fit(X)


def seconds(work: Any, clock: Any = time.process_time) -> float:
    begin = clock()
    work()
    return float(clock() - begin)


def iteration(fit: Any) -> float:
    """Seconds of one iteration of ``fit(n_iter)``."""
    return (seconds(lambda: fit(MANY)) - seconds(lambda: fit(FEW))) / (MANY - FEW)


def speed(repeats: int) -> None:
    print(f"n={N} d={D} K={K}: milliseconds of an iteration, ours and scikit-learn's, and their ratio (wanted)")
    for covariance_type in COVARIANCE_TYPES:
        cells = []
        for dtype, wanted in zip((np.float64, np.float32), WANTED[covariance_type], strict=True):
            X = rows(dtype)
            theta = start(X, covariance_type)
            pairs = [
                (iteration(lambda n: descend(X, theta, n)), iteration(lambda n: peer(X, theta, n)))  # noqa: B023
                for _ in range(repeats)
            ]
            mine, theirs = 1e3 * np.median(pairs, axis=0)
            ratio = np.median([b / a for a, b in pairs])
            cells.append(f"{mine:6.1f} {theirs:6.1f} {ratio:5.1f} ({wanted or '-'})")
        X = rows(np.float64)
        theta = start(X, covariance_type)
        theirs = float(peer(X, theta, 20).score(X)) * N
        apart = abs(descend(X, theta, 20) - theirs) / abs(theirs)
        print(
            f"  {covariance_type:>9}  float64 {cells[0]}   float32 {cells[1]}   "
            f"log-likelihoods apart after 20 iterations, relative: {apart:.0e} (1e-10)",
            flush=True,
        )


def threads(repeats: int) -> None:
    X = rows(np.float64)
    theta = start(X, "full")
    wall, cpu = [], []
    for _ in range(max(repeats, 5)):
        for clock, ratios in ((time.perf_counter, wall), (time.process_time, cpu)):
            one, two = (seconds(lambda j=j: descend(X, theta, 10, n_jobs=j), clock) for j in (1, 2))
            ratios.append(one / two)
    print(
        f"two threads, full, float64: {np.median(wall):.2f} times the speed of one, {max(wall):.2f} at best "
        f"(1.7; needs two idle cores), at {1 / np.median(cpu):.2f} times its CPU time"
    )


def memory() -> None:
    """Of a process of its own (Linux): its largest resident size beyond that before ten iterations."""
    done = subprocess.run([sys.executable, __file__, "--memory"], capture_output=True, text=True, check=True)
    print(f"memory beyond the data, full, float64: {done.stdout.strip()} MB (20)")


def print_memory() -> None:
    X = rows(np.float64)
    theta = start(X, "full")
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    descend(X, theta, 10)
    print(f"{max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before / 2**20, 0.0):.1f}")


def gaps(repeats: int) -> None:
    """Of a pass over a stream of rows, a share of whose cells is missing, as a multiple of complete ones."""
    X = rows(np.float64).repeat(4, axis=0)
    spent: dict[tuple[str, float], float] = {}
    for share in (0.0, 0.05, 0.1, 0.3):
        X[np.random.default_rng(1).random(X.shape) < share] = np.nan
        own = streamed(IteratedRows(lambda: np.array_split(X, 4)), 0, 1)
        for name in ("full", "diag"):
            kind = COVARIANCES[name]
            model = Gaussian(kind, D, 1e-6)
            on = OnData(MixtureOf(GaussianGaps(model) if share else model, Independent(), K), own.data)
            width = own.variances.mean()
            theta = Mixture(np.full(K, 1 / K), own.points[:K], np.array([width * kind.identity(D)] * K), name)
            at = Parameters(normals([theta]), Weights(theta.weights[None]))
            spent[name, share] = min(seconds(lambda: on.seen(at)) for _ in range(repeats))  # noqa: B023
    for (name, share), each in spent.items():
        print(f"  {name:>9}  {share:.0%} of cells missing: {each / spent[name, 0.0]:.2f} times complete rows (2)")


def short_runs(repeats: int) -> None:
    X = load_iris().data
    Z = np.ascontiguousarray((X - X.mean(axis=0)) / X.std(axis=0))
    starts = np.eye(3)[np.random.default_rng(0).integers(0, 3, (48, len(Z)))]
    print("iris, K=3, 48 starts: microseconds of a step of each run, set-up included")
    for covariance_type in COVARIANCE_TYPES:
        cells = []
        for n_steps in (3, 30):
            spent = [
                seconds(lambda: run_batch(Z, None, starts, covariance_type, 1e-3, n_steps))  # noqa: B023
                for _ in range(max(repeats, 5))
            ]
            cells.append(f"{np.median(spent) / (n_steps * len(starts)) * 1e6:5.1f} in runs of {n_steps} steps")
        print(f"  {covariance_type:>9}  " + "   ".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # iteration limits are meant
    if given.memory:
        print_memory()
        return
    print(f"instruction set {_kernels.isa()}")
    short_runs(given.repeats)
    memory()
    threads(given.repeats)
    gaps(given.repeats)
    speed(given.repeats)


if __name__ == "__main__":
    main()
