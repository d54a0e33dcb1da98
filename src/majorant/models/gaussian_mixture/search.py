"""Searches for Gaussian mixtures: their settings, their coordinates, and the last descent on all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Chunks
from majorant.data.patterns import patterns
from majorant.data.scratch import cached_as
from majorant.data.storage import mapped
from majorant.data.units import blocks_of
from majorant.densities.coordinates import frames
from majorant.densities.gaussian import Gaussian
from majorant.densities.gaussian_gaps import GaussianGaps
from majorant.engine.descent import descend
from majorant.engine.mixture import Mixture as Model
from majorant.engine.mixture import OnData
from majorant.engine.runs import split, stacked
from majorant.models.gaussian_mixture.contest import GaussianContest, Theta
from majorant.models.gaussian_mixture.far_groups import within_far_groups
from majorant.models.gaussian_mixture.missing import TOTAL_FLOOR, total_gaussian
from majorant.models.gaussian_mixture.regularity import LEAST_RATIO
from majorant.models.gaussian_mixture.rows import MOST_POINTS, StandardRows
from majorant.models.gaussian_mixture.starts import KINDS, OWN, Views
from majorant.search.contestants import Found, best_of
from majorant.search.effort import Effort, Plan
from majorant.search.race import Race
from majorant.solvers.covariance_types import DIAGONAL, FULL, Covariance
from majorant.solvers.gaussian import Array
from majorant.solvers.gaussian_missing import impute

LEAST_FLOOR = 1e-14
"""Default floor under eigenvalues: the rounding error of the total variance."""
SOON = 100
"""Steps of a search in which no solution can be regular."""

FEW_ROWS = 50
"""Distinct rows up to which more starts are made if parameters are many relative to them."""
MOST_PATTERNS = 64
"""The search goes over the observed entries themselves if they have no more patterns; over rows that were filled in
otherwise, as each pattern costs its own pass."""
TRIALS = (6, 3), (15, 1)
"""Steps of EM on the observed entries after which solutions of a search over filled rows are compared, and how many
continue."""
STILL_SHARE = 10 * TOTAL_FLOOR
"""With missing entries, directions of variance below the rounding of the total covariance count as constant."""


def plan_of(k: int, n_rows: float, n_parameters: int, n_points: int) -> Plan:
    """Return the search settings: perturb the best until some rounds bring no improvement."""
    patience = max(2, min(k, 6)) if n_rows >= 5 * n_parameters else 2 * k
    if k > 1 and n_points <= FEW_ROWS and n_points < 5 * n_parameters:  # many optima, and steps that cost nothing
        return Plan(
            n_starts=96,
            n_perturbations=36,
            race=((5, 48), (15, 16)),
            perturbation_race=((3, 12), (8, 5), (15, 3)),
            least_rounds=8,
            most_rounds=30,
            least_barren=6 * patience,
            sure_rounds=8,
            least_hits=1,
            starts_every=2,
            n_kept=1,
        )
    return Plan(
        n_starts=24,
        n_perturbations=36 if k == 2 else 72,
        race=((5, 12), (15, 8)),
        perturbation_race=((3, 24), (8, 10), (15, 6)),
        least_rounds=patience // 2 + 1,
        most_rounds=16,
        least_barren=4 * patience,
        keeps_barren=True,
        sure_rounds=1,
        sure_share=0.5,
        sure_starts=(5, 0.5),
        least_hits=1,
        agreed_share=0.7,
        starts_every=0,
        n_kept=8,
    )


def contest_of(
    rows: StandardRows,
    law: Any,
    kind: Covariance,
    draws: np.random.Generator,
    *,
    n_components: int,
    beta: float,
    covariance_floor: float | None,
    tol: float,
    max_iter: int,
    effort: Effort,
    n_init: str | int,
    n_jobs: int | None,
) -> GaussianContest:
    """Return the search of some rows, in coordinates in which EM for the type does not depend on units.

    Parameters
    ----------
    rows : StandardRows
    law : Law
    kind : Covariance
    draws : numpy.random.Generator
        Of a sample of many rows.
    n_components, beta, tol, max_iter, effort, n_init, n_jobs
        See `GaussianMixture`; `tol` is what may be left to gain for each row.
    covariance_floor : float or None
        Smallest eigenvalue of a covariance, relative to the total one; None: chosen.
    """
    precision, normal, whole, is_filled = rows.precision, None, rows, False
    rows = whole.searched(draws)
    points, weights = rows.points, rows.weights / rows.row_weight
    is_wide = len(points) < points.shape[1] and not kind.has_matrices
    if rows.n_missing:
        normal = total_gaussian(whole.data, whole.variances, DIAGONAL if is_wide else FULL)
        is_filled = len(patterns(points)) > MOST_PATTERNS
        points, precision = impute(normal, points), max(precision, float(np.sqrt(STILL_SHARE / points.shape[1])))
    points = points.astype(np.float64, copy=False)
    total_normal = None if normal is None or is_wide else (normal.means[0], normal.covariances[0])
    views = frames(points, weights, precision, total_normal, has_matrices=kind.has_matrices)
    within, is_within = None, False
    if kind.has_matrices and covariance_floor is None:
        within = within_far_groups(rows.points, weights, n_components, whole.precision)
    if within is not None:
        near = frames(points, weights, within[2], within[:2])
        is_within = near.whitened.rank >= views.whitened.rank
        views, precision = (near, within[2]) if is_within else (views, precision)
    own, total = views.of_type(kind.name), float(weights.sum())
    u = own.of(points)
    floor = LEAST_RATIO if covariance_floor is None else max(covariance_floor, LEAST_FLOOR)
    model = Gaussian(kind, own.rank, floor)
    has_gaps = rows.n_missing > 0 and not is_filled
    mixture = Model(GaussianGaps(model, own) if has_gaps else model, law, n_components, beta)
    # Where the coordinates of the type are among the other two, they are none of their own.
    is_other = own is not views.whitened and own is not views.standardised

    def data(*columns: Any, weights: Array) -> Chunks:
        if has_gaps or rows.groups is not None:
            return Chunks(blocks_of(columns, weights, rows.groups), n_jobs=n_jobs)
        return Chunks(*columns, weights=weights, rows=len(weights), n_jobs=n_jobs)  # one block for the kernel

    offset = float(np.log(rows.scale)) * rows.entry_weight / rows.data.total_weight
    plan = plan_of(n_components, total, mixture.n_parameters, len(u))
    contest = GaussianContest(
        mixture=mixture,
        columns=((rows.points if has_gaps else u), *rows.columns[1:]),
        points=u,
        weights=weights,
        plan=plan.within(len(u) * mixture.n_parameters).at(effort).of_starts(n_init),
        tol=tol,
        max_iter=max_iter,
        data=data,
        constant=-(own.log_volume + offset) * total,
        coordinates=own,
        frames=views,
        views=Views(views.whitened.of(points), views.standardised.of(points), u, weights),
        noise=precision**2 + 1e-26,
        floor_tells=covariance_floor is None,
        is_beside_within=is_within,
        kinds=KINDS if is_other else tuple(kind for kind in KINDS if kind is not OWN),
        rows=rows,
        filled=points,
        is_filled=is_filled,
    )
    if contest.is_hopeless:  # there is no answer to look for
        plan = replace(contest.plan, most_rounds=1)
        return replace(contest, plan=plan, max_iter=min(max_iter, SOON), tol=max(tol, 1e-2 / total))
    return contest if is_within else contest.far_apart()


def on_all_rows(
    contest: GaussianContest, rows: StandardRows, reg_covar: float, floor_is_chosen: bool, n_jobs: int | None
) -> OnData:
    """Return the mixture of a contest on all rows; with `reg_covar` by scikit-learn's M-step."""
    own, kind, dtype = contest.coordinates, contest.kind, rows.points.dtype

    def to_u(x: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray(own.of(x), dtype=dtype)

    if rows.n_missing:
        data = rows.data
    elif rows.is_stream:
        data = Chunks(cached_as(rows.data.source, mapped(rows.data.source, to_u)), n_jobs=n_jobs)
    else:
        columns = to_u(rows.points), *rows.columns[1:]
        data = Chunks(blocks_of(columns, rows.weights, rows.groups), n_jobs=n_jobs)
    floor, added = contest.model.floor, None
    if reg_covar > 0:
        added = kind.mapped(reg_covar * rows.scale**2 * kind.identity(len(own.centre)), own.forward)
        if floor_is_chosen:  # what is added is a floor of its own
            floor = LEAST_FLOOR if kind.has_matrices and contest.model.d > 1 else 1e-30
    model = Gaussian(kind, contest.model.d, floor, single=dtype == np.float32, added=added)
    density = GaussianGaps(model, own) if rows.n_missing else model
    return OnData(replace(contest.mixture, density=density), data)


def search(
    contest: GaussianContest, draws: np.random.Generator, verbose: int
) -> list[tuple[GaussianContest, Found[Theta]]]:
    """Run a search; if a floor on the total covariance decides it, another with a floor within components."""
    found = Race(contest, verbose).find(draws)
    out = [(contest, found)]
    released = contest.released(found.best)
    if released is not None:
        out.append((released, Race(released, verbose).find(draws)))
    return out


def tried(contest: GaussianContest, found: Found[Theta], on: OnData) -> Found[Theta]:
    """Return what was found on rows that were filled in, with the solution that is best on the observed entries."""
    runs = list(found.optima)
    if not contest.is_filled or len(runs) < 2 or on.data.n_units > MOST_POINTS:
        return found
    for n_steps, n_kept in TRIALS:
        ends = descend(on, stacked([run.theta for run in runs]), tol=contest.tol, max_iter=n_steps)
        each = zip(runs, split(ends.theta), split(ends.seen), ends.objective.tolist(), strict=True)
        moved = [
            replace(run, theta=theta, objective=value, degenerate=contest.judged(replace(ends, theta=theta, seen=seen)))
            for run, theta, seen, value in each
        ]
        runs = sorted(moved, key=lambda run: run.rank)[:n_kept]
    return replace(found, best=replace(found.best, theta=runs[0].theta))


def winner(raced: Sequence[tuple[GaussianContest, Found[Theta]]]) -> tuple[GaussianContest, Found[Theta]]:
    """Return the contest of the best solution, with the records of all in its coordinates."""
    where, _ = min(raced, key=lambda one: (not one[1].best.is_regular, -one[0].shown(one[1].best.objective)))
    if where.plan.tells_all:  # so many starts were asked for, not as many in each of two coordinates
        raced = [one for one in raced if one[0] is where]
    moved = []
    for contest, found in raced:
        shift, seen, known = contest.constant - where.constant, contest.best_degenerate, where.best_degenerate
        if seen is not None and (known is None or seen.objective + shift < known.objective):
            where.best_degenerate = replace(seen, objective=seen.objective + shift)
        runs = [replace(record, objective=record.objective + shift) for record in found.records]
        best = replace(found.best, objective=found.best.objective + shift)
        moved.append(replace(found, best=found.best if contest is where else best, records=tuple(runs)))
    return where, best_of(moved)
