"""Fit of classes to a table: criteria, tests of fit, classification, bivariate residuals."""

from __future__ import annotations

import warnings
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from majorant._frames import data_frame
from majorant._numbers import counted
from majorant._validation import levels_to_user
from majorant.models.latent_class_analysis.kinds import Cells
from majorant.results.likelihood_ratio import likelihood_ratio_test
from majorant.summary import Column, Table, Tabled

Array = NDArray[np.float64]
MOST_CELLS = 50_000
"""Cells of a table up to which incomplete rows are spread over them for its saturated log-likelihood."""
SATURATED_STEPS = 5_000


@dataclass(frozen=True, repr=False)
class FitStatistics(Tabled):
    r"""Criteria and tests of a fit on the rows that it was fitted to.

    With :math:`L` the log-likelihood, p parameters, N rows, and the entropy
    :math:`E = -\sum_i w_i \sum_k q_{ik} \log q_{ik}` of the responsibilities.

    Attributes
    ----------
    log_likelihood, n_rows : float
    n_parameters : int
    aic, aic3, bic, sabic, caic : float
        :math:`-2 L` plus 2 p, 3 p, :math:`p \log N`, :math:`p \log((N + 2) / 24)`, :math:`p (\log N + 1)`.
    clc, icl, awe : float
        :math:`-2 L + 2 E`, the BIC plus 2 E, the CLC plus :math:`2 p (3/2 + \log N)`.
    entropy_r2 : float or None
        :math:`1 - E / (N \log K)`; None for one class.
    entropy_r2_shares : float or None
        The same against the entropy of the shares, as Latent GOLD has it.
    classification_error : float
        Expected share of rows whose most probable class is not theirs.
    error_reduction : float or None
        By how much classes by items err less often than the largest class for all (lambda).
    df : float or None
        Cells of the table, less one, less p; None where not all items are categorical, or shares depend on covariates.
    g2, x2 : float or None
        Likelihood-ratio and Pearson statistics against the saturated table; x2 is None where cells are missing.
    g2_p_value, x2_p_value : float or None
        None where df is not positive. Where many cells have small expected counts they are unreliable: use a bootstrap
        test.
    """

    log_likelihood: float
    n_rows: float
    n_parameters: int
    aic: float
    aic3: float
    bic: float
    sabic: float
    caic: float
    clc: float
    icl: float
    awe: float
    entropy_r2: float | None
    entropy_r2_shares: float | None
    classification_error: float
    error_reduction: float | None
    df: float | None = None
    g2: float | None = None
    x2: float | None = None
    g2_p_value: float | None = None
    x2_p_value: float | None = None

    def __iter__(self) -> Iterator[tuple[str, float | None]]:
        return ((field.name, getattr(self, field.name)) for field in fields(self))

    @property
    def unidentified(self) -> str:
        """Why the parameters are not identified, where there are more than the table has free cells; else empty."""
        return "" if self.df is None else too_many_parameters(self.n_parameters, self.df + 1 + self.n_parameters)

    def to_frame(self) -> Any:
        """Return a data frame with a row for each statistic."""
        return self._table.to_frame()

    @property
    def _table(self) -> Table:
        names, values = map(list, zip(*self, strict=True))
        return Table("fit", [Column("statistic", names), Column("value", values, 4)])

    @property
    def content(self) -> Sequence[Table | str]:
        """Every statistic; an empty cell where there is none."""
        return [self._table, *([self.unidentified] if self.unidentified else [])]


@dataclass(frozen=True, repr=False)
class Classification(Tabled):
    """Certainty of the assignment of rows to classes.

    Attributes
    ----------
    assigned : ndarray of shape (n_components, n_components)
        Share of the rows of each class (row) that are assigned to each (column) by the most probable class.
    average_posteriors : ndarray of shape (n_components, n_components)
        Mean probability of each class (column) among the rows that are assigned to each (row).
    error : float
        Expected share of rows that are assigned wrongly.
    """

    assigned: Array
    average_posteriors: Array
    error: float

    @property
    def content(self) -> Sequence[Table | str]:
        """Where the rows of each class are put, and how probable the classes are there."""
        tables: list[Table | str] = []
        for head, other, shares in (
            ("rows of class", "assigned to", self.assigned),
            ("assigned to", "probability of", self.average_posteriors),
        ):
            classes = list(range(1, 1 + len(shares)))
            own = [Column(f"{other} {j}", column, 3) for j, column in zip(classes, shares.T, strict=True)]
            tables.append(Table(head, [Column(head, classes), *own]))
        return [*tables, f"Expected share assigned wrongly: {self.error:.3f}."]


def too_many_parameters(p: int, cells: float) -> str:
    """Return a sentence on a model of more parameters than the table of its items has free cells; else nothing."""
    if p <= cells - 1:
        return ""
    return (
        f"{counted(p, 'parameter')}, {p - cells + 1:.0f} more than the table of the items has free cells: the model is "
        "not identified; fit fewer classes, or more items."
    )


def comparison(fits: Sequence[Any], X: Any, rows: Mapping[str, Any], n_resamples: int = 0) -> Any:
    """Return a data frame with a row of criteria and tests for each fit, against one class fewer where asked."""
    told: dict[str, list[Any]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for fit in fits:
            row = {"classes": len(fit.weights_), **dict(fit.fit_statistics(X, **rows))}
            row |= {
                "smallest_share": float(fit.weights_.min()),
                "reached_best": fit.search_.n_hits,
                "regular": fit.regular_,
            }
            if n_resamples:
                k, seed = row["classes"], fit.random_state
                given = {"n_resamples": n_resamples, "random_state": seed, **rows}
                test = likelihood_ratio_test(fit, X, n_components=k - 1, **given) if k > 1 else None
                row["bootstrap_p_value"] = np.nan if test is None else test.p_value
            for name, value in row.items():
                told.setdefault(name, []).append(value)
    return data_frame(told)


def warned(found: FitStatistics) -> FitStatistics:
    """Return the statistics, with a warning if the model is not identified."""
    if found.unidentified:
        warnings.warn(found.unidentified, UserWarning, stacklevel=levels_to_user())
    return found


def classification(q: Array, weights: Array) -> Classification:
    """Return the classification of rows by their most probable class."""
    k = q.shape[1]
    modal = np.eye(k)[q.argmax(axis=1)] * weights[:, None]
    table = q.T @ modal
    of_class, of_assigned = table.sum(axis=1, keepdims=True), table.sum(axis=0)[:, None]
    error = 1 - float(np.trace(table) / weights.sum())
    return Classification(table / np.maximum(of_class, 1e-300), table.T / np.maximum(of_assigned, 1e-300), error)


def entropy_measures(q: Array, weights: Array, entropy: float) -> dict[str, float | None]:
    """Return measures of the separation of the classes."""
    n, k = float(weights.sum()), q.shape[1]
    shares = weights @ q / n
    error = classification(q, weights).error
    if k == 1:
        nothing = dict.fromkeys(("entropy_r2", "entropy_r2_shares", "error_reduction"))
        return {**nothing, "classification_error": 0.0}
    of_shares = -float(np.sum(shares * np.log(np.maximum(shares, 1e-300))))
    return {
        "entropy_r2": 1 - entropy / (n * np.log(k)),
        "entropy_r2_shares": 1 - entropy / (n * of_shares) if of_shares > 0 else None,
        "classification_error": error,
        "error_reduction": 1 - error / (1 - shares.max()) if shares.max() < 1 else None,
    }


def tests_of_fit(
    codes: Array, weights: Array, sizes: Sequence[int], log_density: Array, p: int, populations: Array
) -> dict[str, float | None]:
    """Return G2, X2 and their degrees of freedom for a table of categorical items, or one of each population.

    Parameters
    ----------
    codes : ndarray of shape (patterns, items)
        Distinct; NaN where a cell is missing.
    weights : ndarray of shape (patterns,)
    sizes : sequence of int
        Levels of each item.
    log_density : ndarray of shape (patterns,)
    p : int
        Parameters.
    populations : ndarray of shape (patterns,)
    """
    cells, every = float(np.prod(np.asarray(sizes, dtype=np.float64))), np.unique(populations)
    df = len(every) * (cells - 1) - p
    out: dict[str, float | None] = {"df": df, "g2": None, "x2": None, "g2_p_value": None, "x2_p_value": None}
    is_complete = not np.isnan(codes).any()
    if not is_complete and cells > MOST_CELLS:
        return out
    saturated, pearson = 0.0, 0.0
    for own in (populations == population for population in every):
        w = weights[own]
        n = float(w.sum())
        if is_complete:
            saturated += float(w @ np.log(w / n))
            expected = n * np.exp(log_density[own])
            pearson += float(np.sum((w - expected) ** 2 / expected) + n - expected.sum())
        else:
            saturated += _saturated(codes[own], w, sizes)
    if is_complete:
        out["x2"] = pearson
    out["g2"] = max(2 * (saturated - float(weights @ log_density)), 0.0)
    for name in ("g2", "x2"):
        value = out[name]
        if df > 0 and value is not None:
            out[f"{name}_p_value"] = float(chdtrc(df, value))
    return out


def _saturated(codes: Array, weights: Array, sizes: Sequence[int]) -> float:
    """Return the saturated log-likelihood of a table with incomplete rows, by EM over its cells."""
    cells = np.array(list(product(*map(range, sizes))), dtype=np.float64)
    compatible = np.ones((len(codes), len(cells)), dtype=bool)
    for j in range(codes.shape[1]):
        compatible &= np.isnan(codes[:, [j]]) | (codes[:, [j]] == cells[:, j])
    fits = compatible.astype(np.float64)
    share, last = np.full(len(cells), 1 / len(cells)), -np.inf
    for _ in range(SATURATED_STEPS):
        seen = fits @ share
        value = float(weights @ np.log(seen))
        if value - last < 1e-9:
            break
        share, last = share * (fits.T @ (weights / seen)) / weights.sum(), value
    return value


def cells_of(model: Any, columns: Sequence[Array]) -> list[Cells]:
    """Return the cells of the items of a fit."""
    found: dict[int, Cells] = {}
    for block, x in zip(model.items_.blocks, columns, strict=False):
        estimates = block.estimates(model, block.shown)
        found |= {j: block.cells(x, i, estimates) for i, j in enumerate(block.columns)}
    return [found[j] for j in range(len(found))]


def bivariate_residuals(
    names: Sequence[str],
    cells: Sequence[Cells],
    q: Array,
    weights: Array,
    priors: Array,
    left_out: Container[tuple[int, int]] = (),
) -> Any:
    """Return what pairs of items have left over, a data frame with a row for each pair.

    Parameters
    ----------
    names : sequence of str
    cells : sequence of (levels, cells)
        Of each item.
    q : ndarray of shape (rows, components)
    weights : ndarray of shape (rows,)
    priors : ndarray of shape (rows, components)
        Shares of the classes before a row's items are seen.
    left_out : collection of pairs of int, optional
        Items whose dependence is a part of the model.
    """
    rows = []
    for a, b in (pair for pair in combinations(range(len(cells)), 2) if pair not in left_out):
        (size, left), (other_size, right) = cells[a], cells[b]
        if size and other_size:
            df = (size - 1) * (other_size - 1)
            statistic = _two_way(left, right, weights, priors) if df else np.nan
        elif not (size or other_size):
            df, statistic = 1, _correlation(left, right, q, weights)
        else:
            nominal, number = (left, right) if size else (right, left)
            df = max(size, other_size) - 1
            statistic = _explained(nominal, number, q, weights) if df else np.nan
        if df and np.isfinite(statistic):
            rows.append((names[a], names[b], statistic, df, statistic / df, float(chdtrc(df, statistic))))
    heads = ("first", "second", "statistic", "df", "residual", "p_value")
    return data_frame({head: [row[i] for row in rows] for i, head in enumerate(heads)})


def _two_way(left: tuple[Array, Array], right: tuple[Array, Array], weights: Array, priors: Array) -> float:
    """Return Pearson's statistic of a two-way table of rows that have both cells, against the classes'."""
    (hot, p), (other_hot, other_p) = left, right
    seen = hot.T @ (other_hot * weights[:, None])
    mass = (weights * (hot.any(axis=1) & other_hot.any(axis=1))) @ priors
    if not mass.any():
        return float("nan")
    expected = (p * mass[:, None]).T @ other_p
    return float(np.sum((seen - expected) ** 2 / np.maximum(expected, 1e-9)))


def _explained(nominal: tuple[Array, Array], number: Array, q: Array, weights: Array) -> float:
    """Return rows times the share of a number's variance within classes that the levels explain there."""
    hot, p = nominal
    there = hot.any(axis=1) & ~np.isnan(number[:, 0])
    mass, y = q[there] * weights[there, None], number[there]
    away = hot[there][:, None, :] - p  # (rows, components, levels)
    both = np.einsum("ik,ikc,ik->c", mass, away, y)
    levels = np.einsum("ik,ikc,ikd->cd", mass, away, away)
    total = float(np.sum(mass * y**2))
    return (
        float(mass.sum() * (both @ np.linalg.pinv(levels, rcond=1e-10, hermitian=True) @ both) / total)
        if total > 0
        else np.nan
    )


def _correlation(left: Array, right: Array, q: Array, weights: Array) -> float:
    """Return rows times the squared correlation within classes."""
    there = ~np.isnan(left[:, 0]) & ~np.isnan(right[:, 0])
    mass = q[there] * weights[there, None]
    x, y = left[there], right[there]
    spread = np.sqrt(np.sum(mass * x**2) * np.sum(mass * y**2))
    return float(mass.sum() * (np.sum(mass * x * y) / spread) ** 2) if spread > 0 else np.nan
