"""k-means of rows that come one batch after another: one iteration over all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from majorant._validation import check_sample_weight
from majorant.data.chunks import Block, Chunks
from majorant.data.storage import stored_rows
from majorant.engine.trace import Trace
from majorant.models.kmeans.checks import rows_of
from majorant.models.kmeans.nearest_rows import OBJECTIVES, FittedCentres
from majorant.models.kmeans.search import given_centres
from majorant.registry import value_class
from majorant.search.record import SearchReport, StartRecord
from majorant.solvers.nearest import assign, centres_of
from majorant.solvers.relocation import Farthest, farthest_rows, relocated

if TYPE_CHECKING:
    from majorant.models.kmeans.estimator import KMeans


for _part in (FittedCentres, Farthest):
    value_class(_part)


@value_class
@dataclass(frozen=True)
class BatchSums:
    """Moments of rows about the centres nearest to them, and the rows farthest from theirs, for empty clusters."""

    moments: NDArray[np.float64]
    farthest: Farthest

    def __add__(self, other: BatchSums) -> BatchSums:
        return BatchSums(self.moments + other.moments, self.farthest + other.farthest)


@value_class
@dataclass(frozen=True)
class Batches:
    """What a pass over batches knows of the rows so far: sums about the centres with which it began."""

    init: NDArray[np.float64] | None  # (n_clusters, n_features): the centres that the user gave for the pass
    fitted: FittedCentres  # the centres with which it began
    sums: BatchSums | None = None

    def then(self, X: Any, weights: NDArray[np.float64] | None, n_jobs: int | None) -> Self:
        """Return the pass with another batch."""
        centres = self.fitted.centres

        def visit(block: Block) -> BatchSums:
            rows = replace(block, columns=(self.fitted.rows(block.columns[0], first=block.first),))
            moments, _ = assign(rows.columns[0], rows.weights, centres, np.zeros(len(rows), dtype=np.int32))
            assert moments is not None
            return BatchSums(moments, farthest_rows(rows, centres))

        sums = Chunks(X, weights=weights, n_jobs=n_jobs).map_sum(visit)
        return replace(self, sums=sums if self.sums is None else self.sums + sums)

    def solved(self) -> tuple[NDArray[Any], float]:
        """Return the centres after the rows so far, and the objective of these rows without moving them once more."""
        assert self.sums is not None
        fitted, moments = self.fitted, self.sums.moments
        if (moments[:, 0] <= 0).any():
            moments = relocated(moments, fitted.centres, self.sums.farthest)
        on_sphere = fitted.metric == "cosine"
        centres, objective = centres_of(moments, fitted.centres, on_sphere=on_sphere)
        unit = 0.5 if on_sphere else fitted.scale**-2
        return (centres.astype(np.float64) / fitted.scale).astype(centres.dtype), max(objective, 0.0) * unit


def pass_of(model: KMeans) -> Batches | None:
    """Return the pass over batches that a model is in; None before one, or where `init` was given anew."""
    so_far: Batches | None = getattr(model, "batches_", None)
    if so_far is None or isinstance(model.init, str) or callable(model.init):
        return so_far
    # Where Lloyd's iteration has converged, centres given anew equal the old ones: equal values alone say nothing.
    same = getattr(model, "_init_of_pass", model.init) is model.init
    return so_far if same and so_far.init is not None and np.array_equal(model.init, so_far.init) else None


def _refuse_other_settings(model: KMeans, so_far: Batches) -> None:
    began = {"metric": so_far.fitted.metric, "n_clusters": len(so_far.fitted.centres)}
    for name, before in began.items():
        if (now := getattr(model, name)) != before:
            raise ValueError(
                f"{name} was {before!r} when this pass over batches began and is {now!r} now: set it back, or begin "
                "another pass with set_params(init=...), or with fit"
            )


def add_batch(model: KMeans, X: Any, sample_weight: Any) -> None:
    """Go on with the pass of a model, or begin one, and set its fitted attributes."""
    if stored_rows(X) is not None:
        raise TypeError("partial_fit takes a batch of rows in memory: fit reads stored rows batch by batch itself")
    if model.bounds is not None or model.size_min is not None or model.size_max is not None:
        raise ValueError(
            "partial_fit knows no bounds, size_min or size_max, which need all rows at once: leave them out"
        )
    so_far = pass_of(model)
    if so_far is not None:
        _refuse_other_settings(model, so_far)
    given = None if isinstance(model.init, str) or callable(model.init) else np.array(model.init, dtype=np.float64)
    if so_far is None and given is None:
        model.fit(X, sample_weight=sample_weight)
    X = rows_of(model, X, reset=so_far is None)
    weights = check_sample_weight(sample_weight, X.shape[0])
    if so_far is None:
        centres = model.cluster_centers_ if given is None else given_centres(model, given, X.shape[1])
        so_far = Batches(given, FittedCentres.of(centres.astype(X.dtype), model.metric))
    so_far = so_far.then(X, weights, model.n_jobs)
    model.cluster_centers_, model.inertia_ = so_far.solved()
    model.batches_, model._init_of_pass = so_far, model.init
    model.n_iter_ = 1
    record = StartRecord("given centres" if given is not None else "first batch", model.inertia_, 1, False)
    note = "One iteration over the rows of all batches so far."
    model.search_ = SearchReport((record,), OBJECTIVES[model.metric], note=note)
    model.trace_ = Trace([{"objective": model.inertia_, "bound": model.inertia_, "gap": 0.0, "exploring": 0.0}])
    model.labels_ = FittedCentres.of(model.cluster_centers_, model.metric).nearest(X, model.n_jobs)
