"""Complete rows of Gaussian variables: factor analysis with a penalty, with a closed form in all but the variances."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from majorant.models.harmonium.layout import Parameters

Array = NDArray[np.float64]

WIDEST = 500
"""Largest number of columns for which all of their covariance is taken, if there are not fewer rows."""
LANCZOS = 1e-9
"""Relative residual at which Lanczos' method stops."""


def is_wide(n_rows: int, n_columns: int) -> bool:
    """Return whether there are so many more columns than rows that their covariance is never made."""
    return n_rows < n_columns and n_columns > WIDEST


def takes(n_rows: int, n_columns: int) -> bool:
    """Return whether eigenvectors cost less than the gradients that they replace."""
    return 0 < n_columns <= WIDEST or is_wide(n_rows, n_columns)


@dataclass(frozen=True)
class ClosedForm(ABC):
    r"""The objective of complete rows of Gaussian variables as a function of log s: all else has a closed form.

    With C the covariance of the rows, P the penalties and :math:`\nu_k, v_k` the eigenvalues and eigenvectors of

    .. math:: N(s) = S^{-1/2} (C - \lambda P) S^{-1/2}, \qquad S = \operatorname{diag}(s),

    the objective is least, for given s, at :math:`U = S^{-1/2} (\sqrt{1 - 1/\nu_k}\, v_k)_k` over the K largest
    eigenvalues that exceed 1, where it is

    .. math:: F(s) = \tfrac12 \sum_j [\log 2 \pi s_j + C_{jj} / s_j] + \tfrac12 \sum_k [\log \nu_k - \nu_k + 1].

    L-BFGS over log s alone does not crawl along weak factors, whose size and noise depend on each other. Without
    penalty this is Jöreskog's method [1]_.

    References
    ----------
    .. [1] K. G. Jöreskog, "Some contributions to maximum likelihood factor analysis", Psychometrika, 1967.
    """

    mean: Array  # (n_gaussian,)
    penalties: Array  # (n_gaussian,): penalty of each row of U: the diagonal of lambda P
    n_components: int

    @property
    @abstractmethod
    def variances(self) -> Array:
        """Variances of the columns."""

    @abstractmethod
    def largest(self, root: Array) -> tuple[Array, Array]:
        """Return the largest eigenvalues of N, at least those above 1, and their eigenvectors; root is 1 / sqrt(s)."""

    def _factors(self, log_variance: Array) -> tuple[Array, Array]:
        """Return the eigenvalues above 1, at most `n_components`, in falling order; and their eigenvectors."""
        values, vectors = self.largest(np.exp(-log_variance / 2))
        used = values > 1
        return values[used][::-1], vectors[:, used][:, ::-1]

    def left_by(self, at: Parameters) -> Array:
        """Return log variances for which the model with the weights of `at` matches the variances of the columns."""
        u, s = at.weights, at.variance
        inverse = np.linalg.inv(np.eye(u.shape[1]) - (u.T * s) @ u)
        least = np.finfo(np.float64).tiny  # a column may be constant in the rows that are not held out
        return np.asarray(
            np.log(np.maximum(self.variances, least)) - np.log1p(s * np.einsum("jk,jk->j", u @ inverse, u))
        )

    def value_and_slope(self, log_variance: Array) -> tuple[float, Array]:
        """Return the objective and its gradient in log s."""
        values, vectors = self._factors(log_variance)
        shares = self.variances * np.exp(-log_variance)
        value = (log_variance + shares + np.log(2 * np.pi)).sum() + (np.log(values) - values + 1).sum()
        return float(value) / 2, (1 - shares + vectors**2 @ (values - 1)) / 2

    def parameters(self, log_variance: Array) -> Parameters:
        """Return the optimal parameters for given s; unused components are zero."""
        values, vectors = self._factors(log_variance)
        weights = np.zeros((len(log_variance), self.n_components))
        weights[:, : len(values)] = np.exp(-log_variance / 2)[:, None] * vectors * np.sqrt(1 - 1 / values)
        intercept = self.mean * np.exp(-log_variance) - weights @ (self.mean @ weights)
        return Parameters(weights, intercept, log_variance)


@dataclass(frozen=True)
class FactorAnalysis(ClosedForm):
    """Factor analysis by the covariance of all columns."""

    covariance: Array  # (n_gaussian, n_gaussian)

    @property
    def variances(self) -> Array:
        return np.diag(self.covariance)

    def largest(self, root: Array) -> tuple[Array, Array]:
        matrix = self.covariance * root * root[:, None]
        matrix.ravel()[:: len(root) + 1] -= self.penalties * root**2
        n = len(root)
        found = eigh(
            matrix, subset_by_index=[max(n - self.n_components, 0), n - 1], overwrite_a=True, check_finite=False
        )
        return found[0], found[1]


@dataclass(frozen=True)
class WideFactorAnalysis(ClosedForm):
    """Factor analysis of more columns than rows, by Lanczos' method on a root of their covariance."""

    # (n_rows, n_gaussian): R with C = R'R: rows about their mean, times the roots of their shares of all weight
    root: Array

    @cached_property
    def variances(self) -> Array:
        return np.asarray(np.einsum("ij,ij->j", self.root, self.root))

    @cached_property
    def n_positive(self) -> int:
        """Number of positive eigenvalues of N, the same for all s: that of C - lambda P by Sylvester's law."""
        scaled = self.root / np.sqrt(self.penalties)
        return int(np.sum(np.linalg.eigvalsh(scaled @ scaled.T) > 1))

    def largest(self, root: Array) -> tuple[Array, Array]:
        n, k = len(root), min(self.n_components, self.n_positive)
        if k == 0:
            return np.empty(0), np.empty((n, 0))
        scaled, less = self.root * root, self.penalties * root**2

        def times(v: Array) -> Array:
            return np.asarray(scaled.T @ (scaled @ v) - less * v)

        start = np.random.default_rng(0).normal(size=n)
        values, vectors = eigsh(
            LinearOperator((n, n), matvec=times, dtype=np.float64), k=k, which="LA", v0=start, tol=LANCZOS
        )
        order = np.argsort(values, kind="stable")
        return values[order], vectors[:, order]
