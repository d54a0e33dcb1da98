"""A model is one file in `models/`: nothing else is edited, and everything finds it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import majorant as mj
import majorant.models
from majorant import registry
from majorant.cli.app import app
from majorant.cli.completion import parameters_by_model
from majorant.cli.errors import CommandError
from majorant.cli.parameters import model_help
from majorant.cli.request import program_of
from majorant.cli.runs import read_run
from majorant.cli.settings import known_models
from majorant.persistence import SavedModelError

FILE = '''
"""Rows of coins: a density with parameters of its own class, and a section of its own on the report's page."""

from dataclasses import dataclass

import numpy as np

from majorant.densities import Bernoulli
from majorant.models.mixture import MixtureEstimator
from majorant.registry import mixture_card, register, value_class
from majorant.report.section import Section


@value_class
@dataclass(frozen=True)
class Heads:
    p: np.ndarray  # (runs, components, columns)


class Coins:
    n_columns, exact = 1, True

    def __init__(self, n_features):
        self.columns = Bernoulli(n_features)
        self.width = self.columns.width

    def log_density(self, theta, rows):
        return self.columns.log_density(theta.p, rows)

    def statistics(self, theta, rows, q):
        return self.columns.statistics(None, rows, q)

    def solve(self, statistics, theta, share):
        return Heads(self.columns.solve(statistics, None if theta is None else theta.p, share))

    def n_parameters(self, n_components):
        return self.columns.n_parameters(n_components)

    def describe(self, theta):
        return {"heads": theta.p}

    def recalled(self, estimates):
        return Heads(estimates["heads"][None])


def section(fit):
    return Section("coins", "Coins", "Heads are shown.", figure=f"<p>{len(fit.run.feature_names)} coins</p>")


@register(
    mixture_card(
        name="coins",
        title="mixture of coins",
        question="Which rows were thrown with the same coins?",
        sections=("majorant.models.coins:section",),
    )
)
class CoinMixture(MixtureEstimator):
    def _density(self):
        return Coins(self.n_features_in_)
'''
RANDOM = np.random.default_rng(0)
P = np.array([[0.9, 0.8, 0.1, 0.2, 0.9], [0.1, 0.3, 0.9, 0.7, 0.2]])
X = (RANDOM.random((300, 5)) < P[np.arange(300) % 2]).astype(float)


@pytest.fixture(scope="module", autouse=True)
def one_more_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A file beside those of `majorant.models`, which nothing has imported yet."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "coins.py").write_text(FILE, encoding="utf-8")
    invalidate_caches()
    majorant.models.__path__.append(str(folder))
    registry._homes.cache_clear()  # files are read once, perhaps by a test before
    yield
    majorant.models.__path__.remove(str(folder))
    registry._homes.cache_clear()
    sys.modules.pop("majorant.models.coins", None)
    for known, name in ((registry.CARDS, "coins"), (registry.ESTIMATORS, "coins"), (registry.VALUES, "Heads")):
        known.pop(name, None)


@pytest.fixture
def model() -> Any:
    return registry.known("coins", registry.ESTIMATORS)(2, random_state=0)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder that the command line wrote, and what it said."""
    folder = tmp_path_factory.mktemp("run")
    pl.DataFrame(X, schema=list("abcde")).write_csv(folder / "x.csv")
    command = ["fit", "coins", str(folder / "x.csv"), "--k", "1:3", "--set", "tol=1e-7", "--out", str(folder / "out")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    return folder, done.output


def test_the_command_line_finds_it(run: tuple[Path, str]) -> None:
    folder, said = run
    assert "mixture of coins, 2 components" in said and "BIC prefers 2 components" in said
    assert "coins" in CliRunner().invoke(app, ["models"]).output
    told = model_help("coins")
    assert "Which rows were thrown with the same coins?" in told and "majorant.models.coins.CoinMixture" in told
    assert "--set tol=" in told and "--k K" in told
    known_models()
    assert set(parameters_by_model()["coins"]) == set(registry.ESTIMATORS["coins"]().get_params())
    done = CliRunner().invoke(
        app, ["predict", str(folder / "out"), str(folder / "x.csv"), "--out", str(folder / "new.csv")]
    )
    assert done.exit_code == 0, done.output
    assert pl.read_csv(folder / "new.csv").height == len(X)


def test_the_report_has_its_kind_and_its_own_section(run: tuple[Path, str]) -> None:
    page = (run[0] / "out" / "report.html").read_text(encoding="utf-8")
    sections = re.findall(r'<section id="([\w-]+)"', page)
    assert "mixture of coins" in page and "5 coins" in page
    last = sections[sections.index("coins") :]
    assert last == ["coins", "search", "convergence", "columns", "reproduce"] and "components" in sections


def test_it_is_saved(run: tuple[Path, str], model: Any, tmp_path: Path) -> None:
    fitted = model.fit(X)
    fitted.save(tmp_path / "m.majorant")
    np.testing.assert_array_equal(mj.load(tmp_path / "m.majorant").predict_proba(X), fitted.predict_proba(X))
    assert mj.load(run[0] / "out" / "model.majorant").n_components == 2


def test_its_fits_are_resumed_from_a_checkpoint(model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = model.fit(X).heads_
    with mj.checkpoint(tmp_path / "fit", every=1):
        np.testing.assert_array_equal(model.fit(X).heads_, plain)
    with mj.checkpoint(tmp_path / "fit"):
        np.testing.assert_array_equal(model.fit(X).heads_, plain)
    monkeypatch.delitem(
        registry.VALUES, "Heads"
    )  # as in a version that no longer has it: nothing is made of a file but what is known
    with pytest.raises(SavedModelError, match="Heads"), mj.checkpoint(tmp_path / "fit"):
        pass


def test_selection_names_it_among_those_with_a_likelihood() -> None:
    with pytest.raises(TypeError, match=r"models that do: .*CoinMixture"):
        mj.select(mj.KMeans(), X, n_components=[1, 2], criterion="bic")


def test_a_model_of_a_file_that_is_run_is_called_by_it(
    run: tuple[Path, str], model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere nothing knows it, and the command line says so."""
    monkeypatch.setattr(type(model), "__module__", "__main__")
    monkeypatch.setattr(sys, "argv", ["coins.py", "fit"])
    assert program_of("coins") == ["python", "coins.py"] and program_of("kmeans") == ["majorant"]
    assert "Next     majorant predict" in run[1]
    monkeypatch.delitem(registry.ESTIMATORS, "coins")
    monkeypatch.setattr(majorant.models, "__path__", majorant.models.__path__[:-1])
    with pytest.raises(CommandError, match=r"registers it first\. Call the command as the fit was: python FILE.py"):
        read_run(run[0] / "out")


def test_names_of_one_kind_are_not_taken_twice() -> None:
    class Heads:
        pass

    registry.discover()
    registry.VALUES.setdefault("Heads", int)
    with pytest.raises(ValueError, match=r"two classes of values are called 'Heads', in .* so rename one"):
        registry.value_class(Heads)
    with pytest.raises(ValueError, match="two models are called 'kmeans'"):
        registry.register(registry.CARDS["kmeans"])(Heads)
