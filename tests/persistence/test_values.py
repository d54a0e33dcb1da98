"""A file whose values no fit ends at is refused, though it is whole and its checksums are right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import majorant as mj
from majorant.persistence import SavedModelError, UnsavableError, archive, load, save
from majorant.registry import card_of

from ..estimators import ESTIMATORS, reference


def changed(estimator: Any, name: str, value: Any) -> Any:
    other = type(estimator)(**estimator.get_params(deep=False))
    other.__dict__.update(estimator.__dict__)
    setattr(other, name, value)
    return other


def with_entry(values: Any, value: float) -> Any:
    values = np.array(values, dtype=np.float64)
    values[(0,) * values.ndim] = value
    return values


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_what_predictions_read_is_there_and_holds_numbers(cls: type[Any], tmp_path: Path) -> None:
    fitted, path = reference(cls), tmp_path / "m"
    save(fitted, path)
    load(path)
    card = card_of(cls)
    assert card.estimates
    for name in (*card.estimates, card.objective_attribute, "n_features_in_"):
        other = changed(fitted, f"{name[:-1]}s_", getattr(fitted, name))
        del other.__dict__[name]
        save(other, path)
        with pytest.raises(SavedModelError, match=f"it lacks {name}"):
            load(path)
    for name in card.estimates:
        if np.size(getattr(fitted, name)):
            save(changed(fitted, name, with_entry(getattr(fitted, name), np.nan)), path)
            with pytest.raises(SavedModelError, match=f"its {name} holds NaN"):
                load(path)
        save(changed(fitted, name, "numbers"), path)
        with pytest.raises(SavedModelError, match=f"its {name} does not hold numbers"):
            load(path)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_the_number_of_columns_is_one_that_the_estimates_can_be_of(cls: type[Any], tmp_path: Path) -> None:
    """A billion in a small file would make a list of so many names."""
    path = tmp_path / "m"
    for wrong in (10**9, -5, 0, 2.5, True):
        save(changed(reference(cls), "n_features_in_", wrong), path)
        with pytest.raises(SavedModelError, match=f"its n_features_in_ is {wrong}, and"):
            load(path)
    save(changed(reference(cls), "feature_names_in_", np.array(["a", "b"], dtype=object)), path)
    with pytest.raises(SavedModelError, match=r"its feature_names_in_ have shape \(2,\), and it has 3 columns"):
        load(path)


@pytest.mark.parametrize("cls", [cls for cls in ESTIMATORS if "weights_" in card_of(cls).estimates])
def test_weights_are_shares(cls: type[Any], tmp_path: Path) -> None:
    fitted, path = reference(cls), tmp_path / "m"
    save(changed(fitted, "weights_", with_entry(fitted.weights_, -0.5)), path)
    with pytest.raises(SavedModelError, match=r"its weights_ holds -0\.5, and is never negative"):
        load(path)
    save(changed(fitted, "weights_", 2 * fitted.weights_), path)
    with pytest.raises(SavedModelError, match="its weights_ are 2 in sum, and always 1"):
        load(path)


def tables_of_estimates() -> list[Any]:
    """A fit of each kind whose density has estimates of its own."""
    random = np.random.default_rng(0)
    rows = np.concatenate([random.normal(size=(30, 2)), random.normal(size=(30, 2)) + 6])
    bits, counts = (rows > 3).astype(float), random.poisson(1 + 5.0 * (rows > 3))
    return [
        mj.HiddenMarkovModel(2, random_state=0).fit(rows),
        mj.HiddenMarkovModel(2, emission="poisson", random_state=0).fit(counts),
        mj.HiddenMarkovModel(2, emission="bernoulli", random_state=0).fit(bits),
        mj.LatentClassAnalysis(2, random_state=0).fit(bits.astype(int)),
        mj.GaussianMixture(2, covariance_type="diag", random_state=0).fit(rows),
    ]


@pytest.mark.parametrize("at", range(5))
def test_estimates_of_densities_and_chains_are_asked_too(at: int, tmp_path: Path) -> None:
    fitted, path = tables_of_estimates()[at], tmp_path / "m"
    save(fitted, path)
    assert load(path).estimate_names_ == fitted.estimate_names_
    for name in (f"{name}_" for name in fitted.estimate_names_):
        value = getattr(fitted, name)
        wrong = [(np.nan, "NaN")]
        if name.endswith(("probabilities_", "transitions_")):
            wrong += [(-0.25, r"-0\.25, and is never negative"), (1.25, r"1\.25, and is never above 1")]
        elif name in ("rates_", "variances_"):
            wrong += [(-0.25, r"-0\.25, and is never negative")]
        for number, said in wrong:
            save(changed(fitted, name, with_entry(value, number)), path)
            with pytest.raises(SavedModelError, match=f"its {name} holds {said}"):
                load(path)


def test_a_header_of_many_megabytes_is_neither_written_nor_parsed(tmp_path: Path) -> None:
    estimator = ESTIMATORS[0]
    names = np.array(["x" * 1000] * (archive.MAX_META_BYTES // 1000 + 1), dtype=object)
    with pytest.raises(UnsavableError, match="are more than a saved model may hold"):
        save(changed(reference(estimator), "feature_names_in_", names), tmp_path / "m")
    assert not list(tmp_path.iterdir())
    assert archive.MAX_META_BYTES < 60e6
