"""Representations of several views: the paper's questions, with a convex default and a certificate, and peers beside.

N. Chen, J. Zhu, F. Sun, E. Xing, "Large-margin predictive latent subspace learning for multiview data analysis", IEEE
TPAMI, 2012. Its data are not to be had; UCI's handwritten digits stand in for its images with two kinds of features.

    python experiments/multiview.py --only digits                 240 bits and 76 Fourier coefficients, 10 splits
    python experiments/multiview.py --only digits --quick         one split of fewer rows, one size: what tests run
    ... --splits 3                                                so many splits

Rows are split at random into 300 for training and 1000 for testing, anew in each split. Every hyper-parameter is chosen
within the training rows. Told are means over splits of the share of test rows whose label is right, with half the width
of a 95 % interval; of harmoniums also how many components were used, and in how many splits the fit is certified as a
global optimum.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import majorant as mj

Numbers = NDArray[np.float64]
Labels = NDArray[np.intp]
Views = dict[str, Numbers]

DATA = Path(os.environ.get("MAJORANT_SHARED_DATA") or Path(__file__).resolve().parents[1] / ".." / "shared" / "data")
DIGITS = "multiview/uci_multiple_features.npz"
KINDS = {"pixels": mj.Bernoulli(), "fourier": mj.Gaussian()}
BRIGHT = 3
"""Pixels brighter than this are ones."""
SIZES = (5, 10, 20, 40)
TRAINING, TEST = 300, 1000


def digits() -> tuple[Views, Labels]:
    """Bits of 15 x 16 pixels, Fourier coefficients, and which digit."""
    with np.load(DATA / DIGITS) as file:
        views = {"pixels": (file["pix"] > BRIGHT).astype(np.float64), "fourier": np.asarray(file["fou"])}
        return views, file["y"].astype(np.intp)


def rows_of(views: Views, rows: NDArray[np.intp]) -> Views:
    """Some rows of all views."""
    return {name: values[rows] for name, values in views.items()}


def side_by_side(views: Views) -> Numbers:
    """All views as one table."""
    return np.hstack(list(views.values()))


def linear_svm() -> Any:
    """A linear SVM on standardised columns, its C by cross-validation."""
    grid = {"linearsvc__C": [1e-4, 1e-3, 1e-2, 1e-1, 1.0]}
    return GridSearchCV(make_pipeline(StandardScaler(), LinearSVC(random_state=0, max_iter=5000)), grid, cv=5)


class Split:
    """Training and test rows."""

    def __init__(self, views: Views, y: Labels, seed: int, training: int) -> None:
        order = np.random.default_rng(seed).permutation(len(y))
        first, second = order[:training], order[-TEST:]
        self.train, self.test = rows_of(views, first), rows_of(views, second)
        self.y, self.y_test = y[first], y[second]

    def flat(self) -> float:
        """A linear SVM on all columns."""
        fitted = linear_svm().fit(side_by_side(self.train), self.y)
        return float(fitted.score(side_by_side(self.test), self.y_test))

    def embedded(self, h: Numbers, h_test: Numbers) -> float:
        """A linear SVM on a representation."""
        return float(linear_svm().fit(h, self.y).score(h_test, self.y_test))

    def pca(self, k: int) -> float:
        """Principal components of standardised columns, then a linear SVM."""
        model = make_pipeline(StandardScaler(), PCA(k, random_state=0)).fit(side_by_side(self.train))
        return self.embedded(*(model.transform(side_by_side(views)) for views in (self.train, self.test)))

    def pls(self, k: int) -> float:
        """Partial least squares on indicators of the labels, then a linear SVM."""
        model = PLSRegression(k, max_iter=2000).fit(side_by_side(self.train), np.eye(10)[self.y])
        return self.embedded(*(model.transform(side_by_side(views)) for views in (self.train, self.test)))

    def harmonium(self, k: int) -> float:
        """A harmonium without labels, then a linear SVM."""
        model = mj.Harmonium(k, views=KINDS).fit(self.train)
        return self.embedded(model.transform(self.train), model.transform(self.test))

    def hinge(self, k: int) -> mj.HarmoniumClassifier:
        """A max-margin harmonium."""
        return mj.HarmoniumClassifier(k, views=KINDS, loss="hinge").fit(self.train, self.y)


def told(values: list[float]) -> str:
    """Mean and half the width of a 95 % interval."""
    if len(values) == 1:
        return f"{values[0]:.3f}       "
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.3f} +-{half:.3f}"


def compare_digits(n_splits: int, sizes: tuple[int, ...], training: int) -> Iterator[str]:
    """Figure 4 of the paper on the digits: accuracy over the number of components."""
    views, y = digits()
    splits = [Split(views, y, seed, training) for seed in range(n_splits)]
    yield f"digits: {training} training rows, {TEST} test rows, {n_splits} split(s)"
    yield f"flat linear SVM           {told([split.flat() for split in splits])}"
    unsupervised: dict[str, Callable[[Split, int], float]] = {
        "PCA + SVM": Split.pca,
        "PLS-DA + SVM": Split.pls,
        "harmonium + SVM": Split.harmonium,
    }
    for k in sizes:
        for method, accuracy in unsupervised.items():
            yield f"K = {k:2d}  {method:18s}{told([accuracy(split, k) for split in splits])}"
        scores, without, ranks, proved = [], [], [], 0
        for split in splits:
            model = split.hinge(k)
            scores.append(float(model.score(split.test, split.y_test)))
            without.append(float(model.score({"pixels": split.test["pixels"]}, split.y_test)))
            ranks.append(model.rank_)
            proved += model.certificate_.is_global
        yield (
            f"K = {k:2d}  harmonium, hinge  {told(scores)}  rank {np.mean(ranks):.1f}, "
            f"certified {proved} of {n_splits}; without the Fourier view {told(without)}"
        )


def main(given: Sequence[str] | None = None) -> None:
    """Print the parts that are asked for, line by line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", choices=["digits"], default="digits")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args(given)
    warnings.simplefilter("ignore", ConvergenceWarning)
    if not (DATA / DIGITS).exists():
        sys.exit(f"{DATA / DIGITS} is not there: MAJORANT_SHARED_DATA may name the folder of the data")
    quick = arguments.quick
    for line in compare_digits(
        1 if quick else arguments.splits, SIZES[:1] if quick else SIZES, 150 if quick else TRAINING
    ):
        print(line, flush=True)


if __name__ == "__main__":
    main()
