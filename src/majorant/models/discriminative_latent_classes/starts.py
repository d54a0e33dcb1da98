"""Starts of latent classes: at the labels, within them, or at a relaxation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._validation import warn_of_one_start
from majorant.data.measure import Measure
from majorant.engine.draws import drawn
from majorant.models.discriminative_latent_classes.design import Design
from majorant.solvers.nearest import squared_distances
from majorant.starts.ball import SOFTNESS, ball_relaxation, nearest_groups, softened
from majorant.starts.quadratic import QuadraticApproximation, principal_axes
from majorant.starts.seeding import plus_plus
from majorant.starts.simplex_program import RELAXATIONS, Coupling, low_rank_simplex_program, random_assignments

Array = NDArray[np.float64]

LABELS = "labels"
WITHIN = "k-means++ within labels"
BALL = "ball relaxation"
BALL_OF_ROWS = "ball relaxation without labels"
PROGRAMS = {"relaxation": "low-rank relaxation", "independent-relaxations": "independent low-rank relaxations"}
GIVEN = "given classes"

MOST_AXES = 50
"""Principal axes that a relaxation uses."""


@dataclass(frozen=True)
class Relaxed:
    """The labelled rows that relaxations use."""

    design: Design
    n_classes: int
    alpha: float  # the penalty in units of the coordinates

    def approximation(self, *, with_labels: bool) -> QuadraticApproximation:
        d = self.design
        shares = d.weights / d.weights.sum()
        x = d.x[d.point]
        axes = principal_axes(x, shares, MOST_AXES)
        labels = None
        if with_labels:
            labels = np.zeros((len(d.code), int(d.code.max()) + 1))
            labels[np.arange(len(d.code)), d.code] = 1.0
        return QuadraticApproximation.of(axes, self.alpha, shares, labels)

    def ball(self, random: np.random.Generator, *, with_labels: bool) -> Array:
        """Return the soft assignments by the ball relaxation."""
        near = self.approximation(with_labels=with_labels)
        z = ball_relaxation(near.apply, len(near.shares), random)
        return softened(nearest_groups(z, self.design.weights, self.n_classes, random), self.n_classes)

    def program(self, random: np.random.Generator, coupling: Coupling) -> Array:
        """Return the soft assignments by the low-rank program over simplices, rounded as the paper does."""
        near = self.approximation(with_labels=True)
        n_columns = 10 if self.n_classes >= 5 else 5
        start = random_assignments(n_columns, len(near.shares), self.n_classes, random)
        found = low_rank_simplex_program(near.apply, start, shares=near.shares, coupling=coupling)
        return found.average() if self.n_classes >= 5 else found.best()


def starts(
    relaxed: Relaxed, init: str | Array, n_init: int | str, random: np.random.Generator
) -> Iterator[tuple[str, Array]]:
    """Yield the name and the soft assignments of the labelled rows, (n_labelled, n_classes), of each start."""
    d, k = relaxed.design, relaxed.n_classes
    if not isinstance(init, str):
        warn_of_one_start(n_init)
        yield GIVEN, (1 - SOFTNESS) * init + SOFTNESS / k
        return
    if k == 1 or (d.code == d.code[0]).all():  # convex: all starts end at one place
        yield LABELS, softened(np.zeros(len(d.code), dtype=np.int32), k)
        return
    if init == "auto":
        yield LABELS, softened((d.code % k).astype(np.int32), k)
        if len(d.code) > k:
            yield BALL, relaxed.ball(random, with_labels=True)
            yield BALL_OF_ROWS, relaxed.ball(random, with_labels=False)
    elif init == "ball":
        for _ in range(1 if n_init == "auto" else int(n_init)):
            yield BALL, relaxed.ball(random, with_labels=True)
    elif init in RELAXATIONS:
        for _ in range(1 if n_init == "auto" else int(n_init)):
            yield PROGRAMS[init], relaxed.program(random, RELAXATIONS[init])
    if init in ("auto", "random"):
        for _ in range((4 if init == "auto" else 10) if n_init == "auto" else int(n_init)):
            yield WITHIN, within_labels(d, k, random)


def within_labels(design: Design, n_classes: int, random: np.random.Generator) -> Array:
    """Return k-means++ seeds among the rows of each label; how many classes a label gets is random."""
    x, code, weights = design.x[design.point], design.code, design.weights
    names = np.unique(code)
    draws = names[drawn(np.bincount(code, weights=weights)[names].astype(np.float64), random.random(n_classes))]
    first = np.empty(len(code), dtype=np.int32)
    if n_classes >= len(names):
        owner = np.concatenate([names, draws[len(names) :]])
        for name in names:
            own, of = np.flatnonzero(owner == name), np.flatnonzero(code == name)
            first[of] = own[_nearest_seeds(x[of], weights[of], len(own), random)]
    else:
        first[:] = _nearest_seeds(x, weights, n_classes, random)
    return softened(first, n_classes)


def _nearest_seeds(x: Any, weights: Array, k: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Assign rows to the nearest of k k-means++ seeds."""
    rows = Measure(x, weights, np.arange(x.shape[0]), np.zeros(x.shape[1]), 1.0)
    return np.asarray(squared_distances(x, plus_plus(rows, k, random, n_trials=1)).argmin(axis=1))
