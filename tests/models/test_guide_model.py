"""The guide's model, as a reader would write it: one short file, and everything else comes with it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

import majorant as mj
from majorant import registry
from majorant.cli.app import app
from majorant.densities import Bernoulli, Poisson, Product
from majorant.models.mixture import MixtureEstimator
from majorant.report import Run, html_report, numbers, report
from majorant.report.measures.mixture import Mixture

PAGE = Path(__file__).resolve().parents[2] / "docs" / "writing_a_model.md"
FILE = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)[0]
P = np.array([[0.9, 0.8, 0.1, 0.2, 0.9], [0.1, 0.3, 0.9, 0.7, 0.2]])
RANDOM = np.random.default_rng(0)
Z = RANDOM.integers(0, 2, 400)
X = (RANDOM.random((400, 5)) < P[Z]).astype(float)


@pytest.fixture(scope="module")
def model_class() -> Iterator[Any]:
    names: dict[str, Any] = {"__name__": "reader"}
    exec(compile(FILE, "bernoulli.py", "exec"), names)
    yield names["BernoulliMixture"]
    for known in (registry.CARDS, registry.ESTIMATORS):
        known.pop("bernoulli-mixture", None)


@pytest.fixture(scope="module")
def fitted(model_class: Any) -> Any:
    return model_class(2, random_state=0).fit(X)


def log_likelihood(model: Any, x: NDArray[np.float64]) -> float:
    """By the definition."""
    rows = [
        np.log(model.weights_[k])
        + np.nansum(np.where(x == 1, np.log(model.probabilities_[k]), np.log1p(-model.probabilities_[k])), axis=1)
        for k in range(len(model.weights_))
    ]
    return float(np.logaddexp.reduce(rows).sum())


def test_it_is_short() -> None:
    assert len(FILE.splitlines()) <= 80


def test_it_fits(fitted: Any) -> None:
    assert fitted.log_likelihood_ == pytest.approx(log_likelihood(fitted, X), rel=1e-12)
    assert fitted.score(X) * len(X) == pytest.approx(fitted.log_likelihood_, rel=1e-12)
    right = np.mean(fitted.predict(X) == Z)
    assert max(right, 1 - right) > 0.93 and fitted.converged_ and fitted.regular_
    assert fitted.n_parameters_ == 11 and fitted.weights_[0] >= fitted.weights_[1]
    assert sum(s.source != "perturbation" for s in fitted.search_.starts) >= 3
    assert (np.diff(fitted.trace_["objective"]) <= 1e-9 * abs(fitted.log_likelihood_)).all()


def test_one_component_is_the_closed_form(model_class: Any) -> None:
    one = model_class(1).fit(X)
    np.testing.assert_allclose(one.probabilities_[0], X.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_weights_are_repeats_and_rows_have_no_order(model_class: Any, n_components: int) -> None:
    w = RANDOM.integers(0, 4, len(X))
    weighted = model_class(n_components, random_state=0).fit(X, sample_weight=w)
    repeated = model_class(n_components, random_state=0).fit(RANDOM.permutation(np.repeat(X, w, axis=0)))
    np.testing.assert_array_equal(weighted.probabilities_, repeated.probabilities_)
    assert weighted.log_likelihood_ == repeated.log_likelihood_ and weighted.n_rows_ == w.sum()


def test_threads_do_not_matter(model_class: Any, fitted: Any) -> None:
    np.testing.assert_array_equal(model_class(2, random_state=0, n_jobs=2).fit(X).probabilities_, fitted.probabilities_)


def test_missing_cells_are_left_out(model_class: Any) -> None:
    x = np.where(RANDOM.random(X.shape) < 0.2, np.nan, X)
    model = model_class(2, random_state=0).fit(x)
    there = ~np.isnan(x)
    by_hand = 0.0
    for row, seen in zip(x, there, strict=True):
        p = model.probabilities_[:, seen]
        by_hand += float(np.log(model.weights_ @ np.where(row[seen] == 1, p, 1 - p).prod(axis=1)))
    assert model.log_likelihood_ == pytest.approx(by_hand, rel=1e-10)


def test_standard_errors_are_those_of_the_information(model_class: Any, fitted: Any) -> None:
    one = model_class(1).fit(X)
    p = X.mean(axis=0)
    np.testing.assert_allclose(one.standard_errors(X)["probabilities"][0], np.sqrt(p * (1 - p) / len(X)), rtol=1e-5)
    errors = fitted.standard_errors(X)
    low, high = fitted.confidence_intervals(X)["probabilities"]
    assert (
        (errors["weights"] > 0).all() and (low < fitted.probabilities_).all() and (fitted.probabilities_ < high).all()
    )
    assert (low > 0).all() and (high < 1).all()


def test_groups_gating_and_known_components(model_class: Any) -> None:
    groups = np.arange(len(X)) // 2
    grouped = model_class(2, random_state=0).fit(X, groups=groups)
    labels = grouped.predict(X, groups=groups)
    assert (labels[::2] == labels[1::2]).all()
    gate = Z + RANDOM.normal(scale=0.5, size=len(X))
    gated = model_class(2, random_state=0).fit(X, gating=gate)
    assert abs(gated.gating_coef_[0, 1] - gated.gating_coef_[1, 1]) > 1
    known = model_class(2, random_state=0).fit(X, component_labels=np.where(np.arange(len(X)) < 50, Z, -1))
    assert np.isfinite(known.log_likelihood_)
    with pytest.raises(ValueError, match="give gating"):
        gated.predict(X)


def test_bounds_and_temperature(model_class: Any, fitted: Any) -> None:
    tempered = model_class(2, random_state=0, bounds=mj.Tempered(eta=0.1)).fit(X)
    assert tempered.log_likelihood_ == pytest.approx(fitted.log_likelihood_, abs=0.05)
    hard = model_class(2, random_state=0, beta=np.inf).fit(X)
    assert hard.log_likelihood_ < fitted.log_likelihood_
    with pytest.raises(TypeError, match="only the tightest bound"):
        model_class(2, bounds=mj.Tempered(eta=0.1)).fit(X, groups=np.arange(len(X)) // 2)


def test_selection_takes_two_components(model_class: Any) -> None:
    assert mj.select(model_class(random_state=0), X, n_components=[1, 2, 3]).best.size == 2


def test_it_is_sampled_from(fitted: Any) -> None:
    drawn, components = fitted.sample(4000)
    for k in range(2):
        np.testing.assert_allclose(drawn[components == k].mean(axis=0), fitted.probabilities_[k], atol=0.05)


def test_it_is_saved(fitted: Any, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m.majorant")
    np.testing.assert_array_equal(mj.load(tmp_path / "m.majorant").predict_proba(X), fitted.predict_proba(X))


def test_it_is_fitted_to_a_stream(fitted: Any, model_class: Any, tmp_path: Path) -> None:
    pl.DataFrame(X, schema=list("abcde")).write_parquet(tmp_path / "x.parquet")
    rows = mj.open_rows(tmp_path / "x.parquet")
    streamed = model_class(2, random_state=0).fit(rows)
    assert streamed.log_likelihood_ == pytest.approx(fitted.log_likelihood_, rel=1e-8)
    frame = pl.DataFrame(X, schema=list("abcde"))
    np.testing.assert_allclose(streamed.predict_proba(rows), streamed.predict_proba(frame), rtol=1e-12)


def test_the_command_line_fits_it_and_writes_a_report(model_class: Any, tmp_path: Path) -> None:
    pl.DataFrame(X, schema=list("abcde")).write_csv(tmp_path / "x.csv")
    done = CliRunner().invoke(
        app, ["fit", "bernoulli-mixture", str(tmp_path / "x.csv"), "--k", "1:3", "--out", str(tmp_path / "run")]
    )
    assert done.exit_code == 0, done.output
    assert "Bernoulli mixture, 2 components" in done.output and "BIC prefers 2 components" in done.output
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Bernoulli mixture" in page and "nan" not in re.sub(r"<[^>]*>", "", page).lower().split()


def test_other_values_are_refused_in_words(model_class: Any) -> None:
    with pytest.raises(ValueError, match="row 1, column 0 of X is 2; BernoulliMixture takes zeros and ones"):
        model_class(1).fit(np.array([[0.0], [2.0]]))
    x = np.zeros((40_000, 2))
    x[::3], x[39_998, 1] = 1.0, 0.5
    frame = pl.DataFrame(x, schema=["yes", "no"])
    fitted = model_class(1).fit(frame[:10])
    with pytest.raises(ValueError, match=r"row 39998, column 'no' of X is 0.5"):
        fitted.predict(frame)


@pytest.mark.parametrize("sampled", [1 << 24, 800])
def test_rows_of_a_stream_are_refused_by_their_number(
    model_class: Any, sampled: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.zeros((40_000, 2))
    x[::3], x[39_998, 1] = 1.0, 0.5
    monkeypatch.setattr("majorant.data.rows.SAMPLE_BYTES", sampled)
    with pytest.raises(ValueError, match=r"row 39998, column 1 of X is 0.5"):
        model_class(1, random_state=0).fit(mj.open_rows(lambda: np.array_split(x, 7)))


@pytest.mark.parametrize("parameters", [{"n_components": 0}, {"tol": -1}, {"effort": "huge"}, {"beta": 0.0}])
def test_bad_parameters_are_refused(model_class: Any, parameters: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError), match=next(iter(parameters))):
        model_class(**parameters).fit(X)


def test_columns_without_an_entry_are_named(model_class: Any) -> None:
    x = np.column_stack([X, np.full(len(X), np.nan)])
    with pytest.raises(ValueError, match="column 5 of X has no entry in any row with weight"):
        model_class(2).fit(x)
    x[0, 5] = 1
    with pytest.raises(ValueError, match="column 5 of X has no entry in any row with weight"):
        model_class(2).fit(x, sample_weight=np.arange(len(X)))


def test_rows_of_one_group_have_one_weight(model_class: Any) -> None:
    with pytest.raises(ValueError, match="rows 0 and 1 are of one group, but have weights 1 and 2"):
        model_class(2).fit(X, groups=np.arange(len(X)) // 2, sample_weight=np.arange(len(X)) + 1)


def test_a_probability_at_its_edge_has_no_standard_error(model_class: Any) -> None:
    x = np.column_stack([X, np.ones(len(X))])
    errors = model_class(1).fit(x).standard_errors(x)["probabilities"][0]
    assert np.isnan(errors[5]) and (errors[:5] > 0).all()


@pytest.mark.parametrize("more", [(), ("gating",), ("component_labels",), ("gating", "component_labels")], ids=str)
def test_groups_are_whole_where_rows_fill_several_blocks(model_class: Any, more: tuple[str, ...]) -> None:
    """The log-likelihood of groups by its definition, on more distinct rows than a block holds."""
    random = np.random.default_rng(3)
    g, n = 6000, 18_000
    z = np.repeat(random.integers(0, 2, g), 3)
    x = (random.random((n, 5)) < P[z]).astype(float)
    x[random.random(x.shape) < 0.15] = np.nan
    gate = np.repeat(random.normal(size=g), 3) + z
    labels = np.where(np.repeat(random.random(g) < 0.1, 3), z, -1)
    known = {"gating": gate, "component_labels": labels}
    groups = np.repeat(np.arange(g), 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a few steps show what the sum is
        model = model_class(2, random_state=0, effort="fast", max_iter=10).fit(
            x, groups=groups, **{name: known[name] for name in more}
        )
    cells = np.where(np.nan_to_num(x)[None] == 1, np.log(model.probabilities_[:, None]), 0.0)
    cells += np.where(x[None] == 0, np.log1p(-model.probabilities_[:, None]), 0.0)
    joint = cells.sum(axis=2).reshape(2, g, 3).sum(axis=2)
    if "gating" in more:
        table = np.column_stack([np.ones(g), (gate[::3] - model.gating_center_) / model.gating_scale_])
        logits = model.gating_coef_ @ table.T
        joint += logits - np.logaddexp.reduce(logits, axis=0)
    else:
        joint += np.log(model.weights_)[:, None]
    if "component_labels" in more:
        mine = labels[::3]
        joint = np.where((mine >= 0) & (np.arange(2)[:, None] != mine), -np.inf, joint)
    assert model.log_likelihood_ == pytest.approx(float(np.logaddexp.reduce(joint, axis=0).sum()), rel=1e-10)
    keywords = {"gating": gate} if "gating" in more else {}
    q = model.predict_proba(x, groups=groups, **keywords).reshape(g, 3, 2)
    np.testing.assert_array_equal(q[:, 0], q[:, 1])
    np.testing.assert_array_equal(q[:, 0], q[:, 2])


@pytest.mark.parametrize("weighted", [False, True])
def test_criteria_are_of_the_units_of_the_fit(model_class: Any, weighted: bool) -> None:
    """Of groups the likelihood is theirs; rows are counted, as in mixtures of regressions."""
    groups = np.arange(len(X)) // 2
    w = np.repeat(RANDOM.integers(1, 4, len(X) // 2), 2) if weighted else None
    n = len(X) if w is None else w.sum()
    labels = np.where(groups % 5 == 0, 0, -1)
    for keywords in ({"groups": groups}, {"component_labels": labels}, {"groups": groups, "component_labels": labels}):
        model = model_class(2, random_state=0).fit(X, sample_weight=w, **keywords)
        aic, bic = model.aic(X, w, **keywords), model.bic(X, w, **keywords)
        assert aic == pytest.approx(-2 * model.log_likelihood_ + 2 * model.n_parameters_, rel=1e-10)
        assert bic == pytest.approx(-2 * model.log_likelihood_ + np.log(n) * model.n_parameters_, rel=1e-10)
        assert model.icl(X, w, **keywords) >= bic
    chosen = mj.select(model_class(random_state=0), X, n_components=[1, 2], fit_params={"groups": groups})
    for candidate in chosen.candidates:
        p = model_class(candidate.size).fit(X, groups=groups).n_parameters_
        assert candidate.value == pytest.approx(-2 * candidate.objective + np.log(len(X)) * p, rel=1e-10)


def test_groups_of_one_row_have_the_criteria_of_rows(model_class: Any, fitted: Any) -> None:
    grouped = model_class(2, random_state=0).fit(X, groups=np.arange(len(X)))
    for name in ("aic", "bic", "icl"):
        of_groups = getattr(grouped, name)(X, groups=np.arange(len(X)))
        assert of_groups == pytest.approx(getattr(fitted, name)(X), rel=1e-7)
    with pytest.raises(ValueError, match="give groups"):
        grouped.bic(X)


@pytest.mark.parametrize("names", [["groups"], ["gating"], ["groups", "gating"]])
def test_the_report_is_of_the_units_of_the_fit(model_class: Any, names: list[str]) -> None:
    groups = np.arange(len(X)) // 2
    all_given = {"groups": groups, "gating": np.sin(groups)[:, None]}
    given = {name: all_given[name] for name in names}
    model = model_class(2, random_state=0).fit(X, **given)
    run = Run(model, X, tuple("abcde"), "t.csv", "", given=given)
    page = html_report(run)
    assert numbers.fixed(model.bic(X, **given), 2) in page
    measured = Mixture(run, registry.card_of(model))
    np.testing.assert_array_equal(measured.responsibilities, model.predict_proba(X, **given))
    assert measured.criteria == {name: getattr(model, name)(X, **given) for name in ("bic", "aic", "icl")}


def test_the_report_has_a_table_of_estimates_and_intervals(model_class: Any) -> None:
    x = X.copy()
    x[:, 4] = 0.0  # its probabilities lie at an edge
    model = model_class(2, random_state=0).fit(x)
    made = report(Run(model, x, tuple("abcde"), "t.csv", ""))
    rows = [line.split(",") for line in made.tables["estimates"].to_csv().splitlines()[1:]]
    low, high = model.confidence_intervals(x)["probabilities"]
    shown = {(row[0], row[1]): [float(cell or "nan") for cell in row[2:]] for row in rows}
    for k, letter in [(0, "a"), (1, "b")]:
        j = "abcde".index(letter)
        expected = [model.probabilities_[k, j], low[k, j], high[k, j]]
        assert shown[f"probability of {letter}", str(k + 1)] == expected
        assert shown["Weight", str(k + 1)][0] == model.weights_[k]
    assert np.isnan(low[:, 4]).all() and np.isnan(shown["probability of e", "1"][1:]).all()
    page = made.html.partition('id="estimates"')[2].partition("<textarea")[0]
    assert "<i>d</i>" in page and "<i>e</i>" not in page  # constant: it tells components apart in no way


@pytest.mark.parametrize(("wrong", "said"), [(-2, "got -2"), (5, "got 5")])
def test_labels_out_of_range_are_told(model_class: Any, wrong: int, said: str) -> None:
    labels = np.zeros(len(X), dtype=int)
    labels[3] = wrong
    with pytest.raises(ValueError, match=said):
        model_class(2).fit(X, component_labels=labels)


def test_a_density_of_several_columns_is_fitted_to_a_stream(tmp_path: Path) -> None:
    class Mixed(MixtureEstimator):
        def _columns(self, X: Any, *, fitting: bool) -> tuple[Any, ...]:
            return X[:, :3], X[:, 3:]

        def _density(self) -> Any:
            return Product([("answers", Bernoulli(3)), ("counts", Poisson(2))])

    table = np.column_stack([X[:, :3], RANDOM.poisson(3 + 4 * Z[:, None], (len(X), 2))])
    pl.DataFrame(table, schema=list("abcde")).write_parquet(tmp_path / "x.parquet")
    memory = Mixed(2, random_state=0).fit(table)
    rows = mj.open_rows(tmp_path / "x.parquet")
    streamed = Mixed(2, random_state=0).fit(rows)
    assert streamed.log_likelihood_ == pytest.approx(memory.log_likelihood_, rel=1e-8)
    assert streamed.bic(rows) == pytest.approx(memory.bic(table), rel=1e-8)
