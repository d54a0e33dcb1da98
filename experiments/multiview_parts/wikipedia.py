"""Wikipedia articles, 128 visual words of a picture, 10 topics of the text: accuracy and retrieval (Figures 4, 6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.cross_decomposition import PLSCanonical
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import majorant as mj
from majorant.metrics import mean_average_precision, mean_precision_at_recall
from majorant.solvers.similarity import most_similar
from multiview_parts.common import (
    Labels,
    Numbers,
    Run,
    Views,
    accuracy,
    linear_svm,
    rows_of,
    side_by_side,
    split,
    splits_of,
    told,
)

FILE = "multiview/wikipedia_image_text.npz"
VIEWS = {"image": mj.Gaussian(whiten=True), "text": mj.Gaussian(whiten=True)}
TRAINING, TEST = 2173, 693
"""As many as in Rasiwasia et al. 2010."""
K = 9
PAPER = "average precision on Flickr, K = 60 (published): MMH .163, TWH .158, DWH .153"


def lines(run: Run) -> Iterator[str]:
    """All of this part."""
    arrays = run.load(FILE)
    views = {"image": arrays["image_sift128"].astype(float), "text": arrays["text_lda10"].astype(float)}
    y = arrays["y"].astype(np.intp)
    if run.quick:
        views["image"] = views["image"][:, :20]
    training = 800 if run.quick else TRAINING  # of 300, held-out rows tell no component
    scores: dict[str, list[float]] = {}
    precision: dict[str, list[float]] = {}
    curves: dict[str, list[Numbers]] = {}
    for seed in run.seeds:
        first, second = split(len(y), seed, training, TEST)
        train, test = rows_of(views, first), rows_of(views, second)
        models = fitted(train, y[first])
        for method, value in classified(models, train, y[first], test, y[second]):
            scores.setdefault(method, []).append(value)
        for method, relevant in retrieved(models, train, y[first], test, y[second]):
            precision.setdefault(method, []).append(mean_average_precision(relevant))
            curves.setdefault(method, []).append(mean_precision_at_recall(relevant, np.linspace(0.1, 0.9, 5))[1])
    yield f"wikipedia: {training} training rows, {TEST} test rows, K = {K}, {splits_of(len(run.seeds))}"
    for method, values in scores.items():
        yield f"accuracy                {method:34s}{told(values)}"
    for method, values in precision.items():
        curve = " ".join(f"{v:.2f}" for v in np.mean(curves[method], axis=0))
        yield f"mean average precision  {method:34s}{told(values)}  at recall .1 .3 .5 .7 .9: {curve}"
    yield f"wikipedia: {PAPER}"


def fitted(train: Views, y: Labels) -> dict[str, Any]:
    """Harmoniums, the weight of the label by hold-out."""
    plain = {name: mj.Gaussian(whiten=False) for name in VIEWS}
    return {
        "harmonium": mj.Harmonium(K, views=VIEWS).fit(train),
        "harmonium, not whitened": mj.Harmonium(K, views=plain).fit(train),
        "harmonium, hinge": mj.HarmoniumClassifier(K, views=VIEWS, loss_weight="auto").fit(train, y),
        "harmonium, log": mj.HarmoniumClassifier(K, views=VIEWS, loss="log", loss_weight="auto").fit(train, y),
    }


def classified(
    models: dict[str, Any], train: Views, y: Labels, test: Views, y_test: Labels
) -> Iterator[tuple[str, float]]:
    """Accuracy by method."""
    flat, flat_test = side_by_side(train), side_by_side(test)
    yield "flat linear SVM", float(linear_svm().fit(flat, y).score(flat_test, y_test))
    pca = make_pipeline(StandardScaler(), PCA(K, random_state=0)).fit(flat)
    yield "PCA + SVM", accuracy(pca.transform(flat), y, pca.transform(flat_test), y_test)
    for name, model in models.items():
        if hasattr(model, "classes_"):
            yield name, float(model.score(test, y_test))
        else:
            yield f"{name} + SVM", accuracy(model.transform(train), y, model.transform(test), y_test)


def retrieved(
    models: dict[str, Any], train: Views, y: Labels, test: Views, y_test: Labels
) -> Iterator[tuple[str, Labels]]:
    """Which ranked rows are of the query's class: test rows ask training rows (Figure 6), or the other view."""
    for name in ("harmonium", "harmonium, log"):
        model = models[name]
        rows, _ = model.retrieve(test, train, n=len(y))
        yield f"{name}, both views", y[rows] == y_test[:, None]
    flat, flat_test = side_by_side(train), side_by_side(test)
    pca = make_pipeline(StandardScaler(), PCA(K, random_state=0)).fit(flat)
    rows, _ = most_similar(pca.transform(flat_test), pca.transform(flat), len(y))
    yield "PCA, both views", y[rows] == y_test[:, None]
    pls = PLSCanonical(K, max_iter=2000).fit(train["text"], train["image"])
    text, image = pls.transform(test["text"], test["image"])
    for asked, other in (("text", "image"), ("image", "text")):
        for name in ("harmonium", "harmonium, log"):
            rows, _ = models[name].retrieve({asked: test[asked]}, {other: test[other]}, n=len(y_test))
            yield f"{name}, {asked} to {other}", y_test[rows] == y_test[:, None]
        a, b = (text, image) if asked == "text" else (image, text)
        rows, _ = most_similar(a, b, len(y_test))
        yield f"canonical PLS, {asked} to {other}", y_test[rows] == y_test[:, None]
