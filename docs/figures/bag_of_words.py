"""The picture of the guide to reconfigurable bags of words.

python docs/figures/bag_of_words.py        writes part_maps.svg beside itself
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.colors import ListedColormap
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.feature_extraction.image import grid_to_graph

import majorant as mj

INK, ROWS, PAPER = "#1c1e21", "#b9b6af", "#fcfbf8"
COLOURS = ["#12489a", "#c04f08", "#2f7d4f", "#8a5fbf", "#b8860b", "#5f6b7a", "#c2408c", "#3aa0a8"]
SHOWN = 8


def mosaics() -> tuple[NDArray[Any], NDArray[Any]]:
    """As in the guide: pictures of 4 x 4 digits, and the layouts that are their classes."""
    digits = load_digits(n_class=4)
    random = np.random.default_rng(0)
    layouts = random.integers(0, 4, (3, 2, 2)).repeat(2, axis=1).repeat(2, axis=2)
    y = np.arange(120) % 3
    shown = np.where(random.random((120, 4, 4)) < 0.25, random.integers(0, 4, (120, 4, 4)), layouts[y])
    tiles = np.stack([digits.images[random.choice(np.flatnonzero(digits.target == k))] for k in shown.ravel()])
    return (tiles / 16).reshape(120, 4, 4, 64), y


def part_maps(path: Path) -> None:
    """Mosaics, and below them the parts of their tiles from three fits."""
    X, y = mosaics()
    coherent = mj.Biased(mj.Coherence(grid_to_graph(4, 4)))
    fits = {
        "annealed start": mj.ReconfigurableBagOfWords(8, alpha=1.0, random_state=0),
        "CCP from k-means": mj.ReconfigurableBagOfWords(
            8, alpha=1.0, latent_init="kmeans", bounds=mj.Tightest(), random_state=0
        ),
        "coherent bounds from k-means": mj.ReconfigurableBagOfWords(
            8, alpha=1.0, latent_init="kmeans", bounds=coherent, random_state=0
        ),
    }
    figure, axes = plt.subplots(4, SHOWN, figsize=(9.4, 5.6), facecolor=PAPER)
    for i, ax in enumerate(axes[0]):
        ax.imshow(X[i].reshape(4, 4, 8, 8).swapaxes(1, 2).reshape(32, 32), cmap="gray_r", vmax=1.2)
        ax.set_title(f"class {y[i]}", fontsize=8, color=INK, pad=3)
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.01, top=0.95, hspace=0.28, wspace=0.06)
    for row, (name, model) in zip(axes[1:], fits.items(), strict=True):
        model.fit(X, y)
        for i, ax in enumerate(row):
            ax.imshow(model.latent_[i], cmap=ListedColormap(COLOURS), vmin=0, vmax=7)
        maps = model.latent_
        pairs = ((maps[:, 1:] != maps[:, :-1]).sum() + (maps[:, :, 1:] != maps[:, :, :-1]).sum()) / len(maps)
        title = (
            f"{name}: objective {model.objective_:.3f}, {len(np.unique(maps))} parts, "
            f"{pairs:.1f} of 24 pairs of neighbours differ"
        )
        figure.text(0.01, row[0].get_position().y1 + 0.012, title, color=INK)
    for ax in axes.ravel():
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_color(ROWS)
    figure.savefig(path, metadata={"Date": None}, facecolor=PAPER)
    plt.close(figure)
    print(path)


def main() -> None:
    mpl.rcParams.update({"svg.hashsalt": "majorant", "svg.fonttype": "path", "font.size": 9})
    part_maps(Path(__file__).parent / "part_maps.svg")


if __name__ == "__main__":
    main()
