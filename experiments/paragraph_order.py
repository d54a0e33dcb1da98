"""The order of paragraphs inside a harmonium, beside the same words without their order (the paper's Figure 9a).

N. Chen, J. Zhu, F. Sun, E. Xing, "Large-margin predictive latent subspace learning for multiview data analysis", IEEE
TPAMI, 2012, section 5.4. Its hotel reviews are not to be had. Here are

- order: generated documents of 4 to 8 paragraphs. Each word is in as many of them whatever the label, so that words
  without their order say nothing; of the first label they mostly follow one another, of the second they keep apart;
- no order: generated documents whose label changes how often words occur, anywhere;
- digits: scikit-learn's images, whose 8 rows of 8 bits are paragraphs in which each column is a word. Beside the chains
  stand all 64 bits: as they are, and with an edge between each bit and the one below it.

    python experiments/paragraph_order.py                    all three, 10 splits
    python experiments/paragraph_order.py --only digits      one of them
    python experiments/paragraph_order.py --quick            fewer rows and splits: what tests run

Told is the share of test rows whose label is right, with half the width of a 95 % interval over random splits into
halves. The penalty is chosen within the training rows.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import majorant as mj

Numbers = NDArray[np.float64]
Labels = NDArray[np.intp]
View = dict[str, Any]

PAPER = "the paper's order: structured MMH before MMH, and before structured DWH with a support vector machine"
WORDS = 20
FOLLOWING = 0.6
"""Share of the words of a document whose place the label says."""
BRIGHT = 7
"""Pixels brighter than this, of 16, are ones."""


@dataclass(frozen=True)
class Documents:
    """Paragraphs and words, NaN for paragraphs that a document does not have, and a label each."""

    name: str
    x: Numbers
    y: Labels
    n_components: int

    @property
    def words(self) -> Numbers:
        """Whether each word is anywhere in a document."""
        return np.nanmax(self.x, axis=1)


def placed(random: np.random.Generator, n_steps: int, count: int, together: bool | None) -> Numbers:
    """A word in so many of the paragraphs: in a row, as far apart as there is room, or anywhere."""
    out = np.zeros(n_steps)
    if together is None:
        out[random.permutation(n_steps)[:count]] = 1
    elif together:
        first = random.integers(0, n_steps - count + 1)
        out[first : first + count] = 1
    else:
        spare = n_steps - (2 * count - 1)
        gaps = np.sort(random.integers(0, spare + 1, count))
        out[gaps + 2 * np.arange(count)] = 1
    return out


def with_order(n: int, random: np.random.Generator) -> Documents:
    """Documents whose labels are in the order of their paragraphs alone."""
    x, y = np.full((n, 8, WORDS), np.nan), random.integers(0, 2, n)
    for d in range(n):
        n_steps = int(random.integers(4, 9))
        for i in range(WORDS):
            count = int(random.integers(0, (n_steps + 1) // 2 + 1))
            together = bool(y[d] == 0) if random.random() < FOLLOWING else None
            x[d, :n_steps, i] = placed(random, n_steps, count, together)
    return Documents("order", x, y, 5)


def without_order(n: int, random: np.random.Generator) -> Documents:
    """Documents whose labels are in how often words occur."""
    y = random.integers(0, 3, n)
    rates = random.uniform(0.05, 0.35, (3, WORDS))
    x = (random.random((n, 8, WORDS)) < rates[y][:, None]).astype(float)
    for d in range(n):
        x[d, random.integers(4, 9) :] = np.nan
    return Documents("no order", x, y, 5)


def digit_rows(n: int | None) -> Documents:
    """Images as rows of bits."""
    pixels, y = load_digits(return_X_y=True)
    return Documents("digits", (pixels[:n] > BRIGHT).astype(float).reshape(-1, 8, 8), y[:n].astype(np.intp), 20)


def linear_svm() -> Any:
    """A linear SVM on standardised columns, its C by cross-validation."""
    grid = {"linearsvc__C": [1e-4, 1e-3, 1e-2, 1e-1, 1.0]}
    return GridSearchCV(make_pipeline(StandardScaler(), LinearSVC(random_state=0, max_iter=5000)), grid, cv=5)


@dataclass(frozen=True)
class Split:
    """Rows for training and testing."""

    documents: Documents
    train: Labels
    test: Labels

    def hinge(self, view: Any, x: Numbers) -> float:
        """A max-margin harmonium of one view."""
        y = self.documents.y
        model = mj.HarmoniumClassifier(self.documents.n_components, views={"x": view})
        return float(model.fit({"x": x[self.train]}, y[self.train]).score({"x": x[self.test]}, y[self.test]))

    def two_stages(self, view: Any, x: Numbers) -> float:
        """A harmonium without labels, then a linear SVM on its representation."""
        y = self.documents.y
        model = mj.Harmonium(self.documents.n_components, views={"x": view}).fit({"x": x[self.train]})
        h, h_test = (model.transform({"x": x[rows]}) for rows in (self.train, self.test))
        return float(linear_svm().fit(h, y[self.train]).score(h_test, y[self.test]))


def methods_of(documents: Documents) -> dict[str, Callable[[Split], float]]:
    """What is compared, by name."""
    chain, order_free, bits = mj.Chain(), mj.Chain(latent_transitions=False), mj.Bernoulli()
    methods: dict[str, Callable[[Split], float]] = {
        "structured (chains), max-margin": lambda split: split.hinge(chain, documents.x),
        "structured, two stages": lambda split: split.two_stages(chain, documents.x),
        "words in how many paragraphs, max-margin": lambda split: split.hinge(order_free, documents.x),
        "unstructured (words), max-margin": lambda split: split.hinge(bits, documents.words),
    }
    if documents.name == "digits":
        cells = documents.x.reshape(len(documents.x), -1)
        below = [(8 * row + column, 8 * row + column + 8) for row in range(7) for column in range(8)]
        graph = mj.Bernoulli(edges=below, latent_edges=True)
        methods |= {
            "structured (64 bits, edges), max-margin": lambda split: split.hinge(graph, cells),
            "structured, two stages (64 bits, edges)": lambda split: split.two_stages(graph, cells),
            "unstructured (64 bits), max-margin": lambda split: split.hinge(bits, cells),
        }
    return methods


def told(values: Sequence[float]) -> str:
    """Mean and half the width of a 95 % interval."""
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.3f} +-{half:.3f}"


def compare(documents: Documents, n_splits: int) -> Iterator[str]:
    """A line for each method, in our order."""
    n = len(documents.y)
    splits = []
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(n)
        splits.append(Split(documents, order[: n // 2], order[n // 2 :]))
    yield f"{documents.name}: {n} documents, {n_splits} splits into halves"
    found = {name: [method(split) for split in splits] for name, method in methods_of(documents).items()}
    for name in sorted(found, key=lambda name: -float(np.mean(found[name]))):
        yield f"  {name:42s}{told(found[name])}"


def main(given: Sequence[str] | None = None) -> None:
    """Print the sets that are asked for, line by line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["order", "no order", "digits"])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args(given)
    n, n_splits = (120, 2) if arguments.quick else (600, max(arguments.splits, 2))
    random = np.random.default_rng(0)
    sets = {
        "order": lambda: with_order(n, random),
        "no order": lambda: without_order(n, random),
        "digits": lambda: digit_rows(200 if arguments.quick else None),
    }
    print(PAPER, flush=True)
    for name, make in sets.items():
        documents = make()
        if arguments.only in (None, name):
            for line in compare(documents, n_splits):
                print(line, flush=True)


if __name__ == "__main__":
    main()
