"""Starts for gated experts: how often EM from moments and from random lines ends at the best known optimum.

Mixtures of regressions whose weights depend on covariates are what the papers on moments and on relaxations name as
next. Here are the curves of A. T. Chaganty, P. Liang, "Spectral experts for estimating mixtures of linear regressions",
ICML 2013 (features 1, t, t^4, t^7, noise variance .1), with weights that are a softmax of t with normal coefficients:

    figure 1    the coefficients of the paper's Figure 1, another gate in each instance
    curves      other coefficients too, normal ones

    python experiments/gated_lines.py                      20 instances of 100,000 rows of both (half an hour)
    python experiments/gated_lines.py --quick              2 instances of 20,000 rows: what tests run
    python experiments/gated_lines.py --only curves --rows 20000 --instances 50
    ... --journal FILE --resume --jobs 2                   in pieces (see cells.py)

A fit has reached the best known optimum if its log-likelihood is within a millionth of the best of all fits to the
instance, EM from the truth among them. "moments" is `init="moments"`: the polynomial of degree 3 that is zero on all
lines whatever the gate, from moments of y up to the sixth, and lines through its zeros. "random" is one start, of which
there are five an instance; "random assignment" begins at lines through random thirds of the rows, once an instance;
"default" is the search.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from cells import Cells, add_arguments
from spectral_experts import CURVES, FIGURE_2, NOISE, SAME, Array, em

SETTINGS = ("figure 1", "curves")
N_RANDOM = 5
LEAST = 0.1
"""Smallest share of the rows of a component; gates with less are drawn anew."""


def draw(setting: str, n: int, instance: int) -> tuple[Array, Array, Array, Array]:
    """Return features, the gate's covariate, the response, and the coefficients."""
    random = np.random.default_rng([instance, SETTINGS.index(setting)])
    t = random.uniform(-1, 1, (n, 1))
    x = CURVES.design(t)
    truth = FIGURE_2 if setting == "figure 1" else random.standard_normal((CURVES.k, x.shape[1]))
    while True:
        logits = np.column_stack([np.ones(n), t]) @ random.standard_normal((2, CURVES.k))
        shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        z = (random.random((n, 1)) > shares.cumsum(axis=1)[:, :-1]).sum(axis=1)
        if np.bincount(z, minlength=CURVES.k).min() >= LEAST * n:
            return x, t, np.einsum("ij,ij->i", x, truth[z]) + np.sqrt(NOISE) * random.standard_normal(n), truth


def fits(setting: str, n: int, instance: int) -> dict[str, list[tuple[float, float]]]:
    """Return log-likelihoods and CPU seconds by method."""
    x, t, y, truth = draw(setting, n, instance)
    thirds = np.random.default_rng(instance).integers(CURVES.k, size=n)
    assigned = [np.linalg.lstsq(x[thirds == h], y[thirds == h], rcond=None)[0] for h in range(CURVES.k)]
    scale = np.full(CURVES.k, np.sqrt(NOISE))
    starts: dict[str, list[Any]] = {
        "truth": [{"coef": truth, "scale": scale}],
        "moments": ["moments"],
        "random": ["random"] * N_RANDOM,
        "random assignment": [{"coef": np.array(assigned), "scale": np.full(CURVES.k, y.std())}],
        "default": ["auto"],
    }
    found: dict[str, list[tuple[float, float]]] = {method: [] for method in starts}
    for method, inits in starts.items():
        for seed, init in enumerate(inits):
            began = time.process_time()
            model = em(CURVES.k, x, y, init, seed, gating=t)
            found[method].append((float(model.log_likelihood_), time.process_time() - began))
    return found


def main(arguments: Sequence[str] | None = None) -> dict[str, dict[str, float]]:
    """Print the table, and return shares by setting and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 instances of 20,000 rows")
    parser.add_argument("--only", choices=SETTINGS, help="one setting alone")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--instances", type=int, default=20)
    add_arguments(parser)
    chosen = parser.parse_args(arguments)
    n, instances = (20_000, 2) if chosen.quick else (chosen.rows, chosen.instances)
    cells, shares = Cells.of(chosen), {}
    print(f"Gated curves, {n} rows: instances of which the best known optimum is reached, median CPU seconds of a fit")
    for setting in SETTINGS if chosen.only is None else (chosen.only,):
        asked = {f"{setting}, n = {n}, instance {i}": partial(fits, setting, n, i) for i in range(instances)}
        found = list(cells(asked).values())
        shares[setting] = {}
        for method in found[0] if found else ():
            reached, seconds = [], []
            for one in found:
                best = max(value for values in one.values() for value, _ in values)
                reached += [value >= best - SAME * abs(best) for value, _ in one[method]]
                seconds += [s for _, s in one[method]]
            shares[setting][method] = float(np.mean(reached))
            counts = f"{sum(reached)} of {len(reached)}"
            print(
                f"{setting:9} {method:18} {np.mean(reached):4.0%}  {counts:10}  {np.median(seconds):6.2f} s", flush=True
            )
    cells.close()
    return shares


if __name__ == "__main__":
    main()
