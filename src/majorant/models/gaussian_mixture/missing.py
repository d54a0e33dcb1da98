r"""Gaussian mixtures of rows with missing entries: EM over the patterns of what is observed.

The latent values of a row are its component and its missing entries, (z, x_m); entries are taken to be missing at
random. For any densities :math:`q(z)` and :math:`p_z(x_m)`, up to weights and temperature,

.. math::
   -\log p(x_o) \le \sum_z q(z) \Big[ E_{p_z} E(z, x_o, x_m) - h(p_z) \Big] - H(q),

where E is the energy of whole rows and h differential entropy. With :math:`p_z = p(x_m \mid x_o, z)` at the current
parameters the bracket is the energy of the observed entries there, so the bound touches; and it is linear in moments of
whole rows that are expected at these parameters. That is what `MissingFamily.statistics` needs them for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.data.patterns import patterns
from majorant.data.rows import Rows
from majorant.engine import minimize
from majorant.engine.latents import Latent, as_soft, entropies, tightest
from majorant.engine.problem import Bound
from majorant.models.gaussian_mixture.coordinates import Coordinates
from majorant.models.gaussian_mixture.family import GaussianFamily
from majorant.solvers.covariance_types import COVARIANCES, CovarianceType
from majorant.solvers.gaussian import Array, Mixture
from majorant.solvers.gaussian_missing import Completion

TOTAL_FLOOR = 1e-10
"""Smallest eigenvalue of the total covariance, in units of the columns' variances: of rows with missing entries, a
direction in which they vary less cannot be told from one in which they do not vary."""

SETTLED = 1e-11
"""The total Gaussian is found when no parameter moves by more, in standard deviations of the columns."""


@dataclass
class MissingFamily:
    r"""Soft clusters by the density of the observed entries: ``E_i(z) = -log pi_z - log N(x_io; m_zo, S_zoo)``.

    Rows may hold NaN. Without any the family is `model`, to the last bit. A pattern of observed columns costs a
    factorisation a component in each block; where rows lie in the order of `empirical_measure`, few blocks share one.

    Parameters
    ----------
    model : GaussianFamily
        Of whole rows, in `coordinates`; its M-step is the one used.
    coordinates : Coordinates, optional
        Those in which `model` lives and parameters are; by default those of the rows. The rows themselves cannot be
        brought there, as columns mix. Each energy has their ``log_volume`` added: those of complete rows are in units
        of the coordinates then, as the energies of `model` are.
    """

    model: GaussianFamily
    coordinates: Coordinates | None = None
    n_states: int = field(init=False)
    beta: float = field(init=False)
    slack: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.n_states, self.beta = self.model.n_states, self.model.beta

    def energies(self, theta: Mixture, block: Block) -> NDArray[Any]:
        """``E_i(z)`` of the observed entries, ``-log pi_z`` alone for a row without any."""
        out = np.empty((len(block), self.n_states))
        for rows, family, part, own in self.parts(theta, block):
            out[rows] = family.energies(part.marginal, own)
        return out + self._volume

    def statistics(self, block: Block, q: Latent, theta: Mixture | None) -> Array:
        """Moments of whole rows expected at `theta`, in units of the rows, and minus the entropies of what is missing.

        They are linear in `q` for given `theta` only: the missing entries are latent values too. Before there are
        parameters these come from the standard normal of the coordinates.

        Returns
        -------
        ndarray of shape (n_components, 1 + n_features + second + 1)
        """
        total = self.nothing()
        for rows, family, part, own in self.parts(theta, block):
            total += whole_moments(part, family.statistics(own, q[rows], part.marginal))
        return total

    def tight_pass(self, theta: Mixture, block: Block) -> tuple[float, Bound]:
        free, total = 0.0, Bound(self.nothing(), 0.0, 0.0)
        for _, family, part, own in self.parts(theta, block):
            value, bound = family.tight_pass(part.marginal, own)
            free += value + self._volume * own.weight
            total = total + replace(bound, statistics=whole_moments(part, bound.statistics))
        return free, total

    def solve(self, s: Array, theta: Mixture | None, data: Chunks) -> tuple[Mixture, float]:
        moments, constant = self.in_model(s)
        new, value = self.model.solve(moments, theta, data)
        # Conditional covariances are differences: narrow directions lose digits to wide ones.
        self.slack = self.model.slack * _condition(self._in_rows(new))
        return new, value + constant

    def penalty(self, theta: Mixture) -> float:
        return self.model.penalty(theta)

    def floored(self, theta: Mixture) -> NDArray[np.bool_]:
        """Which components have an eigenvalue on the floor."""
        return self.model.floored(theta)

    def _in_rows(self, theta: Mixture | None) -> Mixture:
        """Parameters in the units of the rows."""
        if theta is None:
            k, d, kind = self.n_states, self.model.n_features, COVARIANCES[self.model.covariance_type]
            one = np.array(np.broadcast_to(kind.identity(d), kind.shape(k, d)))
            theta = Mixture(np.full(k, 1 / k), np.zeros((k, d)), one, kind.name)
        return theta if self.coordinates is None else mixture_in_rows(theta, self.coordinates)

    @property
    def _volume(self) -> float:
        return 0.0 if self.coordinates is None else self.coordinates.log_volume

    def nothing(self) -> Array:
        """Statistics of no rows."""
        d = self.model.n_features if self.coordinates is None else len(self.coordinates.centre)
        return np.zeros((self.n_states, 2 + d + COVARIANCES[self.model.covariance_type].n_second(d)))

    def parts(self, theta: Mixture | None, block: Block) -> Iterator[tuple[Any, GaussianFamily, Completion, Block]]:
        """The rows of each pattern: where they are, the family of their columns, what completes them, their entries."""
        whole, x = self._in_rows(theta), block.columns[0]
        if self.coordinates is None:
            self.model.precision = x.dtype
        for group in patterns(x):
            entries = group.of(x)
            if self.coordinates is not None or not group.is_complete:
                # Single precision would ask for means that it holds exactly, in these columns.
                entries = entries.astype(np.float64, copy=False)
            own = Block(0, (entries,), None if block.weights is None else block.weights[group.rows])
            kind = GaussianFamily if group.observed.any() else _NoColumns
            family = kind(self.n_states, int(group.observed.sum()), self.model.covariance_type, beta=self.beta)
            yield group.rows, family, Completion(whole, group.observed), own

    def in_model(self, s: Array) -> tuple[Array, float]:
        """Moments of whole rows in the model's coordinates, and what a bound's value is beyond the model's."""
        constant = float(s[:, -1].sum())
        if self.coordinates is None:
            return np.ascontiguousarray(s[:, :-1]), constant
        moments, extra = _moved(s[:, :-1], self.coordinates, self.model.covariance_type)
        return moments, constant + extra


class _NoColumns(GaussianFamily):
    """The family of rows of which nothing is observed: all there is to say of them is how many they are."""

    def energies(self, theta: Mixture, block: Block) -> NDArray[Any]:
        with np.errstate(divide="ignore"):
            return np.tile(-np.log(theta.weights), (len(block), 1))

    def statistics(self, block: Block, q: Latent, theta: Mixture | None) -> Array:
        out = np.zeros((self.n_states, 1 + COVARIANCES[self.covariance_type].n_second(0)))
        out[:, 0] = [block.total(share) for share in as_soft(q, self.n_states).T]
        return out

    def tight_pass(self, theta: Mixture, block: Block) -> tuple[float, Bound]:
        free, q = tightest(self.energies(theta, block), self.beta)
        entropy = 0.0 if np.isinf(self.beta) else block.total(entropies(q)) / self.beta
        return block.total(free), Bound(self.statistics(block, q, theta), entropy, 0.0)


def _condition(mixture: Mixture) -> float:
    """The largest ratio of variances among the directions of a component, in standard deviations of its columns."""
    if not mixture.covariance.has_matrices:
        return 1.0
    sd = np.sqrt(np.diagonal(mixture.covariances, axis1=-2, axis2=-1))
    values = np.linalg.eigvalsh(mixture.covariances / (sd[..., :, None] * sd[..., None, :]))
    return float(1.0 / max(values.min(), np.finfo(np.float64).eps))


def whole_moments(part: Completion, moments: Array) -> Array:
    """Moments of whole rows, and what the entropies of their missing entries take from the bound."""
    constant = np.zeros(len(moments)) if part.n_missing == 0 else -moments[:, 0] * part.entropies
    return np.column_stack([part.complete(moments), constant])


def mixture_in_rows(mixture: Mixture, coordinates: Coordinates) -> Mixture:
    """A mixture in coordinates as one of the rows, with the little variance that still directions are given."""
    back, kind = coordinates.back, mixture.covariance
    means = coordinates.centre + np.einsum("kl,lm->km", mixture.means, back)
    covariances = kind.mapped(mixture.covariances, back) + kind.beside(coordinates.still)
    return Mixture(mixture.weights, means, covariances, mixture.covariance_type)


def _moved(moments: Array, coordinates: Coordinates, covariance_type: CovarianceType) -> tuple[Array, float]:
    """Moments of rows as moments in coordinates, and what completed rows expect to pay in still directions."""
    d, forward, kind = len(coordinates.centre), coordinates.forward, COVARIANCES[covariance_type]
    mass, first, second = moments[:, :1], moments[:, 1 : 1 + d], moments[:, 1 + d :]
    extra = kind.second_price(second, coordinates.still_forward)
    return np.hstack([mass, np.einsum("ka,al->kl", first, forward), kind.second_mapped(second, forward)]), extra


class _TotalFamily(MissingFamily):
    """One component, found when its parameters are: the likelihood is flat about them."""

    def settled(self, old: Mixture, new: Mixture, seen: Bound) -> bool:
        moved = [np.abs(new.means - old.means).max(), np.abs(new.covariances - old.covariances).max()]
        return bool(max(moved) <= SETTLED)


def total_gaussian(rows: Rows, *, max_iter: int = 2000) -> Mixture:
    """The normal distribution that is most likely to have given the observed entries: a mixture of one.

    Parameters
    ----------
    rows : Rows
    max_iter : int
        Most steps of EM; they are the more, the more entries are missing.

    Returns
    -------
    Mixture
        One component, "full", in units of the rows' measure; in directions in which the rows do not vary it has a
        ten-billionth of the columns' variances.
    """
    d = len(rows.variances)
    sd = np.where(rows.variances > 0, np.sqrt(rows.variances), 1.0)
    none = np.zeros((0, d))
    columns = Coordinates(np.zeros(d), np.diag(1 / sd), np.diag(sd), none, none.T, -float(np.log(sd).sum()))
    family = _TotalFamily(GaussianFamily(1, d, "full", floor=TOTAL_FLOOR), columns)
    start = Mixture(np.ones(1), np.zeros((1, d)), np.eye(d)[None], "full")
    return mixture_in_rows(minimize(family, rows.data, theta=start, max_iter=max_iter).theta, columns)
