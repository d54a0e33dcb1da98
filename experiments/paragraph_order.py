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
    python experiments/paragraph_order.py --quick            fewer rows, one split, one penalty: what tests run
    ... --journal FILE --resume --jobs 2                     in pieces (see cells.py)

Told is the share of test rows whose label is right, with half the width of a 95 % interval over random splits into
halves. The penalty is chosen within the training rows.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from cells import Cells, add_arguments
from multiview_parts.common import Labels, Numbers, Rows, accuracy, split, splits_of, told
from sklearn.datasets import load_digits

import majorant as mj

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


def digit_rows(n: int | None, n_components: int) -> Documents:
    """Images as rows of bits."""
    pixels, y = load_digits(return_X_y=True)
    return Documents(
        "digits", (pixels[:n] > BRIGHT).astype(float).reshape(-1, 8, 8), y[:n].astype(np.intp), n_components
    )


@dataclass(frozen=True)
class Split:
    """Rows for training and testing."""

    documents: Documents
    train: Rows
    test: Rows
    quick: bool

    def settings(self, l2: float) -> dict[str, Any]:
        """The default ones; in a quick run a fixed penalty, and a rough end."""
        return {"l2": l2, "tol": 1e-6} if self.quick else {}

    def hinge(self, view: Any, x: Numbers) -> float:
        """A max-margin harmonium of one view."""
        y = self.documents.y
        model = mj.HarmoniumClassifier(self.documents.n_components, views={"x": view}, **self.settings(50.0))
        return float(model.fit({"x": x[self.train]}, y[self.train]).score({"x": x[self.test]}, y[self.test]))

    def two_stages(self, view: Any, x: Numbers) -> float:
        """A harmonium without labels, then a linear SVM on its representation."""
        y = self.documents.y
        model = mj.Harmonium(self.documents.n_components, views={"x": view}, **self.settings(0.5))
        model.fit({"x": x[self.train]})
        h, h_test = (model.transform({"x": x[rows]}) for rows in (self.train, self.test))
        return accuracy(h, y[self.train], h_test, y[self.test])


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


def compare(cells: Cells, documents: Documents, n_splits: int, quick: bool) -> Iterator[str]:
    """A line for each method, in our order."""
    n = len(documents.y)
    splits = [Split(documents, *split(n, seed, n // 2, n - n // 2), quick) for seed in range(n_splits)]
    yield f"{documents.name}: {n} documents, {splits_of(n_splits)} into halves"
    found = {}
    for name, method in methods_of(documents).items():
        tasks = {
            f"{documents.name}, {n} documents, {name}, split {seed}": partial(method, own)
            for seed, own in enumerate(splits)
        }
        found[name] = list(cells(tasks).values())
    for name in sorted(filter(found.get, found), key=lambda name: -float(np.mean(found[name]))):
        yield f"  {name:42s}{told(found[name])}"


def main(given: Sequence[str] | None = None) -> None:
    """Print the sets that are asked for, line by line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["order", "no order", "digits"])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--quick", action="store_true")
    add_arguments(parser)
    arguments = parser.parse_args(given)
    cells = Cells.of(arguments)
    n, n_splits = (80, 1) if arguments.quick else (600, arguments.splits)
    random = np.random.default_rng(0)
    sets = {
        "order": lambda: with_order(n, random),
        "no order": lambda: without_order(n, random),
        "digits": lambda: digit_rows(200 if arguments.quick else None, 5 if arguments.quick else 20),
    }
    print(PAPER, flush=True)
    for name, make in sets.items():
        documents = make()
        if arguments.only in (None, name):
            for line in compare(cells, documents, n_splits, arguments.quick):
                print(line, flush=True)
    cells.close()


if __name__ == "__main__":
    main()
