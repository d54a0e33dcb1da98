"""Views that no row links: the rows do not say how they depend on each other, and the fit says so."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import majorant as mj

VIEWS = {name: mj.Gaussian() for name in ("a", "b", "c")}


def three_views(*there: str, n: int = 120) -> dict[str, Any]:
    """Views of one latent number; block i of the rows has the views that the letters of there[i] name."""
    random = np.random.default_rng(0)
    z = random.normal(size=(n, 1))
    x = {name: z @ random.normal(size=(1, 3)) + 0.3 * random.normal(size=(n, 3)) for name in VIEWS}
    for rows, names in zip(np.array_split(np.arange(n), len(there)), there, strict=True):
        for name in set(VIEWS) - set(names):
            x[name][rows] = np.nan
    return x


def fit(x: dict[str, Any], **settings: Any) -> Any:
    return mj.Harmonium(n_components=1, l2=0.01, views=VIEWS, random_state=0, **settings).fit(x)


@pytest.mark.parametrize(
    ("there", "groups"),
    [
        (("a", "b", "c"), (("a",), ("b",), ("c",))),
        (("ab", "c"), (("a", "b"), ("c",))),
        (("a", "bc"), (("a",), ("b", "c"))),
    ],
)
def test_views_that_never_occur_together_are_named(
    there: tuple[str, ...], groups: tuple[tuple[str, ...], ...], tmp_path: Path
) -> None:
    with pytest.warns(UserWarning, match="No row has views of two of these groups"):
        fitted = fit(three_views(*there))
    assert fitted.certificate_.unlinked == groups
    named = "; ".join(", ".join(map(repr, group)) for group in groups)
    said = f"No row has views of two of these groups: {named}. "
    assert said in fitted.certificate_.sentence
    assert said.split(":")[0] in " ".join(str(fitted.summary()).split())
    fitted.save(tmp_path / "m")
    assert mj.load(tmp_path / "m").certificate_ == fitted.certificate_


@pytest.mark.parametrize("there", [("abc",), ("ab", "bc"), ("a", "ab", "ac"), ("abc", "a", "b", "c")])
def test_views_that_rows_link_are_not(there: tuple[str, ...]) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "No row has views")
        assert fit(three_views(*there)).certificate_.unlinked == ()


def test_rows_without_weight_link_nothing() -> None:
    x = three_views("ab", "a", "bc")
    weights = np.repeat([0.0, 1.0, 1.0], 40)
    with pytest.warns(UserWarning, match="'a'; 'b', 'c'"):
        mj.Harmonium(n_components=1, l2=0.01, views=VIEWS, random_state=0).fit(x, sample_weight=weights)


def two_views(*there: str) -> tuple[dict[str, Any], dict[str, Any]]:
    x = three_views(*there)
    x.pop("c")
    return x, {name: mj.Gaussian() for name in x}


def test_what_is_not_determined_has_no_sign() -> None:
    """Turning one of two unlinked views round changes nothing that rows tell: a prediction across them has no sign."""
    x, views = two_views("a", "b")
    turned = {"a": x["a"], "b": -x["b"]}
    with pytest.warns(UserWarning, match="No row has views"):
        one, other = (mj.Harmonium(1, l2=0.01, views=views, random_state=0).fit(part) for part in (x, turned))
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-6)


BITS = {"a": mj.Gaussian(), "b": mj.Bernoulli(), "c": mj.Gaussian()}


def fit_with_bits(*there: str) -> tuple[Any, dict[str, Any]]:
    """A fit to three views, of which b has bits: whether those of `three_views` are positive."""
    x = three_views(*there, n=300)
    x["b"] = np.where(np.isnan(x["b"]), np.nan, x["b"] > 0)
    with pytest.warns(UserWarning, match="No row has views"):
        return mj.Harmonium(n_components=1, l2=0.01, views=BITS, random_state=0).fit(x), x


@pytest.mark.parametrize("view", ["a", "b"])
@pytest.mark.parametrize("method", ["mean-field", "gibbs"])
def test_a_view_of_which_rows_say_nothing_has_its_means(view: str, method: str) -> None:
    fitted, x = fit_with_bits("a", "b", "c")
    other = "b" if view == "a" else "a"
    shown = x[other][~np.isnan(x[other][:, 0])]
    with pytest.warns(
        UserWarning, match=rf"100 of 100 rows show only views that no row of the fit links with '{view}'"
    ):
        told = fitted.annotate({other: shown}, view, method=method, random_state=0)
    means = np.nanmean(x[view], axis=0)
    np.testing.assert_allclose(told, np.tile(means, (100, 1)), atol=1e-3)


def test_views_that_are_not_linked_say_nothing_beside_those_that_are() -> None:
    """Of rows with a and c, b is told from a alone, with which rows link it."""
    fitted, _ = fit_with_bits("ab", "c")
    new = three_views("abc", n=50)
    with pytest.warns(UserWarning, match="say together is not determined"):
        told = fitted.annotate({"a": new["a"], "c": new["c"]}, "b")
    np.testing.assert_array_equal(told, fitted.annotate({"a": new["a"]}, "b"))
    with pytest.warns(UserWarning, match="say together is not determined"):
        fitted.calibrate({"a": new["a"], "b": new["b"] > 0, "c": new["c"]})
    with pytest.warns(UserWarning, match="say together is not determined"):
        both = fitted.annotate({"a": new["a"], "c": new["c"]}, "b", calibrated=True)
    np.testing.assert_array_equal(both, fitted.annotate({"a": new["a"]}, "b", calibrated=True))


def test_what_cannot_be_compared_is_told() -> None:
    fitted, x = fit_with_bits("ab", "c")
    first, last = ({name: rows[part] for name, rows in x.items()} for part in (slice(150), slice(150, None)))
    cannot = "cannot be compared"
    with pytest.warns(UserWarning, match=cannot):
        fitted.transform(x)
    with pytest.warns(UserWarning, match=cannot):
        fitted.retrieve(first, last)
    with pytest.warns(UserWarning, match="H must be of rows with views of the group of 'b'"):
        fitted.decode(np.zeros((2, 1)), "b")
    with pytest.warns(UserWarning, match="drawn rows"):
        fitted.sample(2)
    new = three_views("abc", n=20)
    with pytest.warns(UserWarning, match="say together is not determined"):
        fitted.score({"a": new["a"], "c": new["c"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.transform(first)
        fitted.retrieve(first, first)
        fitted.score(x)
        fitted.annotate(first, "b")


@pytest.mark.parametrize("loss", ["hinge", "log", "squared"])
def test_a_target_links_views_only_as_far_as_they_tell_of_it(loss: str) -> None:
    """Turned round, one of two views that never occur together gives the same fit, and the opposite prediction."""
    x = three_views("a", "b")
    x.pop("c")
    views = {name: mj.Gaussian() for name in x}
    y = np.random.default_rng(1).permutation(120) % 2  # has nothing to do with either
    given: dict[str, Any] = {"l2": 0.5, "loss": loss, "loss_weight": 1.0, "views": views}
    model = (mj.HarmoniumRegressor if loss == "squared" else mj.HarmoniumClassifier)(2, **given)
    with pytest.warns(UserWarning, match="Only the target links them"):
        one = model.fit(x, y)
    assert one.certificate_.unlinked == (("a",), ("b",)) and "Only the target links them" in one.certificate_.sentence
    objective = one.objective_
    with pytest.warns(UserWarning, match="Only the target links them"):
        other = model.fit({"a": x["a"], "b": -x["b"]}, y)
    assert other.objective_ == pytest.approx(objective, rel=1e-5)
    together = three_views("ab")
    together.pop("c")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "No row has views")
        assert model.fit(together, y).certificate_.unlinked == ()
