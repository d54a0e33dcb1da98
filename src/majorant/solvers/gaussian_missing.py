r"""Gaussian mixtures of rows with missing entries (NaN): densities of observed entries, expectations of missing ones.

Given its component, a row's missing entries are normal about a linear function of the observed ones,

.. math::
   x_m \mid x_o, k \sim N\big(\mu_{k,m} + A_k (x_o - \mu_{k,o}),\; C_k\big), \qquad
   A_k = \Sigma_{k,mo} \Sigma_{k,oo}^{-1}, \qquad C_k = \Sigma_{k,mm} - A_k \Sigma_{k,om}.

So EM needs only moments of the observed columns for the rows of a pattern: those of the completed rows are linear in
them. The cost of missing entries is one factorisation per pattern and component.

References
----------
.. [1] R. J. A. Little, D. B. Rubin, *Statistical Analysis with Missing Data*, 3rd ed., Wiley, 2019, chapter 11.
.. [2] Z. Ghahramani, M. I. Jordan, "Supervised learning from incomplete data via an EM approach", NIPS 6, 1994.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.patterns import patterns
from majorant.engine.triangles import lower, symmetric
from majorant.solvers.covariance_types import SPHERICAL
from majorant.solvers.gaussian import LOG_2PI, Array, Mixture

Mask = NDArray[np.bool_]


def marginal(mixture: Mixture, observed: Mask) -> Mixture:
    """Return the mixture of some of the columns; the mixture itself if they are all."""
    if observed.all():
        return mixture
    there = np.flatnonzero(observed)
    covariances = mixture.covariance.of_columns(mixture.covariances, there)
    return Mixture(mixture.weights, mixture.means[:, there], covariances, mixture.covariance_type)


@dataclass(frozen=True)
class Completion:
    """The marginal distribution of some columns, and the conditional one of the others given these."""

    mixture: Mixture  # the mixture of all columns
    observed: Mask

    @cached_property
    def marginal(self) -> Mixture:
        return marginal(self.mixture, self.observed)

    @property
    def n_missing(self) -> int:
        return int(len(self.observed) - self.observed.sum())

    @cached_property
    def _conditionals(self) -> tuple[Array, Array]:
        """Slopes ``A`` and covariances ``C``, by component, for types with covariance matrices."""
        there, gone = np.flatnonzero(self.observed), np.flatnonzero(~self.observed)
        covariances = self.mixture.covariances.reshape(-1, len(self.observed), len(self.observed))
        across, rest = covariances[:, gone[:, None], there], covariances[:, gone[:, None], gone]
        if len(there) == 0:
            return across, rest
        factors = self.marginal.precision_factors()[0].reshape(-1, len(there), len(there))
        whitened = np.einsum("kmo,kop->kmp", across, factors)
        slopes = np.einsum("kmp,kop->kmo", whitened, factors)
        return slopes, rest - np.einsum("kmp,knp->kmn", whitened, whitened)

    @property
    def entropies(self) -> Array:
        """Differential entropy of the missing entries given the observed ones, by component."""
        rest = self.mixture.precision_factors()[1]
        if self.observed.any():
            rest = rest - self.marginal.precision_factors()[1]
        return np.asarray(0.5 * (self.n_missing * (1 + LOG_2PI) + rest))

    def means(self, x: NDArray[Any]) -> Array:
        """Return the expected missing entries of rows given their observed ones and each component.

        Parameters
        ----------
        x : ndarray of shape (n_rows, n_observed)

        Returns
        -------
        ndarray of shape (n_rows, n_components, n_missing)
        """
        centres = self.mixture.means[:, ~self.observed]
        shape = (len(x), *centres.shape)
        if not self.mixture.covariance.has_matrices:
            return np.broadcast_to(centres, shape)
        slopes = np.broadcast_to(self._conditionals[0], (*centres.shape, x.shape[1]))
        difference = x[:, None, :] - self.marginal.means
        return np.asarray(centres + np.einsum("iko,kmo->ikm", difference, slopes))

    def complete(self, moments: Array) -> Array:
        """Return expected moments of whole rows about the components' means, from moments of their observed columns.

        Parameters
        ----------
        moments : ndarray of shape (n_components, 1 + n_observed + second)
            Moments of the observed columns, from `majorant.solvers.gaussian.moments`.

        Returns
        -------
        ndarray of shape (n_components, 1 + n_features + second)
        """
        there, gone = np.flatnonzero(self.observed), np.flatnonzero(~self.observed)
        if len(gone) == 0:
            return moments
        d, p = len(self.observed), len(there)
        kind = self.mixture.covariance
        mass, first, second = moments[:, :1], moments[:, 1 : 1 + p], moments[:, 1 + p :]
        out = np.zeros((len(moments), 1 + d + kind.n_second(d)))
        out[:, :1] = mass
        sums, squares = out[:, 1 : 1 + d], out[:, 1 + d :]
        sums[:, there] = first
        if kind is SPHERICAL:
            squares[:] = second + mass * self.n_missing * self.mixture.covariances[:, None]
        elif not kind.has_matrices:
            squares[:, there] = second
            squares[:, gone] = mass * self.mixture.covariances[:, gone]
        else:
            slopes, covariances = self._conditionals
            slopes = np.broadcast_to(slopes, (len(moments), *slopes.shape[1:]))
            sums[:, gone] = np.einsum("kmo,ko->km", slopes, first)
            across = np.einsum("kmo,kop->kmp", slopes, symmetric(second, p))
            rest = np.einsum("kmo,kno->kmn", across, slopes) + mass[:, :, None] * covariances
            known = (second, across.reshape(len(moments), -1), rest.reshape(len(moments), -1))
            squares[:] = np.hstack(known)[:, _places(self.observed.tobytes())]
        return out


@lru_cache(maxsize=4096)
def _places(observed: bytes) -> NDArray[np.intp]:
    """Return the positions of a matrix's lower triangle among its concatenated parts.

    The parts are the lower triangle of the observed columns, then rows of missing against observed columns, then rows
    of missing against missing ones.
    """
    there = np.frombuffer(observed, dtype=bool)
    p, m = int(there.sum()), int((~there).sum())
    row, column = lower(p)
    places = np.empty((len(there), len(there)), dtype=np.intp)
    o, g = np.flatnonzero(there), np.flatnonzero(~there)
    places[o[row], o[column]] = places[o[column], o[row]] = np.arange(len(row))
    places[np.ix_(g, o)] = len(row) + np.arange(m * p).reshape(m, p)
    places[np.ix_(o, g)] = places[np.ix_(g, o)].T
    places[np.ix_(g, g)] = len(row) + m * p + np.arange(m * m).reshape(m, m)
    found = places[lower(len(there))]
    found.flags.writeable = False
    return found


def log_densities(mixture: Mixture, x: NDArray[Any]) -> Array:
    """Return the log-density of the observed entries of each row under each component, zero for a row that has none.

    Parameters
    ----------
    x : ndarray of shape (n_rows, n_features)
        NaN where an entry is missing. The result of a complete row does not depend on the other rows.

    Returns
    -------
    ndarray of shape (n_rows, n_components)

    Examples
    --------
    >>> import numpy as np
    >>> mixture = Mixture(np.ones(1), np.zeros((1, 2)), np.array([[[4.0, 1.0], [1.0, 1.0]]]), "full")
    >>> bool(log_densities(mixture, np.array([[2.0, np.nan]]))[0, 0] == -0.5 * (1 + np.log(4) + np.log(2 * np.pi)))
    True
    """
    out = np.zeros((len(x), mixture.n_components))
    for group in patterns(x):
        if group.observed.any():
            out[group.rows] = marginal(mixture, group.observed).log_densities(group.of(x))
    return out


def impute(mixture: Mixture, x: NDArray[Any]) -> NDArray[Any]:
    r"""Return the rows with missing entries replaced by their expectation given the observed ones.

    .. math:: E(x_m \mid x_o) = \sum_k r_k(x_o) \big(\mu_{k,m} + A_k (x_o - \mu_{k,o})\big),

    with :math:`r_k(x_o)` the responsibilities for the observed entries.

    Parameters
    ----------
    x : ndarray of shape (n_rows, n_features)

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        A copy of `x`, of its type.

    Examples
    --------
    >>> import numpy as np
    >>> mixture = Mixture(np.ones(1), np.zeros((1, 2)), np.array([[[4.0, 1.0], [1.0, 1.0]]]), "full")
    >>> impute(mixture, np.array([[2.0, np.nan], [np.nan, np.nan]]))
    array([[2. , 0.5],
           [0. , 0. ]])
    """
    out = x.copy()
    with np.errstate(divide="ignore"):
        log_shares = np.log(mixture.weights)
    for group in patterns(x):
        if group.is_complete:
            continue
        part, rows = Completion(mixture, group.observed), group.of(x)
        joint = log_shares + (part.marginal.log_densities(rows) if group.observed.any() else np.zeros((len(rows), 1)))
        shares = np.exp(joint - joint.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        filled = out[group.rows]
        filled[:, ~group.observed] = np.einsum("ik,ikm->im", shares, part.means(rows))
        out[group.rows] = filled
    return out
