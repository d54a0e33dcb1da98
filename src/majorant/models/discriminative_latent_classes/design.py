"""Coordinates in which latent classes are fitted: distinct rows, centred, within their span, without overflow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._validation import refuse_one_class
from majorant.data.chunks import Chunks
from majorant.data.measure import Measure, empirical_measure
from majorant.data.units import distinct_units
from majorant.models.discriminative_latent_classes.labels import PRIOR, IndicatorModel, LabelModel
from majorant.models.discriminative_latent_classes.targets import Targets
from majorant.solvers.covariance import deviations_of, principal_variances
from majorant.solvers.rotation import Rotation, rotation

Array = NDArray[np.float64]

MOST_AXES = 1000
"""Columns up to which `df` is computed from all rows; of wider rows at most `MOST_ROWS` are used."""
MOST_ROWS = 2000


@dataclass(frozen=True)
class Design:
    """Rows in the coordinates of a fit."""

    labelled: Chunks  # columns x and y of the distinct labelled rows, weighted
    rows: Chunks  # column x of all distinct rows, weighted
    measure: Measure  # of the rows of X, with or without label
    rotation: Rotation  # from the measure's points to x
    labels: LabelModel
    point: NDArray[np.intp]  # (n_labelled,): the distinct row that each labelled one is
    code: NDArray[np.intp]  # (n_labelled,): the pattern of labels of each labelled row, by number
    weights: Array  # (n_labelled,)
    patterns: NDArray[Any] | None  # (n_patterns, n_labels): the indicators that each code stands for
    entry: NDArray[np.intp]  # (n_entries,): the labelled row that each entry of the targets became part of
    unit: float  # what a weight of one is, in the weights as they were given: that of the heaviest labelled row

    @property
    def x(self) -> Any:
        """The distinct rows, dense or CSR."""
        return self.rotation.z

    @property
    def n_features(self) -> int:
        """Number of coordinates."""
        return int(self.x.shape[1])

    @property
    def total_weight(self) -> float:
        """Weight of the labelled rows."""
        return self.labelled.total_weight

    @property
    def has_unlabelled(self) -> bool:
        return self.total_weight < self.rows.total_weight * (1 - 1e-12)

    def penalty_of_df(self, df: float) -> float:
        r"""Return the :math:`\lambda`, in units of the coordinates, that keeps the share `df` of degrees of freedom."""
        return penalty_of_df(self._variances(), df)

    def _variances(self) -> Array:
        """Return the variances along principal axes; with many columns, those of a systematic sample of rows."""
        x, weights = self.x, self.measure.weights
        n, p = x.shape
        if p > MOST_AXES and n > MOST_ROWS:
            some = np.linspace(0, n - 1, MOST_ROWS).astype(np.intp)
            x, weights = x[some], weights[some]
        return principal_variances(x, weights / weights.sum(), self.rows.n_jobs)

    def outward(self, theta: Array) -> tuple[Array, Array]:
        """Return the coefficients (n_classes, n_features) and intercepts (n_classes,) in the units of X."""
        out = self.rotation.outward(theta)
        coef = out[:-1] * self.measure.scale
        return np.ascontiguousarray(coef.T), out[-1] - self.measure.origin @ coef


@dataclass(frozen=True)
class FitRows:
    """The interface of rows in memory or read block by block."""

    design: Design  # of all rows; where they are streamed, what it holds in memory is of the sample
    sample: Design  # on which starts are made: the design itself, or rows drawn uniformly
    kind: str  # {"labels", "probabilities", "indicators"}: What y is
    classes: NDArray[Any]  # (n_labels,)
    deviations: Array  # (n_features,): standard deviations of the columns
    # rows with weight, and those of the sample
    n_rows: int
    n_sampled: int
    penalty_of_df: Callable[[float], float]  # see `Design.penalty_of_df`

    def __post_init__(self) -> None:
        refuse_one_class(self.classes, ", among the rows with a label and weight")


def rows_in_memory(X: Any, targets: Targets, weights: Array | None, n_jobs: int | None) -> FitRows:
    """Return the rows of a fit that are all in memory; see `make_design`."""
    design = make_design(X, targets, weights, n_jobs)
    measure = design.measure
    deviations = deviations_of(measure.points, measure.weights / measure.total_weight) / measure.scale
    n = int(np.sum(measure.positions >= 0))
    return FitRows(design, design, targets.kind, targets.classes, deviations, n, n, design.penalty_of_df)


def make_design(
    X: Any,  # CSR or dense (n_rows, n_features)
    targets: Targets,
    weights: Array | None,  # (n_rows,)
    n_jobs: int | None,
) -> Design:
    """Return the design of weighted rows."""
    measure = empirical_measure(X, weights)
    return design_of_measure(measure, targets, weights, n_jobs, rotates=True)


def design_of_measure(
    measure: Measure, targets: Targets, weights: Array | None, n_jobs: int | None, *, rotates: bool = False
) -> Design:
    """Return the design of the points of a measure, in their own coordinates unless it `rotates`."""
    patterns = targets.patterns
    merged = distinct_units((measure.positions[targets.rows], targets.codes), targets.weights_under(weights))
    (point, code), unit = merged.columns, float(merged.weights.max())
    of_labelled = merged.weights / unit
    points = measure.points
    turned = rotation(points, measure.weights / unit) if rotates else Rotation(points, np.zeros(points.shape[1]))
    whole = len(point) == turned.z.shape[0] and bool((point == np.arange(len(point))).all())
    kind = IndicatorModel if targets.kind == "indicators" else LabelModel
    return Design(
        Chunks(
            turned.z if whole else turned.z[point],
            _patterns_of(code, patterns),
            weights=_unless_ones(of_labelled),
            n_jobs=n_jobs,
        ),
        Chunks(turned.z, weights=_unless_ones(measure.weights / unit), n_jobs=n_jobs),
        measure,
        turned,
        kind(len(targets.classes), PRIOR * float(of_labelled.sum())),
        point,
        code,
        of_labelled,
        patterns,
        merged.positions,
        unit,
    )


def sampled(design: Design, most: int, random: np.random.Generator) -> Design:
    """Return a uniform sample of the labelled rows, or the design itself if it has no more."""
    n = len(design.weights)
    if n <= most:
        return design
    drawn = np.sort(random.choice(n, most, replace=False, shuffle=False))
    point, code, weights = design.point[drawn], design.code[drawn], design.weights[drawn]
    y = _patterns_of(code, design.patterns)
    data = Chunks(design.x[point], y, weights=weights, n_jobs=design.labelled.n_jobs)
    return replace(design, labelled=data, point=point, code=code, weights=weights)


def penalty_of_df(variances: Array, df: float) -> float:
    r"""Return the :math:`\lambda` at which ridge regression keeps the share `df` of its degrees of freedom.

    Parameters
    ----------
    variances : ndarray
        Of the rows along their principal axes.
    """
    variances = variances[variances > 1e-10 * variances.max(initial=0.0)]
    if not len(variances):
        return 1.0
    low, high = np.log(variances.min()) - 40, np.log(variances.max()) + 40
    for _ in range(100):
        middle = (low + high) / 2
        kept = float(np.mean(variances / (variances + np.exp(middle))))
        low, high = (middle, high) if kept > df else (low, middle)
    return float(np.exp((low + high) / 2))


def _patterns_of(code: NDArray[np.intp], patterns: NDArray[Any] | None) -> NDArray[Any]:
    return code.astype(np.int32) if patterns is None else np.ascontiguousarray(patterns[code])


def _unless_ones(w: Array) -> Array | None:
    return None if (w == 1.0).all() else w


def most_rows(design: Design) -> int:
    """Return the sample of rows that starts use, so small that principal axes take about a second."""
    p = max(design.n_features, 1)
    most = 2e9 / p**2
    return int(np.clip(most if most >= p else np.sqrt(2e9 / p), 300, 20_000))


def unit_of_each(design: Design, targets: Targets) -> NDArray[np.intp]:
    """Return the unit of the fit that each row is: its label, or the likeliest of its labels; -1 where it has none."""
    positions = np.full(len(design.measure.positions), -1, dtype=np.intp)
    order = slice(None) if targets.shares is None else np.argsort(targets.shares, kind="stable")
    positions[targets.rows[order]] = design.entry[order]
    positions[design.measure.positions < 0] = -1
    return positions


def in_units(penalty: float, scale: float) -> float:
    """Return a penalty in the units of X, whose squares it has."""
    alpha = penalty / scale / scale if scale < 1 else penalty / scale * (1 / scale)
    if not 1e-306 < alpha < 1e306:
        kind = "large" if alpha > 1 else "small"
        raise ValueError(f"entries of X are too {kind} to be squared: rescale X")
    return alpha
