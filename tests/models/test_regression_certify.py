"""Certificates of mixtures of regressions: above all that any search finds, close to it, and true sentences."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.exceptions import NotFittedError

import majorant as mj
from majorant.datasets.tone import STRETCH_RATIO, TUNED
from majorant.models.regression_mixture.build import units_of
from majorant.models.regression_mixture.certify import upper_bound
from majorant.models.regression_mixture.extras import Extras
from majorant.solvers.mixture_bounds import regressions_upper_bound
from majorant.solvers.responses import Gaussian

Array = NDArray[Any]
N_INSTANCES = 60
STRETCH = np.array(STRETCH_RATIO)[:, None]


@dataclass(frozen=True)
class Instance:
    x: Array
    y: Array
    w: Array
    noise: float


def instance(seed: int) -> Instance:
    """A few rows of some lines: levels, repeated rows and units of their own now and then."""
    random = np.random.default_rng(seed)
    n, d = int(random.integers(5, 16)), int(random.integers(1, 3))
    x = random.normal(size=(n, d))
    if seed % 3 == 0:
        x = np.round(x)
    if seed % 7 == 0:
        x[:, -1] = random.integers(2, size=n)
    lines = random.normal(size=(2, d)) * 3
    y = 2 * random.normal(size=2)[random.integers(2, size=n)] + np.sum(x * lines[random.integers(2, size=n)], axis=1)
    y += random.uniform(0.1, 1) * random.normal(size=n)
    noise = float(y.std() * random.uniform(0.05, 0.6)) + 1e-3
    unit = 10.0 ** random.integers(-3, 4)
    w = random.choice([1.0, 2.0, 0.5, 3.7], n) if seed % 2 else np.ones(n)
    return Instance(x * 10.0 ** random.integers(-3, 4) + 5.0 * (seed % 5), y * unit, w, noise * unit)


def fitted_by_em(one: Instance, k: int, seed: int, *, is_free: bool, steps: int = 30) -> float:
    """What EM reaches from random responsibilities, with noise equal to the floor or only at least that."""
    random = np.random.default_rng(seed)
    n = len(one.y)
    x = np.column_stack([np.ones(n), (one.x - one.x.mean(0)) / (one.x.std(0) + 1e-300)])
    y, total = one.y / one.noise, one.w.sum()
    q, value = random.dirichlet(np.full(k, 0.3), n), -np.inf
    for _ in range(steps):
        joint = q * one.w[:, None]
        mass = joint.sum(axis=0) + 1e-300
        root = np.sqrt(joint)
        lines = np.array([np.linalg.lstsq(x * r[:, None], y * r, rcond=1e-10)[0] for r in root.T])
        squares, variances = (y[:, None] - x @ lines.T) ** 2, np.ones(k)
        if is_free:
            variances = np.maximum((joint * squares).sum(axis=0) / mass, 1.0)
        logs = np.log(mass / total) - 0.5 * (squares / variances + np.log(2 * np.pi * variances))
        density = logsumexp(logs, axis=1)
        value = max(value, float(one.w @ density))
        q = np.exp(logs - density[:, None])
    return value - float(total) * float(np.log(one.noise))


@cache
def best_known(seed: int) -> float:
    one = instance(seed)
    tries = [(1, True), (2, True), (3, True), (3, False), (6, False)]
    return max(fitted_by_em(one, k, 10 * seed + s, is_free=is_free) for s, (k, is_free) in enumerate(tries))


def bound_of(one: Instance, effort: Any = "default") -> Any:
    return upper_bound(one.x, one.y, one.w, one.noise, effort=effort)


def test_no_search_finds_a_better_mixture() -> None:
    for seed in range(N_INSTANCES):
        made, known = bound_of(instance(seed)), best_known(seed)
        slack = 1e-9 * (1 + abs(known))
        assert made.bound >= known - slack, seed
        assert made.bound >= made.attained >= known - 0.02, seed
        assert made.bound - made.attained <= 0.02, seed


@pytest.mark.parametrize("budget", [0.0, 1.0, 1e4, 1e5, 1e6])
def test_valid_whatever_the_work(budget: float) -> None:
    for seed in range(0, N_INSTANCES, 5):
        one = instance(seed)
        units = units_of(one.x, one.y, one.w, Extras(), Gaussian(), fit_intercept=True, shared=())
        noise = one.noise / units.coordinates.sigma
        found = regressions_upper_bound(
            units.z, units.y, units.weights, noise, np.empty((units.n_rows, 0)), budget=budget
        )
        assert np.isfinite(found.bound)
        assert units.log_likelihood(found.bound) >= best_known(seed) - 1e-9 * (1 + abs(best_known(seed)))


def test_exact_values() -> None:
    """Two rows of one x: as two points on a line; of two x: some line meets both."""
    y = np.array([0.0, 3.0, 1.5])
    x = np.array([[0.0], [0.0], [1.0]])
    peak = -0.5 * np.log(2 * np.pi * 4.0)
    made = upper_bound(x, y, None, 2.0)
    assert made.bound == pytest.approx(3 * peak - 2 * 1.5**2 / 8, abs=5e-3)
    steep = np.array([0.0, 1e3, -1e3])
    made = upper_bound(np.array([[0.0], [1e-6], [3e-6]]), steep, None, 1.0)
    through_two = 2 * np.log(2 / 3) + np.log(1 / 3) - 1.5 * np.log(2 * np.pi)  # any two rows share a line
    assert made.bound >= through_two - 1e-6
    assert made.bound == pytest.approx(3 * np.log(2 / 3) - 1.5 * np.log(2 * np.pi), abs=5e-3)  # three lines of two rows


@pytest.mark.parametrize("seed", range(4))
def test_a_function_of_the_weighted_rows(seed: int) -> None:
    one = instance(seed + 20)
    base = bound_of(one).bound
    order = np.random.default_rng(seed).permutation(len(one.y))
    assert bound_of(Instance(one.x[order], one.y[order], one.w[order], one.noise)).bound == base
    counts = np.arange(len(one.y)) % 3 + 1
    weighted = bound_of(Instance(one.x, one.y, counts.astype(float), one.noise)).bound
    repeated = Instance(np.repeat(one.x, counts, 0), np.repeat(one.y, counts), np.ones(counts.sum()), one.noise)
    assert bound_of(repeated).bound == weighted
    padded = Instance(np.vstack([one.x, one.x[:1]]), np.append(one.y, 1e6), np.append(one.w, 0.0), one.noise)
    assert bound_of(padded).bound == base


def test_a_column_of_two_levels_is_closed_too() -> None:
    random = np.random.default_rng(0)
    x = np.column_stack([random.normal(size=60), random.integers(2, size=60)])
    y = np.where(random.random(60) < 0.5, x @ [1.0, 2.0], 3 - x[:, 0]) + 0.3 * random.normal(size=60)
    made = upper_bound(x, y, None, 0.2)
    assert made.bound - made.attained <= 0.05


def test_tone_table() -> None:
    model = mj.RegressionMixture(2, random_state=0).fit(STRETCH, TUNED)
    made = model.certify(STRETCH, TUNED)
    assert made.objective == pytest.approx(model.log_likelihood_, abs=1e-8)
    assert made.bound == pytest.approx(207.5, abs=0.2)
    assert 0 <= made.bound - made.attained <= 0.01 * made.difference
    closer = model.certify(STRETCH, TUNED, scale_at_least=float(model.scale_.min()))
    assert closer.bound == pytest.approx(185.0, abs=0.1)
    assert made.sentence == (
        "No mixture of any number of lines with noise variances at least half of the smallest fitted one on these "
        "data has a log-likelihood above 207.546; this fit is within 67 log units of the best possible."
    )
    for k in (3, 5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of five lines the smallest has two rows
            other = mj.RegressionMixture(k, variance="common", random_state=0).fit(STRETCH, TUNED)
        if other.scale_.min() >= model.scale_.min() / np.sqrt(2):
            assert other.log_likelihood_ <= made.bound


def test_units_and_options_do_not_matter() -> None:
    model = mj.RegressionMixture(2, random_state=0).fit(STRETCH, TUNED)
    plain = model.certify(STRETCH, TUNED)
    scaled = mj.RegressionMixture(2, random_state=0).fit(STRETCH * 1e-100, np.array(TUNED) * 1e80)
    other = scaled.certify(STRETCH * 1e-100, np.array(TUNED) * 1e80)
    assert other.difference == pytest.approx(plain.difference, abs=1e-3)
    doubled = np.column_stack([STRETCH, 2 * STRETCH, STRETCH, STRETCH - 1, -STRETCH])
    with pytest.warns(Warning, match="combination"):
        wide = mj.RegressionMixture(2, random_state=0).fit(doubled, TUNED)
    assert wide.certify(doubled, TUNED).bound == pytest.approx(plain.bound, abs=1e-3)
    through_zero = mj.RegressionMixture(2, fit_intercept=False, random_state=0).fit(STRETCH, TUNED)
    assert through_zero.certify(STRETCH, TUNED).bound > through_zero.log_likelihood_
    moved = mj.RegressionMixture(2, random_state=0).fit(STRETCH, TUNED + STRETCH[:, 0], offset=STRETCH[:, 0])
    made = moved.certify(STRETCH, TUNED + STRETCH[:, 0], offset=STRETCH[:, 0])
    assert made.bound == pytest.approx(plain.bound, abs=1e-3)
    single = STRETCH.astype(np.float32), np.array(TUNED, dtype=np.float32)
    floats = mj.RegressionMixture(2, random_state=0).fit(*single).certify(*single)
    assert floats.bound == pytest.approx(plain.bound, abs=0.01)


def test_what_is_refused() -> None:
    random = np.random.default_rng(0)
    x, y = random.normal(size=(60, 4)), random.normal(size=60)
    model = mj.RegressionMixture(2, random_state=0).fit(x, y)
    with pytest.raises(ValueError, match=r"at most 4 coefficients, the intercept among them, and these have 5"):
        model.certify(x, y)
    model = mj.RegressionMixture(2, random_state=0).fit(x[:, :1], y)
    counts = mj.RegressionMixture(1, family="poisson").fit(x[:, :1], np.abs(np.round(y)))
    with pytest.raises(ValueError, match="this fit has family='poisson', for which no bound is known"):
        counts.certify(x[:, :1], np.abs(np.round(y)))
    grouped = mj.RegressionMixture(1).fit(x[:, :1], y, groups=np.arange(60) // 2, gating=np.arange(60) // 4)
    with pytest.raises(ValueError, match="this fit has groups and gating"):
        grouped.certify(x[:, :1], y)
    with pytest.raises(ValueError, match="effort"):
        model.certify(x[:, :1], y, effort="great")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is above the noise of a line of this fit"):
        model.certify(x[:, :1], y, scale_at_least=100.0)
    for wrong in (0.0, -1.0, np.nan, "smallest"):
        with pytest.raises((ValueError, TypeError), match="scale_at_least"):
            model.certify(x[:, :1], y, scale_at_least=wrong)
    with pytest.raises(TypeError, match="in memory"):
        model.certify(mj.Chunks(x[:, :1]), y)
    with pytest.raises(ValueError, match="features"):
        model.certify(x, y)
    with pytest.raises(NotFittedError):
        mj.RegressionMixture(2).certify(x, y)
