"""The law of the states of a hidden Markov model: the chain of the settings, and known states."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from majorant._numbers import briefly
from majorant._validation import check_choice, check_real
from majorant.laws import Chain, GatedChain
from majorant.laws.tuples import TupleChain
from majorant.models.hidden_markov.means import MOST_TUPLES
from majorant.models.hidden_markov.sequences import Sequences


def chain_of(
    k: int, start: str | ArrayLike, allowed: ArrayLike | None, width: int = 0, sticky: float = 0.0, order: int = 0
) -> Chain | GatedChain:
    """Return the law of the states; its steps depend on so many covariates, with the constant, or on none.

    Where rows depend on the states of some rows before, `order`, it is a law of tuples.
    """
    if allowed is None:
        may = None
    else:
        may = np.asarray(allowed)
        may = may.astype(bool) if may.dtype.kind in "iu" and np.isin(may, (0, 1)).all() else may
        if may.shape != (k, k) or may.dtype.kind != "b" or not may.any(axis=1).all():
            raise ValueError(
                f"allowed must be True or False, or 1 or 0, for each transition (row to column), shape ({k}, {k}), "
                f"with one at least from every state; got {may.dtype} of shape {may.shape}"
            )
    check_real("sticky", sticky, low=0.0, high=float(np.finfo(np.float64).max))
    if width and sticky:
        raise ValueError("with gating there are no counts of steps to add to: leave sticky out")
    if width and may is not None and not may.diagonal().all():
        raise ValueError("with gating a state may always stay: allow the diagonal of allowed")
    if width and order:
        raise ValueError("an autoregression about switching means has transitions without covariates: leave gating out")
    if order and k ** (order + 1) > MOST_TUPLES:
        raise ValueError(
            f"{k} states and {order} lags make {k ** (order + 1):,} tuples of states, of which at most {MOST_TUPLES} "
            "can be followed: use fewer states or lags"
        )
    law = partial(TupleChain, order) if order else Chain
    if isinstance(start, str):
        check_choice("start", start, ["free", "stationary"], or_else=", or probabilities")
        if start == "stationary" and may is not None and not (np.linalg.matrix_power(may + np.eye(k), k) > 0).all():
            raise ValueError("start='stationary' needs a way from every state to every other; allowed has none")
        if width and start == "stationary":
            raise ValueError("with gating transitions change, and have no stationary law: leave start='stationary' out")
        return GatedChain(width, start, may) if width else law(start, may, sticky)
    first = np.asarray(start, dtype=np.float64)
    if first.shape != (k,) or not (first >= 0).all() or abs(first.sum() - 1) > 1e-9:
        raise ValueError(
            f"start must be 'free', 'stationary' or {k} probabilities that add up to 1; got {briefly(start)}"
        )
    return GatedChain(width, first, may) if width else law(first, may, sticky)


def check_gated(name: str, given: Any, is_gated: bool) -> None:
    """Refuse covariates of transitions where the fit had none, and none where it had some."""
    if (given is not None) != is_gated:
        raise ValueError(
            f"the transitions of this fit depend on covariates: give {name}, with the columns of the fit's gating"
            if is_gated
            else f"the transitions of this fit depend on no covariates: leave {name} out"
        )


def check_possible(labels: NDArray[np.intp], sequences: Sequences, k: int, chain: Chain | GatedChain) -> None:
    """Refuse known states that a given start or forbidden transitions rule out."""
    if isinstance(chain, TupleChain):
        raise ValueError("an autoregression about switching means takes no known states: leave component_labels out")
    if not chain.numbers_states:
        return
    first = np.ones(k, dtype=bool) if isinstance(chain.start, str) else chain.start > 0
    allowed = np.ones((k, k), dtype=bool) if chain.allowed is None else chain.allowed
    order = sequences.order
    begins = np.diff(sequences.codes[order], prepend=-1) != 0
    here: NDArray[np.bool_] = first
    for row, is_first in zip(order.tolist(), begins.tolist(), strict=True):
        here = first if is_first else np.asarray(allowed[here].any(axis=0))
        if labels[row] >= 0:
            if not here[labels[row]]:
                raise ValueError(
                    f"component_labels has state {labels[row]} in row {row}, where start, allowed and the labels "
                    f"before it leave only {', '.join(map(str, np.flatnonzero(here)))}: change one of them"
                )
            here = np.arange(k) == labels[row]
