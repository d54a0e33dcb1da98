"""Odd items of a latent class analysis: a clear sentence each, and never NaN."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import majorant as mj

from .test_latent_class_analysis import mixed, read


def table(n: int = 200, **others: Any) -> Any:
    random = np.random.default_rng(0)
    answers = {c: np.where(random.random(n) < 0.5, "yes", "no") for c in "abc"}
    return pd.DataFrame({**answers, **others})


def remarks(rows: Any, k: int = 2, **settings: Any) -> list[str]:
    """Fit, refuse anything that is not a number, and return what the summary says to look out for."""
    model = mj.LatentClassAnalysis(k, random_state=0, **settings).fit(rows)
    for name in model.estimate_names_:
        assert np.isfinite(getattr(model, f"{name}_")).all()
    assert np.isfinite(model.log_likelihood_) and np.isfinite(model.predict_proba(rows)).all()
    assert np.isfinite([value for _, value in model.fit_statistics(rows) if value is not None]).all()
    return list(model.summary().look_out)


def test_constant_items_and_unused_levels_are_named_and_take_no_parameters() -> None:
    assert remarks(table(d="same")) == ["Item 'd' is 'same' in every row: it does not distinguish classes."]
    levels = pd.Categorical(np.tile(["low", "high"], 100), ["low", "mid", "high", "top"])
    assert remarks(table(d=levels)) == ["No row has the levels 'mid', 'top' of item 'd': left out."]
    model = mj.LatentClassAnalysis(2, random_state=0).fit(table(d=levels, e="same"))
    assert model.n_parameters_ == 1 + 2 * 4


def test_one_answer_in_columns_of_its_own_is_told() -> None:
    kind = np.random.default_rng(2).integers(3, size=200)
    bits = {f"is_{k}": (kind == k).astype(int) for k in range(3)}
    words = "Exactly one of the items 'is_0', 'is_1', 'is_2' is 1 in every row that has them."
    for rows in (table(**bits), table(**{name: own == 1 for name, own in bits.items()})):
        assert [said.startswith(words) for said in remarks(rows)] == [True]
        rows["is_1"] = rows["is_1"].astype(object).where(np.arange(200) != 5, None)
        assert remarks(rows)[0].startswith(words)
    assert remarks(table(**{**bits, "is_2": bits["is_2"] | (np.arange(200) % 9 == 7)})) == []
    one, other = bits["is_0"].astype(float), bits["is_1"].astype(float)
    one[::2], other[1::2] = np.nan, np.nan  # never both known: nothing is told of their sum
    assert not any("Exactly one" in said for said in remarks(table(one=one, other=other)))


def test_an_item_of_0_and_1_has_one_row() -> None:
    bits = {"d": np.arange(200) % 2, "e": np.arange(200) % 3 == 0, "f": 1 + np.arange(200) % 2, "g": np.arange(200) % 3}
    shown = mj.LatentClassAnalysis(2, random_state=0).fit(table(**bits)).summary().tables["item_probabilities"]
    entries = set(shown["item probabilities"])
    assert {"d=1", "e=True", "f=1", "f=2", "g=0", "g=1", "g=2"} <= entries and not {"d=0", "e=False"} & entries


@pytest.mark.filterwarnings("ignore:.*not identified")
def test_more_parameters_than_cells_are_told() -> None:
    (said,) = remarks(table(), 3)
    assert said.startswith(
        "11 parameters, 4 more than the table of the items has free cells: the model is not identified"
    )


@pytest.mark.filterwarnings("ignore:.*not identified", "ignore:No regular solution .* two components are the same")
def test_more_classes_than_patterns_are_told() -> None:
    rows = pd.DataFrame({"a": ["x", "y"] * 50, "b": ["x", "y"] * 50})
    with pytest.warns(ConvergenceWarning, match="X has 2 distinct rows, too few to tell 4 classes apart"):
        assert "not identified" in " ".join(remarks(rows, 4))


def test_rows_and_items_without_answers() -> None:
    rows = table()
    rows.iloc[7] = None
    assert remarks(rows) == ["1 of 200 rows has no answer to any item: left out of the fit."]
    model = mj.LatentClassAnalysis(2, random_state=0).fit(rows)
    assert model.n_rows_ == 199
    np.testing.assert_allclose(model.predict_proba(rows)[7], model.weights_)
    with pytest.raises(ValueError, match=r"column 1 .'b'. of X has no entry in any row with weight: drop it"):
        remarks(rows.assign(b=None))


def test_names_of_rows_and_very_many_levels_are_refused() -> None:
    with pytest.raises(ValueError, match="item 'id' is a different text in every row, such as 'r0': it names the rows"):
        remarks(table(id=[f"r{i}" for i in range(200)]))
    many = table(60_000, id=[f"r{i // 2}" for i in range(60_000)])
    with pytest.raises(ValueError, match=r"item 'id' has 30,000 levels, more than 1,000: .* join levels"):
        remarks(many)
    with pytest.raises(ValueError, match="item 'd' has 2,000 levels"):
        remarks(table(2000, d=np.arange(2000)), items={"d": "categorical"})


def test_identification_names_what_the_items_cannot_tell(shared_data: Path) -> None:
    found = {}
    for k in (2, 3):
        model = mj.LatentClassAnalysis(k, random_state=0).fit(read(shared_data, "cheating"))
        found[k] = model.identification()
    assert (found[2].rank, found[2].n_parameters, found[2].unidentified) == (9, 9, ())
    assert (found[3].rank, found[3].n_parameters) == (13, 14) and len(found[3].unidentified) == 8 + 1
    assert str(found[3]).startswith("The items determine 13 of 14 parameters, whatever the rows: LIEEXAM=1, ")


def test_identification_of_three_items_and_of_items_of_every_kind() -> None:
    rows = table()
    for k, rank in ((2, 7), (3, 7)):
        assert mj.LatentClassAnalysis(k, random_state=0).fit(rows).identification().rank == rank
    every, _ = mixed()
    model = mj.LatentClassAnalysis(2, items={"visits": "count"}, random_state=0).fit(every)
    assert model.identification().unidentified == ()


def test_decimal_cells_are_numbers() -> None:
    draws = np.random.default_rng(0)
    bits, weight = (draws.random((60, 3)) < 0.5).astype(int), np.round(draws.normal(size=60), 2)
    plain = pd.DataFrame(bits, columns=list("abc")).assign(w=weight)
    exact = plain.assign(a=[Decimal(int(v)) for v in plain["a"]], w=[Decimal(str(v)) for v in weight])
    fitted = [mj.LatentClassAnalysis(2, n_init=2, random_state=0).fit(table) for table in (plain, exact)]
    assert fitted[0].log_likelihood_ == fitted[1].log_likelihood_
    assert fitted[0].items_ == fitted[1].items_
