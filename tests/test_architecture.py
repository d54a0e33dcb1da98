"""The layout holds: imports go downward, files stay small, what is public is documented, what is optional stays so."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import majorant as mj
from majorant import summary

from .estimators import ESTIMATORS

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "majorant"
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


@cache
def trees() -> dict[str, ast.Module]:
    """The modules, parsed by the tests that ask for them."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


LAYERS = [
    {"_numbers"},
    {"_kernels", "_atomic", "_cells", "_frames", "_order", "_progress", "_told", "registry"},
    {"_validation"},
    {"energy", "formulas", "data"},
    {"engine"},
    {"solvers"},
    {"densities", "laws"},
    {"search"},
    {"results.certificate"},
    {"starts"},
    {"summary"},
    {"results", "persistence"},
    {"models"},
    {"datasets", "metrics"},
    {"plot", "report"},
    {"cli"},
]
"""Rooms of the package, lowest first. Those of one layer do not know each other."""

ONLY = {"summary": {"summary", "search", "results.certificate", "_frames", "_numbers", "_told"}}
"""Rooms that use less than what lies below them."""

HEAVY = ["pandas", "polars", "pyarrow", "matplotlib", "typer", "jinja2", "rich", "dask", "distributed", "formulaic"]


def room(module: str) -> str | None:
    """The entry of LAYERS that a module belongs to; None for the package itself."""
    inside = module.removeprefix("majorant").removeprefix(".")
    if not inside:
        return None
    known = [r for layer in LAYERS for r in layer if inside == r or inside.startswith(r + ".")]
    assert known, f"{module} is in no layer: say in this file where it belongs"
    return max(known, key=len)


def imported(name: str) -> Iterator[str]:
    """Modules that a module imports, wherever in it the statement stands."""
    for node in ast.walk(trees()[name]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = name.split(".")[: None if MODULES[name].name == "__init__.py" else -1]
                base = ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [base])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                if base == "majorant" and inner not in MODULES and alias.name in mj.__all__:
                    yield getattr(mj, alias.name).__module__
                else:
                    yield inner if inner in MODULES or inner == "majorant._kernels" else base


def rank(where: str) -> int:
    return next(i for i, layer in enumerate(LAYERS) if where in layer)


def test_imports_go_downward() -> None:
    upward = []
    for name in MODULES:
        here = room(name)
        for other in imported(name):
            there = room(other) if other.split(".")[0] == "majorant" else None
            if other == name or (name.startswith("majorant.report.sections.") and other == "majorant.report.opening"):
                upward.append(f"{name} imports {other}")
            if here is None or there is None or there == here:
                continue
            if rank(there) >= rank(here) or there not in ONLY.get(here, {there}):
                upward.append(f"{name} imports {other}")
    assert upward == []


def test_the_check_of_imports_sees_them() -> None:
    assert any("majorant.starts.restarts" in set(imported(name)) for name in MODULES if room(name) == "models")
    assert "majorant._kernels" in set(imported("majorant.solvers.nearest"))
    assert rank("starts") > rank("engine") and room("majorant.results.stability") == "results"


def test_engine_and_solvers_name_no_model() -> None:
    models = {cls.__name__ for cls in ESTIMATORS}
    named = []
    for name in MODULES:
        if name.startswith(("majorant.data", "majorant.engine", "majorant.solvers")):
            used = {n.id for n in ast.walk(trees()[name]) if isinstance(n, ast.Name)}
            used |= {n.attr for n in ast.walk(trees()[name]) if isinstance(n, ast.Attribute)}
            named += [f"{name} names {model}" for model in used & models]
    assert named == []


def test_private_parts_of_scikit_learn_are_imported_in_one_module_at_most() -> None:
    private = set()
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sklearn":
                parts = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            elif isinstance(node, ast.Import):
                parts = [p for alias in node.names if alias.name.startswith("sklearn") for p in alias.name.split(".")]
            else:
                continue
            if any(part.startswith("_") and not part.endswith("__") for part in parts):
                private.add(name)
    assert private <= {"majorant._compat"}


def calls(function: str, module: str) -> list[ast.Call]:
    """Calls of a function by that name."""
    return [n for n in ast.walk(trees()[module]) if isinstance(n, ast.Call) and ast.unparse(n.func) == function]


def test_nothing_is_printed() -> None:
    places = [f"{name}:{n.lineno}" for name in MODULES for n in calls("print", name)]
    assert [place for place in places if not place.startswith("majorant.cli")] == []


def test_warnings_point_at_the_users_line() -> None:
    """A fixed depth is right for one way to call a method only: fit or fit_predict, with or without a validator."""
    depths = {
        f"{name}:{call.lineno}": [ast.unparse(k.value) for k in call.keywords if k.arg == "stacklevel"]
        for name in MODULES
        for call in calls("warnings.warn", name)
    }
    assert {place: depth for place, depth in depths.items() if depth != ["levels_to_user()"]} == {}


SOURCES = [
    p for folder in ("src", "tests") for p in sorted((ROOT / folder).rglob("*")) if p.suffix in (".py", ".cpp", ".hpp")
]


def test_no_file_of_the_source_is_too_long() -> None:
    lines = {
        str(path.relative_to(ROOT / "src").as_posix()).removeprefix("majorant/"): len(
            path.read_text(encoding="utf-8").splitlines()
        )
        for path in SOURCES
        if path.is_relative_to(ROOT / "src")
    }
    assert not {path: n for path, n in lines.items() if n > 500}


PASSES = {
    *("map_sum", "tight_pass", "step", "extrapolated", "squared_extrapolation"),
    *("gauss_em", "gauss_step", "regression_em", "regression_step", "regression_pass"),
}
"""Functions that pass over the data, take a step of EM or extrapolate some."""


def called(node: ast.AST) -> set[str]:
    """Names of the functions that are called in a piece of code, or are given to those that are."""
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    used = [f for n in calls for f in (n.func, *n.args)]
    names = {f.id for f in used if isinstance(f, ast.Name)}
    return names | {f.attr for f in used if isinstance(f, ast.Attribute)}


def iterations(tree: ast.Module) -> list[int]:
    """Lines of loops that pass over the data in every turn, be it by functions of the same file."""
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    passing, size = set(PASSES), 0
    while len(passing) > size:
        size = len(passing)
        passing |= {f.name for f in functions if called(f) & passing}
    loops = [n for n in ast.walk(tree) if isinstance(n, (ast.For, ast.While))]
    return [loop.lineno for loop in loops if called(ast.Module(loop.body, [])) & passing]


def test_models_have_no_iteration_of_their_own() -> None:
    """EM is iterated in the engine; harmoniums, which are fitted by L-BFGS, are the second engine."""
    models = {str(p.relative_to(PACKAGE / "models").as_posix()): p for p in (PACKAGE / "models").rglob("*.py")}
    found = {
        name: lines
        for name, path in models.items()
        if not name.startswith("harmonium/") and (lines := iterations(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert not found


def test_the_check_of_iterations_sees_them() -> None:
    own = "def sweep(data):\n    return data.map_sum(visit)\n\nfor _ in range(9):\n    theta = solve(sweep(data))\n"
    assert iterations(ast.parse(own)) == [4]
    assert iterations(ast.parse("s = data.map_sum(visit)\nfor k in range(3):\n    theta.append(s[k])\n")) == []


COPY = 10
"""So many lines of code that stand in two places are a copy of a function with small variations in the making."""


def code(path: Path) -> list[tuple[int, str]]:
    """Lines that do something, with their numbers; imports, docstrings, signatures and constructors may repeat."""
    text = path.read_text(encoding="utf-8")
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(text)) if path.suffix == ".py" else ():
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            last = node.body[0].lineno - 1
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef)) or is_text:
            skipped |= set(range(first, last + 1))
    comment = "  #" if path.suffix == ".py" else "//"
    lines = [line.partition(comment)[0].strip() for line in text.splitlines()]
    stored = re.compile(r"self\.(\w+) = \1|#.*|.?")
    return [(i, line) for i, line in enumerate(lines, 1) if i not in skipped and not stored.fullmatch(line)]


def copies(paths: list[Path]) -> list[str]:
    """Where a block begins that stands elsewhere too, and where."""
    first: dict[tuple[str, ...], tuple[Path, int]] = {}
    found = []
    for path in paths:
        lines = code(path)
        for i in range(len(lines) - COPY + 1):
            block = tuple(line for _, line in lines[i : i + COPY])
            other, number = first.setdefault(block, (path, lines[i][0]))
            if (other, number) != (path, lines[i][0]):
                found.append(f"{path.name}:{lines[i][0]} and {other.name}:{number}")
    return found


def test_nothing_is_written_twice() -> None:
    scripts = [p for folder in ("benchmarks", "experiments") for p in sorted((ROOT / folder).glob("*.py"))]
    assert copies([*SOURCES, *scripts]) == []


def test_the_check_of_copies_sees_them(tmp_path: Path) -> None:
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    lines = [f"x{i} = {i}" for i in range(COPY)]
    one.write_text("\n".join(["import ast", *lines]))
    other.write_text("\n".join([*lines[:5], "", "# why", *lines[5:]]))
    assert copies([one, other]) == ["other.py:1 and one.py:2"]
    other.write_text("\n".join([*lines[:5], "y = 1", *lines[5:]]))
    assert copies([one, other]) == []


# Imports at run time

BLOCKED = """
import sys

class Blocker:
    asked = set()
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in HEAVY:
            frame = sys._getframe(1)
            while "importlib" in frame.f_code.co_filename:
                frame = frame.f_back
            self.asked.add((frame.f_globals.get("__name__", ""), name))
            raise ImportError(f"{name} is blocked")

HEAVY = sys.argv[1].split(",")
sys.meta_path.insert(0, Blocker())
import majorant
early = sorted({"numpy", "scipy", "sklearn"} & set(sys.modules))
for name in majorant.__all__:
    getattr(majorant, name)
print(early, sorted(asked for asked in Blocker.asked if asked[0].startswith("majorant")))
majorant.KMeans(2, random_state=0).fit([[0.0], [1.0], [5.0]]).summary()
print(str(majorant.stability(majorant.KMeans(2), [[0.0], [1.0], [5.0]], n_runs=2, random_state=0))[:9])
"""


def test_optional_libraries_are_optional_and_never_imported_first() -> None:
    done = subprocess.run([sys.executable, "-c", BLOCKED, ",".join(HEAVY)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[] []", "Stability"]


# Documentation


def public_things() -> dict[str, Any]:
    """Public names, and the public methods and properties that they add."""
    things = {}
    for name in mj.__all__:
        thing = getattr(mj, name)
        things[name] = thing
        if isinstance(thing, type):
            own = {
                k: v for base in thing.__mro__ if base.__module__.startswith("majorant") for k, v in vars(base).items()
            }
            for key, value in own.items():
                if not key.startswith("_") and (
                    inspect.isfunction(value) or isinstance(value, (property, classmethod))
                ):
                    things[f"{name}.{key}"] = getattr(thing, key)
    return things


THINGS = public_things()


def test_what_is_public_is_documented() -> None:
    """By at least a sentence, in the first line."""
    docs = {name: inspect.getdoc(thing) or "" for name, thing in THINGS.items()}
    assert [
        n for n, doc in docs.items() if len(doc) <= 10 or not doc.splitlines()[0].strip().endswith((".", ":"))
    ] == []


RECORDS = [f"summary.{name}" for name in summary.__all__ if is_dataclass(getattr(summary, name))]


@pytest.mark.parametrize("name", [*(n for n in mj.__all__ if callable(getattr(mj, n))), *RECORDS])
def test_every_parameter_is_documented(name: str) -> None:
    thing = attrgetter(name)(mj)
    if isinstance(thing, type) and issubclass(thing, BaseException):
        return
    doc = inspect.getdoc(thing) or ""
    section = re.search(r"^(Parameters|Attributes)\n-+\n(.*?)(?=^\w[\w ]+\n-+\n|\Z)", doc, flags=re.M | re.S)
    named = {
        n.lstrip("*")
        for line in re.findall(r"^(\S.*?)(?: : .*)?$", section[2] if section else "", flags=re.M)
        for n in line.split(", ")
    }
    missing = [p for p in inspect.signature(thing).parameters if p not in named]
    assert not missing


def test_every_module_says_what_it_is_for() -> None:
    assert [name for name, tree in trees().items() if not ast.get_docstring(tree)] == []
    silent = [
        f"{name}:{node.lineno} {node.name}"
        for name, tree in trees().items()
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")
        if not ast.get_docstring(node) and len(node.body) > 3
    ]
    assert silent == []


def test_texts_name_no_machine() -> None:
    paths = re.compile(
        "|".join(["/" + "work/", "/" + r"tmp/\w+env", "/" + r"home/\w", "/" + r"Users/\w", "/" + "root/"])
    )
    files = [
        *SOURCES,
        *ROOT.glob("*.*"),
        *(p for f in ("docs", "src") if (ROOT / f).is_dir() for p in (ROOT / f).rglob("*.*")),
    ]
    texts = {
        p
        for p in files
        if p.suffix in (".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".cfg", ".css", ".cpp", ".hpp", ".rst")
    }
    assert len(texts) > 50
    assert not [str(p.relative_to(ROOT)) for p in sorted(texts) if paths.search(p.read_text(encoding="utf-8"))]
