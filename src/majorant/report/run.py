"""The inputs of a report."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.registry import ModelCard
from majorant.results.selection import Selection


@dataclass(frozen=True)
class Run:
    """A fitted model and the table that it was fitted to.

    Attributes
    ----------
    estimator : Any
        Fitted, with ``get_params()``, ``search_``, ``trace_`` and ``n_iter_``. A clustering also has
        ``cluster_centers_``, ``labels_`` and ``inertia_``; a mixture ``weights_``, ``means_``, ``covariances_``,
        ``covariance_type``, ``log_likelihood_``, ``predict_proba`` and the criteria; a classification ``classes_`` and
        ``predict``, and ``prototypes_``, ``n_poses_`` and ``poses_`` if it has prototypes; a regression is a
        ``RegressionMixture``.
    X : array of shape (n, d)
        The rows as passed to the model.
    feature_names : tuple of str
        One name per column of `X`.
    table_name : str
        Name of the table ("wine.csv").
    command : str
        The command line that repeats the run, with line breaks; "" if there was none.
    raw : array of shape (n, d) or None
        The rows in the table's own units, where they differ from `X`.
    standardised : bool
        Whether the columns of `X` were standardised to mean 0 and variance 1.
    n_left_out : int
        Rows of the table that were not used.
    n_without_covariate : int
        Those of them that lack a covariate.
    created : datetime.date or None
        Printed at the foot of the page; without it the page does not depend on the day.
    card : ModelCard or None
        The model's card, where the registry does not know the estimator.
    rows : array of shape (n,) or None
        The rows' numbers in the table, from 1; by default consecutive.
    weights : array of shape (n,) or None
        Weight of each row in the fit.
    selection : Selection or None
        The fits that this one was chosen from.
    y : array of shape (n,) or None
        The target, for models that have one.
    target_name : str
        Name of the target.
    bags : array of shape (n,) or None
        The sample of each row, where rows are regions of samples; `y` is then the same in all rows of one.
    frame : data frame or None
        The rows as the estimator takes them, where they are not all numbers; `X` then holds codes of some columns.
    given : mapping
        Further arguments of the fit, by name, that have an entry per row: ``groups``, ``gating``, ``component_labels``.
    times : array of shape (n,) or None
        The time of each row, where rows follow each other in time.
    columns : sequence of ColumnUse
        What became of each column of the table; empty where that is not known.
    ids : mapping of str to sequence
        Columns that identify the rows, by name.
    later : mapping of str to object
        What was computed after the fit: ``effects``, ``outcomes`` and ``invariance_tests`` of latent classes.
    """

    estimator: Any
    X: NDArray[np.float64]
    feature_names: tuple[str, ...]
    table_name: str
    command: str
    raw: NDArray[np.float64] | None = None
    standardised: bool = False
    n_left_out: int = 0
    n_without_covariate: int = 0
    created: datetime.date | None = None
    card: ModelCard | None = None
    rows: NDArray[np.int64] | None = None
    weights: NDArray[np.float64] | None = None
    selection: Selection | None = None
    y: NDArray[Any] | None = None
    target_name: str = "y"
    bags: NDArray[Any] | None = None
    frame: Any = None
    given: Mapping[str, Any] = field(default_factory=dict)
    times: NDArray[Any] | None = None
    columns: Sequence[Any] = ()
    ids: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    later: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.X.ndim != 2:
            raise ValueError(f"X must have two dimensions; got {self.X.ndim}")
        if len(self.feature_names) != self.X.shape[1]:
            raise ValueError(f"X has {self.X.shape[1]} columns, but there are {len(self.feature_names)} feature names")
        if self.raw is not None and self.raw.shape != self.X.shape:
            raise ValueError(f"raw must have the shape of X, {self.X.shape}; got {self.raw.shape}")
        if self.y is not None and self.y.shape != self.X.shape[:1]:
            raise ValueError(f"y must have one entry per row of X, {self.X.shape[:1]}; got {self.y.shape}")
        if self.bags is not None and self.bags.shape != self.X.shape[:1]:
            raise ValueError(f"bags must have one entry per row of X, {self.X.shape[:1]}; got {self.bags.shape}")
