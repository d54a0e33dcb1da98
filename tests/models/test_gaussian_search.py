"""How Gaussian mixtures are searched: perturbations, recombinations, and where a search ends."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_iris, load_wine

import majorant as mj
from majorant.models.gaussian_mixture.perturbations import perturbed, recombined
from majorant.search.record import PERTURBATION
from majorant.solvers.gaussian import Mixture

Array = NDArray[np.float64]


def groups(far: float = 6.0) -> tuple[Array, Mixture]:
    """Rows of three groups, and the mixture of these."""
    draws, centres = np.random.default_rng(0), far * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    x = centres[np.arange(150) % 3] + draws.normal(size=(150, 2))
    return x, Mixture(np.full(3, 1 / 3), centres, np.stack([np.eye(2)] * 3), "full")


def test_a_recombination_takes_matched_components_of_two_solutions() -> None:
    """Of one solution with two orders of its components nothing new comes; each component keeps its rows."""
    x, mixture = groups()
    energies, weights = mixture.energies(x), np.ones(len(x))
    turned = [1, 2, 0]
    made = recombined([energies, energies[:, turned]], weights, 20, np.random.default_rng(1))
    np.testing.assert_allclose(made.sum(axis=2), 1.0, rtol=1e-12)
    labels = {tuple(q.argmax(axis=1)) for q in made}
    of_first, of_second = energies.argmin(axis=1), energies[:, turned].argmin(axis=1)
    assert labels == {tuple(of_first), tuple(of_second)}


def test_a_recombination_joins_what_each_of_two_solutions_has_right() -> None:
    """One solution has split the first group and joined the others, the other has split the second."""
    x, mixture = groups(40.0)
    at, weights = mixture.means, np.ones(len(x))
    wide = np.stack([np.eye(2), np.eye(2), 900 * np.eye(2)])
    first = Mixture(mixture.weights, np.array([at[0] - 0.5, at[0] + 0.5, (at[1] + at[2]) / 2]), wide, "full")
    second = Mixture(mixture.weights, np.array([at[1], at[2], at[0]]), mixture.covariances, "full")
    made = recombined([first.energies(x), second.energies(x)], weights, 30, np.random.default_rng(0))
    sizes = {tuple(sorted(np.bincount(q.argmax(axis=1), minlength=3))) for q in made}
    assert (50, 50, 50) in sizes


@pytest.mark.parametrize("unit", [1.0, 1e8])
def test_perturbations_are_responsibilities_however_far_groups_lie(unit: float) -> None:
    x, mixture = groups(unit)
    made = np.concatenate(list(perturbed(mixture, x, np.ones(len(x)), 60, np.random.default_rng(0))))
    assert made.shape == (60, 150, 3)
    np.testing.assert_allclose(made.sum(axis=2), 1.0, rtol=1e-9)
    assert len({q.tobytes() for q in made}) > 50


def test_a_search_ends_where_starts_agree() -> None:
    """Two components of iris are found by nearly all starts: one round of perturbations confirms them."""
    report = mj.GaussianMixture(2, random_state=0).fit(load_iris().data).search_
    assert report.raced == (24, 36) and 2 * report.n_hits > report.n_starts
    longer = mj.GaussianMixture(4, random_state=0).fit(load_iris().data).search_
    assert longer.raced[1] > 3 * 72 and any(start.source == PERTURBATION for start in longer.starts)


def test_more_parameters_than_rows_are_searched_by_recombination() -> None:
    """Three full covariances of wine: 314 parameters for 178 rows. The best of hundreds of searches is -2039.090."""
    x = load_wine().data
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    found = [mj.GaussianMixture(3, random_state=seed).fit(x).log_likelihood_ for seed in range(5)]
    assert np.median(found) > -2040.0
