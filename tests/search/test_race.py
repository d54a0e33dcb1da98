"""One search: what it compares, when it stops, what it records."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from majorant.data.chunks import Chunks
from majorant.data.units import distinct_units
from majorant.densities import Bernoulli, Categorical
from majorant.engine.mixture import Mixture, Parameters
from majorant.laws import Independent
from majorant.search.contest import MixtureContest
from majorant.search.contestants import STEADIEST, Run, entrants
from majorant.search.effort import BULK, EFFORTS, FEWEST, Plan
from majorant.search.perturbations import joined, perturbed, redrawn, replaced
from majorant.search.race import Race, followed
from majorant.search.record import PERTURBATION
from majorant.search.starts import KINDS, cut, softened, tables

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "latentclass"


@dataclass
class Valley:
    """Starts are numbers, and descend to the nearest of some minima, each with its depth."""

    minima: dict[float, float]
    plan: Plan = field(default_factory=Plan)
    degenerate: tuple[float, ...] = ()
    tol: float = 1e-8
    max_iter: int = 100
    constant: float = 0.0
    whole: str = "all"
    is_sampled: bool = False
    note: str = ""
    has_rule: bool = False
    n_runs: int = 0
    speed: float = 0.5

    def sample(self, draws: np.random.Generator) -> str:
        raise AssertionError("nothing is sampled here")

    def starts(self, rows: str, is_first: bool, draws: np.random.Generator) -> list[tuple[str, float]]:
        return [("uniform", float(x)) for x in draws.uniform(-3, 3, self.plan.n_starts)]

    def perturbed(
        self, rows: str, bases: Sequence[float], size: int, draws: np.random.Generator
    ) -> list[tuple[str, float]]:
        return [(PERTURBATION, bases[0] + float(x)) for x in draws.normal(size=size)]

    def run(self, rows: str, runs: list[Run[float]], max_iter: int, tol: float, *, free: bool = False) -> Any:
        self.n_runs += len(runs)
        out = []
        for run in runs:
            end = min(self.minima, key=lambda m: abs(m - run.theta))
            theta = end + (run.theta - end) * self.speed**max_iter
            reason = "too deep" if end in self.degenerate else ""
            objective = self.minima[end] + (theta - end) ** 2
            done = abs(theta - end) < 1e-6
            out.append(
                replace(run, theta=theta, objective=objective, converged=done, degenerate=reason, n_iter=max_iter)
            )
        return out

    def held_back(self, run: Run[float]) -> str:
        return ""

    def is_admissible(self, run: Run[float]) -> bool:
        return False

    def shown(self, objective: float) -> float:
        return -objective

    def features(self, thetas: Sequence[float]) -> NDArray[np.float64]:
        return np.array(thetas)[:, None]


def test_the_lowest_regular_minimum_is_found_and_degenerate_ones_are_counted() -> None:
    contest = Valley({-2.0: 1.0, 0.0: 0.5, 2.0: 0.2, 1.0: -9.0}, degenerate=(1.0,))
    found = Race(contest).find(np.random.default_rng(0))
    assert found.best.theta == pytest.approx(2.0, abs=1e-6) and found.best.is_regular
    assert found.n_degenerate > 0
    assert [round(run.objective, 6) for run in found.optima] == [0.2, 0.5, 1.0][: len(found.optima)]


def test_only_degenerate_solutions_are_said_to_be_so() -> None:
    found = Race(Valley({0.0: 0.0}, degenerate=(0.0,))).find(np.random.default_rng(0))
    assert not found.best.is_regular and found.best.degenerate == "too deep"


@dataclass
class Collapsing(Valley):
    """Degenerate minima are seen after ten steps, except those above 1, which are seen at once."""

    most_collapsed: int = 0

    def run(self, rows: str, runs: list[Run[float]], max_iter: int, tol: float, *, free: bool = False) -> Any:
        self.most_collapsed = max(self.most_collapsed, sum(not run.is_regular for run in runs))
        ends = super().run(rows, runs, max_iter, tol, free=free)
        return [
            end if run.n_iter >= 5 or end.theta > 1 else replace(end, degenerate="")
            for run, end in zip(runs, ends, strict=True)
        ]


@pytest.mark.parametrize("is_there_one", [False, True])
def test_while_all_are_degenerate_no_regular_run_is_dropped_but_degenerate_ones_are(is_there_one: bool) -> None:
    """The minimum that is regular is the highest of all, behind many that are about to collapse."""
    minima, regular = {-2.0: 0.5, 0.0: 0.4, 2.0: 0.2}, {-1.0: 9.0} if is_there_one else {}
    plan = Plan(n_starts=60, race=((5, 6), (5, 3)), least_barren=4, keeps_barren=True, starts_every=1)
    contest = Collapsing(minima | regular, plan, degenerate=tuple(minima), speed=0.9)
    assert Race(contest).find(np.random.default_rng(0)).best.is_regular == is_there_one
    assert contest.most_collapsed <= 6


def test_a_search_that_always_comes_back_stops_after_two_rounds() -> None:
    contest = Valley({0.0: 1.0})
    found = Race(contest).find(np.random.default_rng(0))
    assert found.note.startswith("24 starts and 24 perturbations were compared")
    assert len(found.records) >= 24 and {round(r.objective, 6) for r in found.records} == {1.0}


def test_runs_that_met_the_best_count_as_starts_that_reached_it() -> None:
    found = Race(Valley({0.0: 1.0})).find(np.random.default_rng(0))
    independent = [r for r in found.records if r.source != PERTURBATION]
    assert len(independent) >= 3


@pytest.mark.parametrize(("n_best", "is_enough"), [(9, True), (7, False)])
def test_a_share_that_agrees_makes_patience_short(n_best: int, is_enough: bool) -> None:
    race = Race(Valley({}, Plan(agreed_share=0.8, least_rounds=5, least_hits=2, sure_rounds=100)))
    race._finals = [Run("uniform", 0.0, 0.0, 1.0) for _ in range(n_best)]
    race._bank = race._finals[:1]
    race._finals += [Run("uniform", 0.0, 0.0, 2.0) for _ in range(10 - n_best)]
    assert race._is_enough(1, 0) == is_enough and race._is_enough(5, 0)


@pytest.mark.parametrize(("hits", "is_enough"), [(1, False), (2, False), (3, True)])
def test_what_was_not_reached_often_enough_ends_no_race(hits: int, is_enough: bool) -> None:
    """All ends agree from the first round on, and none was improved since: either would do but for the hits."""
    race = Race(Valley({}, Plan(least_hits=3, sure_rounds=1, sure_starts=(0, 0.0), sure_share=0.0, least_rounds=1)))
    race._finals = race._bank = [Run("uniform", 0.0, 0.0, 1.0) for _ in range(hits)]
    assert race._is_enough(9, 0) == is_enough


@pytest.mark.parametrize("effort", EFFORTS)
def test_effort_means_rounds(effort: Any) -> None:
    many = {
        float(x): float(v) for x, v in zip(np.linspace(-3, 3, 40), np.random.default_rng(1).random(40), strict=True)
    }
    contest = Valley(many, plan=Plan().at(effort))
    found = Race(contest).find(np.random.default_rng(0))
    rounds = {"fast": 1, "default": 12, "best": 60}[effort]
    assert 24 <= contest.n_runs <= rounds * 24 * 5
    assert ("perturbations" in found.note) == (effort != "fast")


def test_a_run_that_was_followed_takes_its_records_along() -> None:
    contest = Valley({0.0: 1.0})
    found = Race(contest).find(np.random.default_rng(0))
    end = replace(found.best, objective=0.5)
    again = followed(contest, found, [end, *found.optima[1:]])
    assert again.best.objective == 0.5 and all(r.objective == 0.5 for r in again.records)
    left = followed(contest, found, [replace(found.best, degenerate="gone")])
    assert not left.best.is_regular and len(left.records) == len(found.records)


def test_entrants_have_not_begun() -> None:
    (run,) = entrants([("a", 1.0)])
    assert (run.source, run.start, run.objective, run.n_iter) == ("a", 1.0, np.inf, 0)


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        ((), 3.0),
        ((10.0, 6.0), 3.0),
        ((50.0, 14.0, 10.0, 8.0), 6.0),  # gains of 4 and 2: 1, 1/2, ... are to come
        ((10.0, 9.0, 7.0), 7.0 - 2 * STEADIEST / (1 - STEADIEST)),  # they grow
        ((10.0, 10.0, 9.0), 9.0),
        ((10.0, 9.0, 9.0), 9.0),
    ],
)
def test_runs_head_for_the_limit_of_gains_that_decrease(path: tuple[float, ...], limit: float) -> None:
    run = Run("a", 0.0, 0.0, objective=path[-1] if len(path) > 2 else 3.0, path=path)
    assert run.heading == pytest.approx(limit, rel=1e-12)


def test_a_cut_leaves_a_tenth_at_either_end() -> None:
    draws = np.random.default_rng(0)
    points = draws.normal(size=(100, 2))
    for _ in range(20):
        sizes = cut(points, np.ones(100), 3, draws).sum(axis=1)
        assert sizes[0] >= 10 and sizes[-1] >= 10


@pytest.mark.parametrize("name", [name for name, _ in KINDS])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_starts_are_responsibilities(name: str, k: int) -> None:
    draws = np.random.default_rng(0)
    points, weights = draws.normal(size=(30, 2)), draws.integers(1, 4, 30).astype(float)
    q = dict(KINDS)[name](points, weights, k, draws)
    assert q.shape == (k, 30) and (q >= 0).all()
    np.testing.assert_allclose(q.sum(axis=0), 1.0, rtol=1e-12)


def test_starts_of_every_kind_come_in_turn_and_on_equal_rows() -> None:
    named = tables(np.zeros((6, 2)), np.ones(6), 3, 7, np.random.default_rng(0))
    assert [name for name, _ in named] == [KINDS[i % len(KINDS)][0] for i in range(7)]


def test_softening_adds_one_average_row_to_each_component() -> None:
    q = np.zeros((1, 2, 10))
    q[:, 0] = 1
    soft = softened(q, 10.0)
    np.testing.assert_allclose(soft.sum(axis=1), 1.0)
    assert soft[0, 1, 0] == pytest.approx(0.1 / 1.2)


@pytest.mark.parametrize("move", [redrawn, replaced, joined, perturbed])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_perturbations_are_responsibilities_and_differ(move: Any, k: int) -> None:
    draws = np.random.default_rng(0)
    q = np.ascontiguousarray(draws.dirichlet(np.full(k, 0.3), 50).T)
    log_density = np.log(q + 1e-9)
    for _ in range(10):
        out = move(q, log_density, np.ones(50), draws)
        assert (out >= 0).all() and np.abs(out - q).max() > 0.01
        np.testing.assert_allclose(out.sum(axis=0), 1.0, rtol=1e-9)


def test_a_component_without_rows_can_be_perturbed() -> None:
    q = np.zeros((2, 5))
    q[0] = 1
    out = perturbed(q, np.zeros((2, 5)), np.ones(5), np.random.default_rng(0))
    assert np.isfinite(out).all()


def contest_of(codes: NDArray[np.float64], sizes: list[int], k: int, plan: Plan) -> MixtureContest:
    units = distinct_units([codes])
    x = units.columns[0]
    return MixtureContest(
        mixture=Mixture(Categorical(sizes), Independent(), k),
        columns=(x,),
        points=np.nan_to_num(x),
        weights=units.weights,
        plan=plan,
        tol=1e-10,
        max_iter=3000,
        data=Chunks,
    )


REFERENCES = [
    ("poLCA_carcinoma.csv", slice(None), 3, -293.7050),
    ("poLCA_carcinoma.csv", slice(None), 4, -289.2858),
    ("poLCA_cheating.csv", slice(0, 4), 2, -440.0271),
    ("mlbench_HouseVotes84.csv", slice(1, None), 3, -2959.4391),
    ("mlbench_Zoo.csv", slice(0, -1), 4, -568.8220),
]


@pytest.mark.parametrize(("file", "columns", "k", "best"), REFERENCES)
def test_latent_classes_of_the_literature_are_found_by_every_seed(
    file: str, columns: slice, k: int, best: float
) -> None:
    """The best of thousands of random starts of two other programs; see the specification of latent class analysis."""
    if not (DATA / file).exists():
        pytest.skip(f"{file} is not beside the project")
    frame = pd.read_csv(DATA / file, na_values=["NA"]).iloc[:, columns]
    coded = [pd.factorize(frame[name], sort=True) for name in frame]
    codes = np.column_stack([np.where(c < 0, np.nan, c) for c, _ in coded])
    for seed in range(5):
        found = Race(contest_of(codes, [len(u) for _, u in coded], k, Plan())).find(np.random.default_rng(seed))
        assert -found.best.objective == pytest.approx(best, abs=2e-4)


def test_a_race_on_samples_ends_on_all_rows() -> None:
    random = np.random.default_rng(0)
    n = 12_000
    p = np.array([[0.9, 0.1, 0.8, 0.2, 0.7], [0.1, 0.9, 0.3, 0.8, 0.2]])
    x = (random.random((n, 5)) < p[random.integers(0, 2, n)]).astype(float) + 0.0
    mixture = Mixture(Bernoulli(5), Independent(), 2)
    contest = MixtureContest(
        mixture=mixture, columns=(x,), points=x, weights=np.ones(n), plan=Plan(), tol=1e-9, max_iter=500, data=Chunks
    )
    assert contest.is_sampled and "on 3000 of 12000 rows first" in contest.note
    found = Race(contest).find(random)
    seen = contest.on(contest.whole).seen(found.best.theta)
    assert seen.objective[0] == pytest.approx(found.best.objective, rel=1e-12)


def test_equal_components_are_found_in_the_memory_of_the_table_of_densities() -> None:
    """Every pair at once would need a hundred times that of the table."""
    random, k, n = np.random.default_rng(0), 200, 1000
    x = random.integers(0, 2, (n, 2)).astype(float)
    p = np.column_stack([random.random(k), np.repeat([0.0, 0.5], k // 2)])
    p[[7, 50, 190]], p[20] = p[3], p[150] + 1e-6
    contest = replace(contest_of(x, [2, 2], k, Plan()), columns=(x,), weights=np.ones(n))
    density = Bernoulli(2)
    contest.mixture = Mixture(density, Independent(), k)
    theta = Parameters(density.recalled({"probabilities": p}), None)
    tracemalloc.start()
    found = contest.same_densities(theta)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    table = np.log(np.maximum(np.where(x == 1, p[:, None], 1 - p[:, None]), 1e-300)).sum(axis=2)
    expected = [[i, j] for i, j in combinations(range(k), 2) if np.abs(table[i] - table[j]).mean() < 1e-3]
    assert [3, 7] in expected and [20, 150] in expected
    assert expected == sorted(map(sorted, found.tolist()))
    assert peak < 10 * k * n * 8


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("seed", range(5))
def test_three_starts_are_followed_to_their_end(seed: int, effort: Any) -> None:
    """Or until they meet one that is: what falls behind is given up only after these."""
    random = np.random.default_rng(seed)
    minima = {float(x): float(d) for x, d in zip(random.uniform(-3, 3, 8), random.normal(size=8) * 5, strict=True)}
    found = Race(Valley(minima, Plan().at(effort))).find(random)
    starts = [record for record in found.records if record.source != PERTURBATION]
    assert len(starts) >= 3 and all(record.converged for record in starts)
    assert found.raced[0] >= 24


@dataclass
class Slow(Valley):
    """Where descents are long."""

    speed: float = 0.97


def test_no_more_than_three_that_fall_behind_are_followed() -> None:
    contest = Slow({-5.0: 0.0, -3.0: 50.0, -1.0: 60.0, 1.0: 70.0, 3.0: 80.0}, max_iter=1000)
    runs = contest.run("all", entrants([("uniform", end + 0.3) for end in contest.minima]), 0, 0.0)
    ends = Race(contest)._finished("all", runs)
    assert [end.theta for end in ends] == pytest.approx([-5.0, -3.0, -1.0]) and all(end.converged for end in ends)


def test_of_degenerate_runs_only_one_that_is_better_than_all_before_is_followed() -> None:
    minima = {-5.0: 0.0, -3.0: 50.0, -1.0: 60.0}
    race = Race(Slow(minima, degenerate=tuple(minima), max_iter=1000))
    ends = race._finished("all", race.contest.run("all", entrants([("uniform", end + 0.3) for end in minima]), 0, 0.0))
    assert sorted(end.n_iter for end in ends) == [100, 100, 900]  # after 100
    race._keep(ends)
    again = race._finished("all", race.contest.run("all", entrants([("uniform", -4.8)]), 0, 0.0))
    assert [end.n_iter for end in again] == [100]


@pytest.mark.parametrize("regular", [(), (-3.0,)])
def test_what_has_collapsed_is_not_followed_where_it_stays_so(regular: tuple[float, ...]) -> None:
    """But for the likeliest where none counts, up to the end of a round."""
    minima = {-5.0: 0.0, -3.0: 50.0, -1.0: 60.0}
    collapsing = tuple(end for end in minima if end not in regular)
    race = Race(Slow(minima, Plan(keeps_barren=True), degenerate=collapsing, max_iter=1000))
    runs = race.contest.run("all", entrants([("uniform", end + 0.3) for end in minima]), 0, 0.0)
    ends = race._finished("all", runs)
    assert sorted(end.n_iter for end in ends) == [0, 0, 900 if regular else 100]
    assert max(ends, key=lambda end: end.n_iter).theta == pytest.approx(regular[0] if regular else -5.0, abs=0.05)


@dataclass
class Sampled(Valley):
    """As where starts race on samples of the rows."""

    is_sampled: bool = True

    def sample(self, draws: np.random.Generator) -> str:
        return "some"


def test_starts_that_met_on_a_sample_count_as_starts_that_reached_it() -> None:
    found = Race(Sampled({-1.0: 0.0, 1.0: 3.0}, Plan(n_starts=4, race=((1, 4),)).at("fast"))).find(
        np.random.default_rng(1)
    )
    starts = Sampled({}, Plan(n_starts=4)).starts("some", True, np.random.default_rng(1))
    assert len(found.records) == len(starts) == 4
    assert sum(record.objective < 1 for record in found.records) == sum(x < 0 for _, x in starts)


def test_a_costly_step_means_fewer_runs() -> None:
    """First fewer starts and perturbations, then fewer rounds of them, in the end one round of eight starts."""
    plan = Plan(n_starts=24, n_perturbations=72, perturbation_race=((3, 24), (8, 10)), least_rounds=6, most_rounds=16)
    assert plan.within(BULK) == plan.within(0) == plan
    less = plan.within(2 * BULK)
    assert (less.n_starts, less.n_perturbations, less.perturbation_race) == (12, 36, ((3, 12), (8, 5)))
    assert (less.least_rounds, less.most_rounds, less.n_kept) == (6, 8, plan.n_kept)
    few = plan.within(27 * BULK)
    assert (few.n_starts, few.n_perturbations, few.least_rounds, few.most_rounds) == (FEWEST, FEWEST, 2, 3)
    least = plan.within(1000 * BULK)
    assert (least.n_starts, least.race[-1][1], least.least_rounds, least.n_kept) == (FEWEST, 2, 0, 1)
    assert least.at("best").least_rounds == 5
    agreed = replace(plan, agreed_hits=9, agreed_rounds=4).at("best")
    assert (agreed.agreed_hits, agreed.agreed_rounds) == (45, 20)
