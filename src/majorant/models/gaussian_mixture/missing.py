"""The normal distribution of observed entries, which defines coordinates where entries are missing."""

from __future__ import annotations

import numpy as np

from majorant.data.chunks import Chunks
from majorant.densities.gaussian import Gaussian, normals
from majorant.densities.gaussian_gaps import GaussianGaps, in_columns, mixture_in_rows
from majorant.engine.mixture import Mixture as Model
from majorant.engine.mixture import OnData, Parameters
from majorant.laws import Independent
from majorant.laws.independent import Weights
from majorant.solvers.covariance_types import FULL, Covariance
from majorant.solvers.gaussian import Array, Mixture

TOTAL_FLOOR = 1e-12
"""Smallest eigenvalue of the total covariance, in units of the columns' variances: of rows with missing entries, a
direction in which they vary less cannot be told from one in which they do not vary."""

SETTLED = 1e-13
"""The total Gaussian is found when no parameter moves by more, in standard deviations of the columns."""


def total_gaussian(data: Chunks, variances: Array, kind: Covariance = FULL, *, max_iter: int = 2000) -> Mixture:
    """Return the maximum-likelihood normal distribution of the observed entries: a mixture of one.

    Parameters
    ----------
    data : Chunks
    variances : ndarray of shape (n_features,)
        Weighted variance of each column over its entries.
    kind : Covariance, default=FULL
        With diagonal covariances nothing is known of a missing entry but its column.
    max_iter : int
        Most steps of EM; they are the more, the more entries are missing.

    Returns
    -------
    Mixture
        One component; in directions in which the rows do not vary it has a
        trillionth of the columns' variances.
    """
    d = len(variances)
    columns = in_columns(np.where(variances > 0, np.sqrt(variances), 1.0), kind)
    density = GaussianGaps(Gaussian(kind, d, TOTAL_FLOOR), columns)
    on, one = OnData(Model(density, Independent(), 1), data), np.ones(1)
    theta = Parameters(normals([Mixture(one, np.zeros((1, d)), kind.identity(d)[None], kind.name)]), Weights(one[None]))
    for _ in range(max_iter):  # until parameters rest: the likelihood is flat about them
        old, theta = theta.density, on.moved(theta, on.seen(theta), one)
        moved = np.abs(theta.density.means - old.means).max(), np.abs(theta.density.covariances - old.covariances).max()
        if max(moved) <= SETTLED:
            break
    return mixture_in_rows(density.model.mixture(theta.density, 0, one), columns)
