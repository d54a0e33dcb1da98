"""The general mixture of regressions: families, groups, gating, shared coefficients, offsets, trimming, labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import majorant as mj

Array = NDArray[Any]


def np_reg(shared_data: Path) -> dict[str, Array]:
    table = np.genfromtxt(
        shared_data / "mixreg/flexmix_NPreg.csv", delimiter=",", names=True, dtype=None, encoding=None
    )
    out = {name: np.asarray(table[name], dtype=np.float64) for name in ("x", "yn", "yp", "yb")}
    return {**out, "id2": np.char.strip(np.asarray(table["id2"], dtype=str), '"')}


NP_REG: list[tuple[dict[str, Any], str, int, list[str], float]] = [
    ({}, "yn", 2, [], -642.5320),
    ({"family": "poisson"}, "yp", 1, [], -440.6403),
    ({"family": "student"}, "yn", 2, [], -645.4502),
    ({}, "yn", 2, ["groups"], -561.5537),
    ({}, "yn", 2, ["gating"], -642.0639),
]


@pytest.mark.parametrize(("parameters", "target", "degree", "extras", "expected"), NP_REG)
def test_np_reg_reaches_the_best_optimum(
    parameters: dict[str, Any], target: str, degree: int, extras: list[str], expected: float, shared_data: Path
) -> None:
    data = np_reg(shared_data)
    x = np.column_stack([data["x"] ** j for j in range(1, degree + 1)])
    given = {"groups": data["id2"], "gating": data["x"][:, None]}
    model = mj.RegressionMixture(2, random_state=0, **parameters)
    # offset=0 takes the plain Gaussian case through the general path too
    model.fit(x, data[target], offset=0.0, **{name: given[name] for name in extras})
    assert model.log_likelihood_ == pytest.approx(expected, abs=1e-3)
    assert model.regular_
    density = model.log_density(x, data[target], **{name: given[name] for name in extras})
    assert density.sum() == pytest.approx(model.log_likelihood_, rel=1e-10)


def test_the_likelihood_of_repeated_measures_knows_the_groups() -> None:
    t = np.tile([0.0, 1.0, 2.0], 4)[:, None]
    y = np.array([0.1, 1.2, 1.9, 4.8, 4.1, 3.2, -0.2, 0.8, 2.3, 5.1, 3.8, 3.1])
    groups = np.repeat(["a", "b", "c", "d"], 3)
    model = mj.RegressionMixture(2, random_state=0, min_component_size=0).fit(t, y, groups=groups)
    model.coef_, model.center_, model.center_fits_ = np.array([[1.0], [-1.0]]), np.zeros(1), np.array([0.0, 5.0])
    model.scale_, model.weights_ = np.full(2, 0.25), np.full(2, 0.5)
    assert model.log_density(t, y, groups=groups).sum() == pytest.approx(-0.204318787, abs=1e-9)
    assert model.log_density(t, y).sum() == pytest.approx(-5.709393772, abs=1e-9)
