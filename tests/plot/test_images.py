"""A few plots, pixel by pixel, beside pictures that somebody has looked at.

Text is taken away, as its pixels depend on the version of FreeType. What is drawn is fixed by hand or by a seed, so
that only matplotlib's rasteriser is left to vary: `TOLERANCE` is above what versions 3.8 to 3.11 differ by (0) and far
below what one mark of another colour does, as the last test shows.

``python -m tests.plot.test_images`` draws the pictures anew.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.testing.compare import compare_images
from matplotlib.text import Text

import majorant as mj
from majorant.plot.style import COLOURS
from majorant.results.selection import Candidate, Selection
from majorant.search import SearchReport, StartRecord

from ..mixtures import reference, rows

BASELINE = Path(__file__).parent / "baseline"
TOLERANCE = 1.0
"""Root mean square of the differences of all channels of all pixels, of 255."""
MOST_BYTES = 20_000


def starts(ax: Any) -> None:
    model = mj.KMeans(2, random_state=0).fit(np.eye(3))
    ends = [("random", 3.0), ("random", 2.0), ("split", 2.0), ("split", 2.0), ("split", 5.0)]
    model.search_ = SearchReport(tuple(StartRecord(kind, value, 1, True) for kind, value in ends), "SSE")
    mj.plot.starts(model, ax)


def criterion(ax: Any) -> None:
    values = {(1, "full"): 9.0, (2, "full"): 4.0, (3, "full"): 6.0, (1, "tied"): 9.5, (3, "tied"): 4.5}
    candidates = [Candidate(k, {"covariance_type": kind}, value) for (k, kind), value in values.items()]
    selection = Selection(tuple(candidates), "bic", "mixture", "component", "n_components", "log-likelihood")
    mj.plot.criterion(selection, ax)


def mixture() -> Any:
    """Two normal components, by hand: no fit, whose last digits could depend on a version."""
    model = reference()
    deviations = np.array([[2.0, 0.5, 1.0], [1.0, 1.0, 1.0]])
    model.weights_, model.means_ = np.array([0.5, 0.5]), np.array([[0.0, 0.0, 0.0], [1.8, 1.8, 1.8]])
    model.covariances_ = np.array([np.diag(d**2) for d in deviations])
    model.precisions_cholesky_ = np.array([np.diag(1 / d) for d in deviations])
    return model


PLOTS: dict[str, Callable[[Any], Any]] = {
    "classification": lambda ax: mj.plot.classification(mixture(), rows(), ax=ax),
    "density": lambda ax: mj.plot.density(mixture(), rows(), ax=ax, n_levels=4),
    "criterion": criterion,
    "starts": starts,
}


def draw(name: str, path: Path) -> None:
    """The plot without any text, on default settings."""
    with mpl.rc_context({**mpl.rcParamsDefault, "backend": "agg"}):
        figure, ax = pyplot.subplots(figsize=(3.0, 2.4))
        PLOTS[name](ax)
        if ax.get_legend() is not None:
            ax.get_legend().remove()
        for text in figure.findobj(Text):
            text.set_visible(False)
        figure.savefig(path, dpi=60, metadata={"Software": None})
        pyplot.close(figure)


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_looks_as_it_did(name: str, tmp_path: Path) -> None:
    drawn, expected = tmp_path / f"{name}.png", BASELINE / f"{name}.png"
    draw(name, drawn)
    assert expected.stat().st_size < MOST_BYTES
    assert compare_images(str(expected), str(drawn), TOLERANCE) is None


@pytest.mark.parametrize("name", ["classification", "density"])
def test_one_colour_that_changes_is_seen(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("majorant.plot.style.COLOURS", (COLOURS[0], COLOURS[2], *COLOURS[2:]))
    monkeypatch.setattr("majorant.plot.parts.GREY", "#bbbbbb")
    drawn = tmp_path / f"{name}.png"
    draw(name, drawn)
    assert compare_images(str(BASELINE / f"{name}.png"), str(drawn), TOLERANCE) is not None


if __name__ == "__main__":
    BASELINE.mkdir(exist_ok=True)
    for each in PLOTS:
        draw(each, BASELINE / f"{each}.png")
