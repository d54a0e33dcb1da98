"""Estimates of refits on resampled or simulated rows: standard errors and percentile intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from majorant._numbers import counted
from majorant._told import Told

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Bootstrap(Told):
    """Parameters of refits, their components matched to the fit's.

    Attributes
    ----------
    kind : {"parametric", "case"}
    n_resamples : int
        Refits that were asked for.
    n_failed : int
        Of them, how many ended in an error; `failure` is the first.
    n_degenerate : int
        How many ended at a solution that is not regular. Neither these nor the failed ones count.
    samples : dict of ndarray of shape (n_used, ...)
        By the name of the parameter.
    """

    kind: Literal["parametric", "case"]
    n_resamples: int
    n_failed: int
    n_degenerate: int
    failure: str
    samples: Mapping[str, Array]

    @property
    def n_used(self) -> int:
        """Number of refits that are used."""
        return self.n_resamples - self.n_failed - self.n_degenerate

    def standard_errors(self) -> dict[str, Array]:
        """Return the standard deviations of the refits' parameters, by name."""
        return {name: np.asarray(values.std(axis=0, ddof=1)) for name, values in self.samples.items()}

    def intervals(self, level: float = 0.95) -> dict[str, tuple[Array, Array]]:
        """Return the percentile intervals (low, high), by name."""
        ends = (0.5 - level / 2, 0.5 + level / 2)
        return {name: tuple(np.quantile(values, ends, axis=0)) for name, values in self.samples.items()}

    @property
    def sentence(self) -> str:
        """The method, and the number of refits that are not used."""
        how = "targets drawn from the fit" if self.kind == "parametric" else "rows (or groups) drawn with replacement"
        text = f"{counted(self.n_used, 'refit')} on {how}, each from the fit itself as its start"
        if self.n_failed:
            text += f"; {self.n_failed} of {self.n_resamples} failed ({self.failure})"
        if self.n_degenerate:
            text += f"; {self.n_degenerate} of {self.n_resamples} ended at a solution that is not regular"
        return f"{text}."


def bootstrap_of(kind: Literal["parametric", "case"], ends: Sequence[dict[str, Array] | str]) -> Bootstrap:
    """Return what refits say together.

    Parameters
    ----------
    kind : {"parametric", "case"}
    ends : sequence of dict or str
        Of each refit the parameters by name, the error that it ended in, or an empty text where it is not regular.
    """
    found = [end for end in ends if isinstance(end, dict)]
    failures = [end for end in ends if isinstance(end, str) and end]
    if len(found) < 2:
        raise ValueError(
            f"only {len(found)} of {len(ends)} refits ended at a regular solution"
            f"{f' ({failures[0]})' if failures else ''}: no standard errors can be estimated"
        )
    samples = {name: np.array([end[name] for end in found]) for name in found[0]}
    n_degenerate = len(ends) - len(found) - len(failures)
    return Bootstrap(kind, len(ends), len(failures), n_degenerate, failures[0] if failures else "", samples)
