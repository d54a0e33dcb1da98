"""The command ``majorant compare``: runs side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
from sklearn.base import is_classifier

from majorant._numbers import objective_format, percent
from majorant.cli.errors import CommandError, listed
from majorant.cli.messages import labelled
from majorant.cli.runs import ASSIGNMENTS, SUMMARY, Recipe, read_run
from majorant.cli.tables import read_table
from majorant.registry import card_of
from majorant.results.certificate import certificate_of
from majorant.results.matching import MatchedLabels, match_labels
from majorant.results.selection import CRITERIA
from majorant.summary import Column, Table, counted
from majorant.summary.text import WIDTH, wrapped

MOST_PARTS = 20
"""Rows and columns of the confusion table that are shown."""


@dataclass(frozen=True)
class Side:
    """One of the runs."""

    folder: Path
    estimator: Any
    recipe: Recipe
    criteria: dict[str, float]  # criteria in its summary.json; empty if there are none or no such file

    @classmethod
    def read(cls, folder: Path) -> Side:
        """Read the run in a folder."""
        estimator, recipe = read_run(folder)
        try:
            found = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))["criteria"]
            criteria = {str(name): float(value) for name, value in found.items() if value is not None}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            criteria = {}
        return cls(folder, estimator, recipe, criteria)

    @property
    def objective(self) -> float:
        """The objective of the fit."""
        return float(self.estimator.search_.best)

    @property
    def size(self) -> str:
        """Number of the model's parts, in words."""
        if hasattr(self.estimator, "n_allowed_"):
            from majorant.models.harmonium.summary import components_in_words

            return components_in_words(self.estimator)
        card = card_of(self.estimator)
        return counted(int(card.size_of(self.estimator)), card.part)

    @property
    def data(self) -> dict[str, Any]:
        """Facts that must agree for objectives to be comparable: the rows, the role of each column, and the units."""
        columns, units = self.recipe.columns, self.recipe.standardisation
        formula = getattr(self.estimator, "formula_", None)
        of_every_model = {
            "table": self.recipe.checksum,
            "target": columns.target if formula is None else ", ".join(formula.response.names),
            "weights": columns.weights,
        }
        if card_of(self.estimator).kind == "regression":  # whose likelihood is of the target, whatever explains it
            labels = self.labels
            return {**of_every_model, "rows": frozenset() if labels is None else frozenset(labels[labels.columns[0]])}
        return {
            **of_every_model,
            "columns": frozenset(columns.features),
            "bags": columns.bag,
            "what becomes of missing values": self.recipe.drop_missing,
            "units": None if units is None else tuple(units.scales.tolist()),
        }

    @property
    def objective_is_of(self) -> dict[str, str]:
        """What the objective depends on besides the data: the model and some of its parameters."""
        card = card_of(self.estimator)
        found = {"model": card.title}
        for name in card.objective_set_by:  # what "auto" has become is an attribute of the fit
            found[name] = repr(getattr(self.estimator, f"{name}_", getattr(self.estimator, name)))
        return found

    @cached_property
    def labels(self) -> pl.DataFrame | None:
        """The part or class of each row of its table, or of each bag; None if the model has no parts."""
        card = card_of(self.estimator)
        path = self.folder / ASSIGNMENTS
        if not path.is_file():
            raise CommandError(f"{self.folder} has no {ASSIGNMENTS} any more.", "Fit the model again.")
        frame = read_table(path).frame
        names = ["prediction"] if is_classifier(self.estimator) else [card.part]
        label = next((name for name in names if name in frame.columns), None)
        key = "bag" if "bag" in frame.columns else "row"
        if label is None or key not in frame.columns:
            return None
        return frame.select(pl.col(key).cast(pl.String), pl.col(label).alias("label"))


def compared(folders: Sequence[Path]) -> str:
    """Return the text on the terminal about two runs or more."""
    if len(folders) < 2:
        raise CommandError(f"compare takes two runs or more; got {folders[0]} alone.", "Name another run's folder.")
    sides = [Side.read(folder) for folder in folders]
    return "\n".join(_pair(*sides) if len(sides) == 2 else _several(sides))


def _pair(*sides: Side) -> list[str]:
    """Return the lines about two runs, with a column for each."""
    first, second = (str(side.folder) for side in sides)
    lines = [*labelled("First", first), *labelled("Second", second), "", *_table(*sides).to_lines(), ""]
    sentences = [_on_data(*sides)]
    if sides[0].recipe.checksum == sides[1].recipe.checksum:
        differ = _differences(*sides)
        sentences += [differ] if differ else [_on_objective(*sides), *_on_criteria(*sides)]
    found = _agreement(*sides)
    sentences += [_on_rows(found) if isinstance(found, MatchedLabels) else found]
    for text in filter(None, sentences):
        lines += wrapped(text, WIDTH)
    if isinstance(found, MatchedLabels):
        lines += ["", *_confusion(found, sides[0])]
    return lines


def _several(sides: Sequence[Side]) -> list[str]:
    """Return the lines about more than two runs, with a row for each: facts, the best, and how far parts agree."""
    facts = [_facts(side) for side in sides]
    names = list(dict.fromkeys(name for own in facts for name in own))
    shared = [name for name in names if len({own.get(name) for own in facts}) == 1 and name != "size"]
    rows = [Column("", [str(i) for i in range(1, len(sides) + 1)]), Column("run", [str(side.folder) for side in sides])]
    told = [Column(name, [own.get(name, "") for own in facts]) for name in names if name not in shared]
    lines = [*Table("runs", [*rows, *told], keys=2).to_lines(), ""]
    groups = list[list[Side]]()
    for side in sides:
        own = next((group for group in groups if not _why_apart(group[0], side)), None)
        groups.append([side]) if own is None else own.append(side)
    same = [f"Of all runs: {'; '.join(f'{name} {facts[0][name]}' for name in shared)}."] if shared else []
    first = groups[0][0]
    apart = [f"{first.folder} and {other.folder}: {_why_apart(first, other)}" for other, *_ in groups[1:]]
    for text in (*same, *apart, *(text for group in groups if len(group) > 1 for text in _on_best(group))):
        lines += wrapped(text, WIDTH)
    found = [[_agreement(one, other) for other in sides] for one in sides]
    shares = [[one.adjusted_rand if isinstance(one, MatchedLabels) else None for one in own] for own in found]
    if sum(share is not None for own in shares for share in own) > len(sides):
        matrix = [Column(str(j), own, 3) for j, own in enumerate(shares, 1)]
        lines += [
            "",
            "Agreement of their parts: adjusted Rand index",
            "",
            *Table("matched", [*rows, *matrix]).to_lines(),
        ]
    return lines


def _why_apart(first: Side, second: Side) -> str:
    """Return why the objectives of two runs cannot be compared; "" if they can."""
    if first.recipe.checksum != second.recipe.checksum:
        return _on_data(first, second)
    return _differences(first, second)


def _on_best(sides: Sequence[Side]) -> list[str]:
    """Return which of the runs has the best objective, and which each criterion prefers."""
    search = sides[0].estimator.search_
    sign = 1 if search.sense == "min" else -1
    ranked = {search.objective_name: sorted((sign * side.objective, str(side.folder)) for side in sides)}
    for name in CRITERIA:
        if all(name in side.criteria for side in sides):
            ranked[name.upper()] = sorted((side.criteria[name], str(side.folder)) for side in sides)
    sentences = []
    for name, ((best, winner), (second, next_best), *_) in ranked.items():
        style = objective_format(name, [best, second])
        by = (
            f"; the next, {next_best}, is worse by {style.text(second - best)}"
            if second > best
            else f", as {next_best}"
        )
        sentences.append(f"{winner} has the best {name}{by}.")
    return sentences


def _table(first: Side, second: Side) -> Table:
    """Return the table of facts, with one column per run."""
    facts: dict[str, list[str]] = {}
    for place, side in enumerate((first, second)):
        for name, value in _facts(side).items():
            facts.setdefault(name, ["", ""])[place] = value
    one, other = zip(*facts.values(), strict=True)
    return Table("runs", [Column("", list(facts)), Column("first", one), Column("second", other)])


def _facts(side: Side) -> dict[str, str]:
    card, search, columns = card_of(side.estimator), side.estimator.search_, side.recipe.columns
    formula, gating = getattr(side.estimator, "formula_", None), getattr(side.estimator, "gating_names_in_", None)
    features = str(len(columns.features)) if formula is None else formula.text
    name = search.objective_name
    facts = {
        "model": card.title,
        "size": side.size,
        "table": side.recipe.table_name,
        "features": f"{features}, weights by {listed(gating)}" if gating else features,
        "standardised": "no" if side.recipe.standardisation is None else "yes",
        name: objective_format(name, [side.objective]).text(side.objective),
    }
    facts |= {c.upper(): f"{side.criteria[c]:.2f}" for c in CRITERIA if c in side.criteria}
    if search.n_starts:
        facts[f"{search.noun}s at the best"] = f"{search.n_hits} of {search.n_starts}"
    if (proof := certificate_of(search)) is not None:
        facts["proved bound"] = proof.bound_text
    return facts


def _on_data(first: Side, second: Side) -> str:
    if first.recipe.checksum != second.recipe.checksum:
        return "The two tables differ: objectives and rows cannot be compared."
    one, other = first.data, second.data
    names = [name for name, value in one.items() if name in other and value != other[name]]
    if not names and "rows" in one and "rows" in other:
        return f"Both were fitted to the same rows of {one['target']}, of {first.recipe.table_name}."
    if not names:
        return f"Both were fitted to the same data, {first.recipe.table_name}."
    return f"Both read the same table, but differ in {listed(names)}."


def _differences(first: Side, second: Side) -> str:
    """Return why the objectives of two fits of one table cannot be compared; "" if they can."""
    one, other = first.objective_is_of, second.objective_is_of
    if one["model"] != other["model"]:
        objectives = dict.fromkeys(side.estimator.search_.objective_name for side in (first, second))
        return f"Their objectives ({' and '.join(objectives)}) are of different models: they cannot be compared."
    if first.data != second.data:
        return "Objectives on different data cannot be compared."
    names = [name for name in one if one[name] != other[name]]
    if not names:
        return ""
    return f"Their objectives differ in {listed(names)}, which is part of it: they cannot be compared."


def _on_objective(first: Side, second: Side) -> str:
    one = first.estimator.search_
    name = one.objective_name
    style = objective_format(name, [first.objective, second.objective])
    if style.text(first.objective) == style.text(second.objective):
        return f"They have the same {name}."
    difference = abs(first.objective - second.objective)
    lower = "first" if first.objective < second.objective else "second"
    better = "lower" if one.sense == "min" else "higher"
    which = lower if better == "lower" else {"first": "second", "second": "first"}[lower]
    return f"The {which} has the {better}, better {name}, by {style.text(difference)}."


def _on_criteria(first: Side, second: Side) -> list[str]:
    sentences = []
    for name in CRITERIA:
        if name in first.criteria and name in second.criteria:
            difference = first.criteria[name] - second.criteria[name]
            if abs(difference) < 0.005:
                sentences.append(f"{name.upper()} is the same.")
            else:
                which = "first" if difference < 0 else "second"
                sentences.append(f"{name.upper()} prefers the {which}, by {abs(difference):.2f}.")
    return [" ".join(sentences)] if sentences else []


def _agreement(first: Side, second: Side) -> MatchedLabels | str:
    """Return the agreement of the parts of both runs, or why it is unknown."""
    if first.recipe.checksum != second.recipe.checksum:
        return ""
    one, other = first.labels, second.labels
    if one is None or other is None:
        which = "Neither" if one is other else "Only the second" if one is None else "Only the first"
        return f"{which} puts rows into parts: there is nothing to match."
    key = one.columns[0]
    if other.columns[0] != key:
        return "One run is about rows, the other about bags of rows: there is nothing to match."
    both = one.join(other, on=key, suffix="_other")
    if not both.height:
        return "No row was used by both."
    return match_labels(both["label"].to_numpy(), both["label_other"].to_numpy())


def _on_rows(found: MatchedLabels) -> str:
    rows, matched = counted(int(found.table.sum()), "row"), int(found.table.trace())
    return (
        f"Agreement over {rows}: adjusted Rand index {found.adjusted_rand:.3f}; {matched} ({percent(found.share)}) lie "
        "in parts that match."
    )


def _confusion(found: MatchedLabels, first: Side) -> list[str]:
    """Return the lines of the confusion table, with matched parts on the diagonal."""
    part = "class" if is_classifier(first.estimator) else card_of(first.estimator).part
    counts = found.table[:MOST_PARTS, :MOST_PARTS]
    columns = [Column(f"first: {part}", list(map(str, found.first[:MOST_PARTS])), min_width=8)]
    columns += [Column(f"second: {name}", own) for name, own in zip(found.second, counts.T, strict=False)]
    lines = Table("matched", columns).to_lines()
    if max(found.table.shape) > MOST_PARTS:
        lines += wrapped(f"Shown are {MOST_PARTS} of {found.table.shape[0]} and {found.table.shape[1]} parts.", WIDTH)
    return lines
