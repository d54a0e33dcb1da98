"""Structural SVMs that a user writes: the objective by its definition, all policies and solvers, errors for people."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

import majorant as mj
from majorant import registry
from majorant.persistence import UnsavableError

from .structural_models import HiddenChain, ListedRegions, Regions, all_outputs, bags, objective, sequences

REGIONS, LISTED, CHAIN = Regions(3, 4), ListedRegions(3, 4), HiddenChain(2, 2, 3)

POLICIES = [
    mj.Tightest(),
    mj.GibbsLimit(),
    mj.RandomWalk(n_sweeps=5),
    mj.GrowingSubset(),
    mj.Tempered(),
    mj.Biased(mj.MultiFold(3)),
    mj.Biased(mj.Coherence([[0, 1], [1, 2], [3, 4]])),
]


def fit(model: Any, X: Any, y: Any, **parameters: Any) -> mj.LatentStructuralSVM:
    return mj.LatentStructuralSVM(model, **{"alpha": 0.1, "random_state": 0, **parameters}).fit(X, y)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: repr(p).split("(")[0])
@pytest.mark.parametrize("model", [REGIONS, LISTED], ids=["found", "listed"])
def test_the_objective_is_its_definition_and_bounds_fall(model: Any, policy: Any) -> None:
    X, y = bags(1)
    svm = fit(model, X, y, bounds=policy)
    assert svm.objective_ == pytest.approx(objective(model, svm.coef_, X, y, 0.1), rel=1e-12)
    trace = svm.trace_
    for phase in (trace["exploring"] == 1, trace["exploring"] == 0):
        assert (np.diff(trace["bound"][phase]) <= 1e-9).all()
    assert (trace["gap"] >= -1e-9).all() and trace["exploring"].any() == (policy.eta < 1)
    drew = np.isfinite(trace["used"])
    assert (trace["used"][drew] <= trace["budget"][drew] * (1 + 1e-9)).all()
    assert 0 <= svm.gap_ <= 1e-3 * svm.objective_
    assert svm.objective_ < 0.6 * objective(model, np.zeros(model.n_features), X, y, 0.1)


def test_a_chain_with_hidden_states() -> None:
    X, y = sequences(0, n=8)
    svm = fit(CHAIN, X, y, alpha=0.02, tol=1e-2)
    assert svm.objective_ == pytest.approx(objective(CHAIN, svm.coef_, X, y, 0.02), rel=1e-10)
    assert svm.score(X, y) > -0.1
    for x, own, z in zip(X, y, svm.latent_, strict=True):
        outputs = [(w, v) for w, v in all_outputs(CHAIN, x) if (w == own).all()]
        best = max(svm.coef_ @ CHAIN.joint_features(x, w, v) for w, v in outputs)
        assert svm.coef_ @ CHAIN.joint_features(x, own, z) == pytest.approx(best, abs=1e-10)


@pytest.mark.parametrize("solver", ["dcd", "cutting-plane", "bcfw"])
def test_solvers_reach_the_same_bound(solver: str) -> None:
    X, y = bags(2)
    first = [0] * len(X)
    a = fit(REGIONS, X, y, bounds=mj.Tightest(), solver=solver, latent_init=first, max_passes=2000)
    b = fit(REGIONS, X, y, bounds=mj.Tightest(), solver="dcd", latent_init=first, tol=1e-5)
    assert a.trace_["bound"][0] == pytest.approx(b.trace_["bound"][0], rel=1.1e-3)
    assert a.gap_ <= 1e-3 * a.objective_


def test_weights_are_repeats_and_none_is_absent() -> None:
    X, y = bags(3, n=12)
    times = np.arange(12) % 3
    weighted = mj.LatentStructuralSVM(REGIONS, alpha=0.1, bounds=mj.Tightest(), tol=1e-5)
    weighted.fit(X, y, sample_weight=times)
    repeated = fit(
        REGIONS, [X[i] for i in np.repeat(range(12), times)], np.repeat(y, times), bounds=mj.Tightest(), tol=1e-5
    )
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-4)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=0.02)
    assert [z is None for z in weighted.latent_] == (times == 0).tolist()


def test_the_same_seed_is_the_same_fit() -> None:
    X, y = sequences(1, n=5)
    a, b, c = (fit(CHAIN, X, y, alpha=0.05, tol=1e-2, random_state=seed) for seed in (1, 1, 2))
    assert a.coef_.tobytes() == b.coef_.tobytes()
    assert a.coef_.tobytes() != c.coef_.tobytes()


def test_first_latent_values() -> None:
    X, y = bags(4)
    last = [len(x) - 1 for x in X]

    class FromTheEnd(Regions):
        def first_latent(self, x: Any, y: Any) -> int:
            return len(x) - 1

    given = fit(REGIONS, X, y, latent_init=last)
    offered = fit(FromTheEnd(3, 4), X, y)
    assert given.trace_["objective"].tolist() == offered.trace_["objective"].tolist()
    assert given.trace_["objective"][0] != fit(REGIONS, X, y).trace_["objective"][0]
    several = fit(REGIONS, X, y, latent_init=np.array(last), n_init=2)
    assert [s.source for s in several.search_.starts] == 2 * ["given latent values"]
    random = fit(LISTED, X, y, latent_init="random", n_init=3, tol=1e-2)
    assert random.search_.n_starts == 3
    assert random.objective_ == min(r.objective for r in random.search_.starts)


def test_predictions() -> None:
    X, y = bags(5)
    svm = fit(REGIONS, X, y)
    assert svm.predict(X) == [REGIONS.inference(svm.coef_, x)[0] for x in X]
    assert svm.predict_latent(X) == [REGIONS.inference(svm.coef_, x)[1] for x in X]
    assert svm.complete(X, y) == svm.latent_
    assert svm.score(X, y) == pytest.approx(np.mean(np.array(svm.predict(X)) == y) - 1)
    only = np.zeros(len(X))
    only[3] = 1
    assert svm.score(X, y, sample_weight=only) == pytest.approx(float(svm.predict(X)[3] == y[3]) - 1)
    again = mj.LatentStructuralSVM(REGIONS)
    again.coef_ = svm.coef_
    assert again.predict(X) == svm.predict(X)


def test_as_an_estimator(tmp_path: Path) -> None:
    X, y = bags(6)
    svm = fit(REGIONS, X, y)
    twin = clone(svm)
    assert twin.get_params()["alpha"] == 0.1 and not hasattr(twin, "coef_")
    text = str(svm.summary())
    assert "latent structural SVM, Regions" in text and "24 samples, 12 features" in text
    assert pickle.loads(pickle.dumps(svm)).predict(X) == svm.predict(X)
    with pytest.raises(UnsavableError, match=r"numpy.save\(path, estimator.coef_\)"):
        svm.save(tmp_path / "svm")
    search = GridSearchCV(mj.LatentStructuralSVM(REGIONS, random_state=0), {"alpha": [0.1, 100.0]}, cv=2).fit(X, y)
    assert search.best_params_ == {"alpha": 0.1}
    with pytest.raises(NotFittedError):
        mj.LatentStructuralSVM(REGIONS).predict(X)


def test_limits_are_said() -> None:
    X, y = bags(7)
    with pytest.warns(ConvergenceWarning, match="has not settled"):
        fit(REGIONS, X, y, max_iter=1)
    with pytest.warns(ConvergenceWarning, match=r"not solved \(duality gap .* raise max_passes"):
        unsolved = fit(REGIONS, X, y, max_passes=1)
    assert not unsolved.search_.starts[0].converged


class Broken(Regions):
    """A model of which one method returns something else."""

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(3, 4)
        setattr(self, name, value if name == "n_features" else lambda *arguments: value)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("joint_features", np.zeros((2, 6)), r"joint_features of sample 0 returned shape \(2, 6\).*shape \(12,\)"),
        ("joint_features", np.zeros(11), r"returned shape \(11,\)"),
        ("joint_features", 3.0, r"returned shape \(\)"),
        ("joint_features", np.full(12, np.nan), "returned nan at position 0"),
        ("joint_features", "no", "it must return numbers"),
        ("joint_features", None, "it must return"),
        ("joint_features", np.ones(12) * 1j, "it must return numbers"),
        ("joint_features", np.full(12, "2024-01-01", dtype="M8[D]"), "it must return numbers"),
        ("joint_features", np.full(12, "1"), "it must return numbers"),
        ("joint_features", np.ma.masked_less(np.arange(12.0), 2), "is a masked array with 2 masked cells"),
        ("loss", -1.0, r"loss of sample 0 returned -1.0: it must return a finite number of at least 0"),
        ("loss", "much", "loss of sample 0 returned 'much'"),
        ("loss", np.nan, "loss of sample 0 returned nan"),
        ("loss", 1.0, "loss of sample 0 for its own label is 1.0: it must be 0"),
        ("loss_augmented_inference", 1, r"returned 1: it must return a label and a latent value, \(y, z\)"),
        ("loss_augmented_inference", (0, 0), "it must return the output of the largest sum"),
        ("latent_values", [], "latent_values of sample 0 returned none"),
    ],
)
def test_what_a_model_returns_is_checked(name: str, value: Any, message: str) -> None:
    X, y = bags(0)
    with pytest.raises(ValueError, match=message):
        fit(Broken(name, value), X, y)


@pytest.mark.parametrize("value", [None, 0, 2.5, True])
def test_a_model_says_how_many_features_it_has(value: Any) -> None:
    with pytest.raises(TypeError, match="must have an attribute n_features"):
        fit(Broken("n_features", value), *bags(0))


def test_inference_is_checked() -> None:
    X, y = bags(0)
    svm = fit(REGIONS, X, y)
    svm.model = Broken("inference", 2)
    with pytest.raises(ValueError, match=r"inference of sample 0 returned 2: it must return a label and a latent"):
        svm.predict(X)


def test_errors_of_a_model_say_where() -> None:
    class Raises(Regions):
        def latent_completion(self, w: Any, x: Any, y: Any) -> int:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        fit(Raises(3, 4), *bags(0))
    assert caught.value.__notes__ == ["raised in latent_completion of the model, for sample 0"]


def test_weights_are_not_to_be_changed() -> None:
    class Greedy(Regions):
        def latent_completion(self, w: Any, x: Any, y: Any) -> int:
            w[0] = 7.0
            return 0

    with pytest.raises(ValueError, match="read-only"):
        fit(Greedy(3, 4), *bags(0))


def test_inexact_completion_still_has_falling_bounds() -> None:
    class Careless(Regions):
        def latent_completion(self, w: Any, x: Any, y: Any) -> int:
            return 0

    X, y = bags(8)
    svm = fit(Careless(3, 4), X, y, latent_init=[len(x) - 1 for x in X])
    assert (np.diff(svm.trace_["bound"][svm.trace_["exploring"] == 1]) <= 1e-9).all()
    assert svm.objective_ >= objective(REGIONS, svm.coef_, X, y, 0.1) - 1e-9


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"model": Regions}, TypeError, "model must be an object, not a class"),
        ({"model": object()}, TypeError, r"model must have the method joint_features\(x, y, z\)"),
        ({"alpha": 0.0}, ValueError, "alpha must be positive"),
        ({"alpha": np.inf}, ValueError, "alpha must be finite"),
        ({"solver": "qp"}, ValueError, "solver must be one of"),
        ({"bounds": "tight"}, TypeError, "bounds must be a bound policy"),
        ({"latent_init": "best"}, ValueError, "latent_init must be one of"),
        ({"latent_init": [0]}, ValueError, "a latent value for each of 24 samples; got 1"),
        ({"latent_init": "random"}, ValueError, r"needs a model with latent_values\(x, y\) or sample_latent"),
        ({"latent_init": 3}, TypeError, "latent_init must be a sequence"),
        ({"tol": 1.0}, ValueError, "tol must be below 1"),
        ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
        ({"max_passes": 2.5}, TypeError, "max_passes must be a whole number"),
        ({"n_init": 0}, ValueError, "n_init must be at least 1"),
    ],
)
def test_parameters_are_checked(parameters: dict[str, Any], error: type[Exception], message: str) -> None:
    X, y = bags(0)
    with pytest.raises(error, match=message):
        mj.LatentStructuralSVM(**{"model": REGIONS, **parameters}).fit(X, y)


def test_samples_are_checked() -> None:
    X, y = bags(0)
    pandas = pytest.importorskip("pandas")
    for given, labels, error, message in (
        (X, y[:-1], ValueError, "got 24 inputs and 23 labels"),
        ([], [], ValueError, "X is empty"),
        ("abc", [1, 2, 3], TypeError, "X must be a sequence"),
        (pandas.DataFrame({"a": [1.0]}), [1], TypeError, "X is a table"),
    ):
        with pytest.raises(error, match=message):
            fit(REGIONS, given, labels)
    svm = fit(REGIONS, X, pandas.Series(y, index=np.arange(24) + 5))
    with pytest.raises(ValueError, match="got 24 inputs and 1 labels"):
        svm.score(X, [1])
    with pytest.raises(ValueError, match="got 24 inputs and 2 labels"):
        svm.complete(X, [1, 2])


def test_a_failed_fit_leaves_what_was_there() -> None:
    X, y = bags(0)
    svm = fit(REGIONS, X, y)
    before = svm.coef_
    svm.model = Broken("loss", -1.0)
    with warnings.catch_warnings(), pytest.raises(ValueError, match="loss of sample"):
        svm.fit(X, y)
    assert svm.coef_ is before


def test_no_other_public_estimator_is_without_a_card() -> None:
    """What has none is unknown to the command line and to the tests over all estimators."""
    public = [getattr(mj, name) for name in mj.__all__]
    estimators = {p for p in public if isinstance(p, type) and issubclass(p, BaseEstimator)}
    assert estimators - set(registry.ESTIMATORS.values()) == {mj.LatentStructuralSVM}
