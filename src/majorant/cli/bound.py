"""A proved bound beside a fit, where it costs little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
import polars as pl

from majorant.cli.matrix import Matrix

_MOST_CERTIFIED = 200_000
_BOUND_SHARE, _BOUND_SECONDS = 0.1, 0.02
"""CPU time of a bound: at most this share of that of the fit, or this many seconds."""
_NOT_WORTH_IT = "none; a tenth of the time of the fit is too little to find one (certify, in Python, takes longer)."


def certify(estimator: Any, frame: pl.DataFrame, matrix: Matrix, worked: float) -> None:
    """Add a proved bound to the search report, if the model has one that costs little.

    Where a bound can be told its time that is a tenth of the fit's; else it is the one of least effort.
    """
    if not hasattr(estimator, "certify") or matrix.values.size > _MOST_CERTIFIED:
        return
    search, targets = estimator.search_, () if matrix.target is None else (matrix.target,)
    if _asks_for_more(estimator.certify, 1 + len(targets)) or not np.isfinite(matrix.values).all():
        return
    keywords: dict[str, Any] = {} if matrix.weights is None else {"sample_weight": matrix.weights}
    takes = signature(estimator.certify).parameters
    has_limit = "seconds" in takes
    if has_limit:
        keywords["seconds"] = max(_BOUND_SHARE * worked, _BOUND_SECONDS)
    elif "effort" in takes:
        keywords["effort"] = "fast"
    try:
        made = estimator.certify(frame, *targets, **keywords)
    except ValueError:  # no bound holds for this fit
        return
    if search.certain and not made.proved:
        needless = f"{search.certain[0].lower()}{search.certain[1:]}"
        estimator.search_ = replace(search, why_no_bound=f"needless, as {needless}")
        return
    if has_limit and made.bound <= 0 < made.objective:
        if search.proved_bound is None:
            estimator.search_ = replace(search, why_no_bound=_NOT_WORTH_IT)
        return
    if search.sense == "max":
        estimator.search_ = search.with_bound(made.bound, made.solution)
    elif made.bound > 0:
        estimator.search_ = search.with_bound(made.bound, search.bound_on)


def _asks_for_more(certify: Callable[..., Any], n_given: int) -> bool:
    """Return whether a bound needs arguments of the user besides rows and target."""
    parameters = signature(certify).parameters.values()
    return sum(p.default is p.empty and p.kind is not p.VAR_KEYWORD for p in parameters) > n_given
