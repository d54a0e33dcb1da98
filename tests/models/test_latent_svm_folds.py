"""Latent SVMs judged by fits without each fold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import majorant as mj
from majorant.models.margin.family import MarginFamily, Weights
from majorant.solvers.structural_svm import SOLVERS
from majorant.solvers.structural_svm.bags import BagProblem, BagSet

N, WIDTH, D = 24, 4, 5


def bags(seed: int, mask: Any = slice(None)) -> tuple[BagSet, Any]:
    """Bags of equal size of which one row shows the class."""
    random = np.random.default_rng(seed)
    X, codes = random.normal(size=(N, WIDTH, D)), (np.arange(N) % 3).astype(np.int32)
    X[np.arange(N), random.integers(0, WIDTH, N)] += 3.0 * np.eye(3, D)[codes]
    X, codes = X[mask], codes[mask]
    n = len(X)
    starts, counts = np.arange(0, n * WIDTH, WIDTH), np.full(n, WIDTH)
    return BagSet(np.ascontiguousarray(X.reshape(n * WIDTH, D)), starts, counts, codes, 3), codes


def family(bag_set: BagSet, shares: Any) -> MarginFamily:
    return MarginFamily(BagProblem(bag_set, 1.0 - np.eye(3)), shares, 0.1, SOLVERS["dcd"], 1e-2, 0)


def test_a_restricted_family_is_that_of_its_units() -> None:
    mask = np.random.default_rng(0).random(N) < 0.7
    whole, _ = bags(1)
    part, _ = bags(1, mask)
    shares = np.random.default_rng(1).uniform(1, 2, N)
    shares /= shares.sum()
    restricted, alone = family(whole, shares).restricted(mask), family(part, shares[mask])
    z = np.random.default_rng(2).integers(0, WIDTH, N).astype(np.int32)
    data, others = whole.chunks(shares), part.chunks(shares[mask])
    s = data.map_sum(lambda block: restricted.statistics(block, z[block.at], None))
    np.testing.assert_allclose(
        s, others.map_sum(lambda block: alone.statistics(block, z[mask][block.at], None)), atol=1e-12
    )
    theta, value = restricted.solve(s, None, data)
    _, expected = alone.solve(s, None, others)
    assert value == pytest.approx(expected, rel=1.1e-2)
    assert np.abs(theta.w).max() > 0.1
    again, _ = restricted.solve(s, theta, data)
    assert restricted.penalty(again) > 0


def test_the_hinge_loss_of_every_latent_value() -> None:
    """That of the own class with this latent value, against the best of the others with any."""
    bag_set, codes = bags(3)
    cost = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [3.0, 1.0, 0.0]])
    fitted = MarginFamily(BagProblem(bag_set, cost), np.full(N, 1 / N), 0.1, SOLVERS["dcd"], 1e-2, 0)
    w = np.random.default_rng(0).normal(size=fitted.problem.dim)
    (block,) = bag_set.chunks().source.blocks()
    weights, constant = w.reshape(bag_set.shape)[:, :-1], w.reshape(bag_set.shape)[:, -1]
    scores = np.einsum("nzd,cd->ncz", bag_set.rows.reshape(N, WIDTH, D), weights) + constant[None, :, None]
    expected = np.empty((N, WIDTH))
    for i, own in enumerate(codes):
        rival = max(scores[i, c].max() + cost[own, c] for c in range(3) if c != own)
        expected[i] = np.maximum(rival - scores[i, own], 0.0)
    np.testing.assert_allclose(fitted.hinge_losses(Weights(w, 0.0, 0.0), block), expected, atol=1e-12)
    assert (expected == 0).any() and (expected > 0).any()


def test_a_fold_may_judge_by_the_hinge_loss() -> None:
    """Values that tell the class apart by the full margin are equal to it; for other families there is no such loss."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 8, 40)), np.arange(60) % 3
    X[np.arange(60), random.integers(0, 8, 60)] += 5.0 * np.eye(3, 40)[y]
    reached = [
        mj.LatentSVC(0.3, latent_init="first", bounds=bounds, tol=1e-2, random_state=0).fit(X, y).objective_
        for bounds in (mj.Tightest(), mj.Biased(mj.MultiFold(5)), mj.Biased(mj.MultiFold(5, loss="hinge")))
    ]
    assert max(reached[1:]) < 0.95 * reached[0]
    with pytest.raises(ValueError, match="no hinge loss"):
        mj.KMeans(2, bounds=mj.Biased(mj.MultiFold(5, loss="hinge"))).fit(random.normal(size=(20, 2)))
    with pytest.raises(ValueError, match="loss"):
        mj.MultiFold(5, loss="squared")


def test_multi_fold_leaves_a_bad_start() -> None:
    """From the first region of every sample, on average below the concave-convex procedure."""
    ccp, folds = [], []
    for seed in range(4):
        random = np.random.default_rng(seed)
        X, y = random.normal(size=(60, 8, 40)), np.arange(60) % 3
        X[np.arange(60), random.integers(0, 8, 60)] += 5.0 * np.eye(3, 40)[y]
        for bounds, reached in ((mj.Tightest(), ccp), (mj.Biased(mj.MultiFold(5)), folds)):
            model = mj.LatentSVC(0.3, latent_init="first", bounds=bounds, tol=1e-2, random_state=0).fit(X, y)
            reached.append(model.objective_)
    assert np.mean(folds) < 0.95 * np.mean(ccp)
