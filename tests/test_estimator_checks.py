"""scikit-learn's own suite, on every public estimator at three sizes: none of its checks is expected to fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import majorant as mj
from majorant.registry import card_of

from .estimators import ESTIMATORS

VARIANTS = [
    *(mj.KMeans(2, init=init, n_init=2) for init in ("k-means++", "random", "forgy", "random-partition")),
    *(
        mj.KMeans(2, n_init=2, bounds=bounds)
        for bounds in (
            mj.Tightest(),
            mj.GibbsLimit(eta=0.3),
            mj.RandomWalk(eta=0.3, n_sweeps=2),
            mj.GrowingSubset(eta=0.3),
            mj.Tempered(eta=0.3),
            mj.Biased(mj.Balance(), eta=0.3),
        )
    ),
    mj.KMeans(3, algorithm="elkan", n_jobs=2),
    mj.LatentPrototypeClassifier(2, beta=np.inf, random_state=0),
    mj.LatentPrototypeClassifier(2, method="gradient", n_jobs=2, random_state=0),
    mj.LatentSVC(0.1, form="shared", random_state=0),
    mj.LatentSVC(
        0.1,
        latent_init="random",
        bounds=mj.GibbsLimit(),
        solver="cutting-plane",
        fit_intercept=False,
        n_jobs=2,
        random_state=0,
    ),
    *(
        cls(2, method="cd", l2=1.0, random_state=0)
        for cls in (mj.Harmonium, mj.HarmoniumClassifier, mj.HarmoniumRegressor)
    ),
    *(mj.ReconfigurableBagOfWords(n_parts, alpha=0.1, random_state=0) for n_parts in (1, 2)),
]


def plain(cls: type[Any]) -> list[Any]:
    """An estimator of each of three sizes, or one where the model has no size, all else by default."""
    name = card_of(cls).size_parameter
    return [cls(random_state=0, **({name: size} if name else {})) for size in ((1, 2, 3) if name else (1,))]


def refused(estimator: Any) -> dict[str, str]:
    """Name the checks of what an estimator refuses in words."""
    if getattr(estimator, "bounds", None) is None or not hasattr(estimator, "partial_fit"):
        return {}
    checks = ("fit_score_takes_y", "estimators_partial_fit_n_features", "n_features_in_after_fitting")
    return dict.fromkeys(
        (f"check_{name}" for name in checks), "partial_fit takes no bound policies, which need all rows at once"
    )


# Ten rows have no regular mixture, and fewer rows than columns no unique coefficients: a model may say so.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::scipy.linalg.LinAlgWarning")
@parametrize_with_checks(
    [*(estimator for cls in ESTIMATORS for estimator in plain(cls)), *VARIANTS], expected_failed_checks=refused
)
def test_estimator_contract(estimator: Any, check: Any) -> None:
    check(estimator)  # scikit-learn's own assertions: it raises where the contract is broken
    # It fits copies, which share nothing with the estimator that it was given.
    assert vars(estimator).keys() == estimator.get_params(deep=False).keys()
