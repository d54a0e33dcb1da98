"""The convex bound of a latent SVM on digits that are hidden in clutter: passes and CPU time to a relative gap of 1e-3.

    python benchmarks/latent_svm.py PATH/mnist7000.npz [--alphas 0.05 0.005] [--bcfw]

400 canvases of 60 by 60 pixels, a digit of ten classes and eight fragments of others on each; regions are 81 windows of
7 by 7 cells, their features histograms of gradients (441, and a constant one). The file holds digits under the key X
and their classes under y. Needs scikit-image.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from skimage.feature import hog

from majorant.solvers.structural_svm import SOLVERS
from majorant.solvers.structural_svm.bags import BagProblem, BagSet

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("digits", type=Path)
    parser.add_argument("--alphas", type=float, nargs="+", default=[0.05, 0.005])
    parser.add_argument("--bcfw", action="store_true", help="also block-coordinate Frank-Wolfe, for 400 passes at most")
    arguments = parser.parse_args()
    held = np.load(arguments.digits)
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
    for alpha in arguments.alphas:
        for name in ("dcd", "cutting-plane", *(["bcfw"] if arguments.bcfw else [])):
            begin = time.process_time()
            most = 400 if name == "bcfw" else 1000
            found = SOLVERS[name](problem, linear, shares, alpha=alpha, tol=1e-3, max_passes=most)
            spent = time.process_time() - begin
            share = found.gap / found.objective
            print(
                f"{alpha:>7} {name:<15} {found.n_passes:>7} {spent:>7.2f} {found.objective:>10.4f} {share:>9.1e}",
                flush=True,
            )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"\npeak memory of the process {peak / 2**20:.0f} MiB, of which features {rows.nbytes / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
