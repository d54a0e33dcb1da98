"""Parameters that a user gives in place of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from majorant._cells import refuse_what_is_no_number
from majorant._numbers import briefly
from majorant.engine.mixture import Array, Mixture
from majorant.models.hidden_markov.emission import Emission
from majorant.models.hidden_markov.emissions import AUTOREGRESSIONS, CategoricalEmission, emissions
from majorant.persistence import SavedModelError
from majorant.persistence.values import check_estimates

if TYPE_CHECKING:
    from majorant.models.hidden_markov.estimator import HiddenMarkovModel


def give(
    model: HiddenMarkovModel, start_probabilities: ArrayLike, transitions: ArrayLike, estimates: Mapping[str, ArrayLike]
) -> HiddenMarkovModel:
    """Return a model with given parameters as its fitted attributes."""
    steps = _probabilities("transitions", transitions, 2)
    first, k = _probabilities("start_probabilities", start_probabilities, 1), len(steps)
    if steps.shape != (k, k) or first.shape != (k,):
        raise ValueError(
            f"transitions must be of shape (k, k) and start_probabilities of shape (k,); got {steps.shape} and "
            f"{first.shape}"
        )
    given = {name: _of_states(name, value, k, model) for name, value in estimates.items()}
    model.n_components, model.fit_intercept = k, "coef" not in given or "intercept" in given
    model.emissions_ = _emissions(model, given)
    model.n_features_in_ = sum(one.n_features for one in model.emissions_)
    given |= {"start_probabilities": first, "transitions": steps}
    for name, value in given.items():
        setattr(model, f"{name}_", value)
    model.estimate_names_ = list(given)
    model.is_grouped_ = model.is_labelled_ = False
    density = model._density()
    try:
        known = density.describe(model._theta().density)
    except KeyError as error:
        raise TypeError(f"emission={briefly(model.emission)} needs {error.args[0]}") from error
    except (ValueError, IndexError) as error:
        raise ValueError(f"the estimates do not fit emission={briefly(model.emission)}: {error}") from error
    if surplus := sorted(estimates.keys() - known.keys()):
        raise TypeError(f"emission={briefly(model.emission)} has {', '.join(known)}; got {', '.join(surplus)}")
    in_the_long_run = first @ np.linalg.matrix_power((np.eye(k) + steps) / 2, 2**30)
    model.weights_ = in_the_long_run / in_the_long_run.sum()
    model.n_parameters_ = Mixture(density, model._law_of_fit(), k).n_parameters
    try:
        with np.errstate(all="ignore"):  # densities that are none are refused
            check_estimates(model)
    except SavedModelError as error:
        raise ValueError(f"the given parameters make no hidden Markov model: {error}") from error
    return model


def _emissions(model: HiddenMarkovModel, given: Mapping[str, Array]) -> tuple[Emission, ...]:
    """Return the emissions of given parameters, in the units in which these are."""
    if model.emission in AUTOREGRESSIONS[1:]:
        raise ValueError(f"emission={model.emission!r} depends on rows before: fit it")
    if not isinstance(model.emission, str):
        width = len(model.emission)
    elif "coef" in given:
        width = 1 + given["coef"].shape[-1]
    else:
        widths = [value.shape[1] for value in given.values() if value.ndim > 1]
        width = 1 if model.emission == CategoricalEmission.name or not widths else widths[0]
    found = emissions(model.emission, model.covariance_type, width, bool(model.fit_intercept))
    names = [f"x{j + 1}_" for j in range(width)] if len(found) > 1 else [""]
    return tuple(_in_own_units(one, given.get(f"{name}probabilities")) for one, name in zip(found, names, strict=True))


def _in_own_units(one: Emission, probabilities: Array | None) -> Emission:
    if isinstance(one, CategoricalEmission):
        n_levels = 1 if probabilities is None else probabilities.shape[1]
        return replace(one, levels=(np.arange(float(n_levels)),))
    return replace(one, centre=np.zeros(one.n_features), scale=np.ones(one.n_features))


def _read(name: str, value: ArrayLike) -> Array:
    """Return finite numbers."""
    refuse_what_is_no_number(value, name)
    try:
        found = np.asarray(value, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} must be an array of numbers; got {briefly(value)}") from error
    if not np.isfinite(found).all():
        raise ValueError(f"{name} must be finite numbers; got {briefly(value)}")
    return found


def _of_states(name: str, value: ArrayLike, k: int, model: HiddenMarkovModel) -> Array:
    """Return an estimate of every state: one row of each, or a number of each where a state has one alone."""
    found = _read(name, value)
    if name == "covariances" and model.covariance_type == "tied":
        if found.ndim == 2:  # one for all
            found = np.repeat(found[None], k, axis=0)
        if not (found == found[:1]).all():
            raise ValueError("covariance_type='tied' has one matrix for all states; those given differ")
    one_each = name in ("intercept", "variances", "degrees_of_freedom") or (
        name == "covariances" and model.covariance_type == "spherical"
    )
    if (found.ndim < 2 and not one_each) or len(np.atleast_1d(found)) != k:
        shape = f"({k},)" if one_each else f"({k}, ...), a row for each state"
        raise ValueError(f"{name} must be of shape {shape}; got {found.shape}")
    if name.endswith("probabilities") and model.emission != "bernoulli" and found.shape[1] > 1:
        return _probabilities(name, found, 2)
    return found


def _probabilities(name: str, value: ArrayLike, n_axes: int) -> Array:
    found = _read(name, value)
    if found.ndim != n_axes or not (found >= 0).all() or not (abs(found.sum(axis=-1) - 1) <= 1e-9).all():
        raise ValueError(f"{name} must be probabilities that add up to 1; got {briefly(value)}")
    return np.asarray(found / found.sum(axis=-1, keepdims=True))
