"""Sizes whose products overflow and places that no table has: every kernel refuses them, and reads nothing there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from majorant import _kernels

WIDE, HUGE = 2**32, 2**40


def claimed(*shape: int, dtype: Any = np.float64) -> NDArray[Any]:
    """Return an array over one number that claims to have a shape: whoever reads past that number has not checked."""
    size = np.dtype(dtype).itemsize
    strides = [size * int(np.prod([max(n, 1) for n in shape[axis + 1 :]], dtype=object)) for axis in range(len(shape))]
    return np.lib.stride_tricks.as_strided(np.ones(1, dtype), shape, strides)


some, whole = claimed, partial(claimed, dtype=np.int64)
numbers, flags = partial(claimed, dtype=np.int32), partial(claimed, dtype=np.uint8)


def bags(edges: list[int], *, d: int = 2, classes: int = 2) -> Any:
    """Ask for one bag of sparse rows, of which there are two entries."""
    entries = np.ones((1, 2)), np.array(edges), np.array([0, 1], dtype=np.int32)
    return _kernels.bags(*entries, d, 1.0, np.array([0]), np.array([1]), np.zeros(1, np.int32), classes, 0)


def dense_bags(starts: int, counts: int, codes: int = 0) -> Any:
    return _kernels.bags(
        np.ones((3, 2)), None, None, 2, 1.0, np.array([starts]), np.array([counts]), np.array([codes], np.int32), 2, 0
    )


def chains(offsets: list[int], *, states: int = 2, positions: int = 3) -> Any:
    scores = some(positions, states), some(1, states, states)
    return _kernels.chain_sums(*scores, np.array(offsets), None, None, some(len(offsets) - 1))


def medoids(at: tuple[int, ...] = (0, 2), n: int = 3) -> Any:
    """Ask for medoids of three rows, whose places are kept in arrays of the caller."""
    table = np.abs(np.subtract.outer(np.arange(float(n)), np.arange(float(n))))
    places = np.zeros(3, np.int32), np.zeros(3, np.int32), np.zeros(3), np.zeros(3), np.zeros((3, len(at)))
    return _kernels.MedoidsF64(table, np.ones(3), np.array(at), *places)


def search() -> Any:
    return _kernels.swap_search(np.arange(4.0)[:, None], np.ones(4), 2, 0)


CALLS: dict[str, Callable[[], Any]] = {
    # d x d of 2^32 columns is 2^64 numbers, which a size of 64 bits takes for none.
    "factor of full covariances": lambda: _kernels.gauss_factor(some(0), WIDE, 0, some(0), some(1)),
    "factor of many covariances": lambda: _kernels.gauss_factor(some(0), 2**16, 0, some(0), some(WIDE)),
    "factor of a tied covariance": lambda: _kernels.gauss_factor(some(0), WIDE, 1, some(0), some(1)),
    "factor of less than no columns": lambda: _kernels.gauss_factor(some(1), -1, 0, some(1), some(1)),
    "Gaussian step": lambda: _kernels.gauss_step(
        some(1, 1 + WIDE + 2**31),
        some(1, WIDE),
        0,
        1.0,
        False,
        some(1),
        some(1, WIDE),
        some(0),
        some(0),
        some(1),
        flags(1),
    ),
    "Gaussian energies": lambda: _kernels.gauss_energies(some(1, WIDE), some(1, WIDE), some(0), some(1), 0, some(1, 1)),
    "Gaussian pass": lambda: _kernels.gauss_pass(some(1, WIDE), None, some(1, WIDE), some(0), some(1), 1, 1.0, None),
    "Gaussian moments": lambda: _kernels.gauss_moments(
        some(1, WIDE), None, some(1, WIDE), some(1, 1), 0, some(1, 1 + WIDE + 2**31)
    ),
    "runs of EM": lambda: _kernels.gauss_em(
        some(1, WIDE),
        None,
        0,
        1.0,
        0,
        0.0,
        False,
        some(1, 1),
        some(1, 1, WIDE),
        some(1, 0),
        None,
        some(1, 1),
        whole(1),
        flags(1, 1),
        flags(1),
    ),
    "steps of EM": lambda: _kernels.gauss_em(
        some(1, 1),
        None,
        0,
        1.0,
        2**63 - 1,
        0.0,
        False,
        some(0, 1),
        some(0, 1, 1),
        some(0, 1),
        None,
        some(0, 1),
        whole(0),
        flags(0, 1),
        flags(0),
    ),
    "pass over lines": lambda: _kernels.regression_pass(
        some(1, WIDE), some(1), None, some(1), some(1, WIDE), some(1), 1.0, some(1, 2 + WIDE + 2**31)
    ),
    "EM of lines": lambda: _kernels.regression_em(
        some(1, WIDE), some(1), None, 1.0, 1.0, False, 1, 0.0, some(1), some(1, WIDE), some(1)
    ),
    "losses of wide rows": lambda: _kernels.response_losses(
        0, 1.0, some(WIDE, WIDE), some(WIDE), None, None, some(1, WIDE), some(1), some(1, WIDE)
    ),
    "losses of many models": lambda: _kernels.response_losses(
        2, 1.0, some(0, WIDE), some(WIDE), None, None, some(WIDE, 0), some(WIDE), some(WIDE, WIDE)
    ),
    "losses of no family": lambda: _kernels.response_losses(
        5, 1.0, some(1, 1), some(1), None, None, some(1, 1), some(1), some(1, 1)
    ),
    "successes among nothing": lambda: _kernels.response_losses(
        3, 1.0, some(1, 1), some(1), None, None, some(1, 1), some(1), some(1, 1)
    ),
    "sums of wide models": lambda: _kernels.response_sums(
        0, 1.0, some(WIDE, 0), some(0), None, None, some(1, WIDE), some(1), some(1, 0), some(1, 2 + WIDE + 2**31)
    ),
    "codes beyond a column": lambda: _kernels.category_em(
        np.full((1, 1), 2, dtype=np.int32), np.array([0, 2]), None, 0.0, some(1), some(1, 2), some(1)
    ),
    "logits of too many bits": lambda: _kernels.bit_losses(some(WIDE, WIDE), some(WIDE)),
    "codes of nobody": lambda: _kernels.category_em(
        np.zeros((1, 1), dtype=np.int32), np.array([0, 3]), None, 0.0, some(1), some(1, 2), some(1)
    ),
    "medoids that are no rows": lambda: medoids(at=(0, 3)),
    "one medoid": lambda: medoids(at=(0,)),
    "distances of other rows": lambda: medoids(n=2),
    "a place of no medoid": lambda: medoids().replace(2, 0),
    "a row of nobody": lambda: medoids().replace(0, -1),
    "candidates of nobody": lambda: medoids().swaps(np.array([3]), 0, 0, 1, 0.0),
    "no such candidate": lambda: medoids().swaps(np.array([0]), 1, 0, 1, 0.0),
    "flows of many clusters": lambda: _kernels.assign_within(
        some(0, 2**50), some(0), 0.0, 1.0, some(2**50), some(2**50, 0)
    ),
    "flows of other rows": lambda: _kernels.assign_within(some(1, 1), some(2), 0.0, 1.0, some(1), some(1, 2)),
    "flows of other clusters": lambda: _kernels.assign_within(some(1, 2), some(1), 0.0, 1.0, some(1), some(2, 1)),
    "step of lines": lambda: _kernels.regression_step(
        some(1, 2 + WIDE + 2**31), 1.0, 1.0, False, some(1), some(1, WIDE), some(1)
    ),
    "line through rows": lambda: _kernels.regression_concentrate(
        some(1, WIDE), some(1), None, None, whole(0), 1.0, 1, some(WIDE)
    ),
    "lines one after the other": lambda: _kernels.regression_greedy(
        some(1, WIDE - 1), some(1), None, 1, some(1, WIDE), some(1, 0), some(1, WIDE - 1)
    ),
    "nearest centres": lambda: _kernels.assign(some(0, 2), None, some(2**50, 2), None, numbers(0)),
    "moments of labels": lambda: _kernels.moments(some(0, 2**50), None, some(1, 2**50), numbers(0), some(1, 2**50 + 2)),
    "distances": lambda: _kernels.distances(some(0, 2), some(2**50, 2), some(0, 2**50)),
    "drawn states": lambda: _kernels.draw(some(0, 2**50), None, some(0), numbers(0), 1.0, some(0), numbers(0)),
    "walk of states": lambda: _kernels.walk(some(0, 2**50), None, some(0), 1.0, whole(0), some(0), numbers(0)),
    "sums by label": lambda: _kernels.collect(some(0, 2**50), None, numbers(0), some(1, 2**50)),
    "seeds": lambda: _kernels.plus_plus(some(2**20, HUGE), None, some(1, 2**20), whole(1)),
    "swaps of wide rows": lambda: _kernels.swap_search(some(2**20, 2**34), some(2**20), 2, 0),
    "swaps of many centres": lambda: _kernels.swap_search(some(2**30, 1), some(2**30), 2**30, 0),
    "swaps of many candidates": lambda: search().configure(
        candidates=2**62, local_steps=1, still=0.0, accepted=0.0, progress=0.0
    ),
    "softmax": lambda: _kernels.softmax_pass(some(0, 1), None, some(2, WIDE + 1), None, None, some(2**31, 4)),
    "softmax of wide rows": lambda: _kernels.softmax_pass(
        some(0, WIDE - 1), None, some(WIDE, 2), None, None, some(1, 0)
    ),
    "gates": lambda: _kernels.gate_pass(
        some(HUGE, 0), some(1, 0), 1.0, some(0, 2, HUGE), None, some(0, 2, 0), None, some(0, 1)
    ),
    "soft moments": lambda: _kernels.soft_moments(some(0, 2**50), None, some(0, 1), some(2**50 + 1, 1)),
    "cover": lambda: _kernels.cover_search(some(2**20, HUGE), None, some(2**20), 0.0),
    "bumps": lambda: _kernels.bump_search(some(2**20, HUGE), some(2**20), 0.0),
    "bumps of lines": lambda: _kernels.line_search(some(1, WIDE), some(1), some(1), numbers(0, 1), some(0, 1), 0.0),
    "climbs of lines": lambda: _kernels.line_climb(some(1, WIDE), some(1), some(1), some(1, WIDE), some(1), 1, 0.1),
    "long chains": lambda: chains([0, WIDE], states=2**20, positions=WIDE),
    "hidden Markov models": lambda: _kernels.chain_pass(
        some(0, HUGE),
        some(0, HUGE, 1)[:, :, :0].reshape(0, 0, 0),
        np.array([0, 1]),
        some(0, HUGE, 1),
        None,
        some(0, HUGE, 1),
        some(0, 1),
        None,
        None,
    ),
    "classes of bags": lambda: bags([0, 2], d=2**62, classes=4),
    "columns of bags": lambda: bags([0, 2], d=2**63 - 1),
    "classes of grids": lambda: _kernels.grids(some(0, 1), whole(0), 2**31 - 1, numbers(0), 2**31 - 1, 2**31 - 1, 1.0),
    # Places.
    "edges beyond the entries": lambda: bags([0, HUGE, 2]),
    "edges below none": lambda: bags([0, -HUGE, 2]),
    "edges that end late": lambda: bags([0, HUGE]),
    "bag beyond the rows": lambda: dense_bags(0, 2**30),
    "bag that begins beyond": lambda: dense_bags(HUGE, 1),
    "bag that begins before": lambda: dense_bags(-1, 1),
    "bag without rows": lambda: dense_bags(0, 0),
    "bag of no class": lambda: dense_bags(0, 1, codes=7),
    "image beyond the regions": lambda: _kernels.grids(
        np.ones((3, 2)), np.array([HUGE]), 2, np.zeros(1, np.int32), 2, 2, 1.0
    ),
    "chain beyond the positions": lambda: chains([0, HUGE, 3]),
    "chain of less than none": lambda: chains([0, -1, 3]),
    "chain that ends late": lambda: chains([0, HUGE]),
    "rows that are not there": lambda: _kernels.standard_rows(
        np.ones((2, 1)), np.array([HUGE]), 1.0, np.zeros(1), np.empty((1, 1))
    ),
    "drawn rows that are not there": lambda: _kernels.regression_concentrate(
        np.ones((2, 1)), np.ones(2), None, None, np.array([-1]), 1.0, 1, np.empty(1)
    ),
    "centre that is not there": lambda: search().attempt(2, 0),
    "point that is not there": lambda: search().attempt(0, HUGE),
    "labels that are not there": lambda: _kernels.line_search(
        np.ones((2, 1)), np.ones(2), np.ones(2), np.full((1, 2), 2, np.int32), np.ones((1, 2)), 0.0
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_sizes_and_places_that_no_table_has_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        CALLS[name]()


def test_labels_outside_are_left_out() -> None:
    x, labels = np.arange(4.0)[:, None], np.array([0, -1, 2**31 - 1, 0], dtype=np.int32)
    sums, moments = np.empty((1, 1)), np.empty((1, 3))
    _kernels.collect(x, None, labels, sums)
    _kernels.moments(x, None, np.zeros((1, 1)), labels, moments)
    assert sums.tolist() == [[3.0]]
    assert moments.tolist() == [[2.0, 3.0, 9.0]]


def test_a_search_that_never_began_moves_nothing() -> None:
    for act in ("rounds", "single_moves", "kick", "polish", "descend", "restore"):
        swaps = search()
        arguments = {
            "rounds": (1, 5),
            "single_moves": (2,),
            "kick": (1,),
            "polish": (3,),
            "descend": (3, 0.1),
            "restore": (),
        }
        getattr(swaps, act)(*arguments[act])
        assert np.isfinite(swaps.objective)
