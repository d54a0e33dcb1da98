"""k-means of batches: one iteration over all rows, whatever the batches."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import majorant as mj

Array = NDArray[np.float64]


def rows(seed: int, n: int = 400) -> Array:
    g = np.random.default_rng(seed)
    return np.asarray(5 + g.normal(size=(4, 3))[g.integers(0, 4, n)] * 3 + g.normal(size=(n, 3)))


def one_iteration(init: Array, X: Any, weights: Array | None = None, **settings: Any) -> mj.KMeans:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return mj.KMeans(len(init), init=init, n_init=1, max_iter=1, **settings).fit(X, sample_weight=weights)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("case", ["dense", "sparse", "single", "weights", "empty clusters"])
def test_batches_are_one_iteration_over_all_rows(case: str, metric: Any) -> None:
    X, g = rows(0), np.random.default_rng(1)
    weights = g.uniform(0, 3, len(X)) if case == "weights" else None
    if case == "empty clusters":
        init = np.vstack([X[:2], X[2] + 90, X[2] + 99, X[3]])
        if metric == "cosine":
            init[2:4] = [[-1, 1e-3, 0], [-1, 0, 1e-3]]
    else:
        init = X[:5].copy()
    given: Any = sparse.csr_matrix(X) if case == "sparse" else X.astype(np.float32) if case == "single" else X
    whole = one_iteration(init, given, weights, metric=metric)
    parts = np.split(g.permutation(len(X)), [1, 60, 300])
    model = mj.KMeans(5, init=init, metric=metric)
    for part in parts:
        assert model.partial_fit(given[part], sample_weight=None if weights is None else weights[part]) is model
    tolerance = 1e-5 if case == "single" else 1e-10
    np.testing.assert_allclose(model.cluster_centers_, whole.cluster_centers_, rtol=tolerance, atol=tolerance)
    assert model.cluster_centers_.dtype == whole.cluster_centers_.dtype
    np.testing.assert_array_equal(model.labels_, model.predict(given[parts[-1]]))
    objective = -model.score(given, sample_weight=weights)
    assert objective <= model.inertia_ * (1 + 1e-6)
    assert model.search_.note == "One iteration over the rows of all batches so far."


def test_passes_are_iterations() -> None:
    X = rows(2)
    model, centres = mj.KMeans(4, init=X[:4]), X[:4]
    for _ in range(5):
        for batch in np.split(X, 8):
            model.partial_fit(batch)
        centres = one_iteration(centres, X).cluster_centers_
        np.testing.assert_allclose(model.cluster_centers_, centres, rtol=1e-9)
        model.set_params(init=model.cluster_centers_)
    assert -model.score(X) == pytest.approx(mj.KMeans(4, init=X[:4], max_iter=5, tol=0).fit(X).inertia_, rel=0.01)


def test_a_converged_pass_counts_no_row_twice() -> None:
    """Centres given anew begin another pass even where they equal those of the last one."""
    X = rows(2)
    model, objectives = mj.KMeans(4, init=X[:4]), []
    for _ in range(60):
        for batch in np.split(X, 8):
            model.partial_fit(batch)
        objectives.append(model.inertia_)
        model.set_params(init=model.cluster_centers_)
    assert objectives[-1] == objectives[-10] == pytest.approx(-model.score(X), rel=1e-9)
    assert (np.diff(objectives) <= 1e-9 * objectives[0]).all()
    model.init[:] = X[:4]  # the same array with other centres
    model.partial_fit(X)
    np.testing.assert_allclose(model.cluster_centers_, one_iteration(X[:4], X).cluster_centers_, rtol=1e-9)


def test_without_centres_the_first_batch_is_searched() -> None:
    X = rows(3)
    model = mj.KMeans(4, random_state=0).partial_fit(X[:200])
    found = mj.KMeans(4, random_state=0).fit(X[:200])
    np.testing.assert_allclose(model.cluster_centers_, found.cluster_centers_, rtol=1e-9)
    model.partial_fit(X[200:])
    whole = one_iteration(found.cluster_centers_, X)
    np.testing.assert_allclose(model.cluster_centers_, whole.cluster_centers_, rtol=1e-9)
    again = clone(model).fit(X)
    np.testing.assert_array_equal(model.fit(X).cluster_centers_, again.cluster_centers_)
    model.partial_fit(X[:200])  # after a fit, a pass begins anew
    np.testing.assert_allclose(model.cluster_centers_, found.cluster_centers_, rtol=1e-9)


def copies(model: mj.KMeans, tmp_path: Path) -> dict[str, mj.KMeans]:
    model.save(tmp_path / "model.mj")
    joblib.dump(model, tmp_path / "model.joblib")
    return {
        "saved": mj.load(tmp_path / "model.mj"),
        "joblib": joblib.load(tmp_path / "model.joblib"),
        "pickle": pickle.loads(pickle.dumps(model)),
        "copy": copy.deepcopy(model),
    }


@pytest.mark.parametrize("init", ["given", "searched"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_a_copy_goes_on_with_the_pass(init: str, metric: Any, tmp_path: Path) -> None:
    X = rows(5)
    settings: dict[str, Any] = {"init": X[:4]} if init == "given" else {"random_state": 0}
    model = mj.KMeans(4, metric=metric, **settings).partial_fit(X[:150])
    found = copies(model, tmp_path)
    model.partial_fit(X[150:])
    for name, other in found.items():
        other.partial_fit(X[150:])
        np.testing.assert_array_equal(other.cluster_centers_, model.cluster_centers_, err_msg=name)
        assert other.inertia_ == model.inertia_


def test_a_copy_knows_that_a_converged_pass_has_ended(tmp_path: Path) -> None:
    X = rows(2)
    model = mj.KMeans(4, init=mj.KMeans(4, random_state=0, tol=0).fit(X).cluster_centers_)
    for _ in range(5):
        model.partial_fit(X)
        model.set_params(init=model.cluster_centers_)
    for name, other in copies(model, tmp_path).items():
        assert other.partial_fit(X).inertia_ == pytest.approx(-model.score(X), rel=1e-9), name


def test_settings_do_not_change_within_a_pass() -> None:
    X = rows(6)
    for start in ({"init": X[:4]}, {"random_state": 0}):
        model = mj.KMeans(4, **start).partial_fit(X)
        before = model.cluster_centers_
        for changed, told in (({"metric": "cosine"}, "'euclidean'"), ({"n_clusters": 5}, "4")):
            (name,) = changed
            kept = getattr(model, name)
            with pytest.raises(ValueError, match=f"{name} was {told} when this pass over batches began"):
                model.set_params(**changed).partial_fit(X)
            model.set_params(**{name: kept})
        assert model.cluster_centers_ is before
    model.set_params(metric="cosine", init=X[:5], n_clusters=5).partial_fit(X)
    assert model.cluster_centers_.shape == (5, 3)


def test_a_failed_batch_changes_nothing(tmp_path: Path) -> None:
    X = rows(4)
    model = mj.KMeans(4, init=X[:4]).partial_fit(X)
    before = model.cluster_centers_.copy()
    np.save(tmp_path / "rows.npy", X)
    cases: list[tuple[Any, str]] = [
        (X[:, :2], "features"),
        (np.full((3, 3), np.nan), "takes no missing values"),
        (mj.open_rows(tmp_path / "rows.npy"), "fit reads stored rows batch by batch itself"),
    ]
    for batch, message in cases:
        with pytest.raises((ValueError, TypeError), match=message):
            model.partial_fit(batch)
    np.testing.assert_array_equal(model.cluster_centers_, before)
    for settings in ({"bounds": mj.GibbsLimit()}, {"size_min": 3}, {"size_max": 300}):
        with pytest.raises(ValueError, match="leave them out"):
            mj.KMeans(4, init=X[:4], **settings).partial_fit(X)
    with pytest.raises(ValueError, match="does not match the number of clusters"):
        mj.KMeans(5, init=X[:4]).partial_fit(X)
    loaded_from = tmp_path / "model.mj"
    model.save(loaded_from)
    np.testing.assert_array_equal(mj.load(loaded_from).predict(X), model.predict(X))
