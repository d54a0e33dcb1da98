"""Hotel reviews, words of what was liked and disliked and 14 numbers: the score (Figure 5 of the paper).

In the paper's words "harmonium + SVR" is its DWH, "score a view" its TWH, and "epsilon_insensitive" its MMH.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVR

import majorant as mj
from multiview_parts.common import Run, Views, rows_of, side_by_side, sparse_view, split, splits_of, told

FILE = "text/hotel_scores.npz"
KINDS = {"liked": mj.Bernoulli(), "disliked": mj.Bernoulli(), "context": mj.Gaussian()}
TRAINING, TEST = 1145, 1145
"""Half and half, as in the paper."""
SIZES = (5, 10)
FEWEST = 5
"""Training reviews that hold a word, at least."""
COUNTS = [0, 1, 4, 12]
"""Columns of the context that are counts: their logarithms are taken."""


def reviews(run: Run) -> tuple[Views, Any]:
    """Presence of words, context, and scores."""
    arrays = run.load(FILE)
    context = arrays["context"].copy()
    context[:, COUNTS] = np.log1p(context[:, COUNTS])
    views = {"liked": sparse_view(arrays, "pos"), "disliked": sparse_view(arrays, "neg"), "context": context}
    return views, arrays["score"]


def of_known_words(train: Views, test: Views, fewest: int) -> tuple[Views, Views]:
    """The words that some training reviews hold."""
    kept = {name: np.asarray(words.sum(axis=0)).ravel() >= fewest for name, words in train.items() if name != "context"}
    first, second = (
        {name: values[:, kept[name]] if name in kept else values for name, values in v.items()} for v in (train, test)
    )
    return first, second


def lines(run: Run) -> Iterator[str]:
    """All of this part."""
    views, y = reviews(run)
    training, sizes, fewest = (300, SIZES[:1], 15) if run.quick else (TRAINING, SIZES, FEWEST)
    found: dict[str, list[float]] = {}
    for seed in run.seeds:
        first, second = split(len(y), seed, training, TEST)
        train, test = of_known_words(rows_of(views, first), rows_of(views, second), fewest)
        for method, r2 in predicted(train, y[first], test, y[second], sizes):
            found.setdefault(method, []).append(r2)
    yield f"hotel: {training} training rows, {TEST} test rows, {splits_of(len(run.seeds))}"
    for method, values in found.items():
        yield f"R2  {method:38s}{told(values)}"


def predicted(train: Views, y: Any, test: Views, y_test: Any, sizes: tuple[int, ...]) -> Iterator[tuple[str, float]]:
    """R2 on test rows, by method."""
    scaler = StandardScaler().fit(train["context"])  # words are better left as they are
    flat, flat_test = (side_by_side({**v, "context": scaler.transform(v["context"])}) for v in (train, test))

    def r2(model: Any, x: Any = flat, x_test: Any = flat_test) -> float:
        return float(model.fit(x, y).score(x_test, y_test))

    yield "ridge, all columns", r2(RidgeCV(np.logspace(0, 3, 10)))
    for k in sizes:
        grid = {"linearsvr__C": [0.01, 0.1, 1.0]}
        svr = make_pipeline(PCA(k, random_state=0), LinearSVR(random_state=0, max_iter=5000))
        yield f"K = {k:2d}  PCA + SVR", r2(GridSearchCV(svr, grid, cv=3))
        yield f"K = {k:2d}  PLS", r2(PLSRegression(k, scale=False))
        plain = mj.Harmonium(k, views=KINDS).fit(train)
        scores = GridSearchCV(make_pipeline(StandardScaler(), LinearSVR(random_state=0, max_iter=5000)), grid, cv=3)
        yield f"K = {k:2d}  harmonium + SVR", r2(scores, plain.transform(train), plain.transform(test))
        with_score = mj.Harmonium(k, views={**KINDS, "score": mj.Gaussian()}).fit({**train, "score": y[:, None]})
        yield f"K = {k:2d}  harmonium, score a view", float(r2_score(y_test, with_score.annotate(test, "score")))
        for loss in ("epsilon_insensitive", "squared"):
            model = mj.HarmoniumRegressor(k, views=KINDS, loss=loss, loss_weight="auto").fit(train, y)
            yield f"K = {k:2d}  harmonium, {loss}", float(model.score(test, y_test))
