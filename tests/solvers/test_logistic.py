"""Logistic regressions of many bits: the log-loss and its gradient, and the penalty by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import majorant as mj
from majorant.solvers.logistic import FOLDS, PENALTIES, LogisticRegressions, fit_logistic, logistic_probabilities


def rows(seed: int, n: int = 200, signal: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Latents, and bits that they drive by `signal`."""
    g = np.random.default_rng(seed)
    h = g.normal(size=(n, 3))
    return h, (g.random((n, 5)) < expit(signal * (h @ g.normal(size=(3, 5))) - 0.5)).astype(float)


def with_ones(h: np.ndarray) -> np.ndarray:
    return np.column_stack([h, np.ones(len(h))])


def test_the_loss_is_that_of_its_definition_and_its_slope_that_of_differences(seed: int) -> None:
    h, bits = rows(seed, 30)
    g = np.random.default_rng(seed)
    weights, w = g.uniform(0.2, 1, 30), 2 * g.normal(size=(4, 5))
    readout = LogisticRegressions(with_ones(h), sparse.csr_matrix(bits), weights)
    p = expit(with_ones(h) @ w)
    each = -np.where(bits > 0, np.log(p), np.log1p(-p)).sum(axis=1)
    value, slope = readout.loss_and_slope(w)
    assert value == pytest.approx(weights @ each / weights.sum(), rel=1e-12)
    by_differences = approx_fprime(w.ravel(), lambda flat: readout.loss_and_slope(flat.reshape(4, 5))[0], 1e-7)
    np.testing.assert_allclose(slope.ravel(), by_differences, atol=1e-5)


def test_the_penalty_is_the_one_with_the_least_loss_of_folds_left_out(seed: int) -> None:
    h, bits = rows(seed, 150)
    h = np.column_stack([h, np.random.default_rng(seed + 50).normal(size=(150, 12))])
    chosen = LogisticRegressions(with_ones(h), sparse.csr_matrix(bits), np.ones(150)).chosen()
    at = PENALTIES.index(chosen)
    assert 0 < at < len(PENALTIES) - 1
    losses = {}
    for penalty in PENALTIES[at - 1 : at + 2]:
        loss = 0.0
        for fold in range(FOLDS):
            out = np.arange(150) % FOLDS == fold
            for x in bits.T:
                peer = LogisticRegression(C=1 / (penalty * (~out).sum()), tol=1e-8, max_iter=1000).fit(h[~out], x[~out])
                p = peer.predict_proba(h[out])[:, 1]
                loss -= np.where(x[out] > 0, np.log(p), np.log1p(-p)).sum()
        losses[penalty] = loss
    assert losses[chosen] == pytest.approx(min(losses.values()), rel=1e-4)


def test_latents_that_say_nothing_are_penalised_most_and_rows_that_repeat_count_as_weights(seed: int) -> None:
    h, bits = rows(seed, signal=0.0)
    coefficients, penalty = fit_logistic(h, sparse.csr_matrix(bits), np.ones(200))
    assert penalty == PENALTIES[0]
    assert np.ptp(logistic_probabilities(h, coefficients), axis=0).max() < 0.25
    g = np.random.default_rng(seed)
    X = {"sizes": h, "bits": bits}
    model = mj.Harmonium(2, views={"sizes": mj.Gaussian(), "bits": mj.Bernoulli()}, l2=1.0).fit(X)
    times = g.integers(0, 4, 200)
    order = g.permutation(np.repeat(np.arange(200), times))
    p = model.calibrate(X, sample_weight=times).annotate(X, "bits", calibrated=True)
    repeated = model.calibrate({name: v[order] for name, v in X.items()}).annotate(X, "bits", calibrated=True)
    np.testing.assert_array_equal(p, repeated)


def test_of_many_rows_one_fold_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted, sizes = LogisticRegressions.fitted, []

    def counted(self: LogisticRegressions, *given: Any, **options: Any) -> Any:
        sizes.append(len(self.weights))
        return fitted(self, *given, **options)

    monkeypatch.setattr(LogisticRegressions, "fitted", counted)
    h, bits = rows(0, 60)
    readout = LogisticRegressions(with_ones(h), sparse.csr_matrix(bits), np.ones(60))
    readout.chosen()
    by_five = len(sizes)
    monkeypatch.setattr("majorant.solvers.logistic.MANY_ROWS", 59)
    assert readout.chosen() in PENALTIES
    assert by_five % FOLDS == 0 and len(sizes) - by_five <= len(PENALTIES) and set(sizes) == {48}


@pytest.mark.parametrize("l2", ["most", 0.0, -1.0, np.nan, None])
def test_penalties_that_are_none(l2: object) -> None:
    h, bits = rows(0, 40)
    X = {"sizes": h, "bits": bits}
    model = mj.Harmonium(2, views={"sizes": mj.Gaussian(), "bits": mj.Bernoulli()}, l2=1.0).fit(X)
    with pytest.raises((ValueError, TypeError), match="l2"):
        model.calibrate(X, l2=l2)


def test_few_rows_and_bits_that_do_not_vary_are_logistic_probabilities() -> None:
    h, bits = rows(0, 8)
    bits[:] = bits[0]
    X = {"sizes": h, "bits": bits}
    with pytest.warns(match="constant"):
        model = mj.Harmonium(2, views={"sizes": mj.Gaussian(), "bits": mj.Bernoulli()}, l2=1.0).fit(X)
    p = model.calibrate(X).annotate(X, "bits", calibrated=True)
    np.testing.assert_array_equal(np.round(p), bits)
