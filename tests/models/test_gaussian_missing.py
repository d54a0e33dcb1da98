"""EM over patterns of observed entries: bounds that touch and fall, maxima of the observed likelihood, equivalences."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import approx_fprime
from scipy.optimize import minimize as minimised
from scipy.special import logsumexp
from sklearn.datasets import load_iris

from majorant.data import Block, Chunks
from majorant.data.rows import rows_in_memory
from majorant.densities.coordinates import Coordinates, frames
from majorant.densities.gaussian_gaps import mixture_in_rows
from majorant.engine import minimize
from majorant.engine.mixture import OnData
from majorant.models.gaussian_mixture.missing import total_gaussian
from majorant.solvers.covariance_types import COVARIANCE_TYPES, COVARIANCES, CovarianceType
from majorant.solvers.gaussian import Mixture
from majorant.solvers.gaussian_missing import impute, log_densities

from ..engine.problems import POLICIES, objective
from ..gaussian import family as family_of
from ..gaussian import mixture_of, run_em, theta_of
from ..gaussian import with_gaps as missing

each_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
NAN = np.nan


def with_gaps(x: NDArray[Any], seed: int, share: float = 0.2) -> NDArray[Any]:
    out = x.copy()
    out[np.random.default_rng(seed).random(x.shape) < share] = NAN
    return out


def iris(seed: int) -> NDArray[np.float64]:
    return with_gaps(load_iris().data, seed)


def labels_of(n: int, k: int, seed: int) -> Any:
    labels = np.random.default_rng(seed).integers(0, k, n).astype(np.int32)
    return lambda block: labels[block.first : block.first + len(block)]


def log_likelihood(mixture: Mixture, x: NDArray[Any], weights: NDArray[Any] | None = None) -> float:
    each = logsumexp(log_densities(mixture, x) + np.log(mixture.weights), axis=1)
    return float(each.sum() if weights is None else weights @ each)


@each_type
@pytest.mark.parametrize("data_seed", range(4))
def test_the_observed_likelihood_rises_at_every_step(covariance_type: CovarianceType, data_seed: int) -> None:
    rows = rows_in_memory(iris(data_seed), None, 1)
    assert len(rows.measure.positions) == 150
    family = missing(family_of(3, 4, covariance_type, floor=1e-3))
    end = minimize(family, rows.data, latent=labels_of(rows.data.n_units, 3, data_seed), max_iter=40, tol=0)
    values = end.trace["objective"]
    assert len(values) > 10
    assert np.diff(values).max() <= 1e-10 * abs(values[0])
    # The bound of a step lies between the objectives before and after it.
    assert (end.trace["bound"][1:] <= values[:-1] + 1e-9).all()
    assert (end.trace["bound"] >= values - 1e-9).all()
    inside = rows.measure.points[rows.measure.positions[rows.measure.positions >= 0]]
    assert end.objective == pytest.approx(-log_likelihood(mixture_of(end.theta, covariance_type), inside), rel=1e-12)


@each_type
def test_the_bound_touches_where_it_was_made_and_is_one_elsewhere(covariance_type: CovarianceType) -> None:
    x = iris(7)[::3]
    w = np.random.default_rng(0).uniform(0.2, 3, len(x))
    family, block = missing(family_of(2, 4, covariance_type, floor=1e-6)), Block(0, (x,), w)
    random = np.random.default_rng(1)
    theta = some_mixture(covariance_type, random)
    free, bound = family.tight_pass(theta_of(theta), block)
    statistics = rows_of(bound.statistics, covariance_type)
    assert free == pytest.approx(-log_likelihood(theta, x, w), rel=1e-12)
    assert value_of(statistics, theta, theta) - bound.entropy == pytest.approx(free, rel=1e-10)
    for _ in range(20):
        other = some_mixture(covariance_type, random)
        above = value_of(statistics, other, theta) - bound.entropy
        assert above >= -log_likelihood(other, x, w)
    found, value = family.solve(bound.statistics, theta_of(theta), Chunks(x))
    lowest = mixture_of(found, covariance_type)
    assert value == pytest.approx(value_of(statistics, lowest, theta), rel=1e-10)


def rows_of(statistics: NDArray[Any], covariance_type: CovarianceType) -> NDArray[Any]:
    """Moments of two components in four columns, out of the statistics of a bound."""
    width = 2 + 4 + COVARIANCES[covariance_type].n_second(4)
    return statistics[: 2 * width].reshape(2, width)


def some_mixture(covariance_type: CovarianceType, random: np.random.Generator) -> Mixture:
    k, d = 2, 4
    roots = random.normal(size=(k, d, d))
    full = roots @ np.swapaxes(roots, 1, 2) + np.eye(d)
    covariances: Any = {
        "full": full,
        "tied": full[0],
        "diag": random.uniform(0.5, 3, (k, d)),
        "spherical": random.uniform(0.5, 3, k),
    }[covariance_type]
    means = load_iris().data.mean(axis=0) + random.normal(size=(k, d))
    return Mixture(random.dirichlet(np.ones(k)), means, covariances, covariance_type)


def value_of(statistics: NDArray[Any], theta: Mixture, made_at: Mixture) -> float:
    """``<statistics, E(theta)>`` from its definition, component by component."""
    k, d = theta.means.shape
    total = float(statistics[:, -1].sum())
    for z in range(k):
        n, first, second = statistics[z, 0], statistics[z, 1 : 1 + d], statistics[z, 1 + d : -1]
        if theta.covariance_type in ("full", "tied"):
            t = np.zeros((d, d))
            t[np.tril_indices(d)] = second
            t = t + np.tril(t, -1).T
            s = theta.covariances if theta.covariance_type == "tied" else theta.covariances[z]
        else:  # of the scatter only what the energy needs is kept
            t = np.diag(second) if theta.covariance_type == "diag" else np.diag(np.full(d, second[0] / d))
            s = np.diag(np.broadcast_to(theta.covariances[z], (d,)))
        shift = made_at.means[z] - theta.means[z]
        scatter = t + np.outer(first, shift) + np.outer(shift, first) + n * np.outer(shift, shift)
        logs = d * np.log(2 * np.pi) + np.linalg.slogdet(s)[1] - 2 * np.log(theta.weights[z])
        total += 0.5 * (n * logs + np.trace(np.linalg.solve(s, scatter)))
    return total


@pytest.mark.parametrize(("name", "covariance_type"), list(zip(POLICIES, cycle(COVARIANCE_TYPES), strict=False)))
def test_every_policy_runs_and_its_bound_falls(name: str, covariance_type: CovarianceType) -> None:
    x = iris(3)[::3]
    x[5] = NAN
    family = missing(family_of(2, 4, covariance_type, floor=1e-2))
    end = minimize(family, Chunks(x, rows=30), POLICIES[name], latent=labels_of(len(x), 2, 0), max_iter=25)
    exploring = end.trace["exploring"] == 1
    bounds = end.trace["bound"][exploring]
    if len(bounds):
        assert np.diff(bounds).max(initial=0.0) <= 1e-9 * abs(bounds).max()
    np.testing.assert_allclose(end.objective, objective(family, Chunks(x), end.theta), rtol=1e-12)


@pytest.mark.parametrize("beta", [0.3, 1.0, 4.0, np.inf])
def test_any_temperature(beta: float) -> None:
    x = iris(5)
    x[9] = NAN
    family = missing(family_of(3, 4, "full", floor=1e-3, beta=beta))
    end = minimize(family, Chunks(x), latent=labels_of(len(x), 3, 1), max_iter=30)
    values = end.trace["objective"]
    assert np.diff(values).max() <= 1e-10 * abs(values[0])
    assert (end.trace["bound"] >= values - 1e-9).all()


@each_type
def test_rows_without_gaps_are_those_of_the_complete_family(covariance_type: CovarianceType) -> None:
    x = load_iris().data
    for dtype in (np.float64, np.float32):
        model = family_of(3, 4, covariance_type, floor=1e-3, single=dtype == np.float32)
        family = missing(model)
        data = Chunks(x.astype(dtype), rows=64)
        a = minimize(model, data, latent=labels_of(150, 3, 2), max_iter=25)
        b = minimize(family, data, latent=labels_of(150, 3, 2), max_iter=25)
        np.testing.assert_array_equal(a.trace["objective"], b.trace["objective"])
        np.testing.assert_array_equal(a.theta.density.means, b.theta.density.means)
        np.testing.assert_array_equal(a.theta.density.covariances, b.theta.density.covariances)


def test_the_case_of_twelve_rows() -> None:
    """Monotone pattern, one component: the maximum has a closed form (the regression of y on x)."""
    x = np.array([7.76, 9.31, 14.1, 10.34, 16.34, 10.29, 10.3, 12.23, 10.71, 10.57, 10.05, 9.13])
    y = np.array([19.51, NAN, 25.25, 18.56, NAN, 16.58, 21.7, 22.84, NAN, 19.72, 20.05, NAN])
    table = np.column_stack([x, y])
    rows = rows_in_memory(table, None, 1)
    found = total_gaussian(rows.data, rows.variances)
    mean = rows.measure.restore(found.means)[0]
    np.testing.assert_allclose(mean, [10.9275, 20.762207883], rtol=1e-10)
    np.testing.assert_allclose(
        found.covariances[0][[0, 0, 1], [0, 1, 1]], [4.918935417, 5.216456579, 8.535814399], rtol=1e-9
    )
    in_units = found.mapped(1.0, rows.measure.origin)
    assert log_likelihood(in_units, table) == pytest.approx(-42.336890818, rel=1e-10)
    assert log_likelihood(in_units, np.vstack([table, [[NAN, NAN]]])) == log_likelihood(in_units, table)
    seen = ~np.isnan(y)
    slope = np.cov(x[seen], y[seen], ddof=0)[0, 1] / x[seen].var()
    assert mean[1] == pytest.approx(y[seen].mean() + slope * (x.mean() - x[seen].mean()), rel=1e-10)


def packed(mixture: Mixture) -> NDArray[np.float64]:
    roots = np.linalg.cholesky(mixture.covariances)
    return np.concatenate([np.log(mixture.weights), mixture.means.ravel(), roots[:, *np.tril_indices(2)].ravel()])


def unpacked(parameters: NDArray[np.float64]) -> Mixture:
    roots = np.zeros((2, 2, 2))
    roots[:, *np.tril_indices(2)] = parameters[6:].reshape(2, 3)
    weights = np.exp(parameters[:2] - logsumexp(parameters[:2]))
    return Mixture(weights, parameters[2:6].reshape(2, 2), roots @ np.swapaxes(roots, 1, 2), "full")


def test_brute_force_finds_nothing_better_than_em_on_a_tiny_case() -> None:
    random = np.random.default_rng(3)
    x = np.vstack([random.normal([0, 0], [1, 2], (14, 2)), random.normal([5, 4], [1.5, 1], (12, 2))])
    x = with_gaps(x, 0, 0.25)
    x = x[~np.isnan(x).all(axis=1)]
    assert 5 < np.isnan(x).sum() < 20
    family = missing(family_of(2, 2, "full", floor=1e-6))
    q = np.where(np.nan_to_num(x[:, :1], nan=2.5) + np.nan_to_num(x[:, 1:], nan=2.0) < 4.5, [[1.0, 0.0]], [[0.0, 1.0]])
    end = minimize(family, Chunks(x), latent=lambda block: q, tol=1e-16, max_iter=3000)

    def loss(parameters: NDArray[np.float64]) -> float:
        return -log_likelihood(unpacked(parameters), x)

    at = packed(mixture_of(end.theta, "full"))
    assert loss(at) == pytest.approx(end.objective, rel=1e-12)
    gradient = approx_fprime(at, loss, 1e-6)
    assert np.abs(gradient).max() < 1e-4 * abs(end.objective)
    again = minimised(loss, at, method="BFGS")
    assert again.fun >= end.objective - 1e-8 * abs(end.objective)


@each_type
def test_row_order_chunks_and_repeats_do_not_matter(covariance_type: CovarianceType) -> None:
    x = iris(11)
    x[3] = NAN
    times = np.random.default_rng(0).integers(0, 3, len(x))
    order = np.random.default_rng(1).permutation(times.sum())
    a = rows_in_memory(x, times.astype(np.float64), 1)
    b = rows_in_memory(np.repeat(x, times, axis=0)[order], None, 1)
    family = missing(family_of(3, 4, covariance_type, floor=1e-3))
    ends = [minimize(family, r.data, latent=labels_of(r.data.n_units, 3, 0), max_iter=10) for r in (a, b)]
    np.testing.assert_array_equal(ends[0].trace["objective"], ends[1].trace["objective"])
    np.testing.assert_array_equal(ends[0].theta.density.covariances, ends[1].theta.density.covariances)
    pieces = Chunks(a.measure.points, weights=a.measure.weights, rows=17, n_jobs=2)
    apart = minimize(family, pieces, latent=labels_of(pieces.n_units, 3, 0), max_iter=10)
    np.testing.assert_allclose(apart.trace["objective"], ends[0].trace["objective"], rtol=1e-11)
    np.testing.assert_allclose(apart.theta.density.means, ends[0].theta.density.means, rtol=1e-7, atol=1e-9)


@each_type
def test_rows_in_any_order_of_patterns_give_the_same_sums(covariance_type: CovarianceType) -> None:
    x = iris(12)
    order = np.random.default_rng(0).permutation(len(x))
    theta = theta_of(some_mixture(covariance_type, np.random.default_rng(0)))
    family = missing(family_of(2, 4, covariance_type))
    (free, a), (other, b) = (family.tight_pass(theta, Block(0, (rows,))) for rows in (x, x[order]))
    assert free == pytest.approx(other, rel=1e-13)
    np.testing.assert_allclose(a.statistics, b.statistics, rtol=1e-11, atol=1e-9)
    np.testing.assert_array_equal(
        family.energies(theta, Block(0, (x,)))[order], family.energies(theta, Block(0, (x[order],)))
    )


@each_type
def test_a_row_without_entries_adds_nothing(covariance_type: CovarianceType) -> None:
    x = iris(13)[::2]
    family = missing(family_of(2, 4, covariance_type, floor=1e-3))
    more = np.vstack([x, np.full((20, 4), NAN)])
    theta = theta_of(some_mixture(covariance_type, np.random.default_rng(2)))
    values = [family.tight_pass(theta, Block(0, (rows,)))[0] for rows in (x, more)]
    assert values[0] == pytest.approx(values[1], rel=1e-13)
    a, b = (rows_in_memory(rows, None, 1) for rows in (x, more))
    np.testing.assert_array_equal(a.measure.points, b.measure.points)
    single = missing(family_of(1, 4, covariance_type))
    ends = [
        minimize(single, Chunks(rows), latent=labels_of(len(rows), 1, 0), tol=1e-15, max_iter=300) for rows in (x, more)
    ]
    np.testing.assert_allclose(ends[0].theta.density.means, ends[1].theta.density.means, rtol=1e-5)


@each_type
def test_coordinates_change_nothing_but_the_floor(covariance_type: CovarianceType) -> None:
    x = iris(14)
    data = Chunks(x)
    own = frames(load_iris().data, np.ones(150), 1e-16).of_type(covariance_type)
    theta = some_mixture(covariance_type, np.random.default_rng(4))
    plain = missing(family_of(2, 4, covariance_type))
    moved = missing(family_of(2, 4, covariance_type), own)
    start = brought(theta, own)
    np.testing.assert_allclose(mixture_in_rows(start, own).covariances, theta.covariances, rtol=1e-9)
    a, b = (minimize(f, data, theta=theta_of(t), max_iter=15) for f, t in ((plain, theta), (moved, start)))
    volume = own.log_volume * 150
    np.testing.assert_allclose(a.trace["objective"], b.trace["objective"] - volume, rtol=1e-9)
    np.testing.assert_allclose(a.trace["bound"], b.trace["bound"] - volume, rtol=1e-9)
    back = mixture_in_rows(mixture_of(b.theta, covariance_type), own)
    np.testing.assert_allclose(back.covariances, a.theta.density.covariances[0], rtol=1e-6, atol=1e-8)


def brought(mixture: Mixture, own: Coordinates) -> Mixture:
    """A mixture of rows in coordinates."""
    means, kind = own.of(mixture.means), mixture.covariance_type
    if kind in ("full", "tied"):
        covariances = own.forward.T @ mixture.covariances @ own.forward
    else:
        covariances = mixture.covariances * (own.forward.diagonal() ** 2 if kind == "diag" else own.forward[0, 0] ** 2)
    return Mixture(mixture.weights, means, covariances, kind)


def test_still_directions_with_missing_entries() -> None:
    """A constant column, and one that is the sum of two others."""
    random = np.random.default_rng(0)
    full = random.normal(size=(80, 3))
    full = np.column_stack([full, full[:, 0] + full[:, 1], np.full(80, 7.0)])
    own = frames(full, np.ones(80), 1e-16).of_type("full")
    assert own.rank == 3
    x = with_gaps(full, 1, 0.15)
    family = missing(family_of(2, 3, "full", floor=5e-4), own)
    end = minimize(family, Chunks(x), latent=labels_of(80, 2, 0), max_iter=30, tol=0)
    values = end.trace["objective"]
    assert np.diff(values).max() <= 1e-7 * abs(values[0])
    filled = impute(mixture_in_rows(mixture_of(end.theta, "full"), own), x)
    known = ~np.isnan(x[:, :2]).any(axis=1)
    np.testing.assert_allclose(filled[known, 3], full[known, 3], atol=1e-5)
    np.testing.assert_allclose(filled[:, 4], 7.0, atol=1e-9)


@each_type
def test_single_precision_is_near_double(covariance_type: CovarianceType) -> None:
    x = iris(15)
    ends = []
    for dtype in (np.float64, np.float32):
        family = missing(family_of(3, 4, covariance_type, floor=1e-3, single=dtype == np.float32))
        ends.append(minimize(family, Chunks(x.astype(dtype)), latent=labels_of(150, 3, 3), max_iter=20, tol=0))
    np.testing.assert_allclose(ends[1].trace["objective"], ends[0].trace["objective"], rtol=1e-4)


def test_the_total_gaussian_of_complete_rows_is_their_mean_and_covariance() -> None:
    x = load_iris().data
    w = np.random.default_rng(0).integers(1, 4, 150).astype(np.float64)
    rows = rows_in_memory(x, w, 1)
    found = total_gaussian(rows.data, rows.variances)
    np.testing.assert_allclose(rows.measure.restore(found.means)[0], np.average(x, axis=0, weights=w), rtol=1e-10)
    np.testing.assert_allclose(found.covariances[0], np.cov(x.T, aweights=w, ddof=0), rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
def test_the_total_gaussian_knows_no_units(unit: float) -> None:
    x = iris(16)
    plain, scaled = (rows_in_memory(rows, None, 1) for rows in (x, (x + 3) * unit))
    a, b = (total_gaussian(rows.data, rows.variances) for rows in (plain, scaled))
    np.testing.assert_allclose(scaled.measure.restore(b.means) / unit - 3, plain.measure.restore(a.means), rtol=1e-7)
    np.testing.assert_allclose(b.covariances / (unit * scaled.measure.scale) ** 2, a.covariances, rtol=1e-6)


@each_type
def test_runs_in_step_are_the_runs_one_by_one(covariance_type: CovarianceType) -> None:
    x, random = iris(17), np.random.default_rng(0)
    data = Chunks(x, rows=40)
    own = frames(load_iris().data, np.ones(150), 1e-16).of_type(covariance_type)
    starts = [np.eye(2)[random.integers(0, 2, 150)] for _ in range(3)]
    family = missing(family_of(2, own.rank, covariance_type, floor=1e-3), own)
    on = OnData(family.mixture, data)
    theta, values, share = family.mixture.started(np.stack([q.T for q in starts]), data), [], np.ones(3)
    for _ in range(8):
        seen = on.seen(theta)
        values.append(seen.objective)
        theta, before = on.moved(theta, seen, share), theta
    for run, start in enumerate(starts):
        end = minimize(family, data, latent=lambda b, q=start: q[b.first : b.first + len(b)], max_iter=8, tol=0)
        np.testing.assert_allclose(np.array(values)[:, run], end.trace["objective"], rtol=1e-10)
        np.testing.assert_allclose(before.density.means[run], end.theta.density.means[0], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(
            before.density.covariances[run], end.theta.density.covariances[0], rtol=1e-7, atol=1e-9
        )


@each_type
def test_runs_without_gaps_are_those_of_the_complete_rows(covariance_type: CovarianceType) -> None:
    x = load_iris().data
    own = frames(x, np.ones(150), 1e-16).of_type(covariance_type)
    u, q = own.of(x), np.eye(3)[np.random.default_rng(1).integers(0, 3, 150)]
    family = missing(family_of(3, own.rank, covariance_type, floor=1e-3), own)
    on, theta, values = OnData(family.mixture, Chunks(x)), family.mixture.started(q.T[None], Chunks(x)), []
    for _ in range(7):
        seen = on.seen(theta)
        values.append(-seen.objective[0])
        theta, before = on.moved(theta, seen, np.ones(1)), theta
    (there,) = run_em(u, None, [q], covariance_type, 1e-3, 6)
    np.testing.assert_allclose(values, there.log_likelihoods, rtol=1e-9)
    np.testing.assert_array_equal(before.density.floored[0], there.floored)


def test_the_total_gaussian_takes_few_passes_where_entries_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that nearly depend on each other, and no row with all of them: plain EM would take over 2000."""
    draws = np.random.default_rng(0)
    x = draws.normal(size=(300, 20)) @ (draws.normal(size=(20, 20)) / np.sqrt(20) + 0.5 * np.eye(20))
    x[draws.random(x.shape) < 0.3] = NAN
    passes, seen = [], OnData.seen
    monkeypatch.setattr(OnData, "seen", lambda self, theta: passes.append(1) or seen(self, theta))
    rows = rows_in_memory(x, None, 1)
    found = total_gaussian(rows.data, rows.variances)
    assert len(passes) <= 300
    assert np.linalg.eigvalsh(found.covariances[0])[0] > 1e-6  # as columns are not functions of each other
