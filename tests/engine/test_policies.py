"""What each policy proposes, on tables of energies small enough to know the right answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from majorant import _kernels
from majorant.data import Block, Chunks
from majorant.engine import (
    Balance,
    Biased,
    BoundPolicy,
    Family,
    GibbsLimit,
    GrowingSubset,
    PairConstraints,
    RandomWalk,
    Tempered,
    Tightest,
    View,
    minimize,
)
from majorant.engine.latents import tightest

from .families import k_means
from .problems import EXPLORING, PROBLEMS, Problem, kmeans_problem

CHANCE = 1e-6
"""A correct sampler fails a test this often."""

SOFT, HARD = 1.0, np.inf


def view_of(
    energies: Any, beta: float = HARD, *, weights: Any = None, seed: int = 0, draw: int = 1, first: int = 0
) -> View:
    """A block with this table of energies."""
    table = np.asarray(energies, dtype=np.float64)
    block = Block(first, (table,), None if weights is None else np.asarray(weights, dtype=np.float64))
    return View(block, table, *tightest(table, beta), beta, seed, draw)


def excess_of(view: View, z: NDArray[Any]) -> float:
    return view.block.total(view.energies[np.arange(len(z)), z] - view.energies.min(axis=1))


def check_frequencies(counts: NDArray[Any], probabilities: NDArray[np.float64]) -> None:
    assert chisquare(counts, counts.sum() * probabilities / probabilities.sum()).pvalue > CHANCE


def softmax(x: NDArray[np.float64]) -> NDArray[np.float64]:
    p = np.exp(x - x.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


class TestRandomWalk:
    ENERGIES = np.array([[0.0, 1.0, 2.0], [3.0, 0.5, 0.0], [0.2, 0.0, 0.1]])
    ROOM = 2.15

    def valid(self, weights: NDArray[np.float64]) -> list[tuple[int, ...]]:
        regrets = weights[:, None] * (self.ENERGIES - self.ENERGIES.min(axis=1)[:, None])
        return [z for z in product(range(3), repeat=3) if regrets[np.arange(3), z].sum() <= self.ROOM]

    @pytest.mark.parametrize("weights", [np.ones(3), np.array([0.5, 1.0, 4.0])], ids=["plain", "weighted"])
    def test_it_is_uniform_over_the_valid_configurations(self, weights: NDArray[np.float64], seed: int) -> None:
        valid = self.valid(weights)
        assert 5 < len(valid) < 27
        policy, counts = RandomWalk(n_sweeps=40), dict.fromkeys(valid, 0)
        for draw in range(4000):
            view = view_of(self.ENERGIES, weights=weights, seed=seed, draw=draw)
            z = policy.propose(view, price=float(weights.sum()) / self.ROOM)
            counts[tuple(z.tolist())] += 1  # a KeyError here is an invalid configuration
        check_frequencies(np.array(list(counts.values())), np.ones(len(valid)))

    def test_the_kernel_visits_all_valid_configurations_alike(self, seed: int) -> None:
        """Ends of many independent walks that begin at a corner of the valid set."""
        random, n_steps = np.random.default_rng(seed), 60
        valid = self.valid(np.ones(3))
        least, counts = self.ENERGIES.min(axis=1), dict.fromkeys(valid, 0)
        for _ in range(4000):
            z = np.array([2, 2, 1], dtype=np.int32)
            assert tuple(z.tolist()) in counts
            sites, picks = random.integers(0, 3, n_steps), random.random(n_steps)
            _kernels.walk(self.ENERGIES, None, least, self.ROOM, sites, picks, z)
            counts[tuple(z.tolist())] += 1
        check_frequencies(np.array(list(counts.values())), np.ones(len(valid)))

    def test_absent_states_are_never_taken(self) -> None:
        energies = np.random.default_rng(0).random((200, 4))
        energies[:, 1] = np.inf
        z = RandomWalk().propose(view_of(energies), price=1e-3)
        assert not (z == 1).any() and set(z.tolist()) == {0, 2, 3}

    def test_no_room_is_the_best_state(self) -> None:
        view = view_of(np.random.default_rng(0).random((50, 4)))
        assert np.array_equal(RandomWalk().propose(view, price=1e15), view.tight)


class TestGibbsLimit:
    @pytest.mark.parametrize("price", [0.0, 0.5, 2.0])
    def test_hard_draws_are_a_softmax_of_the_regret(self, price: float, seed: int) -> None:
        row, n = np.array([1.3, 0.7, 0.9, 3.0, np.inf]), 20000
        z = GibbsLimit().propose(view_of(np.tile(row, (n, 1)), seed=seed), price)
        counts = np.bincount(z, minlength=5)
        assert counts[4] == 0
        check_frequencies(counts[:4], softmax(-price * row[:4]))

    def test_weights_make_excess_dearer(self, seed: int) -> None:
        row, n = np.array([0.0, 1.0, 0.4]), 20000
        view = view_of(np.tile(row, (n, 1)), weights=np.full(n, 3.0), seed=seed)
        check_frequencies(np.bincount(GibbsLimit().propose(view, 0.5), minlength=3), softmax(-1.5 * row))

    def test_soft_proposals_are_posteriors_of_energies_with_gumbel_noise(self, seed: int) -> None:
        """At a low price the favourite state of a proposal is drawn from ``softmax(-price * energy)`` as well."""
        row, n, price = np.array([0.2, 1.0, 0.6]), 20000, 0.8
        q = GibbsLimit().propose(view_of(np.tile(row, (n, 1)), beta=SOFT, seed=seed), price)
        np.testing.assert_allclose(q.sum(axis=1), 1.0)
        check_frequencies(np.bincount(q.argmax(axis=1), minlength=3), softmax(-price * row))


class TestTempered:
    def test_soft_latents_are_posteriors_at_a_higher_temperature(self) -> None:
        view = view_of(np.random.default_rng(0).random((20, 3)) * 5, beta=2.0)
        np.testing.assert_allclose(Tempered().propose(view, 3.0), softmax(-2.0 * 0.75 * view.energies))

    def test_hard_latents_become_soft_bounds(self) -> None:
        view = view_of(np.random.default_rng(0).random((20, 3)) * 5)
        np.testing.assert_allclose(Tempered().propose(view, 3.0), softmax(-3.0 * view.energies))


class TestGrowingSubset:
    def test_a_share_stays_that_falls_as_the_price_rises(self) -> None:
        n = 4000
        last, shares = np.ones(n, dtype=np.int32), []
        for price in (0.1, 1.0, 9.0, 1e12):
            view = view_of(np.tile([0.0, 1.0], (n, 1)))
            view.block.memory["kept latents"] = last
            shares.append(np.mean(GrowingSubset().propose(view, price) == last))
        np.testing.assert_allclose(shares, [1 / 1.1, 1 / 2, 1 / 10, 0.0], atol=0.04)
        assert shares == sorted(shares, reverse=True) and shares[-1] == 0

    def test_a_schedule_says_how_many_units_move(self) -> None:
        n = 4000
        policy, last, shares = GrowingSubset(schedule=(0.1, 0.4, 1.0)), np.ones(n, dtype=np.int32), []
        for draw in (1, 2, 3, 9):
            view = view_of(np.tile([0.0, 1.0], (n, 1)), draw=draw)
            view.block.memory["kept latents"] = last
            one, other = (policy.propose(view, price) for price in (1e-3, 1e3))
            np.testing.assert_array_equal(one, other)
            shares.append(np.mean(one != last))
        np.testing.assert_allclose(shares, [0.1, 0.4, 1.0, 1.0], atol=0.04)

    @pytest.mark.parametrize(
        ("schedule", "kind"), [((), TypeError), (0.1, TypeError), ((0.0, 1.0), ValueError), ((0.5, 1.1), ValueError)]
    )
    def test_a_schedule_holds_shares(self, schedule: Any, kind: type[Exception]) -> None:
        with pytest.raises(kind, match="schedule"):
            GrowingSubset(schedule=schedule)

    def test_hard_labels_may_begin_a_soft_model(self) -> None:
        view = view_of(np.random.default_rng(0).random((100, 3)), beta=SOFT)
        GrowingSubset().keep(view.block, np.zeros(100, dtype=np.int32))
        q = GrowingSubset().propose(view, 1.0)
        stays = (q == [1.0, 0.0, 0.0]).all(axis=1)
        assert 20 < stays.sum() < 80
        np.testing.assert_array_equal(q[~stays], view.tight[~stays])


@dataclass
class Wish:
    """A bias that prefers states by a fixed table."""

    table: NDArray[np.float64]

    def prepare(self, family: Family[Any], theta: Any, data: Chunks) -> None: ...

    def prefer(self, view: View) -> NDArray[np.float64]:
        return self.table

    def renumbered(self, positions: NDArray[np.intp]) -> Wish:
        return self


class TestBiased:
    @pytest.mark.parametrize("case", range(30))
    def test_the_best_price_is_within_one_unit_of_the_best_valid_bound(self, case: int) -> None:
        random = np.random.default_rng(case)
        n, k = 5, 3
        view, wish = view_of(random.exponential(size=(n, k))), Wish(random.random((n, k)))
        budget = 0.3 * n * float(np.mean(view.energies.max(axis=1) - view.free))
        policy, at = Biased(wish), np.arange(n)

        best = max(
            wish.table[at, z].sum() for z in map(np.array, product(range(k), repeat=n)) if excess_of(view, z) <= budget
        )
        low, high = 1e-6, 1e6  # prices: too cheap, dear enough
        for _ in range(80):
            middle = np.sqrt(low * high)
            low, high = (low, middle) if excess_of(view, policy.propose(view, middle)) <= budget else (middle, high)
        found = policy.propose(view, high)
        assert excess_of(view, found) <= budget
        one_unit = np.max(wish.table.max(axis=1) - wish.table.min(axis=1))
        assert best - one_unit <= wish.table[at, found].sum() <= best

    def test_soft_latents_are_the_posterior_of_tilted_energies(self) -> None:
        random = np.random.default_rng(0)
        view, wish = view_of(random.random((10, 3)), beta=2.0), Wish(random.random((10, 3)))
        expected = softmax(-2.0 * (view.energies - wish.table / 4.0))
        np.testing.assert_allclose(Biased(wish).propose(view, 4.0), expected)

    def test_a_class_is_no_bias(self) -> None:
        with pytest.raises(TypeError, match=r"such as Balance\(\); got the class Balance itself: write Balance\("):
            Biased(Balance)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="bias must be an object"):
            Biased("balance")  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("there", "lacking"),
        [
            (["prefer"], r"prepare\(family, theta, data\) and renumbered\(positions\)"),
            (["prefer", "renumbered"], r"prepare\(family, theta, data\)"),
            (["prefer", "prepare"], r"renumbered\(positions\)"),
            (["prepare", "renumbered"], r"prefer\(view\)"),
            (["choose"], r"renumbered\(positions\)"),
        ],
    )
    def test_a_method_that_is_lacking_is_named(self, there: list[str], lacking: str) -> None:
        hints = type("Hints", (), dict.fromkeys(there, lambda self, *given: None))()
        with pytest.raises(TypeError, match=rf"^Hints lacks {lacking}: a bias has the methods"):
            Biased(hints)

    @pytest.mark.parametrize(
        ("given", "error", "message"),
        [
            (np.zeros(5), ValueError, r"shape \(5, 3\), or \(1, 3\) for all rows alike; got shape \(5,\)"),
            (np.zeros(3), ValueError, r"got shape \(3,\)"),
            (np.zeros((5, 1)), ValueError, r"got shape \(5, 1\)"),
            (np.zeros((3, 5)), ValueError, r"got shape \(3, 5\)"),
            (0.0, ValueError, r"got shape \(\)"),
            ([[0.0, 1.0], [0.0]], ValueError, "got rows of unequal length"),
            (None, TypeError, "got NoneType"),
            ("much", TypeError, "got <U4"),
            (np.full((5, 3), "much"), TypeError, "got <U4"),
            (np.full((5, 3), 1j), TypeError, "got complex128"),
            (
                np.array([[0.0, np.nan, 0.0]]),
                ValueError,
                "finite numbers, or -inf for never; unit 7 has nan at state 1",
            ),
            (np.where(np.eye(5, 3) > 0, np.inf, 0.0), ValueError, "unit 7 has inf at state 0"),
            (np.where(np.arange(5)[:, None] == 2, -np.inf, np.zeros((5, 3))), ValueError, "unit 9 is left no state"),
        ],
    )
    @pytest.mark.parametrize("beta", [SOFT, HARD])
    def test_what_is_preferred_is_checked(self, given: Any, error: type[Exception], message: str, beta: float) -> None:
        view = view_of(np.ones((5, 3)), beta, first=7)
        with pytest.raises(error, match=rf"^Wish\.prefer must give .*{message}"):
            Biased(Wish(given)).propose(view, 1.0)

    def test_a_state_that_is_never_to_be_chosen_is_not(self) -> None:
        energies = np.array([[1.0, 2.0], [5.0, 2.0]])
        for beta in (SOFT, HARD):
            never = Biased(Wish(np.array([[-np.inf, 0.0]]))).propose(view_of(energies, beta), 1.0)
            assert np.array_equal(never, [1, 1] if beta == HARD else [[0.0, 1.0], [0.0, 1.0]])

    def test_a_preference_may_be_that_of_all_units_and_pass_over_absent_states(self) -> None:
        energies = np.array([[1.0, 2.0, np.inf], [2.0, 2.0, 1.0]])
        wish = np.array([[0.0, 3.0, -np.inf], [1.0, 0.0, 0.0]])
        assert Biased(Wish(wish)).propose(view_of(energies), 1.0).tolist() == [1, 0]
        one = Biased(Wish([[0, 4, 0]])).propose(view_of(energies), 1.0)
        assert one.tolist() == [1, 1]

    def test_renumbering_reaches_the_bias(self) -> None:
        policy = Biased(PairConstraints([[0, 1]]), eta=0.2).renumbered(np.array([4, 7]))
        assert policy == Biased(PairConstraints([[4, 7]]), eta=0.2)
        assert GibbsLimit().renumbered(np.array([1, 0])) == GibbsLimit()

    @pytest.mark.parametrize("bias", [Balance(), PairConstraints([[0, 1]])], ids=repr)
    def test_a_preference_needs_its_pass(self, bias: Any) -> None:
        with pytest.raises(RuntimeError, match=r"before prepare\(\)"):
            bias.prefer(view_of(np.zeros((3, 2))))


def spread_of_sizes(z: NDArray[Any], k: int) -> float:
    return float(np.var(np.bincount(z, minlength=k)))


def prepared(policy: BoundPolicy, problem: Problem, theta: Any) -> View:
    """The view of all units at `theta`, after the policy's own passes."""
    data = problem.chunks()
    policy.prepare(problem.family, theta, data, 0, 1)
    (block,) = data.source.blocks()
    energies = problem.family.energies(theta, block)
    return View(block, energies, *tightest(energies, problem.family.beta), problem.family.beta, 0, 1)


def proposal_at_budget(policy: BoundPolicy, view: View, budget: float) -> NDArray[Any]:
    """The proposal at the lowest price whose excess fits."""
    low, high = 1e-9, 1e9
    for _ in range(100):
        middle = np.sqrt(low * high)
        low, high = (low, middle) if excess_of(view, policy.propose(view, middle)) <= budget else (middle, high)
    return policy.propose(view, high)


def uneven_problem(seed: int) -> tuple[Problem, NDArray[np.float64]]:
    """Two clusters of 150 and 50 rows that overlap, and their centres."""
    random = np.random.default_rng(seed)
    x = np.concatenate([random.normal(0, 1, (150, 2)), random.normal([2.5, 0], 1, (50, 2))])
    return Problem(k_means(2), (x,), np.zeros(200, dtype=np.int32)), np.array([[0.0, 0.0], [2.5, 0.0]])


class TestBalance:
    def test_it_prefers_the_lighter_states(self, seed: int) -> None:
        problem, theta = uneven_problem(seed)
        policy = Biased(Balance())
        view = prepared(policy, problem, theta)
        n = np.bincount(view.tight, minlength=2)
        np.testing.assert_allclose(policy.bias.prefer(view), [1 - n / 100])

    def test_sizes_come_nearer_within_a_budget(self, seed: int) -> None:
        problem, theta = uneven_problem(seed)
        policy = Biased(Balance())
        view = prepared(policy, problem, theta)
        q = proposal_at_budget(policy, view, 0.05 * view.free.sum())
        assert spread_of_sizes(q, 2) < 0.8 * spread_of_sizes(view.tight, 2)
        assert excess_of(view, q) <= 0.05 * view.free.sum()

    def test_weights_are_sizes(self, seed: int) -> None:
        problem, theta = uneven_problem(seed)
        heavy = np.where(np.arange(200) < 150, 1.0, 3.0)
        bias = Balance()
        bias.prepare(problem.family, theta, problem.chunks(3, weights=heavy))
        view = prepared(Tightest(), problem, theta)
        mass = np.bincount(view.tight, heavy, minlength=2)
        np.testing.assert_allclose(bias.prefer(view), [1 - 2 * mass / heavy.sum()])

    def test_fits_end_more_even_than_free_ones(self) -> None:
        """Bounds that prefer even sizes steer to solutions that have them, in most fits where the two differ."""
        spread: dict[str, list[float]] = {"balanced": [], "free": []}
        for seed in range(100):
            problem = kmeans_problem(seed, n=120)
            (x,) = problem.columns
            for name, policy in (("balanced", Biased(Balance())), ("free", GibbsLimit())):
                theta = problem.minimize(policy, seed=seed).theta
                nearest = np.linalg.norm(x[:, None] - theta, axis=2).argmin(axis=1)
                spread[name].append(spread_of_sizes(nearest, 4))
        # Some fits end in a poor optimum of very uneven sizes, which would decide a comparison of means.
        difference = np.subtract(spread["balanced"], spread["free"])
        assert np.sum(difference < 0) > 1.5 * np.sum(difference > 0)
        assert np.median(spread["balanced"]) < np.median(spread["free"])


class TestPairConstraints:
    @staticmethod
    def random_pairs(seed: int, n: int, n_pairs: int) -> PairConstraints:
        random = np.random.default_rng(seed)
        must = random.choice(n // 2, (n_pairs, 2), replace=False)
        apart = n // 2 + random.choice(n // 2, (n_pairs, 2), replace=False)
        return PairConstraints(must, apart)

    def test_pairs_are_honoured_within_a_budget_and_wholly_where_it_is_no_matter(self, seed: int) -> None:
        problem, pairs = kmeans_problem(seed, n=200), self.random_pairs(seed, 200, 30)
        policy = Biased(pairs)
        view = prepared(policy, problem, problem.minimize().theta)
        broken = []
        for budget in (0.0, 0.05 * view.free.sum(), 0.4 * view.free.sum(), np.inf):
            q = proposal_at_budget(policy, view, budget)
            assert excess_of(view, q) <= budget
            together = q[pairs.must_link[:, 0]] == q[pairs.must_link[:, 1]]
            apart = q[pairs.cannot_link[:, 0]] != q[pairs.cannot_link[:, 1]]
            broken.append(int((~together).sum() + (~apart).sum()))
        assert broken == sorted(broken, reverse=True)
        assert broken[0] > broken[2] > broken[3] == 0

    def test_free_units_keep_their_best_state(self, seed: int) -> None:
        problem = kmeans_problem(seed, n=50)
        policy = Biased(PairConstraints([[0, 1]], [[2, 3]]))
        view = prepared(policy, problem, problem.minimize().theta)
        assert np.array_equal(policy.propose(view, 1e-9)[4:], view.tight[4:])

    def test_links_go_through_others(self) -> None:
        policy = Biased(PairConstraints([[0, 1], [1, 2], [5, 4]], [[2, 4]]))
        problem = kmeans_problem(0, n=50)
        q = policy.propose(prepared(policy, problem, problem.minimize().theta), 1e-9)
        assert q[0] == q[1] == q[2] != q[4] == q[5]

    def test_blocks_do_not_matter(self) -> None:
        problem, pairs = kmeans_problem(1, n=60), self.random_pairs(1, 60, 10)
        theta = problem.minimize().theta
        whole = pairs.prefer(prepared(Biased(pairs), problem, theta))
        data = problem.chunks(7)
        pairs.prepare(problem.family, theta, data)
        parts = []
        for block in data.source.blocks():
            energies = problem.family.energies(theta, block)
            parts.append(pairs.prefer(View(block, energies, *tightest(energies, HARD), HARD, 0, 1)))
        assert len(parts) == 7
        np.testing.assert_array_equal(np.concatenate(parts), whole)

    @pytest.mark.parametrize("must", [[[0, 1]], [[0, 2], [2, 1]]], ids=["directly", "through another"])
    def test_contradictions_are_refused(self, must: list[list[int]]) -> None:
        with pytest.raises(ValueError, match=r"units 1 and 0 are to be linked .* and kept apart: drop one pair"):
            PairConstraints(must, [[1, 0]])

    def test_a_unit_cannot_differ_from_itself(self) -> None:
        with pytest.raises(ValueError, match="units 3 and 3"):
            PairConstraints(cannot_link=[[3, 3]])

    def test_more_enemies_than_states_are_possible(self) -> None:
        """Three units that must all differ, two states: one pair is broken, the bound is valid all the same."""
        policy = Biased(PairConstraints(cannot_link=[[0, 1], [1, 2], [0, 2]]))
        x = np.random.default_rng(0).normal(size=(20, 2))
        problem = Problem(k_means(2), (x,), (np.arange(20) % 2).astype(np.int32))
        q = policy.propose(prepared(policy, problem, problem.minimize().theta), 1e-9)
        assert len(set(q[:3].tolist())) == 2
        assert problem.minimize(policy).converged

    @pytest.mark.parametrize(
        "pairs",
        [[[0, 1, 2]], [0, 1], [[0.0, 1.0]], [[-1, 0]], [["a", "b"]], np.array([[0, 1]], dtype="m8[s]")],
        ids=["triple", "flat", "real", "negative", "text", "durations"],
    )
    def test_pairs_of_numbers_are_needed(self, pairs: Any) -> None:
        with pytest.raises(ValueError, match=r"must_link must be pairs of unit numbers, an array of integers of shape"):
            PairConstraints(pairs)

    def test_unknown_units_are_named(self) -> None:
        problem = kmeans_problem(0, n=10)
        with pytest.raises(ValueError, match="names unit 10, but there are 10 units"):
            problem.minimize(Biased(PairConstraints([[0, 10]])))

    def test_no_pairs_are_no_preference(self) -> None:
        problem = kmeans_problem(0)
        assert problem.minimize(Biased(PairConstraints())).converged

    def test_pairs_of_one_group_are_those_of_every_group(self) -> None:
        pairs = PairConstraints([[0, 1]], [[1, 2]])
        again = Biased(pairs, eta=0.2).repeated(2, 3)
        assert again == Biased(PairConstraints([[0, 1], [3, 4]], [[1, 2], [4, 5]]), eta=0.2)
        assert pairs.repeated(2, 2) is pairs
        for policy in (Biased(Balance()), GibbsLimit()):
            assert policy.repeated(2, 3) is policy

    def test_rows_are_renumbered(self) -> None:
        pairs = PairConstraints([[0, 1], [1, 2], [0, 4]], [[3, 0], [4, 3]])
        # Rows 0 and 4 are equal, row 2 has no weight.
        moved = pairs.renumbered(np.array([5, 3, -1, 8, 5]))
        assert moved == PairConstraints([[5, 3], [5, 5]], [[8, 5], [5, 8]])
        with pytest.raises(ValueError, match="names row 4, but there are 2 rows"):
            pairs.renumbered(np.array([0, 1]))
        with pytest.raises(ValueError, match="rows 3 and 0 are equal"):
            pairs.renumbered(np.array([1, 2, 3, 1, 4]))

    def test_equality_and_hash(self) -> None:
        a, b, c = PairConstraints([[0, 1]]), PairConstraints([[0, 1]]), PairConstraints([[0, 2]])
        assert a == b and hash(a) == hash(b) and a != c and a != "pairs"
        assert repr(a) == "PairConstraints(1 must-link, 0 cannot-link pairs)"
        assert Balance() == Balance().renumbered(np.array([0])) and hash(Balance()) == hash(Balance())


class TestNoise:
    @pytest.mark.parametrize("width", [1, 2, 3, 4, 7])
    def test_how_units_are_cut_cannot_matter(self, width: int) -> None:
        whole = Block(0, (np.empty((50, 1)),)).noise(3, 5, width)
        for cuts in ([0, 50], [0, 1, 2, 50], [0, 13, 26, 39, 50], [0, 7, 49, 50]):
            parts = [Block(a, (np.empty((b - a, 1)),)).noise(3, 5, width) for a, b in pairwise(cuts)]
            np.testing.assert_array_equal(np.concatenate(parts), whole)

    def test_seed_and_draw_matter(self) -> None:
        block = Block(0, (np.empty((50, 1)),))
        draws = [block.noise(seed, draw, 2) for seed, draw in ((0, 1), (1, 0), (0, 2), (2**31, 1))]
        for i, a in enumerate(draws):
            for b in draws[:i]:
                assert not (a == b).any()

    def test_it_is_uniform_and_never_zero_or_one(self, seed: int) -> None:
        u = Block(7, (np.empty((20000, 1)),)).noise(seed, 1, 2)
        assert u.min() > 0 and u.max() < 1
        check_frequencies(np.histogram(u, 20, (0, 1))[0], np.ones(20))

    def test_the_largest_uniform_stays_below_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A Gumbel number of it must be finite."""

        class Highest:
            def __init__(self, bits: Any) -> None: ...

            def random(self, shape: Any) -> NDArray[np.float64]:
                return np.full(shape, 1 - 2.0**-53)

        monkeypatch.setattr(np.random, "Generator", Highest)
        u = Block(0, (np.empty((1, 1)),)).noise(0, 0, 1)
        assert 0 < u[0, 0] < 1

    @pytest.mark.parametrize("make", PROBLEMS.values(), ids=PROBLEMS.keys())
    @pytest.mark.parametrize(
        "policy",
        [p for n, p in EXPLORING.items() if n != "RandomWalk"],
        ids=[n for n in EXPLORING if n != "RandomWalk"],
    )
    def test_proposals_do_not_depend_on_blocks(
        self, make: Callable[[int], Problem], policy: BoundPolicy, seed: int
    ) -> None:
        problem = make(seed)
        theta = problem.first_theta()

        def proposals(n_blocks: int) -> NDArray[Any]:
            data = problem.chunks(n_blocks)
            policy.prepare(problem.family, theta, data, 0, 1)
            parts = []
            for block in data.source.blocks():
                policy.keep(block, problem.latent(block))
                energies = problem.family.energies(theta, block)
                view = View(block, energies, *tightest(energies, problem.family.beta), problem.family.beta, 0, 1)
                parts.append(policy.propose(view, 0.3))
            return np.concatenate(parts)

        np.testing.assert_allclose(proposals(1), proposals(7), rtol=1e-9, atol=1e-12)


PRICED = {name: policy for name, policy in EXPLORING.items() if name != "Coherence"} | {"Tightest": Tightest()}
"""Coherence keeps to the budget whatever the price."""


@pytest.mark.parametrize("beta", [SOFT, HARD])
@pytest.mark.parametrize("policy", PRICED.values(), ids=PRICED.keys())
class TestPrice:
    PRICES = (1e-2, 1e-1, 1.0, 10.0, 1e3)

    @staticmethod
    def view(policy: BoundPolicy, beta: float) -> View:
        random = np.random.default_rng(0)
        view = view_of(random.exponential(2.0, (400, 3)), beta)

        class Given:
            n_states = 3

            def __init__(self) -> None:
                self.beta = beta

            def energies(self, theta: str | None, block: Block) -> NDArray[np.float64]:
                return np.asarray(block.columns[0][:, :: -1 if theta == "others" else 1])

            def statistics(self, block: Block, q: NDArray[Any], theta: Any) -> NDArray[np.float64]:
                return np.zeros(1)

            def solve(self, s: NDArray[np.float64], theta: Any, data: Chunks) -> tuple[str, float]:
                return "others", 0.0

        policy.prepare(Given(), None, Chunks(view.energies), 0, 1)  # type: ignore[arg-type]
        policy.keep(view.block, random.integers(0, 3, 400).astype(np.int32))
        return view

    def test_an_infinite_one_is_the_tightest_bound(self, policy: BoundPolicy, beta: float) -> None:
        view = self.view(policy, beta)
        q = policy.propose(view, 1e14)
        # A walk has hard latents: where the tightest ones are soft, the best state is as near as it can come.
        tight = view.best if isinstance(policy, RandomWalk) else view.tight
        if q.ndim > tight.ndim:
            tight = np.eye(3)[tight]
        np.testing.assert_allclose(q, tight, atol=1e-9)

    def test_the_excess_falls_as_it_rises(self, policy: BoundPolicy, beta: float) -> None:
        view = self.view(policy, beta)

        class Nothing:
            def statistics(self, block: Block, q: NDArray[Any], theta: None) -> float:
                return 0.0

        bounds = [view.bound(Nothing(), None, policy.propose(view, price)) for price in self.PRICES]  # type: ignore[arg-type]
        excesses = np.array([b.excess for b in bounds])
        assert (np.diff(excesses) <= 1e-9 * excesses.max()).all() and (excesses >= -1e-9).all()
        if not isinstance(policy, Tightest):
            assert excesses[0] > excesses[-1]


class TestParameters:
    @pytest.mark.parametrize("eta", [0.0, -0.1, 1.1, np.nan, np.inf])
    @pytest.mark.parametrize("policy", [Tightest, GibbsLimit, RandomWalk, GrowingSubset, Tempered])
    def test_eta_out_of_range(self, policy: type[BoundPolicy], eta: float) -> None:
        with pytest.raises(ValueError, match=r"eta must lie in \(0, 1\]; got"):
            policy(eta=eta)

    def test_eta_of_a_bias_out_of_range(self) -> None:
        with pytest.raises(ValueError, match="eta must lie in"):
            Biased(Balance(), eta=0.0)

    def test_a_walk_takes_steps(self) -> None:
        with pytest.raises(ValueError, match="n_sweeps must be at least 1; got 0"):
            RandomWalk(n_sweeps=0)

    @pytest.mark.parametrize(
        ("name", "value"),
        [("eta", "small"), ("eta", None), ("eta", True), ("hot_start", "yes"), ("hot_start", 1), ("n_sweeps", 1.5)],
    )
    def test_parameters_of_other_types(self, name: str, value: Any) -> None:
        with pytest.raises(TypeError, match=f"{name} must be .*; got {value!r}"):
            RandomWalk(**{name: value})

    def test_policies_are_values(self) -> None:
        assert GibbsLimit() == GibbsLimit(eta=0.1) and hash(GibbsLimit()) == hash(GibbsLimit(eta=0.1))
        assert GibbsLimit(eta=0.2) != GibbsLimit() and GibbsLimit() != Tempered()
        assert replace(RandomWalk(), eta=0.5).n_sweeps == RandomWalk().n_sweeps

    def test_a_policy_must_say_how_it_proposes(self) -> None:
        with pytest.raises(NotImplementedError, match="BoundPolicy must say how"):
            BoundPolicy().propose(view_of(np.zeros((1, 1))), 1.0)

    def test_a_policy_of_ones_own(self) -> None:
        """The worst state of every unit is a valid bound, once it is blended."""

        class Worst(BoundPolicy):
            def propose(self, view: View, price: float) -> NDArray[Any]:
                return view.energies.argmax(axis=1)

        problem = kmeans_problem(0)
        solution = minimize(problem.family, problem.chunks(3), Worst(eta=0.5), latent=problem.latent)
        assert solution.converged and np.nanmin(solution.trace["blend"]) < 1
        assert (np.diff(solution.trace["bound"][solution.trace["exploring"] == 1]) <= 0).all()
