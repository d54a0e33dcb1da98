"""Representations of several views: the paper's questions, with a convex default and a certificate, and peers beside.

N. Chen, J. Zhu, F. Sun, E. Xing, "Large-margin predictive latent subspace learning for multiview data analysis", IEEE
TPAMI, 2012. Its data are not to be had; others of the same kinds stand in for them, so only orderings can be compared.

    python experiments/multiview.py                               all parts, 10 splits
    python experiments/multiview.py --only digits                 one part
    python experiments/multiview.py --only digits --quick         one split of fewer rows, one size: what tests run
    ... --splits 3 --first-seed 7                                 splits 7, 8 and 9
    ... --data FOLDER                                             the folder of the data, or MAJORANT_SHARED_DATA
    ... --journal FILE --resume --jobs 2                          in pieces: a part is a cell (see cells.py)

    digits      accuracy over K (Figure 4), a view that is missing, log-likelihood of bits
    contrastive the paper's training (DWH, TWH, MMH by contrastive divergence) beside the default on the same digits
    corel       tags of pictures: F1 of the first five (Figure 7), log-likelihood
    wikipedia   accuracy and retrieval (Figure 6) from picture and text
    hotel       R2 of scores from words and context (Figure 5)
    starts      20 random starts on the digits, with the certificate
    topics      what components say of ratings and classes, and their words (Figure 3, Table 1)
    reading     how far apart classes lie (Figure 2), the weight of the loss (Figure 10), time (Figure 9b)

Rows are split at random, anew in each split; every hyper-parameter is chosen within the training rows. Told are means
over splits with half the width of a 95 % interval; of harmoniums also how many components were used, and in how many
splits the fit is certified as a global optimum.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

from cells import Cells, add_arguments
from multiview_parts import contrastive, corel, digits, hotel, reading, starts, topics, wikipedia
from multiview_parts.common import Part, Run
from sklearn.exceptions import ConvergenceWarning

BESIDE = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
PARTS: dict[str, Part] = {
    "digits": digits,
    "contrastive": contrastive,
    "corel": corel,
    "wikipedia": wikipedia,
    "hotel": hotel,
    "starts": starts,
    "topics": topics,
    "reading": reading,
}


def main(given: Sequence[str] | None = None) -> None:
    """Print the parts that are asked for, line by line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MAJORANT_SHARED_DATA") or BESIDE))
    parser.add_argument("--quick", action="store_true")
    add_arguments(parser)
    chosen = parser.parse_args(given)
    cells = Cells.of(chosen)
    warnings.simplefilter("ignore", ConvergenceWarning)
    seeds = range(chosen.first_seed, chosen.first_seed + (1 if chosen.quick else chosen.splits))
    run = Run(chosen.data, tuple(seeds), chosen.quick)
    for part in chosen.only:
        if not (run.data / PARTS[part].FILE).exists():
            sys.exit(f"{run.data / PARTS[part].FILE} is not there: --data names the folder of the data")
        name = f"{part}, splits {seeds[0]} to {seeds[-1]}" + (", quick" if run.quick else "")
        for lines in cells({name: partial(lines_of, part, run)}).values():
            print(*lines, sep="\n", flush=True)
    cells.close()


def lines_of(part: str, run: Run) -> list[str]:
    """Return what a part prints."""
    return list(PARTS[part].lines(run))


if __name__ == "__main__":
    main()
