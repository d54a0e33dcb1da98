"""The search for a fit: starts, choice of the penalty by held-out rows, growth, principal axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from majorant._progress import end_of_starts, is_stopped, report_start, tell
from majorant.data.chunks import Block
from majorant.models.harmonium.certificate import LEAST_SIZE, Curvature, Optimality, optimality
from majorant.models.harmonium.inference import Annotation
from majorant.models.harmonium.layout import Parameters, Seen, renewed
from majorant.models.harmonium.objective import LARGEST_INTERCEPT, Penalised
from majorant.models.harmonium.pseudo_likelihood import PseudoLikelihood, features
from majorant.search.record import StartRecord
from majorant.solvers.smooth import SmoothResult

Array = NDArray[np.float64]

LEAST_GAIN = 1e-7
"""Smallest relative decrease of the objective for which a component is added."""
STEPS = 10
"""Number of penalties below the largest useful one that are tried, each half of the previous one."""
PATIENCE = 2
"""Number of consecutive penalties without improvement that ends the path, once a component is used."""
HOPELESS = 5.0
"""Standard errors by which a penalty's loss exceeds the smallest one where smaller penalties are not tried."""
GROUPS = 20
"""Number of groups of held-out rows whose losses tell how sure the difference between two models is."""
GAIN = 1e-4
"""Share of the held-out loss by which a smaller penalty must improve on one that has components."""
FOLDS = 5
"""Number of folds; one up to all of them are held out in turn."""
FEWEST_ROWS, MOST_ROWS = 20, 10_000
"""Smallest number of rows that are split into folds, and largest number from which the penalty is chosen."""
UNCHOSEN = 0.25
"""Penalty as a share of the largest useful one, where there are too few rows to hold some out."""
ROUGH = 1e-6
"""Tolerance of the fits that are compared on held-out rows."""
WORTH = 0.03
"""Share by which a smaller weight of the loss must lower the held-out loss to be kept."""
VIEW_PENALTIES = (1.0, 4.0, 16.0, 64.0)
"""Factors of the predicted view's penalty, tried in this order as long as the held-out loss improves."""
ROUNDED = 1e-9
"""Share by which held-out losses of the same model may differ."""
SIZE = 0.45
"""Initial size of a factor's weights relative to maximum likelihood, as the optimum is penalised."""
RADIUS = 0.95
"""Largest eigenvalue of U'SU of a start; at 1 the model is improper."""
SWEEPS, SPARE = 7, 10
"""Steps of subspace iteration, and axes beyond those asked for, which speed it up."""
RIDGE = 0.01
"""Penalty of the regression that starts V."""
RAREST = 1e-13
"""Smallest frequency of a bit or level at a start: weights of rows may round it to 0 or 1."""


@dataclass(frozen=True)
class Choice:
    """A chosen penalty."""

    l2: float
    begun: Parameters | None = None  # fit with it at a coarse tolerance, from which the final fit starts
    path: list[dict[str, float]] = field(default_factory=list)  # ``l2`` and ``held_out`` of each penalty that was tried
    loss: float = np.inf  # held-out loss of the penalty


@dataclass(frozen=True)
class Found:
    """A fit, in units of the model's variables, and how it was found."""

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


@dataclass(frozen=True)
class Search:
    """Settings of a fit; see `Harmonium` for those of the user."""

    problem: PseudoLikelihood
    # see `Penalised`
    scale: Array
    variance: Array
    positions: tuple[NDArray[np.intp], ...]  # positions of the rows of each part among all rows
    n_components: int
    l2: float | str
    loss_weights: tuple[float, ...]  # weights of the loss that are compared; empty to take that of the problem
    grow: bool
    init: str
    n_init: int
    max_iter: int
    tol: float
    verbose: int
    random: np.random.Generator
    # what penalties are compared by where a view is to be predicted from the others
    annotation: Annotation | None = None
    n_folds: int = 1

    def find(self) -> Found:
        """Find the best fit."""
        if self.loss_weights:
            return self.weighed()
        if self.annotation is not None:
            return self.annotating(self.annotation.rows)
        largest = self.largest_penalty()
        return self.found(largest, self.chosen(largest) if isinstance(self.l2, str) else Choice(float(self.l2)))

    def weighed(self) -> Found:
        """Choose the weight of the loss by `worth_it`, each weight at its own penalty."""
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
        """Choose the factor of a view in the penalty by its held-out loss, each factor at its own penalty."""
        path: list[tuple[float, float]] = []
        kept: tuple[Search, float, Choice] | None = None
        for penalty in VIEW_PENALTIES:
            scale = self.scale.copy()
            scale[rows] /= np.sqrt(penalty)
            search = replace(self, scale=scale)
            largest = search.largest_penalty()
            choice = search.chosen(largest)
            path.append((penalty, choice.loss))
            if kept is not None and not choice.loss <= kept[2].loss * (1 + ROUNDED):
                break
            if kept is None or choice.loss < kept[2].loss * (1 - ROUNDED):  # equal where none has components
                kept, taken = (search, largest, choice), len(path) - 1
        assert kept is not None
        search, largest, choice = kept
        found = search.found(largest, choice)
        return replace(found, view_penalty=VIEW_PENALTIES[taken], penalty_path=path if choice.path else [])

    def found(self, largest: float, choice: Choice) -> Found:
        """Fit with a chosen penalty from all starts; return the best."""
        l2, begun = choice.l2, choice.begun
        cost = Penalised(self.problem, self.scale, l2, self.variance)
        records: list[StartRecord] = []
        best: tuple[Parameters, SmoothResult] | None = None
        for number in range(self.n_init):
            source = "SVD of the views" if self.init == "svd" and number == 0 else "random weights"
            if number == 0 and l2 >= largest:
                source, start = "no component", self.nothing()
            else:
                start = self.begin(number)
                start = renewed(begun, start) if number == 0 and begun is not None else start
            at, result = cost.minimise(start, tol=self.tol, max_iter=self.max_iter)
            records.append(StartRecord(source, result.value, result.n_iter, result.converged))
            report_start(len(records), source, result.value, f"{result.n_iter} iterations", self.verbose)
            if best is None or result.value < best[1].value:
                best = at, result
            if is_stopped():
                break
        end_of_starts(self.verbose)
        assert best is not None
        at, result = best
        values = list(result.values)
        at, optimal, n_grown, more = self.grown(cost, at)
        if more:
            values += more
            kept = min(range(len(records)), key=lambda i: records[i].objective)
            n_iter = records[kept].n_iter + len(more)
            records[kept] = replace(records[kept], objective=more[-1], n_iter=n_iter)
        axes = cost.rotated(at)
        if optimal is not None and (
            axes.n_components < at.n_components or (at.weights.size and not axes.weights.any())
        ):
            optimal = optimality(cost, axes)  # of what is kept: small components were dropped
        at = axes
        path = choice.path if isinstance(self.l2, str) else []
        return Found(at, cost.value(at), l2, largest, tuple(records), values, optimal, n_grown, path)

    def begin(self, number: int) -> Parameters:
        """Make the start with this number; the first is deterministic unless ``init="random"``."""
        problem, n = self.problem, self.problem.layout.n_variables
        weights = np.zeros((problem.layout.n_rows, self.n_components))
        if self.init == "svd" and number == 0:
            axes, sizes = principal_axes(problem, self.scale, min(self.n_components, n))
            weights[:n, : len(sizes)] = self.scale[:n, None] * axes * (SIZE * sizes)
        else:
            noise = self.random.normal(size=(n, self.n_components))
            weights[:n] = self.scale[:n, None] * noise * (0.3 / np.sqrt(max(n, 1)))
        variance = np.where(np.isnan(self.variance), 1.0, self.variance)
        return with_scores(problem, proper(Parameters(weights, base_rates(problem), np.log(variance))))

    def nothing(self, most: Array | float = LARGEST_INTERCEPT) -> Parameters:
        """Return the best model without components: all variables, and the target, are independent."""
        variance = np.where(np.isnan(self.variance), 1.0, self.variance)
        start = Parameters(np.zeros((self.problem.layout.n_rows, 0)), base_rates(self.problem), np.log(variance))
        cost = Penalised(self.problem, self.scale, 1.0, self.variance, most)
        return cost.minimise(start, tol=self.tol, max_iter=self.max_iter)[0]

    def largest_penalty(self, stride: int | None = None) -> float:
        """Return the smallest penalty for which W = 0 and V = 0 are optimal, by at most `MOST_ROWS` rows by default.

        It is the dual norm of the gradient at the model without components: the largest eigenvalue of minus twice the
        gradient in J, in units of the scale.
        """
        if not self.problem.layout.n_variables:
            return 1.0
        stride = stride or self.stride
        used = replace(self, problem=self.problem.of([positions % stride == 0 for positions in self.positions]))
        values, _ = Curvature(used.problem, used.nothing(), self.scale).largest(1)
        return max(float(values[0]), 1e-3)

    @property
    def stride(self) -> int:
        """Stride of the rows from which the penalty is chosen."""
        return -(-sum(len(p) for p in self.positions) // MOST_ROWS)

    def chosen(self, largest: float) -> Choice:
        """Choose the penalty by held-out rows, from the largest down, each fit starting at the one before.

        The path begins with the largest useful penalty, which leaves no component. See `kept_penalty` for the choice.
        """
        unchosen = Choice(UNCHOSEN * largest if isinstance(self.l2, str) else float(self.l2))
        folds = self.folds()
        if not folds:
            return unchosen
        searches, mosts = zip(*(self.on_fold(training) for training, _ in folds), strict=True)
        held = [
            self.groups(replace(testing, centre=s.problem.centre))
            for s, (_, testing) in zip(searches, folds, strict=True)
        ]
        fresh = [search.begin(0) for search in searches]
        at: list[Parameters] = []
        path: list[dict[str, float]] = []
        fits: list[Parameters] = []
        rows: list[Array] = []
        best, since = 0, 0
        penalties = [largest * 0.5**step for step in range(STEPS + 1)]
        for step, l2 in enumerate(penalties if isinstance(self.l2, str) else [float(self.l2)]):
            if l2 >= largest:
                fitted = [search.nothing(most) for search, most in zip(searches, mosts, strict=True)]
            else:
                begun = [renewed(*both) for both in zip(at, fresh, strict=True)] if at else fresh
                costs = [
                    Penalised(search.problem, search.scale, l2, self.variance, most)
                    for search, most in zip(searches, mosts, strict=True)
                ]
                n = min(self.max_iter, 200)
                fitted = at = [c.minimise(b, tol=ROUGH, max_iter=n)[0] for c, b in zip(costs, begun, strict=True)]
                since += any(cost.size(one) >= LEAST_SIZE for cost, one in zip(costs, at, strict=True))
            rows.append(np.concatenate([self.held_out(*both) for both in zip(held, fitted, strict=True)]))
            loss = float(np.average(rows[-1][:, 1], weights=rows[-1][:, 0]))
            if np.isnan(loss):
                return unchosen
            fits.append(fitted[0])
            path.append({"l2": l2, "held_out": loss})
            lowest = path[best]["held_out"]
            if loss < lowest - (GAIN * abs(lowest) if fits[best].n_components else 0.0):
                best, since = step, 0
            if is_stopped() or since >= PATIENCE or (since and is_hopeless(rows[step], rows[best])):
                break
            tell(f"penalty {step + 1}", path[best]["held_out"])
        taken = kept_penalty(rows, best, [not one.n_components for one in fits], by_target=self.by_target)
        if not fits[taken].n_components and self.stride > 1:  # all rows may need a larger one to have no component
            path[taken]["l2"] = max(path[taken]["l2"], self.largest_penalty(1))
        return Choice(path[taken]["l2"], fits[taken], path, path[taken]["held_out"])

    def on_fold(self, training: PseudoLikelihood) -> tuple[Search, Array]:
        """Return the search on training rows, about their means, and bounds on linear terms.

        Bits and levels that do not vary there keep the frequencies of all rows, whatever the penalty: what is held out
        of them would be infinitely unlikely to every model that had converged.
        """
        means, varying = training.frequencies
        most = np.where(varying, LARGEST_INTERCEPT, np.abs(base_rates(training)))
        centre = np.where(varying[: len(means)], means, training.centre)
        training, scale = replace(training, centre=centre), np.where(varying, self.scale, 0.0)
        return replace(self, problem=training, scale=scale), most

    def folds(self) -> list[tuple[PseudoLikelihood, PseudoLikelihood]]:
        """Split rows into training and held-out rows, once for each fold; empty if there are too few rows."""
        if sum(len(p) for p in self.positions) < FEWEST_ROWS:
            return []
        used = [positions % self.stride == 0 for positions in self.positions]
        found = []
        for fold in range(self.n_folds):
            out = (FOLDS // 2 + fold) % FOLDS
            held = [(positions // self.stride) % FOLDS == out for positions in self.positions]
            training = self.problem.of([u & ~h for u, h in zip(used, held, strict=True)])
            testing = self.problem.of([u & h for u, h in zip(used, held, strict=True)])
            if training.parts and testing.parts:
                found.append((training, testing))
        return found

    @property
    def by_target(self) -> bool:
        """Whether penalties are compared by the loss of a target."""
        return self.problem.loss is not None or self.problem.layout.has_label

    def groups(self, testing: PseudoLikelihood) -> list[PseudoLikelihood]:
        """Return the groups of held-out rows that losses are told of; all rows as one where there is a target."""
        if self.by_target:
            return [testing]
        masks = [[np.arange(p.data.n_units) % GROUPS == group for p in testing.parts] for group in range(GROUPS)]
        return [group for group in map(testing.of, masks) if group.parts]

    def held_out(self, groups: Sequence[PseudoLikelihood], at: Parameters) -> Array:
        """Return weights and losses that penalties are compared by: of rows where there is a target, or of groups."""
        if self.by_target:
            return np.concatenate([group.target_losses(at) for group in groups])
        if self.annotation is not None:
            told = np.array([self.annotation.loss(group, at) for group in groups])
            return told[told[:, 0] > 0] if told[:, 0].any() else np.array([[1.0, np.nan]])
        return np.array(
            [[group.total_weight, -group.log_pseudo_likelihood(at) / group.total_weight] for group in groups]
        )

    def grown(self, cost: Penalised, at: Parameters) -> tuple[Parameters, Optimality | None, int, list[float]]:
        """Add components along the certificate's directions until there are none; also return the certificate.

        Components that became zero are replaced, as their gradient is zero; with `grow` more are added.
        """
        values: list[float] = []
        most = len(cost.scale) if self.grow else self.n_components
        value = cost.value(at)
        while not is_stopped():
            optimal = optimality(cost, at, most=max(1, at.n_components // 2))
            n_grown = max(at.n_components - self.n_components, 0)
            if optimal is None or not optimal.leads_down:
                return at, optimal, n_grown, values
            used = cost.rotated(at)
            room = most - used.n_components
            if room <= 0:
                return at, optimal, n_grown, values
            wider = cost.widened(used, optimal.directions[:, :room])
            found, result = cost.minimise(wider, tol=self.tol, max_iter=self.max_iter)
            if not result.value < value - LEAST_GAIN * abs(value):
                return at, optimal, n_grown, values
            at, value = found, result.value
            values += result.values[1:]
        return at, None, max(at.n_components - self.n_components, 0), values


def worth_it(losses: Sequence[float]) -> int:
    """Return the index of the weight of the loss to keep, by held-out losses of decreasing weights; see `WORTH`."""
    kept = 0
    for i, loss in enumerate(losses):
        if loss < (1 - WORTH) * losses[kept]:
            kept = i
    return kept


def kept_penalty(rows: Sequence[Array], best: int, empty: Sequence[bool], *, by_target: bool) -> int:
    """Return the number of the penalty to keep.

    A model without components is kept if its loss is within one standard error of the difference from the smallest
    one. Otherwise the penalty with the smallest loss is, or with a target, whose loss on few rows is noisy, the largest
    one with components whose loss is within one standard error of the smallest.

    Parameters
    ----------
    rows : list of ndarray of shape (n, 2)
        Weights and losses of held-out rows, or of groups of rows, for each penalty from the largest down.
    best : int
        Number of the smallest loss.
    empty : list of bool
        Whether the model has no components.
    """
    weights, least = rows[best].T
    error = standard_error(least, weights) if by_target else -np.inf
    for number, (_, losses) in enumerate(of_one.T for of_one in rows[:best]):
        excess = losses - least
        if np.average(excess, weights=weights) <= (standard_error(excess, weights) if empty[number] else error):
            return number
    return best


def is_hopeless(rows: Array, best: Array) -> bool:
    """Return whether losses exceed those of the best penalty by so much that smaller penalties are not tried."""
    excess, weights = rows[:, 1] - best[:, 1], rows[:, 0]
    return bool(np.average(excess, weights=weights) > HOPELESS * standard_error(excess, weights) > 0)


def standard_error(values: Array, weights: Array) -> float:
    """Return the standard error of a weighted mean."""
    mean = np.average(values, weights=weights)
    return float(np.sqrt(np.average((values - mean) ** 2, weights=weights) / len(values)))


def principal_axes(problem: PseudoLikelihood, scale: Array, k: int) -> tuple[Array, Array]:
    r"""Return principal axes (n_variables, k) of the correlations of all variables, and sizes of factors.

    An axis of variance c^2 in standardised rows has size :math:`\sqrt{1 - 1 / c^2}`. Missing views count as means.
    Subspace iteration from a fixed start.
    """
    n = problem.layout.n_variables
    if not n:
        return np.zeros((0, 0)), np.zeros(0)
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(n, min(k + SPARE, n))))[0]
    for _ in range(SWEEPS):
        axes = np.linalg.qr(_correlation_times(problem, scale, axes))[0]
    small = axes.T @ _correlation_times(problem, scale, axes)
    values, turn = np.linalg.eigh((small + small.T) / 2)
    order = np.argsort(-values, kind="stable")[:k]
    vectors = axes @ turn[:, order]
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(len(order))]
    sizes = np.sqrt(np.maximum(1 - 1 / np.maximum(values[order], 1.0001), 1e-4))
    return vectors * np.where(largest < 0, -1.0, 1.0), sizes


def _correlation_times(problem: PseudoLikelihood, scale: Array, axes: Array) -> Array:
    scale = scale[: problem.layout.n_variables, None]
    v, total = scale * axes, np.zeros_like(axes)
    for part in problem.parts:
        columns = part.seen.columns(problem.layout)
        centre = problem.centre[columns]
        groups, shift = [v[rows] for rows in part.seen.groups(problem.layout)], centre @ v[columns]

        def visit(block: Block, seen: Seen = part.seen, groups: list[Array] = groups, shift: Array = shift) -> Array:
            tables = features(problem.layout, seen, block)
            y = np.zeros((len(block), v.shape[1]))
            for table, group in zip(tables, groups, strict=True):
                y += table @ group
            y -= shift
            if block.weights is not None:
                y *= block.weights[:, None]
            return np.concatenate([*(table.T @ y for table in tables), y.sum(axis=0)[None]])

        sums = part.data.map_sum(visit)
        total[columns] += sums[:-1] - np.outer(centre, sums[-1])
    return scale * total / problem.total_weight


def base_rates(problem: PseudoLikelihood) -> Array:
    """Return the linear terms at which all variables are independent and have their own frequencies."""
    layout = problem.layout
    intercept = np.zeros(layout.n_rows)
    p = np.clip(problem.centre, RAREST, 1 - RAREST)
    bits = slice(layout.n_gaussian, layout.n_gaussian + layout.n_bits)
    intercept[bits] = np.log(p[bits]) - np.log1p(-p[bits])
    levels = slice(layout.first_level, layout.n_variables)
    intercept[levels] = np.log(p[levels])
    for structure, rows in zip(layout.structures, layout.of_structures, strict=True):
        p = np.clip(structure.centre[: structure.n_nodes], RAREST, 1 - RAREST)
        intercept[rows.start : rows.start + structure.n_nodes] = np.log(p) - np.log1p(-p)
    return intercept


def proper(at: Parameters) -> Parameters:
    """Shrink W so that the model is proper by some margin."""
    u = at.weights[: len(at.log_variance)]
    radius = float(np.linalg.eigvalsh((u.T * at.variance) @ u).max(initial=0.0)) if len(u) else 0.0
    if radius <= RADIUS:
        return at
    return Parameters(at.weights * np.sqrt(RADIUS / radius), at.intercept, at.log_variance)


def with_scores(problem: PseudoLikelihood, at: Parameters) -> Parameters:
    """Return the start with V from a ridge regression of the target on the latents."""
    layout, loss = problem.layout, problem.loss
    if loss is None:
        return at
    k = at.n_components
    moments = np.zeros((k, k + layout.n_scores))
    for part, view in problem.views(at):

        def visit(block: Block, view=view) -> Array:  # type: ignore[no-untyped-def]
            m, target = view.latents(block), loss.targets(block.columns[3])
            wm = m if block.weights is None else m * block.weights[:, None]
            return np.concatenate([wm.T @ m, wm.T @ target], axis=1)

        moments += part.data.map_sum(visit)
    ridge = RIDGE * problem.total_weight * np.eye(k)
    weights = at.weights.copy()
    weights[layout.n_variables :] = np.linalg.solve(moments[:, :k] + ridge, moments[:, k:]).T
    return Parameters(weights, at.intercept, at.log_variance)
