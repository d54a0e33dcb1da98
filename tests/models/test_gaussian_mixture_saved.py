"""A fitted mixture says the same of itself after it was saved and loaded, a degenerate one too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import majorant as mj


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_what_is_wrong_with_a_fit_is_kept_with_it(covariance_type: str, tmp_path: Path) -> None:
    X = np.array([[0.0, 1.0], [1.0, 3.0], [5.0, 2.0], [5.0, 7.0], [2.0, 2.0]])
    model = mj.GaussianMixture(4, covariance_type=covariance_type, random_state=0)
    with pytest.warns(ConvergenceWarning, match="No regular solution"):
        model.fit(X)
    assert not model.regular_ and model.degeneracy_
    assert model.summary().look_out == [f"No regular solution was found: {model.degeneracy_}.{ADVICE[covariance_type]}"]
    model.save(tmp_path / "m")
    again = mj.load(tmp_path / "m")
    assert again.degeneracy_ == model.degeneracy_
    assert [again.bic(X), again.aic(X), again.icl(X)] == [model.bic(X), model.aic(X), model.icl(X)]


ADVICE = {
    kind: " Do not compare it by its likelihood; use fewer components"
    + ("." if kind in ("tied", "spherical") else ", or a simpler covariance_type.")
    for kind in ("full", "tied", "diag", "spherical")
}


def test_a_regular_fit_has_nothing_to_say(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = mj.GaussianMixture(1).fit(X)
    assert (model.regular_, model.degeneracy_, model.summary().look_out) == (True, "", [])


@pytest.mark.parametrize("verbose", ["x", None, -1, 1.5])
def test_verbose_is_a_number_or_a_truth_value(verbose: object) -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    mj.GaussianMixture(1, verbose=False).fit(X)
    with pytest.raises((TypeError, ValueError), match="verbose must be"):
        mj.GaussianMixture(1, verbose=verbose).fit(X)
