"""Inference with a fitted harmonium: latents, missing views, loadings, and its summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax
from threadpoolctl import threadpool_limits

from majorant._numbers import counted
from majorant.data.chunks import Block, Chunks
from majorant.models.harmonium.layout import Layout, Parameters, Seen
from majorant.models.harmonium.pseudo_likelihood import Part, PseudoLikelihood
from majorant.models.harmonium.structure import Structure, natural
from majorant.models.harmonium.tables import Distinct, Table, n_rows
from majorant.models.harmonium.variables import FittedView, patterns_of, rows_of_views
from majorant.solvers.logistic import fit_logistic
from majorant.summary import Block as Section
from majorant.summary import Column, Fact, Facts, Summary, search_block
from majorant.summary import Table as SummaryTable

Array = NDArray[np.float64]

SWEEPS, SETTLED, DAMPING = 500, 1e-9, 0.5
"""Largest number of sweeps, tolerance and damping of mean field."""
BURN_IN = 30
"""Number of first sweeps of Gibbs sampling that are dropped."""
MOST_COMPONENTS, MOST_FEATURES = 20, 3
"""Components, and features of each, that a summary shows."""
SIGNS = "Correlated columns may have opposite signs in a component: read them together, not sign by sign."


@dataclass(frozen=True)
class Unseen:
    """Discrete variables that rows of a pattern lack, in the pattern's coordinates of the latents.

    Attributes
    ----------
    rows : ndarray of int
        Rows of W: bits, then levels.
    groups : tuple of slice
        Positions in `rows`: one for the bits, then one for each categorical variable.
    weights, intercept, centre : ndarray
    structured : tuple of (Structure, slice)
        Structured views, whose rows come last; their values are features.
    """

    rows: NDArray[np.intp]
    groups: tuple[slice, ...]
    weights: Array
    intercept: Array
    centre: Array
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
        """Return the probabilities and expected latents as averages over Gibbs samples of latents and variables.

        Raises
        ------
        ValueError
            If a structured view is missing.
        """
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
    """A harmonium with its parameters.

    Attributes
    ----------
    views : tuple of FittedView
    layout : Layout
        Variables of the views; a label that is modelled is the last categorical one.
    centre : ndarray of shape (n_variables,)
    parameters : Parameters
    """

    views: tuple[FittedView, ...]
    layout: Layout
    centre: Array
    parameters: Parameters

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
            for pattern in patterns_of(tables, self.views, self.layout):
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
                latents = self.infer(rest, n_jobs=n_jobs)[0][used]
                found[view.name] = fit_logistic(latents, view.encoded(own)[used], rows.weights[used], l2)
        return found

    def loadings(self, view: FittedView) -> Array:
        """Return the weights of all columns of a view (couplings left out); zero for constant columns."""
        weights = self.parameters.weights[rows_of_views(self.views)[view.name]][: len(view.kept)]
        out = np.zeros((len(view.mean), weights.shape[1]))
        out[view.kept] = weights if view.whitener is None else view.whitener @ weights
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


def components_in_words(model: Any) -> str:
    """Return the number of components used: "3 of at most 5 components", "16 components, grown from 5"."""
    if has_grown(model):
        return f"{counted(model.rank_, 'component')}, grown from {model.n_components}"
    return f"{model.rank_} of at most {counted(model.n_allowed_, 'component')}"


def has_grown(model: Any) -> bool:
    """Return whether ``grow=True`` added components beyond `n_components`."""
    return bool(model.rank_ > model.n_components)


def too_large_a_penalty(model: Any) -> str:
    """Return the warning that the smallest penalty of the path was chosen, so a smaller one may be better; or ""."""
    penalties = model.l2_path_[:, 0]
    if len(penalties) < 2 or model.l2_ != penalties[-1]:
        return ""
    said = "The penalty is the smallest that was tried, and the held-out loss was falling: a smaller one may be better."
    if getattr(model, "select_by", None) is not None:  # which takes no penalty of one's own
        return said
    return f"{said} Set l2 to {float(penalties[-1]) / 2:.3g} or less to see."


def objective_in_words(model: Any) -> str:
    """Return the definition of the log-loss of a fit; "" for contrastive divergence."""
    if model.method_ == "cd":
        return ""
    target = ", plus the loss of the target" if hasattr(model, "label_components_") else ""
    return (
        f"Log-loss: that of every variable given the others{target}, and the penalty, as a mean per row. "
        "The held-out losses of penalties that are compared have no penalty in them: the two cannot be compared."
    )


def held_out_loss_in_words(model: Any) -> str:
    """Return the column head of the loss that penalties were compared by."""
    told = getattr(model, "select_by", None)
    return "Held-out loss" if told is None else f"Held-out loss of {told} given the other views"


def view_penalty_in_words(model: Any) -> str:
    """Return the factor of the selected view in the penalty; "" without `select_by`."""
    told = getattr(model, "select_by", None)
    if told is None:
        return ""
    factor = next(view.penalty for view in model.views_ if view.name == told)
    tried = ", ".join(f"{tried:g} ({loss:.4g})" for tried, loss in model.penalty_path_.tolist())
    compared = f"; tried (and held-out loss): {tried}" if tried else ""
    return f"Weights of {told} count {factor:g} times in the penalty, those of other views once{compared}."


def top_features(model: Any, view: str, most: int) -> list[list[str]]:
    """List the columns (or levels) of a view with the largest weights in each component, with their signs.

    Couplings are pairs of names joined by a tilde, for a chain a word with itself.
    """
    weights = model.loadings(view)
    fitted = next(v for v in model.views_ if v.name == view)
    names = fitted.names
    if fitted.kind == "categorical":
        names = [
            f"{name}={level}" for name, levels in zip(names, fitted.levels, strict=True) for level in levels.tolist()
        ]
    if fitted.structure is not None:
        weights = np.concatenate([weights, model.coupling_loadings(view)])
        names = [*names, *(f"{names[i]}~{names[j]}" for i, j in fitted.couplings.tolist())]
    found = []
    for k in range(weights.shape[1]):
        order = np.argsort(-np.abs(weights[:, k]), kind="stable")[:most]
        found.append([f"{'+' if weights[j, k] > 0 else '-'}{names[j]}" for j in order if weights[j, k] != 0])
    return found


def view_weights(model: Any) -> Array:
    r"""Compute the weight of each view in each component.

    Parameters
    ----------
    model : Harmonium, HarmoniumClassifier or HarmoniumRegressor
        Fitted.

    Returns
    -------
    ndarray of shape (n_views, n_components)
        :math:`\sum_i v_i W_{ik}^2` over the variables of a view, v their variances (1 for standardised columns): the
        variance of its part of :math:`E[h_k]` if its variables are uncorrelated.

    Examples
    --------
    >>> import numpy as np
    >>> import majorant as mj
    >>> g = np.random.default_rng(0)
    >>> h = g.normal(size=(200, 1))
    >>> X = {"near": h + 0.5 * g.normal(size=(200, 3)), "far": h + 3 * g.normal(size=(200, 3))}
    >>> views = {"near": mj.Gaussian(whiten=False), "far": mj.Gaussian(whiten=False)}
    >>> model = mj.Harmonium(2, views=views, l2=0.1).fit(X)
    >>> near, far = view_weights(model)[:, 0]
    >>> bool(near > 10 * far)
    True
    """
    places = rows_of_views(model.views_)
    sizes = [np.einsum("ki,i->k", model.components_[:, places[v.name]] ** 2, v.spread**2) for v in model.views_]
    return np.array(sizes)


def harmonium_summary(model: Any) -> Summary:
    """Summarise a fit: search report, fit, views, and the columns with the largest weights in each component."""
    facts = Facts(
        "fit",
        [
            Fact(model.search_.objective_name, model.objective_, 5),
            Fact("l2", model.l2_, 4),
            Fact("largest l2", model.largest_l2_, 4),
        ],
        [Fact("rows", model.n_samples_), Fact("components", model.rank_), Fact("allowed", model.n_allowed_)],
    )
    blocks = [
        search_block(model.search_),
        Section("FIT", f"L-BFGS, {counted(model.n_iter_, 'iteration')}", [facts]),
        Section("VIEWS", "", [_views(model)]),
        Section("COMPONENTS", "", _components(model)),
        *([Section("WEIGHTS", "", _weights(model))] if len(model.views_) > 1 and model.rank_ else []),
    ]
    title = f"harmonium, {counted(len(model.views_), 'view')}, {counted(model.rank_, 'component')}"
    shape = f"{counted(model.n_samples_, 'row')}, {counted(model.n_features_in_, 'feature')}"
    return Summary(title, shape, blocks, [sentence for sentence in [too_large_a_penalty(model)] if sentence])


def _views(model: Any) -> SummaryTable:
    rows = [
        (view.name, _kind(view), str(len(view.names)), str(view.width), "yes" if view.whitener is not None else "no")
        for view in model.views_
    ]
    return SummaryTable("views", [Column(c) for c in ("view", "kind", "columns", "variables", "whitened")], rows)


def _kind(view: Any) -> str:
    """Return the kind of a view, with the number of its edges."""
    if view.kind != "bernoulli" or view.structure is None:
        return str(view.kind)
    return f"bernoulli, {counted(len(view.structure.edges), 'edge')}"


def _weights(model: Any) -> list[SummaryTable | str]:
    """Return the shares of views in each component."""
    weights = view_weights(model)[:, : min(model.rank_, MOST_COMPONENTS)]
    shares = weights / weights.sum(axis=0)
    columns = [Column("component"), *(Column(view.name) for view in model.views_)]
    rows = [(str(k + 1), *(f"{100 * share:.0f} %" for share in of_one)) for k, of_one in enumerate(shares.T)]
    return [SummaryTable("weights", columns, rows), "Shares of views in each component, by their squared weights."]


def _components(model: Any) -> list[SummaryTable | str]:
    if model.rank_ == 0:
        return ["No component: with this penalty the columns are best taken to be independent."]
    shown = min(model.rank_, MOST_COMPONENTS)
    columns = [Column("component"), *(Column(view.name, lists=True) for view in model.views_)]
    tops = [top_features(model, view.name, MOST_FEATURES) for view in model.views_]
    rows = [(str(k + 1), *(", ".join(top[k]) for top in tops)) for k in range(shown)]
    content: list[SummaryTable | str] = [SummaryTable("components", columns, rows)]
    content.append(SIGNS)
    if model.rank_ > shown:
        content.append(f"{model.rank_ - shown} more components.")
    return content


def has_probabilities(model: Any) -> bool:
    """Return whether a supervised harmonium gives probabilities of labels, or raise an AttributeError."""
    fitted = getattr(model, "supervision_", None)
    if fitted is not None and not fitted.n_labels:
        raise AttributeError("the loss of the fit gives no probabilities: fit with loss='log'")
    if fitted is None and model.loss != "log":
        raise AttributeError(f"loss={model.loss!r} gives no probabilities: fit with loss='log'")
    return True
