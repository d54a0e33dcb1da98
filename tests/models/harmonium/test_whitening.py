"""Whitening: the inverse root of the shrunk covariance, thin where columns are many, and by default where rows are."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.covariance import ledoit_wolf

import majorant as mj
from majorant.solvers.covariance import fit_whitener

Array = NDArray[np.float64]


def standard(n: int, d: int) -> Array:
    """Rows with mean 0 and variance 1 that share two factors."""
    random = np.random.default_rng(n + d)
    z = random.normal(size=(n, 2)) @ random.normal(size=(2, d)) + random.normal(size=(n, d))
    return np.asarray((z - z.mean(axis=0)) / z.std(axis=0))


@pytest.mark.parametrize(("n", "d"), [(200, 6), (30, 31), (12, 80), (5, 5), (3, 2), (40, 1)])
def test_a_whitener_is_the_inverse_root_of_the_shrunk_covariance(n: int, d: int) -> None:
    z = standard(n, d)
    values, vectors = np.linalg.eigh(ledoit_wolf(z, assume_centered=True)[0])
    expected = z @ (vectors / np.sqrt(values)) @ vectors.T
    whitener = fit_whitener(z, np.full(n, 1 / n))
    np.testing.assert_allclose(whitener.whitened(z), expected, atol=1e-8)
    np.testing.assert_allclose(whitener.restored(whitener.whitened(z)), z, atol=1e-8)
    assert whitener.directions.shape == (d, min(n - 1, d) if n < d else d)


def two_views(n: int, rng: int = 0) -> dict[str, Array]:
    """Twelve and four columns, with a factor in common and one of the wider view's own."""
    random = np.random.default_rng(rng)
    shared, own = random.normal(size=(2, n, 1))
    wide = shared * random.normal(size=12) + 2 * own * random.normal(size=12) + random.normal(size=(n, 12))
    return {"wide": wide, "narrow": shared + random.normal(size=(n, 4))}


VIEWS = {"wide": mj.Gaussian(), "narrow": mj.Gaussian()}


@pytest.mark.parametrize(("n", "expected"), [(39, ["no", "no"]), (119, ["no", "yes"]), (120, ["yes", "yes"])])
def test_a_view_is_whitened_by_default_from_ten_rows_a_column_on(n: int, expected: list[str]) -> None:
    model = mj.Harmonium(2, views=VIEWS, l2=0.5).fit(two_views(n))
    assert ["no" if view.whitener is None else "yes" for view in model.views_] == expected
    summary = " ".join(str(model.summary()).split())
    for view, whitened in zip(VIEWS, expected, strict=True):
        assert (f"View {view!r} is not whitened: it has fewer than 10 distinct rows" in summary) == (whitened == "no")


def test_what_the_user_says_of_whitening_counts() -> None:
    views = {"wide": mj.Gaussian(whiten=True), "narrow": mj.Gaussian(whiten=False)}
    model = mj.Harmonium(2, views=views, l2=0.5).fit(two_views(30))
    assert [view.whitener is not None for view in model.views_] == [True, False]
    assert "not whitened" not in str(model.summary())


def test_weights_and_repeats_whiten_the_same_views() -> None:
    X = two_views(60)
    counts = np.random.default_rng(1).integers(1, 4, 60)
    again = {name: np.repeat(values, counts, axis=0) for name, values in X.items()}
    one = mj.Harmonium(2, views=VIEWS, l2=0.5).fit(X, sample_weight=counts)
    other = mj.Harmonium(2, views=VIEWS, l2=0.5).fit(again)
    assert [v.whitener is None for v in one.views_] == [v.whitener is None for v in other.views_] == [True, False]
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-12)


def test_few_rows_of_many_columns_keep_their_components_by_default() -> None:
    random = np.random.default_rng(0)
    h = random.normal(size=(40, 2))
    X = {name: h @ random.normal(size=(2, d)) + random.normal(size=(40, d)) for name, d in (("a", 120), ("b", 21))}
    views = {"a": mj.Gaussian(), "b": mj.Gaussian()}
    assert mj.Harmonium(5, views=views).fit(X).rank_ >= 2
