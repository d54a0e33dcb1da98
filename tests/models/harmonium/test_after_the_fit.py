"""What a fit used is what counts after it, whatever is set since."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import majorant as mj

from .problems import MODELS

RANDOM = np.random.default_rng(0)
HIDDEN = RANDOM.normal(size=(40, 2))
X = {
    "counts": RANDOM.poisson(np.exp(HIDDEN @ RANDOM.normal(size=(2, 4)))).astype(float),
    "sizes": HIDDEN @ RANDOM.normal(size=(2, 3)) + 0.5 * RANDOM.normal(size=(40, 3)),
    "more": HIDDEN @ RANDOM.normal(size=(2, 3)) + 0.5 * RANDOM.normal(size=(40, 3)),
}
VIEWS = {"counts": mj.Bernoulli(binarize=0), "sizes": mj.Gaussian(variance=0.5), "more": mj.Gaussian()}
Y = np.digitize(HIDDEN[:, 0], [-0.4, 0.4])

OTHER_LOSS = {"hinge": "log", "log": "hinge", "epsilon_insensitive": "squared", "squared": "epsilon_insensitive"}
OTHER_VIEWS = [
    {"counts": mj.Bernoulli(binarize=2), "sizes": mj.Gaussian(variance=3.0, whiten=False), "more": mj.Gaussian()},
    {"counts": "gaussian", "sizes": "gaussian"},
    None,
]


def said(model: Any) -> dict[str, Any]:
    """All that a fitted model says of rows and of itself."""
    some = {name: X[name] for name in ("sizes", "more")}
    found = {
        "latents": model.transform(X),
        "of some": model.transform(some),
        "counts": model.annotate(some, "counts"),
        "read out": model.calibrate(X).annotate(some, "counts", calibrated=True),
        "sizes": model.annotate(X, "sizes"),
        "sample": model.sample(5, random_state=0)["more"],
        "loadings": model.loadings("sizes"),
        "score": model.score(X, Y),
        "bound": model.certify(X, Y).bound,
        "summary": str(model.summary()),
    }
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, method):
            found[method] = getattr(model, method)(X)
    return found


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize("loss", MODELS)
def test_nothing_that_is_set_after_a_fit_changes_what_it_says(loss: str, tmp_path: Path) -> None:
    given = {} if loss == "Harmonium" else {"loss": loss}
    model = MODELS[loss](3, views=VIEWS, l2=0.5, **given).fit(X, Y)
    expected = said(model)
    before = model.get_params()
    other: dict[str, Any] = {"n_components": 1, "l2": 9.0, "tol": 1e-2, "max_iter": 1, "init": "random", "grow": True}
    other |= {"n_jobs": 2, "method": "cd", "cd_sweeps": 9, "n_folds": 3}
    if given:
        other |= {"loss": OTHER_LOSS[loss], "loss_weight": 1.0}
    else:
        other["select_by"] = next(iter(VIEWS))
    if isinstance(model, mj.HarmoniumRegressor):
        other["epsilon"] = 3.0
    assert {*other, "views", "n_init", "verbose", "random_state"} == before.keys()
    for views in OTHER_VIEWS:
        same(said(model.set_params(**other, views=views)), expected)
    model.save(tmp_path / "model.majorant")
    same(said(mj.load(tmp_path / "model.majorant")), expected)


def test_the_next_fit_uses_what_was_set() -> None:
    model = mj.HarmoniumClassifier(2, l2=0.5, loss="log", views=VIEWS).fit(X, Y)
    again = model.set_params(loss="hinge", loss_weight=5.0, views=OTHER_VIEWS[0]).fit(X, Y)
    fresh = mj.HarmoniumClassifier(2, l2=0.5, loss_weight=5.0, views=OTHER_VIEWS[0]).fit(X, Y)
    assert not hasattr(again, "predict_proba") and not hasattr(again, "label_shares_")
    same(said(again), said(fresh))
