"""Prototypes with a latent pose against classifiers without one: digits, shifted digits, rotated digits.

The example of the lecture notes (Y. LeCun, "Machine learning and pattern recognition: latent variables"): a plane is
seen from an angle that nobody tells, E(y, z, x) = |x - R_yz|^2. Here the planes are the 8 by 8 digits that come with
scikit-learn, and the angle is a shift or a rotation that is drawn for every image and then forgotten.

    python experiments/latent_prototypes.py            5 splits, 70 % for the fit (about ten minutes)
    python experiments/latent_prototypes.py --quick    one split of 300 images: what CI runs
    ... --journal FILE --resume --jobs 2               in pieces (see cells.py)

Every line is the mean accuracy on the images that were left out, with its standard deviation over the splits, and the
CPU seconds of a fit. "vectors" is how many images a classifier keeps in mind: 1-NN keeps all that it has seen.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from cells import Cells, add_arguments
from numpy.typing import NDArray
from scipy import ndimage
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.mixture import GaussianMixture as SklearnMixture
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid

import majorant as mj

Numbers = NDArray[np.float64]

PADDED = 12
SHIFT = 2
ANGLE = 40.0


def images() -> tuple[Numbers, NDArray[np.int64]]:
    """The digits in the middle of a larger canvas, and what they are."""
    digits = load_digits()
    border = (PADDED - 8) // 2
    return np.pad(digits.images, ((0, 0), (border, border), (border, border))), digits.target


def plain(pictures: Numbers) -> Numbers:
    """As they are."""
    return pictures


def shifted(pictures: Numbers) -> Numbers:
    """Each moved by up to two pixels to a side and up or down: 25 poses."""
    random = np.random.default_rng(0)
    moves = random.integers(-SHIFT, SHIFT + 1, (len(pictures), 2))
    return np.array([ndimage.shift(p, m, order=0) for p, m in zip(pictures, moves, strict=True)])


def rotated(pictures: Numbers) -> Numbers:
    """Each turned by an angle between -40 and 40 degrees."""
    random = np.random.default_rng(0)
    angles = random.uniform(-ANGLE, ANGLE, len(pictures))
    turned = [ndimage.rotate(p, a, reshape=False, order=1) for p, a in zip(pictures, angles, strict=True)]
    return np.array(turned)


TASKS: dict[str, Callable[[Numbers], Numbers]] = {
    "digits": plain,
    "shifted digits": shifted,
    "rotated digits": rotated,
}


class MixtureEachClass:
    """A Gaussian mixture for each class; the class of largest density times share of the rows wins."""

    def __init__(self, mixture: Any) -> None:
        self.mixture = mixture

    def fit(self, X: Numbers, y: NDArray[np.int64]) -> MixtureEachClass:
        self.classes_, counts = np.unique(y, return_counts=True)
        self.log_shares_ = np.log(counts / len(y))
        self.mixtures_ = [clone(self.mixture).fit(X[y == c]) for c in self.classes_]
        return self

    def predict(self, X: Numbers) -> NDArray[np.int64]:
        scores = np.column_stack([m.score_samples(X) for m in self.mixtures_]) + self.log_shares_
        return self.classes_[scores.argmax(axis=1)]


@dataclass(frozen=True)
class Method:
    """A classifier, and how many images it keeps in mind (None: all that it has seen)."""

    name: str
    make: Callable[[], Any]
    vectors: int | None


def prototypes(n_poses: int, **parameters: Any) -> Callable[[], Any]:
    return lambda: mj.LatentPrototypeClassifier(n_poses, random_state=0, **parameters)


def mixtures(kind: Callable[..., Any], n_components: int) -> Callable[[], Any]:
    return lambda: MixtureEachClass(kind(n_components, covariance_type="spherical", random_state=0))


def methods(poses: Sequence[int], own_mixtures: bool) -> list[Method]:
    """Those without a latent pose, then by number of poses mixtures, which have one too, and prototypes.

    Our mixtures search for long in so many dimensions, so they are measured at the smallest number alone, if at all.
    """
    found = [
        Method("nearest centroid", NearestCentroid, 10),
        Method("LDA", LinearDiscriminantAnalysis, 10),
        Method("1-NN", lambda: KNeighborsClassifier(1), None),
    ]
    for k in poses:
        if own_mixtures and k == min(poses):
            found.append(Method(f"mixtures of {k}, spherical", mixtures(mj.GaussianMixture, k), 10 * k))
        found += [
            Method(f"mixtures of {k}, scikit-learn's", mixtures(SklearnMixture, k), 10 * k),
            Method(f"prototypes, {k} poses", prototypes(k), 10 * k),
            Method(f"prototypes, {k} poses, beta=inf", prototypes(k, beta=np.inf), 10 * k),
            Method(f"prototypes, {k} poses, gradient", prototypes(k, method="gradient"), 10 * k),
        ]
    return [*found, Method("prototypes, 1 pose, gradient", prototypes(1, method="gradient"), 10)]


@dataclass(frozen=True)
class Result:
    """What a method reached on a task."""

    task: str
    method: Method
    accuracies: Numbers
    seconds: float
    n_fitted: int


def split_of(method: Method, X: Numbers, y: NDArray[np.int64], n_splits: int, number: int) -> dict[str, Any]:
    """Accuracy on the 30 % of the images that one split leaves out, CPU seconds of the fit, and images it has seen."""
    splits = StratifiedShuffleSplit(n_splits, test_size=0.3, random_state=0)
    fitted, left_out = list(splits.split(X, y))[number]
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # collinear pixels, classes of few rows
        model = method.make().fit(X[fitted], y[fitted])
    seconds = time.process_time() - began
    accuracy = float(np.mean(model.predict(X[left_out]) == y[left_out]))
    return {"accuracy": accuracy, "seconds": seconds, "n_fitted": len(fitted)}


def measure(
    cells: Cells, task: str, method: Method, X: Numbers, y: NDArray[np.int64], n_splits: int
) -> Iterator[Result]:
    """Yield what a method reached on the splits that are there, if any are."""
    tasks = {
        f"{task}, {method.name}, {len(X)} images, split {i}": partial(split_of, method, X, y, n_splits, i)
        for i in range(n_splits)
    }
    if found := list(cells(tasks).values()):
        accuracies = np.array([f["accuracy"] for f in found])
        yield Result(task, method, accuracies, float(np.median([f["seconds"] for f in found])), found[0]["n_fitted"])


def table(results: Sequence[Result]) -> str:
    """One line a method."""
    lines = [f"{'':34}{'vectors':>8}{'accuracy, %':>16}{'CPU s':>8}"]
    for r in results:
        vectors = r.n_fitted if r.method.vectors is None else r.method.vectors
        accuracy = f"{100 * r.accuracies.mean():.1f} +- {100 * r.accuracies.std():.1f}"
        lines.append(f"{r.method.name:34}{vectors:>8}{accuracy:>16}{r.seconds:>8.2f}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> list[Result]:
    """Measure all methods on all tasks, and print what they reached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one split of 300 images, 2 poses")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--poses", type=int, nargs="+", default=[4, 16])
    add_arguments(parser)
    options = parser.parse_args(arguments)
    cells = Cells.of(options)
    pictures, y = images()
    poses, n_splits = options.poses, options.splits
    if options.quick:
        pictures, y, poses, n_splits = pictures[:300], y[:300], [2], 1
    results = []
    for task, pose in TASKS.items():
        X = pose(pictures).reshape(len(pictures), -1)
        every = methods(poses, own_mixtures=not options.quick)
        of_task = [result for m in every for result in measure(cells, task, m, X, y, n_splits)]
        print(f"\n{task}: {len(X)} images of {X.shape[1]} pixels, {n_splits} splits\n{table(of_task)}", flush=True)
        results += of_task
    cells.close()
    return results


if __name__ == "__main__":
    main()
