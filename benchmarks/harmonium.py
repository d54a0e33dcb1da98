"""Harmoniums: the CPU time of one evaluation beside the products in it, and the memory of a fit.

Rows of 1000 sparse bits and 100 real columns, 20 components. Told are the CPU time of the objective with its gradient
(what an iteration of L-BFGS costs) over that of the matrix products that it cannot do without: those of the sparse bits
with the weights and of their transpose with the latents, the same of the dense columns, and three of each block of
rows, logits, gradient of the weights and of the latents; and the largest memory of a fit beyond its data, over that of
the data.

With mofapy2 (pip install mofapy2) also factor analysis of two views of real columns beside MOFA, on data of its own
kind: CPU time of a fit with the penalty chosen, beside MOFA's, and log-likelihood of rows that were held out.

    python benchmarks/harmonium.py [--n 50000] [--only iteration|memory|mofa]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from scipy import sparse, stats

import majorant as mj
from majorant.models.harmonium.layout import Parameters, layout_of, patterns_of
from majorant.models.harmonium.pseudo_likelihood import PseudoLikelihood, parts_of
from majorant.models.harmonium.tables import Table, distinct_rows
from majorant.models.harmonium.variables import fit_views

BITS, COLUMNS, K = 1000, 100, 20
DENSITY = 0.02
ROUNDS = 5
VIEWS = {"bits": mj.Bernoulli(), "columns": mj.Gaussian()}


def views_of(n: int) -> dict[str, Any]:
    """Bits and real columns without structure: what they cost does not depend on it."""
    bits = sparse.random(n, BITS, DENSITY, format="csr", random_state=0)
    bits.data[:] = 1
    return {"bits": bits, "columns": np.random.default_rng(0).normal(size=(n, COLUMNS))}


def cpu(f: Callable[[], Any]) -> float:
    """Seconds of CPU time."""
    start = time.process_time()
    f()
    return time.process_time() - start


def iteration(n: int) -> str:
    """The ratio of the objective to its products, median over rounds that alternate."""
    X = views_of(n)
    tables = {name: Table(values, np.zeros(n, dtype=bool), [""] * values.shape[1]) for name, values in X.items()}
    rows = distinct_rows(tables, None, None)
    views = fit_views(VIEWS, rows)
    layout = layout_of(views)
    patterns = patterns_of(rows.tables, views, layout)
    centre = np.concatenate([views[1].centre, views[0].centre])
    problem = PseudoLikelihood(layout, centre, parts_of(patterns, rows, layout))
    g = np.random.default_rng(1)
    at = Parameters(0.03 * g.normal(size=(layout.n_rows, K)), np.full(layout.n_rows, -3.0), np.zeros(COLUMNS))
    at.intercept[:COLUMNS] = 0
    u, w = at.weights[:COLUMNS], at.weights[COLUMNS:]
    z, x, _ = patterns[0].columns

    def products() -> None:
        m = z @ u + x @ w
        for block in problem.parts[0].data.source.blocks():
            part = m[block.at]
            eta = part @ w.T
            eta.T @ part
            eta @ w
        z.T @ m, x.T @ m, m @ u.T

    times = [(cpu(lambda: problem.value_and_gradient(at)), cpu(products)) for _ in range(ROUNDS)]
    ours, theirs = np.median(times, axis=0)
    return f"one evaluation {ours:.3f} s of CPU time, its products {theirs:.3f} s: {ours / theirs:.2f} times"


def memory(n: int) -> str:
    """The peak of a fit of a few iterations over the size of the data."""
    warnings.simplefilter("ignore")
    X = views_of(n)
    bits = X["bits"]
    data = bits.data.nbytes + bits.indices.nbytes + bits.indptr.nbytes + X["columns"].nbytes
    tracemalloc.start()
    mj.Harmonium(K, views=VIEWS, l2=1.0, max_iter=3).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return f"data {data / 2**20:.0f} MB, fit {peak / 2**20:.0f} MB beyond them: {peak / data:.2f} times"


FACTORS, MOST_FACTORS, ROWS, WIDTHS = 5, 10, 500, (100, 60)


def _beside_mofa(seed: int, peer: Callable[[list[Any]], Any]) -> tuple[float, float, float, float]:
    """CPU times, ours first, and held-out log-likelihoods a row."""
    g = np.random.default_rng(seed)
    h = g.normal(size=(2 * ROWS, FACTORS))
    views = [h @ g.normal(size=(FACTORS, p)) * 0.5 + g.normal(size=(2 * ROWS, p)) for p in WIDTHS]
    views = [(v - v[:ROWS].mean(axis=0)) / v[:ROWS].std(axis=0) for v in views]
    train, test = [v[:ROWS] for v in views], [v[ROWS:] for v in views]
    kinds = {name: mj.Gaussian(whiten=False) for name in "ab"}
    model, covariances = mj.Harmonium(MOST_FACTORS, views=kinds), []
    ours = cpu(lambda: model.fit(dict(zip("ab", train, strict=True))))
    theirs = cpu(lambda: covariances.append(peer(train)))
    likelihood = stats.multivariate_normal(cov=covariances[0]).logpdf(np.hstack(test)).mean()
    return ours, theirs, model.score(dict(zip("ab", test, strict=True))), float(likelihood)


def mofa(_: int) -> str:
    """CPU time and held-out log-likelihood of factor analysis of two views, interleaved with MOFA's."""
    try:
        from mofapy2.run.entry_point import entry_point
    except ImportError:
        return "mofa: mofapy2 is not installed (pip install mofapy2)"

    def peer(views: list[Any]) -> Any:
        with contextlib.redirect_stdout(io.StringIO()):
            entry = entry_point()
            entry.set_data_options(scale_views=False)
            entry.set_data_matrix([[v] for v in views])
            entry.set_model_options(factors=MOST_FACTORS)
            entry.set_train_options(convergence_mode="fast", seed=1)
            entry.build()
            entry.run()
        found = entry.model.getExpectations()
        w = np.vstack([w["E"] if isinstance(w, dict) else w for w in found["W"]])
        noise = np.concatenate([1 / np.asarray(t["E"] if isinstance(t, dict) else t)[0] for t in found["Tau"]])
        return w @ w.T + np.diag(noise)

    rows = [_beside_mofa(seed, peer) for seed in range(ROUNDS)]
    ours, theirs, held, peers = np.median(rows, axis=0)
    return (
        f"mofa: ours {ours:.2f} s of CPU time, mofapy2 {theirs:.2f} s: {theirs / ours:.1f} times as long; "
        f"held-out log-likelihood a row {held:.2f} and {peers:.2f}"
    )


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=50_000)
    parser.add_argument("--only", choices=["iteration", "memory", "mofa"])
    arguments = parser.parse_args()
    for part in (iteration, memory, mofa):
        if arguments.only in (None, part.__name__):
            print(part(arguments.n), flush=True)


if __name__ == "__main__":
    main()
