"""Which mixture does what? Tries every feature with every mixture and writes the table of docs/choosing.md.

    python tools/feature_matrix.py [--write]

A cell is "yes" where the feature ran, and otherwise the first sentence of the error.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.exceptions import ConvergenceWarning

import majorant as mj
from majorant.densities import Bernoulli
from majorant.models.mixture import MixtureEstimator
from majorant.registry import CARDS, ESTIMATORS, card_of, discover, mixture_card
from majorant.report import Run, html_report

PAGE = Path(__file__).resolve().parents[1] / "docs" / "choosing.md"
BEGIN, END = "<!-- features: made by tools/feature_matrix.py -->", "<!-- end of features -->"
N = 120
NAMES = ("a", "b", "c")


class OwnMixture(MixtureEstimator):
    """A mixture of a density of one's own, as in docs/writing_a_model.md."""

    card = mixture_card(
        name="own-mixture",
        title="own mixture",
        question="",
    )

    def _density(self) -> Any:
        return Bernoulli(self.n_features_in_)


class Case:
    """A mixture, and rows that suit it: two groups, and a target where it takes one."""

    def __init__(self, cls: type[Any]) -> None:
        random = np.random.default_rng(0)
        self.cls = cls
        self.z = np.arange(N) % 2
        self.card = cls.card if cls is OwnMixture else card_of(cls)
        self.x = random.normal(size=(N, 3)) + 2.5 * self.z[:, None]
        if cls is OwnMixture:
            self.x = (random.random((N, 3)) < np.where(self.z[:, None], 0.85, 0.15)).astype(float)
        self.y: Any = None
        if self.card.kind == "regression":
            self.y = np.where(self.z, 3.0, -3.0) * self.x[:, 0] + random.normal(size=N)
        elif self.card.needs_target:
            self.y = (self.x[:, 0] > np.median(self.x[:, 0])).astype(int)
        self.cut = {"lengths": [40, 40, 40]} if self.card.in_order else {}

    def make(self, **parameters: Any) -> Any:
        taken = inspect.signature(self.cls).parameters
        for name in parameters:
            if name not in taken:
                raise TypeError(f"There is no parameter `{name}`")
        quick = {"effort": "fast"} if "effort" in taken else {}
        return self.cls(**{str(self.card.size_parameter): 2, "random_state": 0, **quick, **parameters})

    def fit(self, x: Any = None, model: Any = None, **keywords: Any) -> Any:
        model = self.make() if model is None else model
        taken = inspect.signature(model.fit).parameters
        for name in keywords:
            if name not in taken:
                raise TypeError(f"`fit` has no argument `{name}`")
        return model.fit(self.x if x is None else x, *(() if self.y is None else (self.y,)), **keywords)

    def call(self, name: str, **given: Any) -> Any:
        """Call a method of the fit, with the rows where it needs them."""
        if not hasattr(self.cls, name):
            raise TypeError(f"There is no method `{name}`")
        method = getattr(self.fit(), name)
        taken = inspect.signature(method).parameters
        rows = {"X": self.x, "y": self.y}
        needs_rows = "X" in taken and taken["X"].default is inspect.Parameter.empty
        return method(**{key: rows[key] for key in rows if needs_rows and key in taken}, **given)


def weights(case: Case) -> None:
    case.fit(sample_weight=1.0 + np.arange(N) % 3)


def missing_cells(case: Case) -> None:
    x = case.x.copy()
    x[::7, 1] = np.nan
    case.fit(x)


def groups(case: Case) -> None:
    case.fit(groups=np.arange(N) // 4)


def gating(case: Case) -> None:
    case.fit(gating=case.z + np.random.default_rng(1).normal(size=N))


def known_states(case: Case) -> None:
    case.fit(component_labels=np.where(np.arange(N) < 10, case.z, -1))


def bounds(case: Case) -> None:
    case.fit(model=case.make(bounds=mj.Tempered(eta=0.1)))


def beta(case: Case) -> None:
    case.fit(model=case.make(beta=0.5))


def checkpoints(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.checkpoint"
        with mj.checkpoint(path, every=1):
            case.fit()
        with mj.checkpoint(path):
            case.fit()


def files(case: Case) -> None:
    columns = {name: case.x[:, j] for j, name in enumerate(NAMES)} | ({} if case.y is None else {"y": case.y})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        pl.DataFrame(columns).write_parquet(path)
        rows = mj.open_rows(path, columns=list(NAMES), target=None if case.y is None else "y")
        needs_y = inspect.signature(case.cls.fit).parameters["y"].default is inspect.Parameter.empty
        case.make().fit(rows, *((None,) if needs_y else ()), **case.cut)


def dask(case: Case) -> None:
    import dask
    import dask.array as da

    rows = [da.from_array(part, chunks=(40, *part.shape[1:])) for part in (case.x, case.y) if part is not None]
    with dask.config.set(scheduler="synchronous"):
        case.make().fit(*rows, **case.cut)


def standard_errors(case: Case) -> None:
    case.call("standard_errors")


def intervals(case: Case) -> None:
    case.call("confidence_intervals")


def bootstrap(case: Case) -> None:
    case.call("bootstrap", n_resamples=3)


def number_of_parts_tested(case: Case) -> None:
    mj.likelihood_ratio_test(case.make(), case.x, case.y, n_resamples=2, random_state=0)


def selection(case: Case) -> None:
    mj.select(case.make(), case.x, case.y, n_components=[1, 2])


def sampling(case: Case) -> None:
    case.call("sample", **({} if case.card.kind == "regression" else {"n_samples": 5}))


def saving(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        case.fit().save(Path(folder) / "model.majorant")
        mj.load(Path(folder) / "model.majorant")


def report(case: Case) -> None:
    html_report(Run(case.fit(), case.x, NAMES, "rows.csv", "", y=case.y, card=case.card))


FEATURES: dict[str, Callable[[Case], None]] = {
    "weights": weights,
    "missing cells": missing_cells,
    "`groups`": groups,
    "`gating`": gating,
    "known components": known_states,
    "bound policies": bounds,
    "any `beta`": beta,
    "checkpoints": checkpoints,
    "files": files,
    "Dask": dask,
    "standard errors": standard_errors,
    "confidence intervals": intervals,
    "bootstrap": bootstrap,
    "likelihood-ratio test": number_of_parts_tested,
    "`select`": selection,
    "sampling": sampling,
    "saving": saving,
    "report": report,
}


def mixtures() -> list[type[Any]]:
    """List the public models whose rows belong to parts with probabilities, and one of a density of one's own."""
    discover()
    found = [
        cls
        for name, cls in sorted(ESTIMATORS.items())
        if cls.__name__ in mj.__all__
        and hasattr(cls, "predict_proba")
        and not hasattr(cls, "loadings")  # whose parts are directions
        and CARDS[name].size_parameter is not None
    ]
    return [*found, OwnMixture]


def cell(cls: type[Any], feature: str) -> str:
    """Try a feature: "yes", or what the model says against it."""
    # The registry knows no model that stands outside the package for longer than it is tried.
    if cls is OwnMixture:
        CARDS[cls.card.name], ESTIMATORS[cls.card.name] = cls.card, cls
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ConvergenceWarning)
            FEATURES[feature](Case(cls))
    except (TypeError, ValueError, UserWarning) as error:
        text = re.split(r"(?<=\w)[.;:] ", " ".join(str(error).split()))[0].rstrip(".")
        text = re.sub(rf"\b(this )?{cls.__name__}\b", "the model", text)
        return f"{text[:1].upper()}{text[1:]}."
    finally:
        for known in (CARDS, ESTIMATORS):
            if cls is OwnMixture:
                known.pop(OwnMixture.card.name, None)
    return "yes"


def matrix() -> dict[tuple[str, str], str]:
    """Try everything, by feature and name of the class."""
    return {(feature, cls.__name__): cell(cls, feature) for feature in FEATURES for cls in mixtures()}


def page_of(cells: dict[tuple[str, str], str]) -> str:
    """The table in Markdown, with the refusals below it."""
    names = list(dict.fromkeys(name for _, name in cells))
    titles = [f"`{'MixtureEstimator' if name == 'OwnMixture' else name}`" for name in names]
    refusals: list[str] = []
    rows = []
    for feature in FEATURES:
        entries = []
        for name in names:
            said = cells[feature, name]
            if said != "yes" and said not in refusals:
                refusals.append(said)
            entries.append("yes" if said == "yes" else f"no ({refusals.index(said) + 1})")
        rows.append(f"| {feature} | {' | '.join(entries)} |")
    head = [f"| | {' | '.join(titles)} |", "|---" * (len(names) + 1) + "|"]
    told = [f"{i}. {text.replace('|', ' or ')}" for i, text in enumerate(refusals, 1)]
    return "\n".join([BEGIN, *head, *rows, "", "What they say where it is no:", "", *told, END])


def refusals_on(page: str) -> dict[tuple[str, str], str]:
    """Read the table of a page back."""
    text = page[page.index(BEGIN) : page.index(END)]
    told = {int(n): said for n, said in re.findall(r"^(\d+)\. (.*)$", text, flags=re.MULTILINE)}
    head, _, *rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    names = [name.strip("`| ") for name in head]
    found = {}
    for feature, *entries in rows:
        for name, entry in zip(names, entries, strict=True):
            number = re.fullmatch(r"no \((\d+)\)", entry)
            found[feature, name] = told[int(number[1])] if number else entry
    return found


def written(page: str, table: str) -> str:
    """A page with its table replaced."""
    return page[: page.index(BEGIN)] + table + page[page.index(END) + len(END) :]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="replace the table of docs/choosing.md")
    table = page_of(matrix())
    if parser.parse_args().write:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), table), encoding="utf-8")
    else:
        print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
