"""The weight of the loss of a target, by hold-out, and the penalty of its block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import majorant as mj
from majorant.models.harmonium.search import worth_it


@pytest.mark.parametrize(
    ("losses", "kept"),
    [
        ([1.0, 0.9701, 0.9702, 0.9701], 0),
        ([1.0, 0.9699, 0.98, 0.97], 1),
        ([1.0, 0.98, 0.9602, 0.9699], 2),  # against the first, not against the second, which was not kept
        ([1.0, 0.969, 0.9401, 0.9398], 3),  # each against the one that is kept
        ([1.0, 0.969, 0.9401, 0.9405], 1),  # the least is not worth it
        ([0.0, 0.0, 0.0, 0.0], 0),
        ([np.inf, np.inf, np.inf, np.inf], 0),
    ],
    ids=str,
)
def test_a_smaller_weight_replaces_the_one_kept_where_it_is_better_by_more_than_3_percent(
    losses: list[float], kept: int
) -> None:
    assert worth_it(losses) == kept


@pytest.mark.parametrize("kind", ["hinge", "log", "squared"])
def test_the_weight_of_the_loss_is_the_one_that_is_worth_it_on_held_out_rows(kind: str) -> None:
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
    at_its_own = [one.l2_path_[one.l2_path_[:, 0] == one.l2_, 1] for one in of_each]
    np.testing.assert_allclose(losses, np.ravel(at_its_own), rtol=1e-12)
    kept = next(one for one in of_each if one.loss_weight_ == found.loss_weight_)
    assert found.loss_weight_ == weights[worth_it(losses)]
    np.testing.assert_array_equal(found.components_, kept.components_)
    assert found.certify(X, y).difference == kept.certify(X, y).difference
    assert kept.loss_weight_path_.shape == (0, 2)
    fixed = model(3, loss=kind, loss_weight="auto", l2=0.5).fit(X, y)
    assert fixed.l2_ == 0.5 and not len(fixed.l2_path_) and len(fixed.loss_weight_path_) == 4


@pytest.mark.parametrize("noise", [0.1, 6.0])
def test_a_weight_at_an_end_of_those_tried_is_told(noise: float) -> None:
    g = np.random.default_rng(1)
    h = g.normal(size=(80, 2))
    X = h @ g.normal(size=(2, 5)) + 0.3 * g.normal(size=(80, 5))
    model = mj.HarmoniumRegressor(3, loss_weight="auto").fit(X, h[:, 0] + noise * g.normal(size=80))
    told = {1000.0: "1000, is the largest that was tried", 1.0: "1, is the smallest that was tried"}
    said = " ".join(str(model.summary()).split())
    assert [text in said for text in told.values()] == [model.loss_weight_ == weight for weight in told]
    for weight in model.loss_weight_path_[:, 0]:  # as if it had been chosen
        model.loss_weight_ = weight
        said = " ".join(str(model.summary()).split())
        assert [text in said for text in told.values()] == [weight == end for end in told]


@pytest.mark.parametrize(("response", "given"), [(0.05, {"tol": 1e-13}), (0.5, {"tol": 1e-13}), (20.0, {})])
@pytest.mark.parametrize("method", ["pseudo-likelihood", "cd"])
def test_the_penalty_of_the_response_is_balanced_by_its_loss_alone(
    method: str, response: float, given: dict[str, float]
) -> None:
    g = np.random.default_rng(2)
    h = g.normal(size=(80, 2))
    X = h @ g.normal(size=(2, 5)) + g.normal(size=(80, 5))
    y = 3 * h[:, 0] + g.normal(size=80)
    l2 = {"views": 0.5, "response": response}
    model = mj.HarmoniumRegressor(2, loss="squared", loss_weight=50.0, l2=l2, method=method, **given).fit(X, y)
    v = model.label_components_[0]
    told = model.transform(X) @ v
    residual = told + model.label_intercept_[0] - (y - y.mean()) / y.std()
    # V at a minimum: the derivative of loss and penalty along V itself is zero
    np.testing.assert_allclose(50 * np.mean(residual * told), -response * v @ v, rtol=1e-3)
    assert model.l2_ == 0.5
    if method == "pseudo-likelihood":
        assert model.certificate_.is_global
        assert model.certify(X, y).difference == pytest.approx(0, abs=1e-2)


def test_blocks_of_one_penalty_are_one_penalty() -> None:
    g = np.random.default_rng(5)
    X = g.normal(size=(60, 4)) + g.normal(size=(60, 1))
    y = X[:, 0] > 0
    for loss in ("hinge", "log"):
        plain, blocks = (
            mj.HarmoniumClassifier(2, loss=loss, l2=l2).fit(X, y) for l2 in (0.5, {"views": 0.5, "response": 0.5})
        )
        np.testing.assert_array_equal(plain.components_, blocks.components_)
        strict = mj.HarmoniumClassifier(2, loss=loss, l2={"views": 0.5, "response": 50.0}).fit(X, y)
        assert np.linalg.norm(strict.label_components_) < np.linalg.norm(plain.label_components_)
        told, by_block = (" ".join(str(model.summary()).split()) for model in (blocks, strict))
        assert "l2 0.5" in told and "of the response" not in told
        assert "l2 of views 0.5" in by_block and "l2 of the response 50" in by_block


@pytest.mark.parametrize(
    ("l2", "error", "message"),
    [
        ({"views": 1.0}, ValueError, "must have the keys 'views' and 'response'; got"),
        ({"views": 1.0, "response": "auto"}, TypeError, r"l2\['response'\] must be a number; got 'auto'"),
        ({"views": "1", "response": 1.0}, TypeError, r"l2\['views'\] must be a number; got '1'"),
        ({"views": 0.0, "response": 1.0}, ValueError, r"l2\['views'\] must be between 1e-12 and 1e\+12; got 0.0"),
    ],
)
def test_penalties_by_block_that_cannot_be(l2: dict[str, Any], error: type[Exception], message: str) -> None:
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    with pytest.raises(error, match=message):
        mj.HarmoniumClassifier(2, l2=l2).fit(X, y)
    with pytest.raises(TypeError, match="l2 must be a number"):
        mj.Harmonium(2, l2=l2).fit(X)
