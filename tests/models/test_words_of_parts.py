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
