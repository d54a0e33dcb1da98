"""Covariances that the rows do not determine are named: of columns never seen together, or that follow from others."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import majorant as mj

N = 300
MODELS = [
    (mj.GaussianMixture, {"covariance_type": "full"}, "covariances"),
    (mj.GaussianMixture, {"covariance_type": "tied"}, "covariances"),
    (mj.HiddenMarkovModel, {"covariance_type": "full"}, "covariances"),
    (mj.HiddenMarkovModel, {"covariance_type": "tied"}, "covariances"),
    (mj.LatentClassAnalysis, {"correlated": "all", "variances": "own"}, "normal_covariances"),
    (mj.LatentClassAnalysis, {"correlated": "all", "variances": "shared"}, "normal_covariances"),
    (mj.LatentClassAnalysis, {"correlated": {"three": [0, 1, 2]}, "variances": "shared"}, "three_covariances"),
]


def rows() -> NDArray[np.float64]:
    """Two groups of rows; of columns 1 and 2 every row has one."""
    draws = np.random.default_rng(0)
    x = draws.normal(size=(N, 4))
    x[:, 1] += x[:, 0]
    x[: N // 2] += 4
    x[::2, 1] = np.nan
    x[1::2, 2] = np.nan
    return x


@pytest.mark.parametrize(("cls", "settings", "estimate"), MODELS)
def test_the_pair_is_named_and_has_no_error(cls: type[Any], settings: dict[str, Any], estimate: str) -> None:
    x = rows()
    with pytest.warns(ConvergenceWarning, match="No row has cells of both columns: x2 and x3"):
        model = cls(2, random_state=0, **settings).fit(x)
    assert model.never_together_ == [["x2", "x3"]]
    assert "No row has cells of both columns: x2 and x3" in " ".join(str(model.summary()).split())
    errors = model.standard_errors(x)
    lost = np.isnan(errors[estimate])
    assert lost[..., [1, 2], [2, 1]].all()
    assert lost.sum() == lost[..., [1, 2], [2, 1]].size
    assert np.isfinite(errors[estimate.replace("covariances", "means")]).all()
    low, high = model.confidence_intervals(x)[estimate]
    np.testing.assert_array_equal(np.isnan(low), lost)
    np.testing.assert_array_equal(np.isnan(high), lost)


@pytest.mark.parametrize("variances", ["own", "shared"])
def test_identification_is_not_of_full_rank(variances: str) -> None:
    with pytest.warns(ConvergenceWarning, match="x2 and x3"):
        model = mj.LatentClassAnalysis(2, correlated="all", variances=variances, random_state=0).fit(rows())
    found = model.identification()
    assert found.n_parameters - found.rank == (2 if variances == "own" else 1)
    assert found.never_together == ("x2 and x3",)
    assert "x2 and x3" in found.sentence
    robust = model.standard_errors(rows(), method="robust")["normal_covariances"]
    assert np.isnan(robust[:, [1, 2], [2, 1]]).all()


def test_the_likelihood_does_not_depend_on_that_covariance() -> None:
    with pytest.warns(ConvergenceWarning):
        model = mj.GaussianMixture(2, random_state=0).fit(rows())
    moved = model.covariances_.copy()
    moved[:, [1, 2], [2, 1]] += 0.1
    other = mj.GaussianMixture.from_parameters(model.weights_, model.means_, moved)
    np.testing.assert_allclose(other.score_samples(rows()), model.score_samples(rows()), rtol=1e-9)


@pytest.mark.parametrize(("cls", "settings", "estimate"), MODELS)
def test_some_rows_with_both_determine_it(cls: type[Any], settings: dict[str, Any], estimate: str) -> None:
    x = rows()
    x[::7, 1:3] = np.random.default_rng(1).normal(size=(len(x[::7]), 2))
    x[: N // 2 : 7, 1:3] += 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = cls(2, random_state=0, **settings).fit(x)
    assert model.never_together_ == []
    assert np.isfinite(model.standard_errors(x)[estimate]).all()


def test_variances_alone_need_no_pairs() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in (
            mj.GaussianMixture(2, covariance_type="diag", random_state=0),
            mj.HiddenMarkovModel(2, covariance_type="diag", random_state=0),
            mj.HiddenMarkovModel(2, emission=["gaussian"] * 4, random_state=0),
            mj.LatentClassAnalysis(2, random_state=0),
            mj.LatentClassAnalysis(2, correlated=[0, 1], random_state=0),
        ):
            assert model.fit(rows()).never_together_ == []


def test_rows_read_block_by_block_tell_it_too() -> None:
    source = mj.open_rows(lambda: iter(np.array_split(rows(), 3)))
    with pytest.warns(ConvergenceWarning, match="x2 and x3"):
        model = mj.GaussianMixture(2, random_state=0).fit(source)
    assert model.never_together_ == [["x2", "x3"]]


DEPENDENT = [
    (mj.HiddenMarkovModel, {"covariance_type": "full"}),
    (mj.HiddenMarkovModel, {"covariance_type": "tied"}),
    (mj.HiddenMarkovModel, {"covariance_type": "full", "emission": "student"}),
    (mj.LatentClassAnalysis, {"correlated": "all"}),
]


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(("cls", "settings"), DEPENDENT)
def test_columns_that_follow_from_others_are_named(cls: type[Any], settings: dict[str, Any], k: int) -> None:
    x = np.random.default_rng(0).normal(size=(N, 3))
    x[: N // 2] += 4
    x = np.column_stack([x, 1e3 * (x[:, 0] - 2 * x[:, 2]) + 7])
    named = "columns x1, x3, x4 are linear functions of each other"
    with pytest.warns(ConvergenceWarning, match=f"{named}.*leave out one of x1, x3, x4"):
        model = cls(k, random_state=0, **settings).fit(x)
    assert named in " ".join(str(model.summary()).split())
    assert not model.regular_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cls(k, random_state=0, **settings).fit(x[:, :3]).regular_


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(("cls", "settings"), DEPENDENT[:3])
def test_a_column_that_does_not_vary_is_named(cls: type[Any], settings: dict[str, Any], k: int) -> None:
    x = np.random.default_rng(0).normal(size=(N, 3))
    x[: N // 2] += 4
    x[:, 1] = 5
    with pytest.warns(ConvergenceWarning, match="column x2 does not vary, so that every covariance.*leave out x2"):
        model = cls(k, random_state=0, **settings).fit(x)
    assert "column x2 does not vary" in " ".join(str(model.summary()).split())
    assert not model.regular_ and model.constant_ == ["x2"] and model.dependent_ == []


@pytest.mark.parametrize(("cls", "settings"), DEPENDENT[:3])
def test_columns_that_do_not_vary_are_no_functions_of_each_other(cls: type[Any], settings: dict[str, Any]) -> None:
    x = np.random.default_rng(0).normal(size=(N, 2))
    x = np.column_stack([x, np.full((N, 2), 5.0)])
    with pytest.warns(ConvergenceWarning, match="columns x3, x4 do not vary, so that every.*leave out x3, x4"):
        cls(1, random_state=0, **settings).fit(x)
    said = "columns x1, x2, x5 are linear functions of each other and columns x3, x4 do not vary"
    with pytest.warns(ConvergenceWarning, match=f"{said}.*leave out x3, x4 and one of x1, x2, x5"):
        cls(1, random_state=0, **settings).fit(np.column_stack([x, x[:, 0] + x[:, 1]]))


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_only_rows_with_all_cells_show_that_columns_are_functions_of_each_other(covariance_type: Any) -> None:
    """The likeliest covariance of independent columns is singular where half of the cells are missing."""
    draws = np.random.default_rng(0)
    x = draws.normal(size=(60, 6))
    x[draws.random(x.shape) < 0.5] = np.nan
    model = mj.GaussianMixture(1, covariance_type=covariance_type)
    with pytest.warns(ConvergenceWarning, match="collapses.*more distinct rows are needed") as said:
        model.fit(x)
    assert len(said) == 1
    with pytest.warns(ConvergenceWarning, match="Columns 0, 1 are linear functions of each other"):
        model.fit(x[:, [0, 0]])
    near = draws.normal(size=(200, 1)) + np.column_stack([np.zeros(200), 1e-6 * draws.normal(size=200)])
    near[::9, 0] = np.nan
    with pytest.warns(ConvergenceWarning, match="Columns 0, 1 have, as far as rows with missing entries tell, no var"):
        model.fit(near)


def test_columns_of_a_switching_regression_without_an_effect_of_their_own_are_named() -> None:
    draws = np.random.default_rng(0)
    x = draws.normal(size=(N, 2))
    y = np.where(np.arange(N) < N // 2, x[:, 0], 3 - x[:, 0]) + 0.3 * draws.normal(size=N)
    table = np.column_stack([y, x, x.sum(axis=1), np.ones(N)])
    with pytest.warns(ConvergenceWarning, match="x4 is a linear function of those before it; x5 does not vary"):
        model = mj.HiddenMarkovModel(2, emission="regression", random_state=0).fit(table)
    assert np.isnan(model.standard_errors(table)["coef"][:, 2:]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone = mj.HiddenMarkovModel(2, emission="regression", random_state=0).fit(table[:, :3])
    np.testing.assert_array_equal(alone.predict(table[:, :3]), model.predict(table))


@pytest.mark.parametrize("of_largest", [True, False])
def test_the_component_that_collapses_has_the_number_of_its_estimates(of_largest: bool) -> None:
    """Two columns are equal in one of two groups; components are numbered by their size."""
    draws = np.random.default_rng(0)
    large, small = draws.normal(size=(30, 2)), 9 + draws.normal(size=(10, 2))
    alike = large if of_largest else small
    alike[:, 1] = alike[:, 0]
    x = np.vstack([small, large])
    for model in (
        mj.LatentClassAnalysis(2, items="normal", correlated="all", random_state=0),
        mj.HiddenMarkovModel(2, random_state=0),
    ):
        with pytest.warns(
            ConvergenceWarning, match=f"the covariance of (class|state) {1 if of_largest else 2} .of 2. col"
        ):
            model.fit(x)
        assert model.weights_[0] > model.weights_[1]
