"""Every mixture says where its components have fewer than 1.5 rows for each parameter of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import majorant as mj

draws = np.random.default_rng(0)
X, y, g = draws.normal(size=(30, 3)), draws.normal(size=30), draws.normal(size=(30, 1))
COUNTS = np.concatenate([draws.poisson(9, (15, 2)), draws.poisson(1, (15, 2))])
BITS = draws.integers(0, 2, (30, 10))

# model, what it is fitted to, what comes with the rows, parameters of a component alone: its weight, then the others
CASES: dict[str, tuple[Any, Any, dict[str, Any], int]] = {
    "Gaussians": (mj.GaussianMixture(2), (X,), {}, 1 + 3 + 6),
    "Gaussians of one variance": (mj.GaussianMixture(2, covariance_type="tied"), (X,), {}, 1 + 3),
    "lines": (mj.RegressionMixture(4), (X, y), {}, 1 + 4 + 1),
    "lines of one noise": (mj.RegressionMixture(4, variance="common"), (X, y), {}, 1 + 4),
    "lines with a slope in common": (mj.RegressionMixture(4, shared=[0]), (X, y), {}, 1 + 3 + 1),
    "gated lines": (mj.RegressionMixture(4), (X, y), {"gating": g}, 2 + 4 + 1),
    "lines of groups": (mj.RegressionMixture(4), (X, y), {"groups": np.repeat(np.arange(15), 2)}, 1 + 4 + 1),
    "counts": (mj.RegressionMixture(2, family="poisson"), (X, COUNTS[:, 0]), {}, 1 + 4),
    "classes": (mj.LatentClassAnalysis(3), (BITS,), {}, 1 + 10),
    "states": (mj.HiddenMarkovModel(3), (X,), {}, 1 + 9),
}


@pytest.mark.parametrize("name", CASES)
def test_a_summary_says_which_components_have_few_rows(name: str) -> None:
    model, given, beside, own = CASES[name]
    fitted = model.set_params(random_state=0).fit(*given, **beside)
    assert fitted.regular_
    n_few, k = int((fitted.weights_ * 30 < 1.5 * own).sum()), len(fitted.weights_)
    told = [said for said in fitted.summary().look_out if "few rows for" in said]
    assert [said.split(", the")[0] for said in told] == [
        f"{n_few} of {k} {part} {'has' if n_few == 1 else 'have'} few rows for {own} parameters each"
        for part in [{"classes": "classes", "states": "states"}.get(name, "components")] * (n_few > 0)
    ]


def test_fits_of_many_rows_do_not() -> None:
    x = draws.normal(size=(200, 1))
    z = np.sign(draws.normal(size=200))
    fitted = mj.RegressionMixture(2, random_state=0).fit(x, 5 * z * x[:, 0] + draws.normal(size=200))
    assert fitted.regular_ and not fitted.summary().look_out
