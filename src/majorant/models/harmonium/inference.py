"""What rows say of latents and of views that they lack; what no row of the fit links is not answered, and is told."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax
from threadpoolctl import threadpool_limits

from majorant._validation import levels_to_user
from majorant.data.chunks import Block, Chunks
from majorant.models.harmonium.certificate import unlinked_sentence
from majorant.models.harmonium.layout import (
    Layout,
    Marginal,
    Parameters,
    Seen,
    centre_of,
    layout_of,
    patterns_of,
    rows_of_views,
)
from majorant.models.harmonium.pseudo_likelihood import Part, PseudoLikelihood
from majorant.models.harmonium.structure import Structure, natural
from majorant.models.harmonium.tables import Distinct, Table, n_rows
from majorant.models.harmonium.variables import FittedView
from majorant.models.unlinked import Groups, Links, groups_in_words
from majorant.solvers.logistic import fit_logistic

Array = NDArray[np.float64]

SWEEPS, SETTLED, DAMPING = 500, 1e-9, 0.5
"""Largest number of sweeps, tolerance and damping of mean field."""
ROUGH, LEAST = 1e-5, 1e-12
"""Tolerance of mean field, and smallest probability, where held-out bits are predicted."""
BURN_IN = 30
"""Number of first sweeps of Gibbs sampling that are dropped."""


@dataclass(frozen=True)
class Unseen:
    """Discrete variables that rows of a pattern lack, in the pattern's coordinates of the latents."""

    rows: NDArray[np.intp]  # rows of W: bits, then levels
    groups: tuple[slice, ...]  # positions in `rows`: one for the bits, then one for each categorical variable
    weights: Array
    intercept: Array
    centre: Array
    # structured views, whose rows come last; their values are features
    structured: tuple[tuple[Structure, slice], ...] = ()

    @classmethod
    def of(cls, layout: Layout, centre: Array, seen: Seen, theta: Parameters) -> Self:
        """Collect the variables that rows with `seen` lack; `theta` holds the parameters in their coordinates."""
        g, b = layout.n_gaussian, layout.n_bits
        lost_bits = np.setdiff1d(np.arange(g, g + b), seen.bits)
        levels = [at for number, at in enumerate(layout.of_variables) if number not in seen.variables]
        lost = [number for number in range(len(layout.structures)) if number not in seen.structures]
        groups, rows, start = [slice(0, len(lost_bits))], [lost_bits], len(lost_bits)
        for at in (*levels, *(layout.of_structures[number] for number in lost)):
            rows.append(np.arange(at.start, at.stop))
            groups.append(slice(start, start + at.stop - at.start))
            start = groups[-1].stop
        structured = zip([layout.structures[number] for number in lost], groups[1 + len(levels) :], strict=True)
        at_rows = np.concatenate(rows)
        return cls(
            at_rows,
            tuple(groups[: 1 + len(levels)]),
            theta.weights[at_rows],
            theta.intercept[at_rows],
            centre[at_rows],
            tuple(structured),
        )

    def given(self, eta: Array) -> Array:
        """Return the probabilities, or expected features, from natural parameters."""
        p = np.empty_like(eta)
        for number, at in enumerate(self.groups):
            p[:, at] = expit(eta[:, at]) if number == 0 else softmax(eta[:, at], axis=1)
        for structure, at in self.structured:
            p[:, at] = structure.expected(eta[:, at])
        return p

    def naturals(self, latents: Array, p: Array) -> Array:
        """Replace expected features of structured views by natural parameters."""
        out = p.copy()
        for structure, at in self.structured:
            out[:, at] = natural(structure, latents, self.weights[at], self.intercept[at], p[:, at])
        return out

    def mean_field(self, m: Array, settled: float = SETTLED) -> tuple[Array, Array]:
        r"""Compute probabilities and expected latents by collapsed mean field, from the part m of observed variables.

        Each bit's probability solves :math:`p_i = \sigma(a_i + W_i^\top m + |W_i|^2 (1/2 - p_i))`, m with all expected
        values included: the latents are integrated out, and a bit does not predict itself. Nodes and couplings of a
        structured view likewise; given these, its cells are exact (chains) or by mean field (graphs).
        """
        q = np.einsum("ik,ik->i", self.weights, self.weights)
        p = np.tile(self.centre, (len(m), 1))
        for _ in range(SWEEPS):
            latents = m + (p - self.centre) @ self.weights
            eta = latents @ self.weights.T + self.intercept + q / 2
            eta[:, self.groups[0]] -= q[self.groups[0]] * p[:, self.groups[0]]
            for at in self.groups[1:]:
                eta[:, at] -= p[:, at] @ (self.weights[at] @ self.weights[at].T)
            for structure, at in self.structured:
                eta[:, at] = natural(structure, latents, self.weights[at], self.intercept[at], p[:, at])
            change = self.given(eta) - p
            p += (1 - DAMPING) * change
            if np.abs(change).max(initial=0.0) < settled:
                break
        latents = m + (p - self.centre) @ self.weights
        return self.naturals(latents, p), latents

    def gibbs(self, m: Array, sweeps: int, random: np.random.Generator) -> tuple[Array, Array]:
        """Return the probabilities and expected latents as averages over Gibbs samples of latents and variables."""
        if self.structured:
            raise ValueError("method='gibbs' does not sample chains or bits with edges: take method='mean-field'")
        x = np.tile(self.centre, (len(m), 1))
        mean, latents = np.zeros_like(x), np.zeros_like(m)
        for sweep in range(BURN_IN + sweeps):
            expected = m + (x - self.centre) @ self.weights
            h = expected + random.normal(size=m.shape)
            p = self.given(h @ self.weights.T + self.intercept)
            x = self.drawn(p, random)
            if sweep >= BURN_IN:
                mean += p / sweeps
                latents += expected / sweeps
        return mean, latents

    def drawn(self, p: Array, random: np.random.Generator) -> Array:
        """Draw values from probabilities by inverse CDF."""
        x = np.empty_like(p)
        for number, at in enumerate(self.groups):
            if number == 0:
                x[:, at] = random.random((len(p), at.stop - at.start)) < p[:, at]
            else:
                code = (random.random((len(p), 1)) > np.cumsum(p[:, at], axis=1)[:, :-1]).sum(axis=1)
                x[:, at] = np.eye(at.stop - at.start)[code]
        return x


@dataclass(frozen=True)
class FittedHarmonium:
    """A harmonium with its parameters."""

    views: tuple[FittedView, ...]
    layout: Layout  # variables of the views; a label that is modelled is the last categorical one
    centre: Array  # (n_variables,)
    parameters: Parameters
    unlinked: Groups  # groups of views that no row of the fit links; empty where all are linked

    @classmethod
    def of(cls, model: Any) -> Self:
        """Collect the fitted attributes of an estimator."""
        weights, intercept = model.components_.T, model.intercept_
        if hasattr(model, "label_components_"):
            weights = np.concatenate([weights, model.label_components_])
            intercept = np.concatenate([intercept, model.label_intercept_])
        parameters = Parameters(weights, intercept, np.log(model.noise_variance_))
        centre = centre_of(model.views_, model._label_shares)
        layout = layout_of(model.views_, model.supervision_)
        return cls(model.views_, layout, centre, parameters, model.certificate_.unlinked)

    @property
    def label(self) -> slice:
        """Rows of W of the label."""
        return self.layout.of_variables[-1]

    def unseen(self, seen: Seen, theta: Parameters) -> Unseen:
        """Return the discrete variables that are missing."""
        return Unseen.of(self.layout, self.centre, seen, theta)

    def infer(
        self,
        tables: Mapping[str, Table],
        *,
        n_jobs: int | None = None,
        sweeps: int = 0,
        random: np.random.Generator | None = None,
    ) -> tuple[Array, Array]:
        """Infer expected latents (n, n_components) and probabilities (n, n_rows) of missing discrete variables.

        Missing structured views have natural parameters in the place of probabilities. Results are exact if only
        Gaussian views or the label are missing, otherwise by mean field, or by Gibbs sampling if `random` is given. A
        row without any view gets the means.
        """
        n = n_rows(tables)
        k, width = self.parameters.n_components, self.layout.n_rows
        latents, expected = np.empty((n, k)), np.full((n, width), np.nan)
        with threadpool_limits(limits=1, user_api="blas"):
            for pattern in patterns_of(tables, self.views):
                at = Part(pattern.seen, Chunks(*pattern.columns, n_jobs=n_jobs, rows=1024))
                (_, view), *_ = PseudoLikelihood(self.layout, self.centre, (at,)).views(self.parameters)
                turn = view.marginal.turn
                unseen = self.unseen(pattern.seen, view.theta)
                nothing = not len(pattern.seen.columns(self.layout))

                def visit(
                    block: Block, view: Any = view, turn: Any = turn, unseen: Unseen = unseen, nothing: bool = nothing
                ) -> Array:
                    m = view.latents(block)
                    p = np.empty((len(m), len(unseen.rows)))
                    if self._only_label(unseen):
                        p, m = self._with_label(m, unseen)
                    elif nothing:
                        p = np.tile(unseen.centre, (len(m), 1))  # a mean field would settle on one side
                        p = unseen.naturals(m, p)
                    elif len(unseen.rows):
                        p, m = unseen.gibbs(m, sweeps, random) if random is not None else unseen.mean_field(m)
                    return np.concatenate([m if turn is None else m @ turn.T, p], axis=1)

                out = at.data.map_rows(visit, (k + len(unseen.rows),))
                latents[pattern.rows] = out[:, :k]
                expected[np.ix_(pattern.rows, unseen.rows)] = out[:, k:]
        return latents, expected

    def _only_label(self, unseen: Unseen) -> bool:
        return self.layout.has_label and len(unseen.rows) == self.layout.levels[-1]

    def _with_label(self, m: Array, unseen: Unseen) -> tuple[Array, Array]:
        """Return exact probabilities of labels, latents integrated out, and expected latents over the labels."""
        rest = m - unseen.centre @ unseen.weights
        p = np.exp(log_softmax(self.label_logits(rest, unseen), axis=1))
        return p, rest + p @ unseen.weights

    def label_logits(self, rest: Array, unseen: Unseen) -> Array:
        """Return the logits of p(y | x, z), from the part `rest` of the latents' mean without the label."""
        q = np.einsum("lk,lk->l", unseen.weights, unseen.weights)
        return np.asarray(rest @ unseen.weights.T + unseen.intercept + q / 2)

    def completed(self, view: FittedView, latents: Array, expected: Array) -> Array:
        """Return the expected values or probabilities of a missing view, in its own units."""
        at = rows_of_views(self.views)[view.name]
        if view.kind == "gaussian":
            theta = self.parameters
            s, b = theta.variance[at], theta.intercept[at]
            return view.restored(s * (latents @ theta.weights[at].T + b))
        if view.structure is not None:
            return view.in_columns(view.structure.probabilities(expected[:, at]), view.mean)
        out = np.tile(view.mean, (len(latents), 1))
        out[:, view.kept] = expected[:, at]
        return out

    def decoded(self, view: FittedView, h: Array) -> Array:
        """Return the expectation of a view given latents, in its own units."""
        theta, at = self.parameters, rows_of_views(self.views)[view.name]
        weights, intercept = theta.weights[at], theta.intercept[at]
        expected = np.empty((len(h), self.layout.n_rows))
        if view.structure is not None:
            expected[:, at] = natural(view.structure, h, weights, intercept)
        elif view.kind == "bernoulli":
            expected[:, at] = expit(h @ weights.T + intercept)
        elif view.kind == "categorical":
            eta, ends = h @ weights.T + intercept, np.cumsum([0, *view.sizes])
            expected[:, at] = np.hstack([softmax(eta[:, a:b], axis=1) for a, b in pairwise(ends)] or [eta])
        return self.completed(view, h, expected)

    def readouts(self, rows: Distinct, l2: float | None, *, n_jobs: int | None) -> dict[str, tuple[Array, float]]:
        """Fit logistic regressions of the bits of each view on the latents given the others; see `fit_logistic`."""
        found = {}
        for view in self.views:
            if view.place == "bernoulli" and view.name in rows.tables:
                rest = dict(rows.tables)
                own = rest.pop(view.name)
                used = np.flatnonzero(~own.missing)
                if not len(used):
                    raise ValueError(f"no row with weight has view {view.name!r}: leave it out of X")
                latents = self.infer(linked_to(view.name, rest, self.unlinked), n_jobs=n_jobs)[0][used]
                found[view.name] = fit_logistic(latents, view.encoded(own)[used], rows.weights[used], l2)
        return found

    def loadings(self, view: FittedView) -> Array:
        """Return the weights of all columns of a view (couplings left out); zero for constant columns."""
        weights = self.parameters.weights[rows_of_views(self.views)[view.name]][: len(view.kept)]
        out = np.zeros((len(view.mean), weights.shape[1]))
        out[view.kept] = weights if view.whitener is None else view.whitener.whitened(weights.T).T
        return out

    def coupling_loadings(self, view: FittedView) -> Array:
        """Return the weights of all couplings of a structured view; zero where an end is constant."""
        couplings = view.couplings
        out = np.zeros((len(couplings), self.parameters.n_components))
        weights = self.parameters.weights[rows_of_views(self.views)[view.name]]
        out[np.isin(couplings, view.kept).all(axis=1)] = weights[view.structure.n_nodes :]
        return out

    def sample(self, n: int, sweeps: int, random: np.random.Generator) -> dict[str, Array]:
        """Draw rows by Gibbs sampling between latents and variables; return variables of the model by view."""
        theta, layout = self.parameters, self.layout
        g = layout.n_gaussian
        u, s, b = theta.weights[:g], theta.variance, theta.intercept[:g]
        nothing = Seen(np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp), ())
        unseen = self.unseen(nothing, theta)
        plain = replace(unseen, structured=())
        cells: dict[int, Array] = {}
        h = random.normal(size=(n, theta.n_components))
        for _ in range(sweeps):
            z = s * (h @ u.T + b) + np.sqrt(s) * random.normal(size=(n, g))
            x = plain.drawn(plain.given(h @ unseen.weights.T + unseen.intercept), random)
            for i, (structure, at) in enumerate(unseen.structured):
                eta = natural(structure, h, unseen.weights[at], unseen.intercept[at])
                cells[i] = structure.drawn(eta, random, cells.get(i))
                x[:, at] = structure.features_of(cells[i])
            h = z @ u + (x - unseen.centre) @ unseen.weights + random.normal(size=h.shape)
        every = np.empty((n, self.layout.n_variables))
        every[:, :g], every[:, unseen.rows] = z, x
        found = {name: every[:, at] for name, at in rows_of_views(self.views).items()}
        structured = [view.name for view in self.views if view.structure is not None]
        return {**found, **{name: cells[i] for i, name in enumerate(structured)}}


@dataclass(frozen=True)
class Annotation:
    """Held-out log-loss of the bits of a view given the other views, as `Harmonium.annotate` predicts them."""

    rows: slice  # rows of W of the bits

    def loss(self, problem: PseudoLikelihood, at: Parameters) -> tuple[float, float]:
        """Return the weight of the rows that have the view and others, and their mean loss; NaN if there are none."""
        total, weight = 0.0, 0.0
        for part in problem.parts:
            others = np.setdiff1d(part.seen.bits, np.arange(self.rows.start, self.rows.stop))
            rest = replace(part.seen, bits=others)
            if len(part.seen.bits) == len(rest.bits) or not len(rest.columns(problem.layout)):
                continue
            total += self._loss_of_part(problem, part, rest, at)
            weight += part.data.total_weight
        return weight, total / weight if weight else np.nan

    def _loss_of_part(self, problem: PseudoLikelihood, part: Part, rest: Seen, at: Parameters) -> float:
        plain = PseudoLikelihood(problem.layout, problem.centre, ())
        view = plain.view(rest, at)
        unseen = Unseen.of(problem.layout, problem.centre, rest, view.theta)
        asked = (unseen.rows >= self.rows.start) & (unseen.rows < self.rows.stop)
        known = np.isin(part.seen.bits, rest.bits)

        def visit(block: Block) -> float:
            z, x, *others = block.columns
            m = view.latents(replace(block, columns=(z, x[:, known], *others)))
            p = np.clip(unseen.mean_field(m, ROUGH)[0][:, asked], LEAST, 1 - LEAST)
            bits = x[:, ~known]
            on: Any = bits.multiply(np.log(p) - np.log1p(-p)).sum(axis=1)
            return -block.total(np.log1p(-p).sum(axis=1) + np.asarray(on).ravel())

        return float(part.data.map_sum(visit))


def has_probabilities(model: Any) -> bool:
    """Return whether a supervised harmonium gives probabilities of labels, or raise an AttributeError."""
    fitted = getattr(model, "supervision_", None)
    if fitted is not None and not fitted.n_labels:
        raise AttributeError("the loss of the fit gives no probabilities: fit with loss='log'")
    if fitted is None and model.loss != "log":
        raise AttributeError(f"loss={model.loss!r} gives no probabilities: fit with loss='log'")
    return True


SHAPES = {"components_": "kv", "intercept_": "v", "noise_variance_": "g"}
"""See `ModelCard`: axes are components, variables, and real variables."""


def check_proper(model: Any) -> None:
    """Raise ValueError if the estimates of a fitted harmonium do not fit its views, or are of no distribution."""
    layout = layout_of(model.views_, model.supervision_)
    sizes = {
        "components_": (model.components_, model.n_components_),
        "intercept_": (model.intercept_, layout.n_variables - model.supervision_.n_labels),
        "noise_variance_": (model.noise_variance_, layout.n_gaussian),
    }
    for name, (values, n) in sizes.items():
        if len(values) != n:
            raise ValueError(f"its {name} has length {len(values)}, and its views and components need {n}")
    parameters = Parameters(model.components_.T, model.intercept_, np.log(model.noise_variance_))
    try:
        Marginal.of(parameters, np.arange(layout.n_gaussian))
    except np.linalg.LinAlgError:
        raise ValueError("no distribution has its components_ and noise_variance_") from None


def unlinked_views(tables: Mapping[str, Table], *, by_target: bool) -> Groups:
    """Return the groups of views that no row links, not even by other views; empty where all are linked.

    Warns
    -----
    UserWarning
        If there are such groups.
    """
    groups = Links.of(np.column_stack([~table.missing for table in tables.values()])).groups(list(tables))
    if groups:
        _warn(f"{unlinked_sentence(groups, by_target=by_target)} Add rows that have views of both.")
    return groups


def linked_to(view: str, tables: Mapping[str, Table], groups: Groups) -> dict[str, Table]:
    """Return tables without the views that no row of the fit links with `view`: of these nothing follows for it.

    Warns
    -----
    UserWarning
        If there are rows that show nothing else, which are taken to show nothing.
    """
    linked = next((group for group in groups if view in group), tuple(tables))
    shown = np.any([~table.missing for table in tables.values()], axis=0)
    used = np.any([~table.missing for name, table in tables.items() if name in linked] or [~shown & False], axis=0)
    if n := int(np.sum(shown & ~used)):
        _warn(
            f"{n} of {len(shown)} rows show only views that no row of the fit links with {view!r} "
            f"({groups_in_words(groups)}): they say nothing of it, and have its means."
        )
    hidden = np.ones(n_rows(tables), dtype=bool)
    return {name: table if name in linked else replace(table, missing=hidden) for name, table in tables.items()}


def warn_of_rows(tables: Mapping[str, Table], groups: Groups) -> None:
    """Warn where a row shows views of several groups."""
    if groups and (_groups_shown(tables, groups).sum(axis=0) > 1).any():
        tell_unlinked(groups, "what rows that have several of them say together is not determined")


def warn_of_comparison(tables: Sequence[Mapping[str, Table]], groups: Groups) -> None:
    """Warn where rows that are to be compared show views of several groups."""
    if groups and np.any([_groups_shown(of, groups).any(axis=1) for of in tables], axis=0).sum() > 1:
        tell_unlinked(groups, "representations of rows of different groups cannot be compared")


def _groups_shown(tables: Mapping[str, Table], groups: Groups) -> NDArray[np.bool_]:
    """Return of which groups (n_groups, n_rows) rows show a view."""
    nothing = np.ones(n_rows(tables), dtype=bool)
    lost = [[tables[name].missing if name in tables else nothing for name in group] for group in groups]
    return np.array([~np.all(of_group, axis=0) for of_group in lost])


def tell_unlinked(groups: Groups, what: str) -> None:
    """Warn of what no answer is known to; nothing where all views are linked."""
    if groups:
        _warn(f"No row of the fit has views of two of these groups: {groups_in_words(groups)}. So {what}.")


def _warn(said: str) -> None:
    warnings.warn(said, stacklevel=levels_to_user())
