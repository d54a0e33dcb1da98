"""Every kernel under every instruction set, and of several builds side by side: CPU time on one thread, medians.

    python benchmarks/kernels.py [LIBRARY ...] [--repeats 7] [--isas v3,v4]

A LIBRARY is a built `_kernels` module, by default the one that is installed. Told are milliseconds of the first column,
then ratios to it: what CMakeLists.txt compiles for which set was chosen by them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Cases = Iterator[tuple[str, Callable[[], Any]]]
DTYPES = {"f64": np.float64, "f32": np.float32}


def library(path: str) -> Any:
    """A built module of kernels."""
    spec = spec_from_file_location("majorant._kernels", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules["majorant._kernels"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows_cases(kernels: Any) -> Cases:
    """What k-means and the engine's passes call."""
    random = np.random.default_rng(0)
    for name, dtype in DTYPES.items():
        for n, d, k in ((20_000, 2, 15), (10_000, 10, 10), (3_000, 64, 50)):
            x, centres = random.normal(size=(n, d)).astype(dtype), random.normal(size=(k, d)).astype(dtype)
            labels, nearest = np.full(n, -1, np.int32), np.empty(n, dtype)
            sums, table, at = np.empty((k, d + 2)), np.empty((n, k), dtype), f"{name} d={d} k={k}"
            least, argument = np.empty(n, dtype), np.empty(n, np.int32)
            kernels.assign(x, None, centres, sums, labels, nearest)
            kernels.distances(x, centres, table)
            kernels.row_minimum(table, least, argument)
            uniforms, z, w = random.random(n), np.empty(n, np.int32), random.random(n)
            sites = random.integers(0, n, 20_000)
            picks, collected = random.random(20_000), np.empty((k, d))
            chosen, order, is_new = np.empty(k, np.int64), np.empty(n, np.int64), np.empty(n, np.uint8)
            out, shift, candidates = np.empty_like(x), np.zeros(d), random.random((k, 3))

            drawing = table, w, least, argument, 0.2, uniforms, z
            yield f"assign {at}", partial(kernels.assign, x, None, centres, sums, labels, nearest)
            yield f"moments {at}", partial(kernels.moments, x, None, centres, labels, sums)
            yield f"distances {at}", partial(kernels.distances, x, centres, table)
            yield f"row_minimum {at}", partial(kernels.row_minimum, table, least, argument)
            yield f"draw {at}", partial(kernels.draw, *drawing)
            yield f"walk {at}", partial(kernels.walk, table, None, least, 30.0, sites, picks, argument)
            yield f"collect {at}", partial(kernels.collect, x, w, z, collected)
            yield f"sort_rows {at}", partial(kernels.sort_rows, x, order, is_new)
            yield f"standard_rows {at}", partial(kernels.standard_rows, x, order, 1.5, shift, out)
            yield f"plus_plus {at}", partial(kernels.plus_plus, x, None, candidates, chosen)


def swap_cases(kernels: Any) -> Cases:
    """Searches by swaps of centres."""
    random = np.random.default_rng(1)
    for name, dtype in DTYPES.items():
        for n, d, k in ((3_000, 1, 10), (3_000, 2, 30), (3_000, 3, 30), (2_000, 9, 20), (1_000, 40, 20)):
            x = (random.normal(size=(n, d)) + 4 * random.normal(size=(k, d))[random.integers(0, k, n)]).astype(dtype)

            yield f"swap {name} d={d} k={k}", partial(_search, kernels, x, k)


def _search(kernels: Any, x: Array, k: int) -> None:
    found = kernels.swap_search(x, np.ones(len(x)), k, 3)
    found.seed()
    found.descend(10, 1e-3)
    found.rounds(20, 100)
    found.single_moves(3)
    found.kick(2)
    found.polish(5)


def gauss_cases(kernels: Any) -> Cases:
    """Gaussian mixtures."""
    from majorant.solvers.covariance_types import COVARIANCE_TYPES
    from majorant.solvers.gaussian_em import run_batch

    random = np.random.default_rng(2)
    for name, dtype in DTYPES.items():
        for n, d, k in ((10_000, 2, 4), (4_000, 10, 10)):
            x = (random.normal(size=(n, d)) + 3 * random.normal(size=(k, d))[random.integers(0, k, n)]).astype(dtype)
            for code, kind in enumerate(COVARIANCE_TYPES):
                at, q = f"{name} {kind} d={d} k={k}", random.dirichlet(np.ones(k), n)
                weights, centres, spreads = (own[0] for own in run_batch(x, None, q[None], kind, 1e-9, 0)[:3])
                second = {"full": d * (d + 1) // 2, "tied": d * (d + 1) // 2, "diag": d, "spherical": 1}[kind]
                sums, constants, floored = np.empty((k, 1 + d + second)), np.empty(k), np.empty(k, np.uint8)
                covariances = np.ascontiguousarray(spreads).ravel()
                factors, means = np.empty(covariances.size), np.ascontiguousarray(centres)
                assert kernels.gauss_factor(covariances, d, code, factors, constants) == -1
                offsets = constants - np.log(weights)
                given = x, None, means, factors, offsets, code, 1.0, sums
                out = weights.copy(), means.copy(), covariances.copy(), factors.copy(), np.empty(k), floored
                yield f"gauss_pass {at}", partial(kernels.gauss_pass, *given)
                yield f"gauss_step {at}", partial(kernels.gauss_step, sums, means, code, 1e-9, False, *out)


def regression_cases(kernels: Any) -> Cases:
    """Mixtures of regressions, and multinomial logits."""
    g = np.random.default_rng(3)
    for name, dtype in DTYPES.items():
        for n, p, k in ((5_000, 2, 3), (3_000, 8, 4)):
            x, coef = g.normal(size=(n, p)).astype(dtype), g.normal(size=(k, p))
            y = (np.sum(x * coef[g.integers(k, size=n)], axis=1) + 0.3 * g.normal(size=n)).astype(dtype)
            w, at = g.gamma(1.0, size=n), f"{name} p={p} k={k}"
            weights, variances = np.full(k, 1 / k), np.full(k, 0.3)
            statistics = np.empty((k, 2 + p + p * (p + 1) // 2))
            one = x, y, w, weights, coef, variances, 1.0, statistics
            yield f"regression_pass {at}", partial(kernels.regression_pass, *one)
            yield f"regression_em {at}", partial(_em, kernels, x, y, w, weights, coef, variances)
            drawn, line = g.choice(n, p + 1, replace=False), np.empty(p)
            trimmed = x, y, w, None, drawn, 0.4 * w.sum(), 5, line
            yield f"concentrate {at}", partial(kernels.regression_concentrate, *trimmed)
            theta, blocks = g.normal(size=(p + 1, k)), np.empty((k * (k - 1) // 2, (p + 1) ** 2))
            soft = x, w, theta, None, np.empty((p + 1, k)), blocks, np.empty((n, k))
            yield f"softmax_pass {at}", partial(kernels.softmax_pass, *soft)
            if dtype is np.float64:
                tables, log_sums = g.normal(size=(2, 1, k, n)), np.empty((1, n))
                sums = np.empty((1, k + (k - 1) * p + k * (k - 1) // 2 * (p * (p + 1) // 2)))
                gate = x.T.copy(), w[None], 1.0, coef[None], tables[0], tables[1], log_sums, sums
                yield f"gate_pass {at}", partial(kernels.gate_pass, *gate)


def _em(kernels: Any, x: Array, y: Array, w: Array, *start: Array) -> None:
    kernels.regression_em(x, y, w, 100.0, 1e-9, False, 10, 0.0, *(part.copy() for part in start))


def box_cases(kernels: Any) -> Cases:
    """Branch and bound."""
    random = np.random.default_rng(4)
    for d in (2, 4):
        x, heights = random.normal(size=(200, d)) * 2, random.uniform(0, 1, 200)
        z, _ = np.linalg.qr(np.column_stack([np.ones(200), random.normal(size=(200, d - 1))]))
        z = np.ascontiguousarray(z * np.sqrt(200))
        y = 3 * random.normal(size=200)
        empty = np.empty((0, 200), np.int32), np.empty((0, 200))
        searches = {
            "cover": partial(kernels.cover_search, x, heights, np.full(200, 1.0), 1e-6),
            "bumps": partial(kernels.bump_search, x, heights, 1e-6),
            "lines": partial(kernels.line_search, z, y, heights, *empty, 1e-6),
        }
        for name, search in searches.items():
            yield f"{name} d={d}", partial(_advance, search)


def _advance(search: Callable[[], Any]) -> None:
    search().advance(3_000_000)


def chain_cases(kernels: Any) -> Cases:
    """Linear chains."""
    random = np.random.default_rng(5)
    for states in (2, 6):
        n, length = 500, 10
        unary, transitions = random.normal(size=(n * length, states)), random.normal(size=(n, states, states))
        table, offsets = np.repeat(np.arange(n, dtype=np.int32), length), np.arange(0, n * length + 1, length)
        scores = unary, transitions, offsets, table
        out = np.empty(n), np.empty(n), np.empty_like(unary), np.zeros_like(transitions)
        yield f"chain_sums states={states}", partial(kernels.chain_sums, *scores, None, *out)
        best = np.empty(n * length, np.int32), np.empty(n)
        yield f"chain_best states={states}", partial(kernels.chain_best, *scores, *best)


def planes_cases(kernels: Any) -> Cases:
    """Latent support vector machines: bags and grids."""
    random = np.random.default_rng(6)
    for name, dtype in DTYPES.items():
        for d, classes in ((20, 3), (200, 12)):
            n = 100
            counts = random.integers(5, 30, n)
            starts, codes = np.cumsum(counts) - counts, random.integers(0, classes, n).astype(np.int32)
            x = random.normal(size=(int(counts.sum()), d)).astype(dtype)
            entries = np.flatnonzero(random.random(x.size) < 0.1)
            edges = np.searchsorted(entries, np.arange(len(x) + 1) * d)
            forms = {
                "dense": (x, None, None),
                "csr": (x.ravel()[entries][None], edges, (entries % d).astype(np.int32)),
            }
            shares, cost = np.full(n, 1 / n), 1.0 - np.eye(classes)
            w = random.normal(size=(classes, d + 1))
            for form, given in forms.items():
                of = kernels.bags(*given, d, 1.0, starts, counts, codes, classes, 0)
                at = f"{name} {form} d={d} classes={classes}"
                found = np.empty((n, classes)), np.empty((n, classes), np.int32), np.empty((n, 30))
                yield f"bag_scores {at}", partial(of.scores, 0, n, w, *found)
                yield f"bag_pooled {at}", partial(of.pooled, 0, n, w, shares, cost, 1.0, 8.0, np.empty_like(w))
                yield f"bag_sweep {at}", partial(_sweep, of, shares, cost, w)
            regions, parts = 9, 8
            x = random.normal(size=(n * regions, d)).astype(dtype)
            of = kernels.grids(x, np.arange(n) * regions, regions, codes, classes, parts, 1.0)
            w = random.normal(size=parts * (d + classes * regions))
            at = f"{name} d={d} classes={classes}"
            found = np.empty((n, classes)), np.empty(n, np.int32), np.empty((n, regions), np.int32)
            yield f"grid_infer {at}", partial(of.infer, 0, n, w, cost, False, *found)
            yield f"grid_pooled {at}", partial(of.pooled, 0, n, w, shares, cost, 1.0, 8.0, np.empty_like(w))
            yield f"grid_sweep {at}", partial(_sweep, of, shares, cost, w, regions)


def _sweep(of: Any, shares: Array, cost: Array, w: Array, *length: int) -> None:
    """Steps from no planes, six at most a sample."""
    n = len(shares)
    planes = np.zeros((n, 6), np.int32), np.zeros((n, 6, *length), np.int32), np.zeros((n, 6)), np.zeros(n, np.int32)
    of.sweep(shares, cost, 2.0, None, None, True, 5, np.arange(n), *planes, w.copy())


def answer_cases(kernels: Any) -> Cases:
    """Regressions of every family, and categorical items."""
    random, n = np.random.default_rng(7), 3_000
    columns, y, trials = random.normal(size=(4, n)), random.poisson(3, n) + 1.0, np.full(n, 20.0)
    models = 0.1 * random.normal(size=(3, 4)), np.full(3, 0.7)
    q, sums, out = random.random((3, n)), np.empty((3, 16)), np.empty((3, n))
    for family, name in enumerate(("gaussian", "student", "poisson", "binomial", "gamma")):
        given = family, 4.0, columns, y, None, trials, *models
        yield f"response_losses {name}", partial(kernels.response_losses, *given, out)
        yield f"response_sums {name}", partial(kernels.response_sums, *given, q, sums)
    codes = (random.integers(0, 4, (n, 10)) + 4 * np.arange(10)).astype(np.int32)
    for k in (3, 8, 20):
        start = np.full(k, 1 / k), random.dirichlet(np.ones(4), (k, 10)).reshape(k, 40)
        yield f"category_em k={k}", partial(_item_em, kernels, codes, *start)


def _item_em(kernels: Any, codes: Array, *start: Array) -> None:
    kernels.category_em(codes, 4 * np.arange(11), None, 0.0, *(part.copy() for part in start), np.empty(15))


FAMILIES = [rows_cases, swap_cases, gauss_cases, regression_cases, box_cases, chain_cases, planes_cases, answer_cases]


def measure(path: str, repeats: int) -> dict[str, float]:
    """Milliseconds of CPU by case; short ones are repeated within a measurement."""
    kernels, found = library(path), {}
    for family in FAMILIES:
        for name, case in family(kernels):
            case()
            begin = time.process_time()
            case()
            many = max(1, int(0.01 / max(time.process_time() - begin, 1e-6)))
            times = []
            for _ in range(repeats):
                begin = time.process_time()
                for _ in range(many):
                    case()
                times.append((time.process_time() - begin) / many)
            found[name] = 1e3 * (median(times) if repeats < 5 else sorted(times)[repeats // 4])
    return found


def main() -> None:
    installed = find_spec("majorant._kernels")
    assert installed is not None and installed.origin is not None
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", nargs="*", default=[installed.origin])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--isas", default="v4,v3,baseline")
    parser.add_argument("--here", action="store_true", help="measure in this process and print JSON")
    chosen = parser.parse_args()
    if chosen.here:
        print(json.dumps(measure(chosen.libraries[0], chosen.repeats)))
        return
    columns = [(path, isa) for path in chosen.libraries for isa in chosen.isas.split(",")]
    found = []
    for path, isa in columns:
        command = [sys.executable, __file__, path, "--here", "--repeats", str(chosen.repeats)]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        done = subprocess.run(
            command, env=os.environ | threads | {"MAJORANT_ISA": isa}, stdout=subprocess.PIPE, check=True
        )
        found.append(json.loads(done.stdout))
    print(f"{'ms of CPU, then ratios':48}", *(f"{isa:>9}" for _, isa in columns))
    for name in found[0]:
        first = found[0][name]
        print(f"{name:48} {first:9.3f}", *(f"{other[name] / first:9.2f}" for other in found[1:]))
    print(*(f"{Path(path).parent} {isa}" for path, isa in columns), sep="\n")


if __name__ == "__main__":
    main()
