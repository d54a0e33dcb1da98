"""Spectral Experts of the paper: Tables 1 and 2, Figures 1, 2 and 3, the paper's number beside ours.

A. T. Chaganty, P. Liang, "Spectral experts for estimating mixtures of linear regressions", ICML 2013, section 5.

    python experiments/spectral_experts.py --out FOLDER            everything, as large as in the paper
    python experiments/spectral_experts.py --out FOLDER --quick    few, small instances: what CI runs
    python experiments/spectral_experts.py --out FOLDER --only table_1 --instances 3 --attempts 1
    python experiments/spectral_experts.py --out FOLDER --only figure_1 --n 20000 --attempts 100
    ... --journal FILE --resume --jobs 2            in pieces (see cells.py)

FOLDER gets results.csv (one line a fit), results.md (the tables) and figure_1.svg to figure_3.svg. Errors are Frobenius
norms of (proportions, coefficients) minus the truth under the best matching of components, as in the paper. Its
instances are random, so ours are others from the same law. "spectral (paper)" is algorithm 1 in its printed order, with
its printed penalties and with the noise variance known as there; "our penalties" has larger ones, and "spectral" also
does the third-order regression after whitening; "moments" is moment least
squares, with the noise variance unknown. The columns of EM are fits of `majorant.RegressionMixture` with one noise
variance, unknown to it: from one random start, from the spectral start, from the moments, and by its default search.
Such a fit has succeeded if its log-likelihood is at least that of EM from the truth. Misspecified data leave out t in
[-0.5, -0.25] and [0.25, 0.5] in every variable. The features are those that the paper's text and its identifiability
condition leave possible; the row it calls d = 4, k = 2 has three, the rows it calls d = 5 four.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from cells import Cells, add_arguments
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from majorant import Chunks, RegressionMixture
from majorant.starts.moment_least_squares import moment_least_squares
from majorant.starts.regression_moments import RegressionMoments, regression_moments
from majorant.starts.spectral import spectral_experts

Array = NDArray[np.float64]

NOISE = 0.1

SAME = 1e-6
"""Share of a log-likelihood by which a fit may fall short of EM from the truth: another optimum differs by more."""


@dataclass(frozen=True)
class Setting:
    """A feature map of the paper, with its means in Table 1 for Spectral, EM and Spectral+EM."""

    name: str
    n_variables: int
    k: int
    features: Callable[[Array], list[Array]]
    paper: tuple[float, ...] = ()

    def design(self, t: Array) -> Array:
        return np.column_stack([np.broadcast_to(f, len(t)) for f in self.features(t)])


def four(t: Array) -> list[Array]:
    return [np.ones(1), t[:, 1], t[:, 0], t[:, 0] ** 2 * t[:, 1] ** 2]


def six(t: Array) -> list[Array]:
    a, b = t.T
    return [np.ones(1), b, a, a * b**3, a**2 * b**2, a**3 * b]


TABLE = (
    Setting("1, 4, 2", 1, 2, lambda t: [np.ones(1), t[:, 0], t[:, 0] ** 4], (2.45, 0.28, 0.17)),
    Setting("2, 5, 2", 2, 2, four, (1.38, 0.00, 0.00)),
    Setting("2, 5, 3", 2, 3, four, (2.92, 0.43, 0.31)),
    Setting("2, 6, 2", 2, 2, six, (2.33, 0.63, 0.01)),
)
CURVES = Setting("1, t, t^4, t^7", 1, 3, lambda t: [np.ones(1), t[:, 0], t[:, 0] ** 4, t[:, 0] ** 7])

FIGURE_2 = np.array(
    [[-1.372, 0.135, 1.687], [0.151, -0.774, -0.436], [-0.958, 0.881, 0.516], [-1.280, -0.249, -1.534]]
).T
"""Coefficients of the instance in Figures 1 and 2, one row a component."""

GAPS = ((-0.5, -0.25), (0.25, 0.5))


@dataclass(frozen=True)
class Fit:
    """What EM found."""

    proportions: Array
    coefficients: Array
    log_likelihood: float


def em(k: int, x: Array, y: Array, init: Any, seed: int, gating: Array | None = None) -> RegressionMixture:
    """Fit lines by EM from one start of a kind, or by the search; the features hold the constant."""
    n_init = 1 if isinstance(init, str) and init == "random" else "auto"
    model = RegressionMixture(k, init=init, n_init=n_init, variance="common", fit_intercept=False, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # random starts may end where a component has no rows
        return model.fit(x, y, gating=gating)


@dataclass(frozen=True)
class Instance:
    """Data drawn from a mixture of regressions."""

    x: Array
    y: Array
    coefficients: Array
    seed: int

    @classmethod
    def draw(
        cls, setting: Setting, n: int, seed: Sequence[int], *, truth: Array | None = None, gaps: bool = False
    ) -> Instance:
        """`seed` is the number of the mixture, then that of the attempt."""
        k = setting.k
        random = np.random.default_rng(list(seed))
        t = random.uniform(-1, 1, (n, setting.n_variables))
        if gaps:  # the distribution function of what is left, inverted
            share = random.uniform(0, 1.5, (n, setting.n_variables))
            t = share - 1 + 0.25 * (share > 0.5) + 0.25 * (share > 1.0)
        x = setting.design(t)
        if truth is None:
            truth = np.random.default_rng(seed[0]).standard_normal((k, x.shape[1]))
        y = np.einsum("ij,ij->i", x, truth[random.integers(0, k, n)]) + np.sqrt(NOISE) * random.standard_normal(n)
        return cls(x, y, truth, seed[-1])

    @property
    def k(self) -> int:
        return len(self.coefficients)

    @cached_property
    def moments(self) -> RegressionMoments:
        return regression_moments(Chunks(self.x, self.y))

    def em(self, init: Any) -> Fit:
        """EM from a start of this kind."""
        model = em(self.k, self.x, self.y, init, self.seed)
        return Fit(model.weights_, model.coef_, model.log_likelihood_)

    @cached_property
    def from_truth(self) -> Fit:
        """Where EM from the truth ends."""
        return self.em({"coef": self.coefficients, "scale": np.full(self.k, np.sqrt(NOISE))})

    def is_reached(self, log_likelihood: float) -> bool:
        """Whether a fit is as good as that from the truth."""
        best = self.from_truth.log_likelihood
        return log_likelihood >= best - SAME * abs(best)

    def error(self, proportions: Array, coefficients: Array) -> float:
        """Distance of parameters to the truth, under the best matching of components."""
        return min(
            float(
                np.sqrt(
                    np.sum((coefficients[list(p)] - self.coefficients) ** 2) + np.sum((proportions - 1 / self.k) ** 2)
                )
            )
            for p in permutations(range(self.k))
        )


METHODS: dict[str, Callable[[Instance], Any]] = {
    "spectral (paper)": lambda i: spectral_experts(
        i.moments, i.k, noise_variance=NOISE, whiten_first=False, penalties="paper"
    ),
    "our penalties": lambda i: spectral_experts(i.moments, i.k, noise_variance=NOISE, whiten_first=False),
    "spectral": lambda i: spectral_experts(i.moments, i.k, noise_variance=NOISE),
    "moments": lambda i: moment_least_squares(i.moments, i.k),
    "random + EM": lambda i: i.em("random"),
    "spectral + EM": lambda i: i.em("spectral"),
    "moments + EM": lambda i: i.em("moments"),
    "auto": lambda i: i.em("auto"),
}
"""What is compared: anything that returns an object with `proportions` and `coefficients`."""


@dataclass(frozen=True)
class Record:
    """One fit."""

    part: str
    setting: str
    n: int
    instance: int
    attempt: int
    method: str
    error: float
    seconds: float
    success: bool | None
    """Whether EM got as far as from the truth; None without EM."""


@dataclass(frozen=True)
class Attempt:
    """Data of one instance, to which all methods are fitted."""

    part: str
    setting: Setting
    n: int
    instance: int
    attempt: int
    truth: Array | None = None
    gaps: bool = False

    @property
    def name(self) -> str:
        """Name of its cell."""
        return f"{self.part}, {self.setting.name}, n = {self.n}, instance {self.instance}, attempt {self.attempt}"

    def draw(self) -> Instance:
        numbers = (self.instance, self.attempt)
        return Instance.draw(self.setting, self.n, numbers, truth=self.truth, gaps=self.gaps)

    def __call__(self) -> list[dict[str, Any]]:
        """Fit all methods; return their records without what the attempt says."""
        instance, found = self.draw(), []
        instance.moments  # noqa: B018  the pass is shared, and no method of moments pays for it
        for method, fit in METHODS.items():
            began = time.process_time()
            fitted = fit(instance)
            seconds = time.process_time() - began
            success = instance.is_reached(fitted.log_likelihood) if isinstance(fitted, Fit) else None
            error = instance.error(fitted.proportions, fitted.coefficients)
            found.append({"method": method, "error": error, "seconds": seconds, "success": success})
        return found

    def records(self, found: list[dict[str, Any]]) -> list[Record]:
        return [
            Record(self.part, self.setting.name, self.n, self.instance, self.attempt, **numbers) for numbers in found
        ]


@dataclass(frozen=True)
class Size:
    """How much is computed."""

    n: int
    instances: int
    attempts: int
    figure_attempts: int
    lengths: tuple[int, ...]


FULL = Size(500_000, 20, 10, 170, (1_000, 5_000, 10_000, 50_000, 100_000, 500_000))
QUICK = Size(3_000, 1, 1, 2, (1_000,))


def table(part: str, size: Size, gaps: bool) -> list[Attempt]:
    return [
        Attempt(part, setting, size.n, i, j, gaps=gaps)
        for setting in TABLE
        for i in range(size.instances)
        for j in range(size.attempts)
    ]


def figure_1(size: Size) -> list[Attempt]:
    return [Attempt("figure_1", CURVES, size.n, 0, j, FIGURE_2) for j in range(size.figure_attempts)]


def figure_3(size: Size) -> list[Attempt]:
    return [
        Attempt("figure_3_gaps" if gaps else "figure_3", CURVES, n, 0, j, FIGURE_2, gaps)
        for gaps in (False, True)
        for n in size.lengths
        for j in range(size.attempts)
    ]


PARTS: dict[str, Callable[[Size], list[Attempt]]] = {
    "table_1": lambda size: table("table_1", size, gaps=False),
    "table_2": lambda size: table("table_2", size, gaps=True),
    "figure_1": figure_1,
    "figure_3": figure_3,
}


def markdown(records: list[Record]) -> str:
    """The tables, and what the histograms of Figure 1 say in numbers."""
    lines = []
    titles = {
        "table_1": "Table 1: error, mean +- sd (fits as good as EM from the truth)",
        "table_2": "Table 2, misspecified data: error, mean +- sd (fits as good as EM from the truth)",
        "figure_1": "Figure 1: error on one instance with three components (fits as good as EM from the truth)",
    }
    for part, title in titles.items():
        chosen = [r for r in records if r.part == part]
        if not chosen:
            continue
        with_paper = part == "table_1"
        heads = ["b, d, k", *(["paper: Spectral", "EM", "Spectral+EM"] if with_paper else []), *METHODS]
        lines += [f"### {title}, n = {chosen[0].n}", "", "| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
        for setting in dict.fromkeys(r.setting for r in chosen):
            paper = next((s.paper for s in TABLE if s.name == setting), ()) if with_paper else ()
            cells = [setting, *(f"{value:.2f}" for value in paper)]
            for method in METHODS:
                own = [r for r in chosen if r.setting == setting and r.method == method]
                cell = f"{np.mean([r.error for r in own]):.2f} +- {np.std([r.error for r in own]):.2f}"
                reached = [r.success for r in own if r.success is not None]
                cells.append(f"{cell} ({sum(reached)}/{len(reached)})" if reached else cell)
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    seconds = {m: [r.seconds for r in records if r.method == m] for m in METHODS}
    lines.append(
        "Median seconds, of moment methods after the pass: "
        + ", ".join(f"{m} {np.median(s):.3f}" for m, s in seconds.items() if s)
    )
    return "\n".join(lines) + "\n"


def write_csv(records: list[Record], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Record.__dataclass_fields__)
        writer.writerows([getattr(r, field) for field in Record.__dataclass_fields__] for r in records)


def plots(records: list[Record], size: Size, folder: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    histogram = [r for r in records if r.part == "figure_1"]
    if histogram:
        figure, axes = plt.subplots(figsize=(6, 3.5))
        axes.hist([[r.error for r in histogram if r.method == m] for m in METHODS], bins=20, label=list(METHODS))
        axes.set(xlabel="error", ylabel="attempts")
        axes.legend()
        _save(figure, folder / "figure_1.svg")

    t = np.linspace(-1, 1, 200)[:, None]
    instance = Instance.draw(CURVES, size.n, (0, 0), truth=FIGURE_2)
    figure, panels = plt.subplots(2, 4, figsize=(14, 7), sharey=True)
    for axes, (method, fit) in zip(panels.flat, METHODS.items(), strict=True):
        axes.plot(instance.x[:2000, 1], instance.y[:2000], ".", markersize=1, color="0.6")
        axes.plot(t, CURVES.design(t) @ FIGURE_2.T, color="black")
        axes.plot(t, CURVES.design(t) @ fit(instance).coefficients.T, "--", color="C3")
        axes.set(title=method, xlabel="t", ylim=(-5, 5))
    _save(figure, folder / "figure_2.svg")

    curves = [r for r in records if r.part.startswith("figure_3")]
    if curves:
        figure, panels = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True)
        for axes, part, title in zip(
            panels, ("figure_3", "figure_3_gaps"), ("well specified", "misspecified"), strict=True
        ):
            for method in METHODS:
                own = [r for r in curves if (r.part, r.method) == (part, method)]
                errors = {n: [r.error for r in own if r.n == n] for n in sorted({r.n for r in own})}
                means, deviations = ([f(values) for values in errors.values()] for f in (np.mean, np.std))
                axes.errorbar(list(errors), means, deviations, label=method, capsize=2)
            axes.set(title=title, xscale="log", xlabel="n", ylabel="error")
        panels[0].legend()
        _save(figure, folder / "figure_3.svg")


def _save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--quick", action="store_true", help="small versions of everything")
    parser.add_argument("--only", choices=PARTS, help="one part alone")
    parser.add_argument("--n", type=int, help="rows of an instance (500 000 in the paper)")
    parser.add_argument("--instances", type=int, help="instances a row of the tables (20 in the paper)")
    parser.add_argument("--attempts", type=int, help="attempts an instance (10 in the paper, in Figure 1 170)")
    add_arguments(parser)
    chosen = parser.parse_args(arguments)
    size = QUICK if chosen.quick else FULL
    size = Size(
        chosen.n or size.n,
        chosen.instances or size.instances,
        chosen.attempts or size.attempts,
        chosen.attempts or size.figure_attempts,
        size.lengths,
    )
    chosen.out.mkdir(parents=True, exist_ok=True)
    attempts = [a for part, run in PARTS.items() if chosen.only in (None, part) for a in run(size)]
    cells = Cells.of(chosen)
    found = cells({a.name: a for a in attempts})
    records = [record for a in attempts if a.name in found for record in a.records(found[a.name])]
    write_csv(records, chosen.out / "results.csv")
    text = markdown(records)
    (chosen.out / "results.md").write_text(text, encoding="utf-8")
    print(text)
    plots(records, size, chosen.out)
    cells.close()


if __name__ == "__main__":
    main()
