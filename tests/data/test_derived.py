"""What is made of the columns of a block lives as long as they do: of a stream, in one pass."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import majorant as mj
from majorant.data.chunks import Block, Chunks, Mapped
from majorant.engine.mixture import Mixture, OnData
from majorant.laws import Independent
from majorant.models.gaussian_in_units import GaussianInUnits
from majorant.models.hidden_markov.lines import SwitchingLines
from majorant.models.hidden_markov.students import Students
from majorant.solvers.covariance_types import COVARIANCES

from ..mixtures_of_parts import DENSITIES, D, K, N, columns_of

FULL, CENTRE, SCALE = COVARIANCES["full"], np.arange(D, dtype=float), np.full(D, 2.0)
OF_MODELS: dict[str, Any] = {
    "normal in units": lambda: GaussianInUnits(FULL, CENTRE, SCALE, False),
    "normal in units, gaps": lambda: GaussianInUnits(FULL, CENTRE, SCALE, True),
    "Student": lambda: Students(FULL, CENTRE, SCALE),
    "lines": lambda: SwitchingLines(CENTRE, SCALE, False, has_constant=False),
}


def columns_of_model(density: str) -> list[NDArray[np.float64]]:
    """The columns that a density of a model reads, with the gaps that it takes."""
    x = np.random.default_rng(0).normal(CENTRE, SCALE, (N, D))
    if density != "normal in units":
        x[::10, 0 if density.endswith("gaps") else slice(None)] = np.nan
    return [x[:, 1:], x[:, 0]] if density == "lines" else [x]


def file_of(density: str, folder: Path, n: int) -> tuple[Any, list[int]]:
    """Rows of a density, many times over, in a file."""
    columns = columns_of(density, 0) if density in DENSITIES else columns_of_model(density)
    parts = [np.asarray(c).reshape(len(c), -1) for c in columns]
    table = np.concatenate(parts, axis=1)
    np.save(folder / "rows.npy", np.tile(table, (n // len(table), 1)))
    return mj.open_rows(folder / "rows.npy"), [part.shape[1] for part in parts]


@pytest.mark.parametrize("density", [*DENSITIES, *OF_MODELS])
def test_a_pass_over_a_stream_leaves_nothing_of_its_rows_in_memory(density: str, tmp_path: Path) -> None:
    rows, widths = file_of(density, tmp_path, 60_000)

    def parts(block: Block) -> tuple[NDArray[np.float64], ...]:
        columns = np.split(block.columns[0], np.cumsum(widths)[:-1], axis=1)
        return tuple(c[:, 0] if c.shape[1] == 1 else c for c in columns)

    source = Mapped(rows.source, parts)
    on = OnData(Mixture((DENSITIES | OF_MODELS)[density](), Independent(), K), Chunks(source))
    q = np.ascontiguousarray(np.random.default_rng(0).dirichlet(np.ones(K), (1, 60_000)).transpose(0, 2, 1))
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    on.seen(on.mixture.started(q, on.data))
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert after - before < 0.02 * 8 * 60_000 * sum(widths)


def test_what_is_made_of_rows_in_memory_stays_for_the_next_pass() -> None:
    data = Chunks(np.arange(20.0)[:, None], rows=10)
    for n in range(1, 3):
        for block in data.source.blocks():
            block.derived["visits"] = block.derived.get("visits", 0) + 1
            assert block.derived["visits"] == n
            assert block.seen(block.columns).derived is block.derived
