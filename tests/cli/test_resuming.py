"""A stopped run goes on from its checkpoint, to the end that it would have had."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from majorant.persistence import load
from majorant.search.race import Race

from ..estimators import assert_same_fit

FIT = ["fit", "gaussian-mixture", "t.npz", "--k", "2:4", "--no-report", "--out"]


def stop_at(monkeypatch: pytest.MonkeyPatch, round_: int) -> None:
    """Press Ctrl-C at the beginning of a round, counted over all searches."""
    raced, rounds = Race._raced, 0

    def stopped(race: Any, *arguments: Any) -> Any:
        nonlocal rounds
        rounds += 1
        if rounds == round_:
            raise KeyboardInterrupt
        return raced(race, *arguments)

    monkeypatch.setattr(Race, "_raced", stopped)


@pytest.mark.usefixtures("interruptible")
def test_a_stopped_run_goes_on(majorant: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(120, 2)) + 5 * np.eye(3, 2)[np.arange(120) % 3]
    np.savez(tmp_path / "t.npz", X=X)
    assert majorant(*FIT, "whole").status == 0
    expected = load("whole/model.majorant")
    assert "no run was stopped there" in majorant(*FIT, "whole", "--resume").words
    for place in (2, 4):
        with pytest.MonkeyPatch.context() as patch:
            stop_at(patch, place)
            answer = majorant(*FIT, "part", *(["--resume"] if Path("part").exists() else []))
        assert answer.status == 130 and "--resume goes on from here" in answer.out
        assert load("part/model.majorant").search_.is_stopped
    assert "stopped with other options" in majorant(*FIT, "part", "--resume", "--drop-missing").words
    answer = majorant(*FIT, "part", "--resume")
    assert (answer.status, answer.err) == (0, "")
    assert_same_fit(load("part/model.majorant"), expected)
    assert sorted(path.name for path in Path("part").iterdir()) == sorted(path.name for path in Path("whole").iterdir())
