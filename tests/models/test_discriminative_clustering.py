"""Discriminative clustering: its cost, its starts, kernels, the proved bound, what is told of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, xlogy
from sklearn.datasets import make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

import majorant as mj
from majorant.engine.descent import Ends, descend
from majorant.models.discriminative_clustering import contest
from majorant.models.discriminative_clustering.certify import (
    ball_dual,
    channel,
    channel_slope,
    information_bound,
    sized_bound,
    spectral_bound,
)
from majorant.models.discriminative_clustering.cost import ClusteringCost, Clusterings
from majorant.report import Run, html_report
from majorant.starts.ball import softened
from majorant.starts.quadratic import principal_axes
from majorant.starts.simplex_program import random_assignments

Array = NDArray[np.float64]


def bumps(k: int, noise: int, seed: int = 0, n: int | None = None) -> tuple[Array, NDArray[np.intp]]:
    """Round groups on a circle, in noise."""
    random = np.random.default_rng(seed)
    y = np.arange(n or 30 * k) % k
    radius = 4 / np.sin(np.pi / k)
    centres = radius * np.column_stack([np.cos(2 * np.pi * np.arange(k) / k), np.sin(2 * np.pi * np.arange(k) / k)])
    return np.column_stack([centres[y] + random.normal(size=(len(y), 2)), random.normal(size=(len(y), noise))]), y


def same_partition(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return len(set(zip(a.tolist(), b.tolist(), strict=True))) == len(set(a.tolist())) == len(set(b.tolist()))


def small_problem(seed: int) -> tuple[Array, ClusteringCost]:
    """Some rows with weights, and a penalty from weak to strong."""
    random = np.random.default_rng(seed)
    n, p, k = int(random.integers(4, 12)), int(random.integers(1, 4)), int(random.integers(2, 4))
    x = random.normal(size=(n, p)) * 10 ** random.uniform(-0.5, 1)
    x[random.random(n) < 0.5] += 3 * random.normal(size=p)
    shares = random.dirichlet(np.full(n, 5.0)) if seed % 2 else np.full(n, 1 / n)
    axes = principal_axes(x, shares)
    return x, ClusteringCost(axes.coordinates, shares, k, 10 ** random.uniform(-3, 1))


def descended(problem: ClusteringCost, start: Array, *, max_iter: int, tol: float = 1e-6) -> Ends[Clusterings]:
    return descend(problem, problem.started(start), max_iter=max_iter, tol=tol)


# The cost


@pytest.mark.parametrize("seed", range(8))
def test_the_cost_never_rises_and_is_that_of_its_parameters(seed: int) -> None:
    _, problem = small_problem(seed)
    start = random_assignments(1, len(problem.shares), problem.n_clusters, np.random.default_rng(seed))[0]
    run = descended(problem, start, max_iter=60, tol=0.0)
    path, loss, theta, log_xi = run.paths[0], run.objective[0], run.theta.theta[0], run.seen.statistics[0]
    assert (np.diff(path) <= 1e-12).all() and path[-1] < path[0]
    log_p = log_softmax(problem.coordinates @ theta[:-1] + theta[-1], axis=1)
    np.testing.assert_allclose(problem.predicted(theta), log_p, atol=1e-10)
    # tables of the assignments before the last sweep are unknown here; those of the last ones are as good
    xi = np.exp(log_xi)
    sizes = problem.shares @ xi
    cost = -problem.shares @ np.log(np.sum(np.exp(log_p) * xi / sizes, axis=1))
    assert cost + problem.penalty(theta) <= loss + 1e-12
    assert problem.settled(log_p, log_xi) + problem.penalty(theta) == pytest.approx(loss, abs=1e-3)
    assert -np.log(problem.n_clusters) <= loss <= 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_stationary_in_every_parameter(seed: int) -> None:
    """A general optimiser over classifier and tables, begun where EM ended, finds nothing lower."""
    _, problem = small_problem(seed)
    n, k = len(problem.shares), problem.n_clusters
    start = softened(np.arange(n) % k, k)
    run = descended(problem, start, max_iter=3000, tol=1e-13)
    p = problem.coordinates.shape[1]
    xi = np.exp(run.seen.statistics[0])
    tables = np.log(np.maximum(problem.shares[:, None] * xi / (problem.shares @ xi), 1e-9))

    def cost(flat: Array) -> float:
        theta, logs = flat[: (p + 1) * k].reshape(p + 1, k), flat[(p + 1) * k :].reshape(n, k)
        log_alpha = log_softmax(logs, axis=0)
        log_p = log_softmax(problem.coordinates @ theta[:-1] + theta[-1], axis=1)
        mixed = np.log(np.exp(log_p + log_alpha).sum(axis=1)) - np.log(problem.shares)
        return float(-problem.shares @ mixed + problem.penalty(theta))

    at = np.concatenate([run.theta.theta.ravel(), tables.ravel()])
    assert cost(at) == pytest.approx(run.objective[0], abs=1e-6)
    assert minimize(cost, at, method="L-BFGS-B").fun > run.objective[0] - 1e-5


def test_one_cluster_says_nothing() -> None:
    model = mj.DiscriminativeClustering(1).fit(bumps(2, 0)[0])
    assert model.information_ == 0 and not model.labels_.any() and model.n_active_clusters_ == 1
    assert model.certify(bumps(2, 0)[0]).proved


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_weights_are_repeats_and_order_does_not_matter(kernel: str | None) -> None:
    X, _ = bumps(3, 1, n=36)
    repeats = np.arange(len(X)) % 3
    parameters = {"kernel": kernel, "gamma": 0.1 if kernel else None, "random_state": 0}
    weighted = mj.DiscriminativeClustering(3, **parameters).fit(X, sample_weight=repeats)
    order = np.random.default_rng(1).permutation(repeats.sum())
    repeated = mj.DiscriminativeClustering(3, **parameters).fit(np.repeat(X, repeats, axis=0)[order])
    np.testing.assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    assert weighted.information_ == repeated.information_
    np.testing.assert_array_equal(weighted.labels_, weighted.predict(X))


def test_the_limit_of_iterations_is_told() -> None:
    with pytest.warns(
        ConvergenceWarning, match="did not converge within 3 steps: allow more, as max_iter=30, or raise tol"
    ) as told:
        mj.DiscriminativeClustering(2, init="random", max_iter=3, random_state=0).fit(bumps(2, 0)[0])
    assert [w.filename for w in told] == [__file__]


@pytest.mark.filterwarnings("ignore:the fit did not converge within 5 steps")
def test_threads_change_no_bit() -> None:
    X, _ = bumps(3, 4, n=9000)
    one, two = (
        mj.DiscriminativeClustering(3, init="ball", random_state=0, max_iter=5, n_jobs=j).fit(X) for j in (1, 2)
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.information_ == two.information_


# Starts


@pytest.mark.parametrize(("k", "noise"), [(2, 0), (2, 30), (5, 0), (5, 30)])
def test_finds_groups_in_noise(k: int, noise: int) -> None:
    X, y = bumps(k, noise, seed=k + noise)
    model = mj.DiscriminativeClustering(k, alpha=1e-2, random_state=0).fit(X)
    assert same_partition(model.labels_, y)
    from_truth = mj.DiscriminativeClustering(k, alpha=1e-2, init=y).fit(X)
    assert model.information_ >= from_truth.information_ - 5e-3
    assert model.n_active_clusters_ == k


def test_finds_stripes_side_by_side() -> None:
    """Five collinear groups: no start from the quadratic approximation alone tells them apart."""
    random = np.random.default_rng(0)
    y = np.arange(200) % 5
    X = np.column_stack([8.0 * y + random.normal(size=200), 8 * random.normal(size=200)])
    model = mj.DiscriminativeClustering(5, alpha=1e-2, random_state=0).fit(X)
    assert same_partition(model.labels_, y)
    assert {s.source for s in model.search_.starts} == {
        "ball relaxation",
        "k-means",
        "k-means, whitened",
        "one axis",
        "direction of two sides",
        "random",
        "discriminant of two clusters",
    }


@pytest.mark.parametrize("seed", range(6))
def test_long_groups_in_noise_cost_no_more_than_the_truth(seed: int) -> None:
    """Two groups 6 apart and 20 long, among 10 dimensions of noise: the widest axis is the wrong one."""
    random = np.random.default_rng(seed)
    y = np.arange(100) % 2
    X = np.column_stack(
        [6.0 * y + random.normal(size=100), random.uniform(-10, 10, 100), random.normal(size=(100, 10))]
    )
    model = mj.DiscriminativeClustering(2, alpha=1e-2, random_state=0).fit(X)
    from_truth = mj.DiscriminativeClustering(2, alpha=1e-2, init=y).fit(X)
    assert model.information_ >= from_truth.information_ - 1e-5


def test_single_rows_are_moved_while_that_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    gains = []
    for seed in range(3):
        random = np.random.default_rng(seed)
        X = np.column_stack([random.normal(size=(40, 6)), random.uniform(-3, 3, 40)])
        information = []
        for most in (0, 1000):
            monkeypatch.setattr(contest, "MOST_FOR_MOVES", most)
            model = mj.DiscriminativeClustering(3, alpha=1e-2, random_state=seed).fit(X)
            information.append(model.information_)
            moved = [s for s in model.search_.starts if s.source == "single rows moved"]
            assert len(moved) == ("single rows moved" in model.search_.note) and len(moved) <= (most > 0)
        gains.append(information[1] - information[0])
    assert min(gains) >= 0 and max(gains) > 1e-3


@pytest.mark.parametrize("init", ["auto", "random"])
def test_many_rows_have_their_starts_on_a_sample(init: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contest, "MOST_FOR_STARTS", 120)
    X, y = bumps(3, 1, n=600)
    weights = np.where(np.arange(len(X)) == 5, 40.0, 1.0)  # drawn more than once
    model = mj.DiscriminativeClustering(3, init=init, n_init=5, random_state=0).fit(X, sample_weight=weights)
    assert same_partition(model.labels_, y)
    assert model.search_.best == pytest.approx(model.information_)
    begun = [s for s in model.search_.starts if s.source != "single rows moved"]
    assert len(begun) == (4 + 2 * X.shape[1] + 5 if init == "auto" else 5)
    assert "120 of 600 rows" in model.search_.note and "120 of 600 rows" in str(model.summary())
    assert model.certify(X, sample_weight=weights).objective == pytest.approx(model.information_, abs=1e-4)


@pytest.mark.parametrize(
    ("init", "sources"),
    [
        ("ball", {"ball relaxation"}),
        ("relaxation", {"relaxation, best column", "relaxation, average"}),
        ("independent-relaxations", {f"independent relaxations, {r}" for r in ("best column", "average")}),
        ("random", {"random"}),
    ],
)
def test_one_kind_of_start(init: str, sources: set[str]) -> None:
    X, _ = bumps(2, 0)
    model = mj.DiscriminativeClustering(2, init=init, n_init=3, random_state=0).fit(X)
    assert {s.source for s in model.search_.starts} == sources
    assert model.search_.best == pytest.approx(model.information_)
    assert model.search_.proved_bound is None  # a bound is asked for
    assert model.information_ <= model.certify(X).bound
    objectives = np.array([row["objective"] for row in model.trace_])
    assert (np.diff(objectives) <= 1e-12).all() and -objectives[-1] == pytest.approx(model.information_)


@pytest.mark.filterwarnings("ignore:the fit did not converge")
@pytest.mark.parametrize("alpha", [0.1, 10.0, 1e3])
def test_no_start_that_is_told_is_better_than_the_answer(alpha: float) -> None:
    """An anneal may lose what was there, under a strong penalty all of it."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = mj.DiscriminativeClustering(3, alpha=alpha, max_iter=100, random_state=0).fit(X)
    assert model.information_ == pytest.approx(model.search_.best, rel=1e-9) and model.information_ > 0


def test_given_starts_keep_their_names() -> None:
    X, y = bumps(3, 0)
    for init in (y, np.eye(3)[y], 2.0 * np.eye(3)[y] + 0.1):
        np.testing.assert_array_equal(mj.DiscriminativeClustering(3, init=init).fit(X).labels_, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"init": np.zeros(3)}, r"shape \(60,\)"),
        ({"init": np.full(60, 2)}, "from 0 to 1"),
        ({"init": np.full(60, 0.5)}, "whole numbers"),
        ({"init": np.zeros((60, 2))}, "all zero"),
        ({"init": -np.ones((60, 2))}, "negative"),
        ({"init": "bal"}, "'ball'"),
        ({"alpha": "scaled"}, "'scale'"),
        ({"alpha": 0.0}, "alpha must be positive"),
        ({"alpha": np.inf}, "alpha must be positive and finite; got inf"),
        ({"alpha": np.nan}, "alpha must be positive and finite; got nan"),
        ({"kernel": "rbg"}, "'rbf'"),
        ({"kernel": "rbf", "gamma": -1.0}, "gamma"),
        ({"kernel": lambda x, y: -rbf_kernel(x, y)}, "not positive semi-definite.*eigenvalues from -"),
        ({"kernel": lambda x, y: np.tanh(x @ y.T - 1)}, "not positive semi-definite"),
        ({"kernel": lambda x, y: x @ y.T + np.arange(len(y))}, "not symmetric"),
        ({"kernel": lambda x, y: np.full((len(x), len(y)), np.nan)}, "finite"),
        ({"kernel": lambda x, y: np.ones(len(x))}, "shape"),
        ({"kernel": lambda x, y: np.full((len(x), len(y)), "a")}, "numbers"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        mj.DiscriminativeClustering(2, **parameters).fit(bumps(2, 0)[0])


# Kernels


@pytest.mark.parametrize("n", [200, 2400])
def test_circles(n: int) -> None:
    """Above 2000 rows with landmarks; new rows are predicted as those of the fit."""
    X, y = make_circles(n, factor=0.3, noise=0.05, random_state=0)
    model = mj.DiscriminativeClustering(2, kernel="rbf", alpha=1e-3, n_kernel_components=40, random_state=0).fit(X)
    assert same_partition(model.labels_, y)
    assert len(model.landmarks_) == (200 if n == 200 else 40) and not hasattr(model, "coef_")
    new, ring = make_circles(100, factor=0.3, noise=0.05, random_state=1)
    assert same_partition(model.predict(new), ring)
    np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1)
    certificate = model.certify(X)
    assert certificate.objective == pytest.approx(model.information_, abs=1e-4) and certificate.gap < 0.02


def test_a_callable_kernel_is_that_kernel() -> None:
    X, _ = bumps(3, 1)
    own = mj.DiscriminativeClustering(3, kernel=lambda a, b: rbf_kernel(a, b, gamma=0.05), random_state=0).fit(X)
    named = mj.DiscriminativeClustering(3, kernel="rbf", gamma=0.05, random_state=0).fit(X)
    np.testing.assert_allclose(own.predict_proba(X), named.predict_proba(X), atol=1e-6)


def test_the_linear_kernel_is_no_kernel() -> None:
    X, _ = bumps(2, 2)
    kernel = mj.DiscriminativeClustering(2, kernel=lambda a, b: a @ b.T, alpha=0.05, random_state=0).fit(X)
    plain = mj.DiscriminativeClustering(2, alpha=0.05, random_state=0).fit(X)
    assert kernel.information_ == pytest.approx(plain.information_, abs=1e-5)
    np.testing.assert_allclose(kernel.predict_proba(X), plain.predict_proba(X), atol=1e-2)
    np.testing.assert_allclose(plain.level_ - plain.coef_ @ plain.center_, plain.intercept_, atol=1e-12)
    with pytest.raises(AttributeError, match="level_"):
        _ = kernel.intercept_


def test_rows_too_far_for_an_rbf_kernel() -> None:
    X, _ = bumps(2, 0)
    with pytest.raises(ValueError, match="rescale X"):
        mj.DiscriminativeClustering(2, kernel="rbf").fit(X * 1e200)


# The bound


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_no_clustering_passes_the_bound(first: int) -> None:
    """200 small problems; one start follows the first feature."""
    for seed in range(first, first + 20):
        x, problem = small_problem(seed)
        k, n, shares = problem.n_clusters, len(problem.shares), problem.shares
        axes = principal_axes(x, shares)
        found = information_bound(axes, shares, k, problem.alpha)
        random = np.random.default_rng(seed)
        assignments = [random.integers(0, k, n) for _ in range(2)] + [np.argsort(np.argsort(x[:, 0])) * k // n]
        best = min(descended(problem, softened(a, k), max_iter=12).objective[0] for a in assignments)
        assert -best <= found.bound + 1e-12 <= np.log(k) + 2e-12
        scatters = [
            float((np.einsum("n,nk,np->kp", shares, np.eye(k)[a], x - shares @ x) ** 2).sum()) for a in assignments
        ]
        for bound in (ball_dual(axes, shares, k), spectral_bound(axes.deviations**2, k)):
            assert max(scatters) <= bound * (1 + 1e-9)


def test_the_channel() -> None:
    """f_t is concave with the slope that is told, and is the information of hard clusters through the channel."""
    c = np.linspace(0.001, 1, 400)
    for t in (1e-4, 0.03, 0.4, 1.0):
        f, slope = channel(c, np.array(t)), channel_slope(c, np.array(t))
        assert (np.diff(f, 2) <= 1e-12).all()
        np.testing.assert_allclose(np.diff(f) / np.diff(c), (slope[1:] + slope[:-1]) / 2, rtol=0.1, atol=2e-3)
        sizes = np.array([0.5, 0.3, 0.2])
        q = (1 - t) * np.eye(3) + t * sizes
        information = -xlogy(sizes, sizes).sum() + sizes @ xlogy(q, q).sum(axis=1)
        assert channel(sizes, np.array(t)).sum() == pytest.approx(information, abs=1e-12)
        slopes = np.array([[0.7, 0.2, 0.0]])
        draws = np.random.default_rng(0).dirichlet(np.ones(3), size=3000)
        reached = (channel(draws, np.array(t)) + slopes * draws).sum(axis=1).max()
        assert reached - 1e-9 <= sized_bound(slopes, np.array([[t]]))[0] <= reached + 0.02


def test_variances_of_assignments() -> None:
    """What the bounds by variances stand on: sums of leading eigenvalues of second moments."""
    random = np.random.default_rng(1)
    for _ in range(200):
        k = int(random.integers(2, 7))
        c = random.dirichlet(np.full(k, random.choice([0.2, 1.0, 20.0])))
        sums = np.cumsum(np.sort(np.linalg.eigvalsh(np.diag(c) - np.outer(c, c)))[::-1])
        assert (sums <= 1 - 1 / (np.arange(1, k + 1) + 1) + 1e-12).all()
        xi = random.dirichlet(np.ones(k), size=9)
        moments = np.sort(np.linalg.eigvalsh(xi.T @ xi / 9))[::-1]
        assert (moments <= np.sort(xi.mean(axis=0))[::-1] + 1e-12).all()


def with_bound(model: Any, X: Any) -> Any:
    """What a clustering is certified by, which is then in its search report, as from the command line."""
    made = model.certify(X)
    model.search_ = model.search_.with_bound(made.bound, made.solution)
    return made


def test_the_bound_is_close_for_groups() -> None:
    for k, most in ((2, 5e-3), (5, 2e-2)):
        X, _ = bumps(k, 10)
        model = mj.DiscriminativeClustering(k, alpha=1e-2, random_state=0).fit(X)
        assert with_bound(model, X).gap < most
        assert "Provable bound: no clustering into" in str(model.summary())


def test_the_lede_claims_nothing_of_a_loose_bound() -> None:
    """All that is known of overlapping groups is next to what any share obeys."""
    X, _ = bumps(3, 0)
    X[:, 1:] *= 0.1
    model = mj.DiscriminativeClustering(3, alpha=0.5, random_state=0).fit(X)
    assert with_bound(model, X).gap > 0.05
    page = html_report(Run(model, X, ("a", "b"), "t.csv", ""))
    assert "it excludes little" in page
    assert "can be more than" not in page


@pytest.mark.filterwarnings("ignore:at most 1 of n_clusters")
@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("k", [2, 3])
def test_equal_rows_have_no_information_and_that_is_proved(k: int, kernel: str | None) -> None:
    X = np.full((20, 2), 0.1)
    model = mj.DiscriminativeClustering(k, kernel=kernel, random_state=0).fit(X)
    assert model.information_ == 0 == model.search_.best
    assert model.certify(X).proved
    assert "Provable bound" in str(model.summary())


def test_no_information_is_not_less_than_none() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = mj.DiscriminativeClustering(3, alpha=1e13, random_state=0).fit(X)
    assert model.information_ == 0
    assert model.certify(X).objective == 0


# What is told, and saving


def test_summary() -> None:
    X, _ = bumps(3, 25)
    text = str(mj.DiscriminativeClustering(3, random_state=0).fit(X).summary())
    for wanted in (
        "discriminative clustering, 3 clusters",
        "90 rows, 27 features",
        "information",
        "The first 20 of 27",
    ):
        assert wanted in text
    assert "mean probability below 1 %" not in text
    model = mj.DiscriminativeClustering(3, random_state=0).fit(X)
    model.n_active_clusters_ = 2
    assert "1 of 3 clusters have a mean probability below 1 %" in " ".join(str(model.summary()).split())


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_a_saved_model_predicts_the_same(kernel: str | None, tmp_path: Path) -> None:
    X, _ = bumps(3, 1)
    model = mj.DiscriminativeClustering(3, kernel=kernel, random_state=0).fit(X)
    model.save(tmp_path / "model.mj")
    again = mj.load(tmp_path / "model.mj")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert str(again.summary()) == str(model.summary())
    assert again.certify(X).bound == model.certify(X).bound


def test_streams_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", bumps(2, 0)[0])
    with pytest.raises(TypeError, match="in memory"):
        mj.DiscriminativeClustering(2).fit(mj.open_rows(tmp_path / "rows.npy"))
