"""Latent classes: one EM iteration beside scikit-learn's logistic regression as its M-step, and growth with rows.

Of 20 features and 5 latent classes: the CPU time of an iteration of EM over that of the same iteration whose M-step is
``LogisticRegression`` (lbfgs, warm start) on every row once a class, weighted by its responsibilities; the CPU time of
10 iterations on 100 000 rows over that on 10 000; and the memory of a fit of at most 10 iterations of EM and of L-BFGS.

    python benchmarks/latent_class.py [--n 1000000] [--only iteration|growth|memory]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import majorant as mj
from majorant.engine import minimize
from majorant.models.discriminative_latent_classes.design import Design, make_design
from majorant.models.discriminative_latent_classes.family import LatentClasses, LatentClassFamily
from majorant.models.discriminative_latent_classes.targets import read_targets

Array = NDArray[np.float64]

P, K = 20, 5
ROUNDS = 5
ALPHA = 0.01


def table(n: int, seed: int = 0) -> tuple[Array, NDArray[Any]]:
    """Rows in five classes, two of which share each of two labels."""
    g = np.random.default_rng(seed)
    z = g.integers(0, K, size=n)
    X = g.normal(size=(n, P)) + 1.5 * np.random.default_rng(99).normal(size=(K, P))[z]
    return X, np.where(g.random(n) < 0.9, z % 3, g.integers(0, 3, size=n))


def problem(n: int) -> tuple[Design, LatentClassFamily, LatentClasses]:
    """A design, its family, and where a few iterations end."""
    X, y = table(n)
    design = make_design(X, read_targets(y, n, None), None, None)
    family = LatentClassFamily(K, P, design.labels, ALPHA * n / K)
    g = np.random.default_rng(1)
    begun = minimize(
        family, design.labelled, latent=lambda block: g.dirichlet(np.full(K, 0.3), size=len(block)), max_iter=3, tol=0.0
    )
    return design, family, begun.theta


def cpu(f: Callable[[], Any]) -> float:
    began = time.process_time()
    f()
    return time.process_time() - began


def peer_iteration(x: Array, y: NDArray[Any], theta: LatentClasses) -> Callable[[], Any]:
    """The E-step in numpy, and scikit-learn's fit of every row once a class from where the classes are."""
    n = len(y)
    repeated, states = np.repeat(x, K, axis=0), np.tile(np.arange(K), n)
    peer = LogisticRegression(C=K / (ALPHA * n), solver="lbfgs", warm_start=True)

    def run() -> None:
        scores = x @ theta.theta[:-1] + theta.theta[-1] + np.log(theta.alpha).T[y]
        q = np.exp(scores - scores.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        peer.coef_, peer.intercept_, peer.classes_ = theta.theta[:-1].T.copy(), theta.theta[-1].copy(), np.arange(K)
        peer.fit(repeated, states, sample_weight=q.ravel())

    return run


def iteration() -> None:
    """One iteration, interleaved, from the same parameters."""
    for n in (2_000, 10_000):
        design, family, theta = problem(n)
        theirs = peer_iteration(design.x[design.point], design.code, theta)
        ours = partial(minimize, family, design.labelled, theta=theta, max_iter=1)
        ratio = np.median([cpu(theirs) / cpu(ours) for _ in range(ROUNDS)])
        print(f"one EM iteration, n = {n}: scikit-learn's M-step takes {ratio:.1f} times the CPU (at least 3 asked)")


def growth() -> None:
    """Ten iterations on ten times the rows."""
    small, large = problem(10_000), problem(100_000)

    def em(task: tuple[Design, LatentClassFamily, LatentClasses]) -> float:
        design, family, theta = task
        return cpu(lambda: minimize(family, design.labelled, theta=theta, max_iter=10, tol=0.0))

    ratios = [em(large) / em(small) for _ in range(3)]
    print(f"10 EM iterations, n = 100 000 over n = 10 000: {np.median(ratios):.1f} times the CPU (at most 12 asked)")


def memory(n: int) -> None:
    """A fit in a process of its own."""
    subprocess.run([sys.executable, __file__, "--child", "--n", str(n)], check=True)


def child(n: int) -> None:
    X, y = table(n)
    model = mj.DiscriminativeLatentClasses(K, max_iter=10, random_state=0)
    seconds = cpu(lambda: model.fit(X, y))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"n = {n}: {seconds:.0f} s of CPU, {peak:.2f} GiB at most (4 asked), right on the fit {model.score(X, y):.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--only", choices=["iteration", "growth", "memory"])
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if arguments.child:
        child(arguments.n)
        return
    for part, run in {"iteration": iteration, "growth": growth, "memory": lambda: memory(arguments.n)}.items():
        if arguments.only in (None, part):
            run()


if __name__ == "__main__":
    main()
