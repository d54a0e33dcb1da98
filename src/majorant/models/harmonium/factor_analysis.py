r"""Rows of Gaussian views alone: factor analysis, in which all but the variances given the latents has a closed form.

With C the covariance of the rows, P the penalties and :math:`\nu_k, v_k` the eigenvalues and eigenvectors of

.. math:: N(s) = S^{-1/2} (C - \lambda P) S^{-1/2}, \qquad S = \operatorname{diag}(s),

the objective is least, for given s, at :math:`U = S^{-1/2} (\sqrt{1 - 1/\nu_k}\, v_k)_k` over the K largest eigenvalues
that exceed 1, where it is

.. math:: F(s) = \tfrac12 \sum_j [\log 2 \pi s_j + C_{jj} / s_j] + \tfrac12 \sum_k [\log \nu_k - \nu_k + 1].

So L-BFGS has the logarithms of s alone to find, from second moments: it does not crawl along weak factors, whose size
and noise depend on each other. Without penalty this is Jöreskog's method [1]_.

References
----------
.. [1] K. G. Jöreskog, "Some contributions to maximum likelihood factor analysis", Psychometrika, 1967.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from majorant.models.harmonium.layout import Parameters

Array = NDArray[np.float64]

WIDEST = 500
"""Columns up to which eigenvectors of their covariance are cheap beside passes over rows."""


@dataclass(frozen=True)
class FactorAnalysis:
    """The objective as a function of the logarithms of s.

    Attributes
    ----------
    mean : ndarray of shape (n_gaussian,)
    covariance : ndarray of shape (n_gaussian, n_gaussian)
    penalties : ndarray of shape (n_gaussian,)
        What each row of U is penalised by: the diagonal of lambda P.
    n_components : int
    """

    mean: Array
    covariance: Array
    penalties: Array
    n_components: int

    def _factors(self, log_variance: Array) -> tuple[Array, Array]:
        """The eigenvalues that exceed 1, at most `n_components`, falling; and their vectors."""
        root = np.exp(-log_variance / 2)
        matrix = self.covariance * root * root[:, None]
        matrix.ravel()[:: len(root) + 1] -= self.penalties * root**2
        n = len(root)
        values, vectors = eigh(
            matrix, subset_by_index=[max(n - self.n_components, 0), n - 1], overwrite_a=True, check_finite=False
        )
        used = values > 1
        return values[used][::-1], vectors[:, used][:, ::-1]

    def left_by(self, at: Parameters) -> Array:
        """Logarithms of variances with which, and with the weights of `at`, columns vary about as much as they do."""
        u, s = at.weights, at.variance
        inverse = np.linalg.inv(np.eye(u.shape[1]) - (u.T * s) @ u)
        least = np.finfo(np.float64).tiny  # rows that are not held out may all have the same
        return np.asarray(
            np.log(np.maximum(np.diag(self.covariance), least)) - np.log1p(s * np.einsum("jk,jk->j", u @ inverse, u))
        )

    def value_and_slope(self, log_variance: Array) -> tuple[float, Array]:
        """The objective and its gradient in log s."""
        values, vectors = self._factors(log_variance)
        shares = np.diag(self.covariance) * np.exp(-log_variance)
        value = (log_variance + shares + np.log(2 * np.pi)).sum() + (np.log(values) - values + 1).sum()
        return float(value) / 2, (1 - shares + vectors**2 @ (values - 1)) / 2

    def parameters(self, log_variance: Array) -> Parameters:
        """All parameters at their best for given s; components beyond those used are zero."""
        values, vectors = self._factors(log_variance)
        weights = np.zeros((len(log_variance), self.n_components))
        weights[:, : len(values)] = np.exp(-log_variance / 2)[:, None] * vectors * np.sqrt(1 - 1 / values)
        intercept = self.mean * np.exp(-log_variance) - weights @ (self.mean @ weights)
        return Parameters(weights, intercept, log_variance)
