"""Estimates at the edge of their range: where EM is on its way to one, it never arrives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from majorant.densities.categorical import NOTHING
from majorant.engine.descent import Ends, descend
from majorant.engine.mixture import Edged, OnData

ROWS = (0.5, 0.05, 0.005, 0.001)
"""Expected rows below which what EM makes smaller still is tried at the edge."""


def at_edges(on: OnData, ends: Ends[Any], *, tol: float, max_iter: int) -> Ends[Any]:
    """Put at the edge what EM is bringing there, if that costs no likelihood, and let the rest settle."""
    density = on.mixture.density
    if not isinstance(density, Edged):
        return ends
    for rows in ROWS:
        moved = density.at_edges(ends.theta.density, ends.seen.statistics.density, rows)
        if moved is None:
            continue
        theta = replace(ends.theta, density=moved)
        if on.seen(theta).objective[0] <= ends.objective[0]:
            after = descend(on, theta, tol=tol, max_iter=max_iter)
            again = density.at_edges(after.theta.density, after.seen.statistics.density, NOTHING)
            theta = after.theta if again is None else replace(after.theta, density=again)
            return replace(ends, theta=theta, seen=on.seen(theta))
    return ends
