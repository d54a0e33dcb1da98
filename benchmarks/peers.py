"""majorant beside its peers in one table: quality and CPU time of whole fits in the same run, single thread.

    python benchmarks/peers.py [--seeds 10] [--only kmeans,spherical,medoids,gaussian,regression] [--quick]

Tables come with scikit-learn and majorant, or are drawn here. Every method keeps its defaults but the number of starts,
which its name tells. A line is one method on one table: the median over seeds of what its objective lacks to the best
that any method reached here (an SSE in per cent, a log-likelihood as a difference), in how many runs it is reached (to
1e-6 of an SSE, 1e-3 per row of a log-likelihood), and the median CPU time, as a multiple of majorant's too: below 1 the
method is faster. A Gaussian mixture with a component that has collapsed, by the rule of majorant, is no solution, and
does not reach the best. Peers that are not installed are named and left out: pip install ".[bench]", and in R
install.packages(c("flexmix", "mixtools", "mclust")).

R's runs of a table follow the others'; its own start does not count. mclust begins with a hierarchical clustering, so
its runs are all the same.
"""

from __future__ import annotations

import argparse
import platform
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version

from contenders import (  # sets threads first
    Rows,
    Run,
    cpu,
    kmeans_methods,
    medoid_methods,
    mixture_methods,
    r_runs,
    spherical_methods,
    sum_of_cosines,
    sum_of_squares,
)

import numpy as np  # isort: skip
from kmeans_race import a3_like
from regression_mixture import TRIALS, generated
from scipy.spatial.distance import cdist
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import scale

import majorant as mj
from majorant.datasets import tone_csv

IN_R = {"kmeans", "gaussian", "regression"}
SAME_SSE = 1e-6
SAME_NATS_A_ROW = 1e-3
MODELS = {
    "kmeans": "k-means",
    "spherical": "k-means by the cosine",
    "medoids": "k-medoids",
    "gaussian": "Gaussian mixture",
    "regression": "mixture of regressions",
}
SUMS = {"kmeans", "spherical", "medoids"}
"""Their objective is a sum over rows, of which the lowest is best, and differences are told in per cent."""
HEAD = ["data", "model", "method", "gap to the best", "reach it", "CPU, ms", "/ majorant's"]


@dataclass(frozen=True)
class Task:
    """One table and what is asked of it."""

    data: str
    model: str
    k: int
    X: Rows
    y: Rows | None = None
    detail: str = "-"
    beside: dict[str, Rows] = field(default_factory=dict)
    """What a regression is told besides: trials, gating, groups."""

    @property
    def title(self) -> str:
        detail = "".join(f", {word}" for word in (self.detail, *self.beside) if word not in ("-", "trials"))
        return f"{MODELS[self.model]}{detail}, K = {self.k}"

    def methods(self) -> dict[str, Callable[[int], float]]:
        """Objective or log-likelihood from a seed, by method."""
        if self.model == "kmeans":
            return {
                name: lambda seed, run=run: sum_of_squares(self.X, run(self.X, self.k, seed))
                for name, run in kmeans_methods().items()
            }
        if self.model == "spherical":
            return {
                name: lambda seed, run=run: sum_of_cosines(self.X, run(self.X, self.k, seed))
                for name, run in spherical_methods().items()
            }
        if self.model == "medoids":
            return {name: partial(run, self.X, self.k) for name, run in medoid_methods().items()}
        if self.model == "gaussian":
            return {name: partial(run, self.X, self.k, self.detail) for name, run in mixture_methods().items()}
        return {"majorant": self._regression}

    def _regression(self, seed: int) -> float:
        assert self.y is not None
        model = mj.RegressionMixture(self.k, family=self.detail, random_state=seed).fit(self.X, self.y, **self.beside)
        return float(model.log_likelihood_)

    def from_r(self, seeds: int) -> tuple[dict[str, list[Run]], str]:
        if self.model not in IN_R:
            return {}, ""
        columns = {f"x{i + 1}": column for i, column in enumerate(self.X.T)}
        columns |= {} if self.y is None else {"y": self.y}
        columns |= {name: np.ravel(values) for name, values in self.beside.items()}
        return r_runs(columns, self.model, self.k, self.detail, seeds)


def overlapping(n: int, d: int, k: int) -> Rows:
    """Rows of k Gaussians of their own shapes, close enough that starts differ."""
    random = np.random.default_rng(0)
    centres, shapes = 1.5 * random.normal(size=(k, d)), np.eye(d) + 0.3 * random.normal(size=(k, d, d))
    own = random.integers(0, k, n)
    return centres[own] + np.einsum("nij,nj->ni", shapes[own], random.normal(size=(n, d)))


def tasks(quick: bool) -> Iterator[Task]:
    wine, iris = scale(load_wine().data), load_iris().data
    yield Task("wine", "kmeans", 10, wine)
    if not quick:
        yield Task("digits", "kmeans", 10, load_digits().data)
        yield Task("breast cancer", "kmeans", 20, scale(load_breast_cancer().data))
        yield Task("like A3", "kmeans", 50, a3_like(np.random.default_rng(0)))
    yield Task("wine", "spherical", 10, wine)
    if not quick:
        yield Task("digits", "spherical", 10, load_digits().data)
        yield Task("breast cancer", "spherical", 20, scale(load_breast_cancer().data))
    yield Task("wine, distances", "medoids", 10, cdist(wine, wine))
    if not quick:
        digits = load_digits().data
        yield Task("digits, distances", "medoids", 20, cdist(digits, digits))
    yield Task("iris", "gaussian", 3, iris, detail="full")
    if not quick:
        yield Task("wine", "gaussian", 3, wine, detail="diag")
        yield Task("drawn, 2000 rows", "gaussian", 6, overlapping(2000, 4, 6), detail="full")
    tones = np.genfromtxt(tone_csv().decode().splitlines(), delimiter=",", skip_header=1)
    yield Task("tones", "regression", 2, tones[:, :1], tones[:, 1], "gaussian")
    if not quick:
        n = 600
        for family, k in (("gaussian", 4), ("poisson", 3), ("binomial", 3)):
            beside = {"trials": np.full(n, TRIALS)} if family == "binomial" else {}
            yield Task(f"drawn, {n} rows", "regression", k, *generated(family, n, k), family, beside)
        gate, groups = np.random.default_rng(2).normal(size=n), np.arange(n) // 5
        gated, grouped = generated("gaussian", n, 3, gate), generated("poisson", n, 3, groups, is_group=True)
        yield Task(f"drawn, {n} rows", "regression", 3, *gated, "gaussian", {"gating": gate[:, None]})
        yield Task(f"drawn, {n} rows", "regression", 3, *grouped, "poisson", {"groups": groups})


def measured(task: Task, seeds: int) -> tuple[dict[str, list[Run]], str]:
    """The runs of every method; one after the other, so that all meet the same load."""
    methods = task.methods()
    found: dict[str, list[Run]] = {name: [] for name in methods}
    for seed in range(seeds):
        for name, method in methods.items():
            try:
                found[name].append(Run(*cpu(partial(method, seed))))
            except ValueError:
                found[name].append(Run(np.nan, np.nan))
    others, left_out = task.from_r(seeds)
    return found | others, left_out


def short(value: float) -> str:
    """Two digits, without an exponent."""
    return (
        "0"
        if value < 1e-6
        else f"{value:.0f}"
        if value >= 10
        else np.format_float_positional(float(f"{value:.2g}"), trim="-")
    )


def lines(task: Task, found: dict[str, list[Run]]) -> list[str]:
    """The rows of the table."""
    values = {name: np.array([run.value for run in runs]) for name, runs in found.items()}
    every = np.concatenate(list(values.values()))
    is_sse = task.model in SUMS
    best = np.nanmin(every) if is_sse else np.nanmax(every)
    same = SAME_SSE * best if is_sse else SAME_NATS_A_ROW * len(task.X)
    own = float(np.nanmedian([run.seconds for run in found["majorant"]]))
    rows = []
    for name, runs in found.items():
        gaps = np.abs(values[name] - best)
        there = np.flatnonzero(np.isfinite(gaps))
        seconds = float(np.nanmedian([run.seconds for run in runs]))
        middle = np.median(gaps[there]) if len(there) else np.nan
        gap = "none" if not len(there) else f"{short(100 * middle / best)} %" if is_sse else short(middle)
        cells = [task.data, task.title, name, gap, f"{np.sum(gaps[there] <= same)} of {len(runs)}"]
        rows.append(f"| {' | '.join([*cells, short(1e3 * seconds), short(seconds / own)])} |")
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", default=",".join(MODELS), help="models, with commas between them")
    parser.add_argument("--quick", action="store_true", help="one small table a model")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    versions = ", ".join(f"{name} {version(name)}" for name in ("majorant", "numpy", "scikit-learn"))
    print(f"{chosen.seeds} seeds, one thread, Python {platform.python_version()}, {versions}")
    kmeans_methods(), mixture_methods()  # they say what is not installed
    print("\n".join(["", f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]))
    left_out = set()
    for task in tasks(chosen.quick):
        if task.model in chosen.only.split(","):
            found, without = measured(task, chosen.seeds)
            print("\n".join(lines(task, found)), flush=True)
            left_out |= {without} - {""}
    for without in sorted(left_out):
        print(f"\nLeft out: {without}")


if __name__ == "__main__":
    main()
