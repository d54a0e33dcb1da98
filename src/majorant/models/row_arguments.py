"""One method for many models: it is written once, with ``**rows``, and has in each model the arguments of its rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

R = TypeVar("R")
ORDER = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def rows_as(reader: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Decorate a method ``f(self, X, **rows)``: its rows are given as to the model's method of the name `reader`.

    In every subclass, `with_row_arguments` makes these arguments those of the method, and writes their names into its
    docstring in the place of ``{rows}``.
    """

    def mark(method: Callable[..., R]) -> Callable[..., R]:
        method.reader = reader  # type: ignore[attr-defined]
        return method

    return mark


def with_row_arguments(cls: type[Any]) -> dict[str, Callable[..., Any]]:
    """Return the methods of a class that `rows_as` decorates, each with the arguments of this class."""
    made: dict[str, Callable[..., Any]] = {}

    def of(name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(cls, name)
        if hasattr(method, "reader") and name not in made:
            made[name] = _written_out(getattr(method, "general", method), of(method.reader))
        return made.get(name, method)

    for name in dir(cls):
        of(name)
    return made


def _written_out(method: Callable[..., R], reader: Callable[..., Any]) -> Callable[..., R]:
    """Return the method with the arguments of the reader in the place of ``**rows``."""
    form = signature(method)
    own = [p for p in form.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    rows = [p for name, p in signature(reader).parameters.items() if name not in form.parameters]
    told = form.replace(parameters=sorted([*own, *rows], key=lambda p: ORDER.index(p.kind)))

    @wraps(method)
    def written_out(*arguments: Any, **keywords: Any) -> R:
        try:
            call = told.bind(*arguments, **keywords)
        except TypeError as error:
            raise TypeError(f"{method.__name__}: {error}") from None
        return method(**call.arguments)

    written_out.general, written_out.__signature__ = method, told  # type: ignore[attr-defined]
    written_out.__doc__ = (method.__doc__ or "").replace("{rows}", ", ".join(p.name for p in rows))
    return written_out
