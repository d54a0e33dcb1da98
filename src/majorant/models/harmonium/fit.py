"""From rows to the parameters that are kept: the penalty by hold-out, L-BFGS, the certificate, principal axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._progress import end_of_starts, report_start
from majorant.data.chunks import Block
from majorant.models.harmonium.certificate import Curvature
from majorant.models.harmonium.certificate_words import TOLERANCE, tolerance_of
from majorant.models.harmonium.factor_analysis import WIDEST, FactorAnalysis
from majorant.models.harmonium.held_out import PENALTIES, Annotation
from majorant.models.harmonium.layout import Parameters
from majorant.models.harmonium.proper import renewed, shrunk
from majorant.models.harmonium.pseudo_likelihood import PseudoLikelihood
from majorant.models.harmonium.start import base_rates, random_start, svd_start
from majorant.models.harmonium.views import LEAST_VARIANCE, MOST_VARIANCE
from majorant.search.record import StartRecord
from majorant.solvers.smooth import SmoothResult, lbfgs

Array = NDArray[np.float64]

LARGEST_INTERCEPT = 30.0
"""Bound on linear terms, in their own units: that of a probability of 1e-13."""
LARGEST_COUPLING = 10.0
"""Bound on the linear terms of couplings: neighbours that were never on together may yet be."""
MEMORY = 20
RANK = 1e-2
"""Components of less than this share of the size of the first are none."""
NOTHING = 1e-3
"""Size of a component, in units of the scale, that L-BFGS may leave of none."""
LEAST_SIZE = 0.1
"""Size of a component, in units of the scale, that is least to be one: rough fits leave no more of none."""
STEPS = 10
"""Penalties that are tried, each half the one before, from half the largest that leaves anything."""
PATIENCE = 2
"""Penalties in a row without a gain after which the path ends, once a component is used."""
EVERY = 5
"""Every so many-th row is held out, and as many times at most."""
FEWEST_ROWS = 20
MOST_ROWS = 10_000
"""Rows from which the penalty is chosen."""
UNCHOSEN = 0.25
"""Share of the largest penalty where rows are too few to hold some out."""
ROUGH = 1e-6


@dataclass(frozen=True)
class Penalised:
    """What is minimised: minus the mean log pseudo-likelihood, plus the weighted loss, plus the penalty.

    .. math:: F = -\\frac{1}{D} \\sum_d \\log PL_d + \\frac{C}{D} \\sum_d \\ell_d + \\frac{\\lambda}{2} \\sum_i
              \\frac{|W_i|^2}{\\mathrm{scale}_i^2}

    Attributes
    ----------
    problem : PseudoLikelihood
    scale : ndarray of shape (n_rows,)
        Units of W, V and intercepts in which L-BFGS works, and in which the penalty is the same for all; zero for rows
        that have no weights.
    l2 : float
    variance : ndarray of shape (n_gaussian,)
        NaN where it is learnt.
    """

    problem: PseudoLikelihood
    scale: Array
    l2: float
    variance: Array

    @property
    def units(self) -> Array:
        """The scale, and 1 where it is zero."""
        return np.where(self.scale > 0, self.scale, 1.0)

    def scaled(self, at: Parameters) -> Array:
        """W and V in units of the scale."""
        return np.asarray(at.weights / self.units[:, None])

    def size(self, at: Parameters) -> float:
        """The largest size of a component, in units of the scale."""
        return float(np.linalg.norm(self.scaled(at), ord=2)) if at.weights.size else 0.0

    def inward(self, at: Parameters) -> Array:
        """Parameters as coordinates of L-BFGS."""
        weights, intercept = self.scaled(at), at.intercept / self.units
        return Parameters(weights, intercept, at.log_variance).packed()

    def outward(self, flat: Array) -> Parameters:
        """The inverse of `inward`."""
        at = Parameters.unpacked(flat, self.problem.layout)
        return Parameters(at.weights * self.scale[:, None], at.intercept * self.units, at.log_variance)

    def penalty(self, at: Parameters) -> float:
        """Its value."""
        scaled = self.scaled(at)
        return self.l2 / 2 * float(np.einsum("ik,ik->", scaled, scaled))

    def value(self, at: Parameters) -> float:
        """The objective."""
        gain, loss = self.problem.gain(at)
        return (self.problem.loss_weight * loss - gain) / self.problem.total_weight + self.penalty(at)

    @property
    def largest_intercept(self) -> Array:
        """Bound on each linear term."""
        layout = self.problem.layout
        bound = np.full(layout.n_rows, LARGEST_INTERCEPT)
        for structure, rows in zip(layout.structures, layout.of_structures, strict=True):
            bound[rows.start + structure.n_nodes : rows.stop] = LARGEST_COUPLING
        return bound

    def value_and_slope(self, at: Parameters) -> tuple[float, Parameters]:
        """The objective, and its gradient in coordinates of L-BFGS."""
        total, scale = self.problem.total_weight, self.scale[:, None]
        value, gradient = self.problem.value_and_gradient(at)
        weights = -gradient.weights * scale / total + self.l2 * self.scaled(at)
        slope = Parameters(weights, -gradient.intercept * self.units / total, -gradient.log_variance / total)
        return self.penalty(at) - value / total, slope

    def box(self, k: int) -> tuple[Array, Array]:
        """Least and largest value of each coordinate."""
        layout = self.problem.layout
        free = np.full(layout.n_rows * k, np.inf)
        most = self.largest_intercept / self.units
        known = ~np.isnan(self.variance)
        low = np.log(np.where(known, self.variance, LEAST_VARIANCE))
        high = np.log(np.where(known, self.variance, MOST_VARIANCE))
        return np.concatenate([-free, -most, low]), np.concatenate([free, most, high])

    def minimise(self, start: Parameters, *, tol: float, max_iter: int) -> tuple[Parameters, SmoothResult]:
        """L-BFGS from a start; beyond the edge where the model is improper the objective counts as large.

        Of Gaussian variables alone it finds the variances, all else has a closed form.

        A start beyond it is brought to the near side: there is no slope to follow from where it was.

        Raises
        ------
        numpy.linalg.LinAlgError
            If there is no objective there either.
        """
        if self.problem.is_factor_analysis and 0 < len(start.log_variance) <= WIDEST:
            return self.factors(start, tol=tol, max_iter=max_iter)
        last: float | None = None

        def f(flat: Array) -> tuple[float, Array]:
            nonlocal last
            try:
                last, slope = self.value_and_slope(self.outward(flat))
            except np.linalg.LinAlgError:
                if last is None:
                    raise
                return last + 10 * (1 + abs(last)), np.zeros_like(flat)
            return last, slope.packed()

        first = self.inward(start)
        if not len(first):
            value = f(first)[0]
            return start, SmoothResult(first, value, [value], True)
        low, high = self.box(start.n_components)
        first = np.clip(first, low, high)
        begun = self.outward(first)
        near = shrunk(begun)
        if near is not begun:
            first = self.inward(near)
        found = lbfgs(f, first, tol=tol, gtol=tol**0.5 / 10, memory=MEMORY, max_iter=max_iter, box=(low, high))
        return self.outward(found.x), found

    def factors(self, start: Parameters, *, tol: float, max_iter: int) -> tuple[Parameters, SmoothResult]:
        """See `FactorAnalysis`; it begins at the variances that the start's weights leave."""
        mean, covariance = self.problem.moments
        analysis = FactorAnalysis(mean, covariance, self.l2 / self.scale**2, start.n_components)
        low, high = self.box(start.n_components)
        box = low[-len(mean) :], high[-len(mean) :]
        first = np.clip(analysis.left_by(shrunk(start)), *box)
        found = lbfgs(
            analysis.value_and_slope, first, tol=tol, gtol=tol**0.5 / 10, memory=MEMORY, max_iter=max_iter, box=box
        )
        return analysis.parameters(found.x), found


@dataclass(frozen=True)
class Optimality:
    """What the certificate's matrix says of a fit.

    Attributes
    ----------
    eigenvalue : float
        The smallest of Q; where it is not negative no fit of any number of components is better. Of many variables it
        is found by Lanczos' method, and might be missed: see `Curvature.largest`.
    stationarity : float
        Norm of the gradient as a share of that of the penalty's own, which a finished fit balances.
    lower_bound : float
        No parameters whatever have an objective below it, if the eigenvalue is the smallest.
    directions : ndarray of shape (n_rows, q)
        Unit vectors of the most negative eigenvalues, in units of the scale.
    """

    eigenvalue: float
    stationarity: float
    lower_bound: float
    directions: Array

    @property
    def leads_down(self) -> bool:
        """Whether components along `directions` lower the objective, beyond what a gradient that is left explains."""
        return self.eigenvalue < -tolerance_of(self.stationarity)


def optimality(cost: Penalised, at: Parameters, most: int = 1) -> Optimality | None:
    """The certificate of a fit; None where the objective is not convex in J, as where rows lack Gaussian views."""
    problem = cost.problem
    if not problem.convex or any(len(part.seen.missing_gaussian) for part in problem.parts):
        return None
    if problem.layout.n_rows == 0:
        return Optimality(1.0, 0.0, cost.value(at), np.empty((0, 0)))
    curvature = Curvature(problem, at, cost.scale)
    values, vectors = curvature.largest(most)
    eigenvalues = 1 - values / cost.l2
    objective, slope = cost.value_and_slope(at)
    inner, (low, high) = cost.inward(at), cost.box(at.n_components)
    away = float(np.linalg.norm(np.clip(inner - slope.packed(), low, high) - inner))
    size = max(float(np.linalg.norm(cost.scaled(at))), LEAST_SIZE)
    bound = _lower_bound(cost, at, objective, slope, float(eigenvalues[0]))
    negative = int(np.sum(eigenvalues < -TOLERANCE))
    return Optimality(
        float(eigenvalues[0]), away / (cost.l2 * size), bound, np.ascontiguousarray(vectors[:, :negative])
    )


def _lower_bound(cost: Penalised, at: Parameters, objective: float, slope: Parameters, eigenvalue: float) -> float:
    """What no parameters can go below: the tangent of a convex function, over all that could be better.

    In J the tangent is least along the smallest eigenvalue, and no better J has a larger trace than leaves the
    objective where it is; linear terms and 1 / s lie in their box.
    """
    learnt = np.isnan(cost.variance)
    slack = _least(slope.intercept / cost.units, at.intercept, -cost.largest_intercept, cost.largest_intercept)
    s = at.variance[learnt]
    slack += _least(-slope.log_variance[learnt] * s, 1 / s, 1 / MOST_VARIANCE, 1 / LEAST_VARIANCE)
    along = float(np.einsum("ik,ik->", slope.weights, cost.scaled(at)))
    least = 0.5 * float(np.log(2 * np.pi * np.where(learnt, LEAST_VARIANCE, cost.variance)).sum())
    trace = max(2 * (objective - least) / cost.l2, 0.0)
    return objective + slack - along / 2 + cost.l2 / 2 * min(eigenvalue, 0.0) * trace


def _least(slope: Array, at: Array, low: Array | float, high: Array | float) -> float:
    """The least of a linear function in a box, from where it is: at most zero."""
    return float(np.minimum(slope * (low - at), slope * (high - at)).sum())


LEAST_GAIN = 1e-7
"""Components are added as long as they lower the objective by this share of it."""


WORTH = 0.03
"""A smaller weight of the loss replaces the one kept so far where its held-out loss is less by more than this share."""


def worth_it(losses: Sequence[float]) -> int:
    """Which weight of the loss is kept, from the held-out losses of weights in falling order: see `WORTH`."""
    kept = 0
    for i, loss in enumerate(losses):
        if loss < (1 - WORTH) * losses[kept]:
            kept = i
    return kept


@dataclass(frozen=True)
class Choice:
    """A penalty, the rough fit that a fit with it may begin at, and what was compared.

    Attributes
    ----------
    l2 : float
    begun : Parameters, optional
    path : list of dict
        ``l2`` and ``held_out`` of each penalty that was tried.
    loss : float
        The held-out loss at the penalty.
    """

    l2: float
    begun: Parameters | None = None
    path: list[dict[str, float]] = field(default_factory=list)
    loss: float = np.inf


@dataclass(frozen=True)
class Search:
    """How a fit is found; see `Harmonium` for the parameters.

    Attributes
    ----------
    problem : PseudoLikelihood
    scale, variance : ndarray
        See `Penalised`.
    positions : tuple of ndarray
        Where the rows of each part are among all.
    loss_weights : tuple of float
        Weights of the loss that are compared; empty where it is the problem's.
    n_folds : int
        How often other rows are held out.
    """

    problem: PseudoLikelihood
    scale: Array
    variance: Array
    positions: tuple[NDArray[np.intp], ...]
    n_components: int
    l2: float | str
    loss_weights: tuple[float, ...]
    grow: bool
    init: str
    n_init: int
    max_iter: int
    tol: float
    verbose: int
    random: np.random.Generator
    annotation: Annotation | None = None
    n_folds: int = 1

    def find(self) -> Found:
        """The fit that is kept."""
        if self.loss_weights:
            return self.weighed()
        if self.annotation is not None:
            return self.annotating(self.annotation.rows)
        largest = self.largest_penalty()
        return self.found(largest, self.chosen(largest) if isinstance(self.l2, str) else Choice(float(self.l2)))

    def weighed(self) -> Found:
        """With the weight that `worth_it` keeps by the held-out loss of the target, each at its own penalty."""
        searches = [
            replace(self, problem=self.problem.weighing(weight), loss_weights=()) for weight in self.loss_weights
        ]
        largest = [search.largest_penalty() for search in searches]
        choices = [search.chosen(most) for search, most in zip(searches, largest, strict=True)]
        losses = [choice.loss for choice in choices]
        kept = worth_it(losses)
        path = list(zip(self.loss_weights, losses, strict=True)) if choices[kept].path else []
        found = searches[kept].found(largest[kept], choices[kept])
        return replace(found, loss_weight=self.loss_weights[kept], weight_path=path)

    def annotating(self, rows: slice) -> Found:
        """With the share in the penalty of the view to be told that leaves it likeliest, each at its own penalty."""
        path: list[tuple[float, float]] = []
        kept: tuple[Search, float, Choice] | None = None
        for penalty in PENALTIES:
            scale = self.scale.copy()
            scale[rows] /= np.sqrt(penalty)
            search = replace(self, scale=scale)
            largest = search.largest_penalty()
            choice = search.chosen(largest)
            path.append((penalty, choice.loss))
            if kept is not None and not choice.loss < kept[2].loss:
                break
            kept, taken = (search, largest, choice), len(path) - 1
        assert kept is not None
        search, largest, choice = kept
        found = search.found(largest, choice)
        return replace(found, view_penalty=PENALTIES[taken], penalty_path=path if choice.path else [])

    def found(self, largest: float, choice: Choice) -> Found:
        """The fit at a penalty."""
        l2, begun = choice.l2, choice.begun
        cost = Penalised(self.problem, self.scale, l2, self.variance)
        records: list[StartRecord] = []
        best: tuple[Parameters, SmoothResult] | None = None
        for number in range(self.n_init):
            source = "SVD of the views" if self.init == "svd" and number == 0 else "random weights"
            start = self.begin(number)
            if number == 0 and begun is not None:
                start = renewed(begun, start)
            at, result = cost.minimise(start, tol=self.tol, max_iter=self.max_iter)
            records.append(StartRecord(source, result.value, result.n_iter, result.converged))
            report_start(len(records), source, result.value, f"{result.n_iter} iterations", self.verbose)
            if best is None or result.value < best[1].value:
                best = at, result
        end_of_starts(self.verbose)
        assert best is not None
        at, result = best
        values = list(result.values)
        at, optimal, n_grown, more = self.grown(cost, at)
        if more:
            values += more
            kept = min(range(self.n_init), key=lambda i: records[i].objective)
            n_iter = records[kept].n_iter + len(more)
            records[kept] = replace(records[kept], objective=more[-1], n_iter=n_iter)
        axes = principal_axes(cost, at)
        if optimal is not None and (axes.n_components < at.n_components or not axes.weights.any()):
            optimal = optimality(cost, axes)  # of what is kept: small components were dropped
        at = axes
        path = choice.path if isinstance(self.l2, str) else []
        return Found(at, cost.value(at), l2, largest, tuple(records), values, optimal, n_grown, path)

    def begin(self, number: int) -> Parameters:
        """The start with this number: the first one draws nothing, unless asked to."""
        variance = np.where(np.isnan(self.variance), 1.0, self.variance)
        if self.init == "svd" and number == 0:
            return svd_start(self.problem, self.scale, self.n_components, variance)
        return random_start(self.problem, self.scale, self.n_components, variance, self.random)

    def largest_penalty(self) -> float:
        """The penalty from which on W = 0 and V = 0 are the optimum, to the extent that no score has an intercept."""
        problem = self.problem
        if not problem.layout.n_variables:
            return 1.0
        used = problem.of([positions % self.stride == 0 for positions in self.positions])
        variance = np.where(np.isnan(self.variance), 1.0, self.variance)
        nothing = Parameters(np.zeros((problem.layout.n_rows, 1)), base_rates(problem), np.log(variance))
        if problem.layout.structures:  # what neighbours do to each other comes first
            independent = Parameters(nothing.weights[:, :0], nothing.intercept, nothing.log_variance)
            settled = Penalised(used, self.scale, 1.0, variance).minimise(independent, tol=ROUGH, max_iter=100)[0]
            nothing = Parameters(nothing.weights, settled.intercept, nothing.log_variance)
        values, _ = Curvature(used, nothing, self.scale).largest(1)
        return max(float(values[0]), 1e-3)

    @property
    def stride(self) -> int:
        """Of rows from which the penalty is chosen, every so many-th."""
        return -(-sum(len(p) for p in self.positions) // MOST_ROWS)

    def chosen(self, largest: float) -> Choice:
        """The penalty by rows held out: from the largest down, each fit beginning at the one before.

        Of a target, whose loss on a few rows is noisy, the largest penalty whose loss is within one standard error of
        the least; otherwise the one with the best pseudo-likelihood, or with the best likelihood of the view that is to
        be told from the others.
        """
        unchosen = Choice(UNCHOSEN * largest if isinstance(self.l2, str) else float(self.l2))
        folds = self.folds()
        if not folds:
            return unchosen
        fresh = [replace(self, problem=training).begin(0) for training, _ in folds]
        at = list(fresh)
        since, error = 0, 0.0
        lowest = float(np.inf)
        path: list[dict[str, float]] = []
        fits: list[Parameters] = []
        penalties = [largest * 0.5 ** (step + 1) for step in range(STEPS)]
        for step, l2 in enumerate(penalties if isinstance(self.l2, str) else [float(self.l2)]):
            losses, used = [], False
            for i, (training, testing) in enumerate(folds):
                cost = Penalised(training, self.scale, l2, self.variance)
                begun = at[i] if step == 0 else renewed(at[i], fresh[i])
                at[i], _ = cost.minimise(begun, tol=ROUGH, max_iter=min(self.max_iter, 200))
                losses.append((testing.total_weight, *self.loss_of_held_out(testing, at[i])))
                used = used or cost.size(at[i]) >= LEAST_SIZE
            weight, score, noise = np.array(losses).T
            share = weight / weight.sum()
            held_out = float(share @ score)
            if np.isnan(held_out):
                return unchosen
            fits.append(at[0])
            path.append({"l2": l2, "held_out": held_out})
            since += used
            if not path[1:] or held_out < lowest - 1e-4 * abs(lowest):
                lowest, error, since = held_out, float(np.sqrt(np.sum((share * noise) ** 2))), 0
            if since >= PATIENCE:
                break
        taken = next(i for i, row in enumerate(path) if row["held_out"] <= lowest + error)
        return Choice(path[taken]["l2"], fits[taken], path, path[taken]["held_out"])

    def folds(self) -> list[tuple[PseudoLikelihood, PseudoLikelihood]]:
        """Rows that are fitted and rows that are held out, `n_folds` times; nothing where there are too few."""
        if sum(len(p) for p in self.positions) < FEWEST_ROWS:
            return []
        used = [positions % self.stride == 0 for positions in self.positions]
        found = []
        for fold in range(self.n_folds):
            out = (EVERY // 2 + fold) % EVERY
            held = [(positions // self.stride) % EVERY == out for positions in self.positions]
            training = self.problem.of([u & ~h for u, h in zip(used, held, strict=True)])
            testing = self.problem.of([u & h for u, h in zip(used, held, strict=True)])
            if training.parts and testing.parts:
                found.append((training, testing))
        return found

    def loss_of_held_out(self, testing: PseudoLikelihood, at: Parameters) -> tuple[float, float]:
        """What penalties are compared by, a row, and its standard error where that is looked at."""
        if self.problem.loss is not None or self.problem.layout.has_label:
            return testing.target_loss(at)
        if self.annotation is not None:
            return self.annotation.loss(testing, at), 0.0
        return -testing.log_pseudo_likelihood(at) / testing.total_weight, 0.0

    def grown(self, cost: Penalised, at: Parameters) -> tuple[Parameters, Optimality | None, int, list[float]]:
        """Components added along the certificate's directions until it finds none; and the certificate.

        As many as there may be, in place of those that came to nothing: there the gradient is zero. More where asked.
        """
        values: list[float] = []
        most = len(cost.scale) if self.grow else self.n_components
        value = cost.value(at)
        while True:
            optimal = optimality(cost, at, most=max(1, at.n_components // 2))
            n_grown = max(at.n_components - self.n_components, 0)
            if optimal is None or not optimal.leads_down:
                return at, optimal, n_grown, values
            used = principal_axes(cost, at)
            room = most - used.n_components
            if room <= 0:
                return at, optimal, n_grown, values
            wider = widened(cost, used, optimal.directions[:, :room])
            found, result = cost.minimise(wider, tol=self.tol, max_iter=self.max_iter)
            if not result.value < value - LEAST_GAIN * abs(value):
                return at, optimal, n_grown, values
            at, value = found, result.value
            values += result.values[1:]


def widened(cost: Penalised, at: Parameters, directions: Array) -> Parameters:
    """A component more along each direction, as long as lowers the objective."""
    room = len(cost.scale) - at.n_components
    directions = directions[:, :room] * cost.scale[:, None]
    now, size = cost.value(at), 0.5
    while size > 1e-4:
        weights = np.concatenate([at.weights, size * directions], axis=1)
        wider = Parameters(weights, at.intercept, at.log_variance)
        try:
            if cost.value(wider) < now:
                break
        except np.linalg.LinAlgError:
            pass
        size /= 2
    return wider


def principal_axes(cost: Penalised, at: Parameters) -> Parameters:
    """Components rotated so that the expected latents are uncorrelated, by falling variance; zero ones are dropped.

    The largest weight of each component, in units of the scale, is positive.
    """
    scaled = cost.scaled(at)
    _, sizes, turn = np.linalg.svd(scaled, full_matrices=False)
    if sizes.max(initial=0.0) < NOTHING:
        return Parameters(np.zeros((len(scaled), 1)), at.intercept, at.log_variance)
    k = int(np.sum(sizes > RANK * sizes[0]))
    at = Parameters(at.weights @ turn[:k].T, at.intercept, at.log_variance)
    moments = np.zeros((k + 1, k + 1))
    for part, view in cost.problem.views(at):
        r = np.eye(k) if view.marginal.turn is None else view.marginal.turn

        def visit(block: Block, view: Any = view, r: Array = r) -> Array:
            h = np.column_stack([view.latents(block) @ r.T, np.ones(len(block))])
            return np.asarray((h if block.weights is None else h * block.weights[:, None]).T @ h)

        moments += part.data.map_sum(visit)
    mean = moments[:k, k] / moments[k, k]
    _, axes = np.linalg.eigh(moments[:k, :k] / moments[k, k] - np.outer(mean, mean))
    weights = at.weights @ axes[:, ::-1]
    scaled = weights / cost.units[:, None]
    largest = scaled[np.abs(scaled).argmax(axis=0), np.arange(k)]
    weights = weights * np.where(largest < 0, -1.0, 1.0)
    return Parameters(np.ascontiguousarray(weights), at.intercept, at.log_variance)


@dataclass(frozen=True)
class Found:
    """A fit in the units of the model's variables, and how it was found."""

    parameters: Parameters
    objective: float
    l2: float
    largest_l2: float
    records: tuple[StartRecord, ...]
    values: list[float]
    optimality: Optimality | None
    n_grown: int
    path: list[dict[str, float]]
    loss_weight: float | None = None
    weight_path: list[tuple[float, float]] = field(default_factory=list)
    view_penalty: float = 1.0
    penalty_path: list[tuple[float, float]] = field(default_factory=list)
