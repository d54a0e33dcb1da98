"""The table of features in docs/choosing.md is what the mixtures do: each cell is tried."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SPEC = importlib.util.spec_from_file_location("feature_matrix", ROOT / "tools" / "feature_matrix.py")
assert SPEC is not None and SPEC.loader is not None
tool = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tool)
PAGE = tool.PAGE.read_text(encoding="utf-8")
MIXTURES = {cls.__name__: cls for cls in tool.mixtures()}
TOLD = tool.refusals_on(PAGE.replace("`MixtureEstimator`", "`OwnMixture`"))
STALE = "run: python tools/feature_matrix.py --write"


def test_the_page_has_every_feature_of_every_mixture() -> None:
    assert set(TOLD) == {(feature, name) for feature in tool.FEATURES for name in MIXTURES}, STALE
    assert tool.written(PAGE, tool.page_of(TOLD)) == PAGE, STALE


@pytest.mark.parametrize(("feature", "name"), [(f, n) for f in tool.FEATURES for n in MIXTURES])
def test_a_yes_runs_and_a_no_says_why(feature: str, name: str) -> None:
    if feature == "Dask":
        pytest.importorskip("dask", reason="needs majorant[dask]")
    said = tool.cell(MIXTURES[name], feature)
    assert said == TOLD.get((feature, name)), STALE
    assert said == "yes" or (said[0] in "`ABCDEFGHIJKLMNOPQRSTUVWXYZ" and said.endswith(".") and len(said.split()) >= 4)


def test_the_check_sees_what_a_model_does_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    cls: Any = MIXTURES["OwnMixture"]

    def refuse(*_: Any, **__: Any) -> None:
        raise TypeError("it is not sampled from; take another")

    monkeypatch.setattr(cls, "sample", refuse)
    assert tool.cell(cls, "sampling") == "It is not sampled from."
    assert re.search(
        r"no \(1\)",
        tool.page_of(
            {("sampling", "OwnMixture"): "It is not."}
            | dict.fromkeys(((f, "OwnMixture") for f in tool.FEATURES if f != "sampling"), "yes")
        ),
    )
