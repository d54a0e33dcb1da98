"""Programs on two commits side by side: CPU time of each, medians, and the ratio.

    python benchmarks/history.py OLD [NEW] [--program "benchmarks/kmeans_lloyd.py"] [--repeats 5]

NEW is by default the last commit. Each is built in a folder of its own under build/history, where it stays for the next
comparison. A program is a script of this checkout with its arguments, and runs in turns with the package of either;
several may be given. By default it is fits of the models to generated rows.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
FITS = {
    "KMeans": "mj.KMeans(20, random_state=0).fit(X)",
    "KMeans, single precision": "mj.KMeans(20, random_state=0).fit(X.astype('float32'))",
    "GaussianMixture": "mj.GaussianMixture(4, random_state=0).fit(X)",
    "RegressionMixture": "mj.RegressionMixture(3, random_state=0).fit(X[:, :2], X[:, 2])",
    "import": "None",
}
ROWS = """
import numpy as np, majorant as mj
g = np.random.default_rng(0)
X = g.normal(size=(3000, 6)) + 4 * g.normal(size=(20, 6))[g.integers(0, 20, 3000)]
"""


def package(commit: str) -> Path:
    """The folder of a commit's package, its kernels built."""
    name = subprocess.run(
        ["git", "rev-parse", commit], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
    folder = ROOT / "build" / "history" / name[:12]
    if not folder.exists():
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", folder, name], cwd=ROOT, check=True)
    build = folder / "build" / "kernels"
    configure = ["cmake", "-S", folder, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    tools = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command in (
        [*configure, f"-DPython_EXECUTABLE={sys.executable}"],
        ["cmake", "--build", build],
        ["cmake", "--install", build, "--prefix", folder / "src"],
    ):
        subprocess.run(command, env=tools, stdout=subprocess.DEVNULL, check=True)
    return folder / "src"


def seconds(program: list[str], source: Path) -> float:
    """CPU time of a program with some package, on one thread."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | threads | {"PYTHONPATH": str(source)}
    subprocess.run([sys.executable, *program], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new", nargs="?", default="HEAD")
    parser.add_argument("--program", action="append", default=[])
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    programs = {text: text.split() for text in chosen.program} or {k: ["-c", ROWS + fit] for k, fit in FITS.items()}
    old, new = package(chosen.old), package(chosen.new)
    print(f"{'CPU seconds':40} {chosen.old[:12]:>12} {chosen.new[:12]:>12}   new / old")
    for name, program in programs.items():
        times = [(seconds(program, old), seconds(program, new)) for _ in range(chosen.repeats)]
        a, b = (median(column) for column in zip(*times, strict=True))
        print(f"{name[:40]:40} {a:12.3f} {b:12.3f} {b / a:11.2f}", flush=True)


if __name__ == "__main__":
    main()
