"""CPU time of whole fits as multiples of other fits: Gaussian mixtures with missing cells, and latent classes of texts.

    python benchmarks/ratios.py [--only missing,text] [--data FOLDER]

missing: 344 drawn rows of seven columns, K = 1 to 6: cells that are missing in two patterns, or drawn, beside the same
rows complete. text: the newsgroups of the paper on discriminative latent classes, 500 texts with labels, K = 5, beside
scikit-learn's logistic regression whose C is chosen by five folds; FOLDER holds text/newsgroups20_bow13312.npz.
Single thread, medians over draws or pairs of newsgroups.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from numpy.typing import NDArray

import majorant as mj

DRAWS = 3
SHARES = (0.02, 0.1, 0.3)


def cpu(run: Callable[[], Any]) -> float:
    """Return the seconds of CPU time of a call."""
    began = time.process_time()
    run()
    return time.process_time() - began


def fits(X: NDArray[Any]) -> float:
    """Return the seconds of the default fits of one to six components."""
    return cpu(lambda: [mj.GaussianMixture(k, random_state=0).fit(X) for k in range(1, 7)])


def missing(_: Path) -> None:
    """Print what missing cells cost, by how many are missing."""
    found: dict[str, list[float]] = {}
    for seed in range(DRAWS):
        random = np.random.default_rng(seed)
        centres, maps = random.normal(size=(3, 7)) * 2, random.normal(size=(3, 7, 7)) * 0.4 + np.eye(7)
        own = random.integers(0, 3, 344)
        X = centres[own] + np.einsum("ijk,ik->ij", maps[own], random.normal(size=(344, 7)))
        few = X.copy()
        few[[3, 271], 1:] = np.nan
        few[[10, 50, 99, 200, 300], 6] = np.nan
        tables = {"7 rows in two patterns": few}
        for share in SHARES:
            tables[f"{share:.0%} of the cells"] = np.where(random.random(X.shape) < share, np.nan, X)
        complete = fits(X)
        for name, table in tables.items():
            found.setdefault(name, []).append(fits(table) / complete)
    for name, ratios in found.items():
        print(
            f"missing   {name}: {np.median(ratios):.1f} times complete rows ({', '.join(f'{r:.1f}' for r in ratios)})"
        )


def text(folder: Path) -> None:
    """Print what latent classes cost beside a tuned logistic regression, and their accuracies."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "experiments"))
    from newsgroups import CLASSIFIERS, FILE, PAIRS, documents, scores

    if not (folder / FILE).exists():
        print(f"text: no {folder / FILE}; --data names the folder")
        return
    ratios = []
    for pair in PAIRS[:DRAWS]:
        task, made = documents(folder, pair, 500, 0), {}
        spent = {
            name: cpu(lambda name=name, task=task, made=made: made.update({name: CLASSIFIERS[name](task)}))  # type: ignore[misc]
            for name in ("logistic regression, C by accuracy", "latent classes, K = 5")
        }
        theirs, ours = spent.values()
        ratios.append(ours / theirs)
        right = [f"{scores(run, task)['accuracy']:.3f}" for run in made.values()]
        print(f"text      {pair[0]}: {theirs:.2f} s and {ours:.2f} s, right {' and '.join(right)}", flush=True)
    print(f"text      {np.median(ratios):.1f} times logistic regression")


def main() -> None:
    """Print the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="missing,text")
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parent.parent.parent / "shared" / "data")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # of sizes that do not fit, and of iteration limits of the logistic regression
    for part in (missing, text):
        if part.__name__ in asked.only.split(","):
            part(asked.data)


if __name__ == "__main__":
    main()
