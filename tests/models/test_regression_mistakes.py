"""Mixtures of regressions given what people give by mistake: a right answer, or an error that says what to change."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score

import majorant as mj
from majorant.persistence import UnsavableError, load, save
from majorant.solvers.responses import Poisson, Student

Array = NDArray[Any]

GROUP = np.repeat(np.arange(12), 5)
TRIALS = np.tile([4.0, 6.0, 9.0], 20)


def rows(seed: int = 0) -> tuple[Array, dict[str, Array]]:
    """Two kinds of groups, with a target of each family."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(60, 2))
    eta = np.where(GROUP % 3 == 0, 1 + 0.5 * x[:, 0], -0.3 - 0.5 * x[:, 0])
    return x, {
        "gaussian": eta + 0.2 * random.normal(size=60),
        "poisson": random.poisson(np.exp(eta)).astype(float),
        "binomial": random.binomial(TRIALS.astype(int), 1 / (1 + np.exp(-eta))).astype(float),
        "gamma": random.gamma(5, np.exp(eta) / 5),
    }


X, Y = rows()


def fitted(family: str = "gaussian", **given: Any) -> mj.RegressionMixture:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return mj.RegressionMixture(2, family=family, random_state=0).fit(X, Y[family], **given)


TEXT = GROUP.astype(str)
DAYS = np.array(["2020-01-01"], dtype="M8[us]") + GROUP * np.timedelta64(1, "D")
NAMELESS: dict[str, Any] = {
    "None": [None, *GROUP[1:]],
    "NaN": np.where(GROUP == 0, np.nan, GROUP),
    "NA of numbers": pd.Series([pd.NA, *GROUP[1:]], dtype="Int64"),
    "NA of text": pd.Series([pd.NA, *TEXT[1:]], dtype="string"),
    "NA in a list": [pd.NA, *TEXT[1:]],
    "category": pd.Series(pd.Categorical([None, *TEXT[1:]])),
    "polars": pl.Series([None, *TEXT[1:].tolist()]),
    "date": np.where(GROUP == 0, np.datetime64("NaT", "us"), DAYS),
    "duration": np.where(GROUP == 0, np.timedelta64("NaT", "us"), DAYS - DAYS[0]),
}


@pytest.mark.parametrize("groups", NAMELESS.values(), ids=NAMELESS)
def test_a_row_of_no_group_is_named(groups: Any) -> None:
    with pytest.raises(ValueError, match="groups has no name for row 0"):
        fitted(groups=groups)


UNUSABLE: dict[str, tuple[Any, type[Exception], str]] = {
    "text and numbers": ([str(i) if i % 2 else i for i in GROUP.tolist()], TypeError, "mixes text and numbers"),
    "tuples": (pd.Series([(int(i), 1) for i in GROUP]), TypeError, "one name per row"),
    "dicts": ([{"a": i} for i in GROUP], TypeError, "cannot be sorted"),
    "rounded together": (
        [-1 if i == 0 else 2**63 + int(i) for i in GROUP],
        ValueError,
        "too large to be distinguished",
    ),
}


@pytest.mark.parametrize(("groups", "error", "match"), UNUSABLE.values(), ids=UNUSABLE)
def test_names_of_groups_that_cannot_be_used(groups: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        fitted(groups=groups)


USABLE: dict[str, Any] = {
    "text": TEXT,
    "floats": GROUP + 0.5,
    "large": [int(i) + 2**70 for i in GROUP],
    "category": pd.Categorical(TEXT),
    "dates": DAYS,
    "durations": DAYS - DAYS[0],
    "bytes": TEXT.astype("S"),
}


@pytest.mark.parametrize("groups", USABLE.values(), ids=USABLE)
def test_whatever_names_groups_the_fit_is_the_same(groups: Any) -> None:
    plain, other = fitted(groups=GROUP), fitted(groups=groups)
    assert np.array_equal(other.coef_, plain.coef_)
    assert np.array_equal(other.predict(X, groups=groups), plain.predict(X, groups=GROUP))


def test_seen_groups_are_known_by_what_they_are() -> None:
    model = fitted(groups=DAYS)
    assert np.array_equal(model.predict(X, groups=DAYS.astype("M8[ns]")), model.predict(X, groups=DAYS))
    with pytest.raises(TypeError, match="groups were dates when the model was fitted; got numbers"):
        model.predict(X, groups=GROUP)
    with pytest.raises(TypeError, match="groups were numbers when the model was fitted; got text"):
        fitted(groups=GROUP).predict(X, groups=TEXT)


IMPOSSIBLE: list[tuple[str, float, str]] = [
    ("poisson", -1.0, "counts"),
    ("poisson", 0.5, "counts"),
    ("binomial", 100.0, "successes"),
    ("gamma", 0.0, "positive"),
]


@pytest.mark.parametrize(("family", "value", "match"), IMPOSSIBLE)
def test_targets_that_cannot_be_are_refused_at_the_fit_and_after(family: str, value: float, match: str) -> None:
    given = {"trials": TRIALS} if family == "binomial" else {}
    model, y = fitted(family, **given), Y[family].copy()
    y[7] = value
    for method in (model.fit, model.predict_proba, model.classify, model.log_density, model.score, model.bic):
        with pytest.raises(ValueError, match=f"{match}.*row 7 of y is {value:g}"):
            method(X, y, **given)


def test_score_takes_what_predict_takes() -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("gaussian", {"groups": GROUP}),
        ("gamma", {"gating": X}),
        ("poisson", {"offset": X[:, 1]}),
        ("binomial", {"trials": TRIALS}),
    ]
    for family, given in cases:
        model = fitted(family, **given)
        expected = r2_score(Y[family], model.predict(X, **given))
        assert model.score(X, Y[family], **given) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match="trials="):
        fitted("binomial", trials=TRIALS).score(X, Y["binomial"])


def test_score_by_a_formula_takes_the_table() -> None:
    table = pd.DataFrame({"y": Y["binomial"], "n": TRIALS, "a": X[:, 0], "g": GROUP})
    model = mj.RegressionMixture.from_formula("cbind(y, n - y) ~ a | g", table, family="binomial", random_state=0)
    assert model.score(table) == pytest.approx(r2_score(table["y"], model.predict(table, trials=TRIALS)))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_gating_columns_keep_their_order(frame: Any, tmp_path: Path) -> None:
    table = frame({"a": X[:, 0], "b": X[:, 1]})
    save(fitted(gating=table), tmp_path / "model")
    for model in (fitted(gating=table), load(tmp_path / "model")):
        assert model.gating_names_in_.tolist() == ["a", "b"]
        assert np.array_equal(model.predict(X, gating=table), model.predict(X, gating=X))
        with pytest.raises(ValueError, match="gating must have the columns of the fit in their order, a, b; got b, a"):
            model.predict(X, gating=table[["b", "a"]])


@pytest.mark.parametrize("value", ["hours", X[:, 0] + 1j], ids=["text", "complex"])
def test_an_offset_that_is_no_number_is_named(value: Any) -> None:
    with pytest.raises(TypeError, match="offset must hold numbers"):
        fitted(offset=value)
    with pytest.raises(TypeError, match="gating must hold numbers"):
        fitted(gating=value)


def test_an_offset_is_no_name_of_a_column() -> None:
    with pytest.raises(
        TypeError, match="got 'days': names of columns go to fit_formula, here it is an array in memory"
    ):
        fitted(offset="days")


@pytest.mark.parametrize("y", [np.full(60, 2.0), np.exp(1 + X[:, 0])], ids=["constant", "line"])
def test_gamma_without_noise_has_no_regular_solution(y: Array) -> None:
    with pytest.warns(ConvergenceWarning, match="one line fits every row exactly"):
        model = mj.RegressionMixture(2, family="gamma", init="random", n_init=2, random_state=0).fit(X, y)
    assert not model.regular_
    assert np.allclose(model.predict(X), y, rtol=1e-6)


def test_warnings_point_at_the_line_of_the_user() -> None:
    table = pd.DataFrame({"y": np.ones(60), "a": X[:, 0]})
    calls = [
        lambda: mj.RegressionMixture(2).fit(X, np.ones(60)),
        lambda: mj.RegressionMixture(2).fit_formula("y ~ a", table),
        lambda: mj.RegressionMixture.from_formula("y ~ a", table),
    ]
    for call in calls:
        with pytest.warns(ConvergenceWarning) as found:
            call()
        assert [warning.filename for warning in found] == [__file__]
        assert {warning.lineno for warning in found} == {call.__code__.co_firstlineno}


STABLE: dict[str, tuple[str, dict[str, Any]]] = {
    "groups": ("gaussian", {"groups": TEXT}),
    "gating": ("gaussian", {"groups": GROUP, "gating": pd.DataFrame({"a": GROUP % 3 == 0}, dtype=float)}),
    "offset": ("poisson", {"groups": GROUP, "offset": X[:, 1]}),
    "trials": ("binomial", {"groups": GROUP, "trials": TRIALS}),
}


@pytest.mark.filterwarnings("ignore:Gating by a separates")  # few groups, and all of one level in one component
@pytest.mark.parametrize(("family", "given"), STABLE.values(), ids=STABLE)
def test_stability_knows_what_the_fit_was_given(family: str, given: dict[str, Any]) -> None:
    model = mj.RegressionMixture(2, family=family, random_state=0, min_component_size=1)
    found = mj.stability(model, X, Y[family], n_runs=1, random_state=0, **given)
    assert found.n_at_best == 1
    assert found.seeds.rand.tolist() == [1.0]
    same = found.resamples.rows if found.resamples is not None else np.zeros(0)
    assert same.shape == (60,)
    assert all(len(set(same[group].tolist())) == 1 for group in np.split(np.arange(60), 12))


def test_the_likelihood_ratio_test_takes_one_offset_for_all_rows() -> None:
    model = mj.RegressionMixture(1, random_state=0)
    one, each = (
        mj.likelihood_ratio_test(model, X, Y["gaussian"], n_resamples=1, random_state=0, offset=offset)
        for offset in (3.0, np.full(60, 3.0))
    )
    assert one.statistic == each.statistic
    assert np.array_equal(one.simulated, each.simulated)


def test_the_likelihood_ratio_test_of_a_formula_takes_the_table() -> None:
    table = pd.DataFrame({"y": Y["poisson"], "a": X[:, 0], "k": np.where(X[:, 1] > 0, "u", "v"), "g": TEXT})
    model = mj.RegressionMixture.from_formula("y ~ a + k | g", table, n_components=1, family="poisson", random_state=0)
    found = mj.likelihood_ratio_test(model, table, n_resamples=1, random_state=0)
    arrays = np.column_stack([X[:, 0], X[:, 1] <= 0])
    same = mj.likelihood_ratio_test(model, arrays, Y["poisson"], groups=GROUP, n_resamples=1, random_state=0)
    assert found.statistic == pytest.approx(same.statistic, rel=1e-9)
    with pytest.raises(ValueError, match="groups has no name for row 0"):
        mj.likelihood_ratio_test(model, arrays, Y["poisson"], groups=[None, *GROUP[1:]], n_resamples=1)


def test_targets_too_far_to_tell_components_apart() -> None:
    model = mj.RegressionMixture(2, random_state=0).fit(X, Y["gaussian"])
    y = Y["gaussian"].copy()
    y[7] = 1e200
    assert model.log_density(X, y)[7] == -np.inf
    for method in (model.predict_proba, model.classify):
        with pytest.raises(ValueError, match="no component is near row 7, whose target is 1e\\+200"):
            method(X, y)


def test_components_of_heavy_tails_are_told_apart_however_far_targets_are() -> None:
    """Their densities fall as a power of the distance, and keep their ratio."""
    model = mj.RegressionMixture(2, family="student", random_state=0).fit(X, Y["gaussian"])
    y = Y["gaussian"].copy()
    y[7] = 1e200
    tails = model.weights_ * model.scale_**4  # of four degrees of freedom
    np.testing.assert_allclose(model.predict_proba(X, y)[7], tails / tails.sum(), rtol=1e-9)


def test_intervals_that_the_rows_do_not_bound_are_infinite() -> None:
    model = fitted()
    assert model.standard_errors_ is not None
    model.standard_errors_ = {name: 1e30 * errors for name, errors in model.standard_errors_.items()}
    intervals = model.confidence_intervals()
    assert np.isinf(intervals["scale"][1]).all()
    assert np.array_equal(intervals["weights"], [[0, 0], [1, 1]])


class Own(Poisson):
    name = "own"


class NoNumbers(Poisson):
    def log_density(self, *given: Any) -> Array:
        return np.full_like(super().log_density(*given), np.nan)


class TooFew(Poisson):
    def score(self, *given: Any) -> Array:
        return super().score(*given)[:3]


@pytest.mark.parametrize(("family", "match"), [(NoNumbers(), "log_density.*got NaN"), (TooFew(), "score.*shape")])
def test_a_family_that_gives_no_number_a_row_is_refused(family: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        mj.RegressionMixture(2, family=family, random_state=0).fit(X, Y["poisson"])


def test_a_family_of_ones_own_is_not_saved_but_the_known_ones_are(tmp_path: Path) -> None:
    own = mj.RegressionMixture(2, family=Own(), random_state=0).fit(X, Y["poisson"])
    with pytest.raises(UnsavableError, match=r"family is a .*Own, which cannot be saved; keep the model with pickle"):
        save(own, tmp_path / "own")
    assert not (tmp_path / "own").exists()
    model = mj.RegressionMixture(2, family=Student(df=6.0), random_state=0).fit(X, Y["gaussian"])
    save(model, tmp_path / "model")
    kept = load(tmp_path / "model")
    assert kept.family.df == 6.0
    assert np.array_equal(kept.log_density(X, Y["gaussian"]), model.log_density(X, Y["gaussian"]))


@pytest.mark.parametrize("family", ["poisson", "binomial"])
def test_large_counts_are_fitted_right_or_refused(family: str) -> None:
    """Up to where floats hold every whole number the log-likelihood is right; beyond, no fit is made."""
    random = np.random.default_rng(0)
    x = random.normal(size=(60, 1))
    share = np.where(np.arange(60) % 2, 0.2, 0.7)
    model = mj.RegressionMixture(2, family=family, random_state=0)
    for size in (1e15, 1e200):
        trials = np.full(60, size)
        y = np.rint(size * share + np.sqrt(size * share) * random.normal(size=60))
        more = {"trials": trials} if family == "binomial" else {}
        if size == 1e15:
            model.fit(x, y, **more)
            normal = -0.5 * np.log(2 * np.pi * size * share * (1 - share if more else 1)).sum() - 60 * np.log(2)
            assert abs(model.log_likelihood_ - normal) < 80
            assert model.standard_errors_["coef"].max() < 1e-6
        else:
            with pytest.raises(ValueError, match=r"at most 2\*\*53"):
                model.fit(x, y, **more)


KINDS = np.tile(["a", "b", "c"], 20)


@pytest.mark.parametrize("as_table", [pd.DataFrame, pl.DataFrame, lambda table: pd.DataFrame(table).to_numpy()])
def test_text_is_named_with_a_call_that_takes_it(as_table: Any) -> None:
    table, y = as_table({"x": X[:, 0], "my {kind}": KINDS}), np.arange(60.0)
    whole = pd.DataFrame({"y": y, "x": X[:, 0], "my {kind}": KINDS, "kind": KINDS})
    match = "column ('my {kind}'|1) holds text such as 'a': leave it out, .* but one; .* takes text as it is"
    for of_what, given in (("X", {"X": table}), ("gating", {"X": X, "gating": table})):
        with pytest.raises(ValueError, match=f"{of_what} must hold numbers; {match}") as refused:
            mj.RegressionMixture(2).fit(**given, y=y)
        call = str(refused.value).partition(" but one; ")[2].removesuffix(" takes text as it is")
        assert eval(call, {"RegressionMixture": mj.RegressionMixture, "table": whole}).n_components == 2
    with pytest.raises(ValueError, match="y must hold numbers; it holds text such as 'a'"):
        mj.RegressionMixture(2).fit(X, KINDS)


def test_all_levels_of_a_category_beside_an_intercept_are_named_with_what_to_do() -> None:
    dummies = pd.get_dummies(pd.Series(KINDS), dtype=float)
    y = np.random.default_rng(0).normal(size=60)
    with pytest.warns(
        Warning, match="^c: a combination of .* and the intercept .* leaves out one level of each category"
    ):
        mj.RegressionMixture(1).fit(dummies, y)
    rows = dummies.assign(y=y)[["y", "a", "b", "c"]]
    with pytest.warns(Warning, match="c is a linear function of .* leaves out one level of each category"):
        mj.HiddenMarkovModel(1, emission="regression").fit(rows)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # one line fits every row
@pytest.mark.parametrize(
    ("n_rows", "n_columns", "said"),
    [
        (1, 1, "^1 distinct row does not determine 1 coefficient and an intercept: "),
        (2, 2, "^2 distinct rows do not determine 2 coefficients and an intercept: "),
        (3, 2, None),
    ],
)
def test_rows_too_few_for_a_line_are_counted_beside_the_intercept(n_rows: int, n_columns: int, said: Any) -> None:
    rows = np.random.default_rng(0).normal(size=(n_rows, 1 + n_columns))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", LinAlgWarning)
        mj.RegressionMixture(1).fit(rows[:, 1:], rows[:, 0])
    named = [str(one.message) for one in told if one.category is LinAlgWarning]
    assert re.match(said, *named) if said else not named
