"""The models that flexmix was asked for, as calls of majorant on the same tables, and R's answers.

R's answers are frozen in ``tests/reference/regression_mixtures``, scripts and their outputs.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

import majorant as mj

Array = NDArray[np.float64]
Table = Mapping[str, NDArray[Any]]

FOLDER = Path(__file__).parent / "reference" / "regression_mixtures"
INTERCEPT, LOG_SIGMA = "(Intercept)", "log(sigma)"


def read(path: Path) -> Table:
    """Columns of a table, numbers as numbers."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    out: dict[str, NDArray[Any]] = {}
    for name in rows[0]:
        values = np.array([row[name] for row in rows])
        try:
            out[name] = values.astype(np.float64)
        except ValueError:
            out[name] = values
    return out


def levels(name: str, values: NDArray[Any], *others: str) -> dict[str, Array]:
    """R's columns of a factor: one for each level but the first."""
    return {f"{name}{level}": (values == level).astype(np.float64) for level in others}


@dataclass(frozen=True)
class Case:
    """One model on one table.

    `columns` and `gates` are columns by R's names for them; those in `shared` have one coefficient for all components.
    """

    y: Array
    k: int
    columns: Mapping[str, Array] = field(default_factory=dict)
    gates: Mapping[str, Array] = field(default_factory=dict)
    shared: Sequence[str] = ()
    model: Mapping[str, Any] = field(default_factory=dict)
    extras: Mapping[str, Any] = field(default_factory=dict)

    def fit(self, **parameters: Any) -> Any:
        n = len(self.y)
        X = np.column_stack([*self.columns.values()]) if self.columns else np.zeros((n, 1))
        extras = dict(self.extras)
        if self.gates:
            extras["gating"] = np.column_stack([*self.gates.values()])
        settings = {**self.model, **parameters}
        if self.shared:
            settings["shared"] = [list(self.columns).index(name) for name in self.shared]
        return mj.RegressionMixture(self.k, random_state=0, **settings).fit(X, self.y, **extras)


def npreg(t: Table, response: str, *, k: int = 2, groups: str = "", **more: Any) -> Case:
    columns = {"x": t["x"]}
    if response == "yn":
        columns["I(x^2)"] = t["x"] ** 2
    family = {"yn": "gaussian", "yp": "poisson", "yb": "binomial"}[response]
    model = {"family": family, **more.pop("model", {})}
    extras = {"groups": t[groups]} if groups else {}
    return Case(t[response], k, columns, model=model, extras=extras, **more)


def npreg_gated_groups(t: Table) -> Case:
    """A group has one gating: the mean of x in it."""
    codes = np.unique(t["id2"], return_inverse=True)[1]
    means = np.bincount(codes, t["x"]) / np.bincount(codes)
    return npreg(t, "yn", groups="id2", gates={"group_x": means[codes]})


def salmonella(t: Table, **more: Any) -> Case:
    return Case(t["y"], 2, {"x": t["x"], "log(x + 10)": np.log(t["x"] + 10)}, model={"family": "poisson"}, **more)


def fabricfault(t: Table, **more: Any) -> Case:
    return Case(t["Faults"], 2, {"log(Length)": np.log(t["Length"])}, model={"family": "poisson"}, **more)


def seizure(t: Table) -> Case:
    day, treated = np.log(t["Day"]), (t["Treatment"] == "Yes").astype(np.float64)
    columns = {"TreatmentYes": treated, "log(Day)": day, "TreatmentYes:log(Day)": treated * day}
    return Case(t["Seizures"], 2, columns, model={"family": "poisson"}, extras={"offset": np.log(t["Hours"])})


def trypanosome(t: Table, **more: Any) -> Case:
    return Case(t["Dead"], 2, {"log(Dose)": np.log(t["Dose"])}, model={"family": "binomial"}, **more)


def dmft_people(t: Table) -> dict[str, Array]:
    others = sorted(set(t["Treatment"]) - {"control"})
    return {
        **levels("Gender", t["Gender"], "male"),
        **levels("Ethnic", t["Ethnic"], *sorted(set(t["Ethnic"]))[1:]),
        **levels("Treatment", t["Treatment"], *others),
    }


def dmft(t: Table, *, gated: bool = False) -> Case:
    gates = dmft_people(t) if gated else {}
    return Case(t["End"], 2, {"log(Begin + 0.5)": np.log(t["Begin"] + 0.5)}, gates, model={"family": "poisson"})


def dmft_shared(t: Table) -> Case:
    columns = dmft_people(t)
    return Case(t["End"], 2, columns, shared=list(columns), model={"family": "poisson"})


def tribolium(t: Table, *, k: int = 2, gated: bool = True, is_shared: bool = True) -> Case:
    columns = levels("Species", t["Species"], *sorted(set(t["Species"]))[1:])
    gates = {f"Replicate{level}": (t["Replicate"] == level).astype(np.float64) for level in (2, 3)}
    return Case(
        t["Remaining"],
        k,
        columns,
        gates if gated else {},
        list(columns) if is_shared else (),
        {"family": "binomial"},
        {"trials": t["Total"]},
    )


def tribolium_wang(t: Table) -> Case:
    name = 'I(Species == "Confusum")TRUE'
    columns = {name: (t["Species"] == "Confusum").astype(np.float64)}
    gates = {"I(Replicate == 3)TRUE": (t["Replicate"] == 3).astype(np.float64)}
    return Case(t["Remaining"], 2, columns, gates, [name], {"family": "binomial"}, {"trials": t["Total"]})


def mehta(t: Table, *, k: int = 3, is_shared: bool = True, without: float = np.nan) -> Case:
    kept = t["Site"] != without
    columns = {"DrugControl": (t["Drug"] == "Control").astype(np.float64)[kept]}
    extras = {"groups": t["Site"][kept], "trials": t["Total"][kept]}
    shared = list(columns) if is_shared else ()
    return Case(t["Response"][kept], k, columns, shared=shared, model={"family": "binomial"}, extras=extras)


def bregfix(t: Table, **more: Any) -> Case:
    extras = {"trials": t["yes"] + t["no"]}
    return Case(t["yes"], 3, {"x": t["x"]}, {"w1": t["w"]}, model={"family": "binomial"}, extras=extras, **more)


def nregfix(t: Table, **more: Any) -> Case:
    return Case(t["y"], 3, {"x21": t["x2"], "x1": t["x1"]}, {"w1": t["w"]}, **more)


COMMON: dict[str, Any] = {"model": {"variance": "common"}}
CASES: dict[str, tuple[str, Callable[[Table], Case]]] = {
    "NPreg_gaussian": ("NPreg", lambda t: npreg(t, "yn")),
    "NPreg_gaussian_3": ("NPreg", lambda t: npreg(t, "yn", k=3)),
    "NPreg_gaussian_common": ("NPreg", lambda t: npreg(t, "yn", **COMMON)),
    "NPreg_gaussian_shared": ("NPreg", lambda t: npreg(t, "yn", shared=["I(x^2)"])),
    "NPreg_poisson": ("NPreg", lambda t: npreg(t, "yp")),
    "NPreg_binomial": ("NPreg", lambda t: npreg(t, "yb")),
    "NPreg_gaussian_id1": ("NPreg", lambda t: npreg(t, "yn", groups="id1")),
    "NPreg_gaussian_id2": ("NPreg", lambda t: npreg(t, "yn", groups="id2")),
    "NPreg_poisson_id1": ("NPreg", lambda t: npreg(t, "yp", groups="id1")),
    "NPreg_poisson_id2": ("NPreg", lambda t: npreg(t, "yp", groups="id2")),
    "NPreg_binomial_id1": ("NPreg", lambda t: npreg(t, "yb", groups="id1")),
    "NPreg_binomial_id2": ("NPreg", lambda t: npreg(t, "yb", groups="id2")),
    "NPreg_gaussian_gated": ("NPreg", lambda t: npreg(t, "yn", gates={"yb": t["yb"]})),
    "NPreg_gaussian_gated_id2": ("NPreg", npreg_gated_groups),
    "salmonella": ("salmonellaTA98", lambda t: salmonella(t, shared=["x", "log(x + 10)"])),
    "salmonella_own": ("salmonellaTA98", salmonella),
    "trypanosome": ("trypanosome", lambda t: trypanosome(t, shared=["log(Dose)"])),
    "trypanosome_own": ("trypanosome", trypanosome),
    "seizure": ("seizure", seizure),
    "fabricfault": ("fabricfault", lambda t: fabricfault(t, shared=["log(Length)"])),
    "fabricfault_own": ("fabricfault", fabricfault),
    "dmft": ("dmft", dmft_shared),
    "dmft_own": ("dmft", dmft),
    "dmft_gated": ("dmft", lambda t: dmft(t, gated=True)),
    "tribolium": ("tribolium", tribolium),
    "tribolium_3": ("tribolium", lambda t: tribolium(t, k=3)),
    "tribolium_Wang": ("tribolium", tribolium_wang),
    "tribolium_own": ("tribolium", lambda t: tribolium(t, gated=False, is_shared=False)),
    "Mehta": ("Mehta", mehta),
    "Mehta_2": ("Mehta", lambda t: mehta(t, k=2)),
    "Mehta_without_15": ("Mehta", lambda t: mehta(t, k=2, without=15)),
    "Mehta_own": ("Mehta", lambda t: mehta(t, is_shared=False)),
    "BregFix_own": ("BregFix", bregfix),
    "BregFix_shared": ("BregFix", lambda t: bregfix(t, shared=["x"])),
    "NregFix_own": ("NregFix", nregfix),
    "NregFix_shared": ("NregFix", lambda t: nregfix(t, shared=["x21"])),
    "NregFix_shared_common": ("NregFix", lambda t: nregfix(t, shared=["x21"], **COMMON)),
}


def references(package: str = "flexmix") -> dict[str, Any]:
    return dict(json.loads((FOLDER / f"{package}.json").read_text(encoding="utf-8"))["cases"])


def case(name: str, folder: Path) -> Case:
    table, build = CASES[name]
    return build(read(folder / f"flexmix_{table}.csv"))


def flat(model: Any, case: Case, names: Sequence[str]) -> Array:
    """Our coefficients under R's names, a row for each component."""
    columns = dict(zip(case.columns, model.coef_.T, strict=False))
    columns |= {INTERCEPT: model.intercept_, LOG_SIGMA: np.log(model.scale_)}
    return np.column_stack([columns[name] for name in names])


@dataclass(frozen=True)
class Answer:
    """R's maximum: where refit() found none, the end of its best run."""

    log_likelihood: float
    names: list[str]
    coef: Array
    errors: Array | None
    gating: Array
    gating_errors: Array | None

    @classmethod
    def of(cls, reference: Mapping[str, Any]) -> Answer:
        ml = reference.get("ml") or {}
        source = ml or reference["em"]
        names = list(source["components"][0])

        def table(components: list[dict[str, float]]) -> Array:
            return np.array([[component[name] for name in names] for component in components])

        gating = np.array(source["concomitant"], dtype=np.float64)
        return cls(
            max(reference["log_likelihood"], ml.get("log_likelihood", -np.inf)),
            names,
            table(source["components"]),
            table(source["errors"]) if ml else None,
            np.vstack([np.zeros(gating.shape[1]), gating]),
            np.array(source["concomitant_errors"]) if ml else None,
        )

    def order(self, coef: Array) -> NDArray[np.intp]:
        """Which of our components is each of R's."""
        distance = np.abs(self.coef[:, None] - coef[None]).sum(axis=2)
        return np.asarray(linear_sum_assignment(distance)[1])


def gating_of(model: Any, order: NDArray[np.intp], n_terms: int) -> Array:
    """Our gating in R's order, relative to R's first component."""
    if n_terms == 1:
        table = np.log(model.weights_)[:, None]
    else:
        table = np.column_stack([model.gating_intercept_, model.gating_coef_])
    return np.asarray(table[order] - table[order[0]])
