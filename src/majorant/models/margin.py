"""What the latent structural SVMs on kernels share: parameters, and the convex bound's solver."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from majorant.engine.chunks import Chunks
from majorant.solvers.structural_svm import BoundSolver, StructuralProblem

ROUGH = 1e-2
"""Relative duality gap of a fit to a part of the samples."""


@dataclass(frozen=True)
class Weights:
    """Parameters, and what the solver wants to remember.

    Attributes
    ----------
    w : ndarray of shape (dim,)
    augmented : float
        The sum of the loss-augmented maxima at `w`.
    gap : float
        How far the bound that `w` minimises may be above its minimum.
    state : object
        Where the solver of the next bound begins.
    """

    w: NDArray[np.float64]
    augmented: float
    gap: float
    state: Any = None


@dataclass
class MarginFamily:
    r"""A latent structural SVM at temperature zero, whose bounds are convex programmes.

    .. math:: F(w) = \frac{\alpha}{2} |w|^2 + \sum_i c_i \Bigl[ \max_{y, z} \bigl(\langle w, \phi(x_i, y, z) \rangle +
              \Delta(y_i, y)\bigr) - \max_z \langle w, \phi(x_i, y_i, z) \rangle \Bigr]

    Statistics are the sum of joint features of the latent values.

    Parameters
    ----------
    problem : StructuralProblem
    shares : ndarray of shape (n_samples,)
        Weights of the samples in the objective; they sum to one.
    alpha : float
    solver : BoundSolver
    tol : float
        Relative duality gap of each bound.
    seed : int
    slack : float
    max_passes : int
        Passes that the solver may take on one bound.
    """

    problem: StructuralProblem
    shares: NDArray[np.float64]
    alpha: float
    solver: BoundSolver
    tol: float
    seed: int
    slack: float = 0.0
    max_passes: int = 1000
    beta: float = np.inf

    def restricted(self, mask: NDArray[np.bool_]) -> Self:
        """The same for the samples of a mask, to a rough gap: such a fit is only to judge the others."""
        return replace(self, shares=np.where(mask, self.shares, 0.0), tol=max(self.tol, ROUGH))

    def solve(self, s: NDArray[np.float64], theta: Weights | None, data: Chunks) -> tuple[Weights, float]:
        found = self.solver(
            self.problem,
            s,
            self.shares,
            alpha=self.alpha,
            tol=self.tol,
            max_passes=self.max_passes,
            state=None if theta is None else theta.state,
            seed=self.seed,
        )
        data.n_passes += found.n_passes
        lowest = found.objective - found.gap
        if theta is not None:
            # Within the solver's tolerance the old weights may be the better ones.
            before = self.penalty(theta) + theta.augmented - float(np.sum(theta.w * s))
            if before <= found.objective:
                return Weights(theta.w, theta.augmented, max(before - lowest, 0.0), found.state), before
        augmented = found.objective - self.alpha / 2 * float(np.sum(found.w**2)) + float(np.sum(found.w * s))
        return Weights(found.w, augmented, found.gap, found.state), found.objective

    def penalty(self, theta: Weights) -> float:
        return self.alpha / 2 * float(np.sum(theta.w**2))


def learnt_classes(labels: NDArray[Any], weights: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Labels that have weight, and the number of each sample's, -1 where it has none.

    Raises
    ------
    ValueError
        If fewer than two labels have weight.
    """
    classes = np.unique(labels[weights > 0])
    if len(classes) < 2:
        where = "" if (weights > 0).all() else ", among the samples with weight"
        raise ValueError(f"y holds one class only, {classes[0]!s}{where}: a classifier needs at least two classes")
    codes = np.searchsorted(classes, labels)
    codes = np.where(codes < len(classes), codes, 0)
    return classes, np.where(classes[codes] == labels, codes, -1).astype(np.int32)


def label_costs(label_cost: Any, labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
    """Costs of the labels that are learnt, from those of all labels; None: 1 for every mistake.

    Raises
    ------
    ValueError
        If they are not costs of the labels.
    """
    if label_cost is None:
        return 1.0 - np.eye(len(classes))
    names = np.unique(labels)
    try:
        cost = np.asarray(label_cost, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"label_cost must be a table of numbers: {error}") from error
    if cost.shape != (len(names), len(names)):
        raise ValueError(
            f"label_cost must have a row and a column for each of the {len(names)} labels of y, in sorted order "
            f"({_some(names)}); got shape {cost.shape}"
        )
    if not np.isfinite(cost).all() or (cost < 0).any() or np.diag(cost).any():
        raise ValueError("label_cost must be finite and not negative, and zero on its diagonal")
    is_learnt = np.isin(names, classes)
    cost = cost[np.ix_(is_learnt, is_learnt)]
    if not 1e-6 <= cost.max() <= 1e6:
        raise ValueError(f"the largest entry of label_cost must lie between 1e-6 and 1e6; got {cost.max():g}")
    return cost


TOO_LARGE = 1e-9
"""Share of the largest square in X below which alpha cannot be why weights vanish: the solver is."""


def way_from_zero(entries: NDArray[Any], alpha: float, gap: float, objective: float, otherwise: str) -> str:
    """What to do where all weights are zero, though the parts of the data differ.

    Parameters
    ----------
    entries : ndarray
        Features, NaN where there are none.
    alpha, gap, objective : float
        Of the fit.
    otherwise : str
        Further advice where it is the penalty.
    """
    largest = float(np.abs(np.nan_to_num(entries)).max(initial=0.0))
    if largest == 0.0:
        return "X holds nothing but zeros, which tell no class from another"
    if gap > 0.5 * objective or np.sqrt(alpha) < np.sqrt(TOO_LARGE) * largest:
        return f"Scale X, which holds {largest:.0e}, to about 1: its bound was not solved (duality gap {gap:.2g})"
    return f"Lower alpha (now {alpha:g}){otherwise}"


def code_of_each(classes: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp]:
    """The number of the class of each label.

    Raises
    ------
    ValueError
        If a label is none of the classes.
    """
    matches = classes == np.asarray(labels)[:, None]
    if not matches.any(axis=1).all():
        unknown = labels[int(np.flatnonzero(~matches.any(axis=1))[0])]
        raise ValueError(f"y holds a label that the fit did not see: {unknown}")
    return np.asarray(matches.argmax(axis=1))


def _some(names: NDArray[Any]) -> str:
    shown = ", ".join(map(str, names[:5]))
    return shown if len(names) <= 5 else f"{shown}, ..."
