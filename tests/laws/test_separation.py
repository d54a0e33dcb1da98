"""Which covariates are named where coefficients of weights diverge in a direction."""

from __future__ import annotations

import numpy as np
import pytest

from majorant.laws.separation import of_separated, separating

NAMES = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("direction", "named"),
    [
        ([1, 0, 0, 0], ""),
        ([1, 1e-17, 3e-17, 2e-17], ""),  # the constant alone, but for rounding
        ([1, 0, 1e-3, 2e-5], "b"),  # a rare covariate beside a constant that runs far
        ([0, 1, 0.05, -0.5], "a, c"),
    ],
)
def test_covariates_are_named_by_their_part_in_the_direction(direction: list[float], named: str) -> None:
    one = np.array(direction) / np.linalg.norm(direction)
    found = one[:, None], 40 * one, NAMES
    assert separating(*found, np.eye(4), [(0, -1)]) == separating(*found, np.eye(4)) == named
    said = of_separated(*found)
    assert f"Gating by {named} separates" in said if named else said == ""
