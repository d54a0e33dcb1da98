"""The preference for labelings in which neighbours agree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from majorant._validation import check_choice, check_integer, check_positive, check_real, check_sample_weight
from majorant.data.chunks import Block
from majorant.engine.biases import in_groups, pairs_of_units
from majorant.engine.latents import Latent, tightest
from majorant.engine.potts import Method, PottsGraph
from majorant.engine.problem import View

MAX_TRIES = 20
"""Largest number of multipliers that are tried for a budget; more than ten are rare."""

ROUNDS = 10
"""Number of mean-field rounds of soft latents."""

LIGHTEST = 1e-100
"""Smallest share of the largest weight at which an edge counts, so that multipliers stay finite."""

CLOSE = 1e-2
"""Tolerance of the Potts energy relative to its minimum or, for soft latents, unused share of the budget."""


class Coherence:
    r"""Preference for labelings in which linked units have the same state.

    Among all bounds within the budget :math:`B` of the engine, it chooses one of least Potts energy,

    .. math::
        \min_z \sum_{(i, j)} c_{ij} [z_i \ne z_j] \quad\text{subject to}\quad
        \sum_i w_i \big(E_i(z_i) - \min_{z'} E_i(z')\big) \le B,

    by bisection on the multiplier :math:`\lambda` of :math:`\sum_i w_i E_i(z_i) + \lambda \sum_{(i,j)} c_{ij} [z_i \ne
    z_j]`, each of these minimised by graph cuts. The budget that the best multiplier leaves is spent on connected sets
    of units that the next multiplier would change. For soft latents (finite inverse temperature) both terms are
    expectations, minimised by mean field: the posterior under :math:`\lambda` times the votes of the neighbours. Every
    bound is valid, so the objective of the fit is unchanged.

    Parameters
    ----------
    edges : array-like of shape (n_edges, 2), or sparse matrix of shape (n_units, n_units)
        Pairs of units, numbered from 0 in the order of the rows of X, or a symmetric adjacency matrix, whose entries
        are weights and whose diagonal is ignored: ``sklearn.feature_extraction.image.grid_to_graph(rows, columns)``
        is that of an image. An edge that is given twice counts twice.
    weights : array-like of shape (n_edges,), optional
        Nonnegative weights :math:`c_{ij}` of pairs, 1 by default.
    n_units : int, optional
        Number of units of the graph, to check the number of rows of data. An adjacency matrix has it.
    method : {"expansion", "icm"}, default="expansion"
        "expansion" moves sets of units (alpha-expansion), "icm" one unit at a time (iterated conditional modes), which
        is several times faster, and as good if few units change.

    Attributes
    ----------
    edges : ndarray of shape (n_edges, 2)
        Each pair once, smaller number first, in ascending order.
    weights : ndarray of shape (n_edges,)
        Their weights.

    Raises
    ------
    ValueError, TypeError
        If edges are not pairs of two different units, weights are negative, not finite or too few, or a matrix is not
        symmetric.

    Notes
    -----
    All energies, one number per unit and state, are held in memory. Equal rows are one unit
    with their summed weight, which has the edges of all of them.

    References
    ----------
    .. [1] S. N. Parizi, K. He, S. Sclaroff, P. Felzenszwalb, "Generalized Majorization-Minimization", equation 13.
    .. [2] Y. Boykov, O. Veksler, R. Zabih, "Fast approximate energy minimization via graph cuts", IEEE Transactions on
       Pattern Analysis and Machine Intelligence, 2001.

    Examples
    --------
    A chain of units; the third one is nearly undecided.

    >>> import majorant as mj
    >>> chain = mj.Coherence([[0, 1], [1, 2], [2, 3]])
    >>> energies = [[0, 1], [0, 1], [0.5, 0.4], [0, 1]]
    >>> chain.label(energies, budget=0.0)
    array([0, 0, 1, 0], dtype=int32)
    >>> chain.label(energies, budget=0.2)
    array([0, 0, 0, 0], dtype=int32)
    """

    def __init__(
        self,
        edges: Any,
        weights: ArrayLike | None = None,
        *,
        n_units: int | None = None,
        method: Method = "expansion",
    ) -> None:
        check_choice("method", method, ["expansion", "icm"])
        if sparse.issparse(edges):
            if weights is not None:
                raise ValueError("an adjacency matrix brings its own weights: leave weights out")
            pairs, values = _from_matrix(edges)
            if n_units is not None and check_integer("n_units", n_units, low=0) != edges.shape[0]:
                raise ValueError(f"n_units={n_units!r}, but the adjacency matrix is of {edges.shape[0]} units")
            n_units = int(edges.shape[0])
        else:
            pairs = pairs_of_units(edges, "edges")
            values = _weights(weights, len(pairs))
        n_units = None if n_units is None else check_integer("n_units", n_units, low=0)
        loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
        if len(loops):
            raise ValueError(f"edges link unit {pairs[loops[0], 0]} with itself, which says nothing: drop this pair")
        self.edges, self.weights = _merged(pairs, values)
        self.n_units = n_units
        self.method: Method = method
        self._check_units(n_units)
        self._graph: PottsGraph | None = None

    def __repr__(self) -> str:
        method = "" if self.method == "expansion" else f", method={self.method!r}"
        return f"Coherence({len(self.edges)} edges{method})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Coherence)
            and (self.n_units, self.method) == (other.n_units, other.method)
            and np.array_equal(self.edges, other.edges)
            and np.array_equal(self.weights, other.weights)
        )

    def __hash__(self) -> int:
        return hash((self.edges.tobytes(), self.weights.tobytes(), self.n_units, self.method))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_graph": None}

    def label(
        self,
        energies: ArrayLike,
        budget: float,
        *,
        beta: float = np.inf,
        sample_weight: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Return the most coherent latent values whose excess over the best ones is at most `budget`.

        Parameters
        ----------
        energies : array-like of shape (n_units, n_states)
            Infinite where a state is absent.
        budget : float
            Budget in units of the energies, for all units together.
        beta : float, default=inf
            Inverse temperature: infinity for hard labels.
        sample_weight : array-like of shape (n_units,), optional
            Weights of the units.

        Returns
        -------
        ndarray of shape (n_units,) of int32, or (n_units, n_states) if `beta` is finite

        Raises
        ------
        ValueError, TypeError
            If energies are not a table of numbers, their number of rows does not match the edges, or another argument
            is out of range.
        """
        check_real("budget", budget, low=0.0)
        check_positive("beta", beta)
        table = _numbers(energies, "energies")
        if table.ndim != 2 or not table.size:
            raise ValueError(f"energies must be a table, shape (n_units, n_states); got shape {table.shape}")
        if not np.isfinite(table.min(axis=1)).all():  # also false for NaN
            raise ValueError(
                "energies must be numbers, at least one of each row finite; infinite where a state is absent"
            )
        share = check_sample_weight(sample_weight, len(table))
        share = np.ones(len(table)) if share is None else share
        return self.choose(View(Block(0, (table,), share), table, *tightest(table, beta), beta, 0, 0), budget)

    def choose(self, view: View, budget: float) -> Latent:
        """Return the most coherent latent values of all units within a budget; see `label`."""
        n = len(view.energies)
        self._check_units(n)
        graph = self._graph
        if graph is None or graph.n_units != n:
            share = self.weights / self.weights.max(initial=0.0)
            kept = share >= LIGHTEST
            graph = self._graph = PottsGraph(n, self.edges[kept], share[kept])
        problem = _Problem(graph, view)
        return problem.most_coherent_within(budget, self.method).q

    def renumbered(self, positions: NDArray[np.intp]) -> Coherence:
        """Return the edges with unit `i` renumbered as ``positions[i]``.

        Edges of removed units (-1), and between units that are now one, are dropped.
        """
        self._check_units(len(positions))
        pairs = positions[self.edges]
        kept = (pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])
        return Coherence(
            pairs[kept], self.weights[kept], n_units=int(positions.max(initial=-1)) + 1, method=self.method
        )

    def repeated(self, n_groups: int, size: int) -> Coherence:
        """Return the edges repeated in each group of units; edges beyond the first group are unchanged."""
        if self.edges.max(initial=0) >= size or self.n_units not in (None, size):
            return self
        edges = in_groups(self.edges, n_groups, size)
        return Coherence(edges, np.tile(self.weights, n_groups), n_units=n_groups * size, method=self.method)

    def _check_units(self, n: int | None) -> None:
        """Raise ValueError for data with another number of units."""
        if n is None:
            return
        if self.n_units not in (None, n):
            raise ValueError(f"the edges are those of {self.n_units} units, but there are {n} (rows of X)")
        if len(self.edges) and self.edges.max() >= n:
            raise ValueError(
                f"an edge names unit {self.edges.max()}, but there are {n} units (rows of X), numbered from 0"
            )


@dataclass(frozen=True)
class _Try:
    """Latent values of all units: labels `z`, and `q`, which is `z` unless latents are soft."""

    z: NDArray[np.int32]
    q: Latent
    excess: float
    potts: float
    multiplier: float


@dataclass(frozen=True)
class _Problem:
    """The problem of coherent latent values within a budget."""

    graph: PottsGraph
    view: View

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        weights = self.view.weights
        return np.ones(self.graph.n_units) if weights is None else weights

    @cached_property
    def regrets(self) -> NDArray[np.float64]:
        """Excess of each state's energy over the best one, for each unit."""
        energies = self.view.energies
        regrets = energies - energies.min(axis=1, keepdims=True)
        np.multiply(self.shares[:, None], regrets, where=np.isfinite(regrets), out=regrets)
        costs: NDArray[np.float64] = regrets
        return costs

    def _try(self, z: NDArray[np.int32], q: Latent, multiplier: float = 0.0) -> _Try:
        return _Try(z, q, self.view.excess(q), self.graph.energy(q), multiplier)

    def tightest(self) -> _Try:
        return self._try(self.view.best, self.view.tight)

    def most_coherent(self) -> _Try:
        """Return labels with one state for every connected set of units, if any state is available to all of them."""
        n_states = self.regrets.shape[1]
        n_sets, sets = self.graph.components
        totals = np.zeros((n_sets, n_states))
        np.add.at(totals, sets, self.regrets)
        z = totals.argmin(axis=1).astype(np.int32)[sets]
        if not np.isfinite(totals.min(axis=1)).all():
            finite = np.where(np.isfinite(self.regrets), self.regrets, 0.0)
            strength = 2 * finite.max(axis=1).sum() / self.graph.weights.min()
            z = self.graph.minimise(self.regrets, strength, self.view.best)
        if np.isinf(self.view.beta):
            return self._try(z, z)
        linked = np.unique(self.graph.edges)
        q = self.view.tight.copy()
        q[linked] = np.eye(n_states)[z[linked]]
        return self._try(z, q)

    def most_coherent_within(self, budget: float, method: Method) -> _Try:
        """Return the best labels found within a budget.

        Each multiplier is the one for which two labelings on both sides of the budget are equally good: either a better
        one between them is found, or there is none. If minima are exact, the Potts energy within the budget is at least
        ``P + (excess - budget) / multiplier`` of each of them.
        """
        low, high = self.tightest(), self.most_coherent()
        if high.excess <= budget:
            return high
        if low.potts <= high.potts:
            return low
        chord = _exchange(low, high)
        if not np.isinf(self.view.beta):
            return self.soft_within(budget, low, chord)
        best, least, multiplier = low, 0.0, chord
        if method == "expansion":  # start from the solution of the faster method
            best = self.most_coherent_within(budget, "icm")
            multiplier = best.multiplier or chord
        for _ in range(MAX_TRIES):
            z = self.graph.minimise(self.regrets, multiplier, best.z, method)
            found = self._try(z, z, multiplier)
            if low.excess < found.excess < high.excess and high.potts < found.potts < low.potts:
                low, high = (found, high) if found.excess <= budget else (low, found)
            elif multiplier == chord:
                break
            multiplier = chord = _exchange(low, high)
            least = max(least, found.potts + (found.excess - budget) / found.multiplier)
            best = min(best, low, self.filled(low, high, budget), key=attrgetter("potts"))
            if best.potts <= (1 + CLOSE) * least:
                break
        return best

    def soft_within(self, budget: float, tight: _Try, multiplier: float) -> _Try:
        """Return the best soft latents within a budget, by mean field; the excess grows as the multiplier squared."""
        best = tight
        pull = 1 / np.maximum(self.shares, 1e-12 * self.shares.max())[:, None]
        for _ in range(MAX_TRIES):
            q = self.view.tight
            for _ in range(ROUNDS):
                votes = self.graph.votes(q, q.shape[1])
                q = tightest(self.view.energies - multiplier * pull * votes, self.view.beta)[1]
            found = self._try(self.view.best, q, multiplier)
            if found.excess <= budget:
                gain = best.potts - found.potts
                best = found if gain > 0 else best
                if gain <= CLOSE * (tight.potts - found.potts) or found.excess >= (1 - CLOSE) * budget:
                    break
            multiplier *= np.sqrt(np.clip((1 - CLOSE / 2) * budget / max(found.excess, 1e-300), 0.01, 100.0))
        return best

    def filled(self, low: _Try, high: _Try, budget: float) -> _Try:
        """Spend the rest of the budget of `low` on sets of units with other labels in `high`, best first."""
        sets, n_sets = self.graph.differences(low.z, high.z)
        rows = np.flatnonzero(sets >= 0)
        costs = np.bincount(sets[rows], self.regrets[rows, high.z[rows]] - self.regrets[rows, low.z[rows]], n_sets)
        gains = -self.graph.energy_changes(low.z, high.z, sets, n_sets)
        worthy = np.flatnonzero(gains > 0)
        taken, room = np.zeros(n_sets + 1, dtype=bool), budget - low.excess
        for k in worthy[np.argsort(costs[worthy] / gains[worthy], kind="stable")]:
            if costs[k] <= room:
                taken[k] = True
                room -= costs[k]
        z = np.where(taken[sets], high.z, low.z)
        filled = self._try(z, z, _exchange(low, high))
        return filled if filled.excess <= budget else low


def _exchange(low: _Try, high: _Try) -> float:
    """Return the multiplier for which two labelings are equally good."""
    return (high.excess - low.excess) / (low.potts - high.potts)


def _weights(weights: ArrayLike | None, n: int) -> NDArray[np.float64]:
    if weights is None:
        return np.ones(n)
    values = _numbers(weights, "weights of edges")
    if values.shape != (n,):
        raise ValueError(f"weights must be one number per edge, shape ({n},); got shape {values.shape}")
    return _checked(values)


def _numbers(values: Any, name: str) -> NDArray[np.float64]:
    """Return `values` as an array of float64."""
    if sparse.issparse(values):
        raise TypeError(f"{name} must be a dense array; got a sparse matrix: call its toarray()")
    try:
        raw = np.asarray(values)
        if raw.dtype.kind not in "biufO":
            raise TypeError(f"got an array of {raw.dtype}")
        return raw.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers: {error}") from error


def _checked(values: NDArray[np.float64]) -> NDArray[np.float64]:
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise ValueError(f"weights of edges must be finite and not negative; got {values[wrong[0]]:g}")
    return values


def _from_matrix(matrix: Any) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the pairs of a symmetric adjacency matrix and their weights."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"an adjacency matrix must be square, with one row per unit; got shape {matrix.shape}")
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"an adjacency matrix must hold real numbers; got {matrix.dtype}")
    entries = sparse.csr_array(matrix).astype(np.float64)
    upper = sparse.triu(entries, k=1).tocoo()
    lower = sparse.tril(entries, k=-1).tocoo()
    _checked(lower.data)
    values = _checked(upper.data)
    if (upper - lower.T).count_nonzero():
        raise ValueError("an adjacency matrix must be symmetric: add its transpose, or give pairs of units")
    return np.column_stack([upper.row, upper.col]).astype(np.intp), values


def _merged(pairs: NDArray[np.intp], values: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Merge equal pairs, in order, summing their weights, and drop those without weight."""
    unique, which = np.unique(np.sort(pairs, axis=1), axis=0, return_inverse=True)
    total = np.bincount(which.ravel(), values, len(unique)).astype(np.float64)
    if not np.isfinite(total).all():
        raise ValueError(f"weights of edges are too large to be summed: the largest is {values.max():g}; scale them")
    return unique[total > 0], total[total > 0]
