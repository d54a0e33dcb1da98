"""Selection: the criterion asked of the estimator, what is left out and why, and what is said of it."""

from __future__ import annotations

import json
import math
import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.metrics import silhouette_score

import majorant as mj
from majorant import registry
from majorant._progress import Watch, watched_by
from majorant.results.selection import UNDETERMINED, Candidate, Selection
from majorant.search import StartRecord

ROWS = np.arange(10.0)[:, None]
VALUES = {(1, "a"): 30.0, (2, "a"): 21.3, (3, "a"): 20.0, (1, "b"): 40.0, (2, "b"): 25.0, (3, "b"): 22.0}


def selection(best: tuple[int, dict[str, Any]], rest: list[tuple[int, dict[str, Any]]], criterion: str) -> Selection:
    """A selection of which the first candidate is the best."""
    every = [Candidate(size, setting, float(-i)) for i, (size, setting) in enumerate([best, *rest])]
    if criterion != "silhouette":
        every = [Candidate(c.size, c.setting, -c.value) for c in every]
    return Selection(tuple(every), criterion, "model", "component", "n_components", "log-likelihood")


@pytest.mark.parametrize(
    ("best", "rest", "criterion", "said"),
    [
        (6, [1, 2, 3], "bic", "The best is the largest number of components tried: try more."),
        (3, [4, 5, 9], "bic", "The best is the smallest number of components tried: try fewer."),
        (3, [4, 5], "silhouette", "The best is the smallest number of components tried: try fewer."),
        (1, [2, 3], "bic", ""),
        (2, [3, 4], "silhouette", ""),
        (2, [1, 3], "aic", ""),
        (2, [], "bic", ""),
    ],
)
def test_a_size_at_an_end_of_those_tried_is_told(best: int, rest: list[int], criterion: str, said: str) -> None:
    found = selection((best, {}), [(size, {}) for size in rest], criterion)
    assert list(found.look_out) == ([said] if said else [])


@pytest.mark.parametrize(
    ("best", "rest", "said"),
    [
        (10.0, [0.1, 1.0], "The best has the largest reg_covar tried, 10: try larger ones."),
        (1, [10, 100], "The best has the smallest reg_covar tried, 1: try smaller ones."),
        (0, [1, 2], ""),
        (1.0, [0.1, 10.0], ""),
        ("full", ["tied"], ""),
        (True, [False], ""),
        (None, [1.0, 2.0], ""),
        (1.0, [1.0], ""),
    ],
)
def test_a_setting_at_an_end_of_those_tried_is_told(best: Any, rest: list[Any], said: str) -> None:
    found = selection((1, {"reg_covar": best}), [(1, {"reg_covar": value}) for value in rest], "bic")
    assert list(found.look_out) == ([said] if said else [])


class Told(BaseEstimator):  # type: ignore[misc]
    """A model whose criterion is looked up in a table; a negative one is that of a degenerate fit."""

    def __init__(self, size: int = 1, kind: str = "a", values: Any = None, slow: bool = False) -> None:
        self.size = size
        self.kind = kind
        self.values = values
        self.slow = slow

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Told:
        if self.kind == "unknown":
            raise ValueError("kind must be 'a' or 'b'; got 'unknown'")
        if self.size > len(X):
            raise ValueError(f"n_samples={len(X)} should be >= size={self.size}")
        warnings.warn(f"size {self.size}, kind {self.kind}", UserWarning, stacklevel=1)
        self.weight_ = len(X) if sample_weight is None else float(np.sum(sample_weight))
        self.value_ = (self.values or VALUES)[self.size, self.kind]
        self.regular_ = self.value_ >= 0
        self.converged_ = not self.slow
        self.log_likelihood_ = -self.value_ / 2
        self.n_parameters_ = 3 * self.size
        self.search_ = mj.SearchReport(
            (StartRecord("start", self.log_likelihood_, 1, True),) * 4, "log-likelihood", "max"
        )
        return self

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        weight = len(X) if sample_weight is None else float(np.sum(sample_weight))
        assert weight == self.weight_
        return float(self.value_)

    def aic(self, X: Any) -> float:
        return -float(self.value_)


CARD = registry.ModelCard(
    "told", "told mixture", "?", "mixture", "size", "component", "log-likelihood", "log-likelihood", "log_likelihood_"
)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.CARDS, "told", CARD)
    monkeypatch.setitem(registry.ESTIMATORS, "told", Told)


def chosen(values: dict[tuple[int, str], float] | None = None, **more: Any) -> Selection:
    kinds = sorted({kind for _, kind in values or VALUES})
    sizes = sorted({size for size, _ in values or VALUES})
    return mj.select(Told(values=values), ROWS, n_components=sizes, kind=kinds, **more)


def test_the_lowest_criterion_is_chosen_and_near_ones_are_named() -> None:
    found = chosen()
    assert (found.best.size, found.best.setting, found.best.value) == (3, {"kind": "a"}, 20.0)
    assert found.best_estimator_.get_params()["size"] == 3 and found.best_estimator_.value_ == 20.0
    assert found.sentence == "BIC prefers 3 components, a; within 1.3 of it: 2 components, a."
    assert [c.value for c in found.ranked] == sorted(VALUES.values())
    assert found.best.n_parameters == 9 and found.best.objective == -10.0 and found.best.n_hits == 4
    assert any("largest number of components tried" in sentence for sentence in found.look_out)


def test_distances_are_rounded_to_the_safe_side() -> None:
    near = chosen({(1, "a"): 1.0, (2, "a"): 2.9500001})
    assert near.sentence.endswith("within 2.0 of it: 2 components, a.")
    far = chosen({(1, "a"): 1.0, (2, "a"): 13.49999})
    assert far.sentence.endswith("the next, 2 components, a, is 12.4 worse.")
    assert not far.look_out


def test_the_heads_of_settings_are_whole() -> None:
    names = [f"{letter * 30} of the last part {end}" for letter in "xy" for end in "12"]
    drawn = str(chosen({(1, name): 1.0 for name in names}).matrix())
    assert all(name in drawn for name in names) and max(map(len, drawn.splitlines())) <= 80


def test_equal_values_choose_the_simpler_fit() -> None:
    assert chosen({(3, "a"): 5.0, (1, "a"): 5.0, (2, "a"): 5.0}).best.size == 1


def test_degenerate_fits_are_left_out_whatever_their_criterion() -> None:
    found = chosen({**VALUES, (3, "b"): -100.0})
    assert found.best.size == 3 and found.best.setting == {"kind": "a"}
    (left_out,) = found.excluded
    assert left_out.excluded == f"degenerate: {UNDETERMINED}" and not left_out.regular
    assert any("1 excluded fit has a lower BIC" in sentence for sentence in found.look_out)
    page = " ".join(str(found).split())
    assert "excluded" in page and "3 components, b: degenerate: the rows do not determine" in page


def test_when_no_fit_can_be_chosen_the_reason_is_told() -> None:
    found = chosen({(1, "a"): -1.0})
    with pytest.raises(ValueError, match=r"no candidate can be chosen.*degenerate.*try fewer components"):
        found.best_estimator_  # noqa: B018
    assert "can choose none" in str(found) and found.to_frame()["regular"].tolist() == [False]


def test_sizes_that_do_not_fit_the_data_are_left_out_and_mistakes_are_raised() -> None:
    found = mj.select(Told(values={**VALUES, (99, "a"): 0.0}), ROWS, n_components=[1, 99])
    assert found.best.size == 1
    assert found.excluded[0].excluded == "could not be fitted: n_samples=10 should be >= size=99"
    assert found.estimators[1] is None
    with pytest.raises(ValueError, match="kind must be 'a' or 'b'"):
        mj.select(Told(), ROWS, n_components=[1, 2], kind=["a", "unknown"])


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"criterion": "bci"}, ValueError, "criterion must be one of.*Did you mean 'bic'"),
        ({"criterion": "icl"}, TypeError, "Told has no ICL: a criterion"),
        ({"n_components": []}, ValueError, "holds no number"),
        ({"n_components": [0]}, ValueError, "at least 1"),
        ({"n_components": "3"}, TypeError, "whole numbers"),
        ({"n_components": [1.5]}, TypeError, "whole number"),
        ({"knid": ["a"]}, ValueError, "no parameter 'knid'"),
        ({"size": [1]}, ValueError, "as n_components"),
        ({"kind": []}, ValueError, "holds no value"),
    ],
)
def test_mistakes_are_told(more: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        mj.select(Told(), ROWS, **{"n_components": 1, **more})


def test_a_model_without_a_likelihood_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"KMeans has no BIC.*likelihood.*models that do: .*Told"):
        mj.select(mj.KMeans(), ROWS, criterion="bic")


def test_weights_reach_the_fit_and_the_criterion() -> None:
    weights = np.linspace(0, 1, 10)
    found = chosen(sample_weight=weights)
    assert found.best_estimator_.weight_ == weights.sum()
    with pytest.raises(TypeError, match="aic takes no sample_weight"):
        chosen(sample_weight=weights, criterion="aic")


@pytest.mark.parametrize("n_jobs", [None, 4])
def test_warnings_stay_with_their_fit(n_jobs: int | None) -> None:
    found = chosen(n_jobs=n_jobs)
    assert [c.warnings for c in found.candidates] == [
        (f"size {c.size}, kind {c.setting['kind']}",) for c in found.candidates
    ]
    assert len(found.candidates) == 6


def test_one_value_counts_as_a_list_of_one_and_none_as_the_models_own() -> None:
    assert [c.setting for c in mj.select(Told(kind="b"), ROWS, n_components=2, kind=None).candidates] == [{}]
    assert [c.setting for c in mj.select(Told(), ROWS, n_components=2, kind="b").candidates] == [{"kind": "b"}]


# The page


def test_the_matrix_has_sizes_below_each_other_and_marks_the_best() -> None:
    found = chosen()
    table = found.matrix()
    assert [c.head for c in table.columns] == ["components", "a", "b"]
    assert [list(c.bold) for c in table.columns] == [[], [2], []] and table.columns[1].values[2] == 20.0
    lines = table.to_lines(ascii_only=True)
    assert [line for line in lines if "*" in line] == [lines[3]] and "20.00 *" in lines[3]
    assert {line.index(".") for line in (row[:22] for row in lines[1:])} == {lines[1].index(".")}
    assert "<strong>20.00</strong>" in table.to_html() and "**20.00**" in table.to_markdown()
    assert found.matrix().to_frame()["a"].tolist() == [30.0, 21.3, 20.0]


def test_the_page_is_narrow_and_says_the_sign() -> None:
    page = str(chosen())
    assert max(map(len, page.splitlines())) <= 80
    assert page.startswith("told mixture, selected by BIC\n6 fits\n")
    assert "Lower is better" in page and "mclust" in page and "SEARCH" in page
    assert "Lower is better" in chosen().to_markdown() and "<table>" in chosen()._repr_html_()


def test_as_a_data_frame_with_all_numbers() -> None:
    frame = chosen({**VALUES, (1, "a"): math.inf}).to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns.tolist()[:4] == ["size", "kind", "bic", "log_likelihood"]
    assert frame["excluded"][0] == "its criterion is no finite number"
    assert re.fullmatch(r"Selection\(6 fits: BIC prefers .*\)", repr(chosen()))


def test_a_selection_can_be_kept_without_its_estimators() -> None:
    found = chosen({**VALUES, (3, "b"): -100.0})
    again = Selection.from_state(json.loads(json.dumps(found.to_state())))
    assert again.candidates == found.candidates and again.sentence == found.sentence
    assert again.matrix() == found.matrix()
    with pytest.raises(ValueError, match="not kept"):
        again.best_estimator_  # noqa: B018
    assert "SEARCH" not in str(again)


def test_a_slow_best_is_told() -> None:
    found = mj.select(Told(slow=True), ROWS, n_components=[1])
    assert found.sentence == "BIC prefers 1 component."
    assert any("iteration limit" in sentence for sentence in found.look_out)
    assert Candidate(2, {"depth": 3}).label == "depth=3"


# A real mixture

FORMS = ["full", "tied", "diag", "spherical"]


def of_iris(X: Any, **more: Any) -> Selection:
    return mj.select(mj.GaussianMixture(random_state=0), X, n_components=[1, 2, 3], covariance_type=FORMS, **more)


@pytest.fixture(scope="module")
def iris_forms() -> Selection:
    return of_iris(load_iris().data)


def test_values_are_what_the_estimators_say(iris_forms: Selection) -> None:
    X = load_iris().data
    for candidate, fitted in zip(iris_forms.candidates, iris_forms.estimators, strict=True):
        assert candidate.value == fitted.bic(X)
        assert candidate.value == pytest.approx(-2 * candidate.objective + candidate.n_parameters * np.log(150))
    assert (iris_forms.best.size, iris_forms.best.label) == (2, "full")
    assert iris_forms.best.value == pytest.approx(574.0178, abs=1e-3)  # mclust: VVV,2 has -574.0178


def test_threads_and_row_order_do_not_change_it(iris_forms: Selection) -> None:
    rows = np.random.default_rng(0).permutation(150)
    again = of_iris(load_iris().data[rows], n_jobs=3)
    assert [c.objective for c in again.candidates] == [c.objective for c in iris_forms.candidates]
    assert again.sentence == iris_forms.sentence


def test_weights_are_repeats() -> None:
    X, counts = load_iris().data[::3], np.arange(50) % 3 + 1
    model = mj.GaussianMixture(random_state=0)
    weighted = mj.select(model, X, n_components=[1, 2], sample_weight=counts.astype(float))
    repeated = mj.select(model, np.repeat(X, counts, axis=0), n_components=[1, 2])
    for a, b in zip(weighted.candidates, repeated.candidates, strict=True):
        assert a.value == pytest.approx(b.value, rel=1e-9)


def _corners(n: int = 25, seed: int = 0) -> np.ndarray:
    centres = 9.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    return np.asarray(np.repeat(centres, n, axis=0) + np.random.default_rng(seed).normal(size=(4 * n, 2)))


@pytest.mark.parametrize("model", [mj.KMeans(random_state=0), mj.DiscriminativeClustering(random_state=0)])
def test_clusterings_are_compared_by_the_mean_silhouette(model: Any) -> None:
    X = _corners()
    found = mj.select(model, X, n_components=range(1, 7))
    assert found.criterion == "silhouette" and found.best.size == 4
    for candidate, fitted in zip(found.candidates[1:], found.estimators[1:], strict=True):
        assert candidate.value == pytest.approx(silhouette_score(X, fitted.labels_), abs=1e-12)
    assert found.excluded[0].size == 1 and "at least two clusters" in found.excluded[0].excluded
    values = [c.value for c in found.ranked]
    assert values == sorted(values, reverse=True) and found.difference(found.ranked[1]) > 0
    stable = "which resampled rows confirm (adjusted Rand index 1.00)"
    assert found.sentence.startswith(f"The mean silhouette prefers 4 clusters, {stable}; the next")
    assert found.best.measures["stability"] == 1.0
    if isinstance(model, mj.KMeans):
        assert all(c.measures["stability"] < 1 for c in found.candidates if c.size == 6)
        proved = found.best_estimator_.certify(X, effort="fast")
        assert found.best.measures["gap"] == proved.gap == pytest.approx(1 - proved.bound / found.best.objective)
        assert found.best_estimator_.search_.proved_bound == proved.bound
        assert [column.head for column in found.matrix().columns][1:] == ["silhouette", "SSE", "stability", "gap"]
    assert "Higher is better" in str(found) and "lower" not in found.sentence
    again = type(found).from_state(found.to_state())
    assert again.best == found.best and again.sentence == found.sentence


def test_silhouettes_of_many_sparse_or_directed_rows() -> None:
    X = _corners(1000)
    few = mj.select(mj.KMeans(random_state=0), X, n_components=[3, 4, 5])
    exact = silhouette_score(X, few.best_estimator_.labels_)
    assert few.best.size == 4 and few.best.value == pytest.approx(exact, abs=0.01)
    sparse = mj.select(mj.KMeans(random_state=0), csr_array(_corners()), n_components=[3, 4, 5])
    dense = mj.select(mj.KMeans(random_state=0), _corners(), n_components=[3, 4, 5])
    assert [c.value for c in sparse.candidates] == pytest.approx([c.value for c in dense.candidates], abs=1e-9)
    random = np.random.default_rng(0)
    directions = np.repeat(np.eye(3), 20, axis=0) + 0.1 * random.random(size=(60, 3))
    of_lengths = directions * random.uniform(1, 100, size=(60, 1))
    found = mj.select(mj.KMeans(metric="cosine", random_state=0), of_lengths, n_components=[2, 3, 4])
    assert found.best.size == 3
    unit = of_lengths / np.linalg.norm(of_lengths, axis=1, keepdims=True)
    assert found.best.value == pytest.approx(silhouette_score(unit, found.best_estimator_.labels_), abs=1e-12)


@pytest.mark.parametrize("shift", [1e6, -1e9, 1e11])
def test_silhouettes_do_not_depend_on_the_origin(shift: float) -> None:
    near = mj.select(mj.KMeans(random_state=0), _corners(), n_components=[3, 4, 5])
    far = mj.select(mj.KMeans(random_state=0), _corners() + shift, n_components=[3, 4, 5])
    assert [c.value for c in far.candidates] == pytest.approx([c.value for c in near.candidates], abs=1e-4)


def test_the_silhouette_is_of_clusterings_alone() -> None:
    with pytest.raises(TypeError, match="not defined for weighted rows"):
        mj.select(mj.KMeans(), _corners(), sample_weight=np.ones(100))
    with pytest.raises(TypeError, match=r"GaussianMixture is no clustering without a likelihood.*KMeans"):
        mj.select(mj.GaussianMixture(), _corners(), criterion="silhouette")


def test_every_fit_with_a_likelihood_tells_what_a_paper_does() -> None:
    X, k = _corners(), 4
    found = mj.select(mj.GaussianMixture(random_state=0), X, n_components=[1, 2, k])
    fitted, told = found.estimators[-1], found.candidates[-1].measures
    assert told["aic"] == fitted.aic(X) and told["bic"] == found.candidates[-1].value == fitted.bic(X)
    assert told["icl"] == fitted.icl(X) and told["smallest"] == fitted.weights_.min()
    n, p = len(X), found.candidates[-1].n_parameters
    assert told["sabic"] == pytest.approx(told["bic"] - p * np.log(n) + p * np.log((n + 2) / 24))
    entropy = (told["icl"] - told["bic"]) / 2
    assert told["entropy_r2"] == pytest.approx(1 - entropy / (n * np.log(k)))
    assert "entropy_r2" not in found.candidates[0].measures  # one part has nothing to separate
    assert found.to_frame()["sabic"].tolist() == [c.measures["sabic"] for c in found.candidates]
    assert type(found).from_state(found.to_state()).candidates[-1].measures == told


def test_a_selection_tells_which_fit_of_how_many_goes_on(capfd: pytest.CaptureFixture[str]) -> None:
    with watched_by(Watch(between_lines=0)):
        mj.select(mj.GaussianMixture(random_state=0), np.arange(9.0)[:, None] ** 2, n_components=[1, 2])
    said = capfd.readouterr().err
    assert "fit 1 of 2, k = 1" in said and "fit 2 of 2, k = 2" in said


def test_the_caption_explains_the_columns_that_are_there_and_no_others() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    found = mj.select(mj.KMeans(random_state=0), X, n_components=[2, 3], criterion="silhouette")
    there = [column.name for column in found.matrix().columns]
    assert ("Stability" in found.caption) == ("stability" in there) and ("gap" in found.caption) == ("gap" in there)
    bare = replace(found, candidates=tuple(replace(c, measures={}) for c in found.candidates))
    assert "Stability" not in bare.caption and "gap" not in bare.caption and "Higher is better" in bare.caption


def test_sizes_alone_are_tabled_with_all_that_compares_them() -> None:
    found = mj.select(mj.GaussianMixture(random_state=0), _corners(), n_components=[1, 2])
    table = found.matrix().to_frame()
    assert list(table) == ["n_components", "BIC", "objective", "n_parameters", "AIC", "ICL"]
    for name in ("BIC", "AIC", "ICL"):
        assert table[name].tolist() == [getattr(fitted, name.lower())(_corners()) for fitted in found.estimators]
    assert max(map(len, str(found.matrix()).splitlines())) <= 80
