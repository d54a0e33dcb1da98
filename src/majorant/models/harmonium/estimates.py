"""What the estimates of a harmonium can be, asked of a model that comes from a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from majorant.models.harmonium.layout import Marginal, Parameters
from majorant.models.harmonium.variables import layout_of

SHAPES = {"components_": "kv", "intercept_": "v", "noise_variance_": "g"}
"""See `ModelCard`: axes are components, variables, and real variables."""
SHAPES_WITH_TARGET = {**SHAPES, "label_components_": "lk", "label_intercept_": "l", "y_mean_": "", "y_scale_": ""}


def check_proper(model: Any) -> None:
    """Raise ValueError if the estimates of a fitted harmonium do not fit its views, or are of no distribution."""
    layout = layout_of(model.views_, model.supervision_)
    sizes = {
        "components_": (model.components_, model.n_components_),
        "intercept_": (model.intercept_, layout.n_variables - model.supervision_.n_labels),
        "noise_variance_": (model.noise_variance_, layout.n_gaussian),
    }
    for name, (values, n) in sizes.items():
        if len(values) != n:
            raise ValueError(f"its {name} has length {len(values)}, and its views and components need {n}")
    parameters = Parameters(model.components_.T, model.intercept_, np.log(model.noise_variance_))
    try:
        Marginal.of(parameters, np.arange(layout.n_gaussian))
    except np.linalg.LinAlgError:
        raise ValueError("no distribution has its components_ and noise_variance_") from None
