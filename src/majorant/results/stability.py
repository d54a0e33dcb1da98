"""Stability of a fit under other seeds and resampled rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils import resample as resampled
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import has_fit_parameter

from majorant._frames import data_frame
from majorant._numbers import counted, plural_of
from majorant._told import Told
from majorant._validation import check_choice, check_count, check_sample_weight
from majorant.data.chunks import Block as Rows
from majorant.data.chunks import Chunks
from majorant.registry import card_of
from majorant.results.selection import CLOSE, LOOSE
from majorant.search.record import SAME_OPTIMUM
from majorant.summary import Block, Column, Summary, Table

PLACES = ("cluster_centers_", "means_")
"""Fitted attributes, (n_parts, n_features), with the positions of a model's parts."""


@dataclass(frozen=True, repr=False)
class Agreement(Told):
    """Agreement of some refits with the original fit.

    Attributes
    ----------
    objectives : ndarray of shape (n_runs,)
        Objective of each refit, on the rows that it was fitted to.
    shifts : ndarray of shape (n_runs,)
        Root mean square difference between the positions of matched parts, in standard deviations of the columns; NaN
        for a model whose parts have no positions.
    rand : ndarray of shape (n_runs,)
        Adjusted Rand index between the labels of all rows by the refit and by the original fit: 1 for the same
        partition, near 0 for an unrelated one.
    rows : ndarray of shape (n_rows,)
        Share of refits that give the row to the same part, after the parts were matched.
    """

    objectives: NDArray[np.float64]
    shifts: NDArray[np.float64]
    rand: NDArray[np.float64]
    rows: NDArray[np.float64]

    @property
    def sentence(self) -> str:
        """How far the labels of the refits agree with those of the fit."""
        kept = f"{int(np.sum(self.rows == 1))} of {len(self.rows)} rows stay in their part in all"
        return f"{counted(self.n_runs, 'refit')}, adjusted Rand index {np.median(self.rand):.4g} at the median; {kept}."

    @property
    def n_runs(self) -> int:
        return len(self.rand)


@dataclass(frozen=True)
class Stability:
    """Agreement of refits with the original fit.

    Attributes
    ----------
    model : str
        The model and its size, "k-means, n_clusters = 3".
    part : str
        The word for a part of the model ("cluster").
    n_parts : int
    objective_name : str
    sense : {"min", "max"}
        Whether the objective is better when lower or when higher.
    objective : float
        Objective of the original fit.
    seeds : Agreement
        Refits to the same rows under other seeds.
    resamples : Agreement or None
        Refits to bootstrap resamples of the rows, with other seeds too. Their objectives are on other rows and cannot
        be compared.
    """

    model: str
    part: str
    n_parts: int
    objective_name: str
    sense: Literal["min", "max"]
    objective: float
    seeds: Agreement
    resamples: Agreement | None

    @property
    def parts(self) -> str:
        """The word for parts, in the plural."""
        return plural_of(self.part)

    @property
    def best(self) -> float:
        """The best objective of the original fit and of all other seeds."""
        values = [self.objective, *self.seeds.objectives]
        return float(min(values) if self.sense == "min" else max(values))

    @property
    def n_at_best(self) -> int:
        """Number of other seeds that reached the best objective, to 1e-6 of its size."""
        return int(np.sum(self._distances(self.seeds.objectives) <= SAME_OPTIMUM * abs(self.best)))

    @property
    def share_at_best(self) -> float:
        """Share of other seeds that reached the best objective."""
        return self.n_at_best / self.seeds.n_runs

    @property
    def original_at_best(self) -> bool:
        """Whether the original fit reached the best objective."""
        return bool(self._distances(np.array([self.objective]))[0] <= SAME_OPTIMUM * abs(self.best))

    @property
    def spread(self) -> float:
        """Difference between the worst and the best seed, as a share of the best."""
        worst = float(self._distances(self.seeds.objectives).max())
        if worst == 0:
            return 0.0
        return worst / abs(self.best) if self.best else float("inf")

    def _distances(self, objectives: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.abs(objectives - self.best)

    def to_frame(self) -> Any:
        """Return a data frame with one row per refit (pandas if installed, otherwise polars)."""
        groups = [("seed", self.seeds)] + ([] if self.resamples is None else [("resample", self.resamples)])
        return data_frame(
            {
                "varied": [varied for varied, group in groups for _ in range(group.n_runs)],
                "objective": np.concatenate([group.objectives for _, group in groups]),
                "shift": np.concatenate([group.shifts for _, group in groups]),
                "rand": np.concatenate([group.rand for _, group in groups]),
            }
        )

    def summary(self) -> Summary:
        """Return the numbers in a table, with a conclusion in words."""
        groups = [("other seeds", self.seeds)] + ([] if self.resamples is None else [("resamples", self.resamples)])
        moved = not np.isnan(self.seeds.shifts).any()
        rand = [group.rand for _, group in groups]
        columns = [
            Column("varied", [varied for varied, _ in groups]),
            Column("refits", [group.n_runs for _, group in groups]),
            Column("at best", [self.n_at_best, None][: len(groups)], key="at_best"),
        ]
        if moved:
            shifts = [group.shifts for _, group in groups]
            columns.append(Column("shift", list(map(np.median, shifts)), 3, "median_shift"))
            columns.append(Column("largest", list(map(np.max, shifts)), 3, "largest_shift"))
        columns += [  # rounded down, so that only 1 itself is shown as 1
            Column("Rand", list(map(np.median, rand)), 3, "median_rand", rounding="down"),
            Column("worst", list(map(np.min, rand)), 3, "worst_rand", rounding="down"),
            Column("kept", [int(np.sum(group.rows == 1)) for _, group in groups], key="rows_kept"),
        ]
        how_to_read = [
            f"At best: reached the best {self.objective_name} seen; the worst seed ended {_percent(self.spread)} off.",
            f"Shift: how far the {self.parts} moved, in standard deviations of the columns: median and largest.",
            "Rand: adjusted Rand index of the labels, median and worst; 1 for the same partition.",
            f"Kept: of {len(self.seeds.rows)} rows, those in the same {self.part} in every refit.",
        ]
        if not moved:
            del how_to_read[1]
        block = Block("STABILITY", self.conclusion, (Table("agreement", columns), *how_to_read))
        return Summary(f"Stability of {self.model}", counted(len(self.seeds.rows), "row"), [block])

    def __str__(self) -> str:
        return str(self.summary())

    def __repr__(self) -> str:
        return f"Stability({self.model}: {self.conclusion})"

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    @property
    def conclusion(self) -> str:
        """The conclusion from the numbers, in sentences."""
        runs, of = self.seeds.n_runs, f"the best {self.objective_name} seen"
        if self.n_at_best == runs and self.original_at_best:
            said = [f"The seed did not matter: {_every(runs)} reached {of}, as the original fit did."]
        elif self.original_at_best:
            said = [
                f"Only {self.n_at_best} of {runs} other seeds reached {of}, as the original did: one fit may miss it."
            ]
        else:
            said = [f"Another seed found a better {self.objective_name} than the original fit: use more starts."]
        if self.n_parts == 1:
            return " ".join([*said, f"With one {self.part}, labels cannot differ."])
        if self.resamples is not None:
            median, worst = np.median(self.resamples.rand), self.resamples.rand.min()
            if worst >= CLOSE:
                said.append(f"The {self.parts} stayed nearly the same in every resample of the rows.")
            elif median >= CLOSE:
                said.append(f"The {self.parts} stayed nearly the same in most resamples of the rows, but not in all.")
            elif median >= LOOSE:
                same = f"{np.sum(self.resamples.rows == 1)} of {len(self.resamples.rows)} rows"
                said.append(f"The {self.parts} changed when the rows were resampled; {same} kept theirs every time.")
            else:
                said.append(f"Resampling the rows gave other {self.parts}: another sample may well give others again.")
        elif self.seeds.rand.min() < CLOSE:
            said.append(f"Some seeds gave other {self.parts} than the original fit.")
        return " ".join(said)


def stability(
    est: Any,
    X: Any,
    y: Any = None,
    *,
    n_runs: int = 20,
    resample: str | None = "bootstrap",
    random_state: Any = None,
    **fit_params: Any,
) -> Stability:
    r"""Refit an estimator with other seeds and to resampled rows, and measure how well the results agree.

    Objectives are compared directly. With :math:`c_k` the positions of the parts of the original fit, :math:`c'_k`
    those of a refit, :math:`s_j` the standard deviation of column j, and :math:`\pi` the matching of parts that
    minimises it,

    .. math:: \text{shift} = \Big( \frac{1}{K d} \min_\pi \sum_{k,j} (c_{kj} - c'_{\pi(k) j})^2 / s_j^2 \Big)^{1/2}

    and labels are compared over all rows by the adjusted Rand index [1]_, and row by row after the matching. For a
    model that predicts classes, the predicted classes are compared, without matching. Agreement means that the result
    does not depend on the seed or on single rows; it does not mean that the model is right.

    Parameters
    ----------
    est : estimator
        One of majorant's models, fitted or not. It is not changed: the original fit is that of a clone.
    X : array-like or sparse matrix of shape (n_rows, n_features), data frame, or Chunks
    y : array-like of shape (n_rows,), optional
        Target, for models that take one.
    n_runs : int, default=20
        Number of refits with other seeds, and of refits to resamples.
    resample : {"bootstrap", None}, default="bootstrap"
        Whether rows, or the `groups` of a fit that is given them, are also resampled, with replacement. Where ``fit``
        takes `sample_weight`, a resample is the number of times that each row was drawn, given as its weight.
    random_state : int, RandomState instance or None, default=None
        Seed of the refits and of the resamples, and of the original fit if the estimator has none.
    **fit_params
        Passed to ``fit``, for instance `sample_weight`. If ``fit`` takes no weights, arrays with one entry per row are
        resampled with the rows.

    Returns
    -------
    Stability
        Numbers as attributes, ``to_frame()``, and a page by ``str()``.

    Raises
    ------
    TypeError
        If `est` is not one of majorant's models, or rows that follow each other in time are to be resampled.
    ValueError
        If `n_runs` is less than 1, `resample` is unknown, or data and weights cannot be used.

    References
    ----------
    .. [1] L. Hubert, P. Arabie, "Comparing partitions", Journal of Classification 2, 1985.

    Examples
    --------
    >>> import majorant as mj
    >>> from sklearn.datasets import load_iris
    >>> found = mj.stability(mj.KMeans(3), load_iris().data, n_runs=5, random_state=0)
    >>> found.n_at_best
    5
    >>> found.resamples.rows.shape
    (150,)
    """
    card = card_of(est)
    check_count("n_runs", n_runs)
    if resample is not None:
        check_choice("resample", resample, ["bootstrap"], or_else=" or None")
        if card.in_order:
            raise TypeError(
                f"rows of a {card.title} follow each other in time, and resamples of rows have no order: give "
                "resample=None to leave them out"
            )
    random = check_random_state(random_state)
    own_seed = est.get_params(deep=False).get("random_state")
    seeds = random.randint(2**31 - 1, size=1 + 2 * n_runs).tolist()
    original = _refit(est, seeds[0] if own_seed is None else own_seed, X, y, fit_params)
    classes = np.unique(y) if card.kind == "classification" else None
    n_parts = int(card.size_of(est)) if classes is None else len(classes)
    compare = _Comparison(original, X, y, n_parts, fit_params, classes)
    attribute = card.objective_attribute
    by_seed = [compare(_refit(est, seed, X, y, fit_params), attribute) for seed in seeds[1 : 1 + n_runs]]
    by_rows = [
        compare(_refit(est, seed, *_drawn(est, X, y, fit_params, random)), attribute)
        for seed in (seeds[1 + n_runs :] if resample is not None else ())
    ]
    return Stability(
        model=card.title + (f", {card.size_parameter} = {card.size_of(est)}" if card.size_parameter else ""),
        part=card.part if classes is None else "predicted label",
        n_parts=compare.n_parts,
        objective_name=original.search_.objective_name,
        sense=original.search_.sense,
        objective=float(getattr(original, card.objective_attribute)),
        seeds=_agreement(by_seed),
        resamples=_agreement(by_rows) if by_rows else None,
    )


def _refit(est: Any, seed: Any, X: Any, y: Any, fit_params: Mapping[str, Any]) -> Any:
    copy = clone(est)
    if "random_state" in copy.get_params(deep=False):
        copy.set_params(random_state=seed)
    return copy.fit(X, y, **fit_params)


def _n_rows(X: Any) -> int:
    if isinstance(X, Chunks):
        return X.n_units
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _drawn(
    est: Any, X: Any, y: Any, fit_params: Mapping[str, Any], random: np.random.RandomState
) -> tuple[Any, Any, dict[str, Any]]:
    """Return a bootstrap resample, as (X, y, fit_params)."""
    n = _n_rows(X)
    if has_fit_parameter(est, "sample_weight"):
        given = check_sample_weight(fit_params.get("sample_weight"), n)
        weights = np.ones(n) if given is None else given
        groups = fit_params.get("groups")
        units = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1].ravel()
        of_unit = np.zeros(int(units.max()) + 1)
        of_unit[units] = weights
        kept = np.flatnonzero(of_unit)  # rows without weight must not change the draw
        counts = np.zeros(len(of_unit))
        counts[kept] = np.bincount(random.randint(len(kept), size=len(kept)), minlength=len(kept))
        return X, y, {**fit_params, "sample_weight": counts[units] * weights}
    by_row = {name: value for name, value in fit_params.items() if np.ndim(value) > 0 and _n_rows(value) == n}
    seed = int(random.randint(2**31 - 1))
    drawn = {name: resampled(value, random_state=seed) for name, value in by_row.items()}
    y = None if y is None else resampled(y, random_state=seed)
    return resampled(X, random_state=seed), y, {**fit_params, **drawn}


@dataclass(frozen=True)
class _Refit:
    objective: float
    shift: float
    rand: float
    same: NDArray[np.bool_]


def _agreement(refits: list[_Refit]) -> Agreement:
    return Agreement(
        np.array([r.objective for r in refits]),
        np.array([r.shift for r in refits]),
        np.array([r.rand for r in refits]),
        np.mean([r.same for r in refits], axis=0),
    )


class _Comparison:
    """Comparison of refits with the original fit, on all rows."""

    def __init__(
        self,
        original: Any,
        X: Any,
        y: Any,
        n_parts: int,
        fit_params: Mapping[str, Any],
        classes: NDArray[Any] | None,
    ) -> None:
        self.X, self.y, self.n_parts, self.classes = X, y, n_parts, classes
        known = signature(original.classify).parameters if hasattr(original, "classify") else {}
        self.given = {name: value for name, value in fit_params.items() if name in known}
        self.labels = self._labels(original)
        self.attribute = next((a for a in PLACES if hasattr(original, a)), None)
        if self.attribute is not None:
            deviations = _deviations(X, check_sample_weight(fit_params.get("sample_weight"), _n_rows(X)))
            self.varies = deviations > 0
            self.unit = deviations[self.varies]
            self.places = self._places(original)

    def __call__(self, refit: Any, objective_attribute: str) -> _Refit:
        labels, shift = self._labels(refit), np.nan
        mine = other = np.arange(self.n_parts)  # classes have names of their own
        if self.attribute is not None:
            squares = ((self.places[:, None, :] - self._places(refit)[None]) ** 2).sum(axis=2)
            mine, other = linear_sum_assignment(squares)
            shift = float(np.sqrt(squares[mine, other].sum() / max(self.places.size, 1)))
        if self.attribute is None and self.classes is None:
            shared = np.zeros((self.n_parts, self.n_parts))
            np.add.at(shared, (self.labels, labels), 1.0)
            mine, other = linear_sum_assignment(shared, maximize=True)
        name = np.empty(self.n_parts, dtype=np.intp)
        name[other] = mine
        from sklearn.metrics import adjusted_rand_score  # takes time to load

        rand = float(adjusted_rand_score(self.labels, labels))
        return _Refit(float(getattr(refit, objective_attribute)), shift, rand, name[labels] == self.labels)

    def _labels(self, fitted: Any) -> NDArray[np.intp]:
        labels = (
            fitted.classify(self.X, self.y, **self.given) if hasattr(fitted, "classify") else fitted.predict(self.X)
        )
        if self.classes is not None:
            labels = np.searchsorted(self.classes, labels)
        return np.asarray(labels).astype(np.intp)

    def _places(self, fitted: Any) -> NDArray[np.float64]:
        places = np.asarray(getattr(fitted, str(self.attribute)), dtype=np.float64)
        return places[:, self.varies] / self.unit


def _deviations(X: Any, weights: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return weighted standard deviations of columns without missing values; exactly 0 for one value."""
    is_sparse: bool = sparse.issparse(X)
    if is_sparse:
        return np.asarray(np.sqrt(mean_variance_axis(X.tocsr().astype(np.float64), axis=0, weights=weights)[1]))
    chunks = X if isinstance(X, Chunks) else Chunks(np.asarray(X, dtype=np.float64))
    first = next(chunks.source.blocks()).columns[0].astype(np.float64)
    if weights is not None and weights[: len(first)].any():
        first = first[weights[: len(first)] > 0]  # a row without weight must not make constant columns look variable
    low, high = np.fmin.reduce(first, axis=0), np.fmax.reduce(first, axis=0)
    middle, scale = low / 2 + high / 2, high / 2 - low / 2
    scale = np.where(scale > 0, scale, 1.0)

    def powers(block: Rows) -> NDArray[np.float64]:
        x = (block.columns[0] - middle) / scale
        w = np.ones(len(x)) if weights is None else weights[block.first : block.first + len(x)]
        there = np.isfinite(x)
        x = np.where(there, x, 0.0)
        return np.stack([w @ there, w @ x, w @ x**2])

    mass, total, squares = chunks.map_sum(powers)
    mass = np.maximum(mass, np.finfo(float).tiny)
    return np.asarray(np.sqrt(np.maximum(squares / mass - (total / mass) ** 2, 0.0)) * scale)


def _percent(share: float) -> str:
    return "0 %" if share <= SAME_OPTIMUM else f"{100 * share:.2g} %" if share < 1 else f"{1 + share:.3g} times"


def _every(n: int) -> str:
    return "the other seed" if n == 1 else f"all {n} other seeds"
