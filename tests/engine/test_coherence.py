"""Labelings of least Potts energy within a budget, against enumeration, and fits whose bounds they are."""

from __future__ import annotations

from itertools import product
from pickle import dumps, loads
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.image import grid_to_graph

import majorant as mj
from majorant.data import Chunks
from majorant.engine import Biased, Coherence, Tightest, View
from majorant.engine.policies import CHOSEN
from majorant.engine.potts import PottsGraph, minimum_cut

from .families import k_means
from .problems import PROBLEMS, kmeans_problem

METHODS = ["expansion", "icm"]


def random_graph(random: np.random.Generator, n: int, n_edges: int) -> PottsGraph:
    pairs = np.array([(i, j) for i in range(n) for j in range(i + 1, n)])
    chosen = pairs[np.sort(random.choice(len(pairs), n_edges, replace=False))]
    return PottsGraph(n, chosen.astype(np.intp), random.uniform(0.5, 2.0, n_edges))


def all_labelings(n: int, n_states: int) -> NDArray[np.int32]:
    return np.array(list(product(range(n_states), repeat=n)), dtype=np.int32)


def totals(table: NDArray[np.float64], labelings: NDArray[np.int32]) -> NDArray[np.float64]:
    return np.asarray(table[np.arange(len(table)), labelings].sum(axis=-1))


def energies_of(graph: PottsGraph, labelings: NDArray[np.int32]) -> NDArray[np.float64]:
    return np.array([graph.energy(z) for z in labelings])


def picture(side: int, seed: int = 0) -> tuple[NDArray[np.float64], Any, NDArray[np.int64]]:
    """Energies of the pixels of a disc in noise, the graph of the grid, and which pixels are the disc's."""
    at = np.indices((side, side)) - (side - 1) / 2
    disc = (np.hypot(*at) < side / 3).astype(np.int64).ravel()
    grey = disc + 0.6 * np.random.default_rng(seed).normal(size=side**2)
    return (grey[:, None] - [0.0, 1.0]) ** 2, grid_to_graph(side, side), disc


class TestMinimumCut:
    @pytest.mark.parametrize("case", range(25))
    def test_it_is_the_smallest_set_of_least_cost(self, case: int) -> None:
        random = np.random.default_rng(case)
        n = 8
        graph = random_graph(random, n, 12)
        cost = random.normal(0, 2, n)
        if case % 4 == 0:
            cost[random.integers(n)] = np.inf
        tail, head = np.concatenate([graph.edges, graph.edges[:, ::-1]]).T
        capacity = np.concatenate([graph.weights, graph.weights])
        sets = all_labelings(n, 2).astype(bool)
        with np.errstate(invalid="ignore"):
            value = np.where(sets, cost, 0.0).sum(axis=1) + energies_of(graph, sets.astype(np.int32))
        np.testing.assert_array_equal(minimum_cut(cost, tail, head, capacity), sets[value.argmin()])

    def test_of_equal_sets_the_smaller_one(self) -> None:
        both = np.array([0, 1]), np.array([1, 0]), np.array([1.0, 1.0])
        assert not minimum_cut(np.array([-1.0, 1.0]), *both).any()
        assert minimum_cut(np.array([-1.5, 0.5]), *both).tolist() == [True, True]


class TestPottsGraph:
    @pytest.mark.parametrize("case", range(20))
    def test_two_states_are_minimised_exactly(self, case: int) -> None:
        random = np.random.default_rng(case)
        graph, unary = random_graph(random, 9, 14), random.exponential(size=(9, 2))
        every = all_labelings(9, 2)
        for strength in (0.05, 0.3, 1.0, 5.0):
            value = totals(unary, every) + strength * energies_of(graph, every)
            z = graph.minimise(unary, strength, unary.argmin(axis=1))
            np.testing.assert_allclose(totals(unary, z) + strength * graph.energy(z), value.min())

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("case", range(10))
    def test_more_states_end_where_no_move_pays(self, case: int, method: Any) -> None:
        random = np.random.default_rng(case)
        n, k, strength = 7, 3, 0.3
        graph, unary = random_graph(random, n, 11), random.exponential(size=(n, k))
        unary[0, 1] = np.inf
        every = all_labelings(n, k)
        value = totals(unary, every) + strength * energies_of(graph, every)
        start = unary.argmin(axis=1)
        z = graph.minimise(unary, strength, start, method)
        found = totals(unary, z) + strength * graph.energy(z)
        assert found <= totals(unary, start) + strength * graph.energy(start) + 1e-12
        differ = every != z
        if method == "icm":
            moves = differ.sum(axis=1) <= 1
        else:  # some units take one state
            moves = np.array([len(set(v[d].tolist())) <= 1 for v, d in zip(every, differ, strict=True)])
            best = every[value.argmin()]
            assert found <= totals(unary, best) + 2 * strength * graph.energy(best) + 1e-12
        assert found <= value[moves].min() + 1e-9

    @pytest.mark.parametrize("case", range(10))
    def test_sets_change_the_energy_one_by_one(self, case: int) -> None:
        random = np.random.default_rng(case)
        graph = random_graph(random, 12, 14)
        z, other = random.integers(0, 3, (2, 12)).astype(np.int32)
        sets, n_sets = graph.differences(z, other)
        assert ((sets < 0) == (z == other)).all()
        changes = graph.energy_changes(z, other, sets, n_sets)
        for taken in product([False, True], repeat=n_sets):
            mixed = np.where(np.append(taken, False)[sets], other, z)
            np.testing.assert_allclose(graph.energy(mixed), graph.energy(z) + changes[list(taken)].sum(), atol=1e-12)

    def test_energy_of_shares_is_the_expectation(self) -> None:
        random = np.random.default_rng(0)
        graph, q = random_graph(random, 4, 5), random.dirichlet(np.ones(2), 4)
        every = all_labelings(4, 2)
        chances = np.prod(q[np.arange(4), every], axis=1)
        np.testing.assert_allclose(graph.energy(q), chances @ energies_of(graph, every))
        np.testing.assert_allclose(graph.votes(q, 2), graph.adjacency.toarray() @ q)


class TestWithinABudget:
    @staticmethod
    def vertices(value: NDArray[np.float64], potts: NDArray[np.float64]) -> list[int]:
        """Labelings that are best for some multiplier: the lower convex hull, by ascending value."""
        at = int(np.lexsort((potts, value))[0])
        hull = [at]
        while potts[at] > potts.min() + 1e-9:
            better = np.flatnonzero(potts < potts[at] - 1e-9)
            price = (value[better] - value[at]) / (potts[at] - potts[better])
            near = better[price <= price.min() + 1e-12]
            at = int(near[potts[near].argmin()])
            hull.append(at)
        return hull

    @pytest.mark.parametrize("case", range(25))
    def test_two_states_are_as_coherent_as_the_best_multiplier(self, case: int) -> None:
        """And never more so than the best labeling of all."""
        random = np.random.default_rng(case)
        n = 9
        graph, table = random_graph(random, n, 14), random.exponential(size=(n, 2))
        weights = random.uniform(0.5, 2.0, n)
        bias = Coherence(graph.edges, graph.weights)
        every = all_labelings(n, 2)
        regrets = weights[:, None] * (table - table.min(axis=1, keepdims=True))
        value, potts = totals(regrets, every), energies_of(graph, every)
        hull = self.vertices(value, potts)
        for share in (0.0, 0.1, 0.3, 0.6, 1.0):
            budget = share * value[hull[-1]] * 1.001
            z = bias.label(table, budget, sample_weight=weights)
            assert totals(regrets, z) <= budget
            by_multiplier = min(potts[h] for h in hull if value[h] <= budget)
            assert potts[value <= budget].min() - 1e-9 <= graph.energy(z) <= 1.01 * by_multiplier + 1e-9

    @pytest.mark.parametrize("method", METHODS)
    def test_more_budget_is_more_coherent_and_all_of_it_is_one_state(self, method: Any, seed: int) -> None:
        random = np.random.default_rng(seed)
        table, graph = random.exponential(size=(400, 4)), grid_to_graph(20, 20)
        bias = Coherence(graph, method=method)
        best = table.min(axis=1).sum()
        potts = []
        for budget in (0.0, 2.0, 10.0, 30.0, 1e6):
            z = bias.label(table, budget)
            assert totals(table, z) - best <= budget * (1 + 1e-12) + 1e-12
            potts.append(PottsGraph(400, bias.edges, bias.weights).energy(z))
        assert potts == sorted(potts, reverse=True) and potts[0] > 1.2 * potts[2]
        assert len(set(z.tolist())) == 1 and potts[-1] == 0
        assert np.array_equal(bias.label(table, 0.0), table.argmin(axis=1))

    def test_expansion_is_at_least_as_coherent(self, seed: int) -> None:
        table = np.random.default_rng(seed).exponential(size=(400, 4))
        graph = grid_to_graph(20, 20)
        spent = 0.1 * table.min(axis=1).sum()
        expansion, icm = (
            PottsGraph(400, bias.edges, bias.weights).energy(bias.label(table, spent))
            for bias in (Coherence(graph), Coherence(graph, method="icm"))
        )
        assert expansion <= icm

    def test_a_picture_without_speckle(self) -> None:
        energies, graph, disc = picture(40)
        plain = energies.argmin(axis=1)
        clean = Coherence(graph).label(energies, 0.5 * energies.min(axis=1).sum())
        assert np.mean(clean != disc) < 0.05 < 0.15 < np.mean(plain != disc)

    def test_the_numbers_of_units_cannot_matter(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        energies, graph, _ = picture(15, seed)
        pairs, at = Coherence(graph).edges, random.permutation(225)
        for budget in (1.0, 10.0, 40.0):
            z = Coherence(pairs).label(energies, budget)
            moved = Coherence(np.argsort(at)[pairs]).label(energies[at], budget)
            np.testing.assert_array_equal(moved, z[at])

    def test_twice_the_same_bits(self) -> None:
        energies, graph, _ = picture(20)
        bias = Coherence(graph)
        first = bias.label(energies, 10.0)
        bias.label(energies[::-1], 3.0)
        np.testing.assert_array_equal(bias.label(energies, 10.0), first)
        for beta in (0.5, 2.0):
            soft = bias.label(energies, 10.0, beta=beta)
            np.testing.assert_array_equal(loads(dumps(bias)).label(energies, 10.0, beta=beta), soft)

    @settings(max_examples=20, deadline=None)
    @given(
        st.integers(0, 10**6), st.sampled_from([1e-150, 1e-12, 1.0, 1e150]), st.sampled_from([1e-300, 1e-9, 1.0, 1e300])
    )
    def test_units_of_energy_and_of_weights_cannot_matter(self, seed: int, unit: float, scale: float) -> None:
        random = np.random.default_rng(seed)
        graph, table = random_graph(random, 12, 20), random.exponential(size=(12, 3))
        z = Coherence(graph.edges, graph.weights).label(table, 1.5)
        other = Coherence(graph.edges, graph.weights * scale).label(table * unit, 1.5 * unit)
        assert graph.energy(other) == pytest.approx(graph.energy(z), rel=0.02)
        assert totals(table, other) - table.min(axis=1).sum() <= 1.5 * (1 + 1e-9)

    @pytest.mark.parametrize("beta", [np.inf, 2.0])
    def test_edges_of_hardly_any_weight_beside_heavy_ones(self, beta: float) -> None:
        table = np.random.default_rng(0).exponential(size=(12, 3))
        table[np.arange(12), np.arange(12) % 3] = np.inf
        pairs = np.column_stack([np.arange(11), np.arange(1, 12)])
        weights = np.where(np.arange(11) % 2, 1e-200, 1e200)
        q = Coherence(pairs, weights).label(table, 20.0, beta=beta)
        np.testing.assert_array_equal(q, Coherence(pairs[::2]).label(table, 20.0, beta=beta))

    def test_absent_states_are_never_taken(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        table, graph = random.exponential(size=(100, 3)), grid_to_graph(10, 10)
        table[np.arange(100), random.integers(0, 3, 100)] = np.inf  # no state is there for all
        potts = []
        for budget in (0.0, 5.0, 1e6):
            z = Coherence(graph).label(table, budget)
            assert np.isfinite(totals(table, z))
            potts.append(PottsGraph(100, Coherence(graph).edges, Coherence(graph).weights).energy(z))
        assert potts[0] > potts[1] > potts[2] > 0

    @pytest.mark.parametrize("beta", [0.3, 3.0])
    def test_soft_latents_become_more_coherent_within_the_budget(self, beta: float) -> None:
        energies, graph, _ = picture(20)
        bias = Coherence(graph)
        potts = PottsGraph(400, bias.edges, bias.weights)
        free = -np.log(np.exp(-beta * energies).sum(axis=1)) / beta
        posterior = np.exp(-beta * (energies - free[:, None]))
        np.testing.assert_allclose(bias.label(energies, 0.0, beta=beta), posterior)
        last = potts.energy(posterior)
        for budget in (1.0, 10.0):
            q = bias.label(energies, budget, beta=beta)
            np.testing.assert_allclose(q.sum(axis=1), 1.0)
            excess = np.sum(q * (energies - free[:, None] + np.log(np.maximum(q, 1e-300)) / beta))
            assert 0.5 * budget < excess <= budget * (1 + 1e-9)
            assert potts.energy(q) < last
            last = potts.energy(q)

    @pytest.mark.parametrize(
        ("given", "error", "message"),
        [
            ({"budget": -1.0}, ValueError, "budget must be at least 0"),
            ({"budget": np.nan}, ValueError, "budget"),
            ({"budget": "all"}, TypeError, "budget must be a number"),
            ({"beta": 0.0}, ValueError, "beta must be positive"),
            ({"energies": [0.0, 1.0]}, ValueError, r"shape \(n_units, n_states\); got shape \(2,\)"),
            ({"energies": [[0.0, np.nan], [0.0, 1.0]]}, ValueError, "energies must be numbers"),
            ({"energies": [[np.inf, np.inf], [0.0, 1.0]]}, ValueError, "at least one of each row finite"),
            ({"energies": [[0.0, 1.0]]}, ValueError, "an edge names unit 1, but there are 1 units"),
            ({"energies": np.empty((2, 0))}, ValueError, r"shape \(n_units, n_states\); got shape \(2, 0\)"),
            ({"energies": [["a", "b"], ["c", "d"]]}, TypeError, "energies must be an array of numbers"),
            ({"energies": [[1j, 0], [0, 1]]}, TypeError, "got an array of complex128"),
            ({"energies": sparse.csr_array(np.eye(2))}, TypeError, "got a sparse matrix: call its toarray"),
            ({"sample_weight": [1.0]}, ValueError, "one number per row"),
            ({"sample_weight": [1.0, -1.0]}, ValueError, "must not be negative"),
        ],
    )
    def test_what_cannot_be_labelled(self, given: dict[str, Any], error: type[Exception], message: str) -> None:
        arguments = {"energies": [[0.0, 1.0], [1.0, 0.0]], "budget": 1.0} | given
        with pytest.raises(error, match=message):
            Coherence([[0, 1]]).label(**arguments)

    def test_no_edges_are_no_preference(self) -> None:
        table = np.random.default_rng(0).exponential(size=(20, 3))
        for edges in ([], np.empty((0, 2), dtype=int), sparse.csr_array((20, 20))):
            np.testing.assert_array_equal(Coherence(edges).label(table, 5.0), table.argmin(axis=1))
            assert len(Coherence(edges).edges) == 0

    def test_units_without_edges_keep_their_best_state(self) -> None:
        table = np.random.default_rng(0).exponential(size=(20, 3))
        z = Coherence([[0, 1], [1, 2]]).label(table, 100.0)
        assert len(set(z[:3].tolist())) == 1
        np.testing.assert_array_equal(z[3:], table[3:].argmin(axis=1))

    def test_units_without_weight_follow_the_others(self) -> None:
        table = np.array([[0.0, 3.0], [5.0, 0.0], [0.0, 3.0]])
        chain, weights = Coherence([[0, 1], [1, 2]]), [1.0, 0.0, 1.0]
        assert chain.label(table, 1.0, sample_weight=weights).tolist() == [0, 0, 0]
        assert chain.label(table, 1.0).tolist() == [0, 1, 0]
        soft = chain.label(table, 1.0, sample_weight=weights, beta=1.0)
        assert np.isfinite(soft).all() and soft[1, 0] > 0.9


class TestFits:
    @pytest.mark.parametrize("make", PROBLEMS.values(), ids=PROBLEMS.keys())
    def test_bounds_are_valid_and_coherent_under_expansion(self, make: Any) -> None:
        for seed in range(5):
            policy = Biased(Coherence([[i, i + 1] for i in range(17)]))
            solution = make(seed).minimize(policy, seed=seed, max_iter=15, n_polish=1)
            trace = solution.trace
            exploring = trace["exploring"] == 1
            slack = 1e-9 * np.abs(trace["bound"]).max()
            assert (np.diff(trace["bound"][exploring]) <= slack).all()
            assert (trace["gap"] >= -slack).all()
            drew = np.isfinite(trace["used"])
            assert (trace["used"][drew] <= trace["budget"][drew] * (1 + 1e-12)).all()
            assert (trace["blend"][drew] > 1 - 1e-6).all(), "a proposal had to be blended"

    def test_without_edges_it_is_the_tightest_bound(self, seed: int) -> None:
        problem = kmeans_problem(seed)
        tight, none = problem.minimize(Tightest()), problem.minimize(Biased(Coherence([])), heat=0.0)
        np.testing.assert_allclose(none.objective, tight.objective)

    def test_blocks_and_threads_cannot_matter(self) -> None:
        problem = kmeans_problem(3)
        policy = Biased(Coherence([[i, i + 1] for i in range(30)]))
        one, again, many = (
            problem.minimize(policy, data=problem.chunks(blocks, n_jobs=jobs))
            for blocks, jobs in ((1, 1), (7, 1), (7, 2))
        )
        np.testing.assert_allclose(again.theta, one.theta, atol=1e-9)
        np.testing.assert_array_equal(many.theta, again.theta)

    def test_a_large_budget_is_not_exceeded_however_odd_the_choice(self) -> None:
        """What a bias chooses need not be valid: the loop blends it."""

        class Worst:
            def choose(self, view: View, budget: float) -> NDArray[Any]:
                return view.energies.argmax(axis=1)

            def renumbered(self, positions: NDArray[np.intp]) -> Worst:
                return self

        solution = kmeans_problem(0).minimize(Biased(Worst(), eta=0.5))
        used, budget = solution.trace["used"], solution.trace["budget"]
        drew = np.isfinite(used)
        assert solution.converged and (solution.trace["blend"][drew] < 1).any()
        assert (used[drew] <= budget[drew] * (1 + 1e-12)).all()

    @pytest.mark.parametrize(
        ("chosen", "message"),
        [
            (np.full(3, 7), r"Odd.choose gave states from 7 to 7; there are 2"),
            (np.array([0, -1, 0]), "states from -1 to 0"),
            (np.zeros(2, dtype=int), r"shape \(3,\), or rows of shares that sum to one, shape \(3, 2\)"),
            (np.zeros(3), r"got float64 of shape \(3,\)"),
            (np.full((3, 2), 0.4), "sum to one"),
            (np.array([[2.0, -1.0]] * 3), "sum to one"),
            (np.full((3, 2), np.nan), "sum to one"),
        ],
    )
    def test_what_is_chosen_is_checked(self, chosen: NDArray[Any], message: str) -> None:
        class Odd:
            def choose(self, view: View, budget: float) -> NDArray[Any]:
                return chosen

            def renumbered(self, positions: NDArray[np.intp]) -> Odd:
                return self

        data = Chunks(np.array([[0.0], [1.0], [5.0]]))
        with pytest.raises(ValueError, match=message):
            Biased(Odd()).prepare(k_means(2), np.array([[0.0], [4.0]]), data, 0, 1, 100.0)

    def test_no_budget_is_the_tightest_bound(self) -> None:
        data, theta = Chunks(np.array([[0.0], [1.0], [5.0]])), np.array([[0.0], [4.0]])
        Biased(Coherence([[0, 2]])).prepare(k_means(2), theta, data, 0, 1, bound=2.0)  # F = 2
        (block,) = data.source.blocks()
        assert block.memory[CHOSEN].tolist() == [0, 0, 1]
        Biased(Coherence([[0, 2]]), eta=0.2).prepare(k_means(2), theta, data, 0, 1, bound=22.0)  # room: 16
        assert block.memory[CHOSEN].tolist() == [1, 0, 1]

    def test_data_of_another_number_of_rows(self) -> None:
        problem = kmeans_problem(0, n=10)
        with pytest.raises(ValueError, match=r"an edge names unit 12, but there are 10 units \(rows of X\)"):
            problem.minimize(Biased(Coherence([[0, 12]])))
        with pytest.raises(ValueError, match=r"the edges are those of 16 units, but there are 10 \(rows of X\)"):
            problem.minimize(Biased(Coherence(grid_to_graph(4, 4))))


class TestEdges:
    def test_pairs_are_merged(self) -> None:
        bias = Coherence([[3, 1], [0, 1], [1, 3]], [1.0, 0.0, 2.0])
        assert bias.edges.tolist() == [[1, 3]] and bias.weights.tolist() == [3.0]
        assert bias == Coherence([[1, 3]], [3.0])

    @pytest.mark.parametrize("form", [sparse.csr_array, sparse.coo_matrix, sparse.csc_array])
    def test_an_adjacency_matrix(self, form: Any) -> None:
        matrix = form(np.array([[9, 2, 0], [2, 0, 1], [0, 1, 0]]))
        assert Coherence(matrix) == Coherence([[0, 1], [1, 2]], [2.0, 1.0], n_units=3)

    def test_a_grid(self) -> None:
        bias = Coherence(grid_to_graph(3, 4))
        assert len(bias.edges) == 3 * 3 + 2 * 4 and (bias.weights == 1).all() and bias.n_units == 12
        assert repr(bias) == "Coherence(17 edges)"
        assert repr(Coherence([[0, 1]], method="icm")) == "Coherence(1 edges, method='icm')"

    @pytest.mark.parametrize(
        ("edges", "options", "message"),
        [
            ([[0, 1, 2]], {}, r"edges must be pairs of unit numbers, an array of integers of shape \(n_pairs, 2\)"),
            ([[0.0, 1.0]], {}, "edges must be pairs"),
            ([[-1, 1]], {}, "edges must be pairs"),
            (np.array([[0, 1]], dtype="m8[s]"), {}, "edges must be pairs"),
            ([[0, 1], [2, 2]], {}, "edges link unit 2 with itself"),
            ([[0, 1]], {"weights": [-1.0]}, "finite and not negative; got -1$"),
            ([[0, 1]], {"weights": [np.nan]}, "finite and not negative"),
            ([[0, 1]], {"weights": [np.inf]}, "finite and not negative"),
            ([[0, 1]], {"weights": [1.0, 2.0]}, r"one number per edge, shape \(1,\); got shape \(2,\)"),
            ([[0, 1]], {"method": "cuts"}, "method"),
            ([[0, 1], [2]], {}, "got rows of different lengths"),
            (np.zeros((9, 9)), {}, r"got shape \(9, 9\) of float64"),
            (np.array([[0, 2**63]], dtype=np.uint64), {}, "from 0 upwards; got 9223372036854775808"),
            ([[0, 1], [1, 0]], {"weights": [1e308, 1e308]}, "too large to be summed"),
            ([[0, 5]], {"n_units": 5}, "names unit 5, but there are 5 units"),
            (sparse.csr_array((2, 3)), {}, "must be square"),
            (sparse.csr_array(np.array([[0, 1], [0, 0]])), {}, "must be symmetric"),
            (sparse.csr_array(np.array([[0, -1], [-1, 0]])), {}, "finite and not negative"),
            (sparse.csr_array(np.array([[0, 1], [np.nan, 0]])), {}, "finite and not negative; got nan"),
            (sparse.csr_array(np.array([[0, 1], [np.inf, 0]])), {}, "finite and not negative; got inf"),
            (sparse.csr_array((2, 2)), {"weights": [1.0]}, "brings its own weights"),
            (sparse.csr_array((2, 2)), {"n_units": 3}, "n_units=3, but the adjacency matrix is of 2 units"),
        ],
    )
    def test_what_are_no_edges(self, edges: Any, options: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            Coherence(edges, **options)

    @pytest.mark.parametrize(
        ("edges", "options", "message"),
        [
            ([[0, 1]], {"weights": ["a"]}, "weights of edges must be an array of numbers"),
            ([[0, 1]], {"weights": [1j]}, "got an array of complex128"),
            ([[0, 1]], {"n_units": 2.0}, "n_units must be a whole number"),
            (sparse.csr_array((2, 2)), {"n_units": 2.0}, "n_units must be a whole number"),
            (sparse.csr_array(np.eye(2) * 1j), {}, "must hold real numbers; got complex128"),
        ],
    )
    def test_what_are_no_numbers(self, edges: Any, options: dict[str, Any], message: str) -> None:
        with pytest.raises(TypeError, match=message):
            Coherence(edges, **options)

    def test_rows_are_renumbered(self) -> None:
        bias = Coherence([[0, 1], [1, 2], [0, 4], [3, 4]], [1.0, 2.0, 3.0, 4.0], n_units=5, method="icm")
        # Rows 0 and 4 are equal, row 2 has no weight.
        moved = bias.renumbered(np.array([1, 0, -1, 2, 1]))
        assert moved == Coherence([[0, 1], [1, 2]], [1.0, 4.0], n_units=3, method="icm")
        with pytest.raises(ValueError, match="those of 5 units, but there are 6"):
            bias.renumbered(np.arange(6))
        with pytest.raises(ValueError, match="names unit 4, but there are 2 units"):
            Coherence([[0, 4]]).renumbered(np.arange(2))

    def test_equality_and_hash(self) -> None:
        a, b = Coherence([[0, 1]]), Coherence([[1, 0]])
        assert a == b and hash(a) == hash(b)
        for other in (Coherence([[0, 2]]), Coherence([[0, 1]], [2.0]), Coherence([[0, 1]], method="icm"), "edges"):
            assert a != other


class TestEstimators:
    """Units are rows of X, however an estimator orders and merges them."""

    @staticmethod
    def rows(seed: int = 0) -> NDArray[np.float64]:
        random = np.random.default_rng(seed)
        x = random.integers(0, 3, 80).astype(float)[:, None] * 2 + random.normal(size=(80, 2))
        x[50] = x[7]
        return x

    def test_weights_are_repeats(self) -> None:
        """The edges of rows that are equal are edges of the one unit that they are."""
        x, pairs = self.rows(), [[i, i + 1] for i in range(79)]
        weights = np.ones(80)
        weights[[4, 9]] = 2.0
        repeated = np.vstack([x, x[[4, 9]]])
        moved = [[80 if i == 4 else i, j] for i, j in pairs]
        one, other = (
            mj.KMeans(3, init="forgy", n_init=1, bounds=Biased(Coherence(edges), eta=0.5), random_state=0).fit(
                rows, sample_weight=w
            )
            for rows, edges, w in ((x, pairs, weights), (repeated, moved, None))
        )
        np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)

    def test_order_of_rows_cannot_matter(self) -> None:
        x, pairs = self.rows(), np.array([[i, i + 1] for i in range(79)])
        at = np.random.default_rng(1).permutation(80)
        moved = np.argsort(at)[pairs]
        for make in (
            lambda bias: mj.KMeans(3, init="forgy", n_init=1, bounds=Biased(bias, eta=0.5), random_state=0),
            lambda bias: mj.GaussianMixture(3, n_init=1, max_iter=500, bounds=Biased(bias, eta=0.5), random_state=0),
        ):
            one, other = (
                make(Coherence(edges, method="icm")).fit(rows) for edges, rows in ((pairs, x), (moved, x[at]))
            )
            np.testing.assert_array_equal(one.predict(x), other.predict(x))
            assert len(one.trace_) > 1

    def test_regression_mixtures_and_latent_classes_name_rows_of_x(self) -> None:
        x = self.rows()
        y = x[:, 1] * np.where(np.arange(80) < 40, 1, -1)
        label = (np.arange(80) % 2).astype(int)
        far = Biased(Coherence([[0, 80]]))
        for model, target in (
            (mj.RegressionMixture(2, bounds=far), y),
            (mj.DiscriminativeLatentClasses(2, bounds=far), label),
        ):
            with pytest.raises(ValueError, match="names unit 80, but there are 80 units"):
                model.fit(x, target)

    def test_a_regression_mixture_is_that_of_its_rows(self) -> None:
        x = self.rows()[:, :1]
        y = 3 * x[:, 0] * np.where(np.arange(80) < 40, 1, -1) + np.random.default_rng(2).normal(size=80)
        pairs, at = np.array([[i, i + 1] for i in range(79)]), np.random.default_rng(1).permutation(80)
        one, other = (
            mj.RegressionMixture(
                2, init="random", n_init=2, bounds=Biased(Coherence(edges), eta=0.5), random_state=0
            ).fit(x[rows], y[rows])
            for rows, edges in ((np.arange(80), pairs), (at, np.argsort(at)[pairs]))
        )
        np.testing.assert_array_equal(one.coef_, other.coef_)

    def test_latent_classes_are_those_of_their_rows(self) -> None:
        x = self.rows()
        label = (np.arange(80) // 20) % 2
        pairs, at = np.array([[i, i + 1] for i in range(79)]), np.random.default_rng(1).permutation(80)
        one, other = (
            mj.DiscriminativeLatentClasses(
                3, init="random", n_init=1, bounds=Biased(Coherence(edges), eta=0.5), random_state=0
            ).fit(x[rows], label[rows])
            for rows, edges in ((np.arange(80), pairs), (at, np.argsort(at)[pairs]))
        )
        np.testing.assert_array_equal(one.class_coef_, other.class_coef_)

    def test_a_latent_svm_is_that_of_its_samples(self) -> None:
        random = np.random.default_rng(0)
        x, y = random.normal(size=(30, 4, 3)), np.arange(30) % 2
        x[np.arange(30), random.integers(0, 4, 30), 0] += 4 * (2 * y - 1)
        first = random.integers(0, 4, 30)
        pairs, at = np.array([[i, i + 2] for i in range(28)]), np.random.default_rng(1).permutation(30)
        one, other = (
            mj.LatentSVC(
                alpha=1e-2, latent_init=first[rows], bounds=Biased(Coherence(edges), eta=0.5), random_state=0
            ).fit(x[rows], y[rows])
            for rows, edges in ((np.arange(30), pairs), (at, np.argsort(at)[pairs]))
        )
        np.testing.assert_array_equal(one.coef_, other.coef_)
        assert len(one.trace_) > 1

    def test_edges_of_one_group_are_those_of_every_group(self) -> None:
        bias = Coherence([[0, 1], [1, 2]], [1.0, 2.0], n_units=3, method="icm")
        again = bias.repeated(2, 3)
        assert again == Coherence([[0, 1], [1, 2], [3, 4], [4, 5]], [1.0, 2.0] * 2, n_units=6, method="icm")
        assert bias.repeated(2, 2) is bias  # unit 2 is of the second group: the edges are of all groups already
