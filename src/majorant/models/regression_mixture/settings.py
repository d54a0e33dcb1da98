"""Checks of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from majorant._cells import refuse_what_is_no_number
from majorant._numbers import briefly
from majorant._validation import check_choice, check_integer, check_positive, check_real, check_runs
from majorant.engine.policies import check_bounds
from majorant.search.effort import EFFORTS
from majorant.solvers.responses import RESPONSES, Response

INITS = ["auto", "moments", "spectral", "random"]
Given = Mapping[str, NDArray[np.float64] | None]


def response_of(family: str | Response) -> Response:
    """Return the response that the parameter `family` names, or is."""
    return family if isinstance(family, Response) else RESPONSES[family]


def check_parameters(model: Any) -> None:
    """Refuse invalid parameters of a mixture of regressions.

    Raises
    ------
    ValueError, TypeError
        Says what was got and what is possible.
    """
    check_integer("n_components", model.n_components, low=1)
    if not isinstance(model.family, Response):
        check_choice("family", model.family, list(RESPONSES), or_else=", or a Response")
    if not 0 <= check_real("trim", model.trim, low=0.0) < 0.5:
        raise ValueError(f"trim must be at least 0 and below 0.5; got {briefly(model.trim)}")
    check_choice("variance", model.variance, ["component", "common"])
    check_real("max_sigma_ratio", model.max_sigma_ratio, low=1.0)
    if model.min_component_size != "auto" or not isinstance(model.min_component_size, str):
        check_real("min_component_size", model.min_component_size, low=0.0)
    if isinstance(model.init, Mapping):
        unknown = set(model.init) - {"coef", "intercept", "scale", "weights", "gating_coef", "gating_intercept"}
        if unknown or "coef" not in model.init:
            raise ValueError(
                "init must have coef and may have intercept, scale, weights, gating_coef and gating_intercept; "
                f"got {', '.join(map(repr, model.init)) or 'nothing'}"
            )
    else:
        check_choice("init", model.init, INITS, or_else=", or a dict of parameters")
    check_bounds(model.bounds)
    check_positive("beta", model.beta)
    check_runs(model)
    check_choice("effort", model.effort, list(EFFORTS))


def check_init(init: Mapping[str, Any], k: int, d: int, n_gating: int) -> Given:
    """Return the arrays of a start that a user gives.

    Raises
    ------
    ValueError
        If one has the wrong shape, or a weight or scale is not positive.
    """
    arrays: dict[str, NDArray[np.float64] | None] = {}
    shapes = {"coef": (k, d), "intercept": (k,), "scale": (k,), "weights": (k,)}
    for name, shape in (shapes | {"gating_coef": (k, n_gating), "gating_intercept": (k,)}).items():
        arrays[name] = None
        if name in init:
            refuse_what_is_no_number(init[name], f"init[{name!r}]")
            value = np.asarray(check_array(init[name], ensure_2d=False, dtype=np.float64))
            if value.shape != shape:
                raise ValueError(f"init[{name!r}] must have shape {shape}; got {value.shape}")
            if name in ("scale", "weights") and (value <= 0).any():
                raise ValueError("init['weights'] and init['scale'] must be positive")
            arrays[name] = value
    return arrays
