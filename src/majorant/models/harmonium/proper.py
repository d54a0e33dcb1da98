"""Points at which the model is proper: their latents have a precision that is positive."""

from __future__ import annotations

import numpy as np

from majorant.models.harmonium.layout import Parameters

EDGE = 1e-10
"""The least `properness` of a start."""


def renewed(at: Parameters, fresh: Parameters) -> Parameters:
    """A point with a little of the start, as far as it stays proper: where a component is zero the gradient is, too."""
    if at.n_components != fresh.n_components:
        return at
    room, step = properness(at) / 2, 0.1
    while step > 1e-4:
        near = Parameters(at.weights + step * fresh.weights, at.intercept, at.log_variance)
        if properness(near) >= room:
            return near
        step /= 2
    return at


def properness(at: Parameters) -> float:
    """The least eigenvalue of the latents' precision without the Gaussian variables: positive where proper."""
    u = at.weights[: len(at.log_variance)]
    return float(np.linalg.eigvalsh(np.eye(at.n_components) - (u.T * at.variance) @ u)[0])


def shrunk(at: Parameters) -> Parameters:
    """The point itself where the model is proper, otherwise one whose weights are smaller by a factor and proper."""
    if not at.weights.size or (room := properness(at)) > EDGE:
        return at
    return Parameters(at.weights * np.sqrt(0.9 / (1 - room)), at.intercept, at.log_variance)
