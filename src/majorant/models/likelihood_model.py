"""Models that are judged by the likelihood of rows: log-likelihood and information criteria."""

from __future__ import annotations

from typing import Any

from majorant.models.base import LatentVariableModel
from majorant.models.formula_estimator import through_formula
from majorant.models.row_arguments import rows_as, with_row_arguments
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

    def _criteria(self, X: Any, **rows: Any) -> dict[str, float]:
        """Return all information criteria by name."""
        value, n, entropy = self._totals(X, **rows)
        return criteria(-2 * value, n, self.n_parameters_, entropy)

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
        return self._criteria(X, **rows)["aic"]

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
        return self._criteria(X, **rows)["bic"]

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
        return self._criteria(X, **rows)["icl"]
