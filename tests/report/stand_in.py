"""Fitted clusterings for the tests of the report, made from given labels so that each case is exactly what it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans as ReferenceKMeans

from majorant.engine.trace import Trace
from majorant.registry import ModelCard
from majorant.report import Run
from majorant.search.record import SearchReport, StartRecord

CARD = ModelCard(
    name="stand-in",
    title="k-means",
    question="Which rows are alike?",
    kind="clustering",
    size_parameter="n_clusters",
    part="cluster",
    objective_name="SSE",
    objective_title="sum of squared distances",
    objective_attribute="inertia_",
)


class Fitted:
    """What a report reads of a fitted clustering."""

    def __init__(self, n_clusters: int = 8, *, max_iter: int = 300, random_state: Any = None) -> None:
        self.n_clusters = n_clusters
        self.max_iter = max_iter
        self.random_state = random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"n_clusters": self.n_clusters, "max_iter": self.max_iter, "random_state": self.random_state}

    def attach(
        self, X: NDArray[np.float64], labels: NDArray[np.int64], search: SearchReport | None, trace: Trace | None
    ) -> Fitted:
        """Set everything that `fit` would set."""
        used = [np.flatnonzero(labels == j) for j in range(self.n_clusters)]
        self.labels_ = labels
        self.cluster_centers_ = np.array([X[rows].mean(axis=0) if len(rows) else X[0] for rows in used])
        self.inertia_ = float(((X - self.cluster_centers_[labels]) ** 2).sum())
        self.search_ = starts_at([self.inertia_] * 5) if search is None else search
        self.trace_ = falling_trace(self.inertia_) if trace is None else trace
        self.n_iter_ = len(self.trace_)
        return self


def starts_at(
    objectives: Sequence[float], sources: Sequence[str] = ("k-means++",), *, converged: bool = True, **more: Any
) -> SearchReport:
    """Search report of starts that ended at `objectives`, of these kinds in turn."""
    records = [StartRecord(sources[i % len(sources)], v, 7, converged) for i, v in enumerate(objectives)]
    return SearchReport(tuple(records), "SSE", **more)


def falling_trace(last: float, n: int = 6, exploring: int = 0) -> Trace:
    """Objective and bound that fall by halves to `last`."""
    trace, size = Trace(), abs(last) or 1.0
    for i in range(n):
        objective = last + size * (0.5**i - 0.5 ** (n - 1))
        bound = objective + size * 0.3 * 0.5**i
        trace.add(objective=objective, bound=bound, gap=bound - objective, exploring=float(i < exploring))
    return trace


def make_run(
    X: NDArray[np.float64],
    labels: NDArray[np.int64],
    k: int,
    *,
    search: SearchReport | None = None,
    trace: Trace | None = None,
    names: Sequence[str] | None = None,
    random_state: Any = 0,
    **more: Any,
) -> Run:
    """A run of the stand-in."""
    estimator = Fitted(k, random_state=random_state).attach(X, labels, search, trace)
    names = tuple(names) if names is not None else tuple(f"x{j}" for j in range(X.shape[1]))
    return Run(estimator, X, names, more.pop("table_name", "table.csv"), more.pop("command", ""), card=CARD, **more)


def clustered_run(n: int, d: int, k: int, seed: int = 0, **more: Any) -> Run:
    """A run on `k` round groups of rows, clustered by the reference."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 3.0 * rng.normal(size=(k, d))[rng.integers(k, size=n)]
    sample = X[:: max(1, n // 2000)]
    labels = ReferenceKMeans(k, n_init=1, random_state=0).fit(sample).predict(X).astype(np.int64)
    return make_run(X, labels, k, **more)
