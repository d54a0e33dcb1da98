"""Coverage of confidence intervals of mixtures of regressions on simulated data.

    python benchmarks/coverage.py [--replications 500] [--level 0.95] [--method observed] [--jobs 1]

For every model and kind of parameter: how many intervals held the truth (per cent, with its Monte-Carlo error), over
replications and components, and how many fits were degenerate or had no errors (these do not count). Components are
matched to the true ones by their coefficients.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

import majorant as mj

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """A mixture with two coefficients and an intercept in every component."""

    name: str
    n: int
    coef: Array
    intercept: Array
    scale: Array
    logits: Array  # intercept and slope of the second component's, by a gating column
    family: str = "gaussian"
    group_size: int = 1
    options: dict[str, Any] = field(default_factory=dict)

    def draw(self, seed: int) -> tuple[dict[str, Any], Array]:
        """Keywords of ``fit``, and the true parameters by name."""
        g = np.random.default_rng(seed)
        n = self.n
        groups = np.arange(n) // self.group_size
        x, gate = g.normal(size=(n, 2)), g.normal(size=n)[groups]
        share = 1 / (1 + np.exp(-(self.logits[0] + self.logits[1] * gate)))
        which = (g.random(n)[groups] < share).astype(int)
        eta = self.intercept[which] + np.sum(x * self.coef[which], axis=1)
        if self.family == "poisson":
            y = g.poisson(np.exp(eta)).astype(float)
        elif self.family == "binomial":
            y = (g.random(n) < 1 / (1 + np.exp(-eta))).astype(float)
        else:
            y = eta + self.scale[which] * g.normal(size=n)
        given: dict[str, Any] = {"X": x, "y": y}
        if self.logits[1]:
            given["gating"] = gate
        if self.group_size > 1:
            given["groups"] = groups
        return given, x


LINES = {"coef": np.array([[1.0, 0.5], [-1.0, 0.2]]), "intercept": np.array([1.0, -1.0])}
RATES = {"coef": np.array([[0.5, 0.2], [-0.4, 0.1]]), "intercept": np.array([2.0, 0.5])}
NOISE = np.array([0.5, 0.8])
MODELS = [
    Truth("gaussian", 400, **LINES, scale=NOISE, logits=np.array([0.4, 0.0])),
    Truth("poisson", 400, **RATES, scale=np.ones(2), logits=np.array([0.4, 0.0]), family="poisson"),
    Truth("gated", 400, **LINES, scale=NOISE, logits=np.array([0.4, 1.0])),
    Truth("groups", 400, **LINES, scale=NOISE, logits=np.array([0.4, 0.0]), group_size=4),
]


def covered(truth: Truth, seed: int, level: float, method: str) -> dict[str, Array] | None:
    """Whether each interval of one replication holds the truth, by the name of the parameter."""
    given, _ = truth.draw(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mj.RegressionMixture(2, family=truth.family, random_state=seed).fit(**given)
        if not model.regular_ or model.standard_errors_ is None:
            return None
        extra = {} if method == "observed" else {**given, "random_state": seed}
        found = model.confidence_intervals(level, method, **extra)
    lines = np.column_stack([model.intercept_, model.coef_])
    true_lines = np.column_stack([truth.intercept, truth.coef])
    order = linear_sum_assignment(np.sum((true_lines[:, None] - lines) ** 2, axis=2))[1]
    values: dict[str, Any] = {"coef": truth.coef, "intercept": truth.intercept}
    if truth.family == "gaussian":
        values["scale"] = truth.scale
    out = {
        name: ((found[name][0][order] <= value) & (value <= found[name][1][order])).ravel()
        for name, value in values.items()
    }
    if truth.logits[1]:
        sign = 1.0 if order[0] == 0 else -1.0  # against the first component of the fit
        for name, value in (("gating_intercept", truth.logits[0]), ("gating_coef", truth.logits[1])):
            low, high = (end[1].ravel()[0] for end in found[name])
            out[name] = np.array([low <= sign * value <= high])
    else:
        share = 1 / (1 + np.exp(truth.logits[0]))
        weights = np.array([share, 1 - share])
        low, high = (end[order] for end in found["weights"])
        out["weights"] = ((low <= weights) & (weights <= high))[:1]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replications", type=int, default=500)
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--method", default="observed")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    n = arguments.replications
    print(f"intervals of {100 * arguments.level:g} %, method {arguments.method!r}, {n} replications")
    print(f"{'model':<10} {'parameter':<17} {'covered %':>9} {'error':>6} {'intervals':>9} {'left out':>8} {'s':>6}")
    for truth in MODELS:
        begin = time.perf_counter()
        results = Parallel(n_jobs=arguments.jobs)(
            delayed(covered)(truth, seed, arguments.level, arguments.method) for seed in range(n)
        )
        spent = time.perf_counter() - begin
        held = [one for one in results if one is not None]
        for name in held[0]:
            table = np.array([one[name] for one in held], dtype=float)
            share = table.mean(axis=1)  # intervals of one replication are not independent
            error = share.std(ddof=1) / np.sqrt(len(share))
            print(
                f"{truth.name:<10} {name:<17} {100 * share.mean():>9.1f} {100 * error:>6.1f} {table.size:>9} "
                f"{n - len(held):>8} {spent:>6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
