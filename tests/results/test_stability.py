"""Agreement of refits: 1 where the answer is settled and less where it is not, in numbers and in words."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.metrics import adjusted_rand_score

import majorant as mj
from majorant import registry
from majorant.results.stability import Agreement, Stability
from majorant.search import StartRecord


def settled(n: int = 60) -> NDArray[np.float64]:
    """Three clouds far apart."""
    return 50 * np.eye(3)[np.arange(n) % 3] + np.random.default_rng(0).normal(size=(n, 3))


def unsettled(n: int = 120) -> NDArray[np.float64]:
    """No clusters at all."""
    return np.random.default_rng(0).random((n, 2))


def agreements(found: Stability) -> list[Agreement]:
    assert found.resamples is not None
    return [found.seeds, found.resamples]


def test_a_settled_answer_agrees_with_itself() -> None:
    found = mj.stability(mj.KMeans(3), settled(), n_runs=6, random_state=0)
    assert found.share_at_best == 1.0 and found.n_at_best == 6 and found.original_at_best
    assert found.spread == pytest.approx(0.0, abs=1e-12)
    for group in agreements(found):
        assert group.n_runs == 6 and group.rows.shape == (60,)
        np.testing.assert_array_equal(group.rand, 1.0)
        np.testing.assert_array_equal(group.rows, 1.0)
    assert found.seeds.shifts.max() < 1e-10
    # Means of twenty rows of spread 1 move by about 1 / sqrt(20) when resampled; a column deviates by about 23.6.
    assert 0.2 / 23.6 < np.median(found.resamples.shifts) < 0.4 / 23.6
    assert found.objective == found.best == pytest.approx(mj.KMeans(3, random_state=0).fit(settled()).inertia_)


def test_an_unsettled_answer_does_not() -> None:
    found = mj.stability(mj.KMeans(6, n_init=1, algorithm="lloyd"), unsettled(), n_runs=8, random_state=0)
    assert found.share_at_best < 1 and found.spread > 0.01
    for group in agreements(found):
        assert np.median(group.rand) < 0.9 and group.shifts.min() > 0.01 and group.rows.mean() < 0.95
        assert ((group.rows >= 0) & (group.rows <= 1)).all()
        np.testing.assert_allclose(group.rows * 8, np.round(group.rows * 8))
    assert found.best == min(found.objective, *found.seeds.objectives)


def test_numbers_are_those_of_refits_done_by_hand() -> None:
    X = unsettled()
    est = mj.KMeans(4, n_init=1, random_state=5)
    found = mj.stability(est, X, n_runs=3, random_state=1)
    seeds = np.random.RandomState(1).randint(2**31 - 1, size=7)
    original = mj.KMeans(4, n_init=1, random_state=5).fit(X)
    assert found.objective == original.inertia_
    for run, seed in enumerate(seeds[1:4]):
        refit = mj.KMeans(4, n_init=1, random_state=int(seed)).fit(X)
        assert found.seeds.objectives[run] == refit.inertia_
        assert found.seeds.rand[run] == adjusted_rand_score(original.labels_, refit.labels_)
        differences = (original.cluster_centers_[:, None] - refit.cluster_centers_[None]) / X.std(axis=0)
        best = min(
            np.sqrt(np.mean([np.sum(differences[k, p[k]] ** 2) / 2 for k in range(4)]))
            for p in np.array(np.meshgrid(*[range(4)] * 4)).T.reshape(-1, 4)
            if len(set(p)) == 4
        )
        assert found.seeds.shifts[run] == pytest.approx(best, rel=1e-12, abs=1e-12)


def test_the_same_seed_gives_the_same_numbers() -> None:
    first, again, other = (
        mj.stability(mj.KMeans(5, n_init=1), unsettled(), n_runs=4, random_state=s) for s in (3, 3, 4)
    )
    pd.testing.assert_frame_equal(first.to_frame(), again.to_frame())
    assert not first.to_frame().equals(other.to_frame())
    assert str(first) == str(again)


def test_the_estimator_is_left_as_it_was() -> None:
    est = mj.KMeans(3)
    mj.stability(est, settled(), n_runs=2, random_state=0)
    assert vars(est) == vars(mj.KMeans(3))
    est.fit(settled()[:30])
    before = dict(vars(est))
    mj.stability(est, settled(), n_runs=2, random_state=0)
    assert all(vars(est)[name] is value for name, value in before.items()) and vars(est).keys() == before.keys()


def test_rows_of_weight_zero_change_nothing() -> None:
    X = unsettled()
    weights = np.random.default_rng(1).uniform(0.5, 2, 120)
    without = mj.stability(mj.KMeans(4, n_init=1), X, n_runs=4, random_state=0, sample_weight=weights)
    far = np.vstack([X, [[1e3, 1e3]]])
    found = mj.stability(mj.KMeans(4, n_init=1), far, n_runs=4, random_state=0, sample_weight=np.r_[weights, 0.0])
    for a, b in zip(agreements(found), agreements(without), strict=True):
        np.testing.assert_array_equal(a.objectives, b.objectives)
        np.testing.assert_allclose(a.shifts, b.shifts, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(a.rows[:-1], b.rows)


def test_weights_count() -> None:
    """Two clouds, one of them with next to no weight: its rows are hardly ever told apart from noise."""
    X = settled()
    heavy = np.where(np.arange(60) % 3 == 0, 1.0, 1e-12)
    light = mj.stability(mj.KMeans(3, n_init=1), X, n_runs=5, random_state=0, sample_weight=heavy)
    plain = mj.stability(mj.KMeans(3, n_init=1), X, n_runs=5, random_state=0)
    assert light.objective < 0.5 * plain.objective


@pytest.mark.parametrize(
    "form",
    [
        lambda X: X.tolist(),
        lambda X: pd.DataFrame(X, columns=["a", "b", "c"]),
        lambda X: pl.DataFrame(X, schema=["a", "b", "c"]),
        sparse.csr_matrix,
        lambda X: X.astype(np.float32),
        lambda X: X * 1e140,
        lambda X: np.column_stack([X, np.full(len(X), 0.1)]),
        lambda X: X + 1e8,
    ],
    ids=["lists", "pandas", "polars", "csr", "float32", "huge", "constant column", "far away"],
)
def test_the_form_of_the_rows_does_not_matter(form: Any) -> None:
    found = mj.stability(mj.KMeans(3), form(settled()), n_runs=3, random_state=0)
    plain = mj.stability(mj.KMeans(3), settled(), n_runs=3, random_state=0)
    for a, b in zip(agreements(found), agreements(plain), strict=True):
        np.testing.assert_array_equal(a.rand, b.rand)
        np.testing.assert_allclose(a.shifts, b.shifts, rtol=1e-4, atol=1e-6)


def test_rows_on_disk(tmp_path: Any) -> None:
    np.save(tmp_path / "x.npy", settled())
    found = mj.stability(mj.KMeans(3), mj.open_rows(tmp_path / "x.npy"), n_runs=3, random_state=0)
    plain = mj.stability(mj.KMeans(3), settled(), n_runs=3, random_state=0)
    for a, b in zip(agreements(found), agreements(plain), strict=True):
        np.testing.assert_array_equal(a.rand, b.rand)
        np.testing.assert_allclose(a.shifts, b.shifts, rtol=1e-6, atol=1e-9)


def test_without_resamples() -> None:
    found = mj.stability(mj.KMeans(3), settled(), n_runs=3, resample=None, random_state=0)
    assert found.resamples is None
    assert found.to_frame()["varied"].tolist() == ["seed"] * 3
    assert "resample" not in str(found)


def test_as_a_data_frame() -> None:
    found = mj.stability(mj.KMeans(3), unsettled(), n_runs=2, random_state=0)
    frame = found.to_frame()
    assert list(frame.columns) == ["varied", "objective", "shift", "rand"]
    assert frame["varied"].tolist() == ["seed"] * 2 + ["resample"] * 2
    np.testing.assert_array_equal(frame["rand"], np.r_[found.seeds.rand, agreements(found)[1].rand])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_runs": 0}, ValueError, "n_runs.*0"),
        ({"n_runs": 2.0}, TypeError, "n_runs.*2.0"),
        ({"resample": "jackknife"}, ValueError, "resample.*'bootstrap'.*None.*'jackknife'"),
        ({"est": BaseEstimator()}, TypeError, "BaseEstimator is not one of majorant's models"),
        ({"sample_weight": np.ones(3)}, ValueError, r"sample_weight.*\(3,\)"),
        ({"X": np.full((5, 2), np.nan)}, ValueError, "NaN"),
        ({"random_state": "seed"}, ValueError, "'seed'"),
    ],
    ids=lambda value: "" if isinstance(value, type) else str(value)[:30],
)
def test_wrong_arguments_are_named_and_shown(arguments: dict[str, Any], error: Any, message: str) -> None:
    usual: dict[str, Any] = {"est": mj.KMeans(2), "X": settled(), "n_runs": 2, "random_state": 0}
    with pytest.raises(error, match=message):
        mj.stability(**{**usual, **arguments})


# A model without weights and without places


class Halves(BaseEstimator):  # type: ignore[misc]
    """Cuts the first column at the mean of the rows that it was given; its parts have names in an order by chance."""

    def __init__(self, size: int = 2, random_state: Any = None) -> None:
        self.size = size
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> Halves:
        assert len(X) == len(y) == len(groups)
        assert (np.asarray(y) == 2 * X[:, 0]).all() and (np.asarray(groups) == 3 * X[:, 0]).all()
        self.cut_ = X[:, 0].mean()
        self.flip_ = np.random.RandomState(self.random_state).randint(2)
        self.value_ = float(len(np.unique(X[:, 0])))
        self.search_ = mj.SearchReport((StartRecord("mean", self.value_, 1, True),), "size", "max")
        return self

    def classify(self, X: Any, y: Any) -> Any:
        return (X[:, 0] > self.cut_) ^ self.flip_


@pytest.fixture
def halves(monkeypatch: pytest.MonkeyPatch) -> Halves:
    card = registry.ModelCard("halves", "halves", "?", "regression", "size", "half", "size", "size", "value_", True)
    monkeypatch.setitem(registry.CARDS, "halves", card)
    monkeypatch.setitem(registry.ESTIMATORS, "halves", Halves)
    return Halves()


def test_a_model_without_weights_is_given_resampled_rows(halves: Halves) -> None:
    X = np.r_[np.linspace(0, 1, 20), np.linspace(9, 10, 20)][:, None]
    found = mj.stability(halves, X, 2 * X[:, 0], n_runs=5, random_state=0, groups=3 * X[:, 0])
    for group in agreements(found):
        np.testing.assert_array_equal(group.rand, 1.0)
        np.testing.assert_array_equal(group.rows, 1.0)
        assert np.isnan(group.shifts).all()
    assert set(found.seeds.objectives) == {40.0} and max(agreements(found)[1].objectives) < 40
    assert "moved" not in str(found) and found.sense == "max"


# Words


def made(
    objectives: list[float], rand: list[float] | None, *, n_parts: int = 3, always: int = 50, by_seed: float = 1.0
) -> Stability:
    """Numbers made up: an original fit at 10, refits under seeds, and resamples of 50 rows."""
    n = len(objectives)
    seeds = Agreement(np.array(objectives), np.zeros(n), np.full(n, by_seed), np.ones(50))
    resamples = None
    if rand is not None:
        rows = np.r_[np.ones(always), np.zeros(50 - always)]
        resamples = Agreement(np.ones(len(rand)), np.zeros(len(rand)), np.array(rand), rows)
    return Stability("k-means, n_clusters = 3", "cluster", n_parts, "SSE", "min", 10.0, seeds, resamples)


@pytest.mark.parametrize(
    ("found", "said", "unsaid"),
    [
        (made([10, 10], [1, 1]), "all 2 other seeds reached the best SSE seen.*in every resample", "Only|better"),
        (made([10], [1.0]), "the other seed reached the best", "all 1"),
        (made([10, 12, 10], [1, 1]), "Only 2 of 3 other seeds.*as the original did", "did not matter"),
        (made([9, 10], [1, 1]), "Another seed found a better SSE", "did not matter|Only"),
        (made([10], [1, 0.95, 0.4]), "in most resamples of the rows, but not in all", "every resample"),
        (made([10], [0.7, 0.7], always=7), "changed.*7 of 50 rows kept", "nearly the same"),
        (made([10], [0.2, 0.1]), "gave other clusters", "nearly the same|kept"),
        (made([10], [1.0], n_parts=1), "With one cluster, labels cannot differ", "resample"),
        (made([10], None, by_seed=0.5), "Some seeds gave other clusters", "resample"),
    ],
)
def test_the_conclusion_says_what_the_numbers_say(found: Stability, said: str, unsaid: str) -> None:
    assert re.search(said, found.conclusion), found.conclusion
    assert not re.search(unsaid, found.conclusion), found.conclusion


@pytest.mark.parametrize("k", [1, 3, 7])
@pytest.mark.parametrize("n_runs", [1, 20])
def test_the_page_fits_a_terminal_and_holds_the_numbers(k: int, n_runs: int) -> None:
    found = mj.stability(mj.KMeans(k, n_init=1), unsettled(), n_runs=n_runs, random_state=0)
    page = str(found)
    assert max(map(len, page.splitlines())) <= 80
    assert page.startswith(f"Stability of k-means, n_clusters = {k}\n")
    table = found.summary().tables["agreement"]
    assert table["refits"].tolist() == [n_runs, n_runs]
    assert table["at_best"][0] == found.n_at_best
    assert table["rows_kept"].tolist() == [np.sum(group.rows == 1) for group in agreements(found)]
    assert " ".join(page.split("\n\n")[1].split()) == f"STABILITY {found.conclusion}"
    assert found.conclusion in found._repr_html_()


def test_hardly_less_than_full_agreement_is_not_shown_as_full() -> None:
    assert "1.000" not in str(made([10], [0.99999], by_seed=0.99999))
    assert "1.000" in str(made([10], [1.0]))
