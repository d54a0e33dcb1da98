"""Labels in the forms that data frames give them: each stays what it is, and what is missing stays missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import majorant as mj
from majorant._validation import exact_labels, is_missing
from majorant.registry import card_of

from .estimators import ESTIMATORS, make

LARGE = [2**60, 2**60 + 1]
"""Whole numbers that are one number as floats."""
FORMS: dict[str, Any] = {
    "pandas": lambda y: pd.Series(y, dtype="Int64"),
    "a pandas array": lambda y: pd.array(y, dtype="Int64"),
    "categories": lambda y: pd.Series(pd.Categorical(y)),
    "polars": lambda y: pl.Series(y, dtype=pl.Int64),
    "a list": list,
}
CLASSIFIERS = {
    "latent classes": lambda: mj.DiscriminativeLatentClasses(2, random_state=0),
    "latent SVM": lambda: mj.LatentSVC(random_state=0),
    "prototypes": lambda: mj.LatentPrototypeClassifier(1, random_state=0),
}


@pytest.fixture
def rows() -> Any:
    return np.repeat([[-1.0, 0.0], [1.0, 0.5]], 10, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(20, 2))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_large_numbers_stay_apart(classifier: str, form: str, rows: Any) -> None:
    y = FORMS[form](LARGE * 5 + LARGE[::-1] * 5)
    model = CLASSIFIERS[classifier]().fit(rows, y)
    assert model.classes_.tolist() == LARGE
    assert model.classes_.dtype == np.int64


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_large_numbers_stay_apart_beside_missing_ones(classifier: str, form: str, rows: Any) -> None:
    y = FORMS[form]([LARGE[0]] * 9 + [None] + [LARGE[1]] * 10)
    model = CLASSIFIERS[classifier]()
    if classifier == "latent classes":
        assert model.fit(rows, y).classes_.tolist() == LARGE
        assert model.score(rows, y) == 1
        return
    with pytest.raises(ValueError, match=r"Input y contains NaN: (row|sample) 9 has no label"):
        model.fit(rows, y)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize("form", ["boolean", "bool[pyarrow]"])
def test_truth_values_stay_truth_values(classifier: str, form: str, rows: Any) -> None:
    model = CLASSIFIERS[classifier]().fit(rows, pd.Series([False] * 10 + [True] * 10, dtype=form))
    assert model.classes_.dtype == bool
    assert model.predict(rows).tolist() == [False] * 10 + [True] * 10


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_labels_of_two_kinds_are_told_by_their_rows(classifier: str, rows: Any) -> None:
    for y in (["a"] * 10 + [1] * 10, np.array(["a"] * 10 + [1] * 10, dtype=object)):
        with pytest.raises(ValueError, match=r"row 0 has 'a' \(text\), row 10 has 1 \(number\)|sample 10 has 1"):
            CLASSIFIERS[classifier]().fit(rows, y)


def test_what_holds_no_names_that_numpy_alters_is_left_alone() -> None:
    for y in ([1.5, None], [[0, 1], [1, 0]], np.array([1.0]), pd.DataFrame({"a": [1]}), [], [None], None):
        assert exact_labels(y) is y
    mixed = exact_labels([2**63, -1])
    assert mixed.tolist() == [2**63, -1]
    assert exact_labels([3, float("nan")]).tolist() == [3, None]
    assert exact_labels(["a", float("nan")]).tolist() == ["a", None]
    assert exact_labels(["a", "b"]).dtype.kind == "U"
    assert exact_labels(["1", 1]).tolist() == ["1", 1]
    assert is_missing(exact_labels(pd.Series([1, None], dtype="Int64"))).tolist() == [False, True]


@pytest.mark.parametrize("cls", [c for c in ESTIMATORS if card_of(c).kind == "classification"])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_class_is_refused_or_documented(cls: type[Any], weighted: bool, rows: Any) -> None:
    """Where a class is learnt against others one alone says nothing; where it is described by itself it is enough."""
    y = np.array(["b"] * 19 + ["a" if weighted else "b"])
    given = {"sample_weight": np.arange(20) < 19} if weighted else {}
    documented = "One label alone is fine" in (cls.fit.__doc__ or "")
    if documented:
        assert (make(cls, 1).fit(rows, y, **given).predict(rows) == "b").all()
        return
    with pytest.raises(ValueError, match="y holds one class only, b"):
        make(cls, 1).fit(rows, y, **given)


def test_labels_of_one_class_and_rows_without_one_are_refused() -> None:
    y = np.array(["yes"] * 10 + [None] * 10, dtype=object)
    with pytest.raises(ValueError, match="one class only, yes, among the rows with a label and weight"):
        mj.DiscriminativeLatentClasses(2, random_state=0).fit(np.random.default_rng(0).normal(size=(20, 3)), y)
