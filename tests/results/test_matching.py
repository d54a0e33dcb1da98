"""Two labelings of the same rows: matched, whatever they call their parts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from majorant.results.matching import match_labels


@pytest.mark.parametrize("seed", range(5))
def test_a_partition_agrees_with_itself_under_other_names(seed: int) -> None:
    random = np.random.default_rng(seed)
    labels = random.integers(4, size=50)
    names = np.array(["d", "a", "c", "b"])[labels]
    found = match_labels(labels, names)
    assert found.share == found.adjusted_rand == 1.0
    assert np.array_equal(found.table, np.diag(np.bincount(labels)[list(found.first)]))
    assert [("d", "a", "c", "b")[k] for k in found.first] == list(found.second)


@pytest.mark.parametrize("seed", range(5))
def test_parts_of_different_number_are_matched_for_the_most_rows(seed: int) -> None:
    random = np.random.default_rng(seed)
    one, other = random.integers(3, size=40), random.integers(5, size=40)
    found = match_labels(one, other)
    assert found.table.shape == (3, 5) and found.table.sum() == 40
    assert sorted(found.first) == [0, 1, 2] and sorted(found.second) == [0, 1, 2, 3, 4]
    assert found.adjusted_rand == pytest.approx(adjusted_rand_score(one, other))
    pairs = [[np.sum((one == a) & (other == b)) for b in found.second] for a in found.first]
    assert np.array_equal(found.table, pairs)
    others = [random.permutation(5)[:3] for _ in range(200)]
    assert found.share * 40 >= max(sum(found.table[a, b] for a, b in enumerate(o)) for o in others)
    turned = match_labels(other, one)
    assert turned.share == pytest.approx(found.share)


def test_labelings_of_other_rows_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one label per row each; got shapes \(2,\) and \(3,\)"):
        match_labels([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="one label per row"):
        match_labels([], [])
