"""The paper's training, contrastive divergence, beside the default on the digits: accuracy over K, starts, bits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import majorant as mj
from multiview_parts.common import Run, accuracy, log_likelihood, splits_of, told
from multiview_parts.digits import FILE, KINDS, MIDDLE, TEST, TRAINING, Split, digits

__all__ = ["FILE", "lines"]

SIZES = (5, 10, 20)
Settings = dict[str, Any]
METHODS: dict[str, Settings] = {
    "default": {},
    "cd": {"method": "cd"},
    "cd, l2 ~ 0": {"method": "cd", "l2": 1e-3},
}
"""The last is the paper's, which has no penalty on what the views weigh."""
STARTS = 5
L2 = 4.0
"""Where starts of methods whose penalty is to be chosen are compared."""


class Fit(NamedTuple):
    """Accuracy on test rows, seconds of processor time for the fit, components used, and the model."""

    accuracy: float
    seconds: float
    rank: int
    model: Any


def timed(model: Any, s: Split, *y: Any) -> tuple[Any, float]:
    """A fit to the training rows."""
    begun = time.process_time()
    return model.fit(s.train, *y), time.process_time() - begun


def unsupervised(s: Split, k: int, method: Settings) -> Fit:
    """A linear SVM on the representation: with contrastive divergence, DWH + SVM."""
    model, seconds = timed(mj.Harmonium(k, views=KINDS, **method), s)
    score = accuracy(model.transform(s.train), s.y, model.transform(s.test), s.y_test)
    return Fit(score, seconds, model.rank_, model)


def likelihood(s: Split, k: int, method: Settings) -> Fit:
    """The label as one more view, that counts once: with contrastive divergence, TWH."""
    return supervised(s, mj.HarmoniumClassifier(k, views=KINDS, **method, loss="log", loss_weight=1.0))


def hinge(s: Split, k: int, method: Settings) -> Fit:
    """Large margin: with contrastive divergence, MMH."""
    return supervised(s, mj.HarmoniumClassifier(k, views=KINDS, **method, loss="hinge"))


def supervised(s: Split, model: Any) -> Fit:
    """A harmonium that classifies by itself."""
    model, seconds = timed(model, s, s.y)
    return Fit(float(model.score(s.test, s.y_test)), seconds, model.rank_, model)


Model = Callable[[Split, int, Settings], Fit]
FITS: dict[str, Model] = {
    "no label (DWH) + SVM": unsupervised,
    "label a view (TWH)": likelihood,
    "large margin (MMH)": hinge,
}


def lines(run: Run) -> Iterator[str]:
    """All of this part."""
    views, y = digits(run)
    training, sizes, middle, starts, fits, methods = TRAINING, SIZES, MIDDLE, STARTS, FITS, METHODS
    if run.quick:
        views["pixels"] = views["pixels"][:, ::12]
        training, sizes, middle, starts = 100, SIZES[:1], SIZES[0], 2
        fits = {what: FITS[what] for what in list(FITS)[::2]}
        methods = {name: METHODS[name] for name in list(METHODS)[:2]}
    splits = [Split(views, y, seed, training) for seed in run.seeds]
    yield f"contrastive: {training} training rows, {TEST} test rows, {splits_of(len(splits))}"
    yield from over_sizes(splits, sizes, fits, methods)
    yield from of_starts(splits, middle, starts, methods)
    yield from pixels_from_fourier(splits, middle, methods)


def over_sizes(
    splits: list[Split], sizes: tuple[int, ...], models: dict[str, Model], methods: dict[str, Settings]
) -> Iterator[str]:
    """Accuracy over the number of components, the penalty chosen within the training rows."""
    for k in sizes:
        for what, fit in models.items():
            for name, method in methods.items():
                fits = [fit(s, k, method) for s in splits]
                rank, seconds = (np.mean([getattr(f, of) for f in fits]) for of in ("rank", "seconds"))
                scores = told([f.accuracy for f in fits])
                yield f"K = {k:2d}  {what:21s} {name:10s} {scores}  rank {rank:.1f}, {seconds:.1f} s"


def of_starts(splits: list[Split], k: int, n: int, methods: dict[str, Settings]) -> Iterator[str]:
    """How far apart random starts end, as a share of the objective."""
    for name, method in methods.items():
        spreads = []
        for s in splits:
            model = mj.Harmonium(k, views=KINDS, **{"l2": L2, **method}, init="random", n_init=n, random_state=0)
            ends = [start.objective for start in model.fit(s.train).search_.starts]
            spreads.append(float(np.ptp(ends) / np.abs(np.min(ends))))
        l2 = method.get("l2", L2)
        yield f"starts, K = {k}, l2 = {l2:g}: {n} random ones end within {max(spreads):.1e} of each other  {name}"


def pixels_from_fourier(splits: list[Split], k: int, methods: dict[str, Settings]) -> Iterator[str]:
    """Log-likelihood a bit of the pixels given the Fourier coefficients, and of a row's variables given each other."""
    for name, method in methods.items():
        bits, rows = [], []
        for s in splits:
            model = mj.Harmonium(k, views=KINDS, **method).fit(s.train)
            guessed = model.annotate({"fourier": s.test["fourier"]}, "pixels")
            bits.append(log_likelihood(guessed, s.test["pixels"]))
            rows.append(model.score(s.test))
        yield f"test rows, K = {k}: log-likelihood a pixel {told(bits)}, pseudo-likelihood {told(rows, 1)}  {name}"
