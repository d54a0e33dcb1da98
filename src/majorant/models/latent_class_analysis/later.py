"""Covariates and outcomes of classes that were found before: read, estimated, and told in their own units."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from majorant._cells import refuse_what_is_no_number
from majorant._numbers import briefly, counted
from majorant._validation import check_choice, check_sample_weight, is_missing, levels_to_user
from majorant.data.measure import means_and_deviations
from majorant.laws.separation import separating
from majorant.models.covariates import ALIKE, Covariates, completed, refuse_wide_covariates, undetermined
from majorant.models.latent_class_analysis.effects import CovariateEffects, DistalOutcome
from majorant.models.latent_class_analysis.kinds import CountItems, plain
from majorant.models.latent_class_analysis.steps import earlier_step, later_step, of_covariates, of_outcome
from majorant.solvers.simplex import project_on_simplex

Array = NDArray[np.float64]
KINDS = ("auto", "normal", "count", "categorical")
"""What an outcome may be."""
DROP = 'set missing="drop" to leave them out of what depends on it'


def known_covariates(model: Any, given: Any, n: int, *, fitting: bool = False) -> tuple[Any, NDArray[np.bool_], str]:
    """Return covariates, in incomplete rows those of another row; which rows these are, and how many, in words.

    Unless this is for a fit, where each row lacks some they are those of the reference levels.
    """
    given, lacking, said = completed(given, n, None if fitting else getattr(model, "covariates_", None))
    if said and model.missing == "error":
        raise ValueError(f"{said}, the first of them row {int(lacking.argmax())}: fill them in, or {DROP}")
    return given, lacking, said


def without(lacking: NDArray[np.bool_], sample_weight: Any) -> Any:
    """Return weights that are zero where a row lacks what it must have."""
    weights = check_sample_weight(sample_weight, len(lacking))
    return np.where(lacking, 0.0, 1.0 if weights is None else weights) if lacking.any() else weights


class CovariateUnits(NamedTuple):
    """What covariates are, and the means and standard deviations by which they are standardised."""

    learned: Covariates
    center: Array
    scale: Array


class OutcomeUnits(NamedTuple):
    """Kind, levels and range of an outcome; of numbers the mean and standard deviation that standardise them."""

    kind: str
    levels: tuple[Any, ...]
    center: float
    scale: float
    least: float
    most: float


def covariate_effects(
    model: Any,
    X: Any,
    covariates: Any,
    sample_weight: Any,
    method: str | None,
    assignment: str,
    component_labels: Any = None,
) -> CovariateEffects:
    """Return how covariates change the odds of the classes of a fit; see there."""
    if len(model.weights_) == 1:
        raise ValueError("one class has the share 1 whatever the covariates are: fit two classes or more")
    covariates, lacking, said = known_covariates(model, covariates, len(X), fitting=True)
    has_gating = "gating_coef" in model.estimate_names_
    if method == "one-step" and not has_gating:
        raise ValueError('method="one-step" is for a fit with gating: fit(X, gating=covariates) makes one')
    if has_gating:
        if method not in (None, "one-step"):
            raise ValueError(f"method={method!r} is for a fit without gating; this one has its effects in one step")
        weights = without(lacking, sample_weight)
        rows = {"gating": covariates, "component_labels": component_labels}
        covariance = model._errors(X, sample_weight=weights, **rows).covariance
        beta, m = model.gating_coef_[1:].ravel(), model.gating_coef_[1:].size
        units = CovariateUnits(model.covariates_, model.gating_center_, model.gating_scale_)
        own = covariance[-m:, -m:]
        return effects(units, beta, own, own, "one-step", model.n_rows_, said)
    method, k = method or "ml", len(model.weights_)
    items, on = earlier_step(model, X, sample_weight, method, assignment)
    w = np.where(lacking, 0.0, items.weights)
    table, units = covariate_table(covariates, w)
    found = later_step(items, on, of_covariates(table, w, k), method, assignment)
    if found.unbounded.size:
        names = units.learned.column_names
        separated = separating(found.unbounded, found.beta, names, np.eye(1 + len(names)))
        why = "A class has no rows"
        if separated:
            why = f"Covariates {separated} separate the classes: for some rows a class is certain, or impossible"
        warnings.warn(
            f"{why}, so coefficients run to infinity. Where they stopped is no estimate; they have no standard errors "
            "(NaN) and no intervals.",
            ConvergenceWarning,
            stacklevel=levels_to_user(),
        )
    return effects(units, found.beta, found.corrected, found.plain, method, float(w.sum()), said)


def distal_outcome(
    model: Any, X: Any, y: Any, sample_weight: Any, method: str, assignment: str, kind: str
) -> DistalOutcome:
    """Compare an outcome between the classes of a fit; see there."""
    check_choice("kind", kind, KINDS)
    items, on = earlier_step(model, X, sample_weight, method, assignment)
    values, lacking, said = known_outcome(y, len(X), model.missing)
    w = np.where(lacking, 0.0, items.weights)
    table, units = outcome_table(values, w, kind)
    later = of_outcome(table, w, items.shares, units.kind)
    found = later_step(items, on, later, method, assignment)
    return outcome(units, len(model.weights_), found.beta, found.corrected, found.plain, method, float(w.sum()), said)


def effects(
    units: CovariateUnits, beta: Array, corrected: Array, plain: Array, method: str, n_rows: float, said: str
) -> CovariateEffects:
    """Return coefficients of all classes, zero for the first, in the units of the covariates.

    Parameters
    ----------
    beta : ndarray
        Coefficients of all classes but the first, class by class.
    corrected, plain : ndarray
        Their covariance, corrected for the classes having been estimated and not; NaN where the rows determine none.
    """
    learned = units.learned
    names = ("Intercept", *learned.column_names)
    m = len(names)
    own = np.diag(np.concatenate([[1.0], 1 / units.scale]))
    own[0, 1:] = -units.center / units.scale
    every = np.kron(np.eye(len(beta) // m), own)

    def moved(covariance: Array) -> Array:
        unknown = np.abs(every) @ np.isnan(np.diag(covariance)) > 0
        found = every @ np.where(np.isnan(covariance), 0.0, covariance) @ every.T
        found[unknown] = found[:, unknown] = np.nan
        return np.asarray(found)

    def table(values: Array) -> Array:
        return np.concatenate([np.zeros((1, m)), values.reshape(-1, m)])

    corrected, plain = moved(corrected), moved(plain)
    errors, uncorrected = (table(np.sqrt(np.maximum(np.diag(v), 0.0))) for v in (corrected, plain))
    coef, against = table(every @ beta), learned.references
    return CovariateEffects(method, names, coef, errors, uncorrected, corrected, against, n_rows, said)


def outcome(
    units: OutcomeUnits, k: int, beta: Array, corrected: Array, plain: Array, method: str, n_rows: float, said: str
) -> DistalOutcome:
    """Return estimates of the classes, in the units of the outcome; one at the edge of its range has no error.

    BCH's weights of rows may be negative, and its estimates beyond all values that there are: those are restricted.

    Warns
    -----
    UserWarning
        If some are.
    """
    kind, levels, center, scale, least, most = units
    c = max(len(levels), 1)
    size = k * c
    estimates = center + scale * beta[:size].reshape(k, c)
    edges = {"categorical": [0.0, 1.0], "count": [0.0]}.get(kind, [])
    at_edge = np.any([np.abs(estimates - edge) < ALIKE for edge in edges] or [np.zeros((k, c), dtype=bool)], axis=0)
    slack = ALIKE * (most - least) + 8 * np.finfo(np.float64).eps * max(abs(least), abs(most))
    beyond = (estimates < least - slack) | (estimates > most + slack)
    moved = np.asarray(beyond.any(axis=1))
    if moved.any():
        which = [(f"share of {briefly(levels[j])}" if levels else "mean", k, j) for k, j in np.argwhere(beyond)]
        told = ", ".join(f"the {what} in class {k + 1} ({estimates[k, j]:.4g})" for what, k, j in which)
        warnings.warn(
            f"BCH puts {told} beyond what it can be ({least:.4g} to {most:.4g}), as its weights of rows may be "
            f"negative. {'All shares of such a class' if levels else 'Such estimates'} are set to what is nearest in "
            'the range, without standard errors, intervals and tests; method="ml" stays in the range.',
            UserWarning,
            stacklevel=levels_to_user(),
        )
        estimates[moved] = project_on_simplex(estimates[moved]) if levels else np.clip(estimates[moved], least, most)
    errors, uncorrected = (
        np.where(at_edge | moved[:, None], np.nan, scale * np.sqrt(np.maximum(np.diag(v)[:size], 0.0)).reshape(k, c))
        for v in (corrected, plain)
    )
    covariance = scale**2 * corrected[:size, :size]
    unknown = np.repeat(moved, c)
    covariance[unknown] = covariance[:, unknown] = np.nan
    return DistalOutcome(method, levels, estimates, errors, uncorrected, covariance, kind, n_rows, said)


def covariate_table(given: Any, weights: Array) -> tuple[Array, CovariateUnits]:
    """Return a constant beside covariates in standard units."""
    learned = Covariates.learned(given, len(weights))
    table = learned.table(given, len(weights))
    refuse_wide_covariates(table)
    for name, why in undetermined(table[weights > 0], learned.column_names).items():
        raise ValueError(
            f"covariate {name!r} {why}, so it has no effect{'' if 'vary' in why else ' of its own'}: leave it out"
        )
    center, scale = means_and_deviations(table, weights)
    return np.column_stack([np.ones(len(table)), (table - center) / scale]), CovariateUnits(learned, center, scale)


def known_outcome(y: Any, n: int, missing: str) -> tuple[NDArray[Any], NDArray[np.bool_], str]:
    """Return an outcome of n rows, as numbers or objects, which rows have none, and how many, in words."""
    refuse_what_is_no_number(y, "y")
    values = np.asarray(y)
    if values.shape != (n,):
        raise ValueError(f"y must be one value a row, shape ({n},); got shape {values.shape}")
    lacking = is_missing(values)
    if lacking.all():
        raise ValueError("no row has an outcome: y is missing in all of them")
    if not lacking.any():
        return values, lacking, ""
    said = f"{lacking.sum()} of {counted(n, 'row')} {'has' if lacking.sum() == 1 else 'have'} no outcome"
    if missing == "error":
        raise ValueError(f"{said}, the first row {int(lacking.argmax())}: leave them out of X and y, or {DROP}")
    filled = values.copy()
    filled[lacking] = values[~lacking][0]
    return filled, lacking, said


def outcome_table(values: NDArray[Any], weights: Array, kind: str) -> tuple[Array, OutcomeUnits]:
    """Return numbers, in standard units unless they are counts, as one column, or a column for each level."""
    if values.dtype.kind == "O" and not any(isinstance(value, str | bool) for value in values.tolist()):
        values = values.astype(np.float64)
    known, is_number = values[weights > 0], values.dtype.kind in "biuf"
    if np.ptp(known.astype(float)) <= ALIKE * np.abs(known).max() if is_number else len(set(known.tolist())) < 2:
        raise ValueError(f"y is {known.tolist()[0]!r} in every row: give an outcome that varies")
    if kind in ("normal", "count") and not is_number:
        raise ValueError(f'y holds text such as {known.tolist()[0]!r}: its kind is "categorical"; got kind={kind!r}')
    is_bits = is_number and not np.setdiff1d(known, [0, 1]).size
    if is_number and kind != "categorical" and not (is_bits and kind == "auto"):
        numbers = values.astype(np.float64)
        ends = float(known.min()), float(known.max())
        if kind == "count":
            CountItems.learned(numbers[weights > 0], None, "y")
            return numbers[:, None], OutcomeUnits("count", (), 0.0, 1.0, *ends)
        center, scale = (float(one[0]) for one in means_and_deviations(numbers[:, None], weights))
        return ((numbers - center) / scale)[:, None], OutcomeUnits("normal", (), center, scale, *ends)
    levels = tuple(sorted(map(plain, set(known.tolist()))))
    told = [[plain(value) == level for level in levels] for value in values.tolist()]
    return np.asarray(told, dtype=np.float64), OutcomeUnits("categorical", levels, 0.0, 1.0, 0.0, 1.0)
