"""What is said of components is said of what they are called in a model: states, or classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import majorant as mj
from majorant.search.contest import TWINS

X = np.random.default_rng(0).normal(size=(80, 1))
MODELS = {
    "components": lambda: mj.GaussianMixture(2, n_init=1, random_state=0, max_iter=1),
    "states": lambda: mj.HiddenMarkovModel(2, n_init=1, random_state=0, max_iter=1),
    "classes": lambda: mj.LatentClassAnalysis(2, items="normal", n_init=1, random_state=0, max_iter=1),
}


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("parts", MODELS)
def test_twins_are_called_as_in_the_model(parts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for contest in ("majorant.search.contest.MixtureContest", "majorant.models.hidden_markov.contest.SequenceContest"):
        monkeypatch.setattr(f"{contest}._twins", lambda self, theta: TWINS)
    model: Any = MODELS[parts]()
    with pytest.warns(ConvergenceWarning, match=f"two {parts} are the same: fewer do as well"):
        model.fit(X)
    assert "component" not in model.degeneracy_ or parts == "components"


@pytest.mark.parametrize("emission", ["poisson", "negative_binomial"])
def test_a_state_of_one_row_of_counts_does_not_count(emission: str) -> None:
    y = np.random.default_rng(0).poisson(5, (200, 1))
    y[100] = 60
    model = mj.HiddenMarkovModel(2, emission=emission, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"the smallest state has 1\.0 rows \(at least 2 are needed\)"):
        model.fit(y)
    y[100:105] = 60
    assert model.fit(y).regular_
