"""The path of penalties: fits that begin at the one before stay proper."""

from __future__ import annotations

import numpy as np
import pytest

import majorant as mj
from majorant.models.harmonium import search
from majorant.models.harmonium.layout import Parameters, properness, renewed
from majorant.models.harmonium.search import Search


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
        fresh = kind(7, views=views, l2=model.l2_, **given).fit(X, y)
        assert model.certificate_.is_global and 1 < model.rank_ == fresh.rank_ <= n_components
        assert model.objective_ == pytest.approx(fresh.objective_, rel=1e-8)
        assert model.search_.best == pytest.approx(model.objective_, rel=1e-6)
        assert (np.diff(model.trace_["objective"]) <= 1e-9 * abs(model.objective_)).all()


def lacking(seed: int, complete: int) -> dict[str, np.ndarray]:
    """Two views of 300 rows, of which so many have both, and the others one."""
    g = np.random.default_rng(seed)
    h = g.normal(size=(300, 2))
    numbers = h @ g.normal(size=(2, 6)) + g.normal(size=(300, 6))
    bits = (h @ g.normal(size=(2, 6)) + 0.5 * g.normal(size=(300, 6)) > 0).astype(float)
    numbers[complete:150] = np.nan
    bits[150:] = np.nan
    return {"a": numbers, "b": bits}


VIEWS = {"a": mj.Gaussian(), "b": mj.Bernoulli()}


@pytest.mark.filterwarnings("ignore:No row has views of two")  # where none is complete
@pytest.mark.parametrize("complete", [0, 1, 2, 8, 20, 150])
def test_few_rows_with_all_views_do_not_end_in_no_component(complete: int, seed: int) -> None:
    model = mj.Harmonium(4, views=VIEWS).fit(lacking(seed, complete))
    assert model.rank_ >= 1


@pytest.mark.filterwarnings("ignore:No row has views of two")  # where none is complete
@pytest.mark.parametrize("complete", [0, 1, 20])
def test_the_largest_penalty_is_the_least_that_leaves_nothing_where_rows_lack_views(complete: int, seed: int) -> None:
    X = lacking(seed, complete)
    edge = mj.Harmonium(3, views=VIEWS, l2=1.0).fit(X).largest_l2_
    assert mj.Harmonium(3, views=VIEWS, l2=1.02 * edge).fit(X).rank_ == 0
    assert mj.Harmonium(3, views=VIEWS, l2=0.95 * edge).fit(X).rank_ >= 1


def test_penalties_that_leave_nothing_do_not_end_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the rows that are not held out have a smaller largest penalty than all of them."""
    g = np.random.default_rng(0)
    h = g.normal(size=(300, 2))
    numbers, bits = (h @ g.normal(size=(2, 6)) + 4 * g.normal(size=(300, 6)) for _ in range(2))
    X = {"a": numbers, "b": bits > 0}
    expected = mj.Harmonium(4, views=VIEWS).fit(X)
    largest = search.Search.largest_penalty
    monkeypatch.setattr(search.Search, "largest_penalty", lambda search: 16 * largest(search))
    found = mj.Harmonium(4, views=VIEWS).fit(X)
    assert found.l2_ == expected.l2_ and len(found.l2_path_) == len(expected.l2_path_) + 4
    assert found.rank_ == expected.rank_ > 0


def test_the_largest_penalty_of_chains_and_rows_that_lack_views(seed: int) -> None:
    g = np.random.default_rng(seed)
    h = g.normal(size=(120, 1))
    words = (h[:, None] + 1.5 * g.normal(size=(120, 2, 3)) > 0).astype(float)
    sizes = h + 0.7 * g.normal(size=(120, 3))
    words[:40], sizes[80:] = np.nan, np.nan
    X, views = {"words": words, "sizes": sizes}, {"words": mj.Chain(), "sizes": mj.Gaussian()}
    edge = mj.Harmonium(2, views=views, l2=1.0).fit(X).largest_l2_
    assert mj.Harmonium(2, views=views, l2=1.05 * edge).fit(X).rank_ == 0
    assert mj.Harmonium(2, views=views, l2=0.9 * edge).fit(X).rank_ >= 1
    sizes[80:] = h[80:]
    model = mj.Harmonium(5, views=views, l2=0.3 * edge).fit(X)
    assert model.certificate_.is_global and model.certify(X).difference < 0.05


def regression(n: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    g = np.random.default_rng(0)
    h = g.normal(size=(n, 2))
    numbers = h @ g.normal(size=(2, 5)) + g.normal(size=(n, 5))
    return {"a": numbers, "b": (h[:, :1] + g.normal(size=(n, 4)) > 0).astype(float)}, h[:, 0] + g.normal(size=n)


def test_losses_of_folds_are_averaged_and_each_row_is_held_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = regression(100)
    model = mj.HarmoniumRegressor(3, views=VIEWS, n_folds=5).fit(X, y)
    folds, alone = Search.folds, []
    for i in range(5):
        kept = []

        def one(search: Search, i: int = i, kept: list[tuple[float, float]] = kept) -> object:
            found = folds(search)
            kept += [(training.total_weight, testing.total_weight) for training, testing in found]
            return found[i : i + 1]

        monkeypatch.setattr(Search, "folds", one)
        alone.append(mj.HarmoniumRegressor(3, views=VIEWS, n_folds=5).fit(X, y).l2_path_)
        assert kept == [(80.0, 20.0)] * 5
    n = min(len(path) for path in [*alone, model.l2_path_])
    assert n > 3
    np.testing.assert_allclose(np.mean([path[:n] for path in alone], axis=0), model.l2_path_[:n], rtol=1e-9)
