"""The digits again: how far apart classes lie (Figure 2), the weight of the loss (Figure 10), time (9b)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.manifold import TSNE
from sklearn.neighbors import KNeighborsClassifier

import majorant as mj
from majorant.metrics import mean_pairwise_kl
from multiview_parts import digits
from multiview_parts.common import Run, linear_svm, side_by_side, splits_of, told

FILE = digits.FILE
K = 10
WEIGHTS = (1.0, 10.0, 100.0, 1000.0, 10000.0)
PAPER = "mean KL of classes (published): TRECVID is drawn only; Flickr, K = 60: MMH 1.62, DWH 1.28, TWH .232"


def lines(run: Run) -> Iterator[str]:
    """All of this part."""
    views, y = digits.digits(run)
    if run.quick:
        views["pixels"] = views["pixels"][:, ::8]
    training = 100 if run.quick else digits.TRAINING
    splits = [digits.Split(views, y, seed, training) for seed in run.seeds]
    yield f"reading: {training} training rows, K = {K}, {splits_of(len(splits))}"
    kinds = {
        "harmonium": mj.Harmonium(K, views=digits.KINDS),
        "harmonium, hinge": mj.HarmoniumClassifier(K, views=digits.KINDS),
    }
    seconds: dict[str, list[list[float]]] = {}
    for name, model in kinds.items():
        apart, near = [], []
        for s in splits:
            before = time.process_time()
            model.fit(s.train, *([s.y] if "hinge" in name else []))
            fitted = time.process_time()
            h = model.transform(s.test)
            seconds.setdefault(name, []).append([fitted - before, time.process_time() - fitted])
            apart.append(mean_pairwise_kl(h, s.y_test))
            near.append(in_the_plane(h[: 200 if run.quick else None], s.y_test))
        yield f"{name:18s} mean KL of classes {told(apart)}  nearest neighbours in a t-SNE plane {told(near)}"
        if "hinge" in name:
            yield f"{name:18s} mean loss of training rows: corners smoothed, exact {corners(model, splits[-1])}"
    yield f"reading: {PAPER}"
    for weight in WEIGHTS[::2] if run.quick else WEIGHTS:
        model = mj.HarmoniumClassifier(K, views=digits.KINDS, loss_weight=weight)
        scores = [float(model.fit(s.train, s.y).score(s.test, s.y_test)) for s in splits]
        yield f"loss_weight {weight:7g}  accuracy {told(scores)}"
    for s in splits:
        before = time.process_time()
        svm = linear_svm().fit(side_by_side(s.train), s.y)
        fitted = time.process_time()
        svm.predict(side_by_side(s.test))
        seconds.setdefault("flat linear SVM", []).append([fitted - before, time.process_time() - fitted])
    peers = np.median(seconds["flat linear SVM"], axis=0)
    for name, values in seconds.items():
        fit, test = np.median(values, axis=0) / peers
        yield f"CPU time over the SVM's with its C chosen: {name:18s} training {fit:.2f}, test {test:.2f}"


def corners(model: Any, s: digits.Split) -> str:
    """The loss that is minimised and the hinge itself, as a mean over training rows."""
    scores = model.transform(s.train) @ model.label_components_.T + model.label_intercept_
    smoothed = model.supervision_.loss.value_and_slope(scores, s.y)[0].mean()
    margins = 1.0 + scores - scores[np.arange(len(s.y)), s.y][:, None]
    margins[np.arange(len(s.y)), s.y] = 0.0
    return f"{smoothed:.3f}, {margins.max(axis=1).mean():.3f}"


def in_the_plane(h: Any, y: Any) -> float:
    """The share of rows whose label most of their five nearest neighbours in a t-SNE plane have."""
    plane = TSNE(random_state=0, init="pca").fit_transform(h)
    y = y[: len(h)]
    votes = KNeighborsClassifier(5).fit(plane, y).kneighbors(return_distance=False)
    said = [np.bincount(y[row], minlength=10).argmax() for row in votes]
    return float(np.mean(np.array(said) == y))
