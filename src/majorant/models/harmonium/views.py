"""Declarations of views: their columns, the kind of their values, and edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._numbers import briefly
from majorant._validation import check_integer, check_positive, check_real, did_you_mean
from majorant.registry import value_class


@value_class
@dataclass(frozen=True)
class Gaussian:
    """A view of real numbers; each column is standardised to mean 0 and variance 1.

    A row may lack the whole view: it then holds NaN in all of its columns.

    Parameters
    ----------
    columns : list of int or str, slice, optional
        Which columns of X, by number or name. By default all: for a single view, or where X is a dictionary of arrays.
    whiten : bool or "auto", default="auto"
        Whether correlations within the view are removed first, so that the latents describe what the view shares with
        others. The covariance is shrunk by the rule of Ledoit and Wolf for the number of distinct rows with weight.
        "auto": if there is another Gaussian view, and the view has at least ten distinct rows with weight for each of
        its columns, as fewer do not tell how these depend on each other, and at most 2000 columns.
    variance : float, optional
        Known variance of the columns given the latents, in units of their variances (or of 1 where whitened). By
        default it is learnt for each column.

    Examples
    --------
    >>> Gaussian(columns=[0, 1, 2]).columns
    [0, 1, 2]
    """

    columns: Any = None
    whiten: Any = "auto"
    variance: float | None = None

    kind = "gaussian"

    def check(self, name: str) -> None:
        """Check the parameters.

        Raises
        ------
        TypeError, ValueError
        """
        if not isinstance(self.whiten, bool | np.bool_) and not (
            isinstance(self.whiten, str) and self.whiten == "auto"
        ):
            raise ValueError(f"view {name!r}: whiten must be True, False or 'auto'; got {briefly(self.whiten)}")
        if self.variance is not None:
            check_positive(f"view {name!r}: variance", self.variance, finite=True)
            check_real(f"view {name!r}: variance", self.variance, low=LEAST_VARIANCE, high=MOST_VARIANCE)


@value_class
@dataclass(frozen=True)
class Bernoulli:
    """A view of zeros and ones, dense or sparse: tags, words that occur, answers.

    Parameters
    ----------
    columns : list of int or str, slice, optional
        See `Gaussian`.
    binarize : float, optional
        Threshold, at least 0: larger entries become 1, others 0. By default entries must be 0 or 1. (There is no model
        of counts: with Gaussian latents its probabilities cannot be normalised.)
    edges : list of pairs of int or str, optional
        Pairs of columns that depend on each other directly, not only through the latents, by number within the view or
        by name; each pair has a coupling.
    latent_edges : bool, default=False
        Whether couplings depend on the latents: then pairs that are on together load on components, too.

    Examples
    --------
    >>> Bernoulli(edges=[(0, 1), (1, 2)]).edges
    [(0, 1), (1, 2)]
    """

    columns: Any = None
    binarize: float | None = None
    edges: Any = None
    latent_edges: bool = False

    kind = "bernoulli"

    def check(self, name: str) -> None:
        """Check the parameters.

        Raises
        ------
        TypeError, ValueError
        """
        if self.binarize is not None:
            check_real(f"view {name!r}: binarize", self.binarize, low=0.0)
        check_flag(f"view {name!r}: latent_edges", self.latent_edges)
        if self.edges is None:
            return
        try:
            pairs = [tuple(edge) for edge in self.edges]
        except TypeError:
            pairs = [()]
        if isinstance(self.edges, str) or not all(len(pair) == 2 for pair in pairs):
            raise TypeError(
                f"view {name!r}: edges must be a list of pairs of columns, such as [(0, 1), (1, 2)]; "
                f"got {briefly(self.edges)}"
            )


@value_class
@dataclass(frozen=True)
class Chain:
    """A view of zeros and ones in order: whether each of N words occurs in each of the paragraphs of a document.

    Each word is a chain over the paragraphs, with the same weights in all of them and a coupling between neighbouring
    ones. Documents may differ in their number of paragraphs.

    Where X is a dictionary the view is an array of shape (n_samples, n_steps, n_words) in which paragraphs that a
    document does not have hold NaN, or a list with an array or sparse matrix of shape (its paragraphs, n_words) for
    each document, None where it lacks the view.

    Parameters
    ----------
    columns : list of int or str, slice, optional
        See `Gaussian`. Where X is one table: all columns of the first paragraph, then of the second, and so on.
    n_steps : int, optional
        Where X is one table: the number of paragraphs in the columns. A paragraph that a row does not have holds NaN.
        For an array of three dimensions it must be the second one.
    latent_transitions : bool, default=True
        Whether couplings between neighbours depend on the latents. If not, the representation of a document does not
        depend on the order of its paragraphs.
    binarize : float, optional
        See `Bernoulli`.

    Examples
    --------
    >>> Chain(n_steps=5).latent_transitions
    True
    """

    columns: Any = None
    n_steps: int | None = None
    latent_transitions: bool = True
    binarize: float | None = None

    kind = "chain"

    def check(self, name: str) -> None:
        """Check the parameters.

        Raises
        ------
        TypeError, ValueError
        """
        if self.n_steps is not None:
            check_integer(f"view {name!r}: n_steps", self.n_steps, low=1)
        if self.columns is not None and self.n_steps is None:
            raise ValueError(f"view {name!r}: give n_steps, the number of paragraphs that its columns are")
        check_flag(f"view {name!r}: latent_transitions", self.latent_transitions)
        if self.binarize is not None:
            check_real(f"view {name!r}: binarize", self.binarize, low=0.0)


@value_class
@dataclass(frozen=True)
class Categorical:
    """A view of categories: each column holds one of some numbers or texts.

    Parameters
    ----------
    columns : list of int or str, slice, optional
        See `Gaussian`.

    Examples
    --------
    >>> Categorical(columns=["colour"]).kind
    'categorical'
    """

    columns: Any = None

    kind = "categorical"

    def check(self, name: str) -> None:
        """Accept any parameters: columns are checked against X."""


def check_flag(name: str, value: Any) -> None:
    """Raise TypeError if a parameter is not True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; got {briefly(value)}")


View = Gaussian | Bernoulli | Chain | Categorical
KINDS: dict[str, type[Any]] = {cls.kind: cls for cls in (Gaussian, Bernoulli, Chain, Categorical)}
"""By name."""

LEAST_VARIANCE = 0.05
"""Smallest variance given the latents: below it a component would describe a single variable."""
MOST_VARIANCE = 4.0
ROWS_PER_COLUMN = 10
"""Rows a column from which a view is whitened by default: fewer do not tell how columns depend on each other."""
MOST_COLUMNS = 2000
"""Largest number of columns of a view that is whitened by default."""


def is_whitened(view: Gaussian, n_rows: int, n_columns: int, *, others: bool) -> bool:
    """Return whether a view is whitened; `others`: whether there is another view of real numbers."""
    if not isinstance(view.whiten, str):
        return bool(view.whiten)
    return others and n_columns <= MOST_COLUMNS and n_rows >= ROWS_PER_COLUMN * n_columns


def check_views(views: Any) -> dict[str, View]:
    """Check the parameter `views`; None is one Gaussian view of all columns."""
    if views is None:
        return {"x": Gaussian()}
    if not isinstance(views, Mapping):
        raise TypeError(
            f"views must be a dictionary of names and views, such as {{'tags': Bernoulli()}}; got {briefly(views)}"
        )
    if not views:
        raise ValueError("views is empty: name at least one view, or leave it out for one Gaussian view of all columns")
    found = {}
    for name, view in views.items():
        if not isinstance(name, str):
            raise TypeError(f"views must have texts as names; got {briefly(name)}")
        if isinstance(view, str):
            if view.lower() not in KINDS:
                raise ValueError(
                    f"view {name!r} must be Gaussian, Bernoulli, Chain or Categorical, or one of "
                    f"{', '.join(map(repr, KINDS))}; got {briefly(view)}.{did_you_mean(view.lower(), list(KINDS))}"
                )
            view = KINDS[view.lower()]()
        if not isinstance(view, View):
            raise TypeError(
                f"view {name!r} must be Gaussian(...), Bernoulli(...), Chain(...) or Categorical(...); "
                f"got {briefly(view)}: "
                "a list of columns goes inside, as in Gaussian([0, 1])"
            )
        view.check(name)
        found[name] = view
    return found


def resolve_columns(views: Mapping[str, View], n_columns: int, names: list[str] | None) -> dict[str, NDArray[np.intp]]:
    """Resolve the columns of each view to numbers of columns of X."""
    found: dict[str, NDArray[np.intp]] = {}
    owner: dict[int, str] = {}
    for name, view in views.items():
        if view.columns is None:
            if len(views) > 1:
                raise ValueError(
                    f"view {name!r} does not say which columns of X it has: give columns=[...], or X as a dictionary "
                    "with one array a view"
                )
            found[name] = np.arange(n_columns)
            continue
        found[name] = np.array([_column(c, name, n_columns, names) for c in _listed(view.columns, n_columns, name)])
        for column in found[name].tolist():
            if column in owner:
                where = f"view {name!r} twice" if owner[column] == name else f"views {owner[column]!r} and {name!r}"
                raise ValueError(f"column {column} of X is in {where}: a column belongs to one view")
            owner[column] = name
        if not len(found[name]):
            raise ValueError(f"view {name!r} has no columns")
    return found


def _listed(columns: Any, n_columns: int, name: str) -> list[Any]:
    if isinstance(columns, slice):
        try:
            return list(range(*columns.indices(n_columns)))
        except (TypeError, ValueError) as error:
            raise TypeError(f"view {name!r}: a slice of columns is one of numbers; got {briefly(columns)}") from error
    if isinstance(columns, str):
        return [columns]
    if np.ndim(columns) != 1:
        raise TypeError(
            f"view {name!r}: columns must be a list of numbers or names, or a slice; got {briefly(columns)}"
        )
    return list(columns)


def _column(column: Any, view: str, n_columns: int, names: list[str] | None) -> int:
    if isinstance(column, str):
        if names is None:
            raise ValueError(f"view {view!r} names column {briefly(column)}, but X has no column names: give numbers")
        if column not in names:
            raise ValueError(f"view {view!r}: X has no column {briefly(column)}.{did_you_mean(column, names)}")
        return names.index(column)
    if isinstance(column, bool | np.bool_ | np.timedelta64) or not isinstance(column, int | np.integer):
        mask = ": of a mask give np.flatnonzero" if isinstance(column, bool | np.bool_) else ""
        raise TypeError(f"view {view!r}: a column is a number or a name; got {briefly(column)}{mask}")
    if not -n_columns <= column < n_columns:
        raise ValueError(f"view {view!r}: X has {n_columns} columns, and none is number {column}")
    return int(column) % n_columns


def edges_of(view: Bernoulli, name: str, names: list[str]) -> NDArray[np.intp]:
    """Resolve the edges of a view to numbers of its columns, each pair ascending, in sorted order."""
    found: set[tuple[int, int]] = set()
    for edge in view.edges if view.edges is not None else ():
        i, j = sorted(_end(end, name, names) for end in edge)
        if i == j:
            raise ValueError(f"view {name!r}: the edge {tuple(edge)!r} leads from a column to itself")
        if (i, j) in found:
            raise ValueError(f"view {name!r}: the edge {tuple(edge)!r} is there twice")
        found.add((i, j))
    return np.array(sorted(found), dtype=np.intp).reshape(-1, 2)


def _end(end: Any, view: str, names: list[str]) -> int:
    if isinstance(end, str):
        if end not in names:
            raise ValueError(f"view {view!r} has no column {end!r}, which edges name.{did_you_mean(end, names)}")
        return names.index(end)
    if isinstance(end, bool | np.bool_ | np.timedelta64) or not isinstance(end, int | np.integer):
        raise TypeError(f"view {view!r}: edges are pairs of numbers or names of columns; got {briefly(end)}")
    if not 0 <= end < len(names):
        raise ValueError(f"view {view!r} has {len(names)} columns, and none is number {end}, which edges name")
    return int(end)
