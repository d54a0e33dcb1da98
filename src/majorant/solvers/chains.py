"""Linear chains of hidden states: sums, maxima and draws over all paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from majorant import _kernels
from majorant._numbers import briefly
from majorant.data.chunks import effective_threads

GROUP = 1 << 15
"""Approximate number of positions per call of a kernel; the groups do not depend on the number of threads."""


@dataclass(frozen=True)
class ChainSums:
    """Sums over all paths of every chain.

    Attributes
    ----------
    log_partition : ndarray of shape (n_chains,)
        Log of the sum over paths of the exponential of their score.
    entropy : ndarray of shape (n_chains,)
        Entropy of the paths of each chain (natural logarithm).
    marginals : ndarray of shape (n_positions, n_states)
        Probability of each state at each position.
    steps : ndarray of shape (n_tables, n_states, n_states)
        Expected number of steps from one state to another, by table of transitions, weighted over chains.
    pairs : ndarray of shape (n_positions, n_states, n_states), or None
        Where asked for: the joint probability of the states before and at each position; zeros at first positions.
    """

    log_partition: NDArray[np.float64]
    entropy: NDArray[np.float64]
    marginals: NDArray[np.float64]
    steps: NDArray[np.float64]
    pairs: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class _Group:
    """A group of chains in the form that kernels take, and their positions among all."""

    chains: slice
    positions: slice
    tables: slice
    scores: tuple[Any, Any, Any, Any]


class Chains:
    r"""Chains of positions, each in one of a few states, by the scores of their paths.

    .. math:: \text{score}(s) = \sum_t u_t(s_t) + \sum_{t>1} A_t(s_{t-1}, s_t), \qquad p(s) \propto e^{\text{score}(s)}

    Computations are in double precision and in logarithms, so that neither long chains nor large scores overflow.
    Initial and final scores are added to the unary scores of the first and last positions. The gradient of the
    log-partition function in unary scores is `marginals`, that in transitions is `steps`. Chains are stored one after
    the other, and may have different transitions (`table`).

    Parameters
    ----------
    unary : array-like of shape (n_positions, n_states)
        Scores of the states at every position, the chains one after the other. Minus infinity forbids a state.
    transitions : array-like of shape (n_states, n_states) or (n_tables, n_states, n_states)
        Scores of a step from one state (rows) to the next (columns). Minus infinity forbids it.
    offsets : array-like of shape (n_chains + 1,), optional
        Chain c has the positions ``offsets[c]`` to ``offsets[c + 1] - 1``; by default there is one chain. A chain may
        be empty: it has one path, of score 0.
    table : array-like of shape (n_positions,), optional
        Table of transitions for the step into each position (ignored for first positions); by default 0 for all.

    Raises
    ------
    ValueError
        If shapes do not fit, or a score is NaN or plus infinity.

    References
    ----------
    .. [1] L. R. Rabiner, "A tutorial on hidden Markov models", Proceedings of the IEEE 77, 1989.

    Examples
    --------
    Two states that like to stay, over four positions.

    >>> import numpy as np
    >>> from majorant.solvers.chains import Chains
    >>> chains = Chains([[1.0, 0.0], [0.0, 0.5], [1.0, 0.0], [0.0, 3.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> path, score = chains.best()
    >>> path, score
    (array([0, 0, 0, 1], dtype=int32), array([7.]))
    >>> chains.sums().marginals.round(2)
    array([[0.69, 0.31],
           [0.5 , 0.5 ],
           [0.52, 0.48],
           [0.07, 0.93]])
    """

    def __init__(
        self,
        unary: ArrayLike,
        transitions: ArrayLike,
        offsets: ArrayLike | None = None,
        table: ArrayLike | None = None,
    ) -> None:
        self.unary = _scores("unary", unary, 2, "(n_positions, n_states)")
        steps = np.asarray(transitions)
        self.transitions = _scores(
            "transitions", steps[None] if steps.ndim == 2 else steps, 3, "(n_states, n_states), maybe several of them"
        )
        n, n_states = self.unary.shape
        if n_states == 0 or self.transitions.shape[1:] != (n_states, n_states) or len(self.transitions) == 0:
            raise ValueError(
                f"transitions must have shape ({n_states}, {n_states}), as unary has {n_states} columns, or be several "
                f"of these; got shape {steps.shape}"
            )
        self.offsets = np.array([0, n]) if offsets is None else _integers("offsets", offsets, np.int64)
        if len(self.offsets) == 0 or self.offsets[0] != 0 or self.offsets[-1] != n or (np.diff(self.offsets) < 0).any():
            raise ValueError(f"offsets must ascend from 0 to the number of positions, {n}; got {briefly(self.offsets)}")
        self.table = None if table is None else _integers("table", table, np.int32)
        if self.table is not None and self.table.shape != (n,):
            raise ValueError(f"table must have one entry per position, shape ({n},); got shape {self.table.shape}")
        if self.table is not None and n and not 0 <= self.table.min() <= self.table.max() < len(self.transitions):
            raise ValueError(
                f"table names tables {self.table.min()} to {self.table.max()}, "
                f"but transitions has {len(self.transitions)}"
            )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_states(self) -> int:
        return int(self.unary.shape[1])

    def __repr__(self) -> str:
        return f"Chains({len(self)} chains, {len(self.unary)} positions, {self.n_states} states)"

    def augmented(self, costs: ArrayLike) -> Self:
        """Return the chains with `costs`, shape (n_positions, n_states), added to the unary scores.

        With the loss of every state at every position, `best` is loss-augmented inference.
        """
        added = _scores("costs", costs, 2, "(n_positions, n_states)")
        if added.shape != self.unary.shape:
            raise ValueError(f"costs must have the shape of unary, {self.unary.shape}; got {added.shape}")
        return type(self)(self.unary + added, self.transitions, self.offsets, self.table)

    def scores(self, path: ArrayLike) -> NDArray[np.float64]:
        """Return the score of a path of every chain, ``path`` of shape (n_positions,)."""
        states = _integers("path", path, np.intp)
        if states.shape != (len(self.unary),) or (
            len(states) and not 0 <= states.min() <= states.max() < self.n_states
        ):
            raise ValueError(f"path must name one of {self.n_states} states at each of {len(self.unary)} positions")
        terms = self.unary[np.arange(len(states)), states]
        inner = np.setdiff1d(np.arange(len(states)), self.offsets)
        tables = np.zeros(len(inner), dtype=np.intp) if self.table is None else self.table[inner]
        terms[inner] += self.transitions[tables, states[inner - 1], states[inner]]
        return np.array([terms[a:b].sum() for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)])

    def best(self, *, n_jobs: int | None = None) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the path of largest score of every chain (Viterbi): its states, shape (n_positions,), and its score.

        Of paths with equal computed scores, the first in lexicographic order is returned.

        Raises
        ------
        ValueError
            If a chain has no path of finite score.
        """
        path, score = np.empty(len(self.unary), dtype=np.int32), np.empty(len(self))
        self._each(lambda g: _kernels.chain_best(*g.scores, path[g.positions], score[g.chains]), n_jobs)
        _refuse_impossible(score)
        return path, score

    def log_partition(self, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Return the log of the sum over paths of the exponential of their score, one number per chain.

        Raises
        ------
        ValueError
            If a chain has no path of finite score.
        """
        out = np.empty(len(self))
        self._each(lambda g: _kernels.chain_sums(*g.scores, None, out[g.chains]), n_jobs)
        _refuse_impossible(out)
        return out

    def sums(
        self, weights: NDArray[np.float64] | None = None, *, pairs: bool = False, n_jobs: int | None = None
    ) -> ChainSums:
        """Return the log-partition function, entropy, marginals and expected steps (forward-backward).

        Parameters
        ----------
        weights : ndarray of shape (n_chains,), optional
            Weight of each chain in ``steps``.
        pairs : bool, default=False
            Whether to compute the joint probabilities of neighbouring states at each position.
        n_jobs : int, optional
            Number of threads; the result does not depend on it.

        Raises
        ------
        ValueError
            If a chain has no path of finite score.
        """
        shape = (*self.unary.shape, self.n_states)
        out = ChainSums(
            np.empty(len(self)),
            np.empty(len(self)),
            np.empty(self.unary.shape),
            np.zeros(self.transitions.shape),
            np.empty(shape) if pairs else None,
        )
        w = None if weights is None else np.ascontiguousarray(weights, dtype=np.float64)

        def visit(g: _Group) -> tuple[slice, NDArray[np.float64]]:
            steps = np.zeros_like(self.transitions[g.tables])
            _kernels.chain_sums(
                *g.scores,
                None if w is None else w[g.chains],
                out.log_partition[g.chains],
                out.entropy[g.chains],
                out.marginals[g.positions],
                steps,
                None if out.pairs is None else out.pairs[g.positions],
            )
            return g.tables, steps

        for tables, steps in self._each(visit, n_jobs):
            out.steps[tables] += steps
        _refuse_impossible(out.log_partition)
        return out

    def _groups(self) -> Iterator[_Group]:
        """Yield groups of consecutive chains for calls of a kernel, with the tables that they use."""
        begin, n = 0, len(self)
        while begin < n:
            first = int(self.offsets[begin])
            end = max(begin + 1, int(np.searchsorted(self.offsets, first + GROUP, side="right")) - 1)
            end = min(end, n)
            at, low, high = slice(first, int(self.offsets[end])), 0, len(self.transitions)
            table = None if self.table is None else self.table[at]
            if table is not None and len(table):
                low, high = int(table.min()), int(table.max()) + 1
                table = table - np.int32(low)
            offsets = self.offsets[begin : end + 1] - first
            scores = (self.unary[at], self.transitions[low:high], offsets, table)
            yield _Group(slice(begin, end), at, slice(low, high), scores)
            begin = end

    def _each(self, f: Callable[[_Group], Any], n_jobs: int | None) -> list[Any]:
        """Apply `f` to each group of chains; return the results in order."""
        threads = effective_threads(n_jobs)
        if threads == 1 or len(self.unary) <= GROUP:
            return [f(group) for group in self._groups()]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(f, self._groups()))

    def sample(self, uniforms: NDArray[np.float64], *, n_jobs: int | None = None) -> NDArray[np.int32]:
        """Draw paths with probabilities proportional to the exponential of their scores, by inverse CDF.

        Parameters
        ----------
        uniforms : ndarray of shape (n_positions,) or (n_draws, n_positions)
            Numbers in [0, 1), one for each state that is drawn.

        Returns
        -------
        ndarray of the shape of `uniforms`

        Raises
        ------
        ValueError
            If a chain has no path of finite score.
        """
        u = np.asarray(uniforms, dtype=np.float64)
        if u.ndim not in (1, 2) or u.shape[-1] != len(self.unary) or not ((u >= 0) & (u < 1)).all():
            raise ValueError(
                f"uniforms must be numbers in [0, 1), shape ({len(self.unary)},) or (n_draws, {len(self.unary)}); "
                f"got shape {u.shape}"
            )
        self.log_partition(n_jobs=n_jobs)
        rows = np.atleast_2d(u)
        path = np.empty(rows.shape, dtype=np.int32)

        def visit(g: _Group) -> None:
            drawn = np.empty((len(rows), g.positions.stop - g.positions.start), dtype=np.int32)
            _kernels.chain_draw(*g.scores, np.ascontiguousarray(rows[:, g.positions]), drawn)
            path[:, g.positions] = drawn

        self._each(visit, n_jobs)
        return path.reshape(u.shape)


def _scores(name: str, values: Any, ndim: int, shape: str) -> NDArray[np.float64]:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have shape {shape}; got shape {array.shape}")
    if np.isnan(array).any() or np.isposinf(array).any():
        raise ValueError(
            f"{name} holds NaN or plus infinity: scores are finite, or minus infinity for what is forbidden"
        )
    return array


def _integers(name: str, values: Any, dtype: Any) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or not (array.dtype.kind in "iu" or array.size == 0):
        raise ValueError(f"{name} must be a row of integers; got {briefly(values)}")
    return np.ascontiguousarray(array, dtype=dtype)


def _refuse_impossible(score: NDArray[np.float64]) -> None:
    if not np.isfinite(score).all():
        c = int(np.flatnonzero(~np.isfinite(score))[0])
        raise ValueError(f"chain {c} has no path of finite score: its scores forbid every path, or their sums overflow")
