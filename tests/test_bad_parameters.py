"""Wrong values of the parameters that estimators share: refused by every one of them, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .estimators import ESTIMATORS, make, target

WRONG: list[tuple[str, Any]] = [
    ("n_init", 0),
    ("n_init", 2.0),
    ("n_init", "many"),
    ("n_init", None),
    ("n_jobs", 0),
    ("n_jobs", "all"),
    ("max_iter", -1),
    ("max_iter", 10.0),
    ("tol", -1e-3),
    ("tol", np.nan),
    ("tol", "small"),
    ("beta", 0.0),
    ("beta", -1.0),
    ("beta", np.nan),
    ("bounds", "gibbs"),
    ("bounds", 0.1),
    ("verbose", -1),
    ("verbose", "loud"),
]


CASES = [(model, name, value) for model in ESTIMATORS for name, value in WRONG if name in make(model).get_params()]


@pytest.mark.parametrize(("model", "name", "value"), CASES)
def test_wrong_parameters_are_refused_by_name(model: type[Any], name: str, value: Any) -> None:
    estimator = make(model, **{name: value})
    before = dict(vars(estimator))
    with pytest.raises((ValueError, TypeError), match=name) as error:
        estimator.fit(np.arange(60.0).reshape(20, 3), target(model, 20))
    assert repr(value) in str(error.value) or f"{value:g}" in str(error.value)
    assert vars(estimator) == before
