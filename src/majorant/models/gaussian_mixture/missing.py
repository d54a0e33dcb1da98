"""The normal distribution of observed entries, which defines coordinates where entries are missing."""

from __future__ import annotations

import numpy as np

from majorant.data.chunks import Chunks
from majorant.densities.gaussian import Gaussian, normals
from majorant.densities.gaussian_gaps import GaussianGaps, in_columns, mixture_in_rows
from majorant.engine.descent import descend
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
PLAIN_STEPS, MOST_STEPS = 100, 1000
"""Steps of EM until parameters rest, and extrapolated ones after them until little is left to gain."""
ENOUGH = 1e-4
"""Log-likelihood for each row that may be left to gain after the plain steps: more does nothing for coordinates."""


def total_gaussian(data: Chunks, variances: Array, kind: Covariance = FULL) -> Mixture:
    """Return the maximum-likelihood normal distribution of the observed entries, or one nearly as likely.

    Parameters
    ----------
    data : Chunks
    variances : ndarray of shape (n_features,)
        Weighted variance of each column over its entries.
    kind : Covariance, default=FULL
        With diagonal covariances nothing is known of a missing entry but its column.

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
    for _ in range(PLAIN_STEPS):  # until parameters rest: the likelihood is flat about them
        old, theta = theta.density, on.moved(theta, on.seen(theta), one)
        moved = np.abs(theta.density.means - old.means).max(), np.abs(theta.density.covariances - old.covariances).max()
        if max(moved) <= SETTLED:
            break
    else:  # where few rows have all entries, steps are slow, and may lead to a singular covariance
        theta = descend(on, theta, tol=ENOUGH, max_iter=MOST_STEPS).theta
    return mixture_in_rows(density.model.mixture(theta.density, 0, one), columns)
