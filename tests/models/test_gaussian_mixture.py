"""GaussianMixture: equivalences, scikit-learn's attributes, starts and bounds that were chosen, rows in many blocks."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris, load_wine
from sklearn.mixture import GaussianMixture as Peer

import majorant as mj
from majorant.models.gaussian_mixture.contest import GaussianContest
from majorant.models.gaussian_mixture.search import SOON
from majorant.search.record import PERTURBATION

IRIS = load_iris().data
TYPES = ["full", "tied", "diag", "spherical"]
FITTED = ["weights_", "means_", "covariances_", "precisions_cholesky_", "precisions_"]


def fit(X: Any, k: int = 2, **parameters: Any) -> mj.GaussianMixture:
    weights = parameters.pop("sample_weight", None)
    return mj.GaussianMixture(k, **{"random_state": 0, **parameters}).fit(X, sample_weight=weights)


def assert_equal_fits(a: mj.GaussianMixture, b: mj.GaussianMixture) -> None:
    for name in [*FITTED, "log_likelihood_", "lower_bounds_"]:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


def references() -> list[tuple[str, int, float]]:
    """The best log-likelihoods of mclust on iris."""
    path = Path(__file__).resolve().parents[1] / "reference" / "mclust.csv"
    with path.open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["data"] == "iris"]
    return [(r["covariance_type"], int(r["n_components"]), float(r["best"])) for r in rows]


@pytest.mark.parametrize(("covariance_type", "k", "best"), references())
def test_mclust_on_iris_is_reached(covariance_type: str, k: int, best: float, seed: int) -> None:
    fitted = fit(IRIS, k, covariance_type=covariance_type, random_state=seed)
    assert fitted.regular_
    # The highest regular solution of four full covariances is next to a singular one, and few starts lead there.
    slack = 4.8 if (covariance_type, k) == ("full", 4) else 1e-6 * abs(best)
    assert fitted.log_likelihood_ >= best - slack


@pytest.mark.parametrize("covariance_type", TYPES)
def test_one_component_is_in_closed_form(covariance_type: str) -> None:
    fitted = fit(IRIS, 1, covariance_type=covariance_type)
    covariance = np.cov(IRIS.T, bias=True)
    expected = {
        "full": covariance[None],
        "tied": covariance,
        "diag": np.diag(covariance)[None],
        "spherical": np.array([np.trace(covariance) / 4]),
    }[covariance_type]
    np.testing.assert_allclose(fitted.means_[0], IRIS.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(fitted.covariances_, expected, rtol=1e-10)
    assert fitted.weights_.tolist() == [1.0] and fitted.converged_


@pytest.mark.parametrize("covariance_type", TYPES)
def test_attributes_agree_with_each_other_and_with_scikit_learn(covariance_type: str) -> None:
    fitted = fit(IRIS, 3, covariance_type=covariance_type)
    peer = Peer(
        3,
        covariance_type=covariance_type,
        reg_covar=0.0,
        tol=1e-12,
        max_iter=3000,
        weights_init=fitted.weights_,
        means_init=fitted.means_,
        precisions_init=fitted.precisions_,
    ).fit(IRIS)
    for name in FITTED:
        np.testing.assert_allclose(getattr(fitted, name), getattr(peer, name), rtol=1e-3, atol=1e-3, err_msg=name)
    assert fitted.log_likelihood_ == pytest.approx(peer.score(IRIS) * len(IRIS), abs=1e-5)
    peer.weights_, peer.means_ = fitted.weights_, fitted.means_
    peer.covariances_, peer.precisions_cholesky_ = fitted.covariances_, fitted.precisions_cholesky_
    np.testing.assert_allclose(fitted.score_samples(IRIS), peer.score_samples(IRIS), rtol=1e-9)
    np.testing.assert_allclose(fitted.predict_proba(IRIS), peer.predict_proba(IRIS), atol=1e-9)
    np.testing.assert_array_equal(fitted.predict(IRIS), peer.predict(IRIS))
    assert fitted.score(IRIS) == pytest.approx(peer.score(IRIS)) == fitted.log_likelihood_ / len(IRIS)
    assert fitted.bic(IRIS) == pytest.approx(peer.bic(IRIS)) and fitted.aic(IRIS) == pytest.approx(peer.aic(IRIS))
    assert fitted.icl(IRIS) > fitted.bic(IRIS)
    assert fitted.n_iter_ == len(fitted.lower_bounds_)
    assert (np.diff(fitted.lower_bounds_) >= -1e-13).all()
    assert fitted.lower_bounds_[-1] == pytest.approx(fitted.lower_bound_, rel=1e-12)


def test_densities_are_those_of_the_parameters() -> None:
    fitted = fit(IRIS, 2)
    density = sum(
        w * multivariate_normal(m, c).pdf(IRIS)
        for w, m, c in zip(fitted.weights_, fitted.means_, fitted.covariances_, strict=True)
    )
    np.testing.assert_allclose(fitted.score_samples(IRIS), np.log(density), rtol=1e-10)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_order_repeats_and_threads_change_no_bit(covariance_type: str, seed: int) -> None:
    draws = np.random.default_rng(seed)
    counts = draws.integers(1, 4, len(IRIS)).astype(float)
    repeated = np.repeat(IRIS, counts.astype(int), axis=0)
    shuffled = draws.permutation(len(repeated))
    expected = fit(IRIS, 3, covariance_type=covariance_type, sample_weight=counts)
    assert_equal_fits(fit(repeated[shuffled], 3, covariance_type=covariance_type, n_jobs=2), expected)


def test_weights_of_another_scale_give_the_same_parameters() -> None:
    weights = np.random.default_rng(0).uniform(0.5, 2, len(IRIS))
    a, b = (fit(IRIS, 2, sample_weight=weights * scale) for scale in (1.0, 1e-6))
    np.testing.assert_allclose(a.means_, b.means_, rtol=1e-9)
    assert b.log_likelihood_ == pytest.approx(1e-6 * a.log_likelihood_, rel=1e-9)


def test_the_heaviest_component_comes_first_unless_a_start_was_given() -> None:
    fitted = fit(IRIS, 3)
    assert (np.diff(fitted.weights_) <= 0).all()
    turned = fit(IRIS, 3, means_init=fitted.means_[::-1], precisions_init=fitted.precisions_[::-1])
    np.testing.assert_allclose(turned.means_[::-1], fitted.means_, rtol=1e-3)
    assert {record.source for record in turned.search_.starts} == {"given"}


def test_no_iterations_leave_a_start_as_it_is() -> None:
    start = {"weights_init": [0.3, 0.7], "means_init": IRIS[[0, 100]], "precisions_init": np.tile(np.eye(4), (2, 1, 1))}
    fitted = fit(IRIS, 2, max_iter=0, **start)
    np.testing.assert_allclose(fitted.weights_, [0.3, 0.7])
    np.testing.assert_allclose(fitted.means_, IRIS[[0, 100]])
    np.testing.assert_allclose(fitted.precisions_, start["precisions_init"], atol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_warm_start_goes_on_where_it_was() -> None:
    model = mj.GaussianMixture(3, init_params="random", random_state=0, warm_start=True, max_iter=8)
    values = [model.fit(IRIS).log_likelihood_ for _ in range(40)]
    assert (np.diff(values) >= -1e-9).all() and model.converged_
    assert values[0] < values[-1] - 1.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"weights_init": [0.5, 0.4]}, "normalized"),
        ({"weights_init": [1.5, -0.5]}, "range"),
        ({"weights_init": [1.0]}, r"shape of \(2,\)"),
        ({"means_init": [[0.0]]}, r"shape of \(2, 4\)"),
        ({"precisions_init": np.zeros((2, 4, 4))}, "positive-definite"),
        ({"precisions_init": np.ones((2, 4)), "covariance_type": "full"}, "shape of"),
        ({"covariance_floor": "none"}, "covariance_floor"),
        ({"covariance_floor": 2.0}, "between 0 and 1"),
        ({"beta": 0.0}, "positive"),
        ({"covariance_type": "round"}, "covariance_type"),
        ({"init_params": "kmean"}, "Did you mean 'kmeans'"),
    ],
    ids=str,
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(IRIS, 2, **parameters)


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize("parameters", [{"bounds": mj.Tempered(eta=0.3)}, {"bounds": mj.GibbsLimit(eta=0.3)}], ids=str)
def test_bounds_lead_to_a_maximum(covariance_type: str, parameters: dict[str, Any]) -> None:
    fitted = fit(IRIS, 2, covariance_type=covariance_type, max_iter=500, **parameters)
    best = fit(IRIS, 2, covariance_type=covariance_type).log_likelihood_
    assert best - 0.5 <= fitted.log_likelihood_ <= best + 1e-4
    assert fitted.trace_["exploring"].any()


def test_an_infinite_inverse_temperature_gives_hard_components() -> None:
    hard = fit(IRIS, 2, beta=np.inf)
    assert set(np.unique(hard.predict_proba(IRIS))) == {0.0, 1.0}
    np.testing.assert_allclose(hard.weights_, np.bincount(hard.predict(IRIS)) / len(IRIS), rtol=1e-6)


def test_the_floor_bounds_every_covariance() -> None:
    fitted = fit(IRIS, 3, covariance_floor=0.05)
    total = np.linalg.inv(np.linalg.cholesky(np.cov(IRIS.T, bias=True)))
    least = [np.linalg.eigvalsh(total @ c @ total.T)[0] for c in fitted.covariances_]
    assert min(least) >= 0.05 - 1e-9


def test_samples_are_those_of_the_mixture() -> None:
    for covariance_type in TYPES:
        fitted = fit(IRIS, 2, covariance_type=covariance_type)
        X, y = fitted.sample(20_000)
        assert X.shape == (20_000, 4) and (np.diff(y) >= 0).all()
        np.testing.assert_allclose(np.bincount(y) / len(y), fitted.weights_, atol=0.02)
        np.testing.assert_allclose(X[y == 0].mean(axis=0), fitted.means_[0], atol=0.05)
        again = fit(X, 1, covariance_type="full").covariances_[0]
        within = fitted.weights_ @ (fitted.means_ - X.mean(axis=0)) ** 2
        assert (np.diag(again) > within).all()


def test_search_says_what_was_raced_and_perturbed() -> None:
    search = fit(IRIS, 3).search_
    assert search.sense == "max" and search.objective_name == "log-likelihood"
    assert "24 starts" in search.note
    assert all(record.source for record in search.starts)
    assert any(record.source != PERTURBATION for record in search.starts)


def wine() -> Any:
    X = load_wine().data
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("seed", [1, 2])
def test_starts_are_those_of_fewer_and_more(seed: int) -> None:
    """The same seed makes the same first starts, so that more of them end no worse."""
    few, many = (fit(wine(), 3, covariance_type="tied", n_init=n, random_state=seed) for n in (2, 8))
    assert [s.source for s in few.search_.starts] == [s.source for s in many.search_.starts][:2]
    np.testing.assert_allclose(
        [s.objective for s in few.search_.starts], [s.objective for s in many.search_.starts][:2], rtol=1e-9
    )
    assert many.log_likelihood_ >= few.log_likelihood_ - 1e-6


@pytest.mark.parametrize("n_init", [20, 50])
def test_degenerate_starts_are_counted_where_they_are_left_out(n_init: int) -> None:
    search = fit(wine(), 3, n_init=n_init, init_params="random_from_data").search_
    found = re.search(r"(\d+) of (\d+) runs ended at degenerate solutions", search.note)
    assert found is not None
    assert search.n_starts + int(found[1]) == int(found[2]) == n_init


def test_rows_in_a_file_are_fitted_as_in_memory(tmp_path: Path) -> None:
    draws = np.random.default_rng(4)
    X = np.concatenate([draws.normal(c, 1.0, (6_000, 2)) for c in (0.0, 5.0)])
    np.save(tmp_path / "rows.npy", X)
    streamed = fit(mj.open_rows(tmp_path / "rows.npy"), 2)
    whole = fit(X, 2)
    assert "last EM run over all" in whole.search_.note
    assert streamed.log_likelihood_ == pytest.approx(whole.log_likelihood_, rel=1e-9)
    np.testing.assert_allclose(streamed.means_, whole.means_, atol=1e-4)
    np.testing.assert_array_equal(streamed.predict(mj.open_rows(tmp_path / "rows.npy")), whole.predict(X))


def test_single_precision_is_near_double() -> None:
    X = np.concatenate([np.random.default_rng(4).normal(c, 1.0, (500, 2)) for c in (0.0, 5.0)])
    single, double = fit(X.astype(np.float32)), fit(X)
    assert single.means_.dtype == single.covariances_.dtype == single.predict_proba(X.astype(np.float32)).dtype
    assert single.means_.dtype == np.float32
    assert single.log_likelihood_ == pytest.approx(double.log_likelihood_, rel=1e-5)


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag"])
@pytest.mark.parametrize("unit", [1e30, 1e100])
def test_a_narrow_column_beside_a_wide_one_is_fitted_all_the_same(covariance_type: str, unit: float) -> None:
    units = np.array([1 / unit, 1.0, unit, 1.0])
    model, scaled = (fit(x, 3, covariance_type=covariance_type) for x in (IRIS, IRIS * units))
    assert scaled.log_likelihood_ == pytest.approx(model.log_likelihood_, rel=1e-9)
    np.testing.assert_allclose(scaled.means_ / units, model.means_, rtol=1e-6)


@pytest.mark.parametrize(("unit", "size"), [(1e-200, "small"), (1e200, "large")])
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_units_out_of_range_are_refused_for_what_they_are(covariance_type: str, unit: float, size: str) -> None:
    with pytest.raises(ValueError, match=f"too {size} .* rescale X"):
        fit(IRIS * unit, covariance_type=covariance_type)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("missing", [False, True])
def test_more_components_than_rows_can_tell_end_soon(missing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    run = GaussianContest.run

    def counted(contest: GaussianContest, rows: Any, runs: Any, max_iter: int, tol: float, **options: Any) -> Any:
        limits.append(max_iter)
        return run(contest, rows, runs, max_iter, tol, **options)

    monkeypatch.setattr(GaussianContest, "run", counted)
    X = IRIS[:30].copy()
    X[0, 0] = np.nan if missing else X[0, 0]
    model = fit(X, 12)
    assert not model.regular_
    assert np.isfinite(model.log_likelihood_)
    assert limits and max(limits) <= SOON
    assert PERTURBATION not in {start.source for start in model.search_.starts}


def test_a_certificate_wants_complete_rows() -> None:
    X = IRIS.copy()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="certify takes rows without missing entries"):
        fit(IRIS).certify(X)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_estimates_have_a_covariance_of_each_component(covariance_type: Any, k: int) -> None:
    """Components that share a covariance have it each, in the table of estimates and on the page."""
    X = np.concatenate([np.random.default_rng(0).normal(size=(40, 2)) + c for c in [(0, 0), (6, 0), (0, 6)][:k]])
    fitted = mj.GaussianMixture(k, covariance_type=covariance_type, random_state=0).fit(X)
    matrices = {
        "full": lambda own: own,
        "tied": lambda own: [own] * k,
        "diag": lambda own: [np.diag(one) for one in own],
        "spherical": lambda own: [one * np.eye(2) for one in own],
    }[covariance_type](fitted.covariances_)
    table = fitted.estimates(X)
    rows = table[table.parameter == "covariances"]
    of_entry = {"x1, x1": (0, 0), "x1, x2": (0, 1), "x2, x1": (1, 0), "x2, x2": (1, 1), "x1": (0, 0), "x2": (1, 1)}
    for entry, component, estimate in zip(rows.entry, rows.component, rows.estimate, strict=True):
        assert estimate == matrices[component - 1][of_entry.get(entry, (0, 0))]
    assert len(rows) == k * {"full": 4, "tied": 4, "diag": 2, "spherical": 1}[covariance_type]
    n_repeated = k * (covariance_type in ("full", "tied"))  # a covariance of two columns is shown once
    assert len(fitted.report(X).tables["estimates"].columns[0].values) == len(table) - n_repeated
