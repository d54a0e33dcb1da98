"""Quadratic programs over products of simplices, by a few nonnegative columns: projected gradient and roundings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from majorant._validation import check_choice, check_integer, check_real
from majorant.solvers.equal_simplices import project_equal_simplices

DESCENT = 1e-4
"""Share of the linear decrease that a step must reach (Armijo's rule)."""
GROWTH = 4.0
MAX_HALVINGS = 60

Coupling = Literal["joint", "independent"]
RELAXATIONS: dict[str, Coupling] = {"relaxation": "joint", "independent-relaxations": "independent"}
"""Kinds of starts by the program, and how columns hang together in each."""

Operator = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class SimplexProgramResult:
    """Result of the minimisation.

    Attributes
    ----------
    columns : ndarray of shape (n_columns, n_rows, n_classes)
        Each is a feasible point, with rows of sum one; a column that vanished is zero.
    values : ndarray of shape (n_columns,)
        The quadratic form at each; infinite where the column vanished.
    path : ndarray of shape (n_iter + 1, n_costs)
        The cost of every iterate: one number per column if they are independent, a single one if they are joint.
    """

    columns: NDArray[np.float64]
    values: NDArray[np.float64]
    path: NDArray[np.float64]

    @property
    def n_iter(self) -> int:
        return len(self.path) - 1

    def best(self) -> NDArray[np.float64]:
        """Return the column of least value ("min" rounding)."""
        return np.asarray(self.columns[int(np.argmin(self.values))])

    def average(self) -> NDArray[np.float64]:
        """Return the columns summed, rows of sum one ("avg" rounding)."""
        total = self.columns.sum(axis=0)
        return np.asarray(total / total.sum(axis=1, keepdims=True))


def low_rank_simplex_program(
    apply: Operator,
    start: NDArray[np.float64],
    *,
    shares: NDArray[np.float64] | None = None,
    coupling: Coupling = "joint",
    max_iter: int = 500,
    tol: float = 1e-8,
) -> SimplexProgramResult:
    r"""Minimise a quadratic form over soft assignments by nonnegative columns.

    The matrix T = V V' of R columns is feasible for the relaxation of :math:`\min_\xi \sum_k \langle \xi_k, Q\xi_k
    \rangle_\omega` over assignments (rows on the simplex) when all rows of a column, N x K, have one sum :math:`a_r`;
    it is then a convex combination of feasible points of rank one. The cost is

    .. math::
        \frac{\sum_r \langle V_r, Q V_r \rangle}{\sum_r a_r^2} \quad\text{(joint)} \qquad\text{or}\qquad
        \sum_r \frac{\langle V_r, Q V_r \rangle}{a_r^2} \quad\text{(independent)}.

    Joint columns compete, and usually only one survives; independent ones are R descents side by side. The cost never
    rises: projected gradient with Armijo's rule along the arc of projections, the first step of a search four times the
    last one that was accepted, and columns rescaled after every step, which does not change the cost.

    Parameters
    ----------
    apply : callable
        ``Q v`` for an array of columns (n_rows, n_columns), such as ``QuadraticApproximation.apply``; Q must be
        self-adjoint in the inner product weighted by `shares`.
    start : ndarray of shape (n_columns, n_rows, n_classes)
        Nonnegative; all rows of a column have the same positive sum (`random_assignments`).
    shares : ndarray of shape (n_rows,), optional
        Positive, of sum one; by default equal ones.
    coupling : {"joint", "independent"}, default="joint"
        The program of [1]_, or one program a column, which it calls independent optimisations.
    max_iter : int, default=500
    tol : float, default=1e-8
        Stop when the relative decrease of the cost is below this.

    Returns
    -------
    SimplexProgramResult

    Raises
    ------
    ValueError, TypeError
        If `start` is not such an array or a parameter is out of range.

    References
    ----------
    .. [1] A. Joulin, F. Bach, J. Ponce, "Efficient optimization for discriminative latent class models",
       NIPS 2010, section 4.

    Examples
    --------
    Two groups of two rows, each pair together:

    >>> gram = np.kron(np.eye(2), np.ones((2, 2)))
    >>> start = random_assignments(3, 4, 2, np.random.default_rng(0))
    >>> found = low_rank_simplex_program(lambda v: -gram @ v, start)
    >>> found.best().round(2).tolist() in ([[1, 0], [1, 0], [0, 1], [0, 1]], [[0, 1], [0, 1], [1, 0], [1, 0]])
    True
    """
    check_choice("coupling", coupling, ["joint", "independent"])
    check_integer("max_iter", max_iter, low=1)
    check_real("tol", tol, low=0.0)
    v, omega = _checked(start, shares)
    program = _Program(apply, omega, coupling == "joint")
    v, _ = program.rescaled(v, v[:, 0].sum(axis=1))
    cost, gradient = program.cost(v), program.gradient(v)
    largest = np.maximum(np.abs(gradient).max(axis=(1, 2)), 1e-300)
    step = program.per_cost(0.1 * np.abs(v).max(axis=(1, 2)) / largest, np.minimum)
    path = [cost]
    moving = np.ones(len(cost), dtype=bool)
    for _ in range(max_iter):
        step = np.where(moving, GROWTH * step, step)
        new, sums, new_cost, step, accepted = program.search(v, cost, gradient, step, moving)
        fell = accepted & (cost - new_cost > tol * np.maximum(np.abs(cost), 1e-15))
        v, scale = program.rescaled(new, sums)
        step, cost = step / scale**2, np.where(accepted, new_cost, cost)
        path.append(cost)
        moving &= fell
        if not moving.any():
            break
        gradient = program.gradient(v)
    return program.result(v, np.array(path))


def random_assignments(n_columns: int, n_rows: int, n_classes: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Draw rows uniformly from the simplex, shape (n_columns, n_rows, n_classes)."""
    e = -np.log1p(-random.random((n_columns, n_rows, n_classes)))
    return np.asarray(e / e.sum(axis=2, keepdims=True))


@dataclass(frozen=True)
class _Program:
    """Costs, one for each column or a single joint one, and their gradients in the weighted inner product."""

    apply: Operator
    shares: NDArray[np.float64]
    joint: bool

    def per_cost(self, of_columns: NDArray[np.float64], join: np.ufunc = np.add) -> NDArray[np.float64]:
        """Reduce numbers of columns to numbers of costs: unchanged if independent, joined by `join` if joint."""
        return np.atleast_1d(join.reduce(of_columns)) if self.joint else of_columns

    def per_column(self, of_costs: NDArray[np.float64], n: int) -> NDArray[np.float64]:
        return np.broadcast_to(of_costs, n)[:, None, None]

    def image(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        r, n, k = v.shape
        flat = np.ascontiguousarray(v.transpose(1, 0, 2)).reshape(n, r * k)
        return np.ascontiguousarray(self.apply(flat).reshape(n, r, k).transpose(1, 0, 2))

    def inner(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.einsum("n,rnk,rnk->r", self.shares, a, b))

    def sums(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.einsum("n,rnk->r", self.shares, v))

    def cost(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        form, sums = self.per_cost(self.inner(v, self.image(v))), self.per_cost(self.sums(v) ** 2)
        return np.divide(form, sums, out=np.full_like(form, np.inf), where=sums > 0)

    def gradient(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        image = self.image(v)
        sums, size = self.sums(v), self.per_cost(self.sums(v) ** 2)
        cost = self.per_cost(self.inner(v, image)) / size
        return np.asarray(2 * (image - (cost * sums)[:, None, None]) / self.per_column(size, len(v)))

    def search(
        self,
        v: NDArray[np.float64],
        cost: NDArray[np.float64],
        gradient: NDArray[np.float64],
        step: NDArray[np.float64],
        moving: NDArray[np.bool_],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Halve the steps of moving columns until each is accepted or given up."""
        new, sums, new_cost = v.copy(), self.sums(v), cost.copy()
        waiting, accepted = moving.copy(), np.zeros(len(cost), dtype=bool)
        for _ in range(MAX_HALVINGS):
            tried, tried_sums = project_equal_simplices(v - self.per_column(step, len(v)) * gradient, self.shares)
            decrease = self.per_cost(self.inner(gradient, v - tried))
            tried_cost = self.cost(tried)
            good = waiting & (decrease >= 0) & (cost - tried_cost >= DESCENT * decrease)
            of_columns = np.broadcast_to(good, len(v))
            new[of_columns], sums[of_columns] = tried[of_columns], tried_sums[of_columns]
            new_cost[good] = tried_cost[good]
            accepted |= good
            waiting &= ~good
            if not waiting.any():
                break
            step = np.where(waiting, step / 2, step)
        return new, sums, new_cost, step, accepted

    def rescaled(
        self, v: NDArray[np.float64], sums: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scale columns to sum one (joint ones to sum of squares one); also return the divisors."""
        scale = np.sqrt(self.per_cost(sums**2))
        return v / self.per_column(scale, len(v)), scale

    def result(self, v: NDArray[np.float64], path: NDArray[np.float64]) -> SimplexProgramResult:
        sums = self.sums(v)
        alive = sums > 1e-9 * sums.max()
        columns = np.where(alive[:, None, None], v / np.where(alive, sums, 1.0)[:, None, None], 0.0)
        values = np.where(alive, self.inner(columns, self.image(columns)), np.inf)
        return SimplexProgramResult(columns, values, path)


def _checked(
    start: NDArray[np.float64], shares: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    v = np.array(start, dtype=np.float64)
    if v.ndim != 3 or 0 in v.shape:
        raise ValueError(f"start must have the shape (n_columns, n_rows, n_classes); got {v.shape}")
    if not np.isfinite(v).all() or (v < 0).any():
        raise ValueError("start must hold finite numbers of at least 0")
    sums = v.sum(axis=2)
    if (sums <= 0).any() or np.ptp(sums, axis=1).max() > 1e-6 * sums.max():
        raise ValueError("every column of start must have one row sum, above zero: divide its rows by their sums")
    n = v.shape[1]
    omega = np.full(n, 1.0 / n) if shares is None else np.asarray(shares, dtype=np.float64)
    if omega.shape != (n,) or not (omega > 0).all() or abs(float(omega.sum()) - 1) > 1e-6:
        raise ValueError(f"shares must be {n} positive numbers of sum one")
    return v, omega
