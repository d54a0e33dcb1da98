"""Where does a general fit begin? As the plain one does, with deviances for squared residuals and units for rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from majorant.engine.draws import drawn
from majorant.models.regression_mixture.experts.parameters import Experts, stacked
from majorant.models.regression_mixture.experts.steps import LONGEST_STEP, _ridge_solved
from majorant.models.regression_mixture.experts.units import Units
from majorant.solvers.responses import Response

N_CANDIDATES, N_CONCENTRATIONS = 8, 3


def weighted_fits(
    units: Units, response: Response, shares: NDArray[np.float64], *, n_steps: int = 3, ridge: float = 1e-4
) -> NDArray[np.float64]:
    """Independent fits of one model each, (M, p), to rows with weights, (n_rows, M)."""
    z = units.z
    p = z.shape[1]
    lower = np.tril_indices(p)
    squares = z[:, lower[0]] * z[:, lower[1]]

    def solved(weight: NDArray[np.float64], score: NDArray[np.float64], damping: float) -> NDArray[np.float64]:
        packed = np.einsum("im,ij->mj", weight, squares)
        a = np.zeros((weight.shape[1], p, p))
        a[:, lower[0], lower[1]] = packed
        a[:, lower[1], lower[0]] = packed
        a = a + damping * (np.trace(a, axis1=1, axis2=2) / p)[:, None, None] * np.eye(p)
        return _ridge_solved(a, np.einsum("im,ij->mj", score, z))

    working, weight = response.working(units.y, units.trials)
    mixed = shares * weight
    coef = solved(mixed, mixed * (working - units.offset), ridge)
    if response.is_location_scale:
        return coef
    one = np.ones(1)
    for _ in range(n_steps):
        eta = units.offset + np.einsum("ij,mj->im", z, coef)
        slope = shares * response.score(units.y, eta, one, units.trials)
        curve = shares * response.weight(units.y, eta, one, units.trials)
        coef = coef + np.clip(solved(curve, slope, ridge), -LONGEST_STEP, LONGEST_STEP)
    return coef


def deviances(units: Units, response: Response, coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each unit under each of M models, (n_units, M)."""
    eta = units.offset + np.einsum("ij,mj->im", units.z, coef)
    return units.per_unit(np.maximum(response.deviance(units.y, eta, units.trials), 0.0))  # rounding may be below


class Starts:
    """Draws starts on some units.

    Parameters
    ----------
    units : Units
    response : Response
    n_components : int
    """

    def __init__(self, units: Units, response: Response, n_components: int) -> None:
        self.units, self.response, self.k = units, response, n_components
        self.pooled_deviance = deviances(units, response, np.zeros((1, units.n_coefficients)))[:, 0]
        self.mean_deviance = max(float(np.sum(units.weights * self.pooled_deviance)) / units.total_weight, 1e-12)
        # units that determine a fit
        self.n_drawn = max(1, int(np.ceil((units.n_coefficients + 1) * units.n_units / units.n_rows)))

    def as_batch(self, coef: NDArray[np.float64], draws: np.random.Generator | None = None) -> Experts:
        """Mixtures of these coefficients (S, K, p), with equal weights and a noise by which every row lies near one.

        Where all coefficients are shared components can only differ in their noise: it is drawn.
        """
        s, k, _ = coef.shape
        units = self.units
        if units.n_shared:
            coef = coef.copy()
            coef[:, :, -units.n_shared :] = coef[:, :, -units.n_shared :].mean(axis=1, keepdims=True)
        dispersion = np.ones((s, k))
        if self.response.has_dispersion:
            nearest = deviances(units, self.response, coef.reshape(s * k, -1)).reshape(-1, s, k).min(axis=2)
            mean = np.einsum("u,us->s", units.weights, nearest) / units.row_weight
            floor = 1e-3 if self.response.is_location_scale else 1e-3 * self.mean_deviance
            dispersion = np.repeat(self.response.dispersion(np.maximum(mean, floor))[:, None], k, axis=1)
            if draws is not None and units.n_shared == units.n_coefficients:
                dispersion = dispersion * np.exp(draws.standard_normal((s, k)))
        gating = None if units.gating is None else np.zeros((s, k, units.gating.shape[1]))
        theta = Experts(np.full((s, k), 1 / k), np.ascontiguousarray(coef), dispersion, gating)
        return theta if units.labels is None else self._named(theta)

    def _named(self, theta: Experts) -> Experts:
        """Components in the order that suits the known labels best."""
        from scipy.optimize import linear_sum_assignment

        units, k = self.units, self.k
        assert units.labels is not None
        s = len(theta.weights)
        lost = deviances(units, self.response, theta.coef.reshape(s * k, -1)).reshape(-1, s, k)
        table = np.zeros((s, k, k))  # of label, component
        for label in range(k):
            at = units.labels == label
            table[:, label] = np.einsum("u,usk->sk", units.weights[at], lost[at])
        order = np.array([linear_sum_assignment(t)[1] for t in table])
        at = np.arange(s)[:, None]
        return Experts(theta.weights[at, order], theta.coef[at, order], theta.dispersion[at, order], theta.gating)

    def _drawn(
        self, draws: np.random.Generator, size: int, density: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Indicators (n_rows, size) of few units, drawn with their weights (times a density, (n_units, size))."""
        units = self.units
        uniforms = draws.random((self.n_drawn, size))
        if density is None:
            at = drawn(units.weights, uniforms)
        else:
            columns = zip(density.T, uniforms.T, strict=True)
            at = np.stack([drawn(units.weights * column, own) for column, own in columns], axis=1)
        chosen = np.zeros((units.n_units, size))
        chosen[at, np.arange(size)] = 1.0
        return units.per_row(chosen)

    def elemental(self, draws: np.random.Generator, size: int) -> Experts:
        """Models through few units each."""
        coef = weighted_fits(self.units, self.response, self._drawn(draws, size * self.k))
        return self.as_batch(coef.reshape(size, self.k, -1), draws)

    def pooled(self, draws: np.random.Generator, size: int) -> Experts:
        """The single model, which is zero here, and noise."""
        noise = draws.standard_normal((size, self.k, self.units.n_coefficients))
        return self.as_batch(noise * draws.uniform(0.2, 1.5, (size, 1, 1)), draws)

    def trimmed(self, draws: np.random.Generator, size: int) -> Experts:
        """One model after the other, each among the units that those before it leave unexplained."""
        units, m = self.units, N_CANDIDATES
        share = np.repeat(draws.uniform(0.3, 1.0, size), m) / self.k
        mass = np.maximum(share * units.total_weight, (self.n_drawn + 1) * units.total_weight / units.n_units)
        cap = 4 * self.mean_deviance
        epsilon = 0.01 * self.mean_deviance if self.response.has_dispersion else 0.5
        best = np.full((units.n_units, size), np.inf)
        found = []
        for h in range(self.k):
            density = None
            if h:
                density = np.repeat(np.minimum(best, cap) + 1e-3 * self.mean_deviance + 1e-300, m, axis=1)
            coef = weighted_fits(units, self.response, self._drawn(draws, size * m, density))
            for _ in range(N_CONCENTRATIONS):
                lost = deviances(units, self.response, coef)
                coef = self._concentrated(lost if density is None else lost / density, mass)
            lost = np.minimum(deviances(units, self.response, coef), np.repeat(best, m, axis=1))
            score = np.einsum("u,um->m", units.weights, np.log(epsilon + lost)).reshape(size, m)
            chosen = score.argmin(axis=1) + np.arange(size) * m
            found.append(coef[chosen])
            best = lost[:, chosen]
        return self.as_batch(np.stack(found, axis=1), draws)

    def _concentrated(self, lost: NDArray[np.float64], mass: NDArray[np.float64]) -> NDArray[np.float64]:
        """Fits to the units of smallest loss that make up a mass, (M,)."""
        units = self.units
        order = np.argsort(lost, axis=0, kind="stable")
        before = np.cumsum(units.weights[order], axis=0) - units.weights[order]
        inside = np.zeros_like(lost)
        np.put_along_axis(inside, order, (before < mass).astype(np.float64), axis=0)
        shares = units.per_row(inside * units.weights[:, None])
        return weighted_fits(units, self.response, shares, n_steps=2, ridge=1e-6)

    def replaced(self, draws: np.random.Generator, bases: Sequence[Experts], size: int, least: float) -> Experts:
        """Solutions with one component, drawn at random, replaced by a model through few units or concentrated."""
        units, k = self.units, self.k
        theta = stacked([bases[int(i)] for i in draws.integers(len(bases), size=size)])
        which = draws.integers(k, size=size)
        mass = np.maximum(draws.uniform(0.05, 0.8, size) * units.total_weight / k, least + 1)
        coef = weighted_fits(units, self.response, self._drawn(draws, size))
        near = draws.random(size) < 0.6
        for _ in range(2):
            coef = np.where(near[:, None], self._concentrated(deviances(units, self.response, coef), mass), coef)
        lost = deviances(units, self.response, coef) / units.sizes[:, None]
        order = np.argsort(lost, axis=0, kind="stable")
        inside = np.cumsum(units.weights[order], axis=0) <= mass
        limit = np.take_along_axis(lost, order, axis=0)[
            np.minimum(inside.sum(axis=0), units.n_units - 1), np.arange(size)
        ]
        at = np.arange(size)
        weights, coefs, dispersion = theta.weights.copy(), theta.coef.copy(), theta.dispersion.copy()
        own = units.n_coefficients - units.n_shared
        coefs[at, which, :own] = coef[:, :own]
        weights[at, which] = np.clip(mass / units.total_weight, 0.02, 0.5)
        if self.response.has_dispersion:
            dispersion[at, which] = self.response.dispersion(np.maximum(limit, 1e-6))
        gating = None if theta.gating is None else theta.gating.copy()
        return Experts(weights / weights.sum(axis=1, keepdims=True), coefs, dispersion, gating)
