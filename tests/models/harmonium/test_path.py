"""The path of penalties: fits that begin at the one before stay proper."""

from __future__ import annotations

import numpy as np
import pytest

import majorant as mj
from majorant.models.harmonium.fit import properness, renewed
from majorant.models.harmonium.layout import Parameters


def test_views_that_hardly_vary_given_their_latents_have_a_path(seed: int) -> None:
    g = np.random.default_rng(seed)
    for noise in (0.01, 0.1, 0.3):
        h = g.normal(size=(200, 1))
        X = {"near": h + noise * g.normal(size=(200, 3)), "far": h + 3 * g.normal(size=(200, 3))}
        views = {"near": mj.Gaussian(whiten=False), "far": mj.Gaussian(whiten=False)}
        model = mj.Harmonium(2, views=views).fit(X)
        assert np.isfinite(model.l2_path_).all() and np.isfinite(model.components_).all()


@pytest.mark.parametrize("size", [0.5, 0.99, 0.9999])
def test_a_renewed_point_is_as_proper_as_half_of_what_it_was(seed: int, size: float) -> None:
    g = np.random.default_rng(seed)
    u = g.normal(size=(6, 2))
    u *= np.sqrt(size / np.linalg.eigvalsh(u.T @ u)[-1])
    at = Parameters(u, np.zeros(6), np.zeros(6))
    near = renewed(at, Parameters(g.normal(size=(6, 2)), np.zeros(6), np.zeros(6)))
    assert properness(near) >= properness(at) / 2 > 0
