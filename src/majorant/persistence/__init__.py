"""Saving and loading of fitted models, in one file and without pickle."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

import majorant
from majorant.persistence.archive import read_archive, write_archive
from majorant.persistence.atomic import remove_abandoned, replacing
from majorant.persistence.codec import Decoder, Encoder
from majorant.persistence.errors import FAULTS_OF_A_FILE, SavedModelError, UnsavableError
from majorant.registry import CARDS, ESTIMATORS, card_of, known

__all__ = ["SavedModelError", "UnsavableError", "load", "load_with_extra", "replacing", "save"]

FORMAT = 1
_KIND = "majorant model"
ROUNDED = 1e-4
"""Weights of single precision are one in sum but for this."""
SIZES = (
    "weights_",
    "shares_",
    "sizes_",
    "scale_",
    "variance_",
    "_variances_",
    "rates_",
    "temperature_",
    "distribution_",
)
"""Ends of the names of estimates that are never negative."""
PROBABILITIES = ("probabilities_", "transitions_")
"""Ends of the names of estimates that lie between 0 and 1."""
_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_KEYS = {"kind", "format", "model", "parameters", "fitted", "extra", "versions"}


def save(estimator: Any, path: str | os.PathLike[str], extra: Any = None) -> None:
    """Save a fitted model to one file.

    The file is a zip of ``meta.json`` and ``.npy`` arrays; it holds no code. It is written completely or not at all.

    Parameters
    ----------
    estimator : estimator
        One of majorant's models, fitted.
    path : path-like
        The file to write; an existing one is replaced.
    extra : None, bool, number, str, list, tuple, dict or array
        A value to keep beside the model; `load_with_extra` returns it.

    Raises
    ------
    TypeError
        If it is not one of majorant's models, or a parameter cannot be saved (such as a function).
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    """
    card = card_of(estimator)
    if type(estimator) is not ESTIMATORS[card.name]:
        raise UnsavableError(
            f"{type(estimator).__name__} is a class of its own derived from {ESTIMATORS[card.name].__name__}; "
            "only majorant's own classes can be saved and loaded"
        )
    fitted = _fitted_state(estimator)
    encoder = Encoder()
    meta = {
        "kind": _KIND,
        "format": FORMAT,
        "model": card.name,
        "parameters": {
            name: encoder.encode(value, f"parameter {name}")
            for name, value in sorted(estimator.get_params(deep=False).items())
        },
        "fitted": {name: encoder.encode(value, f"attribute {name}") for name, value in fitted.items()},
        "extra": encoder.encode(extra, "extra"),
        "versions": _versions(),
    }
    remove_abandoned(path)
    with replacing(path) as stream:
        write_archive(stream, meta, encoder.arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that `save` wrote, without running code from the file.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    SavedModelError
        A ValueError: the file is damaged, is not a saved model, or comes from a newer version of majorant.
    """
    return load_with_extra(path)[0]


def load_with_extra(path: str | os.PathLike[str]) -> tuple[Any, Any]:
    """Load a model with the value that was kept beside it; see `load`."""
    if Path(path).is_dir():
        model = Path(path) / "model.majorant"
        raise SavedModelError(f"{path} is a folder" + (f": load {model}" if model.is_file() else ", not a saved model"))
    with Path(path).open("rb") as stream:
        return _loaded(stream, os.fspath(path))


def _loaded(stream: BinaryIO, name: str) -> tuple[Any, Any]:
    try:
        meta, arrays = read_archive(stream)
        return _restored(meta, Decoder(arrays))
    except SavedModelError as error:
        raise SavedModelError(f"{name} is not a model that can be loaded: {error}") from error
    except FAULTS_OF_A_FILE as error:
        raise SavedModelError(
            f"{name} is not a model saved by majorant, or it is damaged ({type(error).__name__}: {error})"
        ) from error


def _restored(meta: Any, decoder: Decoder) -> tuple[Any, Any]:
    if not isinstance(meta, dict) or meta.get("kind") != _KIND or type(meta.get("format")) is not int:
        raise SavedModelError("its meta.json does not describe a model")
    if meta["format"] > FORMAT:
        raise SavedModelError(
            f"it has format {meta['format']} and this version of majorant reads up to {FORMAT}: upgrade majorant"
        )
    if meta["format"] < 1 or set(meta) != _KEYS:
        raise SavedModelError("its meta.json does not describe a model")
    try:
        estimator_class = known(meta["model"], ESTIMATORS)
    except KeyError:
        raise SavedModelError(
            f"it holds a model {meta['model']!r}; known are {', '.join(sorted(CARDS))}: import the module that "
            "registers it first"
        ) from None
    parameters = {name: decoder.decode(value) for name, value in meta["parameters"].items()}
    estimator = estimator_class(**parameters)
    for name, value in meta["fitted"].items():
        if not _is_fitted_attribute(name):
            raise SavedModelError(f"it sets {name!r}, which is no fitted attribute")
        setattr(estimator, name, decoder.decode(value))
    _check_estimates(estimator)
    return estimator, decoder.decode(meta["extra"])


def _check_estimates(estimator: Any) -> None:
    """Refuse a model that lacks what predictions read, or in which it is not what a fit can end at."""
    card = card_of(estimator)
    of_density = tuple(f"{name}_" for name in getattr(estimator, "estimate_names_", ()))
    # Parameters that were given, not fitted, have no objective.
    of_fit = (card.objective_attribute,) if hasattr(estimator, "search_") else ()
    for name in ("n_features_in_", *of_fit, *card.estimates, *of_density):
        if not hasattr(estimator, name):
            raise SavedModelError(f"it lacks {name}, without which a {card.title} tells nothing")
    _check_columns(estimator, (*card.estimates, *of_density))
    for name in dict.fromkeys((*card.estimates, *of_density)):
        value = np.asarray(getattr(estimator, name))
        if value.dtype.kind not in "iuf":
            raise SavedModelError(f"its {name} does not hold numbers")
        if np.isnan(value).any():
            raise SavedModelError(f"its {name} holds NaN, which no fit ends at")
        if f"_{name}".endswith((*SIZES, *PROBABILITIES)) and (value < 0).any():
            raise SavedModelError(f"its {name} holds {value.min():g}, and is never negative")
        if name.endswith(PROBABILITIES) and (value > 1 + ROUNDED).any():
            raise SavedModelError(f"its {name} holds {value.max():g}, and is never above 1")
    weights = getattr(estimator, "weights_", None)
    if weights is not None and abs(float(np.sum(weights)) - 1) > ROUNDED:
        raise SavedModelError(f"its weights_ are {float(np.sum(weights)):g} in sum, and always 1")


def _check_columns(estimator: Any, estimates: Sequence[str]) -> None:
    """Refuse a number of columns that is none, has other names, or is larger than there are numbers in all."""
    n, names = estimator.n_features_in_, getattr(estimator, "feature_names_in_", None)
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise SavedModelError(f"its n_features_in_ is {n!r}, and a whole number from 1")
    held = sum(np.size(getattr(estimator, name)) for name in estimates)
    if n > held + sum(value.size for value in vars(estimator).values() if isinstance(value, np.ndarray)):
        raise SavedModelError(f"its n_features_in_ is {n}, and it has not that many estimates")
    if names is not None and np.shape(names) != (n,):
        raise SavedModelError(f"its feature_names_in_ have shape {np.shape(names)}, and it has {n} columns")


def _fitted_state(estimator: Any) -> dict[str, Any]:
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    return {name: value for name, value in sorted(estimator.__getstate__().items()) if _is_fitted_attribute(name)}


def _is_fitted_attribute(name: str) -> bool:
    return name.isidentifier() and name.endswith("_") and not name.startswith("_") and not name.endswith("__")


def _versions() -> dict[str, str]:
    found = {"majorant": majorant.__version__, "python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = "unknown"
    return found
