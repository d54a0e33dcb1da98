"""Starts of regression mixtures: through few units, trimmed greedily, pooled, or with one component replaced.

All draws are by inverse CDF on the weighted units in canonical order. Loss is the deviance; of Gaussian targets squared
residuals, for which kernels make trimmed starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from majorant import _kernels
from majorant.densities import Predictors
from majorant.densities.regression import LONGEST_STEP, ridge_solved
from majorant.engine.draws import drawn
from majorant.engine.mixture import Parameters
from majorant.engine.runs import split, stacked
from majorant.engine.triangles import symmetric
from majorant.laws.gated import Logits
from majorant.laws.independent import Weights
from majorant.models.regression_mixture.units import Units
from majorant.search.effort import Plan
from majorant.solvers.responses import Gaussian, Response, ResponseRows

Array = NDArray[np.float64]
Theta = Parameters[Predictors, Any]

TRIMMED, ELEMENTAL, POOLED = "trimmed greedy", "lines through few rows", "pooled line and noise"
N_CANDIDATES, N_CONCENTRATIONS = 8, 3
KERNEL_CANDIDATES = 6
MOST_STARTS, STARTS_ON_A_SAMPLE = 64, 32
"""Starts of a round at most, and where they race on a sample of the rows."""
FEWEST_HARD = 5
"""Plain lines from which a search has more patience, and does not end before on perturbations that return."""

CHEAP = 5e4
"""Multiplications of a step of EM, rows x components x p (p + 1) / 2, up to which time matters little."""


def plan_of(n_components: int, *, is_sampled: bool, is_plain: bool, is_cheap: bool) -> Plan:
    """Return the search for a mixture of `n_components` regressions.

    Where steps are cheap, fewer runs are dropped early, and the best solution is perturbed more often than starts are
    made. Of many plain lines few runs reach the best.
    """
    size = STARTS_ON_A_SAMPLE if is_sampled else min(4 * n_components * (n_components + 1), MOST_STARTS)
    if is_cheap:
        patience = max(10, 2 * n_components)
        return Plan(
            n_starts=size,
            n_perturbations=size,
            race=((20, size // 2), (50, size // 4)),
            n_beyond=min(16 * n_components, MOST_STARTS),
            least_rounds=patience,
            most_rounds=4 * patience,
            sure_starts=(5, 0.5),
            agreed_hits=1.5 * size,
            agreed_rounds=4,
            starts_every=4,
            n_kept=1,
        )
    is_hard = is_plain and n_components >= FEWEST_HARD
    patience, kept_first, kept_next = (2 * n_components, 2, 4) if is_hard else (3, 3, 8)
    return Plan(
        n_starts=size,
        n_perturbations=size,
        race=((15, max(size // kept_first, 4)), (40, max(size // kept_next, 4))),
        n_beyond=min(16 * n_components, MOST_STARTS),
        least_rounds=patience,
        most_rounds=4 * patience,
        sure_starts=(5, 0.5) if is_hard else (1, 0.0),
    )


def weighted_fits(rows: ResponseRows, shares: Array, *, n_steps: int = 3, ridge: float = 1e-4) -> Array:
    """Fit M models independently to weighted rows, weights (M, n_rows); return coefficients (M, p)."""
    response, p, one = rows.response, len(rows.columns), np.ones(len(shares))

    def solved(sums: Array) -> Array:
        a = symmetric(sums[:, 2 + p :], p)
        a = a + ridge * (np.trace(a, axis1=1, axis2=2) / p)[:, None, None] * np.eye(p)
        return ridge_solved(a, sums[:, 2 : 2 + p])

    working, weight = response.working(rows.y, np.ones(1) if rows.trials is None else rows.trials)
    line = ResponseRows(Gaussian(), rows.columns, working if rows.offset is None else working - rows.offset)
    coef = solved(line.sums(np.zeros((len(shares), p)), one, shares * weight))
    if response.is_location_scale:
        return coef
    for _ in range(n_steps):
        coef = coef + np.clip(solved(rows.sums(coef, one, shares)), -LONGEST_STEP, LONGEST_STEP)
    return coef


class Starts:
    """A generator of starts on some units.

    Parameters
    ----------
    units : Units
    response : Response
    n_components : int
    """

    def __init__(self, units: Units, response: Response, n_components: int) -> None:
        self.units, self.response, self.k = units, response, n_components
        self.rows = units.responses(response)
        self.pooled_deviance = self.deviances(np.zeros((1, units.n_coefficients)))[0]
        self.mean_deviance = max(float(np.sum(units.weights * self.pooled_deviance)) / units.total_weight, 1e-12)
        # units that determine a fit
        self.n_drawn = max(1, int(np.ceil((units.n_coefficients + 1) * units.n_units / units.n_rows)))
        self.by_kernel = response.has_normal_noise and not units.is_grouped

    def deviances(self, coef: Array) -> Array:
        """Return the deviance of each unit under each of M models, (M, n_units)."""
        return self.units.per_unit(self.rows.deviance(coef))

    def named(self, size: int, draws: np.random.Generator) -> list[tuple[str, Theta]]:
        """Make starts of all kinds: no single kind finds every optimum."""
        n_trimmed, n_elemental = round(0.55 * size), round(0.35 * size)
        made = [(TRIMMED, self.trimmed, n_trimmed), (ELEMENTAL, self.elemental, n_elemental)]
        made.append((POOLED, self.pooled, size - n_trimmed - n_elemental))
        out: list[tuple[str, Theta]] = []
        for source, make, n in made:
            if n:
                out += [(source, one) for one in split(make(draws, n))]
        return out

    def of_coefficients(self, coef: Array, draws: np.random.Generator | None = None) -> Theta:
        """Return mixtures of coefficients (S, K, p), with equal weights and noise so wide that every row is near one.

        Where all coefficients are shared components can only differ in their noise: it is drawn.
        """
        s, k, _ = coef.shape
        units = self.units
        if units.n_shared:
            coef = coef.copy()
            coef[:, :, -units.n_shared :] = coef[:, :, -units.n_shared :].mean(axis=1, keepdims=True)
        dispersion = np.ones((s, k))
        if self.response.has_dispersion:
            nearest = self.deviances(coef.reshape(s * k, -1)).reshape(s, k, -1).min(axis=1)
            mean = np.einsum("u,su->s", units.weights, nearest) / units.row_weight
            floor = 1e-3 if self.response.is_location_scale else 1e-3 * self.mean_deviance
            dispersion = np.repeat(self.response.dispersion(np.maximum(mean, floor))[:, None], k, axis=1)
            if draws is not None and units.n_shared == units.n_coefficients:
                dispersion = dispersion * np.exp(draws.standard_normal((s, k)))
        coef = np.ascontiguousarray(coef)
        if units.labels is not None:
            coef, dispersion = self._relabelled(coef, dispersion)
        return Parameters(Predictors(coef, dispersion), self.even_law(s))

    def even_law(self, size: int) -> Weights | Logits:
        """Return equal weights, whatever the covariates."""
        if self.units.gating is None:
            return Weights(np.full((size, self.k), 1 / self.k))
        return Logits(np.zeros((size, self.k, self.units.gating.shape[1])))

    def _relabelled(self, coef: Array, dispersion: Array) -> tuple[Array, Array]:
        """Return the order of the components that matches the known labels best."""
        units, k, s = self.units, self.k, len(coef)
        assert units.labels is not None
        lost = self.deviances(coef.reshape(s * k, -1)).reshape(s, k, -1)
        table = np.zeros((s, k, k))  # of label, component
        for label in range(k):
            rows = units.labels == label
            table[:, label] = np.einsum("u,sku->sk", units.weights[rows], lost[:, :, rows])
        order = np.array([linear_sum_assignment(t)[1] for t in table])
        at = np.arange(s)[:, None]
        return coef[at, order], dispersion[at, order]

    def _drawn(self, draws: np.random.Generator, size: int, density: Array | None = None) -> Array:
        """Draw few units by weight (times a density, (size, n_units)); return indicators (size, n_rows)."""
        units = self.units
        uniforms = draws.random((self.n_drawn, size))
        if density is None:
            at = drawn(units.weights, uniforms)
        else:
            lines = zip(density, uniforms.T, strict=True)
            at = np.stack([drawn(units.weights * line, own) for line, own in lines], axis=1)
        chosen = np.zeros((size, units.n_units))
        chosen[np.arange(size), at] = 1.0
        return units.per_row(chosen, axis=1)

    def elemental(self, draws: np.random.Generator, size: int) -> Theta:
        """Return the models through few units each."""
        if self.by_kernel:
            n = size * self.k
            lines = self._lines(draws, np.full(n, self.units.total_weight), np.zeros(n, dtype=bool))[0]
            coef = lines.reshape(size, self.k, -1)
        else:
            fits = weighted_fits(self.rows, self._drawn(draws, size * self.k))
            coef = fits.reshape(size, self.k, -1)
        return self.of_coefficients(coef, draws)

    def _lines(self, draws: np.random.Generator, mass: Array, near: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return lines through few rows (`near`: refitted to the nearest), and their largest squared residual."""
        units, size = self.units, len(mass)
        lines, largest = np.empty((size, units.n_coefficients)), np.empty(size)
        rows = drawn(units.weights, draws.random((size, units.n_coefficients + 1)))
        at, steps = (units.z, units.y, units.kernel_weights, None), np.where(near, 2, 0).tolist()
        for i in range(size):
            largest[i] = _kernels.regression_concentrate(*at, rows[i], float(mass[i]), steps[i], lines[i])
        return lines, largest

    def pooled(self, draws: np.random.Generator, size: int) -> Theta:
        """Return the single model, which is zero here, and noise."""
        noise = draws.standard_normal((size, self.k, self.units.n_coefficients))
        return self.of_coefficients(noise * draws.uniform(0.2, 1.5, (size, 1, 1)), draws)

    def trimmed(self, draws: np.random.Generator, size: int) -> Theta:
        """Return models fitted in turn, each to units that earlier ones leave unexplained."""
        units = self.units
        if not self.by_kernel:
            return self.of_coefficients(self._greedy(draws, size), draws)
        coef, total = np.empty((size, self.k, units.n_coefficients)), units.total_weight
        for lines in coef:
            share = draws.uniform(0.3, 1.0) / self.k
            fewest = (units.n_coefficients + 2.0) * total / units.n_units  # repeats of a row determine no line
            mass = np.full((self.k, KERNEL_CANDIDATES), max(share * total, fewest))
            uniforms = draws.random((self.k, KERNEL_CANDIDATES * (units.n_coefficients + 1)))
            at = units.z, units.y, units.kernel_weights, N_CONCENTRATIONS
            _kernels.regression_greedy(*at, mass, uniforms, lines)
        return self.of_coefficients(coef, draws)

    def _greedy(self, draws: np.random.Generator, size: int) -> Array:
        units, m = self.units, N_CANDIDATES
        share = np.repeat(draws.uniform(0.3, 1.0, size), m) / self.k
        mass = np.maximum(share * units.total_weight, (self.n_drawn + 1) * units.total_weight / units.n_units)
        cap = 4 * self.mean_deviance
        epsilon = 0.01 * self.mean_deviance if self.response.has_dispersion else 0.5
        best = np.full((size, units.n_units), np.inf)
        found = []
        for h in range(self.k):
            density = None
            if h:
                density = np.repeat(np.minimum(best, cap) + 1e-3 * self.mean_deviance + 1e-300, m, axis=0)
            coef = weighted_fits(self.rows, self._drawn(draws, size * m, density))
            for _ in range(N_CONCENTRATIONS):
                lost = self.deviances(coef)
                coef = self._concentrated(lost if density is None else lost / density, mass)
            lost = np.minimum(self.deviances(coef), np.repeat(best, m, axis=0))
            score = np.einsum("u,mu->m", units.weights, np.log(epsilon + lost)).reshape(size, m)
            chosen = score.argmin(axis=1) + np.arange(size) * m
            found.append(coef[chosen])
            best = lost[chosen]
        return np.stack(found, axis=1)

    def _concentrated(self, lost: Array, mass: Array) -> Array:
        """Fit to the units of smallest loss that make up a mass, (M,)."""
        units = self.units
        order = np.argsort(lost, axis=1)
        weights = units.weights[order]
        before = np.cumsum(weights, axis=1) - weights
        last = (before < mass[:, None]).sum(axis=1, keepdims=True) - 1
        most = np.take_along_axis(lost, np.take_along_axis(order, last, axis=1), axis=1)
        shares = units.weights * (lost <= most)  # machines sort equal losses in different orders: all of them are in
        return weighted_fits(self.rows, units.per_row(shares, axis=1), n_steps=2, ridge=1e-6)

    def replaced(self, draws: np.random.Generator, bases: Sequence[Theta], size: int, least: float) -> Theta:
        """Return solutions with one random component replaced by a model through few units, or `near` ones."""
        units, at = self.units, np.arange(size)
        theta = stacked([bases[int(i)] for i in draws.integers(len(bases), size=size)])
        which = draws.integers(self.k, size=size)
        mass = np.maximum(draws.uniform(0.05, 0.8, size) * units.total_weight / self.k, least + 1)
        near = draws.random(size) < 0.6
        coef, limit = (self._lines if self.by_kernel else self._models)(draws, mass, near)
        own = units.n_coefficients - units.n_shared
        coefs, dispersion, law = theta.density.coef.copy(), theta.density.dispersion.copy(), theta.law
        coefs[at, which, :own] = coef[:, :own]
        if self.response.has_dispersion:
            dispersion[at, which] = self.response.dispersion(np.maximum(limit, 1e-6))
        if isinstance(law, Weights):
            weights = law.weights.copy()
            weights[at, which] = np.clip(mass / units.total_weight, 0.02, 0.5)
            law = Weights(weights / weights.sum(axis=1, keepdims=True))
        return Parameters(Predictors(coefs, dispersion), law)

    def _models(self, draws: np.random.Generator, mass: Array, near: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return models through few units (`near`: refitted to a mass), and the largest deviance per row within it."""
        units, size = self.units, len(mass)
        coef = weighted_fits(self.rows, self._drawn(draws, size))
        for _ in range(2):
            coef = np.where(near[:, None], self._concentrated(self.deviances(coef), mass), coef)
        lost = self.deviances(coef) / units.sizes
        order = np.argsort(lost, axis=1)
        inside = (np.cumsum(units.weights[order], axis=1) <= mass[:, None]).sum(axis=1)
        last = np.minimum(inside, units.n_units - 1)[:, None]
        return coef, np.take_along_axis(lost, np.take_along_axis(order, last, axis=1), axis=1)[:, 0]
