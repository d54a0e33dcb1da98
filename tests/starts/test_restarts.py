"""Many starts: the best is kept, and all are on record."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from majorant.engine import Solution, Trace
from majorant.starts.restarts import Start, best_of


def solution(theta: str, objective: float) -> Solution[str]:
    return Solution(theta, objective, 3, 4, True, "tolerance reached after 3 iterations", Trace())


OBJECTIVES = {"a": 5.0, "b": 2.0, "c": 2.0, "d": 9.0}


def fit(start: Start) -> Solution[str]:
    return solution(start.theta, OBJECTIVES[start.theta])


def starts() -> list[Start]:
    return [Start(f"kind {name}", theta=name) for name in OBJECTIVES]


def test_the_first_of_the_best_is_kept() -> None:
    best, records = best_of(starts(), fit)
    assert best.theta == "b" and best.objective == 2.0
    assert [r.source for r in records] == ["kind a", "kind b", "kind c", "kind d"]
    assert [r.objective for r in records] == list(OBJECTIVES.values())
    assert all(r.n_iter == 3 and r.converged for r in records)


def test_starts_are_made_as_they_are_asked_for() -> None:
    done: list[str] = []

    def lazily() -> Any:
        for start in starts():
            assert len(done) == list(OBJECTIVES).index(start.theta)
            yield start

    best_of(lazily(), lambda start: (done.append(start.theta), fit(start))[1])
    assert done == list(OBJECTIVES)


def test_no_starts() -> None:
    with pytest.raises(ValueError, match="at least one start is needed"):
        best_of([], fit)


def test_a_terminal_shows_one_line_and_leaves_it(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    best_of(starts(), fit, verbose=1)
    shown = capsys.readouterr().err
    assert shown.count("\r") == 4 and shown.endswith("start 4, kind d: objective 9\n") and shown.count("\n") == 1


def test_silence_unless_asked(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="majorant"):
        best_of(starts(), fit)
    assert capsys.readouterr() == ("", "")
    assert len(caplog.records) == 4 and "objective 5" in caplog.records[0].getMessage()
    best_of(starts(), fit, verbose=1, unit=10.0)
    shown = capsys.readouterr()
    assert shown.out == "" and len(shown.err.splitlines()) == 4
    assert shown.err.splitlines()[1] == "start 2, kind b: objective 20"
