"""The text of ``majorant fit MODEL --help``: a model's purpose, and its parameters from its docstring."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

import majorant
from majorant.cli.settings import build_estimator, find_model
from majorant.registry import ESTIMATORS
from majorant.summary.text import WIDTH, wrapped

_GIVEN_BY = {
    "random_state": ("--random-state S", "int, default=0", "Seed: a command repeats to the last bit."),
    "views": ("--views FILE", "file, optional", "TOML file that says which columns are which view, and of which kind."),
    "family": ("--family NAME", "", ""),
}
"""Parameters with an option of their own, and the description of those that the command line takes differently."""
_ELSEWHERE = re.compile(r"See (\w+)\.")


class Parameter(NamedTuple):
    """An entry of a docstring's section "Parameters"."""

    name: str
    kind: str
    text: str


def documented_parameters(cls: type) -> Iterator[Parameter]:
    """List the parameters of a class, from its docstring, its bases' or that of the model to which it refers."""
    by_name: dict[str, Parameter] = {}
    for base in reversed(cls.__mro__):
        by_name |= {parameter.name: parameter for parameter in _entries(base)}
    for parameter in by_name.values():
        elsewhere = _ELSEWHERE.fullmatch(parameter.text)
        there = {} if elsewhere is None else {p.name: p for p in _entries(_estimator(elsewhere[1]))}
        yield there.get(parameter.name, parameter)


def _estimator(name: str) -> type:
    return next((cls for cls in ESTIMATORS.values() if cls.__name__ == name), object)


def _entries(cls: type) -> Iterator[Parameter]:
    doc = inspect.getdoc(cls) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-{3,}$|\Z)", doc, flags=re.MULTILINE | re.DOTALL)
    entries = re.split(r"^(?=\S)", section[1] if section else "", flags=re.MULTILINE)
    for entry in filter(str.strip, entries):
        head, _, body = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        for name in names.split(","):
            yield Parameter(name.strip(), _plain(kind), _plain(textwrap.dedent(body).strip()))


def _plain(text: str) -> str:
    """Return the text without reStructuredText markup."""
    for mark, word in (
        (r"\b(of|in|by) \[\d+\]_", r"\1 the paper"),
        (r"\[\d+\]_", ""),
        (r":\w+:`", "`"),
        (r"\\mathrm\{(\w+)\}", r"\1"),
        (r"\\mid\b", "|"),
        (r"\\,", " "),
        (r"\\frac12\s*", "1/2 "),
        (r"\^\\top\s*", "'"),
    ):
        text = re.sub(mark, word, text)
    return re.sub(r"\\(?=[a-zA-Z])", "", text.replace("`", "")).replace(" .", ".")


def model_help(name: str) -> str:
    """Return a model's purpose and its parameters, each with its option on the command line.

    Raises
    ------
    CommandError
        If there is no such model.
    """
    card = find_model(name)
    lines = wrapped(f"{card.title}: {card.question}", WIDTH)
    target = "needs --target" if card.needs_target else "takes --target" if card.by_target else "has no target"
    cls = ESTIMATORS[card.name]
    home = "majorant" if cls.__name__ in majorant.__all__ else cls.__module__
    told = f"It {target}; the estimator is {home}.{cls.__name__}."
    if card.by_target:
        told += f" With a target it is {' or '.join(card.by_target)}, which --help explains too."
    lines += [*wrapped(told, WIDTH), "", "Parameters:"]
    defaults = build_estimator(card, None, [], 0).get_params(deep=False)
    for parameter in documented_parameters(cls):
        if parameter.name not in defaults:
            continue
        option, kind, text = _GIVEN_BY.get(parameter.name, (f"--set {parameter.name}=", "", ""))
        if parameter.name == card.size_parameter:
            option = "--k K"
        own = "" if option.startswith("--set") else f"  ({parameter.name})"
        lines += ["", *wrapped(f"{option}{own}  {kind or parameter.kind}", WIDTH, "  ", "      ")]
        for paragraph in re.split(r"\n\s*\n", text or parameter.text):
            lines += wrapped(" ".join(paragraph.split()), WIDTH, "      ")
    return "\n".join(lines)
