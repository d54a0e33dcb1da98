"""Models that are judged by the likelihood of rows: log-likelihood and information criteria."""

from __future__ import annotations

from typing import Any

import numpy as np

from majorant.models.base import LatentVariableModel
from majorant.models.formula_estimator import through_formula
from majorant.models.row_arguments import rows_as, with_row_arguments
from majorant.registry import card_of
from majorant.results.criteria import criteria


class LikelihoodModel(LatentVariableModel):
    """Base of models with a likelihood; each defines `_totals`, whose arguments are those of all criteria."""

    n_parameters_: int

    def __init_subclass__(cls, **options: Any) -> None:
        """Give every method that takes rows the arguments of this model's rows."""
        for name, method in with_row_arguments(cls).items():
            setattr(cls, name, through_formula(method))
        super().__init_subclass__(**options)

    def _totals(self, X: Any, **rows: Any) -> tuple[float, float, float]:
        """Return the log-likelihood of rows, their weight, and the entropy of the responsibilities."""
        raise NotImplementedError(f"{type(self).__name__} must define the likelihood of rows")

    def _criteria(self, value: float, n: float, entropy: float) -> dict[str, float]:
        """Return all information criteria by name, of the three totals of rows."""
        return criteria(-2 * value, n, self.n_parameters_, entropy)

    @rows_as("_totals")
    def information_criteria(self, X: Any, **rows: Any) -> dict[str, float]:
        r"""Return all information criteria on rows (smaller is better), and how well the parts are separated.

        Parameters
        ----------
        X, {rows}
            As for `log_likelihood`.

        Returns
        -------
        dict
            ``aic``, ``aic3``, ``bic``, ``sabic``, ``caic``, ``clc``, ``icl`` and ``awe``; with several parts also
            ``entropy_r2``, :math:`1 + \sum_{ik} r_{ik} \log r_{ik} / (n \log K)`, which is 1 where every row is sure;
            of a hidden Markov model the entropy is that of whole paths of states. Where groups of rows belong together
            it is left out.
        """
        value, n, entropy = self._totals(X, **rows)
        found, k = self._criteria(value, n, entropy), len(getattr(self, "weights_", ()))
        together = rows.get("groups") is not None and not card_of(self).in_order
        return found if k < 2 or together else {**found, "entropy_r2": 1 - entropy / (n * float(np.log(k)))}

    @rows_as("_totals")
    def log_likelihood(self, X: Any, **rows: Any) -> float:
        """Return the weighted log-likelihood of rows.

        Parameters
        ----------
        X, {rows}
            As for `fit`; where the fit had groups they must be given.

        Returns
        -------
        float
        """
        return self._totals(X, **rows)[0]

    @rows_as("_totals")
    def aic(self, X: Any, **rows: Any) -> float:
        """Return Akaike's information criterion on rows: smaller is better.

        Parameters
        ----------
        X, {rows}
            As for `log_likelihood`.

        Returns
        -------
        float
        """
        return self._criteria(*self._totals(X, **rows))["aic"]

    @rows_as("_totals")
    def bic(self, X: Any, **rows: Any) -> float:
        """Return the Bayesian information criterion on rows: smaller is better.

        The number of rows is the sum of their weights; rows count, not groups.

        Parameters
        ----------
        X, {rows}
            As for `log_likelihood`.

        Returns
        -------
        float
        """
        return self._criteria(*self._totals(X, **rows))["bic"]

    @rows_as("_totals")
    def icl(self, X: Any, **rows: Any) -> float:
        """Return the integrated completed likelihood: the BIC plus twice the entropy of the responsibilities.

        Parameters
        ----------
        X, {rows}
            As for `log_likelihood`.

        Returns
        -------
        float
        """
        return self._criteria(*self._totals(X, **rows))["icl"]
