"""UCI's handwritten digits, 240 bits and 76 Fourier coefficients: accuracy over K, a view that is missing, bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.cross_decomposition import CCA, PLSRegression
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import majorant as mj
from multiview_parts.common import (
    BitByBit,
    Labels,
    Run,
    Views,
    accuracy,
    base_rates,
    linear_svm,
    log_likelihood,
    rows_of,
    side_by_side,
    split,
    splits_of,
    told,
)

FILE = "multiview/uci_multiple_features.npz"
KINDS = {"pixels": mj.Bernoulli(), "fourier": mj.Gaussian()}
BRIGHT = 3
"""Pixels brighter than this are ones."""
SIZES = (5, 10, 20, 40)
TRAINING, TEST = 300, 1000
MIDDLE = 20
"""Components where one number is told."""
BEFORE_CCA = 50
"""Principal components of each view that CCA gets: with 240 bits and 300 rows it would fit noise."""


def digits(run: Run) -> tuple[Views, Labels]:
    """Bits of 15 x 16 pixels, Fourier coefficients, and which digit."""
    arrays = run.load(FILE)
    views = {"pixels": (arrays["pix"] > BRIGHT).astype(np.float64), "fourier": np.asarray(arrays["fou"])}
    return views, arrays["y"].astype(np.intp)


class Split:
    """Training and test rows."""

    def __init__(self, views: Views, y: Labels, seed: int, training: int) -> None:
        first, second = split(len(y), seed, training, TEST)
        self.train, self.test = rows_of(views, first), rows_of(views, second)
        self.y, self.y_test = y[first], y[second]
        self.fits: dict[int, mj.HarmoniumClassifier] = {}

    def embedded(self, model: Any, *y: Any) -> float:
        """A linear SVM on what a model of all columns makes of them."""
        model.fit(side_by_side(self.train), *y)
        h, h_test = (model.transform(side_by_side(views)) for views in (self.train, self.test))
        return accuracy(h, self.y, h_test, self.y_test)

    def flat(self, model: Any) -> float:
        """A classifier of all columns."""
        return float(model.fit(side_by_side(self.train), self.y).score(side_by_side(self.test), self.y_test))

    def pca(self, k: int) -> float:
        """Principal components of standardised columns."""
        return self.embedded(make_pipeline(StandardScaler(), PCA(k, random_state=0)))

    def pls(self, k: int) -> float:
        """Partial least squares on indicators of the labels."""
        return self.embedded(make_pipeline(StandardScaler(), PLSRegression(k, max_iter=2000)), np.eye(10)[self.y])

    def cca(self, k: int) -> float:
        """Canonical correlations of the two views: the mean of the variates of both."""
        axes = {
            name: make_pipeline(StandardScaler(), PCA(BEFORE_CCA, whiten=True, random_state=0)).fit(values)
            for name, values in self.train.items()
        }
        model = CCA(k, max_iter=5000).fit(*(axes[name].transform(values) for name, values in self.train.items()))

        def means(views: Views) -> Any:
            return np.mean(model.transform(*(axes[name].transform(values) for name, values in views.items())), axis=0)

        return accuracy(means(self.train), self.y, means(self.test), self.y_test)

    def rbm(self, k: int) -> float:
        """A restricted Boltzmann machine of all columns, the real ones brought to [0, 1]."""
        return self.embedded(
            make_pipeline(MinMaxScaler(clip=True), BernoulliRBM(k, learning_rate=0.05, n_iter=100, random_state=0))
        )

    def harmonium(self, k: int) -> float:
        """A harmonium without labels."""
        model = mj.Harmonium(k, views=KINDS).fit(self.train)
        return accuracy(model.transform(self.train), self.y, model.transform(self.test), self.y_test)

    def hinge(self, k: int) -> mj.HarmoniumClassifier:
        """A max-margin harmonium."""
        if k not in self.fits:
            self.fits[k] = mj.HarmoniumClassifier(k, views=KINDS, loss="hinge").fit(self.train, self.y)
        return self.fits[k]


EMBEDDINGS: dict[str, Callable[[Split, int], float]] = {
    "PCA + SVM": Split.pca,
    "CCA + SVM": Split.cca,
    "PLS-DA + SVM": Split.pls,
    "BernoulliRBM + SVM": Split.rbm,
    "harmonium + SVM": Split.harmonium,
}
"""Accuracy of a linear SVM on k numbers a row."""
CLASSIFIERS: dict[str, Callable[[Split, int], Any]] = {"harmonium, hinge": Split.hinge}
"""Harmoniums that classify by themselves."""


def lines(run: Run) -> Iterator[str]:
    """All of this part."""
    views, y = digits(run)
    training, sizes, middle = TRAINING, SIZES, MIDDLE
    if run.quick:
        views["pixels"] = views["pixels"][:, ::4]
        training, sizes, middle = 150, SIZES[:1], SIZES[0]
    splits = [Split(views, y, seed, training) for seed in run.seeds]
    yield f"digits: {training} training rows, {TEST} test rows, {splits_of(len(splits))}"
    yield from over_sizes(splits, sizes)
    yield from without_fourier(splits, middle)
    yield from pixels_from_fourier(splits, middle)


def over_sizes(splits: list[Split], sizes: tuple[int, ...]) -> Iterator[str]:
    """Figure 4 of the paper: accuracy over the number of components."""
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    yield f"        flat linear SVM     {told([s.flat(linear_svm()) for s in splits])}"
    yield f"        flat shrinkage LDA  {told([s.flat(lda) for s in splits])}"
    for k in sizes:
        for method, score in EMBEDDINGS.items():
            yield f"K = {k:2d}  {method:20s}{told([score(s, k) for s in splits])}"
        for method, fitted in CLASSIFIERS.items():
            models = [fitted(s, k) for s in splits]
            scores = [float(m.score(s.test, s.y_test)) for m, s in zip(models, splits, strict=True)]
            proved = sum(bool(m.certificate_.is_global) for m in models)
            rank = np.mean([m.rank_ for m in models])
            yield f"K = {k:2d}  {method:20s}{told(scores)}  rank {rank:.1f}, certified {proved} of {len(models)}"


def without_fourier(splits: list[Split], k: int) -> Iterator[str]:
    """Accuracy where test rows show the pixels alone."""
    exact, filled, retrained = [], [], []
    for s in splits:
        model, pixels = s.hinge(k), s.test["pixels"]
        mean = np.tile(s.train["fourier"].mean(axis=0), (len(pixels), 1))
        exact.append(float(model.score({"pixels": pixels}, s.y_test)))
        filled.append(float(model.score({"pixels": pixels, "fourier": mean}, s.y_test)))
        retrained.append(float(linear_svm().fit(s.train["pixels"], s.y).score(pixels, s.y_test)))
    yield f"without Fourier, K = {k}: harmonium, integrated out   {told(exact)}"
    yield f"without Fourier, K = {k}: harmonium, means filled in  {told(filled)}"
    yield f"without Fourier, K = {k}: SVM trained on the pixels   {told(retrained)}"


def pixels_from_fourier(splits: list[Split], k: int) -> Iterator[str]:
    """Log-likelihood a bit of the pixels given the Fourier coefficients."""
    found: dict[str, list[float]] = {}
    for s in splits:
        bits, given = s.test["pixels"], {"fourier": s.test["fourier"]}
        model = mj.Harmonium(k, views=KINDS).fit(s.train)
        selected = mj.Harmonium(k, views=KINDS, select_by="pixels").fit(s.train)
        told_by = {
            "base rates": np.tile(base_rates(s.train["pixels"]), (len(bits), 1)),
            "logistic regression": BitByBit().fit(s.train["fourier"], s.train["pixels"]).predict(s.test["fourier"]),
            "harmonium": model.annotate(given, "pixels"),
            "harmonium, calibrated": model.calibrate(s.train).annotate(given, "pixels", calibrated=True),
            "the same, select_by": selected.annotate(given, "pixels"),
            "select_by, Gibbs": selected.annotate(given, "pixels", method="gibbs", random_state=0),
            "select_by, calibrated": selected.calibrate(s.train).annotate(given, "pixels", calibrated=True),
        }
        for method, p in told_by.items():
            found.setdefault(method, []).append(log_likelihood(p, bits))
    for method, values in found.items():
        yield f"log-likelihood a pixel, K = {k}: {method:23s}{told(values)}"
