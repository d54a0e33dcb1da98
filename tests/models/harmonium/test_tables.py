"""What views are read from, in every form that a user may have them in, and what is refused in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import majorant as mj

RANDOM = np.random.default_rng(0)
HIDDEN = RANDOM.normal(size=(60, 2))
SIZES = np.round(10 * (HIDDEN @ RANDOM.normal(size=(2, 3)) + 0.5 * RANDOM.normal(size=(60, 3))))
BITS = (HIDDEN @ RANDOM.normal(size=(2, 4)) > 0).astype(float)
TABLE = np.hstack([SIZES, BITS])
FRAME = pd.DataFrame(TABLE, columns=list("abcdefg"))
VIEWS = {"sizes": mj.Gaussian([0, 1, 2]), "bits": mj.Bernoulli([3, 4, 5, 6])}
TEXTS = np.array(["x", "y", "z"], dtype=object)[np.arange(60) % 3]


def fit(X: Any, views: Any = VIEWS, **options: Any) -> mj.Harmonium:
    return mj.Harmonium(3, views=views, l2=0.2, **options).fit(X)


FORMS = {
    "int": TABLE.astype(int),
    "int8": TABLE.astype(np.int8),
    "float16": TABLE.astype(np.float16),
    "float32": TABLE.astype(np.float32),
    "objects": TABLE.astype(object),
    "texts of numbers": TABLE.astype(str),
    "Fortran order": np.asfortranarray(TABLE),
    "whole numbers and bits": FRAME.astype(dict.fromkeys("abc", int) | dict.fromkeys("defg", bool)),
    "nullable": FRAME.astype(dict.fromkeys("abcdefg", "Int64")),
    "a column of text in no view": FRAME.assign(name=TEXTS),
    "objects with text in no view": np.hstack([TABLE.astype(object), TEXTS[:, None]]),
    "polars": pl.DataFrame({c: FRAME[c].tolist() for c in "abcdefg"} | {"name": TEXTS.tolist()}),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_is_one_fit(form: str) -> None:
    model = fit(FORMS[form])
    assert model.objective_ == fit(TABLE).objective_
    np.testing.assert_array_equal(model.transform(FORMS[form]), fit(TABLE).transform(TABLE))


def test_bits_are_numbers_of_a_gaussian_view() -> None:
    views = {"sizes": mj.Gaussian([3, 4, 5, 6])}
    assert fit(TABLE > 0, views).objective_ == fit((TABLE > 0).astype(float), views).objective_


def test_missing_rows_of_a_nullable_view() -> None:
    lacking, nullable = FRAME.copy(), FRAME.assign(name=TEXTS).astype(dict.fromkeys("abcdefg", "Int64"))
    lacking.loc[:4, list("defg")] = np.nan
    nullable.loc[:4, list("defg")] = pd.NA
    assert fit(nullable).objective_ == fit(lacking).objective_


def test_weights_that_round_a_frequency_to_one() -> None:
    for bits in (mj.Bernoulli([3, 4, 5, 6]), mj.Categorical([3, 4, 5, 6])):
        weights = np.where(BITS[:, 0] > 0, 1e100, 1e-100)
        model = mj.Harmonium(3, views={"sizes": mj.Gaussian([0, 1, 2]), "bits": bits}, l2=0.2)
        model.fit(TABLE, sample_weight=weights)
        assert np.isfinite(model.objective_) and np.isfinite(model.transform(TABLE)).all()


def test_a_view_that_all_rows_lack_is_none_to_a_score() -> None:
    X = {"sizes": SIZES, "bits": BITS}
    model = fit(X, {"sizes": mj.Gaussian(), "bits": mj.Bernoulli()})
    lacking = {"sizes": SIZES, "bits": np.full_like(BITS, np.nan)}
    assert model.score(lacking) == model.score({"sizes": SIZES})
    with pytest.raises(ValueError, match="lacks every view in all of its rows"):
        model.score({"sizes": np.full_like(SIZES, np.nan)})
    with pytest.raises(ValueError, match="view 'bits' is missing"):
        fit(lacking, model.views)


def test_columns_of_a_view_in_another_order_are_refused() -> None:
    views = {"sizes": mj.Gaussian(), "bits": mj.Bernoulli()}
    sizes = FRAME[["a", "b", "c"]]
    model = fit({"sizes": sizes, "bits": BITS}, views)
    with pytest.raises(ValueError, match=r"view 'sizes' of X has \['c', 'b', 'a'\], .* fitted to \['a', 'b', 'c'\]"):
        model.transform({"sizes": sizes[["c", "b", "a"]]})
    np.testing.assert_array_equal(model.transform({"sizes": sizes}), model.transform({"sizes": SIZES}))
    unnamed = fit({"sizes": SIZES, "bits": BITS}, views)
    np.testing.assert_array_equal(unnamed.transform({"sizes": sizes}), unnamed.transform({"sizes": SIZES}))


@pytest.mark.parametrize(
    ("X", "views", "message"),
    [
        (FRAME.assign(name=TEXTS), {"a": mj.Gaussian(["name"])}, "view 'a' must hold numbers: could not convert"),
        (FRAME.assign(name=TEXTS), {"a": mj.Gaussian(["aa"])}, "no column 'aa'. Did you mean"),
        (FRAME, {"a": mj.Gaussian(slice("a", "c"))}, "a slice of columns is one of numbers"),
        (TABLE, {"a": mj.Gaussian(slice(0, 3, 0))}, "a slice of columns is one of numbers"),
        (TABLE, {"a": mj.Gaussian(np.arange(7) < 3)}, "of a mask give np.flatnonzero"),
        ({"k": np.array([[1], [1, 2]] + [[1]] * 3 + [3], dtype=object)[:, None]}, {"k": "categorical"}, r"got \[1"),
    ],
)
def test_what_cannot_be_read(X: Any, views: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        fit(X, views)


@pytest.mark.parametrize("l2", [1e-300, 1e300, np.inf])
def test_penalties_out_of_range(l2: float) -> None:
    with pytest.raises(ValueError, match="l2 must be between"):
        mj.Harmonium(2, l2=l2).fit(SIZES)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array([None, "a"] * 30, dtype=object), "row 0 has no label"),
        (np.array([1, "a"] * 30, dtype=object), "names of one kind"),
        (pd.Series([1, None] * 30, dtype="Int64"), "row 1 has no label"),
    ],
)
def test_labels_that_are_none(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mj.HarmoniumClassifier(2).fit(SIZES, y)


def test_targets_too_large_to_be_squared() -> None:
    y = np.where(np.arange(60) % 2, 1e200, -1e200)
    with pytest.raises(ValueError, match=r"y holds 1e\+200, too large to be squared"):
        mj.HarmoniumRegressor(2).fit(SIZES, y)


@pytest.mark.parametrize("loss", ["hinge", "log"])
@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("far", [1e5, 1e100, 1e300])
def test_rows_far_from_all_others_have_scores(loss: str, n_labels: int, far: float) -> None:
    y = np.digitize(HIDDEN[:, 0], [-0.4, 0.4][: n_labels - 1])
    model = mj.HarmoniumClassifier(2, l2=0.1, loss=loss).fit(SIZES, y)
    assert np.isfinite(model.decision_function(far * SIZES)).all()
    if loss == "log":
        np.testing.assert_allclose(model.predict_proba(far * SIZES).sum(axis=1), 1.0)


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_a_row_that_shows_nothing_is_the_mean_row(loss: str) -> None:
    """A mean field over all bits at once would settle on one of two sides."""
    random = np.random.default_rng(0)
    h = random.normal(size=150)
    X = {
        "bits": (random.normal(size=(150, 6)) + 3 * h[:, None] > 0).astype(float),
        "numbers": random.normal(size=(150, 3)) + h[:, None],
    }
    y = h + random.normal(size=150) > 0.3
    nothing = {name: np.full((2, x.shape[1]), np.nan) for name, x in X.items()}
    views = {"bits": "bernoulli", "numbers": "gaussian"}
    model = mj.HarmoniumClassifier(2, views=views, loss=loss, l2=0.05, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.transform(nothing), 0, atol=1e-3)
    np.testing.assert_allclose(model.annotate({"numbers": nothing["numbers"]}, "bits"), [X["bits"].mean(axis=0)] * 2)
    if loss == "log":
        np.testing.assert_allclose(model.predict_proba(nothing), [[1 - y.mean(), y.mean()]] * 2, atol=1e-9)
