"""Discriminative latent classes and clusters: the figures of the paper, with other starts and peers beside.

A. Joulin, F. Bach, J. Ponce, "Efficient optimization for discriminative latent class models", NIPS 2010. It shows
curves without numbers, so that its order stands beside ours, in its words.

    python experiments/discriminative_latent_class.py                all parts, 10 problems a cell (some hours)
    python experiments/discriminative_latent_class.py --quick        small versions of all parts: what CI runs
    python experiments/discriminative_latent_class.py --only noise   one part: roundings, noise, shapes, sdp or text
    ... --problems 50                                                as many problems a cell as in the paper

Every line is a mean over problems, told on stderr as it comes. "error" is the share of rows in a wrong cluster when
clusters are matched with groups as well as can be; "information" the share that the fit's objective is of the most
possible (`information_`).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import LatentDirichletAllocation, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import LinearSVC

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
NEWSGROUPS = "text/newsgroups20_bow13312.npz"

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


def clustering(k: int, **parameters: Any) -> mj.DiscriminativeClustering:
    return mj.DiscriminativeClustering(k, **{"alpha": ALPHA, "random_state": 0, **parameters})


def approximation(x: Numbers) -> QuadraticApproximation:
    shares = np.full(len(x), 1 / len(x))
    return QuadraticApproximation.of(principal_axes(x, shares), ALPHA, shares)


def softer(xi: Numbers) -> Numbers:
    """A vertex would absorb EM."""
    return 0.9 * xi + 0.1 / xi.shape[1]


def means(part: str, cell: str, results: Sequence[dict[str, dict[str, float]]]) -> Iterator[Line]:
    """One line a method: the mean of every number over problems."""
    for method in results[0]:
        numbers = {name: [r[method][name] for r in results] for name in results[0][method]}
        line = Line(part, cell, method, {name: float(np.mean(values)) for name, values in numbers.items()})
        print(part, cell, method, *(_written(v) for v in line.numbers.values()), sep="\t", file=sys.stderr, flush=True)
        yield line


# Figure 1


def roundings(size: Size) -> Iterator[Line]:
    """Figure 1: columns of the program joint or independent, rounded by the best or by their average, then EM.

    The paper: joint above independent; the best column ahead for K < 5, the average for K = 5.
    """
    for k in (2, 3, 5):
        for noise in size.noises:
            results = []
            for seed in range(size.problems):
                x, y = bumps("round", k, int(100 * size.share), noise, seed)
                near = approximation(x)
                start = random_assignments(5, len(x), k, np.random.default_rng(seed))
                own: dict[str, dict[str, float]] = {}
                for coupling in ("joint", "independent"):
                    found = low_rank_simplex_program(near.apply, start, coupling=coupling)  # type: ignore[arg-type]
                    for rounding, xi in (("best column", found.best()), ("average", found.average())):
                        fit = clustering(k, init=softer(xi)).fit(x)
                        own[f"{coupling}, {rounding}"] = {"error": error(fit.labels_, y), "cost": near.quadratic(xi)}
                results.append(own)
            yield from means("roundings", f"K = {k}, {noise} noise", results)


# Figure 3


def noise(size: Size) -> Iterator[Line]:
    """Figure 3, with elongated groups and stripes as well: error by dimensions of noise.

    The paper, round groups: its relaxation significantly ahead of DIFFRAC, k-means and max-margin clustering.
    """
    for shape, k in (("round", 2), ("long", 2), ("round", 5), ("long", 5), ("stripes", 5)):
        for dimensions in size.noises:
            results = []
            for seed in range(size.problems):
                x, y = bumps(shape, k, int({2: 100, 5: 250}[k] * size.share), dimensions, seed)
                results.append({method: METHODS[method](x, y, k) for method in size.chosen(METHODS)})
            yield from means("noise", f"{shape}, K = {k}, {dimensions} noise", results)


def ours(**parameters: Any) -> Callable[[Numbers, Labels, int], dict[str, float]]:
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


def peer(make: Callable[[int], Any]) -> Callable[[Numbers, Labels, int], dict[str, float]]:
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


METHODS: dict[str, Callable[[Numbers, Labels, int], dict[str, float]]] = {
    "auto": ours(),
    "ball": ours(init="ball"),
    "relaxation (the paper's)": ours(init="relaxation"),
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
    for cell, make in problems.items():
        results = []
        for seed in range(size.problems):
            x, y = make(seed)
            own: dict[str, dict[str, float]] = {}
            for init in ("auto", "ball", "relaxation", "random"):
                fit = clustering(2, init=init, kernel="rbf", alpha=1e-3).fit(x)
                own[f"rbf, {init}"] = {"error": error(fit.labels_, y)}
            own["k-means"] = {"error": METHODS["k-means"](x, y, 2)["error"]}
            results.append(own)
        yield from means("shapes", cell, results)


# Figure 2

PAIRS = (
    ("alt.atheism", "talk.religion.misc"),
    ("comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"),
    ("comp.os.ms-windows.misc", "comp.windows.x"),
    ("soc.religion.christian", "talk.religion.misc"),
    ("talk.politics.guns", "talk.politics.misc"),
    ("rec.sport.baseball", "rec.sport.hockey"),
)
"""Two newsgroups each; the paper does not name its five pairs."""


@dataclass(frozen=True)
class Task:
    """Labelled and unlabelled documents of two newsgroups, and those of the test set, as tf-idf."""

    x: Any
    y: Labels
    unlabelled: Any
    x_test: Any
    y_test: Labels

    @property
    def all_rows(self) -> Any:
        return sparse.vstack([self.x, self.unlabelled]).tocsr()


def documents(pair: tuple[str, str], n: int, seed: int) -> Task:
    """`n` training documents with labels, drawn at random; the others of the pair keep theirs to themselves."""
    with np.load(DATA / NEWSGROUPS, allow_pickle=False) as file:
        names = [str(name) for name in file["target_names"]]
        shape, sets = file["shape"], {}
        for part, rows in (("train", shape[0]), ("test", shape[1])):
            arrays = [file[f"{part}_{name}"] for name in ("data", "indices", "indptr")]
            counts = sparse.csr_matrix((arrays[0].astype(float), *arrays[1:]), shape=(rows, shape[2]))
            y = file[f"y_{part}"]
            kept = np.flatnonzero(np.isin(y, [names.index(name) for name in pair]))
            sets[part] = counts[kept], (y[kept] == names.index(pair[0])).astype(np.intp)
    order = np.random.default_rng((seed, n)).permutation(len(sets["train"][1]))
    tf_idf = TfidfTransformer(sublinear_tf=True).fit(sets["train"][0])
    x, y = tf_idf.transform(sets["train"][0])[order], sets["train"][1][order]
    return Task(x[:n], y[:n], x[n:], tf_idf.transform(sets["test"][0]), sets["test"][1])


def text(size: Size) -> Iterator[Line]:
    """Figure 2: accuracy on pairs of newsgroups, and log-loss where there are probabilities.

    The paper: its latent classes significantly ahead of all others, slowly better with K. What holds: with two labels
    the optimum is logistic regression with C = 2K / (lambda N), so that the classes are on a par with it when it is
    tuned; documents without labels are what helps. All features are tf-idf of the pair's training documents; C and the
    other settings are chosen by 5 folds of the labelled ones.
    """
    if not (DATA / NEWSGROUPS).exists():
        print(f"text: no {DATA / NEWSGROUPS}; --data names the folder", flush=True)
        return
    for n in (100, 300, 500) if size.share == 1 else (60,):
        every = []
        for pair in PAIRS if size.share == 1 else PAIRS[:1]:
            results = []
            for seed in range(size.splits):
                task = documents(pair, n, seed)
                results.append({name: scores(CLASSIFIERS[name](task), task) for name in size.chosen(CLASSIFIERS)})
            yield from means("text", f"{' / '.join(pair)}, N = {n}", results)
            every += results
        yield from means("text", f"all pairs, N = {n}", every)


def scores(run: tuple[Any, Any], task: Task) -> dict[str, float]:
    """Accuracy and log-loss of a fitted classifier on the test documents."""
    fitted, rows = run
    right = float(np.mean(fitted.predict(rows) == task.y_test))
    loss = log_loss(task.y_test, fitted.predict_proba(rows)) if hasattr(fitted, "predict_proba") else np.nan
    return {"accuracy": right, "log-loss": float(loss)}


def tuned(make: Any, grid: dict[str, Any], scoring: str = "accuracy") -> Callable[[Task], tuple[Any, Any]]:
    return lambda task: (GridSearchCV(make, grid, cv=5, scoring=scoring).fit(task.x, task.y), task.x_test)


def reduced(make: Callable[[], Any]) -> Callable[[Task], tuple[Any, Any]]:
    """A linear SVM on few features, which are made without labels."""

    def run(task: Task) -> tuple[Any, Any]:
        features = make().fit(task.x)
        few = Task(features.transform(task.x), task.y, None, features.transform(task.x_test), task.y_test)
        return tuned(LinearSVC(), SVM_CS)(few)

    return run


def latent(**parameters: Any) -> Callable[[Task], tuple[Any, Any]]:
    return lambda task: (
        mj.DiscriminativeLatentClasses(**{"random_state": 0, **parameters}).fit(task.x, task.y),
        task.x_test,
    )


def with_unlabelled(task: Task) -> tuple[Any, Any]:
    """The penalty is that of logistic regression with a thousandth of a row's loss, C = 1e4 / N."""
    y = np.concatenate([task.y.astype(float), np.full(task.unlabelled.shape[0], np.nan)])
    k = 2
    return mj.DiscriminativeLatentClasses(k, alpha=2 * k * 1e-4, random_state=0).fit(task.all_rows, y), task.x_test


def self_training(task: Task) -> tuple[Any, Any]:
    y = np.concatenate([task.y, np.full(task.unlabelled.shape[0], -1)])
    best = tuned(LogisticRegression(max_iter=2000), CS)(task)[0].best_estimator_
    return SelfTrainingClassifier(best).fit(task.all_rows, y), task.x_test


CS = {"C": [0.1, 1.0, 10.0, 100.0, 1000.0]}
SVM_CS = {"C": [0.01, 0.1, 1.0, 10.0]}
CLASSIFIERS: dict[str, Callable[[Task], tuple[Any, Any]]] = {
    "latent classes, K = 5": latent(n_classes=5),
    "latent classes, K = 15": latent(n_classes=15, init="relaxation"),
    "latent classes, relaxation": latent(n_classes=5, init="relaxation"),
    "latent classes, random": latent(n_classes=5, init="random", n_init=1),
    "latent classes, with unlabelled": with_unlabelled,
    "linear SVM": tuned(LinearSVC(), SVM_CS),
    "logistic regression, C by accuracy": tuned(LogisticRegression(max_iter=2000), CS),
    "logistic regression, C by log-loss": tuned(LogisticRegression(max_iter=2000), CS, "neg_log_loss"),
    "PCA and SVM": reduced(lambda: TruncatedSVD(20, random_state=0)),
    "topics and SVM": reduced(lambda: LatentDirichletAllocation(15, max_iter=20, random_state=0)),
    "self-training": self_training,
}


# The semidefinite program


def sdp(size: Size) -> Iterator[Line]:
    """The program over simplices against the semidefinite relaxation, N = 10 and K = 2, and the optimum by enumeration.

    The paper: the best column performs as the semidefinite program does, the average worse. Costs are in units of the
    optimum's, so that 1 is best; the relaxations' own values lie above it, as bounds do.
    """
    n, k = 10, 2
    results = []
    for seed in range(size.problems):
        x, y = bumps("round", k, n, 10, seed)
        near = approximation(x)
        found = low_rank_simplex_program(near.apply, random_assignments(5, n, k, np.random.default_rng(seed)))
        z = ball_relaxation(near.apply, n, np.random.default_rng(0), max_iter=2000, tol=1e-8)
        grouped = np.eye(k)[KMeans(k, n_init=10, random_state=0).fit_predict(z)]
        every = (np.eye(k)[[0, *((code >> i) & 1 for i in range(n - 1))]] for code in range(2 ** (n - 1)))
        best = min(every, key=near.quadratic)  # the form is concave: its minimum is at a vertex
        rounded = {
            "best column": found.best(),
            "average": found.average(),
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
        results.append(own)
    yield from means("sdp", f"N = {n}, K = {k}", results)


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
    parser.add_argument("--data", type=Path, help=f"folder that holds {NEWSGROUPS}")
    chosen = parser.parse_args(arguments)
    size = QUICK if chosen.quick else FULL
    size = replace(size, problems=chosen.problems or size.problems, splits=chosen.splits or size.splits)
    size = replace(size, methods=tuple(chosen.methods or ()))
    if chosen.data is not None:
        global DATA
        DATA = chosen.data
    everything: list[Line] = []
    for part, run in PARTS.items():
        if chosen.only in (None, part):
            lines = list(run(size))
            print(markdown(part, lines), flush=True)
            everything += lines
    return everything


if __name__ == "__main__":
    main()
