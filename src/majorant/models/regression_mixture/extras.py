"""Inputs besides X and y, checked: groups, gating columns, offset, trials, labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from majorant._frames import column_names
from majorant._numbers import briefly
from majorant._validation import check_groups, refuse_text
from majorant.models.formula_estimator import term
from majorant.models.mixture_rows import check_constant, checked_labels, labels_of_groups
from majorant.solvers.responses import Response

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Extras:
    """Inputs per row, None where not given: group as an index of `group_names`, label (-1 where unknown), and so on."""

    groups: NDArray[np.intp] | None = None
    group_names: NDArray[Any] | None = None
    gating: Array | None = None
    offset: Array | None = None
    trials: Array | None = None
    labels: NDArray[np.intp] | None = None
    gating_names: NDArray[np.object_] | None = None

    @property
    def is_empty(self) -> bool:
        return all(value is None for value in (self.groups, self.gating, self.offset, self.trials, self.labels))


def check_extras(
    n: int,
    *,
    groups: Any = None,
    gating: Any = None,
    offset: Any = None,
    trials: Any = None,
    component_labels: Any = None,
    n_components: int = 1,
    response: Response,
) -> Extras:
    """Return what is given of n rows besides X and y, checked.

    Raises
    ------
    ValueError, TypeError
        Says which argument, what was got and what was expected.
    """
    codes, names = (None, None) if groups is None else check_groups(groups, n)
    gates = None if gating is None else _gating(gating, n)
    if codes is not None and gates is not None:
        check_constant("gating", gates, codes, names)
    if trials is not None and not response.takes_trials:
        raise ValueError(f'trials= goes with family="binomial"; got family={briefly(response.name)}')
    counts = None if trials is None else _column("trials", trials, n)
    if counts is not None and ((counts < 1) | (counts != np.floor(counts))).any():
        at = int(np.flatnonzero((counts < 1) | (counts != np.floor(counts)))[0])
        raise ValueError(f"trials must be whole numbers of at least 1; row {at} is {counts[at]:g}")
    labels = None if component_labels is None else checked_labels(component_labels, n, n_components)
    if labels is not None and codes is not None:
        labels = labels_of_groups(labels, codes, names)
    offsets = None if offset is None else _column("offset", offset, n)
    return Extras(codes, names, gates, offsets, counts, labels, None if gates is None else _names(gating))


def _names(gating: Any) -> NDArray[np.object_] | None:
    """Return the names of a data frame's columns, where all are text, as scikit-learn takes those of X."""
    names = column_names(gating) or []
    return np.array(names, dtype=object) if names and all(isinstance(name, str) for name in names) else None


def _column(name: str, value: Any, n: int) -> Array:
    """Return one finite number per row; a scalar applies to all rows."""
    raw = np.asarray(value)
    if raw.ndim == 0:
        raw = np.full(n, raw)
    if raw.dtype.kind not in "biufO":
        is_name = isinstance(value, str)
        told = f"{value!r}: names of columns go to fit_formula, here it is an array in memory" if is_name else ""
        raise TypeError(f"{name} must hold numbers, one per row; got {told or f'an array of {raw.dtype}'}")
    column = np.asarray(check_array(raw, ensure_2d=False, dtype=np.float64, input_name=name))
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.shape != (n,):
        raise ValueError(f"{name} must be one number per row, shape ({n},); got shape {column.shape}")
    return column


def _gating(gating: Any, n: int) -> Array:
    raw = gating if hasattr(gating, "shape") else np.asarray(gating)
    if raw.shape == () or getattr(getattr(raw, "dtype", None), "kind", "f") not in "biufO":
        raise TypeError(
            f"gating must hold numbers, a row for each of the {n} rows of X; got {gating!r:.60}. Names of columns go "
            "with a table: from_formula"
        )
    if len(raw.shape) == 1:
        raw = np.asarray(raw)[:, None]
    call = "RegressionMixture.from_formula('y ~ x', table, gating={!r})"
    refuse_text(raw, "gating", lambda name, _: call.format(term(name)))
    table = np.asarray(check_array(raw, dtype=np.float64, input_name="gating"))
    if len(table) != n:
        raise ValueError(f"gating must have a row for each of the {n} rows of X; got {len(table)}")
    return table


def check_unit_weights(weights: Array | None, extras: Extras) -> None:
    """Refuse weights that differ within a group.

    Raises
    ------
    ValueError
    """
    if weights is not None and extras.groups is not None:
        check_constant("sample_weight", weights, extras.groups, extras.group_names)


def shared_columns(shared: Any, names: Sequence[str], *, fit_intercept: bool) -> tuple[int, ...]:
    """Return the numbers of the columns that the parameter `shared` names; -1 for the intercept.

    Raises
    ------
    TypeError, ValueError
    """
    if isinstance(shared, str) or not isinstance(shared, Iterable):
        raise TypeError(
            f"shared must be a list of columns by name or number, or 'intercept', such as ['intercept', 0]; "
            f"got {briefly(shared)}"
        )
    found: set[int] = set()
    for item in shared:
        if isinstance(item, str) and item in names:
            found.add(list(names).index(item))
        elif isinstance(item, str) and item == "intercept":
            if not fit_intercept:
                raise ValueError("shared names the intercept, but fit_intercept is False")
            found.add(-1)
        elif (
            isinstance(item, int | np.integer)
            and not isinstance(item, bool | np.timedelta64)
            and 0 <= item < len(names)
        ):
            found.add(int(item))
        else:
            raise ValueError(
                f"shared has no column {briefly(item)}: name one of {', '.join(names)}, a number from 0 to "
                f"{len(names) - 1}, or 'intercept'"
            )
    return tuple(sorted(found))


def check_gating(extras: Extras, fitted: int, names: NDArray[np.object_] | None) -> None:
    """Raise an error if gating columns differ from those of the fit.

    Raises
    ------
    ValueError
    """
    given = None if extras.gating is None else extras.gating.shape[1]
    if (given or 0) != fitted:
        was = f"the model was fitted with {fitted} gating columns" if fitted else "the model was fitted without gating="
        now = "none were given" if given is None else f"{given} were given"
        raise ValueError(f"{was}; {now}")
    if names is not None and extras.gating_names is not None and (names != extras.gating_names).any():
        raise ValueError(
            f"gating must have the columns of the fit in their order, {', '.join(names)}; "
            f"got {', '.join(extras.gating_names)}"
        )
