"""Topics of hotel reviews and of digits: what each component says of ratings or classes (Figure 3, Table 1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

import majorant as mj
from majorant.metrics import class_profiles, mean_pairwise_kl
from majorant.models.harmonium.summary import top_features
from multiview_parts import digits, hotel
from multiview_parts.common import Run, Views, rows_of, split

FILE = hotel.FILE
K = 5
"""Topics of the reviews, as in the paper."""
LOSS_WEIGHT = 10.0
"""With the default of 1000 a rating needs no more than one topic."""
RATINGS = 5
WORDS = 8
PAPER = "mean KL of ratings (published, other reviews): MMH 3.568, DWH 0.038"


def lines(run: Run) -> Iterator[str]:
    """All of this part, for the first split."""
    training, fewest = (300, 15) if run.quick else (hotel.TRAINING, hotel.FEWEST)
    yield from of_reviews(run, training, fewest)
    views, y = digits.digits(run)
    if run.quick:
        views["pixels"] = views["pixels"][:, ::8]
    s = digits.Split(views, y, run.seeds[0], 100 if run.quick else digits.TRAINING)
    k = digits.SIZES[0] if run.quick else digits.SIZES[1]
    yield f"topics of {len(s.y)} digits, K = {k}: share of each topic by class"
    plain, hinge = mj.Harmonium(k, views=digits.KINDS), mj.HarmoniumClassifier(k, views=digits.KINDS)
    for name, model in (("harmonium", plain.fit(s.train)), ("harmonium, hinge", hinge.fit(s.train, s.y))):
        yield from profiled(name, model, s.test, s.y_test)


def of_reviews(run: Run, training: int, fewest: int) -> Iterator[str]:
    """Ratings are five groups of scores, of equal size but for equal scores; words those of largest weight."""
    views, score = hotel.reviews(run)
    first, second = split(len(score), run.seeds[0], training, hotel.TEST)
    train, test = hotel.of_known_words(rows_of(views, first), rows_of(views, second), fewest)
    names = run.load(FILE)["vocab"]
    for view, values in train.items():
        if view != "context":
            kept = names[np.asarray(views[view][first].sum(axis=0)).ravel() >= fewest]
            train[view], test[view] = (pd.DataFrame(v.toarray(), columns=kept) for v in (values, test[view]))
    edges = np.quantile(score[first], np.arange(1, RATINGS) / RATINGS)
    rating = 1 + np.searchsorted(edges, score[second], side="right")
    yield f"topics of {training} hotel reviews, K = {K}: share of each topic by rating, 1 to {RATINGS}"
    plain = mj.Harmonium(K, views=hotel.KINDS)
    regressor = mj.HarmoniumRegressor(K, views=hotel.KINDS, loss_weight=LOSS_WEIGHT, n_folds=1)
    for name, model in (
        ("harmonium", plain.fit(train)),
        ("harmonium, epsilon_insensitive", regressor.fit(train, score[first])),
    ):
        yield from profiled(name, model, test, rating)
        tops = {view: top_features(model, view, WORDS) for view in ("liked", "disliked")}
        for k in range(model.rank_):
            yield f"  topic {k + 1}: " + "; ".join(f"{view} {' '.join(top[k])}" for view, top in tops.items())
    residual = (regressor.predict(train) - score[first]) / regressor.y_scale_
    smoothed = regressor.supervision_.loss.value_and_slope(residual[:, None], 0.0)[0].mean()
    exact = np.maximum(np.abs(residual) - regressor.epsilon, 0.0).mean()
    yield f"harmonium, epsilon_insensitive: mean loss with corners smoothed {smoothed:.3f} and exact {exact:.3f}"
    yield f"topics: {PAPER}"


def profiled(name: str, model: Any, test: Views, y: Any) -> Iterator[str]:
    """Each topic's mean share in the rows of each class, latents shifted and divided by their sum as in the paper."""
    latents = model.transform(test)
    yield f"{name}: mean KL of classes {mean_pairwise_kl(latents, y):.3f}"
    above = latents - latents.min(axis=1, keepdims=True)
    shares = class_profiles(above / np.maximum(above.sum(axis=1, keepdims=True), 1e-300), y)[1]
    for k, of_topic in enumerate(shares.T):
        yield f"  topic {k + 1}: " + " ".join(f"{share:.2f}" for share in of_topic)
