"""Fits without a fold: of the units that they say, with the latent values that they say, and of one fit only."""

from __future__ import annotations

import pickle
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import majorant as mj
from majorant.data import Chunks
from majorant.engine import Biased, MultiFold, Tightest, View, minimize
from majorant.engine.biases import STRENGTH
from majorant.engine.latents import tightest

from .families import k_means
from .problems import Problem, kmeans_problem, svm_problem


def view_at(problem: Problem, theta: Any, data: Chunks) -> View:
    (block,) = data.source.blocks()
    energies = problem.family.energies(theta, block)
    return View(block, energies, *tightest(energies, problem.family.beta), problem.family.beta, 0, 1)


def folds_of(n: int, n_folds: int, random_state: int = 0) -> NDArray[np.intp]:
    return np.random.default_rng(random_state).permutation(n) % n_folds


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("n_blocks", [1, 4])
def test_a_unit_is_judged_by_the_fit_to_the_others(weighted: bool, n_blocks: int) -> None:
    problem = kmeans_problem(3)
    x, labels = problem.columns[0], problem.labels
    w = np.random.default_rng(0).uniform(0.5, 3, len(x)) if weighted else np.ones(len(x))
    data = problem.chunks(n_blocks, weights=w)
    bias = MultiFold(5)
    for block in data.source.blocks():
        bias.keep(block, problem.latent(block))
    theta = problem.first_theta()
    bias.prepare(problem.family, theta, data)

    fold = folds_of(len(x), 5)
    expected = np.empty((len(x), 4))
    for k in range(5):
        others = fold != k
        means = [np.average(x[others & (labels == z)], axis=0, weights=w[others & (labels == z)]) for z in range(4)]
        distances = ((x[fold == k, None] - np.array(means)) ** 2).sum(axis=2)
        expected[fold == k] = STRENGTH * (distances.min(axis=1, keepdims=True) - distances)
    found = []
    for block in data.source.blocks():
        energies = problem.family.energies(theta, block)
        found.append(bias.prefer(View(block, energies, *tightest(energies, np.inf), np.inf, 0, 1)))
    np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-9)


def test_folds_are_even_and_a_matter_of_their_seed() -> None:
    for random_state in (0, 1):
        problem, bias = kmeans_problem(0), MultiFold(7, random_state)
        bias.prepare(problem.family, problem.first_theta(), problem.chunks())
        assert bias._fits is not None
        np.testing.assert_array_equal(bias._fits._fold, folds_of(40, 7, random_state))
        sizes = np.bincount(bias._fits._fold)
        assert len(sizes) == 7 and np.ptp(sizes) <= 1
    assert (folds_of(40, 7, 0) != folds_of(40, 7, 1)).any()


def test_more_folds_than_units_leave_each_out_alone() -> None:
    x = np.array([[0.0], [0.0], [4.0], [4.0]])
    problem = Problem(k_means(2), (x,), np.array([0, 1, 1, 1], dtype=np.int32))
    bias, data = MultiFold(100), problem.chunks()
    (block,) = data.source.blocks()
    bias.keep(block, problem.labels)
    bias.prepare(problem.family, None, data)
    assert bias._fits is not None and len(bias._fits._thetas) == 4
    view = view_at(problem, np.array([[0.0], [3.0]]), data)
    # Without unit 1, state 1 is the mean of 4 and 4; without unit 2 it is that of 0 and 4.
    np.testing.assert_allclose(bias.prefer(view)[1:3], STRENGTH * np.array([[0.0, -16.0], [-12.0, 0.0]]))


def test_one_unit_has_nobody_to_judge_it() -> None:
    problem = Problem(k_means(1), (np.zeros((1, 1)),), np.zeros(1, dtype=np.int32))
    assert problem.minimize(Biased(MultiFold())).converged


def test_every_fit_begins_where_that_of_its_fold_ended() -> None:
    class Watched:
        beta, n_states = np.inf, 2

        def __init__(self) -> None:
            self.inner, self.begun = k_means(2), []

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def solve(self, s: Any, theta: Any, data: Chunks) -> Any:
            new = self.inner.solve(s, theta, data)
            if data.n_units < 20:
                self.begun.append((theta, new[0]))
            return new

    x = np.random.default_rng(0).normal(size=(20, 2))
    family, data, bias = Watched(), Chunks(x), MultiFold(2)
    for _ in range(3):
        bias.prepare(family, x[:2], data)  # type: ignore[arg-type]
    assert [old is None for old, _ in family.begun] == [True, True, False, False, False, False]
    for (_, ended), (begun, _) in zip(family.begun, family.begun[2:], strict=False):
        assert begun is ended


def test_a_family_may_know_its_units_by_number() -> None:
    """The same fits, whether a part of the units comes as other blocks or as a family for which no others count."""

    class Numbered:
        """k-means that refuses parts."""

        def __init__(self, mask: NDArray[np.bool_] | None = None) -> None:
            self.inner, self.mask, self.beta, self.n_states = k_means(4), mask, np.inf, 4

        def restricted(self, mask: NDArray[np.bool_]) -> Numbered:
            return Numbered(mask)

        def statistics(self, block: Any, q: Any, theta: Any) -> Any:
            if self.mask is None:
                return self.inner.statistics(block, q, theta)
            rows = self.mask[block.at]
            return self.inner.statistics(block.take(rows), q[rows], theta)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    problem = kmeans_problem(5)
    numbered = Problem(Numbered(), problem.columns, problem.labels)  # type: ignore[arg-type]
    a = problem.minimize(Biased(MultiFold(4)), data=problem.chunks(3))
    b = numbered.minimize(Biased(MultiFold(4)), data=numbered.chunks(3))
    np.testing.assert_array_equal(a.theta, b.theta)
    assert a.trace["bound"].tolist() == b.trace["bound"].tolist() and a.trace["exploring"].sum() > 1


def test_a_second_fit_knows_nothing_of_the_first() -> None:
    policy = Biased(MultiFold(3))
    for make in (kmeans_problem, svm_problem):
        first = make(1).minimize(policy)
        for other in (make(2), make(1)):
            again = other.minimize(policy)
        assert again.objective == first.objective
        assert again.trace["bound"].tolist() == first.trace["bound"].tolist()


def test_passes_of_the_fits_are_counted() -> None:
    problem = kmeans_problem(0)
    free, biased = problem.minimize(Tightest()), problem.minimize(Biased(MultiFold(3)))
    explored = int(np.isfinite(biased.trace["price"]).sum())
    assert explored > 0 and biased.n_passes > free.n_passes + 3 * explored


def test_units_of_energy_do_not_matter() -> None:
    problem = kmeans_problem(4)
    scaled = Problem(problem.family, (problem.columns[0] * 2**10,), problem.labels)
    a, b = problem.minimize(Biased(MultiFold(4))), scaled.minimize(Biased(MultiFold(4)))
    np.testing.assert_array_equal(a.theta * 2**10, b.theta)


def test_it_is_a_value() -> None:
    bias = MultiFold(4, random_state=3)
    problem = kmeans_problem(0)
    bias.prepare(problem.family, problem.first_theta(), problem.chunks())
    for twin in (deepcopy(bias), pickle.loads(pickle.dumps(bias)), bias.renumbered(np.arange(3))):
        assert twin == bias and hash(twin) == hash(bias) and twin._fits is None
    assert MultiFold() == MultiFold(10) != MultiFold(9) and MultiFold() != "folds"
    assert repr(MultiFold()) == "MultiFold(10)" and repr(bias) == "MultiFold(4, 3)"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((1,), ValueError, "n_folds must be at least 2; got 1"),
        ((2.5,), TypeError, "n_folds must be"),
        ((3, -1), ValueError, "random_state must be at least 0"),
    ],
)
def test_parameters(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        MultiFold(*arguments)


def test_a_preference_needs_its_fits() -> None:
    problem = kmeans_problem(0)
    with pytest.raises(RuntimeError, match=r"before prepare\(\)"):
        MultiFold().prefer(view_at(problem, problem.first_theta(), problem.chunks()))


def test_estimators_take_it_and_are_saved_with_it(tmp_path: Path) -> None:
    x = kmeans_problem(0, n=200).columns[0]
    model = mj.KMeans(4, init="forgy", n_init=2, bounds=mj.Biased(mj.MultiFold(5)), random_state=0).fit(x)
    assert model.trace_["exploring"].any()
    again = mj.KMeans(4, init="forgy", n_init=2, bounds=mj.Biased(mj.MultiFold(5)), random_state=0).fit(x)
    np.testing.assert_array_equal(again.cluster_centers_, model.cluster_centers_)
    model.save(tmp_path / "model")
    assert mj.load(tmp_path / "model").bounds == model.bounds
    soft = mj.GaussianMixture(3, bounds=mj.Biased(mj.MultiFold(3)), random_state=0).fit(x)
    assert np.isfinite(soft.lower_bound_)


def test_parts_of_data() -> None:
    x, w = np.arange(20.0)[:, None], np.linspace(1, 2, 20)
    data = Chunks(x, weights=w, rows=8)
    mask = np.zeros(20, dtype=bool)
    mask[[1, 3, 17]] = True
    part = data.part(mask)
    assert part.n_units == 3 and part.total_weight == pytest.approx(w[mask].sum())
    assert part.map_sum(lambda b: b.total(b.columns[0][:, 0])) == pytest.approx(np.sum(w[mask] * x[mask, 0]))
    assert [len(b) for b in part.source.blocks()] == [2, 1]
    assert minimize(k_means(3), part, theta=x[mask]).objective == pytest.approx(0.0)
