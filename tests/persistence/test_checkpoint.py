"""A fit that was ended in its middle goes on from its checkpoint, and its answer is the same to the last bit."""

from __future__ import annotations

import errno
import json
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import majorant as mj
from majorant import registry
from majorant.engine.checkpoint import digest, entered, fit_entered
from majorant.persistence import SavedModelError
from majorant.persistence.archive import read_archive, write_archive

from ..estimators import assert_same_fit

RANDOM = np.random.default_rng(0)
N = 1500
X = RANDOM.normal(size=(N, 2)) + np.repeat([[0.0, 0], [2.5, 0], [0, 2.5]], N // 3, axis=0)
Y = np.where(np.arange(N) % 2, X @ [1.0, 2], -X @ [2.0, 1]) + RANDOM.normal(size=N)
COUNTS = np.round(np.exp(np.clip(Y[::5], -3, 3)))
LABELS = np.repeat([0, 1, 0], N // 3)


def stream(x: NDArray[Any] = X, y: NDArray[Any] = Y) -> Any:
    return mj.open_rows(lambda: ((x[a : a + 400], y[a : a + 400]) for a in range(0, N, 400)))


Fit = Callable[[NDArray[Any]], Any]
FITS: dict[str, Fit] = {
    "kmeans": lambda x: mj.KMeans(4, random_state=0, tol=0).fit(stream(x)),
    "lloyd": lambda x: mj.KMeans(4, algorithm="lloyd", n_init=2, random_state=0).fit(stream(x)),
    "lloyd in memory": lambda x: mj.KMeans(4, algorithm="lloyd", n_init=2, random_state=0).fit(x),
    "explored": lambda x: mj.KMeans(3, bounds=mj.GibbsLimit(), n_init=1, max_iter=40, random_state=0).fit(x),
    "gaussian": lambda x: mj.GaussianMixture(3, random_state=0, tol=1e-6).fit(stream(x)),
    "tempered": lambda x: mj.GaussianMixture(3, beta=0.9, n_init=1, random_state=0).fit(stream(x)),
    "lines": lambda x: mj.RegressionMixture(2, init="random", n_init=2, random_state=0).fit(stream(x)),
    "raced lines": lambda x: mj.RegressionMixture(2, random_state=0).fit(stream(x)),
    "raced in memory": lambda x: mj.GaussianMixture(3, random_state=0).fit(x[::5]),
    "latent classes": lambda x: mj.LatentClassAnalysis(2, random_state=0).fit(np.round(x[::5])),
    "counts": lambda x: mj.RegressionMixture(2, family="poisson", random_state=0).fit(x[::5], COUNTS),
    "states": lambda x: mj.HiddenMarkovModel(2, random_state=0).fit(x[::10]),
    "classes": lambda x: mj.DiscriminativeLatentClasses(2, random_state=0).fit(x[::30], LABELS[::30]),
}


@pytest.fixture
def every_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Copies of the checkpoint, one of every time that it was written."""
    from majorant.persistence import checkpoint

    copies: list[Path] = []
    write = checkpoint._write

    def write_and_copy(path: Any, entries: Any) -> None:
        write(path, entries)
        copies.append(tmp_path / f"copy{len(copies)}")
        shutil.copy(path, copies[-1])

    monkeypatch.setattr(checkpoint, "_write", write_and_copy)
    yield copies
    monkeypatch.undo()


@pytest.mark.parametrize("name", FITS)
def test_from_every_save_to_the_same_end(name: str, every_save: list[Path], tmp_path: Path) -> None:
    fit = FITS[name]
    plain = fit(X)
    with mj.checkpoint(tmp_path / "fit", every=1):
        assert_same_fit(plain, fit(X))
    assert every_save
    saves = list(every_save)
    for copy in saves if len(saves) < 8 else saves[:: len(saves) // 6]:
        with mj.checkpoint(copy):
            assert_same_fit(plain, fit(X))


def test_an_interrupted_fit_has_kept_what_it_did(tmp_path: Path) -> None:
    passes, last = 0, 10**9

    def counting() -> Iterator[Any]:
        nonlocal passes
        passes += 1
        if passes > last:
            raise InterruptedError
        yield X, Y

    def fit() -> Any:
        rows = mj.open_rows(counting)
        return mj.RegressionMixture(2, init="random", n_init=2, random_state=0).fit(rows)

    plain = fit()
    in_full, last, passes = passes, passes - 15, 0
    with pytest.raises(InterruptedError), mj.checkpoint(tmp_path / "fit", every=1000):
        fit()
    passes, last = 0, 10**9
    with mj.checkpoint(tmp_path / "fit"):
        assert_same_fit(plain, fit())
    assert passes <= in_full - 10


def test_several_fits_in_one_block(tmp_path: Path) -> None:
    """Each is resumed from its own place in the file."""
    passes = 0

    def counting() -> Iterator[Any]:
        nonlocal passes
        passes += 1
        yield X

    def fits() -> list[Any]:
        nonlocal passes
        rows, passes = mj.open_rows(counting), 0
        return [mj.KMeans(k, algorithm="lloyd", n_init=1, random_state=0).fit(rows) for k in (5, 6)]

    plain, in_full = fits(), passes
    with mj.checkpoint(tmp_path / "fits"):
        kept = fits()
    with mj.checkpoint(tmp_path / "fits"):
        again = fits()
    assert passes <= in_full - 2  # starts are made on a sample: each fit has few iterations left for all rows
    for expected, one, other in zip(plain, kept, again, strict=True):
        assert_same_fit(one, expected)
        assert_same_fit(other, expected)


NOT_KEPT: dict[str, Fit] = {
    "kmeans": lambda x: mj.KMeans(3, random_state=0).fit(x),
    "margin": lambda x: mj.LatentSVC(2, random_state=0, max_iter=3).fit(x[::30], LABELS[::30]),
    "harmonium": lambda x: mj.Harmonium(2, random_state=0, max_iter=3).fit(x[::30] > 0),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", NOT_KEPT)
def test_a_fit_of_which_nothing_is_kept_says_so(name: str, tmp_path: Path) -> None:
    for x in (X, X if name == "margin" else X + 1):  # other rows are fitted, or refused by a start that is known
        with mj.checkpoint(tmp_path / "fit"), pytest.warns(UserWarning, match="nothing of this .* can be kept") as told:
            kept = NOT_KEPT[name](x)
        assert {warning.filename for warning in told} == {__file__}
        assert_same_fit(NOT_KEPT[name](x), kept)


class TestRefusals:
    @pytest.mark.parametrize("name", ["lloyd", "gaussian", "lines"])
    def test_other_data(self, name: str, tmp_path: Path) -> None:
        with mj.checkpoint(tmp_path / "fit", every=1):
            FITS[name](X)
        moved = X.copy()
        moved[N - 1, 1] += 1e-6
        with pytest.raises(mj.CheckpointError, match="of other data"), mj.checkpoint(tmp_path / "fit"):
            FITS[name](moved)

    def test_other_parameters(self, tmp_path: Path) -> None:
        with mj.checkpoint(tmp_path / "fit"):
            mj.KMeans(algorithm="lloyd", n_clusters=3, random_state=0, n_jobs=1).fit(X)
        with mj.checkpoint(tmp_path / "fit"):
            mj.KMeans(algorithm="lloyd", n_clusters=3, random_state=0, n_jobs=2).fit(X)
        expected = "of other parameters of KMeans: n_clusters was 3 and is 4, random_state was 0 and is 1; name another"
        with pytest.raises(mj.CheckpointError, match=expected), mj.checkpoint(tmp_path / "fit"):
            mj.KMeans(algorithm="lloyd", n_clusters=4, random_state=1).fit(X)

    def test_another_model(self, tmp_path: Path) -> None:
        with mj.checkpoint(tmp_path / "fit"):
            mj.KMeans(algorithm="lloyd", n_clusters=3, random_state=0).fit(X)
        expected = "it has KMeans where GaussianMixture is fitted"
        with pytest.raises(mj.CheckpointError, match=expected), mj.checkpoint(tmp_path / "fit"):
            mj.GaussianMixture(3, random_state=0).fit(X)

    def test_starts_that_differ_every_time(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="random_state=None draws other numbers"), mj.checkpoint(tmp_path / "fit"):
            mj.KMeans(3).fit(X)

    @pytest.mark.parametrize("content", [b"", b"something else", b"PK\x03\x04"])
    def test_a_file_that_is_no_checkpoint(self, content: bytes, tmp_path: Path) -> None:
        (tmp_path / "fit").write_bytes(content)
        with pytest.raises(SavedModelError, match="is not a checkpoint"), mj.checkpoint(tmp_path / "fit"):
            pass
        assert (tmp_path / "fit").read_bytes() == content

    @pytest.mark.parametrize(
        "other", ["MixtureThatWent", "Trace", "majorant.engine.trace:Trace", "os:system", "KMeans", 3, [3]]
    )
    def test_a_class_that_is_no_parameter(self, other: Any, tmp_path: Path) -> None:
        with mj.checkpoint(tmp_path / "fit"):
            FITS["gaussian"](X)
        with (tmp_path / "fit").open("rb") as stream:
            meta, arrays = read_archive(stream)
        text = json.dumps(meta)
        assert '{"value": "Normals"' in text
        meta = json.loads(text.replace('{"value": "Normals"', f'{{"value": {json.dumps(other)}'))
        with (tmp_path / "fit").open("wb") as stream:
            write_archive(stream, meta, arrays)
        with pytest.raises(SavedModelError, match="is not a checkpoint from which a fit can be resumed"):
            mj.checkpoint(tmp_path / "fit").__enter__()

    def test_a_class_of_parameters_that_went(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        with mj.checkpoint(tmp_path / "fit"):
            FITS["gaussian"](X)
        monkeypatch.delitem(registry.VALUES, "Normals")
        with pytest.raises(SavedModelError, match="is not a checkpoint from which a fit can be resumed"):
            mj.checkpoint(tmp_path / "fit").__enter__()

    def test_a_saved_model_is_none_either(self, tmp_path: Path) -> None:
        mj.KMeans(3, random_state=0).fit(X).save(tmp_path / "model")
        with pytest.raises(SavedModelError, match="is not a checkpoint"), mj.checkpoint(tmp_path / "model"):
            pass

    def test_every(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="every"), mj.checkpoint(tmp_path / "fit", every=0):
            pass


def valued(seed: int) -> list[Any]:
    """A value of every type that a saved model may hold as a parameter, and of some more; others for another seed."""
    search, trace = (getattr(mj.KMeans(2 + seed, random_state=0).fit(X[:50]), name) for name in ("search_", "trace_"))
    mixed, texts = np.empty(2, dtype=object), np.array(["a", f"{seed}"], dtype=object)
    mixed[:] = [(1, 2), {seed}]
    plain = [seed, seed > 0, float(seed), f"{seed}", [1, seed], (1, seed), {"a": seed}, {seed: "a"}, [[1, seed], 23]]
    more = [slice(seed, 4), f"{seed}".encode(), {"a", f"{seed}"}, frozenset({seed}), np.arange(seed, 4), mixed, texts]
    random = [np.float32(seed), np.random.RandomState(seed), np.random.default_rng(seed)]
    ours = [
        mj.GibbsLimit(eta=0.2 + seed / 2),
        mj.Bernoulli(slice(seed, 12)),
        mj.Gaussian(["a", f"b{seed}"]),
        search,
        trace,
    ]
    return [*plain, *more, *random, *ours]


def test_every_type_of_parameter_is_told_apart() -> None:
    found = [[digest(value) for value in valued(seed)] for seed in (0, 1, 0)]
    assert found[0] == found[2]
    assert not set(found[0]) & set(found[1])
    assert digest([[1], 23]) != digest([[12], 3])


def test_views_of_columns_under_a_checkpoint(tmp_path: Path) -> None:
    enter_with(tmp_path, mj.Bernoulli(slice(0, 12)))
    enter_with(tmp_path, mj.Bernoulli(slice(0, 12)))
    with pytest.raises(mj.CheckpointError, match="of other parameters"):
        enter_with(tmp_path, mj.Bernoulli(slice(0, 13)))


@pytest.mark.parametrize("function", [len, lambda x: x, np.linalg.norm, partial(max, 1)])
def test_a_function_as_parameter_is_refused_by_name(function: Any, tmp_path: Path) -> None:
    name = getattr(function, "__qualname__", "partial")
    with pytest.raises(ValueError, match=f"the function {re.escape(name)} cannot be distinguished"):
        enter_with(tmp_path, [function])


def enter_with(folder: Path, value: Any) -> None:
    with mj.checkpoint(folder / "fit"), fit_entered("Model", {"parameter": value}):
        entered(loop="any")


@pytest.mark.parametrize("name", ["", "."])
def test_a_folder_is_told_before_any_fit(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="path must name a file that keeps the fit; got"), mj.checkpoint(name):
        pytest.fail("the block must not begin")


def test_what_is_no_checkpoint_stays_and_the_way_out_is_told(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("dear")
    with pytest.raises(SavedModelError, match="Name another file, or delete this one"), mj.checkpoint(path):
        pytest.fail("the block must not begin")
    assert path.read_text() == "dear"


def test_a_full_disk_is_told_and_the_fit_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, n_calls = tmp_path / "c", 0

    def full_at_first(*arguments: Any) -> None:
        nonlocal n_calls
        n_calls += 1
        if n_calls <= 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_archive(*arguments)

    monkeypatch.setattr("majorant.persistence.checkpoint.write_archive", full_at_first)
    model = partial(mj.KMeans, 3, algorithm="lloyd", init="random", random_state=0)
    full = r"could not be written \(No space left on device\): the fit continues"
    with pytest.warns(UserWarning, match=full) as told, mj.checkpoint(path, every=1):
        fitted = model().fit(X)
    assert len(told) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["c"]
    assert_same_fit(fitted, model().fit(X))
    with mj.checkpoint(path):  # the last writing had room
        assert_same_fit(model().fit(X), fitted)


def test_another_fault_than_a_full_disk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("majorant.persistence.checkpoint.write_archive", refused)
    with pytest.raises(PermissionError), mj.checkpoint(tmp_path / "c"):
        mj.KMeans(3, algorithm="lloyd", random_state=0).fit(X)
