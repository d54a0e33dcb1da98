"""The registry of models: each model file registers a card, used by the command line, reports and saving."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Any, Literal, TypeVar

Estimator = TypeVar("Estimator", bound=type)
Value = TypeVar("Value", bound=type)


@dataclass(frozen=True)
class ModelCard:
    """What the command line and the report need to know of a model.

    Attributes
    ----------
    name : str
        The name on the command line, lower case ("kmeans").
    title : str
        The name in prose, lower case ("k-means").
    question : str
        One line: what a person asks it.
    kind : {"clustering", "mixture", "regression", "classification", "representation"}
        Which sections the report has.
    size_parameter : str or None
        The estimator's parameter that ``--k`` sets ("n_clusters"); None where the parts are the classes of the target.
    part : str
        What the model's parts are called, in the singular ("cluster").
    objective_name : str
        Short name of the objective ("SSE").
    objective_title : str
        The same in words ("sum of squared distances").
    objective_attribute : str
        Fitted attribute that holds it ("inertia_").
    needs_target : bool
        Whether ``fit`` takes y.
    by_target : tuple of (str, str) or None
        Of a model without target: the names of those for a target of classes and of numbers.
    objective_set_by : tuple of str
        Parameters that are part of the objective, such as a penalty: values of it under others cannot be compared.
    sections : tuple of str
        Sections of the report beside those of its kind, as "module:function"; see `majorant.report.section`.
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
    sections: tuple[str, ...] = ()

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
            If the number is not for anyone to choose.
        """
        if self.size_parameter is None:
            raise TypeError(f"the parts of a {self.title} are the classes of its target: their number is not to choose")
        return estimator.set_params(**{self.size_parameter: size})


def mixture_card(*, name: str, title: str, question: str, **others: Any) -> ModelCard:
    """Return the card of a mixture whose parts are components and whose objective is the log-likelihood."""
    told = "log-likelihood"
    return ModelCard(
        name, title, question, "mixture", "n_components", "component", told, told, "log_likelihood_", **others
    )


CARDS: dict[str, ModelCard] = {}
ESTIMATORS: dict[str, type[Any]] = {}
VALUES: dict[str, type[Any]] = {}
"""Classes of which a parameter or a fitted attribute may be, beside plain values."""


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
        raise ValueError(f"two classes of values are called {cls.__name__!r}: {VALUES[cls.__name__]} and {cls}")
    VALUES[cls.__name__] = cls
    return cls


def _is_same(one: type[Any], other: type[Any]) -> bool:
    """Return whether a class is another of the same name and module, as after a reload."""
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def discover() -> None:
    """Import every file and folder of `majorant.models`, and what installed packages offer as "majorant.models".

    Each registers its models and values.
    """
    home = import_module("majorant.models")
    for module in iter_modules(home.__path__):
        import_module(f"{home.__name__}.{module.name}")
    for offered in entry_points(group="majorant.models"):
        offered.load()


def known(name: str, among: dict[str, Any]) -> Any:
    """Find a registered card, estimator or value by its name, importing the models only if need be.

    Raises
    ------
    KeyError
        If there is none.
    """
    if name not in among:
        discover()
    return among[name]


def card_of(estimator: Any) -> ModelCard:
    """Return the card of an estimator or of its class.

    Raises
    ------
    TypeError
        If it is none of the registered models.
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
