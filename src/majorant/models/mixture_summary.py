"""The summary of any fitted mixture."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._frames import data_frame
from majorant._numbers import few_of, plural_of
from majorant.engine.mixture import Array
from majorant.models.undetermined_covariances import of_never_together
from majorant.models.unlinked import of_unlinked_columns
from majorant.registry import card_of, part_of
from majorant.results.criteria import criteria
from majorant.summary import Block as Section
from majorant.summary import Column, Fact, Facts, Summary, Table, counted, part_columns, search_block

MOST_SHOWN = 20
"""Components and numbers of each up to which a summary shows estimates."""
GATING_TITLE = "log odds by covariate"
NO_EVENTS = 1e-9
"""Rate below which a component has no events."""
FEW_ROWS = 1.5
"""Rows of a component for each parameter of its own below which they are few: searches then rarely agree."""


def mixture_summary(
    model: Any,
    facts: Sequence[Fact] = (),
    components: Sequence[Section] = (),
    scales: Mapping[str, Array] | None = None,
    own: int | None = None,
    simpler: str = "",
) -> Summary:
    """Summarise the search, the fit with further facts, and each component, in its own blocks if some are given.

    With `scales`, as of `components_block`, and `own` and `simpler`, as of `few_rows_sentence`.
    """
    card, k = card_of(model), len(model.weights_)
    left = [Fact("log-likelihood", model.log_likelihood_, 3)]
    right = [Fact("parameters", model.n_parameters_), Fact("solution", "regular" if model.regular_ else "degenerate")]
    if model.regular_:
        found = criteria(-2 * model.log_likelihood_, model.n_rows_, model.n_parameters_, 0.0)
        left += [Fact(name.upper(), found[name], 2) for name in ("bic", "aic")]
    left += [Fact("rows", model.n_rows_, 0), *facts]
    blocks = [
        search_block(model.search_),
        Section("FIT", f"reached in {counted(model.n_iter_, 'iteration')}", (Facts("fit", left, right),)),
        *(components or [components_block(model, card.part, scales=scales)]),
    ]
    look_out = ["" if model.regular_ else degenerate_sentence(model), model.separated_]
    look_out += [of_never_together(model.never_together_), of_unlinked_columns(model), *zero_rates(model)]
    if own is None:
        density, law = model._density(), model._law_of_fit()
        own = density.n_parameters(2) - density.n_parameters(1) + getattr(law, "n_covariates", 1)
    look_out += [few_rows_sentence(model, own, simpler), mostly_degenerate_sentence(model)]
    return Summary(
        f"{card.title}, {counted(k, card.part)}",
        counted(model.n_features_in_, "feature"),
        blocks,
        [text for text in look_out if text],
    )


def zero_rates(model: Any) -> list[str]:
    """Return which components have no events at all: a rate of zero is an estimate without an error."""
    said: list[str] = []
    if not model.regular_:
        return said
    for name in (name for name in model.estimate_names_ if name.endswith("rates")):
        values = np.asarray(getattr(model, f"{name}_"))
        entries = heads_of(model, entries_of(model, name, values.shape[1]))
        none = [f"{entries[j]} in {card_of(model).part} {i + 1}" for i, j in np.argwhere(values < NO_EVENTS)]
        if none:
            said.append(
                f"No events: {few_of(none)}. A rate of zero, the edge of its range, has no standard error (NaN)."
            )
    return said


def few_rows_sentence(model: Any, own: int, simpler: str = "") -> str:
    """Return that components of a regular solution have few rows for their parameters; empty if none has.

    Parameters
    ----------
    model : estimator
    own : int
        Parameters of each component alone, its weight among them.
    simpler : str
        Which models are smaller, besides those with fewer components.
    """
    card, sizes = card_of(model), model.weights_ * model.n_rows_
    k, n_few = len(sizes), int((sizes < FEW_ROWS * own).sum())
    if k == 1 or n_few == 0 or not model.regular_:
        return ""
    return (
        f"{n_few} of {k} {plural_of(card.part)} {'has' if n_few == 1 else 'have'} few rows for {own} parameters each, "
        f"the smallest {sizes.min():.3g}. "
        "Unless they lie apart from the others, which rows they fit is largely chance: the rows do not carry this "
        f"model, and another random_state may end elsewhere. Try fewer {plural_of(card.part)}{simpler}."
    )


def mostly_degenerate_sentence(model: Any) -> str:
    """Return that most runs of a search ended at degenerate solutions, and what to do; empty if they did not."""
    search = model.search_
    if not model.regular_ or search.n_degenerate <= search.n_starts:
        return ""
    return (
        f"{search.n_degenerate} of {search.n_degenerate + search.n_starts} runs ended at degenerate solutions: which "
        f"regular one is found is largely chance, and another random_state may end elsewhere; {model._advice()}."
    )


def fewer_parts(model: Any) -> str:
    """Return the advice to fit fewer components, or what they are called."""
    return f"use fewer {plural_of(card_of(model).part)}"


def degenerate_sentence(model: Any) -> str:
    """Return why no regular solution was found, and what to do."""
    return (
        f"No regular solution was found: {model.degeneracy_}. Do not compare it by its likelihood; {model._advice()}."
    )


def renumbered(model: Any, said: str, order: Sequence[int]) -> str:
    """Return what is said of components, such as "2, 3 (of 3)", with the numbers that they have in some order.

    They are called as they are in the model: states, or classes.
    """
    place = np.argsort(order) + 1

    def moved(found: re.Match[str]) -> str:
        return ", ".join(map(str, sorted(int(place[int(number) - 1]) for number in found[0].split(", "))))

    return in_its_words(model, re.sub(r"\d+(, \d+)*(?= \(of )", moved, said))


def in_its_words(model: Any, said: str) -> str:
    """Return what is said of components as of the parts of a model, states or classes."""
    part = part_of(model)
    return said.replace("components", plural_of(part)).replace("component", part)


def components_block(
    model: Any, part: str, left_out: Sequence[str] = ("weights",), scales: Mapping[str, Array] | None = None
) -> Section:
    """Return the shares and estimates of each component, numbered from 1, except those shown elsewhere.

    Of many probabilities, and of many numbers of estimates for which `scales` has their standard deviations, those are
    shown that differ most between the components; of items, all levels.
    """
    k, scales = len(model.weights_), scales or {}
    tables: list[Table | str] = [
        Table(plural_of(part), [Column(part, range(1, k + 1)), Column("share", model.weights_, 3)])
    ]
    for name in model.estimate_names_:
        values = model._of_each(name, getattr(model, f"{name}_")).reshape(k, -1)
        if name in left_out:
            continue
        n_numbers, entries = values.shape[1], entries_of(model, name, values.shape[1])
        d = model.n_features_in_
        is_square = name == "covariances" and n_numbers == d * d
        told = [j for j in range(n_numbers) if not (is_rest(entries, j) or (is_square and j // d > j % d))]
        values, entries = values[:, told], [entries[j] for j in told]
        title = GATING_TITLE if name == "gating_coef" else name.replace("_", " ")
        width, title = len(told), "variances" if is_square and d == 1 else title
        is_long = width > MOST_SHOWN
        if k > MOST_SHOWN or (is_long and name not in scales and not name.endswith("probabilities")):
            tables.append(
                f"{counted(n_numbers, 'number')} of each {part} are in {name}_, and in the report's table of estimates."
            )
            continue
        spread = np.ptp(values, axis=0) / (scales[name][told] if name in scales else 1.0)
        telling, heads = _telling(spread, entries), heads_of(model, entries)
        tables.append(Table(name, [Column(title, [heads[j] for j in telling]), *part_columns(values[:, telling])]))
        if is_long:
            most = f"The {len(telling)} of {width} {title} that differ most between the {plural_of(part)}"
            most += ", in standard deviations" if name in scales else ""
            tables.append(f"{most}; all are in {name}_, and in the report's table of estimates.")
        if name == "gating_coef":
            is_chain = np.ndim(model.gating_coef_) == 3
            against = f"steps from each {part} against staying" if is_chain else f"each {part} against {part} 1"
            tables.append(
                f"Log odds of {against}, at the mean of all covariates and for one standard deviation more of one."
            )
    return Section(plural_of(part).upper(), "", tuple(tables))


def _telling(spread: Array, entries: Sequence[str]) -> NDArray[np.intp]:
    """Return the entries to show, in their order: of many those that differ most, with all others of the same item."""
    items = [entry.rpartition("=")[0] or entry for entry in entries]
    ranked, n_levels = dict.fromkeys(items[j] for j in np.argsort(-spread, kind="stable")), Counter(items)
    widths = np.cumsum([n_levels[item] for item in ranked])
    shown = set([*ranked][: max(int((widths <= MOST_SHOWN).sum()), 1)])
    return np.array([j for j, item in enumerate(items) if item in shown], dtype=np.intp)


def is_rest(entries: Sequence[str], j: int) -> bool:
    """Return whether an entry is the probability of 0, or no, of an item that has 1, or yes, beside it alone."""
    item, equals, level = entries[j].rpartition("=")
    own = [entry for entry in entries[max(j - 1, 0) : j + 3] if entry.rpartition("=")[:2] == (item, "=")]
    other = {"0": "1", "False": "True", "no": "yes", "No": "Yes"}.get(level, "")
    return bool(equals) and own == [f"{item}={level}", f"{item}={other}"]


def estimates_table(model: Any, errors: Mapping[str, Array], ends: Mapping[str, tuple[Array, Array]]) -> Any:
    """Return a data frame of every number of every estimate, with its standard error and interval."""
    k, part = len(model.weights_), card_of(model).part
    found: dict[str, list[Any]] = {head: [] for head in ("parameter", "entry", part)}
    numbers: dict[str, list[Any]] = {head: [] for head in ("estimate", "standard_error", "low", "high")}
    for name, error in errors.items():
        each = [
            model._of_each(name, values).reshape(k, -1) for values in (getattr(model, f"{name}_"), error, *ends[name])
        ]
        width = each[0].shape[1]
        own = entries_of(model, name, width)
        found["parameter"] += [name] * (k * width)
        found["entry"] += [entry for entry in own for _ in range(k)]
        found[part] += [*range(1, k + 1)] * width
        for head, values in zip(numbers, each, strict=True):
            numbers[head] += values.T.ravel().tolist()
    return data_frame({**found, **numbers})


def entries_of(model: Any, name: str, width: int) -> list[str]:
    """Return a name for each number that a component has in an estimate; nothing for a single one without a name."""
    return model._entry_names(name) or ([""] if width == 1 else [str(j + 1) for j in range(width)])


def heads_of(model: Any, entries: Sequence[str]) -> list[str]:
    """Return the entries of an estimate, columns of levels in words; of steps between states they follow a comma."""
    plain = [re.sub(r"^to \d+, ", "", entry) for entry in entries]
    words = zip(entries, plain, model._in_words(plain), strict=True)
    return [entry.removesuffix(own) + word for entry, own, word in words]


def entry_names(model: Any, name: str) -> list[str] | None:
    """Return the columns of an estimate: covariates, or features where the density has one number for each."""
    if name == "gating_coef":
        return ["Intercept", *model.gating_names_in_]
    shape, d = model._of_each(name, getattr(model, f"{name}_")).shape[1:], model.n_features_in_
    if name in model._law_of_fit().describe(model._theta().law):
        return [f"to {j + 1}" for j in range(shape[0])] if name == "transitions" else None
    names = model._feature_names()
    if shape == (d, d):
        return [f"{a}, {b}" for a in names for b in names] if d > 1 else names
    return names if shape == (d,) else None
