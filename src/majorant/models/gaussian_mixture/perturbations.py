"""Perturbations of solutions, made from their parameters, so that most cost no pass over the rows.

Two components are merged and cut anew, or one is removed and another cut in two, or one becomes that of a few rows near
each other, or each component is taken from one of two solutions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtr

from majorant.solvers.covariance_types import DIAGONAL, FULL, SPHERICAL, TIED, Covariance
from majorant.solvers.gaussian import Array, Mixture
from majorant.solvers.gaussian_em import EmStarts

RECOMBINED_SHARE = 1 / 6
"""Share of perturbations that recombine two solutions."""

GATHERED_SHARE = 1 / 3
"""Share of the others that gather a few rows: the best solutions of few rows have small, tight components."""

MERGE_SHARE = 0.5
"""Probability that two components are merged and cut anew, rather than one removed and another cut: near a good optimum
the former gains several times as often."""

N_DIRECTIONS = 20
"""Directions of which half of the cuts are along the one that looks most like two groups."""

N_SEEN = 128
"""Rows, drawn by responsibility, from which it is told how a direction looks."""

FARTHEST_CUT = 2.5
"""Standard deviations from the mean within which a component is cut."""

MOST_GATHERED = 4.0
"""Largest size of a component of rows that are gathered, as a multiple of the smallest one."""

NEAR = 3.0
"""Rows of which some span a plane, as a multiple of those that are gathered near it."""

FLATNESS = 30.0
"""Weight of the squared distance from a plane, beside that from a row."""

RIDGE = 1e-2
"""Share of the covariance of a component that those of gathered rows get, so that none is singular."""

ROUNDING = 1e-13
"""Share of all variance that covariances get on top, so that rounding makes none singular."""

BATCH = 1 << 21
"""Approximate size of a batch in numbers."""


@dataclass(frozen=True)
class Solutions:
    """Mixtures, best first, with the responsibilities that they give to rows in their coordinates."""

    kind: Covariance
    # of all mixtures, of which each has at least two components
    weights: Array
    means: Array
    covariances: Array
    points: Array  # (n_points, n_features)
    row_weights: Array  # (n_points,)
    # (n_components * n_points,): number of a component of the best mixture plus the cumulative share of its rows, from
    # which these are drawn
    line: Array
    labels: NDArray[np.intp]  # (n_mixtures, n_points): most probable components

    @classmethod
    def of(cls, mixtures: Sequence[Mixture], points: Array, row_weights: Array) -> Solutions:
        """Return mixtures with what is known of the rows."""
        best = mixtures[0].posteriors(points)[1]
        cumulative = np.cumsum((best * row_weights[:, None]).T, axis=1)
        shares = cumulative / np.maximum(cumulative[:, -1:], 1e-300)
        line = (shares + np.arange(len(shares))[:, None]).ravel()
        labels = np.stack([best.argmax(axis=1), *(one.energies(points).argmin(axis=1) for one in mixtures[1:])])
        weights, means, covariances = (
            np.stack([getattr(one, name) for one in mixtures]) for name in ("weights", "means", "covariances")
        )
        return cls(mixtures[0].covariance, weights, means, covariances, points, row_weights, line, labels)

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def n_components(self) -> int:
        return int(self.weights.shape[1])

    def drawn(self, components: NDArray[np.intp], uniforms: Array) -> Array:
        """Draw a row of each of these components of the best one, by inverse CDF."""
        n = len(self.points)
        found = np.searchsorted(self.line, components + uniforms, side="right") - components * n
        return np.asarray(self.points[np.clip(found, 0, n - 1)])

    @property
    def parts(self) -> int:
        """How many arrays of a mixture have an entry for each component."""
        return 2 if self.kind is TIED else 3

    def copies(self, base: NDArray[np.intp]) -> EmStarts:
        """Return copies of mixtures."""
        return EmStarts(self.weights[base], self.means[base], self.covariances[base])

    def within_best(self, components: NDArray[np.intp]) -> Array:
        """Return the covariances of components of the best one."""
        own = self.covariances[0]
        return np.asarray(np.broadcast_to(own, (len(components), *own.shape)) if self.kind is TIED else own[components])


def perturbed(solutions: Solutions, least: float, size: int, random: np.random.Generator) -> EmStarts:
    """Return this many mixtures near the best solution, or between two solutions.

    Parameters
    ----------
    solutions : Solutions
    least : float
        Smallest number of rows of a component.
    size : int
    random : numpy.random.Generator
    """
    n_both = int(size * RECOMBINED_SHARE) if len(solutions) > 1 else 0
    n_near = int(np.sum(random.random(size - n_both) < GATHERED_SHARE))
    n_cut, most = size - n_both - n_near, max(1, BATCH // (N_SEEN * max(solutions.points.shape[1], 1)))
    made = [cut(solutions, min(most, n_cut - a), random) for a in range(0, n_cut, most)]
    made += [gathered(solutions, least, n_near, random), recombined(solutions, n_both, random)]
    return EmStarts(*(np.concatenate(each) for each in zip(*made, strict=True)))


def recombined(solutions: Solutions, size: int, random: np.random.Generator) -> EmStarts:
    """Return mixtures that take each component from one of two solutions, matched by the rows that they share."""
    k, parts = solutions.n_components, solutions.parts
    first, second = np.zeros((2, size), dtype=np.intp)
    match, is_other = np.zeros((size, k), dtype=np.intp), np.zeros((size, k), dtype=np.bool_)
    for i in range(size):
        first[i], second[i] = random.permutation(len(solutions))[:2]
        pairs = solutions.labels[first[i]] * k + solutions.labels[second[i]]
        shared = np.bincount(pairs, solutions.row_weights, minlength=k * k).reshape(k, k)
        match[i] = linear_sum_assignment(shared, maximize=True)[1]
        is_other[i] = random.random(k) < 0.5
        if is_other[i].all() or not is_other[i].any():
            is_other[i, random.integers(k)] ^= True
    out = solutions.copies(first)
    for ours, theirs in zip(out[:parts], solutions.copies(second)[:parts], strict=True):
        matched = np.take_along_axis(theirs, match.reshape(size, k, *[1] * (theirs.ndim - 2)), axis=1)
        ours[is_other] = matched[is_other]
    return of_shares(out)


def gathered(solutions: Solutions, least: float, size: int, random: np.random.Generator) -> EmStarts:
    """Return copies of the best solution in which a component becomes that of a few rows nearest to a random one."""
    x, row_weights, kind = solutions.points, solutions.row_weights, solutions.kind
    total, k, every = float(row_weights.sum()), solutions.n_components, np.arange(size)
    out, line = solutions.copies(np.zeros(size, dtype=np.intp)), np.cumsum(row_weights) / total
    gone, metric = random.integers(k, size=(2, size))
    centres = np.minimum(np.searchsorted(line, random.random(size), side="right"), len(x) - 1)
    sizes = np.minimum(least * MOST_GATHERED ** random.random(size), total / k)
    within, inverses = solutions.within_best(metric), _inverse_factors(kind, solutions.within_best(np.arange(k)))
    z = np.einsum("nd,ked->kne", x, inverses) if kind.has_matrices else x * inverses.reshape(k, 1, -1)
    away = z[metric] - z[metric, centres][:, None]
    distances = np.einsum("mnd,mnd->mn", away, away)
    if kind is FULL and x.shape[1] > 1:
        distances += _off_a_plane(away, distances, sizes, row_weights, random)
    order = np.argsort(distances, axis=1, kind="stable")
    before = np.cumsum(row_weights[order], axis=1) - row_weights[order]
    most = int((before < sizes[:, None]).sum(axis=1).max(initial=0))
    own = order[:, :most]
    share = row_weights[own] * (before[:, :most] < sizes[:, None])
    share = share / share.sum(axis=1, keepdims=True)
    out.means[every, gone] = mean = np.einsum("mn,mnd->md", share, x[own])
    if kind is not TIED:
        squares = _squares(kind, (x[own] - mean[:, None]).reshape(-1, x.shape[1])).reshape(
            *own.shape, *within.shape[1:]
        )
        out.covariances[every, gone] = _steadied(kind, np.einsum("mn,mn...->m...", share, squares) + RIDGE * within)
    out.weights[every, gone] = sizes / total
    return of_shares(out)


def _off_a_plane(away: Array, distances: Array, sizes: Array, row_weights: Array, random: np.random.Generator) -> Array:
    """Return squared distances of rows from planes through a few near ones, many times over; zero for half of them."""
    size, d = len(away), away.shape[2]
    order = np.argsort(distances, axis=1, kind="stable")
    near = np.maximum((np.cumsum(row_weights[order], axis=1) < NEAR * sizes[:, None]).sum(axis=1), 1)
    chosen = np.take_along_axis(order, (random.random((size, d - 1)) * near[:, None]).astype(np.intp), axis=1)
    normal = np.linalg.svd(np.take_along_axis(away, chosen[:, :, None], axis=1))[2][:, -1]
    factor = np.where(random.random(size) < 0.5, FLATNESS, 0.0)
    return np.asarray(factor[:, None] * np.einsum("mnd,md->mn", away, normal) ** 2)


def cut(solutions: Solutions, size: int, random: np.random.Generator) -> EmStarts:
    """Return copies of the best solution in which a component, or two as one, is cut along a direction."""
    kind, k, every = solutions.kind, solutions.n_components, np.arange(size)
    out = solutions.copies(np.zeros(size, dtype=np.intp))
    i, j = np.argsort(random.random((size, k)), axis=1, kind="stable")[:, :2].T
    merges = (random.random(size) < MERGE_SHARE) | (k == 2)
    mass = np.where(merges, out.weights[every, i], 0.0), out.weights[every, j]
    whole = np.maximum(mass[0] + mass[1], 1e-300)
    share = mass[0] / whole
    apart = out.means[every, i] - out.means[every, j]
    mean = out.means[every, j] + share[:, None] * apart
    inside = [solutions.within_best(component) for component in (i, j)]
    part = share.reshape(-1, *[1] * (inside[0].ndim - 1))
    merged = part * inside[0] + (1 - part) * inside[1] + part * (1 - part) * _squares(kind, apart)
    merged = _steadied(kind, merged)

    def rows(uniforms: Array) -> Array:
        first = uniforms < share[:, None]
        scale = np.where(first, share[:, None], 1 - share[:, None])
        rest = np.minimum((uniforms - np.where(first, 0.0, share[:, None])) / np.maximum(scale, 1e-300), 1 - 1e-9)
        return solutions.drawn(np.where(first, i[:, None], j[:, None]), rest)

    # Directions are whitened differences of rows: another basis of the coordinates does not change them.
    ends = rows(random.random((size, 2 * N_DIRECTIONS)))
    differences = ends[:, :N_DIRECTIONS] - ends[:, N_DIRECTIONS:]
    axes = _whitened(kind, merged, differences)
    lengths = np.sqrt(np.maximum(np.einsum("mja,mja->mj", axes, differences), 1e-300))
    chosen = np.zeros(size, dtype=np.intp)
    looks = np.asarray(random.random(size) < 0.5)
    seen = rows((random.random((size, 1)) + np.arange(N_SEEN)) / N_SEEN)[looks] - mean[looks, None]
    t = np.einsum("mna,mja->mjn", seen, axes[looks])
    t *= t
    variance = t.sum(axis=2)
    kurtosis = np.einsum("mjn,mjn->mj", t, t) / np.maximum(variance**2, 1e-300)
    kurtosis[variance <= 0] = np.inf
    chosen[looks] = kurtosis.argmin(axis=1)
    shift = differences[every, chosen] / lengths[every, chosen][:, None]
    at = np.clip(random.standard_normal(size), -FARTHEST_CUT, FARTHEST_CUT)  # small groups lie at the edge
    for component, side in ((i, 1.0), (j, -1.0)):  # a normal distribution, cut off below and above
        beyond = ndtr(-side * at)
        away = np.exp(-0.5 * at * at) / (np.sqrt(2 * np.pi) * beyond)
        out.means[every, component] = mean + (side * away)[:, None] * shift
        out.weights[every, component] = whole * beyond
        if kind is not TIED:
            squares = _squares(kind, shift)
            less = (away * (away - side * at)).reshape(-1, *[1] * (squares.ndim - 1))
            out.covariances[every, component] = merged - less * squares
    return of_shares(out)


def of_shares(mixtures: EmStarts) -> EmStarts:
    """Return mixtures with weights that sum to one."""
    return mixtures._replace(weights=mixtures.weights / mixtures.weights.sum(axis=1, keepdims=True))


def _steadied(kind: Covariance, covariances: Array) -> Array:
    """Return covariances with as much more variance as rounding may take off."""
    if not kind.has_matrices:  # parts are taken off variances, and less than all
        return covariances
    spread = np.trace(covariances, axis1=1, axis2=2)[:, None, None]
    return np.asarray(covariances + ROUNDING * spread * np.eye(covariances.shape[-1]))


def _squares(kind: Covariance, x: Array) -> Array:
    """Return the covariance of a type about zero of one row each."""
    if kind.has_matrices:
        return np.asarray(np.einsum("ma,mb->mab", x, x))
    return np.asarray((x * x).mean(axis=1) if kind is SPHERICAL else x * x)


def _whitened(kind: Covariance, covariances: Array, x: Array) -> Array:
    """Return the inverse of each covariance times its vectors, (size, vectors, d)."""
    if kind.has_matrices:
        return np.asarray(np.linalg.solve(covariances, x.transpose(0, 2, 1)).transpose(0, 2, 1))
    return np.asarray(x / (covariances[:, None, :] if kind is DIAGONAL else covariances[:, None, None]))


def _inverse_factors(kind: Covariance, covariances: Array) -> Array:
    """Return what makes the rows of each covariance white: inverse factors, or those of standard deviations."""
    return np.asarray(np.linalg.inv(np.linalg.cholesky(covariances)) if kind.has_matrices else covariances**-0.5)
