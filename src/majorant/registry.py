"""The registry of models: each model file registers a card, used by the command line, reports and saving."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Literal, TypeVar

Estimator = TypeVar("Estimator", bound=type)
Value = TypeVar("Value", bound=type)


@dataclass(frozen=True)
class ModelCard:
    """What the command line and the report need to know about a model.

    Attributes
    ----------
    name : str
        The name on the command line, lower case ("kmeans").
    title : str
        The name in text, lower case ("k-means").
    question : str
        The question that the model answers, in one line.
    kind : {"clustering", "mixture", "regression", "classification", "representation"}
        Kind of model, which determines the sections of the report.
    size_parameter : str or None
        The estimator's parameter that ``--k`` sets ("n_clusters"); None if the parts are the classes of the target.
    part : str
        The word for a part of the model, in the singular ("cluster").
    objective_name : str
        Short name of the objective ("SSE").
    objective_title : str
        The objective in words ("sum of squared distances").
    objective_attribute : str
        Fitted attribute with the objective ("inertia_").
    needs_target : bool
        Whether ``fit`` takes y.
    by_target : tuple of (str, str) or None
        For a model without target: the names of the models for a target of classes and of numbers.
    objective_set_by : tuple of str
        Parameters that are part of the objective, such as a penalty, without which values cannot be compared.
    directions_attribute : str
        Fitted attribute with the number of directions of which the likelihood is a density, if it may be fewer than
        columns; fits that differ in it cannot be compared.
    estimates : tuple of str
        Fitted attributes of numbers without which nothing can be predicted; a file that lacks one is refused.
    shapes : dict of str to str
        Shapes of the arrays that predictions read, a letter for each axis; a file with others is refused. Axes of one
        letter are equally long, "d" is the number of columns, "m" that of a kernel's axes (of columns without a
        kernel), "g" that of covariates of `gating` where these have names, "h" one more, "1" and "2" are themselves,
        "*" is any number of axes. A space stands between alternatives, and "full:kdd" holds for covariance_type="full"
        alone.
    sections : tuple of str
        Sections of the report besides those of its kind, as "module:function"; see `majorant.report.section`.
    takes_text : bool
        Whether columns of a table may hold text.
    page : str
        The page of the report, where it is not that of the kind.
    in_order : bool
        Whether rows follow each other in time, so that their order is part of the data.
    """

    name: str
    title: str
    question: str
    kind: Literal["clustering", "mixture", "regression", "classification", "representation"]
    size_parameter: str | None
    part: str
    objective_name: str
    objective_title: str
    objective_attribute: str
    needs_target: bool = False
    by_target: tuple[str, str] | None = None
    objective_set_by: tuple[str, ...] = ()
    directions_attribute: str = ""
    estimates: tuple[str, ...] = ()
    shapes: Mapping[str, str] = field(default_factory=dict, compare=False)
    sections: tuple[str, ...] = ()
    takes_text: bool = False
    page: str = ""
    in_order: bool = False

    def size_of(self, estimator: Any) -> Any:
        """Return the number of parts that an estimator has or was asked for."""
        if self.size_parameter is None:
            return len(estimator.classes_)
        return getattr(estimator, self.size_parameter)

    def with_size(self, estimator: Any, size: int) -> Any:
        """Return the estimator with another number of parts.

        Raises
        ------
        TypeError
            If the number of parts cannot be chosen.
        """
        if self.size_parameter is None:
            raise TypeError(f"the parts of a {self.title} are the classes of its target: their number cannot be chosen")
        return estimator.set_params(**{self.size_parameter: size})


def mixture_card(*, name: str, title: str, question: str, part: str = "component", **others: Any) -> ModelCard:
    """Return the card of a mixture whose objective is the log-likelihood."""
    told = "log-likelihood"
    settings = {"estimates": ("weights_",), **others}
    return ModelCard(name, title, question, "mixture", "n_components", part, told, told, "log_likelihood_", **settings)


REGISTERED = re.compile(r'^@register\(.*?\bname="([^"]+)"', re.DOTALL | re.MULTILINE)
"""How a file names the model that it registers."""
CARDS: dict[str, ModelCard] = {}
ESTIMATORS: dict[str, type[Any]] = {}
VALUES: dict[str, type[Any]] = {}
"""Classes of saved parameters and fitted attributes, besides plain values."""


def named(name: str) -> Any:
    """Return the function with that name, "module:function", of a room that may know more than the asking one."""
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


def register(card: ModelCard) -> Callable[[Estimator], Estimator]:
    """Register an estimator under ``card.name``; a class decorator."""

    def add(estimator: Estimator) -> Estimator:
        if card.name in CARDS and not _is_same(ESTIMATORS[card.name], estimator):
            raise ValueError(f"two models are called {card.name!r}: {ESTIMATORS[card.name]} and {estimator}")
        CARDS[card.name] = card
        ESTIMATORS[card.name] = estimator
        return estimator

    return add


def value_class(cls: Value) -> Value:
    """Allow instances in saved models and checkpoints, as arguments of their constructor; a class decorator."""
    if cls.__name__ in VALUES and not _is_same(VALUES[cls.__name__], cls):
        other = VALUES[cls.__name__]
        raise ValueError(
            f"two classes of values are called {cls.__name__!r}, in {other.__module__} and in {cls.__module__}: files "
            "know them by name, so rename one"
        )
    VALUES[cls.__name__] = cls
    return cls


def _is_same(one: type[Any], other: type[Any]) -> bool:
    """Return whether a class is another of the same name and module, as after a reload."""
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def discover() -> None:
    """Import the models of `majorant.models`, and the entry points "majorant.models" of installed packages.

    Each module registers its models and values.
    """
    home = import_module("majorant.models")
    for module in iter_modules(home.__path__):
        import_module(f"{home.__name__}.{module.name}")
    for offered in entry_points(group="majorant.models"):
        offered.load()


@cache
def _homes() -> dict[str, str]:
    """Return the modules that register models, by the names of the models, as the files say: importing all is slow."""
    home = import_module("majorant.models")
    return {
        name: ".".join((home.__name__, *path.relative_to(folder).with_suffix("").parts))
        for folder in home.__path__
        for path in Path(folder).rglob("*.py")
        for name in REGISTERED.findall(path.read_text(encoding="utf-8"))
    }


def model_names() -> list[str]:
    """Return the names of all models, without importing those of this package."""
    for offered in entry_points(group="majorant.models"):
        offered.load()
    return sorted({*_homes(), *CARDS})


def card_named(name: str) -> ModelCard:
    """Return the card of a model, importing no other.

    Raises
    ------
    KeyError
        If there is none of that name.
    """
    if name not in CARDS and (home := _homes().get(name)):
        import_module(home)
    return CARDS[name]


def known(name: str, among: dict[str, Any]) -> Any:
    """Find a registered card, estimator or value by its name, importing the models only if necessary.

    Raises
    ------
    KeyError
        If there is none of that name.
    """
    if name not in among and (home := _homes().get(name)):
        import_module(home)
    if name not in among:
        discover()
    return among[name]


def card_of(estimator: Any) -> ModelCard:
    """Return the card of an estimator or of its class.

    Raises
    ------
    TypeError
        If it is not a registered model.
    """
    cls = estimator if isinstance(estimator, type) else type(estimator)
    for name, registered in ESTIMATORS.items():
        if issubclass(cls, registered):
            return CARDS[name]
    discover()
    known = ", ".join(sorted(CARDS))
    raise TypeError(
        f"{cls.__name__} is not one of majorant's models ({known}): a model of your own needs the decorator "
        "majorant.registry.register"
    )


def part_of(model: Any) -> str:
    """Return what a part of a fitted model is called: that of a model of one's own without a card is a component."""
    return next((CARDS[name].part for name, cls in ESTIMATORS.items() if isinstance(model, cls)), "component")
