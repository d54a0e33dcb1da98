"""Which model is meant, and with which parameters?"""

from __future__ import annotations

import ast
import csv
import io
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from majorant.cli.errors import CommandError, did_you_mean, listed
from majorant.registry import CARDS, ESTIMATORS, ModelCard

_WORDS = {"true": True, "false": False, "none": None, "inf": float("inf"), "nan": float("nan")}


def known_models() -> dict[str, ModelCard]:
    """The cards of all models, by name."""
    import_module("majorant.models")
    return dict(sorted(CARDS.items()))


def find_model(name: str) -> ModelCard:
    """The card of a model, or an error that suggests the nearest name."""
    models = known_models()
    if name not in models:
        names = list(models)
        raise CommandError(f'there is no model "{name}".{did_you_mean(name, names)}', f"Models: {listed(names)}.")
    return models[name]


def allows_missing(estimator: Any) -> bool:
    """Whether the model takes missing values in its features."""
    from sklearn.utils import get_tags

    return bool(get_tags(estimator).input_tags.allow_nan)


def parsed_size(text: str) -> int:
    """The number of parts that ``--k`` names."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) >= 1):
        raise CommandError(f"--k must be a whole number of at least 1; got {text}.")
    return int(text)


def parsed_names(text: str) -> tuple[str, ...]:
    """Names with commas between them; a name with a comma in it stands in double quotes."""
    return tuple(next(csv.reader([text], skipinitialspace=True), []))


def joined_names(names: Sequence[str]) -> str:
    """The inverse of `parsed_names`."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def build_estimator(card: ModelCard, k: int | None, settings: Sequence[str], random_state: int) -> Any:
    """An estimator that is not fitted yet.

    Parameters
    ----------
    card : ModelCard
        The model.
    k : int or None
        Number of parts; None for the model's own default.
    settings : sequence of str
        Other parameters, each as ``name=value``.
    random_state : int
        The seed.
    """
    estimator = ESTIMATORS[card.name]()
    names = sorted(estimator.get_params(deep=False))
    given = [_parsed_setting(card, setting, names) for setting in settings]
    chosen = dict(given)
    if len(chosen) < len(given):
        twice = next(name for name in chosen if sum(name == other for other, _ in given) > 1)
        raise CommandError(f"--set {twice}=... is given twice.", "Give it once.")
    if k is not None:
        if card.size_parameter in chosen:
            raise CommandError(f"--k and --set {card.size_parameter}=... say the same.", "Give one of them.")
        chosen[card.size_parameter] = k
    if "random_state" in names:
        chosen.setdefault("random_state", random_state)
    return estimator.set_params(**chosen)


def _parsed_setting(card: ModelCard, setting: str, names: Sequence[str]) -> tuple[str, Any]:
    name, equals, text = setting.partition("=")
    name = name.strip()
    if not equals:
        raise CommandError(f'--set takes name=value; got "{setting}".', "For example --set tol=1e-6.")
    if name not in names:
        raise CommandError(
            f'{card.title} has no parameter "{name}".{did_you_mean(name, names)}', f"Parameters: {listed(names)}."
        )
    return name, _parsed_value(text.strip())


def _parsed_value(text: str) -> Any:
    """A number, truth value, None, list or tuple as Python writes it; anything else is text."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
