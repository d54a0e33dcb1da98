"""The result of `select`: fits compared by an information criterion, as tables and in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from numbers import Real
from typing import Any

from majorant._frames import data_frame
from majorant._numbers import counted, number_format, plural_of, rounded
from majorant.summary import Block, Column, Summary, Table, search_block

CRITERIA = ("bic", "aic", "icl")
MEASURES = ("aic", "bic", "sabic", "caic", "icl", "entropy_r2", "smallest")
"""What is kept of every fit beside the criterion that compares them."""
OF_CLUSTERINGS = ("stability", "gap")
"""What is kept of every clustering beside its silhouette and its objective."""
SILHOUETTE = "silhouette"
"""What compares clusterings without a likelihood; higher is better."""
CLOSE, LOOSE = 0.9, 0.6
"""Adjusted Rand indices from which labels are called nearly the same, or similar."""
NEAR, NEAR_SILHOUETTE = 2.0, 0.02
"""Difference of a criterion below which two candidates are hardly distinguishable: [1]_ of `select`, and our own."""
MOST_RANKED = 5
UNFITTED = "could not be fitted"
UNDETERMINED = "the rows do not determine its likelihood"

CAPTION = "Lower is better, as in scikit-learn; mclust's sign is the other way round."
_OF_SILHOUETTES = (
    "Higher is better, 1 at most; it does not say whether there are clusters at all.",
    "Stability is the adjusted Rand index under resampled rows.",
    "The gap is what a quick bound leaves open.",
)
_MARK = "The best is marked with a star."


@dataclass(frozen=True)
class Candidate:
    """One fit of a selection.

    Attributes
    ----------
    size : int
        Number of parts.
    setting : mapping
        The other parameters that were varied, by name.
    value : float
        The criterion; NaN if there is none.
    objective : float
        The objective of the fit (the log-likelihood, for a mixture), NaN if there is none.
    n_parameters : int or None
        Number of free parameters, if the model has it.
    n_starts, n_hits : int
        Number of starts of the fit, and of those that reached its best optimum.
    regular : bool
        False for a degenerate solution, whose likelihood is determined by a floor rather than by the data.
    converged : bool
        Whether the fit ended within its tolerance.
    excluded : str
        Why it cannot be chosen; empty if it can.
    warnings : tuple of str
        Warnings of the fit.
    measures : mapping of str to float
        What a paper tells of every fit of a model with a likelihood, as far as it is finite: ``aic``, ``bic``,
        ``sabic``, ``caic``, ``icl``, ``entropy_r2`` and ``smallest``, the least weight of a part. Of a clustering:
        ``stability``, the median adjusted Rand index between its labels and those by five fits to resamples of the
        rows (of at most 2000), and ``gap``, by how much of its objective a better one may be better, as a quick bound
        proves (of at most 300 rows).
    """

    size: int
    setting: Mapping[str, Any]
    value: float = math.nan
    objective: float = math.nan
    n_parameters: int | None = None
    n_starts: int = 0
    n_hits: int = 0
    regular: bool = True
    converged: bool = True
    excluded: str = ""
    warnings: tuple[str, ...] = ()
    measures: Mapping[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The setting in words: "full"; "" if only the size was varied."""
        return ", ".join(v if isinstance(v, str) else f"{name}={v}" for name, v in self.setting.items())


@dataclass(frozen=True)
class Selection:
    """Fits of several sizes and settings, and the one that a criterion prefers.

    Attributes
    ----------
    candidates : tuple of Candidate
        All fits: every size for each setting.
    criterion : {"bic", "aic", "icl", "silhouette"}
    model, part : str
        Words for the model and for one of its parts ("Gaussian mixture", "component").
    size_parameter : str
        The parameter that sets the size ("n_components").
    objective_name : str
        Name of the objective ("log-likelihood").
    estimators : tuple
        The fitted estimators, one per candidate (None if the fit failed); empty for a selection read from a file.
    """

    candidates: tuple[Candidate, ...]
    criterion: str
    model: str
    part: str
    size_parameter: str
    objective_name: str
    estimators: tuple[Any, ...] = ()

    @property
    def parts(self) -> str:
        """The word for parts, in the plural."""
        return plural_of(self.part)

    @property
    def name(self) -> str:
        """The criterion as it is written: "BIC"."""
        return self.criterion if self.criterion == SILHOUETTE else self.criterion.upper()

    @property
    def caption(self) -> str:
        """Whether lower or higher is better, in a sentence."""
        if self.criterion != SILHOUETTE:
            return CAPTION
        shown = [column.name for column in self.matrix().columns]
        first, *others = _OF_SILHOUETTES
        return " ".join([first, *(of for name, of in zip(OF_CLUSTERINGS, others, strict=True) if name in shown)])

    def cost(self, candidate: Candidate) -> float:
        """Return the criterion with the sign by which lower is better."""
        return -candidate.value if self.criterion == SILHOUETTE else candidate.value

    @property
    def ranked(self) -> tuple[Candidate, ...]:
        """Candidates that may be chosen, best first; of equal values the one with fewer parameters."""
        chosen = [c for c in self.candidates if not c.excluded]
        return tuple(sorted(chosen, key=lambda c: (self.cost(c), c.n_parameters or 0, c.size)))

    @property
    def excluded(self) -> tuple[Candidate, ...]:
        """Candidates that may not be chosen, each with its reason."""
        return tuple(c for c in self.candidates if c.excluded)

    @property
    def best(self) -> Candidate:
        """The candidate with the best criterion.

        Raises
        ------
        ValueError
            If every candidate is excluded.
        """
        if not self.ranked:
            reasons = "; ".join(dict.fromkeys(c.excluded for c in self.excluded))
            raise ValueError(f"no candidate can be chosen ({reasons}): try fewer {self.parts} or a simpler form")
        return self.ranked[0]

    @property
    def best_estimator_(self) -> Any:
        """The fitted estimator of the best candidate."""
        if not self.estimators:
            raise ValueError("the fitted estimators of this selection were not kept with it")
        return self.estimators[self.candidates.index(self.best)]

    @property
    def near(self) -> tuple[Candidate, ...]:
        """Other candidates that are hardly distinguishable: within 2 of the best criterion, .02 of a silhouette."""
        near = NEAR_SILHOUETTE if self.criterion == SILHOUETTE else NEAR
        return tuple(c for c in self.ranked[1:] if self.difference(c) < near)

    def difference(self, candidate: Candidate) -> float:
        """Return by how much a candidate's criterion is worse than the best one's."""
        return self.cost(candidate) - self.cost(self.best)

    def describe(self, candidate: Candidate) -> str:
        """Describe a candidate in words: "3 components, full"."""
        size = counted(candidate.size, self.part)
        return f"{size}, {candidate.label}" if candidate.label else size

    @property
    def sentence(self) -> str:
        """Which candidate the criterion prefers, and how clearly."""
        if not self.ranked:
            return f"{self._subject} can choose none: every fit is excluded."
        first = f"{self._subject} prefers {self.describe(self.best)}{self._confirmed}"
        if len(self.ranked) == 1:
            return f"{first}; no other fit can be chosen." if len(self.candidates) > 1 else f"{first}."
        if not self.near:
            second = self.ranked[1]
            return f"{first}; the next, {self.describe(second)}, is {self._at_least(second)} worse."
        names = [self.describe(c) for c in self.near]
        joined = names[0] if len(names) == 1 else f"{'; '.join(names[:-1])}; and {names[-1]}"
        within = rounded(Decimal(f"{self.difference(self.near[-1]):.6f}"), self._decimals, "up")
        return f"{first}; within {within} of it: {joined}."

    @property
    def _confirmed(self) -> str:
        """How far resampled rows confirm the best clustering."""
        stability = self.best.measures.get("stability")
        if stability is None:
            return ""
        how = "" if stability >= CLOSE else "in part " if stability >= LOOSE else "hardly "
        return f", which resampled rows {how}confirm (adjusted Rand index {stability:.2f})"

    @property
    def _subject(self) -> str:
        return "The mean silhouette" if self.criterion == SILHOUETTE else self.name

    @property
    def _decimals(self) -> int:
        return 3 if self.criterion == SILHOUETTE else 1

    def _at_least(self, candidate: Candidate) -> str:
        difference = self.difference(candidate)
        return number_format([difference], self._decimals).text(difference, "down")

    @property
    def look_out(self) -> tuple[str, ...]:
        """Warnings about the selection."""
        if not self.ranked:
            return (f"No fit can be chosen: try fewer {self.parts}, a simpler form, or more rows.",)
        found = list(self._at_an_end())
        better = [c for c in self.excluded if self.cost(c) < self.cost(self.best)]
        if better:
            were = "fit has" if len(better) == 1 else "fits have"
            lower = "higher" if self.criterion == SILHOUETTE else "lower"
            found.append(f"{len(better)} excluded {were} a {lower} {self.name}, which says nothing about the data.")
        if not self.best.converged:
            found.append("The chosen fit stopped at the iteration limit: raise max_iter.")
        unfinished = sum(not c.converged for c in self.ranked[1:])
        if unfinished:
            found.append(
                f"{counted(unfinished, 'other fit')} stopped at the iteration limit, so {self.name} is a limit."
            )
        return tuple(found)

    def _at_an_end(self) -> Iterator[str]:
        """Say which numbers of the best are the largest or the smallest of several that were tried."""
        sizes = {c.size for c in self.candidates}
        if len(sizes) > 1 and self.best.size == max(sizes):
            yield f"The best is the largest number of {self.parts} tried: try more."
        elif len(sizes) > 1 and self.best.size == min(sizes) > (2 if self.criterion == SILHOUETTE else 1):
            yield f"The best is the smallest number of {self.parts} tried: try fewer."
        for name, chosen in self.best.setting.items():
            tried = [c.setting[name] for c in self.candidates]
            if not all(isinstance(value, Real) and not isinstance(value, bool) for value in tried):
                continue
            if min(tried) < chosen == max(tried):
                yield f"The best has the largest {name} tried, {chosen:g}: try larger ones."
            elif chosen == min(tried) < max(tried) and chosen != 0:
                yield f"The best has the smallest {name} tried, {chosen:g}: try smaller ones."

    def matrix(self) -> Table:
        """Return the table of the criterion: one row per size, one column per setting; excluded fits are empty.

        Of fits that differ in their size alone it also has their objective, and what else is known of them.
        """
        sizes = list(dict.fromkeys(c.size for c in self.candidates))
        labels = list(dict.fromkeys(c.label for c in self.candidates))
        cells = {(c.size, c.label): None if c.excluded else c.value for c in self.candidates}
        decimals = number_format([v for v in cells.values() if v is not None], max(self._decimals, 2)).decimals
        columns = [Column(self.parts, sizes, key=self.size_parameter)]
        for label in labels:
            is_best = self.ranked and label == self.best.label
            values, best = [cells[size, label] for size in sizes], [sizes.index(self.best.size)] if is_best else []
            columns.append(Column(label or self.name, values, decimals, bold=best, empty="excluded"))
        return Table(self.criterion, [*columns, *(self._beside() if len(labels) == 1 else ())])

    def _beside(self) -> Iterator[Column]:
        """Yield what is known of every size beside the criterion that compares them."""
        objectives = [c.objective if math.isfinite(c.objective) else None for c in self.candidates]
        style = number_format([value for value in objectives if value is not None], 2)
        yield Column(self.objective_name, objectives, style.decimals, "objective")
        if any(c.n_parameters is not None for c in self.candidates):
            yield Column("parameters", [c.n_parameters for c in self.candidates], key="n_parameters")
        others = {"stability": 2, "gap": 3} if self.criterion == SILHOUETTE else dict.fromkeys(CRITERIA, 2)
        for name, decimals in others.items():
            known = [None if c.excluded else _told(name, c.measures.get(name)) for c in self.candidates]
            if name != self.criterion and any(value is not None for value in known):
                yield Column(name if name in OF_CLUSTERINGS else name.upper(), known, decimals)

    def summary(self) -> Summary:
        """Return the summary: table of the criterion, best candidates, exclusions, and the search of the chosen fit."""
        blocks = [
            Block(self.name, self.sentence, (self.matrix(), f"{self.caption} {_MARK}" if self.ranked else self.caption))
        ]
        if self.ranked:
            blocks.append(Block("BEST", "", (self._best_table(),)))
        if self.excluded:
            blocks.append(Block("EXCLUDED", "", self.exclusions))
        if self.estimators and self.ranked:
            blocks.append(search_block(self.best_estimator_.search_))
        look_out = (*self.look_out, *(self.best.warnings if self.ranked else ()))
        return Summary(f"{self.model}, selected by {self.name}", counted(len(self.candidates), "fit"), blocks, look_out)

    def _best_table(self) -> Table:
        kept = self.ranked[:MOST_RANKED]
        names = list(kept[0].setting)
        decimals = max(self._decimals, 2)
        apart = [None if c is self.best else self.difference(c) for c in kept]
        columns = [
            Column(self.parts, [c.size for c in kept], key=self.size_parameter),
            *(Column(_short(name), [_cell(c.setting[name]) for c in kept], key=name) for name in names),
            Column(self.name, [c.value for c in kept], decimals, self.criterion),
            Column("difference", apart, decimals),
            Column(self.objective_name, [c.objective for c in kept], 2, "objective"),
        ]
        if kept[0].n_parameters is not None:
            columns.append(Column("parameters", [c.n_parameters for c in kept], key="n_parameters"))
        return Table("best", columns)

    @property
    def exclusions(self) -> tuple[str, ...]:
        """One sentence per reason, with the fits that it excludes."""
        by_reason: dict[str, list[str]] = {}
        for candidate in self.excluded:
            by_reason.setdefault(candidate.excluded, []).append(self.describe(candidate))
        return tuple(f"{'; '.join(fits)}: {reason.rstrip('.')}." for reason, fits in by_reason.items())

    def to_frame(self) -> Any:
        """Return a data frame with one row per fit (pandas if installed, otherwise polars)."""
        names = list(self.candidates[0].setting)
        columns: dict[str, list[Any]] = {self.size_parameter: [c.size for c in self.candidates]}
        columns |= {name: [c.setting[name] for c in self.candidates] for name in names}
        columns[self.criterion] = [c.value for c in self.candidates]
        columns[self.objective_name.replace("-", "_")] = [c.objective for c in self.candidates]
        told = [name for name in (*MEASURES, *OF_CLUSTERINGS) if any(name in c.measures for c in self.candidates)]
        columns |= {n: [c.measures.get(n, math.nan) for c in self.candidates] for n in told if n != self.criterion}
        for name in ("n_parameters", "n_starts", "n_hits", "regular", "converged", "excluded"):
            columns[name] = [getattr(c, name) for c in self.candidates]
        return data_frame(columns)

    def to_markdown(self) -> str:
        """Return the page as markdown."""
        return self.summary().to_markdown()

    def __str__(self) -> str:
        return str(self.summary())

    def __repr__(self) -> str:
        return f"Selection({len(self.candidates)} fits: {self.sentence})"

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values with all digits, for JSON; values that are not finite are None."""

        def plain(value: Any) -> Any:
            return None if isinstance(value, float) and not math.isfinite(value) else value

        state = self.to_state()
        candidates = [{name: plain(value) for name, value in c.items()} for c in state["candidates"]]
        best = self.candidates.index(self.best) if self.ranked else None
        return {**state, "candidates": candidates, "best": best, "sentence": self.sentence}

    def to_state(self) -> dict[str, Any]:
        """Return plain values without the estimators, for saving."""
        state = {name: getattr(self, name) for name in _PLAIN}
        return {**state, "candidates": [{**asdict(c), "warnings": list(c.warnings)} for c in self.candidates]}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Selection:
        """Build a selection from the values of `to_state`."""
        candidates = tuple(Candidate(**{**c, "warnings": tuple(c["warnings"])}) for c in state["candidates"])
        criterion, model, part, size_parameter, objective_name = (str(state[name]) for name in _PLAIN)
        return cls(candidates, criterion, model, part, size_parameter, objective_name)


_PLAIN = ("criterion", "model", "part", "size_parameter", "objective_name")


def _told(name: str, value: float | None) -> float | None:
    return value if name != "gap" or value is None else math.ceil(1e5 * value - 1e-4) / 1e5  # nothing better is proved


def _short(parameter: str) -> str:
    return parameter.removesuffix("_type")


def _cell(value: Any) -> str | int | float:
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else str(value)
