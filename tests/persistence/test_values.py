"""A file whose values no fit ends at is refused, though it is whole and its checksums are right."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import majorant as mj
from majorant.persistence import SavedModelError, UnsavableError, archive, load, save
from majorant.registry import card_of

from ..estimators import ESTIMATORS, ROWS, numbers, reference


def changed(estimator: Any, name: str, value: Any) -> Any:
    other = type(estimator)(**estimator.get_params(deep=False))
    other.__dict__.update(estimator.__dict__)
    setattr(other, name, value)
    return other


def with_entry(values: Any, value: float) -> Any:
    values = np.array(values, dtype=np.float64)
    values[(0,) * values.ndim] = value
    return values


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_what_predictions_read_is_there_and_holds_numbers(cls: type[Any], tmp_path: Path) -> None:
    fitted, path = reference(cls), tmp_path / "m"
    save(fitted, path)
    load(path)
    card = card_of(cls)
    assert card.estimates
    for name in (*card.estimates, card.objective_attribute, "n_features_in_"):
        other = changed(fitted, f"{name[:-1]}s_", getattr(fitted, name))
        del other.__dict__[name]
        save(other, path)
        with pytest.raises(SavedModelError, match=f"it lacks {name}"):
            load(path)
    for name in card.estimates:
        if np.size(getattr(fitted, name)):
            save(changed(fitted, name, with_entry(getattr(fitted, name), np.nan)), path)
            with pytest.raises(SavedModelError, match=f"its {name} holds NaN"):
                load(path)
        save(changed(fitted, name, "numbers"), path)
        with pytest.raises(SavedModelError, match=f"its {name} does not hold numbers"):
            load(path)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_the_number_of_columns_is_one_that_the_estimates_can_be_of(cls: type[Any], tmp_path: Path) -> None:
    """A billion in a small file would make a list of so many names."""
    path = tmp_path / "m"
    for wrong in (10**9, -5, 0, 2.5, True):
        save(changed(reference(cls), "n_features_in_", wrong), path)
        with pytest.raises(SavedModelError, match=f"its n_features_in_ is {wrong}, and"):
            load(path)
    save(changed(reference(cls), "feature_names_in_", np.array(["a", "b"], dtype=object)), path)
    with pytest.raises(SavedModelError, match=r"its feature_names_in_ have shape \(2,\), and it has 3 columns"):
        load(path)


@pytest.mark.parametrize("cls", [cls for cls in ESTIMATORS if "weights_" in card_of(cls).estimates])
def test_weights_are_shares(cls: type[Any], tmp_path: Path) -> None:
    fitted, path = reference(cls), tmp_path / "m"
    save(changed(fitted, "weights_", with_entry(fitted.weights_, -0.5)), path)
    with pytest.raises(SavedModelError, match=r"its weights_ holds -0\.5, and is never negative"):
        load(path)
    save(changed(fitted, "weights_", 2 * fitted.weights_), path)
    with pytest.raises(SavedModelError, match="its weights_ are 2 in sum, and always 1"):
        load(path)


def tables_of_estimates() -> list[Any]:
    """A fit of each kind whose density has estimates of its own."""
    random = np.random.default_rng(0)
    rows = np.concatenate([random.normal(size=(30, 2)), random.normal(size=(30, 2)) + 6])
    bits, counts = (rows > 3).astype(float), random.poisson(1 + 5.0 * (rows > 3))
    return [
        mj.HiddenMarkovModel(2, random_state=0).fit(rows),
        mj.HiddenMarkovModel(2, emission="poisson", random_state=0).fit(counts),
        mj.HiddenMarkovModel(2, emission="bernoulli", random_state=0).fit(bits),
        mj.LatentClassAnalysis(2, random_state=0).fit(bits.astype(int)),
        mj.LatentClassAnalysis(2, items="normal", correlated="all", random_state=0).fit(rows * [1.0, -1.0]),
        mj.GaussianMixture(2, covariance_type="diag", random_state=0).fit(rows),
    ]


@pytest.mark.parametrize("at", range(6))
def test_estimates_of_densities_and_chains_are_asked_too(at: int, tmp_path: Path) -> None:
    fitted, path = tables_of_estimates()[at], tmp_path / "m"
    save(fitted, path)
    assert load(path).estimate_names_ == fitted.estimate_names_
    for name in (f"{name}_" for name in fitted.estimate_names_):
        value = getattr(fitted, name)
        wrong = [(np.nan, "NaN")]
        if name.endswith(("probabilities_", "transitions_")):
            wrong += [(-0.25, r"-0\.25, and is never negative"), (1.25, r"1\.25, and is never above 1")]
        elif name in ("rates_", "variances_"):
            wrong += [(-0.25, r"-0\.25, and is never negative")]
        for number, said in wrong:
            save(changed(fitted, name, with_entry(value, number)), path)
            with pytest.raises(SavedModelError, match=f"its {name} holds {said}"):
                load(path)


def test_a_header_of_many_megabytes_is_neither_written_nor_parsed(tmp_path: Path) -> None:
    estimator = ESTIMATORS[0]
    names = np.array(["x" * 1000] * (archive.MAX_META_BYTES // 1000 + 1), dtype=object)
    with pytest.raises(UnsavableError, match="are more than a saved model may hold"):
        save(changed(reference(estimator), "feature_names_in_", names), tmp_path / "m")
    assert not list(tmp_path.iterdir())
    assert archive.MAX_META_BYTES < 60e6


def damaged(values: NDArray[Any], random: np.random.Generator) -> list[NDArray[Any]]:
    """The same with an entry that no fit ends at, and with an axis longer by one: one of each, drawn."""
    longer = [np.resize(values, np.add(values.shape, np.arange(values.ndim) == axis)) for axis in range(values.ndim)]
    wrong = [np.nan, np.inf, -np.inf, -1.0, 1e300] if values.dtype.kind == "f" else [-1, 2**30]
    entries = []
    for value in random.choice(wrong, 1) if values.size else []:
        entries.append(values.copy())
        entries[-1][np.unravel_index(random.integers(values.size), values.shape)] = value
    return [*entries, *(longer[at] for at in random.permutation(len(longer))[:1])]


def answers(fitted: Any, X: Any) -> list[NDArray[Any]]:
    """What a model says of rows, in every way that it has."""
    ways = ("predict", "predict_proba", "transform", "decision_function", "score_samples")
    found = [np.asarray(getattr(fitted, way)(X)) for way in ways if hasattr(fitted, way)]
    return [one for one in found if one.dtype.kind in "fiu"]


def kinds_of_fit() -> list[tuple[Any, Any]]:
    """Every estimator with its rows, and those whose estimates differ by a setting."""
    random = np.random.default_rng(3)
    heights, bits = random.normal(size=(60, 2)) + 4 * (np.arange(60) % 2)[:, None], random.integers(0, 2, (60, 2))
    others = [
        *(mj.GaussianMixture(2, covariance_type=kind, random_state=0) for kind in ("tied", "diag", "spherical")),
        *(mj.HiddenMarkovModel(2, covariance_type=kind, random_state=0) for kind in ("tied", "diag", "spherical")),
        mj.LatentClassAnalysis(2, items="normal", correlated="all", random_state=0),
        mj.DiscriminativeClustering(2, kernel="rbf", random_state=0),
    ]
    of_bits = [
        *(mj.HiddenMarkovModel(2, emission=kind, random_state=0) for kind in ("poisson", "bernoulli", "categorical")),
        mj.HiddenMarkovModel(2, emission=["poisson", "gaussian"], random_state=0),
        mj.LatentClassAnalysis(2, random_state=0),
        mj.Harmonium(random_state=0),
    ]
    fits = [(reference(cls), ROWS) for cls in ESTIMATORS]
    fits += [(model.fit(heights), heights) for model in others]
    return fits + [(model.fit(bits.astype(float)), bits.astype(float)) for model in of_bits]


N_KINDS = len(ESTIMATORS) + 14


@pytest.fixture(scope="module")
def fits() -> list[tuple[Any, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return kinds_of_fit()


@pytest.mark.parametrize("at", range(N_KINDS))
def test_a_damaged_attribute_is_refused_or_does_not_matter(at: int, fits: list[Any], tmp_path: Path) -> None:
    assert len(fits) == N_KINDS
    (fitted, X), random, path = fits[at], np.random.default_rng(at), tmp_path / "m"
    X = X[:9]
    save(fitted, path)
    # As far from a centre as float64 goes, distances have no square.
    is_far = {"prototypes_", "cluster_centers_", "means_"}
    assert all(np.isfinite(answer).all() for answer in answers(load(path), X))
    n_refused = 0
    for name, values in numbers(fitted).items():
        for wrong in damaged(values, random):
            save(changed(fitted, name, wrong if wrong.ndim else wrong.item()), path)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    other = load(path)
            except SavedModelError as error:
                assert name in str(error) or "its " in str(error)
                n_refused += 1
                continue
            if name in is_far and np.abs(wrong).max() > 1e150:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                found = answers(other, X)
            assert str(other.summary())
            assert all(np.isfinite(answer).all() for answer in found), (name, wrong)
    assert n_refused


def test_a_shape_that_does_not_agree_is_named_with_what_it_goes_with(tmp_path: Path) -> None:
    model, path = reference(mj.GaussianMixture), tmp_path / "m"
    for name, value, goes_with in (("means_", model.means_[:, :2], "(3, 3)"), ("weights_", [[1.0]], "(any)")):
        save(changed(model, name, np.asarray(value)), path)
        found = re.escape(f"its {name} has shape {np.shape(value)}, and its other estimates go with {goes_with}")
        with pytest.raises(SavedModelError, match=found):
            load(path)
    save(changed(model, "covariances_", model.covariances_ * np.array([1.0, -1.0, 1.0])[:, None, None]), path)
    with pytest.raises(SavedModelError, match=r"its covariances_ holds .* where it is always positive"):
        load(path)


@pytest.mark.parametrize("name", ["coef_", "intercept_"])
@pytest.mark.parametrize("form", ["class-specific", "shared"])
def test_weights_of_a_latent_svm_are_those_of_its_form(form: Any, name: str, tmp_path: Path) -> None:
    X, path = np.array([[0.0], [1.0], [2.0], [3.0]]), tmp_path / "m"
    model = mj.LatentSVC(form=form, random_state=0).fit(X, [0, 0, 1, 1])
    save(model, path)
    assert (load(path).predict(X) == model.predict(X)).all()
    values = getattr(model, name)
    other = np.concatenate([values, values]) if form == "shared" else values[:1]
    save(changed(model, name, other), path)
    with pytest.raises(SavedModelError, match=r"its coef_ and intercept_ have . and . rows, and form="):
        load(path)


@pytest.mark.parametrize(("number", "said"), [(np.nan, "NaN"), (-0.5, r"-0\.5, and is never negative")])
def test_weights_of_latent_classes_are_none_below_zero(number: float, said: str, tmp_path: Path) -> None:
    fitted, path = reference(mj.DiscriminativeLatentClasses), tmp_path / "m"
    save(changed(fitted, "class_weights_", with_entry(fitted.class_weights_, number)), path)
    with pytest.raises(SavedModelError, match=f"its class_weights_ holds {said}"):
        load(path)


@pytest.mark.parametrize("cls", [mj.LatentPrototypeClassifier, mj.LatentSVC, mj.ReconfigurableBagOfWords])
def test_counts_of_rows_by_label_are_numbers_from_zero(cls: type[Any], tmp_path: Path) -> None:
    fitted, path = reference(cls), tmp_path / "m"
    for wrong, said in ((np.nan, "NaN"), (np.inf, "inf"), (-1.0, "-1, and is never negative")):
        save(changed(fitted, "confusion_", with_entry(fitted.confusion_, wrong)), path)
        with pytest.raises(SavedModelError, match=f"its confusion_ holds {said}"):
            load(path)


def test_medoids_of_many_columns_and_of_given_distances_come_back(tmp_path: Path) -> None:
    X, path = np.random.default_rng(0).normal(size=(20, 8)), tmp_path / "m"
    distances = np.abs(X[:, None, 0] - X[:, 0])
    for model in (mj.KMedoids(2, random_state=0).fit(X), mj.KMedoids(2, metric="precomputed").fit(distances)):
        save(model, path)
        np.testing.assert_array_equal(load(path).medoid_indices_, model.medoid_indices_)


def test_pairs_of_columns_are_pairs(tmp_path: Path) -> None:
    """A list of them is read by every summary of a mixture."""
    path = tmp_path / "m"
    for cls in (cls for cls in ESTIMATORS if hasattr(reference(cls), "never_together_")):
        save(changed(reference(cls), "never_together_", [["a", "b"], ["b", "c"]]), path)
        assert "a and b; b and c" in " ".join(str(load(path).summary()).split())
        for wrong in (["a", "b"], [["a"]], [["a", "b", "c"]], [["a"], ["b", "c"]], "ab", 3, np.ones(1)):
            save(changed(reference(cls), "never_together_", wrong), path)
            with pytest.raises(SavedModelError, match="its never_together_ has "):
                load(path)


@pytest.mark.parametrize("trim", [0.0, 0.1])
def test_a_fit_without_gating_has_no_coefficients_of_it(trim: float, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(60, 1))
    model = mj.RegressionMixture(2, trim=trim, random_state=0).fit(x, np.abs(x[:, 0]) + 0.1 * np.cos(9 * x[:, 0]))
    path = tmp_path / "m"
    for wrong in (None, np.zeros(0), np.zeros(2), np.zeros((3, 0)), np.zeros((2, 1)), np.zeros((2, 2))):
        save(changed(model, "gating_coef_", wrong), path)
        with pytest.raises(SavedModelError, match=r"its gating_coef_ (has shape|does not hold numbers)"):
            load(path)


@pytest.mark.parametrize("model", ["gaussian", "classes", "markov", "lines", "trimmed lines"])
def test_coefficients_of_gating_are_of_its_covariates(model: str, tmp_path: Path) -> None:
    """One column more or fewer would be read beside other covariates."""
    random, path = np.random.default_rng(0), tmp_path / "m"
    gating, x = random.normal(size=(2, 120, 2))
    first = gating[:, 0] + random.normal(size=120) > 0
    if "lines" in model:
        trim = 0.1 if model == "trimmed lines" else 0.0
        y = np.where(first, 3 + x[:, 0], -3 - x[:, 0]) + x[:, 1]
        fitted: Any = mj.RegressionMixture(2, trim=trim, random_state=0).fit(x[:, :1], y, gating=gating)
    else:
        made = {"gaussian": mj.GaussianMixture, "markov": mj.HiddenMarkovModel, "classes": mj.LatentClassAnalysis}
        items = {"items": "normal"} if model == "classes" else {}
        fitted = made[model](2, random_state=0, **items).fit(x + 4 * first[:, None], gating=gating)
    save(fitted, path)
    load(path)
    names = [name for name in vars(fitted) if name in ("gating_coef_", "gating_center_", "gating_scale_")]
    for name in names:
        value = getattr(fitted, name)
        for wrong in (value[..., :-1], np.concatenate([value, value[..., :1]], axis=-1)):
            save(changed(fitted, name, wrong), path)
            with pytest.raises(SavedModelError, match=f"its {name} has shape"):
                load(path)
