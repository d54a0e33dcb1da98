"""From a start to a minimum: starts where the model is improper, and the certificate of what is kept."""

from __future__ import annotations

import numpy as np
import pytest

import majorant as mj
from majorant.models.harmonium.certificate import optimality
from majorant.models.harmonium.layout import Parameters, properness, shrunk
from majorant.models.harmonium.objective import Penalised

from .problems import LOSSES, problem
from .test_harmonium import VIEWS, three_views


def penalised(seed: int, loss: str) -> tuple[Penalised, Parameters]:
    cost, at = problem(seed, LOSSES[loss])
    return Penalised(cost, np.ones(cost.layout.n_rows), 0.5, np.full(cost.layout.n_gaussian, np.nan)), at


@pytest.mark.parametrize("factor", [1e2, 1e6])
@pytest.mark.parametrize("loss", ["none", "hinge"])
def test_a_start_where_the_model_is_improper_is_brought_to_where_it_is_proper(
    loss: str, factor: float, seed: int
) -> None:
    cost, at = penalised(seed, loss)
    far = Parameters(factor * at.weights, at.intercept, at.log_variance)
    assert properness(far) < 0
    with pytest.raises(np.linalg.LinAlgError):
        cost.value(far)
    near = shrunk(far)
    assert properness(near) == pytest.approx(0.1)
    np.testing.assert_allclose(near.weights / far.weights, (near.weights / far.weights)[0, 0], rtol=1e-12)
    found, result = cost.minimise(far, tol=1e-12, max_iter=2000)
    assert result.values[0] == pytest.approx(cost.value(near), rel=1e-12) and result.value < result.values[0]
    assert result.value == pytest.approx(cost.value(found), rel=1e-12) and result.converged
    optimal = optimality(cost, found)
    assert optimal is not None and optimal.stationarity < 0.01


def test_a_proper_start_is_taken_as_it_is() -> None:
    cost, at = penalised(0, "none")
    small = Parameters(0.1 * at.weights, at.intercept, at.log_variance)
    assert shrunk(small) is small
    assert cost.minimise(small, tol=1e-6, max_iter=50)[1].values[0] == pytest.approx(cost.value(small), rel=1e-12)


def test_a_start_that_has_no_objective_is_no_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    cost, at = penalised(0, "none")

    def none(self: Penalised, at: Parameters) -> None:
        raise np.linalg.LinAlgError

    monkeypatch.setattr(Penalised, "value_and_slope", none)
    with pytest.raises(np.linalg.LinAlgError):
        cost.minimise(at, tol=1e-6, max_iter=50)


@pytest.mark.parametrize("l2", [0.1, 0.3, 1.0, 50.0])
def test_the_certificate_is_that_of_the_components_that_are_kept(l2: float) -> None:
    X, y = three_views()
    for model, target in (
        (mj.Harmonium(6, views=VIEWS, l2=l2), ()),
        (mj.HarmoniumClassifier(6, views=VIEWS, l2=l2, loss_weight=10.0), (y,)),
    ):
        model.fit(X, *target)
        found = model.certify(X, *target)
        assert found.objective == pytest.approx(model.objective_, rel=1e-12)
        if model.certificate_.is_global:
            assert found.bound == pytest.approx(model.search_.proved_bound, abs=1e-9)
