r"""Classes first, then covariates or outcomes of theirs: three-step and two-step estimators with corrected errors.

A later step sees the items only through a table of evidence: their densities (two-step), what an assignment says of the
class (ML), or weights of the classes (naive, BCH). Both steps are one stacked set of estimating equations
:math:`\sum_i \psi_1 = 0, \sum_i \psi_2 = 0`, so one sandwich corrects the errors of the later for the earlier [1]_:

.. math:: V = A_{22}^{-1} \sum_i u_i u_i' A_{22}^{-T}, \qquad u_i = \psi_{2i} - A_{21} A_{11}^{-1} \psi_{1i}

.. [1] Z. Bakk, D. L. Oberski, J. K. Vermunt, "Relating latent class assignments to external variables: standard errors
   for correct inference", Political Analysis 22, 2014.

BCH's weights may be negative, and its estimates beyond all values that there are [2]_: those are restricted, and told.

.. [2] Z. Bakk, J. K. Vermunt, "Robustness of stepwise latent class modeling with continuous distal outcomes",
   Structural Equation Modeling 23, 2016.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from majorant._validation import check_choice, check_sample_weight, levels_to_user
from majorant.data.chunks import Block
from majorant.engine.mixture import Mixture, OnData, Parameters
from majorant.laws.separation import diverging
from majorant.results.information import LEAST_CURVATURE, LEAST_PART, observed_information, packed, unpacked

Array = NDArray[np.float64]
Method = Literal["one-step", "ml", "bch", "two-step", "naive"]
METHODS: tuple[Method, ...] = ("ml", "bch", "two-step", "naive")
ASSIGNMENTS = ("proportional", "modal")
LEAST_SEPARATION = 0.5
"""Entropy R2 below which estimates in several steps are biased."""
STEP = 1e-4
TINY = 1e-300


class Earlier(NamedTuple):
    """The earlier step: the fitted mixture on rows, each with its weight, its population, and the shares there."""

    mixture: Mixture
    theta: Parameters[Any, Any]
    block: Block
    weights: Array
    population: NDArray[np.intp]
    shares: Array
    weights_count: bool
    """Whether weights count rows, and are not those of a sample."""


def earlier_step(model: Any, X: Any, sample_weight: Any, method: str, assignment: str) -> tuple[Earlier, OnData]:
    """Return a fit as the earlier step of another one, row by row, and on its distinct rows.

    Warns
    -----
    UserWarning
        If the classes lie too near each other for estimates in steps.
    """
    check_choice("method", method, METHODS)
    check_choice("assignment", assignment, ASSIGNMENTS)
    has = {"gating": "gating_coef" in model.estimate_names_, "groups": model.is_grouped_}
    has["component_labels"] = model.is_labelled_
    if any(has.values()):
        told = next(name for name, is_there in has.items() if is_there)
        raise ValueError(
            f"estimates in several steps need classes that were found by their items, and population, alone; this fit "
            f"has {told}: fit without"
        )
    on, unit = model._on(X, sample_weight)
    codes = model._read(X, fitting=False)
    codes, given = model._counted(codes, check_sample_weight(sample_weight, len(codes)), fitting=False)
    w = np.ones(len(codes)) if given is None else given / unit
    theta = model._theta()
    mixture = replace(on.mixture, density=on.mixture.density.anchored(theta.density))
    separation = model.fit_statistics(X, sample_weight).entropy_r2
    if separation is not None and separation < LEAST_SEPARATION:
        warnings.warn(
            f"The classes hardly lie apart (entropy R2 {separation:.2f}): estimates in several steps are biased there; "
            "fit covariates in one step, by gating.",
            UserWarning,
            stacklevel=levels_to_user(),
        )
    block = Block(0, (*model._columns(codes, fitting=False), *model._law_columns(codes)))
    population, shares = np.zeros(len(w), dtype=np.intp), None
    if model.populations_ is not None:
        population = block.columns[-1].astype(np.intp)
        shares = model.population_shares_.T[population]
    shares = np.asarray(model.weights_)[None] if shares is None else shares
    return Earlier(mixture, theta, block, w, population, shares, not model.sampling_weights), replace(
        on, mixture=mixture
    )


class Evidence(NamedTuple):
    """Input of a later step: weights of the classes, or log evidence (rows, S, classes) with weights (rows, S)."""

    weights: Array | None
    log_tables: Array
    shares: Array

    def responsibilities(self, joint: Array) -> tuple[Array, Array]:
        """Return the classes of rows given a log joint (rows, classes), and the log-likelihood of each row."""
        if self.weights is not None:
            return self.weights, (self.weights * joint).sum(axis=1)
        table = joint[:, None, :] + self.log_tables
        total = logsumexp(table, axis=2)
        r = np.exp(table - total[:, :, None])
        return np.einsum("ns,nsk->nk", self.shares, r), (self.shares * total).sum(axis=1)


def _evidence(
    q: Array, log_density: Array, w: Array, method: str, modal: Array | None, population: NDArray[np.intp] | int = 0
) -> Evidence:
    """Return what a method makes of responsibilities and densities, (rows, classes); errors are of each population."""
    given = q if modal is None else modal
    if method == "two-step":
        return Evidence(None, log_density[:, None, :], np.ones((len(q), 1)))
    if method == "naive":
        return Evidence(given, np.empty(0), np.empty(0))
    of_rows = np.broadcast_to(population, len(q))
    tables = []
    for own in (of_rows == g for g in range(of_rows.max() + 1)):
        table = q[own].T @ (given[own] * w[own, None])
        if method == "bch" and (empty := np.flatnonzero(given[own].T @ w[own] <= 0)).size:
            raise ValueError(
                f"no row is assigned to class {empty[0] + 1}, so BCH has no weights for it: take "
                'assignment="proportional", method="ml", or fewer classes'
            )
        tables.append(table / np.maximum(table.sum(axis=1, keepdims=True), TINY))  # shares assigned to each
    of_classes = np.stack(tables)
    if method == "bch":
        return Evidence(np.einsum("ns,nsk->nk", given, np.linalg.inv(of_classes)[of_rows]), np.empty(0), np.empty(0))
    return Evidence(None, np.log(np.maximum(np.swapaxes(of_classes, 1, 2), TINY))[of_rows], given)


def _seen(items: Earlier, vectors: Array) -> tuple[Array, Array, Array]:
    """Return log-likelihoods of rows, responsibilities and log densities (runs, rows, classes) at moved parameters."""
    theta = unpacked(items.mixture, vectors, items.theta)
    rows, _ = items.mixture.parts(items.block)
    log_density = items.mixture.density.log_density(theta.density, rows)
    found = items.mixture.posterior(theta, items.block)
    q = np.moveaxis(found.responsibilities, 1, 2)
    return found.units, q, np.moveaxis(log_density, 1, 2)


class Later(NamedTuple):
    """The later step: its equations at parameters, and where they are solved.

    Attributes
    ----------
    psi : callable
        Rows of the equations (rows, m), with their weights, of evidence and parameters.
    solve : callable
        Parameters of evidence.
    unbounded : callable
        Orthonormal directions (m, r) of parameters of evidence in which they run to infinity.
    """

    psi: Callable[[Evidence, Array], Array]
    solve: Callable[[Evidence], Array]
    unbounded: Callable[[Evidence, Array], Array] | None = None


class Solved(NamedTuple):
    """What a later step found."""

    beta: Array  # (m,): its parameters
    # (m, m): their covariance, corrected for the earlier step and not; NaN for those that run to infinity
    corrected: Array
    plain: Array
    unbounded: Array  # (m, r): directions in which they do


def later_step(items: Earlier, on: OnData, later: Later, method: str, assignment: str) -> Solved:
    """Solve the later step."""
    at, w = packed(items.mixture, items.theta)[0], items.weights
    _, q, log_density = _seen(items, at[None])
    modal = np.eye(q.shape[2])[q[0].argmax(axis=1)] if assignment == "modal" else None
    evidence = _evidence(q[0], log_density[0], w, method, modal, items.population)
    beta = later.solve(evidence)
    psi2 = later.psi(evidence, beta)
    a22 = np.stack([_slope(lambda b: later.psi(evidence, b).sum(axis=0), beta, j) for j in range(len(beta))], axis=1)
    psi1, a21 = np.empty((len(w), len(at))), np.empty((len(beta), len(at)))
    for j, h in enumerate(STEP * (1 + np.abs(at))):
        units, moved, densities = _seen(items, at + h * np.array([[1.0], [-1.0]]) * (np.arange(len(at)) == j))
        psi1[:, j] = w * (units[0] - units[1]) / (2 * h)
        both = [_evidence(moved[i], densities[i], w, method, modal, items.population) for i in (0, 1)]
        up, down = (later.psi(one, beta).sum(axis=0) for one in both)
        a21[:, j] = -(up - down) / (2 * h)
    lost = np.zeros((len(beta), 0)) if later.unbounded is None else later.unbounded(evidence, beta)
    if method == "bch" and later.unbounded is not None and not lost.size:  # negative weights may bound by chance
        by_ml = _evidence(q[0], log_density[0], w, "ml", modal, items.population)
        lost = later.unbounded(by_ml, later.solve(by_ml))
    rest = np.eye(len(beta)) - lost @ lost.T
    inverse = rest @ np.linalg.pinv(-rest @ a22 @ rest) @ rest
    corrected = psi2 - psi1 @ np.linalg.pinv(observed_information(on, items.theta)) @ a21.T
    counted = np.where((w > 0) & items.weights_count, w, 1.0)[:, None]
    first, second = (np.asarray(inverse @ (u.T @ (u / counted)) @ inverse.T) for u in (corrected, psi2))
    size, directions = np.linalg.eigh(rest @ (a22 + a22.T) @ rest / 2)
    flat = directions[:, np.abs(size) <= LEAST_CURVATURE * w.sum()]  # lost ones among them
    unknown = np.abs(flat).max(axis=1, initial=0.0) > LEAST_PART
    for covariance in (first, second):
        covariance[unknown] = covariance[:, unknown] = np.nan
    return Solved(beta, first, second, lost)


def _slope(f: Callable[[Array], Array], at: Array, j: int) -> Array:
    step = np.zeros_like(at)
    step[j] = 1e-5 * (1 + abs(at[j]))
    return np.asarray((f(at + step) - f(at - step)) / (2 * step[j]))


def of_covariates(z: Array, w: Array, k: int) -> Later:
    """Return the equations of a multinomial logit of the class, parameters (classes but the first, columns).

    Parameters
    ----------
    z : ndarray of shape (rows, m)
        A constant and covariates in standard units.
    """
    m = z.shape[1]

    def logs(beta: Array) -> Array:
        logits = np.column_stack([np.zeros(len(z)), z @ beta.reshape(k - 1, m).T])
        return np.asarray(logits - logsumexp(logits, axis=1, keepdims=True))

    def psi(evidence: Evidence, beta: Array) -> Array:
        log_p = logs(beta)
        r = evidence.responsibilities(log_p)[0]
        left = w[:, None] * (r - r.sum(axis=1, keepdims=True) * np.exp(log_p))[:, 1:]
        return np.asarray((left[:, :, None] * z[:, None, :]).reshape(len(z), -1))

    def log_likelihood(evidence: Evidence, beta: Array) -> float:
        return float(w @ evidence.responsibilities(logs(beta))[1])

    def curvature(evidence: Evidence, beta: Array) -> Array:
        log_p = logs(beta)
        p = np.exp(log_p)
        total = w * evidence.responsibilities(log_p)[0].sum(axis=1)
        full = np.empty((k - 1, m, k - 1, m))
        for a in range(1, k):
            for b in range(1, k):
                full[a - 1, :, b - 1] = (z * (total * p[:, a] * ((a == b) - p[:, b]))[:, None]).T @ z
        return full.reshape(len(beta), -1)

    def unbounded(evidence: Evidence, beta: Array) -> Array:
        def objective(vectors: Array) -> Array:
            return np.array([-log_likelihood(evidence, v) for v in vectors])

        value = -log_likelihood(evidence, beta)
        return diverging(curvature(evidence, beta), curvature(evidence, 0 * beta), beta, value, objective)

    def solve(evidence: Evidence) -> Array:
        beta = np.zeros((k - 1) * m)
        value = log_likelihood(evidence, beta)
        for _ in range(200):
            step = np.linalg.lstsq(curvature(evidence, beta), psi(evidence, beta).sum(axis=0), rcond=1e-12)[0]
            share = 1.0
            while (new := log_likelihood(evidence, beta + share * step)) < value and share > 1e-9:
                share /= 2
            beta = beta + share * step
            if new - value < 1e-12 * (1 + abs(value)):
                break
            value = new
        return beta

    return Later(psi, solve, unbounded)


def of_outcome(y: Array, w: Array, shares: Array, kind: str) -> Later:
    """Return the equations of means of columns of y in each class; of normal ones, of log variances too.

    Parameters
    ----------
    shares : ndarray of shape (1 or rows, classes)
    kind : {"normal", "count", "categorical"}
    """
    k, c = shares.shape[1], y.shape[1]
    prior, is_normal = np.log(np.maximum(shares, TINY)), kind == "normal"

    def split(beta: Array) -> tuple[Array, Array]:
        return beta[: k * c].reshape(k, c), np.exp(beta[k * c :])

    def joint(beta: Array) -> Array:
        means, v = split(beta)
        if is_normal:
            return np.asarray(prior - 0.5 * (np.log(v) + (y - means.T) ** 2 / v))
        of_means = y @ np.log(np.maximum(means, TINY)).T
        return np.asarray(prior + of_means - (means.T if kind == "count" else 0.0))

    def psi(evidence: Evidence, beta: Array) -> Array:
        means, v = split(beta)
        r = w[:, None] * evidence.responsibilities(joint(beta))[0]
        of_means = (r[:, :, None] * (y[:, None, :] - means)).reshape(len(y), -1)
        return np.concatenate([of_means, r * ((y - means.T) ** 2 - v)], axis=1) if is_normal else of_means

    def solve(evidence: Evidence) -> Array:
        start = np.tile(w @ y / w.sum(), (k, 1))
        v = np.full(k, float(np.average((y[:, 0] - start[0, 0]) ** 2, weights=w)))
        beta = np.concatenate([start.ravel(), *([np.log(v)] if is_normal else [])])
        for _ in range(5000):
            r = w[:, None] * evidence.responsibilities(joint(beta))[0]
            mass = r.sum(axis=0)
            means = (r.T @ y) / mass[:, None]
            new = [means.ravel()]
            if is_normal:
                spread = (r * (y - means.T) ** 2).sum(axis=0) / mass
                new.append(np.log(np.maximum(spread, 1e-8 * v)))
            after = np.concatenate(new)
            done = np.abs(after - beta).max() < 1e-10 * (1 + np.abs(after).max())
            beta = after
            if done:
                break
        return beta

    return Later(psi, solve)
