"""The model and its parameters, from the arguments of a command."""

from __future__ import annotations

import ast
import csv
import io
import re
from collections.abc import Sequence
from typing import Any

from majorant._numbers import plural_of
from majorant.cli.errors import CommandError, did_you_mean, listed
from majorant.registry import CARDS, ESTIMATORS, ModelCard, card_named, discover, model_names

_EXAMPLES = {"--set": "tol=1e-6", "--vary": "covariance_type=full,tied,diag"}
_OTHER_NAMES = {
    "discriminative-latent-classes": "dlc",
    "gaussian-mixture": "em gaussianmixture gmm mclust mog normalmixture normalmixtures",
    "hmm": "depmix hiddenmarkov hiddenmarkovmodel hmmlearn markovswitching",
    "kmedoids": "clara pam",
    "latent-class-analysis": "latentclass latentclasses latentprofile latentprofiles lca lpa polca stepmix",
    "latent-svc": "latentsvm lsvm mil",
    "regression-mixture": "clusterwise flexmix fmm mixreg mixtools mixtureofexperts moe regmix",
}
"""Names that other software and papers have for models, without signs."""
_WORDS = {"true": True, "false": False, "none": None, "inf": float("inf"), "nan": float("nan")}


def known_models() -> dict[str, ModelCard]:
    """Return the cards of all models by name."""
    discover()
    return dict(sorted(CARDS.items()))


def find_model(name: str) -> ModelCard:
    """Return the card of a model; raise CommandError with the nearest name if there is none."""
    check_model(name)
    return card_named(name)


def check_model(name: str) -> None:
    """Raise CommandError with the nearest name for a model that does not exist."""
    known = model_names()
    if name not in known:
        plain = re.sub(r"[^a-z]", "", name.lower())
        meant = next((own for own, others in _OTHER_NAMES.items() if plain in others.split()), name)
        raise CommandError(f'there is no model "{name}".{did_you_mean(meant, known)}', f"Models: {listed(known)}.")


def takes(model: str, name: str) -> bool:
    """Return whether the model exists and has a parameter of this name."""
    return model in known_models() and name in ESTIMATORS[model]().get_params(deep=False)


def allows_missing(estimator: Any) -> bool:
    """Return whether the model takes missing values in its features."""
    from sklearn.utils import get_tags

    return bool(get_tags(estimator).input_tags.allow_nan)


def parsed_size(text: str) -> int | range:
    """Parse ``--k``: a number of parts, or a range of numbers."""
    found = re.fullmatch(r"([0-9]{1,9})(?::([0-9]{1,9}))?", text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= first <= last:
        raise CommandError(
            f"--k must be a whole number of at least 1, or a range of them; got {text}.",
            "For example --k 3 or --k 1:6.",
        )
    return range(first, last + 1) if found and found[2] else first


def parsed_names(text: str) -> tuple[str, ...]:
    """Parse names separated by commas; a name that contains a comma is in double quotes."""
    return tuple(next(csv.reader([text], skipinitialspace=True), [])) or ("",)


def joined_names(names: Sequence[str]) -> str:
    """Join names by commas; the inverse of `parsed_names`."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def parsed_lists(card: ModelCard, estimator: Any, vary: Sequence[str]) -> dict[str, Any]:
    """Parse values of parameters to compare, each given as ``name=a,b,c``."""
    names = sorted(estimator.get_params(deep=False))
    found: dict[str, Any] = {}
    for text in vary:
        name, values = _parsed_setting(card, text, names, option="--vary")
        if name == card.size_parameter:
            raise CommandError(f"--vary cannot vary {name}.", "Give a range, such as --k 1:6.")
        if name in found:
            raise CommandError(f"--vary {name}=... is given twice.", "Give it once, with all values.")
        listed = [_parsed_value(v) for v in parsed_names(values)] if isinstance(values, str) else values
        found[name] = list(listed) if isinstance(listed, list | tuple) else [listed]
    return found


def build_estimator(card: ModelCard, k: int | None, settings: Sequence[str], random_state: int) -> Any:
    """Build an estimator, not fitted yet.

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
        if card.size_parameter is None:
            raise CommandError(
                f"{card.title} takes no --k: it has as many {plural_of(card.part)} as its target.",
                f"--k is for {listed([n for n, other in known_models().items() if other.size_parameter is not None])}.",
            )
        if card.size_parameter in chosen:
            raise CommandError(f"--k and --set {card.size_parameter}=... say the same.", "Give one of them.")
        chosen[card.size_parameter] = k
    if "random_state" in names:
        chosen.setdefault("random_state", random_state)
    return estimator.set_params(**chosen)


def _parsed_setting(card: ModelCard, setting: str, names: Sequence[str], option: str = "--set") -> tuple[str, Any]:
    name, equals, text = setting.partition("=")
    name = name.strip()
    if not equals:
        raise CommandError(f'{option} takes name=value; got "{setting}".', f"For example {option} {_EXAMPLES[option]}.")
    if name not in names:
        able = [other for other in card.by_target or () if name in ESTIMATORS[other]().get_params(deep=False)]
        if able:
            raise CommandError(
                f'{card.title} without a target has no parameter "{name}": it is one of {" and ".join(able)}.',
                "Name the column to predict with --target.",
            )
        raise CommandError(
            f'{card.title} has no parameter "{name}".{did_you_mean(name, names)}', f"Parameters: {listed(names)}."
        )
    return name, _parsed_value(text.strip())


def _parsed_value(text: str) -> Any:
    """Parse a Python number, truth value, None, list or tuple, or names with commas between; anything else is text."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        names = text.split(",")
        return names if len(names) > 1 and all(map(str.isidentifier, names)) else text
