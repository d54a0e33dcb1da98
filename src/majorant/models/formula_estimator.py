"""Fitting to a formula and a table, and prediction from other tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, Self, TypeVar, cast

from majorant.formulas import EXTRAS, Formula, column_of, is_design, is_table, numbers_of, quoted
from majorant.models.base import LatentVariableModel

P = ParamSpec("P")
R = TypeVar("R")


class FromFormula:
    """What models with a method `fit_formula` share."""

    @classmethod
    def from_formula(cls, formula: str, data: Any, **arguments: Any) -> Self:
        """Build a model and fit it to a formula and a table; see `fit_formula`.

        Parameters
        ----------
        formula : str
        data : data frame
        **arguments
            Those of `fit_formula`, and parameters of the constructor, except ``fit_intercept``, which the formula
            determines.

        Returns
        -------
        estimator

        Raises
        ------
        ImportError
            If formulaic is not installed.
        ValueError, TypeError
            If formula, table or arguments cannot be used.

        Examples
        --------
        >>> import numpy as np, pandas as pd, majorant as mj
        >>> x, kind = np.arange(60) / 10, np.tile(["a", "b", "b"], 20)
        >>> table = pd.DataFrame({"x": x, "kind": kind, "y": np.where(np.arange(60) % 2, x, 9 - x) + (kind == "b")})
        >>> table["y"] += 0.1 * np.random.default_rng(0).normal(size=60)
        >>> model = mj.RegressionMixture.from_formula("y ~ x + kind", table, random_state=0)
        >>> model.feature_names_in_.tolist()
        ['x', 'kind[T.b]']
        >>> model.predict_components(pd.DataFrame({"x": [1.0], "kind": ["b"]})).round(1)
        array([[2., 9.]])
        """
        if "fit_intercept" in arguments:
            raise TypeError("the formula says whether there is an intercept: write 'y ~ 0 + x' for none")
        made = cast(Any, cls)
        of_fit = {name: arguments.pop(name) for name in signature(made.fit_formula).parameters if name in arguments}
        return cast(Self, made(**arguments).fit_formula(formula, data, **of_fit))


def term(column: Any) -> str:
    """Return a column as a term of a formula; for a number in place of a name, what could be its name."""
    return quoted(column) if isinstance(column, str) else "kind"


def taking_text(model: str, settings: str = "", n_targets: int = 0) -> Callable[[Any, int], str]:
    """Return which call takes a column of text among its terms, for `refuse_text`; targets are none."""

    def called(column: Any, j: int) -> str:
        return "" if j < n_targets else f"{model}.from_formula({f'y ~ x + {term(column)}'!r}, table{settings})"

    return called


class FormulaEstimator(FromFormula, LatentVariableModel):
    """Base of models that can be fitted with formulas.

    Attributes
    ----------
    formula_ : Formula
        After `fit_formula`: the formula with what it learned from the table of the fit. It is applied to data frames
        given to the fitted model; arrays are taken as the design.
    """

    formula_: Formula

    def fit_formula(
        self,
        formula: str,
        data: Any,
        *,
        groups: Any = None,
        gating: Any = None,
        offset: Any = None,
        trials: Any = None,
        weights: Any = None,
        component_labels: Any = None,
    ) -> Self:
        """Fit to a formula and a table.

        The parameter ``fit_intercept`` is set by the formula.

        Parameters
        ----------
        formula : str
            ``"y ~ x + I(x**2) | id"``: the response, the terms, and after ``|`` the column of groups, if there are any.
            The response may be ``cbind(successes, failures)``; a term may be ``offset(log(T))``; ``0 +`` or ``- 1``
            leaves out the intercept. Terms may use ``+ - : * / ** .``, arithmetic in ``I()``, elementwise functions
            such as ``log`` and ``sqrt``, ``C()`` or ``factor()`` with contrasts, ``poly``, ``bs``, ``cr``, ``scale``
            and ``center``; ``.`` is every column without another role; a name that is not a word, such as a number,
            is in backticks. No other code is evaluated.
        data : data frame
            From pandas, polars or another library that narwhals supports; no value may be missing in the columns used.
        groups : str or array-like, optional
            A column, instead of ``| id``.
        gating : str or array-like, optional
            Terms: ``"w1 + w2"``.
        offset, trials, weights : str or array-like, optional
            A column, or arithmetic on columns: ``"log(T)"``.
        component_labels : str or array-like, optional
            A column.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If formulaic is not installed.
        ValueError, TypeError
            If the formula contains code that is not allowed, the table lacks a column or a value, or the data cannot be
            used.
        """
        roles = {"groups": groups, "gating": gating, "offset": offset, "trials": trials}
        with self._all_or_nothing():
            texts = {name: value for name, value in roles.items() if isinstance(value, str)}
            arrays = {name: v for name, v in roles.items() if v is not None and name not in texts}
            others = [given for given in (weights, component_labels) if isinstance(given, str)]
            learned, rows = Formula.learn(formula, data, **texts, others=others)
            twice = sorted(set(arrays) & set(rows.keywords))
            if twice:
                raise ValueError(f"{twice[0]} is given twice: in the formula and as {twice[0]}=")
            keywords = {**rows.keywords, **arrays}
            if weights is not None:
                keywords["sample_weight"] = (
                    numbers_of(data, weights, "weights") if isinstance(weights, str) else weights
                )
            if component_labels is not None:
                is_column = isinstance(component_labels, str)
                keywords["component_labels"] = column_of(data, component_labels) if is_column else component_labels
            self._check_takes(keywords)
            if "fit_intercept" in self.get_params(deep=False):
                self.set_params(fit_intercept=learned.has_intercept)
            self.formula_ = learned
            cast(Any, self).fit(rows.X, rows.y, **keywords)
        return self

    def _check_takes(self, keywords: Mapping[str, Any]) -> None:
        known = signature(cast(Any, self).fit).parameters
        for name in keywords:
            if name not in known:
                raise TypeError(f"{type(self).__name__} takes no {name}")

    def _as_fitted(self, X: Any, y: Any, given: dict[str, Any]) -> tuple[Any, Any, dict[str, Any], Any]:
        formula = getattr(self, "formula_", None)
        if formula is not None and is_table(X) and not is_design(X):
            rows = formula.apply(X, formula.roles, True)
            X, y, given = rows.X, rows.y, {**rows.keywords, **given}
        return super()._as_fitted(X, y, given)

    def _forget_formula(self, X: Any) -> None:
        """Delete the formula of an earlier fit, unless X is the design of this one's."""
        if not is_design(X):
            self.__dict__.pop("formula_", None)


def through_formula(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate a method so that data frames are first converted to the design of the fitted formula, if there is one.

    Arguments besides X that are not given are taken from the table: y if the method needs it, or if it is optional and
    in the table, and ``groups``, ``gating``, ``offset`` and ``trials``.
    """
    form = signature(method)
    by_kind = {parameter.kind: name for name, parameter in form.parameters.items()}
    collected = by_kind.get(Parameter.VAR_KEYWORD)  # a method that passes all of them on
    extras = [name for name in EXTRAS if collected or name in form.parameters]
    response = form.parameters.get("y")

    @wraps(method)
    def applied(*arguments: P.args, **keywords: P.kwargs) -> R:
        call = form.bind_partial(*arguments, **keywords)
        formula, X = getattr(call.arguments["self"], "formula_", None), call.arguments.get("X")
        if formula is None or not is_table(X) or is_design(X):
            return method(*arguments, **keywords)
        given = call.arguments if collected is None else call.arguments.setdefault(collected, {})
        wanted = [name for name in formula.roles if name in extras and given.get(name) is None]
        takes_y = response is not None and call.arguments.get("y") is None
        needs_y = takes_y and response is not None and response.default is Parameter.empty
        rows = formula.apply(X, wanted, True if needs_y else None if takes_y else False)
        call.arguments["X"] = rows.X
        if rows.y is not None:
            call.arguments["y"] = rows.y
        given.update({name: value for name, value in rows.keywords.items() if name in wanted})
        return method(*call.args, **call.kwargs)

    return applied
