"""Who competes with majorant, called in one way: what the benchmarks beside peers have in common.

Thread counts are set here: import this before numpy.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans as PeerKMeans
from sklearn.cluster import MiniBatchKMeans
from sklearn.mixture import GaussianMixture as PeerMixture

import majorant as mj
from majorant.models.gaussian_mixture.regularity import Fault, judge
from majorant.solvers.gaussian import Mixture

Rows = NDArray[np.float64]
Method = Callable[[Rows, int, int], Rows]
"""Centres from rows, a number of clusters and a seed."""
MixtureMethod = Callable[[Rows, int, str, int], float]
"""Log-likelihood from rows, a number of components, a type of covariance and a seed; NaN if it is not regular."""

REFERENCE = "scikit-learn, n_init=10"
R_SCRIPT = Path(__file__).with_name("contenders.R")


def cpu(run: Callable[[], Any]) -> tuple[Any, float]:
    """What a call gives, and its CPU seconds."""
    begin = time.process_time()
    found = run()
    return found, time.process_time() - begin


def spherical_methods() -> dict[str, Method]:
    """Methods that cluster directions; scikit-learn's are those of rows divided by their lengths."""

    def theirs(X: Rows, k: int, s: int) -> Rows:
        return PeerKMeans(k, n_init=10, random_state=s).fit(X / np.linalg.norm(X, axis=1, keepdims=True)).labels_

    return {
        "majorant": lambda X, k, s: mj.KMeans(k, metric="cosine", random_state=s).fit(X).labels_,
        "majorant, fast": lambda X, k, s: mj.KMeans(k, metric="cosine", effort="fast", random_state=s).fit(X).labels_,
        "scikit-learn, n_init=10, normalised rows": theirs,
    }


@cache
def medoid_methods() -> dict[str, Callable[[Rows, int, int], float]]:
    """Total distance by every method of k-medoids that is installed, from a table of distances."""
    found: dict[str, Callable[[Rows, int, int], float]] = {
        name: lambda D, k, s, effort=effort: (
            mj.KMedoids(k, metric="precomputed", effort=effort, random_state=s).fit(D).inertia_
        )
        for name, effort in (("majorant", "default"), ("majorant, fast", "fast"))
    }
    try:
        from kmedoids import fasterpam

        found["FasterPAM"] = lambda D, k, s: fasterpam(D, k, random_state=s, n_cpu=1).loss
    except ImportError:
        print("kmedoids is not installed and left out")
    return found


def sum_of_cosines(X: Rows, labels: Rows) -> float:
    """The least sum of one minus the cosine between rows and the centres of their clusters."""
    directions = X / np.linalg.norm(X, axis=1, keepdims=True)
    return len(X) - sum(np.linalg.norm(directions[labels == j].sum(axis=0)) for j in np.unique(labels))


@cache
def kmeans_methods(with_best: bool = False) -> dict[str, Method]:
    """Every method of k-means that is installed."""
    found: dict[str, Method] = {
        "majorant": lambda X, k, s: mj.KMeans(k, random_state=s).fit(X).cluster_centers_,
        "majorant, fast": lambda X, k, s: mj.KMeans(k, effort="fast", random_state=s).fit(X).cluster_centers_,
        REFERENCE: lambda X, k, s: PeerKMeans(k, n_init=10, random_state=s).fit(X).cluster_centers_,
        "scikit-learn, n_init=1": lambda X, k, s: PeerKMeans(k, n_init=1, random_state=s).fit(X).cluster_centers_,
        "MiniBatchKMeans, n_init=3": lambda X, k, s: (
            MiniBatchKMeans(k, n_init=3, random_state=s).fit(X).cluster_centers_
        ),
    }
    if with_best:
        found["majorant, best"] = lambda X, k, s: mj.KMeans(k, effort="best", random_state=s).fit(X).cluster_centers_
    try:
        from flspp import FLSpp

        for steps in (20, 200):
            found[f"flspp, {steps} steps"] = lambda X, k, s, steps=steps: (
                FLSpp(k, local_search_iterations=steps, random_state=s).fit(X).cluster_centers_
            )
    except ImportError:
        print("flspp is not installed and left out")
    try:
        from bkmeans import BKMeans

        found["bkmeans"] = lambda X, k, s: BKMeans(n_clusters=k, random_state=s).fit(X).cluster_centers_
    except ImportError:
        print("bkmeans is not installed and left out")
    try:
        import faiss

        faiss.omp_set_num_threads(1)
        found["faiss, nredo=10"] = lambda X, k, s: _faiss(faiss, X, k, s)
    except ImportError:
        print("faiss-cpu is not installed and left out")
    return found


def _faiss(faiss: Any, X: Rows, k: int, seed: int) -> Rows:
    clustering = faiss.Kmeans(
        X.shape[1], k, niter=100, nredo=10, seed=seed + 1, max_points_per_centroid=10**9, min_points_per_centroid=1
    )
    clustering.train(X.astype(np.float32))
    return np.asarray(clustering.centroids, dtype=np.float64)


def sum_of_squares(X: Rows, centres: Rows) -> float:
    """The objective of given centres, by differences, the same for every method."""
    nearest = np.full(len(X), np.inf)
    for centre in centres:
        np.minimum(nearest, ((X - centre) ** 2).sum(axis=1), out=nearest)
    return float(nearest.sum())


@cache
def mixture_methods() -> dict[str, MixtureMethod]:
    """Every method of Gaussian mixtures that is installed."""
    found: dict[str, MixtureMethod] = {
        "majorant": _majorant,
        REFERENCE: lambda X, k, kind, s: _scikit_learn(X, k, kind, s, n_init=10),
        "scikit-learn, n_init=1": lambda X, k, kind, s: _scikit_learn(X, k, kind, s, n_init=1),
    }
    try:
        from stepmix import StepMix

        found["StepMix, n_init=10"] = lambda X, k, kind, s: _stepmix(StepMix, X, k, kind, s)
    except ImportError:
        print("stepmix is not installed and left out")
    return found


def _majorant(X: Rows, k: int, kind: str, seed: int) -> float:
    model = mj.GaussianMixture(k, covariance_type=kind, random_state=seed).fit(X)
    return model.log_likelihood_ if model.regular_ else np.nan


def _scikit_learn(X: Rows, k: int, kind: str, seed: int, n_init: int) -> float:
    model = PeerMixture(k, covariance_type=kind, n_init=n_init, random_state=seed).fit(X)
    regular = is_regular(Mixture(model.weights_, model.means_, model.covariances_, kind), len(X))
    return float(model.score(X)) * len(X) if regular else np.nan


def _stepmix(StepMix: Any, X: Rows, k: int, kind: str, seed: int) -> float:
    model = StepMix(k, measurement=f"gaussian_{kind}", n_init=10, random_state=seed, progress_bar=0, verbose=0).fit(X)
    found = model.get_parameters()["measurement"]
    regular = is_regular(Mixture(np.asarray(model.weights_), found["means"], found["covariances"], kind), len(X))
    return float(model.score(X)) * len(X) if regular else np.nan


def is_regular(mixture: Mixture, n_rows: int) -> bool:
    """Whether no component has collapsed, by the rule that majorant's own solutions keep."""
    return judge(mixture, np.zeros(mixture.n_components, dtype=bool), n_rows).fault is Fault.NONE


class Run(NamedTuple):
    """One fit: objective or log-likelihood, NaN where it failed or is not regular, and CPU seconds."""

    value: float
    seconds: float


def r_runs(
    columns: dict[str, NDArray[Any]], model: str, k: int, detail: str, seeds: int
) -> tuple[dict[str, list[Run]], str]:
    """What R's packages make of a table, by method, R's own start not counted; and what was left out, in words.

    Parameters
    ----------
    columns : dict of arrays
        Features, and for regressions y, for binomial ones trials.
    model : {"kmeans", "gaussian", "regression"}
    k : int
    detail : str
        Type of covariance, or family.
    seeds : int
    """
    if shutil.which("Rscript") is None:
        return {}, "R's methods: there is no Rscript"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        table = np.column_stack(list(columns.values()))
        np.savetxt(path, table, "%.17g", delimiter=",", header=",".join(columns), comments="")
        arguments = [str(path), model, str(k), detail, str(seeds)]
        done = subprocess.run(["Rscript", str(R_SCRIPT), *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        return {}, f"R's methods: {done.stderr.strip().splitlines()[-1]}"
    found: dict[str, list[Run]] = {}
    missing = []
    for method, seconds, value in csv.reader(done.stdout.splitlines()):
        if seconds == "missing":
            missing.append(f"{method}: {value}")
        else:
            found.setdefault(method, []).append(Run(float("nan" if value == "NA" else value), float(seconds)))
    return found, "; ".join(missing)
