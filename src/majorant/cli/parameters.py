"""What does ``majorant fit MODEL --help`` show? What a model is for, and its parameters by its docstring."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from majorant.cli.settings import build_estimator, find_model
from majorant.registry import ESTIMATORS
from majorant.summary.text import WIDTH, wrapped

_GIVEN_BY = {"random_state": "--random-state", "views": "--views", "family": "--family", "gating": "--gating"}
"""Parameters that have an option of their own."""
_ELSEWHERE = re.compile(r"See (\w+)\.")


class Parameter(NamedTuple):
    """An entry of a section "Parameters"."""

    name: str
    kind: str
    text: str


def documented_parameters(cls: type) -> Iterator[Parameter]:
    """The parameters of a class, from its docstring or from that of the model to which it sends a reader."""
    for parameter in _entries(cls):
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
    """Words without the marks of reStructuredText."""
    for mark, word in (
        (r"\[\d+\]_", ""),
        (r":\w+:`", "`"),
        (r"\\mathrm\{(\w+)\}", r"\1"),
        (r"\\mid\b", "|"),
        (r"\\,", " "),
    ):
        text = re.sub(mark, word, text)
    return re.sub(r"\\(?=[a-zA-Z])", "", text.replace("`", "")).replace(" .", ".")


def model_help(name: str) -> str:
    """What a model is for and its parameters, each with what gives it on the command line.

    Raises
    ------
    CommandError
        If there is no such model.
    """
    card = find_model(name)
    lines = wrapped(f"{card.title}: {card.question}", WIDTH)
    target = "needs --target" if card.needs_target else "takes --target" if card.by_target else "has no target"
    lines += [f"It {target}; the estimator is majorant.{ESTIMATORS[card.name].__name__}.", "", "Parameters:"]
    defaults = build_estimator(card, None, [], 0).get_params(deep=False)
    for parameter in documented_parameters(ESTIMATORS[card.name]):
        if parameter.name not in defaults:
            continue
        option = "--k" if parameter.name == card.size_parameter else _GIVEN_BY.get(parameter.name, "--set")
        given = f"--set {parameter.name}=" if option == "--set" else f"{option}  ({parameter.name})"
        lines += ["", *wrapped(f"{given}  {parameter.kind}", WIDTH, "  ", "      ")]
        for paragraph in re.split(r"\n\s*\n", parameter.text):
            lines += wrapped(" ".join(paragraph.split()), WIDTH, "      ")
    return "\n".join(lines)
