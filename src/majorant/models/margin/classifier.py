"""Base of classifiers that minimise the latent hinge loss."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from majorant._validation import (
    check_choice,
    check_integer,
    check_positive,
    check_real,
    check_runs,
    levels_to_user,
    seed_of,
)
from majorant.engine.loop import Solution
from majorant.engine.policies import BoundPolicy, check_bounds
from majorant.models.base import LatentVariableModel
from majorant.models.margin.family import MarginFamily, Weights
from majorant.models.margin.labels import class_factors, code_of_each, label_costs, learnt_classes
from majorant.models.margin.samples import Distinct, Samples, distinct_samples
from majorant.models.margin.search import Descents, First, Found, StartRequest
from majorant.search.record import SearchReport
from majorant.solvers.structural_svm import SOLVERS
from majorant.solvers.structural_svm.planes import NativeProblem

TOO_LARGE = 1e-9
"""If alpha is below this share of the largest square in X, weights vanish because of the size of X, not of alpha."""
UNEVEN = 10.0
"""Ratio of the sizes of the largest and the smallest column from which scaling them helps."""
UNBALANCED = 2.0
"""Ratio of the weights of two classes from which on a fit that knows one class only is told to balance them."""


class MarginModel(LatentVariableModel):
    """Base of latent structural SVMs."""

    def _keep_end(self, found: Found) -> None:
        self.objective_ = found.solution.objective
        self.gap_ = found.solution.theta.gap
        self.n_iter_ = found.solution.n_iter
        self.n_passes_ = found.n_passes
        self.trace_ = found.solution.trace

    def _warn(self, message: str) -> None:
        warnings.warn(message, ConvergenceWarning, stacklevel=levels_to_user())


class MarginClassifier(ClassifierMixin, MarginModel):  # type: ignore[misc]
    """Base of latent SVMs on samples of regions.

    A subclass reads its samples, states its problem and its starts, and keeps its weights.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    latent_ : ndarray of shape (n_samples, ...)
        Latent values of each sample for its own class; -1 where that class has no weight.
    objective_, gap_ : float
    changed_ : float
        Share of the latent values that differ from those of the start.
    confusion_ : ndarray of shape (n_classes, n_classes)
        Weight of the samples of each class (first axis) that are predicted as each (second axis).
    n_iter_, n_passes_ : int
    """

    alpha: float
    latent_init: Any
    class_weight: Any
    label_cost: Any
    bounds: BoundPolicy | None
    solver: str = "dcd"
    n_init: int
    max_iter: int
    tol: float
    verbose: int
    random_state: Any
    n_jobs: int | None

    _starts: tuple[str, ...]
    """Values of `latent_init` that name a start."""
    _given: str
    """Contents of `latent_init` as an array, for messages."""
    _sample: str
    _state: str
    """Words for a sample and for a latent value, for messages."""

    # Defined by each model

    def _problem(
        self, samples: Samples, codes: NDArray[np.int32], order: NDArray[np.intp], cost: NDArray[np.float64]
    ) -> NativeProblem[Any]:
        """State the problem of samples in an order, with the numbers of their classes and costs."""
        raise NotImplementedError

    def _fitted(self, samples: Samples) -> tuple[NativeProblem[Any], NDArray[np.float64]]:
        """State the problem of new samples without costs; return it with the fitted weights."""
        raise NotImplementedError

    def _check_given(self, given: NDArray[Any], samples: Samples) -> None:
        """Refuse given latent values that are out of range."""
        raise NotImplementedError

    def _first(self, request: StartRequest[Any], samples: Samples) -> Iterator[First]:
        """Make the starts of the fit one by one as they are asked for."""
        raise NotImplementedError

    def _keep_weights(
        self, problem: NativeProblem[Any], w: NDArray[np.float64], samples: Samples, distinct: Distinct
    ) -> None:
        raise NotImplementedError

    def _report(self, problem: NativeProblem[Any], found: Found) -> SearchReport:
        raise NotImplementedError

    def _is_stuck(self, solution: Solution[Weights]) -> bool:
        """Return whether all weights are zero though other weights might be better."""
        raise NotImplementedError

    def _penalties(self) -> str:
        """Return the parameters that may be lowered where all weights are zero."""
        return f"alpha (now {self.alpha:g})"

    # The fit

    def _check_parameters(self) -> None:
        check_real("alpha", check_positive("alpha", self.alpha), low=1e-12, high=1e12)
        if isinstance(self.latent_init, str):
            check_choice("latent_init", self.latent_init, self._starts, or_else=", or an array")
        check_bounds(self.bounds)
        check_choice("solver", self.solver, list(SOLVERS))
        check_integer("n_init", self.n_init, low=1)
        check_runs(self)

    def _costs(self, labels: NDArray[Any]) -> NDArray[np.float64]:
        return label_costs(self.label_cost, labels, self.classes_)

    def _fit(self, samples: Samples, y: Any, sample_weight: Any) -> None:
        labels = samples.labels(y, type(self).__name__, self._sample)
        weights = samples.weights(sample_weight)
        self.classes_, codes = learnt_classes(labels, weights)
        cost = self._costs(labels)
        given = self._given_latent(samples)
        distinct = distinct_samples(samples, codes, weights, given)
        if self.class_weight is not None:
            of_each = codes[distinct.order]
            masses = np.bincount(of_each, distinct.weights).astype(np.float64)
            shares = distinct.shares * class_factors(self.class_weight, labels, self.classes_, masses)[of_each]
            distinct = replace(distinct, shares=shares / shares.sum())
        problem = self._problem(samples, codes, distinct.order, cost)
        found = self._search(problem, samples, distinct, given)
        self._keep_end(found)
        self._keep_weights(problem, found.solution.theta.w, samples, distinct)
        self.search_ = self._report(problem, found)
        self._keep_latent(problem, samples, codes, distinct, found)
        is_stuck = self._is_stuck(found.solution)
        if is_stuck:
            self._warn_at_zero(samples.rows.data if sparse.issparse(samples.rows) else samples.rows)
        elif self.class_weight is None and self._says_one_class():
            largest = self.classes_[self.confusion_.sum(axis=1).argmax()]
            self._warn(
                f"every {self._sample} is predicted as {largest!s}, the class of most weight. "
                'class_weight="balanced" gives all classes the same weight'
            )
        if not found.solution.converged and not (is_stuck and found.is_unsolved):
            advice = f"Raise max_iter (now {self.max_iter}) or tol"
            if found.is_unsolved:
                advice = self._way_to_solve(samples.rows)
            self._warn(f"{type(self).__name__} did not converge: {found.solution.result}. {advice}")

    def _way_to_solve(self, rows: Any) -> str:
        """Return what helps a solver: similar columns, where they are not; entries of rows are NaN in padding."""
        with np.errstate(over="ignore"):
            squares = rows.multiply(rows) if sparse.issparse(rows) else np.nan_to_num(rows) ** 2
            sizes = np.sqrt(np.asarray(squares.mean(axis=0)).ravel())
        if sizes.max() > UNEVEN * sizes.min(where=sizes > 0, initial=np.inf):
            return "Bring the columns of X to similar sizes (sklearn.preprocessing.StandardScaler), or raise tol"
        return f"Raise {self._penalties()} or tol" + (', or use solver="dcd"' if self.solver != "dcd" else "")

    def _given_latent(self, samples: Samples) -> NDArray[np.int32] | None:
        """Read given latent values, shape (n_samples, n_units); None if `latent_init` names a start."""
        if isinstance(self.latent_init, str):
            return None
        given, shape = np.asarray(self.latent_init), (len(samples), *samples.shape)
        if given.shape != shape or given.dtype.kind not in "iu":
            got = f"shape {given.shape} of {given.dtype}" if given.ndim else repr(self.latent_init)
            raise ValueError(
                f"latent_init must be one of {', '.join(map(repr, self._starts))}, or {self._given}, shape {shape}; "
                f"got {got}"
            )
        self._check_given(given, samples)
        return given.reshape(len(samples), -1).astype(np.int32)

    def _search(
        self, problem: NativeProblem[Any], samples: Samples, distinct: Distinct, given: NDArray[np.int32] | None
    ) -> Found:
        seed = seed_of(self.random_state)
        rounding = float(np.finfo(problem.samples.rows.dtype).eps)
        slack = 16 * rounding * (problem.reach(self.alpha) + float(problem.cost.max()))
        solver = SOLVERS[self.solver]
        family = MarginFamily(problem, distinct.shares, self.alpha, solver, 0.5 * self.tol, seed, slack)
        bounds, m = self.bounds, samples.n_units
        if bounds is not None:
            bounds = bounds.repeated(len(samples), m) if m > 1 else bounds
            bounds = bounds.renumbered(distinct.unit_positions(m))
        if given is not None:
            given = given[distinct.order].reshape(-1, *problem.samples.latent_shape)
        data = problem.samples.units(distinct.shares, self.n_jobs)
        init = self.latent_init if given is None else None
        request = StartRequest(problem, distinct.shares, self.alpha, init, given, self.n_init, seed)
        return Descents(data, bounds, self.tol, self.max_iter, self.verbose).best(
            ((family, first) for first in self._first(request, samples)), count(seed)
        )

    def _keep_latent(
        self,
        problem: NativeProblem[Any],
        samples: Samples,
        codes: NDArray[np.int32],
        distinct: Distinct,
        found: Found,
    ) -> None:
        """Keep latent values and confusion, counted over the distinct samples."""
        best, latent = self._scored(samples, np.maximum(codes, 0))
        latent[codes < 0] = -1
        self.latent_ = self._shaped(latent, samples)
        has_weight = distinct.positions >= 0
        predicted = np.zeros(len(distinct.order), dtype=np.intp)
        predicted[distinct.positions[has_weight]] = best.argmax(axis=1)[has_weight]
        self.confusion_ = np.zeros((len(self.classes_), len(self.classes_)))
        np.add.at(self.confusion_, (problem.samples.codes, predicted), distinct.weights)
        changed = problem.own_latent(found.solution.theta.w) != found.first
        shares = changed.reshape(len(changed), -1).mean(axis=1)
        self.changed_ = float(np.sum(distinct.weights * shares) / distinct.weights.sum())

    def _says_one_class(self) -> bool:
        """Return whether classes are unbalanced and the fit predicts the one of most weight for all samples."""
        masses, predicted = self.confusion_.sum(axis=1), np.any(self.confusion_, axis=0)
        return bool(masses.max() >= UNBALANCED * masses.min() and predicted.sum() == 1 and predicted[masses.argmax()])

    def _warn_at_zero(self, entries: NDArray[Any]) -> None:
        """Warn that all weights are zero though the data differ; entries of X are NaN in padding."""
        largest = float(np.abs(np.nan_to_num(entries)).max(initial=0.0))
        if largest == 0.0:
            advice = "X holds nothing but zeros, which tell no class from another"
        elif self.gap_ > 0.5 * self.objective_ or np.sqrt(self.alpha) < np.sqrt(TOO_LARGE) * largest:
            unsolved = f"its bound was not solved (duality gap {self.gap_:.2g})"
            advice = f"Scale X, which holds {largest:.0e}, to about 1: {unsolved}"
        else:
            start = "" if self._is_annealed else ', or use latent_init="annealed"'
            advice = f"Lower {self._penalties()}{start}"
            if self.class_weight is None and self._says_one_class():
                advice = f'Give the classes the same weight, class_weight="balanced". {advice}'
        self._warn(
            f"the fit is stuck at zero: all weights vanish, so that every {self._state} scores alike and no bound "
            f"leads away. {advice}"
        )

    @property
    def _is_annealed(self) -> bool:
        return isinstance(self.latent_init, str) and self.latent_init == "annealed"

    # Predictions

    def _scored(
        self, samples: Samples, codes: NDArray[np.int32] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Compute scores of all classes, and the best latent values for given classes or the predicted ones."""
        problem, w = self._fitted(samples)
        return problem.classify(w, codes)

    def _decisions(self, samples: Samples) -> NDArray[np.float64]:
        """Compute the decision function: scores of all classes, of two classes their difference."""
        best, _ = self._scored(samples)
        return best if len(self.classes_) > 2 else np.asarray(best[:, 1] - best[:, 0])

    def _predicted(self, samples: Samples) -> NDArray[Any]:
        return np.asarray(self.classes_[self._scored(samples)[0].argmax(axis=1)])

    def _latent_values(self, samples: Samples, y: Any) -> NDArray[np.intp]:
        """Find the best latent values for the labels `y`, or for the predicted ones."""
        codes = None if y is None else code_of_each(self.classes_, samples.one_each(y, "y")).astype(np.int32)
        return self._shaped(self._scored(samples, codes)[1], samples)

    def _shaped(self, latent: NDArray[np.int32], samples: Samples) -> NDArray[np.intp]:
        return latent.reshape(len(samples), *samples.shape).astype(np.intp)
