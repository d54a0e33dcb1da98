"""The picture and the tables of docs/biases.md: k-means labels of a photograph, and coherent ones.

python docs/figures/coherence.py         writes docs/figures/coherence.svg and prints the tables, in a minute
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from numpy.typing import NDArray
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import grid_to_graph

import majorant as mj

INK, PAPER = "#1c1e21", "#fcfbf8"
BUDGETS = (0.02, 0.05, 0.1, 0.2)
SEEDS = 10


def photograph(step: int) -> NDArray[np.float64]:
    """scikit-learn's picture of a temple: means of squares of `step` by `step` pixels, colours from 0 to 1."""
    picture = load_sample_image("china.jpg") / 255
    height, width = (n // step for n in picture.shape[:2])
    squares = picture[: height * step, : width * step].reshape(height, step, width, step, 3)
    return np.asarray(squares.mean(axis=(1, 3)))


def unequal(bias: mj.Coherence, labels: NDArray[np.integer]) -> int:
    """Neighbours of different labels."""
    a, b = bias.edges.T
    return int(np.sum(labels[a] != labels[b]))


def squares_about_means(x: NDArray[np.float64], labels: NDArray[np.integer]) -> float:
    return sum(float(np.sum((x[labels == k] - x[labels == k].mean(axis=0)) ** 2)) for k in np.unique(labels))


def budgets() -> None:
    picture = photograph(4)
    x = picture.reshape(-1, 3)
    bias = mj.Coherence(grid_to_graph(*picture.shape[:2]))
    model = mj.KMeans(6, random_state=0).fit(x)
    energies = model.transform(x) ** 2
    print(f"{picture.shape[0]} x {picture.shape[1]} pixels, 6 clusters, SSE {model.inertia_:.1f}\n")
    print("| budget, % of the SSE | unequal neighbours | fewer, % | SSE about the means, % more |")
    print("|---:|---:|---:|---:|")
    plain = unequal(bias, model.labels_)
    shown = [model.labels_]
    for share in (0.0, *BUDGETS):
        labels = bias.label(energies, share * model.inertia_)
        more = 100 * (squares_about_means(x, labels) / model.inertia_ - 1)
        n = unequal(bias, labels)
        print(f"| {100 * share:.0f} | {n} | {100 * (1 - n / plain):.1f} | {more:.1f} |")
        if share in (0.05, 0.2):
            shown.append(labels)
    figure, axes = plt.subplots(1, 4, figsize=(10.4, 2.1), facecolor=PAPER)
    titles = ["the photograph", "nearest centres", "coherent, 5 % of the SSE", "coherent, 20 %"]
    pictures = [picture, *(model.cluster_centers_[labels].reshape(picture.shape) for labels in shown)]
    for ax, title, image in zip(axes, titles, pictures, strict=True):
        ax.imshow(np.clip(image, 0, 1), interpolation="nearest")
        ax.set_title(title, loc="left", fontsize=9, color=INK)
        ax.axis("off")
    figure.tight_layout()
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None}, facecolor=PAPER)


def fits() -> None:
    picture = photograph(8)
    x = picture.reshape(-1, 3)
    grid = grid_to_graph(*picture.shape[:2])
    bias = mj.Coherence(grid)
    policies = {
        "tightest (Lloyd)": None,
        "random, `GibbsLimit()`": mj.GibbsLimit(),
        '`Biased(Coherence(grid, method="icm"))`': mj.Biased(mj.Coherence(grid, method="icm")),
    }
    print(f"\n{picture.shape[0]} x {picture.shape[1]} pixels, 8 clusters, {SEEDS} starts at rows drawn at random\n")
    print("| bounds | mean SSE | worst SSE | unequal neighbours |")
    print("|---|---:|---:|---:|")
    for name, bounds in policies.items():
        models = [
            mj.KMeans(8, init="forgy", n_init=1, bounds=bounds, random_state=seed).fit(x) for seed in range(SEEDS)
        ]
        sse = [m.inertia_ for m in models]
        n = np.mean([unequal(bias, m.labels_) for m in models])
        print(f"| {name} | {np.mean(sse):.2f} | {np.max(sse):.2f} | {n:.0f} |", flush=True)
    best = mj.KMeans(8, random_state=0).fit(x)
    print(f"| none: the default search | {best.inertia_:.2f} | | {unequal(bias, best.labels_)} |")


if __name__ == "__main__":
    mpl.rcParams.update({"svg.hashsalt": "majorant", "svg.fonttype": "path", "font.size": 9})
    budgets()
    fits()
