"""Latent classes on the engine: bounds fall and hold, gradients by differences, closed forms, equivalences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_softmax

import majorant as mj
from majorant.data.chunks import Block
from majorant.engine.descent import descend
from majorant.engine.latents import tightest
from majorant.engine.loop import minimize
from majorant.engine.of_family import FamilyOnData, one
from majorant.engine.runs import stacked
from majorant.models.discriminative_latent_classes.family import LatentClasses, LatentClassFamily
from majorant.models.discriminative_latent_classes.joint import JointCost

from .problems import design, family, xor

Array = NDArray[Any]

POLICIES: list[Any] = [
    mj.Tightest(),
    mj.GibbsLimit(),
    mj.RandomWalk(n_sweeps=2),
    mj.GrowingSubset(),
    mj.Tempered(),
    mj.Biased(mj.Balance()),
]
each_label_model = pytest.mark.parametrize("indicators", [False, True], ids=["one label", "indicators"])


def random_start(k: int, seed: int) -> Any:
    return lambda block: np.random.default_rng([seed, block.first]).dirichlet(np.full(k, 0.2), size=len(block))


def parameters(fam: LatentClassFamily, seed: int) -> LatentClasses:
    g = np.random.default_rng(seed)
    model = fam.labels
    alpha = model.from_free(g.normal(size=(fam.n_states, model.n_labels)))
    return LatentClasses(g.normal(size=(fam.n_features + 1, fam.n_states)), alpha)


@each_label_model
@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("beta", [1.0, 0.5, np.inf])
def test_bounds_hold_and_the_descent_never_rises(policy: Any, beta: float, indicators: bool) -> None:
    X, y = xor(120)
    rows = design(X, y, np.random.default_rng(0).gamma(1.0, size=120), indicators=indicators)
    for seed in range(3):
        fam = family(rows, 3, beta=beta)
        found = minimize(fam, rows.labelled, policy, latent=random_start(3, seed), seed=seed, max_iter=40)
        t = found.trace
        polish = t["exploring"] == 0
        assert (t["gap"] >= -1e-9 * abs(t["objective"])).all()
        assert (np.diff(t["objective"][polish]) <= 1e-9 * np.abs(t["objective"][polish][1:])).all()
        # The objective is what energies say it is.
        free = tightest(fam.energies(found.theta, whole(rows)), beta)[0]
        assert whole(rows).total(free) + fam.penalty(found.theta) == pytest.approx(found.objective, rel=1e-9)


def whole(rows: Any) -> Block:
    block: Block = next(rows.labelled.source.blocks())
    return block


@each_label_model
@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_fused_pass_is_the_tightest_bound(k: int, indicators: bool) -> None:
    X, y = xor(70)
    rows = design(X, y, np.random.default_rng(0).gamma(1.0, size=70), indicators=indicators)
    fam = family(rows, k)
    theta, block = parameters(fam, 1), whole(rows)
    free, bound = fam.tight_pass(theta, block)
    free_each, q = tightest(fam.energies(theta, block), 1.0)
    assert free == pytest.approx(block.total(free_each), rel=1e-10)
    np.testing.assert_allclose(bound.statistics, fam.statistics(block, q, theta), rtol=1e-8, atol=1e-9)
    entropy = block.total(-np.sum(q * np.log(np.maximum(q, 1e-300)), axis=1))
    assert bound.entropy == pytest.approx(entropy, rel=1e-9, abs=1e-9)


@each_label_model
@pytest.mark.parametrize("gamma", [0.0, 0.4])
def test_the_joint_gradient_by_differences(gamma: float, indicators: bool) -> None:
    X, y = xor(90)
    rows = design(X[:60], y[:60], indicators=indicators)
    everything = design(X, y)
    cost = JointCost(family(rows, 3), rows.labelled, everything.rows, gamma)
    fam, at = cost.family, parameters(cost.family, 3)
    g = np.random.default_rng(0)
    a, b = g.normal(size=at.theta.shape), g.normal(size=at.alpha.shape)
    _, of_theta, of_labels = cost.value_and_gradient(at)

    def along(step: float) -> float:
        alpha = fam.labels.from_free(fam.labels.free(at.alpha) + step * b)
        return cost.value_and_gradient(LatentClasses(at.theta + step * a, alpha))[0]

    slope = (along(1e-5) - along(-1e-5)) / 2e-5
    assert slope == pytest.approx(float(np.sum(of_theta * a) + np.sum(of_labels * b)), rel=1e-6)


@each_label_model
def test_the_joint_descent_goes_on_where_em_ends(indicators: bool) -> None:
    X, y = xor(150, noise=2)
    rows = design(X, y, indicators=indicators)
    fam = family(rows, 4)
    em = minimize(fam, rows.labelled, latent=random_start(4, 0), max_iter=5)
    _, polished = JointCost(fam, rows.labelled, rows.rows).minimise(em.theta, tol=1e-12, max_iter=300)
    values = np.array(polished.values) * rows.total_weight
    assert values[0] == pytest.approx(em.objective, rel=1e-9)
    assert (np.diff(values) <= 1e-12 * abs(values[0])).all()
    longer = minimize(fam, rows.labelled, theta=em.theta, max_iter=1000, tol=1e-10)
    assert values[-1] <= longer.objective + 1e-5 * abs(longer.objective)


@each_label_model
def test_the_descent_ends_where_the_loop_does(indicators: bool) -> None:
    """Runs of a batch do not know each other, and a share of a step lies on the way."""
    X, y = xor(90)
    rows = design(X, y, np.random.default_rng(0).gamma(1.0, size=90), indicators=indicators)
    fam = family(rows, 3)
    on = FamilyOnData(fam, rows.labelled)
    begun = [on.started(random_start(3, seed)) for seed in range(2)]
    both = descend(on, stacked(begun), tol=1e-12, max_iter=2000)
    for run, start in enumerate(begun):
        alone = descend(on, start, tol=1e-12, max_iter=2000)
        assert alone.paths[0] == both.paths[run]
        assert (np.diff(alone.paths[0]) <= 1e-9).all()
        loop = minimize(fam, rows.labelled, theta=one(start), tol=1e-14, max_iter=4000)
        assert alone.objective[0] == pytest.approx(loop.objective, rel=1e-8)
    seen = on.seen(begun[0])
    whole, half, none = (on.moved(begun[0], seen, np.array([share])) for share in (1.0, 0.5, 0.0))
    np.testing.assert_allclose(half.theta, (whole.theta + none.theta) / 2)
    np.testing.assert_allclose(half.alpha, (whole.alpha + begun[0].alpha) / 2)


def test_one_class_is_the_shares_of_the_labels() -> None:
    X, y = xor(80)
    w = np.random.default_rng(0).gamma(1.0, size=80)
    rows = design(X, y, w)
    found = minimize(family(rows, 1), rows.labelled, latent=random_start(1, 0))
    shares = np.bincount(y, weights=w) / w.sum()
    np.testing.assert_allclose(found.theta.alpha[0], shares, rtol=1e-6)
    assert found.objective * rows.unit == pytest.approx(-w.sum() * shares @ np.log(shares), rel=1e-6)
    np.testing.assert_allclose(found.theta.theta[:-1], 0, atol=1e-12)


def test_bits_depend_on_neither_threads_nor_order_nor_repeats() -> None:
    X, y = xor(20_000)
    counts = np.random.default_rng(0).integers(0, 3, size=len(y))
    start = random_start(4, 0)

    def fitted(X: Array, y: Array, w: Array | None, n_jobs: int) -> LatentClasses:
        rows = design(X, y, w)
        rows.labelled.n_jobs = n_jobs
        return minimize(family(rows, 4), rows.labelled, latent=start, max_iter=3).theta

    one = fitted(X, y, counts.astype(float), 1)
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(len(y)), counts))
    for other in (fitted(X, y, counts.astype(float), 2), fitted(X[order], y[order], None, 1)):
        assert (one.theta == other.theta).all()
        assert (one.alpha == other.alpha).all()


def test_sparse_rows_and_dense_ones_agree() -> None:
    X, y = xor(150, noise=3)
    X[np.abs(X) < 0.4] = 0
    dense, thin = design(X, y), design(sparse.csr_matrix(X), y)
    a, b = (
        minimize(family(r, 3), r.labelled, theta=parameters(family(r, 3), 0), max_iter=300, tol=1e-12)
        for r in (dense, thin)
    )
    assert np.isfinite([a.objective, b.objective]).all()
    coef, intercept = dense.outward(a.theta.theta)
    logs = log_softmax(X @ coef.T + intercept, axis=1)
    joint = np.log(np.sum(np.exp(logs) * a.theta.alpha[:, y].T, axis=1))
    cost = -joint.sum() + 0.01 * len(y) / 3 / 2 * np.sum(coef**2) + dense.labels.penalty(a.theta.alpha)
    assert cost == pytest.approx(a.objective, rel=1e-9)
    measure = thin.measure
    inward = thin.rotation.inward(np.vstack([coef.T / measure.scale, intercept + coef @ measure.origin]))
    again = minimize(family(thin, 3), thin.labelled, theta=LatentClasses(inward, a.theta.alpha), max_iter=2)
    assert again.objective == pytest.approx(a.objective, rel=1e-6)


@pytest.mark.parametrize("most_axes", [1000, 10])
@pytest.mark.parametrize("shape", [(200, 12), (30, 80)])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_df_is_a_share_of_the_degrees_of_freedom(
    shape: tuple[int, int], is_sparse: bool, most_axes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("majorant.models.discriminative_latent_classes.design.MOST_AXES", most_axes)
    g = np.random.default_rng(0)
    X = g.normal(size=shape) * g.gamma(1.0, size=shape[1])
    if is_sparse:
        X *= g.random(shape) < 0.3
    rows = design(sparse.csr_matrix(X) if is_sparse else X, g.integers(0, 2, size=shape[0]))
    centred = X - X.mean(axis=0)
    variances = np.linalg.svd(centred, compute_uv=False) ** 2 / shape[0]
    variances = variances[variances > 1e-10 * variances.max()]
    for df in (0.3, 0.9):
        kept = np.mean(variances / (variances + rows.penalty_of_df(df)))
        assert kept == pytest.approx(df, abs=1e-6)
