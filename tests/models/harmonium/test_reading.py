"""What a harmonium says: features, views and classes behind components."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import entropy

import majorant as mj
from majorant.metrics import class_profiles, mean_pairwise_kl
from majorant.models.harmonium import top_features, view_weights

VIEWS = {"z": mj.Gaussian([0, 1, 2], whiten=False), "x": mj.Bernoulli([3, 4]), "c": mj.Categorical([5])}


@pytest.fixture(scope="module")
def fitted() -> mj.Harmonium:
    g = np.random.default_rng(1)
    h = g.normal(size=(120, 2))
    numbers = h @ [[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]] + 0.5 * g.normal(size=(120, 3))
    X = np.column_stack([numbers, h + 0.3 * g.normal(size=(120, 2)) > 0]).astype(object)
    return mj.Harmonium(3, views=VIEWS, l2=0.2).fit(np.column_stack([X, np.digitize(h[:, 0], [-0.5, 0.5])]))


def test_weights_of_views_are_sums_of_squares_in_units_of_spread(fitted: mj.Harmonium) -> None:
    expected = []
    for view in fitted.views_:
        loadings = fitted.loadings(view.name)
        p = view.mean
        spread = np.ones(len(p)) if view.kind == "gaussian" else np.sqrt(p * (1 - p))
        expected.append(((loadings * spread[:, None]) ** 2).sum(axis=0))
    np.testing.assert_allclose(view_weights(fitted), expected, rtol=1e-12)


def test_top_features_are_those_of_the_largest_weights(fitted: mj.Harmonium) -> None:
    for view in ("z", "x", "c"):
        loadings = fitted.loadings(view)
        for k, top in enumerate(top_features(fitted, view, 2)):
            order = np.argsort(-np.abs(loadings[:, k]))[:2]
            assert [t[0] for t in top] == ["+" if loadings[j, k] > 0 else "-" for j in order]
    assert {t[1:] for top in top_features(fitted, "c", 3) for t in top} == {"x6=0", "x6=1", "x6=2"}
    assert "weights" in fitted.summary().tables


def test_divergence_of_classes_is_the_mean_over_pairs() -> None:
    g = np.random.default_rng(0)
    latents, y = g.normal(size=(40, 4)), np.array(list("abcd") * 10)
    rows = np.array([(row - min(row)) / sum(row - min(row)) for row in latents])
    p = np.array([rows[y == c].mean(axis=0) for c in "abcd"])
    pairs = [(entropy(p[i], p[j]) + entropy(p[j], p[i])) / 2 for i in range(4) for j in range(i)]
    assert mean_pairwise_kl(latents, y) == pytest.approx(np.mean(pairs), rel=1e-12)
    assert mean_pairwise_kl(latents, np.zeros(40)) == 0
    classes, profiles = class_profiles(latents, y)
    assert classes.tolist() == list("abcd")
    np.testing.assert_allclose(profiles[1], latents[y == "b"].mean(axis=0), rtol=1e-12)
    far = 1e4 * np.eye(4)[np.arange(40) % 4]
    assert np.isfinite(mean_pairwise_kl(far, y))
    assert mean_pairwise_kl(1e300 * latents, y) == pytest.approx(mean_pairwise_kl(latents, y), rel=1e-12)
    assert mean_pairwise_kl(latents + 7.0, y) == pytest.approx(mean_pairwise_kl(latents, y), rel=1e-9)
    assert mean_pairwise_kl(np.zeros((40, 3)), y) == 0  # no component tells rows apart


@pytest.mark.parametrize("read", [class_profiles, mean_pairwise_kl])
def test_labels_of_other_rows_are_refused(read: Any) -> None:
    with pytest.raises(ValueError, match=r"y must have a label for each of 4 rows; got shape \(2,\)"):
        read(np.eye(4), ["a", "b"])
