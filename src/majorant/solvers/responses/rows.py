"""Targets with the columns and offsets of their predictors, under many models at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from majorant import _kernels
from majorant.solvers.responses.counts import Binomial, Poisson
from majorant.solvers.responses.real import Gamma, Gaussian, Student
from majorant.solvers.responses.response import Response, Table

COMPILED: dict[type[Response], int] = {Gaussian: 0, Student: 1, Poisson: 2, Binomial: 3, Gamma: 4}
"""Families whose passes are compiled, and their numbers there; others, and what is derived from these, use methods."""
ONE = np.ones(1)


@dataclass(frozen=True)
class ResponseRows:
    """Rows of one family. A model is a vector of coefficients, and a dispersion.

    Results do not depend on how many models are asked for at a time.
    """

    response: Response
    columns: Table  # (p, n)
    y: Table  # (n,)
    # (n,): zero and one where they are None
    offset: Table | None = None
    trials: Table | None = None

    def log_density(self, coef: Table, dispersion: Table) -> Table:
        """Return the log density of each row under each model, (m, n)."""
        response, given = self.response, (dispersion[:, None], self._trials)
        if type(response) not in COMPILED:
            return np.asarray(response.log_density(self.y, self.predicted(coef), *given))
        out = self._losses(coef, dispersion)
        peak = response.peak(self.y, *given) if response.has_dispersion else self._peak
        return np.subtract(peak, out, out=out)

    def deviance(self, coef: Table) -> Table:
        """Return the deviance of each row under each model, (m, n)."""
        if type(self.response) not in COMPILED:
            return np.maximum(self.response.deviance(self.y, self.predicted(coef), self._trials), 0.0)
        return 2.0 * self._losses(coef, np.ones(len(coef)))

    def sums(self, coef: Table, dispersion: Table, q: Table) -> Table:
        """Return the weighted sums of a step of Newton's, (m, 2 + p + p (p + 1) / 2), for weights (m, n).

        They are the sum of weights, of `Response.spread`, and, times the dispersion, of score and information (lower
        triangle) of the coefficients.
        """
        (m, p), response = coef.shape, self.response
        out = np.zeros((m, 2 + p + p * (p + 1) // 2))
        q = np.ascontiguousarray(q)
        if type(response) in COMPILED:
            _kernels.response_sums(*self._arguments, np.ascontiguousarray(coef), dispersion, q, out)
            return out
        given = self.y, self.predicted(coef), dispersion[:, None], self._trials
        one, other = np.tril_indices(p)
        out[:, 0] = q.sum(axis=1)
        scaled = q
        if response.has_dispersion:
            out[:, 1] = (q * response.spread(*given)).sum(axis=1)
            scaled = q * dispersion[:, None]
        out[:, 2 : 2 + p] = np.einsum("mi,ji->mj", scaled * response.score(*given), self.columns)
        products = self.columns[one] * self.columns[other]
        out[:, 2 + p :] = np.einsum("mi,ji->mj", scaled * response.weight(*given), products)
        return out

    def predicted(self, coef: Table) -> Table:
        """Return linear predictors (m, n); a matrix product would round by how many models there are."""
        out = np.empty((len(coef), len(self.y)))
        out[:] = 0.0 if self.offset is None else self.offset
        for j, column in enumerate(self.columns):
            out += coef[:, j, None] * column
        return out

    def _losses(self, coef: Table, dispersion: Table) -> Table:
        out = np.empty((len(coef), len(self.y)))
        _kernels.response_losses(*self._arguments, np.ascontiguousarray(coef), dispersion, out)
        return out

    @cached_property
    def _peak(self) -> Table:
        return self.response.peak(self.y, ONE, self._trials)

    @property
    def _trials(self) -> Table:
        return ONE if self.trials is None else self.trials

    @property
    def _arguments(self) -> tuple[int, float, Table, Table, Table | None, Table | None]:
        df = float(getattr(self.response, "df", 0.0))
        return COMPILED[type(self.response)], df, self.columns, self.y, self.offset, self.trials


def response_rows(
    response: Response, z: Table, y: Table, offset: Table | None = None, trials: Table | None = None
) -> ResponseRows:
    """Return the rows of a design z (n, p), in the order and precision of the passes."""
    beside = (None if one is None else np.ascontiguousarray(one, dtype=np.float64) for one in (offset, trials))
    columns = np.ascontiguousarray(z.T, dtype=np.float64)
    return ResponseRows(response, columns, np.ascontiguousarray(y, dtype=np.float64), *beside)
