"""Groups of columns that no row links: which component of one is which of another is chance, and the fit says so."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

import majorant as mj
from majorant.densities import Bernoulli
from majorant.models.mixture import MixtureEstimator
from majorant.models.unlinked import Links

pytestmark = pytest.mark.filterwarnings("ignore:No row has cells of both columns")  # of full covariances, besides
N = 240
APART = (("x1", "x2", "x3"), ("x4", "x5", "x6"))
HALF = np.arange(N) < N // 2


def rows(bits: bool, is_whole: bool = False) -> NDArray[np.float64]:
    """Two groups of rows, of which half have three columns and half three others."""
    draws = np.random.default_rng(1)
    z = draws.random(N) < 0.5
    x = 4.0 * z[:, None] + draws.normal(size=(N, 6))
    if bits:
        x = (x > 2).astype(np.float64)
    if not is_whole:
        x[HALF, 3:], x[~HALF, :3] = np.nan, np.nan
    return x


MODELS: list[tuple[type[Any], dict[str, Any], bool]] = [
    *((mj.GaussianMixture, {"covariance_type": kind}, False) for kind in ("full", "tied", "diag", "spherical")),
    (mj.LatentClassAnalysis, {}, True),
    (mj.LatentClassAnalysis, {"items": ["normal", "categorical", "normal", "count", "normal", "normal"]}, False),
]


def mixed(cls: type[Any], settings: dict[str, Any], bits: bool, is_whole: bool = False) -> NDArray[np.float64]:
    x = rows(bits, is_whole)
    if "items" in settings:
        x[:, [1, 3]] = np.where(np.isnan(x[:, [1, 3]]), np.nan, x[:, [1, 3]] > 2)
    return x


@pytest.mark.parametrize(("cls", "settings", "bits"), MODELS)
def test_groups_are_named_wherever_they_are_told(
    cls: type[Any], settings: dict[str, Any], bits: bool, tmp_path: Path
) -> None:
    with pytest.warns(ConvergenceWarning, match="No row has cells of two of these groups of columns: 'x1', 'x2', 'x3'"):
        model = cls(2, n_init=2, random_state=0, **settings).fit(mixed(cls, settings, bits))
    assert model.unlinked_ == APART
    assert "their shares alone, and may be chance" in " ".join(str(model.summary()).split())
    model.save(tmp_path / "m")
    assert mj.load(tmp_path / "m").unlinked_ == model.unlinked_


@pytest.mark.parametrize(("cls", "settings", "bits"), MODELS)
def test_few_rows_link_them(cls: type[Any], settings: dict[str, Any], bits: bool) -> None:
    x, whole = (mixed(cls, settings, bits, is_whole) for is_whole in (False, True))
    x[-20:] = np.where(np.arange(6) % 5 == 0, whole[-20:], np.nan)  # the first column and the last are enough
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "No row has cells of two of these groups")
        assert cls(2, n_init=2, random_state=0, **settings).fit(x).unlinked_ == ()


@pytest.mark.parametrize(("cls", "settings", "bits"), MODELS)
def test_one_component_has_nothing_to_match(cls: type[Any], settings: dict[str, Any], bits: bool) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "No row has cells of two of these groups")
        assert cls(1, **settings).fit(mixed(cls, settings, bits)).unlinked_ == ()


def test_a_column_that_does_not_vary_is_not_a_group() -> None:
    x = np.random.default_rng(0).normal(size=(50, 3))
    x[:, 1] = 7
    with pytest.warns(UserWarning):
        assert mj.GaussianMixture(2, n_init=2, random_state=0).fit(x).unlinked_ == ()


def test_the_other_pairing_is_as_likely_at_equal_shares() -> None:
    """Why it is chance: classes exchanged in one group of items have the likelihood that they had."""
    x = rows(bits=True)
    with pytest.warns(ConvergenceWarning, match="No row has cells"):
        model = mj.LatentClassAnalysis(2, n_init=2, random_state=0).fit(x)
    ones = model.item_probabilities_[:, 1::2]

    def log_likelihood(p: NDArray[np.float64]) -> float:
        each = np.where(np.isnan(x)[:, None], 0.0, np.log(np.clip(np.where(x[:, None] == 1, p, 1 - p), 1e-9, 1)))
        return float(logsumexp(each.sum(axis=2) + np.log(0.5), axis=1).sum())

    exchanged = np.hstack([ones[:, :3], ones[::-1, 3:]])
    assert log_likelihood(exchanged) == pytest.approx(log_likelihood(ones), abs=1e-9)


@pytest.mark.parametrize("cls", [mj.GaussianMixture, mj.LatentClassAnalysis])
def test_what_else_links(cls: type[Any]) -> None:
    """Groups of rows with one component, known components in both groups; rows without weight do not."""
    x, whole = (rows(cls is mj.LatentClassAnalysis, is_whole) for is_whole in (False, True))
    settings: dict[str, Any] = {"covariance_type": "diag"} if cls is mj.GaussianMixture else {}
    model = cls(2, n_init=2, random_state=0, **settings)
    people = np.r_[: N // 2, : N // 2]
    labels = np.where(np.arange(N) % 2, whole[:, :3].mean(axis=1) > whole.mean(), -1)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "No .* has cells of two of these groups")
        assert model.fit(x, groups=people).unlinked_ == ()
        assert model.fit(x, component_labels=labels).unlinked_ == ()
    with pytest.warns(ConvergenceWarning, match="No group of rows has cells"):
        model.fit(x, groups=np.arange(N) // 2)
    with pytest.warns(ConvergenceWarning, match="is told by the gating alone"):
        model.fit(x, gating=np.random.default_rng(0).normal(size=(N, 1)))
    with pytest.warns(ConvergenceWarning, match="No row has cells"):
        model.fit(x, component_labels=np.where(HALF, labels, -1))
    x[0] = whole[0]
    with pytest.warns(ConvergenceWarning, match="No row has cells"):
        model.fit(x, sample_weight=np.where(np.arange(N) == 0, 0.0, 1.0))


@pytest.mark.parametrize("emission", ["gaussian", ["gaussian"] * 6])
def test_sequences_link(emission: Any) -> None:
    x = rows(bits=False)
    model = mj.HiddenMarkovModel(2, emission=emission, covariance_type="diag", n_init=2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="No sequence has cells of two .* told by transitions alone"):
        found = model.fit(x, lengths=[N // 4] * 4).unlinked_
    assert found == APART
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "No sequence has cells")
        assert model.fit(x, lengths=[N // 4, N // 2, N // 4]).unlinked_ == ()


def test_rows_of_a_stream_are_seen_part_by_part() -> None:
    x = rows(bits=False)
    model = mj.GaussianMixture(2, covariance_type="diag", n_init=2, random_state=0)

    def parts(table: NDArray[np.float64]) -> Any:
        return mj.open_rows(lambda: np.array_split(table, 5))

    with pytest.warns(ConvergenceWarning, match="No row has cells"):
        assert model.fit(parts(x)).unlinked_ == APART
    x[-1] = rows(bits=False, is_whole=True)[-1]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "No row has cells")
        assert model.fit(parts(x)).unlinked_ == ()


@pytest.mark.parametrize("seed", range(8))
def test_links_of_parts_are_those_of_all_rows(seed: int) -> None:
    """Against the transitive closure of a matrix of pairs."""
    draws = np.random.default_rng(seed)
    there = draws.random((9, 12)) < 0.13
    together = np.eye(12, dtype=int) + there.T.astype(int) @ there
    reached = np.linalg.matrix_power(together, 12) > 0
    expected = {tuple(np.flatnonzero(row).tolist()) for row in reached}
    whole = Links.of(there)
    summed = Links.of(there[:3]) + (Links.of(there[3:4]) + Links.of(there[4:]))
    np.testing.assert_array_equal(whole.first, summed.first)
    assert {tuple(map(int, group)) for group in whole.groups([str(j) for j in range(12)])} == expected - (
        expected if len(expected) == 1 else set()
    )


def test_a_mixture_of_ones_own_tells_it_too() -> None:
    class Bits(MixtureEstimator):
        def _density(self) -> Any:
            return Bernoulli(self.n_features_in_)

    with pytest.warns(ConvergenceWarning, match="'x4', 'x5', 'x6'. Which components of one group"):
        assert Bits(2, n_init=2, random_state=0).fit(rows(bits=True)).unlinked_ == APART
