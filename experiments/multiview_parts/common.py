"""What the parts share: how much is done, random splits, linear peers, and means with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import LinearSVC

Numbers = NDArray[np.float64]
Labels = NDArray[np.intp]
Rows = NDArray[np.intp]
Views = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """The folder of the data, the seeds of the splits, and whether it is for a test: few rows, one size."""

    data: Path
    seeds: tuple[int, ...]
    quick: bool

    def load(self, file: str) -> Any:
        """A file of arrays."""
        with np.load(self.data / file) as arrays:
            return dict(arrays)


class Part(Protocol):
    """A module of this folder."""

    FILE: str
    """Its data, below the folder of the data."""

    def lines(self, run: Run) -> Iterable[str]:
        """What is printed."""
        ...


def told(values: Sequence[float], digits: int = 3) -> str:
    """Mean and half the width of a 95 % interval."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}" + " " * (digits + 4)
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.{digits}f} +-{half:.{digits}f}"


def splits_of(n: int) -> str:
    """How many there are, in words."""
    return f"{n} split" if n == 1 else f"{n} splits"


def split(n: int, seed: int, training: int, test: int) -> tuple[Rows, Rows]:
    """Rows for training and rows for testing, at random."""
    order = np.random.default_rng(seed).permutation(n)
    return order[:training], order[n - test :]


def rows_of(views: Views, rows: Rows) -> Views:
    """Some rows of all views."""
    return {name: values[rows] for name, values in views.items()}


def side_by_side(views: Views) -> Numbers:
    """All views as one table."""
    return np.hstack([v.toarray() if sparse.issparse(v) else v for v in views.values()])


def sparse_view(arrays: Any, name: str) -> Any:
    """A view that is kept as CSR, as zeros and ones."""
    indices, indptr = arrays[f"{name}_indices"].astype(np.int32), arrays[f"{name}_indptr"]
    ones = np.ones(len(indices))
    return sparse.csr_matrix((ones, indices, indptr), shape=tuple(arrays[f"{name}_shape"].tolist()))


def linear_svm() -> Any:
    """A linear SVM on standardised columns, its C by cross-validation."""
    grid = {"linearsvc__C": [1e-4, 1e-3, 1e-2, 1e-1, 1.0]}
    return GridSearchCV(make_pipeline(StandardScaler(), LinearSVC(random_state=0, max_iter=5000)), grid, cv=5)


def accuracy(h: Numbers, y: Labels, h_test: Numbers, y_test: Labels) -> float:
    """Of a linear SVM on a representation."""
    return float(linear_svm().fit(h, y).score(h_test, y_test))


def log_likelihood(p: Numbers, bits: Numbers) -> float:
    """Of bits, a bit."""
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return float(np.mean(np.where(bits > 0, np.log(p), np.log1p(-p))))


def base_rates(bits: Numbers) -> Numbers:
    """How often each bit is one, and never quite 0 or 1."""
    return (bits.sum(axis=0) + 0.5) / (len(bits) + 1)


class BitByBit:
    """A logistic regression for each bit, one C for all by a held-out fifth of the rows.

    Real columns are standardised; `sparse` ones are bits, and taken as they are.
    """

    def __init__(self, sparse: bool = False) -> None:
        self.scaler = MaxAbsScaler() if sparse else StandardScaler()
        self.grid = (0.1, 0.3, 1.0) if sparse else (0.003, 0.01, 0.03, 0.1, 0.3)

    def fit(self, z: Any, bits: Numbers) -> BitByBit:
        """Choose C, and fit to all rows."""
        held = np.arange(len(bits)) % 5 == 2
        scores = [log_likelihood(self._of(c, z[~held], bits[~held]).predict(z[held]), bits[held]) for c in self.grid]
        return self._of(self.grid[int(np.argmax(scores))], z, bits)

    def _of(self, c: float, z: Any, bits: Numbers) -> BitByBit:
        z, self.rates = self.scaler.fit_transform(z), base_rates(bits)
        self.models = [
            LogisticRegression(C=c, max_iter=500).fit(z, x) if 0 < x.sum() < len(x) else None for x in bits.T
        ]
        return self

    def predict(self, z: Any) -> Numbers:
        """The probability that each bit is one."""
        z = self.scaler.transform(z)
        columns = [
            np.full(z.shape[0], rate) if model is None else model.predict_proba(z)[:, 1]
            for model, rate in zip(self.models, self.rates, strict=True)
        ]
        return np.column_stack(columns)
