"""No components may be the answer: the path of penalties begins at the smallest one that leaves none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import bernoulli, norm

import majorant as mj
from majorant.models.harmonium import search

VIEWS = {"numbers": mj.Gaussian(whiten=False), "bits": mj.Bernoulli()}


def noise(seed: int, n: int = 200) -> dict[str, np.ndarray]:
    g = np.random.default_rng(seed)
    return {"numbers": g.normal(size=(n, 6)), "bits": (g.random((n, 6)) < 0.4).astype(float)}


def signal(seed: int, n: int = 200) -> tuple[dict[str, np.ndarray], np.ndarray]:
    g = np.random.default_rng(seed)
    h = g.normal(size=n)
    numbers = h[:, None] + g.normal(size=(n, 5))
    return {"numbers": numbers, "bits": (h[:, None] + g.normal(size=(n, 4)) > 0).astype(float)}, h + g.normal(size=n)


def standard(x: np.ndarray) -> np.ndarray:
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0))


def test_the_largest_penalty_has_a_closed_form(seed: int) -> None:
    """Minus twice the gradient in J: covariances of standardised columns, twice those in which two conditionals are."""
    X, y = signal(seed)
    z, x, t = standard(X["numbers"]), standard(X["bits"]), standard(y[:, None])
    own, across, bits = z.T @ z / len(z) - np.eye(5), 2 * z.T @ x / len(z), 2 * (x.T @ x / len(z) - np.eye(4))
    both = np.block([[own, across], [across.T, bits]])
    of_target = 7.0 * np.concatenate([z, x], axis=1).T @ t / len(z)
    supervised = np.block([[both, of_target], [of_target.T, np.zeros((1, 1))]])
    numbers = mj.Harmonium(3, l2=1.0).fit(X["numbers"])
    unsupervised = mj.Harmonium(3, views=VIEWS, l2=1.0).fit(X)
    regressor = mj.HarmoniumRegressor(3, views=VIEWS, l2=1.0, loss="squared", loss_weight=7.0).fit(X, y)
    for model, expected in ((numbers, own), (unsupervised, both), (regressor, supervised)):
        assert model.largest_l2_ == pytest.approx(np.linalg.eigvalsh(expected)[-1], rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_from_the_largest_penalty_on_there_is_no_component(loss: str, seed: int) -> None:
    X, y = signal(seed)
    labels = np.digitize(y, [0.0, 1.5])
    given: dict[str, Any] = {"views": VIEWS, "loss": loss, "loss_weight": 10.0}
    edge = mj.HarmoniumClassifier(3, l2=1.0, **given).fit(X, labels).largest_l2_
    at_the_edge, below = (mj.HarmoniumClassifier(3, l2=share * edge, **given).fit(X, labels) for share in (1.0, 0.98))
    assert at_the_edge.rank_ == 0 and at_the_edge.certificate_.is_global
    assert not at_the_edge.components_.any()
    assert below.rank_ >= 1 and below.certificate_.is_global


@pytest.mark.parametrize("draw", range(6))
def test_independent_columns_have_no_components(draw: int) -> None:
    X, fresh = noise(draw), noise(draw + 100, 4000)
    model = mj.Harmonium(4, views=VIEWS).fit(X)
    assert model.rank_ == 0 and model.l2_ == model.largest_l2_ == model.l2_path_[0, 0]
    assert not model.transform(fresh).any()
    mean, sd, p = X["numbers"].mean(axis=0), X["numbers"].std(axis=0), X["bits"].mean(axis=0)
    independent = norm.logpdf((fresh["numbers"] - mean) / sd).sum(axis=1) + bernoulli.logpmf(fresh["bits"], p).sum(
        axis=1
    )
    assert model.score(fresh) == pytest.approx(independent.mean(), rel=1e-6)
    assert model.score(fresh) > mj.Harmonium(4, views=VIEWS, l2=model.l2_path_[1, 0]).fit(X).score(fresh)
    told = " ".join(str(model.summary()).split())
    assert f"their loss is {model.l2_path_[0, 1]:.5g} without any" in told and "No component helps to predict" in told


def test_the_loss_without_components_is_that_of_rows_held_out(seed: int) -> None:
    X = noise(seed)["numbers"]
    model = mj.Harmonium(2).fit(X)
    z = standard(X[np.lexsort(X.T[::-1])])  # in canonical order every fifth row is held out
    out = np.arange(len(z)) % 5 == 2
    expected = -norm.logpdf(z[out], z[~out].mean(axis=0), z[~out].std(axis=0)).sum(axis=1).mean()
    assert model.l2_path_[0, 1] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_labels_that_the_columns_do_not_tell_are_predicted_by_their_shares(loss: str) -> None:
    """In most draws: one of six or so is more than a standard error better by chance at one penalty or another."""
    kept = []
    for draw in range(8):
        X = noise(draw)
        y = np.random.default_rng(draw).permutation(np.repeat([0, 1], [140, 60]))
        model = mj.HarmoniumClassifier(3, views=VIEWS, loss=loss, loss_weight=10.0).fit(X, y)
        kept.append(model.rank_)
        if model.rank_ == 0:
            assert (model.predict(X) == 0).all()
            if loss == "log":
                np.testing.assert_allclose(model.predict_proba(X), [[0.7, 0.3]] * 200, atol=1e-4)
    assert kept.count(0) >= 6


def test_few_rows_that_tell_something_keep_components() -> None:
    """Rows that are hard for every model are no reason for a model that predicts the same for all rows."""
    for draw in range(6):
        X, y = signal(draw, 80)
        model = mj.HarmoniumRegressor(3, views=VIEWS).fit(X, y)
        assert model.rank_ >= 1 and model.score(*signal(draw + 100)) > 0.1


def test_the_null_model_of_all_rows_is_kept_where_some_choose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_ROWS", 50)
    X = noise(0)
    model = mj.Harmonium(4, views=VIEWS).fit(X)
    whole = mj.Harmonium(4, views=VIEWS, l2=model.l2_path_[1, 0])
    assert model.rank_ == 0 and model.certificate_.is_global
    monkeypatch.undo()
    assert model.l2_ >= whole.fit(X).largest_l2_
