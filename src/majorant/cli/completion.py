"""What does the Tab key offer? Names of models and of their parameters, read without importing a model."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import typer


def model_names(incomplete: str) -> list[str]:
    """Names of models that begin so."""
    return sorted(name for name in parameters_by_model() if name.startswith(incomplete))


def parameter_settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """What ``--set`` takes of the model that stands before it: ``tol=`` and the like."""
    known = parameters_by_model()
    # the parser gives up where an option has no value yet, and leaves what it read so far
    model = next((word for word in (ctx.params.get("model"), *ctx.args) if word in known), "")
    return [f"{name}=" for name in known.get(model, ()) if name.startswith(incomplete)]


def parameters_by_model() -> dict[str, tuple[str, ...]]:
    """The parameters of each registered model, from the text of its class: importing them all takes two seconds."""
    found: dict[str, tuple[str, ...]] = {}
    home = find_spec("majorant.models")
    for folder in (home.submodule_search_locations if home else None) or ():
        for path in sorted(Path(folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if "@register(" in text:
                found |= _registered(ast.parse(text))
    return found


def _registered(module: ast.Module) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Name on the card and parameters of every class that is registered in a module."""
    for cls in module.body:
        if not isinstance(cls, ast.ClassDef):
            continue
        for call in (node for decorator in cls.decorator_list for node in ast.walk(decorator)):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "ModelCard":
                yield next(ast.literal_eval(k.value) for k in call.keywords if k.arg == "name"), _parameters(cls)


def _parameters(cls: ast.ClassDef) -> tuple[str, ...]:
    start = next((f for f in cls.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None)
    return () if start is None else tuple(sorted(a.arg for a in (*start.args.args[1:], *start.args.kwonlyargs)))
