"""The text of ``majorant fit MODEL --help``: a model's purpose, and its parameters from its docstring."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from typing import NamedTuple

from typer.main import get_command

import majorant
from majorant._numbers import plural_of
from majorant.cli.formulas import takes_option
from majorant.cli.settings import build_estimator, find_model
from majorant.registry import ESTIMATORS, ModelCard
from majorant.summary.text import WIDTH, wrapped

_GIVEN_BY = {
    "random_state": ("--random-state S", "int, default=0", "Seed: a command repeats to the last bit."),
    "views": ("--views FILE", "file, optional", "TOML file that says which columns are which view, and of which kind."),
    "family": ("--family NAME", "", ""),
    "population": ("--population COLUMN", "column, optional", "Which population each row is from."),
    "equal_items": ("--equal-items ITEMS", "", ""),
    "missing": ("--missing HOW", "{drop, fit, fail}", "Rows that lack a value: left out, fitted, or an error."),
}
"""Parameters with an option of their own, and the description of those that the command line takes differently."""
_TOGETHER = {
    "What is modelled": ("target", "features", "formula", "family", "views", "levels", "time", "sequence", "bag"),
    "What the {parts} depend on": ("covariates", "gating", "groups", "offset", "trials"),
    "What depends on the {parts}, once they are found": ("outcomes",),
    "How covariates and outcomes are taken in": ("method", "assignment"),
    "Several populations": ("population", "equal-items", "invariance-tests"),
    "Rows": ("weights", "missing", "component-labels", "id", "keep"),
}
"""Options that belong together, by what they are for."""
_ALL_COLUMNS = "Columns to use; all by default but those that number rows or are named by other options."
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
        (r"\s*\[\d+\]_", ""),
        (r":\w+:`", "`"),
        (r"\\mathrm\{(\w+)\}", r"\1"),
        (r"\\mid\b", "|"),
        (r"\\,", " "),
        (r"\\frac12\s*", "1/2 "),
        (r"\^\\top\s*", "'"),
        (r"\.\. math::|\\big[lr]", ""),
        (r"\\cdot", "."),
        (r"\be\^\{([^{}]*)\}", r"exp(\1)"),
        (r"_\{(\w+)\}", r"_\1"),
    ):
        text = re.sub(mark, word, text)
    return re.sub(r"\\(?=[a-zA-Z])", "", text.replace("`", ""))


def model_help(name: str) -> str:
    """Return a model's purpose and its parameters, each with its option on the command line."""
    card = find_model(name)
    lines = wrapped(f"{card.title}: {card.question}", WIDTH)
    target = "needs --target" if card.needs_target else "takes --target" if card.by_target else "has no target"
    cls = ESTIMATORS[card.name]
    home = "majorant" if cls.__name__ in majorant.__all__ else cls.__module__
    told = f"It {target}; the estimator is {home}.{cls.__name__}."
    if card.by_target:
        told += f" With a target it is {' or '.join(card.by_target)}, which --help explains too."
    lines += [*wrapped(told, WIDTH), *_options(card), "", "Parameters:"]
    defaults = build_estimator(card, None, [], 0).get_params(deep=False)
    entries = []
    for parameter in documented_parameters(cls):
        option, kind, text = _GIVEN_BY.get(parameter.name, (f"--set {parameter.name}=", "", ""))
        if parameter.name in defaults:
            entries.append((option, parameter._replace(kind=kind or parameter.kind, text=text or parameter.text)))
    for text, alike in groupby(entries, lambda entry: entry[1].text):
        lines.append("")
        for option, parameter in alike:
            if parameter.name == card.size_parameter:
                option = "--k K"
            own = "" if option.startswith("--set") else f"  ({parameter.name})"
            lines += wrapped(f"{option}{own}  {parameter.kind}", WIDTH, "  ", "      ")
        for paragraph in re.split(r"\n\s*\n", text):
            lines += wrapped(" ".join(paragraph.split()), WIDTH, "      ")
    return "\n".join(lines)


def _options(card: ModelCard) -> Iterator[str]:
    """List the options that say what the columns of a table are to a model, by what they are for."""
    command = get_command(import_module("majorant.cli.app").app)
    known = {option.opts[0].removeprefix("--"): option for option in command.commands["fit"].params}  # type: ignore[attr-defined]
    for head, names in _TOGETHER.items():
        if shown := [name for name in names if _is_for(card, name)]:
            yield from ("", f"{head.format(parts=plural_of(card.part))}:")
            for name in shown:
                option = known[name]
                metavar = "" if option.is_flag else f" {option.metavar}"
                told = _ALL_COLUMNS if name == "features" and card.takes_text else option.help
                told = re.sub("[,;] for models that [^.]*", "", told)
                yield from wrapped(f"--{name}{metavar}  {told}", WIDTH, "  ", "      ")


def _is_for(card: ModelCard, option: str) -> bool:
    if option in ("features", "missing", "id", "keep"):
        return True
    if option in ("time", "sequence"):
        return card.in_order
    if option in ("target", "levels"):
        return card.takes_text if option == "levels" else card.needs_target or card.by_target is not None
    return takes_option(ESTIMATORS[card.name], option)
