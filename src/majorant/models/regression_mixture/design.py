"""The coordinates in which a mixture of regressions is fitted: units, offsets, collinear columns do not matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant.data.chunks import Block, Chunks, Mapped
from majorant.data.measure import amid, empirical_measure, safe_scale
from majorant.data.scratch import cached
from majorant.data.storage import StoredRows

EXACT = 1e-10
"""A single line whose noise is below this share of the target's size is taken to fit exactly."""

SAMPLE_BYTES = 1 << 24
"""Starts on streamed rows race on a sample of about this size."""


def unit_of_noise(noise: float, spread: float, height: float) -> tuple[float, bool]:
    """The unit of residuals, and whether one line fits every row: its noise is nothing but rounding.

    The unit is then a floor, `EXACT` of the target's standard deviation; of its height where it is constant; of one
    where it is zero.

    Parameters
    ----------
    noise, spread, height : float
        Root mean squares of what the line leaves, of the target about its mean (about zero without an intercept), and
        the size of that mean.
    """
    exact = noise <= EXACT * spread
    return (EXACT * (spread or height or 1.0) if exact else noise), exact


@dataclass(frozen=True)
class Standard:
    r"""From rows (x, y) to (z, u): an orthonormal design, and the single model's standardised residual.

    With :math:`z = T^T [1, (x - m) / s]`, where T makes the weighted second moment of z the identity, and
    :math:`u = (y - z^T b_0) / \sigma_1`, by the least-squares fit and maximum-likelihood noise of one line, a mixture
    of the lines :math:`u = z^T c_k` is one of lines in x; the Jacobian is a constant of the log-likelihood.

    Attributes
    ----------
    origin : ndarray of shape (n_features + 1,)
        A point amid the rows [x, y]; zeros without an intercept.
    scale : ndarray of shape (n_features + 1,)
        Powers of two that make squares safe.
    means, scales : ndarray of shape (n_features,)
        m and s, in rows less `origin` times `scale`.
    transform : ndarray of shape (p_raw, p)
        T, upper triangular but for zero rows of columns that are combinations of those before them.
    smallest : ndarray of shape (p_raw, p_raw)
        The projection of coefficients onto the smallest ones that fit equally well.
    pooled : ndarray of shape (p,)
        b_0.
    sigma : float
        sigma_1; a small number where a line fits exactly.
    fit_intercept : bool
    exact : bool
        Whether one line fits every row.
    dropped : tuple of int
        Columns that are combinations of those before them.
    """

    origin: NDArray[np.float64]
    scale: NDArray[np.float64]
    means: NDArray[np.float64]
    scales: NDArray[np.float64]
    transform: NDArray[np.float64]
    smallest: NDArray[np.float64]
    pooled: NDArray[np.float64]
    sigma: float
    fit_intercept: bool
    exact: bool
    dropped: tuple[int, ...]

    @property
    def log_unit(self) -> float:
        """Logarithm of u's unit in units of y."""
        return float(np.log(self.sigma) - np.log(self.scale[-1]))

    def apply(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """(z, u) of rows less `origin` times `scale`."""
        z = np.einsum("ij,jp->ip", raw_design(x, self.means, self.scales, self.fit_intercept), self.transform)
        return z, (y - np.einsum("ip,p->i", z, self.pooled)) / self.sigma

    def coefficients(self, coef: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Coefficients (K, n_features) in the units of X and y, and the fits (K,) where X is its origin.

        Of a model without intercept the origin is zero, and so are the fits there.
        """
        raw = np.einsum("kp,jp,ij->ki", self.sigma * coef + self.pooled, self.transform, self.smallest)
        slopes = raw[:, -len(self.scales) :] / self.scales
        in_units = slopes * (self.scale[:-1] / self.scale[-1])
        if not self.fit_intercept:
            return in_units, np.zeros(len(coef))
        levels = (raw[:, 0] - np.einsum("kj,j->k", slopes, self.means)) / self.scale[-1]
        return in_units, levels + self.origin[-1]

    def of_lines(self, slopes: NDArray[np.float64], levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """The inverse of `coefficients`: the coordinates c_k of lines in the units of X and y."""
        slopes = slopes * (self.scale[-1] / self.scale[:-1])
        raw = slopes * self.scales
        if self.fit_intercept:
            first = (levels - self.origin[-1]) * self.scale[-1] + np.einsum("kj,j->k", slopes, self.means)
            raw = np.column_stack([first, raw])
        # T need not be square: where columns are dropped any line that agrees on the rows will do.
        inverse = np.linalg.pinv(self.transform)
        return np.ascontiguousarray((np.einsum("kj,pj->kp", raw, inverse) - self.pooled) / self.sigma)


@dataclass(frozen=True)
class Design:
    """Rows in the coordinates of a fit.

    Attributes
    ----------
    data : Chunks
        Columns z, shape (rows, p), and u, shape (rows,).
    standard : Standard
    x, y : ndarray
        z and u of all distinct rows in canonical order, or of a sample of a stream.
    weights : ndarray
        Theirs, one on average.
    unit : float
        The average weight.
    positions : ndarray of shape (n_rows,), or None
        The distinct row that each row is, -1 where it has no weight. None: the rows are streamed as they are.
    """

    data: Chunks
    standard: Standard
    x: NDArray[Any]
    y: NDArray[Any]
    weights: NDArray[np.float64]
    unit: float
    positions: NDArray[np.intp] | None

    @property
    def is_stream(self) -> bool:
        return self.positions is None

    @property
    def share(self) -> float:
        """Weight of `x` and `y` as a share of that of all rows."""
        return float(self.weights.sum()) / self.total_weight

    def on_sample(self) -> Design:
        """The rows in memory, `x` and `y`, as data of their own."""
        ones = bool((self.weights == 1.0).all())
        data = Chunks(self.x, self.y, weights=None if ones else self.weights, n_jobs=self.data.n_jobs)
        return replace(self, data=data, unit=self.unit / self.share, positions=np.arange(len(self.y)))

    def in_features(self) -> tuple[Chunks, NDArray[np.float64], NDArray[np.float64]]:
        r"""The rows (x, y) as moment methods take them, and how their lines are those of z and u.

        Residuals about one line would not do: the lines of a mixture add up to nothing then, so that K of them span
        less than K dimensions.

        Returns
        -------
        data : Chunks
            A constant, where there is an intercept, and the standardised columns; y in units of the single noise.
        back : ndarray of shape (p, p)
        pooled : ndarray of shape (p,)
            A line b of these is the line ``b @ back - pooled`` of the design.
        """
        transform = self.standard.transform
        inverse = np.linalg.inv(transform[np.abs(transform).max(axis=1) > 0])
        pooled = self.standard.pooled / self.standard.sigma

        def columns(block: Block) -> tuple[Any, ...]:
            z, u = (np.asarray(column, dtype=np.float64) for column in block.columns)
            return np.einsum("ip,pj->ij", z, inverse), u + np.einsum("ip,p->i", z, pooled)

        return Chunks(Mapped(self.data.source, columns), n_jobs=self.data.n_jobs), inverse.T, pooled

    @property
    def n_coefficients(self) -> int:
        return int(self.x.shape[1])

    @property
    def total_weight(self) -> float:
        return self.data.total_weight

    @property
    def constant(self) -> float:
        """By what minus the log-likelihood of y is larger than that of u, at average weights of one."""
        return self.total_weight * self.standard.log_unit

    def log_likelihood(self, objective: float) -> float:
        """Of y, with the weights as they were given."""
        return -(objective + self.constant) * self.unit


def design_in_memory(
    X: NDArray[Any], y: NDArray[Any], weights: NDArray[np.float64] | None, fit_intercept: bool, n_jobs: int | None
) -> Design:
    """The design of the distinct rows of arrays of one type, weighted."""
    rows = np.column_stack([X, y])
    reach = np.abs(rows).max(axis=0).astype(np.float64)
    scale = np.array(
        [safe_scale(float(r), X.dtype) for r in reach]
    )  # of each column: units of X and y may be worlds apart
    measure = empirical_measure((rows * scale).astype(X.dtype) if (scale != 1).any() else rows, weights)
    points = measure.points.astype(np.float64) / measure.scale
    if not fit_intercept:  # zero is a place of its own
        points += measure.origin
    w, unit = _on_average_one(measure.weights)
    raw = Chunks(np.ascontiguousarray(points[:, :-1]), np.ascontiguousarray(points[:, -1]), weights=w, n_jobs=n_jobs)
    origin = measure.origin / scale if fit_intercept else np.zeros(points.shape[1])
    standard = _standard(raw, origin, scale, fit_intercept)
    z, u = (np.ascontiguousarray(column, dtype=X.dtype) for column in standard.apply(points[:, :-1], points[:, -1]))
    data = Chunks(z, u, weights=None if (w == 1.0).all() else w, n_jobs=n_jobs)
    return Design(data, standard, z, u, w, unit, measure.positions)


def design_streamed(source: StoredRows, fit_intercept: bool, seed: int, n_jobs: int | None) -> Design:
    """The design of rows that are read block by block with their target, and a sample of it drawn uniformly.

    Raises
    ------
    ValueError
        If a row holds NaN or infinity.
    """
    n, d = source.n_units, source.n_features
    unit = source.weights_of_one()
    size = sample_size(n, d)
    drawn = np.sort(np.random.default_rng(seed).choice(n, size, replace=False, shuffle=False))

    def some(block: Block) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        refuse_non_finite(block)
        own = drawn[slice(*np.searchsorted(drawn, [block.first, block.first + len(block)]))] - block.first
        weights = np.ones(len(own)) if block.weights is None else block.weights[own]
        return [(np.column_stack([column[own] for column in block.columns]).astype(np.float64), weights)]

    rows, weights = map(np.concatenate, zip(*Chunks(source, n_jobs=n_jobs).map_sum(some), strict=True))
    origin = amid(rows, np.arange(size)) if fit_intercept else np.zeros(d + 1)

    def centred(block: Block) -> tuple[Any, ...]:
        x, y = block.columns
        return np.ascontiguousarray(x - origin[:-1]), y - origin[-1]

    raw = cached(Mapped(source, centred), source.cache)
    standard = _standard(Chunks(raw, n_jobs=n_jobs), origin, np.ones(d + 1), fit_intercept)
    dtype = source.dtype

    def standardised(block: Block) -> tuple[Any, ...]:
        return tuple(np.ascontiguousarray(c, dtype=dtype) for c in standard.apply(*block.columns))

    sample = empirical_measure(rows, weights if source.has_weights else None)
    points = sample.restore(sample.points) - origin
    z, u = (np.ascontiguousarray(c, dtype=dtype) for c in standard.apply(points[:, :-1], points[:, -1]))
    data = Chunks(cached(Mapped(raw, standardised), source.cache), n_jobs=n_jobs)
    return Design(data, standard, z, u, _on_average_one(sample.weights)[0], unit, None)


def sample_size(n_rows: int, n_features: int) -> int:
    """How many of the rows of a stream have the starts."""
    return min(n_rows, max(SAMPLE_BYTES // (8 * (n_features + 1)), 1000))


def refuse_non_finite(block: Block) -> None:
    """Refuse a row of columns x and y that holds NaN or infinity, by its number.

    Raises
    ------
    ValueError
    """
    x, y = block.columns
    if np.isfinite(x).all() and np.isfinite(y).all():
        return
    row, column = np.argwhere(~np.isfinite(np.column_stack([x, y])))[0]
    where, value = (f", column {column} of X", x[row, column]) if column < x.shape[1] else (" of y", y[row])
    raise ValueError(
        f"row {block.first + row}{where} is {value}: "
        "drop rows with missing or infinite values, or fill them in, before fitting"
    )


def _on_average_one(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Weights whose unit does not matter, and their unit."""
    if weights.min() == weights.max():
        return np.ones(len(weights)), float(weights[0])
    unit = float(weights.sum()) / len(weights)
    return weights / unit, unit


def raw_design(
    x: NDArray[np.float64], means: NDArray[np.float64], scales: NDArray[np.float64], fit_intercept: bool
) -> NDArray[np.float64]:
    """Standardised columns, after one of ones where there is an intercept."""
    x = (x - means) / scales
    return np.column_stack([np.ones(len(x)), x]) if fit_intercept else x


def _standard(raw: Chunks, origin: NDArray[np.float64], scale: NDArray[np.float64], fit_intercept: bool) -> Standard:
    """Where do the rows lie, which combinations of columns vary, and what does one line leave?"""
    means, scales = _columns(raw, fit_intercept)

    def design(block: Block) -> NDArray[np.float64]:
        return raw_design(block.columns[0], means, scales, fit_intercept)

    gram, _, _ = moments(raw, lambda block: (design(block), block.columns[1]))
    transform, smallest, dropped = orthonormal_transform(gram)
    if transform.shape[1] == 0:
        raise ValueError("X holds nothing but zeros: without an intercept there is no line to fit")

    def orthonormal(block: Block) -> NDArray[np.float64]:
        return np.asarray(np.einsum("ij,jp->ip", design(block), transform))

    # Whitening by a Gram matrix squares its condition: once more, on what is left.
    gram, slope, _ = moments(raw, lambda block: (orthonormal(block), block.columns[1]))
    transform = np.linalg.solve(np.linalg.cholesky(gram), transform.T).T
    pooled = np.linalg.solve(np.linalg.cholesky(gram), slope)
    level = float(origin[-1] * scale[-1])
    pooled, sigma, exact = single_line(raw, orthonormal, lambda block: block.columns[1], pooled, fit_intercept, level)
    names = tuple(j - fit_intercept for j in dropped if j >= fit_intercept)
    return Standard(origin, scale, means, scales, transform, smallest, pooled, sigma, fit_intercept, exact, names)


def single_line(
    raw: Chunks,
    design: Callable[[Block], NDArray[np.float64]],
    target: Callable[[Block], NDArray[Any]],
    start: NDArray[np.float64],
    fit_intercept: bool,
    level: float = 0.0,
) -> tuple[NDArray[np.float64], float, bool]:
    """The least-squares line, the unit of its residuals, and whether it fits every row.

    Parameters
    ----------
    raw : Chunks
    design, target : callable
        Of a block; the design is orthonormal.
    start : ndarray of shape (p,)
        Coefficients to begin at.
    fit_intercept : bool
    level : float
        What the target has lost of its height.
    """
    pooled = start
    for _ in range(2):  # a second step takes what rounding left of the first

        def residuals(block: Block, b: NDArray[np.float64] = pooled) -> tuple[Any, Any]:
            z = design(block)
            return z, target(block) - np.einsum("ip,p->i", z, b)

        _, slope, variance = moments(raw, residuals)
        pooled = pooled + slope
    _, mean, square = moments(raw, lambda block: (np.ones((len(block), 1)), target(block)))
    spread = float(np.sqrt(max(square - float(mean[0]) ** 2, 0.0) if fit_intercept else square))
    sigma, exact = unit_of_noise(float(np.sqrt(variance)), spread, abs(float(mean[0]) + level))
    return pooled, sigma, exact


def _columns(raw: Chunks, fit_intercept: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of every column; of a model without intercept zero and the root mean square."""

    def weights(block: Block) -> NDArray[np.float64]:
        return np.ones(len(block)) if block.weights is None else block.weights

    total = raw.total_weight
    means = np.zeros(next(raw.source.blocks()).columns[0].shape[1])
    if fit_intercept:
        means = raw.map_sum(lambda block: np.einsum("i,ij->j", weights(block), block.columns[0])) / total

    def squares(block: Block) -> NDArray[np.float64]:
        x = block.columns[0] - means
        return np.asarray(np.einsum("i,ij,ij->j", weights(block), x, x))

    scales = np.sqrt(raw.map_sum(squares) / total)
    return means, np.where(scales > 0, scales, 1.0)


def moments(raw: Chunks, columns: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Weighted means of ``z z'``, of ``z r`` and of ``r r``."""

    def visit(block: Block) -> NDArray[np.float64]:
        z, r = columns(block)
        p = z.shape[1]
        out = np.empty((1, 2 + p + p * (p + 1) // 2))
        one = np.ones(1)
        z, r = np.ascontiguousarray(z), np.ascontiguousarray(r)
        _kernels.regression_pass(z, r, block.weights, one, np.zeros((1, p)), one, 1.0, out)
        return out

    s = raw.map_sum(visit)[0] / raw.total_weight
    p = int((np.sqrt(8 * len(s) - 7) - 3) // 2)
    gram = np.zeros((p, p))
    lower = np.tril_indices(p)
    gram[lower] = s[2 + p :]
    gram.T[lower] = s[2 + p :]
    return gram, s[2 : 2 + p], float(s[1])


def orthonormal_transform(
    gram: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[int, ...]]:
    """A matrix T with ``T' gram T = I``, the projection onto the rows' space, and the columns of no use.

    T follows the order of the columns, unlike eigenvectors, which rounding may turn where eigenvalues are close.
    """
    dropped = _redundant(gram)
    kept = [j for j in range(len(gram)) if j not in dropped]
    transform = np.zeros((len(gram), len(kept)))
    if kept:
        lower = np.linalg.cholesky(gram[np.ix_(kept, kept)])
        transform[kept] = np.linalg.inv(lower).T
    if not dropped:
        return transform, np.eye(len(gram)), dropped
    _, vectors = np.linalg.eigh(gram)
    space = vectors[:, len(dropped) :]
    return transform, space @ space.T, dropped


def _redundant(gram: NDArray[np.float64]) -> tuple[int, ...]:
    """Columns that are combinations of those before them: a Cholesky factorisation meets no pivot."""
    rest = gram.copy()
    found: list[int] = []
    for j in range(len(gram)):
        if rest[j, j] <= 1e-11 * gram[j, j] or gram[j, j] < 1e-30:
            found.append(j)
        else:
            rest -= np.outer(rest[j], rest[j]) / rest[j, j]
    return tuple(found)
