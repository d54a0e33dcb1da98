"""Every kernel under every instruction set, and of several builds side by side: CPU time on one thread, medians.

    python benchmarks/kernels.py [LIBRARY ...] [--repeats 7] [--isas v3,v4]

A LIBRARY is a built `_kernels` module, by default the one that is installed. Told are milliseconds of the first column and
what each other one takes of them: the source of the choice in CMakeLists.txt of what is compiled for which set.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
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

            def case(
                x: Array = x,
                centres: Array = centres,
                sums: Array = sums,
                labels: Array = labels,
                nearest: Array = nearest,
            ) -> None:
                kernels.assign(x, None, centres, sums, labels, nearest)

            yield f"assign {at}", case
            yield f"moments {at}", lambda x=x, c=centres, z=labels, s=sums: kernels.moments(x, None, c, z, s)
            yield f"distances {at}", lambda x=x, c=centres, t=table: kernels.distances(x, c, t)
            yield f"row_minimum {at}", lambda t=table, m=least, a=argument: kernels.row_minimum(t, m, a)
            drawing = table, w, least, argument, 0.2, uniforms, z
            yield f"draw {at}", lambda a=drawing: kernels.draw(*a)
            walking = table, None, least, 30.0, sites, picks, argument
            yield f"walk {at}", lambda a=walking: kernels.walk(*a)
            yield f"collect {at}", lambda x=x, w=w, z=labels, c=collected: kernels.collect(x, w, z, c)
            yield f"sort_rows {at}", lambda x=x, o=order, i=is_new: kernels.sort_rows(x, o, i)
            yield (
                f"standard_rows {at}",
                lambda x=x, o=order, s=shift, t=out: kernels.standard_rows(x, o, 1.5, s, t),
            )
            yield f"plus_plus {at}", lambda x=x, u=candidates, c=chosen: kernels.plus_plus(x, None, u, c)


def swap_cases(kernels: Any) -> Cases:
    """Searches by swaps of centres."""
    random = np.random.default_rng(1)
    for name, dtype in DTYPES.items():
        for n, d, k in ((3_000, 1, 10), (3_000, 2, 30), (3_000, 3, 30), (2_000, 9, 20), (1_000, 40, 20)):
            x = (random.normal(size=(n, d)) + 4 * random.normal(size=(k, d))[random.integers(0, k, n)]).astype(dtype)

            def search(x: Array = x, w: Array = np.ones(n), k: int = k) -> None:
                found = kernels.swap_search(x, w, k, 3)
                found.seed()
                found.descend(10, 1e-3)
                found.rounds(20, 100)
                found.single_moves(3)
                found.kick(2)
                found.polish(5)

            yield f"swap {name} d={d} k={k}", search


def gauss_cases(kernels: Any) -> Cases:
    """Gaussian mixtures."""
    from majorant.solvers.gaussian import COVARIANCE_TYPES, m_step, moments

    random = np.random.default_rng(2)
    for name, dtype in DTYPES.items():
        for n, d, k in ((10_000, 2, 4), (4_000, 10, 10)):
            x = (random.normal(size=(n, d)) + 3 * random.normal(size=(k, d))[random.integers(0, k, n)]).astype(dtype)
            for code, kind in enumerate(COVARIANCE_TYPES):
                start, at = np.zeros((k, d)), f"{name} {kind} d={d} k={k}"
                q = random.dirichlet(np.ones(k), n)
                mixture = m_step(moments(x.astype(float), None, q, start, kind), None, start, kind, 0.0).mixture
                size = {"full": d * d, "tied": 0, "diag": d, "spherical": 1}[kind]
                sums = np.empty(
                    (k, 1 + d + {"full": d * (d + 1) // 2, "tied": d * (d + 1) // 2, "diag": d, "spherical": 1}[kind])
                )
                factors = np.empty(np.asarray(mixture.covariances).size)
                covariances = np.ascontiguousarray(mixture.covariances, dtype=float).ravel()
                constants = np.empty(k)
                assert kernels.gauss_factor(covariances, d, code, factors, constants) == -1 and size >= 0
                offsets = constants - np.log(mixture.weights)
                given = x, None, np.ascontiguousarray(mixture.means), factors, offsets, code, 1.0, sums
                yield f"gauss_pass {at}", lambda a=given: kernels.gauss_pass(*a)
                stepping = covariances.copy(), mixture.means.copy(), mixture.weights.copy(), factors.copy()
                floored, reference = np.empty(k, np.uint8), np.ascontiguousarray(mixture.means)

                def step(
                    s: Any = stepping, sums: Array = sums, r: Array = reference, c: int = code, f: Array = floored
                ) -> None:
                    covariances, means, weights, factors = s
                    kernels.gauss_step(sums, r, c, 1e-9, False, weights, means, covariances, factors, np.empty(len(r)), f)

                yield f"gauss_step {at}", step


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
            yield f"regression_pass {at}", lambda a=one: kernels.regression_pass(*a)

            def em(x: Array = x, y: Array = y, w: Array = w, s: Any = (weights, coef, variances)) -> None:
                kernels.regression_em(x, y, w, 100.0, 1e-9, False, 10, 0.0, *(part.copy() for part in s))

            yield f"regression_em {at}", em
            drawn = g.choice(n, p + 1, replace=False)
            yield (
                f"concentrate {at}",
                lambda x=x, y=y, w=w, d=drawn, p=p: kernels.regression_concentrate(
                    x, y, w, None, d, 0.4 * w.sum(), 5, np.empty(p)
                ),
            )
            theta, blocks = g.normal(size=(p + 1, k)), np.empty((k * (k - 1) // 2, (p + 1) ** 2))
            soft = x, w, theta, None, np.empty((p + 1, k)), blocks, np.empty((n, k))
            yield f"softmax_pass {at}", lambda a=soft: kernels.softmax_pass(*a)


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
            "cover": lambda x=x, h=heights: kernels.cover_search(x, h, np.full(200, 1.0), 1e-6),
            "bumps": lambda x=x, h=heights: kernels.bump_search(x, h, 1e-6),
            "lines": lambda z=z, y=y, h=heights, e=empty: kernels.line_search(z, y, h, *e, 1e-6),
        }
        for name, search in searches.items():
            yield f"{name} d={d}", lambda search=search: search().advance(3_000_000)


def chain_cases(kernels: Any) -> Cases:
    """Linear chains."""
    random = np.random.default_rng(5)
    for states in (2, 6):
        n, length = 500, 10
        unary, transitions = random.normal(size=(n * length, states)), random.normal(size=(n, states, states))
        table, offsets = np.repeat(np.arange(n, dtype=np.int32), length), np.arange(0, n * length + 1, length)
        scores = unary, transitions, offsets, table
        out = np.empty(n), np.empty(n), np.empty_like(unary), np.zeros_like(transitions)
        yield f"chain_sums states={states}", lambda a=scores, o=out: kernels.chain_sums(*a, None, *o)
        best = np.empty(n * length, np.int32), np.empty(n)
        yield f"chain_best states={states}", lambda a=scores, o=best: kernels.chain_best(*a, *o)


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
                scored = 0, n, w, np.empty((n, classes)), np.empty((n, classes), np.int32), np.empty((n, 30))
                yield f"bag_scores {at}", lambda of=of, a=scored: of.scores(*a)
                pooled = 0, n, w, shares, cost, 1.0, 8.0, np.empty_like(w)
                yield f"bag_pooled {at}", lambda of=of, a=pooled: of.pooled(*a)
                yield f"bag_sweep {at}", lambda of=of, w=w, s=shares, c=cost: of.sweep(
                    s, c, 2.0, None, None, True, 5, np.arange(n), *_planes(n), w.copy()
                )
            regions, parts = 9, 8
            of = kernels.grids(
                random.normal(size=(n * regions, d)).astype(dtype), np.arange(n) * regions, regions, codes, classes, parts, 1.0
            )
            w = random.normal(size=parts * (d + classes * regions))
            at = f"{name} d={d} classes={classes}"
            found = np.empty((n, classes)), np.empty(n, np.int32), np.empty((n, regions), np.int32)
            yield f"grid_infer {at}", lambda of=of, w=w, c=cost, o=found: of.infer(0, n, w, c, False, *o)
            pooled = 0, n, w, shares, cost, 1.0, 8.0, np.empty_like(w)
            yield f"grid_pooled {at}", lambda of=of, a=pooled: of.pooled(*a)
            yield f"grid_sweep {at}", lambda of=of, w=w, s=shares, c=cost: of.sweep(
                s, c, 2.0, None, None, True, 5, np.arange(n), *_planes(n, regions), w.copy()
            )


def _planes(n: int, *length: int) -> tuple[Array, ...]:
    """Room for six planes a sample."""
    return np.zeros((n, 6), np.int32), np.zeros((n, 6, *length), np.int32), np.zeros((n, 6)), np.zeros(n, np.int32)


FAMILIES = [rows_cases, swap_cases, gauss_cases, regression_cases, box_cases, chain_cases, planes_cases]


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
        done = subprocess.run(command, env=os.environ | threads | {"MAJORANT_ISA": isa}, stdout=subprocess.PIPE, check=True)
        found.append(json.loads(done.stdout))
    print(f"{'ms of CPU, then ratios':48}", *(f"{isa:>9}" for _, isa in columns))
    for name in found[0]:
        first = found[0][name]
        print(f"{name:48} {first:9.3f}", *(f"{other[name] / first:9.2f}" for other in found[1:]))
    print(*(f"{Path(path).parent} {isa}" for path, isa in columns), sep="\n")


if __name__ == "__main__":
    main()
