"""The pictures of the guide to latent SVMs.

python docs/figures/latent_svm.py        writes weakly_labelled.svg and multiple_instances.svg beside itself
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from sklearn.datasets import load_digits

import majorant as mj

RIGHT, ASTRAY = "#12489a", "#c04f08"
INK, ROWS, PAPER = "#1c1e21", "#b9b6af", "#fcfbf8"


def frame(ax: Axes, chosen: int, colour: str) -> None:
    a, b = divmod(int(chosen), 5)
    ax.add_patch(Rectangle((2 * b - 0.5, 2 * a - 0.5), 8, 8, fill=False, ec=colour, lw=1.6))


def weakly_labelled(path: Path) -> None:
    """Windows of the annealed start, and of the concave-convex procedure from the top left."""
    digits = load_digits(n_class=6)
    random = np.random.default_rng(0)
    pictures, places = np.zeros((240, 16, 16)), random.integers(0, 5, (240, 2))
    for picture, digit, (a, b) in zip(pictures, digits.images, places, strict=False):
        picture[2 * a : 2 * a + 8, 2 * b : 2 * b + 8] = digit / 16
    y = digits.target[:240]
    corners = [(a, b) for a in range(0, 9, 2) for b in range(0, 9, 2)]
    X = np.stack([pictures[:, a : a + 8, b : b + 8].reshape(240, 64) for a, b in corners], axis=1)
    annealed = mj.LatentSVC(alpha=0.03, random_state=0).fit(X[:180], y[:180])
    ccp = mj.LatentSVC(alpha=0.03, latent_init="first", bounds=mj.Tightest(), random_state=0).fit(X[:180], y[:180])
    figure, axes = plt.subplots(2, 9, figsize=(9.4, 2.5), facecolor=PAPER)
    for row, (model, colour) in zip(axes, ((annealed, RIGHT), (ccp, ASTRAY)), strict=True):
        for i, ax in enumerate(row):
            ax.imshow(pictures[i], cmap="gray_r", vmax=1.4)
            frame(ax, model.latent_[i], colour)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_color(ROWS)
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.02, top=0.88, hspace=0.35, wspace=0.08)
    for row, model, name in zip(axes, (annealed, ccp), ("annealed start", "CCP from the corner"), strict=True):
        found = np.mean(model.latent_ == places[:180] @ [5, 1])
        title = f"{name}: objective {model.objective_:.3f}, {found:.0%} of windows on the digit"
        figure.text(0.01, row[0].get_position().y1 + 0.03, title, color=INK)
    save(figure, path)


def multiple_instances(path: Path) -> None:
    """Instances of positive and negative bags, those that decide, and the means of the bags."""
    random = np.random.default_rng(0)
    label = np.arange(120) % 2
    bags = random.normal(size=(120, 6, 2))
    bags[np.arange(120), random.integers(0, 6, 120)] += 3.0 * label[:, None]
    model = mj.LatentSVC(alpha=0.01, form="shared", random_state=0).fit(bags, label)
    figure, axes = plt.subplots(1, 2, figsize=(9.4, 3.2), sharex=True, sharey=True, facecolor=PAPER)
    colours = np.where(label == 1, ASTRAY, RIGHT)
    axes[0].scatter(*bags.mean(axis=1).T, s=9, c=colours)
    axes[0].set_title("the mean of each bag", loc="left", fontsize=9, color=INK)
    axes[1].plot(*bags.reshape(-1, 2).T, "o", ms=2, mfc=ROWS, mec="none")
    axes[1].scatter(*bags[np.arange(120), model.latent_].T, s=9, c=colours, zorder=3)
    line(axes[1], model.coef_[0], float(model.intercept_[0]))
    right = model.score(bags, label)
    axes[1].set_title(f"the instance that decides: {right:.0%} of bags right", loc="left", fontsize=9, color=INK)
    for ax in axes:
        ax.set(xticks=[], yticks=[], xlim=(-3.5, 6), ylim=(-3.5, 6))
        ax.spines[:].set_color(ROWS)
    figure.tight_layout()
    save(figure, path)


def line(ax: Axes, w: NDArray[np.float64], b: float) -> None:
    x = np.array([-4.0, 7.0])
    ax.plot(x, -(b + w[0] * x) / w[1], color=INK, lw=1)


def save(figure: Any, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None}, facecolor=PAPER)
    plt.close(figure)
    print(path)


def main() -> None:
    mpl.rcParams.update({"svg.hashsalt": "majorant", "svg.fonttype": "path", "font.size": 9})
    folder = Path(__file__).parent
    weakly_labelled(folder / "weakly_labelled.svg")
    multiple_instances(folder / "multiple_instances.svg")


if __name__ == "__main__":
    main()
