"""Tables whose rows have names: rows are paired by position, so names in another order or other names are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.utils.validation import has_fit_parameter

import majorant as mj
from majorant.registry import card_of

from .estimators import ESTIMATORS, NAMES, ROWS, N, assert_same_fit, fit, make, reference, target

FRAME = pd.DataFrame(ROWS, columns=NAMES, index=[f"row {i}" for i in range(N)])
OTHERS = {
    "another order": (FRAME.index[::-1], "in another order: row 0 is 'row 44' in"),
    "other names": (FRAME.index.str.upper(), "have other names than those of X: row 0 is 'ROW 0' in"),
    "a default index": (pd.RangeIndex(N), "have other names than those of X: row 0 is 0 in"),
}
other_names = pytest.mark.parametrize("other", OTHERS)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_rows_of_the_same_names_are_fitted_as_arrays_are(cls: type[Any]) -> None:
    y = target(cls, N)
    named = None if y is None else pd.Series(y, index=FRAME.index.copy())
    assert_same_fit(make(cls).fit(FRAME, named), reference(cls))


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_record_batches_of_arrow_keep_the_names_of_columns_and_text_in_them_is_named(cls: type[Any]) -> None:
    (batch,) = in_arrow(FRAME).to_batches()
    fitted = make(cls).fit(batch, target(cls, N))
    assert_same_fit(fitted, reference(cls))
    assert fitted.feature_names_in_.tolist() == NAMES
    if not card_of(fitted).takes_text:
        text = in_arrow(FRAME.assign(**{NAMES[1]: "warm"}))
        with pytest.raises(ValueError, match=f"column '{NAMES[1]}' holds text such as 'warm'"):
            make(cls).fit(text, target(cls, N))
        for rows, name in (
            (text.to_pandas().set_axis(range(10, 10 + len(NAMES)), axis=1), 11),
            (np.full(ROWS.shape, b"warm"), 0),
        ):
            with pytest.raises(ValueError, match=f"column {name} holds text such as b?'warm'"):
                make(cls).fit(rows, target(cls, N))


@other_names
@pytest.mark.parametrize("cls", [cls for cls in ESTIMATORS if has_fit_parameter(cls, "sample_weight")])
def test_weights_of_other_rows_are_refused(cls: type[Any], other: str) -> None:
    index, said = OTHERS[other]
    with pytest.raises(ValueError, match=f"the rows of sample_weight .*{said}.*to_numpy"):
        fit(cls, FRAME, sample_weight=pd.Series(np.ones(N), index=index))


@other_names
@pytest.mark.parametrize("cls", [cls for cls in ESTIMATORS if card_of(cls).needs_target])
def test_a_target_of_other_rows_is_refused(cls: type[Any], other: str) -> None:
    index, said = OTHERS[other]
    y = pd.Series(target(cls, N), index=index)
    for method in ("fit", "score"):
        with pytest.raises(ValueError, match=f"the rows of y .*{said}"):
            getattr(reference(cls) if method == "score" else make(cls), method)(FRAME, y)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_pages_and_pictures_ask_for_the_names_too(cls: type[Any]) -> None:
    y, other = target(cls, N), FRAME.index[::-1]
    fitted = reference(cls)
    with pytest.raises(ValueError, match="the rows of sample_weight are those of X in another order"):
        fitted.report(FRAME, y, sample_weight=pd.Series(np.ones(N), index=other))
    for shown in (fitted.report, fitted.plot):
        with pytest.raises(ValueError, match="the rows of y are those of X in another order"):
            shown(FRAME, pd.Series(np.arange(N) if y is None else y, index=other))


@pytest.mark.parametrize("name", ["groups", "gating", "offset", "trials", "component_labels"])
def test_what_comes_beside_rows_of_regressions_has_their_names(name: str) -> None:
    beside = pd.Series(np.ones(N), index=FRAME.index[::-1])
    y = pd.Series(np.arange(N) % 7.0, index=FRAME.index)
    with pytest.raises(ValueError, match=f"the rows of {name} are those of X in another order"):
        mj.RegressionMixture(2).fit(FRAME, y, **{name: beside})
    if name != "component_labels":
        fitted = reference(mj.RegressionMixture)
        for ask in (fitted.predict_proba, fitted.log_density, fitted.bic):
            with pytest.raises(ValueError, match=f"the rows of {name} are those of X in another order"):
                ask(FRAME, y, **{name: beside})


def test_weights_beside_a_formula_have_the_names_of_the_table() -> None:
    table = FRAME.assign(y=np.arange(N) % 7.0)
    weights = pd.Series(np.ones(N), index=table.index[::-1])
    with pytest.raises(ValueError, match="the rows of weights are those of data in another order"):
        mj.RegressionMixture.from_formula("y ~ a", table, n_components=2, weights=weights)


@pytest.mark.parametrize("cls", [mj.Harmonium, mj.HarmoniumRegressor, mj.HarmoniumClassifier])
def test_views_are_paired_by_position_and_must_have_the_same_row_names(cls: type[Any]) -> None:
    parts = {"first": FRAME[["a"]], "second": FRAME[["b", "c"]]}
    views = {name: mj.Gaussian() for name in parts}
    y = target(cls, N)
    fitted = cls(views=views, random_state=0).fit(parts, y)
    arrays = cls(views=views, random_state=0).fit({name: part.to_numpy() for name, part in parts.items()}, y)
    assert fitted.objective_ == arrays.objective_
    shuffled = {**parts, "second": parts["second"].sample(frac=1, random_state=0)}
    said = r"the rows of view 'second' are those of view 'first' in another order.*by \.loc"
    for ask in (cls(views=views).fit, fitted.transform, fitted.annotate, fitted.fit_transform):
        with pytest.raises(ValueError, match=said):
            ask(shuffled) if y is None or ask in (fitted.transform, fitted.annotate) else ask(shuffled, y)
    if hasattr(fitted, "predict_proba"):
        with pytest.raises(ValueError, match=said):
            fitted.predict_proba(shuffled)
    aligned = {**shuffled, "second": shuffled["second"].loc[parts["first"].index]}
    assert cls(views=views, random_state=0).fit(aligned, y).objective_ == fitted.objective_


def test_bags_have_the_names_of_the_rows_and_labels_those_of_the_bags() -> None:
    bags = pd.Series(np.repeat([f"bag {i}" for i in range(9, 0, -1)], 5), index=FRAME.index)
    of_bag = pd.Series(np.arange(9) % 2, index=bags.unique())
    fitted = mj.LatentSVC(random_state=0).fit(FRAME, of_bag, bags=bags)
    of_row = of_bag.loc[bags].set_axis(bags.index)
    assert mj.LatentSVC(random_state=0).fit(FRAME, of_row, bags=bags).objective_ == fitted.objective_
    assert mj.LatentSVC(random_state=0).fit(FRAME, of_bag.to_list(), bags=bags).objective_ == fitted.objective_
    with pytest.raises(ValueError, match="the rows of bags are those of X in another order"):
        mj.LatentSVC().fit(FRAME, of_bag, bags=bags[::-1])
    for ask in (mj.LatentSVC().fit, fitted.score):
        with pytest.raises(ValueError, match=r"y are not named as the bags.*entry 0 is of bag 1, bag 0 is bag 9"):
            ask(FRAME, of_bag.sort_index(), bags=bags)
    with pytest.raises(ValueError, match="sample_weight are not named as the bags are"):
        mj.LatentSVC().fit(FRAME, of_bag, bags=bags, sample_weight=pd.Series(1.0, index=of_bag.index[::-1]))


def sequence_names(kind: str) -> Any:
    """Fifteen names in another order than the sorted one."""
    numbers = (7 * np.arange(15)) % 15 + 1
    return {
        "numbers": numbers,
        "texts": np.array([f"person {i:02d}" for i in numbers]),
        "days": np.datetime64("2024-01-01") + numbers,
    }[kind]


@pytest.mark.parametrize("kind", ["numbers", "texts", "days"])
def test_weights_of_sequences_have_the_names_of_the_sequences(kind: str) -> None:
    people = sequence_names(kind)
    groups = pd.Series(np.repeat(people, 3), index=FRAME.index)
    weights = pd.Series(np.arange(15) + 1.0, index=people)
    model = mj.HiddenMarkovModel(1).fit(FRAME, groups=groups)
    for ask in (model.fit, model.log_likelihood):
        with pytest.raises(ValueError, match="sequence_weight are not named as the sequences are, in sorted order"):
            ask(FRAME, groups=groups, sequence_weight=weights)
    means = np.average(FRAME.to_numpy(), axis=0, weights=weights.loc[groups].to_numpy())
    for given in (weights.sort_index(), weights.sort_index().to_numpy()):
        found = model.fit(FRAME, groups=groups, sequence_weight=given)
        np.testing.assert_allclose(found.means_[0], means, rtol=1e-8)


def test_given_classes_have_the_names_of_the_rows() -> None:
    init = pd.Series(np.arange(N) % 3, index=FRAME.index[::-1])
    with pytest.raises(ValueError, match="the rows of init are those of X in another order"):
        fit(mj.DiscriminativeLatentClasses, FRAME, size=3).set_params(init=init).fit(FRAME, np.arange(N) % 2)


def test_many_fits_check_the_names_of_rows_too() -> None:
    weights = pd.Series(np.ones(N), index=FRAME.index[::-1])
    model = mj.GaussianMixture(1, random_state=0)
    for ask in (mj.select, mj.stability, mj.likelihood_ratio_test):
        with pytest.raises(ValueError, match="the rows of sample_weight are those of X in another order"):
            ask(model, FRAME, sample_weight=weights)


@pytest.mark.parametrize("cls", [mj.GaussianMixture, mj.LatentClassAnalysis, mj.HiddenMarkovModel])
def test_what_rows_are_drawn_by_has_the_same_names(cls: type[Any]) -> None:
    covariates = pd.Series(np.random.default_rng(0).normal(size=N), index=FRAME.index)
    groups = pd.Series(np.repeat(np.arange(3), 15), index=FRAME.index)
    rows = FRAME > 50 if cls is mj.LatentClassAnalysis else FRAME
    model = cls(2, random_state=0).fit(rows, gating=covariates)
    with pytest.raises(ValueError, match="the rows of gating are those of groups in another order"):
        model.sample(groups=groups, gating=covariates[::-1])


def test_the_columns_of_distances_are_in_the_order_of_their_rows() -> None:
    """Whose medoids are found by position, otherwise, with the distances of other rows."""
    rows = ROWS @ [1.0, 2.0, 4.0]
    distances = pd.DataFrame(np.abs(rows[:, None] - rows), index=FRAME.index, columns=FRAME.index)
    model = mj.KMedoids(3, metric="precomputed", random_state=0)
    found = model.fit(distances).inertia_
    for same in (distances.to_numpy(), distances.rename(columns=dict(zip(FRAME.index, range(N), strict=True)))):
        assert model.fit(same).inertia_ == found
    with pytest.raises(ValueError, match="columns of X are its rows in another order: row 0 is 'row 0', column 0 "):
        model.fit(distances.iloc[:, ::-1])


def in_arrow(table: pd.DataFrame) -> Any:
    return pl.DataFrame(table.to_dict("list")).to_arrow()


def test_names_of_columns_in_arrow_are_those_of_what_is_not_x_too() -> None:
    draws = np.random.default_rng(0)
    first, second = (pd.DataFrame(draws.normal(size=(60, 3)), columns=list("abc")) for _ in range(2))
    first += second.to_numpy()
    views = {"one": mj.Gaussian(), "two": mj.Gaussian()}
    model = mj.Harmonium(1, l2=0.05, views=views).fit({"one": in_arrow(first), "two": in_arrow(second)})
    assert [view.names for view in model.views_] == [["a", "b", "c"], ["a", "b", "c"]]
    same = model.transform({"one": first, "two": second})
    np.testing.assert_array_equal(model.transform({"one": in_arrow(first), "two": second}), same)
    with pytest.raises(ValueError, match=r"view 'one' of X has \['c', 'b', 'a'\]"):
        model.transform({"one": in_arrow(first[["c", "b", "a"]]), "two": second})
    pieces = [first[:30], second[:30]]
    states = mj.HiddenMarkovModel(2, random_state=0).fit([in_arrow(piece) for piece in pieces])
    assert states.log_likelihood_ == mj.HiddenMarkovModel(2, random_state=0).fit(pieces).log_likelihood_
    batches = [in_arrow(piece).to_batches()[0] for piece in pieces]
    assert mj.HiddenMarkovModel(2, random_state=0).fit(batches).feature_names_in_.tolist() == ["a", "b", "c"]
    worded = first.assign(b="warm")
    for tables in ([in_arrow(first), in_arrow(worded)], [in_arrow(worded)], [in_arrow(worded).to_batches()[0]]):
        with pytest.raises(ValueError, match="column 'b' holds text such as 'warm'"):
            mj.HiddenMarkovModel(2, random_state=0).fit(tables)
    with pytest.raises(ValueError, match=r"table 0 has \['a', 'b', 'c'\], table 1 has \['c', 'b', 'a'\]"):
        states.predict([in_arrow(first), in_arrow(first[["c", "b", "a"]])])
    lines = mj.RegressionMixture(1).fit(first, second["a"], gating=second[["b", "c"]])
    with pytest.raises(ValueError, match="gating must have the columns of the fit in their order, b, c; got c, b"):
        lines.predict(first, gating=in_arrow(second[["c", "b"]]))
