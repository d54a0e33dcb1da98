"""The general mixture of regressions: families, groups, gating, shared coefficients, offsets, trimming, labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from scipy.special import gammaln
from scipy.stats import nbinom
from sklearn.exceptions import ConvergenceWarning

import majorant as mj
from majorant.solvers.responses import Response

Array = NDArray[Any]


def np_reg(shared_data: Path) -> dict[str, Array]:
    table = np.genfromtxt(
        shared_data / "mixreg/flexmix_NPreg.csv", delimiter=",", names=True, dtype=None, encoding=None
    )
    out = {name: np.asarray(table[name], dtype=np.float64) for name in ("x", "yn", "yp", "yb")}
    return {**out, "id2": np.char.strip(np.asarray(table["id2"], dtype=str), '"')}


NP_REG: list[tuple[dict[str, Any], str, int, list[str], float]] = [
    ({}, "yn", 2, [], -642.5320),
    ({"family": "poisson"}, "yp", 1, [], -440.6403),
    ({"family": "student"}, "yn", 2, [], -645.4502),
    ({}, "yn", 2, ["groups"], -561.5537),
    ({}, "yn", 2, ["gating"], -642.0639),
]


@pytest.mark.parametrize(("parameters", "target", "degree", "extras", "expected"), NP_REG)
def test_np_reg_reaches_the_best_optimum(
    parameters: dict[str, Any], target: str, degree: int, extras: list[str], expected: float, shared_data: Path
) -> None:
    data = np_reg(shared_data)
    x = np.column_stack([data["x"] ** j for j in range(1, degree + 1)])
    given = {"groups": data["id2"], "gating": data["x"][:, None]}
    model = mj.RegressionMixture(2, random_state=0, **parameters)
    # offset=0 takes the plain Gaussian case through the general path too
    model.fit(x, data[target], offset=0.0, **{name: given[name] for name in extras})
    assert model.log_likelihood_ == pytest.approx(expected, abs=1e-3)
    assert model.regular_
    density = model.log_density(x, data[target], **{name: given[name] for name in extras})
    assert density.sum() == pytest.approx(model.log_likelihood_, rel=1e-10)


def test_the_likelihood_of_repeated_measures_knows_the_groups() -> None:
    t = np.tile([0.0, 1.0, 2.0], 4)[:, None]
    y = np.array([0.1, 1.2, 1.9, 4.8, 4.1, 3.2, -0.2, 0.8, 2.3, 5.1, 3.8, 3.1])
    groups = np.repeat(["a", "b", "c", "d"], 3)
    model = mj.RegressionMixture(2, random_state=0, min_component_size=0).fit(t, y, groups=groups)
    model.coef_, model.center_, model.center_fits_ = np.array([[1.0], [-1.0]]), np.zeros(1), np.array([0.0, 5.0])
    model.scale_, model.weights_ = np.full(2, 0.25), np.full(2, 0.5)
    assert model.log_density(t, y, groups=groups).sum() == pytest.approx(-0.204318787, abs=1e-9)
    assert model.log_density(t, y).sum() == pytest.approx(-5.709393772, abs=1e-9)


def tone(shared_data: Path) -> tuple[Array, Array]:
    table = np.genfromtxt(shared_data / "mixreg/mixtools_tonedata.csv", delimiter=",", names=True)
    return table["stretchratio"][:, None], table["tuned"]


@pytest.mark.parametrize("k", [2, 3])
def test_a_common_noise_is_one_on_both_paths(k: int, shared_data: Path) -> None:
    """Starts with noises of their own, by swaps or as given, may not keep them because they fit better."""
    x, y = tone(shared_data)
    found = [
        mj.RegressionMixture(k, variance="common", random_state=0).fit(x, y, **more) for more in ({}, {"offset": 0.0})
    ]
    assert found[1].log_likelihood_ == pytest.approx(found[0].log_likelihood_, abs=1e-5)
    start = {"coef": [[0.0], [1.0]], "intercept": [2.0, 0.0], "scale": [0.1, 0.005]}
    given = mj.RegressionMixture(2, variance="common", init=start).fit(x, y, offset=0.0)
    for model in (*found, given):
        np.testing.assert_allclose(model.scale_, model.scale_[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "k"), [("tone", 2), ("tone", 3), ("NPreg", 2), ("NPreg", 3), ("collinear", 2), ("constant", 2)]
)
@pytest.mark.filterwarnings("ignore:.* combination:scipy.linalg.LinAlgWarning", "ignore:x3 does not vary")
def test_both_paths_reach_the_same_optimum(name: str, k: int, shared_data: Path) -> None:
    if name == "tone":
        x, y = tone(shared_data)
    else:
        data = np_reg(shared_data)
        x, y = np.column_stack([data["x"], data["x"] ** 2]), data["yn"]
        more = {"collinear": x @ [[2.0], [-1.0]], "constant": np.full((len(x), 1), 3.0)}
        x = np.column_stack([x, more[name]]) if name in more else x
    plain = mj.RegressionMixture(k, random_state=0).fit(x, y)
    general = mj.RegressionMixture(k, random_state=0).fit(x, y, offset=0.0)
    assert general.log_likelihood_ == pytest.approx(plain.log_likelihood_, abs=1e-5)
    np.testing.assert_allclose(general.coef_, plain.coef_, rtol=1e-3, atol=1e-3)
    for criterion in ("n_parameters_", "aic_", "bic_", "icl_"):
        assert getattr(general, criterion) == pytest.approx(getattr(plain, criterion), abs=1e-2)
    assert (general.excluded_ is None) == (plain.excluded_ is None) or k == 3
    np.testing.assert_allclose(general.responsibilities_, plain.responsibilities_, atol=1e-3)


def rows(n: int = 120, seed: int = 0) -> dict[str, Array]:
    """Counts of two components, in groups of four, with exposures."""
    g = np.random.default_rng(seed)
    x = g.normal(size=(n, 2))
    groups = np.arange(n) // 4
    which = (g.random(n // 4) < 0.4)[groups]
    exposure = g.uniform(1, 10, n)
    rate = np.exp(np.where(which, 1 + 0.5 * x[:, 0], -1 - 0.5 * x[:, 0]) + 0.2 * x[:, 1])
    return {"x": x, "y": g.poisson(exposure * rate).astype(float), "groups": groups, "offset": np.log(exposure)}


def test_one_component_is_the_generalised_linear_model() -> None:
    """Poisson with exposures: the score is zero; a binomial one is scikit-learn's logistic regression."""
    data = rows()
    model = mj.RegressionMixture(1, family="poisson").fit(data["x"], data["y"], offset=data["offset"])
    residuals = data["y"] - model.predict(data["x"], offset=data["offset"])
    design = np.column_stack([np.ones(len(residuals)), data["x"]])
    np.testing.assert_allclose(design.T @ residuals, 0, atol=1e-5 * data["y"].sum())
    assert model.n_parameters_ == 3

    from sklearn.linear_model import LogisticRegression

    y = (data["y"] > np.median(data["y"])).astype(float)
    logistic = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(data["x"], y)
    own = mj.RegressionMixture(1, family="binomial").fit(data["x"], y)
    np.testing.assert_allclose(own.coef_, logistic.coef_, rtol=1e-4)
    np.testing.assert_allclose(own.predict(data["x"]), logistic.predict_proba(data["x"])[:, 1], atol=1e-5)


def test_parameters_are_counted() -> None:
    data = rows()
    x, y = data["x"], data["y"] + 1.0
    gates = np.random.default_rng(0).normal(size=(len(y) // 4, 2))[data["groups"]]

    def count(parameters: dict[str, Any], **extras: Any) -> int:
        model = mj.RegressionMixture(2, random_state=0, max_iter=30, **parameters)
        return int(model.fit(x, y, **extras).n_parameters_)

    assert count({"family": "poisson"}) == 2 * 3 + 1
    assert count({"family": "poisson", "shared": [0, "intercept"]}) == 2 + 2 + 1
    assert count({"family": "gamma"}) == 2 * 3 + 2 + 1
    assert count({"family": "gamma", "variance": "common"}) == 2 * 3 + 1 + 1
    assert count({"family": "student", "fit_intercept": False}, gating=gates, groups=data["groups"]) == 4 + 2 + 3


def test_shared_coefficients_are_the_same_in_all_components() -> None:
    data = rows()
    pandas = pytest.importorskip("pandas")
    x = pandas.DataFrame(data["x"], columns=["dose", "age"])
    model = mj.RegressionMixture(2, family="poisson", shared=["age"], random_state=0)
    model.fit(x, data["y"], groups=data["groups"], offset=data["offset"])
    assert model.coef_[0, 1] == model.coef_[1, 1] == pytest.approx(0.2, abs=0.05)
    assert abs(model.coef_[0, 0] - model.coef_[1, 0]) > 0.5
    everything = mj.RegressionMixture(2, shared=["dose", "age", "intercept"], random_state=0).fit(x, data["y"])
    assert (everything.coef_[0] == everything.coef_[1]).all()
    assert everything.intercept_[0] == pytest.approx(everything.intercept_[1])
    assert everything.scale_[0] != everything.scale_[1]


def test_groups_seen_are_predicted_by_their_posterior_and_new_ones_by_the_prior() -> None:
    data = rows()
    x, y, offset = data["x"], data["y"], data["offset"]
    names = np.array([f"site {g}" for g in data["groups"]])
    model = mj.RegressionMixture(2, family="poisson", random_state=0).fit(x, y, groups=names, offset=offset)
    assert list(model.groups_) == sorted(set(names))
    np.testing.assert_allclose(model.group_responsibilities_.sum(axis=1), 1)
    means = model.predict_components(x, offset=offset)
    np.testing.assert_allclose(
        model.predict(x, groups=names, offset=offset), (means * model.responsibilities_).sum(axis=1)
    )
    new = np.full(len(y), "elsewhere")
    np.testing.assert_allclose(model.predict(x, groups=new, offset=offset), means @ model.weights_)
    np.testing.assert_allclose(model.predict(x, offset=offset), means @ model.weights_)
    proba = model.predict_proba(x, y, groups=names, offset=offset)
    np.testing.assert_allclose(proba, model.responsibilities_)
    assert (proba[:4] == proba[0]).all()
    assert (model.classify(x, y, groups=names, offset=offset) == proba.argmax(axis=1)).all()
    by_number = mj.RegressionMixture(2, family="poisson", random_state=0).fit(
        x, y, groups=data["groups"], offset=offset
    )
    assert by_number.log_likelihood_ == model.log_likelihood_
    drawn, component = model.sample(x, 0, groups=names, offset=offset)
    assert (component.reshape(-1, 4) == component[::4, None]).all()
    assert (drawn >= 0).all()
    assert model.bic(x, y, groups=names, offset=offset) == pytest.approx(model.bic_)
    assert model.icl(x, y, groups=names, offset=offset) == pytest.approx(model.icl_)


def test_gating_is_a_multinomial_logit_against_the_first_component() -> None:
    g = np.random.default_rng(2)
    x, gates = g.normal(size=(600, 1)), g.normal(size=(600, 1))
    which = g.random(600) < 1 / (1 + np.exp(-(0.5 + 2 * gates[:, 0])))
    y = np.where(which, 3 + x[:, 0], -3 - x[:, 0]) + 0.5 * g.normal(size=600)
    model = mj.RegressionMixture(2, random_state=0).fit(x, y, gating=gates)
    assert (model.gating_coef_[0] == 0).all()
    assert model.gating_intercept_[0] == 0
    sign = 1 if model.intercept_[1] > 0 else -1
    assert sign * model.gating_coef_[1, 0] == pytest.approx(2, abs=0.5)
    priors = model.predict_proba(x, gating=gates)
    np.testing.assert_allclose(priors.mean(axis=0), model.weights_, atol=1e-8)
    # at the maximum the mean prior is the mean posterior, of every gating column
    np.testing.assert_allclose(gates.T @ (priors - model.responsibilities_), 0, atol=1e-2)
    with pytest.raises(ValueError, match="fitted with 1 gating columns; none were given"):
        model.predict(x)
    with pytest.raises(ValueError, match="fitted without gating"):
        mj.RegressionMixture(2, random_state=0).fit(x, y).predict(x, gating=gates)


def test_trimming_leaves_outliers_out() -> None:
    g = np.random.default_rng(0)
    x = g.normal(size=(200, 1))
    y = np.where(np.arange(200) % 2, 2 + x[:, 0], -2 - x[:, 0]) + 0.2 * g.normal(size=200)
    y[:10] += 50 * g.choice([-1, 1], 10)
    model = mj.RegressionMixture(2, trim=0.05, random_state=0).fit(x, y)
    assert (np.flatnonzero(model.trimmed_) == np.arange(10)).all()
    np.testing.assert_allclose(np.sort(model.coef_[:, 0]), [-1, 1], atol=0.1)
    assert model.log_likelihood_ == pytest.approx(model.log_density(x, y)[10:].sum(), rel=1e-9)


def test_labels_name_the_components() -> None:
    g = np.random.default_rng(0)
    x = g.normal(size=(200, 1))
    which = np.arange(200) % 3 == 0
    y = np.where(which, 2 + x[:, 0], -2 - x[:, 0]) + 0.5 * g.normal(size=200)
    for first in (0, 1):
        labels: list[Any] = [None] * 200
        for i in range(20):
            labels[i] = int(which[i]) if first == 0 else 1 - int(which[i])
        model = mj.RegressionMixture(2, random_state=0).fit(x, y, component_labels=labels)
        assert model.intercept_[1 - first] == pytest.approx(2, abs=0.3)
        known = np.array(labels[:20], dtype=int)
        assert (model.responsibilities_[np.arange(20), known] == 1).all()
        nan = np.array([np.nan if v is None else v for v in labels])
        again = mj.RegressionMixture(2, random_state=0).fit(x, y, component_labels=nan)
        assert again.log_likelihood_ == model.log_likelihood_


@pytest.mark.parametrize(
    ("parameters", "extras", "error", "says"),
    [
        ({}, {"groups": [1, 2]}, ValueError, "groups must be one name per row"),
        ({}, {"groups": [None] * 120}, ValueError, "groups has no name for row 0"),
        ({}, {"groups": [1.0, np.nan] * 60}, ValueError, "groups has no name for row 1"),
        ({}, {"groups": ["a", 1] * 60}, TypeError, "mixes text and numbers"),
        ({}, {"gating": np.zeros((3, 1))}, ValueError, "gating must have a row for each of the 120 rows"),
        ({}, {"gating": np.arange(120.0), "groups": [0] * 120}, ValueError, "gating must be the same for all rows of"),
        ({}, {"offset": [np.inf] * 120}, ValueError, "offset contains infinity"),
        ({}, {"trials": 3}, ValueError, 'trials= goes with family="binomial"'),
        ({"family": "binomial"}, {"trials": 0.5}, ValueError, "trials must be whole numbers"),
        ({"family": "binomial"}, {}, ValueError, 'family="binomial" needs numbers of successes'),
        ({}, {"component_labels": [2] * 120}, ValueError, "from 0 to 1, or -1"),
        ({}, {"component_labels": ["a"] * 120}, TypeError, "component_labels must hold whole numbers"),
        ({}, {"component_labels": [0, 1] * 60, "groups": [0] * 120}, ValueError, "a group has one component"),
        ({}, {"groups": [0] * 120}, ValueError, "1 distinct unit does not determine n_components=2"),
        ({}, {"groups": [0, 1] * 60, "sample_weight": np.arange(1.0, 121)}, ValueError, "sample_weight must be the"),
        ({"shared": ["no"]}, {}, ValueError, "shared has no column 'no': name one of x1, x2"),
        ({"shared": "x1"}, {}, TypeError, "shared must be a list of columns"),
        ({"shared": ["intercept"], "fit_intercept": False}, {}, ValueError, "fit_intercept is False"),
        ({"trim": 0.5}, {}, ValueError, "trim must be at least 0 and below 0.5"),
        ({"family": "weibull"}, {}, ValueError, "family must be one of"),
        ({"family": "poisson", "bounds": mj.RandomWalk()}, {}, ValueError, "bounds only goes with the plain"),
        ({"family": "poisson", "init": "moments"}, {}, ValueError, "only goes with the plain"),
        ({"init": "spectral"}, {"gating": np.arange(120.0)}, ValueError, "only goes with the plain"),
    ],
)
def test_what_cannot_be_is_said(
    parameters: dict[str, Any], extras: dict[str, Any], error: type[Exception], says: str
) -> None:
    data = rows()
    model = mj.RegressionMixture(2, random_state=0, **parameters)
    with pytest.raises(error, match=says):
        model.fit(data["x"], data["y"], **extras)
    assert not hasattr(model, "coef_")


def test_a_component_without_counts_is_said() -> None:
    g = np.random.default_rng(0)
    x = g.normal(size=(100, 1))
    y = np.where(np.arange(100) < 50, 0.0, 5 + g.poisson(20, 100))
    with pytest.warns(ConvergenceWarning, match="along the intercept, as all its counts there are zero"):
        model = mj.RegressionMixture(2, family="poisson", random_state=0).fit(x, y)
    assert model.regular_ and np.isnan(model.standard_errors()["intercept"]).sum() == 1
    alone = mj.RegressionMixture(1, family="poisson").fit(x[50:], y[50:])  # zeros are sure, and half of the rows
    assert model.log_likelihood_ == pytest.approx(alone.log_likelihood_ + 100 * np.log(0.5), abs=1e-2)
    found = mj.select(mj.RegressionMixture(family="poisson", random_state=0), x, y, n_components=[1, 2])
    assert found.best.size == 2
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict(x)).all()


def test_collinear_columns_are_named() -> None:
    data = rows()
    x = np.column_stack([data["x"], data["x"].sum(axis=1), np.ones(120)])
    with pytest.warns(
        LinAlgWarning, match="x4 does not vary.*x3: a combination of the columns before and the intercept"
    ):
        model = mj.RegressionMixture(2, family="poisson", random_state=0).fit(x, data["y"], offset=data["offset"])
    less = mj.RegressionMixture(2, family="poisson", random_state=0).fit(data["x"], data["y"], offset=data["offset"])
    assert model.log_likelihood_ == pytest.approx(less.log_likelihood_, rel=1e-9)
    assert model.n_parameters_ == less.n_parameters_
    np.testing.assert_allclose(model.predict(x), less.predict(data["x"]), rtol=1e-4)


class NegativeBinomial(Response):
    """Counts with variance ``mu + mu^2 / 2``: a family of a user's own."""

    name = "negative binomial"
    size = 2.0

    def mean(self, eta: Array, trials: Array) -> Array:
        return np.exp(eta)

    def log_density(self, y: Array, eta: Array, dispersion: Array, trials: Array) -> Array:
        mu, r = np.exp(eta), self.size
        constant = gammaln(y + r) - gammaln(r) - gammaln(y + 1)
        return np.asarray(constant + r * np.log(r / (r + mu)) + y * np.log(mu / (r + mu)))

    def score(self, y: Array, eta: Array, dispersion: Array, trials: Array) -> Array:
        mu = np.exp(eta)
        return self.size * (y - mu) / (self.size + mu)

    def weight(self, y: Array, eta: Array, dispersion: Array, trials: Array) -> Array:
        mu = np.exp(eta)
        return self.size * mu / (self.size + mu)

    def working(self, y: Array, trials: Array) -> tuple[Array, Array]:
        return np.log(y + 0.5), self.size * (y + 0.5) / (self.size + y)

    def deviance(self, y: Array, eta: Array, trials: Array) -> Array:
        best = self.log_density(y, np.log(np.maximum(y, 1e-10)), np.ones(1), trials)
        return 2 * (best - self.log_density(y, eta, np.ones(1), trials))

    def draw(self, eta: Array, dispersion: Array, trials: Array, random: np.random.RandomState) -> Array:
        return random.negative_binomial(self.size, self.size / (self.size + np.exp(eta))).astype(float)


def test_a_family_of_your_own() -> None:
    g = np.random.default_rng(0)
    x = g.normal(size=(400, 1))
    groups = np.arange(400) // 4
    eta = np.where(groups % 2, 3 + 0.5 * x[:, 0], 0.5 - 0.5 * x[:, 0])
    y = NegativeBinomial().draw(eta, np.ones(1), np.ones(1), np.random.RandomState(0))
    model = mj.RegressionMixture(2, family=NegativeBinomial(), random_state=0).fit(x, y, groups=groups)
    np.testing.assert_allclose(np.sort(model.intercept_), [0.5, 3], atol=0.2)
    density = nbinom.logpmf(y, 2, 2 / (2 + np.exp(model.intercept_[0] + x[:, 0] * model.coef_[0, 0])))
    one = mj.RegressionMixture(1, family=NegativeBinomial(), init={"coef": model.coef_[:1]}).fit(x, y)
    one.coef_, one.center_, one.center_fits_ = model.coef_[:1], np.zeros(1), model.intercept_[:1]
    np.testing.assert_allclose(one.log_density(x, y), density)


def test_a_fit_is_kept_in_a_file(tmp_path: Path) -> None:
    data = rows()
    names = np.array([f"site {g}" for g in data["groups"]])
    model = mj.RegressionMixture(2, family="poisson", shared=[1], random_state=0)
    model.fit(data["x"], data["y"], groups=names, offset=data["offset"])
    model.save(tmp_path / "counts.majorant")
    again = mj.load(tmp_path / "counts.majorant")
    new = {"groups": names[:10], "offset": data["offset"][:10]}
    np.testing.assert_array_equal(again.predict(data["x"][:10], **new), model.predict(data["x"][:10], **new))
    assert str(again.summary()) == str(model.summary())
