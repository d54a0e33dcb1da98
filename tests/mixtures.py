"""Mixtures for tests of what is said and drawn of them, fitted by the reference so that they need no search of ours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture as Reference

from majorant.engine.trace import Trace
from majorant.registry import mixture_card
from majorant.search import SearchReport, StartRecord

COVARIANCE_TYPES = ("full", "tied", "diag", "spherical")

CARD = mixture_card(
    name="stand-in-mixture",
    title="Gaussian mixture",
    question="Which overlapping groups do the rows come from?",
)


def rows(seed: int = 0, n: int = 120, d: int = 3) -> NDArray[np.float64]:
    """Two stretched groups of rows that overlap a little."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(n // 2, d)) @ np.diag([2.0, 0.5, *[1.0] * (d - 2)][:d])
    second = rng.normal(size=(n - n // 2, d)) + 1.8
    return np.vstack([first, second])


def reference(covariance_type: str = "full", k: int = 2, seed: int = 0, **data: Any) -> Any:
    """scikit-learn's mixture, fitted to `rows`."""
    return Reference(k, covariance_type=covariance_type, random_state=seed).fit(rows(seed, **data))


class Fitted(Reference):  # type: ignore[misc]
    """The reference with what a report reads beside it; missing entries are filled with column means for its sake."""

    def fit(self, X: Any, y: Any = None) -> Fitted:
        super().fit(filled(X))
        self.log_likelihood_ = float(self.score(X) * len(X))
        self.regular_ = True
        ends = [self.log_likelihood_ - away for away in (0.0, 0.0, 0.4, 0.4, 7.5)]
        self.search_ = SearchReport(
            tuple(StartRecord("split" if i % 2 else "random", end, 9, True) for i, end in enumerate(ends)),
            "log-likelihood",
            "max",
        )
        lowest = -self.log_likelihood_
        self.trace_ = Trace([{"objective": lowest + v, "bound": lowest + v} for v in (9.0, 3.0, 1.0, 0.1, 0.0)])
        self.n_iter_ = len(self.trace_)
        return self

    def score(self, X: Any, y: Any = None) -> float:
        return float(super().score(filled(X)))

    def predict_proba(self, X: Any) -> Any:
        return super().predict_proba(filled(X))

    def icl(self, X: Any) -> float:
        q = self.predict_proba(X)
        return float(self.bic(X) - 2 * np.sum(q * np.log(np.maximum(q, 1e-300))))


def filled(X: Any) -> NDArray[np.float64]:
    """The rows with column means in the place of what is missing."""
    X = np.asarray(X, dtype=np.float64)
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X)
