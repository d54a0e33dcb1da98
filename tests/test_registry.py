"""What a model's card says of its parts."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import majorant as mj
from majorant.registry import ESTIMATORS, card_of, discover


def test_the_number_of_parts_is_a_parameter_or_that_of_the_classes() -> None:
    assert card_of(mj.KMeans).size_of(mj.KMeans(4)) == 4
    assert card_of(mj.KMeans).with_size(mj.KMeans(4), 2).n_clusters == 2
    X = np.random.default_rng(0).normal(size=(30, 2)) + 5 * np.eye(3, 2)[np.arange(30) % 3]
    fitted = mj.LatentSVC(random_state=0).fit(X, np.arange(30) % 3)
    assert card_of(fitted).size_of(fitted) == 3
    with pytest.raises(TypeError, match="the parts of a latent SVM are the classes of its target"):
        card_of(fitted).with_size(fitted, 2)


def test_every_model_is_found_by_name_without_importing_others() -> None:
    discover()
    own = {name for name, cls in ESTIMATORS.items() if cls.__module__.startswith("majorant.models")}
    found = "from majorant.registry import card_named, model_names; card_named('kmeans'); print(*model_names())"
    found += "; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", found], capture_output=True, text=True, check=True)
    names, loaded = done.stdout.splitlines()
    assert own == set(names.split())
    assert "majorant.models.kmeans.estimator" in loaded and "majorant.models.hidden_markov" not in loaded
