"""Corel5k, 499 visual words and 374 tags: annotation of pictures (Figures 7 and 8 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.metrics import f1_score

import majorant as mj
from multiview_parts.common import (
    BitByBit,
    Numbers,
    Run,
    base_rates,
    log_likelihood,
    sparse_view,
    split,
    splits_of,
    told,
)

FILE = "multiview/corel5k.npz"
KINDS = {"words": mj.Bernoulli(), "tags": mj.Bernoulli()}
SIZES = (4500, 2000)
"""Rows for training."""
TEST = 500
K = 20
PAPER = "F1@5 on Flickr (published): MMH .262, TWH .236, DWH .210, sLDA .169"


def f1_of_first(scores: Numbers, tags: Numbers, n: int = 5) -> float:
    """Mean F1 of the n tags with the largest scores, over pictures that have tags."""
    first = np.argsort(-scores, axis=1, kind="stable")[:, :n]
    said = np.zeros_like(tags)
    np.put_along_axis(said, first, 1, axis=1)
    some = tags.any(axis=1)
    return float(f1_score(tags[some], said[some], average="samples", zero_division=0))


def lines(run: Run) -> Iterator[str]:
    """All of this part."""
    arrays = run.load(FILE)
    words, tags = sparse_view(arrays, "visual"), sparse_view(arrays, "tags")
    if run.quick:
        tags = tags[:, np.asarray(tags.sum(axis=0)).ravel() > 60]
    for training in SIZES[1:] if run.quick else SIZES:
        training = 400 if run.quick else training
        found: dict[str, list[tuple[float, float]]] = {}
        for seed in run.seeds:
            first, second = split(words.shape[0], seed, training, TEST)
            for method, p in annotated(words[first], tags[first], words[second]):
                true = tags[second].toarray()
                likelihood = log_likelihood(p, true) if method != "ridge" else np.nan
                found.setdefault(method, []).append((f1_of_first(p, true), likelihood))
        yield f"corel: {training} training rows, {TEST} test rows, K = {K}, {splits_of(len(run.seeds))}"
        for method, values in found.items():
            f1, likelihoods = zip(*values, strict=True)
            tail = "" if method == "ridge" else f"  log-likelihood a tag {told(likelihoods, 5)}"
            yield f"{training}/{TEST}  {method:26s} F1@5 {told(f1)}{tail}"
    yield f"corel: {PAPER}"


def annotated(words: Any, tags: Any, given: Any) -> Iterator[tuple[str, Numbers]]:
    """Scores of all tags of new pictures, by method."""
    bits = tags.toarray()
    yield "base rates", np.tile(base_rates(bits), (given.shape[0], 1))
    yield "logistic regression", BitByBit(sparse=True).fit(words, bits).predict(given)
    ridge = RidgeCV(np.logspace(0, 3, 10)).fit(words.toarray(), bits)
    yield "ridge", ridge.predict(given.toarray())
    train = {"words": words, "tags": tags}
    for method, view in (("harmonium", None), ("select_by tags", "tags")):
        model = mj.Harmonium(K, views=KINDS, select_by=view).fit(train)
        yield method, model.annotate({"words": given}, "tags")
        model.calibrate(train)
        yield f"{method}, calibrated", model.annotate({"words": given}, "tags", calibrated=True)
