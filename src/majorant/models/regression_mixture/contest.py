"""The search for mixtures of regressions: starts, and rules of regularity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block
from majorant.densities import Predictors, Regression
from majorant.densities.regression import EXACT_SHARE, FEW_EVENTS
from majorant.engine.checkpoint import entered
from majorant.engine.descent import Ends, Seen, descend
from majorant.engine.mixture import Mixture, OnData, Parameters
from majorant.engine.runs import mapped, split, stacked
from majorant.engine.triangles import lower
from majorant.laws.gated import Gated, Logits
from majorant.laws.independent import Weights
from majorant.models.regression_mixture.starts import CHEAP, Starts, Theta, plan_of
from majorant.models.regression_mixture.units import AnyUnits, Units, UnitStream
from majorant.models.regression_mixture.words import EXACT_ROWS, SEPARATED, of_exact, of_ratio
from majorant.search.contest import TWINS, MixtureContest
from majorant.search.contestants import NamedStart, Run
from majorant.search.effort import Plan
from majorant.search.record import PERTURBATION

Array = NDArray[np.float64]
FURTHER = 40
"""Steps in which a predictor that goes to infinity comes so far that its rows have no information there."""
CACHED = 1 << 16
"""Entries of a table that stays in the cache."""


@dataclass
class RegressionContest(MixtureContest):
    """The interface of a race to a mixture of regressions, on units in memory or read block by block."""

    units: AnyUnits = field(kw_only=True)
    trim: float = 0.0  # share of the rows that does not count
    batch: int = CACHED

    @property
    def density(self) -> Regression:
        density = self.mixture.density
        assert isinstance(density, Regression)
        return density

    @cached_property
    def whole(self) -> Any:
        return self.units

    @cached_property
    def sample_size(self) -> int:
        """Units on which starts race where there are many: on too few of each component all runs collapse."""
        k = self.mixture.n_components
        return max(1000, 5 * max(k, 4) * k * self.units.n_coefficients)

    @property
    def is_sampled(self) -> bool:
        return self.units.n_units > 1.5 * self.sample_size

    @property
    def note(self) -> str:
        noun = "groups" if self.units.is_grouped else "rows"
        return f", on {self.sample_size} of {self.units.n_units} {noun} first" if self.is_sampled else ""

    def sample(self, draws: np.random.Generator) -> Any:
        assert isinstance(self.units, Units)
        return self.units.subsample(draws, self.sample_size)

    def on(self, rows: Any) -> OnData:
        found: OnData = rows.on(self.mixture, self.trim)
        return found

    def freed(self, on: OnData) -> OnData:
        return replace(on, mixture=replace(self.mixture, density=self.density.freed()))

    def starts(self, rows: Units, is_first: bool, draws: np.random.Generator) -> list[NamedStart[Theta]]:
        return self._starts(rows).named(self.plan.n_starts, draws)

    def perturbed(
        self, rows: Units, bases: Sequence[Theta], size: int, draws: np.random.Generator
    ) -> list[NamedStart[Theta]]:
        least = self.least_size * rows.total_weight / self.units.total_weight
        return named(PERTURBATION, self._starts(rows).replaced(draws, bases, size, least))

    def _starts(self, rows: Units) -> Starts:
        return Starts(rows, self.density.response, self.mixture.n_components)

    def run(
        self, rows: Any, runs: list[Run[Theta]], max_iter: int, tol: float, *, free: bool = False
    ) -> list[Run[Theta]]:
        if self.density.n_dispersions == "one":  # no step may gain by keeping apart what is shared
            runs = [replace(run, theta=with_one_dispersion(run.theta)) for run in runs]
        return super().run(rows, runs, max_iter, tol, free=free)

    def _descended(self, on: OnData, theta: Theta, max_iter: int, tol: float) -> Ends[Any]:
        if on.data.source is self.units.data.source and not isinstance(self.units, Units):
            entry = entered(loop="descent", start=theta, rows=on.data.n_units, tol=tol, max_iter=max_iter)
            return descend(on, theta, tol=tol, max_iter=max_iter, entry=entry)
        return super()._descended(on, theta, max_iter, tol)

    # Which solutions count

    def _degeneracies(self, theta: Theta, seen: Seen) -> list[str]:
        density, dispersion, runs = self.density, theta.density.dispersion, len(seen.objective)
        shares = self.mixture.law.shares(theta.law, seen.statistics.law)
        smallest = self.smallest(shares)
        finite = np.isfinite(theta.density.coef).all(axis=(1, 2)) & np.isfinite(seen.objective)
        reasons = [""] * runs
        for i in np.flatnonzero(finite & ~density.has_events(seen.statistics.density, theta.density)):
            one = mapped(lambda array, i=i: array[i : i + 1], theta.density)
            away = density.away(seen.statistics.density[i : i + 1], one)
            size, least = float(self.smallest(shares[i, away | ~away.any()])), density.n_coefficients + 2.0
            if size < least:
                told = self.units.in_words
                reasons[i] = f"{SEPARATED}, and has {told(size)} (regular from {told(least)} on)"
        if density.response.has_dispersion:
            ratio, most = sigma_ratio(theta), density.rule.max_sigma_ratio
            for i in np.flatnonzero(density.rule.is_active(dispersion)):
                reasons[i] = f"the noise differs by a factor of {ratio[i]:.1f} (regular below {most:g})"
            for i in np.flatnonzero(density.on_floor(dispersion)):
                reasons[i] = EXACT_ROWS
        for i in np.flatnonzero(has_twins(theta.density)):
            reasons[i] = TWINS
        for i in np.flatnonzero(smallest < self.least_size):
            told = self.units.in_words
            reasons[i] = f"the smallest component has {told(smallest[i])} (regular from {told(self.least_size)} on)"
        for i in np.flatnonzero(density.on_floor(dispersion.max(axis=1, keepdims=True))):
            reasons[i] = EXACT_ROWS  # rounding decides whose a row is
        for i in np.flatnonzero(~finite):
            reasons[i] = "its coefficients are not finite"
        return reasons

    def smallest(self, shares: Array) -> Array:
        """Return the rows (or groups) of the smallest component of each run."""
        return np.asarray(shares.min(axis=-1) * (self.units.total_weight * (1 - self.trim)))

    def held_back(self, run: Run[Theta]) -> str:
        """Return why a solution that counts would, with more iterations, move to one that does not."""
        most = self.density.rule.max_sigma_ratio
        if not self.has_rule or sigma_ratio(run.theta)[0] < 0.95 * most:
            return ""
        end = self.run(self.whole, [run], 200, 0.0, free=True)[0]  # the way out may be flat: no tolerance
        return of_ratio(most) if sigma_ratio(end.theta)[0] > most else ""

    def followed(self, run: Run[Theta]) -> Run[Theta]:
        """Return a run whose predictors may be on their way to infinity further on: what it gains there is little."""
        statistics = self.on(self.whole).seen(run.theta).statistics.density
        if self.density.has_events(statistics, run.theta.density, FEW_EVENTS)[0]:
            return run
        return replace(self.run(self.whole, [run], FURTHER, 0.0)[0], converged=run.converged)

    def explained(self, run: Run[Theta]) -> Run[Theta]:
        """Return the same run, with a note if the largest ratio of noises keeps it from an exact fit of some rows."""
        if run.is_regular or not self.has_rule or sigma_ratio(run.theta)[0] < 0.95 * self.density.rule.max_sigma_ratio:
            return run
        theta = self.run(self.whole, [run], 200, 0.0, free=True)[0].theta
        dispersion = theta.density.dispersion
        if not self.density.on_floor(dispersion)[0]:
            return run
        size = float(self.smallest(self.shares(theta)[dispersion[0].argmin(keepdims=True)]))
        return replace(run, degenerate=of_exact(self.units.in_words(size)))

    def is_admissible(self, run: Run[Theta]) -> bool:
        if not self.density.response.has_dispersion:
            return bool(np.isfinite(run.objective))
        least = (self.units.n_coefficients + 2.0) * self.units.n_units / self.units.n_rows
        exact, shares = self.density.on_floor(run.theta.density.dispersion.T), self.shares(run.theta)
        is_told = not exact.any() or shares[exact].sum() >= EXACT_SHARE
        return bool(is_told and self.smallest(shares) >= least)

    def shares(self, theta: Theta) -> Array:
        """Return the share of each component among all units, (components,); with gating, the mean prior."""
        return np.asarray(mean_weights(self.units, theta)[0])

    def features(self, thetas: Sequence[Theta]) -> Array:
        theta = stacked(thetas)
        own = np.asarray(theta.law.weights) if isinstance(theta.law, Weights) else _norms(_centred(theta.law.coef))
        parts = np.log(theta.density.dispersion), own, _norms(theta.density.coef)
        return np.concatenate([np.sort(part, axis=1) for part in parts], axis=1)


def contest_of(
    units: AnyUnits, mixture: Mixture, *, least_size: float, tol: float, max_iter: int, trim: float
) -> RegressionContest:
    """Return the search for a mixture on some units, where components need `least_size` rows."""
    density = mixture.density
    assert isinstance(density, Regression)
    contest = RegressionContest(
        mixture=mixture,
        columns=(),
        points=np.zeros((0, 0)),
        weights=np.zeros(0),
        plan=Plan(),
        tol=tol,
        max_iter=max_iter,
        data=lambda *columns, weights: units.data,
        least_size=least_size,
        constant=-units.constant * (1 - trim),
        has_rule=density.n_dispersions == "each",
        units=units,
        trim=trim,
    )
    size = contest.sample_size if contest.is_sampled else units.n_units
    cost = size * mixture.n_components * units.n_coefficients * (units.n_coefficients + 1) / 2
    plan = plan_of(
        mixture.n_components,
        is_sampled=contest.is_sampled,
        is_plain=units.is_plain and density.response.has_normal_noise,
        is_cheap=units.is_plain and not trim and cost <= CHEAP,
    )
    rows = units.sample if isinstance(units, UnitStream) else units
    takes_bits = density.response.takes_trials and rows.trials is not None and rows.trials.max() == 1
    if (
        takes_bits and not units.is_grouped
    ):  # lines that separate them have many optima, and all of a round may share one
        plan = replace(plan, sure_rounds=plan.most_rounds, least_rounds=2 * plan.least_rounds)
    return replace(contest, plan=plan.within(cost))


def named(source: str, theta: Theta) -> list[NamedStart[Theta]]:
    """Return each run of a batch, by the kind of start that it is."""
    return [(source, one) for one in split(theta)]


def with_one_dispersion(theta: Theta) -> Theta:
    """Return the parameters with the mean dispersion of the components for all of them."""
    density = theta.density
    mean = np.repeat(density.dispersion.mean(axis=1, keepdims=True), density.dispersion.shape[1], axis=1)
    return Parameters(Predictors(density.coef, mean), theta.law)


def mean_weights(units: AnyUnits, theta: Theta) -> Array:
    """Return the weights of each mixture, (runs, components); with covariates, the mean of the priors."""
    if not isinstance(theta.law, Logits):
        return np.asarray(theta.law.weights)
    assert isinstance(units, Units) and units.gating is not None
    block, share = Block(0, (units.gating,)), units.weights / units.total_weight
    law = Gated(units.gating.shape[1])
    return np.array([np.exp(law.log_prior(one.law, block)[0]) @ share for one in split(theta)])


def sigma_ratio(theta: Theta) -> Array:
    """Return the largest over smallest standard deviation of the noise of each mixture."""
    dispersion = theta.density.dispersion
    return np.asarray(np.sqrt(dispersion.max(axis=1) / dispersion.min(axis=1)))


def has_twins(density: Predictors) -> NDArray[np.bool_]:
    """Return whether two components of a mixture have the same coefficients and noise: EM then sits on a saddle."""
    a, b = lower(density.coef.shape[1], -1)
    noise = np.log(density.dispersion)
    apart = _norms(density.coef[:, a] - density.coef[:, b]) / np.exp((noise[:, a] + noise[:, b]) / 4)
    return np.asarray((apart + np.abs(noise[:, a] - noise[:, b]) < 1e-3).any(axis=1))


def _norms(table: Array) -> Array:
    return np.asarray(np.sqrt(np.sum(table**2, axis=-1)))


def _centred(table: Array) -> Array:
    return np.asarray(table - table.mean(axis=1, keepdims=True))
