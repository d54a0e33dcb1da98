"""Which variables a harmonium has, its parameters, and what of them a row without some views meets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from majorant.models.harmonium.structure import Structure

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """The variables of all views in one order.

    Gaussian ones, bits, the nodes and couplings of each structured view, then the levels of each categorical variable.

    Attributes
    ----------
    n_gaussian, n_bits : int
    levels : tuple of int
        Number of levels of each categorical variable; a label that is modelled comes last.
    level_weights : tuple of float
        What the conditional of each categorical variable counts for.
    n_scores : int
        Rows that follow the variables: the coefficients of what is predicted from the latents.
    has_label : bool
        Whether the last categorical variable is a label.
    structures : tuple of Structure
        Of the structured views.
    """

    n_gaussian: int
    n_bits: int
    levels: tuple[int, ...] = ()
    level_weights: tuple[float, ...] = ()
    n_scores: int = 0
    has_label: bool = False
    structures: tuple[Structure, ...] = ()

    @property
    def n_variables(self) -> int:
        """Rows of W."""
        return self.first_level + sum(self.levels)

    @property
    def first_level(self) -> int:
        """The row of W at which categorical variables begin."""
        return self.n_gaussian + self.n_bits + sum(s.width for s in self.structures)

    @property
    def n_rows(self) -> int:
        """Rows of W and of V below it."""
        return self.n_variables + self.n_scores

    @property
    def of_variables(self) -> tuple[slice, ...]:
        """The rows of each categorical variable."""
        return tuple(slice(self.first_level + at.start, self.first_level + at.stop) for at in self.among_levels)

    @property
    def among_levels(self) -> tuple[slice, ...]:
        """The levels of each categorical variable among those of all."""
        return _slices(0, self.levels)

    @property
    def of_structures(self) -> tuple[slice, ...]:
        """The rows of each structured view."""
        return _slices(self.n_gaussian + self.n_bits, [s.width for s in self.structures])


def _slices(start: int, sizes: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(a, b) for a, b in pairwise((start + np.cumsum([0, *sizes])).tolist()))


@dataclass(frozen=True)
class Parameters:
    """Parameters of a harmonium, or a gradient in them.

    Attributes
    ----------
    weights : ndarray of shape (n_rows, n_components)
        W, and below it V.
    intercept : ndarray of shape (n_rows,)
        Linear terms a, b and c of the variables, then intercepts of the scores.
    log_variance : ndarray of shape (n_gaussian,)
        log s.
    """

    weights: Array
    intercept: Array
    log_variance: Array

    def packed(self) -> Array:
        """All of them in one vector."""
        return np.concatenate([self.weights.ravel(), self.intercept, self.log_variance])

    @classmethod
    def unpacked(cls, flat: Array, layout: Layout) -> Self:
        """The inverse of `packed`."""
        n, g = layout.n_rows, layout.n_gaussian
        size = len(flat) - n - g
        return cls(flat[:size].reshape(n, size // max(n, 1)), flat[size : size + n], flat[size + n :])

    @property
    def n_components(self) -> int:
        return int(self.weights.shape[1])

    @property
    def variance(self) -> Array:
        """s: the variance of each Gaussian variable given the latents."""
        return np.exp(self.log_variance)


@dataclass(frozen=True)
class Seen:
    """The variables that some rows have.

    Attributes
    ----------
    gaussian, bits : ndarray of int
        Rows of W.
    variables : tuple of int
        Categorical variables, by number.
    missing_gaussian : ndarray of int
    structures : tuple of int
        Structured views, by number.
    """

    gaussian: NDArray[np.intp]
    bits: NDArray[np.intp]
    variables: tuple[int, ...]
    missing_gaussian: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    structures: tuple[int, ...] = ()

    @classmethod
    def everything(cls, layout: Layout) -> Self:
        """Rows that lack nothing."""
        g, b = layout.n_gaussian, layout.n_bits
        every = tuple(range(len(layout.structures)))
        return cls(np.arange(g), np.arange(g, g + b), tuple(range(len(layout.levels))), structures=every)

    def levels(self, layout: Layout) -> NDArray[np.intp]:
        """Rows of W of the levels of the categorical variables."""
        slices = layout.of_variables
        return _indices([slices[v] for v in self.variables])

    def groups(self, layout: Layout) -> list[NDArray[np.intp]]:
        """Rows of W of real variables, bits, each structured view and levels that are there."""
        structured = [_indices([layout.of_structures[s]]) for s in self.structures]
        return [self.gaussian, self.bits, *structured, self.levels(layout)]

    def columns(self, layout: Layout) -> NDArray[np.intp]:
        """Rows of W of all variables that are there."""
        return np.concatenate(self.groups(layout))


def _indices(slices: list[slice]) -> NDArray[np.intp]:
    parts = [np.arange(at.start, at.stop) for at in slices]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class Marginal:
    r"""A harmonium with some Gaussian variables integrated out: a harmonium again, in other coordinates of its latents.

    With U, b and S = diag(s) those of the variables that are missing, the latents have precision
    :math:`A = I - U^\top S U` and a linear term :math:`\beta = U^\top S b`. In coordinates in which A is the identity,
    :math:`h = R h'` with :math:`R R^\top = A^{-1}`, the weights are W R and a constant :math:`R^\top \beta` is added
    to their sum.

    Attributes
    ----------
    parameters : Parameters
        W R and V R; all else as before.
    shift : ndarray of shape (n_components,)
    whole : Parameters
        Those of the harmonium with all of its variables.
    missing : ndarray of int
        The Gaussian variables that are integrated out.
    turn : ndarray of shape (n_components, n_components), or None
        R; None where nothing is missing.
    """

    parameters: Parameters
    shift: Array
    whole: Parameters
    missing: NDArray[np.intp]
    turn: Array | None = None

    @classmethod
    def of(cls, parameters: Parameters, missing: NDArray[np.intp]) -> Self:
        """Integrate out the Gaussian variables `missing`.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the model is not proper.
        """
        k = parameters.n_components
        if not len(missing):
            return cls(parameters, np.zeros(k), parameters, missing)
        u, s, b = _of(parameters, missing)
        factor = np.linalg.cholesky(np.eye(k) - (u.T * s) @ u)
        turn = solve_triangular(factor, np.eye(k), lower=True).T
        turned = Parameters(parameters.weights @ turn, parameters.intercept, parameters.log_variance)
        return cls(turned, turn.T @ (u.T @ (s * b)), parameters, missing, turn)

    def pulled_back(self, gradient: Parameters, of_shift: Array) -> Parameters:
        """The gradient in the parameters of the whole model, from that in these parameters and in the shift."""
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
    """U, s and b of some Gaussian variables."""
    return parameters.weights[gaussian], parameters.variance[gaussian], parameters.intercept[gaussian]
