"""What the latent structural SVMs on kernels share: parameters, the convex bound's solver, and the end of a fit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from majorant._validation import levels_to_user
from majorant.data.chunks import Block, Chunks
from majorant.engine.latents import Latent
from majorant.engine.loop import Solution
from majorant.engine.problem import Bound
from majorant.models.base import LatentVariableModel
from majorant.search.record import StartRecord
from majorant.solvers.structural_svm import BoundRequest, BoundSolver
from majorant.solvers.structural_svm.planes import NativeProblem

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


@dataclass(frozen=True)
class Found:
    """What a search ends with.

    Attributes
    ----------
    solution : Solution
    records : tuple of StartRecord
    first : ndarray of shape (n_samples, ...)
        Latent values with which the best start began.
    n_passes : int
        Passes over the data, those of the start among them.
    """

    solution: Solution[Weights]
    records: tuple[StartRecord, ...]
    first: NDArray[np.int32]
    n_passes: int


@dataclass
class MarginFamily:
    r"""Latent structural SVM on kernels, at temperature zero; its bounds are convex.

    .. math:: F(w) = \frac{\alpha}{2} |w|^2 + \sum_i c_i \Bigl[ \max_{y, z} \bigl(\langle w, \phi(x_i, y, z) \rangle +
              \Delta(y_i, y)\bigr) - \max_z \langle w, \phi(x_i, y_i, z) \rangle \Bigr]

    Statistics are the sum of joint features of the latent values; the problem has the energies. Units are the latent
    values, those of a sample together: bounds are those of whole samples.

    Parameters
    ----------
    problem : NativeProblem
    shares : ndarray of shape (n_samples,)
        Weights of the samples in the objective; they sum to one.
    alpha : float
        Strength of the penalty.
    solver : BoundSolver
    tol : float
        Relative duality gap of each bound.
    seed : int
        Seed of the order in which the solver visits samples.
    slack : float
        Rounding error of the objective.
    max_passes : int
        Largest number of passes of the solver on one bound.
    """

    problem: NativeProblem[Any]
    shares: NDArray[np.float64]
    alpha: float
    solver: BoundSolver
    tol: float
    seed: int
    slack: float = 0.0
    max_passes: int = 1000
    beta: float = np.inf

    def __post_init__(self) -> None:
        self.n_states = self.problem.samples.n_states
        self.together = int(np.prod(self.problem.samples.latent_shape, dtype=int))

    def restricted(self, mask: NDArray[np.bool_]) -> Self:
        """The family of the samples of a mask, with a coarse gap: such fits only judge the other samples."""
        of_sample = mask.reshape(len(self.shares), -1)[:, 0]
        return replace(self, shares=np.where(of_sample, self.shares, 0.0), tol=max(self.tol, ROUGH))

    def _at(self, block: Block) -> slice:
        """Samples of a block of units."""
        return slice(block.at.start // self.together, block.at.stop // self.together)

    def energies(self, theta: Weights, block: Block) -> NDArray[np.float64]:
        return self.problem.energies(self._at(block), theta.w)

    def statistics(self, block: Block, q: Latent, theta: Weights | None) -> NDArray[np.float64]:
        samples, at = self.problem.samples, self._at(block)
        if q.ndim > 1:
            return np.asarray(samples.expected_sums(at, self.shares[at], q))
        latent = q.astype(np.int32, copy=False).reshape(-1, *samples.latent_shape)
        return np.asarray(samples.sums(at, self.shares[at], samples.codes[at], latent))

    def tight_pass(self, theta: Weights, block: Block) -> tuple[float, Bound]:
        samples, at = self.problem.samples, self._at(block)
        shares = self.shares[at]
        loss, latent = self.problem.tightest(at, theta.w, shares)
        return loss, Bound(samples.sums(at, shares, samples.codes[at], latent), 0.0, 0.0)

    def solve(self, s: NDArray[np.float64], theta: Weights | None, data: Chunks) -> tuple[Weights, float]:
        state = None if theta is None else theta.state
        found = self.solver(
            BoundRequest(self.problem, s, self.shares, self.alpha, self.tol, self.max_passes, state, self.seed)
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


STUCK = 1e-9
"""A penalty below this share of the objective is that of weights that are zero."""
TOO_LARGE = 1e-9
"""Share of the largest square in X below which alpha cannot be why weights vanish: the solver is."""


def vanishes(alpha: float, w: NDArray[np.float64], objective: float) -> bool:
    """Whether weights are zero, where a latent SVM stays whatever bound is drawn: every latent value scores alike."""
    return alpha / 2 * float(np.sum(w**2)) <= STUCK * objective


class MarginClassifier(ClassifierMixin, LatentVariableModel):  # type: ignore[misc]
    """What the end of a fit leaves on a classifier, and what it says of it."""

    alpha: float
    latent_init: Any
    max_iter: int
    classes_: NDArray[Any]

    @property
    def _is_annealed(self) -> bool:
        return isinstance(self.latent_init, str) and self.latent_init == "annealed"

    def _keep_end(self, found: Found) -> None:
        self.objective_ = found.solution.objective
        self.gap_ = found.solution.theta.gap
        self.n_iter_ = found.solution.n_iter
        self.n_passes_ = found.n_passes
        self.trace_ = found.solution.trace

    def _keep_confusion(
        self,
        best: NDArray[np.float64],
        codes: NDArray[np.int32],
        merged: NDArray[np.float64],
        positions: NDArray[np.intp],
    ) -> None:
        """Weight of each class by the one of highest score, counted along the canonical samples, which have `codes`."""
        has_weight = positions >= 0
        predicted = np.zeros(len(merged), dtype=np.intp)
        predicted[positions[has_weight]] = best.argmax(axis=1)[has_weight]
        self.confusion_ = np.zeros((len(self.classes_), len(self.classes_)))
        np.add.at(self.confusion_, (codes, predicted), merged)

    def _warn_at_zero(self, latent: str, entries: NDArray[Any], also: str = "") -> None:
        """Warn that all weights are zero though the data differ.

        Parameters
        ----------
        latent : str
            What a latent value is.
        entries : ndarray
            Features, NaN where there are none.
        also : str
            What may be lowered beside alpha.
        """
        largest = float(np.abs(np.nan_to_num(entries)).max(initial=0.0))
        if largest == 0.0:
            advice = "X holds nothing but zeros, which tell no class from another"
        elif self.gap_ > 0.5 * self.objective_ or np.sqrt(self.alpha) < np.sqrt(TOO_LARGE) * largest:
            unsolved = f"its bound was not solved (duality gap {self.gap_:.2g})"
            advice = f"Scale X, which holds {largest:.0e}, to about 1: {unsolved}"
        else:
            start = "" if self._is_annealed else ', or use latent_init="annealed"'
            advice = f"Lower alpha (now {self.alpha:g}){also}{start}"
        warnings.warn(
            f"the fit is stuck at zero: all weights vanish, so that every {latent} scores alike and no bound leads "
            f"away. {advice}",
            ConvergenceWarning,
            stacklevel=levels_to_user(),
        )

    def _warn_if_unfinished(self, solution: Solution[Weights]) -> None:
        if not solution.converged:
            warnings.warn(
                f"{type(self).__name__} did not converge: {solution.result}. Raise max_iter (now {self.max_iter}) or "
                "tol",
                ConvergenceWarning,
                stacklevel=levels_to_user(),
            )
