"""What every mixture promises, tried on Poisson counts: labels, errors, intervals, draws and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import majorant as mj
from majorant import registry
from majorant.densities import Natural, Poisson
from majorant.models.mixture import MixtureEstimator

RATES = np.array([[2.0, 9.0], [8.0, 1.0]])
RANDOM = np.random.default_rng(0)
Z = (RANDOM.random(400) < 0.7).astype(int)
X = RANDOM.poisson(RATES[Z]).astype(float)


class Counts(MixtureEstimator):
    def _density(self) -> Any:
        return Poisson(self.n_features_in_)


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    registry.register(
        registry.mixture_card(
            name="counts",
            title="mixture of counts",
            question="Which groups of rows count alike?",
        )
    )(Counts)
    yield
    for known in (registry.CARDS, registry.ESTIMATORS):
        known.pop("counts")


@pytest.mark.parametrize("share", [1.0, 0.3])
@pytest.mark.parametrize("grouped", [False, True])
def test_components_keep_the_numbers_of_their_labels(share: float, grouped: bool) -> None:
    """Also where the larger component has the larger number."""
    z = np.repeat(Z[:100], 4) if grouped else Z
    x = np.random.default_rng(1).poisson(RATES[z]).astype(float)
    more = {"groups": np.arange(400) // 4} if grouped else {}
    labels = np.where(np.arange(400) % 10 < 10 * share, z, -1)
    labels = labels.reshape(-1, 4)[:, [0]].repeat(4, axis=1).ravel() if grouped else labels
    model = Counts(2, random_state=0).fit(x, component_labels=labels, **more)
    assert (model.predict(x, **more) == z).mean() > 0.95
    assert model.weights_[1] > model.weights_[0]
    aic = model.aic(x, component_labels=labels, **more)
    assert aic == pytest.approx(2 * model.n_parameters_ - 2 * model.log_likelihood_, rel=1e-12)


def test_errors_of_known_components_are_those_of_each_alone() -> None:
    x = RANDOM.poisson(np.array([[2.0, 3.0], [3.0, 5.0]])[Z]).astype(float)
    model = Counts(2, random_state=0).fit(x, component_labels=Z)
    errors = model.standard_errors(x, component_labels=Z)["rates"]
    exact = [np.sqrt(x[k == Z].mean(axis=0) / (k == Z).sum()) for k in (0, 1)]
    np.testing.assert_allclose(errors, exact, rtol=1e-4)
    for ask in (model.standard_errors, model.confidence_intervals, model.aic):
        with pytest.raises(ValueError, match="give component_labels"):
            ask(x)


def test_errors_of_groups_ask_for_the_groups() -> None:
    groups = np.arange(400) // 2
    model = Counts(2, random_state=0).fit(X, groups=groups)
    for ask in (model.standard_errors, model.confidence_intervals):
        with pytest.raises(ValueError, match="give groups"):
            ask(X)
    assert np.isfinite(model.standard_errors(X, groups=groups)["rates"]).all()


@pytest.mark.parametrize("n", [40, 400])
def test_a_flat_estimate_costs_the_others_no_errors(n: int) -> None:
    x = np.column_stack([X[:n], np.zeros(n)])
    model = Counts(2, random_state=0).fit(x)
    errors = model.standard_errors(x)
    without = Counts(2, random_state=0).fit(x[:, :2]).standard_errors(x[:, :2])
    assert np.isnan(errors["rates"][:, 2]).all()
    np.testing.assert_allclose(errors["rates"][:, :2], without["rates"], rtol=1e-3)
    np.testing.assert_allclose(errors["weights"], without["weights"], rtol=1e-3)
    ends = model.confidence_intervals(x)["rates"]
    assert np.isnan(ends[0][:, 2]).all() and np.isnan(ends[1][:, 2]).all()


def test_rates_below_one_have_intervals_above_it() -> None:
    x = np.array([[1.0], [0], [1], [2], [0]])
    low, high = Counts(1).fit(x).confidence_intervals(x)["rates"]
    factor = np.exp(1.959964 / np.sqrt(5 * 0.8))
    np.testing.assert_allclose([low[0, 0], high[0, 0]], [0.8 / factor, 0.8 * factor], rtol=1e-5)


def test_means_of_no_limits_have_symmetric_intervals() -> None:
    class Normal(Natural):
        """Of variance one."""

        def natural(self, mean: NDArray[Any]) -> Any:
            return mean, -(mean**2) / 2

        def inverse(self, vector: NDArray[Any]) -> Any:
            return vector

        def carrier(self, x: NDArray[Any]) -> Any:
            return -(x**2) / 2 - np.log(2 * np.pi) / 2

        def draw(self, mean: NDArray[Any], random: np.random.Generator) -> Any:
            return random.normal(mean)

    class Normals(MixtureEstimator):
        def _density(self) -> Any:
            return Normal(self.n_features_in_)

    x = np.random.default_rng(0).normal(0.4, 1, (100, 1))
    low, high = Normals(1).fit(x).confidence_intervals(x)["means"]
    np.testing.assert_allclose([low[0, 0], high[0, 0]], x.mean() + 1.959964 / 10 * np.array([-1, 1]), rtol=1e-4)


@pytest.mark.parametrize("weights", [None, "whole", "broken"])
def test_errors_on_a_stream_are_those_in_memory(weights: str | None) -> None:
    w = {None: None, "whole": RANDOM.integers(1, 4, 400) * 1.0, "broken": RANDOM.random(400) + 0.1}[weights]
    model = Counts(2, random_state=0).fit(X, sample_weight=w)
    memory = model.standard_errors(X, w)
    parts = [(0, 150), (150, 400)]
    stream = mj.open_rows(lambda: [X[a:b] for a, b in parts])
    found = model.standard_errors(stream, w)
    for name, values in memory.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5)
    own = mj.open_rows(lambda: [(X[a:b], None, np.ones(b - a) if w is None else w[a:b]) for a, b in parts])
    ends = model.confidence_intervals(own)
    for name, pair in model.confidence_intervals(X, w).items():
        np.testing.assert_allclose(ends[name], pair, rtol=1e-5)
    with pytest.raises(TypeError, match="groups needs rows in memory"):
        model.standard_errors(stream, groups=np.arange(400))


def test_draws_follow_groups_and_covariates() -> None:
    groups = np.arange(400) // 4
    gate = Z[groups] + RANDOM.normal(scale=0.3, size=400)
    gate = gate.reshape(-1, 4).mean(axis=1).repeat(4)
    x = RANDOM.poisson(RATES[Z[groups]]).astype(float)
    with pytest.warns(ConvergenceWarning, match="Gating by .* separates components"):
        model = Counts(2, random_state=0).fit(x, groups=groups, gating=gate)
    drawn, components = model.sample(groups=groups, gating=gate)
    assert drawn.shape == x.shape and (components.reshape(-1, 4) == components[::4, None]).all()
    expected = model.predict(x, groups=groups, gating=gate)
    assert (components == expected).mean() > 0.7
    with pytest.raises(ValueError, match="give gating"):
        model.sample(10)
    rows = Counts(2, random_state=0).fit(X)
    plain, of_rows = rows.sample(3000)
    assert abs((of_rows == 0).mean() - rows.weights_[0]) < 0.05 and plain.shape == (3000, 2)


def test_the_bootstrap_test_draws_whole_groups() -> None:
    """Rows drawn one by one would have let two components fit far better than what they came from."""
    groups = np.repeat(np.arange(40), 5)
    z = (np.random.default_rng(2).random(40) < 0.5).astype(int)[groups]
    x = np.random.default_rng(3).poisson(RATES[z]).astype(float)
    found = mj.likelihood_ratio_test(
        Counts(2, random_state=0, effort="fast"), x, n_resamples=9, random_state=0, groups=groups
    )
    assert found.simulated.max() < 25
    with pytest.raises(TypeError, match="sample takes no component_labels"):
        mj.likelihood_ratio_test(Counts(2), x, n_resamples=2, component_labels=z)


class Bare:
    """A density without anything that is optional."""

    n_columns, width, exact = 1, 2, True

    def __init__(self, n_features: int) -> None:
        self._is = Poisson(n_features)
        self.width = self._is.width
        for name in ("log_density", "statistics", "solve", "n_parameters", "describe", "recalled"):
            setattr(self, name, getattr(self._is, name))


def of_density(made: Any) -> Any:
    return type("Model", (MixtureEstimator,), {"_density": lambda self: made(self.n_features_in_)})


def test_what_a_density_does_not_offer_is_refused_in_words() -> None:
    model = of_density(Bare)(2, random_state=0).fit(X)
    np.testing.assert_allclose(model.rates_, Counts(2, random_state=0).fit(X).rates_, rtol=1e-3)
    for ask, words in (
        (lambda: model.standard_errors(X), "Bare has no `vector` and `theta_of`"),
        (lambda: model.sample(3), "its density Bare has no `drawn`"),
        (lambda: of_density(Bare)(2, bounds=mj.GibbsLimit()).fit(X), "Bare has no expected_log_density"),
        (lambda: of_density(lambda d: object())(2).fit(X), "object is no density: it lacks n_columns, exact, width"),
        (lambda: of_density(Poisson)(2).fit(X).summary(), "needs the decorator majorant.registry.register"),
    ):
        with pytest.raises(TypeError, match=words):
            ask()


def test_a_density_that_does_not_give_its_parameters_back_is_refused() -> None:
    class Flat(Poisson):
        def recalled(self, estimates: Any) -> Any:
            return np.asarray(estimates["rates"])

    with pytest.raises(ValueError, match=r"Flat.recalled must give a batch of one run.*\(1, 2, 2\); got \(2, 2\)"):
        of_density(Flat)(2, random_state=0).fit(X)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_rows_without_a_density_are_refused(k: int) -> None:
    class Strict(Poisson):
        def log_density(self, theta: Any, rows: Any) -> Any:
            return super().log_density(theta, rows) + np.sqrt(rows.columns[0][:, 0])

    with pytest.raises(ValueError, match=r"the log-likelihood is (-inf|not a number)"):
        of_density(Strict)(k, random_state=0).fit(-X - 1)


@pytest.mark.parametrize("k", [2, 3])
def test_coefficients_of_the_gate_and_their_errors_do_not_depend_on_which_component_a_start_called_first(
    k: int,
) -> None:
    rates = np.array([[2.0, 9.0], [8.0, 1.0], [20.0, 20.0]])
    random = np.random.default_rng(3)
    z = np.sort(random.choice(k, 300, p=np.array([0.5, 0.3, 0.2])[:k] / np.sum([0.5, 0.3, 0.2][:k])))
    x, covariate = random.poisson(rates[z]).astype(float), z + random.normal(size=300)
    fits = [Counts(k, random_state=seed).fit(x, gating=covariate) for seed in range(4)]
    for model in fits:
        np.testing.assert_array_equal(model.gating_coef_[0], 0.0)
        np.testing.assert_allclose(model.gating_coef_, fits[0].gating_coef_, rtol=1e-3, atol=1e-3)
        errors = model.standard_errors(x, gating=covariate)
        for name, expected in fits[0].standard_errors(x, gating=covariate).items():
            np.testing.assert_allclose(errors[name], expected, rtol=1e-3, atol=1e-4)
