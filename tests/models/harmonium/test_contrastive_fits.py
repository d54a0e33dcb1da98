"""Fits by contrastive divergence as users meet them: starts, words, weights, threads, targets, wrong input."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import majorant as mj

from ...estimators import numbers
from .test_harmonium import VIEWS, same, three_views


def cd(n_components: int = 3, **parameters: Any) -> mj.Harmonium:
    return mj.Harmonium(n_components, **{"views": VIEWS, "method": "cd", "l2": 0.3, **parameters})


@pytest.fixture(scope="module")
def fitted() -> mj.Harmonium:
    return cd().fit(three_views()[0])


def test_the_objective_never_rises_and_is_that_of_the_rows(fitted: mj.Harmonium) -> None:
    values = np.asarray(fitted.trace_["objective"])
    assert (np.diff(values) <= 0).all() and len(values) == fitted.n_iter_ + 1 > 5
    assert fitted.objective_ == pytest.approx(values[-1], rel=1e-6)
    assert fitted.search_.objective_name == "contrastive divergence"


def test_starts_that_end_elsewhere_are_told_of() -> None:
    model = cd(4, init="random", n_init=4, random_state=0).fit(three_views()[0])
    found = np.array([start.objective for start in model.search_.starts])
    assert np.ptp(found) > 1e-3
    assert model.objective_ == pytest.approx(found.min(), rel=1e-6)
    assert "distinct optima" in str(model.summary())


def test_there_is_no_certificate_and_words_say_why(fitted: mj.Harmonium) -> None:
    X, _ = three_views()
    certificate = fitted.certificate_
    assert not certificate.is_global and not certificate.binds and certificate.eigenvalue is None
    assert "not convex" in certificate.sentence and "n_init" in certificate.sentence
    assert fitted.search_.proved_bound is None
    with pytest.raises(ValueError, match="not convex"):
        fitted.certify(X)


def test_the_default_has_the_better_pseudo_likelihood(fitted: mj.Harmonium) -> None:
    """It is what it maximises; with a likeness of representations, or one of the two would be wrong."""
    X, _ = three_views()
    default = mj.Harmonium(3, views=VIEWS, l2=0.3).fit(X)
    assert fitted.score(X) < default.score(X)
    a, b = (np.linalg.qr(h - h.mean(axis=0))[0] for h in (fitted.transform(X), default.transform(X)))
    assert np.linalg.svd(a.T @ b)[1][0] > 0.95


def test_weights_are_repeats_and_threads_change_nothing(fitted: mj.Harmonium) -> None:
    X, _ = three_views()
    n = len(X["bits"])
    weights = np.random.default_rng(0).integers(0, 3, n)
    rows = np.repeat(np.arange(n), weights)
    weighted = cd(tol=1e-4).fit(X, sample_weight=weights)
    repeated = cd(tol=1e-4).fit({name: values[rows] for name, values in X.items()})
    np.testing.assert_array_equal(weighted.components_, repeated.components_)
    assert weighted.objective_ == repeated.objective_
    same(cd(n_jobs=3).fit(X), fitted)
    order = np.random.default_rng(1).permutation(n)
    same(cd().fit({name: values[order] for name, values in X.items()}), fitted)
    same(cd().fit({**X, "bits": sparse.csr_matrix(X["bits"])}), fitted)


def test_rows_that_lack_views_take_part(fitted: mj.Harmonium) -> None:
    X, _ = three_views()
    partly = {**X, "sizes": X["sizes"].copy(), "bits": X["bits"].copy()}
    partly["sizes"][:40] = np.nan
    partly["bits"][30:60] = np.nan
    model = cd().fit(partly)
    values = np.asarray(model.trace_["objective"])
    assert (np.diff(values) <= 0).all() and np.isfinite(model.components_).all()
    a, b = (np.linalg.qr(h - h.mean(axis=0))[0] for h in (fitted.transform(X), model.transform(X)))
    assert np.linalg.svd(a.T @ b)[1][0] > 0.9


def test_the_penalty_is_chosen_by_held_out_pseudo_likelihood() -> None:
    X, _ = three_views()
    model = cd(l2="auto").fit(X)
    tried, scores = model.l2_path_.T
    assert model.l2_ == tried[scores.argmin()] and len(tried) >= 3
    default = mj.Harmonium(3, views=VIEWS).fit(X)
    assert model.largest_l2_ == default.largest_l2_
    assert scores.min() > default.l2_path_[:, 1].min()  # of the same rows, and comparable


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_labels_are_learnt(loss: str) -> None:
    X, y = three_views()
    labels = np.array(["few", "some", "many"])[y]
    model = mj.HarmoniumClassifier(3, views=VIEWS, method="cd", loss=loss, l2=3.0).fit(X, labels)
    default = mj.HarmoniumClassifier(3, views=VIEWS, loss=loss, l2=3.0).fit(X, labels)
    assert model.score(X, labels) > default.score(X, labels) - 0.05 > 0.7
    values = np.asarray(model.trace_["objective"])
    assert (np.diff(values) <= 0).all()
    if loss == "log":
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_a_target_is_learnt() -> None:
    X, _ = three_views()
    y = X["sizes"][:, 0] - 2 * X["bits"][:, 1]
    model = mj.HarmoniumRegressor(3, views=VIEWS, method="cd", l2=3.0).fit(X, y)
    assert model.score(X, y) > 0.9


def test_what_follows_a_fit_works(fitted: mj.Harmonium, tmp_path: Path) -> None:
    X, _ = three_views()
    rest = {name: values for name, values in X.items() if name != "bits"}
    guessed = fitted.annotate(rest, "bits")
    assert ((guessed > 0.5) == X["bits"]).mean() > 0.6
    assert fitted.sample(3, random_state=0)["sizes"].shape == (3, 4)
    path = tmp_path / "model.majorant"
    fitted.save(path)
    read = mj.load(path)
    same(read, fitted)
    assert read.certificate_ == fitted.certificate_
    fitted.calibrate(X)
    assert np.isfinite(fitted.annotate(rest, "bits", calibrated=True)).all()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"method": "ml"}, "method"),
        ({"cd_sweeps": 0}, "cd_sweeps"),
        ({"cd_sweeps": 2.5}, "cd_sweeps"),
        ({"grow": True}, "method='cd' has none"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(words)):
        cd(**parameters).fit(three_views()[0])


def test_views_with_structure_are_refused() -> None:
    X = {"words": np.random.default_rng(0).integers(0, 2, (20, 3, 4)).astype(float), "sizes": np.eye(20)}
    with pytest.raises(ValueError, match="views without structure"):
        mj.Harmonium(2, views={"words": mj.Chain(), "sizes": mj.Gaussian()}, method="cd", l2=1.0).fit(X)


def test_a_label_counts_once_at_least() -> None:
    X, y = three_views()
    model = mj.HarmoniumClassifier(3, views=VIEWS, method="cd", loss="log", loss_weight=0.5)
    with pytest.raises(ValueError, match="loss_weight=1 or more"):
        model.fit(X, y)
    assert not numbers(model)
