"""The score of every density with every law against differences, and the two ways to the observed information."""

from __future__ import annotations

import numpy as np
import pytest

from majorant.engine.mixture import Scored
from majorant.results.information import STEP, _second_differences, _seen, _slopes_of_score, packed

from ..mixtures_of_parts import DENSITIES, NAMES, laws, problem, started

SCORED = [(d, law) for d, law in NAMES if isinstance(DENSITIES[d](), Scored) and isinstance(laws(0)[law][0], Scored)]


@pytest.mark.parametrize(("density", "law"), SCORED)
def test_the_score_is_the_slope_of_the_log_likelihood(density: str, law: str) -> None:
    random = np.random.default_rng(0)
    on = problem(density, law, weights=np.repeat(random.integers(1, 4, 40), 3).astype(float))
    theta = started(on, 0, 1)
    at = packed(on.mixture, theta)[0]
    moves = 1e-5 * np.eye(len(at))
    values = _seen(on, np.concatenate([at + moves, at - moves]), theta)[0]
    slopes = (values[: len(at)] - values[len(at) :]) / 2e-5
    score = _seen(on, at[None], theta)[1][0]
    np.testing.assert_allclose(score, slopes, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(("density", "law"), SCORED)
def test_slopes_of_the_score_are_second_differences(density: str, law: str) -> None:
    on = problem(density, law)
    theta = started(on, 0, 1)
    at = packed(on.mixture, theta)[0]
    h = STEP * (1 + np.abs(at))
    centre, slopes = _slopes_of_score(on, theta, at, h)
    again, differences = _second_differences(on, theta, at, h)
    assert centre == again
    np.testing.assert_allclose(slopes, differences, rtol=1e-3, atol=1e-3)


def test_all_but_chains_tell_their_score() -> None:
    assert {law for _, law in NAMES} - {law for _, law in SCORED} == {law for law in laws(0) if "chain" in law}
    assert {density for density, _ in SCORED} == set(DENSITIES)
