"""Batches: what is taken, put and stacked keeps every array of every part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from majorant.engine.runs import arrays, mapped, n_runs, put, split, stacked, taken


@dataclass(frozen=True)
class Part:
    a: Any
    b: Any


def batch(n: int, first: float = 0.0) -> Part:
    return Part(np.arange(n) + first, (np.arange(2 * n).reshape(n, 2) + first, None))


def test_runs_are_counted_and_must_agree() -> None:
    assert n_runs(batch(3)) == 3 and len(arrays(batch(3))) == 2
    with pytest.raises(ValueError, match=r"same leading axis.*\[2, 3\]"):
        n_runs(Part(np.zeros(2), np.zeros(3)))


def test_what_is_put_where_it_was_taken_changes_nothing() -> None:
    whole = batch(5)
    again = put(whole, np.array([1, 3]), taken(whole, [1, 3]))
    np.testing.assert_array_equal(again.a, whole.a)
    np.testing.assert_array_equal(again.b[0], whole.b[0])
    assert again.b[1] is None


def test_put_copies() -> None:
    whole = batch(2)
    changed = put(whole, np.array([0]), batch(1, 10.0))
    assert changed.a.tolist() == [10.0, 1.0] and whole.a.tolist() == [0.0, 1.0]


def test_stacked_runs_are_taken_apart_again() -> None:
    both = stacked([batch(2), batch(3, 7.0)])
    np.testing.assert_array_equal(taken(both, slice(2, None)).b[0], batch(3, 7.0).b[0])
    assert mapped(lambda x: x + 1, both).a.tolist() == [1, 2, 8, 9, 10]


def test_a_batch_is_taken_apart_run_by_run() -> None:
    whole = batch(4, 3.0)
    for i, one in enumerate(split(whole)):
        alone = taken(whole, slice(i, i + 1))
        assert one.a.tolist() == alone.a.tolist() and one.b[0].tolist() == alone.b[0].tolist() and one.b[1] is None
    assert len(split(whole)) == 4
    again = stacked(split(whole))
    np.testing.assert_array_equal(again.a, whole.a)
    np.testing.assert_array_equal(again.b[0], whole.b[0])
