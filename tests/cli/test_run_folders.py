"""The folder of a run is one run's at any time: whoever writes at once, and whenever a process is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

import majorant as mj
from majorant.cli.errors import CommandError
from majorant.cli.runs import FILES, MODEL, REPORT, SUMMARY, Writer, check_free, write_run

GONE = 2**22 + 1
"""No process has this number: Linux has none above 2^22."""


def writers(text: str, names: Iterable[str] = FILES) -> dict[str, Writer]:
    """A run whose files all hold the same text."""

    def write(path: Path) -> None:
        path.write_text(text)

    return dict.fromkeys(names, write)


def texts(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_of_runs_at_once_into_a_new_folder_one_succeeds(tmp_path: Path) -> None:
    folder, all_ready, refused = tmp_path / "run", threading.Barrier(3), []

    def run(text: str) -> None:
        check_free(folder, False)
        late = {**writers(text), SUMMARY: lambda path: (all_ready.wait(), path.write_text(text))[0] and None}
        try:
            write_run(folder, late)
        except CommandError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=run, args=(text,)) for text in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 2
    assert all("another run was written to" in message for message in refused)
    assert len(set(texts(folder).values())) == 1
    assert sorted(texts(folder)) == sorted(FILES)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_force_replaces_a_run_as_a_whole_and_keeps_what_is_not_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_run(folder, writers("old"))
    (folder / REPORT).write_text('<a hidden download="clusters.csv">')
    for name in ("notes.txt", "tables/mine.csv", "deep/er/notes.txt", "tables/clusters.csv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine")
    (folder / "empty").mkdir()
    (folder / "link").symlink_to("notes.txt")
    folder.chmod(0o750)
    check_free(folder, True)
    write_run(folder, writers("new", (MODEL, SUMMARY)), force=True)
    kept = {"notes.txt": "mine", "tables/mine.csv": "mine", "deep/er/notes.txt": "mine", "link": "mine"}
    assert texts(folder) == {MODEL: "new", SUMMARY: "new", **kept}
    assert (folder / "empty").is_dir() and (folder / "link").is_symlink()
    assert folder.stat().st_mode & 0o777 == 0o750
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_force_replaces_runs_alone(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / REPORT).write_text("mine")
    with pytest.raises(CommandError, match=r"photos holds no model.majorant: --force replaces runs alone"):
        check_free(folder, True)
    assert texts(folder) == {REPORT: "mine"}


def test_the_working_directory_may_be_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text, force in (("old", False), ("new", True)):
        check_free(Path(), force)
        write_run(Path(), writers(text), force=force)
        assert texts(Path()) == dict.fromkeys(FILES, text)
    assert Path().stat().st_ino == tmp_path.stat().st_ino
    with pytest.raises(CommandError, match="another run was written"):
        write_run(Path(), writers("late"))
    assert texts(Path()) == dict.fromkeys(FILES, "new")


KILLED = """
import os, signal, sys
from pathlib import Path
from majorant.cli import runs

left, rename = int(sys.argv[2]), Path.rename

def killed(self, target):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return rename(self, target)

Path.rename = killed
def write(path):
    path.write_text("new")
runs.write_run(Path(sys.argv[1]), dict.fromkeys(runs.FILES, write), force=True)
"""


@pytest.mark.parametrize("n_renames", [0, 1])
def test_a_kill_leaves_the_earlier_run_or_the_new_one(tmp_path: Path, n_renames: int) -> None:
    folder = tmp_path / "run"
    write_run(folder, writers("old"))
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(n_renames)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 2
    check_free(folder, True)
    assert texts(folder) == dict.fromkeys(FILES, "old")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_what_killed_processes_left_is_removed_at_the_next_start_and_nothing_else(tmp_path: Path) -> None:
    model = mj.KMeans(1, random_state=0).fit(np.zeros((2, 1)))
    path, other = tmp_path / "fit.majorant", tmp_path / f".fit.majorant.{os.getpid()}-00ff.tmp"
    left = [tmp_path / f".fit.majorant.{GONE}-00ff.tmp", tmp_path / f".run.{GONE}-00ff.tmp"]
    strange = [tmp_path / ".fit.majorant.notes.tmp", tmp_path / f".fit.other.{GONE}-00ff.tmp"]
    for file in (left[0], other, *strange):
        file.write_text("half")
    left[1].mkdir()
    (left[1] / "half").write_text("half")
    model.save(path)
    check_free(tmp_path / "run", False)
    assert set(tmp_path.iterdir()) == {path, other, *strange}
    left[0].write_text("half")
    with mj.checkpoint(path.with_name("other")):
        pass
    assert left[0].exists()
    with pytest.raises(ValueError, match="is not a checkpoint"), mj.checkpoint(path):
        pass
    assert not left[0].exists()
