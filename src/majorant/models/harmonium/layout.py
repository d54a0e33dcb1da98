"""The parts of a harmonium: where variables of views are in its parameters, and the loss of a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.special import expit

from majorant._numbers import briefly
from majorant._validation import check_auto, check_real, is_missing
from majorant.models.harmonium.structure import Structure
from majorant.models.harmonium.tables import Table, n_rows
from majorant.models.harmonium.variables import FittedView, spread_of
from majorant.models.harmonium.views import Gaussian
from majorant.registry import value_class

Array = NDArray[np.float64]

PLACES = ("gaussian", "bernoulli", "structured", "categorical")
"""Kinds of variables, in their order in the model."""
EDGE = 1e-10
"""Smallest `properness` of a start."""
SMOOTHING = 0.1
"""Width over which the corners of hinges are smoothed, in units of the scores."""


@dataclass(frozen=True)
class Layout:
    """All variables, in order: Gaussian ones, bits, nodes and couplings of structured views, levels of categories."""

    n_gaussian: int
    n_bits: int
    levels: tuple[int, ...] = ()  # number of levels of each categorical variable; a label that is modelled comes last
    level_weights: tuple[float, ...] = ()  # weight of the conditional of each categorical variable
    n_scores: int = 0  # number of scores of a target, whose coefficients V are the rows below W
    has_label: bool = False  # whether the last categorical variable is a label
    structures: tuple[Structure, ...] = ()  # structures of the structured views

    @property
    def n_variables(self) -> int:
        """Number of rows of W."""
        return self.first_level + sum(self.levels)

    @property
    def first_level(self) -> int:
        """First row of W of categorical variables."""
        return self.n_gaussian + self.n_bits + sum(s.width for s in self.structures)

    @property
    def n_rows(self) -> int:
        """Number of rows of W and V."""
        return self.n_variables + self.n_scores

    @property
    def of_variables(self) -> tuple[slice, ...]:
        """Rows of W of each categorical variable."""
        return tuple(slice(self.first_level + at.start, self.first_level + at.stop) for at in self.among_levels)

    @property
    def among_levels(self) -> tuple[slice, ...]:
        """Positions of the levels of each categorical variable among all levels."""
        return _slices(0, self.levels)

    @property
    def of_structures(self) -> tuple[slice, ...]:
        """Rows of W of each structured view."""
        return _slices(self.n_gaussian + self.n_bits, [s.width for s in self.structures])


def _slices(start: int, sizes: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(a, b) for a, b in pairwise((start + np.cumsum([0, *sizes])).tolist()))


@dataclass(frozen=True)
class Parameters:
    """Parameters of a harmonium, or a gradient with respect to them."""

    weights: Array  # (n_rows, n_components): W, and below it V
    intercept: Array  # (n_rows,): linear terms of the variables (b, a), then intercepts c of the scores
    log_variance: Array  # (n_gaussian,): logarithms of the variances s of Gaussian variables given the latents

    def packed(self) -> Array:
        """Return all parameters as one vector."""
        return np.concatenate([self.weights.ravel(), self.intercept, self.log_variance])

    @classmethod
    def unpacked(cls, flat: Array, layout: Layout) -> Self:
        """Build parameters from a vector of `packed`."""
        n, g = layout.n_rows, layout.n_gaussian
        size = len(flat) - n - g
        return cls(flat[:size].reshape(n, size // max(n, 1)), flat[size : size + n], flat[size + n :])

    @property
    def n_components(self) -> int:
        return int(self.weights.shape[1])

    @property
    def variance(self) -> Array:
        """Variances s."""
        return np.exp(self.log_variance)


@dataclass(frozen=True)
class Seen:
    """Variables that are observed in some rows: rows of W, numbers of categorical variables and of structured views."""

    gaussian: NDArray[np.intp]
    bits: NDArray[np.intp]
    variables: tuple[int, ...]
    missing_gaussian: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    structures: tuple[int, ...] = ()

    @classmethod
    def everything(cls, layout: Layout) -> Self:
        """Build the pattern in which all variables are observed."""
        g, b = layout.n_gaussian, layout.n_bits
        every = tuple(range(len(layout.structures)))
        return cls(np.arange(g), np.arange(g, g + b), tuple(range(len(layout.levels))), structures=every)

    def levels(self, layout: Layout) -> NDArray[np.intp]:
        """Return the rows of W of the levels of observed categorical variables."""
        slices = layout.of_variables
        return _indices([slices[v] for v in self.variables])

    def groups(self, layout: Layout) -> list[NDArray[np.intp]]:
        """Return the rows of W of observed Gaussian variables, bits, each structured view, and levels."""
        structured = [_indices([layout.of_structures[s]]) for s in self.structures]
        return [self.gaussian, self.bits, *structured, self.levels(layout)]

    def columns(self, layout: Layout) -> NDArray[np.intp]:
        """Return the rows of W of all observed variables."""
        return np.concatenate(self.groups(layout))


def _indices(slices: list[slice]) -> NDArray[np.intp]:
    parts = [np.arange(at.start, at.stop) for at in slices]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class Marginal:
    r"""A harmonium with Gaussian variables integrated out: again a harmonium, in other coordinates of the latents.

    With U, b and S = diag(s) of the missing variables, the latents have precision
    :math:`A = I - U^\top S U` and a linear term :math:`\beta = U^\top S b`. In coordinates in which A is the identity,
    :math:`h = R h'` with :math:`R R^\top = A^{-1}`, the weights are W R and a constant :math:`R^\top \beta` is added
    to their sum.
    """

    parameters: Parameters  # W R and V R, intercepts and variances
    shift: Array  # (n_components,)
    whole: Parameters  # parameters of the harmonium with all of its variables
    missing: NDArray[np.intp]  # Gaussian variables that are integrated out
    turn: Array | None = None  # (n_components, n_components): R; None where nothing is missing

    @classmethod
    def of(cls, parameters: Parameters, missing: NDArray[np.intp]) -> Self:
        """Integrate out the Gaussian variables `missing`."""
        k = parameters.n_components
        if not k or not len(missing):
            return cls(parameters, np.zeros(k), parameters, missing)
        u, s, b = _of(parameters, missing)
        factor = np.linalg.cholesky(np.eye(k) - (u.T * s) @ u)
        turn = solve_triangular(factor, np.eye(k), lower=True).T
        turned = Parameters(parameters.weights @ turn, parameters.intercept, parameters.log_variance)
        return cls(turned, turn.T @ (u.T @ (s * b)), parameters, missing, turn)

    def pulled_back(self, gradient: Parameters, of_shift: Array) -> Parameters:
        """Convert gradients in these parameters and in the shift to the gradient in the whole model's parameters."""
        if self.turn is None:
            return gradient
        turn, missing = self.turn, self.missing
        u, s, b = _of(self.whole, missing)
        beta = u.T @ (s * b)
        of_turn = self.whole.weights.T @ gradient.weights + np.outer(beta, of_shift)
        inverse = turn @ turn.T
        half = np.linalg.solve(turn.T, of_turn.T).T / 2
        h = inverse @ ((half + half.T) / 2) @ inverse
        of_beta = turn @ of_shift
        along = u @ of_beta
        weights = gradient.weights @ turn.T
        weights[missing] += s[:, None] * (2 * u @ h + np.outer(b, of_beta))
        intercept, log_variance = gradient.intercept.copy(), gradient.log_variance.copy()
        intercept[missing] += s * along
        log_variance[missing] += s * (np.einsum("jk,jk->j", u @ h, u) + b * along)
        return Parameters(weights, intercept, log_variance)


def _of(parameters: Parameters, gaussian: NDArray[np.intp]) -> tuple[Array, Array, Array]:
    """Return U, s and b of Gaussian variables."""
    return parameters.weights[gaussian], parameters.variance[gaussian], parameters.intercept[gaussian]


def renewed(at: Parameters, fresh: Parameters) -> Parameters:
    """Add a small multiple of a start, as zero components have no gradient, keeping the model proper."""
    if at.n_components != fresh.n_components:
        return at
    room, step = properness(at) / 2, 0.1
    while step > 1e-4:
        near = Parameters(at.weights + step * fresh.weights, at.intercept, at.log_variance)
        if properness(near) >= room:
            return near
        step /= 2
    return at


def properness(at: Parameters) -> float:
    """Return the smallest eigenvalue of the latents' precision without Gaussian variables: positive if proper."""
    u = at.weights[: len(at.log_variance)]
    return float(np.linalg.eigvalsh(np.eye(at.n_components) - (u.T * at.variance) @ u)[0])


def shrunk(at: Parameters) -> Parameters:
    """Shrink weights by a factor so that the model is proper; return parameters that are proper unchanged."""
    if not at.weights.size or (room := properness(at)) > EDGE:
        return at
    return Parameters(at.weights * np.sqrt(0.9 / (1 - room)), at.intercept, at.log_variance)


@value_class
@dataclass(frozen=True)
class Hinge:
    r"""The multiclass hinge :math:`\max_c (1[c \ne y] + s_c - s_y)` with smoothed maximum; y holds codes of labels.

    The smooth maximum :math:`\tau \log \sum_c \exp(u_c / \tau)` exceeds the maximum by at most :math:`\tau \log T`.
    """

    n_scores: int  # number of scores of a row
    smoothing: float = SMOOTHING

    def value_and_slope(self, scores: Array, y: NDArray[Any]) -> tuple[Array, Array]:
        """Return the loss of each row, and its derivative in each score."""
        rows = np.arange(len(y))
        u = scores + 1.0
        u[rows, y] -= 1.0
        u -= scores[rows, y][:, None]
        most = u.max(axis=1, keepdims=True)
        slope = np.exp((u - most) / self.smoothing)
        total = slope.sum(axis=1, keepdims=True)
        slope /= total
        slope[rows, y] -= 1.0
        return (most + self.smoothing * np.log(total))[:, 0], slope

    def targets(self, y: NDArray[Any]) -> Array:
        """Return the targets (n_rows, n_scores) of the least-squares start."""
        target = np.full((len(y), self.n_scores), -1 / self.n_scores)
        target[np.arange(len(y)), y] += 1
        return target


@value_class
@dataclass(frozen=True)
class EpsilonInsensitive:
    r"""The loss :math:`\max(|r| - \epsilon, 0)` of a residual with its corners smoothed."""

    epsilon: float
    smoothing: float = SMOOTHING
    n_scores: int = 1

    def value_and_slope(self, scores: Array, y: NDArray[Any]) -> tuple[Array, Array]:
        residual = scores[:, 0] - y
        above, below = ((sign * residual - self.epsilon) / self.smoothing for sign in (1.0, -1.0))
        value = self.smoothing * (np.logaddexp(0, above) + np.logaddexp(0, below))
        return value, (expit(above) - expit(below))[:, None]

    def targets(self, y: NDArray[Any]) -> Array:
        return np.asarray(y[:, None])


@value_class
@dataclass(frozen=True)
class Squared:
    """Half the squared residual."""

    n_scores: int = 1

    def value_and_slope(self, scores: Array, y: NDArray[Any]) -> tuple[Array, Array]:
        residual = scores[:, 0] - y
        return residual**2 / 2, residual[:, None]

    def targets(self, y: NDArray[Any]) -> Array:
        return np.asarray(y[:, None])


Loss = Hinge | EpsilonInsensitive | Squared
"""Smooth convex losses of scores that are linear in the latents; methods are as of `Hinge`."""


@value_class
@dataclass(frozen=True)
class Supervision:
    """The target of a fit: a loss of scores, or a label that is modelled."""

    loss: Loss | None = None
    # number of levels of a label that is modelled as one more categorical variable; 0 if there is none
    n_labels: int = 0
    weight: float = 0.0  # weight of the loss, or of the label's conditional
    compared: tuple[float, ...] = ()  # weights that the fit compares; empty if the weight is given
    penalty: float = 1.0  # penalty of V, or of the label's weights, in units of that of the views

    @property
    def n_scores(self) -> int:
        """Number of scores of a row."""
        return 0 if self.loss is None else self.loss.n_scores


def penalties(l2: Any) -> tuple[float | str, float]:
    """Check `l2`; return the penalty of the views, or "auto", and that of a target in units of it."""
    if not isinstance(l2, Mapping):
        return check_auto("l2", l2) or "auto", 1.0
    if set(l2) != {"views", "response"}:
        raise ValueError(f"l2 by block must have the keys 'views' and 'response'; got {briefly(dict(l2))}")
    names = ("views", "response")
    views, response = (check_real(f"l2[{name!r}]", l2[name], low=1e-12, high=1e12) for name in names)
    return views, response / views


def not_a_number(y: Any) -> Any:
    """Find the first value that is present but not a number; None if there is none."""
    values = np.asarray(y, dtype=object).ravel()
    for value in values[~is_missing(values)].tolist():
        try:
            float(value)
        except (TypeError, ValueError):
            return value
    return None


def _refuse_huge(values: Array) -> None:
    most = np.abs(values).max()
    if most > 1e150:
        raise ValueError(f"y holds {most:.0e}, too large to be squared: rescale y")


def mean_and_scale(y: Array, weights: Array | None) -> tuple[float, float]:
    """Compute mean and standard deviation of a target, over distinct values so that repeats equal weights."""
    there = slice(None) if weights is None else weights > 0
    values, where = np.unique(y[there], return_inverse=True)
    shares = np.bincount(where, weights=None if weights is None else weights[there])
    shares = shares / shares.sum()
    _refuse_huge(values)
    half = np.max(np.abs(values)) or 1.0
    mean = float(np.sum(shares * (values / half)))
    spread = float(np.sqrt(np.sum(shares * (values / half - mean) ** 2)))
    return mean * half, spread * half if spread > 1e-14 else 1.0


def standardised_target(y: Array, mean: float, scale: float, weights: Array | None) -> Array:
    """Standardise a target; raise ValueError if squares of rows with weight overflow."""
    target: Array = (y - mean) / scale
    _refuse_huge(target if weights is None else target[weights > 0])
    return target


def in_order(views: tuple[FittedView, ...]) -> list[FittedView]:
    """Return the views in their order in W: by `PLACES`, and within one as the user named them."""
    return [view for place in PLACES for view in views if view.place == place]


def layout_of(views: tuple[FittedView, ...], supervision: Supervision) -> Layout:
    """Lay out the variables of all views, the label where it is modelled, and the scores of a loss."""
    levels = [size for view in views for size in view.sizes]
    weights = [1.0] * len(levels)
    if supervision.n_labels:
        levels, weights = [*levels, supervision.n_labels], [*weights, supervision.weight]
    n_gaussian, n_bits = (sum(v.width for v in views if v.place == place) for place in ("gaussian", "bernoulli"))
    structures = tuple(v.structure for v in views if v.structure is not None)
    has_label = supervision.n_labels > 0
    return Layout(n_gaussian, n_bits, tuple(levels), tuple(weights), supervision.n_scores, has_label, structures)


def rows_of_views(views: tuple[FittedView, ...]) -> dict[str, slice]:
    """Return the rows of W of each view."""
    found, start = {}, 0
    for view in in_order(views):
        found[view.name] = slice(start, start + view.width)
        start += view.width
    return {view.name: found[view.name] for view in views}


def centre_of(views: tuple[FittedView, ...], label_shares: Array) -> Array:
    """Return the mean of each variable."""
    return np.concatenate([*(view.centre for view in in_order(views)), label_shares])


def scale_of(views: tuple[FittedView, ...], label_shares: Array, layout: Layout, penalty: float) -> Array:
    """Return the units of the rows of W and V: inverse standard deviations, with the floor of rare bits.

    Those of the target are smaller by the root of its penalty in units of that of the views.
    """
    of_views = (view.scale_of_weights for view in in_order(views))
    of_target = np.concatenate([1 / spread_of(label_shares), np.ones(layout.n_scores)])
    return np.concatenate([*of_views, of_target / np.sqrt(penalty)])


def known_variances(views: tuple[FittedView, ...]) -> Array:
    """Return the variance of each Gaussian variable given the latents; NaN where it is learnt."""
    known = [np.full(v.width, v.given.variance or np.nan) for v in in_order(views) if isinstance(v.given, Gaussian)]
    return np.concatenate([np.empty(0), *known])


@dataclass(frozen=True)
class Pattern:
    """Rows that have the same views, as variables of the model."""

    seen: Seen
    rows: NDArray[np.intp]
    # Gaussian variables (dense), bits and one-hot categories (CSR), then data of each structured view
    columns: tuple[Any, ...]


def patterns_of(tables: Mapping[str, Table], views: tuple[FittedView, ...], *, reuse: bool = False) -> list[Pattern]:
    """Group rows by the views that they have, complete rows first; a view without a table is missing for all rows.

    `reuse` allows to overwrite the tables.
    """
    n = n_rows(tables)
    lost = np.column_stack([tables[v.name].missing if v.name in tables else np.ones(n, dtype=bool) for v in views])
    encoded = {v.name: v.encoded(tables[v.name], reuse=reuse) for v in views if v.name in tables}
    kinds = [np.unique(lost, axis=0)] if n else [np.zeros((1, len(views)), dtype=bool)]
    found = []
    for missing in kinds[0]:
        rows = np.flatnonzero((lost == missing).all(axis=1))
        there = [v for v, gone in zip(views, missing, strict=True) if not gone]
        columns = [_stacked(there, place, encoded, rows, n) for place in ("gaussian", "bernoulli", "categorical")]
        structured = [encoded[v.name] for v in there if v.structure is not None]
        columns += structured if len(rows) == n else [table[rows] for table in structured]
        found.append(Pattern(seen_of(views, there), rows, tuple(columns)))
    return found


def seen_of(views: tuple[FittedView, ...], there: list[FittedView]) -> Seen:
    """Return the variables of rows with the views `there`."""
    at = rows_of_views(views)
    names = {v.name for v in there}

    def indices(place: str, present: bool) -> NDArray[np.intp]:
        parts = [
            np.arange(at[v.name].start, at[v.name].stop)
            for v in views
            if v.place == place and (v.name in names) == present
        ]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.intp)

    variables: list[int] = []
    number = 0
    for view in views:
        if view.kind == "categorical":
            variables += range(number, number + len(view.sizes)) if view.name in names else []
            number += len(view.sizes)
    structured = [v.name for v in views if v.structure is not None]
    structures = tuple(i for i, name in enumerate(structured) if name in names)
    return Seen(
        indices("gaussian", True), indices("bernoulli", True), tuple(variables), indices("gaussian", False), structures
    )


def _stacked(there: list[FittedView], place: str, encoded: Mapping[str, Any], rows: NDArray[np.intp], n: int) -> Any:
    tables = [encoded[v.name] for v in there if v.place == place]
    if not tables:
        return np.empty((len(rows), 0)) if place == "gaussian" else sparse.csr_matrix((len(rows), 0))
    if len(tables) == 1:
        whole = tables[0]
    else:
        whole = np.hstack(tables) if place == "gaussian" else sparse.hstack(tables, format="csr")
    return whole if len(rows) == n else whole[rows]
