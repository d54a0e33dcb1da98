"""A problem of the descent with a few starts: each is told, and compared on all rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from majorant.engine.descent import Seen
from majorant.search.contestants import Run
from majorant.search.few_starts import FewStarts

Array = NDArray[np.float64]


@dataclass
class TwoValleys:
    """``(x^2 - 1)^2 + tilt x``: the lower of two minima is on the left for a positive tilt."""

    tilt: float
    total_weight: float = 1.0
    is_guarded = True

    def seen(self, theta: Array) -> Seen:
        x = theta[:, 0]
        return Seen((x**2 - 1) ** 2 + self.tilt * x, 4 * x * (x**2 - 1) + self.tilt)

    def moved(self, theta: Array, seen: Seen, share: Array) -> Array:
        return theta - 0.05 * (share * seen.statistics)[:, None]

    def extrapolated(self, path: Any, seen: Any) -> None:
        """There is nothing to go on in."""


@dataclass
class Given(FewStarts[Array]):
    points: tuple[float, ...] = (1.5, -1.5, 0.6, -0.4)

    def starts(self, rows: Any, is_first: bool, draws: np.random.Generator) -> list[tuple[str, Array]]:
        return [(f"from {x:g}", np.array([[x]])) for x in self.points]


@dataclass
class Shifting(Given):
    """Runs go to their end from the other side."""

    def finished(self, rows: Any, runs: list[Run[Array]]) -> list[Run[Array]]:
        return [Run(run.source, run.start, -run.theta, -5.0, converged=True, number=run.number) for run in runs]


def found(contest: FewStarts[Array]) -> Any:
    return contest.found(np.random.default_rng(0), 0)


def test_all_starts_are_told_in_their_order() -> None:
    problem = TwoValleys(0.3)
    ends = found(Given(problem, problem, 1e-10, 500, note="Nothing more."))
    assert [r.source for r in ends.records] == ["from 1.5", "from -1.5", "from 0.6", "from -0.4"]
    assert all(r.converged for r in ends.records)
    left, right = ends.records[1].objective, ends.records[0].objective
    assert [r.objective for r in ends.records] == pytest.approx([right, left, right, left], abs=1e-8)
    assert ends.best.objective == pytest.approx(left) and left < right
    assert ends.note == "Nothing more."


def test_those_that_fall_behind_are_told_where_they_were_dropped() -> None:
    problem = TwoValleys(0.3)
    ends = found(Given(problem, problem, 1e-10, 500, ((3, 2),)))
    assert len(ends.records) == 4
    dropped = [r for r in ends.records if not r.converged]
    assert len(dropped) == 2 and all(r.n_iter == 3 for r in dropped)
    assert ends.note == "Of 4 starts the best 2 were continued."


def test_starts_that_race_on_other_rows_are_compared_on_all() -> None:
    whole, part = TwoValleys(0.3), TwoValleys(-0.3)
    ends = found(Given(whole, part, 1e-10, 500, ((60, 1),)))
    lowest = min(r.objective for r in ends.records)
    assert ends.best.objective == lowest  # the part prefers the right, where the whole has the higher minimum
    right = Given(whole, whole, 1e-10, 500, points=(1.0,))
    assert ends.records[0].objective == pytest.approx(found(right).best.objective, abs=1e-2)


def test_a_contest_may_finish_in_its_own_way() -> None:
    problem = TwoValleys(0.3)
    ends = found(Shifting(problem, problem, 1e-10, 500, ((3, 1),)))
    assert ends.best.objective == -5.0 and ends.best.theta[0, 0] > 0
    assert [r.source for r in ends.records if r.objective == -5.0] == [ends.best.source]


def test_the_limit_of_steps_is_told() -> None:
    problem = TwoValleys(0.3)
    with pytest.warns(
        ConvergenceWarning, match="did not converge within 2 steps: allow more, as max_iter=20, or raise tol"
    ):
        found(Given(problem, problem, 1e-12, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found(Given(problem, problem, 1e-3, 500))
