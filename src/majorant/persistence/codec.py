"""Encoding of values as JSON and arrays, and back; only the kinds listed here can be loaded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

import majorant.engine
from majorant.engine.trace import Trace
from majorant.formulas import Formula
from majorant.persistence.archive import ARRAY_KINDS
from majorant.persistence.errors import SavedModelError, UnsavableError
from majorant.registry import VALUES, known
from majorant.search import SearchReport
from majorant.solvers.responses import RESPONSES

_GENERATORS: dict[str, type[Any]] = {"PCG64": np.random.PCG64, "PCG64DXSM": np.random.PCG64DXSM}
_POLICY_MODULES = ("majorant.engine.policies", "majorant.engine.biases", "majorant.engine.coherence")
RESPONSE_CLASSES: dict[str, type[Any]] = {type(response).__name__: type(response) for response in RESPONSES.values()}
_TWISTER_LENGTH = 624


def policy_classes() -> dict[str, type[Any]]:
    """Return the engine's public bound policies and biases by name, the only classes of saved parameters."""
    found = {name: getattr(majorant.engine, name) for name in majorant.engine.__all__}
    return {name: cls for name, cls in found.items() if isinstance(cls, type) and cls.__module__ in _POLICY_MODULES}


def _constructor_arguments(value: Any) -> dict[str, Any]:
    """Return the constructor's arguments of a policy, which are stored under their own names."""
    return {name: getattr(value, name) for name in signature(type(value)).parameters}


class Encoder:
    """Encoder of values as JSON; arrays are collected in `arrays` under their names in the file."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}

    def encode(self, value: Any, what: str) -> Any:
        """Encode a value as JSON; `what` names it in the error."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if type(value) is list:
            return [self.encode(v, what) for v in value]
        if type(value) is tuple:
            return {"tuple": [self.encode(v, what) for v in value]}
        if type(value) is slice:
            return {"slice": [self.encode(v, what) for v in (value.start, value.stop, value.step)]}
        if type(value) is dict:
            return {"dict": [[self.encode(k, what), self.encode(v, what)] for k, v in value.items()]}
        if isinstance(value, np.generic):
            return self._scalar(value, what)
        if type(value) in (np.ndarray, np.memmap):
            return self._array(value, what)
        if isinstance(value, SearchReport):
            plain_numbers = SearchReport.from_state(value.to_state())
            return {"search": self.encode(plain_numbers.to_state(), what)}
        if isinstance(value, Trace):
            return {"trace": self.encode(value.to_state(), what)}
        if isinstance(value, Formula):
            return {"formula": self.encode(value.to_state(), what)}
        return self._object(value, what)

    def _scalar(self, value: np.generic, what: str) -> dict[str, Any]:
        if value.dtype.kind not in ARRAY_KINDS:
            raise UnsavableError(f"{what} is a single value of type {value.dtype}, which cannot be saved")
        array = np.asarray(value)
        return {"scalar": array.dtype.str, "bytes": array.tobytes().hex()}

    def _array(self, array: NDArray[Any], what: str) -> dict[str, Any]:
        if array.dtype.kind == "O":
            texts = array.ravel().tolist()
            if not all(type(text) is str for text in texts):
                raise UnsavableError(f"{what} is an array of objects that are not all text, which cannot be saved")
            return {"texts": texts, "shape": list(array.shape)}
        if array.dtype.kind not in ARRAY_KINDS or array.dtype.fields is not None:
            raise UnsavableError(
                f"{what} is an array of type {array.dtype}, which cannot be saved; keep the model with pickle"
            )
        name = f"arrays/{len(self.arrays)}.npy"
        self.arrays[name] = np.asarray(array)
        return {"array": name}

    def _object(self, value: Any, what: str) -> dict[str, Any]:
        if isinstance(value, np.random.RandomState):
            return {"random_state": [self.encode(v, what) for v in _twister_state(value)]}
        if isinstance(value, np.random.Generator):
            kind = type(value.bit_generator).__name__
            if kind in _GENERATORS:
                return {"generator": kind, "state": self.encode(dict(value.bit_generator.state), what)}
            raise UnsavableError(f"{what} is a random generator {kind}; only {', '.join(_GENERATORS)} can be saved")
        name = type(value).__name__
        if policy_classes().get(name) is type(value):
            arguments = {k: self.encode(v, what) for k, v in _constructor_arguments(value).items()}
            return {"policy": name, "arguments": arguments}
        if RESPONSE_CLASSES.get(name) is type(value):
            arguments = {k: self.encode(v, what) for k, v in _constructor_arguments(value).items()}
            return {"response": name, "arguments": arguments}
        if VALUES.get(name) is type(value):
            arguments = {k: self.encode(v, what) for k, v in _constructor_arguments(value).items()}
            return {"value": name, "arguments": arguments}
        if callable(value):
            raise UnsavableError(
                f"{what} is a function ({getattr(value, '__qualname__', name)}), which cannot be saved; "
                "fit with one of the named choices instead, or keep the model with pickle"
            )
        raise UnsavableError(
            f"{what} is a {type(value).__module__}.{name}, which cannot be saved; keep the model with pickle"
        )


class Decoder:
    """The inverse of `Encoder`."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.arrays = arrays

    def decode(self, value: Any) -> Any:
        """Decode a value from JSON.

        Raises
        ------
        SavedModelError
            If the JSON describes nothing that majorant saves. Malformed JSON may also raise KeyError, TypeError and so
            on; the caller converts all of them.
        """
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) is list:
            return [self.decode(v) for v in value]
        match value:
            case {"float": str(text), **rest} if not rest and text in ("inf", "-inf", "nan"):
                return float(text)
            case {"tuple": list(items), **rest} if not rest:
                return tuple(self.decode(v) for v in items)
            case {"slice": [start, stop, step], **rest} if not rest:
                return slice(self.decode(start), self.decode(stop), self.decode(step))
            case {"dict": list(pairs), **rest} if not rest:
                return {self.decode(k): self.decode(v) for k, v in pairs}
            case {"array": str(name), **rest} if not rest:
                return self.arrays[name]
            case {"texts": list(), "shape": list(), **rest} if not rest:
                return _text_array(value["texts"], value["shape"])
            case {"scalar": str(kind), "bytes": str(digits), **rest} if not rest:
                return _scalar(np.dtype(kind), bytes.fromhex(digits))
            case _:
                return self._object(value)

    def _object(self, value: Mapping[str, Any]) -> Any:
        match value:
            case {"search": state, **rest} if not rest:
                return SearchReport.from_state(self.decode(state))
            case {"trace": state, **rest} if not rest:
                return Trace.from_state(self.decode(state))
            case {"formula": state, **rest} if not rest:
                return Formula.from_state(self.decode(state))
            case {"policy": str(name), "arguments": dict(state), **rest} if not rest:
                return policy_classes()[name](**{k: self.decode(v) for k, v in state.items()})
            case {"response": str(name), "arguments": dict(state), **rest} if not rest:
                return RESPONSE_CLASSES[name](**{k: self.decode(v) for k, v in state.items()})
            case {"value": str(name), "arguments": dict(state), **rest} if not rest:
                return known(name, VALUES)(**{k: self.decode(v) for k, v in state.items()})
            case {"random_state": list(state), **rest} if not rest:
                return _twister(*(self.decode(v) for v in state))
            case {"generator": str(kind), "state": state, **rest} if not rest:
                bits = _GENERATORS[kind]()
                bits.state = self.decode(state)
                return np.random.Generator(bits)
        raise SavedModelError(f"it describes a value that majorant never saves: {sorted(value)[:3]}")


def _scalar(dtype: np.dtype[Any], content: bytes) -> Any:
    if dtype.kind not in ARRAY_KINDS or len(content) != dtype.itemsize:
        raise SavedModelError(f"a single value of type {dtype} has {len(content)} bytes")
    return np.frombuffer(content, dtype)[0]


def _text_array(texts: list[Any], shape: list[Any]) -> NDArray[Any]:
    if not all(type(text) is str for text in texts) or not all(type(n) is int and n >= 0 for n in shape):
        raise SavedModelError("an array of text holds something else")
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array.reshape(shape)


def _twister_state(state: np.random.RandomState) -> tuple[Any, ...]:
    kind, key, position, has_gauss, cached = state.get_state(legacy=True)
    if kind != "MT19937":
        raise UnsavableError(f"a RandomState of kind {kind} cannot be saved")
    return key, int(position), int(has_gauss), float(cached)


def _twister(key: Any, position: Any, has_gauss: Any, cached: Any) -> np.random.RandomState:
    # numpy reads the key at this position without a check of its own
    if not (type(position) is int and 0 <= position <= _TWISTER_LENGTH):
        raise SavedModelError(f"a random state is at the impossible position {position!r}")
    if not (isinstance(key, np.ndarray) and key.shape == (_TWISTER_LENGTH,) and key.dtype == np.uint32):
        raise SavedModelError("a random state has no key of 624 whole numbers")
    state = np.random.RandomState()
    state.set_state(("MT19937", key, position, int(has_gauss), float(cached)))
    return state
