"""Dask collections: the answers of the same chunks from memory, whatever the workers are and whatever befalls them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import majorant as mj
from majorant.data.chunks import Chunks
from majorant.data.storage import stored_rows

distributed = pytest.importorskip("distributed", reason="needs majorant[dask]")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

from majorant.data.cluster import ClusterError, ClusterRows, DaskRows  # noqa: E402

from ..estimators import assert_same_fit  # noqa: E402

RANDOM = np.random.default_rng(0)
N = 3000
X = RANDOM.normal(size=(N, 2)) + np.repeat([[0.0, 0], [3, 0], [0, 3]], N // 3, axis=0)[RANDOM.permutation(N)]
Y = np.where(np.arange(N) % 2, X @ [1.0, 2], -X @ [2.0, 1]) + 0.3 * RANDOM.normal(size=N)
W = RANDOM.uniform(0.5, 2, size=N)
LENGTHS = (600, 600, 600, 1199, 1)
"""Of very different lengths."""
CUTS = np.concatenate([[0], np.cumsum(LENGTHS)])

OFFSET = RANDOM.normal(size=N)

Fit = Callable[[Any, Any, Any], Any]


def offset_of(x: Any) -> Any:
    """The offset of rows, as a Dask array where they are one."""
    return OFFSET if isinstance(x, Chunks) else da.from_array(OFFSET, chunks=(LENGTHS,))


FITS: dict[str, Fit] = {
    "kmeans": lambda x, y, w: mj.KMeans(3, random_state=0).fit(x, sample_weight=w),
    "gaussian": lambda x, y, w: mj.GaussianMixture(3, random_state=0, max_iter=20).fit(x, sample_weight=w),
    "regression": lambda x, y, w: mj.RegressionMixture(2, random_state=0).fit(x, y, sample_weight=w),
    "student": lambda x, y, w: mj.RegressionMixture(2, family="student", shared=["intercept"], random_state=0).fit(
        x, y, sample_weight=w, offset=offset_of(x)
    ),
    "walk": lambda x, y, w: mj.KMeans(3, bounds=mj.RandomWalk(), n_init=1, init=X[:3], max_iter=8, random_state=0).fit(
        x, sample_weight=w
    ),
}
"""The last one keeps labels beside the partitions from pass to pass, and draws by them."""


def parts() -> Iterator[tuple[NDArray[Any], ...]]:
    for a, b in pairwise(CUTS.tolist()):
        yield X[a:b], Y[a:b], W[a:b]


def arrays() -> tuple[Any, Any, Any]:
    return tuple(da.from_array(column, chunks=(LENGTHS, *([(2,)] * (column.ndim - 1)))) for column in (X, Y, W))  # type: ignore[return-value]


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """The fits of the same chunks from memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *a, **k: None)
        return {name: fit(mj.open_rows(parts), None, None) for name, fit in FITS.items()}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A cluster of two processes on the loopback address."""
    from distributed import Client, LocalCluster

    patch = pytest.MonkeyPatch()
    patch.setattr("majorant.data.cluster.FAN", 2)  # a tree of several levels
    with (
        LocalCluster(2, host="127.0.0.1", threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client
    patch.undo()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
class TestFits:
    @pytest.mark.parametrize("name", FITS)
    def test_workers_give_the_answer_of_memory(self, name: str, expected: dict[str, Any], client: Any) -> None:
        assert isinstance(stored_rows(arrays()[0]), ClusterRows)
        model = FITS[name](*arrays())
        assert_same_fit(expected[name], model)
        assert not any("dask" in type(value).__module__ for value in vars(model).values())

    @pytest.mark.parametrize("name", FITS)
    def test_so_does_no_cluster(self, name: str, expected: dict[str, Any]) -> None:
        import dask

        with dask.config.set(scheduler="synchronous"), pytest.MonkeyPatch.context() as patch:
            patch.setattr("distributed.get_client", _no_client)
            assert type(stored_rows(arrays()[0])) is DaskRows
            model = FITS[name](*arrays())
        assert_same_fit(expected[name], model)
        assert not hasattr(model, "feature_names_in_")  # rows of numpy may be predicted without a warning

    @pytest.mark.parametrize(("name", "at"), [("walk", 4), ("gaussian", 3)])
    def test_a_worker_that_is_killed(
        self, at: int, name: str, expected: dict[str, Any], client: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With kill -9, while a pass is under way: what it had is made again, what lay beside its rows too."""
        passes, victims = 0, list(client.run(os.getpid).values())
        sent = ClusterRows._sent

        def sent_and_killed(self: ClusterRows, f: Any) -> Any:
            nonlocal passes
            passes += 1
            if passes == at:
                threading.Timer(0.02, os.kill, (victims[0], signal.SIGKILL)).start()
            return sent(self, f)

        monkeypatch.setattr(ClusterRows, "_sent", sent_and_killed)
        assert_same_fit(expected[name], FITS[name](*arrays()))
        assert passes > at and victims[0] not in client.run(os.getpid).values()

    def test_a_frame_with_partitions_of_unknown_length(self, expected: dict[str, Any], client: Any) -> None:
        frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y, "w": W, "part": np.repeat(range(5), LENGTHS)})
        cut = dd.from_pandas(frame, npartitions=1).repartition(divisions=[*CUTS[:-1].tolist(), N - 1], force=True)
        rows = cut[cut["part"] >= 0]  # an empty filter, after which Dask knows no lengths
        model = FITS["regression"](rows[["a", "b"]], rows["y"], rows["w"])
        assert_same_fit(expected["regression"], model)
        assert model.feature_names_in_.tolist() == ["a", "b"]
        with pytest.raises(
            ValueError, match="the columns are b, a; RegressionMixture was fitted to a, b, in this order"
        ):
            model.predict(rows[["b", "a"]])
        part = cut[cut["part"] < 2]  # most partitions are empty
        small = FITS["kmeans"](part[["a", "b"]], None, part["w"])
        plain = FITS["kmeans"](
            mj.open_rows(lambda: [(X[a:b], Y[a:b], W[a:b]) for a, b in ((0, 600), (600, 1200))]), 0, None
        )
        assert_same_fit(plain, small)

    def test_predictions(self, expected: dict[str, Any], client: Any) -> None:
        x, y, _ = arrays()
        model, lines = expected["kmeans"], expected["regression"]
        np.testing.assert_array_equal(model.predict(x), model.predict(X))
        np.testing.assert_array_equal(model.transform(x), model.transform(X))
        np.testing.assert_array_equal(
            x.map_blocks(model.predict, drop_axis=1, dtype=np.int32).compute(), model.predict(X)
        )
        np.testing.assert_array_equal(lines.predict_proba(x, y), lines.predict_proba(X, Y))
        np.testing.assert_allclose(
            model.score(x, sample_weight=arrays()[2]), model.score(X, sample_weight=W), rtol=1e-12
        )


def _no_client() -> Any:
    raise ValueError("no client")


class TestMistakes:
    @pytest.fixture(params=["cluster", "none"])
    def either(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        """With a cluster, and without one."""
        if request.param == "none":
            monkeypatch.setattr("distributed.get_client", _no_client)
        else:
            request.getfixturevalue("client")

    @pytest.mark.usefixtures("either")
    def test_a_partition_that_raises_is_named(self) -> None:
        def fail(block: NDArray[Any], block_info: Any = None) -> NDArray[Any]:
            if block_info[0]["chunk-location"][0] == 2:
                raise KeyError("no such file")
            return block

        x = arrays()[0].map_blocks(fail, dtype=float)
        model = mj.KMeans(2)
        with pytest.raises(ClusterError, match=r"partition 2 of X raised KeyError: 'no such file'"):
            model.fit(x)
        assert not hasattr(model, "labels_")

    @pytest.mark.usefixtures("either")
    def test_what_a_fit_refuses_is_told_as_ever(self) -> None:
        gap = X.copy()
        gap[1234, 1] = np.nan
        with pytest.raises(ValueError, match="row 1234, column 1 of X is nan: drop rows"):
            mj.KMeans(2).fit(da.from_array(gap, chunks=(LENGTHS, (2,))))
        with pytest.raises(ValueError, match="weights must be finite and not negative; row 7 has -1"):
            mj.KMeans(2).fit(arrays()[0], sample_weight=da.from_array(np.where(np.arange(N) == 7, -1, W), chunks=500))

    @pytest.mark.usefixtures("either")
    def test_columns_that_do_not_go_with_x(self) -> None:
        x = arrays()[0]
        model = mj.RegressionMixture(2)
        with pytest.raises(TypeError, match=r"y must be one too; got ndarray: dask\.array\.from_array"):
            model.fit(x, Y)
        with pytest.raises(ValueError, match="y is needed"):
            model.fit(x)
        with pytest.raises(ValueError, match=r"X has 3000 rows in 5 partitions and y 2999 .* from partition 0 on"):
            model.fit(x, da.from_array(Y[1:], chunks=299))
        with pytest.raises(TypeError, match="y must be one column of numbers; got a Dask Array"):
            model.fit(x, x)
        with pytest.raises(TypeError, match="sample_weight must be one too; got ndarray"):
            mj.KMeans(2).fit(x, sample_weight=W)

    @pytest.mark.parametrize(
        ("x", "error", "message"),
        [
            (da.zeros(5), ValueError, r"must have two dimensions \(rows, columns\); got a Dask Array"),
            (da.from_array(np.array([["a"]])), TypeError, "X must hold numbers; it holds <U1"),
            (dd.from_pandas(pd.DataFrame({"a": [1.0], "b": ["x"]}), 1), TypeError, "column 'b' of X holds"),
            (da.zeros((0, 2)), ValueError, "X has no rows"),
        ],
        ids=["one dimension", "text", "a column of text", "no rows"],
    )
    @pytest.mark.usefixtures("either")
    def test_what_is_no_table_of_numbers(self, x: Any, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            mj.KMeans(1).fit(x)

    def test_models_that_need_all_rows_say_so(self) -> None:
        with pytest.raises(TypeError, match="takes rows in memory, as an array or a data frame; got a Dask Array"):
            mj.LatentPrototypeClassifier(2).fit(arrays()[0], np.arange(N) % 2)
        with pytest.raises(TypeError, match=r"samples in memory.* got a Dask Array.*one sample at a time"):
            mj.LatentSVC().fit(arrays()[0], np.arange(N) % 2)

    def test_parts_need_rows_in_memory(self, client: Any) -> None:
        source = stored_rows(arrays()[0])
        assert isinstance(source, ClusterRows)
        with pytest.raises(TypeError, match="cannot be parted into folds"):
            Chunks(source).part(np.arange(N) < 5)
        np.testing.assert_array_equal(np.concatenate([block.columns[0] for block in source.blocks()]), X)

    @pytest.mark.parametrize(
        ("lost", "message"),
        [
            (lambda cluster: cluster.close(), "the client lost its scheduler"),
            # Dask waits forever; a fit waits for a while, and ends as if the scheduler were lost
            (lambda cluster: cluster.scale(0), "no worker was available for 0 s"),
        ],
        ids=["scheduler", "all workers"],
    )
    def test_a_cluster_that_is_lost(self, lost: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """In the middle of a fit: an error that says so, and the estimator is as it was."""
        from distributed import Client, LocalCluster

        monkeypatch.setattr("majorant.data.cluster.LOOK", 0.05)
        monkeypatch.setattr("majorant.data.cluster.PATIENCE", 0.3)
        passes, sent = 0, ClusterRows._sent

        def sent_and_lost(self: ClusterRows, f: Any) -> Any:
            nonlocal passes
            passes += 1
            if passes == 3:
                lost(cluster)
            return sent(self, f)

        monkeypatch.setattr(ClusterRows, "_sent", sent_and_lost)
        with LocalCluster(1, processes=False, dashboard_address=":0") as cluster, Client(cluster):
            model = mj.GaussianMixture(2, random_state=0)
            with pytest.raises(ClusterError, match=message):
                model.fit(arrays()[0])
            assert passes == 3 and not hasattr(model, "means_")

    def test_a_task_that_times_out_by_itself(self, client: Any) -> None:
        def late(block: NDArray[Any]) -> NDArray[Any]:
            raise TimeoutError("the file server is slow")

        with pytest.raises(ClusterError, match="partition 0 of X raised TimeoutError: the file server is slow"):
            mj.KMeans(2).fit(arrays()[0].map_blocks(late, dtype=float))
