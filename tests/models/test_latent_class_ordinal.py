"""Ordinal items: one effect of the class on all neighbouring levels, at the maximum that is found directly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import majorant as mj

from .test_latent_class_analysis import mixed, read


def drawn(n: int = 400, seed: int = 0) -> tuple[Any, Any]:
    """Four items of four levels of two classes, some cells missing."""
    random = np.random.default_rng(seed)
    z = random.random(n) < 0.4

    def item(alpha: Any, beta: float) -> Any:
        logits = np.array([0.0, *alpha]) + np.where(z, beta, 0.0)[:, None] * np.arange(len(alpha) + 1)
        p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        return (random.random((n, 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1).astype(float)

    table = pd.DataFrame({f"q{j}": item([0.5, 0.3, -0.5], 1.3 + 0.2 * j) for j in range(4)})
    table.loc[::9, "q1"] = np.nan
    return table, z


def by_hand(numbers: Any, X: Any) -> float:
    """Minus the log-likelihood of a logit of the share, then alphas and an effect of each item, written out."""
    share, d = 1 / (1 + np.exp(-numbers[0])), X.shape[1]
    alphas, betas = numbers[1 : 1 + 3 * d].reshape(d, 3), numbers[1 + 3 * d :]
    total = np.tile(np.log([1 - share, share]), (len(X), 1))
    for j in range(d):
        there = ~np.isnan(X[:, j])
        for k in (0, 1):
            logits = np.array([0.0, *alphas[j]]) + k * betas[j] * np.arange(4)
            total[there, k] += (logits - np.logaddexp.reduce(logits))[X[there, j].astype(int)]
    return -float(np.logaddexp(total[:, 0], total[:, 1]).sum())


def test_the_maximum_is_that_of_the_likelihood_by_hand() -> None:
    table, z = drawn()
    model = mj.LatentClassAnalysis(2, items="ordinal", random_state=0).fit(table)
    X, random = table.to_numpy(), np.random.default_rng(0)
    ends = [minimize(by_hand, 0.5 * random.normal(size=17), args=(X,), method="BFGS") for _ in range(2)]
    best = min(ends, key=lambda end: end.fun)
    assert model.log_likelihood_ == pytest.approx(-best.fun, abs=1e-4)
    assert model.n_parameters_ == 1 + 4 * (3 + 1)
    effects = model.ordinal_effects_[1] - model.ordinal_effects_[0]
    np.testing.assert_allclose(np.abs(effects), np.abs(best.x[13:]), atol=2e-3)
    errors = model.standard_errors(table)["ordinal_effects"]
    steps = 1e-3 * np.eye(17)
    hessian = np.array(
        [
            [
                sum(a * b * by_hand(best.x + a * i + b * j, X) for a in (-1, 1) for b in (-1, 1)) / (4 * 1e-6)
                for j in steps
            ]
            for i in steps
        ]
    )
    np.testing.assert_allclose(2 * errors[1], np.sqrt(np.diag(np.linalg.inv(hessian)))[13:], rtol=1e-2)
    free = mj.LatentClassAnalysis(2, items="categorical", random_state=0).fit(table)
    assert model.log_likelihood_ < free.log_likelihood_ < model.log_likelihood_ + 20
    assert max((model.predict(table) == z).mean(), (model.predict(table) != z).mean()) > 0.85


def test_neighbouring_levels_differ_between_classes_by_the_same_log_odds() -> None:
    table, _ = drawn()
    model = mj.LatentClassAnalysis(3, items="ordinal", random_state=0).fit(table)
    log = np.log(model.ordinal_probabilities_).reshape(3, 4, 4)
    steps = np.diff(log, axis=2)
    apart = steps - steps[:1]
    np.testing.assert_allclose(apart, np.broadcast_to(apart[:, :, :1], apart.shape), atol=1e-6)
    np.testing.assert_allclose(steps[:, :, 0] - steps[:, :, 0].mean(axis=0), model.ordinal_effects_, atol=1e-6)


def test_ordinal_items_have_all_that_items_have(tmp_path: Path) -> None:
    table, _ = mixed()
    names = {1.0: "low", 2.0: "mid", 3.0: "high", 4.0: "top"}
    words = table.assign(grade=pd.Categorical(table["grade"].map(names), categories=list(names.values()), ordered=True))
    model = mj.LatentClassAnalysis(2, items={"grade": "ordinal", "visits": "count"}, random_state=0).fit(words)
    assert "1 ordinal item (grade)" in model.items_.sentence
    assert model.items_.levels[2] == ("low", "mid", "high", "top")
    model.save(tmp_path / "m.majorant")
    np.testing.assert_array_equal(mj.load(tmp_path / "m.majorant").predict_proba(words), model.predict_proba(words))
    profile = model.class_profile(words)
    assert profile.levels[profile.items.index("grade")] == "low" and len(model.bivariate_residuals(words)) == 10
    assert model.identification().unidentified == ()
    assert set(np.unique(model.sample(50)[0][:, 2].astype(str))) <= set(model.items_.levels[2])
    other = mj.LatentClassAnalysis(2, items={"grade": "ordinal", "visits": "count"}, random_state=0).fit(table)
    assert other.log_likelihood_ == pytest.approx(model.log_likelihood_, rel=1e-12)
    times = np.random.default_rng(1).integers(0, 3, len(table))
    weighted, repeated = other.fit(table, sample_weight=times), table.loc[np.repeat(np.arange(len(table)), times)]
    assert weighted.log_likelihood_ == pytest.approx(weighted.log_likelihood(repeated), rel=1e-9)


def test_ratings_of_candidates_are_fitted_with_far_fewer_parameters(shared_data: Path) -> None:
    table = read(shared_data, "election complete")
    model = mj.LatentClassAnalysis(3, items="ordinal", random_state=0).fit(table)
    free = mj.LatentClassAnalysis(3, items="categorical", random_state=0).fit(table)
    assert model.n_parameters_ == 2 + 12 * (3 + 2) and free.n_parameters_ == 110
    again = [
        mj.LatentClassAnalysis(3, items="ordinal", random_state=seed).fit(table).log_likelihood_ for seed in (1, 2)
    ]
    np.testing.assert_allclose(again, model.log_likelihood_, atol=1e-4)
    assert model.log_likelihood_ < free.log_likelihood_


def test_text_without_an_order_is_no_ordinal_item() -> None:
    answers = pd.DataFrame({"smoke": ["never", "sometimes", "often"] * 20, "drink": ["no", "yes", "no"] * 20})
    with pytest.raises(ValueError, match="ordinal item 'smoke' holds text, 'never', 'often', 'sometimes', whose order"):
        mj.LatentClassAnalysis(1, items="ordinal").fit(answers)
    mj.LatentClassAnalysis(1, items="ordinal").fit(answers[["drink"]])  # two levels are in order either way
