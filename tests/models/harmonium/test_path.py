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


@pytest.mark.parametrize("loss", [None, "log"])
def test_components_that_came_to_nothing_on_the_path_return_where_they_are_needed(loss: str | None) -> None:
    g = np.random.default_rng(0)
    h = g.normal(size=(60, 2))
    numbers = h @ g.normal(size=(2, 4)) + 0.3 * g.normal(size=(60, 4))
    bits = h @ g.normal(size=(2, 3)) + 0.5 * g.normal(size=(60, 3)) > 0
    X, y = np.column_stack([numbers, bits]), np.digitize(h[:, 0], [-0.5, 0.5])
    views = {"numbers": mj.Gaussian([0, 1, 2, 3]), "bits": mj.Bernoulli([4, 5, 6])}
    kind = mj.Harmonium if loss is None else mj.HarmoniumClassifier
    given = {} if loss is None else {"loss": loss, "loss_weight": 10.0}
    for n_components in (4, 7):
        model = kind(n_components, views=views, **given).fit(X, y)
        certificate = model.certificate_
        assert certificate.is_global or certificate.binds
        assert model.evidence_.best == pytest.approx(model.objective_, rel=1e-6)
        assert (np.diff(model.trace_["objective"]) <= 1e-9 * abs(model.objective_)).all()
