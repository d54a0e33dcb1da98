"""KMeans as a user meets it: parameters, predictions, names of columns, messages."""

from __future__ import annotations

import logging
import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import majorant as mj

from .test_kmeans import blobs

# Parameters


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("n_clusters", 0, ValueError),
        ("n_clusters", -3, ValueError),
        ("n_clusters", 2.0, TypeError),
        ("n_clusters", "three", TypeError),
        ("n_clusters", None, TypeError),
        ("n_clusters", True, TypeError),
        ("max_iter", 0, ValueError),
        ("verbose", "x", TypeError),
        ("verbose", -1, ValueError),
        ("max_iter", 1.5, TypeError),
        ("max_iter", np.inf, TypeError),
        ("tol", -1e-9, ValueError),
        ("tol", np.nan, ValueError),
        ("tol", "small", TypeError),
        ("tol", None, TypeError),
        ("n_init", 0, ValueError),
        ("n_init", "automatic", TypeError),
        ("n_init", 1.0, TypeError),
        ("n_init", None, TypeError),
        ("init", "kmeans++", ValueError),
        ("init", "", ValueError),
        ("algorithm", "full", ValueError),
        ("algorithm", None, ValueError),
        ("bounds", "tightest", TypeError),
        ("bounds", mj.Tightest, TypeError),
        ("bounds", 0.5, TypeError),
        ("n_jobs", 0, ValueError),
        ("n_jobs", "all", TypeError),
        ("n_jobs", 1.5, TypeError),
    ],
)
def test_wrong_parameters_are_named_and_shown(name: str, value: Any, error: type[Exception]) -> None:
    model = mj.KMeans(**{"n_clusters": 2, name: value})
    with pytest.raises(error, match=rf"{name}\b") as caught:
        model.fit(blobs(0))
    assert repr(value) in str(caught.value) or str(value) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_clusters", np.int64(3)),
        ("tol", 0),
        ("tol", np.float32(0.1)),
        ("n_init", np.int8(2)),
        ("n_init", np.str_("auto")),
        ("init", np.str_("random")),
        ("n_jobs", -1),
        ("n_jobs", None),
        ("copy_x", False),
        ("random_state", np.random.RandomState(0)),
        ("verbose", False),
    ],
)
def test_usual_forms_of_parameters_are_taken(name: str, value: Any) -> None:
    model = mj.KMeans(**{"n_clusters": 3, name: value}).fit(blobs(0))
    assert model.cluster_centers_.shape == (model.n_clusters, 3) and np.isfinite(model.inertia_)


@pytest.mark.parametrize(
    ("init", "error"),
    [
        (None, ValueError),
        (3, ValueError),
        ([1.0, 2.0], ValueError),
        ([["a", "b"], ["c", "d"]], ValueError),
        ([[1.0, 2.0], [3.0]], ValueError),
        ([[1.0, 2.0], [np.nan, 1.0]], ValueError),
        (lambda X, k, random_state: None, ValueError),
        (sparse.csr_matrix(np.eye(2)), TypeError),
    ],
)
def test_what_is_no_array_of_centres_is_refused(init: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"init must be finite centres, shape \(n_clusters, n_features\): "):
        mj.KMeans(2, init=init).fit(blobs(0)[:, :2])


@pytest.mark.parametrize("bounds", [None, mj.GibbsLimit()], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("far", [1e3, 1e6, 1e8, 1e10, 1e14])
def test_centres_far_from_the_rows_may_start(far: float, dtype: Any, bounds: Any, seed: int) -> None:
    """In other units than the rows, say: the fit goes on from wherever its first step leads."""
    X = blobs(seed)[::5].astype(dtype)
    for init in (X[:3] * far, X[:3] + far):
        model = mj.KMeans(3, init=init, bounds=bounds, random_state=seed).fit(X)
        expected = cdist(X, model.cluster_centers_, "sqeuclidean").min(axis=1).sum()
        assert model.inertia_ == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("far", "dtype"), [(1e200, np.float64), (1e30, np.float32), (1e60, np.float32)])
def test_centres_too_far_to_be_squared_are_refused(far: float, dtype: Any) -> None:
    X = blobs(0).astype(dtype)
    with pytest.raises(ValueError, match=r"init is up to .* from X, too far to be squared: give centres in the units"):
        mj.KMeans(3, init=X[:3].astype(np.float64) * far).fit(X)


def test_a_misspelt_choice_is_corrected() -> None:
    with pytest.raises(ValueError, match=re.escape("Did you mean 'k-means++'?")):
        mj.KMeans(init="kmeans++").fit(blobs(0))


def test_parameters_are_kept_as_given_and_data_not_overwritten(seed: int) -> None:
    X = blobs(seed)
    kept = X.copy()
    model = mj.KMeans(4, copy_x=False, random_state=seed)
    given = model.get_params()
    model.fit(X)
    assert model.get_params() == given
    np.testing.assert_array_equal(X, kept)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (mj.Biased(mj.PairConstraints(must_link=[[0, 5000]])), "row 5000.*300 rows"),
        (mj.Biased(mj.PairConstraints(cannot_link=[[0, 1]])), "rows 0 and 1 are equal"),
    ],
    ids=["no such row", "equal rows"],
)
def test_policies_that_name_wrong_rows_are_refused(policy: Any, message: str, seed: int) -> None:
    X = blobs(seed)
    X[1] = X[0]
    with pytest.raises(ValueError, match=message):
        mj.KMeans(2, bounds=policy, random_state=seed).fit(X)


# Predictions


@pytest.mark.parametrize("unit", [1e-42, 1e-40, 1e-30, 1e30, 1e36])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_units_of_float32_cannot_matter(unit: float, form: Any, seed: int) -> None:
    X = blobs(seed)
    found = mj.KMeans(3, random_state=0).fit(form((unit * X).astype(np.float32)))
    np.testing.assert_array_equal(found.labels_, mj.KMeans(3, random_state=0).fit(X).labels_)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_rows_answer_does_not_depend_on_the_others(dtype: type[Any], seed: int) -> None:
    model = mj.KMeans(7, random_state=seed, n_init=1).fit(blobs(seed).astype(dtype))
    X = blobs(seed + 1, n=9000).astype(dtype)
    whole, distances = model.predict(X), model.transform(X)
    order = np.random.default_rng(seed).permutation(len(X))
    np.testing.assert_array_equal(model.predict(X[order]), whole[order])
    np.testing.assert_array_equal(model.transform(X[order]), distances[order])
    for rows in (slice(0, 1), slice(17, 18), slice(100, 107), slice(8990, None)):
        np.testing.assert_array_equal(model.predict(X[rows]), whole[rows])
        np.testing.assert_array_equal(model.transform(X[rows]), distances[rows])
    for n_jobs in (2, 3):
        np.testing.assert_array_equal(model.set_params(n_jobs=n_jobs).predict(X), whole)


@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_transform_is_the_distance_to_each_centre(offset: float, seed: int) -> None:
    X = blobs(seed) + offset
    model = mj.KMeans(4, random_state=seed).fit(X)
    np.testing.assert_allclose(
        model.transform(X), cdist(X, model.cluster_centers_), rtol=1e-7, atol=1e-9 * (1 + offset)
    )
    np.testing.assert_array_equal(model.transform(X).argmin(axis=1), model.predict(X))
    np.testing.assert_array_equal(mj.KMeans(4, random_state=seed).fit_transform(X), model.transform(X))
    assert model.transform(X.astype(np.float32)).dtype == np.float64
    assert mj.KMeans(4, random_state=seed).fit_transform(X.astype(np.float32)).dtype == np.float32


def test_far_rows_are_predicted(seed: int) -> None:
    model = mj.KMeans(3, random_state=seed).fit(blobs(seed))
    far = np.array([[1e200, 0, 0], [-1e300, 1e300, 0], [1e155, -1e155, 1e100]])
    nearest = (far / np.abs(far).max(axis=1, keepdims=True) @ model.cluster_centers_.T).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(far), nearest)
    with pytest.raises(ValueError, match="too far"):
        model.transform(far)


def test_score_is_the_negative_sum_of_squares(seed: int) -> None:
    X, new = blobs(seed), blobs(seed + 1)
    weights = np.random.default_rng(seed).uniform(0, 2, 300)
    model = mj.KMeans(4, random_state=seed).fit(X)
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-10)
    nearest = cdist(new, model.cluster_centers_).min(axis=1) ** 2
    assert model.score(new) == pytest.approx(-nearest.sum(), rel=1e-10)
    assert model.score(new, sample_weight=weights) == pytest.approx(-weights @ nearest, rel=1e-10)
    assert model.score(new, None, weights) == model.score(new, sample_weight=weights)


def test_fit_predict_is_fit_and_labels(seed: int) -> None:
    X, weights = blobs(seed), np.random.default_rng(seed).uniform(0, 2, 300)
    model = mj.KMeans(4, random_state=seed)
    np.testing.assert_array_equal(model.fit_predict(X, sample_weight=weights), model.labels_)
    fitted = mj.KMeans(4, random_state=seed).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(model.labels_, fitted.labels_)


# Frames


def test_frames_in_and_out(seed: int) -> None:
    names = ["height", "width", "age"]
    frame = pd.DataFrame(blobs(seed), columns=names, index=pd.Index(range(5, 305), name="id"))
    model = mj.KMeans(2, random_state=seed).fit(frame)
    assert list(model.feature_names_in_) == names
    assert list(model.get_feature_names_out()) == ["kmeans0", "kmeans1"]
    out = model.set_output(transform="pandas").transform(frame)
    assert list(out.columns) == ["kmeans0", "kmeans1"]
    pd.testing.assert_index_equal(out.index, frame.index)
    out = model.set_output(transform="polars").transform(frame)
    assert isinstance(out, pl.DataFrame) and out.columns == ["kmeans0", "kmeans1"]
    np.testing.assert_array_equal(model.predict(pl.DataFrame(blobs(seed), schema=names)), model.labels_)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["width", "height", "age"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(blobs(seed))


def test_as_a_step_of_a_pipeline(seed: int) -> None:
    X = blobs(seed)
    steps = make_pipeline(StandardScaler(), mj.KMeans(3, random_state=seed)).fit(X)
    alone = mj.KMeans(3, random_state=seed).fit(StandardScaler().fit_transform(X))
    np.testing.assert_array_equal(steps.predict(X), alone.labels_)


# Messages


@pytest.mark.parametrize("unit", [1.0, 2.0**300], ids=["plain units", "huge units"])
def test_verbose_tells_each_start_on_stderr(unit: float, capfd: pytest.CaptureFixture[str], seed: int) -> None:
    model = mj.KMeans(4, n_init=3, algorithm="lloyd", verbose=1, random_state=seed).fit(blobs(seed) * unit)
    out, err = capfd.readouterr()
    assert out == ""
    told = re.findall(r"^start (\d+), (.+): objective (\S+)$", err, flags=re.MULTILINE)
    assert [(int(number), source) for number, source, _ in told] == [(i, "k-means++") for i in (1, 2, 3)]
    assert [float(value) for *_, value in told] == pytest.approx([s.objective for s in model.search_.starts], rel=1e-9)


def test_silence_by_default(capfd: pytest.CaptureFixture[str], seed: int) -> None:
    model = mj.KMeans(4, random_state=seed).fit(blobs(seed))
    model.predict(blobs(seed))
    repr(model.search_), repr(model.trace_)
    assert capfd.readouterr() == ("", "")


def test_starts_are_logged(caplog: pytest.LogCaptureFixture, seed: int) -> None:
    with caplog.at_level(logging.DEBUG, logger="majorant"):
        mj.KMeans(4, n_init=2, algorithm="lloyd", random_state=seed).fit(blobs(seed))
    assert [(r.name, r.levelname) for r in caplog.records] == [("majorant", "DEBUG")] * 2
    assert "k-means++" in caplog.text and "tolerance reached" in caplog.text


def test_a_fit_that_was_cut_short_says_so(seed: int) -> None:
    model = mj.KMeans(8, max_iter=1, n_init=2, algorithm="lloyd", random_state=seed).fit(blobs(seed, n=2000))
    assert [s.converged for s in model.search_.starts] == [False, False]
    assert model.n_iter_ == 1
    assert all(s.converged for s in mj.KMeans(8, n_init=2, random_state=seed).fit(blobs(seed)).search_.starts)
    lloyd = mj.KMeans(8, n_init=2, algorithm="lloyd", random_state=seed).fit(blobs(seed))
    assert all(s.converged for s in lloyd.search_.starts)


@pytest.mark.parametrize("model", [mj.KMeans(2), mj.GaussianMixture(2)], ids=repr)
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_a_column_of_text_is_named(model: Any, library: Any) -> None:
    frame = library({"size": [1.0, 2.0, 3.0], "code": ["1", "2", "3"], "name": ["4", "barolo", "5"]})
    with pytest.raises(ValueError, match=r"^X must hold numbers; column 'name' holds text such as 'barolo': leave"):
        model.fit(frame)


@pytest.mark.parametrize(
    "model", [mj.KMeans(2), mj.KMedoids(2), mj.RegressionMixture(1), mj.LatentPrototypeClassifier()], ids=repr
)
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_the_first_missing_cell_is_named(model: Any, library: Any) -> None:
    frame = library({"size": [1.0, 2.0, 3.0, 5.0], "age": [1.0, 2.0, None, None]})
    told = rf"^Input X contains NaN\. {type(model).__name__} takes no missing values: .*in row 2, column 'age'$"
    with pytest.raises(ValueError, match=told):
        model.fit(frame, [0, 1, 0, 1])
    for rows in (frame.to_numpy(), [[1.0, 1.0], [2.0, 2.0], [3.0, None], [5.0, None]]):
        with pytest.raises(ValueError, match=r"in row 2, column 1$"):
            model.fit(rows, [0, 1, 0, 1])


def test_missing_values_are_sent_to_the_mixture_that_takes_them() -> None:
    rows = np.array([[0.0, 1.0], [np.nan, 2.0], [3.0, 4.0]])
    with pytest.raises(ValueError, match=r"^Input X contains NaN\. KMeans takes no .* fit mj\.GaussianMixture"):
        mj.KMeans(2).fit(rows)
    with pytest.raises(ValueError, match=r"fit mj\.GaussianMixture"):
        mj.KMeans(2).fit(rows[[0, 2]]).predict(rows)
