"""Mixtures of any family on rows read block by block: the answers of memory, with groups, offsets and trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from numpy.typing import NDArray

import majorant as mj
from majorant.data.storage import stored_rows

from ..estimators import assert_same_fit

N, SIZE = 3000, 5
"""Rows, and rows of a group."""
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 2))
GROUPS = np.repeat(RANDOM.permutation(N // SIZE), SIZE)
KIND = (RANDOM.random(N // SIZE) < 0.4)[GROUPS]
ETA = np.where(KIND, 1 + X @ [0.5, 0.3], -0.5 + X @ [-0.6, 0.2])
OFFSET = RANDOM.uniform(0, 1, N)
TRIALS = RANDOM.integers(1, 20, N)
W = RANDOM.integers(1, 4, N // SIZE)[GROUPS].astype(float)
TARGETS = {
    "poisson": RANDOM.poisson(np.exp(ETA + OFFSET)).astype(float),
    "binomial": RANDOM.binomial(TRIALS, 1 / (1 + np.exp(-2 * ETA))).astype(float),
    "gamma": RANDOM.gamma(5, np.exp(ETA) / 5),
    "student": ETA + 0.3 * RANDOM.standard_t(5, size=N),
    "gaussian": ETA + 0.3 * RANDOM.normal(size=N),
}
CUTS = [0, 1000, 1005, 1752, N]
"""Chunks of very different lengths, of which the third ends within a group."""

EXTRAS: dict[str, dict[str, Any]] = {
    "poisson": {"offset": OFFSET, "groups": GROUPS},
    "binomial": {"trials": TRIALS},
    "gamma": {},
    "student": {},
    "gaussian": {"groups": GROUPS},
}
PARAMETERS: dict[str, dict[str, Any]] = {"student": {"shared": [0]}, "gamma": {"variance": "common"}}


def rows_of(family: str, cuts: list[int], weights: bool = True) -> Callable[[], Iterator[tuple[Any, ...]]]:
    def parts() -> Iterator[tuple[NDArray[Any], ...]]:
        for a, b in pairwise(cuts):
            yield (X[a:b], TARGETS[family][a:b], W[a:b])[: 3 if weights else 2]

    return parts


def fitted(
    family: str, x: Any, y: Any = None, w: Any = None, of: Any = lambda c: c, **changed: Any
) -> mj.RegressionMixture:
    given = {name: of(column) for name, column in EXTRAS[family].items()}
    parameters = {"family": family, "random_state": 0, **PARAMETERS.get(family, {}), **changed}
    return mj.RegressionMixture(2, **parameters).fit(x, y, sample_weight=w, **given)


@pytest.fixture(params=[False, True], ids=["all rows race", "a sample races"])
def sampled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the race is run on a part of the rows."""
    if request.param:
        monkeypatch.setattr("majorant.models.regression_mixture.read.SAMPLE_BYTES", 8 * 3 * 1500)
    return bool(request.param)


class TestFits:
    @pytest.mark.parametrize("family", TARGETS)
    def test_the_answer_is_that_of_memory(self, family: str, sampled: bool) -> None:
        memory = fitted(family, X, TARGETS[family], W)
        streamed = fitted(family, mj.open_rows(rows_of(family, CUTS)))
        np.testing.assert_allclose(streamed.log_likelihood_, memory.log_likelihood_, rtol=1e-9)
        for name in ("coef_", "intercept_", "scale_", "weights_", "responsibilities_", "bic_", "icl_"):
            np.testing.assert_allclose(
                getattr(streamed, name), getattr(memory, name), rtol=1e-4, atol=1e-5, err_msg=name
            )
        for name, errors in memory.standard_errors_.items():
            np.testing.assert_allclose(streamed.standard_errors_[name], errors, rtol=1e-3, err_msg=name)
        assert streamed.n_parameters_ == memory.n_parameters_ and streamed.regular_
        noun = "groups" if "groups" in EXTRAS[family] else "rows"
        assert (f"of {N // SIZE if noun == 'groups' else N} {noun}, scaled to" in streamed.search_.note) == sampled
        np.testing.assert_allclose(streamed.search_.best, streamed.log_likelihood_, rtol=0.1 if sampled else 1e-7)

    @pytest.mark.parametrize("family", ["poisson", "student"])
    def test_equal_chunks_give_equal_answers_wherever_they_are(self, family: str, tmp_path: Path) -> None:
        expected = fitted(family, mj.open_rows(rows_of(family, CUTS)))
        schema = pa.schema([(name, pa.float64()) for name in ("a", "b", "y", "w")])
        with pa.parquet.ParquetWriter(tmp_path / "rows.parquet", schema) as writer:
            for a, b in pairwise(CUTS):
                columns = [*X[a:b].T, TARGETS[family][a:b], W[a:b]]
                writer.write_table(pa.table(dict(zip(schema.names, columns, strict=True))), row_group_size=b - a)
        for options in ({}, {"n_jobs": 2}, {"cache": tmp_path}):
            rows = mj.open_rows(tmp_path / "rows.parquet", target="y", sample_weight="w", **options)
            found = fitted(family, rows)
            del found.feature_names_in_
            assert_same_fit(expected, found)

    def test_of_dask(self) -> None:
        dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
        cuts = [0, 1000, 1005, 1750, N]
        lengths = tuple(np.diff(cuts).tolist())
        expected = fitted("poisson", mj.open_rows(rows_of("poisson", cuts)))

        def of(column: NDArray[Any]) -> Any:
            return da.from_array(column, chunks=(lengths, *([(2,)] * (column.ndim - 1))))

        with dask.config.set(scheduler="synchronous"):
            found = fitted("poisson", of(X), of(TARGETS["poisson"]), of(W), of)
        assert_same_fit(expected, found)

    def test_starts_of_the_users_choice(self) -> None:
        plain = fitted("gamma", X, TARGETS["gamma"])
        given = {"coef": plain.coef_, "intercept": plain.intercept_, "weights": plain.weights_}
        for init, n_init in (("random", 4), (given, 1)):
            streamed = fitted("gamma", mj.open_rows(rows_of("gamma", CUTS, weights=False)), init=init, n_init=n_init)
            np.testing.assert_allclose(streamed.log_likelihood_, plain.log_likelihood_, rtol=1e-9)

    def test_one_line_that_fits_every_row(self) -> None:
        y = X @ [1.0, 2.0] + 3
        with pytest.warns(Warning, match="one line fits every row exactly"):
            model = mj.RegressionMixture(2, shared=[0], random_state=0).fit(mj.open_rows(lambda: [X]), y)
        assert model.is_exact_
        np.testing.assert_allclose(model.coef_, [[1, 2]] * 2)

    def test_a_column_that_few_rows_have_is_no_constant(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("majorant.models.regression_mixture.read.SAMPLE_BYTES", 1)
        few = np.zeros(N)
        few[7::1000] = 1.0  # of two rows, two optima tie exactly: which row follows which component
        x, y = np.column_stack([X, few]), TARGETS["student"]
        streamed = mj.RegressionMixture(2, family="student", random_state=0).fit(mj.open_rows(lambda: [x]), y)
        memory = mj.RegressionMixture(2, family="student", random_state=0).fit(x, y)
        np.testing.assert_allclose(streamed.log_likelihood_, memory.log_likelihood_, rtol=1e-9)
        np.testing.assert_allclose(streamed.coef_, memory.coef_, atol=1e-3)


class TestGroups:
    def test_a_group_at_the_end_of_a_chunk_goes_over_whole(self) -> None:
        source = stored_rows(mj.open_rows(rows_of("poisson", CUTS)))
        assert source is not None
        source.put_beside("groups", GROUPS)
        blocks = list(source.blocks())
        assert [len(block) for block in blocks] == [1000, 5, 745, 1250]
        np.testing.assert_array_equal(np.concatenate([block.columns[0] for block in blocks]), X)
        np.testing.assert_array_equal(np.concatenate([block.columns[2] for block in blocks]), GROUPS)

    def test_one_group_over_several_chunks(self) -> None:
        source = stored_rows(mj.open_rows(rows_of("poisson", [0, 1, 2, 4, 5, 7, N])))
        assert source is not None
        source.put_beside("groups", GROUPS)
        assert [len(block) for block in source.blocks()] == [5, N - 5]

    def test_rows_of_a_group_that_are_apart(self) -> None:
        order = np.random.default_rng(1).permutation(N)
        model = mj.RegressionMixture(2, family="poisson", random_state=0)
        rows = mj.open_rows(lambda: [X[:1500], X[1500:]])
        with pytest.raises(
            ValueError, match=r"rows of group \d+ lie in the chunks 0 and 1, and \d+ groups in all lie apart"
        ):
            model.fit(rows, TARGETS["poisson"], groups=GROUPS[order])
        assert not hasattr(model, "coef_")

    def test_partitions_of_dask_are_not_mended(self) -> None:
        dd = pytest.importorskip("dask.dataframe")
        frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": TARGETS["gaussian"], "g": GROUPS}).iloc[:1000]
        cut = dd.from_pandas(frame, npartitions=1).repartition(divisions=[0, 501, 999], force=True)
        model = mj.RegressionMixture(2, random_state=0)
        with pytest.raises(ValueError, match="must lie in one partition of a Dask collection"):
            model.fit(cut[["a", "b"]], cut["y"], groups=cut["g"])
        mended = dd.from_pandas(frame, npartitions=2).set_index("g").persist()
        found = model.fit(mended[["a", "b"]], mended["y"], groups=mended.index.to_series())
        memory = mj.RegressionMixture(2, random_state=0)
        memory.fit(frame[["a", "b"]], frame["y"], groups=frame["g"])
        np.testing.assert_allclose(found.log_likelihood_, memory.log_likelihood_, rtol=1e-9)
        assert found.groups_.tolist() == sorted(set(frame["g"].tolist()))

    def test_weights_that_differ_within_a_group(self) -> None:
        w = W.copy()
        w[3] += 1
        with pytest.raises(
            ValueError, match="sample_weight must be the same for all rows of a group; it differs in group"
        ):
            mj.RegressionMixture(2, family="poisson").fit(
                mj.open_rows(lambda: [X]), TARGETS["poisson"], sample_weight=w, groups=GROUPS
            )


class TestMistakes:
    def test_a_target_that_cannot_be(self) -> None:
        y = TARGETS["poisson"].copy()
        y[1234] = -1.0
        with pytest.raises(
            ValueError, match=r'among rows 0 to 2999, .*: family="poisson" needs counts.*row 1234 of y is -1'
        ):
            mj.RegressionMixture(2, family="poisson").fit(mj.open_rows(lambda: [X]), y)

    def test_an_offset_of_dask_that_is_no_number(self) -> None:
        dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
        offset = OFFSET.copy()
        offset[5] = np.nan
        with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match="row 5 of offset is nan"):
            mj.RegressionMixture(2, family="poisson").fit(
                da.from_array(X), da.from_array(TARGETS["poisson"]), offset=da.from_array(offset)
            )

    @pytest.mark.parametrize(
        ("parameters", "given", "named"),
        [
            ({"trim": 0.1}, {}, "trim needs"),
            ({}, {"gating": X}, "gating needs"),
            ({}, {"component_labels": np.zeros(N)}, "component_labels needs"),
            ({"trim": 0.1}, {"gating": X}, "gating and trim need"),
        ],
    )
    def test_what_needs_all_rows(self, parameters: Any, given: Any, named: str) -> None:
        with pytest.raises(ValueError, match=f"{named} rows in memory: take a part of the rows"):
            mj.RegressionMixture(2, **parameters).fit(mj.open_rows(lambda: [X]), TARGETS["gaussian"], **given)

    def test_settings_of_plain_lines(self) -> None:
        with pytest.raises(ValueError, match="beta only goes with the plain mixture"):
            mj.RegressionMixture(2, family="poisson", beta=2.0).fit(mj.open_rows(lambda: [X]), TARGETS["poisson"])
