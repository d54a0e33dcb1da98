"""Survey weights: their scale changes nothing, and errors are those of a sample drawn with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import majorant as mj


def sample(n: int = 400, seed: int = 0) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    second = random.random(n) < 0.4
    answers = (random.random((n, 6)) < np.where(second, 0.85, 0.15)[:, None]).astype(float)
    return answers, random.exponential(1.0, n) + 0.1


def fitted(answers: Any, weights: Any, **settings: Any) -> Any:
    model = mj.LatentClassAnalysis(2, sampling_weights=True, random_state=0, **settings)
    return model.fit(answers, sample_weight=weights)


def test_the_scale_of_survey_weights_changes_nothing() -> None:
    answers, w = sample()
    answers[3], x = np.nan, answers[:, 0] + np.arange(400) / 400  # a row that does not count
    found = []
    for scale in (1.0, 1000.0):
        weights = scale * w
        model = fitted(answers, weights)
        assert model.n_rows_ == pytest.approx(399)
        effects, outcome = (
            model.covariate_effects(answers, x, weights),
            model.distal_outcome(answers, x, weights, method="bch"),
        )
        parts = [model.bic(answers, sample_weight=weights), *effects.standard_errors[1], *outcome.standard_errors[:, 0]]
        parts += [*model.standard_errors(answers, sample_weight=weights)["weights"]]
        parts += [*model.confidence_intervals(answers, sample_weight=weights)["weights"][0]]
        found.append(parts)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_equal_weights_are_none_and_errors_are_robust() -> None:
    answers, _ = sample()
    model, plain = fitted(answers, np.full(400, 2.5)), mj.LatentClassAnalysis(2, random_state=0).fit(answers)
    assert model.log_likelihood_ == plain.log_likelihood_
    here = model.standard_errors(answers, sample_weight=np.full(400, 2.5))
    robust = plain.standard_errors(answers, method="robust")
    for name, values in robust.items():
        np.testing.assert_allclose(here[name], values, rtol=1e-6)
    information = model.standard_errors(answers, method="information")
    np.testing.assert_allclose(information["weights"], plain.standard_errors(answers)["weights"], rtol=1e-6)


def test_errors_of_a_share_are_those_of_many_samples() -> None:
    shares, errors = [], []
    for seed in range(60):
        answers, w = sample(300, seed)
        model = fitted(answers, w, effort="fast")
        yes = int(model.item_probabilities_[1, 1] > model.item_probabilities_[0, 1])
        shares.append(model.weights_[yes])
        errors.append(model.standard_errors(answers, sample_weight=w)["weights"][yes])
    assert np.mean(errors) == pytest.approx(np.std(shares, ddof=1), rel=0.25)
    counted = mj.LatentClassAnalysis(2, random_state=0).fit(answers, sample_weight=w)
    assert np.mean(errors) > 1.2 * counted.standard_errors(answers, sample_weight=w)["weights"][0]


def test_what_takes_no_survey_weights_says_so() -> None:
    answers, w = sample(60)
    with pytest.raises(ValueError, match="sampling_weights takes rows for independent"):
        mj.LatentClassAnalysis(2, sampling_weights=True).fit(answers, sample_weight=w, groups=np.arange(60) // 2)
    with pytest.raises(ValueError, match='take "robust"'):
        fitted(answers, w).standard_errors(answers, sample_weight=w, method="bootstrap")
