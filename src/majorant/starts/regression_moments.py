"""Moments of a regression up to the third power of the response, in one pass over the data.

Let `phi_p` be the products of p features times their multiplicities in the p-th tensor power of x, so that
``phi_p(x) . collapse(T) = <T, x ⊗ ... ⊗ x>``. Moment methods for mixtures of regressions need only the Gram matrices of
`phi_p`, and the means of `phi_p` times ``y**p``, times 1 and times x, for p = 1, 2, 3. The Gram matrices consist of
monomials of x of degree 2, 4 and 6, of which only the distinct ones are summed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.solvers.nuclear_norm import GramRoots, gram_roots
from majorant.solvers.symmetric_tensors import index_tuples, multiplicities

Array = NDArray[np.float64]

ORDERS = (1, 2, 3)

TILE_BYTES = 1 << 21
"""Approximate size in bytes of the products of three features of a tile of rows."""

IDENTIFIED = 1e-7
"""Smallest share of a Gram matrix's largest eigenvalue at which a direction counts as identified."""


@dataclass(frozen=True)
class RegressionMoments:
    """Sums over the data for moment methods; they are additive over blocks of rows."""

    n_features: int  # number of columns of the design, including a constant
    has_constant: bool  # whether the last column is an added constant
    x: tuple[Array, Array, Array]  # sums of the distinct products of 2, 4 and 6 features
    xy: tuple[Array, Array, Array]  # sums of the distinct products of p features times ``y**p``, for p = 1, 2, 3
    y: Array  # (7,): sums of ``y**0`` (the weights) to ``y**6``

    def __add__(self, other: RegressionMoments) -> RegressionMoments:
        return RegressionMoments(
            self.n_features,
            self.has_constant,
            (self.x[0] + other.x[0], self.x[1] + other.x[1], self.x[2] + other.x[2]),
            (self.xy[0] + other.xy[0], self.xy[1] + other.xy[1], self.xy[2] + other.xy[2]),
            self.y + other.y,
        )

    @property
    def total_weight(self) -> float:
        """Sum of the rows' weights."""
        return float(self.y[0])

    @cached_property
    def response_moments(self) -> Array:
        """Means of ``y**0`` to ``y**6``."""
        return self.y / self.total_weight

    def gram(self, order: int) -> Array:
        """Return the mean of ``phi_p phi_p'``."""
        m = self.multiplicities(order)
        return np.asarray(self._x(2 * order)[_joined(self.n_features, order, order)] * np.outer(m, m))

    def target(self, order: int) -> Array:
        """Return the mean of ``phi_p y**p``."""
        return self.multiplicities(order) * self.xy[order - 1] / self.total_weight

    def of_squares(self) -> Array:
        """Return the mean of ``phi_2``, the factor of the noise variance in the target of second order."""
        return self.multiplicities(2) * self._x(2)

    def of_features(self) -> Array:
        """Return the mean of ``phi_3 x'``, shape (n_entries, n_features).

        Noise adds ``3 sigma**2`` times this matrix times the mean coefficients to the target of third order.
        """
        return np.asarray(self.multiplicities(3)[:, None] * self._x(4)[_joined(self.n_features, 3, 1)])

    def multiplicities(self, order: int) -> Array:
        """Return how often each product of features occurs in a tensor power of x."""
        return multiplicities(self.n_features, order)

    def roots(self, order: int) -> GramRoots:
        """Return square roots of the Gram matrix in the directions that are identified."""
        return self._roots[order - 1]

    @cached_property
    def _roots(self) -> tuple[GramRoots, ...]:
        return tuple(gram_roots(self.gram(p), IDENTIFIED) for p in ORDERS)

    def explained(self, order: int) -> Array:
        """Return the target of order p times the inverse root of the Gram matrix (squares: explained moments)."""
        return np.asarray(self.roots(order).inverse @ self.target(order))

    def unexplained(self, order: int) -> float:
        """Return the mean squared residual of ``y**p`` regressed on `phi_p`, at least slightly positive."""
        whole = float(self.response_moments[2 * order])
        return max(whole - float(np.sum(self.explained(order) ** 2)), 1e-10 * whole)

    @cached_property
    def identifiability(self) -> tuple[Identifiability, ...]:
        """Whether the data determine the moments of the coefficients, for each order."""
        return tuple(Identifiability.of(p, self.roots(p)) for p in ORDERS)

    def __str__(self) -> str:
        return "; ".join(str(i) for i in self.identifiability)

    def _x(self, degree: int) -> Array:
        return self.x[degree // 2 - 1] / self.total_weight


@dataclass(frozen=True)
class Identifiability:
    """Whether the data determine the p-th order moments of a mixture's coefficients."""

    order: int
    n_coefficients: int  # number of distinct entries of the moment tensor
    rank: int  # number of independent combinations of them that the data determine
    # largest over smallest eigenvalue of the identified directions, with products of features scaled to unit length
    condition: float

    @classmethod
    def of(cls, order: int, roots: GramRoots) -> Identifiability:
        """Build from the roots of one Gram matrix."""
        n, rank = len(roots.eigenvalues), roots.rank
        smallest = roots.eigenvalues[n - rank] if rank else np.nan
        return cls(order, n, rank, float(roots.eigenvalues[-1] / smallest))

    def __str__(self) -> str:
        name = {1: "first", 2: "second", 3: "third"}[self.order]
        return f"{name}-order moments: {self.rank} of {self.n_coefficients} coefficients identified"


def regression_moments(data: Chunks, *, constant: bool = False) -> RegressionMoments:
    r"""Compute the moments of x and y up to sixth order, in one pass and in double precision.

    Parameters
    ----------
    data : Chunks
        Two columns: x of shape (n, d) and y of shape (n,), float32 or float64, with or without weights, in memory or
        streamed. Centre and scale them first: sixth powers are summed, and products of features far from zero are
        nearly collinear.
    constant : bool, default=False
        Whether to append a column of ones to x, for models with an intercept. Products of fewer features are then among
        those of more.

    Examples
    --------
    >>> import numpy as np
    >>> from majorant import Chunks
    >>> from majorant.starts.regression_moments import regression_moments
    >>> t = np.random.default_rng(0).uniform(-1, 1, 1000)
    >>> x = np.column_stack([np.ones(1000), t, t**4, t**7])
    >>> moments = regression_moments(Chunks(x, x @ [1.0, 2.0, 0.0, -1.0]))
    >>> print(moments.identifiability[1])
    second-order moments: 9 of 10 coefficients identified
    """

    def visit(block: Block) -> RegressionMoments:
        x, y = block.columns[:2]
        if x.ndim != 2 or y.shape != (len(x),):
            raise ValueError(f"x must be a matrix and y hold one number per row; got shapes {x.shape} and {y.shape}")
        return _block_moments(x, y, block.weights, constant)

    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        moments = data.map_sum(visit)
    if not np.isfinite(moments.y).all() or not all(np.isfinite(s).all() for s in (*moments.x, *moments.xy)):
        raise ValueError("x or y hold NaN or infinity, or numbers whose sixth powers overflow: drop or rescale them")
    return moments


def _block_moments(x: Array, y: Array, weights: Array | None, constant: bool) -> RegressionMoments:
    d = x.shape[1] + constant
    n3 = len(index_tuples(d, 3))
    rows = max(TILE_BYTES // (8 * n3), 64)
    sums: list[Array] = [np.zeros(len(index_tuples(d, p))) for p in (2, 4, 6, *ORDERS)]
    response = np.zeros(7)
    for a in range(0, max(len(y), 1), rows):
        part = np.ones((d, len(y[a : a + rows])))
        part[: x.shape[1]] = x[a : a + rows].T
        target = y[a : a + rows].astype(np.float64)
        w = np.ones(len(target)) if weights is None else weights[a : a + rows]
        one = part
        two = one[_parents(d, 2)[0]] * one[_parents(d, 2)[1]]
        three = two[_parents(d, 3)[0]] * one[_parents(d, 3)[1]]
        weighted = w
        response[0] += w.sum()
        for power in range(1, 7):
            weighted = weighted * target
            response[power] += weighted.sum()
            if power <= 3:
                sums[2 + power] += np.einsum("in,n->i", (one, two, three)[power - 1], weighted)
        for i, products in enumerate((one, two, three)):
            left = products if weights is None else products * w
            for j, (first, places) in enumerate(_rights(d, i + 1)):
                sums[i][places] += np.einsum("n,jn->j", left[j], products[first:])
    return RegressionMoments(d, constant, (sums[0], sums[1], sums[2]), (sums[3], sums[4], sums[5]), response)


@cache
def _parents(d: int, order: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return, for each product of features, the position of the product without its last feature, and that feature."""
    tuples = index_tuples(d, order)
    place = {tuple(t): i for i, t in enumerate(index_tuples(d, order - 1).tolist())}
    return np.array([place[tuple(t[:-1])] for t in tuples.tolist()], dtype=np.intp), tuples[:, -1]


@cache
def _rights(d: int, order: int) -> tuple[tuple[int, slice], ...]:
    """Return, for each product of p features, the products that complete it to one of 2 p features in order.

    As tuples are in lexicographic order, these are all products from some position on; their results form one slice.
    """
    tuples, n = index_tuples(d, order), 0
    runs = []
    for last in tuples[:, -1]:
        first = int(np.searchsorted(tuples[:, 0], last))
        runs.append((first, slice(n, n + len(tuples) - first)))
        n += len(tuples) - first
    return tuple(runs)


@cache
def _joined(d: int, p: int, q: int) -> NDArray[np.intp]:
    """Return the positions (n_p, n_q), among products of p + q features, of products of p times products of q."""
    place = {tuple(t): i for i, t in enumerate(index_tuples(d, p + q).tolist())}
    rights = index_tuples(d, q).tolist()
    return np.array(
        [[place[tuple(sorted([*a, *b]))] for b in rights] for a in index_tuples(d, p).tolist()], dtype=np.intp
    )
