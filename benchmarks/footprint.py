"""What the package costs besides fitting: import, `majorant --help`, the Tab key, and memory on a large file.

python benchmarks/footprint.py [--gigabytes 4]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import majorant as mj

IMPORT = "import time, sklearn; t = time.perf_counter(); import majorant; print(time.perf_counter() - t)"
FIRST_USE = (
    "import time, sklearn, sklearn.cluster; t = time.perf_counter(); import majorant; majorant.KMeans; "
    "print(time.perf_counter() - t)"
)


def seconds_of(code: str) -> float:
    return min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    )


def seconds_of_command(*arguments: str, typed: str | None = None) -> float:
    """A whole process; with `typed`, one that bash asks what may come next."""
    asked = {} if typed is None else {"_MAJORANT_COMPLETE": "complete_bash", "COMP_WORDS": typed}
    environment = {**os.environ, **asked, "COMP_CWORD": str(len((typed or "").split()))}
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        command = [sys.executable, "-m", "majorant.cli", *arguments]
        subprocess.run(command, capture_output=True, check=True, env=environment)
        times.append(time.perf_counter() - begin)
    return min(times)


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def streamed(gigabytes: float) -> tuple[float, float]:
    """Peak extra memory in MB while fitting a memory-mapped file, and the file's size in GB."""
    d = 256
    n = int(gigabytes * 2**30 / 8 / d)
    random = np.random.default_rng(0)
    centres = 3 * random.standard_normal((10, d))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        with path.open("wb") as file:
            np.lib.format.write_array_header_2_0(file, {"descr": "<f8", "fortran_order": False, "shape": (n, d)})
            for first in range(0, n, 8192):
                m = min(8192, n - first)
                rows = centres[random.integers(0, 10, m)] + random.standard_normal((m, d), dtype=np.float32)
                rows.astype("<f8").tofile(file)
        X = np.load(path, mmap_mode="r")
        mj.KMeans(2, random_state=0).fit(random.standard_normal((10000, d)))  # what any fit loads is not counted
        before = peak_megabytes()
        mj.KMeans(10, random_state=0, n_jobs=2).fit(X)
        return peak_megabytes() - before, X.nbytes / 2**30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=4.0)
    arguments = parser.parse_args()
    print(f"import majorant after import sklearn   {seconds_of(IMPORT):.3f} s (wanted: below 0.2)")
    print(f"... with KMeans, after sklearn.cluster {seconds_of(FIRST_USE):.3f} s")
    print(f"majorant --help                        {seconds_of_command('--help'):.2f} s (wanted: below 1)")
    print(f"the Tab key after --set                {seconds_of_command(typed='majorant fit kmeans T --set '):.2f} s")
    extra, size = streamed(arguments.gigabytes)
    print(f"KMeans on a mapped file of {size:.1f} GB: peak extra memory {extra:.0f} MB (wanted: below 200)")


if __name__ == "__main__":
    main()
