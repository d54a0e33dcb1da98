"""``majorant fit MODEL --help``: every parameter of every model, in words that a terminal can show."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from majorant.cli.parameters import documented_parameters
from majorant.cli.settings import known_models
from majorant.registry import ESTIMATORS

Majorant = Callable[..., Any]


@pytest.mark.parametrize("model", known_models())
def test_help_of_a_model_names_and_explains_every_parameter(majorant: Majorant, model: str) -> None:
    done = majorant("fit", model, "--help")
    assert (done.status, done.err) == (0, "")
    parameters = {p.name: p for p in documented_parameters(ESTIMATORS[model])}
    for name in ESTIMATORS[model]().get_params(deep=False):
        assert re.search(rf"^  --(set {name}=|[a-z-]+ [A-Z]+  \({name}\))", done.out, flags=re.MULTILINE), name
        assert parameters[name].kind and len(parameters[name].text) > 5
        assert not parameters[name].text.startswith("See ")
    assert max(map(len, done.out.splitlines())) <= 80
    assert not re.search(r":\w+:`|`|\\[a-z]", done.out)
    options = [" ".join(option.split()) for option in re.split(r"\n(?=\n|  --)", done.out)]
    assert not [o for o in options if re.search(r" [.,;:)](?![.\w])|\( |[_^]\{|math::|\b(big[lr]|cdot)\b|\]_", o)]
    told = re.findall(r"^  --.*\n((?:      .*\n?)+)", done.out.partition("Parameters:")[2], flags=re.MULTILINE)
    assert len(set(told)) == len(told) > 1


def test_help_is_about_the_model_that_is_named(majorant: Majorant) -> None:
    assert "no model" in majorant("fit", "kmean", "-h").err
    assert "Usage: majorant fit" in majorant("fit", "--help").out
    assert "fit MODEL --help" in majorant("fit", "--help").out
    done = majorant("fit", "kmeans", "table.csv", "--help")
    assert done.out == majorant("fit", "kmeans", "-h").out
    assert "  --k K  (n_clusters)  int, default=8\n      Number of clusters." in done.out
