"""Mixtures of regressions of flexmix's help pages and vignettes: R's frozen answers beside ours.

    python -m benchmarks.flexmix_references FOLDER [CASE ...]

FOLDER holds the tables flexmix_*.csv, written from the R package of this name. R's answers, and the scripts that
made them, are in tests/reference/regression_mixtures: the best of 50 random starts, and what flexmix's refit() makes of
it.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from tests.flexmix import CASES, Answer, case, flat, references

HEAD = ["case", "flexmix, best of 50", "runs there", "after refit()", "majorant", "CPU, s", "coefficients apart"]


def main(folder: Path, chosen: Sequence[str]) -> None:
    found = references()
    print(f"| {' | '.join(HEAD)} |")
    print("|---" * len(HEAD) + "|")
    for name in chosen or CASES:
        reference, mine = found[name], case(name, folder)
        answer = Answer.of(reference)
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = mine.fit()
        spent = time.process_time() - began
        ours = flat(model, mine, answer.names)
        apart = np.abs(ours[answer.order(ours)] - answer.coef).max()
        refit = reference.get("ml")
        cells = [name, f"{reference['log_likelihood']:.4f}", str(reference["at_best"])]
        cells += [
            f"{refit['log_likelihood']:.4f}" if refit else "fails",
            f"{model.log_likelihood_:.4f}",
            f"{spent:.2f}",
        ]
        print(f"| {' | '.join([*cells, f'{apart:.1e}'])} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
