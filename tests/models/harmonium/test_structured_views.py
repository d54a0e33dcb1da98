"""Chains and bits with edges as users meet them: forms of X, labels in the order, views that are missing, refusals."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, logsumexp

import majorant as mj
from majorant.models.harmonium.structure import ChainStructure, GraphStructure, natural

Array = NDArray[np.float64]


def documents(n: int = 120, words: int = 4, steps: int = 5, seed: int = 0) -> tuple[Array, NDArray[np.intp]]:
    """Words that last where the label is 1, as frequent as elsewhere; every third document lacks two paragraphs."""
    g = np.random.default_rng(seed)
    y = g.integers(0, 2, n)
    x = (g.random((n, steps, words)) < 0.5).astype(float)
    for p in range(1, steps):
        lasts = g.random((n, words)) < np.where(y == 1, 0.8, 0.1)[:, None]
        x[:, p] = np.where(lasts, x[:, p - 1], x[:, p])
    x[::3, steps - 2 :] = np.nan
    return x, y


def chain(n: int = 3, length: int = 4, seed: int = 0) -> tuple[ChainStructure, Array, NDArray[np.float64]]:
    """A structure of two words, natural parameters, and all paths of a word."""
    g = np.random.default_rng(seed)
    structure = ChainStructure(2, True, length, g.uniform(0.2, 0.6, 4), np.ones(4), g.uniform(0.2, 0.8, 2))
    return structure, 1.5 * g.normal(size=(n, 4)), np.array(list(product([0.0, 1.0], repeat=length)))


def test_the_law_of_a_chain_is_that_of_enumeration() -> None:
    structure, eta, paths = chain()
    on, both = paths.sum(axis=1), (paths[:, 1:] * paths[:, :-1]).sum(axis=1)
    expected, root = structure.expected(eta), np.sqrt(4)
    for d, i in product(range(3), range(2)):
        score = eta[d, i] * on + eta[d, 2 + i] * both
        p = np.exp(score - logsumexp(score))
        np.testing.assert_allclose(structure.probabilities(eta)[d, :, i], p @ paths, rtol=1e-12)
        node = p @ on / root - root * structure.centre[i]
        coupling = p @ both / root - 3 / root * structure.centre[2 + i]
        found = expected[d, [i, 2 + i]]
        np.testing.assert_allclose(found, [node, coupling - structure.slope[i] * node], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(structure.rates(expected)[:, :2], structure.probabilities(eta).mean(axis=1), rtol=1e-12)


def test_draws_of_chains_have_their_probabilities() -> None:
    structure, eta, _ = chain(1)
    drawn = structure.drawn(np.repeat(eta, 20_000, axis=0), np.random.default_rng(0), None)
    np.testing.assert_allclose(drawn.mean(axis=0), structure.probabilities(eta)[0], atol=0.02)
    np.testing.assert_allclose(structure.features_of(drawn).mean(axis=0), structure.expected(eta)[0], atol=0.03)


def test_steps_on_a_graph_keep_its_law() -> None:
    """Rows drawn from the law stay so: frequencies of all sixteen states before and after a step."""
    g = np.random.default_rng(0)
    edges = np.array([[0, 1], [0, 2], [1, 2], [2, 3]])
    structure = GraphStructure(4, False, edges, np.zeros(8), np.ones(8))
    states = np.array(list(product([0.0, 1.0], repeat=4)))
    eta = g.normal(size=8)
    score = states @ eta[:4] + states[:, edges].prod(axis=2) @ eta[4:]
    p = np.exp(score - logsumexp(score))
    n = 40_000
    x = states[np.searchsorted(np.cumsum(p), g.random(n))]
    after = structure.drawn(np.tile(eta, (n, 1)), g, x)
    counts = np.bincount((after @ [8, 4, 2, 1]).astype(int), minlength=16)
    assert ((counts - n * p) ** 2 / (n * p)).sum() < 15 + 5 * np.sqrt(30)
    np.testing.assert_array_equal(np.sort(np.concatenate(structure._colours)), np.arange(4))
    for nodes in structure._colours:
        assert not np.isin(edges, nodes).all(axis=1).any()
    alone = GraphStructure(2, False, np.empty((0, 2), dtype=int), np.zeros(2), np.ones(2))
    np.testing.assert_allclose(alone.probabilities(eta[None, :2]), expit(eta[None, :2]))


def test_labels_in_the_order_of_paragraphs() -> None:
    x, y = documents(240)
    train, test = slice(0, 160), slice(160, None)
    for view, low, high in ((mj.Chain(), 0.85, 1.0), (mj.Chain(latent_transitions=False), 0.3, 0.7)):
        model = mj.HarmoniumClassifier(3, views={"words": view}, l2=50.0).fit({"words": x[train]}, y[train])
        assert low <= model.score({"words": x[test]}, y[test]) <= high
        assert model.certificate_.is_global
    assert not model.coupling_loadings("words").any()


def test_forms_of_x_are_the_same_documents() -> None:
    x, _ = documents(40)
    lists = [d[~np.isnan(d[:, 0])] for d in x]
    settings: dict[str, Any] = {"l2": 1.0, "tol": 1e-6}
    model = mj.Harmonium(2, views={"words": mj.Chain()}, **settings)
    expected = model.fit({"words": x}).transform({"words": x})
    for form in (lists, [sparse.csr_matrix(d) for d in lists], tuple(d.astype(int) for d in lists)):
        np.testing.assert_array_equal(model.fit({"words": form}).transform({"words": form}), expected)
    table = x.reshape(len(x), -1)
    columns = mj.Harmonium(2, views={"words": mj.Chain(slice(0, 20), n_steps=5)}, **settings).fit(table)
    np.testing.assert_array_equal(columns.transform(table), expected)
    counted = mj.Harmonium(2, views={"words": mj.Chain(binarize=1)}, **settings).fit({"words": 3 * x})
    np.testing.assert_array_equal(counted.transform({"words": 3 * x}), expected)


def test_weights_are_repeats_and_the_order_of_rows_does_not_matter() -> None:
    x, y = documents(30)
    view = {"words": mj.Chain()}
    weights = np.random.default_rng(5).integers(0, 3, 30)
    settings: dict[str, Any] = {"l2": 5.0, "tol": 1e-6}
    weighted = mj.HarmoniumClassifier(2, views=view, **settings).fit({"words": x}, y, sample_weight=weights)
    rows = np.random.default_rng(1).permutation(np.repeat(np.arange(30), weights))
    repeated = mj.HarmoniumClassifier(2, views=view, **settings).fit({"words": x[rows]}, y[rows])
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-6, atol=1e-9)


@pytest.fixture(scope="module")
def mixed() -> tuple[dict[str, Any], dict[str, Any]]:
    """Words, marks on a triangle and two sizes that one cause drives; as X and as views."""
    g = np.random.default_rng(3)
    h = g.normal(size=400)
    x = (g.random((400, 4, 3)) < expit(1.5 * h)[:, None, None]).astype(float)
    x[::4, 3:] = np.nan
    marks = (g.random((400, 3)) < expit(2 * h)[:, None]).astype(float)
    sizes = h[:, None] + 0.5 * g.normal(size=(400, 2))
    views = {"words": mj.Chain(), "marks": mj.Bernoulli(edges=[(0, 1), (1, 2), (0, 2)]), "sizes": mj.Gaussian()}
    return {"words": x, "marks": marks, "sizes": sizes}, views


def test_views_that_are_missing(mixed: Any) -> None:
    X, views = mixed
    model = mj.Harmonium(3, views=views, l2=0.3, tol=1e-6).fit(X)
    rest = {name: X[name] for name in ("marks", "sizes")}
    found = model.annotate(rest, "words")
    assert found.shape == (400, 4, 3)
    there = ~np.isnan(X["words"])
    assert np.corrcoef(found[there], X["words"][there])[0, 1] > 0.4
    assert model.annotate(X, "marks").shape == (400, 3)
    partly = {**X, "words": X["words"].copy(), "marks": X["marks"].copy()}
    partly["words"][:200] = np.nan
    partly["marks"][100:300] = np.nan
    whole = model.transform(X)
    assert np.corrcoef(model.transform(partly)[:, 0], whole[:, 0])[0, 1] > 0.8
    np.testing.assert_array_equal(model.transform(partly)[300:], whole[300:])
    again = mj.Harmonium(3, views=views, l2=0.3, tol=1e-6).fit(partly)
    assert again.certificate_.eigenvalue is not None  # what is not there is left out: still convex
    nothing = {"words": np.full((1, 2, 3), np.nan), "marks": np.full((1, 3), np.nan), "sizes": np.full((1, 2), np.nan)}
    assert np.isfinite(model.transform(nothing)).all()


def test_what_latents_say_of_a_view(mixed: Any) -> None:
    X, views = mixed
    model = mj.Harmonium(2, views=views, l2=0.3, tol=1e-6).fit(X)
    h = np.random.default_rng(0).normal(size=(3, model.n_components_))
    fitted = next(v for v in model.views_ if v.name == "words")
    eta = natural(fitted.structure, h, model.components_.T[2:8], model.intercept_[2:8])  # after the two sizes
    paths = np.array(list(product([0.0, 1.0], repeat=4)))
    for d, i in product(range(3), range(3)):
        score = eta[d, i] * paths.sum(axis=1) + eta[d, 3 + i] * (paths[:, 1:] * paths[:, :-1]).sum(axis=1)
        p = np.exp(score - logsumexp(score))
        np.testing.assert_allclose(model.decode(h, "words")[d, :, i], p @ paths, rtol=1e-11)
    assert model.decode(h, "marks").shape == (3, 3) and model.decode(h, "sizes").shape == (3, 2)
    with pytest.raises(ValueError, match="H must have a column for each of"):
        model.decode(np.ones((3, 7)), "words")


def test_samples_look_like_rows(mixed: Any) -> None:
    X, views = mixed
    model = mj.Harmonium(2, views=views, l2=0.05, tol=1e-6).fit(X)
    drawn = model.sample(12_000, n_sweeps=60, random_state=0)
    words = X["words"][~np.isnan(X["words"][:, 3, 0])]
    assert drawn["words"].shape == (12_000, 4, 3) and sparse.issparse(drawn["marks"])
    for found, given in ((drawn["words"], words), (drawn["marks"].toarray(), X["marks"])):
        np.testing.assert_allclose(found.mean(axis=0), given.mean(axis=0), atol=0.05)
    a, b = drawn["marks"].toarray(), X["marks"]
    assert np.corrcoef(b.T).min() > 0.35
    np.testing.assert_allclose(np.corrcoef(a.T), np.corrcoef(b.T), atol=0.05)


def test_targets_files_and_pages(mixed: Any, tmp_path: Path) -> None:
    X, views = mixed
    y = (X["sizes"][:, 0] > 0).astype(int)
    rest = {name: view for name, view in views.items() if name != "sizes"}
    data = {name: X[name] for name in rest}
    model = mj.HarmoniumClassifier(2, views=rest, loss="log", l2=1.0, tol=1e-6).fit(data, y)
    assert model.predict_proba(data).shape == (400, 2) and model.score(data, y) > 0.7
    rating = mj.HarmoniumRegressor(2, views=rest, l2=1.0, tol=1e-6).fit(data, X["sizes"][:, 0])
    assert rating.score(data, X["sizes"][:, 0]) > 0.3
    model.save(tmp_path / "model")
    kept = mj.load(tmp_path / "model")
    np.testing.assert_array_equal(kept.decision_function(data), model.decision_function(data))
    np.testing.assert_array_equal(kept.annotate(data, "words"), model.annotate(data, "words"))
    text = str(model.summary())
    assert "bernoulli, 3 edges" in text and "chain" in text
    assert model.loadings("words").shape == (3, model.n_components_)
    assert model.coupling_loadings("marks").shape == (3, model.n_components_)


def test_words_and_edges_that_do_not_vary() -> None:
    x, y = documents(60)
    x[:, :, 1] = np.where(np.isnan(x[:, :, 1]), np.nan, 1.0)
    marks = np.column_stack([x[:, 0, 0], np.zeros(60), x[:, 0, 2]])
    views = {"words": mj.Chain(), "marks": mj.Bernoulli(edges=[("marks1", "marks2"), (0, 2)], latent_edges=True)}
    X = {"words": x, "marks": marks}
    model = mj.HarmoniumClassifier(2, views=views, l2=5.0, tol=1e-6).fit(X, y)
    assert not model.loadings("words")[1].any() and not model.coupling_loadings("words")[1].any()
    loadings = model.coupling_loadings("marks")
    assert loadings.shape == (2, model.n_components_) and not loadings[0].any() and loadings[1].any()
    assert (model.annotate(X, "words")[:, :, 1] > 0.99).all()
    one = mj.Harmonium(1, views={"words": mj.Chain()}, l2=1.0).fit({"words": x[:, :1]})
    assert np.isfinite(one.transform({"words": x})).all()


@pytest.mark.parametrize(
    ("view", "values", "message"),
    [
        (mj.Chain(), np.ones((4, 6)), "must be an array of shape"),
        (mj.Chain(n_steps=4), np.ones((4, 6)), r"6 columns: they are not 4 paragraphs"),
        (mj.Chain(n_steps=4), np.ones((4, 3, 2)), r"n_steps=4, but its array holds 3 paragraphs a document"),
        (mj.Chain(), [np.ones((2, 3)), np.ones((2, 2))], "the same words in all"),
        (mj.Chain(), 2 * np.ones((4, 2, 3)), r"it has 2 in paragraph 0, column 0.*Chain\(binarize=0\)"),
        (mj.Chain(), np.full((4, 2, 3), np.inf), "contains infinity"),
        (
            mj.Chain(),
            np.where(np.arange(3) == 1, np.nan, np.ones((4, 2, 3))),
            "NaN in column 1 of paragraph 0 of row 0",
        ),
        (mj.Chain(), [None] * 4, "None for every row"),
        (mj.Chain([0, 1]), np.ones((4, 2)), "give n_steps"),
        (mj.Chain(n_steps=0), np.ones((4, 2)), "n_steps"),
        (mj.Chain(latent_transitions="yes"), np.ones((4, 2, 2)), "latent_transitions must be True or False"),
        (mj.Bernoulli(edges=[(0, 1, 2)]), np.eye(4), "edges must be a list of pairs"),
        (mj.Bernoulli(edges=3), np.eye(4), "edges must be a list of pairs"),
        (mj.Bernoulli(edges=[(0, 4)]), np.eye(4), "none is number 4"),
        (mj.Bernoulli(edges=[(0, -1)]), np.eye(4), "none is number -1"),
        (mj.Bernoulli(edges=[("bits1", "bits9")]), np.eye(4), "no column 'bits9'"),
        (mj.Bernoulli(edges=[(0, 0)]), np.eye(4), "leads from a column to itself"),
        (mj.Bernoulli(edges=[(0, 1), (1, 0)]), np.eye(4), "there twice"),
        (mj.Bernoulli(edges=[(0, True)]), np.eye(4), "pairs of numbers or names"),
    ],
)
def test_refusals(view: Any, values: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        mj.Harmonium(1, views={"bits": view}).fit({"bits": values})


def test_methods_that_do_not_know_structure(mixed: Any) -> None:
    X, views = mixed
    with pytest.raises(ValueError, match="no mean field of chains"):
        mj.Harmonium(1, views=views, method="cd").fit(X)
    model = mj.Harmonium(1, views=views, l2=1.0, tol=1e-6).fit(X)
    with pytest.raises(ValueError, match="does not sample chains"):
        model.annotate(X, "words", method="gibbs")
    with pytest.raises(ValueError, match="has no couplings"):
        model.coupling_loadings("sizes")
    with pytest.raises(ValueError, match="features"):
        model.transform({**X, "words": X["words"][:, :, :2]})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (np.zeros((5, 0, 3)), "view 'words' has 0 paragraphs of 3 words"),
        (np.zeros((5, 2, 0)), "view 'words' has 2 paragraphs of 0 words"),
        (np.full((5, 2, 3), "1"), "view 'words' must hold numbers; got texts, such as '1'"),
    ],
)
def test_documents_without_words_or_of_texts_are_refused_as_such(words: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mj.Harmonium(2, views={"words": mj.Chain()}, l2=0.1).fit({"words": words})
