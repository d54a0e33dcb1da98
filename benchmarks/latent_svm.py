"""The convex bound of a latent SVM, and its random bounds: passes, CPU time and memory.

    python benchmarks/latent_svm.py PATH/mnist7000.npz [--alphas 0.05 0.005] [--bcfw]    solvers on digits in clutter
    python benchmarks/latent_svm.py --only large                                         random bounds on much data

Solvers, to a relative gap of 1e-3: 400 canvases of 60 by 60 pixels, a digit of ten classes and eight fragments of
others on each; regions are 81 windows of 7 by 7 cells, their features histograms of gradients (441, and a constant
one). The file holds digits under the key X and their classes under y. Needs scikit-image.

Much data: 50,000 samples of 100 regions of 32 features in single precision (610 MiB), ten classes, one region of each
sample shows its class. A pass of scores is the loss-augmented maximum of every sample and the scores of its regions
under its own class; a pass that proposes does this and draws a random valid bound (`GibbsLimit`), measures its excess,
and sums the statistics of the drawn and of the tightest bound, between which the loop blends. Then a fit of a few
bounds that begins with the right region of every other sample, and the peak memory of the process.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import majorant as mj
from majorant.data.chunks import Block
from majorant.engine.latents import tightest
from majorant.engine.problem import View
from majorant.models.margin.family import MarginFamily, Weights
from majorant.solvers.structural_svm import SOLVERS, BoundRequest
from majorant.solvers.structural_svm.bags import BagProblem, BagSet

LARGE = 50_000, 100, 32, 10
"""Samples, regions, features and classes of much data."""

CANVAS, CELL, WINDOW, PER_CLASS, FRAGMENTS = 60, 4, 7, 40, 8


def canvases(digits: np.ndarray, classes: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Digits near the middle of a canvas, over fragments of other digits."""
    images, labels = [], []
    for label in range(10):
        for digit in digits[classes == label][:PER_CLASS]:
            image = np.zeros((CANVAS, CANVAS), np.float32)
            for _ in range(FRAGMENTS):
                a, b = random.integers(4, 15, 2)
                p, q = random.integers(0, CANVAS - 10, 2)
                part = digits[random.integers(len(digits)), a : a + 10, b : b + 10]
                image[p : p + 10, q : q + 10] = np.maximum(image[p : p + 10, q : q + 10], part)
            free = CANVAS - 28
            p, q = np.clip(np.round(free / 2 + 6 * random.standard_normal(2)), 0, free).astype(int)
            under = image[p : p + 28, q : q + 28]
            image[p : p + 28, q : q + 28] = np.where(digit > 0.05, digit, under)
            images.append(image)
            labels.append(label)
    return np.array(images), np.array(labels, dtype=np.int32)


def windows(images: np.ndarray) -> np.ndarray:
    """Histograms of gradients of all windows, shape (images, windows, features)."""
    from skimage.feature import hog

    side = CANVAS // CELL - WINDOW + 1
    out = np.empty((len(images), side * side, WINDOW * WINDOW * 9), np.float32)
    for i, image in enumerate(images):
        cells = hog(
            image,
            orientations=9,
            pixels_per_cell=(CELL, CELL),
            cells_per_block=(1, 1),
            block_norm="L2-Hys",
            feature_vector=False,
        )[:, :, 0, 0, :]
        for a in range(side):
            for b in range(side):
                out[i, a * side + b] = cells[a : a + WINDOW, b : b + WINDOW].ravel()
    return out / WINDOW


def median_cpu(f: Callable[[], object], repeats: int = 15) -> float:
    spent = []
    for _ in range(repeats):
        begin = time.process_time()
        f()
        spent.append(time.process_time() - begin)
    return float(np.median(spent))


def solvers(path: Path, alphas: Sequence[float], with_bcfw: bool) -> None:
    held = np.load(path)
    digits = held["X"].reshape(-1, 28, 28).astype(np.float32)
    images, labels = canvases(digits / digits.max(), held["y"], np.random.default_rng(0))
    table = windows(images)
    n, width, d = table.shape
    rows = table.reshape(n * width, d)
    bags = BagSet(rows, np.arange(n) * width, np.full(n, width), labels, 10, bias=0.3)
    problem = BagProblem(bags, 1 - np.eye(10))
    shares = np.full(n, 1 / n)
    middle = np.full(n, width // 2, dtype=np.int32)
    linear = bags.sums(slice(0, n), shares, labels, middle)
    print(f"{n} samples, {width} regions, 10 classes, {d + 1} features, single precision")
    weights = np.random.default_rng(0).normal(size=problem.dim)
    matrix = np.ascontiguousarray(weights.reshape(bags.shape)[:, :-1].T, dtype=np.float32)
    augmented = median_cpu(lambda: problem.exact_pass(weights, shares))
    product = median_cpu(lambda: rows @ matrix)
    print(f"loss-augmented pass {augmented * 1e3:.1f} ms, its matrix product by BLAS {product * 1e3:.1f} ms")
    print(f"ratio {augmented / product:.2f} (asked: at most 1.5)")
    print(f"\n{'alpha':>7} {'solver':<15} {'passes':>7} {'CPU s':>7} {'objective':>10} {'gap':>9}")
    for alpha in alphas:
        for name in ("dcd", "cutting-plane", *(["bcfw"] if with_bcfw else [])):
            begin = time.process_time()
            most = 400 if name == "bcfw" else 1000
            found = SOLVERS[name](BoundRequest(problem, linear, shares, alpha, max_passes=most))
            spent = time.process_time() - begin
            share = found.gap / found.objective
            print(
                f"{alpha:>7} {name:<15} {found.n_passes:>7} {spent:>7.2f} {found.objective:>10.4f} {share:>9.1e}",
                flush=True,
            )
    print(f"\npeak memory of the process {peak():.0f} MiB, of which features {rows.nbytes / 2**20:.0f} MiB")


def large(n: int, width: int, d: int, n_classes: int) -> None:
    random = np.random.default_rng(0)
    X = random.standard_normal((n, width, d), dtype=np.float32)
    y = (np.arange(n) % n_classes).astype(np.int32)
    place = random.integers(0, width, n)
    X[np.arange(n), place] += 4 * np.eye(n_classes, d, dtype=np.float32)[y]
    size = X.nbytes / 2**20
    print(f"{n} samples, {width} regions, {d} features, {n_classes} classes: {size:.0f} MiB; process {peak():.0f} MiB")
    bags = BagSet(X.reshape(n * width, d), np.arange(n) * width, np.full(n, width), y, n_classes)
    shares = np.full(n, 1 / n)
    family = MarginFamily(BagProblem(bags, 1 - np.eye(n_classes)), shares, 0.01, SOLVERS["dcd"], 1e-3, 0)
    theta = Weights(0.1 * random.normal(size=family.problem.dim), 0.0, 0.0)
    data, policy = bags.chunks(shares), mj.GibbsLimit()

    def scored(block: Block) -> float:
        return float(family.energies(theta, block)[0, 0])

    def proposed(block: Block) -> float:
        energies = family.energies(theta, block)
        free, q = tightest(energies, family.beta)
        view = View(block, energies, free, q, family.beta, 0, 1)
        drawn = view.bound(family, theta, policy.propose(view, 5.0))
        return (0.5 * drawn + 0.5 * view.bound(family, theta, q)).excess

    spent: dict[str, list[float]] = {"scores": [], "proposal": []}
    for _ in range(5):
        for name, visit in (("scores", scored), ("proposal", proposed)):
            begin = time.process_time()
            data.map_sum(visit)
            spent[name].append(time.process_time() - begin)
    scores, both = (float(np.median(spent[name])) for name in ("scores", "proposal"))
    print(f"pass of scores {scores:.2f} s, pass of scores that proposes {both:.2f} s, medians of 5")
    print(f"proposal over a pass of scores {(both - scores) / scores:.2f} (asked: at most 1)")
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is cut short
        half = np.where(np.arange(n) % 2 == 0, place, 0)
        model = mj.LatentSVC(0.01, latent_init=half, bounds=policy, max_iter=3, random_state=0).fit(X, y)
    fit = time.process_time() - begin
    print(f"fit of {model.n_iter_} bounds: {fit:.0f} s, {model.n_passes_} passes, objective {model.objective_:.4f}")
    print(f"peak memory {peak():.0f} MiB, {peak() / size:.2f} of the features (asked: below 2)")


def peak() -> float:
    """The most memory that the process had so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("digits", type=Path, nargs="?", help="mnist7000.npz, for the solvers")
    parser.add_argument("--only", choices=["solvers", "large"], default="solvers")
    parser.add_argument("--alphas", type=float, nargs="+", default=[0.05, 0.005])
    parser.add_argument("--bcfw", action="store_true", help="also block-coordinate Frank-Wolfe, for 400 passes at most")
    arguments = parser.parse_args()
    if arguments.only == "large":
        large(*LARGE)
    elif arguments.digits is None:
        parser.error("the solvers need the file of digits")
    else:
        solvers(arguments.digits, arguments.alphas, arguments.bcfw)


if __name__ == "__main__":
    main()
