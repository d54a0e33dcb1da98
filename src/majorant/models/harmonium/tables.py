"""The rows of X: one checked table for each view, and the distinct rows of all views together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_array

from majorant._cells import refuse_what_is_no_number, without_na
from majorant._frames import column_names
from majorant._validation import check_csr, is_missing, validate_data
from majorant.data.measure import empirical_measure
from majorant.models.harmonium.views import Bernoulli, Chain, View, resolve_columns

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """The rows of one view."""

    # CSR or dense (n_rows, n_columns): Real numbers; zeros and ones as CSR; counts of a chain's cells (`chain_counts`);
    # or objects. Entries of missing rows are arbitrary.
    values: Any
    missing: NDArray[np.bool_]  # (n_rows,)
    names: list[str]  # names of the columns, or of the words of a chain
    columns: NDArray[np.intp] | None = None  # columns of X, where X is one table


def read_tables(
    model: Any, X: Any, views: Mapping[str, View], *, reset: bool, but: str | None = None
) -> dict[str, Table]:
    """Read the tables of all views of X; at prediction a dictionary may lack some.

    The view `but` is not read: a dictionary or a data frame may lack it.
    """
    if isinstance(X, Mapping):
        if but is not None:
            X = {name: values for name, values in X.items() if name != but}
            if not X:
                raise ValueError(f"X holds only the view {but!r}: give at least one other")
        return _of_mapping(model, X, views, reset=reset)
    if not reset and model.n_features_in_ and model.views_[0].columns is None:
        raise TypeError(
            f"{type(model).__name__} was fitted to a dictionary of arrays: give the same, with the views that there are"
        )
    if but is not None:
        X = _with_columns(X, model, but)
    only_real = all(view.kind == "gaussian" for view in views.values())
    mixed = any(view.kind == "categorical" for view in views.values())
    if model.named_views_ and hasattr(X, "__array__"):  # text may be in columns of no view
        mixed = mixed or np.asarray(X).dtype.kind in "OUS"
    X = validate_data(
        model,
        X,
        reset=reset,
        accept_sparse=False if not model.named_views_ or mixed else "csr",
        dtype=object if mixed else [np.float64, np.float32] if only_real else None,
        ensure_all_finite=True if not model.named_views_ else False if mixed else "allow-nan",
        order=None if mixed else "C",
    )
    check_csr(X)
    names = getattr(model, "feature_names_in_", None)
    columns = resolve_columns(views, X.shape[1], None if names is None else [str(n) for n in names])
    texts = model._feature_names()
    tables = {}
    for name, view in views.items():
        at = columns[name]
        whole = len(at) == X.shape[1] and bool((at == np.arange(len(at))).all())
        if name == but:
            continue
        own, labels = X if whole else X[:, at], [texts[i] for i in at]
        if isinstance(view, Chain):
            tables[name] = chain_table(view, name, own, labels, at)
        else:
            tables[name] = _table(view, name, own, labels, at)
    return tables


def _with_columns(X: Any, model: Any, view: str) -> Any:
    """Fill in zeros for the columns of a view that a data frame lacks; return anything else unchanged."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    names = list(getattr(model, "feature_names_in_", []))
    if not isinstance(frame, nw.DataFrame) or not set(frame.columns) < set(names):
        return X
    own = next(fitted.names for fitted in model.views_ if fitted.name == view)
    if not set(names) - set(frame.columns) <= set(own):
        return X
    lost = [nw.lit(0).alias(name) for name in names if name not in frame.columns]
    return frame.with_columns(lost).select(names).to_native()


def _of_mapping(model: Any, X: Mapping[Any, Any], views: Mapping[str, View], *, reset: bool) -> dict[str, Table]:
    if not model.named_views_:
        raise TypeError(
            f"X is a dict of arrays, and views=... must say what each of {list(X)} is: "
            "Gaussian(), Bernoulli(), Chain() or Categorical()"
        )
    unknown = [name for name in X if name not in views]
    if unknown:
        raise ValueError(f"X has a view {unknown[0]!r}, which views=... does not name; it names {list(views)}")
    absent = [name for name in views if name not in X or X[name] is None]
    if (reset and absent) or len(absent) == len(views):
        raise ValueError(f"X has no view {absent[0]!r}; it has {list(X)}")
    if not reset and any(view.columns is not None for view in model.views_):
        raise TypeError(f"{type(model).__name__} was fitted to one table: give X as one table too")
    tables = {}
    for name, view in views.items():
        if name not in absent:
            values = X[name]
            if isinstance(view, Chain):
                tables[name] = chain_table(view, name, values)
                continue
            labels = column_names(values)
            values = _checked(values, view, name)
            width = values.shape[1]
            texts = [str(c) for c in labels] if labels is not None else numbered(name, width)
            tables[name] = _table(view, name, values, texts, None)
    lengths = {name: len(table.missing) for name, table in tables.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the views of X have different numbers of rows: {lengths}")
    if reset:
        model.n_features_in_ = sum(len(table.names) for table in tables.values())
        model.__dict__.pop("feature_names_in_", None)
    else:
        for fitted in model.views_:
            if fitted.name in tables and len(tables[fitted.name].names) != len(fitted.names):
                raise ValueError(
                    f"view {fitted.name!r} of X has {len(tables[fitted.name].names)} features, but "
                    f"{type(model).__name__} was fitted to {len(fitted.names)}"
                )
            names = column_names(X.get(fitted.name))
            if names is None or fitted.names == numbered(fitted.name, len(fitted.names)):
                continue
            if tables[fitted.name].names != fitted.names:
                raise ValueError(
                    f"The feature names should match those that were passed during fit: view {fitted.name!r} of X has "
                    f"{tables[fitted.name].names}, but {type(model).__name__} was fitted to {fitted.names}, in this "
                    "order"
                )
    return tables


def numbered(view: str, width: int) -> list[str]:
    """Return the default names of the columns of a view."""
    return [f"{view}{j + 1}" for j in range(width)]


def _checked(values: Any, view: View, name: str) -> Any:
    mixed = view.kind == "categorical"
    refuse_what_is_no_number(values, f"view {name!r}")
    return check_array(
        without_na(values),
        accept_sparse="csr" if view.kind == "bernoulli" else False,
        dtype=object if mixed else np.float64 if view.kind == "gaussian" else None,
        ensure_all_finite=False if mixed else "allow-nan",
        input_name=f"view {name!r}",
    )


def _table(view: View, name: str, values: Any, names: list[str], columns: NDArray[np.intp] | None) -> Table:
    if view.kind == "categorical":
        return Table(values, _whole_rows(_lost(values), name), names, columns)
    if sparse.issparse(values) and view.kind == "gaussian":
        values = values.toarray()
    if not sparse.issparse(values):
        values = as_numbers(values, name)
        if values.dtype == np.float16 or (view.kind == "gaussian" and values.dtype != np.float32):
            values = values.astype(np.float64, copy=False)
        lost = np.asarray(np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool))
        missing = _whole_rows(lost, name)
    else:
        if np.isnan(values.data.astype(np.float64, copy=False)).any():
            raise ValueError(f"view {name!r} holds NaN in a sparse matrix: a sparse view has no missing rows")
        missing = np.zeros(values.shape[0], dtype=bool)
    if isinstance(view, Bernoulli):
        values = as_bits(values, missing, view, name)
    return Table(values, missing, names, columns)


def _lost(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the mask of the missing values of a table of objects."""
    return np.column_stack([is_missing(values[:, j]) for j in range(values.shape[1])])


def as_numbers(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Convert objects to numbers, NaN where they are missing."""
    if values.dtype.kind in "US":
        some = f", such as {values.flat[0].item()!r}" if values.size else ""
        raise ValueError(f"view {name!r} must hold numbers; got texts{some}")
    if values.dtype.kind not in "biuf":
        try:
            values = np.where(_lost(values), np.nan, values).astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"view {name!r} must hold numbers: {error}") from error
        if np.isinf(values).any():
            raise ValueError(f"view {name!r} contains infinity")
    return values


def _whole_rows(lost: NDArray[np.bool_], name: str) -> NDArray[np.bool_]:
    """Return the mask of rows that lack the view; raise ValueError if a row has NaN in only some columns."""
    missing = np.asarray(lost.all(axis=1))
    partly = lost.any(axis=1) & ~missing
    if partly.any():
        row = int(np.flatnonzero(partly)[0])
        raise ValueError(
            f"view {name!r} contains NaN in column {int(np.flatnonzero(lost[row])[0])} of row {row}, but not in all of "
            "the row: a row has a view or lacks it whole. Fill such entries in, or leave the row's view out (all NaN)"
        )
    return missing


def as_bits(values: Any, missing: NDArray[np.bool_], view: Bernoulli | Chain, name: str, row_name: str = "row") -> Any:
    """Convert to a CSR matrix of ones, binarised where the view says so."""
    if not sparse.issparse(values) and missing.any():
        values = np.where(missing[:, None], 0, values)
    bits = sparse.csr_matrix(values)
    if bits is values or sparse.issparse(values):
        bits = sparse.csr_matrix(values, copy=True)
        bits.sum_duplicates()
    if view.binarize is not None:
        bits.data = (bits.data > view.binarize).astype(np.float64)
    bits.eliminate_zeros()
    bits.sort_indices()
    wrong = np.flatnonzero(bits.data != 1)
    if len(wrong):
        row = int(np.searchsorted(bits.indptr, wrong[0], side="right")) - 1
        raise ValueError(
            f"view {name!r} must hold zeros and ones; it has {bits.data[wrong[0]]:g} in {row_name} {row}, column "
            f"{bits.indices[wrong[0]]}. Counts have no proper model with Gaussian latents: take "
            f"{type(view).__name__}(binarize=0), present or not, or a Gaussian view of their logarithms"
        )
    bits.data = np.ones(len(bits.data))
    return bits


def n_rows(tables: Mapping[str, Table]) -> int:
    """Return the number of rows of all tables."""
    return len(next(iter(tables.values())).missing)


def chain_table(
    view: Chain, name: str, values: Any, names: list[str] | None = None, columns: NDArray[np.intp] | None = None
) -> Table:
    """Read the documents of a chain; see `Chain` for the forms of `values`."""
    stacked, given = _paragraphs(view, name, values)
    n_words = stacked.shape[1]
    document = np.repeat(np.arange(len(given)), given)
    if sparse.issparse(stacked):
        if not np.isfinite(stacked.data.astype(np.float64, copy=False)).all():
            raise ValueError(f"view {name!r} holds NaN or infinity in a sparse matrix: leave such paragraphs out")
        there = np.full(len(document), True)
    else:
        stacked = as_numbers(stacked, name)
        lost = np.isnan(stacked) if stacked.dtype.kind == "f" else np.zeros(stacked.shape, dtype=bool)
        there = np.asarray(~lost.all(axis=1))
        partly = np.flatnonzero(lost.any(axis=1) & there)
        if len(partly):
            row = int(document[partly[0]])
            raise ValueError(
                f"view {name!r} contains NaN in column {int(np.flatnonzero(lost[partly[0]])[0])} of paragraph "
                f"{int(partly[0] - given[:row].sum())} of row {row}, but not in all of the paragraph: one that a row "
                "does not have is NaN as a whole. Fill such entries in"
            )
    lengths = np.bincount(document[there], minlength=len(given)).astype(np.intp)
    if sparse.issparse(stacked):
        stacked = stacked.tocsr()
    elif np.isinf(stacked).any():
        raise ValueError(f"view {name!r} contains infinity")
    bits = as_bits(stacked[there], np.zeros(int(there.sum()), dtype=bool), view, name, "paragraph")
    names = numbered(name, n_words) if names is None else names[:n_words]
    return Table(chain_counts(bits, lengths), lengths == 0, names, columns)


def _paragraphs(view: Chain, name: str, values: Any) -> tuple[Any, NDArray[np.intp]]:
    """Return the paragraphs of all documents one after the other, and their number in each document."""
    if isinstance(values, list | tuple) and any(v is None or getattr(v, "ndim", np.ndim(v)) == 2 for v in values):
        tables = [v if sparse.issparse(v) or v is None else np.asarray(v) for v in values]
        widths = {t.shape[1] if t.ndim == 2 else -1 for t in tables if t is not None}
        if not widths:
            raise ValueError(f"view {name!r} of X is None for every row: leave it out")
        if len(widths) != 1 or -1 in widths:
            raise ValueError(
                f"view {name!r} is a list of documents: each must have shape (its paragraphs, n_words), the same words "
                f"in all; got {sorted({t.shape for t in tables if t is not None})[:3]}"
            )
        given = np.array([0 if t is None else t.shape[0] for t in tables], dtype=np.intp)
        there = [t for t in tables if t is not None]
        is_sparse = any(sparse.issparse(t) for t in there)
        return sparse.vstack(there, format="csr") if is_sparse else np.concatenate(there), given
    if not sparse.issparse(values):
        values = np.asarray(values)
    if values.ndim == 3:
        n, steps, words = values.shape
        if not steps * words:
            raise ValueError(f"view {name!r} has {steps} paragraphs of {words} words: there is nothing in it")
        if view.n_steps not in (None, steps):
            raise ValueError(
                f"view {name!r} has n_steps={view.n_steps}, but its array holds {steps} paragraphs a document, as its "
                f"shape (n_samples, n_steps, n_words) is {values.shape}: leave n_steps out, or correct one of them"
            )
        return values.reshape(n * steps, words), np.full(n, steps, dtype=np.intp)
    if values.ndim != 2 or view.n_steps is None:
        raise ValueError(
            f"view {name!r} must be an array of shape (n_samples, n_steps, n_words), a list of arrays of shape (its "
            f"paragraphs, n_words), or a table whose columns are n_steps=... paragraphs; got shape {values.shape}"
        )
    n, width = values.shape
    steps = int(view.n_steps)
    if width % steps:
        raise ValueError(
            f"view {name!r} has {width} columns: they are not {steps} paragraphs (n_steps) of as many words"
        )
    given = np.full(n, steps, dtype=np.intp)
    return values.reshape((n * steps, width // steps)), given


def chain_counts(
    paragraphs: Any,  # CSR (n_paragraphs, n_words): ones; the paragraphs of all documents one after the other
    lengths: NDArray[np.intp],  # (n_documents,)
) -> Any:
    """Count the configurations of cells of each document: the rows of data of `ChainStructure`."""
    n = paragraphs.shape[0]
    document = np.repeat(np.arange(len(lengths)), lengths)
    here = np.flatnonzero(document[1:] == document[:-1])
    steps = sparse.csr_matrix((np.ones(len(here)), (here, here + 1)), shape=(n, n))
    neighbours = ((steps + steps.T) @ paragraphs).tocsr()
    of_document = sparse.csr_matrix((np.ones(n), (document, np.arange(n))), shape=(len(lengths), n))
    near = [neighbours.multiply(neighbours == k).astype(bool).astype(np.float64) for k in (1, 2)]
    on = [paragraphs.multiply(table) for table in near]
    tables = [paragraphs - on[0] - on[1], *on, near[0] - on[0], near[1] - on[1]]
    counts = [of_document @ sparse.csr_matrix(table) for table in tables]
    counts = sparse.hstack([*counts, sparse.csr_matrix(lengths[:, None].astype(np.float64))], format="csr")
    counts.eliminate_zeros()
    counts.sort_indices()
    return counts


@dataclass(frozen=True)
class Distinct:
    """Distinct rows of all views together, in canonical order."""

    tables: dict[str, Table]
    weights: Array  # (n_points,): in units of the largest weight
    y: NDArray[Any] | None  # (n_points,)


def distinct_rows(tables: Mapping[str, Table], weights: Array | None, y: NDArray[Any] | None) -> Distinct:
    """Merge equal rows among those with weight and at least one view, and sort them by y, then by their views."""
    n = n_rows(tables)
    w = np.ones(n) if weights is None else weights
    says = (w > 0) & ~np.logical_and.reduce([table.missing for table in tables.values()])
    if not says.any():
        raise ValueError("X lacks every view in all of its rows: they are NaN")
    rows = np.flatnonzero(says)
    codes = [_row_codes(table, rows) for table in tables.values()]
    keys = codes if y is None else [np.unique(y[rows], return_inverse=True)[1], *codes]
    w = w[rows]
    order = np.lexsort((w, *keys[::-1]))
    sorted_keys = np.column_stack([key[order] for key in keys])
    first = np.append(True, (np.diff(sorted_keys, axis=0) != 0).any(axis=1))
    merged = np.add.reduceat(w[order], np.flatnonzero(first))
    at = rows[order[first]]
    taken = {
        name: Table(table.values[at], table.missing[at], table.names, table.columns) for name, table in tables.items()
    }
    return Distinct(taken, merged / merged.max(), None if y is None else y[at])


def _row_codes(table: Table, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return a code of each row, equal for equal rows, ascending in canonical order; -1 where the view is missing."""
    codes = np.full(len(rows), -1, dtype=np.intp)
    there = np.flatnonzero(~table.missing[rows])
    if not len(there):
        return codes
    values = table.values[rows[there]] if len(there) < len(table.missing) else table.values
    if values.dtype == object:
        numbers = np.zeros(len(there), dtype=np.intp)
        for j in range(values.shape[1]):
            column = np.array([str(v) for v in values[:, j].tolist()])
            numbers = np.unique(
                np.column_stack([numbers, np.unique(column, return_inverse=True)[1]]), axis=0, return_inverse=True
            )[1].ravel()
        codes[there] = numbers
    else:
        codes[there] = empirical_measure(values).positions
    return codes
