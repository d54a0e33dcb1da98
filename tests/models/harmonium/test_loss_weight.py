"""The weight of the loss of a target, by hold-out."""

from __future__ import annotations

import numpy as np
import pytest

import majorant as mj


@pytest.mark.parametrize("kind", ["hinge", "log", "squared"])
def test_the_weight_of_the_loss_is_the_one_whose_held_out_loss_is_least(kind: str) -> None:
    g = np.random.default_rng(3)
    h = g.normal(size=(60, 2))
    X = h @ g.normal(size=(2, 5)) + g.normal(size=(60, 5))
    noisy = h[:, 0] + g.normal(size=60)
    model = mj.HarmoniumRegressor if kind == "squared" else mj.HarmoniumClassifier
    y = noisy if kind == "squared" else noisy > 0
    found = model(3, loss=kind, loss_weight="auto").fit(X, y)
    weights, losses = found.loss_weight_path_.T
    assert weights.tolist() == [1000, 100, 10, 1]
    of_each = [model(3, loss=kind, loss_weight=weight).fit(X, y) for weight in weights]
    np.testing.assert_allclose(losses, [one.l2_path_[:, 1].min() for one in of_each], rtol=1e-12)
    kept = next(one for one in of_each if one.loss_weight_ == found.loss_weight_)
    assert losses[weights == kept.loss_weight_] <= losses.min() / 0.97**3
    np.testing.assert_array_equal(found.components_, kept.components_)
    assert found.certify(X, y).difference == kept.certify(X, y).difference
    assert kept.loss_weight_path_.shape == (0, 2)
    fixed = model(3, loss=kind, loss_weight="auto", l2=0.5).fit(X, y)
    assert fixed.l2_ == 0.5 and not len(fixed.l2_path_) and len(fixed.loss_weight_path_) == 4
