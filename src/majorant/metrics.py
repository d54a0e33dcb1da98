"""Measures of rankings and representations that scikit-learn lacks, or has for a single query.

Functions of rankings take the relevance of the ranked rows to each query, best ranked first, as from `retrieve`:
``relevant = y_gallery[indices] == y_queries[:, None]``. A grade above zero counts as relevant; gains of grades are
`sklearn.metrics.ndcg_score`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from majorant._cells import refuse_masked, refuse_unread, refuse_what_is_no_number
from majorant._frames import check_row_names
from majorant._numbers import briefly
from majorant._validation import check_integer, exact_labels, refuse_missing_labels, refuse_mixed

Array = NDArray[np.float64]

LEAST_SHARE = 1e-6
"""Share that smaller ones count as where classes are compared, so that divergences are finite."""

__all__ = [
    "average_precision",
    "class_profiles",
    "mean_average_precision",
    "mean_pairwise_kl",
    "mean_precision_at_recall",
]


def average_precision(relevant: Any, *, n_relevant: Any = None) -> Array:
    r"""Return the average precision of each query's ranking.

    :math:`AP = \frac{1}{\min(R, n)} \sum_i r_i \frac{r_1 + \dots + r_i}{i}` with r_i in {0, 1} whether the row ranked i
    is relevant, n the length of the ranking and R the number of relevant rows. For a ranking of the whole gallery this
    is `sklearn.metrics.average_precision_score` without ties; for its first n rows it is average precision at n.

    Parameters
    ----------
    relevant : array-like of shape (n_queries, n_ranked)
        Whether, or how much, each ranked row is relevant: above zero counts.
    n_relevant : array-like of shape (n_queries,), optional
        R, if rankings are not of the whole gallery; by default the number of relevant rows in the ranking.

    Returns
    -------
    ndarray of shape (n_queries,)
        Between 0 and 1; 0 where nothing is relevant.

    Raises
    ------
    ValueError
        If an entry is not a number, or `n_relevant` is less than the number of relevant rows in a ranking.

    Examples
    --------
    >>> average_precision([[1, 0, 1, 0]]).round(3).tolist()
    [0.833]
    >>> average_precision([[1, 0, 1, 0]], n_relevant=[3]).round(3).tolist()
    [0.556]
    """
    hits, total = _checked(relevant, n_relevant)
    precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
    most = np.minimum(total, hits.shape[1])
    return np.asarray((precision * hits).sum(axis=1) / np.maximum(most, 1))


def mean_average_precision(relevant: Any, *, n: int | None = None, n_relevant: Any = None) -> float:
    """Return the mean of `average_precision` over queries.

    Parameters
    ----------
    relevant : array-like of shape (n_queries, n_ranked)
    n : int, optional
        Number of first rows of each ranking that count; by default all.
    n_relevant : array-like of shape (n_queries,), optional
        By default the number of relevant rows in the whole ranking, before it is cut at n.

    Returns
    -------
    float

    Raises
    ------
    ValueError, TypeError
        If n is not a whole number from 1 to n_ranked, or as in `average_precision`.

    Examples
    --------
    >>> mean_average_precision([[1, 0, 1, 0], [0, 1, 0, 0]], n=2)
    0.5
    """
    hits, total = _checked(relevant, n_relevant)
    if n is not None and check_integer("n", n, low=1) > hits.shape[1]:
        raise ValueError(f"n must be between 1 and {hits.shape[1]}, the length of the rankings; got {briefly(n)}")
    return float(average_precision(hits[:, :n], n_relevant=total).mean())


def mean_precision_at_recall(relevant: Any, recall: Any = None, *, n_relevant: Any = None) -> tuple[Array, Array]:
    """Return the mean precision-recall curve of many queries: interpolated precision at levels of recall.

    The interpolated precision at a level is the largest precision of any initial part of the ranking with at least
    this recall, and zero if none has it.

    Parameters
    ----------
    relevant : array-like of shape (n_queries, n_ranked)
    recall : array-like of shape (n_levels,), optional
        Between 0 and 1; by default 0, 0.1, ..., 1.
    n_relevant : array-like of shape (n_queries,), optional
        See `average_precision`.

    Returns
    -------
    recall, precision : ndarray of shape (n_levels,)

    Examples
    --------
    >>> recall, precision = mean_precision_at_recall([[1, 0, 1, 0]], [0.5, 1.0])
    >>> precision.round(3).tolist()
    [1.0, 0.667]
    """
    hits, total = _checked(relevant, n_relevant)
    levels = np.linspace(0, 1, 11) if recall is None else _numbers(recall, "recall")
    if levels.ndim != 1 or not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError(f"recall must be a list of levels between 0 and 1, such as [0.5, 1.0]; got {briefly(recall)}")
    found = np.cumsum(hits, axis=1)
    precision = found / np.arange(1, hits.shape[1] + 1)
    best = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    best = np.column_stack([best, np.zeros(len(best))])  # beyond the ranking
    reached = found / np.maximum(total, 1)[:, None]
    out = np.zeros(len(levels))
    for row, values in zip(reached, best, strict=True):
        out += values[np.searchsorted(row, levels - 1e-12)]
    return levels, out / len(hits)


def _checked(relevant: Any, n_relevant: Any) -> tuple[Array, Array]:
    """Check relevance; return it as zeros and ones, with the number of relevant rows of each query."""
    check_row_names({"relevant": relevant, "n_relevant": n_relevant})
    grades = _numbers(relevant, "relevant")
    if grades.ndim != 2 or not grades.size:
        raise ValueError(
            f"relevant must have a row per query and a column per rank; got an array of shape {grades.shape}"
        )
    if np.isnan(grades).any():
        raise ValueError("relevant contains NaN: write 0 where it is unknown whether a row is relevant")
    hits = (grades > 0).astype(np.float64)
    there = hits.sum(axis=1)
    total = there if n_relevant is None else _numbers(n_relevant, "n_relevant")
    if total.shape != there.shape:
        raise ValueError(f"n_relevant must have one number for each of {len(there)} queries; got shape {total.shape}")
    odd = total[~np.isfinite(total) | (np.floor(total) != total)]
    if len(odd):
        raise ValueError(f"n_relevant must hold whole numbers; got {odd[0]:g}")
    if not (total >= there).all():
        at = int(np.flatnonzero(~(total >= there))[0])
        raise ValueError(f"query {at} ranks {there[at]:g} relevant rows, but n_relevant says {total[at]:g}")
    return hits, total


def _numbers(values: Any, name: str) -> Array:
    if sparse.issparse(values):
        raise TypeError(f"{name} is a sparse matrix: give {name}.toarray()")
    refuse_what_is_no_number(values, name)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} must hold numbers: {error}") from error


def class_profiles(latents: Any, y: Any) -> tuple[NDArray[Any], Array]:
    """Average the representations of each class.

    Parameters
    ----------
    latents : array-like of shape (n_samples, n_components)
        From ``transform``.
    y : array-like of shape (n_samples,)
        Numbers, text or dates.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted.
    profiles : ndarray of shape (n_classes, n_components)

    Raises
    ------
    ValueError, TypeError
        If y does not have one label per row, rows of both have other names, or cells of latents are no numbers.
    """
    check_row_names({"latents": latents, "y": y})
    table, labels = _finite(latents), _labels(y)
    if labels.shape != table.shape[:1]:
        raise ValueError(f"y must have a label for each of {len(table)} rows; got shape {np.shape(y)}")
    refuse_missing_labels(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    sums = np.zeros((len(classes), table.shape[1]))
    np.add.at(sums, codes, table)
    return classes, np.asarray(sums / np.bincount(codes)[:, None])


def _finite(latents: Any) -> Array:
    table = _numbers(latents, "latents")
    if table.ndim != 2 or not table.size:
        raise ValueError(f"latents must have a row per sample and a column per component; got shape {table.shape}")
    if not np.isfinite(table).all():
        raise ValueError("latents contains NaN or infinity: leave such rows out")
    return table


def _labels(y: Any) -> NDArray[Any]:
    refuse_unread(y, "y")
    refuse_masked(y, "y")
    labels = np.asarray(exact_labels(y))
    refuse_mixed("y", labels)
    return labels


def mean_pairwise_kl(latents: Any, y: Any) -> float:
    r"""Average the divergences between classes in a representation.

    From the latents of each row its smallest one is subtracted, and they are divided by their sum: a distribution over
    components. These are averaged within each class, and :math:`(KL(p, q) + KL(q, p)) / 2` is averaged over all pairs
    of classes [1]_, shares below one in a million counted as that.

    Parameters
    ----------
    latents : array-like of shape (n_samples, n_components)
        From ``transform`` of any model.
    y : array-like of shape (n_samples,)

    Returns
    -------
    float
        Natural logarithm; 0 for one class.

    References
    ----------
    .. [1] N. Chen, J. Zhu, F. Sun, E. Xing, "Large-margin predictive latent subspace learning for multiview data
       analysis", IEEE TPAMI, 2012, section 6.2, footnotes 8 and 9.

    Examples
    --------
    >>> import numpy as np
    >>> round(mean_pairwise_kl([[2, 1, 0], [2, 0, 1], [0, 1, 2], [1, 0, 2]], ["a", "a", "b", "b"]), 3)
    0.693
    """
    check_row_names({"latents": latents, "y": y})
    above = _finite(latents)
    above = above - above.min(axis=1, keepdims=True)
    most = above.max(axis=1, keepdims=True)
    shares = np.where(most > 0, above / np.where(most > 0, most, 1.0), 1.0)  # sums that cannot overflow
    p = class_profiles(shares / shares.sum(axis=1, keepdims=True), y)[1]
    n = len(p)
    if n < 2:
        return 0.0
    p = np.maximum(p, LEAST_SHARE)
    cross = np.einsum("ck,dk->cd", p, np.log(p))
    own = np.diag(cross)
    return float((own[:, None] - cross).sum() / (n * (n - 1)))
