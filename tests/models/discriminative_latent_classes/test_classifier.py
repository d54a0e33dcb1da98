"""The latent-class classifier: known answers, equivalences, kinds of targets, rows without labels, what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score

import majorant as mj
from majorant.engine.loop import minimize
from majorant.summary import Table

from .problems import xor

Array = NDArray[Any]


def cost(model: mj.DiscriminativeLatentClasses, X: Array, y: Array, w: Array | None = None) -> float:
    """From the definition."""
    u = X @ model.class_coef_.T + model.class_intercept_
    p = np.exp(u - logsumexp(u, axis=1, keepdims=True)) @ model.class_label_distribution_
    of_row = -np.log(p[np.arange(len(y)), np.searchsorted(model.classes_, y)])
    w = np.ones(len(y)) if w is None else w
    return float(w @ of_row / w.sum() + model.alpha_ / 2 / model.n_classes * np.sum(model.class_coef_**2))


def a_b_a(n: int = 300, seed: int = 0) -> tuple[Array, Array]:
    """A label on both sides of another one, on a line."""
    g = np.random.default_rng(seed)
    X = np.column_stack([g.uniform(-3, 3, size=n), g.normal(size=(n, 2))])
    return X, np.where(np.abs(X[:, 0]) > 1, "outer", "inner")


@pytest.mark.parametrize("init", ["auto", "random"])
def test_opposite_corners_are_told_apart(init: str) -> None:
    X, y = xor(300)
    model = mj.DiscriminativeLatentClasses(4, init=init, random_state=0).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.97
    assert model.n_active_classes_ == 4
    assert model.objective_ / 200 == pytest.approx(cost(model, X[:200], y[:200]), abs=1e-6)
    assert LogisticRegression().fit(X, y).score(X, y) < 0.65


@pytest.mark.parametrize("init", ["ball", "relaxation", "independent-relaxations"])
def test_relaxations_alone_find_no_more_than_auto(init: str) -> None:
    """With two labels they see one direction (and corners have none), so `auto` has other starts beside them."""
    X, y = xor(100)
    alone = mj.DiscriminativeLatentClasses(4, init=init, random_state=0).fit(X, y)
    assert alone.search_.n_starts == 1
    assert alone.objective_ <= 100 * np.log(2)
    assert mj.DiscriminativeLatentClasses(4, random_state=0).fit(X, y).objective_ <= alone.objective_ + 1e-5


def test_a_label_on_both_sides_of_another() -> None:
    X, y = a_b_a(600)
    model = mj.DiscriminativeLatentClasses(3, df=0.99, random_state=0).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.93
    pure = model.class_label_distribution_.max(axis=1)
    assert (pure > 0.99).all()
    assert model.class_label_distribution_.argmax(axis=1).tolist().count(1) == 2


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("shape", [(200, 3), (60, 200)])
def test_two_labels_are_logistic_regression(k: int, shape: tuple[int, int]) -> None:
    """At C = 2K / (lambda N) the costs are the same, however many classes there are beyond two."""
    g = np.random.default_rng(0)
    X = g.normal(size=shape)
    y = (X[:, 0] + 0.7 * g.normal(size=len(X)) > 0).astype(int)
    model = mj.DiscriminativeLatentClasses(k, df=0.6, random_state=0).fit(X, y)
    assert model.logistic_c_ == pytest.approx(2 * k / (model.alpha_ * len(y)))
    logistic = LogisticRegression(C=model.logistic_c_, tol=1e-10, max_iter=10_000).fit(X, y)
    p = logistic.predict_proba(X)[np.arange(len(y)), y]
    theirs = -np.log(p).mean() + np.sum(logistic.coef_**2) / (2 * model.logistic_c_ * len(y))
    assert model.objective_ / len(y) == pytest.approx(theirs, abs=1e-5)
    if shape[1] > shape[0]:
        np.testing.assert_allclose(model.predict_proba(X), logistic.predict_proba(X), atol=0.02)


def test_one_class_gives_the_shares_of_the_labels() -> None:
    X, y = a_b_a()
    w = np.random.default_rng(0).gamma(1.0, size=len(y))
    model = mj.DiscriminativeLatentClasses(1, random_state=0).fit(X, y, sample_weight=w)
    shares = [w[y == name].sum() / w.sum() for name in model.classes_]
    np.testing.assert_allclose(model.predict_proba(X), np.tile(shares, (len(y), 1)), rtol=1e-6)
    assert (model.predict(X) == "outer").all()


def test_an_answer_of_the_measure_alone() -> None:
    X, y = xor(120)
    counts = np.random.default_rng(0).integers(0, 3, size=len(y))
    one = mj.DiscriminativeLatentClasses(3, random_state=0).fit(X, y, sample_weight=counts)
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(len(y)), counts))
    other = mj.DiscriminativeLatentClasses(3, random_state=0, n_jobs=2).fit(X[order], y[order])
    for name in ("class_coef_", "class_intercept_", "class_label_distribution_", "class_weights_", "objective_"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    scaled = mj.DiscriminativeLatentClasses(3, random_state=0).fit(X, y, sample_weight=7 * counts)
    np.testing.assert_allclose(scaled.objective_, 7 * one.objective_, rtol=1e-12)


def test_sparse_text_like_rows() -> None:
    g = np.random.default_rng(0)
    X = sparse.random(150, 400, density=0.05, random_state=g, format="csr")
    y = np.asarray(X[:, :20].sum(axis=1) > X[:, 20:40].sum(axis=1)).ravel().astype(int)
    X = sparse.vstack([X, sparse.csr_matrix((1, 400))]).tocsr()  # an empty document
    y = np.append(y, 0)
    thin = mj.DiscriminativeLatentClasses(3, random_state=0).fit(X, y)
    dense = mj.DiscriminativeLatentClasses(3, random_state=0).fit(X.toarray(), y)
    assert thin.objective_ == pytest.approx(dense.objective_, rel=1e-5)
    np.testing.assert_allclose(thin.predict_proba(X), dense.predict_proba(X.toarray()), atol=0.01)
    assert np.isfinite(thin.predict_proba(X[:0:-1])).all()


def test_many_sparse_rows_stay_sparse() -> None:
    g = np.random.default_rng(0)
    X = sparse.random(900, 300, density=0.03, random_state=g, format="csr")
    y = np.asarray(X[:, :30].sum(axis=1) > 0.4).ravel().astype(int)
    thin = mj.DiscriminativeLatentClasses(2, init="random", n_init=1, random_state=0).fit(X, y)
    dense = mj.DiscriminativeLatentClasses(2, init="random", n_init=1, random_state=0).fit(X.toarray(), y)
    assert thin.objective_ == pytest.approx(dense.objective_, rel=1e-4)


def test_probabilities_are_weighted_labels() -> None:
    X, y = xor(100)
    soft = np.random.default_rng(0).dirichlet([2.0, 1.0], size=100)
    soft[np.arange(100), y] += 2
    soft /= soft.sum(axis=1, keepdims=True)
    model = mj.DiscriminativeLatentClasses(4, random_state=0).fit(X, soft)
    repeated = mj.DiscriminativeLatentClasses(4, random_state=0).fit(
        np.repeat(X, 2, axis=0), np.tile([0, 1], 100), sample_weight=soft.ravel()
    )
    assert model.target_kind_ == "probabilities"
    assert model.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    hard = mj.DiscriminativeLatentClasses(4, random_state=0).fit(X, np.eye(2)[y])
    assert hard.objective_ == pytest.approx(
        mj.DiscriminativeLatentClasses(4, random_state=0).fit(X, y).objective_, rel=1e-9
    )


@pytest.mark.parametrize("form", ["int", "bool", "sparse"])
def test_indicators_of_several_labels(form: str) -> None:
    X, _ = xor(300)
    Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0, (X[:, 0] > 0) ^ (X[:, 1] > 0)])
    given: Any = {"int": Y.astype(int), "bool": Y, "sparse": sparse.csr_matrix(Y.astype(int))}[form]
    model = mj.DiscriminativeLatentClasses(4, random_state=0).fit(X, given)
    assert model.target_kind_ == "indicators"
    found = model.predict(X)
    assert found.shape == Y.shape
    assert (found == Y).mean() > 0.97
    assert model.score(X, Y.astype(int)) > 0.93  # all three right
    p = model.predict_proba(X)
    assert ((p >= 0) & (p <= 1)).all()
    assert (np.abs(p.sum(axis=1) - 1) > 0.3).any()


@pytest.mark.parametrize("hole", [np.nan, None])
def test_rows_without_label_help(hole: Any) -> None:
    X, y = xor(400)
    known = np.random.default_rng(3).random(400) < 0.06
    given: Any = (
        np.where(known, y.astype(float), np.nan) if hole is not None else np.where(known, y.astype(object), None)
    )
    model = mj.DiscriminativeLatentClasses(4, random_state=0).fit(X, given)
    alone = mj.DiscriminativeLatentClasses(4, random_state=0).fit(X[known], y[known])
    assert model.classes_.tolist() == [0, 1]
    assert model.score(X, y) >= alone.score(X, y) - 0.005
    assert model.score(X, y) > 0.97
    left_out = mj.DiscriminativeLatentClasses(4, unlabelled_weight=0, alpha=alone.alpha_, random_state=0).fit(X, given)
    assert left_out.objective_ == pytest.approx(alone.objective_, rel=1e-5)


@pytest.mark.parametrize("form", ["labels", "None", "NaN", "probabilities", "probabilities and NaN", "indicators"])
def test_scores_of_every_kind_of_target(form: str) -> None:
    """Rows without label do not count; probabilities count the predicted label by its probability."""
    X, y = xor(120)
    known = np.arange(120) % 4 > 0
    soft = np.where(np.eye(2)[y] == 1, 0.9, 0.1)
    given: Any = {
        "labels": y,
        "None": np.where(known, y.astype(object), None),
        "NaN": np.where(known, y, np.nan),
        "probabilities": soft,
        "probabilities and NaN": np.where(known[:, None], soft, np.nan),
        "indicators": np.column_stack([y, 1 - y, X[:, 0] > 0]),
    }[form]
    model = mj.DiscriminativeLatentClasses(4, n_init=2, max_iter=200, random_state=0).fit(X, given)
    counted = known if form in ("None", "NaN", "probabilities and NaN") else np.ones(120, dtype=bool)
    found = model.predict(X)
    right = (found == y) if form != "indicators" else (found == given).all(axis=1)
    expected = np.where(right, 0.9, 0.1) if "probabilities" in form else right
    assert model.score(X, given) == pytest.approx(expected[counted].mean())
    w = np.random.default_rng(0).gamma(1.0, size=120)
    assert model.score(X, given, w) == pytest.approx(np.average(expected[counted], weights=w[counted]))
    folds = KFold(3) if "NaN" in form else 3  # scikit-learn itself refuses to split by NaN
    assert cross_val_score(model, X, given, cv=folds).min() > 0.8


def test_scores_that_say_nothing_are_refused() -> None:
    X, y = xor(40)
    model = mj.DiscriminativeLatentClasses(4, n_init=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="no row with weight has a label"):
        model.score(X, np.full(40, np.nan))
    with pytest.raises(ValueError, match=r"the fit was given labels, so y must be labels or a table of .* 2 labels"):
        model.score(X, np.ones((40, 3)))
    with pytest.raises(ValueError, match="table of probabilities of 2 labels"):
        model.score(X, np.full((40, 4), 0.25))
    several = mj.DiscriminativeLatentClasses(4, n_init=1, random_state=0).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="the fit was given indicators, so y must be a table of 2 indicators"):
        several.score(X, y)
    with pytest.raises(ValueError, match="one label, or one row, for each of the 40 rows"):
        model.score(X, y[:3])


def test_indicators_stay_so_where_all_rows_sum_to_one() -> None:
    X, y = xor(40)
    one_of_two = np.eye(2)[y]
    model = mj.DiscriminativeLatentClasses(4, n_init=1, random_state=0).fit(X, np.vstack([one_of_two[:-1], [1.0, 1.0]]))
    assert model.target_kind_ == "indicators"
    assert model.score(X, one_of_two) > 0.9


def test_rows_of_nan_have_no_label() -> None:
    X, y = xor(80)
    table = np.eye(2)[y]
    table[::3] = np.nan
    model = mj.DiscriminativeLatentClasses(4, random_state=0).fit(X, table)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize(
    "policy", [mj.GibbsLimit(), mj.Tempered(), mj.Biased(mj.Balance())], ids=lambda p: type(p).__name__
)
def test_policies(policy: Any) -> None:
    X, y = xor(100)
    model = mj.DiscriminativeLatentClasses(4, bounds=policy, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.trace_["exploring"].any()


@pytest.mark.parametrize("beta", [2.0, np.inf])
def test_other_temperatures(beta: float) -> None:
    X, y = xor(100)
    model = mj.DiscriminativeLatentClasses(4, beta=beta, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_rows_without_label_count_at_one_temperature_only() -> None:
    X, y = xor(60)
    given = np.where(np.arange(60) % 3 > 0, y, np.nan)
    with pytest.raises(ValueError, match=r"only with beta=1; got beta=2 .*unlabelled_weight=0\.3: set"):
        mj.DiscriminativeLatentClasses(4, beta=2.0).fit(X, given)
    left_out = mj.DiscriminativeLatentClasses(4, beta=2.0, unlabelled_weight=0, n_init=1, random_state=0).fit(X, given)
    assert "EM, " in str(left_out.summary())
    assert "L-BFGS" not in str(left_out.summary())


@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_the_limit_of_iterations_holds_and_is_told(beta: float) -> None:
    X, y = xor(100)
    model = mj.DiscriminativeLatentClasses(4, init="random", n_init=1, max_iter=2, tol=0, beta=beta, random_state=0)
    with pytest.warns(
        ConvergenceWarning, match="did not converge within 2 steps: allow more, as max_iter=20, or raise tol"
    ) as told:
        model.fit(X, y)
    assert [w.filename for w in told] == [__file__]
    assert model.n_iter_ <= (8 if beta == 1 else 4)  # two each to compare starts, of EM, of L-BFGS, and of EM again
    assert not model.search_.starts[0].converged


@pytest.mark.parametrize("n_labels", [7, 13])
def test_every_class_shows_the_label_it_makes_most_likely(n_labels: int) -> None:
    g = np.random.default_rng(0)
    y = g.integers(n_labels, size=60 * n_labels)
    X = 6 * np.eye(n_labels)[y][:, 1:] + 0.3 * g.normal(size=(len(y), n_labels - 1))
    shown = mj.DiscriminativeLatentClasses(3, n_init=1, random_state=0).fit(X[y >= n_labels - 3], y[y >= n_labels - 3])
    assert "labels, with" not in str(shown.summary())
    model = mj.DiscriminativeLatentClasses(n_labels, n_init=1, random_state=0).fit(X, y)
    (block,) = [block for block in model.summary().blocks if block.heading == "LATENT CLASSES"]
    table = block.content[0]
    assert isinstance(table, Table)
    columns = [column.name for column in table.columns if column.name.startswith("p(")]
    for k, row in enumerate(table.to_records()):
        likeliest = model.classes_[model.class_label_distribution_[k].argmax()]
        assert max(float(row[name]) for name in columns) == row[f"p({likeliest})"]
    assert columns == [f"p({label})" for label in model.classes_ if f"p({label})" in columns]
    told = "labels, with the most likely one of each class among them." in str(model.summary())
    assert told == (len(columns) < n_labels)


def test_labels_beyond_ten_are_left_out_of_the_summary() -> None:
    g = np.random.default_rng(0)
    y = g.integers(12, size=600)
    X = np.sign(y - 5.5)[:, None] + 0.3 * g.normal(size=(600, 2))
    model = mj.DiscriminativeLatentClasses(2, n_init=1, random_state=0).fit(X, y)
    assert "10 of 12 labels, with the most likely one of each class among them." in str(model.summary())
    likeliest = model.classes_[model.class_label_distribution_.argmax(axis=1)]
    assert all(f"p({label})" in str(model.summary()) for label in likeliest)


def test_every_start_draws_its_own_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = xor(40)
    seeds: list[int] = []

    def remembered(*arguments: Any, **named: Any) -> Any:
        seeds.append(named.get("seed", -1))
        return minimize(*arguments, **named)

    monkeypatch.setattr("majorant.models.discriminative_latent_classes.contest.minimize", remembered)
    for _ in range(2):
        mj.DiscriminativeLatentClasses(2, bounds=mj.Tempered(), beta=2.0, random_state=0).fit(X, y)
    drawn = [seed for seed in seeds if seed >= 0]
    assert drawn[:7] == drawn[7:]
    assert len(set(drawn)) == 7


def test_given_starts() -> None:
    X, y = xor(100)
    quadrant = 2 * (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    hard = mj.DiscriminativeLatentClasses(4, init=quadrant).fit(X, y)
    soft = mj.DiscriminativeLatentClasses(4, init=np.eye(4)[quadrant]).fit(X, y)
    assert hard.score(X, y) > 0.97
    assert hard.objective_ == soft.objective_
    assert [s.source for s in hard.search_.starts] == ["given classes"]


def test_search_names_every_start_and_the_trace_falls() -> None:
    X, y = xor(100)
    model = mj.DiscriminativeLatentClasses(4, random_state=0).fit(X, y)
    assert [s.source for s in model.search_.starts] == [
        "labels",
        "ball relaxation",
        "ball relaxation without labels",
        *["k-means++ within labels"] * 4,
    ]
    assert model.search_.best == pytest.approx(model.objective_)
    objective = model.trace_["objective"]
    assert len(objective) == model.n_iter_
    assert (np.diff(objective) <= 1e-9).all()
    assert objective[-1] == pytest.approx(model.objective_)


def test_a_race_keeps_three_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = xor(200)
    whole = mj.DiscriminativeLatentClasses(4, random_state=0).fit(X, y)
    monkeypatch.setattr("majorant.models.discriminative_latent_classes.contest.CHEAP", 0)
    monkeypatch.setattr("majorant.models.discriminative_latent_classes.contest.most_rows", lambda design: 100)
    raced = mj.DiscriminativeLatentClasses(4, random_state=0).fit(X, y)
    assert sum(not s.converged for s in raced.search_.starts) == 4
    assert "sample of 100 rows" in raced.search_.note
    assert raced.objective_ == pytest.approx(whole.objective_, rel=1e-4)


def test_class_proba_and_labels_agree_with_predictions() -> None:
    X, y = a_b_a()
    model = mj.DiscriminativeLatentClasses(3, random_state=0).fit(X, y)
    classes = model.class_proba(X)
    np.testing.assert_allclose(classes.sum(axis=1), 1)
    np.testing.assert_allclose(classes.mean(axis=0), model.class_weights_, atol=1e-9)
    np.testing.assert_allclose(classes @ model.class_label_distribution_, model.predict_proba(X), atol=1e-12)
    assert (np.diff(model.class_weights_) <= 0).all()


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e20, 1e150])
def test_units_do_not_matter(scale: float) -> None:
    X, y = xor(80)
    plain = mj.DiscriminativeLatentClasses(4, random_state=0).fit(X, y)
    scaled = mj.DiscriminativeLatentClasses(4, random_state=0).fit(X * scale, y)
    assert scaled.objective_ == pytest.approx(plain.objective_, rel=1e-5)
    np.testing.assert_allclose(scaled.predict_proba(X * scale), plain.predict_proba(X), atol=0.02)


@pytest.mark.filterwarnings("ignore:X has 1 distinct row")
def test_degenerate_tables() -> None:
    X, y = xor(40)
    with pytest.raises(ValueError, match=r"y holds one class only, 0\.0, among the rows with a label and weight"):
        mj.DiscriminativeLatentClasses(2).fit(X, np.zeros(40))
    same = mj.DiscriminativeLatentClasses(2, random_state=0).fit(np.ones((40, 2)), y)
    np.testing.assert_allclose(same.predict_proba([[1.0, 1.0]])[0], np.bincount(y) / 40, atol=1e-6)
    empty = mj.DiscriminativeLatentClasses(2, random_state=0).fit(sparse.csr_matrix((40, 3)), y)
    np.testing.assert_allclose(empty.predict_proba(np.zeros((1, 3)))[0], np.bincount(y) / 40, atol=1e-6)
    once = np.where(np.arange(40) == 7, "rare", y.astype(str))
    assert "rare" in mj.DiscriminativeLatentClasses(3, random_state=0).fit(X, once).classes_


@pytest.mark.parametrize(
    ("parameters", "y", "words"),
    [
        ({"n_classes": 9}, None, "n_samples=8 should be >= n_classes=9"),
        ({"init": "bal"}, None, "Did you mean 'ball'"),
        ({"init": np.zeros((3, 2))}, None, r"shape \(8,\), or its probabilities, shape \(8, 2\)"),
        ({"init": np.full(8, 2)}, None, "from 0 to 1"),
        ({"init": np.full((8, 2), 0.7)}, None, "sum to one"),
        ({"df": 1.0}, None, "df must lie between 0 and 1"),
        ({"alpha": 0.0}, None, "alpha must be positive"),
        ({"alpha": np.inf}, None, "alpha must be positive and finite; got inf"),
        ({"alpha": np.nan}, None, "alpha must be positive and finite; got nan"),
        ({"beta": np.nan}, None, "beta must be positive; got nan"),
        ({"beta": 0.0}, None, "beta must be positive"),
        ({"unlabelled_weight": -1.0}, None, "unlabelled_weight must be"),
        ({}, np.full(8, np.nan), "no row with weight has a label"),
        ({}, np.arange(8) / 3, "[Uu]nknown label type"),
        ({}, np.array([[0.5, 0.5]] * 5 + [[0.5, 0.499]] + [[0.5, 0.5]] * 2), "rows sum to one.* row 5 sums to 0.999"),
        ({}, np.full((8, 2), 2), "row 0 sums to 4"),
        ({}, np.full((8, 2), -1), "below 0"),
        ({}, np.array([[0.5, np.nan]] + [[0.5, 0.5]] * 7), "row 0 of y is NaN in part"),
        ({}, np.array([["a", "b"]] * 8), "other things than numbers"),
        ({}, np.zeros(5), "8 rows of X"),
        ({}, np.array([0.0] * 7 + [np.inf]), "infinity"),
    ],
)
def test_bad_input(parameters: dict[str, Any], y: Any, words: str) -> None:
    X = np.arange(16.0).reshape(8, 2) % 5
    model = mj.DiscriminativeLatentClasses(**{"n_classes": 2} | parameters)
    with pytest.raises(ValueError, match=words):
        model.fit(X, np.arange(8) % 2 if y is None else y)
    assert not hasattr(model, "classes_")


def test_wrong_types() -> None:
    X, y = xor(20)
    with pytest.raises(TypeError, match="bound policy"):
        mj.DiscriminativeLatentClasses(bounds="gibbs").fit(X, y)
    with pytest.raises(TypeError, match="arrays in memory: pass the array itself"):
        mj.DiscriminativeLatentClasses().fit(mj.Chunks(X), y)


@pytest.mark.parametrize("kernel", ["rbf", lambda x, landmarks: (1 + x @ landmarks.T) ** 2], ids=["rbf", "callable"])
def test_kernels_bend_the_boundaries(kernel: Any) -> None:
    g = np.random.default_rng(0)
    angle, y = g.uniform(0, 2 * np.pi, size=160), g.integers(0, 2, size=160)
    X = (1 + y)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1 * g.normal(size=(160, 2))
    model = mj.DiscriminativeLatentClasses(2, kernel=kernel, alpha=1e-3, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.98
    order = g.permutation(160)
    again = mj.DiscriminativeLatentClasses(2, kernel=kernel, alpha=1e-3, random_state=0).fit(X[order], y[order])
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=1e-5)
    assert "LATENT CLASSES" in str(model.summary())
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        model.fit(sparse.csr_matrix(X), y)
    with pytest.raises(ValueError, match="positive semi-definite"):
        mj.DiscriminativeLatentClasses(2, kernel=lambda x, z: -(x @ z.T)).fit(X, y)
