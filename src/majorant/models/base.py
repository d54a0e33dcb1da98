"""Methods that every model offers beyond scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import wraps
from inspect import isfunction, signature
from os import PathLike
from typing import Any, ClassVar, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from majorant._cells import refuse_masked, refuse_unread, refuse_what_is_no_number
from majorant._frames import check_row_names, data_frame
from majorant._progress import fit_watched, is_stopped
from majorant._validation import check_sample_weight
from majorant.data.chunks import Chunks
from majorant.data.storage import StoredRows, is_dask, stored_rows
from majorant.engine.checkpoint import fit_entered
from majorant.engine.trace import Trace
from majorant.persistence import save
from majorant.registry import named
from majorant.search.record import SearchReport
from majorant.summary import Summary

ACTIVE_SHARE = 0.01
"""Smallest share of the rows with which a class or cluster is active."""


NAMES_OF_ROWS = {"groups", "bags", "time", "data", "future"}
"""Arguments that may hold dates: what names rows, and tables of which a formula chooses columns."""


def refuse_stored(X: Any, method: str) -> None:
    """Raise TypeError for rows that are not in memory, for methods that need them in memory."""
    if stored_rows(X) is not None:
        raise TypeError(f"{method} takes rows in memory: take a part of them")


P = ParamSpec("P")
R = TypeVar("R")


def of_the_same_rows(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate a method so that the tables among its arguments must have the same row names and hold no masked cells.

    Numbers beside the rows must be numbers, not dates.
    """
    parameters = tuple(signature(method).parameters)

    @wraps(method)
    def checked(*arguments: P.args, **keywords: P.kwargs) -> R:
        tables = {**dict(zip(parameters, arguments, strict=False)), **keywords}
        may_be_dates = {*NAMES_OF_ROWS, *(() if isinstance(tables.get("self"), RegressorMixin) else ("y",))}
        takes_tables = getattr(tables.get("self"), "takes_tables", True)
        for name, table in tables.items():
            if takes_tables or name != "X":
                refuse_unread(table, name)
            if name == "X" or name in may_be_dates:  # of X what the model makes of it is asked
                refuse_masked(table, name)
            elif name != "self":
                refuse_what_is_no_number(table, name)
        check_row_names(tables)
        weights: Any = tables.get("sample_weight")
        if weights is not None and method.__module__.startswith("sklearn"):  # its scores take negative ones
            check_sample_weight(weights, np.size(weights))
        if getattr(tables.get("self"), "units_", None) is not None:
            return _in_units_of_the_table(method, tables)
        return method(*arguments, **keywords)

    return checked


def _in_units_of_the_table(method: Callable[..., R], arguments: dict[str, Any]) -> R:
    """Call a method of a model of standardised columns with rows in the units of the table."""
    model = arguments.pop("self")
    plain = copy(model)
    units = vars(plain).pop("units_")
    is_fit = method.__name__.startswith("fit")
    if "X" in arguments and not is_fit:
        arguments["X"] = units.of_table(arguments["X"], plain._feature_names())
    result = method(plain, **arguments)
    vars(model).update(vars(plain))
    if is_fit:
        del model.units_
    return model if result is plain else result


class LatentVariableModel(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Base of all estimators: search report, a summary, saving.

    Attributes
    ----------
    search_ : SearchReport
        Every start of the fit, how many reached the best optimum, and how far the second one is.
    trace_ : Trace
        Objective and bound of every iteration of the best start.
    units_ : Standardisation or OwnColumns
        Of a model that ``majorant fit`` saved: methods take the table and pick the columns of the fit by name. After
        ``--standardise`` it has their means and scales too, and estimates are of standardised columns.
    """

    takes_tables: ClassVar[bool] = True
    search_: SearchReport
    trace_: Trace
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    def __init_subclass__(cls, **options: Any) -> None:
        """Let every public method that takes rows, or what is beside them, refuse other row names and masked cells."""
        super().__init_subclass__(**options)
        for base in cls.__mro__:
            if base is cls or not issubclass(base, LatentVariableModel):
                for name, method in list(vars(base).items()):
                    is_public = isfunction(method) and name[0] != "_" and getattr(cls, name) is method
                    if is_public and {"X", "data", "gating"} & set(signature(method).parameters):
                        setattr(cls, name, of_the_same_rows(method))

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Restore the estimator's state before the fit if the fit fails or is interrupted."""
        before = dict(self.__dict__)
        verbose = getattr(self, "verbose", 0)
        watching = fit_watched(verbose if isinstance(verbose, int) else 0)  # anything else the fit refuses
        try:
            with watching, fit_entered(type(self).__name__, self.get_params(deep=False)):
                was_stopped = is_stopped()
                yield
                if is_stopped() and not was_stopped:
                    self.search_ = replace(self.search_, is_stopped=True)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _check_stored(self, source: StoredRows, *, reset: bool) -> int:
        """Check streamed rows as `validate_data` checks rows in memory; return the number of rows."""
        if reset:
            self.n_features_in_ = source.n_features
            if source.names is not None:
                self.feature_names_in_ = np.array(source.names, dtype=object)
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        elif source.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {source.n_features} features, but {type(self).__name__} was fitted to {self.n_features_in_}"
            )
        elif source.names is not None and list(source.names) != self._feature_names_or(source.names):
            raise ValueError(
                f"the columns are {', '.join(source.names)}; {type(self).__name__} was fitted to "
                f"{', '.join(self._feature_names())}, in this order"
            )
        return source.n_units

    def _feature_names_or(self, names: Sequence[str]) -> list[str]:
        """Return the columns of the fit by name, or else `names`."""
        return [str(name) for name in getattr(self, "feature_names_in_", names)]

    def _refuse_chunks(self, X: Any) -> None:
        """Raise TypeError for streamed rows, for models that need all rows in memory."""
        if isinstance(X, Chunks) or is_dask(X):
            kind = "Chunks" if isinstance(X, Chunks) else f"a Dask {type(X).__name__}"
            raise TypeError(f"{type(self).__name__} takes rows in memory, as an array or a data frame; got {kind}")

    def _feature_names(self) -> list[str]:
        """Return the columns of X by name, or else x1, x2 and so on."""
        return self._feature_names_or([f"x{i + 1}" for i in range(self.n_features_in_)])

    def _in_words(self, names: Sequence[str]) -> list[str]:
        """Return names of columns, those of levels in words: ``sex: M against F``."""
        known = [getattr(self, of, None) for of in ("formula_", "formula_of_fit_", "covariates_")]
        for learned in (one for one in known if one is not None):
            names = [learned.in_words(name) for name in names]
        return list(names)

    def summary(self) -> Summary:
        """Return the summary of the fit: the search first, then the estimates.

        Returns
        -------
        Summary
            ``str()`` for a terminal, shown as HTML in a notebook; ``tables``, ``to_markdown()``, ``to_json()``.
        """
        check_is_fitted(self)
        return self._summary()

    def _summary(self) -> Summary:
        raise NotImplementedError(f"{type(self).__name__} must say what its summary holds")

    @of_the_same_rows
    def report(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, table_name: str = "the table", **given: Any
    ) -> Any:
        """Return the report of the fit as one page, which a notebook shows at once.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The rows of the fit; for a model fitted by formula, its table.
        y : array-like of shape (n_samples,), optional
            The target, for models that have one.
        sample_weight : array-like of shape (n_samples,), optional
            The weights of the fit.
        table_name : str, default="the table"
            The name of the table on the page.
        **given
            Further arguments of the fit with an entry per row: ``groups``, ``gating``, ``component_labels``.

        Returns
        -------
        majorant.report.Report
            ``save(path)`` writes the page, ``html`` is its source and ``tables`` are its tables.

        Examples
        --------
        >>> import majorant as mj
        >>> from sklearn.datasets import load_iris
        >>> X = load_iris().data
        >>> sorted(mj.KMeans(3, random_state=0).fit(X).report(X).tables)
        ['clusters', 'profiles']
        """
        rows = {"sample_weight": sample_weight, "table_name": table_name, **given}
        return named("majorant.report.of_model:report_of")(self, X, y, **rows)

    def _as_fitted(
        self, X: Any, y: Any, given: dict[str, Any]
    ) -> tuple[Any, Any, dict[str, Any], NDArray[np.intp] | None]:
        """Return the rows as `fit` took them, by the formula of the fit if there is one, and the target and `given`.

        The last value is the order of the rows returned, None for that of X.
        """
        refuse_what_is_no_number(X, "X")
        for name, values in {"y": y, **given}.items():
            refuse_masked(values, name)
        if hasattr(X, "to_pandas") and hasattr(X, "column_names"):  # an Arrow table
            X = X.to_pandas()
        if (units := getattr(self, "units_", None)) is not None:
            names = self._feature_names()
            X = units.of_table(X, names)
            X = X if hasattr(X, "columns") else data_frame(dict(zip(names, np.asarray(X).T, strict=True)))
        if hasattr(X, "columns") and hasattr(self, "feature_names_in_"):
            validate_data(self, X, reset=False, skip_check_array=True)
        return X, y, given, None

    @of_the_same_rows
    def plot(self, X: Any, y: Any = None, ax: Any = None, **given: Any) -> Any:
        """Draw the picture that says most about the fit; `majorant.plot` has the others.

        Parts on the two columns that tell them apart best, profiles of parts where there are more than ten columns, the
        components of a mixture of regressions along their main feature, profiles of latent classes, rows on the first
        two components of a representation, or a series by state with its forecast.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            For a model fitted by formula, a table with its columns.
        y : array-like of shape (n_samples,), optional
            The target, for models that have one.
        ax : matplotlib Axes, optional
        **given
            Further arguments of the rows, as for ``predict_proba``: ``groups``, ``gating``, ``offset``, ``trials``.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        check_is_fitted(self)
        return named("majorant.plot.any_model:plot_of")(self, X, y, ax, **given)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file, which `majorant.load` reads without executing anything in it.

        Parameters
        ----------
        path : str or path-like
            Replaced only when the new file is complete.
        """
        check_is_fitted(self)
        save(self, path)
