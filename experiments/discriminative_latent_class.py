"""Discriminative latent classes and clusters: the figures of the paper, with other starts and peers beside.

A. Joulin, F. Bach, J. Ponce, "Efficient optimization for discriminative latent class models", NIPS 2010. It shows
curves without numbers, so that its order stands beside ours, in its words.

    python experiments/discriminative_latent_class.py                all parts, 10 problems a cell (some hours)
    python experiments/discriminative_latent_class.py --quick        small versions of all parts: what CI runs
    python experiments/discriminative_latent_class.py --only noise   one part: roundings, noise, scan, shapes, sdp, text
    ... --problems 50                                                as many problems a cell as in the paper
    ... --journal FILE --resume --cells WORD ... --jobs 2            in pieces (see cells.py)

The texts and their classifiers are in newsgroups.py. Every line is a mean over problems, told on stderr as it comes.
"error" is the share of rows in a wrong cluster when clusters are matched with groups as well as can be; "information"
the share that the fit's objective is of the most possible (`information_`).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from cells import Cells, add_arguments
from newsgroups import CLASSIFIERS, FILE, PAIRS, classified
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.mixture import GaussianMixture

import majorant as mj
from majorant.starts import (
    QuadraticApproximation,
    ball_relaxation,
    low_rank_simplex_program,
    principal_axes,
    random_assignments,
)

Numbers = NDArray[np.float64]
Labels = NDArray[np.intp]

DATA = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"

ALPHA = 1e-2
"""The penalty of the paper."""


@dataclass(frozen=True)
class Size:
    """How much is done: problems a cell, splits of the texts, rows as a share of the paper's, dimensions of noise."""

    problems: int
    splits: int
    share: float
    noises: tuple[int, ...]
    methods: tuple[str, ...] = ()
    cells: Cells = field(default_factory=Cells)
    data: Path = DATA

    def chosen(self, names: Iterable[str]) -> list[str]:
        """Methods whose names hold one of the texts that were asked for."""
        return [name for name in names if not self.methods or any(text in name for text in self.methods)]


FULL = Size(10, 1, 1.0, (0, 10, 30))
QUICK = Size(1, 1, 0.3, (5,))


@dataclass(frozen=True)
class Line:
    """One line of a table: numbers by their heading."""

    part: str
    cell: str
    method: str
    numbers: dict[str, float]


# Problems


def bumps(shape: str, k: int, n: int, noise: int, seed: int) -> tuple[Numbers, Labels]:
    """Groups that lines can tell apart, in two dimensions, beside dimensions of unit noise.

    "round": unit normal groups on a circle, neighbours 8 apart. "long": of length 20, two side by side or five in a
    star, 6 apart where they are closest. "stripes": of length 20, all side by side, 8 apart.
    """
    random = np.random.default_rng((seed, k, noise, len(shape)))
    y = np.arange(n) % k
    across, along = random.normal(size=n), random.uniform(-10, 10, n)
    angle = 2 * np.pi * y / k
    if shape == "round":
        radius = 4 / np.sin(np.pi / k)
        x = radius * np.column_stack([np.cos(angle), np.sin(angle)]) + random.normal(size=(n, 2))
    elif shape == "stripes" or k == 2:
        x = np.column_stack([(8.0 if k > 2 else 6.0) * y + across, along])
    else:
        outward = 3 / np.sin(np.pi / k) + along + 10
        x = outward[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        x += across[:, None] * np.column_stack([-np.sin(angle), np.cos(angle)])
    return np.column_stack([x, random.normal(size=(n, noise))]), y


def circles(n: int, seed: int) -> tuple[Numbers, Labels]:
    """A ring inside a ring."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % 2
    radius, angle = 1 + 2 * y + 0.15 * random.normal(size=n), random.uniform(0, 2 * np.pi, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def error(found: Labels, y: Labels) -> float:
    """Share of rows in a wrong cluster, clusters matched with groups as well as can be."""
    k = int(max(found.max(), y.max())) + 1
    table = np.bincount(found * k + y, minlength=k * k).reshape(k, k)
    rows, columns = linear_sum_assignment(-table)
    return 1.0 - float(table[rows, columns].sum()) / len(y)


def standardised(x: Numbers) -> Numbers:
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0))


def clustering(k: int, **parameters: Any) -> mj.DiscriminativeClustering:
    return mj.DiscriminativeClustering(k, **{"alpha": ALPHA, "random_state": 0, **parameters})


def approximation(x: Numbers) -> QuadraticApproximation:
    shares = np.full(len(x), 1 / len(x))
    return QuadraticApproximation.of(principal_axes(x, shares), ALPHA, shares)


def softer(xi: Numbers) -> Numbers:
    """A vertex would absorb EM."""
    return 0.9 * xi + 0.1 / xi.shape[1]


Results = dict[str, dict[str, float]]
"""Numbers by method."""

Tasks = dict[tuple[str, str], Callable[[], Results]]
"""What is to be computed: by cell of the table, and by what tells its problems and methods apart."""


def lines(part: str, size: Size, tasks: Tasks) -> Iterator[Line]:
    """One line a cell and method: the mean of every number over problems."""
    found = size.cells({f"{part}, {cell}, {which}": task for (cell, which), task in tasks.items()})
    results: dict[str, list[Results]] = {}
    for cell, which in tasks:
        if f"{part}, {cell}, {which}" in found:
            results.setdefault(cell, []).append(found[f"{part}, {cell}, {which}"])
    for cell, own in results.items():
        yield from means(part, cell, own)


def means(part: str, cell: str, results: Sequence[Results]) -> Iterator[Line]:
    for method in dict.fromkeys(method for one in results for method in one):
        own = [one[method] for one in results if method in one]
        line = Line(part, cell, method, {name: float(np.mean([o[name] for o in own])) for name in own[0]})
        print(part, cell, method, *(_written(v) for v in line.numbers.values()), sep="\t", file=sys.stderr, flush=True)
        yield line


# Figure 1


def roundings(size: Size) -> Iterator[Line]:
    """Figure 1: columns of the program joint or independent, rounded by the best or by their average, then EM.

    The paper: joint above independent; the best column ahead for K < 5, the average for K = 5.
    """
    tasks: Tasks = {}
    for k, noise, seed in product((2, 3, 5), size.noises, range(size.problems)):
        for coupling in ("joint", "independent"):
            which = f"{coupling}, problem {seed}"
            tasks[f"K = {k}, {noise} noise", which] = partial(rounded, k, int(100 * size.share), noise, seed, coupling)
    return lines("roundings", size, tasks)


def rounded(k: int, n: int, noise: int, seed: int, coupling: Any) -> Results:
    x, y = bumps("round", k, n, noise, seed)
    near = approximation(x)
    start = random_assignments(5, n, k, np.random.default_rng(seed))
    found = low_rank_simplex_program(near.apply, start, coupling=coupling)
    own: Results = {}
    for rounding, xi in (("best column", found.best()), ("average", found.average())):
        fit = clustering(k, init=softer(xi)).fit(x)
        own[f"{coupling}, {rounding}"] = {"error": error(fit.labels_, y), "cost": near.quadratic(xi)}
    return own


# Figure 3


def noise(size: Size) -> Iterator[Line]:
    """Figure 3, with elongated groups and stripes as well: error by dimensions of noise.

    The paper, round groups: its relaxation significantly ahead of DIFFRAC, k-means and max-margin clustering.
    """
    return lines("noise", size, on_bumps(size, {name: METHODS[name] for name in size.chosen(METHODS)}))


Method = Callable[[Numbers, Labels, int], dict[str, float]]
GROUPS = (("round", 2), ("long", 2), ("round", 5), ("long", 5), ("stripes", 5))


def on_bumps(size: Size, methods: dict[str, Method]) -> Tasks:
    """Every method on every problem of every cell."""
    return {
        (f"{shape}, K = {k}, {noise} noise", f"{name}, problem {seed}"): partial(
            on_bump, shape, k, int({2: 100, 5: 250}[k] * size.share), noise, seed, name, method
        )
        for (shape, k), noise, seed, (name, method) in product(
            GROUPS, size.noises, range(size.problems), methods.items()
        )
    }


def on_bump(shape: str, k: int, n: int, noise: int, seed: int, name: str, method: Method) -> Results:
    return {name: method(*bumps(shape, k, n, noise, seed), k)}


def scan(size: Size) -> Iterator[Line]:
    """How the error depends on lambda, and on the units it is in: those of the rows, or standardised columns.

    The paper: results do not change much as long as lambda is not too small (above 1e-8); it does not say in which
    units.
    """
    methods: dict[str, Method] = {}
    alphas = (1.0, 0.1, 0.01) if size.share == 1 else (1.0,)
    for is_standard in (False, True):
        units = "standardised" if is_standard else "raw"
        for alpha in alphas:
            for name, init in (("auto", "auto"), ("relaxation", "relaxation"), ("random, 10 starts", "random")):
                methods[f"{name}, lambda {alpha:g}, {units}"] = in_units(ours(init=init, alpha=alpha), is_standard)
        methods[f"k-means, {units}"] = in_units(METHODS["k-means"], is_standard)
    return lines("scan", size, on_bumps(size, {name: methods[name] for name in size.chosen(methods)}))


def in_units(method: Method, is_standard: bool) -> Method:
    return lambda x, y, k: method(standardised(x) if is_standard else x, y, k)


def ours(**parameters: Any) -> Method:
    def run(x: Numbers, y: Labels, k: int) -> dict[str, float]:
        began = time.process_time()
        given = {"init": y} if parameters.get("init") == "truth" else {}
        fit = clustering(k, **{**parameters, **given}).fit(x)
        spent = time.process_time() - began
        return {
            "error": error(fit.labels_, y),
            "information": fit.information_,
            "bound": fit.certify(x).bound,
            "CPU s": spent,
        }

    return run


def peer(make: Callable[[int], Any]) -> Method:
    def run(x: Numbers, y: Labels, k: int) -> dict[str, float]:
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = np.asarray(make(k).fit_predict(x), dtype=np.intp)
        numbers = {"error": error(found, y), "information": np.nan, "bound": np.nan}
        return {**numbers, "CPU s": time.process_time() - began}

    return run


class BallAlone:
    """The convex relaxation of DIFFRAC without its constraint on sizes, rounded by k-means; no EM after it."""

    def __init__(self, k: int) -> None:
        self.k = k

    def fit_predict(self, x: Numbers) -> Labels:
        z = ball_relaxation(approximation(x).apply, len(x), np.random.default_rng(0))
        return np.asarray(KMeans(self.k, n_init=10, random_state=0).fit_predict(z), dtype=np.intp)


METHODS: dict[str, Method] = {
    "auto": ours(),
    "ball": ours(init="ball"),
    "relaxation (the paper's)": ours(init="relaxation"),
    "independent relaxations": ours(init="independent-relaxations"),
    "random, 10 starts": ours(init="random"),
    "EM from the truth": ours(init="truth"),
    "ball and k-means, no EM": peer(BallAlone),
    "k-means": peer(lambda k: KMeans(k, n_init=10, random_state=0)),
    "Gaussian mixture": peer(lambda k: GaussianMixture(k, n_init=10, random_state=0, reg_covar=1e-3)),
    "spectral clustering": peer(lambda k: SpectralClustering(k, affinity="nearest_neighbors", random_state=0)),
}


# Figure 4


def shapes(size: Size) -> Iterator[Line]:
    """Figure 4: circles and bumps with the RBF kernel, beside k-means. The paper: both found, k-means fails."""
    n = int(200 * size.share)
    problems: dict[str, Callable[[int], tuple[Numbers, Labels]]] = {
        "circles": lambda seed: circles(n, seed),
        "bumps": lambda seed: bumps("long", 2, n, 0, seed),
    }
    tasks: Tasks = {}
    for (cell, make), seed in product(problems.items(), range(size.problems)):
        for method in ("auto", "ball", "relaxation", "random", "k-means"):
            tasks[cell, f"{method}, problem {seed}"] = partial(shape_found, make, seed, method)
    return lines("shapes", size, tasks)


def shape_found(make: Callable[[int], tuple[Numbers, Labels]], seed: int, method: str) -> Results:
    x, y = make(seed)
    if method == "k-means":
        return {method: {"error": METHODS["k-means"](x, y, 2)["error"]}}
    fit = clustering(2, init=method, kernel="rbf", alpha=1e-3).fit(x)
    return {f"rbf, {method}": {"error": error(fit.labels_, y)}}


# Figure 2


def text(size: Size) -> Iterator[Line]:
    """Figure 2: accuracy on pairs of newsgroups, and log-loss where there are probabilities.

    The paper: its latent classes significantly ahead of all others, slowly better with K. What holds: with two labels
    the optimum is logistic regression with C = 2K / (lambda N), so that the classes are on a par with it when it is
    tuned; documents without labels are what helps. All features are tf-idf of the pair's training documents; C and the
    other settings are chosen by 5 folds of the labelled ones.
    """
    if not (size.data / FILE).exists():
        print(f"text: no {size.data / FILE}; --data names the folder", flush=True)
        return
    for n in (100, 300, 500) if size.share == 1 else (60,):
        tasks: Tasks = {}
        for pair, seed in product(PAIRS if size.share == 1 else PAIRS[:1], range(size.splits)):
            for name in size.chosen(CLASSIFIERS):
                tasks[f"{' / '.join(pair)}, N = {n}", f"{name}, split {seed}"] = partial(
                    classified, size.data, pair, n, seed, name
                )
        yield from lines("text", size, tasks)
        yield from means("text", f"all pairs, N = {n}", list(finished(size, "text", tasks)))


def finished(size: Size, part: str, tasks: Tasks) -> Iterator[Results]:
    for cell, which in tasks:
        if f"{part}, {cell}, {which}" in size.cells.done:
            yield size.cells.done[f"{part}, {cell}, {which}"]


# The semidefinite program


def sdp(size: Size) -> Iterator[Line]:
    """The program over simplices against the semidefinite relaxation, N = 10 and K = 2, and the optimum by enumeration.

    The paper: the best column performs as the semidefinite program does, the average worse. Costs are in units of the
    optimum's, so that 1 is best; the relaxations' own values lie above it, as bounds do.
    """
    tasks: Tasks = {("N = 10, K = 2", f"problem {seed}"): partial(sdp_of, seed) for seed in range(size.problems)}
    return lines("sdp", size, tasks)


def sdp_of(seed: int) -> Results:
    n, k = 10, 2
    x, y = bumps("round", k, n, 10, seed)
    near = approximation(x)
    start = random_assignments(5, n, k, np.random.default_rng(seed))
    found, independent = (
        low_rank_simplex_program(near.apply, start, coupling=c)
        for c in ("joint", "independent")  # type: ignore[arg-type]
    )
    z = ball_relaxation(near.apply, n, np.random.default_rng(0), max_iter=2000, tol=1e-8)
    grouped = np.eye(k)[KMeans(k, n_init=10, random_state=0).fit_predict(z)]
    every = (np.eye(k)[[0, *((code >> i) & 1 for i in range(n - 1))]] for code in range(2 ** (n - 1)))
    best = min(every, key=near.quadratic)  # the form is concave: its minimum is at a vertex
    rounded = {
        "best column": found.best(),
        "average": found.average(),
        "independent, best column": independent.best(),
        "ball and k-means": grouped,
        "optimum": best,
    }
    relaxed = semidefinite(near, k)
    if relaxed is not None:
        rounded["semidefinite program"] = relaxed[1]
    optimum = near.quadratic(best)
    own = {
        method: {"cost": near.quadratic(xi) / optimum, "error": error(np.asarray(xi.argmax(axis=1)), y)}
        for method, xi in rounded.items()
    }
    if relaxed is not None:
        own["semidefinite program"]["bound"] = relaxed[0] / optimum
    own["ball and k-means"]["bound"] = near.quadratic(z) / (2 * optimum)  # |xi - 1/2|^2 is at most a half
    return own


def semidefinite(near: QuadraticApproximation, k: int) -> tuple[float, Numbers] | None:
    """The relaxation over doubly nonnegative matrices: its value, and likeliest classes given that of the first row.

    The mean of all rows, which the paper takes, is uniform: nothing tells classes apart.
    """
    try:
        import cvxpy as cp
    except ImportError:
        return None
    n = len(near.shares)
    form = np.kron(np.diag(near.shares) @ near.apply(np.eye(n)), np.eye(k))
    t = cp.Variable((n * k, n * k), PSD=True)
    block = np.kron(np.eye(n), np.ones((1, k)))
    sums = t @ block.T  # of a row of T over the classes of each unit: the same for every unit
    constraints = [t >= 0, block @ t @ block.T == 1, sums[:, 1:] == sums[:, :-1]]
    value = cp.Problem(cp.Minimize(cp.trace((form + form.T) / 2 @ t)), constraints).solve(solver=cp.SCS, eps=1e-6)
    return float(value), np.eye(k)[t.value[:, 0].reshape(n, k).argmax(axis=1)]


PARTS: dict[str, Callable[[Size], Iterator[Line]]] = {
    "roundings": roundings,
    "noise": noise,
    "scan": scan,
    "shapes": shapes,
    "sdp": sdp,
    "text": text,
}


def markdown(part: str, lines: list[Line]) -> str:
    """A table of one part, after what it is."""
    headings = list(dict.fromkeys(name for line in lines for name in line.numbers))
    text = [f"## {part}", "", *(row.strip() for row in (PARTS[part].__doc__ or "").splitlines()), ""]
    text += [f"| cell | method | {' | '.join(headings)} |", f"|---|---|{'---|' * len(headings)}"]
    for line in lines:
        numbers = (line.numbers.get(name, np.nan) for name in headings)
        text.append(f"| {line.cell} | {line.method} | {' | '.join(_written(v) for v in numbers)} |")
    return "\n".join(text) + "\n"


def _written(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.3f}"


def main(arguments: Sequence[str] | None = None) -> list[Line]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small versions of everything")
    parser.add_argument("--only", choices=PARTS, help="one part alone")
    parser.add_argument("--problems", type=int, help="problems a cell (50 in the paper)")
    parser.add_argument("--methods", nargs="+", help="methods of noise and text whose names hold one of these words")
    parser.add_argument("--splits", type=int, help="splits of the texts (1)")
    parser.add_argument("--data", type=Path, default=DATA, help=f"folder that holds {FILE}")
    add_arguments(parser)
    chosen = parser.parse_args(arguments)
    size = QUICK if chosen.quick else FULL
    size = replace(size, problems=chosen.problems or size.problems, splits=chosen.splits or size.splits)
    size = replace(size, methods=tuple(chosen.methods or ()), cells=Cells.of(chosen), data=chosen.data)
    everything: list[Line] = []
    for part, run in PARTS.items():
        if chosen.only in (None, part):
            told = list(run(size))
            print(markdown(part, told), flush=True)
            everything += told
    size.cells.close()
    return everything


if __name__ == "__main__":
    main()
