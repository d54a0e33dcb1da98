"""Shell completion of models and their parameters, without importing a model."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import typer


def model_names(incomplete: str) -> list[str]:
    """List the names of models with this prefix."""
    return sorted(name for name in parameters_by_model() if name.startswith(incomplete))


def parameter_settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """List settings that ``--set`` takes for the model before it, with defaults: ``tol=0.0001`` and so on."""
    known = parameters_by_model()
    # the parser gives up where an option has no value yet, and leaves what it read so far
    model = next((word for word in (ctx.params.get("model"), *ctx.args) if word in known), "")
    return [f"{name}={value}" for name, value in known.get(model, {}).items() if name.startswith(incomplete)]


def parameters_by_model() -> dict[str, dict[str, str]]:
    """Return the parameters of each registered model and their defaults, from the text of its class.

    Importing them all would take two seconds, too long for completion.
    """
    home = find_spec("majorant.models")
    folders = (home.submodule_search_locations if home else None) or ()
    texts = [path.read_text(encoding="utf-8") for folder in folders for path in sorted(Path(folder).rglob("*.py"))]
    found: dict[str, dict[str, str]] = {}
    for text in texts:
        if "@register(" in text:
            found |= _registered(ast.parse(text), texts)
    return found


def _registered(module: ast.Module, texts: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the name on the card and the parameters of every class registered in a module."""
    for cls in module.body:
        if not isinstance(cls, ast.ClassDef):
            continue
        for call in (node for decorator in cls.decorator_list for node in ast.walk(decorator)):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in ("ModelCard", "mixture_card"):
                yield next(ast.literal_eval(k.value) for k in call.keywords if k.arg == "name"), _parameters(cls, texts)


def _parameters(cls: ast.ClassDef, texts: Sequence[str]) -> dict[str, str]:
    """Return the parameters and their defaults, without those that are no plain value or special to a shell."""
    start = next((f for f in cls.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None)
    if start is None:
        return next(filter(None, (_parameters(base, texts) for base in _bases(cls, texts))), {})
    plain, named = start.args.args[1:], start.args.kwonlyargs
    given = [*[None] * (len(plain) - len(start.args.defaults)), *start.args.defaults, *start.args.kw_defaults]
    defaults = {
        parameter.arg: str(value.value) if isinstance(value, ast.Constant) else ""
        for parameter, value in zip([*plain, *named], given, strict=True)
    }
    return {name: value if re.fullmatch(r"[\w.+-]*", value) else "" for name, value in sorted(defaults.items())}


def _bases(cls: ast.ClassDef, texts: Sequence[str]) -> Iterator[ast.ClassDef]:
    """Yield the classes in these texts from which one is derived."""
    for name in map(ast.unparse, cls.bases):
        for text in texts:
            if f"class {name}(" in text:
                yield from (c for c in ast.parse(text).body if isinstance(c, ast.ClassDef) and c.name == name)
