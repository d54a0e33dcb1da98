"""Seeds, shared data, tiers and the settings of generated examples, for every test of the repository."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from .tiers import tier

SEEDS_VARIABLE = "MAJORANT_TEST_SEEDS"
DATA_VARIABLE = "MAJORANT_SHARED_DATA"
SECONDS_VARIABLE = "MAJORANT_TEST_SECONDS"

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")


def function_of(item: pytest.Item) -> str:
    """The file and the function that a case is of, wherever the file lies."""
    return f"{item.path.name}::{item.name.partition('[')[0]}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what waits for `make test-all`."""
    cases = [item.nodeid.partition("[")[0] for item in items]
    number_of, seen = Counter(cases), Counter[str]()
    for item, case in zip(items, cases, strict=True):
        marker = tier(function_of(item), seen[case], number_of[case])
        seen[case] += 1
        if marker is not None:
            item.add_marker(marker)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Record the CPU that a case takes, that of processes that it starts included, where a file is named for it."""
    before = os.times()
    done = yield
    if record := os.environ.get(SECONDS_VARIABLE):
        taken = sum(os.times()[:4]) - sum(before[:4])
        with Path(record).open("a", encoding="utf-8") as file:
            file.write(f"{taken:.3f} {function_of(item)}\n")
    return done


def seeds_of(text: str) -> list[int]:
    """Seeds that a setting names: "" is 42, "all" is 0 to 99, anything else is a list such as "1,2,3"."""
    if text == "all":
        return list(range(100))
    return [int(part) for part in text.split(",")] if text else [42]


@pytest.fixture(params=seeds_of(os.environ.get(SEEDS_VARIABLE, "")))
def seed(request: pytest.FixtureRequest) -> int:
    """A random seed: 42, or those that the environment variable MAJORANT_TEST_SEEDS names."""
    return int(request.param)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """An interrupt arrives, here and in processes that are started here: one run in the background may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of benchmark data that lies beside the repository; without it the test is skipped."""
    beside = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
    path = Path(os.environ.get(DATA_VARIABLE) or beside)
    if not path.is_dir():
        pytest.skip(f"no benchmark data beside the repository; {DATA_VARIABLE} may name their folder")
    return path
