"""When a fit is called a global optimum, and when it is not: unfinished fits, many variables, rows that lack views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import majorant as mj
from majorant.data.chunks import Chunks
from majorant.models.harmonium import certificate
from majorant.models.harmonium.certificate import STATIONARY, TOLERANCE, Curvature, GlobalCertificate, optimality
from majorant.models.harmonium.layout import Layout, Parameters, Seen
from majorant.models.harmonium.objective import Penalised
from majorant.models.harmonium.pseudo_likelihood import Part, PseudoLikelihood

from .problems import LOSSES, MODELS, layout, parameters, problem, rows
from .test_harmonium import VIEWS, three_views

# Unfinished fits


@pytest.mark.parametrize("loss", MODELS)
@pytest.mark.parametrize("l2", ["auto", 3.0])
@pytest.mark.parametrize("unfinished", [{"max_iter": 3}, {"tol": 1e-2}], ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_that_had_not_ended_is_not_certified(unfinished: dict[str, Any], l2: Any, loss: str) -> None:
    X, y = three_views()
    given = {} if loss == "Harmonium" else {"loss": loss}
    model = MODELS[loss](6, views=VIEWS, l2=l2, **unfinished, **given).fit(X, y)
    found = model.certificate_
    assert not found.is_global and not found.binds and not found.has_ended
    assert "had not ended" in found.sentence and "max_iter" in found.sentence and "tol" in found.sentence
    assert "A global optimum" not in str(model.summary())
    assert model.search_.proved_bound is None
    assert model.certify(X, y).difference > 0.01


def test_the_warning_and_the_certificate_agree() -> None:
    X, _ = three_views()
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        assert not mj.Harmonium(6, views=VIEWS, l2=0.3, max_iter=3).fit(X).certificate_.has_ended


@pytest.mark.parametrize("stationarity", [0.0, STATIONARY, 1.01 * STATIONARY, 1e6])
@pytest.mark.parametrize("eigenvalue", [1.0, 0.0, -TOLERANCE, -0.05, -1e6])
@pytest.mark.parametrize("rank", [2, 3])
def test_verdicts(eigenvalue: float, stationarity: float, rank: int) -> None:
    found = GlobalCertificate(eigenvalue, stationarity, rank, 3)
    assert found.has_ended == (stationarity <= 0.01)
    assert found.is_global == (stationarity <= 0.01 and eigenvalue >= -0.021)
    assert found.binds == (stationarity <= 0.01 and eigenvalue < -0.021 and rank == 3)
    assert ("A global optimum" in str(found)) == found.is_global
    assert ("One component more" in str(found)) == found.binds


# The matrix


def wide(n_bits: int = 150, seed: int = 0) -> tuple[PseudoLikelihood, Parameters, np.ndarray]:
    """More variables than Lanczos' method makes vectors of."""
    g = np.random.default_rng(seed)
    shape = Layout(4, n_bits)
    x = sparse.csr_matrix((g.random((40, n_bits)) < 0.3).astype(float))
    part = Part(Seen.everything(shape), Chunks(g.normal(size=(40, 4)), x, sparse.csr_matrix((40, 0))))
    centre = np.concatenate([np.zeros(4), np.full(n_bits, 0.3)])
    at = Parameters(0.05 * g.normal(size=(shape.n_rows, 2)), 0.1 * g.normal(size=shape.n_rows), np.zeros(4))
    return PseudoLikelihood(shape, centre, (part,)), at, np.full(shape.n_rows, 2.0)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("residual", [1e-6, 0.1, 0.5])
def test_lanczos_bounds_lie_above_eigenvalues(
    residual: float, k: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    curvature = Curvature(*wide(seed=seed))
    exact, vectors = curvature.largest(k)
    monkeypatch.setattr(certificate, "MOST_DENSE", 100)
    monkeypatch.setattr(certificate, "LANCZOS", residual)
    found, directions = curvature.largest(k)
    ritz = np.einsum("ik,ik->k", directions, curvature.times(directions))
    assert (found >= exact - 1e-12 * exact[0]).all() and (ritz <= exact[0] * (1 + 1e-12)).all()
    if residual == 1e-6:
        np.testing.assert_allclose(found, exact, rtol=1e-5)
        np.testing.assert_allclose(np.abs(np.einsum("ik,ik->k", directions, vectors)), 1.0, atol=1e-3)


@pytest.mark.parametrize("residual", [1e-6, 0.5])
def test_a_bound_by_lanczos_is_no_better_than_the_exact_one(residual: float, monkeypatch: pytest.MonkeyPatch) -> None:
    cost, at, scale = wide()
    penalised = Penalised(cost, scale, 2.0, np.full(4, np.nan))
    exact = optimality(penalised, at)
    monkeypatch.setattr(certificate, "MOST_DENSE", 100)
    monkeypatch.setattr(certificate, "LANCZOS", residual)
    found = optimality(penalised, at)
    assert exact is not None and found is not None
    assert found.eigenvalue <= exact.eigenvalue + 1e-12 and found.lower_bound <= exact.lower_bound + 1e-9
    assert found.stationarity == exact.stationarity


def lacking_discrete(seed: int, loss: str) -> tuple[PseudoLikelihood, Parameters, np.ndarray]:
    """Rows some of which lack bits or categories."""
    random = np.random.default_rng(seed)
    shape = layout(LOSSES[loss])
    whole = Seen.everything(shape)
    some = [whole, Seen(whole.gaussian, np.array([4, 6]), (0, 1)), Seen(whole.gaussian, whole.bits, (1,))]
    parts = tuple(rows(seen, shape, 7, random) for seen in some)
    centre = np.concatenate([np.zeros(4), random.random(8)])
    scale = random.uniform(0.5, 2, shape.n_rows)
    return PseudoLikelihood(shape, centre, parts, LOSSES[loss], 2.0), parameters(shape, random), scale


@pytest.mark.parametrize("loss", ["none", "hinge", "squared"])
def test_the_matrix_where_rows_lack_discrete_views(loss: str, seed: int) -> None:
    cost, at, scale = lacking_discrete(seed, loss)
    curvature = Curvature(cost, at, scale)
    product = curvature.times(at.weights / scale[:, None])
    gradient = cost.value_and_gradient(at)[1].weights / cost.total_weight
    np.testing.assert_allclose(product / scale[:, None], gradient, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(curvature.matrix() @ at.weights, curvature.times(at.weights), rtol=1e-10, atol=1e-13)


def test_the_matrix_at_nothing_is_the_second_derivative_where_rows_lack_anything(seed: int) -> None:
    cost, _ = problem(seed, LOSSES["hinge"], missing=True)
    n = cost.layout.n_rows
    random = np.random.default_rng(seed)
    intercept = np.concatenate([np.zeros(4), random.normal(size=n - 4)])
    scale = random.uniform(0.5, 2, n)
    curvature = Curvature(cost, Parameters(np.zeros((n, 1)), intercept, np.zeros(4)), scale)
    for v in random.normal(size=(5, n)):
        at = Parameters(1e-5 * (scale * v)[:, None], intercept, np.zeros(4))
        gradient = scale * cost.value_and_gradient(at)[1].weights[:, 0] / cost.total_weight
        np.testing.assert_allclose(1e5 * gradient, curvature.times(v[:, None])[:, 0], rtol=1e-6, atol=1e-8)


def test_rows_that_lack_a_gaussian_view_have_no_matrix_elsewhere() -> None:
    cost, at = problem(0, missing=True)
    with pytest.raises(ValueError, match="lack a Gaussian view"):
        Curvature(cost, at, np.ones(cost.layout.n_rows))


def test_a_fit_of_rows_that_lack_bits_is_certified() -> None:
    X, _ = three_views()
    lacking = {**X, "bits": X["bits"].copy()}
    lacking["bits"][::4] = np.nan
    model = mj.Harmonium(6, views=VIEWS, l2=0.3).fit(lacking)
    assert model.certificate_.is_global and model.rank_ < 6
    few = mj.Harmonium(1, views=VIEWS, l2=0.3).fit(lacking)
    assert few.certificate_.binds and few.objective_ > model.objective_
    assert few.certify(lacking).bound <= model.objective_
    random = mj.Harmonium(6, views=VIEWS, l2=0.3, init="random", random_state=1).fit(lacking)
    assert random.objective_ == pytest.approx(model.objective_, rel=1e-7)


def test_of_many_variables_nothing_is_called_proved_without_what_it_is_up_to(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = three_views()
    model = mj.HarmoniumClassifier(6, views=VIEWS, l2=3.0, loss_weight=10.0).fit(X, y)
    exact = (model.certificate_, model.certify(X, y), model.search_.note)
    assert exact[0].is_global and "Lanczos" not in " ".join(map(str, exact)) and not exact[0].by_lanczos
    n = model.components_.shape[1] + len(model.label_components_)
    for most, large in ((n, False), (n - 1, True)):
        monkeypatch.setattr(certificate, "MOST_DENSE", most)
        model.fit(X, y)
        assert model.certificate_.is_global and model.certificate_.by_lanczos == large
        for text in (model.certificate_.sentence, model.certify(X, y).sentence, model.search_.note):
            assert ("unless Lanczos' method, from a random start, missed" in text) == large


# What y a certificate takes


def test_y_of_a_certificate_is_checked() -> None:
    X, y = three_views()
    names = np.array(["low", "middle", "high"])[y]
    for model, own, other in (
        (mj.HarmoniumClassifier(3, views=VIEWS, l2=2.0), y, names),
        (mj.HarmoniumClassifier(3, views=VIEWS, l2=2.0, loss="log"), names, y),
    ):
        model.fit(X, own)
        assert model.certify(X, own.tolist()).bound == model.certify(X, own).bound
        with pytest.raises(ValueError, match=r"y has the label .*, which the fit did not have; known are \["):
            model.certify(X, other)
        unknown = own.copy()
        unknown[3] = 9 if own is y else "huge"
        with pytest.raises(ValueError, match=r"y has the label (9|'huge')"):
            model.certify(X, unknown)
        assert np.isfinite(model.certify(X, unknown, sample_weight=np.arange(150) != 3).bound)
        for wrong, message in ((own[:9], "inconsistent numbers"), (None, "requires y"), ([None, *own[1:]], "no label")):
            with pytest.raises(ValueError, match=message):
                model.certify(X, wrong)
    model = mj.HarmoniumRegressor(3, views=VIEWS, l2=2.0).fit(X, y)
    huge = np.where(np.arange(150) == 3, 1e200, y)
    for wrong, message in (
        (y[:9], "inconsistent numbers"),
        (None, "requires y"),
        (names, "y must hold numbers; got '(low|middle|high)'"),
        (np.where(np.arange(150) == 3, np.nan, y), "y contains NaN"),
        (huge, "too large to be squared"),
    ):
        with pytest.raises(ValueError, match=message):
            model.certify(X, wrong)
    assert np.isfinite(model.certify(X, huge, sample_weight=np.arange(150) != 3).bound)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array(["a", "b"] * 75), "y must hold numbers; got 'a'. For labels take HarmoniumClassifier"),
        (np.array([1.0, "b"] * 75, dtype=object), "y must hold numbers; got 'b'"),
        (np.array([None, "b"] * 75, dtype=object), "y must hold numbers; got 'b'"),
        (np.array([1.0, None] * 75, dtype=object), "y contains NaN"),
        (np.full(150, np.inf), "y contains infinity"),
    ],
    ids=str,
)
def test_a_rating_that_is_no_number(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mj.HarmoniumRegressor(2, views=VIEWS).fit(three_views()[0], y)
