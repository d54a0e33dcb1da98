"""Quadratic approximation of a latent-class model's cost near uniform assignments, without a matrix over rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant.engine.threads import one_thread
from majorant.solvers.covariance import centred_combinations, covariance, mean_of, weighted_gram

NEGLIGIBLE = 1e-10
"""Variances below this share of the largest count as zero."""


@dataclass(frozen=True)
class PrincipalAxes:
    """Rows along the axes in which their weighted covariance is diagonal."""

    # (n_axes, n_rows): scores of unit weighted variance and mean zero, widest axis first; transposed, so that sums over
    # rows read memory in order
    scores: NDArray[np.float64]
    deviations: NDArray[np.float64]  # (n_axes,): standard deviation along each axis
    axes: NDArray[np.float64]  # (n_features, n_axes): orthonormal
    mean: NDArray[np.float64]  # (n_features,)

    @property
    def coordinates(self) -> NDArray[np.float64]:
        """The centred rows along the axes, shape (n_rows, n_axes)."""
        return np.ascontiguousarray((self.scores * self.deviations[:, None]).T)


def principal_axes(x: Any, shares: NDArray[np.float64], n_axes: int | None = None) -> PrincipalAxes:
    """Compute the axes of the weighted covariance, from the smaller of its two Gram matrices.

    Parameters
    ----------
    x : ndarray or CSR matrix of shape (n_rows, n_features)
        Sparse rows are not made dense; only the covariance or Gram matrix, of side ``min(n_rows, n_features)``, is.
    shares : ndarray of shape (n_rows,)
        Nonnegative, of sum one.
    n_axes : int, optional
        Largest number of axes; the widest are kept.

    Returns
    -------
    PrincipalAxes
        Without axes along which rows do not vary; if rows do not vary at all, one axis of zeros.
    """
    n, p = x.shape
    is_sparse = sparse.issparse(x)
    mean = mean_of(x, shares)
    with one_thread():  # its sums depend on how many threads it may use
        variances, vectors = np.linalg.eigh(covariance(x, shares, mean) if p <= n else weighted_gram(x, shares, mean))
    order = np.argsort(-variances, kind="stable")[:n_axes]
    rounding = (64 * np.finfo(np.float64).eps * np.abs(x.data if is_sparse else x).max(initial=0.0)) ** 2
    kept = order[variances[order] > max(NEGLIGIBLE * variances.max(initial=0.0), rounding)]
    deviations = np.sqrt(variances[kept])
    if not kept.size:
        return PrincipalAxes(np.zeros((1, n)), np.zeros(1), np.zeros((p, 1)), mean)
    axes = vectors[:, kept]
    if p > n:
        with one_thread():
            axes = centred_combinations(x, mean, np.sqrt(shares)[:, None] * axes) / deviations
    axes = _signed(axes)
    if is_sparse:
        coordinates = np.asarray(x @ axes) - np.einsum("p,pr->r", mean, axes)
    else:
        coordinates = np.einsum("np,pr->nr", x - mean, axes)
    return PrincipalAxes(np.ascontiguousarray(coordinates.T / deviations[:, None]), deviations, axes, mean)


def _signed(axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each axis with the sign that makes its largest entry positive."""
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None, :], axis=0)
    return np.asarray(axes * np.where(largest < 0, -1.0, 1.0))


@dataclass(frozen=True)
class QuadraticApproximation:
    r"""The best cost of given soft assignments, to second order around uniform ones.

    Of a latent-class model with softmax regression as its prior, :math:`p(z=k|x) \propto \exp(w_k^T x + b_k)`, and
    :math:`p(y=m|z=k) = \alpha_{km}`, the cost of assignments :math:`\xi` minimised over all parameters is

    .. math::
        J(\xi) = H(\pi) + \tfrac{K}{2} \sum_k \langle \xi_k, Q \xi_k \rangle_\omega + O(|\xi - 1/K|^3), \qquad
        Q = I - U h U^T \Omega - Y \pi^{-1} Y^T \Omega,

    where :math:`\omega` are shares of the rows, :math:`\Omega` their diagonal matrix, :math:`\langle a, b\rangle_\omega
    = \sum_n \omega_n a_n b_n`, U the centred scores of unit variance along the principal axes,
    :math:`h_j = s_j^2 / (s_j^2 + \lambda)`, Y the labels and :math:`\pi` their shares. In clustering every row has
    its own label (Y = I); then :math:`Q = -U h U^T \Omega`.

    Parameters
    ----------
    scores : ndarray of shape (n_axes, n_rows)
        U transposed: of weighted mean zero and unit variance (`PrincipalAxes`).
    shrinkage : ndarray of shape (n_axes,)
        h.
    shares : ndarray of shape (n_rows,)
        Positive, of sum one.
    labels : ndarray of shape (n_rows, n_labels), optional
        Nonnegative rows of sum one, every label with weight; None for clustering.

    References
    ----------
    .. [1] A. Joulin, F. Bach, J. Ponce, "Efficient optimization for discriminative latent class models",
       NIPS 2010, section 3.

    Examples
    --------
    >>> x = np.array([[-1.0], [-1.0], [1.0], [1.0]])
    >>> axes = principal_axes(x, np.full(4, 0.25))
    >>> near = QuadraticApproximation.of(axes, alpha=0.25, shares=np.full(4, 0.25))
    >>> halves = np.repeat(np.eye(2), 2, axis=0)
    >>> round(float(near.quadratic(halves)), 3)
    -0.4
    """

    scores: NDArray[np.float64]
    shrinkage: NDArray[np.float64]
    shares: NDArray[np.float64]
    labels: NDArray[np.float64] | None = None

    @classmethod
    def of(
        cls,
        axes: PrincipalAxes,
        alpha: float,
        shares: NDArray[np.float64],
        labels: NDArray[np.float64] | None = None,
    ) -> QuadraticApproximation:
        r"""Return the approximation for the penalty :math:`\frac{\alpha}{2K} |w|^2`."""
        variances = axes.deviations**2
        return cls(axes.scores, variances / (variances + alpha), shares, labels)

    @property
    def label_entropy(self) -> float:
        """Entropy of the labels' shares (for clustering, of the rows' shares): the cost at uniform assignments."""
        shares = self.shares if self.labels is None else self._label_shares(self.labels)
        return -float(np.sum(shares * np.log(shares, out=np.zeros_like(shares), where=shares > 0)))

    def apply(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``Q v`` for each column of `v`, shape (n_rows, n_columns), in time linear in rows."""
        columns = np.ascontiguousarray(v.T)
        weighted = columns * self.shares
        inner = np.einsum("rn,cn->rc", self.scores, weighted) * self.shrinkage[:, None]
        explained = np.einsum("rc,rn->cn", inner, self.scores)
        if self.labels is None:
            return np.ascontiguousarray(-explained.T)
        means = np.einsum("nm,cn->mc", self.labels, weighted) / self._label_shares(self.labels)[:, None]
        return np.asarray((columns - explained).T - np.einsum("nm,mc->nc", self.labels, means))

    def quadratic(self, v: NDArray[np.float64]) -> float:
        """Return ``sum_k <v_k, Q v_k>`` of the columns of `v`."""
        return float(np.einsum("n,nk,nk->", self.shares, v, self.apply(v)))

    def cost(self, xi: NDArray[np.float64]) -> float:
        """Return the approximate cost of assignments, shape (n_rows, n_classes), rows of sum one."""
        return self.label_entropy + int(xi.shape[1]) / 2 * self.quadratic(xi)

    def _label_shares(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.einsum("n,nm->m", self.shares, labels))
