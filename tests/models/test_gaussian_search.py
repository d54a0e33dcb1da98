"""How Gaussian mixtures are searched: perturbations, recombinations, and where a search ends."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_iris, load_wine
from sklearn.mixture import GaussianMixture as Peer

import majorant as mj
from majorant.models.gaussian_mixture.perturbations import Solutions, gathered, perturbed, recombined
from majorant.search.record import PERTURBATION
from majorant.solvers.covariance_types import COVARIANCE_TYPES, COVARIANCES, CovarianceType
from majorant.solvers.gaussian import Mixture
from majorant.solvers.gaussian_em import EmStarts

Array = NDArray[np.float64]


def groups(far: float = 6.0, covariance_type: CovarianceType = "full") -> tuple[Array, Mixture]:
    """Rows of three groups, and the mixture of these."""
    draws, centres = np.random.default_rng(0), far * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    x = centres[np.arange(150) % 3] + draws.normal(size=(150, 2))
    covariances = np.broadcast_to(COVARIANCES[covariance_type].identity(2), COVARIANCES[covariance_type].shape(3, 2))
    return x, Mixture(np.full(3, 1 / 3), centres, covariances, covariance_type)


def labels(made: EmStarts, x: Array, covariance_type: CovarianceType = "full") -> list[NDArray[np.intp]]:
    """The most probable component of each row, in each mixture."""
    return [Mixture(*one, covariance_type).energies(x).argmin(axis=1) for one in zip(*made, strict=True)]


def test_a_recombination_takes_matched_components_of_two_solutions() -> None:
    """Of one solution with two orders of its components nothing new comes; each component keeps its rows."""
    x, mixture = groups()
    turned = [1, 2, 0]
    other = Mixture(mixture.weights[turned], mixture.means[turned], mixture.covariances[turned], "full")
    made = recombined(Solutions.of([mixture, other], x, np.ones(len(x))), 20, np.random.default_rng(1))
    np.testing.assert_allclose(made.weights.sum(axis=1), 1.0, rtol=1e-12)
    of_first, of_second = mixture.energies(x).argmin(axis=1), other.energies(x).argmin(axis=1)
    assert {tuple(found) for found in labels(made, x)} == {tuple(of_first), tuple(of_second)}


def test_a_recombination_joins_what_each_of_two_solutions_has_right() -> None:
    """One solution has split the first group and joined the others, the other has split the second."""
    x, mixture = groups(40.0)
    at = mixture.means
    wide = np.stack([np.eye(2), np.eye(2), 900 * np.eye(2)])
    first = Mixture(mixture.weights, np.array([at[0] - 0.5, at[0] + 0.5, (at[1] + at[2]) / 2]), wide, "full")
    second = Mixture(mixture.weights, np.array([at[1], at[2], at[0]]), mixture.covariances, "full")
    made = recombined(Solutions.of([first, second], x, np.ones(len(x))), 30, np.random.default_rng(0))
    sizes = {tuple(sorted(np.bincount(found, minlength=3))) for found in labels(made, x)}
    assert (50, 50, 50) in sizes


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("unit", [1.0, 1e8])
def test_perturbations_are_mixtures_however_far_groups_lie(unit: float, covariance_type: CovarianceType) -> None:
    x, mixture = groups(unit, covariance_type)
    made = perturbed(Solutions.of([mixture], x, np.ones(len(x))), 6.0, 60, np.random.default_rng(0))
    assert len(made.weights) == 60 and len({one.tobytes() for one in made.means}) > 50
    np.testing.assert_allclose(made.weights.sum(axis=1), 1.0, rtol=1e-9)
    assert all(np.isfinite(found).all() for found in made)
    for one in zip(*made, strict=True):
        Mixture(*one, covariance_type).precision_factors()  # raises where a covariance is singular


def test_two_components_that_are_merged_and_cut_keep_their_moments() -> None:
    """The mean of all rows stays, whichever two components are new."""
    x, mixture = groups()
    two = Mixture(np.array([0.4, 0.6]), mixture.means[:2], mixture.covariances[:2], "full")
    made = perturbed(Solutions.of([two], x, np.ones(len(x))), 6.0, 40, np.random.default_rng(0))
    means = np.einsum("mk,mkd->md", made.weights, made.means)
    kept = np.isclose(means, two.weights @ two.means).all(axis=1)
    assert 15 < kept.sum() < 40  # the others gathered rows


def test_gathered_rows_are_near_each_other() -> None:
    x, mixture = groups(1000.0)
    made = gathered(Solutions.of([mixture], x, np.ones(len(x))), 6.0, 30, np.random.default_rng(0))
    changed = (made.means != mixture.means).any(axis=2)
    assert (changed.sum(axis=1) == 1).all()
    assert np.abs(made.covariances[changed]).max() < 10.0
    assert made.weights[changed].min() > 6 / 150 / 2


def test_gathered_rows_may_lie_near_a_plane() -> None:
    """Half of the gathered components are flatter than the rows nearest to one row are."""
    x = np.random.default_rng(0).normal(size=(300, 3))
    mixture = Mixture(np.array([0.5, 0.5]), np.zeros((2, 3)), np.stack([np.eye(3)] * 2), "full")
    made = gathered(Solutions.of([mixture], x, np.ones(len(x))), 8.0, 40, np.random.default_rng(0))
    changed = (made.means != mixture.means).any(axis=2)
    values = np.linalg.eigvalsh(made.covariances[changed])
    flat = values[:, 0] / values[:, 1] < 0.15
    assert 10 < flat.sum() < 30


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


def test_narrow_groups_are_searched_in_coordinates_in_which_they_count_at_once() -> None:
    """Beside the variance of all rows they are degenerate, beside that within groups they are not."""
    draws = np.random.default_rng(2)
    groups = draws.choice(6, 600, p=draws.dirichlet(np.full(6, 5.0)))
    centres, shapes = draws.normal(0, 1.5, (6, 3)), draws.normal(size=(6, 3, 3)) / np.sqrt(3) + 0.5 * np.eye(3)
    x = centres[groups] + np.einsum("nij,nj->ni", shapes[groups], draws.normal(size=(600, 3)))
    fitted = mj.GaussianMixture(6, random_state=0).fit(x)
    assert fitted.regular_ and fitted.log_likelihood_ > -2669.38
    assert sum(fitted.search_.raced) < 400


@pytest.mark.parametrize("apart", [1.0, 0.4])
def test_wide_tables_are_searched_by_a_few_likely_starts(apart: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step costs much, and runs end near where they begin: eight likely starts do as well as a peer's ten."""
    monkeypatch.setattr("majorant.search.effort.BULK", 2e5)
    draws = np.random.default_rng(0)
    own, centres = np.arange(500) % 3, apart * draws.normal(size=(3, 30))
    X = centres[own] + draws.normal(size=(500, 30))
    fitted = mj.GaussianMixture(3, random_state=0).fit(X)
    assert fitted.search_.note.startswith("8 starts and ")
    peer = Peer(3, n_init=10, random_state=0).fit(X)
    assert fitted.score(X) > peer.score(X) - 1e-6
