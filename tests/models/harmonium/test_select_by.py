"""Penalties by the held-out likelihood of one view given the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import majorant as mj
from majorant.models.harmonium.inference import Annotation
from majorant.models.harmonium.layout import rows_of_views
from majorant.models.harmonium.pseudo_likelihood import PseudoLikelihood
from majorant.models.harmonium.search import VIEW_PENALTIES
from majorant.models.harmonium.tables import distinct_rows

VIEWS = {"a": mj.Bernoulli(), "b": mj.Bernoulli(), "sizes": mj.Gaussian(), "kind": mj.Categorical()}


def rows(seed: int, n: int = 150) -> dict[str, Any]:
    """Two views of bits that say much of themselves and little of each other, and two more."""
    g = np.random.default_rng(seed)
    h, own = g.normal(size=(n, 2)), g.normal(size=(n, 1))
    a = h @ g.normal(size=(2, 12)) + 3 * own + 0.5 * g.normal(size=(n, 12)) > 0
    b = g.random((n, 5)) < expit(h @ g.normal(size=(2, 5)))
    kind = np.digitize(h[:, :1] + g.normal(size=(n, 1)), [-0.5, 0.5])
    return {"a": a.astype(float), "b": b.astype(float), "sizes": h + g.normal(size=(n, 2)), "kind": kind}


def problem_of(model: mj.Harmonium, X: dict[str, Any]) -> tuple[PseudoLikelihood, dict[str, Any]]:
    """Distinct rows as the fit takes them."""
    tables = model._read(X, reset=False)[1]
    distinct = distinct_rows(tables, None, None)
    return model._problem(distinct, reuse=False)[0], distinct.tables


@pytest.mark.parametrize("lost", [None, "sizes", "kind", "b"])
def test_the_loss_is_that_of_what_annotate_says(lost: str | None, seed: int) -> None:
    X = rows(seed, 60)
    if lost is not None:
        X[lost] = X[lost].astype(float)
        X[lost][:20] = np.nan
    model = mj.Harmonium(4, views=VIEWS, l2=2.0).fit(X)
    problem, _ = problem_of(model, X)
    for view in ("a", "b"):
        there = ~np.isnan(X[view]).any(axis=1)
        p = model.annotate({name: values[there] for name, values in X.items()}, view)
        bits = X[view][there]
        expected = -np.where(bits > 0, np.log(p), np.log1p(-p)).sum(axis=1).mean()
        at = Annotation(rows_of_views(model.views_)[view])
        weight, found = at.loss(problem, model._fitted().parameters)
        assert weight == there.sum() and found == pytest.approx(expected, rel=1e-4)


def test_rows_with_nothing_else_have_no_loss(seed: int) -> None:
    X = rows(seed, 60)
    model = mj.Harmonium(3, views=VIEWS, l2=2.0).fit(X)
    alone = {"a": X["a"], **{name: np.full(values.shape, np.nan) for name, values in X.items() if name != "a"}}
    problem, _ = problem_of(model, alone)
    weight, loss = Annotation(rows_of_views(model.views_)["a"]).loss(problem, model._fitted().parameters)
    assert weight == 0 and np.isnan(loss)


@pytest.fixture(scope="module")
def selected() -> mj.Harmonium:
    return mj.Harmonium(5, views=VIEWS, select_by="a").fit(rows(1, 200))


def test_the_penalties_are_those_with_the_likeliest_held_out_view(selected: mj.Harmonium) -> None:
    penalties, losses = selected.penalty_path_.T
    assert penalties.tolist() == list(VIEW_PENALTIES[: len(penalties)])
    kept = {view.name: view.penalty for view in selected.views_}
    assert kept == {"a": penalties[losses.argmin()], "b": 1.0, "sizes": 1.0, "kind": 1.0}
    assert kept["a"] > 1, "what its bits say of each other is told by none of the others"
    assert selected.l2_path_[:, 1].min() == losses.min() and selected.rank_ > 0
    assert selected.l2_ == selected.l2_path_[selected.l2_path_[:, 1].argmin(), 0]


@pytest.mark.parametrize("seed", [1, 3])
def test_a_view_that_others_say_nothing_of_has_no_component(seed: int) -> None:
    """Independent noise: the frequencies of its bits predict best, also those of rows that were not held out."""
    g = np.random.default_rng(seed)
    X = {"a": (g.random((200, 10)) < 0.3).astype(float), "sizes": g.normal(size=(200, 8))}
    model = mj.Harmonium(views={name: VIEWS[name] for name in X}, select_by="a").fit(X)
    assert model.rank_ == 0 and "No component helps to predict rows that were held out" in str(model.summary())
    np.testing.assert_allclose(model.annotate(X, "a"), np.tile(X["a"].mean(axis=0), (200, 1)), rtol=1e-6)


def test_held_out_bits_become_likelier(selected: mj.Harmonium) -> None:
    X = rows(0, 600)
    test = {name: values[150:] for name, values in X.items()}
    selected = mj.Harmonium(5, views=VIEWS, select_by="a").fit({name: values[:150] for name, values in X.items()})
    default = mj.Harmonium(5, views=VIEWS).fit({name: values[:150] for name, values in X.items()})

    def likelihood(model: mj.Harmonium) -> float:
        p = np.clip(model.annotate(test, "a"), 1e-6, 1 - 1e-6)
        return float(np.where(test["a"] > 0, np.log(p), np.log1p(-p)).mean())

    assert likelihood(selected) > likelihood(default) + 0.01


def test_the_optimum_is_certified_with_the_view_s_share_of_the_penalty(selected: mj.Harmonium) -> None:
    X = rows(1, 200)
    assert selected.certificate_.is_global
    found = selected.certify(X)
    assert 0 <= found.difference < 1e-3 * selected.objective_
    penalty = 0.0
    for view in selected.views_:
        weights = selected.components_[:, rows_of_views(selected.views_)[view.name]]
        penalty += view.penalty * np.sum((weights * view.spread) ** 2)
    assert -selected.score(X) + selected.l2_ / 2 * penalty == pytest.approx(selected.objective_, rel=1e-9)


def test_few_rows_and_other_forms(seed: int) -> None:
    few = {name: values[:12] for name, values in rows(seed).items()}
    model = mj.Harmonium(2, views=VIEWS, select_by="b").fit(few)
    assert not len(model.penalty_path_) and {view.penalty for view in model.views_} == {1.0}
    X = rows(seed)
    old = mj.Harmonium(2, views=VIEWS, select_by="b", method="cd").fit(X)
    assert len(old.penalty_path_) >= 2
    assert not len(mj.Harmonium(2, views=VIEWS, l2=1.0).fit(X).penalty_path_)


@pytest.mark.parametrize(
    ("views", "given", "message"),
    [
        (VIEWS, {"select_by": "c"}, "select_by must be one of"),
        (VIEWS, {"select_by": 3}, "select_by must be one of"),
        (VIEWS, {"select_by": "sizes"}, "view of bits without edges; it is gaussian"),
        ({**VIEWS, "a": mj.Bernoulli(edges=[(0, 1)])}, {"select_by": "a"}, "view of bits without edges"),
        ({"a": mj.Bernoulli()}, {"select_by": "a"}, "only view"),
        (VIEWS, {"select_by": "a", "l2": 1.0}, "give l2='auto'"),
    ],
    ids=str,
)
def test_views_that_cannot_be_selected_by(views: dict[str, Any], given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mj.Harmonium(2, views=views, **given).fit({name: rows(0, 30)[name] for name in views})


def test_a_factor_at_an_end_of_those_tried_is_told() -> None:
    model = mj.Harmonium(4, views=VIEWS, select_by="b").fit(rows(0, 60))
    view = next(view for view in model.views_ if view.name == "b")
    told = {1.0: "The factor of b in the penalty is one", 64.0: "The factor of b in the penalty, 64, is the largest"}
    model.penalty_path_ = np.array([(factor, 1.0) for factor in VIEW_PENALTIES])
    for factor in VIEW_PENALTIES:
        model.views_ = [replace(one, penalty=factor) if one is view else one for one in model.views_]
        view = next(view for view in model.views_ if view.name == "b")
        said = " ".join(str(model.summary()).split())
        assert [text in said for text in told.values()] == [factor == end for end in told]


def test_a_calibration_at_an_end_of_the_penalties_is_told() -> None:
    g = np.random.default_rng(0)
    X = {"a": g.normal(size=(100, 2)), "b": (g.random((100, 3)) < 0.5).astype(float)}
    model = mj.Harmonium(2, views={"a": mj.Gaussian(), "b": mj.Bernoulli()}, l2=0.1).fit(X).calibrate(X)
    assert model.readout_l2_ == {"b": 1.0}  # noise says nothing of noise
    assert "The calibration of b has the largest penalty" in " ".join(str(model.summary()).split())
