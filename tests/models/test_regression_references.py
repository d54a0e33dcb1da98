"""Mixtures of regressions beside R: no worse than the best of 50 starts of flexmix, and the same parameters there."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import majorant as mj
from tests.flexmix import CASES, INTERCEPT, LOG_SIGMA, Answer, Case, case, flat, gating_of, read, references

REFERENCES = references()

NO_MAXIMUM = {
    # The likelihood rises for ever: the probabilities of a component go to 0 or 1, and its coefficients to infinity.
    "NPreg_binomial",
    "trypanosome_own",
    "Mehta",
    "Mehta_own",
}
NO_GATING = {"dmft_gated", "tribolium_3"}
"""Here the logits of a component run to infinity."""
NO_ERRORS = {"salmonella_own"}
"""Here flexmix's refit() fails."""
NESTED = {
    # Coefficients that are zero or shared in some components only: there is no argument for that. The larger models
    # that hold these.
    "fabricfault_nested": "fabricfault",
    "BregFix_nested": "BregFix_own",
    "NregFix_nested": "NregFix_shared",
    "NregFix_nested_common": "NregFix_shared_common",
}
WITHOUT = {"tone"}


@cache
def fitted(name: str, folder: Path) -> tuple[Case, Any]:
    mine = case(name, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return mine, mine.fit()


@pytest.fixture
def mixreg(shared_data: Path) -> Path:
    return shared_data / "mixreg"


def test_every_model_of_the_references_is_accounted_for() -> None:
    assert set(REFERENCES) == set(CASES) | set(NESTED) | WITHOUT
    assert all(reference["restarts"] == 50 for reference in REFERENCES.values())


@pytest.mark.parametrize("name", CASES)
def test_no_worse_than_the_best_of_fifty_starts_of_flexmix(name: str, mixreg: Path) -> None:
    _, model = fitted(name, mixreg)
    answer = Answer.of(REFERENCES[name])
    assert model.log_likelihood_ > answer.log_likelihood - 1e-4 * abs(answer.log_likelihood)
    assert model.n_parameters_ == REFERENCES[name]["df"]
    assert model.regular_ or name in NO_MAXIMUM


@pytest.mark.parametrize("name", sorted(set(CASES) - NO_MAXIMUM))
def test_the_same_parameters_where_the_maximum_is_the_same(name: str, mixreg: Path) -> None:
    mine, model = fitted(name, mixreg)
    answer = Answer.of(REFERENCES[name])
    assert model.log_likelihood_ == pytest.approx(answer.log_likelihood, rel=1e-6)
    ours = flat(model, mine, answer.names)
    order = answer.order(ours)
    np.testing.assert_allclose(ours[order], answer.coef, rtol=1e-3, atol=1e-3)
    if name in NO_GATING:
        return
    gating = gating_of(model, order, answer.gating.shape[1])
    np.testing.assert_allclose(gating, answer.gating, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", sorted(set(CASES) - NO_MAXIMUM - NO_ERRORS))
def test_the_same_standard_errors_as_by_refit(name: str, mixreg: Path) -> None:
    mine, model = fitted(name, mixreg)
    answer = Answer.of(REFERENCES[name])
    assert answer.errors is not None
    order = answer.order(flat(model, mine, answer.names))
    errors = model.standard_errors()
    columns = dict(zip(mine.columns, errors["coef"].T, strict=False))
    columns |= {INTERCEPT: errors["intercept"], LOG_SIGMA: errors["scale"] / model.scale_}
    ours = np.column_stack([columns[name] for name in answer.names])
    np.testing.assert_allclose(ours[order], answer.errors, rtol=1e-3)


@pytest.mark.parametrize("name", ["NPreg_gaussian_gated", "NPreg_gaussian_gated_id2"])
def test_the_same_standard_errors_of_gating_as_by_refit(name: str, mixreg: Path) -> None:
    _, model = fitted(name, mixreg)
    theirs = Answer.of(REFERENCES[name]).gating_errors
    assert theirs is not None and theirs.shape == (1, 2)
    errors = model.standard_errors()
    ours = np.column_stack([errors["gating_intercept"], errors["gating_coef"]])
    # Of two components one has the reference's logit, zero: whichever it is, the other's error is the same.
    np.testing.assert_allclose(ours.max(axis=0), theirs[0], rtol=1e-3)
    assert (ours.min(axis=0) == 0).all()


@pytest.mark.parametrize(("name", "larger"), NESTED.items())
def test_what_nested_models_restrict_is_no_worse(name: str, larger: str, mixreg: Path) -> None:
    _, model = fitted(larger, mixreg)
    assert model.log_likelihood_ > REFERENCES[name]["log_likelihood"]


MIXTOOLS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    # table, column, response, parameters
    "tone": ("tonedata", "stretchratio", "tuned", {}),
    "tone_common": ("tonedata", "stretchratio", "tuned", {"variance": "common"}),
    "NOdata": ("NOdata", "NO", "Equivalence", {}),
    "CO2": ("CO2data", "GNP", "CO2", {}),
    "NOdata_experts": ("NOdata", "NO", "Equivalence", {}),
}


@pytest.mark.parametrize("name", MIXTOOLS)
def test_the_same_maxima_as_mixtools(name: str, mixreg: Path) -> None:
    source, column, response, parameters = MIXTOOLS[name]
    table, theirs = read(mixreg / f"mixtools_{source}.csv"), references("mixtools")[name]
    x = table[column][:, None]
    extras = {"gating": x} if name == "NOdata_experts" else {}
    model = mj.RegressionMixture(2, random_state=0, **parameters).fit(x, table[response], **extras)
    assert model.log_likelihood_ == pytest.approx(theirs["log_likelihood"], rel=1e-6)
    ours, expected = np.column_stack([model.intercept_, model.coef_]), np.array(theirs["coef"])
    order = np.argsort(ours[:, 1]) if expected[0, 1] < expected[1, 1] else np.argsort(-ours[:, 1])
    np.testing.assert_allclose(ours[order], expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(model.scale_[order], np.broadcast_to(theirs["sigma"], 2), rtol=1e-3)
