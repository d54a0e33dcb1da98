"""The README's picture: the same rows, the same number of clusters, two starts.

python docs/figures/two_optima.py        writes docs/figures/two_optima.svg and prints the search report
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from numpy.typing import NDArray

import majorant as mj

RIGHT, ASTRAY = "#12489a", "#c04f08"
INK, QUIET, ROWS, PAPER = "#1c1e21", "#686c70", "#b9b6af", "#fcfbf8"


def rows() -> NDArray[np.float64]:
    """Nine overlapping groups on a ring and in its middle."""
    random = np.random.default_rng(5)
    angles = 2 * np.pi * np.arange(8) / 8
    centres = np.vstack([np.zeros(2), np.column_stack([4 * np.cos(angles), 2.6 * np.sin(angles)])])
    return centres[np.repeat(np.arange(9), 60)] + 0.45 * random.standard_normal((540, 2))


def panel(ax: Axes, X: NDArray[np.float64], centres: NDArray[np.float64], best: NDArray[np.float64]) -> None:
    """Rows, and centres marked by whether the best solution has one there too."""
    ax.plot(*X.T, "o", ms=2.4, mfc=ROWS, mec="none")
    for centre in centres:
        astray = np.linalg.norm(best - centre, axis=1).min() > 0.4
        ax.plot(*centre, "D" if astray else "o", ms=6.5, mfc=ASTRAY if astray else RIGHT, mec=PAPER, mew=1.2)
    ax.set_aspect("equal")
    ax.axis("off")


def main() -> None:
    mpl.rcParams.update({"svg.hashsalt": "majorant", "svg.fonttype": "path", "font.size": 9})
    X = rows()
    lucky = mj.KMeans(9, n_init=30, algorithm="lloyd", random_state=0).fit(X)
    worst = max(
        (mj.KMeans(9, init="random", n_init=1, algorithm="lloyd", random_state=s).fit(X) for s in range(30)),
        key=lambda m: m.inertia_,
    )
    figure, axes = plt.subplots(1, 3, figsize=(9.4, 2.9), width_ratios=[1, 1, 0.72], facecolor=PAPER)
    best = lucky.cluster_centers_
    for ax, model, title in zip(axes, (worst, lucky), ("one unlucky start", "best of 30 starts"), strict=False):
        panel(ax, X, model.cluster_centers_, best)
        ax.set_title(f"{title}: SSE {model.inertia_:.1f}", loc="left", fontsize=10, color=INK)
    axes[2].axis("off")
    lines = [("SSE", "starts"), *((f"{o.objective:.2f}", str(o.n_hits)) for o in lucky.search_.optima[:5])]
    axes[2].set_title(f"the search: {lucky.search_.n_starts} starts", loc="left", fontsize=10, color=INK)
    for i, (value, count) in enumerate(lines):
        colour = QUIET if i == 0 else INK
        axes[2].text(0.42, 0.86 - 0.13 * i, value, ha="right", color=colour, transform=axes[2].transAxes)
        axes[2].text(0.75, 0.86 - 0.13 * i, count, ha="right", color=colour, transform=axes[2].transAxes)
    figure.tight_layout()
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None}, facecolor=PAPER)
    print(lucky.search_)


if __name__ == "__main__":
    main()
