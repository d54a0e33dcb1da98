"""Starts that a user chose: by name, or as weights, means and precisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from majorant._cells import refuse_what_is_no_number
from majorant.data.measure import Measure
from majorant.laws.independent import Weights
from majorant.models.gaussian_mixture.contest import GaussianContest, Theta
from majorant.models.gaussian_mixture.lifting import Lifted
from majorant.search.contestants import NamedStart
from majorant.solvers.covariance_types import Covariance
from majorant.solvers.gaussian import Array, Mixture
from majorant.solvers.nearest import squared_distances
from majorant.solvers.swap import swap_search
from majorant.starts.seeding import plus_plus, random_rows

INIT_PARAMS = ("auto", "kmeans", "k-means++", "random", "random_from_data")
ASYMMETRY = 1e-6
"""Largest difference of two entries that should be equal, where the diagonal is one."""
FARTHEST = 1e100
"""Largest coordinate of a mean, in standard deviations of the rows."""
SOURCES = {
    "auto": "k-means",
    "kmeans": "k-means",
    "k-means++": "k-means++",
    "random": "random responsibilities",
    "random_from_data": "random rows",
}


def checked_init(name: str, value: Any, shape: tuple[int, ...]) -> Array | None:
    """Return an array of a start as float64, None if none was given.

    Raises
    ------
    ValueError
        If its shape is wrong or an entry is not finite.
    """
    if value is None:
        return None
    refuse_what_is_no_number(value, name)
    array = check_array(value, dtype=np.float64, ensure_2d=False, allow_nd=True, ensure_min_samples=0, input_name=name)
    if array.shape != shape:
        raise ValueError(
            f"The parameter '{name}' should have the shape of {shape}, but got {array.shape}: give one start for every "
            "component and feature, or None"
        )
    return np.asarray(array)


def checked_weights(value: Any, k: int) -> Array | None:
    """Check `weights_init`: shares that sum to one."""
    weights = checked_init("weights", value, (k,))
    if weights is not None:
        if (weights < 0).any() or (weights > 1).any():
            raise ValueError(
                "The parameter 'weights' should be in the range [0, 1], but got "
                f"min value {weights.min():.5f}, max value {weights.max():.5f}"
            )
        if not np.isclose(weights.sum(), 1.0):
            raise ValueError(f"The parameter 'weights' should be normalized, but got sum = {weights.sum():.5f}")
    return weights


def checked_precisions(value: Any, kind: Covariance, k: int, d: int) -> Array | None:
    """Check `precisions_init`, and return its covariances."""
    precisions = checked_init(f"{kind.name} precision", value, kind.shape(k, d))
    if precisions is None:
        return None
    precisions = positive(precisions, f"'{kind.name} precision'", "precisions_init", kind)
    return np.asarray(np.linalg.inv(precisions) if kind.has_matrices else 1.0 / precisions)


def positive(values: Array, what: str, where: str, kind: Covariance) -> Array:
    """Covariances or precisions that are positive definite, and symmetric but for rounding, in whatever units.

    Raises
    ------
    ValueError
        If they are not.
    """
    if not kind.has_matrices:
        if not (values > 0).all():
            raise ValueError(f"{what} should be positive; {where} holds {values.min():g}")
        return values
    roots = np.sqrt(np.maximum(np.diagonal(values, axis1=-2, axis2=-1), 0.0))
    scale = roots[..., :, None] * roots[..., None, :]
    scaled = np.divide(values, scale, out=np.zeros_like(values), where=scale > 0)
    turned = np.swapaxes(scaled, -1, -2)
    if not (scale > 0).all() or np.abs(scaled - turned).max() > ASYMMETRY or np.linalg.eigvalsh(scaled).min() <= 0:
        raise ValueError(f"{what} should be symmetric, positive-definite ({where})")
    return np.asarray((values + np.swapaxes(values, -1, -2)) / 2)


@dataclass(frozen=True)
class Given:
    """Parts of a start in the units of X, None where they are to be found."""

    weights: Array | None = None
    means: Array | None = None
    covariances: Array | None = None
    source: str = "given"
    law: Any = None
    """Parameters of a law of covariates."""

    @classmethod
    def checked(cls, weights: Any, means: Any, covariances: Any, kind: Covariance) -> Given:
        """Complete the parameters of a mixture.

        Raises
        ------
        ValueError
            If shapes differ, weights are no shares, or a covariance is not positive definite.
        """
        refuse_what_is_no_number(means, "means")
        centres = check_array(means, dtype=np.float64, input_name="means")
        k, d = centres.shape
        shares = checked_weights(weights, k)
        whole = checked_init(f"{kind.name} covariance", covariances, kind.shape(k, d))
        if shares is None or whole is None:
            raise ValueError("a mixture needs weights, means and covariances; got None")
        return cls(shares, centres, positive(whole, f"'{kind.name} covariance'", "covariances", kind))

    @property
    def _parts(self) -> tuple[Array | None, ...]:
        return self.weights, self.means, self.covariances

    @property
    def is_empty(self) -> bool:
        return all(part is None for part in self._parts)

    @property
    def is_whole(self) -> bool:
        return all(part is not None for part in self._parts)

    def lifted(self, kind: Covariance) -> Lifted:
        """Complete a mixture, with its precisions."""
        assert self.weights is not None and self.means is not None and self.covariances is not None
        mixture = Mixture(self.weights, self.means, self.covariances, kind.name)
        factors = mixture.precision_factors()[0]
        each = factors if factors.ndim != 2 or not kind.has_matrices else factors[None]
        precisions = kind.squared(each).reshape(factors.shape)
        return Lifted(self.weights, self.means, self.covariances, factors, precisions, kind)


def chosen_starts(
    contest: GaussianContest, init_params: str, given: Given, seeds: Sequence[int]
) -> Iterator[NamedStart[Theta]]:
    """Yield the name and the parameters of each start.

    Parameters
    ----------
    contest : GaussianContest
    init_params : str
    given : Given
    seeds : sequence of int
        One a start.
    """
    own, k, rows = contest.coordinates, contest.mixture.n_components, contest.rows
    means = None if given.means is None else own.of((given.means - rows.origin) * rows.scale)
    if means is not None and not (np.abs(means) < FARTHEST).all():
        far = np.abs(np.asarray(given.means)).max()
        raise ValueError(f"means_init holds {far:g}, so far from the rows that squares overflow: begin near them")
    weights, covariances = given.weights, given.covariances
    if covariances is not None:
        covariances = contest.kind.mapped(covariances * rows.scale**2, own.forward)
    measure = Measure(contest.filled, contest.weights, rows.positions, rows.origin, rows.scale)
    source = SOURCES[init_params] if given.is_empty else given.source
    for seed in seeds:
        if means is None:
            q = _responsibilities(measure, k, init_params, np.random.default_rng(seed))
        else:
            q = _nearest(contest.points, means, k)
        data = contest.on(contest.whole).data
        theta = contest.mixture.started(q.T[None], data, keeps_order=means is not None)
        has_weights = isinstance(theta.law, Weights)
        if not has_weights and weights is not None and given.source == "given":
            raise ValueError(
                "weights_init are shares of all rows, but with gating they depend on covariates: leave it out"
            )
        begun = contest.mixture_of(theta)
        shares = begun.weights if (begun.weights > 0).all() else np.full(k, 1.0 / k)
        start = Mixture(
            shares if weights is None else weights,
            begun.means if means is None else means,
            begun.covariances if covariances is None else covariances,
            contest.kind.name,
        )
        law = None if has_weights else theta.law if given.law is None else given.law
        yield source, contest.theta_of(start, law, theta.density.floored if covariances is None else None)


def _responsibilities(measure: Measure, k: int, init_params: str, random: np.random.Generator) -> NDArray[np.float64]:
    x = measure.points
    if init_params == "random":
        q = random.random((len(x), k))
        return np.asarray(q / q.sum(axis=1, keepdims=True))
    if init_params in ("auto", "kmeans"):
        seed = int(random.integers(2**31))
        return _nearest(x, swap_search(x, measure.weights, k, seed=seed, effort="fast").centres, k)
    seeding = plus_plus if init_params == "k-means++" else random_rows
    return _nearest(x, seeding(measure, k, random).astype(np.float64), k)


def _nearest(x: Array, centres: Array, k: int) -> Array:
    labels = squared_distances(x, centres).argmin(axis=1)
    return np.asarray(labels[:, None] == np.arange(k), dtype=np.float64)
