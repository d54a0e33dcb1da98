"""A prior on staying: pseudo-counts of the diagonal of the transitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import majorant as mj
from majorant.datasets.earthquake import COUNTS

QUAKES = np.array(COUNTS, dtype=np.float64)[:, None]


@pytest.mark.parametrize("start", ["free", "stationary"])
def test_the_fit_maximises_the_likelihood_and_the_prior(start: str) -> None:
    model = mj.HiddenMarkovModel(2, emission="poisson", start=start, sticky=20.0, tol=1e-12, random_state=0).fit(QUAKES)
    plain = mj.HiddenMarkovModel(2, emission="poisson", start=start, random_state=0).fit(QUAKES)
    assert (np.diag(model.transitions_) > np.diag(plain.transitions_)).all()
    assert model.log_likelihood_ < plain.log_likelihood_
    np.testing.assert_allclose(model.score_samples(QUAKES).sum(), model.log_likelihood_, rtol=1e-10)
    assert "steps of staying added" in str(model.summary())

    def value(logits: np.ndarray) -> float:
        a, b = 1 / (1 + np.exp(-logits))
        steps = np.array([[a, 1 - a], [1 - b, b]])
        long_run = np.array([1 - b, 1 - a]) / (2 - a - b)
        first = long_run if start == "stationary" else model.start_probabilities_
        density = model.rates_.T**QUAKES * np.exp(-model.rates_.T)
        here, total = first * density[0], 0.0
        for row in density[1:]:
            total, here = total + np.log(here.sum()), (here / here.sum()) @ steps * row
        return -float(total + np.log(here.sum()) + 20 * np.log(a) + 20 * np.log(b))

    best = minimize(value, np.array([2.0, 2.0]), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10})
    np.testing.assert_allclose(1 / (1 + np.exp(-best.x)), np.diag(model.transitions_), atol=1e-4)


def test_what_the_prior_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="sticky"):
        mj.HiddenMarkovModel(2, sticky=-1.0).fit(QUAKES)
    with pytest.raises(ValueError, match="leave sticky out"):
        mj.HiddenMarkovModel(2, sticky=1.0).fit(QUAKES, gating=np.arange(len(QUAKES))[:, None])


def test_a_state_that_is_never_left_is_told_so_and_its_zeros_are_zeros() -> None:
    x = np.random.default_rng(0).normal(np.repeat([0.0, 8.0], 60))[:, None]
    model = mj.HiddenMarkovModel(2, random_state=0, effort="fast").fit(x)
    last = int(model.predict(x)[-1])
    lasts = model.durations(x)[0]
    assert np.isposinf(lasts[last]) and lasts[1 - last] == pytest.approx(60, rel=1e-3)
    shown = str(model.summary())
    assert shown.count("never left") == 1 and "inf" not in shown
    told = model.estimates(x)
    steps = told[told["parameter"] == "transitions"]["estimate"].to_numpy().reshape(2, 2).T
    np.testing.assert_array_equal(steps[last], np.eye(2)[last])
    first = told[told["parameter"] == "start_probabilities"]["estimate"].to_numpy()
    np.testing.assert_array_equal(first, np.eye(2)[1 - last])
    page = model.report(x).tables["transitions"]
    assert "never left" in str(page)
