"""Every density with every law: against enumeration, step by step, and as the loop of bound policies sees it."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.data.units import blocks_of
from majorant.densities import Bernoulli
from majorant.engine.descent import SLOW_RATE, _is_done, descend
from majorant.engine.loop import minimize
from majorant.engine.mixture import Mixture, OnData, SingleRun
from majorant.engine.policies import GibbsLimit, Tempered
from majorant.engine.runs import taken
from majorant.laws import Gated, Grouped, Independent, Known

from ..mixtures_of_parts import NAMES, K, N, problem, started, tables_of_responsibilities


def states_of_units(units: Block, law: Any) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Rows of each unit, and the states that it may be in."""
    n = len(units)
    groups = units.columns[0] if isinstance(law, Grouped) else np.arange(n)
    within = law.law if isinstance(law, Grouped) else law
    at = 1 if isinstance(law, Grouped) else 0
    labels = units.columns[at] if isinstance(within, Known) else np.full(n, -1)
    out = []
    for g in np.unique(groups):
        rows = np.flatnonzero(groups == g)
        label = int(labels[rows[0]])
        out.append((rows, np.arange(K) if label < 0 else np.array([label])))
    return out


@pytest.mark.parametrize(("density", "law"), [n for n in NAMES if "chain" not in n[1]])  # of chains: tests/laws
def test_log_likelihood_is_a_sum_over_the_states_of_each_unit(density: str, law: str) -> None:
    on = problem(density, law)
    theta = started(on, 0, 2)
    seen = on.seen(theta)
    mixture, block = on.mixture, next(on.data.source.blocks())
    rows, units = mixture.parts(block)
    log_f = mixture.density.log_density(theta.density, rows)
    innermost = mixture.law
    while hasattr(innermost, "law"):
        innermost = innermost.law
    columns = units.columns[-1:] if isinstance(innermost, Gated) else units.columns
    prior = np.broadcast_to(innermost.log_prior(theta.law, units.seen(columns)), log_f.shape)
    for run in range(2):
        total = 0.0
        for members, states in states_of_units(units, mixture.law):
            terms = [prior[run, z, members[0]] + log_f[run, z, members].sum() for z in states]
            total += float(np.logaddexp.reduce(terms))
        assert -seen.objective[run] == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize(("density", "law"), NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_no_step_raises_the_objective(density: str, law: str, seed: int) -> None:
    on = problem(density, law, seed)
    ends = descend(on, started(on, seed, 4), tol=1e-10, max_iter=60)
    first = on.seen(started(on, seed, 4)).objective
    for start, path in zip(first, ends.paths, strict=True):
        assert np.all(np.diff([start, *path]) <= 1e-9 * abs(start))
    np.testing.assert_allclose(on.seen(ends.theta).objective, ends.objective, rtol=1e-13)


@pytest.mark.parametrize(("density", "law"), NAMES)
def test_runs_of_a_batch_do_not_depend_on_each_other(density: str, law: str) -> None:
    on = problem(density, law)
    start = started(on, 1, 3)
    together = descend(on, start, tol=1e-8, max_iter=20)
    for run in range(3):
        alone = descend(on, taken(start, [run]), tol=1e-8, max_iter=20)
        assert alone.objective[0] == pytest.approx(together.objective[run], rel=1e-9)
        assert alone.n_iter[0] == together.n_iter[run]


@pytest.mark.parametrize(("density", "law"), NAMES)
def test_weights_are_repeats(density: str, law: str) -> None:
    weighted = problem(density, law, weights=np.full(N, 2.0))
    theta = started(weighted, 0, 2)
    plain = problem(density, law)
    np.testing.assert_allclose(weighted.seen(theta).objective, 2 * plain.seen(theta).objective, rtol=1e-12)
    np.testing.assert_allclose(
        weighted.seen(theta).statistics.density, 2 * plain.seen(theta).statistics.density, rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(("density", "law"), NAMES)
def test_responsibilities_are_shares_and_known_states_are_kept(density: str, law: str) -> None:
    on = problem(density, law)
    block = next(on.data.source.blocks())
    q, _ = on.mixture.responsibilities(started(on, 0, 2), block)
    assert (q >= 0).all()
    np.testing.assert_allclose(q.sum(axis=1), 1.0, rtol=1e-12)
    if "known" in law:
        labels = on.mixture.parts(block)[1].columns[1 if "grouped" in law else 0]
        known = np.flatnonzero(labels >= 0)
        others = np.arange(K)[:, None] != labels[known]
        assert len(known) and (q[:, :, known][:, others] == 0).all()
        assert "chain" in law or (q[:, labels[known], known] == 1).all()  # sums of chains round


def test_states_that_are_absent_stay_absent() -> None:
    on = problem("Bernoulli", "independent")
    q = tables_of_responsibilities(0, 1)
    q[:, 0] = 0
    q /= q.sum(axis=1, keepdims=True)
    ends = descend(on, on.mixture.started(q, on.data), tol=1e-8, max_iter=30)
    assert ends.theta.law.weights[0, 0] == 0 and np.isfinite(ends.objective).all()


@pytest.mark.parametrize("density", ["Bernoulli", "Poisson", "categorical", "zero-inflated Poisson", "product"])
@pytest.mark.parametrize("policy", [Tempered(eta=0.2), GibbsLimit(eta=0.2)], ids=repr)
@pytest.mark.parametrize("beta", [1.0, 0.7, np.inf])
def test_bound_policies_take_every_density_of_independent_states(density: str, policy: Any, beta: float) -> None:
    on = problem(density, "independent", beta=beta)
    theta = started(on, 0, 1)
    first = float(on.seen(theta).objective[0])
    solution = minimize(SingleRun(on.mixture), on.data, policy, theta=theta, tol=1e-9, max_iter=200, seed=3)
    assert solution.objective <= first
    assert solution.objective == pytest.approx(float(on.seen(solution.theta).objective[0]), rel=1e-12)


@pytest.mark.parametrize("law", ["grouped", "gated"])
def test_what_bound_policies_cannot_do_is_refused_in_words(law: str) -> None:
    on = problem("Bernoulli", law)
    with pytest.raises(TypeError, match="only the tightest bound"):
        family = SingleRun(on.mixture)
        minimize(family, on.data, Tempered(eta=0.2), theta=started(on, 0, 1))


@pytest.mark.parametrize("beta", [0.5, 2.0, np.inf])
def test_the_objective_at_a_temperature_is_the_free_energy(beta: float) -> None:
    x = (np.random.default_rng(0).random((7, 2)) < 0.5).astype(float)
    mixture = Mixture(Bernoulli(2), Independent(), 2, beta)
    on = OnData(mixture, Chunks(blocks_of([x], None)))
    theta = mixture.started(np.random.default_rng(1).dirichlet(np.ones(2), (1, 7)).transpose(0, 2, 1).copy(), on.data)
    p, w = theta.density[0], theta.law.weights[0]
    total = 0.0
    for row in x:
        energies = [-np.log(w[k]) - np.log(np.where(row == 1, p[k], 1 - p[k])).sum() for k in range(2)]
        total += min(energies) if np.isinf(beta) else -np.logaddexp.reduce(-beta * np.array(energies)) / beta
    assert on.seen(theta).objective[0] == pytest.approx(total, rel=1e-12)


def test_three_binary_columns_have_the_probabilities_of_all_patterns_sum_to_one() -> None:
    on = problem("Bernoulli", "independent")
    theta = started(on, 0, 1)
    patterns = np.array(list(product([0.0, 1.0], repeat=4)))
    block = Block(0, (patterns,))
    log_f = on.mixture.density.log_density(theta.density, block)[0]
    assert float((theta.law.weights[0] @ np.exp(log_f)).sum()) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(("density", "law"), [n for n in NAMES if "gated" not in n[1]])
def test_extrapolated_parameters_are_parameters(density: str, law: str) -> None:
    """A share above one or below zero would be taken for a gain."""
    for seed in range(4):
        on = problem(density, law, seed)
        theta = started(on, seed, 4)
        path, passed = [theta], [on.seen(theta)]
        for _ in range(2):
            path.append(on.moved(path[-1], passed[-1], np.ones(4)))
            passed.append(on.seen(path[-1]))
        tried = on.extrapolated(tuple(path), tuple(passed))  # type: ignore[arg-type]
        assert tried is not None
        for name, shares in on.mixture.law.describe(tried.law).items():
            np.testing.assert_allclose(shares.sum(axis=1 if name == "population_shares" else -1), 1.0, rtol=1e-12)
            assert (shares > 0).all()
        for name, values in on.mixture.density.describe(tried.density).items():
            low, high = on.mixture.density.limits.get(name, (-np.inf, np.inf))
            assert (values >= low).all() and (values <= high).all() and np.isfinite(values).all()


@pytest.mark.parametrize(
    ("objectives", "is_done"),
    [
        ((10.0, 9.9, 9.85), False),  # a gain of .05 is to come
        ((10.0, 9.9996, 9.9994), True),  # of .0002
        ((10.0, 9.9996, 9.9991), False),  # gains grow
        ((10.0, 10.0002, 9.9998), True),  # up and down
        ((10.0, 10.002, 9.998), False),  # by more than the limit
        ((10.0, 9.0, 9.0), True),
        ((10.0, 10.0 - 0.9e-3 * (1 - SLOW_RATE) / SLOW_RATE), True),
        ((10.0, 10.0 - 1.1e-3 * (1 - SLOW_RATE) / SLOW_RATE), False),
    ],
)
def test_a_run_ends_when_it_can_gain_no_more_than_the_limit(objectives: tuple[float, ...], is_done: bool) -> None:
    passed: Any = [SimpleNamespace(objective=np.array([value])) for value in objectives]
    assert _is_done(passed, 1e-3).tolist() == [is_done]
