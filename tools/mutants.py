"""Do the tests that are quick find what all tests find? A sample of mutants of the rooms below the models.

    python tools/mutants.py run [TEST ...]    # once, and after a change of tests: which statements each runs, slow last
    python tools/mutants.py try 100 [ROOM]    # so many that were not tried before, in a seeded order
    python tools/mutants.py tell              # by room, how many the quick tests kill, and all; what survives

A mutant has one operator, number or call changed in one statement of a function. It is tried on a copy of the package,
by the tests of `make test` that run the statement and, if it survives those, by the slow ones too; those of browsers,
clusters and the site stay out. What tests share (a fixture, a cached fit) counts for the one that computed it. All is
kept in build/mutants, so each command goes on where it was ended.
"""

from __future__ import annotations

import ast
import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from copy import copy
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest
import scipy.stats  # noqa: F401
import sklearn.utils.estimator_checks  # noqa: F401

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "majorant"
WORK = ROOT / "build" / "mutants"
COVERED, JOURNAL = WORK / "covered", WORK / "journal.jsonl"
FILES = sorted(path for room in ("engine", "densities", "laws", "search") for path in (PACKAGE / room).glob("*.py"))
SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.FloorDiv: ast.Mult,
}  # fmt: skip
NAMES = {"min": "max", "minimum": "maximum", "argmin": "argmax", "any": "all"}
NAMES |= {other: name for name, other in NAMES.items()}


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in place of a node."""
    new: Any = copy(node)
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in SWAPS:
            new.ops = [SWAPS[type(operator)]()]
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in SWAPS:
            new.op = SWAPS[type(operator)]()
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            new = node.operand
        case ast.Constant(value=bool(value)):
            new.value = not value
        case ast.Constant(value=int(value) | float(value)):
            new.value = value + 1
        case ast.If(test=test) | ast.IfExp(test=test):
            new.test = ast.UnaryOp(ast.Not(), test)
        case ast.Name(id=name) if name in NAMES:
            new.id = NAMES[name]
        case ast.Attribute(attr=name) if name in NAMES:
            new.attr = NAMES[name]
        case ast.Break() | ast.Continue():
            new = ast.Continue() if isinstance(node, ast.Break) else ast.Break()
        case ast.Expr(value=ast.Call()) | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            new = ast.Pass()
        case _:
            return
    yield new


def parts(node: ast.AST, statement: ast.stmt | None = None) -> Iterator[tuple[ast.stmt, ast.AST, ast.AST, str]]:
    """Every node within functions: its statement, its parent, itself, and the parent's field that it is in."""
    skipped = {"decorator_list", "args", "returns", "annotation"}
    for field, value in ast.iter_fields(node):
        if field in skipped and isinstance(node, (ast.FunctionDef, ast.AnnAssign)):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, (ast.Raise, ast.JoinedStr)):
                continue
            inside = isinstance(node, ast.FunctionDef) or statement is not None
            here = child if isinstance(child, ast.stmt) and inside else statement
            if here is not None:
                yield here, node, child, field
            yield from parts(child, here)


def put(parent: Any, field: str, old: ast.AST, new: ast.AST) -> None:
    value = getattr(parent, field)
    setattr(parent, field, [new if one is old else one for one in value] if isinstance(value, list) else new)


def mutants(path: Path) -> Iterator[tuple[str, str, str]]:
    """The statement (by file and line), what is changed in it, and the file with that change."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for statement, parent, node, field in list(parts(tree)):
        for new in changed(node):
            put(parent, field, node, new)
            text = ast.unparse(ast.fix_missing_locations(tree))
            put(parent, field, new, node)
            what = f"{ast.unparse(node).splitlines()[0]} -> {ast.unparse(new).splitlines()[0]}"
            yield f"{path.relative_to(PACKAGE)}:{statement.lineno}", what, text


def marked(path: Path) -> str:
    """The file, each statement of a function telling majorant._ran of itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for statement, parent, node, field in list(parts(tree)):
        told = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if node is statement and isinstance(getattr(parent, field), list) and not told:
            call = ast.parse(f"_ran('{path.relative_to(PACKAGE)}:{node.lineno}')").body[0]
            here = getattr(parent, field)
            here.insert(here.index(node), call)
    last = max(i for i, one in enumerate(tree.body) if i == 0 or getattr(one, "module", "") == "__future__")
    tree.body.insert(last + 1, ast.parse("from majorant._ran import ran as _ran").body[0])
    return ast.unparse(ast.fix_missing_locations(tree))


def package(name: str) -> Path:
    """A copy of the package to be changed; its folder goes first among those of imports."""
    home = WORK / name
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(PACKAGE, home / "majorant", ignore=shutil.ignore_patterns("__pycache__"))
    return home


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """As a plugin of the runs below: only the tests that are asked for."""
    if asked := os.environ.get("MUTANTS_TESTS"):
        wanted = set(json.loads(Path(asked).read_text(encoding="utf-8")))
        items[:] = [item for item in items if item.nodeid in wanted]


def pytest_runtest_logstart() -> None:
    """As a plugin: after two minutes of CPU the signal ends a mutant that would never end."""
    signal.setitimer(signal.ITIMER_PROF, 120)


def pytest_runtest_logreport(report: Any) -> None:
    """As a plugin: keep which statements a test has run, unless it fails."""
    if "MUTANTS_RAN" in os.environ and report.when in ("call", "teardown"):
        from majorant import _ran  # type: ignore[attr-defined]

        line = {"test": report.nodeid, "slow": "slow" in report.keywords, "ran": sorted(_ran.seen)}
        if report.when == "call" and report.passed:
            with Path(os.environ["MUTANTS_RAN"]).open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        _ran.seen.clear()


def passes(home: Path, *arguments: str, **environment: str) -> bool:
    """Whether tests pass with the package of a folder, in a process that has read the large libraries before."""
    output = WORK / "output.txt"
    if (child := os.fork()) == 0:
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.dup2(1, 2)
        os.environ |= {"PYTHONPATH": str(home), "PYTHONDONTWRITEBYTECODE": "1"} | environment
        sys.path.insert(0, str(home))
        asked = ["-q", "-n", "0", "-p", "no:cacheprovider", *arguments]
        os._exit(int(pytest.main(asked, plugins=[sys.modules[__name__]])))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 5 and "MUTANTS_RAN" in environment:  # a file whose tests are all left out
        return True
    if code in (3, 4, 5):  # pytest was asked wrongly, or had no test to run: that says nothing of a mutant
        raise RuntimeError(output.read_text(encoding="utf-8"))
    return code == 0


def cover(files: list[str]) -> None:
    """Which statements each test runs, a file of tests after the other: those that are quick, then those that wait."""
    home = package("marked")
    for path in FILES:
        (home / "majorant" / path.relative_to(PACKAGE)).write_text(marked(path), encoding="utf-8")
    (home / "majorant" / "_ran.py").write_text("seen = set()\nran = seen.add\n", encoding="utf-8")
    for tier, file in product(("quick", "slow"), files):
        made = COVERED / f"{file.replace('/', '.')}.{tier}.jsonl"
        made.unlink(missing_ok=True)
        new = made.with_suffix(".new")
        new.unlink(missing_ok=True)
        asked = f"{'' if tier == 'slow' else 'not '}slow and not (browser or cluster or site)"
        good = passes(home, file, "-m", asked, MUTANTS_RAN=str(new))
        print("passes" if good else "FAILS ", tier, file, flush=True)
        if new.exists():
            new.rename(made)


def attempt(number: int, room: str) -> None:
    """Try so many more mutants of the seeded order, of one room or of all."""
    tests = [json.loads(line) for made in sorted(COVERED.glob("*.jsonl")) for line in made.read_text().splitlines()]
    every = [(path, *mutant) for path in FILES for mutant in mutants(path)]
    random.Random(0).shuffle(every)
    told = JOURNAL.read_text(encoding="utf-8").splitlines() if JOURNAL.exists() else []
    tried = {(line["where"], line["what"]) for line in map(json.loads, told)}
    new = (one for one in every if one[1:3] not in tried and one[1].startswith(room))
    home = package("mutated")
    for path, where, what, text in islice(new, number):
        copied = home / "majorant" / path.relative_to(PACKAGE)
        copied.write_text(text, encoding="utf-8")
        begun, killed = time.time(), "no test runs it"
        for slow in (False, True):
            chosen = [test["test"] for test in tests if test["slow"] == slow and where in test["ran"]]
            if chosen and killed != "quick":
                (WORK / "asked.json").write_text(json.dumps(chosen), encoding="utf-8")
                near = f"tests/{path.parent.name}/"  # the tests of the room itself come first
                files = sorted(
                    {test.split("::")[0] for test in chosen}, key=lambda file: (not file.startswith(near), file)
                )
                alive = passes(home, "-x", *files, MUTANTS_TESTS=str(WORK / "asked.json"))
                killed = "survives" if alive else "slow" if slow else "quick"
        copied.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
        line = {"where": where, "what": what, "killed": killed, "seconds": round(time.time() - begun, 1)}
        with JOURNAL.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(killed, where, what, flush=True)


def tell() -> None:
    lines = [json.loads(line) for line in JOURNAL.read_text(encoding="utf-8").splitlines()]
    for room in ("", *sorted({line["where"].partition("/")[0] for line in lines})):
        killed = Counter(line["killed"] for line in lines if line["where"].startswith(room))
        print(f"{room or 'all'}: {killed.total()} mutants,", dict(killed))
    for line in lines:
        if line["killed"] != "quick":
            print(f"{line['killed']:16}{line['where']:36}{line['what']}")


if __name__ == "__main__":
    os.chdir(ROOT)
    COVERED.mkdir(parents=True, exist_ok=True)
    match sys.argv[1:]:
        case ["run", *files]:
            cover(files or sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")))
        case ["try", number, *rooms]:
            attempt(int(number), "".join(rooms))
        case ["tell"]:
            tell()
        case _:
            sys.exit(__doc__)
