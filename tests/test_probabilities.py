"""Probabilities of every estimator that tells any lie between 0 and 1 and are one in sum, to the last bit or nearly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import log_loss

import majorant as mj
from majorant import energy

from .estimators import ESTIMATORS, ROWS, N, make, reference, target

TELLING = [cls for cls in ESTIMATORS if hasattr(cls, "predict_proba")]


def rows_near_and_far() -> Any:
    random = np.random.default_rng(3)
    near = ROWS[random.integers(0, len(ROWS), 2000)] + random.normal(size=(2000, 3)) * 10.0
    return np.concatenate([near, ROWS, 1e6 * random.normal(size=(200, 3))])


@pytest.mark.parametrize("cls", TELLING)
def test_probabilities_lie_between_0_and_1_and_are_one_in_sum(cls: type[Any]) -> None:
    x = rows_near_and_far()
    y = (target(cls, len(x)),) if cls is mj.RegressionMixture else ()
    with_log_loss = cls is mj.HarmoniumClassifier  # only then it has any
    fitted = make(cls, loss="log").fit(ROWS, target(cls, N)) if with_log_loss else reference(cls)
    found = fitted.predict_proba(x, *y)
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_log_loss_takes_them(seed: int) -> None:
    random = np.random.default_rng(seed)
    x, y = random.normal(size=(300, 2)), np.arange(300) % 2
    x[:, 0] += 30.0 * y
    for fitted in (
        make(mj.LatentPrototypeClassifier, size=5, random_state=seed).fit(x, y),
        make(mj.DiscriminativeLatentClasses, size=5, random_state=seed).fit(x, y),
    ):
        assert fitted.predict_proba(x).max() <= 1.0
        assert log_loss(y, fitted.predict_proba(x)) >= 0.0


def test_a_sum_of_shares_is_no_larger_than_one() -> None:
    table = np.random.default_rng(0).random((2000, 1, 30))
    assert energy.marginal_posterior(table, 1, 2).max() <= 1.0
