"""No two texts of a page overlap and none is cut: every kind of model, few and many parts and columns, three papers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import majorant as mj
from majorant.report import Run, html_report

from ..mixtures import CARD, Fitted
from .chromium import BROWSER, Tab, browsing
from .stand_in import clustered_run

PARTS, COLUMNS = (1, 2, 4, 30), (1, 10, 85)
SCREENS = {"390": (390, ""), "1280": (1280, ""), "paper": (673, "print")}
OVERLAPS = Path(__file__).with_name("overlaps.js").read_text(encoding="utf-8")

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium, chromium-browser or google-chrome here")


def names_of(d: int) -> tuple[str, ...]:
    """Short, usual and long names of columns."""
    return tuple(("x", "length (mm)", "share of wallet in the first year")[j % 3] + f" {j + 1}" for j in range(d))


@cache
def table_of(k: int, d: int, n: int = 240) -> tuple[np.ndarray, np.ndarray]:
    """Rows of overlapping groups, and the group of each."""
    random = np.random.default_rng(k + d)
    groups = np.arange(n) % k
    return random.normal(size=(n, d)) + 2.5 * random.normal(size=(k, d))[groups], groups


def clustering(k: int, d: int) -> Run:
    return clustered_run(240, d, k, names=names_of(d))


def mixture(k: int, d: int) -> Run:
    X, _ = table_of(k, d)
    return Run(Fitted(k, covariance_type="diag", random_state=0).fit(X), X, names_of(d), "table.csv", "", card=CARD)


def regression(k: int, d: int) -> Run:
    X, groups = table_of(k, d, 600)
    random = np.random.default_rng(0)
    coef, noise = 3.0 * random.normal(size=(k, d)), random.normal(size=len(X))
    y = np.einsum("ij,ij->i", X, coef[groups]) + noise
    model = mj.RegressionMixture(k, init={"coef": coef, "intercept": np.zeros(k)}, max_iter=3).fit(X, y)
    if k * d > 100:  # errors of so many coefficients take long, and only their room is looked at
        names = ("coef", "intercept", "scale", "weights")
        model._errors_of_the_fit = lambda: {name: np.full_like(getattr(model, f"{name}_"), 0.03) for name in names}
    return Run(model, X, names_of(d), "table.csv", "", y=y, target_name="spending per month")


def classification(k: int, d: int) -> Run:
    X, groups = table_of(k, d)
    y = np.array([f"class {c}" for c in range(k)])[groups]
    model = mj.LatentPrototypeClassifier(2, n_init=1, max_iter=5, random_state=0).fit(X, y)
    return Run(model, X, names_of(d), "table.csv", "", y=y)


def latent_classes(k: int, d: int) -> Run:
    X, _ = table_of(k, d, 120)
    words = pd.DataFrame(np.where(X > 0, "very often", "never"), columns=list(names_of(d)))
    model = mj.LatentClassAnalysis(k, n_init=1, max_iter=5, random_state=0).fit(words)
    return Run(model, (X > 0).astype(np.float64), names_of(d), "table.csv", "", frame=words)


def representation(k: int, d: int) -> Run:
    X, _ = table_of(k, d)
    return Run(mj.Harmonium(k, l2=0.01).fit(X), X, names_of(d), "table.csv", "")


KINDS = (clustering, mixture, regression, classification, latent_classes, representation)


def pages(kind: Any) -> Iterator[tuple[str, str]]:
    """The page of a kind of model for each number of parts and columns."""
    for k in PARTS:
        for d in COLUMNS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield f"{kind.__name__} of {k} in {d} columns", html_report(kind(k, d))


def show(tab: Tab, width: int, media: str) -> None:
    tab.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    tab.ask("Emulation.setEmulatedMedia", media=media)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_two_texts_overlap_and_none_is_cut(tmp_path: Path, kind: Any) -> None:
    faults = {}
    with browsing(tmp_path / "profile") as tab:
        for name, source in pages(kind):
            page = tmp_path / "page.html"
            page.write_text(source, encoding="utf-8")
            tab.open(page.as_uri())
            for screen, (width, media) in SCREENS.items():
                show(tab, width, media)
                if found := tab.value(f"{OVERLAPS}({'true' if media else 'false'})"):
                    faults[f"{name} at {screen}"] = found
            show(tab, 1280, "")
    assert not faults
