"""Cells of experiments: computed once, kept in a journal, chosen by words of their names."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "experiments"


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module that experiments share, and a way to read arguments as they do."""
    if not FOLDER.is_dir():
        pytest.skip("the scripts are in the repository alone")
    monkeypatch.syspath_prepend(str(FOLDER))
    import cells

    def read(*arguments: str) -> Any:
        parser = argparse.ArgumentParser()
        cells.add_arguments(parser)
        return cells.Cells.of(parser.parse_args(arguments))

    return read


def test_finished_cells_are_not_computed_again(cells: Any, tmp_path: Path) -> None:
    journal, computed = tmp_path / "deep" / "journal.jsonl", []

    def task(number: int) -> Any:
        return lambda: computed.append(number) or {"twice": 2.0 * number, "none": None}

    first = cells("--journal", str(journal))
    assert first({"a, 1": task(1), "b, 2": task(2)})["b, 2"] == {"twice": 4.0, "none": None}
    with journal.open("a") as file:
        file.write('{"cell": "c, 3", "val')  # ended in the middle of a line
    again = cells("--journal", str(journal), "--resume")
    found = again({"a, 1": task(1), "b, 2": task(2), "c, 3": task(3)})
    assert computed == [1, 2, 3] and [v["twice"] for v in found.values()] == [2.0, 4.0, 6.0]
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [line["cell"] for line in lines] == ["a, 1", "b, 2", "c, 3"] and all(line["cpu"] >= 0 for line in lines)


def test_a_journal_is_not_overwritten(cells: Any, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    cells("--journal", str(journal))({"a": lambda: 1})
    with pytest.raises(SystemExit, match="--resume goes on with it"):
        cells("--journal", str(journal))
    with pytest.raises(SystemExit, match="--resume needs --journal"):
        cells("--resume")
    assert len(journal.read_text().splitlines()) == 1


def test_cells_are_chosen_by_words_of_their_names(cells: Any, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    tasks = {f"{data}, {start}": lambda name=(data, start): list(name) for data in "xy" for start in ("cold", "hot")}
    assert list(cells("--cells", "x", "hot", "--journal", str(journal))(tasks)) == ["x, hot"]
    # what is finished is shown whatever is chosen
    found = cells("--cells", "cold", "--journal", str(journal), "--resume")(tasks)
    assert list(found) == ["x, cold", "x, hot", "y, cold"]


def test_two_at_a_time_give_the_same(cells: Any, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = {str(i): (lambda i=i: i * i) for i in range(5)}
    found = cells("--jobs", "2")
    assert found(tasks) == cells()(tasks) == {str(i): i * i for i in range(5)}
    found.close()
    assert "5 cells" in capsys.readouterr().err
