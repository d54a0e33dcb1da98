"""Information criteria of a fit: smaller is better."""

from __future__ import annotations

import numpy as np


def criteria(deviance: float, n: float, p: int, entropy: float) -> dict[str, float]:
    """Return the criteria by name.

    Parameters
    ----------
    deviance : float
        Minus twice the log-likelihood.
    n : float
        Weight of the rows.
    p : int
        Number of parameters.
    entropy : float
        Of the responsibilities.
    """
    log_n = float(np.log(n))
    bic, clc = deviance + p * log_n, deviance + 2 * entropy
    return {
        "aic": deviance + 2 * p,
        "aic3": deviance + 3 * p,
        "bic": bic,
        "sabic": deviance + p * float(np.log((n + 2) / 24)),
        "caic": bic + p,
        "clc": clc,
        "icl": bic + 2 * entropy,
        "awe": clc + 2 * p * (1.5 + log_n),
    }
