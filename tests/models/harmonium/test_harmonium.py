"""Harmoniums as their users meet them: views in any form, missing views, certificates, inference, wrong input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.decomposition import FactorAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import majorant as mj
from majorant.data.chunks import Chunks
from majorant.models.harmonium import pseudo_likelihood

from ...estimators import numbers
from .problems import log_joint

Array = NDArray[np.float64]

VIEWS = {"bits": mj.Bernoulli(), "sizes": mj.Gaussian(), "kind": mj.Categorical()}


def three_views(n: int = 150, seed: int = 0) -> tuple[dict[str, Any], NDArray[np.intp]]:
    """Bits, measurements and a category that two hidden numbers drive, and a label that they tell."""
    random = np.random.default_rng(seed)
    h = random.normal(size=(n, 2))
    bits = (random.random((n, 8)) < expit(2 * h @ random.normal(size=(2, 8)))).astype(float)
    sizes = 3 + 2 * (h @ random.normal(size=(2, 4)) + 0.7 * random.normal(size=(n, 4)))
    kind = np.array(["low", "middle", "high"])[np.digitize(h[:, 0] + 0.3 * random.normal(size=n), [-0.5, 0.5])]
    y = np.digitize(h[:, 1] + 0.2 * random.normal(size=n), [-0.4, 0.4])
    return {"bits": bits, "sizes": sizes, "kind": kind[:, None]}, y


def two_views(n: int = 150, seed: int = 0) -> tuple[dict[str, Any], NDArray[np.intp]]:
    X, y = three_views(n, seed)
    return {"bits": X["bits"], "sizes": X["sizes"]}, y


TWO = {"bits": mj.Bernoulli(), "sizes": mj.Gaussian()}


def same(a: Any, b: Any) -> None:
    assert numbers(a).keys() == numbers(b).keys()
    for name, value in numbers(a).items():
        np.testing.assert_array_equal(getattr(b, name), value, err_msg=name)


# The optimum


@pytest.fixture(scope="module")
def fitted() -> mj.Harmonium:
    return mj.Harmonium(6, views=VIEWS, l2=0.3).fit(three_views()[0])


def test_every_start_reaches_the_same_objective(fitted: mj.Harmonium) -> None:
    X, _ = three_views()
    model = mj.Harmonium(6, views=VIEWS, l2=0.3, init="random", n_init=5, random_state=1).fit(X)
    assert model.search_.n_starts == 5
    found = [start.objective for start in model.search_.starts]
    np.testing.assert_allclose(found, fitted.objective_, rtol=1e-6)
    np.testing.assert_allclose(
        model.components_.T @ model.components_, fitted.components_.T @ fitted.components_, atol=2e-3
    )


def test_the_certificate_holds_where_components_suffice_and_grows_to_it(fitted: mj.Harmonium) -> None:
    X, _ = three_views()
    assert fitted.certificate_.is_global and not fitted.certificate_.binds
    assert "global optimum" in fitted.certificate_.sentence
    assert fitted.rank_ < 6
    few = mj.Harmonium(1, views=VIEWS, l2=0.3).fit(X)
    assert few.objective_ > fitted.objective_ + 1e-3
    assert not few.certificate_.is_global and few.certificate_.binds
    assert "One component more than n_components=1 would be used" in few.certificate_.sentence
    assert few.search_.proved_bound is None
    grown = mj.Harmonium(1, views=VIEWS, l2=0.3, grow=True).fit(X)
    assert grown.certificate_.is_global and grown.rank_ == fitted.rank_
    assert grown.objective_ == pytest.approx(fitted.objective_, rel=1e-6)


def test_the_bound_lies_below_every_harmonium(fitted: mj.Harmonium) -> None:
    X, _ = three_views()
    certificate = fitted.certify(X)
    assert certificate.bound <= fitted.objective_
    assert certificate.bound == pytest.approx(fitted.search_.proved_bound, abs=1e-9)
    assert certificate.objective == pytest.approx(fitted.objective_, abs=1e-12)
    assert certificate.difference < 0.05 and certificate.unit == "log units"
    few = mj.Harmonium(1, views=VIEWS, l2=0.3).fit(X).certify(X)
    assert few.bound <= fitted.objective_ and few.bound < certificate.bound


def test_the_objective_never_rises(fitted: mj.Harmonium) -> None:
    values = np.asarray(fitted.trace_["objective"])
    assert (np.diff(values) <= 0).all() and len(values) == fitted.n_iter_ + 1


def test_the_largest_penalty_is_the_least_that_leaves_nothing() -> None:
    X, _ = two_views()
    edge = mj.Harmonium(3, views=TWO, l2=1.0).fit(X).largest_l2_
    assert mj.Harmonium(3, views=TWO, l2=1.02 * edge).fit(X).rank_ == 0
    assert mj.Harmonium(3, views=TWO, l2=0.9 * edge).fit(X).rank_ >= 1


def test_the_penalty_is_chosen_by_hold_out() -> None:
    X, _ = three_views()
    model = mj.Harmonium(6, views=VIEWS).fit(X)
    tried, scores = model.l2_path_.T
    assert model.l2_ == tried[scores.argmin()] and len(tried) >= 3
    np.testing.assert_allclose(tried, model.largest_l2_ * 0.5 ** np.arange(len(tried)))


def test_gaussian_views_alone_are_factor_analysis() -> None:
    random = np.random.default_rng(0)
    h = random.normal(size=(400, 2))
    a, b = (
        h @ random.normal(size=(2, 4)) + random.normal(size=(400, 4)),
        h @ random.normal(size=(2, 3)) + random.normal(size=(400, 3)),
    )
    views = {"a": mj.Gaussian(whiten=False), "b": mj.Gaussian(whiten=False)}
    model = mj.Harmonium(2, views=views, l2=1e-7, tol=1e-13, max_iter=5000).fit({"a": a, "b": b})
    tables = model._read({"a": a, "b": b}, reset=False)[1]
    z = np.hstack([view.encoded(tables[view.name]) for view in model.views_])
    peer = FactorAnalysis(2, tol=1e-9, max_iter=10000, svd_method="lapack").fit(z)
    assert model.score({"a": a, "b": b}) == pytest.approx(peer.score(z), abs=2e-5)
    np.testing.assert_allclose(model.noise_variance_, peer.noise_variance_, atol=5e-3)


# The same data in other forms


def test_a_dictionary_column_groups_and_sparse_tables_are_the_same() -> None:
    X, _ = two_views()
    expected = mj.Harmonium(3, views=TWO, l2=0.5).fit(X)
    sparse_bits = {"bits": sparse.csr_matrix(X["bits"]), "sizes": X["sizes"]}
    same(mj.Harmonium(3, views=TWO, l2=0.5).fit(sparse_bits), expected)
    table = np.hstack([X["bits"], X["sizes"]])
    groups = {"bits": mj.Bernoulli(slice(0, 8)), "sizes": mj.Gaussian([8, 9, 10, 11])}
    for form in (table, sparse.csr_matrix(table), table[:, ::-1].copy()[:, ::-1]):
        model = mj.Harmonium(3, views=groups, l2=0.5).fit(form)
        same(model, expected)
        np.testing.assert_array_equal(model.transform(form), expected.transform(X))
    names = [f"b{i}" for i in range(8)] + [f"s{i}" for i in range(4)]
    named = {"bits": mj.Bernoulli(names[:8]), "sizes": mj.Gaussian(names[8:])}
    for frame in (pd.DataFrame(table, columns=names), pl.DataFrame(table, schema=names)):
        same(mj.Harmonium(3, views=named, l2=0.5).fit(frame), expected)
    kinds = {"bits": "bernoulli", "sizes": "Gaussian"}
    same(mj.Harmonium(3, views=kinds, l2=0.5).fit(X), expected)


def test_a_frame_with_texts_is_three_views() -> None:
    X, _ = three_views()
    frame = pd.DataFrame(np.hstack([X["bits"], X["sizes"]]), columns=[f"c{i}" for i in range(12)])
    frame["kind"] = X["kind"][:, 0]
    views = {
        "bits": mj.Bernoulli(slice(0, 8)),
        "sizes": mj.Gaussian([f"c{i}" for i in range(8, 12)]),
        "kind": mj.Categorical("kind"),
    }
    model = mj.Harmonium(3, views=views, l2=0.5).fit(frame)
    same(model, mj.Harmonium(3, views=VIEWS, l2=0.5).fit(X))
    assert model.annotate(frame, "kind").shape == (150, 3)


@pytest.mark.parametrize("loss", [None, "hinge", "log", "squared"])
def test_weights_are_repeats_and_the_order_of_rows_does_not_matter(loss: str | None, seed: int) -> None:
    X, y = three_views(40)
    random = np.random.default_rng(seed)
    weights = random.integers(0, 4, 40)
    again = random.permutation(np.repeat(np.arange(40), weights))
    model: Any = mj.Harmonium(2, views=VIEWS, l2=0.5)
    if loss in ("hinge", "log"):
        model = mj.HarmoniumClassifier(2, views=VIEWS, l2=0.5, loss=loss)
    elif loss:
        model = mj.HarmoniumRegressor(2, views=VIEWS, l2=0.5, loss=loss)
    weighted = model.fit(X, y, sample_weight=weights)
    expected = {name: value for name, value in numbers(weighted).items() if name not in ("n_samples_", "_sklearn")}
    repeated = model.fit({name: values[again] for name, values in X.items()}, y[again])
    for name, value in expected.items():
        np.testing.assert_array_equal(getattr(repeated, name), value, err_msg=name)


def test_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = two_views(3000)
    monkeypatch.setattr(pseudo_likelihood, "BLOCK_BYTES", 8 * 12 * 400)  # of twelve variables
    blocks: list[int] = []
    map_sum = Chunks.map_sum

    def counted(chunks: Chunks, *given: Any) -> Any:
        blocks.append(chunks.source.n_blocks)
        return map_sum(chunks, *given)

    monkeypatch.setattr(Chunks, "map_sum", counted)
    found = []
    for n_jobs, limit in ((1, 1), (2, 1), (2, 2)):
        with threadpool_limits(limits=limit, user_api="blas"):
            model = mj.HarmoniumClassifier(3, views=TWO, l2=2.0, max_iter=15, n_jobs=n_jobs)
            with pytest.warns(ConvergenceWarning, match="max_iter=15"):
                found.append(model.fit(X, y))
            latents = found[-1].transform(X)
            np.testing.assert_array_equal(latents, found[0].transform(X))
    same(found[0], found[1])
    same(found[0], found[2])
    assert max(blocks) == 8


# Inference


def test_labels_have_their_probabilities_by_enumeration() -> None:
    X, y = three_views(80)
    model = mj.HarmoniumClassifier(3, views=VIEWS, loss="log", loss_weight=20, l2=0.5).fit(X, y)
    inner = model._fitted()
    tables = model._read(X, reset=False)[1]
    encoded = [view.encoded(tables[view.name]) for view in model.views_]
    rows = np.hstack([encoded[1], encoded[0].toarray(), encoded[2].toarray()])[:20]
    logs = [
        [log_joint(inner.parameters, inner.centre, np.append(row, np.eye(3)[label])) for label in range(3)]
        for row in rows
    ]
    np.testing.assert_allclose(model.predict_proba(X)[:20], softmax(np.array(logs), axis=1), rtol=1e-10)
    assert model.score(X, y) > 0.7


def test_a_missing_gaussian_view_is_integrated_out_exactly(fitted: mj.Harmonium) -> None:
    """Against averages of the latents over many values of the view, drawn given all else."""
    X, _ = three_views()
    inner = fitted._fitted()
    part = {name: X[name][:3] for name in ("bits", "kind")}
    found = fitted.transform(part)
    at = inner.parameters
    g = len(at.variance)
    u = at.weights[:g]
    tables = fitted._read(part, reset=False)[1]
    encoded = {view.name: view for view in fitted.views_}
    discrete = np.hstack([encoded[name].encoded(tables[name]).toarray() for name in ("bits", "kind")])
    c = (discrete - inner.centre[g:]) @ at.weights[g:]
    covariance = np.linalg.inv(np.diag(1 / at.variance) - u @ u.T)
    mean = (at.intercept[:g] + c @ u.T) @ covariance
    np.testing.assert_allclose(found, c + mean @ u, rtol=1e-9)
    restored = encoded["sizes"].restored(mean)
    np.testing.assert_allclose(fitted.annotate(part, "sizes"), restored, rtol=1e-9)
    with_nan = {name: values[:3].copy() for name, values in X.items()}
    with_nan["sizes"][1] = np.nan
    both = fitted.transform(with_nan)
    np.testing.assert_allclose(both[1], found[1], rtol=1e-12)
    np.testing.assert_allclose(both[[0, 2]], fitted.transform(X)[[0, 2]], rtol=1e-12)


def test_missing_bits_by_mean_field_and_by_gibbs_are_near_their_enumeration(fitted: mj.Harmonium) -> None:
    X, _ = three_views()
    inner = fitted._fitted()
    part = {name: X[name][:4] for name in ("sizes", "kind")}
    tables = fitted._read(part, reset=False)[1]
    views = {view.name: view for view in fitted.views_}
    z, c = views["sizes"].encoded(tables["sizes"]), views["kind"].encoded(tables["kind"]).toarray()
    states = np.array(list(product([0.0, 1.0], repeat=8)))
    logs = [[log_joint(inner.parameters, inner.centre, np.r_[z[d], s, c[d]]) for s in states] for d in range(4)]
    exact = softmax(np.array(logs), axis=1) @ states
    np.testing.assert_allclose(fitted.annotate(X, "bits")[:4], exact, atol=0.06)
    gibbs = fitted.annotate(part, "bits", method="gibbs", n_sweeps=4000, random_state=0)
    np.testing.assert_allclose(gibbs, exact, atol=0.03)
    np.testing.assert_array_equal(gibbs, fitted.annotate(part, "bits", method="gibbs", n_sweeps=4000, random_state=0))


def test_a_calibrated_readout_is_logistic_regression_on_the_latents() -> None:
    X, _ = two_views()
    model = mj.Harmonium(3, views=TWO, l2=0.5).fit(X)
    with pytest.raises(ValueError, match="call calibrate"):
        model.annotate(X, "bits", calibrated=True)
    p = model.calibrate(X, l2=1 / len(X["bits"])).annotate(X, "bits", calibrated=True)
    h = model.transform({"sizes": X["sizes"]})
    h = (h - h.mean(axis=0)) / h.std(axis=0)
    for j in (0, 5):
        peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(h, X["bits"][:, j])
        np.testing.assert_allclose(p[:, j], peer.predict_proba(h)[:, 1], atol=1e-4)
    np.testing.assert_allclose(p.mean(axis=0), X["bits"].mean(axis=0), atol=1e-5)
    assert model.readout_l2_ == {"bits": 1 / len(X["bits"])}
    assert not hasattr(model.fit(X), "readouts_") and not hasattr(model, "readout_l2_")


def test_rows_that_lack_the_bits_teach_a_readout_nothing(fitted: mj.Harmonium) -> None:
    X, _ = three_views()
    there = np.arange(150) % 3 > 0
    lacking = {**X, "bits": with_cells(X["bits"], ~there, np.nan)}
    expected = fitted.calibrate({name: values[there] for name, values in X.items()}).annotate(
        X, "bits", calibrated=True
    )
    found = fitted.calibrate(lacking).annotate(X, "bits", calibrated=True)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    weighted = fitted.calibrate(X, sample_weight=there).annotate(X, "bits", calibrated=True)
    np.testing.assert_allclose(weighted, expected, rtol=1e-6)


def test_what_cannot_be_calibrated(fitted: mj.Harmonium) -> None:
    X, _ = three_views()
    nothing = {**X, "bits": np.full((150, 8), np.nan)}
    there = np.arange(150) < 75
    for form, weights, message in (
        ({"bits": X["bits"]}, None, "only the view 'bits'"),
        ({"sizes": X["sizes"], "kind": X["kind"]}, None, "no view of bits"),
        (nothing, None, "no row with weight has view 'bits'"),
        ({**X, "bits": with_cells(X["bits"], there, np.nan)}, there, "no row with weight has view 'bits'"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted.calibrate(form, sample_weight=weights)
    with pytest.raises(ValueError, match="one view"):
        mj.Harmonium(2).fit(SIZES).calibrate(SIZES)


FORMS_WITHOUT_BITS: dict[str, Callable[[Array, Array], Any]] = {
    "lacking in a dictionary": lambda bits, sizes: {"sizes": sizes},
    "a dictionary of anything": lambda bits, sizes: {"sizes": sizes, "bits": "junk"},
    "a mapping": lambda bits, sizes: MappingProxyType({"sizes": sizes, "bits": 7 * bits[:3]}),
    "lacking in a mapping": lambda bits, sizes: MappingProxyType({"sizes": sizes}),
    "NaN in a table": lambda bits, sizes: np.hstack([np.full_like(bits, np.nan), sizes]),
    "a table of anything": lambda bits, sizes: np.hstack([np.where(bits > 0, np.nan, 7.0), sizes]),
    "a sparse table of anything": lambda bits, sizes: sparse.csr_matrix(np.hstack([7 * bits, sizes])),
    "lacking in a pandas frame": lambda bits, sizes: pd.DataFrame(sizes, columns=NAMES[8:]),
    "lacking in part of a frame": lambda bits, sizes: pd.DataFrame(np.hstack([bits[:, 3:], sizes]), columns=NAMES[3:]),
    "lacking in a polars frame": lambda bits, sizes: pl.DataFrame(sizes, schema=NAMES[8:]),
    "text in a frame": lambda bits, sizes: pd.DataFrame(sizes, columns=NAMES[8:]).assign(
        **dict.fromkeys(NAMES[:8], "?")
    )[NAMES],
}
NAMES = [f"b{i}" for i in range(8)] + [f"s{i}" for i in range(4)]


@pytest.mark.parametrize("form", FORMS_WITHOUT_BITS)
def test_the_view_that_is_asked_for_may_be_absent_or_hold_anything(form: str) -> None:
    bits, sizes = two_views(60)[0].values()
    X = FORMS_WITHOUT_BITS[form](bits, sizes)
    columns = {"bits": mj.Bernoulli(slice(0, 8)), "sizes": mj.Gaussian(slice(8, 12))}
    whole: Any = {"bits": bits, "sizes": sizes}
    if not isinstance(X, Mapping):
        whole = np.hstack([bits, sizes])
        whole = pd.DataFrame(whole, columns=NAMES) if hasattr(X, "columns") else whole
    model = mj.Harmonium(2, views=TWO if isinstance(X, Mapping) else columns, l2=0.5).fit(whole)
    for method in ("mean-field", "gibbs"):
        given: Any = {"method": method, "n_sweeps": 5, "random_state": 0}
        np.testing.assert_array_equal(model.annotate(X, "bits", **given), model.annotate(whole, "bits", **given))


def test_columns_of_other_views_must_be_there() -> None:
    bits, sizes = two_views(60)[0].values()
    frame = pd.DataFrame(np.hstack([bits, sizes]), columns=NAMES)
    model = mj.Harmonium(2, views={"bits": mj.Bernoulli(NAMES[:8]), "sizes": mj.Gaussian(NAMES[8:])}, l2=0.5).fit(frame)
    for wrong in (frame[["s0", "s1"]], frame[NAMES[8:]].assign(other=1.0), frame[NAMES[:8]]):
        with pytest.raises(ValueError, match="feature names"):
            model.annotate(wrong, "bits")


def test_samples_look_like_the_rows(fitted: mj.Harmonium) -> None:
    X, _ = three_views()
    drawn = fitted.sample(3000, n_sweeps=60, random_state=0)
    np.testing.assert_allclose(drawn["bits"].toarray().mean(axis=0), X["bits"].mean(axis=0), atol=0.08)
    np.testing.assert_allclose(drawn["sizes"].mean(axis=0), X["sizes"].mean(axis=0), atol=0.3)
    assert set(drawn["kind"].ravel()) == {"low", "middle", "high"}
    assert fitted.transform(drawn).shape == (3000, fitted.n_components_)


def test_rows_that_lack_a_view_take_part_in_the_fit() -> None:
    X, y = two_views(80)
    lacking = {"bits": X["bits"], "sizes": X["sizes"].copy()}
    lacking["sizes"][::4] = np.nan
    model = mj.HarmoniumClassifier(3, views=TWO, l2=0.5).fit(lacking, y)
    assert model.certificate_.eigenvalue is None and "lack a Gaussian view" in model.certificate_.sentence
    assert (np.diff(np.asarray(model.trace_["objective"])) <= 0).all()
    assert model.score(lacking, y) > 0.7
    starts = [
        mj.Harmonium(3, views=TWO, l2=0.5, init=init, random_state=3).fit(lacking).objective_
        for init in ("svd", "random")
    ]
    assert starts[0] == pytest.approx(starts[1], rel=1e-6)
    with pytest.raises(ValueError, match="lack a Gaussian view"):
        model.certify(lacking, y)


def test_components_are_uncorrelated_and_sorted(fitted: mj.Harmonium) -> None:
    covariance = np.cov(fitted.transform(three_views()[0]).T)
    assert (np.diff(np.diag(covariance)) <= 0).all()
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-8)


def correlated(n: int) -> dict[str, Array]:
    random = np.random.default_rng(0)
    shared = random.normal(size=(n, 1))
    return {"a": shared + 0.5 * random.normal(size=(n, 5)), "b": random.normal(size=(n, 3))}


def whitened(X: dict[str, Array], sample_weight: Any = None) -> tuple[Array, Array]:
    """The first view's map from standardised rows, and its columns as the model takes them."""
    views = {"a": mj.Gaussian(), "b": mj.Gaussian()}
    model = mj.Harmonium(2, views=views, l2=5.0).fit(X, sample_weight=sample_weight)
    return model.views_[0].whitener.whitened(np.eye(5)), model.views_[0].encoded(model._read(X, reset=False)[1]["a"])


def test_whitening_does_not_depend_on_how_weights_are_given() -> None:
    X = correlated(200)
    counts = np.random.default_rng(1).integers(1, 40, 200)
    again = np.repeat(np.arange(200), counts)
    expected = whitened({name: values[again] for name, values in X.items()})[0]
    np.testing.assert_array_equal(whitened(X, counts)[0], expected)
    for size in (2.0**-40, 1.0 / 3, 1e6):
        np.testing.assert_allclose(whitened(X, size * counts)[0], expected, rtol=1e-12)


@pytest.mark.parametrize("times", [0, 20, 1000])
def test_a_row_that_is_repeated_does_not_switch_whitening_off(times: int) -> None:
    X = correlated(1000)
    z = whitened({name: np.vstack([values, np.repeat(values[:1], times, axis=0)]) for name, values in X.items()})[1]
    off = np.corrcoef(z.T) - np.eye(5)
    assert np.abs(off).max() < 0.05


def test_whitening_brings_a_view_to_the_identity() -> None:
    random = np.random.default_rng(0)
    a = random.normal(size=(5000, 3)) @ random.normal(size=(3, 3)) + 5
    b = random.normal(size=(5000, 2))
    model = mj.Harmonium(2, views={"a": mj.Gaussian(), "b": mj.Gaussian()}, l2=0.2).fit({"a": a, "b": b})
    table = model._read({"a": a, "b": b}, reset=False)[1]["a"]
    z = model.views_[0].encoded(table)
    np.testing.assert_allclose(np.cov(z.T), np.eye(3), atol=0.05)
    np.testing.assert_allclose(model.views_[0].restored(z), a, rtol=1e-9)
    assert mj.Harmonium(2, views=TWO, l2=0.5).fit(two_views()[0]).views_[1].whitener is None


def test_a_model_of_named_views_is_saved_and_summarised(fitted: mj.Harmonium, tmp_path: Path) -> None:
    X, _ = three_views()
    fitted.save(tmp_path / "model.majorant")
    again = mj.load(tmp_path / "model.majorant")
    assert again.get_params() == fitted.get_params()
    np.testing.assert_array_equal(again.annotate(X, "bits"), fitted.annotate(X, "bits"))
    text = str(fitted.summary())
    assert all(word in text for word in ("bits", "categorical", "kind1=high", "global optimum"))


def test_a_regression_finds_its_target(seed: int) -> None:
    random = np.random.default_rng(seed)
    h = random.normal(size=(120, 2))
    X = {"a": h @ random.normal(size=(2, 5)) + 0.3 * random.normal(size=(120, 5)), "b": h[:, :1] > 0}
    y = 50 + 10 * h[:, 1]
    views = {"a": mj.Gaussian(), "b": mj.Bernoulli()}
    for loss in ("epsilon_insensitive", "squared"):
        assert mj.HarmoniumRegressor(3, views=views, loss=loss).fit(X, y).score(X, y) > 0.8


# Wrong and odd input


def changed(**views: Any) -> dict[str, Any]:
    return {**two_views(30)[0], **views}


def with_cells(values: Any, at: Any, cell: float) -> Array:
    out = np.array(values, dtype=float)
    out[at] = cell
    return out


BITS, SIZES = two_views(30)[0].values()

WRONG: dict[str, tuple[Any, Any, str]] = {
    "a view missing for every row": (changed(sizes=np.full((30, 4), np.nan)), TWO, "'sizes' is missing .* every row"),
    "NaN in one cell": (
        changed(sizes=with_cells(SIZES, (3, 1), np.nan)),
        TWO,
        "'sizes' contains NaN in column 1 of row 3",
    ),
    "NaN in a bit": (changed(bits=with_cells(BITS, (3, 1), np.nan)), TWO, "'bits' contains NaN in column 1 of row 3"),
    "counts": (
        changed(bits=with_cells(BITS, (3, 1), 7)),
        TWO,
        "'bits' must hold zeros and ones; it has 7 .*binarize=0",
    ),
    "infinity": (changed(sizes=with_cells(SIZES, (3, 1), np.inf)), TWO, "'sizes'.*infinity"),
    "texts": (changed(sizes=np.full((30, 2), "red")), TWO, "red"),
    "other rows": (changed(sizes=SIZES[:29]), TWO, "different numbers of rows"),
    "a view that views does not name": (changed(words=BITS), TWO, "'words'.*does not name"),
    "a view that X lacks": ({"bits": BITS}, TWO, "no view 'sizes'"),
    "no views": (changed(), {}, "empty"),
    "no dictionary": (changed(), ["bits"], "dictionary"),
    "a list for a view": (changed(), {"bits": [0, 1], "sizes": "gaussian"}, "inside"),
    "a kind that is none": (changed(), {"bits": "bernouli", "sizes": "gaussian"}, "Did you mean 'bernoulli'"),
    "a negative variance": (changed(), {**TWO, "sizes": mj.Gaussian(variance=-1.0)}, "'sizes': variance"),
    "an improper variance": (changed(), {**TWO, "sizes": mj.Gaussian(variance=np.inf)}, "'sizes': variance"),
    "a negative threshold": (changed(), {**TWO, "bits": mj.Bernoulli(binarize=-1)}, "'bits': binarize"),
    "no columns named": (np.hstack([BITS, SIZES]), TWO, "does not say which columns"),
    "a column in two views": (SIZES, {"a": mj.Gaussian([0, 1]), "b": mj.Gaussian([1, 2])}, "column 1 .* 'a' and 'b'"),
    "a column too far": (SIZES, {"a": mj.Gaussian([0, 9])}, "none is number 9"),
    "a column without names": (SIZES, {"a": mj.Gaussian(["x"])}, "no column names"),
    "a name that is none": (pd.DataFrame(SIZES, columns=list("abcd")), {"a": mj.Gaussian(["bb"])}, "Did you mean"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_views_are_refused_in_words(case: str) -> None:
    X, views, message = WRONG[case]
    model = mj.Harmonium(2, views=views)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X)
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize(
    "parameters",
    [
        {"l2": 0.0},
        {"l2": "best"},
        {"n_components": 0},
        {"init": "pca"},
        {"grow": "yes"},
        {"method": "cd2"},
        {"n_folds": 0},
        {"n_folds": 6},
    ],
    ids=str,
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError), match=next(iter(parameters))):
        mj.Harmonium(**{"n_components": 2, **parameters}).fit(SIZES)


def test_wrong_losses_are_refused() -> None:
    y = np.arange(30) % 2
    for model, name in (
        (mj.HarmoniumClassifier(2, loss="logg"), "log"),
        (mj.HarmoniumClassifier(2, loss_weight=0), "loss_weight"),
        (mj.HarmoniumClassifier(2, loss_weight="big"), "loss_weight"),
        (mj.HarmoniumRegressor(2, epsilon=-1), "epsilon"),
    ):
        with pytest.raises(ValueError, match=name):
            model.fit(SIZES, y)
    with pytest.raises(AttributeError, match="predict_proba"):
        mj.HarmoniumClassifier(2).fit(SIZES, y).predict_proba(SIZES)


def test_counts_are_binarised_when_asked() -> None:
    X, _ = two_views()
    counts = X["bits"] * np.random.default_rng(0).integers(1, 5, X["bits"].shape)
    views = {**TWO, "bits": mj.Bernoulli(binarize=0)}
    for form in (counts, sparse.csr_matrix(counts), counts.astype(int)):
        model = mj.Harmonium(2, views=views, l2=0.5).fit({**X, "bits": form})
        np.testing.assert_array_equal(model.components_, mj.Harmonium(2, views=TWO, l2=0.5).fit(X).components_)


def test_constant_views_and_columns_are_told_of_and_count_for_nothing() -> None:
    X, _ = two_views()
    with pytest.warns(ConvergenceWarning, match="'bits' is constant"):
        model = mj.Harmonium(2, views=TWO, l2=0.5).fit({**X, "bits": np.ones((150, 3))})
    assert model.components_.shape[1] == 4
    np.testing.assert_array_equal(model.loadings("bits"), np.zeros((3, model.n_components_)))
    wider = {**X, "bits": np.column_stack([np.zeros(150), X["bits"], np.ones(150)])}
    model = mj.Harmonium(2, views=TWO, l2=0.5).fit(wider)
    np.testing.assert_allclose(model.components_, mj.Harmonium(2, views=TWO, l2=0.5).fit(X).components_, rtol=1e-6)
    p = model.annotate(wider, "bits")
    assert p.shape == (150, 10) and (p[:, 0] < 0.01).all() and (p[:, -1] > 0.99).all()


def test_views_wider_than_rows_all_zero_rows_and_many_components() -> None:
    random = np.random.default_rng(0)
    bits = random.random((20, 60)) < 0.1
    bits[3] = False
    X = {"bits": sparse.csr_matrix(bits), "sizes": random.normal(size=(20, 40))}
    model = mj.Harmonium(500, views=TWO, l2=2.0).fit(X)
    assert np.isfinite(model.transform(X)).all() and model.n_components_ <= 100


def test_a_label_seen_once_is_told_of() -> None:
    X, y = two_views()
    y = np.where(np.arange(150) == 7, 9, y)
    with pytest.warns(ConvergenceWarning, match="label .*9.* one row"):
        model = mj.HarmoniumClassifier(3, views=TWO, l2=0.5).fit(X, y)
    assert model.decision_function(X).shape == (150, 4)


def test_what_was_not_in_the_fit_is_refused() -> None:
    X, _ = three_views()
    model = mj.Harmonium(2, views=VIEWS, l2=0.5).fit(X)
    with pytest.raises(ValueError, match="category that the fit did not"):
        model.transform({**X, "kind": np.full((150, 1), "huge")})
    with pytest.raises(ValueError, match=r"2 features.*fitted to 4"):
        model.transform({**X, "sizes": X["sizes"][:, :2]})
    with pytest.raises(TypeError, match="dictionary of arrays"):
        model.transform(X["sizes"])
    with pytest.raises(ValueError, match="view must be one of"):
        model.annotate(X, "words")
    with pytest.raises(ValueError, match="only the view"):
        model.annotate({"bits": X["bits"]}, "bits")
    with pytest.raises(ValueError, match="no rest"):
        mj.Harmonium(2).fit(SIZES).annotate(SIZES, "x")
