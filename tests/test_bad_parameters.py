"""Wrong values of the parameters that estimators share: refused by every one of them, by name."""

from __future__ import annotations

import os
from inspect import signature
from typing import Any

import numpy as np
import pytest

import majorant as mj

from .estimators import ESTIMATORS, ROWS, N, make, reference, target


def parameters_of(model: type[Any], method: str) -> Any:
    return signature(getattr(model, method)).parameters if hasattr(model, method) else ()


WRONG: list[tuple[str, Any]] = [
    ("n_init", 0),
    ("n_init", 2.0),
    ("n_init", "many"),
    ("n_init", None),
    ("n_jobs", 0),
    ("n_jobs", "all"),
    ("max_iter", -1),
    ("max_iter", 10.0),
    ("tol", -1e-3),
    ("tol", np.nan),
    ("tol", "small"),
    ("beta", 0.0),
    ("beta", -1.0),
    ("beta", np.nan),
    ("bounds", "gibbs"),
    ("bounds", 0.1),
    ("verbose", -1),
    ("verbose", "loud"),
]


CASES = [(model, name, value) for model in ESTIMATORS for name, value in WRONG if name in make(model).get_params()]


@pytest.mark.parametrize(("model", "name", "value"), CASES)
def test_wrong_parameters_are_refused_by_name(model: type[Any], name: str, value: Any) -> None:
    estimator = make(model, **{name: value})
    before = dict(vars(estimator))
    with pytest.raises((ValueError, TypeError), match=name) as error:
        estimator.fit(np.arange(60.0).reshape(20, 3), target(model, 20))
    assert repr(value) in str(error.value) or f"{value:g}" in str(error.value)
    assert vars(estimator) == before


@pytest.mark.parametrize("n", [10**400, 10**30, 2**63, 10**12])
@pytest.mark.parametrize(
    ("model", "method", "name"),
    [
        *((model, "sample", "n_samples") for model in ESTIMATORS if "n_samples" in parameters_of(model, "sample")),
        *((model, "forecast", "n_steps") for model in ESTIMATORS if hasattr(model, "forecast")),
        *((model, "bootstrap", "n_resamples") for model in ESTIMATORS if hasattr(model, "bootstrap")),
    ],
)
def test_more_than_memory_holds_is_refused(model: type[Any], method: str, name: str, n: int) -> None:
    rows = {"sample": (), "forecast": (ROWS,), "bootstrap": (ROWS, target(model, N))}[method]
    with pytest.raises(ValueError, match=rf"{name}=[0-9.]+ would take more memory than there is"):
        getattr(reference(model), method)(*rows, **{name: n})


@pytest.mark.parametrize("is_known", [True, False])
def test_the_size_of_memory_is_told_where_it_is_known(monkeypatch: pytest.MonkeyPatch, is_known: bool) -> None:
    model, memory = reference(mj.RegressionMixture), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if not is_known:
        monkeypatch.delattr(os, "sysconf")
    size, memory = (f", {memory / 2**30:.0f} GB", memory) if is_known else ("", 2**40)
    too_many = memory // 8 // model.n_parameters_ + 1  # each resample has as many numbers
    with pytest.raises(ValueError, match=f"would take more memory than there is{size}: ask for fewer"):
        model.bootstrap(ROWS, target(mj.RegressionMixture, N), n_resamples=too_many)


@pytest.mark.parametrize(
    "value", [np.arange(900.0).reshape(300, 3), list(range(10**5)), "x" * 10**5], ids=["array", "list", "text"]
)
@pytest.mark.parametrize("model", ESTIMATORS)
def test_errors_do_not_print_what_is_long(model: type[Any], value: Any) -> None:
    refused = 0
    for name, default in make(model).get_params().items():
        if type(default) not in (int, float) or name in ("n_jobs", "random_state"):
            continue
        with pytest.raises((ValueError, TypeError)) as error:
            make(model, **{name: value}).fit(np.arange(60.0).reshape(20, 3), target(model, 20))
        assert name in str(error.value)
        assert len(str(error.value)) < 500, name
        refused += 1
    assert refused


def test_rows_given_for_a_method_are_not_printed() -> None:
    x = np.linspace(0, 10, 300)[:, None]
    model = mj.RegressionMixture(1).fit(x, np.sin(x[:, 0]))
    with pytest.raises(ValueError, match=r"method must be one of .*; got ndarray of shape \(300, 1\)\.$"):
        model.standard_errors(x, np.sin(x[:, 0]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "name", "value", "meant"),
    [
        (mj.RegressionMixture, "family", "normal", "gaussian"),
        (mj.RegressionMixture, "family", "Logistic", "binomial"),
        (mj.RegressionMixture, "family", "t", "student"),
        (mj.GaussianMixture, "covariance_type", "VVV", "full"),
        (mj.GaussianMixture, "covariance_type", "sperical", "spherical"),
        (mj.HiddenMarkovModel, "emission", "normal", "gaussian"),
    ],
)
def test_names_that_other_software_has_are_understood(model: type[Any], name: str, value: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"Did you mean '{meant}'"):
        model(**{name: value}).fit(np.arange(6.0)[:, None], *([np.arange(6.0)] * (name == "family")))
