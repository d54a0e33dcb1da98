"""Saving and loading of fitted models, in one file and without pickle."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO

import majorant
from majorant._atomic import remove_abandoned, replacing
from majorant.persistence.archive import read_archive, write_archive
from majorant.persistence.codec import Decoder, Encoder
from majorant.persistence.errors import FAULTS_OF_A_FILE, SavedModelError, UnknownModelError, UnsavableError
from majorant.persistence.values import check_estimates
from majorant.registry import CARDS, ESTIMATORS, card_of, known

__all__ = ["SavedModelError", "UnknownModelError", "UnsavableError", "load", "load_with_extra", "replacing", "save"]

FORMAT = 1
_KIND = "majorant model"
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
        raise type(error)(f"{name} is not a model that can be loaded: {error}") from error
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
        raise UnknownModelError(
            f"it holds a model {meta['model']!r}; known are {', '.join(sorted(CARDS))}: import the file that registers "
            "it first"
        ) from None
    parameters = {name: decoder.decode(value) for name, value in meta["parameters"].items()}
    estimator = estimator_class(**parameters)
    for name, value in meta["fitted"].items():
        if not _is_fitted_attribute(name):
            raise SavedModelError(f"it sets {name!r}, which is no fitted attribute")
        setattr(estimator, name, decoder.decode(value))
    check_estimates(estimator)
    return estimator, decoder.decode(meta["extra"])


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
