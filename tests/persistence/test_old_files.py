"""Files of every format that was ever written must load for ever.

data/kmeans-format-1.majorant is ``KMeans(2, random_state=0, n_init=3, bounds=GibbsLimit(eta=0.2)).fit(ROWS)``.
A new format adds a file and a line here; since the first release no file is ever written again.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import majorant as mj
from majorant.persistence import load

ROWS = pd.DataFrame([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [8.0, 8.0], [8.0, 9.0]], columns=["a", "b"])


@pytest.mark.parametrize("version", [1])
def test_kmeans(version: int) -> None:
    model = load(Path(__file__).parent / "data" / f"kmeans-format-{version}.majorant")
    assert type(model) is mj.KMeans
    assert (model.n_clusters, model.n_init, model.bounds) == (2, 3, mj.GibbsLimit(eta=0.2))
    np.testing.assert_allclose(model.cluster_centers_, [[1 / 3, 1 / 3], [8.0, 8.5]])
    assert model.predict(ROWS).tolist() == model.labels_.tolist() == [0, 0, 0, 1, 1]
    assert model.inertia_ == pytest.approx(4 / 3 + 0.5)
    assert model.search_.n_starts == 3 and len(model.trace_) > 0
    assert list(model.feature_names_in_) == ["a", "b"]
